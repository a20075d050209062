/* Gradients of activation functions: operand a is the gradient of the result, b the argument (or the result) of the
 * forward. A NaN there passes the gradient on, as PyTorch's scalar formulas do. */
#include "host/op/reference/loop.h"
#include "host/op/reference/part.h"
#include "host/op/rows.h"
#include <math.h>
#include <tgmath.h>

#define BACKWARD(name, count, ...)     \
    LOOPS_F(LOOP_2, name, __VA_ARGS__) \
    LOOP_KERNEL_N(name, 2, count, 0, LOOP_SET_F(name))
#define BACKWARD_ROUNDED(name, count, ...) \
    LOOPS_F(LOOP_2, name, __VA_ARGS__)     \
    LOOP_KERNEL_N(name, 2, count, LOOP_ROUND_NUMBERS, LOOP_SET_F(name))
#define SIGMOID(x) ((T)1 / ((T)1 + exp(-(x))))
#define SQUARE(x) ((x) * (x))

BACKWARD(sigmoid_backward, 0, a *((T)1 - b) * b)
BACKWARD(tanh_backward, 0, a *((T)1 - b * b))
BACKWARD(silu_backward, 0, a *SIGMOID(b) * ((T)1 + b * ((T)1 - SIGMOID(b))))
BACKWARD(mish_backward, 0,
         a *(tanh(log1p(exp(b))) + b * SIGMOID(b) * ((T)1 - SQUARE(tanh(log1p(exp(b)))))))
BACKWARD(hardswish_backward, 0, b <= -3 ? (T)0 : b < 3 ? a * (b / 3 + (T)0.5) : a)
BACKWARD(hardsigmoid_backward, 0, b > -3 && b < 3 ? a * (T)(1. / 6) : (T)0)
BACKWARD(leaky_relu_backward, 1, b > 0 ? a : a * LOOP_NUM(0))
BACKWARD(softplus_backward, 2,
         b *LOOP_NUM(0) > LOOP_NUM(1) ? a : a * exp(b * LOOP_NUM(0)) / (exp(b * LOOP_NUM(0)) + (T)1))
BACKWARD(hardtanh_backward, 2, b <= LOOP_NUM(0) || b >= LOOP_NUM(1) ? (T)0 : a)
BACKWARD_ROUNDED(softshrink_backward, 1, b >= -LOOP_NUM(0) && b <= LOOP_NUM(0) ? (T)0 : a)

LOOPS_F(LOOP_2, threshold_backward, b <= LOOP_NUM(0) ? (T)0 : a)
LOOPS_I(LOOP_2, threshold_backward, b <= LOOP_INT(0) ? (T)0 : a)
LOOP_KERNEL_N(threshold_backward, 2, 1, LOOP_NO_BOOL | LOOP_ROUND_NUMBERS, LOOP_SET_F(threshold_backward),
              LOOP_SET_I(threshold_backward))

/* -- gelu -- */
#define BETA ((T)0.79788456080286535588)
#define KAPPA ((T)0.044715)
#define GELU_TANH(x) tanh(BETA *((x) + KAPPA * (x) * (x) * (x)))
LOOPS_F(LOOP_2, gelu_erf_backward,
        a *((T)0.5 * ((T)1 + erf(b * (T)0.70710678118654752440)) +
            b * exp(b * b * (T)-0.5) * (T)0.39894228040143267794))
LOOPS_F(LOOP_2, gelu_tanh_backward,
        a *((T)0.5 * ((T)1 + GELU_TANH(b)) +
            (T)0.5 * b * ((T)1 - SQUARE(GELU_TANH(b))) * BETA * ((T)1 + 3 * KAPPA * b * b)))
bp_status kernel_gelu_backward(bp_ctx *c, op_call *k)
{
    static const loop_kernel by_erf = {{LOOP_SET_F(gelu_erf_backward)}, 2, 0, 0};
    static const loop_kernel by_tanh = {{LOOP_SET_F(gelu_tanh_backward)}, 2, 0, 0};
    const char *how = arg_str(k->args, 2);
    return loop_kernel_run(c, k, how && str_is(str_of(how), "tanh") ? &by_tanh : &by_erf, NULL);
}

/* -- elu: numbers are the factor below zero, the factor above, and the factor of the exponent -- */
#define ELU_BELOW LOOP_NUM(0)
#define ELU_ABOVE LOOP_NUM(1)
#define ELU_INSIDE LOOP_NUM(2)
LOOPS_F(LOOP_2, elu_of_result, b <= 0 ? a * ELU_INSIDE * (b + ELU_BELOW) : a * ELU_ABOVE)
LOOPS_F(LOOP_2, elu_of_argument, b <= 0 ? a * ELU_INSIDE * ELU_BELOW * exp(b * ELU_INSIDE) : a * ELU_ABOVE)
bp_status kernel_elu_backward(bp_ctx *c, op_call *k)
{
    static const loop_table of_result = {LOOP_SET_F(elu_of_result)}, of_argument = {LOOP_SET_F(elu_of_argument)};
    double alpha = arg_float(k->args, 1), scale = arg_float(k->args, 2);
    bool is_result = arg_bool(k->args, 4);
    if (is_result && alpha < 0)
        return op_fail(c, k->op, BP_INVALID_ARGUMENT, "argument \"alpha\": %g is negative, and only the result is kept",
                       alpha);
    loop_number numbers[] = {{alpha * scale, 0, 0}, {scale, 0, 0}, {arg_float(k->args, 3), 0, 0}};
    bp_dtype d = k->out[0]->dtype;
    loop_fn f = loop_pick(is_result ? &of_result : &of_argument, d);
    if (!f)
        return loop_no_type(c, k->op, d);
    loop_operand o[] = {loop_out(k, 0, loop_type(d)), loop_arg(k, 0, d), loop_arg(k, 5, d)};
    return loop_run(c, 1, 2, o, f, numbers);
}

