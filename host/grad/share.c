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

static const tape_fn COPY = {.name = "a copy", .backward = pass_through};

bp_status tape_share_view(bp_ctx *c, bp_tensor *t, bp_tensor *of, enum tape_view_kind kind, bool requires)
{
    if (kind == TAPE_VIEW_DETACHED || t == of)
        return BP_OK;
    t->base = tensor_ref(of->base ? of->base : of);
    if (kind == TAPE_VIEW_WITHOUT_GRAD)
        t->flags |= TENSOR_VIEW_NO_GRAD;
    if (kind == TAPE_VIEW_OF_MANY)
        t->flags |= TENSOR_VIEW_OF_MANY;
    return requires && kind != TAPE_VIEW_WITHOUT_GRAD ? view_record(c, t) : BP_OK;
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

bp_status tape_write_begin(bp_ctx *c, bp_tensor *to, bp_tensor *value, tape_write *w)
{
    tensor_meta m;
    tensor_get_meta(to, &m);
    bp_tensor *t = tape_meta_of(c, to) ? tensor_view(c, to, &m) : NULL;
    bp_status st = t ? tape_share_copy(c, t, value) : c->diag.code;
    const tape_meta *made = t ? tape_meta_get(t) : NULL;
    *w = (tape_write){0};
    if (st == BP_OK && made)
        *w = (tape_write){tape_node_ref(made->node), made->index};
    tensor_unref(t);
    return st;
}

void tape_write_end(bp_ctx *c, bp_tensor *to, tape_write *w)
{
    if (w->node)
        tape_set_node(c, to, w->node, w->index); /* what it needs was made before */
    tape_write_drop(w);
}

void tape_write_drop(tape_write *w)
{
    tape_node_unref(w->node);
    w->node = NULL;
}
