/* Derivatives of activation functions and of their gradients: the second derivatives in closed form. */
#include "host/grad/math.h"
#include <math.h>
#include <string.h>

bp_status grad_celu(bp_ctx *c, grad_call *g)
{
    bp_scalar alpha = grad_arg_scalar(g, "alpha");
    grad_give(g, "self", bp_aten_elu_backward_default(c, g->grads[0], alpha, bp_scalar_float(1),
                                                      bp_scalar_float(1 / scalar_float(alpha)), false,
                                                      grad_tensor(g, "self")));
    return grad_done(c);
}

bp_status grad_elu_backward(bp_ctx *c, grad_call *g)
{
    bp_tensor *grad = g->grads[0], *x = grad_tensor(g, "self_or_result");
    bp_scalar alpha = grad_arg_scalar(g, "alpha"), scale = grad_arg_scalar(g, "scale");
    bp_scalar inner = grad_arg_scalar(g, "input_scale");
    bool is_result = grad_arg_bool(g, "is_result");
    if (grad_needs(g, "grad_output"))
        grad_give(g, "grad_output", bp_aten_elu_backward_default(c, grad, alpha, scale, inner, is_result, x));
    if (grad_needs(g, "self_or_result")) {
        bp_tensor *bend = bp_aten_mul_scalar(c, grad_mul(c, grad, grad_tensor(g, "grad_output")), inner);
        if (!is_result)
            bend = bp_aten_elu_backward_default(c, bend, alpha, scale, inner, false, x);
        grad_give(g, "self_or_result", grad_unless(c, bp_aten_gt_scalar(c, x, bp_scalar_int(0)), bend));
    }
    return grad_done(c);
}

/* -- gelu ---------------------------------------------------------------------------------------------------------- */

/* (2 - x^2) times the density of the normal distribution. */
static bp_tensor *bend_of_erf(bp_ctx *c, bp_tensor *x)
{
    bp_tensor *square = grad_square(c, x), *density = bp_aten_exp_default(c, grad_scaled(c, square, -0.5));
    return grad_mul(c, grad_scaled(c, density, M_SQRT1_2 * M_2_SQRTPI * 0.5), grad_from(c, 2, square));
}

/* With u = a (x + b x^3) and t = tanh(u): (1 - t^2) (u' + x (u'' / 2 - t u'^2)). */
static bp_tensor *bend_of_tanh(bp_ctx *c, bp_tensor *x)
{
    const double a = M_SQRT2 * M_2_SQRTPI * 0.5, b = 0.044715;
    bp_tensor *square = grad_square(c, x);
    bp_tensor *u = grad_mul(c, x, grad_plus(c, grad_scaled(c, square, a * b), a));
    bp_tensor *t = bp_aten_tanh_default(c, u), *slope = grad_plus(c, grad_scaled(c, square, 3 * a * b), a);
    bp_tensor *bend = grad_sub(c, grad_scaled(c, x, 3 * a * b), grad_mul(c, t, grad_square(c, slope)));
    bend = grad_add(c, slope, grad_mul(c, x, bend));
    return grad_mul(c, grad_from(c, 1, grad_square(c, t)), bend);
}

bp_status grad_gelu_backward(bp_ctx *c, grad_call *g)
{
    bp_tensor *grad = g->grads[0], *x = grad_tensor(g, "self");
    const char *how = grad_arg_str(g, "approximate");
    if (grad_needs(g, "grad_output"))
        grad_give(g, "grad_output", bp_aten_gelu_backward_default(c, grad, x, how));
    if (grad_needs(g, "self")) {
        bp_tensor *bend = how && !strcmp(how, "tanh") ? bend_of_tanh(c, x) : bend_of_erf(c, x);
        grad_give(g, "self", grad_mul(c, grad_mul(c, grad, grad_tensor(g, "grad_output")), bend));
    }
    return grad_done(c);
}

/* -- logit --------------------------------------------------------------------------------------------------------- */

