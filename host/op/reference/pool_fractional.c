/* fractional_max_pool: maxima of windows of one size whose places are spread by random numbers that the caller gives.
 *
 * Places are computed in the type of the samples, step by step, since where a window starts depends on the rounding. */
#include "host/op/checks.h"
#include "host/op/reference/loop.h"
#include "host/op/reference/work.h"
#include "host/op/rows.h"
#include <math.h>
#include <string.h>

enum { SELF, KERNEL, OUTPUT, SAMPLES };

/* Images of three dimensions, that in front may be 1. */
typedef struct { int64_t planes, in[3], kernel[3], out[3]; } fractional;

/* 2 or 3, by the type of the kernel size. */
static uint32_t dims_of(const op_row *op)
{
    return (uint32_t)op->schema->args[schema_find(op->schema, "kernel_size")].ty.list_size;
}

static bp_status check_window(bp_ctx *c, const shape_call *s, uint32_t d, bp_dim in, int64_t kernel, int64_t out)
{
    if (out < 1 || kernel < 1 || !dim_require(DIM_LE, dim_const(kernel + out - 1), in))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                       "dimension %u: %lld windows of %lld elements do not fit an input of %s", d, (long long)out,
                       (long long)kernel, op_dim_text(c, in));
    return BP_OK;
}

bp_status shape_fractional_max_pool(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, SELF), *samples = arg_tensor(s->args, SAMPLES);
    uint32_t nd = dims_of(s->op), rank = self->rank;
    int64_t kernel[3], out[3];
    bp_dim sizes[5];
    TRY(check_rank(c, s, SELF, nd + 1, nd + 2));
    TRY(check_rank(c, s, SAMPLES, 3, 3));
    TRY(check_same_dtype(c, s, SELF, SAMPLES));
    TRY(arg_ints(c, s->op, s->args, KERNEL, nd, kernel));
    TRY(arg_ints(c, s->op, s->args, OUTPUT, nd, out));
    if (!dtype_is_float(self->dtype))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "not there for %s", dtype_get(self->dtype)->torch);
    memcpy(sizes, self->sizes, rank * sizeof *sizes);
    for (uint32_t d = 0; d < nd; d++) {
        TRY(check_window(c, s, rank - nd + d, self->sizes[rank - nd + d], kernel[d], out[d]));
        sizes[rank - nd + d] = dim_const(out[d]);
    }
    bp_dim batch = rank == nd + 2 ? self->sizes[0] : dim_const(1), channels = self->sizes[rank - nd - 1];
    if (!dim_require(DIM_LE, batch, samples->sizes[0]) || !dim_require(DIM_EQ, samples->sizes[1], channels) ||
        !dim_require(DIM_EQ, samples->sizes[2], dim_const(nd)))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"random_samples\": expected sizes [%s, %s, %u]",
                       op_dim_text(c, batch), op_dim_text(c, channels), nd);
    TRY(out_new(c, s, self->dtype, rank, sizes));
    return out_new(c, s, BP_I64, rank, sizes);
}

/* Where window i of `out` starts; the last one ends with the image. */
static int64_t window_start(bp_dtype d, double sample, int64_t in, int64_t kernel, int64_t out, int64_t i)
{
    if (i == out - 1)
        return in - kernel;
    double alpha = loop_round(d, loop_round(d, (double)(in - kernel)) / loop_round(d, (double)(out - 1)));
    double place = loop_round(d, loop_round(d, (double)i + sample) * alpha);
    return (int64_t)place - (int64_t)loop_round(d, sample * alpha);
}

static void largest(const fractional *f, const double *plane, const int64_t *start, double *top, int64_t *best)
{
    *top = -INFINITY;
    *best = (start[0] * f->in[1] + start[1]) * f->in[2] + start[2];
    for (int64_t a = start[0]; a < start[0] + f->kernel[0]; a++)
        for (int64_t b = start[1]; b < start[1] + f->kernel[1]; b++)
            for (int64_t e = start[2]; e < start[2] + f->kernel[2]; e++) {
                int64_t at = (a * f->in[1] + b) * f->in[2] + e;
                if (plane[at] > *top || isnan(plane[at]))
                    *top = plane[at], *best = at;
            }
}

