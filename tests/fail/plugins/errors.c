/* Fails to compile, with a code and a reason. */
#include <backplane/plugin.h>

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_fail(gm, BP_RESOURCE_EXHAUSTED, "the code cache of %d MB is full", 16);
}
