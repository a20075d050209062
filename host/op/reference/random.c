/* Random numbers by Philox: number i of a call comes from block (offset + i) of the context's seed, and the call moves
 * the offset by the number of elements of its first result. So equal seeds and offsets give equal numbers, whatever
 * the layout of the result. The stream is not PyTorch's. */
#include "host/op/checks.h"
#include "host/op/reference/number.h"
#include "host/op/reference/walk.h"
#include "host/op/reference/work.h"
#include "host/op/rows.h"
#include <math.h>

/* -- one number from one block -- */

typedef struct {
    uint64_t seed, offset;
} stream;

static stream start(bp_ctx *c, const bp_tensor *out)
{
    stream s = {c->seed, c->rng_offset};
    c->rng_offset += (uint64_t)tensor_nelem(out);
    return s;
}

/* 64 random bits twice. */
typedef struct {
    uint64_t a, b;
} block;

static block draw(const stream *s, int64_t i)
{
    uint32_t w[4];
    philox_uint32(s->seed, s->offset + (uint64_t)i, w);
    return (block){(uint64_t)w[0] << 32 | w[1], (uint64_t)w[2] << 32 | w[3]};
}

/* In [0, 1), with as many bits as the type holds, so that rounding never gives 1. */
static double uniform(block x, bp_dtype d)
{
    int bits = d == BP_F64 ? 53 : d == BP_F16 ? 11 : d == BP_BF16 ? 8 : 24;
    return ldexp((double)(x.a >> (64 - bits)), -bits);
}

/* Box and Muller's transform of two uniform numbers, the first of which is not 0. */
static double normal(block x)
{
    double u = ldexp((double)((x.a >> 11) + 1), -53), v = ldexp((double)(x.b >> 11), -53);
    return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}

/* In [low, low + range); range 0: all 64 bits. */
static int64_t below(block x, int64_t low, uint64_t range)
{
    return (int64_t)((uint64_t)low + (range ? x.a % range : x.a));
}

/* -- filling a result, in the order of its elements -- */

/* Number i of a call, from its block and the call's parameters. */
typedef num (*sample_fn)(block x, int64_t i, bp_dtype d, const void *params);

static bp_status fill(bp_ctx *c, bp_tensor *out, sample_fn f, const void *params)
{
    stream s = start(c, out);
    walk v;
    walk_start(&v, out->rank, out->sizes);
    walk_add(&v, out->strides);
    for (int64_t i = 0; v.left; walk_next(&v), i++)
        dtype_store(out->dtype, (char *)tensor_ptr(out) + (size_t)v.at[0] * dtype_size(out->dtype),
                    f(draw(&s, i), i, out->dtype, params));
    return c->diag.code;
}

static num of_float(double v) { return (num){.kind = NUM_FLOAT, .f = v}; }

/* Numbers a and b; or, where the pointers are set, one each an element. */
typedef struct {
    double a, b;
    const double *as, *bs;
    int64_t low;
    uint64_t range;
} params;

static double param_a(const params *p, int64_t i) { return p->as ? p->as[i] : p->a; }
static double param_b(const params *p, int64_t i) { return p->bs ? p->bs[i] : p->b; }

/* From a to b, which rounding may reach and must not. */
static num sample_uniform(block x, int64_t i, bp_dtype d, const void *params_)
{
    const params *p = params_;
    double v = uniform(x, d) * (p->b - p->a) + p->a, kept;
    (void)i;
    dtype_store(d, &kept, of_float(v));
    return dtype_load(d, &kept).f >= p->b ? of_float(p->a) : of_float(v);
}

static num sample_normal(block x, int64_t i, bp_dtype d, const void *params_)
{
    const params *p = params_;
    (void)d;
    return of_float(normal(x) * param_b(p, i) + param_a(p, i));
}

static num sample_exponential(block x, int64_t i, bp_dtype d, const void *params_)
{
    const params *p = params_;
    (void)i, (void)d;
    return of_float(-log(ldexp((double)((x.a >> 11) + 1), -53)) / p->a);
}

static num sample_int(block x, int64_t i, bp_dtype d, const void *params_)
{
    const params *p = params_;
    (void)i;
    num v = {.kind = NUM_INT, .i = below(x, p->low, p->range)};
    return dtype_is_integral(d) ? v : of_float((double)v.i);
}

