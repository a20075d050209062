/* Decompositions of what moves elements, makes tensors and writes by index, to core ATen. */
#include "host/pass/parts.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static bp_value contiguous_format(void)
{
    return (bp_value){.kind = BP_VALUE_MEMORY_FORMAT, .v.i = BP_CONTIGUOUS};
}

static bp_tensor *copied(work *w, bp_tensor *t)
{
    return t ? CALL(clone_default, T(t), contiguous_format()) : NULL;
}

static bp_tensor *choose(work *w, bp_tensor *condition, bp_value x, bp_value y)
{
    return condition ? CALL(where_self, T(condition), x, y) : NULL;
}

/* 0, 1 ... */
static bp_tensor *count_to(work *w, bp_dim n)
{
    return CALL(arange_start_step, I(0), D(n), I(1), value_dtype(BP_I64));
}

/* -- views --------------------------------------------------------------------------------------------------------- */

PART(transpose)
{
    bp_tensor *x = arg_tensor(a, 0);
    int64_t order[TENSOR_MAX_RANK], i = 0, j = 1;
    bool t = op->schema->nargs == 1;
    if (x->rank < 2)
        return CALL(alias_default, a[0]);
    if (!t) {
        i = part_dim(w, a, 1, x->rank);
        j = part_dim(w, a, 2, x->rank);
    }
    for (uint32_t d = 0; d < x->rank; d++)
        order[d] = d == i ? j : d == j ? i : d;
    return work_ok(w) ? compose_permute(w, x, order) : NULL;
}

PART(squeeze)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0);
    int64_t dims[TENSOR_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t d = 0; d < x->rank; d++)
        if (dim_is(x->sizes[d], 1))
            dims[n++] = d;
    return n ? CALL(squeeze_dims, a[0], value_ints(w->c, dims, n)) : CALL(alias_default, a[0]);
}

PARTS(split)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0);
    int64_t dim = part_dim(w, a, 2, x->rank), parts;
    bp_dim each = arg_dim(a, 1), n = work_ok(w) ? x->sizes[dim] : dim_const(0);
    bool some = dim_above(each, 0) && !dim_is(n, 0);
    bp_dim rest = dim_add(w->c, n, dim_sub(w->c, each, dim_const(1)));
    parts = some ? dim_int(w->c, dim_floordiv(w->c, rest, each)) : 1; /* a number: how many results there are */
    uint32_t count = (uint32_t)parts, got;
    bp_value *sizes = arena_array(&w->c->scratch, count, sizeof *sizes);
    if (!sizes || !work_ok(w))
        return sizes ? w->c->diag.code : ctx_nomem(w->c);
    for (uint32_t i = 0; i < count; i++)
        sizes[i] = D(i + 1 < count ? each : dim_sub(w->c, n, dim_mul(w->c, dim_const(i), each)));
    bp_value args[] = {a[0], value_list(sizes, count), I(dim)};
    bp_tensor **out = work_list(w, ROW_split_with_sizes_default, 3, args, &got);
    return out ? parts_give(w, k, out, got) : w->c->diag.code;
}

PARTS(unbind)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0);
    int64_t dim = part_dim(w, a, 1, x->rank), n = work_ok(w) ? tensor_dim(x, (uint32_t)dim) : 0; /* results */
    bp_tensor **out = arena_array(&w->c->scratch, (size_t)n, sizeof *out);
    if (!out)
        return ctx_nomem(w->c);
    for (int64_t i = 0; i < n; i++)
        out[i] = CALL(select_int, a[0], I(dim), I(i));
    return parts_give(w, k, out, (uint32_t)n);
}

/* The copy of the view that a row named <view>_copy makes. */
PART(view_copy)
{
    char target[128];
    const char *name = op->schema->name;
    snprintf(target, sizeof target, "aten.%.*s.%s", (int)(strlen(name) - strlen("_copy")), name, op->schema->overload);
    const op_row *view = op_by_target(target);
    return view ? copied(w, work_call(w, view->number, view->schema->nargs, a))
                : part_fail(w, op, "there is no view of this name");
}

PART(reshape_copy)
{
    (void)op;
    return copied(w, CALL(reshape_default, a[0], a[1]));
}

PARTS(list_copy)
{
    const char *name = op->schema->name;
    uint32_t row = name[0] == 'u' ? ROW_unbind_int : strstr(name, "sizes") ? ROW_split_with_sizes_default
        : ROW_split_tensor, n;
    bp_tensor **out = work_list(w, row, op->schema->nargs, a, &n);
    for (uint32_t i = 0; out && i < n; i++)
        out[i] = copied(w, out[i]);
    return out ? parts_give(w, k, out, n) : w->c->diag.code;
}

