/* Says that the caller is at fault: no other link is asked. */
#include <backplane/plugin.h>

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_refuse(gm, "option \"threads\" must be positive");
}
