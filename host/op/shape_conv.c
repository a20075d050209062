/* Shape rules of convolutions. A result is channels-last if the input or the weight is, with two spatial dimensions,
 * or with three in the types that have such kernels in PyTorch. */
#include "host/op/checks.h"
#include "host/op/conv_args.h"
#include "host/op/rows.h"
#include <string.h>

static bp_status check_channels(bp_ctx *c, const op_row *op, const conv_args *a, const bp_tensor *x,
                                const bp_tensor *w, const bp_tensor *bias)
{
    char text[256];
    bp_dim channels = x->sizes[a->batched ? 1 : 0], groups = dim_const(a->groups);
    bp_dim taken = a->transposed ? w->sizes[0] : dim_mul(c, w->sizes[1], groups);
    bp_dim given = a->transposed ? dim_mul(c, w->sizes[1], groups) : w->sizes[0];
    if (!dim_require(DIM_EQ, dim_mod(c, w->sizes[0], groups), dim_const(0)) ||
        !dim_require(DIM_LT, dim_const(0), w->sizes[0]))
        return op_fail(c, op, BP_INVALID_ARGUMENT, "a weight of sizes %s cannot be cut into %lld groups",
                       sizes_text(text, sizeof text, w->rank, w->sizes), (long long)a->groups);
    if (!dim_require(DIM_EQ, channels, taken))
        return op_fail(c, op, BP_INVALID_ARGUMENT,
                       "a weight of sizes %s in %lld groups takes %s channels, and the input has %s",
                       sizes_text(text, sizeof text, w->rank, w->sizes), (long long)a->groups, op_dim_text(c, taken),
                       op_dim_text(c, channels));
    if (bias && (bias->rank != 1 || !dim_require(DIM_EQ, bias->sizes[0], given)))
        return op_fail(c, op, BP_INVALID_ARGUMENT, "the bias must be a vector of %s elements, and has sizes %s",
                       op_dim_text(c, given), sizes_text(text, sizeof text, bias->rank, bias->sizes));
    return c->diag.code;
}

/* (in + padding - reach - 1) / stride + 1. */
static bp_status size_of(bp_ctx *c, const op_row *op, const conv_args *a, uint32_t d, bp_dim in, bp_dim k, bp_dim *out)
{
    bp_dim reach = dim_mul(c, dim_sub(c, k, dim_const(1)), dim_const(a->dilation[d]));
    bp_dim pads = a->same ? reach : dim_const(a->front[d] + a->back[d]), padded = dim_add(c, in, pads);
    bp_dim room = dim_sub(c, dim_sub(c, padded, reach), dim_const(1));
    if (!dim_require(DIM_LE, dim_const(0), room))
        return op_fail(c, op, BP_INVALID_ARGUMENT, "a kernel that reaches over %s elements, and a padded input of %s",
                       op_dim_text(c, dim_add(c, reach, dim_const(1))), op_dim_text(c, padded));
    *out = dim_add(c, dim_floordiv(c, room, dim_const(a->stride[d])), dim_const(1));
    return BP_OK;
}

/* (in - 1) * stride - padding + reach + output padding + 1. */
static bp_status transposed_size_of(bp_ctx *c, const op_row *op, const conv_args *a, uint32_t d, bp_dim in, bp_dim k,
                                    bp_dim *out)
{
    int64_t extra = a->output_padding[d];
    if (extra >= a->stride[d] && extra >= a->dilation[d])
        return op_fail(c, op, BP_INVALID_ARGUMENT,
                       "output padding must be smaller than either stride or dilation, and %lld >= %lld, %lld",
                       (long long)extra, (long long)a->stride[d], (long long)a->dilation[d]);
    bp_dim reach = dim_mul(c, dim_sub(c, k, dim_const(1)), dim_const(a->dilation[d]));
    bp_dim spread = dim_mul(c, dim_sub(c, in, dim_const(1)), dim_const(a->stride[d]));
    *out = dim_add(c, dim_add(c, spread, reach), dim_const(extra + 1 - a->front[d] - a->back[d]));
    if (!dim_require(DIM_LT, dim_const(0), *out))
        return op_fail(c, op, BP_INVALID_ARGUMENT, "the result would have a size of %s", op_dim_text(c, *out));
    return BP_OK;
}

