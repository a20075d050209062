/* Operators over graphs (host/op/higher.def): what their calls look like, and how they run.
 *
 * A graph among the arguments of a call is a BP_VALUE_GRAPH, borrowed; in a graph it is the node of a get_attr, whose
 * value is a graph module (gm_sub). Graphs are never changed once a call or a graph holds them: who edits one copies it
 * first (gm_own_sub). */
#ifndef HOST_GRAPH_HIGHER_H
#define HOST_GRAPH_HIGHER_H
#include "host/graph/graph.h"

enum { HIGHER_GRAPHS = 2, HIGHER_LISTS = 3 };
typedef struct {
    const bp_graph_module *graph[HIGHER_GRAPHS];
    uint32_t ngraphs, nlists;
    uint32_t n[HIGHER_LISTS]; /* tensors in each list of the schema */
    uint32_t total;           /* in all lists: what each graph takes */
} higher_call;

static inline bp_value value_graph(const bp_graph_module *gm)
{
    return (bp_value){.kind = BP_VALUE_GRAPH, .v.tensor = (void *)(uintptr_t)gm};
}
static inline const bp_graph_module *graph_of_value(const bp_value *v)
{
    return v->kind == BP_VALUE_GRAPH ? v->v.tensor : NULL;
}
/* Reads the arguments of a call of `op` (of OP_HIGHER). false: they are not all there, or not of their kinds. */
bool higher_of_args(const op_row *op, const bp_value *args, higher_call *out);
/* The same for a node: lists written out, graphs by gm_sub. */
bool higher_of_node(const bp_graph_module *gm, const graph_node *n, higher_call *out);
/* Whether the graphs take and give as many values as the call needs; else why says what does not fit. */
bool higher_fits(const op_row *op, const higher_call *h, char *why, size_t cap);

/* Runs a call of real tensors by its graphs' operators, each through op_dispatch with no mode but the tape: gradients
 * are recorded as grad mode says. k->args are given; results are new references. Fails with FAILED_PRECONDITION when a
 * choice depends on a fake. */
bp_status higher_run(bp_ctx *c, op_call *k);
#endif
