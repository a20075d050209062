/* Its init hook finds no hardware. */
#include <backplane/plugin.h>

BP_EXPORT bp_status init(const bp_host *host)
{
    return bp_init_fail(host, BP_UNAVAILABLE, "no accelerator of vendor %#x is plugged in", 0x1234);
}

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_forward(gm);
}
