/* A case on a named backend. */
#include "host/tools/golden_case.h"

bp_status golden_run_on(bp_ctx *c, bp_graph_module *gm, const char *backend, bp_tensor *const *inputs, uint32_t ninputs,
                        bp_tensor **outputs, uint32_t noutputs)
{
    (void)gm, (void)inputs, (void)ninputs, (void)outputs, (void)noutputs;
    return ctx_fail(c, BP_UNIMPLEMENTED, "backend \"%s\": cases run on eager only", backend);
}
