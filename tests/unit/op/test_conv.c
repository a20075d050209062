/* Convolution, pooling, resampling, padding: right answers, edges, what is refused. */
#include "tests/lib/op_world.h"

static void convolution_pads_strides_dilates_and_groups(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"convolution(f32[1x1x4: 1 2 3 4], f32[1x1x2: 1 10], None, [1], [0], [1], False, [0], 1)",
         "f32[1x1x3: 21 32 43]"},
        {"convolution(f32[1x1x4: 1 2 3 4], f32[1x1x2: 1 10], f32[100], [2], [1], [2], False, [0], 1)",
         "f32[1x1x2: 120 142]"},
        {"convolution(f32[1x2x2: 1 2 3 4], f32[2x1x1: 10 100], None, [1], [0], [1], False, [0], 2)",
         "f32[1x2x2: 10 20 300 400]"},
        {"convolution(f32[1x1x2: 1 2], f32[1x1x3: 1 10 100], None, [2], [0], [1], True, [1], 1)",
         "f32[1x1x6: 1 10 102 20 200 0]"},
        {"conv2d(f32[1x3x3: 1 2 3 4 5 6 7 8 9], f32[1x1x2x2: 1 0 0 1])", "f32[1x2x2: 6 8 12 14]"},
        {"conv2d(f32[0x1x3x3:], f32[4x1x1x1: 1 2 3 4])", "f32[0x4x3x3:]"},
        {"conv1d.padding(f32[1x1x3: 1 2 3], f32[1x1x2: 1 10], None, [1], 'same')", "f32[1x1x3: 21 32 3]"},
        {"conv1d.padding(i64[1x3: 1 2 3], i64[1x1x2: 1 10])", "i64[1x2: 21 32]"},
        {"conv_transpose2d.input(f32[1x1x1x2: 1 2], f32[1x1x1x2: 1 10], f32[100], [1, 2], [0, 0], [0, 1])",
         "f32[1x1x1x5: 101 110 102 120 100]"},
        {"conv3d(f32[1x1x1x1x2: 1 2], f32[1x1x1x1x1: 3])", "f32[1x1x1x1x2: 3 6]"},
        {"convolution_backward(f32[1x1x2: 1 10], f32[1x1x3: 1 2 3], f32[1x1x2: 1 100], [1], [1], "
         "[0], [1], False, [0], 1, [True, True, True])",
         "f32[1x1x3: 1 110 1000] | f32[1x1x2: 21 32] | f32[11]..."},
    };
    OP_TEXT_CHECK(c, cases);
}

