/* Shape rules of views: sizes, strides and offset of what shares its argument's memory. */
#include "host/op/checks.h"
#include "host/op/rows.h"
#include "host/op/view_rule.h"
#include <string.h>

bp_status shape_same_view(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    shape_add_view(c, s, 0, t->rank, t->sizes);
    return c->diag.code;
}

bp_status shape_same(bp_ctx *c, shape_call *s)
{
    shape_add_same(c, s, 0);
    return c->diag.code;
}

/* -- order of dimensions ------------------------------------------------------------------------------------------- */

bp_status add_permuted(bp_ctx *c, shape_call *s, uint32_t rank, const uint32_t *order)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    shape_out *o = shape_add_view(c, s, 0, t->rank, t->sizes);
    for (uint32_t d = 0; o && d < rank; d++) {
        o->meta.sizes[d] = t->sizes[order[d]];
        o->meta.strides[d] = t->strides[order[d]];
    }
    return c->diag.code;
}

static bp_status add_swapped(bp_ctx *c, shape_call *s, uint32_t a, uint32_t b)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    uint32_t order[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < t->rank; d++)
        order[d] = d == a ? b : d == b ? a : d;
    return add_permuted(c, s, t->rank, order);
}

bp_status shape_permute(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    uint32_t order[TENSOR_MAX_RANK], n = arg_list_len(s->args, 1);
    bool seen[TENSOR_MAX_RANK] = {false};
    if (n != t->rank)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "%u dimensions for a tensor of rank %u", n, t->rank);
    for (uint32_t i = 0; i < n; i++) {
        TRY(op_wrap_dim(c, s->op, "dims", dim_int(c, arg_list_dim(s->args, 1, i)), t->rank, &order[i]));
        if (seen[order[i]])
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "dimension %u occurs twice in \"dims\"", order[i]);
        seen[order[i]] = true;
    }
    return add_permuted(c, s, n, order);
}

bp_status shape_transpose(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    uint32_t a, b;
    TRY(op_wrap_dim(c, s->op, s->op->schema->args[1].name, arg_int(c, s->args, 1), t->rank, &a));
    TRY(op_wrap_dim(c, s->op, s->op->schema->args[2].name, arg_int(c, s->args, 2), t->rank, &b));
    return add_swapped(c, s, a, b);
}

bp_status shape_t(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    if (t->rank > 2)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "expects a tensor of at most 2 dimensions, got %u", t->rank);
    return t->rank == 2 ? add_swapped(c, s, 0, 1) : shape_same_view(c, s);
}

bp_status shape_numpy_t(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    uint32_t order[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < t->rank; d++)
        order[d] = t->rank - 1 - d;
    return add_permuted(c, s, t->rank, order);
}

bp_status shape_matrix_t(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    if (t->rank < 2)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "expects a tensor of 2 or more dimensions, got %u", t->rank);
    return add_swapped(c, s, t->rank - 2, t->rank - 1);
}

/* A conjugated view would have to conjugate lazily, which no tensor here does. */
bp_status shape_adjoint(bp_ctx *c, shape_call *s)
{
    if (dtype_is_complex(arg_tensor(s->args, 0)->dtype))
        return op_fail(c, s->op, BP_UNIMPLEMENTED, "views that conjugate are not supported");
    return shape_matrix_t(c, s);
}

/* The dimensions of `source` go to `destination`, the others fill the rest in order. */
static bp_status move_dims(bp_ctx *c, shape_call *s, uint32_t n, const uint32_t *source, const uint32_t *destination)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    uint32_t order[TENSOR_MAX_RANK];
    bool taken[TENSOR_MAX_RANK] = {false}, filled[TENSOR_MAX_RANK] = {false};
    for (uint32_t i = 0; i < n; i++) {
        if (taken[source[i]] || filled[destination[i]])
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "a dimension occurs twice in \"source\" or \"destination\"");
        taken[source[i]] = filled[destination[i]] = true;
        order[destination[i]] = source[i];
    }
    for (uint32_t to = 0, from = 0; to < t->rank; to++) {
        if (filled[to])
            continue;
        while (taken[from])
            from++;
        order[to] = from++;
    }
    return add_permuted(c, s, t->rank, order);
}

