/* Reads a size while it compiles, and computes for that size for ever: right without BP_DYNAMIC_SHAPES. */
#define BP_API 1
#include <backplane/plugin.h>
#include <stdlib.h>

static bp_status run(void *state, bp_run *r)
{
    const int64_t n = *(const int64_t *)state;
    bp_view x, y;
    if (bp_run_borrow(r, 0, &x) || bp_run_empty(r, 0, &y))
        return bp_run_fail(r, BP_INTERNAL, "no data");
    for (int64_t i = 0; i < n; i++)
        ((float *)y.data)[i] = -((const float *)x.data)[i];
    return BP_OK;
}

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    bp_view x;
    int64_t *n = malloc(sizeof *n);
    if (!n || bp_input_view(inputs, 0, &x))
        return bp_fail(gm, BP_INTERNAL, "no size");
    *n = x.sizes[0].value;
    return bp_compiled_new(gm, run, free, n);
}
