/* Where gradients end: hooks, and `.grad` of leaves.
 *
 * A leaf's first gradient becomes its `.grad` as it is where nobody else can see it and it is laid out as the leaf is;
 * later ones are added in place, as PyTorch does, unless the sum is to be differentiated. Leaves may be shared between
 * threads, which add one after another. */
#include "host/grad/tape_node.h"
#include "host/op/rows.h"
#include <backplane/backplane.h>
#include <pthread.h>
#include <string.h>

/* -- hooks --------------------------------------------------------------------------------------------------------- */

static tape_hooks *hooks_of(tape_node *n)
{
    if (n->kind != NODE_LEAF)
        return &n->hooks;
    tape_meta *m = tape_meta_get(n->u.leaf.leaf);
    return m ? &m->hooks : NULL;
}

/* A copy of those that are to run, so that a hook may add and remove hooks. */
static uint32_t pick(tape_node *n, uint32_t index, bool behind, tape_hook **out)
{
    uint32_t count = 0;
    *out = NULL;
    tape_lock();
    const tape_hooks *all = hooks_of(n);
    if (all && all->len)
        *out = malloc(all->len * sizeof **out);
    for (uint32_t i = 0; *out && i < all->len; i++)
        if (all->at[i].index == index && (behind ? all->at[i].behind != NULL : all->at[i].on_grad != NULL))
            (*out)[count++] = all->at[i];
    tape_unlock();
    return count;
}

static bp_status check_replaced(bp_ctx *c, const bp_tensor *was, const bp_tensor *now)
{
    char a[160], b[160];
    bool same = was->rank == now->rank && was->dtype == now->dtype;
    for (uint32_t d = 0; same && d < was->rank; d++)
        same = dim_eq(was->sizes[d], now->sizes[d]);
    return same ? BP_OK : ctx_fail(c, BP_INVALID_ARGUMENT, "a hook replaced a gradient of %s by one of %s",
                                   tensor_describe(was, a, sizeof a), tensor_describe(now, b, sizeof b));
}

bp_status hooks_run(bp_ctx *c, tape_node *n, uint32_t index, bp_tensor **grad)
{
    tape_hook *hooks;
    uint32_t count = pick(n, index, false, &hooks);
    for (uint32_t i = 0; i < count && ctx_ok(c); i++) {
        scope_push(c);
        bp_tensor *t = hooks[i].on_grad(c, *grad, hooks[i].arg);
        if (t && t != *grad && check_replaced(c, *grad, t) == BP_OK) {
            tensor_ref(t);
            tensor_unref(*grad);
            *grad = t;
        }
        scope_pop(c);
    }
    free(hooks);
    return c->diag.code;
}

static bp_status run_behind(bp_ctx *c, tape_node *n)
{
    tape_hook *hooks;
    uint32_t count = pick(n, 0, true, &hooks);
    for (uint32_t i = 0; i < count && ctx_ok(c); i++) {
        scope_push(c);
        hooks[i].behind(c, n->u.leaf.leaf, hooks[i].arg);
        scope_pop(c);
    }
    free(hooks);
    return c->diag.code;
}

uint64_t hook_add(bp_ctx *c, bp_tensor *t, tape_hook h)
{
    static atomic_ullong last;
    bool leaf = t->flags & TENSOR_IS_LEAF;
    tape_edge e = leaf ? (tape_edge){NULL, 0} : tape_edge_of(c, t);
    h.id = atomic_fetch_add(&last, 1) + 1;
    h.index = e.index;
    tape_lock();
    tape_meta *m = leaf ? tape_meta_of(c, t) : NULL;
    tape_hooks *all = m ? &m->hooks : e.node ? &e.node->hooks : NULL;
    bool ok = all && vec_push(all, h);
    tape_unlock();
    tape_edge_drop(e);
    if (!ok)
        ctx_nomem(c);
    return ok ? h.id : 0;
}

