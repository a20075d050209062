/* Shape rules of factorizations and of what is read off them. Matrices of a factorization lie column by column. */
#include "host/op/shape_linalg.h"
#include "host/op/rows.h"
#include "host/op/view_rule.h"
#include <string.h>

/* -- checks (shape_linalg.h) --------------------------------------------------------------------------------------- */

static const char *name_of(const shape_call *s, uint32_t i)
{
    return s->op->schema->args[i].name;
}

bp_status check_factor_dtype(bp_ctx *c, const shape_call *s, uint32_t i)
{
    bp_dtype d = (bp_dtype)arg_tensor(s->args, i)->dtype;
    if (d == BP_F32 || d == BP_F64 || dtype_is_complex(d))
        return BP_OK;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"%s\" must be float32, float64 or complex, and is %s",
                   name_of(s, i), dtype_get(d)->torch);
}

bp_status check_matrix(bp_ctx *c, const shape_call *s, uint32_t i)
{
    const bp_tensor *t = arg_tensor(s->args, i);
    if (t->rank < 2)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"%s\" must have at least 2 dimensions, and has %u",
                       name_of(s, i), t->rank);
    return check_factor_dtype(c, s, i);
}

bp_status check_square(bp_ctx *c, const shape_call *s, uint32_t i)
{
    const bp_tensor *t = arg_tensor(s->args, i);
    TRY(check_matrix(c, s, i));
    if (dim_require(DIM_EQ, t->sizes[t->rank - 1], t->sizes[t->rank - 2]))
        return BP_OK;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"%s\" must be square matrices, and they are %s x %s",
                   name_of(s, i), op_dim_text(c, t->sizes[t->rank - 2]), op_dim_text(c, t->sizes[t->rank - 1]));
}

bp_status check_batches(bp_ctx *c, const shape_call *s, uint32_t i, uint32_t j, uint32_t *n, bp_dim *out)
{
    const bp_tensor *a = arg_tensor(s->args, i), *b = arg_tensor(s->args, j);
    TRY(check_same_dtype(c, s, i, j));
    *n = (a->rank > b->rank ? a->rank : b->rank) - 2u;
    return layout_broadcast(c, a->rank - 2u, a->sizes, b->rank - 2u, b->sizes, out);
}

bp_status out_columns(bp_ctx *c, shape_call *s, bp_dtype dtype, uint32_t rank, const bp_dim *sizes)
{
    shape_out *o = shape_add_out(c, s, dtype, rank, sizes);
    if (o) {
        o->meta.strides[rank - 2] = dim_const(1);
        o->meta.strides[rank - 1] = dim_clamp(c, sizes[rank - 2], dim_const(1), false);
    }
    return c->diag.code;
}

bp_status out_cut(bp_ctx *c, shape_call *s, bp_dtype dtype, const bp_tensor *t, uint32_t cut)
{
    return out_new(c, s, dtype, t->rank - cut, t->sizes);
}

bp_status out_empty(bp_ctx *c, shape_call *s, bp_dtype dtype)
{
    return out_new(c, s, dtype, 1, (bp_dim[]){dim_const(0)});
}

bp_dim dim_least(bp_ctx *c, bp_dim a, bp_dim b)
{
    return dim_clamp(c, a, b, true);
}

bp_status check_triangle(bp_ctx *c, const shape_call *s, uint32_t i, bool *upper)
{
    const char *text = arg_str(s->args, i);
    *upper = text && (strcmp(text, "U") == 0 || strcmp(text, "u") == 0);
    if (*upper || (text && (strcmp(text, "L") == 0 || strcmp(text, "l") == 0)))
        return BP_OK;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"%s\" must be \"L\" or \"U\", and is \"%s\"",
                   name_of(s, i), text ? text : "None");
}

bp_status check_system(bp_ctx *c, const shape_call *s, uint32_t a, uint32_t b, bool left)
{
    const bp_tensor *x = arg_tensor(s->args, a), *y = arg_tensor(s->args, b);
    TRY(check_square(c, s, a));
    TRY(check_matrix(c, s, b));
    if (dim_require(DIM_EQ, x->sizes[x->rank - 1], y->sizes[y->rank - (left ? 2 : 1)]))
        return BP_OK;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                   "arguments \"%s\" and \"%s\" do not fit %s: they are %s x %s and %s x %s", name_of(s, a),
                   name_of(s, b), left ? "A X = B" : "X A = B", op_dim_text(c, x->sizes[x->rank - 2]),
                   op_dim_text(c, x->sizes[x->rank - 1]), op_dim_text(c, y->sizes[y->rank - 2]),
                   op_dim_text(c, y->sizes[y->rank - 1]));
}

