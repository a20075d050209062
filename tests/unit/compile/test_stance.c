/* Stances (F066, C6.5): what calls may do, and that an unseen outcome counts as "would compile". */
#include "tests/unit/compile/fixture.h"

static int inits, compiles;

static bp_status count_init(const bp_host *h)
{
    (void)h;
    inits++;
    return BP_OK;
}

static bp_compiled *count_compile(bp_graph_module *gm, const bp_inputs *in)
{
    (void)in;
    compiles++;
    return bp_forward(gm);
}

static void add_one(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_add(c, bp_arg(f, 0, "x"), 1));
}

static void by_sign(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_add_inplace(c, x, 1);
    if (bp_is_true(c, bp_lt(c, bp_sum(c, x), 0)))
        bp_mul_inplace(c, x, -1);
    bp_return(f, bp_add(c, x, 1));
}

static bp_status call(fixture *f, bp_callable *g, bp_tensor *x, bp_outputs *out)
{
    bp_value v = bp_arg_of_tensor(x);
    *out = (bp_outputs){0};
    return bp_call(f->c, g, &(bp_args){&v, 1}, out);
}

static void expect_error(fixture *f, bp_callable *g, bp_tensor *x, const char *words)
{
    bp_outputs out;
    assert_int_equal(call(f, g, x, &out), BP_FAILED_PRECONDITION);
    assert_contains(bp_error_text(f->c), words);
    bp_error_clear(f->c);
}

static void F066_default_is_the_stance_and_each_setting_gives_the_former(void **state)
{
    fixture *f = *state;
    assert_string_equal(bp_stance(f->c), "default");
    assert_string_equal(bp_set_stance(f->c, "force_eager"), "default");
    const char *before = bp_set_stance(f->c, "force_backend=eager");
    assert_string_equal(before, "force_eager");
    assert_string_equal(bp_set_stance(f->c, before), "force_backend=eager");
    bp_raise_(f->c, BP_UNKNOWN, "an error is pending");
    assert_string_equal(bp_set_stance(f->c, "default"), "force_eager");
    assert_string_equal(bp_stance(f->c), "default");
    assert_string_equal(bp_set_stance(f->c, NULL), "default");
}

static void F066_an_unknown_stance_is_an_error_that_lists_them(void **state)
{
    fixture *f = *state;
    static const char *const bad[] = {"eager", "force_backend", "force_backend=", "force_eager=x", ""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_null(bp_set_stance(f->c, bad[i]));
        assert_int_equal(bp_error(f->c), BP_INVALID_ARGUMENT);
        assert_contains(bp_error_text(f->c), "\"fail_on_recompile\", \"force_backend=NAME\"");
        bp_error_clear(f->c);
        assert_string_equal(bp_stance(f->c), "default");
    }
}

static void F066_force_eager_asks_no_cache(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, by_sign);
    CALL(f, g, FLOATS(f, 1, 2));
    uint32_t hits = stats(f, g).hits;
    bp_set_stance(f->c, "force_eager");
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1, 2)).at[0], 3, 4);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, -3, -4)).at[0], 3, 4);
    assert_int_equal(stats(f, g).hits, hits);
    assert_int_equal(stats(f, g).captures, 1);
    bp_set_stance(f->c, "default");
    CALL(f, g, FLOATS(f, 1, 2));
    assert_int_equal(stats(f, g).hits, hits + 1);
    bp_callable_unref(g);
}

static void F066_eager_on_recompile_runs_what_is_compiled_and_compiles_nothing(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, add_one);
    bp_set_stance(f->c, "eager_on_recompile");
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1, 2)).at[0], 2, 3);
    assert_int_equal(stats(f, g).captures, 0);
    bp_set_stance(f->c, "default");
    CALL(f, g, FLOATS(f, 1, 2));
    bp_set_stance(f->c, "eager_on_recompile");
    CALL(f, g, FLOATS(f, 1, 2));
    assert_int_equal(stats(f, g).hits, 1);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1, 2, 3)).at[0], 2, 3, 4);
    assert_int_equal(stats(f, g).eager_calls, 2);
    assert_int_equal(stats(f, g).compiles, 1);
    bp_callable_unref(g);
}

static void F066_fail_on_recompile_names_the_function_and_the_guards_that_failed(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, add_one);
    bp_set_stance(f->c, "fail_on_recompile");
    expect_error(f, g, FLOATS(f, 1, 2), "nothing is compiled yet");
    bp_set_stance(f->c, "default");
    CALL(f, g, FLOATS(f, 1, 2));
    bp_set_stance(f->c, "fail_on_recompile");
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1, 2)).at[0], 2, 3);
    expect_error(f, g, FLOATS(f, 1, 2, 3), "fixture.h:");
    expect_error(f, g, FLOATS(f, 1, 2, 3), "the stance is \"fail_on_recompile\"");
    expect_error(f, g, FLOATS(f, 1, 2, 3), "    - tensor 'x' size mismatch at index 0. expected 2, actual 3");
    assert_int_equal(stats(f, g).captures, 1);
    bp_callable_unref(g);
}

