/* Sampling images and volumes at given places (grid_sampler). Places are computed in the type of the samples, float for
 * halves. A place that is not a number is nowhere. */
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
#include "host/op/reference/grid_typed.h"

#define T double
#define NAME(x) x##_f64
#define FN(name) name
#include "host/op/reference/grid_typed.h"

static grid_image geometry(bp_ctx *c, const op_call *k)
{
    const bp_tensor *t = arg_tensor(k->args, 0), *out = k->out[0];
    grid_image g = {.batch = tensor_dim(t, 0), .channels = tensor_dim(t, 1), .nout = 1, .nd = t->rank - 2u,
                    .mode = arg_int(c, k->args, 2), .padding = arg_int(c, k->args, 3), .align = arg_bool(k->args, 4)};
    for (uint32_t d = 0; d < 3; d++)
        g.in[d] = d + g.nd < 3 ? 1 : tensor_dim(t, t->rank + d - 3);
    for (uint32_t d = 2; d < out->rank; d++)
        g.nout *= tensor_dim(out, d);
    return g;
}

bp_status kernel_grid_sampler(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_dtype dtype = k->out[0]->dtype == BP_F64 ? BP_F64 : BP_F32;
    bp_tensor *image = work_in(&w, arg_tensor(k->args, 0), dtype), *grid = work_in(&w, arg_tensor(k->args, 1), dtype);
    bp_tensor *out = work_out(&w, k->out[0], dtype);
    grid_image g = geometry(c, k);
    if (work_ok(&w) && dtype == BP_F64)
        grid_f64(&g, tensor_ptr(image), tensor_ptr(grid), tensor_ptr(out));
    else if (work_ok(&w))
        grid_f32(&g, tensor_ptr(image), tensor_ptr(grid), tensor_ptr(out));
    return work_end(&w);
}
