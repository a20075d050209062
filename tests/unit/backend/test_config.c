/* The config: layers, origins, and everything that would read otherwise than it looks. */
#include "tests/lib/world.h"
#include "host/backend/config.h"
#include "host/backend/room.h"
#include <stdlib.h>

static const config *config_of(const world *w)
{
    return &backend_room_of(w->rt)->config;
}

static void an_absent_config_gives_the_defaults(void **state)
{
    (void)state;
    world *w = world_open("");
    assert_int_equal(config_check(w->c), BP_OK);
    assert_int_equal(config_int(w->rt, KEY_RECOMPILE_LIMIT), 8);
    assert_int_equal(config_int(w->rt, KEY_ACCUMULATED_RECOMPILE_LIMIT), 256);
    assert_int_equal(config_int(w->rt, KEY_CAPTURE_LIMIT), 1024);
    assert_int_equal(config_int(w->rt, KEY_FALLBACK), FALLBACK_WARN);
    assert_int_equal(config_int(w->rt, KEY_PROBE), PROBE_DLOPEN);
    assert_int_equal(config_int(w->rt, KEY_PROBE_DEADLINE), 10000);
    assert_string_equal(bp_default_backend(w->c), "eager");
    world_close(w);
}

static void every_row_has_a_default_that_fits_it(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < CONFIG_KEYS; i++) {
        const config_row *row = config_key_row((enum config_key)i);
        int64_t number;
        char why[200];
        assert_true(row->help[0] != '\0');
        if (row->host)
            assert_true(config_parse_value(row, row->value, &number, why, sizeof why));
        for (uint32_t k = 0; k < i; k++)
            assert_false(row->host == config_key_row((enum config_key)k)->host &&
                         strcmp(row->name, config_key_row((enum config_key)k)->name) == 0);
    }
}

static void values_continue_on_indented_lines(void **state)
{
    (void)state;
    world *w = world_open("\xEF\xBB\xBF; a comment\r\n[host]\r\ndefault = some  ; more\r\n\r\n"
                          "[backend some]\r\nlibrary = lib/x.so\r\n"
                          "opt.chain = a,\r\n    b,\r\n\r\n    # no\r\n    c\r\n");
    world_ok(w, config_check(w->c));
    assert_string_equal(config_str(w->rt, KEY_DEFAULT), "some");
    const config_section *s = config_backend(config_of(w), "some");
    assert_non_null(s);
    assert_string_equal(s->options.at[0].value.text, "a, b, c");
    char *library = world_text(w, "@dir@/lib/x.so");
    assert_string_equal(config_backend_str(s, KEY_LIBRARY), library);
    free(library);
    world_close(w);
}

static void a_higher_layer_overrides_key_by_key(void **state)
{
    (void)state;
    world *w = world_open("[host]\ndefault = one\nfallback = silent\n[backend one]\nlibrary = /one.so\ntags = a\n");
    world_file(w, "xdg/backplane/backplane.ini", "[host]\ndefault = two\n[backend one]\ntags = b\n");
    world_file(w, "extra.ini", "[host]\nrecompile_limit = 3\n");
    char *xdg = world_text(w, "@dir@/xdg"), *extra = world_text(w, "@dir@/extra.ini");
    char before[512];
    snprintf(before, sizeof before, "%s", getenv("XDG_CONFIG_HOME") ? getenv("XDG_CONFIG_HOME") : "/nowhere");
    setenv("XDG_CONFIG_HOME", xdg, 1);
    setenv("BACKPLANE_CONFIG", extra, 1);
    world_again(w, world_file(w, "own.ini", "[backend one]\ngraph = core\n"));
    setenv("XDG_CONFIG_HOME", before, 1);
    unsetenv("BACKPLANE_CONFIG");
    world_ok(w, config_check(w->c));
    const config_section *s = config_backend(config_of(w), "one");
    assert_string_equal(config_backend_str(s, KEY_LIBRARY), "/one.so");
    assert_string_equal(config_backend_str(s, KEY_TAGS), "b");
    assert_string_equal(config_backend_str(s, KEY_GRAPH), "core");
    assert_string_equal(bp_default_backend(w->c), "two");
    assert_int_equal(config_int(w->rt, KEY_FALLBACK), FALLBACK_SILENT);
    assert_int_equal(config_int(w->rt, KEY_RECOMPILE_LIMIT), 3);
    buf text = {0};
    config_print(w->rt, &text);
    char *want = world_text(w, "[backend one] tags = b  (@dir@/xdg/backplane/backplane.ini:4)\n");
    assert_contains(text.s, want);
    assert_contains(text.s, "/own.ini:2)");
    free(want);
    free(xdg);
    free(extra);
    buf_fini(&text);
    world_close(w);
}