/* Windows are overlapping views, which core ATen has as as_strided alone. */
PART(unfold)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0);
    int64_t dim = part_dim(w, a, 1, x->rank);
    bp_dim sizes[TENSOR_MAX_RANK + 1], strides[TENSOR_MAX_RANK + 1], size = arg_dim(a, 2), step = arg_dim(a, 3);
    if (!work_ok(w) || dim_below(step, 1) || x->rank == 0) {
        op_fail(w->c, op, BP_UNIMPLEMENTED, "its parts are not there for this step or rank");
        return NULL;
    }
    memcpy(sizes, x->sizes, x->rank * sizeof *sizes);
    memcpy(strides, x->strides, x->rank * sizeof *strides);
    sizes[x->rank] = size;
    strides[x->rank] = strides[dim];
    sizes[dim] = dim_add(w->c, dim_floordiv(w->c, dim_sub(w->c, sizes[dim], size), step), dim_const(1));
    strides[dim] = dim_mul(w->c, strides[dim], step);
    return CALL(as_strided_default, a[0], value_dims(w->c, sizes, x->rank + 1u),
                value_dims(w->c, strides, x->rank + 1u));
}

PART(unfold_backward)
{
    (void)op;
    bp_dim size = arg_dim(a, 3), step = arg_dim(a, 4);
    uint32_t rank = arg_list_len(a, 1);
    int64_t dim = part_dim(w, a, 2, rank);
    if (!work_ok(w) || rank == 0) {
        op_fail(w->c, op, BP_UNIMPLEMENTED, "its parts are not there for a tensor of no dimensions");
        return NULL;
    }
    bp_tensor *all = CALL(arange_start_step, I(0), D(arg_list_dim(a, 1, (uint32_t)dim)), I(1), value_dtype(BP_I64));
    bp_tensor *at = all ? CALL(unfold_default, T(all), I(0), D(size), D(step)) : NULL;
    at = at ? CALL(reshape_default, T(at), INTS(-1)) : NULL;
    bp_tensor *g = CALL(movedim_int, a[0], I(-1), I(dim + 1));
    g = g ? CALL(flatten_using_ints, T(g), I(dim), I(dim + 1)) : NULL;
    bp_tensor *zero = CALL(zeros_default, a[1], value_dtype((bp_dtype)arg_tensor(a, 0)->dtype));
    bp_value none = NONE, indices[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++)
        indices[d] = d == dim ? T(at) : none;
    return g && zero ? CALL(index_put_default, T(zero), value_list(indices, (uint32_t)dim + 1), T(g), B(true)) : NULL;
}

/* -- moves --------------------------------------------------------------------------------------------------------- */

PART(stack)
{
    (void)op;
    uint32_t n = arg_list_len(a, 0);
    bp_value *items = arena_array(&w->c->scratch, n, sizeof *items);
    if (!items || !n)
        return items ? part_fail(w, op, "there is nothing to stack") : NULL;
    int64_t dim = part_dim(w, a, 1, arg_list_tensor(a, 0, 0)->rank + 1u);
    for (uint32_t i = 0; i < n; i++)
        items[i] = T(compose_unsqueeze(w, arg_list_tensor(a, 0, i), dim));
    return work_ok(w) ? CALL(cat_default, value_list(items, n), I(dim)) : NULL;
}

PART(block_diag)
{
    (void)op;
    uint32_t n = arg_list_len(a, 0);
    bp_dim columns = dim_const(0), left = dim_const(0);
    bp_value *rows = arena_array(&w->c->scratch, n, sizeof *rows);
    bp_tensor **all = arena_array(&w->c->scratch, n, sizeof *all);
    bp_dtype d = BP_DTYPE_UNSET;
    if (!rows || !all)
        return NULL;
    for (uint32_t i = 0; i < n; i++) {
        all[i] = CALL(atleast_2d_default, T(arg_list_tensor(a, 0, i)));
        if (!all[i])
            return NULL;
        columns = dim_add(w->c, columns, all[i]->sizes[1]);
        d = d ? dtype_promote(d, (bp_dtype)all[i]->dtype) : (bp_dtype)all[i]->dtype;
    }
    for (uint32_t i = 0; i < n; i++) {
        bp_dim end = dim_add(w->c, left, all[i]->sizes[1]);
        bp_value pad = DIMS(left, dim_sub(w->c, columns, end));
        rows[i] = T(CALL(constant_pad_nd_default, T(part_cast(w, all[i], d)), pad, I(0)));
        left = end;
    }
    return CALL(cat_default, value_list(rows, n), I(0));
}

