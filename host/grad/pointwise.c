/* Derivatives of pointwise arithmetic that a formula does not say: those that depend on types, on numbers among the
 * arguments, or on which of several arguments a gradient flows to. Ties and edges are PyTorch's. */
#include "host/grad/math.h"
#include <math.h>

/* -- one argument -------------------------------------------------------------------------------------------------- */

/* Of a complex number: what turns it; its size does not matter. */
bp_status grad_sgn(bp_ctx *c, grad_call *g)
{
    bp_tensor *grad = grad_of(c, g, 0), *self = grad_tensor(g, "self"), *sgn = g->results[0];
    if (!grad_complex(self)) {
        grad_give(g, "self", grad_zeros(c, grad));
        return grad_done(c);
    }
    bp_tensor *size = bp_aten_abs_default(c, self);
    bp_tensor *turn = grad_sub(c, grad, grad_mul(c, grad_square(c, sgn), grad_conj(c, grad)));
    turn = grad_div(c, turn, grad_scaled(c, size, 2));
    grad_give(g, "self", grad_unless(c, grad_is_zero(c, size), turn));
    return grad_done(c);
}

bp_status grad_angle(bp_ctx *c, grad_call *g)
{
    bp_tensor *grad = grad_of(c, g, 0), *self = grad_tensor(g, "self");
    if (!grad_complex(self)) {
        grad_give(g, "self", grad_zeros(c, grad));
        return grad_done(c);
    }
    bp_tensor *turn = bp_aten_mul_scalar(c, self, bp_scalar_complex(0, 1));
    turn = grad_div(c, grad_mul(c, grad, turn), grad_square(c, bp_aten_abs_default(c, self)));
    grad_give(g, "self", grad_unless(c, grad_is_zero(c, self), turn));
    return grad_done(c);
}

bp_status grad_acosh(bp_ctx *c, grad_call *g)
{
    bp_tensor *grad = grad_of(c, g, 0), *self = grad_tensor(g, "self"), *slope;
    if (grad_complex(self))
        slope = grad_mul(c, bp_aten_rsqrt_default(c, grad_plus(c, self, 1)),
                         bp_aten_rsqrt_default(c, grad_plus(c, self, -1)));
    else
        slope = bp_aten_rsqrt_default(c, grad_plus(c, grad_square(c, self), -1));
    grad_give(g, "self", grad_mul(c, grad, grad_conj(c, slope)));
    return grad_done(c);
}

bp_status grad_sinc(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self"), *x = grad_scaled(c, self, M_PI), *below = grad_mul(c, x, self);
    bp_tensor *slope = grad_sub(c, grad_mul(c, x, bp_aten_cos_default(c, x)), bp_aten_sin_default(c, x));
    slope = grad_mul(c, grad_of(c, g, 0), grad_conj(c, grad_div(c, slope, below)));
    grad_give(g, "self", grad_unless(c, grad_is_zero(c, below), slope));
    return grad_done(c);
}

/* -- sums, products, quotients ------------------------------------------------------------------------------------- */

bp_status grad_add_tensor(bp_ctx *c, grad_call *g)
{
    if (grad_needs(g, "self"))
        grad_give(g, "self", g->grads[0]);
    if (grad_needs(g, "other"))
        grad_give(g, "other", grad_times(c, g->grads[0], grad_arg_scalar(g, "alpha")));
    return grad_done(c);
}

bp_status grad_sub_tensor(bp_ctx *c, grad_call *g)
{
    if (grad_needs(g, "self"))
        grad_give(g, "self", g->grads[0]);
    if (grad_needs(g, "other"))
        grad_give(g, "other", grad_times(c, grad_neg(c, g->grads[0]), grad_arg_scalar(g, "alpha")));
    return grad_done(c);
}

bp_status grad_rsub_tensor(bp_ctx *c, grad_call *g)
{
    if (grad_needs(g, "self"))
        grad_give(g, "self", grad_times(c, grad_neg(c, g->grads[0]), grad_arg_scalar(g, "alpha")));
    if (grad_needs(g, "other"))
        grad_give(g, "other", g->grads[0]);
    return grad_done(c);
}

bp_status grad_mul_scalar(bp_ctx *c, grad_call *g)
{
    grad_give(g, "self", bp_aten_mul_scalar(c, g->grads[0], grad_conj_number(grad_arg_scalar(g, "other"))));
    return grad_done(c);
}

/* div.Scalar too, which has no rounding mode. */
bp_status grad_div_scalar(bp_ctx *c, grad_call *g)
{
    if (grad_given(g, "rounding_mode"))
        grad_give(g, "self", grad_zeros(c, g->grads[0]));
    else
        grad_give(g, "self", bp_aten_div_scalar(c, g->grads[0], grad_conj_number(grad_arg_scalar(g, "other"))));
    return grad_done(c);
}

