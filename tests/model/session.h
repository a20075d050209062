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
    COUNT(hits, s.hits) COUNT(eager, s.eager_calls) COUNT(resumed, s.resumed) COUNT(commits, s.steps)
typedef struct {
#define COUNT(name, from) uint32_t name;
    SESSION_COUNTS(COUNT)
#undef COUNT
} counts;

typedef struct {
    uint64_t calls, compiled;   /* compiled: not answered eagerly */
    uint64_t trained, trained_compiled, failed_backwards, refused_alone; /* backwards: all, those of compiled calls */
    uint64_t symbolic_graphs, flow_graphs; /* compiled with symbols; with control flow in them */
    uint64_t backward_graphs;   /* how many were compiled */
    counts sums;
    census census;
} session_totals;

/* Runs p. True: nothing differs. Else *why says what differs first, at which call, with the call's statements. */
bool session_run(const program *p, buf *why, session_totals *t);
/* The same with arguments that require grad, and a backward behind each call. Compared with eager alone: gradients are
 * equal bit for bit, but within rounding in mode "another". */
bool session_train(const program *p, buf *why, session_totals *t);
/* The same with sizes that change from call to call, so that functions are captured with symbolic sizes; and with `if`
 * and `loop` as control flow in the graph, where they can be (flow.c). Compared with eager alone. Not for mode
 * "another". */
bool session_dynamic(const program *p, buf *why, session_totals *t);
/* Runs p on several threads at once, each with contexts of its own, all with the same callables. True: each call gives
 * what eager gives; nothing is counted. Not for mode "another" and programs with buffers. */
bool session_run_threads(const program *p, uint32_t nthreads, buf *why);
#endif
