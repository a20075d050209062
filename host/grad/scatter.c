/* Derivatives of scatter and index_reduce: a source is written into self where an index says, element by element or
 * slice by slice. */
#include "host/grad/write.h"
#include <string.h>

/* What both have in common: where the source's elements go. */
typedef struct { bp_tensor *index; int64_t dim; bool slices; } where_to;

static where_to where_of(bp_ctx *c, const grad_call *g)
{
    return (where_to){grad_tensor(g, "index"), grad_arg_int(c, g, "dim"), g->op->number == ROW_index_reduce_default};
}

/* For each element of the source, what stands in t where it went. */
static bp_tensor *seen(bp_ctx *c, const where_to *w, bp_tensor *t)
{
    return w->slices ? bp_aten_index_select_default(c, t, w->dim, w->index)
                     : bp_aten_gather_default(c, t, w->dim, w->index, 0);
}

static bp_tensor *added(bp_ctx *c, const where_to *w, bp_tensor *t, bp_tensor *source)
{
    return w->slices ? bp_aten_index_add_default(c, t, w->dim, w->index, source, (bp_scalar){0})
                     : bp_aten_scatter_add_default(c, t, w->dim, w->index, source);
}

static bp_tensor *multiplied(bp_ctx *c, const where_to *w, bp_tensor *t, bp_tensor *source, bool include_self)
{
    return w->slices ? bp_aten_index_reduce_default(c, t, w->dim, w->index, source, "prod", include_self)
                     : bp_aten_scatter_reduce_two(c, t, w->dim, w->index, source, "prod", include_self);
}

/* t with zeros where anything went. */
static bp_tensor *cleared(bp_ctx *c, const where_to *w, bp_tensor *t)
{
    return w->slices ? bp_aten_index_fill_int_scalar(c, t, w->dim, w->index, bp_scalar_int(0))
                     : bp_aten_scatter_value(c, t, w->dim, w->index, bp_scalar_int(0));
}

/* A source may be larger than its index: what lies outside is not read. */
static bp_tensor *read_part(bp_ctx *c, const where_to *w, bp_tensor *src)
{
    for (uint32_t d = 0; !w->slices && d < grad_rank(src) && d < w->index->rank; d++)
        if (!dim_eq(src->sizes[d], w->index->sizes[d]))
            src = bp_aten_slice_tensor(c, src, d, bp_scalar_int(0), bp_scalar_dim(w->index->sizes[d]), bp_dim_of(1));
    return src;
}

static bp_tensor *whole(bp_ctx *c, bp_tensor *part, const bp_tensor *src)
{
    bp_dim pad[2 * TENSOR_MAX_RANK];
    bool same = true;
    uint32_t rank = src->rank;
    if (!part || part->rank != rank)
        return part;
    for (uint32_t d = 0; d < rank; d++) {
        same = same && dim_eq(part->sizes[d], src->sizes[d]);
        pad[2 * (rank - 1 - d)] = dim_const(0);
        pad[2 * (rank - 1 - d) + 1] = dim_sub(c, src->sizes[d], part->sizes[d]);
    }
    return same ? part : bp_aten_constant_pad_nd_default(c, part, (bp_dims){pad, 2 * rank, 1}, bp_scalar_int(0));
}

/* An empty index may have any rank; nothing is written then. */
static bool writes_nothing(const bp_tensor *index)
{
    for (uint32_t d = 0; d < index->rank; d++)
        if (dim_is(index->sizes[d], 0))
            return true;
    return false;
}

static void give_seen(bp_ctx *c, grad_call *g, const where_to *w)
{
    if (grad_needs(g, "src") && !writes_nothing(w->index))
        grad_give(g, "src", whole(c, seen(c, w, g->grads[0]), grad_tensor(g, "src")));
}

bp_status derive_scatter(bp_ctx *c, grad_call *g)
{
    where_to w = where_of(c, g);
    if (grad_needs(g, "self"))
        grad_give(g, "self", writes_nothing(w.index) ? g->grads[0] : cleared(c, &w, g->grads[0]));
    give_seen(c, g, &w);
    return grad_done(c);
}

bp_status derive_scatter_add(bp_ctx *c, grad_call *g)
{
    where_to w = where_of(c, g);
    grad_give(g, "self", g->grads[0]);
    give_seen(c, g, &w);
    return grad_done(c);
}

/* -- reductions ---------------------------------------------------------------------------------------------------- */

typedef struct {
    where_to to;
    bp_tensor *grad, *self, *src, *result; /* src: the part that is read */
    bool include_self;
    bp_tensor *of_self, *of_src;           /* what is found */
} reduction;

