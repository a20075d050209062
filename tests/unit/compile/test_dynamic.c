/* Sizes that change: what becomes dynamic, what is guarded, what is compiled again. Rows of the contract's table of
 * dynamic shapes have a test that begins with c11, cases of their own tests one that begins with c17. */
#include "tests/unit/compile/dynamic.h"

/* -- automatic ----------------------------------------------------------------------------------------------------- */

static void c11_automatic_dynamic_c17_49_two_sizes_compile_twice_and_others_hit(void **state)
{
    fixture *f = *state;
    const int64_t sizes[] = {2, 3, 5, 7, 1, 0};
    const uint32_t graphs[] = {1, 2, 2, 2, 3, 4};
    bp_callable *g = COMPILE(f, twice);
    for (int i = 0; i < 6; i++) {
        SAME(f, g, twice, RAMP(f, sizes[i]));
        assert_int_equal(stats(f, g).graphs, graphs[i]);
    }
    assert_int_equal(stats(f, g).eager_calls, 0);
    for (int i = 0; i < 6; i++)
        SAME(f, g, twice, RAMP(f, sizes[i]));
    assert_int_equal(stats(f, g).graphs, 4);
    assert_int_equal(stats(f, g).captures, 4);
    bp_callable_unref(g);
}

static void c11_first_compile_is_static(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, twice);
    SAME(f, g, twice, RAMP(f, 4, 3));
    assert_non_null(strstr(guards(f, g), "L['x'].size() == (4, 3)"));
    SAME(f, g, twice, RAMP(f, 5, 3));
    assert_non_null(strstr(guards(f, g), "L['x'].size() == (None, 3)"));
    assert_non_null(strstr(guards(f, g), "2 <= L['x'].size()[0]"));
    bp_callable_unref(g);
}

static void ways(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_tensor *flat = bp_reshape(c, x, BP_DIMS(-1)), *head = bp_slice(c, x, .start = BP_SCALAR(1), .dim = 0);
    bp_return(f, bp_cat(c, BP_TENSORS(flat, flat)));
    bp_return(f, bp_add(c, bp_transpose(c, head, 0, 1), 1));
    bp_dim twofold = bp_dim_mul(c, bp_size(c, x, 0), bp_dim_of(2));
    bp_return(f, bp_expand(c, bp_unsqueeze(c, bp_sum(c, x), 0), BP_DIMS(twofold)));
    bp_return(f, head);
}

static void sizes_flow_through_views_and_results(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, ways);
    for (int64_t n = 4; n < 12; n++)
        SAME(f, g, ways, RAMP(f, n, 3));
    assert_int_equal(stats(f, g).captures, 2);
    assert_int_equal(stats(f, g).eager_calls, 0);
    for (int64_t n = 4; n < 12; n++)
        SAME(f, g, ways, RAMP(f, n, n));
    assert_int_equal(stats(f, g).captures, 3);
    bp_callable_unref(g);
}

static void c17_51_equal_dynamic_sizes_are_guarded_to_be_equal(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, sum_of_two);
    SAME(f, g, sum_of_two, RAMP(f, 3, 1), RAMP(f, 3, 1));
    SAME(f, g, sum_of_two, RAMP(f, 4, 1), RAMP(f, 4, 1));
    SAME(f, g, sum_of_two, RAMP(f, 5, 1), RAMP(f, 5, 1));
    assert_int_equal(stats(f, g).captures, 2);
    assert_non_null(strstr(guards(f, g), "L['x'].size()[0] == L['y'].size()[0]"));
    bp_error_clear(f->c);
    SAME(f, g, sum_of_two, RAMP(f, 5, 1), RAMP(f, 1, 1)); /* broadcast */
    assert_int_equal(stats(f, g).captures, 3);
    bp_callable_unref(g);
}

/* -- questions ----------------------------------------------------------------------------------------------------- */

static void a_question_on_a_size_is_guarded_and_its_answer_recompiles(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, long_or_short);
    for (int64_t n = 3; n < 10; n++)
        SAME(f, g, long_or_short, RAMP(f, n));
    assert_int_equal(stats(f, g).captures, 3); /* 3, then up to 6, then above */
    assert_non_null(strstr(guards(f, g), "L['x'].size()[0] <= 6"));
    for (int64_t n = 3; n < 10; n++)
        SAME(f, g, long_or_short, RAMP(f, n));
    assert_int_equal(stats(f, g).captures, 3);
    bp_callable_unref(g);
}

