/* Recording graphs inside a path (sub.h). Handles and storages stay until the trace ends, because attributes that the
 * graph asked for first are inputs of the call; values and items go when it has been recorded. */
#include "host/capture/sub.h"
#include "host/capture/emit.h"
#include "host/op/rows.h"
#include <stdio.h>
#include <string.h>

/* -- what is refused ----------------------------------------------------------------------------------------------- */

bool sub_made(const trace *t, const fake_storage *fs)
{
    return fs->source < 0 && !fs->param && fs->number > t->sub->nstorages;
}

bp_status sub_refuse(trace *t, const char *what)
{
    bp_ctx *c = t->c;
    bp_status st = trace_stop(t, TRACE_REFUSED, "%s: \"%s\" %s, at %s:%d", t->sub->op, t->sub->name, what,
                              c->site_file ? c->site_file : "?", c->site_line);
    diag_hint(&c->diag, "it becomes a graph: keep choices on tensors (bp_where, or a bp_cond inside)");
    return st;
}

bp_status sub_refuse_step(trace *t, const char *reason)
{
    char what[400];
    snprintf(what, sizeof what, "does what runs outside of graphs (%.300s)", reason);
    return sub_refuse(t, what);
}

bp_status sub_refuse_write(trace *t, const bp_tensor *h)
{
    bp_ctx *c = t->c;
    bp_status st = trace_stop(t, TRACE_REFUSED, "%s: \"%s\" writes a tensor in place that it did not make, at %s:%d",
                              t->sub->op, t->sub->name, c->site_file ? c->site_file : "?", c->site_line);
    diag_hint(&c->diag, "its inputs and what it reads from outside must stay as they are (the tensor was made at "
                        "%s:%d): write a clone, and return it", h->file ? h->file : "?", h->line);
    return st;
}

bp_status sub_check_op(trace *t, const op_row *op)
{
    if (!(op->flags & OP_RANDOM))
        return BP_OK;
    return trace_stop(t, TRACE_DECLINED, "%s: \"%s\" calls %s, and how many random numbers a graph draws that may run "
                      "or not, or often, is not known", t->sub->op, t->sub->name, op->target);
}

/* -- beginning and ending ------------------------------------------------------------------------------------------ */

static sub_trace *begin(trace *t, const sub_spec *spec)
{
    sub_trace *s = arena_alloc(&t->arena, sizeof *s);
    if (!s)
        return trace_nomem(t), NULL;
    *s = (sub_trace){.outer = t->sub, .op = spec->op, .name = spec->name, .nitems = t->items.len,
                     .nvalues = t->values.len, .nstorages = t->storages.len, .nhandles = t->handles.len,
                     .nparams = t->params.len, .nnumbers = t->numbers.len, .nsymbols = t->symbols.len,
                     .ntold = vec_last(&t->segments).symbols.len, .views = t->views};
    s->numbers = arena_memdup(&t->arena, t->numbers.at, t->numbers.len * sizeof *s->numbers);
    if (!s->numbers)
        return trace_nomem(t), NULL;
    for (uint32_t i = 0; i < t->numbers.len; i++)
        t->numbers.at[i].segment = 0;
    t->views = (map){0};
    return t->sub = s;
}

static void end(trace *t, sub_trace *s)
{
    map_fini(&t->views);
    t->views = s->views;
    t->sub = s->outer;
    while (t->values.len > s->nvalues)
        tensor_unref(vec_pop(&t->values).fake);
    t->items.len = s->nitems;
    t->symbols.len = s->nsymbols;
    vec_last(&t->segments).symbols.len = s->ntold;
    for (uint32_t i = 0; i < s->nnumbers; i++) {
        t->numbers.at[i].segment = s->numbers[i].segment;
        t->numbers.at[i].node = s->numbers[i].node;
    }
}

