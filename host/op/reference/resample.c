/* Upsampling of lines, images and volumes, and its gradients: nearest, linear and cubic.
 *
 * Places are computed in the type of the samples, float for halves, as PyTorch does: which element is nearest depends
 * on it. Bytes are filtered one dimension after the other, and rounded after each. */
#include "host/op/resample_args.h"
#include "host/op/reference/work.h"
#include "host/op/rows.h"
#include <math.h>
#include <string.h>

enum { RESAMPLE_TAPS = 4 };
/* One dimension, and all of them: three, those in front of size 1 with one tap. */
typedef struct {
    enum resample_kind kind;
    bool align;
    int64_t in, out;
    double scale;
} resample_line;
typedef struct {
    int64_t planes, in[3], out[3], taps[3];
} resample_image;

#define T float
#define NAME(x) x##_f32
#define FLOOR(v) floorf(v)
#include "host/op/reference/resample_typed.h"

#define T double
#define NAME(x) x##_f64
#define FLOOR(v) floor(v)
#include "host/op/reference/resample_typed.h"

static int64_t taps_of(enum resample_kind kind)
{
    return kind == RESAMPLE_CUBIC ? 4 : kind == RESAMPLE_LINEAR ? 2 : 1;
}

/* Two weights add up to 1 before the first is rounded. */
static void round_weights(float *weight, int64_t n, bp_dtype half)
{
    bp_half rounded[RESAMPLE_TAPS]; /* as large as the other half type */
    for (int64_t pass = 0; pass < 2; pass++) {
        dtype_convert(half, rounded, 1, BP_F32, weight, 1, n);
        dtype_convert(BP_F32, weight, 1, half, rounded, 1, n);
        if (n == 2 && pass == 0)
            weight[0] = 1 - weight[1];
    }
}

/* The type to which PyTorch rounds weights for samples of type d: halves do, but for linear images. */
static bp_dtype weight_type(const resample_args *a, bp_dtype d)
{
    bool rounds = (d == BP_F16 || d == BP_BF16) && (a->kind == RESAMPLE_CUBIC || a->nd != 2);
    return rounds ? d : BP_DTYPE_UNSET;
}

/* Geometry and tables, of doubles or floats, whose weights may be rounded to a half type. */
static void prepare(work *w, const resample_args *a, bool wide, bp_dtype half, resample_image *g, const void **tables)
{
    *g = (resample_image){.planes = a->batch.value * a->channels.value};
    for (uint32_t d = 0; d < 3; d++) {
        bool real = d + a->nd >= 3;
        uint32_t from = d + a->nd - 3;
        resample_line l = {.kind = RESAMPLE_NEAREST, .in = 1, .out = 1};
        if (real)
            l = (resample_line){a->kind, a->align_corners, a->in[from].value, a->out[from].value, a->scale[from]};
        g->in[d] = l.in, g->out[d] = l.out, g->taps[d] = taps_of(l.kind);
        void *table = work_alloc(w, l.out, wide ? sizeof(tap_f64) : sizeof(tap_f32));
        if (table && wide)
            fill_f64(&l, table);
        else if (table)
            fill_f32(&l, table);
        for (int64_t o = 0; table && half != BP_DTYPE_UNSET && o < l.out; o++)
            round_weights(((tap_f32 *)table)[o].weight, g->taps[d], half);
        tables[d] = table;
    }
}

static void run(const resample_image *g, bool wide, bp_tensor *image, bp_tensor *other, bool backward,
                const void *const *tables)
{
    if (wide)
        resample_f64(g, tensor_ptr(image), tensor_ptr(other), backward, tables);
    else
        resample_f32(g, tensor_ptr(image), tensor_ptr(other), backward, tables);
}

/* -- bytes: one dimension of images after the other, by weights that are integers, rounded after each -- */

/* Weights of the elements of the image that one of the result is made of. */
typedef struct {
    int64_t n, index[RESAMPLE_TAPS];
    double share[RESAMPLE_TAPS];
    int32_t weight[RESAMPLE_TAPS];
} byte_tap;

/* What lies beyond an end counts for the last element there. */
static byte_tap merge_tap(const tap_f64 *tap, int64_t n)
{
    byte_tap out = {0};
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0;
        while (at < out.n && out.index[at] != tap->index[i])
            at++;
        if (at == out.n)
            out.index[out.n++] = tap->index[i];
        out.share[at] += tap->weight[i];
    }
    return out;
}

