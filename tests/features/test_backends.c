/* F001 to F004, F006, F018, F019, F022, F024, F025, F027: what a backend gets, gives and may do. */
#include "tests/lib/world.h"
#include <backplane/plugin.h>
#include <stdlib.h>

/* -- functions ----------------------------------------------------------------------------------------------------- */

static void cos_sin(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_arg(f, 1, "y");
    bp_return(f, bp_add(c, bp_cos(c, x), bp_sin(c, y)));
}

static void relu_cos(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_relu(c, bp_cos(c, bp_arg(f, 0, "x"))));
}

static int toy_line;
static void toy_example(bp_ctx *c, bp_frame *f)
{
    bp_tensor *a = bp_arg(f, 0, "a"), *b = bp_arg(f, 1, "b");
    bp_tensor *x = bp_div(c, a, bp_add(c, bp_abs(c, a), 1));
    toy_line = __LINE__ + 1;
    if (bp_is_true(c, bp_lt(c, bp_sum(c, b), 0)))
        b = bp_mul(c, b, -1);
    bp_return(f, bp_mul(c, x, b));
}

static void scaled(bp_ctx *c, bp_frame *f)
{
    bp_module *m = bp_user(f);
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_tensor *y = bp_mul(c, x, bp_attr(f, m, "fc.weight"));
    bp_return(f, bp_add(c, y, bp_attr(f, m, "shift")));
}

static void picked(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *i = bp_arg(f, 1, "i");
    bp_return(f, bp_index_select(c, x, 0, i));
}

/* -- calls --------------------------------------------------------------------------------------------------------- */

static bp_tensor *floats(world *w, float a, float b)
{
    return bp_tensor_from(w->c, BP_F32, 1, (int64_t[]){2}, (float[]){a, b});
}

/* Calls fn once on (0, 0): cos(0) + sin(0) for cos_sin. */
static bp_status call_cos_sin(world *w, const bp_compile_options *options, float *got)
{
    bp_callable *g = bp_compile(w->c, cos_sin, options);
    bp_scope_begin(w->c);
    bp_tensor *in[2] = {floats(w, 0, 0), floats(w, 0, 0)}, *y = g ? bp_call1(w->c, g, 2, in) : NULL;
    float out[2] = {-9, -9};
    if (y)
        bp_tensor_read(w->c, y, out, sizeof out);
    *got = out[1];
    bp_scope_end(w->c);
    bp_callable_unref(g);
    return bp_error(w->c);
}

static void expect_answer(world *w, const bp_compile_options *options)
{
    float got;
    world_ok(w, call_cos_sin(w, options, &got));
    assert_true(got == 1);
}

static uint32_t count(const char *text, const char *part)
{
    uint32_t n = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        n++;
    return n;
}

/* -- F001 to F004 -------------------------------------------------------------------------------------------------- */

static char seen[400];
static bp_compiled *list_inputs(bp_graph_module *gm, const bp_inputs *inputs)
{
    seen[0] = '\0';
    for (uint32_t i = 0; i < bp_input_count(inputs); i++) {
        bp_view v;
        assert_int_equal(bp_input_view(inputs, i, &v), BP_OK);
        size_t n = strlen(seen);
        snprintf(seen + n, sizeof seen - n, "%s:%d:%u:%s ", bp_input_name(inputs, i), (int)bp_input_role(inputs, i),
                 (unsigned)v.sizes[0].value, v.data || !(v.flags & BP_VIEW_FAKE) ? "real" : "fake");
    }
    return bp_forward(gm);
}

static void F001_a_backend_gets_fakes_in_order_with_roles(void **state)
{
    (void)state;
    world *w = world_open("");
    bp_scope_begin(w->c);
    bp_module *m = bp_module_new(w->c);
    world_ok(w, bp_module_add_parameter(w->c, m, "fc.weight", floats(w, 2, 3)));
    world_ok(w, bp_module_add_buffer(w->c, m, "shift", floats(w, 10, 20)));
    bp_callable *g = bp_compile(w->c, scaled, (&(bp_compile_options){.backend_fn = list_inputs, .user = m}));
    bp_tensor *x = floats(w, 1, 1), *y = bp_call1(w->c, g, 1, &x);
    world_ok(w, bp_error(w->c));
    float got[2];
    world_ok(w, bp_tensor_read(w->c, y, got, sizeof got));
    assert_true(got[0] == 12 && got[1] == 23);
    char want[100];
    snprintf(want, sizeof want, "x:%d:2:fake fc_weight:%d:2:fake shift:%d:2:fake ", BP_ROLE_USER, BP_ROLE_PARAMETER,
             BP_ROLE_BUFFER);
    assert_string_equal(seen, want);
    bp_scope_end(w->c);
    bp_callable_unref(g);
    bp_module_unref(m);
    world_close(w);
}

