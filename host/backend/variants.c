/* The list of variants, and copies of a graph for other sizes. See variants.h.
 *
 * Entries that predicates brought stand in an array, the others in a list behind it; an entry is published by one store
 * of its pointer when it is whole, and never changed. A copy of the graph has an environment of its own, so what is
 * asked while one variant is made binds no other. */
#include "host/backend/variants.h"
#include "host/backend/config.h"
#include <stdatomic.h>
#include <string.h>

typedef struct variant {
    sym_program *conditions; /* NULL: serves all sizes */
    bp_graph_module *gm;     /* counted: the copy that it was made of */
    bp_dim *asked;           /* the conditions, of gm's environment */
    uint32_t nasked;
    void *payload;
    _Atomic(struct variant *) next;
} variant;

typedef struct {
    sym_program *holds;
    bp_dim condition;        /* of the list's graph */
    _Atomic(variant *) made;
} predicate;

/* Where a symbol is read: an input, and what of it. */
typedef struct { uint32_t input; uint8_t kind, dim; } reading;
#define NOT_READ UINT32_MAX

struct variants {
    bp_graph_module *gm;     /* counted */
    const variant_kind *kind;
    reading *readings;       /* one a symbol */
    uint32_t nsymbols, npredicates;
    predicate *predicates;
    _Atomic(variant *) first;
    atomic_uint count, failed;
    pthread_mutex_t lock;    /* making */
};

/* -- life ---------------------------------------------------------------------------------------------------------- */

static void free_variant(const variants *v, variant *x)
{
    if (!x)
        return;
    if (x->payload)
        v->kind->drop(x->payload);
    sym_program_free(x->conditions);
    free(x->asked);
    gm_unref(x->gm);
    free(x);
}

void variants_free(variants *v)
{
    if (!v)
        return;
    for (variant *x = atomic_load(&v->first), *next; x; x = next) {
        next = atomic_load(&x->next);
        free_variant(v, x);
    }
    for (uint32_t i = 0; i < v->npredicates; i++) {
        free_variant(v, atomic_load(&v->predicates[i].made));
        sym_program_free(v->predicates[i].holds);
    }
    free(v->predicates);
    free(v->readings);
    gm_unref(v->gm);
    pthread_mutex_destroy(&v->lock);
    free(v);
}

static uint32_t input_of(const graph *g, node_id at)
{
    uint32_t i = 0;
    for (node_id n = g->first; n && n != at; n = graph_get(g, n)->next)
        i += graph_get(g, n)->op == BP_NODE_PLACEHOLDER;
    return i;
}

static bp_status find_readings(bp_ctx *c, variants *v)
{
    const graph *g = &v->gm->g;
    for (uint32_t k = 0; k < v->nsymbols; k++) {
        const sym_symbol *s = sym_symbol_at(g->syms, k);
        node_id at = s->source.at;
        bool shown = at != SYM_NO_SOURCE && at < g->nodes.len && graph_get(g, at)->op == BP_NODE_PLACEHOLDER;
        v->readings[k] = (reading){shown ? input_of(g, at) : NOT_READ, s->source.kind, s->source.dim};
        if (!shown && !s->unbacked)
            return ctx_fail(c, BP_INTERNAL, "no input of graph \"%s\" shows its symbol %s", v->gm->name, s->name);
    }
    return BP_OK;
}

variants *variants_new(bp_ctx *c, bp_graph_module *gm, const variant_kind *kind)
{
    variants *v = calloc(1, sizeof *v);
    uint32_t n = gm->g.syms ? sym_symbol_count(gm->g.syms) : 0;
    if (!v || !(v->readings = calloc(n + 1u, sizeof *v->readings))) {
        free(v);
        ctx_nomem(c);
        return NULL;
    }
    v->gm = gm_ref(gm);
    v->kind = kind;
    v->nsymbols = n;
    pthread_mutex_init(&v->lock, NULL);
    if (find_readings(c, v) == BP_OK)
        return v;
    variants_free(v);
    return NULL;
}

bp_status variants_specialize_on(bp_ctx *c, variants *v, const bp_dim *conditions, uint32_t n)
{
    v->predicates = calloc(n + 1u, sizeof *v->predicates);
    if (!v->predicates)
        return ctx_nomem(c);
    for (; v->npredicates < n; v->npredicates++) {
        predicate *p = &v->predicates[v->npredicates];
        p->condition = conditions[v->npredicates];
        if (!(p->holds = sym_compile(v->gm->g.syms, &p->condition, 1)))
            return ctx_nomem(c);
    }
    return BP_OK;
}

/* -- finding ------------------------------------------------------------------------------------------------------- */

uint32_t variants_nsymbols(const variants *v)
{
    return v->nsymbols;
}

