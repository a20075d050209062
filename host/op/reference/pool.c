/* Pooling: plain and adaptive, maxima and means, and their gradients.
 *
 * The windows of each dimension are listed first (adaptive ones from the sizes alone); then all kinds are one loop
 * over planes and windows. Halves are computed in float, integers in int64. */
#include "host/op/pool_args.h"
#include "host/op/reference/work.h"
#include "host/op/rows.h"
#include <math.h>
#include <string.h>

/* A window along one dimension: the elements [lo, hi) of the image, and its length with padding. */
typedef struct {
    int64_t lo, hi, padded;
} pool_window;

/* Images of three dimensions, those in front may be 1: nin elements a plane. */
typedef struct {
    int64_t planes, nin, in[3], out[3], dilation[3], divisor;
    bool count_pad;
    bp_dtype step; /* sums round to this type at each step; UNSET: once, at the end */
    const pool_window *windows[3];
} pool_geometry;

/* Where the walk over the results is: the plane, the number of the result, its windows. */
typedef struct {
    int64_t plane, out, index[3];
    pool_window w[3];
} pool_place;

static void load_windows(const pool_geometry *g, pool_place *p)
{
    for (uint32_t d = 0; d < 3; d++)
        p->w[d] = g->windows[d][p->index[d]];
}

static bool pool_more(const pool_geometry *g, const pool_place *p) { return p->plane < g->planes; }

static pool_place pool_first(const pool_geometry *g)
{
    pool_place p = {0};
    if (g->out[0] * g->out[1] * g->out[2] == 0)
        p.plane = g->planes;
    else
        load_windows(g, &p);
    return p;
}

static void pool_next(const pool_geometry *g, pool_place *p)
{
    p->out++;
    uint32_t d = 3;
    while (d > 0 && ++p->index[d - 1] == g->out[d - 1])
        p->index[--d] = 0;
    p->plane += d == 0;
    load_windows(g, p);
}

static int64_t pool_at(const pool_geometry *g, int64_t a, int64_t b, int64_t c)
{
    return (a * g->in[1] + b) * g->in[2] + c;
}

static bool pool_is_empty(const pool_geometry *g, const pool_place *p)
{
    return g->nin > 0 && (p->w[0].lo >= p->w[0].hi || p->w[1].lo >= p->w[1].hi || p->w[2].lo >= p->w[2].hi);
}

static int64_t pool_divisor(const pool_geometry *g, const pool_place *p)
{
    int64_t n = 1;
    if (g->divisor)
        return g->divisor;
    for (uint32_t d = 0; d < 3; d++)
        n *= g->count_pad ? p->w[d].padded : p->w[d].hi - p->w[d].lo;
    return n;
}

static double rounded(bp_dtype d, double v)
{
    double element;
    dtype_store(d, &element, (num){.kind = NUM_FLOAT, .f = v});
    return dtype_load(d, &element).f;
}

/* A sum divided by the window's sizes, one after the other, each quotient rounded. */
static double pool_shares(const pool_geometry *g, const pool_place *p, double sum)
{
    for (uint32_t d = 0; d < 3; d++)
        sum = rounded(g->step, sum / (double)(p->w[d].hi - p->w[d].lo));
    return sum;
}

#define T float
#define NAME(x) x##_f32
#define LOWEST (-INFINITY)
#define IS_NAN(v) isnan(v)
#define ROUND(g, v) ((g)->step == BP_DTYPE_UNSET ? (v) : (float)rounded((g)->step, (double)(v)))
#include "host/op/reference/pool_typed.h"

#define T double
#define NAME(x) x##_f64
#define LOWEST ((double)-INFINITY)
#define IS_NAN(v) isnan(v)
#define ROUND(g, v) (v)
#include "host/op/reference/pool_typed.h"

#define T int64_t
#define NAME(x) x##_i64
#define LOWEST INT64_MIN
#define IS_NAN(v) false
#define ROUND(g, v) (v)
#include "host/op/reference/pool_typed.h"

/* -- windows -- */

/* Window o of a plain pooling of n elements; a maximum skips whole steps of padding. */
static pool_window plain_window(const pool_args *a, uint32_t d, int64_t n, int64_t o)
{
    int64_t start = o * a->stride[d] - a->pad[d], end = start + (a->kernel[d] - 1) * a->dilation[d] + 1;
    int64_t limit = end < n + a->pad[d] ? end : n + a->pad[d], lo = start;
    while (lo < 0)
        lo += a->dilation[d];
    return (pool_window){lo, end < n ? end : n, limit - start};
}

