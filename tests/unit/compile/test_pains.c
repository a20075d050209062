/* What users of graph compilers hit in calls, guards and breaks; the numbers are those of the collection of bug reports
 *. Each test has the right answer of its report. */
#include "tests/unit/compile/fixture.h"

static void write_then_add(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_arg(f, 1, "y");
    bp_mul_inplace(c, x, 2);
    bp_return(f, bp_add(c, x, y));
}

static void A116_inputs_that_overlap_later_are_another_entry(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, write_then_add);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1, 1, 1, 1), FLOATS(f, 1, 1, 1, 1)).at[0], 3, 3, 3, 3);
    bp_tensor *b = FLOATS(f, 1, 1, 1, 1, 1, 1, 1, 1);
    bp_tensor *x = bp_slice(f->c, b, .end = BP_SCALAR(4));
    bp_tensor *y = bp_slice(f->c, b, .start = BP_SCALAR(2), .end = BP_SCALAR(6));
    EXPECT_FLOATS(f, CALL(f, g, x, y).at[0], 4, 4, 3, 3);
    EXPECT_FLOATS(f, b, 2, 2, 2, 2, 1, 1, 1, 1);
    bp_callable_unref(g);
}

static void through_a_gap(bp_ctx *c, bp_frame *f)
{
    bp_tensor *v = bp_unfold(c, bp_arg(f, 0, "x"), 1, 1, 5);
    bp_add_inplace(c, v, v);
}

static void A120_a_write_through_a_view_with_gaps_leaves_the_rest(void **state)
{
    fixture *f = *state;
    const int64_t sizes[2] = {2, 6};
    const float v[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    bp_callable *g = COMPILE(f, through_a_gap);
    bp_tensor *x = bp_tensor_from(f->c, BP_F32, 2, sizes, v);
    CALL(f, g, x);
    EXPECT_FLOATS(f, x, 2, 2, 3, 4, 5, 12, 14, 8, 9, 10, 11, 24);
    bp_callable_unref(g);
}

static void same_twice(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *a = bp_add(c, x, 1);
    int on = bp_set_grad_enabled(c, 0);
    bp_tensor *b = bp_add(c, x, 1);
    bp_set_grad_enabled(c, on);
    bp_return(f, a);
    bp_return(f, b);
}

static void A124_equal_values_stay_two_tensors_with_grads_of_their_own(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, same_twice);
    for (int i = 0; i < 2; i++) {
        bp_tensor *x = FLOATS(f, 1, 2);
        bp_tensor_set_requires_grad(f->c, x, 1);
        bp_outputs out = CALL(f, g, x);
        assert_int_equal(bp_tensor_requires_grad(out.at[0]), 1);
        assert_int_equal(bp_tensor_requires_grad(out.at[1]), 0);
        assert_int_equal(bp_tensor_same_storage(out.at[0], out.at[1]), 0);
        bp_add_inplace(f->c, out.at[1], 5);
        EXPECT_FLOATS(f, out.at[0], 2, 3);
    }
    bp_callable_unref(g);
}

static void both_ends(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, bp_slice(c, x, .end = BP_SCALAR(-1)));
    bp_return(f, bp_slice(c, x, .start = BP_SCALAR(1)));
}

static void A126_slices_of_an_input_keep_its_memory_and_offset(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, both_ends);
    bp_tensor *base = FLOATS(f, 9, 1, 2, 3), *x = bp_slice(f->c, base, .start = BP_SCALAR(1)); /* at four bytes */
    for (int i = 0; i < 2; i++) {
        bp_outputs out = CALL(f, g, x);
        EXPECT_FLOATS(f, out.at[0], 1, 2);
        EXPECT_FLOATS(f, out.at[1], 2, 3);
        assert_int_equal(bp_tensor_offset(out.at[1]), 2);
        assert_int_equal(bp_tensor_same_storage(out.at[1], base), 1);
    }
    bp_callable_unref(g);
}

static void shifted_then_back(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_copy_inplace(c, x, bp_add(c, bp_roll(c, x, BP_DIMS(1)), x));
}

static void A132_a_trailing_copy_writes_after_every_read(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, shifted_then_back);
    for (int i = 0; i < 2; i++) {
        bp_tensor *x = FLOATS(f, 1, 2, 4);
        CALL(f, g, x);
        EXPECT_FLOATS(f, x, 5, 3, 6);
    }
    bp_callable_unref(g);
}

static int rebound;

static void by_a_global(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, rebound ? bp_cos(c, x) : bp_sin(c, x));
}

