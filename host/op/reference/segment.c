/* segment_reduce: one dimension cut into segments that are summed, averaged, multiplied or searched, and its gradient.
 *
 * Segments are given by lengths, or by offsets of which there is one more than segments; both have the sizes of the
 * data up to the axis. Accumulators are rounded to the type at each step, as PyTorch's are. Segments must stay within
 * the data even where "unsafe" asks for no check. */
#include "host/op/checks.h"
#include "host/op/reference/loop.h"
#include "host/op/reference/work.h"
#include "host/op/rows.h"
#include <math.h>
#include <string.h>

enum segment_kind { SEGMENT_SUM, SEGMENT_MEAN, SEGMENT_MAX, SEGMENT_MIN, SEGMENT_PROD, SEGMENT_KINDS };

/* What both operators take, by name: their orders differ. */
typedef struct {
    bp_tensor *data, *lengths, *offsets;
    enum segment_kind kind;
    int64_t axis;
    bp_scalar initial;
} segment_args;

static uint32_t named(const op_row *op, const char *name) { return (uint32_t)schema_find(op->schema, name); }

static bp_status read_kind(bp_ctx *c, const op_row *op, const char *name, enum segment_kind *out)
{
    static const char *const names[SEGMENT_KINDS] = {"sum", "mean", "max", "min", "prod"};
    for (uint32_t i = 0; i < SEGMENT_KINDS; i++)
        if (strcmp(names[i], name) == 0) {
            *out = (enum segment_kind)i;
            return BP_OK;
        }
    return op_fail(c, op, BP_INVALID_ARGUMENT, "argument \"reduce\": \"%s\" is none of sum, mean, max, min and prod",
                   name);
}

static bp_status read_args(bp_ctx *c, const op_row *op, const bp_value *args, segment_args *out)
{
    *out = (segment_args){.data = arg_tensor(args, named(op, "data")),
                          .lengths = arg_tensor(args, named(op, "lengths")),
                          .offsets = arg_tensor(args, named(op, "offsets")),
                          .axis = arg_int(c, args, named(op, "axis")),
                          .initial = arg_scalar(args, named(op, "initial"))};
    return read_kind(c, op, arg_str(args, named(op, "reduce")), &out->kind);
}

static bp_status check_args(bp_ctx *c, const shape_call *s, const segment_args *a)
{
    const bp_tensor *cuts = a->lengths ? a->lengths : a->offsets;
    char data[256], other[256];
    if (!a->lengths == !a->offsets)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "expected one of \"lengths\" and \"offsets\", got %s",
                       a->lengths ? "both" : "neither");
    if (!dtype_is_float(a->data->dtype))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"data\": not there for %s",
                       dtype_get(a->data->dtype)->torch);
    TRY(check_index_dtype(c, s, named(s->op, a->lengths ? "lengths" : "offsets")));
    bool fits = a->data->rank > 0 && a->axis + 1 == (int64_t)cuts->rank && cuts->rank <= a->data->rank;
    for (int64_t d = 0; fits && d < a->axis; d++)
        fits = dim_eq(cuts->sizes[d], a->data->sizes[d]);
    if (!fits || (a->offsets && dim_is(cuts->sizes[a->axis], 0)))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                       "argument \"%s\" of sizes %s does not cut dimension %lld of sizes %s into segments",
                       a->lengths ? "lengths" : "offsets", sizes_text(other, sizeof other, cuts->rank, cuts->sizes),
                       (long long)a->axis, sizes_text(data, sizeof data, a->data->rank, a->data->sizes));
    return BP_OK;
}

bp_status shape_segment_reduce(bp_ctx *c, shape_call *s)
{
    segment_args a;
    bp_dim sizes[TENSOR_MAX_RANK];
    TRY(read_args(c, s->op, s->args, &a));
    if (!arg_is_none(s->args, named(s->op, "indices")))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"indices\": PyTorch has no segments by indices");
    TRY(check_args(c, s, &a));
    memcpy(sizes, a.data->sizes, a.data->rank * sizeof *sizes);
    sizes[a.axis] = a.lengths ? a.lengths->sizes[a.axis] : dim_sub(c, a.offsets->sizes[a.axis], dim_const(1));
    return out_new(c, s, a.data->dtype, a.data->rank, sizes);
}

