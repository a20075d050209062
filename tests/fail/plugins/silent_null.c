/* Returns NULL without a word. */
#include <backplane/plugin.h>

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)gm;
    (void)inputs;
    return NULL;
}
