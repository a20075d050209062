/* Operators on matrices that are made of others: tensors as linear maps, Vandermonde's matrices, chains. */
#include "host/op/reference/steps.h"
#include "host/op/rows.h"

static bp_tensor *refuse(work *w, const op_row *op, const char *why)
{
    if (work_ok(w))
        op_fail(w->c, op, BP_INVALID_ARGUMENT, "%s", why);
    return NULL;
}

static bp_dim product(work *w, const bp_tensor *t, uint32_t first, uint32_t end)
{
    return dim_product(w->c, t->sizes + first, end - first);
}

/* -- tensors as linear maps ---------------------------------------------------------------------------------------- */

static bp_tensor *body_tensorinv(work *w, const op_row *op, const bp_value *args)
{
    bp_tensor *t = arg_tensor(args, 0);
    int64_t ind = arg_int(w->c, args, 1);
    bp_dim sizes[TENSOR_MAX_RANK];
    if (ind <= 0 || ind > t->rank)
        return refuse(w, op, "argument \"ind\" must be positive, and at most the number of dimensions");
    uint32_t first = (uint32_t)ind, n = 0;
    bp_dim rows = product(w, t, 0, first), columns = product(w, t, first, t->rank);
    if (!dim_eq(rows, columns))
        return refuse(w, op, "the sizes before \"ind\" must have the product of those from it on");
    for (uint32_t d = first; d < t->rank; d++)
        sizes[n++] = t->sizes[d];
    for (uint32_t d = 0; d < first; d++)
        sizes[n++] = t->sizes[d];
    bp_tensor *matrix = compose_reshape(w, t, 2, (const bp_dim[]){rows, columns});
    bp_tensor *inverse = matrix ? CALL(linalg_inv_default, T(matrix)) : NULL;
    return compose_reshape(w, inverse, t->rank, sizes);
}
COMPOSED(tensorinv)

/* The dimensions that argument i lists, moved behind the others. */
static bp_tensor *moved_last(work *w, const op_row *op, const bp_value *args, uint32_t i)
{
    bp_tensor *t = arg_tensor(args, 0);
    int64_t order[TENSOR_MAX_RANK];
    uint64_t moved = 0;
    uint32_t n = 0, last[TENSOR_MAX_RANK], count = arg_is_none(args, i) ? 0 : arg_list_len(args, i);
    for (uint32_t k = 0; k < count; k++) {
        if (op_wrap_dim(w->c, op, "dims", arg_list_dim(args, i, k).value, t->rank, &last[k]) != BP_OK)
            return NULL;
        if (moved >> last[k] & 1)
            return refuse(w, op, "argument \"dims\" names a dimension twice");
        moved |= 1ull << last[k];
    }
    for (uint32_t d = 0; d < t->rank; d++)
        if (!(moved >> d & 1))
            order[n++] = d;
    for (uint32_t k = 0; k < count; k++)
        order[n++] = last[k];
    return compose_permute(w, t, order);
}

static bp_tensor *body_tensorsolve(work *w, const op_row *op, const bp_value *args)
{
    bp_tensor *t = moved_last(w, op, args, 2), *b = arg_tensor(args, 1);
    bp_dim sizes[TENSOR_MAX_RANK];
    if (!t)
        return NULL;
    if (b->rank > t->rank)
        return refuse(w, op, "argument \"other\" has more dimensions than \"self\"");
    bp_dim unknowns = product(w, t, b->rank, t->rank), equations = product(w, b, 0, b->rank);
    if (!dim_eq(unknowns, equations) || !dim_eq(product(w, t, 0, t->rank), dim_mul(w->c, unknowns, equations)))
        return refuse(w, op, "the sizes of \"self\" behind those of \"other\" must have the product of those");
    for (uint32_t d = b->rank; d < t->rank; d++)
        sizes[d - b->rank] = t->sizes[d];
    bp_tensor *matrix = compose_reshape(w, t, 2, (const bp_dim[]){unknowns, unknowns});
    bp_tensor *right = compose_reshape(w, b, 1, &unknowns);
    bp_tensor *x = compose_two(w, ROW_linalg_solve_default, matrix, right);
    return compose_reshape(w, x, (uint32_t)(t->rank - b->rank), sizes);
}
COMPOSED(tensorsolve)

