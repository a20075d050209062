/* History through shared memory.
 *
 * A write to a view is a write to its base: the base's history becomes a scatter node, which takes the base's gradient
 * apart into what the write left alone and what it made. Views of that base do not know; each is rebuilt from the base,
 * by its layout, when it is next used. */
#include "host/grad/tape_node.h"
#include <string.h>

static bool is_stale(const bp_tensor *t)
{
    const bp_tensor *b = t->base;
    if (!b || (t->flags & TENSOR_VIEW_NO_GRAD) || !tape_differentiable(t->dtype))
        return false;
    if ((b->flags & (TENSOR_REQUIRES_GRAD | TENSOR_IS_LEAF)) != TENSOR_REQUIRES_GRAD)
        return false;
    const tape_meta *m = tape_meta_get(t);
    return !m || !m->node || m->version != tape_version(t);
}

static bp_status fill_view(bp_ctx *c, tape_node *n, bp_tensor *t)
{
    n->label = "a view";
    n->edges[0] = tape_edge_of(c, t->base);
    if (!tape_node_meta(c, n, t->base, &n->u.view.base) || !tape_node_meta(c, n, t, &n->u.view.part))
        return c->diag.code;
    TRY(save_result(c, n, 0, t, false));
    tape_node_number(n);
    return tape_set_node(c, t, n, 0);
}

bp_status view_refresh(bp_ctx *c, bp_tensor *t)
{
    return is_stale(t) ? view_record(c, t) : BP_OK;
}

bp_status view_record(bp_ctx *c, bp_tensor *t)
{
    tape_node *n = tape_node_new(c, NODE_VIEW, 1, 1);
    bp_status st = n ? fill_view(c, n, t) : c->diag.code;
    tape_node_unref(n);
    return st;
}

static bp_status fill_scatter(bp_ctx *c, tape_node *s, bp_tensor *t, const tape_node *inner)
{
    s->label = inner->label;
    s->file = inner->file;
    s->line = inner->line;
    s->saves = inner->saves;
    s->u.view.inner = tape_node_ref((tape_node *)(uintptr_t)inner);
    s->edges[0] = tape_edge_of(c, t->base);
    TRY(c->diag.code);
    for (uint32_t i = 1; i < inner->ninputs; i++)
        s->edges[i] = (tape_edge){tape_node_ref(inner->edges[i].node), inner->edges[i].index};
    if (!tape_node_meta(c, s, t->base, &s->u.view.base) || !tape_node_meta(c, s, t, &s->u.view.part))
        return c->diag.code;
    TRY(save_result(c, s, 0, t->base, false));
    tape_node_number(s);
    return BP_OK;
}

tape_node *view_scatter(bp_ctx *c, bp_tensor *t, const tape_node *inner)
{
    tape_node *s = tape_node_new(c, NODE_SCATTER, inner->ninputs, 1);
    if (s && fill_scatter(c, s, t, inner) == BP_OK)
        return s;
    tape_node_unref(s);
    return NULL;
}

bp_status view_wrote(bp_ctx *c, bp_tensor *t, tape_node *inner)
{
    tape_node *s = view_scatter(c, t, inner);
    bp_status st = s ? tape_set_node(c, t->base, s, 0) : c->diag.code;
    tape_node_unref(s);
    return st;
}

/* -- backward ------------------------------------------------------------------------------------------------------ */

static bp_status run_scatter(bp_ctx *c, tape_node *n, bp_tensor *g, const uint8_t *wanted, bp_tensor **out,
                             bool create)
{
    tape_node *inner = n->u.view.inner;
    const tensor_meta *base = &n->u.view.base, *part = &n->u.view.part;
    bp_tensor *grads[1] = {grad_view(c, g, base, part)};
    TRY(c->diag.code);
    TRY(tape_node_run(c, inner, grads, wanted, out, create));
    bp_tensor *self = scope_own(c, out[0]);
    out[0] = NULL;
    bp_tensor *whole = wanted[0] ? grad_scatter(c, g, self, base, part) : NULL;
    out[0] = whole ? tensor_ref(whole) : NULL;
    return c->diag.code;
}

bp_status view_run(bp_ctx *c, tape_node *n, bp_tensor *const *grads, const uint8_t *wanted, bp_tensor **out,
                   bool create)
{
    if (!grads[0])
        return BP_OK;
    if (n->kind == NODE_SCATTER)
        return run_scatter(c, n, grads[0], wanted, out, create);
    bp_tensor *g = wanted[0] ? grad_of_view(c, grads[0], &n->u.view.base, &n->u.view.part) : NULL;
    out[0] = g ? tensor_ref(g) : NULL;
    return c->diag.code;
}