/* The samples of a plane: volumes have them in the order of their dimensions, images the last dimension first. */
static double sample_of(const double *samples, uint32_t nd, uint32_t d)
{
    return nd == 2 ? samples[2 - d] : samples[d];
}

static void pool_plane(const fractional *f, bp_dtype dtype, uint32_t nd, const double *plane, const double *samples,
                       double *to, int64_t *places)
{
    int64_t count = f->out[0] * f->out[1] * f->out[2];
    for (int64_t i = 0; i < count; i++) {
        int64_t at[3] = {i / (f->out[1] * f->out[2]), i / f->out[2] % f->out[1], i % f->out[2]}, start[3] = {0};
        for (uint32_t d = 3 - nd; d < 3; d++) {
            start[d] = window_start(dtype, sample_of(samples, nd, d), f->in[d], f->kernel[d], f->out[d], at[d]);
            start[d] = start[d] < 0 ? 0 : start[d] + f->kernel[d] > f->in[d] ? f->in[d] - f->kernel[d] : start[d];
        }
        largest(f, plane, start, &to[i], &places[i]);
    }
}

bp_status kernel_fractional_max_pool(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    uint32_t nd = dims_of(k->op);
    bp_tensor *x = work_in(&w, arg_tensor(k->args, SELF), BP_F64);
    bp_tensor *samples = work_in(&w, arg_tensor(k->args, SAMPLES), BP_F64);
    bp_tensor *y = work_out(&w, k->out[0], BP_F64), *places = work_out(&w, k->out[1], BP_I64);
    fractional f = {.planes = 1, .in = {1, 1, 1}, .kernel = {1, 1, 1}, .out = {1, 1, 1}};
    if (!work_ok(&w) || arg_ints(c, k->op, k->args, KERNEL, nd, f.kernel + 3 - nd) != BP_OK)
        return work_end(&w);
    for (uint32_t d = 0; d < x->rank; d++) {
        bool pooled = d + nd >= x->rank;
        if (!pooled) {
            f.planes *= tensor_dim(x, d);
            continue;
        }
        f.in[d + 3 - x->rank] = tensor_dim(x, d);
        f.out[d + 3 - x->rank] = tensor_dim(y, d);
    }
    int64_t nin = f.in[0] * f.in[1] * f.in[2], nout = f.out[0] * f.out[1] * f.out[2];
    for (int64_t p = 0; p < f.planes; p++)
        pool_plane(&f, k->out[0]->dtype, nd, (const double *)tensor_ptr(x) + p * nin,
                   (const double *)tensor_ptr(samples) + p * nd, (double *)tensor_ptr(y) + p * nout,
                   (int64_t *)tensor_ptr(places) + p * nout);
    return work_end(&w);
}

/* The gradient has the image's sizes; gradients and indices are pooled alike. */
bp_status shape_fractional_backward(bp_ctx *c, shape_call *s)
{
    const bp_tensor *grad = arg_tensor(s->args, 0), *self = arg_tensor(s->args, 1), *at = arg_tensor(s->args, 4);
    uint32_t nd = dims_of(s->op);
    TRY(check_rank(c, s, 1, nd + 1, nd + 2));
    TRY(check_rank(c, s, 0, self->rank, self->rank));
    TRY(check_rank(c, s, 4, self->rank, self->rank));
    TRY(check_same_dtype(c, s, 0, 1));
    TRY(check_index_dtype(c, s, 4));
    for (uint32_t d = 0; d < self->rank; d++) {
        bool fits = dim_eq(grad->sizes[d], at->sizes[d]) &&
                    (d + nd >= self->rank || dim_eq(grad->sizes[d], self->sizes[d]));
        if (!fits)
            return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                           "dimension %u: %lld gradients, %lld indices, an image of %lld",
                           d, (long long)grad->sizes[d].value, (long long)at->sizes[d].value,
                           (long long)self->sizes[d].value);
    }
    return out_new(c, s, self->dtype, self->rank, self->sizes);
}
