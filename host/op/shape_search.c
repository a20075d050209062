/* Shape rules of looking up, counting, repeating and of unique. Sizes that depend on data are the kernel's. */
#include "host/op/checks.h"
#include "host/op/rows.h"
#include <string.h>

/* A sorted sequence and the values to be found in it (NULL: one number). */
static bp_status found(bp_ctx *c, shape_call *s, const bp_tensor *sorted, const bp_tensor *values, bool narrow)
{
    char x[256], y[256];
    uint32_t rank = values ? values->rank : 0;
    bool fits = sorted->rank == 1 || (sorted->rank > 1 && rank == sorted->rank);
    for (uint32_t d = 0; fits && sorted->rank > 1 && d + 1 < rank; d++)
        fits = dim_eq(sorted->sizes[d], values->sizes[d]);
    if (!fits)
        return op_fail(
            c, s->op, BP_INVALID_ARGUMENT,
            "boundaries of sizes %s do not fit values of sizes %s: they must be one vector, or differ in "
            "the last dimension only",
            sizes_text(x, sizeof x, sorted->rank, sorted->sizes),
            sizes_text(y, sizeof y, rank, values ? values->sizes : NULL));
    return out_new(c, s, narrow ? BP_I32 : BP_I64, rank, values ? values->sizes : NULL);
}

bp_status shape_bucketize(bp_ctx *c, shape_call *s)
{
    TRY(check_rank(c, s, 1, 1, 1));
    const bp_tensor *values = s->args[0].kind == BP_VALUE_TENSOR ? arg_tensor(s->args, 0) : NULL;
    return found(c, s, arg_tensor(s->args, 1), values, arg_bool(s->args, 2));
}

bp_status shape_searchsorted(bp_ctx *c, shape_call *s)
{
    const bp_tensor *sorted = arg_tensor(s->args, 0), *order = arg_tensor(s->args, 5);
    const bp_tensor *values = s->args[1].kind == BP_VALUE_TENSOR ? arg_tensor(s->args, 1) : NULL;
    const char *side = arg_str(s->args, 4);
    if (side && strcmp(side, "left") != 0 && strcmp(side, "right") != 0)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"side\" must be \"left\" or \"right\", and is \"%s\"",
                       side);
    if (side && strcmp(side, "left") == 0 && arg_bool(s->args, 3))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "\"side\" is \"left\", and \"right\" is true");
    bool same = !order || order->rank == sorted->rank;
    for (uint32_t d = 0; order && same && d < order->rank; d++)
        same = dim_eq(order->sizes[d], sorted->sizes[d]);
    if (!same)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"sorter\" must have the boundaries' sizes");
    if (order && order->dtype != BP_I64)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"sorter\" must be int64, and is %s",
                       dtype_get(order->dtype)->torch);
    return found(c, s, sorted, values, arg_bool(s->args, 2));
}

bp_status shape_isin(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    return out_new(c, s, BP_BOOL, t->rank, t->sizes);
}

bp_status shape_bincount(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0), *weights = arg_tensor(s->args, 1);
    TRY(check_rank(c, s, 0, 1, 1));
    if (!dtype_is_int(self->dtype))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "only integers can be counted, and self is %s",
                       dtype_get(self->dtype)->torch);
    if (weights && (weights->rank != 1 || !dim_eq(weights->sizes[0], self->sizes[0])))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"weights\" must be a vector of self's length");
    if (arg_int(c, s->args, 2) < 0)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"minlength\" must not be negative");
    return out_unknown(c, s, BP_I64, 1);
}

bp_status shape_histc(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    if (!dtype_is_float(self->dtype))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "there is no histc for %s", dtype_get(self->dtype)->torch);
    if (arg_int(c, s->args, 1) <= 0)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"bins\" must be positive, and is %lld",
                       (long long)arg_int(c, s->args, 1));
    return out_new(c, s, self->dtype, 1, (bp_dim[]){arg_dim(s->args, 1)});
}

