/* Orders and extremes along a dimension: sort, topk, kthvalue, median, mode, max and min with their places, cummax.
 *
 * A lane, the elements along the dimension at one place of the others, is copied to entries (order.h); results are
 * computed in contiguous tensors. NaN is greater than everything. Among equal elements the stable sort keeps the
 * order, max and min take the first, cummax and cummin the last; the rest takes what PyTorch's algorithms take. */
#include "host/op/reference/order.h"
#include "host/op/reference/work.h"
#include "host/op/rows.h"
#include <math.h>
#include <string.h>

/* self widened to double or int64, seen around the dimension, with room for the entries of one lane, twice. */
typedef struct {
    const bp_tensor *wide, *self;
    work_split s;
    bool whole;
    order_entry *lane, *room;
} lanes;

static bool start(work *w, bp_tensor *self, uint32_t dim, lanes *l)
{
    *l = (lanes){.self = work_in(w, self, BP_DTYPE_UNSET), .whole = dtype_is_integral(self->dtype)};
    l->wide = work_in(w, self, l->whole ? BP_I64 : BP_F64);
    l->s = work_around(self, dim);
    l->lane = work_alloc(w, 2 * l->s.n, sizeof *l->lane);
    l->room = l->lane ? l->lane + l->s.n : NULL;
    return work_ok(w);
}

/* Where element i of lane (o, x) lies, in a tensor of n elements along the dimension. */
static int64_t place(const lanes *l, int64_t n, int64_t o, int64_t x, int64_t i)
{
    return (o * n + i) * l->s.inner + x;
}

static void read_lane(const lanes *l, int64_t o, int64_t x)
{
    for (int64_t i = 0; i < l->s.n; i++) {
        int64_t at = place(l, l->s.n, o, x, i);
        l->lane[i].index = i;
        if (l->whole)
            l->lane[i].v.i = ((const int64_t *)tensor_ptr(l->wide))[at];
        else
            l->lane[i].v.f = ((const double *)tensor_ptr(l->wide))[at];
    }
}

/* Writes element `index` of the lane as i-th of n results; either result may be NULL. */
static void write_lane(const lanes *l, bp_tensor *values, bp_tensor *indices, int64_t n, int64_t o, int64_t x,
                       int64_t i, int64_t index)
{
    size_t size = dtype_size(l->self->dtype);
    int64_t to = place(l, n, o, x, i), from = place(l, l->s.n, o, x, index);
    if (values)
        memcpy((char *)tensor_ptr(values) + (size_t)to * size, (const char *)tensor_ptr(l->self) + (size_t)from * size,
               size);
    if (indices)
        ((int64_t *)tensor_ptr(indices))[to] = index;
}

static order_fn order_of(const lanes *l, bool down)
{
    if (l->whole)
        return down ? order_down_int : order_up_int;
    return down ? order_down_float : order_up_float;
}

/* -- sort -- */

static bp_status sort(bp_ctx *c, op_call *k, bp_tensor *values, bp_tensor *indices, uint32_t dim, bool down,
                      bool stable)
{
    work w = {.c = c};
    lanes l;
    values = work_out(&w, values, BP_DTYPE_UNSET);
    indices = work_out(&w, indices, BP_DTYPE_UNSET);
    if (start(&w, arg_tensor(k->args, 0), dim, &l)) {
        for (int64_t o = 0; o < l.s.outer; o++) {
            for (int64_t x = 0; x < l.s.inner; x++) {
                read_lane(&l, o, x);
                if (stable)
                    order_stable(l.lane, l.s.n, l.room, order_of(&l, down));
                else
                    order_sort(l.lane, l.s.n, order_of(&l, down));
                for (int64_t i = 0; i < l.s.n; i++)
                    write_lane(&l, values, indices, l.s.n, o, x, i, l.lane[i].index);
            }
        }
    }
    return work_end(&w);
}

static uint32_t dim_of(bp_ctx *c, const op_call *k, uint32_t i)
{
    return work_dim(c, k->args, i, arg_tensor(k->args, 0));
}

bp_status kernel_sort(bp_ctx *c, op_call *k)
{
    return sort(c, k, k->out[0], k->out[1], dim_of(c, k, 1), arg_bool(k->args, 2), false);
}

bp_status kernel_sort_stable(bp_ctx *c, op_call *k)
{
    return sort(c, k, k->out[0], k->out[1], dim_of(c, k, 2), arg_bool(k->args, 3), arg_bool(k->args, 1));
}

