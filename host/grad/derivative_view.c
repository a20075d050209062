/* Gradients through memory that is shared: a base and a part of it, both given by layout alone.
 *
 * Layouts are numbers (which steps lie in which is asked of all of them); symbols among them are specialized.
 * The base's gradient is laid out flat, as its memory lies; in there, the part is as_strided of it. So the same few
 * operators serve every view, and run on fakes as well. */
#include "host/grad/derivative.h"
#include <backplane/backplane.h>
#include <string.h>

typedef struct {
    uint32_t rank;
    bp_dim sizes[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK];
    int64_t offset;
    bool complex;
} layout;

/* Both from the first element that either reaches; length: elements to the last one. */
typedef struct { layout base, part; int64_t length; bool real; } pair;

static bool same_layout(const layout *a, const layout *b)
{
    bool same = a->rank == b->rank && a->offset == b->offset;
    for (uint32_t d = 0; same && d < a->rank; d++)
        same = dim_eq(a->sizes[d], b->sizes[d]) && dim_eq(a->strides[d], b->strides[d]);
    return same;
}

static layout layout_of(const tensor_meta *m, bool as_real)
{
    layout l = {.rank = m->rank, .offset = dim_number(m->offset), .complex = dtype_is_complex(m->dtype)};
    for (uint32_t d = 0; d < m->rank; d++) {
        l.sizes[d] = dim_const(dim_number(m->sizes[d]));
        l.strides[d] = dim_const(dim_number(m->strides[d]));
    }
    if (!as_real || !l.complex || l.rank == TENSOR_MAX_RANK)
        return l;
    for (uint32_t d = 0; d < l.rank; d++)
        l.strides[d] = dim_const(l.strides[d].value * 2);
    l.offset *= 2;
    l.sizes[l.rank] = dim_const(2);
    l.strides[l.rank++] = dim_const(1);
    return l;
}

static int64_t end_of(const layout *l)
{
    int64_t last = l->offset;
    for (uint32_t d = 0; d < l->rank; d++) {
        if (l->sizes[d].value == 0)
            return l->offset;
        last += (l->sizes[d].value - 1) * l->strides[d].value;
    }
    return last + 1;
}

static pair pair_of(const tensor_meta *base, const tensor_meta *part)
{
    pair p = {.real = dtype_is_complex(base->dtype) != dtype_is_complex(part->dtype)};
    p.base = layout_of(base, p.real);
    p.part = layout_of(part, p.real);
    int64_t first = p.base.offset < p.part.offset ? p.base.offset : p.part.offset;
    p.base.offset -= first;
    p.part.offset -= first;
    int64_t a = end_of(&p.base), b = end_of(&p.part);
    p.length = a > b ? a : b;
    return p;
}

static bp_dims dims(const bp_dim *at, uint32_t n)
{
    return (bp_dims){at, n, 1};
}

static bp_tensor *seen(bp_ctx *c, bp_tensor *flat, const layout *l)
{
    return flat ? bp_aten_as_strided_default(c, flat, dims(l->sizes, l->rank), dims(l->strides, l->rank),
                                             bp_scalar_int(l->offset)) : NULL;
}

static bp_tensor *put(bp_ctx *c, bp_tensor *flat, bp_tensor *value, const layout *l)
{
    return flat && value ? bp_aten_as_strided_scatter_default(c, flat, value, dims(l->sizes, l->rank),
                                                              dims(l->strides, l->rank), bp_scalar_int(l->offset))
                         : NULL;
}

static bp_tensor *flat_zeros(bp_ctx *c, int64_t n, const bp_tensor *like)
{
    return bp_aten_zeros_default(c, BP_DIMS(n), like->dtype, 0, tensor_device(like), (bp_scalar){0});
}

static bp_tensor *as_real(bp_ctx *c, const pair *p, const layout *l, bp_tensor *t)
{
    return t && p->real && l->complex ? bp_aten_view_as_real_default(c, t) : t;
}

