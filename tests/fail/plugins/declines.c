/* Declines every graph, with the node that is in the way. */
#include <backplane/plugin.h>

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_decline(gm, bp_node_at(gm, 1), "no pooling in %d dimensions", 3);
}
