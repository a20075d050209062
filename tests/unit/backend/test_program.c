/* Programs: who takes which node, convex groups, and that a cut graph computes what the whole one does. */
#include "host/backend/room.h"
#include "tests/lib/world.h"
#include <stdlib.h>

/* -- backends of these tests: interpret what they are handed, and count it ----------------------------------------- */

static uint32_t compiles;
static char shown[4096]; /* the last graph that was handed over, as a table */

static bp_compiled *counting(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    buf text = {0};
    graph_print_tabular(&gm->g, &text);
    snprintf(shown, sizeof shown, "%s", buf_text(&text));
    buf_fini(&text);
    compiles++;
    return bp_forward(gm);
}

static bp_compiled *declining(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_decline(gm, 0, "not today");
}

static int32_t only_unary(const bp_graph_module *gm, uint32_t node, char *why, size_t cap)
{
    bp_value v;
    if (bp_node_arg(gm, node, "other", &v) != BP_OK)
        return 1;
    snprintf(why, cap, "%s has two arguments", bp_node_target(gm, node));
    return 0;
}

static uint64_t mask; /* bit of a node's id: supported */
static int32_t by_mask(const bp_graph_module *gm, uint32_t node, char *why, size_t cap)
{
    (void)gm;
    (void)why;
    (void)cap;
    return mask >> (node & 63) & 1;
}

static backend *add(world *w, const char *name, bp_compile_fn compile,
                    int32_t (*supports)(const bp_graph_module *, uint32_t, char *, size_t))
{
    world_ok(w, bp_register_backend_at(w->c, name, compile, NULL, NULL, __FILE__, __LINE__));
    backend *b = backend_find(w->rt, name);
    b->info = (bp_backend_info){.size = sizeof b->info, .flags = BP_CONCURRENT_RUN, .supports = supports};
    return b;
}

static program *compile(world *w, bp_graph_module *gm, backend *b)
{
    program *p = NULL;
    world_ok(w, program_compile(w->c, gm, b, &p));
    return p;
}

static void expect_assignment(const program *p, const char *want)
{
    buf text = {0};
    program_print_assignment(p, &text);
    assert_string_equal(buf_text(&text), want);
    buf_fini(&text);
}

/* Runs p and the interpreter on the same inputs: equal bits. */
static void expect_same(world *w, program *p, bp_graph_module *gm, uint32_t nin, bp_tensor **in)
{
    uint32_t n = graph_output_count(&gm->g);
    bp_tensor *got[16] = {NULL}, *want[16] = {NULL};
    assert_true(n <= 16);
    world_ok(w, program_run(w->c, p, &(program_io){.inputs = in, .ninputs = nin, .outputs = got, .noutputs = n}));
    world_ok(w, graph_run(w->c, gm, in, nin, want, n, NULL, NULL));
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(got[i] != NULL, want[i] != NULL);
        if (!got[i])
            continue;
        assert_int_equal(tensor_nelem(got[i]), tensor_nelem(want[i]));
        assert_memory_equal(tensor_ptr(got[i]), tensor_ptr(want[i]),
                            (size_t)tensor_nelem(got[i]) * dtype_size(got[i]->dtype));
        bp_tensor_unref(got[i]);
        bp_tensor_unref(want[i]);
    }
}

static bp_tensor *floats(world *w, int64_t n)
{
    float data[64];
    for (int64_t i = 0; i < n; i++)
        data[i] = (float)(i % 7) - 2.5f;
    bp_tensor *t = bp_tensor_from(w->c, BP_F32, 1, &n, data);
    assert_non_null(t);
    return t;
}

/* -- assignment ---------------------------------------------------------------------------------------------------- */

