/* Shape rules of pointwise operators: operands are broadcast, results laid out as PyTorch's iterator does, and the type
 * of a result follows from the promoted type of its operands. */
#include "host/op/shape_pointwise.h"
#include "host/op/checks.h"
#include "host/op/rows.h"
#include <string.h>

enum { OPERANDS = 8 };
/* What becomes of the promoted type. */
enum result { SAME, FLOAT, BOOLS, REAL, DOUBLE };

bp_dtype pointwise_promote(bp_ctx *c, const bp_value *args, uint32_t n)
{
    promote_state p = {0, 0, 0};
    for (uint32_t i = 0; i < n; i++) {
        if (args[i].kind == BP_VALUE_TENSOR)
            promote_tensor(c, &p, args[i].v.tensor);
        else
            promote_scalar(c, &p, arg_scalar(args, i));
    }
    return promote_result(&p);
}

/* Operands of the iterator: all tensors, and as NULL the numbers among the first `numbers` arguments. */
static uint32_t gather(const shape_call *s, uint32_t numbers, const bp_tensor **out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->nargs && n < OPERANDS; i++) {
        bool is_tensor = s->args[i].kind == BP_VALUE_TENSOR;
        if (is_tensor || (i < numbers && !arg_is_none(s->args, i)))
            out[n++] = is_tensor ? s->args[i].v.tensor : NULL;
    }
    return n;
}

static shape_out *add_broadcast(bp_ctx *c, shape_call *s, bp_dtype dtype, uint32_t n, const bp_tensor *const *t)
{
    bp_dim sizes[2][TENSOR_MAX_RANK];
    uint32_t rank = 0, now = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!t[i])
            continue;
        if (layout_broadcast(c, rank, sizes[now], t[i]->rank, t[i]->sizes, sizes[now ^ 1]) != BP_OK)
            return NULL;
        now ^= 1;
        rank = rank > t[i]->rank ? rank : t[i]->rank;
    }
    shape_out *out = shape_add_out(c, s, dtype, rank, sizes[now]);
    if (out)
        layout_pointwise(c, n, t, rank, sizes[now], out->meta.strides);
    return out;
}

bp_status pointwise_add_out(bp_ctx *c, shape_call *s, bp_dtype dtype, uint32_t numbers)
{
    const bp_tensor *t[OPERANDS];
    uint32_t n = gather(s, numbers, t);
    return add_broadcast(c, s, dtype, n, t) ? BP_OK : c->diag.code;
}

/* A rule of `operands` promoted arguments. */
static bp_status rule(bp_ctx *c, shape_call *s, uint32_t operands, enum result result)
{
    bp_dtype d = pointwise_promote(c, s->args, operands);
    if (result == FLOAT && dtype_is_integral(d))
        d = c->ambient.default_dtype;
    else if (result == BOOLS)
        d = BP_BOOL;
    else if (result == REAL)
        d = dtype_real_of(d);
    else if (result == DOUBLE)
        d = dtype_is_complex(d) ? BP_C128 : BP_F64;
    return pointwise_add_out(c, s, d, operands);
}

bp_status shape_unary(bp_ctx *c, shape_call *s) { return rule(c, s, 1, SAME); }
bp_status shape_unary_float(bp_ctx *c, shape_call *s) { return rule(c, s, 1, FLOAT); }
bp_status shape_unary_bool(bp_ctx *c, shape_call *s) { return rule(c, s, 1, BOOLS); }
bp_status shape_unary_real(bp_ctx *c, shape_call *s) { return rule(c, s, 1, REAL); }
bp_status shape_binary(bp_ctx *c, shape_call *s) { return rule(c, s, 2, SAME); }
bp_status shape_binary_float(bp_ctx *c, shape_call *s) { return rule(c, s, 2, FLOAT); }
bp_status shape_binary_bool(bp_ctx *c, shape_call *s) { return rule(c, s, 2, BOOLS); }
bp_status shape_float_power(bp_ctx *c, shape_call *s) { return rule(c, s, 2, DOUBLE); }
bp_status shape_ternary(bp_ctx *c, shape_call *s) { return rule(c, s, 3, SAME); }

static bp_dtype dtype_of(const bp_value *args, uint32_t i)
{
    const bp_tensor *t = arg_tensor(args, i);
    return t ? t->dtype : BP_DTYPE_UNSET;
}

bool pointwise_ldexp_is_exact(const bp_value *args)
{
    return dtype_is_float(dtype_of(args, 0)) && dtype_is_integral(dtype_of(args, 1));
}

static bp_status refuse_bool(bp_ctx *c, const shape_call *s, const char *instead)
{
    op_fail(c, s->op, BP_INVALID_ARGUMENT, "not there for bools");
    diag_hint(&c->diag, "use %s", instead);
    return c->diag.code;
}

