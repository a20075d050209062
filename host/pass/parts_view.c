/* Decompositions of views and of what rearranges one tensor. */
#include "host/pass/parts.h"
#include <string.h>

static bp_tensor *permuted(work *w, bp_tensor *t, const int64_t *order)
{
    return compose_permute(w, t, order);
}

PART(reverse_dims)
{
    (void)op;
    int64_t order[TENSOR_MAX_RANK];
    bp_tensor *t = arg_tensor(a, 0);
    for (uint32_t d = 0; d < t->rank; d++)
        order[d] = t->rank - 1 - d;
    return permuted(w, t, order);
}

PART(matrix_t)
{
    (void)op;
    return CALL(transpose_int, a[0], I(-2), I(-1));
}

PART(adjoint)
{
    (void)op;
    bp_tensor *t = arg_tensor(a, 0);
    bp_tensor *m = t->rank ? CALL(transpose_int, a[0], I(-2), I(-1)) : t;
    return m && dtype_is_complex((bp_dtype)t->dtype) ? CALL(conj_physical_default, T(m)) : m;
}

PART(movedim)
{
    (void)op;
    bp_tensor *t = arg_tensor(a, 0);
    uint32_t n = arg_list_len(a, 1), next = 0;
    int64_t order[TENSOR_MAX_RANK];
    bool taken[TENSOR_MAX_RANK] = {false};
    for (uint32_t d = 0; d < t->rank; d++)
        order[d] = -1;
    for (uint32_t i = 0; i < n; i++) {
        int64_t from = layout_wrap_dim(w->c, arg_list_dim(a, 1, i).value, t->rank);
        int64_t to = layout_wrap_dim(w->c, arg_list_dim(a, 2, i).value, t->rank);
        if (t->rank)
            order[to] = from, taken[from] = true;
    }
    for (uint32_t d = 0; d < t->rank; d++) {
        while (order[d] < 0 && taken[next])
            next++;
        if (order[d] < 0)
            order[d] = next++;
    }
    return t->rank ? permuted(w, t, order) : CALL(alias_default, a[0]);
}

PART(real)
{
    (void)op;
    bp_tensor *t = arg_tensor(a, 0);
    if (!dtype_is_complex((bp_dtype)t->dtype))
        return t;
    return CALL(select_int, T(CALL(view_as_real_default, a[0])), I(-1), I(0));
}

PART(imag)
{
    (void)op;
    return CALL(select_int, T(CALL(view_as_real_default, a[0])), I(-1), I(1));
}

/* -- splits -------------------------------------------------------------------------------------------------------- */

PARTS(chunk)
{
    bp_tensor *t = arg_tensor(a, 0);
    int64_t dim = part_dim(w, a, 2, t->rank), chunks = arg_int(w->c, a, 1), sizes[TENSOR_MAX_RANK];
    bp_ctx *c = w->c;
    if (!work_ok(w) || !t->rank || chunks < 1)
        return part_fail(w, op, "expected at least one chunk of a tensor with dimensions") ? BP_OK : w->c->diag.code;
    bp_dim n = t->sizes[dim], each = dim_floordiv(c, dim_add(c, n, dim_const(chunks - 1)), dim_const(chunks));
    bp_tensor **out;
    uint32_t count;
    bp_value args[] = {a[0], D(each), I(dim)};
    if (dim_is(each, 0) && chunks <= TENSOR_MAX_RANK) {
        memset(sizes, 0, sizeof sizes);
        args[1] = value_ints(w->c, sizes, (uint32_t)chunks);
        out = work_list(w, ROW_split_with_sizes_default, 3, args, &count);
    } else {
        out = work_list(w, ROW_split_tensor, 3, args, &count);
    }
    return out ? parts_give(w, k, out, count) : w->c->diag.code;
}

/* Where part i of a tensor_split begins: at the places that a list names, or in so many parts. */
static bp_dim split_at(bp_ctx *c, const bp_value *where, bp_dim n, uint32_t i, uint32_t parts)
{
    if (i == 0 || i == parts)
        return i ? n : dim_const(0);
    if (where->kind == BP_VALUE_LIST) {
        bp_dim at = arg_dim(where->v.items, i - 1);
        at = dim_below(at, 0) ? dim_max(c, dim_add(c, at, n), dim_const(0)) : at;
        return dim_min(c, at, n);
    }
    bp_dim most = dim_mod(c, n, dim_const(parts)), at = dim_const(i);
    return dim_add(c, dim_mul(c, dim_floordiv(c, n, dim_const(parts)), at), dim_min(c, at, most));
}

