/* Rules of what a call may do to its arguments and must say of its results, of nesting and recursion. */
#include "tests/unit/compile/fixture.h"

/* -- C1.4 ---------------------------------------------------------------------------------------------------------- */

static int runs, permitted; /* of the code below */

/* Doubles its input, in its memory if the run permits that. */
static bp_status double_it(void *state, bp_run *r)
{
    bp_view x, y;
    int32_t owned = 0;
    (void)state;
    if (bp_run_take(r, 0, &x, &owned) != BP_OK || bp_run_empty(r, 0, &y) != BP_OK)
        return BP_INTERNAL;
    runs++;
    permitted += owned;
    for (int64_t i = 0; i < x.sizes[0].value; i++)
        ((float *)y.data)[i] = 2 * ((float *)x.data)[i];
    return BP_OK;
}

static bp_compiled *doubles(bp_graph_module *gm, const bp_inputs *in)
{
    (void)in;
    return bp_compiled_new(gm, double_it, NULL, NULL);
}

static void doubled(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, bp_arg_bool(f, 1, "in_place") ? bp_mul_inplace(c, x, 2) : bp_mul(c, x, 2));
}

static bp_tensor *call_doubled(fixture *f, bp_callable *g, bp_tensor *x, int in_place)
{
    bp_value v[] = {bp_arg_of_tensor(x), bp_arg_of_bool(in_place)};
    bp_args args = {v, 2};
    bp_outputs o = {0};
    if (bp_call(f->c, g, &args, &o) != BP_OK)
        fail_msg("%s", bp_error_text(f->c));
    return o.at[0];
}

/* Even where no link stands behind this one, and nothing follows. */
static void c1_4_who_writes_its_input_in_place_shares_code_that_never_does(void **state)
{
    fixture *f = *state;
    assert_int_equal(bp_set_config(f->c, "fallback", "error"), BP_OK);
    bp_compile_options o = {.backend_fn = doubles};
    bp_callable *g = bp_compile(f->c, doubled, &o);
    runs = permitted = 0;
    for (int i = 0; i < 3; i++) {
        bp_tensor *x = FLOATS(f, 1, 2);
        assert_ptr_equal(call_doubled(f, g, x, 1), x);
        EXPECT_FLOATS(f, x, 2, 4);
        EXPECT_FLOATS(f, call_doubled(f, g, x, 0), 4, 8);
        EXPECT_FLOATS(f, x, 2, 4);
    }
    assert_int_equal(stats(f, g).entries, 2);
    assert_int_equal(stats(f, g).compiles, 1);
    assert_int_equal(runs, 6);
    assert_int_equal(permitted, 0);
    bp_callable_unref(g);
}

/* -- C6.4 ---------------------------------------------------------------------------------------------------------- */

static int first_line, second_line;

static void one_or_two(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    if (bp_is_true(c, bp_gt(c, bp_sum(c, x), 0))) {
        bp_return(f, bp_mul(c, x, 2)), first_line = __LINE__;
    } else {
        bp_return(f, x);
        bp_return(f, bp_add(c, x, 1)), second_line = __LINE__;
    }
}

static void float_or_bool(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    if (bp_is_true(c, bp_gt(c, bp_sum(c, x), 0)))
        bp_return(f, bp_mul(c, x, 2)), first_line = __LINE__;
    else
        bp_return(f, bp_lt(c, x, 1)), second_line = __LINE__;
}

static void one_or_null(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    if (bp_is_true(c, bp_gt(c, bp_sum(c, x), 0)))
        bp_return(f, bp_mul(c, x, 2)), first_line = __LINE__;
    else
        bp_return(f, NULL), second_line = __LINE__ - 3; /* that is where it asked */
}

/* The first path serves; the second is an error at each call that takes a fixed number, and for no list. */
static void expect_fixed(fixture *f, bp_fn fn, const char *words)
{
    bp_callable *g = compile_tables(f, fn, "f", 1);
    for (int i = 0; i < 3; i++) {
        bp_tensor *yes = FLOATS(f, 3), *no = FLOATS(f, -3), *at[4];
        bp_value v = bp_arg_of_tensor(no);
        bp_args args = {&v, 1};
        bp_outputs own = {at, 0, 4}, list = {0};
        EXPECT_FLOATS(f, bp_call1(f->c, g, 1, &yes), 6);
        assert_null(bp_call1(f->c, g, 1, &no));
        assert_contains(bp_error_text(f->c), words);
        char place[64];
        snprintf(place, sizeof place, "test_rules.c:%d", first_line);
        assert_contains(bp_error_text(f->c), place);
        snprintf(place, sizeof place, "test_rules.c:%d", second_line);
        assert_contains(bp_error_text(f->c), place);
        assert_contains(bp_error_text(f->c), "bp_outputs list");
        bp_error_clear(f->c);
        assert_int_equal(bp_call(f->c, g, &args, &own), BP_FAILED_PRECONDITION);
        bp_error_clear(f->c);
        assert_int_equal(bp_call(f->c, g, &args, &list), BP_OK);
    }
    assert_int_equal(stats(f, g).captures, 2);
    bp_callable_unref(g);
}

static void c6_4_paths_of_another_number_of_results_name_both_lines(void **state)
{
    expect_fixed(*state, one_or_two, "\"f\" gives 2 results on the path that ends at");
}

static void c6_4_paths_of_another_type_name_both_lines(void **state)
{
    expect_fixed(*state, float_or_bool, "\"f\" gives bool as result 0");
    expect_fixed(*state, one_or_null, "\"f\" gives NULL as result 0");
}

