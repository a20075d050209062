/* Dead code: calls and constants that nobody uses and that may go. Placeholders stay: they are the graph's promise. So
 * does a call that tells a symbol which is used. */
#include "host/pass/pass.h"
#include "host/pass/pure.h"
#include <stdlib.h>

/* Which symbols the nodes that stay mention. */
typedef struct { const graph *g; uint8_t *used; } mentions;

static void mark(void *arg, uint32_t k)
{
    ((mentions *)arg)->used[k] = 1;
}

static void mark_dim(mentions *m, bp_dim d)
{
    if (d.sym)
        sym_each_symbol(m->g->syms, d, mark, m);
}

static void mark_value(mentions *m, const bp_value *v)
{
    if (v->kind == BP_VALUE_INT)
        mark_dim(m, v->v.dim);
    for (uint32_t i = 0; v->kind == BP_VALUE_LIST && i < v->count; i++)
        mark_value(m, &v->v.items[i]);
}

static void mark_node(mentions *m, const graph_node *n)
{
    for (uint32_t i = 0; i < n->nargs; i++)
        mark_value(m, &n->args[i]);
    for (uint32_t i = 0; i < n->nkwargs; i++)
        mark_value(m, &n->kwargs[i].value);
    for (uint32_t i = 0; i < n->nmetas; i++)
        for (uint32_t d = 0; d < n->metas[i].rank; d++) {
            mark_dim(m, n->metas[i].sizes[d]);
            mark_dim(m, n->metas[i].strides[d]);
        }
}

/* Whether nodes behind n mention a symbol that it tells. */
static bool tells(const mentions *m, node_id n)
{
    for (uint32_t k = 0; k < sym_symbol_count(m->g->syms); k++) {
        const sym_symbol *s = sym_symbol_at(m->g->syms, k);
        if (m->used[k] && s->unbacked && s->source.at == n)
            return true;
    }
    return false;
}

bp_status pass_dce(bp_ctx *c, bp_graph_module *gm, void *arg)
{
    (void)arg;
    graph *g = &gm->g;
    mentions m = {g, NULL};
    if (g->syms && !(m.used = calloc((size_t)sym_symbol_count(g->syms) + 1, 1)))
        return ctx_nomem(c);
    for (node_id n = g->last, before; n; n = before) {
        const graph_node *node = graph_get(g, n);
        before = node->prev;
        if (!node->users.len && node_may_go(node) && !(m.used && tells(&m, n)))
            graph_erase(g, n);
        else if (m.used)
            mark_node(&m, node);
    }
    free(m.used);
    TRY(graph_status(c, g));
    return pass_in_subs(c, gm, pass_dce, NULL);
}
