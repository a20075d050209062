/* Decompositions: an operator as other operators, a row each (host/pass/decomps/<family>.def).
 *
 *   DECOMP(id, "formula")        several results: "(a, b)", or a call that gives them
 *   DECOMP_WIDE(id, "formula")   the same, computed in float where the operands are halves
 *   DECOMP_FN(id, name)          part_<name> of host/pass/parts_*.c, for what depends on ranks, lists or options
 *   DECOMP_MANY(id, name)        parts_<name>, which gives several results or a list
 *   DECOMP_BODY(id, name)        the steps of kernel_<name>, which is composed itself (host/op/reference/steps.h)
 *   COMPOSITE..., five alike     PyTorch's own composite, which the tape differentiates by its parts
 *   KEPT(id, "reason")           no core ATen form exists; a `core` graph may hold it
 *
 * A decomposition gives the operator's results exactly where its parts are computed exactly, and otherwise rounds as
 * PyTorch's decomposition does. */
#ifndef HOST_PASS_DECOMP_H
#define HOST_PASS_DECOMP_H
#include "host/op/reference/compose.h"
#include "host/pass/formula.h"

/* Gives the results with parts_give and parts_give_list. */
typedef bp_status (*parts_fn)(work *w, const op_row *op, const bp_value *args, op_call *k);

typedef struct {
    const char *text;      /* a formula, or NULL */
    compose_fn body;       /* or NULL; gives one tensor */
    parts_fn many;         /* or NULL */
    const char *kept;      /* why there is none, or NULL */
    bool composite, wide;
    bool lone;             /* body is the kernel's: its result is laid out as the kernel's, and aliases nothing */
    const formula *parsed; /* of text; NULL: parsed at first use, for rows of the table */
    /* Of a backend: it gives the results, as parts_fn does; `user` is its own. Or NULL. */
    bp_status (*give)(bp_ctx *c, const void *user, const bp_value *args, op_call *k);
    const void *user;
} decomp_row;

/* The table's row; NULL: there is none. In-place and out= operators have none: their functional rows do. */
const decomp_row *decomp_of(const op_row *op);
/* Runs a row's parts through op_dispatch as a dispatch mode answers a call: k->op and k->args are given, k->out gets
 * new references. A row that is KEPT is an error. */
bp_status decomp_call(bp_ctx *c, const decomp_row *row, op_call *k);
/* The same for the table's row, with at most nout results into `out`, owned by the innermost scope; NULL where a result
 * is absent. */
bp_status decomp_run(bp_ctx *c, const op_row *op, const bp_value *args, bp_tensor **out, uint32_t nout);
/* Parses every formula of the table; an error names the row. */
bp_status decomp_check_all(bp_ctx *c);

/* -- for C rows of several results -- */
/* The results: NULL gives an absent one. New references are taken here. */
bp_status parts_give(work *w, op_call *k, bp_tensor *const *t, uint32_t n);
#endif
