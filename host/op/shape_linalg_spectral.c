/* Shape rules of orthogonal factors, singular values, eigenvalues, and of what is built on them. */
#include "host/op/shape_linalg.h"
#include "host/op/rows.h"
#include <string.h>

/* -- QR ------------------------------------------------------------------------------------------------------------ */

bp_status linalg_qr_mode(bp_ctx *c, const op_row *op, const char *mode, bool *q, bool *complete)
{
    *complete = strcmp(mode, "complete") == 0;
    *q = strcmp(mode, "r") != 0;
    if (*complete || !*q || strcmp(mode, "reduced") == 0)
        return BP_OK;
    return op_fail(c, op, BP_INVALID_ARGUMENT,
                   "argument \"mode\" must be \"reduced\", \"complete\" or \"r\", and is \"%s\"", mode);
}

/* Q and R of the matrices of argument 0; q: Q is wanted, of m columns if `complete`. */
static bp_status qr_matrices(bp_ctx *c, shape_call *s, bool q, bool complete)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    bp_dim sizes[TENSOR_MAX_RANK], m = t->sizes[t->rank - 2], n = t->sizes[t->rank - 1];
    bp_dim k = complete ? m : dim_least(c, m, n);
    memcpy(sizes, t->sizes, t->rank * sizeof *sizes);
    sizes[t->rank - 1] = k;
    TRY(q ? out_columns(c, s, t->dtype, t->rank, sizes) : out_empty(c, s, t->dtype));
    sizes[t->rank - 2] = k;
    sizes[t->rank - 1] = n;
    return out_columns(c, s, t->dtype, t->rank, sizes);
}

bp_status shape_linalg_qr(bp_ctx *c, shape_call *s)
{
    bool q, complete;
    TRY(check_matrix(c, s, 0));
    TRY(linalg_qr_mode(c, s->op, arg_str(s->args, 1), &q, &complete));
    return qr_matrices(c, s, q, complete);
}

bp_status shape_geqrf(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    bp_dim sizes[TENSOR_MAX_RANK];
    TRY(check_matrix(c, s, 0));
    TRY(out_columns(c, s, t->dtype, t->rank, t->sizes));
    memcpy(sizes, t->sizes, t->rank * sizeof *sizes);
    sizes[t->rank - 2] = dim_least(c, t->sizes[t->rank - 2], t->sizes[t->rank - 1]);
    return out_new(c, s, t->dtype, t->rank - 1u, sizes);
}

/* Argument 1 holds the factors of at most as many reflectors as argument 0 has columns, for each of its matrices. */
static bp_status check_reflectors(bp_ctx *c, const shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0), *tau = arg_tensor(s->args, 1);
    char x[256], y[256];
    TRY(check_matrix(c, s, 0));
    TRY(check_same_dtype(c, s, 0, 1));
    if (tau->rank + 1u == t->rank && dim_require(DIM_LE, tau->sizes[tau->rank - 1], t->sizes[t->rank - 1]) &&
        dim_require(DIM_LE, tau->sizes[tau->rank - 1], t->sizes[t->rank - 2]) &&
        sizes_must_match(t->rank - 2u, tau->sizes, t->sizes))
        return BP_OK;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                   "argument \"%s\" of sizes %s does not belong to reflectors of sizes %s", s->op->schema->args[1].name,
                   sizes_text(x, sizeof x, tau->rank, tau->sizes), sizes_text(y, sizeof y, t->rank, t->sizes));
}

bp_status shape_householder_product(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    TRY(check_reflectors(c, s));
    if (!dim_require(DIM_LE, t->sizes[t->rank - 1], t->sizes[t->rank - 2]))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "%s rows are fewer than %s columns",
                       op_dim_text(c, t->sizes[t->rank - 2]), op_dim_text(c, t->sizes[t->rank - 1]));
    return out_columns(c, s, t->dtype, t->rank, t->sizes);
}

bp_status shape_ormqr(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0), *other = arg_tensor(s->args, 2);
    bool left = arg_bool(s->args, 3), fits = other->rank == t->rank;
    char x[256], y[256];
    TRY(check_reflectors(c, s));
    TRY(check_same_dtype(c, s, 0, 2));
    fits = fits && sizes_must_match(t->rank - 2u, other->sizes, t->sizes);
    if (!fits || !dim_require(DIM_EQ, other->sizes[t->rank - (left ? 2 : 1)], t->sizes[t->rank - 2]))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "reflectors of sizes %s do not fit a matrix of sizes %s",
                       sizes_text(x, sizeof x, t->rank, t->sizes), sizes_text(y, sizeof y, other->rank, other->sizes));
    return out_columns(c, s, other->dtype, other->rank, other->sizes);
}

