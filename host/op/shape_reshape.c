/* Shape rules of reshaping: a view where strides allow it. */
#include "host/op/checks.h"
#include "host/op/rows.h"
#include "host/op/view_rule.h"

bp_status infer_sizes(bp_ctx *c, const op_row *op, bp_dim numel, uint32_t rank, bp_dim *sizes)
{
    char text[200];
    int64_t unknown = -1;
    bp_dim known = dim_const(1);
    if (rank > TENSOR_MAX_RANK)
        return op_fail(c, op, BP_INVALID_ARGUMENT, "%u sizes, at most %d are possible", rank, TENSOR_MAX_RANK);
    for (uint32_t d = 0; d < rank; d++) {
        bool infers = dim_eq_or_false(sizes[d], dim_const(-1));
        if (infers && unknown >= 0)
            return op_fail(c, op, BP_INVALID_ARGUMENT, "two sizes are -1, and only one can be inferred");
        if (!infers && !dim_require(DIM_LE, dim_const(0), sizes[d]))
            return op_fail(c, op, BP_INVALID_ARGUMENT, "size %s of dimension %u is negative", op_dim_text(c, sizes[d]),
                           d);
        if (infers)
            unknown = d;
        else
            known = dim_mul(c, known, sizes[d]);
    }
    TRY(c->diag.code);
    bool none = unknown >= 0 && !dim_require(DIM_LT, dim_const(0), known);
    bool fits = !none && (unknown < 0 ? dim_require(DIM_EQ, known, numel)
                                      : dim_require(DIM_EQ, dim_mod(c, numel, known), dim_const(0)));
    if (!fits)
        return op_fail(c, op, BP_INVALID_ARGUMENT, "shape %s does not hold %s elements%s",
                       sizes_text(text, sizeof text, rank, sizes), op_dim_text(c, numel),
                       none ? ": its -1 could be any size" : "");
    if (unknown >= 0)
        sizes[unknown] = dim_floordiv(c, numel, known);
    return c->diag.code;
}

bp_status add_reshaped_view(bp_ctx *c, shape_call *s, uint32_t rank, const bp_dim *sizes)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    shape_out *o = shape_add_view(c, s, 0, rank, sizes);
    if (!o)
        return c->diag.code;
    if (layout_view(c, t, rank, sizes, o->meta.strides))
        return c->diag.code;
    char text[200], have[200];
    op_fail(c, s->op, BP_INVALID_ARGUMENT, "no view of %s, as it lies in memory, has shape %s",
            tensor_describe(t, have, sizeof have), sizes_text(text, sizeof text, rank, sizes));
    diag_hint(&c->diag, "reshape copies where a view is not possible");
    return c->diag.code;
}

bp_status add_reshaped(bp_ctx *c, shape_call *s, uint32_t rank, const bp_dim *sizes)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    bp_dim strides[TENSOR_MAX_RANK];
    if (rank <= TENSOR_MAX_RANK && layout_view(c, t, rank, sizes, strides))
        return add_reshaped_view(c, s, rank, sizes);
    shape_add_out(c, s, t->dtype, rank, sizes);
    return c->diag.code;
}

/* Argument 1 as sizes for all elements of argument 0. */
static bp_dim *wanted_sizes(bp_ctx *c, shape_call *s, uint32_t *rank)
{
    bp_dim *sizes = arg_dims(c, s->args, 1, rank);
    bp_dim n = tensor_numel(c, arg_tensor(s->args, 0));
    return sizes && infer_sizes(c, s->op, n, *rank, sizes) == BP_OK ? sizes : NULL;
}

bp_status shape_view(bp_ctx *c, shape_call *s)
{
    uint32_t rank;
    bp_dim *sizes = wanted_sizes(c, s, &rank);
    return sizes ? add_reshaped_view(c, s, rank, sizes) : c->diag.code;
}

bp_status shape_reshape(bp_ctx *c, shape_call *s)
{
    uint32_t rank;
    bp_dim *sizes = wanted_sizes(c, s, &rank);
    return sizes ? add_reshaped(c, s, rank, sizes) : c->diag.code;
}

