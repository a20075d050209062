/* Scopes: a stack a context, with a root that lives as long as the context. A scope holds a reference to each tensor on
 * its list; the list runs through the tensors, so owning one costs no memory. A tensor that somebody else holds too (a
 * module's parameter that an operator gave back as it is) may be in use by other threads: it is not written to, and
 * stands in the scope's array of shared tensors instead. */
#include "host/tensor/tensor.h"
#include "sdk/base/vec.h"
#include <stdlib.h>

typedef struct scope {
    struct scope *below;
    bp_ctx *ctx;
    bp_tensor *first;
    VEC(bp_tensor *) shared;
    uint32_t depth;
    uint32_t lost; /* pushes on top of this scope that found no memory: their pops do nothing */
} scope;

static void unlink_tensor(bp_tensor *t)
{
    if (t->scope_prev)
        t->scope_prev->scope_next = t->scope_next;
    else
        t->scope->first = t->scope_next;
    if (t->scope_next)
        t->scope_next->scope_prev = t->scope_prev;
    t->scope = NULL;
    t->scope_prev = t->scope_next = NULL;
}

static void drop(scope *s)
{
    while (s->first) {
        bp_tensor *t = s->first;
        unlink_tensor(t);
        tensor_unref(t);
    }
    while (s->shared.len)
        tensor_unref(vec_pop(&s->shared));
    vec_fini(&s->shared);
    free(s);
}

static void drop_all(bp_ctx *c, void *slot)
{
    (void)c;
    for (scope *s = slot, *below; s; s = below) {
        below = s->below;
        drop(s);
    }
}

static scope *add(bp_ctx *c)
{
    scope *top = c->slot[CTX_TENSOR], *s = calloc(1, sizeof *s);
    if (!s) {
        ctx_nomem(c);
        return NULL;
    }
    s->below = top;
    s->ctx = c;
    s->depth = top ? top->depth + 1 : 0;
    c->slot[CTX_TENSOR] = s;
    c->slot_destroy[CTX_TENSOR] = drop_all;
    return s;
}

/* The innermost scope, the root if there is no other. */
static scope *innermost(bp_ctx *c)
{
    return c->slot[CTX_TENSOR] ? c->slot[CTX_TENSOR] : add(c);
}

static void link_tensor(scope *s, bp_tensor *t)
{
    t->scope = s;
    t->scope_next = s->first;
    if (s->first)
        s->first->scope_prev = t;
    s->first = t;
}

bp_tensor *scope_own(bp_ctx *c, bp_tensor *t)
{
    if (!t)
        return NULL;
    scope *s = innermost(c);
    bool sole = atomic_load_explicit(&t->refs, memory_order_acquire) == 1;
    if (s && sole && !t->scope) {
        link_tensor(s, t);
        return t;
    }
    if (t->scope && t->scope->ctx == c) { /* this scope or an outer one holds it already */
        tensor_unref(t);
        return t;
    }
    if (s && vec_push(&s->shared, t))
        return t;
    ctx_nomem(c);
    tensor_unref(t);
    return NULL;
}

void scope_push(bp_ctx *c)
{
    scope *top = innermost(c);
    if (top && (top->lost || !add(c)))
        top->lost++;
}

void scope_pop(bp_ctx *c)
{
    scope *top = c->slot[CTX_TENSOR];
    if (top && top->lost) {
        top->lost--;
    } else if (top && top->below) {
        c->slot[CTX_TENSOR] = top->below;
        drop(top);
    } else {
        ctx_fail(c, BP_FAILED_PRECONDITION, "a scope ends that was never begun");
    }
}

uint32_t scope_depth(const bp_ctx *c)
{
    const scope *top = c->slot[CTX_TENSOR];
    return top ? top->depth : 0;
}

bp_tensor *scope_keep(bp_ctx *c, bp_tensor *t)
{
    if (!t)
        return NULL;
    if (t->scope && t->scope->ctx == c)
        unlink_tensor(t); /* the scope's reference becomes the caller's */
    else
        tensor_ref(t);
    return t;
}

void scope_forget(bp_tensor *t)
{
    if (t->scope)
        unlink_tensor(t);
}
