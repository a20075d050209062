/* Sizes that change, row by row of the contract: exclusion, precedence, sources, strides, names, orders. */
#include "tests/unit/compile/dynamic.h"

/* -- exclusion ----------------------------------------------------------------------------------------------------- */

static void c17_46_exclusion_gives_static_sizes_back_to_static_code(void **state)
{
    fixture *f = *state;
    assert_int_equal(bp_set_config(f->c, "automatic_dynamic_exclusion_guard", "yes"), BP_OK);
    bp_callable *g = COMPILE(f, twice);
    SAME(f, g, twice, RAMP(f, 3, 4));
    SAME(f, g, twice, RAMP(f, 5, 4));
    SAME(f, g, twice, RAMP(f, 7, 4));
    assert_int_equal(stats(f, g).captures, 2);
    assert_non_null(strstr(guards(f, g), "!= 3"));
    SAME(f, g, twice, RAMP(f, 3, 4));
    assert_int_equal(stats(f, g).captures, 2);
    bp_callable_unref(g);
}

static void twice_two(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_mul(c, bp_arg(f, 0, "x"), 2));
    bp_return(f, bp_mul(c, bp_arg(f, 1, "y"), 2));
}

static bp_compiled *readable_backend(bp_graph_module *gm, const bp_inputs *in)
{
    (void)in;
    bp_print_readable(gm, bp_sink(gm));
    return bp_forward(gm);
}

/* -- progressive dynamism ------------------------------------------------------------------------------------------ */

static void excluding(fixture *f)
{
    assert_int_equal(bp_set_config(f->c, "automatic_dynamic_exclusion_guard", "yes"), BP_OK);
}

static void c17_47_each_input_goes_to_the_tightest_code(void **state)
{
    fixture *f = *state;
    excluding(f);
    bp_callable *g = COMPILE(f, twice);
    SAME(f, g, twice, RAMP(f, 2, 3, 4, 5));
    SAME(f, g, twice, RAMP(f, 6, 3, 4, 5));
    SAME(f, g, twice, RAMP(f, 7, 8, 4, 5));
    SAME(f, g, twice, RAMP(f, 7, 8, 9, 5));
    SAME(f, g, twice, RAMP(f, 7, 8, 9, 6));
    assert_int_equal(stats(f, g).captures, 5);
    SAME(f, g, twice, RAMP(f, 2, 3, 4, 5));
    SAME(f, g, twice, RAMP(f, 9, 3, 4, 5));
    SAME(f, g, twice, RAMP(f, 9, 9, 4, 5));
    SAME(f, g, twice, RAMP(f, 9, 9, 8, 5));
    SAME(f, g, twice, RAMP(f, 9, 9, 8, 8));
    assert_int_equal(stats(f, g).captures, 5);
    bp_callable_unref(g);
}

static void c11_exclusion_guard_c17_48_needs_all_the_old_sizes(void **state)
{
    fixture *f = *state;
    excluding(f);
    bp_callable *g = COMPILE(f, twice_two);
    SAME(f, g, twice_two, RAMP(f, 3, 4), RAMP(f, 5, 2));
    SAME(f, g, twice_two, RAMP(f, 6, 4), RAMP(f, 7, 2));
    assert_int_equal(stats(f, g).captures, 2);
    SAME(f, g, twice_two, RAMP(f, 3, 4), RAMP(f, 9, 2)); /* one of two: dynamic */
    SAME(f, g, twice_two, RAMP(f, 8, 4), RAMP(f, 5, 2));
    SAME(f, g, twice_two, RAMP(f, 3, 4), RAMP(f, 5, 2)); /* both: static */
    assert_int_equal(stats(f, g).captures, 2);
    bp_callable_unref(g);
}

/* -- precedence ---------------------------------------------------------------------------------------------------- */

