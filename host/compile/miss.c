/* What is not in the tree: an unseen outcome, or a call that no entry serves. Limits are asked first, then the function
 * is captured again from its start, with what this call has observed forced (C3.1). */
#include "host/base/clock.h"
#include "host/base/log.h"
#include "host/compile/stance.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- limits -------------------------------------------------------------------------------------------------------- */

static int64_t recompile_limit(const call *k)
{
    return k->g->recompile_limit > 0 ? k->g->recompile_limit : config_int(k->c->rt, KEY_RECOMPILE_LIMIT);
}

/* A limit is reached: one warning, and eager from now on; an error where the caller wants no eager answer. */
static step hit(call *k, enum code_limit limit, const char *name, int64_t value)
{
    const code_identity *is = &k->g->code->is;
    char reason[512];
    code_last_reason(k->st, reason, sizeof reason);
    if (k->g->fullgraph || config_int(k->c->rt, KEY_FAIL_ON_RECOMPILE_LIMIT_HIT)) {
        ctx_fail(k->c, BP_RESOURCE_EXHAUSTED, "hit config.%s (%lld), function \"%s\" (%s:%d)%s", name, (long long)value,
                 is->name, is->file, is->line, k->g->fullgraph ? ", with fullgraph = 1" : "");
        diag_detail(&k->c->diag, "Last reason: %s", reason);
        return STEP_FAILED;
    }
    if (code_warn_once(k->st, limit))
        log_warn(k->c->rt, "hit config.%s (%lld)\n   function: \"%s\" (%s:%d)\n   last reason: %s\n"
                           "To log all recompilation reasons, use BACKPLANE_LOGS=recompiles.",
                 name, (long long)value, is->name, is->file, is->line, reason);
    return call_eager_here(k, "%s (%lld) is reached", name, (long long)value);
}

static void print_values(const tree_node *n, buf *out)
{
    const place_list *l = atomic_load(&n->places);
    for (uint32_t i = 0; l && i < l->n; i++) {
        buf_puts(out, i ? ", " : "");
        outcome_print(l->at[i]->out, out);
    }
}

/* A break with too many outcomes opens: known ones still match (C2.4). */
static step open_break(call *k, tree_node *n, outcome out)
{
    if (!atomic_exchange(&n->open, true)) {
        buf values = {0};
        print_values(n, &values);
        code_count(k->st, opened, 1);
        log_warn(k->c->rt,
                 "%s at %s:%d in \"%s\" has given %u different values (%s ...); further ones run eagerly: keep "
                 "the value on tensors with bp_where, pass it on by bp_item_sym, or make it an argument",
                 ask_name(n->term->brk.ask), n->term->file ? n->term->file : "?", n->term->line, k->g->code->is.name,
                 node_place_count(n), buf_text(&values));
        buf_fini(&values);
    }
    buf value = {0};
    outcome_print(out, &value);
    step s = call_eager_here(k, "the break at %s:%d is open, and gave %s", n->term->file ? n->term->file : "?",
                        n->term->line, buf_text(&value));
    buf_fini(&value);
    return s;
}

static step check_limits(call *k, const place *at, tree_node *parent, outcome out)
{
    bp_runtime *rt = k->c->rt;
    if (parent && atomic_load(&parent->open))
        return open_break(k, parent, out);
    if (parent && !at && parent->term->kind == ITEM_BREAK && parent->term->brk.ask != ASK_BOOL &&
        node_place_count(parent) >= config_int(rt, KEY_OUTCOME_LIMIT))
        return open_break(k, parent, out);
    const node_list *nodes = at ? atomic_load(&at->nodes) : NULL;
    if (nodes && nodes->n >= recompile_limit(k))
        return hit(k, LIMIT_RECOMPILE, "recompile_limit", recompile_limit(k));
    if (code_counter(k->st, graphs) >= config_int(rt, KEY_ACCUMULATED_RECOMPILE_LIMIT))
        return hit(k, LIMIT_ACCUMULATED, "accumulated_recompile_limit",
                   config_int(rt, KEY_ACCUMULATED_RECOMPILE_LIMIT));
    if (code_counter(k->st, captures) >= config_int(rt, KEY_CAPTURE_LIMIT))
        return hit(k, LIMIT_CAPTURE, "capture_limit", config_int(rt, KEY_CAPTURE_LIMIT));
    return STEP_OK;
}

/* -- why a call is compiled again ---------------------------------------------------------------------------------- */

static void explain(call *k, const node_list *nodes, uint32_t before, buf *out)
{
    for (uint32_t i = 0; i < nodes->n; i++) {
        buf why = {0};
        bp_status st = call_take_attrs(k, nodes->at[i], before);
        guard_inputs in = {k->vals.inputs, k->vals.ninputs, k->vals.nargs, k->vals.syms};
        if (st != BP_OK || !guard_explain(nodes->at[i]->guards, k->c, &in, &why))
            buf_puts(&why, "unexpected recompilation: every guard holds");
        buf_printf(out, "%s%s", i ? "\n    - " : "", buf_text(&why));
        buf_fini(&why);
    }
}

