/* Looking values up and counting them: bucketize, searchsorted, isin, bincount, histc, repeat_interleave.
 *
 * Values are compared as doubles or 64-bit integers, to which every type widens exactly. */
#include "host/op/reference/number.h"
#include "host/op/reference/work.h"
#include "host/op/rows.h"
#include <math.h>
#include <string.h>

/* Operand i in the type of the comparison: rounded to `common` first, then widened. */
static bp_tensor *widened(work *w, bp_tensor *t, bp_dtype common)
{
    return work_in(w, work_in(w, t, common), dtype_is_integral(common) ? BP_I64 : BP_F64);
}

/* First of `n` places, in ascending order, whose value is not below (right: is above) v. NaN is above everything. */
static int64_t find_double(const double *at, const int64_t *order, int64_t n, double v, bool right)
{
    int64_t low = 0, high = n;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        double m = at[order ? order[middle] : middle];
        if (right ? !(m > v) : !(m >= v))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int64_t find_int(const int64_t *at, const int64_t *order, int64_t n, int64_t v, bool right)
{
    int64_t low = 0, high = n;
    while (low < high) {
        int64_t middle = low + (high - low) / 2, m = at[order ? order[middle] : middle];
        if (right ? m <= v : m < v)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Rows of `sorted`, each with its own values, or one row for all of them. */
static void search(const bp_tensor *sorted, const bp_tensor *order, const bp_tensor *values, bp_tensor *out,
                   bool right)
{
    int64_t n = tensor_dim(sorted, sorted->rank - 1), count = tensor_nelem(values);
    int64_t each = values->rank && sorted->rank > 1 ? tensor_dim(values, values->rank - 1) : count;
    for (int64_t i = 0; i < count; i++) {
        int64_t row = sorted->rank > 1 ? i / each * n : 0, at;
        const int64_t *o = order ? (const int64_t *)tensor_ptr(order) + row : NULL;
        if (sorted->dtype == BP_F64)
            at = find_double((const double *)tensor_ptr(sorted) + row, o, n, ((const double *)tensor_ptr(values))[i],
                             right);
        else
            at = find_int((const int64_t *)tensor_ptr(sorted) + row, o, n, ((const int64_t *)tensor_ptr(values))[i],
                          right);
        if (out->dtype == BP_I64)
            ((int64_t *)tensor_ptr(out))[i] = at;
        else
            ((int32_t *)tensor_ptr(out))[i] = (int32_t)at;
    }
}

static bp_status check_order(bp_ctx *c, const op_row *op, const bp_tensor *order, int64_t n)
{
    const int64_t *at = tensor_ptr(order);
    for (int64_t i = 0; i < tensor_nelem(order); i++)
        if (at[i] < 0 || at[i] >= n)
            return op_fail(c, op, BP_OUT_OF_RANGE, "the sorter's index %lld is out of range for %lld boundaries",
                           (long long)at[i], (long long)n);
    return BP_OK;
}

/* A number argument as a 0-d tensor of the type it has beside `t`. */
static bp_tensor *number(work *w, const bp_tensor *t, bp_scalar s, bp_dtype *common)
{
    promote_state p = {0};
    promote_tensor(w->c, &p, t);
    promote_scalar(w->c, &p, s);
    *common = promote_result(&p);
    bp_tensor *v = work_new(w, *common, 0, NULL);
    if (v)
        dtype_store(*common, tensor_ptr(v), num_of_scalar(*common, s));
    return v;
}

static bp_status run_search(bp_ctx *c, op_call *k, uint32_t sorted_at, uint32_t value_at, bool right, bp_tensor *order)
{
    work w = {.c = c};
    bp_tensor *sorted = arg_tensor(k->args, sorted_at), *values;
    bp_dtype common;
    if (k->args[value_at].kind == BP_VALUE_TENSOR) {
        common = promote_args(c, k->args, sorted_at, value_at);
        values = arg_tensor(k->args, value_at);
    } else {
        values = number(&w, sorted, arg_scalar(k->args, value_at), &common);
    }
    sorted = widened(&w, sorted, common);
    values = widened(&w, values, common);
    order = work_in(&w, order, BP_I64);
    bp_tensor *out = work_out(&w, k->out[0], BP_DTYPE_UNSET);
    if (work_ok(&w) && order)
        check_order(c, k->op, order, tensor_dim(sorted, sorted->rank - 1));
    if (work_ok(&w))
        search(sorted, order, values, out, right);
    return work_end(&w);
}

bp_status kernel_bucketize(bp_ctx *c, op_call *k) { return run_search(c, k, 1, 0, arg_bool(k->args, 3), NULL); }

bp_status kernel_searchsorted(bp_ctx *c, op_call *k)
{
    const char *side = arg_str(k->args, 4);
    bool right = arg_bool(k->args, 3) || (side && strcmp(side, "right") == 0);
    return run_search(c, k, 0, 1, right, arg_tensor(k->args, 5));
}

static bool contains(const bp_tensor *t, const void *value)
{
    int64_t n = tensor_nelem(t);
    for (int64_t i = 0; i < n; i++) {
        if (t->dtype == BP_F64 ? ((const double *)tensor_ptr(t))[i] == *(const double *)value
                               : ((const int64_t *)tensor_ptr(t))[i] == *(const int64_t *)value)
            return true;
    }
    return false;
}

bp_status kernel_isin(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_dtype common = promote_args(c, k->args, 0, 1);
    bp_tensor *elements = widened(&w, arg_tensor(k->args, 0), common);
    bp_tensor *tests = widened(&w, arg_tensor(k->args, 1), common), *out = work_out(&w, k->out[0], BP_DTYPE_UNSET);
    bool invert = arg_bool(k->args, 3);
    for (int64_t i = 0; work_ok(&w) && i < tensor_nelem(elements); i++)
        ((uint8_t *)tensor_ptr(out))[i] = contains(tests, (const int64_t *)tensor_ptr(elements) + i) != invert;
    return work_end(&w);
}

/* -- counting -- */

bp_status kernel_bincount(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *self = work_in(&w, arg_tensor(k->args, 0), BP_I64), *weights = arg_tensor(k->args, 1);
    bp_dtype dtype = !weights ? BP_I64 : weights->dtype == BP_F32 ? BP_F32 : BP_F64;
    weights = work_in(&w, weights, dtype);
    int64_t n = self ? tensor_nelem(self) : 0, top = arg_int(c, k->args, 2);
    const int64_t *at = self ? tensor_ptr(self) : NULL;
    for (int64_t i = 0; work_ok(&w) && i < n; i++) {
        if (at[i] < 0 || at[i] == INT64_MAX)
            op_fail(c, k->op, BP_OUT_OF_RANGE, "the value %lld cannot be counted: values must not be negative",
                    (long long)at[i]);
        top = at[i] >= top ? at[i] + 1 : top;
    }
    if (work_ok(&w))
        k->out[0] = tensor_contiguous_new(c, dtype, 1, &top);
    if (work_ok(&w) && top)
        memset(tensor_ptr(k->out[0]), 0, (size_t)top * dtype_size(dtype));
    void *out = work_ok(&w) ? tensor_ptr(k->out[0]) : NULL;
    for (int64_t i = 0; out && i < n; i++) {
        if (dtype == BP_I64)
            ((int64_t *)out)[at[i]]++;
        else if (dtype == BP_F32)
            ((float *)out)[at[i]] += ((const float *)tensor_ptr(weights))[i];
        else
            ((double *)out)[at[i]] += ((const double *)tensor_ptr(weights))[i];
    }
    return work_end(&w);
}

static double rounded(bp_dtype d, double v)
{
    double element;
    dtype_convert(d, &element, 1, BP_F64, &v, 1, 1);
    return dtype_load(d, &element).f;
}

/* The range of the data, or of the bins when it is given; a range of one point is widened by one. */
static bp_status find_range(bp_ctx *c, op_call *k, const double *at, int64_t n, double *low, double *high)
{
    *low = scalar_float(arg_scalar(k->args, 2));
    *high = scalar_float(arg_scalar(k->args, 3));
    if (*low == *high && n > 0) {
        *low = INFINITY, *high = -INFINITY;
        for (int64_t i = 0; i < n; i++) {
            *low = at[i] < *low || isnan(at[i]) ? at[i] : *low;
            *high = at[i] > *high || isnan(at[i]) ? at[i] : *high;
        }
    }
    if (*low == *high)
        *low -= 1, *high += 1;
    if (!isfinite(*low) || !isfinite(*high))
        return op_fail(c, k->op, BP_OUT_OF_RANGE, "a range of [%g, %g] is not finite", *low, *high);
    if (*low > *high)
        return op_fail(c, k->op, BP_INVALID_ARGUMENT, "argument \"max\" must be larger than \"min\", and %g < %g",
                       *high, *low);
    return BP_OK;
}

/* The bin of v by its place in the range, each step rounded to d; the last bin has its upper edge too. */
static int64_t bin_of(bp_dtype d, double low, double high, int64_t bins, double v)
{
    double scaled = rounded(d, rounded(d, v - low) * rounded(d, (double)bins));
    int64_t bin = (int64_t)rounded(d, scaled / rounded(d, high - low));
    return bin < bins ? bin : bins - 1;
}

bp_status kernel_histc(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *self = work_in(&w, arg_tensor(k->args, 0), BP_F64), *out = k->out[0];
    int64_t bins = arg_int(c, k->args, 1), n = self ? tensor_nelem(self) : 0;
    double low = 0, high = 0, *at = self ? tensor_ptr(self) : NULL, *counts = work_alloc(&w, bins, sizeof *counts);
    if (work_ok(&w) && find_range(c, k, at, n, &low, &high) == BP_OK) {
        low = rounded(out->dtype, low);
        high = rounded(out->dtype, high);
        memset(counts, 0, (size_t)bins * sizeof *counts);
        for (int64_t i = 0; i < n; i++)
            if (at[i] >= low && at[i] <= high)
                counts[bin_of(out->dtype, low, high, bins, at[i])] += 1;
        dtype_convert(out->dtype, tensor_ptr(out), 1, BP_F64, counts, 1, bins);
    }
    return work_end(&w);
}

/* -- repeat_interleave -- */

/* The sum of repeats, or -1 after an error. */
static int64_t sum_repeats(bp_ctx *c, const op_row *op, const bp_tensor *repeats, const bp_value *expected)
{
    const int64_t *at = tensor_ptr(repeats);
    int64_t sum = 0;
    for (int64_t i = 0; i < tensor_nelem(repeats); i++) {
        if (at[i] < 0) {
            op_fail(c, op, BP_OUT_OF_RANGE, "repeats must not be negative, and one is %lld", (long long)at[i]);
            return -1;
        }
        if (__builtin_add_overflow(sum, at[i], &sum)) {
            op_fail(c, op, BP_OUT_OF_RANGE, "repeats sum up to more than %lld", (long long)INT64_MAX);
            return -1;
        }
    }
    if (expected->kind == BP_VALUE_INT && dim_int(c, expected->v.dim) != sum) {
        op_fail(c, op, BP_OUT_OF_RANGE, "argument \"output_size\" is %lld, and repeats sum up to %lld",
                (long long)expected->v.dim.value, (long long)sum);
        return -1;
    }
    return sum;
}

bp_status kernel_repeat_interleave(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *repeats = work_in(&w, arg_tensor(k->args, 0), BP_I64), *out = k->out[0];
    int64_t n = repeats ? sum_repeats(c, k->op, repeats, &k->args[1]) : -1;
    if (n >= 0 && !out)
        out = k->out[0] = tensor_contiguous_new(c, arg_tensor(k->args, 0)->dtype, 1, &n);
    for (int64_t i = 0, x = 0; work_ok(&w) && i < tensor_nelem(repeats); i++)
        for (int64_t r = 0; r < ((const int64_t *)tensor_ptr(repeats))[i]; r++, x++)
            dtype_store(out->dtype, (char *)tensor_ptr(out) + (size_t)x * dtype_size(out->dtype),
                        num_of_int(out->dtype, i));
    return work_end(&w);
}

/* Repeats slice i of self along dim at[i] times, or `times` times when at is NULL. */
static void repeat_slices(const bp_tensor *self, bp_tensor *out, work_split s, const int64_t *at, int64_t times)
{
    size_t slice = (size_t)s.inner * dtype_size(self->dtype);
    const char *from = tensor_ptr(self);
    char *to = tensor_ptr(out);
    for (int64_t o = 0; slice && o < s.outer; o++)
        for (int64_t i = 0; i < s.n; i++, from += slice)
            for (int64_t r = 0; r < (at ? at[i] : times); r++, to += slice)
                memcpy(to, from, slice);
}

static work_split around(bp_ctx *c, const op_call *k, const bp_tensor *self)
{
    if (arg_is_none(k->args, 2))
        return (work_split){1, tensor_nelem(self), 1};
    return work_around(self, work_dim(c, k->args, 2, self));
}

bp_status kernel_repeat_interleave_int(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *self = work_in(&w, arg_tensor(k->args, 0), BP_DTYPE_UNSET),
              *out = work_out(&w, k->out[0], BP_DTYPE_UNSET);
    if (work_ok(&w))
        repeat_slices(self, out, around(c, k, self), NULL, arg_int(c, k->args, 1));
    return work_end(&w);
}

bp_status kernel_repeat_interleave_tensor(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *self = work_in(&w, arg_tensor(k->args, 0), BP_DTYPE_UNSET);
    work_split s = self ? around(c, k, self) : (work_split){0, 0, 0};
    bp_dim n = dim_const(s.n);
    bp_tensor *repeats = arg_tensor(k->args, 1);
    if (work_ok(&w) && !work_fits(repeats, 1, &n))
        op_fail(c, k->op, BP_INVALID_ARGUMENT, "%lld repeats for a size of %lld", (long long)tensor_nelem(repeats),
                (long long)s.n);
    repeats = work_in(&w, work_ok(&w) ? work_expand(&w, repeats, 1, &n) : NULL, BP_I64);
    int64_t sum = repeats ? sum_repeats(c, k->op, repeats, &k->args[3]) : -1, sizes[TENSOR_MAX_RANK] = {sum};
    if (sum < 0)
        return work_end(&w);
    bool flat = arg_is_none(k->args, 2);
    for (uint32_t d = 0; !flat && d < self->rank; d++)
        sizes[d] = d == work_dim(c, k->args, 2, self) ? sum : tensor_dim(self, d);
    if (!k->out[0])
        k->out[0] = tensor_contiguous_new(c, self->dtype, flat || !self->rank ? 1 : self->rank, sizes);
    bp_tensor *out = work_out(&w, k->out[0], BP_DTYPE_UNSET);
    if (work_ok(&w))
        repeat_slices(self, out, s, tensor_ptr(repeats), 0);
    return work_end(&w);
}
