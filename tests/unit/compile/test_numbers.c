/* Numbers that stay symbolic (C2.5): bp_item_sym breaks nothing, and operators take what it gives. */
#include "tests/unit/compile/fixture.h"

static void scaled(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *w = bp_arg(f, 1, "w");
    bp_scalar s = bp_item_sym(c, bp_sum(c, w));
    bp_return(f, bp_add(c, bp_mul(c, x, s), x, .alpha = s));
}

static void c2_5_a_number_that_stays_symbolic_breaks_nothing(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, scaled);
    for (int i = 1; i < 20; i++) {
        float s = (float)i;
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1, -2), FLOATS(f, s, 1)).at[0], 2 * (s + 1), -4 * (s + 1));
    }
    assert_int_equal(stats(f, g).captures, 1);
    assert_int_equal(stats(f, g).compiles, 1);
    assert_int_equal(stats(f, g).break_sites, 0);
    assert_int_equal(stats(f, g).hits, 18);
    assert_int_equal(stats(f, g).slices, 0);
    const char *table = buf_text(&f->tables), *item = strstr(table, "aten._local_scalar_dense.default");
    assert_non_null(item);
    assert_null(strstr(item + 1, "aten._local_scalar_dense.default"));
    assert_contains(table, "(x, _local_scalar_dense)");
    assert_contains(table, "{'alpha': _local_scalar_dense}");
    bp_callable_unref(g);
}

static void kinds(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, bp_mul(c, x, bp_item_sym(c, bp_arg(f, 1, "s"))));
}

static bp_tensor *one(fixture *f, bp_dtype d, const void *data)
{
    return bp_tensor_from(f->c, d, 0, NULL, data);
}

static void c2_5_a_symbolic_number_promotes_as_its_tensor_s_kind(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, kinds);
    const int64_t n = 2, two[2] = {3, 4}, i = 2;
    const uint8_t b = 1;
    const double d = 0.5;
    bp_tensor *x = bp_tensor_from(f->c, BP_I64, 1, &n, two);
    bp_tensor *by_int = CALL(f, g, x, one(f, BP_I64, &i)).at[0];
    assert_int_equal(bp_tensor_dtype(by_int), BP_I64);
    bp_tensor *by_bool = CALL(f, g, x, one(f, BP_BOOL, &b)).at[0];
    assert_int_equal(bp_tensor_dtype(by_bool), BP_I64);
    bp_tensor *by_float = CALL(f, g, x, one(f, BP_F64, &d)).at[0];
    assert_int_equal(bp_tensor_dtype(by_float), BP_F32); /* a number, not a 0-d f64 tensor */
    EXPECT_FLOATS(f, by_float, 1.5f, 2);
    assert_int_equal(stats(f, g).entries, 3);
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

static void a_break_between(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *w = bp_arg(f, 1, "w");
    bp_scalar s = bp_item_sym(c, bp_mean(c, w));
    x = bp_mul(c, x, s);
    if (bp_is_true(c, bp_lt(c, bp_sum(c, x), 0)))
        x = bp_sub(c, x, s);
    bp_return(f, bp_add(c, x, s));
}

static void c2_5_a_symbolic_number_is_read_anew_behind_a_break(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, a_break_between);
    for (int i = 1; i < 6; i++) {
        float s = (float)i;
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1), FLOATS(f, s)).at[0], 2 * s);
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, -1), FLOATS(f, s)).at[0], -s);
    }
    assert_int_equal(stats(f, g).captures, 2);
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

static void c2_5_an_eager_resumption_has_the_symbolic_numbers_of_its_prefix(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, a_break_between);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1), FLOATS(f, 2)).at[0], 4);
    bp_set_stance(f->c, "eager_on_recompile");
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, -1), FLOATS(f, 2)).at[0], -2);
    assert_int_equal(stats(f, g).resumed, 1);
    bp_callable_unref(g);
}

static int steps;

static void count_step(bp_ctx *c, bp_frame *f)
{
    (void)c;
    (void)f;
    steps++;
}

static void a_step_between(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_scalar s = bp_item_sym(c, bp_select(c, x, 0, 0)), all = bp_item_sym(c, bp_sum(c, x));
    bp_add_inplace(c, x, all);
    bp_args none = {0};
    bp_outputs out = {0};
    bp_call(c, bp_user(f), &none, &out);
    if (bp_is_true(c, bp_lt(c, bp_sum(c, x), 0)))
        bp_mul_inplace(c, x, s);
    bp_return(f, bp_add(c, bp_mul(c, x, s), all));
}

static void c2_5_a_symbolic_number_outlives_an_opaque_step(void **state)
{
    fixture *f = *state;
    bp_callable *step = bp_compile(f->c, count_step, &(bp_compile_options){.disable = 1});
    bp_callable *g = bp_compile(f->c, a_step_between,
                                &(bp_compile_options){.backend_fn = table_backend, .user = step});
    steps = 0;
    for (int i = 1; i < 5; i++) {
        float a = (float)i, all = a + 1;
        bp_tensor *x = FLOATS(f, a, 1);
        EXPECT_FLOATS(f, CALL(f, g, x).at[0], (a + all) * a + all, (1 + all) * a + all);
        EXPECT_FLOATS(f, x, a + all, 1 + all);
    }
    assert_int_equal(steps, 4);
    assert_int_equal(stats(f, g).eager_calls, 0);
    assert_true(stats(f, g).hits >= 3);
    bp_set_stance(f->c, "eager_on_recompile");
    bp_tensor *x = FLOATS(f, -2, 1); /* -1 in all: -3, 0 */
    EXPECT_FLOATS(f, CALL(f, g, x).at[0], -3 * 4 - 1, 0 - 1);
    bp_set_stance(f->c, "default");
    x = FLOATS(f, -2, 1);
    EXPECT_FLOATS(f, CALL(f, g, x).at[0], -3 * 4 - 1, 0 - 1);
    assert_int_equal(steps, 6);
    bp_callable_unref(g);
    bp_callable_unref(step);
}

