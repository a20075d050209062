/* Arithmetic of two operands: sums, products, quotients and remainders in all their roundings, powers.
 *
 * Integers are computed in 64 unsigned bits and cut, so that they wrap. A zero divisor of integers is an error, told
 * through the params of the loop; INT_MIN over -1 wraps and is never given to the processor. */
#include "host/op/reference/cx.h"
#include "host/op/reference/loop_vector.h"
#include "host/op/rows.h"
#include <stdatomic.h>
#include <tgmath.h>

/* -- add, sub, rsub: number 0 is alpha -- */
LOOPS_F(LOOPV_2, add, fma(b, LOOP_NUM(0), a))
LOOPS_I(LOOPV_2, add, (uint64_t)a + (uint64_t)b * (uint64_t)((const loop_number *)params)->i)
LOOPS_C(LOOP_2, add, (cx)a + cx_mul(CMPLX(((const loop_number *)params)->f, ((const loop_number *)params)->im), b))
LOOPS_F(LOOPV_2, plain_add, a + b)
#define ADD(R) a + R(b * LOOP_NUM(0))
LOOPS_STEPS(LOOP_2, add_steps, ADD)
LOOPS_I(LOOPV_2, plain_add, (uint64_t)a + (uint64_t)b)

/* What PyTorch demands of alpha, before the result's type d is looked at for its range. */
static bp_status check_alpha(bp_ctx *c, const op_call *k, bp_scalar alpha, bp_dtype d)
{
    const char *why = NULL;
    if (alpha.kind == BP_SCALAR_BOOL && d != BP_BOOL)
        why = "a bool needs a result of bools";
    else if (alpha.kind == BP_SCALAR_FLOAT && dtype_is_integral(d))
        why = "a float needs a result of floats";
    else if (alpha.kind == BP_SCALAR_COMPLEX && !dtype_is_complex(d))
        why = "a complex number needs a complex result";
    if (why)
        return op_fail(c, k->op, BP_INVALID_ARGUMENT, "argument \"alpha\": %s, and this is %s", why,
                       dtype_get(d)->torch);
    return loop_check_number(c, k->op, "alpha", alpha, d);
}

static bool is_flat(const bp_value *v, const bp_tensor *out)
{
    const bp_tensor *t = v->kind == BP_VALUE_TENSOR ? v->v.tensor : NULL;
    return !t || t->rank == 0 || (tensor_is_contiguous(t) && tensor_nelem(t) == tensor_nelem(out));
}

/* Whether PyTorch fills vectors (twice 32 bytes) with elements that lie side by side. Where it does not, it uses scalar
 * formulas, and these give other results. The rest of a long run, which it computes so too, is not told apart here. */
static bool fills_vectors(const op_call *k)
{
    const bp_tensor *out = k->out[0];
    bool flat = tensor_is_contiguous(out) && is_flat(&k->args[0], out) && is_flat(&k->args[1], out);
    int64_t run = flat ? tensor_nelem(out) : out->rank ? tensor_dim(out, out->rank - 1) : 1;
    return run >= 64 / (int64_t)dtype_size(out->dtype);
}

/* first + alpha * second, both given by position; the difference negates alpha. */
static bp_status run_add(bp_ctx *c, op_call *k, uint32_t first, uint32_t second, bool negate)
{
    static const loop_table scaled = {LOOP_SET_F(add), LOOP_SET_I(add), LOOP_SET_C(add)};
    static const loop_table steps = {LOOP_SET_STEPS(add_steps)};
    static const loop_table plain = {LOOP_SET_F(plain_add), LOOP_SET_I(plain_add), LOOP_SET_C(add)};
    bp_dtype d = k->out[0]->dtype;
    bp_scalar given = arg_scalar(k->args, 2);
    TRY(check_alpha(c, k, given, d));
    loop_number alpha = loop_number_of(given);
    if (dtype_is_float(d))
        alpha.f = loop_round(d, alpha.f);
    if (d == BP_BOOL)
        alpha.i = alpha.i != 0;
    bool is_one = alpha.f == 1 && alpha.im == 0 && !negate, is_half = d == BP_F16 || d == BP_BF16;
    if (negate)
        alpha = (loop_number){-alpha.f, -alpha.im, (int64_t)(0 - (uint64_t)alpha.i)};
    loop_operand o[] = {loop_out(k, 0, loop_type(d)), loop_arg(k, first, d), loop_arg(k, second, d)};
    const loop_table *loops = is_one ? &plain : is_half && !fills_vectors(k) ? &steps : &scaled;
    return loop_run(c, 1, 2, o, loop_pick(loops, d), &alpha);
}

