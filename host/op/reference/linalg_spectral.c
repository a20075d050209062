/* Orthogonal factors, singular values, eigenvalues. */
#include "host/op/reference/linalg.h"
#include "host/op/rows.h"
#include "host/op/shape_linalg.h"
#include <string.h>

static int64_t rows_of(const bp_tensor *t)
{
    return tensor_dim(t, t->rank - 2u);
}

static int64_t columns_of(const bp_tensor *t)
{
    return tensor_dim(t, t->rank - 1u);
}

/* -- QR ------------------------------------------------------------------------------------------------------------ */

/* Householder's reflectors and R, as LAPACK keeps them. */
bp_status kernel_geqrf(bp_ctx *c, op_call *k)
{
    la a;
    bp_tensor *in = arg_tensor(k->args, 0);
    la_begin(&a, c, k, in);
    la_matrix x = la_new(&a, rows_of(in), columns_of(in)), tau = la_new(&a, x.m < x.n ? x.m : x.n, 1);
    la_batch b = la_over(&a, in, 2);
    uint32_t to = la_add(&b, k->out[0], 2), factors = la_add(&b, k->out[1], 1);
    for (; la_more(&b) && la_ok(&a); la_next(&b)) {
        la_load(&a, x, &b, 0);
        la_qr(&a, x, tau.at);
        la_store(&a, x, &b, to);
        la_store_vector(&a, tau, &b, factors);
    }
    return la_end(&a);
}

bp_status kernel_linalg_qr(bp_ctx *c, op_call *k)
{
    la a;
    bp_tensor *in = arg_tensor(k->args, 0);
    bool want_q, complete;
    TRY(linalg_qr_mode(c, k->op, arg_str(k->args, 1), &want_q, &complete));
    la_begin(&a, c, k, in);
    la_matrix x = la_new(&a, rows_of(in), columns_of(in));
    int least = x.m < x.n ? x.m : x.n, wide = complete ? x.m : least;
    la_matrix q = la_new(&a, x.m, wide), r = la_new(&a, wide, x.n), tau = la_new(&a, least, 1);
    la_batch b = la_over(&a, in, 2);
    uint32_t to_r = la_add(&b, k->out[1], 2), to_q = want_q ? la_add(&b, k->out[0], 2) : 0;
    for (; la_more(&b) && la_ok(&a); la_next(&b)) {
        la_load(&a, x, &b, 0);
        la_qr(&a, x, tau.at);
        la_fill(&a, r, 0, 0);
        la_copy(&a, r, x);
        la_triangle(&a, r, true, false);
        la_store(&a, r, &b, to_r);
        if (!want_q)
            continue;
        la_fill(&a, q, 0, 0);
        la_copy(&a, q, x);
        la_q(&a, q, least, tau.at);
        la_store(&a, q, &b, to_q);
    }
    return la_end(&a);
}

bp_status kernel_householder_product(bp_ctx *c, op_call *k)
{
    la a;
    bp_tensor *in = arg_tensor(k->args, 0), *given = arg_tensor(k->args, 1);
    la_begin(&a, c, k, in);
    la_matrix x = la_new(&a, rows_of(in), columns_of(in)), tau = la_new(&a, columns_of(given), 1);
    la_batch b = la_over(&a, in, 2);
    uint32_t factors = la_add(&b, given, 1), to = la_add(&b, k->out[0], 2);
    for (; la_more(&b) && la_ok(&a); la_next(&b)) {
        la_load(&a, x, &b, 0);
        la_load_vector(&a, tau, &b, factors);
        la_q(&a, x, tau.m, tau.at);
        la_store(&a, x, &b, to);
    }
    return la_end(&a);
}

bp_status kernel_ormqr(bp_ctx *c, op_call *k)
{
    la a;
    bp_tensor *in = arg_tensor(k->args, 0), *given = arg_tensor(k->args, 1), *other = arg_tensor(k->args, 2);
    bool left = arg_bool(k->args, 3), transpose = arg_bool(k->args, 4);
    la_begin(&a, c, k, in);
    la_matrix x = la_new(&a, rows_of(in), columns_of(in)), y = la_new(&a, rows_of(other), columns_of(other));
    la_matrix tau = la_new(&a, columns_of(given), 1);
    char trans = !transpose ? LA_N : a.cplx ? LA_C : LA_T;
    la_batch b = la_over(&a, in, 2);
    uint32_t factors = la_add(&b, given, 1), right = la_add(&b, other, 2), to = la_add(&b, k->out[0], 2);
    for (; la_more(&b) && la_ok(&a); la_next(&b)) {
        la_load(&a, x, &b, 0);
        la_load_vector(&a, tau, &b, factors);
        la_load(&a, y, &b, right);
        la_q_times(&a, x, tau.m, tau.at, y, left, trans);
        la_store(&a, y, &b, to);
    }
    return la_end(&a);
}

