/* Decompositions of reductions, norms and losses to core ATen. */
#include "host/pass/parts.h"
#include <math.h>
#include <string.h>

static bp_dtype widened(bp_dtype d)
{
    return d == BP_F16 || d == BP_BF16 ? BP_F32 : d;
}

static bp_value named(const op_row *op, const bp_value *a, const char *name)
{
    int32_t i = schema_find(op->schema, name);
    return i < 0 ? value_none() : a[i];
}

static bp_tensor *choose(work *w, bp_tensor *condition, bp_value x, bp_value y)
{
    return condition ? CALL(where_self, T(condition), x, y) : NULL;
}

static bp_tensor *sum_over(work *w, bp_tensor *t, bp_value dims, bp_value keep, bp_value dtype)
{
    return CALL(sum_dim_intlist, T(t), dims.kind ? dims : value_list(NULL, 0), keep.kind ? keep : B(false), dtype);
}

PART(nansum)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0);
    if (dtype_is_float((bp_dtype)x->dtype))
        x = choose(w, CALL(isnan_default, a[0]), I(0), a[0]);
    return sum_over(w, x, a[1], a[2], a[3]);
}

PART(logsumexp)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0);
    if (dtype_is_complex((bp_dtype)x->dtype)) {
        op_fail(w->c, op, BP_UNIMPLEMENTED, "its parts are not there for complex numbers");
        return NULL;
    }
    if (!dtype_is_float((bp_dtype)x->dtype))
        x = part_cast(w, x, w->c->ambient.default_dtype);
    if (!x || part_is_empty(x))
        return CALL(log_default, T(sum_over(w, CALL(exp_default, T(x)), a[1], a[2], NONE)));
    bp_tensor *most = CALL(amax_default, T(x), a[1], B(true));
    most = choose(w, CALL(eq_scalar, T(CALL(abs_default, T(most))), F((double)INFINITY)), F(0), T(most));
    bp_tensor *sum = sum_over(w, CALL(exp_default, T(CALL(sub_tensor, T(x), T(most)))), a[1], a[2], NONE);
    bp_tensor *flat = arg_bool(a, 2) ? most : x->rank ? CALL(squeeze_dims, T(most), a[1]) : most;
    return CALL(add_tensor, T(CALL(log_default, T(sum))), T(flat));
}

/* The p-norm of t along dims. */
static bp_tensor *norm_of(work *w, bp_tensor *t, double p, bp_value dims, bp_value keep, bp_value dtype)
{
    bp_value all = value_list(NULL, 0);
    if (!t || !work_ok(w))
        return NULL;
    dims = dims.kind ? dims : all;
    keep = keep.kind ? keep : B(false);
    bp_dtype asked = dtype.kind ? (bp_dtype)dtype.v.i : (bp_dtype)t->dtype, real = dtype_real_of(asked);
    t = part_cast(w, t, widened(asked));
    bp_tensor *size = CALL(abs_default, T(t));
    if (!size)
        return NULL;
    if (p == 0)
        size = sum_over(w, CALL(ne_scalar, T(t), I(0)), dims, keep, value_dtype(widened(real)));
    else if (isinf(p))
        size = work_call(w, p > 0 ? ROW_amax_default : ROW_amin_default, 3, (bp_value[]){T(size), dims, keep});
    else if (p == 1)
        size = sum_over(w, size, dims, keep, NONE);
    else if (p == 2)
        size = CALL(sqrt_default, T(sum_over(w, CALL(mul_tensor, T(size), T(size)), dims, keep, NONE)));
    else
        size = CALL(pow_tensor_scalar, T(sum_over(w, CALL(pow_tensor_scalar, T(size), F(p)), dims, keep, NONE)),
                    F(1 / p));
    return part_cast(w, size, real);
}

static double order_of(const bp_value *a, uint32_t i)
{
    return arg_is_none(a, i) ? 2 : scalar_float(arg_scalar(a, i));
}

PART(vector_norm)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0);
    double p = order_of(a, 1);
    if (isinf(p) && part_is_empty(x)) {
        op_fail(w->c, op, BP_UNIMPLEMENTED, "its parts are not there without elements");
        return NULL;
    }
    return norm_of(w, x, p, a[2], a[3], a[4]);
}

PART(norm)
{
    bp_tensor *x = arg_tensor(a, 0);
    double p = order_of(a, 1);
    if (isinf(p) && part_is_empty(x)) {
        op_fail(w->c, op, BP_UNIMPLEMENTED, "its parts are not there without elements");
        return NULL;
    }
    return norm_of(w, x, p, named(op, a, "dim"), named(op, a, "keepdim"), named(op, a, "dtype"));
}

