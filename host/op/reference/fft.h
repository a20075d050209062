/* The discrete Fourier transform of one line of complex numbers, of any length: sums of products with roots of unity,
 * split by the length's factors; a length with a large prime factor becomes a convolution of a power of two. */
#ifndef HOST_OP_REFERENCE_FFT_H
#define HOST_OP_REFERENCE_FFT_H
#include "host/op/reference/cx.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct fft_plan fft_plan;

/* Of n >= 1 points. NULL: out of memory. */
fft_plan *fft_plan_new(int64_t n);
void fft_plan_free(fft_plan *p); /* NULL: nothing */
/* out[k] = sum over j of in[j * step] * exp(-2 pi i j k / n), or with +2 pi i if not `forward`. in and out do not
 * overlap. A plan serves one thread at a time. */
void fft_line(fft_plan *p, bool forward, const cx *in, int64_t step, cx *out);
#endif
