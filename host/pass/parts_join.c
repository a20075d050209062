/* Decompositions of what joins tensors. */
#include "host/pass/parts.h"
#include <string.h>

/* -- stacks -------------------------------------------------------------------------------------------------------- */

static bp_tensor *lifted(work *w, char kind, bp_tensor *t)
{
    if (kind == 'c')
        return t->rank > 1 ? t : compose_reshape(w, t, 2, (bp_dim[]){tensor_numel(w->c, t), dim_const(1)});
    return kind == 'h' ? CALL(atleast_1d_default, T(t)) : kind == 'd' ? CALL(atleast_3d_default, T(t))
                                                                      : CALL(atleast_2d_default, T(t));
}

PART(stack_up)
{
    char kind = op->schema->name[0];
    uint32_t n = arg_list_len(a, 0);
    bp_value *items = arena_array(&w->c->scratch, n, sizeof *items);
    uint32_t rank = 0;
    if (!items) {
        ctx_nomem(w->c);
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++) {
        bp_tensor *t = lifted(w, kind, arg_list_tensor(a, 0, i));
        items[i] = T(t);
        rank = t && !i ? t->rank : rank;
    }
    int64_t dim = kind == 'h' ? rank != 1 : kind == 'd' ? 2 : kind == 'c' ? 1 : 0;
    return CALL(cat_default, value_list(items, n), I(dim));
}

/* -- grids --------------------------------------------------------------------------------------------------------- */

PARTS(broadcast_tensors)
{
    (void)op;
    bp_dim sizes[TENSOR_MAX_RANK], wider[TENSOR_MAX_RANK];
    uint32_t rank = 0, n = arg_list_len(a, 0);
    bp_tensor **out = arena_array(&w->c->scratch, n, sizeof *out);
    if (!out)
        return ctx_nomem(w->c);
    for (uint32_t i = 0; i < n; i++) {
        bp_tensor *t = arg_list_tensor(a, 0, i);
        TRY(layout_broadcast(w->c, rank, sizes, t->rank, t->sizes, wider));
        rank = t->rank > rank ? t->rank : rank;
        memcpy(sizes, wider, rank * sizeof *sizes);
    }
    for (uint32_t i = 0; i < n; i++)
        out[i] = CALL(expand_default, T(arg_list_tensor(a, 0, i)), value_dims(w->c, sizes, rank));
    return parts_give(w, k, out, n);
}

PARTS(meshgrid)
{
    uint32_t n = arg_list_len(a, 0);
    bool xy = op->schema->nargs > 1 && strcmp(arg_str(a, 1), "xy") == 0 && n > 1;
    bp_tensor **out = arena_array(&w->c->scratch, n, sizeof *out);
    bp_dim sizes[TENSOR_MAX_RANK], own[TENSOR_MAX_RANK];
    if (!out)
        return ctx_nomem(w->c);
    for (uint32_t i = 0; i < n; i++) {
        bp_tensor *t = arg_list_tensor(a, 0, i);
        sizes[xy && i < 2 ? 1 - i : i] = t->rank ? t->sizes[0] : dim_const(1);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = xy && i < 2 ? 1 - i : i;
        for (uint32_t d = 0; d < n; d++)
            own[d] = d == at ? sizes[d] : dim_const(1);
        bp_tensor *t = CALL(view_default, T(arg_list_tensor(a, 0, i)), value_dims(w->c, own, n));
        out[i] = CALL(expand_default, T(t), value_dims(w->c, sizes, n));
    }
    return parts_give(w, k, out, n);
}

PART(cartesian_prod)
{
    (void)op;
    uint32_t n = arg_list_len(a, 0), count;
    if (n == 1)
        return arg_list_tensor(a, 0, 0);
    bp_tensor **grids = work_list(w, ROW_meshgrid_default, 1, a, &count);
    bp_value *items = arena_array(&w->c->scratch, n, sizeof *items);
    for (uint32_t i = 0; grids && items && i < n; i++)
        items[i] = T(CALL(reshape_default, T(grids[i]), INTS(-1)));
    return grids && items ? CALL(stack_default, value_list(items, n), I(1)) : NULL;
}

/* Rows of r elements of x from place `from` on, in order; NULL after an error. The caller knows that there are some.
 * There is a step for each, so the number of elements is a number. */
static bp_tensor *rows_from(work *w, bp_tensor *x, int64_t from, int64_t r, bool again)
{
    int64_t n = tensor_dim(x, 0);
    if (r == 1)
        return compose_unsqueeze(w, CALL(slice_tensor, T(x), I(0), I(from), I(n)), 1);
    bp_value *blocks = arena_array(&w->c->scratch, (size_t)(n - from + 1), sizeof *blocks);
    uint32_t count = 0;
    for (int64_t i = from; blocks && i < n && n - i >= (again ? 1 : r); i++) {
        bp_tensor *rest = rows_from(w, x, again ? i : i + 1, r - 1, again);
        bp_tensor *own = rest ? CALL(slice_tensor, T(x), I(0), I(i), I(i + 1)) : NULL;
        own = own ? CALL(expand_default, T(compose_unsqueeze(w, own, 1)), INTS(tensor_dim(rest, 0), 1)) : NULL;
        bp_value both[] = {T(own), T(rest)};
        blocks[count++] = T(own ? CALL(cat_default, value_list(both, 2), I(1)) : NULL);
    }
    return blocks && work_ok(w) ? CALL(cat_default, value_list(blocks, count), I(0)) : NULL;
}

PART(combinations)
{
    bp_tensor *x = arg_tensor(a, 0);
    int64_t r = arg_int(w->c, a, 1), n = x->rank == 1 ? tensor_dim(x, 0) : 0;
    bool again = arg_bool(a, 2);
    if (x->rank != 1 || r < 0)
        return part_fail(w, op, "expected a vector, and a number of elements that is not negative");
    if (r == 0)
        return CALL(new_empty_default, a[0], INTS(0));
    if (n == 0 || (!again && n < r))
        return CALL(new_empty_default, a[0], INTS(0, r));
    return rows_from(w, x, 0, r, again);
}
