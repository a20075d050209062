/* Special functions of two arguments: orthogonal polynomials of degree n, zeta, the incomplete gamma functions; and
 * complex numbers from their parts.
 *
 * Polynomials follow PyTorch's choices of formula: closed forms at the ends of the interval, trigonometric ones inside
 * it for high degrees, else the recurrence, in the type itself and with the multiply-add of PyTorch's build (overflow
 * and cancellation are part of the result). The degree is the second operand, cut to an integer; a negative degree
 * gives 0. */
#include "host/op/reference/cx.h"
#include "host/op/reference/loop.h"
#include "host/op/reference/special.h"
#include "host/op/rows.h"
#include <math.h>
#include <tgmath.h>

#define SIGN_OF_POWER (n % 2 == 0 ? 1 : -1)

/* p(0) = 1, p(1) = FIRST, then p(k + 1) from `here` = p(k) and `before` = p(k - 1), for k = 1 .. n - 1. */
#define RECUR(FIRST, NEXT)                                            \
    T before = 1, here = (T)(FIRST);                                  \
    if (n == 0)                                                       \
        return before;                                                \
    for (int64_t k = 1; k < n && !isnan(here); k++) {                 \
        T next = (T)(NEXT);                                           \
        before = here;                                                \
        here = next;                                                  \
    }                                                                 \
    return here;
#define POLYNOMIAL(TF, name, GUARD, FIRST, NEXT)                      \
    static TF name(TF x, int64_t n)                                   \
    {                                                                 \
        typedef TF T;                                                 \
        if (n < 0)                                                    \
            return 0;                                                 \
        GUARD                                                         \
        RECUR(FIRST, NEXT)                                            \
    }
/* A polynomial on [-1, 1]: AT_ONE and AT_MINUS_ONE at its ends, INSIDE for degrees above LIMIT. */
#define CHEBYSHEV(TF, name, LIMIT, AT_ONE, AT_MINUS_ONE, INSIDE, FIRST)                   \
    POLYNOMIAL(TF, name,                                                                  \
               if (fabs(x) == 1) return (T)(x > 0 ? (AT_ONE) : (AT_MINUS_ONE));           \
               if (n > LIMIT && fabs(x) < 1) { T angle = acos(x); return (T)(INSIDE); },  \
               FIRST, fma(x + x, here, -before))
#define HALF_UP ((T)n + (T)0.5)
#define KINDS(TF, of)                                                                                         \
    CHEBYSHEV(TF, of(t), 6, 1, SIGN_OF_POWER, cos((T)n * angle), x)                                           \
    CHEBYSHEV(TF, of(u), 8, (T)n + 1, SIGN_OF_POWER *((T)n + 1), sin(((T)n + 1) * angle) / sin(angle), x + x) \
    CHEBYSHEV(TF, of(v), 8, 1, SIGN_OF_POWER *(2 * (T)n + 1), cos(HALF_UP *angle) / cos(angle / 2), x + x - 1)   \
    CHEBYSHEV(TF, of(w), 8, 2 * (T)n + 1, SIGN_OF_POWER, sin(HALF_UP *angle) / sin(angle / 2), x + x + 1)        \
    POLYNOMIAL(TF, of(h), if (n > HERMITE_LIMIT) return (T)NAN;, x + x, fma(x + x, here, -((T)(2 * k) * before))) \
    POLYNOMIAL(TF, of(he), if (n > HERMITE_LIMIT) return (T)NAN;, x, fma(x, here, -((T)k * before)))                \
    POLYNOMIAL(TF, of(l), if (x == 0) return 1;, 1 - x,                                                       \
               fma((T)(2 * k) + (1 - x), here, -((T)k * before)) / (T)(k + 1))                                    \
    POLYNOMIAL(TF, of(p), if (fabs(x) == 1) return (T)(x > 0 ? 1 : SIGN_OF_POWER);, x,                        \
               fma((T)(2 * k + 1) * x, here, -((T)k * before)) / (T)(k + 1))
/* Beyond this degree values leave the type; PyTorch gives NaN. */
#define HERMITE_LIMIT ((int64_t)(sizeof(T) == 4 ? 128 : 512))
#define FLOAT_OF(kind) kind##_float
#define DOUBLE_OF(kind) kind##_double
KINDS(float, FLOAT_OF)
KINDS(double, DOUBLE_OF)

/* The degree of a polynomial: cut to an integer, as a conversion of the processor does. */
static int64_t degree(double n)
{
    double edge = 9223372036854775808.0;
    return n >= -edge && n < edge ? (int64_t)n : INT64_MIN;
}
#define DEGREE_FN(name, kind, argument)                                          \
    LOOP_2(name##_f32, float, float, kind##_float(argument, degree((double)b)))  \
    LOOP_2(name##_f64, double, double, kind##_double(argument, degree(b)))       \
    LOOP_KERNEL(name, 2, LOOP_TO_FLOAT | LOOP_NO_HALF, LOOP_SET_F(name))
DEGREE_FN(special_chebyshev_polynomial_t, t, a)
DEGREE_FN(special_chebyshev_polynomial_u, u, a)
DEGREE_FN(special_chebyshev_polynomial_v, v, a)
DEGREE_FN(special_chebyshev_polynomial_w, w, a)
DEGREE_FN(special_shifted_chebyshev_polynomial_t, t, a + a - 1)
DEGREE_FN(special_shifted_chebyshev_polynomial_u, u, a + a - 1)
DEGREE_FN(special_shifted_chebyshev_polynomial_v, v, a + a - 1)
DEGREE_FN(special_shifted_chebyshev_polynomial_w, w, a + a - 1)
DEGREE_FN(special_hermite_polynomial_h, h, a)
DEGREE_FN(special_hermite_polynomial_he, he, a)
DEGREE_FN(special_laguerre_polynomial_l, l, a)
DEGREE_FN(special_legendre_polynomial_p, p, a)

#define DOUBLE_2(name, flag_bits, fn)                              \
    LOOPS_F(LOOP_2, name, fn((double)a, (double)b))                \
    LOOP_KERNEL(name, 2, flag_bits, LOOP_SET_F(name))
DOUBLE_2(special_zeta, LOOP_TO_FLOAT | LOOP_NO_HALF, special_zeta)
DOUBLE_2(igamma, 0, special_igamma)
DOUBLE_2(igammac, 0, special_igammac)

/* -- complex numbers from two real ones -- */
LOOP_2(complex_f32, float _Complex, float, CMPLXF(a, b))
LOOP_2(complex_f64, double _Complex, double, CMPLX(a, b))
LOOP_2(polar_f32, float _Complex, float, CMPLXF(a *cosf(b), a *sinf(b)))
LOOP_2(polar_f64, double _Complex, double, CMPLX(a *(cos)(b), a *(sin)(b)))
static bp_status run_complex(bp_ctx *c, op_call *k, const loop_table *loops)
{
    bp_dtype d = dtype_real_of(k->out[0]->dtype);
    loop_operand o[] = {loop_out(k, 0, k->out[0]->dtype), loop_arg(k, 0, d), loop_arg(k, 1, d)};
    return loop_run(c, 1, 2, o, loop_pick(loops, d), NULL);
}
bp_status kernel_complex(bp_ctx *c, op_call *k)
{
    static const loop_table loops = {LOOP_SET_F(complex)};
    return run_complex(c, k, &loops);
}
bp_status kernel_polar(bp_ctx *c, op_call *k)
{
    static const loop_table loops = {LOOP_SET_F(polar)};
    return run_complex(c, k, &loops);
}