bp_status shape_movedim(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    uint32_t n = arg_list_len(s->args, 1), source[TENSOR_MAX_RANK], destination[TENSOR_MAX_RANK];
    if (n != arg_list_len(s->args, 2) || n > (t->rank ? t->rank : 1))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "%u dimensions are moved to %u places", n,
                       arg_list_len(s->args, 2));
    for (uint32_t i = 0; i < n; i++) {
        TRY(op_wrap_dim(c, s->op, "source", dim_int(c, arg_list_dim(s->args, 1, i)), t->rank, &source[i]));
        TRY(op_wrap_dim(c, s->op, "destination", dim_int(c, arg_list_dim(s->args, 2, i)), t->rank, &destination[i]));
    }
    return t->rank ? move_dims(c, s, n, source, destination) : shape_same_view(c, s);
}

/* -- expansion ----------------------------------------------------------------------------------------------------- */

void expanded_strides(const bp_tensor *t, uint32_t rank, const bp_dim *sizes, bp_dim *strides)
{
    uint32_t lead = rank - t->rank;
    for (uint32_t d = 0; d < rank; d++) {
        bool repeats = d < lead || layout_repeats(t->sizes[d - lead], sizes[d]);
        strides[d] = repeats ? dim_const(0) : t->strides[d - lead];
    }
}

static bp_status add_expanded(bp_ctx *c, shape_call *s, uint32_t rank, const bp_dim *sizes)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    TRY(check_expands(c, s, 0, rank, sizes));
    shape_out *o = shape_add_view(c, s, 0, rank, sizes);
    if (!o)
        return c->diag.code;
    expanded_strides(t, rank, sizes, o->meta.strides);
    for (uint32_t d = rank - t->rank; d-- > 0 && t->rank;) /* a new dimension of size 1 looks like a contiguous one */
        if (dim_eq_or_false(sizes[d], dim_const(1)))
            o->meta.strides[d] = dim_mul(c, sizes[d + 1], o->meta.strides[d + 1]);
    return c->diag.code;
}

bp_status shape_expand(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    uint32_t rank;
    bp_dim *sizes = arg_dims(c, s->args, 1, &rank);
    if (!sizes)
        return c->diag.code;
    if (rank < t->rank || rank > TENSOR_MAX_RANK)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "%u sizes for a tensor of rank %u", rank, t->rank);
    uint32_t lead = rank - t->rank;
    for (uint32_t d = 0; d < rank; d++) {
        if (!dim_eq_or_false(sizes[d], dim_const(-1)))
            continue;
        if (d < lead)
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "size -1 of dimension %u, which the tensor does not have", d);
        sizes[d] = t->sizes[d - lead];
    }
    return add_expanded(c, s, rank, sizes);
}

bp_status shape_expand_as(bp_ctx *c, shape_call *s)
{
    const bp_tensor *other = arg_tensor(s->args, 1);
    return add_expanded(c, s, other->rank, other->sizes);
}

/* Sizes that all tensors of list argument 0 broadcast to. */
bp_status shape_broadcast_tensors(bp_ctx *c, shape_call *s)
{
    bp_dim sizes[TENSOR_MAX_RANK], wider[TENSOR_MAX_RANK];
    uint32_t rank = 0, n = arg_list_len(s->args, 0);
    for (uint32_t i = 0; i < n; i++) {
        const bp_tensor *t = arg_list_tensor(s->args, 0, i);
        TRY(layout_broadcast(c, rank, sizes, t->rank, t->sizes, wider));
        rank = t->rank > rank ? t->rank : rank;
        memcpy(sizes, wider, rank * sizeof *sizes);
    }
    for (uint32_t i = 0; i < n; i++) {
        const bp_tensor *t = arg_list_tensor(s->args, 0, i);
        shape_out *o = shape_add_out(c, s, t->dtype, rank, sizes);
        if (!o)
            return c->diag.code;
        expanded_strides(t, rank, sizes, o->meta.strides);
        o->meta.offset = t->offset;
        o->alias_of = 0;
        o->alias_item = i;
    }
    return c->diag.code;
}

/* -- parts of a dimension ------------------------------------------------------------------------------------------ */

