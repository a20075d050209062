/* What shape rules of linear algebra share. */
#ifndef HOST_OP_SHAPE_LINALG_H
#define HOST_OP_SHAPE_LINALG_H
#include "host/op/checks.h"

/* Argument i is of a type that can be factorized: float32, float64 and the complex ones. */
bp_status check_factor_dtype(bp_ctx *c, const shape_call *s, uint32_t i);
/* The same, with at least two dimensions. */
bp_status check_matrix(bp_ctx *c, const shape_call *s, uint32_t i);
/* The same, the last two equal. */
bp_status check_square(bp_ctx *c, const shape_call *s, uint32_t i);
/* Matrices i and j have one dtype and batches that broadcast; out: those sizes, room for TENSOR_MAX_RANK, *n of
 * them. */
bp_status check_batches(bp_ctx *c, const shape_call *s, uint32_t i, uint32_t j, uint32_t *n, bp_dim *out);
/* Adds an output whose matrices lie column by column, as LAPACK leaves them. */
bp_status out_columns(bp_ctx *c, shape_call *s, bp_dtype dtype, uint32_t rank, const bp_dim *sizes);
/* Adds a contiguous output of t's sizes without the last `cut`. */
bp_status out_cut(bp_ctx *c, shape_call *s, bp_dtype dtype, const bp_tensor *t, uint32_t cut);
/* Adds an empty vector: a result that was not asked for. */
bp_status out_empty(bp_ctx *c, shape_call *s, bp_dtype dtype);
bp_dim dim_least(bp_ctx *c, bp_dim a, bp_dim b);
/* Argument i is "L" or "U", in either case; gives whether it is the upper one. */
bp_status check_triangle(bp_ctx *c, const shape_call *s, uint32_t i, bool *upper);
/* B's last size but one (left) or last one fits the square matrices A, as in A X = B or X A = B. */
bp_status check_system(bp_ctx *c, const shape_call *s, uint32_t a, uint32_t b, bool left);
/* NumPy's rule: B is a vector for each matrix A when it has one dimension, or A's sizes without the last. */
bool linalg_is_vector(const bp_tensor *a, const bp_tensor *b);
/* What a mode of QR means: whether Q is wanted, and whether it is square. */
bp_status linalg_qr_mode(bp_ctx *c, const op_row *op, const char *mode, bool *q, bool *complete);
/* The routine of least squares that argument i names: "gelsy" where it is None. NULL: the context says why. */
const char *linalg_driver(bp_ctx *c, const op_row *op, const bp_value *args, uint32_t i);
/* The tolerances of a row, by its arguments' names: atol and rtol, or one number that stands for either. NONE: not
 * given; a number or a tensor else. */
typedef struct { bp_value atol, rtol; bool hermitian; } linalg_tolerances;
linalg_tolerances linalg_tolerances_read(const op_row *op, const bp_value *args);
static inline bp_tensor *tolerance_tensor(const bp_value *v)
{
    return v->kind == BP_VALUE_TENSOR ? v->v.tensor : NULL;
}
#endif
