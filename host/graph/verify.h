/* What the parts of the verifier share. */
#ifndef HOST_GRAPH_VERIFY_H
#define HOST_GRAPH_VERIFY_H
#include "host/graph/graph.h"

typedef struct { uint32_t count; node_id last; uint64_t sum; } edges; /* last: the user that was counted last */

typedef struct {
    bp_ctx *c;
    const bp_graph_module *gm;
    const graph *g;
    uint32_t *rank; /* position in program order from 1; 0: not in it */
    edges *found;   /* users that arguments show, by node */
    node_id at;
    bp_status status;
} verifier;

/* Fails with the name of the node v->at, and where it was written; the first failure stays. */
BP_PRINTF(2, 3) bp_status verify_fault(verifier *v, const char *fmt, ...);
/* All dims of all nodes: each is of the graph's environment, and its symbols are known where it stands. The list of
 * nodes is right. */
bp_status verify_symbols(verifier *v);
#endif
