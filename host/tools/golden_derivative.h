/* Derivatives of recorded operator cases, proven by differences in float64: the first and, where there is one, the
 * second. */
#ifndef HOST_TOOLS_GOLDEN_DERIVATIVE_H
#define HOST_TOOLS_GOLDEN_DERIVATIVE_H
#include "host/tools/golden_case.h"

/* Cases of a row that were checked; of these: with a gradient that is not zero, with a second derivative. */
typedef struct { uint32_t checked, moved, second; } derivative_seen;
struct golden_derivatives {
    derivative_seen *rows; /* one an operator */
    bool once;             /* a row that was checked needs no other case */
};

golden_derivatives *golden_derivatives_new(bool once); /* NULL: no memory */
void golden_derivatives_free(golden_derivatives *d);
/* Unsupported: it cannot be differenced, and why. */
golden_verdict golden_check_derivative(golden_case *k, const json_t *j, golden_derivatives *seen, buf *why);
/* Why the derivative of a row counts as unproven; NULL: it is proven, or has none. */
const char *golden_unproven(const golden_derivatives *d, const op_row *row);
/* Whether it has one that is proven. */
bool golden_proven(const golden_derivatives *d, const op_row *row);
#endif
