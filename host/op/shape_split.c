/* Shape rules of splitting: lists of views that share a dimension out. */
#include "host/op/rows.h"
#include "host/op/view_rule.h"

static bp_status split_dim(bp_ctx *c, shape_call *s, int64_t dim, uint32_t *d)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    if (t->rank == 0)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "a tensor of no dimensions cannot be split");
    return op_wrap_dim(c, s->op, "dim", dim, t->rank, d);
}

/* n / by, rounded up. */
static bp_dim parts_of(bp_ctx *c, bp_dim n, bp_dim by)
{
    return dim_floordiv(c, dim_add(c, n, dim_sub(c, by, dim_const(1))), by);
}

/* Pieces of `size`, the last one shorter; one empty piece of an empty dimension. How many there are is a number, also
 * where sizes are symbols. */
static bp_status add_pieces(bp_ctx *c, shape_call *s, uint32_t d, bp_dim size)
{
    bp_dim n = arg_tensor(s->args, 0)->sizes[d], zero = dim_const(0), at = zero;
    bool none = dim_is(size, 0);
    if (!dim_require(DIM_LE, zero, size) || (none && !dim_require(DIM_EQ, n, zero)))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "pieces of size %s of a dimension of size %s",
                       op_dim_text(c, size), op_dim_text(c, n));
    int64_t count = none ? 1 : dim_int(c, parts_of(c, n, size));
    for (int64_t i = 0; i + 1 < count; i++, at = dim_add(c, at, size))
        TRY(add_narrow(c, s, d, at, size));
    TRY(c->diag.code);
    return add_narrow(c, s, d, at, dim_sub(c, n, at));
}

bp_status shape_split(bp_ctx *c, shape_call *s)
{
    uint32_t d;
    TRY(split_dim(c, s, arg_int(c, s->args, 2), &d));
    return add_pieces(c, s, d, arg_dim(s->args, 1));
}

bp_status shape_split_with_sizes(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    uint32_t d;
    TRY(split_dim(c, s, arg_int(c, s->args, 2), &d));
    bp_dim at = dim_const(0);
    for (uint32_t i = 0; i < arg_list_len(s->args, 1); i++) {
        bp_dim length = arg_list_dim(s->args, 1, i);
        if (!dim_require(DIM_LE, dim_const(0), length))
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"split_sizes\" holds %s", op_dim_text(c, length));
        TRY(add_narrow(c, s, d, at, length));
        at = dim_add(c, at, length);
    }
    if (!dim_require(DIM_EQ, at, t->sizes[d]))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"split_sizes\" adds up to %s, and dimension %u has %s",
                       op_dim_text(c, at), d, op_dim_text(c, t->sizes[d]));
    return c->diag.code;
}

bp_status shape_chunk(bp_ctx *c, shape_call *s)
{
    uint32_t d;
    TRY(split_dim(c, s, arg_int(c, s->args, 2), &d));
    int64_t chunks = arg_int(c, s->args, 1);
    bp_dim n = arg_tensor(s->args, 0)->sizes[d];
    if (chunks <= 0)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"chunks\" is %lld, expected 1 or more",
                       (long long)chunks);
    if (!dim_is(n, 0))
        return add_pieces(c, s, d, parts_of(c, n, dim_const(chunks)));
    for (int64_t i = 0; i < chunks; i++)
        TRY(add_narrow(c, s, d, dim_const(0), dim_const(0)));
    return c->diag.code;
}

/* n sections of nearly equal size, longer ones first. */
static bp_status add_sections(bp_ctx *c, shape_call *s, uint32_t d, int64_t n)
{
    bp_dim size = arg_tensor(s->args, 0)->sizes[d], at = dim_const(0);
    if (n <= 0)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"sections\" is %lld, expected 1 or more",
                       (long long)n);
    for (int64_t i = 0; i < n; i++) {
        bp_dim length = dim_floordiv(c, dim_add(c, size, dim_const(n - 1 - i)), dim_const(n));
        TRY(add_narrow(c, s, d, at, length));
        at = dim_add(c, at, length);
    }
    return BP_OK;
}

bp_status shape_tensor_split_sections(bp_ctx *c, shape_call *s)
{
    uint32_t d;
    TRY(split_dim(c, s, arg_int(c, s->args, 2), &d));
    return add_sections(c, s, d, arg_int(c, s->args, 1));
}

/* Sections that end at the indices of list argument 1, as slices do: negative ones count from the end. */
static bp_status add_at_indices(bp_ctx *c, shape_call *s, uint32_t d)
{
    bp_dim n = arg_tensor(s->args, 0)->sizes[d], from = dim_const(0);
    uint32_t count = arg_list_len(s->args, 1);
    for (uint32_t i = 0; i <= count; i++) {
        bp_dim next = i < count ? arg_list_dim(s->args, 1, i) : n, end = slice_bound(c, next, n, from);
        TRY(add_narrow(c, s, d, from, dim_sub(c, end, from)));
        from = slice_bound(c, next, n, dim_const(0));
    }
    return c->diag.code;
}

bp_status shape_tensor_split_indices(bp_ctx *c, shape_call *s)
{
    uint32_t d;
    TRY(split_dim(c, s, arg_int(c, s->args, 2), &d));
    return add_at_indices(c, s, d);
}

/* hsplit, vsplit and dsplit: along dimension `along`, of a tensor of at least `least` dimensions. */
static bp_status split_along(bp_ctx *c, shape_call *s, uint32_t along, uint32_t least)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    if (t->rank < least)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "expects a tensor of %u or more dimensions, got %u", least,
                       t->rank);
    if (s->args[1].kind == BP_VALUE_LIST)
        return add_at_indices(c, s, along);
    int64_t n = arg_int(c, s->args, 1);
    if (n <= 0 || !dim_require(DIM_EQ, dim_mod(c, t->sizes[along], dim_const(n)), dim_const(0)))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "dimension %u of size %s does not divide into %lld sections",
                       along, op_dim_text(c, t->sizes[along]), (long long)n);
    return add_sections(c, s, along, n);
}

bp_status shape_hsplit(bp_ctx *c, shape_call *s)
{
    return split_along(c, s, arg_tensor(s->args, 0)->rank == 1 ? 0 : 1, 1);
}

bp_status shape_vsplit(bp_ctx *c, shape_call *s)
{
    return split_along(c, s, 0, 2);
}

bp_status shape_dsplit(bp_ctx *c, shape_call *s)
{
    return split_along(c, s, 2, 3);
}

bp_status shape_unbind(bp_ctx *c, shape_call *s)
{
    uint32_t d;
    TRY(split_dim(c, s, arg_int(c, s->args, 1), &d));
    int64_t n = dim_int(c, arg_tensor(s->args, 0)->sizes[d]);
    for (int64_t i = 0; i < n; i++)
        TRY(add_select(c, s, d, dim_const(i)));
    return BP_OK;
}
