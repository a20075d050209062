/* Shape rules of random numbers. The first result has as many elements as numbers are drawn: the generator moves by it,
 * known before anything runs. */
#include "host/op/checks.h"
#include "host/op/rows.h"
#include <string.h>

static bp_status check_generator(bp_ctx *c, const shape_call *s)
{
    int32_t i = schema_find(s->op->schema, "generator");
    if (i < 0 || s->args[i].kind != BP_VALUE_GENERATOR || !s->args[i].v.tensor)
        return BP_OK;
    return op_fail(c, s->op, BP_UNIMPLEMENTED, "a generator other than the context's");
}

/* The result just added holds floats (or, if numbers, anything but bools and complex numbers). */
static bp_status check_type(bp_ctx *c, const shape_call *s, bool numbers)
{
    bp_dtype d = s->out[0].meta.dtype;
    if (dtype_is_float(d) || (numbers && dtype_is_int(d)))
        return check_generator(c, s);
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "there is no %s for %s", s->op->schema->name, dtype_get(d)->torch);
}

static bp_status check_probability(bp_ctx *c, const shape_call *s, uint32_t i)
{
    double p = arg_float(s->args, i);
    if (p >= 0 && p <= 1)
        return BP_OK;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"p\" must be between 0 and 1, and is %g", p);
}

static bp_status check_deviation(bp_ctx *c, const shape_call *s, uint32_t i)
{
    double deviation = arg_float(s->args, i);
    if (deviation >= 0)
        return BP_OK;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"std\" must not be negative, and is %g", deviation);
}

/* Sizes in argument i, with what dtype= and device= say. */
static bp_status sized(bp_ctx *c, shape_call *s, uint32_t rank, const bp_dim *sizes, bp_dtype otherwise)
{
    int32_t dtype = schema_find(s->op->schema, "dtype"), device = schema_find(s->op->schema, "device");
    bp_dtype d = dtype >= 0 ? arg_dtype(s->args, (uint32_t)dtype) : BP_DTYPE_UNSET;
    for (uint32_t i = 0; i < rank; i++)
        if (!dim_require(DIM_LE, dim_const(0), sizes[i]))
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "a size must not be negative, and one is %s",
                           op_dim_text(c, sizes[i]));
    shape_out *o = shape_add_out(c, s, d ? d : otherwise, rank, sizes);
    if (o && device >= 0 && arg_device(s->args, (uint32_t)device).kind)
        o->meta.device = arg_device(s->args, (uint32_t)device);
    return c->diag.code;
}

static bp_status sized_by(bp_ctx *c, shape_call *s, bp_dtype otherwise)
{
    uint32_t rank;
    bp_dim *sizes = arg_dims(c, s->args, (uint32_t)schema_find(s->op->schema, "size"), &rank);
    return sizes ? sized(c, s, rank, sizes, otherwise) : c->diag.code;
}

bp_status shape_random_sized(bp_ctx *c, shape_call *s)
{
    TRY(sized_by(c, s, c->ambient.default_dtype));
    return check_type(c, s, false);
}

bp_status shape_random_like(bp_ctx *c, shape_call *s)
{
    TRY(shape_like(c, s));
    return check_type(c, s, false);
}

bp_status shape_normal_sized(bp_ctx *c, shape_call *s)
{
    TRY(check_deviation(c, s, 1));
    return shape_random_sized(c, s);
}

/* Whether a type holds low .. high - 1. */
static bp_status check_range(bp_ctx *c, const shape_call *s)
{
    int32_t low_at = schema_find(s->op->schema, "low");
    bp_dim low = low_at < 0 ? dim_const(0) : arg_dim(s->args, (uint32_t)low_at);
    bp_dim high = arg_dim(s->args, (uint32_t)schema_find(s->op->schema, "high"));
    if (dim_require(DIM_LT, low, high))
        return c->diag.code;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"high\" must be greater than %s, and is %s",
                   op_dim_text(c, low), op_dim_text(c, high));
}

bp_status shape_randint(bp_ctx *c, shape_call *s)
{
    TRY(check_range(c, s));
    TRY(sized_by(c, s, BP_I64));
    return check_type(c, s, true);
}

