/* One call of one side, and what its caller sees: results, written buffers, effects, draws, each a line as in texts. */
#ifndef TESTS_MODEL_SEEN_H
#define TESTS_MODEL_SEEN_H
#include "tests/model/run.h"

/* Runs k on fresh arguments: by the callable where s has callables, else eagerly. *seen: lines; *modes: what texts do
 * not have, requires_grad of results, the modes, and the error's message. */
void seen_call(side *s, const text_call *k, const text_args *a, buf *seen, buf *modes);
/* The start of a pass: the generator is seeded, nothing is stashed. */
void seen_start(side *s);
/* False: *why has the first line in which *got and `want`, which is called `name`, differ. tolerant: numbers may differ
 * by rounding. 1 and 1.0 are equal, 0 and -0 are not. */
bool seen_equal(const buf *got, const char *name, const char *want, bool tolerant, buf *why);
#endif
