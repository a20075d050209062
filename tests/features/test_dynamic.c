/* F069, F070: sizes that change from call to call, and numbers and sizes that data tell. */
#include "tests/lib/world.h"
#include <stdlib.h>

static world *open_world(void)
{
    world *w = world_open("");
    bp_scope_begin(w->c);
    return w;
}

static void close_world(world *w)
{
    bp_scope_end(w->c);
    world_close(w);
}

static bp_callable *compiled(world *w, bp_fn fn)
{
    bp_compile_options o = {.backend = "eager", .isolate = 1};
    bp_callable *g = bp_compile_at(w->c, fn, &o, sizeof o, "fn", __FILE__, __LINE__);
    world_ok(w, bp_error(w->c));
    return g;
}

static bp_tensor *ones(world *w, int64_t n)
{
    return bp_add(w->c, bp_tensor_from(w->c, BP_F32, 1, &n, NULL), 1);
}

static bp_callable_stats stats(world *w, const bp_callable *g)
{
    bp_callable_stats s = {.size = sizeof s};
    world_ok(w, bp_stats(w->c, g, &s));
    return s;
}

static void append(void *arg, const char *text, size_t n)
{
    buf_add(arg, text, n);
}

static void expect_guard(world *w, const bp_callable *g, const char *words)
{
    buf text = {0};
    world_ok(w, bp_print_guards(w->c, g, append, &text));
    assert_contains(buf_text(&text), words);
    buf_fini(&text);
}

static bp_tensor *call(world *w, bp_callable *g, bp_tensor *x)
{
    bp_tensor *y = bp_call1(w->c, g, 1, &x);
    world_ok(w, bp_error(w->c));
    return y;
}

static void expect_error(world *w, bp_callable *g, bp_tensor *x, const char *words)
{
    assert_null(bp_call1(w->c, g, 1, &x));
    assert_int_equal(bp_error(w->c), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_text(w->c), words);
    bp_error_clear(w->c);
}

/* -- F069 ---------------------------------------------------------------------------------------------------------- */

static void doubled(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, bp_cat(c, BP_TENSORS(x, x)));
}

static void F069_the_second_size_makes_it_dynamic_and_0_and_1_stand_alone(void **state)
{
    (void)state;
    world *w = open_world();
    bp_callable *g = compiled(w, doubled);
    for (int64_t n = 2; n < 9; n++)
        assert_int_equal(bp_tensor_numel(call(w, g, ones(w, n))), 2 * n);
    assert_int_equal(stats(w, g).captures, 2);
    expect_guard(w, g, "2 <= L['x'].size()[0]");
    call(w, g, ones(w, 1));
    call(w, g, ones(w, 0));
    assert_int_equal(stats(w, g).captures, 4);
    bp_callable_unref(g);
    close_world(w);
}

static void shorter_than_9(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, bp_dim_lt(c, bp_size(c, x, 0), 9) ? bp_mul(c, x, 2) : x);
}

static void F069_marks_have_bounds_and_violations_name_both_sides(void **state)
{
    (void)state;
    world *w = open_world();
    bp_callable *g = compiled(w, shorter_than_9);
    bp_tensor *x = ones(w, 5), *y = ones(w, 5);
    world_ok(w, bp_mark_dynamic(w->c, x, 0, &(bp_mark_options){.min = 2, .max = 20}));
    expect_error(w, g, x, "Not all values of L['x'].size()[0] in the specified range 2 <= L['x'].size()[0] <= 20 "
                          "satisfy the generated guard L['x'].size()[0] <= 8");
    world_ok(w, bp_mark_dynamic(w->c, y, 0, &(bp_mark_options){.min = 2, .max = 8}));
    call(w, g, y);
    call(w, g, ones(w, 8));
    assert_int_equal(stats(w, g).captures, 2);
    expect_guard(w, g, "2 <= L['x'].size()[0] <= 8");
    bp_callable_unref(g);
    close_world(w);
}

static void F069_guards_are_expressions_and_equal_sizes_may_share_a_symbol(void **state)
{
    (void)state;
    world *w = open_world();
    bp_compile_options o = {.backend = "eager", .dynamic = 1};
    bp_callable *g = bp_compile(w->c, doubled, &o), *h = compiled(w, shorter_than_9);
    const int64_t sizes[] = {3, 3};
    bp_tensor *x = bp_tensor_from(w->c, BP_F32, 2, sizes, NULL);
    call(w, g, x);
    expect_guard(w, g, "L['x'].size()[1] == L['x'].size()[0]");
    for (int64_t n = 2; n < 14; n++)
        call(w, h, ones(w, n));
    assert_int_equal(stats(w, h).captures, 3);
    expect_guard(w, h, "L['x'].size()[0] <= 8");
    bp_callable_unref(g);
    bp_callable_unref(h);
    close_world(w);
}

/* -- F070 ---------------------------------------------------------------------------------------------------------- */

static void filled(bp_ctx *c, bp_frame *f)
{
    bp_dim n = BP_DIM(bp_item_sym(c, bp_to(c, bp_sum(c, bp_arg(f, 0, "x")), BP_I64)));
    bp_return(f, bp_full(c, BP_DIMS(n, 2), 1.5));
}

static void F070_an_item_is_a_size(void **state)
{
    (void)state;
    world *w = open_world();
    bp_callable *g = compiled(w, filled);
    for (int v = 0; v < 5; v++)
        assert_int_equal(bp_tensor_numel(call(w, g, bp_mul(w->c, ones(w, 2), v))), 4 * v);
    assert_int_equal(stats(w, g).captures, 1);
    assert_int_equal(stats(w, g).eager_calls, 0);
    bp_callable_unref(g);
    close_world(w);
}

static void at_most_two(bp_ctx *c, bp_frame *f)
{
    bp_tensor *at = bp_nonzero(c, bp_arg(f, 0, "x"));
    bp_check(c, BP_DIM_LE, bp_size(c, at, 0), 2, "at most two");
    bp_return(f, at);
}

static void F070_sizes_from_data_are_symbols_and_runs_check_what_is_required(void **state)
{
    (void)state;
    world *w = open_world();
    world_ok(w, bp_set_config(w->c, "capture_dynamic_output_shape_ops", "yes"));
    bp_callable *g = compiled(w, at_most_two);
    for (int64_t n = 1; n < 3; n++)
        assert_int_equal(bp_tensor_size(call(w, g, bp_slice(w->c, ones(w, 4), .end = BP_SCALAR(n))), 0), n);
    expect_error(w, g, ones(w, 3), "at most two");
    assert_int_equal(stats(w, g).steps, 0);
    bp_callable_unref(g);
    close_world(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(F069_the_second_size_makes_it_dynamic_and_0_and_1_stand_alone),
        cmocka_unit_test(F069_marks_have_bounds_and_violations_name_both_sides),
        cmocka_unit_test(F069_guards_are_expressions_and_equal_sizes_may_share_a_symbol),
        cmocka_unit_test(F070_an_item_is_a_size),
        cmocka_unit_test(F070_sizes_from_data_are_symbols_and_runs_check_what_is_required),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
