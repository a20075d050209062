/* The tape and compiled functions on the eager backend: what runs there is recorded as if it ran plainly, and backward
 * inside a function is no part of a graph. */
#include "tests/unit/grad/fixture.h"

static void cubes(bp_ctx *ctx, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, bp_mul(ctx, bp_mul(ctx, x, x), x));
}

static void compiled_code_on_eager_is_recorded(void **state)
{
    (void)state;
    bp_callable *g = bp_compile(c, cubes, &(bp_compile_options){.backend = "eager"});
    bp_tensor *x = leaf(F(1, 2)), *second;
    for (int i = 1; i <= 2; i++) {
        bp_tensor *y = bp_call1(c, g, 1, &x);
        assert_true(bp_tensor_requires_grad(y));
        BACKWARD(bp_sum(c, y));
        IS(GRAD(x), (float)i * 3, (float)i * 12);
    }
    bp_tensor *s = bp_sum(c, bp_call1(c, g, 1, &x)), *first;
    bp_grad(c, &s, NULL, 1, &x, 1, &first, BP_CREATE_GRAPH);
    s = bp_sum(c, first);
    assert_int_equal(bp_grad(c, &s, NULL, 1, &x, 1, &second, 0), BP_OK);
    IS(second, 6, 12);
    OK();
    bp_callable_unref(g);
}

static void trains(bp_ctx *ctx, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *loss = bp_sum(ctx, bp_mul(ctx, x, x));
    bp_backward(ctx, loss, NULL, 0);
    bp_return(f, bp_add(ctx, loss, loss));
}

static void collect(void *arg, const char *text, size_t n)
{
    strncat(arg, text, n);
}

static void F038_backward_is_never_captured_by_an_outer_capture(void **state)
{
    (void)state;
    char text[8000] = "";
    bp_callable_stats stats = {.size = sizeof stats};
    bp_callable *g = bp_compile(c, trains, &(bp_compile_options){.backend = "eager"});
    bp_tensor *x = leaf(F(1, 2));
    for (int i = 1; i <= 2; i++) {
        IS(bp_call1(c, g, 1, &x), 10);
        IS(GRAD(x), (float)i * 2, (float)i * 4);
    }
    OK();
    assert_int_equal(bp_stats(c, g, &stats), BP_OK);
    assert_int_equal(stats.eager_calls, 2);
    assert_int_equal(stats.graphs, 0);
    assert_int_equal(stats.captures, 1);
    bp_print_explain(c, g, collect, text);
    assert_contains(text, "runs eagerly: backward is called while a function is captured");
    bp_callable_unref(g);
}

static bp_tensor *same(bp_ctx *ctx, bp_tensor *grad, void *arg)
{
    (void)ctx;
    ++*(int *)arg;
    return grad;
}

static void hooked(bp_ctx *ctx, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_mul(ctx, x, x);
    bp_tensor_register_hook(ctx, y, same, bp_user(f), NULL);
    bp_return(f, y);
}

static void a_hook_inside_a_function_is_registered_once_a_call(void **state)
{
    (void)state;
    int calls = 0;
    bp_callable *g = bp_compile(c, hooked, &(bp_compile_options){.backend = "eager", .user = &calls});
    bp_tensor *x = leaf(F(1, 2));
    for (int i = 1; i <= 2; i++) {
        BACKWARD(bp_sum(c, bp_call1(c, g, 1, &x)));
        assert_int_equal(calls, i);
    }
    OK();
    bp_callable_unref(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(compiled_code_on_eager_is_recorded),
        T(F038_backward_is_never_captured_by_an_outer_capture),
        T(a_hook_inside_a_function_is_registered_once_a_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
