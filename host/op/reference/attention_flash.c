/* Attention as PyTorch's CPU kernel has it: besides the result the logarithm of each row's sum, from which the gradient
 * computes the weights again. No dropout; a mask is added to the scores. A row of which nothing is left gives zeros. */
#include "host/base/isa.h"
#include "host/base/parallel.h"
#include "host/op/checks.h"
#include "host/op/reference/work.h"
#include "host/op/rows.h"
#include <math.h>
#include <string.h>

static uint32_t named(const op_row *op, const char *name) { return (uint32_t)schema_find(op->schema, name); }

static bp_status check_flash(bp_ctx *c, const shape_call *s)
{
    uint32_t q = named(s->op, "query"), mask = named(s->op, "attn_mask");
    const bp_tensor *t[3] = {arg_tensor(s->args, q), arg_tensor(s->args, q + 1), arg_tensor(s->args, q + 2)};
    for (uint32_t i = 0; i < 3; i++) {
        bool fits = t[i]->rank == 4 && t[i]->dtype == t[0]->dtype && dim_eq(t[i]->sizes[0], t[0]->sizes[0]) &&
                    dim_eq(t[i]->sizes[1], t[0]->sizes[1]) && dim_eq(t[i]->sizes[3], t[0]->sizes[3]) &&
                    (i == 0 || dim_eq(t[i]->sizes[2], t[1]->sizes[2]));
        if (!fits)
            return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                           "argument \"%s\": expected 4 dimensions, of the query's batch, heads and size of head",
                           s->op->schema->args[q + i].name);
    }
    double p = arg_float(s->args, named(s->op, "dropout_p"));
    if (!dtype_is_float(t[0]->dtype) || p != 0)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "not there for %s with a dropout of %g",
                       dtype_get(t[0]->dtype)->torch, p);
    if (!arg_tensor(s->args, mask))
        return BP_OK;
    TRY(check_same_dtype(c, s, q, mask));
    return check_expands(c, s, mask, 4,
                         (bp_dim[]){t[0]->sizes[0], t[0]->sizes[1], t[0]->sizes[2], t[1]->sizes[2]});
}

/* Adds [batch, heads, n, size] laid out as [batch, n, heads, size]. */
static bp_status add_turned(bp_ctx *c, shape_call *s, const bp_tensor *t)
{
    shape_out *o = shape_add_out(c, s, t->dtype, 4, t->sizes);
    if (!o)
        return c->diag.code;
    bp_dim head = t->sizes[3], row = dim_mul(c, head, t->sizes[1]);
    bp_dim strides[4] = {dim_mul(c, row, t->sizes[2]), head, row, dim_const(1)};
    memcpy(o->meta.strides, strides, sizeof strides);
    return c->diag.code;
}

bp_status shape_flash_attention(bp_ctx *c, shape_call *s)
{
    const bp_tensor *q = arg_tensor(s->args, 0);
    TRY(check_flash(c, s));
    TRY(out_like(c, s, q, q->dtype));
    shape_out *o = shape_add_out(c, s, q->dtype == BP_F64 ? BP_F64 : BP_F32, 3, q->sizes);
    if (!o)
        return c->diag.code;
    bp_dim strides[3] = {dim_mul(c, q->sizes[1], q->sizes[2]), dim_const(1), q->sizes[1]};
    memcpy(o->meta.strides, strides, sizeof strides);
    return c->diag.code;
}

bp_status shape_flash_attention_backward(bp_ctx *c, shape_call *s)
{
    TRY(check_flash(c, s));
    const bp_tensor *q = arg_tensor(s->args, 1), *sums = arg_tensor(s->args, 5);
    for (uint32_t i = 0; i < 5; i += 4) { /* grad_out and out */
        TRY(check_rank(c, s, i, 4, 4));
        TRY(check_expands(c, s, i, 4, q->sizes));
        TRY(check_same_dtype(c, s, i, 1));
        if (!dim_eq(arg_tensor(s->args, i)->sizes[2], q->sizes[2]))
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"%s\" has not the query's sizes",
                           s->op->schema->args[i].name);
    }
    TRY(check_rank(c, s, 5, 3, 3));
    if (!dim_eq(sums->sizes[2], q->sizes[2]))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"logsumexp\": expected a number for each of %lld rows",
                       (long long)q->sizes[2].value);
    for (uint32_t i = 1; i < 4; i++)
        TRY(add_turned(c, s, arg_tensor(s->args, i)));
    return BP_OK;
}

