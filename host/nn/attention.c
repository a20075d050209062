/* Multi-head attention and the encoder layer. */
#include "host/nn/nn.h"
#include <math.h>
#include <stdio.h>

/* -- new layers ---------------------------------------------------------------------------------------------------- */

bp_status bp_nn_attention_new_at(bp_ctx *c, bp_module *m, const char *name, int64_t width,
                                 const bp_nn_attention_options *given, size_t size)
{
    NN_OPTIONS(bp_nn_attention_options, o, given, size);
    if (!nn_positive(c, "attention", name, "the width", width))
        return c->diag.code;
    double bound = sqrt(6.0 / (4.0 * (double)width)); /* Glorot's, of [3 width, width] as a whole */
    bp_nn_linear_options out = {.no_bias = 1, .dtype = o.dtype};
    char proj[256];
    TRY(nn_add(c, m, name, "in_proj_weight", nn_uniform(c, BP_DIMS(3 * width, width), o.dtype, bound)));
    if (!nn_join(c, name, "out_proj", proj))
        return c->diag.code;
    TRY(bp_nn_linear_new(c, m, proj, width, width, &out));
    if (o.no_bias)
        return BP_OK;
    TRY(nn_add(c, m, name, "in_proj_bias", nn_full(c, BP_DIMS(3 * width), o.dtype, 0)));
    return nn_add(c, m, name, "out_proj.bias", nn_full(c, BP_DIMS(width), o.dtype, 0));
}

bp_status bp_nn_encoder_layer_new_at(bp_ctx *c, bp_module *m, const char *name, int64_t width, int64_t hidden,
                                     const bp_nn_encoder_options *given, size_t size)
{
    NN_OPTIONS(bp_nn_encoder_options, o, given, size);
    bp_nn_attention_options attention = {.no_bias = o.no_bias, .dtype = o.dtype};
    bp_nn_linear_options linear = {.no_bias = o.no_bias, .dtype = o.dtype};
    bp_nn_norm_options norm = {.no_bias = o.no_bias, .dtype = o.dtype};
    char at[256];
    if (!nn_join(c, name, "self_attn", at))
        return c->diag.code;
    TRY(bp_nn_attention_new(c, m, at, width, &attention));
    nn_join(c, name, "linear1", at);
    TRY(bp_nn_linear_new(c, m, at, width, hidden, &linear));
    nn_join(c, name, "linear2", at);
    TRY(bp_nn_linear_new(c, m, at, hidden, width, &linear));
    nn_join(c, name, "norm1", at);
    TRY(bp_nn_layer_norm_new(c, m, at, BP_DIMS(width), &norm));
    nn_join(c, name, "norm2", at);
    return bp_nn_layer_norm_new(c, m, at, BP_DIMS(width), &norm);
}

/* -- attention ----------------------------------------------------------------------------------------------------- */

typedef struct { bp_tensor *q, *k, *v; } qkv;

/* One product where all three come from one tensor, else one each. */
static qkv project(bp_ctx *c, const qkv *in, bp_tensor *weight, bp_tensor *bias)
{
    qkv out = {0};
    bp_tensor *const *w = NULL, *const *b = NULL;
    if (in->q == in->k && in->k == in->v) {
        bp_tensors parts = bp_aten_chunk_default(c, bp_aten_linear_default(c, in->q, weight, bias), 3, -1);
        return parts.n == 3 ? (qkv){parts.at[0], parts.at[1], parts.at[2]} : out;
    }
    bp_tensors weights = bp_aten_chunk_default(c, weight, 3, 0);
    bp_tensors biases = {0};
    if (bias)
        biases = bp_aten_chunk_default(c, bias, 3, 0);
    if (!ctx_ok(c) || weights.n != 3 || (bias && biases.n != 3))
        return out;
    w = weights.at;
    b = biases.at;
    out.q = bp_aten_linear_default(c, in->q, w[0], b ? b[0] : NULL);
    out.k = bp_aten_linear_default(c, in->k, w[1], b ? b[1] : NULL);
    out.v = bp_aten_linear_default(c, in->v, w[2], b ? b[2] : NULL);
    return out;
}

