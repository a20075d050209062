/* Canonical text: what is printed reads back, and what is malformed is refused where it is wrong. */
#include "tests/unit/graph/build.h"

static const char WHOLE[] =
    "graph __compiled_fn_0 {\n"
    "  %a: f32[10] = placeholder \"a\" user\n"
    "  %w: f32[3, 4; 1, 3] = placeholder \"fc.weight\" parameter\n"
    "  %s: f64[] @cuda:1 = placeholder \"a\\\"b\\\\c\\n\\x01\" buffer\n"
    "  %z: bf16[2, 0, 3] = placeholder \"z\" constant\n"
    "  %c: i64[2] = get_attr \"c\" data \"AQAAAAAAAAACAAAAAAAAAA==\"\n"
    "  %abs_1: f32[10] = aten.abs.default(%a)\n"
    "  %add: f32[10] = aten.add.Tensor(%abs_1, %a, alpha=2)\n"
    "  %add_1 = aten.add.Scalar(%add, 1e-05)\n"
    "  %add_2: f32[10] = aten.add.Scalar(%add_1, -inf)\n"
    "  %add_3: f32[10] = aten.add.Scalar(%add_2, nan, complex(1.0, -0.0))\n"
    "  %add_4: f32[10] = aten.add.Scalar(%add_3, True, -9223372036854775808)\n"
    "  %mul: f32[10] = aten.mul.Tensor(%add_4, 2.0)\n"
    "  %clone: f32[10] = aten.clone.default(%mul, memory_format=format(preserve))\n"
    "  output(%clone, None)\n"
    "}\n";

static bp_graph_module *parse(bp_ctx *c, const char *text)
{
    return graph_parse_text(c, "t.bpg", text, strlen(text));
}

static void check_round_trip(bp_ctx *c, const char *text)
{
    bp_graph_module *gm = parse(c, text);
    buf out = {0};
    assert_string_equal(bp_error_text(c), "");
    assert_non_null(gm);
    graph_print_text(gm, &out);
    assert_string_equal(buf_text(&out), text);
    buf_fini(&out);
    gm_unref(gm);
}

static void what_is_printed_reads_back(void **state)
{
    bp_ctx *c = *state;
    check_round_trip(c, WHOLE);
    check_round_trip(c, "graph g {\n  output()\n}\n");
    check_round_trip(c, "graph \"a b\" {\n  %sum: b8[] = placeholder \"\" user\n  output(%sum)\n}\n");
    check_round_trip(c, "graph g.x-1 {\n  %a = placeholder \"a\" user\n"
                        "  %frexp: (f32[2], i32[2]) = aten.frexp.Tensor(%a)\n"
                        "  %getitem: f32[2] = <built-in function getitem>(%frexp, -2)\n  output(%getitem)\n}\n");
}

static void values_of_each_kind_read_back(void **state)
{
    bp_ctx *c = *state;
    static const char *const VALUES[] = {"dtype(bf16)", "device(cpu)", "device(cuda:3)", "device(fake:0)",
        "layout(strided)", "format(contiguous)", "format(channels_last)", "format(channels_last_3d)", "[]",
        "[[1, 2], []]", "[None, %a]", "\"text\"", "1.0", "-0.0", "inf", "1e+300", "0", "None", "False"};
    for (size_t i = 0; i < sizeof VALUES / sizeof *VALUES; i++) {
        bp_graph_module *gm = gm_new(c, "g");
        char text[200];
        buf out = {0};
        snprintf(text, sizeof text, "%%x = <built-in function f>(%s)", VALUES[i]);
        gm_unref(gm);
        buf whole = {0};
        buf_printf(&whole, "graph g {\n  %%a = placeholder \"a\" user\n  %s\n  output()\n}\n", text);
        gm = parse(c, buf_text(&whole));
        assert_string_equal(bp_error_text(c), "");
        graph_print_text(gm, &out);
        assert_string_equal(buf_text(&out), buf_text(&whole));
        gm_unref(gm);
        buf_fini(&out);
        buf_fini(&whole);
    }
}

