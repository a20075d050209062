/* Graphs with symbols: what a plugin sees of a size, what it then serves, variants, and sizes of a run. */
#include "host/backend/chain.h"
#include "host/backend/room.h"
#include "host/base/log.h"
#include "tests/lib/world.h"
#include <stdlib.h>

static const char GRAPH[] = "graph g {\n"
                            "  symbol s0 in [2, inf] hint 4\n"
                            "  symbol s1 in [2, inf] hint 3\n"
                            "  %x: f32[s0] = placeholder \"x\" user\n"
                            "  %y: f32[s1] = placeholder \"y\" user\n"
                            "  %abs_1: f32[s0] = aten.abs.default(%x)\n"
                            "  %cat: f32[s0 + s1] = aten.cat.default([%abs_1, %y])\n"
                            "  %neg: f32[s0 + s1] = aten.neg.default(%cat)\n"
                            "  output(%neg)\n"
                            "}\n";

/* -- a backend that does what a test wants ------------------------------------------------------------------------- */

static void (*look)(bp_graph_module *gm, const bp_inputs *inputs);
static bp_compiled *(*answer_with)(bp_graph_module *gm, const bp_inputs *inputs);
static atomic_uint compiles;

static bp_compiled *acting(bp_graph_module *gm, const bp_inputs *inputs)
{
    compiles++;
    if (look)
        look(gm, inputs);
    return answer_with ? answer_with(gm, inputs) : bp_forward(gm);
}

typedef struct { world *w; backend *b; bp_graph_module *gm; program *p; } stage;

static stage open_stage(const char *ini, const char *text, uint32_t flags)
{
    stage s = {.w = world_open(ini)};
    look = NULL;
    answer_with = NULL;
    compiles = 0;
    world_ok(s.w, bp_register_backend_at(s.w->c, "acting", acting, NULL, NULL, __FILE__, __LINE__));
    s.b = backend_find(s.w->rt, "acting");
    s.b->info = (bp_backend_info){.size = sizeof s.b->info, .flags = flags};
    s.gm = world_graph(s.w, text);
    return s;
}

static void compile(stage *s)
{
    world_ok(s->w, program_compile(s->w->c, s->gm, s->b, &s->p));
}

static void close_stage(stage *s)
{
    program_unref(s->p);
    gm_unref(s->gm);
    world_close(s->w);
}

static bp_tensor *floats(bp_ctx *c, int64_t n)
{
    bp_tensor *t = tensor_contiguous_new(c, BP_F32, 1, &n);
    assert_non_null(t);
    for (int64_t i = 0; i < n; i++)
        ((float *)tensor_ptr(t))[i] = (float)(i % 7) - 2.5f;
    return t;
}

/* Runs on inputs of these sizes; the code. out: the result, of right values and size when there is one. */
static bp_status run_on(bp_ctx *c, program *p, int64_t n, int64_t m)
{
    bp_tensor *in[2] = {floats(c, n), floats(c, m)}, *out = NULL;
    program_io io = {.inputs = in, .ninputs = 2, .outputs = &out, .noutputs = 1};
    bp_status st = program_run(c, p, &io);
    if (st == BP_OK) {
        assert_int_equal(tensor_nelem(out), n + m);
        for (int64_t i = 0; i < n + m; i++) {
            float v = (float)((i < n ? i : i - n) % 7) - 2.5f;
            assert_float_equal(((float *)tensor_ptr(out))[i], -(i < n && v < 0 ? -v : v), 0);
        }
    } else {
        assert_null(out);
    }
    tensor_unref(out);
    tensor_unref(in[0]);
    tensor_unref(in[1]);
    return st;
}

static void run(stage *s, int64_t n, int64_t m)
{
    world_ok(s->w, run_on(s->w->c, s->p, n, m));
}

static void expect_variants(const stage *s, uint32_t n)
{
    assert_int_equal(program_variants(s->p), n);
    assert_int_equal(compiles, n);
}

static void expect_shown(const stage *s, const char *line)
{
    buf text = {0};
    program_print_assignment(s->p, &text);
    assert_contains(buf_text(&text), line);
    buf_fini(&text);
}

static uint32_t by_name(const bp_graph_module *gm, const char *name)
{
    for (uint32_t i = 0; i < bp_node_count(gm); i++)
        if (strcmp(bp_node_name(gm, bp_node_at(gm, i)), name) == 0)
            return bp_node_at(gm, i);
    fail_msg("no node %s", name);
    return 0;
}

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

