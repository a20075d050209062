/* The config's store: rows, values with their origins, and what readers see. Files are read by config_read.c. */
#include "host/backend/config.h"
#include "host/backend/room.h"
#include "host/base/env.h"
#include "sdk/base/match.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const config_row ROWS[CONFIG_KEYS] = {
#define CONFIG_IS_host true
#define CONFIG_IS_backend false
#define CONFIG_KEY(id, section, name, type, value, range, help) \
    {name, value, range, help, CONFIG_##type, CONFIG_IS_##section},
#include "host/backend/config_keys.def"
#undef CONFIG_KEY
};

const config_row *config_key_row(enum config_key k)
{
    return &ROWS[k];
}

/* -- values -------------------------------------------------------------------------------------------------------- */

static bool parse_bool(const char *text, int64_t *out)
{
    static const char *const WORDS[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};
    for (unsigned i = 0; i < sizeof WORDS / sizeof *WORDS; i++) {
        if (strcmp(text, WORDS[i]) == 0) {
            *out = i & 1;
            return true;
        }
    }
    return false;
}

/* "12", and for times "12 s" or "12 ms"; the range is checked in milliseconds. */
static bool parse_number(const config_row *row, const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    const char *digits = text + (*text == '-');
    if (*digits < '0' || *digits > '9' || (*digits == '0' && digits[1] >= '0' && digits[1] <= '9'))
        return false; /* "010" is eight to some and ten to others */
    long long v = strtoll(text, &end, 10);
    if (errno)
        return false;
    if (row->type == CONFIG_TIME) {
        str unit = str_trim(str_of(end));
        if (!str_is(unit, "s") && !str_is(unit, "ms"))
            return false;
        if (str_is(unit, "s") && __builtin_mul_overflow(v, 1000LL, &v))
            return false;
    } else if (*end) {
        return false;
    }
    long long lo = strtoll(row->range, &end, 10), hi = strtoll(end + 2, NULL, 10);
    *out = v;
    return v >= lo && v <= hi;
}

static bool parse_choice(const char *text, const char *range, int64_t *out)
{
    str rest = str_of(range);
    for (int64_t i = 0; rest.s; i++) {
        if (str_is(str_split(&rest, '|'), text)) {
            *out = i;
            return true;
        }
    }
    return false;
}

bool config_parse_value(const config_row *row, const char *text, int64_t *number, char *why, size_t cap)
{
    *number = 0;
    switch (row->type) {
    case CONFIG_BOOL:
        snprintf(why, cap, "yes or no");
        return parse_bool(text, number);
    case CONFIG_INT:
        snprintf(why, cap, "a whole number within %s, in decimal without leading zeros", row->range);
        return parse_number(row, text, number);
    case CONFIG_TIME:
        snprintf(why, cap, "a time such as \"10 s\" or \"500 ms\", within %s milliseconds", row->range);
        return parse_number(row, text, number);
    case CONFIG_CHOICE:
        snprintf(why, cap, "one of %s", row->range);
        return parse_choice(text, row->range, number);
    case CONFIG_TEXT:
    case CONFIG_PATH:
        snprintf(why, cap, "some text");
        return *text != '\0';
    }
    return false;
}

bp_status config_unknown_key(diag *d, const char *where, const char *key, bool host)
{
    const char *names[CONFIG_KEYS], *near;
    uint32_t n = 0;
    for (uint32_t i = 0; i < CONFIG_KEYS; i++)
        if (ROWS[i].host == host)
            names[n++] = ROWS[i].name;
    diag_fail(d, BP_INVALID_ARGUMENT, "%sunknown key \"%s\" in %s", where, key,
              host ? "[host]" : "a backend's section");
    if (match_close(str_of(key), names, n, 0.6, 1, &near))
        diag_hint(d, "did you mean \"%s\"? \"?%s\" would be skipped where it is unknown", near, key);
    else
        diag_hint(d, "docs/config.md lists the keys; \"?%s\" would be skipped where it is unknown", key);
    return d->code;
}

/* -- life ---------------------------------------------------------------------------------------------------------- */

void config_init(config *cfg)
{
    char why[128];
    pthread_mutex_init(&cfg->lock, NULL);
    for (uint32_t i = 0; i < CONFIG_KEYS; i++) {
        int64_t number;
        if (!config_parse_value(&ROWS[i], ROWS[i].value, &number, why, sizeof why))
            number = -1;
        atomic_init(&cfg->number[i], number);
        atomic_init(&cfg->text[i], ROWS[i].value);
    }
}