static void blanks_and_comments_may_stand_anywhere(void **state)
{
    bp_ctx *c = *state;
    bp_graph_module *gm = parse(c, "# first\n\n graph\tg\r\n{ # open\n%a:f32[ 2 ,3 ]=placeholder\"a\"user %b=aten.abs."
                                   "default( %a )output(%b)}# end");
    buf out = {0};
    assert_string_equal(bp_error_text(c), "");
    graph_print_text(gm, &out);
    assert_string_equal(buf_text(&out), "graph g {\n  %a: f32[2, 3] = placeholder \"a\" user\n"
                                        "  %b = aten.abs.default(%a)\n  output(%b)\n}\n");
    assert_int_equal(graph_get(&gm->g, 1)->line, 5);
    buf_fini(&out);
    gm_unref(gm);
}

static void a_constant_keeps_its_data(void **state)
{
    bp_ctx *c = *state;
    bp_graph_module *gm = parse(c, WHOLE);
    const int64_t *data = tensor_ptr(gm_constant(gm, "c"));
    assert_int_equal(data[0], 1);
    assert_int_equal(data[1], 2);
    gm_unref(gm);
}

/* Each text is wrong in one place; where and what is told. A text without "graph" is a line in the middle of one. */
static const struct { const char *text, *place, *words, *hint; } WRONG[] = {
    {"", "t.bpg:1:1", "expected \"graph\", got the end of the text", ""},
    {"grap g {}", "t.bpg:1:1", "expected \"graph\", got \"grap\"", "did you mean \"graph\"?"},
    {"graph {}", "t.bpg:1:7", "the graph's name, got '{'", ""},
    {"graph g", "t.bpg:1:8", "expected '{', got the end", ""},
    {"graph g {\n", "t.bpg:2:1", "got the end of the text", ""},
    {"graph g {\n output() }\n}", "t.bpg:3:1", "the end of the text, got '}'", ""},
    {"graph g {\n}", "t.bpg:2:1", "no output", ""},
    {"  %a = placeholder \"a\"\n", "t.bpg:4:3", "a role", ""},
    {"  %a = placeholder \"a\" usr\n", "t.bpg:3:24", "a role, got \"usr\"", "did you mean \"user\"?"},
    {"  %a = placeholder a user\n", "t.bpg:3:20", "the source name in quotes, got \"a\"", ""},
    {"  %x = placeholder \"a\" user\n", "t.bpg:3:3", "\"%x\" is taken by line 2", ""},
    {"  %1 = placeholder \"a\" user\n", "t.bpg:3:4", "the name of a node, got \"1\"", ""},
    {"  a = placeholder \"a\" user\n", "t.bpg:3:3", "\"output\", got \"a\"", ""},
    {"  %a: f33[2] = placeholder \"a\" user\n", "t.bpg:3:7", "a data type, got \"f33\"", "did you mean \"f3"},
    {"  %a: f32 = placeholder \"a\" user\n", "t.bpg:3:11", "'[' and the sizes, got '='", ""},
    {"  %a: f32[-2] = placeholder \"a\" user\n", "t.bpg:3:11", "a size of at least 0, got -2", ""},
    {"  %a: f32[2.5] = placeholder \"a\" user\n", "t.bpg:3:11", "a size, got a float", ""},
    {"  %a: f32[2 3] = placeholder \"a\" user\n", "t.bpg:3:13", "',' or ';' or ']', got \"3\"", ""},
    {"  %a: f32[2; 1, 1] = placeholder \"a\" user\n", "t.bpg:3:7", "1 strides, as many as sizes, got 2", ""},
    {"  %a: f32[99999999999999999999] = placeholder \"a\" user\n", "t.bpg:3:11", "does not fit in 64 bits", ""},
    {"  %a: f32[2] @gpu:0 = placeholder \"a\" user\n", "t.bpg:3:15", "a device, got \"gpu\"", ""},
    {"  %a: (f32[2] = placeholder \"a\" user\n", "t.bpg:3:15", "',' or ')', got '='", ""},
    {"  %a placeholder \"a\" user\n", "t.bpg:3:6", "':' or '=', got \"placeholder\"", ""},
    {"  %a = \"b\"\n", "t.bpg:3:8", "an operator, placeholder or get_attr, got '\"'", ""},
    {"  %a = aten.bas.default(%x)\n", "t.bpg:3:8", "unknown operator \"aten.bas.default\"", "did you mean \"aten."},
    {"  %a = <built-in>(%x)\n", "t.bpg:3:8", "unknown operator \"<built-in>\"", ""},
    {"  %a = <built-in function f(%x)\n", "t.bpg:3:8", "expected <built-in function NAME>", ""},
    {"  %a = aten.abs.default %x\n", "t.bpg:3:25", "'(' and the arguments, got '%'", ""},
    {"  %a = aten.abs.default(%y)\n", "t.bpg:3:25", "the name of an earlier node, got \"y\"", ""},
    {"  %input_one = aten.abs.default(%x)\n  %a = aten.abs.default(%input_on)\n", "t.bpg:4:25", "got \"input_on\"",
     "did you mean \"input_one\"?"},
    {"  %a = aten.abs.default(%a)\n", "t.bpg:3:25", "the name of an earlier node", ""},
    {"  %a = aten.abs.default(self=%x, %x)\n", "t.bpg:3:34", "a named argument after \"self=\"", ""},
    {"  %a = aten.abs.default(%x, )\n", "t.bpg:3:29", "a value, got ')'", ""},
    {"  %a = aten.add.Scalar(%x, [1, 2)\n", "t.bpg:3:33", "',' or ']', got ')'", ""},
    {"  %a = aten.add.Scalar(%x, nan_)\n", "t.bpg:3:28", "a value, got \"nan_\"", "did you mean \"nan\"?"},
    {"  %a = aten.add.Scalar(%x, 1.2.3)\n", "t.bpg:3:28", "a number, got \"1.2.3\"", ""},
    {"  %a = aten.add.Scalar(%x, -)\n", "t.bpg:3:28", "a number, got \"-\"", ""},
    {"  %a = aten.add.Scalar(%x, 1x)\n", "t.bpg:3:28", "a number, got \"1x\"", ""},
    {"  %a = aten.add.Scalar(%x, true)\n", "t.bpg:3:28", "a value, got \"true\"", "did you mean \"True\"?"},
    {"  %a = aten.add.Scalar(%x, complex(1.0))\n", "t.bpg:3:39", "',' and the imaginary part, got ')'", ""},
    {"  %a = aten.add.Scalar(%x, dtype f32)\n", "t.bpg:3:34", "'(', got \"f32\"", ""},
    {"  %a = aten.add.Scalar(%x, format(perserve))\n", "t.bpg:3:35", "a memory format", "did you mean \"preserve\"?"},
    {"  %a = aten.add.Scalar(%x, layout(sparse))\n", "t.bpg:3:35", "a layout, got \"sparse\"", ""},
    {"  %a = aten.add.Scalar(%x, \"abc\n)\n", "t.bpg:3:28", "this string has no end on its line", ""},
    {"  %a = aten.add.Scalar(%x, \"a\\q\")\n", "t.bpg:3:30", "an escape that is none of", ""},
    {"  %a = aten.add.Scalar(%x, \"a\\x0\")\n", "t.bpg:3:30", "an escape that is none of", ""},
    {"  %a = aten.add.Scalar(%x, \"a\\x00\")\n", "t.bpg:3:30", "a zero byte", ""},
    {"  %a = aten.add.Scalar(%x, \x01)\n", "t.bpg:3:28", "a value, got the byte 0x01", ""},
    {"  %a: f32[2] = get_attr \"a\" data \"AAAA\"\n", "t.bpg:3:34", "base64 of 8 bytes, got 3", ""},
    {"  %a: f32[1] = get_attr \"a\" data \"AAA!AA==\"\n", "t.bpg:3:34", "not of base64", ""},
    {"  %a = get_attr \"a\" data \"\"\n", "t.bpg:3:3", "a constant with data needs one type", ""},
    {"  %a: f32[1] = get_attr \"a\"\n", "t.bpg:3:3", "node \"a\" of graph \"g\": its constant has no value", ""},
    {"  output(%x)\n", "t.bpg:3:3", "an output must be the last node", ""},
    {"  output(x=%x)\n", "t.bpg:3:3", "an output has no named arguments", ""},
    {"  outptu(%x)\n", "t.bpg:3:3", "\"output\", got \"outptu\"", "did you mean \"output\"?"},
};

