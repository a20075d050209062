/* The registry of codes, and their states. */
#include "host/cache/code.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { epochs epochs; pthread_mutex_t lock; fn_code *codes; } cache_room; /* lock: the list of codes */

/* -- the runtime's part -------------------------------------------------------------------------------------------- */

static void *make_room(bp_runtime *rt)
{
    (void)rt;
    cache_room *room = calloc(1, sizeof *room);
    if (!room)
        return NULL;
    if (epochs_init(&room->epochs) != BP_OK || pthread_mutex_init(&room->lock, NULL)) {
        free(room);
        return NULL;
    }
    return room;
}

static void drop_room(bp_runtime *rt, void *slot)
{
    (void)rt;
    cache_room *room = slot;
    epochs_fini(&room->epochs);
    pthread_mutex_destroy(&room->lock);
    free(room);
}

static cache_room *room_of(bp_runtime *rt)
{
    return runtime_slot(rt, RT_CACHE, make_room, drop_room);
}

epochs *code_epochs(bp_runtime *rt)
{
    cache_room *room = room_of(rt);
    return room ? &room->epochs : NULL;
}

/* -- a context's part ---------------------------------------------------------------------------------------------- */

typedef struct { epochs *epochs; struct epoch_cell *cell; } cache_slot;

static void drop_slot(bp_ctx *c, void *slot)
{
    (void)c;
    cache_slot *s = slot;
    epoch_part(s->epochs, s->cell);
    free(s);
}

static cache_slot *make_slot(bp_ctx *c)
{
    cache_room *room = room_of(c->rt);
    cache_slot *s = room ? calloc(1, sizeof *s) : NULL;
    if (s)
        s->cell = epoch_join(&room->epochs);
    if (!s || !s->cell) {
        free(s);
        ctx_nomem(c);
        return NULL;
    }
    s->epochs = &room->epochs;
    c->slot[CTX_CACHE] = s;
    c->slot_destroy[CTX_CACHE] = drop_slot;
    return s;
}

epochs *code_enter(bp_ctx *c)
{
    cache_slot *s = c->slot[CTX_CACHE] ? c->slot[CTX_CACHE] : make_slot(c);
    if (!s)
        return NULL;
    epoch_enter(s->epochs, s->cell);
    return s->epochs;
}

void code_leave(bp_ctx *c, epochs *e)
{
    cache_slot *s = c->slot[CTX_CACHE];
    epoch_leave(e, s->cell);
}

/* -- states -------------------------------------------------------------------------------------------------------- */

static code_state *new_state(fn_code *k)
{
    code_state *s = calloc(1, sizeof *s);
    code_hits *hits = aligned_alloc(64, CODE_HIT_LINES * sizeof *hits);
    if (!s || !hits || pthread_mutex_init(&s->notes, NULL)) {
        free(s);
        free(hits);
        return NULL;
    }
    for (uint32_t i = 0; i < CODE_HIT_LINES; i++)
        atomic_init(&hits[i].n, 0);
    s->hits = hits;
    s->code = k;
    atomic_flag_clear(&s->claim);
    return s;
}

static void destroy_state(code_state *s)
{
    if (!s)
        return;
    place_destroy_nodes(&s->root);
    for (uint32_t i = 0; i < s->reasons.len; i++)
        free(s->reasons.at[i]);
    for (uint32_t i = 0; i < s->breaks.len; i++) {
        free(s->breaks.at[i].file);
        free(s->breaks.at[i].reason);
    }
    vec_fini(&s->reasons);
    vec_fini(&s->breaks);
    segment_store_fini(&s->store);
    segment_store_fini(&s->slices);
    frame_state_fini(&s->seen);
    pthread_mutex_destroy(&s->notes);
    free(s->hits);
    free(s);
}

static void destroy_retired(epoch_link *self)
{
    destroy_state((code_state *)self);
}

uint32_t code_hit_count(const code_state *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < CODE_HIT_LINES; i++)
        n += atomic_load_explicit(&s->hits[i].n, memory_order_relaxed);
    return n;
}

bool code_warn_once(code_state *s, enum code_limit limit)
{
    uint32_t bit = 1u << limit;
    return !(atomic_fetch_or(&s->warned, bit) & bit);
}

static code_break *find_break(code_state *s, const char *file, int32_t line, const char *reason, bool is_break)
{
    for (uint32_t i = 0; i < s->breaks.len; i++) {
        code_break *b = &s->breaks.at[i];
        if (b->line == line && b->is_break == is_break && !strcmp(b->file, file) && !strcmp(b->reason, reason))
            return b;
    }
    return NULL;
}

void code_note_break(code_state *s, const char *file, int32_t line, const char *reason, bool is_break)
{
    file = file ? file : "?";
    pthread_mutex_lock(&s->notes);
    code_break *known = find_break(s, file, line, reason, is_break);
    if (known) {
        known->times++;
    } else {
        code_break b = {strdup(file), line, strdup(reason), is_break, 1};
        bool ok = b.file && b.reason && vec_push(&s->breaks, b);
        if (ok && is_break)
            code_count(s, break_sites, 1);
        if (!ok) { /* a note less */
            free(b.file);
            free(b.reason);
        }
    }
    pthread_mutex_unlock(&s->notes);
}

void code_note_reason(code_state *s, const char *reason)
{
    char *kept = strdup(reason);
    pthread_mutex_lock(&s->notes);
    if (kept && !vec_push(&s->reasons, kept))
        free(kept);
    pthread_mutex_unlock(&s->notes);
}

