/* Building and editing graphs.
 *
 * Invariants: a node's arguments name earlier live nodes at the time they are set; users of a node are exactly the live
 * nodes whose arguments name it, each once; all that a node points to lies in the graph's arena, but for its users. */
#include "host/graph/graph.h"
#include "host/graph/namer.h"
#include "host/graph/symbols.h"
#include <stdio.h>
#include <string.h>

enum { MAX_NODES = 1u << 24, MAX_NESTING = 64 };

__attribute__((format(printf, 2, 3))) static node_id fail(graph *g, const char *fmt, ...)
{
    va_list ap;
    char text[256];
    if (g->failed)
        return 0;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    g->failed = true;
    g->failure = arena_strdup(&g->arena, text);
    return 0;
}

static node_id fail_memory(graph *g)
{
    g->failed = true;
    return 0;
}

void graph_init(graph *g)
{
    memset(g, 0, sizeof *g);
    if (!vec_push(&g->nodes, (graph_node){0})) /* id 0 is no node */
        fail_memory(g);
}

void graph_fini(graph *g)
{
    for (uint32_t i = 0; i < g->nodes.len; i++)
        vec_fini(&g->nodes.at[i].users);
    vec_fini(&g->nodes);
    map_fini(&g->names);
    map_fini(&g->name_next);
    arena_fini(&g->arena);
    sym_env_unref(g->syms);
    memset(g, 0, sizeof *g);
}

bp_status graph_status(bp_ctx *c, const graph *g)
{
    if (!g->failed)
        return BP_OK;
    if (!g->failure)
        return diag_nomem(&c->diag);
    return ctx_fail(c, BP_INTERNAL, "a graph was built wrongly: %s", g->failure);
}

/* -- copying into the arena ---------------------------------------------------------------------------------------- */

static bool is_live(const graph *g, node_id n)
{
    return n > 0 && n < g->nodes.len && g->nodes.at[n].op != 0;
}

static bool copy_value(graph *g, const bp_value *v, bp_value *out, uint32_t depth);

static bool copy_values(graph *g, const bp_value *v, uint32_t n, bp_value **out, uint32_t depth)
{
    if (n && depth > MAX_NESTING)
        return fail(g, "a list is nested deeper than %d", MAX_NESTING);
    bp_value *copy = arena_array(&g->arena, n, sizeof *copy);
    if (!copy)
        return fail_memory(g);
    for (uint32_t i = 0; i < n; i++)
        if (!copy_value(g, &v[i], &copy[i], depth))
            return false;
    *out = copy;
    return true;
}

/* g->saw_symbol: set when some value is one. */
static bool copy_value(graph *g, const bp_value *v, bp_value *out, uint32_t depth)
{
    bp_value *items;
    *out = *v;
    switch (v->kind) {
    case BP_VALUE_INT:
        g->saw_symbol |= v->v.dim.sym != 0;
        return true;
    case BP_VALUE_NODE:
        return is_live(g, v->v.node) || fail(g, "node %u is no argument: it is not in the graph", v->v.node);
    case BP_VALUE_STRING:
        return (out->v.str = arena_strdup(&g->arena, v->v.str ? v->v.str : "")) || fail_memory(g);
    case BP_VALUE_LIST:
        if (!copy_values(g, v->v.items, v->count, &items, depth + 1))
            return false;
        out->v.items = items;
        return true;
    case BP_VALUE_TENSOR:
        return fail(g, "a tensor is no argument of a node: make it a constant");
    case BP_VALUE_GENERATOR: /* a graph draws from the caller's generator */
        *out = (bp_value){0};
        return true;
    default:
        return true;
    }
}

static bool copy_kwargs(graph *g, const node_kwarg *kw, uint32_t n, node_kwarg **out)
{
    node_kwarg *copy = arena_array(&g->arena, n, sizeof *copy);
    if (!copy)
        return fail_memory(g);
    for (uint32_t i = 0; i < n; i++) {
        if (!(copy[i].name = arena_strdup(&g->arena, kw[i].name)))
            return fail_memory(g);
        if (!copy_value(g, &kw[i].value, &copy[i].value, 0))
            return false;
    }
    *out = copy;
    return true;
}

