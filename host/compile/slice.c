/* Heavy slices (C2.2): compiled by the callable's own chain, kept by content like segments, named __slice_k.
 *
 * A slice runs in the middle of a capture, on real tensors: the capture's modes are taken off for it, and grad is off.
 * It only guesses what a segment will compute, so any failure is answered by reference kernels. */
#include "host/compile/callable.h"
#include "host/capture/emit.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    call *k;
    slicer *s;
    const slice_plan *p;
    bp_value *made;            /* results of the items, one behind the other */
    map at;                    /* ref of a result -> its index + 1; of an input -> its index + 1 in `in` */
    VEC(ref) in;
    node_id *ids;              /* of the inputs' placeholders */
    uint32_t *order;
    bp_graph_module *gm;
    bool failed;
} slice;

/* -- the graph ----------------------------------------------------------------------------------------------------- */

static void add_input(void *arg, ref r)
{
    slice *x = arg;
    bool is_new;
    map_value *v = map_put_u64(&x->at, r, &is_new);
    x->failed |= !v;
    if (!v || !is_new)
        return;
    v->u = x->in.len + 1;
    x->failed |= !vec_push(&x->in, r);
}

/* Results get their places first, so that what is no result is an input. */
static bool place_values(slice *x)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->p->nitems; i++)
        for (uint32_t j = 0; j < x->p->items[i]->node.nresults; j++) {
            map_value *v = map_put_u64(&x->at, x->p->items[i]->node.first + j, NULL);
            x->failed |= !v;
            if (v)
                v->u = ++n;
        }
    for (uint32_t i = 0; i < x->p->nitems && !x->failed; i++)
        item_each_ref(x->p->items[i], add_input, x);
    x->made = calloc((size_t)n + 1, sizeof *x->made);
    x->ids = calloc((size_t)x->in.len + 1, sizeof *x->ids);
    x->order = calloc((size_t)x->in.len + 1, sizeof *x->order);
    return !x->failed && x->made && x->ids && x->order;
}

static bool is_input(const slice *x, ref r, uint32_t *i)
{
    const map_value *v = map_get_u64(&x->at, r);
    *i = v ? (uint32_t)v->u - 1 : 0;
    return v && *i < x->in.len && x->in.at[*i] == r;
}

static bp_value value_of(emitter *e, ref r)
{
    const slice *x = e->arg;
    uint32_t i;
    return is_input(x, r, &i) ? graph_ref(x->ids[i]) : x->made[i];
}

static bool add_placeholders(slice *x)
{
    for (uint32_t i = 0; i < x->in.len; i++) {
        char name[32];
        tensor_meta m;
        bp_tensor *t = slice_have(x->s, x->in.at[i]);
        if (!t)
            return false;
        tensor_get_meta(t, &m);
        m.offset = dim_const(0);
        snprintf(name, sizeof name, "in_%u", i);
        x->ids[i] = graph_placeholder(&x->gm->g, name, name, BP_ROLE_USER, &m);
    }
    return true;
}

static bp_status fill_graph(slice *x)
{
    graph *g = &x->gm->g;
    emitter e = {.c = x->k->c, .gm = x->gm, .value_of = value_of, .arg = x};
    bp_value *outs = arena_array(&g->arena, x->p->nouts, sizeof *outs), *made = x->made;
    if (!outs || !add_placeholders(x))
        return ctx_nomem(x->k->c);
    for (uint32_t i = 0; i < x->p->nitems && !e.failed; i++) {
        emit_item(&e, x->p->items[i], NULL, made);
        made += x->p->items[i]->node.nresults;
    }
    for (uint32_t i = 0; i < x->p->nouts; i++)
        outs[i] = value_of(&e, x->p->outs[i]);
    graph_output(g, outs, x->p->nouts);
    return e.failed ? ctx_nomem(x->k->c) : graph_status(x->k->c, g);
}

/* -- compiled, and run --------------------------------------------------------------------------------------------- */

static bp_status find(slice *x, segment **seg)
{
    call *k = x->k;
    segment_store *store = &k->st->slices;
    char name[32];
    hash128 key;
    snprintf(name, sizeof name, "__slice_%u", store->all.len);
    x->gm = gm_new(k->c, name);
    if (!x->gm || !place_values(x))
        return ctx_ok(k->c) ? ctx_nomem(k->c) : k->c->diag.code;
    x->gm->code_id = k->g->code->id;
    TRY(fill_graph(x));
    TRY(graph_hash(k->c, x->gm, x->order, &key));
    *seg = segment_find(store, key);
    if (!*seg) {
        pthread_mutex_lock(&k->st->notes);
        *seg = segment_add(store, key, name);
        pthread_mutex_unlock(&k->st->notes);
        if (!*seg)
            return ctx_nomem(k->c);
        TRY(call_set_options(k, x->gm));
        TRY(call_compile(k, x->gm, NULL, x->order, *seg));
        x->order = NULL; /* the segment's */
    }
    return (*seg)->program ? BP_OK : ctx_fail(k->c, BP_INTERNAL, "%s did not compile before", name);
}

static bp_status run(slice *x, const segment *seg, bp_tensor **values)
{
    bp_ctx *c = x->k->c;
    bp_tensor **in = calloc((size_t)x->in.len + 1, sizeof *in);
    if (!in)
        return ctx_nomem(c);
    for (uint32_t i = 0; i < x->in.len; i++) /* what was compiled may have its placeholders in another order */
        in[seg->order[i]] = slice_have(x->s, x->in.at[x->order ? x->order[i] : seg->order[i]]);
    program_io io = {.inputs = in, .ninputs = x->in.len, .outputs = values, .noutputs = x->p->nouts,
                     .rng_base = x->s->rng_base};
    bp_status st = program_run(c, seg->program, &io);
    free(in);
    return st;
}

/* The context as a plain call has it, for what lies between; and back. */
typedef struct { dispatch_mode *modes; trace *capture; ambient ambient; uint32_t capturing; } held;

static held take_modes_off(bp_ctx *c)
{
    capture_slot *slot = c->slot[CTX_CAPTURE];
    held h = {c->modes, slot ? slot->current : NULL, c->ambient, (uint32_t)c->capturing};
    c->modes = NULL;
    c->capturing = 0;
    c->ambient.grad_enabled = 0;
    if (slot)
        slot->current = NULL;
    return h;
}

static void put_modes_back(bp_ctx *c, const held *h)
{
    capture_slot *slot = c->slot[CTX_CAPTURE];
    c->modes = h->modes;
    c->capturing = h->capturing;
    c->ambient = h->ambient;
    if (slot)
        slot->current = h->capture;
}

bool call_compute_slice(void *arg, slicer *s, const slice_plan *p, bp_tensor **values)
{
    call *k = arg;
    if (k->borrowed || !call_claim(k))
        return false;
    slice x = {.k = k, .s = s, .p = p};
    segment *seg = NULL;
    held h = take_modes_off(k->c);
    bool ok = find(&x, &seg) == BP_OK && run(&x, seg, values) == BP_OK;
    put_modes_back(k->c, &h);
    if (!ok)
        diag_clear(&k->c->diag);
    gm_unref(x.gm);
    map_fini(&x.at);
    vec_fini(&x.in);
    free(x.made);
    free(x.ids);
    free(x.order);
    return ok;
}
