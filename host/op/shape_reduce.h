/* Which dimensions a reduction folds, for shape rules and kernels. */
#ifndef HOST_OP_SHAPE_REDUCE_H
#define HOST_OP_SHAPE_REDUCE_H
#include "host/op/op.h"

/* The dimensions that argument "dim" names (an int, a list, None) as a bit mask; all where the operator has no such
 * argument, and where the list is empty or None. Errors: out of range, named twice. */
bp_status reduce_mask(bp_ctx *c, const op_row *op, const bp_value *args, uint32_t rank, uint64_t *mask);
/* The "dtype" argument, or UNSET. */
bp_dtype reduce_dtype(const op_row *op, const bp_value *args);
/* The "dim" argument of an operator along one dimension, wrapped. */
bp_status reduce_one_dim(bp_ctx *c, const op_row *op, const bp_value *args, uint32_t rank, uint32_t *dim);
#endif