/* As many bits behind the point as let the greatest weight fit 16 bits. */
static int weight_bits(const byte_tap *taps, int64_t n)
{
    double most = 0;
    int bits = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < taps[i].n; k++)
            most = taps[i].share[k] > most ? taps[i].share[k] : most;
    while (bits < 22 && (int64_t)(0.5 + ldexp(most, bits + 1)) < (1 << 15))
        bits++;
    return bits;
}

static uint8_t byte_of(const byte_tap *tap, int bits, const uint8_t *at, int64_t step)
{
    int32_t sum = 1 << (bits - 1);
    for (int64_t k = 0; k < tap->n; k++)
        sum += tap->weight[k] * at[tap->index[k] * step];
    sum >>= bits;
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

/* Dimension d of `outer` images, each line element `inner` bytes apart, from `from` to `to`. */
static void resample_bytes(work *w, const resample_image *g, const void *table, uint32_t d, int64_t outer,
                           int64_t inner, const uint8_t *from, uint8_t *to)
{
    byte_tap *taps = work_alloc(w, g->out[d], sizeof *taps);
    if (!taps)
        return;
    for (int64_t i = 0; i < g->out[d]; i++)
        taps[i] = merge_tap((const tap_f64 *)table + i, g->taps[d]);
    int bits = weight_bits(taps, g->out[d]);
    for (int64_t i = 0; i < g->out[d]; i++)
        for (int64_t k = 0; k < taps[i].n; k++)
            taps[i].weight[k] = (int32_t)(ldexp(taps[i].share[k], bits) + (taps[i].share[k] < 0 ? -0.5 : 0.5));
    for (int64_t o = 0; o < outer; o++, from += g->in[d] * inner)
        for (int64_t i = 0; i < g->out[d]; i++)
            for (int64_t x = 0; x < inner; x++)
                *to++ = byte_of(&taps[i], bits, from + x, inner);
}

static bp_status upsample_bytes(bp_ctx *c, op_call *k, const resample_args *a)
{
    work w = {.c = c};
    resample_image g;
    const void *tables[3];
    bp_tensor *in = work_in(&w, arg_tensor(k->args, 0), BP_DTYPE_UNSET);
    bp_tensor *out = work_out(&w, k->out[0], BP_DTYPE_UNSET);
    prepare(&w, a, true, BP_DTYPE_UNSET, &g, tables);
    uint8_t *lines = work_ok(&w) ? work_alloc(&w, g.planes * g.in[1] * g.out[2], 1) : NULL;
    if (!lines)
        return work_end(&w);
    const uint8_t *from = tensor_ptr(in);
    if (g.in[2] != g.out[2]) {
        resample_bytes(&w, &g, tables[2], 2, g.planes * g.in[1], 1, from, lines);
        from = lines;
    }
    if (g.in[1] != g.out[1])
        resample_bytes(&w, &g, tables[1], 1, g.planes, g.out[2], from, tensor_ptr(out));
    else
        memcpy(tensor_ptr(out), from, (size_t)(g.planes * g.in[1] * g.out[2]));
    return work_end(&w);
}

bp_status kernel_upsample(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    resample_args a;
    resample_image g;
    const void *tables[3];
    TRY(resample_args_read(c, k->op, k->args, &a));
    bp_dtype dtype = k->out[0]->dtype == BP_F64 ? BP_F64 : BP_F32;
    if (k->out[0]->dtype == BP_U8 && taps_of(a.kind) > 1 && a.nd == 2)
        return upsample_bytes(c, k, &a);
    if (k->out[0]->dtype == BP_U8 && taps_of(a.kind) > 1)
        return op_fail(c, k->op, BP_UNIMPLEMENTED, "filtering of bytes along %u dimensions", a.nd);
    bp_tensor *in = work_in(&w, arg_tensor(k->args, 0), dtype), *out = work_out(&w, k->out[0], dtype);
    prepare(&w, &a, dtype == BP_F64, weight_type(&a, k->out[0]->dtype), &g, tables);
    if (work_ok(&w))
        run(&g, dtype == BP_F64, in, out, false, tables);
    return work_end(&w);
}

bp_status kernel_upsample_backward(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    resample_args a;
    resample_image g;
    const void *tables[3];
    TRY(resample_args_read(c, k->op, k->args, &a));
    bp_dtype dtype = k->out[0]->dtype == BP_F64 ? BP_F64 : BP_F32;
    bp_tensor *grad = work_in(&w, arg_tensor(k->args, 0), dtype), *out = work_out(&w, k->out[0], dtype);
    prepare(&w, &a, dtype == BP_F64, BP_DTYPE_UNSET, &g, tables);
    if (work_ok(&w)) {
        work_clear(out);
        run(&g, dtype == BP_F64, out, grad, true, tables);
    }
    return work_end(&w);
}
