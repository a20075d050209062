/* Derivatives of norms: 0 where the norm is 0, and the extremes of p = inf share. */
#include "host/grad/math.h"
#include <math.h>

static bp_tensor *power(bp_ctx *c, bp_tensor *t, double p)
{
    return bp_aten_pow_tensor_scalar(c, t, bp_scalar_float(p));
}

/* p = inf and -inf: by those whose size is the norm, or is no number. */
static bp_tensor *of_extreme(bp_ctx *c, bp_tensor *grad, bp_tensor *self, bp_tensor *norm, uint64_t dims)
{
    bp_tensor *size = bp_aten_abs_default(c, self);
    bp_tensor *best = bp_aten_logical_or_default(c, bp_aten_eq_tensor(c, size, norm), bp_aten_isnan_default(c, size));
    bp_tensor *share = grad_mul(c, grad_div(c, grad, grad_sum_over(c, best, dims)), best);
    return grad_mul(c, bp_aten_sgn_default(c, self), share);
}

/* self |self|^(p - 2), below 2 without a division by 0. */
static bp_tensor *direction(bp_ctx *c, bp_tensor *self, double p)
{
    bp_tensor *size = bp_aten_abs_default(c, self);
    if (p >= 2)
        return grad_mul(c, self, power(c, size, p - 2));
    size = power(c, size, p - 1);
    if (p < 1)
        size = grad_unless(c, grad_is_zero(c, self), size);
    return grad_mul(c, bp_aten_sgn_default(c, self), size);
}

bp_tensor *grad_of_norm(bp_ctx *c, bp_tensor *grad, bp_tensor *self, double p, bp_tensor *norm, uint64_t dims)
{
    if (p == 0)
        return NULL;
    if (p == 1)
        return grad_mul(c, bp_aten_sgn_default(c, self), grad);
    if (isinf(p))
        return of_extreme(c, grad, self, norm, dims);
    if (p == 2)
        return grad_mul(c, grad, grad_unless(c, grad_is_zero(c, norm), grad_div(c, self, norm)));
    bp_tensor *along = direction(c, self, p);
    if (p < 1)
        return grad_mul(c, grad_mul(c, along, grad), power(c, norm, 1 - p));
    bp_tensor *by = grad_div(c, grad, power(c, norm, p - 1));
    return grad_mul(c, along, grad_unless(c, grad_is_zero(c, norm), by));
}

/* The order is "ord" of linalg_vector_norm, "p" of the others; none is 2. */
bp_status grad_norm(bp_ctx *c, grad_call *g)
{
    const char *order = grad_given(g, "ord") ? "ord" : "p";
    double p = grad_given(g, order) ? scalar_float(grad_arg_scalar(g, order)) : 2;
    bp_tensor *self = grad_tensor(g, "self");
    uint32_t rank = grad_rank(self);
    uint64_t dims = grad_dim_set(c, g, "dim", rank);
    bool kept = grad_given(g, "keepdim") && grad_arg_bool(g, "keepdim");
    bp_tensor *grad = grad_restore(c, g->grads[0], dims, rank, kept);
    bp_tensor *norm = grad_restore(c, g->results[0], dims, rank, kept);
    if (grad && grad_given(g, "dtype"))
        self = grad_to(c, self, grad_complex(self) ? dtype_complex_of(grad->dtype) : grad->dtype);
    grad_give(g, "self", grad_of_norm(c, grad, self, p, norm, dims));
    return grad_done(c);
}

bp_status grad_dist(bp_ctx *c, grad_call *g)
{
    bp_tensor *away = grad_sub(c, grad_tensor(g, "self"), grad_tensor(g, "other"));
    double p = scalar_float(grad_arg_scalar(g, "p"));
    bp_tensor *t = grad_of_norm(c, g->grads[0], away, p, g->results[0], UINT64_MAX);
    if (grad_needs(g, "self"))
        grad_give(g, "self", t);
    if (grad_needs(g, "other") && t)
        grad_give(g, "other", grad_neg(c, t));
    return grad_done(c);
}

/* A slice that is above maxnorm is maxnorm self / (norm + 1e-7): its own norm takes back what lies along it. */
bp_status grad_renorm(bp_ctx *c, grad_call *g)
{
    bp_tensor *grad = g->grads[0], *self = grad_tensor(g, "self");
    double p = scalar_float(grad_arg_scalar(g, "p")), most = scalar_float(grad_arg_scalar(g, "maxnorm"));
    uint32_t rank = grad_rank(self), dim = grad_arg_wrapped(c, g, "dim", rank), n = 0;
    uint64_t dims = ~(UINT64_C(1) << dim) & (rank < 64 ? (UINT64_C(1) << rank) - 1 : UINT64_MAX);
    bp_dim over[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++)
        if (d != dim)
            over[n++] = bp_dim_of(d);
    bp_tensor *norm = bp_aten_linalg_vector_norm_default(c, self, bp_scalar_float(p), (bp_dims){over, n, 1}, true, 0);
    bp_tensor *along = grad_real(c, grad_sum_over(c, grad_mul(c, grad_conj(c, self), grad), dims));
    bp_tensor *inverse = bp_aten_reciprocal_default(c, grad_plus(c, norm, 1e-7));
    bp_tensor *back = grad_of_norm(c, along, self, p, norm, dims);
    bp_tensor *scaled = grad_sub(c, grad, back ? grad_mul(c, inverse, back) : NULL);
    scaled = grad_mul(c, grad_scaled(c, inverse, most), scaled);
    bp_tensor *above = bp_aten_gt_scalar(c, norm, bp_scalar_float(most));
    grad_give(g, "self", bp_aten_where_self(c, above, scaled, grad));
    return grad_done(c);
}
