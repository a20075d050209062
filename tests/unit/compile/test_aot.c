/* Training through AOT: when graphs are compiled, what backward keeps and refuses, and which link answers. */
#include "host/graph/graph.h"
#include "host/tensor/tensor.h"
#include "tests/unit/compile/fixture.h"
#include <math.h>

static void product(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *w = bp_arg(f, 1, "w");
    bp_return(f, bp_mul(c, bp_exp(c, x), w));
}

static void two(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *w = bp_arg(f, 1, "w");
    bp_return(f, bp_mul(c, x, w));
    bp_return(f, bp_exp(c, w));
}

static void matrix(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_exp(c, bp_mul(c, bp_arg(f, 0, "x"), bp_arg(f, 1, "w"))));
}

/* A backend that keeps the names of the graphs it compiles, and fails where it is told to. */
static struct { char names[400]; const char *fails_to_compile, *fails_to_run; int compiles; } seen;

static bp_status run_failing(void *state, bp_run *r)
{
    (void)state;
    return bp_run_fail(r, BP_INTERNAL, "the device is gone");
}

static bp_compiled *noting(bp_graph_module *gm, const bp_inputs *in)
{
    (void)in;
    size_t n = strlen(seen.names);
    snprintf(seen.names + n, sizeof seen.names - n, "%s%s", n ? " " : "", gm->name);
    seen.compiles++;
    if (seen.fails_to_compile && strstr(gm->name, seen.fails_to_compile))
        return bp_fail(gm, BP_INTERNAL, "it does not like this one");
    if (seen.fails_to_run && strstr(gm->name, seen.fails_to_run))
        return bp_compiled_new(gm, run_failing, NULL, NULL);
    return bp_forward(gm);
}

static bp_callable *compile_noting(fixture *f, bp_fn fn)
{
    bp_compile_options o = {.backend_fn = noting};
    memset(&seen, 0, sizeof seen);
    return bp_compile_at(f->c, fn, &o, sizeof o, "fn", __FILE__, __LINE__);
}

static bp_tensor *leaf(fixture *f, float a, float b)
{
    bp_tensor *t = FLOATS(f, a, b);
    bp_tensor_set_requires_grad(f->c, t, 1);
    return t;
}

static void expect_near(fixture *f, bp_tensor *t, float a, float b)
{
    assert_non_null(t);
    assert_true(fabsf(at(f, t, 0) - a) < 1e-5f * (1 + fabsf(a)) && fabsf(at(f, t, 1) - b) < 1e-5f * (1 + fabsf(b)));
}

static void backward(fixture *f, bp_tensor *t, uint32_t flags)
{
    bp_backward(f->c, bp_sum(f->c, t), NULL, flags);
}