PART(all)
{
    bp_tensor *x = arg_tensor(a, 0), *no = CALL(logical_not_default, a[0]), *any;
    bp_value dim = named(op, a, "dim"), keep = named(op, a, "keepdim");
    if (dim.kind == BP_VALUE_NONE && !keep.v.i)
        any = CALL(any_default, T(no));
    else if (dim.kind == BP_VALUE_INT)
        any = CALL(any_dim, T(no), dim, keep);
    else
        any = CALL(any_dims, T(no), dim, keep);
    bp_tensor *t = CALL(logical_not_default, T(any));
    return x->dtype == BP_U8 ? part_cast(w, t, BP_U8) : t;
}

PART(count_nonzero)
{
    (void)op;
    bp_value dim = a[1], all = value_list(NULL, 0);
    return sum_over(w, CALL(ne_scalar, a[0], I(0)), dim.kind ? value_list(&dim, 1) : all, NONE, NONE);
}

PARTS(aminmax)
{
    (void)op;
    bp_value dim = a[1], dims = dim.kind ? value_list(&dim, 1) : value_list(NULL, 0);
    bp_tensor *out[] = {CALL(amin_default, a[0], dims, a[2]), CALL(amax_default, a[0], dims, a[2])};
    return parts_give(w, k, out, 2);
}

PART(extreme)
{
    uint32_t row = op->schema->name[1] == 'a' ? ROW_amax_default : ROW_amin_default;
    return work_call(w, row, 1, a);
}

/* self, dim, correction, keepdim */
static bp_tensor *variance(work *w, const bp_value *a)
{
    return CALL(var_correction, a[0], a[1], a[2], a[3]);
}

static bool is_half(const bp_value *a)
{
    return widened((bp_dtype)arg_tensor(a, 0)->dtype) != arg_tensor(a, 0)->dtype;
}

/* In float for halves, rounded once. */
static bp_tensor *deviation(work *w, const bp_value *a)
{
    bp_value up[] = {is_half(a) ? T(part_cast(w, arg_tensor(a, 0), BP_F32)) : a[0], a[1], a[2], a[3]};
    return part_cast(w, CALL(sqrt_default, T(variance(w, up))), dtype_real_of((bp_dtype)arg_tensor(a, 0)->dtype));
}

PART(std)
{
    (void)op;
    return deviation(w, a);
}

PARTS(std_mean)
{
    (void)op;
    bp_tensor *out[] = {deviation(w, a), CALL(mean_dim, a[0], a[1], a[3])};
    return parts_give(w, k, out, 2);
}

PARTS(var_mean)
{
    (void)op;
    bp_tensor *out[] = {variance(w, a), CALL(mean_dim, a[0], a[1], a[3])};
    return parts_give(w, k, out, 2);
}

/* -- softmax ------------------------------------------------------------------------------------------------------- */

PART(safe_softmax)
{
    (void)op;
    bp_tensor *x = part_cast(w, arg_tensor(a, 0), arg_dtype(a, 2));
    bp_tensor *t = CALL(private_softmax_default, T(x), a[1], B(false));
    bp_tensor *masked = CALL(eq_scalar, T(x), F(-(double)INFINITY));
    bp_tensor *none = CALL(logical_not_default, T(CALL(any_dim, T(CALL(logical_not_default, T(masked))), a[1],
                                                       B(true))));
    return choose(w, none, I(0), T(t));
}

/* grad, output, dim, input_dtype */
PART(softmax_backward)
{
    (void)op;
    bp_dtype d = (bp_dtype)arg_tensor(a, 0)->dtype;
    bp_tensor *g = part_cast(w, arg_tensor(a, 0), widened(d)), *y = part_cast(w, arg_tensor(a, 1), widened(d));
    bp_value dim = a[2];
    bp_tensor *gy = CALL(mul_tensor, T(g), T(y)), *sum = sum_over(w, gy, value_list(&dim, 1), B(true), NONE);
    return part_cast(w, CALL(sub_tensor, T(gy), T(CALL(mul_tensor, T(y), T(sum)))), arg_dtype(a, 3));
}

PART(log_softmax_backward)
{
    (void)op;
    bp_dtype d = (bp_dtype)arg_tensor(a, 0)->dtype;
    bp_tensor *g = part_cast(w, arg_tensor(a, 0), widened(d)), *y = part_cast(w, arg_tensor(a, 1), widened(d));
    bp_value dim = a[2];
    bp_tensor *sum = sum_over(w, g, value_list(&dim, 1), B(true), NONE);
    bp_tensor *part = CALL(mul_tensor, T(CALL(exp_default, T(y))), T(sum));
    return part_cast(w, CALL(sub_tensor, T(g), T(part)), arg_dtype(a, 3));
}

