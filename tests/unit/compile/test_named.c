/* Programs that a capture must get right, each by its plain name. */
#include "tests/unit/compile/fixture.h"
#include <math.h>

static uint32_t count_of(fixture *f, const char *words)
{
    uint32_t n = 0;
    for (const char *p = buf_text(&f->log); (p = strstr(p, words)); p++)
        n++;
    return n;
}

/* -- branches that need different prefix values -------------------------------------------------------------------- */

static void two_prefixes(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *m = bp_view_default(c, x, BP_DIMS(2, 2));
    bp_tensor *product = bp_mm(c, m, m), *cheap = bp_mul(c, m, 3);
    if (bp_is_true(c, bp_gt(c, bp_sum(c, x), 0)))
        bp_return(f, cheap);
    else
        bp_return(f, bp_add(c, product, 1));
}

static void branches_need_different_prefix_values_one_cheap_one_a_matmul(void **state)
{
    fixture *f = *state;
    for (int first = 0; first < 2; first++) {
        bp_callable *g = COMPILE(f, two_prefixes);
        for (int i = 0; i < 6; i++) {
            if ((i + first) % 2)
                EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1, 2, 3, 4)).at[0], 3, 6, 9, 12);
            else
                EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, -1, -2, -3, -4)).at[0], 8, 11, 16, 23);
        }
        assert_int_equal(stats(f, g).captures, 2);
        assert_int_equal(stats(f, g).eager_calls, 0);
        assert_int_equal(stats(f, g).growths, first ? 1 : 0); /* the matmul is handed on, the product by 3 is not */
        bp_callable_unref(g);
    }
}

/* -- a predicate at a rounding boundary ---------------------------------------------------------------------------- */

/* The graph's first result is one unit in the last place higher. */
static bp_status run_higher(void *state, bp_run *r)
{
    bp_view v;
    bp_status st = bp_run_compiled(r, state);
    if (st == BP_OK && bp_run_empty(r, 0, &v) == BP_OK && v.dtype == BP_F32)
        *(float *)v.data = nextafterf(*(float *)v.data, INFINITY);
    return st;
}

static void drop_graph(void *state)
{
    bp_compiled_unref(state);
}

static bp_compiled *higher(bp_graph_module *gm, const bp_inputs *in)
{
    (void)in;
    return bp_compiled_new(gm, run_higher, drop_graph, bp_forward(gm));
}

static void above_one(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *s = bp_sum(c, x);
    bp_return(f, bp_full(c, BP_DIMS(2), bp_item_float(c, s) > 1 ? 7.0 : -7.0));
}

static void a_predicate_at_a_rounding_boundary_goes_the_way_of_what_was_compiled(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = higher};
    bp_callable *g = bp_compile(f->c, above_one, &o);
    for (int i = 0; i < 4; i++) /* eager's sum is 1; the compiled one lies above it */
        assert_true(at(f, CALL(f, g, FLOATS(f, 0.5, 0.5)).at[0], 1) > 0);
    assert_int_equal(stats(f, g).disagreements, 1);
    assert_int_equal(stats(f, g).captures, 2);
    bp_callable_unref(g);
}

/* -- in place before a break, then a failing second segment -------------------------------------------------------- */

static void writes_then_branches(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_arg(f, 1, "y");
    bp_add_inplace(c, x, 1);
    bp_mul_inplace(c, bp_slice(c, y, .start = BP_SCALAR(1)), 10);
    if (bp_is_true(c, bp_gt(c, bp_sum(c, x), 0)))
        bp_return(f, bp_cumsum(c, bp_add(c, x, y), 0));
    else
        bp_return(f, bp_cumsum(c, bp_sub(c, x, y), 0));
}

static int fails_to_run;

static bp_status run_or_fail(void *state, bp_run *r)
{
    return fails_to_run ? bp_run_fail(r, BP_UNAVAILABLE, "out of order") : bp_run_compiled(r, state);
}

static bp_compiled *breakable(bp_graph_module *gm, const bp_inputs *in)
{
    (void)in;
    for (uint32_t i = 0; i < bp_node_count(gm); i++)
        if (!strcmp(bp_node_target(gm, bp_node_at(gm, i)), "aten.cumsum.default"))
            return bp_compiled_new(gm, run_or_fail, drop_graph, bp_forward(gm));
    return bp_forward(gm);
}

