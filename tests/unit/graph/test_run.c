/* The interpreter and the propagation of shapes. */
#include "tests/unit/graph/build.h"

static bp_graph_module *parse(bp_ctx *c, const char *text)
{
    bp_graph_module *gm = graph_parse_text(c, "t.bpg", text, strlen(text));
    assert_string_equal(bp_error_text(c), "");
    return gm;
}

static bp_tensor *floats(bp_ctx *c, int64_t n, const float *values)
{
    bp_tensor *t = tensor_contiguous_new(c, BP_F32, 1, &n);
    memcpy(tensor_ptr(t), values, (size_t)n * sizeof *values);
    return t;
}

static const char TWO[] = "graph g {\n  %a: f32[2] = placeholder \"a\" user\n  %b: f32[2] = placeholder \"b\" user\n"
                          "  %mul = aten.mul.Tensor(%a, %b)\n  %add = aten.add.Tensor(%mul, %a, alpha=2)\n"
                          "  output(%add, None, %a, %add)\n}\n";

static void a_graph_computes_its_outputs(void **state)
{
    bp_ctx *c = *state;
    bp_graph_module *gm = parse(c, TWO);
    bp_tensor *in[] = {floats(c, 2, (float[]){1, 2}), floats(c, 2, (float[]){10, 20})}, *out[4];
    assert_int_equal(graph_run(c, gm, in, 2, out, 4, NULL, NULL), BP_OK);
    const float *v = tensor_ptr(out[0]);
    assert_true(v[0] == 12 && v[1] == 44);
    assert_null(out[1]);
    assert_ptr_equal(out[2], in[0]);
    assert_ptr_equal(out[3], out[0]);
    assert_int_equal(out[0]->refs, 2);
    for (int i = 0; i < 4; i++)
        tensor_unref(out[i]);
    assert_int_equal(in[0]->refs, 1);
    tensor_unref(in[0]);
    tensor_unref(in[1]);
    gm_unref(gm);
}

typedef struct { char text[256]; bp_tensor *held; int refs; } trace;

static bp_status note(void *arg, node_id n, bp_tensor *const *results, uint32_t nresults)
{
    trace *t = arg;
    snprintf(t->text + strlen(t->text), sizeof t->text - strlen(t->text), "%u:%u ", n, nresults);
    if (n == 3)
        t->held = tensor_ref(results[0]);
    if (n == 5) /* add has run: nothing but the test holds mul any longer */
        t->refs = (int)t->held->refs;
    return BP_OK;
}

static void values_die_behind_their_last_use(void **state)
{
    bp_ctx *c = *state;
    trace t = {.refs = 0};
    bp_graph_module *gm = parse(c, "graph g {\n  %a: f32[2] = placeholder \"a\" user\n"
                                   "  %b: f32[2] = placeholder \"b\" user\n"
                                   "  %mul = aten.mul.Tensor(%a, %b)\n  %add = aten.add.Tensor(%mul, %mul)\n"
                                   "  %abs = aten.abs.default(%add)\n  output(%abs)\n}\n");
    bp_tensor *in[] = {floats(c, 2, (float[]){1, 2}), floats(c, 2, (float[]){10, 20})}, *out[1];
    assert_int_equal(graph_run(c, gm, in, 2, out, 1, note, &t), BP_OK);
    assert_string_equal(t.text, "1:1 2:1 3:1 4:1 5:1 ");
    assert_int_equal(t.refs, 1);
    tensor_unref(t.held);
    tensor_unref(out[0]);
    tensor_unref(in[0]);
    tensor_unref(in[1]);
    gm_unref(gm);
}

