/* Backends without memory: a config is read, names are looked up, a graph is cut, compiled, run, answered by the next
 * link, printed; every allocation fails once. */
#define BP_WITHOUT_OPERATORS
#include "tests/lib/check.h"
#include "host/backend/config.h"
#include "host/backend/program.h"
#include "host/backend/room.h"
#include "host/tensor/alloc.h"
#include "tests/lib/oom.h"
#include <backplane/backplane.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char TEXT[] = "graph g {\n"
                           "  %x: f32[4] = placeholder \"x\" user\n"
                           "  %k: f32[2] = get_attr \"k\" data \"AACAPwAAAEA=\"\n"
                           "  %abs_1: f32[4] = aten.abs.default(%x)\n"
                           "  %add: f32[4] = aten.add.Tensor(%abs_1, %x)\n"
                           "  %neg: f32[4] = aten.neg.default(%add)\n"
                           "  output(%neg, %k, %x)\n}\n";
static const char INI[] = "[host]\nfallback = silent\nprobe = off\n[backend other]\nlibrary = x.so\nopt.a = 1,\n  2\n"
                          "?opt.b = 3\ntags = vendor\n";

static const char SIZES[] = "graph g {\n"
                            "  symbol s0 in [2, inf] hint 6\n"
                            "  %x: f32[s0] = placeholder \"x\" user\n"
                            "  %k: f32[2] = get_attr \"k\" data \"AACAPwAAAEA=\"\n"
                            "  %abs_1: f32[s0] = aten.abs.default(%x)\n"
                            "  %add: f32[s0] = aten.add.Tensor(%abs_1, %x)\n"
                            "  %neg: f32[s0] = aten.neg.default(%add)\n"
                            "  output(%neg, %k, %x)\n}\n";

static bp_runtime *rt;
static bp_ctx *c;
static bp_tensor *x;
static bp_graph_module *gm, *fixed, *sizes;
static char ini[512];

static bp_status refuse(void *state, bp_run *r)
{
    (void)state;
    return bp_run_fail(r, BP_UNAVAILABLE, "always");
}
static bp_compiled *failing(bp_graph_module *g, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_compiled_new(g, refuse, NULL, NULL);
}
static bp_compiled *chain(bp_graph_module *g, const bp_inputs *inputs)
{
    static const char *const NAMES[] = {"?absent", "failing", "eager"};
    return bp_compile_with(g, inputs, NAMES, 3);
}
/* Reads a size, so that another one is compiled for. */
static bp_compiled *reading(bp_graph_module *g, const bp_inputs *inputs)
{
    bp_view v;
    return bp_input_view(inputs, 0, &v) ? NULL : failing(g, inputs);
}
static int32_t supports(const bp_graph_module *g, uint32_t node, char *why, size_t cap)
{
    (void)why;
    (void)cap;
    return strcmp(bp_node_target(g, node), "aten.add.Tensor") != 0;
}

static int start(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(ini, sizeof ini, "%s/oom.ini", tmp ? tmp : "/tmp");
    FILE *f = fopen(ini, "w");
    if (!f || fputs(INI, f) < 0 || fclose(f) != 0)
        return -1;
    alloc_set_limits(0, SIZE_MAX);
    rt = bp_runtime_new(NULL);
    c = bp_ctx_new(rt);
    x = bp_keep(c, bp_tensor_from(c, BP_F32, 1, (int64_t[]){4}, (const float[]){1, 2, 3, 4}));
    gm = fixed = graph_parse_text(c, "t.bpg", TEXT, sizeof TEXT - 1);
    sizes = graph_parse_text(c, "s.bpg", SIZES, sizeof SIZES - 1);
    return x && gm && bp_set_config(c, "fallback", "silent") == BP_OK ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    gm_unref(fixed);
    gm_unref(sizes);
    tensor_unref(x);
    bp_ctx_destroy(c);
    bp_runtime_unref(rt);
    return 0;
}

/* Out of memory is RESOURCE_EXHAUSTED wherever it strikes, and leaves the context usable. */
static bool went_well(bp_ctx *own)
{
    bool well = bp_error(own) == BP_OK;
    if (!well)
        assert_true(oom_has_failed());
    bp_error_clear(own);
    return well;
}