/* -- Cholesky ------------------------------------------------------------------------------------------------------ */

bp_status shape_cholesky(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    TRY(check_square(c, s, 0));
    return out_columns(c, s, t->dtype, t->rank, t->sizes);
}

bp_status shape_cholesky_ex(bp_ctx *c, shape_call *s)
{
    TRY(shape_cholesky(c, s));
    return out_cut(c, s, BP_I32, arg_tensor(s->args, 0), 2);
}

/* B (argument b) with the batch that it has together with A. */
static bp_status like_rhs(bp_ctx *c, shape_call *s, uint32_t a, uint32_t b, bool columns)
{
    const bp_tensor *t = arg_tensor(s->args, b);
    bp_dim sizes[TENSOR_MAX_RANK + 2];
    uint32_t n;
    TRY(check_batches(c, s, a, b, &n, sizes));
    memcpy(sizes + n, t->sizes + t->rank - 2, 2 * sizeof *sizes);
    return columns ? out_columns(c, s, t->dtype, n + 2, sizes) : out_new(c, s, t->dtype, n + 2, sizes);
}

bp_status shape_cholesky_solve(bp_ctx *c, shape_call *s)
{
    TRY(check_system(c, s, 1, 0, true));
    return like_rhs(c, s, 1, 0, true);
}

/* -- LU ------------------------------------------------------------------------------------------------------------ */

/* PyTorch has LU without pivoting for GPUs only. */
static bp_status check_pivot(bp_ctx *c, const shape_call *s, uint32_t i)
{
    return arg_bool(s->args, i) ? BP_OK
                                : op_fail(c, s->op, BP_INVALID_ARGUMENT, "there is no LU without pivoting on the CPU");
}

static bp_status lu_factors(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    bp_dim sizes[TENSOR_MAX_RANK];
    TRY(check_matrix(c, s, 0));
    TRY(check_pivot(c, s, 1));
    TRY(out_columns(c, s, t->dtype, t->rank, t->sizes));
    memcpy(sizes, t->sizes, t->rank * sizeof *sizes);
    sizes[t->rank - 2] = dim_least(c, sizes[t->rank - 2], sizes[t->rank - 1]);
    return out_new(c, s, BP_I32, t->rank - 1u, sizes);
}

bp_status shape_lu_factor(bp_ctx *c, shape_call *s) { return lu_factors(c, s); }

bp_status shape_lu_factor_ex(bp_ctx *c, shape_call *s)
{
    TRY(lu_factors(c, s));
    return out_cut(c, s, BP_I32, arg_tensor(s->args, 0), 2);
}

/* The matrices P, L and U of factors of these sizes; P or the others may be left out. */
static bp_status lu_matrices(bp_ctx *c, shape_call *s, const bp_tensor *t, bool p, bool l_and_u)
{
    bp_dim sizes[TENSOR_MAX_RANK], m = t->sizes[t->rank - 2], n = t->sizes[t->rank - 1], k = dim_least(c, m, n);
    memcpy(sizes, t->sizes, t->rank * sizeof *sizes);
    sizes[t->rank - 1] = m;
    TRY(p ? out_new(c, s, t->dtype, t->rank, sizes) : out_empty(c, s, t->dtype));
    sizes[t->rank - 1] = k;
    TRY(l_and_u ? out_new(c, s, t->dtype, t->rank, sizes) : out_empty(c, s, t->dtype));
    sizes[t->rank - 2] = k;
    sizes[t->rank - 1] = n;
    return l_and_u ? out_new(c, s, t->dtype, t->rank, sizes) : out_empty(c, s, t->dtype);
}

bp_status shape_lu(bp_ctx *c, shape_call *s)
{
    TRY(check_matrix(c, s, 0));
    TRY(check_pivot(c, s, 1));
    return lu_matrices(c, s, arg_tensor(s->args, 0), true, true);
}

