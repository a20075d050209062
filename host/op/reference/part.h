/* Views that kernels need for a moment: parts of a tensor and tensors laid along a dimension. Each gives a reference
 * that the kernel gives up; NULL: the context says why. */
#ifndef HOST_OP_REFERENCE_PART_H
#define HOST_OP_REFERENCE_PART_H
#include "host/tensor/tensor.h"

/* Elements [start, start + length) of dimension dim. */
bp_tensor *part_narrow(bp_ctx *c, bp_tensor *t, uint32_t dim, int64_t start, int64_t length);
/* t of rank 0 or 1 as a tensor of `rank` dimensions, all of size 1 but `dim`, along which t lies. */
bp_tensor *part_along(bp_ctx *c, bp_tensor *t, uint32_t rank, uint32_t dim);
/* Dimension dim as two: `outer` of them, and what each holds. */
bp_tensor *part_split(bp_ctx *c, bp_tensor *t, uint32_t dim, int64_t outer);
/* t of rank 1 as [1, outer, inner, 1 ...] of `rank` dimensions. */
bp_tensor *part_channels(bp_ctx *c, bp_tensor *t, uint32_t rank, int64_t outer, int64_t inner);
#endif
