/* What a callable can say of itself: counters, guards, breaks, the tree of its paths, which node runs where. */
#include "host/compile/stance.h"
#include <stdlib.h>
#include <string.h>

/* -- counters ------------------------------------------------------------------------------------------------------ */

static bp_callable_stats stats_of(const code_state *s)
{
    const node_list *roots = atomic_load(&s->root.nodes);
    return (bp_callable_stats){.graphs = code_counter(s, graphs),
                               .break_sites = code_counter(s, break_sites),
                               .outcomes = code_counter(s, outcomes),
                               .captures = code_counter(s, captures),
                               .compiles = code_counter(s, compiles),
                               .segments = code_counter(s, segments),
                               .entries = roots ? roots->n : 0,
                               .hits = code_hit_count(s),
                               .eager_calls = code_counter(s, eager_calls),
                               .recompiles = code_counter(s, recompiles),
                               .slices = code_counter(s, slices),
                               .restarts = code_counter(s, restarts),
                               .growths = code_counter(s, growths),
                               .disagreements = code_counter(s, disagreements),
                               .opened = code_counter(s, opened),
                               .resumed = code_counter(s, resumed),
                               .steps = code_counter(s, steps)};
}

bp_status bp_stats(bp_ctx *c, const bp_callable *g, bp_callable_stats *out)
{
    if (!ctx_ok(c))
        return c->diag.code;
    if (!g || !out || out->size < sizeof out->size)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "bp_stats: the callable or the result is NULL, or its size is not set");
    bp_callable_stats s = {0};
    g = stance_shown(g);
    epochs *e = g->code ? code_enter(c) : NULL;
    if (g->code && !e)
        return c->diag.code;
    if (e) {
        s = stats_of(code_state_of(g->code));
        code_leave(c, e);
    }
    uint32_t size = out->size < sizeof s ? out->size : (uint32_t)sizeof s;
    s.size = out->size;
    memcpy(out, &s, size);
    return BP_OK;
}

/* -- the tree ------------------------------------------------------------------------------------------------------ */

typedef struct { tree_node *n; uint32_t depth; outcome out; } visit_at;
typedef VEC(visit_at) visit_stack;

static bool push_nodes(visit_stack *todo, const node_list *l, uint32_t depth, outcome out)
{
    for (uint32_t i = l ? l->n : 0; i-- > 0;)
        if (!vec_push(todo, (visit_at){l->at[i], depth, out}))
            return false;
    return true;
}

static bool push_places(visit_stack *todo, const tree_node *n, uint32_t depth)
{
    const place_list *l = atomic_load(&n->places);
    for (uint32_t i = l ? l->n : 0; i-- > 0;)
        if (!push_nodes(todo, place_nodes(l->at[i]), depth, l->at[i]->out))
            return false;
    return true;
}

/* Calls each for every node, parents first. */
static bp_status each_node(bp_ctx *c, code_state *s, void (*each)(void *arg, const visit_at *v), void *arg)
{
    visit_stack todo = {0};
    bool ok = push_nodes(&todo, place_nodes(&s->root), 0, (outcome){0});
    while (ok && todo.len) {
        visit_at v = vec_pop(&todo);
        each(arg, &v);
        ok = push_places(&todo, v.n, v.depth + 1);
    }
    vec_fini(&todo);
    return ok ? BP_OK : ctx_nomem(c);
}

typedef struct { bp_ctx *c; code_state *s; buf out; uint32_t index; } report;

static void indent(buf *out, uint32_t depth)
{
    buf_pad(out, 2 * (size_t)depth, ' ');
}

static void print_term(buf *out, const tree_node *n)
{
    if (!n->term)
        buf_printf(out, "runs eagerly: %s", n->reason);
    else if (n->term->kind == ITEM_BREAK)
        buf_printf(out, "%s at %s:%d", ask_name(n->term->brk.ask), n->term->file ? n->term->file : "?", n->term->line);
    else if (n->term->kind == ITEM_STEP && !n->term->file)
        buf_printf(out, "commits; opaque step: %s", n->term->end.step->reason);
    else if (n->term->kind == ITEM_STEP)
        buf_printf(out, "commits; opaque step at %s:%d: %s", n->term->file, n->term->line, n->term->end.step->reason);
    else
        buf_printf(out, "returns %u, writes %u inputs", n->term->end.nouts, n->term->end.nwrites);
}

static void print_node(void *arg, const visit_at *v)
{
    report *r = arg;
    const segment_use *u = atomic_load(&v->n->use);
    indent(&r->out, v->depth + 1);
    if (v->n->parent) {
        outcome_print(v->out, &r->out);
        buf_puts(&r->out, ": ");
    }
    if (v->n->term)
        buf_printf(&r->out, "%s, then ", u && u->seg ? u->seg->name : "nothing to compute");
    print_term(&r->out, v->n);
    buf_puts(&r->out, atomic_load(&v->n->open) ? " (open: further values run eagerly)\n" : "\n");
}

static void print_guards(void *arg, const visit_at *v)
{
    report *r = arg;
    const item *before = v->n->parent ? v->n->parent->term : NULL;
    if (before)
        buf_printf(&r->out, "# %s at line %d gave ",
                   before->kind == ITEM_STEP ? "the opaque step" : ask_name(before->brk.ask), before->line);
    else
        buf_printf(&r->out, "# entry %u", r->index++);
    if (v->n->parent)
        outcome_print(v->out, &r->out);
    buf_putc(&r->out, '\n');
    guard_print(v->n->guards, &r->out);
}

