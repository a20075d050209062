/* Content addresses: what makes two graphs the same program on the same kinds of inputs.
 *
 * In: opcodes, targets, arguments (nodes by position, inputs by their first use), roles, metadata of inputs and
 * constants, the constants' data. Out: names, places, options, the order of placeholders, metadata that follow from the
 * rest. Symbols are numbered by first mention, in an environment of the address's own, so that their names, their
 * hints and the history of the graph's environment do not matter; bounds and facts do. Every item is preceded
 * by its kind or count, so that no two different graphs give the same bytes. */
#include "host/graph/graph.h"
#include <stdio.h>
#include <string.h>

typedef struct {
    bp_ctx *c;
    const bp_graph_module *gm;
    sym_env *syms;          /* the address's own; NULL: no symbol was met yet */
    VEC(bp_dim) map;        /* of each symbol of the graph: in syms */
    buf bytes;
    VEC(uint64_t) position; /* of each node id */
    VEC(node_id) inputs;    /* placeholders, by first use */
    bool failed;
} hasher;

typedef struct { hasher *h; bool any; } unmet; /* a symbol that no node mentions */

/* What is no node's position: inputs are numbered from here. */
#define INPUTS_FROM (1ull << 32)
#define UNUSED UINT64_MAX

static void add_u64(hasher *h, uint64_t v)
{
    buf_add(&h->bytes, (const char *)&v, sizeof v);
}

static void add_text(hasher *h, const char *s)
{
    size_t n = strlen(s);
    add_u64(h, n);
    buf_add(&h->bytes, s, n);
}

static void add_double(hasher *h, double f)
{
    uint64_t bits;
    memcpy(&bits, &f, sizeof bits);
    add_u64(h, bits);
}

/* -- symbols ------------------------------------------------------------------------------------------------------- */

static void number_symbol(void *arg, uint32_t k)
{
    hasher *h = arg;
    char name[16];
    if (h->failed || !h->map.at[k].zero)
        return;
    sym_symbol s = *sym_symbol_at(h->gm->g.syms, k);
    snprintf(name, sizeof name, "s%u", sym_symbol_count(h->syms));
    s.name = name;
    s.of = NULL;
    s.source = (sym_source){.at = SYM_NO_SOURCE};
    h->map.at[k] = sym_add_symbol(h->syms, h->c, &s);
    h->failed |= h->map.at[k].sym == 0;
}

static bool start_symbols(hasher *h)
{
    uint32_t n = sym_symbol_count(h->gm->g.syms);
    if (h->syms || !(h->syms = sym_env_new()) || !vec_reserve(&h->map, n))
        return h->syms != NULL && h->map.len == n;
    while (h->map.len < n)
        h->map.at[h->map.len++] = GRAPH_UNMAPPED;
    return true;
}

/* An expression, by numbers of symbols. */
static void add_expression(hasher *h, bp_dim d)
{
    buf text = {0};
    if (h->failed || !start_symbols(h)) {
        h->failed = true;
        return;
    }
    sym_each_symbol(h->gm->g.syms, d, number_symbol, h);
    bp_dim own = h->failed ? d : sym_import(h->syms, h->c, h->gm->g.syms, d, h->map.at);
    h->failed |= !ctx_ok(h->c);
    if (!h->failed)
        sym_print(h->syms, own, false, &text);
    h->failed |= text.failed;
    add_text(h, buf_text(&text));
    buf_fini(&text);
}

/* A constant takes two numbers, of which the second is 0. */
static void add_dim(hasher *h, bp_dim d)
{
    add_u64(h, d.sym ? 1 : (uint64_t)d.value);
    add_u64(h, d.sym != 0);
    if (d.sym)
        add_expression(h, d);
}

static void add_symbol(hasher *h, const sym_symbol *s)
{
    add_u64(h, (uint64_t)s->min);
    add_u64(h, (uint64_t)s->max);
    add_u64(h, s->unbacked);
    bool known = s->source.at < h->position.len;
    add_u64(h, known ? h->position.at[s->source.at] : UINT64_MAX);
    add_u64(h, (uint64_t)s->source.result << 16 | (uint64_t)s->source.kind << 8 | s->source.dim);
}