/* -- batch norm ---------------------------------------------------------------------------------------------------- */

PARTS(native_batch_norm)
{
    (void)op;
    bp_tensor *out[3];
    bool stats = !arg_is_none(a, 3) && !arg_is_none(a, 4);
    if (!arg_bool(a, 5) && stats) {
        bp_value args[] = {a[0], a[1], a[2], a[3], a[4], a[6], a[7]};
        TRY(work_calls(w, ROW_private_native_batch_norm_legit_no_training_default, 7, args, out, 3));
    } else if (stats) {
        TRY(work_calls(w, ROW_private_native_batch_norm_legit_default, 8, a, out, 3));
    } else {
        bp_value args[] = {a[0], a[1], a[2], a[5], a[6], a[7]};
        TRY(work_calls(w, ROW_private_native_batch_norm_legit_no_stats, 6, args, out, 3));
    }
    return parts_give(w, k, out, 3);
}

enum { BN_GRAD, BN_X, BN_WEIGHT, BN_RUNNING_MEAN, BN_RUNNING_VAR, BN_MEAN, BN_INVSTD, BN_TRAIN, BN_EPS, BN_MASK };

/* A vector of the channels, in a tensor that broadcasts to x. */
static bp_tensor *channels(work *w, bp_tensor *t, uint32_t rank)
{
    bp_dim sizes[TENSOR_MAX_RANK];
    for (uint32_t d = 0; t && d < rank; d++)
        sizes[d] = d == 1 ? t->sizes[0] : dim_const(1);
    return t ? compose_reshape(w, t, rank, sizes) : NULL;
}

PARTS(batch_norm_backward)
{
    (void)op;
    bp_tensor *x0 = arg_tensor(a, BN_X), *out[3] = {NULL}, *mean, *invstd;
    bp_dtype d = (bp_dtype)x0->dtype, up = widened(d);
    bool train = arg_bool(a, BN_TRAIN);
    int64_t dims[TENSOR_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t i = 0; i < x0->rank; i++)
        if (i != 1)
            dims[n++] = i;
    bp_value over = value_ints(w->c, dims, n);
    bp_tensor *g = part_cast(w, arg_tensor(a, BN_GRAD), up), *x = part_cast(w, x0, up);
    if (train) {
        mean = part_cast(w, arg_tensor(a, BN_MEAN), up);
        invstd = part_cast(w, arg_tensor(a, BN_INVSTD), up);
    } else {
        mean = part_cast(w, arg_tensor(a, BN_RUNNING_MEAN), up);
        invstd = part_cast(w, arg_tensor(a, BN_RUNNING_VAR), up);
        invstd = CALL(rsqrt_default, T(CALL(add_scalar, T(invstd), a[BN_EPS])));
    }
    bp_value count = D(dim_mul(w->c, x0->sizes[0], part_count(w, x0, 2, x0->rank)));
    bp_tensor *m = channels(w, mean, x0->rank), *s = channels(w, invstd, x0->rank);
    bp_tensor *away = CALL(sub_tensor, T(x), T(m)), *sum = sum_over(w, g, over, NONE, NONE);
    bp_tensor *dot = sum_over(w, CALL(mul_tensor, T(g), T(away)), over, NONE, NONE);
    bp_tensor *weight = arg_is_none(a, BN_WEIGHT) ? NULL : part_cast(w, arg_tensor(a, BN_WEIGHT), up);
    bp_tensor *scale = weight ? CALL(mul_tensor, T(s), T(channels(w, weight, x0->rank))) : s;
    bp_tensor *gx = g;
    if (train) {
        bp_tensor *gm = channels(w, CALL(div_scalar, T(sum), count), x0->rank);
        bp_tensor *square = CALL(mul_tensor, T(invstd), T(invstd));
        bp_tensor *proj = channels(w, CALL(mul_tensor, T(CALL(div_scalar, T(dot), count)), T(square)), x0->rank);
        gx = CALL(sub_tensor, T(CALL(sub_tensor, T(g), T(CALL(mul_tensor, T(away), T(proj))))), T(gm));
    }
    if (a[BN_MASK].v.items[0].v.i)
        out[0] = part_cast(w, CALL(mul_tensor, T(gx), T(scale)), d);
    bp_dtype wd = weight ? (bp_dtype)arg_tensor(a, BN_WEIGHT)->dtype : d;
    if (a[BN_MASK].v.items[1].v.i)
        out[1] = part_cast(w, CALL(mul_tensor, T(dot), T(invstd)), wd);
    if (a[BN_MASK].v.items[2].v.i)
        out[2] = part_cast(w, sum, wd);
    return parts_give(w, k, out, 3);
}