static void expect_both_outcomes(fixture *f, bp_callable *g)
{
    bp_tensor *x = FLOATS(f, 1, 2), *y = FLOATS(f, 3, 4);
    EXPECT_FLOATS(f, CALL(f, g, x, y).at[0], 5, 48);
    EXPECT_FLOATS(f, x, 2, 3);
    EXPECT_FLOATS(f, y, 3, 40);
    x = FLOATS(f, -5, -6), y = FLOATS(f, 3, 4);
    EXPECT_FLOATS(f, CALL(f, g, x, y).at[0], -7, -52);
    EXPECT_FLOATS(f, x, -4, -5);
    EXPECT_FLOATS(f, y, 3, 40);
}

static void writes_on_an_input_and_a_view_survive_a_second_segment_that_fails(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = breakable};
    bp_callable *g = bp_compile(f->c, writes_then_branches, &o);
    for (fails_to_run = 0; fails_to_run < 2; fails_to_run++)
        expect_both_outcomes(f, g);
    bp_callable_unref(g);
    fails_to_run = 1;
    assert_int_equal(bp_set_config(f->c, "fallback", "error"), BP_OK);
    g = bp_compile(f->c, writes_then_branches, &(bp_compile_options){.backend_fn = breakable, .user = f});
    for (int i = 0; i < 2; i++) {
        bp_tensor *in[] = {i ? FLOATS(f, 1, 2) : FLOATS(f, -5, -6), FLOATS(f, 3, 4)};
        assert_null(bp_call1(f->c, g, 2, in));
        assert_contains(bp_error_text(f->c), "out of order");
        bp_error_clear(f->c);
        assert_true(at(f, in[0], 0) == (i ? 1 : -5));
        EXPECT_FLOATS(f, in[1], 3, 4);
    }
    bp_callable_unref(g);
}

/* -- numbers ------------------------------------------------------------------------------------------------------- */

static void scales(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, bp_mul(c, x, bp_item_float(c, bp_sum(c, x))));
}

static void a_float_item_as_an_argument_over_100_calls(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, scales);
    for (int i = 1; i <= 100; i++) {
        float v = (float)i;
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, v, v)).at[0], 2 * v * v, 2 * v * v);
    }
    assert_true(stats(f, g).compiles <= 9);
    assert_int_equal(count_of(f, "different values"), 1);
    assert_int_equal(stats(f, g).opened, 1);
    bp_callable_unref(g);
}

static void counts_down(bp_ctx *c, bp_frame *f)
{
    bp_tensor *err = bp_arg(f, 0, "err"), *y = bp_arg(f, 1, "y");
    while (bp_item_float(c, err) > 0.5) {
        err = bp_sub(c, err, 1);
        y = bp_add(c, y, 2);
    }
    bp_return(f, y);
}

static void while_item_above_tol_with_1_to_200_rounds(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, counts_down);
    for (int n = 1; n <= 200; n++) {
        bp_scope_begin(f->c);
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, (float)n), FLOATS(f, 1)).at[0], 1 + 2 * (float)n);
        bp_scope_end(f->c);
    }
    assert_true(stats(f, g).compiles <= 4);
    assert_true(stats(f, g).captures <= 9);
    assert_true(count_of(f, "different values") <= 2);
    bp_callable_unref(g);
}

static void adds_one(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, bp_add(c, x, 1));
    bp_return(f, bp_add(c, x, 1.0));
}

static void i64_plus_1_stays_and_plus_1_0_becomes_float(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, adds_one);
    int64_t n = 1, big = (1ll << 53) + 1, got;
    float wide;
    for (int i = 0; i < 2; i++) {
        bp_outputs o = CALL(f, g, bp_tensor_from(f->c, BP_I64, 1, &n, &big));
        assert_int_equal(bp_tensor_dtype(o.at[0]), BP_I64);
        assert_int_equal(bp_tensor_dtype(o.at[1]), BP_F32);
        assert_int_equal(bp_tensor_read(f->c, o.at[0], &got, sizeof got), BP_OK);
        assert_int_equal(bp_tensor_read(f->c, o.at[1], &wide, sizeof wide), BP_OK);
        assert_true(got == big + 1);
        assert_true(wide == 9007199254740992.0f);
    }
    bp_callable_unref(g);
}

/* -- random numbers ------------------------------------------------------------------------------------------------ */

static void draws_before_a_break(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *r = bp_rand(c, BP_DIMS(2));
    bp_return(f, bp_is_true(c, bp_gt(c, bp_sum(c, x), 0)) ? bp_add(c, x, r) : bp_sub(c, x, r));
}

