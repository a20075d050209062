/* F005, F008 to F017: names, look-up, lists, files, init hooks. */
#include "tests/lib/world.h"
#include <backplane/plugin.h>
#include <stdlib.h>

static void negated(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_neg(c, bp_arg(f, 0, "x")));
}

static bp_compiled *mine(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_forward(gm);
}

static uint32_t inits;
static bp_status count_init(const bp_host *host)
{
    (void)host;
    inits++;
    return BP_OK;
}
static bp_status fail_init(const bp_host *host)
{
    return bp_init_fail(host, BP_UNAUTHENTICATED, "the hook says no");
}

/* Compiles and calls; the context keeps the error. */
static bp_status use(world *w, const bp_compile_options *options)
{
    bp_callable *g = bp_compile(w->c, negated, options);
    bp_scope_begin(w->c);
    bp_tensor *x = bp_tensor_from(w->c, BP_F32, 1, (int64_t[]){2}, (float[]){1, -2});
    bp_tensor *y = g ? bp_call1(w->c, g, 1, &x) : NULL;
    float got[2] = {0};
    if (y && bp_tensor_read(w->c, y, got, sizeof got) == BP_OK)
        assert_true(got[0] == -1 && got[1] == 2);
    bp_scope_end(w->c);
    bp_callable_unref(g);
    return bp_error(w->c);
}

static bp_status use_name(world *w, const char *name)
{
    return use(w, &(bp_compile_options){.backend = name});
}

static void add_name(void *arg, const char *name)
{
    buf_printf(arg, "%s ", name);
}

static void expect_list(world *w, const char *exclude, const char *want)
{
    buf names = {0};
    world_ok(w, bp_list_backends(w->c, exclude, add_name, &names));
    assert_string_equal(buf_text(&names), want);
    buf_fini(&names);
}

static uint32_t count(const world *w, const char *part)
{
    uint32_t n = 0;
    for (const char *at = buf_text(&w->log); (at = strstr(at, part)); at++)
        n++;
    return n;
}

/* -- F005 ---------------------------------------------------------------------------------------------------------- */

static void F005_a_backend_is_given_by_name_by_config_or_by_the_program(void **state)
{
    (void)state;
    world *w = world_open("[host]\ndefault = from-config\nprobe_helper = @helper@\n"
                          "[backend from-config]\nlibrary = @feature@/named_otherwise.so\ncompile = acme_compile\n");
    assert_string_equal(bp_default_backend(w->c), "from-config");
    world_ok(w, use(w, NULL));
    assert_int_equal(count(w, "acme_compile ran"), 1);
    world_ok(w, use_name(w, "eager"));
    assert_int_equal(count(w, "acme_compile ran"), 1);
    world_ok(w, bp_set_default_backend(w->c, "eager"));
    assert_string_equal(bp_default_backend(w->c), "eager");
    world_ok(w, bp_set_default_backend(w->c, NULL));
    assert_string_equal(bp_default_backend(w->c), "from-config");
    assert_int_equal(bp_set_default_backend(w->c, "from-confit"), BP_NOT_FOUND);
    assert_contains(bp_error_text(w->c), "\"from-config\"?");
    bp_error_clear(w->c);
    setenv("BACKPLANE_BACKEND", "eager_debug", 1);
    assert_string_equal(bp_default_backend(w->c), "eager_debug");
    world_ok(w, bp_set_config(w->c, "default", "eager"));
    assert_string_equal(bp_default_backend(w->c), "eager");
    unsetenv("BACKPLANE_BACKEND");
    world_close(w);
}

/* -- F008, F009 ---------------------------------------------------------------------------------------------------- */

static void F008_backends_are_registered_from_C_with_names_tags_and_presets(void **state)
{
    (void)state;
    world *w = world_open("");
    world_ok(w, bp_register_backend(w->c, mine));
    world_ok(w, bp_register_backend_as(w->c, "other_name", mine, NULL, "vendor, fast"));
    expect_list(w, NULL, "mine other_name ");
    expect_list(w, "fast", OWN_DEBUG_BACKENDS " mine ");
    world_ok(w, use_name(w, "mine"));
    world_ok(w, use_name(w, "other_name"));
    world_close(w);
    w = world_open("");
    world_ok(w, bp_register_debug_backend(w->c, mine));
    world_ok(w, bp_register_backend_as(w->c, "trial", mine, NULL, "experimental"));
    expect_list(w, NULL, "");
    expect_list(w, "experimental", OWN_DEBUG_BACKENDS " mine ");
    expect_list(w, "debug", "trial ");
    world_close(w);
    w = world_open("");
    world_ok(w, bp_register_experimental_backend(w->c, mine));
    expect_list(w, "debug", "mine ");
    assert_int_equal(bp_register_backend_as(w->c, "no good", mine, NULL, NULL), BP_INVALID_ARGUMENT);
    bp_error_clear(w->c);
    assert_int_equal(bp_register_backend_as(w->c, "nobody", NULL, NULL, NULL), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_text(w->c), "the compile function of backend \"nobody\" is NULL");
    world_close(w);
}

