/* Graph modules: a counted graph with constants and options. */
#define BP_WITHOUT_OPERATORS
#include "host/graph/graph.h"
#include <backplane/backplane.h>
#include <stdio.h>
#include <string.h>

bp_graph_module *gm_new(bp_ctx *c, const char *name)
{
    bp_graph_module *gm = calloc(1, sizeof *gm);
    if (gm)
        gm->name = strdup(name);
    if (!gm || !gm->name) {
        free(gm);
        diag_nomem(&c->diag);
        return NULL;
    }
    atomic_init(&gm->refs, 1);
    gm->rt = runtime_ref(c->rt);
    graph_init(&gm->g);
    return gm;
}

bp_graph_module *gm_ref(bp_graph_module *gm)
{
    atomic_fetch_add_explicit(&gm->refs, 1, memory_order_relaxed);
    return gm;
}

static void drop_constants(bp_graph_module *gm)
{
    str key;
    map_value *v;
    for (uint32_t i = 0; map_next(&gm->constants, &i, &key, &v);)
        tensor_unref(v->p);
    map_fini(&gm->constants);
}

static void drop_subs(bp_graph_module *gm)
{
    str key;
    map_value *v;
    for (uint32_t i = 0; map_next(&gm->subs, &i, &key, &v);)
        gm_unref(v->p);
    map_fini(&gm->subs);
}

void gm_unref(bp_graph_module *gm)
{
    if (!gm || atomic_fetch_sub_explicit(&gm->refs, 1, memory_order_acq_rel) != 1)
        return;
    drop_constants(gm);
    drop_subs(gm);
    for (uint32_t i = 0; i < gm->options.len; i++) {
        free(gm->options.at[i].key);
        free(gm->options.at[i].value);
    }
    vec_fini(&gm->options);
    graph_fini(&gm->g);
    if (gm->rt)
        bp_runtime_unref(gm->rt);
    free(gm->name);
    free(gm);
}

bp_status gm_set_constant(bp_ctx *c, bp_graph_module *gm, const char *name, bp_tensor *t)
{
    bool is_new;
    map_value *v = map_put(&gm->constants, str_of(name), &is_new);
    if (!v)
        return diag_nomem(&c->diag);
    bp_tensor *old = is_new ? NULL : v->p;
    v->p = tensor_ref(t);
    tensor_unref(old);
    return BP_OK;
}

bp_status gm_set_option(bp_ctx *c, bp_graph_module *gm, const char *key, const char *value)
{
    char *k = strdup(key), *v = strdup(value);
    if (k && v && vec_reserve(&gm->options, (uint64_t)gm->options.len + 1)) {
        gm->options.at[gm->options.len].key = k;
        gm->options.at[gm->options.len++].value = v;
        return BP_OK;
    }
    free(k);
    free(v);
    return diag_nomem(&c->diag);
}

bp_tensor *gm_constant(const bp_graph_module *gm, const char *name)
{
    const map_value *v = map_get(&gm->constants, str_of(name));
    return v ? v->p : NULL;
}

/* -- graphs that a graph holds ------------------------------------------------------------------------------------- */

bp_status gm_set_sub(bp_ctx *c, bp_graph_module *gm, const char *name, bp_graph_module *sub)
{
    bool is_new;
    map_value *v = map_put(&gm->subs, str_of(name), &is_new);
    if (!v)
        return diag_nomem(&c->diag);
    bp_graph_module *old = is_new ? NULL : v->p;
    v->p = gm_ref(sub);
    gm_unref(old);
    return BP_OK;
}

bp_graph_module *gm_sub(const bp_graph_module *gm, const char *name)
{
    const map_value *v = map_get(&gm->subs, str_of(name));
    return v ? v->p : NULL;
}

