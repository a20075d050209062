/* Compiles, and fails when it runs. */
#include <backplane/plugin.h>

static bp_status run(void *state, bp_run *r)
{
    (void)state;
    return bp_run_fail(r, BP_UNAVAILABLE, "the device fell off the bus in slot %d", 3);
}

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_compiled_new(gm, run, NULL, NULL);
}
