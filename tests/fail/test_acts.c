/* Plugins that break a rule while they run: what is told, by whose name, and that no wrong number comes of it. */
#include "host/backend/room.h"
#include "tests/lib/world.h"

static const char GRAPH[] = "graph g {\n"
                            "  %x: f32[3] = placeholder \"x\" user\n"
                            "  %k: f32[2] = get_attr \"k\" data \"AACAPwAAAEA=\"\n"
                            "  %abs_1: f32[3] = aten.abs.default(%x)\n"
                            "  %neg: f32[2] = aten.neg.default(%k)\n"
                            "  output(%abs_1, %neg)\n"
                            "}\n";
static const float X[3] = {-1, 2, 3};

static world *open_act(const char *act, const char *keys)
{
    buf ini = {0};
    buf_printf(&ini, "[host]\nprobe_helper = @helper@\n[backend bad]\nlibrary = @bad@/acts.so\nopt.act = %s\n%s"
                     "[backend chain]\nlibrary = @plugins@/backplane-compose.so\nopt.chain = bad, eager\n", act, keys);
    world *w = world_open(ini.s);
    buf_fini(&ini);
    return w;
}

static bp_status build(world *w, const char *name, program **p)
{
    backend *b;
    *p = NULL;
    world_ok(w, backend_resolve(w->c, name, NULL, NULL, &b));
    bp_graph_module *gm = world_graph(w, GRAPH);
    bp_status st = program_compile(w->c, gm, b, p);
    gm_unref(gm);
    return st;
}

static bp_status run(world *w, program *p)
{
    float got[3] = {9, 9, 9};
    bp_tensor *x = bp_tensor_from(w->c, BP_F32, 1, (int64_t[]){3}, X), *out[2];
    bp_status st = program_run(w->c, p, &(program_io){.inputs = &x, .ninputs = 1, .outputs = out, .noutputs = 2});
    if (st == BP_OK) {
        bp_tensor_read(w->c, out[0], got, sizeof got);
        assert_true(got[0] == 1 && got[1] == 2 && got[2] == 3);
        bp_tensor_read(w->c, out[1], got, 2 * sizeof *got);
        assert_true(got[0] == -1 && got[1] == -2);
    }
    bp_tensor_unref(out[0]);
    bp_tensor_unref(out[1]);
    return st;
}

static void a_run_that_wrote_to_its_input_and_failed_is_answered_by_nobody(void **state)
{
    (void)state;
    static const char *const names[] = {"bad", "chain"};
    for (int i = 0; i < 2; i++) {
        world *w = open_act("spoil and fail", "");
        program *p;
        world_ok(w, build(w, names[i], &p));
        assert_int_equal(run(w, p), BP_DATA_LOSS);
        assert_contains(bp_error_text(w->c), "a run of backend \"bad\" wrote to input 0 of graph \"g\"");
        assert_contains(bp_error_text(w->c), "told to fail");
        bp_error_clear(w->c);
        world_ok(w, run(w, p)); /* it is not asked again */
        program_unref(p);
        world_close(w);
    }
}

static void a_later_run_that_does_so_is_noticed_too(void **state)
{
    (void)state;
    world *w = open_act("fail later", "");
    program *p;
    world_ok(w, build(w, "bad", &p));
    world_ok(w, run(w, p));
    assert_int_equal(run(w, p), BP_DATA_LOSS);
    program_unref(p);
    world_close(w);
}

static void a_run_that_wrote_to_its_input_and_succeeded_is_told(void **state)
{
    (void)state;
    world *w = open_act("spoil", "");
    program *p;
    world_ok(w, build(w, "bad", &p));
    bp_tensor *x = bp_tensor_from(w->c, BP_F32, 1, (int64_t[]){3}, X), *out[2];
    world_ok(w, program_run(w->c, p, &(program_io){.inputs = &x, .ninputs = 1, .outputs = out, .noutputs = 2}));
    assert_contains(buf_text(&w->log), "a run of backend \"bad\" wrote to input 0 of graph \"g\"");
    bp_tensor_unref(out[0]);
    bp_tensor_unref(out[1]);
    program_unref(p);
    world_ok(w, bp_set_config(w->c, "verify_correctness", "yes"));
    world_ok(w, build(w, "bad", &p));
    assert_int_equal(run(w, p), BP_DATA_LOSS);
    program_unref(p);
    world_close(w);
}

