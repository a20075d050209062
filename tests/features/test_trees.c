/* F036: nested inputs and outputs are flattened with a spec, and come back in their form. */
#include "tests/lib/world.h"
#include <stdlib.h>

#define ITEMS(...) sizeof((bp_value[]){__VA_ARGS__}) / sizeof(bp_value), {.items = (bp_value[]){__VA_ARGS__}}
#define LIST(...) ((bp_value){BP_VALUE_LIST, ITEMS(__VA_ARGS__)})
#define MAP(...) ((bp_value){BP_VALUE_MAP, ITEMS(__VA_ARGS__)})
#define KEY(s) bp_arg_of_str(s)
#define T(t) bp_arg_of_tensor(t)
static const bp_value none, empty = {BP_VALUE_LIST, 0, {0}};

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

static bp_callable *compiled(world *w, bp_fn fn, int disable)
{
    bp_compile_options o = {.backend = "eager", .isolate = 1, .disable = disable};
    bp_callable *g = bp_compile_at(w->c, fn, &o, sizeof o, "fn", __FILE__, __LINE__);
    world_ok(w, bp_error(w->c));
    return g;
}

static bp_tensor *filled(world *w, double v)
{
    return bp_mul(w->c, bp_ones(w->c, BP_DIMS(2)), v);
}

static double value(world *w, bp_tensor *x)
{
    float v[2] = {0};
    world_ok(w, bp_error(w->c));
    assert_non_null(x);
    world_ok(w, bp_tensor_read(w->c, x, v, sizeof v));
    return (double)v[0];
}

static double first(world *w, const bp_value *t)
{
    return value(w, bp_tree_tensor(t));
}

static bp_callable_stats stats(world *w, const bp_callable *g)
{
    bp_callable_stats s = {.size = sizeof s};
    world_ok(w, bp_stats(w->c, g, &s));
    return s;
}

static void expect_error(world *w, bp_status st, const char *words)
{
    assert_int_not_equal(st, BP_OK);
    assert_contains(bp_error_text(w->c), words);
    bp_error_clear(w->c);
}

/* Sums each list under "parts" and scales it: [{"parts": [[tensors], ...], "scale": n}, bias or None]. */
static void sums(bp_ctx *c, bp_frame *f)
{
    const bp_value *in = bp_arg_tree(f), *parts = bp_tree_get(bp_tree_at(in, 0), "parts");
    const bp_value *scale = bp_tree_get(bp_tree_at(in, 0), "scale");
    bp_value made[8];
    uint32_t n = bp_tree_count(parts);
    for (uint32_t i = 0; i < n; i++) {
        const bp_value *one = bp_tree_at(parts, i);
        bp_tensor *sum = NULL;
        for (uint32_t k = 0; k < bp_tree_count(one); k++)
            sum = sum ? bp_add(c, sum, bp_tree_tensor(bp_tree_at(one, k))) : bp_tree_tensor(bp_tree_at(one, k));
        if (sum && bp_tree_tensor(bp_tree_at(in, 1)))
            sum = bp_add(c, sum, bp_tree_tensor(bp_tree_at(in, 1)));
        made[i] = T(sum ? bp_mul(c, sum, scale ? (double)scale->v.dim.value : 0) : NULL);
    }
    bp_value list = {BP_VALUE_LIST, n, {.items = made}};
    bp_return_tree(f, &MAP(KEY("sums"), list, KEY("with \"bias\""), LIST(T(bp_tree_tensor(bp_tree_at(in, 1))), empty)));
}

static void expect_sums(world *w, const bp_value *out, double a, double bias)
{
    const bp_value *list = bp_tree_get(out, "sums");
    assert_int_equal(bp_tree_count(out), 2);
    assert_int_equal(bp_tree_count(list), 2);
    assert_true(first(w, bp_tree_at(list, 0)) == a);
    assert_int_equal(bp_tree_at(list, 1)->kind, BP_VALUE_NONE);
    const bp_value *with = bp_tree_get(out, "with \"bias\"");
    assert_int_equal(bp_tree_count(with), 2);
    assert_int_equal(bp_tree_at(with, 1)->kind, BP_VALUE_LIST);
    if (bias != 0)
        assert_true(first(w, bp_tree_at(with, 0)) == bias);
    else
        assert_int_equal(bp_tree_at(with, 0)->kind, BP_VALUE_NONE);
}