bp_status kernel_add(bp_ctx *c, op_call *k) { return run_add(c, k, 0, 1, false); }
bp_status kernel_sub(bp_ctx *c, op_call *k) { return run_add(c, k, 0, 1, true); }
bp_status kernel_rsub(bp_ctx *c, op_call *k) { return run_add(c, k, 1, 0, true); }

/* -- mul and true division -- */
LOOPS_F(LOOPV_2, mul, a *b)
LOOPS_I(LOOPV_2, mul, (uint64_t)a *(uint64_t)b)
LOOPS_C(LOOP_2, mul, cx_mul(a, b))
LOOP_KERNEL(mul, 2, LOOP_WIDE_LAST, LOOP_SET_F(mul), LOOP_SET_I(mul), LOOP_SET_C(mul))

LOOPS_F(LOOPV_2, div, a / b)
LOOPS_C(LOOP_2, div, cx_div(a, b))
LOOP_KERNEL(div, 2, LOOP_WIDE_LAST | LOOP_TO_FLOAT, LOOP_SET_F(div), LOOP_SET_C(div))

/* -- quotients and remainders -- */
/* Integers: the params are a flag that says whether some divisor was 0. */
#define SAW_ZERO atomic_store_explicit((atomic_int *)params, 1, memory_order_relaxed)
#define DIVIDED(by_minus_one, quotient) \
    b == 0 ? (SAW_ZERO, 0) : b == (T)-1 && (T)-1 < 0 ? (int64_t)(by_minus_one) : (int64_t)(quotient)
#define NEGATED (0 - (uint64_t)a)

static int64_t floor_quotient(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}
static int64_t floor_remainder(int64_t a, int64_t b)
{
    return a % b + (a % b != 0 && (a % b < 0) != (b < 0) ? b : 0);
}
LOOPS_I(LOOP_2, div_trunc, DIVIDED(NEGATED, a / b))
LOOPS_I(LOOP_2, div_floor, DIVIDED(NEGATED, floor_quotient(a, b)))
LOOPS_I(LOOP_2, remainder, DIVIDED(0, floor_remainder(a, b)))
LOOPS_I(LOOP_2, fmod, DIVIDED(0, a % b))

/* A remainder moved to the sign of the divisor. */
#define SIGNED_LIKE(rest, b) ((rest) != 0 && ((b) < 0) != ((rest) < 0) ? (rest) + (b) : (rest))

/* Floor division of floats goes through the remainder, so that 1 // 0.1 is 9 as the remainder says. */
#define FLOAT_FLOOR(fn, T, R)                                               \
    static T fn(T a, T b)                                                   \
    {                                                                       \
        if (b == 0)                                                         \
            return a / b;                                                   \
        T rest = R(fmod(a, b)), q = R(R(a - rest) / b);                     \
        if (rest != 0 && (b < 0) != (rest < 0))                             \
            q = R(q - 1);                                                   \
        if (q == 0)                                                         \
            return copysign((T)0, a / b);                                   \
        T whole = floor(q);                                                 \
        return R(q - whole) > (T)0.5 ? R(whole + 1) : whole;                \
    }
FLOAT_FLOOR(floor_float, float, ROUND_NOT)
FLOAT_FLOOR(floor_double, double, ROUND_NOT)
FLOAT_FLOOR(floor_half, float, ROUND_F16)
FLOAT_FLOOR(floor_bfloat, float, ROUND_BF16)
LOOP_2(div_floor_f32, float, float, floor_float(a, b))
LOOP_2(div_floor_f64, double, double, floor_double(a, b))
LOOP_2(div_floor_f16, float, float, floor_half(a, b))
LOOP_2(div_floor_bf16, float, float, floor_bfloat(a, b))
#define TRUNC_DIV(R) trunc(R(a / b))
LOOPS_STEPS(LOOP_2, div_trunc, TRUNC_DIV)
LOOPS_F(LOOP_2, fmod, fmod(a, b))
LOOPS_F(LOOP_2, remainder, SIGNED_LIKE(fmod(a, b), b))

