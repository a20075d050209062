/* Linear layers, convolutions, embeddings, dropout and activations. */
#include "host/nn/nn.h"
#include <math.h>

/* -- linear -------------------------------------------------------------------------------------------------------- */

bp_status bp_nn_linear_new_at(bp_ctx *c, bp_module *m, const char *name, int64_t in, int64_t out,
                              const bp_nn_linear_options *given, size_t size)
{
    NN_OPTIONS(bp_nn_linear_options, o, given, size);
    if (!nn_positive(c, "linear", name, "in", in) || !nn_positive(c, "linear", name, "out", out))
        return c->diag.code;
    double bound = 1 / sqrt((double)in);
    TRY(nn_add(c, m, name, "weight", nn_uniform(c, BP_DIMS(out, in), o.dtype, bound)));
    return o.no_bias ? BP_OK : nn_add(c, m, name, "bias", nn_uniform(c, BP_DIMS(out), o.dtype, bound));
}

bp_tensor *bp_nn_linear_at(bp_ctx *c, bp_frame *f, bp_module *m, const char *name, bp_tensor *x,
                           const bp_nn_linear_options *given, size_t size)
{
    NN_OPTIONS(bp_nn_linear_options, o, given, size);
    bp_tensor *weight = nn_attr(c, f, m, name, "weight");
    return bp_aten_linear_default(c, x, weight, nn_attr_unless(c, o.no_bias, f, m, name, "bias"));
}

/* -- convolution --------------------------------------------------------------------------------------------------- */

/* Elements that make one output, of one group. */
static int64_t conv_fan_in(const bp_nn_conv_options *o, int64_t in, int64_t out, bp_dims kernel)
{
    int64_t n = (o->transposed ? out : in) / o->groups;
    for (uint32_t d = 0; d < kernel.n; d++)
        n *= kernel.at[d].value;
    return n;
}

static bool conv_check(bp_ctx *c, const char *name, int64_t in, int64_t out, bp_dims kernel, int64_t groups)
{
    bool ok = nn_positive(c, "conv", name, "in", in) && nn_positive(c, "conv", name, "out", out) &&
              nn_positive(c, "conv", name, "groups", groups);
    if (ok && (kernel.n < 1 || kernel.n > 3))
        ok = ctx_fail(c, BP_INVALID_ARGUMENT, "conv \"%s\": the kernel has %u dimensions, and 1 to 3 are expected",
                      name, kernel.n) == BP_OK;
    for (uint32_t d = 0; ok && d < kernel.n; d++)
        ok = nn_positive(c, "conv", name, "a size of the kernel", kernel.at[d].value);
    if (ok && (in % groups || out % groups))
        ok = ctx_fail(c, BP_INVALID_ARGUMENT, "conv \"%s\": %lld and %lld channels are no multiples of %lld groups",
                      name, (long long)in, (long long)out, (long long)groups) == BP_OK;
    return ok;
}

bp_status bp_nn_conv_new_at(bp_ctx *c, bp_module *m, const char *name, int64_t in, int64_t out, bp_dims kernel,
                            const bp_nn_conv_options *given, size_t size)
{
    NN_OPTIONS(bp_nn_conv_options, o, given, size);
    o.groups = o.groups ? o.groups : 1;
    if (!conv_check(c, name, in, out, kernel, o.groups))
        return c->diag.code;
    bp_dim sizes[5] = {bp_dim_of(o.transposed ? in : out), bp_dim_of((o.transposed ? out : in) / o.groups)};
    memcpy(sizes + 2, kernel.at, kernel.n * sizeof *sizes);
    double bound = 1 / sqrt((double)conv_fan_in(&o, in, out, kernel));
    TRY(nn_add(c, m, name, "weight", nn_uniform(c, (bp_dims){sizes, kernel.n + 2, 1}, o.dtype, bound)));
    return o.no_bias ? BP_OK : nn_add(c, m, name, "bias", nn_uniform(c, BP_DIMS(out), o.dtype, bound));
}

/* A list of one number for each of n dimensions, from one that was given, or not. */
static bp_dims each_dim(bp_dims given, uint32_t n, int64_t normal, bp_dim room[3])
{
    if (given.given && given.n != 1)
        return given;
    for (uint32_t d = 0; d < n; d++)
        room[d] = given.given ? given.at[0] : bp_dim_of(normal);
    return (bp_dims){room, n, 1};
}

