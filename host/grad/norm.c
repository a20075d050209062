/* Derivatives of softmax and normalizations.
 *
 * A normalization is y = weight * n + bias, n = (x - mean) * rstd, and its gradient for x is P(weight * gy), where
 * P(v) = rstd * (v - M(v) - n * M(v * n)) and M is the mean over what is normalized together. P is its own adjoint, and
 * is also what carries a gradient of n to x, as mean and rstd depend on x. */
#include "host/grad/write.h"

/* -- softmax ------------------------------------------------------------------------------------------------------- */

static bp_tensor *in_type_of(bp_ctx *c, bp_tensor *t, const bp_tensor *like)
{
    return !t || t->dtype == like->dtype ? t : bp_aten_to_dtype(c, t, like->dtype, 0, 0, 0);
}

/* y = o * (go - S(go * o)), S the sum along dim. */
bp_status derive_softmax_backward(bp_ctx *c, grad_call *g)
{
    bp_tensor *o = grad_tensor(g, "output"), *go = grad_tensor(g, "grad_output");
    bp_tensor *grad = in_type_of(c, g->grads[0], o);
    int64_t dim = grad_arg_int(c, g, "dim");
    if (grad_needs(g, "grad_output"))
        grad_give(g, "grad_output", GRAD_OP(c, private_softmax_backward_data_default, value_tensor(grad),
                                            value_tensor(o), *grad_value(g, "dim"), *grad_value(g, "input_dtype")));
    if (grad_needs(g, "output")) {
        bp_tensor *rest = grad_sub(c, go, grad_sum(c, grad_mul(c, go, o), dim, true));
        bp_tensor *sum = grad_sum(c, grad_mul(c, grad, o), dim, true);
        grad_give(g, "output", grad_sub(c, grad_mul(c, grad, rest), grad_mul(c, go, sum)));
    }
    return grad_done(c);
}

/* y = go - exp(o) * S(go) */
bp_status derive_log_softmax_backward(bp_ctx *c, grad_call *g)
{
    bp_tensor *o = grad_tensor(g, "output"), *grad = in_type_of(c, g->grads[0], o);
    int64_t dim = grad_arg_int(c, g, "dim");
    bp_tensor *weighted = grad_mul(c, grad, bp_aten_exp_default(c, o));
    if (grad_needs(g, "grad_output"))
        grad_give(g, "grad_output", grad_sub(c, grad, grad_sum(c, weighted, dim, true)));
    if (grad_needs(g, "output"))
        grad_give(g, "output",
                  grad_neg(c, grad_mul(c, weighted, grad_sum(c, grad_tensor(g, "grad_output"), dim, true))));
    return grad_done(c);
}

/* -- the first derivatives: one operator each ---------------------------------------------------------------------- */

/* Gives what a backward row says of input, weight and bias; mask is the argument that says which are wanted. */
static void give_three(bp_ctx *c, grad_call *g, uint32_t row, uint32_t n, bp_value *args, uint32_t mask_at)
{
    static const char *const into[3] = {"input", "weight", "bias"};
    bp_tensor *out[3];
    bp_value mask[3];
    for (int i = 0; i < 3; i++)
        mask[i] = value_bool(grad_needs(g, into[i]));
    args[mask_at] = value_list(mask, 3);
    grad_op_all(c, row, n, args, out, 3);
    for (int i = 0; i < 3; i++)
        if (grad_needs(g, into[i]))
            grad_give(g, into[i], out[i]);
}

bp_status derive_layer_norm(bp_ctx *c, grad_call *g)
{
    bp_value args[8] = {value_tensor(g->grads[0]), *grad_value(g, "input"), *grad_value(g, "normalized_shape"),
                        value_tensor(g->results[1]), value_tensor(g->results[2]), *grad_value(g, "weight"),
                        *grad_value(g, "bias")};
    bp_tensor *bias = grad_tensor(g, "bias");
    if (bias) /* its sizes alone are read, and it is not saved for them */
        args[6] = value_tensor(grad_new_zeros(c, g->grads[0], grad_sizes(bias)));
    give_three(c, g, ROW_native_layer_norm_backward_default, 8, args, 7);
    return grad_done(c);
}

/* Running statistics are read only where they were used: training moves them. */
bp_status derive_batch_norm(bp_ctx *c, grad_call *g)
{
    bool fixed = g->op->number == ROW_private_native_batch_norm_legit_no_training_default;
    bool training = !fixed && grad_arg_bool(g, "training");
    bp_value none = value_none();
    bp_value args[10] = {value_tensor(g->grads[0]), *grad_value(g, "input"), *grad_value(g, "weight"),
                         training ? none : *grad_value(g, "running_mean"),
                         training ? none : *grad_value(g, "running_var"),
                         value_tensor(g->results[1]), value_tensor(g->results[2]), value_bool(training),
                         *grad_value(g, "eps")};
    give_three(c, g, ROW_native_batch_norm_backward_default, 10, args, 9);
    return grad_done(c);
}