static bp_dim *sizes_of_other(bp_ctx *c, shape_call *s, uint32_t *rank)
{
    const bp_tensor *other = arg_tensor(s->args, 1);
    *rank = other->rank;
    bp_dim *sizes = arena_memdup(&c->scratch, other->sizes, other->rank * sizeof *sizes);
    if (!sizes)
        ctx_nomem(c);
    bp_dim n = tensor_numel(c, arg_tensor(s->args, 0));
    return sizes && infer_sizes(c, s->op, n, *rank, sizes) == BP_OK ? sizes : NULL;
}

bp_status shape_view_as(bp_ctx *c, shape_call *s)
{
    uint32_t rank;
    bp_dim *sizes = sizes_of_other(c, s, &rank);
    return sizes ? add_reshaped_view(c, s, rank, sizes) : c->diag.code;
}

bp_status shape_reshape_as(bp_ctx *c, shape_call *s)
{
    uint32_t rank;
    bp_dim *sizes = sizes_of_other(c, s, &rank);
    return sizes ? add_reshaped(c, s, rank, sizes) : c->diag.code;
}

bp_status shape_flatten(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    uint32_t from, to, rank = 0;
    TRY(op_wrap_dim(c, s->op, "start_dim", arg_int(c, s->args, 1), t->rank, &from));
    TRY(op_wrap_dim(c, s->op, "end_dim", arg_int(c, s->args, 2), t->rank, &to));
    if (from > to)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"start_dim\" (%u) lies behind \"end_dim\" (%u)",
                       from, to);
    if (t->rank && from == to)
        return shape_same(c, s);
    bp_dim sizes[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < from; d++)
        sizes[rank++] = t->sizes[d];
    sizes[rank++] = t->rank ? dim_product(c, t->sizes + from, to - from + 1) : dim_const(1);
    for (uint32_t d = to + 1; d < t->rank; d++)
        sizes[rank++] = t->sizes[d];
    return add_reshaped(c, s, rank, sizes);
}

bp_status shape_unflatten(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    uint32_t d, n;
    if (t->rank == 0)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "a tensor of no dimensions cannot be unflattened");
    TRY(op_wrap_dim(c, s->op, "dim", arg_int(c, s->args, 1), t->rank, &d));
    bp_dim *parts = arg_dims(c, s->args, 2, &n), sizes[2 * TENSOR_MAX_RANK];
    if (!parts)
        return c->diag.code;
    if (n == 0)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"sizes\" is empty");
    TRY(infer_sizes(c, s->op, t->sizes[d], n, parts));
    uint32_t rank = 0;
    for (uint32_t i = 0; i < d; i++)
        sizes[rank++] = t->sizes[i];
    for (uint32_t i = 0; i < n; i++)
        sizes[rank++] = parts[i];
    for (uint32_t i = d + 1; i < t->rank; i++)
        sizes[rank++] = t->sizes[i];
    return add_reshaped_view(c, s, rank, sizes);
}

bp_status shape_ravel(bp_ctx *c, shape_call *s)
{
    bp_dim n = tensor_numel(c, arg_tensor(s->args, 0));
    return add_reshaped(c, s, 1, &n);
}

/* At least `rank` dimensions; where new ones go is atleast_2d's and atleast_3d's. */
static bp_status add_at_least(bp_ctx *c, shape_call *s, uint32_t rank)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    if (t->rank >= rank)
        return shape_same(c, s);
    bp_dim one = dim_const(1), sizes[3] = {one, one, one};
    uint32_t first = rank == 3 && t->rank == 2 ? 0 : t->rank ? 1 : 0;
    if (rank == 1)
        first = 0;
    for (uint32_t d = 0; d < t->rank; d++)
        sizes[first + d] = t->sizes[d];
    return add_reshaped(c, s, rank, sizes);
}

bp_status shape_atleast_1d(bp_ctx *c, shape_call *s)
{
    return add_at_least(c, s, 1);
}

bp_status shape_atleast_2d(bp_ctx *c, shape_call *s)
{
    return add_at_least(c, s, 2);
}

bp_status shape_atleast_3d(bp_ctx *c, shape_call *s)
{
    return add_at_least(c, s, 3);
}

bp_status shape_reshape_copy(bp_ctx *c, shape_call *s)
{
    uint32_t rank;
    bp_dim *sizes = wanted_sizes(c, s, &rank);
    return sizes ? out_new(c, s, arg_tensor(s->args, 0)->dtype, rank, sizes) : c->diag.code;
}