static bp_tensor *convolve(bp_ctx *c, bp_tensor *x, bp_tensor *weight, bp_tensor *bias, const bp_nn_conv_options *o)
{
    uint32_t n = bp_tensor_rank(weight) - 2;
    bp_dim room[4][3];
    return bp_aten_convolution_default(c, x, weight, bias, each_dim(o->stride, n, 1, room[0]),
                                       each_dim(o->padding, n, 0, room[1]), each_dim(o->dilation, n, 1, room[2]),
                                       o->transposed != 0, each_dim(o->output_padding, n, 0, room[3]),
                                       bp_dim_of(o->groups ? o->groups : 1));
}

bp_tensor *bp_nn_conv_at(bp_ctx *c, bp_frame *f, bp_module *m, const char *name, bp_tensor *x,
                         const bp_nn_conv_options *given, size_t size)
{
    NN_OPTIONS(bp_nn_conv_options, o, given, size);
    bp_tensor *weight = nn_attr(c, f, m, name, "weight");
    bp_tensor *bias = nn_attr_unless(c, o.no_bias, f, m, name, "bias");
    uint32_t rank = bp_tensor_rank(weight), in = bp_tensor_rank(x);
    if (!ctx_ok(c))
        return NULL;
    if (!x)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "conv \"%s\": the input is NULL", name), NULL;
    if (rank < 3 || rank > 5 || (in != rank && in + 1 != rank)) {
        ctx_fail(c, BP_INVALID_ARGUMENT, "conv \"%s\": its weight has %u dimensions, and the input %u: as many are "
                 "expected, or one less without a batch", name, rank, in);
        return NULL;
    }
    if (in == rank)
        return convolve(c, x, weight, bias, &o);
    bp_tensor *y = convolve(c, bp_aten_unsqueeze_default(c, x, 0), weight, bias, &o);
    return bp_aten_select_int(c, y, 0, bp_dim_of(0));
}

/* -- embedding, dropout -------------------------------------------------------------------------------------------- */

bp_status bp_nn_embedding_new(bp_ctx *c, bp_module *m, const char *name, int64_t n, int64_t width, bp_dtype dtype)
{
    if (!nn_positive(c, "embedding", name, "n", n) || !nn_positive(c, "embedding", name, "width", width))
        return c->diag.code;
    return nn_add(c, m, name, "weight", nn_normal(c, BP_DIMS(n, width), dtype));
}

bp_tensor *bp_nn_embedding_at(bp_ctx *c, bp_frame *f, bp_module *m, const char *name, bp_tensor *indices)
{
    return bp_aten_embedding_default(c, nn_attr(c, f, m, name, "weight"), indices, bp_dim_of(-1), 0, 0);
}

bp_tensor *bp_nn_dropout_at(bp_ctx *c, bp_tensor *x, double p, int train)
{
    return bp_aten_dropout_default(c, x, p, train);
}

/* -- activations --------------------------------------------------------------------------------------------------- */

bp_tensor *bp_nn_activation_at(bp_ctx *c, bp_nn_activation_kind kind, bp_tensor *x)
{
    bp_scalar none = {0};
    switch (kind) {
    case BP_NN_RELU: return bp_aten_relu_default(c, x);
    case BP_NN_GELU: return bp_aten_gelu_default(c, x, NULL);
    case BP_NN_GELU_TANH: return bp_aten_gelu_default(c, x, "tanh");
    case BP_NN_SILU: return bp_aten_silu_default(c, x);
    case BP_NN_SIGMOID: return bp_aten_sigmoid_default(c, x);
    case BP_NN_TANH: return bp_aten_tanh_default(c, x);
    case BP_NN_LEAKY_RELU: return bp_aten_leaky_relu_default(c, x, none);
    case BP_NN_ELU: return bp_aten_elu_default(c, x, none, none, none);
    case BP_NN_MISH: return bp_aten_mish_default(c, x);
    case BP_NN_SOFTPLUS: return bp_aten_softplus_default(c, x, none, none);
    case BP_NN_HARDSWISH: return bp_aten_hardswish_default(c, x);
    case BP_NN_IDENTITY: return x;
    }
    if (ctx_ok(c))
        ctx_fail(c, BP_INVALID_ARGUMENT, "%d is no kind of activation: one of bp_nn_activation_kind is expected",
                 (int)kind);
    return NULL;
}