bp_status derive_batch_norm_update(bp_ctx *c, grad_call *g)
{
    bp_tensor *weight = grad_tensor(g, "weight");
    if (!weight)
        weight = bp_aten_full_default(c, BP_DIMS(grad_size(grad_tensor(g, "input"), 1)), bp_scalar_int(1),
                                      g->grads[0]->dtype, 0, tensor_device(g->grads[0]), (bp_scalar){0});
    bp_value args[11] = {value_tensor(g->grads[0]), *grad_value(g, "input"), value_tensor(weight), value_none(),
                         value_none(), value_tensor(g->results[1]), value_tensor(g->results[2]), value_bool(true),
                         *grad_value(g, "eps"), value_none(), value_tensor(g->results[3])};
    give_three(c, g, ROW_batch_norm_backward_default, 11, args, 9);
    return grad_done(c);
}

/* -- second derivatives -------------------------------------------------------------------------------------------- */

typedef struct {
    bp_tensor *x, *gy, *mean, *rstd, *weight; /* shaped so that they broadcast; weight NULL: ones */
    bp_dims over;                             /* dimensions that are normalized together */
    bp_dims shape;                            /* of weight, over x */
    bool fixed;                               /* mean and rstd do not depend on x */
    bp_tensor *n;                             /* (x - mean) * rstd */
} normal;

static bp_tensor *mean_over(bp_ctx *c, const normal *m, bp_tensor *t)
{
    return bp_aten_mean_dim(c, t, m->over, 1, 0);
}

static bp_tensor *weighted(bp_ctx *c, const normal *m, bp_tensor *t)
{
    return m->weight ? grad_mul(c, t, m->weight) : t;
}

/* P(v); of fixed statistics it is v * rstd. */
static bp_tensor *projected(bp_ctx *c, const normal *m, bp_tensor *v)
{
    if (!m->fixed && v) {
        bp_tensor *along = grad_mul(c, m->n, mean_over(c, m, grad_mul(c, v, m->n)));
        v = grad_sub(c, grad_sub(c, v, mean_over(c, m, v)), along);
    }
    return v ? grad_mul(c, v, m->rstd) : NULL;
}

/* What flows to n directly: from the weight's gradient, and (h: the gradient of x's gradient) from its uses in P. */
static bp_tensor *to_n(bp_ctx *c, const normal *m, bp_tensor *h, bp_tensor *of_weight)
{
    bp_tensor *sum = of_weight ? grad_mul(c, of_weight, m->gy) : NULL;
    if (!h || m->fixed)
        return sum;
    bp_tensor *a = weighted(c, m, m->gy);
    bp_tensor *twice = grad_add(c, grad_mul(c, h, mean_over(c, m, grad_mul(c, a, m->n))),
                                grad_mul(c, a, mean_over(c, m, grad_mul(c, h, m->n))));
    return grad_sub(c, sum, grad_mul(c, twice, m->rstd));
}

/* What flows to rstd as P's factor, over how many are normalized together. */
static bp_tensor *to_rstd(bp_ctx *c, const normal *m, bp_tensor *h)
{
    bp_tensor *a = weighted(c, m, m->gy);
    bp_tensor *both = grad_mul(c, mean_over(c, m, h), mean_over(c, m, a));
    bp_tensor *along = grad_mul(c, mean_over(c, m, grad_mul(c, h, m->n)), mean_over(c, m, grad_mul(c, a, m->n)));
    return grad_sub(c, grad_sub(c, mean_over(c, m, grad_mul(c, a, h)), both), along);
}

static bp_tensor *to_x(bp_ctx *c, const normal *m, bp_tensor *h, bp_tensor *of_weight)
{
    bp_tensor *sum = projected(c, m, to_n(c, m, h, of_weight));
    if (!h || m->fixed)
        return sum;
    bp_tensor *square = grad_mul(c, m->rstd, m->rstd);
    return grad_sub(c, sum, grad_mul(c, m->n, grad_mul(c, square, to_rstd(c, m, h))));
}

static bp_tensor *to_gy(bp_ctx *c, const normal *m, bp_tensor *h, bp_tensor *of_weight, bp_tensor *of_bias)
{
    bp_tensor *sum = h ? weighted(c, m, projected(c, m, h)) : NULL;
    sum = grad_add(c, sum, of_weight ? grad_mul(c, of_weight, m->n) : NULL);
    return grad_add(c, sum, of_bias);
}

static bp_tensor *to_weight(bp_ctx *c, const normal *m, bp_tensor *h)
{
    return h ? grad_sum_to(c, grad_mul(c, m->gy, projected(c, m, h)), m->shape.n, m->shape.at) : NULL;
}

