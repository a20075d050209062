/* A case on a named backend, through the same programs that callables run. */
#include "host/backend/program.h"
#include "host/tools/golden_case.h"

bp_status golden_propagate(bp_ctx *c, bp_graph_module *gm)
{
    bp_status s = graph_propagate(c, gm);
    if (s != BP_FAILED_PRECONDITION)
        return s;
    diag_clear(&c->diag);
    return ctx_fail(c, BP_UNIMPLEMENTED, "a size depends on data, and a backend's graph has fixed sizes");
}

bp_status golden_run_on(bp_ctx *c, bp_graph_module *gm, const char *name, bp_tensor *const *inputs, uint32_t ninputs,
                        bp_tensor **outputs, uint32_t noutputs)
{
    program *p = NULL;
    backend *b = NULL;
    program_io io = {.inputs = inputs, .ninputs = ninputs, .outputs = outputs, .noutputs = noutputs};
    TRY(backend_resolve(c, name, NULL, NULL, &b));
    TRY(program_compile(c, gm, b, &p));
    bp_status s = program_run(c, p, &io);
    program_unref(p);
    return s;
}
