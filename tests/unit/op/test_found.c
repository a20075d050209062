/* What random calls against PyTorch found (tests/torch/differ.py): the right answers, and what is refused. Where memory
 * was at stake, the sanitized builds see it too. */
#include "tests/lib/op_world.h"

static void memory_outside_of_arguments_is_not_touched(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"index_fill.int_Scalar(f64(3), 0, i64[0:], 7)", "f64(3)"},
        {"index_fill.int_Scalar(f64(3), 0, i64[0 0], 7)", "f64(7)"},
        {"index_fill.int_Scalar(f64(3), 0, i64[0 1], 7)", "OUT_OF_RANGE: index_fill.int_Scalar: index 1..."},
        {"glu_backward(f32[2x2: 1 2 3 4], f32[2x2: 1 2 3 4], 1)",
         "INVALID_ARGUMENT: glu_backward: a gradient of sizes [2, 2] is not half of [2, 2] along dimension 1"},
        {"glu_backward(f32[2], f64[1 2], 0)", "INVALID_ARGUMENT: glu_backward: arguments \"grad_output\" and \"self\" "
                                               "differ in type: float32 and float64"},
        {"_softmax_backward_data(f64[1x3: 1 2 3], f64[0:], 0, dtype:f64)",
         "INVALID_ARGUMENT: _softmax_backward_data: a gradient of sizes [1, 3] for an output of sizes [0]"},
        {"_log_softmax_backward_data(f64[1 2], i16[1 2], 0, dtype:f64)",
         "INVALID_ARGUMENT: _log_softmax_backward_data: arguments \"grad_output\" and \"output\" must have one dtype, "
         "and have float64 and int16"},
        {"_trilinear(f32[1x2: 1 2], f32[1x2x2: 1 2 3 4], f32[1x2: 1 1], [1, 3], [0], [1, -1], [2, 3])",
         "f32[1x1: 17]"},
        {"_pdist_backward(f64[0:], f64[3x1: 1 2 3], 2.0, f64[1 2 1])",
         "INVALID_ARGUMENT: _pdist_backward: argument \"grad_output\": expected a number for each of 3 pairs"},
        {"repeat_interleave.Tensor(i64[9223372036854775807 2])",
         "OUT_OF_RANGE: repeat_interleave.Tensor: repeats sum up to more than 9223372036854775807"},
        {"native_group_norm(f64[1x2: 1 2], None, None, 1, 2, 2, 1, 0.5)",
         "INVALID_ARGUMENT: native_group_norm: arguments \"N\", \"C\" and \"HxW\" are 1, 2 and 2, and \"input\" has 2 "
         "elements"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void gradients_of_activations_promote(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"threshold_backward(f64[1 2], f32[3 -1], 0)", "f64[1 0]"},
        {"threshold_backward(f32[1 2], f64[3 -1], 0)", "f64[1 0]"},
        {"tanh_backward(i16[2], f32[0.5])", "f32[1.5]"},
        {"elu_backward(f32(2), 1, 1, 1, False, f64(3))", "f64(2)"},
        {"elu_backward(f32[2], 1, 1, 1, False, f64(3))", "f32[2]"},
        {"hardtanh_backward(i64[2 3], f32[0.5 4], -1, 1)", "f32[2 0]"},
        {"leaky_relu_backward(f32[2 2], i16[1 -1], 0.5, False)", "f32[2 1]"},
        {"log_sigmoid_backward(f16[1], f64[1], f64[1])",
         "INVALID_ARGUMENT: log_sigmoid_backward: arguments \"grad_output\" and \"self\" differ in type: float16 and "
         "float64"},
        {"_prelu_kernel_backward(f32[1], i16[1], f32[1])",
         "INVALID_ARGUMENT: _prelu_kernel_backward: arguments \"grad_output\" and \"self\" differ in type: float32 and "
         "int16"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void extreme_numbers(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"tril(f64[2x2: 1 2 3 4], 9223372036854775807)", "f64[2x2: 1 2 3 4]"},
        {"tril(f64[2x2: 1 2 3 4], -9223372036854775808)", "f64[2x2: 0 0 0 0]"},
        {"triu(f64[2x2: 1 2 3 4], 9223372036854775807)", "f64[2x2: 0 0 0 0]"},
        {"triu(f64[2x2: 1 2 3 4], -9223372036854775808)", "f64[2x2: 1 2 3 4]"},
        {"tril(f64[2x3: 1 2 3 4 5 6], 1)", "f64[2x3: 1 2 0 4 5 6]"},
        {"triu(f64[2x3: 1 2 3 4 5 6], 1)", "f64[2x3: 0 2 3 0 0 6]"},
        {"_pdist_forward(f64[2x2: nan 1 0 1], 0.0)", "f64[nan]"},
        {"_pdist_forward(f32[2x2: 3e38 1 0 1], 2.0)", "f32[inf]"},
        {"_cdist_forward(f32[1x1: 3e38], f32[1x1: 0], 2.0, 2)", "f32[1x1: inf]"},
        {"special_modified_bessel_i0(f64[1.7976931348623157e308])", "f64[inf]"},
        {"special_modified_bessel_i1(f64[-1.7976931348623157e308])", "f64[-inf]"},
        {"_linalg_check_errors(i32[-2147483648], 'linalg.cholesky', is_matrix=False)",
         "INTERNAL: _linalg_check_errors: \"linalg.cholesky\" (batch element 0): argument 2147483648 of LAPACK's "
         "routine has an illegal value"},
        {"_cdist_forward(f32[1x1: 3], f32[1x1: 0], 2.0, -1)",
         "INVALID_ARGUMENT: _cdist_forward: argument \"compute_mode\": -1 is none of 0, 1 and 2"},
        {"trapezoid.dx(f64(3))",
         "INVALID_ARGUMENT: trapezoid.dx: argument \"y\": a 0-d tensor has no dimension to integrate along"},
        {"l1_loss(f64[1 2], f64[0 0], 3)", "f64[1 2]"},
        {"cosine_similarity(f64[1x2: 1 2], f64[2x2: 1 2 1 2], 0)", "f64[1 1]"},
    };
    OP_TEXT_CHECK(c, cases);
}

