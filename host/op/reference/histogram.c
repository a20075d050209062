/* Histograms over bins of any widths, in one dimension (histogram) or several (histogramdd).
 *
 * A sample is a point of as many coordinates as there are dimensions; one that leaves the outermost edges, or is not a
 * number, counts nowhere. A bin holds its left edge, the last one its right edge too. For float32 and float64. */
#include "host/op/checks.h"
#include "host/op/reference/work.h"
#include "host/op/rows.h"
#include <math.h>
#include <string.h>

enum { SELF, BINS };
enum { HISTOGRAM_DIMS = TENSOR_MAX_RANK };

static uint32_t named(const op_row *op, const char *name) { return (uint32_t)schema_find(op->schema, name); }

/* A point's coordinates: "histogram" takes each element as one of its own. */
static bool is_plain(const op_row *op) { return strcmp(op->schema->name, "histogram") == 0; }
static bool takes_edges(const op_row *op) { return schema_find(op->schema, "range") < 0; }

static int64_t dims_of(const op_row *op, const bp_value *args)
{
    const bp_tensor *self = arg_tensor(args, SELF);
    return is_plain(op) ? 1 : self->rank ? tensor_dim(self, self->rank - 1) : 0;
}

/* Edges or counts of dimension d. */
static const bp_tensor *edges_arg(const bp_value *args, uint32_t d)
{
    return args[BINS].kind == BP_VALUE_LIST ? arg_list_tensor(args, BINS, d) : arg_tensor(args, BINS);
}
static bp_dim count_arg(const bp_value *args, uint32_t d)
{
    return args[BINS].kind == BP_VALUE_LIST ? arg_list_dim(args, BINS, d) : arg_dim(args, BINS);
}

static bp_status check_weight(bp_ctx *c, const shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, SELF), *weight = arg_tensor(s->args, named(s->op, "weight"));
    uint32_t rank = is_plain(s->op) ? self->rank : self->rank - 1;
    if (!weight)
        return BP_OK;
    TRY(check_same_dtype(c, s, SELF, named(s->op, "weight")));
    bool fits = weight->rank == rank;
    for (uint32_t d = 0; fits && d < rank; d++)
        fits = dim_eq(weight->sizes[d], self->sizes[d]);
    return fits ? BP_OK : op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"weight\": expected a weight a sample");
}

/* The number of edges of dimension d. */
static bp_status check_bins(bp_ctx *c, const shape_call *s, uint32_t d, bp_dim *edges)
{
    const bp_tensor *given = takes_edges(s->op) ? edges_arg(s->args, d) : NULL;
    if (given && (given->rank != 1 || given->dtype != arg_tensor(s->args, SELF)->dtype))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"bins\": edges of dimension %u must be a vector of %s",
                       d, dtype_get(arg_tensor(s->args, SELF)->dtype)->torch);
    *edges = given ? given->sizes[0] : dim_add(c, count_arg(s->args, d), dim_const(1));
    if (edges->value < 2)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"bins\": %lld bins in dimension %u",
                       (long long)edges->value - 1, d);
    return BP_OK;
}

static bp_status check_range(bp_ctx *c, const shape_call *s, int64_t dims)
{
    uint32_t at = named(s->op, "range");
    if (takes_edges(s->op) || arg_is_none(s->args, at))
        return BP_OK;
    if (arg_list_len(s->args, at) != 2 * (uint64_t)dims)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"range\": %u numbers for %lld dimensions",
                       arg_list_len(s->args, at), (long long)dims);
    return BP_OK;
}

bp_status shape_histogram(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, SELF);
    bp_dim edges[HISTOGRAM_DIMS], bins[HISTOGRAM_DIMS];
    if (self->dtype != BP_F32 && self->dtype != BP_F64)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"self\": not there for %s",
                       dtype_get(self->dtype)->torch);
    if (!is_plain(s->op))
        TRY(check_rank(c, s, SELF, 2, TENSOR_MAX_RANK));
    int64_t dims = dims_of(s->op, s->args);
    bool listed = s->args[BINS].kind == BP_VALUE_LIST;
    if (dims < 1 || dims > HISTOGRAM_DIMS || (listed && arg_list_len(s->args, BINS) != (uint64_t)dims))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"bins\": %u of them for points of %lld coordinates",
                       arg_list_len(s->args, BINS), (long long)dims);
    TRY(check_weight(c, s));
    TRY(check_range(c, s, dims));
    for (uint32_t d = 0; d < dims; d++) {
        TRY(check_bins(c, s, d, &edges[d]));
        bins[d] = dim_sub(c, edges[d], dim_const(1));
    }
    if (s->op->schema->returns[0].list) {
        for (uint32_t d = 0; d < dims; d++)
            TRY(out_new(c, s, self->dtype, 1, &edges[d]));
        return BP_OK;
    }
    TRY(out_new(c, s, self->dtype, (uint32_t)dims, bins));
    return s->op->schema->nreturns > 1 ? out_new(c, s, self->dtype, 1, edges) : BP_OK;
}

/* -- edges -- */

