/* Extrema and where they are. Of equal elements the first counts; a NaN counts as more than any number, the first of
 * them for good. */
#include "host/op/reference/fold.h"
#include "host/op/rows.h"
#include "host/op/shape_reduce.h"
#include <math.h>

/* s->a (floats) or s->i (integers) is the best so far, s->at its position; nothing was seen while s->at is -1. */
#define BEST_F(name, BETTER) \
    FOLDS_F(name, const double x = (double)v; \
            if (s->at < 0 || (!isnan(s->a) && (isnan(x) || x BETTER s->a))) { \
                s->a = x; \
                s->at = s->seen + i; \
            })
#define BEST_I(name, BETTER) \
    FOLDS_I(name, if (s->at < 0 || (int64_t)v BETTER s->i) { \
        s->i = (int64_t)v; \
        s->at = s->seen + i; \
    })
BEST_F(most, >)
BEST_I(most, >)
BEST_F(least, <)
BEST_I(least, <)
#define ALL(name) \
    {.u8 = name##_u8, .i8 = name##_i8, .i16 = name##_i16, .i32 = name##_i32, .i64 = name##_i64, \
     .f32 = name##_f32, .f64 = name##_f64}

static num best_num(bp_dtype d, double f, int64_t i)
{
    return dtype_is_integral(d) ? (num){NUM_INT, i, 0, 0} : (num){NUM_FLOAT, 0, f, 0};
}
static void end_best(const fold_state *s, bp_dtype d, num *results, const void *params)
{
    (void)params;
    results[0] = best_num(d, s->a, s->i);
    results[1] = (num){NUM_INT, s->at, 0, 0};
}
static void end_where(const fold_state *s, bp_dtype d, num *results, const void *params)
{
    (void)d, (void)params;
    results[0] = (num){NUM_INT, s->at, 0, 0};
}

static bp_status run(bp_ctx *c, op_call *k, const fold *f)
{
    const bp_tensor *t = arg_tensor(k->args, 0);
    uint64_t mask;
    TRY(reduce_mask(c, k->op, k->args, t->rank, &mask));
    return fold_run(c, k, f, t, mask, (bp_dtype)t->dtype, NULL);
}

#define BEST_KERNEL(name, folds, finish) \
    bp_status kernel_##name(bp_ctx *c, op_call *k) \
    { \
        static const fold f = {.add = ALL(folds), .end = finish, .start = {.at = -1}}; \
        return run(c, k, &f); \
    }
BEST_KERNEL(max_fold, most, end_best)
BEST_KERNEL(min_fold, least, end_best)
BEST_KERNEL(argmax, most, end_where)
BEST_KERNEL(argmin, least, end_where)

/* aminmax: the smallest in s->a or s->i, the largest in s->b or s->at; a NaN is both. */
FOLDS_F(both, const double x = (double)v;
        if (s->seen + i == 0 || isnan(x)) {
            s->a = s->b = s->seen + i == 0 || !isnan(s->a) ? x : s->a;
        } else if (!isnan(s->a)) {
            s->a = x < s->a ? x : s->a;
            s->b = x > s->b ? x : s->b;
        })
FOLDS_I(both, const int64_t x = (int64_t)v; const bool is_first = s->seen + i == 0;
        s->i = is_first || x < s->i ? x : s->i;
        s->at = is_first || x > s->at ? x : s->at;)
static void end_both(const fold_state *s, bp_dtype d, num *results, const void *params)
{
    (void)params;
    results[0] = best_num(d, s->a, s->i);
    results[1] = best_num(d, s->b, s->at);
}
bp_status kernel_aminmax(bp_ctx *c, op_call *k)
{
    static const fold f = {.add = ALL(both), .end = end_both};
    return run(c, k, &f);
}