/* 1 / (x (1 - x)) twice, times (2 x - 1): outside of its domain each is what logit_backward makes of it. */
bp_status grad_logit_backward(bp_ctx *c, grad_call *g)
{
    bp_tensor *grad = g->grads[0], *x = grad_tensor(g, "self");
    bp_scalar eps = grad_given(g, "eps") ? grad_arg_scalar(g, "eps") : (bp_scalar){0};
    if (grad_needs(g, "grad_output"))
        grad_give(g, "grad_output", bp_aten_logit_backward_default(c, grad, x, eps));
    if (grad_needs(g, "self")) {
        bp_tensor *t = grad_mul(c, grad, grad_tensor(g, "grad_output"));
        t = grad_mul(c, t, grad_plus(c, grad_scaled(c, x, 2), -1));
        t = bp_aten_logit_backward_default(c, bp_aten_logit_backward_default(c, t, x, eps), x, eps);
        grad_give(g, "self", t);
    }
    return grad_done(c);
}

/* -- prelu --------------------------------------------------------------------------------------------------------- */

bp_status grad_prelu_kernel(bp_ctx *c, grad_call *g)
{
    bp_tensor2 t = bp_aten_private_prelu_kernel_backward_default(c, g->grads[0], grad_tensor(g, "self"),
                                                                 grad_tensor(g, "weight"));
    grad_give(g, "self", t.at[0]);
    grad_give(g, "weight", t.at[1]);
    return grad_done(c);
}

/* The two results are grad_output, times weight below 0; and grad_output times self below 0. */
bp_status grad_prelu_kernel_backward(bp_ctx *c, grad_call *g)
{
    bp_tensor *by_self = g->grads[0], *by_weight = g->grads[1], *out = grad_tensor(g, "grad_output");
    bp_tensor *self = grad_tensor(g, "self"), *weight = grad_tensor(g, "weight");
    bp_tensor *above = bp_aten_ge_scalar(c, self, bp_scalar_int(0));
    if (grad_needs(g, "grad_output")) {
        bp_tensor *a = by_self ? bp_aten_where_self(c, above, by_self, grad_mul(c, by_self, weight)) : NULL;
        bp_tensor *b = by_weight ? grad_unless(c, above, grad_mul(c, by_weight, self)) : NULL;
        grad_give(g, "grad_output", grad_add(c, a, b));
    }
    if (grad_needs(g, "self") && by_weight)
        grad_give(g, "self", grad_unless(c, above, grad_mul(c, out, by_weight)));
    if (grad_needs(g, "weight") && by_self)
        grad_give(g, "weight", grad_unless(c, above, grad_mul(c, out, by_self)));
    return grad_done(c);
}

/* -- glu ----------------------------------------------------------------------------------------------------------- */

typedef struct { bp_tensor *at[2]; } halves;

static halves cut(bp_ctx *c, bp_tensor *t, uint32_t dim)
{
    bp_dim zero = dim_const(0), end = grad_size(t, (int32_t)dim), half = dim_floordiv(c, end, dim_const(2));
    return (halves){{grad_cut(c, t, dim, zero, half), grad_cut(c, t, dim, half, end)}};
}

/* glu_backward gives g s and g a s (1 - s), with self = (a, b), s = sigmoid(b) and g the gradient. */
bp_status grad_glu_backward(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self"), *out = grad_tensor(g, "grad_output");
    uint32_t dim = grad_arg_wrapped(c, g, "dim", grad_rank(self));
    halves x = cut(c, self, dim), grad = cut(c, g->grads[0], dim);
    bp_tensor *s = bp_aten_sigmoid_default(c, x.at[1]), *slope = grad_mul(c, s, grad_from(c, 1, s));
    bp_tensor *bent = grad_mul(c, grad.at[1], slope);
    if (grad_needs(g, "grad_output"))
        grad_give(g, "grad_output", grad_add(c, grad_mul(c, grad.at[0], s), grad_mul(c, bent, x.at[0])));
    if (grad_needs(g, "self")) {
        bp_tensor *twice = grad_mul(c, grad_mul(c, bent, x.at[0]), grad_from(c, 1, grad_scaled(c, s, 2)));
        bp_tensor *parts[] = {grad_mul(c, bent, out),
                              grad_mul(c, grad_add(c, grad_mul(c, grad.at[0], slope), twice), out)};
        grad_give(g, "self", bp_aten_cat_default(c, (bp_tensors){parts, 2}, dim));
    }
    return grad_done(c);
}
