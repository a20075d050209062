/* Chains. Names are checked at once, so that a typing error is seen on the first compile, whichever link would have
 * answered; libraries are loaded and init hooks fired only when a link is asked. */
#include "host/backend/builtin.h"
#include "host/backend/chain.h"
#include "host/base/log.h"
#include <stdio.h>
#include <string.h>

static chain *make(bp_ctx *c, uint32_t n)
{
    chain *ch = calloc(1, sizeof *ch);
    backend_room *room = backend_room_of(c->rt);
    if (ch && room && (ch->links = calloc(n, sizeof *ch->links))) {
        atomic_init(&ch->refs, 1);
        pthread_mutex_init(&ch->lock, NULL);
        ch->room = room;
        ch->n = n;
        return ch;
    }
    free(ch);
    diag_nomem(&c->diag);
    return NULL;
}

chain *chain_ref(chain *ch)
{
    atomic_fetch_add_explicit(&ch->refs, 1, memory_order_relaxed);
    return ch;
}

void chain_unref(chain *ch)
{
    if (!ch || atomic_fetch_sub_explicit(&ch->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < ch->n; i++) {
        free(ch->links[i].name);
        free(ch->links[i].why);
    }
    free(ch->links);
    free(ch->composers);
    pthread_mutex_destroy(&ch->lock);
    free(ch);
}

/* A built-in backend is the end of any chain already. */
chain *chain_of_backend(bp_ctx *c, backend *b)
{
    bool is_last = b->kind == ORIGIN_BUILTIN;
    chain *ch = make(c, is_last ? 1 : 2);
    if (!ch)
        return NULL;
    ch->is_direct = true;
    ch->links[0] = (chain_link){.name = strdup(b->name), .is_asked = true, .b = b};
    if (!is_last)
        ch->links[1].name = strdup(BUILTINS[0].name);
    if (ch->links[0].name && (is_last || ch->links[1].name))
        return ch;
    chain_unref(ch);
    diag_nomem(&c->diag);
    return NULL;
}

/* -- policy -------------------------------------------------------------------------------------------------------- */

bool chain_is_strict(const chain *ch)
{
    return atomic_load_explicit(&ch->room->config.number[KEY_FALLBACK], memory_order_relaxed) == FALLBACK_ERROR;
}

void chain_warn(const chain *ch, const char *fmt, ...)
{
    char text[1600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (atomic_load_explicit(&ch->room->config.number[KEY_FALLBACK], memory_order_relaxed) == FALLBACK_WARN)
        backend_warn_once(ch->room, text);
    else
        log_line(ch->room->rt, LOG_backend, "%s", text);
}

/* -- passing over -------------------------------------------------------------------------------------------------- */

/* Takes the context's failure over. */
static void pass_over(bp_ctx *c, chain *ch, chain_link *l, char level, const char *why)
{
    l->b = NULL;
    l->is_asked = true;
    l->code = c->diag.code;
    l->why = strdup(why);
    l->level = level;
    if (level == 'W')
        chain_warn(ch, "a chain passes over \"%s\": %s", l->name, why);
    else
        log_line(c->rt, LOG_backend, "a chain passes over \"%s\": %s", l->name, why);
    diag_clear(&c->diag);
}

/* A backend that is not usable says so by its state; one whose options are wrong, by the error. */
static void pass_over_state(bp_ctx *c, chain *ch, chain_link *l, const backend *b)
{
    const char *reason;
    char text[1200];
    enum backend_state state = backend_get_state(b, &reason);
    bool is_state = backend_state_code(state) != BP_OK;
    if (is_state)
        snprintf(text, sizeof text, "%s: %s", backend_state_name(state), reason);
    else
        snprintf(text, sizeof text, "%s", c->diag.message);
    pass_over(c, ch, l, is_state ? backend_state_level(state) : 'W', text);
}

/* -- chains of composers ------------------------------------------------------------------------------------------- */

static bool copy_composers(chain *ch, const compile_record *asker)
{
    uint32_t n = asker->chain->ncomposers;
    ch->composers = calloc(n + 1, sizeof(backend *));
    if (!ch->composers)
        return false;
    if (n)
        memcpy(ch->composers, asker->chain->composers, n * sizeof(backend *));
    ch->composers[n] = asker->b;
    ch->ncomposers = n + 1;
    return true;
}

/* fallback -> other -> fallback. Whoever named a backend of the circle is told so; a chain that merely has such a
 * backend for a link goes on to its next link. */
static bp_status check_circle(bp_ctx *c, const chain *ch, const backend *b)
{
    uint32_t at = 0;
    while (at < ch->ncomposers && ch->composers[at] != b)
        at++;
    if (at == ch->ncomposers)
        return BP_OK;
    buf path = {0};
    for (uint32_t i = at; i < ch->ncomposers; i++)
        buf_printf(&path, "%s -> ", ch->composers[i]->name);
    ctx_fail(c, at ? BP_FAILED_PRECONDITION : BP_INVALID_ARGUMENT, "the chain reaches itself: %s%s", buf_text(&path),
             b->name);
    diag_hint(&c->diag, "take \"%s\" out of the chain of \"%s\"", b->name, ch->composers[ch->ncomposers - 1]->name);
    buf_fini(&path);
    return c->diag.code;
}

static bp_status fill_link(bp_ctx *c, chain *ch, chain_link *l, const char *text)
{
    str name = str_trim(str_of(text));
    l->is_optional = name.n && name.s[0] == '?';
    name = l->is_optional ? str_trim((str){name.s + 1, name.n - 1}) : name;
    if (!name.n)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "a chain holds an empty name");
    if (!(l->name = str_dup(name)))
        return diag_nomem(&c->diag);
    const backend *b = backend_find(c->rt, l->name);
    if (b)
        return check_circle(c, ch, b);
    if (l->is_optional)
        ctx_fail(c, BP_NOT_FOUND, "no such backend");
    else
        backend_lookup(c, l->name); /* says so, with the nearest names */
    pass_over(c, ch, l, l->is_optional ? 'Q' : 'W', c->diag.message);
    return BP_OK;
}

chain *chain_of_names(const compile_record *asker, const char *const *names, uint32_t n)
{
    bp_ctx *c = asker->c;
    chain *ch = make(c, n);
    if (!ch)
        return NULL;
    bp_status st = copy_composers(ch, asker) ? BP_OK : diag_nomem(&c->diag);
    for (uint32_t i = 0; !st && i < n; i++)
        st = fill_link(c, ch, &ch->links[i], names[i]);
    if (!st)
        return ch;
    diag_while(&c->diag, "reading the chain of \"%s\"", asker->b->name);
    chain_unref(ch);
    return NULL;
}

/* -- asking a link ------------------------------------------------------------------------------------------------- */

backend *chain_link_ready(bp_ctx *c, chain *ch, uint32_t i)
{
    chain_link *l = &ch->links[i];
    pthread_mutex_lock(&ch->lock);
    if (!l->is_asked) {
        backend *b = backend_lookup(c, l->name);
        if (b && backend_ready(c, b) == BP_OK)
            *l = (chain_link){.name = l->name, .is_optional = l->is_optional, .is_asked = true, .b = b};
        else if ((b = backend_find(c->rt, l->name)))
            pass_over_state(c, ch, l, b);
    }
    pthread_mutex_unlock(&ch->lock);
    return l->b;
}
