/* Kernels of operators that move elements and compute nothing. */
#include "host/op/rows.h"

/* Argument 0, cast to the output's type. */
bp_status kernel_copy_first(bp_ctx *c, op_call *k)
{
    return tensor_copy(c, k->out[0], arg_tensor(k->args, 0));
}

/* Argument 1 broadcast to the output. */
bp_status kernel_copy_second(bp_ctx *c, op_call *k)
{
    const bp_tensor *out = k->out[0];
    bp_tensor *src = arg_tensor(k->args, 1);
    bp_dim strides[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < out->rank; d++) {
        uint32_t lead = out->rank - src->rank;
        bool repeats = d < lead || dim_is(src->sizes[d - lead], 1);
        strides[d] = repeats ? dim_const(0) : src->strides[d - lead];
    }
    tensor_meta m = {src->dtype, tensor_device(src), out->rank, out->sizes, strides, src->offset};
    bp_tensor *wide = tensor_view(c, src, &m);
    bp_status st = wide ? tensor_copy(c, k->out[0], wide) : c->diag.code;
    tensor_unref(wide);
    return st;
}