static bool read_config(void *arg)
{
    (void)arg;
    bp_runtime *own = bp_runtime_new(ini);
    bp_ctx *mine = own ? bp_ctx_new(own) : NULL;
    bool well = mine && config_check(mine) == BP_OK;
    if (well) {
        assert_int_equal(config_int(own, KEY_FALLBACK), FALLBACK_SILENT);
        buf text = {0};
        config_print(own, &text);
        well = !text.failed && bp_register_backend_at(mine, "mine", failing, NULL, "a", "f", 1) == BP_OK &&
               bp_set_config(mine, "recompile_limit", "9") == BP_OK;
        buf_fini(&text);
    }
    if (mine)
        well &= went_well(mine);
    bp_ctx_destroy(mine);
    bp_runtime_unref(own);
    return well;
}

static void a_config_is_read_or_refused_whole(void **state)
{
    (void)state;
    assert_true(read_config(NULL)); /* once, for what a process keeps */
    assert_true(oom_sweep("config", read_config, NULL) > 40);
}

static void ignore(void *arg, const char *name)
{
    (void)arg;
    (void)name;
}

static bool look_up(void *arg)
{
    (void)arg;
    const char *name, *why;
    bp_list_backends(c, "", ignore, NULL);
    bp_error_clear(c);
    assert_int_equal(bp_backend_state(c, "eager", 0, &name, &why), BP_OK);
    assert_null(backend_lookup(c, "eagles"));
    assert_true(bp_error(c) == BP_NOT_FOUND || oom_has_failed());
    bp_error_clear(c);
    return !oom_has_failed();
}

static void names_are_found_or_not_but_nothing_is_lost(void **state)
{
    (void)state;
    oom_sweep("look-up", look_up, NULL);
}

static bool compile_and_run(void *arg)
{
    bp_tensor *out[3] = {NULL, NULL, NULL};
    program *p = NULL;
    buf text = {0};
    backend_reset(rt);
    bool well = program_compile(c, gm, arg, &p) == BP_OK;
    if (well && program_run(c, p, &(program_io){.inputs = &x, .ninputs = 1, .outputs = out, .noutputs = 3}) == BP_OK) {
        assert_true(((const float *)tensor_ptr(out[0]))[3] == -8);
        assert_ptr_equal(out[2], x);
    }
    if (p)
        program_print_assignment(p, &text);
    for (int i = 0; i < 3; i++)
        tensor_unref(out[i]);
    buf_fini(&text);
    program_unref(p);
    backend_reset(rt);
    return went_well(c);
}

static backend *add(const char *name, bp_compile_fn fn)
{
    assert_int_equal(bp_register_backend_at(c, name, fn, NULL, NULL, "f", 1), BP_OK);
    return backend_find(rt, name);
}

static void programs_compile_run_and_fall_back_or_say_why_not(void **state)
{
    (void)state;
    backend *part = add("failing", failing);
    for (int i = 0; i < 64; i++) /* for what a context keeps, and the last objects that were released */
        assert_true(compile_and_run(part));
    assert_true(oom_sweep("whole", compile_and_run, part) > 50);
    part->info.supports = supports;
    part->info.size = sizeof part->info;
    assert_true(oom_sweep("parts", compile_and_run, part) > 100);
    assert_true(oom_sweep("chain", compile_and_run, add("chain", chain)) > 100);
    gm = sizes; /* its hint is another size than x's: a run compiles once more */
    backend *reads = add("reading", reading);
    assert_true(oom_sweep("sizes", compile_and_run, reads) > 100);
    reads->info.supports = supports;
    reads->info.size = sizeof reads->info;
    assert_true(oom_sweep("parts of sizes", compile_and_run, reads) > 200);
    gm = fixed;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_config_is_read_or_refused_whole),
        cmocka_unit_test(names_are_found_or_not_but_nothing_is_lost),
        cmocka_unit_test(programs_compile_run_and_fall_back_or_say_why_not),
    };
    return cmocka_run_group_tests(tests, start, end);
}
