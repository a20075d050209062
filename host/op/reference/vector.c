/* Runs of f32 (vector.h). */
#include "host/op/reference/vector.h"
#include "host/op/reference/vmath.h"
#include <math.h>
#include <string.h>

enum { WIDTH = 8 }; /* four vectors make VECTOR_LANES */
typedef float floats __attribute__((vector_size(4 * WIDTH)));
typedef double doubles __attribute__((vector_size(8 * WIDTH)));
typedef int64_t wholes __attribute__((vector_size(8 * WIDTH)));

/* Element by element: compilers make one conversion of it, but two halves of __builtin_convertvector. */
ISA_INLINE void load(doubles *to, const float *p)
{
    floats x;
    memcpy(&x, p, sizeof x);
    *to = (doubles){(double)x[0], (double)x[1], (double)x[2], (double)x[3],
                    (double)x[4], (double)x[5], (double)x[6], (double)x[7]};
}

/* Lane i, which is zero, becomes e. By way of memory a load would wait for the stores before it. */
ISA_INLINE void put(wholes *lanes, int64_t i, double e)
{
    const wholes index = {0, 1, 2, 3, 4, 5, 6, 7};
    const doubles all = {e, e, e, e, e, e, e, e};
    *lanes |= (wholes)all & (index == i);
}

/* The lanes' sum: pairs, then pairs of pairs. */
ISA_INLINE double add_up(const doubles *lanes)
{
    doubles v = *lanes;
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

/* Sums TERM of the elements less `first`, in double. The accumulators are four variables, so that they stay in
 * registers. */
#define SUM_WHOLE(k, p, first, TERM)                                           \
    do {                                                                       \
        load(&v, (p) + at + (k) * WIDTH);                                      \
        v -= (first);                                                          \
        sum##k += TERM(v);                                                     \
    } while (0)
/* Of the elements behind the last VECTOR_LANES, those of accumulators k * WIDTH and on: all, some or none. */
#define SUM_PART(k, n, p, first, TERM)                                         \
    do {                                                                       \
        if (at + ((k) + 1) * WIDTH <= (n)) {                                   \
            SUM_WHOLE(k, p, first, TERM);                                      \
        } else if (at + (k) * WIDTH < (n)) {                                   \
            wholes rest = {0};                                                 \
            for (int64_t i = 0; at + (k) * WIDTH + i < (n); i++) {             \
                double e = (double)(p)[at + (k) * WIDTH + i] - (first);        \
                put(&rest, i, TERM(e));                                        \
            }                                                                  \
            v = (doubles)rest;                                                 \
            sum##k += v;                                                       \
        }                                                                      \
    } while (0)
#define SUM_LOOP(result, n, p, first, TERM)                                    \
    do {                                                                       \
        doubles sum0 = {0}, sum1 = {0}, sum2 = {0}, sum3 = {0}, v = {0};       \
        int64_t at = 0;                                                        \
        for (; at + VECTOR_LANES <= (n); at += VECTOR_LANES) {                 \
            SUM_WHOLE(0, p, first, TERM);                                      \
            SUM_WHOLE(1, p, first, TERM);                                      \
            SUM_WHOLE(2, p, first, TERM);                                      \
            SUM_WHOLE(3, p, first, TERM);                                      \
        }                                                                      \
        SUM_PART(0, n, p, first, TERM);                                        \
        SUM_PART(1, n, p, first, TERM);                                        \
        SUM_PART(2, n, p, first, TERM);                                        \
        SUM_PART(3, n, p, first, TERM);                                        \
        v = (sum0 + sum1) + (sum2 + sum3);                                     \
        *(result) = add_up(&v);                                                \
    } while (0)

#define ITSELF(v) (v)
#define SQUARE(v) ((v) * (v))
#define DISTANCE(v) (((v) - away) * ((v) - away))
ISA_INLINE void run_sums_body(int64_t m, int64_t step, int64_t n, const float *p, double *sums)
{
    for (int64_t k = 0; k < m; k++, p += step) {
        double one;
        SUM_LOOP(&one, n, p, 0.0, ITSELF);
        sums[k] += one;
    }
}
ISA_FN(run_sums, (int64_t m, int64_t step, int64_t n, const float *p, double *sums), (m, step, n, p, sums))
void vector_add_sums(int64_t m, int64_t step, int64_t n, const float *p, double *sums)
{
    run_sums(m, step, n, p, sums);
}
double vector_sum(int64_t n, const float *p)
{
    double result = 0;
    run_sums(1, 0, n, p, &result);
    return result;
}

ISA_INLINE void run_squares_body(int64_t n, const float *p, double *result)
{
    SUM_LOOP(result, n, p, 0.0, SQUARE);
}
ISA_FN(run_squares, (int64_t n, const float *p, double *result), (n, p, result))
double vector_sum_squares(int64_t n, const float *p)
{
    double result;
    run_squares(n, p, &result);
    return result;
}

ISA_INLINE void run_spread_body(int64_t n, const float *p, double *mean, double *result)
{
    const double first = (double)p[0];
    double away;
    SUM_LOOP(&away, n, p, first, ITSELF);
    away /= (double)n;
    SUM_LOOP(result, n, p, first, DISTANCE);
    *mean = first + away;
}
ISA_FN(run_spread, (int64_t n, const float *p, double *mean, double *result), (n, p, mean, result))
void vector_spread(int64_t n, const float *p, double *mean, double *result) { run_spread(n, p, mean, result); }

/* Floats are ordered as their bits are, once those of negative ones are turned around; NaN is looked for apart. */
ISA_INLINE void run_max_body(int64_t n, const float *p, float *result)
{
    int32_t best = INT32_MIN, nans = 0;
#if defined(_OPENMP) || defined(__clang__)
#pragma omp simd reduction(max : best) reduction(| : nans)
#endif
    for (int64_t i = 0; i < n; i++) {
        int32_t bits = vmath_bits_of(p[i]), key = bits ^ ((bits >> 31) & INT32_MAX);
        best = key > best ? key : best;
        nans |= p[i] != p[i];
    }
    *result = nans ? NAN : n ? vmath_of_bits(best ^ ((best >> 31) & INT32_MAX)) : -INFINITY;
}
ISA_FN(run_max, (int64_t n, const float *p, float *result), (n, p, result))
float vector_max(int64_t n, const float *p)
{
    float result;
    run_max(n, p, &result);
    return result;
}

ISA_INLINE void run_exp_body(int64_t n, const float *x, float largest, float *out)
{
    ISA_SIMD
    for (int64_t i = 0; i < n; i++)
        out[i] = vmath_exp(x[i] - largest);
}
ISA_FN(run_exp, (int64_t n, const float *x, float largest, float *out), (n, x, largest, out))
double vector_exp(int64_t n, const float *x, float largest, float *out)
{
    run_exp(n, x, largest, out);
    return vector_sum(n, out);
}

ISA_INLINE void run_scale_body(int64_t n, const float *x, double factor, float *out)
{
    ISA_SIMD
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)((double)x[i] * factor);
}
ISA_FN(run_scale, (int64_t n, const float *x, double factor, float *out), (n, x, factor, out))
void vector_scale(int64_t n, const float *x, double factor, float *out) { run_scale(n, x, factor, out); }

ISA_INLINE void run_shift_body(int64_t n, const float *x, double away, float *out)
{
    ISA_SIMD
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)((double)x[i] - away);
}
ISA_FN(run_shift, (int64_t n, const float *x, double away, float *out), (n, x, away, out))
void vector_shift(int64_t n, const float *x, double away, float *out) { run_shift(n, x, away, out); }