node_id gm_add_sub(bp_ctx *c, bp_graph_module *gm, const char *base, bp_graph_module *sub)
{
    char wish[128];
    snprintf(wish, sizeof wish, "%s_0", base);
    node_id n = graph_get_attr(&gm->g, wish, wish, NULL);
    if (!n)
        return graph_status(c, &gm->g), 0;
    graph_node *node = &gm->g.nodes.at[n];
    node->target = node->name;
    return gm_set_sub(c, gm, node->name, sub) == BP_OK ? n : 0;
}

bp_status gm_copy_attr(bp_ctx *c, const bp_graph_module *from, const char *name, bp_graph_module *to, const char *as)
{
    bp_tensor *t = gm_constant(from, name);
    bp_graph_module *sub = gm_sub(from, name);
    if (t)
        TRY(gm_set_constant(c, to, as, t));
    return sub ? gm_set_sub(c, to, as, sub) : BP_OK;
}

bp_graph_module *gm_clone(bp_ctx *c, const bp_graph_module *from)
{
    bp_graph_module *to = gm_new(c, from->name);
    if (!to)
        return NULL;
    to->code_id = from->code_id;
    to->part = from->part;
    graph_fini(&to->g);
    bp_status st = graph_clone(c, &from->g, &to->g);
    for (node_id n = to->g.first; n && st == BP_OK; n = graph_get(&to->g, n)->next)
        if (graph_get(&to->g, n)->op == BP_NODE_GET_ATTR)
            st = gm_copy_attr(c, from, graph_get(&to->g, n)->name, to, graph_get(&to->g, n)->name);
    for (uint32_t i = 0; i < from->options.len && st == BP_OK; i++)
        st = gm_set_option(c, to, from->options.at[i].key, from->options.at[i].value);
    if (st == BP_OK)
        return to;
    gm_unref(to);
    return NULL;
}

bp_graph_module *gm_own_sub(bp_ctx *c, bp_graph_module *gm, const char *name)
{
    bp_graph_module *sub = gm_sub(gm, name), *own;
    if (!sub || atomic_load_explicit(&sub->refs, memory_order_acquire) == 1)
        return sub;
    if (!(own = gm_clone(c, sub)))
        return NULL;
    bp_status st = gm_set_sub(c, gm, name, own);
    gm_unref(own);
    return st == BP_OK ? own : NULL;
}

bp_status gm_each_sub(bp_graph_module *gm, bp_status (*each)(void *arg, const char *name, bp_graph_module *sub),
                      void *arg)
{
    for (node_id n = gm->subs.len ? gm->g.first : 0, next; n; n = next) {
        const graph_node *node = graph_get(&gm->g, n);
        bp_graph_module *sub = node->op == BP_NODE_GET_ATTR ? gm_sub(gm, node->name) : NULL;
        next = node->next;
        if (sub)
            TRY(each(arg, node->name, sub));
    }
    return BP_OK;
}

/* -- arguments by name --------------------------------------------------------------------------------------------- */

/* The recorded value of schema argument i, or NULL where it was left out. */
static const bp_value *recorded_arg(const graph_node *n, const schema *s, uint32_t i)
{
    if (i < n->nargs && !s->args[i].kwarg_only)
        return &n->args[i];
    for (uint32_t k = 0; k < n->nkwargs; k++)
        if (!strcmp(n->kwargs[k].name, s->args[i].name))
            return &n->kwargs[k].value;
    return NULL;
}

bp_status graph_arg(const bp_graph_module *gm, node_id id, const char *name, bp_value *out)
{
    if (id == 0 || id >= gm->g.nodes.len || gm->g.nodes.at[id].op == 0)
        return BP_INVALID_ARGUMENT;
    const graph_node *n = graph_get(&gm->g, id);
    int32_t i = n->row ? schema_find(n->row->schema, name) : -1;
    if (i < 0)
        return BP_NOT_FOUND;
    const schema_arg *arg = &n->row->schema->args[i];
    const bp_value *v = recorded_arg(n, n->row->schema, (uint32_t)i);
    if (!v && !arg->has_default)
        return BP_NOT_FOUND;
    *out = v ? *v : arg->default_value;
    return BP_OK;
}
