/* Content addresses: what makes two graphs the same program on the same kinds of inputs.
 *
 * In: opcodes, targets, arguments (nodes by position), roles, metadata of inputs and constants, the constants' data.
 * Out: names, places, options, metadata that follow from the rest. Every item is preceded by its kind or count, so that
 * no two different graphs give the same bytes. */
#include "host/graph/graph.h"
#include <string.h>

typedef struct {
    const bp_graph_module *gm;
    buf bytes;
    VEC(uint32_t) position; /* of each node id */
} hasher;

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

static void add_meta(hasher *h, const tensor_meta *m)
{
    add_u64(h, (uint64_t)m->dtype);
    add_u64(h, (uint64_t)m->device.kind << 32 | (uint32_t)m->device.index);
    add_u64(h, m->rank);
    for (uint32_t d = 0; d < m->rank; d++) {
        add_u64(h, (uint64_t)m->sizes[d].value);
        add_u64(h, (uint64_t)m->strides[d].value);
        add_u64(h, (uint64_t)m->sizes[d].sym << 32 | m->strides[d].sym);
    }
}

static void add_value(hasher *h, const bp_value *v)
{
    add_u64(h, v->kind);
    switch (v->kind) {
    case BP_VALUE_NODE: add_u64(h, h->position.at[v->v.node]); return;
    case BP_VALUE_INT:
        add_u64(h, (uint64_t)v->v.dim.value);
        add_u64(h, v->v.dim.sym);
        return;
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

static void add_constant(hasher *h, const graph_node *n)
{
    const bp_tensor *t = gm_constant(h->gm, n->name);
    tensor_meta m;
    add_u64(h, t != NULL);
    if (!t)
        return;
    tensor_get_meta(t, &m);
    add_meta(h, &m);
    if (!tensor_is_fake(t))
        buf_add(&h->bytes, tensor_ptr(t), tensor_span_bytes(t));
}

static void add_node(hasher *h, const graph_node *n)
{
    add_u64(h, (uint64_t)n->op);
    if (n->op == BP_NODE_PLACEHOLDER) {
        add_u64(h, (uint64_t)n->role);
        add_u64(h, n->nmetas);
        for (uint32_t i = 0; i < n->nmetas; i++)
            add_meta(h, &n->metas[i]);
        return;
    }
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

bp_status graph_hash(bp_ctx *c, const bp_graph_module *gm, hash128 *out)
{
    hasher h = {.gm = gm};
    uint32_t count = 0;
    if (!vec_reserve(&h.position, gm->g.nodes.len))
        return ctx_nomem(c);
    for (node_id n = gm->g.first; n; n = graph_get(&gm->g, n)->next) {
        h.position.at[n] = count++;
        add_node(&h, graph_get(&gm->g, n));
    }
    bool failed = h.bytes.failed;
    if (!failed)
        *out = hash128_bytes(buf_text(&h.bytes), h.bytes.n);
    buf_fini(&h.bytes);
    vec_fini(&h.position);
    return failed ? ctx_nomem(c) : BP_OK;
}
