/* The arguments of a convolution, whichever row it is: read by name, one number a spatial dimension. */
#ifndef HOST_OP_CONV_ARGS_H
#define HOST_OP_CONV_ARGS_H
#include "host/op/op.h"

/* All are numbers: kernels are chosen by them, so a symbol among them becomes one.
 * front and back: padding before and behind; they differ only for padding="same", where both together are the window's
 * reach: of a weight of symbolic sizes that alone is right, and they are 0. */
typedef struct {
    uint32_t nd;
    bool transposed, batched, same;
    int64_t groups, stride[3], front[3], back[3], dilation[3], output_padding[3];
} conv_args;

/* input and weight are the call's; the weight has nd + 2 dimensions, and so has a batched input. Checks each number. */
bp_status conv_args_read(bp_ctx *c, const op_row *op, const bp_value *args, const bp_tensor *input,
                         const bp_tensor *weight, conv_args *out);
#endif
