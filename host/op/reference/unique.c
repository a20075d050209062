/* unique, of all elements or of the slices along a dimension, sorted or consecutive.
 *
 * Slices of one element are the elements of a flat tensor, so there is one algorithm: order the slices (or leave
 * them), and begin a group wherever one differs from the one before. NaN differs from everything, and is sorted to the
 * end. */
#include "host/op/reference/work.h"
#include "host/op/rows.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* n slices of `each` values, contiguous, as doubles or int64; order[i] is the slice in place i. */
typedef struct {
    bool whole;
    int64_t n, each;
    const double *f;
    const int64_t *i;
    int64_t *order;
} slices;

static int compare_values(const slices *s, int64_t a, int64_t b)
{
    if (s->whole)
        return s->i[a] < s->i[b] ? -1 : s->i[a] > s->i[b];
    double x = s->f[a], y = s->f[b];
    return isnan(x) || isnan(y) ? isnan(x) - isnan(y) : x < y ? -1 : x > y;
}

static bool before(const slices *s, int64_t a, int64_t b)
{
    for (int64_t x = 0; x < s->each; x++) {
        int sign = compare_values(s, a * s->each + x, b * s->each + x);
        if (sign)
            return sign < 0;
    }
    return false;
}

static bool same(const slices *s, int64_t a, int64_t b)
{
    for (int64_t x = 0; x < s->each; x++) {
        int64_t i = a * s->each + x, j = b * s->each + x;
        if (s->whole ? s->i[i] != s->i[j] : !(s->f[i] == s->f[j]))
            return false;
    }
    return true;
}

/* Stable merge sort of order[low .. high). */
static void sort_slices(const slices *s, int64_t low, int64_t high, int64_t *room)
{
    if (high - low < 2)
        return;
    int64_t middle = low + (high - low) / 2, a = low, b = middle;
    sort_slices(s, low, middle, room);
    sort_slices(s, middle, high, room);
    for (int64_t i = low; i < high; i++) {
        bool right = a == middle || (b < high && before(s, s->order[b], s->order[a]));
        room[i] = s->order[right ? b++ : a++];
    }
    memcpy(s->order + low, room + low, (size_t)(high - low) * sizeof *room);
}

/* Gives each slice its group, in order; first[g] is a slice of group g, counts[g] its size. Returns how many. */
static int64_t group(const slices *s, int64_t *inverse, int64_t *first, int64_t *counts)
{
    int64_t groups = 0;
    for (int64_t i = 0; i < s->n; i++) {
        if (i == 0 || !same(s, s->order[i - 1], s->order[i])) {
            first[groups] = s->order[i];
            counts[groups++] = 0;
        }
        inverse[s->order[i]] = groups - 1;
        counts[groups - 1]++;
    }
    return groups;
}

/* t with dimension dim in front, contiguous. */
static bp_tensor *in_front(work *w, bp_tensor *t, uint32_t dim)
{
    bp_dim sizes[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK];
    for (uint32_t d = 0, from = 0; d < t->rank; d++) {
        from = d == 0 ? dim : d <= dim ? d - 1 : d;
        sizes[d] = t->sizes[from], strides[d] = t->strides[from];
    }
    tensor_meta m = {t->dtype, tensor_device(t), t->rank, sizes, strides, t->offset};
    return work_in(w, work_view(w, t, &m), BP_DTYPE_UNSET);
}

/* The values of the groups: `front` has the slices in front, the result has them at dim (flat: a vector). */
static bp_tensor *values(work *w, const bp_tensor *front, bool flat, uint32_t dim, const slices *s,
                         const int64_t *first, int64_t groups)
{
    bp_dim sizes[TENSOR_MAX_RANK] = {dim_const(groups)}, strides[TENSOR_MAX_RANK] = {dim_const(1)};
    bp_dim moved[TENSOR_MAX_RANK], steps[TENSOR_MAX_RANK];
    uint32_t rank = flat ? 1 : front->rank;
    for (uint32_t d = 1; d < rank; d++)
        sizes[d] = front->sizes[d];
    layout_contiguous(w->c, rank, sizes, strides);
    for (uint32_t d = 0; d < rank; d++) {
        uint32_t from = flat ? 0 : d == dim ? 0 : d < dim ? d + 1 : d;
        moved[d] = sizes[from], steps[d] = strides[from];
    }
    tensor_meta m = {front->dtype, tensor_device(front), rank, moved, steps, dim_const(0)};
    bp_tensor *out = work_ok(w) ? tensor_new(w->c, &m) : NULL;
    size_t slice = (size_t)s->each * dtype_size(front->dtype);
    for (int64_t g = 0; out && slice && g < groups; g++)
        memcpy((char *)tensor_ptr(out) + (size_t)g * slice, (const char *)tensor_ptr(front) + (size_t)first[g] * slice,
               slice);
    return out;
}

