/* Factorizations by what defines them: the factors multiply back to the matrix, orthogonal ones are, eigenvalues fit.
 *
 * Plain loops over complex numbers, so that nothing here is computed by the operators that are checked. Bounds are some
 * roundings of the type of the results, times the size of the matrices and of their elements. */
#include "host/tools/golden_defined.h"
#include <complex.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef double complex cx;

/* One matrix of a batch, in rows. */
typedef struct { int64_t m, n; const cx *at; } matrix;

/* All elements of a tensor in row-major order; NULL: no memory. Freed by the caller. */
static cx *load(const bp_tensor *t, int64_t *n)
{
    *n = tensor_nelem(t);
    cx *out = malloc(((size_t)*n + 1) * sizeof *out);
    int64_t index[TENSOR_MAX_RANK] = {0};
    for (int64_t i = 0; out && i < *n; i++) {
        int64_t at = 0;
        for (uint32_t d = 0; d < t->rank; d++)
            at += index[d] * tensor_step(t, d);
        num v = dtype_load(t->dtype, (const char *)tensor_ptr(t) + at * (int64_t)dtype_size(t->dtype));
        out[i] = v.f + (dtype_is_complex(t->dtype) ? v.im : 0) * I;
        for (uint32_t d = t->rank; d-- > 0 && ++index[d] == tensor_dim(t, d);)
            index[d] = 0;
    }
    return out;
}

/* The tensors of a check, loaded: those of one batch entry are taken by pick. */
enum { FACTORS_MAX = 4 };
typedef struct {
    const bp_tensor *t[FACTORS_MAX];
    cx *at[FACTORS_MAX];
    int64_t batch;
    double bound;
    buf *why;
} factors;

/* t[0] is the matrix, the others its factors. */
static bool open_factors(factors *f, buf *why, const bp_tensor *a, uint32_t n, bp_tensor *const *rest)
{
    *f = (factors){.t = {a}, .batch = 1, .why = why};
    for (uint32_t i = 1; i <= n; i++)
        f->t[i] = rest[i - 1];
    for (uint32_t i = 0; i <= n; i++) {
        int64_t count;
        if (!f->t[i] || !(f->at[i] = load(f->t[i], &count)))
            return false;
    }
    for (uint32_t d = 0; d + 2 < a->rank; d++)
        f->batch *= tensor_dim(a, d);
    double size = (double)(tensor_dim(a, a->rank - 1) + tensor_dim(a, a->rank - 2)) + 1;
    f->bound = 50 * size * (dtype_real_of(a->dtype) == BP_F64 ? DBL_EPSILON : (double)FLT_EPSILON);
    return true;
}

static bool close_factors(factors *f, bool good)
{
    for (uint32_t i = 0; i < FACTORS_MAX; i++)
        free(f->at[i]);
    return good;
}

static matrix pick(const factors *f, uint32_t i, int64_t b)
{
    const bp_tensor *t = f->t[i];
    int64_t n = tensor_dim(t, t->rank - 1), m = tensor_dim(t, t->rank - 2);
    return (matrix){m, n, f->at[i] + b * m * n};
}

/* The b-th vector of factor i. */
static const cx *pick_vector(const factors *f, uint32_t i, int64_t b)
{
    return f->at[i] + b * tensor_dim(f->t[i], f->t[i]->rank - 1);
}

static double size_of(matrix a)
{
    double most = 1;
    for (int64_t i = 0; i < a.m * a.n; i++)
        most = cabs(a.at[i]) > most ? cabs(a.at[i]) : most;
    return most;
}

static bool near(const factors *f, cx got, cx want, double size, const char *what)
{
    if (cabs(got - want) <= f->bound * size)
        return true;
    buf_printf(f->why, "%s: %g%+gi, and not %g%+gi", what, creal(got), cimag(got), creal(want), cimag(want));
    return false;
}

/* Columns of q, or its rows, are orthogonal and of length 1. */
static bool is_unitary(const factors *f, matrix q, bool rows, const char *what)
{
    int64_t n = rows ? q.m : q.n, length = rows ? q.n : q.m;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            cx sum = 0;
            for (int64_t l = 0; l < length; l++)
                sum += rows ? q.at[i * q.n + l] * conj(q.at[j * q.n + l]) : conj(q.at[l * q.n + i]) * q.at[l * q.n + j];
            if (!near(f, sum, i == j, 1, what))
                return false;
        }
    return true;
}

/* Numbers that are real and never grow, or never fall. */
static bool is_ordered(const factors *f, const cx *s, int64_t n, bool falls)
{
    for (int64_t i = 1; i < n; i++)
        if (falls ? creal(s[i]) > creal(s[i - 1]) : creal(s[i]) < creal(s[i - 1])) {
            buf_printf(f->why, "values are out of order: %g, %g", creal(s[i - 1]), creal(s[i]));
            return false;
        }
    if (falls && n && creal(s[n - 1]) < 0)
        buf_printf(f->why, "a singular value is %g", creal(s[n - 1]));
    return !(falls && n && creal(s[n - 1]) < 0);
}

