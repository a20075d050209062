/* What the shape rules of views and of operators that move elements share. Internal to host/op. */
#ifndef HOST_OP_VIEW_RULE_H
#define HOST_OP_VIEW_RULE_H
#include "host/op/op.h"

/* Replaces a -1 among sizes so that their product is numel; an error names both. */
bp_status infer_sizes(bp_ctx *c, const op_row *op, bp_dim numel, uint32_t rank, bp_dim *sizes);
/* A view of argument 0 to these sizes, or an error that says that none is possible. */
bp_status add_reshaped_view(bp_ctx *c, shape_call *s, uint32_t rank, const bp_dim *sizes);
/* A view when one is possible, else a contiguous result for the kernel to fill. */
bp_status add_reshaped(bp_ctx *c, shape_call *s, uint32_t rank, const bp_dim *sizes);
/* The part of argument 0 that starts at `start` along d; start and length are known to fit. */
bp_status add_narrow(bp_ctx *c, shape_call *s, uint32_t d, bp_dim start, bp_dim length);
/* Argument 0 without dimension d, at index. */
bp_status add_select(bp_ctx *c, shape_call *s, uint32_t d, bp_dim index);
/* a, or `bound` where a is larger (most) or smaller: which, is asked, but of data it stays open. */
bp_dim dim_clamp(bp_ctx *c, bp_dim a, bp_dim bound, bool most);
/* A bound of a slice as an index from `least`, which is at most n, to n. */
bp_dim slice_bound(bp_ctx *c, bp_dim v, bp_dim n, bp_dim least);
/* How many elements the diagonal has that many columns right of the main one (below it, if negative). */
bp_dim diagonal_length(bp_ctx *c, bp_dim rows, bp_dim columns, int64_t offset);
/* Argument 0 with its dimensions in this order. */
bp_status add_permuted(bp_ctx *c, shape_call *s, uint32_t rank, const uint32_t *order);
/* A tensor's meta broadcast to sizes: stride 0 where it repeats. strides has room for rank. */
void expanded_strides(const bp_tensor *t, uint32_t rank, const bp_dim *sizes, bp_dim *strides);
/* A result of dtype d laid out as a copy of t in a memory format; UNSET and PRESERVE keep t's order. */
bp_status add_copy(bp_ctx *c, shape_call *s, const bp_tensor *t, bp_dtype d, int32_t format);
/* The row of the view that an operator "<name>_copy" is made of; NULL: there is none. */
const op_row *base_view_row(const op_row *op);
#endif
