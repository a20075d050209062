/* The interpreter, for this room: it also tells what calls that give integers gave. */
#ifndef HOST_GRAPH_RUN_H
#define HOST_GRAPH_RUN_H
#include "host/graph/graph.h"

/* graph_run; numbers: NULL, or room for one by node id. What is there when on_node is called for a node is of it. */
bp_status run_telling_numbers(bp_ctx *c, const bp_graph_module *gm, bp_tensor *const *inputs, uint32_t ninputs,
                              bp_tensor **outputs, uint32_t noutputs, graph_on_node on_node, void *arg,
                              bp_dim *numbers);
#endif
