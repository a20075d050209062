/* Matrices in derivatives: triangles, diagonals and triangular systems, in the last two dimensions. */
#ifndef HOST_GRAD_LINALG_H
#define HOST_GRAD_LINALG_H
#include "host/grad/write.h"

bp_tensor *grad_tril(bp_ctx *c, bp_tensor *t, int64_t k);
bp_tensor *grad_triu(bp_ctx *c, bp_tensor *t, int64_t k);
bp_tensor *grad_diagonal(bp_ctx *c, bp_tensor *t); /* of matrices, as vectors */
bp_tensor *grad_diag(bp_ctx *c, bp_tensor *t);     /* vectors as diagonal matrices */
/* X of t X = b (left) or X t = b. */
bp_tensor *grad_solve_t(bp_ctx *c, bp_tensor *t, bp_tensor *b, bool upper, bool left, bool unit);
#endif
