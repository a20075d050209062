/* Operator calls and their results as text, for tables of right answers:
 *
 *     add.Tensor(i8[100 27], i8[100 1], alpha=2)     ->  i8[44 29]
 *     sum.dim_IntList(f32[2x3: 1 2 3 4 5 6], [1])    ->  f32[6 15]
 *
 * Operators are ATen's, unless a namespace stands before the name: prims::f(...).
 * A tensor is its type and elements, with the sizes before a colon unless it has one dimension: f32[2x0:], f32(5) for
 * no dimensions. Numbers, True, False, None, 'text', [lists] and dtype:f64 are themselves; name=value goes by name.
 * Floats print with six digits. Several results are joined by " | ", a failure is "CODE: message". Calls behind each
 * other are joined by "; ": %1 is the first tensor that one of them gave, and the last one's results count. */
#ifndef BP_TESTS_LIB_OP_TEXT_H
#define BP_TESTS_LIB_OP_TEXT_H
#include "host/op/op.h"

typedef struct { const char *call, *result; } op_case;

/* The result of a call, as text; static, until the next call. The context's error is cleared. */
const char *op_text_run(bp_ctx *c, const char *call);
/* The same, the calls in a function that is compiled for a backend, and called with the tensors of the text. */
const char *op_text_run_compiled(bp_ctx *c, const char *backend, const char *call);
/* Fails the test at the first case whose result is another; a result that ends with "..." is a beginning. */
void op_text_check(bp_ctx *c, const op_case *cases, uint32_t n);
/* The same for each case eagerly, and compiled for each backend of a list that ends with NULL. */
void op_text_check_on(bp_ctx *c, const char *const *backends, const op_case *cases, uint32_t n);
#define OP_TEXT_CHECK(c, cases) op_text_check((c), (cases), (uint32_t)(sizeof(cases) / sizeof *(cases)))
#endif