static void a_node_goes_to_the_first_backend_that_supports_it(void **state)
{
    (void)state;
    world *w = world_open("");
    backend *b = add(w, "unary", counting, only_unary);
    bp_graph_module *gm = world_graph(w, "graph g {\n"
                                         "  %x: f32[4] = placeholder \"x\" parameter\n"
                                         "  %abs_1: f32[4] = aten.abs.default(%x)\n"
                                         "  %add: f32[4] = aten.add.Tensor(%abs_1, %x, alpha=2)\n"
                                         "  %neg: f32[4] = aten.neg.default(%add)\n"
                                         "  output(%neg)\n"
                                         "}\n");
    compiles = 0;
    program *p = compile(w, gm, b);
    expect_assignment(p, "abs_1 (aten.abs.default) -> unary -> supported\n"
                         "add (aten.add.Tensor) -> eager -> unary: aten.add.Tensor has two arguments\n"
                         "neg (aten.neg.default) -> unary -> supported\n");
    assert_int_equal(compiles, 2);
    assert_contains(shown, "placeholder    add     add");
    assert_contains(buf_text(&w->log), "leaves 1 of 3 operators of graph \"g\" to eager: node \"add\" (aten.add");
    bp_tensor *x = floats(w, 4);
    expect_same(w, p, gm, 1, &x);
    program_unref(p);
    gm_unref(gm);
    world_close(w);
}

static void a_strict_policy_refuses_the_node_that_the_first_backend_does_not_take(void **state)
{
    (void)state;
    world *w = world_open("[host]\nfallback = error\n");
    backend *b = add(w, "unary", counting, only_unary);
    bp_graph_module *gm = world_graph(w, "graph g {\n"
                                         "  %x: f32[4] = placeholder \"x\" user\n"
                                         "  %add: f32[4] = aten.add.Tensor(%x, %x)\n"
                                         "  output(%add)\n"
                                         "}\n");
    program *p;
    assert_int_equal(program_compile(w->c, gm, b, &p), BP_UNIMPLEMENTED);
    assert_null(p);
    assert_contains(bp_error_text(w->c), "backend \"unary\" did not compile graph \"g\": node \"add\" "
                                         "(aten.add.Tensor): aten.add.Tensor has two arguments");
    assert_contains(bp_error_text(w->c), "fallback = error");
    gm_unref(gm);
    world_close(w);
}

static void a_whole_graph_is_handed_as_it_is(void **state)
{
    (void)state;
    world *w = world_open("");
    backend *b = add(w, "whole", counting, NULL);
    bp_graph_module *gm = world_graph(w, "graph g {\n"
                                         "  %x: f32[4] = placeholder \"x\" user\n"
                                         "  %y: f32[4] = placeholder \"y\" user\n"
                                         "  %add: f32[4] = aten.add.Tensor(%x, %y)\n"
                                         "  output(%add, None, %x, %add)\n"
                                         "}\n");
    buf table = {0};
    graph_print_tabular(&gm->g, &table);
    program *p = compile(w, gm, b);
    assert_string_equal(shown, table.s);
    expect_assignment(p, "add (aten.add.Tensor) -> whole -> takes whole graphs\n");
    bp_tensor *in[2] = {floats(w, 4), floats(w, 4)}, *out[4];
    world_ok(w, program_run(w->c, p, &(program_io){.inputs = in, .ninputs = 2, .outputs = out, .noutputs = 4}));
    assert_null(out[1]);
    assert_ptr_equal(out[2], in[0]);
    assert_ptr_equal(out[3], out[0]);
    for (int i = 0; i < 4; i++)
        bp_tensor_unref(out[i]);
    buf_fini(&table);
    program_unref(p);
    gm_unref(gm);
    world_close(w);
}

static void lists_stay_with_their_items_and_constants_go_to_every_group(void **state)
{
    (void)state;
    world *w = world_open("");
    backend *b = add(w, "unary", counting, only_unary);
    bp_graph_module *gm = world_graph(w, "graph g {\n"
                                         "  %x: f32[4] = placeholder \"x\" user\n"
                                         "  %k: f32[2] = get_attr \"k\" data \"AACAPwAAAEA=\"\n"
                                         "  %split: (f32[2], f32[2]) = aten.split_with_sizes.default(%x, [2, 2])\n"
                                         "  %a: f32[2] = <built-in function getitem>(%split, 0)\n"
                                         "  %b: f32[2] = <built-in function getitem>(%split, 1)\n"
                                         "  %mul: f32[2] = aten.mul.Tensor(%a, %k)\n"
                                         "  %neg: f32[2] = aten.neg.default(%k)\n"
                                         "  %exp: f32[2] = aten.exp.default(%mul)\n"
                                         "  output(%exp, %b, %neg, %k)\n"
                                         "}\n");
    program *p = compile(w, gm, b);
    buf names = {0};
    program_print_backends(p, &names);
    assert_string_equal(names.s, "unary, eager");
    buf_fini(&names);
    bp_tensor *x = floats(w, 4);
    expect_same(w, p, gm, 1, &x);
    program_unref(p);
    gm_unref(gm);
    world_close(w);
}

