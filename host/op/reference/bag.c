/* embedding_bag: sums, means or maxima of rows of a table, a bag of indices each.
 *
 * Besides the result come what PyTorch keeps for the gradient: the bag of each index (nothing where its fast path of
 * sums is taken), how many indices each bag has (zeros for sums), and which row each maximum is from. Indices of the
 * padding row count nothing. */
#include "host/op/checks.h"
#include "host/op/reference/number.h"
#include "host/op/reference/work.h"
#include "host/op/rows.h"
#include <math.h>
#include <string.h>

enum { WEIGHT, INDICES, OFFSETS, SCALE_GRAD, MODE, SPARSE, SAMPLE_WEIGHTS, LAST_OFFSET, PADDING };
enum { BAG_SUM = 0, BAG_MEAN = 1, BAG_MAX = 2 };

/* The row that counts nothing, or -1. embedding_bag counts from the end, or has None; the others have -1 for none. */
static int64_t padding_of(bp_ctx *c, const op_row *op, const bp_value *args)
{
    if (op->schema->nargs <= PADDING || arg_is_none(args, PADDING))
        return -1;
    int64_t at = arg_int(c, args, PADDING);
    return at < 0 && op->schema->name[0] != '_' ? at + tensor_dim(arg_tensor(args, WEIGHT), 0) : at;
}

/* PyTorch sums floats and halves whose rows are dense in one go, and then keeps no bags. */
static bool is_fast(bp_ctx *c, const op_row *op, const bp_value *args)
{
    const bp_tensor *w = arg_tensor(args, WEIGHT), *scale = arg_tensor(args, SAMPLE_WEIGHTS);
    bool type = w->dtype == BP_F32 || w->dtype == BP_F16 || w->dtype == BP_BF16;
    return type && arg_int(c, args, MODE) == BAG_SUM && dim_is(w->strides[1], 1) && padding_of(c, op, args) < 0 &&
           (!scale || dim_is(scale->strides[0], 1));
}

static bp_status check_bag(bp_ctx *c, const shape_call *s)
{
    const bp_tensor *index = arg_tensor(s->args, INDICES), *scale = arg_tensor(s->args, SAMPLE_WEIGHTS);
    int64_t mode = arg_int(c, s->args, MODE);
    TRY(check_rank(c, s, WEIGHT, 2, 2));
    TRY(check_rank(c, s, INDICES, 1, 1));
    TRY(check_rank(c, s, OFFSETS, 1, 1));
    TRY(check_index_dtype(c, s, INDICES));
    TRY(check_index_dtype(c, s, OFFSETS));
    if (!dtype_is_float(arg_tensor(s->args, WEIGHT)->dtype) || mode < BAG_SUM || mode > BAG_MAX)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "mode %lld of a table of %s", (long long)mode,
                       dtype_get(arg_tensor(s->args, WEIGHT)->dtype)->torch);
    if (s->nargs > PADDING && s->op->schema->name[0] != '_' && !arg_is_none(s->args, PADDING)) {
        int64_t at = arg_int(c, s->args, PADDING), rows = dim_int(c, arg_tensor(s->args, WEIGHT)->sizes[0]);
        if (at < -rows || at >= rows)
            return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                           "argument \"padding_idx\" is %lld, and the table has %lld rows", (long long)at,
                           (long long)rows);
    }
    if (arg_bool(s->args, LAST_OFFSET) && dim_is(arg_tensor(s->args, OFFSETS)->sizes[0], 0))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "include_last_offset needs an offset");
    if (!scale)
        return BP_OK;
    TRY(check_same_dtype(c, s, WEIGHT, SAMPLE_WEIGHTS));
    TRY(check_rank(c, s, SAMPLE_WEIGHTS, 1, 1));
    if (mode != BAG_SUM || !dim_eq(scale->sizes[0], index->sizes[0]))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "weights of samples are for sums, one an index");
    return BP_OK;
}

bp_status shape_embedding_bag(bp_ctx *c, shape_call *s)
{
    TRY(check_bag(c, s));
    const bp_tensor *w = arg_tensor(s->args, WEIGHT), *index = arg_tensor(s->args, INDICES);
    bp_dim offsets = arg_tensor(s->args, OFFSETS)->sizes[0], bags = offsets;
    bp_dtype whole = dtype_promote(index->dtype, arg_tensor(s->args, OFFSETS)->dtype);
    int64_t mode = arg_int(c, s->args, MODE);
    if (arg_bool(s->args, LAST_OFFSET))
        bags = dim_sub(c, bags, dim_const(1));
    bp_dim kept = mode == BAG_SUM && strcmp(s->op->schema->name, "_embedding_bag") != 0 ? offsets : bags,
           table[] = {bags, w->sizes[1]};
    TRY(out_new(c, s, w->dtype, 2, table));
    TRY(out_new(c, s, whole, 1, (bp_dim[]){is_fast(c, s->op, s->args) ? dim_const(0) : index->sizes[0]}));
    TRY(out_new(c, s, whole, 1, &kept));
    return mode == BAG_MAX ? out_new(c, s, whole, 2, table) : out_new(c, s, whole, 1, &kept);
}

