/* What users of graph compilers reported, restated: each function is one report's kind, named by its number, on eager
 * operators and compiled. This part: indices, windows, odd shapes, and further right answers. */
#include "tests/unit/op/pains.h"

/* -- A5: indices --------------------------------------------------------------------------------------------------- */

static void A070_negative_indices_wrap_in_subscripts_alone(void **state)
{
    (void)state;
    RIGHT({"embedding(f32[5x1: 0 1 2 3 4], i64[2 -2 4])", "OUT_OF_RANGE: ..."},
          {"embedding(f32[2x1: 0 1], i64[2])", "OUT_OF_RANGE: ..."},
          {"index.Tensor(i64[1 2 3], [i64[-1 -3]])", "i64[3 1]"},
          {"index.Tensor(i64[1 2 3], [i64[-4]])", "OUT_OF_RANGE: ..."},
          {"index_select(i64[1 2 3], 0, i64[-1])", "OUT_OF_RANGE: ..."},
          {"gather(i64[1 2 3], 0, i64[-1])", "OUT_OF_RANGE: ..."},
          {"scatter.src(i64[1 2 3], 0, i64[-1], i64[9])", "OUT_OF_RANGE: ..."},
          {"index_add(i64[1 2 3], 0, i64[-1], i64[9])", "OUT_OF_RANGE: ..."});
    char a[TEXT];
    for (int n = 1; n <= LONGEST; n += 6)
        right("OUT_OF_RANGE: ...", "index_select(f32[1 2], 0, %s)", vector(a, "i64", n, "1", n - 1, "2"));
}

static void A072_a_scattered_reduction_refuses_negative_indices(void **state)
{
    (void)state;
    RIGHT({"scatter_reduce.two(f32[1 2 3 4], 0, i64[0 1 0 1 2 -1], f32[1 2 3 4 5 6], 'sum')", "OUT_OF_RANGE: ..."},
          {"scatter_reduce.two(f32[1 2 3 4], 0, i64[0 1 0 1 2 3], f32[1 2 3 4 5 6], 'sum')", "f32[5 8 8 10]"});
}

static void A074_a_selection_out_of_range_is_refused_from_sizes(void **state)
{
    (void)state;
    RIGHT({"select.int(f32[3x1x2: 1 2 3 4 5 6], 1, 1)", "INVALID_ARGUMENT: ..."},
          {"select.int(f32[3x1x2: 1 2 3 4 5 6], 1, -1)", "f32[3x2: 1 2 3 4 5 6]"},
          {"select.int(f32[2], 0, -2)", "INVALID_ARGUMENT: ..."});
}

static void A076_values_are_read_before_the_first_store(void **state)
{
    (void)state;
    RIGHT({"flip(f32[1 2 3], [0]); index_put(%1, [i64[0 1 2]], %1)", "f32[3 2 1]"},
          {"alias(f32[1 2 3]); flip(%1, [0]); index_put_(%1, [i64[0 1 2]], %2)", "f32[3 2 1]"},
          {"alias(f32[1 2 3 4]); slice.Tensor(%1, 0, 0, 3); slice.Tensor(%1, 0, 1, 4); clone(%2); copy_(%3, "
           "%4); alias(%1)",
           "f32[1 1 2 3]"});
}

static void A078_a_write_does_not_feed_its_own_source(void **state)
{
    (void)state;
    RIGHT({"alias(f32[1 2 4]); flip(%1, [0]); add_.Tensor(%1, %2)", "f32[5 4 5]"},
          {"alias(f32[2x2: 1 2 3 4]); t(%1); clone(%2); add_.Tensor(%1, %3)", "f32[2x2: 2 5 5 8]"});
}

static void A080_a_scaled_sum_leaves_its_source_alone(void **state)
{
    (void)state;
    RIGHT({"zeros([1]); mul.Scalar(f32[3], 1); index_add(%1, 0, i64[0], %2, alpha=2); div.Scalar(%3, 2); cat([%4, "
           "%2], 0)",
           "f32[3 3]"});
}