static void drop_ins_are_read_in_byte_order(void **state)
{
    (void)state;
    world *w = world_open("");
    world_file(w, "backends.d/b.ini", "[backend b]\nlibrary = b.so\n");
    world_file(w, "backends.d/Z.ini", "[backend z]\nlibrary = /z.so\n");
    world_file(w, "backends.d/a.ini", "[backend a]\nlibrary = a.so\n");
    world_file(w, "backends.d/.hidden.ini", "[nonsense\n");
    world_file(w, "backends.d/readme.txt", "[nonsense\n");
    world_again(w, NULL);
    world_ok(w, config_check(w->c));
    const config *cfg = config_of(w);
    assert_int_equal(cfg->backends.len, 3);
    assert_string_equal(cfg->backends.at[0]->name, "z");
    assert_string_equal(cfg->backends.at[1]->name, "a");
    assert_string_equal(cfg->backends.at[2]->name, "b");
    char *library = world_text(w, "@dir@/backends.d/a.so");
    assert_string_equal(config_backend_str(cfg->backends.at[1], KEY_LIBRARY), library);
    free(library);
    world_close(w);
}

static void the_program_sets_keys_and_is_checked_like_a_file(void **state)
{
    (void)state;
    world *w = world_open("[host]\nrecompile_limit = 4\n");
    world_ok(w, bp_set_config(w->c, "recompile_limit", "5"));
    world_ok(w, bp_set_config(w->c, "probe_deadline", "250 ms"));
    assert_int_equal(config_int(w->rt, KEY_RECOMPILE_LIMIT), 5);
    assert_int_equal(config_int(w->rt, KEY_PROBE_DEADLINE), 250);
    assert_int_equal(bp_set_config(w->c, "recompile_limit", "0"), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_message(w->c),
                    "\"recompile_limit\" is set to \"0\", expected a whole number within 1..1000000");
    bp_error_clear(w->c);
    assert_int_equal(bp_set_config(w->c, "recompile_limits", "9"), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_text(w->c), "did you mean \"recompile_limit\"?");
    bp_error_clear(w->c);
    assert_int_equal(bp_set_config(w->c, "library", "x"), BP_INVALID_ARGUMENT);
    assert_int_equal(config_int(w->rt, KEY_RECOMPILE_LIMIT), 5);
    world_close(w);
}