static void convolutions_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"conv2d(f32[1x2x3x3: 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9], f32[1x1x2x2: 1 0 0 1])",
         "INVALID_ARGUMENT: conv2d: a weight of sizes [1, 1, 2, 2] in 1 groups takes 1 channels, and the input has 2"},
        {"conv1d(f32[1x1x2: 1 2], f32[1x1x3: 1 2 3])",
         "INVALID_ARGUMENT: conv1d: a kernel that reaches over 3 elements, and a padded input of 2"},
        {"conv1d(f32[1x1x2: 1 2], f32[1x1x1: 1], f32[1 2])",
         "INVALID_ARGUMENT: conv1d: the bias must be a vector of 1 elements, and has sizes [2]"},
        {"conv1d(f32[1x1x2: 1 2], f64[1x1x1: 1])",
         "INVALID_ARGUMENT: conv1d: arguments \"input\" and \"weight\" must have one dtype, and have..."},
        {"conv1d(f32[1x1x2: 1 2], f32[1x1x1: 1], None, 0)",
         "INVALID_ARGUMENT: conv1d: argument \"stride\" must be at least 1, and is 0"},
        {"conv1d(f32[1x1x2: 1 2], f32[1x1x1: 1], None, 1, -1)",
         "INVALID_ARGUMENT: conv1d: argument \"padding\" must be at least 0, and is -1"},
        {"conv1d(f32[1x1x2: 1 2], f32[1x1x1: 1], None, 1, 0, 0)",
         "INVALID_ARGUMENT: conv1d: argument \"dilation\" must be at least 1, and is 0"},
        {"conv1d(f32[1x1x2: 1 2], f32[1x1x1: 1], groups=0)",
         "INVALID_ARGUMENT: conv1d: argument \"groups\" must be positive, and is 0"},
        {"conv1d(f32[1x1x2: 1 2], f32[3x1x1: 1 2 3], groups=2)",
         "INVALID_ARGUMENT: conv1d: a weight of sizes [3, 1, 1] cannot be cut into 2 groups"},
        {"conv2d(f32[1x1x2: 1 2], f32[1x1x1: 1])",
         "INVALID_ARGUMENT: conv2d: the weight has 3 dimensions, and must have 4"},
        {"conv1d(f32[2], f32[1x1x1: 1])",
         "INVALID_ARGUMENT: conv1d: the input has 1 dimensions, and must have 3, or one less without a batch"},
        {"conv1d.padding(f32[1x1x2: 1 2], f32[1x1x1: 1], None, 2, 'same')",
         "INVALID_ARGUMENT: conv1d.padding: padding=\"same\" needs a stride of 1, and it is 2"},
        {"conv1d.padding(f32[1x1x2: 1 2], f32[1x1x1: 1], None, 1, 'full')",
         "INVALID_ARGUMENT: conv1d.padding: argument \"padding\" must be \"same\" or \"valid\", and is \"full\""},
        {"conv_transpose1d(f32[1x1x2: 1 2], f32[1x1x1: 1], None, 1, 0, 1)",
         "INVALID_ARGUMENT: conv_transpose1d: output padding must be smaller than either stride or d..."},
        {"convolution(f32[1x2: 1 2], f32[1x1x1: 1], None, [1], [0], [1], False, [0], 1)",
         "INVALID_ARGUMENT: convolution: the input has 2 dimensions, and must have 3"},
        {"conv1d(b8[1x1x2: 1 0], b8[1x1x1: 1])", "INVALID_ARGUMENT: conv1d: there are no convolutions of bools"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void max_pooling_takes_the_first_maximum_and_nan(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"max_pool2d_with_indices(f32[1x2x2: 1 nan nan 2], [2, 2])", "f32[1x1x1: nan] | i64[1x1x1: 2]"},
        {"max_pool1d_with_indices(f32[1x3: -5 -6 -7], [3], [1], [1])", "f32[1x3: -5 -5 -6] | i64[1x3: 0 0 1]"},
        {"max_pool1d_with_indices(f32[1x4: 3 3 1 3], [2])", "f32[1x2: 3 3] | i64[1x2: 0 3]"},
        {"max_pool2d_with_indices(f32[1x2x2: -inf -inf -inf -inf], [2, 2])", "f32[1x1x1: -inf] | i64[1x1x1: 0]"},
        {"max_pool1d(f32[1x5: 1 2 3 4 5], [2], [2], [0], [1], True)", "f32[1x3: 2 4 5]"},
        {"max_pool2d(u8[1x2x2: 1 2 3 200], [2, 2])", "u8[1x1x1: 200]"},
        {"adaptive_max_pool1d(f32[1x5: 1 5 3 4 2], [3])", "f32[1x3: 5 5 4] | i64[1x3: 1 1 3]"},
        {"max_unpool2d(f32[1x1x2: 5 6], i64[1x1x2: 3 0], [2, 2])", "f32[1x2x2: 6 0 0 5]"},
        {"max_unpool2d(f32[1x1x1: 5], i64[1x1x1: 9], [2, 2])",
         "OUT_OF_RANGE: max_unpool2d: index 9 is out of range for a plane of 4 elements"},
        {"max_pool2d_with_indices_backward(f32[1x1x2: 1 2], f32[1x1x3: 1 3 2], [1, 2], [1, 1], [0, "
         "0], [1, 1], False, i64[1x1x2: 1 1])",
         "f32[1x1x3: 0 3 0]..."},
    };
    OP_TEXT_CHECK(c, cases);
}