static void A082_a_sum_over_all_but_one_dimension_fits_its_buffer(void **state)
{
    (void)state;
    RIGHT({"ones([5, 1, 32, 32]); ones([5]); view(%2, [5, 1, 1, 1]); mul.Tensor(%1, %3); neg(%4); exp(%5); "
           "sum.dim_IntList(%6, [1, 2, 3], True); div.Tensor(%6, %7); sum.dim_IntList(%8, [1, 2, 3])",
           "f32[1 1 1 1 1]"});
}

static void A084_equal_targets_of_a_scatter_add_up(void **state)
{
    (void)state;
    RIGHT({"arange(3); repeat_interleave.self_int(%1, 4); ones([12, 2]); zeros([3, 2]); index_add(%4, 0, %2, %3)",
           "f32[3x2: 4 4 4 4 4 4]"},
          {"scatter_add(f32[2: 0 0], 0, i64[0 0 1 0], f32[1 2 3 4])", "f32[7 3]"},
          {"index_put(f32[0 0], [i64[1 1 1]], f32[1 2 3], True)", "f32[0 6]"});
    char a[TEXT], ones[TEXT], want[32];
    for (int n = 1; n <= LONGEST; n += 6) {
        snprintf(want, sizeof want, "f32[0 %d]", n);
        right(want, "scatter_add(f32[0 0], 0, %s, %s)", vector(a, "i64", n, "1", -1, ""),
              vector(ones, "f32", n, "1", -1, ""));
    }
}

static void A086_a_scan_knows_its_length_at_the_call(void **state)
{
    (void)state;
    RIGHT({"ones([70000]); cumsum(%1, 0); select.int(%2, 0, -1)", "f32(70000)"},
          {"full([70000], 70000, dtype=dtype:i64); cumsum(%1, 0); select.int(%2, 0, -1)", "i64(4900000000)"});
}

/* -- A6: windows --------------------------------------------------------------------------------------------------- */

static void A088_an_average_divides_by_its_window_inside_the_padding(void **state)
{
    (void)state;
    RIGHT({"ones([1, 1, 4, 4]); avg_pool2d(%1, [3], [2], [1], True)",
           "f32[1x1x3x3: 0.444444 0.666667 0.333333 0.666667 1 0.5 0.333333 0.5 0.25]"},
          {"ones([1, 1, 4, 4]); avg_pool2d(%1, [3], [2], [1], True, False)", "f32[1x1x3x3: 1 1 1 1 1 1 1 1 1]"},
          {"ones([1, 1, 4, 4]); avg_pool2d(%1, [3], [2], [1], True, True, 2)",
           "f32[1x1x3x3: 2 3 1 3 4.5 1.5 1 1.5 0.5]"});
}

static void A090_an_average_of_one_element(void **state)
{
    (void)state;
    RIGHT({"avg_pool1d(f32[1x1: 1.7641], [4], [3], [2])", "f32[1x1: 0.441025]"});
}

static void A092_a_transposed_convolution_knows_its_strides(void **state)
{
    (void)state;
    RIGHT({"ones([2, 2, 4, 4]); ones([2, 3, 3, 3]); conv_transpose2d.input(%1, %2, None, [2], [1], [1]); sum(%3)",
           "f32(1452)"});
    bp_ctx *c = w->c;
    bp_tensor *x = bp_ones(c, BP_DIMS(2, 16, 4, 4)), *k = bp_ones(c, BP_DIMS(16, 16, 3, 3));
    bp_tensor *y = bp_conv_transpose2d(c, x, k, .stride = BP_DIMS(2), .padding = BP_DIMS(1),
              .output_padding = BP_DIMS(1));
    const int64_t sizes[] = {2, 16, 8, 8}, strides[] = {1024, 64, 8, 1};
    for (uint32_t d = 0; d < 4; d++) {
        assert_int_equal(bp_tensor_size(y, d), sizes[d]);
        assert_int_equal(bp_tensor_stride(y, d), strides[d]);
    }
}