static void unless_5123(bp_ctx *c, bp_frame *f)
{
    const int64_t not[] = {5, 1, 2, 3};
    bp_tensor *x = bp_arg(f, 0, "x");
    bool same = true;
    for (int64_t d = 0; d < 4 && same; d++)
        same = bp_dim_eq(c, bp_size(c, x, d), not[d]);
    bp_return(f, same ? bp_neg(c, x) : bp_relu(c, x));
}

static void A140_a_negated_conjunction_is_evaluated_on_all_terms(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = table_backend, .dynamic = 1};
    bp_callable *g = bp_compile(f->c, unless_5123, &o);
    SAME(f, g, unless_5123, RAMP(f, 5, 1, 3, 4));
    SAME(f, g, unless_5123, RAMP(f, 5, 1, 2, 3));
    SAME(f, g, unless_5123, RAMP(f, 5, 1, 2, 4));
    SAME(f, g, unless_5123, RAMP(f, 6, 1, 2, 3));
    bp_callable_unref(g);
}

/* -- the order of decisions ---------------------------------------------------------------------------------------- */

static void c11_decision_order_of_options_and_marks(void **state)
{
    fixture *f = *state;
    bp_compile_options on = {.backend_fn = table_backend, .dynamic = 1}, off = on;
    off.dynamic = -1;
    bp_callable *a = bp_compile(f->c, twice, &on), *b = bp_compile(f->c, twice, &off);
    for (int64_t n = 2; n < 6; n++) {
        SAME(f, a, twice, RAMP(f, n));
        SAME(f, b, twice, RAMP(f, n));
    }
    assert_int_equal(stats(f, a).captures, 1);
    assert_int_equal(stats(f, b).captures, 4);
    bp_callable_unref(a);
    bp_callable_unref(b);
}

static void c11_duck_shaping_shares_a_symbol_among_sizes_that_are_not_marked(void **state)
{
    fixture *f = *state;
    bp_compile_options on = {.backend_fn = table_backend, .dynamic = 1};
    bp_callable *g = bp_compile(f->c, twice, &on);
    SAME(f, g, twice, RAMP(f, 4, 4));
    assert_non_null(strstr(guards(f, g), "L['x'].size()[1] == L['x'].size()[0]"));
    SAME(f, g, twice, RAMP(f, 5, 5));
    assert_int_equal(stats(f, g).captures, 1);
    SAME(f, g, twice, RAMP(f, 5, 6));
    assert_int_equal(stats(f, g).captures, 2);
    bp_callable_unref(g);
}

static void c11_mark_dynamic_gives_symbols_of_their_own(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, twice);
    SAME(f, g, twice, marked(f, RAMP(f, 4, 4), -1));
    SAME(f, g, twice, RAMP(f, 5, 6));
    assert_int_equal(stats(f, g).captures, 1);
    bp_callable_unref(g);
}

static void c17_37_unmarked_sizes_hit_what_was_marked_and_marks_on_static_code_recompile(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, twice);
    SAME(f, g, twice, marked(f, RAMP(f, 4), 0));
    SAME(f, g, twice, RAMP(f, 7));
    assert_int_equal(stats(f, g).captures, 1);
    bp_callable_unref(g);
    bp_callable *h = COMPILE(f, long_or_short);
    SAME(f, h, long_or_short, RAMP(f, 4));
    SAME(f, h, long_or_short, marked(f, RAMP(f, 4), 0));
    assert_int_equal(stats(f, h).captures, 2);
    SAME(f, h, long_or_short, RAMP(f, 3));
    assert_int_equal(stats(f, h).captures, 2);
    bp_callable_unref(h);
}

static void c11_mark_static_keeps_each_size_a_constant(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, twice);
    for (int64_t n = 2; n < 6; n++)
        SAME(f, g, twice, fixed(f, RAMP(f, n)));
    assert_int_equal(stats(f, g).captures, 4);
    bp_callable_unref(g);
}

/* -- constraints --------------------------------------------------------------------------------------------------- */