bp_status shape_randint_like(bp_ctx *c, shape_call *s)
{
    TRY(check_range(c, s));
    TRY(shape_like(c, s));
    return check_type(c, s, true);
}

bp_status shape_randperm(bp_ctx *c, shape_call *s)
{
    TRY(sized(c, s, 1, (bp_dim[]){arg_dim(s->args, 0)}, BP_I64));
    return check_type(c, s, true);
}

/* One number an element of self, which is not read: uniform, normal_functional, exponential, random. */
bp_status shape_random_fill(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    bool numbers = strncmp(s->op->schema->name, "random", 6) == 0;
    int32_t deviation = schema_find(s->op->schema, "std"), high = schema_find(s->op->schema, "to");
    if (deviation >= 0)
        TRY(check_deviation(c, s, (uint32_t)deviation));
    if (!numbers && high >= 0 && arg_float(s->args, (uint32_t)high) < arg_float(s->args, (uint32_t)high - 1))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "the range [%g, %g) is empty",
                       arg_float(s->args, (uint32_t)high - 1), arg_float(s->args, (uint32_t)high));
    TRY(out_like(c, s, self, self->dtype));
    return numbers && self->dtype == BP_BOOL ? check_generator(c, s) : check_type(c, s, numbers);
}

bp_status shape_bernoulli(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    int32_t p = schema_find(s->op->schema, "p");
    if (p >= 0 && s->args[p].kind == BP_VALUE_TENSOR)
        TRY(check_expands(c, s, (uint32_t)p, self->rank, self->sizes));
    else if (p >= 0)
        TRY(check_probability(c, s, (uint32_t)p));
    TRY(out_like(c, s, self, self->dtype));
    return p >= 0 ? check_generator(c, s) : check_type(c, s, false);
}

/* normal of a mean and a deviation of which one or both are tensors. */
bp_status shape_normal_of(bp_ctx *c, shape_call *s)
{
    const bp_tensor *mean = s->args[0].kind == BP_VALUE_TENSOR ? arg_tensor(s->args, 0) : NULL;
    const bp_tensor *std = s->args[1].kind == BP_VALUE_TENSOR ? arg_tensor(s->args, 1) : NULL;
    const bp_tensor *of = mean ? mean : std;
    bp_dim sizes[TENSOR_MAX_RANK];
    if (!std)
        TRY(check_deviation(c, s, 1));
    if (!mean || !std) {
        TRY(out_like(c, s, of, of->dtype));
    } else {
        TRY(layout_broadcast(c, mean->rank, mean->sizes, std->rank, std->sizes, sizes));
        TRY(out_new(c, s, mean->dtype, mean->rank > std->rank ? mean->rank : std->rank, sizes));
    }
    return check_type(c, s, false);
}

bp_status shape_multinomial(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    bp_dim n = arg_dim(s->args, 1), sizes[2] = {n, n};
    TRY(check_rank(c, s, 0, 1, 2));
    TRY(check_generator(c, s));
    if (!dtype_is_float(self->dtype))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "probabilities must be floats, and are %s",
                       dtype_get(self->dtype)->torch);
    bp_dim categories = self->sizes[self->rank - 1], one = dim_const(1);
    if (!dim_require(DIM_LE, one, n) || !dim_require(DIM_LE, one, categories) ||
        (!arg_bool(s->args, 2) && !dim_require(DIM_LE, n, categories)))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "%s samples of %s categories", op_dim_text(c, n),
                       op_dim_text(c, categories));
    if (self->rank == 2)
        sizes[0] = self->sizes[0];
    return out_new(c, s, BP_I64, self->rank, sizes);
}

/* -- dropout -- */

/* The argument itself where nothing is dropped. */
bp_status shape_dropout(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    TRY(check_probability(c, s, 1));
    if (!arg_bool(s->args, 2) || arg_float(s->args, 1) == 0 || is_empty(t)) {
        shape_add_same(c, s, 0);
        return c->diag.code;
    }
    TRY(out_like(c, s, t, t->dtype));
    return check_type(c, s, false);
}

bp_status shape_native_dropout(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    TRY(check_probability(c, s, 1));
    TRY(out_like(c, s, t, t->dtype));
    TRY(check_type(c, s, false));
    return out_like(c, s, t, BP_BOOL);
}