static void F009_a_name_that_is_taken_is_refused_with_both_origins(void **state)
{
    (void)state;
    world *w = world_open("[backend configured]\nlibrary = x.so\n");
    world_ok(w, bp_register_backend_at(w->c, "mine", mine, NULL, NULL, "first.c", 11));
    assert_int_equal(bp_register_backend_at(w->c, "mine", mine, NULL, NULL, "second.c", 22), BP_ALREADY_EXISTS);
    assert_contains(bp_error_text(w->c), "\"mine\"");
    assert_contains(bp_error_text(w->c), "C at first.c:11");
    assert_contains(bp_error_text(w->c), "C at second.c:22");
    bp_error_clear(w->c);
    assert_int_equal(bp_register_backend_at(w->c, "configured", mine, NULL, NULL, "third.c", 33), BP_ALREADY_EXISTS);
    assert_contains(bp_error_text(w->c), "backplane.ini:1");
    assert_contains(bp_error_text(w->c), "third.c:33");
    bp_error_clear(w->c);
    assert_int_equal(bp_register_backend_at(w->c, "eager", mine, NULL, NULL, "third.c", 33), BP_ALREADY_EXISTS);
    assert_contains(bp_error_text(w->c), "the host itself");
    bp_error_clear(w->c);
    world_file(w, "backends.d/drop.ini", "[backend configured]\nlibrary = y.so\n");
    world_again(w, NULL);
    assert_int_equal(use_name(w, "configured"), BP_ALREADY_EXISTS);
    assert_contains(bp_error_text(w->c), "drop.ini:1");
    assert_contains(bp_error_text(w->c), "backplane.ini:1");
    world_close(w);
}

/* -- F010 to F013 -------------------------------------------------------------------------------------------------- */

static void F010_look_up_tries_registered_ones_then_the_config_then_suggests(void **state)
{
    (void)state;
    world *w = world_open("[host]\nprobe_helper = @helper@\n"
                          "[backend lazy]\nlibrary = @feature@/named_otherwise.so\n"
                          "compile = acme_compile\ninit = acme_set_up\n");
    const char *name, *why;
    world_ok(w, bp_register_backend(w->c, mine));
    world_ok(w, use_name(w, "mine"));
    world_ok(w, bp_backend_state(w->c, "lazy", 0, &name, &why));
    assert_string_equal(name, "not-loaded");
    world_ok(w, use_name(w, "lazy"));
    world_ok(w, bp_backend_state(w->c, "lazy", 0, &name, &why));
    assert_string_equal(name, "ok");
    assert_int_equal(use_name(w, "lasy"), BP_NOT_FOUND);
    assert_contains(bp_error_text(w->c), "did you mean \"lazy\"?");
    world_close(w);
}

static void F011_a_section_cannot_shadow_a_registered_name(void **state)
{
    (void)state;
    world *w = world_open("[host]\nprobe_helper = @helper@\n");
    world_ok(w, bp_register_backend(w->c, mine));
    world_file(w, "backends.d/late.ini", "[backend mine]\nlibrary = @bad@/errors.so\n");
    world_ok(w, bp_set_config(w->c, "fallback", "error"));
    world_ok(w, use_name(w, "mine")); /* the file's plugin would have failed */
    world_file(w, "backends.d/late.ini", "[backend eager]\nlibrary = @bad@/errors.so\n");
    world_again(w, NULL);
    assert_int_equal(use_name(w, "eager"), BP_ALREADY_EXISTS);
    assert_contains(bp_error_text(w->c), "late.ini:1: the backend \"eager\" exists already: it comes from the host");
    world_close(w);
}

