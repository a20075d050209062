/* Codes: what is cached for one function, user pointer, region, backend and options.
 *
 * Two callables of equal values share a code; it lives as long as one of them (a freed user pointer must not find old
 * entries). Its state holds the trace tree, the segments and the counters, and is replaced whole by bp_reset, which
 * retires the old one. Whoever changes a state holds its claim, which is only ever tried for: the loser runs eagerly
 * (C3.8). */
#ifndef HOST_CACHE_CODE_H
#define HOST_CACHE_CODE_H
#include "host/cache/tree.h"

/* Counters of a code, each a row. */
#define CODE_COUNTERS(X)                                                                                   \
    X(captures) X(compiles) X(eager_calls) X(recompiles) X(slices) X(restarts) X(growths)                  \
    X(disagreements) X(opened) X(outcomes) X(graphs) X(segments) X(break_sites) X(resumed) X(steps)
typedef struct {
#define X(name) atomic_uint name;
    CODE_COUNTERS(X)
#undef X
} code_counters;

/* Hits are counted apart by thread, so that threads do not share a line of memory for them. */
enum { CODE_HIT_LINES = 16 };
typedef struct { _Alignas(64) atomic_uint n; } code_hits;

typedef struct { char *file; int32_t line; char *reason; bool is_break; uint32_t times; } code_break;
typedef struct fn_code fn_code;

typedef struct code_state {
    epoch_link link;
    fn_code *code;
    place root;
    segment_store store;
    segment_store slices;         /* heavy slices, compiled (C2.2): not counted as graphs of the function */
    atomic_flag claim;
    code_counters counters;
    code_hits *hits;              /* CODE_HIT_LINES of them */
    frame_state seen;             /* sizes of inputs at former captures; with the claim */
    pthread_mutex_t notes;        /* guards what follows and store.all: written with the claim, read by reports */
    VEC(char *) reasons;          /* of each recompile */
    VEC(code_break) breaks;       /* sites of breaks, and of what was not captured */
    /* without the claim: */
    _Atomic uint64_t capture_ns, compile_ns; /* spent so far */
    atomic_uint warned;           /* bits of enum code_limit */
    _Atomic(const char *) eager_only; /* an impure function: every call runs eagerly, for this reason */
    char impure[512];
} code_state;

enum code_limit {
    LIMIT_RECOMPILE, LIMIT_ACCUMULATED, LIMIT_CAPTURE, LIMIT_OUTCOME, LIMIT_BREAK, LIMIT_IMPURE, LIMIT_MODES
};

/* What makes a code. Strings are copied. */
typedef struct {
    void (*fn)(void);
    void *user;
    void *backend;                /* host/backend's; opaque here */
    uint64_t backend_identity, region; /* region 0: the default one */
    const char *const *options;   /* "key", "value", ..., NULL; may be NULL */
    const char *mode;             /* may be NULL */
    bool fullgraph;
    int32_t dynamic;              /* bp_compile_options.dynamic */
    const char *name, *file;
    int32_t line;
} code_identity;

struct fn_code {
    atomic_uint refs;
    code_identity is;             /* owns its strings */
    uint64_t id;                  /* a number of its own: gm_code_id */
    bp_runtime *rt;
    _Atomic(code_state *) state;
    fn_code *next;                   /* in the registry */
};

/* Finds a living code of equal identity, or makes one. A reference to the caller. NULL: out of memory. */
fn_code *code_get(bp_ctx *c, const code_identity *is);
fn_code *code_find(bp_ctx *c, const code_identity *is); /* NULL: there is none */
void code_unref(fn_code *k);
/* A region of its own. */
uint64_t code_new_region(void);
/* Replaces the state of every code of the runtime. */
bp_status code_reset_all(bp_ctx *c);

static inline code_state *code_state_of(fn_code *k) { return atomic_load(&k->state); }
static inline bool code_claim(code_state *s)
{
    return !atomic_flag_test_and_set_explicit(&s->claim, memory_order_acquire);
}
static inline void code_release(code_state *s) { atomic_flag_clear_explicit(&s->claim, memory_order_release); }
#define code_count(s, name, n) atomic_fetch_add_explicit(&(s)->counters.name, (n), memory_order_relaxed)
#define code_counter(s, name) atomic_load_explicit(&(s)->counters.name, memory_order_relaxed)
static inline void code_count_hit(code_state *s, uint64_t thread)
{
    atomic_fetch_add_explicit(&s->hits[thread % CODE_HIT_LINES].n, 1, memory_order_relaxed);
}
uint32_t code_hit_count(const code_state *s);
/* True the first time for a limit. */
bool code_warn_once(code_state *s, enum code_limit limit);
/* Keeps a copy of why a call was compiled again. With the claim. */
void code_note_reason(code_state *s, const char *reason);
/* The last of them, or "none". */
void code_last_reason(code_state *s, char *dst, size_t cap);
/* Notes the site of a break, or of what was not captured and why. With the claim. */
void code_note_break(code_state *s, const char *file, int32_t line, const char *reason, bool is_break);

/* A reader enters before it loads a state, and leaves when it follows it no more. NULL: out of memory (the context says
 * so). Calls nest. */
epochs *code_enter(bp_ctx *c);
void code_leave(bp_ctx *c, epochs *e);
/* For whoever changes a tree. */
epochs *code_epochs(bp_runtime *rt);
#endif
