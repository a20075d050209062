/* Normalizations and softmax: masked and infinite lines, constant and huge groups, running statistics, refusals. */
#include "tests/lib/op_world.h"

static void softmax_of_masked_and_infinite_lines_is_nan(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"softmax.int(f32[2x2: 1 1 -inf -inf], 1)", "f32[2x2: 0.5 0.5 nan nan]"},
        {"softmax.int(f32[inf 1 2], 0)", "f32[nan nan nan]"},
        {"softmax.int(f32[nan 1], -1)", "f32[nan nan]"},
        {"softmax.int(f32[-inf 0], 0)", "f32[0 1]"},
        {"log_softmax.int(f32[-inf -inf], 0)", "f32[nan nan]"},
        {"log_softmax.int(f32[0 0], 0)", "f32[-0.693147 -0.693147]"},
        {"_safe_softmax(f32[3x2: -inf -inf 1 nan 0 0], 1)", "f32[3x2: 0 0 nan nan 0.5 0.5]"},
        {"softmax.int(f32[1000 1000], 0)", "f32[0.5 0.5]"},
        {"softmax.int(f32[2x0:], 1)", "f32[2x0:]"},
        {"softmax.int(f32(3), 0)", "f32(1)"},
        {"softmax.int(i64[0 0], 0, dtype=dtype:f64)", "f64[0.5 0.5]"},
        {"softmax.int(i64[0 0], 0)", "INVALID_ARGUMENT: softmax.int: expected a float type, got int64..."},
        {"_softmax(f16[0 0], 0, True)", "INVALID_ARGUMENT: _softmax: argument \"half_to_float\"..."},
        {"softmax.int(f32[1 2], 1)", "INVALID_ARGUMENT: softmax.int: argument \"dim\" is 1..."},
    };
    OP_TEXT_CHECK(c, cases);
}

static void softmax_of_halves_keeps_two_roundings(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"_log_softmax(bf16[0 -5.34375], 0, False)", "bf16[-0.00778198 -5.34375]"},
        {"_log_softmax(bf16[2x1: 0 -5.34375], 0, False)", "bf16[2x1: -0.00476074 -5.34375]"},
        {"_log_softmax(f32[0 -5.34375], 0, False)", "f32[-0.00476654 -5.34852]"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void constant_groups_give_the_bias(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"group_norm(f32[1x2x2: 1000.1 1000.1 0.3 0.3], 2, f32[2 3], f32[0.25 -0.5])",
         "f32[1x2x2: 0.25 0.25 -0.5 -0.5]"},
        {"layer_norm(f32[3: 7 7 7], [3], None, f32[1 2 3])", "f32[1 2 3]"},
        {"native_layer_norm(f32[2x2: 1 3 2 2], [2], None, None, 0.0)",
         "f32[2x2: -1 1 nan nan] | f32[2x1: 2 2] | f32[2x1: 1 inf]"},
        {"layer_norm(f32[3: 8.5e37 9.5e37 7.5e37], [3])", "f32[0 1.22474 -1.22474]"},
        {"native_group_norm(f32[1x2x1: 1 3], f32[2 2], None, 1, 2, 1, 1, 0.0)",
         "f32[1x2x1: -2 2] | f32[1x1: 2] | f32[1x1: 1]"},
        {"rms_norm(f32[3 4], [2], f32[1 2], 0.0)", "f32[0.848528 2.26274]"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void batches_are_measured_or_remembered(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"native_batch_norm(f32[2x2: 1 0 3 0], None, None, None, None, True, 0.1, 0.0)",
         "f32[2x2: -1 0 1 0] | f32[2 0] | f32[1 0]"},
        {"native_batch_norm(f32[1x2: 3 5], f32[2 2], f32[1 1], f32[1 1], f32[4 1], False, 0.1, 0.0)",
         "f32[1x2: 3 9] | f32[] | f32[]"},
        {"_native_batch_norm_legit.no_stats(f32[2x1: 1 3], None, None, True, 0.1, 0.0)",
         "f32[2x1: -1 1] | f32[2] | f32[1]"},
        {"_native_batch_norm_legit_functional(f32[2x1: 1 3], None, None, f32[0], f32[1], True, 0.5, 0.0)",
         "f32[2x1: -1 1] | f32[2] | f32[1] | f32[1] | f32[1.5]"},
        {"_batch_norm_with_update(f32[2x1: 1 3], None, None, f32[0], f32[1], 0.5, 0.0)",
         "f32[2x1: -1 1] | f32[2] | f32[1] | u8[]"},
        {"instance_norm(f32[2x1x2: 1 3 5 9], None, None, None, None, True, 0.1, 0.0, False)", "f32[2x1x2: -1 1 -1 1]"},
        {"batch_norm(f32[0x2:], None, None, None, None, True, 0.1, 0.0, False)", "f32[0x2:]"},
        {"native_batch_norm(f32[2x1: 1 3], None, None, None, None, False, 0.1, 0.0)",
         "INVALID_ARGUMENT: native_batch_norm: running statistics are needed..."},
        {"native_batch_norm(f32[0x2:], None, None, None, None, True, 0.1, 0.0)",
         "INVALID_ARGUMENT: native_batch_norm: the input has no element..."},
        {"native_batch_norm(f32[2x2: 1 2 3 4], f32[1], None, None, None, True, 0.1, 0.0)",
         "INVALID_ARGUMENT: native_batch_norm: argument \"weight\"..."},
        {"layer_norm(f32[2 3], [3])", "INVALID_ARGUMENT: layer_norm: the input does not end with the sizes..."},
        {"layer_norm(f32[2 3], [2], f32[1 2 3])", "INVALID_ARGUMENT: layer_norm: argument \"weight\"..."},
        {"group_norm(f32[1x3: 1 2 3], 2)", "INVALID_ARGUMENT: group_norm: 3 channels do not make 2 groups..."},
    };
    OP_TEXT_CHECK(c, cases);
}

