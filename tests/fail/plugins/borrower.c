/* Links to lender.so: dlsym finds a compile there, which is not this library's. */
#include <backplane/plugin.h>

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs);

BP_EXPORT bp_compiled *compile_by_hand(bp_graph_module *gm, const bp_inputs *inputs)
{
    return compile(gm, inputs);
}
