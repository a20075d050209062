/* A capture's new segments become tree nodes. They hang together, but nobody else sees one before it has run. */
#include "host/base/log.h"
#include "host/compile/callable.h"
#include "host/tensor/module.h"
#include <stdio.h>
#include <string.h>

/* -- one node ------------------------------------------------------------------------------------------------------ */

static bool copy_items(tree_node *n, const trace *t, uint32_t first, uint32_t end, bool has_term)
{
    uint32_t count = end - first;
    item *items = arena_array(&n->arena, count, sizeof *items);
    if (!items)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!item_copy(&n->arena, &t->items.at[first + i], &items[i]))
            return false;
    n->items = items;
    n->first_item = first;
    n->nitems = count - has_term;
    n->term = has_term ? &items[count - 1] : NULL;
    return true;
}

/* A constant that the function writes is an input like any other. */
static bool is_baked(const trace_source *s)
{
    return s->constant && !(s->fs && (s->fs->written || s->fs->group));
}

static bool name_sources(tree_node *n, const trace *t, uint32_t nsources)
{
    guard_source *s = arena_array(&n->arena, nsources, sizeof *s);
    for (uint32_t i = 0; s && i < nsources; i++) {
        const trace_source *from = &t->sources.at[i];
        s[i].role = from->role == BP_ROLE_CONSTANT && !is_baked(from) ? BP_ROLE_BUFFER : from->role;
        s[i].name = from->name ? arena_strdup(&n->arena, from->name) : arena_printf(&n->arena, "arg%u", i);
        if (!s[i].name)
            return false;
    }
    n->sources = s;
    n->ninputs = nsources;
    return s != NULL;
}

static bool hold_attrs(tree_node *n, const trace *t, uint32_t before)
{
    node_attr *attrs = arena_array(&n->arena, n->ninputs - before, sizeof *attrs);
    if (!attrs)
        return false;
    for (uint32_t i = before; i < n->ninputs; i++) {
        const trace_source *s = &t->sources.at[i];
        attrs[n->nattrs++] = s->constant ? (node_attr){.constant = tensor_ref(s->constant)}
                                         : (node_attr){module_ref(s->module), s->entry, NULL};
    }
    n->attrs = attrs;
    return true;
}

/* -- symbols ------------------------------------------------------------------------------------------------------- */

/* What the sources that were first asked for here are to replays. */
static bool hold_plans(tree_node *n, const trace *t, const trace_segment *seg)
{
    source_plan *plans = arena_array(&n->arena, seg->touched.len, sizeof *plans);
    struct node_meta *metas = arena_array(&n->arena, seg->shown.len, sizeof *metas);
    bool ok = plans && metas;
    for (uint32_t i = 0; ok && i < seg->touched.len; i++) {
        const source_plan *p = t->sources.at[seg->touched.at[i]].plan;
        if (p && p->source == seg->touched.at[i])
            ok = plan_copy(&n->arena, p, &plans[n->nplans++]);
    }
    for (uint32_t i = 0; ok && i < seg->shown.len; i++) {
        uint32_t source = seg->shown.at[i];
        metas[n->nmetas++] = (struct node_meta){source, meta_copy(&n->arena, t->sources.at[source].meta, &ok)};
    }
    n->plans = plans;
    n->metas = metas;
    return ok;
}

static bool hold_symbols(tree_node *n, const trace *t, uint32_t s)
{
    const trace_segment *seg = &t->segments.at[s];
    bool last = s + 1 == t->segments.len;
    n->end_symbol = last ? sym_symbol_count(t->env) : t->segments.at[s + 1].first_symbol;
    n->nsymbols = n->end_symbol - seg->first_symbol;
    n->env = n->end_symbol ? sym_env_ref(t->env) : NULL;
    n->told = arena_memdup(&n->arena, seg->symbols.at, seg->symbols.len * sizeof *n->told);
    n->ntold = seg->symbols.len;
    n->prepares = n->nattrs || n->end_symbol;
    return n->told && hold_plans(n, t, seg);
}

/* A call with all the sizes that static code was compiled for is left to it: one of them must differ. Of the first
 * segment alone: what later ones bring is not read yet where this is checked. No size: {0}. */
static bp_dim exclusion(const trace *t, bp_ctx *c)
{
    bp_dim any = dim_const(0);
    uint32_t end = t->segments.len > 1 ? t->segments.at[1].first_symbol : sym_symbol_count(t->env);
    for (uint32_t i = 0; i < t->naming.excluded.len; i++) {
        const size_excluded *e = &t->naming.excluded.at[i];
        if (e->symbol < end)
            any = dim_max(c, any, dim_compare(c, DIM_NE, sym_dim_of(t->env, e->symbol), dim_const(e->value)));
    }
    return any;
}

