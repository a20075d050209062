/* softmax and its relatives, a line along a dimension at a time. The largest element is taken off first; a line of
 * nothing but -inf, or with a NaN or +inf, is NaN, save in _safe_softmax, where the first of these is 0.
 *
 * Half types round once at the end, but for two places where PyTorch keeps an intermediate in the half type, and where
 * that shows: softmax's exponentials along a dimension that is not the last, and log_softmax's sum and its logarithm
 * along the last. */
#include "host/base/parallel.h"
#include "host/op/reference/loop.h"
#include "host/op/reference/vector.h"
#include "host/op/rows.h"
#include <math.h>
#include <string.h>

enum { PIECE = LOOP_CHUNK };

/* Lines of up to three tensors of one size along a dimension. */
typedef struct lines lines;
struct lines {
    const bp_tensor *in[2];
    bp_tensor *out;
    uint32_t dim;
    bp_dtype as;
    bool is_last;
    void (*line)(const lines *w, const int64_t *at);
};

static double round_half(const lines *w, double v)
{
    if (w->as == BP_F16)
        return (double)half_to_float(half_from_float((float)v));
    return w->as == BP_BF16 ? (double)bfloat16_to_float(bfloat16_from_float((float)v)) : v;
}

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

static int64_t length(const lines *w)
{
    return w->out->rank ? tensor_dim(w->out, w->dim) : 1;
}
static int64_t step_of(const lines *w, const bp_tensor *t)
{
    return t->rank ? tensor_step(t, w->dim) : 0;
}

/* n elements of input k from element `from` of its line on, as doubles rounded to the operator's type. */
static void load(const lines *w, uint32_t k, int64_t at, int64_t from, int64_t n, double *into)
{
    const bp_tensor *t = w->in[k];
    int64_t step = step_of(w, t);
    const char *p = (const char *)tensor_ptr(t) + (at + from * step) * (int64_t)dtype_size(t->dtype);
    loop_convert(BP_F64, into, w->as, t->dtype, p, step, n);
}
static void store(const lines *w, int64_t at, int64_t from, int64_t n, const double *values)
{
    int64_t step = step_of(w, w->out);
    char *p = (char *)tensor_ptr(w->out) + (at + from * step) * (int64_t)dtype_size(w->out->dtype);
    dtype_convert(w->out->dtype, p, step, BP_F64, values, 1, n);
}

static void run_lines(void *arg, int64_t begin, int64_t end)
{
    const lines *w = arg;
    for (int64_t i = begin; i < end; i++) {
        int64_t at[3] = {line_start(w->in[0], w->dim, i), w->in[1] ? line_start(w->in[1], w->dim, i) : 0,
                         line_start(w->out, w->dim, i)};
        w->line(w, at);
    }
}

/* Runs `line` over every line along argument `dim_at`. */
static bp_status run(bp_ctx *c, op_call *k, uint32_t dim_at, bool is_pair, void (*line)(const lines *, const int64_t *))
{
    lines w = {.in = {arg_tensor(k->args, 0), is_pair ? arg_tensor(k->args, 1) : NULL}, .out = k->out[0], .line = line};
    TRY(op_wrap_dim(c, k->op, "dim", arg_int(c, k->args, dim_at), w.out->rank, &w.dim));
    w.as = is_pair ? (bp_dtype)w.in[0]->dtype : (bp_dtype)w.out->dtype;
    w.is_last = w.dim + 1 == w.out->rank;
    int64_t n = length(&w), total = tensor_nelem(w.out);
    if (total > 0)
        parallel_for(total / n, 4096 / n + 1, run_lines, &w);
    return BP_OK;
}

/* The largest element, NaN if there is one, and the sum of exp(element - largest). */
static void measure(const lines *w, const int64_t *at, double *largest, double *sum)
{
    double room[PIECE];
    int64_t n = length(w);
    *largest = -INFINITY;
    *sum = 0;
    for (int64_t done = 0; done < n; done += PIECE) {
        int64_t some = n - done < PIECE ? n - done : PIECE;
        load(w, 0, at[0], done, some, room);
        for (int64_t i = 0; i < some; i++)
            *largest = !(room[i] <= *largest) && !isnan(*largest) ? room[i] : *largest;
    }
    for (int64_t done = 0; done < n; done += PIECE) {
        int64_t some = n - done < PIECE ? n - done : PIECE;
        load(w, 0, at[0], done, some, room);
        for (int64_t i = 0; i < some; i++)
            *sum += exp(room[i] - *largest);
    }
}

#define EACH_PIECE(...)                                              \
    double room[PIECE];                                              \
    int64_t n = length(w);                                           \
    for (int64_t done = 0; done < n; done += PIECE) {                \
        int64_t some = n - done < PIECE ? n - done : PIECE;          \
        load(w, 0, at[0], done, some, room);                         \
        for (int64_t i = 0; i < some; i++)                           \
            room[i] = __VA_ARGS__;                                   \
        store(w, at[2], done, some, room);                           \
    }