static bp_tensor *as_own(bp_ctx *c, const pair *p, const layout *l, bp_tensor *t)
{
    if (!t || !p->real || !l->complex)
        return t;
    return bp_aten_view_as_complex_default(c, bp_aten_clone_default(c, t, BP_CONTIGUOUS));
}

static bool is_flat(const layout *l)
{
    return l->rank == 1 && l->offset == 0 && dim_is(l->strides[0], 1);
}

/* g as base's memory lies. */
static bp_tensor *flatten(bp_ctx *c, const pair *p, bp_tensor *g)
{
    g = as_real(c, p, &p->base, g);
    if (!g)
        return NULL;
    if (is_flat(&p->base) && dim_is(p->base.sizes[0], p->length))
        return bp_aten_clone_default(c, g, BP_CONTIGUOUS);
    return put(c, flat_zeros(c, p->length, g), g, &p->base);
}

/* No element is reached twice: strides grow by at least what lies under them. */
static bool reaches_once(const layout *l)
{
    bool used[TENSOR_MAX_RANK] = {false};
    int64_t span = 0;
    for (uint32_t n = 0; n < l->rank; n++) {
        uint32_t least = UINT32_MAX;
        for (uint32_t d = 0; d < l->rank; d++)
            if (!used[d] && (least == UINT32_MAX || l->strides[d].value < l->strides[least].value))
                least = d;
        used[least] = true;
        int64_t size = l->sizes[least].value, step = l->strides[least].value;
        if (size == 0)
            return true;
        if (size > 1 && step <= span)
            return false;
        span += (size - 1) * step;
    }
    return true;
}

static bp_tensor *add_up(bp_ctx *c, bp_tensor *flat, bp_tensor *g, const layout *l, int64_t length)
{
    bp_tensor *all = bp_aten_arange_default(c, bp_scalar_int(length), BP_I64, 0, (bp_device){0}, (bp_scalar){0});
    bp_tensor *at = bp_aten_reshape_default(c, seen(c, all, l), BP_DIMS(-1));
    return flat && g && at ? bp_aten_index_add_default(c, flat, 0, at, bp_aten_reshape_default(c, g, BP_DIMS(-1)),
                                                       (bp_scalar){0}) : NULL;
}

bp_tensor *grad_of_view(bp_ctx *c, bp_tensor *g, const tensor_meta *base, const tensor_meta *part)
{
    pair p = pair_of(base, part);
    g = as_real(c, &p, &p.part, g);
    if (!g)
        return NULL;
    if (same_layout(&p.base, &p.part))
        return as_own(c, &p, &p.base, g);
    bp_tensor *flat = flat_zeros(c, p.length, g);
    flat = reaches_once(&p.part) ? put(c, flat, g, &p.part) : add_up(c, flat, g, &p.part, p.length);
    return as_own(c, &p, &p.base, seen(c, flat, &p.base));
}

bp_tensor *grad_view(bp_ctx *c, bp_tensor *g, const tensor_meta *base, const tensor_meta *part)
{
    pair p = pair_of(base, part);
    bp_tensor *t = seen(c, flatten(c, &p, g), &p.part);
    return t ? as_own(c, &p, &p.part, bp_aten_clone_default(c, t, BP_CONTIGUOUS)) : NULL;
}

bp_tensor *grad_scatter(bp_ctx *c, bp_tensor *g, bp_tensor *value, const tensor_meta *base, const tensor_meta *part)
{
    pair p = pair_of(base, part);
    bp_tensor *flat = flatten(c, &p, g);
    if (!flat)
        return NULL;
    bp_tensor *v = value ? as_real(c, &p, &p.part, value)
                         : bp_aten_zeros_default(c, dims(p.part.sizes, p.part.rank), flat->dtype, 0,
                                                 tensor_device(flat), (bp_scalar){0});
    return as_own(c, &p, &p.base, seen(c, put(c, flat, v, &p.part), &p.base));
}
