/* Picking and writing along one dimension: gather, scatter and reductions, index_*, take, put, embedding.
 *
 * All of them walk over lanes: the elements of an index (or of a source whose size along the dimension is the
 * index's), each with its place in the tensor that is read or written. Indices do not wrap, but in index_fill, take
 * and put. */
#include "host/op/reference/number.h"
#include "host/op/reference/walk.h"
#include "host/op/reference/work.h"
#include "host/op/rows.h"
#include <string.h>

/* Operands of the walk: the index, the tensor that is indexed (its offset along `dim` is added by place()), the other.
 */
typedef struct {
    bp_ctx *c;
    const op_row *op;
    const bp_tensor *index;
    walk v;
    uint32_t dim;
    int64_t size, step; /* of the indexed tensor along dim */
    bool wraps;
} lanes;

enum { AT_INDEX, AT_SELF, AT_OTHER };

/* Walks over `shape`. index has its strides, or runs along dim alone when `vector`. */
static void start(lanes *l, bp_ctx *c, const op_row *op, const bp_tensor *shape, const bp_tensor *index, bool vector,
                  const bp_tensor *self, uint32_t dim, const bp_tensor *other)
{
    bp_dim own[TENSOR_MAX_RANK], from[TENSOR_MAX_RANK];
    *l = (lanes){.c = c, .op = op, .index = index, .dim = dim, .size = 1};
    if (self->rank)
        l->size = tensor_dim(self, dim), l->step = tensor_step(self, dim);
    for (uint32_t d = 0; d < shape->rank; d++) {
        from[d] = d == dim || d >= self->rank ? dim_const(0) : self->strides[d];
        own[d] = !vector ? index->strides[d] : d == dim && index->rank ? index->strides[0] : dim_const(0);
    }
    walk_start(&l->v, shape->rank, shape->sizes);
    walk_add(&l->v, own);
    walk_add(&l->v, from);
    walk_add(&l->v, other ? other->strides : own);
}

static int64_t load_index(const bp_tensor *t, int64_t at)
{
    return t->dtype == BP_I32 ? ((const int32_t *)tensor_ptr(t))[at] : ((const int64_t *)tensor_ptr(t))[at];
}

/* Offset of the current lane in the indexed tensor, or -1 after an error. */
static int64_t place(lanes *l)
{
    int64_t i = load_index(l->index, l->v.at[AT_INDEX]);
    if (i < (l->wraps ? -l->size : 0) || i >= l->size) {
        op_fail(l->c, l->op, BP_OUT_OF_RANGE, "index %lld is out of bounds for dimension %u with size %lld",
                (long long)i, l->dim, (long long)l->size);
        return -1;
    }
    return l->v.at[AT_SELF] + (i < 0 ? i + l->size : i) * l->step;
}

static char *element(const bp_tensor *t, int64_t at)
{
    return (char *)tensor_ptr(t) + at * (int64_t)dtype_size(t->dtype);
}

static bp_status gather(bp_ctx *c, const op_row *op, const bp_tensor *self, const bp_tensor *index, uint32_t dim,
                        const bp_tensor *out, bool wraps)
{
    lanes l;
    start(&l, c, op, index, index, false, self, dim, out);
    l.wraps = wraps;
    for (; l.v.left; walk_next(&l.v)) {
        int64_t at = place(&l);
        if (at < 0)
            break;
        memcpy(element(out, l.v.at[AT_OTHER]), element(self, at), dtype_size(self->dtype));
    }
    return c->diag.code;
}

bp_status kernel_gather(bp_ctx *c, op_call *k)
{
    const bp_tensor *self = arg_tensor(k->args, 0), *index = arg_tensor(k->args, 2);
    return gather(c, k->op, self, index, work_dim(c, k->args, 1, self), k->out[0], false);
}

/* Without a dimension both are flat; with one, they are broadcast along the others. */
bp_status kernel_take_along_dim(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *self = arg_tensor(k->args, 0), *index = arg_tensor(k->args, 1), *out = k->out[0];
    bool flat = arg_is_none(k->args, 2);
    uint32_t dim = flat ? 0 : work_dim(c, k->args, 2, self);
    if (flat) {
        self = work_flat(&w, self);
        index = work_flat(&w, index);
    } else {
        bp_dim sizes[TENSOR_MAX_RANK];
        for (uint32_t d = 0; d < self->rank; d++)
            sizes[d] = d == dim ? self->sizes[d] : out->sizes[d];
        self = work_expand(&w, self, self->rank, sizes);
        index = work_expand(&w, index, out->rank, out->sizes);
    }
    if (work_ok(&w))
        gather(c, k->op, self, index, dim, out, true);
    return work_end(&w);
}

