/* F061, F071: what is captured whole or not at all, what runs as it is, what only runs, calls inside, and resets. */
#include "tests/lib/world.h"
#include <stdlib.h>

static bp_callable *compiled(world *w, bp_fn fn, const bp_compile_options *options)
{
    bp_callable *g = bp_compile_at(w->c, fn, options, sizeof *options, "fn", __FILE__, __LINE__);
    world_ok(w, bp_error(w->c));
    return g;
}

static bp_callable *eager(world *w, bp_fn fn)
{
    return compiled(w, fn, &(bp_compile_options){.backend = "eager", .isolate = 1});
}

static bp_callable *whole(world *w, bp_fn fn)
{
    return compiled(w, fn, &(bp_compile_options){.backend = "eager", .isolate = 1, .fullgraph = 1});
}

static bp_tensor *ones(world *w, int64_t n)
{
    return bp_ones(w->c, BP_DIMS(n));
}

static bp_callable_stats stats(world *w, const bp_callable *g)
{
    bp_callable_stats s = {.size = sizeof s};
    world_ok(w, bp_stats(w->c, g, &s));
    return s;
}

static void keep_text(void *arg, const char *text, size_t n)
{
    buf_add(arg, text, n);
}

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

static void twice(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_mul(c, bp_arg(f, 0, "x"), 2));
}

static void expect(world *w, bp_callable *g, bp_tensor *x, float value)
{
    float got;
    bp_tensor *out = bp_call1(w->c, g, 1, &x);
    world_ok(w, bp_error(w->c));
    world_ok(w, bp_tensor_read(w->c, bp_select(w->c, out, 0, 0), &got, sizeof got));
    assert_true(got == value);
}

static void expect_error(world *w, bp_callable *g, bp_tensor *x, const char *words)
{
    assert_null(bp_call1(w->c, g, 1, &x));
    assert_contains(bp_error_text(w->c), words);
    bp_error_clear(w->c);
}

static char *explained(world *w, const bp_callable *g, buf *text)
{
    buf_fini(text);
    *text = (buf){0};
    world_ok(w, bp_print_explain(w->c, g, keep_text, text));
    return text->s;
}

static int32_t asked_at;

static void halved_while_large(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    asked_at = __LINE__ + 1;
    while (bp_is_true(c, bp_gt(c, bp_sum(c, x), 8)))
        x = bp_mul(c, x, 0.5);
    bp_return(f, x);
}

static void F061_fullgraph_makes_a_break_an_error_that_names_its_place(void **state)
{
    (void)state;
    world *w = open_world();
    bp_callable *breaks = whole(w, halved_while_large), *one = whole(w, twice);
    char place[256];
    expect_error(w, breaks, ones(w, 12), "fullgraph");
    snprintf(place, sizeof place, "bp_is_true at %s:%d", __FILE__, asked_at);
    expect_error(w, breaks, ones(w, 12), place);
    expect(w, one, ones(w, 3), 2);
    assert_int_equal(stats(w, one).graphs, 1);
    bp_callable_unref(breaks);
    bp_callable_unref(one);
    close_world(w);
}

static bp_callable *inner; /* what calls_inner calls, once with twice its argument */
static unsigned ran;

static void counted(bp_ctx *c, bp_frame *f)
{
    ran++;
    bp_return(f, bp_add(c, bp_arg(f, 0, "x"), 1));
}

static int32_t called_at;

static void calls_inner(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_mul(c, bp_arg(f, 0, "x"), 2);
    called_at = __LINE__ + 1;
    bp_return(f, bp_mul(c, bp_call1(c, inner, 1, &x), 3));
}

static void F061_a_disabled_function_runs_as_it_is_once_a_call(void **state)
{
    (void)state;
    world *w = open_world();
    bp_tensor *x = ones(w, 3);
    inner = compiled(w, counted, &(bp_compile_options){.disable = 1});
    bp_callable *outer = eager(w, calls_inner), *one = whole(w, calls_inner);
    char place[256];
    expect_error(w, one, x, "the disabled function fn (");
    snprintf(place, sizeof place, "an opaque step at %s:%d: ", __FILE__, called_at);
    expect_error(w, one, x, place);
    bp_callable_unref(one);
    ran = 0;
    for (unsigned i = 1; i <= 3; i++) {
        expect(w, inner, x, 2);
        assert_int_equal(ran, 2 * i - 1);
        expect(w, outer, x, 9);
        assert_int_equal(ran, 2 * i); /* the capturing call included */
    }
    assert_int_equal(stats(w, inner).captures, 0);
    assert_int_equal(stats(w, outer).steps, 3);
    assert_int_equal(stats(w, outer).graphs, 2);
    bp_callable_unref(outer);
    bp_callable_unref(inner);
    close_world(w);
}

