/* Shape rules of pooling and its gradients. Images keep a channels-last layout; volumes do so where PyTorch's kernels
 * do (max_pool3d and its gradient); lines do where PyTorch pools them as images. */
#include "host/op/checks.h"
#include "host/op/pool_args.h"
#include "host/op/rows.h"
#include <string.h>

enum format { FORMAT_PLAIN, FORMAT_OF_SELF, FORMAT_OF_LINES };

/* A [N, C, L] tensor seen as the [N, C, 1, L] image that PyTorch makes of it. */
static bool lines_suggest_channels_last(bp_ctx *c, const bp_tensor *t)
{
    bp_dim sizes[4], strides[4];
    if (t->rank != 3)
        return false;
    memcpy(sizes, (bp_dim[]){t->sizes[0], t->sizes[1], dim_const(1), t->sizes[2]}, sizeof sizes);
    memcpy(strides,
           (bp_dim[]){t->strides[0], t->strides[1], dim_mul(c, t->sizes[2], t->strides[2]), t->strides[2]},
           sizeof strides);
    bp_tensor image = {.rank = 4, .sizes = sizes, .strides = strides};
    return suggests_channels_last(&image);
}

static bp_status add_out(bp_ctx *c, shape_call *s, const bp_tensor *self, bp_dtype dtype, const bp_dim *sizes,
                         enum format format)
{
    if (format == FORMAT_OF_SELF)
        return out_format_of(c, s, self, dtype, self->rank, sizes);
    shape_out *o = shape_add_out(c, s, dtype, self->rank, sizes);
    if (o && format == FORMAT_OF_LINES && lines_suggest_channels_last(c, self)) {
        o->meta.strides[0] = dim_mul(c, sizes[1], sizes[2]);
        o->meta.strides[1] = dim_const(1);
        o->meta.strides[2] = sizes[1];
    }
    return c->diag.code;
}

/* Only the batch may be empty. */
static bp_status check_filled(bp_ctx *c, const shape_call *s, const bp_tensor *t, uint32_t nd, uint32_t from)
{
    char text[256];
    TRY(check_rank(c, s, 0, nd + 1, nd + 2));
    for (uint32_t d = t->rank == nd + 2 ? from : from - 1; d < t->rank; d++)
        if (!dim_require(DIM_NE, t->sizes[d], dim_const(0)))
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "an input of sizes %s is empty, and not in its batch",
                           sizes_text(text, sizeof text, t->rank, t->sizes));
    return BP_OK;
}

static bp_status no_type(bp_ctx *c, const shape_call *s, const bp_tensor *t)
{
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "there is no %s for %s", s->op->schema->name,
                   dtype_get(t->dtype)->torch);
}

static bp_status result_sizes(bp_ctx *c, const shape_call *s, const bp_tensor *self, const pool_args *a, bp_dim *sizes)
{
    memcpy(sizes, self->sizes, self->rank * sizeof *sizes);
    for (uint32_t d = 0; d < a->nd; d++) {
        uint32_t at = self->rank - a->nd + d;
        TRY(pool_size(c, s->op, a, d, self->sizes[at], &sizes[at]));
    }
    return BP_OK;
}

/* max_pool1d alone is not pooled as an image. */
static enum format max_format(const shape_call *s, uint32_t nd)
{
    return nd > 1 ? FORMAT_OF_SELF : s->op->schema->nreturns > 1 ? FORMAT_OF_LINES : FORMAT_PLAIN;
}

bp_status shape_max_pool(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    pool_args a;
    bp_dim sizes[5];
    TRY(pool_args_read(c, s->op, s->args, &a));
    TRY(check_filled(c, s, self, a.nd, 1));
    if (self->dtype == BP_BOOL || dtype_is_complex(self->dtype))
        return no_type(c, s, self);
    TRY(result_sizes(c, s, self, &a, sizes));
    TRY(add_out(c, s, self, self->dtype, sizes, max_format(s, a.nd)));
    if (s->op->schema->nreturns > 1)
        TRY(add_out(c, s, self, BP_I64, sizes, max_format(s, a.nd)));
    return BP_OK;
}

bp_status shape_avg_pool(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    pool_args a;
    bp_dim sizes[5];
    TRY(pool_args_read(c, s->op, s->args, &a));
    TRY(check_filled(c, s, self, a.nd, 1));
    if (!dtype_is_float(self->dtype) && self->dtype != BP_I64)
        return no_type(c, s, self);
    TRY(result_sizes(c, s, self, &a, sizes));
    return add_out(c, s, self, self->dtype, sizes, a.nd == 2 ? FORMAT_OF_SELF : FORMAT_PLAIN);
}

/* The sizes that are asked for, each at least 0; whether all are 1. */
static bp_status wanted_sizes(bp_ctx *c, const shape_call *s, const bp_tensor *self, uint32_t nd, bp_dim *sizes,
                              bool *ones)
{
    uint32_t n = arg_list_len(s->args, 1);
    if (n != 1 && n != nd)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"output_size\" has %u numbers, expected %u", n, nd);
    memcpy(sizes, self->sizes, self->rank * sizeof *sizes);
    *ones = true;
    for (uint32_t d = 0; d < nd; d++) {
        bp_dim size = arg_list_dim(s->args, 1, n == 1 ? 0 : d);
        if (!dim_require(DIM_LE, dim_const(0), size))
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"output_size\" must not be negative, and is %s",
                           op_dim_text(c, size));
        *ones = *ones && dim_eq_or_false(size, dim_const(1));
        sizes[self->rank - nd + d] = size;
    }
    return BP_OK;
}

