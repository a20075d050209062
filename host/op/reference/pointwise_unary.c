/* Pointwise operators of one argument that keep its type, or give bools: signs, rounding, tests, logic. */
#include "host/op/reference/cx.h"
#include "host/op/reference/loop_vector.h"
#include "host/op/rows.h"
#include <tgmath.h>

LOOPS_F(LOOPV_1, abs, fabs(a))
LOOPS_I(LOOPV_1, abs, a < 0 ? 0 - (uint64_t)a : (uint64_t)a)
LOOP_1(abs_c64, float, float _Complex, cabs((double _Complex)a))
LOOP_1(abs_c128, double, double _Complex, cabs(a))
LOOP_KERNEL(abs, 1, LOOP_REAL_OUT | LOOP_NO_BOOL, LOOP_SET_F(abs), LOOP_SET_I(abs), LOOP_SET_C(abs))

LOOPS_F(LOOPV_1, neg, -a)
LOOPS_I(LOOPV_1, neg, 0 - (uint64_t)a)
LOOPS_C(LOOP_1, neg, -a)
LOOP_KERNEL(neg, 1, LOOP_NO_BOOL, LOOP_SET_F(neg), LOOP_SET_I(neg), LOOP_SET_C(neg))

LOOPS_F(LOOPV_1, sign, (0 < a) - (a < 0))
LOOPS_I(LOOPV_1, sign, (0 < a) - (a < 0))
LOOP_KERNEL(sign, 1, 0, LOOP_SET_F(sign), LOOP_SET_I(sign))

/* sgn of a complex number: its direction, 0 at 0. */
static double _Complex direction(double _Complex z)
{
    double size = cabs(z);
    return size == 0 ? 0 : CMPLX(creal(z) / size, cimag(z) / size);
}
LOOPS_C(LOOP_1, sgn, direction((double _Complex)a))
LOOP_KERNEL(sgn, 1, 0, LOOP_SET_F(sign), LOOP_SET_I(sign), LOOP_SET_C(sgn))

LOOPS_F(LOOPV_1, copy, a)
LOOPS_I(LOOPV_1, copy, a)
LOOPS_C(LOOP_1, conjugate, CMPLX((double)creal(a), -(double)cimag(a)))
LOOP_KERNEL(conj_physical, 1, 0, LOOP_SET_F(copy), LOOP_SET_I(copy), LOOP_SET_C(conjugate))

/* relu keeps -0 and NaN: a comparison, not a maximum. */
LOOPS_F(LOOPV_1, relu, a < 0 ? (T)0 : a)
LOOPS_I(LOOPV_1, relu, a < 0 ? (T)0 : a)
LOOP_KERNEL(relu, 1, LOOP_NO_BOOL, LOOP_SET_F(relu), LOOP_SET_I(relu))

/* Rounding leaves integers alone. */
LOOPS_F(LOOPV_1, floor, floor(a))
LOOPS_F(LOOPV_1, ceil, ceil(a))
LOOPS_F(LOOPV_1, trunc, trunc(a))
LOOPS_F(LOOPV_1, round, nearbyint(a))
LOOPS_F(LOOP_1, frac, a - trunc(a))
LOOP_KERNEL(floor, 1, LOOP_NO_BOOL, LOOP_SET_F(floor), LOOP_SET_I(copy))
LOOP_KERNEL(ceil, 1, LOOP_NO_BOOL, LOOP_SET_F(ceil), LOOP_SET_I(copy))
LOOP_KERNEL(trunc, 1, LOOP_NO_BOOL, LOOP_SET_F(trunc), LOOP_SET_I(copy))
LOOP_KERNEL(round, 1, LOOP_NO_BOOL, LOOP_SET_F(round), LOOP_SET_I(copy))
LOOP_KERNEL(frac, 1, 0, LOOP_SET_F(frac))

/* round.decimals: scaled by a power of ten that is itself a number of the type. */
LOOPS_F(LOOP_1, round_up, nearbyint(a *LOOP_NUM(0)) / LOOP_NUM(0))
LOOPS_F(LOOP_1, round_down, nearbyint(a / LOOP_NUM(0)) * LOOP_NUM(0))
bp_status kernel_round_decimals(bp_ctx *c, op_call *k)
{
    static const loop_kernel up = {{LOOP_SET_F(round_up)}, 1, 0, 0}, down = {{LOOP_SET_F(round_down)}, 1, 0, 0};
    int64_t decimals = arg_int(c, k->args, 1);
    loop_number scale = {pow(10., fabs((double)decimals)), 0, 0};
    return loop_kernel_run(c, k, decimals < 0 ? &down : &up, &scale);
}

LOOPS_I(LOOPV_1, bitwise_not, ~(uint64_t)a)
LOOPV_1(not_bool, uint8_t, uint8_t, !a)
bp_status kernel_bitwise_not(bp_ctx *c, op_call *k)
{
    static const loop_kernel ints = {{LOOP_SET_I(bitwise_not)}, 1, 0, 0}, bools = {{.u8 = not_bool}, 1, 0, 0};
    return loop_kernel_run(c, k, k->out[0]->dtype == BP_BOOL ? &bools : &ints, NULL);
}