static void c11_precedence_of_marks(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, twice);
    SAME(f, g, twice, marked(f, fixed(f, RAMP(f, 4)), 0));
    SAME(f, g, twice, RAMP(f, 5));
    assert_int_equal(stats(f, g).captures, 1);
    bp_callable_unref(g);
}

static void c11_source_lists_decide_by_name(void **state)
{
    fixture *f = *state;
    assert_int_equal(bp_set_config(f->c, "dynamic_sources", "L['x'], other"), BP_OK);
    bp_callable *g = COMPILE(f, twice);
    for (int64_t n = 2; n < 6; n++)
        SAME(f, g, twice, RAMP(f, n));
    assert_int_equal(stats(f, g).captures, 1);
    bp_callable_unref(g);
    assert_int_equal(bp_set_config(f->c, "dynamic_sources", "-"), BP_OK);
    assert_int_equal(bp_set_config(f->c, "static_sources", "x"), BP_OK);
    bp_callable *h = COMPILE(f, sum_of_two);
    for (int64_t n = 2; n < 6; n++)
        SAME(f, h, sum_of_two, RAMP(f, n), RAMP(f, n));
    assert_int_equal(stats(f, h).captures, 4);
    bp_callable_unref(h);
}

static void c11_strides_follow_from_sizes_unless_they_wobble(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, twice);
    for (int64_t n = 3; n < 6; n++)
        SAME(f, g, twice, RAMP(f, 4, n));
    assert_int_equal(stats(f, g).captures, 2);
    assert_non_null(strstr(guards(f, g), "L['x'].stride() == (None, 1)"));
    assert_null(strstr(guards(f, g), "<= L['x'].stride()"));
    for (int64_t n = 6; n < 9; n++) { /* rows of a wider tensor */
        bp_tensor *wide = RAMP(f, 4, n + n);
        SAME(f, g, twice, bp_slice(f->c, wide, .dim = 1, .end = BP_SCALAR(n)));
    }
    assert_true(stats(f, g).captures <= 4);
    bp_callable_unref(g);
}

static void turned(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_t(c, bp_arg(f, 0, "x")));
}

/* A view of an input shows whether the stride that was taken for a product is one. */
static void a_stride_that_is_no_product_is_another_entry(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, turned);
    SAME(f, g, turned, RAMP(f, 4, 3));
    SAME(f, g, turned, RAMP(f, 4, 4));
    SAME(f, g, turned, RAMP(f, 4, 5));
    assert_int_equal(stats(f, g).captures, 2);
    assert_non_null(strstr(guards(f, g), "L['x'].stride()[0] == L['x'].size()[1]*L['x'].stride()[1]"));
    SAME(f, g, turned, bp_slice(f->c, RAMP(f, 4, 12), .dim = 1, .end = BP_SCALAR(6)));
    assert_int_equal(stats(f, g).captures, 3);
    bp_callable_unref(g);
}

static void marks_do_not_outlive_their_dimensions(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, twice);
    bp_tensor *x = RAMP(f, 4);
    assert_int_equal(bp_mark_dynamic(f->c, x, 0, &(bp_mark_options){.min = 2, .max = 9}), BP_OK);
    bp_unsqueeze_inplace(f->c, x, 0);
    SAME(f, g, twice, x);
    assert_int_equal(bp_mark_dynamic(f->c, x, 1, NULL), BP_OK);
    SAME(f, g, twice, x);
    bp_callable_unref(g);
}

static void grow_argument(bp_ctx *c, bp_frame *f)
{
    bp_resize_inplace(c, bp_arg(f, 0, "x"), BP_DIMS(6));
}

static void square_behind_a_step(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_value in = bp_arg_of_tensor(x);
    bp_call(c, bp_user(f), &(bp_args){&in, 1}, &(bp_outputs){0});
    bp_return(f, bp_mul(c, x, x));
}