/* -- lines of f32 that lie side by side on both sides -- */
static bool is_run(const lines *w)
{
    return w->in[0]->dtype == BP_F32 && w->out->dtype == BP_F32 && (step_of(w, w->in[0]) == 1 || length(w) == 1) &&
           (step_of(w, w->out) == 1 || length(w) == 1);
}
static void softmax_run(const lines *w, const int64_t *at, bool is_safe)
{
    const float *x = (const float *)tensor_ptr(w->in[0]) + at[0];
    float *out = (float *)tensor_ptr(w->out) + at[2], largest = vector_max(length(w), x);
    double sum = vector_exp(length(w), x, largest, out);
    if (is_safe && largest == -INFINITY)
        memset(out, 0, (size_t)length(w) * sizeof *out);
    else
        vector_scale(length(w), out, 1 / sum, out);
}
static void log_softmax_run(const lines *w, const int64_t *at)
{
    const float *x = (const float *)tensor_ptr(w->in[0]) + at[0];
    float *out = (float *)tensor_ptr(w->out) + at[2], largest = vector_max(length(w), x);
    double sum = vector_exp(length(w), x, largest, out);
    vector_shift(length(w), x, (double)largest + log(sum), out);
}

static double part(const lines *w, double v, double largest)
{
    double e = exp(v - largest);
    return w->is_last ? e : round_half(w, e);
}
static void softmax_line(const lines *w, const int64_t *at)
{
    if (is_run(w)) {
        softmax_run(w, at, false);
        return;
    }
    double largest, sum;
    measure(w, at, &largest, &sum);
    EACH_PIECE(part(w, room[i], largest) / sum)
}
static void safe_softmax_line(const lines *w, const int64_t *at)
{
    if (is_run(w)) {
        softmax_run(w, at, true);
        return;
    }
    double largest, sum;
    measure(w, at, &largest, &sum);
    EACH_PIECE(largest == -INFINITY ? 0 : part(w, room[i], largest) / sum)
}
static void log_softmax_line(const lines *w, const int64_t *at)
{
    if (is_run(w)) {
        log_softmax_run(w, at);
        return;
    }
    double largest, sum;
    measure(w, at, &largest, &sum);
    double rest = w->is_last ? round_half(w, log(round_half(w, sum))) : log(sum);
    EACH_PIECE(room[i] - largest - rest)
}
bp_status kernel_softmax(bp_ctx *c, op_call *k) { return run(c, k, 1, false, softmax_line); }
bp_status kernel_safe_softmax(bp_ctx *c, op_call *k) { return run(c, k, 1, false, safe_softmax_line); }
bp_status kernel_log_softmax(bp_ctx *c, op_call *k) { return run(c, k, 1, false, log_softmax_line); }

/* -- backward: input 0 is the gradient, input 1 the output of the forward -- */
/* The sum over the line of grad * output, or of grad alone. */
static double dot_line(const lines *w, const int64_t *at, bool with_output)
{
    double grad[PIECE], output[PIECE], sum = 0;
    int64_t n = length(w);
    for (int64_t done = 0; done < n; done += PIECE) {
        int64_t some = n - done < PIECE ? n - done : PIECE;
        load(w, 0, at[0], done, some, grad);
        load(w, 1, at[1], done, some, output);
        for (int64_t i = 0; i < some; i++)
            sum += with_output ? grad[i] * output[i] : grad[i];
    }
    return sum;
}
#define EACH_PAIR(...)                                               \
    double grad[PIECE], output[PIECE];                               \
    int64_t n = length(w);                                           \
    for (int64_t done = 0; done < n; done += PIECE) {                \
        int64_t some = n - done < PIECE ? n - done : PIECE;          \
        load(w, 0, at[0], done, some, grad);                         \
        load(w, 1, at[1], done, some, output);                       \
        for (int64_t i = 0; i < some; i++)                           \
            grad[i] = __VA_ARGS__;                                   \
        store(w, at[2], done, some, grad);                           \
    }
static void softmax_backward_line(const lines *w, const int64_t *at)
{
    double sum = dot_line(w, at, true);
    EACH_PAIR((grad[i] - sum) * output[i])
}
static void log_softmax_backward_line(const lines *w, const int64_t *at)
{
    double sum = dot_line(w, at, false);
    EACH_PAIR(grad[i] - exp(output[i]) * sum)
}
bp_status kernel_softmax_backward(bp_ctx *c, op_call *k) { return run(c, k, 2, true, softmax_backward_line); }
bp_status kernel_log_softmax_backward(bp_ctx *c, op_call *k) { return run(c, k, 2, true, log_softmax_backward_line); }
