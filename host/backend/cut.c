/* Cutting an assigned graph into groups.
 *
 * A node's depth is how often the link changes on the longest way to it. Nodes of one link and one depth form a
 * group: an edge inside a depth joins nodes of one link only, and every other edge goes deeper, so groups are
 * convex and run in the order of depth. Random operators are ordered as if each used the one before, since they
 * draw from one generator. */
#include "host/backend/plan.h"
#include <string.h>

typedef struct { uint32_t depth, link; } place;
typedef VEC(place) places;

/* Node `at` mentions a size that node `by` tells; no argument names it. */
typedef struct { node_id by, at; } mention;

typedef struct {
    const assignment *a;
    const graph *g;
    uint32_t *depth;     /* by node id */
    uint32_t *group;     /* by node id; NO_LINK: none */
    VEC(mention) mentions;
    bool *tells;         /* by node id: another group mentions a size that it tells */
    node_id at, last_random;
    bool failed;
} cutting;

/* -- depths -------------------------------------------------------------------------------------------------------- */

static void go_below(cutting *k, node_id from)
{
    uint32_t d = k->depth[from] + (k->a->link[from] != k->a->link[k->at]);
    if (k->a->link[from] != NO_LINK && d > k->depth[k->at])
        k->depth[k->at] = d;
}

static void see_input(void *arg, node_id n)
{
    go_below(arg, n);
}

/* A symbol of data is an edge that no argument names. */
static void see_symbol(void *arg, uint32_t s)
{
    cutting *k = arg;
    const sym_symbol *sym = sym_symbol_at(k->g->syms, s);
    if (!sym->unbacked || sym->source.at == SYM_NO_SOURCE || sym->source.at == k->at)
        return;
    go_below(k, sym->source.at);
    k->failed |= !vec_push(&k->mentions, ((mention){sym->source.at, k->at}));
}

static void find_depths(cutting *k)
{
    for (k->at = k->g->first; k->at; k->at = graph_get(k->g, k->at)->next) {
        const graph_node *n = graph_get(k->g, k->at);
        if (n->op == BP_NODE_CALL_FUNCTION || n->op == BP_NODE_OUTPUT)
            graph_each_symbol(k->g, k->at, see_symbol, k);
        if (n->op != BP_NODE_CALL_FUNCTION)
            continue;
        graph_each_input(k->g, k->at, see_input, k);
        if (!n->row || !(n->row->flags & OP_RANDOM))
            continue;
        if (k->last_random)
            go_below(k, k->last_random);
        k->last_random = k->at;
    }
}

static int by_depth(const void *x, const void *y)
{
    const place *a = x, *b = y;
    if (a->depth != b->depth)
        return a->depth < b->depth ? -1 : 1;
    return a->link < b->link ? -1 : a->link > b->link;
}

static uint32_t find_place(const places *all, place p)
{
    uint32_t i = 0;
    while (i < all->len && (all->at[i].depth != p.depth || all->at[i].link != p.link))
        i++;
    return i;
}

static bool list_places(cutting *k, places *all)
{
    for (node_id n = k->g->first; n; n = graph_get(k->g, n)->next) {
        place p = {k->depth[n], k->a->link[n]};
        if (p.link != NO_LINK && find_place(all, p) == all->len && !vec_push(all, p))
            return false;
    }
    qsort(all->at, all->len, sizeof *all->at, by_depth);
    for (node_id n = k->g->first; n; n = graph_get(k->g, n)->next) {
        place p = {k->depth[n], k->a->link[n]};
        k->group[n] = p.link == NO_LINK ? NO_LINK : find_place(all, p);
    }
    return true;
}

/* -- what crosses -------------------------------------------------------------------------------------------------- */

typedef struct { cutting *k; group *g; uint32_t index; } crossing;

static bool holds(const node_id *at, uint32_t n, node_id what)
{
    for (uint32_t i = 0; i < n; i++)
        if (at[i] == what)
            return true;
    return false;
}

