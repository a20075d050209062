/* The public face of calls: bp_call and kin, eager runs, inlining. */
#include "host/base/env.h"
#include "host/base/log.h"
#include "host/compile/stance.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

step call_eager(call *k, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(k->reason, sizeof k->reason, fmt, ap);
    va_end(ap);
    return STEP_EAGER;
}

step call_eager_here(call *k, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(k->reason, sizeof k->reason, fmt, ap);
    va_end(ap);
    k->resumes = true;
    return STEP_EAGER;
}

step call_eager_on_error(call *k)
{
    snprintf(k->reason, sizeof k->reason, "%.500s", k->c->diag.message);
    diag_clear(&k->c->diag);
    return STEP_EAGER;
}

bool call_claim(call *k)
{
    if (!k->claimed)
        k->claimed = code_claim(k->st);
    return k->claimed;
}

void call_release(call *k)
{
    if (k->claimed)
        code_release(k->st);
    k->claimed = false;
}

/* -- running a function -------------------------------------------------------------------------------------------- */

/* What runs next must not depend on how this call was answered. */
void function_restore_modes(bp_ctx *c, const ambient *before, const char *name)
{
    if (!memcmp(&c->ambient, before, sizeof *before))
        return;
    log_warn(c->rt, "\"%s\" returned with a mode switched that it did not switch back; it is put back", name);
    c->ambient = *before;
}

bp_status function_run(bp_ctx *c, bp_fn fn, void *user, const bp_args *inputs, bp_outputs *outs)
{
    bp_frame f;
    frame_init(&f, c, inputs ? inputs->at : NULL, inputs ? inputs->n : 0, user);
    bp_status st = frame_run(&f, fn);
    if (st == BP_OK)
        st = frame_give(&f, outs);
    frame_fini(&f);
    return st;
}

typedef struct { const char *file; int32_t line; } place_of_call; /* file NULL: not known */

static bp_status record_step(bp_ctx *c, trace *t, const bp_callable *g, const bp_args *inputs, bp_outputs *outs,
                             place_of_call at)
{
    char reason[256];
    bp_tensor **results;
    uint32_t n;
    snprintf(reason, sizeof reason, "the disabled function %s is called", g->name);
    step_spec s = {.fn = g->fn, .user = g->user, .reason = reason};
    s.args = inputs ? inputs->at : NULL;
    s.nargs = inputs ? inputs->n : 0;
    c->site_file = at.file;
    c->site_line = at.line;
    bp_status st = trace_step(t, &s, &results, &n);
    c->site_file = NULL;
    TRY(st);
    TRY(outputs_reserve(c, outs, n));
    for (uint32_t i = 0; i < n; i++)
        outs->at[i] = results[i];
    return BP_OK;
}

/* A callable that is called under capture: inlined, its own backend and options aside (C6.5). A disabled one must run
 * as it is: an opaque step (C4.2). */
static bp_status run_inlined(bp_ctx *c, bp_callable *g, const bp_args *inputs, bp_outputs *outs, place_of_call at)
{
    capture_slot *slot = capture_slot_get(c);
    if (!slot)
        return c->diag.code;
    if (g->disabled)
        return record_step(c, slot->current, g, inputs, outs, at);
    log_line(c->rt, LOG_capture, "\"%s\" is inlined; its backend \"%s\" is not asked", g->code->is.name,
             backend_name(g->backend));
    if (slot->depth >= INLINE_DEPTH)
        return ctx_fail(c, BP_RESOURCE_EXHAUSTED, "callables are nested %d deep under capture", INLINE_DEPTH);
    slot->depth++;
    bp_status st = function_run(c, g->fn, g->user, inputs, outs);
    slot->depth--;
    return st;
}

static bp_status run_eagerly(bp_ctx *c, bp_callable *g, const bp_args *inputs, bp_outputs *outs)
{
    ambient before = c->ambient;
    atomic_fetch_add_explicit(&g->refs, 1, memory_order_relaxed); /* the function may give it up */
    bp_status st = function_run(c, g->fn, g->user, inputs, outs);
    function_restore_modes(c, &before, g->code ? g->code->is.name : "a function");
    bp_callable_unref(g);
    return st;
}

