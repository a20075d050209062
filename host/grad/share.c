/* Views, copies and writes of a commit, as nodes of the tape. */
#include "host/grad/share.h"
#include "host/grad/tape_node.h"

static bp_status pass_through(bp_ctx *c, void *state, bp_tensor *const *grads, bp_tensor **out, bool create)
{
    (void)c;
    (void)state;
    (void)create;
    out[0] = grads[0] ? tensor_ref(grads[0]) : NULL;
    return BP_OK;
}

static bp_status pass_second(bp_ctx *c, void *state, bp_tensor *const *grads, bp_tensor **out, bool create)
{
    return pass_through(c, state, grads, out + 1, create);
}

static const tape_fn COPY = {.name = "a copy", .backward = pass_through};
/* What was there before takes no part. */
static const tape_fn OVERWRITE = {.name = "a copy", .backward = pass_second};

bp_status tape_share_view(bp_ctx *c, bp_tensor *t, bp_tensor *of, enum tape_view_kind kind, bool requires)
{
    if (kind == TAPE_VIEW_DETACHED || t == of)
        return BP_OK;
    t->base = tensor_ref(of->base ? of->base : of);
    t->flags |= of->flags & (TENSOR_VIEW_NO_GRAD | TENSOR_VIEW_OF_MANY); /* as of is, so are views of it */
    if (kind == TAPE_VIEW_WITHOUT_GRAD)
        t->flags |= TENSOR_VIEW_NO_GRAD;
    if (kind == TAPE_VIEW_OF_MANY)
        t->flags |= TENSOR_VIEW_OF_MANY;
    return requires && !(t->flags & TENSOR_VIEW_NO_GRAD) ? view_record(c, t) : BP_OK;
}

bp_status tape_share_refresh(bp_ctx *c, bp_tensor *t)
{
    return t->base ? view_refresh(c, t) : BP_OK;
}

bp_status tape_share_history(bp_ctx *c, bp_tensor *t, bp_tensor *from)
{
    TRY(view_refresh(c, from));
    const tape_meta *m = tape_meta_get(from);
    if (!tape_requires(from) || from->flags & TENSOR_IS_LEAF || !m || !m->node)
        return BP_OK;
    return tape_set_node(c, t, m->node, m->index);
}

bp_status tape_share_copy(bp_ctx *c, bp_tensor *t, bp_tensor *from)
{
    return tape_record(c, &COPY, NULL, &from, 1, &t, 1);
}

bool tape_may_write(const bp_tensor *t)
{
    const uint8_t leaf = TENSOR_REQUIRES_GRAD | TENSOR_IS_LEAF;
    const uint8_t never = TENSOR_VIEW_OF_LEAF | TENSOR_VIEW_NO_GRAD | TENSOR_VIEW_OF_MANY;
    return !t->base || (!(t->flags & never) && (t->base->flags & leaf) != leaf);
}

/* A node for the base of `to`, whose part that `to` shows becomes `value`. */
static bp_status begin_in_view(bp_ctx *c, bp_tensor *to, bp_tensor *t, bp_tensor *value, tape_write *w)
{
    bp_tensor *inputs[2] = {NULL, value};
    TRY(tape_record(c, &OVERWRITE, NULL, inputs, 2, &t, 1));
    const tape_meta *made = tape_meta_get(t);
    if (!tape_meta_of(c, to->base))
        return c->diag.code;
    w->node = view_scatter(c, to, made->node);
    return c->diag.code;
}

bp_status tape_write_begin(bp_ctx *c, bp_tensor *to, bp_tensor *value, tape_write *w)
{
    tensor_meta m;
    tensor_get_meta(to, &m);
    bp_tensor *t = tape_meta_of(c, to) ? tensor_view(c, to, &m) : NULL;
    *w = (tape_write){0};
    bp_status st = !t          ? c->diag.code
                   : to->base ? begin_in_view(c, to, t, value, w)
                              : tape_share_copy(c, t, value);
    const tape_meta *made = t ? tape_meta_get(t) : NULL;
    if (st == BP_OK && made && !to->base)
        *w = (tape_write){tape_node_ref(made->node), made->index};
    tensor_unref(t);
    return st;
}

/* The base may have been written through another view since this write began. */
static void end_in_view(bp_ctx *c, bp_tensor *to, tape_write *w)
{
    const tape_meta *m = tape_meta_get(to->base);
    tape_edge *before = &w->node->edges[0];
    if (m->node && !(to->base->flags & TENSOR_IS_LEAF) && m->node != before->node) {
        tape_edge_drop(*before);
        *before = (tape_edge){tape_node_ref(m->node), m->index};
    }
    tape_set_node(c, to->base, w->node, 0);
    to->flags = (uint8_t)((to->flags & ~TENSOR_IS_LEAF) | TENSOR_REQUIRES_GRAD); /* its node follows at its next use */
}

void tape_write_end(bp_ctx *c, bp_tensor *to, tape_write *w)
{
    if (w->node && to->base)
        end_in_view(c, to, w);
    else if (w->node)
        tape_set_node(c, to, w->node, w->index); /* what it needs was made before */
    tape_write_drop(w);
}

void tape_write_drop(tape_write *w)
{
    tape_node_unref(w->node);
    w->node = NULL;
}
