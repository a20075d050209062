/* Sets a third output of two. */
#include <backplane/plugin.h>

static bp_status run(void *state, bp_run *r)
{
    bp_view v;
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        bp_status st = bp_run_empty(r, i, &v);
        if (st != BP_OK)
            return st;
    }
    return BP_OK;
}

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_compiled_new(gm, run, NULL, NULL);
}
