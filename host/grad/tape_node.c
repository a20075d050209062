/* Nodes: memory, counting, and what a tensor knows of its history.
 *
 * A node's memory is a chain of small chunks. Nodes die by a list, not by recursion: a chain of a million of them takes
 * no more stack than one. A leaf knows its accumulator without holding it; a lock stands between a thread that looks it
 * up and one that drops the last reference. */
#include "host/grad/custom.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 512 };
struct node_chunk { node_chunk *next; size_t used, cap; max_align_t at[]; };

static pthread_mutex_t leaves = PTHREAD_MUTEX_INITIALIZER;
static atomic_ullong last_number;

void tape_lock(void)
{
    pthread_mutex_lock(&leaves);
}

void tape_unlock(void)
{
    pthread_mutex_unlock(&leaves);
}

/* -- memory -------------------------------------------------------------------------------------------------------- */

void *tape_node_alloc(bp_ctx *c, tape_node *n, size_t nbytes)
{
    nbytes = (nbytes + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
    node_chunk *m = n->memory;
    if (!m || m->cap - m->used < nbytes) {
        size_t cap = nbytes > CHUNK ? nbytes : CHUNK;
        if (!(m = malloc(sizeof *m + cap))) {
            ctx_nomem(c);
            return NULL;
        }
        *m = (node_chunk){.next = n->memory, .cap = cap};
        n->memory = m;
    }
    void *p = (char *)m->at + m->used;
    m->used += nbytes;
    memset(p, 0, nbytes);
    return p;
}

bool tape_node_meta_copy(bp_ctx *c, tape_node *n, const tensor_meta *m, tensor_meta *out)
{
    *out = *m;
    if (!m->rank) {
        out->sizes = out->strides = NULL;
        return true;
    }
    if (!(out->sizes = tape_node_alloc(c, n, 2 * m->rank * sizeof *m->sizes)))
        return false;
    out->strides = out->sizes + m->rank;
    memcpy(out->sizes, m->sizes, m->rank * sizeof *m->sizes);
    memcpy(out->strides, m->strides, m->rank * sizeof *m->strides);
    return true;
}

bool tape_node_meta(bp_ctx *c, tape_node *n, const bp_tensor *t, tensor_meta *out)
{
    tensor_meta m;
    tensor_get_meta(t, &m);
    return tape_node_meta_copy(c, n, &m, out);
}

tape_node *tape_node_new(bp_ctx *c, enum node_kind kind, uint32_t ninputs, uint32_t nresults)
{
    tape_node *n = calloc(1, sizeof *n);
    if (!n) {
        ctx_nomem(c);
        return NULL;
    }
    atomic_init(&n->refs, 1);
    n->kind = (uint8_t)kind;
    n->file = c->site_file;
    n->line = c->site_line;
    n->edges = tape_node_alloc(c, n, ninputs * sizeof *n->edges);
    n->results = n->edges ? tape_node_alloc(c, n, nresults * sizeof *n->results) : NULL;
    if (!n->results) {
        tape_node_unref(n);
        return NULL;
    }
    n->ninputs = ninputs;
    n->nresults = nresults;
    return n;
}

void tape_node_number(tape_node *n)
{
    n->seq = atomic_fetch_add_explicit(&last_number, 1, memory_order_relaxed) + 1;
}

/* -- counting ------------------------------------------------------------------------------------------------------ */

tape_node *tape_node_ref(tape_node *n)
{
    if (n)
        atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
    return n;
}

static void drop_saved(saved *s)
{
    tensor_unref(s->t);
    s->t = NULL;
}

void tape_node_free_saved(tape_node *n)
{
    for (uint32_t i = 0; n->kind == NODE_OP && n->u.call.saved && i < n->ninputs; i++)
        drop_saved(&n->u.call.saved[i]);
    for (uint32_t i = 0; i < n->nresults; i++)
        drop_saved(&n->results[i]);
    if (n->kind == NODE_OP)
        custom_saved_drop(n->u.call.own);
    if (n->kind == NODE_SCATTER && n->u.view.inner)
        tape_node_free_saved(n->u.view.inner);
    if (n->kind == NODE_FN && !n->freed && n->u.own.fn->release)
        n->u.own.fn->release(n->u.own.state);
    n->freed = 1;
}

static void forget_leaf(tape_node *n)
{
    bp_tensor *t = n->u.leaf.leaf;
    tape_lock();
    tape_meta *m = t ? tape_meta_get(t) : NULL;
    if (m && m->accumulator == n)
        m->accumulator = NULL;
    tape_unlock();
    tensor_unref(t);
}

static void hooks_fini(tape_hooks *hooks)
{
    for (uint32_t i = 0; i < hooks->len; i++)
        if (hooks->at[i].destroy)
            hooks->at[i].destroy(hooks->at[i].arg);
    vec_fini(hooks);
}

static void destroy(tape_node *n)
{
    for (uint32_t i = 0; i < n->ninputs; i++)
        tape_node_unref(n->edges[i].node);
    for (uint32_t i = 0; n->kind == NODE_OP && n->u.call.saved && i < n->ninputs; i++)
        drop_saved(&n->u.call.saved[i]);
    for (uint32_t i = 0; i < n->nresults; i++)
        drop_saved(&n->results[i]);
    hooks_fini(&n->hooks);
    if (n->kind == NODE_OP)
        custom_saved_free(n->u.call.own);
    if (n->kind == NODE_FN && n->u.own.fn && n->u.own.fn->destroy)
        n->u.own.fn->destroy(n->u.own.state);
    if (n->kind == NODE_LEAF)
        forget_leaf(n);
    if (n->kind == NODE_SCATTER)
        tape_node_unref(n->u.view.inner);
    for (node_chunk *m = n->memory, *next; m; m = next) {
        next = m->next;
        free(m);
    }
    free(n);
}

/* What dies while another one is destroyed waits for its turn. */
void tape_node_unref(tape_node *n)
{
    static _Thread_local tape_node *dead;
    static _Thread_local bool at_work;
    if (!n || atomic_fetch_sub_explicit(&n->refs, 1, memory_order_acq_rel) != 1)
        return;
    n->next_dead = dead;
    dead = n;
    if (at_work)
        return;
    at_work = true;
    while (dead) {
        tape_node *next = dead;
        dead = next->next_dead;
        destroy(next);
    }
    at_work = false;
}

/* -- what tensors know --------------------------------------------------------------------------------------------- */

static void meta_destroy(void *grad)
{
    tape_meta *m = grad;
    tape_node_unref(m->node);
    tensor_unref(m->grad);
    hooks_fini(&m->hooks);
    free(m);
}

tape_meta *tape_meta_of(bp_ctx *c, bp_tensor *t)
{
    tape_meta *m = tape_meta_get(t);
    if (m)
        return m;
    if (!(m = calloc(1, sizeof *m))) {
        ctx_nomem(c);
        return NULL;
    }
    t->grad = m;
    t->grad_destroy = meta_destroy;
    return m;
}

bp_status tape_set_node(bp_ctx *c, bp_tensor *t, tape_node *n, uint32_t index)
{
    tape_meta *m = tape_meta_of(c, t);
    if (!m)
        return c->diag.code;
    tape_node *former = m->node;
    m->node = tape_node_ref(n);
    m->index = index;
    m->version = tape_version(t);
    t->flags = (uint8_t)((t->flags & ~TENSOR_IS_LEAF) | TENSOR_REQUIRES_GRAD);
    tape_node_unref(former);
    return BP_OK;
}

bp_status tape_forget(bp_tensor *t)
{
    tape_meta *m = tape_meta_get(t);
    if (!m || !m->node)
        return BP_OK;
    tape_node_unref(m->node);
    m->node = NULL;
    return BP_OK;
}

/* The accumulator of a leaf that requires grad: one reference. A new one where the last is gone, or about to go. */
static tape_node *accumulator_of(bp_ctx *c, bp_tensor *t)
{
    tape_lock();
    tape_meta *m = tape_meta_of(c, t);
    tape_node *n = m ? m->accumulator : NULL;
    unsigned refs = n ? atomic_load(&n->refs) : 0;
    while (refs && !atomic_compare_exchange_weak(&n->refs, &refs, refs + 1))
        ;
    tape_unlock();
    if (refs || !m)
        return refs ? n : NULL;
    if (!(n = tape_node_new(c, NODE_LEAF, 0, 1)))
        return NULL;
    n->label = "a leaf";
    n->file = NULL;
    n->u.leaf.leaf = tensor_ref(t);
    if (!tape_node_meta(c, n, t, &n->results[0].meta)) {
        tape_node_unref(n);
        return NULL;
    }
    tape_node_number(n);
    tape_lock();
    m->accumulator = n;
    tape_unlock();
    return n;
}

/* The history of a tensor that requires grad, and nobody made under a tape. */
static tape_node *unknown_maker(bp_ctx *c, bp_tensor *t)
{
    tape_node *n = tape_node_new(c, NODE_FAIL, 0, 1);
    if (!n)
        return NULL;
    n->label = "an operation that was not recorded";
    tape_node_number(n);
    if (!tape_node_meta(c, n, t, &n->results[0].meta) || tape_set_node(c, t, n, 0) != BP_OK) {
        tape_node_unref(n);
        return NULL;
    }
    return n;
}

tape_edge tape_edge_of(bp_ctx *c, bp_tensor *t)
{
    if (view_refresh(c, t) != BP_OK || !tape_requires(t))
        return (tape_edge){NULL, 0};
    if (t->flags & TENSOR_IS_LEAF)
        return (tape_edge){accumulator_of(c, t), 0};
    tape_meta *m = tape_meta_get(t);
    if (m && m->node)
        return (tape_edge){tape_node_ref(m->node), m->index};
    return (tape_edge){unknown_maker(c, t), 0};
}

bool tape_is_alone(const bp_tensor *t)
{
    const bp_tensor *b = t->base;
    return atomic_load(&t->refs) == 1 && atomic_load(&t->store->refs) == (b ? 2 : 1) &&
           (!b || atomic_load(&b->refs) == 1);
}

void tape_edge_drop(tape_edge e)
{
    tape_node_unref(e.node);
}

bp_tensor *tape_grad_of(bp_tensor *t)
{
    tape_lock();
    tape_meta *m = tape_meta_get(t);
    bp_tensor *grad = m && m->grad ? tensor_ref(m->grad) : NULL;
    tape_unlock();
    return grad;
}
