/* The end of a trace: what the call returns and writes, and what became of its fakes. */
#include "host/capture/trace.h"
#include "host/base/log.h"
#include <stdlib.h>
#include <string.h>

/* The source whose memory a handle views, or -1. */
static int32_t root_source(const trace *t, uint32_t n)
{
    while (t->handles.at[n].parent)
        n = t->handles.at[n].parent;
    return t->handles.at[n].fs->source;
}

bp_status trace_describe(trace *t, const bp_tensor *h, out_spec *out)
{
    bool ok = true;
    uint32_t n = h->fake_id;
    const trace_handle *at = &t->handles.at[n];
    tensor_meta m;
    tensor_get_meta(h, &m);
    *out = (out_spec){.handle = n, .source = root_source(t, n), .storage = at->fs->number,
                      .requires_grad = (h->flags & TENSOR_REQUIRES_GRAD) != 0, .view = at->kind};
    TRY(trace_check_history(t, h));
    out->meta = meta_copy(&t->arena, &m, &ok);
    out->is_source = out->source >= 0 && !at->parent;
    const bp_tensor *base = t->handles.at[at->fs->base].t;
    tensor_get_meta(base, &m);
    out->base = meta_copy(&t->arena, &m, &ok);
    if (out->requires_grad && out->meta.dtype != out->base.dtype)
        return trace_stop(t, TRACE_DECLINED, "a view of another type is given back, and requires grad");
    if (out->source >= 0) {
        out->meta.offset = dim_sub(t->c, h->offset, base->offset);
        return ok ? t->c->diag.code : trace_nomem(t);
    }
    out->value = at->fs->cur;
    return ok ? BP_OK : trace_nomem(t);
}

static bp_status add_outs(trace *t, const bp_frame *f, item *end)
{
    out_spec *outs = arena_array(&t->arena, f->returns.len, sizeof *outs);
    if (!outs)
        return trace_nomem(t);
    for (uint32_t i = 0; i < f->returns.len; i++) {
        const bp_tensor *h = f->returns.at[i];
        if (!h)
            continue;
        if (!trace_handle_of(t, h)) {
            trace_read(t, h); /* says what is wrong with it */
            return t->c->diag.code;
        }
        TRY(trace_describe(t, h, &outs[i]));
    }
    end->end.outs = outs;
    end->end.nouts = f->returns.len;
    if (f->spec && !(end->end.tree = arena_strdup(&t->arena, f->spec)))
        return trace_nomem(t);
    return BP_OK;
}

/* -- the state in mid-path ----------------------------------------------------------------------------------------- */

/* How many references to each handle are the trace's own. */
static uint32_t *own_refs(trace *t)
{
    uint32_t *own = arena_array(&t->arena, t->handles.len, sizeof *own);
    for (uint32_t i = 1; own && i < t->handles.len; i++)
        own[i] = 1;
    for (uint32_t i = 1; own && i < t->values.len; i++)
        if (t->values.at[i].fake && trace_handle_of(t, t->values.at[i].fake))
            own[t->values.at[i].fake->fake_id]++;
    for (uint32_t i = 0; own && i < t->flats.len; i++) /* what was made, and is an input behind a step */
        if (trace_handle_of(t, t->flats.at[i].fake))
            own[t->flats.at[i].fake->fake_id]++;
    for (uint32_t i = 0; own && i < t->params.len; i++)
        if (trace_handle_of(t, t->params.at[i]))
            own[t->params.at[i]->fake_id]++;
    return own;
}

static bool find_live(trace *t)
{
    const uint32_t *own = own_refs(t);
    if (!own)
        return false;
    for (uint32_t i = 0; i < t->storages.len; i++)
        t->storages.at[i]->lives = false;
    for (uint32_t i = 1; i < t->handles.len; i++)
        t->handles.at[i].fs->lives |= atomic_load(&t->handles.at[i].t->refs) > own[i];
    return true;
}

static bool is_made(const fake_storage *fs)
{
    return fs->source < 0 && fs->base;
}

static int by_source(const void *a, const void *b)
{
    uint32_t x = ((const write_spec *)a)->source, y = ((const write_spec *)b)->source;
    return x < y ? -1 : x > y;
}