/* -- repeat_interleave -- */

static bp_status check_repeats(bp_ctx *c, const shape_call *s, uint32_t i)
{
    TRY(check_rank(c, s, i, 0, 1));
    return check_index_dtype(c, s, i);
}

bp_status shape_repeat_interleave(bp_ctx *c, shape_call *s)
{
    TRY(check_rank(c, s, 0, 1, 1));
    TRY(check_repeats(c, s, 0));
    if (arg_is_none(s->args, 1))
        return out_unknown(c, s, arg_tensor(s->args, 0)->dtype, 1);
    return out_new(c, s, arg_tensor(s->args, 0)->dtype, 1, (bp_dim[]){arg_dim(s->args, 1)});
}

/* Sizes with `n` slices along argument 2, or flat when it is None. */
static bp_status repeated(bp_ctx *c, shape_call *s, bp_dim n)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    bp_dim sizes[TENSOR_MAX_RANK] = {n};
    uint32_t dim, rank = self->rank ? self->rank : 1;
    if (arg_is_none(s->args, 2))
        return out_new(c, s, self->dtype, 1, &n);
    TRY(check_dim(c, s, 2, self, &dim));
    for (uint32_t d = 0; d < self->rank; d++)
        sizes[d] = d == dim ? n : self->sizes[d];
    return out_new(c, s, self->dtype, rank, sizes);
}

bp_status shape_repeat_interleave_int(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    bp_dim times = arg_dim(s->args, 1), n = dim_product(c, self->sizes, self->rank);
    uint32_t dim;
    if (dim_int(c, times) < 0)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "repeats must not be negative, and are %lld",
                       (long long)times.value);
    if (!arg_is_none(s->args, 2)) {
        TRY(check_dim(c, s, 2, self, &dim));
        n = self->rank ? self->sizes[dim] : dim_const(1);
    }
    n = dim_mul(c, n, times);
    if (!arg_is_none(s->args, 3) && !dim_eq(arg_dim(s->args, 3), n))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"output_size\" is %lld, and must be %lld",
                       (long long)arg_dim(s->args, 3).value, (long long)n.value);
    return repeated(c, s, n);
}

bp_status shape_repeat_interleave_tensor(bp_ctx *c, shape_call *s)
{
    TRY(check_repeats(c, s, 1));
    if (arg_is_none(s->args, 3))
        return out_unknown(c, s, arg_tensor(s->args, 0)->dtype, 1);
    return repeated(c, s, arg_dim(s->args, 3));
}

/* -- unique: along a dimension, or of all elements -- */

/* Values, then as many vectors of numbers as the schema has. */
static bp_status distinct(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    if (dtype_is_complex(self->dtype))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "complex numbers have no order");
    TRY(out_unknown(c, s, self->dtype, 1));
    return out_unknown(c, s, BP_I64, s->op->schema->nreturns - 1);
}

/* Argument i is a dimension; where it is empty, the others may be too. */
static bp_status distinct_slices(bp_ctx *c, shape_call *s, uint32_t i)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    uint32_t dim;
    if (self->rank == 0)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "a 0-d tensor has no dimension");
    TRY(check_dim(c, s, i, self, &dim));
    for (uint32_t d = 0; d < self->rank && !dim_is(self->sizes[dim], 0); d++)
        if (dim_is(self->sizes[d], 0))
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "dimension %u has size 0, and dimension %u is asked for", d,
                           dim);
    return distinct(c, s);
}

bp_status shape_unique(bp_ctx *c, shape_call *s) { return distinct(c, s); }
bp_status shape_unique_dim(bp_ctx *c, shape_call *s) { return distinct_slices(c, s, 1); }

bp_status shape_unique_consecutive(bp_ctx *c, shape_call *s)
{
    return arg_is_none(s->args, 3) ? distinct(c, s) : distinct_slices(c, s, 3);
}
