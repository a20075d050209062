/* The plugin of the first day (v1/golden_plugin.so), that very file: it loads, and computes what it computed then,
 * named directly, in parts, in a chain, and through every service that it calls. */
#include "host/backend/room.h"
#include "host/base/log.h"
#include "tests/lib/world.h"
#include <stdlib.h>
#include <sys/stat.h>

static const char GRAPH[] = "graph g {\n"
                            "  %x: f32[2, 3] = placeholder \"x\" user\n"
                            "  %y: f32[2, 3] = placeholder \"y\" parameter\n"
                            "  %neg: f32[2, 3] = aten.neg.default(%x)\n"
                            "  %add: f32[2, 3] = aten.add.Tensor(%neg, %y, alpha=2)\n"
                            "  %mul: f32[2, 3] = aten.mul.Tensor(%add, %x)\n"
                            "  output(%mul, %add)\n"
                            "}\n";
static const char PARTS[] = "graph parts {\n"
                            "  %x: f32[2, 3] = placeholder \"x\" user\n"
                            "  %y: f32[2, 3] = placeholder \"y\" user\n"
                            "  %abs_1: f32[2, 3] = aten.abs.default(%x)\n"
                            "  %add: f32[2, 3] = aten.add.Tensor(%abs_1, %y)\n"
                            "  %mul: f32[2, 3] = aten.mul.Tensor(%add, 2)\n"
                            "  %neg: f32[2, 3] = aten.neg.default(%mul)\n"
                            "  output(%neg, %add)\n"
                            "}\n";
static const float X[6] = {1, -2, 3, -4, 5, 0.5f}, Y[6] = {10, 20, 30, 40, 50, 60};

/* The file's bytes, in the test's folder: how the source tree lies is not what is tested. */
static world *open_golden(const char *policy, const char *keys)
{
    buf ini = {0};
    buf_printf(&ini, "[host]\nfallback = %s\nprobe_helper = @helper@\nprobe = full\n"
                     "[backend golden]\nlibrary = @dir@/golden.so\n%s"
                     "[backend chain]\nlibrary = @plugins@/backplane-compose.so\nopt.chain = ?absent, golden, eager\n",
               policy, keys);
    world *w = world_open(ini.s);
    buf_fini(&ini);
    char from[600], to[600], *data = malloc(1 << 20);
    snprintf(from, sizeof from, "%s/tests/abi/v1/golden_plugin.so", getenv("top_srcdir"));
    snprintf(to, sizeof to, "%s/golden.so", w->dir);
    FILE *f = fopen(from, "rb"), *g = fopen(to, "wb");
    assert_true(f && g && data);
    size_t n = fread(data, 1, 1 << 20, f);
    assert_in_range(n, 10000, 100000);
    assert_int_equal(fwrite(data, 1, n, g), n);
    fclose(f);
    fclose(g);
    free(data);
    w->rt->log_mask |= UINT64_C(1) << LOG_backend | UINT64_C(1) << LOG_output_code;
    return w;
}

static bp_status build(world *w, const char *name, const char *source, program **p)
{
    backend *b;
    *p = NULL;
    bp_status st = backend_resolve(w->c, name, NULL, NULL, &b);
    if (st)
        return st;
    bp_graph_module *gm = world_graph(w, source);
    st = program_compile(w->c, gm, b, p);
    gm_unref(gm);
    return st;
}

static void expect(world *w, program *p, const float *first, const float *second, bool transposed)
{
    bp_tensor *in[2], *out[2];
    float got[6];
    const int64_t sizes[2] = {2, 3};
    bp_scope_begin(w->c);
    in[0] = bp_tensor_from(w->c, BP_F32, 2, sizes, X);
    in[1] = bp_tensor_from(w->c, BP_F32, 2, sizes, Y);
    if (transposed) /* the same values, the other way round in memory */
        in[0] = bp_t(w->c, bp_contiguous(w->c, bp_t(w->c, in[0])));
    assert_int_equal(bp_tensor_stride(in[0], 0), transposed ? 1 : 3);
    world_ok(w, program_run(w->c, p, &(program_io){.inputs = in, .ninputs = 2, .outputs = out, .noutputs = 2}));
    for (int i = 0; i < 2; i++) {
        world_ok(w, bp_tensor_read(w->c, out[i], got, sizeof got));
        for (int k = 0; k < 6; k++)
            assert_true(got[k] == (i ? second : first)[k]);
        bp_tensor_unref(out[i]);
    }
    bp_scope_end(w->c);
}

static void expect_graph(world *w, program *p, bool transposed)
{
    float mul[6], add[6];
    for (int k = 0; k < 6; k++) {
        add[k] = -X[k] + 2 * Y[k];
        mul[k] = add[k] * X[k];
    }
    expect(w, p, mul, add, transposed);
}

static void expect_parts(world *w, program *p)
{
    float neg[6], add[6];
    for (int k = 0; k < 6; k++) {
        add[k] = (X[k] < 0 ? -X[k] : X[k]) + Y[k];
        neg[k] = -2 * add[k];
    }
    expect(w, p, neg, add, false);
}

static char *assignment(const program *p)
{
    buf text = {0};
    program_print_assignment(p, &text);
    return text.s;
}

