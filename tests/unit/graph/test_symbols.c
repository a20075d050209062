/* Graphs with symbols: their texts, addresses, verifier, and runs on tensors and on fakes. */
#include "tests/unit/graph/build.h"

static const char WHOLE[] =
    "graph g {\n"
    "  symbol s0 in [2, inf] hint 6\n"
    "  symbol s1 in [2, 64] hint 3\n"
    "  symbol u0 in [0, inf] unbacked\n"
    "  given Mod(s0, 2) == 0\n"
    "  fact s0 >= 2*s1\n"
    "  assert s0 + 1 >= u0\n"
    "  %x: f32[s0, 4*s1] = placeholder \"x\" user\n"
    "  %y: f32[s0, s1; 1, s0] = placeholder \"y\" user\n"
    "  %n: i64[] = placeholder \"n\" user\n"
    "  %s1: Sym(s1) = placeholder \"s1\" symint\n"
    "  %item: Sym(u0) = aten._local_scalar_dense.default(%n)\n"
    "  %view: f32[s0*s1, 4] = aten.view.default(%x, [s0*s1, 4])\n"
    "  %full: f32[u0, s0//2] = aten.full.default([u0, s0//2], 1.5)\n"
    "  output(%view, %full, s0 + s1)\n"
    "}\n";

static bp_graph_module *parse(bp_ctx *c, const char *text)
{
    return graph_parse_text(c, "t.bpg", text, strlen(text));
}

static bp_graph_module *parse_right(bp_ctx *c, const char *text)
{
    bp_graph_module *gm = parse(c, text);
    assert_string_equal(bp_error_text(c), "");
    return gm;
}

static void check_round_trip(bp_ctx *c, const char *text)
{
    bp_graph_module *gm = parse_right(c, text);
    buf out = {0};
    graph_print_text(gm, &out);
    assert_string_equal(buf_text(&out), text);
    assert_int_equal(graph_check_types(c, gm), BP_OK);
    buf_fini(&out);
    gm_unref(gm);
}

static void a_text_with_symbols_reads_back(void **state)
{
    check_round_trip(*state, WHOLE);
    check_round_trip(*state, "graph g {\n  symbol a_1 in [-inf, 5] hint -3\n"
                             "  %a_1: Sym(a_1) = placeholder \"a_1\" symint\n  output(%a_1)\n}\n");
}

/* -- what is wrong is refused where it is -------------------------------------------------------------------------- */

#define DATA "  symbol u0 in [0, inf] unbacked\n  %x: f32[s0] = placeholder \"x\" user\n"
static const struct { const char *text, *place, *words, *hint; } WRONG[] = {
    {"  symbol\n", "t.bpg:4:3", "the name of a symbol, got '%'", ""},
    {"  symbol s0 in [2, inf] hint 2\n", "t.bpg:3:10", "the symbol \"s0\" is declared already", ""},
    {"  symbol Mod in [2, inf] hint 2\n", "t.bpg:3:10", "a symbol cannot be named \"Mod\"", ""},
    {"  symbol s2 [2, inf] hint 2\n", "t.bpg:3:13", "\"in\" and bounds, got '['", ""},
    {"  symbol s2 in [2, inf] hnt 2\n", "t.bpg:3:25",
     "\"hint\" or \"unbacked\", got \"hnt\"", "did you mean \"hint\"?"},
    {"  symbol s2 in [2, inf] hint 1\n", "t.bpg:3:30", "the hint 1 is outside the bounds of \"s2\"", ""},
    {"  symbol s2 in [5, 4] hint 4\n", "t.bpg:3:10", "no value of \"s2\" is within its bounds", ""},
    {"  symbol s2 in [2.5, 4] hint 4\n", "t.bpg:3:17", "the least value, got a float", ""},
    {"  fact s0 >= \n", "t.bpg:3:14", "a condition on symbols, got the end of the line", ""},
    {"  fact s0 == s00\n", "t.bpg:3:14", "a condition on symbols, got \"s00\"", "did you mean \"s0\"?"},
    {"  fact s0 >= 3 4\n", "t.bpg:3:16", "a condition on symbols, got \"4\"", ""},
    {"  fact s0 == 1\n", "t.bpg:3:8", "this contradicts the symbols and facts before it", ""},
    {"  fact s0 >= 5\n  fact s0 <= 4\n", "t.bpg:4:8", "this contradicts the symbols and facts before it", ""},
    {"  %y: f32[s0, s9] = placeholder \"y\" user\n", "t.bpg:3:15", "a size, got \"s9\"", ""},
    {"  %y: f32[s0 - s0 - 1] = placeholder \"y\" user\n", "t.bpg:3:11", "a size of at least 0, got -1", ""},
    {"  %y: f32[s0, 2; s0] = placeholder \"y\" user\n", "t.bpg:3:7", "expected 2 strides", ""},
    {"  %y: Sym(s0) = placeholder \"y\" user\n", "t.bpg:3:3", "the type of a symint is Sym(...)", ""},
    {"  %y: i64[] = placeholder \"y\" symint\n", "t.bpg:3:3", "the type of a symint is Sym(...)", ""},
    {"  %y: Sym(4) = placeholder \"y\" symint\n", "t.bpg:3:10", "expected an expression with a symbol", ""},
    {"  %y: f32[s0] = get_attr \"y\" data \"AAAA\"\n", "t.bpg:3:3", "one type, without symbols", ""},
    {"  symbol s2 in [2, inf] hint 2\n  %y: f32[2*s2] = placeholder \"y\" user\n", "t.bpg:4:3",
     "the symbol \"s2\" has no source", ""},
    {DATA "  %y = aten.view.default(%x, [u0])\n  %z: Sym(u0) = aten._local_scalar_dense.default(%y)\n", "t.bpg:5:3",
     "the symbol \"u0\" comes from node \"z\", which is after it", ""},
    {DATA "  %y: f32[u0] = aten.view.default(%x, [u0])\n", "t.bpg:5:3",
     "the symbol \"u0\" has no source: no input and no result before it is that symbol alone", ""},
};