bp_status grad_div_mode(bp_ctx *c, grad_call *g)
{
    bp_tensor *grad = g->grads[0], *self = grad_tensor(g, "self"), *other = grad_tensor(g, "other");
    bool rounds = grad_given(g, "rounding_mode");
    if (grad_needs(g, "self"))
        grad_give(g, "self", rounds ? grad_zeros(c, grad) : grad_div(c, grad, grad_conj(c, other)));
    if (grad_needs(g, "other")) {
        bp_tensor *twice = rounds ? NULL : grad_div(c, grad_div(c, self, other), other);
        grad_give(g, "other", rounds ? grad_zeros(c, grad) : grad_mul(c, grad_neg(c, grad), grad_conj(c, twice)));
    }
    return grad_done(c);
}

/* self + value tensor1 tensor2 */
bp_status grad_addcmul(bp_ctx *c, grad_call *g)
{
    bp_tensor *grad = g->grads[0];
    bp_scalar value = grad_arg_scalar(g, "value");
    if (grad_needs(g, "self"))
        grad_give(g, "self", grad);
    if (grad_needs(g, "tensor1"))
        grad_give(g, "tensor1", grad_times(c, grad_mul(c, grad, grad_conj(c, grad_tensor(g, "tensor2"))), value));
    if (grad_needs(g, "tensor2"))
        grad_give(g, "tensor2", grad_times(c, grad_mul(c, grad, grad_conj(c, grad_tensor(g, "tensor1"))), value));
    return grad_done(c);
}

/* self + value tensor1 / tensor2 */
bp_status grad_addcdiv(bp_ctx *c, grad_call *g)
{
    bp_tensor *grad = g->grads[0], *above = grad_tensor(g, "tensor1"), *below = grad_tensor(g, "tensor2");
    bp_scalar value = grad_arg_scalar(g, "value");
    if (grad_needs(g, "self"))
        grad_give(g, "self", grad);
    if (grad_needs(g, "tensor1"))
        grad_give(g, "tensor1", grad_times(c, grad_div(c, grad, grad_conj(c, below)), value));
    if (grad_needs(g, "tensor2")) {
        bp_tensor *slope = grad_conj(c, grad_div(c, above, grad_square(c, below)));
        grad_give(g, "tensor2", grad_times(c, grad_mul(c, grad_neg(c, grad), slope), value));
    }
    return grad_done(c);
}

bp_status grad_lerp_scalar(bp_ctx *c, grad_call *g)
{
    bp_scalar weight = grad_conj_number(grad_arg_scalar(g, "weight")), rest = bp_scalar_float(1 - scalar_float(weight));
    if (weight.kind == BP_SCALAR_COMPLEX)
        rest = bp_scalar_complex(1 - weight.v.f[0], -weight.v.f[1]);
    if (grad_needs(g, "self"))
        grad_give(g, "self", bp_aten_mul_scalar(c, g->grads[0], rest));
    if (grad_needs(g, "end"))
        grad_give(g, "end", bp_aten_mul_scalar(c, g->grads[0], weight));
    return grad_done(c);
}

/* -- powers: 0 to the power of 0 is 1 all around ------------------------------------------------------------------- */

static bool is_complex_kind(bp_scalar s) { return s.kind == BP_SCALAR_COMPLEX; }

/* Whether a power of 0 is finite there. */
static bp_tensor *not_below_zero(bp_ctx *c, bp_tensor *exponent)
{
    if (!grad_complex(exponent))
        return bp_aten_ge_scalar(c, exponent, bp_scalar_int(0));
    bp_tensor *real = grad_is_zero(c, bp_aten_imag_default(c, exponent));
    return bp_aten_logical_and_default(c, real, bp_aten_ge_scalar(c, grad_real(c, exponent), bp_scalar_int(0)));
}

static bp_tensor *power_of_base(bp_ctx *c, bp_tensor *grad, bp_tensor *self, bp_tensor *exponent)
{
    bp_tensor *slope = bp_aten_pow_tensor_tensor(c, self, grad_plus(c, exponent, -1));
    slope = grad_mul(c, grad, grad_conj(c, grad_mul(c, exponent, slope)));
    return grad_unless(c, grad_is_zero(c, exponent), slope);
}

bp_status grad_pow(bp_ctx *c, grad_call *g)
{
    bp_tensor *grad = g->grads[0], *self = grad_tensor(g, "self"), *exponent = grad_tensor(g, "exponent");
    bp_tensor *result = g->results[0];
    if (grad_needs(g, "self"))
        grad_give(g, "self", power_of_base(c, grad, self, exponent));
    if (grad_needs(g, "exponent")) {
        bp_tensor *flat = bp_aten_logical_and_default(c, grad_is_zero(c, self), not_below_zero(c, exponent));
        bp_tensor *log = bp_aten_log_default(c, grad_to(c, self, result->dtype));
        bp_tensor *slope = grad_unless(c, flat, grad_conj(c, grad_mul(c, result, log)));
        grad_give(g, "exponent", grad_mul(c, grad, slope));
    }
    return grad_done(c);
}