static void average_pooling_divides_by_what_it_should(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"avg_pool2d(f32[1x4x4: 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1], [3, 3], [2, 2], [1, 1], True)",
         "f32[1x3x3: 0.444444 0.666667 0.333333 0.666667 1 0.5 0.333333 0.5 0.25]"},
        {"avg_pool2d(f32[1x4x4: 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1], [3, 3], [2, 2], [1, 1], True, False)",
         "f32[1x3x3: 1 1 1 1 1 1 1 1 1]"},
        {"avg_pool1d(f32[1x1: 1.7641], [4], [3], [2])", "f32[1x1: 0.441025]"},
        {"avg_pool2d(f32[1x1x2: 1 2], [1, 2], [1, 1], [0, 0], False, True, 4)", "f32[1x1x1: 0.75]"},
        {"avg_pool1d(i64[1x2: -3 -2], [2])", "i64[1x1: -2]"},
        {"adaptive_avg_pool1d(f32[1x5: 1 2 3 4 5], [3])", "f32[1x3: 1.5 3 4.5]"},
        {"adaptive_avg_pool2d(f32[1x2x2: 1 2 3 4], [1, 1])", "f32[1x1x1: 2.5]"},
        {"adaptive_avg_pool2d(f32[1x0x2:], [1, 1])", "f32[1x1x1: nan]"},
        {"_adaptive_avg_pool2d(f32[1x2x2: 1 2 3 4], [0, 1])", "f32[1x0x1:]"},
        {"avg_pool2d_backward(f32[1x1x1: 4], f32[1x2x2: 0 0 0 0], [2, 2], [2, 2], [0, 0], False, True, None)",
         "f32[1x2x2: 1 1 1 1]"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void pooling_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"max_pool1d(f32[1x2: 1 2], [3])",
         "INVALID_ARGUMENT: max_pool1d: an input of 2 elements is too small for a kernel of 3"},
        {"max_pool1d(f32[1x2: 1 2], [2], [2], [2])",
         "INVALID_ARGUMENT: max_pool1d: padding must be at most half of the kernel, and 2 is more than half of 2"},
        {"max_pool1d(f32[1x2: 1 2], [2], [0])",
         "INVALID_ARGUMENT: max_pool1d: argument \"stride\" must be at least 1, and is 0"},
        {"max_pool2d(f32[1x0x2:], [1, 1])",
         "INVALID_ARGUMENT: max_pool2d: an input of sizes [1, 0, 2] is empty, and not in its batch"},
        {"max_pool2d(f32[2x2: 1 2 3 4], [1, 1])",
         "INVALID_ARGUMENT: max_pool2d: argument \"self\" must have 3 to 4 dimensions, and has 2"},
        {"avg_pool2d(f32[1x1x2: 1 2], [1, 2], [1, 1], [0, 0], False, True, 0)",
         "INVALID_ARGUMENT: avg_pool2d: argument \"divisor_override\" must not be 0"},
        {"avg_pool1d(i32[1x2: 1 2], [2])", "INVALID_ARGUMENT: avg_pool1d: there is no avg_pool1d for int32"},
        {"max_pool1d(b8[1x2: 1 0], [2])", "INVALID_ARGUMENT: max_pool1d: there is no max_pool1d for bool"},
        {"adaptive_avg_pool1d(f32[1x2: 1 2], [-1])",
         "INVALID_ARGUMENT: adaptive_avg_pool1d: argument \"output_size\" must not be negative, and is -1"},
        {"adaptive_max_pool2d(f32[1x0x2:], [1, 1])",
         "INVALID_ARGUMENT: adaptive_max_pool2d: an input of sizes [1, 0, 2] is empty, and not in its batch"},
        {"adaptive_avg_pool2d(i64[1x1x1: 1], [1, 1])",
         "INVALID_ARGUMENT: adaptive_avg_pool2d: there is no adaptive_avg_pool2d for int64"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void upsampling_finds_its_places(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"upsample_nearest1d(f32[1x1x2: 1 2], [5])", "f32[1x1x5: 1 1 1 2 2]"},
        {"_upsample_nearest_exact1d(f32[1x1x3: 1 2 3], [2])", "f32[1x1x2: 1 3]"},
        {"upsample_nearest1d(f32[1x1x3: 1 2 3], [2])", "f32[1x1x2: 1 2]"},
        {"upsample_linear1d(f32[1x1x2: 0 4], [4], False)", "f32[1x1x4: 0 1 3 4]"},
        {"upsample_linear1d(f32[1x1x2: 0 3], [4], True)", "f32[1x1x4: 0 1 2 3]"},
        {"upsample_bilinear2d(f32[1x1x2x2: 1 2 3 4], [1, 1], False)", "f32[1x1x1x1: 2.5]"},
        {"upsample_bicubic2d(f32[1x1x1x4: 0 1 2 3], [1, 2], False)", "f32[1x1x1x2: 0.40625 2.59375]"},
        {"upsample_nearest1d.vec(f32[1x1x3: 1 2 3], None, [1.7])", "f32[1x1x5: 1 1 2 2 3]"},
        {"upsample_linear1d(f32[1x1x4: 0 1 2 3], [2], False, 0.6)", "f32[1x1x2: 0.333333 2]"},
        {"upsample_trilinear3d(f32[1x1x1x1x2: 0 4], [1, 1, 4], False)", "f32[1x1x1x1x4: 0 1 3 4]"},
        {"upsample_nearest1d.vec(f32[1x1x3: 1 2 3], None, None)",
         "INVALID_ARGUMENT: upsample_nearest1d.vec: exactly one of output_size and scale_factors must be given"},
        {"upsample_nearest1d.vec(f32[1x1x3: 1 2 3], [2], [1.0])",
         "INVALID_ARGUMENT: upsample_nearest1d.vec: exactly one of output_size and scale_factors must be given"},
        {"upsample_nearest1d(f32[1x1x3: 1 2 3], [0])",
         "INVALID_ARGUMENT: upsample_nearest1d: sizes must be positive, and 3 elements are resampled to 0"},
        {"upsample_nearest1d(i64[1x1x3: 1 2 3], [2])",
         "INVALID_ARGUMENT: upsample_nearest1d: there is no upsample_nearest1d for int64"},
        {"upsample_linear1d_backward(f32[1x1x4: 1 1 1 1], [4], [1, 1, 2], False)", "f32[1x1x2: 2 2]"},
        {"grid_sampler_2d(f32[1x1x1x2: 1 3], f32[1x1x3x2: -1 0 0 0 3 0], 0, 0, False)", "f32[1x1x1x3: 0.5 2 0]"},
        {"grid_sampler_2d(f32[1x1x1x2: 1 3], f32[1x1x3x2: -1 0 0 0 3 0], 0, 1, True)", "f32[1x1x1x3: 1 2 3]"},
        {"grid_sampler_2d(f32[1x1x1x3: 1 2 3], f32[1x1x2x2: -1.5 0 0.1 0], 1, 2, True)", "f32[1x1x1x2: 1 2]"},
        {"grid_sampler_2d(f32[1x1x1x2: 1 3], f32[1x1x1x3: 0 0 0], 0, 0, False)",
         "INVALID_ARGUMENT: grid_sampler_2d: a grid needs the input's batch of 1, and 2 coordinates ..."},
    };
    OP_TEXT_CHECK(c, cases);
}

