/* Formulas: expressions over an operator's arguments, results and gradients, in the graph's own text form.
 *
 *   mul.Tensor(grad, conj(other))
 *   mul.Scalar(pow.Tensor_Scalar(self, exponent - 1), exponent)
 *
 * A call is NAME or NAME.OVERLOAD of an ATen operator (".default" may be left out), with values as in graph texts; of a
 * call with several results, CALL[1] is the second one. Names are those of the schema's arguments, result or result0
 * ..., grad or grad0 ... . sizes(x), dtype(x), rank(x) and numel(x) read metadata alone. Numbers add, subtract,
 * multiply and divide as in Python. conj(x) is x itself where x is real. Parsed once, immutable, shared by threads. */
#ifndef HOST_PASS_FORMULA_H
#define HOST_PASS_FORMULA_H
#include "host/op/op.h"

typedef struct formula formula;

/* Parses a formula of `op`; an error names the operator, the column and what was expected. The caller frees it. */
formula *formula_parse(bp_ctx *c, const op_row *op, const char *text);
/* The same from `*at`, a place in `text`, up to a ';' or the end of the text, to where it moves *at. Columns count from
 * the beginning of `text`. */
formula *formula_parse_part(bp_ctx *c, const op_row *op, const char *text, const char **at);
void formula_free(formula *f);

/* What it reads as data (not metadata alone): bit i is argument i, result i, gradient i. Arguments that are no tensors
 * are not counted. */
typedef struct { uint64_t args, results, grads; } formula_reads;
formula_reads formula_read_set(const formula *f);
/* How many tensors it gives: 1, or the items of "(a, b)". */
uint32_t formula_count(const formula *f);

/* What a formula's names mean. */
typedef struct {
    const bp_value *args;        /* one a schema argument */
    bp_tensor *const *results;   /* NULL where it is not read */
    bp_tensor *const *grads;     /* NULL: zero, of the metadata of the result, which must be there then (a fake will
                                  * do); None where an operator takes an optional tensor */
    uint32_t nresults;
} formula_env;

/* Evaluates through op_dispatch: real, fake and recorded alike. Intermediate tensors die as soon as they are used. One
 * tensor, owned by the innermost scope, or by an outer one of this context if it is what a name means; a call that
 * gives several results gives the first. NULL: the context has an error, or the formula is None. */
bp_tensor *formula_eval(bp_ctx *c, const formula *f, const formula_env *env);
/* The same for a formula of several results, "(a, b)": n of them. A formula that is one call gives that call's results,
 * the first n. */
bp_status formula_eval_all(bp_ctx *c, const formula *f, const formula_env *env, bp_tensor **out, uint32_t n);
/* For a formula that is one call: the tensors it gives, in the scratch arena, however many they are (a list). */
bp_status formula_eval_list(bp_ctx *c, const formula *f, const formula_env *env, bp_tensor ***out, uint32_t *n);
#endif
