/* Reductions that PyTorch makes of other operators, in the same steps: sums to a size, traces, trapezoids, norms that
 * limit or scale. */
#include "host/op/reference/steps.h"
#include "host/op/rows.h"
#include "host/op/shape_reduce.h"

/* -- sum_to_size: what broadcasting repeated is summed; nothing to sum gives the tensor itself -- */
static bool is_size(const bp_tensor *t, uint32_t n, const bp_dim *sizes)
{
    bool same = t->rank == n;
    for (uint32_t d = 0; same && d < n; d++)
        same = dim_eq(t->sizes[d], sizes[d]);
    return same;
}

/* Whether a tensor of these sizes broadcasts to those of t. */
static bool broadcasts_to(const bp_tensor *t, uint32_t n, const bp_dim *sizes)
{
    bool fits = n <= t->rank;
    for (uint32_t d = 0; fits && d < n; d++)
        fits = dim_is(sizes[d], 1) || dim_eq(sizes[d], t->sizes[t->rank - n + d]);
    return fits;
}

static bp_tensor *body_sum_to_size(work *w, const op_row *op, const bp_value *a)
{
    bp_tensor *t = arg_tensor(a, 0);
    uint32_t n, k = 0;
    bp_dim *sizes = arg_dims(w->c, a, 1, &n);
    int64_t dims[TENSOR_MAX_RANK];
    if (!sizes)
        return NULL;
    if (!broadcasts_to(t, n, sizes)) {
        op_fail(w->c, op, BP_INVALID_ARGUMENT, "argument \"size\" does not broadcast to the sizes of \"self\"");
        return NULL;
    }
    for (uint32_t d = 0; d < t->rank; d++)
        if (d + n < t->rank || (dim_is(sizes[d + n - t->rank], 1) && !dim_is(t->sizes[d], 1)))
            dims[k++] = d;
    return compose_reshape(w, compose_sum(w, t, k, dims, true), n, sizes);
}

bp_status shape_sum_to_size(bp_ctx *c, shape_call *s)
{
    uint32_t n;
    bp_dim *sizes = arg_dims(c, s->args, 1, &n);
    if (sizes && is_size(arg_tensor(s->args, 0), n, sizes))
        return shape_add_same(c, s, 0) ? BP_OK : c->diag.code;
    return sizes ? compose_shape(c, s, body_sum_to_size) : c->diag.code;
}
bp_status kernel_sum_to_size(bp_ctx *c, op_call *k) { return compose_run(c, k, body_sum_to_size); }
COMPOSED_BODY(sum_to_size)

static bp_tensor *body_trace(work *w, const op_row *op, const bp_value *a)
{
    if (arg_tensor(a, 0)->rank != 2) {
        op_fail(w->c, op, BP_INVALID_ARGUMENT, "expected a matrix, got %u dimensions", arg_tensor(a, 0)->rank);
        return NULL;
    }
    return CALL(sum_default, T(CALL(diagonal_default, a[0])));
}
COMPOSED(trace)

/* -- trapezoids -- */
/* The dimension along which y is integrated, or -1 after an error. */
static int64_t trapezoid_dim(work *w, const op_row *op, const bp_value *a)
{
    uint32_t dim;
    bp_tensor *y = arg_tensor(a, 0);
    if (y->dtype == BP_BOOL) {
        op_fail(w->c, op, BP_INVALID_ARGUMENT, "not there for bools");
        return -1;
    }
    if (y->rank == 0) {
        op_fail(w->c, op, BP_INVALID_ARGUMENT, "argument \"y\": a 0-d tensor has no dimension to integrate along");
        return -1;
    }
    return reduce_one_dim(w->c, op, a, y->rank, &dim) == BP_OK ? (int64_t)dim : -1;
}

/* All but the last element along a dimension, or all but the first. */
static bp_tensor *shifted(work *w, bp_tensor *t, int64_t dim, bool first)
{
    if (!t)
        return NULL;
    return first ? CALL(slice_tensor, T(t), I(dim), I(0), I(-1)) : CALL(slice_tensor, T(t), I(dim), I(1));
}

/* The steps of argument x, in as many dimensions as y has. */
static bp_tensor *steps_of(work *w, const bp_value *a, int64_t dim)
{
    bp_tensor *y = arg_tensor(a, 0), *x = arg_tensor(a, 1);
    bp_dim sizes[TENSOR_MAX_RANK], one = dim_const(1);
    if (x->rank < y->rank) {
        for (uint32_t d = 0; d < y->rank; d++)
            sizes[d] = x->rank == 1 ? (d == (uint32_t)dim ? x->sizes[0] : one)
                       : d + x->rank < y->rank ? one : x->sizes[d + x->rank - y->rank];
        x = compose_reshape(w, x, y->rank, sizes);
    }
    return CALL(sub_tensor, T(shifted(w, x, dim, false)), T(shifted(w, x, dim, true)));
}

static bp_tensor *pairs(work *w, bp_tensor *y, int64_t dim)
{
    return CALL(add_tensor, T(shifted(w, y, dim, true)), T(shifted(w, y, dim, false)));
}

