/* Fails when it runs, without a word. */
#include <backplane/plugin.h>

static bp_status run(void *state, bp_run *r)
{
    (void)state;
    (void)r;
    return BP_INTERNAL;
}

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_compiled_new(gm, run, NULL, NULL);
}
