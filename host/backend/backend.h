/* Backends: registry, look-up, loading, init hooks. docs/config.md has the user's side.
 *
 * A backend is known by name from one of three origins: registered from C, a config section, a drop-in's section.
 * Config ones are loaded at first look-up and stay mapped for the life of the process. Each has a state
 * (states.def) with its reason, shown by `backplane backends`. A backend is compiled with under its own re-entrant
 * lock. */
#ifndef HOST_BACKEND_BACKEND_H
#define HOST_BACKEND_BACKEND_H
#include "host/graph/graph.h"
#ifndef BP_NO_NOTE
#define BP_NO_NOTE /* the host is no plugin */
#endif
#include <backplane/plugin.h>

typedef struct backend backend;
enum backend_state {
#define STATE_ROW(name, text, code, level, help) STATE_##name,
#include "host/backend/states.def"
#undef STATE_ROW
    STATE_COUNT
};

/* Finds a backend by name: registered, then config (loaded and registered), else an error with close matches. Loading
 * problems are errors that name the state. Does not fire init. NULL: the context says why. */
backend *backend_lookup(bp_ctx *c, const char *name);
/* What bp_compile does: function, name or default -> a backend, then its init hook, every time. */
bp_status backend_resolve(bp_ctx *c, const char *name, bp_compile_fn fn, bp_init_fn init, backend **out);
const char *backend_name(const backend *b);     /* a static function's: its place, "program+0x1a40" */

/* How graphs that train are made for a backend: a built-in one's row says it, or bp_aot_autograd. */
typedef struct {
    bool tape;              /* they are not differentiated ahead of time: their operators run under the tape */
    uint8_t partition;      /* 0: as the config says; else 1 + PARTITION_* */
    bool decomposes;        /* in core ATen */
    bool wraps;             /* made by bp_aot_autograd: options and modes are ignored, with a warning */
    const char *passes;     /* host passes that run first, by commas, or NULL */
    const char *region;     /* begins the names of its graphs, or NULL */
    const char *const *whole; /* targets that stay whole, NULL-terminated, or NULL */
} backend_training;
const backend_training *backend_training_of(const backend *b);
/* For a backend that has just been registered from C: texts are copied, whole is kept; bw and inference may be NULL. */
bp_status backend_set_training(bp_ctx *c, const char *name, const backend_training *t, bp_compile_fn bw,
                               bp_compile_fn inference);
enum backend_state backend_get_state(const backend *b, const char **why);
/* Where it comes from: "the host itself", "C at FILE:LINE", "FILE:LINE" of its section. */
const char *backend_origin_text(const backend *b);
bool backend_is_debug(const backend *b);
bool backend_has_tag(const backend *b, const char *tag);
/* Which graph it wants: the config's `graph`, else backend_info's, else captured. */
int32_t backend_graph_kind(const backend *b);
/* Every state with the code that it gives a look-up, and its meaning. */
void backend_print_states(buf *out);
/* Identity for cache keys: equal for two look-ups of one name, for one function. */
uint64_t backend_identity(const backend *b);
/* Checks options against backend_info's schema and adds the config's opt.*: debug backends warn on unknown ones, others
 * refuse. options: "key", "value", ..., NULL. */
bp_status backend_check_options(bp_ctx *c, const backend *b, const char *const *options, const char *mode);
/* The path of its library; NULL when it has none or is not loaded. */
const char *backend_library(const backend *b);
/* Its own words on itself, or NULL before it is loaded. */
const char *backend_version(const backend *b);
/* What a loaded backend says of itself, as lines "  WHAT  VALUE": graphs, threads, options. Nothing before. */
void backend_print_info(const backend *b, buf *out);
/* Clears what runs have shown: retired and degraded backends, counters. For bp_reset. */
void backend_reset(bp_runtime *rt);
/* Removes the remembered verdicts of probes; returns how many. */
uint32_t backend_forget_probes(void);
#endif