/* adaptive_avg_pool of images and volumes to one element is a mean: its input may be empty, and volumes keep their
 * layout. */
bp_status shape_adaptive_avg_pool(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    pool_args a;
    bp_dim sizes[5];
    bool ones;
    TRY(pool_args_read(c, s->op, s->args, &a));
    TRY(check_rank(c, s, 0, a.nd + 1, a.nd + 2));
    TRY(wanted_sizes(c, s, self, a.nd, sizes, &ones));
    bool mean = ones && a.nd > 1 && s->op->schema->name[0] != '_';
    if (!mean)
        TRY(check_filled(c, s, self, a.nd, 2));
    if (!dtype_is_float(self->dtype))
        return no_type(c, s, self);
    return add_out(c, s, self, self->dtype, sizes,
                   a.nd == 1           ? FORMAT_OF_LINES
                   : a.nd == 2 || mean ? FORMAT_OF_SELF
                                       : FORMAT_PLAIN);
}

bp_status shape_adaptive_max_pool(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    pool_args a;
    bp_dim sizes[5];
    bool ones;
    TRY(pool_args_read(c, s->op, s->args, &a));
    TRY(check_filled(c, s, self, a.nd, 1));
    TRY(wanted_sizes(c, s, self, a.nd, sizes, &ones));
    if (!dtype_is_float(self->dtype))
        return no_type(c, s, self);
    enum format format = a.nd == 1 ? FORMAT_OF_LINES : a.nd == 2 ? FORMAT_OF_SELF : FORMAT_PLAIN;
    TRY(add_out(c, s, self, self->dtype, sizes, format));
    return add_out(c, s, self, BP_I64, sizes, format);
}

/* -- undoing: max_unpool, and gradients, which have the sizes of the pooled tensor -- */

bp_status shape_max_unpool(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0), *indices = arg_tensor(s->args, 1);
    uint32_t nd = (uint32_t)s->op->schema->args[2].ty.list_size;
    bp_dim sizes[5];
    TRY(check_filled(c, s, self, nd, 1));
    if (indices->rank != self->rank || !sizes_must_match(self->rank, indices->sizes, self->sizes) ||
        indices->dtype != BP_I64)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"indices\" must be int64 and have self's sizes");
    if (arg_list_len(s->args, 2) != nd)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"output_size\" must have %u numbers", nd);
    memcpy(sizes, self->sizes, self->rank * sizeof *sizes);
    for (uint32_t d = 0; d < nd; d++)
        sizes[self->rank - nd + d] = arg_list_dim(s->args, 2, d);
    return add_out(c, s, self, self->dtype, sizes, nd == 2 ? FORMAT_OF_SELF : FORMAT_PLAIN);
}

/* The gradient has the sizes of what self was pooled to; an adaptive one those of any pooling of nd dimensions. */
static bp_status check_gradient(bp_ctx *c, const shape_call *s, const bp_tensor *grad, const bp_tensor *self)
{
    uint32_t nd = strstr(s->op->schema->name, "3d") ? 3 : 2;
    pool_args a = {.adaptive = true};
    bp_dim size;
    TRY(check_rank(c, s, 1, nd + 1, nd + 2));
    TRY(check_rank(c, s, 0, self->rank, self->rank));
    if (schema_find(s->op->schema, "kernel_size") >= 0)
        TRY(pool_args_read(c, s->op, s->args, &a));
    bool fits = sizes_must_match(self->rank - nd, grad->sizes, self->sizes);
    for (uint32_t d = 0; fits && !a.adaptive && d < nd; d++) {
        TRY(pool_size(c, s->op, &a, d, self->sizes[self->rank - nd + d], &size));
        fits = dim_require(DIM_EQ, grad->sizes[self->rank - nd + d], size);
    }
    return fits ? BP_OK
                : op_fail(c, s->op, BP_INVALID_ARGUMENT, "the gradient's sizes are not those of the pooled tensor");
}

/* The places of maxima, if any, are one for each element of the gradient. */
static bp_status check_places(bp_ctx *c, const shape_call *s, const bp_tensor *grad)
{
    int32_t i = schema_find(s->op->schema, "indices");
    const bp_tensor *places = i < 0 ? NULL : arg_tensor(s->args, (uint32_t)i);
    bool same = !places || (places->dtype == BP_I64 && places->rank == grad->rank);
    if (same && (!places || sizes_must_match(grad->rank, places->sizes, grad->sizes)))
        return BP_OK;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"indices\" must be int64 and have the gradient's sizes");
}

static bp_status gradient(bp_ctx *c, shape_call *s, enum format format)
{
    const bp_tensor *grad = arg_tensor(s->args, 0), *self = arg_tensor(s->args, 1);
    TRY(check_same_dtype(c, s, 0, 1));
    TRY(check_gradient(c, s, grad, self));
    TRY(check_places(c, s, grad));
    if (!dtype_is_float(grad->dtype))
        return no_type(c, s, grad);
    return add_out(c, s, self, self->dtype, self->sizes, format);
}

bp_status shape_pool_backward(bp_ctx *c, shape_call *s) { return gradient(c, s, FORMAT_OF_SELF); }
bp_status shape_pool_backward_plain(bp_ctx *c, shape_call *s) { return gradient(c, s, FORMAT_PLAIN); }
