/* Operators made of other operators: one body gives both the shape rule, run on fakes, and the kernel.
 *
 * A body makes its steps with work_call and gives its last tensor, which the work owns; NULL after an error. */
#ifndef HOST_OP_REFERENCE_COMPOSE_H
#define HOST_OP_REFERENCE_COMPOSE_H
#include "host/op/reference/work.h"

typedef bp_tensor *(*compose_fn)(work *w, const op_row *op, const bp_value *args);
/* Adds an output as the body leaves it. */
bp_status compose_shape(bp_ctx *c, shape_call *s, compose_fn body);
bp_status compose_run(bp_ctx *c, op_call *k, compose_fn body);
/* The result of the row on positional arguments, owned by the work; NULL after an error, and when an argument that must
 * be a tensor is NULL because of one. */
bp_tensor *work_call(work *w, uint32_t row, uint32_t npos, const bp_value *pos);

/* The first n results of a row that gives several, likewise. */
bp_status work_calls(work *w, uint32_t row, uint32_t npos, const bp_value *pos, bp_tensor **out, uint32_t n);
/* The list that a row gives, in the scratch arena; NULL after an error. */
bp_tensor **work_list(work *w, uint32_t row, uint32_t npos, const bp_value *pos, uint32_t *n);
/* The body's last tensor with its steps through the modes, laid out as the kernel lays it out: a new reference. */
bp_tensor *compose_parts(bp_ctx *c, const op_row *op, const bp_value *args, compose_fn body);

/* -- steps that bodies share; a NULL tensor gives NULL -- */
bp_tensor *compose_permute(work *w, bp_tensor *t, const int64_t *order);
bp_tensor *compose_reshape(work *w, bp_tensor *t, uint32_t rank, const bp_dim *sizes);
bp_tensor *compose_unsqueeze(work *w, bp_tensor *t, int64_t dim);
/* The sum over some dimensions, which stay with size 1 if keep. */
bp_tensor *compose_sum(work *w, bp_tensor *t, uint32_t n, const int64_t *dims, bool keep);
bp_tensor *compose_two(work *w, uint32_t row, bp_tensor *a, bp_tensor *b);
/* Products of two tensors of one rank, broadcast, and summed over some dimensions (bit d of sum), which stay with size
 * 1. What both have becomes the batch of one bmm. */
bp_tensor *compose_sumproduct(work *w, bp_tensor *a, bp_tensor *b, uint64_t sum);
#endif