/* A text, the code, and parts of the error: FILE:LINE first. */
static const struct { const char *name, *ini; bp_status code; const char *at, *words[2]; } BAD[] = {
    {"no section", "default = x\n", BP_INVALID_ARGUMENT, ":1:", {"\"default\"", "before any section"}},
    {"unknown section", "\n[backends x]\n", BP_INVALID_ARGUMENT, ":2:", {"[backends x]", "[backend NAME]"}},
    {"no bracket", "[host\n", BP_INVALID_ARGUMENT, ":1:", {"lacks its \"]\"", ""}},
    {"text behind", "[host] default = x\n", BP_INVALID_ARGUMENT, ":1:", {"behind a section header", ""}},
    {"unknown key", "[host]\nfalback = warn\n", BP_INVALID_ARGUMENT, ":2:",
     {"unknown key \"falback\"", "\"fallback\"?"}},
    {"host key in a backend", "[backend x]\nprobe = off\n", BP_INVALID_ARGUMENT, ":2:", {"unknown key \"probe\"", ""}},
    {"key twice", "[host]\nprobe = off\nprobe = full\n", BP_ALREADY_EXISTS, ":3:",
     {"\"probe\" is given twice", "line 2"}},
    {"section twice", "[host]\n[backend a]\n[host]\n", BP_ALREADY_EXISTS, ":3:", {"[host] is given twice", ":1"}},
    {"bad choice", "[host]\nprobe = maybe\n", BP_INVALID_ARGUMENT, ":2:", {"\"maybe\"", "off|dlopen|full"}},
    {"bad number", "[host]\ncapture_limit = many\n", BP_INVALID_ARGUMENT, ":2:", {"\"many\"", "whole number"}},
    {"number with a tail", "[host]\ncapture_limit = 3x\n", BP_INVALID_ARGUMENT, ":2:", {"\"3x\"", "whole number"}},
    {"number too large", "[host]\ncapture_limit = 99999999999999999999\n", BP_INVALID_ARGUMENT, ":2:", {"whole", ""}},
    {"time without unit", "[host]\nprobe_deadline = 10\n", BP_INVALID_ARGUMENT, ":2:", {"\"10 s\"", ""}},
    {"bad bool", "[host]\nsuppress_errors = maybe\n", BP_INVALID_ARGUMENT, ":2:", {"yes or no", ""}},
    {"empty value", "[host]\ndefault =\n", BP_INVALID_ARGUMENT, ":2:", {"\"default\" is set to \"\"", ""}},
    {"no equals sign", "[host]\ndefault\n", BP_INVALID_ARGUMENT, ":2:", {"no section, key = value", ""}},
    {"colon", "[host]\ndefault : x\n", BP_INVALID_ARGUMENT, ":2:", {"key = value", ""}},
    {"indented key", "[backend a]\ntags = x\n  library = /y.so\n", BP_INVALID_ARGUMENT, ":3:",
     {"is indented", "library"}},
    {"indented section", "[host]\ndefault = x\n [backend a]\n", BP_INVALID_ARGUMENT, ":3:",
     {"is indented", "[backend a]"}},
    {"bad name", "[backend Big]\n", BP_INVALID_ARGUMENT, ":1:", {"\"Big\"", "a to z"}},
    {"reserved name", "[backend cpu]\n", BP_INVALID_ARGUMENT, ":1:", {"\"cpu\" is reserved", ""}},
    {"built-in name", "[host]\n\n[backend eager]\nlibrary = /x.so\n", BP_ALREADY_EXISTS, ":3:",
     {"\"eager\"", "the host"}},
    {"option without name", "[backend a]\nopt. = 3\n", BP_INVALID_ARGUMENT, ":2:", {"lacks the option's name", ""}},
};

static void what_reads_otherwise_than_it_looks_is_refused_with_file_and_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        world *w = world_open(BAD[i].ini);
        bp_status st = config_check(w->c);
        print_message("# %s: %s\n", BAD[i].name, bp_error_text(w->c));
        assert_int_equal(st, BAD[i].code);
        char at[400];
        snprintf(at, sizeof at, "%s/backplane.ini%s", w->dir, BAD[i].at);
        assert_contains(bp_error_text(w->c), at);
        assert_contains(bp_error_text(w->c), BAD[i].words[0]);
        assert_contains(bp_error_text(w->c), BAD[i].words[1]);
        backend *b;
        bp_error_clear(w->c);
        assert_int_equal(backend_resolve(w->c, "eager", NULL, NULL, &b), BAD[i].code);
        assert_null(b);
        world_close(w);
    }
}

static void long_lines_and_names_are_refused_not_cut(void **state)
{
    (void)state;
    static const struct { int line, name; bool ok; } CASES[] = {
        {199, 0, true}, {200, 0, false}, {5000, 0, false}, {0, 49, false}, {0, 50, false}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        buf ini = {0};
        buf_puts(&ini, "[backend a]\n");
        if (CASES[i].line) {
            buf_puts(&ini, "opt.x = ");
            buf_pad(&ini, (size_t)CASES[i].line - 8, 'v');
        } else {
            buf_pad(&ini, (size_t)CASES[i].name, 'k');
            buf_puts(&ini, " = 1");
        }
        buf_puts(&ini, "\n[host]\n");
        world *w = world_open(ini.s);
        assert_int_equal(config_check(w->c), CASES[i].ok ? BP_OK : BP_INVALID_ARGUMENT);
        if (!CASES[i].ok)
            assert_contains(bp_error_message(w->c), "backplane.ini:2: ");
        if (CASES[i].line == 5000)
            assert_contains(bp_error_text(w->c), "a line of 5000 bytes, 199 at most");
        if (CASES[i].ok)
            assert_int_equal(strlen(config_backend(config_of(w), "a")->options.at[0].value.text), 199 - 8);
        buf_fini(&ini);
        world_close(w);
    }
}

