/* Comparison, logic and bits of two operands; extrema; and the rest of the two-operand functions of floats.
 *
 * Operands of a comparison meet in their promoted type first, so a number is rounded to a half tensor's type before it
 * is compared. NaN compares false, save for `ne`; maximum and minimum pass it on, fmax and fmin drop it. */
#include "host/op/reference/cx.h"
#include "host/op/reference/loop_vector.h"
#include "host/op/rows.h"
#include "host/op/shape_pointwise.h"
#include <complex.h>
#include <math.h>
#include <tgmath.h>

#define COMPARE(name, ...)                 \
    LOOPS_BF(LOOPV_2, name, __VA_ARGS__)   \
    LOOPS_BI(LOOPV_2, name, __VA_ARGS__)   \
    LOOP_KERNEL(name, 2, LOOP_BOOL_OUT, LOOP_SET_F(name), LOOP_SET_I(name))
#define COMPARE_C(name, ...)               \
    LOOPS_BF(LOOPV_2, name, __VA_ARGS__)   \
    LOOPS_BI(LOOPV_2, name, __VA_ARGS__)   \
    LOOPS_BC(LOOP_2, name, __VA_ARGS__)    \
    LOOP_KERNEL(name, 2, LOOP_BOOL_OUT, LOOP_SET_F(name), LOOP_SET_I(name), LOOP_SET_C(name))
COMPARE_C(eq, a == b)
COMPARE_C(ne, a != b)
COMPARE(lt, a < b)
COMPARE(le, a <= b)
COMPARE(gt, a > b)
COMPARE(ge, a >= b)
COMPARE_C(logical_and, a != 0 && b != 0)
COMPARE_C(logical_or, a != 0 || b != 0)
COMPARE_C(logical_xor, (a != 0) != (b != 0))

/* isclose: numbers 0 and 1 are rtol and atol; number 2 says whether NaN is close to NaN. */
LOOPS_BF(LOOP_2, isclose,
         a == b || (LOOP_NUM(2) != 0 && a != a && b != b) ||
             (isfinite(a - b) && fabs(a - b) <= LOOP_NUM(1) + fabs(LOOP_NUM(0) * b)))
LOOP_KERNEL_N(isclose, 2, 3, LOOP_BOOL_OUT | LOOP_TO_FLOAT, LOOP_SET_F(isclose))

/* -- bits: integers and bools -- */
#define BITS(name, ...)                    \
    LOOPS_I(LOOPV_2, name, __VA_ARGS__)    \
    LOOP_KERNEL(name, 2, 0, LOOP_SET_I(name))
BITS(bitwise_and, (uint64_t)a &(uint64_t)b)
BITS(bitwise_or, (uint64_t)a | (uint64_t)b)
BITS(bitwise_xor, (uint64_t)a ^ (uint64_t)b)

/* A shift by less than 0 or by the width of the type leaves no bit, or the sign. */
#define WIDTH ((int64_t)sizeof(T) * 8)
#define IN_WIDTH(x) ((x) >= 0 && (int64_t)(x) < WIDTH)
LOOPS_I(LOOP_2, left_shift, IN_WIDTH(b) ? (uint64_t)a << (uint64_t)b : 0)
LOOPS_I(LOOP_2, right_shift, (int64_t)a >> (IN_WIDTH(b) ? (int64_t)b : (T)-1 < 0 ? WIDTH - 1 : WIDTH))
LOOP_KERNEL(left_shift, 2, LOOP_NO_BOOL, LOOP_SET_I(left_shift))
LOOP_KERNEL(right_shift, 2, LOOP_NO_BOOL, LOOP_SET_I(right_shift))

