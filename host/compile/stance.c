/* Stances: setting them, and the callables that a forced backend needs.
 *
 * Settings with a forced backend are kept, by their texts, as long as the runtime: what bp_set_stance has returned must
 * stay valid. A callable keeps its like for each backend that was forced on it, so that what was compiled there serves
 * again. */
#include "host/compile/stance.h"
#include "sdk/base/vec.h"
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define STANCE(ID, name, meaning) name,
#include "host/compile/stances.def"
#undef STANCE
};

const char *stance_name(enum stance kind)
{
    return names[kind];
}

/* -- settings ------------------------------------------------------------------------------------------------------ */

typedef struct {
    pthread_mutex_t lock;
    const char *now;              /* the text of the setting */
    uint32_t settings;            /* how many there were */
    VEC(char *) texts;            /* "force_backend=NAME", each once */
} stances;

static void *make_stances(bp_runtime *rt)
{
    (void)rt;
    stances *s = calloc(1, sizeof *s);
    if (s) {
        pthread_mutex_init(&s->lock, NULL);
        s->now = names[STANCE_DEFAULT];
    }
    return s;
}

static void drop_stances(bp_runtime *rt, void *slot)
{
    stances *s = slot;
    (void)rt;
    for (uint32_t i = 0; i < s->texts.len; i++)
        free(s->texts.at[i]);
    vec_fini(&s->texts);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static stances *stances_of(bp_runtime *rt)
{
    return runtime_slot(rt, RT_COMPILE, make_stances, drop_stances);
}

/* The row of a text: its name, with a backend's behind a '=' for force_backend alone. STANCE_COUNT: none. */
static enum stance kind_of(const char *text)
{
    size_t n = strcspn(text, "=");
    for (uint32_t i = 0; i < STANCE_COUNT; i++)
        if (strlen(names[i]) == n && !memcmp(names[i], text, n))
            return (text[n] == '=' && text[n + 1] != 0) == (i == STANCE_FORCE_BACKEND) ? (enum stance)i : STANCE_COUNT;
    return STANCE_COUNT;
}

static void unknown(bp_ctx *c, const char *text)
{
    buf list = {0};
    for (uint32_t i = 0; i < STANCE_COUNT; i++)
        buf_printf(&list, "%s\"%s%s\"", i ? ", " : "", names[i], i == STANCE_FORCE_BACKEND ? "=NAME" : "");
    ctx_fail(c, BP_INVALID_ARGUMENT, "unknown stance \"%s\": expected one of %s", text, buf_text(&list));
    buf_fini(&list);
}

/* The text as one that lives with the runtime. With the lock. NULL: out of memory. */
static const char *keep(stances *s, enum stance kind, const char *text)
{
    if (kind != STANCE_FORCE_BACKEND)
        return names[kind];
    for (uint32_t i = 0; i < s->texts.len; i++)
        if (!strcmp(s->texts.at[i], text))
            return s->texts.at[i];
    char *own = strdup(text);
    if (own && vec_push(&s->texts, own))
        return own;
    free(own);
    return NULL;
}

static const char *set(bp_ctx *c, stances *s, enum stance kind, const char *text)
{
    pthread_mutex_lock(&s->lock);
    const char *before = s->now, *now = keep(s, kind, text);
    if (now) {
        s->now = now;
        atomic_store(&c->rt->stance, (uint32_t)kind | (kind == STANCE_FORCE_BACKEND ? ++s->settings << 3 : 0));
    }
    pthread_mutex_unlock(&s->lock);
    return now ? before : (ctx_nomem(c), NULL);
}

const char *bp_set_stance(bp_ctx *c, const char *stance)
{
    stances *s = stances_of(c->rt);
    if (!s)
        return ctx_nomem(c), NULL;
    if (!stance)
        return bp_stance(c);
    if (c->busy) {
        ctx_fail(c, BP_FAILED_PRECONDITION, "the stance \"%s\" is set inside a function that a callable runs (%s:%d)",
                 stance, c->site_file ? c->site_file : "?", c->site_line);
        diag_hint(&c->diag, "set it around the call");
        return NULL;
    }
    enum stance kind = kind_of(stance);
    if (kind == STANCE_COUNT)
        return unknown(c, stance), NULL;
    return set(c, s, kind, stance);
}

const char *bp_stance(bp_ctx *c)
{
    stances *s = stances_of(c->rt);
    if (!s)
        return names[STANCE_DEFAULT];
    pthread_mutex_lock(&s->lock);
    const char *now = s->now;
    pthread_mutex_unlock(&s->lock);
    return now;
}

/* -- a forced backend ---------------------------------------------------------------------------------------------- */

static bp_callable *find_forced(const bp_callable *g, const backend *to)
{
    for (bp_callable *f = atomic_load(&g->forced); f; f = f->next_forced)
        if (f->backend == to)
            return f;
    return NULL;
}

/* Two threads may make the same one: both serve, and share a code. */
static void add_forced(bp_callable *g, bp_callable *f)
{
    f->next_forced = atomic_load(&g->forced);
    while (!atomic_compare_exchange_weak(&g->forced, &f->next_forced, f))
        ;
}

static bp_callable *make_forced(bp_ctx *c, bp_callable *g, const char *name)
{
    const code_identity *is = &g->code->is;
    bp_callable *f = calloc(1, sizeof *f);
    if (!f)
        return ctx_nomem(c), NULL;
    *f = (bp_callable){.refs = 1, .rt = runtime_ref(c->rt), .fn = g->fn, .user = g->user,
                       .recompile_limit = g->recompile_limit, .isolated = g->isolated, .fullgraph = g->fullgraph,
                       .rechecks = g->rechecks};
    if (callable_attach(c, f, &(bp_compile_options){.backend = name}, is->name, is->file, is->line) == BP_OK)
        return f;
    diag_while(&c->diag, "forcing the backend \"%s\" on \"%s\" (%s:%d)", name, is->name, is->file, is->line);
    bp_callable_unref(f);
    return NULL;
}

/* The backend is resolved, and its init hook fired, at the first call under each setting. */
static bp_callable *resolve(bp_ctx *c, bp_callable *g, uint32_t word)
{
    const char *text = bp_stance(c);
    if (kind_of(text) != STANCE_FORCE_BACKEND)
        return g; /* another thread has just set another one */
    bp_callable *f = make_forced(c, g, strchr(text, '=') + 1);
    bp_callable *known = f ? find_forced(g, f->backend) : NULL;
    if (known) {
        bp_callable_unref(f);
        f = known;
    } else if (f) {
        add_forced(g, f);
    }
    if (f)
        atomic_store(&f->forced_by, word);
    return f;
}

static bp_callable *forced_by(const bp_callable *g, uint32_t word)
{
    for (bp_callable *f = atomic_load(&g->forced); f; f = f->next_forced)
        if (atomic_load(&f->forced_by) == word)
            return f;
    return NULL;
}

bp_callable *stance_callable(bp_ctx *c, bp_callable *g, uint32_t word)
{
    if (g->disabled || stance_kind(word) != STANCE_FORCE_BACKEND)
        return g;
    bp_callable *f = forced_by(g, word);
    return f ? f : resolve(c, g, word);
}

const bp_callable *stance_shown(const bp_callable *g)
{
    uint32_t word = stance_word(g->rt);
    const bp_callable *f = stance_kind(word) == STANCE_FORCE_BACKEND ? forced_by(g, word) : NULL;
    return f ? f : g;
}