/* [batch, tokens, width] -> [batch, heads, tokens, width / heads]. */
static bp_tensor *split_heads(bp_ctx *c, bp_tensor *x, int64_t heads)
{
    return bp_aten_transpose_int(c, bp_aten_unflatten_int(c, x, -1, BP_DIMS(heads, -1)), 1, 2);
}

/* A mask as what is added to scores: true becomes -inf. */
static bp_tensor *additive(bp_ctx *c, bp_tensor *mask, bp_tensor *like)
{
    if (!mask || bp_tensor_dtype(mask) != BP_BOOL)
        return mask;
    bp_tensor *zeros = bp_aten_full_default(c, (bp_dims){NULL, 0, 1}, bp_scalar_float(0), bp_tensor_dtype(like), 0,
                                            bp_tensor_device(like), (bp_scalar){0});
    return bp_aten_where_scalarself(c, mask, bp_scalar_float(-INFINITY), zeros);
}

/* One mask, added, that fits [batch, heads, tokens, keys]. */
static bp_tensor *whole_mask(bp_ctx *c, const bp_nn_attention_options *o, const qkv *in)
{
    bp_tensor *mask = additive(c, o->mask, in->q), *padding = additive(c, o->padding, in->q);
    if (mask && bp_tensor_rank(mask) == 3)
        mask = bp_aten_unflatten_int(c, mask, 0, BP_DIMS(-1, o->heads));
    if (padding)
        padding = bp_aten_unsqueeze_default(c, bp_aten_unsqueeze_default(c, padding, 1), 1);
    if (o->causal && (mask || padding)) {
        bp_tensor *ones = bp_aten_full_default(c, BP_DIMS(bp_size(c, in->q, 1), bp_size(c, in->k, 1)),
                                               bp_scalar_bool(1), BP_BOOL, 0, bp_tensor_device(in->q), (bp_scalar){0});
        bp_tensor *later = additive(c, bp_aten_triu_default(c, ones, bp_dim_of(1)), in->q);
        mask = mask ? bp_aten_add_tensor(c, mask, later, bp_scalar_int(1)) : later;
    }
    return mask && padding ? bp_aten_add_tensor(c, mask, padding, bp_scalar_int(1)) : mask ? mask : padding;
}

static bool check_heads(bp_ctx *c, const char *name, int64_t heads, bp_tensor *weight)
{
    if (!ctx_ok(c))
        return false;
    int64_t width = bp_tensor_size(weight, 1);
    if (heads > 0 && width % heads == 0)
        return true;
    ctx_fail(c, BP_INVALID_ARGUMENT, "attention \"%s\": %lld heads, and a divisor of the width %lld is expected",
             name, (long long)heads, (long long)width);
    return false;
}

static bool check_batched(bp_ctx *c, const char *name, const qkv *in)
{
    bp_tensor *const each[] = {in->q, in->k, in->v};
    for (int i = 0; i < 3; i++) {
        if (ctx_ok(c) && each[i] && bp_tensor_rank(each[i]) == 3)
            continue;
        if (ctx_ok(c))
            ctx_fail(c, BP_INVALID_ARGUMENT, "attention \"%s\": the %s is %s: [batch, tokens, width] is expected", name,
                     i == 0 ? "query" : i == 1 ? "key" : "value", each[i] ? "not of three dimensions" : "NULL");
        return false;
    }
    return true;
}

