/* Scaled dot-product attention: softmax(scale * q k' + mask) v, in float for halves, rounded once at the end.
 *
 * A row of scores of which the mask leaves nothing gives zeros; a score that is NaN stays one. */
#include "host/op/reference/gemm.h"
#include "host/op/reference/walk.h"
#include "host/op/reference/work.h"
#include "host/op/rows.h"
#include <math.h>
#include <string.h>

enum { QUERY, KEY, VALUE, MASK, DROPOUT, CAUSAL, SCALE, GROUPED };

/* Sizes: of one matrix of scores, of the rows of q and k, of v's. */
typedef struct { int64_t batch, rows, cols, inner, outer; double scale; bool causal; } attention;

/* t (a batch of matrices) broadcast to the batch of the result and made contiguous, in the type computed in. Grouped:
 * each head of t stands for `repeat` heads in a row. */
static bp_tensor *spread(work *w, const bp_tensor *t, const bp_tensor *out, bp_dtype dtype, bool grouped)
{
    bp_dim sizes[TENSOR_MAX_RANK], split[TENSOR_MAX_RANK + 1], strides[TENSOR_MAX_RANK + 1];
    uint32_t n = out->rank, at = 0;
    memcpy(sizes, out->sizes, n * sizeof *sizes);
    sizes[n - 2] = t->sizes[t->rank - 2], sizes[n - 1] = t->sizes[t->rank - 1];
    if (!grouped || tensor_dim(t, n - 3) == 0)
        return work_in(w, work_expand(w, t, n, sizes), dtype);
    for (uint32_t d = 0; d < n; d++) {
        bool heads = d == n - 3;
        split[at] = heads ? t->sizes[d] : sizes[d];
        strides[at++] = tensor_dim(t, d) == 1 && !heads ? dim_const(0) : t->strides[d];
        if (heads)
            split[at] = dim_const(sizes[d].value / tensor_dim(t, d)), strides[at++] = dim_const(0);
    }
    tensor_meta m = {t->dtype, tensor_device(t), n + 1, split, strides, t->offset};
    return work_in(w, work_view(w, t, &m), dtype);
}

static double load(const void *at, bool wide, int64_t i)
{
    return wide ? ((const double *)at)[i] : (double)((const float *)at)[i];
}

static void store(void *at, bool wide, int64_t i, double v)
{
    if (wide)
        ((double *)at)[i] = v;
    else
        ((float *)at)[i] = (float)v;
}

/* Row r of scores, masked, becomes weights. mask: an added row, or NULL; a bool mask has become 0 and -inf. */
static void softmax(const attention *a, void *row, bool wide, int64_t r, const double *mask)
{
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < a->cols; i++) {
        double v = load(row, wide, i) + (mask ? mask[i] : 0);
        v = a->causal && i > r ? -INFINITY : v;
        store(row, wide, i, v);
        top = v > top || isnan(v) ? v : top;
    }
    for (int64_t i = 0; i < a->cols; i++) {
        double v = top == -INFINITY ? 0 : exp(load(row, wide, i) - top);
        store(row, wide, i, v);
        sum += v;
    }
    for (int64_t i = 0; i < a->cols && sum != 0; i++)
        store(row, wide, i, load(row, wide, i) / sum);
}

/* One row of the mask as numbers to be added. */
static void read_mask(const bp_tensor *mask, int64_t at, int64_t step, int64_t n, double *out)
{
    for (int64_t i = 0; i < n; i++) {
        num v = dtype_load(mask->dtype, (const char *)tensor_ptr(mask) +
                                            (size_t)(at + i * step) * dtype_size(mask->dtype));
        out[i] = mask->dtype == BP_BOOL ? (v.i ? 0 : -INFINITY) : v.f;
    }
}

