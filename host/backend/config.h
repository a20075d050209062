/* The config: layers of ini files, read once a runtime, with the origin of each key. docs/config.md is the user's side.
 *
 * Layers, each over the one before: the system's folder (backplane.ini, then backends.d/ in byte order), the user's,
 * the file that BACKPLANE_CONFIG names, the file of bp_runtime_new, bp_set_config. A config with any error gives
 * defaults and one story, which every look-up of a backend tells. Read at the first use; afterwards only host keys
 * change (config_set). Values are read without a lock. */
#ifndef HOST_BACKEND_CONFIG_H
#define HOST_BACKEND_CONFIG_H
#include "host/base/ctx.h"
#include "sdk/base/str.h"
#include "sdk/base/vec.h"

enum config_key {
#define CONFIG_KEY(id, section, name, type, value, range, help) KEY_##id,
#include "host/backend/config_keys.def"
#undef CONFIG_KEY
    CONFIG_KEYS
};
enum config_type { CONFIG_BOOL, CONFIG_INT, CONFIG_TIME, CONFIG_CHOICE, CONFIG_TEXT, CONFIG_PATH };
/* Numbers of CHOICE keys. */
enum { FALLBACK_ERROR, FALLBACK_WARN, FALLBACK_SILENT };
enum { PROBE_OFF, PROBE_DLOPEN, PROBE_FULL };
enum { CHECK_CAPTURE_OFF, CHECK_CAPTURE_FIRST_HIT, CHECK_CAPTURE_ALWAYS };

typedef struct { const char *name, *value, *range, *help; enum config_type type; bool host; } config_row;
const config_row *config_key_row(enum config_key k);

/* Where something was written: file NULL means bp_set_config. */
typedef struct { const char *file; int line; uint32_t layer; } config_place;
typedef struct { char *text; config_place at; } config_value; /* text NULL: not given */
typedef struct { char *name; config_value value; bool optional; } config_option; /* `opt.NAME`, `?opt.NAME` */
typedef struct {
    char *name;                      /* of the backend; "" for the host */
    config_place at;                 /* its header in the highest layer that has one */
    config_value keys[CONFIG_KEYS];
    VEC(config_option) options;
} config_section;

typedef struct config {
    pthread_mutex_t lock;
    atomic_bool loaded;
    diag error;                      /* code 0: the config is good */
    config_section host;
    VEC(config_section *) backends;  /* in order of first appearance */
    VEC(char *) strings;             /* owns file names, and host values that were replaced */
    VEC(char *) files;               /* what was read, in order (borrowed from strings) */
    uint32_t nlayers;
    _Atomic int64_t number[CONFIG_KEYS];
    _Atomic(const char *) text[CONFIG_KEYS];
} config;

void config_init(config *cfg);
void config_fini(config *cfg);
/* Reads the files once. file: the last layer, or NULL. Returns the code of the config's error. Any thread. */
bp_status config_load(config *cfg, const char *file);

/* -- readers; a runtime without memory for its config has the defaults -- */
/* Of BOOL (0, 1), INT, TIME (milliseconds) and CHOICE (place in the list) keys of [host]. */
int64_t config_int(bp_runtime *rt, enum config_key k);
/* Where that number lies, for whoever reads it at every call; as long as the runtime lives. NULL: out of memory. */
const _Atomic int64_t *config_watch(bp_runtime *rt, enum config_key k);
/* Of any key of [host], as text. Valid for the runtime's life. */
const char *config_str(bp_runtime *rt, enum config_key k);
/* Whether the program itself set a key of [host] (config_set). */
bool config_is_set(bp_runtime *rt, enum config_key k);
/* Where a key of [host] was written, "FILE:LINE"; nothing when it is a default or was set by the program. */
void config_print_origin(bp_runtime *rt, enum config_key k, buf *out);
/* Fails when the config has an error, and tells its story. */
bp_status config_check(bp_ctx *c);
/* Sets a key of [host] as a file would. Errors: unknown key, with the nearest; a bad value. */
bp_status config_set(bp_ctx *c, const char *key, const char *value);
/* NULL: no such section. */
const config_section *config_backend(const config *cfg, const char *name);
/* A backend's key: its text, else the row's default ("" where it has none). */
const char *config_backend_str(const config_section *s, enum config_key k);
/* Every file read and every key that a file gave, with its origin: lines "[section] key = value  (FILE:LINE)". */
void config_print(bp_runtime *rt, buf *out);
/* What may be written: every key with its default, range and meaning, and every environment variable. */
void config_print_keys(buf *out);
/* "FILE:LINE". */
void config_print_place(config_place at, buf *out);

/* -- parts, apart for tests -- */
/* Reads one file into a layer; the first error goes to cfg->error. */
bp_status config_read_file(config *cfg, const char *path, uint32_t layer);
/* Checks a value by its row; *number is set for the types that have one. False: why says what is expected. */
bool config_parse_value(const config_row *row, const char *text, int64_t *number, char *why, size_t cap);
bp_status config_unknown_key(diag *d, const char *where, const char *key, bool host);
#endif