/* An int64 result of these sizes holding n numbers; an empty vector when it is not wanted. */
static bp_tensor *numbers(bp_ctx *c, bool wanted, uint32_t rank, const bp_dim *sizes, const int64_t *at, int64_t n)
{
    bp_dim none = dim_const(0), strides[TENSOR_MAX_RANK];
    uint32_t r = wanted ? rank : 1;
    const bp_dim *from = wanted ? sizes : &none;
    bp_dim copy[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < r; d++)
        copy[d] = from[d];
    layout_contiguous(c, r, copy, strides);
    tensor_meta m = {BP_I64, {BP_CPU, 0}, r, copy, strides, dim_const(0)};
    bp_tensor *out = ctx_ok(c) ? tensor_new(c, &m) : NULL;
    if (out && wanted && n)
        memcpy(tensor_ptr(out), at, (size_t)n * sizeof *at);
    return out;
}

typedef struct {
    bool sorts, flat, inverse, counts;
    uint32_t dim;
} unique_how;

static bp_status unique(bp_ctx *c, op_call *k, unique_how how)
{
    work w = {.c = c};
    bp_tensor *self = arg_tensor(k->args, 0);
    bp_tensor *front = how.flat ? work_in(&w, self, BP_DTYPE_UNSET) : in_front(&w, self, how.dim);
    slices s = {.whole = dtype_is_integral(self->dtype), .each = 1};
    s.n = how.flat ? tensor_nelem(self) : tensor_dim(self, how.dim);
    if (!how.flat)
        s.each = s.n ? tensor_nelem(self) / s.n : 0;
    bp_tensor *wide = work_in(&w, front, s.whole ? BP_I64 : BP_F64);
    int64_t *memory = work_alloc(&w, 5 * s.n, sizeof *memory), *first = memory + s.n, *counts = first + s.n;
    int64_t *inverse = counts + s.n;
    if (!work_ok(&w))
        return work_end(&w);
    s.order = memory;
    s.f = tensor_ptr(wide), s.i = tensor_ptr(wide);
    for (int64_t i = 0; i < s.n; i++)
        s.order[i] = i;
    if (how.sorts)
        sort_slices(&s, 0, s.n, inverse + s.n);
    int64_t groups = group(&s, inverse, first, counts);
    bp_dim n = dim_const(s.n), m = dim_const(groups);
    k->out[0] = values(&w, front, how.flat, how.dim, &s, first, groups);
    k->out[1] = numbers(c, how.inverse, how.flat ? self->rank : 1, how.flat ? self->sizes : &n, inverse, s.n);
    if (k->op->schema->nreturns > 2)
        k->out[2] = numbers(c, how.counts, 1, &m, counts, groups);
    return work_end(&w);
}

bp_status kernel_unique(bp_ctx *c, op_call *k)
{
    return unique(c, k, (unique_how){.sorts = true, .flat = true, .inverse = arg_bool(k->args, 2)});
}

bp_status kernel_unique2(bp_ctx *c, op_call *k)
{
    return unique(c, k, (unique_how){true, true, arg_bool(k->args, 2), arg_bool(k->args, 3), 0});
}

/* Inverse and counts come whether they are asked for or not. */
bp_status kernel_unique_dim(bp_ctx *c, op_call *k)
{
    return unique(c, k, (unique_how){true, false, true, true, work_dim(c, k->args, 1, arg_tensor(k->args, 0))});
}

bp_status kernel_unique_consecutive(bp_ctx *c, op_call *k)
{
    bool flat = arg_is_none(k->args, 3);
    unique_how how = {.flat = flat, .inverse = !flat || arg_bool(k->args, 1), .counts = !flat || arg_bool(k->args, 2)};
    if (!flat)
        how.dim = work_dim(c, k->args, 3, arg_tensor(k->args, 0));
    return unique(c, k, how);
}
