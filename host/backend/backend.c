/* Records of backends, and the room that holds them. A record lives as long as the runtime, so pointers to it may be
 * kept.
 *
 * Records of config sections are made with the room and loaded at their first look-up; a section that has the name of a
 * built-in one makes the config bad, and a C registration that meets any record of its name is refused, so that no name
 * ever stands for two things. */
#include "host/backend/builtin.h"
#include "host/backend/room.h"
#include "host/backend/text.h"
#include <stdio.h>
#include <string.h>

static const struct { const char *text, *help; bp_status code; char level; } STATES[] = {
#define STATE_ROW(name, text, code, level, help) {text, help, BP_##code, #level[0]},
#include "host/backend/states.def"
#undef STATE_ROW
};

const char *backend_state_name(enum backend_state state)
{
    return STATES[state].text;
}

bp_status backend_state_code(enum backend_state state)
{
    return STATES[state].code;
}

char backend_state_level(enum backend_state state)
{
    return STATES[state].level;
}

void backend_print_states(buf *out)
{
    for (unsigned i = 0; i < STATE_COUNT; i++)
        buf_printf(out, "%-18s  %-19s  %s\n", STATES[i].text, status_name(STATES[i].code), STATES[i].help);
}

/* -- records ------------------------------------------------------------------------------------------------------- */

static void destroy_backend(backend *b)
{
    wants_free(b);
    free(b->name);
    free(b->tags);
    free(b->origin);
    free(b->path);
    free(b);
}

backend *backend_add(backend_room *room, enum backend_origin kind, const char *name, const char *tags,
                     const char *origin)
{
    backend *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->room = room;
    b->kind = kind;
    b->name = strdup(name);
    b->tags = strdup(tags ? tags : "");
    b->origin = strdup(origin);
    b->id = room->backends.len + 1;
    b->forks = protect_forks();
    atomic_init(&b->why, "");
    service_fill(&b->host, b);
    if (b->name && b->tags && b->origin && vec_push(&room->backends, b))
        return b;
    destroy_backend(b);
    return NULL;
}

static bool add_builtins(backend_room *room)
{
    for (uint32_t i = 0; i < NBUILTINS; i++) {
        backend *b = backend_add(room, ORIGIN_BUILTIN, BUILTINS[i].name, BUILTINS[i].tags, "the host itself");
        if (!b)
            return false;
        b->info = (bp_backend_info){.size = sizeof b->info,
                                    .flags = BP_CONCURRENT_COMPILE | BP_CONCURRENT_RUN | BP_FORK_SAFE |
                                             BP_DYNAMIC_SHAPES,
                                    .options = BUILTIN_OPTIONS};
        b->training = BUILTINS[i].training;
        backend_set_code(b, BUILTINS[i].compile, NULL, STATE_BUILTIN);
    }
    return true;
}

backend *backend_find_in(const backend_room *room, const char *name)
{
    for (uint32_t i = 0; i < room->backends.len; i++)
        if (room->backends.at[i]->kind != ORIGIN_FUNCTION && strcmp(room->backends.at[i]->name, name) == 0)
            return room->backends.at[i];
    return NULL;
}

static bool add_section(backend_room *room, const config_section *s)
{
    diag *error = &room->config.error;
    buf origin = {0};
    config_print_place(s->at, &origin);
    const backend *taken = backend_find_in(room, s->name);
    if (taken) {
        diag_fail(error, BP_ALREADY_EXISTS, "%s: the backend \"%s\" exists already: it comes from %s",
                  buf_text(&origin),
                  s->name, taken->origin);
        diag_hint(error, "give the section another name");
        buf_fini(&origin);
        return true;
    }
    backend *b = origin.failed ? NULL
                               : backend_add(room, ORIGIN_CONFIG, s->name, config_backend_str(s, KEY_TAGS),
                                             buf_text(&origin));
    buf_fini(&origin);
    if (!b)
        return false;
    b->section = s;
    atomic_init(&b->state, STATE_UNLOADED);
    const config_row *row = config_key_row(KEY_ENABLED);
    int64_t enabled;
    char why[64];
    if (config_parse_value(row, config_backend_str(s, KEY_ENABLED), &enabled, why, sizeof why) && !enabled)
        backend_set_state(b, STATE_DISABLED, "the config says enabled = no (%s:%d)", s->keys[KEY_ENABLED].at.file,
                          s->keys[KEY_ENABLED].at.line);
    return true;
}