/* A fake that somebody outside still holds would name a value that is no more. */
static bp_status check_escapes(trace *t, const sub_trace *s)
{
    for (uint32_t i = s->nhandles; i < t->handles.len; i++) {
        const trace_handle *h = &t->handles.at[i];
        bool made = h->fs->source < 0 && h->fs->number > s->nstorages;
        if (!made || atomic_load(&h->t->refs) <= 1u + (h->fs->param && !h->parent))
            continue;
        return trace_stop(t, TRACE_REFUSED, "%s: a tensor that \"%s\" made at %s:%d is kept beyond it", s->op, s->name,
                          h->t->file ? h->t->file : "?", h->t->line);
    }
    return BP_OK;
}

/* -- running the function ------------------------------------------------------------------------------------------ */

static bp_status add_param(trace *t, const tensor_meta *m, bool requires, bp_tensor **out)
{
    tensor_meta whole = *m;
    whole.offset = dim_const(0);
    bp_tensor *fake = tensor_new_fake(t->c, &whole);
    if (!fake)
        return trace_nomem(t);
    fake->flags = (uint8_t)((fake->flags & ~(TENSOR_REQUIRES_GRAD | TENSOR_IS_LEAF)) |
                            (requires ? TENSOR_REQUIRES_GRAD : TENSOR_IS_LEAF));
    if (!vec_push(&t->params, fake)) {
        tensor_unref(fake);
        return trace_nomem(t);
    }
    fake_storage *fs = trace_add_storage(t, -1, REF_PARAM | (t->params.len - 1));
    if (!fs)
        return BP_RESOURCE_EXHAUSTED;
    fs->param = true;
    if (!trace_add_handle(t, tensor_ref(fake), fs, 0))
        return BP_RESOURCE_EXHAUSTED;
    *out = fake;
    return BP_OK;
}

static bp_status refuse_alias(trace *t, uint32_t i, const char *of)
{
    bp_status st = trace_stop(t, TRACE_REFUSED, "%s: result %u of \"%s\" shares memory with %s", t->sub->op, i,
                              t->sub->name, of);
    diag_hint(&t->c->diag, "return a clone of it: what a graph gives must be its own");
    return st;
}

/* A value that the graph itself computes. */
static ref own_value(trace *t, ref r)
{
    ref first = 0;
    if (ref_is_node(r) && r >= t->sub->nvalues)
        return r;
    const op_row *op = op_at(ROW_clone_default);
    bp_value *args = op ? arena_array(&t->arena, op->schema->nargs, sizeof *args) : NULL;
    if (!args)
        return trace_nomem(t), 0;
    args[0] = (bp_value){.kind = BP_VALUE_NODE, .v.node = r};
    return trace_node(t, op, args, NULL, 0, &first) == BP_OK ? first : 0;
}

static bp_status take_result(trace *t, bp_tensor *const *outs, uint32_t i, sub_graph *g)
{
    bp_tensor *h = outs[i];
    tensor_meta m;
    bool ok = true;
    if (!h)
        return ctx_fail(t->c, BP_INVALID_ARGUMENT, "%s: \"%s\" gives no result %u", t->sub->op, t->sub->name, i);
    if (!trace_handle_of(t, h))
        return trace_read(t, h), t->c->diag.code; /* says what is wrong with it */
    const fake_storage *fs = t->handles.at[h->fake_id].fs;
    if (!sub_made(t, fs))
        return refuse_alias(t, i, fs->param ? "what it was given" : "a tensor that it did not make");
    for (uint32_t j = 0; j < i; j++)
        if (t->handles.at[outs[j]->fake_id].fs == fs)
            return refuse_alias(t, i, "another result");
    ref r = trace_read(t, h);
    r = r ? own_value(t, r) : 0;
    if (!r)
        return ctx_ok(t->c) ? BP_ABORTED : t->c->diag.code;
    g->outs[i] = r;
    tensor_get_meta(trace_fake(t, r), &m);
    g->metas[i] = meta_copy(&t->arena, &m, &ok);
    return ok ? BP_OK : trace_nomem(t);
}

