/* Its init hook runs at every resolution, and does its work once. */
#include <backplane/plugin.h>

static const bp_host *the_host;

static bp_status work(void *arg)
{
    (void)arg;
    bp_log_message(the_host, BP_LOG_WARN, "the work was done");
    return BP_OK;
}

BP_EXPORT bp_status init(const bp_host *host)
{
    static char key;
    the_host = host;
    bp_log_message(host, BP_LOG_WARN, "init ran");
    return bp_once(host, &key, work, NULL);
}

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_forward(gm);
}
