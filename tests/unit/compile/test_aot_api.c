/* Backends made of C functions for training, and graphs without a run. */
#include "host/graph/graph.h"
#include "tests/unit/compile/fixture.h"
#include <math.h>

static void layer(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *w = bp_arg(f, 1, "w");
    bp_return(f, bp_silu(c, bp_mul(c, x, w)));
}

static struct { int fw, bw, inference; bool has_silu; } seen;

static bool calls(const bp_graph_module *gm, const char *target)
{
    for (node_id n = gm->g.first; n; n = graph_get(&gm->g, n)->next)
        if (!strcmp(graph_get(&gm->g, n)->target, target))
            return true;
    return false;
}

static bp_compiled *fw(bp_graph_module *gm, const bp_inputs *in)
{
    (void)in;
    seen.fw++;
    seen.has_silu = calls(gm, "aten.silu.default");
    return bp_forward(gm);
}
static bp_compiled *bw(bp_graph_module *gm, const bp_inputs *in) { (void)in; seen.bw++; return bp_forward(gm); }
static bp_compiled *inference(bp_graph_module *gm, const bp_inputs *in)
{
    (void)in;
    seen.inference++;
    return bp_forward(gm);
}

static bp_tensor *leaf(fixture *f, float a, float b)
{
    bp_tensor *t = FLOATS(f, a, b);
    bp_tensor_set_requires_grad(f->c, t, 1);
    return t;
}

static void train(fixture *f, bp_callable *g)
{
    bp_tensor *x = leaf(f, 0.5f, 1), *w = leaf(f, 2, 3), *y = leaf(f, 0.5f, 1), *v = leaf(f, 2, 3);
    bp_backward(f->c, bp_sum(f->c, CALL(f, g, x, w).at[0]), NULL, 0);
    bp_backward(f->c, bp_sum(f->c, bp_silu(f->c, bp_mul(f->c, y, v))), NULL, 0);
    assert_string_equal(bp_error_text(f->c), "");
    bp_tensor *got = bp_tensor_grad(f->c, x), *want = bp_tensor_grad(f->c, y);
    for (int i = 0; i < 2; i++)
        assert_true(fabsf(at(f, got, i) - at(f, want, i)) < 1e-5f);
}

static bp_callable *wrapped(fixture *f, const bp_aot_options *o, bool both)
{
    memset(&seen, 0, sizeof seen);
    assert_int_equal(bp_aot_autograd_at(f->c, fw, both ? bw : NULL, both ? inference : NULL, o, sizeof *o, __FILE__, 1),
                     BP_OK);
    bp_compile_options k = {.backend = o->name};
    return bp_compile_at(f->c, layer, &k, sizeof k, "layer", __FILE__, __LINE__);
}

static void F031_forward_backward_and_inference_have_compilers_of_their_own(void **state)
{
    fixture *f = *state;
    bp_callable *g = wrapped(f, &(bp_aot_options){.name = "three"}, true);
    train(f, g);
    CALL(f, g, FLOATS(f, 1, 2), FLOATS(f, 1, 2));
    assert_int_equal(seen.fw, 1);
    assert_int_equal(seen.bw, 1);
    assert_int_equal(seen.inference, 1);
    bp_callable_unref(g);
}

static void F031_backward_and_inference_default_to_forward(void **state)
{
    fixture *f = *state;
    bp_callable *g = wrapped(f, &(bp_aot_options){.name = "one"}, false);
    train(f, g);
    CALL(f, g, FLOATS(f, 1, 2), FLOATS(f, 1, 2));
    assert_int_equal(seen.fw, 3);
    bp_callable_unref(g);
}

static void F034_both_partitioners_give_the_same_gradients(void **state)
{
    fixture *f = *state;
    bp_callable *g = wrapped(f, &(bp_aot_options){.name = "all", .partition = "default"}, true);
    train(f, g);
    bp_callable_unref(g);
    g = wrapped(f, &(bp_aot_options){.name = "least", .partition = "min-cut"}, true);
    train(f, g);
    bp_callable_unref(g);
}

static void F033_joint_graphs_are_decomposed_but_for_what_is_wanted_whole(void **state)
{
    fixture *f = *state;
    static const char *const WHOLE[] = {"aten.silu.default", NULL};
    bp_callable *g = wrapped(f, &(bp_aot_options){.name = "core", .decompose = 1}, true);
    train(f, g);
    assert_false(seen.has_silu);
    bp_callable_unref(g);
    g = wrapped(f, &(bp_aot_options){.name = "whole", .decompose = 1, .whole_ops = WHOLE}, true);
    train(f, g);
    assert_true(seen.has_silu);
    bp_callable_unref(g);
}

