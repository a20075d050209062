/* Scans: running sums and products along a dimension. Lines are independent and shared among threads.
 *
 * Sums and products of f32 run in double, of halves in f32, of integers in 64 wrapping bits; each result is rounded
 * once from the accumulator. */
#include "host/op/reference/cx.h"
#include "host/op/reference/fold.h"
#include "host/base/parallel.h"
#include "host/op/rows.h"
#include "host/op/shape_reduce.h"
#include <math.h>

enum { ELEMENT_MAX = 16 };

/* Scans n elements of the type read; results go to `wide`: i64, f64 or c128, by the class of the type. */
typedef void (*scan_fn)(fold_state *s, int64_t n, const char *data, char *wide);
typedef struct { scan_fn u8, i8, i16, i32, i64, f16, f32, f64, c64, c128; } scan_table;

typedef struct {
    scan_fn f;
    fold_state start;
    const bp_tensor *in;
    bp_tensor *out;
    uint32_t dim;
    bp_dtype as, loop, wide;
} scanning;

static scan_fn pick(const scan_table *t, bp_dtype as)
{
    switch (as) {
    case BP_BOOL: case BP_U8: return t->u8;
    case BP_I8: return t->i8;
    case BP_I16: return t->i16;
    case BP_I32: return t->i32;
    case BP_I64: return t->i64;
    case BP_F16: case BP_BF16: return t->f16 ? t->f16 : t->f32;
    case BP_F32: return t->f32;
    case BP_F64: return t->f64;
    case BP_C64: return t->c64;
    case BP_C128: return t->c128;
    default: return NULL;
    }
}

/* Where line i of t begins, in elements: its other dimensions counted in row-major order. */
static int64_t line_start(const bp_tensor *t, uint32_t dim, int64_t i)
{
    int64_t at = 0;
    for (uint32_t d = t->rank; d-- > 0;) {
        if (d == dim)
            continue;
        at += i % tensor_dim(t, d) * tensor_step(t, d);
        i /= tensor_dim(t, d);
    }
    return at;
}

static char *element(const bp_tensor *t, int64_t at)
{
    return (char *)tensor_ptr(t) + at * (int64_t)dtype_size(t->dtype);
}

static void scan_line(const scanning *w, int64_t i)
{
    _Alignas(16) char room[LOOP_CHUNK * ELEMENT_MAX], wide[LOOP_CHUNK * ELEMENT_MAX];
    const bp_tensor *in = w->in;
    int64_t n = in->rank ? tensor_dim(in, w->dim) : 1, step = in->rank ? tensor_step(in, w->dim) : 0;
    int64_t from = line_start(in, w->dim, i), to = line_start(w->out, w->dim, i);
    int64_t out_step = in->rank ? tensor_step(w->out, w->dim) : 0;
    fold_state s = w->start;
    for (int64_t done = 0; done < n; done += LOOP_CHUNK) {
        int64_t some = n - done < LOOP_CHUNK ? n - done : LOOP_CHUNK, at = to + done * out_step;
        loop_convert(w->loop, room, w->as, in->dtype, element(in, from + done * step), step, some);
        w->f(&s, some, room, wide);
        dtype_convert(w->out->dtype, element(w->out, at), out_step, w->wide, wide, 1, some);
    }
}

static void scan_range(void *arg, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        scan_line(arg, i);
}

static bp_status run(bp_ctx *c, op_call *k, const scan_table *t, fold_state start)
{
    const bp_tensor *in = arg_tensor(k->args, 0);
    bp_dtype asked = reduce_dtype(k->op, k->args), as = asked ? asked : (bp_dtype)in->dtype;
    scanning w = {.f = pick(t, as), .start = start, .in = in, .out = k->out[0], .as = as};
    if (!w.f)
        return loop_no_type(c, k->op, as);
    TRY(reduce_one_dim(c, k->op, k->args, in->rank, &w.dim));
    w.loop = loop_type(as);
    w.wide = dtype_is_complex(as) ? BP_C128 : dtype_is_float(as) ? BP_F64 : BP_I64;
    int64_t n = in->rank ? tensor_dim(in, w.dim) : 1, total = tensor_nelem(in);
    if (total > 0)
        parallel_for(total / n, 8192 / n + 1, scan_range, &w);
    return BP_OK;
}

