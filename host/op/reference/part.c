/* Momentary views of kernels. */
#include "host/op/reference/part.h"
#include <string.h>

bp_tensor *part_narrow(bp_ctx *c, bp_tensor *t, uint32_t dim, int64_t start, int64_t length)
{
    tensor_meta m;
    bp_dim sizes[TENSOR_MAX_RANK];
    tensor_get_meta(t, &m);
    memcpy(sizes, m.sizes, m.rank * sizeof *sizes);
    sizes[dim] = dim_const(length);
    m.sizes = sizes;
    m.offset = dim_const(m.offset.value + start * m.strides[dim].value);
    return tensor_view(c, t, &m);
}

bp_tensor *part_along(bp_ctx *c, bp_tensor *t, uint32_t rank, uint32_t dim)
{
    tensor_meta m;
    bp_dim sizes[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK];
    tensor_get_meta(t, &m);
    for (uint32_t d = 0; d < rank; d++) {
        bool is_here = d == dim && t->rank > 0;
        sizes[d] = is_here ? m.sizes[0] : dim_const(1);
        strides[d] = is_here ? m.strides[0] : dim_const(0);
    }
    m.rank = rank;
    m.sizes = sizes;
    m.strides = strides;
    return tensor_view(c, t, &m);
}

bp_tensor *part_split(bp_ctx *c, bp_tensor *t, uint32_t dim, int64_t outer)
{
    tensor_meta m;
    bp_dim sizes[TENSOR_MAX_RANK + 1], strides[TENSOR_MAX_RANK + 1];
    tensor_get_meta(t, &m);
    for (uint32_t d = 0; d <= t->rank; d++) {
        uint32_t from = d > dim ? d - 1 : d;
        sizes[d] = m.sizes[from];
        strides[d] = m.strides[from];
    }
    int64_t inner = sizes[dim].value / outer;
    sizes[dim] = dim_const(outer);
    sizes[dim + 1] = dim_const(inner);
    strides[dim] = dim_const(strides[dim + 1].value * inner);
    m.rank = t->rank + 1;
    m.sizes = sizes;
    m.strides = strides;
    return tensor_view(c, t, &m);
}

bp_tensor *part_channels(bp_ctx *c, bp_tensor *t, uint32_t rank, int64_t outer, int64_t inner)
{
    bp_tensor *along = part_along(c, t, rank - 1, 1);
    bp_tensor *split = along && tensor_dim(along, 1) == outer * inner ? part_split(c, along, 1, outer) : NULL;
    tensor_unref(along);
    return split;
}