/* Inputs of a group: placeholders and results of other groups. Constants are copied into each group. */
static void note_input(void *arg, node_id n)
{
    crossing *x = arg;
    if (x->k->group[n] == x->index || graph_get(x->k->g, n)->op == BP_NODE_GET_ATTR)
        return;
    if (!holds(x->g->in.at, x->g->in.len, n) && !vec_push(&x->g->in, n))
        x->k->failed = true;
}

static bool is_used_outside(const cutting *k, node_id n)
{
    const graph_node *node = graph_get(k->g, n);
    for (uint32_t i = 0; i < node->users.len; i++)
        if (k->group[node->users.at[i]] != k->group[n])
            return true;
    return k->tells[n];
}

/* A size that a node tells crosses with its result: other groups read it off that. */
static void find_tellers(cutting *k)
{
    for (uint32_t i = 0; i < k->mentions.len; i++) {
        const mention *m = &k->mentions.at[i];
        k->tells[m->by] |= k->group[m->at] != k->group[m->by];
    }
}

static int by_id(const void *x, const void *y)
{
    const node_id *a = x, *b = y;
    return *a < *b ? -1 : *a > *b;
}

static void list_crossings(cutting *k, group *groups, uint32_t n)
{
    find_tellers(k);
    for (node_id at = k->g->first; at; at = graph_get(k->g, at)->next) {
        if (k->group[at] == NO_LINK)
            continue;
        group *g = &groups[k->group[at]];
        k->failed |= !vec_push(&g->nodes, at);
        graph_each_input(k->g, at, note_input, &(crossing){k, g, k->group[at]});
        if (is_used_outside(k, at))
            k->failed |= !vec_push(&g->out, at);
    }
    for (uint32_t i = 0; i < n; i++)
        if (groups[i].in.len)
            qsort(groups[i].in.at, groups[i].in.len, sizeof(node_id), by_id);
}

/* A value dies behind the last group that reads it, unless the graph returns it. */
static void list_deaths(cutting *k, group *groups, uint32_t n)
{
    for (uint32_t i = n; i-- > 0;) {
        for (uint32_t j = 0; j < groups[i].in.len; j++) {
            node_id v = groups[i].in.at[j];
            bool is_needed = graph_get(k->g, v)->op == BP_NODE_PLACEHOLDER ||
                             holds(graph_get(k->g, v)->users.at, graph_get(k->g, v)->users.len, k->g->last);
            for (uint32_t later = i + 1; !is_needed && later < n; later++)
                is_needed = holds(groups[later].in.at, groups[later].in.len, v);
            if (!is_needed)
                k->failed |= !vec_push(&groups[i].dies, v);
        }
    }
}

/* -- a group's own graph ------------------------------------------------------------------------------------------- */

typedef struct {
    bp_ctx *c;
    const bp_graph_module *from;
    bp_graph_module *to;
    node_id *map;
    arena values;
    graph_import dims;   /* of the group's own environment */
} copying;

static bp_value translate(copying *k, const bp_value *v)
{
    bp_value out = *v;
    if (v->kind == BP_VALUE_INT && !dim_is_const(v->v.dim))
        out.v.dim = graph_import_dim(&k->dims, v->v.dim);
    if (v->kind == BP_VALUE_NODE)
        out.v.node = k->map[v->v.node];
    if (v->kind != BP_VALUE_LIST)
        return out;
    bp_value *items = arena_array(&k->values, v->count, sizeof *items);
    for (uint32_t i = 0; items && i < v->count; i++)
        items[i] = translate(k, &v->v.items[i]);
    out.v.items = items;
    out.count = items ? v->count : 0;
    return out;
}

/* NULL: there are none, or memory is used up, as the context says. */
static const tensor_meta *translate_metas(copying *k, const graph_node *n)
{
    if (!k->from->g.syms || !n->nmetas)
        return n->metas;
    tensor_meta *out = arena_array(&k->values, n->nmetas, sizeof *out);
    for (uint32_t i = 0; out && i < n->nmetas; i++)
        if (graph_import_meta(&k->dims, &n->metas[i], &out[i]) != BP_OK)
            return NULL;
    if (!out)
        ctx_nomem(k->c);
    return out;
}

