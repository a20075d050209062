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
            graph_each_symbol(g, n, mark, &m);
    }
    free(m.used);
    TRY(graph_status(c, g));
    return pass_in_subs(c, gm, pass_dce, NULL);
}
