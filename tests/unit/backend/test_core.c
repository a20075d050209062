/* Graphs in core ATen for backends that want them: what they are handed, what they keep whole, their own rows. */
#include "host/backend/room.h"
#include "host/backend/program.h"
#include "tests/lib/world.h"
#include <stdlib.h>

static char shown[4096]; /* the targets of the last graph that was handed over */
static uint32_t compiles, asked;

static bp_compiled *keeping(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    shown[0] = '\0';
    for (node_id n = gm->g.first; n; n = graph_get(&gm->g, n)->next)
        if (graph_get(&gm->g, n)->op == BP_NODE_CALL_FUNCTION)
            snprintf(shown + strlen(shown), sizeof shown - strlen(shown), "%s ", graph_get(&gm->g, n)->target);
    compiles++;
    return bp_forward(gm);
}

static const char LAYER[] = "graph g {\n  %x: f32[2, 3] = placeholder \"x\" user\n"
                            "  %w: f32[4, 3] = placeholder \"w\" parameter\n"
                            "  %b: f32[4] = placeholder \"b\" parameter\n"
                            "  %linear: f32[2, 4] = aten.linear.default(%x, %w, %b)\n"
                            "  %silu: f32[2, 4] = aten.silu.default(%linear)\n"
                            "  %chunk: (f32[1, 4], f32[1, 4]) = aten.chunk.default(%silu, 2)\n"
                            "  %getitem: f32[1, 4] = <built-in function getitem>(%chunk, 1)\n"
                            "  output(%getitem, %silu)\n}\n";

static world *open_with(const bp_backend_wants *wants)
{
    world *w = world_open("");
    world_ok(w, bp_register_backend_as(w->c, "keeper", keeping, NULL, NULL));
    if (wants)
        world_ok(w, bp_set_backend_wants(w->c, "keeper", wants));
    compiles = asked = 0;
    return w;
}

static bp_tensor *floats(world *w, int64_t rows, int64_t columns)
{
    float data[12];
    for (int i = 0; i < 12; i++)
        data[i] = (float)(i % 5) - 1.75f;
    return bp_tensor_from(w->c, BP_F32, columns ? 2 : 1, (int64_t[]){rows, columns}, data);
}

/* Compiles the layer with the backend, runs it and the graph itself: outputs within 1e-6. */
static void expect_computes(world *w)
{
    bp_graph_module *gm = world_graph(w, LAYER);
    backend *b = backend_find(w->rt, "keeper");
    program *p = NULL;
    bp_tensor *in[] = {floats(w, 2, 3), floats(w, 4, 3), floats(w, 4, 0)}, *got[2], *want[2];
    world_ok(w, program_compile(w->c, gm, b, &p));
    assert_int_equal(compiles, 1);
    world_ok(w, program_run(w->c, p, &(program_io){.inputs = in, .ninputs = 3, .outputs = got, .noutputs = 2}));
    world_ok(w, graph_run(w->c, gm, in, 3, want, 2, NULL, NULL));
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(tensor_nelem(got[i]), tensor_nelem(want[i]));
        for (int64_t k = 0; k < tensor_nelem(want[i]); k++) {
            float apart = ((float *)tensor_ptr(got[i]))[k] - ((float *)tensor_ptr(want[i]))[k];
            assert_true(apart < 1e-6f && apart > -1e-6f);
        }
        tensor_unref(got[i]);
        tensor_unref(want[i]);
    }
    program_unref(p);
    gm_unref(gm);
}

static void F030_core_graphs_hold_core_overloads_only(void **state)
{
    (void)state;
    world *w = open_with(&(bp_backend_wants){.size = sizeof(bp_backend_wants), .graph = BP_GRAPH_CORE});
    expect_computes(w);
    assert_string_equal(shown, "aten.permute.default aten.addmm.default aten.sigmoid.default aten.mul.Tensor "
                               "aten.split_with_sizes.default <built-in function getitem> ");
    world_close(w);
}

static void F030_a_backend_that_wants_captured_graphs_gets_operators_as_they_were_called(void **state)
{
    (void)state;
    world *w = open_with(NULL);
    expect_computes(w);
    assert_string_equal(shown, "aten.linear.default aten.silu.default aten.chunk.default <built-in function getitem> ");
    world_close(w);
}

static void F030_what_a_backend_wants_whole_stays(void **state)
{
    (void)state;
    static const char *const WHOLE[] = {"aten.linear.default", "aten.silu.default", NULL};
    world *w = open_with(&(bp_backend_wants){.size = sizeof(bp_backend_wants), .graph = BP_GRAPH_CORE,
                                             .whole_ops = WHOLE});
    expect_computes(w);
    assert_string_equal(shown, "aten.linear.default aten.silu.default aten.split_with_sizes.default "
                               "<built-in function getitem> ");
    world_close(w);
}

static void F030_a_graph_that_cannot_be_core_goes_to_the_next_link(void **state)
{
    (void)state;
    world *w = open_with(&(bp_backend_wants){.size = sizeof(bp_backend_wants), .graph = BP_GRAPH_CORE});
    bp_graph_module *gm = world_graph(w, "graph g {\n  %x: c64[2] = placeholder \"x\" user\n"
                                         "  %logaddexp: c64[2] = aten.logaddexp.default(%x, %x)\n"
                                         "  output(%logaddexp)\n}\n");
    program *p = NULL;
    buf text = {0};
    world_ok(w, program_compile(w->c, gm, backend_find(w->rt, "keeper"), &p));
    assert_int_equal(compiles, 0);
    program_print_assignment(p, &text);
    assert_contains(buf_text(&text), "-> eager -> keeper: graph \"g\" is not in core ATen: \"logaddexp\" "
                                     "(aten.logaddexp.default)");
    buf_fini(&text);
    program_unref(p);
    gm_unref(gm);
    world_close(w);
}