static void note_unmet(void *arg, uint32_t k)
{
    hasher *h = ((unmet *)arg)->h;
    ((unmet *)arg)->any |= h->map.at[k].zero != 0;
}

/* What is known of the symbols that were met; a fact over others says nothing of this program. */
static void add_symbols(hasher *h)
{
    const sym_env *e = h->gm->g.syms;
    for (uint32_t i = 0; i < sym_symbol_count(h->syms); i++)
        for (uint32_t k = 0; k < h->map.len; k++)
            if (dim_same(h->map.at[k], sym_dim_of(h->syms, i)))
                add_symbol(h, sym_symbol_at(e, k));
    for (uint32_t i = 0; i < sym_fact_count(e); i++) {
        const sym_fact *f = sym_fact_at(e, i);
        unmet u = {h, false};
        sym_each_symbol(e, f->holds, note_unmet, &u);
        if (u.any)
            continue;
        add_u64(h, f->origin);
        add_expression(h, f->holds);
    }
}

static void add_symbolic_meta(hasher *h, const tensor_meta *m)
{
    add_u64(h, UINT64_MAX);
    for (uint32_t d = 0; d < m->rank; d++) {
        add_dim(h, m->sizes[d]);
        add_dim(h, m->strides[d]);
    }
}

static void add_meta(hasher *h, const tensor_meta *m)
{
    add_u64(h, (uint64_t)m->dtype);
    add_u64(h, (uint64_t)m->device.kind << 32 | (uint32_t)m->device.index);
    add_u64(h, m->rank);
    if (!meta_is_constant(m)) {
        add_symbolic_meta(h, m);
        return;
    }
    for (uint32_t d = 0; d < m->rank; d++) {
        add_u64(h, (uint64_t)m->sizes[d].value);
        add_u64(h, (uint64_t)m->strides[d].value);
        add_u64(h, 0);
    }
}

static void number_input(hasher *h, node_id n)
{
    h->position.at[n] = INPUTS_FROM + h->inputs.len;
    h->failed |= !vec_push(&h->inputs, n);
}

static void add_ref(hasher *h, node_id n)
{
    if (h->position.at[n] == UNUSED)
        number_input(h, n);
    add_u64(h, h->position.at[n]);
}

static void add_value(hasher *h, const bp_value *v)
{
    add_u64(h, v->kind);
    switch (v->kind) {
    case BP_VALUE_NODE: add_ref(h, v->v.node); return;
    case BP_VALUE_INT: add_dim(h, v->v.dim); return;
    case BP_VALUE_FLOAT: add_double(h, v->v.f[0]); return;
    case BP_VALUE_COMPLEX:
        add_double(h, v->v.f[0]);
        add_double(h, v->v.f[1]);
        return;
    case BP_VALUE_STRING: add_text(h, v->v.str); return;
    case BP_VALUE_DEVICE: add_u64(h, (uint64_t)v->v.device.kind << 32 | (uint32_t)v->v.device.index); return;
    case BP_VALUE_LIST:
        add_u64(h, v->count);
        for (uint32_t i = 0; i < v->count; i++)
            add_value(h, &v->v.items[i]);
        return;
    case BP_VALUE_NONE: return;
    default: add_u64(h, (uint64_t)v->v.i); return;
    }
}

static void add_sub(hasher *h, const bp_graph_module *sub)
{
    hash128 address = {0};
    h->failed |= graph_address(h->c, sub, &address) != BP_OK;
    buf_add(&h->bytes, (const char *)&address, sizeof address);
}

static void add_constant(hasher *h, const graph_node *n)
{
    const bp_tensor *t = gm_constant(h->gm, n->name);
    const bp_graph_module *sub = gm_sub(h->gm, n->name);
    tensor_meta m;
    add_u64(h, sub ? 2 : t != NULL);
    if (sub)
        add_sub(h, sub);
    if (!t)
        return;
    tensor_get_meta(t, &m);
    add_meta(h, &m);
    if (!tensor_is_fake(t))
        buf_add(&h->bytes, tensor_ptr(t), tensor_span_bytes(t));
}

