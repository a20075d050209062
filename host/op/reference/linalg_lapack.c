/* LAPACK's routines on la_matrix (linalg.h). Nothing here is called with an argument that LAPACK would call illegal,
 * since its answer to that may be to stop the process. */
#include "host/op/reference/linalg.h"
#include <math.h>

static const cx ONE = 1, ZERO = 0;

/* The leading dimension of a matrix. */
static int ld(la_matrix x)
{
    return x.m > 1 ? x.m : 1;
}

enum { ROOM_WORK, ROOM_REALS, ROOM_INTS };

/* LAPACK's workspace of n elements; NULL: out of memory. */
static void *room(la *a, uint32_t which, int64_t n, size_t size)
{
    n = n > 1 ? n : 1;
    if (!a->room[which].at || a->room[which].bytes < n * (int64_t)size) {
        a->room[which].at = work_alloc(&a->w, n, size);
        a->room[which].bytes = n * (int64_t)size;
    }
    return la_ok(a) ? a->room[which].at : NULL;
}

/* What a workspace query answered. */
static int asked(const void *answer)
{
    double n = *(const double *)answer;
    return n > 1 ? (int)n : 1;
}

/* Runs `call` twice: with lwork -1 for the size of its workspace, then with that. `area` and `lwork` are for the
 * call. */
#define WITH_ROOM(a, call)                        \
    do {                                          \
        double answer_[2] = {0, 0};               \
        void *area = answer_;                     \
        int lwork = -1;                           \
        call;                                     \
        lwork = asked(answer_);                   \
        area = room(a, ROOM_WORK, lwork, a->size); \
        if (area)                                 \
            call;                                 \
    } while (0)

/* -- Cholesky ------------------------------------------------------------------------------------------------------ */

int la_cholesky(la *a, la_matrix x, bool upper)
{
    int info = 0, n = ld(x);
    a->f->potrf[a->cplx](upper ? "U" : "L", &x.n, x.at, &n, &info, 1);
    return info;
}

void la_cholesky_solve(la *a, la_matrix factor, la_matrix b, bool upper)
{
    int info = 0, lf = ld(factor), lb = ld(b);
    a->f->potrs[a->cplx](upper ? "U" : "L", &factor.n, &b.n, factor.at, &lf, b.at, &lb, &info, 1);
}

int la_cholesky_inverse(la *a, la_matrix factor, bool upper)
{
    int info = 0, n = ld(factor);
    a->f->potri[a->cplx](upper ? "U" : "L", &factor.n, factor.at, &n, &info, 1);
    la_mirror(a, factor, upper, true);
    return info;
}

/* -- LU and triangles ---------------------------------------------------------------------------------------------- */

int la_lu(la *a, la_matrix x, int *pivots)
{
    int info = 0, lx = ld(x);
    a->f->getrf[a->cplx](&x.m, &x.n, x.at, &lx, pivots, &info);
    return info;
}

void la_lu_solve(la *a, la_matrix lu, const int *pivots, la_matrix b, char trans)
{
    int info = 0, l = ld(lu), lb = ld(b);
    a->f->getrs[a->cplx](&trans, &lu.n, &b.n, lu.at, &l, pivots, b.at, &lb, &info, 1);
}

void la_triangular(la *a, la_matrix t, la_matrix b, bool left, bool upper, char trans, bool unit)
{
    int lt = ld(t), lb = ld(b);
    a->f->trsm[a->cplx](left ? "L" : "R", upper ? "U" : "L", &trans, unit ? "U" : "N", &b.m, &b.n, &ONE, t.at, &lt,
                        b.at, &lb, 1, 1, 1, 1);
}

void la_multiply(la *a, la_matrix x, la_matrix y, la_matrix out)
{
    int lx = ld(x), ly = ld(y), lo = ld(out);
    a->f->gemm[a->cplx]("N", "N", &out.m, &out.n, &x.n, &ONE, x.at, &lx, y.at, &ly, &ZERO, out.at, &lo, 1, 1);
}

/* -- symmetric, indefinite ----------------------------------------------------------------------------------------- */