static pool_window adaptive_window(int64_t n, int64_t out, int64_t o)
{
    int64_t lo = o * n / out, hi = ((o + 1) * n + out - 1) / out;
    return (pool_window){lo, hi, hi - lo};
}

/* The geometry between an image and its pooled form, of which the last nd dimensions are pooled. */
static void geometry(work *w, const pool_args *a, const bp_tensor *image, const bp_tensor *pooled, pool_geometry *g)
{
    *g = (pool_geometry){.planes = 1, .nin = 1, .divisor = a->divisor, .count_pad = a->count_pad};
    for (uint32_t d = 0; d + a->nd < image->rank; d++)
        g->planes *= tensor_dim(image, d);
    for (uint32_t d = 0; d < 3; d++) {
        uint32_t from = d + a->nd - 3;
        bool real = d + a->nd >= 3;
        g->in[d] = real ? tensor_dim(image, image->rank - 3 + d) : 1;
        g->out[d] = real ? tensor_dim(pooled, image->rank - 3 + d) : 1;
        g->dilation[d] = real && !a->adaptive ? a->dilation[from] : 1;
        g->nin *= g->in[d];
        pool_window *list = work_alloc(w, g->out[d] + 1, sizeof *list);
        for (int64_t o = 0; list && o < g->out[d]; o++)
            list[o] = real && !a->adaptive ? plain_window(a, from, g->in[d], o)
                                           : adaptive_window(g->in[d], g->out[d], o);
        if (list)
            list[g->out[d]] = (pool_window){0, 0, 0};
        g->windows[d] = list;
    }
}

/* The type that is computed in. */
static bp_dtype loop_dtype(bp_dtype d) { return dtype_accumulate(d); }

/* -- kernels -- */

bp_status kernel_max_pool(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    pool_args a;
    pool_geometry g;
    TRY(pool_args_read(c, k->op, k->args, &a));
    bp_dtype dtype = loop_dtype(k->out[0]->dtype);
    bp_tensor *x = work_in(&w, arg_tensor(k->args, 0), dtype), *y = work_out(&w, k->out[0], dtype);
    bp_tensor *places = k->nout > 1 ? work_out(&w, k->out[1], BP_I64) : NULL;
    geometry(&w, &a, arg_tensor(k->args, 0), k->out[0], &g);
    if (work_ok(&w)) {
        int64_t *at = places ? tensor_ptr(places) : NULL;
        if (dtype == BP_F32)
            max_f32(&g, tensor_ptr(x), tensor_ptr(y), at);
        else if (dtype == BP_F64)
            max_f64(&g, tensor_ptr(x), tensor_ptr(y), at);
        else
            max_i64(&g, tensor_ptr(x), tensor_ptr(y), at);
    }
    return work_end(&w);
}

/* PyTorch alone sums volumes of halves in halves, and adaptively only. */
bp_status kernel_avg_pool(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    pool_args a;
    pool_geometry g;
    TRY(pool_args_read(c, k->op, k->args, &a));
    bp_dtype dtype = loop_dtype(k->out[0]->dtype);
    bp_tensor *x = work_in(&w, arg_tensor(k->args, 0), dtype), *y = work_out(&w, k->out[0], dtype);
    geometry(&w, &a, arg_tensor(k->args, 0), k->out[0], &g);
    bool mean = k->op->schema->name[0] != '_' && g.out[0] * g.out[1] * g.out[2] == 1;
    if (a.adaptive && a.nd == 3 && dtype != k->out[0]->dtype && !mean)
        g.step = k->out[0]->dtype;
    if (work_ok(&w)) {
        if (dtype == BP_F32)
            avg_f32(&g, tensor_ptr(x), tensor_ptr(y));
        else if (dtype == BP_F64)
            avg_f64(&g, tensor_ptr(x), tensor_ptr(y));
        else
            avg_i64(&g, tensor_ptr(x), tensor_ptr(y));
    }
    return work_end(&w);
}

