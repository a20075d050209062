/* LU factors, and what is read off them: solutions, inverses, determinants. */
#include "host/op/reference/linalg.h"
#include "host/op/rows.h"
#include "host/op/shape_linalg.h"
#include <math.h>
#include <string.h>

/* -- LU ------------------------------------------------------------------------------------------------------------ */

/* linalg_lu_factor, linalg_lu_factor_ex, _lu_with_info: factors, pivots and, for some, info. */
bp_status kernel_lu_factor(bp_ctx *c, op_call *k)
{
    la a;
    bp_tensor *in = arg_tensor(k->args, 0);
    la_begin(&a, c, k, in);
    la_matrix x = la_new(&a, tensor_dim(in, in->rank - 2u), tensor_dim(in, in->rank - 1u));
    int least = x.m < x.n ? x.m : x.n, *pivots = la_ints(&a, least);
    la_batch b = la_over(&a, in, 2);
    uint32_t to = la_add(&b, k->out[0], 2);
    for (; la_more(&b) && la_ok(&a); la_next(&b)) {
        la_load(&a, x, &b, 0);
        int failed = la_lu(&a, x, pivots);
        la_store(&a, x, &b, to);
        la_store_ints(&b, k->out[1], pivots, least);
        la_store_ints(&b, la_result(k, 2), &failed, 1);
        if (la_checks(k))
            la_check(c, k->op, "linalg.lu_factor", la_element(&b), failed);
    }
    return la_end(&a);
}

/* The matrix that undoes the row exchanges: P L U is what was factorized. */
static void permutation(const la *a, la_matrix p, const int *pivots, int n, int *order)
{
    for (int i = 0; i < p.m; i++)
        order[i] = i;
    for (int i = 0; i < n; i++) {
        int other = pivots[i] - 1, swap = order[i];
        order[i] = order[other];
        order[other] = swap;
    }
    la_fill(a, p, 0, 0);
    for (int i = 0; i < p.m; i++)
        la_set(a, p, order[i], i, 1);
}

/* Stores P, L and U (outputs 0 to 2) of the factors in x; operands of b from `first` on, P and the others if asked. */
typedef struct { la_matrix p, l, u; int *order; bool want_p, want_lu; } unpacking;

static unpacking unpack_begin(la *a, la_matrix x, bool p, bool l_and_u)
{
    int k = x.m < x.n ? x.m : x.n;
    return (unpacking){.p = la_new(a, x.m, x.m), .l = la_new(a, x.m, k), .u = la_new(a, k, x.n),
                       .order = la_ints(a, x.m), .want_p = p, .want_lu = l_and_u};
}

static void unpack(const la *a, const unpacking *u, la_matrix x, const int *pivots, const la_batch *b, uint32_t first)
{
    if (u->want_p) {
        permutation(a, u->p, pivots, x.m < x.n ? x.m : x.n, u->order);
        la_store(a, u->p, b, first);
    }
    if (!u->want_lu)
        return;
    la_copy(a, u->l, x);
    la_triangle(a, u->l, false, true);
    la_store(a, u->l, b, first + 1);
    la_copy(a, u->u, x);
    la_triangle(a, u->u, true, false);
    la_store(a, u->u, b, first + 2);
}

bp_status kernel_lu(bp_ctx *c, op_call *k)
{
    la a;
    bp_tensor *in = arg_tensor(k->args, 0);
    la_begin(&a, c, k, in);
    la_matrix x = la_new(&a, tensor_dim(in, in->rank - 2u), tensor_dim(in, in->rank - 1u));
    int *pivots = la_ints(&a, x.m < x.n ? x.m : x.n);
    unpacking u = unpack_begin(&a, x, true, true);
    la_batch b = la_over(&a, in, 2);
    for (uint32_t i = 0; i < 3; i++)
        la_add(&b, k->out[i], 2);
    for (; la_more(&b) && la_ok(&a); la_next(&b)) {
        la_load(&a, x, &b, 0);
        la_lu(&a, x, pivots);
        unpack(&a, &u, x, pivots, &b, 1);
    }
    return la_end(&a);
}

