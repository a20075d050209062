/* Common subexpressions: a pure call that was made before gives its earlier value.
 *
 * Two calls of one operator on equal arguments are equal. They stay apart where one of them touches memory that is
 * written, and where both leave the graph: what are two tensors to the caller must not become one. */
#include "host/graph/print.h"
#include "host/pass/pass.h"
#include "host/pass/pure.h"
#include "sdk/base/map.h"

typedef struct {
    bp_graph_module *gm;
    memory_map m;
    map seen;       /* text of a call -> the first node that made it */
    uint8_t *is_output;
} cse;

/* The call as a text; node names stand for nodes. */
static void describe(const graph *g, const graph_node *n, buf *out)
{
    buf_puts(out, n->target);
    print_tuple(out, g, n->args, n->nargs, PRINT_REPR);
    for (uint32_t i = 0; i < n->nkwargs; i++) {
        buf_printf(out, " %s=", n->kwargs[i].name);
        print_value(out, g, &n->kwargs[i].value, PRINT_REPR);
    }
}

static bool is_view(const cse *k, node_id n)
{
    const bp_value *v = graph_get(&k->gm->g, n)->args;
    return graph_get(&k->gm->g, n)->nargs && v->kind == BP_VALUE_NODE && k->m.of[n] == k->m.of[v->v.node];
}

static bool must_stay(const cse *k, node_id n, node_id first)
{
    if (k->is_output[n] && k->is_output[first])
        return true;
    return k->m.leaves[n] && k->m.leaves[first] && !(is_view(k, n) && k->m.of[n] == k->m.of[first]);
}

static void merge(cse *k, node_id n, node_id first)
{
    graph *g = &k->gm->g;
    bool left = k->m.leaves[n];
    k->is_output[first] |= k->is_output[n];
    for (node_id i = g->first; i && left; i = graph_get(g, i)->next)
        k->m.leaves[i] |= k->m.of[i] == k->m.of[first];
    for (node_id i = g->first; i; i = graph_get(g, i)->next) /* what viewed the one is a view of the other */
        if (i != n && k->m.of[i] == k->m.of[n])
            k->m.of[i] = k->m.of[first];
    graph_replace_uses(g, n, first);
    graph_erase(g, n);
}

static bp_status visit(bp_ctx *c, cse *k, node_id n)
{
    const graph_node *node = graph_get(&k->gm->g, n);
    if (!node_is_pure(node) || k->m.written[n] || node_makes_symbol(&k->gm->g, n))
        return BP_OK;
    buf text = {0};
    bool fresh = false;
    describe(&k->gm->g, node, &text);
    map_value *v = text.failed ? NULL : map_put(&k->seen, (str){buf_text(&text), text.n}, &fresh);
    bp_status s = v ? BP_OK : ctx_nomem(c);
    if (v && fresh)
        v->u = n;
    else if (v && !must_stay(k, n, (node_id)v->u))
        merge(k, n, (node_id)v->u);
    buf_fini(&text);
    return s;
}

static void mark_output(void *arg, node_id n)
{
    ((cse *)arg)->is_output[n] = 1;
}

bp_status pass_cse(bp_ctx *c, bp_graph_module *gm, void *arg)
{
    (void)arg;
    cse k = {.gm = gm};
    TRY(pass_in_subs(c, gm, pass_cse, NULL));
    bp_status s = memory_map_make(c, gm, &k.m);
    if (s == BP_UNIMPLEMENTED || s == BP_FAILED_PRECONDITION) { /* sizes depend on data: who aliases what is unknown */
        diag_clear(&c->diag);
        return BP_OK;
    }
    TRY(s);
    k.is_output = calloc(gm->g.nodes.len, 1);
    s = k.is_output ? BP_OK : ctx_nomem(c);
    if (k.is_output && graph_output_node(&gm->g))
        graph_each_input(&gm->g, graph_output_node(&gm->g), mark_output, &k);
    for (node_id n = gm->g.first, next; n && !s; n = next) {
        next = graph_get(&gm->g, n)->next;
        s = visit(c, &k, n);
    }
    memory_map_fini(&k.m);
    map_fini(&k.seen);
    free(k.is_output);
    return s ? s : graph_status(c, &gm->g);
}
