/* A library, not a plugin, that happens to export a symbol named compile. */
#include <backplane/plugin.h>

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_forward(gm);
}
