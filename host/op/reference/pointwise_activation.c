/* Activation functions. Floats only, save hardtanh, relu6 and threshold, which PyTorch has for integers too. Where a
 * NaN must pass, the formula compares so that NaN falls through; where -0 must, it selects and does not add. */
#include "host/op/reference/loop_vector.h"
#include "host/op/reference/part.h"
#include "host/op/rows.h"
#include <math.h>
#include <tgmath.h>

/* A kernel of one operand and so many numbers behind it. */
#define ACTIVATION(name, count, ...)   \
    LOOPS_F(LOOP_1, name, __VA_ARGS__) \
    LOOP_KERNEL_N(name, 1, count, 0, LOOP_SET_F(name))

/* f32 by another formula, without calls. */
#define VECTOR_ACTIVATION(name, count, single, ...)     \
    LOOPV_1(name##_f32, float, float, single)           \
    LOOP_1(name##_f64, double, double, __VA_ARGS__)     \
    LOOP_KERNEL_N(name, 1, count, 0, LOOP_SET_F(name))

#define SQRT_HALF ((T)0.70710678118654752440)
#define CLAMP_6(x) ((x) < 0 ? (T)0 : (x) > 6 ? (T)6 : (x))
VECTOR_ACTIVATION(silu, 0, a / (1 + vmath_exp(-a)), a / ((T)1 + exp(-a)))
ACTIVATION(mish, 0, a *tanh(log1p(exp(a))))
VECTOR_ACTIVATION(hardswish, 0, a *CLAMP_6(a + 3) / 6, a *CLAMP_6(a + 3) / 6)
VECTOR_ACTIVATION(hardsigmoid, 0, CLAMP_6(a + 3) / 6, CLAMP_6(a + 3) / 6)
ACTIVATION(leaky_relu, 1, a > 0 ? a : a * LOOP_NUM(0))
ACTIVATION(softplus, 2, a *LOOP_NUM(0) > LOOP_NUM(1) ? a : log1p(exp(a * LOOP_NUM(0))) / LOOP_NUM(0))
LOOPS_F(LOOP_1, hardshrink, a >= -LOOP_NUM(0) && a <= LOOP_NUM(0) ? (T)0 : a)
LOOP_KERNEL_N(hardshrink, 1, 1, LOOP_ROUND_NUMBERS, LOOP_SET_F(hardshrink))
ACTIVATION(log_sigmoid, 0, (a < 0 ? a : (T)0) - log1p(exp(-fabs(a))) + (isnan(a) ? a : (T)0))

LOOPS_F(LOOP_1, softshrink, a > LOOP_NUM(0) ? a - LOOP_NUM(0) : a < -LOOP_NUM(0) ? a + LOOP_NUM(0) : a * 0)
static const loop_kernel softshrink_form = {{LOOP_SET_F(softshrink)}, 1, LOOP_ROUND_NUMBERS, 1};
bp_status kernel_softshrink(bp_ctx *c, op_call *k)
{
    double lambd = loop_number_of(arg_scalar(k->args, 1)).f;
    if (!(lambd >= 0))
        return op_fail(c, k->op, BP_INVALID_ARGUMENT, "argument \"lambd\": %g is negative", lambd);
    return loop_kernel_run_numbers(c, k, &softshrink_form);
}

/* elu and its relatives: params are the factor below zero, the factor above, and the factor of the exponent. */
LOOPS_F(LOOP_1, elu, a < 0 ? expm1(a * LOOP_NUM(2)) * LOOP_NUM(0) : a * LOOP_NUM(1))
static bp_status run_elu(bp_ctx *c, op_call *k, double below, double above, double inside)
{
    static const loop_kernel form = {{LOOP_SET_F(elu)}, 1, 0, 0};
    loop_number params[] = {{below, 0, 0}, {above, 0, 0}, {inside, 0, 0}};
    return loop_kernel_run(c, k, &form, params);
}

bp_status kernel_elu(bp_ctx *c, op_call *k)
{
    double alpha = loop_number_of(arg_scalar(k->args, 1)).f, scale = loop_number_of(arg_scalar(k->args, 2)).f;
    return run_elu(c, k, alpha * scale, scale, loop_number_of(arg_scalar(k->args, 3)).f);
}

bp_status kernel_celu(bp_ctx *c, op_call *k)
{
    double alpha = loop_number_of(arg_scalar(k->args, 1)).f;
    if (alpha == 0)
        return op_fail(c, k->op, BP_INVALID_ARGUMENT, "argument \"alpha\": must not be 0");
    return run_elu(c, k, alpha, 1, 1 / alpha);
}

bp_status kernel_selu(bp_ctx *c, op_call *k)
{
    const double alpha = 1.6732632423543772848, scale = 1.0507009873554804934;
    return run_elu(c, k, alpha * scale, scale, 1);
}

/* gelu, by the error function or by tanh. */
LOOPV_1(gelu_erf_f32, float, float, vmath_gelu(a))
LOOP_1(gelu_erf_f64, double, double, a *(T)0.5 * ((T)1 + erf(a * SQRT_HALF)))
#define GELU_INNER(x) ((T)0.79788456080286535588 * ((x) + (T)0.044715 * (x) * (x) * (x)))
#define GELU_TANH(TANH) (T)0.5 * a * ((T)1 + TANH(GELU_INNER(a)))
LOOPV_1(gelu_tanh_f32, float, float, GELU_TANH(vmath_tanh))
LOOP_1(gelu_tanh_f64, double, double, GELU_TANH(tanh))
/* Whether argument i of gelu says "tanh"; *bad: it says what is not known. */
static bool says_tanh(bp_ctx *c, op_call *k, uint32_t i)
{
    const char *how = arg_str(k->args, i);
    str given = str_of(how);
    if (!how || str_is(given, "none") || str_is(given, "tanh"))
        return how && str_is(given, "tanh");
    op_fail(c, k->op, BP_INVALID_ARGUMENT, "argument \"approximate\": \"%s\" is neither \"none\" nor \"tanh\"", how);
    return false;
}
bp_status kernel_gelu(bp_ctx *c, op_call *k)
{
    static const loop_kernel by_erf = {{LOOP_SET_F(gelu_erf)}, 1, 0, 0}, by_tanh = {{LOOP_SET_F(gelu_tanh)}, 1, 0, 0};
    const loop_kernel *form = says_tanh(c, k, 1) ? &by_tanh : &by_erf;
    return ctx_ok(c) ? loop_kernel_run(c, k, form, NULL) : c->diag.code;
}

LOOPS_F(LOOP_1, threshold, a <= LOOP_NUM(0) ? LOOP_NUM(1) : a)
LOOPS_I(LOOP_1, threshold, a <= LOOP_INT(0) ? LOOP_INT(1) : a)
LOOP_KERNEL_N(threshold, 1, 2, LOOP_NO_BOOL | LOOP_ROUND_NUMBERS, LOOP_SET_F(threshold), LOOP_SET_I(threshold))

/* log_sigmoid_forward gives exp(-|x|) too, for its backward. */
LOOPS_F(LOOP_1, exp_minus_abs, exp(-fabs(a)))
bp_status kernel_log_sigmoid_forward(bp_ctx *c, op_call *k)
{
    static const loop_table buffer = {LOOP_SET_F(exp_minus_abs)};
    TRY(kernel_log_sigmoid(c, k));
    bp_dtype d = k->out[1]->dtype;
    loop_operand o[] = {loop_out(k, 1, loop_type(d)), loop_arg(k, 0, d)};
    return loop_run(c, 1, 1, o, loop_pick(&buffer, d), NULL);
}

/* prelu's slope is one number, or one a channel (dimension 1). */
LOOPS_F(LOOP_2, prelu, a > 0 ? a : b * a)
LOOP_KERNEL(private_prelu_kernel, 2, 0, LOOP_SET_F(prelu))
bp_status kernel_prelu(bp_ctx *c, op_call *k)
{
    static const loop_table loops = {LOOP_SET_F(prelu)};
    bp_dtype d = k->out[0]->dtype;
    loop_operand o[] = {loop_out(k, 0, loop_type(d)), loop_arg(k, 0, d), loop_arg(k, 1, d)};
    loop_fn f = loop_pick(&loops, d);
    if (!f)
        return loop_no_type(c, k->op, d);
    bp_tensor *weight = o[2].t, *along = part_along(c, weight, o[1].t->rank, o[1].t->rank > 1 ? 1 : 0);
    if (!along)
        return c->diag.code;
    o[2].t = along;
    bp_status s = loop_run(c, 1, 2, o, f, NULL);
    tensor_unref(along);
    return s;
}

/* glu: the first half of a dimension times the sigmoid of the second. */
LOOPS_F(LOOP_2, glu, a *((T)1 / ((T)1 + exp(-b))))
bp_status kernel_glu(bp_ctx *c, op_call *k)
{
    static const loop_table loops = {LOOP_SET_F(glu)};
    bp_dtype d = k->out[0]->dtype;
    loop_fn f = loop_pick(&loops, d);
    if (!f)
        return loop_no_type(c, k->op, d);
    bp_tensor *x = arg_tensor(k->args, 0);
    uint32_t dim;
    TRY(op_wrap_dim(c, k->op, "dim", arg_int(c, k->args, 1), x->rank, &dim));
    int64_t half = tensor_dim(x, dim) / 2;
    bp_tensor *first = part_narrow(c, x, dim, 0, half), *second = part_narrow(c, x, dim, half, half);
    bp_status s = c->diag.code;
    if (first && second) {
        loop_operand o[] = {loop_out(k, 0, loop_type(d)), {first, {0, 0, {0}}, d, loop_type(d)},
                            {second, {0, 0, {0}}, d, loop_type(d)}};
        s = loop_run(c, 1, 2, o, f, NULL);
    }
    tensor_unref(first);
    tensor_unref(second);
    return s;
}
