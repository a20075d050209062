/* Gradients of embedding_bag: for the table, and for the weights of samples; and embedding_renorm.
 *
 * The bag of each index comes from the forward; where it kept none it is read from the offsets again. */
#include "host/op/checks.h"
#include "host/op/reference/loop.h"
#include "host/op/reference/work.h"
#include "host/op/rows.h"
#include <math.h>
#include <string.h>

enum { GRAD, INDICES, OFFSETS, BAGS, SIZES, MAXIMA, ROWS, BY_FREQUENCY, MODE, SPARSE, WEIGHTS, PADDING };
enum { W_WEIGHT = 1, W_INDICES, W_OFFSETS, W_BAGS, W_MODE, W_PADDING };
enum { BAG_SUM = 0, BAG_MEAN = 1, BAG_MAX = 2 };

static bp_status check_vector(bp_ctx *c, const shape_call *s, uint32_t i)
{
    TRY(check_rank(c, s, i, 1, 1));
    return check_index_dtype(c, s, i);
}

bp_status shape_embedding_bag_backward(bp_ctx *c, shape_call *s)
{
    const bp_tensor *grad = arg_tensor(s->args, GRAD);
    int64_t mode = arg_int(c, s->args, MODE);
    TRY(check_rank(c, s, GRAD, 2, 2));
    for (uint32_t i = INDICES; i <= SIZES; i++)
        TRY(check_vector(c, s, i));
    if (arg_bool(s->args, SPARSE))
        return op_fail(c, s->op, BP_UNIMPLEMENTED, "argument \"sparse\": there are no sparse tensors");
    if (!dtype_is_float(grad->dtype) || mode < BAG_SUM || mode > BAG_MAX)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "mode %lld of gradients of %s", (long long)mode,
                       dtype_get(grad->dtype)->torch);
    if (mode == BAG_MAX)
        TRY(check_rank(c, s, MAXIMA, 2, 2));
    return out_new(c, s, grad->dtype, 2, (bp_dim[]){arg_dim(s->args, ROWS), grad->sizes[1]});
}

bp_status shape_embedding_bag_weights_backward(bp_ctx *c, shape_call *s)
{
    const bp_tensor *grad = arg_tensor(s->args, GRAD), *table = arg_tensor(s->args, W_WEIGHT);
    TRY(check_rank(c, s, GRAD, 2, 2));
    TRY(check_rank(c, s, W_WEIGHT, 2, 2));
    TRY(check_same_dtype(c, s, GRAD, W_WEIGHT));
    for (uint32_t i = W_INDICES; i <= W_BAGS; i++)
        TRY(check_vector(c, s, i));
    if (arg_int(c, s->args, W_MODE) != BAG_SUM)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"mode\": %lld; weights of samples are for sums (0)",
                       (long long)arg_int(c, s->args, W_MODE));
    if (!dim_eq(grad->sizes[1], table->sizes[1]))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "gradients of %lld elements for rows of %lld",
                       (long long)grad->sizes[1].value, (long long)table->sizes[1].value);
    return out_new(c, s, grad->dtype, 1, arg_tensor(s->args, W_INDICES)->sizes);
}

/* The bag of each of n indices, all checked to be bags; NULL: an error. */
static const int64_t *bags_of(work *w, const op_call *k, uint32_t i, int64_t n, int64_t count)
{
    bp_tensor *kept = work_in(w, arg_tensor(k->args, i), BP_I64);
    bp_tensor *cuts = work_in(w, arg_tensor(k->args, i - 1), BP_I64);
    int64_t *out = work_alloc(w, n, sizeof *out), noffsets = cuts ? tensor_nelem(cuts) : 0, bag = -1;
    if (!work_ok(w))
        return NULL;
    const int64_t *offset = tensor_ptr(cuts);
    for (int64_t at = 0; at < n; at++) {
        while (bag + 1 < noffsets && offset[bag + 1] <= at)
            bag++;
        out[at] = tensor_nelem(kept) == n ? ((const int64_t *)tensor_ptr(kept))[at] : bag;
        if (out[at] < 0 || out[at] >= count) {
            op_fail(w->c, k->op, BP_OUT_OF_RANGE, "index %lld is in bag %lld of %lld", (long long)at,
                    (long long)out[at], (long long)count);
            return NULL;
        }
    }
    return out;
}