bp_status add_narrow(bp_ctx *c, shape_call *s, uint32_t d, bp_dim start, bp_dim length)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    shape_out *o = shape_add_view(c, s, 0, t->rank, t->sizes);
    if (!o)
        return c->diag.code;
    o->meta.sizes[d] = length;
    o->meta.offset = dim_add(c, t->offset, dim_mul(c, start, t->strides[d]));
    return c->diag.code;
}

bp_status add_select(bp_ctx *c, shape_call *s, uint32_t d, bp_dim index)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    shape_out *o = shape_add_view(c, s, 0, t->rank - 1, t->sizes);
    if (!o)
        return c->diag.code;
    for (uint32_t i = d; i + 1 < t->rank; i++) {
        o->meta.sizes[i] = t->sizes[i + 1];
        o->meta.strides[i] = t->strides[i + 1];
    }
    o->meta.offset = dim_add(c, t->offset, dim_mul(c, index, t->strides[d]));
    return c->diag.code;
}

/* A place among n: a negative one counts from the end. Of data it may be either. */
static bp_dim from_end(bp_ctx *c, bp_dim v, bp_dim n)
{
    enum dim_truth negative = dim_decide(DIM_LT, v, dim_const(0));
    if (negative == DIM_UNKNOWN)
        return dim_add(c, v, dim_mul(c, n, dim_compare(c, DIM_LT, v, dim_const(0))));
    return negative == DIM_TRUE ? dim_add(c, v, n) : v;
}

bp_status shape_select(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    uint32_t d;
    if (t->rank == 0)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "a tensor of no dimensions has nothing to select");
    TRY(op_wrap_dim(c, s->op, "dim", arg_int(c, s->args, 1), t->rank, &d));
    bp_dim index = from_end(c, arg_dim(s->args, 2), t->sizes[d]);
    if (!dim_require(DIM_LE, dim_const(0), index) || !dim_require(DIM_LT, index, t->sizes[d]))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "index %s is out of range for dimension %u of size %s",
                       op_dim_text(c, arg_dim(s->args, 2)), d, op_dim_text(c, t->sizes[d]));
    return add_select(c, s, d, index);
}

bp_dim dim_clamp(bp_ctx *c, bp_dim a, bp_dim bound, bool most)
{
    enum dim_truth past = most ? dim_decide(DIM_LT, bound, a) : dim_decide(DIM_LT, a, bound);
    if (past == DIM_UNKNOWN)
        return most ? dim_min(c, a, bound) : dim_max(c, a, bound);
    return past == DIM_TRUE ? bound : a;
}

bp_dim slice_bound(bp_ctx *c, bp_dim v, bp_dim n, bp_dim least)
{
    if (dim_same(v, n) || dim_same_as(v, INT64_MAX))
        return n;
    return dim_clamp(c, dim_clamp(c, from_end(c, v, n), n, true), least, false);
}

bp_status shape_slice(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    uint32_t d;
    if (t->rank == 0)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "a tensor of no dimensions cannot be sliced");
    TRY(op_wrap_dim(c, s->op, "dim", arg_int(c, s->args, 1), t->rank, &d));
    bp_dim step = arg_dim(s->args, 4), n = t->sizes[d];
    if (!dim_require(DIM_LT, dim_const(0), step))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "step %s is not positive", op_dim_text(c, step));
    bp_dim start = slice_bound(c, arg_is_none(s->args, 2) ? dim_const(0) : arg_dim(s->args, 2), n, dim_const(0));
    bp_dim end = slice_bound(c, arg_is_none(s->args, 3) ? n : arg_dim(s->args, 3), n, start);
    bp_dim length = dim_sub(c, end, start);
    if (!dim_same_as(step, 1))
        length = dim_floordiv(c, dim_add(c, length, dim_sub(c, step, dim_const(1))), step);
    TRY(add_narrow(c, s, d, start, length));
    s->out[0].meta.strides[d] = dim_mul(c, t->strides[d], step);
    return c->diag.code;
}