static num sample_bernoulli(block x, int64_t i, bp_dtype d, const void *params_)
{
    bool one = uniform(x, BP_F64) < param_a(params_, i);
    return num_of_int(d, one);
}

bp_status kernel_rand(bp_ctx *c, op_call *k) { return fill(c, k->out[0], sample_uniform, &(params){.b = 1}); }
bp_status kernel_randn(bp_ctx *c, op_call *k) { return fill(c, k->out[0], sample_normal, &(params){.b = 1}); }

bp_status kernel_normal_sized(bp_ctx *c, op_call *k)
{
    return fill(c, k->out[0], sample_normal, &(params){.a = arg_float(k->args, 0), .b = arg_float(k->args, 1)});
}

bp_status kernel_uniform(bp_ctx *c, op_call *k)
{
    return fill(c, k->out[0], sample_uniform, &(params){.a = arg_float(k->args, 1), .b = arg_float(k->args, 2)});
}

bp_status kernel_normal_fill(bp_ctx *c, op_call *k)
{
    return fill(c, k->out[0], sample_normal, &(params){.a = arg_float(k->args, 1), .b = arg_float(k->args, 2)});
}

bp_status kernel_exponential(bp_ctx *c, op_call *k)
{
    double rate = arg_float(k->args, 1);
    if (!(rate > 0))
        return op_fail(c, k->op, BP_INVALID_ARGUMENT, "argument \"lambd\" must be positive, and is %g", rate);
    return fill(c, k->out[0], sample_exponential, &(params){.a = rate});
}

static params range_of(int64_t low, int64_t high)
{
    return (params){.low = low, .range = (uint64_t)high - (uint64_t)low};
}

bp_status kernel_randint(bp_ctx *c, op_call *k)
{
    int32_t low = schema_find(k->op->schema, "low"), high = schema_find(k->op->schema, "high");
    params p = range_of(low < 0 ? 0 : arg_int(c, k->args, (uint32_t)low), arg_int(c, k->args, (uint32_t)high));
    return fill(c, k->out[0], sample_int, &p);
}

/* The integers that a type holds exactly, from 0: random_ without a range. */
static uint64_t natural_range(bp_dtype d)
{
    switch (d) {
    case BP_BOOL: return 2;
    case BP_U8: return 256;
    case BP_I8: return 128;
    case BP_I16: return 1u << 15;
    case BP_I32: return UINT64_C(1) << 31;
    case BP_I64: return UINT64_C(1) << 63;
    case BP_F16: return (1u << 11) + 1;
    case BP_BF16: return (1u << 8) + 1;
    case BP_F32: return (1u << 24) + 1;
    default: return (UINT64_C(1) << 53) + 1;
    }
}

bp_status kernel_random(bp_ctx *c, op_call *k)
{
    int32_t from = schema_find(k->op->schema, "from"), to = schema_find(k->op->schema, "to");
    params p = {.range = natural_range(k->out[0]->dtype)};
    if (from >= 0)
        p.low = arg_int(c, k->args, (uint32_t)from);
    if (to >= 0 && !arg_is_none(k->args, (uint32_t)to)) {
        int64_t high = arg_int(c, k->args, (uint32_t)to);
        if (p.low >= high)
            return op_fail(c, k->op, BP_INVALID_ARGUMENT, "argument \"to\" must be greater than %lld, and is %lld",
                           (long long)p.low, (long long)high);
        p = range_of(p.low, high);
    }
    return fill(c, k->out[0], sample_int, &p);
}

/* A shuffle: place i changes with a later one, or itself. */
bp_status kernel_randperm(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *out = k->out[0];
    int64_t n = tensor_nelem(out), *at = work_alloc(&w, n, sizeof *at);
    stream s = start(c, out);
    for (int64_t i = 0; at && i < n; i++)
        at[i] = i;
    for (int64_t i = 0; at && i < n; i++) {
        int64_t j = below(draw(&s, i), i, (uint64_t)(n - i)), swap = at[i];
        at[i] = at[j];
        at[j] = swap;
    }
    if (work_ok(&w))
        dtype_convert(out->dtype, tensor_ptr(out), 1, BP_I64, at, 1, n);
    return work_end(&w);
}

