/* Derivatives of reductions: a gradient that lacks the reduced dimensions gets them back with size 1 and broadcasts. */
#include "host/grad/math.h"
#include <math.h>

/* -- dimensions ---------------------------------------------------------------------------------------------------- */

uint64_t grad_dim_set(bp_ctx *c, const grad_call *g, const char *name, uint32_t rank)
{
    const bp_value *v = grad_arg(g, name);
    uint64_t all = rank >= 64 ? UINT64_MAX : (UINT64_C(1) << rank) - 1, set = 0;
    uint32_t n = v ? arg_list_len(v, 0) : 0, d;
    for (uint32_t i = 0; i < n; i++) {
        if (op_wrap_dim(c, g->op, name, arg_list_dim(v, 0, i).value, rank, &d))
            return 0;
        set |= UINT64_C(1) << d;
    }
    return n ? set & all : all;
}

bp_tensor *grad_restore(bp_ctx *c, bp_tensor *t, uint64_t dims, uint32_t rank, bool kept)
{
    for (uint32_t d = 0; d < rank && t && t->rank && !kept; d++)
        if (dims >> d & 1)
            t = bp_aten_unsqueeze_default(c, t, d);
    return t;
}

bp_dim grad_count(bp_ctx *c, const bp_tensor *of, uint64_t dims)
{
    bp_dim n = dim_const(1);
    for (uint32_t d = 0; d < grad_rank(of); d++)
        if (dims >> d & 1)
            n = dim_mul(c, n, of->sizes[d]);
    return n;
}

bp_tensor *grad_sum_over(bp_ctx *c, bp_tensor *t, uint64_t dims)
{
    bp_dim over[TENSOR_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t d = 0; d < grad_rank(t); d++)
        if (dims >> d & 1)
            over[n++] = bp_dim_of(d);
    return n ? bp_aten_sum_dim_intlist(c, t, (bp_dims){over, n, 1}, true, 0) : t;
}

/* A reduction of `self` over `dim`. */
typedef struct { bp_tensor *self; uint32_t rank; uint64_t dims; bool kept; } reduction;

static reduction read_reduction(bp_ctx *c, const grad_call *g)
{
    reduction r = {.self = grad_tensor(g, "self"), .kept = grad_given(g, "keepdim") && grad_arg_bool(g, "keepdim")};
    r.rank = grad_rank(r.self);
    r.dims = grad_dim_set(c, g, "dim", r.rank);
    return r;
}

static bp_tensor *restore(bp_ctx *c, const reduction *r, bp_tensor *t)
{
    return grad_restore(c, t, r->dims, r->rank, r->kept);
}

/* -- sums and means ------------------------------------------------------------------------------------------------ */

bp_status grad_sum_dim(bp_ctx *c, grad_call *g)
{
    reduction r = read_reduction(c, g);
    grad_give(g, "self", bp_aten_expand_default(c, restore(c, &r, g->grads[0]), grad_sizes(r.self), false));
    return grad_done(c);
}

bp_status grad_nansum(bp_ctx *c, grad_call *g)
{
    reduction r = read_reduction(c, g);
    bp_tensor *number = bp_aten_logical_not_default(c, bp_aten_isnan_default(c, r.self));
    grad_give(g, "self", grad_mul(c, restore(c, &r, g->grads[0]), number));
    return grad_done(c);
}

/* The gradient of a mean over r->dims. */
static bp_tensor *of_mean(bp_ctx *c, const reduction *r, bp_tensor *grad)
{
    bp_tensor *t = bp_aten_expand_default(c, restore(c, r, grad), grad_sizes(r->self), false);
    return bp_aten_div_scalar(c, t, bp_scalar_dim(grad_count(c, r->self, r->dims)));
}

bp_status grad_mean_dim(bp_ctx *c, grad_call *g)
{
    reduction r = read_reduction(c, g);
    grad_give(g, "self", of_mean(c, &r, g->grads[0]));
    return grad_done(c);
}