static void A094_an_output_padding_as_large_as_the_stride_is_refused(void **state)
{
    (void)state;
    RIGHT({"conv_transpose2d.input(f32[1x1x2x2: 1 2 3 4], f32[1x1x1x1: 1], None, [1], [0], [1]); tanh(%1)",
           "INVALID_ARGUMENT: ..."});
}

static void A096_an_image_without_a_batch_is_convolved(void **state)
{
    (void)state;
    RIGHT({"ones([3, 32, 32]); ones([6, 3, 3, 3]); conv2d(%1, %2); sum(%3); eq.Scalar(%4, 145800)", "b8(1)"},
          {"conv2d(f32[1x2x2: 1 2 3 4], f32[1x1x1x1: 2], None, [1], [0], [2])", "f32[1x2x2: 2 4 6 8]"});
}

static void A098_one_pixel_is_the_middle(void **state)
{
    (void)state;
    RIGHT({"arange(70); view(%1, [1, 1, 7, 10]); _to_copy(%2, dtype=dtype:f32); upsample_bilinear2d(%3, [1, 1], False)",
           "f32[1x1x1x1: 34.5]"});
}

static void A100_a_line_between_two_pixels_is_exact(void **state)
{
    (void)state;
    RIGHT({"upsample_bilinear2d(f32[1x1x1x2: 10 20], [1, 4], False)", "f32[1x1x1x4: 10 12.5 17.5 20]"});
}

static void A102_adaptive_windows_are_never_empty(void **state)
{
    (void)state;
    RIGHT({"adaptive_max_pool2d(f32[1x1x2: 3 5], [1, 5])", "f32[1x1x5: 3 3 5 5 5] | i64[1x1x5: 0 0 1 1 1]"},
          {"ones([1, 1, 16, 16]); adaptive_max_pool2d(%1, [58, 83]); sum(%2)", "f32(4814)"},
          {"adaptive_avg_pool1d(f32[1x5: 1 2 3 4 5], [3])", "f32[1x3: 1.5 3 4.5]"});
}

/* -- A7: nothing, no dimensions, odd strides ----------------------------------------------------------------------- */

static void A104_a_scan_of_a_number_is_the_number(void **state)
{
    (void)state;
    RIGHT({"cumsum(f32(5), 0)", "f32(5)"}, {"cumsum(f32(5), -1)", "f32(5)"}, {"cumprod(i64(5), 0)", "i64(5)"},
          {"logcumsumexp(f32(5), 0)", "f32(5)"}, {"cummax(f32(5), 0)", "f32(5) | i64(0)"},
          {"cumsum(f32(5), 1)", "INVALID_ARGUMENT: ..."}, {"sort(f32(5), 0)", "f32(5) | i64(0)"});
}

static void A106_reductions_of_nothing(void **state)
{
    (void)state;
    RIGHT({"sum(f32[0:])", "f32(0)"}, {"prod(f32[0:])", "f32(1)"}, {"mean(f32[0:])", "f32(nan)"},
          {"all(b8[0:])", "b8(1)"},
          {"any(b8[0:])", "b8(0)"}, {"max.dim(f32[2x0:], 1)", "INVALID_ARGUMENT: ..."},
          {"argmax(f32[2x0:])", "INVALID_ARGUMENT: ..."},
          {"amax(f32[2x0:], [0])", "f32[]"}, {"sum.dim_IntList(f32[2x0:], [1])", "f32[0 0]"},
          {"std.correction(f32[0x3:], [0])", "f32[nan nan nan]"});
}

