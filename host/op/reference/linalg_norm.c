/* Norms of matrices and condition numbers, made of vector norms and singular values as PyTorch makes them. */
#include "host/op/reference/steps.h"
#include "host/op/rows.h"
#include <math.h>
#include <string.h>

/* What a norm is of: the dimensions of its rows and columns, whether they stay with size 1, the type, if given. */
typedef struct { int64_t dims[2]; bool keep; bp_dtype dtype; } matrices;

/* Gives NULL and an error. */
static bp_tensor *refuse(work *w, const op_row *op, const char *why)
{
    if (work_ok(w))
        op_fail(w->c, op, BP_INVALID_ARGUMENT, "%s", why);
    return NULL;
}

/* Checks and wraps two dimensions; false after an error. */
static bool wrap(work *w, const op_row *op, const bp_tensor *t, matrices *m)
{
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t d;
        if (op_wrap_dim(w->c, op, "dim", m->dims[i], t->rank, &d) != BP_OK)
            return false;
        m->dims[i] = d;
    }
    if (t->rank < 2 || m->dims[0] == m->dims[1]) {
        refuse(w, op, "a matrix norm needs two different dimensions");
        return false;
    }
    if (dtype_is_integral((bp_dtype)t->dtype)) {
        refuse(w, op, "there are no norms of integers: expected a float or complex type");
        return false;
    }
    return true;
}

static bp_tensor *converted(work *w, bp_tensor *t, bp_dtype dtype)
{
    return !t || !dtype || dtype == t->dtype ? t : CALL(to_dtype, T(t), value_dtype(dtype));
}

/* The singular values of the matrices, in a last dimension. */
static bp_tensor *singular_values(work *w, bp_tensor *t, const matrices *m)
{
    int64_t order[TENSOR_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t d = 0; d < t->rank; d++)
        if (d != m->dims[0] && d != m->dims[1])
            order[n++] = d;
    order[n++] = m->dims[0];
    order[n] = m->dims[1];
    bp_tensor *moved = compose_permute(w, converted(w, t, m->dtype), order);
    return moved ? CALL(linalg_svdvals_default, T(moved)) : NULL;
}

/* A result whose last dimension has the two of each matrix in one: as size 1 where the matrix's were. */
static bp_tensor *put_back(work *w, bp_tensor *t, const matrices *m, uint32_t rank)
{
    int64_t back[TENSOR_MAX_RANK];
    uint32_t n = 0;
    if (!t || !m->keep)
        return t;
    for (uint32_t d = 0; d < rank; d++)
        back[d] = d == m->dims[0] ? rank - 2 : d == m->dims[1] ? rank - 1 : n++;
    return compose_permute(w, compose_unsqueeze(w, t, -1), back);
}

/* The greatest of no numbers is 0, since they are norms; there is no least one. */
static bp_tensor *extreme(work *w, bp_tensor *t, int64_t dim, bool keep, bool most)
{
    if (!t || !work_ok(w))
        return NULL;
    if (most && tensor_dim(t, dim < 0 ? t->rank - 1u : (uint32_t)dim) == 0)
        return compose_sum(w, t, 1, &dim, keep);
    bp_value args[] = {T(t), value_ints(w->c, &dim, 1), value_bool(keep)};
    return work_call(w, most ? ROW_amax_default : ROW_amin_default, 3, args);
}

static bp_tensor *vector_norm(work *w, bp_tensor *t, double order, uint32_t n, const int64_t *dims, const matrices *m)
{
    if (!t || !work_ok(w))
        return NULL;
    return CALL(linalg_vector_norm_default, T(t), F(order), n ? value_ints(w->c, dims, n) : value_none(),
                value_bool(m->keep), value_dtype(m->dtype));
}

/* Orders 1, 2, inf and their negatives. */
static bp_tensor *numbered_norm(work *w, const op_row *op, bp_tensor *t, double order, matrices m)
{
    double size = fabs(order);
    if (size != 1 && size != 2 && !isinf(size))
        return refuse(w, op, "argument \"ord\" of a matrix norm must be 1, -1, 2, -2, inf or -inf");
    if (!wrap(w, op, t, &m))
        return NULL;
    if (size == 2)
        return put_back(w, extreme(w, singular_values(w, t, &m), -1, m.keep, order > 0), &m, t->rank);
    int64_t summed = m.dims[isinf(size) ? 1 : 0], left = m.dims[isinf(size) ? 0 : 1];
    if (!m.keep && summed < left)
        left--;
    return extreme(w, vector_norm(w, t, 1, 1, &summed, &m), left, m.keep, order > 0);
}