static void a_step_that_changes_symbolic_sizes_is_followed(void **state)
{
    fixture *f = *state;
    bp_callable *step = bp_compile(f->c, grow_argument, &(bp_compile_options){.disable = 1});
    bp_callable *g = bp_compile(f->c, square_behind_a_step,
                                &(bp_compile_options){.backend = "eager", .user = step, .dynamic = 1});
    for (int64_t n = 4; n < 8; n++) {
        bp_tensor *x = RAMP(f, n), *out = bp_call1(f->c, g, 1, &x);
        assert_string_equal(bp_error_text(f->c), "");
        assert_int_equal(bp_tensor_size(out, 0), 6);
        assert_true(at(f, out, 3) == at(f, x, 3) * at(f, x, 3));
    }
    bp_callable_unref(g);
    bp_callable_unref(step);
}

static void c11_automatic_dynamic_after_a_change_of_rank(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, twice);
    SAME(f, g, twice, RAMP(f, 4));
    SAME(f, g, twice, RAMP(f, 4, 5));
    SAME(f, g, twice, RAMP(f, 6, 7));
    assert_int_equal(stats(f, g).captures, 2);
    bp_callable_unref(g);
}

static void with_weight(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_mul(c, bp_arg(f, 0, "x"), bp_attr(f, bp_user(f), "w")));
}

static void c11_parameters_are_static(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = table_backend, .dynamic = 1};
    o.user = bp_module_new(f->c);
    assert_int_equal(bp_module_add_parameter(f->c, o.user, "w", RAMP(f, 3)), BP_OK);
    bp_callable *g = bp_compile(f->c, with_weight, &o);
    CALL(f, g, RAMP(f, 4, 3));
    assert_non_null(strstr(guards(f, g), "L['m'].w.size() == (3,)"));
    bp_callable_unref(g);
    bp_module_unref(o.user);
}

static void c11_specialize_on_gives_a_size_code_of_its_own(void **state)
{
    fixture *f = *state;
    const int64_t special[] = {8, 16};
    bp_callable *g = COMPILE(f, twice);
    for (int64_t n = 7; n < 10; n++) {
        bp_tensor *x = RAMP(f, n);
        bp_mark_options o = {.specialize_on = special, .nspecialize_on = 2};
        assert_int_equal(bp_mark_dynamic(f->c, x, 0, &o), BP_OK);
        SAME(f, g, twice, x);
    }
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

static void c11_mark_dynamic_refuses_what_makes_no_sense(void **state)
{
    fixture *f = *state;
    bp_tensor *x = RAMP(f, 3);
    assert_int_equal(bp_mark_dynamic(f->c, x, 1, NULL), BP_INVALID_ARGUMENT);
    bp_error_clear(f->c);
    assert_int_equal(bp_mark_dynamic(f->c, x, 0, &(bp_mark_options){.min = 9, .max = 3}), BP_INVALID_ARGUMENT);
    bp_error_clear(f->c);
    assert_int_equal(bp_mark_dynamic(f->c, NULL, 0, NULL), BP_INVALID_ARGUMENT);
    bp_error_clear(f->c);
}

static void marking(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_mark_dynamic(c, x, 0, NULL);
    bp_return(f, x);
}

static void c11_mark_dynamic_inside_a_captured_function_is_an_error(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, marking);
    bp_value v = bp_arg_of_tensor(RAMP(f, 3));
    bp_outputs out = {0};
    assert_int_equal(bp_call(f->c, g, &(bp_args){&v, 1}, &out), BP_FAILED_PRECONDITION);
    bp_error_clear(f->c);
    bp_callable_unref(g);
}

static void c11_symbol_names_come_from_sources(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = readable_backend, .dynamic = 1};
    bp_callable *g = bp_compile(f->c, twice, &o);
    SAME(f, g, twice, RAMP(f, 4));
    char first[64];
    const char *at = strstr(buf_text(&f->tables), "f32[s");
    assert_non_null(at);
    snprintf(first, sizeof first, "%.8s", at);
    bp_reset(f->c);
    buf_clear(&f->tables);
    SAME(f, g, twice, RAMP(f, 9));
    assert_non_null(strstr(buf_text(&f->tables), first));
    bp_callable_unref(g);
}