static void F012_an_unknown_name_suggests_two_at_most_and_never_debug_ones(void **state)
{
    (void)state;
    world *w = world_open("[backend fusion-a]\nlibrary = a.so\n[backend fusion-b]\nlibrary = b.so\n"
                          "[backend fusion-c]\nlibrary = c.so\n[backend fusion-d]\nlibrary = d.so\ntags = debug\n");
    assert_int_equal(use_name(w, "fusion-x"), BP_NOT_FOUND);
    const char *at = strstr(bp_error_text(w->c), "did you mean");
    assert_non_null(at);
    assert_contains(bp_error_message(w->c), "invalid backend \"fusion-x\"");
    uint32_t names = 0;
    for (at = bp_error_message(w->c); (at = strstr(at, "\"fusion-")); at++)
        names++;
    assert_int_equal(names, 3); /* itself and two */
    assert_contains(bp_error_text(w->c), "bp_list_backends");
    assert_contains(bp_error_text(w->c), "backplane backends");
    bp_error_clear(w->c);
    assert_int_equal(use_name(w, "eagre"), BP_NOT_FOUND);
    assert_null(strstr(bp_error_text(w->c), "did you mean"));
    bp_error_clear(w->c);
    assert_int_equal(use_name(w, "wholly-else"), BP_NOT_FOUND);
    assert_null(strstr(bp_error_text(w->c), "did you mean"));
    world_close(w);
}

static void F013_lists_are_sorted_filtered_and_load_nothing(void **state)
{
    (void)state;
    world *w = world_open("[host]\nprobe = off\n"
                          "[backend zeta]\nlibrary = @plugins@/backplane-debug.so\n"
                          "[backend alpha]\nlibrary = @bad@/constructor_exit.so\n"
                          "[backend trial]\nlibrary = t.so\ntags = experimental\n");
    const char *name, *why;
    expect_list(w, NULL, "alpha zeta "); /* loading alpha here would end this process */
    expect_list(w, "", "alpha " OWN_DEBUG_BACKENDS " trial zeta ");
    expect_list(w, "debug", "alpha trial zeta ");
    world_ok(w, bp_backend_state(w->c, "zeta", 0, &name, &why));
    assert_string_equal(name, "not-loaded");
    world_ok(w, bp_backend_state(w->c, "zeta", 1, &name, &why));
    assert_string_equal(name, "ok");
    world_ok(w, bp_backend_state(w->c, "trial", 1, &name, &why));
    assert_string_equal(name, "missing");
    assert_contains(why, "t.so: no such file");
    assert_int_equal(bp_backend_state(w->c, "zetta", 0, &name, &why), BP_NOT_FOUND);
    world_close(w);
}

/* -- F014 ---------------------------------------------------------------------------------------------------------- */

static void F014_a_library_comes_from_a_section_or_a_drop_in_with_its_own_symbols(void **state)
{
    (void)state;
    world *w = world_open("[host]\nprobe_helper = @helper@\n"
                          "[backend acme]\nlibrary = @feature@/named_otherwise.so\n"
                          "compile = acme_compile\ninit = acme_set_up\ntags = vendor, debug\n");
    world_file(w, "backends.d/hello.ini", "[backend hello]\nlibrary = @vendor@/hello.so\n");
    world_again(w, NULL);
    world_ok(w, use_name(w, "acme"));
    assert_int_equal(count(w, "acme_set_up ran"), 1);
    assert_int_equal(count(w, "acme_compile ran"), 1);
    expect_list(w, NULL, "hello ");
    world_ok(w, use_name(w, "hello"));
    assert_contains(buf_text(&w->shown), "call_function  neg     aten.neg.default  (x,)       {}");
    expect_list(w, NULL, "hello "); /* tags stay the config's after loading */
    world_close(w);
}

/* -- F015, F016 ---------------------------------------------------------------------------------------------------- */

