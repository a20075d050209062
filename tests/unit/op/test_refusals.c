/* What views, joins and factories refuse: each error names the operator and the values, and nothing is left behind. */
#include "tests/lib/op_world.h"

static bp_tensor *m; /* f32[2, 3] of 1 to 6 */

static int begin(void **state)
{
    m = op_world_begin(state) == 0 ? op_world_six() : NULL;
    return m ? 0 : -1;
}

/* The expression gives nothing, with an error of this code that holds this text. */
#define REFUSED(code, text, ...)                          \
    do {                                                  \
        assert_null(__VA_ARGS__);                         \
        if (bp_error(c) != (code))                        \
            print_error("%s\n", bp_error_text(c));        \
        assert_int_equal(bp_error(c), (code));            \
        assert_contains(bp_error_message(c), (text));     \
        bp_error_clear(c);                                \
    } while (0)
#define WRONG(text, ...) REFUSED(BP_INVALID_ARGUMENT, text, __VA_ARGS__)

static void dimensions_out_of_range_are_named(void **state)
{
    (void)state;
    bp_tensor *zero = bp_zeros(c, BP_NO_DIMS);
    WRONG("transpose.int: argument \"dim1\" is 2, expected a dimension from -2 to 1", bp_transpose(c, m, 0, 2));
    WRONG("unsqueeze: argument \"dim\" is -4", bp_unsqueeze(c, m, -4));
    WRONG("select.int: index 3 is out of range for dimension 1 of size 3", bp_select(c, m, 1, 3));
    WRONG("a tensor of no dimensions has nothing to select", bp_select(c, zero, 0, 0));
    WRONG("a tensor of no dimensions cannot be sliced", bp_slice(c, zero, 0));
    WRONG("slice.Tensor: step 0 is not positive", bp_slice(c, m, 0, .step = BP_SCALAR(0)));
    WRONG("start 2 and length 2 exceed dimension 1 of size 3", bp_narrow(c, m, 1, 2, 2));
    WRONG("dimension 0 occurs twice in \"dims\"", bp_permute(c, m, BP_DIMS(0, 0)));
    WRONG("1 dimensions for a tensor of rank 2", bp_permute(c, m, BP_DIMS(0)));
    WRONG("\"dim1\" and \"dim2\" are both 1", bp_diagonal(c, m, .dim1 = 1, .dim2 = BP_SCALAR(1)));
    WRONG("windows of 4 by steps of 1", bp_unfold(c, m, 1, 4, 1));
    WRONG("occurs twice in \"dims\"", bp_flip(c, m, BP_DIMS(1, -1)));
}

static void shapes_that_do_not_fit_are_named(void **state)
{
    (void)state;
    bp_tensor *t = bp_transpose(c, m, 0, 1);
    WRONG("shape [4, -1] does not hold 6 elements", bp_reshape(c, m, BP_DIMS(4, -1)));
    WRONG("two sizes are -1", bp_reshape(c, m, BP_DIMS(-1, -1)));
    WRONG("its -1 could be any size", bp_reshape(c, bp_zeros(c, BP_DIMS(0)), BP_DIMS(0, -1)));
    WRONG("view: no view of f32[3, 2], as it lies in memory, has shape [6]", bp_view_default(c, t, BP_DIMS(6)));
    WRONG("of sizes [2, 3] cannot be expanded to [2, 4]", bp_expand(c, m, BP_DIMS(2, 4)));
    WRONG("size -1 of dimension 0, which the tensor does not have", bp_expand(c, m, BP_DIMS(-1, 2, 3)));
    WRONG("tensor 1 has size 3 in dimension 0, the first has 2", bp_cat(c, BP_TENSORS(m, t), 1));
    WRONG("tensor 1 has 1 dimensions, the first has 2", bp_cat(c, BP_TENSORS(m, bp_zeros(c, BP_DIMS(3)))));
    WRONG("tensor 0 has no dimensions", bp_cat(c, BP_TENSORS(bp_zeros(c, BP_NO_DIMS))));
    WRONG("argument \"tensors\" is an empty list", bp_stack(c, BP_NO_TENSORS));
    WRONG("adds up to 2, and dimension 1 has 3", bp_split_with_sizes(c, m, BP_DIMS(1, 1), 1).at);
    WRONG("takes more than there is from dimension 1", bp_constant_pad_nd(c, m, BP_DIMS(-2, -2)));
    WRONG("1 repeats for a tensor of rank 2", bp_repeat(c, m, BP_DIMS(2)));
    WRONG("a view with storage offset 0 needs", bp_as_strided(c, m, BP_DIMS(3, 3), BP_DIMS(3, 1)));
}

