/* Eager resumption (C3.6): the function runs again in replay, and for real behind what this call has observed.
 *
 * What the call has computed is kept: values that the function can still reach are handed on or sliced, before the
 * first write (C3.3); then the writes so far are committed and the generator moves. Up to there nothing that the
 * caller can see has changed, and a failure is answered by eager from the start; behind it the function's own error is
 * eager's. */
#include "host/base/log.h"
#include "host/compile/callable.h"

static bp_status commit(void *arg, const item *state, bp_tensor **made)
{
    call *k = arg;
    return call_commit_state(k, state, made);
}

/* The replay never came to where it was to go on. */
static step not_resumed(call *k, trace *t)
{
    step s = STEP_EAGER;
    if (t->why == TRACE_IMPURE)
        s = call_impure(k, t->reason);
    log_line(k->c->rt, LOG_capture, "\"%s\" does not resume, and runs from its start: %s", k->g->code->is.name,
             t->reason);
    diag_clear(&k->c->diag);
    return s;
}

step call_resume(call *k)
{
    bp_ctx *c = k->c;
    ambient before = c->ambient;
    trace_resume r = {commit, k, k->outs};
    call_release(k); /* the function may call what needs the claim */
    trace *t = call_trace(k, k->node, &r);
    if (!t) {
        diag_clear(&c->diag);
        return STEP_EAGER;
    }
    step s = STEP_DONE;
    if (t->why != TRACE_RESUMED) {
        s = not_resumed(k, t);
    } else {
        code_count(k->st, resumed, 1);
        function_restore_modes(c, &before, k->g->code->is.name);
    }
    trace_destroy(t);
    return s;
}
