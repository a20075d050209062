/* The walk of a call along its code's trace tree. */
#include "host/base/log.h"
#include "host/compile/callable.h"
#include "host/tensor/module.h"

bp_status call_take_attrs(call *k, const tree_node *n, uint32_t before)
{
    bind_cut_inputs(&k->vals, before);
    if (!bind_reserve_symbols(&k->vals, n->end_symbol))
        return k->c->diag.code;
    for (uint32_t i = 0; i < n->nattrs; i++) {
        const node_attr *a = &n->attrs[i];
        bp_value v = value_tensor(a->constant ? a->constant : a->module->entries.at[a->entry].t);
        TRY(bind_push_input(&k->vals, &v));
    }
    return BP_OK;
}

static HOT bool serves(call *k, const tree_node *n, uint32_t before)
{
    if (n->prepares || k->vals.ninputs != before)
        if (call_take_attrs(k, n, before) != BP_OK)
            return false;
    guard_inputs in = {k->vals.inputs, k->vals.ninputs, k->vals.nargs, k->vals.syms};
    return guard_check(n->guards, k->c, &in);
}

/* All but the one that served last. */
static tree_node *pick_other(call *k, place *at, uint32_t before, const tree_node *last)
{
    node_list *nodes = place_nodes(at);
    for (uint32_t i = 0; nodes && i < nodes->n && ctx_ok(k->c); i++)
        if (nodes->at[i] != last && serves(k, nodes->at[i], before)) {
            place_note_hit(at, nodes->at[i]);
            return nodes->at[i];
        }
    return NULL;
}

static HOT tree_node *pick(call *k, place *at, uint32_t before)
{
    tree_node *last = at ? place_last(at) : NULL;
    return last && serves(k, last, before) ? last : pick_other(k, at, before, last);
}

tree_node *call_pick(call *k, place *at, uint32_t before)
{
    return pick(k, at, before);
}

/* The next node of the path that this call captured, if the walk still follows it. */
static tree_node *next_fresh(call *k, const tree_node *parent)
{
    if (k->next_fresh == k->fresh.len || k->fresh.at[k->next_fresh]->parent != parent)
        return NULL;
    tree_node *n = k->fresh.at[k->next_fresh];
    return call_take_attrs(k, n, place_inputs(k, parent)) == BP_OK ? n : NULL;
}

/* A fresh node has run: from now on other calls may find it. */
static bp_status publish(call *k, tree_node *n)
{
    bool counts = n->parent && n->parent->term->kind == ITEM_BREAK && !node_place(n->parent, k->log[n->depth - 1]);
    place *at = n->parent ? node_add_place(k->epochs, n->parent, k->log[n->depth - 1]) : &k->st->root;
    if (!at || !place_add(k->epochs, at, n))
        return ctx_nomem(k->c);
    k->next_fresh++;
    log_line(k->c->rt, LOG_cache, "\"%s\": a node at depth %u, %u at its place", k->g->code->is.name, n->depth,
             place_nodes(at)->n);
    if (counts)
        code_count(k->st, outcomes, 1);
    return BP_OK;
}

/* What the compiled segment computed decides (C3.1). A guess of the slice that nobody confirmed is dropped with what
 * was captured behind it (C2.4). */
static step take_outcome(call *k, tree_node *n, outcome *out)
{
    const bp_tensor *t = call_value(k, n->term->brk.value);
    if (!t || outcome_read(k->c, n->term->brk.ask, t, out) != BP_OK)
        return call_eager_on_error(k);
    k->log[n->depth] = *out;
    k->nlog = n->depth + 1;
    if (k->next_fresh == k->fresh.len)
        return STEP_OK;
    if (outcome_eq(k->guesses.at[k->next_fresh - 1], *out)) /* n was fresh, and something hangs behind it */
        return STEP_OK;
    code_count(k->st, disagreements, 1);
    for (uint32_t i = k->next_fresh; i < k->fresh.len; i++)
        node_destroy(k->fresh.at[i]);
    k->fresh.len = k->next_fresh;
    return STEP_OK;
}

/* A fresh node is published when its segment has run. So is one whose run has failed: it is compiled, and what it
 * guards does not depend on the data that failed it. What was captured behind it is not. */
RARE static step note_run(call *k, tree_node *n, step s)
{
    bool compiled = s == STEP_OK || !n->term || (s == STEP_EAGER && atomic_load(&n->use));
    return !compiled || publish(k, n) == BP_OK ? s : STEP_FAILED;
}

/* One node: its segment runs. */
static HOT step visit(call *k, tree_node *n)
{
    step s = n->term ? call_run_segment(k, n) : STEP_OK;
    if (k->next_fresh < k->fresh.len && k->fresh.at[k->next_fresh] == n)
        s = note_run(k, n, s);
    if (s != STEP_OK && (n->term || s == STEP_FAILED)) /* without one it has become a leaf: such calls run eagerly */
        return s;
    if (!n->term) /* a leaf: what lies behind the last break is not compiled (C1.5) */
        return call_eager_here(k, "%s", n->reason);
    k->node = n;
    return STEP_OK;
}

step call_walk(call *k)
{
    place *at = &k->st->root;
    tree_node *parent = NULL;
    outcome out = {0};
    for (;;) {
        tree_node *n = next_fresh(k, parent);
        if (!n)
            n = pick(k, at, place_inputs(k, parent));
        step s = n ? STEP_OK : call_miss(k, at, parent, out, &n);
        if (s == STEP_OK)
            s = visit(k, n);
        if (s != STEP_OK)
            return s;
        if (n->term->kind == ITEM_END)
            return call_commit(k, n);
        s = n->term->kind == ITEM_STEP ? call_step(k, n, &out) : take_outcome(k, n, &out);
        if (s != STEP_OK)
            return s;
        at = node_place(n, out);
        parent = n;
    }
}

/* -- values of the path -------------------------------------------------------------------------------------------- */

static const item *item_of(void *arg, ref r)
{
    return path_item_of(arg, r);
}

static const path_symbol *symbol_of(void *arg, uint32_t k)
{
    return node_symbol(arg, k);
}

bp_tensor *call_slice(call *k, ref r)
{
    if (!ctx_ok(k->c))
        return NULL;
    slicer s = {.c = k->c, .vals = &k->vals, .rng_base = k->rng_base, .item_of = item_of, .arg = k->node,
                .env = k->node ? k->node->env : NULL, .symbol_of = symbol_of,
                .compute = call_compute_slice, .compute_arg = k};
    const item *it = k->node && ref_is_node(r) ? path_item_of(k->node, r) : NULL;
    s.tapes = it && item_requires(it, r);
    if (s.tapes)
        s.compute = NULL; /* what is compiled has no history */
    bp_tensor *t = slice_value(&s, r);
    code_count(k->st, slices, s.evaluated);
    if (t && bind_put(&k->vals, r, t) != BP_OK)
        t = NULL;
    slice_fini(&s);
    return t;
}
