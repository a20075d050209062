/* Shape rules of orders and extremes along a dimension. Sorts keep the layout of a dense tensor; the rest is
 * contiguous. */
#include "host/op/checks.h"
#include "host/op/rows.h"
#include <string.h>

static bp_status check_ordered(bp_ctx *c, const shape_call *s)
{
    if (!dtype_is_complex(arg_tensor(s->args, 0)->dtype))
        return BP_OK;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "complex numbers have no order");
}

/* Selections by rank have no bool form in PyTorch. */
static bp_status check_ranked(bp_ctx *c, const shape_call *s)
{
    if (arg_tensor(s->args, 0)->dtype != BP_BOOL)
        return check_ordered(c, s);
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "there is no %s of bools", s->op->schema->name);
}

/* Values and indices, or one of them, laid out like self. */
static bp_status ordered(bp_ctx *c, shape_call *s, uint32_t dim_at, bool values, bool indices)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    uint32_t dim;
    TRY(check_ordered(c, s));
    if (dim_at)
        TRY(check_dim(c, s, dim_at, self, &dim));
    if (values)
        TRY(out_like(c, s, self, self->dtype));
    return indices ? out_like(c, s, self, BP_I64) : BP_OK;
}

bp_status shape_sort(bp_ctx *c, shape_call *s) { return ordered(c, s, 1, true, true); }
bp_status shape_sort_stable(bp_ctx *c, shape_call *s) { return ordered(c, s, 2, true, true); }
bp_status shape_argsort(bp_ctx *c, shape_call *s) { return ordered(c, s, 1, false, true); }
bp_status shape_argsort_stable(bp_ctx *c, shape_call *s) { return ordered(c, s, 2, false, true); }
bp_status shape_msort(bp_ctx *c, shape_call *s) { return ordered(c, s, 0, true, false); }

/* Values and indices with `n` along dim. */
static bp_status pairs(bp_ctx *c, shape_call *s, uint32_t dim, bp_dim n, bool keep)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    bp_dim sizes[TENSOR_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t d = 0; d < self->rank; d++)
        if (d != dim || keep)
            sizes[rank++] = d == dim ? n : self->sizes[d];
    TRY(out_new(c, s, self->dtype, rank, sizes));
    return out_new(c, s, BP_I64, rank, sizes);
}

static bp_dim length(const bp_tensor *t, uint32_t dim) { return t->rank ? t->sizes[dim] : dim_const(1); }

bp_status shape_topk(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    bp_dim k = arg_dim(s->args, 1);
    uint32_t dim;
    TRY(check_ranked(c, s));
    TRY(check_dim(c, s, 2, self, &dim));
    if (!dim_require(DIM_LE, dim_const(0), k) || !dim_require(DIM_LE, k, length(self, dim)))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"k\" is %s, and the dimension has %s elements",
                       op_dim_text(c, k), op_dim_text(c, length(self, dim)));
    return pairs(c, s, dim, k, true);
}

/* One element a lane: the dimension must not be empty. */
static bp_status picked(bp_ctx *c, shape_call *s, uint32_t dim_at, bool keep)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    uint32_t dim;
    TRY(check_ordered(c, s));
    TRY(check_dim(c, s, dim_at, self, &dim));
    if (!dim_require(DIM_NE, length(self, dim), dim_const(0)))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "dimension %u has no elements to choose from", dim);
    return pairs(c, s, dim, dim_const(1), keep);
}

bp_status shape_pick(bp_ctx *c, shape_call *s) { return picked(c, s, 1, arg_bool(s->args, 2)); }

bp_status shape_median_dim(bp_ctx *c, shape_call *s)
{
    TRY(check_ranked(c, s));
    return shape_pick(c, s);
}

bp_status shape_median(bp_ctx *c, shape_call *s)
{
    TRY(check_ranked(c, s));
    return out_new(c, s, arg_tensor(s->args, 0)->dtype, 0, NULL);
}

bp_status shape_kthvalue(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    bp_dim k = arg_dim(s->args, 1);
    uint32_t dim;
    if (self->rank)
        TRY(check_ranked(c, s));
    TRY(check_dim(c, s, 2, self, &dim));
    bp_dim n = length(self, dim);
    if (!dim_eq_or_false(n, dim_const(0)) && (!dim_require(DIM_LE, dim_const(1), k) || !dim_require(DIM_LE, k, n)))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"k\" is %s, and the dimension has %s elements",
                       op_dim_text(c, k), op_dim_text(c, n));
    return picked(c, s, 2, arg_bool(s->args, 3));
}

bp_status shape_cumulate(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    uint32_t dim;
    TRY(check_ordered(c, s));
    TRY(check_dim(c, s, 1, self, &dim));
    TRY(out_new(c, s, self->dtype, self->rank, self->sizes));
    return out_new(c, s, BP_I64, self->rank, self->sizes);
}
