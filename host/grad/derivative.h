/* Derivatives: a row an operator (host/grad/rows/<family>.def, families as in host/op/ops).
 *
 *   GRAD(id, "self: formula; other: formula")   what is not named gets no gradient
 *   GRAD_FN(id, function, "self, result0")      C; what it reads as data: arguments and results by name
 *   GRAD_ZERO(id)                               differentiable, and its gradient is zero (sign, floor)
 *
 * A gradient may have the shape of the broadcast result, and a wider type: the engine sums and casts it to the
 * argument's. In-place and out= rows use their functional row's. Rows with NO_GRAD_OUT need none. */
#ifndef HOST_GRAD_DERIVATIVE_H
#define HOST_GRAD_DERIVATIVE_H
#include "host/pass/formula.h"

typedef struct grad_call grad_call;
/* Written over op_dispatch (bp_aten_*, op_call1); reads metadata and what its row names, never data: it runs on fakes
 * as well. Tensors that it makes belong to the innermost scope, which the engine opens and closes. */
typedef bp_status (*grad_fn)(bp_ctx *c, grad_call *g);

struct grad_call {
    const op_row *op;
    const bp_value *args;       /* one a schema argument; a tensor that is not read is a fake of its metadata */
    bp_tensor *const *results;  /* likewise */
    bp_tensor *const *grads;    /* one a result; NULL: none flows */
    uint32_t nresults;
    /* Tensor inputs are numbered in order of the schema, items of a Tensor[] one by one. */
    const uint8_t *needs;       /* one an input: its gradient is asked for */
    bp_tensor **out;            /* one an input, to be filled where needed; NULL: zero */
    uint32_t ninputs;
};

typedef struct {
    const char *text;           /* GRAD's, or NULL */
    grad_fn fn;                 /* GRAD_FN's, or NULL */
    const char *reads;          /* GRAD_FN's */
    bool zero;
} grad_row;

/* NULL: no row. */
const grad_row *grad_row_of(const op_row *op);
/* Evaluates the row: fills g->out, each owned by the innermost scope, already summed and cast to its input. */
bp_status grad_run(bp_ctx *c, const grad_row *row, grad_call *g);

/* -- for C rows -- */
/* The number of argument `name`'s first tensor among the inputs; UINT32_MAX: it is None or no tensor. */
uint32_t grad_input(const grad_call *g, const char *name);
/* Whether the gradient of that argument (or of any item of it) is asked for. */
bool grad_needs(const grad_call *g, const char *name);
/* Stores it; t may be NULL (zero), also when the context has an error. */
void grad_give(grad_call *g, const char *name, bp_tensor *t);
/* Argument by name; NULL when None. */
bp_tensor *grad_tensor(const grad_call *g, const char *name);
const bp_value *grad_arg(const grad_call *g, const char *name);
/* The gradient of result i, zeros of its shape when none flows. */
bp_tensor *grad_of(bp_ctx *c, grad_call *g, uint32_t i);
/* t summed to those sizes (undoes broadcasting). */
bp_tensor *grad_sum_to(bp_ctx *c, bp_tensor *t, uint32_t rank, const bp_dim *sizes);
#endif