PART(rot90)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0);
    int64_t turns = ((arg_int(w->c, a, 1) % 4) + 4) % 4, i = arg_list_dim(a, 2, 0).value,
        j = arg_list_dim(a, 2, 1).value;
    if (turns == 1)
        return CALL(transpose_int, T(CALL(flip_default, T(x), INTS(j))), I(i), I(j));
    if (turns == 2)
        return CALL(flip_default, T(x), a[2]);
    if (turns == 3)
        return CALL(transpose_int, T(CALL(flip_default, T(x), INTS(i))), I(i), I(j));
    return copied(w, x);
}

/* Of a dimension that has elements. */
static bp_tensor *rolled(work *w, bp_tensor *t, int64_t dim, bp_dim by)
{
    if (!t || !work_ok(w))
        return NULL;
    bp_dim n = t->sizes[dim], at = dim_mod(w->c, dim_sub(w->c, dim_const(0), by), n);
    bp_tensor *low = CALL(slice_tensor, T(t), I(dim), D(at), D(n)),
        *high = CALL(slice_tensor, T(t), I(dim), I(0), D(at));
    bp_value both[] = {T(low), T(high)};
    return low && high ? CALL(cat_default, value_list(both, 2), I(dim)) : NULL;
}

PART(roll)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0), *t = x;
    uint32_t n = arg_list_len(a, 2);
    if (part_is_empty(x) || x->rank == 0)
        return CALL(clone_default, a[0]);
    if (n == 0) {
        t = rolled(w, CALL(reshape_default, a[0], INTS(-1)), 0, arg_list_dim(a, 1, 0));
        return t ? CALL(view_default, T(t), part_sizes(w, x)) : NULL;
    }
    for (uint32_t i = 0; t && i < n; i++)
        t = rolled(w, t, layout_wrap_dim(w->c, arg_list_dim(a, 2, i).value, x->rank), arg_list_dim(a, 1, i));
    return t;
}

PART(triangle)
{
    bool upper = op->schema->name[3] == 'u';
    bp_tensor *x = arg_tensor(a, 0);
    bp_tensor *rows = compose_unsqueeze(w, count_to(w, x->sizes[x->rank - 2u]), -1);
    bp_tensor *columns = count_to(w, x->sizes[x->rank - 1u]);
    bp_tensor *apart = rows && columns ? CALL(sub_tensor, T(columns), T(rows)) : NULL;
    bp_tensor *inside = !apart ? NULL : upper ? CALL(ge_scalar, T(apart), a[1]) : CALL(le_scalar, T(apart), a[1]);
    return choose(w, inside, a[0], x->dtype == BP_BOOL ? B(false) : I(0));
}

PART(channel_shuffle)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0);
    bp_dim groups = arg_dim(a, 1), sizes[TENSOR_MAX_RANK + 1];
    sizes[0] = x->sizes[0];
    sizes[1] = groups;
    sizes[2] = dim_is(groups, 0) ? groups : dim_floordiv(w->c, x->sizes[1], groups);
    memcpy(sizes + 3, x->sizes + 2, (x->rank - 2u) * sizeof *sizes);
    bp_tensor *t = compose_reshape(w, x, x->rank + 1u, sizes);
    t = t ? copied(w, CALL(transpose_int, T(t), I(1), I(2))) : NULL;
    return t ? CALL(view_default, T(t), part_sizes(w, x)) : NULL;
}

PART(pixel_shuffle)
{
    bp_tensor *x = arg_tensor(a, 0);
    int64_t order[TENSOR_MAX_RANK];
    uint32_t b = x->rank - 3u;
    bp_ctx *c = w->c;
    bp_dim f = arg_dim(a, 1), split[TENSOR_MAX_RANK], out[TENSOR_MAX_RANK], n = x->sizes[b], h = x->sizes[b + 1],
        v = x->sizes[b + 2], square = dim_mul(c, f, f);
    bool back = strstr(op->schema->name, "unshuffle") != NULL;
    for (uint32_t d = 0; d < b; d++)
        out[d] = split[d] = x->sizes[d], order[d] = d;
    static const int64_t moves[2][5] = {{0, 3, 1, 4, 2}, {0, 2, 4, 1, 3}};
    if (dim_below(f, 1))
        return part_fail(w, op, "the factor must be positive");
    bp_dim parts[2][5] = {{back ? n : dim_floordiv(c, n, square), f, f, h, v},
                          {n, back ? dim_floordiv(c, h, f) : h, f, back ? dim_floordiv(c, v, f) : v, f}};
    bp_dim last[2][3] = {{parts[0][0], dim_mul(c, h, f), dim_mul(c, v, f)},
                         {dim_mul(c, n, square), parts[1][1], parts[1][3]}};
    for (uint32_t i = 0; i < 5; i++) {
        split[b + i] = parts[back][i];
        order[b + i] = b + moves[back][i];
    }
    memcpy(out + b, last[back], sizeof last[back]);
    bp_tensor *t = compose_reshape(w, x, b + 5, split);
    t = copied(w, compose_permute(w, t, order));
    return t ? CALL(view_default, T(t), value_dims(w->c, out, b + 3)) : NULL;
}

