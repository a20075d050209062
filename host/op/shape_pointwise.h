/* Result types and sizes of pointwise operators, for their shape rules and their kernels. */
#ifndef HOST_OP_SHAPE_POINTWISE_H
#define HOST_OP_SHAPE_POINTWISE_H
#include "host/op/op.h"

/* Type in which the first n arguments (tensors, numbers, or None: skipped) meet. */
bp_dtype pointwise_promote(bp_ctx *c, const bp_value *args, uint32_t n);
/* Adds an output: the broadcast of all tensor arguments, with the strides that PyTorch's iterator gives it. Numbers
 * among the first `numbers` arguments count as operands of no dimensions. */
bp_status pointwise_add_out(bp_ctx *c, shape_call *s, bp_dtype dtype, uint32_t numbers);
/* Whether ldexp's exponent is applied as it is (floats, and an exponent of integers) and not as a power of two. */
bool pointwise_ldexp_is_exact(const bp_value *args);
#endif
