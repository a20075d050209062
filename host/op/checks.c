/* Checks that shape rules share (checks.h). */
#include "host/op/checks.h"
#include <stdio.h>
#include <string.h>

static const char *name_of(const shape_call *s, uint32_t i) { return s->op->schema->args[i].name; }

const char *sizes_text(char *dst, size_t cap, uint32_t rank, const bp_dim *sizes)
{
    size_t n = (size_t)snprintf(dst, cap, "[");
    for (uint32_t d = 0; d < rank && n < cap; d++)
        n += (size_t)snprintf(dst + n, cap - n, "%s%lld", d ? ", " : "", (long long)sizes[d].value);
    if (n < cap)
        snprintf(dst + n, cap - n, "]");
    return dst;
}

bp_status check_rank(bp_ctx *c, const shape_call *s, uint32_t i, uint32_t low, uint32_t high)
{
    const bp_tensor *t = arg_tensor(s->args, i);
    if (t->rank >= low && t->rank <= high)
        return BP_OK;
    if (low == high)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"%s\" must have %u dimensions, and has %u",
                       name_of(s, i), low, t->rank);
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"%s\" must have %u to %u dimensions, and has %u",
                   name_of(s, i), low, high, t->rank);
}

bp_status check_same_dtype(bp_ctx *c, const shape_call *s, uint32_t i, uint32_t j)
{
    const bp_tensor *a = arg_tensor(s->args, i), *b = arg_tensor(s->args, j);
    if (a->dtype == b->dtype)
        return BP_OK;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                   "arguments \"%s\" and \"%s\" must have one dtype, and have %s and %s", name_of(s, i), name_of(s, j),
                   dtype_get(a->dtype)->torch, dtype_get(b->dtype)->torch);
}

bp_status check_index_dtype(bp_ctx *c, const shape_call *s, uint32_t i)
{
    const bp_tensor *t = arg_tensor(s->args, i);
    if (t->dtype == BP_I64 || t->dtype == BP_I32)
        return BP_OK;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"%s\" must be int64 or int32, and is %s", name_of(s, i),
                   dtype_get(t->dtype)->torch);
}

bp_status check_expands(bp_ctx *c, const shape_call *s, uint32_t i, uint32_t rank, const bp_dim *sizes)
{
    const bp_tensor *t = arg_tensor(s->args, i);
    char from[256], to[256];
    bool fits = t->rank <= rank;
    for (uint32_t d = 0; fits && d < t->rank; d++)
        fits = dim_is(t->sizes[d], 1) || dim_eq(t->sizes[d], sizes[rank - t->rank + d]);
    if (fits)
        return BP_OK;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"%s\" of sizes %s cannot be expanded to %s",
                   name_of(s, i), sizes_text(from, sizeof from, t->rank, t->sizes),
                   sizes_text(to, sizeof to, rank, sizes));
}

bp_status check_dim(bp_ctx *c, const shape_call *s, uint32_t i, const bp_tensor *t, uint32_t *dim)
{
    return op_wrap_dim(c, s->op, name_of(s, i), arg_int(c, s->args, i), t->rank, dim);
}

bp_status out_like(bp_ctx *c, shape_call *s, const bp_tensor *t, bp_dtype dtype)
{
    shape_out *o = shape_add_out(c, s, dtype, t->rank, t->sizes);
    if (o)
        layout_preserve(c, t, o->meta.strides);
    return c->diag.code;
}

bp_status out_new(bp_ctx *c, shape_call *s, bp_dtype dtype, uint32_t rank, const bp_dim *sizes)
{
    shape_add_out(c, s, dtype, rank, sizes);
    return c->diag.code;
}

bp_status out_unknown(bp_ctx *c, shape_call *s, bp_dtype dtype, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        shape_out *o = shape_add_out(c, s, dtype, 0, NULL);
        if (o)
            o->unknown = true;
    }
    return c->diag.code;
}

/* An image of one pixel and channel, whose strides fit both layouts, counts as contiguous. */
bool suggests_channels_last(const bp_tensor *t)
{
    static const uint8_t ORDER[2][5] = {{1, 3, 2, 0}, {1, 4, 3, 2, 0}};
    int64_t least = 0;
    if ((t->rank != 4 && t->rank != 5) || tensor_step(t, 1) == 0)
        return false;
    for (uint32_t i = 0; i < t->rank; i++) {
        uint32_t d = ORDER[t->rank - 4][i];
        int64_t step = tensor_step(t, d), n = tensor_dim(t, d);
        if (n == 0 || step < least || (d == 0 && least == tensor_step(t, 1)))
            return false;
        least = n > 1 ? step * n : step;
    }
    return true;
}

bp_status out_format_of(bp_ctx *c, shape_call *s, const bp_tensor *t, bp_dtype dtype, uint32_t rank,
                        const bp_dim *sizes)
{
    shape_out *o = shape_add_out(c, s, dtype, rank, sizes);
    if (o && rank == t->rank && suggests_channels_last(t))
        layout_memory_format(c, rank, sizes, rank == 4 ? BP_CHANNELS_LAST : BP_CHANNELS_LAST_3D, o->meta.strides);
    return c->diag.code;
}