static void fini_section(config_section *s)
{
    for (uint32_t i = 0; i < CONFIG_KEYS; i++)
        free(s->keys[i].text);
    for (uint32_t i = 0; i < s->options.len; i++) {
        free(s->options.at[i].name);
        free(s->options.at[i].value.text);
    }
    vec_fini(&s->options);
    free(s->name);
}

void config_fini(config *cfg)
{
    fini_section(&cfg->host);
    for (uint32_t i = 0; i < cfg->backends.len; i++) {
        fini_section(cfg->backends.at[i]);
        free(cfg->backends.at[i]);
    }
    vec_fini(&cfg->backends);
    for (uint32_t i = 0; i < cfg->strings.len; i++)
        free(cfg->strings.at[i]);
    vec_fini(&cfg->strings);
    vec_fini(&cfg->files);
    pthread_mutex_destroy(&cfg->lock);
}

/* -- layers -------------------------------------------------------------------------------------------------------- */

static bool is_drop_in(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && name[0] != '.' && strcmp(name + n - 4, ".ini") == 0;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bp_status no_memory(config *cfg)
{
    return diag_nomem(&cfg->error);
}

/* Names of the folder's drop-ins, sorted: what readdir gives has no order. An absent folder has none. */
static bp_status list_drop_ins(config *cfg, const char *folder, char ***names, uint32_t *n)
{
    VEC(char *) found = {0};
    DIR *d = opendir(folder);
    if (!d && errno != ENOENT && errno != ENOTDIR)
        diag_fail(&cfg->error, BP_PERMISSION_DENIED, "%s: the folder cannot be read: %s", folder, strerror(errno));
    for (struct dirent *e; d && (e = readdir(d));) {
        if (!is_drop_in(e->d_name))
            continue;
        char *copy = strdup(e->d_name);
        if (!copy || !vec_push(&found, copy)) {
            free(copy);
            no_memory(cfg);
            break;
        }
    }
    if (d)
        closedir(d);
    if (found.len)
        qsort(found.at, found.len, sizeof *found.at, by_bytes);
    *names = found.at;
    *n = found.len;
    return cfg->error.code;
}

static bp_status read_path(config *cfg, uint32_t layer, bool must_exist, const char *fmt, const char *a, const char *b)
{
    buf path = {0};
    buf_printf(&path, fmt, a, b);
    bp_status st = path.failed ? no_memory(cfg) : BP_OK;
    if (!st && (must_exist || access(path.s, F_OK) == 0 || errno != ENOENT))
        st = config_read_file(cfg, path.s, layer);
    buf_fini(&path);
    return st;
}

/* backplane.ini, then the drop-ins. The folder may be absent. */
static bp_status read_folder(config *cfg, uint32_t layer, const char *folder)
{
    TRY(read_path(cfg, layer, false, "%s/backplane.ini%s", folder, ""));
    buf drop_ins = {0};
    buf_printf(&drop_ins, "%s/backends.d", folder);
    char **names = NULL;
    uint32_t n = 0;
    bp_status st = drop_ins.failed ? no_memory(cfg) : list_drop_ins(cfg, drop_ins.s, &names, &n);
    for (uint32_t i = 0; i < n; i++) {
        if (!st)
            st = read_path(cfg, layer, true, "%s/%s", drop_ins.s, names[i]);
        free(names[i]);
    }
    free(names);
    buf_fini(&drop_ins);
    return st;
}

/* The user's folder: $XDG_CONFIG_HOME/backplane, or ~/.config/backplane. */
static bp_status read_user(config *cfg, uint32_t layer)
{
    const char *xdg = env_get(ENV_XDG_CONFIG_HOME), *home = env_get(ENV_HOME);
    if (!xdg && !home)
        return BP_OK;
    buf folder = {0};
    buf_printf(&folder, "%s%s/backplane", xdg ? xdg : home, xdg ? "" : "/.config");
    bp_status st = folder.failed ? no_memory(cfg) : read_folder(cfg, layer, folder.s);
    buf_fini(&folder);
    return st;
}

static bp_status read_layers(config *cfg, const char *file)
{
    const char *system = env_get(ENV_BACKPLANE_SYSCONFDIR), *extra = env_get(ENV_BACKPLANE_CONFIG);
    TRY(read_folder(cfg, 1, system ? system : BP_SYSCONFDIR "/backplane"));
    TRY(read_user(cfg, 2));
    if (extra)
        TRY(read_path(cfg, 3, true, "%s%s", extra, ""));
    if (file)
        TRY(read_path(cfg, 4, true, "%s%s", file, ""));
    return BP_OK;
}

/* Makes the host's keys visible to readers. */
static void publish(config *cfg, enum config_key k)
{
    char why[128];
    int64_t number;
    const config_value *v = &cfg->host.keys[k];
    if (!v->text || !ROWS[k].host)
        return;
    config_parse_value(&ROWS[k], v->text, &number, why, sizeof why);
    atomic_store_explicit(&cfg->number[k], number, memory_order_relaxed);
    atomic_store_explicit(&cfg->text[k], v->text, memory_order_release);
}

bp_status config_load(config *cfg, const char *file)
{
    if (atomic_load_explicit(&cfg->loaded, memory_order_acquire))
        return cfg->error.code;
    pthread_mutex_lock(&cfg->lock);
    if (!atomic_load_explicit(&cfg->loaded, memory_order_relaxed)) {
        if (read_layers(cfg, file) == BP_OK)
            for (uint32_t i = 0; i < CONFIG_KEYS; i++)
                publish(cfg, (enum config_key)i);
        diag_while(&cfg->error, "reading the config");
        atomic_store_explicit(&cfg->loaded, true, memory_order_release);
    }
    pthread_mutex_unlock(&cfg->lock);
    return cfg->error.code;
}

/* -- readers ------------------------------------------------------------------------------------------------------- */

int64_t config_int(bp_runtime *rt, enum config_key k)
{
    char why[128];
    backend_room *room = backend_room_of(rt);
    if (room)
        return atomic_load_explicit(&room->config.number[k], memory_order_relaxed);
    int64_t number = 0;
    config_parse_value(&ROWS[k], ROWS[k].value, &number, why, sizeof why);
    return number;
}

const _Atomic int64_t *config_watch(bp_runtime *rt, enum config_key k)
{
    backend_room *room = backend_room_of(rt);
    return room ? &room->config.number[k] : NULL;
}

const char *config_str(bp_runtime *rt, enum config_key k)
{
    backend_room *room = backend_room_of(rt);
    return room ? atomic_load_explicit(&room->config.text[k], memory_order_acquire) : ROWS[k].value;
}

bool config_is_set(bp_runtime *rt, enum config_key k)
{
    backend_room *room = backend_room_of(rt);
    if (!room)
        return false;
    pthread_mutex_lock(&room->config.lock);
    const config_value *v = &room->config.host.keys[k];
    bool set = v->text && !v->at.file;
    pthread_mutex_unlock(&room->config.lock);
    return set;
}

void config_print_origin(bp_runtime *rt, enum config_key k, buf *out)
{
    backend_room *room = backend_room_of(rt);
    if (!room)
        return;
    pthread_mutex_lock(&room->config.lock);
    const config_value *v = &room->config.host.keys[k];
    if (v->text && v->at.file)
        config_print_place(v->at, out);
    pthread_mutex_unlock(&room->config.lock);
}

bp_status config_check(bp_ctx *c)
{
    backend_room *room = backend_room_of(c->rt);
    if (!room)
        return diag_nomem(&c->diag);
    const diag *e = &room->config.error;
    if (e->code == BP_OK || c->diag.code != BP_OK)
        return e->code;
    ctx_fail(c, e->code, "%s", e->message);
    if (e->detail[0])
        diag_detail(&c->diag, "%s", e->detail);
    if (e->hint[0])
        diag_hint(&c->diag, "%s", e->hint);
    diag_while(&c->diag, "reading the config");
    return e->code;
}

/* Readers may hold the former text, so it lives on in `strings`. */
static bp_status replace(config *cfg, enum config_key k, const char *text)
{
    config_value *v = &cfg->host.keys[k];
    char *copy = strdup(text);
    if (!copy || (v->text && !vec_push(&cfg->strings, v->text))) {
        free(copy);
        return BP_RESOURCE_EXHAUSTED;
    }
    *v = (config_value){copy, {NULL, 0, UINT32_MAX}};
    publish(cfg, k);
    return BP_OK;
}

bp_status config_set(bp_ctx *c, const char *key, const char *value)
{
    backend_room *room = backend_room_of(c->rt);
    if (!room)
        return diag_nomem(&c->diag);
    if (!key || !value)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "a config key and its value must not be NULL");
    uint32_t k = 0;
    while (k < CONFIG_KEYS && (!ROWS[k].host || strcmp(ROWS[k].name, key) != 0))
        k++;
    if (k == CONFIG_KEYS)
        return config_unknown_key(&c->diag, "", key, true);
    int64_t number;
    char why[128];
    if (!config_parse_value(&ROWS[k], value, &number, why, sizeof why))
        return ctx_fail(c, BP_INVALID_ARGUMENT, "config key \"%s\" is set to \"%s\", expected %s", key, value, why);
    pthread_mutex_lock(&room->config.lock);
    bp_status st = replace(&room->config, (enum config_key)k, value);
    pthread_mutex_unlock(&room->config.lock);
    return st ? diag_nomem(&c->diag) : BP_OK;
}

