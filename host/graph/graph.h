/* FX graphs: nodes by 32-bit id in program order, ids stable, id 0 is none.
 *
 * Node values, targets and arguments live in the graph's arena and die with it. Users are kept right by the setters.
 * A graph module is a counted graph with its options, constants and a private error story for the backend that compiles
 * it; a link's copy-on-write view is a clone (graph_clone). */
#ifndef HOST_GRAPH_GRAPH_H
#define HOST_GRAPH_GRAPH_H
#include "host/op/op.h"
#include "host/sym/env.h"
#include "sdk/base/hash.h"
#include "sdk/base/map.h"
#include "sdk/base/vec.h"

typedef uint32_t node_id;
typedef struct { const char *name; bp_value value; } node_kwarg;

typedef struct {
    int32_t op;               /* BP_NODE_*; 0: erased */
    int32_t role;             /* of a placeholder: BP_ROLE_* */
    const char *name;         /* unique: "add_1" */
    const char *target;       /* "aten.add.Scalar"; of a placeholder: its source name "a"; "output"; or Python's
                               * "<built-in function getitem>" */
    const op_row *row;        /* of a call_function whose operator is known */
    bp_value *args;           /* positional, as recorded: trailing defaults left out */
    node_kwarg *kwargs;
    uint32_t nargs, nkwargs;
    tensor_meta *metas;       /* one a result (a list result: one an item); NULL until propagated */
    uint32_t nmetas;
    bp_dim number;            /* of a symint placeholder, and of a call that gives an integer: what it is, when that is
                               * a symbol or an expression; sym 0: no more is known */
    bool symbolic;            /* some argument holds a symbol */
    const char *file;         /* where it was recorded, or NULL */
    int32_t line, column;     /* column: 0 unless it was read from a text */
    uint32_t prev, next;      /* program order */
    VEC(node_id) users;       /* each user once, in order of first use */
} graph_node;

typedef struct graph {
    arena arena;
    VEC(graph_node) nodes;    /* nodes.at[0] is unused */
    node_id first, last;      /* program order */
    uint32_t live;            /* nodes that are not erased */
    map names;                /* name -> id */
    map name_next;            /* base name -> next number to try */
    sym_env *syms;            /* the environment of all dims in types and arguments; NULL: all are constants */
    bool failed;              /* sticky: out of memory or a bad argument; check once with graph_status */
    const char *failure;      /* what it was; NULL: out of memory */
    bool saw_symbol;          /* of the setter at work: a value that it copied is one */
} graph;

/* A node to be added, for callers that know all of it (readers of texts, clones). */
typedef struct {
    int32_t op, role;
    const char *name;         /* a candidate for torch.fx's naming; with exact_name the very name, which must be free */
    const char *target;
    const bp_value *args;
    const node_kwarg *kwargs;
    const tensor_meta *metas;
    uint32_t nargs, nkwargs, nmetas;
    bp_dim number;
    bool exact_name;
} node_spec;

/* What a graph is to its function: a segment that nobody differentiates, or one half of a segment that trains. */
enum { GM_INFERENCE, GM_FORWARD, GM_BACKWARD };

/* Handed to backends. First word: the service table. */
struct bp_graph_module {
    const bp_host *host;
    atomic_uint refs;
    atomic_uint lent;         /* of these, a plugin's */
    bp_runtime *rt;
    graph g;
    char *name;               /* "__compiled_fn_0" */
    uint64_t code_id;
    hash128 address;          /* of one that a capture made as a value: graph_address; else 0 */
    int32_t part;             /* GM_* */
    map constants;            /* name of a get_attr node -> bp_tensor * (counted) */
    map subs;                 /* name of a get_attr node -> bp_graph_module * (counted): what is not a constant */
    VEC(struct { char *key, *value; }) options;
    diag said;                /* what decline, fail or refuse recorded in this compile */
    node_id said_node;
    bool refused, declined;
    bp_ctx *ctx;              /* of the compile in progress; NULL afterwards */
    void *backend;            /* host/backend's record of who compiles it */
    bp_write_fn_ sink;
    void *sink_arg;
};

