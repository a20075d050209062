/* Opaque steps in a trace (C4.2, C4.3).
 *
 * A step that the call has not run yet ends the capture. In a replay the log has it: behind the commit every storage is
 * real, so what the function had made and can still reach becomes an input of the call, results become inputs too, and
 * nothing is known of any of them but the metadata, which are guarded anew. */
#include "host/capture/sub.h"
#include <stdlib.h>
#include <string.h>

void step_record_free(step_record *r)
{
    for (uint32_t i = 0; i < r->ninputs; i++)
        tensor_unref(r->inputs[i]);
    for (uint32_t i = 0; i < r->nobjects; i++)
        tensor_unref(r->objects[i].t);
    for (uint32_t i = 0; i < r->nchanges; i++) {
        tensor_unref(r->changes[i].t);
        tensor_unref(r->changes[i].was);
    }
    free(r->changes);
    free(r->inputs);
    free(r->results);
    free(r->objects);
    free(r);
}

/* -- the item ------------------------------------------------------------------------------------------------------ */

typedef struct { trace *t; out_spec *outs; uint32_t n; } objects;

static uint32_t count_tensors(const bp_value *v)
{
    uint32_t n = v->kind == BP_VALUE_TENSOR;
    for (uint32_t i = 0; v->kind == BP_VALUE_LIST && i < v->count; i++)
        n += count_tensors(&v->v.items[i]);
    return n;
}

static bool add_object(objects *o, const bp_tensor *h, bp_value *to)
{
    trace *t = o->t;
    if (h->flags & TENSOR_WRAPPED_NUMBER && !tensor_is_fake(h)) {
        *to = number_value(h);
        return true;
    }
    if (!trace_handle_of(t, h)) {
        trace_read(t, h); /* says what is wrong with it */
        return false;
    }
    uint32_t i = 0;
    while (i < o->n && o->outs[i].handle != h->fake_id)
        i++;
    if (i == o->n && trace_describe(t, h, &o->outs[o->n++]) != BP_OK)
        return false;
    *to = (bp_value){.kind = BP_VALUE_NODE, .v.node = i};
    return true;
}

static bool add_value(objects *o, const bp_value *v, bp_value *to)
{
    bool ok = true;
    *to = value_copy(&o->t->arena, v, &ok);
    if (!ok)
        return trace_nomem(o->t), false;
    if (v->kind == BP_VALUE_NODE)
        return trace_stop(o->t, TRACE_DECLINED, "an opaque step is given a symbolic number"), false;
    if (v->kind == BP_VALUE_TENSOR)
        return add_object(o, v->v.tensor, to);
    for (uint32_t i = 0; v->kind == BP_VALUE_LIST && i < v->count; i++)
        if (!add_value(o, &v->v.items[i], &((bp_value *)(uintptr_t)to->v.items)[i]))
            return false;
    return true;
}

/* spec with its tensors as places, and what the commit before it makes and writes. */
static bp_status describe_step(trace *t, step_spec *s, item *it)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->nargs; i++)
        n += count_tensors(&s->args[i]);
    objects o = {t, arena_array(&t->arena, n, sizeof *o.outs), 0};
    bp_value *args = arena_array(&t->arena, s->nargs, sizeof *args);
    if (!o.outs || !args)
        return trace_nomem(t);
    for (uint32_t i = 0; i < s->nargs; i++)
        if (!add_value(&o, &s->args[i], &args[i]))
            return ctx_ok(t->c) ? BP_ABORTED : t->c->diag.code;
    s->args = args;
    s->nobjects = o.n;
    s->ambient = t->c->ambient;
    s->reason = arena_strdup(&t->arena, s->reason);
    it->end.outs = o.outs;
    it->end.nouts = o.n;
    it->end.step = s;
    TRY(s->reason ? trace_state(t, it) : trace_nomem(t));
    return trace_find_symbols(t, it);
}

/* -- behind it ----------------------------------------------------------------------------------------------------- */

static bp_status add_sources(trace *t, const step_record *r, uint32_t nkept)
{
    for (uint32_t i = 0; i < r->ninputs; i++) {
        bp_value v = value_tensor(r->inputs[i]);
        trace_source s = {.role = BP_ROLE_USER};
        s.name = arena_printf(&t->arena, "%s_%u", i < nkept ? "made" : "given", t->sources.len);
        if (!s.name || !vec_push(&t->sources, s))
            return trace_nomem(t);
        TRY(bind_push_input(t->r->vals, &v));
    }
    return BP_OK;
}