/* -- singular values ----------------------------------------------------------------------------------------------- */

/* "gesvd" and its kind choose a GPU's routine; the CPU has none to choose. */
static bp_status check_driver(bp_ctx *c, const shape_call *s, uint32_t i)
{
    return arg_is_none(s->args, i) ? BP_OK
                                   : op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"driver\" is for GPUs only");
}

/* Which results of an SVD there are, and whether V stands instead of its adjoint. */
typedef struct { bool vectors, full, v; } svd_form;

static bp_status svd_results(bp_ctx *c, shape_call *s, svd_form f)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    bp_dim sizes[TENSOR_MAX_RANK], m = t->sizes[t->rank - 2], n = t->sizes[t->rank - 1], k = dim_least(c, m, n);
    memcpy(sizes, t->sizes, t->rank * sizeof *sizes);
    sizes[t->rank - 1] = f.full ? m : k;
    TRY(f.vectors ? out_columns(c, s, t->dtype, t->rank, sizes) : out_empty(c, s, t->dtype));
    sizes[t->rank - 2] = k;
    TRY(out_new(c, s, dtype_real_of((bp_dtype)t->dtype), t->rank - 1u, sizes));
    sizes[t->rank - (f.v ? 1 : 2)] = f.full ? n : k;
    sizes[t->rank - (f.v ? 2 : 1)] = n;
    if (!f.vectors)
        return out_empty(c, s, t->dtype);
    return f.v ? out_new(c, s, t->dtype, t->rank, sizes) : out_columns(c, s, t->dtype, t->rank, sizes);
}

bp_status shape_private_svd(bp_ctx *c, shape_call *s)
{
    TRY(check_matrix(c, s, 0));
    TRY(check_driver(c, s, 3));
    return svd_results(c, s, (svd_form){.vectors = arg_bool(s->args, 2), .full = arg_bool(s->args, 1)});
}

bp_status shape_linalg_svd(bp_ctx *c, shape_call *s)
{
    TRY(check_matrix(c, s, 0));
    TRY(check_driver(c, s, 2));
    return svd_results(c, s, (svd_form){.vectors = true, .full = arg_bool(s->args, 1)});
}

bp_status shape_svdvals(bp_ctx *c, shape_call *s)
{
    TRY(check_matrix(c, s, 0));
    TRY(check_driver(c, s, 1));
    TRY(svd_results(c, s, (svd_form){.vectors = false}));
    s->out[0] = s->out[1];
    s->nout = 1;
    return BP_OK;
}

/* The older form: `some` for reduced ones, and zeros where no vectors are asked for. */
bp_status shape_svd(bp_ctx *c, shape_call *s)
{
    bool vectors = arg_bool(s->args, 2);
    TRY(check_matrix(c, s, 0));
    return svd_results(c, s, (svd_form){.vectors = true, .full = !arg_bool(s->args, 1) || !vectors, .v = true});
}

/* -- eigenvalues --------------------------------------------------------------------------------------------------- */

static bp_status eigen(bp_ctx *c, shape_call *s, bp_dtype values, bp_dtype vectors)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    TRY(check_square(c, s, 0));
    TRY(out_cut(c, s, values, t, 1));
    return vectors ? out_columns(c, s, vectors, t->rank, t->sizes) : BP_OK;
}

bp_status shape_private_eigh(bp_ctx *c, shape_call *s)
{
    bp_dtype d = (bp_dtype)arg_tensor(s->args, 0)->dtype;
    bool upper, vectors = arg_bool(s->args, 2);
    TRY(check_triangle(c, s, 1, &upper));
    TRY(eigen(c, s, dtype_real_of(d), vectors ? d : BP_DTYPE_UNSET));
    return vectors ? BP_OK : out_empty(c, s, d);
}

bp_status shape_linalg_eigh(bp_ctx *c, shape_call *s)
{
    bp_dtype d = (bp_dtype)arg_tensor(s->args, 0)->dtype;
    bool upper;
    TRY(check_triangle(c, s, 1, &upper));
    return eigen(c, s, dtype_real_of(d), d);
}