void code_last_reason(code_state *s, char *dst, size_t cap)
{
    pthread_mutex_lock(&s->notes);
    snprintf(dst, cap, "%s", s->reasons.len ? vec_last(&s->reasons) : "none");
    pthread_mutex_unlock(&s->notes);
}

/* -- codes --------------------------------------------------------------------------------------------------------- */

static bool text_eq(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static bool options_eq(const char *const *a, const char *const *b)
{
    if (!a || !b)
        return (!a || !a[0]) && (!b || !b[0]);
    while (*a && *b && !strcmp(*a, *b))
        a++, b++;
    return !*a && !*b;
}

static bool identity_eq(const code_identity *a, const code_identity *b)
{
    return a->fn == b->fn && a->user == b->user && a->backend_identity == b->backend_identity &&
           a->region == b->region && a->fullgraph == b->fullgraph &&
           a->dynamic == b->dynamic && text_eq(a->mode, b->mode) &&
           options_eq(a->options, b->options);
}

static void free_options(char **options)
{
    for (char **at = options; at && *at; at++)
        free(*at);
    free(options);
}

static char **copy_options(const char *const *options)
{
    size_t n = 0;
    while (options && options[n])
        n++;
    char **to = calloc(n + 1, sizeof *to);
    for (size_t i = 0; to && i < n; i++)
        if (!(to[i] = strdup(options[i]))) {
            free_options(to);
            return NULL;
        }
    return to;
}

/* The copies are ours to free, though readers see them as const. */
static void drop_code(fn_code *k)
{
    destroy_state(atomic_load(&k->state));
    union { const char *const *seen; char **own; } options = {k->is.options};
    free_options(options.own);
    free((void *)(uintptr_t)k->is.mode);
    free((void *)(uintptr_t)k->is.name);
    free((void *)(uintptr_t)k->is.file);
    bp_runtime_unref(k->rt);
    free(k);
}

static fn_code *make_code(bp_ctx *c, const code_identity *is)
{
    static atomic_ullong ids;
    fn_code *k = calloc(1, sizeof *k);
    if (!k)
        return ctx_nomem(c), NULL;
    atomic_init(&k->refs, 1);
    k->rt = runtime_ref(c->rt);
    k->is = *is;
    k->is.options = (const char *const *)copy_options(is->options);
    k->is.mode = is->mode ? strdup(is->mode) : NULL;
    k->is.name = strdup(is->name ? is->name : "?");
    k->is.file = strdup(is->file ? is->file : "?");
    k->id = atomic_fetch_add(&ids, 1) + 1;
    code_state *s = new_state(k);
    atomic_init(&k->state, s);
    if (s && k->is.options && (k->is.mode || !is->mode) && k->is.name && k->is.file)
        return k;
    drop_code(k);
    return ctx_nomem(c), NULL;
}

static fn_code *find_locked(cache_room *room, const code_identity *is)
{
    for (fn_code *k = room->codes; k; k = k->next)
        if (identity_eq(&k->is, is)) {
            atomic_fetch_add(&k->refs, 1);
            return k;
        }
    return NULL;
}

fn_code *code_find(bp_ctx *c, const code_identity *is)
{
    cache_room *room = room_of(c->rt);
    if (!room)
        return NULL;
    pthread_mutex_lock(&room->lock);
    fn_code *k = find_locked(room, is);
    pthread_mutex_unlock(&room->lock);
    return k;
}

fn_code *code_get(bp_ctx *c, const code_identity *is)
{
    cache_room *room = room_of(c->rt);
    if (!room)
        return ctx_nomem(c), NULL;
    pthread_mutex_lock(&room->lock);
    fn_code *k = find_locked(room, is);
    if (!k && (k = make_code(c, is))) {
        k->next = room->codes;
        room->codes = k;
    }
    pthread_mutex_unlock(&room->lock);
    return k;
}

void code_unref(fn_code *k)
{
    if (!k)
        return;
    cache_room *room = room_of(k->rt);
    pthread_mutex_lock(&room->lock);
    bool last = atomic_fetch_sub(&k->refs, 1) == 1;
    for (fn_code **at = &room->codes; last && *at; at = &(*at)->next)
        if (*at == k) {
            *at = k->next;
            break;
        }
    pthread_mutex_unlock(&room->lock);
    if (!last)
        return;
    /* A call may be under way on this thread: its state waits until the call has ended. */
    code_state *s = atomic_exchange(&k->state, NULL);
    if (s) {
        s->code = NULL;
        epoch_retire(&room->epochs, &s->link, destroy_retired);
    }
    epochs *e = &room->epochs;
    bp_runtime *rt = runtime_ref(k->rt);
    drop_code(k);
    epoch_reclaim(e);
    bp_runtime_unref(rt);
}

uint64_t code_new_region(void)
{
    static atomic_ullong regions;
    return atomic_fetch_add(&regions, 1) + 1;
}

bp_status code_reset_all(bp_ctx *c)
{
    cache_room *room = room_of(c->rt);
    if (!room)
        return ctx_nomem(c);
    bp_status st = BP_OK;
    pthread_mutex_lock(&room->lock);
    for (fn_code *k = room->codes; k && st == BP_OK; k = k->next) {
        code_state *fresh = new_state(k);
        if (!fresh) {
            st = ctx_nomem(c);
            break;
        }
        code_state *old = atomic_exchange(&k->state, fresh);
        epoch_retire(&room->epochs, &old->link, destroy_retired);
    }
    pthread_mutex_unlock(&room->lock);
    epoch_reclaim(&room->epochs);
    return st;
}