static void A138_a_global_that_changes_is_found_by_check_capture(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, by_a_global);
    bp_set_config(f->c, "check_capture", "always");
    rebound = 0;
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 0)).at[0], 0);
    rebound = 1;
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 0)).at[0], 1);
    assert_true(said(f, "is impure: operation 0 was"));
    rebound = 0;
    bp_callable_unref(g);
}

static void plus_one(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_add(c, bp_arg(f, 0, "x"), 1));
}

static void A146_a_limit_is_told_once_and_calls_go_on(void **state)
{
    fixture *f = *state;
    assert_int_equal(bp_set_config(f->c, "automatic_dynamic_shapes", "no"), BP_OK);
    bp_callable *g = COMPILE(f, plus_one);
    for (int64_t n = 1; n < 40; n++) {
        bp_tensor *x = bp_tensor_from(f->c, BP_F32, 1, &n, NULL);
        assert_float_equal(at(f, CALL(f, g, x).at[0], n - 1), 1, 0);
    }
    const char *told = strstr(buf_text(&f->log), "hit config.recompile_limit (8)");
    assert_non_null(told);
    assert_null(strstr(told + 1, "hit config.recompile_limit"));
    bp_callable_unref(g);
}

static void A148_a_mode_that_changed_is_named(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, plus_one);
    buf text = {0};
    CALL(f, g, FLOATS(f, 1));
    bp_set_grad_enabled(f->c, 0);
    CALL(f, g, FLOATS(f, 1));
    bp_set_grad_enabled(f->c, 1);
    bp_print_explain(f->c, g, fixture_append, &text);
    assert_contains(buf_text(&text), "grad_mode");
    buf_fini(&text);
    bp_callable_unref(g);
}

static void A150_each_context_has_the_modes_of_its_own(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, plus_one);
    bp_ctx *other = bp_ctx_new(f->rt);
    bp_set_grad_enabled(other, 0);
    for (int i = 0; i < 3; i++) {
        bp_tensor *x = FLOATS(f, 1);
        bp_tensor_set_requires_grad(f->c, x, 1);
        assert_int_equal(bp_tensor_requires_grad(bp_call1(f->c, g, 1, &x)), 1);
        assert_int_equal(bp_tensor_requires_grad(bp_call1(other, g, 1, &x)), 0);
    }
    assert_int_equal(stats(f, g).entries, 2);
    bp_ctx_destroy(other);
    bp_callable_unref(g);
}

static void seeds_and_draws(bp_ctx *c, bp_frame *f)
{
    bp_manual_seed(c, 7);
    bp_return(f, bp_add(c, bp_rand(c, BP_DIMS(3)), bp_arg(f, 0, "x")));
}

static void A152_a_seed_inside_counts_at_each_call(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, seeds_and_draws);
    bp_manual_seed(f->c, 7);
    bp_tensor *want = bp_rand(f->c, BP_DIMS(3));
    bp_manual_seed(f->c, 1);
    for (int i = 0; i < 3; i++) {
        bp_tensor *got = CALL(f, g, FLOATS(f, 0, 0, 0)).at[0];
        for (int64_t j = 0; j < 3; j++)
            assert_float_equal(at(f, got, j), at(f, want, j), 0);
    }
    bp_callable_unref(g);
}

static void draws(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_add(c, bp_rand(c, BP_DIMS(3)), bp_arg(f, 0, "x")));
}

static void A190_the_same_seed_draws_what_eager_draws(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, draws);
    bp_tensor *zero = FLOATS(f, 0, 0, 0);
    for (int i = 0; i < 3; i++) {
        bp_manual_seed(f->c, 3);
        bp_tensor *got = CALL(f, g, zero).at[0];
        bp_manual_seed(f->c, 3);
        bp_tensor *want = bp_rand(f->c, BP_DIMS(3));
        for (int64_t j = 0; j < 3; j++)
            assert_float_equal(at(f, got, j), at(f, want, j), 0);
    }
    bp_callable_unref(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        T(A116_inputs_that_overlap_later_are_another_entry),
        T(A120_a_write_through_a_view_with_gaps_leaves_the_rest),
        T(A124_equal_values_stay_two_tensors_with_grads_of_their_own),
        T(A126_slices_of_an_input_keep_its_memory_and_offset),
        T(A132_a_trailing_copy_writes_after_every_read),
        T(A138_a_global_that_changes_is_found_by_check_capture),
        T(A146_a_limit_is_told_once_and_calls_go_on),
        T(A148_a_mode_that_changed_is_named),
        T(A150_each_context_has_the_modes_of_its_own),
        T(A152_a_seed_inside_counts_at_each_call),
        T(A190_the_same_seed_draws_what_eager_draws),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