static bool check_rows(bp_ctx *c, const op_row *op, const int64_t *at, int64_t n, int64_t rows)
{
    for (int64_t i = 0; i < n; i++)
        if (at[i] < 0 || at[i] >= rows)
            return op_fail(c, op, BP_OUT_OF_RANGE, "index %lld is out of range for a table of %lld rows",
                           (long long)at[i], (long long)rows) == BP_OK;
    return true;
}

/* Each maximum's gradient goes to the row that it is from. */
static void spread_maxima(work *w, const op_call *k, const bp_tensor *grad, bp_tensor *out)
{
    bp_tensor *from = work_in(w, arg_tensor(k->args, MAXIMA), BP_I64);
    bp_tensor *count = work_in(w, arg_tensor(k->args, SIZES), BP_I64);
    int64_t bags = tensor_dim(grad, 0), width = tensor_dim(grad, 1);
    if (!work_ok(w) || !check_rows(w->c, k->op, tensor_ptr(from), tensor_nelem(from), tensor_dim(out, 0)))
        return;
    if (tensor_nelem(from) != bags * width || tensor_nelem(count) < bags) {
        op_fail(w->c, k->op, BP_INVALID_ARGUMENT, "%lld bags, and the maxima or sizes of others", (long long)bags);
        return;
    }
    for (int64_t i = 0; i < bags * width; i++)
        if (((const int64_t *)tensor_ptr(count))[i / width] > 0)
            ((double *)tensor_ptr(out))[((const int64_t *)tensor_ptr(from))[i] * width + i % width] +=
                ((const double *)tensor_ptr(grad))[i];
}

/* How many indices name each row; NULL: nobody asked, or no memory. */
static int64_t *frequencies(work *w, const op_call *k, const int64_t *index, int64_t n, int64_t rows)
{
    int64_t *count = arg_bool(k->args, BY_FREQUENCY) ? work_alloc(w, rows, sizeof *count) : NULL;
    if (!count)
        return NULL;
    memset(count, 0, (size_t)rows * sizeof *count);
    for (int64_t i = 0; i < n; i++)
        count[index[i]]++;
    return count;
}