bp_status kernel_argsort(bp_ctx *c, op_call *k)
{
    return sort(c, k, NULL, k->out[0], dim_of(c, k, 1), arg_bool(k->args, 2), false);
}

bp_status kernel_argsort_stable(bp_ctx *c, op_call *k)
{
    return sort(c, k, NULL, k->out[0], dim_of(c, k, 2), arg_bool(k->args, 3), arg_bool(k->args, 1));
}

bp_status kernel_msort(bp_ctx *c, op_call *k) { return sort(c, k, k->out[0], NULL, 0, false, false); }

/* The first n of an order: by a heap when they are few, else by selection and, if wanted, a sort of what it selected.
 */
static void select_top(order_entry *lane, int64_t n, int64_t count, bool sorted, order_fn before)
{
    if (n * 64 <= count) {
        order_partial_sort(lane, n, count, before);
        return;
    }
    order_nth(lane, n - 1, count, before);
    if (sorted)
        order_sort(lane, n - 1, before);
}

bp_status kernel_topk(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    lanes l;
    int64_t n = arg_int(c, k->args, 1);
    bool largest = arg_bool(k->args, 3), sorted = arg_bool(k->args, 4);
    bp_tensor *values = work_out(&w, k->out[0], BP_DTYPE_UNSET), *indices = work_out(&w, k->out[1], BP_DTYPE_UNSET);
    if (n > 0 && start(&w, arg_tensor(k->args, 0), dim_of(c, k, 2), &l)) {
        for (int64_t o = 0; o < l.s.outer; o++) {
            for (int64_t x = 0; x < l.s.inner; x++) {
                read_lane(&l, o, x);
                select_top(l.lane, n, l.s.n, sorted, order_of(&l, largest));
                for (int64_t i = 0; i < n; i++)
                    write_lane(&l, values, indices, n, o, x, i, l.lane[i].index);
            }
        }
    }
    return work_end(&w);
}

/* -- one element of each lane -- */

/* Finds its index in the lane that was read. */
typedef int64_t (*pick_fn)(lanes *l, int64_t rank);

static bp_status pick(bp_ctx *c, op_call *k, uint32_t dim, pick_fn find, int64_t rank)
{
    work w = {.c = c};
    lanes l;
    bp_tensor *values = work_out(&w, k->out[0], BP_DTYPE_UNSET), *indices = work_out(&w, k->out[1], BP_DTYPE_UNSET);
    if (start(&w, arg_tensor(k->args, 0), dim, &l)) {
        for (int64_t o = 0; o < l.s.outer; o++) {
            for (int64_t x = 0; x < l.s.inner; x++) {
                read_lane(&l, o, x);
                write_lane(&l, values, indices, 1, o, x, 0, find(&l, rank));
            }
        }
    }
    return work_end(&w);
}

static int64_t find_kth(lanes *l, int64_t rank)
{
    order_select(l->lane, rank - 1, l->s.n, order_of(l, false));
    return l->lane[rank - 1].index;
}

bp_status kernel_kthvalue(bp_ctx *c, op_call *k)
{
    return pick(c, k, dim_of(c, k, 2), find_kth, arg_int(c, k->args, 1));
}

static int64_t count_nan(const lanes *l, int64_t *first)
{
    int64_t n = 0;
    for (int64_t i = 0; !l->whole && i < l->s.n; i++)
        if (isnan(l->lane[i].v.f) && n++ == 0)
            *first = i;
    return n;
}

/* The lower median; NaN, the first one, when there is any. */
static int64_t find_median(lanes *l, int64_t rank)
{
    int64_t first = 0, nth = (l->s.n - 1) / 2;
    (void)rank;
    if (count_nan(l, &first))
        return first;
    order_stable(l->lane, l->s.n, l->room, order_of(l, false));
    return l->lane[nth].index;
}

/* The lower median of what is not NaN. Equal elements count as in order of their places; NaN does not equal NaN, so of
 * nothing but NaN it is the one that a selection leaves in front. */
static int64_t find_nanmedian(lanes *l, int64_t rank)
{
    int64_t first = 0, nans = count_nan(l, &first), nth = (l->s.n - nans - 1) / 2;
    (void)rank;
    if (nans == l->s.n)
        order_nth(l->lane, nth, l->s.n, order_up_float);
    else
        order_stable(l->lane, l->s.n, l->room, order_of(l, false));
    return l->lane[nth].index;
}