static bool copy_meta(graph *g, const tensor_meta *m, tensor_meta *out)
{
    *out = *m;
    out->offset = (bp_dim){0};
    out->sizes = arena_memdup(&g->arena, m->sizes, m->rank * sizeof *m->sizes);
    out->strides = arena_memdup(&g->arena, m->strides, m->rank * sizeof *m->strides);
    return (out->sizes && out->strides) || fail_memory(g);
}

static bool copy_metas(graph *g, const tensor_meta *metas, uint32_t n, tensor_meta **out)
{
    tensor_meta *copy = arena_array(&g->arena, n, sizeof *copy);
    if (!copy)
        return fail_memory(g);
    for (uint32_t i = 0; i < n; i++)
        if (!copy_meta(g, &metas[i], &copy[i]))
            return false;
    *out = n ? copy : NULL;
    return true;
}

/* -- users --------------------------------------------------------------------------------------------------------- */

void value_each_node(const bp_value *v, void (*each)(void *arg, node_id n), void *arg)
{
    if (v->kind == BP_VALUE_NODE)
        each(arg, v->v.node);
    else if (v->kind == BP_VALUE_LIST)
        for (uint32_t i = 0; i < v->count; i++)
            value_each_node(&v->v.items[i], each, arg);
}

void graph_each_input(const graph *g, node_id n, void (*each)(void *arg, node_id n), void *arg)
{
    const graph_node *node = graph_get(g, n);
    for (uint32_t i = 0; i < node->nargs; i++)
        value_each_node(&node->args[i], each, arg);
    for (uint32_t i = 0; i < node->nkwargs; i++)
        value_each_node(&node->kwargs[i].value, each, arg);
}

typedef struct { graph *g; node_id user; } use;

static void add_user(void *arg, node_id n)
{
    use *u = arg;
    graph_node *node = &u->g->nodes.at[n];
    /* All of a node's uses are added in one go, so a second use of one input finds the user at the end. */
    if (node->users.len && vec_last(&node->users) == u->user)
        return;
    if (!vec_push(&node->users, u->user))
        fail_memory(u->g);
}

static void drop_user(void *arg, node_id n)
{
    use *u = arg;
    graph_node *node = &u->g->nodes.at[n];
    for (uint32_t i = 0; i < node->users.len; i++)
        if (node->users.at[i] == u->user) {
            memmove(&node->users.at[i], &node->users.at[i + 1], (node->users.len - i - 1) * sizeof(node_id));
            node->users.len--;
            return;
        }
}

/* -- adding -------------------------------------------------------------------------------------------------------- */

static void append(graph *g, node_id n)
{
    g->nodes.at[n].prev = g->last;
    if (g->last)
        g->nodes.at[g->last].next = n;
    else
        g->first = n;
    g->last = n;
    g->live++;
}

static bool fill_node(graph *g, const node_spec *s, graph_node *node)
{
    node->op = s->op;
    node->role = s->role;
    node->nargs = s->nargs;
    node->nkwargs = s->nkwargs;
    node->nmetas = s->nmetas;
    node->number = s->number;
    if (!(node->target = arena_strdup(&g->arena, s->target)))
        return fail_memory(g);
    if (s->op == BP_NODE_CALL_FUNCTION)
        node->row = op_by_target(node->target);
    g->saw_symbol = false;
    bool ok = copy_values(g, s->args, s->nargs, &node->args, 0) &&
              copy_kwargs(g, s->kwargs, s->nkwargs, &node->kwargs) &&
              copy_metas(g, s->metas, s->nmetas, &node->metas);
    node->symbolic = g->saw_symbol;
    return ok;
}