static bp_status copy_attr(copying *k, node_id n)
{
    const graph_node *node = graph_get(&k->from->g, n);
    k->map[n] = graph_get_attr(&k->to->g, node->name, node->target, node->metas);
    return k->map[n] ? gm_copy_attr(k->c, k->from, node->name, k->to, graph_get(&k->to->g, k->map[n])->name) : BP_OK;
}

static void copy_attr_if_new(void *arg, node_id n)
{
    copying *k = arg;
    if (!k->map[n] && graph_get(&k->from->g, n)->op == BP_NODE_GET_ATTR)
        copy_attr(k, n);
}

static void copy_call(copying *k, node_id n)
{
    const graph_node *node = graph_get(&k->from->g, n);
    bp_value *args = arena_array(&k->values, node->nargs, sizeof *args);
    node_kwarg *kwargs = arena_array(&k->values, node->nkwargs, sizeof *kwargs);
    const tensor_meta *metas = translate_metas(k, node);
    graph_each_input(&k->from->g, n, copy_attr_if_new, k);
    for (uint32_t i = 0; args && i < node->nargs; i++)
        args[i] = translate(k, &node->args[i]);
    for (uint32_t i = 0; kwargs && i < node->nkwargs; i++)
        kwargs[i] = (node_kwarg){node->kwargs[i].name, translate(k, &node->kwargs[i].value)};
    k->map[n] = graph_add(&k->to->g, &(node_spec){.op = BP_NODE_CALL_FUNCTION, .name = node->name,
                                                  .target = node->target, .args = args, .nargs = args ? node->nargs : 0,
                                                  .kwargs = kwargs, .nkwargs = kwargs ? node->nkwargs : 0,
                                                  .metas = metas, .nmetas = metas ? node->nmetas : 0,
                                                  .number = graph_import_dim(&k->dims, node->number),
                                                  .exact_name = true});
    graph_set_site(&k->to->g, k->map[n], node->file, node->line);
}

static void copy_group(copying *k, const group *g)
{
    for (uint32_t i = 0; i < g->in.len; i++) {
        const graph_node *node = graph_get(&k->from->g, g->in.at[i]);
        bool is_input = node->op == BP_NODE_PLACEHOLDER;
        const tensor_meta *metas = translate_metas(k, node);
        k->map[g->in.at[i]] = graph_add(&k->to->g, &(node_spec){
            .op = BP_NODE_PLACEHOLDER, .role = is_input ? node->role : BP_ROLE_USER, .name = node->name,
            .target = is_input ? node->target : node->name, .metas = metas, .nmetas = metas ? node->nmetas : 0,
            .number = graph_import_dim(&k->dims, node->number), .exact_name = true});
    }
    for (uint32_t i = 0; i < g->nodes.len; i++)
        copy_call(k, g->nodes.at[i]);
    bp_value *outputs = arena_array(&k->values, g->out.len, sizeof *outputs);
    for (uint32_t i = 0; outputs && i < g->out.len; i++)
        outputs[i] = graph_ref(k->map[g->out.at[i]]);
    graph_output(&k->to->g, outputs, outputs ? g->out.len : 0);
}

/* Symbols of data that the group computes: other groups read them off its outputs. */
static bp_status list_shown(bp_ctx *c, const bp_graph_module *from, group *g)
{
    for (uint32_t i = 0; i < g->out.len; i++) {
        const graph_node *n = graph_get(&from->g, g->out.at[i]);
        for (uint32_t d = 0; n->nmetas == 1 && d < n->metas->rank; d++) {
            uint32_t s = sym_symbol_of(from->g.syms, n->metas->sizes[d]);
            if (s != UINT32_MAX && sym_symbol_at(from->g.syms, s)->unbacked &&
                !vec_push(&g->sizes->shows, (shown_size){s, i, d}))
                return ctx_nomem(c);
        }
    }
    return BP_OK;
}

