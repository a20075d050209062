/* Shapes: the graph run on fakes, so that every node's metadata follow from its placeholders'. */
#include "host/graph/run.h"
#include <stdio.h>

typedef struct {
    bp_ctx *c;
    bp_graph_module *gm;
    bp_dim *numbers;
    bool check; /* metadata that are there must agree, instead of being replaced */
} propagation;

static bool is_proven(bp_dim a, bp_dim b)
{
    return dim_same(a, b) || dim_prove(DIM_EQ, a, b) == DIM_TRUE;
}

static bool same_type(const tensor_meta *a, const tensor_meta *b)
{
    bool empty = false; /* nothing is asked of sizes: what a text says must follow from it */
    if (a->dtype != b->dtype || a->rank != b->rank || a->device.kind != b->device.kind ||
        a->device.index != b->device.index)
        return false;
    for (uint32_t d = 0; d < a->rank; d++) {
        if (!is_proven(a->sizes[d], b->sizes[d]))
            return false;
        empty |= dim_same_as(a->sizes[d], 0);
    }
    for (uint32_t d = 0; d < a->rank && !empty; d++) /* strides of sizes 0 and 1 mean nothing */
        if (!dim_same_as(a->sizes[d], 1) && !is_proven(a->strides[d], b->strides[d]))
            return false;
    return true;
}

static void print_types(const tensor_meta *m, uint32_t n, buf *out)
{
    for (uint32_t i = 0; i < n; i++) {
        buf_puts(out, i ? ", " : "");
        graph_print_type(&m[i], out);
    }
    buf_puts(out, n ? "" : "nothing");
}

static bp_status compare_types(propagation *p, node_id id, const tensor_meta *metas, uint32_t n)
{
    const graph_node *node = graph_get(&p->gm->g, id);
    bool same = node->nmetas == n;
    for (uint32_t i = 0; same && i < n; i++)
        same = same_type(&node->metas[i], &metas[i]);
    if (same)
        return BP_OK;
    buf declared = {0}, found = {0};
    print_types(node->metas, node->nmetas, &declared);
    print_types(metas, n, &found);
    char place[300] = "";
    if (node->column)
        snprintf(place, sizeof place, "%s:%d:%d: ", node->file, node->line, node->column);
    ctx_fail(p->c, BP_INVALID_ARGUMENT, "%s\"%s\" is declared as %s, and its operator gives %s", place, node->name,
             buf_text(&declared), buf_text(&found));
    buf_fini(&declared);
    buf_fini(&found);
    if (node->file && !node->column)
        diag_while(&p->c->diag, "checking %s:%d", node->file, node->line);
    return p->c->diag.code;
}

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
    if (p->check && graph_get(&p->gm->g, n)->nmetas)
        return compare_types(p, n, metas, nresults);
    graph_set_metas(&p->gm->g, n, metas, nresults);
    return graph_status(p->c, &p->gm->g);
}

static bp_status note_metas(void *arg, node_id n, bp_tensor *const *results, uint32_t nresults)
{
    propagation *p = arg;
    arena_mark mark = arena_get_mark(&p->c->scratch);
    if (graph_get(&p->gm->g, n)->op == BP_NODE_CALL_FUNCTION && p->numbers[n].sym)
        graph_set_number(&p->gm->g, n, p->numbers[n]);
    if (graph_get(&p->gm->g, n)->role == BP_ROLE_SYMINT)
        return BP_OK;
    bp_status s = set_metas(p, n, results, nresults);
    arena_reset(&p->c->scratch, mark);
    return s;
}

static bp_status fake_inputs(bp_ctx *c, const bp_graph_module *gm, bp_tensor **inputs)
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

bp_status graph_fake_inputs(bp_ctx *c, const bp_graph_module *gm, bp_tensor **inputs)
{
    sym_scope scope = sym_push(gm->g.syms, c);
    bp_status s = fake_inputs(c, gm, inputs);
    sym_pop(scope);
    return s;
}

static void drop_tensors(bp_tensor **t, uint32_t n)
{
    for (uint32_t i = 0; i < n && t; i++)
        tensor_unref(t[i]);
    free(t);
}

static bp_status propagate(bp_ctx *c, bp_graph_module *gm, bool check)
{
    propagation p = {c, gm, NULL, check};
    dispatch_mode fake;
    sym_scope scope = sym_push(gm->g.syms, c);
    uint32_t nin = graph_placeholders(&gm->g, NULL, 0), nout = graph_output_count(&gm->g);
    bp_tensor **inputs = calloc(nin + 1, sizeof(bp_tensor *)), **outputs = calloc(nout + 1, sizeof(bp_tensor *));
    p.numbers = calloc(gm->g.nodes.len, sizeof *p.numbers);
    bp_status s = inputs && outputs && p.numbers ? graph_fake_inputs(c, gm, inputs) : ctx_nomem(c);
    if (!s) {
        mode_init_fake(&fake);
        mode_push(c, &fake);
        s = run_telling_numbers(c, gm, inputs, nin, outputs, nout, note_metas, &p, p.numbers);
        mode_pop(c, &fake);
    }
    if (s)
        diag_while(&c->diag, "finding the shapes of graph \"%s\"", gm->name);
    drop_tensors(inputs, nin);
    drop_tensors(outputs, nout);
    free(p.numbers);
    sym_pop(scope);
    return s;
}

bp_status graph_propagate(bp_ctx *c, bp_graph_module *gm)
{
    return propagate(c, gm, false);
}

bp_status graph_check_types(bp_ctx *c, bp_graph_module *gm)
{
    return propagate(c, gm, true);
}