/* "fro" and "nuc". */
static bp_tensor *named_norm(work *w, const op_row *op, bp_tensor *t, const char *order, matrices m)
{
    bool nuclear = strcmp(order, "nuc") == 0;
    if (!nuclear && strcmp(order, "fro") != 0)
        return op_fail(w->c, op, BP_INVALID_ARGUMENT, "argument \"ord\" must be \"fro\" or \"nuc\", and is \"%s\"",
                       order), NULL;
    if (!wrap(w, op, t, &m))
        return NULL;
    if (!nuclear)
        return vector_norm(w, t, 2, 2, m.dims, &m);
    return put_back(w, compose_sum(w, singular_values(w, t, &m), 1, (const int64_t[]){-1}, m.keep), &m, t->rank);
}

/* Arguments dim, keepdim and dtype of a row that has them at first, first + 1 and first + 2. */
static matrices read_matrices(const bp_value *args, uint32_t first)
{
    matrices m = {{-2, -1}, arg_bool(args, first + 1), arg_dtype(args, first + 2)};
    for (uint32_t i = 0; i < 2 && arg_list_len(args, first) == 2; i++)
        m.dims[i] = arg_list_dim(args, first, i).value;
    return m;
}

static bp_tensor *two_dims(work *w, const op_row *op, const bp_value *args, uint32_t i)
{
    if (arg_list_len(args, i) != 2)
        return refuse(w, op, "argument \"dim\" must name two dimensions");
    return arg_tensor(args, 0);
}

static bp_tensor *body_matrix_norm(work *w, const op_row *op, const bp_value *args)
{
    bp_tensor *t = two_dims(w, op, args, 2);
    return t ? numbered_norm(w, op, t, scalar_float(arg_scalar(args, 1)), read_matrices(args, 2)) : NULL;
}
COMPOSED(matrix_norm)

static bp_tensor *body_matrix_norm_named(work *w, const op_row *op, const bp_value *args)
{
    bp_tensor *t = two_dims(w, op, args, 2);
    return t ? named_norm(w, op, t, arg_str(args, 1), read_matrices(args, 2)) : NULL;
}
COMPOSED(matrix_norm_named)

/* -- linalg_norm: of vectors or matrices, by the dimensions -------------------------------------------------------- */

/* Whether it is a matrix norm that is asked for; without dimensions the tensor decides. */
static bool is_matrix(const bp_value *args, const bp_tensor *t)
{
    return arg_is_none(args, 2) ? t->rank == 2 : arg_list_len(args, 2) == 2;
}

static bp_tensor *body_linalg_norm(work *w, const op_row *op, const bp_value *args)
{
    bp_tensor *t = arg_tensor(args, 0);
    bp_scalar order = arg_scalar(args, 1);
    matrices m = read_matrices(args, 2);
    if (order.kind && is_matrix(args, t))
        return numbered_norm(w, op, t, scalar_float(order), m);
    if (order.kind && arg_is_none(args, 2) && t->rank != 1)
        return refuse(w, op, "an order without dimensions needs a vector or a matrix");
    if (order.kind && arg_list_len(args, 2) > 2)
        return refuse(w, op, "argument \"dim\" must name one dimension or two");
    int64_t dims[TENSOR_MAX_RANK];
    uint32_t n = arg_is_none(args, 2) ? 0 : arg_list_len(args, 2);
    for (uint32_t i = 0; i < n && i < TENSOR_MAX_RANK; i++)
        dims[i] = arg_list_dim(args, 2, i).value;
    return vector_norm(w, t, order.kind ? scalar_float(order) : 2, n, dims, &m);
}
COMPOSED(linalg_norm)

static bp_tensor *body_linalg_norm_named(work *w, const op_row *op, const bp_value *args)
{
    bp_tensor *t = arg_tensor(args, 0);
    if (!is_matrix(args, t))
        return refuse(w, op, "an order that is a text needs a matrix, or two dimensions");
    return named_norm(w, op, t, arg_str(args, 1), read_matrices(args, 2));
}
COMPOSED(linalg_norm_named)

/* -- older names --------------------------------------------------------------------------------------------------- */

static bp_tensor *body_nuclear_norm(work *w, const op_row *op, const bp_value *args)
{
    bp_tensor *t = arg_tensor(args, 0);
    matrices m = {{-2, -1}, arg_bool(args, 1), BP_DTYPE_UNSET};
    return t->rank == 2 ? named_norm(w, op, t, "nuc", m) : refuse(w, op, "expected a matrix");
}
COMPOSED(nuclear_norm)