static const char *name_node(graph *g, const node_spec *s, const char *target)
{
    const char *name = s->exact_name                            ? namer_claim(g, s->name)
                       : !s->name && s->op == BP_NODE_CALL_FUNCTION ? namer_pick_target(g, target)
                                                                    : namer_pick(g, s->name ? s->name : target);
    if (!name && s->exact_name && !namer_is_free(g, s->name))
        fail(g, "the name \"%s\" is taken, or no identifier", s->name);
    else if (!name)
        fail_memory(g);
    return name;
}

node_id graph_add(graph *g, const node_spec *s)
{
    graph_node node = {0};
    if (g->failed)
        return 0;
    if (g->nodes.len >= MAX_NODES)
        return fail(g, "it has more than %u nodes", MAX_NODES);
    if (!fill_node(g, s, &node))
        return 0;
    if (!(node.name = name_node(g, s, node.target)))
        return 0;
    node_id n = g->nodes.len;
    map_value *slot = map_put(&g->names, str_of(node.name), &(bool){false});
    if (!slot || !vec_push(&g->nodes, node))
        return fail_memory(g);
    slot->u = n;
    append(g, n);
    graph_each_input(g, n, add_user, &(use){g, n});
    symbols_claim(g, n);
    return g->failed ? 0 : n;
}

node_id graph_placeholder(graph *g, const char *name, const char *target, int32_t role, const tensor_meta *meta)
{
    return graph_add(g, &(node_spec){.op = BP_NODE_PLACEHOLDER, .role = role, .name = name, .target = target,
                                     .metas = meta, .nmetas = meta != NULL});
}

node_id graph_get_attr(graph *g, const char *name, const char *target, const tensor_meta *meta)
{
    return graph_add(g, &(node_spec){.op = BP_NODE_GET_ATTR, .name = name, .target = target, .metas = meta,
                                     .nmetas = meta != NULL});
}

node_id graph_call(graph *g, const char *name, const char *target, const bp_value *args, uint32_t nargs,
                   const node_kwarg *kwargs, uint32_t nkwargs)
{
    return graph_add(g, &(node_spec){.op = BP_NODE_CALL_FUNCTION, .name = name, .target = target, .args = args,
                                     .nargs = nargs, .kwargs = kwargs, .nkwargs = nkwargs});
}

node_id graph_output(graph *g, const bp_value *values, uint32_t n)
{
    bp_value list = {BP_VALUE_LIST, n, {.items = values}};
    return graph_add(g, &(node_spec){.op = BP_NODE_OUTPUT, .target = "output", .args = &list, .nargs = 1});
}

bp_value graph_ref(node_id n)
{
    return (bp_value){BP_VALUE_NODE, 0, {.node = n}};
}

bp_value graph_list(graph *g, const bp_value *items, uint32_t n)
{
    bp_value *copy = NULL;
    if (g->failed || !copy_values(g, items, n, &copy, 1))
        n = 0;
    return (bp_value){BP_VALUE_LIST, n, {.items = copy}};
}

/* -- editing ------------------------------------------------------------------------------------------------------- */

void graph_set_metas(graph *g, node_id n, const tensor_meta *metas, uint32_t count)
{
    tensor_meta *copy;
    if (g->failed || !copy_metas(g, metas, count, &copy))
        return;
    g->nodes.at[n].metas = copy;
    g->nodes.at[n].nmetas = count;
    symbols_claim(g, n);
}

void graph_set_number(graph *g, node_id n, bp_dim number)
{
    g->nodes.at[n].number = number;
    symbols_claim(g, n);
}

void graph_set_site(graph *g, node_id n, const char *file, int32_t line)
{
    if (g->failed || !file)
        return;
    /* Neighbours come from one file nearly always: one copy serves them. */
    const char *before = g->nodes.at[n].prev ? g->nodes.at[g->nodes.at[n].prev].file : NULL;
    const char *copy = before && !strcmp(before, file) ? before : arena_strdup(&g->arena, file);
    if (!copy)
        fail_memory(g);
    g->nodes.at[n].file = copy;
    g->nodes.at[n].line = line;
}