bp_tensor *bp_nn_attention_at(bp_ctx *c, bp_frame *f, bp_module *m, const char *name, bp_tensor *query, bp_tensor *key,
                              bp_tensor *value, const bp_nn_attention_options *given, size_t size)
{
    NN_OPTIONS(bp_nn_attention_options, o, given, size);
    qkv in = {query, key, value};
    bp_tensor *weight = nn_attr(c, f, m, name, "in_proj_weight");
    bp_tensor *bias = nn_attr_unless(c, o.no_bias, f, m, name, "in_proj_bias");
    if (!check_heads(c, name, o.heads, weight) || !check_batched(c, name, &in))
        return NULL;
    bp_tensor *mask = whole_mask(c, &o, &in);
    qkv p = project(c, &in, weight, bias);
    bp_tensor *y = bp_aten_scaled_dot_product_attention_default(
        c, split_heads(c, p.q, o.heads), split_heads(c, p.k, o.heads), split_heads(c, p.v, o.heads), mask,
        o.train ? o.dropout : 0, o.causal && !mask, (bp_scalar){0}, 0);
    y = bp_aten_flatten_using_ints(c, bp_aten_transpose_int(c, y, 1, 2), 2, 3);
    bp_tensor *out = nn_attr(c, f, m, name, "out_proj.weight");
    return bp_aten_linear_default(c, y, out, nn_attr_unless(c, o.no_bias, f, m, name, "out_proj.bias"));
}

/* -- the encoder layer --------------------------------------------------------------------------------------------- */

typedef struct { bp_ctx *c; bp_frame *f; bp_module *m; const char *name; const bp_nn_encoder_options *o; } encoder;

static bp_tensor *drop(const encoder *e, bp_tensor *x)
{
    return e->o->train && e->o->dropout != 0 ? bp_aten_dropout_default(e->c, x, e->o->dropout, 1) : x;
}

static bp_tensor *norm(const encoder *e, const char *leaf, bp_tensor *x)
{
    bp_nn_norm_options o = {.eps = e->o->eps, .no_bias = e->o->no_bias};
    char at[256];
    return nn_join(e->c, e->name, leaf, at)
               ? bp_nn_layer_norm_at(e->c, e->f, e->m, at, x, BP_DIMS(bp_size(e->c, x, -1)), &o, sizeof o) : NULL;
}

static bp_tensor *attend(const encoder *e, bp_tensor *x)
{
    bp_nn_attention_options o = {.heads = e->o->heads, .mask = e->o->mask, .padding = e->o->padding,
                                 .causal = e->o->causal, .dropout = e->o->dropout, .train = e->o->train,
                                 .no_bias = e->o->no_bias};
    char at[256];
    return nn_join(e->c, e->name, "self_attn", at)
               ? drop(e, bp_nn_attention_at(e->c, e->f, e->m, at, x, x, x, &o, sizeof o)) : NULL;
}

static bp_tensor *linear(const encoder *e, const char *leaf, bp_tensor *x)
{
    bp_nn_linear_options o = {.no_bias = e->o->no_bias};
    char at[256];
    return nn_join(e->c, e->name, leaf, at) ? bp_nn_linear_at(e->c, e->f, e->m, at, x, &o, sizeof o) : NULL;
}

static bp_tensor *feed_forward(const encoder *e, bp_tensor *x)
{
    x = drop(e, bp_nn_activation_at(e->c, e->o->activation, linear(e, "linear1", x)));
    return drop(e, linear(e, "linear2", x));
}

bp_tensor *bp_nn_encoder_layer_at(bp_ctx *c, bp_frame *f, bp_module *m, const char *name, bp_tensor *x,
                                  const bp_nn_encoder_options *given, size_t size)
{
    NN_OPTIONS(bp_nn_encoder_options, o, given, size);
    encoder e = {c, f, m, name, &o};
    bp_scalar one = bp_scalar_int(1);
    if (o.norm_first) {
        x = bp_aten_add_tensor(c, x, attend(&e, norm(&e, "norm1", x)), one);
        return bp_aten_add_tensor(c, x, feed_forward(&e, norm(&e, "norm2", x)), one);
    }
    x = norm(&e, "norm1", bp_aten_add_tensor(c, x, attend(&e, x), one));
    return norm(&e, "norm2", bp_aten_add_tensor(c, x, feed_forward(&e, x), one));
}