static void add_input(hasher *h, const graph_node *n)
{
    add_u64(h, (uint64_t)n->op);
    add_u64(h, (uint64_t)n->role);
    add_u64(h, n->nmetas);
    for (uint32_t i = 0; i < n->nmetas; i++)
        add_meta(h, &n->metas[i]);
    if (n->number.sym)
        add_dim(h, n->number);
}

static void add_node(hasher *h, const graph_node *n)
{
    add_u64(h, (uint64_t)n->op);
    if (n->op == BP_NODE_GET_ATTR) {
        add_constant(h, n);
        return;
    }
    add_text(h, n->target);
    add_u64(h, n->nargs);
    for (uint32_t i = 0; i < n->nargs; i++)
        add_value(h, &n->args[i]);
    add_u64(h, n->nkwargs);
    for (uint32_t i = 0; i < n->nkwargs; i++) {
        add_text(h, n->kwargs[i].name);
        add_value(h, &n->kwargs[i].value);
    }
}

static void add_nodes(hasher *h)
{
    const graph *g = &h->gm->g;
    uint32_t count = 0;
    for (node_id n = g->first; n; n = graph_get(g, n)->next)
        h->position.at[n] = graph_get(g, n)->op == BP_NODE_PLACEHOLDER ? UNUSED : count++;
    for (node_id n = g->first; n; n = graph_get(g, n)->next)
        if (h->position.at[n] < INPUTS_FROM)
            add_node(h, graph_get(g, n));
    for (node_id n = g->first; n; n = graph_get(g, n)->next)
        if (h->position.at[n] == UNUSED)
            number_input(h, n);
    for (uint32_t i = 0; i < h->inputs.len && !h->failed; i++)
        add_input(h, graph_get(g, h->inputs.at[i]));
    if (h->syms && !h->failed)
        add_symbols(h);
}

static void give_order(const hasher *h, uint32_t *order)
{
    const graph *g = &h->gm->g;
    uint32_t i = 0;
    for (node_id n = g->first; n; n = graph_get(g, n)->next)
        if (h->position.at[n] >= INPUTS_FROM)
            order[h->position.at[n] - INPUTS_FROM] = i++;
}

bp_status graph_hash(bp_ctx *c, const bp_graph_module *gm, uint32_t *order, hash128 *out)
{
    hasher h = {.c = c, .gm = gm};
    if (!vec_reserve(&h.position, gm->g.nodes.len))
        return ctx_nomem(c);
    h.position.len = gm->g.nodes.len;
    add_nodes(&h);
    bool failed = h.failed || h.bytes.failed;
    if (!failed)
        *out = hash128_bytes(buf_text(&h.bytes), h.bytes.n);
    if (!failed && order)
        give_order(&h, order);
    buf_fini(&h.bytes);
    vec_fini(&h.position);
    vec_fini(&h.inputs);
    vec_fini(&h.map);
    sym_env_unref(h.syms);
    return failed ? ctx_nomem(c) : BP_OK;
}

bp_status graph_address(bp_ctx *c, const bp_graph_module *gm, hash128 *out)
{
    uint32_t n = graph_placeholders(&gm->g, NULL, 0);
    hash128 structure;
    uint32_t *order = calloc(n + 1u, sizeof *order);
    buf bytes = {0};
    bp_status st = order ? graph_hash(c, gm, order, &structure) : ctx_nomem(c);
    if (st == BP_OK) {
        buf_add(&bytes, (const char *)&structure, sizeof structure);
        buf_add(&bytes, (const char *)order, n * sizeof *order);
        st = bytes.failed ? ctx_nomem(c) : BP_OK;
    }
    if (st == BP_OK)
        *out = hash128_bytes(bytes.s, bytes.n);
    buf_fini(&bytes);
    free(order);
    return st;
}
