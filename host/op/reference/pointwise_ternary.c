/* Operators of three operands: where, clamp, lerp, addcmul, addcdiv. */
#include "host/op/reference/cx.h"
#include "host/op/reference/loop_vector.h"
#include "host/op/rows.h"
#include <tgmath.h>

/* -- where: the condition is bool (or u8) and is not promoted with the rest -- */
#define WHERE(fn, TV) LOOPV_3M(fn, TV, uint8_t, TV, a ? b : e)
WHERE(where_u8, uint8_t)
WHERE(where_i8, int8_t)
WHERE(where_i16, int16_t)
WHERE(where_i32, int32_t)
WHERE(where_i64, int64_t)
WHERE(where_f32, float)
WHERE(where_f64, double)
WHERE(where_c64, float _Complex)
WHERE(where_c128, double _Complex)
bp_status kernel_where(bp_ctx *c, op_call *k)
{
    static const loop_table loops = {LOOP_SET_F(where), LOOP_SET_I(where), LOOP_SET_C(where)};
    bp_dtype d = k->out[0]->dtype;
    loop_operand o[] = {loop_out(k, 0, loop_type(d)), loop_arg(k, 0, BP_BOOL), loop_arg(k, 1, d), loop_arg(k, 2, d)};
    return loop_run(c, 1, 3, o, loop_pick(&loops, d), NULL);
}

/* -- clamp: NaN anywhere gives NaN; where the bounds cross, the upper one wins -- */
LOOPS_F(LOOPV_3, clamp, a != a ? a : b != b ? b : e != e ? e : e < (a < b ? b : a) ? e : (a < b ? b : a))
LOOPS_I(LOOPV_3, clamp, e < (a < b ? b : a) ? e : (a < b ? b : a))
LOOPS_F(LOOPV_2, clamp_max, a != a ? a : b != b ? b : b < a ? b : a)
LOOPS_I(LOOPV_2, clamp_max, b < a ? b : a)
LOOPS_F(LOOPV_2, clamp_min, a != a ? a : b != b ? b : a < b ? b : a)
LOOPS_I(LOOPV_2, clamp_min, a < b ? b : a)

/* A bound that is a number, for integers: what lies beyond the type on the harmless side becomes its edge, on the other
 * side it is an error. */
static bp_status fit_bound(bp_ctx *c, const op_call *k, loop_operand *bound, bp_dtype d, bool is_lower)
{
    static const struct { int64_t min, max; } range[] = {
        [BP_U8] = {0, UINT8_MAX}, [BP_I8] = {INT8_MIN, INT8_MAX}, [BP_I16] = {INT16_MIN, INT16_MAX},
        [BP_I32] = {INT32_MIN, INT32_MAX}, [BP_I64] = {INT64_MIN, INT64_MAX}};
    if (bound->t || !dtype_is_int(d))
        return bound->t ? BP_OK : loop_check_number(c, k->op, is_lower ? "min" : "max", bound->number, d);
    int64_t v = bound->number.v.i;
    if (is_lower ? v > range[d].max : v < range[d].min)
        return op_fail(c, k->op, BP_INVALID_ARGUMENT, "the %s bound %lld is out of the range of %s",
                       is_lower ? "lower" : "upper", (long long)v, dtype_get(d)->torch);
    bound->number.v.i = v < range[d].min ? range[d].min : v > range[d].max ? range[d].max : v;
    return BP_OK;
}

/* Clamps argument 0 by arguments lower and upper; either may be None, or -1 for "this operator has none". */
static bp_status run_clamp(bp_ctx *c, op_call *k, int32_t lower, int32_t upper)
{
    static const loop_table both = {LOOP_SET_F(clamp), LOOP_SET_I(clamp)};
    static const loop_table low = {LOOP_SET_F(clamp_min), LOOP_SET_I(clamp_min)};
    static const loop_table high = {LOOP_SET_F(clamp_max), LOOP_SET_I(clamp_max)};
    bp_dtype d = k->out[0]->dtype;
    bool has_lower = lower >= 0 && !arg_is_none(k->args, (uint32_t)lower);
    bool has_upper = upper >= 0 && !arg_is_none(k->args, (uint32_t)upper);
    loop_operand o[4] = {loop_out(k, 0, loop_type(d)), loop_arg(k, 0, d)};
    uint32_t n = 2;
    if (has_lower) {
        o[n] = loop_arg(k, (uint32_t)lower, d);
        TRY(fit_bound(c, k, &o[n++], d, true));
    }
    if (has_upper) {
        o[n] = loop_arg(k, (uint32_t)upper, d);
        TRY(fit_bound(c, k, &o[n++], d, false));
    }
    const loop_table *loops = has_lower && has_upper ? &both : has_lower ? &low : &high;
    loop_fn f = loop_pick(loops, d);
    if (!f || (d == BP_BOOL && (n == 4 || !o[2].t)))
        return loop_no_type(c, k->op, d);
    return loop_run(c, 1, n - 1, o, f, NULL);
}