bp_status shape_narrow(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    uint32_t d;
    if (t->rank == 0)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "a tensor of no dimensions cannot be narrowed");
    TRY(op_wrap_dim(c, s->op, "dim", arg_int(c, s->args, 1), t->rank, &d));
    bp_dim start = arg_dim(s->args, 2), length = arg_dim(s->args, 3);
    bp_dim n = t->sizes[d];
    start = from_end(c, start, n);
    if (!dim_require(DIM_LE, dim_const(0), start) || !dim_require(DIM_LE, start, n))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "start %s is out of range for dimension %u of size %s",
                       op_dim_text(c, arg_dim(s->args, 2)), d, op_dim_text(c, n));
    if (!dim_require(DIM_LE, dim_const(0), length) || !dim_require(DIM_LE, length, dim_sub(c, n, start)))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "start %s and length %s exceed dimension %u of size %s",
                       op_dim_text(c, arg_dim(s->args, 2)), op_dim_text(c, length), d, op_dim_text(c, n));
    return add_narrow(c, s, d, start, length);
}

/* Where the start is a tensor: sizes are known, the place is not. */
bp_status shape_narrow_tensor(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0), *start = arg_tensor(s->args, 2);
    uint32_t d;
    if (start->rank || !dtype_is_int(start->dtype))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"start\" must be a 0-d tensor of integers");
    TRY(op_wrap_dim(c, s->op, "dim", arg_int(c, s->args, 1), t->rank, &d));
    shape_out *o = shape_add_out(c, s, t->dtype, t->rank, t->sizes);
    if (!o)
        return c->diag.code;
    o->meta.sizes[d] = arg_dim(s->args, 3);
    o->unknown = true;
    return c->diag.code;
}

bp_status shape_unfold(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    uint32_t d;
    TRY(op_wrap_dim(c, s->op, "dimension", arg_int(c, s->args, 1), t->rank, &d));
    bp_dim size = arg_dim(s->args, 2), step = arg_dim(s->args, 3), n = t->rank ? t->sizes[d] : dim_const(1);
    if (!dim_require(DIM_LE, dim_const(0), size) || !dim_require(DIM_LE, size, n) ||
        !dim_require(DIM_LT, dim_const(0), step))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "windows of %s by steps of %s in dimension %u of size %s",
                       op_dim_text(c, size), op_dim_text(c, step), d, op_dim_text(c, n));
    bp_dim sizes[TENSOR_MAX_RANK + 1];
    for (uint32_t i = 0; i < t->rank; i++)
        sizes[i] = t->sizes[i];
    sizes[t->rank] = size;
    shape_out *o = shape_add_view(c, s, 0, t->rank + 1, sizes);
    if (!o)
        return c->diag.code;
    o->meta.strides[t->rank] = t->rank ? t->strides[d] : dim_const(1);
    if (t->rank) {
        o->meta.sizes[d] = dim_add(c, dim_floordiv(c, dim_sub(c, n, size), step), dim_const(1));
        o->meta.strides[d] = dim_mul(c, step, t->strides[d]);
    }
    return c->diag.code;
}

/* -- diagonals and any strides ------------------------------------------------------------------------------------- */

bp_dim diagonal_length(bp_ctx *c, bp_dim rows, bp_dim columns, int64_t offset)
{
    if (offset >= 0)
        columns = dim_sub(c, columns, dim_const(offset));
    else
        rows = dim_add(c, rows, dim_const(offset));
    return dim_clamp(c, dim_clamp(c, rows, columns, true), dim_const(0), false);
}

/* offset, dim1 and dim2 are arguments 1 to 3. */
bp_status shape_diagonal(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    uint32_t a, b;
    TRY(op_wrap_dim(c, s->op, "dim1", arg_int(c, s->args, 2), t->rank, &a));
    TRY(op_wrap_dim(c, s->op, "dim2", arg_int(c, s->args, 3), t->rank, &b));
    if (a == b)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "dimensions \"dim1\" and \"dim2\" are both %u", a);
    int64_t offset = arg_int(c, s->args, 1);
    bp_dim n = diagonal_length(c, t->sizes[a], t->sizes[b], offset);
    shape_out *o = shape_add_view(c, s, 0, t->rank - 1, t->sizes);
    if (!o)
        return c->diag.code;
    uint32_t at = 0;
    for (uint32_t d = 0; d < t->rank; d++) {
        if (d == a || d == b)
            continue;
        o->meta.sizes[at] = t->sizes[d];
        o->meta.strides[at++] = t->strides[d];
    }
    o->meta.sizes[at] = n;
    o->meta.strides[at] = dim_add(c, t->strides[a], t->strides[b]);
    if (offset && !dim_eq_or_false(n, dim_const(0))) /* a diagonal of none begins where its matrix does */
        o->meta.offset = dim_add(c, t->offset, dim_mul(c, dim_const(offset >= 0 ? offset : -offset),
                                                       t->strides[offset >= 0 ? b : a]));
    return c->diag.code;
}

