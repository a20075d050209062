/* Reading the arguments of pooling (pool_args.h). */
#include "host/op/pool_args.h"
#include <string.h>

static bp_status read_list(bp_ctx *c, const op_row *op, const bp_value *args, const char *name, uint32_t nd,
                           int64_t least, int64_t *out)
{
    int32_t i = schema_find(op->schema, name);
    if (i < 0 || arg_list_len(args, (uint32_t)i) == 0)
        return BP_OK;
    TRY(arg_ints(c, op, args, (uint32_t)i, nd, out));
    for (uint32_t d = 0; d < nd; d++)
        if (out[d] < least || out[d] > INT32_MAX)
            return op_fail(c, op, BP_INVALID_ARGUMENT, "argument \"%s\" must be at least %lld%s, and is %lld", name,
                           (long long)least, out[d] < least ? "" : " and fit 32 bits", (long long)out[d]);
    return BP_OK;
}

static bool flag(const op_row *op, const bp_value *args, const char *name, bool otherwise)
{
    int32_t i = schema_find(op->schema, name);
    return i < 0 ? otherwise : arg_bool(args, (uint32_t)i);
}

bp_status pool_args_read(bp_ctx *c, const op_row *op, const bp_value *args, pool_args *out)
{
    int32_t kernel = schema_find(op->schema, "kernel_size"), divisor = schema_find(op->schema, "divisor_override");
    int32_t size = schema_find(op->schema, "output_size");
    *out = (pool_args){.adaptive = kernel < 0};
    out->nd = (uint32_t)op->schema->args[kernel < 0 ? size : kernel].ty.list_size;
    if (out->adaptive)
        return BP_OK;
    for (uint32_t d = 0; d < 3; d++)
        out->dilation[d] = 1;
    TRY(read_list(c, op, args, "kernel_size", out->nd, 1, out->kernel));
    memcpy(out->stride, out->kernel, sizeof out->stride);
    TRY(read_list(c, op, args, "stride", out->nd, 1, out->stride));
    TRY(read_list(c, op, args, "padding", out->nd, 0, out->pad));
    TRY(read_list(c, op, args, "dilation", out->nd, 1, out->dilation));
    for (uint32_t d = 0; d < out->nd; d++)
        if (out->pad[d] > ((out->kernel[d] - 1) * out->dilation[d] + 1) / 2)
            return op_fail(c, op, BP_INVALID_ARGUMENT,
                           "padding must be at most half of the kernel, and %lld is more than half of %lld",
                           (long long)out->pad[d], (long long)((out->kernel[d] - 1) * out->dilation[d] + 1));
    out->ceil = flag(op, args, "ceil_mode", false);
    out->count_pad = flag(op, args, "count_include_pad", true);
    if (divisor >= 0 && !arg_is_none(args, (uint32_t)divisor)) {
        out->divisor = arg_int(c, args, (uint32_t)divisor);
        if (out->divisor == 0)
            return op_fail(c, op, BP_INVALID_ARGUMENT, "argument \"divisor_override\" must not be 0");
    }
    return c->diag.code;
}

/* In ceil mode the last window may hang over the end, but must begin inside or in the padding in front. */
bp_status pool_size(bp_ctx *c, const op_row *op, const pool_args *a, uint32_t d, bp_dim in, bp_dim *out)
{
    int64_t reach = (a->kernel[d] - 1) * a->dilation[d], stride = a->stride[d];
    bp_dim room = dim_add(c, in, dim_const(2 * a->pad[d] - reach - 1 + (a->ceil ? stride - 1 : 0)));
    bp_dim n = dim_add(c, dim_floordiv(c, room, dim_const(stride)), dim_const(1));
    bp_dim last = dim_mul(c, dim_sub(c, n, dim_const(1)), dim_const(stride));
    enum dim_truth hangs = a->ceil ? dim_decide(DIM_LE, dim_add(c, in, dim_const(a->pad[d])), last) : DIM_FALSE;
    if (hangs == DIM_TRUE)
        n = dim_sub(c, n, dim_const(1));
    else if (hangs == DIM_UNKNOWN)
        n = dim_sub(c, n, dim_compare(c, DIM_LE, dim_add(c, in, dim_const(a->pad[d])), last));
    if (!dim_require(DIM_LT, dim_const(0), n))
        return op_fail(c, op, BP_INVALID_ARGUMENT, "an input of %s elements is too small for a kernel of %lld",
                       op_dim_text(c, in), (long long)reach + 1);
    *out = n;
    return c->diag.code;
}