static void F036_nested_inputs_and_outputs_are_flattened_with_a_spec(void **state)
{
    (void)state;
    world *w = open_world();
    bp_callable *g = compiled(w, sums, 0), *off = compiled(w, sums, 1);
    bp_value two = LIST(T(filled(w, 1)), T(filled(w, 2))), out = none;
    bp_value with = LIST(MAP(KEY("parts"), LIST(two, empty), KEY("scale"), bp_arg_of_int(3)), T(filled(w, 4)));
    bp_value without = LIST(MAP(KEY("parts"), LIST(two, empty), KEY("scale"), bp_arg_of_int(3)), none);
    for (int i = 0; i < 3; i++) {
        world_ok(w, bp_call_tree(w->c, g, &with, &out));
        expect_sums(w, &out, 21, 4);
    }
    assert_int_equal(stats(w, g).compiles, 1);
    assert_int_equal(stats(w, g).hits, 2);
    for (int i = 0; i < 2; i++) {
        world_ok(w, bp_call_tree(w->c, g, &without, &out));
        expect_sums(w, &out, 9, 0);
    }
    assert_int_equal(stats(w, g).compiles, 2);
    assert_int_equal(stats(w, g).hits, 3);
    world_ok(w, bp_call_tree(w->c, off, &with, &out));
    expect_sums(w, &out, 21, 4);
    world_ok(w, bp_run_eager_tree(w->c, sums, NULL, &with, &out));
    expect_sums(w, &out, 21, 4);
    assert_int_equal(stats(w, g).eager_calls, 0);
    bp_callable_unref(off);
    bp_callable_unref(g);
    close_world(w);
}

/* Which structure is given depends on data. */
static void either(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_tree_tensor(bp_tree_get(bp_arg_tree(f), "x"));
    if (bp_is_true(c, bp_gt(c, bp_sum(c, x), 0)))
        bp_return_tree(f, &MAP(KEY("up"), T(bp_add(c, x, 1))));
    else
        bp_return_tree(f, &LIST(LIST(T(bp_sub(c, x, 1)), none)));
}

static void call_either(world *w, bp_callable *g)
{
    bp_value out = none;
    world_ok(w, bp_call_tree(w->c, g, &MAP(KEY("x"), T(filled(w, 1))), &out));
    assert_true(first(w, bp_tree_get(&out, "up")) == 2);
    world_ok(w, bp_call_tree(w->c, g, &MAP(KEY("x"), T(filled(w, -1))), &out));
    assert_int_equal(bp_tree_count(&out), 1);
    assert_int_equal(bp_tree_count(bp_tree_at(&out, 0)), 2);
    assert_true(first(w, bp_tree_at(bp_tree_at(&out, 0), 0)) == -2);
}

static void F036_each_path_behind_a_break_gives_its_own_structure(void **state)
{
    (void)state;
    world *w = open_world();
    bp_callable *g = compiled(w, either, 0);
    for (int i = 0; i < 3; i++)
        call_either(w, g);
    assert_int_equal(stats(w, g).hits, 4);
    bp_callable_unref(g);
    g = compiled(w, either, 0);
    const char *before = bp_set_stance(w->c, "eager_on_recompile");
    call_either(w, g);
    bp_set_stance(w->c, before);
    bp_callable_unref(g);
    close_world(w);
}

static bp_callable *inner;

/* A plain call, and one with nested values, inside. */
static void outer(bp_ctx *c, bp_frame *f)
{
    bp_value out = none;
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_call_tree(c, inner, &MAP(KEY("x"), T(x)), &out);
    bp_return(f, bp_mul(c, bp_tree_tensor(bp_tree_get(&out, "up")), 2));
}

static void F036_a_function_with_nested_values_is_called_inside_another(void **state)
{
    (void)state;
    world *w = open_world();
    bp_callable *g = compiled(w, outer, 0);
    bp_tensor *x = filled(w, 1);
    for (int disable = 0; disable < 2; disable++) {
        inner = compiled(w, either, disable);
        bp_reset(w->c);
        for (int i = 0; i < 3; i++)
            assert_true(value(w, bp_call1(w->c, g, 1, &x)) == 4);
        bp_callable_unref(inner);
    }
    bp_callable_unref(g);
    close_world(w);
}

static void weighted(bp_ctx *c, bp_frame *f)
{
    const bp_value *in = bp_arg_tree(f), *p = bp_tree_get(in, "params");
    bp_tensor *y = bp_mul(c, bp_tree_tensor(bp_tree_at(p, 0)), bp_tree_tensor(bp_tree_get(in, "x")));
    y = bp_add(c, bp_mul(c, y, y), bp_tree_tensor(bp_tree_at(p, 1)));
    bp_return_tree(f, &MAP(KEY("loss"), T(bp_sum(c, y)), KEY("y"), LIST(T(y))));
}

static double trained(world *w, bp_callable *g, bool eagerly)
{
    bp_tensor *a = filled(w, 3), *b = filled(w, 5);
    world_ok(w, bp_tensor_set_requires_grad(w->c, a, 1));
    world_ok(w, bp_tensor_set_requires_grad(w->c, b, 1));
    bp_value in = MAP(KEY("x"), T(filled(w, 2)), KEY("params"), LIST(T(a), T(b))), out = none;
    world_ok(w, eagerly ? bp_run_eager_tree(w->c, weighted, NULL, &in, &out) : bp_call_tree(w->c, g, &in, &out));
    world_ok(w, bp_backward(w->c, bp_tree_tensor(bp_tree_get(&out, "loss")), NULL, 0));
    assert_true(value(w, bp_tensor_grad(w->c, b)) == 1);
    return value(w, bp_tensor_grad(w->c, a));
}