bp_status shape_segment_reduce_backward(bp_ctx *c, shape_call *s)
{
    segment_args a;
    TRY(read_args(c, s->op, s->args, &a));
    TRY(check_args(c, s, &a));
    TRY(check_same_dtype(c, s, 0, 2));
    return out_new(c, s, a.data->dtype, a.data->rank, a.data->sizes);
}

/* -- kernels: the data as [outer, n, inner], results as [outer, segments, inner] -- */

typedef struct {
    const op_row *op;
    segment_args args;
    work_split split;
    int64_t segments;
    const int64_t *cuts;
    bp_dtype dtype;
} segment_run;

/* Segment j of row o, as positions [low, high). */
typedef struct { int64_t low, high; } segment_bounds;

static segment_bounds bounds_of(const segment_run *r, int64_t o, int64_t j, int64_t before)
{
    const int64_t *row = r->cuts + o * (r->segments + (r->args.offsets ? 1 : 0));
    return r->args.offsets ? (segment_bounds){row[j], row[j + 1]} : (segment_bounds){before, before + row[j]};
}

/* No segment is of negative length or leaves the data; unless it is told not to, lengths must add up to all of it. */
static bp_status check_bounds(bp_ctx *c, const segment_run *r, bool is_whole)
{
    for (int64_t o = 0; o < r->split.outer; o++) {
        segment_bounds b = {0, 0};
        for (int64_t j = 0; j < r->segments; j++) {
            b = bounds_of(r, o, j, b.high);
            if (b.low < 0 || b.high < b.low || b.high > r->split.n)
                return op_fail(c, r->op, BP_OUT_OF_RANGE, "segment %lld is [%lld, %lld) of %lld elements",
                               (long long)j, (long long)b.low, (long long)b.high, (long long)r->split.n);
        }
        if (is_whole && r->args.lengths && b.high != r->split.n)
            return op_fail(c, r->op, BP_INVALID_ARGUMENT,
                           "argument \"lengths\": they add up to %lld, and the data have %lld elements along %lld",
                           (long long)b.high, (long long)r->split.n, (long long)r->args.axis);
    }
    return BP_OK;
}

static double first_value(const segment_run *r)
{
    static const double first[SEGMENT_KINDS] = {0, 0, -INFINITY, INFINITY, 1};
    return r->args.initial.kind == BP_SCALAR_UNSET ? first[r->args.kind] : scalar_float(r->args.initial);
}

static double step(const segment_run *r, double sum, double v)
{
    switch (r->args.kind) {
    case SEGMENT_MAX:
        return isnan(v) || isnan(sum) ? NAN : v > sum ? v : sum;
    case SEGMENT_MIN:
        return isnan(v) || isnan(sum) ? NAN : v < sum ? v : sum;
    case SEGMENT_PROD:
        return loop_round(r->dtype, sum * v);
    default:
        return loop_round(r->dtype, sum + v);
    }
}

static double reduce(const segment_run *r, const double *data, segment_bounds b)
{
    double sum = loop_round(r->dtype, first_value(r));
    for (int64_t i = b.low; i < b.high; i++)
        sum = step(r, sum, data[i * r->split.inner]);
    if (r->args.kind != SEGMENT_MEAN)
        return sum;
    int64_t n = b.high - b.low;
    return n > 0 ? sum / (double)n : r->args.initial.kind == BP_SCALAR_UNSET ? NAN : sum;
}

static bp_status start(work *w, const op_call *k, segment_run *r)
{
    *r = (segment_run){.op = k->op, .dtype = k->out[0]->dtype};
    TRY(read_args(w->c, k->op, k->args, &r->args));
    bp_tensor *cuts = work_in(w, r->args.lengths ? r->args.lengths : r->args.offsets, BP_I64);
    if (!cuts)
        return w->c->diag.code;
    r->cuts = tensor_ptr(cuts);
    r->split = work_around(r->args.data, r->args.axis);
    r->segments = tensor_dim(cuts, (uint32_t)r->args.axis) - (r->args.offsets ? 1 : 0);
    return BP_OK;
}

