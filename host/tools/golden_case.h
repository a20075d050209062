/* One recorded case: read, run, judged. Shared by the golden_*.c files. */
#ifndef HOST_TOOLS_GOLDEN_CASE_H
#define HOST_TOOLS_GOLDEN_CASE_H
#include "host/pass/decomp.h"
#include "host/tools/golden.h"
#include "host/tools/golden_defined.h"
#include <jansson.h>

/* What golden.def says of an operator; bits. */
enum { KIND_SUM = 1, KIND_FACTOR = 2, KIND_UNVALUED = 4, KIND_UNFILLED = 8, KIND_MISTAKEN = 16 };
uint32_t golden_kind(const char *target);

typedef struct {
    bp_ctx *c;
    const golden_options *o;
    const char *file;
    uint32_t line;
    arena memory;               /* of values */
    VEC(bp_tensor *) tensors;   /* made while reading; owned */
    const graph *g;             /* where {"node": name} is looked up; NULL in an operator case */
    json_t *nodewise;           /* owned: what PyTorch gives node by node, where that is not what was recorded */
    bool widen;                 /* read float32 as float64: the case in a wider type */
    bool eagerly;               /* a captured case that declined */
    bool decomposed;            /* the case's operator ran by its parts */
    bool symbolic;              /* some result has a size that is still a symbol */
    bool by_data;               /* its run on fakes ended where a size depends on data */
    char error[600];            /* why the case cannot be read; "" when it can */
} golden_case;

/* -- golden_read.c -- */
typedef struct golden_lines golden_lines;
golden_lines *golden_open(bp_ctx *c, const char *path);          /* gzip or plain */
/* The next line that is not empty, without its end; NULL at the end of the file, or after an error (c says). */
const char *golden_next_line(bp_ctx *c, golden_lines *in, size_t *n, uint32_t *number);
/* {"outputs"} as PyTorch gives them for the graph of this line node by node, where that is not what was recorded; NULL
 * for every other line (golden_nodewise.def). Owned. */
json_t *golden_nodewise(const char *line, size_t n);
double golden_share(golden_lines *in); /* how much of the file was read, 0 to 1 */
void golden_close(golden_lines *in);

/* A value of an argument list; false: error says why. */
bool golden_read_value(golden_case *k, const json_t *j, bp_value *out);
/* A bare tensor {"dtype", "shape", ...} or an argument {"tensor": ...}; NULL: error says why. Owned by the case. */
bp_tensor *golden_read_tensor(golden_case *k, const json_t *j);
bool golden_bad(golden_case *k, const char *fmt, ...) __attribute__((format(printf, 2, 3))); /* false; fills error */
void golden_case_fini(golden_case *k);

/* -- golden_compare.c -- */
typedef struct {
    bool tenfold;            /* an accumulation: ten times the bound in float16 and bfloat16 */
    bool may_widen;          /* the wider-type rule applies */
    bool strides;            /* strides count */
    bool given;              /* atol and rtol, and not those of the type */
    double atol, rtol;
} golden_bounds;
typedef struct {
    bool equal;              /* within the bounds */
    bool values_differ;      /* the one thing that is wrong are values, of float32: the wider-type rule may be asked */
    char text[400];          /* the first difference */
} golden_diff;
void golden_compare(const bp_tensor *got, const bp_tensor *want, const golden_bounds *b, golden_diff *d);
/* The same where elements outside the bounds may be excused by `wide`, the answer in a wider type. */
void golden_compare_wide(const bp_tensor *got, const bp_tensor *want, const bp_tensor *wide, const golden_bounds *b,
                         golden_diff *d);
/* Sizes and dtype alone. */
void golden_compare_type(const bp_tensor *got, const bp_tensor *want, const golden_bounds *b, golden_diff *d);

