/* Derivatives: a row an operator (host/grad/rows/<family>.def, families as in host/op/ops).
 *
 *   GRAD(id, "self: formula; other: formula")   what is not named gets no gradient
 *   GRAD_FN(id, function, "self, result0")      C; what it reads as data: arguments and results by name
 *   GRAD_ZERO(id)                               differentiable, and its gradient is zeros (sign, floor)
 *   GRAD_NONE(id, "reason")                     has no derivative, and why
 *
 * A gradient may have the shape of the broadcast result, and a wider type: the engine sums and casts it to the
 * argument's (the real part, where the argument is real and the gradient complex). A row is asked only when some
 * gradient of a result flows. In-place and out= rows use their functional row's. Rows with NO_GRAD_OUT need none. */
#ifndef HOST_GRAD_DERIVATIVE_H
#define HOST_GRAD_DERIVATIVE_H
#include "host/pass/formula.h"

typedef struct grad_call grad_call;
/* Written over op_dispatch (bp_aten_*; op_call1 goes past the modes, and must not be used). It reads metadata and what
 * its row names, never data: it runs on fakes as well. Tensors that it makes belong to the innermost scope, which the
 * engine opens and closes. */
typedef bp_status (*grad_fn)(bp_ctx *c, grad_call *g);

struct grad_call {
    const op_row *op;
    const bp_value *args;       /* one a schema argument; a tensor that is not read is a fake of its metadata */
    bp_tensor *const *results;  /* likewise; NULL: there was no such result */
    bp_tensor *const *grads;    /* one a result; NULL: none flows */
    uint32_t nresults;
    /* Tensor inputs are numbered in order of the schema, items of a Tensor[] one by one; None and plain numbers are not
     * counted. */
    const uint8_t *needs;       /* one an input: its gradient is asked for */
    bp_tensor **out;            /* one an input, to be filled where needed; NULL: none flows */
    uint32_t ninputs;
    struct custom_saved *own;   /* of a custom operator: what its setup function kept (custom.h); else NULL */
};

typedef struct {
    const char *text;           /* GRAD's, or NULL */
    grad_fn fn;                 /* GRAD_FN's, or NULL */
    const char *reads;          /* GRAD_FN's */
    bool zero;
    const char *none;           /* GRAD_NONE's reason */
} grad_row;

/* NULL: no row, or one of GRAD_NONE. op: a functional row. */
const grad_row *grad_row_of(const op_row *op);
/* Why an operator has no derivative; NULL: no row of GRAD_NONE. */
const char *grad_none_of(const op_row *op);
/* What the row reads as data when the gradients of those arguments are asked for (bit i: argument i of the schema). */
bp_status grad_reads(bp_ctx *c, const op_row *op, uint64_t wanted, formula_reads *out);
/* Evaluates the row of g->op: fills g->out, each owned by the innermost scope, already summed and cast to its input. */
bp_status grad_run(bp_ctx *c, const grad_row *row, grad_call *g);

/* -- tensors among values: the numbering of inputs -- */
uint32_t grad_count_inputs(const bp_value *args, uint32_t nargs);
/* Input i; *arg (may be NULL): the argument that it is, or is an item of. NULL: there are not that many. */
bp_tensor *grad_input_at(const bp_value *args, uint32_t nargs, uint32_t i, uint32_t *arg);

/* -- for C rows -- */
/* The number of argument `name`'s first tensor among the inputs; UINT32_MAX: it is None or no tensor. */
uint32_t grad_input(const grad_call *g, const char *name);
/* Whether the gradient of that argument (or of any item of it) is asked for. */
bool grad_needs(const grad_call *g, const char *name);
/* Stores it; t may be NULL (none flows), also when the context has an error. */
void grad_give(grad_call *g, const char *name, bp_tensor *t);
/* The same for item i of a Tensor[]; an item that is None has no gradient. */
void grad_give_item(grad_call *g, const char *name, uint32_t i, bp_tensor *t);
/* Argument by name; NULL when None. */
bp_tensor *grad_tensor(const grad_call *g, const char *name);
const bp_value *grad_arg(const grad_call *g, const char *name);
/* The gradient of result i, zeros of its shape when none flows. */
bp_tensor *grad_of(bp_ctx *c, grad_call *g, uint32_t i);
/* Zeros of t's sizes, type and device; of t the metadata are read alone. */
bp_tensor *grad_zeros(bp_ctx *c, const bp_tensor *t);
/* t summed to those sizes (undoes broadcasting). */
bp_tensor *grad_sum_to(bp_ctx *c, bp_tensor *t, uint32_t rank, const bp_dim *sizes);
/* t summed and cast to what an input of that metadata takes; fails, naming `who`, where that cannot be. */
bp_tensor *grad_fit(bp_ctx *c, bp_tensor *t, const tensor_meta *input, const char *who);
/* From the gradient of `part`, any layout over the memory of `base`, to that of base: zeros where part does not reach,
 * sums where it reaches twice. The two may differ in that one is complex and the other its real view. */
bp_tensor *grad_of_view(bp_ctx *c, bp_tensor *g, const tensor_meta *base, const tensor_meta *part);
/* g, a gradient of base, seen through part: a copy of what lies there. */
bp_tensor *grad_view(bp_ctx *c, bp_tensor *g, const tensor_meta *base, const tensor_meta *part);
/* g, a gradient of base, with `value` (NULL: zeros) where part lies. */
bp_tensor *grad_scatter(bp_ctx *c, bp_tensor *g, bp_tensor *value, const tensor_meta *base, const tensor_meta *part);
#endif
