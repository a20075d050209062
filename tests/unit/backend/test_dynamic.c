/* Graphs with symbols: what a plugin sees of a size, what it then serves, and sizes of a run. */
#include "tests/unit/backend/acting.h"

/* -- reading is specializing --------------------------------------------------------------------------------------- */

static void look_at_all_but_sizes(bp_graph_module *gm, const bp_inputs *inputs)
{
    assert_int_equal(bp_print_tabular(gm, bp_sink(gm)), BP_OK);
    assert_int_equal(bp_print_readable(gm, bp_sink(gm)), BP_OK);
    assert_int_equal(bp_input_count(inputs), 2);
    assert_string_equal(bp_node_target(gm, by_name(gm, "cat")), "aten.cat.default");
}

static void a_backend_that_reads_no_size_is_compiled_once_for_all(void **state)
{
    (void)state;
    stage s = open_stage("", GRAPH, 0);
    look = look_at_all_but_sizes;
    compile(&s);
    assert_contains(buf_text(&s.w->shown), "s0");
    for (int64_t n = 2; n < 9; n++)
        run(&s, n, 11 - n);
    expect_variants(&s, 1);
    expect_shown(&s, "g: any size\nabs_1 (aten.abs.default) -> acting");
    close_stage(&s);
}

static void a_size_that_is_read_is_a_condition(void **state)
{
    (void)state;
    stage s = open_stage("", GRAPH, 0);
    look = look_at_x;
    compile(&s);
    run(&s, 4, 3);
    run(&s, 4, 7);
    expect_variants(&s, 1);
    run(&s, 5, 7);
    run(&s, 5, 2);
    run(&s, 4, 2);
    expect_variants(&s, 2);
    expect_shown(&s, "g: s0 == 4\n");
    expect_shown(&s, "g: s0 == 5\n");
    close_stage(&s);
}

static void look_at_cat(bp_graph_module *gm, const bp_inputs *inputs)
{
    bp_view v;
    (void)inputs;
    assert_int_equal(bp_node_meta(gm, by_name(gm, "cat"), 0, &v), BP_OK);
    assert_int_equal(v.sizes[0].sym, 0);
}

static void each_symbol_of_what_is_read_is_a_condition(void **state)
{
    (void)state;
    stage s = open_stage("", GRAPH, 0);
    look = look_at_cat;
    compile(&s);
    run(&s, 3, 4); /* the same sum, of other numbers */
    expect_variants(&s, 2);
    expect_shown(&s, "g: s0 == 4, s1 == 3\n");
    expect_shown(&s, "g: s0 == 3, s1 == 4\n");
    close_stage(&s);
}

static const char VIEW[] = "graph g {\n"
                           "  symbol s0 in [2, inf] hint 4\n"
                           "  %x: f32[s0, 6] = placeholder \"x\" user\n"
                           "  %view: f32[2*s0, 3] = aten.view.default(%x, [2*s0, 3])\n"
                           "  output(%view)\n"
                           "}\n";

static void look_at_an_argument(bp_graph_module *gm, const bp_inputs *inputs)
{
    bp_value v;
    (void)inputs;
    assert_int_equal(bp_node_arg(gm, by_name(gm, "view"), "size", &v), BP_OK);
    assert_int_equal(v.count, 2);
    assert_int_equal(v.v.items[0].v.dim.sym, 0);
    assert_int_equal(v.v.items[0].v.dim.value, 8);
    assert_int_equal(v.v.items[1].v.dim.value, 3);
}

static void an_argument_that_is_read_is_a_condition(void **state)
{
    (void)state;
    stage s = open_stage("", VIEW, 0);
    look = look_at_an_argument;
    compile(&s);
    expect_shown(&s, "g: s0 == 4\n");
    close_stage(&s);
}

static int32_t small(const bp_graph_module *gm, uint32_t node, char *why, size_t cap)
{
    bp_view v;
    if (bp_node_meta(gm, node, 0, &v) == BP_OK && v.rank == 1 && v.sizes[0].sym == 0 && v.sizes[0].value < 6)
        return 1;
    snprintf(why, cap, "it is too large");
    return 0;
}

static void what_supports_reads_is_a_condition(void **state)
{
    (void)state;
    stage s = open_stage("", GRAPH, 0);
    s.b->info.supports = small;
    compile(&s);
    expect_shown(&s, "g: s0 == 4, s1 == 3\nabs_1 (aten.abs.default) -> acting -> supported\n"
                     "cat (aten.cat.default) -> eager -> acting: it is too large\n");
    run(&s, 2, 3);
    expect_shown(&s, "g: s0 == 2, s1 == 3\nabs_1 (aten.abs.default) -> acting -> supported\n"
                     "cat (aten.cat.default) -> acting -> supported\n");
    run(&s, 9, 3);
    assert_int_equal(program_variants(s.p), 3);
    close_stage(&s);
}

