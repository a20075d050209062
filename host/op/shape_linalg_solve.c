/* Shape rules of linear systems: square, triangular, least squares. */
#include "host/op/shape_linalg.h"
#include "host/op/rows.h"
#include <string.h>

bool linalg_is_vector(const bp_tensor *a, const bp_tensor *b)
{
    bool vector = b->rank + 1u == a->rank;
    for (uint32_t d = 0; vector && d < b->rank; d++)
        vector = dim_eq(a->sizes[d], b->sizes[d]);
    return vector || b->rank == 1;
}

/* The solution of A X = B (left) or X A = B; a vector stays one. */
static bp_status solution(bp_ctx *c, shape_call *s, bool left)
{
    const bp_tensor *a = arg_tensor(s->args, 0), *b = arg_tensor(s->args, 1);
    bool vector = linalg_is_vector(a, b);
    bp_dim sizes[TENSOR_MAX_RANK + 2];
    uint32_t bn = b->rank - (vector ? 1u : 2u), n = a->rank - 2u > bn ? a->rank - 2u : bn;
    TRY(layout_broadcast(c, a->rank - 2u, a->sizes, bn, b->sizes, sizes));
    memcpy(sizes + n, b->sizes + bn, (b->rank - bn) * sizeof *sizes);
    n += b->rank - bn;
    return left && n > 1 ? out_columns(c, s, b->dtype, n, sizes) : out_new(c, s, b->dtype, n, sizes);
}

/* Checks A and B (arguments 0 and 1), which may be a vector. */
static bp_status check_equations(bp_ctx *c, const shape_call *s, bool left)
{
    const bp_tensor *a = arg_tensor(s->args, 0), *b = arg_tensor(s->args, 1);
    TRY(check_square(c, s, 0));
    TRY(check_factor_dtype(c, s, 1));
    TRY(check_same_dtype(c, s, 0, 1));
    if (b->rank == 0)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"B\" must have at least 1 dimension, and has 0");
    if (!linalg_is_vector(a, b))
        return check_system(c, s, 0, 1, left);
    if (!left)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"B\" is a vector, and X A = B has none on its left");
    if (dim_eq(a->sizes[a->rank - 1], b->sizes[b->rank - 1]))
        return BP_OK;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"B\" has %lld elements, expected %lld",
                   (long long)b->sizes[b->rank - 1].value, (long long)a->sizes[a->rank - 1].value);
}

bp_status shape_linalg_solve(bp_ctx *c, shape_call *s)
{
    bool left = arg_bool(s->args, 2);
    TRY(check_equations(c, s, left));
    return solution(c, s, left);
}

bp_status shape_linalg_solve_ex(bp_ctx *c, shape_call *s)
{
    TRY(shape_linalg_solve(c, s));
    return out_cut(c, s, BP_I32, arg_tensor(s->args, 0), 2);
}

bp_status shape_private_linalg_solve_ex(bp_ctx *c, shape_call *s)
{
    const bp_tensor *a = arg_tensor(s->args, 0);
    TRY(shape_linalg_solve(c, s));
    TRY(out_columns(c, s, a->dtype, a->rank, a->sizes));
    TRY(out_cut(c, s, BP_I32, a, 1));
    return out_cut(c, s, BP_I32, a, 2);
}

/* -- triangles ----------------------------------------------------------------------------------------------------- */

/* Both batches as one, then the last two sizes of argument i. */
static bp_status broadcast_like(bp_ctx *c, shape_call *s, uint32_t i)
{
    const bp_tensor *t = arg_tensor(s->args, i);
    bp_dim sizes[TENSOR_MAX_RANK + 2];
    uint32_t n;
    TRY(check_batches(c, s, 0, 1, &n, sizes));
    memcpy(sizes + n, t->sizes + t->rank - 2, 2 * sizeof *sizes);
    return out_columns(c, s, t->dtype, n + 2, sizes);
}

bp_status shape_solve_triangular(bp_ctx *c, shape_call *s)
{
    TRY(check_system(c, s, 0, 1, arg_bool(s->args, 3)));
    return broadcast_like(c, s, 1);
}

bp_status shape_triangular_solve(bp_ctx *c, shape_call *s)
{
    TRY(check_system(c, s, 1, 0, true));
    TRY(broadcast_like(c, s, 0));
    return broadcast_like(c, s, 1);
}