static void A146_a_growing_length_reaches_one_graph_at_the_second_size(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, twice);
    for (int64_t n = 16; n < 60; n += 2)
        SAME(f, g, twice, RAMP(f, n, 4));
    assert_int_equal(stats(f, g).graphs, 2);
    assert_false(said(f, "recompile_limit"));
    bp_callable_unref(g);
}

static void a_failing_condition_is_named_with_its_values(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, long_or_short);
    SAME(f, g, long_or_short, RAMP(f, 3));
    SAME(f, g, long_or_short, RAMP(f, 4));
    assert_int_equal(bp_set_config(f->c, "error_on_recompile", "yes"), BP_OK);
    bp_value v = bp_arg_of_tensor(RAMP(f, 9));
    bp_outputs out = {0};
    assert_int_not_equal(bp_call(f->c, g, &(bp_args){&v, 1}, &out), BP_OK);
    assert_contains(bp_error_text(f->c), "L['x'].size()[0] <= 6 failed: L['x'].size()[0] = 9");
    bp_error_clear(f->c);
    bp_callable_unref(g);
}

/* -- further rows of the contract ---------------------------------------------------------------------------------- */

static void c11_constraint_strength_of_each_mark(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, needs_number);
    SAME(f, g, needs_number, RAMP(f, 4)); /* automatic: a number simply stays one */
    SAME(f, g, needs_number, RAMP(f, 5));
    SAME(f, g, needs_number, RAMP(f, 6));
    assert_int_equal(stats(f, g).captures, 3);
    bp_tensor *x = RAMP(f, 7);
    assert_int_equal(bp_mark_unbacked(f->c, x, 0, 1), BP_OK);
    bp_value v = bp_arg_of_tensor(x);
    bp_outputs out = {0};
    bp_call(f->c, g, &(bp_args){&v, 1}, &out); /* nothing is known of it: eager answers */
    assert_int_equal(bp_error(f->c), BP_OK);
    assert_true(stats(f, g).eager_calls > 0);
    bp_callable_unref(g);
}

static void c11_zero_one_are_constants_and_others_begin_at_2(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = table_backend, .dynamic = 1};
    bp_callable *g = bp_compile(f->c, twice, &o);
    SAME(f, g, twice, RAMP(f, 1, 5));
    assert_non_null(strstr(guards(f, g), "L['x'].size() == (1, None)"));
    assert_non_null(strstr(guards(f, g), "2 <= L['x'].size()[1]"));
    SAME(f, g, twice, RAMP(f, 2, 5));
    SAME(f, g, twice, RAMP(f, 1, 0));
    assert_int_equal(stats(f, g).captures, 3);
    bp_callable_unref(g);
}

static void c11_views_as_inputs(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, writing);
    for (int64_t n = 3; n < 8; n++) {
        bp_tensor *base = RAMP(f, 2, n), *row = bp_select(f->c, base, 0, 1);
        bp_outputs out = CALL(f, g, row);
        assert_ptr_equal(out.at[1], row);
        assert_float_equal(at(f, base, 2 * n - 1), (float)(2 * n + 4), 0);
    }
    assert_int_equal(stats(f, g).eager_calls, 0);
    assert_int_equal(stats(f, g).captures, 2);
    bp_callable_unref(g);
}

static bp_callable *inner;

static void outer(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_mul(c, bp_arg(f, 0, "x"), 2);
    bp_return(f, bp_add(c, bp_call1(c, inner, 1, &x), 1));
}