/* Notes and logs the reasons; an error under error_on_recompile. */
static step tell_reasons(call *k, const node_list *nodes, uint32_t before)
{
    const code_identity *is = &k->g->code->is;
    buf text = {0};
    step s = STEP_OK;
    explain(k, nodes, before, &text);
    code_count(k->st, recompiles, 1);
    log_line(k->c->rt, LOG_recompiles, "Recompiling function \"%s\" in %s:%d\n    triggered by the following guard "
                                       "failure(s):\n    - %s", is->name, is->file, is->line, buf_text(&text));
    if (config_int(k->c->rt, KEY_ERROR_ON_RECOMPILE)) {
        ctx_fail(k->c, BP_FAILED_PRECONDITION, "recompiling function \"%s\" (%s:%d), and error_on_recompile is set",
                 is->name, is->file, is->line);
        diag_detail(&k->c->diag, "Guards that failed:\n    - %s", buf_text(&text));
        s = STEP_FAILED;
    }
    code_note_reason(k->st, buf_text(&text));
    buf_fini(&text);
    return s;
}

/* fail_on_recompile: says what would be compiled, and why it is new. */
static step refuse_new(call *k, place *at, tree_node *parent, outcome out)
{
    const code_identity *is = &k->g->code->is;
    const node_list *nodes = place_nodes(at);
    buf why = {0};
    if (nodes) {
        explain(k, nodes, place_inputs(k, parent), &why);
    } else if (parent) {
        buf_printf(&why, "%s at %s:%d gave ", ask_name(parent->term->brk.ask),
                   parent->term->file ? parent->term->file : "?", parent->term->line);
        outcome_print(out, &why);
        buf_puts(&why, ", which it has not given before");
    } else {
        buf_puts(&why, "nothing is compiled yet");
    }
    ctx_fail(k->c, BP_FAILED_PRECONDITION, "function \"%s\" (%s:%d) would be compiled, and the stance is \"%s\"",
             is->name, is->file, is->line, stance_name(STANCE_FAIL_ON_RECOMPILE));
    diag_detail(&k->c->diag, "Why:\n    - %s", buf_text(&why));
    buf_fini(&why);
    return STEP_FAILED;
}

/* -- capturing ----------------------------------------------------------------------------------------------------- */

/* The items of the path up to the end of n, for the replay to be compared with. */
static const item **path_items(const tree_node *n, uint32_t *count)
{
    *count = n ? n->first_item + n->nitems + 1 : 0;
    const item **items = malloc((*count ? *count : 1) * sizeof *items);
    for (; items && n; n = n->parent) {
        for (uint32_t i = 0; i < n->nitems; i++)
            items[n->first_item + i] = &n->items[i];
        items[n->first_item + n->nitems] = n->term;
    }
    return items;
}

/* A replay must bake in the very constants that the path has: their data are in what is compiled. */
static void check_constants(const call *k, trace *t, const tree_node *n)
{
    for (; n && t->why != TRACE_REFUSED && t->why != TRACE_IMPURE; n = n->parent)
        for (uint32_t i = 0; i < n->nattrs; i++) {
            uint32_t at = n->ninputs - n->nattrs + i;
            if (!n->attrs[i].constant || (at < t->sources.len && t->sources.at[at].constant == n->attrs[i].constant))
                continue;
            snprintf(t->reason, sizeof t->reason, "\"%s\" is impure: its constant %s was another tensor",
                     k->g->code->is.name, n->sources[at].name);
            t->why = TRACE_IMPURE;
        }
}

/* What was decided of each source on the path; NULL: none, or no memory. */
static const source_plan **path_plans(const tree_node *n, uint32_t *count)
{
    *count = n ? n->ninputs : 0;
    const source_plan **plans = calloc((size_t)*count + 1, sizeof *plans);
    for (; plans && n; n = n->parent)
        for (uint32_t i = 0; i < n->nplans; i++)
            plans[n->plans[i].source] = &n->plans[i];
    return plans;
}

/* Only who has the claim may learn. */
static size_policy policy_of(const call *k)
{
    bp_runtime *rt = k->c->rt;
    int32_t dynamic = k->g->dynamic;
    return (size_policy){
        .state = k->claimed ? &k->st->seen : NULL,
        .automatic = dynamic >= 0 && config_int(rt, KEY_AUTOMATIC_DYNAMIC_SHAPES),
        .static_by_default = dynamic < 0 || (!dynamic && config_int(rt, KEY_ASSUME_STATIC_BY_DEFAULT)),
        .ignores_marks = config_int(rt, KEY_ALLOW_IGNORE_MARK_DYNAMIC) != 0,
        .static_parameters = config_int(rt, KEY_FORCE_PARAMETER_STATIC_SHAPES) != 0,
        .mark_as = (uint8_t)config_int(rt, KEY_AUTOMATIC_DYNAMIC_SHAPES_MARK_AS),
        .dynamic_sources = config_str(rt, KEY_DYNAMIC_SOURCES),
        .unbacked_sources = config_str(rt, KEY_UNBACKED_SOURCES),
        .static_sources = config_str(rt, KEY_STATIC_SOURCES),
    };
}