PART(diag_embed)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0);
    uint32_t rank = x->rank + 1u;
    int64_t offset = arg_int(w->c, a, 1), i = part_dim(w, a, 2, rank), j = part_dim(w, a, 3, rank);
    bp_dim n = dim_add(w->c, x->sizes[x->rank - 1u], dim_const(offset < 0 ? -offset : offset));
    if (!work_ok(w))
        return NULL;
    if (i > j) { /* the same diagonal, seen from the other side */
        int64_t t = i;
        i = j, j = t, offset = -offset;
    }
    int64_t pad[2] = {offset > 0 ? offset : 0, offset < 0 ? -offset : 0}, order[TENSOR_MAX_RANK];
    bp_tensor *wide = CALL(constant_pad_nd_default, a[0], value_ints(w->c, pad, 2), I(0)); /* as the columns see it */
    bp_tensor *rows = compose_unsqueeze(w, count_to(w, n), -1), *columns = count_to(w, n);
    bp_tensor *on = rows ? CALL(eq_scalar, T(CALL(sub_tensor, T(columns), T(rows))), I(offset)) : NULL;
    bp_tensor *t = wide ? choose(w, on, T(compose_unsqueeze(w, wide, -2)), x->dtype == BP_BOOL ? B(false) : I(0))
        : NULL;
    uint32_t next = 0;
    for (uint32_t d = 0; d < rank; d++)
        order[d] = d == i ? rank - 2 : d == j ? rank - 1 : next++;
    return t ? copied(w, compose_permute(w, t, order)) : NULL;
}

PART(diagonal_scatter)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0);
    int64_t offset = arg_int(w->c, a, 2), i = part_dim(w, a, 3, x->rank), j = part_dim(w, a, 4, x->rank);
    bp_tensor *wide = CALL(diag_embed_default, a[1], a[2], a[3], a[4]);
    if (!wide || !work_ok(w))
        return NULL;
    bp_dim n = wide->sizes[i], m[2] = {x->sizes[i], x->sizes[j]};
    for (uint32_t s = 0; s < 2 && wide; s++) { /* the diagonal of a square, cut or filled to x's sizes */
        int64_t dim = s ? j : i;
        uint32_t from_last = x->rank - 1u - (uint32_t)dim;
        bp_dim pad[2 * TENSOR_MAX_RANK] = {{0, 0, 0}};
        pad[2 * from_last + 1] = dim_sub(w->c, m[s], n);
        if (dim_lt(m[s], n))
            wide = CALL(slice_tensor, T(wide), I(dim), I(0), D(m[s]));
        else if (!dim_eq(n, m[s]))
            wide = CALL(constant_pad_nd_default, T(wide), value_dims(w->c, pad, 2 * (from_last + 1)), I(0));
    }
    bp_tensor *rows = count_to(w, m[0]), *columns = count_to(w, m[1]);
    bp_dim shape[2][TENSOR_MAX_RANK], one = dim_const(1);
    for (uint32_t d = 0; d < x->rank; d++)
        shape[0][d] = d == i ? m[0] : one, shape[1][d] = d == j ? m[1] : one;
    rows = compose_reshape(w, rows, x->rank, shape[0]);
    columns = compose_reshape(w, columns, x->rank, shape[1]);
    bp_tensor *on = rows && columns ? CALL(eq_scalar, T(CALL(sub_tensor, T(columns), T(rows))), I(offset)) : NULL;
    return wide ? choose(w, on, T(wide), a[0]) : NULL;
}

PART(chunk_cat)
{
    (void)op;
    uint32_t n = arg_list_len(a, 0);
    int64_t dim = arg_int(w->c, a, 1), chunks = arg_int(w->c, a, 2), at = 0;
    bp_value *items = arena_array(&w->c->scratch, n, sizeof *items);
    if (!items)
        return NULL;
    for (uint32_t i = 0; i < n; i++) {
        bp_tensor *t = arg_list_tensor(a, 0, i);
        int64_t d = layout_wrap_dim(w->c, dim, t->rank);
        bp_dim pad[2 * TENSOR_MAX_RANK] = {{0, 0, 0}}, sizes[TENSOR_MAX_RANK], many = dim_const(chunks);
        uint32_t from_last = t->rank - 1u - (uint32_t)d; /* what is missing to a multiple of chunks */
        pad[2 * from_last + 1] = dim_mod(w->c, dim_sub(w->c, dim_const(0), t->sizes[d]), many);
        memcpy(sizes, t->sizes, (size_t)d * sizeof *sizes);
        t = CALL(constant_pad_nd_default, T(t), value_dims(w->c, pad, 2 * (from_last + 1)), I(0));
        at = d;
        sizes[d] = many;
        sizes[d + 1] = dim_const(-1);
        items[i] = T(t ? CALL(reshape_default, T(t), value_dims(w->c, sizes, (uint32_t)d + 2)) : NULL);
    }
    return work_ok(w) ? CALL(cat_default, value_list(items, n), I(at + 1)) : NULL;
}