bp_status kernel_clamp(bp_ctx *c, op_call *k) { return run_clamp(c, k, 1, 2); }
bp_status kernel_clamp_min(bp_ctx *c, op_call *k) { return run_clamp(c, k, 1, -1); }
bp_status kernel_clamp_max(bp_ctx *c, op_call *k) { return run_clamp(c, k, -1, 1); }

/* hardtanh and relu6 clamp too, in the type of their argument: bounds of integers are cut to integers. */
static bp_status run_between(bp_ctx *c, op_call *k, bp_scalar lower, bp_scalar upper)
{
    static const loop_table loops = {LOOP_SET_F(clamp), LOOP_SET_I(clamp)};
    bp_dtype d = k->out[0]->dtype;
    loop_operand o[] = {loop_out(k, 0, loop_type(d)), loop_arg(k, 0, d), {NULL, lower, d, loop_type(d)},
                        {NULL, upper, d, loop_type(d)}};
    loop_fn f = loop_pick(&loops, d);
    if (!f || d == BP_BOOL)
        return loop_no_type(c, k->op, d);
    if (dtype_is_int(d)) {
        o[2].number = (bp_scalar){BP_SCALAR_INT, 0, {loop_number_of(lower).i}};
        o[3].number = (bp_scalar){BP_SCALAR_INT, 0, {loop_number_of(upper).i}};
        TRY(fit_bound(c, k, &o[2], d, true));
        TRY(fit_bound(c, k, &o[3], d, false));
    }
    return loop_run(c, 1, 3, o, f, NULL);
}

bp_status kernel_hardtanh(bp_ctx *c, op_call *k)
{
    return run_between(c, k, arg_scalar(k->args, 1), arg_scalar(k->args, 2));
}

bp_status kernel_relu6(bp_ctx *c, op_call *k)
{
    return run_between(c, k, (bp_scalar){BP_SCALAR_INT, 0, {0}}, (bp_scalar){BP_SCALAR_INT, 0, {6}});
}

/* -- lerp: from the nearer end, so that weight 1 gives the end exactly -- */
#define LERP(weight) (fabs(weight) < (T)0.5 ? a + (weight) * (b - a) : b - (b - a) * ((T)1 - (weight)))
LOOPS_F(LOOP_2, lerp_number, LERP(LOOP_NUM(0)))
LOOPS_F(LOOP_3, lerp, LERP(e))
LOOP_KERNEL_N(lerp_number, 2, 1, 0, LOOP_SET_F(lerp_number))
LOOP_KERNEL(lerp, 3, 0, LOOP_SET_F(lerp))

/* -- addcmul, addcdiv: number 0 is value -- */
#define COMPLEX_VALUE CMPLX(((const loop_number *)params)->f, ((const loop_number *)params)->im)
LOOPS_F(LOOPV_3, addcmul, a + LOOP_NUM(0) * b * e)
LOOPS_I(LOOP_3, addcmul, (uint64_t)a + (uint64_t)LOOP_INT(0) * (uint64_t)b * (uint64_t)e)
LOOPS_C(LOOP_3, addcmul, (cx)a + cx_mul(cx_mul(COMPLEX_VALUE, b), e))
LOOPS_F(LOOPV_3, addcdiv, a + LOOP_NUM(0) * b / e)
LOOPS_C(LOOP_3, addcdiv, (cx)a + cx_div(cx_mul(COMPLEX_VALUE, b), e))
LOOP_KERNEL_N(addcmul, 3, 1, LOOP_NO_BOOL, LOOP_SET_F(addcmul), LOOP_SET_I(addcmul), LOOP_SET_C(addcmul))
LOOP_KERNEL_N(addcdiv, 3, 1, 0, LOOP_SET_F(addcdiv), LOOP_SET_C(addcdiv))
