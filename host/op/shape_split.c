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

/* Pieces of `size`, the last one shorter; one empty piece of an empty dimension. */
static bp_status add_pieces(bp_ctx *c, shape_call *s, uint32_t d, int64_t size)
{
    int64_t n = dim_int(c, arg_tensor(s->args, 0)->sizes[d]);
    if (size < 0 || (size == 0 && n))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "pieces of size %lld of a dimension of size %lld",
                       (long long)size,
                       (long long)n);
    int64_t at = 0;
    do {
        int64_t length = n - at < size ? n - at : size;
        TRY(add_narrow(c, s, d, dim_const(at), dim_const(length)));
        at += size;
    } while (at < n && size);
    return BP_OK;
}

bp_status shape_split(bp_ctx *c, shape_call *s)
{
    uint32_t d;
    TRY(split_dim(c, s, arg_int(c, s->args, 2), &d));
    return add_pieces(c, s, d, arg_int(c, s->args, 1));
}

bp_status shape_split_with_sizes(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    uint32_t d;
    TRY(split_dim(c, s, arg_int(c, s->args, 2), &d));
    bp_dim at = dim_const(0);
    for (uint32_t i = 0; i < arg_list_len(s->args, 1); i++) {
        bp_dim length = arg_list_dim(s->args, 1, i);
        if (dim_int(c, length) < 0)
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"split_sizes\" holds %lld",
                           (long long)length.value);
        TRY(add_narrow(c, s, d, at, length));
        at = dim_add(c, at, length);
    }
    if (!dim_eq(at, t->sizes[d]))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                       "argument \"split_sizes\" adds up to %lld, and dimension %u has %lld",
                       (long long)dim_int(c, at), d, (long long)dim_int(c, t->sizes[d]));
    return c->diag.code;
}

bp_status shape_chunk(bp_ctx *c, shape_call *s)
{
    uint32_t d;
    TRY(split_dim(c, s, arg_int(c, s->args, 2), &d));
    int64_t chunks = arg_int(c, s->args, 1), n = dim_int(c, arg_tensor(s->args, 0)->sizes[d]);
    if (chunks <= 0)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"chunks\" is %lld, expected 1 or more",
                       (long long)chunks);
    for (int64_t i = 0; n == 0 && i < chunks; i++)
        TRY(add_narrow(c, s, d, dim_const(0), dim_const(0)));
    return n ? add_pieces(c, s, d, n / chunks + (n % chunks != 0)) : c->diag.code;
}

/* n sections of nearly equal size, longer ones first. */
static bp_status add_sections(bp_ctx *c, shape_call *s, uint32_t d, int64_t n)
{
    int64_t size = dim_int(c, arg_tensor(s->args, 0)->sizes[d]), at = 0;
    if (n <= 0)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"sections\" is %lld, expected 1 or more",
                       (long long)n);
    for (int64_t i = 0; i < n; i++) {
        int64_t length = size / n + (i < size % n);
        TRY(add_narrow(c, s, d, dim_const(at), dim_const(length)));
        at += length;
    }
    return BP_OK;
}

bp_status shape_tensor_split_sections(bp_ctx *c, shape_call *s)
{
    uint32_t d;
    TRY(split_dim(c, s, arg_int(c, s->args, 2), &d));
    return add_sections(c, s, d, arg_int(c, s->args, 1));
}

static int64_t clamp_index(int64_t i, int64_t n)
{
    i = i < 0 ? i + n : i;
    return i < 0 ? 0 : i > n ? n : i;
}

/* Sections that end at the indices of list argument 1, as slices do: negative ones count from the end. */
static bp_status add_at_indices(bp_ctx *c, shape_call *s, uint32_t d)
{
    int64_t n = dim_int(c, arg_tensor(s->args, 0)->sizes[d]), at = 0;
    uint32_t count = arg_list_len(s->args, 1);
    for (uint32_t i = 0; i <= count; i++) {
        int64_t end = i < count ? clamp_index(dim_int(c, arg_list_dim(s->args, 1, i)), n) : n;
        int64_t from = clamp_index(at, n);
        TRY(add_narrow(c, s, d, dim_const(from), dim_const(end > from ? end - from : 0)));
        at = i < count ? dim_int(c, arg_list_dim(s->args, 1, i)) : n;
    }
    return BP_OK;
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
    int64_t n = arg_int(c, s->args, 1), size = dim_int(c, t->sizes[along]);
    if (n <= 0 || size % n)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "dimension %u of size %lld does not divide into %lld sections",
                       along,
                       (long long)size, (long long)n);
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
