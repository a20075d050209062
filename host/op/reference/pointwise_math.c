/* Pointwise functions of one argument that give floats: exponentials, trigonometry, special functions.
 *
 * Integers are computed in the default float type. f32 goes through the C library's float functions where those are
 * within an ulp, else through double; both round once. */
#include "host/op/reference/loop.h"
#include "host/op/reference/special.h"
#include "host/op/rows.h"
#include <complex.h>
#include <math.h>
#include <tgmath.h>

/* A function of floats, and one of complex numbers as well. `...` is a formula in a, of type T. */
#define FLOAT_FN(name, ...)           \
    LOOPS_F(LOOP_1, name, __VA_ARGS__) \
    LOOP_KERNEL(name, 1, LOOP_TO_FLOAT, LOOP_SET_F(name))
#define COMPLEX_FN(name, ...)          \
    LOOPS_F(LOOP_1, name, __VA_ARGS__) \
    LOOPS_C(LOOP_1, name, __VA_ARGS__) \
    LOOP_KERNEL(name, 1, LOOP_TO_FLOAT, LOOP_SET_F(name), LOOP_SET_C(name))
/* Computed in double: what the C library has in float is too coarse, or is ours. */
#define DOUBLE_FN(name, fn) FLOAT_FN(name, (fn)((double)a))

COMPLEX_FN(exp, exp(a))
COMPLEX_FN(log, log(a))
COMPLEX_FN(sqrt, sqrt(a))
COMPLEX_FN(sin, sin(a))
COMPLEX_FN(cos, cos(a))
COMPLEX_FN(tan, tan(a))
COMPLEX_FN(sinh, sinh(a))
COMPLEX_FN(cosh, cosh(a))
COMPLEX_FN(tanh, tanh(a))
FLOAT_FN(exp2, exp2(a))
FLOAT_FN(expm1, expm1(a))
FLOAT_FN(log2, log2(a))
FLOAT_FN(log10, log10(a))
FLOAT_FN(log1p, log1p(a))
FLOAT_FN(rsqrt, (T)1 / sqrt(a))
FLOAT_FN(reciprocal, (T)1 / a)
FLOAT_FN(sigmoid, (T)1 / ((T)1 + exp(-a)))
FLOAT_FN(erf, erf(a))
DOUBLE_FN(asin, asin)
DOUBLE_FN(acos, acos)
DOUBLE_FN(atan, atan)
DOUBLE_FN(asinh, asinh)
DOUBLE_FN(acosh, acosh)
DOUBLE_FN(atanh, atanh)
DOUBLE_FN(erfc, erfc)
DOUBLE_FN(erfinv, special_erfinv)
DOUBLE_FN(lgamma, special_lgamma)
DOUBLE_FN(digamma, special_digamma)
DOUBLE_FN(i0, special_i0)
DOUBLE_FN(special_i0e, special_i0e)
DOUBLE_FN(special_i1, special_i1)
DOUBLE_FN(special_i1e, special_i1e)
DOUBLE_FN(special_erfcx, special_erfcx)
DOUBLE_FN(special_ndtri, special_ndtri)
DOUBLE_FN(special_log_ndtr, special_log_ndtr)
DOUBLE_FN(special_bessel_j0, j0)
DOUBLE_FN(special_bessel_j1, j1)
DOUBLE_FN(special_modified_bessel_k0, special_k0)
DOUBLE_FN(special_modified_bessel_k1, special_k1)
DOUBLE_FN(special_scaled_modified_bessel_k0, special_k0e)
DOUBLE_FN(special_scaled_modified_bessel_k1, special_k1e)

/* Of the second kind: -inf at 0, NaN below, and NaN at infinity as PyTorch's series gives. */
static double bessel_y(double x, double (*fn)(double))
{
    return x == 0 ? -INFINITY : x > 0 ? fn(x) : NAN;
}
FLOAT_FN(special_bessel_y0, bessel_y((double)a, y0))
FLOAT_FN(special_bessel_y1, bessel_y((double)a, y1))

/* In the argument's own type, as what PyTorch rounds shows at whole numbers. */
#define PI ((T)3.14159265358979323846)
FLOAT_FN(sinc, a == 0 ? (T)1 : sin(PI * a) / (PI * a))
FLOAT_FN(special_ndtr, (double)a < 0 ? erfc(-(double)a / sqrt(2.)) / 2 : 1 - erfc((double)a / sqrt(2.)) / 2)
FLOAT_FN(special_entr, isnan(a) ? a : a > 0 ? -a *log(a) : a == 0 ? (T)0 : (T)-INFINITY)
FLOAT_FN(special_spherical_bessel_j0, isinf(a) ? (T)0 : a == 0 ? (T)1 : sin(a) / a)
FLOAT_FN(deg2rad, a *(T)(3.14159265358979323846 / 180))
FLOAT_FN(rad2deg, a *(T)(180 / 3.14159265358979323846))