static void a_key_marked_optional_is_skipped_where_it_is_unknown(void **state)
{
    (void)state;
    world *w = world_open("[host]\n?from_the_future = 3\n?recompile_limit = 6\n");
    world_ok(w, config_check(w->c));
    assert_int_equal(config_int(w->rt, KEY_RECOMPILE_LIMIT), 6);
    world_close(w);
}

static void a_named_file_that_is_missing_is_an_error(void **state)
{
    (void)state;
    world *w = world_open("");
    world_again(w, "/nonexistent/own.ini");
    assert_int_equal(config_check(w->c), BP_NOT_FOUND);
    assert_contains(bp_error_text(w->c), "/nonexistent/own.ini: No such file or directory");
    world_again(w, w->dir);
    assert_int_equal(config_check(w->c), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_text(w->c), "not a regular file");
    world_close(w);
}

static void a_nul_byte_is_refused(void **state)
{
    (void)state;
    world *w = world_open("");
    char path[400];
    snprintf(path, sizeof path, "%s/nul.ini", w->dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fwrite("[host]\ndefault = a\0b\n", 1, 21, f);
    fclose(f);
    world_again(w, path);
    assert_int_equal(config_check(w->c), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_message(w->c), "nul.ini:2: a line holds a NUL byte");
    world_close(w);
}

/* Whatever the bytes are: a config or one error with the file's name, no crash, no read outside (sanitizers watch). */
static void damaged_files_give_a_config_or_an_error(void **state)
{
    (void)state;
    static const char GOOD[] = "[host]\ndefault = a ; c\nprobe_deadline = 10 s\n\n[backend a]\nlibrary = x.so\n"
                               "opt.chain = b,\n  ?c,\n  d\n?opt.x = 1\ntags = vendor\nenabled = yes\n";
    static const char BYTES[] = "\n\n\r\t =:;#[]?\"\\a0\xff\0.";
    world *w = world_open("");
    char text[sizeof GOOD], path[400];
    uint32_t seed = 11, good = 0;
    snprintf(path, sizeof path, "%s/mutant.ini", w->dir);
    for (int i = 0; i < 3000; i++) {
        memcpy(text, GOOD, sizeof GOOD);
        for (int k = 0; k < 1 + i % 4; k++) {
            seed = seed * 1664525u + 1013904223u;
            text[(seed >> 8) % (sizeof GOOD - 1)] = BYTES[(seed >> 4) % (sizeof BYTES - 1)];
        }
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fwrite(text, 1, i % 7 ? sizeof GOOD - 1 : (seed >> 8) % sizeof GOOD, f);
        fclose(f);
        config *cfg = calloc(1, sizeof *cfg);
        assert_non_null(cfg);
        config_init(cfg);
        if (config_read_file(cfg, path, 1) == BP_OK)
            good++;
        else
            assert_contains(cfg->error.message, "/mutant.ini:");
        config_fini(cfg);
        free(cfg);
    }
    assert_true(good > 100 && good < 2900);
    world_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_absent_config_gives_the_defaults),
        cmocka_unit_test(every_row_has_a_default_that_fits_it),
        cmocka_unit_test(values_continue_on_indented_lines),
        cmocka_unit_test(a_higher_layer_overrides_key_by_key),
        cmocka_unit_test(drop_ins_are_read_in_byte_order),
        cmocka_unit_test(the_program_sets_keys_and_is_checked_like_a_file),
        cmocka_unit_test(what_reads_otherwise_than_it_looks_is_refused_with_file_and_line),
        cmocka_unit_test(long_lines_and_names_are_refused_not_cut),
        cmocka_unit_test(a_key_marked_optional_is_skipped_where_it_is_unknown),
        cmocka_unit_test(a_named_file_that_is_missing_is_an_error),
        cmocka_unit_test(a_nul_byte_is_refused),
        cmocka_unit_test(damaged_files_give_a_config_or_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