void graph_set_args(graph *g, node_id n, const bp_value *args, uint32_t nargs)
{
    bp_value *copy;
    g->saw_symbol = g->nodes.at[n].symbolic && g->nodes.at[n].nkwargs; /* kwargs may hold one still */
    if (g->failed || !copy_values(g, args, nargs, &copy, 0))
        return;
    g->nodes.at[n].symbolic = g->saw_symbol;
    use u = {g, n};
    graph_each_input(g, n, drop_user, &u);
    g->nodes.at[n].args = copy;
    g->nodes.at[n].nargs = nargs;
    graph_each_input(g, n, add_user, &u);
}

void graph_erase(graph *g, node_id n)
{
    if (g->failed)
        return;
    if (!is_live(g, n) || g->nodes.at[n].users.len) {
        fail(g, "node %u cannot be erased: it is %s", n, is_live(g, n) ? "used" : "not in the graph");
        return;
    }
    graph_each_input(g, n, drop_user, &(use){g, n});
    graph_node *node = &g->nodes.at[n];
    map_get(&g->names, str_of(node->name))->u = 0; /* the name stays taken, as in torch.fx */
    *(node->prev ? &g->nodes.at[node->prev].next : &g->first) = node->next;
    *(node->next ? &g->nodes.at[node->next].prev : &g->last) = node->prev;
    vec_fini(&node->users);
    *node = (graph_node){0};
    g->live--;
}

void graph_move_before(graph *g, node_id n, node_id at)
{
    if (g->failed || n == at)
        return;
    graph_node *node = &g->nodes.at[n], *next = &g->nodes.at[at];
    *(node->prev ? &g->nodes.at[node->prev].next : &g->first) = node->next;
    *(node->next ? &g->nodes.at[node->next].prev : &g->last) = node->prev;
    node->prev = next->prev;
    node->next = at;
    *(next->prev ? &g->nodes.at[next->prev].next : &g->first) = n;
    next->prev = n;
}

typedef struct { node_id from, to; bool found; } renaming;

static void find_node(void *arg, node_id n)
{
    renaming *r = arg;
    r->found |= n == r->to;
}

/* A copy of v with `from` replaced; lists that hold none of it are shared. */
static bool rename_value(graph *g, bp_value *v, const renaming *r)
{
    if (v->kind == BP_VALUE_NODE && v->v.node == r->from)
        v->v.node = r->to;
    if (v->kind != BP_VALUE_LIST)
        return true;
    bp_value *items = arena_memdup(&g->arena, v->v.items, v->count * sizeof *items);
    if (!items)
        return fail_memory(g);
    v->v.items = items;
    for (uint32_t i = 0; i < v->count; i++)
        if (!rename_value(g, &items[i], r))
            return false;
    return true;
}

static bool rename_in_node(graph *g, node_id user, const renaming *r)
{
    graph_node *node = &g->nodes.at[user];
    for (uint32_t i = 0; i < node->nargs; i++)
        if (!rename_value(g, &node->args[i], r))
            return false;
    for (uint32_t i = 0; i < node->nkwargs; i++)
        if (!rename_value(g, &node->kwargs[i].value, r))
            return false;
    return true;
}

void graph_replace_uses(graph *g, node_id from, node_id to)
{
    if (g->failed || from == to)
        return;
    if (!is_live(g, from) || !is_live(g, to)) {
        fail(g, "uses of node %u cannot become uses of node %u: not both are in the graph", from, to);
        return;
    }
    graph_node *old = &g->nodes.at[from];
    for (uint32_t i = 0; i < old->users.len; i++) {
        renaming r = {from, to, false};
        node_id user = old->users.at[i];
        graph_each_input(g, user, find_node, &r); /* is it a user of `to` already? */
        if (!rename_in_node(g, user, &r))
            return;
        if (!r.found && !vec_push(&g->nodes.at[to].users, user)) {
            fail_memory(g);
            return;
        }
    }
    vec_clear(&old->users);
}

/* -- cloning ------------------------------------------------------------------------------------------------------- */

