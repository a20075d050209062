/* The public functions of gradients, and a context with a tape. Under capture they are UNIMPLEMENTED, which answers the
 * call eagerly, with that reason: backward is a part of no graph. */
#include "host/grad/tape_node.h"
#include <backplane/backplane.h>

bp_ctx *bp_ctx_new(bp_runtime *rt)
{
    bp_ctx *c = ctx_new(rt);
    if (c)
        tape_attach(c);
    return c;
}

static bp_status may_go_on(bp_ctx *c, const char *what, const bp_tensor *t)
{
    if (!ctx_ok(c))
        return c->diag.code;
    if (!t)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "%s: the tensor is NULL", what);
    if (c->capturing)
        return ctx_fail(c, BP_UNIMPLEMENTED, "%s is called while a function is captured", what);
    return BP_OK;
}

static uint32_t flags_of(uint32_t flags)
{
    return (flags & BP_RETAIN_GRAPH ? TAPE_RETAIN : 0) | (flags & BP_CREATE_GRAPH ? TAPE_CREATE : 0) |
           (flags & BP_ALLOW_UNUSED ? TAPE_ALLOW_UNUSED : 0);
}

bp_status bp_backward(bp_ctx *c, bp_tensor *t, bp_tensor *grad, uint32_t flags)
{
    return bp_backward_all(c, &t, grad ? &grad : NULL, 1, flags);
}

bp_status bp_backward_all(bp_ctx *c, bp_tensor *const *tensors, bp_tensor *const *grads, uint32_t n, uint32_t flags)
{
    for (uint32_t i = 0; i < n; i++)
        TRY(may_go_on(c, "backward", tensors[i]));
    return tape_backward(c, tensors, grads, n, NULL, NULL, 0, flags_of(flags));
}

bp_status bp_grad(bp_ctx *c, bp_tensor *const *outputs, bp_tensor *const *grads, uint32_t noutputs,
                  bp_tensor *const *inputs, uint32_t ninputs, bp_tensor **out, uint32_t flags)
{
    for (uint32_t i = 0; i < ninputs; i++)
        out[i] = NULL;
    for (uint32_t i = 0; i < noutputs; i++)
        TRY(may_go_on(c, "grad", outputs[i]));
    TRY(tape_backward(c, outputs, grads, noutputs, inputs, out, ninputs, flags_of(flags)));
    for (uint32_t i = 0; i < ninputs; i++)
        out[i] = scope_own(c, out[i]);
    return c->diag.code;
}

bp_tensor *bp_tensor_grad(bp_ctx *c, bp_tensor *t)
{
    return may_go_on(c, "a tensor's grad", t) == BP_OK ? scope_own(c, tape_grad_of(t)) : NULL;
}

static bp_status check_grad(bp_ctx *c, const bp_tensor *t, const bp_tensor *grad)
{
    char a[160], b[160];
    if (!grad)
        return BP_OK;
    bool same = t->rank == grad->rank && t->dtype == grad->dtype && t != grad;
    for (uint32_t d = 0; same && d < t->rank; d++)
        same = dim_eq(t->sizes[d], grad->sizes[d]);
    return same ? BP_OK : ctx_fail(c, BP_INVALID_ARGUMENT, "a grad of %s cannot be that of %s",
                                   tensor_describe(grad, a, sizeof a), tensor_describe(t, b, sizeof b));
}

bp_status bp_tensor_set_grad(bp_ctx *c, bp_tensor *t, bp_tensor *grad)
{
    TRY(may_go_on(c, "a tensor's grad", t));
    TRY(check_grad(c, t, grad));
    tape_lock();
    tape_meta *m = tape_meta_of(c, t);
    bp_tensor *former = m ? m->grad : NULL;
    if (m)
        m->grad = grad ? tensor_ref(grad) : NULL;
    tape_unlock();
    tensor_unref(former);
    return c->diag.code;
}

int bp_tensor_is_leaf(const bp_tensor *t)
{
    return t && (!tensor_requires_grad(t) || (t->flags & TENSOR_IS_LEAF && tape_requires(t)));
}

static uint64_t add_hook(bp_ctx *c, bp_tensor *t, tape_hook h)
{
    uint64_t id = 0;
    if (may_go_on(c, "a hook", t) == BP_OK && view_refresh(c, t) == BP_OK) {
        char text[160];
        if (!tape_requires(t))
            ctx_fail(c, BP_INVALID_ARGUMENT, "a hook of %s, which does not require grad",
                     tensor_describe(t, text, sizeof text));
        else if (h.behind && !(t->flags & TENSOR_IS_LEAF))
            ctx_fail(c, BP_INVALID_ARGUMENT, "a hook behind accumulation of %s, which is no leaf",
                     tensor_describe(t, text, sizeof text));
        else
            id = hook_add(c, t, h);
    }
    if (!id && h.destroy)
        h.destroy(h.arg);
    return id;
}

uint64_t bp_tensor_register_hook(bp_ctx *c, bp_tensor *t, bp_grad_hook_fn hook, void *arg, void (*destroy)(void *arg))
{
    return add_hook(c, t, (tape_hook){.on_grad = hook, .arg = arg, .destroy = destroy});
}

uint64_t bp_tensor_register_post_accumulate_hook(bp_ctx *c, bp_tensor *t, bp_post_hook_fn hook, void *arg,
                                                 void (*destroy)(void *arg))
{
    return add_hook(c, t, (tape_hook){.behind = hook, .arg = arg, .destroy = destroy});
}

bp_status bp_tensor_remove_hook(bp_ctx *c, bp_tensor *t, uint64_t hook)
{
    TRY(may_go_on(c, "a hook", t));
    return hook_remove(t, hook) ? BP_OK
                                : ctx_fail(c, BP_NOT_FOUND, "the tensor has no hook %llu", (unsigned long long)hook);
}
