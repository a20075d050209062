/* A case as a captured function: the graph is interpreted under capture, which functionalizes it, and what was captured
 * runs on the eager backend. Outputs must be the recorded ones, and inputs written as the operators themselves write
 * them. A function that declines to be captured runs as it is, and is counted apart. */
#include <backplane/backplane.h>
#include "host/tools/golden_case.h"

typedef struct { const golden_call *call; } captured;

static bp_status return_results(void *arg, node_id n, bp_tensor *const *results, uint32_t nresults)
{
    const captured *k = bp_user(arg);
    if (graph_get(&k->call->gm->g, n)->op != BP_NODE_CALL_FUNCTION)
        return BP_OK;
    for (uint32_t i = 0; i < nresults; i++)
        bp_return(arg, results[i]);
    return BP_OK;
}

/* The captured function; it may run several times in one call. */
static void interpret(bp_ctx *c, bp_frame *f)
{
    const golden_call *k = ((captured *)bp_user(f))->call;
    uint32_t nout = graph_output_count(&k->gm->g);
    bp_tensor **inputs = calloc(k->ninputs + 1, sizeof *inputs), **outputs = calloc(nout + 1, sizeof *outputs);
    char name[32];
    for (uint32_t i = 0; inputs && i < k->ninputs; i++) {
        snprintf(name, sizeof name, "x%u", i);
        inputs[i] = bp_arg(f, i, name);
    }
    if (!inputs || !outputs)
        ctx_nomem(c);
    else if (graph_run(c, k->gm, inputs, k->ninputs, outputs, nout, nout ? NULL : return_results, f) == BP_OK)
        for (uint32_t i = 0; i < nout; i++)
            bp_return(f, outputs[i]);
    for (uint32_t i = 0; outputs && i < nout; i++)
        tensor_unref(outputs[i]);
    free(inputs);
    free(outputs);
}

static bp_status call(bp_ctx *c, const golden_call *k, bp_callable *g)
{
    bp_outputs out = {0};
    bp_value *at = calloc(k->ninputs + 1, sizeof *at);
    if (!at)
        return ctx_nomem(c);
    for (uint32_t i = 0; i < k->ninputs; i++)
        at[i] = bp_arg_of_tensor(k->inputs[i]);
    bp_status s = bp_call(c, g, &(bp_args){at, k->ninputs}, &out);
    free(at);
    for (uint32_t i = 0; i < out.n && s == BP_OK; i++)
        if (!k->take(k->arg, out.at[i] ? tensor_ref(out.at[i]) : NULL))
            s = ctx_nomem(c);
    return s;
}

bp_status golden_run_captured(bp_ctx *c, const golden_call *k, bool *eagerly)
{
    captured user = {k};
    bp_callable_stats stats = {.size = sizeof stats};
    bp_scope_begin(c);
    bp_callable *g = bp_compile(c, interpret, &(bp_compile_options){.backend = k->backend ? k->backend : "eager",
                                                                     .user = &user});
    bp_status s = g ? call(c, k, g) : c->diag.code;
    *eagerly = s == BP_OK && bp_stats(c, g, &stats) == BP_OK && stats.eager_calls > 0;
    bp_scope_end(c);
    bp_callable_unref(g);
    return s;
}