bp_status grad_logsumexp(bp_ctx *c, grad_call *g)
{
    reduction r = read_reduction(c, g);
    bp_tensor *share = bp_aten_exp_default(c, grad_sub(c, r.self, restore(c, &r, g->results[0])));
    grad_give(g, "self", grad_mul(c, restore(c, &r, g->grads[0]), grad_conj(c, share)));
    return grad_done(c);
}

bp_status grad_trace(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self");
    bp_tensor *diagonal = bp_aten_eye_m(c, grad_size(self, 0), grad_size(self, 1), BP_BOOL, 0, tensor_device(self),
                                        (bp_scalar){0});
    grad_give(g, "self", grad_where(c, diagonal, g->grads[0]));
    return grad_done(c);
}

/* -- products: of all other elements, without division, so that zeros are no matter -------------------------------- */

static bp_tensor *cumulated(bp_ctx *c, bp_tensor *t, int64_t dim) { return bp_aten_cumprod_default(c, t, dim, 0); }
static bp_tensor *turned(bp_ctx *c, bp_tensor *t, int64_t dim) { return bp_aten_flip_default(c, t, BP_DIMS(dim)); }

/* Of each element along dim: the product of those before it. */
static bp_tensor *before(bp_ctx *c, bp_tensor *t, int64_t dim)
{
    bp_tensor *first = grad_slice(c, t, dim, 0, 1);
    first = bp_aten_ones_like_default(c, first, 0, 0, (bp_device){0}, (bp_scalar){0}, 0);
    bp_tensor *parts[] = {first, grad_slice(c, t, dim, 0, -1)};
    return cumulated(c, bp_aten_cat_default(c, (bp_tensors){parts, 2}, dim), dim);
}

/* Whatever zeros there are. */
static bp_tensor *of_any_prod(bp_ctx *c, bp_tensor *grad, bp_tensor *t, int64_t dim)
{
    bp_tensor *behind = turned(c, before(c, turned(c, t, dim), dim), dim);
    return grad_mul(c, grad, grad_conj(c, grad_mul(c, before(c, t, dim), behind)));
}

/* Without a zero each element is divided out, so that a NaN is its own: but not where that is differentiated again,
 * since a quotient by zero that is not taken would leave its mark. */
static bp_tensor *of_prod(bp_ctx *c, bp_tensor *grad, bp_tensor *t, bp_tensor *result, int64_t dim)
{
    if (!t || !dim_above(grad_size(t, (int32_t)dim), 1))
        return bp_aten_expand_default(c, grad, grad_sizes(t), false);
    bp_tensor *exact = of_any_prod(c, grad, t, dim);
    if (c->ambient.grad_enabled)
        return exact;
    bp_tensor *divided = grad_mul(c, grad, grad_conj(c, grad_div(c, result, t)));
    return bp_aten_where_self(c, bp_aten_any_default(c, grad_is_zero(c, t)), exact, divided);
}

/* prod and prod.dim_int */
bp_status grad_prod(bp_ctx *c, grad_call *g)
{
    bp_tensor *grad = g->grads[0], *self = grad_tensor(g, "self"), *t = grad_to(c, self, grad->dtype);
    bp_tensor *result = g->results[0];
    if (grad_given(g, "dim") && grad_rank(self)) {
        uint32_t dim = grad_arg_wrapped(c, g, "dim", self->rank);
        bool kept = grad_arg_bool(g, "keepdim");
        grad = grad_restore(c, grad, UINT64_C(1) << dim, self->rank, kept);
        result = grad_restore(c, result, UINT64_C(1) << dim, self->rank, kept);
        grad_give(g, "self", of_prod(c, grad, t, result, dim));
        return grad_done(c);
    }
    bp_tensor *flat = bp_aten_reshape_default(c, t, BP_DIMS(-1));
    grad_give(g, "self", bp_aten_view_default(c, of_prod(c, grad, flat, result, 0), grad_sizes(self)));
    return grad_done(c);
}

