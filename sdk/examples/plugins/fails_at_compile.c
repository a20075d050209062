/* A backend that fails at compile: the first link of the demo's chain. */
#include <backplane/plugin.h>

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs);

bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_fail(gm, BP_UNAVAILABLE, "the licence server does not answer (this plugin always says so)");
}