/* The first and the middle point of a real signal's transform are real, whatever is there. */
static void imaginary_parts_of_mirrored_points_do_not_count(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"complex(f64[1 2 4], f64[nan 3 inf]); fft_irfft(%1, 4)", "f64[2.25 -2.25 0.25 0.75]"},
        {"complex(f64[1 2 4], f64[nan 3 inf]); fft_hfft(%1, 4)", "f64[9 3 1 -9]"},
        {"complex(f64[1], f64[nan]); fft_irfft(%1, 1)", "f64[1]"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void out_takes_the_size_of_the_result_and_sometimes_its_type_alone(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"amax.out(f32[2x4: 0 1 2 3 4 5 6 7], [0], True, out=f32[2x1: 0 0])", "f32[1x4: 4 5 6 7]"},
        {"add.out(f32[1 2 3], f32[1 1 1], out=f32[0 0])", "f32[2 3 4]"},
        {"add.out(f32[1 2], f32[1 1], out=f64[0 0])", "f64[2 3]"},
        {"amax.out(f32[1 2], [0], out=f64(0))",
         "INVALID_ARGUMENT: amax.out: argument \"out\" must be float32, as the result is, and is float64"},
        {"abs.out(f32[1 2], out=f64[0 0])", "INVALID_ARGUMENT: abs.out: argument \"out\" must be float32..."},
        {"mm.out(f32[1x1: 2], f32[1x1: 3], out=f64[1x1: 0])", "INVALID_ARGUMENT: mm.out: argument \"out\" must be..."},
    };
    OP_TEXT_CHECK(c, cases);
}

/* What follows a dropout that drops nothing draws as if it were not there, eager and captured. */
static void dropout_that_does_not_train_draws_nothing(void **state)
{
    (void)state;
    static const char *const calls[] = {
        "rand([3])",
        "dropout(f32[1 2 3], 0.5, False); rand([3])",
        "dropout_(f32[1 2 3], 0.5, False); rand([3])",
        "dropout_(f32[1 2 3], 0.0, True); rand([3])",
        "mul.Scalar(f32[1 2 3], 2); dropout_(%1, 0.5, False); rand([3])",
        "view(f32[1 2 3 4], [2, 2]); t(%1); dropout_(%1, 0.5, False); rand([3])",
        "view(f32[1 2 3 4], [2, 2]); select.int(%1, 0, 1); dropout_(%1, 0.5, False); rand([3])",
        "dropout_(f32(3), 0.5, False); rand([3])",
        "dropout_(f32[0:], 0.5, True); rand([3])",
    };
    char want[200] = "";
    for (uint32_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int compiled = 0; compiled < 2; compiled++) {
            bp_manual_seed(c, 7);
            const char *got = compiled ? op_text_run_compiled(c, "eager", calls[i]) : op_text_run(c, calls[i]);
            assert_contains(got, "f32[");
            if (!want[0])
                snprintf(want, sizeof want, "%s", got);
            assert_string_equal(got, want);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OP_WORLD_TEST(memory_outside_of_arguments_is_not_touched),
        OP_WORLD_TEST(gradients_of_activations_promote),
        OP_WORLD_TEST(extreme_numbers),
        OP_WORLD_TEST(imaginary_parts_of_mirrored_points_do_not_count),
        OP_WORLD_TEST(out_takes_the_size_of_the_result_and_sometimes_its_type_alone),
        OP_WORLD_TEST(dropout_that_does_not_train_draws_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