/* Input i is laid out as handle h: what has symbols is no constant, and symbols that data tell are found there now. */
static bp_status show_sizes(trace *t, uint32_t i, const bp_tensor *h)
{
    bool ok = true, any = false;
    tensor_meta m, *own = arena_alloc(&t->arena, sizeof *own);
    tensor_get_meta(h, &m);
    m.offset = dim_const(0);
    for (uint32_t k = 0; k < 2u * h->rank; k++)
        any |= h->sizes[k].sym != 0;
    if (!any)
        return BP_OK;
    for (uint32_t d = 0; d < h->rank; d++) {
        uint32_t k = sym_symbol_of(t->env, h->sizes[d]);
        path_symbol at = {REF_INPUT | i, k, SYM_SIZE, (uint8_t)d};
        if (k != UINT32_MAX && t->slices.symbol_of(t, k))
            ok = ok && vec_push(&t->symbols, at) && vec_push(&vec_last(&t->segments).symbols, at);
    }
    if (own)
        *own = meta_copy(&t->arena, &m, &ok);
    t->sources.at[i].meta = own;
    return own && ok && vec_push(&vec_last(&t->segments).shown, i) ? BP_OK : trace_nomem(t);
}

/* A storage that the function made and can still reach is input i from now on; its handle is that input. */
static bp_status become_input(trace *t, fake_storage *fs, uint32_t i)
{
    trace_source *s = &t->sources.at[i];
    fs->source = (int32_t)i;
    s->fs = fs;
    s->handle = fs->base;
    s->touched = true;
    TRY(show_sizes(t, i, t->handles.at[fs->base].t));
    return trace_know_storage(t, bind_input(t->r->vals, i), t->handles.at[fs->base].t);
}

/* All values start anew. */
static bp_status renew_storages(trace *t, uint32_t first, uint32_t nobjects)
{
    for (uint32_t i = 0; i < t->storages.len; i++) {
        fake_storage *fs = t->storages.at[i];
        if (fs->source >= 0 && !fs->base) {
            fs->source = -1; /* overlapping inputs are apart again */
            fs->written = false;
            continue;
        }
        if (fs->source < 0 && fs->made)
            TRY(become_input(t, fs, first + fs->made - 1 - nobjects));
        fs->made = 0;
        fs->group = NULL;
        fs->written = fs->guarded = false;
        if (fs->source >= 0)
            fs->cur = REF_INPUT | (uint32_t)fs->source;
    }
    return BP_OK;
}

/* Inputs that were asked for are guarded again, and seen as they are now. */
static bp_status renew_sources(trace *t, uint32_t first)
{
    for (uint32_t i = 0; i < first; i++) {
        const trace_source *s = &t->sources.at[i];
        if (!s->handle)
            continue;
        bp_tensor *h = t->handles.at[s->handle].t;
        const bp_tensor *in = trace_layout_of(t, bind_input(t->r->vals, i));
        h->flags = (uint8_t)((h->flags & ~(TENSOR_REQUIRES_GRAD | TENSOR_IS_LEAF)) | tensor_grad_flags(in));
        if (!vec_push(&vec_last(&t->segments).touched, i))
            return trace_nomem(t);
        TRY(trace_read_again(t, i));
    }
    return BP_OK;
}

const bp_tensor *trace_layout_of(const trace *t, const bp_tensor *real)
{
    for (uint32_t i = t->nsteps; i < t->r->nsteps; i++)
        for (uint32_t j = 0; j < t->r->steps[i]->nchanges; j++)
            if (t->r->steps[i]->changes[j].t == real)
                return t->r->steps[i]->changes[j].was;
    return real;
}

static bool has_views(const trace *t, uint32_t n)
{
    for (uint32_t i = 1; i < t->handles.len; i++)
        if (t->handles.at[i].parent == n)
            return true;
    return false;
}

static bool has_value(trace *t, bp_dim d, bp_dim is)
{
    int64_t v;
    return trace_dim_value(t, d, &v) && v == is.value;
}

/* Whether metadata with symbols are, in this call, those of a tensor. */
static bool is_laid_out(trace *t, const tensor_meta *m, const tensor_meta *is)
{
    bool same = m->rank == is->rank && has_value(t, m->offset, is->offset);
    for (uint32_t d = 0; same && d < m->rank; d++)
        same = has_value(t, m->sizes[d], is->sizes[d]) && has_value(t, m->strides[d], is->strides[d]);
    return same;
}

/* Handle n is laid out as its tensor is here. What is a view, or has views, is then no longer what its chain says: such
 * a function is not captured behind the step, but it may go on for real. */