/* -- creation ------------------------------------------------------------------------------------------------------ */

static bp_value otherwise(bp_value v, bp_dtype d)
{
    return v.kind ? v : value_dtype(d);
}

/* size, dtype, layout, device, pin_memory */
PART(filled)
{
    bool one = op->schema->name[0] == 'o';
    bp_dtype d = a[1].kind ? arg_dtype(a, 1) : w->c->ambient.default_dtype;
    bp_value v = d == BP_BOOL ? B(one) : dtype_is_int(d) ? I(one) : F(one);
    return CALL(full_default, a[0], v, value_dtype(d), a[2], a[3], a[4]);
}

/* self, size, (fill,) dtype, layout, device, pin_memory */
PART(new_filled)
{
    bool given = strcmp(op->schema->name, "new_full") == 0, one = strcmp(op->schema->name, "new_ones") == 0;
    bp_tensor *x = arg_tensor(a, 0);
    const bp_value *o = a + 2 + given;
    bp_value device = o[2].kind ? o[2] : (bp_value){.kind = BP_VALUE_DEVICE, .v.device = tensor_device(x)};
    bp_value d = otherwise(o[0], (bp_dtype)x->dtype);
    return CALL(full_default, a[1], given ? a[2] : d.v.i == BP_BOOL ? B(one) : I(one), d, o[1], device, o[3]);
}

PART(new_empty)
{
    bool strided = strcmp(op->schema->name, "new_empty_strided") == 0;
    bp_tensor *x = arg_tensor(a, 0);
    const bp_value *o = a + 2 + strided;
    bp_value device = o[2].kind ? o[2] : (bp_value){.kind = BP_VALUE_DEVICE, .v.device = tensor_device(x)};
    bp_value d = otherwise(o[0], (bp_dtype)x->dtype);
    return strided ? CALL(empty_strided_default, a[1], a[2], d, o[1], device, o[3])
                   : CALL(empty_memory_format, a[1], d, o[1], device, o[3]);
}

/* size, physical_layout, then as above */
PART(empty_permuted)
{
    (void)op;
    uint32_t n = arg_list_len(a, 0);
    bp_dim sizes[TENSOR_MAX_RANK];
    int64_t back[TENSOR_MAX_RANK];
    for (uint32_t i = 0; i < n && i < TENSOR_MAX_RANK; i++) {
        int64_t d = arg_list_dim(a, 1, i).value;
        sizes[i] = arg_list_dim(a, 0, (uint32_t)d);
        back[d] = i;
    }
    bp_tensor *t = CALL(empty_memory_format, value_dims(w->c, sizes, n), a[2], a[3], a[4], a[5]);
    return compose_permute(w, t, back);
}

/* A number as an element of type d holds it. */
static double held(bp_dtype d, double v)
{
    int64_t i = (int64_t)v;
    switch (d) {
    case BP_U8: return (double)(uint8_t)i;
    case BP_I8: return (double)(int8_t)i;
    case BP_I16: return (double)(int16_t)i;
    case BP_I32: return (double)(int32_t)i;
    case BP_I64: return (double)i;
    default: return v;
    }
}

/* start, end, steps, then as above; in double, from both ends, as the kernel does. */
static bp_tensor *spaced(work *w, const bp_value *a, bp_dtype d)
{
    bp_dim n = arg_dim(a, 2), last = dim_sub(w->c, n, dim_const(1));
    bp_dtype up = d == BP_F64 || dtype_is_integral(d) ? BP_F64 : BP_F32;
    bp_tensor *x = a[0].kind == BP_VALUE_TENSOR ? part_cast(w, arg_tensor(a, 0), up) : NULL;
    bp_tensor *y = a[1].kind == BP_VALUE_TENSOR ? part_cast(w, arg_tensor(a, 1), up) : NULL;
    bp_value none = value_list(NULL, 0);
    x = x ? x : CALL(full_default, none, F(held(d, arg_float(a, 0))), value_dtype(up));
    y = y ? y : CALL(full_default, none, F(held(d, arg_float(a, 1))), value_dtype(up));
    if (dim_is(n, 0))
        return CALL(full_default, INTS(0), I(0), value_dtype(d));
    if (dim_is(n, 1))
        return part_cast(w, CALL(reshape_default, T(x), INTS(1)), d);
    bp_tensor *step = CALL(div_scalar, T(CALL(sub_tensor, T(y), T(x))), D(last));
    bp_tensor *at = count_to(w, n);
    bp_tensor *low = CALL(add_tensor, T(x), T(CALL(mul_tensor, T(at), T(step))));
    bp_tensor *rest = CALL(rsub_scalar, T(at), D(last));
    bp_tensor *high = CALL(sub_tensor, T(y), T(CALL(mul_tensor, T(rest), T(step))));
    bp_tensor *t = choose(w, CALL(lt_scalar, T(CALL(mul_scalar, T(at), I(2))), D(n)), T(low), T(high));
    return dtype_is_integral(d) ? part_cast(w, t, BP_I64) : t; /* which wraps in a narrower type */
}

