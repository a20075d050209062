/* Reading the arguments of convolutions (conv_args.h). */
#include "host/op/conv_args.h"
#include "host/op/checks.h"
#include <string.h>

static int32_t find(const op_row *op, const char *name) { return schema_find(op->schema, name); }

/* The list of that name, each at least `least`; a fill where the row has no such argument. */
static bp_status read_list(bp_ctx *c, const op_row *op, const bp_value *args, const char *name, uint32_t nd,
                           int64_t least, int64_t fill, int64_t *out)
{
    int32_t i = find(op, name);
    for (uint32_t d = 0; d < nd; d++)
        out[d] = fill;
    if (i < 0)
        return BP_OK;
    TRY(arg_ints(c, op, args, (uint32_t)i, nd, out));
    for (uint32_t d = 0; d < nd; d++)
        if (out[d] < least || out[d] > INT32_MAX)
            return op_fail(c, op, BP_INVALID_ARGUMENT, "argument \"%s\" must be at least %lld%s, and is %lld", name,
                           (long long)least, out[d] < least ? "" : " and fit 32 bits", (long long)out[d]);
    return BP_OK;
}

/* padding="same": the window's reach, the odd one behind. "valid": none. */
static bp_status read_named_padding(bp_ctx *c, const op_row *op, const char *name, const bp_tensor *weight,
                                    conv_args *out)
{
    bool same = strcmp(name, "same") == 0;
    if (!same && strcmp(name, "valid") != 0)
        return op_fail(c, op, BP_INVALID_ARGUMENT, "argument \"padding\" must be \"same\" or \"valid\", and is \"%s\"",
                       name);
    out->same = same;
    for (uint32_t d = 0; d < out->nd; d++) {
        if (same && out->stride[d] != 1)
            return op_fail(c, op, BP_INVALID_ARGUMENT, "padding=\"same\" needs a stride of 1, and it is %lld",
                           (long long)out->stride[d]);
        bp_dim window = weight->sizes[2 + d];
        int64_t reach = same && dim_is_const(window) ? out->dilation[d] * (window.value - 1) : 0;
        out->front[d] = reach / 2;
        out->back[d] = reach - reach / 2;
    }
    return BP_OK;
}

static bp_status read_padding(bp_ctx *c, const op_row *op, const bp_value *args, const bp_tensor *weight,
                              conv_args *out)
{
    int32_t i = find(op, "padding");
    if (i >= 0 && args[i].kind == BP_VALUE_STRING)
        return read_named_padding(c, op, arg_str(args, (uint32_t)i), weight, out);
    TRY(read_list(c, op, args, "padding", out->nd, 0, 0, out->front));
    memcpy(out->back, out->front, sizeof out->back);
    return BP_OK;
}

bp_status conv_args_read(bp_ctx *c, const op_row *op, const bp_value *args, const bp_tensor *input,
                         const bp_tensor *weight, conv_args *out)
{
    int32_t stride = find(op, "stride"), transposed = find(op, "transposed"), groups = find(op, "groups");
    int32_t named = op->schema->args[stride].ty.list_size;
    uint32_t nd = named > 0 ? (uint32_t)named : weight->rank - 2u;
    bool may_lack_batch = named > 0;
    *out = (conv_args){.nd = nd, .batched = input->rank == nd + 2, .groups = arg_int(c, args, (uint32_t)groups)};
    if (weight->rank != nd + 2 || nd < 1 || nd > 3)
        return op_fail(c, op, BP_INVALID_ARGUMENT, "the weight has %u dimensions, and must have %u", weight->rank,
                       named > 0 ? nd + 2 : 4);
    if (!out->batched && !(may_lack_batch && input->rank == nd + 1))
        return op_fail(c, op, BP_INVALID_ARGUMENT, "the input has %u dimensions, and must have %u%s", input->rank,
                       nd + 2, may_lack_batch ? ", or one less without a batch" : "");
    if (out->groups < 1)
        return op_fail(c, op, BP_INVALID_ARGUMENT, "argument \"groups\" must be positive, and is %lld",
                       (long long)out->groups);
    out->transposed = transposed >= 0 ? arg_bool(args, (uint32_t)transposed)
                                      : strncmp(op->schema->name, "conv_transpose", 14) == 0;
    TRY(read_list(c, op, args, "stride", nd, 1, 1, out->stride));
    TRY(read_list(c, op, args, "dilation", nd, 1, 1, out->dilation));
    TRY(read_list(c, op, args, "output_padding", nd, 0, 0, out->output_padding));
    return read_padding(c, op, args, weight, out);
}