static void A108_no_address_is_formed_from_nothing(void **state)
{
    (void)state;
    RIGHT({"cat([f32[0:], f32[2: 1 2]], 0); add.Scalar(%1, 1)", "f32[2 3]"}, {"relu(f32[0x4:])", "f32[0x4:]"},
          {"index_select(f32[0:], 0, i64[0:])", "f32[]"}, {"mm(f32[2x0:], f32[0x2:])", "f32[2x2: 0 0 0 0]"},
          {"gather(f32[3x0:], 1, i64[3x0:])", "f32[3x0:]"}, {"softmax.int(f32[2x0:], 1)", "f32[2x0:]"});
}

/* "2 2 1": the strides of what a chain gives. */
static void strides_are(const char *want, bp_tensor *t)
{
    char text[64] = "";
    assert_non_null(t);
    for (uint32_t d = 0; d < bp_tensor_rank(t); d++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld", d ? " " : "",
                 (long long)bp_tensor_stride(t, d));
    assert_string_equal(text, want);
}

static void A110_strides_of_single_rows_are_seen(void **state)
{
    (void)state;
    bp_ctx *c = w->c;
    strides_are("2 2 1", bp_aten_view_default(c, bp_add(c, bp_arange(c, 8, .dtype = BP_F32), 1), BP_DIMS(-1, 1, 2)));
    strides_are("1 5", bp_ones_like(c, bp_t(c, bp_randn(c, BP_DIMS(1, 5)))));
    assert_int_equal(bp_error(c), BP_OK);
}

static void explicit_strides(bp_ctx *c, bp_frame *f)
{
    bp_tensor *t = bp_empty_strided(c, BP_DIMS(16, 8), BP_DIMS(16, 1));
    bp_return(f, bp_fill_inplace(c, t, 1));
}

static void shuffled(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_channel_shuffle(c, bp_arg(f, 0, "x"), 2));
}

static bp_tensor *called(bp_fn fn, const char *name, bp_tensor *x)
{
    bp_ctx *c = w->c;
    bp_callable *g = bp_compile(c, fn, &(bp_compile_options){.backend = name});
    bp_tensor *y = bp_call1(c, g, x ? 1 : 0, &x);
    bp_callable_unref(g);
    return y;
}

static void A112_explicit_strides_come_out_as_they_are(void **state)
{
    (void)state;
    strides_are("16 1", called(explicit_strides, "eager", NULL));
    strides_are("16 1", called(explicit_strides, "chain", NULL));
}

static void A114_shuffled_channels_keep_their_format(void **state)
{
    (void)state;
    bp_ctx *c = w->c;
    bp_tensor *x = bp_clone(c, bp_randn(c, BP_DIMS(2, 4, 3, 3)), .memory_format = BP_CHANNELS_LAST);
    bp_args in = {(bp_value[]){bp_arg_of_tensor(x)}, 1};
    bp_outputs outs = {0};
    assert_int_equal(bp_run_eager(c, shuffled, NULL, &in, &outs), BP_OK);
    char want[64];
    snprintf(want, sizeof want, "%lld %lld %lld %lld", (long long)bp_tensor_stride(outs.at[0], 0),
             (long long)bp_tensor_stride(outs.at[0], 1), (long long)bp_tensor_stride(outs.at[0], 2),
             (long long)bp_tensor_stride(outs.at[0], 3));
    strides_are(want, called(shuffled, "eager", x));
    strides_are(want, called(shuffled, "chain", x));
}

/* -- A16: further right answers ------------------------------------------------------------------------------------ */

