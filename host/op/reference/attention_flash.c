/* Attention as PyTorch's CPU kernel has it: besides the result the logarithm of each row's sum, from which the gradient
 * computes the weights again. No dropout; a mask is added to the scores. A row of which nothing is left gives zeros. */
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
                     tensor_dim(key, 2), tensor_dim(q, 3), 0, arg_bool(a, named(k->op, "is_causal"))};
    r->scale = arg_is_none(a, scale) ? 1 / sqrt((double)r->size) : arg_float(a, scale);
    bp_tensor *mask = arg_tensor(a, named(k->op, "attn_mask"));
    if (mask && work_ok(w))
        r->mask = elements(w, work_expand(w, mask, 4,
                                          (bp_dim[]){q->sizes[0], q->sizes[1], q->sizes[2], key->sizes[2]}));
    return work_ok(w);
}

static double score(const flash_run *r, int64_t head, int64_t i, int64_t j)
{
    const double *q = r->q + (head * r->rows + i) * r->size, *k = r->k + (head * r->keys + j) * r->size;
    double sum = 0;
    if (r->causal && j > i)
        return -INFINITY;
    for (int64_t d = 0; d < r->size; d++)
        sum += q[d] * k[d];
    return sum * r->scale + (r->mask ? r->mask[(head * r->rows + i) * r->keys + j] : 0);
}

/* Row i of a head: its result, and the logarithm of its sum. */
static double run_row(const flash_run *r, int64_t head, int64_t i, double *weight, double *out)
{
    double top = -INFINITY, sum = 0;
    memset(out, 0, (size_t)r->size * sizeof *out);
    for (int64_t j = 0; j < r->keys; j++) {
        weight[j] = score(r, head, i, j);
        top = weight[j] > top || isnan(weight[j]) ? weight[j] : top;
    }
    if (top == -INFINITY)
        return 0;
    for (int64_t j = 0; j < r->keys; j++)
        sum += weight[j] = exp(weight[j] - top);
    for (int64_t j = 0; j < r->keys; j++)
        for (int64_t d = 0; d < r->size; d++)
            out[d] += weight[j] / sum * r->v[(head * r->keys + j) * r->size + d];
    return top + log(sum);
}

bp_status kernel_flash_attention(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    flash_run r;
    bp_tensor *out = work_out(&w, k->out[0], BP_F64), *sums = work_out(&w, k->out[1], BP_F64);
    double *weight = work_ok(&w) && start(&w, k, &r) ? work_alloc(&w, r.keys, sizeof *weight) : NULL;
    for (int64_t i = 0; weight && i < r.heads * r.rows; i++)
        ((double *)tensor_ptr(sums))[i] =
            run_row(&r, i / r.rows, i % r.rows, weight, (double *)tensor_ptr(out) + i * r.size);
    return work_end(&w);
}

/* What comes back for row i, spread to the query's row and to all keys and values of the head. */
static void spread_row(const flash_run *r, int64_t head, int64_t i, const double *grad, const double *out, double sum,
                       double *const to[3])
{
    int64_t row = (head * r->rows + i) * r->size;
    double through = 0;
    for (int64_t d = 0; d < r->size; d++)
        through += grad[row + d] * out[row + d];
    for (int64_t j = 0; j < r->keys; j++) {
        int64_t key = (head * r->keys + j) * r->size;
        double p = exp(score(r, head, i, j) - sum), slope = 0;
        for (int64_t d = 0; d < r->size; d++) {
            to[2][key + d] += p * grad[row + d];
            slope += grad[row + d] * r->v[key + d];
        }
        slope = p * (slope - through) * r->scale;
        for (int64_t d = 0; d < r->size; d++) {
            to[0][row + d] += slope * r->k[key + d];
            to[1][key + d] += slope * r->q[row + d];
        }
    }
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
    if (work_ok(&w) && start(&w, k, &r))
        for (int64_t i = 0; i < r.heads * r.rows; i++)
            spread_row(&r, i / r.rows, i % r.rows, grad, out, sums[i], to);
    return work_end(&w);
}