/* -- writing -- */

enum combine { COMBINE_SET, COMBINE_SUM, COMBINE_PROD, COMBINE_MEAN, COMBINE_AMAX, COMBINE_AMIN };

static enum combine combine_of(const char *name)
{
    static const struct {
        const char *name;
        enum combine how;
    } NAMES[] = {{"add", COMBINE_SUM},   {"sum", COMBINE_SUM},   {"multiply", COMBINE_PROD}, {"prod", COMBINE_PROD},
                 {"mean", COMBINE_MEAN}, {"amax", COMBINE_AMAX}, {"amin", COMBINE_AMIN}};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (strcmp(NAMES[i].name, name) == 0)
            return NAMES[i].how;
    return COMBINE_SET;
}

static num combine(enum combine how, num a, num b)
{
    switch (how) {
    case COMBINE_SUM:
    case COMBINE_MEAN: return num_add(a, b);
    case COMBINE_PROD: return num_mul(a, b);
    case COMBINE_AMAX: return num_max(a, b);
    case COMBINE_AMIN: return num_min(a, b);
    default: return b;
    }
}

static num identity(enum combine how, bp_dtype d)
{
    switch (how) {
    case COMBINE_PROD: return num_of_int(d, 1);
    case COMBINE_AMAX: return num_lowest(d);
    case COMBINE_AMIN: return num_highest(d);
    default: return num_of_int(d, 0);
    }
}

/* What is written: a tensor's elements times `scale`, or one number. */
typedef struct {
    const bp_tensor *src;
    num number, scale;
    bool scaled;
} source;

static num read_source(const source *s, int64_t at)
{
    if (!s->src)
        return s->number;
    num v = dtype_load(s->src->dtype, element(s->src, at));
    return s->scaled ? num_mul(v, s->scale) : v;
}

static bp_status write_lanes(lanes l, bp_tensor *out, const source *s, enum combine how)
{
    for (; l.v.left; walk_next(&l.v)) {
        int64_t at = place(&l);
        if (at < 0)
            break;
        char *to = element(out, at);
        num v = read_source(s, l.v.at[AT_OTHER]);
        dtype_store(out->dtype, to, how == COMBINE_SET ? v : combine(how, dtype_load(out->dtype, to), v));
    }
    return l.c->diag.code;
}

/* Divides what was summed by how much was summed, in a contiguous out. */
static void divide(bp_tensor *out, const int64_t *counts)
{
    for (int64_t i = 0, n = tensor_nelem(out); i < n; i++) {
        char *at = element(out, i);
        if (counts[i] > 1)
            dtype_store(out->dtype, at, num_div(dtype_load(out->dtype, at), num_of_int(out->dtype, counts[i])));
    }
}

/* Reduces into a contiguous out: without `self`, what is written to starts from the reduction's identity. */
static bp_status reduce_lanes(work *w, const lanes *l, bp_tensor *out, const source *s, enum combine how, bool self)
{
    if (!self) {
        source start_at = {.number = identity(how, out->dtype)};
        TRY(write_lanes(*l, out, &start_at, COMBINE_SET));
    }
    TRY(write_lanes(*l, out, s, how));
    if (how != COMBINE_MEAN)
        return BP_OK;
    int64_t n = tensor_nelem(out), *counts = work_alloc(w, n, sizeof *counts);
    for (int64_t i = 0; counts && i < n; i++)
        counts[i] = self;
    for (lanes v = *l; counts && v.v.left; walk_next(&v.v))
        counts[place(&v)]++;
    if (counts)
        divide(out, counts);
    return w->c->diag.code;
}

static bp_status scatter(bp_ctx *c, op_call *k, enum combine how, bool self)
{
    work w = {.c = c};
    const bp_tensor *index = arg_tensor(k->args, 2);
    bool tensor = k->args[3].kind == BP_VALUE_TENSOR;
    source s = {.src = tensor ? arg_tensor(k->args, 3) : NULL};
    bp_tensor *out = work_out_copy(&w, k->out[0], arg_tensor(k->args, 0));
    lanes l;
    if (work_ok(&w) && !tensor)
        work_number(c, k->op, out->dtype, arg_scalar(k->args, 3), &s.number);
    if (work_ok(&w)) {
        start(&l, c, k->op, index, index, false, out, work_dim(c, k->args, 1, out), s.src);
        reduce_lanes(&w, &l, out, &s, how, self);
    }
    return work_end(&w);
}

