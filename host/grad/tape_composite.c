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

typedef struct { bp_ctx *c; dispatch_mode *self; op_call *k; const op_row *op; bp_value *args; } parts;

/* What is to be written is computed from a copy: the parts may save what the write overwrites. */
static bp_status run_written(parts *p, bp_tensor **value)
{
    bp_tensor *self = arg_tensor(p->k->args, 0), *old = bp_aten_clone_default(p->c, self, 0);
    if (!old)
        return p->c->diag.code;
    p->args[0] = value_tensor(old);
    TRY(decomp_run(p->c, p->op, p->args, value, 1));
    bp_aten_copy_inplace_default(p->c, self, *value, 0);
    *value = self;
    return p->c->diag.code;
}

/* The argument gets another layout (swapaxes_): its history becomes that of the view that the parts give. */
static bp_status run_layout(parts *p, bp_tensor **value)
{
    bp_ctx *c = p->c;
    bp_tensor *self = arg_tensor(p->k->args, 0);
    TRY(decomp_run(c, p->op, p->args, value, 1));
    const tape_meta *m = tape_meta_get(*value);
    tape_edge e = m && m->node ? (tape_edge){tape_node_ref(m->node), m->index} : (tape_edge){NULL, 0};
    *value = self;
    uint8_t grad = c->ambient.grad_enabled;
    c->ambient.grad_enabled = 0;
    op_call k = {.op = p->k->op, .args = p->k->args};
    bp_status st = p->self ? op_dispatch_below(c, p->self, &k) : op_run_reference(c, &k);
    c->ambient.grad_enabled = grad;
    results_drop(&k);
    if (st == BP_OK && e.node)
        st = tape_set_node(c, self, e.node, e.index);
    tape_edge_drop(e);
    return st;
}

static bp_status run_parts(parts *p)
{
    bp_ctx *c = p->c;
    shape_call s;
    TRY(op_infer(c, p->k->op, p->k->args, &s)); /* says what is wrong in the operator's own name */
    bp_tensor **out = arena_array(&c->scratch, s.nout, sizeof *out);
    if (!out)
        return ctx_nomem(c);
    memset(out, 0, s.nout * sizeof *out);
    if (p->op == p->k->op)
        TRY(decomp_run(c, p->op, p->args, out, s.nout));
    else
        TRY(p->op->flags & OP_VIEW ? run_layout(p, out) : run_written(p, out));
    TRY(results_reserve(c, p->k, s.nout));
    for (uint32_t i = 0; i < s.nout; i++)
        p->k->out[i] = out[i] ? tensor_ref(out[i]) : NULL;
    p->k->returns_list = p->k->op->schema->nreturns == 1 && p->k->op->schema->returns[0].list;
    return BP_OK;
}

bp_status composite_run(bp_ctx *c, dispatch_mode *self, op_call *k, const op_row *op, bp_value *args)
{
    dispatch_mode *below = c->modes;
    parts p = {c, self, k, op, args};
    if (self)
        c->modes = self;
    scope_push(c);
    bp_status st = run_parts(&p);
    scope_pop(c);
    c->modes = below;
    return st == BP_OK ? c->diag.code : st;
}