static void destroy_room(bp_runtime *rt, void *slot)
{
    (void)rt;
    backend_room *room = slot;
    if (!room)
        return;
    for (uint32_t i = 0; i < room->backends.len; i++)
        destroy_backend(room->backends.at[i]);
    vec_fini(&room->backends);
    for (uint32_t i = 0; i < room->texts.len; i++)
        free(room->texts.at[i]);
    vec_fini(&room->texts);
    for (uint32_t i = 0; i < sizeof room->graves / sizeof *room->graves; i++)
        free(room->graves[i]);
    map_fini(&room->retired);
    map_fini(&room->warned);
    config_fini(&room->config);
    pthread_mutex_destroy(&room->lock);
    free(room);
}

static void *make_room(bp_runtime *rt)
{
    backend_room *room = calloc(1, sizeof *room);
    if (!room)
        return NULL;
    room->rt = rt;
    pthread_mutex_init(&room->lock, NULL);
    config_init(&room->config);
    bool ok = add_builtins(room);
    if (ok && config_load(&room->config, rt->config_path) == BP_OK)
        for (uint32_t i = 0; ok && i < room->config.backends.len; i++)
            ok = add_section(room, room->config.backends.at[i]);
    if (room->config.error.code == BP_RESOURCE_EXHAUSTED)
        ok = false; /* no fault of the files: tried again at the next use */
    if (ok)
        return room;
    destroy_room(rt, room);
    return NULL;
}

backend_room *backend_room_of(bp_runtime *rt)
{
    return runtime_slot(rt, RT_BACKEND, make_room, destroy_room);
}

backend *backend_find(bp_runtime *rt, const char *name)
{
    backend_room *room = backend_room_of(rt);
    if (!room)
        return NULL;
    pthread_mutex_lock(&room->lock);
    backend *b = backend_find_in(room, name);
    pthread_mutex_unlock(&room->lock);
    return b;
}

void backend_set_code(backend *b, bp_compile_fn compile, bp_init_fn init, enum backend_state state)
{
    const void *key;
    memcpy(&key, &compile, sizeof key);
    serial *shared = serial_of(key);
    b->lock = shared ? shared : &b->loading;
    b->compile = compile;
    b->init = init;
    atomic_store_explicit(&b->why, "", memory_order_relaxed);
    atomic_store_explicit(&b->state, (int32_t)state, memory_order_release);
    atomic_store_explicit(&b->loaded, true, memory_order_release);
}

/* -- texts and states ---------------------------------------------------------------------------------------------- */

/* Reasons repeat; a text that is kept already is not kept again. */
static const char *keep(backend_room *room, const char *text)
{
    for (uint32_t i = 0; i < room->texts.len; i++)
        if (strcmp(room->texts.at[i], text) == 0)
            return room->texts.at[i];
    char *copy = strdup(text);
    if (copy && vec_push(&room->texts, copy))
        return copy;
    free(copy);
    return NULL;
}

const char *backend_keep_text(backend_room *room, const char *text)
{
    pthread_mutex_lock(&room->lock);
    const char *kept = keep(room, text);
    pthread_mutex_unlock(&room->lock);
    return kept;
}

void backend_set_state(backend *b, enum backend_state state, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const char *why = *text ? backend_keep_text(b->room, text) : "";
    atomic_store_explicit(&b->why, why ? why : "", memory_order_release);
    atomic_store_explicit(&b->state, (int32_t)state, memory_order_release);
}

enum backend_state backend_get_state(const backend *b, const char **why)
{
    if (why)
        *why = atomic_load_explicit(&b->why, memory_order_acquire);
    return (enum backend_state)atomic_load_explicit(&b->state, memory_order_acquire);
}

bp_status backend_unusable(bp_ctx *c, const backend *b)
{
    const char *why;
    enum backend_state state = backend_get_state(b, &why);
    ctx_fail(c, STATES[state].code, "backend \"%s\" is not usable (%s): %s", b->name, STATES[state].text,
             *why ? why : STATES[state].help);
    diag_detail(&c->diag, "It comes from %s.", b->origin);
    return c->diag.code;
}

