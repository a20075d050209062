/* Graphs print as torch.fx prints them; expected/ was written by torch.fx itself (expected.py). */
#include "tests/unit/graph/build.h"
#include <math.h>

static void toy_0(graph *g)
{
    node_id a = build_placeholder(g, "a", NULL), b = build_placeholder(g, "b", NULL);
    node_id abs = CALL(g, "aten.abs.default", V_NODE(a));
    node_id add = CALL(g, "aten.add.Scalar", V_NODE(abs), V_INT(1));
    node_id div = CALL(g, "aten.div.Tensor", V_NODE(a), V_NODE(add));
    node_id sum = CALL(g, "aten.sum.default", V_NODE(b));
    node_id lt = CALL(g, "aten.lt.Scalar", V_NODE(sum), V_INT(0));
    OUTPUT(g, V_NODE(div), V_NODE(lt));
}

static void toy_1(graph *g)
{
    node_id b = build_placeholder(g, "b", NULL), div = build_placeholder(g, "div", NULL);
    node_id mul = CALL(g, "aten.mul.Scalar", V_NODE(b), V_INT(-1));
    OUTPUT(g, V_NODE(CALL(g, "aten.mul.Tensor", V_NODE(div), V_NODE(mul))));
}

static void toy_2(graph *g)
{
    node_id b = build_placeholder(g, "b", NULL), div = build_placeholder(g, "div", NULL);
    OUTPUT(g, V_NODE(CALL(g, "aten.mul.Tensor", V_NODE(div), V_NODE(b))));
}

static void relu_cos(graph *g)
{
    node_id cos = CALL(g, "aten.cos.default", V_NODE(build_placeholder(g, "x", NULL)));
    OUTPUT(g, V_NODE(CALL(g, "aten.relu.default", V_NODE(cos))));
}

static void cos_sin(graph *g)
{
    node_id x = build_placeholder(g, "x", NULL), y = build_placeholder(g, "y", NULL);
    node_id cos = CALL(g, "aten.cos.default", V_NODE(x)), sin = CALL(g, "aten.sin.default", V_NODE(y));
    OUTPUT(g, V_NODE(CALL(g, "aten.add.Tensor", V_NODE(cos), V_NODE(sin))));
}

static node_id call_with(graph *g, const char *target, const bp_value *args, uint32_t nargs, const node_kwarg *kw,
                         uint32_t nkw)
{
    return graph_call(g, NULL, target, args, nargs, kw, nkw);
}

static void mixed_tail(graph *g, node_id j, node_id k, node_id w)
{
    bp_value kv = V_NODE(k);
    node_id mul = CALL(g, "aten.mul_.Tensor", V_NODE(j), V_NODE(w));
    CALL(g, "aten.mul_.Tensor", V_NODE(j), V_FLOAT(1e-05));
    CALL(g, "aten.mul.Scalar", kv, V_COMPLEX(1, 2));
    CALL(g, "aten.mul.Scalar", kv, V_COMPLEX(0.0, -2.0));
    CALL(g, "aten.mul.Scalar", kv, V_COMPLEX(-0.0, NAN));
    call_with(g, "aten.gelu.default", &kv, 1, &(node_kwarg){"approximate", V_STR("ta\"n'h\n")}, 1);
    call_with(g, "aten.clone.default", &kv, 1, &(node_kwarg){"memory_format", V_FORMAT(BP_CHANNELS_LAST)}, 1);
    CALL(g, "aten.index.Tensor", kv, V_LIST(g, V_NONE, V_NODE(w)));
    OUTPUT(g, V_NODE(mul), V_NONE, V_NODE(mul));
}

static void mixed(graph *g)
{
    node_id a = build_placeholder(g, "a", NULL), w = graph_get_attr(g, "w", "w", NULL);
    node_id s = CALL(g, "aten.split_with_sizes.default", V_NODE(a), V_LIST(g, V_INT(5), V_INT(5)));
    node_id i = CALL(g, "<built-in function getitem>", V_NODE(s), V_INT(0));
    node_kwarg to[] = {{"dtype", V_DTYPE(BP_F64)}, {"device", V_DEVICE(BP_CPU, 0)},
                       {"memory_format", V_FORMAT(BP_PRESERVE)}};
    node_id j = call_with(g, "aten._to_copy.default", (bp_value[]){V_NODE(i)}, 1, to, 3);
    node_kwarg how[] = {{"layout", V_LAYOUT}, {"pin_memory", V_BOOL(0)}};
    bp_value full[] = {V_LIST(g, V_INT(2), V_INT(3)), V_FLOAT(INFINITY)};
    mixed_tail(g, j, call_with(g, "aten.full.default", full, 2, how, 2), w);
}

static const struct { const char *name; void (*build)(graph *g); const char *types; } GRAPHS[] = {
    {"toy_0", toy_0, "vvvvvsb"}, {"toy_1", toy_1, "vvvv"},     {"toy_2", toy_2, "vvv"},
    {"relu_cos", relu_cos, "mmm"}, {"cos_sin", cos_sin, "vvvvv"}, {"mixed", mixed, ""},
};

