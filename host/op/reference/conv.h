/* Convolutions of contiguous images, as products of the weight with columns of windows.
 *
 * A convolution maps an image x of `groups * cx` channels to y of `groups * cy`; its weight is [groups * cy, cx, k].
 * A transposed one maps y to x with the same weight. Images have three dimensions, those in front may be 1. Only the
 * padding in front matters here: the sizes of x and y say the rest. */
#ifndef HOST_OP_REFERENCE_CONV_H
#define HOST_OP_REFERENCE_CONV_H
#include "host/tensor/tensor.h"

typedef struct {
    int64_t batch, groups, cx, cy;
    int64_t x[3], y[3], k[3], stride[3], pad[3], dilation[3];
} conv_geometry;

/* The windows of every image as columns, [batch, groups * cx * k, y], elements outside it being zeros; any type. */
void conv_to_columns(const conv_geometry *g, bp_dtype dtype, const void *x, void *columns);
/* Adds columns to the images they are windows of; halves round each sum. */
void conv_from_columns(const conv_geometry *g, bp_dtype dtype, const void *columns, void *x);
/* y = w x + bias; any type that gemm has, all contiguous. bias: NULL for none. False: out of memory. */
bool conv_forward(const conv_geometry *g, bp_dtype dtype, const void *x, const void *w, const void *bias, void *y);
/* x += transposed(w) y. dtype: one that accumulates in itself (f32, f64, i64, complex). */
bool conv_adjoint(const conv_geometry *g, bp_dtype dtype, const void *y, const void *w, void *x);
/* w = the sum over the batch of y times the windows of x; dtype as for conv_adjoint. */
bool conv_weight(const conv_geometry *g, bp_dtype dtype, const void *x, const void *y, void *w);
#endif
