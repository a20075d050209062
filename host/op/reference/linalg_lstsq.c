/* Least squares. */
#include "host/op/reference/linalg.h"
#include "host/op/rows.h"
#include "host/op/shape_linalg.h"
#include <float.h>

typedef struct {
    la a;
    const char *driver;
    double rcond;
    la_matrix x, b;           /* A, and B with room for the solution */
    double *s;
    bool full;                /* every rank so far was */
    double *residuals;        /* of each column of each system, when there may be some */
} least;

/* The relative size from which on singular values count: as given, or the type's rounding times the larger size. */
static double rcond_of(const op_call *k, const bp_tensor *t)
{
    int64_t m = tensor_dim(t, t->rank - 2u), n = tensor_dim(t, t->rank - 1u);
    bool single = dtype_real_of((bp_dtype)t->dtype) == BP_F32;
    if (!arg_is_none(k->args, 2))
        return arg_float(k->args, 2);
    return (single ? (double)FLT_EPSILON : DBL_EPSILON) * (double)(m > n ? m : n);
}

/* The sums of squares that LAPACK leaves below a solution of full rank. */
static void keep_residuals(least *l, int64_t number)
{
    for (int j = 0; l->residuals && j < l->b.n; j++) {
        double sum = 0;
        for (int i = l->x.n; i < l->x.m; i++) {
            double size = cabs(la_get(&l->a, l->b, i, j));
            sum += size * size;
        }
        l->residuals[number * l->b.n + j] = sum;
    }
}

static void solve_one(least *l, const la_batch *b, uint32_t rank_at, uint32_t values_at)
{
    la *a = &l->a;
    int rank = 0, least_size = l->x.m < l->x.n ? l->x.m : l->x.n;
    if (least_size == 0 || l->b.n == 0)
        la_fill(a, l->b, 0, 0);
    else if (la_require_finite(a, l->x, b))
        la_check(a->c, a->op, "torch.linalg.lstsq", la_element(b),
                 la_least_squares(a, l->driver, l->x, l->b, l->rcond, l->s, &rank));
    l->full &= rank == l->x.n;
    if (rank_at)
        *(int64_t *)la_at(b, rank_at) = rank;
    if (values_at)
        dtype_convert((bp_dtype)b->t[values_at]->dtype, la_at(b, values_at), 1, BP_F64, l->s, 1, least_size);
}

/* The residuals, now that it is known whether there are any. */
static void deliver_residuals(least *l, op_call *k, const bp_tensor *solution)
{
    int64_t sizes[TENSOR_MAX_RANK] = {0}, n = l->b.n;
    bool some = l->residuals && (l->full || !l->driver[4]);
    uint32_t rank = some ? solution->rank - 1u : 1;
    for (uint32_t d = 0; some && d + 2u < solution->rank; d++)
        n *= sizes[d] = tensor_dim(solution, d);
    if (some)
        sizes[rank - 1] = l->b.n;
    if (!k->out[1])
        k->out[1] = tensor_contiguous_new(l->a.c, dtype_real_of((bp_dtype)solution->dtype), rank, sizes);
    if (k->out[1] && some)
        dtype_convert((bp_dtype)k->out[1]->dtype, tensor_ptr(k->out[1]), 1, BP_F64, l->residuals, 1, n);
}

bp_status kernel_lstsq(bp_ctx *c, op_call *k)
{
    bp_tensor *t = arg_tensor(k->args, 0), *right = arg_tensor(k->args, 1);
    least l = {.driver = linalg_driver(c, k->op, k->args, 3), .rcond = rcond_of(k, t), .full = true};
    la_begin(&l.a, c, k, t);
    bp_tensor *b = right->rank < t->rank ? la_as_column(&l.a, right) : right;
    bp_tensor *out = linalg_is_vector(t, right) ? la_as_column(&l.a, k->out[0]) : k->out[0];
    if (!la_ok(&l.a))
        return la_end(&l.a);
    int64_t m = tensor_dim(t, t->rank - 2u), n = tensor_dim(t, t->rank - 1u), columns = tensor_dim(out, out->rank - 1u);
    l.x = la_new(&l.a, m, n);
    l.b = la_new(&l.a, m > n ? m : n, columns);
    l.s = la_reals(&l.a, m < n ? m : n);
    la_batch batch = la_over(&l.a, out, 2);
    if (m > n && l.driver[4] != 'y')
        l.residuals = la_reals(&l.a, batch.v.left * columns);
    uint32_t from = la_add(&batch, t, 2), with = la_add(&batch, b, 2);
    uint32_t rank = l.driver[4] ? la_add(&batch, k->out[2], 0) : 0;
    uint32_t values = l.driver[4] && l.driver[4] != 'y' ? la_add(&batch, k->out[3], 1) : 0;
    la_matrix given = la_new(&l.a, m, columns), solved = la_new(&l.a, n, columns);
    for (; la_more(&batch) && la_ok(&l.a); la_next(&batch)) {
        la_load(&l.a, l.x, &batch, from);
        la_load(&l.a, given, &batch, with);
        la_copy(&l.a, l.b, given);
        solve_one(&l, &batch, rank, values);
        keep_residuals(&l, batch.number);
        la_copy(&l.a, solved, l.b);
        la_store(&l.a, solved, &batch, 0);
    }
    if (la_ok(&l.a))
        deliver_residuals(&l, k, out);
    return la_end(&l.a);
}
