/* Derivatives of special functions and of functions of two arguments. */
#include "host/grad/math.h"
#include <math.h>

/* -- Bessel functions of order 1: a quotient by self, which near 0 is its limit ------------------------------------ */

static double precision_of(bp_dtype d)
{
    switch (d) {
    case BP_F16: return 0x1p-10;
    case BP_BF16: return 0x1p-7;
    case BP_F32: return 0x1p-23;
    default: return 0x1p-52;
    }
}

typedef struct { bp_tensor *safe, *near; } from_zero;

/* self, but not nearer to 0 than its type can tell; and where it was. */
static from_zero keep_away(bp_ctx *c, bp_tensor *self)
{
    from_zero z = {0};
    double least = self ? precision_of(self->dtype) : 0;
    z.near = bp_aten_le_scalar(c, bp_aten_abs_default(c, self), bp_scalar_float(least));
    z.safe = bp_aten_where_scalarself(c, z.near, bp_scalar_float(least), self);
    return z;
}

static bp_status give_slope(bp_ctx *c, grad_call *g, const from_zero *z, bp_tensor *slope)
{
    slope = bp_aten_where_scalarself(c, z->near, bp_scalar_float(0.5), slope);
    grad_give(g, "self", grad_mul(c, g->grads[0], slope));
    return grad_done(c);
}

typedef bp_tensor *(*unary_fn)(bp_ctx *c, bp_tensor *self);

static bp_tensor *bessel_slope(bp_ctx *c, const grad_call *g, bp_tensor *self, unary_fn order_0)
{
    bp_tensor *part = grad_mul(c, g->results[0], bp_aten_reciprocal_default(c, self));
    return grad_sub(c, order_0(c, self), part);
}

static bp_status give_bessel(bp_ctx *c, grad_call *g, unary_fn order_0)
{
    from_zero z = keep_away(c, grad_tensor(g, "self"));
    return give_slope(c, g, &z, bessel_slope(c, g, z.safe, order_0));
}

bp_status grad_bessel_i1(bp_ctx *c, grad_call *g)
{
    return give_bessel(c, g, bp_aten_i0_default);
}

bp_status grad_bessel_j1(bp_ctx *c, grad_call *g)
{
    return give_bessel(c, g, bp_aten_special_bessel_j0_default);
}

/* Which grows without bound toward 0. */
bp_status grad_bessel_y1(bp_ctx *c, grad_call *g)
{
    from_zero z = keep_away(c, grad_tensor(g, "self"));
    bp_tensor *slope = bessel_slope(c, g, z.safe, bp_aten_special_bessel_y0_default);
    grad_give(g, "self", grad_mul(c, g->grads[0], slope));
    return grad_done(c);
}

bp_status grad_bessel_i1e(bp_ctx *c, grad_call *g)
{
    from_zero z = keep_away(c, grad_tensor(g, "self"));
    bp_tensor *by = grad_add(c, bp_aten_sgn_default(c, z.safe), bp_aten_reciprocal_default(c, z.safe));
    bp_tensor *slope = grad_sub(c, bp_aten_special_i0e_default(c, z.safe), grad_mul(c, g->results[0], by));
    return give_slope(c, g, &z, slope);
}

/* -- gamma functions ----------------------------------------------------------------------------------------------- */

bp_status grad_polygamma(bp_ctx *c, grad_call *g)
{
    bp_tensor *slope = bp_aten_polygamma_default(c, grad_arg_int(c, g, "n") + 1, grad_tensor(g, "self"));
    grad_give(g, "self", grad_mul(c, g->grads[0], slope));
    return grad_done(c);
}

/* The sum of digamma(self + (1 - j) / 2) for j from 1 to p. */
bp_status grad_mvlgamma(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self");
    double first = 0.5 - (double)grad_arg_int(c, g, "p") / 2;
    bp_tensor *steps = bp_aten_arange_start_step(c, bp_scalar_float(first), bp_scalar_float(0.5), bp_scalar_float(0.5),
                                                 self->dtype, 0, tensor_device(self), (bp_scalar){0});
    bp_tensor *at = grad_add(c, bp_aten_unsqueeze_default(c, self, -1), steps);
    bp_tensor *slope = grad_sum(c, bp_aten_digamma_default(c, at), -1, false);
    grad_give(g, "self", grad_mul(c, g->grads[0], slope));
    return grad_done(c);
}

static bp_status not_known(bp_ctx *c, const grad_call *g)
{
    return ctx_fail(c, BP_UNIMPLEMENTED,
                    "%s: the derivative by argument \"self\" has no closed form; detach it", g->op->label);
}

/* igammac is 1 - igamma. */
bp_status grad_igamma(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self"), *other = grad_tensor(g, "other");
    if (grad_needs(g, "self"))
        return not_known(c, g);
    bp_tensor *log = grad_mul(c, grad_plus(c, self, -1), bp_aten_log_default(c, other));
    log = grad_sub(c, grad_sub(c, log, other), bp_aten_lgamma_default(c, self));
    bp_tensor *grad = grad_mul(c, g->grads[0], bp_aten_exp_default(c, log));
    grad_give(g, "other", g->op->number == ROW_igammac_default ? grad_neg(c, grad) : grad);
    return grad_done(c);
}

bp_status grad_zeta(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self"), *other = grad_tensor(g, "other"), *slope;
    if (grad_needs(g, "self"))
        return not_known(c, g);
    if (self)
        slope = grad_mul(c, grad_neg(c, self), bp_aten_special_zeta_default(c, grad_plus(c, self, 1), other));
    else {
        double s = scalar_float(grad_arg_scalar(g, "self"));
        slope = bp_aten_special_zeta_self_scalar(c, bp_scalar_float(s + 1), other);
        slope = grad_scaled(c, slope, -s);
    }
    grad_give(g, "other", grad_mul(c, g->grads[0], slope));
    return grad_done(c);
}

/* -- two arguments ------------------------------------------------------------------------------------------------- */

/* Nothing flows at the origin. */
bp_status grad_atan2(bp_ctx *c, grad_call *g)
{
    bp_tensor *grad = g->grads[0], *self = grad_tensor(g, "self"), *other = grad_tensor(g, "other");
    bp_tensor *size = grad_add(c, grad_square(c, self), grad_square(c, other));
    bp_tensor *by = grad_unless(c, grad_is_zero(c, size), bp_aten_reciprocal_default(c, size));
    if (grad_needs(g, "self"))
        grad_give(g, "self", grad_mul(c, grad_mul(c, grad, other), by));
    if (grad_needs(g, "other"))
        grad_give(g, "other", grad_mul(c, grad_mul(c, grad, grad_neg(c, self)), by));
    return grad_done(c);
}

/* self log(other): at 0 the logarithm of nothing does not flow. */
static bp_status give_log(bp_ctx *c, grad_call *g, bp_tensor *grad, double least)
{
    if (!(scalar_float(grad_arg_scalar(g, "other")) > least))
        grad = grad_unless(c, grad_is_zero(c, grad_tensor(g, "self")), grad);
    grad_give(g, "self", grad);
    return grad_done(c);
}

bp_status grad_xlogy_number(bp_ctx *c, grad_call *g)
{
    return give_log(c, g, bp_aten_xlogy_scalar_other(c, g->grads[0], grad_arg_scalar(g, "other")), 0);
}

bp_status grad_xlog1py_number(bp_ctx *c, grad_call *g)
{
    bp_scalar other = grad_arg_scalar(g, "other");
    return give_log(c, g, bp_aten_special_xlog1py_other_scalar(c, g->grads[0], other), -1);
}