static void F030_the_forward_is_compiled_at_once_and_the_backward_at_its_first_use(void **state)
{
    fixture *f = *state;
    bp_callable *g = compile_noting(f, product);
    for (int i = 0; i < 3; i++) {
        bp_tensor *x = leaf(f, 0, 1), *w = leaf(f, 2, 3);
        bp_tensor *y = CALL(f, g, x, w).at[0];
        assert_string_equal(seen.names, i ? "__compiled_fn_0_forward __compiled_fn_0_backward"
                                          : "__compiled_fn_0_forward");
        backward(f, y, 0);
        assert_string_equal(bp_error_text(f->c), "");
        assert_string_equal(seen.names, "__compiled_fn_0_forward __compiled_fn_0_backward");
        expect_near(f, bp_tensor_grad(f->c, x), 2, 3 * expf(1));
        expect_near(f, bp_tensor_grad(f->c, w), 1, expf(1));
    }
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

/* -- segments (C8) ------------------------------------------------------------------------------------------------- */

/* exp(x) is asked for in part, and handed on. */
static void asks(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *w = bp_arg(f, 1, "w"), *e = bp_exp(c, bp_mul(c, x, w));
    if (bp_is_true(c, bp_gt(c, bp_sum(c, e), 0)))
        bp_return(f, bp_mul(c, e, w));
    else
        bp_return(f, e);
}

/* Gradients of the sum of exp(x w) w, at x = (0, 1) and w = (2, 3), as eager has them. */
static void expect_joined(fixture *f, bp_callable *g)
{
    bp_tensor *x = leaf(f, 0, 1), *w = leaf(f, 2, 3), *y = CALL(f, g, x, w).at[0];
    assert_string_equal(bp_error_text(f->c), "");
    backward(f, y, 0);
    assert_string_equal(bp_error_text(f->c), "");
    expect_near(f, bp_tensor_grad(f->c, x), 4, 9 * expf(3));
    expect_near(f, bp_tensor_grad(f->c, w), 1, expf(3) * 4);
}

static void c8_handed_on_values_join_on_the_tape(void **state)
{
    fixture *f = *state;
    bp_callable *g = compile_noting(f, asks);
    expect_joined(f, g); /* captured */
    expect_joined(f, g); /* found */
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

static void c8_each_segment_goes_through_aot_alone(void **state)
{
    fixture *f = *state;
    bp_callable *g = compile_noting(f, asks);
    expect_joined(f, g);
    assert_int_equal(seen.compiles, 4); /* two segments, a forward and a backward each */
    for (const char *at = seen.names; (at = strstr(at, "_forward")); at++)
        seen.compiles -= 1;
    for (const char *at = seen.names; (at = strstr(at, "_backward")); at++)
        seen.compiles -= 1;
    assert_int_equal(seen.compiles, 0);
    bp_callable_unref(g);
}

static void a_call_without_gradients_is_another_graph(void **state)
{
    fixture *f = *state;
    bp_callable *g = compile_noting(f, product);
    bp_tensor *x = leaf(f, 0, 1), *w = leaf(f, 2, 3);
    CALL(f, g, x, w);
    int on = bp_set_grad_enabled(f->c, 0);
    assert_false(bp_tensor_requires_grad(CALL(f, g, x, w).at[0]));
    bp_set_grad_enabled(f->c, on);
    assert_false(bp_tensor_requires_grad(CALL(f, g, FLOATS(f, 1, 2), FLOATS(f, 1, 2)).at[0]));
    assert_true(bp_tensor_requires_grad(CALL(f, g, FLOATS(f, 1, 2), w).at[0]));
    assert_string_equal(seen.names, "__compiled_fn_0_forward __compiled_fn_1 __compiled_fn_2 __compiled_fn_3_forward");
    bp_callable_unref(g);
}

static void a_second_backward_needs_a_graph_that_was_kept(void **state)
{
    fixture *f = *state;
    bp_callable *g = compile_noting(f, product);
    bp_tensor *x = leaf(f, 0, 1), *w = leaf(f, 2, 3), *y = CALL(f, g, x, w).at[0];
    backward(f, y, BP_RETAIN_GRAPH);
    backward(f, y, 0);
    assert_string_equal(bp_error_text(f->c), "");
    expect_near(f, bp_tensor_grad(f->c, w), 2, 2 * expf(1));
    backward(f, y, 0);
    assert_int_equal(bp_error(f->c), BP_FAILED_PRECONDITION);
    assert_contains(bp_error_text(f->c), "a second time");
    bp_error_clear(f->c);
    bp_callable_unref(g);
}

static void there_is_no_second_derivative(void **state)
{
    fixture *f = *state;
    bp_callable *g = compile_noting(f, product);
    bp_tensor *x = leaf(f, 0, 1), *w = leaf(f, 2, 3), *y = bp_sum(f->c, CALL(f, g, x, w).at[0]), *first = NULL;
    bp_grad(f->c, &y, NULL, 1, &x, 1, &first, BP_CREATE_GRAPH);
    assert_string_equal(bp_error_text(f->c), "");
    expect_near(f, first, 2, 3 * expf(1)); /* the first is there */
    assert_true(bp_tensor_requires_grad(first));
    backward(f, first, 0);
    assert_int_equal(bp_error(f->c), BP_UNIMPLEMENTED);
    assert_contains(bp_error_text(f->c), "cannot be differentiated twice");
    bp_error_clear(f->c);
    bp_callable_unref(g);
}

static void F032_what_was_saved_is_freed_behind_backward(void **state)
{
    fixture *f = *state;
    bp_callable *g = compile_noting(f, product);
    bp_tensor *x = leaf(f, 0, 1), *w = leaf(f, 2, 3), *y = CALL(f, g, x, w).at[0];
    assert_true(w->store->refs > 1);
    backward(f, y, 0);
    assert_int_equal(w->store->refs, 1);
    assert_int_equal(x->store->refs, 1);
    bp_callable_unref(g);
}

static void a_saved_value_that_was_written_since_is_an_error(void **state)
{
    fixture *f = *state;
    bp_callable *g = compile_noting(f, product);
    bp_tensor *x = leaf(f, 0, 1), *w = leaf(f, 2, 3), *y = CALL(f, g, x, w).at[0];
    int on = bp_set_grad_enabled(f->c, 0);
    bp_mul_inplace(f->c, w, 2);
    bp_set_grad_enabled(f->c, on);
    backward(f, y, 0);
    assert_int_equal(bp_error(f->c), BP_FAILED_PRECONDITION);
    assert_contains(bp_error_text(f->c), "saved for backward was written in place: \"w\", f32[2]");
    bp_error_clear(f->c);
    bp_callable_unref(g);
}

/* Its first segment saves b, which its second one writes. */
static void saves_and_writes(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *b = bp_arg(f, 1, "b"), *y = bp_mul(c, x, b), *z = bp_exp(c, x);
    if (bp_is_true(c, bp_gt(c, bp_sum(c, z), 0)))
        bp_add_inplace(c, b, 1);
    bp_return(f, y);
    bp_return(f, z);
}

static void what_a_later_segment_writes_is_as_it_was_for_the_backward(void **state)
{
    fixture *f = *state;
    bp_callable *g = compile_noting(f, saves_and_writes);
    for (int i = 0; i < 2; i++) {
        bp_tensor *x = leaf(f, 0, 1), *b = FLOATS(f, 2, 3);
        bp_outputs out = CALL(f, g, x, b);
        assert_string_equal(bp_error_text(f->c), "");
        EXPECT_FLOATS(f, b, 3, 4);
        backward(f, out.at[1], 0); /* eagerly b plays no part here */
        assert_string_equal(bp_error_text(f->c), "");
        expect_near(f, bp_tensor_grad(f->c, x), 1, expf(1));
    }
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

static void an_output_without_a_gradient_counts_as_zeros(void **state)
{
    fixture *f = *state;
    bp_callable *g = compile_noting(f, two);
    bp_tensor *x = leaf(f, 0, 1), *w = leaf(f, 2, 3);
    backward(f, CALL(f, g, x, w).at[0], 0);
    expect_near(f, bp_tensor_grad(f->c, x), 2, 3);
    expect_near(f, bp_tensor_grad(f->c, w), 0, 1);
    bp_callable_unref(g);
}

static void a_gradient_that_is_laid_out_otherwise_is_copied(void **state)
{
    fixture *f = *state;
    bp_callable *g = compile_noting(f, matrix);
    const int64_t sizes[2] = {2, 2};
    bp_tensor *x = bp_tensor_from(f->c, BP_F32, 2, sizes, (float[]){0, 0, 0, 0}), *grad = NULL;
    bp_tensor *w = bp_tensor_from(f->c, BP_F32, 2, sizes, (float[]){1, 2, 3, 4});
    bp_tensor *t = bp_t(f->c, bp_tensor_from(f->c, BP_F32, 2, sizes, (float[]){1, 10, 100, 1000}));
    bp_tensor_set_requires_grad(f->c, x, 1);
    bp_tensor *y = CALL(f, g, x, w).at[0];
    bp_grad(f->c, &y, &t, 1, &x, 1, &grad, 0);
    assert_string_equal(bp_error_text(f->c), "");
    EXPECT_FLOATS(f, grad, 1, 200, 30, 4000);
    bp_callable_unref(g);
}

static void a_gradient_of_another_shape_is_refused(void **state)
{
    fixture *f = *state;
    bp_callable *g = compile_noting(f, product);
    bp_tensor *x = leaf(f, 0, 1), *w = leaf(f, 2, 3), *y = CALL(f, g, x, w).at[0];
    bp_backward(f->c, y, FLOATS(f, 1, 2, 3), 0);
    assert_int_equal(bp_error(f->c), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_text(f->c), "f32[3]");
    bp_error_clear(f->c);
    bp_callable_unref(g);
}

/* The first link fails in the backward alone: the step ends on the next one, with the same gradients. */
static void check_next_link(fixture *f, const char *compile, const char *run, const char *warning)
{
    bp_callable *g = compile_noting(f, product);
    seen.fails_to_compile = compile;
    seen.fails_to_run = run;
    for (int i = 0; i < 2; i++) {
        bp_tensor *x = leaf(f, 0, 1), *w = leaf(f, 2, 3);
        backward(f, CALL(f, g, x, w).at[0], 0);
        assert_string_equal(bp_error_text(f->c), "");
        expect_near(f, bp_tensor_grad(f->c, x), 2, 3 * expf(1));
        expect_near(f, bp_tensor_grad(f->c, w), 1, expf(1));
    }
    assert_contains(buf_text(&f->log), warning);
    assert_contains(buf_text(&f->log), "eager");
    assert_int_equal(seen.compiles, 2);
    bp_callable_unref(g);
}

static void F020_a_backward_that_does_not_compile_is_answered_by_the_next_link(void **state)
{
    check_next_link(*state, "_backward", NULL, "it does not like this one");
}

static void F020_a_backward_that_fails_to_run_is_answered_by_the_next_link(void **state)
{
    check_next_link(*state, NULL, "_backward", "the device is gone");
}

static void F007_aot_backends_are_there_and_tagged(void **state)
{
    fixture *f = *state;
    static const char *const NAMES[] = {"aot_eager", "aot_eager_default_partitioner", "aot_eager_decomp_partition"};
    for (int i = 0; i < 3; i++) {
        bp_compile_options o = {.backend = NAMES[i]};
        bp_callable *g = bp_compile_at(f->c, product, &o, sizeof o, "product", __FILE__, __LINE__);
        bp_tensor *x = leaf(f, 0, 1), *w = leaf(f, 2, 3);
        assert_non_null(g);
        backward(f, CALL(f, g, x, w).at[0], 0);
        expect_near(f, bp_tensor_grad(f->c, x), 2, 3 * expf(1));
        bp_callable_unref(g);
    }
}

/* A view whose base has got history meanwhile has it too, though nothing has touched it. */
static void a_view_whose_base_was_written_is_seen_to_require_grad(void **state)
{
    fixture *f = *state;
    bp_callable *g = compile_noting(f, product);
    for (int i = 0; i < 2; i++) {
        bp_tensor *base = FLOATS(f, 0, 0), *v = bp_reshape(f->c, base, BP_DIMS(2)), *w = leaf(f, 2, 3);
        CALL(f, g, v, FLOATS(f, 1, 1));
        bp_add_inplace(f->c, base, w);
        bp_tensor *y = CALL(f, g, v, FLOATS(f, 1, 1)).at[0];
        assert_true(bp_tensor_requires_grad(y));
        backward(f, y, 0);
        expect_near(f, bp_tensor_grad(f->c, w), expf(2), expf(3));
    }
    bp_callable_unref(g);
}

static void scaled_by_a_number(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *w = bp_arg(f, 1, "w");
    bp_return(f, bp_mul(c, w, bp_item_sym(c, bp_sum(c, x))));
}

static void a_number_that_only_a_run_tells_is_not_guessed(void **state)
{
    fixture *f = *state;
    bp_callable *g = compile_noting(f, scaled_by_a_number);
    for (int i = 0; i < 2; i++) {
        bp_tensor *x = leaf(f, 3, (float)i), *w = leaf(f, 2, 3), *y = CALL(f, g, x, w).at[0];
        expect_near(f, y, 2 * (3 + (float)i), 3 * (3 + (float)i));
        backward(f, y, 0);
        assert_string_equal(bp_error_text(f->c), "");
        expect_near(f, bp_tensor_grad(f->c, w), 3 + (float)i, 3 + (float)i);
        assert_null(bp_tensor_grad(f->c, x));
    }
    bp_callable_unref(g);
}

static void partitions_follow_the_config(void **state)
{
    fixture *f = *state;
    static const struct { const char *key, *value; } SET[] = {
        {"partition", "default"}, {"activation_memory_budget", "0"}, {"aggressive_recomputation", "yes"},
        {"recompute_views", "yes"}, {"ban_recompute_reductions", "no"}};
    for (size_t i = 0; i < sizeof SET / sizeof *SET; i++) {
        assert_int_equal(bp_set_config(f->c, SET[i].key, SET[i].value), BP_OK);
        bp_callable *g = compile_noting(f, product);
        bp_tensor *x = leaf(f, 0, 1), *w = leaf(f, 2, 3);
        backward(f, CALL(f, g, x, w).at[0], 0);
        expect_near(f, bp_tensor_grad(f->c, w), 1, expf(1));
        bp_callable_unref(g);
        bp_reset(f->c);
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(F030_the_forward_is_compiled_at_once_and_the_backward_at_its_first_use),
        T(c8_handed_on_values_join_on_the_tape),
        T(c8_each_segment_goes_through_aot_alone),
        T(a_call_without_gradients_is_another_graph),
        T(a_second_backward_needs_a_graph_that_was_kept),
        T(there_is_no_second_derivative),
        T(F032_what_was_saved_is_freed_behind_backward),
        T(a_saved_value_that_was_written_since_is_an_error),
        T(what_a_later_segment_writes_is_as_it_was_for_the_backward),
        T(an_output_without_a_gradient_counts_as_zeros),
        T(a_gradient_that_is_laid_out_otherwise_is_copied),
        T(a_gradient_of_another_shape_is_refused),
        T(F020_a_backward_that_does_not_compile_is_answered_by_the_next_link),
        T(F020_a_backward_that_fails_to_run_is_answered_by_the_next_link),
        T(F007_aot_backends_are_there_and_tagged),
        T(partitions_follow_the_config),
        T(a_number_that_only_a_run_tells_is_not_guessed),
        T(a_view_whose_base_was_written_is_seen_to_require_grad),
    };
    return cmocka_run_group_tests_name("aot", tests, NULL, NULL);
}
