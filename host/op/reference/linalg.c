/* Matrices, batches and failures of linear algebra (linalg.h). */
#include "host/op/reference/linalg.h"
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void la_begin(la *a, bp_ctx *c, const op_call *k, const bp_tensor *like)
{
    bool cplx = dtype_is_complex(like->dtype);
    *a = (la){.w = {.c = c}, .c = c, .op = k->op, .cplx = cplx, .size = cplx ? sizeof(cx) : sizeof(double)};
    a->f = lapack_get(c, k->op);
}

bp_status la_end(la *a)
{
    return work_end(&a->w);
}

/* -- matrices ------------------------------------------------------------------------------------------------------ */

static bp_dtype wide(const la *a)
{
    return a->cplx ? BP_C128 : BP_F64;
}

la_matrix la_new(la *a, int64_t m, int64_t n)
{
    if (la_ok(a) && (m > INT_MAX || n > INT_MAX || (n && m > INT64_MAX / n)))
        op_fail(a->c, a->op, BP_RESOURCE_EXHAUSTED, "a matrix of %lld x %lld is larger than LAPACK takes", (long long)m,
                (long long)n);
    void *at = work_alloc(&a->w, m * n + 1, a->size);
    return (la_matrix){(int)m, (int)n, at};
}

double *la_reals(la *a, int64_t n)
{
    return work_alloc(&a->w, n + 1, sizeof(double));
}

int *la_ints(la *a, int64_t n)
{
    return work_alloc(&a->w, n + 1, sizeof(int));
}

static void *element(const la *a, la_matrix x, int i, int j)
{
    return (char *)x.at + ((size_t)j * (size_t)x.m + (size_t)i) * a->size;
}

cx la_get(const la *a, la_matrix x, int i, int j)
{
    const double *p = element(a, x, i, j);
    return a->cplx ? CMPLX(p[0], p[1]) : CMPLX(p[0], 0);
}

void la_set(const la *a, la_matrix x, int i, int j, cx v)
{
    double *p = element(a, x, i, j);
    p[0] = creal(v);
    if (a->cplx)
        p[1] = cimag(v);
}

void la_copy(const la *a, la_matrix to, la_matrix from)
{
    int m = to.m < from.m ? to.m : from.m, n = to.n < from.n ? to.n : from.n;
    for (int j = 0; j < n; j++)
        memcpy(element(a, to, 0, j), element(a, from, 0, j), (size_t)m * a->size);
}

void la_fill(const la *a, la_matrix x, cx all, cx diagonal)
{
    for (int j = 0; j < x.n; j++)
        for (int i = 0; i < x.m; i++)
            la_set(a, x, i, j, i == j ? diagonal : all);
}

void la_conjugate(const la *a, la_matrix x)
{
    for (int j = 0; a->cplx && j < x.n; j++)
        for (int i = 0; i < x.m; i++)
            la_set(a, x, i, j, conj(la_get(a, x, i, j)));
}

void la_transpose(const la *a, la_matrix to, la_matrix from, bool conjugate)
{
    for (int j = 0; j < from.n; j++)
        for (int i = 0; i < from.m; i++) {
            cx v = la_get(a, from, i, j);
            la_set(a, to, j, i, conjugate ? conj(v) : v);
        }
}

void la_triangle(const la *a, la_matrix x, bool upper, bool unit)
{
    for (int j = 0; j < x.n; j++)
        for (int i = 0; i < x.m; i++) {
            if (i == j && unit)
                la_set(a, x, i, j, 1);
            else if (upper ? i > j : i < j)
                la_set(a, x, i, j, 0);
        }
}

void la_mirror(const la *a, la_matrix x, bool from_upper, bool hermitian)
{
    for (int j = 0; j < x.n; j++)
        for (int i = j + 1; i < x.n; i++) {
            cx v = from_upper ? la_get(a, x, j, i) : la_get(a, x, i, j);
            v = hermitian ? conj(v) : v;
            la_set(a, x, from_upper ? i : j, from_upper ? j : i, v);
        }
}