const config_section *config_backend(const config *cfg, const char *name)
{
    if (cfg->error.code != BP_OK)
        return NULL;
    for (uint32_t i = 0; i < cfg->backends.len; i++)
        if (strcmp(cfg->backends.at[i]->name, name) == 0)
            return cfg->backends.at[i];
    return NULL;
}

const char *config_backend_str(const config_section *s, enum config_key k)
{
    return s && s->keys[k].text ? s->keys[k].text : ROWS[k].value;
}

/* -- printing ------------------------------------------------------------------------------------------------------ */

void config_print_place(config_place at, buf *out)
{
    if (at.file)
        buf_printf(out, "%s:%d", at.file, at.line);
    else
        buf_puts(out, "bp_set_config");
}

static void print_value(const char *section, const char *key, const config_value *v, buf *out)
{
    buf_printf(out, "[%s] %s = %s  (", section, key, v->text);
    config_print_place(v->at, out);
    buf_puts(out, ")\n");
}

static void print_section(const config_section *s, buf *out)
{
    buf name = {0};
    buf_printf(&name, "%s%s", *s->name ? "backend " : "host", s->name);
    for (uint32_t i = 0; i < CONFIG_KEYS; i++)
        if (s->keys[i].text)
            print_value(buf_text(&name), ROWS[i].name, &s->keys[i], out);
    for (uint32_t i = 0; i < s->options.len; i++) {
        char key[80];
        snprintf(key, sizeof key, "%sopt.%s", s->options.at[i].optional ? "?" : "", s->options.at[i].name);
        print_value(buf_text(&name), key, &s->options.at[i].value, out);
    }
    buf_fini(&name);
}