/* What was asked in segment s, in that order. */
static bool add_shapes(call *k, guard_builder *b, const trace *t, uint32_t s, bool excludes)
{
    const trace_segment *seg = &t->segments.at[s];
    VEC(bp_dim) asked = {0};
    bool ok = true;
    for (uint32_t i = 0; i < sym_fact_count(t->env); i++) {
        const sym_fact *f = sym_fact_at(t->env, i);
        if (f->tag == s && f->origin == SYM_GUARD)
            ok = ok && vec_push(&asked, f->holds);
    }
    if (excludes && t->naming.excluded.len) {
        sym_scope former = sym_push(t->env, k->c);
        bp_dim differs = exclusion(t, k->c);
        ok = ok && (!differs.sym || vec_push(&asked, differs));
        sym_pop(former);
    }
    guard_shapes g = {t->env, seg->reads.at, asked.at, seg->reads.len, asked.len};
    if (ok && (seg->reads.len || asked.len))
        guard_add_shapes(b, &g);
    vec_fini(&asked);
    return ok;
}

static void add_source_guard(guard_builder *b, const call *k, const trace *t, uint32_t i)
{
    const trace_source *s = &t->sources.at[i];
    const bp_tensor *in = bind_input(&k->vals, i);
    tensor_meta m;
    if (in && (s->meta || in->is_marked)) {
        tensor_get_meta(in, &m);
        guard_add_dynamic(b, i, s->meta ? s->meta : &m, s->plan ? s->plan->marked : 0);
    } else if (s->asked == SOURCE_DIM && s->number.sym) {
        guard_add_integer(b, i);
    } else {
        guard_add_input(b, i);
    }
}

/* What must hold for a call to take this node, beyond what its parents checked (C6.1). */
static bp_status add_guards(call *k, tree_node *n, const trace *t, uint32_t s)
{
    const trace_segment *seg = &t->segments.at[s];
    guard_inputs in = {k->vals.inputs, n->ninputs, k->vals.nargs, k->vals.syms};
    guard_builder *b = guard_begin(k->c, n->sources, n->ninputs, &in);
    if (!n->parent || n->parent->term->kind == ITEM_STEP) /* a step may have switched them */
        guard_add_ambient(b);
    for (uint32_t i = 0; i < seg->touched.len; i++) {
        add_source_guard(b, k, t, seg->touched.at[i]);
        if (n->sources[seg->touched.at[i]].role == BP_ROLE_CONSTANT)
            guard_add_version(b, seg->touched.at[i]);
    }
    if (seg->touched.len)
        guard_add_identity(b);
    for (uint32_t i = 0; i < seg->written.len; i++)
        guard_add_layout(b, seg->written.at[i]);
    bool excludes = !n->parent && config_int(k->c->rt, KEY_AUTOMATIC_DYNAMIC_EXCLUSION_GUARD);
    if (!add_shapes(k, b, t, s, excludes))
        ctx_nomem(k->c);
    n->guards = guard_finish(b);
    return n->guards ? BP_OK : k->c->diag.code;
}

static tree_node *make_node(call *k, const trace *t, uint32_t s, tree_node *parent, bool has_term)
{
    const trace_segment *seg = &t->segments.at[s];
    bool last = s + 1 == t->segments.len;
    uint32_t end = !has_term ? seg->first_item : last ? t->items.len : t->segments.at[s + 1].first_item;
    tree_node *n = node_new();
    if (!n)
        return ctx_nomem(k->c), NULL;
    n->parent = parent;
    n->depth = s;
    n->first_value = seg->first_value;
    n->end_value = !has_term ? seg->first_value : last ? t->values.len : t->segments.at[s + 1].first_value;
    n->rng_start = seg->rng_start;
    n->ambient = seg->ambient;
    n->nwritten = seg->written.len;
    n->written = arena_memdup(&n->arena, seg->written.at, seg->written.len * sizeof *n->written);
    if (!n->written || !copy_items(n, t, seg->first_item, end, has_term) || !name_sources(n, t, seg->nsources) ||
        !hold_attrs(n, t, place_inputs(k, parent)) || !hold_symbols(n, t, s))
        ctx_nomem(k->c);
    if (ctx_ok(k->c))
        add_guards(k, n, t, s);
    if (ctx_ok(k->c) && vec_push(&k->fresh, n))
        return n;
    node_destroy(n);
    if (ctx_ok(k->c))
        ctx_nomem(k->c);
    return NULL;
}

/* -- reports ------------------------------------------------------------------------------------------------------- */

static void note_break(call *k, const tree_node *n)
{
    if (n->term->kind == ITEM_END)
        return;
    bool known = n->term->file != NULL; /* calls through the function bp_call name none */
    const char *file = known ? n->term->file : k->g->code->is.file;
    int32_t line = known ? n->term->line : k->g->code->is.line;
    char reason[320];
    if (n->term->kind == ITEM_STEP)
        snprintf(reason, sizeof reason, "an opaque step: %s", n->term->end.step->reason);
    else
        snprintf(reason, sizeof reason, "%s asks for a value", ask_name(n->term->brk.ask));
    code_note_break(k->st, file, line, reason, true);
    log_line(k->c->rt, LOG_graph_breaks, "graph break in \"%s\" at %s:%d: %s", k->g->code->is.name, file, line, reason);
}