static bool is_complex_number(const bp_value *v)
{
    const bp_tensor *t = v->kind == BP_VALUE_TENSOR ? v->v.tensor : NULL;
    return v->kind == BP_VALUE_COMPLEX || (t && dtype_is_complex((bp_dtype)t->dtype));
}

static bp_dtype dtype_wanted(work *w, const op_row *op, const bp_value *a, uint32_t at)
{
    bp_dtype d = a[at].kind ? arg_dtype(a, at) : w->c->ambient.default_dtype;
    if (is_complex_number(&a[0]) || is_complex_number(&a[1]) || dtype_is_complex(d))
        op_fail(w->c, op, BP_UNIMPLEMENTED, "its parts are not there for complex numbers");
    return d;
}

PART(linspace)
{
    bp_dtype d = dtype_wanted(w, op, a, 3);
    bp_tensor *t = work_ok(w) ? spaced(w, a, d) : NULL;
    return part_cast(w, t, d);
}

PART(logspace)
{
    bp_dtype d = dtype_wanted(w, op, a, 4), up = d == BP_F64 || dtype_is_integral(d) ? BP_F64 : BP_F32;
    bp_tensor *t = work_ok(w) ? spaced(w, a, up) : NULL;
    return t ? part_cast(w, CALL(pow_scalar, F(arg_float(a, 3)), T(t)), d) : NULL;
}

PART(eye)
{
    bool square = strcmp(op->schema->overload, "m") != 0;
    bp_dim n = arg_dim(a, 0), m = square ? n : arg_dim(a, 1);
    const bp_value *o = a + 2 - square;
    bp_dtype d = o[0].kind ? (bp_dtype)o[0].v.i : w->c->ambient.default_dtype;
    bp_tensor *rows = compose_unsqueeze(w, CALL(arange_start_step, I(0), D(n), I(1), value_dtype(BP_I64), o[1], o[2],
                                                o[3]), -1);
    bp_tensor *columns = CALL(arange_start_step, I(0), D(m), I(1), value_dtype(BP_I64), o[1], o[2], o[3]);
    return rows ? part_cast(w, CALL(eq_tensor, T(rows), T(columns)), d) : NULL;
}

/* -- indexing ------------------------------------------------------------------------------------------------------ */

/* Indices [None] * dim + [index]. */
static bp_value along(work *w, int64_t dim, bp_tensor *index)
{
    bp_value *list = arena_array(&w->c->scratch, (size_t)dim + 1, sizeof *list);
    if (!list) {
        ctx_nomem(w->c);
        return value_none();
    }
    list[dim] = value_tensor(index);
    return value_list(list, (uint32_t)dim + 1);
}

static bool is_one(const bp_value *v)
{
    return (v->kind == BP_VALUE_INT && dim_same_as(v->v.dim, 1)) || (v->kind == BP_VALUE_FLOAT && v->v.f[0] == 1);
}

/* self, dim, index, source (, alpha): index_add and index_copy */
PART(index_write)
{
    bool adds = strcmp(op->schema->name, "index_add") == 0;
    bp_tensor *x = arg_tensor(a, 0), *source = arg_tensor(a, 3);
    int64_t dim = part_dim(w, a, 1, x->rank);
    bool scalar = x->rank == 0;
    if (!work_ok(w))
        return NULL;
    if (adds && !is_one(&a[4]))
        source = CALL(mul_scalar, a[3], a[4]);
    x = scalar ? compose_unsqueeze(w, x, 0) : x;
    source = source && source->rank == 0 ? compose_unsqueeze(w, source, 0) : source;
    bp_tensor *index = part_rank(a, 2) ? arg_tensor(a, 2) : compose_unsqueeze(w, arg_tensor(a, 2), 0);
    bp_tensor *t = x && source && index ? CALL(index_put_default, T(x), along(w, dim, index), T(source), B(adds))
        : NULL;
    return t && scalar ? CALL(squeeze_dim, T(t), I(0)) : t;
}

