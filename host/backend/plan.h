/* How a program is laid out: which link takes which node, and the convex groups that follow. Internal to host/backend.
 *
 *     assign    node -> the first link that supports it, with what earlier links said
 *     cut       nodes of one link -> groups that can run one after the other
 *     program   a group -> a compiled object, or a program over the links behind it */
#ifndef HOST_BACKEND_PLAN_H
#define HOST_BACKEND_PLAN_H
#include "host/backend/chain.h"
#include "host/backend/variants.h"

/* What links said on the way, for the error when none is left. */
typedef struct {
    buf text;                  /* "NAME: TEXT; NAME: TEXT" */
    uint32_t n;
    bool is_final;             /* the last one ends the chain */
    bool ends;                 /* and chains above it */
    bp_status code;            /* of the final one, else of the first loud one, else UNIMPLEMENTED */
    char name[64], last[1200]; /* of the last one */
} trail;
void trail_add(trail *t, const char *name, bp_status code, const char *text);
/* The same, and no further link is asked. Returns code. */
bp_status trail_end(trail *t, const char *name, bp_status code, const char *text);
void trail_fini(trail *t);

#define NO_LINK UINT32_MAX
typedef struct {
    bp_ctx *c;
    chain *ch;
    const bp_graph_module *gm, *asked;
    uint32_t start;            /* first link that may be asked */
    uint64_t code;             /* of the callable: whom it has retired */
    trail *trail;
    uint32_t ncalls;
    uint32_t *link;            /* by node id; NO_LINK for what is no call */
    const char **why;          /* by node id: what earlier links said of it, or NULL */
    link_view **views;         /* by link: made to ask it, kept to compile with */
    uint32_t whole;            /* the one link that takes all, or NO_LINK */
    buf passed;                /* links that were not asked node by node: "NAME: TEXT; NAME: TEXT" */
    arena texts;
} assignment;

/* Fails when a node is left, or the policy forbids what is needed; the trail says why. With out of memory alone the
 * context has a story. assign_fini in any case. */
bp_status assign_nodes(assignment *a);
void assign_fini(assignment *a);

/* What a run must know of a group whose graph has symbols. */
typedef struct { uint32_t symbol, output, dim; } shown_size;
typedef struct {
    sym_program *program;      /* sizes and strides of the outputs, in their order; those of data count as 0 */
    uint8_t *of_data;          /* one each: only the run tells */
    uint32_t n;
    VEC(uint32_t) symbol_of;   /* of each symbol of gm: the program's; empty: gm is the program's own graph */
    VEC(uint32_t) symints;     /* the program's symbols that gm takes as inputs of their own, behind `in` */
    VEC(shown_size) shows;     /* symbols of data that an output of the group shows */
} group_sizes;

typedef struct group {
    uint32_t link;
    bp_graph_module *gm;       /* counted: what is handed to backends; the program's own when the group is all of it */
    VEC(node_id) nodes;        /* of the program's graph, in program order; empty for the whole */
    VEC(node_id) in, out;      /* values of the program's graph, one a placeholder and one an output of gm */
    VEC(node_id) dies;         /* values that nothing needs behind this group */
    const tensor_meta **expected; /* one an output */
    uint32_t *same_as;         /* one an output: see SAME_*; NULL when all are plain */
    group_sizes *sizes;        /* NULL: no symbols */
    bp_compiled *compiled;     /* NULL: its link did not compile it */
    char *why;                 /* then: what the link said; or what its failed run said */
    _Atomic(program *) rest;   /* answers where the link does not; made when first needed */
    pthread_mutex_t lock;      /* making `rest`, setting `why` */
    atomic_bool is_retired, is_verified, is_watched;
} group;
/* An output of gm that is one of its inputs, or an earlier output, again. */
enum { SAME_NONE = 0, SAME_INPUT = 1 << 28, SAME_OUTPUT = 1 << 29, SAME_INDEX = SAME_INPUT - 1 };

/* Splits the assigned graph: fills groups, in an order in which they can run. */
bp_status cut_groups(const assignment *a, group **groups, uint32_t *n);
void group_fini(group *g);

struct program {
    atomic_uint refs;
    variants *variants;          /* of a graph with symbols: a program each, and this one has no groups; else NULL */
    chain *chain;
    bp_graph_module *gm, *asked; /* counted */
    uint64_t code;
    uint32_t start, ngroups;
    group *groups;
    const char **why;            /* by node id, in texts: why an earlier link did not take it */
    char *passed;                /* links that were not asked node by node: "NAME: TEXT; ..." or NULL */
    arena texts;
    bool is_whole;               /* one group, which is the graph itself */
    bool verifies;               /* the first run of each group is compared with eager execution */
    atomic_uint seen;            /* generation of blame that is_retired reflects */
    uint32_t ninputs, noutputs;
};

/* sizes.c: what the graph of a compiled group tells of its sizes. */
bp_status group_find_sizes(bp_ctx *c, group *g);
void group_free_sizes(group_sizes *s); /* NULL: nothing */
/* Runs the group's object, with the sizes of this run in r. values: of the program's symbols. */
bp_status group_run_sized(bp_ctx *c, const group *g, const int64_t *values, bp_run *r);
/* The inputs behind `in`, which are symbols: new references. */
bp_status group_fill_symints(bp_ctx *c, const group *g, const int64_t *values, bp_tensor **in);
/* Symbols of data that the outputs show. */
void group_read_sizes(const group *g, bp_tensor *const *out, int64_t *values);
/* What was asked of the group's graph while it was compiled is asked of the program's: facts from `first` on. */
bp_status group_adopt_facts(bp_ctx *c, const group *g, sym_env *of_program, uint32_t first);

/* Some fact of it is an assertion on data, for each run to check. */
bool graph_asserts(const graph *g);
/* Whether a graph is compiled by variants. */
static inline bool graph_has_symbols(const graph *g) { return g->syms && sym_symbol_count(g->syms); }
/* program_dynamic.c: the program of a graph with symbols, as program_compile_from. */
bp_status program_compile_dynamic(bp_ctx *c, program *p, trail *t);
bp_status program_run_dynamic(bp_ctx *c, program *p, const program_io *io);
/* program.c: compiles gm, whose symbols are fixed or taken as they are, for the facade's chain. */
bp_status program_compile_variant(bp_ctx *c, const program *of, bp_graph_module *gm, trail *t, program **out);
/* program_run.c */
bp_status program_run_inner(bp_ctx *c, program *p, const program_io *io);

/* Compiles gm over the chain's links from `start` on. On failure the trail says why, or the context has a story. */
bp_status program_compile_from(bp_ctx *c, chain *ch, uint32_t start, bp_graph_module *gm, bp_graph_module *asked,
                               uint64_t code, trail *t, program **out);
/* Makes the context's story out of a trail. Returns its code. */
bp_status program_tell(bp_ctx *c, const trail *t, const chain *ch, const bp_graph_module *gm);
/* Whether a group's own object answers now; else `rest` does. */
static inline bool group_answers(const group *g)
{
    return g->compiled && !atomic_load_explicit(&g->is_retired, memory_order_relaxed);
}
#endif