static void sized(bp_ctx *c, bp_frame *f)
{
    bp_scalar n = bp_item_sym(c, bp_sum(c, bp_arg(f, 0, "n")));
    bp_return(f, bp_full(c, BP_DIMS(BP_DIM(n)), 2.0));
}

static void filled(bp_ctx *c, bp_frame *f)
{
    bp_scalar n = bp_item_sym(c, bp_sum(c, bp_arg(f, 0, "n")));
    bp_return(f, bp_roll(c, bp_full(c, BP_DIMS(3), n, .dtype = BP_F32), BP_DIMS(n)));
}

static bp_tensor *ints(fixture *f, int64_t v)
{
    const int64_t n = 1;
    return bp_tensor_from(f->c, BP_I64, 1, &n, &v);
}

static void c2_5_a_number_that_only_a_run_tells_is_a_size(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, sized);
    for (int64_t n = 1; n < 4; n++)
        assert_int_equal(bp_tensor_numel(CALL(f, g, ints(f, n)).at[0]), n);
    assert_int_equal(stats(f, g).captures, 1);
    assert_int_equal(stats(f, g).graphs, 1);
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

static void c2_5_a_symint_argument_takes_a_symbolic_number(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, filled);
    for (int64_t n = 1; n < 4; n++)
        assert_float_equal(at(f, CALL(f, g, ints(f, n)).at[0], 0), (float)n, 0);
    assert_int_equal(stats(f, g).captures, 1);
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

static void plain(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_scalar s = bp_item_sym(c, bp_sum(c, x));
    bp_return(f, bp_isclose(c, x, x, .rtol = s));
}

static void c2_5_a_plain_number_s_place_refuses_a_symbolic_one_and_eager_answers(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, plain);
    bp_tensor *out = CALL(f, g, FLOATS(f, 1)).at[0];
    assert_int_equal(bp_is_true(f->c, out), 1);
    buf text = {0};
    bp_print_explain(f->c, g, fixture_append, &text);
    assert_contains(buf_text(&text), "ask for it with bp_item_int or bp_item_float");
    buf_fini(&text);
    bp_callable_unref(g);
}

static bp_scalar stored;

static void stores(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    stored = bp_item_sym(c, bp_sum(c, x));
    bp_return(f, bp_mul(c, x, stored));
}

static void uses_stored(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_mul(c, bp_arg(f, 0, "x"), stored));
}

static void c2_5_a_symbolic_number_that_is_kept_beyond_its_call_is_an_error(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, stores), *h = COMPILE(f, uses_stored);
    CALL(f, g, FLOATS(f, 1, 2));
    assert_null(bp_mul(f->c, FLOATS(f, 1), stored));
    assert_contains(bp_error_text(f->c), "a symbolic number of a capture that has ended");
    bp_error_clear(f->c);
    bp_tensor *x = FLOATS(f, 1);
    assert_null(bp_call1(f->c, h, 1, &x));
    assert_contains(bp_error_text(f->c), "a symbolic number of a capture that has ended");
    bp_error_clear(f->c);
    bp_callable_unref(g);
    bp_callable_unref(h);
}

static void c2_5_eager_reads_the_number_at_once(void **state)
{
    fixture *f = *state;
    bp_scalar s = bp_item_sym(f->c, FLOATS(f, 2.5f));
    assert_int_equal(s.kind, BP_SCALAR_FLOAT);
    assert_int_equal(s.sym, 0);
    assert_float_equal(s.v.f[0], 2.5, 0);
    assert_int_equal(bp_item_sym(f->c, ints(f, -7)).v.i, -7);
    bp_item_sym(f->c, FLOATS(f, 1, 2));
    assert_contains(bp_error_text(f->c), "bp_item_sym: expected a tensor of one element");
    bp_error_clear(f->c);
    bp_item_sym(f->c, NULL);
    assert_contains(bp_error_text(f->c), "bp_item_sym: the tensor is NULL");
    bp_error_clear(f->c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        T(c2_5_a_number_that_stays_symbolic_breaks_nothing),
        T(c2_5_a_symbolic_number_promotes_as_its_tensor_s_kind),
        T(c2_5_a_symbolic_number_is_read_anew_behind_a_break),
        T(c2_5_an_eager_resumption_has_the_symbolic_numbers_of_its_prefix),
        T(c2_5_a_symbolic_number_outlives_an_opaque_step),
        T(c2_5_a_number_that_only_a_run_tells_is_a_size),
        T(c2_5_a_symint_argument_takes_a_symbolic_number),
        T(c2_5_a_plain_number_s_place_refuses_a_symbolic_one_and_eager_answers),
        T(c2_5_a_symbolic_number_that_is_kept_beyond_its_call_is_an_error),
        T(c2_5_eager_reads_the_number_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
