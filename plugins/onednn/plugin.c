/* onednn-cpu: convolutions, products, pooling and eltwise by oneDNN on the CPU; every other node is left to the next
 * backend, with its reason. Float32 only; never fast-math. Sizes may be symbolic: nodes are taken by type, rank and
 * layout, and primitives are made for the sizes that runs have. */
#include <config.h>
#include "plugins/onednn/shapes.h"

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
    .flags = BP_DYNAMIC_SHAPES,
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

static bp_compiled *tell(bp_graph_module *gm, const lower_failure *failure)
{
    if (failure->code == BP_UNIMPLEMENTED)
        return bp_decline(gm, 0, "%s", failure->text);
    return bp_fail(gm, failure->code, "%s", failure->text);
}

bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    lower_failure failure = {BP_OK, ""};
    bool is_static = bp_symbol_count(gm) == 0;
    (void)inputs;
    if (lower_is_empty(gm))
        return bp_decline(gm, 0, "the graph has no operator");
    void *state = is_static ? (void *)lower_graph(gm, NULL, false, &failure) : (void *)shapes_new(gm, &failure);
    if (!state)
        return tell(gm, &failure);
    bp_destroy_fn destroy = is_static ? program_destroy : shapes_destroy;
    bp_compiled *k = bp_compiled_new(gm, is_static ? program_run : shapes_run, destroy, state);
    if (!k)
        destroy(state);
    return k;
}
