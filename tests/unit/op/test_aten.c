/* The operators as users write them: macros that pick overloads, named arguments, lists, several results, errors. */
#include "tests/lib/op_world.h"

static bp_tensor *floats(int64_t rows, int64_t columns, const float *data)
{
    bp_tensor *t = bp_tensor_from(c, BP_F32, 2, (const int64_t[]){rows, columns}, data);
    assert_non_null(t);
    return t;
}

static double item(bp_tensor *t, int i)
{
    double out[64];
    bp_tensor *d = bp_to(c, bp_contiguous(c, t), BP_F64);
    assert_int_equal(bp_tensor_read(c, d, out, (size_t)bp_tensor_numel(d) * sizeof *out), BP_OK);
    return out[i];
}

static const float SIX[] = {1, 2, 3, 4, 5, 6};

static void a_number_picks_its_overload_and_promotes_by_its_kind(void **state)
{
    (void)state;
    bp_tensor *i = bp_to(c, floats(2, 3, SIX), BP_I64);
    assert_int_equal(bp_tensor_dtype(bp_add(c, i, 1)), BP_I64);
    assert_int_equal(bp_tensor_dtype(bp_add(c, i, 1.0)), BP_F32);
    assert_int_equal(bp_tensor_dtype(bp_add(c, i, 1.0f)), BP_F32);
    assert_int_equal(bp_tensor_dtype(bp_add(c, i, BP_SCALAR(2.5))), BP_F32);
    assert_int_equal(bp_tensor_dtype(bp_add(c, i, (_Bool)1)), BP_I64);
    assert_int_equal(bp_tensor_dtype(bp_add(c, i, bp_size(c, i, 0))), BP_I64);
    assert_int_equal(bp_tensor_dtype(bp_lt(c, i, 0)), BP_BOOL);
    assert_true(item(bp_add(c, i, bp_size(c, i, 1)), 0) == 4);
    assert_true(item(bp_mul(c, i, -1), 5) == -6);
    assert_true(item(bp_pow(c, 2, i), 2) == 8);
    assert_true(item(bp_pow(c, i, i), 1) == 4);
}

static void what_has_a_default_is_given_by_name_or_in_order(void **state)
{
    (void)state;
    bp_tensor *t = floats(2, 3, SIX);
    assert_true(item(bp_add(c, t, t, .alpha = bp_scalar_int(2)), 1) == 6);
    assert_true(item(bp_sum(c, t), 0) == 21);
    assert_true(item(bp_sum(c, t, BP_DIMS(1)), 1) == 15);
    bp_tensor *kept = bp_sum(c, t, .dim = BP_DIMS(0), .keepdim = 1);
    assert_int_equal(bp_tensor_rank(kept), 2);
    assert_true(item(kept, 2) == 9);
    assert_int_equal(bp_tensor_rank(bp_flatten(c, t)), 1);
    assert_int_equal(bp_tensor_rank(bp_flatten(c, t, .end_dim = BP_SCALAR(0))), 2);
    assert_int_equal(bp_tensor_dtype(bp_full(c, BP_DIMS(2), 1.5, .dtype = BP_F64)), BP_F64);
    assert_int_equal(bp_tensor_size(bp_slice(c, t, 1, .start = BP_SCALAR(1), .end = BP_SCALAR(-1)), 1), 1);
    assert_true(item(bp_div(c, t, 4, .rounding_mode = "floor"), 5) == 1);
    assert_true(item(bp_clamp(c, t, .max = BP_SCALAR(2)), 5) == 2);
}

static void lists_take_integers_and_sizes(void **state)
{
    (void)state;
    bp_tensor *t = floats(2, 3, SIX);
    bp_tensor *r = bp_reshape(c, t, BP_DIMS(bp_size(c, t, 1), -1));
    assert_int_equal(bp_tensor_size(r, 0), 3);
    assert_int_equal(bp_tensor_size(r, 1), 2);
    assert_int_equal(bp_tensor_rank(bp_reshape(c, floats(1, 1, SIX), BP_NO_DIMS)), 0);
    assert_int_equal(bp_tensor_size(bp_cat(c, BP_TENSORS(t, t, t), 1), 1), 9);
    assert_int_equal(bp_tensor_size(bp_cat(c, BP_TENSORS(t, t)), 0), 4);
    bp_tensor *index = bp_arange(c, 2);
    assert_int_equal(bp_tensor_size(bp_index(c, t, BP_TENSORS(NULL, index)), 1), 2);
    int64_t deep[16] = {0};
    for (int i = 0; i < 16; i++)
        deep[i] = 1;
    bp_tensor *one = bp_tensor_from(c, BP_F32, 16, deep, SIX);
    assert_int_equal(bp_tensor_rank(bp_view_default(c, one, BP_DIMS(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1))),
                     16);
}