/* -- a graph that is kept ------------------------------------------------------------------------------------------ */

typedef struct { bp_graph_module *gm; } kept;

/* Reads the sizes when it runs, and computes for these. */
static bp_status run_kept(void *state, bp_run *r)
{
    const kept *k = state;
    bp_view v, x, y, out;
    uint32_t cat = by_name(k->gm, "cat");
    if (bp_node_meta(k->gm, cat, 0, &v) != BP_OK || v.sizes[0].sym || bp_run_borrow(r, 0, &x) ||
        bp_run_borrow(r, 1, &y) || bp_run_empty(r, 0, &out))
        return bp_run_fail(r, BP_INTERNAL, "it cannot read what it kept");
    int64_t n = x.sizes[0].value;
    for (int64_t i = 0; i < v.sizes[0].value; i++) {
        float value = i < n ? ((float *)x.data)[i] : ((float *)y.data)[i - n];
        ((float *)out.data)[i] = -(i < n && value < 0 ? -value : value);
    }
    return BP_OK;
}

static void drop_kept(void *state)
{
    kept *k = state;
    bp_gm_unref(k->gm);
    free(k);
}

static bp_compiled *keep(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    kept *k = calloc(1, sizeof *k);
    k->gm = bp_gm_ref(gm);
    return bp_compiled_new(gm, run_kept, drop_kept, k);
}

static void a_graph_that_a_backend_keeps_is_in_numbers(void **state)
{
    (void)state;
    stage s = open_stage("", GRAPH, 0);
    answer_with = keep;
    compile(&s);
    run(&s, 4, 3);
    run(&s, 6, 3);
    run(&s, 3, 6);
    run(&s, 6, 3);
    expect_variants(&s, 3);
    assert_int_equal(program_fallbacks(s.p), 0);
    close_stage(&s);
}

/* -- with the flag ------------------------------------------------------------------------------------------------- */

static void look_at_symbols(bp_graph_module *gm, const bp_inputs *inputs)
{
    char text[64];
    bp_view v;
    bp_symbol k = {.size = sizeof k}, none = {0};
    bp_dim twice;
    assert_int_equal(bp_input_view(inputs, 0, &v), BP_OK);
    assert_int_not_equal(v.sizes[0].sym, 0);
    assert_int_equal(v.sizes[0].value, 4);
    assert_int_equal(bp_symbol_count(gm), 2);
    assert_int_equal(bp_symbol_at(gm, 1, &k), BP_OK);
    assert_int_equal(k.size, sizeof k);
    assert_string_equal(k.name, "s1");
    assert_int_equal(k.hint, 3);
    assert_int_equal(k.min, 2);
    assert_true(k.max == INT64_MAX);
    assert_int_equal(k.flags, 0);
    assert_int_equal(bp_symbol_at(gm, 2, &k), BP_INVALID_ARGUMENT);
    assert_int_equal(bp_symbol_at(gm, 0, &none), BP_INVALID_ARGUMENT);
    assert_int_equal(bp_node_meta(gm, by_name(gm, "cat"), 0, &v), BP_OK);
    assert_int_equal(bp_dim_text(gm, v.sizes[0], text, sizeof text), 7);
    assert_string_equal(text, "s0 + s1");
    assert_int_equal(bp_dim_text(gm, v.sizes[0], text, 4), 7);
    assert_string_equal(text, "s0 ");
    assert_int_equal(bp_dim_make(gm, BP_DIM_MUL, v.sizes[0], (bp_dim){2, 0, 0}, &twice), BP_OK);
    bp_dim_text(gm, twice, text, sizeof text);
    assert_string_equal(text, "2*s0 + 2*s1");
    assert_int_equal(twice.value, 14);
    assert_int_equal(bp_dim_make(gm, 99, twice, twice, &twice), BP_INVALID_ARGUMENT);
    assert_int_equal(bp_dim_make(gm, BP_DIM_ADD, (bp_dim){1, 4000000000u, 0}, twice, &twice), BP_INVALID_ARGUMENT);
    assert_int_equal(bp_dim_holds(gm, BP_DIM_LT, (bp_dim){3, 0, 0}, twice), 1); /* proven */
    assert_int_equal(bp_dim_holds(gm, 0, twice, twice), -1);
    assert_int_equal(bp_dim_holds(gm, BP_DIM_GT, twice, (bp_dim){7, 0, 0}), 1);
    assert_int_equal(bp_fact_count(gm), 0);
}

