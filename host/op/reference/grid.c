/* Sampling images and volumes at given places (grid_sampler). Places and weights are computed in the type of the
 * samples, halves step by step: which elements are near depends on it. A place that is not a number is nowhere. */
#include "host/op/checks.h"
#include "host/op/reference/loop.h"
#include "host/op/reference/work.h"
#include "host/op/rows.h"
#include <math.h>

enum { GRID_LINEAR = 0, GRID_NEAREST = 1, GRID_CUBIC = 2 };
enum { GRID_ZEROS = 0, GRID_BORDER = 1, GRID_REFLECTION = 2 };

/* Images of three dimensions, those in front may be 1; nout places an image. */
typedef struct { int64_t batch, channels, nout, in[3], mode, padding; uint32_t nd; bool align; } grid_image;

#define T float
#define NAME(x) x##_f32
#define FN(name) name##f
#define R(x) ROUND_NOT(x)
#define GRID_HALVES false
#include "host/op/reference/grid_typed.h"

#define T double
#define NAME(x) x##_f64
#define FN(name) name
#define R(x) ROUND_NOT(x)
#define GRID_HALVES false
#include "host/op/reference/grid_typed.h"

#define T float
#define NAME(x) x##_f16
#define FN(name) name##f
#define R(x) ROUND_F16(x)
#define GRID_HALVES true
#define GRID_FORWARD_ONLY
#include "host/op/reference/grid_typed.h"

#define T float
#define NAME(x) x##_bf16
#define FN(name) name##f
#define R(x) ROUND_BF16(x)
#define GRID_HALVES true
#include "host/op/reference/grid_typed.h"
#undef GRID_FORWARD_ONLY

/* image and grid are arguments `first` and the next; the modes follow. */
static grid_image geometry(bp_ctx *c, const op_call *k, uint32_t first)
{
    const bp_value *a = k->args;
    const bp_tensor *t = arg_tensor(a, first), *grid = arg_tensor(a, first + 1);
    grid_image g = {.batch = tensor_dim(t, 0), .channels = tensor_dim(t, 1), .nout = 1, .nd = t->rank - 2u,
                    .mode = arg_int(c, a, first + 2), .padding = arg_int(c, a, first + 3),
                    .align = arg_bool(a, first + 4)};
    for (uint32_t d = 0; d < 3; d++)
        g.in[d] = d + g.nd < 3 ? 1 : tensor_dim(t, t->rank + d - 3);
    for (uint32_t d = 1; d + 1 < grid->rank; d++)
        g.nout *= tensor_dim(grid, d);
    return g;
}

bp_status kernel_grid_sampler(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_dtype dtype = k->out[0]->dtype == BP_F64 ? BP_F64 : BP_F32;
    bp_tensor *image = work_in(&w, arg_tensor(k->args, 0), dtype), *grid = work_in(&w, arg_tensor(k->args, 1), dtype);
    bp_tensor *out = work_out(&w, k->out[0], dtype);
    grid_image g = geometry(c, k, 0);
    if (!work_ok(&w))
        return work_end(&w);
    if (dtype == BP_F64)
        grid_f64(&g, tensor_ptr(image), tensor_ptr(grid), tensor_ptr(out));
    else if (k->out[0]->dtype == BP_F16)
        grid_f16(&g, tensor_ptr(image), tensor_ptr(grid), tensor_ptr(out));
    else if (k->out[0]->dtype == BP_BF16)
        grid_bf16(&g, tensor_ptr(image), tensor_ptr(grid), tensor_ptr(out));
    else
        grid_f32(&g, tensor_ptr(image), tensor_ptr(grid), tensor_ptr(out));
    return work_end(&w);
}

/* -- gradients -- */
enum { GRAD, IMAGE, GRID, MODE, PADDING, ALIGN, MASK };

/* The forward's rule on the arguments behind the gradient, which must be of its result's sizes. */
bp_status shape_grid_sampler_backward(bp_ctx *c, shape_call *s)
{
    const bp_tensor *grad = arg_tensor(s->args, GRAD), *image = arg_tensor(s->args, IMAGE);
    const bp_tensor *grid = arg_tensor(s->args, GRID);
    shape_call forward = *s;
    char text[256];
    forward.args = s->args + IMAGE, forward.out = NULL, forward.nout = forward.cap = 0;
    TRY(check_same_dtype(c, s, GRAD, IMAGE));
    TRY(shape_grid_sampler(c, &forward));
    const tensor_meta *m = &forward.out[0].meta;
    bool fits = grad->rank == m->rank;
    for (uint32_t d = 0; fits && d < m->rank; d++)
        fits = dim_eq(grad->sizes[d], m->sizes[d]);
    if (!fits)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"grad_output\": expected sizes %s",
                       sizes_text(text, sizeof text, m->rank, m->sizes));
    if (image->dtype != BP_F32 && image->dtype != BP_F64)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"grad_output\": not there for %s",
                       dtype_get(image->dtype)->torch);
    TRY(out_new(c, s, image->dtype, image->rank, image->sizes));
    s->out[0].absent = !arg_bool(s->args[MASK].v.items, 0);
    return out_new(c, s, image->dtype, grid->rank, grid->sizes);
}

bp_status kernel_grid_sampler_backward(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_dtype dtype = (bp_dtype)arg_tensor(k->args, IMAGE)->dtype;
    bp_tensor *grad = work_in(&w, arg_tensor(k->args, GRAD), dtype);
    bp_tensor *image = work_in(&w, arg_tensor(k->args, IMAGE), dtype);
    bp_tensor *grid = work_in(&w, arg_tensor(k->args, GRID), dtype), *to = work_out(&w, k->out[0], dtype);
    bp_tensor *slopes = work_out(&w, k->out[1], dtype);
    grid_image g = geometry(c, k, IMAGE);
    if (!work_ok(&w))
        return work_end(&w);
    if (to)
        work_clear(to);
    void *cells = to ? tensor_ptr(to) : NULL;
    if (dtype == BP_F64)
        grid_backward_f64(&g, tensor_ptr(grad), tensor_ptr(image), tensor_ptr(grid), cells, tensor_ptr(slopes));
    else
        grid_backward_f32(&g, tensor_ptr(grad), tensor_ptr(image), tensor_ptr(grid), cells, tensor_ptr(slopes));
    return work_end(&w);
}
