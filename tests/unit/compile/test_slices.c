/* Heavy slices (C2.2): compiled by the callable's own chain, and answered by reference kernels where that fails. */
#include "host/graph/graph.h"
#include "tests/unit/compile/fixture.h"

enum { N = 400 }; /* 2 N^3 operations are 0.128 GFLOP, and a matrix of half the rows stays below the limit */

static void heavy(bp_ctx *c, bp_frame *f)
{
    bp_tensor *y = bp_mm(c, bp_arg(f, 0, "a"), bp_arg(f, 1, "b"));
    if (bp_is_true(c, bp_gt(c, bp_sum(c, y), 0)))
        y = bp_add(c, y, 1);
    if (bp_is_true(c, bp_gt(c, bp_amax(c, y), 1e9)))
        y = bp_neg(c, y);
    bp_return(f, bp_sum(c, y));
}

/* How often a backend was asked to compile what begins with a name; a refused one is not compiled. */
static int slices, others;
static bool refuses;
static bp_compiled *counting(bp_graph_module *gm, const bp_inputs *in)
{
    (void)in;
    bool is_slice = !strncmp(gm->name, "__slice_", 8);
    *(is_slice ? &slices : &others) += 1;
    if (is_slice && refuses)
        return bp_decline(gm, 0, "no slices here");
    return bp_forward(gm);
}

static bp_callable *compile_counting(fixture *f)
{
    slices = others = 0;
    refuses = false;
    return bp_compile(f->c, heavy, &(bp_compile_options){.backend_fn = counting});
}

static double call_heavy(fixture *f, bp_callable *g, int64_t rows, double sign)
{
    bp_ctx *c = f->c;
    bp_scope_begin(c);
    bp_tensor *in[2] = {bp_full(c, BP_DIMS(rows, N), sign), bp_ones(c, BP_DIMS(N, N))};
    double v = bp_item_float(c, bp_call1(c, g, 2, in));
    if (bp_error(c))
        fail_msg("%s", bp_error_text(c));
    bp_scope_end(c);
    return v;
}

static void c2_2_a_heavy_slice_is_compiled_by_the_chain(void **state)
{
    fixture *f = *state;
    bp_callable *g = compile_counting(f);
    double n = N;
    assert_true(call_heavy(f, g, N, 1) == n * n * (n + 1));
    assert_true(slices >= 1);
    int first = slices;
    uint32_t evaluated = stats(f, g).slices;
    assert_true(call_heavy(f, g, N, 1) == n * n * (n + 1)); /* a hit: nothing is sliced */
    assert_int_equal(slices, first);
    assert_true(call_heavy(f, g, N, -1) == -n * n * n);     /* another outcome: the slice is there already */
    assert_int_equal(slices, first);
    assert_int_equal(stats(f, g).graphs, others);
    assert_true(evaluated <= 4); /* mm is none of the nodes that reference kernels computed */
    buf text = {0};
    assert_int_equal(bp_print_explain(f->c, g, fixture_append, &text), BP_OK);
    assert_contains(buf_text(&text), "__slice_0: on ");
    buf_clear(&text);
    assert_int_equal(bp_print_assignment(f->c, g, fixture_append, &text), BP_OK);
    assert_contains(buf_text(&text), "__slice_0\n");
    buf_fini(&text);
    bp_callable_unref(g);
}

static void c2_2_a_light_slice_is_computed_by_reference_kernels(void **state)
{
    fixture *f = *state;
    bp_callable *g = compile_counting(f);
    double n = N, rows = N / 2;
    assert_true(call_heavy(f, g, N / 2, 1) == rows * n * (n + 1));
    assert_int_equal(slices, 0);
    assert_true(stats(f, g).slices >= 3);
    bp_callable_unref(g);
}

static void c2_2_a_slice_that_does_not_compile_is_computed_all_the_same(void **state)
{
    fixture *f = *state;
    bp_callable *g = compile_counting(f);
    refuses = true;
    double n = N;
    assert_int_equal(bp_set_config(f->c, "fallback", "error"), BP_OK);
    assert_true(call_heavy(f, g, N, 1) == n * n * (n + 1));
    assert_int_equal(slices >= 1, 1);
    assert_true(stats(f, g).slices >= 3);
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

static void drawn(bp_ctx *c, bp_frame *f)
{
    bp_tensor *y = bp_mm(c, bp_arg(f, 0, "a"), bp_rand(c, BP_DIMS(N, N)));
    if (bp_is_true(c, bp_gt(c, bp_sum(c, y), 0)))
        y = bp_add(c, y, 1);
    bp_return(f, bp_sum(c, y));
}

static void c2_2_a_slice_with_random_numbers_is_the_host_s(void **state)
{
    fixture *f = *state;
    slices = others = 0;
    bp_ctx *c = f->c;
    bp_callable *g = bp_compile(c, drawn, &(bp_compile_options){.backend_fn = counting});
    bp_tensor *a = bp_ones(c, BP_DIMS(N, N));
    bp_value in = bp_arg_of_tensor(a);
    bp_outputs eager = {0};
    bp_manual_seed(c, 5);
    assert_int_equal(bp_run_eager(c, drawn, NULL, &(bp_args){&in, 1}, &eager), BP_OK);
    bp_manual_seed(c, 5);
    bp_tensor *y = bp_call1(c, g, 1, &a);
    assert_true(bp_item_float(c, y) == bp_item_float(c, eager.at[0]));
    assert_int_equal(slices, 0);
    bp_callable_unref(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
        T(c2_2_a_heavy_slice_is_compiled_by_the_chain),
        T(c2_2_a_light_slice_is_computed_by_reference_kernels),
        T(c2_2_a_slice_that_does_not_compile_is_computed_all_the_same),
        T(c2_2_a_slice_with_random_numbers_is_the_host_s),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