static inline int64_t read_symbol(const reading *r, const bp_tensor *t)
{
    switch (r->kind) {
    case SYM_SIZE: return t->sizes[r->dim].value;
    case SYM_STRIDE: return t->strides[r->dim].value;
    case SYM_OFFSET: return t->offset.value;
    default: return tensor_ptr(t) ? *(const int64_t *)tensor_ptr(t) : 0;
    }
}

void variants_bind(const variants *v, bp_tensor *const *inputs, int64_t *values)
{
    for (uint32_t k = 0; k < v->nsymbols; k++) {
        const reading *r = &v->readings[k];
        values[k] = r->input == NOT_READ ? 0 : read_symbol(r, inputs[r->input]);
    }
}

static bool serves(const variant *x, const int64_t *values)
{
    return !x->conditions || sym_first_false(x->conditions, values) >= x->nasked;
}

static bool holds(const predicate *p, const int64_t *values)
{
    return sym_first_false(p->holds, values) >= 1;
}

/* *pending: the predicate that holds, and has no payload yet. */
static variant *find(const variants *v, const int64_t *values, predicate **pending)
{
    *pending = NULL;
    for (uint32_t i = 0; i < v->npredicates; i++) {
        predicate *p = &v->predicates[i];
        variant *x = atomic_load_explicit(&p->made, memory_order_acquire);
        if (x && serves(x, values))
            return x;
        if (!x && holds(p, values)) {
            *pending = p;
            return NULL;
        }
    }
    variant *x = atomic_load_explicit(&v->first, memory_order_acquire);
    while (x && !serves(x, values))
        x = atomic_load_explicit(&x->next, memory_order_acquire);
    return x;
}

void *variants_find(const variants *v, const int64_t *values)
{
    predicate *pending;
    variant *x = find(v, values, &pending);
    return x ? x->payload : NULL;
}

/* -- a copy of the graph for other sizes --------------------------------------------------------------------------- */

/* The same symbols, in the same order, with other hints. */
static bp_status add_symbols(bp_ctx *c, const sym_env *from, const int64_t *values, graph_import *im)
{
    for (uint32_t k = 0; k < sym_symbol_count(from); k++) {
        sym_symbol s = *sym_symbol_at(from, k);
        s.hint = s.unbacked ? s.hint : values[k];
        im->map.at[k] = sym_add_symbol(im->g->syms, c, &s);
        TRY(ctx_ok(c) ? BP_OK : c->diag.code);
    }
    return BP_OK;
}

static bp_status import_node(graph_import *im, graph_node *n)
{
    for (uint32_t i = 0; i < n->nmetas; i++) {
        tensor_meta m = n->metas[i];
        TRY(graph_import_meta(im, &m, &n->metas[i]));
    }
    for (uint32_t i = 0; i < n->nargs; i++) {
        bp_value a = n->args[i];
        TRY(graph_import_value(im, &a, &n->args[i]));
    }
    for (uint32_t i = 0; i < n->nkwargs; i++) {
        bp_value a = n->kwargs[i].value;
        TRY(graph_import_value(im, &a, &n->kwargs[i].value));
    }
    n->number = graph_import_dim(im, n->number);
    return ctx_ok(im->c) ? BP_OK : im->c->diag.code;
}

/* Takes the hints of g's dims from values: g gets an environment anew. */
static bp_status set_hints(bp_ctx *c, graph *g, const int64_t *values)
{
    sym_env *from = g->syms;
    graph_import im;
    if (!(g->syms = sym_env_new())) {
        g->syms = from;
        return ctx_nomem(c);
    }
    bp_status st = graph_import_init(&im, c, g, from);
    st = st ? st : add_symbols(c, from, values, &im);
    st = st ? st : graph_import_facts(&im);
    for (node_id n = g->first; !st && n; n = graph_get(g, n)->next)
        st = import_node(&im, &g->nodes.at[n]);
    graph_import_fini(&im);
    sym_env_unref(from);
    return st;
}

static bp_graph_module *copy_for(bp_ctx *c, bp_graph_module *from, const int64_t *values)
{
    if (!from->g.syms)
        return gm_ref(from); /* one payload serves, and the graph is its */
    bp_graph_module *to = gm_clone(c, from);
    if (to)
        to->host = from->host;
    if (to && (!values || set_hints(c, &to->g, values) == BP_OK))
        return to;
    gm_unref(to);
    return NULL;
}

/* -- making -------------------------------------------------------------------------------------------------------- */

/* Facts from `first` on, but what each run checks for itself: of data. */
static bp_status keep_conditions(bp_ctx *c, variant *x, uint32_t first)
{
    sym_env *e = x->gm->g.syms;
    uint32_t n = e ? sym_fact_count(e) : 0;
    x->asked = calloc(n - first + 1u, sizeof *x->asked);
    if (!x->asked)
        return ctx_nomem(c);
    for (uint32_t i = first; i < n; i++) {
        bp_dim holds = sym_fact_at(e, i)->holds;
        if (!sym_is_unbacked(e, holds))
            x->asked[x->nasked++] = holds;
    }
    if (x->nasked && !(x->conditions = sym_compile(e, x->asked, x->nasked)))
        return ctx_nomem(c);
    return BP_OK;
}