bool la_finite(const la *a, la_matrix x)
{
    const double *p = x.at;
    size_t n = (size_t)x.m * (size_t)x.n * (a->cplx ? 2 : 1);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(p[i]))
            return false;
    return true;
}

double la_norm1(const la *a, la_matrix x)
{
    double most = 0;
    for (int j = 0; j < x.n; j++) {
        double sum = 0;
        for (int i = 0; i < x.m; i++)
            sum += cabs(la_get(a, x, i, j));
        most = sum > most || isnan(sum) ? sum : most;
    }
    return most;
}

bp_tensor *la_as_column(la *a, bp_tensor *t)
{
    bp_dim sizes[TENSOR_MAX_RANK + 1], strides[TENSOR_MAX_RANK + 1];
    if (!la_ok(a))
        return NULL;
    memcpy(sizes, t->sizes, t->rank * sizeof *sizes);
    memcpy(strides, t->strides, t->rank * sizeof *strides);
    sizes[t->rank] = strides[t->rank] = dim_const(1);
    tensor_meta m = {(bp_dtype)t->dtype, tensor_device(t), t->rank + 1u, sizes, strides, t->offset};
    return work_view(&a->w, t, &m);
}

/* -- batches ------------------------------------------------------------------------------------------------------- */

la_batch la_over(const la *a, const bp_tensor *t, uint32_t inner)
{
    la_batch b = {.number = 0};
    walk_start(&b.v, t->rank - inner, t->sizes);
    if (!la_ok(a))
        b.v.left = 0;
    la_add(&b, t, inner);
    return b;
}

uint32_t la_add(la_batch *b, const bp_tensor *t, uint32_t inner)
{
    bp_dim strides[TENSOR_MAX_RANK];
    uint32_t rank = t->rank - inner, skip = b->v.rank - rank, number = b->v.n;
    for (uint32_t d = 0; d < b->v.rank; d++)
        strides[d] = d < skip || tensor_dim(t, d - skip) == 1 ? dim_const(0) : t->strides[d - skip];
    b->t[number] = t;
    walk_add(&b->v, strides);
    return number;
}

void la_next(la_batch *b)
{
    b->number++;
    walk_next(&b->v);
}

/* The current matrix of an operand: where it is, and the steps of its rows and columns. */
typedef struct { char *at; bp_dtype dtype; int64_t row, col; } place;

static place place_of(const la_batch *b, uint32_t operand, bool vector)
{
    const bp_tensor *t = b->t[operand];
    int64_t row = tensor_step(t, t->rank - (vector ? 1 : 2)), col = vector ? 0 : tensor_step(t, t->rank - 1u);
    char *at = tensor_ptr(t);
    return (place){at ? at + (size_t)b->v.at[operand] * dtype_size(t->dtype) : NULL, (bp_dtype)t->dtype, row, col};
}

static void load(const la *a, la_matrix x, place p)
{
    for (int j = 0; p.at && j < x.n; j++)
        dtype_convert(wide(a), element(a, x, 0, j), 1, p.dtype, p.at + j * p.col * (int64_t)dtype_size(p.dtype), p.row,
                      x.m);
}

static void store(const la *a, la_matrix x, place p)
{
    for (int j = 0; p.at && j < x.n; j++)
        dtype_convert(p.dtype, p.at + j * p.col * (int64_t)dtype_size(p.dtype), p.row, wide(a), element(a, x, 0, j), 1,
                      x.m);
}

void *la_at(const la_batch *b, uint32_t operand)
{
    const bp_tensor *t = b->t[operand];
    return (char *)tensor_ptr(t) + (size_t)b->v.at[operand] * dtype_size((bp_dtype)t->dtype);
}

void la_load(const la *a, la_matrix x, const la_batch *b, uint32_t operand)
{
    load(a, x, place_of(b, operand, false));
}

void la_load_vector(const la *a, la_matrix x, const la_batch *b, uint32_t operand)
{
    load(a, x, place_of(b, operand, true));
}

