/* From what the caller names to a backend that is ready: look-up, options of the config, init hook; and the check of
 * options that a call hands to it. */
#define BP_WITHOUT_OPERATORS
#include "host/backend/room.h"
#include "host/base/log.h"
#include "sdk/base/match.h"
#include <backplane/backplane.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* -- init ---------------------------------------------------------------------------------------------------------- */

/* With the backend's lock held: said belongs to it. */
static bp_status call_init(backend *b, bool *changed_word)
{
    b->said[0] = '\0';
    fp_word word = protect_begin();
    bp_status st = b->init(&b->host.api);
    *changed_word = protect_end(word);
    if (st != BP_OK && !b->said[0])
        snprintf(b->said, sizeof b->said, "returned %s and gave no reason", status_name(st));
    return st;
}

static void note_init(backend *b, bp_status st)
{
    enum backend_state state = backend_get_state(b, NULL);
    if (st != BP_OK)
        backend_set_state(b, st == BP_UNAVAILABLE ? STATE_NO_DEVICE : STATE_INIT_FAILED, "%s", b->said);
    else if (state == STATE_INIT_FAILED || state == STATE_NO_DEVICE)
        backend_set_state(b, b->kind == ORIGIN_CONFIG ? STATE_OK : STATE_REGISTERED, "%s", "");
}

bp_status backend_fire_init(bp_ctx *c, backend *b)
{
    if (!b->init)
        return BP_OK;
    char what[80];
    snprintf(what, sizeof what, "backend \"%s\"", b->name);
    TRY(serial_enter(c, b->lock, what));
    bool changed_word;
    bp_status st = call_init(b, &changed_word);
    note_init(b, st);
    if (st != BP_OK) {
        ctx_fail(c, st, "init of backend \"%s\" failed: %s", b->name, b->said);
        diag_detail(&c->diag, "It comes from %s.", b->origin);
    }
    serial_leave(b->lock);
    if (changed_word)
        log_line(c->rt, LOG_backend, "init of \"%s\" changed the floating-point control word; it was put back",
                 b->name);
    return st;
}

/* -- options ------------------------------------------------------------------------------------------------------- */

static const bp_option_row *find_option(const backend *b, const char *name)
{
    for (const bp_option_row *o = b->info.options; o && o->name; o++)
        if (strcmp(o->name, name) == 0)
            return o;
    return NULL;
}

static bool fits_type(const char *type, const char *value)
{
    char *end;
    errno = 0;
    if (strcmp(type, "int") == 0)
        return strtoll(value, &end, 10), *value && !*end && !errno;
    if (strcmp(type, "float") == 0)
        return strtod(value, &end), *value && !*end;
    if (strcmp(type, "bool") != 0)
        return true;
    int64_t on;
    char why[64];
    return config_parse_value(config_key_row(KEY_ENABLED), value, &on, why, sizeof why);
}

static const char *nearest_option(const backend *b, const char *name)
{
    const char *names[64], *near = NULL;
    uint32_t n = 0;
    for (const bp_option_row *o = b->info.options; o && o->name && n < 64; o++)
        names[n++] = o->name;
    return match_close(str_of(name), names, n, 0.6, 1, &near) ? near : NULL;
}

/* What is wrong with an option, in `why`; true: nothing. A backend without a table of options takes any. */
static bool judge_option(const backend *b, const char *name, const char *value, char *why, size_t cap)
{
    if (!b->info.options)
        return true;
    const bp_option_row *o = find_option(b, name);
    if (o && fits_type(o->type ? o->type : "string", value))
        return true;
    const char *near = o ? NULL : nearest_option(b, name);
    if (o)
        snprintf(why, cap, "option \"%s\" is set to \"%s\", expected %s", name, value, o->type);
    else
        snprintf(why, cap, "unknown option \"%s\"%s%s%s", name, near ? "; did you mean \"" : "", near ? near : "",
                 near ? "\"?" : "");
    return false;
}

bool backend_takes_option(const backend *b, const config_option *o)
{
    return !o->optional || !b->info.options || find_option(b, o->name);
}

/* Options of the config are checked at each resolution: the library that knows them is loaded now. */
static bp_status check_config_options(bp_ctx *c, const backend *b)
{
    char why[400];
    for (uint32_t i = 0; b->section && i < b->section->options.len; i++) {
        const config_option *o = &b->section->options.at[i];
        if (!backend_takes_option(b, o) || judge_option(b, o->name, o->value.text, why, sizeof why))
            continue;
        return ctx_fail(c, BP_INVALID_ARGUMENT, "%s:%d: backend \"%s\": %s", o->value.at.file, o->value.at.line,
                        b->name,
                        why);
    }
    return BP_OK;
}