static void note_leaf(call *k, const trace *t, tree_node *n)
{
    const item *at = t->items.len ? &vec_last(&t->items) : NULL;
    const char *file = at && at->file ? at->file : k->g->code->is.file;
    int32_t line = at && at->file ? at->line : k->g->code->is.line;
    n->reason = arena_strdup(&n->arena, t->reason);
    if (!n->reason)
        n->reason = "it was not captured";
    code_note_break(k->st, file, line, t->reason, false);
    log_line(k->c->rt, LOG_graph_breaks, "\"%s\" runs eagerly, because of %s:%d: %s", k->g->code->is.name, file, line,
             t->reason);
}

static void log_guards(call *k, const tree_node *n)
{
    if (!log_on(k->c->rt, LOG_guards))
        return;
    buf parts = {0};
    guard_print(n->guards, &parts);
    log_line(k->c->rt, LOG_guards, "\"%s\", segment %u of a path, %u guards in %zu bytes\n%s", k->g->code->is.name,
             n->depth, guard_count(n->guards), guard_nbytes(n->guards), buf_text(&parts));
    buf_fini(&parts);
}

/* -- the path ------------------------------------------------------------------------------------------------------ */

step call_impure(call *k, const char *reason)
{
    k->impure = true;
    if (code_warn_once(k->st, LIMIT_IMPURE)) {
        snprintf(k->st->impure, sizeof k->st->impure, "%s", reason);
        atomic_store(&k->st->eager_only, (const char *)k->st->impure);
        log_warn(k->c->rt, "%s; it reads something that no guard sees, and runs eagerly from now on", reason);
    }
    return call_eager(k, "%s", reason);
}

/* A mark that the code contradicts is the caller's mistake (contract 11). */
static step check_marks(call *k, const trace *t)
{
    buf why = {0};
    step s = STEP_OK;
    if (trace_violations(t, &why)) {
        ctx_fail(k->c, BP_INVALID_ARGUMENT, "%s", buf_text(&why));
        diag_hint(&k->c->diag, "bp_maybe_mark_dynamic takes what comes; bp_mark_static makes the size a constant");
        s = STEP_FAILED;
    }
    buf_fini(&why);
    return s;
}

static step refuse(call *k, const trace *t)
{
    if (t->why == TRACE_IMPURE)
        return call_impure(k, t->reason);
    if (t->why == TRACE_DECLINED && k->g->fullgraph) {
        ctx_fail(k->c, BP_FAILED_PRECONDITION, "fullgraph: \"%s\" (%s:%d) cannot be captured whole: %s",
                 k->g->code->is.name, k->g->code->is.file, k->g->code->is.line, t->reason);
        return STEP_FAILED;
    }
    if (t->why != TRACE_REFUSED)
        return check_marks(k, t);
    if (k->g->fullgraph || !config_int(k->c->rt, KEY_SUPPRESS_ERRORS))
        return STEP_FAILED;
    log_warn(k->c->rt, "%s; suppress_errors is set, and such calls run eagerly", k->c->diag.message);
    if (k->c->diag.code == BP_RESOURCE_EXHAUSTED)
        return call_eager_on_error(k);
    diag_clear(&k->c->diag);
    return STEP_OK; /* what was captured before it ends in a leaf */
}

/* A path that is too long goes on eagerly behind its last break (C2.4). */
static void open_last(call *k, const trace *t, tree_node *n)
{
    atomic_store(&n->open, true);
    code_count(k->st, opened, 1);
    if (code_warn_once(k->st, LIMIT_BREAK))
        log_warn(k->c->rt, "\"%s\": %s; what lies behind the one at %s:%d runs eagerly", k->g->code->is.name, t->reason,
                 n->term->file ? n->term->file : "?", n->term->line);
}

step call_graft(call *k, const trace *t, tree_node *parent)
{
    step s = refuse(k, t);
    if (s != STEP_OK)
        return s;
    k->fresh.len = k->next_fresh = 0;
    k->guesses.len = 0;
    for (uint32_t i = 0; i < t->guesses.len; i++)
        if (!vec_push(&k->guesses, t->guesses.at[i]))
            return ctx_nomem(k->c), STEP_FAILED;
    tree_node *n = parent;
    for (uint32_t i = place_depth(parent); i < t->segments.len; i++) {
        bool has_term = i + 1 < t->segments.len || t->why == TRACE_RETURNED;
        if (!has_term && (t->why == TRACE_AT_BREAK || t->why == TRACE_AT_STEP || t->why == TRACE_OPEN))
            break; /* nothing is known of what follows */
        n = make_node(k, t, i, n, has_term);
        if (!n)
            return STEP_FAILED;
        log_guards(k, n);
        if (has_term)
            note_break(k, n);
        else
            note_leaf(k, t, n);
    }
    if (!k->fresh.len)
        return call_eager_here(k, "%s", t->reason);
    if (t->why == TRACE_OPEN)
        open_last(k, t, n);
    return call_supply(k, parent) == BP_OK ? STEP_OK : STEP_FAILED;
}
