/* Plugins and graphs with symbols: one that bakes a size in is right at every size; one that says it takes symbols, and
 * does not, is told by name. */
#include "tests/lib/world.h"

static const char GRAPH[] = "graph g {\n"
                            "  symbol s0 in [2, inf] hint 4\n"
                            "  %x: f32[s0] = placeholder \"x\" user\n"
                            "  %neg: f32[s0] = aten.neg.default(%x)\n"
                            "  output(%neg)\n"
                            "}\n";

static program *build(world *w, const char *name)
{
    backend *b;
    program *p = NULL;
    world_ok(w, backend_resolve(w->c, name, NULL, NULL, &b));
    bp_graph_module *gm = world_graph(w, GRAPH);
    world_ok(w, program_compile(w->c, gm, b, &p));
    gm_unref(gm);
    return p;
}

static world *open_with(const char *library)
{
    buf ini = {0};
    buf_printf(&ini, "[host]\nprobe_helper = @helper@\n[backend bad]\nlibrary = @bad@/%s\n"
                     "[backend chain]\nlibrary = @plugins@/backplane-compose.so\nopt.chain = bad, eager\n", library);
    world *w = world_open(ini.s);
    buf_fini(&ini);
    return w;
}

static bp_status run(world *w, program *p, int64_t n)
{
    bp_tensor *x = tensor_contiguous_new(w->c, BP_F32, 1, &n), *out = NULL;
    for (int64_t i = 0; i < n; i++)
        ((float *)tensor_ptr(x))[i] = (float)i + 1;
    bp_status st = program_run(w->c, p, &(program_io){.inputs = &x, .ninputs = 1, .outputs = &out, .noutputs = 1});
    if (st == BP_OK) {
        assert_int_equal(tensor_nelem(out), n);
        for (int64_t i = 0; i < n; i++)
            assert_true(((float *)tensor_ptr(out))[i] == -(float)i - 1);
    }
    tensor_unref(x);
    tensor_unref(out);
    return st;
}

static void a_size_that_is_baked_in_is_compiled_again_for_another_one(void **state)
{
    (void)state;
    static const char *const names[] = {"bad", "chain"};
    for (int i = 0; i < 2; i++) {
        world *w = open_with("bakes_size.so");
        program *p = build(w, names[i]);
        for (int64_t n = 2; n < 7; n++) {
            world_ok(w, run(w, p, n));
            world_ok(w, run(w, p, n));
        }
        assert_int_equal(program_fallbacks(p), 0);
        buf shown = {0};
        program_print_assignment(p, &shown);
        assert_contains(buf_text(&shown), "g: s0 == 6\nneg (aten.neg.default) -> bad -> ");
        buf_fini(&shown);
        program_unref(p);
        world_close(w);
    }
}

static void a_size_that_is_the_hint_s_is_told_by_name(void **state)
{
    (void)state;
    world *w = open_with("hint_size.so");
    program *p = build(w, "bad");
    world_ok(w, run(w, p, 9));
    assert_contains(buf_text(&w->log), "a run of backend \"bad\" failed: output 0 is f32[4], expected f32[s0], "
                                       "which is f32[9]");
    assert_int_equal(program_fallbacks(p), 1);
    program_unref(p);
    world_ok(w, bp_set_config(w->c, "fallback", "error"));
    bp_reset(w->c);
    p = build(w, "bad");
    assert_int_equal(run(w, p, 9), BP_INTERNAL);
    assert_contains(bp_error_text(w->c), "expected f32[s0], which is f32[9]");
    bp_error_clear(w->c);
    program_unref(p);
    world_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_size_that_is_baked_in_is_compiled_again_for_another_one),
        cmocka_unit_test(a_size_that_is_the_hint_s_is_told_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