static void what_is_wrong_is_refused_where_it_is(void **state)
{
    bp_ctx *c = *state;
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        bool whole = WRONG[i].text[0] != ' ';
        buf text = {0};
        if (!whole)
            buf_puts(&text, "graph g {\n  %x: f32[2] = placeholder \"x\" user\n");
        buf_puts(&text, WRONG[i].text);
        buf_puts(&text, whole ? "" : "  output()\n}\n");
        assert_null(parse(c, buf_text(&text)));
        assert_int_equal(bp_error(c), BP_INVALID_ARGUMENT);
        assert_contains(bp_error_text(c), WRONG[i].place);
        assert_contains(bp_error_text(c), WRONG[i].words);
        assert_contains(bp_error_text(c), WRONG[i].hint);
        bp_error_clear(c);
        buf_fini(&text);
    }
}

static void lists_nest_to_a_limit(void **state)
{
    bp_ctx *c = *state;
    buf text = {0};
    buf_puts(&text, "graph g {\n  %x = <built-in function f>(");
    buf_pad(&text, 100000, '[');
    assert_null(graph_parse_text(c, "t.bpg", text.s, text.n));
    assert_contains(bp_error_text(c), "t.bpg:2:90: lists nest deeper than 60");
    bp_error_clear(c);
    buf_fini(&text);
}