int la_ldl(la *a, la_matrix x, int *pivots, bool hermitian)
{
    int info = 0, n = ld(x);
    if (hermitian)
        WITH_ROOM(a, a->f->hetrf[a->cplx]("L", &x.n, x.at, &n, pivots, area, &lwork, &info, 1));
    else
        WITH_ROOM(a, a->f->sytrf[a->cplx]("L", &x.n, x.at, &n, pivots, area, &lwork, &info, 1));
    return info;
}

void la_ldl_solve(la *a, la_matrix f, const int *pivots, la_matrix b, bool hermitian)
{
    int info = 0, lf = ld(f), lb = ld(b);
    if (hermitian)
        a->f->hetrs[a->cplx]("L", &f.n, &b.n, f.at, &lf, pivots, b.at, &lb, &info, 1);
    else
        a->f->sytrs[a->cplx]("L", &f.n, &b.n, f.at, &lf, pivots, b.at, &lb, &info, 1);
}

/* -- QR ------------------------------------------------------------------------------------------------------------ */

void la_qr(la *a, la_matrix x, void *tau)
{
    int info = 0, lx = ld(x);
    WITH_ROOM(a, a->f->geqrf[a->cplx](&x.m, &x.n, x.at, &lx, tau, area, &lwork, &info));
}

void la_q(la *a, la_matrix x, int k, const void *tau)
{
    int info = 0, lx = ld(x);
    WITH_ROOM(a, a->f->orgqr[a->cplx](&x.m, &x.n, &k, x.at, &lx, tau, area, &lwork, &info));
}

void la_q_times(la *a, la_matrix reflectors, int k, const void *tau, la_matrix b, bool left, char trans)
{
    int info = 0, lr = ld(reflectors), lb = ld(b);
    WITH_ROOM(a, a->f->ormqr[a->cplx](left ? "L" : "R", &trans, &b.m, &b.n, &k, reflectors.at, &lr, tau, b.at, &lb,
                                      area, &lwork, &info, 1, 1));
}

/* -- least squares ------------------------------------------------------------------------------------------------- */

static int by_pivoted_qr(la *a, la_matrix x, la_matrix b, double rcond, int *rank)
{
    int info = 0, lx = ld(x), lb = ld(b), *order = room(a, ROOM_INTS, x.n, sizeof *order);
    double *reals = room(a, ROOM_REALS, 2 * (int64_t)x.n, sizeof *reals);
    if (!la_ok(a))
        return 0;
    for (int i = 0; i < x.n; i++)
        order[i] = 0;
    if (a->cplx)
        WITH_ROOM(a, a->f->zgelsy(&x.m, &x.n, &b.n, x.at, &lx, b.at, &lb, order, &rcond, rank, area, &lwork, reals,
                                  &info));
    else
        WITH_ROOM(a, a->f->dgelsy(&x.m, &x.n, &b.n, x.at, &lx, b.at, &lb, order, &rcond, rank, area, &lwork, &info));
    return info;
}

static int by_singular_values(la *a, la_matrix x, la_matrix b, double rcond, double *s, int *rank)
{
    int info = 0, lx = ld(x), lb = ld(b), least = x.m < x.n ? x.m : x.n;
    double *reals = room(a, ROOM_REALS, 5 * (int64_t)least, sizeof *reals);
    if (!la_ok(a))
        return 0;
    if (a->cplx)
        WITH_ROOM(a, a->f->zgelss(&x.m, &x.n, &b.n, x.at, &lx, b.at, &lb, s, &rcond, rank, area, &lwork, reals, &info));
    else
        WITH_ROOM(a, a->f->dgelss(&x.m, &x.n, &b.n, x.at, &lx, b.at, &lb, s, &rcond, rank, area, &lwork, &info));
    return info;
}

int la_least_squares(la *a, const char *driver, la_matrix x, la_matrix b, double rcond, double *s, int *rank)
{
    int info = 0, lx = ld(x), lb = ld(b);
    if (driver[4] == 'y')
        return by_pivoted_qr(a, x, b, rcond, rank);
    if (driver[4])
        return by_singular_values(a, x, b, rcond, s, rank);
    WITH_ROOM(a, a->f->gels[a->cplx]("N", &x.m, &x.n, &b.n, x.at, &lx, b.at, &lb, area, &lwork, &info, 1));
    *rank = x.m < x.n ? x.m : x.n;
    return info;
}