static bp_status propagated;
static bp_compiled *propagate_and_read(bp_graph_module *gm, const bp_inputs *inputs)
{
    bp_view v;
    propagated = bp_propagate(gm, inputs);
    uint32_t last = bp_node_at(gm, bp_node_count(gm) - 2);
    assert_int_equal(bp_node_meta(gm, last, 0, &v), BP_OK);
    assert_int_equal(v.sizes[0].value, 2);
    return bp_constant_value(gm, bp_node_at(gm, 0), &v) == BP_OK ? bp_forward(gm) : NULL;
}

static void F002_shapes_propagate_and_reading_a_fake_is_an_error_that_says_so(void **state)
{
    (void)state;
    world *w = world_open("[host]\nfallback = error\n");
    float got;
    propagated = BP_UNKNOWN;
    assert_int_equal(call_cos_sin(w, &(bp_compile_options){.backend_fn = propagate_and_read}, &got),
                     BP_FAILED_PRECONDITION);
    assert_int_equal(propagated, BP_OK);
    assert_contains(bp_error_text(w->c), "reading the data of a fake tensor: \"x\"");
    world_close(w);
}

static bp_status add_up(void *state, bp_run *r)
{
    bp_view x, y, out;
    (void)state;
    bp_run_borrow(r, 0, &x);
    bp_run_borrow(r, 1, &y);
    bp_status st = bp_run_empty(r, 0, &out);
    for (int i = 0; st == BP_OK && i < 2; i++)
        ((float *)out.data)[i] = 1 + ((const float *)x.data)[i] * 100 + ((const float *)y.data)[i] * 10;
    return st;
}
static bp_compiled *adds_up(bp_graph_module *gm, const bp_inputs *inputs)
{
    assert_int_equal(bp_input_count(inputs), 2);
    return bp_compiled_new(gm, add_up, NULL, NULL);
}

static void F003_a_result_takes_placeholders_in_order_and_gives_a_flat_list(void **state)
{
    (void)state;
    world *w = world_open("");
    bp_callable *g = bp_compile(w->c, cos_sin, (&(bp_compile_options){.backend_fn = adds_up}));
    bp_scope_begin(w->c);
    bp_value in[2] = {bp_arg_of_tensor(floats(w, 4, 5)), bp_arg_of_tensor(floats(w, 6, 7))};
    bp_outputs out = {0};
    world_ok(w, bp_call(w->c, g, &(bp_args){in, 2}, &out));
    assert_int_equal(out.n, 1);
    float got[2];
    world_ok(w, bp_tensor_read(w->c, out.at[0], got, sizeof got));
    assert_true(got[0] == 461 && got[1] == 571);
    bp_scope_end(w->c);
    bp_callable_unref(g);
    world_close(w);
}

static void F004_a_function_in_the_options_is_never_looked_up(void **state)
{
    (void)state;
    world *w = world_open("[host]\ndefault = nowhere\n");
    expect_answer(w, &(bp_compile_options){.backend_fn = adds_up});
    expect_answer(w, &(bp_compile_options){.backend_fn = adds_up, .backend = "no-such-backend"});
    bp_callable *g = bp_compile(w->c, cos_sin, (&(bp_compile_options){.backend_fn = adds_up}));
    bp_scope_begin(w->c);
    bp_tensor *in[2] = {floats(w, 4, 5), floats(w, 6, 7)};
    assert_non_null(bp_call1(w->c, g, 2, in));
    bp_scope_end(w->c);
    buf told = {0};
    world_ok(w, bp_print_assignment(w->c, g, (bp_write_fn)buf_add, &told));
    assert_contains(buf_text(&told), "test_backends+0x"); /* a static function is told by its place */
    buf_fini(&told);
    bp_callable_unref(g);
    world_close(w);
}

/* -- F006 ---------------------------------------------------------------------------------------------------------- */

static void add_name(void *arg, const char *name)
{
    buf_printf(arg, "%s ", name);
}

