/* Sums and what is made of them: mean, prod, any, all, counts, logsumexp, norms, variance.
 *
 * Accumulators: f32 and halves in double, f64 with the rounding errors carried along (Neumaier), integers in 64
 * wrapping bits. A product is rounded to its own type at each step, since its overflow is part of the result. Squares
 * and powers of norms are rounded to the type before the root, so that they overflow where PyTorch's do. */
#include "host/base/isa.h"
#include "host/op/reference/cx.h"
#include "host/op/reference/fold.h"
#include "host/op/reference/vector.h"
#include "host/op/rows.h"
#include "host/op/shape_reduce.h"
#include <math.h>

static num float_num(double f) { return (num){NUM_FLOAT, 0, f, 0}; }
static num int_num(int64_t i) { return (num){NUM_INT, i, 0, 0}; }
static double rounded(bp_dtype d, double f) { return d == BP_F32 || d == BP_C64 ? (double)(float)f : f; }

/* s->a += v, the rounding error going to s->b. */
static void add_exactly(double *sum, double *rest, double v)
{
    double total = *sum + v;
    *rest += fabs(*sum) >= fabs(v) ? (*sum - total) + v : (v - total) + *sum;
    *sum = total;
}
/* An infinite or NaN sum has no rest. */
static double total(double sum, double rest)
{
    return isfinite(sum) ? sum + rest : sum;
}

FOLDS_I(sum, s->i = (int64_t)((uint64_t)s->i + (uint64_t)v);)
FOLD(sum_strided_f32, float, s->a += (double)v;)
static void sum_f32(fold_state *s, int64_t n, const char *data, int64_t step, const void *params)
{
    if (step == 1)
        s->a += vector_sum(n, (const void *)data);
    else
        sum_strided_f32(s, n, data, step, params);
}
FOLD(sum_f64, double, add_exactly(&s->a, &s->b, v);)
FOLDS_C(sum, add_exactly(&s->a, &s->b, (double)creal(v)); add_exactly(&s->im, &s->im_b, (double)cimag(v));)
FOLD(nansum_f32, float, s->a += isnan(v) ? 0 : (double)v;)
FOLD(nansum_f64, double, add_exactly(&s->a, &s->b, isnan(v) ? 0 : v);)
#define INTS(name) .u8 = name##_u8, .i8 = name##_i8, .i16 = name##_i16, .i32 = name##_i32, .i64 = name##_i64
#define FLOATS(name) .f32 = name##_f32, .f64 = name##_f64
#define COMPLEXES(name) .c64 = name##_c64, .c128 = name##_c128

/* Many sums of f32: the order of an element's sum is that of sum_strided_f32 across, and of sum_f32 along. */
ISA_INLINE void add_line_body(int64_t n, const float *p, double *sums)
{
    ISA_SIMD
    for (int64_t i = 0; i < n; i++)
        sums[i] += (double)p[i];
}
ISA_FN(add_line, (int64_t n, const float *p, double *sums), (n, p, sums))
ISA_INLINE void end_sums_body(int64_t n, const double *sums, float *out)
{
    ISA_SIMD
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)sums[i];
}
ISA_FN(end_sums, (int64_t n, const double *sums, float *out), (n, sums, out))
static void end_line_of_sums(int64_t n, const double *sums, int64_t seen, float *out)
{
    (void)seen;
    end_sums(n, sums, out);
}
/* As end_mean rounds. */
ISA_INLINE void end_means_body(int64_t n, const double *sums, double seen, float *out)
{
    ISA_SIMD
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)((double)(float)sums[i] / seen);
}
ISA_FN(end_means, (int64_t n, const double *sums, double seen, float *out), (n, sums, seen, out))
static void end_line_of_means(int64_t n, const double *sums, int64_t seen, float *out)
{
    end_means(n, sums, (double)seen, out);
}
static const fold_sums many_sums = {add_line, vector_add_sums, end_line_of_sums},
                       many_means = {add_line, vector_add_sums, end_line_of_means};

static num sum_of(const fold_state *s, bp_dtype d)
{
    if (dtype_is_integral(d))
        return int_num(s->i);
    double re = rounded(d, total(s->a, s->b));
    return dtype_is_complex(d) ? (num){NUM_COMPLEX, 0, re, rounded(d, total(s->im, s->im_b))} : float_num(re);
}
static void end_sum(const fold_state *s, bp_dtype d, num *results, const void *params)
{
    (void)params;
    *results = sum_of(s, d);
}
/* The sum is rounded to its type before it is divided. */
static void end_mean(const fold_state *s, bp_dtype d, num *results, const void *params)
{
    (void)params;
    *results = sum_of(s, d);
    results->f /= (double)s->seen;
    if (dtype_is_complex(d))
        results->im /= (double)s->seen;
}

/* Folds the first argument over its "dim", elements cast to that type first. */
static bp_status run_as(bp_ctx *c, op_call *k, const fold *f, bp_dtype as)
{
    const bp_tensor *t = arg_tensor(k->args, 0);
    uint64_t mask;
    TRY(reduce_mask(c, k->op, k->args, t->rank, &mask));
    return fold_run(c, k, f, t, mask, as, NULL);
}

/* The same, cast to the "dtype" that is asked for. */
static bp_status run(bp_ctx *c, op_call *k, const fold *f)
{
    bp_dtype asked = reduce_dtype(k->op, k->args);
    return run_as(c, k, f, asked ? asked : (bp_dtype)arg_tensor(k->args, 0)->dtype);
}

