/* What passes ask of nodes: whether they may go or be merged, and which memory their values lie in. */
#ifndef HOST_PASS_PURE_H
#define HOST_PASS_PURE_H
#include "host/graph/graph.h"

/* A call whose results depend on its arguments alone and that changes nothing: it may be dropped when unused, and
 * merged. Random numbers, effects, writes and operators that fail on data are not; nor is an unknown operator. */
bool node_is_pure(const graph_node *n);
/* A call that may go when it is unused: pure, or a value of a tensor. */
bool node_may_go(const graph_node *n);
/* A call that tells an unbacked symbol: its number, or a size of its result. Where that symbol is used, the call stays,
 * and is not computed twice. */
bool node_makes_symbol(const graph *g, node_id n);

/* The memory of each node's results, found by running the graph on fakes. */
typedef struct {
    uint32_t n;             /* ids */
    storage **of;           /* by node id: that of its first result; NULL: none. Counted by `kept` */
    uint8_t *written;       /* by node id: a write goes to memory that it gives or reads */
    uint8_t *leaves;        /* by node id: its first result lies in the memory of an output */
    VEC(bp_tensor *) kept;
} memory_map;
/* UNIMPLEMENTED or FAILED_PRECONDITION where sizes depend on data. */
bp_status memory_map_make(bp_ctx *c, const bp_graph_module *gm, memory_map *out);
void memory_map_fini(memory_map *m);
#endif