static void what_is_wrong_with_symbols_is_told(void **state)
{
    bp_ctx *c = *state;
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        buf text = {0};
        buf_printf(&text, "graph g {\n  symbol s0 in [2, inf] hint 6\n%s  %%w: f32[s0] = placeholder \"w\" user\n"
                          "  output()\n}\n", WRONG[i].text);
        assert_null(parse(c, buf_text(&text)));
        assert_contains(bp_error_text(c), WRONG[i].words);
        assert_int_equal(bp_error(c), BP_INVALID_ARGUMENT);
        assert_contains(bp_error_text(c), WRONG[i].place);
        assert_contains(bp_error_text(c), WRONG[i].hint);
        bp_error_clear(c);
        buf_fini(&text);
    }
}

/* -- running ------------------------------------------------------------------------------------------------------- */

static bp_tensor *zeros(bp_ctx *c, uint32_t rank, int64_t a, int64_t b)
{
    bp_tensor *t = tensor_contiguous_new(c, BP_F32, rank, (int64_t[]){a, b});
    memset(tensor_ptr(t), 0, tensor_span_bytes(t));
    return t;
}

static bp_tensor *number(bp_ctx *c, int64_t v)
{
    bp_tensor *t = tensor_contiguous_new(c, BP_I64, 0, NULL);
    *(int64_t *)tensor_ptr(t) = v;
    return t;
}

/* Runs WHOLE on x of [a, b], y of [a, y1], n and s1; its outputs. */
static bp_status run_whole(bp_ctx *c, int64_t a, int64_t b, int64_t y1, int64_t n, int64_t s1, bp_tensor **out)
{
    bp_graph_module *gm = parse_right(c, WHOLE);
    bp_tensor *in[] = {zeros(c, 2, a, b), zeros(c, 2, a, y1), number(c, n), number(c, s1)};
    bp_status s = graph_run(c, gm, in, 4, out, 3, NULL, NULL);
    for (int i = 0; i < 4; i++)
        tensor_unref(in[i]);
    gm_unref(gm);
    return s;
}

static void a_run_binds_symbols_and_evaluates_arguments(void **state)
{
    bp_ctx *c = *state;
    bp_tensor *out[3];
    assert_int_equal(run_whole(c, 8, 12, 3, 5, 3, out), BP_OK);
    assert_true(tensor_dim(out[0], 0) == 24 && tensor_dim(out[0], 1) == 4);
    assert_true(tensor_dim(out[1], 0) == 5 && tensor_dim(out[1], 1) == 4);
    assert_true(out[2]->rank == 0 && *(int64_t *)tensor_ptr(out[2]) == 11);
    for (int i = 0; i < 3; i++)
        tensor_unref(out[i]);
}

static void refused(bp_ctx *c, bp_status code, const char *words)
{
    assert_contains(bp_error_text(c), words);
    assert_int_equal(bp_error(c), code);
    bp_error_clear(c);
}

