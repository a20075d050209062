/* From nodes to steps: a row of ops.def a target. */
#ifndef ONEDNN_LOWER_H
#define ONEDNN_LOWER_H
#include "plugins/onednn/node.h"
#include "plugins/onednn/program.h"

/* Whether this backend takes the node; the reason when it does not. Of a graph with symbols: for all sizes that pass
 * the conditions that are asked meanwhile. */
bool lower_supports(const bp_graph_module *gm, uint32_t node, why *w);
bool lower_is_empty(const bp_graph_module *gm); /* no operator */
/* Lowers the whole graph for the sizes of a run; run NULL: its constants, or hints. lent: the arena is whoever runs the
 * program to give. NULL: failure says it, UNIMPLEMENTED when oneDNN has no primitive. */
typedef struct { bp_status code; char text[200]; } lower_failure;
program *lower_graph(bp_graph_module *gm, const bp_run *run, bool lent, lower_failure *failure);
#endif