static void F006_eager_and_its_kin_exist_as_debug_backends(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"eager", "eager_noexcept", "eager_debug"};
    world *w = world_open("[host]\nfallback = error\n");
    for (int i = 0; i < 3; i++)
        expect_answer(w, &(bp_compile_options){.backend = NAMES[i]});
    buf names = {0};
    world_ok(w, bp_list_backends(w->c, NULL, add_name, &names));
    assert_string_equal(buf_text(&names), "");
    world_ok(w, bp_list_backends(w->c, "experimental", add_name, &names));
    assert_string_equal(names.s, OWN_DEBUG_BACKENDS " ");
    buf_fini(&names);
    bp_callable *g = bp_compile(w->c, picked, (&(bp_compile_options){.backend = "eager_noexcept"}));
    bp_scope_begin(w->c);
    bp_tensor *in[2] = {floats(w, 1, 2), bp_tensor_from(w->c, BP_I64, 1, (int64_t[]){1}, (int64_t[]){5})};
    assert_null(bp_call1(w->c, g, 2, in));
    assert_int_equal(bp_error(w->c), BP_INTERNAL);
    assert_contains(bp_error_text(w->c), "unexpected failure while running the graph: ");
    bp_scope_end(w->c);
    bp_callable_unref(g);
    world_close(w);
}

/* -- F018, F019 ---------------------------------------------------------------------------------------------------- */

static void F018_a_plugin_composes_other_backends_by_services_alone(void **state)
{
    (void)state;
    world *w = world_open("[host]\nprobe_helper = @helper@\n"
                          "[backend own]\nlibrary = @vendor@/composer.so\n"
                          "[backend hello]\nlibrary = @vendor@/hello.so\n");
    expect_answer(w, &(bp_compile_options){.backend = "own"});
    assert_contains(buf_text(&w->shown), "aten.cos.default"); /* hello printed it */
    world_close(w);
}

static int runs_to_fail;
static bp_status maybe_fail(void *state, bp_run *r)
{
    if (runs_to_fail-- > 0)
        return bp_run_fail(r, BP_UNAVAILABLE, "the device is lost");
    return add_up(state, r);
}
static bp_compiled *flaky(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_compiled_new(gm, maybe_fail, NULL, NULL);
}

static void F019_the_first_link_that_compiles_and_runs_wins(void **state)
{
    (void)state;
    world *w = world_open("[host]\nprobe_helper = @helper@\n"
                          "[backend errors]\nlibrary = @bad@/errors.so\n"
                          "[backend null]\nlibrary = @bad@/silent_null.so\n"
                          "[backend chain]\nlibrary = @plugins@/backplane-compose.so\n"
                          "opt.chain = errors, null, ?absent, flaky, eager\n");
    world_ok(w, bp_register_backend(w->c, flaky));
    bp_callable *g = bp_compile(w->c, cos_sin, (&(bp_compile_options){.backend = "chain"}));
    bp_scope_begin(w->c);
    buf who = {0};
    for (int i = 0; i < 3; i++) {
        runs_to_fail = i == 1;
        bp_tensor *in[2] = {floats(w, 0, 1), floats(w, 0, 0)}, *y = bp_call1(w->c, g, 2, in);
        world_ok(w, bp_error(w->c));
        float got[2];
        world_ok(w, bp_tensor_read(w->c, y, got, sizeof got));
        assert_true(got[0] == 1);
        assert_int_equal(got[1] > 100, i == 0); /* flaky's arithmetic, then eager's */
        buf_clear(&who);
        world_ok(w, bp_print_assignment(w->c, g, (bp_write_fn)buf_add, &who));
        assert_contains(who.s, i == 0 ? "add (aten.add.Tensor) -> flaky -> " : "add (aten.add.Tensor) -> eager -> ");
        assert_contains(who.s, "errors: the code cache of 16 MB is full");
        assert_contains(who.s, "null: returned NULL and gave no reason");
    }
    assert_contains(who.s, "flaky: a run of backend \"flaky\" failed: the device is lost");
    assert_int_equal(count(buf_text(&w->log), "warning: a run of backend \"flaky\" failed"), 1);
    buf_fini(&who);
    bp_scope_end(w->c);
    bp_callable_unref(g);
    world_close(w);
}

/* -- F022 ---------------------------------------------------------------------------------------------------------- */