static void expect_violation(fixture *f, bp_callable *g, bp_tensor *x, const char *words)
{
    bp_value v = bp_arg_of_tensor(x);
    bp_outputs out = {0};
    assert_int_equal(bp_call(f->c, g, &(bp_args){&v, 1}, &out), BP_INVALID_ARGUMENT);
    if (!strstr(bp_error_text(f->c), words))
        fail_msg("%s", bp_error_text(f->c));
    bp_error_clear(f->c);
}

static void c17_50_a_marked_size_that_is_specialized_is_an_error(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, needs_number);
    expect_violation(f, g, marked(f, RAMP(f, 5), 0), "Constraints violated (L['x'].size()[0])!");
    expect_violation(f, g, marked(f, RAMP(f, 5), 0),
                     "Not all values of RelaxedUnspecConstraint(L['x'].size()[0]) are valid because L['x'].size()[0] "
                     "was inferred to be a constant (5).");
    bp_tensor *x = RAMP(f, 5);
    assert_int_equal(bp_maybe_mark_dynamic(f->c, x, 0), BP_OK);
    SAME(f, g, needs_number, x);
    assert_int_equal(bp_set_config(f->c, "allow_ignore_mark_dynamic", "yes"), BP_OK);
    SAME(f, g, needs_number, marked(f, RAMP(f, 6), 0));
    bp_callable_unref(g);
}

static void c11_constraint_error_names_the_guard_that_cuts_a_strict_range(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, long_or_short);
    bp_tensor *x = RAMP(f, 5);
    assert_int_equal(bp_mark_dynamic(f->c, x, 0, &(bp_mark_options){.min = 3, .max = 8}), BP_OK);
    expect_violation(f, g, x, "satisfy the generated guard L['x'].size()[0] <= 6");
    bp_tensor *y = RAMP(f, 5);
    assert_int_equal(bp_mark_dynamic(f->c, y, 0, &(bp_mark_options){.min = 3, .max = 6}), BP_OK);
    SAME(f, g, long_or_short, y);
    SAME(f, g, long_or_short, RAMP(f, 6));
    assert_int_equal(stats(f, g).captures, 2);
    SAME(f, g, long_or_short, RAMP(f, 7)); /* out of its range */
    assert_int_equal(stats(f, g).captures, 3);
    bp_callable_unref(g);
}

/* -- breaks -------------------------------------------------------------------------------------------------------- */

static void breaking(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_arg(f, 1, "y"), *z = bp_mul(c, x, 3);
    if (bp_is_true(c, bp_gt(c, bp_sum(c, x), 100)))
        z = bp_add(c, z, y);
    bp_return(f, bp_cat(c, BP_TENSORS(z, bp_zeros(c, BP_DIMS(bp_size(c, x, 0))))));
}

static void sizes_cross_breaks(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, breaking);
    for (int64_t n = 5; n < 30; n += 3)
        SAME(f, g, breaking, RAMP(f, n), RAMP(f, n));
    for (int64_t n = 5; n < 30; n += 3)
        SAME(f, g, breaking, RAMP(f, n), RAMP(f, n));
    assert_int_equal(stats(f, g).eager_calls, 0);
    assert_true(stats(f, g).captures <= 4);
    bp_callable_unref(g);
}

static void inputs_of_changing_sizes_are_written(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, writing);
    for (int64_t n = 3; n < 9; n++) {
        bp_outputs out = CALL(f, g, RAMP(f, n));
        assert_int_equal(bp_tensor_numel(out.at[0]), n);
        assert_float_equal(at(f, out.at[1], n - 1), (float)(n + 4), 0);
        assert_float_equal(at(f, out.at[0], n - 1), (float)(2 * n + 8), 0);
    }
    assert_int_equal(stats(f, g).captures, 2);
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

static void printing(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_mul(c, x, 2);
    bp_dim n = bp_size(c, y, 0);
    bp_print(c, y, NULL);
    bp_return(f, bp_add(c, y, bp_ones(c, BP_DIMS(n))));
}

static void sizes_cross_opaque_steps(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, printing);
    for (int64_t n = 3; n < 9; n++) {
        bp_outputs out = CALL(f, g, RAMP(f, n));
        assert_int_equal(bp_tensor_numel(out.at[0]), n);
        assert_float_equal(at(f, out.at[0], n - 1), (float)(2 * n - 1), 0);
    }
    assert_int_equal(stats(f, g).eager_calls, 0);
    assert_true(stats(f, g).captures <= 4);
    bp_callable_unref(g);
}