/* -- from tensors of parameters -- */

/* Argument i broadcast to the result, as doubles; NULL for a number. */
static const double *numbers(work *w, const op_call *k, uint32_t i)
{
    if (k->args[i].kind != BP_VALUE_TENSOR)
        return NULL;
    bp_tensor *t = work_expand(w, arg_tensor(k->args, i), k->out[0]->rank, k->out[0]->sizes);
    t = work_in(w, t, BP_F64);
    return t ? tensor_ptr(t) : NULL;
}

static bp_status check_all(bp_ctx *c, const op_call *k, const double *at, double high, const char *what)
{
    for (int64_t i = 0, n = tensor_nelem(k->out[0]); at && i < n; i++)
        if (!(at[i] >= 0 && at[i] <= high))
            return op_fail(c, k->op, BP_OUT_OF_RANGE, "%s %g", what, at[i]);
    return BP_OK;
}

bp_status kernel_bernoulli(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    int32_t p = schema_find(k->op->schema, "p");
    uint32_t at = p < 0 ? 0 : (uint32_t)p;
    params q = {.as = numbers(&w, k, at),
                .a = p < 0 || k->args[at].kind == BP_VALUE_TENSOR ? 0 : arg_float(k->args, at)};
    if (work_ok(&w) && check_all(c, k, q.as, 1, "a probability is") == BP_OK)
        fill(c, k->out[0], sample_bernoulli, &q);
    return work_end(&w);
}

bp_status kernel_normal_of(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    params p = {.as = numbers(&w, k, 0), .bs = numbers(&w, k, 1)};
    p.a = p.as ? 0 : arg_float(k->args, 0);
    p.b = p.bs ? 0 : arg_float(k->args, 1);
    if (work_ok(&w) && check_all(c, k, p.bs, INFINITY, "a standard deviation is") == BP_OK)
        fill(c, k->out[0], sample_normal, &p);
    return work_end(&w);
}

/* The category at a share u of the sum of n weights; one of weight 0 is never taken. */
static int64_t pick(const double *weights, int64_t n, double u)
{
    double sum = 0, so_far = 0;
    int64_t last = 0;
    for (int64_t i = 0; i < n; i++)
        sum += weights[i];
    for (int64_t i = 0; i < n; i++) {
        so_far += weights[i];
        if (weights[i] > 0) {
            last = i;
            if (so_far > u * sum)
                break;
        }
    }
    return last;
}

static bp_status check_weights(bp_ctx *c, const op_call *k, const double *at, int64_t n, int64_t wanted)
{
    int64_t positive = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!(at[i] >= 0 && at[i] < INFINITY))
            return op_fail(c, k->op, BP_OUT_OF_RANGE, "a probability is %g", at[i]);
        positive += at[i] > 0;
    }
    if (positive == 0 || positive < wanted)
        return op_fail(c, k->op, BP_OUT_OF_RANGE, "%lld samples of %lld categories whose probability is not 0",
                       (long long)wanted, (long long)positive);
    return BP_OK;
}

bp_status kernel_multinomial(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    const bp_tensor *self = arg_tensor(k->args, 0);
    bp_tensor *copy = work_new(&w, BP_F64, self->rank,
                               (int64_t[]){tensor_dim(self, 0), tensor_dim(self, self->rank - 1)});
    int64_t n = tensor_dim(self, self->rank - 1), rows = self->rank == 2 ? tensor_dim(self, 0) : 1;
    int64_t each = arg_int(c, k->args, 1), *out = tensor_ptr(k->out[0]);
    bool again = arg_bool(k->args, 2);
    if (work_ok(&w))
        tensor_copy(c, copy, self);
    stream s = start(c, k->out[0]);
    for (int64_t r = 0; work_ok(&w) && r < rows; r++) {
        double *weights = (double *)tensor_ptr(copy) + r * n;
        check_weights(c, k, weights, n, again ? 1 : each);
        for (int64_t i = 0; work_ok(&w) && i < each; i++) {
            int64_t at = pick(weights, n, uniform(draw(&s, r * each + i), BP_F64));
            out[r * each + i] = at;
            if (!again)
                weights[at] = 0;
        }
    }
    return work_end(&w);
}