/* The least and greatest coordinate d, or what the caller says; half a unit more each where they are equal. */
static bp_status find_range(bp_ctx *c, const op_call *k, const double *point, int64_t n, int64_t dims, int64_t d,
                            double *low, double *high)
{
    uint32_t at = named(k->op, "range");
    *low = 0, *high = 1;
    if (!arg_is_none(k->args, at)) {
        *low = arg_float(k->args[at].v.items, (uint32_t)(2 * d));
        *high = arg_float(k->args[at].v.items, (uint32_t)(2 * d + 1));
    } else if (n > 0) {
        *low = *high = point[d];
        for (int64_t i = 0; i < n; i++) {
            double v = point[i * dims + d];
            *low = v < *low || isnan(v) ? v : *low;
            *high = v > *high || isnan(v) ? v : *high;
        }
    }
    if (!isfinite(*low) || !isfinite(*high) || *low > *high)
        return op_fail(c, k->op, BP_INVALID_ARGUMENT, "dimension %lld ranges from %g to %g", (long long)d, *low, *high);
    if (*low == *high)
        *low -= 0.5, *high += 0.5;
    return BP_OK;
}

/* Edges of dimension d, in the type of the samples and widened. NULL: an error. */
static bp_tensor *edges_of(work *w, const op_call *k, const bp_tensor *points, int64_t n, int64_t dims, int64_t d)
{
    bp_dtype type = arg_tensor(k->args, SELF)->dtype;
    double low, high;
    if (takes_edges(k->op)) {
        const bp_value one = value_tensor(k->args[BINS].kind == BP_VALUE_LIST
                                              ? arg_list_tensor(k->args, BINS, (uint32_t)d)
                                              : arg_tensor(k->args, BINS));
        return work_in(w, one.v.tensor, BP_F64);
    }
    if (!work_ok(w) || find_range(w->c, k, tensor_ptr(points), n, dims, d, &low, &high) != BP_OK)
        return NULL;
    bp_value args[] = {value_float(low), value_float(high),
                       value_int(count_arg(k->args, (uint32_t)d).value + 1), value_dtype(type)};
    return work_in(w, work_own(w, op_call1(w->c, ROW_linspace_default, 4, args)), BP_F64);
}

/* -- counting -- */

/* The bin of v among n edges, or -1. */
static int64_t bin_of(const double *edge, int64_t n, double v)
{
    int64_t low = 0, high = n; /* the first edge above v is in [low, high] */
    if (!(v >= edge[0] && v <= edge[n - 1]))
        return -1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (edge[middle] <= v)
            low = middle + 1;
        else
            high = middle;
    }
    return low == n ? n - 2 : low - 1;
}

static void count_points(const bp_tensor *const *edges, int64_t dims, const double *point, const double *weight,
                         int64_t n, double *hist)
{
    for (int64_t i = 0; i < n; i++, point += dims) {
        int64_t cell = 0, bin = 0;
        for (int64_t d = 0; d < dims && bin >= 0; d++) {
            int64_t count = tensor_nelem(edges[d]);
            bin = bin_of(tensor_ptr(edges[d]), count, point[d]);
            cell = cell * (count - 1) + bin;
        }
        if (bin >= 0)
            hist[cell] += weight ? weight[i] : 1;
    }
}

/* Counts become a density: shares of the whole by the bins' volumes. */
static void make_density(const bp_tensor *const *edges, int64_t dims, int64_t cells, double *hist)
{
    double sum = 0;
    for (int64_t i = 0; i < cells; i++)
        sum += hist[i];
    for (int64_t i = 0; i < cells; i++) {
        double volume = 1;
        for (int64_t d = dims, rest = i; d-- > 0;) {
            const double *edge = tensor_ptr(edges[d]);
            int64_t bins = tensor_nelem(edges[d]) - 1;
            volume *= edge[rest % bins + 1] - edge[rest % bins];
            rest /= bins;
        }
        hist[i] = hist[i] / sum / volume;
    }
}

bp_status kernel_histogram(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    const bp_tensor *edges[HISTOGRAM_DIMS];
    bp_tensor *points = work_in(&w, arg_tensor(k->args, SELF), BP_F64);
    bp_tensor *weight = work_in(&w, arg_tensor(k->args, named(k->op, "weight")), BP_F64);
    int64_t dims = dims_of(k->op, k->args), n = points ? tensor_nelem(points) / dims : 0;
    bool lists = k->op->schema->returns[0].list;
    for (uint32_t d = 0; d < dims; d++) {
        bp_tensor *one = edges_of(&w, k, points, n, dims, d);
        edges[d] = one;
        if (one && (lists || k->nout > 1))
            tensor_copy(c, k->out[lists ? d : 1], one);
    }
    if (!work_ok(&w) || lists)
        return work_end(&w);
    bp_tensor *out = work_out(&w, k->out[0], BP_F64);
    if (work_ok(&w)) {
        work_clear(out);
        count_points(edges, dims, tensor_ptr(points), weight ? tensor_ptr(weight) : NULL, n, tensor_ptr(out));
        if (arg_bool(k->args, named(k->op, "density")))
            make_density(edges, dims, tensor_nelem(out), tensor_ptr(out));
    }
    return work_end(&w);
}
