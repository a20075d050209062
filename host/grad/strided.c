/* Derivatives of as_strided: a gradient is laid over the storage that input and result share, and read off again.
 *
 * An element of the storage that the result reaches twice gets the sum of both gradients. One that the input reaches
 * several times gives each its part: a derivative in the storage, shared out evenly. */
#include "host/grad/write.h"
#include <stdlib.h>

/* Where a tensor lies over the stretch of storage: dimensions of more than one element only. All are numbers: which
 * steps are longer decides, so symbols are specialized. */
typedef struct {
    bp_dim sizes[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK];
    uint32_t rank;
    int64_t offset, end; /* first element, and one behind the last */
    bool empty, overlaps;
} place;

static int by_stride(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return x[1] != y[1] ? (x[1] > y[1]) - (x[1] < y[1]) : (x[0] > y[0]) - (x[0] < y[0]);
}

/* Dimensions by rising strides: no overlap where each step is longer than all before it reach. May say so of tensors
 * that do not overlap, as of some windows. */
static bool may_overlap(const place *p)
{
    int64_t pair[TENSOR_MAX_RANK][2], reach = 0;
    for (uint32_t d = 0; d < p->rank; d++) {
        pair[d][0] = p->sizes[d].value;
        pair[d][1] = p->strides[d].value;
    }
    qsort(pair, p->rank, sizeof *pair, by_stride);
    for (uint32_t d = 0; d < p->rank; d++) {
        if (pair[d][1] <= reach)
            return true;
        reach += pair[d][1] * (pair[d][0] - 1);
    }
    return false;
}

static void place_make(bp_ctx *c, place *p, bp_dims sizes, bp_dims strides, int64_t offset)
{
    *p = (place){.offset = offset, .end = offset + 1};
    for (uint32_t d = 0; d < sizes.n; d++) {
        int64_t size = dim_int(c, sizes.at[d]), step = dim_int(c, strides.at[d]);
        p->empty = p->empty || size == 0;
        if (size <= 1)
            continue;
        p->sizes[p->rank] = dim_const(size);
        p->strides[p->rank++] = dim_const(step);
        p->end += (size - 1) * step;
    }
    p->overlaps = may_overlap(p);
}

static void place_of(bp_ctx *c, place *p, const bp_tensor *t)
{
    place_make(c, p, grad_sizes(t), (bp_dims){t->strides, t->rank, 1}, dim_int(c, t->offset));
}

/* The place that as_strided's arguments say. */
static void place_asked(bp_ctx *c, place *p, const grad_call *g, const bp_tensor *self)
{
    bool here = arg_is_none(grad_value(g, "storage_offset"), 0);
    place_make(c, p, grad_arg_dims(c, g, "size"), grad_arg_dims(c, g, "stride"),
               dim_int(c, here ? self->offset : grad_arg_dim(g, "storage_offset")));
}

static bp_dims sizes_at(const place *p) { return (bp_dims){p->sizes, p->rank, 1}; }
static bp_dims strides_at(const place *p) { return (bp_dims){p->strides, p->rank, 1}; }

/* The numbers of the elements at a place, one after another. */
static bp_tensor *numbers_at(bp_ctx *c, const place *p, bp_tensor *stretch, int64_t start)
{
    bp_tensor *all = bp_aten_arange_default(c, bp_scalar_dim(grad_size(stretch, 0)), BP_I64, 0,
                                            stretch ? tensor_device(stretch) : (bp_device){0}, (bp_scalar){0});
    bp_tensor *at = bp_aten_as_strided_default(c, all, sizes_at(p), strides_at(p), bp_scalar_int(p->offset - start));
    return bp_aten_reshape_default(c, at, BP_DIMS(-1));
}

