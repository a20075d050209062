/* Derivatives of custom operators: what a setup function kept of a forward, and the row that runs a backward. */
#ifndef HOST_GRAD_CUSTOM_H
#define HOST_GRAD_CUSTOM_H
#include "host/grad/tape_node.h"
#include "host/op/library.h"

typedef struct custom_saved custom_saved;

/* The row of an operator that has a derivative; NULL: it has none. */
const grad_row *custom_grad_row(const op_row *op);
/* Behind a recorded forward: runs the setup function; what it keeps becomes n's saved values. reads gets the results
 * that are kept. */
bp_status custom_setup(bp_ctx *c, tape_node *n, const op_call *k, const bp_value *args, formula_reads *reads);
/* An operator that is made of others runs through the tape again: to the mode `self`, or, NULL, to the bottom. */
bp_status custom_run_parts(bp_ctx *c, dispatch_mode *self, op_call *k);
void custom_saved_drop(custom_saved *s); /* its tensors; NULL: nothing */
void custom_saved_free(custom_saved *s);
#endif