/* -- golden_op.c, golden_graph.c -- */
typedef enum {
    CASE_PASSED, CASE_FAILED, CASE_UNSUPPORTED, CASE_BY_WIDER, CASE_BY_NODES, CASE_DEFINED, CASE_UNVALUED,
    CASE_TURNED, CASE_BY_DIFFERENCES,
    CASE_SKIPPED /* with --once: another case has shown it; counted nowhere */
} golden_verdict;
/* why: the reason of a failure or of being unsupported. */
golden_verdict golden_run_op(golden_case *k, const json_t *j, buf *why);
golden_verdict golden_run_graph(golden_case *k, const json_t *j, buf *why);
/* UNIMPLEMENTED is unsupported, all else failed; clears the context's error. */
golden_verdict golden_judge_error(golden_case *k, buf *why);

/* -- golden_backend.c: one graph on a backend, by name -- */
/* All metadata, which a program wants; UNIMPLEMENTED where a size depends on data. */
bp_status golden_propagate(bp_ctx *c, bp_graph_module *gm);
bp_status golden_run_on(bp_ctx *c, bp_graph_module *gm, const char *backend, bp_tensor *const *inputs, uint32_t ninputs,
                        bp_tensor **outputs, uint32_t noutputs);

/* -- golden_decompose.c: calls by their parts -- */
typedef struct { dispatch_mode mode; bool deep; uint32_t decomposed; } golden_decomposer;
void golden_decompose_begin(bp_ctx *c, golden_decomposer *d, bool deep);
void golden_decompose_end(bp_ctx *c, golden_decomposer *d);

/* -- golden_fake.c -- */
/* Whether a run on fakes of the inputs gives, node by node, the metadata and the sharing of the real run, which writes
 * the inputs. why: the first difference. */
bool golden_check_fake(golden_case *k, const bp_graph_module *gm, bp_tensor *const *inputs, uint32_t n, buf *why);

/* -- golden_captured.c -- */
/* One graph as a captured function. Its outputs, or where it has none the results of its calls, go to take, a reference
 * each; false from it: out of memory. */
typedef struct {
    const bp_graph_module *gm;
    bp_tensor *const *inputs;
    uint32_t ninputs;
    bool (*take)(void *arg, bp_tensor *t);
    void *arg;
    const char *backend;   /* NULL: eager */
} golden_call;
/* *eagerly: the function declined, and ran as it is. */
bp_status golden_run_captured(bp_ctx *c, const golden_call *k, bool *eagerly);
/* -- golden_symbolic.c -- */
/* Gives the inputs of gm symbols for sizes, finds the types of all nodes, and holds them against those of `fixed`, the
 * same graph, which gets them too. The call says the recorded inputs. why: what is wrong. */
bool golden_check_symbolic(golden_case *k, const golden_call *call, bp_graph_module *gm, bp_graph_module *fixed,
                           buf *why);
/* -- golden_grad_symbolic.c -- */
/* Whether a case's gradients are to be those of halves over symbols (--grad --aot --symbolic); and the run of its
 * forward: outputs are new references, and have their history. */
bool golden_trains_symbolic(const golden_case *k, const golden_call *call);
bp_status golden_train_symbolic(golden_case *k, const golden_call *call, bp_tensor **outputs, uint32_t noutputs);
/* -- golden_grad_fake.c -- */
/* A gradient case: outputs (by number) with their gradients, inputs, and the gradients that these got. */
typedef struct {
    const uint32_t *root_at;
    bp_tensor *const *grads, *const *wanted, *const *got;
    uint32_t nroots, nwanted;
} golden_grads;
/* Whether forward and backward on fakes give gradients alike; else `why` says what differs. */
bool golden_grad_on_fakes(golden_case *k, const golden_call *call, const golden_grads *g, buf *why);
/* Whether the minimal cut of the call's joint graph saves at most what the default set does; true where it has none. */
bool golden_cut_saves_less(golden_case *k, const golden_call *call, buf *why);
/* -- golden_grad.c -- */
/* The gradients of one graph, by the eager tape or compiled, against the recorded ones. */
golden_verdict golden_run_grad(golden_case *k, const golden_call *call, const json_t *j, buf *why);
#endif