static void a_compile_that_wrote_to_a_constant_ends_the_chain(void **state)
{
    (void)state;
    static const char *const names[] = {"bad", "chain"};
    for (int i = 0; i < 2; i++) {
        world *w = open_act("constant", "");
        program *p;
        assert_int_equal(build(w, names[i], &p), BP_DATA_LOSS);
        assert_contains(bp_error_text(w->c), "wrote to a constant of the graph");
        assert_contains(bp_error_text(w->c), "\"bad\"");
        world_close(w);
    }
}

static void what_a_plugin_says_cannot_move_a_cursor_or_forge_a_line(void **state)
{
    (void)state;
    world *w = open_act("escape", "");
    program *p;
    backend *b;
    world_ok(w, build(w, "bad", &p));
    const char *log = buf_text(&w->log);
    assert_contains(log, "backend \"bad\": first\n    backplane: error: \\x1b[2J\\xff\\xc2\\x9b caf\xc3\xa9\n");
    assert_contains(log, "clears \\x1b[2J the\\ttab\\nand the line");
    assert_null(strchr(log, '\033'));
    world_ok(w, backend_resolve(w->c, "bad", NULL, NULL, &b));
    assert_string_equal(backend_version(b), "1\\x1b[0m");
    program_unref(p);
    world_close(w);
}

static void long_text_is_cut_and_says_so(void **state)
{
    (void)state;
    world *w = open_act("long", "");
    program *p;
    world_ok(w, build(w, "bad", &p));
    assert_contains(buf_text(&w->log), "xxx [cut, of 70000 bytes]");
    assert_contains(buf_text(&w->log), "xxx [cut, of 3000 bytes]");
    assert_true(w->log.n > 60000 && w->log.n < 80000);
    program_unref(p);
    world_close(w);
}

static void objects_that_are_released_too_often_are_told_by_name(void **state)
{
    (void)state;
    static const struct { const char *act, *words; } rows[] = {
        {"release twice", "backend \"bad\" released a compiled object more often than it had references"},
        {"graph", "backend \"bad\" released a graph module more often than it had references"},
        {"released", "returned a compiled object that it had released"},
        {"run itself", "runs of backend \"bad\" are nested 32 deep"},
    };
    for (int i = 0; i < 4; i++) {
        world *w = open_act(rows[i].act, "");
        program *p;
        world_ok(w, build(w, "bad", &p));
        world_ok(w, run(w, p));
        world_ok(w, run(w, p));
        program_unref(p);
        assert_contains(buf_text(&w->log), rows[i].words);
        world_close(w);
    }
}

static void supports_says_yes_or_no(void **state)
{
    (void)state;
    static const char *const answers[] = {"2", "-1"};
    for (int i = 0; i < 2; i++) {
        char keys[64], words[120];
        snprintf(keys, sizeof keys, "opt.supports = %s\n", answers[i]);
        snprintf(words, sizeof words, "supports returned %s, expected 1 (it takes the node) or 0", answers[i]);
        world *w = open_act("none", keys);
        program *p;
        buf report = {0};
        world_ok(w, build(w, "bad", &p));
        world_ok(w, run(w, p));
        program_print_assignment(p, &report);
        assert_contains(report.s, words);
        assert_contains(buf_text(&w->log), words);
        buf_fini(&report);
        program_unref(p);
        world_close(w);
    }
}

static void an_unknown_default_names_who_set_it(void **state)
{
    (void)state;
    backend *b;
    world *w = world_open("[host]\nfallback = warn\ndefault = nowhere\n");
    assert_int_equal(backend_resolve(w->c, NULL, NULL, NULL, &b), BP_NOT_FOUND);
    assert_contains(bp_error_text(w->c), "backplane.ini:3");
    bp_error_clear(w->c);
    assert_int_equal(backend_resolve(w->c, "nowhere", NULL, NULL, &b), BP_NOT_FOUND);
    assert_null(strstr(bp_error_text(w->c), "backplane.ini:3"));
    world_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_that_wrote_to_its_input_and_failed_is_answered_by_nobody),
        cmocka_unit_test(a_later_run_that_does_so_is_noticed_too),
        cmocka_unit_test(a_run_that_wrote_to_its_input_and_succeeded_is_told),
        cmocka_unit_test(a_compile_that_wrote_to_a_constant_ends_the_chain),
        cmocka_unit_test(what_a_plugin_says_cannot_move_a_cursor_or_forge_a_line),
        cmocka_unit_test(long_text_is_cut_and_says_so),
        cmocka_unit_test(objects_that_are_released_too_often_are_told_by_name),
        cmocka_unit_test(supports_says_yes_or_no),
        cmocka_unit_test(an_unknown_default_names_who_set_it),
    };
    return cmocka_run_group_tests_name("acts", tests, NULL, NULL);
}
