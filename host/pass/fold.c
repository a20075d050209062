/* Constants: pure calls on constants alone are computed now.
 *
 * A call whose arguments hold a symbol is none. What is computed becomes a get_attr with data, up to a size. Calls
 * without tensors (full, arange) are constants that others may be computed from, and stay themselves: their target says
 * more than their data. A value in the memory of an output stays a call, since the caller may write what it gets; so
 * does what touches memory that is written. */
#include "host/op/run.h"
#include "host/pass/pass.h"
#include "host/pass/pure.h"
#include <stdio.h>
#include <string.h>

enum { LARGEST = 1 << 20 };

typedef struct {
    bp_ctx *c;
    bp_graph_module *gm;
    memory_map m;
    bp_tensor **value; /* by node id: what a constant node is; a reference */
    uint32_t nvalues;
} fold;

typedef struct { const fold *f; bool all; uint32_t n; } inputs;

static void see_input(void *arg, node_id n)
{
    inputs *in = arg;
    in->n++;
    in->all &= in->f->value[n] != NULL;
}

static bool small_enough(const graph_node *n)
{
    double bytes = n->nmetas == 1 ? (double)dtype_size(n->metas[0].dtype) : LARGEST + 1.0;
    for (uint32_t d = 0; n->nmetas == 1 && d < n->metas[0].rank; d++)
        bytes *= (double)dim_hint(n->metas[0].sizes[d]); /* all are constants, where the call is one */
    return bytes <= LARGEST;
}

/* -- computing ----------------------------------------------------------------------------------------------------- */

static bp_status resolve(fold *f, const bp_value *v, bp_value *out)
{
    *out = *v;
    if (v->kind == BP_VALUE_NODE)
        *out = value_tensor(f->value[v->v.node]);
    if (v->kind != BP_VALUE_LIST)
        return BP_OK;
    bp_value *items = arena_array(&f->c->scratch, v->count, sizeof *items);
    if (!items)
        return ctx_nomem(f->c);
    for (uint32_t i = 0; i < v->count; i++)
        TRY(resolve(f, &v->v.items[i], &items[i]));
    out->v.items = items;
    return BP_OK;
}

static bp_status bind(fold *f, const graph_node *n, bp_value **args)
{
    bp_value *pos = arena_array(&f->c->scratch, n->nargs + n->nkwargs, sizeof *pos), *named = pos + n->nargs;
    const char **names = arena_array(&f->c->scratch, n->nkwargs, sizeof *names);
    if (!pos || !names)
        return ctx_nomem(f->c);
    for (uint32_t i = 0; i < n->nargs; i++)
        TRY(resolve(f, &n->args[i], &pos[i]));
    for (uint32_t i = 0; i < n->nkwargs; i++) {
        names[i] = n->kwargs[i].name;
        TRY(resolve(f, &n->kwargs[i].value, &named[i]));
    }
    return op_bind(f->c, n->row, pos, n->nargs, names, named, n->nkwargs, args);
}

/* The value of a call on constants; NULL: an error. */
static bp_tensor *compute(fold *f, const graph_node *n)
{
    bp_tensor *out = NULL;
    bp_value *args = NULL;
    arena_mark mark = arena_get_mark(&f->c->scratch);
    op_call k = {.op = n->row, .out = &out, .nout = 1};
    bp_status s = bind(f, n, &args);
    k.args = args;
    k.nargs = n->row->schema->nargs;
    if (!s)
        s = op_run_reference(f->c, &k);
    arena_reset(&f->c->scratch, mark);
    return s ? NULL : out;
}

/* -- replacing ----------------------------------------------------------------------------------------------------- */

/* A copy with a storage of its own, which holds nothing else. */
static bp_tensor *own_copy(bp_ctx *c, const bp_tensor *t)
{
    tensor_meta m;
    tensor_get_meta(t, &m);
    m.offset = dim_const(0);
    bp_tensor *copy = tensor_new(c, &m);
    if (copy && tensor_copy(c, copy, t) != BP_OK) {
        tensor_unref(copy);
        return NULL;
    }
    return copy;
}

static bp_status replace(fold *f, node_id n)
{
    graph *g = &f->gm->g;
    tensor_meta m;
    bp_tensor *t = own_copy(f->c, f->value[n]);
    if (!t)
        return f->c->diag.code;
    tensor_get_meta(t, &m);
    const char *name = graph_get(g, n)->name;
    char folded[200];
    snprintf(folded, sizeof folded, "%s_folded", name);
    node_id at = graph_get_attr(g, folded, folded, &m);
    bp_status s = at ? gm_set_constant(f->c, f->gm, graph_get(g, at)->name, t) : graph_status(f->c, g);
    tensor_unref(t);
    TRY(s);
    graph_move_before(g, at, n);
    graph_set_site(g, at, graph_get(g, n)->file, graph_get(g, n)->line);
    graph_replace_uses(g, n, at);
    f->value[at] = tensor_ref(f->value[n]);
    return graph_status(f->c, g);
}

static bool one_tensor(const op_row *op)
{
    return op && op->schema->nreturns == 1 && !op->schema->returns[0].list && !(op->flags & (OP_DYNAMIC_OUT | OP_ITEM));
}

static bp_status visit(fold *f, node_id n)
{
    const graph_node *node = graph_get(&f->gm->g, n);
    if (node->op == BP_NODE_GET_ATTR) {
        bp_tensor *t = gm_constant(f->gm, node->name);
        f->value[n] = t && !f->m.written[n] ? tensor_ref(t) : NULL;
        return BP_OK;
    }
    inputs in = {f, true, 0};
    graph_each_input(&f->gm->g, n, see_input, &in);
    if (node->symbolic || !node_is_pure(node) || !one_tensor(node->row) || f->m.written[n])
        return BP_OK;
    if (!in.all || !small_enough(node))
        return BP_OK;
    if (in.n && f->m.leaves[n])
        return BP_OK;
    f->value[n] = compute(f, node);
    if (!f->value[n]) { /* it would fail at run time, and does so then */
        diag_clear(&f->c->diag);
        return BP_OK;
    }
    return in.n && node->users.len && !tensor_overlaps_itself(f->value[n]) ? replace(f, n) : BP_OK;
}

static bp_status fold_all(fold *f)
{
    bp_status s = BP_OK;
    for (node_id n = f->gm->g.first, next; n && !s; n = next) {
        next = graph_get(&f->gm->g, n)->next;
        if (n < f->m.n)
            s = visit(f, n);
    }
    for (uint32_t i = 0; i < f->nvalues; i++)
        tensor_unref(f->value[i]);
    return s;
}

bp_status pass_fold_constants(bp_ctx *c, bp_graph_module *gm, void *arg)
{
    fold f = {.c = c, .gm = gm, .nvalues = 2 * gm->g.nodes.len}; /* each may become one more */
    TRY(pass_in_subs(c, gm, pass_fold_constants, NULL));
    bp_status s = memory_map_make(c, gm, &f.m);
    if (s == BP_UNIMPLEMENTED || s == BP_FAILED_PRECONDITION) {
        diag_clear(&c->diag);
        return BP_OK;
    }
    TRY(s);
    f.value = calloc(f.nvalues, sizeof *f.value);
    s = f.value ? fold_all(&f) : ctx_nomem(c);
    free(f.value);
    memory_map_fini(&f.m);
    return s ? s : pass_dce(c, gm, arg);
}