bp_status kernel_lu_unpack(bp_ctx *c, op_call *k)
{
    la a;
    bp_tensor *in = arg_tensor(k->args, 0);
    bool p = arg_bool(k->args, 3), l_and_u = arg_bool(k->args, 2);
    la_begin(&a, c, k, in);
    la_matrix x = la_new(&a, tensor_dim(in, in->rank - 2u), tensor_dim(in, in->rank - 1u));
    int least = x.m < x.n ? x.m : x.n, *pivots = la_ints(&a, least);
    unpacking u = unpack_begin(&a, x, p, l_and_u);
    la_batch b = la_over(&a, in, 2);
    for (uint32_t i = 0; i < 3; i++)
        la_add(&b, (i == 0 ? p : l_and_u) ? k->out[i] : in, 2);
    uint32_t given = p ? la_add(&b, arg_tensor(k->args, 1), 1) : 0;
    for (; la_more(&b) && la_ok(&a); la_next(&b)) {
        la_load(&a, x, &b, 0);
        if (!p || la_load_pivots(&a, pivots, least, &b, given, x.m, false))
            unpack(&a, &u, x, pivots, &b, 1);
    }
    return la_end(&a);
}

/* -- solving by factors -------------------------------------------------------------------------------------------- */

/* Systems of matrices that are given by their LU: A X = B (left) or X A = B. */
typedef struct {
    bp_tensor *lu, *pivots, *b, *out;
    bool left, adjoint;       /* adjoint: it is A's adjoint that is meant */
} lu_system;

/* The form from the right is the left one of transposed matrices. */
static void solve_one(la *a, const lu_system *s, la_matrix lu, const int *pivots, la_matrix x, la_matrix turned)
{
    if (s->left) {
        la_lu_solve(a, lu, pivots, x, s->adjoint ? LA_C : LA_N);
        return;
    }
    la_transpose(a, turned, x, s->adjoint);
    la_lu_solve(a, lu, pivots, turned, s->adjoint ? LA_N : LA_T);
    la_transpose(a, x, turned, s->adjoint);
}

static void solve_all(la *a, const lu_system *s)
{
    int64_t n = tensor_dim(s->lu, s->lu->rank - 1u);
    la_matrix lu = la_new(a, n, n);
    la_matrix x = la_new(a, tensor_dim(s->out, s->out->rank - 2u), tensor_dim(s->out, s->out->rank - 1u));
    la_matrix turned = la_new(a, x.n, x.m);
    int *pivots = la_ints(a, n);
    la_batch b = la_over(a, s->out, 2);
    uint32_t from = la_add(&b, s->lu, 2), exchanges = la_add(&b, s->pivots, 1), right = la_add(&b, s->b, 2);
    for (; la_more(&b) && la_ok(a); la_next(&b)) {
        la_load(a, lu, &b, from);
        la_load(a, x, &b, right);
        if (!la_load_pivots(a, pivots, lu.n, &b, exchanges, lu.n, false))
            return;
        solve_one(a, s, lu, pivots, x, turned);
        la_store(a, x, &b, 0);
    }
}

bp_status kernel_linalg_lu_solve(bp_ctx *c, op_call *k)
{
    la a;
    lu_system s = {.lu = arg_tensor(k->args, 0), .pivots = arg_tensor(k->args, 1), .b = arg_tensor(k->args, 2),
                   .out = k->out[0], .left = arg_bool(k->args, 3), .adjoint = arg_bool(k->args, 4)};
    la_begin(&a, c, k, s.lu);
    solve_all(&a, &s);
    return la_end(&a);
}

bp_status kernel_lu_solve(bp_ctx *c, op_call *k)
{
    la a;
    lu_system s = {.lu = arg_tensor(k->args, 1), .pivots = arg_tensor(k->args, 2), .b = arg_tensor(k->args, 0),
                   .out = k->out[0], .left = true};
    la_begin(&a, c, k, s.lu);
    solve_all(&a, &s);
    return la_end(&a);
}