static bool is_mode(const char *mode)
{
    static const char *const MODES[] = {"default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"};
    for (unsigned i = 0; i < sizeof MODES / sizeof *MODES; i++)
        if (strcmp(mode, MODES[i]) == 0)
            return true;
    return false;
}

static bp_status check_option(bp_ctx *c, const backend *b, const char *name, const char *value)
{
    char why[400];
    if (b->training.wraps)
        snprintf(why, sizeof why, "option \"%.100s\": its graphs are made by AOT, which has options of its own", name);
    else if (judge_option(b, name, value, why, sizeof why))
        return BP_OK;
    if (!b->training.wraps && !backend_is_debug(b))
        return ctx_fail(c, BP_INVALID_ARGUMENT, "backend \"%s\": %s", b->name, why);
    log_warn(c->rt, "backend \"%s\" ignores: %s", b->name, why);
    return BP_OK;
}

bp_status backend_check_options(bp_ctx *c, const backend *b, const char *const *options, const char *mode)
{
    bool has_mode = mode && strcmp(mode, "default") != 0;
    if (has_mode && !is_mode(mode))
        return ctx_fail(c, BP_INVALID_ARGUMENT,
                        "unknown mode \"%s\", expected default, reduce-overhead, max-autotune or "
                        "max-autotune-no-cudagraphs", mode);
    if (has_mode && options && options[0])
        return ctx_fail(c, BP_INVALID_ARGUMENT, "mode \"%s\" and options are both given; give one of them", mode);
    if (has_mode)
        return check_option(c, b, "mode", mode);
    for (uint32_t i = 0; options && options[i]; i += 2) {
        if (!options[i + 1])
            return ctx_fail(c, BP_INVALID_ARGUMENT, "option \"%s\" lacks its value", options[i]);
        TRY(check_option(c, b, options[i], options[i + 1]));
    }
    return BP_OK;
}

/* -- resolution ---------------------------------------------------------------------------------------------------- */

/* A static function has no symbol: it is named by its place, "program+0x1a40", as addr2line takes it. */
static const char *name_of_function(bp_compile_fn fn, char place[128])
{
    Dl_info info;
    void *p;
    memcpy(&p, &fn, sizeof p);
    if (!dladdr(p, &info))
        return "a function";
    if (info.dli_saddr == p && info.dli_sname)
        return info.dli_sname;
    const char *slash = strrchr(info.dli_fname, '/');
    snprintf(place, 128, "%.100s+0x%zx", slash ? slash + 1 : info.dli_fname,
             (size_t)((const char *)p - (const char *)info.dli_fbase));
    return place;
}

static backend *find_function(const backend_room *room, bp_compile_fn fn, bp_init_fn init)
{
    for (uint32_t i = 0; i < room->backends.len; i++) {
        backend *b = room->backends.at[i];
        if (b->kind == ORIGIN_FUNCTION && b->compile == fn && b->init == init)
            return b;
    }
    return NULL;
}

/* A function is its own identity: the same one is the same backend. */
static backend *backend_of_function(bp_ctx *c, bp_compile_fn fn, bp_init_fn init)
{
    backend_room *room = backend_room_of(c->rt);
    backend *b = NULL;
    char place[128];
    if (room) {
        pthread_mutex_lock(&room->lock);
        b = find_function(room, fn, init);
        if (!b)
            b = backend_add(room, ORIGIN_FUNCTION, name_of_function(fn, place), NULL, "the options of a compile");
        if (b && !b->compile)
            backend_set_code(b, fn, init, STATE_REGISTERED);
        pthread_mutex_unlock(&room->lock);
    }
    if (!b)
        diag_nomem(&c->diag);
    return b;
}

bp_status backend_ready(bp_ctx *c, backend *b)
{
    TRY(check_config_options(c, b));
    return backend_fire_init(c, b);
}

/* Nobody asked for it by name: it is the default, and where that was written is part of the story. */
static backend *look_up_default(bp_ctx *c)
{
    const char *name = bp_default_backend(c);
    backend *b = backend_lookup(c, name);
    buf place = {0};
    config_print_origin(c->rt, KEY_DEFAULT, &place);
    if (!b && place.n && !strcmp(name, config_str(c->rt, KEY_DEFAULT)))
        diag_while(&c->diag, "taking the default backend (%s)", buf_text(&place));
    buf_fini(&place);
    return b;
}

bp_status backend_resolve(bp_ctx *c, const char *name, bp_compile_fn fn, bp_init_fn init, backend **out)
{
    *out = NULL;
    if (!ctx_ok(c))
        return c->diag.code;
    TRY(config_check(c));
    backend *b = fn ? backend_of_function(c, fn, init) : name ? backend_lookup(c, name) : look_up_default(c);
    if (!b)
        return c->diag.code;
    TRY(backend_ready(c, b));
    *out = b;
    return BP_OK;
}