static bool clone_node(graph *to, node_id id, const graph_node *n)
{
    graph_node *copy = &to->nodes.at[id];
    node_spec s = {.op = n->op, .role = n->role, .target = n->target, .args = n->args, .kwargs = n->kwargs,
                   .metas = n->metas, .nargs = n->nargs, .nkwargs = n->nkwargs, .nmetas = n->nmetas,
                   .number = n->number};
    if (!n->op)
        return true;
    if (!fill_node(to, &s, copy))
        return false;
    copy->row = n->row;
    copy->name = arena_strdup(&to->arena, n->name);
    copy->file = n->file ? arena_strdup(&to->arena, n->file) : NULL;
    copy->line = n->line;
    copy->prev = n->prev;
    copy->next = n->next;
    return (copy->name && (copy->file || !n->file)) || fail_memory(to);
}

/* Opcodes first, so that every id that an argument may name is known to be live. */
static bool clone_nodes(const graph *from, graph *to)
{
    for (uint32_t i = 1; i < from->nodes.len; i++)
        if (!vec_push(&to->nodes, (graph_node){.op = from->nodes.at[i].op}))
            return fail_memory(to);
    for (uint32_t i = 1; i < from->nodes.len; i++)
        if (!clone_node(to, i, &from->nodes.at[i]))
            return false;
    return true;
}

static bool clone_map(const map *from, map *to)
{
    str key;
    map_value *v;
    for (uint32_t i = 0; map_next(from, &i, &key, &v);) {
        map_value *slot = map_put(to, key, &(bool){false});
        if (!slot)
            return false;
        *slot = *v;
    }
    return true;
}

static bool clone_users(const graph *from, graph *to)
{
    for (uint32_t i = 1; i < from->nodes.len; i++) {
        const graph_node *n = &from->nodes.at[i];
        if (!vec_reserve(&to->nodes.at[i].users, n->users.len))
            return fail_memory(to);
        if (n->users.len)
            memcpy(to->nodes.at[i].users.at, n->users.at, n->users.len * sizeof(node_id));
        to->nodes.at[i].users.len = n->users.len;
    }
    return true;
}

bp_status graph_clone(bp_ctx *c, const graph *from, graph *to)
{
    graph_init(to);
    TRY(graph_status(c, from));
    if (from->syms && !(to->syms = sym_env_clone(from->syms)))
        fail_memory(to);
    if (!to->failed && clone_nodes(from, to) &&
        !(clone_users(from, to) && clone_map(&from->names, &to->names) && clone_map(&from->name_next, &to->name_next)))
        fail_memory(to);
    to->first = from->first;
    to->last = from->last;
    to->live = from->live;
    bp_status s = graph_status(c, to);
    if (s)
        graph_fini(to);
    return s;
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

node_id graph_find(const graph *g, const char *name)
{
    const map_value *v = map_get(&g->names, str_of(name));
    return v ? (node_id)v->u : 0;
}

uint32_t graph_placeholders(const graph *g, node_id *out, uint32_t cap)
{
    uint32_t n = 0;
    for (node_id i = g->first; i; i = g->nodes.at[i].next)
        if (g->nodes.at[i].op == BP_NODE_PLACEHOLDER) {
            if (n < cap)
                out[n] = i;
            n++;
        }
    return n;
}

node_id graph_output_node(const graph *g)
{
    return g->last && g->nodes.at[g->last].op == BP_NODE_OUTPUT ? g->last : 0;
}

uint32_t graph_output_count(const graph *g)
{
    node_id out = graph_output_node(g);
    return out && graph_get(g, out)->nargs == 1 ? graph_get(g, out)->args[0].count : 0;
}

bool graph_is_builtin(const char *target, str *name)
{
    const char *prefix = "<built-in function ";
    str t = str_of(target);
    if (!str_starts(t, prefix) || t.s[t.n - 1] != '>')
        return false;
    *name = (str){t.s + strlen(prefix), t.n - strlen(prefix) - 1};
    return true;
}
