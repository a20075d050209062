/* Chains: ordered lists of backends that are made ready when they are first asked, and one backend's compile of one
 * graph. Internal to host/backend. */
#ifndef HOST_BACKEND_CHAIN_H
#define HOST_BACKEND_CHAIN_H
#include "host/backend/compiled.h"
#include "host/backend/program.h"

/* What came of asking a backend: code 0, or why not. */
typedef struct { bp_status code; bool ends; char text[1200]; } answer; /* ends: no further link may be asked */

typedef struct {
    char *name;
    bool is_optional;          /* written "?name" */
    bool is_asked;             /* the fields below hold */
    backend *b;                /* NULL: passed over */
    bp_status code;            /* why: the code, the text, and 'Q', 'I' or 'W' */
    char *why;
    char level;
} chain_link;

/* Counted. Links are made ready under the lock: a fallback at run time may come from several threads. */
struct chain {
    atomic_uint refs;
    backend_room *room;
    bool is_direct;            /* (a backend that was named, eager) */
    uint32_t n, ncomposers;
    chain_link *links;
    backend **composers;       /* who asked, outermost first */
    pthread_mutex_t lock;
};

/* NULL: the context says why: out of memory, an unknown name, or a chain that reaches itself. */
chain *chain_of_backend(bp_ctx *c, backend *b);
chain *chain_of_names(const compile_record *asker, const char *const *names, uint32_t n);
chain *chain_ref(chain *ch);
void chain_unref(chain *ch); /* NULL: nothing */
/* The link's backend, looked up, its init fired; NULL: passed over, as the link says. Errors do not stay in c. */
backend *chain_link_ready(bp_ctx *c, chain *ch, uint32_t i);
/* Whether the policy is fallback = error, and whether it is silent. */
bool chain_is_strict(const chain *ch);
BP_PRINTF(2, 3) void chain_warn(const chain *ch, const char *fmt, ...); /* as the policy says; once a text */

/* A backend's view of a graph: a copy to read and edit, and the record that services need. */
typedef struct {
    bp_graph_module *gm;
    compile_record record;
    bp_inputs inputs;
    node_id *origin;   /* of a graph in core ATen: by node id, the call of the graph that it is a part of; else NULL */
    uint32_t norigins;
    char *unfit;       /* why the graph cannot be what the backend wants; NULL: it is */
} link_view;
/* asked: whose options are the callable's. NULL: out of memory. */
link_view *link_view_new(bp_ctx *c, const chain *ch, backend *b, const bp_graph_module *gm,
                         const bp_graph_module *asked);
void link_view_destroy(link_view *v); /* NULL: nothing */
/* Calls the backend's compile, protected, under its lock. NULL: out says why; the context is clean. */
bp_compiled *link_compile(link_view *v, answer *out);
/* core.c: makes a view's graph what a backend that wants core ATen asked for, and verifies it. */
bp_status link_view_make_core(bp_ctx *c, link_view *v);
/* "captured", "functional" or "core" graphs: whether this one is what the backend wants, or can be made so. */
bool link_takes_kind(const backend *b, const graph *g, char *why, size_t cap);

/* program.c: for the composer's service. */
bp_status program_compile_names(compile_record *asker, bp_graph_module *gm, const char *const *names, uint32_t n,
                                program **out);
#endif
