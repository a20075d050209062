/* Names: look-up with suggestions, registration from C, lists, defaults. */
#define BP_WITHOUT_OPERATORS
#include "host/backend/room.h"
#include "host/base/env.h"
#include "sdk/base/match.h"
#include <backplane/backplane.h>
#include <stdio.h>
#include <string.h>

/* -- look-up ------------------------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names in order, borrowed. false: out of memory. */
static bool list_names(backend_room *room, const char *exclude, const char ***names, uint32_t *n)
{
    VEC(const char *) found = {0};
    bool ok = true;
    pthread_mutex_lock(&room->lock);
    for (uint32_t i = 0; ok && i < room->backends.len; i++) {
        const backend *b = room->backends.at[i];
        if (b->kind != ORIGIN_FUNCTION && !backend_has_any_tag(b, exclude))
            ok = vec_push(&found, b->name);
    }
    pthread_mutex_unlock(&room->lock);
    if (found.len)
        qsort(found.at, found.len, sizeof *found.at, by_name);
    *names = found.at;
    *n = found.len;
    return ok;
}

static bp_status invalid_backend(bp_ctx *c, backend_room *room, const char *name)
{
    const char **names = NULL, *near[2];
    uint32_t n = 0, found = 0;
    if (list_names(room, "debug,experimental", &names, &n))
        found = match_close(str_of(name), names, n, 0.6, 2, near);
    free(names);
    if (found == 2)
        ctx_fail(c, BP_NOT_FOUND, "invalid backend \"%s\", did you mean \"%s\", \"%s\"?", name, near[0], near[1]);
    else if (found == 1)
        ctx_fail(c, BP_NOT_FOUND, "invalid backend \"%s\", did you mean \"%s\"?", name, near[0]);
    else
        ctx_fail(c, BP_NOT_FOUND, "invalid backend \"%s\"", name);
    diag_hint(&c->diag, "bp_list_backends, or the command `backplane backends`, lists what there is");
    return c->diag.code;
}

/* Loads a config's backend that is not loaded yet; a failed one is tried again, since what it lacked may have come. */
static bp_status make_usable(bp_ctx *c, backend *b)
{
    enum backend_state state = backend_get_state(b, NULL);
    if (state == STATE_DISABLED || state == STATE_DEGRADED)
        return backend_unusable(c, b);
    if (atomic_load_explicit(&b->loaded, memory_order_acquire))
        return BP_OK;
    char what[64];
    snprintf(what, sizeof what, "backend \"%s\"", b->name);
    TRY(serial_enter(c, &b->loading, what));
    bp_status st = atomic_load(&b->loaded) ? BP_OK : backend_load(c, b);
    serial_leave(&b->loading);
    return st;
}

backend *backend_lookup(bp_ctx *c, const char *name)
{
    backend_room *room = backend_room_of(c->rt);
    if (!room) {
        diag_nomem(&c->diag);
        return NULL;
    }
    if (config_check(c) != BP_OK)
        return NULL;
    backend *b = backend_find(c->rt, name);
    if (!b) {
        invalid_backend(c, room, name);
        return NULL;
    }
    return make_usable(c, b) == BP_OK ? b : NULL;
}

/* -- registering --------------------------------------------------------------------------------------------------- */

static bool is_name(const char *name)
{
    size_t n = name ? strlen(name) : 0;
    if (n == 0 || n > 63 || name[0] == '?')
        return false;
    for (size_t i = 0; i < n; i++)
        if (name[i] <= ' ' || name[i] == ',' || name[i] == '"' || name[i] == 0x7f)
            return false;
    return true;
}

bp_status bp_register_backend_at(bp_ctx *c, const char *name, bp_compile_fn compile, bp_init_fn init, const char *tags,
                                 const char *file, int32_t line)
{
    if (!ctx_ok(c))
        return c->diag.code;
    if (!is_name(name))
        return ctx_fail(c, BP_INVALID_ARGUMENT,
                        "bad backend name \"%s\": 1 to 63 characters without blanks, commas and quotes, no \"?\" first",
                        name ? name : "NULL");
    if (!compile)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "the compile function of backend \"%s\" is NULL", name);
    backend_room *room = backend_room_of(c->rt);
    if (!room)
        return diag_nomem(&c->diag);
    char origin[512];
    snprintf(origin, sizeof origin, "C at %s:%d", file ? file : "?", (int)line);
    pthread_mutex_lock(&room->lock);
    backend *taken = backend_find_in(room, name);
    backend *b = taken ? NULL : backend_add(room, ORIGIN_REGISTERED, name, tags, origin);
    if (b)
        backend_set_code(b, compile, init, STATE_REGISTERED);
    pthread_mutex_unlock(&room->lock);
    if (taken)
        return ctx_fail(c, BP_ALREADY_EXISTS, "duplicate backend name \"%s\": wanted by %s, taken by %s",
                        name, origin, taken->origin);
    return b ? BP_OK : diag_nomem(&c->diag);
}

/* -- lists and states ---------------------------------------------------------------------------------------------- */

bp_status bp_list_backends(bp_ctx *c, const char *exclude, bp_backend_name_fn each, void *arg)
{
    backend_room *room = backend_room_of(c->rt);
    const char **names = NULL;
    uint32_t n = 0;
    if (!room || !list_names(room, exclude ? exclude : "debug,experimental", &names, &n)) {
        free(names);
        return diag_nomem(&c->diag);
    }
    for (uint32_t i = 0; i < n; i++)
        each(arg, names[i]);
    free(names);
    return BP_OK;
}

bp_status bp_backend_state(bp_ctx *c, const char *name, int probe, const char **state, const char **why)
{
    *state = *why = "";
    TRY(config_check(c));
    backend_room *room = backend_room_of(c->rt);
    backend *b = backend_find(c->rt, name ? name : "");
    if (!b)
        return invalid_backend(c, room, name ? name : "NULL");
    if (probe && make_usable(c, b) == BP_OK)
        backend_fire_init(c, b);
    if (probe)
        diag_clear(&c->diag); /* its story is the state that is asked for */
    *state = backend_state_name(backend_get_state(b, why));
    return BP_OK;
}

/* -- defaults ------------------------------------------------------------------------------------------------------ */

bp_status bp_set_default_backend(bp_ctx *c, const char *name)
{
    backend_room *room = backend_room_of(c->rt);
    if (!room)
        return diag_nomem(&c->diag);
    if (name && !backend_find(c->rt, name)) {
        TRY(config_check(c));
        return invalid_backend(c, room, name);
    }
    const char *kept = name ? backend_keep_text(room, name) : NULL;
    if (name && !kept)
        return diag_nomem(&c->diag);
    atomic_store_explicit(&room->default_name, kept, memory_order_release);
    return BP_OK;
}

/* bp_set_default_backend, then what the program set in the config, then the environment, then the files. */
const char *bp_default_backend(bp_ctx *c)
{
    backend_room *room = backend_room_of(c->rt);
    const char *name = room ? atomic_load_explicit(&room->default_name, memory_order_acquire) : NULL;
    if (name)
        return name;
    const char *env = env_get(ENV_BACKPLANE_BACKEND);
    return env && !config_is_set(c->rt, KEY_DEFAULT) ? env : config_str(c->rt, KEY_DEFAULT);
}

bp_status bp_set_config(bp_ctx *c, const char *key, const char *value)
{
    return config_set(c, key, value);
}