/* -- results are bools -- */
LOOPS_BF(LOOPV_1, logical_not, a == 0)
LOOPS_BI(LOOPV_1, logical_not, a == 0)
LOOPS_BC(LOOP_1, logical_not, a == 0)
LOOP_KERNEL(logical_not, 1, LOOP_BOOL_OUT, LOOP_SET_F(logical_not), LOOP_SET_I(logical_not), LOOP_SET_C(logical_not))

LOOPS_BI(LOOP_1, never, (void)a, 0)
LOOPS_BI(LOOP_1, always, (void)a, 1)
LOOPS_BF(LOOPV_1, isnan, a != a)
LOOPS_BC(LOOP_1, isnan, a != a)
LOOPS_BF(LOOPV_1, isinf, fabs(a) == (T)INFINITY)
LOOPS_BC(LOOP_1, isinf, isinf(creal(a)) || isinf(cimag(a)))
LOOPS_BF(LOOPV_1, isfinite, fabs(a) < (T)INFINITY)
LOOPS_BC(LOOP_1, isfinite, isfinite(creal(a)) && isfinite(cimag(a)))
LOOPS_BF(LOOP_1, isposinf, a == (T)INFINITY)
LOOPS_BF(LOOP_1, isneginf, a == -(T)INFINITY)
LOOPS_BF(LOOP_1, isreal, (void)a, 1)
LOOPS_BC(LOOP_1, isreal, cimag(a) == 0)
LOOPS_BF(LOOP_1, signbit, signbit(a) != 0)
LOOPS_BI(LOOP_1, signbit, a < 0)
#define TEST(name, ints, ...) LOOP_KERNEL(name, 1, LOOP_BOOL_OUT, LOOP_SET_F(name), LOOP_SET_I(ints), __VA_ARGS__)
TEST(isnan, never, LOOP_SET_C(isnan))
TEST(isinf, never, LOOP_SET_C(isinf))
TEST(isfinite, always, LOOP_SET_C(isfinite))
TEST(isposinf, never, .c64 = NULL)
TEST(isneginf, never, .c64 = NULL)
TEST(isreal, always, LOOP_SET_C(isreal))
TEST(signbit, signbit, .c64 = NULL)

/* nan_to_num: what stands for NaN, +inf and -inf; not given, 0 and the type's largest and smallest. */
LOOPS_F(LOOP_1, nan_to_num,
        isnan(a) ? LOOP_NUM(0) : a == (T)INFINITY ? LOOP_NUM(1) : a == -(T)INFINITY ? LOOP_NUM(2) : a)
bp_status kernel_nan_to_num(bp_ctx *c, op_call *k)
{
    static const loop_kernel form = {{LOOP_SET_F(nan_to_num), LOOP_SET_I(copy)}, 1, 0, 0};
    static const double largest[] = {[BP_F16] = 65504, [BP_BF16] = 0x1.FEp127, [BP_F32] = 0x1.FFFFFEp127,
                                     [BP_F64] = 0x1.FFFFFFFFFFFFFp1023};
    bp_dtype d = k->out[0]->dtype;
    double max = dtype_is_float(d) ? largest[d] : 0;
    loop_number stand[3] = {{0, 0, 0}, {max, 0, 0}, {-max, 0, 0}};
    for (uint32_t i = 0; i < 3; i++)
        if (!arg_is_none(k->args, 1 + i))
            stand[i].f = arg_float(k->args, 1 + i);
    return loop_kernel_run(c, k, &form, stand);
}

/* frexp: mantissa in [0.5, 1) and exponent; NaN and infinities keep their value with exponent 0. */
#define FREXP(fn, TF)                                                                    \
    static void fn(int64_t n, char *const *data, const int64_t *step, void *params)      \
    {                                                                                    \
        (void)params;                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                \
            int exponent = 0;                                                            \
            TF a = LOOP_AT(const TF, 2)[i * step[2]];                                    \
            LOOP_AT(TF, 0)[i * step[0]] = isfinite(a) ? (TF)(frexp)((double)a, &exponent) : a; \
            LOOP_AT(int32_t, 1)[i * step[1]] = exponent;                                 \
        }                                                                                \
    }
FREXP(frexp_f32, float)
FREXP(frexp_f64, double)
bp_status kernel_frexp(bp_ctx *c, op_call *k)
{
    static const loop_table loops = {LOOP_SET_F(frexp)};
    bp_dtype d = k->out[0]->dtype;
    loop_operand o[] = {loop_out(k, 0, loop_type(d)), loop_out(k, 1, BP_I32), loop_arg(k, 0, d)};
    loop_fn f = loop_pick(&loops, d);
    return f ? loop_run(c, 2, 1, o, f, NULL) : loop_no_type(c, k->op, d);
}