static void F015_init_fires_at_every_resolution_before_any_call(void **state)
{
    (void)state;
    world *w = world_open("[host]\nprobe_helper = @helper@\n"
                          "[backend once]\nlibrary = @feature@/once.so\n"
                          "[backend chain]\nlibrary = @plugins@/backplane-compose.so\nopt.chain = once, eager\n");
    inits = 0;
    world_ok(w, bp_register_backend_as(w->c, "registered", mine, count_init, NULL));
    bp_callable *g[3];
    g[0] = bp_compile(w->c, negated, (&(bp_compile_options){.backend = "registered"}));
    assert_int_equal(inits, 1);
    g[1] = bp_compile(w->c, negated, (&(bp_compile_options){.backend = "registered", .fullgraph = 1}));
    assert_int_equal(inits, 2);
    g[2] = bp_compile(w->c, negated, (&(bp_compile_options){.backend_fn = mine, .backend_init = count_init}));
    assert_int_equal(inits, 3);
    for (int i = 0; i < 3; i++)
        bp_callable_unref(g[i]);
    world_ok(w, bp_error(w->c));
    g[0] = bp_compile(w->c, negated, (&(bp_compile_options){.backend = "once"}));
    assert_int_equal(count(w, "init ran"), 1);
    bp_callable_unref(g[0]);
    world_ok(w, use_name(w, "once"));
    assert_int_equal(count(w, "init ran"), 2);
    world_ok(w, use_name(w, "chain"));
    assert_int_equal(count(w, "init ran"), 3);
    assert_int_equal(count(w, "the work was done"), 1);
    world_close(w);
}

static void F016_a_failed_init_is_the_error_directly_and_moves_a_chain_on(void **state)
{
    (void)state;
    world *w = world_open("[host]\nprobe_helper = @helper@\n"
                          "[backend chain]\nlibrary = @plugins@/backplane-compose.so\nopt.chain = shut, eager\n");
    world_ok(w, bp_register_backend_as(w->c, "shut", mine, fail_init, NULL));
    bp_callable *g = bp_compile(w->c, negated, (&(bp_compile_options){.backend = "shut"}));
    assert_null(g);
    assert_int_equal(bp_error(w->c), BP_UNAUTHENTICATED);
    assert_contains(bp_error_text(w->c), "the hook says no");
    assert_contains(bp_error_text(w->c), "\"shut\"");
    bp_error_clear(w->c);
    g = bp_compile(w->c, negated, (&(bp_compile_options){.backend_fn = mine, .backend_init = fail_init}));
    assert_null(g);
    assert_int_equal(bp_error(w->c), BP_UNAUTHENTICATED);
    bp_error_clear(w->c);
    world_ok(w, use_name(w, "chain"));
    assert_int_equal(count(w, "a chain passes over \"shut\": init-failed: the hook says no"), 1);
    world_close(w);
}

/* -- F017 ---------------------------------------------------------------------------------------------------------- */

static char order[100];
static bp_status note_init(const bp_host *host)
{
    (void)host;
    strcat(order, "init ");
    return BP_OK;
}
static bp_compiled *note_compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    strcat(order, "compile ");
    return bp_forward(gm);
}

static void F017_look_up_comes_first_then_init_then_the_first_call_compiles(void **state)
{
    (void)state;
    world *w = world_open("");
    world_ok(w, bp_register_backend_as(w->c, "noted", note_compile, note_init, NULL));
    order[0] = '\0';
    bp_callable *g = bp_compile(w->c, negated, (&(bp_compile_options){.backend = "noticed"}));
    assert_null(g);
    assert_int_equal(bp_error(w->c), BP_NOT_FOUND);
    assert_string_equal(order, "");
    bp_error_clear(w->c);
    g = bp_compile(w->c, negated, (&(bp_compile_options){.backend = "noted"}));
    assert_non_null(g);
    assert_string_equal(order, "init ");
    bp_callable_unref(g);
    world_ok(w, use_name(w, "noted"));
    assert_string_equal(order, "init init compile ");
    world_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(F005_a_backend_is_given_by_name_by_config_or_by_the_program),
        cmocka_unit_test(F008_backends_are_registered_from_C_with_names_tags_and_presets),
        cmocka_unit_test(F009_a_name_that_is_taken_is_refused_with_both_origins),
        cmocka_unit_test(F010_look_up_tries_registered_ones_then_the_config_then_suggests),
        cmocka_unit_test(F011_a_section_cannot_shadow_a_registered_name),
        cmocka_unit_test(F012_an_unknown_name_suggests_two_at_most_and_never_debug_ones),
        cmocka_unit_test(F013_lists_are_sorted_filtered_and_load_nothing),
        cmocka_unit_test(F014_a_library_comes_from_a_section_or_a_drop_in_with_its_own_symbols),
        cmocka_unit_test(F015_init_fires_at_every_resolution_before_any_call),
        cmocka_unit_test(F016_a_failed_init_is_the_error_directly_and_moves_a_chain_on),
        cmocka_unit_test(F017_look_up_comes_first_then_init_then_the_first_call_compiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