/* angle: pi for negative numbers, NaN for NaN, 0 else. */
LOOPS_F(LOOP_1, angle, isnan(a) ? a : a < 0 ? PI : (T)0)
LOOP_1(angle_c64, float, float _Complex, carg(a))
LOOP_1(angle_c128, double, double _Complex, carg(a))
LOOP_KERNEL(angle, 1, LOOP_TO_FLOAT | LOOP_REAL_OUT, LOOP_SET_F(angle), LOOP_SET_C(angle))

/* logit: eps clamps the argument to [eps, 1 - eps] first; not given, it is -1. */
LOOPS_F(LOOP_1, logit, log(a / ((T)1 - a)))
LOOPS_F(LOOP_1, logit_eps,
        a < LOOP_NUM(0) ? log(LOOP_NUM(0) / ((T)1 - LOOP_NUM(0)))
        : a > (T)1 - LOOP_NUM(0) ? log(((T)1 - LOOP_NUM(0)) / ((T)1 - ((T)1 - LOOP_NUM(0)))) : log(a / ((T)1 - a)))
bp_status kernel_logit(bp_ctx *c, op_call *k)
{
    static const loop_kernel plain = {{LOOP_SET_F(logit)}, 1, LOOP_TO_FLOAT, 0};
    static const loop_kernel clamped = {{LOOP_SET_F(logit_eps)}, 1, LOOP_TO_FLOAT, 0};
    loop_number eps = {arg_is_none(k->args, 1) ? -1 : arg_float(k->args, 1), 0, 0};
    return loop_kernel_run(c, k, eps.f < 0 ? &plain : &clamped, &eps);
}

/* polygamma: order 0 is digamma, 1 has a formula of its own, the rest are zeta(n + 1) with a factor. */
#define TRIGAMMA(TF, name)                                                                       \
    static TF name(TF x)                                                                         \
    {                                                                                            \
        typedef TF T;                                                                            \
        T sign = 1, result = 0;                                                                  \
        if (x < (T)0.5) {                                                                        \
            T s = sin(PI * x);                                                                   \
            sign = -1;                                                                           \
            result = -(PI * PI) / (s * s);                                                       \
            x = 1 - x;                                                                           \
        }                                                                                        \
        for (int i = 0; i < 6; i++, x += 1)                                                      \
            result += 1 / (x * x);                                                               \
        T y = 1 / (x * x);                                                                       \
        T series = (T)(1. / 6) - y * ((T)(1. / 30) - y * ((T)(1. / 42) - y * (T)(1. / 30)));     \
        return sign * (result + (1 + 1 / (2 * x) + y * series) / x);                             \
    }
TRIGAMMA(float, trigamma_float)
TRIGAMMA(double, trigamma_double)

static double polygamma(double n, double x)
{
    double factor = exp(special_lgamma(n + 1));
    return (fmod(n, 2) == 1 ? factor : -factor) * special_zeta(n + 1, x);
}

LOOP_1(trigamma_f32, float, float, trigamma_float(a))
LOOP_1(trigamma_f64, double, double, trigamma_double(a))
LOOPS_F(LOOP_1, polygamma, polygamma(((const loop_number *)params)->f, (double)a))
bp_status kernel_polygamma(bp_ctx *c, op_call *k)
{
    static const loop_table forms[] = {{LOOP_SET_F(digamma)}, {LOOP_SET_F(trigamma)}, {LOOP_SET_F(polygamma)}};
    int64_t n = arg_int(c, k->args, 0);
    loop_number order = {(double)n, 0, n};
    bp_dtype d = k->out[0]->dtype;
    loop_operand o[] = {loop_out(k, 0, loop_type(d)), loop_arg(k, 1, d)};
    loop_fn f = loop_pick(&forms[n < 2 ? n : 2], d);
    return f ? loop_run(c, 1, 1, o, f, &order) : loop_no_type(c, k->op, d);
}

/* mvlgamma: lgamma at x, x - 1/2, ... x - (p - 1)/2, and a constant. */
static double sum_lgamma(double x, double p)
{
    double sum = p * (p - 1) / 4 * log(3.14159265358979323846);
    for (double j = 0; j < p; j += 1)
        sum += special_lgamma(x - j / 2);
    return sum;
}
LOOPS_F(LOOP_1, mvlgamma, sum_lgamma((double)a, ((const loop_number *)params)->f))
bp_status kernel_mvlgamma(bp_ctx *c, op_call *k)
{
    static const loop_kernel form = {{LOOP_SET_F(mvlgamma)}, 1, LOOP_TO_FLOAT, 0};
    loop_number p = {(double)arg_int(c, k->args, 1), 0, 0};
    return loop_kernel_run(c, k, &form, &p);
}