bp_status kernel_sum(bp_ctx *c, op_call *k)
{
    static const fold f = {.add = {INTS(sum), FLOATS(sum), COMPLEXES(sum)}, .end = end_sum, .sums = &many_sums};
    return run(c, k, &f);
}

bp_status kernel_nansum(bp_ctx *c, op_call *k)
{
    static const fold f = {.add = {INTS(sum), FLOATS(nansum)}, .end = end_sum};
    return run(c, k, &f);
}

bp_status kernel_mean(bp_ctx *c, op_call *k)
{
    static const fold f = {.add = {FLOATS(sum), COMPLEXES(sum)}, .end = end_mean, .sums = &many_means};
    return run_as(c, k, &f, loop_type(k->out[0]->dtype)); /* halves stay f32 until the end */
}

/* nanmean counts what it sums. */
FOLDS_F(nanmean, if (!isnan(v)) { add_exactly(&s->a, &s->b, (double)v); s->i++; })
static void end_nanmean(const fold_state *s, bp_dtype d, num *results, const void *params)
{
    (void)params;
    *results = float_num(rounded(d, total(s->a, s->b)) / (double)s->i);
}
bp_status kernel_nanmean(bp_ctx *c, op_call *k)
{
    static const fold f = {.add = {FLOATS(nanmean)}, .end = end_nanmean};
    return run(c, k, &f);
}

/* -- prod -- */
FOLDS_I(prod, s->i = (int64_t)((uint64_t)s->i * (uint64_t)v);)
FOLD(prod_f32, float, s->a = (double)((float)s->a * v);)
FOLD(prod_f64, double, s->a *= v;)
FOLD(prod_f16, float, s->a = (double)half_to_float(half_from_float((float)s->a * v));)
FOLD(prod_bf16, float, s->a = (double)bfloat16_to_float(bfloat16_from_float((float)s->a * v));)
FOLDS_C(prod, cx z = cx_mul(CMPLX(s->a, s->im), (cx)v); s->a = creal(z); s->im = cimag(z);)
bp_status kernel_prod(bp_ctx *c, op_call *k)
{
    static const fold f = {
        .add = {INTS(prod), FLOATS(prod), COMPLEXES(prod)}, .end = end_sum, .start = {.a = 1, .i = 1}};
    static const fold half = {.add = {.f32 = prod_f16}, .end = end_sum, .start = {.a = 1}},
                      bfloat = {.add = {.f32 = prod_bf16}, .end = end_sum, .start = {.a = 1}};
    bp_dtype d = k->out[0]->dtype;
    return run(c, k, d == BP_F16 ? &half : d == BP_BF16 ? &bfloat : &f);
}

/* -- any, all, count_nonzero: s->i counts what is not 0 -- */
FOLDS_I(count, s->i += v != 0;)
FOLDS_F(count, s->i += v != 0;)
FOLDS_C(count, s->i += v != 0;)
static void end_any(const fold_state *s, bp_dtype d, num *results, const void *params)
{
    (void)d, (void)params;
    *results = int_num(s->i > 0);
}
static void end_all(const fold_state *s, bp_dtype d, num *results, const void *params)
{
    (void)d, (void)params;
    *results = int_num(s->i == s->seen);
}
static void end_count(const fold_state *s, bp_dtype d, num *results, const void *params)
{
    (void)d, (void)params;
    *results = int_num(s->i);
}
#define COUNTING {INTS(count), FLOATS(count), COMPLEXES(count)}
static const fold any_fold = {.add = COUNTING, .end = end_any}, all_fold = {.add = COUNTING, .end = end_all};
bp_status kernel_any(bp_ctx *c, op_call *k) { return run(c, k, &any_fold); }
bp_status kernel_all(bp_ctx *c, op_call *k) { return run(c, k, &all_fold); }

/* An empty list of dimensions folds nothing here. */
static bp_status run_dims(bp_ctx *c, op_call *k, const fold *f)
{
    const bp_tensor *t = arg_tensor(k->args, 0);
    bool is_empty_list = k->args[1].kind == BP_VALUE_LIST && k->args[1].count == 0;
    return is_empty_list ? fold_run(c, k, f, t, 0, (bp_dtype)t->dtype, NULL) : run(c, k, f);
}
bp_status kernel_any_dims(bp_ctx *c, op_call *k) { return run_dims(c, k, &any_fold); }
bp_status kernel_all_dims(bp_ctx *c, op_call *k) { return run_dims(c, k, &all_fold); }

bp_status kernel_count_nonzero(bp_ctx *c, op_call *k)
{
    static const fold f = {.add = COUNTING, .end = end_count};
    return run(c, k, &f);
}

/* -- logsumexp: s->a is the largest so far, s->b the sum of exp(v - largest); an infinite largest counts as 0 -- */
static void add_exp(fold_state *s, double v)
{
    if (v <= s->a) {
        s->b += v == s->a ? 1 : exp(v - s->a);
    } else if (v > s->a) {
        s->b = s->b * exp(s->a - v) + 1;
        s->a = v;
    } else {
        s->im = NAN;
    }
}
FOLDS_F(logsumexp, add_exp(s, (double)v);)
static void end_logsumexp(const fold_state *s, bp_dtype d, num *results, const void *params)
{
    (void)d, (void)params;
    *results = float_num(isinf(s->a) ? s->a + s->im : s->a + log(s->b) + s->im);
}
bp_status kernel_logsumexp(bp_ctx *c, op_call *k)
{
    static const fold f = {.add = {FLOATS(logsumexp)}, .end = end_logsumexp, .start = {.a = -INFINITY}};
    return run_as(c, k, &f, k->out[0]->dtype);
}