static void c11_symbolic_inputs_stay_symbolic_in_what_is_inlined(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, outer);
    inner = COMPILE(f, long_or_short);
    for (int64_t n = 8; n < 14; n++)
        SAME(f, g, outer, RAMP(f, n));
    assert_int_equal(stats(f, g).captures, 2);
    bp_callable_unref(g);
    bp_callable_unref(inner);
}

static void pinned(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_mark_static(c, x, 0);
    bp_return(f, bp_mul(c, x, 2));
}

static void c11_mark_static_inside_a_function_specializes(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = table_backend, .dynamic = 1};
    bp_callable *g = bp_compile(f->c, pinned, &o);
    for (int64_t n = 3; n < 6; n++)
        SAME(f, g, pinned, RAMP(f, n));
    assert_int_equal(stats(f, g).captures, 3);
    assert_non_null(strstr(guards(f, g), "L['x'].size()[0] == 4"));
    bp_callable_unref(g);
}

static void ordered(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_arg(f, 1, "y");
    bool far = bp_dim_ne(c, bp_size(c, y, 0), 11), near = bp_dim_lt(c, bp_size(c, x, 0), 9);
    bp_return(f, far && near ? bp_cat(c, BP_TENSORS(x, y)) : x);
}

static void c11_guard_order_is_equalities_conditions_bounds(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = table_backend, .dynamic = 1};
    bp_callable *g = bp_compile(f->c, ordered, &o);
    SAME(f, g, ordered, RAMP(f, 4, 4), RAMP(f, 5, 4));
    const char *text = guards(f, g), *equal = strstr(text, "L['x'].size()[1] == L['x'].size()[0]");
    const char *first = strstr(text, "L['y'].size()[0] != 11"), *second = strstr(text, "L['x'].size()[0] <= 8");
    const char *bounds = strstr(text, "2 <= L['x'].size()[0]");
    assert_true(equal && first && second && bounds);
    assert_true(equal < first && first < second && second < bounds);
    assert_true(strstr(text, "L['x'].dtype") < equal);
    bp_callable_unref(g);
}

static void c11_newest_first_is_why_exclusion_exists(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, twice);
    SAME(f, g, twice, RAMP(f, 3, 4));
    SAME(f, g, twice, RAMP(f, 5, 4));
    SAME(f, g, twice, RAMP(f, 3, 4)); /* the dynamic code serves it now */
    assert_int_equal(stats(f, g).captures, 2);
    assert_null(strstr(guards(f, g), "!= 3"));
    bp_callable_unref(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        T(c17_46_exclusion_gives_static_sizes_back_to_static_code),
        T(c17_47_each_input_goes_to_the_tightest_code),
        T(c11_exclusion_guard_c17_48_needs_all_the_old_sizes),
        T(c11_precedence_of_marks),
        T(c11_source_lists_decide_by_name),
        T(c11_strides_follow_from_sizes_unless_they_wobble),
        T(a_stride_that_is_no_product_is_another_entry),
        T(marks_do_not_outlive_their_dimensions),
        T(a_step_that_changes_symbolic_sizes_is_followed),
        T(c11_automatic_dynamic_after_a_change_of_rank),
        T(c11_parameters_are_static),
        T(c11_specialize_on_gives_a_size_code_of_its_own),
        T(c11_mark_dynamic_refuses_what_makes_no_sense),
        T(c11_mark_dynamic_inside_a_captured_function_is_an_error),
        T(c11_symbol_names_come_from_sources),
        T(A146_a_growing_length_reaches_one_graph_at_the_second_size),
        T(a_failing_condition_is_named_with_its_values),
        T(c11_constraint_strength_of_each_mark),
        T(c11_zero_one_are_constants_and_others_begin_at_2),
        T(c11_views_as_inputs),
        T(c11_symbolic_inputs_stay_symbolic_in_what_is_inlined),
        T(c11_mark_static_inside_a_function_specializes),
        T(c11_guard_order_is_equalities_conditions_bounds),
        T(c11_newest_first_is_why_exclusion_exists),
#undef T
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