/* Volumes: floats and halves, unless the output is padded by a stride or more. */
static bool has_3d_format(const conv_args *a, bp_dtype d)
{
    bool has = d == BP_F32 || d == BP_F16 || d == BP_BF16;
    for (uint32_t i = 0; i < a->nd; i++)
        has = has && a->output_padding[i] < a->stride[i];
    return has;
}

static bool channels_last(const conv_args *a, const bp_tensor *x, const bp_tensor *w)
{
    return (x->rank == 4 || (x->rank == 5 && has_3d_format(a, x->dtype))) && w->rank == x->rank &&
           (suggests_channels_last(x) || suggests_channels_last(w));
}

static void set_channels_last(bp_ctx *c, shape_out *o)
{
    int32_t format = o->meta.rank == 4 ? BP_CHANNELS_LAST : BP_CHANNELS_LAST_3D;
    layout_memory_format(c, o->meta.rank, o->meta.sizes, format, o->meta.strides);
}

bp_status shape_convolution(bp_ctx *c, shape_call *s)
{
    const bp_tensor *x = arg_tensor(s->args, 0), *w = arg_tensor(s->args, 1), *bias = arg_tensor(s->args, 2);
    conv_args a;
    bp_dim sizes[5];
    uint32_t rank = 0;
    TRY(check_rank(c, s, 1, 3, 5));
    TRY(check_same_dtype(c, s, 0, 1));
    if (bias)
        TRY(check_same_dtype(c, s, 0, 2));
    if (x->dtype == BP_BOOL)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "there are no convolutions of bools");
    TRY(conv_args_read(c, s->op, s->args, x, w, &a));
    TRY(check_channels(c, s->op, &a, x, w, bias));
    if (a.batched)
        sizes[rank++] = x->sizes[0];
    sizes[rank++] = a.transposed ? dim_mul(c, w->sizes[1], dim_const(a.groups)) : w->sizes[0];
    for (uint32_t d = 0; d < a.nd; d++, rank++)
        TRY((a.transposed ? transposed_size_of : size_of)(c, s->op, &a, d, x->sizes[x->rank - a.nd + d],
                                                          w->sizes[2 + d], &sizes[rank]));
    shape_out *o = shape_add_out(c, s, x->dtype, rank, sizes);
    if (o && channels_last(&a, x, w))
        set_channels_last(c, o);
    return c->diag.code;
}

/* Gradients of input, weight and bias; those that the mask leaves out are absent. */
bp_status shape_convolution_backward(bp_ctx *c, shape_call *s)
{
    const bp_tensor *grad = arg_tensor(s->args, 0), *x = arg_tensor(s->args, 1), *w = arg_tensor(s->args, 2);
    conv_args a;
    TRY(check_rank(c, s, 2, 3, 5));
    TRY(check_rank(c, s, 0, w->rank, w->rank));
    TRY(check_same_dtype(c, s, 0, 1));
    TRY(check_same_dtype(c, s, 0, 2));
    TRY(conv_args_read(c, s->op, s->args, x, w, &a));
    TRY(check_channels(c, s->op, &a, x, w, NULL));
    const bp_tensor *like[] = {x, w};
    for (uint32_t i = 0; i < 3; i++) {
        shape_out *o = i < 2 ? shape_add_out(c, s, x->dtype, like[i]->rank, like[i]->sizes)
                             : shape_add_out(c, s, x->dtype, 1, &grad->sizes[1]);
        if (!o)
            return c->diag.code;
        if (i < 2 && channels_last(&a, x, w))
            set_channels_last(c, o);
        o->absent = !s->args[10].v.items[i].v.i;
    }
    return c->diag.code;
}