static void a_size_that_does_not_fit_is_named(void **state)
{
    bp_ctx *c = *state;
    bp_tensor *out[3];
    run_whole(c, 8, 13, 3, 5, 3, out);
    refused(c, BP_INVALID_ARGUMENT, "input \"x\" of graph \"g\": its size in dimension 1 must be 12 (4*s1), got 13");
    run_whole(c, 8, 12, 3, 5, 4, out); /* y shows s1, and the symint is not its source */
    refused(c, BP_INVALID_ARGUMENT, "input \"s1\" of graph \"g\" must be 3 (s1), got 4");
    run_whole(c, 8, 4, 1, 5, 1, out);
    refused(c, BP_INVALID_ARGUMENT, "the symbol \"s1\" of graph \"g\" is 1, expected one in [2, 64]");
}

static void an_asserted_fact_is_checked_when_it_is_known(void **state)
{
    bp_ctx *c = *state;
    bp_tensor *out[3];
    run_whole(c, 8, 12, 3, 10, 3, out);
    refused(c, BP_OUT_OF_RANGE, "Runtime assertion failed for expression s0 + 1 >= u0");
    run_whole(c, 8, 12, 3, -1, 3, out);
    refused(c, BP_OUT_OF_RANGE, "the symbol \"u0\" of graph \"g\" is -1, expected one in [0, inf]");
}

static void facts_of_the_caller_are_checked_when_that_is_asked_for(void **state)
{
    bp_ctx *c = *state;
    bp_graph_module *gm = parse_right(c, WHOLE);
    int64_t values[3] = {0};
    bp_tensor *in[] = {zeros(c, 2, 7, 12), zeros(c, 2, 7, 3), number(c, 1), number(c, 3)};
    assert_int_equal(graph_bind(c, gm, in, 4, values), BP_OK);
    assert_true(values[0] == 7 && values[1] == 3 && values[2] == 0);
    graph_check_sizes(c, gm, in, 4, values);
    refused(c, BP_INVALID_ARGUMENT, "Mod(s0, 2) == 0, which these inputs break");
    for (int i = 0; i < 4; i++)
        tensor_unref(in[i]);
    gm_unref(gm);
}

/* -- shapes -------------------------------------------------------------------------------------------------------- */

static void types_of(bp_ctx *c, const char *text, const char *expected)
{
    bp_graph_module *gm = parse_right(c, text);
    buf out = {0};
    assert_int_equal(graph_propagate(c, gm), BP_OK);
    graph_print_text(gm, &out);
    assert_string_equal(buf_text(&out), expected);
    buf_fini(&out);
    gm_unref(gm);
}

#define HEAD "graph g {\n  symbol s0 in [2, inf] hint 6\n  symbol s1 in [2, inf] hint 3\n" \
             "  %x: f32[s0, s1] = placeholder \"x\" user\n"

static void shapes_are_expressions_of_symbols(void **state)
{
    types_of(*state, HEAD "  %t = aten.t.default(%x)\n  %cat = aten.cat.default([%x, %x], 1)\n"
                          "  %unsqueeze = aten.unsqueeze.default(%x, 0)\n  output(%t, %cat, %unsqueeze)\n}\n",
             HEAD "  %t: f32[s1, s0; 1, s1] = aten.t.default(%x)\n"
                  "  %cat: f32[s0, 2*s1] = aten.cat.default([%x, %x], 1)\n"
                  "  %unsqueeze: f32[1, s0, s1] = aten.unsqueeze.default(%x, 0)\n  output(%t, %cat, %unsqueeze)\n}\n");
}

static void numbers_flow_through_nodes(void **state)
{
#define NUMBERS(size, mul, neg, max, full)                                                                          \
    HEAD "  %size" size " = aten.sym_size.int(%x, 0)\n  %mul" mul " = <built-in function mul>(%size, 2)\n"             \
         "  %neg" neg " = <built-in function neg>(%mul)\n  %most" max " = <built-in function sym_max>(%size, 9)\n"     \
         "  %full" full " = aten.full.default([%mul, s1], 1)\n  output(%full, %mul, %neg, %most)\n}\n"
    types_of(*state, NUMBERS("", "", "", "", ""),
             NUMBERS(": Sym(s0)", ": Sym(2*s0)", ": Sym(-2*s0)", ": Sym(Max(9, s0))", ": i64[2*s0, s1]"));
}