/* xorshift: the same mutations on every machine. */
static uint32_t next(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    return *seed ^= *seed << 5;
}

/* Removes, changes, doubles or moves a piece of the text. */
static size_t mutate(char *text, size_t n, size_t cap, uint32_t *seed)
{
    static const char INSTEAD[] = "%[](){}<>\"\\,;:=#@-.09eaNT \n";
    size_t at = next(seed) % n, len = 1 + next(seed) % 12;
    if (at + len > n)
        len = n - at;
    switch (next(seed) % 6) {
    case 0: memmove(text + at, text + at + len, n - at - len); return n - len;
    case 1: text[at] = INSTEAD[next(seed) % (sizeof INSTEAD - 1)]; return n;
    case 2:
        if (n + len > cap)
            return n;
        memmove(text + at + len, text + at, n - at);
        return n + len;
    case 3: text[at] = text[next(seed) % n]; return n;
    default: /* another digit, which often leaves a text that reads */
        while (at < n && !(text[at] >= '0' && text[at] <= '9'))
            at++;
        if (at < n)
            text[at] = (char)('0' + next(seed) % 10);
        return n;
    }
}

static void mutated_texts_are_read_or_refused(void **state)
{
    bp_ctx *c = *state;
    uint32_t seed = 2463534242u, read = 0, refused = 0;
    for (uint32_t i = 0; i < 600; i++) {
        char text[4096];
        size_t n = sizeof WHOLE - 1;
        memcpy(text, WHOLE, n);
        for (uint32_t k = 0; k <= i % 4; k++)
            n = mutate(text, n, sizeof text, &seed);
        char *exact = malloc(n); /* so that a sanitizer sees a byte too many */
        memcpy(exact, text, n);
        bp_graph_module *gm = graph_parse_text(c, "t.bpg", exact, n);
        free(exact);
        assert_true((gm != NULL) == (bp_error(c) == BP_OK));
        read += gm != NULL;
        refused += gm == NULL;
        buf out = {0};
        if (gm) { /* and what was read prints and reads back */
            graph_print_text(gm, &out);
            check_round_trip(c, buf_text(&out));
        }
        buf_fini(&out);
        gm_unref(gm);
        bp_error_clear(c);
    }
    assert_true(read > 20 && refused > 300);
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
        cmocka_unit_test(what_is_printed_reads_back),
        cmocka_unit_test(values_of_each_kind_read_back),
        cmocka_unit_test(blanks_and_comments_may_stand_anywhere),
        cmocka_unit_test(a_constant_keeps_its_data),
        cmocka_unit_test(what_is_wrong_is_refused_where_it_is),
        cmocka_unit_test(lists_nest_to_a_limit),
        cmocka_unit_test(mutated_texts_are_read_or_refused),
    };
    return cmocka_run_group_tests(claims, make_ctx, drop_ctx);
}