/* -- kernels -- */

typedef struct {
    const double *q, *k, *v, *mask;
    int64_t heads, rows, keys, size;
    double scale;
    bool causal;
    double *room;             /* 2 * keys a head */
    double *out, *sums;       /* the forward's results, written or read */
    const double *grad;       /* of the backward, with what it gives for query, key and value */
    double *to[3];
} flash_run;

static const double *elements(work *w, bp_tensor *t)
{
    bp_tensor *x = work_in(w, t, BP_F64);
    return x ? tensor_ptr(x) : NULL;
}

static bool start(work *w, const op_call *k, flash_run *r)
{
    uint32_t at = named(k->op, "query"), scale = named(k->op, "scale");
    const bp_value *a = k->args;
    const bp_tensor *q = arg_tensor(a, at), *key = arg_tensor(a, at + 1);
    *r = (flash_run){elements(w, arg_tensor(a, at)), elements(w, arg_tensor(a, at + 1)),
                     elements(w, arg_tensor(a, at + 2)), NULL, tensor_dim(q, 0) * tensor_dim(q, 1), tensor_dim(q, 2),
                     tensor_dim(key, 2), tensor_dim(q, 3), 0, arg_bool(a, named(k->op, "is_causal")),
                     NULL, NULL, NULL, NULL, {NULL, NULL, NULL}};
    r->scale = arg_is_none(a, scale) ? 1 / sqrt((double)r->size) : arg_float(a, scale);
    bp_tensor *mask = arg_tensor(a, named(k->op, "attn_mask"));
    if (mask && work_ok(w))
        r->mask = elements(w, work_expand(w, mask, 4,
                                          (bp_dim[]){q->sizes[0], q->sizes[1], q->sizes[2], key->sizes[2]}));
    r->room = work_alloc(w, r->heads * r->keys * 2, sizeof *r->room);
    return work_ok(w);
}

/* -- a row -- */

enum { LANES = 8 };
typedef double lanes __attribute__((vector_size(8 * LANES)));

/* to[j] = the products of q and row j of k, n elements each: in LANES sums, which are added in a fixed order. */
ISA_INLINE void dots_body(int64_t n, const double *q, const double *k, int64_t rows, double *to)
{
    for (int64_t j = 0; j < rows; j++, k += n) {
        lanes s = {0}, x, y;
        double rest = 0;
        int64_t d = 0;
        for (; d + LANES <= n; d += LANES) {
            memcpy(&x, q + d, sizeof x);
            memcpy(&y, k + d, sizeof y);
            s += x * y;
        }
        for (; d < n; d++)
            rest += q[d] * k[d];
        to[j] = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7])) + rest;
    }
}
ISA_FN(dots, (int64_t n, const double *q, const double *k, int64_t rows, double *to), (n, q, k, rows, to))

/* to += factor[j] * row j of k. */
ISA_INLINE void gather_body(int64_t n, const double *factor, const double *k, int64_t rows, double *restrict to)
{
    for (int64_t j = 0; j < rows; j++, k += n) {
        ISA_SIMD for (int64_t d = 0; d < n; d++)
            to[d] += factor[j] * k[d];
    }
}
ISA_FN(gather, (int64_t n, const double *factor, const double *k, int64_t rows, double *to), (n, factor, k, rows, to))

/* Row j of `to` += factor[j] * q. */
ISA_INLINE void scatter_body(int64_t n, const double *factor, const double *q, int64_t rows, double *restrict to)
{
    for (int64_t j = 0; j < rows; j++, to += n) {
        ISA_SIMD for (int64_t d = 0; d < n; d++)
            to[d] += factor[j] * q[d];
    }
}
ISA_FN(scatter, (int64_t n, const double *factor, const double *q, int64_t rows, double *to), (n, factor, q, rows, to))

