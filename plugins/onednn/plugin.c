/* onednn-cpu: convolutions, products, pooling and eltwise by oneDNN on the CPU; every other node is left to the next
 * backend, with its reason. Float32 only; never fast-math. */
#include <config.h>
#include "plugins/onednn/lower.h"

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs);
BP_EXPORT bp_status init(const bp_host *host);
BP_EXPORT const bp_backend_info backend_info;

static int32_t supports(const bp_graph_module *gm, uint32_t node, char *text, size_t cap)
{
    why w = {text, cap, false};
    return lower_supports(gm, node, &w);
}

const bp_backend_info backend_info = {
    .size = sizeof(bp_backend_info),
    .version = PLUGIN_VERSION,
    .vendor = "Backplane",
    .graph = BP_GRAPH_CAPTURED,
    .supports = supports,
};

static char once_key;

static bp_status open_library(void *arg)
{
    const bp_host *host = arg;
    char text[512];
    if (api_open(NULL, text, sizeof text))
        return BP_OK;
    return bp_init_fail(host, BP_FAILED_PRECONDITION, "oneDNN's library cannot be used: %s", text);
}

/* The library is opened when the backend is first resolved; a failure is told again at each later resolution. */
bp_status init(const bp_host *host)
{
    bp_status status = dnnl.engine ? BP_OK : bp_once(host, &once_key, open_library, (void *)(uintptr_t)host);
    if (status != BP_OK && !dnnl.engine)
        return open_library((void *)(uintptr_t)host);
    return status;
}

bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    program *p = lower_graph(gm, inputs);
    bp_compiled *k = p ? bp_compiled_new(gm, program_run, program_destroy, p) : NULL;
    if (p && !k)
        program_destroy(p);
    return k;
}