bp_status kernel_segment_reduce(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    segment_run r;
    bp_tensor *data = work_in(&w, arg_tensor(k->args, 0), BP_F64), *out = work_out(&w, k->out[0], BP_F64);
    if (!work_ok(&w) || start(&w, k, &r) != BP_OK ||
        check_bounds(c, &r, !arg_bool(k->args, named(k->op, "unsafe"))) != BP_OK)
        return work_end(&w);
    const double *from = tensor_ptr(data);
    double *to = tensor_ptr(out);
    for (int64_t o = 0; o < r.split.outer; o++, from += r.split.n * r.split.inner) {
        segment_bounds b = {0, 0};
        for (int64_t j = 0; j < r.segments; j++) {
            b = bounds_of(&r, o, j, b.high);
            for (int64_t x = 0; x < r.split.inner; x++)
                *to++ = reduce(&r, from + x, b);
        }
    }
    return work_end(&w);
}

/* -- the gradient of one segment: `out` and `grad` are its result and what comes back for it -- */

/* The elements that are the extreme share it; PyTorch divides shares that are positive, and no others. */
static void spread_extreme(const segment_run *r, const double *data, double *to, segment_bounds b, double out,
                           double grad)
{
    int64_t inner = r->split.inner, count = 0;
    for (int64_t i = b.low; i < b.high; i++)
        if (isnan(data[i * inner]) || data[i * inner] == out) {
            to[i * inner] = grad;
            count++;
        }
    for (int64_t i = b.low; count > 1 && i < b.high; i++)
        if (to[i * inner] > 0)
            to[i * inner] /= (double)count;
}

static void spread_product(const segment_run *r, const double *data, double *to, segment_bounds b, double out,
                           double grad)
{
    int64_t inner = r->split.inner;
    for (int64_t i = b.low; i < b.high; i++) {
        double v = data[i * inner], others = first_value(r);
        if (v != 0 && !isnan(v)) {
            to[i * inner] = grad * out / v;
            continue;
        }
        for (int64_t j = b.low; j < b.high; j++)
            others *= j == i ? 1 : data[j * inner];
        to[i * inner] = grad * others;
    }
}

static void spread(const segment_run *r, const double *data, double *to, segment_bounds b, double out, double grad)
{
    if (r->args.kind == SEGMENT_MAX || r->args.kind == SEGMENT_MIN) {
        spread_extreme(r, data, to, b, out, grad);
    } else if (r->args.kind == SEGMENT_PROD) {
        spread_product(r, data, to, b, out, grad);
    } else {
        double share = r->args.kind == SEGMENT_MEAN ? grad / (double)(b.high - b.low) : grad;
        for (int64_t i = b.low; i < b.high; i++)
            to[i * r->split.inner] = share;
    }
}

bp_status kernel_segment_reduce_backward(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    segment_run r;
    bp_tensor *grad = work_in(&w, arg_tensor(k->args, 0), BP_F64), *out = work_in(&w, arg_tensor(k->args, 1), BP_F64);
    bp_tensor *data = work_in(&w, arg_tensor(k->args, 2), BP_F64), *result = work_out(&w, k->out[0], BP_F64);
    if (!work_ok(&w) || start(&w, k, &r) != BP_OK || check_bounds(c, &r, false) != BP_OK)
        return work_end(&w);
    if (tensor_nelem(grad) != r.split.outer * r.segments * r.split.inner || tensor_nelem(out) != tensor_nelem(grad)) {
        op_fail(c, k->op, BP_INVALID_ARGUMENT, "\"grad\" and \"output\" must have an element for each of %lld segments",
                (long long)r.segments);
        return work_end(&w);
    }
    work_clear(result);
    int64_t at = 0, plane = r.split.n * r.split.inner;
    for (int64_t o = 0; o < r.split.outer; o++) {
        segment_bounds b = {0, 0};
        for (int64_t j = 0; j < r.segments; j++) {
            b = bounds_of(&r, o, j, b.high);
            for (int64_t x = 0; x < r.split.inner; x++, at++)
                spread(&r, (const double *)tensor_ptr(data) + o * plane + x,
                       (double *)tensor_ptr(result) + o * plane + x, b, ((const double *)tensor_ptr(out))[at],
                       ((const double *)tensor_ptr(grad))[at]);
        }
    }
    return work_end(&w);
}