static bp_tensor *shaped(bp_ctx *c, bp_tensor *t, bp_dims shape)
{
    return t ? bp_aten_reshape_default(c, t, shape) : NULL;
}

/* The dimensions from `first` on. */
static bp_dims dims_from(bp_dim *at, uint32_t first, uint32_t rank)
{
    for (uint32_t d = first; d < rank; d++)
        at[d - first] = dim_const(d);
    return (bp_dims){at, rank - first, 1};
}

static void give_second(bp_ctx *c, grad_call *g, normal *m)
{
    bp_tensor *of_weight = shaped(c, g->grads[1], m->shape), *of_bias = shaped(c, g->grads[2], m->shape);
    bp_tensor *h = g->grads[0] ? shaped(c, g->grads[0], grad_sizes(m->x)) : NULL;
    m->n = grad_mul(c, grad_sub(c, m->x, m->mean), m->rstd);
    if (grad_needs(g, "grad_out"))
        grad_give(g, "grad_out", bp_aten_expand_default(c, to_gy(c, m, h, of_weight, of_bias), grad_sizes(m->x), 0));
    if (grad_needs(g, "input"))
        grad_give(g, "input", to_x(c, m, h, of_weight));
    if (grad_needs(g, "weight"))
        grad_give(g, "weight", shaped(c, to_weight(c, m, h), grad_sizes(grad_tensor(g, "weight"))));
}

bp_status derive_layer_norm_backward(bp_ctx *c, grad_call *g)
{
    bp_dims shape = grad_arg_dims(c, g, "normalized_shape");
    normal m = {.x = grad_tensor(g, "input"), .gy = grad_tensor(g, "grad_out"), .mean = grad_tensor(g, "mean"),
                .rstd = grad_tensor(g, "rstd"), .weight = grad_tensor(g, "weight"), .shape = shape};
    bp_dim over[TENSOR_MAX_RANK];
    m.over = dims_from(over, m.x->rank - shape.n, m.x->rank);
    give_second(c, g, &m);
    return grad_done(c);
}

static bp_tensor *inverse_root(bp_ctx *c, bp_tensor *var, double eps)
{
    return bp_aten_rsqrt_default(c, bp_aten_add_scalar(c, var, bp_scalar_float(eps), (bp_scalar){0}));
}

bp_status derive_batch_norm_backward(bp_ctx *c, grad_call *g)
{
    bool update = g->op->number == ROW_batch_norm_backward_default;
    normal m = {.x = grad_tensor(g, "input"), .gy = grad_tensor(g, "grad_out"), .weight = grad_tensor(g, "weight"),
                .fixed = !grad_arg_bool(g, update ? "update" : "train")};
    uint32_t rank = m.x->rank;
    bp_dim over[TENSOR_MAX_RANK] = {{0, 0, 0}}, shape[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++)
        shape[d] = d == 1 ? m.x->sizes[1] : dim_const(1);
    for (uint32_t d = 2; d < rank; d++)
        over[d - 1] = dim_const(d);
    m.over = (bp_dims){over, rank - 1, 1};
    m.shape = (bp_dims){shape, rank, 1};
    if (m.fixed) {
        m.mean = grad_tensor(g, "running_mean");
        m.rstd = inverse_root(c, grad_tensor(g, "running_var"), grad_arg_float(g, "eps"));
    } else {
        m.mean = grad_tensor(g, "save_mean");
        m.rstd = grad_tensor(g, update ? "save_var" : "save_invstd");
    }
    m.mean = shaped(c, m.mean, m.shape);
    m.rstd = shaped(c, m.rstd, m.shape);
    m.weight = shaped(c, m.weight, m.shape);
    give_second(c, g, &m);
    return grad_done(c);
}

/* -- groups: mean and rstd are results like any other, and arguments of the gradient ------------------------------- */

/* Sizes as (batch, group, channel of it, place). */
static void grouped_sizes(bp_ctx *c, const grad_call *g, bp_dim sizes[4])
{
    int64_t groups = grad_arg_int(c, g, "group");
    sizes[0] = grad_arg_dim(g, "N");
    sizes[1] = dim_const(groups);
    sizes[2] = groups ? dim_floordiv(c, grad_arg_dim(g, "C"), dim_const(groups)) : dim_const(0);
    sizes[3] = grad_arg_dim(g, "HxW");
}

static const bp_dim of_group[2] = {{2, 0, 0}, {3, 0, 0}};