bp_status kernel_scatter(bp_ctx *c, op_call *k) { return scatter(c, k, COMBINE_SET, true); }
bp_status kernel_scatter_add(bp_ctx *c, op_call *k) { return scatter(c, k, COMBINE_SUM, true); }

bp_status kernel_scatter_named(bp_ctx *c, op_call *k) { return scatter(c, k, combine_of(arg_str(k->args, 4)), true); }

bp_status kernel_scatter_reduce(bp_ctx *c, op_call *k)
{
    return scatter(c, k, combine_of(arg_str(k->args, 4)), arg_bool(k->args, 5));
}

/* -- index_*: the index is a vector along dim -- */

static bp_status index_write(bp_ctx *c, op_call *k, enum combine how, bool self, const bp_scalar *alpha)
{
    work w = {.c = c};
    const bp_tensor *src = arg_tensor(k->args, 3);
    bp_tensor *out = work_out_copy(&w, k->out[0], arg_tensor(k->args, 0));
    lanes l;
    if (work_ok(&w)) {
        source s = {.src = src, .scaled = alpha != NULL};
        if (alpha)
            s.scale = num_of_scalar(out->dtype, *alpha);
        start(&l, c, k->op, src, arg_tensor(k->args, 2), true, out, work_dim(c, k->args, 1, out), src);
        reduce_lanes(&w, &l, out, &s, how, self);
    }
    return work_end(&w);
}

bp_status kernel_index_add(bp_ctx *c, op_call *k)
{
    bp_scalar alpha = arg_scalar(k->args, 4);
    return index_write(c, k, COMBINE_SUM, true, &alpha);
}

bp_status kernel_index_copy(bp_ctx *c, op_call *k) { return index_write(c, k, COMBINE_SET, true, NULL); }

bp_status kernel_index_reduce(bp_ctx *c, op_call *k)
{
    return index_write(c, k, combine_of(arg_str(k->args, 4)), arg_bool(k->args, 5), NULL);
}

bp_status kernel_index_fill(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    const bp_tensor *index = arg_tensor(k->args, 2);
    bp_tensor *out = work_out_copy(&w, k->out[0], arg_tensor(k->args, 0));
    source s = {0};
    if (work_ok(&w) && k->args[3].kind == BP_VALUE_TENSOR)
        s.number = work_item(arg_tensor(k->args, 3), out->dtype);
    else if (work_ok(&w))
        work_number(c, k->op, out->dtype, arg_scalar(k->args, 3), &s.number);
    if (work_ok(&w)) {
        uint32_t dim = work_dim(c, k->args, 1, out);
        bp_dim sizes[TENSOR_MAX_RANK + 1];
        for (uint32_t d = 0; d < out->rank; d++)
            sizes[d] = out->sizes[d];
        sizes[dim] = dim_const(tensor_nelem(index)); /* also of a 0-d tensor, which has one place */
        bp_tensor shape = {.rank = out->rank ? out->rank : 1, .sizes = sizes};
        lanes l;
        start(&l, c, k->op, &shape, index, true, out, dim, NULL);
        l.wraps = true;
        write_lanes(l, out, &s, COMBINE_SET);
    }
    return work_end(&w);
}

/* Copies slices of `inner` elements; the index is checked on the way. */
static bp_status select_slices(bp_ctx *c, const op_row *op, const bp_tensor *self, const bp_tensor *index,
                               bp_tensor *out, work_split at)
{
    size_t slice = (size_t)at.inner * dtype_size(self->dtype);
    int64_t n = tensor_nelem(index);
    for (int64_t i = 0; i < n; i++) {
        int64_t x = load_index(index, i);
        if (x < 0 || x >= at.n)
            return op_fail(c, op, BP_OUT_OF_RANGE, "index %lld is out of range for a size of %lld", (long long)x,
                           (long long)at.n);
        for (int64_t o = 0; slice && o < at.outer; o++)
            memcpy((char *)tensor_ptr(out) + (size_t)(o * n + i) * slice,
                   (const char *)tensor_ptr(self) + (size_t)(o * at.n + x) * slice, slice);
    }
    return BP_OK;
}