/* A group's storage has no handle of its own: that is how it is told from its members. */
static bp_status add_writes(trace *t, item *end)
{
    write_spec *writes = arena_array(&t->arena, t->storages.len, sizeof *writes);
    if (!writes)
        return trace_nomem(t);
    for (uint32_t i = 0; i < t->storages.len; i++) {
        const fake_storage *fs = t->storages.at[i];
        if (fs->source < 0 || !fs->written || fs->cur == (REF_INPUT | (uint32_t)fs->source))
            continue;
        const bp_tensor *h = fs->flat ? NULL : t->handles.at[fs->base].t;
        bool grad = h && h->flags & TENSOR_REQUIRES_GRAD && !(h->flags & TENSOR_IS_LEAF);
        if (grad)
            TRY(trace_check_history(t, h));
        writes[end->end.nwrites++] = (write_spec){(uint32_t)fs->source, !h, grad, fs->cur};
    }
    qsort(writes, end->end.nwrites, sizeof *writes, by_source);
    end->end.writes = writes;
    return BP_OK;
}

bp_status trace_state(trace *t, item *state)
{
    out_spec *outs = arena_array(&t->arena, state->end.nouts + t->storages.len, sizeof *outs);
    if (!outs || !find_live(t))
        return trace_nomem(t);
    if (state->end.nouts)
        memcpy(outs, state->end.outs, state->end.nouts * sizeof *outs);
    for (uint32_t i = 0; i < t->storages.len; i++) {
        fake_storage *fs = t->storages.at[i];
        fs->made = 0;
        if (!is_made(fs) || !fs->lives)
            continue;
        TRY(trace_describe(t, t->handles.at[fs->base].t, &outs[state->end.nouts]));
        fs->made = ++state->end.nouts;
    }
    state->end.outs = outs;
    state->end.rng_total = t->rng;
    return add_writes(t, state);
}

/* -- the end ------------------------------------------------------------------------------------------------------- */

/* The usual end, which a call commits without looking for what is shared. */
static bool is_plain(trace *t, const item *end)
{
    bool *seen = arena_array(&t->arena, t->storages.len + 1u, sizeof *seen);
    bool *value = arena_array(&t->arena, t->values.len + 1u, sizeof *value);
    for (uint32_t i = 0; i < end->end.nouts; i++) {
        const out_spec *o = &end->end.outs[i];
        if (!o->handle || o->source >= 0 || o->view || !ref_is_node(o->value) ||
            !meta_eq(&o->meta, &o->base) || !dim_same(o->meta.offset, o->base.offset))
            return false;
        if (!seen || !value || seen[o->storage] || value[o->value])
            return false;
        seen[o->storage] = value[o->value] = true;
    }
    return !end->end.nwrites && !end->end.tree;
}

/* A path ends where it recorded last. */
static item end_of(const trace *t)
{
    uint32_t i = t->items.len;
    while (i && !t->items.at[i - 1].file)
        i--;
    const item *last = i ? &t->items.at[i - 1] : NULL;
    return (item){.kind = ITEM_END, .file = last ? last->file : NULL, .line = last ? last->line : 0};
}

bp_status trace_finish(trace *t, bp_frame *f)
{
    item end = end_of(t);
    end.end.rng_total = t->rng;
    TRY(add_outs(t, f, &end));
    TRY(add_writes(t, &end));
    TRY(trace_find_symbols(t, &end));
    end.end.is_plain = is_plain(t, &end);
    TRY(trace_emit(t, &end));
    t->why = TRACE_RETURNED;
    return BP_OK;
}

/* Fakes that somebody still holds are reported (C5.3); all handles are void from now on. */
void trace_poison(trace *t)
{
    const uint32_t *own = own_refs(t);
    for (uint32_t i = 1; i < t->handles.len; i++) {
        bp_tensor *h = t->handles.at[i].t;
        h->flags |= TENSOR_POISONED;
        if (own && atomic_load(&h->refs) > own[i])
            log_warn(t->c->rt,
                     "capturing \"%s\": a tensor made at %s:%d is stored beyond the call? return it, or copy_ "
                     "it into an argument",
                     t->r->name, h->file ? h->file : "?", h->line);
    }
    for (uint32_t i = 1; i < t->values.len; i++) {
        tensor_unref(t->values.at[i].fake);
        t->values.at[i].fake = NULL;
    }
}