static void keep(void *arg, const char *text, size_t n)
{
    buf *b = arg;
    buf_add(b, text, n);
}

static void F035_options_are_taken_or_refused_by_name(void **state)
{
    fixture *f = *state;
    bp_callable *g = wrapped(f, &(bp_aot_options){.name = "options", .keep_inference_input_mutations = 1,
                                                  .pre_grad_passes = "dce,cse", .compile_region_name = "here"}, true);
    train(f, g);
    buf told = {0};
    assert_int_equal(bp_print_explain(f->c, g, keep, &told), BP_OK);
    assert_contains(buf_text(&told), "here.__compiled_fn_0");
    buf_fini(&told);
    bp_callable_unref(g);
    const bp_aot_options BAD[] = {{.name = "a", .partition = "best"}, {.name = "b", .disable_functionalization = 1},
                                  {.name = "c", .pre_grad_passes = "dce,fuse"},
                                  {.name = "d", .compile_region_name = "not a name"}};
    static const char *const WHY[] = {"unknown partition \"best\"", "functional always", "unknown pass \"fuse\"",
                                      "compile_region_name \"not a name\": 1 to 64 letters"};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(bp_aot_autograd(f->c, fw, NULL, NULL, &BAD[i]), BP_INVALID_ARGUMENT);
        assert_contains(bp_error_text(f->c), WHY[i]);
        bp_error_clear(f->c);
    }
    const char *const extra[] = {"speed", "high", NULL};
    bp_compile_options k = {.backend = "options", .options = extra};
    g = bp_compile_at(f->c, layer, &k, sizeof k, "layer", __FILE__, __LINE__);
    assert_non_null(g);
    assert_contains(buf_text(&f->log), "ignores: option \"speed\"");
    bp_callable_unref(g);
}

static void F037_a_call_gives_the_graphs_without_running(void **state)
{
    fixture *f = *state;
    buf out = {0};
    bp_tensor *x = leaf(f, 0, 1), *w = FLOATS(f, 2, 3);
    bp_value at[2] = {bp_arg_of_tensor(x), bp_arg_of_tensor(w)};
    assert_int_equal(bp_aot_graphs(f->c, layer, NULL, &(bp_args){at, 2}, "default", keep, &out), BP_OK);
    const char *joint = strstr(buf_text(&out), "graph function {");
    const char *fwd = strstr(buf_text(&out), "graph function_forward");
    const char *back = strstr(buf_text(&out), "graph function_backward");
    assert_true(joint && fwd && back && joint < fwd && fwd < back);
    assert_contains(fwd, "aten.silu.default(%mul)");
    assert_contains(joint, "placeholder \"tangents_1\"");
    buf_fini(&out);
    at[0] = at[1];
    assert_int_equal(bp_aot_graphs(f->c, layer, NULL, &(bp_args){at, 2}, NULL, keep, &out), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_text(f->c), "no result of the function requires grad");
    bp_error_clear(f->c);
    buf_fini(&out);
}

static void trains_inside(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *w = bp_arg(f, 1, "w"), *y = bp_sum(c, bp_mul(c, x, w));
    bp_backward(c, y, NULL, 0);
    bp_return(f, y);
}

static void F038_backward_inside_a_function_is_no_part_of_its_graph(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, trains_inside);
    bp_tensor *x = leaf(f, 1, 2), *w = leaf(f, 3, 4);
    for (int i = 1; i <= 2; i++) {
        CALL(f, g, x, w);
        assert_true(at(f, bp_tensor_grad(f->c, x), 0) == 3.f * (float)i);
        assert_true(at(f, bp_tensor_grad(f->c, w), 1) == 2.f * (float)i);
    }
    bp_callable_unref(g);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(F031_forward_backward_and_inference_have_compilers_of_their_own),
        T(F031_backward_and_inference_default_to_forward),
        T(F034_both_partitioners_give_the_same_gradients),
        T(F033_joint_graphs_are_decomposed_but_for_what_is_wanted_whole),
        T(F035_options_are_taken_or_refused_by_name),
        T(F037_a_call_gives_the_graphs_without_running),
        T(F038_backward_inside_a_function_is_no_part_of_its_graph),
    };
    return cmocka_run_group_tests_name("aot api", tests, NULL, NULL);
}
