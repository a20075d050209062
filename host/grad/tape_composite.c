/* Composites under the tape: an operator without a derivative of its own runs as its parts, each of which is recorded.
 *
 * The parts give what the operator's kernel gives. What they leave behind is gone with a scope. */
#include "host/grad/tape_node.h"
#include "host/op/run.h"
#include "host/pass/decomp.h"
#include <backplane/backplane.h>
#include <string.h>

bool composite_is(const op_row *op)
{
    const decomp_row *row = decomp_of(op);
    return row && row->composite;
}

static bp_status write_back(bp_ctx *c, const op_call *k, bp_tensor **value)
{
    bp_tensor *self = arg_tensor(k->args, 0);
    bp_aten_copy_inplace_default(c, self, *value, 0);
    *value = self;
    return c->diag.code;
}

static bp_status run_parts(bp_ctx *c, op_call *k, const op_row *op, const bp_value *args)
{
    shape_call s;
    TRY(op_infer(c, k->op, k->args, &s)); /* says what is wrong in the operator's own name */
    bp_tensor **out = arena_array(&c->scratch, s.nout, sizeof *out);
    if (!out)
        return ctx_nomem(c);
    memset(out, 0, s.nout * sizeof *out);
    TRY(decomp_run(c, op, args, out, s.nout));
    if (op != k->op && s.nout == 1)
        TRY(write_back(c, k, &out[0]));
    TRY(results_reserve(c, k, s.nout));
    for (uint32_t i = 0; i < s.nout; i++)
        k->out[i] = out[i] ? tensor_ref(out[i]) : NULL;
    return BP_OK;
}

bp_status composite_run(bp_ctx *c, dispatch_mode *self, op_call *k, const op_row *op, const bp_value *args)
{
    dispatch_mode *below = c->modes;
    if (self)
        c->modes = self;
    scope_push(c);
    bp_status st = run_parts(c, k, op, args);
    scope_pop(c);
    c->modes = below;
    return st == BP_OK ? c->diag.code : st;
}
