/* Loops over runs of f32 that lie side by side, in vector instructions: sums, spreads, softmax.
 *
 * Sums go to VECTOR_LANES accumulators in double, element i to accumulator i % VECTOR_LANES, which are added in a fixed
 * order: the bits depend neither on the processor's instructions nor on threads. n may be 0 but for spreads. */
#ifndef HOST_OP_REFERENCE_VECTOR_H
#define HOST_OP_REFERENCE_VECTOR_H
#include <stdbool.h>
#include <stdint.h>

enum { VECTOR_LANES = 32 };

double vector_sum(int64_t n, const float *p);
/* Adds to each of m sums its n elements' sum; those of sum k begin at p + k * step. */
void vector_add_sums(int64_t m, int64_t step, int64_t n, const float *p, double *sums);
double vector_sum_squares(int64_t n, const float *p);
/* Mean, and the sum of squared distances from it: two passes around the first element. n > 0. */
void vector_spread(int64_t n, const float *p, double *mean, double *squares);
/* The largest element, -inf for none; NaN where one is. */
float vector_max(int64_t n, const float *p);
/* out = exp(x - largest), and their sum; out may be x. */
double vector_exp(int64_t n, const float *x, float largest, float *out);
/* out = x * factor, or x - away; computed in double, rounded once. */
void vector_scale(int64_t n, const float *x, double factor, float *out);
void vector_shift(int64_t n, const float *x, double away, float *out);
#endif
