/* Fourier transforms (fft.h).
 *
 * Every root of unity comes from one table of the whole length, so no error grows from root to root, and quarter turns
 * are exact. The inverse is the forward transform of conjugates, conjugated. */
#include "host/op/reference/fft.h"
#include <math.h>
#include <stdlib.h>

enum { RADIX_MAX = 13, FACTORS_MAX = 64 };

struct fft_plan {
    int64_t n;
    cx *roots;                /* exp(-2 pi i k / n) */
    cx *line;                 /* the input, conjugated */
    uint32_t nfactors;
    int32_t factors[FACTORS_MAX];
    /* of a length with a factor above RADIX_MAX: Bluestein's convolution */
    fft_plan *inner;          /* of its length; NULL: not needed */
    cx *chirp;                /* exp(-pi i k^2 / n) */
    cx *kernel, *a, *b;       /* the transformed conjugate chirp, and two lines of the inner length */
};

static const double PI = 3.14159265358979323846;

/* exp(-2 pi i k / n), 0 <= k < n. */
static cx root(int64_t k, int64_t n)
{
    static const double C[] = {1, 0, -1, 0}, S[] = {0, -1, 0, 1};
    if (4 * k % n == 0)
        return CMPLX(C[4 * k / n], S[4 * k / n]);
    double angle = 2 * PI * (double)k / (double)n;
    return CMPLX(cos(angle), -sin(angle));
}

/* The prime factors, fours first; what is left is 1 unless a prime is too large. */
static int64_t factorize(fft_plan *p)
{
    static const uint8_t TRIED[] = {4, 2, 3, 5, 7, 11, RADIX_MAX};
    int64_t rest = p->n;
    for (size_t i = 0; i < sizeof TRIED; i++)
        for (; rest % TRIED[i] == 0; rest /= TRIED[i])
            p->factors[p->nfactors++] = TRIED[i];
    return rest;
}

/* -- by factors ---------------------------------------------------------------------------------------------------- */

/* r transforms of length m, one behind the other in out, become one of length r m. */
static void combine(const fft_plan *p, int32_t r, int64_t m, cx *out)
{
    cx t[RADIX_MAX];
    int64_t turn = p->n / (r * m), spoke = p->n / r;
    for (int64_t k = 0; k < m; k++) {
        for (int32_t q = 0; q < r; q++)
            t[q] = cx_mul(out[q * m + k], p->roots[q * k * turn]);
        for (int32_t j = 0; j < r; j++) {
            cx sum = t[0];
            for (int32_t q = 1; q < r; q++)
                sum += cx_mul(t[q], p->roots[(int64_t)q * j % r * spoke]);
            out[j * m + k] = sum;
        }
    }
}

static void transform(const fft_plan *p, uint32_t level, int64_t n, const cx *in, int64_t step, cx *out)
{
    if (n == 1) {
        out[0] = in[0];
        return;
    }
    int32_t r = p->factors[level];
    for (int32_t q = 0; q < r; q++)
        transform(p, level + 1, n / r, in + q * step, step * r, out + q * (n / r));
    combine(p, r, n / r, out);
}

/* -- by convolution ------------------------------------------------------------------------------------------------ */

/* j k = (j^2 + k^2 - (k - j)^2) / 2 makes the transform a convolution with a chirp. */
static void convolve(fft_plan *p, const cx *in, int64_t step, cx *out)
{
    int64_t m = p->inner->n;
    for (int64_t k = 0; k < m; k++)
        p->a[k] = k < p->n ? cx_mul(in[k * step], p->chirp[k]) : 0;
    fft_line(p->inner, true, p->a, 1, p->b);
    for (int64_t k = 0; k < m; k++)
        p->b[k] = cx_mul(p->b[k], p->kernel[k]);
    fft_line(p->inner, false, p->b, 1, p->a);
    for (int64_t k = 0; k < p->n; k++)
        out[k] = cx_mul(p->a[k], p->chirp[k]) / (double)m;
}

static bool plan_convolution(fft_plan *p)
{
    int64_t m = 1, n = p->n;
    while (m < 2 * n - 1)
        m *= 2;
    p->inner = fft_plan_new(m);
    p->chirp = malloc((size_t)n * sizeof(cx));
    p->kernel = malloc((size_t)m * sizeof(cx));
    p->a = calloc((size_t)m, sizeof(cx));
    p->b = calloc((size_t)m, sizeof(cx));
    if (!p->inner || !p->chirp || !p->kernel || !p->a || !p->b)
        return false;
    for (int64_t k = 0, square = 0; k < n; k++) {
        p->chirp[k] = root(square, 2 * n);
        square = (square + 2 * k + 1) % (2 * n);
    }
    p->a[0] = conj(p->chirp[0]);
    for (int64_t k = 1; k < n; k++)
        p->a[k] = p->a[m - k] = conj(p->chirp[k]);
    fft_line(p->inner, true, p->a, 1, p->kernel);
    return true;
}

/* -- plans --------------------------------------------------------------------------------------------------------- */

fft_plan *fft_plan_new(int64_t n)
{
    fft_plan *p = n > 0 && n < INT64_MAX / 64 ? calloc(1, sizeof *p) : NULL;
    if (!p)
        return NULL;
    p->n = n;
    p->line = malloc((size_t)n * sizeof(cx));
    bool ok = p->line != NULL;
    if (factorize(p) != 1) {
        ok = ok && plan_convolution(p);
    } else {
        p->roots = malloc((size_t)n * sizeof(cx));
        ok = ok && p->roots;
        for (int64_t k = 0; ok && k < n; k++)
            p->roots[k] = root(k, n);
    }
    if (ok)
        return p;
    fft_plan_free(p);
    return NULL;
}

void fft_plan_free(fft_plan *p)
{
    if (!p)
        return;
    fft_plan_free(p->inner);
    free(p->roots);
    free(p->line);
    free(p->chirp);
    free(p->kernel);
    free(p->a);
    free(p->b);
    free(p);
}

void fft_line(fft_plan *p, bool forward, const cx *in, int64_t step, cx *out)
{
    if (!forward) {
        for (int64_t k = 0; k < p->n; k++)
            p->line[k] = conj(in[k * step]);
        in = p->line;
        step = 1;
    }
    if (p->inner)
        convolve(p, in, step, out);
    else
        transform(p, 0, p->n, in, step, out);
    for (int64_t k = 0; !forward && k < p->n; k++)
        out[k] = conj(out[k]);
}