/* -- numbers ------------------------------------------------------------------------------------------------------- */

static void times(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_dim n = bp_arg_dim(f, 1, "n");
    bp_return(f, bp_mul(c, bp_cat(c, BP_TENSORS(x, bp_ones(c, BP_DIMS(n)))), n));
}

static void c11_automatic_dynamic_integers(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, times);
    for (int64_t n = 3; n < 9; n++) {
        bp_value v[] = {bp_arg_of_tensor(RAMP(f, 2)), bp_arg_of_int(n)};
        bp_outputs out = {0};
        if (bp_call(f->c, g, &(bp_args){v, 2}, &out) != BP_OK)
            fail_msg("%s", bp_error_text(f->c));
        assert_int_equal(bp_tensor_numel(out.at[0]), n + 2);
        assert_float_equal(at(f, out.at[0], n + 1), (float)n, 0);
    }
    assert_int_equal(stats(f, g).captures, 2);
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

static bp_dim kept;

static void keeping(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_dim now = bp_size(c, x, 0), use = kept.sym ? kept : now;
    kept = now;
    bp_return(f, bp_ones(c, BP_DIMS(use)));
}

static void a_size_that_is_kept_beyond_its_capture_is_told(void **state)
{
    fixture *f = *state;
    bp_compile_options on = {.backend_fn = table_backend, .dynamic = 1, .fullgraph = 1};
    bp_compile_options other = {.backend = "eager", .dynamic = 1};
    bp_callable *g = bp_compile(f->c, keeping, &on), *h = bp_compile(f->c, keeping, &other);
    CALL(f, g, RAMP(f, 5));
    assert_true(kept.sym != 0);
    bp_value v = bp_arg_of_tensor(RAMP(f, 4, 2));
    bp_outputs out = {0};
    assert_int_equal(bp_call(f->c, h, &(bp_args){&v, 1}, &out), BP_FAILED_PRECONDITION);
    assert_contains(bp_error_text(f->c), "a symbolic size of a capture that has ended");
    bp_error_clear(f->c);
    bp_callable_unref(g);
    bp_callable_unref(h);
    kept = (bp_dim){0, 0, 0};
}

/* -- random numbers ------------------------------------------------------------------------------------------------ */

static void noisy(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_add(c, x, bp_rand_like(c, x));
    if (bp_is_true(c, bp_gt(c, bp_sum(c, x), -1)))
        y = bp_mul(c, y, bp_rand_like(c, x));
    bp_return(f, y);
}

static void random_numbers_of_changing_sizes_are_those_of_eager(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, noisy);
    for (int64_t n = 3; n < 9; n++) {
        bp_tensor *x = RAMP(f, n);
        bp_value v = bp_arg_of_tensor(x);
        bp_outputs want = {0};
        bp_manual_seed(f->c, 7);
        bp_outputs got = CALL(f, g, x);
        uint64_t moved = bp_generator_offset(f->c);
        bp_manual_seed(f->c, 7);
        assert_int_equal(bp_run_eager(f->c, noisy, NULL, &(bp_args){&v, 1}, &want), BP_OK);
        assert_int_equal(moved, bp_generator_offset(f->c));
        for (int64_t i = 0; i < n; i++)
            assert_float_equal(at(f, got.at[0], i), at(f, want.at[0], i), 0);
    }
    assert_int_equal(stats(f, g).captures, 2);
    bp_callable_unref(g);
}

/* -- other ways through a call ------------------------------------------------------------------------------------- */

static void scaled(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_mul(c, x, 2);
    bp_dim n = bp_size(c, y, 0);
    bp_tensor *tail = bp_slice(c, y, .start = BP_SCALAR(1));
    double s = bp_item_float(c, bp_sum(c, x));
    bp_return(f, bp_add(c, y, s));
    bp_return(f, bp_cat(c, BP_TENSORS(tail, bp_ones(c, BP_DIMS(bp_dim_add(c, n, bp_dim_of(1)))))));
    bp_return(f, bp_dim_gt(c, n, 9) ? tail : y);
}