/* -- singular values ----------------------------------------------------------------------------------------------- */

/* Where an SVD's results go; u and v may be NULL. v is V's adjoint, or V itself. */
typedef struct { bp_tensor *u, *s, *v; bool full, adjoint; } svd;

/* An empty matrix has no singular values; its full vectors are the unit vectors. */
static void svd_one(la *a, const svd *d, la_matrix x, double *s, la_matrix u, la_matrix vh, const la_batch *b)
{
    if (x.m == 0 || x.n == 0) {
        la_fill(a, u, 0, 1);
        la_fill(a, vh, 0, 1);
        return;
    }
    char job = d->u ? (d->full ? 'A' : 'S') : 'N';
    if (la_require_finite(a, x, b))
        la_check(a->c, a->op, "linalg.svd", la_element(b), la_svd(a, job, x, s, u, vh));
}

static bp_status run_svd(bp_ctx *c, op_call *k, const svd *d)
{
    la a;
    bp_tensor *in = arg_tensor(k->args, 0);
    la_begin(&a, c, k, in);
    la_matrix x = la_new(&a, rows_of(in), columns_of(in));
    int least = x.m < x.n ? x.m : x.n, left = d->u ? (d->full ? x.m : least) : 0, right = d->full ? x.n : least;
    la_matrix u = la_new(&a, left ? x.m : 0, left), vh = la_new(&a, d->u ? right : 0, d->u ? x.n : 0);
    la_matrix v = la_new(&a, vh.n, vh.m);
    double *s = la_reals(&a, least);
    la_batch b = la_over(&a, in, 2);
    uint32_t to_u = d->u ? la_add(&b, d->u, 2) : 0, to_v = d->v ? la_add(&b, d->v, 2) : 0;
    for (; la_more(&b) && la_ok(&a); la_next(&b)) {
        la_load(&a, x, &b, 0);
        svd_one(&a, d, x, s, u, vh, &b);
        la_store_reals(&b, d->s, s, least);
        if (!d->u || !la_ok(&a))
            continue;
        la_transpose(&a, v, vh, true);
        la_store(&a, u, &b, to_u);
        la_store(&a, d->adjoint ? vh : v, &b, to_v);
    }
    return la_end(&a);
}

bp_status kernel_private_svd(bp_ctx *c, op_call *k)
{
    bool vectors = arg_bool(k->args, 2);
    svd d = {vectors ? k->out[0] : NULL, k->out[1], vectors ? k->out[2] : NULL, arg_bool(k->args, 1), true};
    return run_svd(c, k, &d);
}

bp_status kernel_linalg_svd(bp_ctx *c, op_call *k)
{
    svd d = {k->out[0], k->out[1], k->out[2], arg_bool(k->args, 1), true};
    return run_svd(c, k, &d);
}

bp_status kernel_svdvals(bp_ctx *c, op_call *k)
{
    svd d = {.s = k->out[0]};
    return run_svd(c, k, &d);
}

bp_status kernel_svd(bp_ctx *c, op_call *k)
{
    bool vectors = arg_bool(k->args, 2);
    svd d = {k->out[0], k->out[1], k->out[2], !arg_bool(k->args, 1), false};
    if (!vectors) {
        work w = {.c = c};
        for (uint32_t i = 0; i < 3; i += 2) {
            bp_tensor *zeros = work_out(&w, k->out[i], BP_DTYPE_UNSET);
            if (zeros)
                work_clear(zeros);
        }
        TRY(work_end(&w));
        d.u = d.v = NULL;
    }
    return run_svd(c, k, &d);
}

/* -- eigenvalues --------------------------------------------------------------------------------------------------- */

static bp_status run_eigh(bp_ctx *c, op_call *k, bp_tensor *vectors)
{
    la a;
    bp_tensor *in = arg_tensor(k->args, 0);
    const char *part = arg_str(k->args, 1);
    bool upper = part[0] == 'U' || part[0] == 'u';
    la_begin(&a, c, k, in);
    la_matrix x = la_new(&a, rows_of(in), columns_of(in));
    double *values = la_reals(&a, x.n);
    la_batch b = la_over(&a, in, 2);
    uint32_t to = vectors ? la_add(&b, vectors, 2) : 0;
    for (; la_more(&b) && la_ok(&a); la_next(&b)) {
        la_load(&a, x, &b, 0);
        la_mirror(&a, x, upper, true);
        if (!la_require_finite(&a, x, &b))
            break;
        la_check(c, k->op, "linalg.eigh", la_element(&b), la_eigh(&a, x, vectors != NULL, upper, values));
        la_store_reals(&b, k->out[0], values, x.n);
        if (vectors)
            la_store(&a, x, &b, to);
    }
    return la_end(&a);
}