static bp_tensor *body_trapezoid_x(work *w, const op_row *op, const bp_value *a)
{
    bp_tensor *y = arg_tensor(a, 0);
    int64_t dim = trapezoid_dim(w, op, a);
    if (dim < 0)
        return NULL;
    if (y->rank == 0 || dim_is(y->sizes[dim], 0))
        return CALL(mul_scalar, T(compose_sum(w, y, 1, &dim, false)), I(0));
    bp_tensor *areas = CALL(mul_tensor, T(pairs(w, y, dim)), T(steps_of(w, a, dim)));
    return CALL(div_scalar, T(compose_sum(w, areas, 1, &dim, false)), F(2));
}
COMPOSED(trapezoid_x)

static bp_tensor *body_trapezoid_dx(work *w, const op_row *op, const bp_value *a)
{
    bp_tensor *y = arg_tensor(a, 0);
    int64_t dim = trapezoid_dim(w, op, a);
    if (dim < 0)
        return NULL;
    if (y->rank == 0 || dim_is(y->sizes[dim], 0))
        return CALL(mul_scalar, T(compose_sum(w, y, 1, &dim, false)), I(0));
    bp_tensor *begin = CALL(select_int, a[0], I(dim), I(0)), *end = CALL(select_int, a[0], I(dim), I(-1));
    bp_tensor *ends = CALL(add_tensor, T(begin), T(end));
    bp_tensor *inner = CALL(sub_tensor, T(compose_sum(w, y, 1, &dim, false)), T(CALL(mul_scalar, T(ends), F(0.5))));
    return CALL(mul_scalar, T(inner), F(scalar_float(arg_scalar(a, 1))));
}
COMPOSED(trapezoid_dx)

static bp_tensor *body_cumulative_trapezoid_x(work *w, const op_row *op, const bp_value *a)
{
    int64_t dim = trapezoid_dim(w, op, a);
    if (dim < 0)
        return NULL;
    bp_tensor *areas = CALL(mul_tensor, T(steps_of(w, a, dim)), T(pairs(w, arg_tensor(a, 0), dim)));
    return CALL(div_scalar, T(CALL(cumsum_default, T(areas), I(dim))), F(2));
}
COMPOSED(cumulative_trapezoid_x)

static bp_tensor *body_cumulative_trapezoid_dx(work *w, const op_row *op, const bp_value *a)
{
    int64_t dim = trapezoid_dim(w, op, a);
    if (dim < 0)
        return NULL;
    bp_tensor *areas = CALL(mul_scalar, T(pairs(w, arg_tensor(a, 0), dim)), F(scalar_float(arg_scalar(a, 1)) / 2));
    return CALL(cumsum_default, T(areas), I(dim));
}
COMPOSED(cumulative_trapezoid_dx)

/* -- norms that limit or scale -- */
/* The norm of order p of t over all dimensions but one, kept; halves in f32. */
static bp_tensor *norm_except(work *w, bp_tensor *t, bp_value p, uint32_t dim)
{
    bp_value dims[TENSOR_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t d = 0; d < t->rank; d++)
        if (d != dim)
            dims[n++] = I(d);
    bool is_half = t->dtype == BP_F16 || t->dtype == BP_BF16;
    bp_value as = value_dtype(is_half ? BP_F32 : BP_DTYPE_UNSET);
    if (n == 0)
        return CALL(abs_default, T(t));
    return CALL(linalg_vector_norm_default, T(t), p, value_list(dims, n), value_bool(true), as);
}

/* Slices along dim whose norm is above maxnorm are scaled down to it. */
static bp_tensor *body_renorm(work *w, const op_row *op, const bp_value *a)
{
    bp_tensor *x = arg_tensor(a, 0);
    uint32_t dim;
    double most = scalar_float(arg_scalar(a, 3));
    if (op_wrap_dim(w->c, op, "dim", arg_int(w->c, a, 2), x->rank, &dim) != BP_OK)
        return NULL;
    if (x->rank < 2 || !(scalar_float(arg_scalar(a, 1)) > 0) || !(most >= 0)) {
        op_fail(w->c, op, BP_INVALID_ARGUMENT, "expected 2 dimensions or more, a positive p, and no negative maxnorm");
        return NULL;
    }
    bp_tensor *norm = norm_except(w, x, a[1], dim);
    bp_tensor *factor = CALL(mul_scalar, T(CALL(reciprocal_default, T(CALL(add_scalar, T(norm), F(1e-7))))), F(most));
    factor = CALL(where_scalarother, T(CALL(gt_scalar, T(norm), F(most))), T(factor), I(1));
    return CALL(mul_tensor, a[0], T(CALL(to_dtype, T(factor), value_dtype((bp_dtype)x->dtype))));
}
COMPOSED(renorm)

/* g * v / |v|, the norm being taken over all dimensions but one; halves in f32 until the end. */
static bp_tensor *body_weight_norm(work *w, const op_row *op, const bp_value *a)
{
    bp_tensor *v = arg_tensor(a, 0);
    uint32_t dim;
    if (op_wrap_dim(w->c, op, "dim", arg_int(w->c, a, 2), v->rank, &dim) != BP_OK)
        return NULL;
    bool is_half = v->dtype == BP_F16 || v->dtype == BP_BF16;
    bp_value as = value_dtype(is_half ? BP_F32 : (bp_dtype)v->dtype);
    bp_tensor *norm = norm_except(w, v, I(2), dim);
    bp_tensor *ratio = CALL(div_tensor, T(CALL(to_dtype, a[1], as)), T(norm));
    bp_tensor *scaled = CALL(mul_tensor, T(CALL(to_dtype, a[0], as)), T(ratio));
    return CALL(to_dtype, T(scaled), value_dtype((bp_dtype)v->dtype));
}
COMPOSED(weight_norm)