PARTS(tensor_split)
{
    char first = op->schema->name[0];
    bp_tensor *t = arg_tensor(a, 0);
    int64_t dim = first == 't' ? part_dim(w, a, 2, t->rank) : first == 'v' ? 0 : first == 'd' ? 2 : t->rank > 1;
    if (!work_ok(w) || (uint32_t)dim >= t->rank)
        return part_fail(w, op, "there are too few dimensions") ? BP_OK : w->c->diag.code;
    bp_dim n = t->sizes[dim];
    bool list = a[1].kind == BP_VALUE_LIST;
    uint32_t parts = list ? a[1].count + 1 : (uint32_t)arg_int(w->c, a, 1);
    bp_tensor **out = arena_array(&w->c->scratch, parts, sizeof *out);
    if (!out || !parts)
        return out ? w->c->diag.code : ctx_nomem(w->c);
    for (uint32_t i = 0; i < parts; i++) {
        bp_dim from = split_at(w->c, &a[1], n, i, parts), to = split_at(w->c, &a[1], n, i + 1, parts);
        out[i] = CALL(slice_tensor, a[0], I(dim), D(from), D(list ? dim_max(w->c, from, to) : to));
    }
    return parts_give(w, k, out, parts);
}

/* -- reshapes ------------------------------------------------------------------------------------------------------ */

/* A view where one is possible, else a copy that is viewed. sizes without -1. */
static bp_tensor *reshaped(work *w, bp_tensor *t, uint32_t rank, const bp_dim *sizes)
{
    bp_dim strides[TENSOR_MAX_RANK];
    if (!t || !work_ok(w))
        return NULL;
    bp_value to = value_dims(w->c, sizes, rank);
    if (layout_view(w->c, t, rank, sizes, strides))
        return CALL(view_default, T(t), to);
    bp_tensor *copy = CALL(clone_default, T(t), (bp_value){.kind = BP_VALUE_MEMORY_FORMAT, .v.i = BP_CONTIGUOUS});
    return copy ? CALL(view_default, T(copy), to) : NULL;
}

/* The size that is left for a -1. */
static bp_dim shared_out(work *w, bp_dim all, bp_dim known)
{
    return dim_is(known, 0) ? dim_const(0) : dim_floordiv(w->c, all, known);
}

PART(reshape)
{
    (void)op;
    bp_tensor *t = arg_tensor(a, 0);
    uint32_t n, unknown = UINT32_MAX;
    bp_dim *sizes = arg_dims(w->c, a, 1, &n), known = dim_const(1);
    for (uint32_t i = 0; sizes && i < n; i++)
        if (dim_same_as(sizes[i], -1))
            unknown = i;
        else
            known = dim_mul(w->c, known, sizes[i]);
    if (unknown != UINT32_MAX)
        sizes[unknown] = shared_out(w, tensor_numel(w->c, t), known);
    return sizes ? reshaped(w, t, n, sizes) : NULL;
}

/* Whether t's sizes are these. */
static bool has_sizes(const bp_tensor *t, uint32_t rank, const bp_dim *sizes)
{
    bool same = t->rank == rank;
    for (uint32_t d = 0; same && d < rank; d++)
        same = dim_eq(t->sizes[d], sizes[d]);
    return same;
}

PART(flatten)
{
    (void)op;
    bp_tensor *t = arg_tensor(a, 0);
    bp_dim sizes[TENSOR_MAX_RANK];
    uint32_t n = 0;
    int64_t from = part_dim(w, a, 1, t->rank), to = part_dim(w, a, 2, t->rank);
    if (!work_ok(w))
        return NULL;
    if (t->rank == 0)
        sizes[n++] = dim_const(1);
    for (uint32_t d = 0; d < t->rank; d++) {
        if (d > from && d <= to)
            sizes[n - 1] = dim_mul(w->c, sizes[n - 1], t->sizes[d]);
        else
            sizes[n++] = t->sizes[d];
    }
    return has_sizes(t, n, sizes) ? t : reshaped(w, t, n, sizes);
}

PART(unflatten)
{
    (void)op;
    bp_tensor *t = arg_tensor(a, 0);
    int64_t dim = part_dim(w, a, 1, t->rank);
    bp_dim sizes[TENSOR_MAX_RANK], known = dim_const(1);
    uint32_t n = 0, parts = arg_list_len(a, 2), unknown = UINT32_MAX;
    for (uint32_t d = 0; d < t->rank && work_ok(w); d++) {
        if (d != dim) {
            sizes[n++] = t->sizes[d];
            continue;
        }
        for (uint32_t i = 0; i < parts && n < TENSOR_MAX_RANK; i++, n++) {
            sizes[n] = arg_list_dim(a, 2, i);
            if (dim_same_as(sizes[n], -1))
                unknown = n;
            else
                known = dim_mul(w->c, known, sizes[n]);
        }
        if (unknown != UINT32_MAX)
            sizes[unknown] = shared_out(w, t->sizes[d], known);
    }
    return work_ok(w) ? CALL(view_default, a[0], value_dims(w->c, sizes, n)) : NULL;
}