static void F036_gradients_flow_through_nested_values(void **state)
{
    (void)state;
    world *w = open_world();
    bp_callable *g = compiled(w, weighted, 0);
    for (int i = 0; i < 2; i++)
        assert_true(trained(w, g, false) == 24);
    assert_true(trained(w, NULL, true) == 24);
    assert_int_equal(stats(w, g).hits, 1);
    bp_callable_unref(g);
    close_world(w);
}

static void gives_a_number(bp_ctx *c, bp_frame *f)
{
    (void)c;
    bp_return_tree(f, &LIST(LIST(bp_arg_of_int(1))));
}

static void gives_twice(bp_ctx *c, bp_frame *f)
{
    (void)c;
    bp_return_tree(f, &LIST(none));
    bp_return(f, NULL);
}

static void F036_bad_trees_are_errors_that_name_the_place(void **state)
{
    (void)state;
    world *w = open_world();
    bp_callable *g = compiled(w, either, 0), *n = compiled(w, gives_a_number, 0), *two = compiled(w, gives_twice, 0);
    bp_value out = none, x = T(filled(w, 1)), deep[70], hole = {BP_VALUE_TENSOR, 0, {0}}, few = empty;
    bp_outputs outs = {0};
    for (int i = 0; i < 70; i++)
        deep[i] = i ? (bp_value){BP_VALUE_LIST, 1, {.items = &deep[i - 1]}} : x;
    few.count = 2;
    expect_error(w, bp_call_tree(w->c, g, &deep[69], &out), "more than 64 deep");
    expect_error(w, bp_call_tree(w->c, g, &x, &out), "neither a list nor a map");
    expect_error(w, bp_call_tree(w->c, g, &MAP(KEY("x")), &out), "odd number of items");
    expect_error(w, bp_call_tree(w->c, g, &MAP(bp_arg_of_int(1), x), &out), "a key that is no string");
    expect_error(w, bp_call_tree(w->c, g, &LIST(MAP(KEY("a"), x, KEY("b"), x, KEY("a"), x)), &out),
                 "\"in[0]\" is a map with two values of the key \"a\"");
    expect_error(w, bp_call_tree(w->c, g, &LIST(x, MAP(KEY("a"), hole)), &out), "\"in[1].a\" is NULL");
    expect_error(w, bp_call_tree(w->c, g, &LIST(few), &out), "\"in[0]\" has items that are NULL");
    expect_error(w, bp_call_tree(w->c, g, NULL, &out), "list of arguments is NULL");
    expect_error(w, bp_call_tree(w->c, g, &LIST((bp_value){BP_VALUE_DTYPE, 0, {0}}), &out), "kind that no tree holds");
    expect_error(w, bp_call_tree(w->c, g, &MAP(KEY("x"), KEY("text")), &out), "NULL");
    expect_error(w, bp_call_tree(w->c, n, &empty, &out), "\"out[0][0]\" is a number or a string");
    expect_error(w, bp_call_tree(w->c, two, &empty, &out), "bp_return follows bp_return_tree");
    expect_error(w, bp_call(w->c, g, &((bp_args){&x, 1}), &outs), "expected a string, got a tensor");
    expect_error(w, bp_call(w->c, g, &((bp_args){(bp_value[]){KEY("[*, *]"), x}, 2}), &outs), "2 leaves comes with 1");
    expect_error(w, bp_call(w->c, g, &((bp_args){(bp_value[]){KEY("[*, ?]"), x}, 2}), &outs), "expected a leaf");
    expect_error(w, bp_call(w->c, g, &((bp_args){(bp_value[]){KEY("{*}"), x}, 2}), &outs), "expected a key");
    expect_error(w, bp_call(w->c, g, &((bp_args){(bp_value[]){KEY("[int]"), x}, 2}), &outs), "expected an int");
    expect_error(w, bp_call(w->c, g, &((bp_args){(bp_value[]){LIST(x)}, 1}), &outs), "bp_call_tree takes nested ones");
    bp_callable_unref(two);
    bp_callable_unref(n);
    bp_callable_unref(g);
    close_world(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(F036_nested_inputs_and_outputs_are_flattened_with_a_spec),
        cmocka_unit_test(F036_each_path_behind_a_break_gives_its_own_structure),
        cmocka_unit_test(F036_a_function_with_nested_values_is_called_inside_another),
        cmocka_unit_test(F036_gradients_flow_through_nested_values),
        cmocka_unit_test(F036_bad_trees_are_errors_that_name_the_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
