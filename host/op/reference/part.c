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
