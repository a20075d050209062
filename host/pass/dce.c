/* Dead code: calls and constants that nobody uses and that may go. Placeholders stay: they are the graph's promise. */
#include "host/pass/pass.h"
#include "host/pass/pure.h"

bp_status pass_dce(bp_ctx *c, bp_graph_module *gm, void *arg)
{
    (void)arg;
    graph *g = &gm->g;
    for (node_id n = g->last, before; n; n = before) {
        before = graph_get(g, n)->prev;
        if (!graph_get(g, n)->users.len && node_may_go(graph_get(g, n)))
            graph_erase(g, n);
    }
    return graph_status(c, g);
}