static void score_row(const flash_run *r, int64_t head, int64_t i, double *to)
{
    int64_t row = head * r->rows + i;
    dots(r->size, r->q + row * r->size, r->k + head * r->keys * r->size, r->keys, to);
    for (int64_t j = 0; j < r->keys; j++)
        to[j] = r->causal && j > i ? -INFINITY : to[j] * r->scale + (r->mask ? r->mask[row * r->keys + j] : 0);
}

/* Row i of a head: its result, and the logarithm of its sum. */
static double run_row(const flash_run *r, int64_t head, int64_t i, double *weight, double *out)
{
    double top = -INFINITY, sum = 0;
    memset(out, 0, (size_t)r->size * sizeof *out);
    score_row(r, head, i, weight);
    for (int64_t j = 0; j < r->keys; j++)
        top = weight[j] > top || isnan(weight[j]) ? weight[j] : top;
    if (top == -INFINITY)
        return 0;
    for (int64_t j = 0; j < r->keys; j++)
        sum += weight[j] = exp(weight[j] - top);
    for (int64_t j = 0; j < r->keys; j++)
        weight[j] /= sum;
    gather(r->size, weight, r->v + head * r->keys * r->size, r->keys, out);
    return top + log(sum);
}

static void run_heads(void *arg, int64_t begin, int64_t end)
{
    const flash_run *r = arg;
    for (int64_t i = begin * r->rows; i < end * r->rows; i++)
        r->sums[i] = run_row(r, i / r->rows, i % r->rows, r->room + i / r->rows * 2 * r->keys, r->out + i * r->size);
}

bp_status kernel_flash_attention(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    flash_run r;
    bp_tensor *out = work_out(&w, k->out[0], BP_F64), *sums = work_out(&w, k->out[1], BP_F64);
    if (work_ok(&w) && start(&w, k, &r)) {
        r.out = tensor_ptr(out);
        r.sums = tensor_ptr(sums);
        parallel_for(r.heads, 1, run_heads, &r);
    }
    return work_end(&w);
}

/* What comes back for row i, spread to the query's row and to all keys and values of the head. */
static void spread_row(const flash_run *r, int64_t head, int64_t i)
{
    int64_t row = (head * r->rows + i) * r->size, keys = head * r->keys * r->size;
    double *weight = r->room + head * 2 * r->keys, *slope = weight + r->keys, through;
    const double *grad = r->grad + row;
    dots(r->size, grad, r->out + row, 1, &through);
    score_row(r, head, i, weight);
    dots(r->size, grad, r->v + keys, r->keys, slope);
    for (int64_t j = 0; j < r->keys; j++) {
        weight[j] = exp(weight[j] - r->sums[head * r->rows + i]);
        slope[j] = weight[j] * (slope[j] - through) * r->scale;
    }
    gather(r->size, slope, r->k + keys, r->keys, r->to[0] + row);
    scatter(r->size, slope, r->q + row, r->keys, r->to[1] + keys);
    scatter(r->size, weight, grad, r->keys, r->to[2] + keys);
}

static void spread_heads(void *arg, int64_t begin, int64_t end)
{
    const flash_run *r = arg;
    for (int64_t i = begin * r->rows; i < end * r->rows; i++)
        spread_row(r, i / r->rows, i % r->rows);
}

bp_status kernel_flash_attention_backward(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    flash_run r;
    double *to[3];
    const double *grad = elements(&w, arg_tensor(k->args, 0)), *out = elements(&w, arg_tensor(k->args, 4));
    const double *sums = elements(&w, arg_tensor(k->args, 5));
    for (uint32_t i = 0; i < 3; i++) {
        bp_tensor *t = work_out(&w, k->out[i], BP_F64);
        if (t)
            work_clear(t);
        to[i] = t ? tensor_ptr(t) : NULL;
    }
    if (work_ok(&w) && start(&w, k, &r)) {
        r.grad = grad;
        r.out = (double *)(uintptr_t)out;
        r.sums = (double *)(uintptr_t)sums;
        memcpy(r.to, to, sizeof to);
        parallel_for(r.heads, 1, spread_heads, &r);
    }
    return work_end(&w);
}