static bp_status call(trace *t, const sub_spec *spec, sub_graph *g)
{
    bp_ctx *c = t->c;
    bp_tensor **in = arena_array(&t->arena, spec->nparams, sizeof *in);
    bp_tensor **outs = arena_array(&t->arena, spec->nouts, sizeof *outs);
    g->outs = arena_array(&t->arena, spec->nouts, sizeof *g->outs);
    g->metas = arena_array(&t->arena, spec->nouts, sizeof *g->metas);
    if (!in || !outs || !g->outs || !g->metas)
        return trace_nomem(t);
    for (uint32_t i = 0; i < spec->nparams; i++)
        TRY(add_param(t, &spec->params[i], spec->requires[i], &in[i]));
    spec->fn(c, spec->user, in, spec->nparams, outs, spec->nouts);
    TRY(c->diag.code);
    if (t->why != TRACE_RUNNING)
        return BP_ABORTED;
    for (uint32_t i = 0; i < spec->nouts; i++)
        TRY(take_result(t, outs, i, g));
    return BP_OK;
}

/* -- what is live -------------------------------------------------------------------------------------------------- */

typedef struct { trace *t; const sub_graph *g; ref_list *free; bool failed; } marking;

static bool is_inside(const sub_graph *g, ref r)
{
    return ref_is_node(r) && r >= g->first_value && r < g->first_value + g->nvalues;
}

static void mark_ref(void *arg, ref r)
{
    marking *m = arg;
    if (is_inside(m->g, r))
        m->g->live[r - m->g->first_value] = 1;
}

static bool is_live(const sub_graph *g, const item *it)
{
    bool live = (it->node.op->flags & OP_MAY_FAIL_ON_DATA) != 0;
    for (uint32_t j = 0; j < it->node.nresults; j++)
        live |= g->live[it->node.first - g->first_value + j] != 0;
    return live;
}

static bp_status find_live(trace *t, sub_graph *g)
{
    marking m = {.t = t, .g = g};
    if (!(g->live = arena_array(&t->arena, g->nvalues + 1u, 1)))
        return trace_nomem(t);
    for (uint32_t i = 0; i < g->nouts; i++)
        mark_ref(&m, g->outs[i]);
    for (uint32_t i = g->nitems; i-- > 0;)
        if (is_live(g, &g->items[i]))
            item_each_ref(&g->items[i], mark_ref, &m);
    return BP_OK;
}

static bool is_param(const sub_graph *g, ref r)
{
    return ref_kind(r) == REF_PARAM && ref_index(r) >= g->first_param && ref_index(r) < g->first_param + g->nparams;
}

static uint32_t place_of(const ref_list *list, ref r)
{
    uint32_t i = 0;
    while (i < list->len && list->at[i] != r)
        i++;
    return i;
}

static void note_free(void *arg, ref r)
{
    marking *m = arg;
    if (!is_inside(m->g, r) && !is_param(m->g, r) && place_of(m->free, r) == m->free->len)
        m->failed |= !vec_push(m->free, r);
}

bp_status sub_free_refs(trace *t, const sub_graph *g, ref_list *free)
{
    marking m = {t, g, free, false};
    for (uint32_t i = 0; i < g->nitems; i++)
        if (is_live(g, &g->items[i]))
            item_each_ref(&g->items[i], note_free, &m);
    return m.failed ? trace_nomem(t) : BP_OK;
}

bp_status sub_record(trace *t, const sub_spec *spec, sub_graph *out)
{
    bp_ctx *c = t->c;
    uint32_t depth = scope_depth(c);
    *out = (sub_graph){.name = spec->name, .first_value = t->values.len, .nparams = spec->nparams,
                       .nouts = spec->nouts, .first_param = t->params.len};
    sub_trace *s = begin(t, spec);
    if (!s)
        return BP_RESOURCE_EXHAUSTED;
    scope_push(c);
    bp_status st = call(t, spec, out);
    out->nitems = t->items.len - s->nitems;
    out->nvalues = t->values.len - s->nvalues;
    out->items = arena_memdup(&t->arena, t->items.at + s->nitems, out->nitems * sizeof(item));
    while (scope_depth(c) > depth)
        scope_pop(c);
    end(t, s);
    if (st == BP_OK && !out->items)
        st = trace_nomem(t);
    if (st == BP_OK)
        st = check_escapes(t, s);
    return st == BP_OK ? find_live(t, out) : st;
}