bp_status kernel_private_eigh(bp_ctx *c, op_call *k)
{
    return run_eigh(c, k, arg_bool(k->args, 2) ? k->out[1] : NULL);
}

bp_status kernel_linalg_eigh(bp_ctx *c, op_call *k) { return run_eigh(c, k, k->out[1]); }
bp_status kernel_eigvalsh(bp_ctx *c, op_call *k) { return run_eigh(c, k, NULL); }

/* Values and vectors are complex whatever the input is, so they are stored as such. */
static bp_status run_eig(bp_ctx *c, op_call *k, bp_tensor *vectors)
{
    la a;
    bp_tensor *in = arg_tensor(k->args, 0);
    la_begin(&a, c, k, in);
    la results = a;
    results.cplx = 1;
    results.size = sizeof(cx);
    la_matrix x = la_new(&a, rows_of(in), columns_of(in));
    la_matrix values = {x.n, 1, work_alloc(&a.w, x.n + 1, sizeof(cx))}, v = {x.n, x.n, NULL};
    v.at = work_alloc(&a.w, (int64_t)x.n * x.n + 1, sizeof(cx));
    la_batch b = la_over(&a, in, 2);
    uint32_t to = la_add(&b, k->out[0], 1), to_v = vectors ? la_add(&b, vectors, 2) : 0;
    for (; la_more(&b) && la_ok(&a); la_next(&b)) {
        la_load(&a, x, &b, 0);
        if (x.n == 0 || !la_require_finite(&a, x, &b))
            continue;
        la_check(c, k->op, "linalg.eig", la_element(&b), la_eig(&a, x, values.at, vectors ? v.at : NULL));
        la_store_vector(&results, values, &b, to);
        if (vectors)
            la_store(&results, v, &b, to_v);
    }
    return la_end(&a);
}

bp_status kernel_linalg_eig(bp_ctx *c, op_call *k) { return run_eig(c, k, k->out[1]); }
bp_status kernel_eigvals(bp_ctx *c, op_call *k) { return run_eig(c, k, NULL); }

/* -- the exponential of a matrix ----------------------------------------------------------------------------------- */

/* Halvings until the norm is at most 1/2; not finite: none. */
static int halvings(double norm)
{
    int n = 0;
    for (; isfinite(norm) && norm > 0.5; norm /= 2)
        n++;
    return n;
}

/* sum x^i / i! of x / 2^n, whose terms beyond the 20th are below 1e-24, then squared n times. */
static void exponential(la *a, la_matrix x, la_matrix term, la_matrix sum, la_matrix room)
{
    enum { TERMS = 20 };
    int n = halvings(la_norm1(a, x)), size = x.n;
    for (int j = 0; j < size; j++)
        for (int i = 0; i < size; i++)
            la_set(a, x, i, j, la_get(a, x, i, j) * ldexp(1, -n));
    la_fill(a, sum, 0, 1);
    la_fill(a, term, 0, 1);
    for (int i = 1; i <= TERMS; i++) {
        la_multiply(a, term, x, room);
        for (int q = 0; q < size; q++)
            for (int p = 0; p < size; p++) {
                cx v = la_get(a, room, p, q) / i;
                la_set(a, term, p, q, v);
                la_set(a, sum, p, q, la_get(a, sum, p, q) + v);
            }
    }
    for (int i = 0; i < n; i++) {
        la_multiply(a, sum, sum, room);
        la_copy(a, sum, room);
    }
}

/* In half types PyTorch misreads its coefficients, and gives no numbers for matrices of more than one element. */
static bool has_no_answer(const la *a, const bp_tensor *t, la_matrix x)
{
    return (t->dtype == BP_F16 || t->dtype == BP_BF16) && x.n > 1 && la_norm1(a, x) != 0;
}

bp_status kernel_matrix_exp(bp_ctx *c, op_call *k)
{
    la a;
    bp_tensor *in = arg_tensor(k->args, 0);
    int64_t n = columns_of(in);
    la_begin(&a, c, k, in);
    la_matrix x = la_new(&a, n, n), term = la_new(&a, n, n), sum = la_new(&a, n, n), room = la_new(&a, n, n);
    la_batch b = la_over(&a, in, 2);
    uint32_t to = la_add(&b, k->out[0], 2);
    for (; la_more(&b) && la_ok(&a) && n; la_next(&b)) {
        la_load(&a, x, &b, 0);
        if (has_no_answer(&a, in, x))
            la_fill(&a, sum, NAN, NAN);
        else
            exponential(&a, x, term, sum, room);
        la_store(&a, sum, &b, to);
    }
    return la_end(&a);
}