/* -- rows of a backend's own --------------------------------------------------------------------------------------- */

static bp_status silu_by_hand(bp_ctx *c, const bp_value *args, uint32_t nargs, bp_tensor **out, uint32_t nout)
{
    assert_int_equal(nargs, 1);
    assert_int_equal(nout, 1);
    bp_tensor *x = args[0].v.tensor;
    out[0] = bp_mul(c, bp_sigmoid(c, x), x);
    return bp_error(c);
}

static const bp_decomposition OWN[] = {
    {.target = "aten.linear.default", .formula = "add.Tensor(mm(input, t(weight)), bias)"},
    {.target = "aten.silu.default", .fn = silu_by_hand},
    {.target = "aten.chunk.default"},
    {.target = NULL},
};

static const bp_decomposition *give_own(void *arg)
{
    asked++;
    return arg;
}

static const char OWN_TARGETS[] = "aten.permute.default aten.mm.default aten.add.Tensor aten.sigmoid.default "
                                  "aten.mul.Tensor aten.chunk.default <built-in function getitem> ";

static void F033_a_backends_own_decompositions_stand_before_the_hosts(void **state)
{
    (void)state;
    world *w = open_with(&(bp_backend_wants){.size = sizeof(bp_backend_wants), .graph = BP_GRAPH_CORE,
                                             .decompositions = OWN});
    expect_computes(w);
    assert_string_equal(shown, OWN_TARGETS);
    world_close(w);
}

static void F033_a_function_gives_them_once_when_they_are_needed(void **state)
{
    (void)state;
    world *w = open_with(&(bp_backend_wants){.size = sizeof(bp_backend_wants), .graph = BP_GRAPH_CORE,
                                             .give_decompositions = give_own, .arg = (void *)(uintptr_t)OWN});
    assert_int_equal(asked, 0);
    expect_computes(w);
    assert_string_equal(shown, OWN_TARGETS);
    compiles = 0;
    expect_computes(w);
    assert_int_equal(asked, 1);
    world_close(w);
}

static void F033_wrong_tables_are_refused_when_they_are_set(void **state)
{
    (void)state;
    static const struct { bp_decomposition rows[2]; const char *error; } cases[] = {
        {{{.target = "aten.sillu.default"}}, "a decomposition of \"aten.sillu.default\", which is no operator"},
        {{{.target = "aten.silu.default", .formula = "mul.Tensor(self, sgmoid(self))"}},
         "formula of silu:1:18: unknown operator \"sgmoid.default\""},
    };
    static const char *const WHOLE[] = {"silu", NULL};
    world *w = open_with(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bp_backend_wants wants = {.size = sizeof wants, .graph = BP_GRAPH_CORE, .decompositions = cases[i].rows};
        assert_int_equal(bp_set_backend_wants(w->c, "keeper", &wants), BP_INVALID_ARGUMENT);
        assert_contains(bp_error_text(w->c), cases[i].error);
        bp_error_clear(w->c);
    }
    bp_backend_wants wants = {.size = sizeof wants, .graph = BP_GRAPH_CORE, .whole_ops = WHOLE};
    assert_int_equal(bp_set_backend_wants(w->c, "keeper", &wants), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_text(w->c), "\"silu\" is wanted whole, and is no operator");
    bp_error_clear(w->c);
    assert_int_equal(bp_set_backend_wants(w->c, "nobody", &(bp_backend_wants){.size = sizeof wants}), BP_NOT_FOUND);
    bp_error_clear(w->c);
    expect_computes(w); /* nothing was changed */
    assert_contains(shown, "aten.linear.default");
    world_close(w);
}

/* -- node by node -------------------------------------------------------------------------------------------------- */

static int32_t no_products(const bp_graph_module *gm, uint32_t node, char *why, size_t cap)
{
    bool is = strcmp(bp_node_target(gm, node), "aten.addmm.default") == 0;
    if (is)
        snprintf(why, cap, "no products");
    return !is;
}

static void F030_a_call_is_taken_when_all_its_parts_are(void **state)
{
    (void)state;
    world *w = open_with(&(bp_backend_wants){.size = sizeof(bp_backend_wants), .graph = BP_GRAPH_CORE});
    backend_find(w->rt, "keeper")->info = (bp_backend_info){.size = sizeof(bp_backend_info), .supports = no_products};
    expect_computes(w);
    assert_string_equal(shown, "aten.sigmoid.default aten.mul.Tensor aten.split_with_sizes.default "
                               "<built-in function getitem> ");
    world_close(w);
}

int main(void)
{
    const struct CMUnitTest claims[] = {
        cmocka_unit_test(F030_core_graphs_hold_core_overloads_only),
        cmocka_unit_test(F030_a_backend_that_wants_captured_graphs_gets_operators_as_they_were_called),
        cmocka_unit_test(F030_what_a_backend_wants_whole_stays),
        cmocka_unit_test(F030_a_graph_that_cannot_be_core_goes_to_the_next_link),
        cmocka_unit_test(F033_a_backends_own_decompositions_stand_before_the_hosts),
        cmocka_unit_test(F033_a_function_gives_them_once_when_they_are_needed),
        cmocka_unit_test(F033_wrong_tables_are_refused_when_they_are_set),
        cmocka_unit_test(F030_a_call_is_taken_when_all_its_parts_are),
    };
    return cmocka_run_group_tests(claims, NULL, NULL);
}
