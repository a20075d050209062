/* Linear algebra: right answers that are unique, and what eager PyTorch refuses. Factorizations are checked by what
 * defines them in tests/unit/tools/test_defined.c and on the golden cases. */
#include "tests/lib/op_world.h"

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
        {"linalg_inv(f64[2x2: 1 2 2 4])",
         "OUT_OF_RANGE: linalg_inv: \"linalg.inv\": the diagonal element 2 is zero, the inversion could not be "
         "completed because the input matrix is singular"},
        {"linalg_solve(f64[2x2: 0 0 0 0], f64[1 2])",
         "OUT_OF_RANGE: linalg_solve: \"linalg.solve\": the solver failed because the input matrix is singular: "
         "diagonal element 1 is zero"},
        {"linalg_cholesky(f64[2x2: 1 2 2 1])",
         "OUT_OF_RANGE: linalg_cholesky: \"linalg.cholesky\": the factorization could not be completed because "
         "the input is not positive-definite (the leading minor of order 2 is not positive-definite)"},
        {"linalg_inv(f64[2x3: 1 2 3 4 5 6])",
         "INVALID_ARGUMENT: linalg_inv: argument \"A\" must be square matrices, and they are 2 x 3"},
        {"linalg_det(i64[2x2: 1 2 3 4])",
         "INVALID_ARGUMENT: linalg_det: argument \"A\" must be float32, float64 or complex, and is int64"},
        {"linalg_inv(f16[2x2: 1 2 3 4])",
         "INVALID_ARGUMENT: linalg_inv: argument \"A\" must be float32, float64 or complex, and is float16"},
        {"linalg_solve(f64[2x2: 1 2 3 4], f64[1 2 3])",
         "INVALID_ARGUMENT: linalg_solve: argument \"B\" has 3 elements, expected 2"},
        {"linalg_matrix_power(f64[2x3: 1 2 3 4 5 6], 2)",
         "INVALID_ARGUMENT: linalg_matrix_power: argument \"self\" must be square matrices, and has sizes [2, 3]"},
        {"linalg_eigh(f64[2x2: 2 1 1 2], 'X')",
         "INVALID_ARGUMENT: linalg_eigh: argument \"UPLO\" must be \"L\" or \"U\", and is \"X\""},
        {"linalg_qr(f64[2x2: 2 1 1 2], 'other')",
         "INVALID_ARGUMENT: linalg_qr: argument \"mode\" must be \"reduced\", \"complete\" or \"r\", and is "
         "\"other\""},
        {"linalg_eigvals(f64[2x2: inf 1 1 2])",
         "OUT_OF_RANGE: linalg_eigvals: the algorithm failed to converge because the input matrix contained "
         "non-finite values"},
        {"linalg_vector_norm(i64[1 2])",
         "INVALID_ARGUMENT: linalg_vector_norm: expected a float or complex type, got int64"},
        {"linalg_matrix_norm.str_ord(f64[2x2: 3 0 0 4], 'max')",
         "INVALID_ARGUMENT: linalg_matrix_norm.str_ord: argument \"ord\" must be \"fro\" or \"nuc\", and is "
         "\"max\""},
        {"linalg_cross(f64[1 0], f64[0 1])", "INVALID_ARGUMENT: linalg_cross: no dimension of size 3 in [2] and [2]"},
    };
    OP_TEXT_CHECK(c, cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OP_WORLD_TEST(determinants_inverses_and_solutions),
        OP_WORLD_TEST(norms_of_vectors_and_matrices),
        OP_WORLD_TEST(what_pytorch_refuses_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
