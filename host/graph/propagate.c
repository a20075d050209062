/* Shapes: the graph run on fakes, so that every node's metadata follow from its placeholders'. */
#include "host/graph/graph.h"

typedef struct { bp_ctx *c; bp_graph_module *gm; } propagation;

static bp_status set_metas(propagation *p, node_id n, bp_tensor *const *results, uint32_t nresults)
{
    tensor_meta *metas = arena_array(&p->c->scratch, nresults, sizeof *metas);
    if (!metas)
        return ctx_nomem(p->c);
    for (uint32_t i = 0; i < nresults; i++) {
        if (!results[i]) /* as a gradient that was not asked for */
            return ctx_fail(p->c, BP_UNIMPLEMENTED, "result %u of \"%s\" is absent and has no shape", i,
                            graph_get(&p->gm->g, n)->name);
        tensor_get_meta(results[i], &metas[i]);
    }
    graph_set_metas(&p->gm->g, n, metas, nresults);
    return graph_status(p->c, &p->gm->g);
}

static bp_status note_metas(void *arg, node_id n, bp_tensor *const *results, uint32_t nresults)
{
    propagation *p = arg;
    arena_mark mark = arena_get_mark(&p->c->scratch);
    bp_status s = set_metas(p, n, results, nresults);
    arena_reset(&p->c->scratch, mark);
    return s;
}

static bp_status make_inputs(bp_ctx *c, const bp_graph_module *gm, bp_tensor **inputs)
{
    uint32_t i = 0;
    for (node_id n = gm->g.first; n; n = graph_get(&gm->g, n)->next) {
        const graph_node *node = graph_get(&gm->g, n);
        if (node->op != BP_NODE_PLACEHOLDER)
            continue;
        if (node->nmetas != 1)
            return ctx_fail(c, BP_FAILED_PRECONDITION, "input \"%s\" of graph \"%s\" has no type", node->name,
                            gm->name);
        if (!(inputs[i++] = tensor_new_fake(c, node->metas)))
            return c->diag.code;
    }
    return BP_OK;
}

static void drop_tensors(bp_tensor **t, uint32_t n)
{
    for (uint32_t i = 0; i < n && t; i++)
        tensor_unref(t[i]);
    free(t);
}

bp_status graph_propagate(bp_ctx *c, bp_graph_module *gm)
{
    propagation p = {c, gm};
    dispatch_mode fake;
    uint32_t nin = graph_placeholders(&gm->g, NULL, 0), nout = graph_output_count(&gm->g);
    bp_tensor **inputs = calloc(nin + 1, sizeof(bp_tensor *)), **outputs = calloc(nout + 1, sizeof(bp_tensor *));
    bp_status s = inputs && outputs ? make_inputs(c, gm, inputs) : ctx_nomem(c);
    if (!s) {
        mode_init_fake(&fake);
        mode_push(c, &fake);
        s = graph_run(c, gm, inputs, nin, outputs, nout, note_metas, &p);
        mode_pop(c, &fake);
    }
    if (s)
        diag_while(&c->diag, "finding the shapes of graph \"%s\"", gm->name);
    drop_tensors(inputs, nin);
    drop_tensors(outputs, nout);
    return s;
}
