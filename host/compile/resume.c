/* Eager resumption (C3.6): the function runs again in replay, and for real behind what this call has observed.
 *
 * What the call has computed is kept: values that the function can still reach are handed on or sliced, before the
 * first write (C3.3); then the writes so far are committed and the generator moves. Up to there nothing that the
 * caller can see has changed, and a failure is answered by eager from the start, unless an opaque step has committed;
 * behind it the function's own error is eager's. */
#include "host/base/log.h"
#include "host/compile/callable.h"

static bp_status commit(void *arg, const item *state, bp_tensor **made)
{
    call *k = arg;
    return call_commit_state(k, state, made);
}

/* One replay along the log. STEP_EAGER: it never came to where it was to go on, for k->reason. */
static step replay(call *k)
{
    bp_ctx *c = k->c;
    ambient before = c->ambient;
    trace_resume r = {commit, k, k->outs};
    trace *t = call_trace(k, k->node, &r);
    if (!t)
        return call_eager_on_error(k);
    step s = STEP_DONE;
    if (t->why == TRACE_RESUMED) {
        code_count(k->st, resumed, 1);
        function_restore_modes(c, &before, k->g->code->is.name);
    } else {
        diag_clear(&c->diag);
        s = t->why == TRACE_IMPURE ? call_impure(k, t->reason) : call_eager(k, "%s", t->reason);
        log_line(c->rt, LOG_capture, "\"%s\" does not resume: %s", k->g->code->is.name, t->reason);
    }
    trace_destroy(t);
    return s;
}

step call_resume(call *k)
{
    step s = STEP_EAGER;
    call_release(k); /* the function may call what needs the claim */
    if (!k->impure)
        s = replay(k);
    if (s != STEP_EAGER || !k->steps.len)
        return s;
    k->node = k->mark; /* at the last commit, if the part before it still agrees (C5.4) */
    k->nlog = k->nmark;
    s = replay(k);
    if (s != STEP_EAGER)
        return s;
    ctx_fail(k->c, BP_FAILED_PRECONDITION, "\"%s\" cannot go on behind an opaque step that has run: %s",
             k->g->code->is.name, k->reason);
    return STEP_FAILED;
}