/* Differences have no meaning for bools, on either side. */
bp_status shape_sub(bp_ctx *c, shape_call *s)
{
    for (uint32_t i = 0; i < 2; i++)
        if (dtype_of(s->args, i) == BP_BOOL || s->args[i].kind == BP_VALUE_BOOL)
            return refuse_bool(c, s, "bitwise_xor, or logical_xor");
    return rule(c, s, 2, SAME);
}

/* A rule with the first two operands exchanged, as the layout of the result shows. */
static bp_status exchanged(bp_ctx *c, shape_call *s, op_shape_fn inner)
{
    bp_value *turned = arena_memdup(&c->scratch, s->args, s->nargs * sizeof *turned);
    if (!turned)
        return ctx_nomem(c);
    turned[0] = s->args[1];
    turned[1] = s->args[0];
    const bp_value *args = s->args;
    s->args = turned;
    bp_status st = inner(c, s);
    s->args = args;
    return st;
}

bp_status shape_rsub(bp_ctx *c, shape_call *s) { return exchanged(c, s, shape_sub); }
bp_status shape_binary_exchanged(bp_ctx *c, shape_call *s) { return exchanged(c, s, shape_binary); }

bp_status shape_neg(bp_ctx *c, shape_call *s)
{
    return dtype_of(s->args, 0) == BP_BOOL ? refuse_bool(c, s, "bitwise_not, or logical_not") : rule(c, s, 1, SAME);
}

bp_status shape_itself(bp_ctx *c, shape_call *s)
{
    return shape_add_same(c, s, 0) ? BP_OK : c->diag.code;
}

bp_status shape_positive(bp_ctx *c, shape_call *s)
{
    return dtype_of(s->args, 0) == BP_BOOL ? refuse_bool(c, s, "the tensor itself") : shape_itself(c, s);
}

bp_status shape_conj_physical(bp_ctx *c, shape_call *s)
{
    return dtype_is_complex(dtype_of(s->args, 0)) ? rule(c, s, 1, SAME) : shape_itself(c, s);
}

/* Bits are there for integers and bools only. */
static bp_status bits(bp_ctx *c, shape_call *s, uint32_t operands)
{
    bp_dtype d = pointwise_promote(c, s->args, operands);
    if (!dtype_is_integral(d))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "not there for %s", dtype_get(d)->torch);
    return pointwise_add_out(c, s, d, operands);
}

bp_status shape_bits_1(bp_ctx *c, shape_call *s) { return bits(c, s, 1); }
bp_status shape_bits_2(bp_ctx *c, shape_call *s) { return bits(c, s, 2); }

/* angle: real numbers keep a float type; complex ones give the real type of theirs. */
bp_status shape_angle(bp_ctx *c, shape_call *s)
{
    return rule(c, s, 1, dtype_is_complex(dtype_of(s->args, 0)) ? REAL : FLOAT);
}

bp_status shape_polygamma(bp_ctx *c, shape_call *s)
{
    int64_t n = arg_int(c, s->args, 0);
    if (n < 0)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"n\": %lld is negative", (long long)n);
    bp_dtype d = dtype_of(s->args, 1);
    return pointwise_add_out(c, s, dtype_is_integral(d) ? c->ambient.default_dtype : d, 0);
}

bp_status shape_mvlgamma(bp_ctx *c, shape_call *s)
{
    int64_t p = arg_int(c, s->args, 1);
    if (p < 1)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"p\": %lld, expected at least 1", (long long)p);
    return rule(c, s, 1, FLOAT);
}

/* square is pow(x, 2): bools become integers. */
bp_status shape_square(bp_ctx *c, shape_call *s)
{
    bp_dtype d = dtype_of(s->args, 0);
    return pointwise_add_out(c, s, d == BP_BOOL ? BP_I64 : d, 0);
}

/* div with a rounding mode; without one it is true division. */
bp_status shape_div_mode(bp_ctx *c, shape_call *s)
{
    const char *mode = arg_str(s->args, 2);
    if (mode && strcmp(mode, "trunc") != 0 && strcmp(mode, "floor") != 0)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                       "argument \"rounding_mode\": \"%s\" is none of None, \"trunc\" and \"floor\"", mode);
    return rule(c, s, 2, mode ? SAME : FLOAT);
}

static bp_status same_types(bp_ctx *c, const shape_call *s, uint32_t i, uint32_t j)
{
    bp_dtype a = dtype_of(s->args, i), b = dtype_of(s->args, j);
    if (a == b || !a || !b)
        return BP_OK;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "arguments \"%s\" and \"%s\" differ in type: %s and %s",
                   s->op->schema->args[i].name, s->op->schema->args[j].name, dtype_get(a)->torch, dtype_get(b)->torch);
}

