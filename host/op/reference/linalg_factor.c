/* Cholesky's and L D L' factors, solutions from them, and triangular systems. */
#include "host/op/reference/linalg.h"
#include "host/op/rows.h"

/* -- Cholesky ------------------------------------------------------------------------------------------------------ */

bp_status kernel_cholesky(bp_ctx *c, op_call *k)
{
    la a;
    bp_tensor *in = arg_tensor(k->args, 0), *info = la_result(k, 1);
    bool upper = arg_bool(k->args, 1);
    la_begin(&a, c, k, in);
    la_matrix x = la_new(&a, tensor_dim(in, in->rank - 2u), tensor_dim(in, in->rank - 1u));
    la_batch b = la_over(&a, in, 2);
    uint32_t to = la_add(&b, k->out[0], 2);
    for (; la_more(&b) && la_ok(&a); la_next(&b)) {
        la_load(&a, x, &b, 0);
        la_triangle(&a, x, upper, false);
        int failed = la_cholesky(&a, x, upper);
        la_store(&a, x, &b, to);
        la_store_ints(&b, info, &failed, 1);
        if (la_checks(k))
            la_check(c, k->op, "linalg.cholesky", la_element(&b), failed);
    }
    return la_end(&a);
}

bp_status kernel_cholesky_inverse(bp_ctx *c, op_call *k)
{
    la a;
    bp_tensor *in = arg_tensor(k->args, 0);
    bool upper = arg_bool(k->args, 1);
    la_begin(&a, c, k, in);
    la_matrix x = la_new(&a, tensor_dim(in, in->rank - 2u), tensor_dim(in, in->rank - 1u));
    la_batch b = la_over(&a, in, 2);
    uint32_t to = la_add(&b, k->out[0], 2);
    for (; la_more(&b) && la_ok(&a); la_next(&b)) {
        la_load(&a, x, &b, 0);
        la_check(c, k->op, "cholesky_inverse", la_element(&b), la_cholesky_inverse(&a, x, upper));
        la_store(&a, x, &b, to);
    }
    return la_end(&a);
}

bp_status kernel_cholesky_solve(bp_ctx *c, op_call *k)
{
    la a;
    bp_tensor *rhs = arg_tensor(k->args, 0), *factor = arg_tensor(k->args, 1), *out = k->out[0];
    bool upper = arg_bool(k->args, 2);
    la_begin(&a, c, k, factor);
    la_matrix x = la_new(&a, tensor_dim(factor, factor->rank - 2u), tensor_dim(factor, factor->rank - 1u));
    la_matrix y = la_new(&a, tensor_dim(out, out->rank - 2u), tensor_dim(out, out->rank - 1u));
    la_batch b = la_over(&a, out, 2);
    uint32_t from = la_add(&b, factor, 2), right = la_add(&b, rhs, 2);
    for (; la_more(&b) && la_ok(&a); la_next(&b)) {
        la_load(&a, x, &b, from);
        la_load(&a, y, &b, right);
        la_cholesky_solve(&a, x, y, upper);
        la_store(&a, y, &b, 0);
    }
    return la_end(&a);
}

/* -- symmetric, indefinite ----------------------------------------------------------------------------------------- */

bp_status kernel_ldl_factor(bp_ctx *c, op_call *k)
{
    la a;
    bp_tensor *in = arg_tensor(k->args, 0);
    bool hermitian = arg_bool(k->args, 1);
    la_begin(&a, c, k, in);
    la_matrix x = la_new(&a, tensor_dim(in, in->rank - 2u), tensor_dim(in, in->rank - 1u));
    int *pivots = la_ints(&a, x.n);
    la_batch b = la_over(&a, in, 2);
    uint32_t to = la_add(&b, k->out[0], 2);
    for (; la_more(&b) && la_ok(&a); la_next(&b)) {
        la_load(&a, x, &b, 0);
        int failed = la_ldl(&a, x, pivots, hermitian);
        la_triangle(&a, x, false, false);
        la_store(&a, x, &b, to);
        la_store_ints(&b, k->out[1], pivots, x.n);
        la_store_ints(&b, la_result(k, 2), &failed, 1);
        if (la_checks(k))
            la_check(c, k->op, "torch.linalg.ldl_factor_ex", la_element(&b), failed);
    }
    return la_end(&a);
}

bp_status kernel_ldl_solve(bp_ctx *c, op_call *k)
{
    la a;
    bp_tensor *ld = arg_tensor(k->args, 0), *out = k->out[0];
    bool hermitian = arg_bool(k->args, 3);
    la_begin(&a, c, k, ld);
    int64_t n = tensor_dim(ld, ld->rank - 1u);
    la_matrix f = la_new(&a, n, n), x = la_new(&a, tensor_dim(out, out->rank - 2u), tensor_dim(out, out->rank - 1u));
    int *pivots = la_ints(&a, n);
    la_batch b = la_over(&a, out, 2);
    uint32_t from = la_add(&b, ld, 2), blocks = la_add(&b, arg_tensor(k->args, 1), 1);
    uint32_t right = la_add(&b, arg_tensor(k->args, 2), 2);
    for (; la_more(&b) && la_ok(&a); la_next(&b)) {
        la_load(&a, f, &b, from);
        la_load(&a, x, &b, right);
        if (!la_load_pivots(&a, pivots, f.n, &b, blocks, f.n, true))
            break;
        la_ldl_solve(&a, f, pivots, x, hermitian);
        la_store(&a, x, &b, 0);
    }
    return la_end(&a);
}

/* -- triangular systems -------------------------------------------------------------------------------------------- */

typedef struct { bp_tensor *t, *b; bool left, upper, transpose, unit; } triangle;

static bp_status run_triangular(bp_ctx *c, op_call *k, const triangle *s)
{
    la a;
    bp_tensor *out = k->out[0];
    la_begin(&a, c, k, s->t);
    int64_t n = tensor_dim(s->t, s->t->rank - 1u);
    la_matrix t = la_new(&a, n, n), x = la_new(&a, tensor_dim(out, out->rank - 2u), tensor_dim(out, out->rank - 1u));
    la_batch b = la_over(&a, out, 2);
    uint32_t from = la_add(&b, s->t, 2), right = la_add(&b, s->b, 2);
    for (; la_more(&b) && la_ok(&a); la_next(&b)) {
        la_load(&a, t, &b, from);
        la_load(&a, x, &b, right);
        la_triangular(&a, t, x, s->left, s->upper, s->transpose ? LA_T : LA_N, s->unit);
        la_store(&a, x, &b, 0);
    }
    return la_end(&a);
}

bp_status kernel_solve_triangular(bp_ctx *c, op_call *k)
{
    triangle s = {.t = arg_tensor(k->args, 0), .b = arg_tensor(k->args, 1), .upper = arg_bool(k->args, 2),
                  .left = arg_bool(k->args, 3), .unit = arg_bool(k->args, 4)};
    return run_triangular(c, k, &s);
}

bp_status kernel_triangular_solve(bp_ctx *c, op_call *k)
{
    triangle s = {.t = arg_tensor(k->args, 1), .b = arg_tensor(k->args, 0), .left = true,
                  .upper = arg_bool(k->args, 2), .transpose = arg_bool(k->args, 3), .unit = arg_bool(k->args, 4)};
    work w = {.c = c};
    bp_tensor *copy = work_expand(&w, s.t, k->out[1]->rank, k->out[1]->sizes);
    if (work_ok(&w))
        tensor_copy(c, k->out[1], copy);
    TRY(work_end(&w));
    return run_triangular(c, k, &s);
}
