/* Losses that are one formula an element, their gradients, and the negative log likelihood.
 *
 * Elements are computed and rounded as PyTorch's kernels round them (each half type has formulas of its own), laid
 * down, and then averaged or summed by those operators. */
#include "host/op/reference/loop.h"
#include "host/op/rows.h"
#include <math.h>
#include <stdatomic.h>
#include <tgmath.h>

static int64_t reduction_of(bp_ctx *c, const op_call *k)
{
    return arg_int(c, k->args, (uint32_t)schema_find(k->op->schema, "reduction"));
}

/* A contiguous tensor of the sizes that two operands and perhaps a weight broadcast to. */
static bp_tensor *new_broadcast(bp_ctx *c, const op_call *k, bp_dtype d, uint32_t n)
{
    bp_dim sizes[2][TENSOR_MAX_RANK];
    uint32_t rank = 0, now = 0;
    for (uint32_t i = 0; i < n; i++) {
        const bp_tensor *t = arg_tensor(k->args, i);
        if (!t)
            continue;
        if (layout_broadcast(c, rank, sizes[now], t->rank, t->sizes, sizes[now ^ 1]) != BP_OK)
            return NULL;
        now ^= 1;
        rank = rank > t->rank ? rank : t->rank;
    }
    int64_t plain[TENSOR_MAX_RANK];
    for (uint32_t d_at = 0; d_at < rank; d_at++)
        plain[d_at] = sizes[now][d_at].value;
    return tensor_contiguous_new(c, d, rank, plain);
}

/* Runs f over arguments [0, n) and reduces what it wrote. A weight that is not there is the number 1. */
static bp_status run_loss(bp_ctx *c, op_call *k, const loop_table *loops, uint32_t n, void *params)
{
    bp_dtype d = k->out[0]->dtype;
    loop_fn f = loop_pick(loops, d);
    int64_t reduction = reduction_of(c, k);
    if (!f)
        return loop_no_type(c, k->op, d);
    bp_tensor *each = reduction == 0 ? tensor_ref(k->out[0]) : new_broadcast(c, k, d, n);
    if (!each)
        return c->diag.code;
    loop_operand o[LOOP_OPERANDS] = {{each, {0, 0, {0}}, d, loop_type(d)}};
    for (uint32_t i = 0; i < n; i++) {
        o[1 + i] = loop_arg(k, i, d);
        if (!o[1 + i].t)
            o[1 + i].number = (bp_scalar){BP_SCALAR_INT, 0, {1}};
    }
    bp_status st = loop_run(c, 1, n, o, f, params);
    bp_value whole = value_tensor(each);
    if (st == BP_OK && reduction != 0)
        st = op_deliver(c, k, 0, op_call1(c, reduction == 1 ? ROW_mean_default : ROW_sum_default, 1, &whole));
    tensor_unref(each);
    return st;
}

#define SQUARED(R) (R(a - b) * R(a - b))
LOOPS_STEPS(LOOP_2, mse, SQUARED)
bp_status kernel_mse_loss(bp_ctx *c, op_call *k)
{
    static const loop_table loops = {LOOP_SET_STEPS(mse)};
    return run_loss(c, k, &loops, 2, NULL);
}

/* smooth_l1: number 0 is beta; 0 makes it l1. */
#define AWAY(R) R(fabs(R(a - b)))
#define SMOOTH(R) \
    (AWAY(R) < LOOP_NUM(0) ? R(R((T)0.5 * AWAY(R)) * AWAY(R)) / R(LOOP_NUM(0)) : AWAY(R) - R((T)0.5 * R(LOOP_NUM(0))))
