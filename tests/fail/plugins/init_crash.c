/* Crashes in its init hook: seen by `probe = full`. */
#include <backplane/plugin.h>
#include <stdlib.h>

BP_EXPORT bp_status init(const bp_host *host)
{
    (void)host;
    abort();
}

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_forward(gm);
}