/* -- logit: outside [eps, 1 - eps] there is no gradient; without eps, NaN outside [0, 1] -- */
LOOPS_F(LOOP_2, logit_backward, b < 0 || b > 1 ? (T)NAN : b == 0 || b == 1 ? a * (T)INFINITY : a / (b * ((T)1 - b)))
LOOPS_F(LOOP_2, logit_eps_backward, b < LOOP_NUM(0) || b > (T)1 - LOOP_NUM(0) ? (T)0 : a / (b * ((T)1 - b)))
bp_status kernel_logit_backward(bp_ctx *c, op_call *k)
{
    static const loop_kernel plain = {{LOOP_SET_F(logit_backward)}, 2, 0, 0};
    static const loop_kernel clamped = {{LOOP_SET_F(logit_eps_backward)}, 2, 0, 0};
    loop_number eps = {arg_is_none(k->args, 2) ? -1 : arg_float(k->args, 2), 0, 0};
    return loop_kernel_run(c, k, eps.f < 0 ? &plain : &clamped, &eps);
}

/* -- log_sigmoid: the third operand is exp(-|x|), kept by the forward -- */
LOOPS_F(LOOP_3, log_sigmoid_backward, b < 0 ? a * ((T)1 - e / ((T)1 + e)) : a * (e / ((T)1 + e)))
LOOP_KERNEL(log_sigmoid_backward, 3, 0, LOOP_SET_F(log_sigmoid_backward))

/* -- glu: operands are the gradient and the two halves -- */
#define GLU_FIRST(R) ((void)b, R(SIGMOID(e)) * a)
#define GLU_SECOND(R) (((T)1 - R(SIGMOID(e))) * R(SIGMOID(e)) * b * a)
LOOPS_STEPS(LOOP_3, glu_first, GLU_FIRST)
LOOPS_STEPS(LOOP_3, glu_second, GLU_SECOND)
bp_status kernel_glu_backward(bp_ctx *c, op_call *k)
{
    static const loop_table first = {LOOP_SET_STEPS(glu_first)}, second = {LOOP_SET_STEPS(glu_second)};
    bp_dtype d = k->out[0]->dtype, loop = loop_type(d);
    loop_fn f[2] = {loop_pick(&first, d), loop_pick(&second, d)};
    if (!f[0])
        return loop_no_type(c, k->op, d);
    bp_tensor *x = arg_tensor(k->args, 1), *halves[4] = {NULL};
    uint32_t dim;
    TRY(op_wrap_dim(c, k->op, "dim", arg_int(c, k->args, 2), x->rank, &dim));
    int64_t half = tensor_dim(x, dim) / 2;
    for (uint32_t i = 0; i < 4 && ctx_ok(c); i++)
        halves[i] = part_narrow(c, i < 2 ? x : k->out[0], dim, i % 2 * half, half);
    for (uint32_t i = 0; i < 2 && ctx_ok(c); i++) {
        loop_operand o[] = {{halves[2 + i], {0, 0, {0}}, d, loop}, loop_arg(k, 0, d),
                            {halves[0], {0, 0, {0}}, d, loop}, {halves[1], {0, 0, {0}}, d, loop}};
        loop_run(c, 1, 3, o, f[i], NULL);
    }
    for (uint32_t i = 0; i < 4; i++)
        tensor_unref(halves[i]);
    return c->diag.code;
}

/* -- prelu: gradients of the argument and of the slope, the latter not yet summed -- */
#define PRELU_BACKWARD(fn, TF)                                                                    \
    static void fn(int64_t n, char *const *data, const int64_t *step, void *params)               \
    {                                                                                             \
        (void)params;                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                         \
            TF grad = LOOP_AT(const TF, 2)[i * step[2]], x = LOOP_AT(const TF, 3)[i * step[3]];   \
            LOOP_AT(TF, 0)[i * step[0]] = x > 0 ? grad : LOOP_AT(const TF, 4)[i * step[4]] * grad; \
            LOOP_AT(TF, 1)[i * step[1]] = x > 0 ? 0 : x * grad;                                   \
        }                                                                                         \
    }
PRELU_BACKWARD(prelu_backward_f32, float)
PRELU_BACKWARD(prelu_backward_f64, double)
bp_status kernel_private_prelu_kernel_backward(bp_ctx *c, op_call *k)
{
    static const loop_table loops = {LOOP_SET_F(prelu_backward)};
    bp_dtype d = k->out[0]->dtype;
    loop_fn f = loop_pick(&loops, d);
    loop_operand o[] = {loop_out(k, 0, loop_type(d)), loop_out(k, 1, loop_type(d)), loop_arg(k, 0, d),
                        loop_arg(k, 1, d), loop_arg(k, 2, d)};
    return f ? loop_run(c, 2, 3, o, f, NULL) : loop_no_type(c, k->op, d);
}