/* -- singular values and eigenvalues ------------------------------------------------------------------------------- */

/* How many doubles zgesdd wants, as its documentation says. */
static int64_t svd_reals(int64_t m, int64_t n)
{
    int64_t least = m < n ? m : n, most = m < n ? n : m;
    int64_t x = 5 * least * least + 7 * least, y = 2 * most * least + 2 * least * least + least;
    return x > y ? x : y;
}

int la_svd(la *a, char job, la_matrix x, double *s, la_matrix u, la_matrix vh)
{
    int info = 0, lx = ld(x), lu = ld(u), lv = ld(vh);
    int *ints = room(a, ROOM_INTS, 8 * (int64_t)(x.m < x.n ? x.m : x.n), sizeof *ints);
    double *reals = a->cplx ? room(a, ROOM_REALS, svd_reals(x.m, x.n), sizeof *reals) : NULL;
    if (!la_ok(a))
        return 0;
    if (a->cplx)
        WITH_ROOM(a, a->f->zgesdd(&job, &x.m, &x.n, x.at, &lx, s, u.at, &lu, vh.at, &lv, area, &lwork, reals, ints,
                                  &info, 1));
    else
        WITH_ROOM(a, a->f->dgesdd(&job, &x.m, &x.n, x.at, &lx, s, u.at, &lu, vh.at, &lv, area, &lwork, ints, &info, 1));
    return info;
}

int la_eigh(la *a, la_matrix x, bool vectors, bool upper, double *values)
{
    const char *job = vectors ? "V" : "N", *part = upper ? "U" : "L";
    int info = 0, n = ld(x);
    double *reals = a->cplx ? room(a, ROOM_REALS, 3 * (int64_t)x.n, sizeof *reals) : NULL;
    if (!la_ok(a))
        return 0;
    if (a->cplx)
        WITH_ROOM(a, a->f->zheev(job, part, &x.n, x.at, &n, values, area, &lwork, reals, &info, 1, 1));
    else
        WITH_ROOM(a, a->f->dsyev(job, part, &x.n, x.at, &n, values, area, &lwork, &info, 1, 1));
    return info;
}

/* dgeev gives a pair of complex vectors as their common real and imaginary parts, in two columns. */
static void join_pairs(int n, const double *re, const double *im, const double *v, cx *values, cx *vectors)
{
    for (int j = 0; j < n; j++)
        values[j] = CMPLX(re[j], im[j]);
    for (int j = 0; vectors && j < n; j++) {
        bool pair = im[j] != 0 && j + 1 < n;
        for (int i = 0; i < n; i++) {
            double x = v[(size_t)j * (size_t)n + (size_t)i], y = pair ? v[(size_t)(j + 1) * (size_t)n + (size_t)i] : 0;
            vectors[(size_t)j * (size_t)n + (size_t)i] = CMPLX(x, y);
            if (pair)
                vectors[(size_t)(j + 1) * (size_t)n + (size_t)i] = CMPLX(x, -y);
        }
        j += pair;
    }
}

int la_eig(la *a, la_matrix x, cx *values, cx *vectors)
{
    int info = 0, n = x.n, lx = ld(x), one = 1;
    const char *job = vectors ? "V" : "N";
    double *reals = room(a, ROOM_REALS, 2 * (int64_t)n + (int64_t)n * n, sizeof *reals);
    double *v = vectors && reals ? reals + 2 * (int64_t)n : NULL;
    if (!la_ok(a))
        return 0;
    if (a->cplx) {
        WITH_ROOM(a, a->f->zgeev("N", job, &n, x.at, &lx, values, NULL, &one, vectors, &lx, area, &lwork, reals, &info,
                                 1, 1));
        return info;
    }
    WITH_ROOM(a, a->f->dgeev("N", job, &n, x.at, &lx, reals, reals + n, NULL, &one, v, &lx, area, &lwork, &info, 1, 1));
    if (la_ok(a) && info == 0)
        join_pairs(n, reals, reals + n, v, values, vectors);
    return info;
}