static void an_item_is_a_symbol_where_the_text_says_so(void **state)
{
    bp_ctx *c = *state;
    static const char TEXT[] = "graph g {\n  symbol u0 in [0, inf] unbacked\n  %n: i64[] = placeholder \"n\" user\n"
                               "  %item: Sym(u0) = aten._local_scalar_dense.default(%n)\n"
                               "  %le: Sym(u0 <= 5) = <built-in function le>(%item, 5)\n"
                               "  %_assert_scalar: () = aten._assert_scalar.default(%le, \"u0 <= 5\")\n"
                               "  %zeros: f32[2*u0] = aten.zeros.default([2*u0])\n  output(%zeros)\n}\n";
    bp_graph_module *gm = parse_right(c, TEXT);
    assert_int_equal(graph_check_types(c, gm), BP_OK);
    int64_t min, max;
    sym_bounds(gm->g.syms, sym_dim_of(gm->g.syms, 0), &min, &max);
    assert_true(min == 0 && max == 5); /* the assertion is a fact now */
    for (int64_t n = 4; n <= 6; n += 2) {
        bp_tensor *in = number(c, n), *out = NULL;
        bp_status s = graph_run(c, gm, &in, 1, &out, 1, NULL, NULL);
        assert_int_equal(s == BP_OK, n == 4);
        assert_true(n != 4 || tensor_dim(out, 0) == 8);
        bp_error_clear(c);
        tensor_unref(in);
        tensor_unref(out);
    }
    gm_unref(gm);
}

/* -- addresses, clones, imports ------------------------------------------------------------------------------------ */

static hash128 address(bp_ctx *c, const char *text)
{
    hash128 h;
    bp_graph_module *gm = parse_right(c, text);
    assert_int_equal(graph_hash(c, gm, NULL, &h), BP_OK);
    gm_unref(gm);
    return h;
}

#define ADDRESSED(symbols, x, y) "graph g {\n" symbols "  %x: f32[" x "] = placeholder \"x\" user\n" \
                                 "  %y: f32[" y "] = placeholder \"y\" user\n  output(%x, %y)\n}\n"
#define TWO(a, b) "  symbol " a " in [2, inf] hint 5\n  symbol " b " in [2, inf] hint 7\n"

static void an_address_knows_symbols_by_number(void **state)
{
    bp_ctx *c = *state;
    hash128 h = address(c, ADDRESSED(TWO("s0", "s1"), "s0", "s1"));
    static const struct { const char *text; bool same; } OTHERS[] = {
        {ADDRESSED(TWO("a", "b"), "a", "b"), true},
        {ADDRESSED(TWO("s1", "s0"), "s0", "s1"), true},
        {ADDRESSED("  symbol s0 in [2, inf] hint 9\n  symbol s1 in [2, inf] hint 9\n", "s0", "s1"), true},
        {ADDRESSED(TWO("s0", "s1"), "s0", "s0"), false},
        {ADDRESSED(TWO("s0", "s1"), "s0", "7"), false},
        {ADDRESSED("  symbol s0 in [2, 90] hint 5\n  symbol s1 in [2, inf] hint 7\n", "s0", "s1"), false},
        {ADDRESSED(TWO("s0", "s1") "  fact s1 >= s0\n", "s0", "s1"), false},
        {ADDRESSED(TWO("s0", "s1") "  assert s1 >= s0\n", "s0", "s1"), false},
    };
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        hash128 other = address(c, OTHERS[i].text);
        assert_int_equal(!memcmp(&h, &other, sizeof h), OTHERS[i].same);
    }
}

static void a_clone_has_an_environment_of_its_own(void **state)
{
    bp_ctx *c = *state;
    bp_graph_module *gm = parse_right(c, WHOLE);
    graph copy;
    uint32_t facts = sym_fact_count(gm->g.syms);
    assert_int_equal(graph_clone(c, &gm->g, &copy), BP_OK);
    assert_ptr_not_equal(copy.syms, gm->g.syms);
    assert_true(dim_same(copy.nodes.at[graph_find(&copy, "view")].metas->sizes[0],
                         gm->g.nodes.at[graph_find(&gm->g, "view")].metas->sizes[0]));
    sym_scope scope = sym_push(copy.syms, c);
    assert_true(dim_eq(sym_dim_of(copy.syms, 1), dim_const(3)));
    sym_pop(scope);
    assert_int_equal(sym_fact_count(copy.syms), facts + 1);
    assert_int_equal(sym_fact_count(gm->g.syms), facts);
    graph_fini(&copy);
    gm_unref(gm);
}