static void a_backend_with_the_flag_sees_symbols(void **state)
{
    (void)state;
    stage s = open_stage("", GRAPH, BP_DYNAMIC_SHAPES);
    look = look_at_symbols;
    compile(&s);
    expect_shown(&s, "g: any size\n");
    run(&s, 9, 2);
    expect_variants(&s, 1);
    close_stage(&s);
}

static void ask_whether_x_is_short(bp_graph_module *gm, const bp_inputs *inputs)
{
    bp_view v;
    char text[64];
    assert_int_equal(bp_input_view(inputs, 0, &v), BP_OK);
    int32_t is_short = bp_dim_holds(gm, BP_DIM_LE, v.sizes[0], (bp_dim){16, 0, 0});
    assert_int_equal(is_short, v.sizes[0].value <= 16);
    assert_int_equal(bp_fact_count(gm), 1);
    assert_true(bp_fact_text(gm, 0, text, sizeof text) > 0);
    assert_string_equal(text, is_short ? "s0 <= 16" : "s0 >= 17");
}

static void what_a_backend_asks_is_a_condition(void **state)
{
    (void)state;
    stage s = open_stage("", GRAPH, BP_DYNAMIC_SHAPES);
    look = ask_whether_x_is_short;
    compile(&s);
    for (int64_t n = 2; n < 30; n++)
        run(&s, n, 3);
    expect_variants(&s, 2);
    expect_shown(&s, "g: s0 <= 16\n");
    expect_shown(&s, "g: s0 >= 17\n");
    close_stage(&s);
}

static void make_x_a_number(bp_graph_module *gm, const bp_inputs *inputs)
{
    bp_view v;
    int64_t n = 0;
    assert_int_equal(bp_input_view(inputs, 0, &v), BP_OK);
    assert_int_equal(bp_dim_number(gm, v.sizes[0], &n), BP_OK);
    assert_int_equal(n, v.sizes[0].value);
}

static void a_backend_with_the_flag_may_ask_for_a_number(void **state)
{
    (void)state;
    stage s = open_stage("", GRAPH, BP_DYNAMIC_SHAPES);
    look = make_x_a_number;
    compile(&s);
    run(&s, 7, 3);
    expect_variants(&s, 2);
    expect_shown(&s, "g: s0 == 7\n");
    close_stage(&s);
}

static void wants_of_a_registered_backend_say_that_it_takes_symbols(void **state)
{
    (void)state;
    stage s = open_stage("", GRAPH, 0);
    bp_backend_wants wants = {.size = sizeof wants, .dynamic_shapes = 1};
    world_ok(s.w, bp_set_backend_wants(s.w->c, "acting", &wants));
    look = look_at_symbols;
    compile(&s);
    wants.dynamic_shapes = 2;
    assert_int_equal(bp_set_backend_wants(s.w->c, "acting", &wants), BP_INVALID_ARGUMENT);
    bp_error_clear(s.w->c);
    close_stage(&s);
}

/* -- runs ---------------------------------------------------------------------------------------------------------- */

static bp_dim cat_size;

static bp_status run_cat(void *state, bp_run *r)
{
    bp_view x, y, out;
    int64_t total = -1, n;
    (void)state;
    if (bp_run_borrow(r, 0, &x) || bp_run_borrow(r, 1, &y) || bp_run_empty(r, 0, &out) ||
        bp_run_dim(r, cat_size, &total))
        return bp_run_fail(r, BP_INTERNAL, "no sizes");
    n = x.sizes[0].value;
    if (out.sizes[0].sym || out.sizes[0].value != total || total != n + y.sizes[0].value)
        return bp_run_fail(r, BP_INTERNAL, "the output has %d elements", (int)out.sizes[0].value);
    if (bp_run_dim(r, (bp_dim){0, 4000000000u, 0}, &n) != BP_INVALID_ARGUMENT)
        return bp_run_fail(r, BP_INTERNAL, "a dim of nobody has a value");
    n = x.sizes[0].value;
    for (int64_t i = 0; i < total; i++) {
        float v = i < n ? ((float *)x.data)[i] : ((float *)y.data)[i - n];
        ((float *)out.data)[i] = -(i < n && v < 0 ? -v : v);
    }
    return BP_OK;
}

