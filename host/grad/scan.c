/* Derivatives of running sums and products. */
#include "host/grad/math.h"
#include <float.h>

/* Sums from each element to the end. */
static bp_tensor *sum_to_end(bp_ctx *c, bp_tensor *t, int64_t dim)
{
    t = bp_aten_cumsum_default(c, bp_aten_flip_default(c, t, BP_DIMS(dim)), dim, 0);
    return bp_aten_flip_default(c, t, BP_DIMS(dim));
}

bp_status grad_cumsum(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self"), *grad = grad_to(c, g->grads[0], self->dtype);
    if (grad_rank(self))
        grad = sum_to_end(c, grad, grad_arg_int(c, g, "dim"));
    grad_give(g, "self", grad);
    return grad_done(c);
}

/* -- products ------------------------------------------------------------------------------------------------------ */

/* First derivatives in linear time. Before the first zero of a line an element is divided out; at it the products are
 * those of a line where it is 1; behind it they are 0. */
static bp_tensor *of_products(bp_ctx *c, bp_tensor *grad, bp_tensor *t, bp_tensor *result, int64_t dim)
{
    bp_tensor *zero = grad_is_zero(c, t), *met = bp_aten_cumsum_default(c, zero, dim, 0);
    bp_tensor *first = bp_aten_logical_and_default(c, zero, bp_aten_eq_scalar(c, met, bp_scalar_int(1)));
    bp_tensor *early = sum_to_end(c, grad_mul(c, grad, grad_conj(c, result)), dim);
    early = grad_div(c, early, grad_conj(c, t));
    bp_tensor *filled = bp_aten_masked_fill_scalar(c, t, first, bp_scalar_int(1));
    bp_tensor *there = grad_conj(c, bp_aten_cumprod_default(c, filled, dim, 0));
    there = sum_to_end(c, grad_mul(c, grad, there), dim);
    return bp_aten_where_self(c, grad_is_zero(c, met), early, grad_where(c, first, there));
}

/* Exact to every order, in quadratic time: of each element k the running products of the line where k is 1, from k on.
 * Dimension dim + 1 of the table counts them. */
static bp_tensor *of_products_again(bp_ctx *c, bp_tensor *grad, bp_tensor *t, int64_t dim)
{
    bp_dim n = grad_size(t, (int32_t)dim);
    bp_device device = tensor_device(t);
    bp_tensor *self = bp_aten_eye_default(c, n, BP_BOOL, 0, device, (bp_scalar){0});
    bp_tensor *from = bp_aten_ones_default(c, BP_DIMS(n, n), BP_BOOL, 0, device, (bp_scalar){0});
    from = bp_aten_triu_default(c, from, bp_dim_of(0));
    for (uint32_t d = (uint32_t)dim + 1; d < t->rank; d++) {
        self = bp_aten_unsqueeze_default(c, self, -1);
        from = bp_aten_unsqueeze_default(c, from, -1);
    }
    bp_tensor *table = bp_aten_where_scalarself(c, self, bp_scalar_int(1), bp_aten_unsqueeze_default(c, t, dim));
    table = grad_where(c, from, bp_aten_cumprod_default(c, table, dim + 1, 0));
    table = grad_mul(c, bp_aten_unsqueeze_default(c, grad, dim), grad_conj(c, table));
    return grad_sum(c, table, dim + 1, false);
}

bp_status grad_cumprod(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self"), *t = grad_to(c, self, g->grads[0]->dtype);
    if (!grad_rank(self) || !t) {
        grad_give(g, "self", g->grads[0]);
        return grad_done(c);
    }
    int64_t dim = grad_arg_wrapped(c, g, "dim", self->rank);
    if (!dim_above(grad_size(self, (int32_t)dim), 1))
        grad_give(g, "self", g->grads[0]);
    else if (c->ambient.grad_enabled)
        grad_give(g, "self", of_products_again(c, g->grads[0], t, dim));
    else
        grad_give(g, "self", of_products(c, g->grads[0], t, g->results[0], dim));
    return grad_done(c);
}

/* -- logarithms of sums -------------------------------------------------------------------------------------------- */

typedef struct { bp_tensor *self, *result; int64_t dim; } log_sum;

/* exp(self + log(sum from here on of exp(log_grad - result))) */
static bp_tensor *shares(bp_ctx *c, const log_sum *s, bp_tensor *log_grad)
{
    bp_tensor *t = bp_aten_flip_default(c, grad_sub(c, log_grad, s->result), BP_DIMS(s->dim));
    t = bp_aten_flip_default(c, bp_aten_logcumsumexp_default(c, t, s->dim), BP_DIMS(s->dim));
    return bp_aten_exp_default(c, grad_add(c, t, s->self));
}

static double lowest(bp_dtype d)
{
    return d == BP_F16 ? -65504.0 : d == BP_BF16 ? -0x1.fep127 : d == BP_F32 ? -FLT_MAX : -DBL_MAX;
}

/* Positive and negative gradients apart, in logarithms: nothing overflows. */
bp_status grad_logcumsumexp(bp_ctx *c, grad_call *g)
{
    bp_tensor *grad = g->grads[0];
    log_sum s = {grad_tensor(g, "self"), g->results[0], grad_arg_int(c, g, "dim")};
    if (!grad_rank(s.self)) {
        grad_give(g, "self", grad);
        return grad_done(c);
    }
    if (grad_complex(grad)) {
        grad_give(g, "self", grad_conj(c, shares(c, &s, bp_aten_log_default(c, grad_conj(c, grad)))));
        return grad_done(c);
    }
    bp_tensor *log = bp_aten_log_default(c, bp_aten_abs_default(c, grad));
    bp_scalar none = bp_scalar_float(lowest(grad->dtype)), zero = bp_scalar_int(0);
    bp_tensor *up = bp_aten_where_scalarother(c, bp_aten_gt_scalar(c, grad, zero), log, none);
    bp_tensor *down = bp_aten_where_scalarother(c, bp_aten_lt_scalar(c, grad, zero), log, none);
    grad_give(g, "self", grad_sub(c, shares(c, &s, up), shares(c, &s, down)));
    return grad_done(c);
}
