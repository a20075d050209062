/* Defines a custom operator when it is resolved: vendor::scale(x, alpha) = x * alpha, on contiguous float32; and takes
 * it, alone, when it compiles. */
#include <backplane/plugin.h>
#include <string.h>

static bp_status shape(bp_op_call *k, bp_view *x, bp_view *y)
{
    bp_status st = bp_call_view(k, 0, 0, x);
    if (st)
        return bp_call_fail(k, st, "no tensor");
    if (x->dtype != BP_F32)
        return bp_call_fail(k, BP_INVALID_ARGUMENT, "float32 is wanted");
    return bp_call_result(k, x->dtype, x->rank, x->sizes, y);
}

static bp_status fake(bp_op_call *k, void *arg)
{
    bp_view x, y;
    (void)arg;
    return shape(k, &x, &y);
}

static bp_status kernel(bp_op_call *k, void *arg)
{
    bp_view x, y;
    bp_value alpha;
    bp_status st = shape(k, &x, &y);
    if (st || (st = bp_call_value(k, 1, &alpha)) != BP_OK)
        return st;
    int64_t n = 1;
    for (uint32_t d = 0; d < x.rank; d++)
        n *= x.sizes[d].value;
    for (int64_t i = 0; i < n; i++)
        ((float *)y.data)[i] = ((const float *)x.data)[i] * (float)alpha.v.f[0];
    ++*(int *)arg;
    return BP_OK;
}

BP_EXPORT bp_status init(const bp_host *host)
{
    static int calls;
    const bp_operator_def def = {sizeof def, 0, "vendor::scale", "(Tensor x, float alpha) -> Tensor", NULL,
                                 kernel, fake, &calls};
    return bp_define_operator(host, &def);
}

static int32_t supports(const bp_graph_module *gm, uint32_t node, char *why, size_t cap)
{
    if (!strcmp(bp_node_target(gm, node), "vendor.scale.default"))
        return 1;
    snprintf(why, cap, "only its own operator");
    return 0;
}

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_forward(gm);
}

BP_EXPORT const bp_backend_info backend_info = {.size = sizeof(bp_backend_info), .supports = supports};
