/* Makes one output of two. */
#include <backplane/plugin.h>

static bp_status run(void *state, bp_run *r)
{
    bp_view v;
    (void)state;
    return bp_run_empty(r, 0, &v);
}

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_compiled_new(gm, run, NULL, NULL);
}