/* -- building; each setter keeps users right; a failed graph ignores further calls and returns 0 -- */
void graph_init(graph *g);
void graph_fini(graph *g);
node_id graph_add(graph *g, const node_spec *s); /* the others are short forms of it */
bp_status graph_status(bp_ctx *c, const graph *g);
node_id graph_placeholder(graph *g, const char *name, const char *target, int32_t role, const tensor_meta *meta);
node_id graph_get_attr(graph *g, const char *name, const char *target, const tensor_meta *meta);
/* name NULL: torch.fx's own (namer.c): "add", "add_1", "abs_1" for reserved names. A given name goes the same way. */
node_id graph_call(graph *g, const char *name, const char *target, const bp_value *args, uint32_t nargs,
                   const node_kwarg *kwargs, uint32_t nkwargs);
node_id graph_output(graph *g, const bp_value *values, uint32_t n); /* one argument: a tuple (list) of the values */
/* Copies. Offsets are not kept: a value of a graph starts at its first element. */
void graph_set_metas(graph *g, node_id n, const tensor_meta *metas, uint32_t count);
void graph_set_site(graph *g, node_id n, const char *file, int32_t line);
void graph_set_number(graph *g, node_id n, bp_dim number); /* see graph_node */
void graph_set_args(graph *g, node_id n, const bp_value *args, uint32_t nargs);
void graph_move_before(graph *g, node_id n, node_id at); /* in program order; who calls keeps it a right one */
void graph_erase(graph *g, node_id n);            /* must have no users */
void graph_replace_uses(graph *g, node_id from, node_id to);
bp_status graph_clone(bp_ctx *c, const graph *from, graph *to); /* ids and names stay; `to` is initialized by it */
bp_value graph_ref(node_id n);                    /* a NODE value */
bp_value graph_list(graph *g, const bp_value *items, uint32_t n);

/* -- symbols: dims of types and arguments are of the graph's own environment, g->syms. A symbol's source (its `at` is a
 * node) is the first size or stride of a placeholder's type that is the symbol alone, else a symint placeholder
 * (SYM_VALUE); of an unbacked one it may be the call that makes it: its number, or a size of its result, where nothing
 * that the call reads mentions the symbol. -- */
sym_env *graph_syms(bp_ctx *c, graph *g); /* made at the first call; borrowed; NULL: out of memory */
/* A placeholder that carries symbol k of g->syms, role BP_ROLE_SYMINT: an i64 tensor of no dimensions on the CPU. Where
 * a node names it, it is the number. It stands behind the last placeholder. name NULL: the symbol's own. */
node_id graph_symint(graph *g, const char *name, uint32_t k);
/* Calls each for every symbol in n's arguments and types, as often as one is mentioned; the number that n is, aside. */
void graph_each_symbol(const graph *g, node_id n, void (*each)(void *arg, uint32_t k), void *arg);
/* Sets every symbol's source anew, in program order: for whoever has edited placeholders or calls that make symbols.
 * A symbol that nothing shows has SYM_NO_SOURCE afterwards. */
void graph_find_sources(const graph *g);
/* What the symbols are for these inputs: values[k] of each that a placeholder shows, 0 of the others; with room for
 * sym_symbol_count. An input that its type does not fit is INVALID_ARGUMENT: placeholder, dimension, expected and
 * actual size. Facts are not checked. */
bp_status graph_bind(bp_ctx *c, const bp_graph_module *gm, bp_tensor *const *inputs, uint32_t ninputs,
                     int64_t *values);
/* The same, and the facts that come with the graph must hold: INVALID_ARGUMENT, or OUT_OF_RANGE for an asserted one. */
bp_status graph_check_sizes(bp_ctx *c, const bp_graph_module *gm, bp_tensor *const *inputs, uint32_t ninputs,
                            int64_t *values);
void graph_hints(const graph *g, int64_t *values);   /* values[k]: symbol k's hint, 0 of an unbacked one */
/* A type at these values of symbols: sizes and strides go to dims, with room for twice the rank, and out borrows them.
 * INVALID_ARGUMENT: a size overflows, or is negative. */
bp_status graph_meta_at(bp_ctx *c, const graph *g, const tensor_meta *m, const int64_t *values, bp_dim *dims,
                        tensor_meta *out);