/* -- the scans: a statement on s and v, then what is written -- */
#define SCAN(fn, TI, TW, STATEMENT, VALUE)                                                              \
    static void fn(fold_state *s, int64_t n, const char *data, char *wide)                              \
    {                                                                                                   \
        const TI *p = (const void *)data;                                                               \
        TW *o = (void *)wide;                                                                           \
        for (int64_t i = 0; i < n; i++) {                                                               \
            const TI v = p[i];                                                                          \
            STATEMENT                                                                                   \
            o[i] = VALUE;                                                                               \
        }                                                                                               \
    }
#define SCANS_I(name, STATEMENT)                         \
    SCAN(name##_u8, uint8_t, int64_t, STATEMENT, s->i)   \
    SCAN(name##_i8, int8_t, int64_t, STATEMENT, s->i)    \
    SCAN(name##_i16, int16_t, int64_t, STATEMENT, s->i)  \
    SCAN(name##_i32, int32_t, int64_t, STATEMENT, s->i)  \
    SCAN(name##_i64, int64_t, int64_t, STATEMENT, s->i)
#define SCANS_F(name, STATEMENT)                         \
    SCAN(name##_f32, float, double, STATEMENT, s->a)     \
    SCAN(name##_f64, double, double, STATEMENT, s->a)
#define SCANS_C(name, STATEMENT)                                                      \
    SCAN(name##_c64, float _Complex, cx, STATEMENT, CMPLX(s->a, s->im))               \
    SCAN(name##_c128, double _Complex, cx, STATEMENT, CMPLX(s->a, s->im))
#define INTS(name) .u8 = name##_u8, .i8 = name##_i8, .i16 = name##_i16, .i32 = name##_i32, .i64 = name##_i64
#define FLOATS(name) .f32 = name##_f32, .f64 = name##_f64
#define COMPLEXES(name) .c64 = name##_c64, .c128 = name##_c128

SCANS_I(cumsum, s->i = (int64_t)((uint64_t)s->i + (uint64_t)v);)
SCANS_F(cumsum, s->a += (double)v;)
SCANS_C(cumsum, s->a += (double)creal(v); s->im += (double)cimag(v);)
SCAN(cumsum_f16, float, double, s->a = (double)((float)s->a + v);, s->a)
bp_status kernel_cumsum(bp_ctx *c, op_call *k)
{
    static const scan_table t = {INTS(cumsum), .f16 = cumsum_f16, FLOATS(cumsum), COMPLEXES(cumsum)};
    return run(c, k, &t, (fold_state){0});
}

SCANS_I(cumprod, s->i = (int64_t)((uint64_t)s->i * (uint64_t)v);)
SCANS_F(cumprod, s->a *= (double)v;)
SCANS_C(cumprod, cx z = cx_mul(CMPLX(s->a, s->im), (cx)v); s->a = creal(z); s->im = cimag(z);)
SCAN(cumprod_f16, float, double, s->a = (double)((float)s->a * v);, s->a)
bp_status kernel_cumprod(bp_ctx *c, op_call *k)
{
    static const scan_table t = {INTS(cumprod), .f16 = cumprod_f16, FLOATS(cumprod), COMPLEXES(cumprod)};
    return run(c, k, &t, (fold_state){.a = 1, .i = 1});
}

static double log_add(double x, double y)
{
    if (isnan(x) || isnan(y))
        return NAN;
    double low = x < y ? x : y, high = x < y ? y : x;
    return low == high && !isfinite(low) ? low : log1p(exp(low - high)) + high;
}
SCANS_F(logcumsumexp, s->a = log_add(s->a, (double)v);)
bp_status kernel_logcumsumexp(bp_ctx *c, op_call *k)
{
    static const scan_table t = {FLOATS(logcumsumexp)};
    return run(c, k, &t, (fold_state){.a = -INFINITY});
}
