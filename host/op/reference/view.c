/* Kernels of operators that move elements and compute nothing. */
#include "host/op/rows.h"
#include "host/op/view_rule.h"

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
    expanded_strides(src, out->rank, out->sizes, strides);
    tensor_meta m = {src->dtype, tensor_device(src), out->rank, out->sizes, strides, src->offset};
    bp_tensor *wide = tensor_view(c, src, &m);
    bp_status st = wide ? tensor_copy(c, k->out[0], wide) : c->diag.code;
    tensor_unref(wide);
    return st;
}

/* Argument 0's elements in row-major order: the output is contiguous, so it has a view of argument 0's sizes. */
bp_status kernel_reshape(bp_ctx *c, op_call *k)
{
    const bp_tensor *src = arg_tensor(k->args, 0);
    bp_dim strides[TENSOR_MAX_RANK];
    layout_contiguous(c, src->rank, src->sizes, strides);
    tensor_meta m = {src->dtype, tensor_device(src), src->rank, src->sizes, strides, k->out[0]->offset};
    bp_tensor *flat = tensor_view(c, k->out[0], &m);
    bp_status st = flat ? tensor_copy(c, flat, src) : c->diag.code;
    tensor_unref(flat);
    return st;
}

/* Runs the view that "<view>_copy" is a form of, and copies what it shows. */
bp_status kernel_view_copy(bp_ctx *c, op_call *k)
{
    shape_call s = {.op = base_view_row(k->op), .args = k->args, .nargs = k->nargs};
    TRY(s.op->shape(c, &s));
    for (uint32_t i = 0; i < s.nout; i++) {
        bp_tensor *view = tensor_view(c, arg_tensor(k->args, 0), &s.out[i].meta);
        bp_status st = view ? tensor_copy(c, k->out[i], view) : c->diag.code;
        tensor_unref(view);
        TRY(st);
    }
    return BP_OK;
}

/* The start is read from a tensor. */
bp_status kernel_narrow_tensor(bp_ctx *c, op_call *k)
{
    const bp_tensor *start = arg_tensor(k->args, 2);
    bp_value args[] = {k->args[0], k->args[1], value_int(dtype_load(start->dtype, tensor_ptr(start)).i), k->args[3]};
    k->out[0] = op_call1(c, ROW_narrow_default, 4, args);
    return c->diag.code;
}
