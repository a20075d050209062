/* Passes over graph modules: each changes gm in place and leaves a graph that graph_verify accepts; on failure gm is to
 * be thrown away. Metadata of nodes are there before and after. Effects, random nodes and nodes that may fail on data
 * stay, in order. */
#ifndef HOST_PASS_PASS_H
#define HOST_PASS_PASS_H
#include "host/graph/graph.h"
#include "host/pass/decomp.h"

typedef bp_status (*pass_fn)(bp_ctx *c, bp_graph_module *gm, void *arg);

bp_status pass_dce(bp_ctx *c, bp_graph_module *gm, void *arg);
/* Merges equal pure nodes. Values that become different outputs stay apart (A124). */
bp_status pass_cse(bp_ctx *c, bp_graph_module *gm, void *arg);
/* Pure nodes of constants alone become get_attr, up to 1 MiB a value. */
bp_status pass_fold_constants(bp_ctx *c, bp_graph_module *gm, void *arg);

/* What may stay as it is in a decomposed graph, beside core ATen and the rows marked KEPT. */
typedef struct {
    const char *const *whole;  /* targets that are wanted whole, NULL-terminated; NULL: none */
    /* Asked before the table; NULL: the table alone. Gives a row that stands in for the table's, or NULL. */
    const decomp_row *(*row_of)(void *arg, const op_row *op);
    /* NULL, or told of each node that is made, and of the call in whose place it stands. */
    void (*made)(void *arg, node_id of, node_id n);
    void *arg;
} decompose_options;
/* Decomposes until only these are left. An operator with no row that is neither core nor KEPT stays, and is what
 * pass_verify_core names. arg: decompose_options, or NULL. */
bp_status pass_decompose(bp_ctx *c, bp_graph_module *gm, void *arg);
/* core ATen alone, beside KEPT rows and `whole`; an error lists the first nodes that are not, with their targets. */
bp_status pass_verify_core(bp_ctx *c, bp_graph_module *gm, void *arg);

/* Runs fn on each graph that gm holds for an operator that runs it, copied first where others hold it too (whether fn
 * changes it or not). Every pass above does so itself. */
bp_status pass_in_subs(bp_ctx *c, bp_graph_module *gm, pass_fn fn, void *arg);

/* A pipeline: passes by name in order, each verified (BACKPLANE_VERIFY) and logged (BACKPLANE_LOGS=aot) behind itself;
 * an error names the pass. */
typedef struct { const char *name; pass_fn fn; void *arg; } pass;
bp_status passes_run(bp_ctx *c, bp_graph_module *gm, const pass *passes, uint32_t n);
#endif