static bp_compiled *take_symbols(bp_graph_module *gm, const bp_inputs *inputs)
{
    bp_view v;
    (void)inputs;
    assert_int_equal(bp_node_meta(gm, by_name(gm, "cat"), 0, &v), BP_OK);
    cat_size = v.sizes[0];
    return bp_compiled_new(gm, run_cat, NULL, NULL);
}

static void outputs_have_the_sizes_of_the_run(void **state)
{
    (void)state;
    stage s = open_stage("", GRAPH, BP_DYNAMIC_SHAPES);
    answer_with = take_symbols;
    compile(&s);
    for (int64_t n = 2; n < 9; n++)
        run(&s, n, 20 - n);
    expect_variants(&s, 1);
    assert_int_equal(program_fallbacks(s.p), 0);
    close_stage(&s);
}

static bp_status run_seven(void *state, bp_run *r)
{
    static float data[7];
    bp_dim size = {7, 0, 0}, stride = {1, 0, 0};
    bp_view v = {.size = sizeof v, .dtype = BP_F32, .device_kind = BP_CPU, .rank = 1, .sizes = &size,
                 .strides = &stride, .data = data};
    (void)state;
    return bp_run_output(r, 0, &v);
}

static bp_compiled *bake_seven(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_compiled_new(gm, run_seven, NULL, NULL);
}

static void an_output_of_another_run_s_size_is_an_error_with_both(void **state)
{
    (void)state;
    stage s = open_stage("[host]\nfallback = error\n", GRAPH, BP_DYNAMIC_SHAPES);
    answer_with = bake_seven;
    compile(&s);
    assert_int_equal(run_on(s.w->c, s.p, 5, 3), BP_INTERNAL);
    assert_contains(s.w->c->diag.message, "a run of backend \"acting\" failed: output 0 is f32[7], expected "
                                          "f32[s0 + s1], which is f32[8]");
    bp_error_clear(s.w->c);
    close_stage(&s);
}

static const char ASSERTS[] = "graph g {\n"
                              "  symbol u0 in [0, inf] unbacked\n"
                              "  symbol u1 in [0, inf] unbacked\n"
                              "  assert u0 <= u1\n"
                              "  %x: f32[u0] = placeholder \"x\" user\n"
                              "  %y: f32[u1] = placeholder \"y\" user\n"
                              "  %abs_1: f32[u0] = aten.abs.default(%x)\n"
                              "  %cat: f32[u0 + u1] = aten.cat.default([%abs_1, %y])\n"
                              "  %neg: f32[u0 + u1] = aten.neg.default(%cat)\n"
                              "  output(%neg)\n"
                              "}\n";

/* A plugin's own run knows nothing of assertions: the host runs such a graph itself, and says so. */
static void what_a_graph_asserts_of_data_is_checked_whatever_the_backend(void **state)
{
    (void)state;
    stage s = open_stage("", ASSERTS, BP_DYNAMIC_SHAPES);
    answer_with = take_symbols;
    compile(&s);
    expect_shown(&s, "the graph asserts what only data tell");
    run(&s, 3, 5);
    assert_int_equal(run_on(s.w->c, s.p, 5, 3), BP_OUT_OF_RANGE);
    assert_contains(s.w->c->diag.message, "u0 <= u1");
    bp_error_clear(s.w->c);
    close_stage(&s);
}

/* -- groups -------------------------------------------------------------------------------------------------------- */

static const char PARTS[] = "graph g {\n"
                            "  symbol s0 in [2, inf] hint 4\n"
                            "  symbol s1 in [2, inf] hint 3\n"
                            "  %x: f32[s0] = placeholder \"x\" user\n"
                            "  %y: f32[s1] = placeholder \"y\" user\n"
                            "  %abs_1: f32[s0] = aten.abs.default(%x)\n"
                            "  %cat: f32[s0 + s1] = aten.cat.default([%abs_1, %y])\n"
                            "  %view: f32[1, s0 + s1] = aten.view.default(%cat, [1, s0 + s1])\n"
                            "  %expand: f32[s0, s0 + s1; 0, 1] = aten.expand.default(%view, [s0, s0 + s1])\n"
                            "  %select: f32[s0 + s1] = aten.select.int(%expand, 0, 1)\n"
                            "  %neg: f32[s0 + s1] = aten.neg.default(%select)\n"
                            "  output(%neg)\n"
                            "}\n";

static char last_graph[2048];

