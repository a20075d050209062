/* Normalizations. */
#include "host/nn/nn.h"

static double eps_of(const bp_nn_norm_options *o)
{
    return o->eps != 0 ? o->eps : 1e-5;
}

/* The layer's weight and bias, or new ones of ones and zeros. */
static bp_status add_affine(bp_ctx *c, bp_module *m, const char *name, bp_dims shape, const bp_nn_norm_options *o)
{
    if (o->no_affine)
        return ctx_ok(c) ? BP_OK : c->diag.code;
    for (uint32_t d = 0; d < shape.n; d++)
        if (!nn_positive(c, "the norm", name, "a size", shape.at[d].value))
            return c->diag.code;
    TRY(nn_add(c, m, name, "weight", nn_full(c, shape, o->dtype, 1)));
    return o->no_bias ? BP_OK : nn_add(c, m, name, "bias", nn_full(c, shape, o->dtype, 0));
}

static bp_tensor *weight_of(bp_ctx *c, bp_frame *f, bp_module *m, const char *name, const bp_nn_norm_options *o)
{
    return nn_attr_unless(c, o->no_affine, f, m, name, "weight");
}

static bp_tensor *bias_of(bp_ctx *c, bp_frame *f, bp_module *m, const char *name, const bp_nn_norm_options *o)
{
    return nn_attr_unless(c, o->no_affine || o->no_bias, f, m, name, "bias");
}

/* -- batch norm ---------------------------------------------------------------------------------------------------- */

bp_status bp_nn_batch_norm_new_at(bp_ctx *c, bp_module *m, const char *name, int64_t features,
                                  const bp_nn_norm_options *given, size_t size)
{
    NN_OPTIONS(bp_nn_norm_options, o, given, size);
    if (!nn_positive(c, "batch_norm", name, "features", features))
        return c->diag.code;
    bp_dims shape = BP_DIMS(features), scalar = {NULL, 0, 1};
    TRY(add_affine(c, m, name, shape, &o));
    TRY(nn_add_buffer(c, m, name, "running_mean", nn_full(c, shape, o.dtype, 0)));
    TRY(nn_add_buffer(c, m, name, "running_var", nn_full(c, shape, o.dtype, 1)));
    return nn_add_buffer(c, m, name, "num_batches_tracked", nn_full(c, scalar, BP_I64, 0));
}

typedef struct { bp_tensor *x, *weight, *bias, *mean, *var, *batches; double momentum, eps; } batch_norm;

/* The batch's statistics, and their share in the running ones, which no gradient flows through. */
static bp_tensor *normalize_batch(bp_ctx *c, const batch_norm *b)
{
    bp_tensor5 r = bp_aten_private_native_batch_norm_legit_functional_default(c, b->x, b->weight, b->bias, b->mean,
                                                                              b->var, 1, b->momentum, b->eps);
    int grad = bp_set_grad_enabled(c, 0);
    bp_aten_copy_inplace_default(c, b->mean, r.at[3], 0);
    bp_aten_copy_inplace_default(c, b->var, r.at[4], 0);
    bp_aten_add_inplace_scalar(c, b->batches, bp_scalar_int(1), bp_scalar_int(1));
    bp_set_grad_enabled(c, grad);
    return r.at[0];
}

/* The variance of one number is none. */
static bool check_batch(bp_ctx *c, const char *name, const bp_tensor *x)
{
    if (!ctx_ok(c) || !x)
        return ctx_ok(c);
    int64_t channels = bp_tensor_rank(x) > 1 ? bp_tensor_size(x, 1) : 0;
    if (!channels || bp_tensor_numel(x) != channels)
        return true;
    return ctx_fail(c, BP_INVALID_ARGUMENT, "batch_norm \"%s\": more than 1 value a channel is expected in training, "
                    "and the input has %lld of %lld channels", name, (long long)channels, (long long)channels) == BP_OK;
}

bp_tensor *bp_nn_batch_norm_at(bp_ctx *c, bp_frame *f, bp_module *m, const char *name, bp_tensor *x,
                               const bp_nn_norm_options *given, size_t size)
{
    NN_OPTIONS(bp_nn_norm_options, o, given, size);
    batch_norm b = {x, weight_of(c, f, m, name, &o), bias_of(c, f, m, name, &o), nn_attr(c, f, m, name, "running_mean"),
                    nn_attr(c, f, m, name, "running_var"), NULL, o.momentum != 0 ? o.momentum : 0.1, eps_of(&o)};
    if (o.train && !check_batch(c, name, x))
        return NULL;
    if (o.train) {
        b.batches = nn_attr(c, f, m, name, "num_batches_tracked");
        return normalize_batch(c, &b);
    }
    bp_tensor3 r = bp_aten_private_native_batch_norm_legit_no_training_default(c, x, b.weight, b.bias, b.mean, b.var,
                                                                               b.momentum, b.eps);
    return r.at[0];
}

/* -- the others ---------------------------------------------------------------------------------------------------- */

bp_status bp_nn_layer_norm_new_at(bp_ctx *c, bp_module *m, const char *name, bp_dims shape,
                                  const bp_nn_norm_options *given, size_t size)
{
    NN_OPTIONS(bp_nn_norm_options, o, given, size);
    return add_affine(c, m, name, shape, &o);
}

bp_tensor *bp_nn_layer_norm_at(bp_ctx *c, bp_frame *f, bp_module *m, const char *name, bp_tensor *x, bp_dims shape,
                               const bp_nn_norm_options *given, size_t size)
{
    NN_OPTIONS(bp_nn_norm_options, o, given, size);
    bp_tensor *weight = weight_of(c, f, m, name, &o), *bias = bias_of(c, f, m, name, &o);
    return bp_aten_layer_norm_default(c, x, shape, weight, bias, eps_of(&o), 1);
}

bp_status bp_nn_rms_norm_new_at(bp_ctx *c, bp_module *m, const char *name, bp_dims shape,
                                const bp_nn_norm_options *given, size_t size)
{
    NN_OPTIONS(bp_nn_norm_options, o, given, size);
    o.no_bias = 1;
    return add_affine(c, m, name, shape, &o);
}

bp_tensor *bp_nn_rms_norm_at(bp_ctx *c, bp_frame *f, bp_module *m, const char *name, bp_tensor *x, bp_dims shape,
                             const bp_nn_norm_options *given, size_t size)
{
    NN_OPTIONS(bp_nn_norm_options, o, given, size);
    bp_scalar eps = o.eps != 0 ? bp_scalar_float(o.eps) : (bp_scalar){0};
    return bp_aten_rms_norm_default(c, x, shape, weight_of(c, f, m, name, &o), eps);
}

bp_status bp_nn_group_norm_new_at(bp_ctx *c, bp_module *m, const char *name, int64_t channels,
                                  const bp_nn_norm_options *given, size_t size)
{
    NN_OPTIONS(bp_nn_norm_options, o, given, size);
    return add_affine(c, m, name, BP_DIMS(channels), &o);
}

bp_tensor *bp_nn_group_norm_at(bp_ctx *c, bp_frame *f, bp_module *m, const char *name, bp_tensor *x, int64_t groups,
                               const bp_nn_norm_options *given, size_t size)
{
    NN_OPTIONS(bp_nn_norm_options, o, given, size);
    bp_tensor *weight = weight_of(c, f, m, name, &o), *bias = bias_of(c, f, m, name, &o);
    return bp_aten_group_norm_default(c, x, groups, weight, bias, eps_of(&o), 1);
}