/* What flows to x through the results mean and rstd. */
static bp_tensor *through_statistics(bp_ctx *c, grad_call *g, bp_tensor *of_mean, bp_tensor *of_rstd)
{
    bp_dim sizes[4];
    grouped_sizes(c, g, sizes);
    bp_dim each[4] = {sizes[0], sizes[1], dim_const(1), dim_const(1)};
    bp_dims shape = {sizes, 4, 1}, small = {each, 4, 1};
    bp_tensor *x = shaped(c, grad_tensor(g, "input"), shape), *mean = shaped(c, g->results[1], small);
    bp_tensor *rstd = shaped(c, g->results[2], small), *sum = shaped(c, of_mean, small);
    if (of_rstd) {
        bp_tensor *cube = grad_mul(c, grad_mul(c, rstd, rstd), rstd);
        sum = grad_sub(c, sum, grad_mul(c, grad_sub(c, x, mean), grad_mul(c, cube, shaped(c, of_rstd, small))));
    }
    sum = bp_aten_div_scalar(c, sum, bp_scalar_dim(dim_mul(c, sizes[2], sizes[3])));
    return shaped(c, bp_aten_expand_default(c, sum, shape, 0), grad_sizes(grad_tensor(g, "input")));
}

bp_status derive_group_norm(bp_ctx *c, grad_call *g)
{
    uint32_t input = grad_input(g, "input");
    if (g->grads[0]) {
        bp_value args[10] = {value_tensor(g->grads[0]), *grad_value(g, "input"), value_tensor(g->results[1]),
                             value_tensor(g->results[2]), *grad_value(g, "weight"), *grad_value(g, "N"),
                             *grad_value(g, "C"), *grad_value(g, "HxW"), *grad_value(g, "group")};
        give_three(c, g, ROW_native_group_norm_backward_default, 10, args, 9);
    }
    if (grad_needs(g, "input") && (g->grads[1] || g->grads[2]))
        grad_give(g, "input", grad_add(c, g->out[input], through_statistics(c, g, g->grads[1], g->grads[2])));
    return grad_done(c);
}

static bp_tensor *sum_over(bp_ctx *c, const normal *m, bp_tensor *t)
{
    return bp_aten_sum_dim_intlist(c, t, m->over, 1, 0);
}

static void give_group_second(bp_ctx *c, grad_call *g, const normal *m, bp_tensor *h, bp_tensor *of_weight,
                              bp_tensor *of_bias)
{
    bp_dims whole = grad_sizes(grad_tensor(g, "input")), small = grad_sizes(grad_tensor(g, "mean"));
    bp_tensor *direct = to_n(c, m, h, of_weight), *to_mean = direct ? grad_mul(c, direct, m->rstd) : NULL;
    if (grad_needs(g, "grad_out")) {
        bp_tensor *t = bp_aten_expand_default(c, to_gy(c, m, h, of_weight, of_bias), grad_sizes(m->x), 0);
        grad_give(g, "grad_out", shaped(c, t, whole));
    }
    if (grad_needs(g, "input"))
        grad_give(g, "input", shaped(c, to_mean, whole));
    if (grad_needs(g, "mean") && to_mean)
        grad_give(g, "mean", shaped(c, grad_neg(c, sum_over(c, m, to_mean)), small));
    if (grad_needs(g, "rstd") && direct) {
        bp_tensor *t = sum_over(c, m, grad_mul(c, direct, grad_sub(c, m->x, m->mean)));
        bp_scalar count = bp_scalar_dim(dim_mul(c, grad_size(m->x, 2), grad_size(m->x, 3)));
        t = grad_add(c, t, h ? bp_aten_mul_scalar(c, to_rstd(c, m, h), count) : NULL);
        grad_give(g, "rstd", shaped(c, t, small));
    }
    if (grad_needs(g, "weight") && h)
        grad_give(g, "weight", shaped(c, to_weight(c, m, h), grad_sizes(grad_tensor(g, "weight"))));
}

bp_status derive_group_norm_backward(bp_ctx *c, grad_call *g)
{
    bp_dim sizes[4];
    grouped_sizes(c, g, sizes);
    bp_dim each[4] = {sizes[0], sizes[1], dim_const(1), dim_const(1)};
    bp_dim channels[4] = {dim_const(1), sizes[1], sizes[2], dim_const(1)};
    bp_dims shape = {sizes, 4, 1}, small = {each, 4, 1};
    normal m = {.x = shaped(c, grad_tensor(g, "input"), shape), .gy = shaped(c, grad_tensor(g, "grad_out"), shape),
                .mean = shaped(c, grad_tensor(g, "mean"), small), .rstd = shaped(c, grad_tensor(g, "rstd"), small),
                .shape = {channels, 4, 1}, .over = {of_group, 2, 1}};
    m.weight = shaped(c, grad_tensor(g, "weight"), m.shape);
    m.n = grad_mul(c, grad_sub(c, m.x, m.mean), m.rstd);
    give_group_second(c, g, &m, shaped(c, g->grads[0], shape), shaped(c, g->grads[1], m.shape),
                      shaped(c, g->grads[2], m.shape));
    return grad_done(c);
}