static bp_dim dim_of(bp_scalar s) { return (bp_dim){s.v.i, s.sym, 0}; }

static bp_scalar one_less(bp_ctx *c, bp_scalar s)
{
    if (s.kind == BP_SCALAR_COMPLEX)
        return bp_scalar_complex(s.v.f[0] - 1, s.v.f[1]);
    return s.kind == BP_SCALAR_FLOAT ? bp_scalar_float(s.v.f[0] - 1)
                                    : bp_scalar_dim(dim_sub(c, dim_of(s), dim_const(1)));
}

bp_status grad_pow_scalar(bp_ctx *c, grad_call *g)
{
    bp_scalar exponent = grad_arg_scalar(g, "exponent");
    bool whole = exponent.kind == BP_SCALAR_INT, flat = whole && dim_is(dim_of(exponent), 0);
    if (flat || (!whole && !is_complex_kind(exponent) && scalar_float(exponent) == 0)) {
        grad_give(g, "self", grad_zeros(c, grad_tensor(g, "self")));
        return grad_done(c);
    }
    bp_tensor *slope = bp_aten_pow_tensor_scalar(c, grad_tensor(g, "self"), one_less(c, exponent));
    slope = grad_conj(c, bp_aten_mul_scalar(c, slope, exponent));
    grad_give(g, "self", grad_mul(c, g->grads[0], slope));
    return grad_done(c);
}

static bp_scalar log_of(bp_scalar base, bool as_complex)
{
    if (!as_complex && !is_complex_kind(base))
        return bp_scalar_float(log(scalar_float(base)));
    double re = is_complex_kind(base) ? base.v.f[0] : scalar_float(base), im = is_complex_kind(base) ? base.v.f[1] : 0;
    return bp_scalar_complex(log(hypot(re, im)), atan2(im, re));
}

bp_status grad_scalar_pow(bp_ctx *c, grad_call *g)
{
    bp_scalar base = grad_arg_scalar(g, "self");
    bp_tensor *exponent = grad_tensor(g, "exponent"), *result = g->results[0];
    bp_tensor *slope = bp_aten_mul_scalar(c, result, log_of(base, grad_complex(result)));
    slope = grad_conj(c, slope);
    if (!is_complex_kind(base) && scalar_float(base) == 0)
        slope = grad_unless(c, not_below_zero(c, exponent), slope);
    grad_give(g, "exponent", grad_mul(c, g->grads[0], slope));
    return grad_done(c);
}

/* -- extrema: what is equal shares the gradient -------------------------------------------------------------------- */

typedef bp_tensor *(*compare_fn)(bp_ctx *c, bp_tensor *a, bp_tensor *b);

/* Half of it where both are equal. */
static bp_tensor *shared(bp_ctx *c, bp_tensor *grad, bp_tensor *a, bp_tensor *b)
{
    return bp_aten_where_self(c, bp_aten_eq_tensor(c, a, b), bp_aten_div_scalar(c, grad, bp_scalar_int(2)), grad);
}

/* loses(a, b): a is not the extremum. A NaN loses nowhere. */
static bp_status extremum(bp_ctx *c, grad_call *g, compare_fn loses)
{
    bp_tensor *self = grad_tensor(g, "self"), *other = grad_tensor(g, "other");
    bp_tensor *grad = shared(c, g->grads[0], self, other);
    if (grad_needs(g, "self"))
        grad_give(g, "self", grad_unless(c, loses(c, self, other), grad));
    if (grad_needs(g, "other"))
        grad_give(g, "other", grad_unless(c, loses(c, other, self), grad));
    return grad_done(c);
}

bp_status grad_maximum(bp_ctx *c, grad_call *g)
{
    return extremum(c, g, bp_aten_lt_tensor);
}

bp_status grad_minimum(bp_ctx *c, grad_call *g)
{
    return extremum(c, g, bp_aten_gt_tensor);
}

/* A NaN never wins, but of two the first does. */
static bp_status extremum_of_numbers(bp_ctx *c, grad_call *g, compare_fn holds, compare_fn wins)
{
    bp_tensor *self = grad_tensor(g, "self"), *other = grad_tensor(g, "other");
    bp_tensor *nan = bp_aten_isnan_default(c, other), *grad = shared(c, g->grads[0], self, other);
    if (grad_needs(g, "self"))
        grad_give(g, "self", grad_where(c, bp_aten_logical_or_default(c, holds(c, self, other), nan), grad));
    if (grad_needs(g, "other"))
        grad_give(g, "other", grad_unless(c, bp_aten_logical_or_default(c, wins(c, self, other), nan), grad));
    return grad_done(c);
}

bp_status grad_fmax(bp_ctx *c, grad_call *g)
{
    return extremum_of_numbers(c, g, bp_aten_ge_tensor, bp_aten_gt_tensor);
}

bp_status grad_fmin(bp_ctx *c, grad_call *g)
{
    return extremum_of_numbers(c, g, bp_aten_le_tensor, bp_aten_lt_tensor);
}