bp_status shape_isclose(bp_ctx *c, shape_call *s)
{
    TRY(same_types(c, s, 0, 1));
    for (uint32_t i = 2; i < 4; i++)
        if (!(arg_float(s->args, i) >= 0))
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"%s\": %g is negative",
                           s->op->schema->args[i].name, arg_float(s->args, i));
    return rule(c, s, 2, BOOLS);
}

bp_status shape_binary_alike(bp_ctx *c, shape_call *s)
{
    TRY(same_types(c, s, 0, 1));
    return rule(c, s, 2, SAME);
}

bp_status shape_lerp(bp_ctx *c, shape_call *s)
{
    TRY(same_types(c, s, 0, 1));
    TRY(same_types(c, s, 0, 2));
    return rule(c, s, 2, SAME);
}

bp_status shape_where(bp_ctx *c, shape_call *s)
{
    bp_dtype d = dtype_of(s->args, 0);
    if (d != BP_BOOL && d != BP_U8)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"condition\": expected bool, got %s",
                       dtype_get(d)->torch);
    return pointwise_add_out(c, s, pointwise_promote(c, s->args + 1, 2), 3);
}

bp_status shape_clamp(bp_ctx *c, shape_call *s)
{
    if (arg_is_none(s->args, 1) && arg_is_none(s->args, 2)) {
        op_fail(c, s->op, BP_INVALID_ARGUMENT, "neither \"min\" nor \"max\" is given");
        diag_hint(&c->diag, "give at least one of them");
        return c->diag.code;
    }
    return pointwise_add_out(c, s, pointwise_promote(c, s->args, 3), 0);
}

/* A number to the power of a tensor: the result is contiguous. */
static bp_status number_power(bp_ctx *c, shape_call *s, bp_dtype d)
{
    const bp_tensor *t = arg_tensor(s->args, 1);
    return shape_add_out(c, s, d, t->rank, t->sizes) ? BP_OK : c->diag.code;
}
bp_status shape_number_power(bp_ctx *c, shape_call *s)
{
    return number_power(c, s, pointwise_promote(c, s->args, 2));
}
bp_status shape_number_float_power(bp_ctx *c, shape_call *s)
{
    return number_power(c, s, dtype_is_complex(pointwise_promote(c, s->args, 2)) ? BP_C128 : BP_F64);
}

/* One tensor among promoted numbers: the iterator sees the tensor alone. */
bp_status shape_unary_number(bp_ctx *c, shape_call *s)
{
    return pointwise_add_out(c, s, pointwise_promote(c, s->args, 2), 0);
}

bp_status shape_addcdiv(bp_ctx *c, shape_call *s)
{
    if (dtype_is_integral(dtype_of(s->args, 1)) && dtype_is_integral(dtype_of(s->args, 2))) {
        op_fail(c, s->op, BP_INVALID_ARGUMENT, "division of integers");
        diag_hint(&c->diag, "convert tensor1 or tensor2 to a float type, or use div with a rounding mode");
        return c->diag.code;
    }
    return rule(c, s, 3, SAME);
}

/* Adds results of argument i's own sizes and type, laid out as a pointwise result of it alone. */
static bp_status like(bp_ctx *c, shape_call *s, uint32_t i, uint32_t nout, const bp_dtype *dtypes)
{
    const bp_tensor *t = arg_tensor(s->args, i);
    for (uint32_t k = 0; k < nout; k++)
        if (!add_broadcast(c, s, dtypes[k] ? dtypes[k] : (bp_dtype)t->dtype, 1, &t))
            return c->diag.code;
    return BP_OK;
}

bp_status shape_frexp(bp_ctx *c, shape_call *s) { return like(c, s, 0, 2, (const bp_dtype[]){0, BP_I32}); }
bp_status shape_two_like(bp_ctx *c, shape_call *s) { return like(c, s, 0, 2, (const bp_dtype[]){0, 0}); }

bp_status shape_complex(bp_ctx *c, shape_call *s)
{
    bp_dtype d = dtype_of(s->args, 0);
    TRY(same_types(c, s, 0, 1));
    if (d != BP_F32 && d != BP_F64)
        return op_fail(c, s->op, d == BP_F16 ? BP_UNIMPLEMENTED : BP_INVALID_ARGUMENT, "not there for %s",
                       dtype_get(d)->torch);
    return pointwise_add_out(c, s, dtype_complex_of(d), 0);
}

