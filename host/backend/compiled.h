/* The objects that pass between the host and a plugin: the inputs of a compile, what it gives, a run of that. */
#ifndef HOST_BACKEND_COMPILED_H
#define HOST_BACKEND_COMPILED_H
#include "host/backend/room.h"

typedef struct program program;
typedef struct chain chain;

struct bp_sink_ { bp_write_fn_ write; void *arg; }; /* write NULL: standard output */

/* A constant that was handed out, and what it held. */
typedef struct { const bp_tensor *t; uint64_t sum; } lent_constant;

/* A compile in progress: what services need to know of it. Lives on the stack of link_compile; the view's `backend`
 * points to it meanwhile. */
typedef struct compile_record {
    bp_ctx *c;
    backend *b;
    const chain *chain;       /* whose link is being compiled: knows the composers above */
    const bp_graph_module *asked; /* the graph whose options are the callable's */
    bp_sink_t sink;
    node_id *order;           /* the view's nodes in program order, and its placeholders */
    node_id *placeholders;
    uint32_t nnodes, nplaceholders;
    uint64_t id;              /* of this compile: objects made in it carry it */
    VEC(lent_constant) constants; /* those that the plugin has seen the data of */
    map shown;                /* types that were symbolic, by their place -> in numbers: dims.c */
    diag inner;               /* the last service that failed: told when the backend gives no reason of its own */
} compile_record;
/* NULL outside compile. */
static inline compile_record *compile_record_of(const bp_graph_module *gm) { return gm->backend; }

struct bp_inputs {
    const bp_host *host;
    bp_graph_module *gm;      /* its view */
    const node_id *placeholders;
    uint32_t n;
};

struct bp_compiled {
    const bp_host *host;
    atomic_uint refs;
    atomic_uint lent;         /* of these, the plugin's: it may give up no more */
    bool is_dead;             /* released; kept a while to tell who releases it again */
    backend *b;
    uint64_t made_in;         /* the id of the compile that made it; its graph is the only one that it serves */
    /* How the host runs it: a plugin's run, a graph node by node, a program. */
    bp_status (*invoke)(bp_ctx *c, bp_compiled *k, bp_run *r);
    bp_run_fn run;            /* of a plugin */
    bp_destroy_fn destroy;    /* NULL: nothing to do */
    void *state;
    sym_env *env;             /* counted; of a plugin's, whose graph has symbols: of the dims that it saw */
    bp_graph_module *gm;      /* counted; of a forward */
    program *program;         /* counted; of compile_with */
    bool is_serial;           /* runs are serial under `lock` */
    pthread_mutex_t lock;
};

/* Of a run of a graph with symbols. */
typedef struct {
    const int64_t *values;    /* of each symbol */
    const sym_env *env;
    const tensor_meta *const *promised; /* outputs as the graph has them; `expected` has this run's numbers */
} run_sizes;

/* A run. The first failure that the plugin tells is kept in the context's story. */
struct bp_run {
    const bp_host *host;
    bp_ctx *c;
    const bp_compiled *k;     /* the plugin's object that runs */
    bp_tensor *const *inputs; /* borrowed */
    const uint8_t *owned;     /* NULL: none. Only given when nothing is left that could answer after this run */
    bp_tensor **outputs;      /* NULL until made; each a reference */
    const tensor_meta *const *expected; /* one an output; NULL entries: an output that is None. A size that only the run
                                           tells (an unbacked symbol) is no constant */
    const run_sizes *sizes;   /* NULL: the graph has no symbols */
    void **aligned;           /* copies of inputs that lie worse than the backend wants, one an input; NULL: none yet */
    uint32_t ninputs, noutputs, depth;
    atomic_flag said;         /* a reason is recorded: parallel parts of a plugin may fail at once */
    char inner[512];          /* of the last compiled object that the plugin ran and that failed; told when the plugin
                                 gives no reason of its own */
};
enum { RUN_MAX_DEPTH = 32 };

/* One reference each; NULL: out of memory, with the context's story. */
bp_compiled *compiled_of_run(bp_ctx *c, backend *b, bp_run_fn run, bp_destroy_fn destroy, void *state);
bp_compiled *compiled_of_graph(bp_ctx *c, backend *b, bp_graph_module *gm); /* takes its own reference */
bp_compiled *compiled_of_program(bp_ctx *c, backend *b, program *p);        /* takes the caller's reference */
bp_compiled *compiled_ref(bp_compiled *k);
void compiled_unref(bp_compiled *k); /* NULL: nothing */
/* Counts one reference of a plugin's less; false: it has none. */
bool compiled_take_back(atomic_uint *lent);

/* Runs k: its outputs are made and fit what is expected, or none is left and the story says why. */
bp_status compiled_run(bp_compiled *k, bp_run *r);
/* Records why the run fails, unless a reason is there already. Returns code. */
BP_PRINTF(3, 4) bp_status run_say(bp_run *r, bp_status code, const char *fmt, ...);
/* Sets output i from memory that the caller keeps: copied. */
bp_status run_set_output(bp_run *r, uint32_t i, const bp_view *v);
/* Input i, aligned as the backend wants: where the tensor is not, a copy that lives until the run returns. */
bp_status run_view_input(bp_run *r, uint32_t i, bp_view *out);
/* Makes output i, or gives the one made before. */
bp_status run_make_output(bp_run *r, uint32_t i, bp_view *out);
#endif
