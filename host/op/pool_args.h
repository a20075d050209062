/* The arguments of a pooling operator, whichever row it is: read by name, one number a spatial dimension. */
#ifndef HOST_OP_POOL_ARGS_H
#define HOST_OP_POOL_ARGS_H
#include "host/op/op.h"

/* All are numbers: a symbol among them becomes one.
 * adaptive: windows come from the sizes alone. divisor 0: none is given. */
typedef struct {
    uint32_t nd;
    bool adaptive, ceil, count_pad;
    int64_t divisor, kernel[3], stride[3], pad[3], dilation[3];
} pool_args;

/* nd is what the row's schema says. Checks each number; an empty stride is the kernel's size. */
bp_status pool_args_read(bp_ctx *c, const op_row *op, const bp_value *args, pool_args *out);
/* The size of the result along spatial dimension d of a plain pooling of `in` elements. */
bp_status pool_size(bp_ctx *c, const op_row *op, const pool_args *a, uint32_t d, bp_dim in, bp_dim *out);
#endif