/* -- extrema ------------------------------------------------------------------------------------------------------- */

/* Among those of r->dims that are equal to the result. */
static bp_tensor *shared_over(bp_ctx *c, const reduction *r, bp_tensor *grad, bp_tensor *result)
{
    bp_tensor *best = bp_aten_eq_tensor(c, restore(c, r, result), r->self);
    return grad_div(c, grad_mul(c, restore(c, r, grad), best), grad_sum_over(c, best, r->dims));
}

bp_status grad_best_over(bp_ctx *c, grad_call *g)
{
    reduction r = read_reduction(c, g);
    grad_give(g, "self", shared_over(c, &r, g->grads[0], g->results[0]));
    return grad_done(c);
}

/* max, min, median: a NaN that won shares with the other NaNs. */
bp_status grad_best_of_all(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self"), *result = g->results[0];
    bp_tensor *nans = bp_aten_logical_and_default(c, bp_aten_isnan_default(c, self), bp_aten_isnan_default(c, result));
    bp_tensor *best = bp_aten_logical_or_default(c, bp_aten_eq_tensor(c, self, result), nans);
    grad_give(g, "self", grad_mul(c, best, grad_div(c, g->grads[0], bp_aten_sum_default(c, best, 0))));
    return grad_done(c);
}

bp_status grad_aminmax(bp_ctx *c, grad_call *g)
{
    reduction r = read_reduction(c, g);
    bp_tensor *least = g->grads[0] ? shared_over(c, &r, g->grads[0], g->results[0]) : NULL;
    bp_tensor *most = g->grads[1] ? shared_over(c, &r, g->grads[1], g->results[1]) : NULL;
    grad_give(g, "self", grad_add(c, least, most));
    return grad_done(c);
}

/* -- variance ------------------------------------------------------------------------------------------------------ */

static double correction_of(const grad_call *g)
{
    return grad_given(g, "correction") ? scalar_float(grad_arg_scalar(g, "correction")) : 1;
}

/* count - correction. A correction that is no integer makes a number of the count. */
static bp_scalar freedom(bp_ctx *c, const grad_call *g, bp_dim count)
{
    double correction = correction_of(g);
    if (correction == floor(correction) && fabs(correction) < 0x1p53)
        return bp_scalar_dim(dim_sub(c, count, dim_const((int64_t)correction)));
    return bp_scalar_float((double)dim_int(c, count) - correction);
}

/* grad 2 (self - mean) / (count - correction) */
static bp_tensor *of_var(bp_ctx *c, const grad_call *g, const reduction *r, bp_tensor *grad)
{
    bp_dim count = grad_count(c, r->self, r->dims);
    bp_tensor *mean = bp_aten_div_scalar(c, grad_sum_over(c, r->self, r->dims), bp_scalar_dim(count));
    grad = bp_aten_div_scalar(c, grad_scaled(c, restore(c, r, grad), 2), freedom(c, g, count));
    return grad_mul(c, grad, grad_sub(c, r->self, mean));
}

/* With the mean beside it, which has a gradient of its own. */
static bp_status give_var(bp_ctx *c, grad_call *g, bp_tensor *grad)
{
    reduction r = read_reduction(c, g);
    bp_tensor *spread = grad ? of_var(c, g, &r, grad) : NULL;
    bp_tensor *mean = g->nresults > 1 && g->grads[1] ? of_mean(c, &r, g->grads[1]) : NULL;
    grad_give(g, "self", grad_add(c, spread, mean));
    return grad_done(c);
}

bp_status grad_var(bp_ctx *c, grad_call *g)
{
    return give_var(c, g, g->grads[0]);
}

/* A deviation of 0 has none. */
bp_status grad_std(bp_ctx *c, grad_call *g)
{
    bp_tensor *std = g->results[0], *grad = g->grads[0];
    if (grad)
        grad = grad_unless(c, grad_is_zero(c, std), grad_div(c, grad, grad_scaled(c, std, 2)));
    return give_var(c, g, grad);
}