/* PyTorch's vectors of floats divide first: a quotient that overflows gives NaN. */
static float vector_fmod(float a, float b)
{
    return isinf(a / b) && isfinite(a) && b != 0 ? NAN : fmodf(a, b);
}
LOOP_2(vector_fmod_f32, float, float, vector_fmod(a, b))
LOOP_2(vector_remainder_f32, float, float, SIGNED_LIKE(vector_fmod(a, b), b))
#define vector_fmod_f64 fmod_f64
#define vector_remainder_f64 remainder_f64

/* Runs a division. Where the last operand is one number, halves are not rounded inside. A zero divisor of integers is
 * PyTorch's ZeroDivisionError. */
static bp_status run_division(bp_ctx *c, op_call *k, const loop_kernel *form)
{
    atomic_int saw_zero = 0;
    loop_kernel used = *form;
    const bp_tensor *last = arg_tensor(k->args, 1);
    if (form->flags & LOOP_WIDE_LAST && (!last || tensor_nelem(last) == 1))
        used.loops.f16 = used.loops.bf16 = NULL;
    TRY(loop_kernel_run(c, k, &used, &saw_zero));
    if (atomic_load(&saw_zero))
        return op_fail(c, k->op, BP_INVALID_ARGUMENT, "division of integers by zero (ZeroDivisionError)");
    return BP_OK;
}

