/* Calls a function that nobody defines. */
#include <backplane/plugin.h>

BP_EXPORT bp_compiled *nowhere_defined(bp_graph_module *gm);

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return nowhere_defined(gm);
}