static void F066_force_backend_resolves_again_and_fires_init(void **state)
{
    fixture *f = *state;
    inits = compiles = 0;
    assert_int_equal(bp_register_backend_as(f->c, "counting", count_compile, count_init, "debug"), BP_OK);
    bp_callable *g = COMPILE(f, add_one), *off;
    off = bp_compile(f->c, add_one, &(bp_compile_options){.disable = 1});
    CALL(f, g, FLOATS(f, 1, 2));
    bp_set_stance(f->c, "force_backend=counting");
    assert_int_equal(inits, 0);
    CALL(f, off, FLOATS(f, 1, 2));
    assert_int_equal(inits, 0);
    for (int i = 0; i < 3; i++)
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1, 2)).at[0], 2, 3);
    assert_int_equal(inits, 1);
    assert_int_equal(compiles, 1);
    assert_int_equal(stats(f, g).hits, 2);
    bp_set_stance(f->c, "default");
    CALL(f, g, FLOATS(f, 1, 2));
    assert_int_equal(stats(f, g).hits, 1);
    bp_set_stance(f->c, "force_backend=counting");
    CALL(f, g, FLOATS(f, 1, 2));
    assert_int_equal(inits, 2);
    assert_int_equal(compiles, 1);
    bp_callable_unref(g);
    bp_callable_unref(off);
}

static void F066_an_unknown_forced_backend_is_the_error_of_the_first_call(void **state)
{
    fixture *f = *state;
    bp_outputs out;
    bp_callable *g = COMPILE(f, add_one);
    assert_non_null(bp_set_stance(f->c, "force_backend=nosuch"));
    assert_true(call(f, g, FLOATS(f, 1), &out) != BP_OK);
    assert_contains(bp_error_text(f->c), "\"nosuch\"");
    assert_contains(bp_error_text(f->c), "forcing the backend");
    bp_error_clear(f->c);
    bp_set_stance(f->c, "default");
    CALL(f, g, FLOATS(f, 1));
    bp_callable_unref(g);
}

/* -- C6.5 ---------------------------------------------------------------------------------------------------------- */

static void sets_a_stance(bp_ctx *c, bp_frame *f)
{
    bp_set_stance(c, "force_eager");
    bp_return(f, bp_add(c, bp_arg(f, 0, "x"), 1));
}

static void c6_5_a_stance_set_inside_a_captured_function_is_an_error(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, sets_a_stance);
    expect_error(f, g, FLOATS(f, 1), "is set inside a function that a callable runs");
    assert_string_equal(bp_stance(f->c), "default");
    bp_set_stance(f->c, "force_eager");
    expect_error(f, g, FLOATS(f, 1), "is set inside a function that a callable runs");
    bp_callable_unref(g);
}

static void c6_5_an_unseen_outcome_would_compile(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, by_sign);
    CALL(f, g, FLOATS(f, 1, 2));
    bp_set_stance(f->c, "fail_on_recompile");
    bp_tensor *x = FLOATS(f, -3, -4);
    expect_error(f, g, x, "gave true, which it has not given before");
    EXPECT_FLOATS(f, x, -3, -4);
    bp_set_stance(f->c, "eager_on_recompile");
    EXPECT_FLOATS(f, CALL(f, g, x).at[0], 3, 4);
    EXPECT_FLOATS(f, x, 2, 3);
    assert_int_equal(stats(f, g).captures, 1);
    assert_int_equal(stats(f, g).compiles, 2);
    bp_set_stance(f->c, "default");
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, -3, -4)).at[0], 3, 4);
    assert_int_equal(stats(f, g).captures, 2);
    bp_callable_unref(g);
}

static void F066_a_stance_is_of_the_runtime_whichever_context_sets_it(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, add_one);
    bp_ctx *other = bp_ctx_new(f->rt);
    bp_set_stance(other, "fail_on_recompile");
    expect_error(f, g, FLOATS(f, 1), "nothing is compiled yet");
    bp_ctx_destroy(other);
    bp_callable_unref(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        T(F066_default_is_the_stance_and_each_setting_gives_the_former),
        T(F066_an_unknown_stance_is_an_error_that_lists_them),
        T(F066_force_eager_asks_no_cache),
        T(F066_eager_on_recompile_runs_what_is_compiled_and_compiles_nothing),
        T(F066_fail_on_recompile_names_the_function_and_the_guards_that_failed),
        T(F066_force_backend_resolves_again_and_fires_init),
        T(F066_an_unknown_forced_backend_is_the_error_of_the_first_call),
        T(c6_5_a_stance_set_inside_a_captured_function_is_an_error),
        T(c6_5_an_unseen_outcome_would_compile),
        T(F066_a_stance_is_of_the_runtime_whichever_context_sets_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
