/* From nodes to steps: a row of ops.def a target. */
#ifndef ONEDNN_LOWER_H
#define ONEDNN_LOWER_H
#include "plugins/onednn/node.h"
#include "plugins/onednn/program.h"

/* Whether this backend takes the node; the reason when it does not. */
bool lower_supports(const bp_graph_module *gm, uint32_t node, why *w);
/* Lowers the whole graph; NULL after bp_decline or bp_fail. */
program *lower_graph(bp_graph_module *gm, const bp_inputs *inputs);
#endif