static void gradients_flow_where_the_mask_says(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"_softmax_backward_data(f32[1 0], f32[0.25 0.75], 0, dtype:f32)", "f32[0.1875 -0.1875]"},
        {"_log_softmax_backward_data(f32[1 0], f32[-inf 0], 0, dtype:f32)", "f32[1 -1]"},
        {"native_layer_norm_backward(f32[1x2: 1 0], f32[1x2: 1 3], [2], f32[1x1: 2], f32[1x1: 1], f32[2 2], f32[0 0], "
         "[True, True, True])", "f32[1x2: 0 0] | f32[-1 0] | f32[1 0]"},
        {"native_batch_norm_backward(f32[2x1: 1 0], f32[2x1: 1 3], f32[2], f32[2], f32[4], None, None, False, 0.0, "
         "[True, True, True])", "f32[2x1: 1 0] | f32[-0.5] | f32[1]"},
        {"native_group_norm_backward(f32[1x2: 1 0], f32[1x2: 1 3], f32[1x1: 2], f32[1x1: 1], None, 1, 2, 1, 1, "
         "[True, True, True])", "f32[1x2: 0 0] | f32[-1 0] | f32[1 0]"},
        {"native_batch_norm_backward(f32[2x1: 1 0], f32[2x1: 1 3], None, None, None, None, None, False, 0.0, "
         "[True, True, True])", "INVALID_ARGUMENT: native_batch_norm_backward: argument \"running_mean\" or..."},
    };
    OP_TEXT_CHECK(c, cases);
}

static bp_tensor *floats(uint32_t rank, const int64_t *sizes, const float *data)
{
    bp_tensor *t = bp_tensor_from(c, BP_F32, rank, sizes, data);
    assert_non_null(t);
    return t;
}

static void training_moves_the_running_statistics_and_their_version(void **state)
{
    (void)state;
    bp_scope_begin(c);
    bp_tensor *x = floats(2, (int64_t[]){2, 1}, (float[]){1, 3});
    bp_tensor *mean = floats(1, (int64_t[]){1}, (float[]){0}), *var = floats(1, (int64_t[]){1}, (float[]){1});
    uint64_t version = mean->store->version;
    bp_value args[8] = {value_tensor(x),   value_none(),      value_none(),    value_tensor(mean),
                        value_tensor(var), value_bool(true), value_float(.5), value_float(0)};
    op_call k = {.op = op_by_target("aten._native_batch_norm_legit.default"), .args = args};
    assert_int_equal(op_dispatch(c, &k), BP_OK);
    assert_true(*(float *)tensor_ptr(mean) == 1 && *(float *)tensor_ptr(var) == 1.5);
    assert_true(mean->store->version > version);
    for (uint32_t i = 0; i < k.nout; i++)
        tensor_unref(k.out[i]);
    bp_scope_end(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_of_masked_and_infinite_lines_is_nan),
        cmocka_unit_test(softmax_of_halves_keeps_two_roundings),
        cmocka_unit_test(constant_groups_give_the_bias),
        cmocka_unit_test(batches_are_measured_or_remembered),
        cmocka_unit_test(gradients_flow_where_the_mask_says),
        cmocka_unit_test(training_moves_the_running_statistics_and_their_version),
    };
    return cmocka_run_group_tests_name("norm", tests, op_world_begin, op_world_end);
}