static void a_number_in_a_tensors_place_promotes_as_a_number(void **state)
{
    bp_ctx *c = *state;
    bp_graph_module *gm = parse(c, "graph g {\n  %a: f32[2] = placeholder \"a\" user\n"
                                   "  %mul = aten.mul.Tensor(%a, 2.5)\n  %add = aten.add.Tensor(3, %mul)\n"
                                   "  output(%add)\n}\n");
    bp_tensor *in = floats(c, 2, (float[]){1, 2}), *out[1];
    assert_int_equal(graph_run(c, gm, &in, 1, out, 1, NULL, NULL), BP_OK);
    const float *v = tensor_ptr(out[0]);
    assert_int_equal(out[0]->dtype, BP_F32); /* the number's float64 does not count */
    assert_true(v[0] == 5.5f && v[1] == 8);
    tensor_unref(out[0]);
    tensor_unref(in);
    gm = (gm_unref(gm), parse(c, "graph g {\n  %a: i64[2] = placeholder \"a\" user\n"
                                 "  %mul = aten.mul.Tensor(%a, 2.5)\n  output(%mul)\n}\n"));
    in = tensor_contiguous_new(c, BP_I64, 1, (int64_t[]){2});
    memset(tensor_ptr(in), 0, 16);
    assert_int_equal(graph_run(c, gm, &in, 1, out, 1, NULL, NULL), BP_OK);
    assert_int_equal(out[0]->dtype, BP_F32); /* a Python float beside int64 gives the default dtype */
    tensor_unref(out[0]);
    tensor_unref(in);
    gm_unref(gm);
}

static void getitem_picks_from_several_results(void **state)
{
    bp_ctx *c = *state;
    bp_graph_module *gm = parse(c, "graph g {\n  %a: f32[2] = placeholder \"a\" user\n"
                                   "  %frexp = aten.frexp.Tensor(%a)\n"
                                   "  %x = <built-in function getitem>(%frexp, 0)\n"
                                   "  %y = <built-in function getitem>(%frexp, -1)\n  output(%x, %y)\n}\n");
    bp_tensor *in = floats(c, 2, (float[]){3, 8}), *out[2];
    assert_int_equal(graph_run(c, gm, &in, 1, out, 2, NULL, NULL), BP_OK);
    const float *x = tensor_ptr(out[0]);
    const int32_t *y = tensor_ptr(out[1]);
    assert_true(x[0] == 0.75f && x[1] == 0.5f && y[0] == 2 && y[1] == 4);
    tensor_unref(out[0]);
    tensor_unref(out[1]);
    tensor_unref(in);
    gm_unref(gm);
}