static bp_compiled *show_options(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    const char *level = bp_option(gm, "level"), *mode = bp_option(gm, "mode");
    snprintf(seen, sizeof seen, "level=%s mode=%s", level ? level : "-", mode ? mode : "-");
    return bp_forward(gm);
}

static void F022_options_and_mode_reach_the_backend(void **state)
{
    (void)state;
    static const char *const LEVEL[] = {"level", "3", NULL};
    world *w = world_open("[host]\nprobe_helper = @helper@\n"
                          "[backend chain]\nlibrary = @plugins@/backplane-compose.so\nopt.chain = eager\n");
    float got;
    expect_answer(w, &(bp_compile_options){.backend_fn = show_options, .options = LEVEL});
    assert_string_equal(seen, "level=3 mode=-");
    expect_answer(w, &(bp_compile_options){.backend_fn = show_options, .mode = "reduce-overhead"});
    assert_string_equal(seen, "level=- mode=reduce-overhead");
    expect_answer(w, &(bp_compile_options){.backend = "eager", .options = LEVEL});
    assert_contains(buf_text(&w->log), "backend \"eager\" ignores: unknown option \"level\"");
    assert_int_equal(call_cos_sin(w, &(bp_compile_options){.backend = "chain", .options = LEVEL}, &got),
                     BP_INVALID_ARGUMENT);
    assert_contains(bp_error_text(w->c), "backend \"chain\": unknown option \"level\"");
    bp_error_clear(w->c);
    assert_int_equal(call_cos_sin(w, &(bp_compile_options){.backend = "eager", .mode = "fastest"}, &got),
                     BP_INVALID_ARGUMENT);
    assert_contains(bp_error_text(w->c), "\"fastest\"");
    world_close(w);
}

/* -- F024, F025 ---------------------------------------------------------------------------------------------------- */

#define PRINTING "[host]\nprobe_helper = @helper@\n[backend debug-print]\nlibrary = @plugins@/backplane-debug.so\n"

/* The table that torch.fx prints, kept as a file, with `from` replaced. */
static char *pinned(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/unit/graph/expected/%s", getenv("top_srcdir"), name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    char *text = calloc(1, 8192);
    assert_non_null(text);
    assert_true(fread(text, 1, 8191, f) > 0);
    fclose(f);
    return text;
}

static void expect_shown(const world *w, const char *head, const char *file)
{
    char *table = pinned(file);
    buf want = {0};
    buf_printf(&want, "%s\n%s", head, table);
    assert_contains(buf_text(&w->shown), want.s);
    buf_fini(&want);
    free(table);
}

static void F024_debug_print_shows_table_and_code_and_computes_the_same(void **state)
{
    (void)state;
    world *w = world_open(PRINTING);
    expect_answer(w, &(bp_compile_options){.backend = "debug-print"});
    expect_shown(w, "__compiled_fn_0", "cos_sin.table");
    assert_contains(buf_text(&w->shown), "torch.ops.aten.cos.default(");
    assert_int_equal(count(buf_text(&w->shown), "opcode "), 1);
    world_close(w);
}

static void F025_known_programs_give_their_pinned_tables(void **state)
{
    (void)state;
    world *w = world_open(PRINTING);
    bp_callable *g = bp_compile(w->c, relu_cos, (&(bp_compile_options){.backend = "debug-print"}));
    bp_scope_begin(w->c);
    bp_tensor *x = floats(w, 0, 3), *y = bp_call1(w->c, g, 1, &x);
    float got[2];
    world_ok(w, bp_tensor_read(w->c, y, got, sizeof got));
    assert_true(got[0] == 1 && got[1] == 0);
    expect_shown(w, "__compiled_fn_0", "relu_cos.table");
    bp_callable_unref(g);
    world_clear(w);
    g = bp_compile(w->c, toy_example, (&(bp_compile_options){.backend = "debug-print"}));
    for (int i = 0; i < 100; i++) {
        bp_tensor *in[2] = {floats(w, 1, -3), i % 2 ? floats(w, 2, 4) : floats(w, -2, -4)};
        y = bp_call1(w->c, g, 2, in);
        world_ok(w, bp_tensor_read(w->c, y, got, sizeof got));
        assert_true(got[0] == 1 && got[1] == -3); /* x * |b|, x = (1/2, -3/4) */
    }
    bp_scope_end(w->c);
    char name[64];
    assert_int_equal(count(buf_text(&w->shown), "opcode "), 3);
    expect_shown(w, "__compiled_fn_0", "toy_0.table");
    snprintf(name, sizeof name, "__resume_at_%d_1", toy_line);
    expect_shown(w, name, "toy_1.table");
    snprintf(name, sizeof name, "__resume_at_%d_2", toy_line);
    expect_shown(w, name, "toy_2.table");
    bp_callable_stats s = {.size = sizeof s};
    world_ok(w, bp_stats(w->c, g, &s));
    assert_int_equal(s.graphs, 3);
    assert_int_equal(s.break_sites, 1);
    assert_int_equal(s.outcomes, 2);
    bp_callable_unref(g);
    world_close(w);
}

