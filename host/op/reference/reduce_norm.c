/* Norms of vectors, and variance. A norm is rounded to its type before its root is taken, as its accumulator overflows
 * there in PyTorch; variance goes through distances from the mean, in double: it neither overflows nor cancels where
 * the sum of squares would. */
#include "host/op/reference/cx.h"
#include "host/op/reference/fold.h"
#include "host/op/rows.h"
#include "host/op/shape_reduce.h"
#include <math.h>

static num float_num(double f) { return (num){NUM_FLOAT, 0, f, 0}; }

static double size_of(cx z) { return hypot(creal(z), cimag(z)); }
#define ORDER (*(const double *)params)
/* Each fold for floats, where v is the element, and for complex numbers, where its size stands for it. */
#define NORM(name, ...)                                          \
    FOLD(name##_f32, float, const double x = fabs((double)v); __VA_ARGS__)  \
    FOLD(name##_f64, double, const double x = fabs(v); __VA_ARGS__)         \
    FOLD(name##_c64, float _Complex, const double x = size_of((cx)v); __VA_ARGS__)  \
    FOLD(name##_c128, double _Complex, const double x = size_of(v); __VA_ARGS__)
#define ALL(name) {.f32 = name##_f32, .f64 = name##_f64, .c64 = name##_c64, .c128 = name##_c128}

/* s->a += y with the rounding error in s->b. */
static void add(fold_state *s, double y)
{
    double total = s->a + y;
    s->b += s->a >= y ? (s->a - total) + y : (y - total) + s->a;
    s->a = total;
}
NORM(squares, add(s, x * x);)
NORM(sizes, add(s, x);)
NORM(powers, add(s, pow(x, ORDER));)
NORM(nonzero, s->a += x != 0;)
NORM(largest, if (!(x <= s->a)) s->a = isnan(s->a) ? s->a : x;)
NORM(smallest, if (!(x >= s->a)) s->a = isnan(s->a) ? s->a : x;)

static double finished(const fold_state *s, bp_dtype d)
{
    double sum = isfinite(s->a) ? s->a + s->b : s->a;
    return d == BP_F32 || d == BP_C64 ? (double)(float)sum : sum;
}
static void end_squares(const fold_state *s, bp_dtype d, num *results, const void *params)
{
    (void)params;
    *results = float_num(sqrt(finished(s, d)));
}
static void end_sizes(const fold_state *s, bp_dtype d, num *results, const void *params)
{
    (void)params;
    *results = float_num(finished(s, d));
}
static void end_powers(const fold_state *s, bp_dtype d, num *results, const void *params)
{
    *results = float_num(pow(finished(s, d), 1 / ORDER));
}

bp_status kernel_vector_norm(bp_ctx *c, op_call *k)
{
    static const fold two = {.add = ALL(squares), .end = end_squares}, one = {.add = ALL(sizes), .end = end_sizes};
    static const fold zero = {.add = ALL(nonzero), .end = end_sizes}, any = {.add = ALL(powers), .end = end_powers};
    static const fold high = {.add = ALL(largest), .end = end_sizes},
                      low = {.add = ALL(smallest), .end = end_sizes, .start = {.a = INFINITY}};
    bp_scalar given = arg_scalar(k->args, 1);
    double order = given.kind ? scalar_float(given) : 2;
    const fold *f = order == 2 ? &two : order == 1 ? &one : order == 0 ? &zero : &any;
    if (isinf(order))
        f = order > 0 ? &high : &low;
    const bp_tensor *t = arg_tensor(k->args, 0);
    bp_dtype asked = reduce_dtype(k->op, k->args);
    uint64_t mask;
    TRY(reduce_mask(c, k->op, k->args, t->rank, &mask));
    return fold_run(c, k, f, t, mask, asked ? asked : (bp_dtype)t->dtype, &order);
}

/* -- variance -- */
typedef struct { double correction; bool is_std; } spread;
static void end_spread(const fold_state *s, bp_dtype d, num *results, const void *params)
{
    const spread *p = params;
    double free = (double)s->seen - p->correction, variance = s->b / (free > 0 ? free : 0);
    (void)d;
    if (s->seen == 0)
        variance = NAN;
    results[0] = float_num(p->is_std ? sqrt(variance) : variance);
    bool is_lost = s->seen == 0 || (isinf(s->a) && s->seen > 1); /* a running mean does not come back from infinity */
    results[1] = float_num(is_lost ? NAN : s->a);
}

/* The correction: 1 where nothing is said, else as the argument "correction" or "unbiased" says. */
static double correction_of(const op_call *k)
{
    int32_t at = schema_find(k->op->schema, "unbiased");
    if (at >= 0)
        return arg_bool(k->args, (uint32_t)at);
    bp_scalar given = arg_scalar(k->args, (uint32_t)schema_find(k->op->schema, "correction"));
    return given.kind ? scalar_float(given) : 1;
}

static bp_status run_spread(bp_ctx *c, op_call *k, bool is_std)
{
    const fold f = {.add = fold_spread, .end = end_spread};
    const bp_tensor *t = arg_tensor(k->args, 0);
    spread p = {correction_of(k), is_std};
    uint64_t mask;
    TRY(reduce_mask(c, k->op, k->args, t->rank, &mask));
    return fold_run(c, k, &f, t, mask, (bp_dtype)t->dtype, &p);
}

bp_status kernel_var(bp_ctx *c, op_call *k) { return run_spread(c, k, false); }
bp_status kernel_std(bp_ctx *c, op_call *k) { return run_spread(c, k, true); }