/* v: f32[10], s: f32[], b: b8[], m: f32[3, 4] */
static void set_types(graph *g, const char *types)
{
    for (node_id n = 1; types[n - 1]; n++) {
        char t = types[n - 1];
        if (t == 'v')
            graph_set_metas(g, n, TYPE(BP_F32, 1, DIM(10)), 1);
        else if (t == 'm')
            graph_set_metas(g, n, TYPE(BP_F32, 2, DIM(3), DIM(4)), 1);
        else
            graph_set_metas(g, n, TYPE(t == 's' ? BP_F32 : BP_BOOL, 0, DIM(0)), 1);
    }
}

static void check_print(size_t i, const char *suffix, void (*print)(const graph *g, buf *out))
{
    char file[64];
    graph g;
    buf out = {0};
    graph_init(&g);
    GRAPHS[i].build(&g);
    set_types(&g, GRAPHS[i].types);
    assert_false(g.failed);
    print(&g, &out);
    snprintf(file, sizeof file, "expected/%s.%s", GRAPHS[i].name, suffix);
    char *expected = build_read(file);
    assert_string_equal(buf_text(&out), expected);
    free(expected);
    buf_fini(&out);
    graph_fini(&g);
}

static void readable(const graph *g, buf *out)
{
    graph_print_readable(g, "GraphModule", out);
}

static void tables_are_those_of_torch_fx(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof GRAPHS / sizeof *GRAPHS; i++)
        check_print(i, "table", graph_print_tabular);
}

static void readable_code_is_that_of_torch_fx(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof GRAPHS / sizeof *GRAPHS; i++)
        check_print(i, "readable", readable);
}

static void a_place_is_printed_where_it_changes(void **state)
{
    (void)state;
    graph g;
    buf out = {0};
    graph_init(&g);
    toy_1(&g);
    graph_set_site(&g, 3, "demo.c", 12);
    graph_set_site(&g, 4, "demo.c", 12);
    readable(&g, &out);
    assert_contains(buf_text(&out), "        div = L_div_\n\n        # File: demo.c:12\n        mul = ");
    assert_null(strstr(strstr(buf_text(&out), "demo.c") + 1, "demo.c"));
    graph_set_site(&g, 4, "demo.c", 13);
    buf_clear(&out);
    readable(&g, &out);
    assert_contains(buf_text(&out), "b = None\n\n        # File: demo.c:13\n        mul_1 = ");
    buf_fini(&out);
    graph_fini(&g);
}

static void widths_count_characters_not_bytes(void **state)
{
    (void)state;
    graph g;
    buf out = {0};
    graph_init(&g);
    graph_placeholder(&g, "a", "gr\xc3\xb6\xc3\x9f_des_x", BP_ROLE_USER, NULL);
    graph_output(&g, NULL, 0);
    graph_print_tabular(&g, &out);
    assert_contains(buf_text(&out), "\nplaceholder  a       gr\xc3\xb6\xc3\x9f_des_x  ()      {}\n");
    assert_contains(buf_text(&out), "\noutput       output  output      ((),)   {}\n");
    buf_fini(&out);
    graph_fini(&g);
}

/* Lines "wish<tab>name" through one graph. */
static void check_names(const char *file, int32_t op)
{
    graph g;
    graph_init(&g);
    char *text = build_read(file);
    str rest = str_of(text);
    uint32_t n = 0;
    while (rest.n) {
        str line = str_split(&rest, '\n');
        if (!line.n)
            break;
        str wish = str_split(&line, '\t');
        char copy[64], expected[64];
        snprintf(copy, sizeof copy, "%.*s", (int)wish.n, wish.s);
        snprintf(expected, sizeof expected, "%.*s", (int)line.n, line.s);
        node_id id = op == BP_NODE_PLACEHOLDER ? build_placeholder(&g, copy, NULL) : CALL(&g, copy, V_INT(1));
        assert_true(id != 0);
        assert_string_equal(graph_get(&g, id)->name, expected);
        n++;
    }
    assert_true(n > 8);
    free(text);
    graph_fini(&g);
}

static void names_are_those_of_torch_fx(void **state)
{
    (void)state;
    check_names("expected/names", BP_NODE_PLACEHOLDER);
    check_names("expected/target_names", BP_NODE_CALL_FUNCTION);
}

int main(void)
{
    const struct CMUnitTest claims[] = {
        cmocka_unit_test(tables_are_those_of_torch_fx),
        cmocka_unit_test(readable_code_is_that_of_torch_fx),
        cmocka_unit_test(a_place_is_printed_where_it_changes),
        cmocka_unit_test(widths_count_characters_not_bytes),
        cmocka_unit_test(names_are_those_of_torch_fx),
    };
    return cmocka_run_group_tests(claims, NULL, NULL);
}
