/* Gives an output of another data type than the graph promises, and hides the failure. */
#include <backplane/plugin.h>

static bp_status run(void *state, bp_run *r)
{
    static const bp_dim SIZES[] = {{3, 0, 0}}, STRIDES[] = {{1, 0, 0}};
    double data[3] = {1, 2, 3};
    bp_view v = {sizeof v, BP_F64, BP_CPU, 0, 1, 0, SIZES, STRIDES, data};
    (void)state;
    bp_run_output(r, 0, &v);
    return BP_OK;
}

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_compiled_new(gm, run, NULL, NULL);
}