static uint64_t magnitude(int64_t v)
{
    return v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
}
/* Of numbers that were made positive in their own type, where the smallest one stays negative. */
static int64_t greatest_divisor(int64_t a, int64_t b)
{
    while (a != 0) {
        int64_t rest = a == -1 ? 0 : b % a;
        b = a;
        a = rest;
    }
    return b;
}
static int64_t least_multiple(int64_t a, int64_t b, int64_t divisor)
{
    if (divisor == 0)
        return 0;
    uint64_t share = divisor == -1 ? 0 - (uint64_t)a : (uint64_t)(a / divisor);
    return (int64_t)(share * (uint64_t)b);
}
#define POSITIVE(x) ((T)magnitude(x))
LOOPS_I(LOOP_2, gcd, greatest_divisor(POSITIVE(a), POSITIVE(b)))
/* Narrow types multiply as int, wide ones wrap before the sign is taken off. */
#define MULTIPLE least_multiple(a, b, (T)greatest_divisor(POSITIVE(a), POSITIVE(b)))
LOOPS_I(LOOP_2, lcm, sizeof(T) < 4 ? magnitude(MULTIPLE) : magnitude((T)MULTIPLE))
LOOP_KERNEL(gcd, 2, LOOP_NO_BOOL, LOOP_SET_I(gcd))
LOOP_KERNEL(lcm, 2, LOOP_NO_BOOL, LOOP_SET_I(lcm))

/* -- extrema -- */
#define EXTREMUM(name, for_floats, for_ints)   \
    LOOPS_F(LOOP_2, name, for_floats)          \
    LOOPS_I(LOOP_2, name, for_ints)            \
    LOOP_KERNEL(name, 2, 0, LOOP_SET_F(name), LOOP_SET_I(name))
EXTREMUM(maximum, a != a ? a : b != b ? b : a < b ? b : a, a < b ? b : a)
EXTREMUM(minimum, a != a ? a : b != b ? b : b < a ? b : a, b < a ? b : a)
EXTREMUM(fmax, fmax(a, b), a < b ? b : a)
EXTREMUM(fmin, fmin(a, b), b < a ? b : a)
EXTREMUM(heaviside, a == 0 ? b : (T)(a > 0), a == 0 ? b : (T)(a > 0))

/* -- floats -- */
#define FLOAT_2(name, flag_bits, ...)  \
    LOOPS_F(LOOP_2, name, __VA_ARGS__) \
    LOOP_KERNEL(name, 2, flag_bits, LOOP_SET_F(name))
FLOAT_2(atan2, LOOP_TO_FLOAT, (atan2)((double)a, (double)b))
FLOAT_2(hypot, 0, (hypot)((double)a, (double)b))
FLOAT_2(copysign, LOOP_TO_FLOAT, copysign(a, b))
#define XLOGY(R) (b != b ? b : a == 0 ? (T)0 : a * R(log(b)))
#define XLOG1PY(R) (b != b ? b : a == 0 ? (T)0 : a * R(log1p(b)))
LOOPS_STEPS(LOOP_2, xlogy, XLOGY)
LOOPS_STEPS(LOOP_2, special_xlog1py, XLOG1PY)
LOOP_KERNEL(xlogy, 2, LOOP_TO_FLOAT, LOOP_SET_STEPS(xlogy))
LOOP_KERNEL(special_xlog1py, 2, LOOP_TO_FLOAT, LOOP_SET_STEPS(special_xlog1py))
/* Complex numbers are ordered by their real parts; what is far smaller leaves the larger as it is. */
static double _Complex log_add(double _Complex a, double _Complex b)
{
    double _Complex low = creal(a) < creal(b) ? a : b, high = creal(a) < creal(b) ? b : a;
    if (isnan(creal(a)) || isnan(cimag(a)) || isnan(creal(b)) || isnan(cimag(b)))
        return CMPLX(NAN, NAN);
    if (!isfinite(creal(low)) && creal(low) == creal(high))
        return creal(low) < 0 ? low : clog(cexp(low) + cexp(high));
    return high + clog(1 + cexp(low - high));
}
LOOPS_F(LOOP_2, logaddexp, isinf(a) && a == b ? a : (a > b ? a : b) + log1p(exp(-fabs(a - b))))
LOOPS_C(LOOP_2, logaddexp, log_add((double _Complex)a, (double _Complex)b))
LOOP_KERNEL(logaddexp, 2, 0, LOOP_SET_F(logaddexp), LOOP_SET_C(logaddexp))
FLOAT_2(logaddexp2, 0,
        isinf(a) && a == b ? a : (a > b ? a : b) + log1p(exp2(-fabs(a - b))) * (T)1.44269504088896340736)