/* All rows of all scores. mask has the scores' sizes, or is NULL. */
static void softmax_all(const attention *a, bp_tensor *scores, const bp_tensor *mask, double *room)
{
    bool wide = scores->dtype == BP_F64;
    uint32_t n = mask ? mask->rank : 0;
    walk v;
    if (mask) {
        walk_start(&v, n - 1, mask->sizes);
        walk_add(&v, mask->strides);
    }
    for (int64_t i = 0; i < a->batch * a->rows; i++) {
        char *row = (char *)tensor_ptr(scores) + (size_t)(i * a->cols) * dtype_size(scores->dtype);
        if (mask) {
            read_mask(mask, v.at[0], tensor_step(mask, n - 1), a->cols, room);
            walk_next(&v);
        }
        softmax(a, row, wide, i % a->rows, mask ? room : NULL);
    }
}

static attention read_call(const op_call *k)
{
    const bp_tensor *q = arg_tensor(k->args, QUERY), *key = arg_tensor(k->args, KEY), *out = k->out[0];
    attention a = {.batch = 1, .rows = tensor_dim(q, q->rank - 2), .cols = tensor_dim(key, key->rank - 2),
                   .inner = tensor_dim(q, q->rank - 1), .outer = tensor_dim(out, out->rank - 1),
                   .causal = arg_bool(k->args, CAUSAL)};
    for (uint32_t d = 0; d + 2 < out->rank; d++)
        a.batch *= tensor_dim(out, d);
    a.scale = arg_is_none(k->args, SCALE) ? 1 / sqrt((double)a.inner) : arg_float(k->args, SCALE);
    return a;
}

bp_status kernel_attention(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *out = k->out[0], *mask = arg_tensor(k->args, MASK);
    attention a = read_call(k);
    bp_dtype dtype = dtype_accumulate(out->dtype);
    bool grouped = arg_bool(k->args, GROUPED);
    bp_tensor *q = spread(&w, arg_tensor(k->args, QUERY), out, dtype, false);
    bp_tensor *key = work_ok(&w) ? spread(&w, arg_tensor(k->args, KEY), out, dtype, grouped) : NULL;
    bp_tensor *v = work_ok(&w) ? spread(&w, arg_tensor(k->args, VALUE), out, dtype, grouped) : NULL;
    bp_tensor *scores = work_new(&w, dtype, 3, (int64_t[]){a.batch, a.rows, a.cols});
    bp_dim sizes[TENSOR_MAX_RANK];
    memcpy(sizes, out->sizes, out->rank * sizeof *sizes);
    sizes[out->rank - 1] = dim_const(a.cols);
    mask = work_expand(&w, mask, out->rank, sizes);
    double *room = work_alloc(&w, a.cols, sizeof *room);
    bp_tensor *to = work_out(&w, out, dtype);
    if (work_ok(&w)) {
        gemm_job j = {.dtype = dtype, .batch = a.batch, .m = a.rows, .n = a.cols, .k = a.inner,
                      .a = {tensor_ptr(q), a.inner, 1, a.rows * a.inner},
                      .b = {tensor_ptr(key), 1, a.inner, a.cols * a.inner},
                      .alpha = {BP_SCALAR_FLOAT, 0, {.f = {a.scale, 0}}}, .out = tensor_ptr(scores),
                      .out_row = a.cols, .out_col = 1, .out_batch = a.rows * a.cols};
        if (gemm_run(c, &j) == BP_OK)
            softmax_all(&a, scores, mask, room);
        j = (gemm_job){.dtype = dtype, .batch = a.batch, .m = a.rows, .n = a.outer, .k = a.cols,
                       .a = {tensor_ptr(scores), a.cols, 1, a.rows * a.cols},
                       .b = {tensor_ptr(v), a.outer, 1, a.cols * a.outer}, .out = tensor_ptr(to), .out_row = a.outer,
                       .out_col = 1, .out_batch = a.rows * a.outer};
        if (work_ok(&w))
            gemm_run(c, &j);
    }
    return work_end(&w);
}
