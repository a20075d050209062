/* A graph case with symbols for sizes, differentiated ahead of time: one forward and one backward over symbols run on
 * the recorded inputs. */
#include "host/backend/backend.h"
#include "host/compile/aot.h"
#include "host/tools/golden_case.h"
#include <stdlib.h>

/* A graph that writes in place becomes functional by being captured, and its sizes are those of the capture. */
static bool writes(const graph *g)
{
    for (node_id n = g->first; n; n = graph_get(g, n)->next) {
        const op_row *row = graph_get(g, n)->row;
        if (row && (row->functional || row->flags & (OP_MOVES_STATS | OP_EFFECT)))
            return true;
    }
    return false;
}

bool golden_trains_symbolic(const golden_case *k, const golden_call *call)
{
    return k->o->symbolic && k->o->aot && call->gm->g.syms && !writes(&call->gm->g);
}

bp_status golden_train_symbolic(golden_case *k, const golden_call *call, bp_tensor **outputs, uint32_t noutputs)
{
    bp_ctx *c = k->c;
    program *p = NULL;
    aot *a = NULL;
    uint8_t *needs = calloc((size_t)call->ninputs + 1, 1);
    bp_graph_module *gm = needs ? gm_clone(c, call->gm) : NULL;
    backend *b = gm ? backend_lookup(c, k->o->aot) : NULL;
    for (uint32_t i = 0; needs && i < call->ninputs; i++)
        needs[i] = (call->inputs[i]->flags & TENSOR_REQUIRES_GRAD) != 0;
    bp_status st = b ? aot_compile(c, gm, b, needs, &p, &a) : ctx_ok(c) ? ctx_nomem(c) : c->diag.code;
    program_io io = {.inputs = call->inputs, .ninputs = call->ninputs, .outputs = outputs, .noutputs = noutputs};
    if (st == BP_OK) {
        k->symbolic = aot_forward(a, 0) && aot_forward(a, 0)->g.syms;
        st = aot_run(c, a, &io, NULL);
    }
    program_unref(p);
    aot_unref(a);
    gm_unref(gm);
    free(needs);
    return st;
}