static void spread_sums(work *w, const op_call *k, const bp_tensor *grad, bp_tensor *out)
{
    bp_tensor *at = work_in(w, arg_tensor(k->args, INDICES), BP_I64);
    bp_tensor *sizes = work_in(w, arg_tensor(k->args, SIZES), BP_I64);
    bp_tensor *by = work_in(w, arg_tensor(k->args, WEIGHTS), BP_F64);
    int64_t bags = tensor_dim(grad, 0), width = tensor_dim(grad, 1), rows = tensor_dim(out, 0);
    int64_t n = at ? tensor_nelem(at) : 0, padding = arg_int(w->c, k->args, PADDING);
    const int64_t *bag = at ? bags_of(w, k, BAGS, n, bags) : NULL, *index = at ? tensor_ptr(at) : NULL;
    if (!bag || !check_rows(w->c, k->op, index, n, rows))
        return;
    const int64_t *count = frequencies(w, k, index, n, rows);
    bool mean = arg_int(w->c, k->args, MODE) == BAG_MEAN;
    if (!work_ok(w))
        return;
    if ((by && tensor_nelem(by) < n) || (mean && tensor_nelem(sizes) < bags)) {
        op_fail(w->c, k->op, BP_INVALID_ARGUMENT, "weights or sizes are missing for %lld indices", (long long)n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        double scale = by ? ((const double *)tensor_ptr(by))[i] : 1;
        int64_t size = mean ? ((const int64_t *)tensor_ptr(sizes))[bag[i]] : 1;
        if (index[i] == padding)
            continue;
        scale /= (double)(count ? count[index[i]] : 1) * (double)(size ? size : 1);
        for (int64_t d = 0; d < width; d++)
            ((double *)tensor_ptr(out))[index[i] * width + d] +=
                scale * ((const double *)tensor_ptr(grad))[bag[i] * width + d];
    }
}

bp_status kernel_embedding_bag_backward(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *grad = work_in(&w, arg_tensor(k->args, GRAD), BP_F64), *out = work_out(&w, k->out[0], BP_F64);
    if (!work_ok(&w))
        return work_end(&w);
    work_clear(out);
    if (arg_int(c, k->args, MODE) == BAG_MAX)
        spread_maxima(&w, k, grad, out);
    else
        spread_sums(&w, k, grad, out);
    return work_end(&w);
}

/* A sample's gradient is its row times the gradient of its bag. */
bp_status kernel_embedding_bag_weights_backward(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *grad = work_in(&w, arg_tensor(k->args, GRAD), BP_F64), *out = work_out(&w, k->out[0], BP_F64);
    bp_tensor *table = work_in(&w, arg_tensor(k->args, W_WEIGHT), BP_F64);
    bp_tensor *at = work_in(&w, arg_tensor(k->args, W_INDICES), BP_I64);
    int64_t padding = arg_int(c, k->args, W_PADDING);
    const int64_t *bag = work_ok(&w) ? bags_of(&w, k, W_BAGS, tensor_nelem(at), tensor_dim(grad, 0)) : NULL;
    if (!bag || !check_rows(c, k->op, tensor_ptr(at), tensor_nelem(at), tensor_dim(table, 0)))
        return work_end(&w);
    int64_t width = tensor_dim(grad, 1);
    for (int64_t i = 0; i < tensor_nelem(at); i++) {
        int64_t row = ((const int64_t *)tensor_ptr(at))[i];
        double sum = 0;
        for (int64_t d = 0; d < width && row != padding; d++)
            sum += ((const double *)tensor_ptr(grad))[bag[i] * width + d] *
                   ((const double *)tensor_ptr(table))[row * width + d];
        ((double *)tensor_ptr(out))[i] = sum;
    }
    return work_end(&w);
}

/* -- embedding_renorm: rows that are named, and whose norm is too great, are scaled down to it -- */

bp_status shape_embedding_renorm(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    TRY(check_rank(c, s, 0, 2, 2));
    TRY(check_index_dtype(c, s, 1));
    if (!dtype_is_float(self->dtype))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"self\": not there for %s",
                       dtype_get(self->dtype)->torch);
    return out_like(c, s, self, self->dtype);
}

static double norm_of(const double *row, int64_t n, double p)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = fabs(row[i]);
        if (isinf(p))
            sum = isnan(v) || (p > 0 ? v > sum : i == 0 || v < sum) ? v : sum;
        else
            sum += p == 0 ? v != 0 : pow(v, p);
    }
    return isinf(p) || p == 0 ? sum : pow(sum, 1 / p);
}

bp_status kernel_embedding_renorm(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *self = work_in(&w, arg_tensor(k->args, 0), BP_F64), *at = work_in(&w, arg_tensor(k->args, 1), BP_I64);
    bp_tensor *out = work_out(&w, k->out[0], BP_F64);
    double limit = arg_float(k->args, 2), p = arg_float(k->args, 3);
    bp_dtype d = k->out[0]->dtype;
    if (!work_ok(&w) || !check_rows(c, k->op, tensor_ptr(at), tensor_nelem(at), tensor_dim(self, 0)))
        return work_end(&w);
    int64_t width = tensor_dim(self, 1);
    memcpy(tensor_ptr(out), tensor_ptr(self), (size_t)tensor_nelem(self) * sizeof(double));
    for (int64_t i = 0; i < tensor_nelem(at); i++) {
        int64_t row = ((const int64_t *)tensor_ptr(at))[i];
        const double *from = (const double *)tensor_ptr(self) + row * width;
        double norm = loop_round(d, norm_of(from, width, p)), scale = limit / (norm + 1e-7);
        for (int64_t x = 0; x < width && norm > limit; x++)
            ((double *)tensor_ptr(out))[row * width + x] = from[x] * scale;
    }
    return work_end(&w);
}
