/* Crashes while it is loaded. */
#include <backplane/plugin.h>
#include <stdlib.h>

__attribute__((constructor)) static void crash(void)
{
    abort();
}

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_forward(gm);
}