/* Brings dims of another environment into a graph. A symbol of `from` is added to g->syms where it is first mentioned
 * (name, bounds and hint are kept), so whoever imports the types of placeholders in their order numbers symbols as they
 * should be. What an entry of `map` holds already counts instead: a dim of g->syms, or a constant. */
typedef struct {
    bp_ctx *c;
    graph *g;
    const sym_env *from;
    VEC(bp_dim) map;          /* of each symbol of `from`: a dim of g->syms; GRAPH_UNMAPPED: it was not mentioned yet */
    VEC(uint32_t) back;       /* of each symbol of g->syms: the one of `from` that it was made of, or UINT32_MAX */
} graph_import;
#define GRAPH_UNMAPPED ((bp_dim){0, 0, 1})
/* from NULL: all dims are constants, and come through as they are. */
bp_status graph_import_init(graph_import *im, bp_ctx *c, graph *g, const sym_env *from);
void graph_import_fini(graph_import *im);
bp_dim graph_import_dim(graph_import *im, bp_dim d); /* {0}: an error; the context says so */
bp_status graph_import_meta(graph_import *im, const tensor_meta *m, tensor_meta *out);  /* arrays in g's arena */
bp_status graph_import_value(graph_import *im, const bp_value *v, bp_value *out);       /* lists in g's arena */
/* Assumes the facts of `from` over symbols that are all in the graph. */
bp_status graph_import_facts(graph_import *im);
bp_status graph_import_facts_upto(graph_import *im, uint32_t last_tag); /* those whose tag is at most that */
/* When all nodes are there: finds sources, and adds a symint placeholder for each symbol without one. Its input is the
 * value of symbol back.at[k] of `from`, where g->nodes.at[id].number is symbol k of g->syms. */
bp_status graph_import_finish(graph_import *im);

/* -- reading -- */
static inline const graph_node *graph_get(const graph *g, node_id n) { return &g->nodes.at[n]; }
node_id graph_find(const graph *g, const char *name);
uint32_t graph_placeholders(const graph *g, node_id *out, uint32_t cap); /* returns how many there are */
node_id graph_output_node(const graph *g);
/* The argument of a call_function by its schema name, the default filled in; a value borrowed from gm. NOT_FOUND: no
 * such argument, or it is required and absent, or the operator is unknown; INVALID_ARGUMENT: no such node. */
bp_status graph_arg(const bp_graph_module *gm, node_id n, const char *name, bp_value *out);
bool graph_is_builtin(const char *target, str *name); /* "<built-in function getitem>" -> "getitem" */
/* Calls each for every node id inside v, nested lists included. */
void value_each_node(const bp_value *v, void (*each)(void *arg, node_id n), void *arg);
/* The same for all arguments of a node, in order of mention, a node as often as it is mentioned. */
void graph_each_input(const graph *g, node_id n, void (*each)(void *arg, node_id n), void *arg);

/* -- modules -- */
bp_graph_module *gm_new(bp_ctx *c, const char *name); /* an empty graph to build in; one reference */
bp_graph_module *gm_ref(bp_graph_module *gm);
void gm_unref(bp_graph_module *gm);
bp_status gm_set_constant(bp_ctx *c, bp_graph_module *gm, const char *name, bp_tensor *t); /* takes a reference */
bp_status gm_set_option(bp_ctx *c, bp_graph_module *gm, const char *key, const char *value);
bp_tensor *gm_constant(const bp_graph_module *gm, const char *name);                       /* borrowed; NULL: none */
/* A graph among the values of get_attr nodes, for operators that run it (higher.h). It is shared, and not changed. */
bp_status gm_set_sub(bp_ctx *c, bp_graph_module *gm, const char *name, bp_graph_module *sub); /* takes a reference */
bp_graph_module *gm_sub(const bp_graph_module *gm, const char *name);                      /* borrowed; NULL: none */
/* Adds a get_attr node for it, named "BASE_0", "BASE_1" ... 0: the graph has failed, or the context says why. */
node_id gm_add_sub(bp_ctx *c, bp_graph_module *gm, const char *base, bp_graph_module *sub);
/* The same graph for gm alone, to be edited: copied if others hold it. NULL: out of memory. */
bp_graph_module *gm_own_sub(bp_ctx *c, bp_graph_module *gm, const char *name);
/* Gives `to` what a get_attr node of `from` has, a constant or a graph, under the name `as`; nothing if it has none. */
bp_status gm_copy_attr(bp_ctx *c, const bp_graph_module *from, const char *name, bp_graph_module *to, const char *as);
/* A copy with nodes, values of get_attr nodes and options of its own; graphs among them are shared. One reference. */
bp_graph_module *gm_clone(bp_ctx *c, const bp_graph_module *from);
/* Calls each for the name of every get_attr node that is a graph, in program order; stops at the first failure. */
bp_status gm_each_sub(bp_graph_module *gm, bp_status (*each)(void *arg, const char *name, bp_graph_module *sub),
                      void *arg);