static bp_status follow_layout(trace *t, uint32_t n, const bp_tensor *real)
{
    tensor_meta was, is;
    bp_tensor *h = t->handles.at[n].t;
    bool resumes = t->r->resume && t->nbreaks == t->r->nlog;
    tensor_get_meta(h, &was);
    tensor_get_meta(trace_layout_of(t, real), &is);
    if (is_laid_out(t, &was, &is))
        return BP_OK;
    if (!resumes && !meta_is_constant(&was))
        return trace_stop(t, TRACE_DECLINED, "an opaque step has changed sizes that are symbols");
    if (!resumes && (t->handles.at[n].parent || has_views(t, n)))
        return trace_stop(t, TRACE_DECLINED, "an opaque step has changed the sizes of a tensor that has views");
    return tensor_set_layout(t->c, h, &is);
}

static bp_status follow_layouts(trace *t)
{
    for (uint32_t i = 0; i < t->sources.len; i++)
        if (t->sources.at[i].handle)
            TRY(follow_layout(t, t->sources.at[i].handle, bind_input(t->r->vals, i)));
    for (uint32_t i = 0; i < t->nsteps; i++)
        for (uint32_t j = 0; j < t->r->steps[i]->nobjects; j++)
            TRY(follow_layout(t, t->r->steps[i]->objects[j].handle, t->r->steps[i]->objects[j].t));
    return BP_OK;
}

static bp_status take_results(trace *t, const step_record *r, uint32_t first, bp_tensor **out)
{
    for (uint32_t i = 0; i < r->nresults; i++) {
        uint32_t what = r->results[i];
        if (what & RESULT_INPUT)
            out[i] = trace_source_handle(t, first + (what & ~RESULT_INPUT));
        else
            out[i] = what == RESULT_NONE ? NULL : t->handles.at[what].t;
        if (what != RESULT_NONE && !out[i])
            return ctx_ok(t->c) ? BP_ABORTED : t->c->diag.code;
    }
    return BP_OK;
}

static bp_status go_on(trace *t, const item *it, bp_tensor ***results, uint32_t *nresults)
{
    const step_record *r = t->r->steps[t->nsteps++];
    uint32_t first = t->sources.len, nobjects = it->end.step->nobjects;
    *nresults = r->nresults;
    *results = arena_array(&t->arena, r->nresults, sizeof **results);
    if (!*results)
        return trace_nomem(t);
    map_fini(&t->asked);
    t->asked = (map){0};
    bind_drop_bases(t->r->vals);
    TRY(add_sources(t, r, it->end.nouts - nobjects));
    TRY(renew_storages(t, first, nobjects));
    TRY(trace_renew_numbers(t));
    TRY(follow_layouts(t)); /* before anything is guarded: it may end the capture */
    TRY(renew_sources(t, first));
    return take_results(t, r, first, *results);
}

/* -- the step ------------------------------------------------------------------------------------------------------ */

static bp_status refuse_step(trace *t, const char *reason)
{
    bp_ctx *c = t->c;
    if (c->site_file)
        trace_stop(t, TRACE_REFUSED, "fullgraph: an opaque step at %s:%d: %s", c->site_file, c->site_line, reason);
    else
        trace_stop(t, TRACE_REFUSED, "fullgraph: an opaque step in \"%s\": %s", t->r->name, reason);
    diag_hint(&c->diag, "take it out of the function, or compile without fullgraph");
    return c->diag.code;
}

bp_status trace_step(trace *t, const step_spec *spec, bp_tensor ***results, uint32_t *nresults)
{
    item it = {.kind = ITEM_STEP, .file = t->c->site_file, .line = t->c->site_line};
    if (t->why != TRACE_RUNNING || !ctx_ok(t->c))
        return ctx_ok(t->c) ? BP_ABORTED : t->c->diag.code;
    if (t->sub)
        return sub_refuse_step(t, spec->reason);
    if (t->r->fullgraph)
        return refuse_step(t, spec->reason);
    if (trace_seeded(t))
        return trace_stop(t, TRACE_DECLINED, "\"%s\" seeds the generator", t->r->name);
    step_spec *own = arena_memdup(&t->arena, spec, sizeof *own);
    if (!own)
        return trace_nomem(t);
    TRY(trace_hold_numbers(t));
    bp_status st = describe_step(t, own, &it);
    trace_release_numbers(t);
    TRY(st);
    TRY(trace_emit(t, &it));
    t->rng = dim_const(0); /* the generator is read again behind it (C7) */
    TRY(trace_cut(t));
    if (t->nbreaks++ >= t->r->nlog) {
        bool open = t->nbreaks > t->r->break_limit;
        return trace_stop(t, open ? TRACE_OPEN : TRACE_AT_STEP, "%s", own->reason);
    }
    TRY(go_on(t, &it, results, nresults));
    return !t->r->resume || t->nbreaks < t->r->nlog ? BP_OK : trace_go_real(t);
}
