/* What the parts of the bottom share: arguments made ready, and the run of in-place rows. */
#ifndef HOST_OP_RUN_H
#define HOST_OP_RUN_H
#include "host/op/op.h"

/* Arguments that were checked: numbers that stand for tensors are wrapped numbers, 0-d CPU tensors that live as long as
 * this. */
typedef struct wrapped wrapped;
typedef struct {
    const bp_value *args;
    wrapped *made;
    bool any_fake, any_grad;  /* some tensor is a fake; some tensor requires grad */
    bp_device device;         /* where results belong */
    const bp_tensor *abroad;  /* a tensor that is not the CPU's, or NULL */
    uint32_t abroad_arg;
} prepared;

/* Checks args against the schema. On failure nothing needs to be released. */
bp_status prepare(bp_ctx *c, const op_row *op, const bp_value *args, prepared *p);
void prepared_release(prepared *p);

/* Runs the rule on prepared arguments. In-place and out= rows give their arguments. */
bp_status infer_prepared(bp_ctx *c, const op_row *op, const prepared *p, shape_call *s);
/* The rule of an in-place or out= row: checks the functional result against what is written. */
bp_status inplace_infer(bp_ctx *c, const op_row *op, const prepared *p, shape_call *s);
/* Runs an in-place or out= row on prepared arguments; fills k->out. fake: computes nothing. */
bp_status inplace_run(bp_ctx *c, op_call *k, const prepared *p, bool fake);
/* Makes room for n results in k->out. */
bp_status results_reserve(bp_ctx *c, op_call *k, uint32_t n);
/* Gives back the results made so far. */
void results_drop(op_call *k);
/* Whether an operator called now records gradients. */
static inline bool grad_on(const bp_ctx *c) { return c->ambient.grad_enabled && !c->ambient.inference_mode; }
#endif