/* -- F027 ---------------------------------------------------------------------------------------------------------- */

static void F027_suppress_errors_runs_eagerly_what_does_not_compile(void **state)
{
    (void)state;
    world *w = world_open("[host]\nfallback = error\nprobe_helper = @helper@\n"
                          "[backend bad]\nlibrary = @bad@/reads_fake.so\n");
    float got;
    assert_int_equal(call_cos_sin(w, &(bp_compile_options){.backend = "bad"}, &got), BP_FAILED_PRECONDITION);
    bp_error_clear(w->c);
    world_ok(w, bp_set_config(w->c, "suppress_errors", "yes"));
    expect_answer(w, &(bp_compile_options){.backend = "bad"});
    assert_int_equal(count(buf_text(&w->log), "suppress_errors is set"), 1);
    world_close(w);
}

static void F027_error_on_recompile_makes_a_second_compile_an_error(void **state)
{
    (void)state;
    world *w = world_open("[host]\nerror_on_recompile = yes\n");
    bp_callable *g = bp_compile(w->c, relu_cos, (&(bp_compile_options){.backend = "eager"}));
    bp_scope_begin(w->c);
    bp_tensor *x = floats(w, 0, 0), *y = bp_tensor_from(w->c, BP_F64, 1, (int64_t[]){2}, NULL);
    assert_non_null(bp_call1(w->c, g, 1, &x));
    assert_non_null(bp_call1(w->c, g, 1, &x));
    assert_null(bp_call1(w->c, g, 1, &y));
    assert_contains(bp_error_text(w->c), "error_on_recompile");
    assert_contains(bp_error_text(w->c), "dtype");
    bp_scope_end(w->c);
    bp_callable_unref(g);
    world_close(w);
}

static void F027_verify_correctness_finds_wrong_numbers(void **state)
{
    (void)state;
    world *w = world_open("[host]\nverify_correctness = yes\n");
    float got;
    expect_answer(w, &(bp_compile_options){.backend_fn = adds_up}); /* right on zeros */
    bp_callable *g = bp_compile(w->c, cos_sin, (&(bp_compile_options){.backend_fn = adds_up}));
    bp_scope_begin(w->c);
    bp_tensor *in[2] = {floats(w, 2, 2), floats(w, 1, 1)};
    bp_reset(w->c);
    assert_null(bp_call1(w->c, g, 2, in));
    assert_int_equal(bp_error(w->c), BP_INTERNAL);
    assert_contains(bp_error_text(w->c), "computed wrong values: output 0 is 211 at element 0, eager execution gives ");
    bp_scope_end(w->c);
    bp_callable_unref(g);
    bp_error_clear(w->c);
    (void)got;
    world_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(F001_a_backend_gets_fakes_in_order_with_roles),
        cmocka_unit_test(F002_shapes_propagate_and_reading_a_fake_is_an_error_that_says_so),
        cmocka_unit_test(F003_a_result_takes_placeholders_in_order_and_gives_a_flat_list),
        cmocka_unit_test(F004_a_function_in_the_options_is_never_looked_up),
        cmocka_unit_test(F006_eager_and_its_kin_exist_as_debug_backends),
        cmocka_unit_test(F018_a_plugin_composes_other_backends_by_services_alone),
        cmocka_unit_test(F019_the_first_link_that_compiles_and_runs_wins),
        cmocka_unit_test(F022_options_and_mode_reach_the_backend),
        cmocka_unit_test(F024_debug_print_shows_table_and_code_and_computes_the_same),
        cmocka_unit_test(F025_known_programs_give_their_pinned_tables),
        cmocka_unit_test(F027_suppress_errors_runs_eagerly_what_does_not_compile),
        cmocka_unit_test(F027_error_on_recompile_makes_a_second_compile_an_error),
        cmocka_unit_test(F027_verify_correctness_finds_wrong_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
