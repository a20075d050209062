/* Says that it takes symbolic sizes, and takes the hints for them. */
#include <backplane/plugin.h>
#include <stdlib.h>

static bp_status run(void *state, bp_run *r)
{
    static float data[64];
    bp_dim size = {0, 0, 0}, stride = {1, 0, 0};
    bp_view y = {sizeof(bp_view), BP_F32, BP_CPU, 0, 1, 0, NULL, NULL, NULL};
    size.value = *(const int64_t *)state;
    y.sizes = &size;
    y.strides = &stride;
    y.data = data;
    return bp_run_output(r, 0, &y);
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

BP_EXPORT const bp_backend_info backend_info = {.size = sizeof(bp_backend_info), .flags = BP_DYNAMIC_SHAPES};