PART(index_fill)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0), *value;
    int64_t dim = part_dim(w, a, 1, x->rank);
    bool scalar = x->rank == 0;
    if (!work_ok(w))
        return NULL;
    value = a[3].kind == BP_VALUE_TENSOR ? part_cast(w, arg_tensor(a, 3), (bp_dtype)x->dtype)
                                         : CALL(full_default, value_list(NULL, 0), a[3],
                                                value_dtype((bp_dtype)x->dtype));
    x = scalar ? compose_unsqueeze(w, x, 0) : x;
    bp_tensor *index = part_rank(a, 2) ? arg_tensor(a, 2) : compose_unsqueeze(w, arg_tensor(a, 2), 0);
    bp_tensor *t = x && value && index ? CALL(index_put_default, T(x), along(w, dim, index), T(value), B(false)) : NULL;
    return t && scalar ? CALL(squeeze_dim, T(t), I(0)) : t;
}

PART(take)
{
    (void)op;
    bp_tensor *flat = CALL(reshape_default, a[0], INTS(-1));
    return flat ? CALL(index_tensor, T(flat), along(w, 0, arg_tensor(a, 1))) : NULL;
}

PART(masked_fill)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0);
    bp_value v = a[2];
    if (v.kind == BP_VALUE_TENSOR)
        v = T(part_cast(w, v.v.tensor, (bp_dtype)x->dtype));
    else
        v = T(CALL(full_default, value_list(NULL, 0), v, value_dtype((bp_dtype)x->dtype)));
    bp_tensor *t = CALL(where_self, a[1], v, a[0]);
    return !t || tensor_is_contiguous(t) ? t : copied(w, t); /* as the kernel lays it out */
}

/* Every index inside the mask, 0 outside. */
static bp_value safe_indices(work *w, const bp_value *a, uint32_t mask, uint32_t at)
{
    uint32_t n = arg_list_len(a, at);
    bp_value *list = arena_array(&w->c->scratch, n, sizeof *list);
    for (uint32_t i = 0; list && i < n; i++) {
        bp_tensor *t = arg_list_tensor(a, at, i);
        list[i] = t ? T(CALL(mul_tensor, T(t), a[mask])) : value_none();
    }
    return list ? value_list(list, n) : value_none();
}

/* self, mask, indices, fill */
PART(masked_index)
{
    (void)op;
    bp_tensor *t = CALL(index_tensor, a[0], safe_indices(w, a, 1, 2));
    return CALL(masked_fill_scalar, T(t), T(CALL(logical_not_default, a[1])), a[3]);
}

PART(masked_index_put)
{
    (void)op;
    bp_tensor *kept = CALL(masked_fill_scalar, a[3], T(CALL(logical_not_default, a[1])), I(0));
    return CALL(index_put_default, a[0], safe_indices(w, a, 1, 2), T(kept), B(true));
}

PART(isin)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0), *flat = CALL(reshape_default, a[1], INTS(-1));
    bp_tensor *same = flat ? CALL(eq_tensor, T(compose_unsqueeze(w, x, -1)), T(flat)) : NULL;
    bp_tensor *t = same ? CALL(any_dim, T(same), I(-1)) : NULL;
    return t && arg_bool(a, 3) ? CALL(logical_not_default, T(t)) : t;
}

/* -- products ------------------------------------------------------------------------------------------------------ */

static bool is_zero(const bp_value *v)
{
    return (v->kind == BP_VALUE_INT && dim_same_as(v->v.dim, 0)) || (v->kind == BP_VALUE_FLOAT && v->v.f[0] == 0);
}

/* Of integers, by the number cut to an integer. */
static bp_tensor *scaled(work *w, bp_tensor *t, bp_value by)
{
    if (t && dtype_is_integral((bp_dtype)t->dtype) && by.kind == BP_VALUE_FLOAT)
        by = I((int64_t)by.v.f[0]);
    return is_one(&by) || !t ? t : CALL(mul_scalar, T(t), by);
}

/* beta * self + alpha * product; nothing of self where beta is 0. */
static bp_tensor *added(work *w, bp_value self, bp_tensor *product, bp_value beta, bp_value alpha)
{
    bp_tensor *right = scaled(w, product, alpha);
    if (!right || !is_zero(&beta))
        return CALL(add_tensor, T(scaled(w, self.v.tensor, beta)), T(right));
    return right;
}

PART(baddbmm)
{
    (void)op;
    return added(w, a[0], CALL(bmm_default, a[1], a[2]), a[3], a[4]);
}

PART(addmv)
{
    (void)op;
    return added(w, a[0], CALL(mv_default, a[1], a[2]), a[3], a[4]);
}

PART(addr)
{
    (void)op;
    bp_tensor *outer = CALL(mul_tensor, T(compose_unsqueeze(w, arg_tensor(a, 1), 1)), a[2]);
    if (arg_tensor(a, 0)->dtype == BP_BOOL) {
        op_fail(w->c, op, BP_UNIMPLEMENTED, "its parts are not there for bools");
        return NULL;
    }
    return added(w, a[0], outer, a[3], a[4]);
}

