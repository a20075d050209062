/* Sizes and numbers that data tell: what is a symbol, what is asked of it, what a run checks. */
#include "tests/unit/compile/fixture.h"

static bp_tensor *longs(fixture *f, int64_t n, const int64_t *v)
{
    return bp_tensor_from(f->c, BP_I64, 1, &n, v);
}
#define LONGS(f, ...) \
    longs((f), (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

static bp_callable *with_data(fixture *f, bp_fn fn, int fullgraph)
{
    bp_compile_options o = {.backend_fn = table_backend, .fullgraph = fullgraph};
    assert_int_equal(bp_set_config(f->c, "capture_dynamic_output_shape_ops", "yes"), BP_OK);
    return bp_compile(f->c, fn, &o);
}

static void expect_error(fixture *f, bp_callable *g, bp_tensor *x, bp_status code, const char *words)
{
    bp_value v = bp_arg_of_tensor(x);
    bp_outputs out = {0};
    assert_int_equal(bp_call(f->c, g, &(bp_args){&v, 1}, &out), code);
    if (!strstr(bp_error_text(f->c), words))
        fail_msg("%s", bp_error_text(f->c));
    bp_error_clear(f->c);
}

/* -- results whose size data tell ---------------------------------------------------------------------------------- */

static void places(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *at = bp_nonzero(c, x);
    bp_return(f, bp_mul(c, at, 2));
    bp_return(f, bp_cat(c, BP_TENSORS(bp_to(c, bp_squeeze(c, bp_zeros_like(c, at), BP_DIMS(1)), BP_F32),
                                      bp_ones(c, BP_DIMS(bp_size(c, at, 0))))));
}

static void c11_item_and_nonzero_with_the_mode_are_symbols(void **state)
{
    fixture *f = *state;
    bp_callable *g = with_data(f, places, 1);
    const float values[][4] = {{0, 1, 0, 2}, {1, 1, 1, 1}, {0, 0, 0, 0}, {0, 0, 3, 0}};
    const int64_t counts[] = {2, 4, 0, 1};
    for (int i = 0; i < 4; i++) {
        bp_outputs out = CALL(f, g, floats(f, 4, values[i]));
        assert_int_equal(bp_tensor_size(out.at[0], 0), counts[i]);
        assert_int_equal(bp_tensor_numel(out.at[1]), 2 * counts[i]);
    }
    assert_int_equal(stats(f, g).captures, 1);
    assert_int_equal(stats(f, g).graphs, 1);
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

static void c11_item_and_nonzero_without_the_mode_is_a_step(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, places);
    assert_int_equal(bp_tensor_size(CALL(f, g, FLOATS(f, 0, 1, 0, 2)).at[0], 0), 2);
    assert_int_equal(stats(f, g).steps, 1);
    bp_callable_unref(g);
}

static void broken(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *at = bp_nonzero(c, x);
    bool positive = bp_is_true(c, bp_gt(c, bp_sum(c, x), 0));
    bp_return(f, bp_ones(c, BP_DIMS(bp_size(c, at, 0))));
    bp_return(f, positive ? bp_add(c, at, 1) : at);
}

static void sizes_that_data_tell_cross_breaks(void **state)
{
    fixture *f = *state;
    bp_callable *g = with_data(f, broken, 0);
    for (int i = 0; i < 6; i++) {
        bp_outputs out = i % 2 ? CALL(f, g, FLOATS(f, 0, 1, 0, 2)) : CALL(f, g, FLOATS(f, -1, -1, 0, -2));
        assert_int_equal(bp_tensor_numel(out.at[0]), i % 2 ? 2 : 3);
        assert_int_equal(bp_tensor_size(out.at[1], 0), i % 2 ? 2 : 3);
    }
    assert_int_equal(stats(f, g).eager_calls, 0);
    assert_int_equal(stats(f, g).captures, 2);
    bp_callable_unref(g);
}

/* -- questions on data --------------------------------------------------------------------------------------------- */

static void asks(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_dim n = BP_DIM(bp_item_sym(c, bp_sum(c, x)));
    bp_return(f, bp_dim_gt(c, n, 3) ? bp_add(c, x, n) : bp_mul(c, x, n));
}

static int64_t first_long(fixture *f, bp_tensor *t)
{
    int64_t v[4] = {0};
    assert_int_equal(bp_tensor_read(f->c, t, v, (size_t)bp_tensor_numel(t) * sizeof *v), BP_OK);
    return v[0];
}

static void a_question_on_a_number_is_a_value_break(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, asks);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(first_long(f, CALL(f, g, LONGS(f, 1, 1)).at[0]), 2);
        assert_int_equal(first_long(f, CALL(f, g, LONGS(f, 4, 1)).at[0]), 9);
    }
    assert_int_equal(stats(f, g).captures, 2);
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

static void guesses(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *at = bp_nonzero(c, x);
    bp_return(f, bp_tensor_size(at, 0) > 1 ? bp_add(c, at, 1) : at);
}

static void c11_data_dependent_guard_names_the_expression_under_fullgraph(void **state)
{
    fixture *f = *state;
    bp_callable *g = with_data(f, guesses, 1);
    expect_error(f, g, FLOATS(f, 0, 1, 2), BP_FAILED_PRECONDITION, "data-dependent expression");
    bp_callable_unref(g);
    bp_callable *h = with_data(f, guesses, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(first_long(f, bp_select(f->c, CALL(f, h, FLOATS(f, 0, 1, 2)).at[0], 1, 0)), 2);
    bp_callable_unref(h);
}

/* -- deferred assertions ------------------------------------------------------------------------------------------- */

static void requires(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *at = bp_nonzero(c, x);
    bp_check(c, BP_DIM_LE, bp_size(c, at, 0), 2, "too many");
    bp_return(f, bp_mul(c, at, 2));
}

static void what_is_required_of_data_is_checked_by_each_run(void **state)
{
    fixture *f = *state;
    bp_callable *g = with_data(f, requires, 0);
    assert_int_equal(bp_tensor_size(CALL(f, g, FLOATS(f, 0, 1, 2)).at[0], 0), 2);
    assert_int_equal(bp_tensor_size(CALL(f, g, FLOATS(f, 0, 0, 2)).at[0], 0), 1);
    assert_int_equal(stats(f, g).captures, 1);
    expect_error(f, g, FLOATS(f, 3, 1, 2), BP_INVALID_ARGUMENT, "too many");
    assert_int_equal(bp_tensor_size(CALL(f, g, FLOATS(f, 0, 0, 2)).at[0], 0), 1);
    bp_callable_unref(g);
}

static void fill(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_scalar n = bp_item_sym(c, bp_sum(c, x));
    bp_return(f, bp_full(c, BP_DIMS(n, 2), n));
}

static void a_number_is_a_size_and_an_argument(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, fill);
    for (int64_t n = 0; n < 5; n++) {
        bp_outputs out = CALL(f, g, LONGS(f, n, 0));
        assert_int_equal(bp_tensor_numel(out.at[0]), 2 * n);
    }
    assert_int_equal(stats(f, g).captures, 1);
    assert_int_equal(stats(f, g).eager_calls, 0);
    expect_error(f, g, LONGS(f, -1, 0), BP_INVALID_ARGUMENT, "-1");
    bp_callable_unref(g);
}

static bp_tensor *unbacked(fixture *f, bp_tensor *t, int strict)
{
    assert_int_equal(bp_mark_unbacked(f->c, t, 0, strict), BP_OK);
    return t;
}

static void plus_one(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_add(c, bp_arg(f, 0, "x"), 1));
}

static void c11_mark_unbacked_is_neither_0_nor_1_to_a_capture(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, plus_one);
    const int64_t sizes[] = {3, 1, 0, 7};
    for (int i = 0; i < 4; i++) {
        bp_tensor *x = bp_tensor_from(f->c, BP_F32, 1, &sizes[i], NULL);
        assert_int_equal(bp_tensor_numel(CALL(f, g, unbacked(f, x, 0)).at[0]), sizes[i]);
    }
    assert_int_equal(stats(f, g).captures, 1);
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        T(c11_item_and_nonzero_with_the_mode_are_symbols),
        T(c11_item_and_nonzero_without_the_mode_is_a_step),
        T(sizes_that_data_tell_cross_breaks),
        T(a_question_on_a_number_is_a_value_break),
        T(c11_data_dependent_guard_names_the_expression_under_fullgraph),
        T(what_is_required_of_data_is_checked_by_each_run),
        T(a_number_is_a_size_and_an_argument),
        T(c11_mark_unbacked_is_neither_0_nor_1_to_a_capture),
#undef T
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
