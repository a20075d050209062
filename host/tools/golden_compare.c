/* Comparing results with recorded ones, as FORMAT.md says: exactly for integers and bools, within the bounds of the
 * dtype for floats; NaN equals NaN. An element outside the bounds may be excused by an answer in a wider type. */
#include "host/tools/golden_case.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct { double rtol, atol; } tolerance;

static tolerance tolerance_of(bp_dtype d, bool tenfold)
{
    switch (dtype_real_of(d)) {
    case BP_F64: return (tolerance){1e-7, 1e-7};
    case BP_F32: return (tolerance){1.3e-6, 1e-5};
    case BP_BF16: return tenfold ? (tolerance){1.6e-1, 1e-4} : (tolerance){1.6e-2, 1e-5};
    case BP_F16: return tenfold ? (tolerance){1e-2, 1e-4} : (tolerance){1e-3, 1e-5};
    default: return (tolerance){0, 0};
    }
}

/* -- walking elements ---------------------------------------------------------------------------------------------- */

typedef struct { int64_t index[TENSOR_MAX_RANK]; } cursor;

static const char *element(const bp_tensor *t, const cursor *at)
{
    int64_t offset = 0;
    for (uint32_t d = 0; d < t->rank; d++)
        offset += at->index[d] * tensor_step(t, d);
    return (const char *)tensor_ptr(t) + offset * (int64_t)dtype_size(t->dtype);
}

static void advance(const bp_tensor *t, cursor *at)
{
    for (uint32_t d = t->rank; d-- > 0;) {
        if (++at->index[d] < tensor_dim(t, d))
            return;
        at->index[d] = 0;
    }
}

/* -- one element --------------------------------------------------------------------------------------------------- */

static double magnitude(num a)
{
    return a.kind == NUM_COMPLEX ? hypot(a.f, a.im) : fabs(a.f);
}

static double distance(num a, num b)
{
    return a.kind == NUM_COMPLEX ? hypot(a.f - b.f, a.im - b.im) : fabs(a.f - b.f);
}

static bool is_nan(num a)
{
    return isnan(a.f) || (a.kind == NUM_COMPLEX && isnan(a.im));
}

static bool same(num a, num b)
{
    if (a.kind == NUM_INT)
        return a.i == b.i;
    if (is_nan(a) || is_nan(b))
        return is_nan(a) && is_nan(b);
    return a.f == b.f && (a.kind != NUM_COMPLEX || a.im == b.im);
}

/* How far apart two numbers are; infinite when one alone is infinite or NaN. */
static double error_of(num got, num want)
{
    if (same(got, want))
        return 0;
    if (got.kind == NUM_INT)
        return fabs((double)got.i - (double)want.i);
    double e = distance(got, want);
    return isnan(e) ? INFINITY : e;
}

static void show(num a, char *out, size_t cap)
{
    if (a.kind == NUM_INT)
        snprintf(out, cap, "%lld", (long long)a.i);
    else if (a.kind == NUM_FLOAT)
        snprintf(out, cap, "%.9g", a.f);
    else
        snprintf(out, cap, "%.9g%+.9gj", a.f, a.im);
}

static void show_place(const bp_tensor *t, const cursor *at, char *out, size_t cap)
{
    size_t n = 0;
    out[0] = 0;
    for (uint32_t d = 0; d < t->rank && n < cap; d++)
        n += (size_t)snprintf(out + n, cap - n, "%s%lld", d ? ", " : "", (long long)at->index[d]);
}

/* Whether the wider answer lies at most twice as far from ours as from the recorded one, plus the bound. The wider one
 * is our kernel's too: it says nothing unless it lies near the recorded one, within 1/64 of the largest element. */
static bool excused(num got, num want, num wide, double bound, double largest)
{
    double ours = error_of(got, wide), theirs = error_of(want, wide);
    return isfinite(ours) && theirs <= largest / 64 && ours <= 2 * theirs + bound;
}

/* -- tensors ------------------------------------------------------------------------------------------------------- */

