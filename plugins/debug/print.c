/* debug-print: shows each graph it is handed, as FX's table and in readable form, and gives the graph's own forward. */
#include <backplane/plugin.h>

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs);
BP_EXPORT const bp_backend_info backend_info;

bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    bp_status st = bp_print_tabular(gm, bp_sink(gm));
    if (st == BP_OK)
        st = bp_print_readable(gm, bp_sink(gm));
    if (st != BP_OK)
        return bp_fail(gm, st, "the graph cannot be printed");
    return bp_forward(gm);
}

static const bp_option_row OPTIONS[] = {{NULL, NULL, NULL, NULL}};

const bp_backend_info backend_info = {
    .size = sizeof(bp_backend_info),
    .flags = BP_CONCURRENT_COMPILE | BP_CONCURRENT_RUN | BP_FORK_SAFE,
    .version = "1",
    .vendor = "backplane",
    .options = OPTIONS,
};
