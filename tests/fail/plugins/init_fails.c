/* Its init hook fails, with a reason. */
#include <backplane/plugin.h>

BP_EXPORT bp_status init(const bp_host *host)
{
    return bp_init_fail(host, BP_UNAUTHENTICATED, "the licence of this compiler ran out in %d", 1999);
}

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_forward(gm);
}