static void A16_quotients_of_integers_and_floats(void **state)
{
    (void)state;
    RIGHT({"floor_divide(i64[7 -7 7 -7], i64[2 2 -2 -2])", "i64[3 -4 -4 3]"},
          {"remainder.Tensor(i64[7 -7 7 -7], i64[3 3 -3 -3])", "i64[1 2 -2 -1]"},
          {"fmod.Tensor(i64[7 -7 7 -7], i64[3 3 -3 -3])", "i64[1 -1 1 -1]"},
          {"div.Tensor_mode(i64[-7 7], i64[2 -2], rounding_mode='trunc')", "i64[-3 -3]"},
          {"remainder.Tensor(f32[7.5 7.5 -7.5 -7.5], f32[3 -3 3 -3])", "f32[1.5 -1.5 1.5 -1.5]"},
          {"remainder.Scalar(f32[1 -1], inf)", "f32[1 inf]"},
          {"floor_divide(f32[1 -1 0], f32[0])", "f32[inf -inf nan]"},
          {"floor_divide(f64[1], f64[0.1])", "f64[9]"}, {"remainder.Tensor(f64[1], f64[0.1])", "f64[0.1]"});
}

static void A16_rounding_signs_and_shifts(void **state)
{
    (void)state;
    RIGHT({"round(f32[0.5 1.5 2.5 -0.5 -1.5])", "f32[0 2 2 -0 -2]"}, {"floor(i64[3])", "i64[3]"},
          {"sigmoid(i64[0])", "f32[0.5]"},
          {"sign(f32[-0.0])", "f32[0]"}, {"__rshift__.Scalar(i64[-8], 1)", "i64[-4]"},
          {"atan2(f64[0.0 -0.0 0.0 -0.0], f64[-0.0 -0.0 0.0 0.0])", "f64[3.14159 -3.14159 0 -0]"});
}

static void A16_integers_add_and_multiply_up_to_their_result(void **state)
{
    (void)state;
    RIGHT({"add.Tensor(i8[100], i8[100])", "i8[-56]"}, {"prod(i32[1048576 1048576])", "i64(1099511627776)"},
          {"cumsum(i32[2147483647 1], 0, dtype=dtype:i32)", "i32[2147483647 -2147483648]"});
}

static void A16_seventy_thousand_halves(void **state)
{
    (void)state;
    RIGHT({"ones([70000], dtype=dtype:bf16); sum(%1); _to_copy(%2, dtype=dtype:f32)", "f32(70144)"},
          {"ones([70000], dtype=dtype:f16); sum(%1)", "f16(inf)"});
}

static void A16_nothing_beside_something(void **state)
{
    (void)state;
    RIGHT({"mm(f32[2x0:], f32[0x3:])", "f32[2x3: 0 0 0 0 0 0]"}, {"softmax.int(f32[2x0:], 1)", "f32[2x0:]"},
          {"std(f32[0:])", "f32(nan)"}, {"cat([f32[0:], f32[2x3: 1 2 3 4 5 6]], 0)", "f32[2x3: 1 2 3 4 5 6]"},
          {"zeros([0, 1, 5, 5]); ones([4, 1, 3, 3]); conv2d(%1, %2); sum.dim_IntList(%3, [0])",
           "f32[4x3x3: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]"});
}

static void A16_a_bias_times_zero_is_not_read(void **state)
{
    (void)state;
    RIGHT({"addmm(f32[1x1: nan], f32[1x2: 1 1], f32[2x1: 1 1], beta=0)", "f32[1x1: 2]"},
          {"baddbmm(f32[1x1x1: nan], f32[1x1x1: 1], f32[1x1x1: 1], beta=0)", "f32[1x1x1: 1]"});
}

static void A16_maxima_of_windows(void **state)
{
    (void)state;
    RIGHT({"max_pool2d_with_indices(f32[1x1x2x2: -5 -6 -7 -8], [3], [3], [1])", "f32[1x1x1x1: -5] | i64[1x1x1x1: 0]"},
          {"max_pool2d_with_indices(f32[1x1x1x3: 1 nan 3], [1, 3])", "f32[1x1x1x1: nan] | i64[1x1x1x1: 1]"},
          {"max_pool2d_with_indices(f32[1x1x1x3: 3 1 3], [1, 3])", "f32[1x1x1x1: 3] | i64[1x1x1x1: 0]"});
}