/* -- Vandermonde's matrices ---------------------------------------------------------------------------------------- */

/* Powers 0 to n - 1 of every element, in a last dimension. */
static bp_tensor *powers(work *w, bp_tensor *x, int64_t n)
{
    int64_t sizes[TENSOR_MAX_RANK + 1];
    for (uint32_t d = 0; d < x->rank; d++)
        sizes[d] = tensor_dim(x, d);
    sizes[x->rank] = n - 1;
    bp_tensor *column = compose_unsqueeze(w, x, -1);
    if (!column)
        return NULL;
    bp_tensor *copies = CALL(expand_default, T(column), value_ints(w->c, sizes, x->rank + 1u));
    bp_tensor *grown = copies ? CALL(cumprod_default, T(copies), I(-1)) : NULL;
    sizes[x->rank] = 1;
    bp_tensor *ones = grown ? CALL(new_ones_default, T(grown), value_ints(w->c, sizes, x->rank + 1u)) : NULL;
    if (!ones)
        return NULL;
    bp_value both[] = {T(ones), T(grown)};
    return CALL(cat_default, value_list(both, 2), I(-1));
}

static bp_tensor *body_linalg_vander(work *w, const op_row *op, const bp_value *args)
{
    bp_tensor *x = arg_tensor(args, 0);
    if (x->dtype == BP_BOOL)
        return refuse(w, op, "there are no powers of bools");
    if (x->rank == 0)
        x = compose_unsqueeze(w, x, 0);
    if (!x)
        return NULL;
    int64_t n = arg_is_none(args, 1) ? tensor_dim(x, x->rank - 1u) : arg_int(w->c, args, 1);
    return n > 1 ? powers(w, x, n) : refuse(w, op, "argument \"N\" must be greater than 1");
}
COMPOSED(linalg_vander)

/* Of integers as int64; the highest power first unless `increasing`. */
static bp_tensor *body_vander(work *w, const op_row *op, const bp_value *args)
{
    bp_tensor *x = arg_tensor(args, 0);
    if (x->rank != 1)
        return refuse(w, op, "argument \"x\" must be a vector");
    int64_t n = arg_is_none(args, 1) ? tensor_dim(x, 0) : arg_int(w->c, args, 1);
    if (n < 0)
        return refuse(w, op, "argument \"N\" must not be negative");
    bp_dtype d = dtype_promote((bp_dtype)x->dtype, BP_I64);
    if (n == 0)
        return CALL(zeros_default, value_ints(w->c, (const int64_t[]){tensor_dim(x, 0), 0}, 2), value_dtype(d));
    bp_tensor *wide = CALL(to_dtype, T(x), value_dtype(d)), *all = wide ? powers(w, wide, n) : NULL;
    if (!all || arg_bool(args, 2))
        return all;
    return CALL(flip_default, T(all), value_ints(w->c, (const int64_t[]){1}, 1));
}
COMPOSED(vander)

/* -- chains -------------------------------------------------------------------------------------------------------- */

static bp_tensor *body_chain_matmul(work *w, const op_row *op, const bp_value *args)
{
    uint32_t n = arg_list_len(args, 0);
    for (uint32_t i = 0; i < n; i++)
        if (arg_list_tensor(args, 0, i)->rank != 2)
            return refuse(w, op, "every argument must be a matrix");
    if (n == 1)
        return CALL(clone_default, T(arg_list_tensor(args, 0, 0)));
    return n ? CALL(linalg_multi_dot_default, args[0]) : refuse(w, op, "expected at least one matrix");
}
COMPOSED(chain_matmul)