/* -- singular values -- */
static bool svd_multiplies_back(const factors *f, int64_t b, bool adjoint)
{
    matrix a = pick(f, 0, b), u = pick(f, 1, b), v = pick(f, 3, b);
    const cx *s = pick_vector(f, 2, b);
    int64_t k = a.m < a.n ? a.m : a.n;
    for (int64_t i = 0; i < a.m; i++)
        for (int64_t j = 0; j < a.n; j++) {
            cx sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += u.at[i * u.n + l] * s[l] * (adjoint ? v.at[l * v.n + j] : conj(v.at[j * v.n + l]));
            if (!near(f, sum, a.at[i * a.n + j], size_of(a), "U diag(S) V^H"))
                return false;
        }
    return is_unitary(f, u, false, "U^H U") && is_unitary(f, v, adjoint, "V^H V");
}

/* The squares add up to those of the matrix. */
static bool squares_fit(const factors *f, int64_t b)
{
    matrix a = pick(f, 0, b);
    const cx *s = pick_vector(f, 2, b);
    double all = 0, own = 0;
    for (int64_t i = 0; i < a.m * a.n; i++)
        all += creal(a.at[i] * conj(a.at[i]));
    for (int64_t i = 0; i < (a.m < a.n ? a.m : a.n); i++)
        own += creal(s[i] * s[i]);
    return near(f, own, all, all + 1, "the sum of the squares of S");
}

bool golden_define_svd(const golden_seen *s, bool adjoint, bool vectors)
{
    factors f;
    bool good = open_factors(&f, s->why, s->args[0].v.tensor, 3, s->out);
    for (int64_t b = 0; good && b < f.batch; b++) {
        matrix a = pick(&f, 0, b);
        good = squares_fit(&f, b) && is_ordered(&f, pick_vector(&f, 2, b), a.m < a.n ? a.m : a.n, true) &&
               (!vectors || svd_multiplies_back(&f, b, adjoint));
    }
    return close_factors(&f, good);
}

/* -- eigenvalues -- */

/* The Hermitian matrix of which one triangle is given, into `out`. */
static matrix from_triangle(matrix a, bool upper, cx *out)
{
    for (int64_t i = 0; i < a.n; i++)
        for (int64_t j = 0; j < a.n; j++) {
            bool own = upper ? j >= i : j <= i;
            cx v = own ? a.at[i * a.n + j] : conj(a.at[j * a.n + i]);
            out[i * a.n + j] = i == j ? creal(v) : v;
        }
    return (matrix){a.n, a.n, out};
}

static bool vectors_fit(const factors *f, matrix a, const cx *l, matrix v)
{
    for (int64_t i = 0; i < a.n; i++)
        for (int64_t j = 0; j < a.n; j++) {
            cx sum = 0;
            for (int64_t k = 0; k < a.n; k++)
                sum += a.at[i * a.n + k] * v.at[k * v.n + j];
            if (!near(f, sum, v.at[i * v.n + j] * l[j], size_of(a) * (double)a.n, "A V"))
                return false;
        }
    return true;
}

/* The sums of the powers of the eigenvalues are the traces of those of the matrix, which determines them. */
static bool powers_fit(const factors *f, matrix a, const cx *l)
{
    int64_t n = a.n;
    cx *power = malloc(2 * (size_t)(n * n + 1) * sizeof *power), *next = power + n * n;
    double size = 1;
    bool good = power != NULL;
    if (good)
        memcpy(power, a.at, (size_t)(n * n) * sizeof *power);
    for (int64_t p = 1; good && p <= n; p++) {
        cx trace = 0, sum = 0;
        size *= size_of(a) * (double)n;
        for (int64_t i = 0; i < n; i++) {
            trace += power[i * n + i];
            sum += cpow(l[i], (double)p);
        }
        good = near(f, sum, trace, size, "a sum of powers of eigenvalues");
        for (int64_t i = 0; i < n * n; i++) {
            next[i] = 0;
            for (int64_t k = 0; k < n; k++)
                next[i] += power[i / n * n + k] * a.at[k * n + i % n];
        }
        memcpy(power, next, (size_t)(n * n) * sizeof *power);
    }
    free(power);
    return good;
}