/* The most frequent value, the least of them if there are several, where it occurs last. */
static int64_t find_mode(lanes *l, int64_t rank)
{
    int64_t best = 0, most = 0, n = 0;
    (void)rank;
    order_sort(l->lane, l->s.n, l->whole ? order_up_int : order_plain_float);
    for (int64_t i = 0; i < l->s.n; i++) {
        const order_entry *a = &l->lane[i], *b = a + 1;
        n++;
        if (i + 1 < l->s.n && (l->whole ? a->v.i == b->v.i : a->v.f == b->v.f))
            continue;
        if (n > most)
            most = n, best = a->index;
        n = 0;
    }
    return best;
}

static int64_t find_extreme(lanes *l, int64_t down)
{
    int64_t best = 0;
    for (int64_t i = 1; i < l->s.n; i++) {
        const order_entry *a = &l->lane[i], *b = &l->lane[best];
        bool wins = l->whole ? (down ? a->v.i > b->v.i : a->v.i < b->v.i)
                             : !isnan(b->v.f) && (isnan(a->v.f) || (down ? a->v.f > b->v.f : a->v.f < b->v.f));
        best = wins ? i : best;
    }
    return best;
}

bp_status kernel_median_dim(bp_ctx *c, op_call *k) { return pick(c, k, dim_of(c, k, 1), find_median, 0); }
bp_status kernel_nanmedian_dim(bp_ctx *c, op_call *k) { return pick(c, k, dim_of(c, k, 1), find_nanmedian, 0); }
bp_status kernel_mode(bp_ctx *c, op_call *k) { return pick(c, k, dim_of(c, k, 1), find_mode, 0); }
bp_status kernel_max_dim(bp_ctx *c, op_call *k) { return pick(c, k, dim_of(c, k, 1), find_extreme, 1); }
bp_status kernel_min_dim(bp_ctx *c, op_call *k) { return pick(c, k, dim_of(c, k, 1), find_extreme, 0); }

/* The median of all elements; of none: NaN. */
static bp_status median_of_all(bp_ctx *c, op_call *k, pick_fn find)
{
    work w = {.c = c};
    lanes l;
    bp_tensor *flat = work_flat(&w, arg_tensor(k->args, 0)), *out = k->out[0];
    if (work_ok(&w) && tensor_dim(flat, 0) == 0) {
        dtype_store(out->dtype, tensor_ptr(out), (num){.kind = NUM_FLOAT, .f = (double)NAN});
    } else if (work_ok(&w) && start(&w, flat, 0, &l)) {
        read_lane(&l, 0, 0);
        write_lane(&l, out, NULL, 1, 0, 0, 0, find(&l, 0));
    }
    return work_end(&w);
}

bp_status kernel_median(bp_ctx *c, op_call *k) { return median_of_all(c, k, find_median); }
bp_status kernel_nanmedian(bp_ctx *c, op_call *k) { return median_of_all(c, k, find_nanmedian); }

/* -- running extremes -- */

static bool keeps(const lanes *l, const order_entry *best, const order_entry *next, bool down)
{
    if (l->whole)
        return down ? next->v.i < best->v.i : next->v.i > best->v.i;
    if (isnan(next->v.f))
        return false;
    return isnan(best->v.f) || (down ? next->v.f < best->v.f : next->v.f > best->v.f);
}

static bp_status cumulate(bp_ctx *c, op_call *k, bool down)
{
    work w = {.c = c};
    lanes l;
    bp_tensor *values = work_out(&w, k->out[0], BP_DTYPE_UNSET), *indices = work_out(&w, k->out[1], BP_DTYPE_UNSET);
    if (start(&w, arg_tensor(k->args, 0), dim_of(c, k, 1), &l)) {
        for (int64_t o = 0; o < l.s.outer; o++) {
            for (int64_t x = 0; x < l.s.inner; x++) {
                read_lane(&l, o, x);
                for (int64_t i = 0, best = 0; i < l.s.n; i++) {
                    best = i > 0 && keeps(&l, &l.lane[best], &l.lane[i], down) ? best : i;
                    write_lane(&l, values, indices, l.s.n, o, x, i, best);
                }
            }
        }
    }
    return work_end(&w);
}

bp_status kernel_cummax(bp_ctx *c, op_call *k) { return cumulate(c, k, true); }
bp_status kernel_cummin(bp_ctx *c, op_call *k) { return cumulate(c, k, false); }