static void imported_symbols_are_numbered_by_first_mention(void **state)
{
    bp_ctx *c = *state;
    sym_env *e = sym_env_new();
    bp_dim s[3];
    for (int i = 0; i < 3; i++)
        s[i] = sym_add_symbol(e, c, &(sym_symbol){.hint = 5 + i, .min = 2, .max = INT64_MAX});
    sym_scope scope = sym_push(e, c);
    bp_dim twice = dim_mul(c, s[0], dim_const(2)), strides[] = {dim_const(1)};
    sym_pop(scope);
    bp_graph_module *gm = gm_new(c, "g");
    graph_import im;
    tensor_meta m;
    assert_int_equal(graph_import_init(&im, c, &gm->g, e), BP_OK);
    im.map.at[1] = dim_const(6); /* decided by the caller */
    const tensor_meta types[] = {{BP_F32, {BP_CPU, 0}, 1, &s[2], strides, {0, 0, 0}},
                                 {BP_F32, {BP_CPU, 0}, 1, &twice, strides, {0, 0, 0}},
                                 {BP_F32, {BP_CPU, 0}, 1, &s[1], strides, {0, 0, 0}}};
    for (int i = 0; i < 3; i++) {
        char name[] = {(char)('a' + i), 0};
        assert_int_equal(graph_import_meta(&im, &types[i], &m), BP_OK);
        build_placeholder(&gm->g, name, &m);
    }
    assert_int_equal(graph_import_finish(&im), BP_OK);
    OUTPUT(&gm->g, V_NONE);
    assert_int_equal(graph_verify(c, gm), BP_OK);
    buf out = {0};
    graph_print_readable(&gm->g, "M", &out);
    assert_contains(buf_text(&out), "L_a_: \"f32[s2]\", L_b_: \"f32[2*s0]\", L_c_: \"f32[6]\", L_s0_: \"Sym(s0)\"");
    assert_true(sym_symbol_count(gm->g.syms) == 2 && im.back.at[0] == 2 && im.back.at[1] == 0);
    buf_fini(&out);
    graph_import_fini(&im);
    gm_unref(gm);
    sym_env_unref(e);
}

static void prints_show_expressions(void **state)
{
    bp_ctx *c = *state;
    bp_graph_module *gm = parse_right(c, WHOLE);
    buf out = {0};
    graph_print_tabular(&gm->g, &out);
    assert_contains(buf_text(&out), "(x, [s0*s1, 4])");
    buf_clear(&out);
    graph_print_readable(&gm->g, "M", &out);
    assert_contains(buf_text(&out), "L_x_: \"f32[s0, 4*s1]\"");
    assert_contains(buf_text(&out), "L_s1_: \"Sym(s1)\"");
    assert_contains(buf_text(&out), "item: \"Sym(u0)\" = torch.ops.aten._local_scalar_dense.default(n)");
    assert_contains(buf_text(&out), "full: \"f32[u0, s0//2]\" = torch.ops.aten.full.default([u0, s0//2], 1.5)");
    buf_fini(&out);
    gm_unref(gm);
}

static void numbers_are_written_as_sums_and_products(void **state)
{
    bp_ctx *c = *state;
    bp_graph_module *gm = parse_right(c, NUMBERS("", "", "", "", ""));
    buf out = {0};
    assert_int_equal(graph_propagate(c, gm), BP_OK);
    graph_print_readable(&gm->g, "M", &out);
    assert_contains(buf_text(&out), "mul: \"Sym(2*s0)\" = size * 2");
    assert_contains(buf_text(&out), "neg: \"Sym(-2*s0)\" = neg(mul)");
    buf_fini(&out);
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

/* A context each, so that one failure stays one. */
#define CLAIM(name) cmocka_unit_test_setup_teardown(name, make_ctx, drop_ctx)

int main(void)
{
    const struct CMUnitTest claims[] = {
        CLAIM(a_text_with_symbols_reads_back),
        CLAIM(what_is_wrong_with_symbols_is_told),
        CLAIM(a_run_binds_symbols_and_evaluates_arguments),
        CLAIM(a_size_that_does_not_fit_is_named),
        CLAIM(an_asserted_fact_is_checked_when_it_is_known),
        CLAIM(facts_of_the_caller_are_checked_when_that_is_asked_for),
        CLAIM(shapes_are_expressions_of_symbols),
        CLAIM(numbers_flow_through_nodes),
        CLAIM(an_item_is_a_symbol_where_the_text_says_so),
        CLAIM(an_address_knows_symbols_by_number),
        CLAIM(a_clone_has_an_environment_of_its_own),
        CLAIM(imported_symbols_are_numbered_by_first_mention),
        CLAIM(prints_show_expressions),
        CLAIM(numbers_are_written_as_sums_and_products),
    };
    return cmocka_run_group_tests(claims, NULL, NULL);
}