static bp_tensor *at_least(work *w, bp_tensor *t, char rank)
{
    bp_value one = I(1), ones[] = {one, one, one};
    if (!t || t->rank >= (uint32_t)(rank - '0'))
        return t;
    if (t->rank == 0)
        return CALL(reshape_default, T(t), value_list(ones, (uint32_t)(rank - '0')));
    t = t->rank == 1 ? compose_unsqueeze(w, t, 0) : t;
    return rank == '3' ? compose_unsqueeze(w, t, -1) : t;
}

PART(atleast)
{
    return at_least(w, arg_tensor(a, 0), op->schema->name[strlen("atleast_")]);
}

/* -- copies and casts ---------------------------------------------------------------------------------------------- */

static bool lies_in(const bp_tensor *t, int32_t format)
{
    if (format == BP_CHANNELS_LAST || format == BP_CHANNELS_LAST_3D)
        return tensor_is_channels_last(t) && t->rank == (format == BP_CHANNELS_LAST ? 4 : 5);
    return format != BP_CONTIGUOUS || tensor_is_contiguous(t);
}

PART(contiguous)
{
    (void)op;
    return lies_in(arg_tensor(a, 0), arg_memory_format(a, 1)) ? arg_tensor(a, 0) : CALL(clone_default, a[0], a[1]);
}

/* An argument by name; None where the operator has none. */
static bp_value named(const op_row *op, const bp_value *a, const char *name)
{
    int32_t i = schema_find(op->schema, name);
    return i < 0 ? value_none() : a[i];
}

PART(to)
{
    bp_tensor *t = arg_tensor(a, 0), *other = named(op, a, "other").v.tensor;
    bp_value dtype = named(op, a, "dtype"), device = named(op, a, "device"), format = named(op, a, "memory_format");
    bp_value copy = named(op, a, "copy"), blocking = named(op, a, "non_blocking");
    if (other && schema_find(op->schema, "other") >= 0)
        dtype = value_dtype((bp_dtype)other->dtype);
    bp_device where = tensor_device(t);
    bool moves = device.kind == BP_VALUE_DEVICE &&
                 (device.v.device.kind != where.kind || device.v.device.index != where.index);
    bool same = !moves && (dtype.kind == BP_VALUE_NONE || (bp_dtype)dtype.v.i == t->dtype) && !copy.v.i &&
                (format.kind == BP_VALUE_NONE || lies_in(t, (int32_t)format.v.i));
    if (same)
        return t;
    return CALL(private_to_copy_default, a[0], dtype, NONE, moves ? device : NONE, NONE,
                blocking.kind == BP_VALUE_NONE ? B(false) : blocking, format);
}

/* -- diagonals, shifts, differences, padding ----------------------------------------------------------------------- */

PART(diag)
{
    (void)op;
    if (part_rank(a, 0) == 1)
        return CALL(diag_embed_default, a[0], a[1]);
    return CALL(clone_default, T(CALL(diagonal_default, a[0], a[1])),
                (bp_value){.kind = BP_VALUE_MEMORY_FORMAT, .v.i = BP_CONTIGUOUS});
}

PART(fftshift)
{
    bp_tensor *t = arg_tensor(a, 0);
    int64_t dims[TENSOR_MAX_RANK];
    bp_dim shifts[TENSOR_MAX_RANK];
    uint32_t n = arg_is_none(a, 1) ? t->rank : arg_list_len(a, 1);
    bool back = strstr(op->schema->name, "ifft") != NULL;
    for (uint32_t i = 0; i < n && work_ok(w); i++) {
        dims[i] = arg_is_none(a, 1) ? i : layout_wrap_dim(w->c, arg_list_dim(a, 1, i).value, t->rank);
        bp_dim size = t->rank ? t->sizes[dims[i]] : dim_const(1);
        shifts[i] = dim_floordiv(w->c, back ? dim_add(w->c, size, dim_const(1)) : size, dim_const(2));
    }
    return work_ok(w) ? CALL(roll_default, a[0], value_dims(w->c, shifts, n), value_ints(w->c, dims, n)) : NULL;
}