static void a_graph_that_writes_in_place_is_not_cut(void **state)
{
    (void)state;
    world *w = world_open("");
    backend *b = add(w, "unary", counting, only_unary);
    bp_graph_module *gm = world_graph(w, "graph g {\n"
                                         "  %x: f32[4] = placeholder \"x\" user\n"
                                         "  %abs_1: f32[4] = aten.abs.default(%x)\n"
                                         "  %add_: f32[4] = aten.add_.Tensor(%abs_1, %x)\n"
                                         "  %neg: f32[4] = aten.neg.default(%abs_1)\n"
                                         "  output(%neg)\n"
                                         "}\n");
    compiles = 0;
    program *p = compile(w, gm, b);
    assert_int_equal(compiles, 0);
    buf text = {0};
    program_print_assignment(p, &text);
    assert_contains(text.s, "neg (aten.neg.default) -> eager -> ");
    assert_contains(text.s, "cannot be cut");
    buf_fini(&text);
    bp_tensor *x = floats(w, 4);
    expect_same(w, p, gm, 1, &x);
    program_unref(p);
    gm_unref(gm);
    world_close(w);
}

static void a_graph_without_operators_is_compiled_whole(void **state)
{
    (void)state;
    world *w = world_open("");
    backend *b = add(w, "unary", counting, only_unary);
    bp_graph_module *gm = world_graph(w, "graph g {\n  %x: f32[4] = placeholder \"x\" user\n  output(%x)\n}\n");
    compiles = 0;
    program *p = compile(w, gm, b);
    assert_int_equal(compiles, 1);
    bp_tensor *x = floats(w, 4), *out;
    world_ok(w, program_run(w->c, p, &(program_io){.inputs = &x, .ninputs = 1, .outputs = &out, .noutputs = 1}));
    assert_ptr_equal(out, x);
    bp_tensor_unref(out);
    program_unref(p);
    gm_unref(gm);
    world_close(w);
}

static void wrong_numbers_of_inputs_are_told(void **state)
{
    (void)state;
    world *w = world_open("");
    bp_graph_module *gm = world_graph(w, "graph g {\n  %x: f32[4] = placeholder \"x\" user\n  output(%x)\n}\n");
    program *p = compile(w, gm, backend_find(w->rt, "eager"));
    bp_tensor *out;
    assert_int_equal(program_run(w->c, p, &(program_io){.outputs = &out, .noutputs = 1}), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_text(w->c), "graph \"g\" takes 1 inputs and gives 1 outputs, got 0 and 1");
    program_unref(p);
    gm_unref(gm);
    world_close(w);
}

static void a_backend_that_wants_core_graphs_is_not_handed_others(void **state)
{
    (void)state;
    world *w = world_open("");
    backend *b = add(w, "core-only", counting, NULL);
    b->info.graph = BP_GRAPH_CORE;
    bp_graph_module *gm = world_graph(w, "graph g {\n"
                                         "  %x: f32[4] = placeholder \"x\" user\n"
                                         "  %abs_1: f32[4] = aten.abs.default(%x)\n"
                                         "  %add_: f32[4] = aten.add_.Tensor(%abs_1, %x)\n"
                                         "  output(%add_)\n"
                                         "}\n");
    compiles = 0;
    program *p = compile(w, gm, b);
    assert_int_equal(compiles, 0);
    expect_assignment(p, "abs_1 (aten.abs.default) -> eager -> core-only: it wants core graphs, and node \"add_\" is "
                         "aten.add_.Tensor\n"
                         "add_ (aten.add_.Tensor) -> eager -> core-only: it wants core graphs, and node \"add_\" is "
                         "aten.add_.Tensor\n");
    program_unref(p);
    gm_unref(gm);
    world_close(w);
}

/* -- random graphs ------------------------------------------------------------------------------------------------- */