bp_status shape_elu_backward(bp_ctx *c, shape_call *s)
{
    const bp_value operands[] = {s->args[0], s->args[5]};
    return pointwise_add_out(c, s, pointwise_promote(c, operands, 2), 0);
}

bp_status shape_log_sigmoid_backward(bp_ctx *c, shape_call *s)
{
    TRY(same_types(c, s, 0, 1));
    return rule(c, s, 1, SAME);
}

/* The gradient has half of the argument's size along dim. */
bp_status shape_glu_backward(bp_ctx *c, shape_call *s)
{
    const bp_tensor *grad = arg_tensor(s->args, 0), *x = arg_tensor(s->args, 1);
    uint32_t dim;
    TRY(same_types(c, s, 0, 1));
    TRY(op_wrap_dim(c, s->op, "dim", arg_int(c, s->args, 2), x->rank, &dim));
    bool fits = x->rank > 0 && grad->rank == x->rank;
    for (uint32_t d = 0; fits && d < x->rank; d++)
        fits = dim_require(DIM_EQ, d == dim ? dim_mul(c, grad->sizes[d], dim_const(2)) : grad->sizes[d], x->sizes[d]);
    char g[256], all[256];
    if (!fits)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "a gradient of sizes %s is not half of %s along dimension %u",
                       sizes_text(g, sizeof g, grad->rank, grad->sizes),
                       sizes_text(all, sizeof all, x->rank, x->sizes), dim);
    return like(c, s, 1, 1, (const bp_dtype[]){0});
}

bp_status shape_prelu_backward(bp_ctx *c, shape_call *s)
{
    TRY(same_types(c, s, 0, 1));
    TRY(same_types(c, s, 0, 2));
    TRY(rule(c, s, 1, SAME));
    return rule(c, s, 1, SAME);
}

/* ldexp: powers of two of integers are computed first, and are a contiguous operand. */
bp_status shape_ldexp(bp_ctx *c, shape_call *s)
{
    bp_dtype exponent = dtype_of(s->args, 1), d = pointwise_promote(c, s->args, 2);
    if (pointwise_ldexp_is_exact(s->args) && exponent == BP_BOOL)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "not there for an exponent of bools");
    if (pointwise_ldexp_is_exact(s->args) || !dtype_is_integral(exponent))
        return rule(c, s, 2, FLOAT);
    bp_dim strides[TENSOR_MAX_RANK];
    bp_tensor power = *arg_tensor(s->args, 1);
    power.strides = strides;
    layout_contiguous(c, power.rank, power.sizes, strides);
    const bp_tensor *const t[] = {arg_tensor(s->args, 0), &power};
    d = dtype_is_integral(d) ? c->ambient.default_dtype : d;
    return add_broadcast(c, s, d, 2, t) ? BP_OK : c->diag.code;
}

bp_status shape_prelu(bp_ctx *c, shape_call *s)
{
    const bp_tensor *x = arg_tensor(s->args, 0), *w = arg_tensor(s->args, 1);
    TRY(same_types(c, s, 0, 1));
    if (w->rank > 1)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"weight\": expected 0 or 1 dimensions, got %u",
                       w->rank);
    bp_dim channels = x->rank > 1 ? x->sizes[1] : dim_const(1);
    if (w->rank == 1 && !layout_expands(w->sizes[0], x->rank ? channels : dim_const(1)))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"weight\": %s slopes for %s channels",
                       op_dim_text(c, w->sizes[0]), op_dim_text(c, channels));
    return like(c, s, 0, 1, (const bp_dtype[]){0});
}

bp_status shape_glu(bp_ctx *c, shape_call *s)
{
    const bp_tensor *x = arg_tensor(s->args, 0);
    if (x->rank == 0)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"self\": a 0-d tensor cannot be halved");
    uint32_t dim;
    TRY(op_wrap_dim(c, s->op, "dim", arg_int(c, s->args, 1), x->rank, &dim));
    if (!dim_require(DIM_EQ, dim_mod(c, x->sizes[dim], dim_const(2)), dim_const(0)))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "dimension %u of size %s cannot be halved", dim,
                       op_dim_text(c, x->sizes[dim]));
    bp_dim sizes[TENSOR_MAX_RANK];
    memcpy(sizes, x->sizes, x->rank * sizeof *sizes);
    sizes[dim] = dim_floordiv(c, sizes[dim], dim_const(2));
    shape_out *out = shape_add_out(c, s, x->dtype, x->rank, sizes);
    if (!out)
        return c->diag.code;
    bp_tensor half = *x;
    half.sizes = sizes;
    const bp_tensor *operand = &half;
    layout_pointwise(c, 1, &operand, x->rank, sizes, out->meta.strides);
    return BP_OK;
}
