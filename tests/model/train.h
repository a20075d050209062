/* Programs that train: which arguments require grad, the backward behind each call, and what leaves have then. */
#ifndef TESTS_MODEL_TRAIN_H
#define TESTS_MODEL_TRAIN_H
#include "tests/model/run.h"

/* t, a new buffer of argument set `set`, or what takes its place: a leaf, or a product of one. Which of them, the
 * program's number decides. A leaf goes on with the gradient that it had at the last call with this set. */
bp_tensor *train_buffer(side *s, uint32_t set, uint32_t i, bp_tensor *t);
/* Whether view i of the set is made without grad mode. */
bool train_view_without_grad(const side *s, uint32_t set, uint32_t i);
/* Whether view i of the set is its buffer itself: mostly, where it shows all of it. */
bool train_is_whole(const side *s, uint32_t set, const text_args *a, uint32_t i);
/* Backward from those of the n tensors that require grad, each with a gradient that its place decides; s->grads: a line
 * for each leaf of the set. out: what requires grad. */
void train_backward(side *s, uint32_t set, bp_tensor *const *tensors, uint32_t n, buf *out);
/* Gives up what leaves of the set have. */
void train_forget(side *s, uint32_t set);
void train_close(side *s);
#endif