static bp_tensor *body_nuclear_norm_dim(work *w, const op_row *op, const bp_value *args)
{
    bp_tensor *t = two_dims(w, op, args, 1);
    matrices m = {{-2, -1}, arg_bool(args, 2), BP_DTYPE_UNSET};
    for (uint32_t i = 0; i < 2 && t; i++)
        m.dims[i] = arg_list_dim(args, 1, i).value;
    return t ? named_norm(w, op, t, "nuc", m) : NULL;
}
COMPOSED(nuclear_norm_dim)

static bp_tensor *body_frobenius_norm(work *w, const op_row *op, const bp_value *args)
{
    matrices m = {{0, 0}, arg_bool(args, 2), BP_DTYPE_UNSET};
    int64_t dims[2];
    uint32_t n = arg_list_len(args, 1);
    if (n > 2)
        return refuse(w, op, "argument \"dim\" must name at most two dimensions");
    for (uint32_t i = 0; i < n; i++)
        dims[i] = arg_list_dim(args, 1, i).value;
    return vector_norm(w, arg_tensor(args, 0), 2, n, dims, &m);
}
COMPOSED(frobenius_norm)

/* -- condition numbers --------------------------------------------------------------------------------------------- */

static bp_tensor *column(work *w, bp_tensor *t, int64_t i)
{
    return t ? CALL(select_int, T(t), I(-1), I(i)) : NULL;
}

/* The largest singular value over the least, or the least over the largest. */
static bp_tensor *cond_by_values(work *w, bp_tensor *t, bool inverted)
{
    bp_tensor *s = CALL(linalg_svdvals_default, T(t)), *most = column(w, s, 0), *least = column(w, s, -1);
    return compose_two(w, ROW_div_tensor, inverted ? least : most, inverted ? most : least);
}

/* A matrix without an inverse has an infinite one. */
static bp_tensor *inverse_of(work *w, bp_tensor *t)
{
    bp_tensor *out[2] = {NULL, NULL};
    bp_value args[] = {T(t), value_bool(false)};
    if (work_calls(w, ROW_linalg_inv_ex_default, 2, args, out, 2) != BP_OK)
        return NULL;
    bp_tensor *inverse = out[0], *singular = CALL(gt_scalar, T(out[1]), I(0));
    singular = compose_unsqueeze(w, compose_unsqueeze(w, singular, -1), -1);
    return singular ? CALL(masked_fill_scalar, T(inverse), T(singular), F(INFINITY)) : NULL;
}

/* Zero for matrices without elements. */
static bp_tensor *cond_of_nothing(work *w, const bp_tensor *t)
{
    int64_t sizes[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < t->rank; d++)
        sizes[d] = tensor_dim(t, d);
    bp_value size = value_ints(w->c, sizes, t->rank - 2u);
    return CALL(zeros_default, size, value_dtype(dtype_real_of((bp_dtype)t->dtype)));
}

static bp_tensor *body_cond(work *w, const op_row *op, const bp_value *args)
{
    bp_tensor *t = arg_tensor(args, 0);
    bp_scalar order = arg_scalar(args, 1);
    double p = order.kind ? scalar_float(order) : 2;
    matrices m = {{-2, -1}, false, BP_DTYPE_UNSET};
    if (t->rank < 2)
        return refuse(w, op, "argument \"self\" must be matrices");
    if (tensor_nelem(t) == 0)
        return cond_of_nothing(w, t);
    if (fabs(p) == 2)
        return cond_by_values(w, t, p < 0);
    bp_tensor *a = numbered_norm(w, op, t, p, m), *inverse = inverse_of(w, t);
    return inverse ? compose_two(w, ROW_mul_tensor, a, numbered_norm(w, op, inverse, p, m)) : NULL;
}
COMPOSED(cond)

static bp_tensor *body_cond_named(work *w, const op_row *op, const bp_value *args)
{
    bp_tensor *t = arg_tensor(args, 0);
    matrices m = {{-2, -1}, false, BP_DTYPE_UNSET};
    if (t->rank < 2)
        return refuse(w, op, "argument \"self\" must be matrices");
    if (tensor_nelem(t) == 0)
        return cond_of_nothing(w, t);
    bp_tensor *a = named_norm(w, op, t, arg_str(args, 1), m), *inverse = inverse_of(w, t);
    return inverse ? compose_two(w, ROW_mul_tensor, a, named_norm(w, op, inverse, arg_str(args, 1), m)) : NULL;
}
COMPOSED(cond_named)