static void rand_before_a_break_gives_the_same_on_a_hit_and_a_miss(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, draws_before_a_break);
    float first[2][2], again[2];
    for (int i = 0; i < 6; i++) {
        bp_tensor *x = i % 2 ? FLOATS(f, -3, -4) : FLOATS(f, 3, 4);
        bp_manual_seed(f->c, 5);
        bp_tensor *y = CALL(f, g, x).at[0];
        assert_int_equal(bp_tensor_read(f->c, y, i < 2 ? first[i] : again, sizeof again), BP_OK);
        if (i >= 2)
            assert_memory_equal(first[i % 2], again, sizeof again);
        assert_int_equal(bp_generator_offset(f->c), 2);
    }
    assert_true(first[0][0] - 3 == -(first[1][0] + 3));
    assert_int_equal(stats(f, g).captures, 2);
    bp_callable_unref(g);
}

/* -- honesty ------------------------------------------------------------------------------------------------------- */

static void loops_on_an_error(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *s = bp_sum(c, x);
    while (bp_is_true(c, bp_lt(c, s, 60)))
        s = bp_add(c, s, bp_select(c, x, 0, 5));
    bp_return(f, s);
}

static void an_error_inside_a_while_loop_ends_it(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, loops_on_an_error);
    for (int i = 0; i < 3; i++) {
        bp_tensor *x = FLOATS(f, 1, 2);
        assert_null(bp_call1(f->c, g, 1, &x));
        assert_contains(bp_error_text(f->c), "index 5 is out of range");
        bp_error_clear(f->c);
    }
    assert_int_equal(stats(f, g).captures, 1); /* a leaf knows such calls */
    bp_callable_unref(g);
}

typedef struct { int64_t factor; } settings;

static void scales_by_settings(bp_ctx *c, bp_frame *f)
{
    const settings *s = bp_user(f);
    bp_return(f, bp_mul(c, bp_arg(f, 0, "x"), s->factor));
}

static void two_structs_over_one_function_are_two_codes(void **state)
{
    fixture *f = *state;
    settings two = {2}, five = {5};
    bp_compile_options a = {.backend_fn = table_backend, .user = &two};
    bp_compile_options b = {.backend_fn = table_backend, .user = &five};
    bp_callable *g = bp_compile(f->c, scales_by_settings, &a), *h = bp_compile(f->c, scales_by_settings, &b);
    for (int i = 0; i < 3; i++) {
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 3)).at[0], 6);
        EXPECT_FLOATS(f, CALL(f, h, FLOATS(f, 3)).at[0], 15);
    }
    assert_int_equal(stats(f, g).captures, 1);
    assert_int_equal(stats(f, h).captures, 1);
    bp_callable_unref(g);
    bp_callable_unref(h);
}

static bp_tensor *global;

static void stores_in_a_global(bp_ctx *c, bp_frame *f)
{
    bp_tensor *y = bp_add(c, bp_arg(f, 0, "x"), 1);
    if (!global)
        global = bp_keep(c, y);
    bp_return(f, y);
}

static void a_tensor_stored_in_a_global_is_reported(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, stores_in_a_global);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 3)).at[0], 4);
    assert_int_equal(count_of(f, "is stored beyond the call?"), 1);
    assert_int_equal(count_of(f, "test_named.c:"), 1);
    bp_tensor_unref(global);
    global = NULL;
    bp_callable_unref(g);
}

static void asks_seventy_times(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = x;
    for (int i = 0; i < 70; i++)
        y = bp_is_true(c, bp_gt(c, bp_sum(c, y), (float)i)) ? bp_add(c, y, 1) : y;
    bp_return(f, y);
}

static void seventy_breaks_open_the_65th(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, asks_seventy_times);
    for (int i = 0; i < 4; i++)
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1)).at[0], 71);
    assert_int_equal(stats(f, g).captures, 1);
    assert_int_equal(stats(f, g).eager_calls, 4); /* resumed at the 65th */
    assert_int_equal(count_of(f, "a path of more than 64 breaks"), 1);
    bp_callable_unref(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        T(branches_need_different_prefix_values_one_cheap_one_a_matmul),
        T(a_predicate_at_a_rounding_boundary_goes_the_way_of_what_was_compiled),
        T(writes_on_an_input_and_a_view_survive_a_second_segment_that_fails),
        T(a_float_item_as_an_argument_over_100_calls),
        T(while_item_above_tol_with_1_to_200_rounds),
        T(i64_plus_1_stays_and_plus_1_0_becomes_float),
        T(rand_before_a_break_gives_the_same_on_a_hit_and_a_miss),
        T(an_error_inside_a_while_loop_ends_it),
        T(two_structs_over_one_function_are_two_codes),
        T(a_tensor_stored_in_a_global_is_reported),
        T(seventy_breaks_open_the_65th),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