/* A gradient of the shape of the result, written (or added) at its place. */
static bp_tensor *written(bp_ctx *c, const place *p, bp_tensor *stretch, bp_tensor *grad, int64_t start)
{
    if (!p->overlaps)
        return bp_aten_as_strided_scatter_default(c, stretch, bp_aten_reshape_default(c, grad, sizes_at(p)),
                                                  sizes_at(p), strides_at(p), bp_scalar_int(p->offset - start));
    bp_tensor *flat = bp_aten_reshape_default(c, grad, BP_DIMS(-1));
    return bp_aten_index_add_default(c, stretch, 0, numbers_at(c, p, stretch, start), flat, (bp_scalar){0});
}

/* Each element over how often the place reaches it. */
static bp_tensor *shared_out(bp_ctx *c, const place *p, bp_tensor *stretch, int64_t start)
{
    if (!p->overlaps)
        return stretch;
    bp_tensor *at = numbers_at(c, p, stretch, start), *zeros = grad_zeros(c, stretch);
    bp_tensor *ones = bp_aten_full_default(c, grad_sizes(at), bp_scalar_int(1), stretch ? stretch->dtype : BP_F32, 0,
                                           stretch ? tensor_device(stretch) : (bp_device){0}, (bp_scalar){0});
    bp_tensor *count = bp_aten_index_add_default(c, zeros, 0, at, ones, (bp_scalar){0});
    bp_tensor *unreached = bp_aten_eq_scalar(c, count, bp_scalar_int(0));
    return grad_div(c, stretch, bp_aten_masked_fill_scalar(c, count, unreached, bp_scalar_int(1)));
}

/* A stretch of zeros from `start` on that holds both places. */
static bp_tensor *stretch_for(bp_ctx *c, bp_tensor *grad, const place *a, const place *b, int64_t start)
{
    int64_t end = a->end > b->end ? a->end : b->end;
    return grad_new_zeros(c, grad, BP_DIMS(end - start));
}

bp_status derive_as_strided(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self"), *grad = g->grads[0];
    place in, out;
    place_of(c, &in, self);
    place_asked(c, &out, g, self);
    if (in.empty || out.empty)
        return grad_done(c);
    int64_t start = in.offset < out.offset ? in.offset : out.offset;
    bp_tensor *stretch = written(c, &out, stretch_for(c, grad, &in, &out, start), grad, start);
    stretch = shared_out(c, &in, stretch, start);
    bp_dims strides = {self->strides, self->rank, 1};
    grad_give(g, "self", bp_aten_as_strided_default(c, stretch, grad_sizes(self), strides,
                                                    bp_scalar_int(in.offset - start)));
    return grad_done(c);
}

/* What src overwrote is not self's. */
bp_status derive_as_strided_scatter(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self"), *src = grad_tensor(g, "src"), *grad = g->grads[0];
    place in, out;
    place_of(c, &in, self);
    place_asked(c, &out, g, self);
    if (in.empty || out.empty) {
        grad_give(g, "self", grad);
        return grad_done(c);
    }
    int64_t start = in.offset < out.offset ? in.offset : out.offset;
    bp_tensor *stretch = written(c, &in, stretch_for(c, grad, &in, &out, start), grad, start);
    bp_scalar at = bp_scalar_int(out.offset - start);
    bp_tensor *of_src = bp_aten_as_strided_default(c, stretch, sizes_at(&out), strides_at(&out), at);
    if (grad_needs(g, "src"))
        grad_give(g, "src", bp_aten_reshape_default(c, of_src, grad_sizes(src)));
    if (grad_needs(g, "self")) {
        bp_tensor *rest = bp_aten_as_strided_scatter_default(c, stretch, grad_zeros(c, of_src), sizes_at(&out),
                                                             strides_at(&out), at);
        bp_dims strides = {self->strides, self->rank, 1};
        grad_give(g, "self", bp_aten_as_strided_default(c, rest, grad_sizes(self), strides,
                                                        bp_scalar_int(in.offset - start)));
    }
    return grad_done(c);
}
