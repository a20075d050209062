/* Convolution kernels: the call's arguments as a geometry (conv.h), and types that accumulate.
 *
 * A plain convolution keeps its type, since gemm accumulates halves in float. What adds into images or weights is
 * computed in the accumulation type and rounded once. */
#include "host/op/reference/conv.h"
#include "host/op/conv_args.h"
#include "host/op/reference/work.h"
#include "host/op/rows.h"
#include <string.h>

/* Spatial sizes of t, behind ones. */
static void spatial(int64_t out[3], const bp_tensor *t, uint32_t nd)
{
    for (uint32_t d = 0; d < 3; d++)
        out[d] = d + nd < 3 ? 1 : tensor_dim(t, t->rank + d - 3);
}

static void place(int64_t out[3], const int64_t *from, uint32_t nd, int64_t fill)
{
    for (uint32_t d = 0; d < 3; d++)
        out[d] = d + nd < 3 ? fill : from[d + nd - 3];
}

/* The geometry that maps image x to image y, which is the call's input or its result, or the other way round. */
static conv_geometry geometry(const conv_args *a, const bp_tensor *x, const bp_tensor *y, const bp_tensor *w)
{
    conv_geometry g = {.batch = a->batched ? tensor_dim(x, 0) : 1, .groups = a->groups, .cx = tensor_dim(w, 1)};
    g.cy = tensor_dim(w, 0) / a->groups;
    spatial(g.x, x, a->nd);
    spatial(g.y, y, a->nd);
    spatial(g.k, w, a->nd);
    place(g.stride, a->stride, a->nd, 1);
    place(g.pad, a->front, a->nd, 0);
    place(g.dilation, a->dilation, a->nd, 1);
    return g;
}

static bp_status done(bp_ctx *c, bool ok) { return ok ? BP_OK : diag_nomem(&c->diag); }

/* Every image of t starts as the bias of its channel. */
static void fill_bias(const bp_tensor *t, const bp_tensor *bias, bool batched)
{
    int64_t channels = tensor_dim(bias, 0), batch = batched ? tensor_dim(t, 0) : 1;
    int64_t n = batch && channels ? tensor_nelem(t) / (batch * channels) : 0;
    size_t size = dtype_size(t->dtype);
    char *to = tensor_ptr(t);
    for (int64_t i = 0; n && i < batch * channels; i++, to += (size_t)n * size)
        dtype_convert(t->dtype, to, 1, t->dtype, (const char *)tensor_ptr(bias) + (size_t)(i % channels) * size, 0, n);
}

static bp_status run_transposed(bp_ctx *c, op_call *k, const conv_args *a)
{
    work w = {.c = c};
    bp_dtype dtype = dtype_accumulate(k->out[0]->dtype);
    bp_tensor *in = work_in(&w, arg_tensor(k->args, 0), dtype), *weight = work_in(&w, arg_tensor(k->args, 1), dtype);
    bp_tensor *bias = work_in(&w, arg_tensor(k->args, 2), dtype), *out = work_out(&w, k->out[0], dtype);
    if (work_ok(&w)) {
        conv_geometry g = geometry(a, out, in, weight);
        if (bias)
            fill_bias(out, bias, a->batched);
        else
            work_clear(out);
        done(c, conv_adjoint(&g, dtype, tensor_ptr(in), tensor_ptr(weight), tensor_ptr(out)));
    }
    return work_end(&w);
}

bp_status kernel_convolution(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    conv_args a;
    TRY(conv_args_read(c, k->op, k->args, arg_tensor(k->args, 0), arg_tensor(k->args, 1), &a));
    if (a.transposed)
        return run_transposed(c, k, &a);
    bp_tensor *in = work_in(&w, arg_tensor(k->args, 0), BP_DTYPE_UNSET);
    bp_tensor *weight = work_in(&w, arg_tensor(k->args, 1), BP_DTYPE_UNSET);
    bp_tensor *bias = work_in(&w, arg_tensor(k->args, 2), BP_DTYPE_UNSET);
    bp_tensor *out = work_out(&w, k->out[0], BP_DTYPE_UNSET);
    if (work_ok(&w)) {
        conv_geometry g = geometry(&a, in, out, weight);
        done(c, conv_forward(&g, in->dtype, tensor_ptr(in), tensor_ptr(weight), bias ? tensor_ptr(bias) : NULL,
                             tensor_ptr(out)));
    }
    return work_end(&w);
}

/* -- gradients -- */

/* Sums over everything but the channels, in the accumulation type. */
static void sum_channels(const bp_tensor *grad, bp_tensor *out)
{
    int64_t channels = tensor_dim(grad, 1), batch = tensor_dim(grad, 0);
    int64_t n = batch && channels ? tensor_nelem(grad) / (batch * channels) : 0;
    size_t size = dtype_size(grad->dtype);
    for (int64_t ch = 0; ch < channels; ch++) {
        double sum = 0;
        for (int64_t i = 0; i < batch * n; i++) {
            const char *at = (const char *)tensor_ptr(grad) + (size_t)((i / n * channels + ch) * n + i % n) * size;
            sum += dtype_load(grad->dtype, at).f;
        }
        dtype_store(out->dtype, (char *)tensor_ptr(out) + (size_t)ch * dtype_size(out->dtype),
                    (num){.kind = NUM_FLOAT, .f = sum});
    }
}

bp_status kernel_convolution_backward(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    conv_args a;
    bp_dtype dtype = dtype_accumulate(arg_tensor(k->args, 1)->dtype);
    TRY(conv_args_read(c, k->op, k->args, arg_tensor(k->args, 1), arg_tensor(k->args, 2), &a));
    if (!dtype_is_float(dtype))
        return op_fail(c, k->op, BP_UNIMPLEMENTED, "gradients of %s convolutions", dtype_get(dtype)->torch);
    bp_tensor *grad = work_in(&w, arg_tensor(k->args, 0), dtype), *in = work_in(&w, arg_tensor(k->args, 1), dtype);
    bp_tensor *weight = work_in(&w, arg_tensor(k->args, 2), dtype);
    bp_tensor *din = work_out(&w, k->out[0], dtype), *dweight = work_out(&w, k->out[1], dtype);
    if (work_ok(&w)) {
        const bp_tensor *x = a.transposed ? grad : in, *y = a.transposed ? in : grad;
        conv_geometry g = geometry(&a, x, y, weight);
        if (din && a.transposed) {
            done(c, conv_forward(&g, dtype, tensor_ptr(grad), tensor_ptr(weight), NULL, tensor_ptr(din)));
        } else if (din) {
            work_clear(din);
            done(c, conv_adjoint(&g, dtype, tensor_ptr(grad), tensor_ptr(weight), tensor_ptr(din)));
        }
        if (dweight)
            done(c, conv_weight(&g, dtype, tensor_ptr(x), tensor_ptr(y), tensor_ptr(dweight)));
        if (k->out[2])
            sum_channels(grad, k->out[2]);
    }
    return work_end(&w);
}