static void look_at_x(bp_graph_module *gm, const bp_inputs *inputs)
{
    bp_view v = {0}, again = {0};
    (void)gm;
    assert_int_equal(bp_input_view(inputs, 0, &v), BP_OK);
    assert_int_equal(bp_input_view(inputs, 0, &again), BP_OK);
    assert_int_equal(v.sizes[0].sym, 0);
    assert_int_equal(v.strides[0].value, 1);
    assert_ptr_equal(v.sizes, again.sizes);
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
    bp_symbol k = {0};
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

static int32_t only_views(const bp_graph_module *gm, uint32_t node, char *why, size_t cap)
{
    (void)why;
    (void)cap;
    const char *target = bp_node_target(gm, node);
    return strstr(target, "view") || strstr(target, "expand") || strstr(target, "select");
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

/* -- limits and failures ------------------------------------------------------------------------------------------- */

static uint32_t count(const char *text, const char *what)
{
    uint32_t n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++)
        n++;
    return n;
}

static void beyond_the_limit_eager_answers_with_one_warning(void **state)
{
    (void)state;
    stage s = open_stage("[host]\nrecompile_limit = 3\n", GRAPH, 0);
    look = look_at_x;
    compile(&s);
    for (int64_t n = 2; n < 12; n++)
        run(&s, n, 3);
    expect_variants(&s, 3);
    const char *log = buf_text(&s.w->log);
    assert_int_equal(count(log, "recompile_limit is 3"), 1);
    assert_contains(log, "graph \"g\" was compiled by backend \"acting\" for 3 sizes");
    assert_contains(log, "BP_DYNAMIC_SHAPES");
    assert_contains(log, "bp_mark_static");
    close_stage(&s);
}

static void beyond_the_limit_a_strict_policy_is_an_error(void **state)
{
    (void)state;
    stage s = open_stage("[host]\nrecompile_limit = 1\nfallback = error\n", GRAPH, 0);
    look = look_at_x;
    compile(&s);
    assert_int_equal(run_on(s.w->c, s.p, 9, 3), BP_FAILED_PRECONDITION);
    assert_contains(s.w->c->diag.message, "for 1 sizes (the last one: s0 == 4), and recompile_limit is 1");
    bp_error_clear(s.w->c);
    run(&s, 4, 8);
    close_stage(&s);
}

static bp_compiled *only_four(bp_graph_module *gm, const bp_inputs *inputs)
{
    bp_view v;
    bp_input_view(inputs, 0, &v);
    return v.sizes[0].value == 4 ? bp_forward(gm) : bp_fail(gm, BP_INTERNAL, "no kernel for %d", (int)v.sizes[0].value);
}

static void a_size_that_a_backend_cannot_compile_is_the_next_one_s(void **state)
{
    (void)state;
    stage s = open_stage("", GRAPH, 0);
    answer_with = only_four;
    compile(&s);
    run(&s, 5, 3);
    expect_shown(&s, "g: s0 == 5\n");
    expect_shown(&s, "-> eager -> acting: no kernel for 5");
    run(&s, 4, 3);
    expect_variants(&s, 2);
    close_stage(&s);
}

static void a_strict_policy_tells_of_the_size_that_does_not_compile(void **state)
{
    (void)state;
    stage s = open_stage("[host]\nfallback = error\n", GRAPH, 0);
    answer_with = only_four;
    compile(&s);
    assert_int_equal(run_on(s.w->c, s.p, 5, 3), BP_INTERNAL);
    assert_contains(s.w->c->diag.message, "no kernel for 5");
    bp_error_clear(s.w->c);
    run(&s, 4, 3);
    assert_int_equal(program_variants(s.p), 1);
    close_stage(&s);
}

/* -- predicates ---------------------------------------------------------------------------------------------------- */

static void a_predicate_gets_a_variant_when_it_is_first_met(void **state)
{
    (void)state;
    stage s = open_stage("", GRAPH, BP_DYNAMIC_SHAPES);
    compile(&s);
    sym_scope former = sym_push(s.gm->g.syms, s.w->c);
    bp_dim is_eight = dim_compare(s.w->c, DIM_EQ, sym_dim_of(s.gm->g.syms, 0), dim_const(8));
    sym_pop(former);
    world_ok(s.w, program_specialize_on(s.w->c, s.p, &is_eight, 1));
    run(&s, 9, 3);
    expect_variants(&s, 1);
    run(&s, 8, 3);
    run(&s, 8, 5);
    run(&s, 9, 5);
    expect_variants(&s, 2);
    expect_shown(&s, "g: s0 == 8\n");
    expect_shown(&s, "g: any size\n");
    close_stage(&s);
}

/* -- threads ------------------------------------------------------------------------------------------------------- */

typedef struct { stage *s; uint32_t id; bp_status st; } worker;

static void *work(void *arg)
{
    worker *k = arg;
    bp_ctx *c = bp_ctx_new(k->s->w->rt);
    for (uint32_t i = 0; i < 60 && !k->st; i++)
        k->st = run_on(c, k->s->p, 2 + (i * 7 + k->id) % 11, 2 + i % 5);
    bp_ctx_destroy(c);
    return NULL;
}

static void threads_of_changing_sizes_share_variants(void **state)
{
    (void)state;
    for (uint32_t reads = 0; reads < 2; reads++) {
        stage s = open_stage("[host]\nrecompile_limit = 5\nfallback = silent\n", GRAPH, BP_CONCURRENT_RUN);
        look = reads ? look_at_x : NULL;
        compile(&s);
        worker all[8];
        pthread_t threads[8];
        for (uint32_t i = 0; i < 8; i++) {
            all[i] = (worker){&s, i, BP_OK};
            assert_int_equal(pthread_create(&threads[i], NULL, work, &all[i]), 0);
        }
        for (uint32_t i = 0; i < 8; i++) {
            pthread_join(threads[i], NULL);
            assert_int_equal(all[i].st, BP_OK);
        }
        expect_variants(&s, reads ? 5 : 1);
        close_stage(&s);
    }
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
        cmocka_unit_test(a_group_s_hidden_symbols_are_inputs_of_their_own),
        cmocka_unit_test(what_is_read_of_a_part_is_a_condition_of_the_whole),
        cmocka_unit_test(beyond_the_limit_eager_answers_with_one_warning),
        cmocka_unit_test(beyond_the_limit_a_strict_policy_is_an_error),
        cmocka_unit_test(a_size_that_a_backend_cannot_compile_is_the_next_one_s),
        cmocka_unit_test(a_strict_policy_tells_of_the_size_that_does_not_compile),
        cmocka_unit_test(a_predicate_gets_a_variant_when_it_is_first_met),
        cmocka_unit_test(threads_of_changing_sizes_share_variants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