static bp_tensor *ones_like(bp_ctx *c, bp_tensor *t)
{
    return bp_aten_ones_like_default(c, t, 0, 0, (bp_device){0}, (bp_scalar){0}, 0);
}

static bp_tensor *as_number(bp_ctx *c, bp_tensor *mask, const bp_tensor *like)
{
    return bp_aten_private_to_copy_default(c, mask, like->dtype, 0, (bp_device){0}, (bp_scalar){0}, 0, 0);
}

static bp_tensor *equal_zero(bp_ctx *c, bp_tensor *t)
{
    return bp_aten_eq_scalar(c, t, bp_scalar_int(0));
}

static bp_tensor *filled(bp_ctx *c, bp_tensor *t, bp_tensor *mask, int64_t value)
{
    return bp_aten_masked_fill_scalar(c, t, mask, bp_scalar_int(value));
}

static void sum_of(bp_ctx *c, reduction *r)
{
    r->of_self = r->grad;
    r->of_src = seen(c, &r->to, r->grad);
}

static void mean_of(bp_ctx *c, reduction *r)
{
    bp_tensor *first = r->include_self ? ones_like(c, r->grad) : grad_zeros(c, r->grad);
    bp_tensor *count = added(c, &r->to, first, ones_like(c, r->src));
    count = filled(c, count, equal_zero(c, count), 1);
    r->of_self = grad_div(c, r->grad, count);
    r->of_src = seen(c, &r->to, r->of_self);
}

/* A product over one factor, where no factor is zero; where one alone is, the product of the others. */
static void product_of(bp_ctx *c, reduction *r)
{
    bp_tensor *self = filled(c, r->self, equal_zero(c, r->self), 1);
    bp_tensor *others = multiplied(c, &r->to, self, r->src, r->include_self);
    r->of_self = grad_div(c, grad_mul(c, r->grad, others), self);

    bp_tensor *zero = equal_zero(c, r->src);
    bp_tensor *zeros = seen(c, &r->to, added(c, &r->to, grad_zeros(c, r->self), as_number(c, zero, r->self)));
    bp_tensor *alone = bp_aten_logical_and_default(c, zero, bp_aten_eq_scalar(c, zeros, bp_scalar_int(1)));
    bp_tensor *rest = multiplied(c, &r->to, r->self, filled(c, r->src, alone, 1), r->include_self);
    bp_tensor *of_alone = seen(c, &r->to, grad_mul(c, r->grad, rest));
    bp_tensor *of_rest = grad_div(c, seen(c, &r->to, grad_mul(c, r->grad, r->result)), filled(c, r->src, zero, 1));
    r->of_src = bp_aten_where_self(c, alone, of_alone, of_rest);
}

/* Shared out evenly among those that are the extremum, self too, as in PyTorch, where it is not included. */
static void extremum_of(bp_ctx *c, reduction *r)
{
    bp_tensor *self_is = as_number(c, bp_aten_eq_tensor(c, r->self, r->result), r->self);
    bp_tensor *src_is = as_number(c, bp_aten_eq_tensor(c, r->src, seen(c, &r->to, r->result)), r->self);
    bp_tensor *share = grad_div(c, r->grad, added(c, &r->to, self_is, src_is));
    r->of_self = grad_mul(c, self_is, share);
    r->of_src = grad_mul(c, src_is, seen(c, &r->to, share));
}

static bp_status derive_reduction(bp_ctx *c, grad_call *g, const char *source)
{
    bp_tensor *src = grad_tensor(g, source);
    const char *how = grad_arg_str(g, "reduce");
    where_to to = where_of(c, g);
    if (writes_nothing(to.index)) {
        grad_give(g, "self", g->grads[0]);
        return grad_done(c);
    }
    reduction r = {to, g->grads[0], grad_tensor(g, "self"), read_part(c, &to, src), g->results[0],
                   grad_arg_bool(g, "include_self"), NULL, NULL};
    if (!strcmp(how, "sum"))
        sum_of(c, &r);
    else if (!strcmp(how, "mean"))
        mean_of(c, &r);
    else if (!strcmp(how, "prod"))
        product_of(c, &r);
    else
        extremum_of(c, &r);
    if (grad_needs(g, "self"))
        grad_give(g, "self", r.include_self ? r.of_self : cleared(c, &to, r.of_self));
    if (grad_needs(g, source))
        grad_give(g, source, whole(c, r.of_src, src));
    return grad_done(c);
}

bp_status derive_scatter_reduce(bp_ctx *c, grad_call *g) { return derive_reduction(c, g, "src"); }
bp_status derive_index_reduce(bp_ctx *c, grad_call *g) { return derive_reduction(c, g, "source"); }
