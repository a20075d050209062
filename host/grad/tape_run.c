/* One node's backward: its saved values made ready, its derivative run, gradients given to whoever asked. */
#include "host/grad/tape_node.h"
#include <string.h>

static bp_status used_again(bp_ctx *c, const tape_node *n)
{
    ctx_fail(c, BP_FAILED_PRECONDITION,
             "backward goes through \"%s\" a second time, and what it had saved was freed by the first", n->label);
    if (n->file)
        diag_detail(&c->diag, "It was called at %s:%d.", n->file, (int)n->line);
    diag_hint(&c->diag, "retain the graph the first time (BP_RETAIN_GRAPH)");
    return c->diag.code;
}

/* -- operators ----------------------------------------------------------------------------------------------------- */

/* Puts t in the place of the i-th tensor among args. */
static bp_value *place_of(bp_value *args, uint32_t nargs, uint32_t i, uint32_t *arg)
{
    for (uint32_t a = 0; a < nargs; a++) {
        if (args[a].kind == BP_VALUE_TENSOR && i-- == 0)
            return *arg = a, &args[a];
        for (uint32_t k = 0; args[a].kind == BP_VALUE_LIST && k < args[a].count; k++) {
            bp_value *item = (bp_value *)(uintptr_t)&args[a].v.items[k]; /* the node's own memory */
            if (item->kind == BP_VALUE_TENSOR && i-- == 0)
                return *arg = a, item;
        }
    }
    return NULL;
}

static bp_status unpack(bp_ctx *c, tape_node *n, bp_tensor **results)
{
    const schema *s = n->op->schema;
    for (uint32_t i = 0; i < n->ninputs; i++) {
        uint32_t arg = 0;
        bp_value *v = place_of(n->u.call.args, s->nargs, i, &arg);
        if (v && !(v->v.tensor = saved_get(c, n, &n->u.call.saved[i], s->args[arg].name, 0)))
            return c->diag.code;
    }
    for (uint32_t i = 0; i < n->nresults; i++) {
        results[i] = saved_get(c, n, &n->results[i], "result", i);
        TRY(c->diag.code);
    }
    return BP_OK;
}

static void pack_again(tape_node *n)
{
    uint32_t arg;
    for (uint32_t i = 0; i < n->ninputs; i++) {
        bp_value *v = place_of(n->u.call.args, n->op->schema->nargs, i, &arg);
        if (v)
            v->v.tensor = NULL;
    }
}

static bp_status run_call(bp_ctx *c, tape_node *n, bp_tensor *const *grads, const uint8_t *wanted, bp_tensor **out)
{
    bp_tensor **results = arena_array(&c->scratch, n->nresults, sizeof *results);
    if (!results)
        return ctx_nomem(c);
    memset(results, 0, n->nresults * sizeof *results);
    grad_call g = {.op = n->op, .args = n->u.call.args, .results = results, .grads = grads, .nresults = n->nresults,
                   .needs = wanted, .out = out, .ninputs = n->ninputs, .own = n->u.call.own};
    bp_status st = unpack(c, n, results);
    if (st == BP_OK)
        st = grad_run(c, n->u.call.row, &g);
    pack_again(n);
    if (st != BP_OK) {
        diag_while(&c->diag, "differentiating %s", n->label);
        memset(out, 0, n->ninputs * sizeof *out);
    }
    for (uint32_t i = 0; i < n->ninputs; i++)
        if (out[i])
            tensor_ref(out[i]);
    return st;
}

/* -- what other rooms made ----------------------------------------------------------------------------------------- */

static bp_status fit_own(bp_ctx *c, tape_node *n, bp_tensor **out)
{
    for (uint32_t i = 0; i < n->ninputs; i++) {
        bp_tensor *t = out[i];
        if (!t)
            continue;
        bp_tensor *fit = n->edges[i].node ? grad_fit(c, t, &n->u.own.inputs[i], n->label) : NULL;
        out[i] = fit ? tensor_ref(fit) : NULL;
        tensor_unref(t);
        TRY(c->diag.code);
    }
    return BP_OK;
}

static bp_status run_own(bp_ctx *c, tape_node *n, bp_tensor *const *grads, bp_tensor **out, bool create)
{
    TRY(n->u.own.fn->backward(c, n->u.own.state, grads, out, create));
    return fit_own(c, n, out);
}

static bp_status not_differentiable(bp_ctx *c, const tape_node *n)
{
    const char *reason = n->op ? grad_none_of(n->op) : NULL;
    ctx_fail(c, BP_UNIMPLEMENTED, "there is no derivative of %s%s%s", n->label, reason ? ": " : "",
             reason ? reason : "");
    if (n->file)
        diag_detail(&c->diag, "It was called at %s:%d.", n->file, (int)n->line);
    return c->diag.code;
}

static bp_status run_kind(bp_ctx *c, tape_node *n, bp_tensor *const *grads, const uint8_t *wanted, bp_tensor **out,
                          bool create)
{
    switch (n->kind) {
    case NODE_OP: return run_call(c, n, grads, wanted, out);
    case NODE_FN: return run_own(c, n, grads, out, create);
    case NODE_VIEW:
    case NODE_SCATTER: return view_run(c, n, grads, wanted, out, create);
    case NODE_FAIL: return not_differentiable(c, n);
    default: return BP_OK;
    }
}

bp_status tape_node_run(bp_ctx *c, tape_node *n, bp_tensor *const *grads, const uint8_t *wanted, bp_tensor **out,
                   bool create)
{
    if (!ctx_ok(c))
        return c->diag.code;
    if (n->freed && (n->saves || (n->kind == NODE_FN && n->u.own.fn->release)))
        return used_again(c, n);
    arena_mark mark = arena_get_mark(&c->scratch);
    scope_push(c);
    bp_status st = run_kind(c, n, grads, wanted, out, create);
    if (st == BP_OK)
        st = c->diag.code;
    for (uint32_t i = 0; st != BP_OK && i < n->ninputs; i++) {
        tensor_unref(out[i]);
        out[i] = NULL;
    }
    scope_pop(c);
    arena_reset(&c->scratch, mark);
    return st;
}
