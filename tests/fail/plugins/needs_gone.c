/* Needs libbp-gone.so, which is nowhere. */
#include <backplane/plugin.h>

BP_EXPORT int gone(void);

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return gone() ? bp_forward(gm) : NULL;
}