/* ldexp: exact for floats with an exponent of integers; else 2 to the exponent, rounded to the exponent's own type,
 * multiplies. */
#define SHIFT_LIMIT 5000
LOOPS_F(LOOP_2, ldexp_int, ldexp(a, (int)(b > SHIFT_LIMIT ? SHIFT_LIMIT : b < -SHIFT_LIMIT ? -SHIFT_LIMIT : b)))
LOOPS_F(LOOP_2, ldexp, a *exp2(b))
LOOPS_F(LOOP_2, ldexp_f16, a *(T)ROUND_F16(exp2(b)))
LOOPS_F(LOOP_2, ldexp_bf16, a *(T)ROUND_BF16(exp2(b)))
LOOPS_F(LOOP_2, ldexp_f32, a *(T)(float)exp2(b))
bp_status kernel_ldexp(bp_ctx *c, op_call *k)
{
    static const loop_kernel exact = {{LOOP_SET_F(ldexp_int)}, 2, LOOP_TO_FLOAT, 0};
    static const loop_kernel full = {{LOOP_SET_F(ldexp)}, 2, LOOP_TO_FLOAT, 0};
    static const loop_kernel half = {{LOOP_SET_F(ldexp_f16)}, 2, LOOP_TO_FLOAT, 0};
    static const loop_kernel bfloat = {{LOOP_SET_F(ldexp_bf16)}, 2, LOOP_TO_FLOAT, 0};
    static const loop_kernel single = {{LOOP_SET_F(ldexp_f32)}, 2, LOOP_TO_FLOAT, 0};
    if (pointwise_ldexp_is_exact(k->args))
        return loop_kernel_run(c, k, &exact, NULL);
    bp_dtype d = (bp_dtype)arg_tensor(k->args, 1)->dtype;
    d = dtype_is_integral(d) ? c->ambient.default_dtype : d;
    return loop_kernel_run(c, k, d == BP_F16 ? &half : d == BP_BF16 ? &bfloat : d == BP_F32 ? &single : &full, NULL);
}

/* nextafter steps on the grid of its own type, so that halves are not widened: their bits are counted up or down. */
static uint16_t next_half(uint16_t a, uint16_t b, uint16_t infinity)
{
    uint16_t size_a = a & 0x7FFF, size_b = b & 0x7FFF;
    if (size_a > infinity || size_b > infinity)
        return (uint16_t)(infinity | 0x0040);
    if (a == b || (size_a == 0 && size_b == 0))
        return b;
    if (size_a == 0)
        return (uint16_t)((b & 0x8000) | 1);
    bool away = (a & 0x8000) == (b & 0x8000) && size_a < size_b;
    return (uint16_t)(away ? a + 1 : a - 1);
}
LOOP_2(nextafter_f16, uint16_t, uint16_t, next_half(a, b, 0x7C00))
LOOP_2(nextafter_bf16, uint16_t, uint16_t, next_half(a, b, 0x7F80))
LOOPS_F(LOOP_2, nextafter, nextafter(a, b))
bp_status kernel_nextafter(bp_ctx *c, op_call *k)
{
    static const loop_table loops = {LOOP_SET_F(nextafter)};
    bp_dtype d = k->out[0]->dtype;
    loop_fn f = d == BP_F16 ? nextafter_f16 : d == BP_BF16 ? nextafter_bf16 : loop_pick(&loops, d);
    if (!f)
        return loop_no_type(c, k->op, d);
    loop_operand o[] = {loop_out(k, 0, d), loop_arg(k, 0, d), loop_arg(k, 1, d)};
    o[1].loop = o[2].loop = d;
    return loop_run(c, 1, 2, o, f, NULL);
}