static bool take_out(tape_hooks *all, uint64_t id, tape_hook *out)
{
    for (uint32_t i = 0; i < all->len; i++) {
        if (all->at[i].id != id)
            continue;
        *out = all->at[i];
        memmove(&all->at[i], &all->at[i + 1], (--all->len - i) * sizeof *all->at);
        return true;
    }
    return false;
}

bool hook_remove(bp_tensor *t, uint64_t id)
{
    tape_hook h = {0};
    tape_lock();
    tape_meta *m = tape_meta_get(t);
    bool found = m && (take_out(&m->hooks, id, &h) || (m->node && take_out(&m->node->hooks, id, &h)));
    tape_unlock();
    if (found && h.destroy)
        h.destroy(h.arg);
    return found;
}

/* -- accumulation -------------------------------------------------------------------------------------------------- */

static bool laid_out_like(const bp_tensor *g, const bp_tensor *leaf)
{
    if (!tensor_is_dense(leaf))
        return tensor_is_contiguous(g);
    for (uint32_t d = 0; d < g->rank; d++)
        if (!dim_eq(g->sizes[d], leaf->sizes[d]) ||
            (!dim_is(g->sizes[d], 1) && !dim_eq(g->strides[d], leaf->strides[d])))
            return false;
    return true;
}

/* A copy that is laid out as the leaf is. */
static bp_tensor *own_copy(bp_ctx *c, bp_tensor *g, const bp_tensor *leaf)
{
    if (laid_out_like(g, leaf))
        return bp_aten_clone_default(c, g, 0);
    if (!tensor_is_dense(leaf))
        return bp_aten_clone_default(c, g, BP_CONTIGUOUS);
    bp_dims sizes = {leaf->sizes, leaf->rank, 1}, strides = {leaf->strides, leaf->rank, 1};
    bp_tensor *room = bp_aten_new_empty_strided_default(c, g, sizes, strides, 0, 0, (bp_device){0}, (bp_scalar){0});
    return room ? bp_aten_copy_default(c, room, g, 0) : NULL;
}

static bp_tensor *first(bp_ctx *c, bp_tensor *g, const bp_tensor *leaf, bool create)
{
    bool take = !create && tape_is_alone(g) && laid_out_like(g, leaf);
    bp_tensor *t = take ? g : own_copy(c, g, leaf);
    return t ? tensor_ref(t) : NULL;
}

static bp_tensor *sum(bp_ctx *c, bp_tensor *have, bp_tensor *g, bool create)
{
    bool in_place = !create && !tensor_is_fake(have) && !tensor_is_fake(g) && !tape_requires(have);
    bp_tensor *t = in_place ? bp_aten_add_inplace_tensor(c, have, g, (bp_scalar){0})
                            : bp_aten_add_tensor(c, have, g, (bp_scalar){0});
    return t ? tensor_ref(t) : NULL;
}

static void put(bp_tensor *leaf, bp_tensor *now)
{
    tape_lock();
    tape_meta *m = tape_meta_get(leaf);
    bp_tensor *was = m->grad;
    m->grad = now;
    tape_unlock();
    tensor_unref(was);
}

static bp_status add_to(bp_ctx *c, bp_tensor *leaf, bp_tensor *g, bool create)
{
    bp_tensor *have = tape_grad_of(leaf);
    scope_push(c);
    bp_tensor *now = have ? sum(c, have, g, create) : first(c, g, leaf, create);
    scope_pop(c);
    if (now && now != have)
        put(leaf, now);
    else
        tensor_unref(now);
    tensor_unref(have);
    return now ? BP_OK : ctx_ok(c) ? ctx_nomem(c) : c->diag.code;
}

bp_status leaf_accumulate(bp_ctx *c, tape_node *n, bp_tensor *grad, bool create)
{
    static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&adding);
    bp_status st = add_to(c, n->u.leaf.leaf, grad, create);
    pthread_mutex_unlock(&adding);
    return st == BP_OK ? run_behind(c, n) : st;
}
