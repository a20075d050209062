/* Statistics of groups and their use: everything in double, each result rounded once. Variance neither cancels for a
 * large mean nor overflows for large numbers; where all elements of a group are equal, it is 0 and the result is the
 * bias. */
#include "host/op/reference/norm.h"
#include "host/op/reference/fold.h"
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

static void normalize(int64_t n, char *const *data, const int64_t *step, void *params)
{
    (void)params;
    for (int64_t i = 0; i < n; i++) {
        double x = LOOP_AT(const double, 1)[i * step[1]], mean = LOOP_AT(const double, 2)[i * step[2]];
        double scale = LOOP_AT(const double, 3)[i * step[3]], weight = LOOP_AT(const double, 4)[i * step[4]];
        LOOP_AT(double, 0)[i * step[0]] = (x - mean) * scale * weight + LOOP_AT(const double, 5)[i * step[5]];
    }
}

/* A tensor in its own type, read as f64; what is not there is a number. */
static loop_operand operand(bp_tensor *t, double otherwise)
{
    bp_scalar number = {BP_SCALAR_FLOAT, 0, {0}};
    number.v.f[0] = otherwise;
    return (loop_operand){t, number, t ? (bp_dtype)t->dtype : BP_F64, BP_F64};
}

bp_status norm_apply(bp_ctx *c, bp_tensor *out, bp_tensor *x, const norm_stats *s, bp_tensor *weight, bp_tensor *bias)
{
    loop_operand o[] = {operand(out, 0), operand(x, 0), operand(s->mean, 0), operand(s->scale, 1), operand(weight, 1),
                        operand(bias, -0.0)};
    return loop_run(c, 1, 5, o, normalize, NULL);
}