static uint32_t seed = 1;
static uint32_t roll(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

/* A graph of up to 20 operators on earlier values, some returned. */
static void write_graph(buf *out)
{
    static const char *const UNARY[] = {"neg", "abs", "relu", "sigmoid"};
    static const char *const BINARY[] = {"add.Tensor", "mul.Tensor"};
    uint32_t n = 1 + roll(20);
    buf_clear(out);
    buf_puts(out, "graph r {\n  %v0: f32[5] = placeholder \"v0\" user\n  %v1: f32[5] = placeholder \"v1\" user\n");
    for (uint32_t i = 2; i < n + 2; i++) {
        buf_printf(out, "  %%v%u: f32[5] = aten.", (unsigned)i);
        if (roll(2))
            buf_printf(out, "%s.default(%%v%u)\n", UNARY[roll(4)], (unsigned)roll(i));
        else
            buf_printf(out, "%s(%%v%u, %%v%u)\n", BINARY[roll(2)], (unsigned)roll(i), (unsigned)roll(i));
    }
    buf_puts(out, "  output(");
    for (uint32_t i = 0, k = 1 + roll(4); i < k; i++)
        buf_printf(out, "%s%%v%u", i ? ", " : "", (unsigned)roll(n + 2));
    buf_puts(out, ")\n}\n");
}

static void a_cut_graph_computes_what_the_whole_one_does(void **state)
{
    (void)state;
    world *w = world_open("[host]\nfallback = silent\n");
    backend *b = add(w, "masked", counting, by_mask);
    bp_tensor *in[2] = {floats(w, 5), floats(w, 5)};
    buf text = {0};
    uint32_t cut = 0;
    for (int i = 0; i < 400; i++) {
        write_graph(&text);
        mask = (uint64_t)roll(1u << 24) << 24 | roll(1u << 24);
        bp_graph_module *gm = world_graph(w, text.s);
        program *p = compile(w, gm, b);
        buf names = {0};
        program_print_backends(p, &names);
        cut += strchr(buf_text(&names), ',') != NULL;
        buf_fini(&names);
        expect_same(w, p, gm, 2, in);
        program_unref(p);
        gm_unref(gm);
    }
    assert_true(cut > 200);
    buf_fini(&text);
    world_close(w);
}

/* A group whose link declines is assigned anew over the links behind it. */
static void a_group_that_is_declined_moves_on_alone(void **state)
{
    (void)state;
    world *w = world_open("[host]\nfallback = silent\nprobe_helper = @helper@\n"
                          "[backend three]\nlibrary = @plugins@/backplane-compose.so\nopt.chain = shy, unary, eager\n");
    add(w, "shy", declining, by_mask);
    add(w, "unary", counting, only_unary);
    backend *b = backend_lookup(w->c, "three");
    assert_non_null(b);
    bp_graph_module *gm = world_graph(w, "graph g {\n"
                                         "  %x: f32[4] = placeholder \"x\" user\n"
                                         "  %abs_1: f32[4] = aten.abs.default(%x)\n"
                                         "  %add: f32[4] = aten.add.Tensor(%abs_1, %x)\n"
                                         "  %neg: f32[4] = aten.neg.default(%add)\n"
                                         "  output(%neg)\n"
                                         "}\n");
    mask = 1u << 2 | 1u << 3; /* abs_1 and add */
    program *p = compile(w, gm, b);
    expect_assignment(p, "abs_1 (aten.abs.default) -> unary -> shy: not today\n"
                         "add (aten.add.Tensor) -> eager -> shy: not today; unary: aten.add.Tensor has two arguments\n"
                         "neg (aten.neg.default) -> unary -> shy: not supported, without a reason\n");
    assert_int_equal(program_fallbacks(p), 1);
    bp_tensor *x = floats(w, 4);
    expect_same(w, p, gm, 1, &x);
    program_unref(p);
    gm_unref(gm);
    world_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_goes_to_the_first_backend_that_supports_it),
        cmocka_unit_test(a_strict_policy_refuses_the_node_that_the_first_backend_does_not_take),
        cmocka_unit_test(a_whole_graph_is_handed_as_it_is),
        cmocka_unit_test(lists_stay_with_their_items_and_constants_go_to_every_group),
        cmocka_unit_test(a_graph_that_writes_in_place_is_not_cut),
        cmocka_unit_test(a_graph_without_operators_is_compiled_whole),
        cmocka_unit_test(wrong_numbers_of_inputs_are_told),
        cmocka_unit_test(a_backend_that_wants_core_graphs_is_not_handed_others),
        cmocka_unit_test(a_cut_graph_computes_what_the_whole_one_does),
        cmocka_unit_test(a_group_that_is_declined_moves_on_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