bp_status bp_run_eager(bp_ctx *c, bp_fn fn, void *user, const bp_args *inputs, bp_outputs *outputs)
{
    if (!ctx_ok(c))
        return c->diag.code;
    if (!fn || !outputs)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "bp_run_eager: the %s is NULL", fn ? "list of outputs" : "function");
    TRY(args_check(c, inputs));
    return function_run(c, fn, user, inputs, outputs);
}

/* -- a call -------------------------------------------------------------------------------------------------------- */

static void begin(call *k, bp_ctx *c, bp_callable *g, const bp_args *inputs, bp_outputs *outs)
{
    k->c = c;
    k->g = g;
    k->outs = outs;
    k->fixed = outs->at && outs->cap;
    k->rng_base = c->rng_offset;
    k->node = NULL;
    k->nlog = 0;
    k->claimed = k->captured = k->held = k->borrowed = k->resumes = false;
    k->reason[0] = 0;
    memset(&k->fresh, 0, sizeof k->fresh);
    memset(&k->guesses, 0, sizeof k->guesses);
    memset(&k->steps, 0, sizeof k->steps);
    k->mark = NULL;
    k->nmark = 0;
    k->impure = false;
    k->next_fresh = 0;
    bind_init(&k->vals, c, inputs ? inputs->at : NULL, inputs ? inputs->n : 0);
}

/* What only a call has that has captured, or run a step. */
RARE static void drop_found(call *k)
{
    for (uint32_t i = k->next_fresh; i < k->fresh.len; i++)
        node_destroy(k->fresh.at[i]); /* never published */
    vec_fini(&k->fresh);
    vec_fini(&k->guesses);
    for (uint32_t i = 0; i < k->steps.len; i++)
        step_record_free(k->steps.at[i]);
    vec_fini(&k->steps);
}

static HOT void end(call *k)
{
    if (k->captured || k->steps.at)
        drop_found(k);
    call_release(k);
    bind_fini(&k->vals);
}

static step attempt(call *k)
{
    k->st = code_state_of(k->g->code);
    const char *why = atomic_load(&k->st->eager_only);
    return why ? call_eager(k, "%s", why) : call_walk(k);
}

static void note_eager(call *k)
{
    bp_runtime *rt = k->c->rt;
    code_count(k->st, eager_calls, 1);
    log_line(rt, LOG_capture, "\"%s\" runs eagerly: %s", k->g->code->is.name, k->reason);
}

static bp_status call_inside(bp_ctx *c, bp_callable *g, const bp_args *inputs, bp_outputs *outs,
                             enum stance stance)
{
    call k;
    epochs *e = code_enter(c);
    if (!e)
        return c->diag.code;
    begin(&k, c, g, inputs, outs);
    k.epochs = e;
    k.stance = (uint8_t)stance;
    step s = attempt(&k);
    if (s == STEP_DONE && !k.captured)
        code_count_hit(k.st, c->thread);
    else if (s == STEP_EAGER)
        note_eager(&k);
    if (s == STEP_EAGER && (k.steps.len || (k.resumes && k.nlog)))
        s = call_resume(&k);
    end(&k);
    code_leave(c, e);
    bp_status st = s == STEP_EAGER ? run_eagerly(c, g, inputs, outs) : c->diag.code;
    if (k.held)
        bp_callable_unref(g);
    return st;
}

/* One thread at a time uses a context. */
static bp_status check_owner(bp_ctx *c)
{
    uint64_t me = ctx_thread_id();
    if (c->busy && c->thread != me)
        return ctx_fail(c, BP_FAILED_PRECONDITION, "a context is used by two threads at once: each needs its own");
    c->thread = me;
    if (c->busy >= CALL_DEPTH)
        return ctx_fail(c, BP_RESOURCE_EXHAUSTED, "calls are nested %d deep: a function calls itself without end",
                        CALL_DEPTH);
    return BP_OK;
}

