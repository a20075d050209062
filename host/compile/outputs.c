/* What a path returns, compared with what its siblings return (C6.4).
 *
 * A caller that takes a fixed number of results (bp_call1, an array of its own) has fixed their kind too: paths of one
 * entry that part at a break must agree in it. A caller that passes an empty list takes what comes. The first path of
 * an entry that ends is what others are compared with. */
#include "host/compile/callable.h"
#include <stdio.h>

/* The node of n's path at that depth. */
static const tree_node *at_depth(const tree_node *n, uint32_t depth)
{
    while (n->depth > depth)
        n = n->parent;
    return n;
}

/* Whether two paths of one entry part at a break: what guards tell apart may differ. */
static bool part_at_a_break(const call *k, const tree_node *a, const tree_node *b)
{
    uint32_t depth = a->depth < b->depth ? a->depth : b->depth;
    const tree_node *x = at_depth(a, depth), *y = at_depth(b, depth);
    while (x != y && x->parent != y->parent)
        x = x->parent, y = y->parent;
    const tree_node *fork = x == y ? NULL : x->parent;
    if (!fork || fork->term->kind != ITEM_BREAK)
        return false;
    const node_list *l = place_nodes(node_place(fork, k->log[fork->depth])); /* where this call went */
    for (uint32_t i = 0; l && i < l->n; i++)
        if (l->at[i] == y)
            return false; /* a variant at the same outcome */
    return true;
}

static const char *kind_of(const out_spec *o)
{
    return o->handle ? dtype_get(o->meta.dtype)->torch : "NULL";
}

/* The first result of another kind; UINT32_MAX: none. */
static uint32_t first_other(const item *a, const item *b)
{
    for (uint32_t i = 0; i < a->end.nouts; i++) {
        const out_spec *x = &a->end.outs[i], *y = &b->end.outs[i];
        if (!x->handle != !y->handle || (x->handle && x->meta.dtype != y->meta.dtype))
            return i;
    }
    return UINT32_MAX;
}

static bp_status differ(const call *k, const item *mine, const item *first, const char *what, const char *instead)
{
    ctx_fail(k->c, BP_FAILED_PRECONDITION,
             "\"%s\" gives %s on the path that ends at %s:%d, and %s on the one that ends at %s:%d",
             k->g->code->is.name, what, mine->file ? mine->file : "?", mine->line, instead,
             first->file ? first->file : "?", first->line);
    diag_hint(&k->c->diag, "call it with an empty bp_outputs list, which takes either");
    return BP_FAILED_PRECONDITION;
}

static bp_status compare(const call *k, const item *mine, const item *first)
{
    char what[64], instead[64];
    if (mine->end.nouts != first->end.nouts) {
        snprintf(what, sizeof what, "%u results", mine->end.nouts);
        snprintf(instead, sizeof instead, "%u", first->end.nouts);
        return differ(k, mine, first, what, instead);
    }
    uint32_t i = first_other(mine, first);
    if (i == UINT32_MAX)
        return BP_OK;
    snprintf(what, sizeof what, "%s as result %u", kind_of(&mine->end.outs[i]), i);
    snprintf(instead, sizeof instead, "%s", kind_of(&first->end.outs[i]));
    return differ(k, mine, first, what, instead);
}

bp_status call_check_outputs(call *k, const tree_node *n)
{
    tree_node *root = (tree_node *)(uintptr_t)at_depth(n, 0);
    const tree_node *first = NULL;
    if (atomic_compare_exchange_strong(&root->first_end, &first, n) || first == n || !k->fixed)
        return BP_OK;
    return part_at_a_break(k, n, first) ? compare(k, n->term, first->term) : BP_OK;
}
