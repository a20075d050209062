/* The backend of the benches: whatever the graph, a run makes its outputs and sets the first element of each to one. So
 * what a call takes is the host's. Runs are concurrent, as a backend's that keeps up with threads are. */
#include <backplane/plugin.h>

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs);
BP_EXPORT bp_status bench_run(void *state, bp_run *r); /* exported so that a profile has its name */

static void set_one(const bp_view *v)
{
    if (v->dtype == BP_BOOL)
        *(unsigned char *)v->data = 1;
    else if (v->dtype == BP_F32)
        *(float *)v->data = 1;
}

bp_status bench_run(void *state, bp_run *r)
{
    for (uintptr_t i = 0; i < (uintptr_t)state; i++) {
        bp_view v;
        bp_status st = bp_run_empty(r, (uint32_t)i, &v);
        if (st != BP_OK)
            return st;
        set_one(&v);
    }
    return BP_OK;
}

/* The state is the number of outputs. */
bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    bp_value outs = {0};
    uint32_t n = bp_node_count(gm);
    (void)inputs;
    if (!n || bp_node_arg(gm, bp_node_at(gm, n - 1), "0", &outs) != BP_OK)
        return bp_fail(gm, BP_INTERNAL, "the graph has no output");
    return bp_compiled_new(gm, bench_run, NULL, (void *)(uintptr_t)outs.count);
}

BP_EXPORT const bp_backend_info backend_info;
const bp_backend_info backend_info = {.size = sizeof(bp_backend_info),
                                      .flags = BP_CONCURRENT_RUN | BP_CONCURRENT_COMPILE};