/* What the predicate says of the list's graph holds of the copy: symbols have the same numbers there. */
static bp_status assume(bp_ctx *c, const variants *v, const predicate *p, sym_env *e)
{
    bp_dim *to = calloc(v->nsymbols + 1u, sizeof *to);
    if (!to)
        return ctx_nomem(c);
    for (uint32_t k = 0; k < v->nsymbols; k++)
        to[k] = sym_dim_of(e, k);
    bp_dim d = sym_import(e, c, v->gm->g.syms, p->condition, to);
    free(to);
    if (ctx_ok(c) && !sym_assume(e, c, d, SYM_GUARD) && ctx_ok(c))
        ctx_fail(c, BP_INTERNAL, "a predicate of graph \"%s\" contradicts what is known of it", v->gm->name);
    return c->diag.code;
}

static bp_status fill_variant(bp_ctx *c, variants *v, void *arg, const predicate *p, variant *x)
{
    uint32_t first = x->gm->g.syms ? sym_fact_count(x->gm->g.syms) : 0;
    sym_scope former = sym_push(x->gm->g.syms, c);
    bp_status st = p ? assume(c, v, p, x->gm->g.syms) : BP_OK;
    st = st ? st : v->kind->make(c, arg, x->gm, &x->payload);
    sym_pop(former);
    return st ? st : keep_conditions(c, x, first);
}

static bp_status make_variant(bp_ctx *c, variants *v, void *arg, const int64_t *values, const predicate *p,
                              variant **out)
{
    variant *x = calloc(1, sizeof *x);
    if (!x)
        return ctx_nomem(c);
    x->gm = copy_for(c, v->gm, values);
    bp_status st = x->gm ? fill_variant(c, v, arg, p, x) : c->diag.code;
    if (st == BP_OK)
        *out = x;
    else
        free_variant(v, x);
    return st;
}

static void publish(variants *v, predicate *p, variant *x)
{
    _Atomic(variant *) *at = p ? &p->made : &v->first;
    while (!p && atomic_load_explicit(at, memory_order_relaxed))
        at = &atomic_load_explicit(at, memory_order_relaxed)->next;
    atomic_store_explicit(at, x, memory_order_release);
    atomic_fetch_add_explicit(&v->count, 1, memory_order_relaxed);
}

/* With the lock held. */
static bp_status make_locked(bp_ctx *c, variants *v, void *arg, const int64_t *values, void **payload)
{
    predicate *pending = NULL;
    variant *x = values ? find(v, values, &pending) : NULL;
    int64_t limit = config_int(c->rt, KEY_RECOMPILE_LIMIT) + v->npredicates;
    if (!x && atomic_load(&v->count) + atomic_load(&v->failed) >= (uint64_t)limit)
        return BP_OK;
    if (!x) {
        bp_status st = make_variant(c, v, arg, values, pending, &x);
        if (st) {
            atomic_fetch_add_explicit(&v->failed, 1, memory_order_relaxed);
            return st;
        }
        publish(v, pending, x);
    }
    *payload = x->payload;
    return BP_OK;
}

bp_status variants_make(bp_ctx *c, variants *v, void *arg, const int64_t *values, void **payload)
{
    *payload = NULL;
    pthread_mutex_lock(&v->lock);
    bp_status st = make_locked(c, v, arg, values, payload);
    pthread_mutex_unlock(&v->lock);
    return st;
}

/* -- reports ------------------------------------------------------------------------------------------------------- */

uint32_t variants_count(const variants *v)
{
    return atomic_load_explicit(&v->count, memory_order_relaxed);
}

static const variant *at(const variants *v, uint32_t i)
{
    for (uint32_t k = 0; k < v->npredicates; k++) {
        const variant *x = atomic_load_explicit(&v->predicates[k].made, memory_order_acquire);
        if (x && i-- == 0)
            return x;
    }
    const variant *x = atomic_load_explicit(&v->first, memory_order_acquire);
    while (x && i--)
        x = atomic_load_explicit(&x->next, memory_order_acquire);
    return x;
}

void *variants_at(const variants *v, uint32_t i)
{
    const variant *x = at(v, i);
    return x ? x->payload : NULL;
}

void variants_print_conditions(const variants *v, uint32_t i, buf *out)
{
    const variant *x = at(v, i);
    for (uint32_t k = 0; x && k < x->nasked; k++) {
        buf_puts(out, k ? ", " : "");
        sym_print(x->gm->g.syms, x->asked[k], false, out);
    }
}