/* -- the four outputs -- */
/* torch.fx's columns: opcode, name, target, args, kwargs; header rule of dashes; widths fit the longest cell. */
void graph_print_tabular(const graph *g, buf *out);
/* Python-like code with shapes: "add: "f32[4]" = torch.ops.aten.add.Scalar(abs_1, 1);  abs_1 = None". */
void graph_print_readable(const graph *g, const char *name, buf *out);
/* The same for a module and the graphs that it holds, which stand behind it, deeper by one step. */
void gm_print_tabular(const bp_graph_module *gm, buf *out);
void gm_print_readable(const bp_graph_module *gm, const char *name, buf *out);
/* Canonical text: docs/ir.md. parse(print(g)) == g. */
void graph_print_text(const bp_graph_module *gm, buf *out);
void graph_print_type(const tensor_meta *m, buf *out); /* "f32[3, 4; 1, 3] @cuda:0" */
/* Errors: "FILE:LINE:COLUMN: ..." with what was expected and what is there. What is returned has passed graph_verify
 * and has one reference; each node's place is its line. text need not be NUL-terminated. */
bp_graph_module *graph_parse_text(bp_ctx *c, const char *file, const char *text, size_t n);
/* Checks order, unique names, arity and types against schemas, users, one output last; an error names the node. */
bp_status graph_verify(bp_ctx *c, const bp_graph_module *gm);
/* Content address: structure, targets, arguments, metadata of inputs, constants with their data; not names, sites,
 * options or the order of placeholders: inputs are told apart by their first use. order: NULL, or room for a number a
 * placeholder: order[k] is the place among the placeholders of the one that is used k-th. Fails only when memory is
 * used up. */
bp_status graph_hash(bp_ctx *c, const bp_graph_module *gm, uint32_t *order, hash128 *out);
/* The same with the order of placeholders: what makes a graph the same to an operator that runs it. */
bp_status graph_address(bp_ctx *c, const bp_graph_module *gm, hash128 *out);

/* -- running -- */
/* Node by node through op_dispatch, so that modes see each call and fakes propagate. inputs: one a placeholder;
 * outputs: n_out new references (NULL for a None output); values die at their last use. on_node: NULL, or called after
 * each. */
typedef bp_status (*graph_on_node)(void *arg, node_id n, bp_tensor *const *results, uint32_t nresults);
bp_status graph_run(bp_ctx *c, const bp_graph_module *gm, bp_tensor *const *inputs, uint32_t ninputs,
                    bp_tensor **outputs, uint32_t noutputs, graph_on_node on_node, void *arg);
/* A fake for each placeholder, of its type: inputs has room for them all, and is NULLs; what is in it is the caller's,
 * also on failure. FAILED_PRECONDITION: one has no type. */
bp_status graph_fake_inputs(bp_ctx *c, const bp_graph_module *gm, bp_tensor **inputs);
/* Fills every node's metas from the placeholders' (fakes through the shape rules). */
bp_status graph_propagate(bp_ctx *c, bp_graph_module *gm);
/* The same, but metadata that are there stay, and must be what the shape rules give: for texts. */
bp_status graph_check_types(bp_ctx *c, bp_graph_module *gm);
uint32_t graph_output_count(const graph *g);
#endif