bp_status kernel_index_select(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *self = work_in(&w, arg_tensor(k->args, 0), BP_DTYPE_UNSET);
    bp_tensor *index = work_in(&w, arg_tensor(k->args, 2), BP_DTYPE_UNSET),
              *out = work_out(&w, k->out[0], BP_DTYPE_UNSET);
    if (work_ok(&w))
        select_slices(c, k->op, self, index, out, work_around(self, work_dim(c, k->args, 1, self)));
    return work_end(&w);
}

bp_status kernel_embedding(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *weight = work_in(&w, arg_tensor(k->args, 0), BP_DTYPE_UNSET);
    bp_tensor *index = work_in(&w, arg_tensor(k->args, 1), BP_DTYPE_UNSET),
              *out = work_out(&w, k->out[0], BP_DTYPE_UNSET);
    if (work_ok(&w))
        select_slices(c, k->op, weight, index, out, work_around(weight, 0));
    return work_end(&w);
}

/* Rows of the gradient are summed by their index; the padding row gets nothing. */
bp_status kernel_embedding_dense_backward(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *grad = work_in(&w, arg_tensor(k->args, 0), BP_DTYPE_UNSET);
    bp_tensor *index = work_in(&w, arg_tensor(k->args, 1), BP_I64), *out = k->out[0];
    int64_t n = index ? tensor_nelem(index) : 0, rows = tensor_dim(out, 0), width = tensor_dim(out, 1);
    int64_t *counts = work_alloc(&w, rows, sizeof *counts), padding = arg_int(c, k->args, 3);
    if (work_ok(&w) && rows * width > 0)
        memset(tensor_ptr(out), 0, (size_t)(rows * width) * dtype_size(out->dtype));
    for (int64_t r = 0; work_ok(&w) && r < rows; r++)
        counts[r] = 0;
    for (int64_t i = 0; work_ok(&w) && i < n; i++) {
        int64_t x = load_index(index, i);
        if (x >= 0 && x < rows)
            counts[x]++;
        else
            op_fail(c, k->op, BP_OUT_OF_RANGE, "index %lld is out of range for a table of %lld rows", (long long)x,
                    (long long)rows);
    }
    for (int64_t i = 0; work_ok(&w) && i < n; i++) {
        int64_t x = load_index(index, i);
        num scale = {.kind = NUM_FLOAT, .f = arg_bool(k->args, 4) ? 1.0 / (double)counts[x] : 1.0};
        for (int64_t j = 0; x != padding && j < width; j++) {
            char *to = element(out, x * width + j);
            num g = num_mul(dtype_load(grad->dtype, element(grad, i * width + j)), scale);
            dtype_store(out->dtype, to, num_add(dtype_load(out->dtype, to), g));
        }
    }
    return work_end(&w);
}

/* -- flat indices -- */

static int64_t wrap_flat(bp_ctx *c, const op_row *op, int64_t i, int64_t n)
{
    if (i >= -n && i < n)
        return i < 0 ? i + n : i;
    op_fail(c, op, BP_OUT_OF_RANGE, "index %lld is out of range for a tensor of %lld elements", (long long)i,
            (long long)n);
    return -1;
}

bp_status kernel_take(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *self = work_in(&w, arg_tensor(k->args, 0), BP_DTYPE_UNSET);
    bp_tensor *index = work_in(&w, arg_tensor(k->args, 1), BP_I64), *out = work_out(&w, k->out[0], BP_DTYPE_UNSET);
    for (int64_t i = 0; work_ok(&w) && i < tensor_nelem(index); i++) {
        int64_t at = wrap_flat(c, k->op, load_index(index, i), tensor_nelem(self));
        if (at >= 0)
            memcpy(element(out, i), element(self, at), dtype_size(self->dtype));
    }
    return work_end(&w);
}

bp_status kernel_put(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *index = work_in(&w, arg_tensor(k->args, 1), BP_I64);
    bp_tensor *src = work_in(&w, arg_tensor(k->args, 2), BP_DTYPE_UNSET);
    bp_tensor *out = work_out_copy(&w, k->out[0], arg_tensor(k->args, 0));
    enum combine how = arg_bool(k->args, 3) ? COMBINE_SUM : COMBINE_SET;
    for (int64_t i = 0; work_ok(&w) && i < tensor_nelem(index); i++) {
        int64_t at = wrap_flat(c, k->op, load_index(index, i), tensor_nelem(out));
        if (at < 0)
            break;
        num v = dtype_load(src->dtype, element(src, i));
        dtype_store(out->dtype, element(out, at), combine(how, dtype_load(out->dtype, element(out, at)), v));
    }
    return work_end(&w);
}
