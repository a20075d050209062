/* Statistics of groups and their use: everything in double, each result rounded once. Variance neither cancels for a
 * large mean nor overflows for large numbers; where all elements of a group are equal, it is 0 and the result is the
 * bias. */
#include "host/op/reference/norm.h"
#include "host/op/reference/fold.h"
#include "host/op/reference/loop_vector.h"
#include <math.h>

bp_tensor *norm_new(bp_ctx *c, uint32_t rank, const int64_t *sizes)
{
    return tensor_contiguous_new(c, BP_F64, rank, sizes);
}

static void end_stats(const fold_state *s, bp_dtype d, num *results, const void *params)
{
    double eps = *(const double *)params, variance = s->b / (double)s->seen;
    (void)d;
    results[0] = (num){NUM_FLOAT, 0, s->a, 0};
    results[1] = (num){NUM_FLOAT, 0, isnan(eps) ? variance : 1 / sqrt(variance + eps), 0};
}

void norm_forget(norm_stats *s)
{
    tensor_unref(s->mean);
    tensor_unref(s->scale);
    *s = (norm_stats){NULL, NULL};
}

bp_status norm_measure(bp_ctx *c, const op_row *op, const bp_tensor *x, uint64_t mask, double eps, norm_stats *out)
{
    const fold f = {.add = fold_spread, .end = end_stats};
    int64_t sizes[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < x->rank; d++)
        sizes[d] = mask >> d & 1 ? 1 : tensor_dim(x, d);
    *out = (norm_stats){norm_new(c, x->rank, sizes), norm_new(c, x->rank, sizes)};
    if (out->mean && out->scale) {
        bp_tensor *const results[] = {out->mean, out->scale};
        fold_into(c, op, &f, x, mask, (bp_dtype)x->dtype, 2, results, &eps);
    }
    if (!ctx_ok(c))
        norm_forget(out);
    return c->diag.code;
}

/* Steps are constants where it is inlined: statistics repeat, weight and bias repeat (sw 0), or lie beside x (sw 1). */
#define NORMALIZE(name, T, pragma)                                                                                 \
    ISA_INLINE void name(int64_t n, char *const *data, int64_t so, int64_t sx, int64_t sm, int64_t ss, int64_t sw, \
                         int64_t sb)                                                                               \
    {                                                                                                              \
        const T *x = LOOP_AT(const T, 1), *weight = LOOP_AT(const T, 4), *bias = LOOP_AT(const T, 5);              \
        const double *mean = LOOP_AT(const double, 2), *scale = LOOP_AT(const double, 3);                          \
        T *to = LOOP_AT(T, 0);                                                                                     \
        pragma for (int64_t i = 0; i < n; i++)                                                                     \
        {                                                                                                          \
            double v = ((double)x[i * sx] - mean[i * sm]) * scale[i * ss];                                         \
            to[i * so] = (T)(v * (double)weight[i * sw] + (double)bias[i * sb]);                                   \
        }                                                                                                          \
    }
NORMALIZE(walk_flat, float, ISA_SIMD)
NORMALIZE(walk_f32, float, )
NORMALIZE(walk_f64, double, )

ISA_INLINE void normalize_f32_body(int64_t n, char *const *data, const int64_t *s, void *params)
{
    bool flat = s[0] == 1 && s[1] == 1 && s[2] == 0 && s[3] == 0;
    (void)params;
    if (flat && s[4] == 1 && s[5] == 1)
        walk_flat(n, data, 1, 1, 0, 0, 1, 1);
    else if (flat && s[4] == 0 && s[5] == 0)
        walk_flat(n, data, 1, 1, 0, 0, 0, 0);
    else
        walk_f32(n, data, s[0], s[1], s[2], s[3], s[4], s[5]);
}
ISA_FN(normalize_f32, (int64_t n, char *const *data, const int64_t *step, void *params), (n, data, step, params))

static void normalize_f64(int64_t n, char *const *data, const int64_t *s, void *params)
{
    (void)params;
    walk_f64(n, data, s[0], s[1], s[2], s[3], s[4], s[5]);
}

/* A tensor in its own type, read as `loop`; what is not there is a number. */
static loop_operand operand(bp_tensor *t, double otherwise, bp_dtype loop)
{
    bp_scalar number = {BP_SCALAR_FLOAT, 0, {0}};
    number.v.f[0] = otherwise;
    return (loop_operand){t, number, t ? (bp_dtype)t->dtype : loop, loop};
}

bp_status norm_apply(bp_ctx *c, bp_tensor *out, bp_tensor *x, const norm_stats *s, bp_tensor *weight, bp_tensor *bias)
{
    const bp_tensor *all[] = {out, x, weight, bias};
    bp_dtype loop = BP_F32; /* unless something is wider; halves widen to it exactly */
    for (uint32_t i = 0; i < 4; i++)
        loop = all[i] && dtype_size(all[i]->dtype) > 4 ? BP_F64 : loop;
    loop_operand o[] = {operand(out, 0, loop),           operand(x, 0, loop),      operand(s->mean, 0, BP_F64),
                        operand(s->scale, 1, BP_F64),    operand(weight, 1, loop), operand(bias, -0.0, loop)};
    return loop_run(c, 1, 5, o, loop == BP_F32 ? normalize_f32 : normalize_f64, NULL);
}