/* For a gradient: the image is the result, its pooled form is argument 0. */
static bp_status avg_backward(bp_ctx *c, op_call *k, const pool_args *a)
{
    work w = {.c = c};
    pool_geometry g;
    bp_dtype dtype = loop_dtype(k->out[0]->dtype);
    bp_tensor *dy = work_in(&w, arg_tensor(k->args, 0), dtype), *dx = work_out(&w, k->out[0], dtype);
    geometry(&w, a, k->out[0], arg_tensor(k->args, 0), &g);
    if (work_ok(&w)) {
        work_clear(dx);
        if (dtype == BP_F32)
            avg_backward_f32(&g, tensor_ptr(dy), tensor_ptr(dx));
        else if (dtype == BP_F64)
            avg_backward_f64(&g, tensor_ptr(dy), tensor_ptr(dx));
        else
            avg_backward_i64(&g, tensor_ptr(dy), tensor_ptr(dx));
    }
    return work_end(&w);
}

bp_status kernel_avg_pool_backward(bp_ctx *c, op_call *k)
{
    pool_args a;
    TRY(pool_args_read(c, k->op, k->args, &a));
    return avg_backward(c, k, &a);
}

/* An adaptive gradient has no argument that names its dimensions. */
bp_status kernel_adaptive_avg_pool2d_backward(bp_ctx *c, op_call *k)
{
    return avg_backward(c, k, &(pool_args){.adaptive = true, .nd = 2});
}

bp_status kernel_adaptive_avg_pool3d_backward(bp_ctx *c, op_call *k)
{
    return avg_backward(c, k, &(pool_args){.adaptive = true, .nd = 3});
}

/* Elements of planes go to places in larger planes; sums where places repeat, unless the last one stays. */
static bp_status put_places(bp_ctx *c, const op_row *op, const bp_tensor *from, const bp_tensor *places, bp_tensor *to,
                            int64_t planes, bool sums)
{
    int64_t n = planes ? tensor_nelem(from) / planes : 0, room = planes ? tensor_nelem(to) / planes : 0;
    const int64_t *at = tensor_ptr(places);
    size_t size = dtype_size(to->dtype);
    for (int64_t i = 0; i < planes * n; i++) {
        if (at[i] < 0 || at[i] >= room)
            return op_fail(c, op, BP_OUT_OF_RANGE, "index %lld is out of range for a plane of %lld elements",
                           (long long)at[i], (long long)room);
        char *cell = (char *)tensor_ptr(to) + (size_t)(i / n * room + at[i]) * size;
        num v = dtype_load(from->dtype, (const char *)tensor_ptr(from) + (size_t)i * size);
        if (sums)
            v.f += dtype_load(to->dtype, cell).f;
        dtype_store(to->dtype, cell, v);
    }
    return BP_OK;
}

static int64_t planes_of(const bp_tensor *t, uint32_t nd)
{
    int64_t n = 1;
    for (uint32_t d = 0; d + nd < t->rank; d++)
        n *= tensor_dim(t, d);
    return n;
}

bp_status kernel_max_unpool(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    uint32_t nd = (uint32_t)k->op->schema->args[2].ty.list_size;
    bp_tensor *x = work_in(&w, arg_tensor(k->args, 0), BP_DTYPE_UNSET);
    bp_tensor *places = work_in(&w, arg_tensor(k->args, 1), BP_I64), *y = work_out(&w, k->out[0], BP_DTYPE_UNSET);
    if (work_ok(&w)) {
        work_clear(y);
        put_places(c, k->op, x, places, y, planes_of(x, nd), false);
    }
    return work_end(&w);
}

/* The indices are the last argument. */
bp_status kernel_max_pool_backward(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    const op_row *op = k->op;
    uint32_t nd = op->schema->nargs > 3 ? (uint32_t)op->schema->args[2].ty.list_size
                                        : (strstr(op->schema->name, "3d") ? 3 : 2);
    bp_dtype dtype = loop_dtype(k->out[0]->dtype);
    bp_tensor *dy = work_in(&w, arg_tensor(k->args, 0), dtype), *dx = work_out(&w, k->out[0], dtype);
    bp_tensor *places = work_in(&w, arg_tensor(k->args, op->schema->nargs - 1), BP_I64);
    if (work_ok(&w)) {
        work_clear(dx);
        put_places(c, op, dy, places, dx, planes_of(dx, nd), true);
    }
    return work_end(&w);
}