static void calls_of_changing_sizes_resume_eagerly(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, scaled);
    for (int64_t n = 3; n < 24; n++)
        SAME(f, g, scaled, RAMP(f, n));
    assert_true(stats(f, g).resumed > 0);
    assert_int_equal(stats(f, g).eager_calls, stats(f, g).resumed);
    bp_callable_unref(g);
}

static void a_capture_that_is_checked_again_decides_as_its_path_did(void **state)
{
    fixture *f = *state;
    assert_int_equal(bp_set_config(f->c, "check_capture", "always"), BP_OK);
    bp_callable *g = COMPILE(f, breaking);
    for (int64_t n = 3; n < 30; n += 2)
        SAME(f, g, breaking, RAMP(f, n), RAMP(f, n));
    assert_int_equal(stats(f, g).eager_calls, 0);
    assert_false(said(f, "impure"));
    bp_callable_unref(g);
}

static void overlapping(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_arg(f, 1, "y");
    bp_add_inplace(c, x, 1);
    bp_return(f, bp_mul(c, y, 2));
}

static void overlapping_inputs_of_changing_sizes_are_written(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, overlapping);
    for (int64_t n = 3; n < 8; n++) {
        bp_tensor *x = RAMP(f, n), *y = bp_slice(f->c, x, .start = BP_SCALAR(1));
        bp_outputs out = CALL(f, g, x, y);
        assert_int_equal(bp_tensor_numel(out.at[0]), n - 1);
        for (int64_t i = 0; i + 1 < n; i++)
            assert_float_equal(at(f, out.at[0], i), 2.0F * (float)(i + 2), 0);
    }
    bp_callable_unref(g);
}

static void learning(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, bp_sum(c, bp_mul(c, bp_sin(c, x), x)));
}

static void gradients_of_changing_sizes_are_those_of_eager(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, learning);
    for (int64_t n = 3; n < 9; n++) {
        bp_tensor *x = RAMP(f, n), *y = RAMP(f, n);
        bp_tensor_set_requires_grad(f->c, x, 1);
        bp_tensor_set_requires_grad(f->c, y, 1);
        assert_int_equal(bp_backward(f->c, CALL(f, g, x).at[0], NULL, 0), BP_OK);
        assert_int_equal(bp_backward(f->c, bp_sum(f->c, bp_mul(f->c, bp_sin(f->c, y), y)), NULL, 0), BP_OK);
        for (int64_t i = 0; i < n; i++)
            assert_float_equal(at(f, bp_tensor_grad(f->c, x), i), at(f, bp_tensor_grad(f->c, y), i), 1e-6);
    }
    assert_int_equal(stats(f, g).captures, 2);
    bp_callable_unref(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        T(c11_automatic_dynamic_c17_49_two_sizes_compile_twice_and_others_hit),
        T(c11_first_compile_is_static),
        T(sizes_flow_through_views_and_results),
        T(c17_51_equal_dynamic_sizes_are_guarded_to_be_equal),
        T(a_question_on_a_size_is_guarded_and_its_answer_recompiles),
        T(A140_a_negated_conjunction_is_evaluated_on_all_terms),
        T(c11_decision_order_of_options_and_marks),
        T(c11_duck_shaping_shares_a_symbol_among_sizes_that_are_not_marked),
        T(c11_mark_dynamic_gives_symbols_of_their_own),
        T(c17_37_unmarked_sizes_hit_what_was_marked_and_marks_on_static_code_recompile),
        T(c11_mark_static_keeps_each_size_a_constant),
        T(c17_50_a_marked_size_that_is_specialized_is_an_error),
        T(c11_constraint_error_names_the_guard_that_cuts_a_strict_range),
        T(sizes_cross_breaks),
        T(inputs_of_changing_sizes_are_written),
        T(sizes_cross_opaque_steps),
        T(c11_automatic_dynamic_integers),
        T(a_size_that_is_kept_beyond_its_capture_is_told),
        T(random_numbers_of_changing_sizes_are_those_of_eager),
        T(calls_of_changing_sizes_resume_eagerly),
        T(a_capture_that_is_checked_again_decides_as_its_path_did),
        T(overlapping_inputs_of_changing_sizes_are_written),
        T(gradients_of_changing_sizes_are_those_of_eager),
#undef T
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