/* -- the tests ----------------------------------------------------------------------------------------------------- */

static void it_loads_and_says_what_it_is(void **state)
{
    (void)state;
    world *w = open_golden("error", "");
    const char *text, *why;
    buf info = {0};
    world_ok(w, bp_backend_state(w->c, "golden", 1, &text, &why));
    assert_string_equal(text, "ok");
    backend *b;
    world_ok(w, backend_resolve(w->c, "golden", NULL, NULL, &b));
    assert_contains(buf_text(&w->log), "golden init: API ");
    assert_contains(buf_text(&w->log), "devices 1");
    assert_string_equal(backend_version(b), "1.0");
    backend_print_info(b, &info);
    assert_contains(info.s, "functional, node by node");
    assert_contains(info.s, "several compile at once, runs of an object are concurrent, not in a forked child");
    assert_contains(info.s, "option   act = ");
    assert_contains(info.s, "int: how hard it tries");
    assert_int_equal(b->info.min_alignment, 64);
    buf_fini(&info);
    world_close(w);
}

static void it_computes_graphs_that_it_takes_whole(void **state)
{
    (void)state;
    world *w = open_golden("error", "opt.level = 3\n");
    program *p;
    world_ok(w, build(w, "golden", GRAPH, &p));
    assert_contains(buf_text(&w->log), "golden compile: 1:x:2 1:y:1 3:neg:1 3:add:2 3:mul:1 4:output:0"
                                       " in x role 1 rank 2 in y role 2 rank 2");
    assert_contains(buf_text(&w->log), "3 steps");
    for (int i = 0; i < 3; i++)
        expect_graph(w, p, i == 1);
    program_unref(p);
    assert_contains(buf_text(&w->log), "golden destroy");
    world_close(w);
}

static void it_computes_its_part_of_graphs_and_gives_reasons_for_the_rest(void **state)
{
    (void)state;
    static const char *const names[] = {"golden", "chain"};
    for (int i = 0; i < 2; i++) {
        world *w = open_golden("warn", "");
        program *p;
        world_ok(w, build(w, names[i], PARTS, &p));
        char *text = assignment(p);
        assert_contains(text, "abs_1 (aten.abs.default) -> eager -> "); /* in a chain, earlier links' words follow */
        assert_contains(text, "golden: only neg, add and mul are there");
        assert_contains(text, "mul (aten.mul.Tensor) -> eager -> ");
        assert_contains(text, "golden: argument \"other\" is no tensor of the");
        assert_contains(text, "neg (aten.neg.default) -> golden -> ");
        assert_contains(text, "add (aten.add.Tensor) -> golden -> ");
        expect_parts(w, p);
        free(text);
        program_unref(p);
        world_close(w);
    }
}

static void it_says_no_in_every_way(void **state)
{
    (void)state;
    static const struct { const char *act, *words; bp_status code, chained; } rows[] = {
        {"decline", "told to decline", BP_UNIMPLEMENTED, BP_OK},
        {"fail", "told to fail, 42", BP_UNAVAILABLE, BP_OK},
        {"refuse", "told to refuse", BP_INVALID_ARGUMENT, BP_INVALID_ARGUMENT},
    };
    for (int i = 0; i < 3; i++) {
        char key[64];
        snprintf(key, sizeof key, "opt.act = %s\n", rows[i].act);
        world *w = open_golden("error", key);
        program *p;
        assert_int_equal(build(w, "golden", GRAPH, &p), rows[i].code);
        assert_contains(bp_error_text(w->c), rows[i].words);
        world_close(w);
        w = open_golden("warn", key);
        assert_int_equal(build(w, "chain", GRAPH, &p), rows[i].chained);
        if (rows[i].chained == BP_OK) {
            char *text = assignment(p);
            assert_contains(text, rows[i].words);
            free(text);
            expect_graph(w, p, false);
        }
        program_unref(p);
        world_close(w);
    }
}

static void it_hands_graphs_on_and_prints_them(void **state)
{
    (void)state;
    static const char *const acts[] = {"delegate", "forward", "print"};
    for (int i = 0; i < 3; i++) {
        char key[64];
        snprintf(key, sizeof key, "opt.act = %s\n", acts[i]);
        world *w = open_golden("error", key);
        program *p;
        world_ok(w, build(w, "golden", GRAPH, &p));
        expect_graph(w, p, false);
        if (i == 2) {
            assert_contains(buf_text(&w->shown), "call_function  neg     aten.neg.default");
            assert_contains(buf_text(&w->shown), "def forward(");
        }
        program_unref(p);
        world_close(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_loads_and_says_what_it_is),
        cmocka_unit_test(it_computes_graphs_that_it_takes_whole),
        cmocka_unit_test(it_computes_its_part_of_graphs_and_gives_reasons_for_the_rest),
        cmocka_unit_test(it_says_no_in_every_way),
        cmocka_unit_test(it_hands_graphs_on_and_prints_them),
    };
#if defined(__x86_64__)
    return cmocka_run_group_tests_name("golden plugin", tests, NULL, NULL);
#else
    (void)tests;
    puts("1..0 # SKIP the kept files are for x86-64");
    return 0;
#endif
}