static bool is_constant(const bp_tensor *t)
{
    tensor_meta m;
    tensor_get_meta(t, &m);
    return meta_is_constant(&m);
}

/* Symbols are compared here; numbers, where the view is made. How large the memory of a symbolic input is, only runs
 * tell. */
static bp_status check_inside(bp_ctx *c, const shape_call *s, const bp_tensor *t, const tensor_meta *m)
{
    bp_dim zero = dim_const(0), last = m->offset, have = t->store->bytes;
    bool inside = dim_require(DIM_LE, zero, m->offset);
    if (!tensor_is_fake(t))
        have = dim_const((int64_t)t->store->nbytes);
    for (uint32_t d = 0; d < m->rank; d++) {
        inside = inside && dim_require(DIM_LE, zero, m->strides[d]);
        last = dim_add(c, last, dim_mul(c, dim_sub(c, m->sizes[d], dim_const(1)), m->strides[d]));
        if (dim_eq_or_false(m->sizes[d], zero))
            return c->diag.code;
    }
    if (meta_is_constant(m) && dim_is_const(have))
        return c->diag.code;
    bp_dim need = dim_mul(c, dim_add(c, last, dim_const(1)), dim_const((int64_t)dtype_size(m->dtype)));
    if (inside && ((dim_is_const(have) && !is_constant(t)) || dim_require(DIM_LE, need, have)))
        return c->diag.code;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "the view needs %s bytes of a storage of %s bytes",
                   op_dim_text(c, need), op_dim_text(c, have));
}

bp_status shape_as_strided(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    uint32_t rank, nstrides;
    bp_dim *sizes = arg_dims(c, s->args, 1, &rank), *strides = arg_dims(c, s->args, 2, &nstrides);
    if (!sizes || !strides)
        return c->diag.code;
    if (rank != nstrides)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "%u sizes and %u strides", rank, nstrides);
    shape_out *o = shape_add_view(c, s, 0, rank, sizes);
    if (!o)
        return c->diag.code;
    if (rank)
        memcpy(o->meta.strides, strides, rank * sizeof *strides);
    o->meta.offset = arg_is_none(s->args, 3) ? t->offset : arg_dim(s->args, 3);
    return check_inside(c, s, t, &o->meta);
}

/* Sizes and strides are arguments 1 and 2; the offset stays. */
bp_status shape_reshape_alias(bp_ctx *c, shape_call *s)
{
    const bp_value args[] = {s->args[0], s->args[1], s->args[2], value_none()};
    const bp_value *own = s->args;
    s->args = args;
    bp_status st = shape_as_strided(c, s);
    s->args = own;
    return st;
}

/* -- dimensions of size 1 ------------------------------------------------------------------------------------------ */

static bp_status add_squeezed(bp_ctx *c, shape_call *s, const bool *drop)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    bp_dim sizes[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t d = 0; d < t->rank; d++) {
        if (drop[d] && dim_eq_or_false(t->sizes[d], dim_const(1)))
            continue;
        sizes[rank] = t->sizes[d];
        strides[rank++] = t->strides[d];
    }
    shape_out *o = shape_add_view(c, s, 0, rank, sizes);
    if (o && rank)
        memcpy(o->meta.strides, strides, rank * sizeof *strides);
    return c->diag.code;
}

bp_status shape_squeeze(bp_ctx *c, shape_call *s)
{
    bool drop[TENSOR_MAX_RANK];
    memset(drop, true, sizeof drop);
    return add_squeezed(c, s, drop);
}