void config_print(bp_runtime *rt, buf *out)
{
    backend_room *room = backend_room_of(rt);
    if (!room)
        return;
    config *cfg = &room->config;
    pthread_mutex_lock(&cfg->lock);
    for (uint32_t i = 0; i < cfg->files.len; i++)
        buf_printf(out, "file %s\n", cfg->files.at[i]);
    if (cfg->host.name)
        print_section(&cfg->host, out);
    for (uint32_t i = 0; i < cfg->backends.len; i++)
        print_section(cfg->backends.at[i], out);
    pthread_mutex_unlock(&cfg->lock);
}

static void print_keys_of(bool host, buf *out)
{
    static const char *const TYPES[] = {"yes|no", "number", "time", "", "text", "file"};
    buf_puts(out, host ? "[host]\n" : "[backend NAME]\n");
    for (uint32_t i = 0; i < CONFIG_KEYS; i++) {
        const config_row *row = &ROWS[i];
        if (row->host != host)
            continue;
        buf_printf(out, "%s =%s%s\n    %s%s%s: %s\n", row->name, *row->value ? " " : "", row->value, TYPES[row->type],
                   row->type == CONFIG_INT || row->type == CONFIG_TIME ? " " : "", row->range, row->help);
    }
    if (!host)
        buf_puts(out, "opt.OPTION =\n    text: the backend's option of that name\n");
}

void config_print_keys(buf *out)
{
    print_keys_of(true, out);
    print_keys_of(false, out);
    buf_puts(out, "environment\n");
    for (int i = 0; i < ENV_COUNT; i++)
        buf_printf(out, "%s\n    %s\n", env_name((enum env_var)i), env_help((enum env_var)i));
}
