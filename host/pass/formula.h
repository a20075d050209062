/* Formulas: expressions over an operator's arguments, results and gradients, in the graph's own text form.
 *
 *   mul.Tensor(grad, conj(other))
 *
 * A call is NAME or NAME.OVERLOAD of an ATen operator (".default" may be left out), with values as in graph texts.
 * Names are those of the schema's arguments, result or result0 ..., grad or grad0 ... . sizes(x), dtype(x), rank(x) and
 * numel(x) read metadata alone. Parsed once, immutable, shared by threads. */
#ifndef HOST_PASS_FORMULA_H
#define HOST_PASS_FORMULA_H
#include "host/op/op.h"

typedef struct formula formula;

/* Parses a formula of `op`; an error names the operator, the column and what was expected. The caller frees it. */
formula *formula_parse(bp_ctx *c, const op_row *op, const char *text);
void formula_free(formula *f);

/* What it reads as data (not metadata alone): bit i is argument i, result i, gradient i. */
typedef struct { uint64_t args, results, grads; } formula_reads;
formula_reads formula_read_set(const formula *f);

/* What a formula's names mean. */
typedef struct {
    const bp_value *args;        /* one a schema argument */
    bp_tensor *const *results;   /* NULL where it is not read */
    bp_tensor *const *grads;     /* NULL: zero */
    uint32_t nresults;
} formula_env;

/* Evaluates through op_dispatch: real, fake and recorded alike. One tensor, owned by the innermost scope; a call that
 * gives several results gives the first. NULL: the context has an error. */
bp_tensor *formula_eval(bp_ctx *c, const formula *f, const formula_env *env);
/* The same for a formula of several results, "(a, b)": n of them. */
bp_status formula_eval_all(bp_ctx *c, const formula *f, const formula_env *env, bp_tensor **out, uint32_t n);
#endif