/* Argument 1 is a dimension or a list of them. */
bp_status shape_squeeze_dims(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    bool drop[TENSOR_MAX_RANK] = {false};
    for (uint32_t i = 0; i < arg_list_len(s->args, 1); i++) {
        uint32_t d;
        TRY(op_wrap_dim(c, s->op, "dim", dim_int(c, arg_list_dim(s->args, 1, i)), t->rank, &d));
        if (drop[d])
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "dimension %u occurs twice in \"dim\"", d);
        drop[d] = true;
    }
    return add_squeezed(c, s, drop);
}

bp_status shape_unsqueeze(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    uint32_t d;
    TRY(op_wrap_dim(c, s->op, "dim", arg_int(c, s->args, 1), t->rank + 1, &d));
    bp_dim sizes[TENSOR_MAX_RANK + 1];
    for (uint32_t i = 0; i <= t->rank; i++)
        sizes[i] = i < d ? t->sizes[i] : i == d ? dim_const(1) : t->sizes[i - 1];
    shape_out *o = shape_add_view(c, s, 0, t->rank + 1, sizes);
    if (!o)
        return c->diag.code;
    for (uint32_t i = d + 1; i <= t->rank; i++)
        o->meta.strides[i] = t->strides[i - 1];
    o->meta.strides[d] = d < t->rank ? dim_mul(c, t->sizes[d], t->strides[d]) : dim_const(1);
    return c->diag.code;
}

/* -- parts of complex numbers -------------------------------------------------------------------------------------- */

/* A view of the real numbers that a complex tensor is made of: part 0, part 1, or both in a new last dimension (2). */
static bp_status add_parts(bp_ctx *c, shape_call *s, int part)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    if (!dtype_is_complex(t->dtype))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "expects a complex tensor, got %s", dtype_get(t->dtype)->torch);
    bp_dim sizes[TENSOR_MAX_RANK + 1];
    for (uint32_t d = 0; d < t->rank; d++)
        sizes[d] = t->sizes[d];
    sizes[t->rank] = dim_const(2);
    shape_out *o = shape_add_view(c, s, 0, t->rank + (part == 2), sizes);
    if (!o)
        return c->diag.code;
    for (uint32_t d = 0; d < t->rank; d++)
        o->meta.strides[d] = dim_mul(c, t->strides[d], dim_const(2));
    if (part == 2)
        o->meta.strides[t->rank] = dim_const(1);
    o->meta.dtype = dtype_real_of(t->dtype);
    o->meta.offset = dim_add(c, dim_mul(c, t->offset, dim_const(2)), dim_const(part == 1));
    return c->diag.code;
}

bp_status shape_view_as_real(bp_ctx *c, shape_call *s)
{
    return add_parts(c, s, 2);
}

bp_status shape_real(bp_ctx *c, shape_call *s)
{
    return dtype_is_complex(arg_tensor(s->args, 0)->dtype) ? add_parts(c, s, 0) : shape_same(c, s);
}

bp_status shape_imag(bp_ctx *c, shape_call *s)
{
    return add_parts(c, s, 1);
}

static bool is_even(bp_ctx *c, bp_dim d)
{
    return dim_require(DIM_EQ, dim_mod(c, d, dim_const(2)), dim_const(0));
}

bp_status shape_view_as_complex(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    bool pairs = t->rank && dim_require(DIM_EQ, t->sizes[t->rank - 1], dim_const(2)) &&
                 dim_require(DIM_EQ, t->strides[t->rank - 1], dim_const(1));
    for (uint32_t d = 0; pairs && d + 1 < t->rank; d++)
        pairs = dim_prove(DIM_EQ, t->sizes[d], dim_const(1)) == DIM_TRUE || is_even(c, t->strides[d]);
    if (!pairs || !is_even(c, t->offset) || (t->dtype != BP_F32 && t->dtype != BP_F64))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                       "expects float32 or float64 pairs that lie side by side in the last "
                                                      "dimension, at even strides and an even offset");
    shape_out *o = shape_add_view(c, s, 0, t->rank - 1, t->sizes);
    if (!o)
        return c->diag.code;
    for (uint32_t d = 0; d + 1 < t->rank; d++)
        o->meta.strides[d] = dim_floordiv(c, t->strides[d], dim_const(2));
    o->meta.dtype = dtype_complex_of(t->dtype);
    o->meta.offset = dim_floordiv(c, t->offset, dim_const(2));
    return c->diag.code;
}
