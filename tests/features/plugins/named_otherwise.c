/* A plugin whose functions have other names than the usual ones; it logs when they are called. */
#include <backplane/plugin.h>

BP_EXPORT bp_status acme_set_up(const bp_host *host)
{
    bp_log_message(host, BP_LOG_WARN, "acme_set_up ran");
    return BP_OK;
}

BP_EXPORT bp_compiled *acme_compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    bp_log_message(BP_HOST_OF_(gm), BP_LOG_WARN, "acme_compile ran");
    return bp_forward(gm);
}
