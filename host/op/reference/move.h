/* What kernels that move elements are made of. */
#ifndef HOST_OP_REFERENCE_MOVE_H
#define HOST_OP_REFERENCE_MOVE_H
#include "host/op/op.h"

/* Copies `rank` sizes of elements of nbytes each between strided places; strides are in elements and may be negative.
 * Places must not overlap. */
void move_elements(uint32_t rank, const int64_t *sizes, size_t nbytes, char *dst, const int64_t *dst_strides,
                   const char *src, const int64_t *src_strides);
/* Indices start .. start + length of dimension d of t, as a new view. NULL: an error. */
bp_tensor *move_part(bp_ctx *c, bp_tensor *t, uint32_t d, int64_t start, int64_t length);
/* A view of t under other sizes and strides, from its own offset on. NULL: an error. */
bp_tensor *move_view(bp_ctx *c, bp_tensor *t, uint32_t rank, const bp_dim *sizes, const bp_dim *strides);
/* Copies src to the view dst; takes dst's reference. NULL dst: the error that is pending. */
bp_status move_into(bp_ctx *c, bp_tensor *dst, const bp_tensor *src);
/* Sets every byte of a fresh output to zero. */
void move_clear(bp_tensor *out);
#endif