LOOPS_F(LOOP_2, smooth_l1, SMOOTH(ROUND_NOT))
LOOP_2(smooth_l1_f16, float, float, SMOOTH(ROUND_F16))
bp_status kernel_smooth_l1_loss(bp_ctx *c, op_call *k)
{
    static const loop_table loops = {LOOP_SET_F(smooth_l1), .f16 = smooth_l1_f16};
    loop_number beta = {arg_float(k->args, 3), 0, 0};
    if (!(beta.f >= 0))
        return op_fail(c, k->op, BP_INVALID_ARGUMENT, "argument \"beta\": %g is negative", beta.f);
    return run_loss(c, k, &loops, 2, &beta);
}

/* huber: number 0 is delta. */
#define HUBER(R)                                                            \
    (AWAY(R) <= R(LOOP_NUM(0)) ? R((T)0.5 * AWAY(R)) * AWAY(R)              \
                               : R(LOOP_NUM(0)) * R(AWAY(R) - R((T)0.5 * R(LOOP_NUM(0)))))
LOOPS_F(LOOP_2, huber, HUBER(ROUND_NOT))
LOOP_2(huber_bf16, float, float, HUBER(ROUND_BF16))
bp_status kernel_huber_loss(bp_ctx *c, op_call *k)
{
    static const loop_table loops = {LOOP_SET_F(huber), .bf16 = huber_bf16};
    loop_number delta = {arg_float(k->args, 3), 0, 0};
    if (!(delta.f > 0))
        return op_fail(c, k->op, BP_INVALID_ARGUMENT, "argument \"delta\": %g is not positive", delta.f);
    return run_loss(c, k, &loops, 2, &delta);
}

/* binary_cross_entropy: logarithms are cut at -100; a probability outside [0, 1] is an error of the data. */
#define OUTSIDE (!(a >= 0 && a <= 1) ? atomic_store_explicit((atomic_int *)params, 1, memory_order_relaxed) : (void)0)
#define CUT(x) ((x) < -100 ? (T)-100 : (x))
#define ENTROPY(R) \
    (OUTSIDE, R(R(R(b - (T)1) * CUT(R(log1p(-a)))) - R(b * CUT(R(log(a))))) * e)
LOOPS_STEPS(LOOP_3, entropy, ENTROPY)
bp_status kernel_binary_cross_entropy(bp_ctx *c, op_call *k)
{
    static const loop_table loops = {LOOP_SET_STEPS(entropy)};
    atomic_int is_outside = 0;
    TRY(run_loss(c, k, &loops, 3, &is_outside));
    if (atomic_load(&is_outside))
        return op_fail(c, k->op, BP_OUT_OF_RANGE, "argument \"self\": an element is not between 0 and 1");
    return BP_OK;
}

/* -- gradients: operands are the gradient, self, target; number 0 is 1 / n for means, else 1 -- */
static bp_status run_backward(bp_ctx *c, op_call *k, const loop_table *loops, double number)
{
    bp_dtype d = k->out[0]->dtype;
    loop_fn f = loop_pick(loops, d);
    if (!f)
        return loop_no_type(c, k->op, d);
    int64_t n = tensor_nelem(arg_tensor(k->args, 1));
    loop_number numbers[] = {{reduction_of(c, k) == 1 ? 1 / (double)n : 1, 0, 0}, {number, 0, 0}};
    loop_operand o[] = {loop_out(k, 0, loop_type(d)), loop_arg(k, 0, d), loop_arg(k, 1, d), loop_arg(k, 2, d)};
    return loop_run(c, 1, 3, o, f, numbers);
}

LOOPS_F(LOOP_3, mse_backward, LOOP_NUM(0) * 2 * (b - e) * a)
LOOPS_F(LOOP_3, smooth_l1_backward,
        b - e <= -LOOP_NUM(1) ? -LOOP_NUM(0) * a
        : b - e >= LOOP_NUM(1) ? LOOP_NUM(0) * a : LOOP_NUM(0) * (b - e) * a / LOOP_NUM(1))
