/* A vendor's first plugin, in five lines. */
#include <backplane/plugin.h>

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    bp_print_tabular(gm, bp_sink(gm));
    return bp_forward(gm);
}