bool golden_define_eig(const golden_seen *s, bool hermitian, bool vectors)
{
    factors f;
    const char *half = hermitian && s->nargs > 1 ? s->args[1].v.str : NULL;
    bool good = open_factors(&f, s->why, s->args[0].v.tensor, vectors ? 2 : 1, s->out);
    int64_t n = good ? tensor_dim(f.t[0], f.t[0]->rank - 1) : 0;
    cx *room = malloc((size_t)(n * n + 1) * sizeof *room);
    good = good && room;
    for (int64_t b = 0; good && b < f.batch; b++) {
        matrix a = pick(&f, 0, b);
        const cx *l = pick_vector(&f, 1, b);
        if (hermitian)
            a = from_triangle(a, half && (half[0] == 'U' || half[0] == 'u'), room);
        good = powers_fit(&f, a, l) && (!hermitian || is_ordered(&f, l, n, false)) &&
               (!vectors || vectors_fit(&f, a, l, pick(&f, 2, b))) &&
               (!vectors || !hermitian || is_unitary(&f, pick(&f, 2, b), false, "V^H V"));
    }
    free(room);
    return close_factors(&f, good);
}

/* -- QR -- */
static bool is_upper(const factors *f, matrix r)
{
    for (int64_t i = 0; i < r.m; i++)
        for (int64_t j = 0; j < i && j < r.n; j++)
            if (r.at[i * r.n + j] != 0) {
                buf_puts(f->why, "R has elements below its diagonal");
                return false;
            }
    return true;
}

/* Q R is A; without Q, R^H R is A^H A. */
static bool qr_multiplies_back(const factors *f, matrix a, matrix q, matrix r, bool has_q)
{
    for (int64_t i = 0; i < (has_q ? a.m : a.n); i++)
        for (int64_t j = 0; j < a.n; j++) {
            cx sum = 0, want = has_q ? a.at[i * a.n + j] : 0;
            for (int64_t l = 0; l < r.m; l++)
                sum += (has_q ? q.at[i * q.n + l] : conj(r.at[l * r.n + i])) * r.at[l * r.n + j];
            for (int64_t l = 0; !has_q && l < a.m; l++)
                want += conj(a.at[l * a.n + i]) * a.at[l * a.n + j];
            double size = has_q ? size_of(a) : size_of(a) * size_of(a) * (double)(a.m + 1);
            if (!near(f, sum, want, size, has_q ? "Q R" : "R^H R"))
                return false;
        }
    return true;
}

bool golden_define_qr(const golden_seen *s, bool has_q)
{
    factors f;
    bool good = open_factors(&f, s->why, s->args[0].v.tensor, 2, s->out);
    for (int64_t b = 0; good && b < f.batch; b++) {
        matrix q = has_q ? pick(&f, 1, b) : (matrix){0}, r = pick(&f, 2, b);
        good = is_upper(&f, r) && qr_multiplies_back(&f, pick(&f, 0, b), q, r, has_q) &&
               (!has_q || is_unitary(&f, q, false, "Q^H Q"));
    }
    return close_factors(&f, good);
}

/* x becomes H x of the reflection that column i of a and tau describe; false: it is none. */
static bool reflect(const factors *f, matrix a, int64_t i, cx tau, cx *x)
{
    double length = 1;
    for (int64_t l = i + 1; l < a.m; l++)
        length += creal(a.at[l * a.n + i] * conj(a.at[l * a.n + i]));
    for (int64_t j = 0; j < a.n; j++) {
        cx sum = x[i * a.n + j];
        for (int64_t l = i + 1; l < a.m; l++)
            sum += conj(a.at[l * a.n + i]) * x[l * a.n + j];
        x[i * a.n + j] -= tau * sum;
        for (int64_t l = i + 1; l < a.m; l++)
            x[l * a.n + j] -= tau * a.at[l * a.n + i] * sum;
    }
    return near(f, creal(tau * conj(tau)) * length, 2 * creal(tau), 4, "a reflection's |tau|^2 |v|^2");
}

/* Reflections and R packed into one matrix. */
bool golden_define_geqrf(const golden_seen *s)
{
    factors f;
    bool good = open_factors(&f, s->why, s->args[0].v.tensor, 2, s->out);
    for (int64_t b = 0; good && b < f.batch; b++) {
        matrix a = pick(&f, 0, b), packed = pick(&f, 1, b);
        const cx *tau = pick_vector(&f, 2, b);
        cx *x = calloc((size_t)(a.m * a.n) + 1, sizeof *x);
        good = x != NULL;
        for (int64_t i = 0; good && i < a.m * a.n; i++)
            x[i] = i % a.n >= i / a.n ? packed.at[i] : 0;
        for (int64_t i = a.m < a.n ? a.m : a.n; good && i-- > 0;)
            good = reflect(&f, packed, i, tau[i], x);
        for (int64_t i = 0; good && i < a.m * a.n; i++)
            good = near(&f, x[i], a.at[i], size_of(a), "the reflections of R");
        free(x);
    }
    return close_factors(&f, good);
}