/* -- reports ------------------------------------------------------------------------------------------------------- */

static bp_status write_report(bp_ctx *c, const bp_callable *g, bp_write_fn write, void *arg, const char *what,
                              bp_status (*fill)(report *r, const bp_callable *g))
{
    if (!ctx_ok(c))
        return c->diag.code;
    if (!g || !write)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "%s: the %s is NULL", what, g ? "writer" : "callable");
    report r = {.c = c};
    g = stance_shown(g);
    epochs *e = g->code ? code_enter(c) : NULL;
    if (g->code && !e)
        return c->diag.code;
    if (e) {
        r.s = code_state_of(g->code);
        pthread_mutex_lock(&r.s->notes);
        fill(&r, g);
        pthread_mutex_unlock(&r.s->notes);
        code_leave(c, e);
    } else {
        buf_printf(&r.out, "%s: disabled, the function runs as it is: %s\n", g->name, g->disabled_by);
    }
    if (r.out.failed)
        ctx_nomem(c);
    else if (r.out.n)
        write(arg, r.out.s, r.out.n);
    buf_fini(&r.out);
    return c->diag.code;
}

static bp_status fill_guards(report *r, const bp_callable *g)
{
    (void)g;
    return each_node(r->c, r->s, print_guards, r);
}

static uint32_t count_operators(const code_state *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->store.all.len; i++) {
        const graph *g = s->store.all.at[i]->program ? &program_graph(s->store.all.at[i]->program)->g : NULL;
        for (node_id id = g ? g->first : 0; id; id = graph_get(g, id)->next)
            n += graph_get(g, id)->op == BP_NODE_CALL_FUNCTION;
    }
    return n;
}

static void print_counters(report *r)
{
    bp_callable_stats s = stats_of(r->s);
    buf_printf(&r->out, "graphs: %u, break sites: %u, outcomes: %u\n", s.graphs, s.break_sites, s.outcomes);
    buf_printf(&r->out,
               "captures: %u, recompiles: %u, entries: %u, hits: %u, eager calls: %u (%u resumed), restarts: %u\n",
               s.captures, s.recompiles, s.entries, s.hits, s.eager_calls, s.resumed, s.restarts);
    buf_printf(&r->out, "operators: %u, capturing took %.3f ms, compiling %.3f ms\n", count_operators(r->s),
               (double)atomic_load(&r->s->capture_ns) * 1e-6, (double)atomic_load(&r->s->compile_ns) * 1e-6);
    buf_printf(&r->out, "nodes evaluated for slices: %u, growths: %u, disagreements: %u, opened breaks: %u\n", s.slices,
               s.growths, s.disagreements, s.opened);
}

static void print_breaks(report *r)
{
    for (uint32_t i = 0; i < r->s->breaks.len; i++) {
        const code_break *b = &r->s->breaks.at[i];
        buf_printf(&r->out, "%s: %s:%d: %s\n", b->is_break ? "break" : "not captured", b->file, b->line, b->reason);
    }
    for (uint32_t i = 0; i < r->s->reasons.len; i++)
        buf_printf(&r->out, "recompiled because of\n    - %s\n", r->s->reasons.at[i]);
    const char *why = atomic_load(&r->s->eager_only);
    if (why)
        buf_printf(&r->out, "runs eagerly: %s\n", why);
}

static void print_segments(report *r, const segment_store *store)
{
    for (uint32_t i = 0; i < store->all.len; i++) {
        const segment *seg = store->all.at[i];
        if (!seg->program)
            continue;
        buf_printf(&r->out, "%s: on ", seg->name);
        program_print_backends(seg->program, &r->out);
        buf_putc(&r->out, '\n');
        program_print_variants(seg->program, &r->out);
        gm_print_tabular(program_graph(seg->program), &r->out);
        buf_putc(&r->out, '\n');
    }
}

static bp_status fill_explain(report *r, const bp_callable *g)
{
    buf_printf(&r->out, "\"%s\" (%s:%d), backend \"%s\"\n", g->code->is.name, g->code->is.file, g->code->is.line,
               backend_name(g->backend));
    print_counters(r);
    print_breaks(r);
    buf_puts(&r->out, "paths:\n");
    TRY(each_node(r->c, r->s, print_node, r));
    print_segments(r, &r->s->store);
    print_segments(r, &r->s->slices);
    buf_puts(&r->out, "guards:\n");
    return each_node(r->c, r->s, print_guards, r);
}

static void print_assignments(report *r, const segment_store *store)
{
    for (uint32_t i = 0; i < store->all.len; i++) {
        const segment *seg = store->all.at[i];
        if (!seg->program)
            continue;
        buf_printf(&r->out, "%s\n", seg->name);
        program_print_assignment(seg->program, &r->out);
    }
}

static bp_status fill_assignment(report *r, const bp_callable *g)
{
    (void)g;
    print_assignments(r, &r->s->store);
    print_assignments(r, &r->s->slices);
    return BP_OK;
}

bp_status bp_print_guards(bp_ctx *c, const bp_callable *g, bp_write_fn write, void *arg)
{
    return write_report(c, g, write, arg, "bp_print_guards", fill_guards);
}

bp_status bp_print_explain(bp_ctx *c, const bp_callable *g, bp_write_fn write, void *arg)
{
    return write_report(c, g, write, arg, "bp_print_explain", fill_explain);
}

bp_status bp_print_assignment(bp_ctx *c, const bp_callable *g, bp_write_fn write, void *arg)
{
    return write_report(c, g, write, arg, "bp_print_assignment", fill_assignment);
}
