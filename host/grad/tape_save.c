/* Saved values: a node's arguments and results, of which tensors are kept only where a derivative reads their data.
 *
 * Of tensors that are not read a node keeps metadata; they are made again as fakes when the derivative runs.
 * Results, and arguments that are no leaves, are kept as views without history, so that no node holds itself; they get
 * their history back when they are read. Each knows the version of its memory: one written since is an error. */
#include "host/grad/tape_node.h"
#include <string.h>

/* -- arguments ----------------------------------------------------------------------------------------------------- */

static bool copy_value(bp_ctx *c, tape_node *n, const bp_value *from, bp_value *to)
{
    *to = *from;
    if (from->kind == BP_VALUE_TENSOR)
        to->v.tensor = NULL;
    if (from->kind == BP_VALUE_STRING) {
        size_t nbytes = strlen(from->v.str) + 1;
        char *copy = tape_node_alloc(c, n, nbytes);
        if (copy)
            memcpy(copy, from->v.str, nbytes);
        to->v.str = copy;
        return copy != NULL;
    }
    if (from->kind != BP_VALUE_LIST || !from->count)
        return true;
    bp_value *items = tape_node_alloc(c, n, from->count * sizeof *items);
    for (uint32_t k = 0; items && k < from->count; k++)
        if (!copy_value(c, n, &from->v.items[k], &items[k]))
            return false;
    to->v.items = items;
    return items != NULL;
}

/* A leaf that requires grad gets no other history. Anything else may be written in place later, with what this node
 * gives: were it kept itself, it would hold the node that holds it. */
static bp_tensor *kept(bp_ctx *c, bp_tensor *t, const tensor_meta *m)
{
    const uint8_t leaf = TENSOR_REQUIRES_GRAD | TENSOR_IS_LEAF;
    bool itself = (t->flags & leaf) == leaf || t->flags & TENSOR_WRAPPED_NUMBER;
    return itself ? tensor_ref(t) : tensor_view(c, t, m);
}

static bp_status save_input(bp_ctx *c, tape_node *n, uint32_t at, bp_tensor *t, bool read)
{
    saved *s = &n->u.call.saved[at];
    if (!tape_node_meta(c, n, t, &s->meta))
        return c->diag.code;
    s->kind = SAVED_META;
    s->version = tape_version(t);
    return read ? save_input_data(c, n, at, t) : BP_OK;
}

bp_status save_input_data(bp_ctx *c, tape_node *n, uint32_t at, bp_tensor *t)
{
    saved *s = &n->u.call.saved[at];
    if (s->kind == SAVED_INPUT)
        return BP_OK;
    if (!(s->t = kept(c, t, &s->meta)))
        return c->diag.code;
    s->kind = SAVED_INPUT;
    n->saves = 1;
    return BP_OK;
}

/* Statistics that the call is about to move are not what its derivative wants. */
static bool is_read(const op_row *op, const bp_value *args, const formula_reads *reads, uint32_t arg)
{
    bool moved = (op->flags & OP_MOVES_STATS) && (arg == 3 || arg == 4) && arg_bool(args, 5);
    return !moved && (reads->args >> (arg & 63) & 1);
}

bp_status save_args(bp_ctx *c, tape_node *n, const bp_value *args, const formula_reads *reads)
{
    uint32_t nargs = n->op->schema->nargs;
    n->u.call.args = tape_node_alloc(c, n, nargs * sizeof *args);
    n->u.call.saved = n->u.call.args ? tape_node_alloc(c, n, n->ninputs * sizeof *n->u.call.saved) : NULL;
    if (!n->u.call.saved)
        return c->diag.code;
    for (uint32_t a = 0; a < nargs; a++)
        if (!copy_value(c, n, &args[a], &n->u.call.args[a]))
            return c->diag.code;
    for (uint32_t i = 0; i < n->ninputs; i++) {
        uint32_t arg = 0;
        bp_tensor *t = grad_input_at(args, nargs, i, &arg);
        TRY(save_input(c, n, i, t, is_read(n->op, args, reads, arg)));
    }
    return BP_OK;
}

bp_status save_result(bp_ctx *c, tape_node *n, uint32_t i, bp_tensor *t, bool read)
{
    saved *s = &n->results[i];
    if (!tape_node_meta(c, n, t, &s->meta))
        return c->diag.code;
    s->kind = SAVED_META;
    s->requires = tape_requires(t);
    if (!read)
        return BP_OK;
    if (!(s->t = tensor_view(c, t, &s->meta)))
        return c->diag.code;
    s->kind = SAVED_RESULT;
    s->version = tape_version(t);
    n->saves = 1;
    return BP_OK;
}

/* -- reading them back --------------------------------------------------------------------------------------------- */

static bp_tensor *moved(bp_ctx *c, const tape_node *n, const saved *s, const char *what)
{
    char text[160];
    ctx_fail(c, BP_FAILED_PRECONDITION,
             "a tensor that \"%s\" saved for backward was written in place: \"%s\", %s, is at version %llu, expected "
             "version %llu", n->label, what, tensor_describe(s->t, text, sizeof text),
             (unsigned long long)tape_version(s->t), (unsigned long long)s->version);
    if (n->file)
        diag_detail(&c->diag, "It was saved at %s:%d.", n->file, (int)n->line);
    diag_hint(&c->diag, "clone() it before it is written, or write it before this operator uses it");
    return NULL;
}

/* Under grad mode it has its history, which is that of the node's edge. */
static bp_tensor *input_get(bp_ctx *c, tape_node *n, const saved *s)
{
    tape_edge e = n->edges[s - n->u.call.saved];
    if (e.node && c->ambient.grad_enabled && !tape_requires(s->t) && tape_set_node(c, s->t, e.node, e.index) != BP_OK)
        return NULL;
    return scope_own(c, tensor_ref(s->t));
}

bp_tensor *saved_get(bp_ctx *c, tape_node *n, const saved *s, const char *what, uint32_t result)
{
    if (s->kind == SAVED_NONE || !ctx_ok(c))
        return NULL;
    if (s->kind == SAVED_META)
        return scope_own(c, tensor_new_fake(c, &s->meta));
    if (!s->t) {
        ctx_fail(c, BP_INTERNAL, "\"%s\" of \"%s\" is read after it was freed", what, n->label);
        return NULL;
    }
    if (tape_version(s->t) != s->version)
        return moved(c, n, s, what);
    if (s->kind == SAVED_INPUT)
        return input_get(c, n, s);
    bp_tensor *t = tensor_view(c, s->t, &s->meta);
    if (t && s->requires && tape_set_node(c, t, n, result) != BP_OK) {
        tensor_unref(t);
        t = NULL;
    }
    return scope_own(c, t);
}