LOOPS_F(LOOP_3, huber_backward,
        b - e <= -LOOP_NUM(1) ? -LOOP_NUM(0) * a * LOOP_NUM(1)
        : b - e >= LOOP_NUM(1) ? LOOP_NUM(0) * a * LOOP_NUM(1) : LOOP_NUM(0) * (b - e) * a)
LOOPS_F(LOOP_3, soft_margin_backward, -e * LOOP_NUM(0) * a * (exp(-e * b) / ((T)1 + exp(-e * b))))
#define BACKWARD(name, number)                                       \
    bp_status kernel_##name(bp_ctx *c, op_call *k)                   \
    {                                                                \
        static const loop_table loops = {LOOP_SET_F(name)};          \
        return run_backward(c, k, &loops, number);                   \
    }
BACKWARD(mse_backward, 0)
BACKWARD(smooth_l1_backward, arg_float(k->args, 4))
BACKWARD(huber_backward, arg_float(k->args, 4))
BACKWARD(soft_margin_backward, 0)

#define ENTROPY_SLOPE(x, t) (((x) - (t)) / (((T)1 - (x)) * (x) < (T)1e-12 ? (T)1e-12 : ((T)1 - (x)) * (x)))
LOOPS_F(LOOP_3, entropy_backward, a *ENTROPY_SLOPE(b, e) * LOOP_NUM(0))
bp_status kernel_binary_cross_entropy_backward(bp_ctx *c, op_call *k)
{
    static const loop_table loops = {LOOP_SET_F(entropy_backward)};
    TRY(run_backward(c, k, &loops, 0));
    bp_value both[] = {value_tensor(k->out[0]), value_tensor(arg_tensor(k->args, 3))};
    return both[1].kind == BP_VALUE_NONE ? BP_OK : op_deliver(c, k, 0, op_call1(c, ROW_mul_tensor, 2, both));
}

/* -- negative log likelihood -- */
/* self as [n, classes, inner] by strides of its own; target as [n, inner], counted. */
typedef struct {
    const bp_tensor *x, *target, *weight;
    int64_t n, classes, inner, ignored;
} likelihood;

static likelihood read_likelihood(bp_ctx *c, const op_call *k, uint32_t self)
{
    const bp_value *a = k->args;
    likelihood l = {arg_tensor(a, self), arg_tensor(a, self + 1), arg_tensor(a, self + 2), 1, 0, 1, 0};
    l.classes = tensor_dim(l.x, l.x->rank == 1 ? 0 : 1);
    l.n = l.x->rank == 1 ? 1 : tensor_dim(l.x, 0);
    for (uint32_t d = 2; d < l.x->rank; d++)
        l.inner *= tensor_dim(l.x, d);
    l.ignored = arg_int(c, k->args, (uint32_t)schema_find(k->op->schema, "ignore_index"));
    return l;
}

/* Offset in elements of element i, counted in row-major order over the dimensions from `first` on. */
static int64_t offset_of(const bp_tensor *t, uint32_t first, int64_t i)
{
    int64_t at = 0;
    for (uint32_t d = t->rank; d-- > first; i /= tensor_dim(t, d))
        at += i % tensor_dim(t, d) * tensor_step(t, d);
    return at;
}

static num element(const bp_tensor *t, int64_t at)
{
    return dtype_load(t->dtype, (const char *)tensor_ptr(t) + at * (int64_t)dtype_size(t->dtype));
}

/* The class of sample i, -1 when it is ignored; out of range: an error of the data, and -1. */
static int64_t class_of(bp_ctx *c, const op_row *op, const likelihood *l, int64_t i)
{
    int64_t class = element(l->target, offset_of(l->target, 0, i)).i;
    if (class == l->ignored)
        return -1;
    if (class >= 0 && class < l->classes)
        return class;
    op_fail(c, op, BP_OUT_OF_RANGE, "argument \"target\": %lld is no class of %lld", (long long)class,
            (long long)l->classes);
    return -1;
}

