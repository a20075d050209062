/* Shape rules of looking up, counting, repeating and of unique. Sizes that depend on data are the kernel's. */
#include "host/op/checks.h"
#include "host/op/rows.h"
#include "host/op/view_rule.h"
#include <string.h>

/* A sorted sequence and the values to be found in it (NULL: one number). */
static bp_status found(bp_ctx *c, shape_call *s, const bp_tensor *sorted, const bp_tensor *values, bool narrow)
{
    char x[256], y[256];
    uint32_t rank = values ? values->rank : 0;
    bool fits = sorted->rank == 1 || (sorted->rank > 1 && rank == sorted->rank);
    if (fits && sorted->rank > 1)
        fits = sizes_must_match(rank - 1, sorted->sizes, values->sizes);
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
    if (order && (order->rank != sorted->rank || !sizes_must_match(order->rank, order->sizes, sorted->sizes)))
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
    if (weights && (weights->rank != 1 || !dim_require(DIM_EQ, weights->sizes[0], self->sizes[0])))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"weights\" must be a vector of self's length");
    bp_dim least = arg_dim(s->args, 2), n;
    if (!dim_require(DIM_LE, dim_const(0), least))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"minlength\" must not be negative");
    if (!shape_data_size(c, dim_is_const(least) ? least.value : 0, dim_const(-1), &n))
        return out_unknown(c, s, BP_I64, 1);
    return out_new(c, s, !weights ? BP_I64 : weights->dtype == BP_F32 ? BP_F32 : BP_F64, 1, &n);
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
    bp_dim n = arg_dim(s->args, 1);
    if (arg_is_none(s->args, 1) && !shape_data_size(c, 0, dim_const(-1), &n))
        return out_unknown(c, s, arg_tensor(s->args, 0)->dtype, 1);
    return out_new(c, s, arg_tensor(s->args, 0)->dtype, 1, &n);
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
    if (!dim_require(DIM_LE, dim_const(0), times))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "repeats must not be negative, and are %s",
                       op_dim_text(c, times));
    if (!arg_is_none(s->args, 2)) {
        TRY(check_dim(c, s, 2, self, &dim));
        n = self->rank ? self->sizes[dim] : dim_const(1);
    }
    n = dim_mul(c, n, times);
    if (!arg_is_none(s->args, 3) && !dim_require(DIM_EQ, arg_dim(s->args, 3), n))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"output_size\" is %s, and must be %s",
                       op_dim_text(c, arg_dim(s->args, 3)), op_dim_text(c, n));
    return repeated(c, s, n);
}

bp_status shape_repeat_interleave_tensor(bp_ctx *c, shape_call *s)
{
    bp_dim n = arg_dim(s->args, 3);
    TRY(check_repeats(c, s, 1));
    if (arg_is_none(s->args, 3) && !shape_data_size(c, 0, dim_const(-1), &n))
        return out_unknown(c, s, arg_tensor(s->args, 0)->dtype, 1);
    return repeated(c, s, n);
}

/* -- unique: along a dimension, or of all elements -- */

/* Which vectors of numbers come with the values: they are empty if not. */
typedef struct { bool inverse, counts; } vectors;

/* n distinct values along dim (-1: of all elements), and the numbers. */
static bp_status add_distinct(bp_ctx *c, shape_call *s, int64_t dim, bp_dim n, vectors v)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    bp_dim sizes[TENSOR_MAX_RANK] = {n}, none = dim_const(0);
    for (uint32_t d = 0; dim >= 0 && d < self->rank; d++)
        sizes[d] = d == dim ? n : self->sizes[d];
    shape_out *o = shape_add_out(c, s, self->dtype, dim >= 0 ? self->rank : 1, sizes);
    if (!o)
        return c->diag.code;
    if (dim > 0) { /* slice after slice: the dimension lies outermost */
        bp_dim slice = dim_const(1);
        for (uint32_t d = self->rank; d-- > 0;) {
            if (d == dim)
                continue;
            o->meta.strides[d] = slice;
            slice = dim_mul(c, slice, dim_clamp(c, sizes[d], dim_const(1), false));
        }
        o->meta.strides[dim] = slice;
    }
    bool flat = dim < 0;
    if (v.inverse)
        TRY(out_new(c, s, BP_I64, flat ? self->rank : 1, flat ? self->sizes : &self->sizes[dim]));
    else
        TRY(out_new(c, s, BP_I64, 1, &none));
    return s->op->schema->nreturns < 3 ? BP_OK : out_new(c, s, BP_I64, 1, v.counts ? &n : &none);
}

/* Values, then as many vectors of numbers as the schema has. */
static bp_status distinct(bp_ctx *c, shape_call *s, int64_t dim, vectors v)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    bp_dim n, most = dim >= 0 ? self->sizes[dim] : tensor_numel(c, self);
    if (dtype_is_complex(self->dtype))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "complex numbers have no order");
    if (shape_data_size(c, 0, most, &n))
        return add_distinct(c, s, dim, n, v);
    TRY(out_unknown(c, s, self->dtype, 1));
    return out_unknown(c, s, BP_I64, s->op->schema->nreturns - 1);
}

/* Argument i is a dimension; where it is empty, the others may be too. Inverse and counts come in any case. */
static bp_status distinct_slices(bp_ctx *c, shape_call *s, uint32_t i)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    uint32_t dim;
    if (self->rank == 0)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "a 0-d tensor has no dimension");
    TRY(check_dim(c, s, i, self, &dim));
    for (uint32_t d = 0; d < self->rank && !dim_eq_or_false(self->sizes[dim], dim_const(0)); d++)
        if (!dim_require(DIM_NE, self->sizes[d], dim_const(0)))
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "dimension %u has size 0, and dimension %u is asked for", d,
                           dim);
    return distinct(c, s, dim, (vectors){true, true});
}

bp_status shape_unique(bp_ctx *c, shape_call *s)
{
    bool counts = s->op->schema->nreturns > 2 && arg_bool(s->args, 3);
    return distinct(c, s, -1, (vectors){arg_bool(s->args, 2), counts});
}

bp_status shape_unique_dim(bp_ctx *c, shape_call *s) { return distinct_slices(c, s, 1); }

bp_status shape_unique_consecutive(bp_ctx *c, shape_call *s)
{
    vectors v = {arg_bool(s->args, 1), arg_bool(s->args, 2)};
    return arg_is_none(s->args, 3) ? distinct(c, s, -1, v) : distinct_slices(c, s, 3);
}