PART(mv)
{
    (void)op;
    bp_tensor *t = CALL(mm_default, a[0], T(compose_unsqueeze(w, arg_tensor(a, 1), 1)));
    return t ? CALL(squeeze_dim, T(t), I(1)) : NULL;
}

PART(dot)
{
    bool conjugated = op->schema->name[0] == 'v' && dtype_is_complex((bp_dtype)arg_tensor(a, 0)->dtype);
    bp_tensor *x = conjugated ? CALL(private_conj_physical_default, a[0]) : arg_tensor(a, 0);
    bp_tensor *row = compose_unsqueeze(w, x, 0), *column = compose_unsqueeze(w, arg_tensor(a, 1), 1);
    bp_tensor *t = compose_two(w, ROW_mm_default, row, column);
    return t ? CALL(view_default, T(t), value_list(NULL, 0)) : NULL;
}

PART(linalg_cross)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0), *y = arg_tensor(a, 1);
    bp_dim sizes[TENSOR_MAX_RANK];
    if (layout_broadcast(w->c, x->rank, x->sizes, y->rank, y->sizes, sizes) != BP_OK)
        return NULL;
    uint32_t rank = x->rank > y->rank ? x->rank : y->rank;
    bp_value to = value_dims(w->c, sizes, rank);
    int64_t dim = part_dim(w, a, 2, rank);
    bp_tensor *at[2], *u[2], *v[2];
    x = CALL(expand_default, a[0], to);
    y = CALL(expand_default, a[1], to);
    for (uint32_t i = 0; i < 2; i++) {
        bp_tensor *t = CALL(arange_start_step, I(i + 1), I(i + 4), I(1), value_dtype(BP_I64));
        at[i] = t ? CALL(remainder_scalar, T(t), I(3)) : NULL;
        u[i] = at[i] && x ? CALL(index_select_default, T(x), I(dim), T(at[i])) : NULL;
        v[i] = at[i] && y ? CALL(index_select_default, T(y), I(dim), T(at[i])) : NULL;
    }
    if (!work_ok(w))
        return NULL;
    bp_tensor *t = CALL(sub_tensor, T(CALL(mul_tensor, T(u[0]), T(v[1]))), T(CALL(mul_tensor, T(u[1]), T(v[0]))));
    return t;
}

/* query, key, value, dropout_p, is_causal, attn_mask, scale */
PARTS(flash)
{
    bp_tensor *q = arg_tensor(a, 0), *v = arg_tensor(a, 2), *mask = arg_tensor(a, 5), *out[2];
    bp_dtype d = (bp_dtype)q->dtype, up = d == BP_F64 ? BP_F64 : BP_F32;
    double scale = arg_is_none(a, 6) ? 1 / sqrt((double)tensor_dim(q, 3)) : arg_float(a, 6); /* a root is a factor */
    if (arg_float(a, 3) != 0) {
        op_fail(w->c, op, BP_UNIMPLEMENTED, "its parts are not there for dropout");
        return w->c->diag.code;
    }
    bp_tensor *key = CALL(transpose_int, T(part_cast(w, arg_tensor(a, 1), up)), I(-2), I(-1));
    bp_tensor *scores = key ? CALL(matmul_default, T(part_cast(w, q, up)), T(key)) : NULL;
    scores = scores ? CALL(mul_scalar, T(scores), F(scale)) : NULL;
    if (scores && arg_bool(a, 4)) {
        bp_tensor *ones = CALL(ones_default, DIMS(q->sizes[2], scores->sizes[3]), value_dtype(BP_BOOL));
        bp_tensor *open = ones ? CALL(tril_default, T(ones)) : NULL;
        scores = choose(w, open, T(scores), F(-(double)INFINITY));
    }
    if (scores && mask)
        scores = mask->dtype == BP_BOOL ? choose(w, mask, T(scores), F(-(double)INFINITY))
                                        : CALL(add_tensor, T(scores), T(part_cast(w, mask, up)));
    bp_tensor *weights = scores ? CALL(private_safe_softmax_default, T(scores), I(-1)) : NULL;
    bp_tensor *t = weights ? CALL(matmul_default, T(weights), T(part_cast(w, v, up))) : NULL;
    out[0] = part_cast(w, t, d);
    t = scores ? CALL(logsumexp_default, T(scores), INTS(-1)) : NULL; /* heads innermost, as the kernel lays it out */
    t = t ? copied(w, CALL(transpose_int, T(t), I(1), I(2))) : NULL;
    out[1] = t ? CALL(transpose_int, T(t), I(1), I(2)) : NULL;
    return parts_give(w, k, out, 2);
}