static HOT bp_status call_under_stance(bp_ctx *c, bp_callable *g, const bp_args *inputs, bp_outputs *outs)
{
    uint32_t word = stance_word(c->rt);
    enum stance stance = stance_kind(word);
    if (g->disabled || stance == STANCE_FORCE_EAGER)
        return run_eagerly(c, g, inputs, outs);
    if (word && !(g = stance_callable(c, g, word)))
        return c->diag.code;
    return call_inside(c, g, inputs, outs, stance);
}

static HOT bp_status call_now(bp_ctx *c, bp_callable *g, const bp_args *inputs, bp_outputs *outputs)
{
    c->busy++;
    bp_status st = call_under_stance(c, g, inputs, outputs);
    c->busy--;
    return st;
}

/* A function that has resumed knows its inputs by handles: it passes the inputs, and gets its handles back. */
RARE static bp_status call_from_resumed(bp_ctx *c, bp_callable *g, const bp_args *inputs, bp_outputs *outputs)
{
    capture_slot *slot = capture_slot_get(c);
    trace *t = slot->resumed;
    arena own = {0};
    uint32_t n = inputs ? inputs->n : 0;
    bp_args real = {arena_array(&own, n, sizeof *real.at), n};
    bool ok = real.at != NULL;
    for (uint32_t i = 0; ok && i < n; i++)
        ok = capture_real_value(c, &own, &inputs->at[i], &real.at[i]);
    slot->resumed = NULL; /* what is called has no part in it */
    if (!ok)
        ctx_nomem(c);
    else if (call_now(c, g, inputs ? &real : NULL, outputs) == BP_OK)
        for (uint32_t i = 0; i < outputs->n; i++)
            outputs->at[i] = trace_handle_for(t, outputs->at[i]);
    slot->resumed = t;
    arena_fini(&own);
    return c->diag.code;
}

bp_status bp_call_at(bp_ctx *c, bp_callable *g, const bp_args *inputs, bp_outputs *outputs, const char *file,
                     int32_t line)
{
    if (!ctx_ok(c))
        return c->diag.code;
    if (!g || !outputs)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "bp_call: the %s is NULL", g ? "list of outputs" : "callable");
    TRY(check_owner(c));
    TRY(args_check(c, inputs));
    if (capture_current(c))
        return run_inlined(c, g, inputs, outputs, (place_of_call){file, line});
    if (capture_resumed(c))
        return call_from_resumed(c, g, inputs, outputs);
    return call_now(c, g, inputs, outputs);
}

bp_tensor *bp_call1_at(bp_ctx *c, bp_callable *g, uint32_t n, bp_tensor *const *inputs, const char *file, int32_t line)
{
    if (!ctx_ok(c))
        return NULL;
    bp_value few[16], *at = few;
    if (n > 16 && !(at = malloc(n * sizeof *at)))
        return ctx_nomem(c), NULL;
    for (uint32_t i = 0; i < n; i++)
        at[i] = value_tensor(inputs[i]);
    bp_args args = {at, n};
    bp_tensor *one = NULL;
    bp_outputs outs = {&one, 0, 1};
    bp_status st = bp_call_at(c, g, &args, &outs, file, line);
    if (at != few)
        free(at);
    if (st == BP_OK && outs.n != 1)
        ctx_fail(c, BP_INVALID_ARGUMENT, "bp_call1: the function gives %u results, and one is expected", outs.n);
    return ctx_ok(c) ? one : NULL;
}

/* -- for callers that name no place -------------------------------------------------------------------------------- */

#undef bp_call
bp_status bp_call(bp_ctx *c, bp_callable *g, const bp_args *inputs, bp_outputs *outputs)
{
    return bp_call_at(c, g, inputs, outputs, NULL, 0);
}

#undef bp_call1
bp_tensor *bp_call1(bp_ctx *c, bp_callable *g, uint32_t n, bp_tensor *const *inputs)
{
    return bp_call1_at(c, g, n, inputs, NULL, 0);
}