/* kernel_NAME of remainders: long runs by the loops of vectors. */
#define REMAINDER(name)                                                                                      \
    bp_status kernel_##name(bp_ctx *c, op_call *k)                                                           \
    {                                                                                                        \
        static const loop_kernel scalar = {{LOOP_SET_F(name), LOOP_SET_I(name)}, 2, LOOP_NO_BOOL, 0};        \
        static const loop_kernel vector = {{LOOP_SET_F(vector_##name), LOOP_SET_I(name)}, 2, LOOP_NO_BOOL, 0}; \
        return run_division(c, k, fills_vectors(k) ? &vector : &scalar);                                     \
    }
REMAINDER(remainder)
REMAINDER(fmod)

bp_status kernel_floor_divide(bp_ctx *c, op_call *k)
{
    static const loop_kernel form = {
        {LOOP_SET_STEPS(div_floor), LOOP_SET_I(div_floor)}, 2, LOOP_NO_BOOL | LOOP_WIDE_LAST, 0};
    return run_division(c, k, &form);
}

static bp_status cut_divide(bp_ctx *c, op_call *k)
{
    static const loop_kernel form = {
        {LOOP_SET_STEPS(div_trunc), LOOP_SET_I(div_trunc)}, 2, LOOP_NO_BOOL | LOOP_WIDE_LAST, 0};
    return run_division(c, k, &form);
}

bp_status kernel_div_mode(bp_ctx *c, op_call *k)
{
    const char *mode = arg_str(k->args, 2);
    if (!mode)
        return kernel_div(c, k);
    return mode[0] == 'f' ? kernel_floor_divide(c, k) : cut_divide(c, k); /* the shape rule knows the names */
}

/* -- powers -- */
static uint64_t power(int64_t base, int64_t exponent)
{
    if (exponent < 0)
        return base == 1 ? 1 : base == -1 ? (exponent % 2 ? (uint64_t)-1 : 1) : 0;
    uint64_t result = 1, square = (uint64_t)base;
    for (; exponent; exponent >>= 1, square *= square)
        if (exponent & 1)
            result *= square;
    return result;
}
LOOPS_F(LOOP_2, pow, pow(a, b))
LOOPS_I(LOOP_2, pow, power(a, b))
LOOPS_C(LOOP_2, pow, cpow((cx)a, (cx)b))
static const loop_kernel pow_form = {{LOOP_SET_F(pow), LOOP_SET_I(pow), LOOP_SET_C(pow)}, 2, LOOP_NO_BOOL, 0};
bp_status kernel_pow(bp_ctx *c, op_call *k) { return loop_kernel_run(c, k, &pow_form, NULL); }

#define POWER_2(R) (a * a)
#define POWER_3(R) (R(a * a) * a)
#define POWER_MINUS_2(R) ((T)1 / R(a * a))
LOOPS_F(LOOPV_1, power_half, sqrt(a))
LOOPS_F(LOOPV_1, power_minus_half, (T)1 / sqrt(a))
LOOPS_F(LOOPV_1, power_minus_1, (T)1 / a)
LOOPS_STEPS(LOOPV_1, power_2, POWER_2)
LOOPS_STEPS(LOOPV_1, power_3, POWER_3)
LOOPS_STEPS(LOOP_1, power_minus_2, POWER_MINUS_2)
LOOPS_C(LOOP_1, power_2, cx_mul(a, a))
LOOPS_C(LOOP_1, power_half, csqrt((cx)a))
/* Exponents that PyTorch computes in their own way, but for f16: a root keeps -0 and refuses -inf. */
static const struct { double exponent; loop_kernel form; } own_powers[] = {
    {0.5, {{LOOP_SET_F(power_half), LOOP_SET_C(power_half)}, 1, 0, 0}},
    {-0.5, {{LOOP_SET_F(power_minus_half)}, 1, 0, 0}},
    {2, {{LOOP_SET_STEPS(power_2), LOOP_SET_C(power_2)}, 1, 0, 0}},
    {3, {{LOOP_SET_STEPS(power_3)}, 1, 0, 0}},
    {-1, {{LOOP_SET_F(power_minus_1)}, 1, 0, 0}},
    {-2, {{LOOP_SET_STEPS(power_minus_2)}, 1, 0, 0}},
};

bp_status kernel_pow_number(bp_ctx *c, op_call *k)
{
    bp_scalar exponent = arg_scalar(k->args, 1);
    loop_number e = loop_number_of(exponent);
    bp_dtype d = k->out[0]->dtype;
    if (d == BP_BOOL) {
        bp_scalar one = {BP_SCALAR_INT, 0, {1}};
        return e.i ? tensor_copy(c, k->out[0], arg_tensor(k->args, 0)) : loop_fill(c, k->out[0], one);
    }
    if (dtype_is_int(d)) {
        if (e.i < 0)
            return op_fail(c, k->op, BP_INVALID_ARGUMENT, "integers to a negative integer power (%lld)",
                           (long long)e.i);
    }
    TRY(loop_check_number(c, k->op, "exponent", exponent, d));
    for (uint32_t i = 0; i < sizeof own_powers / sizeof *own_powers && d != BP_F16; i++)
        if (e.f == own_powers[i].exponent && e.im == 0 && loop_pick(&own_powers[i].form.loops, d))
            return loop_kernel_run_as(c, k, &own_powers[i].form, d, NULL);
    return loop_kernel_run_as(c, k, &pow_form, d, NULL);
}

/* float_power: all in double; a number as exponent is computed as pow's. */
bp_status kernel_float_power(bp_ctx *c, op_call *k)
{
    static const loop_kernel form = {{LOOP_SET_F(pow), LOOP_SET_C(pow)}, 2, 0, 0};
    if (k->args[1].kind != BP_VALUE_TENSOR)
        return kernel_pow_number(c, k);
    return loop_kernel_run_as(c, k, &form, k->out[0]->dtype, NULL);
}

LOOPS_I(LOOP_1, square, (uint64_t)a *(uint64_t)a)
bp_status kernel_square(bp_ctx *c, op_call *k)
{
    static const loop_kernel form = {{LOOP_SET_STEPS(power_2), LOOP_SET_C(power_2)}, 1, 0, 0};
    static const loop_kernel ints = {{LOOP_SET_I(square)}, 1, 0, 0};
    bp_dtype d = k->out[0]->dtype;
    return loop_kernel_run_as(c, k, dtype_is_integral(d) ? &ints : &form, d, NULL);
}
