/* Pointwise functions of one argument that give floats: exponentials, trigonometry, special functions.
 *
 * Integers are computed in the default float type. f32 goes through vmath.h, or the C library's float functions where
 * those are within an ulp, else through double; the latter round once. */
#include "host/op/reference/cx.h"
#include "host/op/reference/loop_vector.h"
#include "host/op/reference/special.h"
#include "host/op/rows.h"
#include <tgmath.h>

/* A function of floats, and one of complex numbers as well. `...` is a formula in a, of type T. */
#define FLOAT_FN(name, ...)           \
    LOOPS_F(LOOP_1, name, __VA_ARGS__) \
    LOOP_KERNEL(name, 1, LOOP_TO_FLOAT, LOOP_SET_F(name))
#define COMPLEX_FN(name, ...)          \
    LOOPS_F(LOOP_1, name, __VA_ARGS__) \
    LOOPS_C(LOOP_1, name, __VA_ARGS__) \
    LOOP_KERNEL(name, 1, LOOP_TO_FLOAT, LOOP_SET_F(name), LOOP_SET_C(name))
/* f32 by vmath.h's functions. */
#define VECTOR_COMPLEX_FN(name, single, ...)            \
    LOOPV_1(name##_f32, float, float, single)           \
    LOOP_1(name##_f64, double, double, __VA_ARGS__)     \
    LOOPS_C(LOOP_1, name, __VA_ARGS__)                  \
    LOOP_KERNEL(name, 1, LOOP_TO_FLOAT, LOOP_SET_F(name), LOOP_SET_C(name))
#define STEPS_FN(name, FORMULA)           \
    LOOPS_STEPS(LOOP_1, name, FORMULA)    \
    LOOP_KERNEL(name, 1, LOOP_TO_FLOAT, LOOP_SET_STEPS(name))
/* Computed in double: what the C library has in float is too coarse, or is ours. */
#define DOUBLE_FN(name, fn) FLOAT_FN(name, (fn)((double)a))
/* Those that PyTorch has for f32 and f64 only. */
#define FULL_FN(name, ...)              \
    LOOPS_F(LOOP_1, name, __VA_ARGS__)  \
    LOOP_KERNEL(name, 1, LOOP_TO_FLOAT | LOOP_NO_HALF, LOOP_SET_F(name))

VECTOR_COMPLEX_FN(exp, vmath_exp(a), exp(a))
VECTOR_COMPLEX_FN(log, vmath_log(a), log(a))
VECTOR_COMPLEX_FN(sqrt, sqrtf(a), sqrt(a))
COMPLEX_FN(sin, sin(a))
COMPLEX_FN(cos, cos(a))
COMPLEX_FN(tan, tan(a))
COMPLEX_FN(sinh, sinh(a))
COMPLEX_FN(cosh, cosh(a))
VECTOR_COMPLEX_FN(tanh, vmath_tanh(a), tanh(a))
FLOAT_FN(exp2, exp2(a))
FLOAT_FN(expm1, expm1(a))
FLOAT_FN(log2, log2(a))
FLOAT_FN(log10, log10(a))
FLOAT_FN(log1p, log1p(a))
VECTOR_COMPLEX_FN(sigmoid, vmath_sigmoid(a), (T)1 / ((T)1 + exp(-a)))
LOOPS_F(LOOPV_1, rsqrt, (T)1 / sqrt(a))
LOOP_KERNEL(rsqrt, 1, LOOP_TO_FLOAT, LOOP_SET_F(rsqrt))
LOOPS_F(LOOPV_1, reciprocal, (T)1 / a)
LOOPS_C(LOOP_1, reciprocal, cx_div(1, (cx)a))
LOOP_KERNEL(reciprocal, 1, LOOP_TO_FLOAT, LOOP_SET_F(reciprocal), LOOP_SET_C(reciprocal))
LOOPV_1(erf_f32, float, float, vmath_erf(a))
LOOP_1(erf_f64, double, double, erf(a))
LOOP_KERNEL(erf, 1, LOOP_TO_FLOAT, LOOP_SET_F(erf))
/* f32 by way of double, complex numbers by the C library's functions. */
#define INVERSE_FN(name)                                   \
    LOOPS_F(LOOP_1, name, (name)((double)a))               \
    LOOPS_C(LOOP_1, name, (c##name)((cx)a))                \
    LOOP_KERNEL(name, 1, LOOP_TO_FLOAT, LOOP_SET_F(name), LOOP_SET_C(name))
INVERSE_FN(asin)
INVERSE_FN(acos)
INVERSE_FN(atan)
INVERSE_FN(asinh)
INVERSE_FN(acosh)
INVERSE_FN(atanh)
DOUBLE_FN(erfc, erfc)
DOUBLE_FN(erfinv, special_erfinv)
DOUBLE_FN(lgamma, special_lgamma)
DOUBLE_FN(digamma, special_digamma)
DOUBLE_FN(special_i0e, special_i0e)
DOUBLE_FN(special_i1e, special_i1e)
FULL_FN(special_ndtri, special_ndtri((double)a))
FULL_FN(special_log_ndtr, special_log_ndtr((double)a))
FULL_FN(special_modified_bessel_k0, special_k0((double)a))
FULL_FN(special_modified_bessel_k1, special_k1((double)a))
FULL_FN(special_scaled_modified_bessel_k0, special_k0e((double)a))
FULL_FN(special_scaled_modified_bessel_k1, special_k1e((double)a))

/* What grows as exp does overflows where exp does in the type; at infinity the product of the two parts is NaN. */
FLOAT_FN(i0, exp(fabs(a)) * (T)special_i0e((double)a))
FLOAT_FN(special_i1, exp(fabs(a)) * (T)special_i1e((double)a))
FULL_FN(special_modified_bessel_i0, exp(fabs(a)) * (T)special_i0e((double)a))
FULL_FN(special_modified_bessel_i1, exp(fabs(a)) * (T)special_i1e((double)a))
FULL_FN(special_erfcx, a < 0 ? 2 * exp(a * a) - (T)special_erfcx(-(double)a) : (T)special_erfcx((double)a))

FULL_FN(special_bessel_j0, special_bessel_j(0, (double)a))
FULL_FN(special_bessel_j1, special_bessel_j(1, (double)a))
FULL_FN(special_bessel_y0, special_bessel_y(0, (double)a))
FULL_FN(special_bessel_y1, special_bessel_y(1, (double)a))

/* In the argument's own type, as what PyTorch rounds shows at whole numbers. */
#define PI ((T)3.14159265358979323846)
FLOAT_FN(sinc, a == 0 ? (T)1 : sin(PI * a) / (PI * a))
#define NDTR(R) (R(R(erf(R(a *(T)0.70710678118654752440))) + (T)1) * (T)0.5)
#define ENTR(R) (isnan(a) ? a : a > 0 ? -a * R(log(a)) : a == 0 ? (T)0 : (T)-INFINITY)
STEPS_FN(special_ndtr, NDTR)
STEPS_FN(special_entr, ENTR)
FULL_FN(special_airy_ai, special_airy_ai((double)a))
FULL_FN(special_spherical_bessel_j0, isinf(a) ? (T)0 : a == 0 ? (T)1 : sin(a) / a)
FLOAT_FN(deg2rad, a *(T)(3.14159265358979323846 / 180))
FLOAT_FN(rad2deg, a *(T)(180 / 3.14159265358979323846))

/* angle: pi for negative numbers, NaN for NaN, 0 else. */
LOOPS_F(LOOP_1, angle, isnan(a) ? a : a < 0 ? PI : (T)0)
LOOP_1(angle_c64, float, float _Complex, carg(a))
LOOP_1(angle_c128, double, double _Complex, carg(a))
LOOP_KERNEL(angle, 1, LOOP_TO_FLOAT | LOOP_REAL_OUT, LOOP_SET_F(angle), LOOP_SET_C(angle))

/* logit: eps clamps the argument to [eps, 1 - eps] first; not given, it is -1. */
#define LOGIT_OF(R, x) log(R((x) / R((T)1 - (x))))
#define LOGIT(R) LOGIT_OF(R, a)
#define LOW(R) R(LOOP_NUM(0))
#define HIGH(R) R((T)1 - LOW(R))
#define LOGIT_EPS(R) (a < LOW(R) ? LOGIT_OF(R, LOW(R)) : a > HIGH(R) ? LOGIT_OF(R, HIGH(R)) : LOGIT_OF(R, a))
LOOPS_STEPS(LOOP_1, logit, LOGIT)
LOOPS_STEPS(LOOP_1, logit_eps, LOGIT_EPS)
bp_status kernel_logit(bp_ctx *c, op_call *k)
{
    static const loop_kernel plain = {{LOOP_SET_STEPS(logit)}, 1, LOOP_TO_FLOAT, 0};
    static const loop_kernel clamped = {{LOOP_SET_STEPS(logit_eps)}, 1, LOOP_TO_FLOAT, 0};
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

/* mvlgamma: the sum of lgamma at x, x - 1/2, ... x - (p - 1)/2, and a constant. */
#define SUM_LGAMMA(name, TF, R)                                                     \
    static TF name(TF x, double p)                                                  \
    {                                                                               \
        double sum = 0;                                                             \
        for (double j = 0; j < p; j += 1)                                           \
            sum += (double)R(special_lgamma((double)R(x - (TF)(j / 2))));           \
        return (TF)((double)R(sum) + p * (p - 1) / 4 * 1.14472988584940017414);     \
    }
SUM_LGAMMA(sum_lgamma_f16, float, ROUND_F16)
SUM_LGAMMA(sum_lgamma_bf16, float, ROUND_BF16)
SUM_LGAMMA(sum_lgamma_f64, double, ROUND_NOT)
#define ORDER ((const loop_number *)params)->f
LOOPS_F(LOOP_1, mvlgamma, sum_lgamma_f64((double)a, ORDER))
LOOP_1(mvlgamma_f16, float, float, sum_lgamma_f16(a, ORDER))
LOOP_1(mvlgamma_bf16, float, float, sum_lgamma_bf16(a, ORDER))
bp_status kernel_mvlgamma(bp_ctx *c, op_call *k)
{
    static const loop_kernel form = {{LOOP_SET_STEPS(mvlgamma)}, 1, LOOP_TO_FLOAT, 0};
    loop_number p = {(double)arg_int(c, k->args, 1), 0, 0};
    return loop_kernel_run(c, k, &form, &p);
}