PART(tile)
{
    (void)op;
    bp_tensor *t = arg_tensor(a, 0);
    uint32_t n = arg_list_len(a, 1), more = t->rank > n ? t->rank - n : 0;
    bp_value *times = arena_array(&w->c->scratch, n + more, sizeof *times);
    if (!times)
        return ctx_nomem(w->c) ? NULL : NULL;
    for (uint32_t i = 0; i < n + more; i++)
        times[i] = i < more ? I(1) : value_dim(arg_list_dim(a, 1, i - more));
    return CALL(repeat_default, a[0], value_list(times, n + more));
}

PART(diff)
{
    (void)op;
    bp_tensor *t = arg_tensor(a, 0);
    int64_t dim = part_dim(w, a, 2, t->rank), n = arg_int(w->c, a, 1);
    if (!arg_is_none(a, 3) || !arg_is_none(a, 4)) {
        bp_value all[3] = {a[3], a[0], a[4]};
        uint32_t from = arg_is_none(a, 3), count = 3u - from - arg_is_none(a, 4);
        t = CALL(cat_default, value_list(all + from, count), I(dim));
    }
    if (n == 0 && t == arg_tensor(a, 0))
        return CALL(clone_default, T(t));
    for (int64_t i = 0; t && i < n; i++) {
        bp_dim size = t->sizes[dim], none = dim_const(0), less = dim_max(w->c, dim_sub(w->c, size, dim_const(1)), none);
        bp_tensor *later = CALL(slice_tensor, T(t), I(dim), D(dim_sub(w->c, size, less)), D(size));
        bp_tensor *earlier = CALL(slice_tensor, T(t), I(dim), D(none), D(less));
        t = compose_two(w, t->dtype == BP_BOOL ? ROW_logical_xor_default : ROW_sub_tensor, later, earlier);
    }
    return t;
}

/* Along dimension d, `front` elements of the end before t and `back` of its beginning behind; negative ones are cut. */
static bp_tensor *wrapped_around(work *w, bp_tensor *t, int64_t d, bp_dim front, bp_dim back)
{
    bp_tensor *parts[3], *all[3];
    bp_ctx *c = w->c;
    uint32_t n = 0;
    bool cuts_front = dim_below(front, 0), cuts_back = dim_below(back, 0);
    bp_dim size = t->sizes[d], end = cuts_back ? dim_add(c, size, back) : size;
    bp_dim first = cuts_front ? dim_sub(c, dim_const(0), front) : dim_const(0);
    parts[0] = dim_above(front, 0) ? CALL(slice_tensor, T(t), I(d), D(dim_sub(c, size, front)), D(end)) : NULL;
    parts[1] = cuts_front || cuts_back ? CALL(slice_tensor, T(t), I(d), D(first), D(end)) : t;
    parts[2] = dim_above(back, 0) ? CALL(slice_tensor, T(t), I(d), D(first), D(dim_add(c, first, back))) : NULL;
    bp_value items[3];
    for (uint32_t i = 0; i < 3; i++)
        if (parts[i])
            all[n] = parts[i], items[n] = T(parts[i]), n++;
    return n == 1 ? all[0] : CALL(cat_default, value_list(items, n), I(d));
}

PART(pad_circular)
{
    (void)op;
    bp_tensor *t = arg_tensor(a, 0);
    uint32_t n = arg_list_len(a, 1) / 2;
    for (uint32_t i = 0; t && i < n; i++)
        t = wrapped_around(w, t, (int64_t)t->rank - 1 - i, arg_list_dim(a, 1, 2 * i),
                           arg_list_dim(a, 1, 2 * i + 1));
    return t == arg_tensor(a, 0) ? CALL(clone_default, a[0]) : t;
}

PART(pad)
{
    static const uint32_t reflect[] = {ROW_reflection_pad1d_default, ROW_reflection_pad2d_default,
                                       ROW_reflection_pad3d_default};
    static const uint32_t replicate[] = {ROW_replication_pad1d_default, ROW_replication_pad2d_default,
                                         ROW_replication_pad3d_default};
    const char *mode = arg_str(a, 2);
    uint32_t n = arg_list_len(a, 1) / 2;
    if (strcmp(mode, "constant") == 0)
        return CALL(constant_pad_nd_default, a[0], a[1], arg_is_none(a, 3) ? I(0) : a[3]);
    if (strcmp(mode, "circular") == 0)
        return CALL(private_pad_circular_default, a[0], a[1]);
    if (n < 1 || n > 3)
        return part_fail(w, op, "one to three dimensions can be padded like this");
    return work_call(w, (strcmp(mode, "reflect") == 0 ? reflect : replicate)[n - 1], 2, a);
}