/* -- the graph ----------------------------------------------------------------------------------------------------- */

typedef struct { trace *t; const sub_graph *g; const ref_list *free; node_id *ids; bp_value *made; } building;

static bp_value value_of(emitter *e, ref r)
{
    const building *b = e->arg;
    if (is_inside(b->g, r))
        return b->made[r - b->g->first_value];
    uint32_t i = is_param(b->g, r) ? ref_index(r) - b->g->first_param : b->g->nparams + place_of(b->free, r);
    if (i < b->g->nparams + b->free->len)
        return graph_ref(b->ids[i]);
    e->failed = true;
    return value_none();
}

static bool requires_grad(emitter *e, ref r)
{
    const building *b = e->arg;
    for (uint32_t i = 0; is_inside(b->g, r) && i < b->g->nitems; i++) {
        const item *it = &b->g->items[i];
        if (r >= it->node.first && r < it->node.first + it->node.nresults)
            return item_requires(it, r);
    }
    return !is_inside(b->g, r) && (trace_fake(b->t, r)->flags & TENSOR_REQUIRES_GRAD);
}

/* Named as torch.fx names what has no name of its own. */
static void add_placeholders(building *b, bp_graph_module *gm)
{
    for (uint32_t i = 0; i < b->g->nparams + b->free->len; i++) {
        ref r = i < b->g->nparams ? REF_PARAM | (b->g->first_param + i) : b->free->at[i - b->g->nparams];
        char name[32];
        tensor_meta m;
        tensor_get_meta(trace_fake(b->t, r), &m);
        m = trace_numbers_of(b->t, &m); /* a graph inside has no symbols */
        snprintf(name, sizeof name, "arg%u_1", i);
        b->ids[i] = graph_placeholder(&gm->g, name, name, BP_ROLE_USER, &m);
    }
}

static bp_status fill(building *b, bp_graph_module *gm)
{
    trace *t = b->t;
    const sub_graph *g = b->g;
    emitter e = {.c = t->c, .gm = gm, .value_of = value_of, .requires = requires_grad, .arg = b};
    bp_value *outs = arena_array(&t->arena, g->nouts, sizeof *outs);
    b->ids = arena_array(&t->arena, g->nparams + b->free->len, sizeof *b->ids);
    b->made = arena_array(&t->arena, g->nvalues, sizeof *b->made);
    if (!outs || !b->ids || !b->made)
        return trace_nomem(t);
    add_placeholders(b, gm);
    for (uint32_t i = 0; i < g->nitems && !e.failed; i++)
        if (is_live(g, &g->items[i]))
            emit_item(&e, &g->items[i], g->live + (g->items[i].node.first - g->first_value),
                      b->made + (g->items[i].node.first - g->first_value));
    for (uint32_t i = 0; i < g->nouts; i++)
        outs[i] = value_of(&e, g->outs[i]);
    graph_output(&gm->g, outs, g->nouts);
    TRY(graph_status(t->c, &gm->g));
    if (e.failed)
        return ctx_ok(t->c) ? trace_nomem(t) : t->c->diag.code;
    return graph_address(t->c, gm, &gm->address);
}

static void release(void *gm)
{
    gm_unref(gm);
}

bp_graph_module *sub_build(trace *t, const sub_graph *g, const ref_list *free)
{
    bp_graph_module *gm = gm_new(t->c, g->name);
    if (!gm)
        return NULL;
    if (!arena_hold(&t->arena, release, gm)) {
        gm_unref(gm);
        return trace_nomem(t), NULL;
    }
    building b = {.t = t, .g = g, .free = free};
    return fill(&b, gm) == BP_OK ? gm : NULL;
}