void la_store(const la *a, la_matrix x, const la_batch *b, uint32_t operand)
{
    store(a, x, place_of(b, operand, false));
}

void la_store_vector(const la *a, la_matrix x, const la_batch *b, uint32_t operand)
{
    store(a, x, place_of(b, operand, true));
}

void la_store_reals(const la_batch *b, bp_tensor *t, const double *x, int n)
{
    if (t && n)
        dtype_convert((bp_dtype)t->dtype, (char *)tensor_ptr(t) + (size_t)(b->number * n) * dtype_size(t->dtype), 1,
                      BP_F64, x, 1, n);
}

void la_store_ints(const la_batch *b, bp_tensor *t, const int *x, int n)
{
    if (t && n)
        memcpy((int32_t *)tensor_ptr(t) + b->number * n, x, (size_t)n * sizeof *x);
}

bool la_load_pivots(la *a, int *x, int n, const la_batch *b, uint32_t operand, int limit, bool either_sign)
{
    place p = place_of(b, operand, true);
    for (int i = 0; i < n; i++) {
        int64_t v = dtype_load(p.dtype, p.at + i * p.row * (int64_t)dtype_size(p.dtype)).i;
        int64_t at = either_sign && v < 0 ? -v : v;
        if (at < 1 || at > limit) {
            op_fail(a->c, a->op, BP_OUT_OF_RANGE, "pivot %lld is none of 1 to %d", (long long)v, limit);
            return false;
        }
        x[i] = (int)v;
    }
    return true;
}

/* -- failures ------------------------------------------------------------------------------------------------------ */

bool la_checks(const op_call *k)
{
    int32_t at = schema_find(k->op->schema, "check_errors");
    return at < 0 || arg_bool(k->args, (uint32_t)at);
}

/* What a positive info means, by a word of the operator's name; the first row that fits counts. The number stands
 * between the two texts. */
static const struct { const char *word, *before, *after; } meanings[] = {
    {"inv", "the diagonal element ",
     " is zero, the inversion could not be completed because the input matrix is singular"},
    {"solve", "the solver failed because the input matrix is singular: diagonal element ", " is zero"},
    {"cholesky", "the factorization could not be completed because the input is not positive-definite (the leading "
                 "minor of order ", " is not positive-definite)"},
    {"svd", "the algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
            "singular values (error code: ", ")"},
    {"eig", "the algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
            "eigenvalues (error code: ", ")"},
    {"lstsq", "the least squares solution could not be computed because the input matrix does not have full rank "
              "(error code: ", ")"},
    {"lu_factor", "the diagonal element ", " of U is zero, and using it in lu_solve would divide by zero; lu and "
                                           "lu_factor_ex give the factors all the same"},
    {"", "the algorithm failed (error code: ", ")"},
};

bp_status la_check(bp_ctx *c, const op_row *op, const char *api, int64_t element_number, int info)
{
    char where[64] = "";
    size_t i = 0;
    if (info == 0)
        return BP_OK;
    if (element_number >= 0)
        snprintf(where, sizeof where, " (batch element %lld)", (long long)element_number);
    if (info < 0)
        return op_fail(c, op, BP_INTERNAL, "\"%s\"%s: argument %lld of LAPACK's routine has an illegal value", api,
                       where, -(long long)info);
    while (!strstr(api, meanings[i].word))
        i++;
    return op_fail(c, op, BP_OUT_OF_RANGE, "\"%s\"%s: %s%d%s", api, where, meanings[i].before, info, meanings[i].after);
}

bool la_require_finite(la *a, la_matrix x, const la_batch *b)
{
    if (!la_ok(a) || la_finite(a, x))
        return la_ok(a);
    char where[64] = "";
    if (la_element(b) >= 0)
        snprintf(where, sizeof where, " of batch element %lld", (long long)b->number);
    op_fail(a->c, a->op, BP_OUT_OF_RANGE,
            "the algorithm failed to converge because the input matrix%s contained non-finite values", where);
    return false;
}
