/* Decompositions: an operator as other operators, a row each (host/pass/decomps/<family>.def).
 *
 *   DECOMP(id, "formula")        several results: "(a, b)"
 *   DECOMP_FN(id, function)      written in C over op_dispatch, for what depends on ranks, lists or options
 *   COMPOSITE(id, ...)           as either: PyTorch's own composite, which the tape differentiates by its parts
 *   KEPT(id, "reason")           no core ATen form exists; a `core` graph may hold it
 *
 * A decomposition gives the operator's results exactly where its parts are computed exactly, and otherwise rounds as
 * PyTorch's decomposition does. */
#ifndef HOST_PASS_DECOMP_H
#define HOST_PASS_DECOMP_H
#include "host/pass/formula.h"

typedef struct decomp_call decomp_call;
typedef bp_status (*decomp_fn)(bp_ctx *c, decomp_call *d);

struct decomp_call {
    const op_row *op;
    const bp_value *args;  /* one a schema argument, defaults filled in */
    bp_tensor **out;       /* room for nout; owned by the innermost scope; NULL where a result is absent */
    uint32_t nout;
};

typedef struct {
    const char *text;      /* a formula, or NULL */
    decomp_fn fn;          /* or NULL */
    const char *kept;      /* why there is none, or NULL */
    bool composite;
} decomp_row;

/* NULL: no row. */
const decomp_row *decomp_of(const op_row *op);
/* Runs the row's parts through op_dispatch. nout is how many results the caller has room for. */
bp_status decomp_run(bp_ctx *c, const op_row *op, const bp_value *args, bp_tensor **out, uint32_t nout);
#endif