static void describe(const bp_tensor *t, bool strides, char *out, size_t cap)
{
    size_t n = (size_t)snprintf(out, cap, "%s[", dtype_get(t->dtype)->brief);
    for (uint32_t d = 0; d < t->rank && n < cap; d++)
        n += (size_t)snprintf(out + n, cap - n, "%s%lld", d ? ", " : "", (long long)tensor_dim(t, d));
    for (uint32_t d = 0; strides && d < t->rank && n < cap; d++)
        n += (size_t)snprintf(out + n, cap - n, "%s%lld", d ? ", " : "; ", (long long)tensor_step(t, d));
    if (n < cap)
        snprintf(out + n, cap - n, "]");
}

/* Strides of sizes 0 and 1 mean nothing. */
static bool same_strides(const bp_tensor *a, const bp_tensor *b)
{
    for (uint32_t d = 0; d < a->rank; d++)
        if (tensor_dim(a, d) == 0)
            return true;
    for (uint32_t d = 0; d < a->rank; d++)
        if (tensor_dim(a, d) > 1 && tensor_step(a, d) != tensor_step(b, d))
            return false;
    return true;
}

void golden_compare_type(const bp_tensor *got, const bp_tensor *want, const golden_bounds *b, golden_diff *d)
{
    char ours[160], theirs[160];
    bool equal = got->dtype == want->dtype && got->rank == want->rank;
    *d = (golden_diff){.equal = true};
    for (uint32_t i = 0; equal && i < got->rank; i++)
        equal = tensor_dim(got, i) == tensor_dim(want, i);
    bool strides = equal && b->strides && !same_strides(got, want);
    if (equal && !strides)
        return;
    d->equal = false;
    describe(got, strides, ours, sizeof ours);
    describe(want, strides, theirs, sizeof theirs);
    snprintf(d->text, sizeof d->text, "got %s, expected %s", ours, theirs);
}

static void report(const bp_tensor *t, const cursor *first, num got, num want, int64_t wrong, double worst,
                   golden_diff *d)
{
    char ours[80], theirs[80], place[120];
    show(got, ours, sizeof ours);
    show(want, theirs, sizeof theirs);
    show_place(t, first, place, sizeof place);
    snprintf(d->text, sizeof d->text, "[%s]: got %s, expected %s; %lld of %lld differ, largest error %.3g", place, ours,
             theirs, (long long)wrong, (long long)tensor_nelem(t), worst);
}

static double largest_of(const bp_tensor *t)
{
    cursor at = {0};
    double most = 0;
    for (int64_t i = 0, n = tensor_nelem(t); i < n; i++, advance(t, &at)) {
        double m = magnitude(dtype_load(t->dtype, element(t, &at)));
        most = isfinite(m) && m > most ? m : most;
    }
    return most;
}

void golden_compare_wide(const bp_tensor *got, const bp_tensor *want, const bp_tensor *wide, const golden_bounds *b,
                         golden_diff *d)
{
    golden_compare_type(got, want, b, d);
    if (!d->equal)
        return;
    tolerance tol = b->given ? (tolerance){b->rtol, b->atol} : tolerance_of(want->dtype, b->tenfold);
    cursor at = {0}, first = {0};
    num first_got = {0}, first_want = {0};
    int64_t n = tensor_nelem(want), wrong = 0;
    double worst = 0, largest = wide ? largest_of(want) : 0;
    for (int64_t i = 0; i < n; i++, advance(want, &at)) {
        num x = dtype_load(got->dtype, element(got, &at)), y = dtype_load(want->dtype, element(want, &at));
        double error = error_of(x, y), bound = tol.atol + tol.rtol * magnitude(y);
        if (error == 0 || (y.kind != NUM_INT && isfinite(error) && error <= bound))
            continue;
        if (wide && excused(x, y, dtype_load(wide->dtype, element(wide, &at)), bound, largest))
            continue;
        if (wrong++ == 0) {
            first = at;
            first_got = x;
            first_want = y;
        }
        worst = error > worst ? error : worst;
    }
    d->equal = wrong == 0;
    d->values_differ = wrong > 0 && dtype_real_of(want->dtype) == BP_F32;
    if (wrong)
        report(want, &first, first_got, first_want, wrong, worst, d);
}

void golden_compare(const bp_tensor *got, const bp_tensor *want, const golden_bounds *b, golden_diff *d)
{
    golden_compare_wide(got, want, NULL, b, d);
}