/* The group's own symbols: where they come from, and which are inputs of their own. */
static bp_status finish_symbols(copying *k, group *g)
{
    graph *to = &k->to->g;
    if (!k->from->g.syms)
        return BP_OK;
    TRY(graph_import_facts(&k->dims));
    TRY(graph_import_finish(&k->dims));
    if (!graph_has_symbols(to))
        return BP_OK;
    if (!(g->sizes = calloc(1, sizeof *g->sizes)))
        return ctx_nomem(k->c);
    for (uint32_t i = 0; i < sym_symbol_count(to->syms); i++)
        if (!vec_push(&g->sizes->symbol_of, k->dims.back.at[i]))
            return ctx_nomem(k->c);
    uint32_t i = 0;
    for (node_id n = to->first; n; n = graph_get(to, n)->next) {
        if (graph_get(to, n)->op != BP_NODE_PLACEHOLDER || i++ < g->in.len)
            continue;
        uint32_t s = sym_symbol_of(to->syms, graph_get(to, n)->number);
        if (!vec_push(&g->sizes->symints, k->dims.back.at[s]))
            return ctx_nomem(k->c);
    }
    return list_shown(k->c, k->from, g);
}

static bp_status fill_graph(copying *k, group *g)
{
    k->to->code_id = k->from->code_id;
    k->to->part = k->from->part;
    bp_status st = graph_import_init(&k->dims, k->c, &k->to->g, k->from->g.syms);
    if (st == BP_OK) {
        copy_group(k, g);
        st = ctx_ok(k->c) ? graph_status(k->c, &k->to->g) : k->c->diag.code;
    }
    st = st ? st : finish_symbols(k, g);
    graph_import_fini(&k->dims);
    return st;
}

static bp_status make_graph(bp_ctx *c, const bp_graph_module *from, group *g, uint32_t index)
{
    char name[256];
    snprintf(name, sizeof name, "%s_part_%u", from->name, (unsigned)index);
    copying k = {.c = c, .from = from, .to = gm_new(c, name), .map = calloc(from->g.nodes.len, sizeof(node_id))};
    g->gm = k.to;
    bp_status st = k.to && k.map ? fill_graph(&k, g) : ctx_nomem(c);
    arena_fini(&k.values);
    free(k.map);
    return st;
}

/* -- cutting ------------------------------------------------------------------------------------------------------- */

static bp_status fill(cutting *k, const places *all, group *groups)
{
    bp_ctx *c = k->a->c;
    for (uint32_t i = 0; i < all->len; i++) {
        groups[i].link = all->at[i].link;
        pthread_mutex_init(&groups[i].lock, NULL);
    }
    list_crossings(k, groups, all->len);
    list_deaths(k, groups, all->len);
    if (k->failed)
        return ctx_nomem(c);
    for (uint32_t i = 0; i < all->len; i++)
        TRY(make_graph(c, k->a->gm, &groups[i], i));
    return BP_OK;
}

bp_status cut_groups(const assignment *a, group **groups, uint32_t *n)
{
    cutting k = {.a = a, .g = &a->gm->g};
    places all = {0};
    k.depth = calloc(k.g->nodes.len, sizeof *k.depth);
    k.group = calloc(k.g->nodes.len, sizeof *k.group);
    k.tells = calloc(k.g->nodes.len, sizeof *k.tells);
    *groups = NULL;
    bp_status st = BP_OK;
    if (k.depth && k.group && k.tells) {
        find_depths(&k);
        if (list_places(&k, &all) && (*groups = calloc(all.len, sizeof **groups))) {
            *n = all.len;
            st = fill(&k, &all, *groups);
        }
    }
    if (!*groups)
        st = ctx_nomem(a->c);
    free(k.depth);
    free(k.group);
    free(k.tells);
    vec_fini(&k.mentions);
    vec_fini(&all);
    return st;
}