trace *call_trace(call *k, const tree_node *n, const trace_resume *resume)
{
    bp_runtime *rt = k->c->rt;
    trace_request r = {.fn = k->g->fn, .user = k->g->user, .name = k->g->code->is.name, .vals = &k->vals,
                       .log = k->log, .steps = k->steps.at, .nsteps = k->steps.len,
                       .break_limit = BREAK_LIMIT, .rng_base = k->rng_base,
                       .nlog = n ? k->nlog : 0, .node_limit = (uint32_t)config_int(rt, KEY_TRACE_NODE_LIMIT),
                       .fullgraph = k->g->fullgraph, .resume = resume,
                       .compute = call_compute_slice, .compute_arg = k, .policy = policy_of(k),
                       .dynamic_outputs = config_int(rt, KEY_CAPTURE_DYNAMIC_OUTPUT_SHAPE_OPS) != 0};
    const item **expect = path_items(n, &r.nexpect);
    const source_plan **plans = path_plans(n, &r.nplans);
    if (!expect || !plans) {
        free(expect);
        free(plans);
        return ctx_nomem(k->c), NULL;
    }
    r.expect = expect;
    r.env = n ? n->env : NULL;
    r.nsymbols = n ? n->end_symbol : 0;
    r.plans = plans;
    call_hold(k);
    bind_cut_inputs(&k->vals, k->vals.nargs); /* the capture asks for attributes anew */
    trace *t = trace_run(k->c, &r);
    free(expect);
    free(plans);
    if (t && !resume)
        check_constants(k, t, n);
    if (t)
        t->r = NULL;
    return t;
}

void call_took(call *k, _Atomic uint64_t *total, const char *stage, const char *what, uint64_t began)
{
    uint64_t ns = clock_ns() - began;
    atomic_fetch_add_explicit(total, ns, memory_order_relaxed);
    log_line(k->c->rt, LOG_time, "%s of %s: %.3f ms", stage, what, (double)ns * 1e-6);
}

static void log_capture(call *k, const trace *t)
{
    if (!log_on(k->c->rt, LOG_capture))
        return;
    buf text = {0};
    trace_print(t, &text);
    log_line(k->c->rt, LOG_capture, "captured \"%s\", operations: %u, breaks: %u%s%s\n%s", k->g->code->is.name,
             t->nnodes, t->nbreaks, t->reason[0] ? "; " : "", t->reason, buf_text(&text));
    buf_fini(&text);
}

static step capture(call *k, tree_node *parent)
{
    k->captured = true;
    code_count(k->st, captures, 1);
    uint64_t began = clock_ns();
    trace *t = call_trace(k, parent, NULL);
    call_took(k, &k->st->capture_ns, "capture", k->g->code->is.name, began);
    if (!t)
        return STEP_FAILED;
    code_count(k->st, slices, t->slices.evaluated);
    log_capture(k, t);
    step s = call_graft(k, t, parent);
    trace_destroy(t);
    return s;
}

/* -- an isolated callable reads the default region's entries ------------------------------------------------------- */

static step borrow(call *k)
{
    code_state *own = k->st;
    fn_code *shared = k->g->isolated ? code_find(k->c, &k->g->shared) : NULL;
    if (!shared)
        return STEP_MISS;
    k->st = code_state_of(shared);
    k->borrowed = true;
    step s = call_walk(k);
    k->borrowed = false;
    k->st = own;
    code_unref(shared);
    if (s == STEP_MISS) {
        bind_reset(&k->vals);
        k->node = NULL;
    }
    return s;
}

step call_miss(call *k, place *at, tree_node *parent, outcome out, tree_node **n)
{
    uint32_t before = place_inputs(k, parent);
    if (!ctx_ok(k->c))
        return STEP_FAILED;
    if (k->borrowed && k->steps.len)
        return call_eager_here(k, "the default region does not know what is behind a commit");
    if (k->borrowed)
        return STEP_MISS;
    if (!parent && k->g->isolated) {
        step s = borrow(k);
        if (s != STEP_MISS)
            return s;
    }
    if (k->stance == STANCE_EAGER_ON_RECOMPILE)
        return call_eager_here(k, "the stance \"%s\" forbids to compile what is new", stance_name(k->stance));
    step s = check_limits(k, at, parent, out);
    if (s == STEP_OK && k->stance == STANCE_FAIL_ON_RECOMPILE)
        s = refuse_new(k, at, parent, out);
    if (s != STEP_OK)
        return s;
    if (!call_claim(k))
        return call_eager_here(k, "another thread is capturing or compiling \"%s\"", k->g->code->is.name);
    at = parent ? node_place(parent, out) : at;
    *n = call_pick(k, at, before); /* somebody else may have put it there meanwhile */
    if (*n)
        return STEP_OK;
    const node_list *nodes = place_nodes(at);
    if (nodes)
        s = tell_reasons(k, nodes, before);
    if (s == STEP_OK)
        s = capture(k, parent);
    if (s == STEP_OK)
        *n = k->fresh.at[k->next_fresh];
    return s == STEP_OK && call_take_attrs(k, *n, before) != BP_OK ? STEP_FAILED : s;
}