/* -- solving and inverting ----------------------------------------------------------------------------------------- */

/* What the factors of a batch go to; info may be NULL. */
typedef struct { bp_tensor *lu, *pivots, *info; const char *name; } factors;

/* Factors of every matrix of t. */
static void factorize(la *a, const op_call *k, const bp_tensor *t, const factors *f)
{
    int64_t n = tensor_dim(t, t->rank - 1u);
    la_matrix x = la_new(a, n, n);
    int *pivots = la_ints(a, n);
    la_batch b = la_over(a, t, 2);
    uint32_t to = la_ok(a) ? la_add(&b, f->lu, 2) : 0;
    for (; la_more(&b) && la_ok(a); la_next(&b)) {
        la_load(a, x, &b, 0);
        int failed = la_lu(a, x, pivots);
        la_store(a, x, &b, to);
        la_store_ints(&b, f->pivots, pivots, x.n);
        la_store_ints(&b, f->info, &failed, 1);
        if (la_checks(k))
            la_check(a->c, k->op, f->name, la_element(&b), failed);
    }
}

/* Factors in room of their own. */
static factors factors_new(la *a, const bp_tensor *t, bp_tensor *info, const char *name)
{
    int64_t sizes[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < t->rank; d++)
        sizes[d] = tensor_dim(t, d);
    bp_tensor *lu = work_new(&a->w, a->cplx ? BP_C128 : BP_F64, t->rank, sizes);
    return (factors){lu, work_new(&a->w, BP_I32, t->rank - 1u, sizes), info, name};
}

/* linalg_solve, linalg_solve_ex, _linalg_solve_ex: info is the last result, LU and pivots those before. */
bp_status kernel_linalg_solve(bp_ctx *c, op_call *k)
{
    la a;
    bp_tensor *t = arg_tensor(k->args, 0), *b = arg_tensor(k->args, 1);
    la_begin(&a, c, k, t);
    bool vector = linalg_is_vector(t, b);
    factors own = factors_new(&a, t, k->nout > 1 ? k->out[k->nout - 1] : NULL, "linalg.solve");
    factorize(&a, k, t, &own);
    if (la_ok(&a) && k->nout == 4) {
        tensor_copy(c, k->out[1], own.lu);
        tensor_copy(c, k->out[2], own.pivots);
    }
    lu_system s = {.lu = own.lu, .pivots = own.pivots, .b = vector ? la_as_column(&a, b) : b,
                   .out = vector ? la_as_column(&a, k->out[0]) : k->out[0], .left = arg_bool(k->args, 2)};
    if (la_ok(&a))
        solve_all(&a, &s);
    return la_end(&a);
}

/* The solution of A X = 1. */
bp_status kernel_inv(bp_ctx *c, op_call *k)
{
    la a;
    bp_tensor *t = arg_tensor(k->args, 0);
    int64_t n = tensor_dim(t, t->rank - 1u);
    la_begin(&a, c, k, t);
    la_matrix lu = la_new(&a, n, n), x = la_new(&a, n, n);
    int *pivots = la_ints(&a, n);
    la_batch b = la_over(&a, t, 2);
    uint32_t to = la_add(&b, k->out[0], 2);
    for (; la_more(&b) && la_ok(&a); la_next(&b)) {
        la_load(&a, lu, &b, 0);
        int failed = la_lu(&a, lu, pivots);
        la_fill(&a, x, 0, 1);
        la_lu_solve(&a, lu, pivots, x, LA_N);
        la_store(&a, x, &b, to);
        la_store_ints(&b, la_result(k, 1), &failed, 1);
        if (la_checks(k))
            la_check(c, k->op, "linalg.inv", la_element(&b), failed);
    }
    return la_end(&a);
}

/* -- determinants -------------------------------------------------------------------------------------------------- */

