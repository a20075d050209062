/* Symbols of a graph: its environment, where each symbol comes from, and placeholders that carry one.
 *
 * Invariant: sources follow from the nodes (docs/ir.md), so they are found anew wherever they may have changed. */
#include "host/graph/symbols.h"
#include <string.h>

sym_env *graph_syms(bp_ctx *c, graph *g)
{
    if (!g->syms && !(g->syms = sym_env_new()))
        ctx_nomem(c);
    return g->syms;
}

/* -- mentions ------------------------------------------------------------------------------------------------------ */

typedef void (*symbol_fn)(void *arg, uint32_t k);

static void each_in(const graph *g, const bp_value *v, symbol_fn each, void *arg)
{
    if (value_is_symbol(v))
        sym_each_symbol(g->syms, v->v.dim, each, arg);
    for (uint32_t i = 0; v->kind == BP_VALUE_LIST && i < v->count; i++)
        each_in(g, &v->v.items[i], each, arg);
}

static void each_in_arguments(const graph *g, const graph_node *node, symbol_fn each, void *arg)
{
    for (uint32_t i = 0; i < node->nargs; i++)
        each_in(g, &node->args[i], each, arg);
    for (uint32_t i = 0; i < node->nkwargs; i++)
        each_in(g, &node->kwargs[i].value, each, arg);
}

static void each_in_types(const graph *g, const graph_node *node, symbol_fn each, void *arg)
{
    for (uint32_t i = 0; i < node->nmetas; i++)
        for (uint32_t d = 0; d < node->metas[i].rank; d++) {
            if (node->metas[i].sizes[d].sym)
                sym_each_symbol(g->syms, node->metas[i].sizes[d], each, arg);
            if (node->metas[i].strides[d].sym)
                sym_each_symbol(g->syms, node->metas[i].strides[d], each, arg);
        }
}

void graph_each_symbol(const graph *g, node_id n, symbol_fn each, void *arg)
{
    if (!g->syms)
        return;
    each_in_arguments(g, graph_get(g, n), each, arg);
    each_in_types(g, graph_get(g, n), each, arg);
}

/* -- sources ------------------------------------------------------------------------------------------------------- */

/* Symbol k that d is alone and that has no source yet; UINT32_MAX: there is none. */
static uint32_t symbol_wanting(const graph *g, bp_dim d)
{
    uint32_t k = d.sym ? sym_symbol_of(g->syms, d) : UINT32_MAX;
    return k != UINT32_MAX && sym_symbol_at(g->syms, k)->source.at == SYM_NO_SOURCE ? k : UINT32_MAX;
}

typedef struct { const graph *g; uint32_t k; bool found; } search;

static void compare(void *arg, uint32_t k)
{
    ((search *)arg)->found |= k == ((search *)arg)->k;
}

static void search_types(void *arg, node_id n)
{
    search *s = arg;
    each_in_types(s->g, graph_get(s->g, n), compare, s);
}

/* Whether what call n reads mentions symbol k: then the symbol was known before, and the call does not tell it. */
static bool is_given(const graph *g, node_id n, uint32_t k)
{
    search s = {g, k, false};
    each_in_arguments(g, graph_get(g, n), compare, &s);
    graph_each_input(g, n, search_types, &s);
    return s.found;
}

static void claim(const graph *g, bp_dim d, sym_source s, bool of_call)
{
    uint32_t k = symbol_wanting(g, d);
    if (k != UINT32_MAX && (!of_call || (sym_symbol_at(g->syms, k)->unbacked && !is_given(g, s.at, k))))
        sym_set_source(g->syms, k, s);
}

static void claim_dims(const graph *g, node_id n, uint32_t result, enum sym_kind kind, bool of_call)
{
    const tensor_meta *m = &graph_get(g, n)->metas[result];
    const bp_dim *dims = kind == SYM_SIZE ? m->sizes : m->strides;
    for (uint32_t d = 0; d < m->rank; d++)
        claim(g, dims[d], (sym_source){n, (uint16_t)result, (uint8_t)kind, (uint8_t)d}, of_call);
}

static void claim_placeholder(const graph *g, node_id n, enum sym_kind kind)
{
    const graph_node *node = graph_get(g, n);
    if (node->number.sym && kind == SYM_SIZE)
        claim(g, node->number, (sym_source){n, 0, SYM_VALUE, 0}, false);
    else if (node->nmetas)
        claim_dims(g, n, 0, kind, false);
}

/* What a call gives of unbacked symbols. */
static void claim_call(const graph *g, node_id n)
{
    const graph_node *node = graph_get(g, n);
    claim(g, node->number, (sym_source){n, 0, SYM_VALUE, 0}, true);
    for (uint32_t i = 0; i < node->nmetas && i <= UINT16_MAX; i++)
        claim_dims(g, n, i, SYM_SIZE, true);
}

void symbols_claim(const graph *g, node_id n)
{
    if (!g->syms)
        return;
    if (graph_get(g, n)->op == BP_NODE_CALL_FUNCTION)
        claim_call(g, n);
    if (graph_get(g, n)->op != BP_NODE_PLACEHOLDER)
        return;
    claim_placeholder(g, n, SYM_SIZE);
    claim_placeholder(g, n, SYM_STRIDE);
}

static void claim_all(const graph *g, int32_t op, enum sym_kind kind)
{
    for (node_id n = g->first; n; n = graph_get(g, n)->next) {
        if (graph_get(g, n)->op != op)
            continue;
        if (op == BP_NODE_PLACEHOLDER)
            claim_placeholder(g, n, kind);
        else
            claim_call(g, n);
    }
}

void graph_find_sources(const graph *g)
{
    if (!g->syms)
        return;
    for (uint32_t k = 0; k < sym_symbol_count(g->syms); k++)
        sym_set_source(g->syms, k, (sym_source){.at = SYM_NO_SOURCE});
    claim_all(g, BP_NODE_PLACEHOLDER, SYM_SIZE);
    claim_all(g, BP_NODE_PLACEHOLDER, SYM_STRIDE);
    claim_all(g, BP_NODE_CALL_FUNCTION, SYM_SIZE);
}

/* -- placeholders that carry a symbol ------------------------------------------------------------------------------ */

tensor_meta symint_meta(void)
{
    static bp_dim none;
    return (tensor_meta){.dtype = BP_I64, .device = {BP_CPU, 0}, .sizes = &none, .strides = &none};
}

/* The node in front of which a placeholder belongs; 0: the end. */
static node_id after_placeholders(const graph *g)
{
    node_id last = 0;
    for (node_id n = g->first; n; n = graph_get(g, n)->next)
        if (graph_get(g, n)->op == BP_NODE_PLACEHOLDER)
            last = n;
    return last ? graph_get(g, last)->next : g->first;
}

node_id graph_symint(graph *g, const char *name, uint32_t k)
{
    tensor_meta m = symint_meta();
    const char *own = sym_symbol_at(g->syms, k)->name;
    node_id before = after_placeholders(g);
    node_id n = graph_add(g, &(node_spec){.op = BP_NODE_PLACEHOLDER, .role = BP_ROLE_SYMINT, .name = name ? name : own,
                                          .target = own, .metas = &m, .nmetas = 1,
                                          .number = sym_dim_of(g->syms, k)});
    if (n && before)
        graph_move_before(g, n, before);
    if (n)
        sym_set_source(g->syms, k, (sym_source){n, 0, SYM_VALUE, 0});
    return n;
}