static void images_pad_themselves(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"reflection_pad1d(f32[1x3: 1 2 3], [2, 1])", "f32[1x6: 3 2 1 2 3 2]"},
        {"replication_pad1d(f32[1x3: 1 2 3], [2, 1])", "f32[1x6: 1 1 1 2 3 3]"},
        {"reflection_pad1d(f32[1x3: 1 2 3], [-1, 2])", "f32[1x4: 2 3 2 1]"},
        {"replication_pad2d(f32[1x1x2: 1 2], [0, 1, 1, 0])", "f32[1x2x3: 1 2 2 1 2 2]"},
        {"reflection_pad1d(f32[1x3: 1 2 3], [3, 0])",
         "INVALID_ARGUMENT: reflection_pad1d: padding (3, 0) must be less than the size 3"},
        {"reflection_pad1d(f32[1x3: 1 2 3], [-2, -1])",
         "INVALID_ARGUMENT: reflection_pad1d: padding (-2, -1) leaves a size of 0"},
        {"reflection_pad1d_backward(f32[1x5: 1 2 3 4 5], f32[1x3: 0 0 0], [1, 1])", "f32[1x3: 2 9 4]"},
        {"im2col(f32[1x2x2: 1 2 3 4], [1, 2], [1, 1], [0, 1], [1, 1])", "f32[2x6: 0 1 2 0 3 4 1 2 0 3 4 0]"},
        {"col2im(f32[2x2: 1 2 3 4], [1, 3], [1, 2], [1, 1], [0, 0], [1, 1])", "f32[1x1x3: 1 5 4]"},
        {"im2col(f32[1x2x2: 1 2 3 4], [3, 3], [1, 1], [0, 0], [1, 1])",
         "INVALID_ARGUMENT: im2col: no window fits into 2 elements"},
    };
    OP_TEXT_CHECK(c, cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolution_pads_strides_dilates_and_groups),
        cmocka_unit_test(convolutions_that_do_not_fit_are_refused),
        cmocka_unit_test(max_pooling_takes_the_first_maximum_and_nan),
        cmocka_unit_test(average_pooling_divides_by_what_it_should),
        cmocka_unit_test(pooling_that_does_not_fit_is_refused),
        cmocka_unit_test(upsampling_finds_its_places),
        cmocka_unit_test(images_pad_themselves),
    };
    return cmocka_run_group_tests(tests, op_world_begin, op_world_end);
}
