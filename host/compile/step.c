/* Opaque steps of a call (C4.2): what precedes one is committed, it runs once, and the walk goes on behind it.
 *
 * From the commit on the call is never restarted. The step sees real tensors, and it may do to them, to the context
 * and to the world whatever eager code may; so everything that the call had computed is forgotten, and what the
 * function can still reach are inputs. */
#include "host/compile/callable.h"
#include "host/grad/share.h"
#include "sdk/base/hash.h"
#include <stdlib.h>
#include <string.h>

static step_record *record_new(uint32_t nobjects, uint32_t nkept)
{
    step_record *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->inputs = calloc((size_t)nkept + 1, sizeof *r->inputs);
    r->objects = calloc((size_t)nobjects + 1, sizeof *r->objects);
    if (r->inputs && r->objects)
        return r;
    step_record_free(r);
    return NULL;
}

/* -- what it changes ----------------------------------------------------------------------------------------------- */

static bool note_layout(call *k, step_record *r, bp_tensor *t)
{
    tensor_meta m;
    for (uint32_t i = 0; i < r->nchanges; i++)
        if (r->changes[i].t == t)
            return true;
    tensor_get_meta(t, &m);
    bp_tensor *was = tensor_view(k->c, t, &m);
    if (was)
        was->flags = tensor_grad_flags(t);
    if (was)
        r->changes[r->nchanges++] = (struct step_change){tensor_ref(t), was};
    return was != NULL;
}

static bool note_record(call *k, step_record *r, const step_record *from)
{
    for (uint32_t i = 0; i < from->ninputs; i++)
        if (!note_layout(k, r, from->inputs[i]))
            return false;
    for (uint32_t i = 0; i < from->nobjects; i++)
        if (!note_layout(k, r, from->objects[i].t))
            return false;
    return true;
}

/* How everything that a replay may see is laid out, and whether it requires grad, before the commit. `more`: room for
 * what the commit makes. */
static bool note_before(call *k, step_record *r, uint32_t more)
{
    size_t n = (size_t)k->vals.ninputs + more;
    for (uint32_t i = 0; i < k->steps.len; i++)
        n += k->steps.at[i]->nobjects + k->steps.at[i]->ninputs;
    r->changes = calloc(n + 1, sizeof *r->changes);
    bool ok = r->changes != NULL;
    for (uint32_t i = 0; ok && i < k->vals.ninputs; i++)
        ok = !bind_input(&k->vals, i) || note_layout(k, r, bind_input(&k->vals, i));
    for (uint32_t i = 0; ok && i < k->steps.len; i++)
        ok = note_record(k, r, k->steps.at[i]);
    return ok;
}

/* Keeps those that are laid out otherwise now, or have a history. */
static void keep_changes(step_record *r)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->nchanges; i++) {
        tensor_meta was, is;
        tensor_get_meta(r->changes[i].was, &was);
        tensor_get_meta(r->changes[i].t, &is);
        bool history = r->changes[i].was->flags != tensor_grad_flags(r->changes[i].t);
        if (history || !meta_eq(&was, &is) || !dim_same(was.offset, is.offset)) {
            r->changes[kept++] = r->changes[i];
            continue;
        }
        tensor_unref(r->changes[i].t);
        tensor_unref(r->changes[i].was);
    }
    r->nchanges = kept;
}

/* -- the commit ---------------------------------------------------------------------------------------------------- */

/* Everything is written. NULL: it is not, and the context says why. */
static step_record *commit(call *k, const item *at)
{
    uint32_t nobjects = at->end.step->nobjects, nouts = at->end.nouts;
    step_record *r = record_new(nobjects, nouts - nobjects);
    bp_tensor **made = calloc((size_t)nouts + 1, sizeof *made);
    bool ok = r && made && vec_reserve(&k->steps, (uint64_t)k->steps.len + 1) && note_before(k, r, nouts);
    if (!ok)
        ctx_nomem(k->c);
    ok = ok && call_commit_state(k, at, made) == BP_OK;
    for (uint32_t i = 0; ok && i < nouts; i++) {
        if (i < nobjects)
            r->objects[r->nobjects++] = (struct step_object){at->end.outs[i].handle, made[i]};
        else
            r->inputs[r->ninputs++] = made[i];
    }
    free(made);
    if (ok)
        return r;
    if (r)
        step_record_free(r);
    return NULL;
}

/* -- the step ------------------------------------------------------------------------------------------------------ */

typedef struct { bp_tensor **at; uint32_t n; } results; /* a reference each */

static bool keep_results(results *r, bp_tensor *const *from, uint32_t n)
{
    r->at = calloc((size_t)n + 1, sizeof *r->at);
    if (!r->at)
        return false;
    r->n = n;
    for (uint32_t i = 0; i < n; i++)
        r->at[i] = from[i] ? tensor_ref(from[i]) : NULL;
    return true;
}

static bp_tensor *object_at(void *arg, ref i)
{
    const step_record *r = arg;
    return i < r->nobjects ? r->objects[i].t : NULL;
}

static bp_status run_function(call *k, const step_spec *s, const bp_value *args, results *out)
{
    bp_args in = {(bp_value *)(uintptr_t)args, s->nargs};
    bp_outputs outs = {0};
    if (function_run(k->c, s->fn, s->user, &in, &outs) == BP_OK && !keep_results(out, outs.at, outs.n))
        ctx_nomem(k->c);
    return k->c->diag.code;
}

