/* The verifier of symbols: each dim is one of the graph's environment, and each symbol in it has a source before it. */
#include "host/graph/symbols.h"
#include "host/graph/verify.h"
#include <string.h>

/* A symbol in a dim of node v->at. Placeholders are bound together, so that among them the order does not matter. */
static void check_symbol(void *arg, uint32_t k)
{
    verifier *v = arg;
    const sym_symbol *s = sym_symbol_at(v->g->syms, k);
    const graph_node *n = graph_get(v->g, v->at);
    if (s->source.at == SYM_NO_SOURCE) {
        verify_fault(v, "the symbol \"%s\" has no source: no %s is that symbol alone, and no symint carries it",
                     s->name, s->unbacked ? "input and no result before it" : "size or stride of an input");
        return;
    }
    bool inputs = n->op == BP_NODE_PLACEHOLDER && graph_get(v->g, s->source.at)->op == BP_NODE_PLACEHOLDER;
    if (!inputs && v->rank[s->source.at] > v->rank[v->at])
        verify_fault(v, "the symbol \"%s\" comes from node \"%s\", which is after it", s->name,
                     graph_get(v->g, s->source.at)->name);
}

static void check_dim(verifier *v, bp_dim d)
{
    if (!d.sym || v->status)
        return;
    if (!v->g->syms || !sym_is_dim(v->g->syms, d))
        verify_fault(v, "a symbolic size has the number %u, which is none of the graph's", d.sym);
    else
        sym_each_symbol(v->g->syms, d, check_symbol, v);
}

static void check_value(verifier *v, const bp_value *x)
{
    if (x->kind == BP_VALUE_INT)
        check_dim(v, x->v.dim);
    for (uint32_t i = 0; x->kind == BP_VALUE_LIST && i < x->count; i++)
        check_value(v, &x->v.items[i]);
}

static void check_node(verifier *v, const graph_node *n)
{
    for (uint32_t i = 0; n->symbolic && i < n->nargs; i++)
        check_value(v, &n->args[i]);
    for (uint32_t i = 0; n->symbolic && i < n->nkwargs; i++)
        check_value(v, &n->kwargs[i].value);
    for (uint32_t i = 0; i < n->nmetas; i++)
        for (uint32_t d = 0; d < n->metas[i].rank; d++) {
            check_dim(v, n->metas[i].sizes[d]);
            check_dim(v, n->metas[i].strides[d]);
        }
    check_dim(v, n->number);
    if (n->op == BP_NODE_PLACEHOLDER && (n->role == BP_ROLE_SYMINT) != (n->number.sym != 0))
        verify_fault(v, "a placeholder of the role symint carries a symbol, others do not");
    if (n->role == BP_ROLE_SYMINT && (n->nmetas != 1 || n->metas->dtype != BP_I64 || n->metas->rank))
        verify_fault(v, "a symint is an i64 tensor of no dimensions");
}

bp_status verify_symbols(verifier *v)
{
    graph_find_sources(v->g); /* they are the environment's, and follow from the nodes */
    for (v->at = v->g->first; v->at && !v->status; v->at = graph_get(v->g, v->at)->next)
        check_node(v, graph_get(v->g, v->at));
    return v->status;
}