/* -- losses -------------------------------------------------------------------------------------------------------- */

static bp_tensor *reduced(work *w, const op_row *op, const bp_value *a, bp_tensor *t)
{
    int64_t how = named(op, a, "reduction").v.dim.value;
    return how == 0 ? t : how == 1 ? CALL(mean_default, T(t)) : CALL(sum_default, T(t));
}

/* Of a loss whose result is reduced, the share of each element of `like` in t. */
static bp_tensor *share(work *w, const op_row *op, const bp_value *a, const bp_tensor *like, bp_tensor *t)
{
    bool mean = named(op, a, "reduction").v.dim.value == 1;
    return mean && t ? CALL(div_scalar, T(t), D(tensor_numel(w->c, like))) : t;
}

PART(mse_loss)
{
    bp_tensor *apart = CALL(sub_tensor, a[0], a[1]);
    return reduced(w, op, a, CALL(pow_tensor_scalar, T(apart), I(2)));
}

PART(smooth_l1_loss)
{
    double beta = arg_float(a, 3);
    bp_tensor *apart = CALL(abs_default, T(CALL(sub_tensor, a[0], a[1])));
    if (beta == 0)
        return reduced(w, op, a, apart);
    bp_tensor *near = CALL(div_scalar, T(CALL(mul_scalar, T(CALL(mul_tensor, T(apart), T(apart))), F(0.5))), F(beta));
    return reduced(w, op, a, choose(w, CALL(lt_scalar, T(apart), F(beta)), T(near),
                                    T(CALL(sub_scalar, T(apart), F(0.5 * beta)))));
}

PART(huber_loss)
{
    double delta = arg_float(a, 3);
    bp_tensor *apart = CALL(abs_default, T(CALL(sub_tensor, a[0], a[1])));
    bp_tensor *near = CALL(mul_scalar, T(CALL(mul_tensor, T(apart), T(apart))), F(0.5));
    bp_tensor *far = CALL(mul_scalar, T(CALL(sub_scalar, T(apart), F(0.5 * delta))), F(delta));
    return reduced(w, op, a, choose(w, CALL(le_scalar, T(apart), F(delta)), T(near), T(far)));
}

PART(binary_cross_entropy)
{
    bp_tensor *rest = CALL(sub_scalar, a[1], I(1)), *low = CALL(clamp_default,
                                                                T(CALL(log1p_default, T(CALL(neg_default, a[0])))),
                                                                    F(-100));
    bp_tensor *high = CALL(clamp_default, T(CALL(log_default, a[0])), F(-100));
    bp_tensor *t = CALL(sub_tensor, T(CALL(mul_tensor, T(rest), T(low))), T(CALL(mul_tensor, a[1], T(high))));
    if (!arg_is_none(a, 2))
        t = CALL(mul_tensor, T(t), a[2]);
    return reduced(w, op, a, t);
}

PART(mse_loss_backward)
{
    bp_tensor *apart = CALL(sub_tensor, a[1], a[2]);
    bp_tensor *slope = share(w, op, a, arg_tensor(a, 1), CALL(mul_scalar, T(apart), F(2)));
    return CALL(mul_tensor, T(slope), a[0]);
}

PART(smooth_l1_loss_backward)
{
    double beta = arg_float(a, 4);
    bp_tensor *x = CALL(sub_tensor, a[1], a[2]), *size = CALL(abs_default, T(x));
    bp_tensor *g = share(w, op, a, arg_tensor(a, 1), arg_tensor(a, 0));
    bp_tensor *far = CALL(mul_tensor, T(g), T(CALL(sign_default, T(x))));
    if (beta == 0)
        return far;
    bp_tensor *near = CALL(div_scalar, T(CALL(mul_tensor, T(g), T(x))), F(beta));
    return choose(w, CALL(lt_scalar, T(size), F(beta)), T(near), T(far));
}

PART(huber_loss_backward)
{
    double delta = arg_float(a, 4);
    bp_tensor *x = CALL(sub_tensor, a[1], a[2]), *g = share(w, op, a, arg_tensor(a, 1), arg_tensor(a, 0));
    bp_tensor *limit = CALL(mul_scalar, T(g), F(delta));
    bp_tensor *high = choose(w, CALL(gt_scalar, T(x), F(delta)), T(limit), T(CALL(mul_tensor, T(g), T(x))));
    return choose(w, CALL(lt_scalar, T(x), F(-delta)), T(CALL(neg_default, T(limit))), T(high));
}