static void F061_a_callable_that_is_called_inside_is_inlined(void **state)
{
    (void)state;
    world *w = open_world();
    inner = eager(w, counted);
    bp_callable *outer = whole(w, calls_inner);
    buf text = {0};
    ran = 0;
    for (int i = 0; i < 3; i++)
        expect(w, outer, ones(w, 3), 9);
    assert_int_equal(ran, 1); /* the capture */
    assert_int_equal(stats(w, outer).graphs, 1);
    assert_int_equal(stats(w, inner).captures, 0);
    assert_contains(explained(w, outer, &text), "operators: 3");
    buf_fini(&text);
    bp_callable_unref(outer);
    bp_callable_unref(inner);
    close_world(w);
}

static void F061_what_may_only_run_compiles_nothing(void **state)
{
    (void)state;
    world *w = open_world();
    bp_callable *g = eager(w, twice);
    bp_tensor *seen = ones(w, 3), *unseen = ones(w, 4);
    expect(w, g, seen, 2);
    bp_set_stance(w->c, "eager_on_recompile");
    expect(w, g, seen, 2);
    expect(w, g, unseen, 2);
    assert_int_equal(stats(w, g).hits, 1);
    assert_int_equal(stats(w, g).eager_calls, 1);
    bp_set_stance(w->c, "fail_on_recompile");
    expect(w, g, seen, 2);
    expect_error(w, g, unseen, "tensor 'x' size mismatch at index 0. expected 3, actual 4");
    assert_int_equal(stats(w, g).hits, 2);
    assert_int_equal(stats(w, g).compiles, 1);
    bp_set_stance(w->c, "default");
    expect(w, g, unseen, 2);
    assert_int_equal(stats(w, g).compiles, 2);
    bp_callable_unref(g);
    close_world(w);
}

static void F061_a_reset_empties_and_the_next_call_compiles_again(void **state)
{
    (void)state;
    world *w = open_world();
    bp_callable *g = eager(w, twice);
    bp_tensor *x = ones(w, 3);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 2; i++)
            expect(w, g, x, 2);
        assert_int_equal(stats(w, g).compiles, 1);
        assert_int_equal(stats(w, g).entries, 1);
        assert_int_equal(stats(w, g).hits, 1);
        bp_reset(w->c);
        world_ok(w, bp_error(w->c));
        assert_int_equal(stats(w, g).entries, 0);
        assert_int_equal(stats(w, g).compiles, 0);
    }
    bp_callable_unref(g);
    close_world(w);
}

static int32_t refused_at;

static void plus_offset(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_tensor *y = bp_mul(c, x, 2);
    refused_at = __LINE__ + 1;
    bp_return(f, bp_add(c, y, bp_tensor_offset(x)));
}

static void F071_explain_lists_what_runs_as_it_is_with_place_and_reason(void **state)
{
    (void)state;
    world *w = open_world();
    buf text = {0};
    char words[512];
    bp_tensor *x = ones(w, 3);
    inner = bp_compile(w->c, counted, &(bp_compile_options){.disable = 1});
    int32_t made_at = __LINE__ - 1;
    bp_callable *outer = bp_compile(w->c, calls_inner, &(bp_compile_options){.backend = "eager"});
    bp_callable *skipped = eager(w, plus_offset);
    snprintf(words, sizeof words, "counted (%s:%d): disabled, the function runs as it is: disable = 1", __FILE__,
             made_at);
    assert_contains(explained(w, inner, &text), words);
    expect(w, outer, x, 9);
    snprintf(words, sizeof words, "break: %s:%d: an opaque step: the disabled function counted (%s:%d) is called\n",
             __FILE__, called_at, __FILE__, made_at);
    assert_contains(explained(w, outer, &text), words);
    assert_null(strstr(buf_text(&text), "?:0"));
    expect(w, skipped, x, 2);
    assert_contains(explained(w, skipped, &text), "asks where an input lies in its storage");
    snprintf(words, sizeof words, "not captured: %s:%d: ", __FILE__, refused_at);
    assert_contains(buf_text(&text), words);
    setenv("BACKPLANE_DISABLE", "1", 1);
    bp_callable *all = eager(w, twice);
    unsetenv("BACKPLANE_DISABLE");
    assert_contains(explained(w, all, &text), "disabled, the function runs as it is: BACKPLANE_DISABLE=1");
    buf_fini(&text);
    bp_callable_unref(all);
    bp_callable_unref(skipped);
    bp_callable_unref(outer);
    bp_callable_unref(inner);
    close_world(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(F061_fullgraph_makes_a_break_an_error_that_names_its_place),
        cmocka_unit_test(F061_a_disabled_function_runs_as_it_is_once_a_call),
        cmocka_unit_test(F061_a_callable_that_is_called_inside_is_inlined),
        cmocka_unit_test(F061_what_may_only_run_compiles_nothing),
        cmocka_unit_test(F061_a_reset_empties_and_the_next_call_compiles_again),
        cmocka_unit_test(F071_explain_lists_what_runs_as_it_is_with_place_and_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
