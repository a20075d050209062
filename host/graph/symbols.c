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

/* -- sources ------------------------------------------------------------------------------------------------------- */

/* Symbol k that d is alone and that has no source yet; UINT32_MAX: there is none. */
static uint32_t symbol_wanting(const graph *g, bp_dim d)
{
    uint32_t k = d.sym ? sym_symbol_of(g->syms, d) : UINT32_MAX;
    return k != UINT32_MAX && sym_symbol_at(g->syms, k)->source.at == SYM_NO_SOURCE ? k : UINT32_MAX;
}

static void claim(const graph *g, bp_dim d, sym_source s, bool unbacked_only)
{
    uint32_t k = symbol_wanting(g, d);
    if (k != UINT32_MAX && (!unbacked_only || sym_symbol_at(g->syms, k)->unbacked))
        sym_set_source(g->syms, k, s);
}

static void claim_dims(const graph *g, node_id n, uint32_t result, enum sym_kind kind, bool unbacked_only)
{
    const tensor_meta *m = &graph_get(g, n)->metas[result];
    const bp_dim *dims = kind == SYM_SIZE ? m->sizes : m->strides;
    for (uint32_t d = 0; d < m->rank; d++)
        claim(g, dims[d], (sym_source){n, (uint16_t)result, (uint8_t)kind, (uint8_t)d}, unbacked_only);
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