/* -- the kernel -- */

typedef struct {
    const bp_tensor *weight, *scale;
    const int64_t *index;
    int64_t rows, width, padding, mode;
} bags;

static num row_element(const bags *b, int64_t i, int64_t d)
{
    size_t size = dtype_size(b->weight->dtype);
    return dtype_load(b->weight->dtype,
                      (const char *)tensor_ptr(b->weight) + (size_t)(b->index[i] * b->width + d) * size);
}

static double scale_of(const bags *b, int64_t i)
{
    return b->scale ? dtype_load(b->scale->dtype,
                                 (const char *)tensor_ptr(b->scale) + (size_t)i * dtype_size(b->scale->dtype))
                          .f
                    : 1;
}

/* Column d of the bag of indices [low, high); *best: the row of the maximum. */
static double reduce(const bags *b, int64_t low, int64_t high, int64_t d, int64_t count, int64_t *best)
{
    bool wide = b->weight->dtype == BP_F64;
    double sum = 0;
    *best = -1;
    for (int64_t i = low; i < high; i++) {
        if (b->index[i] == b->padding)
            continue;
        double v = row_element(b, i, d).f;
        if (b->mode == BAG_MAX) {
            if (*best < 0 || v > sum)
                sum = v, *best = b->index[i];
            continue;
        }
        v *= scale_of(b, i);
        sum = wide ? sum + v : (double)(float)(sum + (double)(float)v);
    }
    return b->mode == BAG_MEAN && count ? sum / (double)count : sum;
}

static void store_int(bp_tensor *t, int64_t at, int64_t v)
{
    dtype_store(t->dtype, (char *)tensor_ptr(t) + (size_t)at * dtype_size(t->dtype), (num){.kind = NUM_INT, .i = v});
}

static void run_bag(const bags *b, op_call *k, int64_t bag, int64_t low, int64_t high)
{
    bp_tensor *out = k->out[0];
    int64_t count = 0, best;
    for (int64_t i = low; i < high; i++) {
        count += b->index[i] != b->padding;
        if (tensor_nelem(k->out[1]))
            store_int(k->out[1], i, bag);
    }
    for (int64_t d = 0; d < b->width; d++) {
        double v = reduce(b, low, high, d, count, &best);
        dtype_store(out->dtype, (char *)tensor_ptr(out) + (size_t)(bag * b->width + d) * dtype_size(out->dtype),
                    (num){.kind = NUM_FLOAT, .f = v});
        if (b->mode == BAG_MAX)
            store_int(k->out[3], bag * b->width + d, best < 0 ? 0 : best);
    }
    if (b->mode != BAG_SUM)
        store_int(k->out[2], bag, count);
    if (b->mode == BAG_MEAN)
        store_int(k->out[3], bag, count);
}

/* Offsets begin with 0, do not fall, and stay within the indices; indices stay within the table. */
static bp_status check_data(bp_ctx *c, const op_row *op, const bags *b, int64_t n, const int64_t *offset,
                            int64_t noffsets)
{
    for (int64_t i = 0; i < n; i++)
        if (b->index[i] < 0 || b->index[i] >= b->rows)
            return op_fail(c, op, BP_OUT_OF_RANGE, "index %lld is out of range for a table of %lld rows",
                           (long long)b->index[i], (long long)b->rows);
    for (int64_t i = 0; i < noffsets; i++)
        if (offset[i] > n || (i == 0 ? offset[i] != 0 : offset[i] < offset[i - 1]))
            return op_fail(c, op, BP_OUT_OF_RANGE,
                           "offset %lld is %lld: the first must be 0, none less than the one before "
                           "or more than the %lld indices",
                           (long long)i, (long long)offset[i], (long long)n);
    return BP_OK;
}

bp_status kernel_embedding_bag(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *weight = work_in(&w, arg_tensor(k->args, WEIGHT), BP_DTYPE_UNSET);
    bp_tensor *index = work_in(&w, arg_tensor(k->args, INDICES), BP_I64);
    bp_tensor *offsets = work_in(&w, arg_tensor(k->args, OFFSETS), BP_I64);
    bp_tensor *scale = work_in(&w, arg_tensor(k->args, SAMPLE_WEIGHTS), BP_DTYPE_UNSET);
    if (!work_ok(&w))
        return work_end(&w);
    bags b = {weight,
              scale,
              tensor_ptr(index),
              tensor_dim(weight, 0),
              tensor_dim(weight, 1),
              padding_of(c, k->op, k->args),
              arg_int(c, k->args, MODE)};
    int64_t n = tensor_nelem(index), count = tensor_dim(k->out[0], 0), known = tensor_nelem(offsets);
    const int64_t *offset = tensor_ptr(offsets);
    for (uint32_t i = 1; i < 4; i++)
        work_clear(k->out[i]);
    if (check_data(c, k->op, &b, n, offset, known) == BP_OK)
        for (int64_t i = 0; i < count; i++)
            run_bag(&b, k, i, offset[i], i + 1 < known ? offset[i + 1] : n);
    return work_end(&w);
}