static void several_results_come_as_arrays_and_lists(void **state)
{
    (void)state;
    bp_tensor *t = floats(2, 3, SIX);
    bp_tensor2 r = bp_max_dim(c, t, 1);
    assert_true(item(r.at[0], 1) == 6 && item(r.at[1], 1) == 2);
    bp_tensors parts = bp_split(c, t, 2, .dim = 1);
    assert_int_equal(parts.n, 2);
    assert_int_equal(bp_tensor_size(parts.at[1], 1), 1);
    assert_true(bp_tensor_same_storage(parts.at[1], t));
    bp_tensors many = bp_unbind(c, bp_arange(c, 40));
    assert_int_equal(many.n, 40);
    assert_true(item(many.at[39], 0) == 39);
}

static void an_operator_that_gives_its_argument_gives_that_object(void **state)
{
    (void)state;
    bp_tensor *t = floats(2, 3, SIX);
    assert_ptr_equal(bp_contiguous(c, t), t);
    assert_ptr_equal(bp_add_inplace(c, t, 1), t);
    assert_true(item(t, 0) == 2);
}

static void an_error_names_operator_argument_file_and_line(void **state)
{
    (void)state;
    bp_tensor *t = floats(2, 3, SIX), *none = NULL;
    int line = __LINE__ + 1;
    assert_null(bp_add(c, bp_mul(c, t, 2), none));
    char site[80];
    snprintf(site, sizeof site, "test_aten.c:%d)", line);
    assert_string_equal(bp_error_message(c), "add.Tensor: argument \"other\" is NULL, expected a tensor");
    assert_contains(bp_error_text(c), "calling aten.add.Tensor (");
    assert_contains(bp_error_text(c), site);
    assert_null(bp_neg(c, t));
    assert_int_equal(bp_split(c, t, 1).n, 0);
    assert_null(bp_max_dim(c, t, 0).at[1]);
    assert_string_equal(bp_error_message(c), "add.Tensor: argument \"other\" is NULL, expected a tensor");
}

static void arguments_that_no_overload_takes_are_an_error(void **state)
{
    (void)state;
    bp_tensor *t = floats(2, 3, SIX);
    assert_null(bp_sum(c, t, .keepdim = 1));
    assert_contains(bp_error_message(c), "sum: no overload takes these arguments");
    assert_contains(bp_error_text(c), "test_aten.c:");
}

static void in_place_results_that_do_not_fit_are_refused_as_eager_refuses(void **state)
{
    (void)state;
    bp_tensor *i = bp_to(c, floats(2, 3, SIX), BP_I64);
    assert_null(bp_div_inplace(c, i, 2));
    assert_contains(bp_error_message(c), "result type float32 can't be cast to the desired output type int64");
    bp_error_clear(c);
    bp_tensor *row = bp_clone(c, bp_select(c, i, 0, 0));
    assert_null(bp_add_inplace(c, row, i));
    assert_contains(bp_error_message(c), "output with shape [3] doesn't match the broadcast shape [2, 3]");
    bp_error_clear(c);
    assert_ptr_equal(bp_aten_add_out(c, i, i, (bp_scalar){0}, row), row);
    assert_int_equal(bp_tensor_rank(row), 2);
    bp_tensor *out = bp_empty(c, BP_DIMS(0));
    assert_ptr_equal(bp_aten_add_out(c, i, i, (bp_scalar){0}, out), out);
    assert_int_equal(bp_tensor_rank(out), 2);
    assert_true(item(out, 5) == 12);
}

static void metadata_change_in_place_and_storages_grow(void **state)
{
    (void)state;
    bp_tensor *t = floats(2, 3, SIX);
    bp_tensor *wide = bp_unsqueeze_inplace(c, t, 0);
    assert_ptr_equal(wide, t);
    assert_int_equal(bp_tensor_rank(t), 3);
    bp_transpose_inplace(c, t, 1, 2);
    assert_true(item(t, 1) == 4);
    bp_squeeze_inplace(c, t);
    assert_int_equal(bp_tensor_rank(t), 2);
    bp_resize_inplace(c, t, BP_DIMS(4, 5));
    assert_int_equal(bp_tensor_numel(t), 20);
    assert_true(item(t, 5) == 6);
    bp_fill_inplace(c, t, 7);
    assert_true(item(t, 19) == 7);
    assert_int_equal(bp_error(c), BP_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OP_WORLD_TEST(a_number_picks_its_overload_and_promotes_by_its_kind),
        OP_WORLD_TEST(what_has_a_default_is_given_by_name_or_in_order),
        OP_WORLD_TEST(lists_take_integers_and_sizes),
        OP_WORLD_TEST(several_results_come_as_arrays_and_lists),
        OP_WORLD_TEST(an_operator_that_gives_its_argument_gives_that_object),
        OP_WORLD_TEST(an_error_names_operator_argument_file_and_line),
        OP_WORLD_TEST(arguments_that_no_overload_takes_are_an_error),
        OP_WORLD_TEST(in_place_results_that_do_not_fit_are_refused_as_eager_refuses),
        OP_WORLD_TEST(metadata_change_in_place_and_storages_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
