/* Items of a path as nodes of an FX graph. */
#include "host/capture/emit.h"
#include "host/graph/higher.h"

static bp_dim graph_dim(emitter *e, bp_dim d)
{
    if (!d.sym)
        return d;
    d = e->dim_of ? e->dim_of(e, d) : dim_const(dim_int(e->c, d));
    e->failed |= !ctx_ok(e->c);
    return d;
}

static void set_metas(emitter *e, node_id n, const tensor_meta *metas, uint32_t count)
{
    bool ok = true;
    tensor_meta *own = arena_memdup(&e->gm->g.arena, metas, count * sizeof *own);
    for (uint32_t i = 0; own && i < count; i++) {
        if (meta_is_constant(&metas[i]))
            continue;
        own[i] = meta_copy(&e->gm->g.arena, &metas[i], &ok);
        for (uint32_t d = 0; ok && d < own[i].rank; d++)
            own[i].sizes[d] = graph_dim(e, own[i].sizes[d]);
        for (uint32_t d = 0; ok && d < own[i].rank; d++)
            own[i].strides[d] = graph_dim(e, own[i].strides[d]);
        own[i].offset = dim_const(0); /* values of a graph start at their first element */
    }
    e->failed |= !own || !ok;
    if (!e->failed)
        graph_set_metas(&e->gm->g, n, own, count);
}

static bp_value graph_value(emitter *e, const bp_value *v)
{
    if (v->kind == BP_VALUE_INT)
        return value_dim(graph_dim(e, v->v.dim));
    if (v->kind == BP_VALUE_LIST) {
        bp_value *items = arena_array(&e->gm->g.arena, v->count, sizeof *items);
        e->failed |= !items;
        for (uint32_t i = 0; items && i < v->count; i++)
            items[i] = graph_value(e, &v->v.items[i]);
        return value_list(items, items ? v->count : 0);
    }
    return v->kind == BP_VALUE_NODE ? e->value_of(e, v->v.node) : *v;
}

/* An argument that is the very number of a node names that node, as it does for other numbers. */
static bp_value graph_argument(emitter *e, const bp_value *v)
{
    for (uint32_t i = 0; v->kind == BP_VALUE_INT && v->v.dim.sym && i < e->nnumbers; i++)
        if (e->numbers[i].sym == v->v.dim.sym)
            return graph_ref(e->numbers[i].n);
    return graph_value(e, v);
}

static void note_number(emitter *e, const item *it, node_id n)
{
    if (!it->node.number.sym)
        return;
    if (e->dim_of)
        graph_set_number(&e->gm->g, n, graph_dim(e, it->node.number));
    if (e->nnumbers == sizeof e->numbers / sizeof *e->numbers)
        return; /* others are expressions */
    e->numbers[e->nnumbers].sym = it->node.number.sym;
    e->numbers[e->nnumbers++].n = n;
}

/* Results of an operator with several: torch.fx takes each by getitem. */
static void add_getitems(emitter *e, const item *it, node_id n, const uint8_t *wanted, bp_value *made)
{
    for (uint32_t j = 0; j < it->node.nresults; j++) {
        if (wanted && !wanted[j])
            continue;
        bp_value args[2] = {graph_ref(n), value_int(j)};
        node_id get = graph_call(&e->gm->g, NULL, "<built-in function getitem>", args, 2, NULL, 0);
        set_metas(e, get, &it->node.metas[j], 1);
        graph_set_site(&e->gm->g, get, it->file, it->line);
        made[j] = graph_ref(get);
    }
}

/* A graph that the call runs becomes the value of a get_attr. */
static bp_value held_graph(emitter *e, const char *name, const bp_value *v)
{
    bp_graph_module *sub = v->kind == BP_VALUE_GRAPH ? v->v.tensor : NULL;
    node_id n = sub ? gm_add_sub(e->c, e->gm, name, sub) : 0;
    e->failed |= !n;
    return graph_ref(n);
}

/* Positional arguments up to the last that is no default, then the others by name. */
static void split_args(emitter *e, const item *it, bp_value *args, uint32_t *nargs, node_kwarg *kw, uint32_t *nkw)
{
    const schema *s = it->node.op->schema;
    for (uint32_t i = 0; i < it->node.nargs; i++) {
        const schema_arg *a = &s->args[i];
        bp_value v = a->ty.type == TYPE_GRAPH ? held_graph(e, a->name, &it->node.args[i])
                                              : graph_argument(e, &it->node.args[i]);
        bool is_default = a->has_default && value_eq(&v, &a->default_value);
        if (!a->kwarg_only) {
            args[i] = v;
            *nargs = is_default ? *nargs : i + 1;
        } else if (!is_default) {
            kw[(*nkw)++] = (node_kwarg){a->name, v};
        }
    }
}

typedef struct { emitter *e; bool any; } requiring;

static void look(void *arg, ref r)
{
    requiring *q = arg;
    q->any |= q->e->requires(q->e, r);
}

static void detach_results(emitter *e, const item *it, bp_value *made)
{
    requiring q = {e, false};
    item_each_ref(it, look, &q);
    bool has_history = q.any && !(it->node.op->flags & (OP_NO_GRAD_OUT | OP_ITEM));
    for (uint32_t j = 0; has_history && j < it->node.nresults; j++) {
        bp_dtype d = it->node.metas[j].dtype;
        bool differentiable = (dtype_is_float(d) || dtype_is_complex(d)) && !(j && it->node.op->flags & OP_GRAD_FIRST);
        if (!differentiable || item_requires(it, it->node.first + j) || made[j].kind != BP_VALUE_NODE)
            continue;
        node_id n = graph_call(&e->gm->g, NULL, "aten.detach.default", &made[j], 1, NULL, 0);
        set_metas(e, n, &it->node.metas[j], 1);
        graph_set_site(&e->gm->g, n, it->file, it->line);
        made[j] = graph_ref(n);
    }
}

void emit_item(emitter *e, const item *it, const uint8_t *wanted, bp_value *made)
{
    uint32_t nargs = 0, nkw = 0;
    bp_value *args = arena_array(&e->gm->g.arena, it->node.nargs, sizeof *args);
    node_kwarg *kw = arena_array(&e->gm->g.arena, it->node.nargs, sizeof *kw);
    if (!args || !kw) {
        e->failed = true;
        return;
    }
    split_args(e, it, args, &nargs, kw, &nkw);
    if (e->failed)
        return;
    node_id n = graph_call(&e->gm->g, NULL, it->node.op->target, args, nargs, kw, nkw);
    if (!(it->node.op->flags & OP_ITEM))
        set_metas(e, n, it->node.metas, it->node.nresults);
    else
        note_number(e, it, n);
    graph_set_site(&e->gm->g, n, it->file, it->line);
    if (it->node.returns_list || it->node.nresults > 1)
        add_getitems(e, it, n, wanted, made);
    else
        made[0] = graph_ref(n);
    if (e->requires)
        detach_results(e, it, made);
}
