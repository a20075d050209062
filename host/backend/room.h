/* What this room keeps in a runtime, and its record of a backend. Internal to host/backend. */
#ifndef HOST_BACKEND_ROOM_H
#define HOST_BACKEND_ROOM_H
#include "host/backend/backend.h"
#include "host/backend/config.h"
#include "host/backend/protect.h"
#include "sdk/base/map.h"

/* The service table as one backend sees it: services that get the bare table learn from it who calls. */
typedef struct { bp_host api; backend *b; } host_table;

enum backend_origin { ORIGIN_BUILTIN, ORIGIN_REGISTERED, ORIGIN_CONFIG, ORIGIN_FUNCTION };
enum { BACKEND_SAID = 1024, DEGRADE_AFTER = 3 };

struct backend {
    host_table host;
    struct backend_room *room;
    char *name, *tags, *origin;    /* tags: by commas; origin: as messages name it */
    enum backend_origin kind;
    backend_training training;     /* its texts are the room's */
    const config_section *section; /* of ORIGIN_CONFIG */
    atomic_bool loaded;            /* the fields that follow hold */
    bp_compile_fn compile;
    bp_init_fn init;
    bp_backend_info info;          /* a copy of what the host knows of it; size 0: it has none */
    char *path;                    /* of its library */
    uint64_t id;
    _Atomic int32_t state;         /* enum backend_state */
    _Atomic(const char *) why;     /* owned by the room */
    atomic_uint failed_runs;
    serial loading;                /* around load */
    serial *lock;                  /* around init and compile: one a compile function, whoever names it */
    char said[BACKEND_SAID];       /* what its init said; under the lock */
    uint32_t forks;                /* protect_forks() when it was loaded or registered */
    _Atomic(struct wants *) wants; /* core.c: its own decompositions; NULL: none */
};

typedef struct backend_room {
    bp_runtime *rt;
    config config;
    pthread_mutex_t lock;          /* the fields below; never held across a plugin's code */
    VEC(backend *) backends;       /* built in, config sections, registered, functions; only ever added to */
    VEC(char *) texts;             /* reasons and default names that may still be read */
    struct bp_compiled *graves[64]; /* objects that were released last, and the place of the next */
    uint32_t next_grave;
    map retired;                   /* (code, backend): see blame.c */
    map warned;                    /* warnings that were given */
    atomic_uint generation;        /* moves whenever `retired` or a degraded state changes */
    _Atomic(const char *) default_name; /* bp_set_default_backend; NULL: the config's */
} backend_room;

/* The runtime's room, made and its config read at first use. NULL: out of memory. */
backend_room *backend_room_of(bp_runtime *rt);
/* By name, without loading; NULL: unknown. */
backend *backend_find(bp_runtime *rt, const char *name);
/* The same, and adding a record, with the room's lock held. tags: NULL for none. NULL: out of memory. */
backend *backend_find_in(const backend_room *room, const char *name);
backend *backend_add(backend_room *room, enum backend_origin kind, const char *name, const char *tags,
                     const char *origin);
/* Gives a record its functions: it is loaded from now on. */
void backend_set_code(backend *b, bp_compile_fn compile, bp_init_fn init, enum backend_state state);
bool backend_has_any_tag(const backend *b, const char *tags);
/* Sets state and reason. */
BP_PRINTF(3, 4) void backend_set_state(backend *b, enum backend_state state, const char *fmt, ...);
const char *backend_state_name(enum backend_state state);
bp_status backend_state_code(enum backend_state state);
char backend_state_level(enum backend_state state); /* 'Q', 'I' or 'W' */
/* Keeps text alive as long as the room; NULL: out of memory. */
const char *backend_keep_text(backend_room *room, const char *text);
/* Fails with the state's code, name and reason. */
bp_status backend_unusable(bp_ctx *c, const backend *b);

/* load.c: runs all checks, maps the library, finds the symbols. Sets state and reason. With `loading` held. */
bp_status backend_load(bp_ctx *c, backend *b);
/* resolve.c: fires the init hook; checks the config's options, then fires it. */
bp_status backend_fire_init(bp_ctx *c, backend *b);
bp_status backend_ready(bp_ctx *c, backend *b);
/* Whether an option of the config is for this backend: not one marked `?` that it does not know. */
bool backend_takes_option(const backend *b, const config_option *o);
/* blame.c */
bool backend_is_retired(const backend *b, uint64_t code);
/* counts: toward the end of the backend for the process; a composer is not at fault for its links. */
void backend_retire(backend *b, uint64_t code, const char *why, bool counts);
/* Warns unless this very text was warned of since the last reset. */
bool backend_warn_once(backend_room *room, const char *text);
/* Says, once, that a plugin gave up more references than it had; nothing else comes of it. */
void backend_over_released(backend *b, const char *what);
/* Keeps a released object's memory for a while, so that a plugin that uses it again is told and does no harm. */
void backend_bury(backend_room *room, struct bp_compiled *k);
/* core.c */
void wants_free(backend *b);
int32_t backend_wanted_graph(const backend *b); /* what it said itself; BP_GRAPH_UNSET: nothing */
bool backend_takes_dims(const backend *b);      /* it sees symbolic dims as they are; else numbers */
/* service.c */
void service_fill(host_table *t, backend *b);
#endif
