/* Shape rules of linear systems: square, triangular, least squares. */
#include "host/op/shape_linalg.h"
#include "host/op/rows.h"
#include "host/op/view_rule.h"
#include <string.h>

bool linalg_is_vector(const bp_tensor *a, const bp_tensor *b)
{
    bool vector = b->rank + 1u == a->rank;
    for (uint32_t d = 0; vector && d < b->rank; d++)
        vector = dim_eq_or_false(a->sizes[d], b->sizes[d]);
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
    if (dim_require(DIM_EQ, a->sizes[a->rank - 1], b->sizes[b->rank - 1]))
        return BP_OK;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"B\" has %s elements, expected %s",
                   op_dim_text(c, b->sizes[b->rank - 1]), op_dim_text(c, a->sizes[a->rank - 1]));
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

/* -- least squares ------------------------------------------------------------------------------------------------- */

const char *linalg_driver(bp_ctx *c, const op_row *op, const bp_value *args, uint32_t i)
{
    static const char *const names[] = {"gels", "gelsy", "gelsd", "gelss"};
    const char *asked = arg_is_none(args, i) ? "gelsy" : arg_str(args, i);
    for (uint32_t k = 0; k < 4; k++)
        if (strcmp(asked, names[k]) == 0)
            return names[k];
    op_fail(c, op, BP_INVALID_ARGUMENT, "argument \"driver\" must be gels, gelsy, gelsd or gelss, and is \"%s\"",
            asked);
    return NULL;
}

/* A (m x n) and B, which has A's dimensions or, as a vector or a single right side, one fewer. */
static bp_status check_least_squares(bp_ctx *c, const shape_call *s)
{
    const bp_tensor *a = arg_tensor(s->args, 0), *b = arg_tensor(s->args, 1);
    TRY(check_matrix(c, s, 0));
    TRY(check_same_dtype(c, s, 0, 1));
    if (b->rank == 0 || b->rank > a->rank || b->rank + 1u < a->rank)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                       "argument \"b\" must have as many dimensions as \"self\" (%u) or one fewer, and has %u", a->rank,
                       b->rank);
    bp_dim rows = b->sizes[b->rank - (b->rank == a->rank ? 2 : 1)];
    if (dim_require(DIM_EQ, rows, a->sizes[a->rank - 2]))
        return BP_OK;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"b\" has %s rows, expected %s", op_dim_text(c, rows),
                   op_dim_text(c, a->sizes[a->rank - 2]));
}

/* The first n rows of a solution that has room for max(m, n), as LAPACK leaves it; a vector stays one. */
static bp_status least_solution(bp_ctx *c, shape_call *s, uint32_t n, bp_dim *sizes, bool vector, bp_dim columns)
{
    const bp_tensor *a = arg_tensor(s->args, 0);
    bp_dim rows = a->sizes[a->rank - 2], unknowns = a->sizes[a->rank - 1];
    bp_dim one = dim_const(1), most = dim_clamp(c, dim_clamp(c, rows, unknowns, false), one, false);
    sizes[n] = unknowns;
    sizes[n + 1] = columns;
    shape_out *o = shape_add_out(c, s, a->dtype, n + (vector ? 1 : 2), sizes);
    if (!o)
        return c->diag.code;
    o->meta.strides[n] = dim_const(1);
    if (!vector)
        o->meta.strides[n + 1] = most;
    bp_dim step = dim_mul(c, most, dim_clamp(c, columns, one, false));
    for (uint32_t d = n; d-- > 0;) {
        o->meta.strides[d] = step;
        step = dim_mul(c, step, dim_clamp(c, sizes[d], one, false));
    }
    return c->diag.code;
}

/* Whether residuals are there depends, where a rank is computed, on whether it is full. */
static bp_status residuals(bp_ctx *c, shape_call *s, const char *driver, uint32_t n, bp_dim *sizes, bp_dim columns)
{
    const bp_tensor *a = arg_tensor(s->args, 0);
    bp_dtype d = dtype_real_of((bp_dtype)a->dtype);
    bool over = dim_lt(a->sizes[a->rank - 1], a->sizes[a->rank - 2]);
    if (!over || driver[4] == 'y')
        return out_empty(c, s, d);
    if (driver[4])
        return out_unknown(c, s, d, 1);
    sizes[n] = columns;
    return out_new(c, s, d, n + 1, sizes);
}

bp_status shape_lstsq(bp_ctx *c, shape_call *s)
{
    const bp_tensor *a = arg_tensor(s->args, 0), *b = arg_tensor(s->args, 1);
    const char *driver = linalg_driver(c, s->op, s->args, 3);
    TRY(c->diag.code);
    TRY(check_least_squares(c, s));
    bool one = b->rank < a->rank; /* a single right side */
    bp_dim sizes[TENSOR_MAX_RANK + 2], columns = one ? dim_const(1) : b->sizes[b->rank - 1];
    uint32_t bn = b->rank - (one ? 1u : 2u), n = a->rank - 2u > bn ? a->rank - 2u : bn;
    TRY(layout_broadcast(c, a->rank - 2u, a->sizes, bn, b->sizes, sizes));
    TRY(least_solution(c, s, n, sizes, linalg_is_vector(a, b), columns));
    TRY(residuals(c, s, driver, n, sizes, columns));
    TRY(driver[4] ? out_cut(c, s, BP_I64, a, 2) : out_empty(c, s, BP_I64));
    bp_dtype real = dtype_real_of((bp_dtype)a->dtype);
    if (!driver[4] || driver[4] == 'y')
        return out_empty(c, s, real);
    memcpy(sizes, a->sizes, a->rank * sizeof *sizes);
    sizes[a->rank - 2] = dim_least(c, a->sizes[a->rank - 2], a->sizes[a->rank - 1]);
    return out_new(c, s, real, a->rank - 1u, sizes);
}