static bp_compiled *show(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    buf text = {0};
    graph_print_text(gm, &text);
    snprintf(last_graph, sizeof last_graph, "%s", buf_text(&text));
    buf_fini(&text);
    return bp_forward(gm);
}

static void a_group_s_hidden_symbols_are_inputs_of_their_own(void **state)
{
    (void)state;
    stage s = open_stage("", PARTS, BP_DYNAMIC_SHAPES);
    s.b->info.supports = only_views;
    answer_with = show;
    compile(&s);
    assert_contains(last_graph, "symint");
    for (int64_t n = 2; n < 9; n++)
        run(&s, n, 12 - n);
    expect_variants(&s, 1);
    assert_int_equal(program_fallbacks(s.p), 0);
    close_stage(&s);
}

static const char TOLD[] = "graph g {\n"
                           "  symbol s0 in [2, inf] hint 4\n"
                           "  symbol u0 in [0, inf] unbacked\n"
                           "  %x: f32[s0] = placeholder \"x\" user\n"
                           "  %nonzero: i64[u0, 1; 1, u0] = aten.nonzero.default(%x)\n"
                           "  %view: f32[1, s0] = aten.view.default(%x, [1, s0])\n"
                           "  %expand: f32[u0, s0; 0, 1] = aten.expand.default(%view, [u0, s0])\n"
                           "  %sum_1: f32[] = aten.sum.default(%expand)\n"
                           "  output(%sum_1)\n"
                           "}\n";

/* Nobody takes the result that tells u0: the other group reads the size off it all the same. */
static void a_size_that_data_tell_reaches_groups_that_only_mention_it(void **state)
{
    (void)state;
    stage s = open_stage("", TOLD, BP_DYNAMIC_SHAPES);
    s.b->info.supports = only_views;
    compile(&s);
    expect_shown(&s, "expand (aten.expand.default) -> acting");
    bp_tensor *x = floats(s.w->c, 7), *out = NULL; /* -2.5 to 3.5: none is 0, and the sum is 3.5 */
    program_io io = {.inputs = &x, .ninputs = 1, .outputs = &out, .noutputs = 1};
    world_ok(s.w, program_run(s.w->c, s.p, &io));
    assert_float_equal(*(float *)tensor_ptr(out), 24.5, 0);
    assert_int_equal(program_fallbacks(s.p), 0);
    tensor_unref(out);
    tensor_unref(x);
    close_stage(&s);
}

static void look_at_view(bp_graph_module *gm, const bp_inputs *inputs)
{
    bp_view v;
    (void)inputs;
    assert_int_equal(bp_node_meta(gm, by_name(gm, "expand"), 0, &v), BP_OK);
    assert_int_equal(v.sizes[0].sym | v.sizes[1].sym, 0);
}

static void what_is_read_of_a_part_is_a_condition_of_the_whole(void **state)
{
    (void)state;
    stage s = open_stage("", PARTS, 0);
    s.b->info.supports = only_views;
    look = look_at_view;
    compile(&s);
    run(&s, 4, 3);
    expect_variants(&s, 1);
    run(&s, 5, 3);
    run(&s, 4, 5);
    expect_variants(&s, 3);
    expect_shown(&s, "s0 == 5");
    close_stage(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_backend_that_reads_no_size_is_compiled_once_for_all),
        cmocka_unit_test(a_size_that_is_read_is_a_condition),
        cmocka_unit_test(each_symbol_of_what_is_read_is_a_condition),
        cmocka_unit_test(an_argument_that_is_read_is_a_condition),
        cmocka_unit_test(what_supports_reads_is_a_condition),
        cmocka_unit_test(a_graph_that_a_backend_keeps_is_in_numbers),
        cmocka_unit_test(a_backend_with_the_flag_sees_symbols),
        cmocka_unit_test(what_a_backend_asks_is_a_condition),
        cmocka_unit_test(a_backend_with_the_flag_may_ask_for_a_number),
        cmocka_unit_test(wants_of_a_registered_backend_say_that_it_takes_symbols),
        cmocka_unit_test(outputs_have_the_sizes_of_the_run),
        cmocka_unit_test(an_output_of_another_run_s_size_is_an_error_with_both),
        cmocka_unit_test(what_a_graph_asserts_of_data_is_checked_whatever_the_backend),
        cmocka_unit_test(a_group_s_hidden_symbols_are_inputs_of_their_own),
        cmocka_unit_test(a_size_that_data_tell_reaches_groups_that_only_mention_it),
        cmocka_unit_test(what_is_read_of_a_part_is_a_condition_of_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