PART(soft_margin_loss_backward)
{
    bp_tensor *z = CALL(exp_default, T(CALL(mul_tensor, T(CALL(neg_default, a[2])), a[1])));
    bp_tensor *slope = CALL(mul_tensor, T(share(w, op, a, arg_tensor(a, 1), CALL(mul_scalar, a[2], F(-1)))), T(z));
    return CALL(mul_tensor, T(CALL(div_tensor, T(slope), T(CALL(add_scalar, T(z), I(1))))), a[0]);
}

PART(binary_cross_entropy_backward)
{
    bp_tensor *x = CALL(mul_tensor, T(CALL(rsub_scalar, a[1], I(1))), a[1]);
    bp_tensor *t = CALL(mul_tensor, a[0], T(CALL(sub_tensor, a[1], a[2])));
    t = CALL(div_tensor, T(t), T(CALL(clamp_default, T(x), F(1e-12))));
    if (!arg_is_none(a, 3))
        t = CALL(mul_tensor, T(t), a[3]);
    return share(w, op, a, arg_tensor(a, 1), t);
}

/* -- nll ----------------------------------------------------------------------------------------------------------- */

/* A class's weights along the classes of x. */
static bp_tensor *weights_along(work *w, bp_tensor *weight, uint32_t rank, int64_t dim)
{
    bp_dim sizes[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++)
        sizes[d] = d == dim ? weight->sizes[0] : dim_const(1);
    return compose_reshape(w, weight, rank, sizes);
}

/* self, target, weight, reduction, ignore_index */
PARTS(nll_forward)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0), *weight = arg_tensor(a, 2), *out[2];
    int64_t dim = x->rank < 2 ? 0 : 1, how = arg_int(w->c, a, 3);
    bp_tensor *ignored = CALL(eq_scalar, a[1], a[4]);
    bp_tensor *safe = compose_unsqueeze(w, choose(w, ignored, I(0), a[1]), dim);
    bp_tensor *each = weight ? CALL(mul_tensor, a[0], T(weights_along(w, weight, x->rank, dim))) : x;
    each = each && safe ? CALL(neg_default, T(CALL(squeeze_dim, T(CALL(gather_default, T(each), I(dim), T(safe))),
                                                   I(dim)))) : NULL;
    bp_tensor *t = choose(w, ignored, I(0), T(each)), *total;
    if (how == 0 && x->rank > 1) {
        out[0] = t;
        out[1] = CALL(full_default, value_list(NULL, 0), F(0), value_dtype((bp_dtype)x->dtype));
        return parts_give(w, k, out, 2);
    }
    bp_tensor *counted = CALL(logical_not_default, T(ignored));
    if (weight) {
        bp_tensor *wide = CALL(expand_default, T(weights_along(w, weight, x->rank, dim)), part_sizes(w, x));
        wide = wide ? CALL(squeeze_dim, T(CALL(gather_default, T(wide), I(dim), T(safe))), I(dim)) : NULL;
        total = CALL(sum_default, T(choose(w, ignored, I(0), T(wide))));
    } else {
        total = part_cast(w, CALL(sum_default, T(counted)), (bp_dtype)x->dtype);
    }
    bp_tensor *sum = CALL(sum_default, T(t));
    out[0] = how == 1 ? CALL(div_tensor, T(sum), T(total)) : how == 0 ? t : sum;
    out[1] = total;
    return parts_give(w, k, out, 2);
}

/* grad, self, target, weight, reduction, ignore_index, total_weight */
PART(nll_backward)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 1), *weight = arg_tensor(a, 3), *g = arg_tensor(a, 0);
    int64_t dim = x->rank < 2 ? 0 : 1;
    if (arg_int(w->c, a, 4) == 1)
        g = CALL(div_tensor, a[0], a[6]);
    bp_tensor *target = compose_unsqueeze(w, arg_tensor(a, 2), dim);
    bp_tensor *ignored = target ? CALL(eq_scalar, T(target), a[5]) : NULL;
    bp_tensor *safe = choose(w, ignored, I(0), T(target));
    bp_tensor *picked = CALL(scatter_value, T(CALL(full_like_default, a[1], I(0))), I(dim), T(safe), F(-1));
    if (g && g->rank && g->rank < x->rank)
        g = compose_unsqueeze(w, g, dim);
    if (weight)
        g = g ? CALL(mul_tensor, T(g), T(weights_along(w, weight, x->rank, dim))) : NULL;
    g = choose(w, ignored, I(0), T(g));
    return CALL(mul_tensor, T(picked), T(g));
}