static bp_status run_operator(call *k, const step_spec *s, const bp_value *args, results *out)
{
    op_call op = {.op = s->op, .args = args, .nargs = s->nargs};
    TRY(op_dispatch(k->c, &op));
    if (!keep_results(out, op.out, op.nout))
        ctx_nomem(k->c);
    for (uint32_t i = 0; i < op.nout; i++)
        tensor_unref(op.out[i]);
    return k->c->diag.code;
}

/* Under the modes that the function had switched there; in a scope of its own, so that what it drops is gone. */
static bp_status run_step(call *k, const item *at, step_record *r, results *out)
{
    const step_spec *s = at->end.step;
    bp_ctx *c = k->c;
    ambient before = c->ambient;
    arena own = {0};
    const bp_value *args = args_with_tensors(&own, s->args, s->nargs, object_at, r);
    c->site_file = at->file;
    c->site_line = at->line;
    scope_push(c);
    c->ambient = s->ambient;
    if (!args)
        ctx_nomem(c);
    else if (s->op)
        run_operator(k, s, args, out);
    else
        run_function(k, s, args, out);
    function_restore_modes(c, &s->ambient, s->reason);
    c->ambient = before;
    scope_pop(c);
    arena_fini(&own);
    return c->diag.code;
}

/* -- what it gave -------------------------------------------------------------------------------------------------- */

static uint32_t known_handle(const call *k, const step_record *r, const bp_tensor *t)
{
    for (uint32_t j = 0; j < r->nobjects; j++)
        if (r->objects[j].t == t)
            return r->objects[j].handle;
    for (uint32_t i = 0; i < k->steps.len; i++)
        for (uint32_t j = 0; j < k->steps.at[i]->nobjects; j++)
            if (k->steps.at[i]->objects[j].t == t)
                return k->steps.at[i]->objects[j].handle;
    return 0;
}

/* A result that was an argument of a step is that handle; every other one is a new input. Takes the references. */
static bp_status name_results(call *k, step_record *r, results *out)
{
    bp_tensor **inputs = realloc(r->inputs, ((size_t)r->ninputs + out->n + 1) * sizeof *inputs);
    r->results = calloc((size_t)out->n + 1, sizeof *r->results);
    if (inputs)
        r->inputs = inputs;
    if (!inputs || !r->results)
        return ctx_nomem(k->c);
    for (uint32_t i = 0; i < out->n; i++) {
        uint32_t known = out->at[i] ? known_handle(k, r, out->at[i]) : 0;
        if (out->at[i] && !known) {
            r->results[i] = RESULT_INPUT | r->ninputs;
            r->inputs[r->ninputs++] = tensor_ref(out->at[i]);
        } else {
            r->results[i] = known;
        }
    }
    r->nresults = out->n;
    return BP_OK;
}

static void log_step(call *k, tree_node *n, step_record *r, outcome *out)
{
    hash128 h = hash128_bytes(r->results, r->nresults * sizeof *r->results);
    *out = (outcome){.kind = ASK_NOTHING};
    memcpy(&out->bits, &h, sizeof out->bits);
    (void)vec_push(&k->steps, r); /* there is room */
    k->log[n->depth] = *out;
    k->nlog = k->nmark = n->depth + 1;
    k->mark = n;
    k->rng_base = k->c->rng_offset; /* it may have drawn (C7) */
}

/* It may have written what inputs are views of. */
static bp_status refresh_inputs(call *k)
{
    for (uint32_t i = 0; i < k->vals.ninputs; i++)
        if (bind_input(&k->vals, i))
            TRY(tape_share_refresh(k->c, bind_input(&k->vals, i)));
    return BP_OK;
}

static step take_step(call *k, tree_node *n, const item *at, outcome *out)
{
    step_record *r = commit(k, at);
    if (!r)
        return call_eager_on_error(k);
    bind_drop_values(&k->vals);
    call_hold(k);
    call_release(k); /* the step may call what needs the claim */
    results got = {0};
    code_count(k->st, steps, 1);
    bp_status st = note_record(k, r, r) ? BP_OK : ctx_nomem(k->c);
    if (st == BP_OK)
        st = run_step(k, at, r, &got);
    if (st == BP_OK)
        st = refresh_inputs(k);
    keep_changes(r);
    if (st == BP_OK)
        st = name_results(k, r, &got);
    for (uint32_t i = 0; i < got.n; i++)
        tensor_unref(got.at[i]);
    free(got.at);
    for (uint32_t i = 0; st == BP_OK && i < r->ninputs; i++) {
        bp_value v = value_tensor(r->inputs[i]);
        st = bind_push_input(&k->vals, &v);
    }
    if (st != BP_OK) { /* final (C1.2) */
        step_record_free(r);
        return STEP_FAILED;
    }
    log_step(k, n, r, out);
    return STEP_OK;
}

step call_step(call *k, tree_node *n, outcome *out)
{
    step s = call_recheck(k, n);
    if (s != STEP_OK)
        return s;
    arena own = {0};
    item settled;
    const item *at = call_settle(k, n, &own, &settled);
    s = at ? take_step(k, n, at, out) : call_eager_on_error(k);
    arena_fini(&own);
    return s;
}
