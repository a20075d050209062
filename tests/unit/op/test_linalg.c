/* Linear algebra: right answers that are unique, and what eager PyTorch refuses. Factorizations are checked by what
 * defines them in tests/unit/tools/test_defined.c and on the golden cases. */
#include "tests/lib/check.h"
#include "tests/lib/op_text.h"
#include <backplane/backplane.h>

static bp_ctx *c;

static int begin(void **state)
{
    (void)state;
    c = bp_ctx_new(NULL);
    return c ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    bp_ctx_destroy(c);
    return 0;
}

static void determinants_inverses_and_solutions(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"linalg_det(f64[2x2: 1 2 3 4])", "f64(-2)"},
        {"linalg_det(f32[2x2x2: 1 0 0 1 2 0 0 3])", "f32[1 6]"},
        {"linalg_det(f64[0x0:])", "f64(1)"},
        {"linalg_slogdet(f64[2x2: 1 2 3 4])", "f64(-1) | f64(0.693147)"},
        {"linalg_slogdet(f64[2x2: 1 2 2 4])", "f64(0) | f64(-inf)"},
        {"linalg_inv(f64[2x2: 2 0 0 4])", "f64[2x2: 0.5 0 0 0.25]"},
        {"linalg_solve(f64[2x2: 2 0 0 4], f64[2 8])", "f64[1 2]"},
        {"linalg_solve(f64[2x2: 2 0 0 4], f64[2x1: 2 8])", "f64[2x1: 1 2]"},
        {"linalg_solve(f64[2x2: 2 0 0 4], f64[2x2: 2 4 4 8], left=False)", "f64[2x2: 1 1 2 2]"},
        {"linalg_cholesky(f64[2x2: 4 2 2 5])", "f64[2x2: 2 0 1 2]"},
        {"linalg_cholesky(f64[2x2: 4 2 2 5], upper=True)", "f64[2x2: 2 1 0 2]"},
        {"cholesky_solve(f64[2x1: 8 14], f64[2x2: 2 0 1 2])", "f64[2x1: 0.75 2.5]"},
        {"linalg_solve_triangular(f64[2x2: 2 0 1 4], f64[2x1: 2 9], upper=False)", "f64[2x1: 1 2]"},
        {"linalg_matrix_power(f64[2x2: 1 1 0 1], 5)", "f64[2x2: 1 5 0 1]"},
        {"linalg_matrix_power(f64[2x2: 2 0 0 4], -1)", "f64[2x2: 0.5 0 0 0.25]"},
        {"linalg_pinv(f64[2x1: 3 4], 1e-9)", "f64[1x2: 0.12 0.16]"},
        {"linalg_matrix_rank(f64[2x2: 1 2 2 4], 1e-6)", "i64(1)"},
        {"linalg_matrix_exp(f64[2x2: 0 1 0 0])", "f64[2x2: 1 1 0 1]"},
        {"linalg_eigvalsh(f64[2x2: 2 1 1 2])", "f64[1 3]"},
        {"linalg_svdvals(f64[2x2: 3 0 0 4])", "f64[4 3]"},
        {"linalg_cross(f64[1 0 0], f64[0 1 0])", "f64[0 0 1]"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void norms_of_vectors_and_matrices(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"linalg_vector_norm(f64[3 -4])", "f64(5)"},
        {"linalg_vector_norm(f64[3 -4], 1)", "f64(7)"},
        {"linalg_vector_norm(f64[3 0 -4], 0)", "f64(2)"},
        {"linalg_vector_norm(f32[3e38 3e38], 2)", "f32(inf)"},
        {"linalg_matrix_norm.str_ord(f64[2x2: 3 0 0 4], 'fro')", "f64(5)"},
        {"linalg_matrix_norm.str_ord(f64[2x2: 3 0 0 4], 'nuc')", "f64(7)"},
        {"linalg_matrix_norm(f64[2x2: 1 -2 3 4], 1)", "f64(6)"},
        {"linalg_matrix_norm(f64[2x2: 3 0 0 4], 2)", "f64(4)"},
        {"linalg_matrix_norm(f64[2x2: 3 0 0 4], -2)", "f64(3)"},
    };
    OP_TEXT_CHECK(c, cases);
}

/* Each error names the operator and the values. */
static void what_pytorch_refuses_is_refused(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"linalg_inv(f64[2x2: 1 2 2 4])", "OUT_OF_RANGE: linalg_inv..."},
        {"linalg_solve(f64[2x2: 0 0 0 0], f64[1 2])", "OUT_OF_RANGE: linalg_solve..."},
        {"linalg_cholesky(f64[2x2: 1 2 2 1])", "OUT_OF_RANGE: linalg_cholesky..."},
        {"linalg_inv(f64[2x3: 1 2 3 4 5 6])", "INVALID_ARGUMENT: linalg_inv..."},
        {"linalg_det(i64[2x2: 1 2 3 4])", "INVALID_ARGUMENT: linalg_det..."},
        {"linalg_inv(f16[2x2: 1 2 3 4])", "INVALID_ARGUMENT: linalg_inv..."},
        {"linalg_solve(f64[2x2: 1 2 3 4], f64[1 2 3])", "INVALID_ARGUMENT: linalg_solve..."},
        {"linalg_matrix_power(f64[2x3: 1 2 3 4 5 6], 2)", "INVALID_ARGUMENT: linalg_matrix_power..."},
        {"linalg_eigh(f64[2x2: 2 1 1 2], 'X')", "INVALID_ARGUMENT: linalg_eigh..."},
        {"linalg_qr(f64[2x2: 2 1 1 2], 'other')", "INVALID_ARGUMENT: linalg_qr..."},
        {"linalg_eigvals(f64[2x2: inf 1 1 2])", "OUT_OF_RANGE: linalg_eigvals..."},
        {"linalg_vector_norm(i64[1 2])", "INVALID_ARGUMENT: linalg_vector_norm..."},
        {"linalg_matrix_norm.str_ord(f64[2x2: 3 0 0 4], 'max')", "INVALID_ARGUMENT: linalg_matrix_norm..."},
        {"linalg_cross(f64[1 0], f64[0 1])", "INVALID_ARGUMENT: linalg_cross..."},
    };
    OP_TEXT_CHECK(c, cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(determinants_inverses_and_solutions, begin, end),
        cmocka_unit_test_setup_teardown(norms_of_vectors_and_matrices, begin, end),
        cmocka_unit_test_setup_teardown(what_pytorch_refuses_is_refused, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