/* -- dropout -- */

/* out = in * kept * scale, element by element; mask: where what was kept is written, or NULL. */
static void drop(const stream *s, const bp_tensor *in, bp_tensor *out, bp_tensor *mask, double p)
{
    num scale = of_float(p < 1 ? 1 / (1 - p) : 0);
    size_t size = dtype_size(in->dtype);
    walk v;
    walk_start(&v, out->rank, out->sizes);
    walk_add(&v, out->strides);
    walk_add(&v, in->strides);
    walk_add(&v, mask ? mask->strides : out->strides);
    for (int64_t i = 0; v.left; walk_next(&v), i++) {
        bool kept = uniform(draw(s, i), BP_F64) < 1 - p;
        num x = dtype_load(in->dtype, (const char *)tensor_ptr(in) + (size_t)v.at[1] * size);
        x = num_mul(num_mul(x, of_float(kept)), scale);
        dtype_store(out->dtype, (char *)tensor_ptr(out) + (size_t)v.at[0] * size, x);
        if (mask)
            ((uint8_t *)tensor_ptr(mask))[v.at[2]] = kept;
    }
}

bp_status kernel_dropout(bp_ctx *c, op_call *k)
{
    stream s = start(c, k->out[0]);
    drop(&s, arg_tensor(k->args, 0), k->out[0], NULL, arg_float(k->args, 1));
    return c->diag.code;
}

/* Unless it trains it keeps everything; the generator moves all the same. */
bp_status kernel_native_dropout(bp_ctx *c, op_call *k)
{
    stream s = start(c, k->out[0]);
    bool trains = arg_is_none(k->args, 2) || arg_bool(k->args, 2);
    drop(&s, arg_tensor(k->args, 0), k->out[0], k->out[1], trains ? arg_float(k->args, 1) : 0);
    return c->diag.code;
}

/* -- rrelu -- */

bp_status shape_rrelu(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0), *noise = arg_tensor(s->args, 1);
    double low = scalar_float(arg_scalar(s->args, 2)), high = scalar_float(arg_scalar(s->args, 3));
    TRY(check_same_dtype(c, s, 0, 1));
    if (!dtype_is_float(self->dtype))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"self\": not there for %s",
                       dtype_get(self->dtype)->torch);
    if (!(low <= high))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "slopes from \"lower\" %g to \"upper\" %g", low, high);
    bool fits = noise->rank == self->rank;
    for (uint32_t d = 0; fits && d < self->rank; d++)
        fits = dim_eq(self->sizes[d], noise->sizes[d]);
    if (!fits)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"noise\" has not the sizes of \"self\"");
    return out_like(c, s, self, self->dtype);
}

/* Negative elements times a slope: the middle one, or in training a random one that stays in noise. */
bp_status kernel_rrelu(bp_ctx *c, op_call *k)
{
    const bp_tensor *self = arg_tensor(k->args, 0), *noise = arg_tensor(k->args, 1), *out = k->out[0];
    double low = scalar_float(arg_scalar(k->args, 2)), high = scalar_float(arg_scalar(k->args, 3));
    bool trains = arg_bool(k->args, 4);
    bp_dtype d = self->dtype;
    stream s = start(c, out);
    walk v;
    walk_start(&v, out->rank, out->sizes);
    walk_add(&v, out->strides);
    walk_add(&v, self->strides);
    walk_add(&v, noise->strides);
    for (int64_t i = 0; v.left; walk_next(&v), i++) {
        double x = dtype_load(d, (const char *)tensor_ptr(self) + (size_t)v.at[1] * dtype_size(d)).f;
        double slope = !trains ? (low + high) / 2 : x <= 0 ? low + uniform(draw(&s, i), d) * (high - low) : 1;
        if (trains)
            dtype_store(d, (char *)tensor_ptr(noise) + (size_t)v.at[2] * dtype_size(d), of_float(slope));
        dtype_store(d, (char *)tensor_ptr(out) + (size_t)v.at[0] * dtype_size(d),
                    of_float(x <= 0 ? x * slope : x));
    }
    return c->diag.code;
}