/* -- facts --------------------------------------------------------------------------------------------------------- */

const char *backend_name(const backend *b)
{
    return b->name;
}

const backend_training *backend_training_of(const backend *b)
{
    return &b->training;
}

bp_status backend_set_training(bp_ctx *c, const char *name, const backend_training *t, bp_compile_fn bw,
                               bp_compile_fn inference)
{
    backend_room *room = backend_room_of(c->rt);
    backend *b = room ? backend_find(c->rt, name) : NULL;
    const char *passes = b && t->passes ? backend_keep_text(room, t->passes) : NULL;
    const char *region = b && t->region ? backend_keep_text(room, t->region) : NULL;
    if (!b || (t->passes && !passes) || (t->region && !region))
        return ctx_nomem(c);
    b->training = *t;
    b->training.passes = passes;
    b->training.region = region;
    b->info.compile_backward = bw;
    b->info.compile_inference = inference;
    b->info.whole_ops = t->whole;
    return BP_OK;
}

const char *backend_origin_text(const backend *b)
{
    return b->origin;
}

const char *backend_library(const backend *b)
{
    return atomic_load_explicit(&b->loaded, memory_order_acquire) ? b->path : NULL;
}

const char *backend_version(const backend *b)
{
    return atomic_load_explicit(&b->loaded, memory_order_acquire) ? b->info.version : NULL;
}

uint64_t backend_identity(const backend *b)
{
    return b->id;
}

bool backend_has_any_tag(const backend *b, const char *tags)
{
    str wanted = str_of(tags);
    while (wanted.s) {
        str tag = str_trim(str_split(&wanted, ',')), own = str_of(b->tags);
        while (tag.n && own.s)
            if (str_eq(str_trim(str_split(&own, ',')), tag))
                return true;
    }
    return false;
}

bool backend_has_tag(const backend *b, const char *tag)
{
    return backend_has_any_tag(b, tag);
}

bool backend_is_debug(const backend *b)
{
    return backend_has_tag(b, "debug");
}

int32_t backend_graph_kind(const backend *b)
{
    static const int32_t KINDS[] = {BP_GRAPH_CAPTURED, BP_GRAPH_FUNCTIONAL, BP_GRAPH_CORE};
    int64_t number;
    char why[64];
    const char *text = config_backend_str(b->section, KEY_GRAPH);
    if (*text && config_parse_value(config_key_row(KEY_GRAPH), text, &number, why, sizeof why))
        return KINDS[number];
    int32_t wanted = backend_wanted_graph(b);
    return wanted != BP_GRAPH_UNSET ? wanted : BP_GRAPH_CAPTURED;
}

static void print_option(const bp_option_row *o, buf *out)
{
    const struct { const char *before, *text; } parts[] = {
        {"  option   ", o->name}, {" = ", o->default_value}, {"  ", o->type ? o->type : "string"}, {": ", o->help}};
    for (int i = 0; i < 4; i++) {
        buf_puts(out, parts[i].before);
        plugin_text_add(out, parts[i].text, parts[i].text ? strlen(parts[i].text) : 0, TEXT_LINE);
    }
    buf_putc(out, '\n');
}

void backend_print_info(const backend *b, buf *out)
{
    static const char *const KINDS[] = {"", "captured", "functional", "core"};
    if (!atomic_load_explicit(&b->loaded, memory_order_acquire))
        return;
    uint32_t flags = b->info.flags;
    buf_printf(out, "  graphs   %s, %s\n", KINDS[backend_graph_kind(b)],
               b->info.supports ? "node by node" : "whole or not at all");
    buf_printf(out, "  threads  %s, %s, %s\n",
               flags & BP_CONCURRENT_COMPILE ? "several compile at once" : "one compiles at a time",
               flags & BP_CONCURRENT_RUN ? "runs of an object are concurrent" : "runs of an object are serial",
               flags & BP_FORK_SAFE ? "works in a forked child" : "not in a forked child");
    buf_printf(out, "  sizes    %s\n",
               backend_takes_dims(b) ? "symbolic" : "numbers: one that it reads is a condition");
    for (const bp_option_row *o = b->info.options; o && o->name; o++)
        print_option(o, out);
}
