/* What passes ask of nodes (pure.h). */
#include "host/pass/pure.h"
#include <string.h>

static bool writes(const op_row *op)
{
    for (uint32_t i = 0; i < op->schema->nargs; i++)
        if (op->schema->args[i].ty.writes)
            return true;
    return op->functional != NULL;
}

/* Running statistics are written in training alone. */
static bool moves_stats(const graph_node *n)
{
    bool trains = n->nargs <= 5 || n->args[5].kind != BP_VALUE_BOOL || n->args[5].v.i;
    bool has = n->nargs > 3 && n->args[3].kind == BP_VALUE_NODE;
    return (n->row->flags & OP_MOVES_STATS) && trains && has;
}

bool node_may_go(const graph_node *n)
{
    str builtin;
    if (n->op == BP_NODE_GET_ATTR)
        return true;
    if (n->op != BP_NODE_CALL_FUNCTION)
        return false;
    if (!n->row)
        return graph_is_builtin(n->target, &builtin) && str_is(builtin, "getitem");
    bool by_stats = (n->row->flags & OP_MOVES_STATS) != 0;
    if (n->row->flags & (OP_RANDOM | OP_EFFECT | OP_MAY_FAIL_ON_DATA))
        return false;
    return by_stats ? !moves_stats(n) : !writes(n->row);
}

bool node_is_pure(const graph_node *n)
{
    return n->op == BP_NODE_CALL_FUNCTION && node_may_go(n) && !(n->row && (n->row->flags & (OP_ITEM | OP_CUSTOM)));
}

bool node_makes_symbol(const graph *g, node_id n)
{
    if (!g->syms || graph_get(g, n)->op != BP_NODE_CALL_FUNCTION)
        return false;
    for (uint32_t k = 0; k < sym_symbol_count(g->syms); k++) {
        const sym_symbol *s = sym_symbol_at(g->syms, k);
        if (s->unbacked && s->source.at == n)
            return true;
    }
    return false;
}

/* -- memory -------------------------------------------------------------------------------------------------------- */

typedef struct { bp_ctx *c; memory_map *m; } mapping;

static bp_status note_memory(void *arg, node_id n, bp_tensor *const *results, uint32_t nresults)
{
    mapping *p = arg;
    for (uint32_t i = 0; i < nresults; i++) {
        if (!results[i])
            continue;
        if (!vec_push(&p->m->kept, tensor_ref(results[i]))) {
            tensor_unref(results[i]);
            return ctx_nomem(p->c);
        }
        if (!p->m->of[n])
            p->m->of[n] = results[i]->store;
    }
    return BP_OK;
}

static bp_status run_on_fakes(bp_ctx *c, const bp_graph_module *gm, memory_map *m)
{
    uint32_t nin = graph_placeholders(&gm->g, NULL, 0), nout = graph_output_count(&gm->g);
    bp_tensor **inputs = calloc(nin + 1, sizeof *inputs), **outputs = calloc(nout + 1, sizeof *outputs);
    bp_status s = inputs && outputs ? graph_fake_inputs(c, gm, inputs) : ctx_nomem(c);
    mapping p = {c, m};
    dispatch_mode fake;
    if (!s) {
        mode_init_fake(&fake);
        mode_push(c, &fake);
        s = graph_run(c, gm, inputs, nin, outputs, nout, note_memory, &p);
        mode_pop(c, &fake);
    }
    for (uint32_t i = 0; i < nin && inputs; i++)
        tensor_unref(inputs[i]);
    for (uint32_t i = 0; i < nout && outputs; i++)
        tensor_unref(outputs[i]);
    free(inputs);
    free(outputs);
    return s;
}

typedef struct { const memory_map *m; const storage *s; bool found; } search;

static void find_storage(void *arg, node_id n)
{
    search *f = arg;
    f->found |= f->m->of[n] == f->s;
}

/* Marks every node that gives or reads the memory s. */
static void mark_touching(const graph *g, memory_map *m, const storage *s)
{
    for (node_id n = g->first; n; n = graph_get(g, n)->next) {
        search f = {m, s, m->of[n] == s};
        graph_each_input(g, n, find_storage, &f);
        m->written[n] |= f.found;
    }
}

static void mark_written_by(const graph *g, memory_map *m, node_id n)
{
    const graph_node *node = graph_get(g, n);
    for (uint32_t i = 0; i < node->nargs; i++)
        if (node->args[i].kind == BP_VALUE_NODE && i < node->row->schema->nargs &&
            (node->row->schema->args[i].ty.writes || (node->row->flags & OP_MOVES_STATS)))
            mark_touching(g, m, m->of[node->args[i].v.node]);
    for (uint32_t i = 0; i < node->nkwargs; i++)
        if (node->kwargs[i].value.kind == BP_VALUE_NODE)
            mark_touching(g, m, m->of[node->kwargs[i].value.v.node]);
}

typedef struct { memory_map *m; const graph *g; } leaving;

static void mark_leaving(void *arg, node_id out)
{
    leaving *l = arg;
    for (node_id n = l->g->first; n; n = graph_get(l->g, n)->next)
        l->m->leaves[n] |= l->m->of[n] && l->m->of[n] == l->m->of[out];
}

static void mark(const graph *g, memory_map *m)
{
    for (node_id n = g->first; n; n = graph_get(g, n)->next) {
        const graph_node *node = graph_get(g, n);
        if (node->op == BP_NODE_CALL_FUNCTION && node->row && (writes(node->row) || moves_stats(node)))
            mark_written_by(g, m, n);
    }
    node_id out = graph_output_node(g);
    leaving l = {m, g};
    if (out)
        graph_each_input(g, out, mark_leaving, &l);
}

bp_status memory_map_make(bp_ctx *c, const bp_graph_module *gm, memory_map *out)
{
    *out = (memory_map){.n = gm->g.nodes.len};
    out->of = calloc(out->n, sizeof *out->of);
    out->written = calloc(out->n, 1);
    out->leaves = calloc(out->n, 1);
    bp_status s = out->of && out->written && out->leaves ? run_on_fakes(c, gm, out) : ctx_nomem(c);
    if (s)
        memory_map_fini(out);
    else
        mark(&gm->g, out);
    return s;
}

void memory_map_fini(memory_map *m)
{
    for (uint32_t i = 0; i < m->kept.len; i++)
        tensor_unref(m->kept.at[i]);
    vec_fini(&m->kept);
    free(m->of);
    free(m->written);
    free(m->leaves);
    *m = (memory_map){0};
}
