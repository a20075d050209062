/* Graphs without memory: every allocation fails once; nothing crashes, nothing leaks, the error says so, and what was
 * printed whole is right. */
#define BP_WITHOUT_OPERATORS
#include "tests/lib/check.h"
#include "host/graph/graph.h"
#include "host/tensor/alloc.h"
#include "tests/lib/oom.h"
#include <backplane/backplane.h>
#include <stdlib.h>

static const char TEXT[] = "graph g {\n"
                           "  symbol s0 in [2, inf] hint 4\n"
                           "  fact Mod(s0, 2) == 0\n"
                           "  assert s0 >= 3\n"
                           "  %a: f32[s0] = placeholder \"a\" user\n"
                           "  %c: f32[2; 2] = get_attr \"c\" data \"AACAPwAAAAAAAABA\"\n"
                           "  %frexp: (f32[s0], i32[s0]) = aten.frexp.Tensor(%a)\n"
                           "  %x: f32[s0] = <built-in function getitem>(%frexp, 0)\n"
                           "  %add: f32[s0] = aten.add.Tensor(%x, 2.5, alpha=2)\n"
                           "  %view: f32[s0//2, 2] = aten.view.default(%add, [s0//2, 2])\n"
                           "  %t: f32[2, s0//2; 1, 2] = aten.t.default(%view)\n"
                           "  %cat: f32[s0 + 2] = aten.cat.default([%add, %c])\n"
                           "  %clone: f32[s0 + 2] = aten.clone.default(%cat, memory_format=format(contiguous))\n"
                           "  output(%clone, None, %cat)\n}\n";

static bp_ctx *c;
static bp_tensor *x;
static bp_graph_module *whole;

static int start(void **state)
{
    (void)state;
    alloc_set_limits(0, SIZE_MAX);
    c = bp_ctx_new(NULL);
    x = bp_keep(c, bp_tensor_from(c, BP_F32, 1, (int64_t[]){4}, (const float[]){1, 2, 3, 4}));
    whole = graph_parse_text(c, "t.bpg", TEXT, sizeof TEXT - 1);
    bp_tensor *out[3]; /* once, for what a context keeps */
    if (!x || !whole || graph_run(c, whole, &x, 1, out, 3, NULL, NULL) != BP_OK)
        return -1;
    tensor_unref(out[0]);
    tensor_unref(out[2]);
    return 0;
}

static int end(void **state)
{
    (void)state;
    gm_unref(whole);
    tensor_unref(x);
    bp_ctx_destroy(c);
    return 0;
}

static bool went_well(void)
{
    bp_status s = bp_error(c);
    if (s != BP_OK && s != BP_RESOURCE_EXHAUSTED)
        fail_msg("%s: %s", bp_status_name(s), bp_error_text(c));
    bp_error_clear(c);
    return s == BP_OK;
}

static bool use_parser(void *arg)
{
    (void)arg;
    bp_graph_module *gm = graph_parse_text(c, "t.bpg", TEXT, sizeof TEXT - 1);
    assert_true(gm || bp_error(c) != BP_OK);
    gm_unref(gm);
    return went_well();
}

static void parsing(void **state)
{
    (void)state;
    assert_true(oom_sweep("parsing", use_parser, NULL) > 60);
}

static bool use_printers(void *arg)
{
    (void)arg;
    buf text = {0}, table = {0}, code = {0};
    graph_print_text(whole, &text);
    graph_print_tabular(&whole->g, &table);
    graph_print_readable(&whole->g, "G", &code);
    bool well = !text.failed && !table.failed && !code.failed;
    if (!text.failed)
        assert_string_equal(buf_text(&text), TEXT);
    buf_fini(&text);
    buf_fini(&table);
    buf_fini(&code);
    return well;
}

static void printing(void **state)
{
    (void)state;
    assert_true(oom_sweep("printing", use_printers, NULL) > 10);
}

static bool use_copies(void *arg)
{
    (void)arg;
    graph copy;
    hash128 h;
    graph_hash(c, whole, NULL, &h);
    if (bp_error(c) == BP_OK && graph_clone(c, &whole->g, &copy) == BP_OK) {
        node_id n = graph_find(&copy, "cat");
        graph_replace_uses(&copy, n, graph_find(&copy, "add"));
        graph_set_args(&copy, n, (bp_value[]){graph_ref(graph_find(&copy, "a"))}, 1);
        graph_erase(&copy, n);
        graph_call(&copy, NULL, "aten.abs.default", (bp_value[]){graph_ref(1)}, 1, NULL, 0);
        graph_status(c, &copy);
        graph_fini(&copy);
    }
    return went_well();
}

static void copying_and_editing(void **state)
{
    (void)state;
    assert_true(oom_sweep("copies", use_copies, NULL) > 20);
}

static bool use_runs(void *arg)
{
    (void)arg;
    bp_tensor *out[3];
    bp_status s = graph_run(c, whole, &x, 1, out, 3, NULL, NULL);
    for (int i = 0; i < 3; i++)
        assert_true(s == BP_OK ? i == 1 || out[i] : !out[i]);
    for (int i = 0; i < 3; i++)
        tensor_unref(out[i]);
    return went_well();
}

static void running(void **state)
{
    (void)state;
    assert_true(oom_sweep("running", use_runs, NULL) > 10);
}

static bool use_checks(void *arg)
{
    (void)arg;
    graph_verify(c, whole);
    if (bp_error(c) == BP_OK)
        graph_check_types(c, whole);
    assert_null(c->modes);
    return went_well();
}

static void verifying_and_shapes(void **state)
{
    (void)state;
    assert_true(oom_sweep("checks", use_checks, NULL) > 10);
}

int main(void)
{
    const struct CMUnitTest claims[] = {
        cmocka_unit_test(parsing),
        cmocka_unit_test(printing),
        cmocka_unit_test(copying_and_editing),
        cmocka_unit_test(running),
        cmocka_unit_test(verifying_and_shapes),
    };
    return cmocka_run_group_tests(claims, start, end);
}