/* PyTorch factorizes the transposed matrix where that saves it a copy, and the factors show it. */
static bool takes_transposed(const bp_tensor *t)
{
    return tensor_is_contiguous(t) && !dtype_is_complex((bp_dtype)t->dtype);
}

/* +1 or -1: how many rows were exchanged. */
static double parity(const int *pivots, int n)
{
    double sign = 1;
    for (int i = 0; i < n; i++)
        sign = pivots[i] == i + 1 ? sign : -sign;
    return sign;
}

/* The determinant: as a number, or as a number of size 1 and the logarithm of its size. */
static cx product(const la *a, la_matrix lu, const int *pivots)
{
    cx det = parity(pivots, lu.n);
    for (int i = 0; i < lu.n; i++)
        det = cx_mul(det, la_get(a, lu, i, i));
    return det;
}

static cx sign_and_log(const la *a, la_matrix lu, const int *pivots, double *log_size)
{
    cx sign = parity(pivots, lu.n);
    *log_size = 0;
    for (int i = 0; i < lu.n; i++) {
        cx v = la_get(a, lu, i, i);
        double size = cabs(v);
        *log_size += log(size);
        sign = size == 0 ? 0 : cx_mul(sign, v / size);
    }
    return sign;
}

/* One number for the current matrix. */
static void store_number(const la *a, const la_batch *b, bp_tensor *t, cx v)
{
    la_store_reals(b, a->cplx ? NULL : t, (double[]){creal(v)}, 1);
    if (a->cplx)
        dtype_convert((bp_dtype)t->dtype, (char *)tensor_ptr(t) + (size_t)b->number * dtype_size(t->dtype), 1, BP_C128,
                      &v, 1, 1);
}

enum det_form { DET, SLOGDET, LOGDET };

static void store_det(const la *a, const la_batch *b, const op_call *k, enum det_form form, la_matrix lu,
                      const int *pivots)
{
    double size;
    cx sign = form == DET ? product(a, lu, pivots) : sign_and_log(a, lu, pivots, &size);
    if (form == LOGDET && a->cplx)
        sign = clog(sign) + size;
    else if (form == LOGDET)
        sign = creal(sign) == -1 ? (cx)NAN : (cx)size;
    store_number(a, b, k->out[0], sign);
    if (form == SLOGDET)
        la_store_reals(b, k->out[1], &size, 1);
}

/* Results: what the form says, and for the inner rows LU and pivots behind it. */
static bp_status run_det(bp_ctx *c, op_call *k, enum det_form form)
{
    la a;
    bp_tensor *in = arg_tensor(k->args, 0);
    uint32_t own = form == SLOGDET ? 2 : 1;
    la_begin(&a, c, k, in);
    int64_t n = tensor_dim(in, in->rank - 1u);
    la_matrix x = la_new(&a, n, n), turned = la_new(&a, n, n);
    int *pivots = la_ints(&a, n);
    bool transposed = takes_transposed(in);
    la_batch b = la_over(&a, in, 2);
    uint32_t to = k->nout > own ? la_add(&b, k->out[own], 2) : 0;
    for (; la_more(&b) && la_ok(&a); la_next(&b)) {
        la_load(&a, turned, &b, 0);
        if (transposed)
            la_transpose(&a, x, turned, false);
        else
            la_copy(&a, x, turned);
        la_lu(&a, x, pivots);
        store_det(&a, &b, k, form, x, pivots);
        if (to)
            la_store(&a, x, &b, to);
        la_store_ints(&b, la_result(k, own + 1), pivots, x.n);
    }
    return la_end(&a);
}

bp_status kernel_det(bp_ctx *c, op_call *k) { return run_det(c, k, DET); }
bp_status kernel_slogdet(bp_ctx *c, op_call *k) { return run_det(c, k, SLOGDET); }
bp_status kernel_logdet(bp_ctx *c, op_call *k) { return run_det(c, k, LOGDET); }