static void plus_one(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    if (bp_is_true(c, bp_gt(c, bp_sum(c, x), 0)))
        x = bp_add(c, x, bp_arg(f, 1, "y"));
    bp_return(f, x);
}

/* What guards tell apart is another function, so to say. */
static void c6_4_entries_and_variants_may_differ(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, plus_one);
    int64_t one = 1;
    for (int i = 0; i < 2; i++) {
        bp_tensor *wide = bp_tensor_from(f->c, BP_F64, 1, &one, (double[]){2});
        bp_tensor *a[] = {FLOATS(f, 3), FLOATS(f, 1)}, *b[] = {FLOATS(f, 3), wide}, *d[] = {wide, wide};
        assert_int_equal(bp_tensor_dtype(bp_call1(f->c, g, 2, a)), BP_F32);
        assert_int_equal(bp_tensor_dtype(bp_call1(f->c, g, 2, b)), BP_F64);
        assert_int_equal(bp_tensor_dtype(bp_call1(f->c, g, 2, d)), BP_F64);
    }
    bp_callable_unref(g);
}

/* -- C6.5: nesting and recursion ----------------------------------------------------------------------------------- */

static bp_callable *itself, *other;
static int depth_left;

static void falls(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_add(c, bp_arg(f, 0, "x"), 1);
    bp_return(f, --depth_left > 0 ? bp_call1(c, itself, 1, &x) : x);
    depth_left++;
}

static void by_another(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, bp_call1(c, other, 1, &x));
}

static void back_again(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, bp_call1(c, itself, 1, &x));
}

static void c6_5_what_calls_itself_is_inlined_to_a_depth_of_64(void **state)
{
    fixture *f = *state;
    itself = COMPILE(f, falls);
    bp_tensor *x = FLOATS(f, 0);
    depth_left = 65; /* the call, and 64 inside */
    for (int i = 0; i < 2; i++)
        EXPECT_FLOATS(f, bp_call1(f->c, itself, 1, &x), 65);
    assert_int_equal(stats(f, itself).graphs, 1);
    assert_int_equal(stats(f, itself).eager_calls, 0);
    bp_reset(f->c);
    depth_left = 66;
    for (int i = 0; i < 2; i++) {
        assert_null(bp_call1(f->c, itself, 1, &x));
        assert_contains(bp_error_text(f->c), "callables are nested 64 deep under capture");
        bp_error_clear(f->c);
    }
    assert_int_equal(depth_left, 66);
    bp_callable_unref(itself);
}

static void c6_5_deeper_recursion_runs_eagerly_where_errors_are_suppressed(void **state)
{
    fixture *f = *state;
    assert_int_equal(bp_set_config(f->c, "suppress_errors", "yes"), BP_OK);
    itself = COMPILE(f, falls);
    depth_left = 100;
    EXPECT_FLOATS(f, CALL(f, itself, FLOATS(f, 0)).at[0], 100);
    bp_callable_unref(itself);
}

static void expect_endless(fixture *f, bp_callable *g, const char *words)
{
    bp_tensor *x = FLOATS(f, 0);
    for (int i = 0; i < 2; i++) {
        depth_left = INT32_MAX;
        assert_null(bp_call1(f->c, g, 1, &x));
        assert_contains(bp_error_text(f->c), words);
        bp_error_clear(f->c);
    }
    EXPECT_FLOATS(f, x, 0);
}

static void c6_5_endless_recursion_is_an_error(void **state)
{
    fixture *f = *state;
    for (int suppressed = 0; suppressed < 2; suppressed++) {
        const char *words = suppressed ? "calls itself without end" : "nested 64 deep";
        assert_int_equal(bp_set_config(f->c, "suppress_errors", suppressed ? "yes" : "no"), BP_OK);
        itself = COMPILE(f, falls);
        expect_endless(f, itself, words);
        bp_callable_unref(itself);
        itself = COMPILE(f, by_another);
        other = COMPILE(f, back_again);
        expect_endless(f, itself, words);
        expect_endless(f, other, words);
        bp_callable_unref(other);
        bp_callable_unref(itself);
    }
    bp_compile_options off = {.disable = 1};
    itself = bp_compile(f->c, falls, &off);
    expect_endless(f, itself, "calls itself without end");
    bp_callable_unref(itself);
}

static void c6_5_the_backend_of_an_inlined_callable_is_not_asked_and_the_log_says_so(void **state)
{
    (void)state;
    setenv("BACKPLANE_LOGS", "capture", 1);
    fixture *f = fixture_new();
    unsetenv("BACKPLANE_LOGS");
    bp_compile_options o = {.backend_fn = doubles};
    runs = 0;
    depth_left = 1;
    other = bp_compile_at(f->c, falls, &o, sizeof o, "falls", __FILE__, __LINE__);
    bp_callable *g = COMPILE(f, by_another);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 3)).at[0], 4);
    assert_int_equal(runs, 0);
    assert_int_equal(stats(f, other).compiles, 0);
    assert_true(said(f, "\"falls\" is inlined; its backend"));
    bp_callable_unref(g);
    bp_callable_unref(other);
    fixture_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        T(c1_4_who_writes_its_input_in_place_shares_code_that_never_does),
        T(c6_4_paths_of_another_number_of_results_name_both_lines),
        T(c6_4_paths_of_another_type_name_both_lines),
        T(c6_4_entries_and_variants_may_differ),
        T(c6_5_what_calls_itself_is_inlined_to_a_depth_of_64),
        T(c6_5_deeper_recursion_runs_eagerly_where_errors_are_suppressed),
        T(c6_5_endless_recursion_is_an_error),
        cmocka_unit_test(c6_5_the_backend_of_an_inlined_callable_is_not_asked_and_the_log_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