/* Sizes are computed with as Python does, on real inputs and on fakes. */
static void numbers_are_computed_as_python_does(void **state)
{
    bp_ctx *c = *state;
    static const struct { const char *call, *operand; int64_t size; } cases[] = {
        {"add", "%s, 3", 8}, {"sub", "%s, 3", 2}, {"mul", "%s, 2", 10}, {"floordiv", "%s, 2", 2}, {"mod", "%s, 3", 2},
        {"floordiv", "-1, %s", -1}, {"mod", "-1, %s", 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[600], operand[40];
        bp_tensor *in = floats(c, 5, (float[]){1, 2, 3, 4, 5}), *out[1];
        snprintf(operand, sizeof operand, cases[i].operand, "%sym_size");
        snprintf(text, sizeof text, "graph g {\n  %%a: f32[5] = placeholder \"a\" user\n"
                 "  %%sym_size = aten.sym_size.int(%%a, 0)\n  %%n = <built-in function %s>(%s)\n"
                 "  %%up = <built-in function add>(%%n, 2)\n  %%ge = <built-in function ge>(%%up, 0)\n"
                 "  %%_assert_scalar = aten._assert_scalar.default(%%ge, \"size\")\n"
                 "  %%full = aten.full.default([%%up], 1)\n  output(%%full)\n}\n", cases[i].call, operand);
        bp_graph_module *gm = parse(c, text);
        assert_int_equal(graph_run(c, gm, &in, 1, out, 1, NULL, NULL), BP_OK);
        assert_int_equal(tensor_dim(out[0], 0), cases[i].size + 2);
        assert_int_equal(graph_propagate(c, gm), BP_OK);
        tensor_unref(out[0]);
        tensor_unref(in);
        gm_unref(gm);
    }
}

static void comparisons_and_quotients_of_numbers(void **state)
{
    bp_ctx *c = *state;
    static const struct { const char *call; bp_status code; } cases[] = {
        {"eq>(2, 2)", BP_OK}, {"eq>(2, 2.5)", BP_INVALID_ARGUMENT}, {"ne>(2, 3)", BP_OK}, {"lt>(2, 3)", BP_OK},
        {"lt>(3, 3)", BP_INVALID_ARGUMENT}, {"le>(3, 3)", BP_OK}, {"gt>(9007199254740993, 9007199254740992)", BP_OK},
        {"ge>(2, 3)", BP_INVALID_ARGUMENT}, {"truediv>(1, 2)", BP_OK}, {"floordiv>(1, 2)", BP_INVALID_ARGUMENT},
        {"mod>(-0.5, 1.0)", BP_OK}, {"mod>(1, 0)", BP_INVALID_ARGUMENT}, {"add>(1, None)", BP_INVALID_ARGUMENT},
        {"mul>(9223372036854775807, 2)", BP_INVALID_ARGUMENT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[400];
        bp_tensor *in = floats(c, 1, (float[]){1}), *out[1] = {NULL};
        snprintf(text, sizeof text, "graph g {\n  %%a: f32[1] = placeholder \"a\" user\n"
                 "  %%x = <built-in function %s\n  %%_assert_scalar = aten._assert_scalar.default(%%x, \"it\")\n"
                 "  output(%%a)\n}\n", cases[i].call);
        bp_graph_module *gm = parse(c, text);
        bp_status s = graph_run(c, gm, &in, 1, out, 1, NULL, NULL);
        if (s != cases[i].code && !(cases[i].code && s))
            print_error("%s: %s\n", cases[i].call, bp_error_text(c));
        assert_int_equal(s != BP_OK, cases[i].code != BP_OK);
        bp_error_clear(c);
        tensor_unref(out[0]);
        tensor_unref(in);
        gm_unref(gm);
    }
}

static const struct { const char *body, *words; bp_status code; uint32_t ninputs; } FAILS[] = {
    {"  %x = <built-in function frob>(%a)\n", "the Python builtin \"frob\" is not supported", BP_UNIMPLEMENTED, 1},
    {"  %x = <built-in function getitem>(%a, 0)\n", "getitem takes a list", BP_INVALID_ARGUMENT, 1},
    {"  %f = aten.frexp.Tensor(%a)\n  %x = <built-in function getitem>(%f, 2)\n", "index 2 is outside a list of 2",
     BP_INVALID_ARGUMENT, 1},
    {"", "needs an input for \"a\", and got 0 inputs", BP_INVALID_ARGUMENT, 0},
    {"", "has 1 inputs, got 2", BP_INVALID_ARGUMENT, 2},
};

static void a_failing_node_is_named_and_nothing_is_left(void **state)
{
    bp_ctx *c = *state;
    for (size_t i = 0; i < sizeof FAILS / sizeof *FAILS; i++) {
        buf text = {0};
        buf_printf(&text, "graph g {\n  %%a: f32[2] = placeholder \"a\" user\n%s  output(%%a)\n}\n", FAILS[i].body);
        bp_graph_module *gm = parse(c, buf_text(&text));
        bp_tensor *in[2] = {floats(c, 2, (float[]){1, 2}), floats(c, 2, (float[]){1, 2})}, *out[1];
        assert_int_equal(graph_run(c, gm, in, FAILS[i].ninputs, out, 1, NULL, NULL), FAILS[i].code);
        assert_contains(bp_error_text(c), FAILS[i].words);
        assert_null(out[0]);
        assert_int_equal(in[0]->refs, 1);
        bp_error_clear(c);
        tensor_unref(in[0]);
        tensor_unref(in[1]);
        gm_unref(gm);
        buf_fini(&text);
    }
}

static void shapes_follow_from_the_inputs(void **state)
{
    bp_ctx *c = *state;
    bp_graph_module *gm = parse(c, "graph g {\n  %a: f32[3, 1; 1, 3] = placeholder \"a\" user\n"
                                   "  %b: f64[1, 4] = placeholder \"b\" user\n"
                                   "  %c: i64[2] = get_attr \"c\" data \"AQAAAAAAAAACAAAAAAAAAA==\"\n"
                                   "  %frexp = aten.frexp.Tensor(%a)\n  %x = <built-in function getitem>(%frexp, 1)\n"
                                   "  %mul = aten.mul.Tensor(%a, %b)\n  %mul_1 = aten.mul.Tensor(%c, 2.5)\n"
                                   "  output(%mul, %x)\n}\n");
    buf out = {0};
    assert_int_equal(graph_propagate(c, gm), BP_OK);
    graph_print_text(gm, &out);
    assert_contains(buf_text(&out), "%frexp: (f32[3, 1], i32[3, 1]) = ");
    assert_contains(buf_text(&out), "%x: i32[3, 1] = ");
    assert_contains(buf_text(&out), "%mul: f64[3, 4] = ");
    assert_contains(buf_text(&out), "%mul_1: f32[2] = ");
    buf_fini(&out);
    gm_unref(gm);
}

static void propagation_fails_as_eager_does(void **state)
{
    bp_ctx *c = *state;
    bp_graph_module *gm = parse(c, "graph g {\n  %a: f32[3] = placeholder \"a\" user\n"
                                   "  %b: f32[4] = placeholder \"b\" user\n"
                                   "  %mul = aten.mul.Tensor(%a, %b)\n  output(%mul)\n}\n");
    assert_int_equal(graph_propagate(c, gm), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_text(c), "running \"mul\" of graph \"g\"");
    assert_contains(bp_error_text(c), "t.bpg:4");
    bp_error_clear(c);
    assert_null(c->modes);
    gm_unref(gm);
    gm = parse(c, "graph g {\n  %a = placeholder \"a\" user\n  output(%a)\n}\n");
    assert_int_equal(graph_propagate(c, gm), BP_FAILED_PRECONDITION);
    assert_contains(bp_error_text(c), "input \"a\" of graph \"g\" has no type");
    bp_error_clear(c);
    gm_unref(gm);
}

static void declared_types_must_be_those_of_the_operators(void **state)
{
    bp_ctx *c = *state;
    bp_graph_module *gm = parse(c, "graph g {\n  %a: f32[3, 2] = placeholder \"a\" user\n"
                                   "  %b: f32[3, 2] = aten.abs.default(%a)\n  %c = aten.abs.default(%b)\n"
                                   "  output(%c)\n}\n");
    assert_int_equal(graph_check_types(c, gm), BP_OK);
    assert_int_equal(graph_get(&gm->g, 3)->nmetas, 1);
    gm->g.nodes.at[2].metas[0].strides[0].value = 1;
    assert_int_equal(graph_check_types(c, gm), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_text(c), "\"b\" is declared as f32[3, 2; 1, 1], and its operator gives f32[3, 2]");
    assert_contains(bp_error_text(c), "t.bpg:3");
    bp_error_clear(c);
    gm_unref(gm);
}

static int make_ctx(void **state)
{
    return (*state = bp_ctx_new(NULL)) ? 0 : -1;
}

static int drop_ctx(void **state)
{
    bp_ctx_destroy(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest claims[] = {
        cmocka_unit_test(a_graph_computes_its_outputs),
        cmocka_unit_test(values_die_behind_their_last_use),
        cmocka_unit_test(a_number_in_a_tensors_place_promotes_as_a_number),
        cmocka_unit_test(getitem_picks_from_several_results),
        cmocka_unit_test(numbers_are_computed_as_python_does),
        cmocka_unit_test(comparisons_and_quotients_of_numbers),
        cmocka_unit_test(a_failing_node_is_named_and_nothing_is_left),
        cmocka_unit_test(shapes_follow_from_the_inputs),
        cmocka_unit_test(propagation_fails_as_eager_does),
        cmocka_unit_test(declared_types_must_be_those_of_the_operators),
    };
    return cmocka_run_group_tests(claims, make_ctx, drop_ctx);
}