static int64_t place(const likelihood *l, const bp_tensor *x, int64_t i, int64_t class)
{
    if (x->rank == 1)
        return class * tensor_step(x, 0);
    return i / l->inner * tensor_step(x, 0) + class * tensor_step(x, 1) + offset_of(x, 2, i % l->inner);
}

static double weight_of(const likelihood *l, int64_t class)
{
    return l->weight ? element(l->weight, class * tensor_step(l->weight, 0)).f : 1;
}

static void put(bp_tensor *t, int64_t at, double v)
{
    dtype_store(t->dtype, (char *)tensor_ptr(t) + at * (int64_t)dtype_size(t->dtype), (num){NUM_FLOAT, 0, v, 0});
}

/* A sum in levels, as PyTorch's: each 16 terms of a level make one of the next. Halves are rounded at each step, floats
 * are summed in double. */
enum { LEVELS = 8, LEVEL_BITS = 4 };
typedef struct { double at[LEVELS]; int64_t n; bp_dtype d; } cascade;

static double rounded(const cascade *s, double v)
{
    return s->d == BP_F16 || s->d == BP_BF16 ? loop_round(s->d, v) : v;
}

static void add_term(cascade *s, double v)
{
    s->at[0] = rounded(s, s->at[0] + v);
    s->n++;
    for (uint32_t i = 0; i + 1 < LEVELS && (s->n & ((INT64_C(1) << LEVEL_BITS * (i + 1)) - 1)) == 0; i++) {
        s->at[i + 1] = rounded(s, s->at[i + 1] + s->at[i]);
        s->at[i] = 0;
    }
}

static double sum_of(const cascade *s)
{
    double sum = 0;
    for (uint32_t i = 0; i < LEVELS; i++)
        sum = rounded(s, sum + s->at[i]);
    return sum;
}

/* Output 0 is a loss each or the mean or sum; output 1, where there is one, the sum of the weights (0 for each). */
bp_status kernel_nll_loss(bp_ctx *c, op_call *k)
{
    likelihood l = read_likelihood(c, k, 0);
    int64_t reduction = reduction_of(c, k);
    bool is_each = reduction == 0 && l.x->rank > 1;
    cascade sum = {{0}, 0, (bp_dtype)l.x->dtype}, total = sum;
    for (int64_t i = 0; i < l.n * l.inner && ctx_ok(c); i++) {
        int64_t class = class_of(c, k->op, &l, i);
        double w = class < 0 ? 0 : weight_of(&l, class);
        double loss = class < 0 ? 0 : rounded(&sum, -w * element(l.x, place(&l, l.x, i, class)).f);
        if (is_each)
            put(k->out[0], offset_of(k->out[0], 0, i), loss);
        add_term(&sum, loss);
        add_term(&total, w);
    }
    if (!is_each)
        put(k->out[0], 0, reduction == 1 ? sum_of(&sum) / sum_of(&total) : sum_of(&sum));
    if (k->nout > 1)
        put(k->out[1], 0, is_each ? 0 : sum_of(&total));
    return c->diag.code;
}

bp_status kernel_nll_backward(bp_ctx *c, op_call *k)
{
    likelihood l = read_likelihood(c, k, 1);
    const bp_tensor *grad = arg_tensor(k->args, 0);
    int64_t reduction = reduction_of(c, k);
    bool is_each = reduction == 0 && l.x->rank > 1;
    double total = reduction == 1 ? element(arg_tensor(k->args, 6), 0).f : 1;
    TRY(loop_fill(c, k->out[0], (bp_scalar){BP_SCALAR_INT, 0, {0}}));
    for (int64_t i = 0; i < l.n * l.inner && ctx_ok(c); i++) {
        int64_t class = class_of(c, k->op, &l, i);
        double g = element(grad, is_each ? offset_of(grad, 0, i) : 0).f;
        if (class >= 0)
            put(k->out[0], place(&l, k->out[0], i, class), -weight_of(&l, class) * g / total);
    }
    return c->diag.code;
}