bp_status shape_eigvalsh(bp_ctx *c, shape_call *s)
{
    bool upper;
    TRY(check_triangle(c, s, 1, &upper));
    return eigen(c, s, dtype_real_of((bp_dtype)arg_tensor(s->args, 0)->dtype), BP_DTYPE_UNSET);
}

bp_status shape_linalg_eig(bp_ctx *c, shape_call *s)
{
    bp_dtype d = dtype_complex_of((bp_dtype)arg_tensor(s->args, 0)->dtype);
    return eigen(c, s, d, d);
}

bp_status shape_eigvals(bp_ctx *c, shape_call *s)
{
    return eigen(c, s, dtype_complex_of((bp_dtype)arg_tensor(s->args, 0)->dtype), BP_DTYPE_UNSET);
}

/* -- functions of a matrix ----------------------------------------------------------------------------------------- */

/* Of halves too, unlike the factorizations. */
bp_status shape_matrix_exp(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    bp_dtype d = (bp_dtype)t->dtype;
    if (t->rank < 2 || !dim_require(DIM_EQ, t->sizes[t->rank - 1], t->sizes[t->rank - 2]))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"self\" must be square matrices");
    if (!dtype_is_float(d) && !dtype_is_complex(d))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"self\" must be of a float type or complex, and is %s",
                       dtype_get(d)->torch);
    return out_new(c, s, d, t->rank, t->sizes);
}

/* -- pseudo-inverses and ranks ------------------------------------------------------------------------------------- */

linalg_tolerances linalg_tolerances_read(const op_row *op, const bp_value *args)
{
    static const char *const names[] = {"atol", "rtol", "tol", "rcond", "hermitian"};
    bp_value v[5];
    for (uint32_t i = 0; i < 5; i++) {
        int32_t at = schema_find(op->schema, names[i]);
        v[i] = at < 0 ? value_none() : args[at];
    }
    linalg_tolerances t = {.atol = v[0], .rtol = v[1], .hermitian = v[4].kind == BP_VALUE_BOOL && v[4].v.i};
    if (v[2].kind != BP_VALUE_NONE)
        t.atol = v[2], t.rtol = value_float(0);
    if (v[3].kind != BP_VALUE_NONE)
        t.atol = value_float(0), t.rtol = v[3];
    return t;
}

/* The batch of self, and of the tolerances that are tensors. */
static bp_status tolerant_batch(bp_ctx *c, shape_call *s, uint32_t *n, bp_dim *sizes)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    linalg_tolerances given = linalg_tolerances_read(s->op, s->args);
    bp_tensor *const more[] = {tolerance_tensor(&given.atol), tolerance_tensor(&given.rtol)};
    if (given.hermitian)
        TRY(check_square(c, s, 0));
    TRY(check_matrix(c, s, 0));
    *n = t->rank - 2u;
    for (uint32_t d = 0; d < *n; d++)
        sizes[d] = t->sizes[d];
    for (uint32_t i = 0; i < 2; i++) {
        bp_dim grown[TENSOR_MAX_RANK];
        if (!more[i])
            continue;
        if (dtype_is_complex((bp_dtype)more[i]->dtype))
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "a tolerance is complex, and must be real");
        TRY(layout_broadcast(c, *n, sizes, more[i]->rank, more[i]->sizes, grown));
        *n = more[i]->rank > *n ? more[i]->rank : *n;
        for (uint32_t d = 0; d < *n; d++)
            sizes[d] = grown[d];
    }
    return BP_OK;
}

bp_status shape_pinv(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    bp_dim sizes[TENSOR_MAX_RANK + 2];
    uint32_t n;
    TRY(tolerant_batch(c, s, &n, sizes));
    sizes[n] = t->sizes[t->rank - 1];
    sizes[n + 1] = t->sizes[t->rank - 2];
    return out_new(c, s, (bp_dtype)t->dtype, n + 2, sizes);
}

bp_status shape_matrix_rank(bp_ctx *c, shape_call *s)
{
    bp_dim sizes[TENSOR_MAX_RANK + 2];
    uint32_t n;
    TRY(tolerant_batch(c, s, &n, sizes));
    return out_new(c, s, BP_I64, n, sizes);
}