/* Argument `pivots` are int32 numbers, `k` for each matrix of argument `lu`. */
static bp_status check_pivots(bp_ctx *c, const shape_call *s, uint32_t lu, uint32_t pivots, bp_dim k, bool any_int)
{
    const bp_tensor *t = arg_tensor(s->args, lu), *p = arg_tensor(s->args, pivots);
    char have[256];
    if (p->dtype != BP_I32 && !(any_int && dtype_is_int(p->dtype)))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"%s\" must be int32, and is %s", name_of(s, pivots),
                       dtype_get(p->dtype)->torch);
    if (p->rank + 1u == t->rank && dim_require(DIM_EQ, p->sizes[p->rank - 1], k) &&
        sizes_must_match(p->rank - 1u, p->sizes, t->sizes))
        return BP_OK;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                   "argument \"%s\" has sizes %s, expected %s for each matrix of \"%s\"", name_of(s, pivots),
                   sizes_text(have, sizeof have, p->rank, p->sizes), op_dim_text(c, k), name_of(s, lu));
}

bp_status shape_lu_unpack(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    bool p = arg_bool(s->args, 3);
    TRY(check_matrix(c, s, 0));
    if (p)
        TRY(check_pivots(c, s, 0, 1, dim_least(c, t->sizes[t->rank - 2], t->sizes[t->rank - 1]), false));
    return lu_matrices(c, s, t, p, arg_bool(s->args, 2));
}

bp_status shape_linalg_lu_solve(bp_ctx *c, shape_call *s)
{
    const bp_tensor *lu = arg_tensor(s->args, 0);
    bool left = arg_bool(s->args, 3);
    TRY(check_system(c, s, 0, 2, left));
    TRY(check_pivots(c, s, 0, 1, lu->sizes[lu->rank - 1], false));
    return like_rhs(c, s, 0, 2, left);
}

bp_status shape_lu_solve(bp_ctx *c, shape_call *s)
{
    const bp_tensor *lu = arg_tensor(s->args, 1);
    TRY(check_system(c, s, 1, 0, true));
    TRY(check_pivots(c, s, 1, 2, lu->sizes[lu->rank - 1], false));
    return like_rhs(c, s, 1, 0, true);
}

/* -- determinants, inverse ----------------------------------------------------------------------------------------- */

/* LU and pivots, as results behind others. */
static bp_status with_lu(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    TRY(out_columns(c, s, t->dtype, t->rank, t->sizes));
    return out_cut(c, s, BP_I32, t, 1);
}

bp_status shape_det(bp_ctx *c, shape_call *s)
{
    TRY(check_square(c, s, 0));
    return out_cut(c, s, (bp_dtype)arg_tensor(s->args, 0)->dtype, arg_tensor(s->args, 0), 2);
}

bp_status shape_det_lu(bp_ctx *c, shape_call *s)
{
    TRY(shape_det(c, s));
    return with_lu(c, s);
}

bp_status shape_slogdet(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    TRY(shape_det(c, s));
    return out_cut(c, s, dtype_real_of((bp_dtype)t->dtype), t, 2);
}

bp_status shape_slogdet_lu(bp_ctx *c, shape_call *s)
{
    TRY(shape_slogdet(c, s));
    return with_lu(c, s);
}

bp_status shape_inv(bp_ctx *c, shape_call *s) { return shape_cholesky(c, s); }
bp_status shape_inv_ex(bp_ctx *c, shape_call *s) { return shape_cholesky_ex(c, s); }

/* -- symmetric, indefinite ----------------------------------------------------------------------------------------- */

bp_status shape_ldl_factor(bp_ctx *c, shape_call *s)
{
    TRY(shape_cholesky(c, s));
    return out_cut(c, s, BP_I32, arg_tensor(s->args, 0), 1);
}

bp_status shape_ldl_factor_ex(bp_ctx *c, shape_call *s)
{
    TRY(shape_ldl_factor(c, s));
    return out_cut(c, s, BP_I32, arg_tensor(s->args, 0), 2);
}

bp_status shape_ldl_solve(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    TRY(check_system(c, s, 0, 2, true));
    TRY(check_pivots(c, s, 0, 1, t->sizes[t->rank - 1], true));
    return like_rhs(c, s, 0, 2, true);
}