static void factories_check_their_numbers(void **state)
{
    (void)state;
    WRONG("size -1 of dimension 0 is negative", bp_zeros(c, BP_DIMS(-1)));
    WRONG("a step of 1 does not lead from 3 to 0", bp_arange_start(c, 3, 0));
    WRONG("step must not be zero", bp_arange_start_step(c, 0, 3, .step = BP_SCALAR(0)));
    WRONG("argument \"steps\" is -1", bp_linspace(c, 0, 1, -1));
    WRONG("cannot be converted to uint8 without overflow", bp_full(c, BP_DIMS(2), 300, .dtype = BP_U8));
    WRONG("2 sizes and 1 strides", bp_empty_strided(c, BP_DIMS(2, 2), BP_DIMS(1)));
    WRONG("is no order of 2 dimensions", bp_empty_permuted(c, BP_DIMS(2, 2), BP_DIMS(0, 0)));
    REFUSED(BP_UNIMPLEMENTED, "only the CPU", bp_zeros(c, BP_DIMS(2), .device = (bp_device){BP_CUDA, 0}));
    assert_int_equal(bp_tensor_numel(bp_arange_start_step(c, INT64_MIN, INT64_MAX, BP_SCALAR(INT64_MAX))), 3);
    WRONG("too large", bp_zeros(c, BP_DIMS(INT64_MAX, 4)));
}

static void what_is_not_there_says_so(void **state)
{
    (void)state;
    assert_ptr_equal(bp_dropout(c, m, 0.5, 0), m);
    WRONG("argument \"p\"", bp_dropout(c, m, 2, 1));
    REFUSED(BP_UNIMPLEMENTED, "views that conjugate", bp_mh(c, bp_to(c, m, BP_C64)));
    WRONG("2 numbers for a tensor of 2 dimensions", bp_pad(c, m, BP_DIMS(1, 1), .mode = "circular"));
    WRONG("there is no mode \"mirror\" with 2 pads", bp_pad(c, m, BP_DIMS(1, 1), .mode = "mirror"));
}

static void facts_and_values_are_numbers(void **state)
{
    (void)state;
    assert_int_equal(bp_sym_size(c, m, -1).value, 3);
    assert_int_equal(bp_sym_stride(c, bp_t(c, m), 0).value, 1);
    assert_int_equal(bp_sym_storage_offset(c, bp_select(c, m, 0, 1)).value, 3);
    assert_false(bp_sym_is_contiguous(c, bp_t(c, m), BP_CONTIGUOUS));
    assert_true(bp_item(c, bp_sum(c, m)).v.f[0] == 21);
    assert_true(bp_equal(c, m, bp_clone(c, m)));
    assert_false(bp_equal(c, m, bp_t(c, m)));
    assert_int_equal(bp_private_assert_tensor_metadata(c, m, .dtype = BP_F32), BP_OK);
    assert_int_equal(bp_private_assert_tensor_metadata(c, m, .size = BP_DIMS(3, 2)), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_message(c), "the tensor's sizes are [2, 3]");
    bp_error_clear(c);
    assert_int_equal(bp_item(c, m).kind, BP_SCALAR_UNSET);
    assert_contains(bp_error_message(c), "a tensor of 6 elements has no one value");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(dimensions_out_of_range_are_named, begin, op_world_end),
        cmocka_unit_test_setup_teardown(shapes_that_do_not_fit_are_named, begin, op_world_end),
        cmocka_unit_test_setup_teardown(factories_check_their_numbers, begin, op_world_end),
        cmocka_unit_test_setup_teardown(what_is_not_there_says_so, begin, op_world_end),
        cmocka_unit_test_setup_teardown(facts_and_values_are_numbers, begin, op_world_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