static void A16_losses_and_classes_out_of_range(void **state)
{
    (void)state;
    RIGHT({"cross_entropy_loss(f32[1x2: 1 2], i64[-100])", "f32(nan)"},
          {"nll_loss(f32[1x2: 1 2], i64[2])", "OUT_OF_RANGE: ..."}, {"one_hot(i64[3], 3)", "OUT_OF_RANGE: ..."},
          {"one_hot(i64[1], 3)", "i64[1x3: 0 1 0]"},
          {"alias(f32[1]); expand(%1, [3]); add_.Scalar(%2, 1)", "INVALID_ARGUMENT: ..."},
          {"slice.Tensor(f32[1 2 3], 0, None, None, -1)", "INVALID_ARGUMENT: ..."});
}

static void A16_activations_pass_nan_on(void **state)
{
    (void)state;
    RIGHT({"hardtanh(f32[nan 2])", "f32[nan 1]"}, {"relu6(f32[nan 7])", "f32[nan 6]"},
          {"hardswish(f32[nan -inf])", "f32[nan nan]"},
          {"softplus(f32[20 21 100])", "f32[20 21 100]"}, {"median(f32[1 nan 3])", "f32(nan)"},
          {"nanmedian(f32[1 nan 3])", "f32(1)"}, {"linspace(0, 10, 4, dtype=dtype:i32)", "i32[0 3 6 10]"});
}

static void A16_a_transposed_convolution_in_three_dimensions(void **state)
{
    (void)state;
    RIGHT({"ones([1, 1, 1, 4, 4]); ones([1, 1, 1, 4, 4]); conv_transpose3d.input(%1, %2, None, [1, 4, 4], [0, 2, 2]); "
           "sum.dim_IntList(%3, [0, 1, 2]); sum.dim_IntList(%4, [0])", "f32[12 12 12 12 12 12 12 12 12 12 12 12]"});
}

static void A16_means_scattered_with_what_was_there(void **state)
{
    (void)state;
    RIGHT({"scatter_reduce.two(f32[10 10 10], 0, i64[0 0 2], f32[1 2 4], 'mean')", "f32[4.33333 10 7]"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(A070_negative_indices_wrap_in_subscripts_alone), T(A072_a_scattered_reduction_refuses_negative_indices),
        T(A074_a_selection_out_of_range_is_refused_from_sizes), T(A076_values_are_read_before_the_first_store),
        T(A078_a_write_does_not_feed_its_own_source), T(A080_a_scaled_sum_leaves_its_source_alone),
        T(A082_a_sum_over_all_but_one_dimension_fits_its_buffer), T(A084_equal_targets_of_a_scatter_add_up),
        T(A086_a_scan_knows_its_length_at_the_call), T(A088_an_average_divides_by_its_window_inside_the_padding),
        T(A090_an_average_of_one_element), T(A092_a_transposed_convolution_knows_its_strides),
        T(A094_an_output_padding_as_large_as_the_stride_is_refused), T(A096_an_image_without_a_batch_is_convolved),
        T(A098_one_pixel_is_the_middle), T(A100_a_line_between_two_pixels_is_exact),
        T(A102_adaptive_windows_are_never_empty), T(A104_a_scan_of_a_number_is_the_number),
        T(A106_reductions_of_nothing), T(A108_no_address_is_formed_from_nothing),
        T(A110_strides_of_single_rows_are_seen), T(A112_explicit_strides_come_out_as_they_are),
        T(A114_shuffled_channels_keep_their_format), T(A16_quotients_of_integers_and_floats),
        T(A16_rounding_signs_and_shifts), T(A16_integers_add_and_multiply_up_to_their_result),
        T(A16_seventy_thousand_halves), T(A16_nothing_beside_something), T(A16_a_bias_times_zero_is_not_read),
        T(A16_maxima_of_windows), T(A16_losses_and_classes_out_of_range), T(A16_activations_pass_nan_on),
        T(A16_a_transposed_convolution_in_three_dimensions), T(A16_means_scattered_with_what_was_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
