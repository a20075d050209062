/* One program with its calls: each runs through bp_call and, on equal copies of everything, eagerly; what a caller sees
 * of both is compared with each other and with what the model says. */
#ifndef TESTS_MODEL_SESSION_H
#define TESTS_MODEL_SESSION_H
#include "tests/model/links.h"
#include "tests/model/run.h"

/* What is counted, a row each: COUNT(name in texts, how it is read off bp_callable_stats s). */
#define SESSION_COUNTS(COUNT)                                                                        \
    COUNT(captures, s.captures) COUNT(segments, s.graphs) COUNT(growths, s.growths)                  \
    COUNT(disagreements, s.disagreements) COUNT(opened, s.opened) COUNT(restarts, s.restarts)        \
    COUNT(hits, s.hits) COUNT(eager, s.eager_calls) COUNT(resumed, s.resumed)
typedef struct {
#define COUNT(name, from) uint32_t name;
    SESSION_COUNTS(COUNT)
#undef COUNT
} counts;

typedef struct {
    uint64_t calls, compiled;   /* compiled: not answered eagerly */
    counts sums;
    census census;
} session_totals;

/* Runs p. True: nothing differs. Else *why says what differs first, at which call, with the call's statements. */
bool session_run(const program *p, buf *why, session_totals *t);
#endif
