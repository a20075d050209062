/* Plugins and configs that are wrong, a row each: the code and the words of the one error that it gives when it is
 * named directly, its state, and that a chain moves on and reports it.
 *
 * A plugin that fails before it compiles is an error of its look-up. One that fails when it compiles or runs is an
 * error under `fallback = error`; else eager answers, with one warning of the same words. */
#include "host/backend/config.h"
#include "tests/lib/world.h"
#include <elf.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum stage { LOAD, COMPILE, RUN };

typedef struct {
    const char *name;
    const char *library;                     /* with variables; or what make gives */
    void (*make)(world *w, const char *path); /* makes it at @dir@/bad.so */
    enum stage stage;
    bp_status code;
    const char *state;
    const char *words[3];
    const char *host, *keys;                 /* more lines of [host] and of its section */
} row;

/* -- files that no compiler makes ---------------------------------------------------------------------------------- */

static void put(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void make_text(world *w, const char *path)
{
    (void)w;
    put(path, "compile = yes\n", 14);
    static const char LONG[128] = "this file is long enough to be an ELF header, and is none";
    put(path, LONG, sizeof LONG);
}

/* A good plugin's bytes, for the caller to free. */
static char *read_good(world *w, size_t *n)
{
    char *path = world_text(w, "@bad@/declines.so");
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *data = malloc(1 << 22);
    assert_non_null(data);
    *n = fread(data, 1, 1 << 22, f);
    fclose(f);
    free(path);
    return data;
}

static void make_foreign_machine(world *w, const char *path)
{
    size_t n;
    char *data = read_good(w, &n);
    ((Elf64_Ehdr *)(void *)data)->e_machine = EM_S390;
    put(path, data, n);
    free(data);
}

static void make_32_bit(world *w, const char *path)
{
    size_t n;
    char *data = read_good(w, &n);
    data[EI_CLASS] = ELFCLASS32;
    put(path, data, n);
    free(data);
}

static void make_truncated(world *w, const char *path)
{
    size_t n;
    char *data = read_good(w, &n);
    put(path, data, n / 8); /* of what is loaded: at the end of the file lies what tells debuggers of it */
    free(data);
}

static void make_group_writable(world *w, const char *path)
{
    size_t n;
    char *data = read_good(w, &n);
    put(path, data, n);
    free(data);
    assert_int_equal(chmod(path, 0775), 0);
}

static void make_in_open_folder(world *w, const char *path)
{
    make_group_writable(w, path);
    assert_int_equal(chmod(path, 0755), 0);
    assert_int_equal(chmod(w->dir, 0777), 0);
}

static void make_folder(world *w, const char *path)
{
    (void)w;
    assert_int_equal(mkdir(path, 0755), 0);
}

/* -- the table ----------------------------------------------------------------------------------------------------- */

#define BAD(file) "@bad@/" file ".so", NULL
#define MADE(how) "@dir@/bad.so", how
static const row ROWS[] = {
    /* name, file, stage, code, state, words */
    {"missing_file", "@dir@/absent.so", NULL, LOAD, BP_NOT_FOUND, "missing",
     {"absent.so: no such file", "named in", "backplane.ini:"}, 0, 0},
    {"text_file", MADE(make_text), LOAD, BP_INVALID_ARGUMENT, "bad-file",
     {"bad.so", "not an ELF file", "74 68 69 73"}, 0, 0},
    {"wrong_architecture", MADE(make_foreign_machine), LOAD, BP_INVALID_ARGUMENT, "bad-file",
     {"bad.so", "wrong architecture", "ELF machine 22"}, 0, 0},
    {"wrong_width", MADE(make_32_bit), LOAD, BP_INVALID_ARGUMENT, "bad-file",
     {"bad.so", "wrong architecture", "32-bit"}, 0, 0},
    {"truncated_file", MADE(make_truncated), LOAD, BP_INVALID_ARGUMENT, "bad-file",
     {"bad.so", "truncated", "beyond"}, 0, 0},
    {"folder", MADE(make_folder), LOAD, BP_PERMISSION_DENIED, "refused",
     {"bad.so", "not a regular file", ""}, 0, 0},
    {"program", "@helper@", NULL, LOAD, BP_INVALID_ARGUMENT, "bad-file",
     {"backplane-probe", "is a program", "not a library"}, 0, 0},
    {"group_writable", MADE(make_group_writable), LOAD, BP_PERMISSION_DENIED, "refused",
     {"bad.so", "writable by its group", "chmod go-w"}, 0, 0},
    {"open_folder", MADE(make_in_open_folder), LOAD, BP_PERMISSION_DENIED, "refused",
     {"the folder", "writable by others", "0777"}, 0, 0},
    {"executable_stack", BAD("executable_stack"), LOAD, BP_PERMISSION_DENIED, "refused",
     {"executable_stack.so", "executable stack", "noexecstack"}, 0, 0},
    {"too_new", BAD("too_new"), LOAD, BP_FAILED_PRECONDITION, "version",
     {"needs API 1000", "up to 2", "update the host"}, 0, 0},
    {"foreign_sanitizer", BAD("foreign_sanitizer"), LOAD, BP_FAILED_PRECONDITION, "version",
     {"memory sanitizer", "this host is not", ""}, 0, 0},
    {"missing_dependency", BAD("needs_gone"), LOAD, BP_NOT_FOUND, "missing-dependency",
     {"needs_gone.so needs libbp-gone.so", "cannot open", ""}, 0, 0},
    {"undefined_symbol", BAD("undefined"), LOAD, BP_FAILED_PRECONDITION, "undefined-symbol",
     {"undefined.so", "undefined symbol", "nowhere_defined"}, 0, 0},
    {"missing_dependency_unprobed", BAD("needs_gone"), LOAD, BP_NOT_FOUND, "missing-dependency",
     {"needs_gone.so needs libbp-gone.so", "cannot open", ""}, "probe = off\n", 0},
    {"undefined_symbol_unprobed", BAD("undefined"), LOAD, BP_FAILED_PRECONDITION, "undefined-symbol",
     {"undefined.so", "undefined symbol", "nowhere_defined"}, "probe = off\n", 0},
    {"no_compile", BAD("no_compile"), LOAD, BP_INVALID_ARGUMENT, "not-a-plugin",
     {"no_compile.so", "defines no \"compile\"", "bp_compiled *compile(bp_graph_module *"}, 0, 0},
    {"compile_of_a_dependency", BAD("borrower"), LOAD, BP_INVALID_ARGUMENT, "not-a-plugin",
     {"borrower.so defines no \"compile\"", "dependency", "lender.so"}, 0, 0},
    {"missing_named_init", BAD("declines"), LOAD, BP_INVALID_ARGUMENT, "not-a-plugin",
     {"defines no \"set_up\"", "names as its init hook", "backplane.ini:"}, 0, "init = set_up\n"},
    {"compile_names_data", BAD("acts"), LOAD, BP_INVALID_ARGUMENT, "not-a-plugin",
     {"acts.so: \"backend_info\" is data", "expected the function bp_compiled *", "backplane.ini:"}, 0,
     "compile = backend_info\n"},
    {"init_names_data", BAD("acts"), LOAD, BP_INVALID_ARGUMENT, "not-a-plugin",
     {"acts.so: \"backend_info\" is data", "expected the function bp_status", "backplane.ini:"}, "probe = full\n",
     "init = backend_info\n"},
    {"missing_named_compile", BAD("declines"), LOAD, BP_INVALID_ARGUMENT, "not-a-plugin",
     {"defines no \"translate\"", "(named in ", "backplane.ini:"}, 0, "compile = translate\n"},
    {"empty_info", BAD("bad_info"), LOAD, BP_INVALID_ARGUMENT, "not-a-plugin",
     {"backend_info.size is 0", "sizeof(bp_backend_info)", ""}, 0, 0},
    {"constructor_crashes", BAD("constructor_crash"), LOAD, BP_INTERNAL, "crashed",
     {"constructors crashed in a probe", "SIGABRT", "doctor --forget"}, 0, 0},
    {"constructor_exits", BAD("constructor_exit"), LOAD, BP_INTERNAL, "crashed",
     {"constructors ended the process", "exit status 7", ""}, 0, 0},
    {"constructor_hangs", BAD("constructor_hang"), LOAD, BP_DEADLINE_EXCEEDED, "hung",
     {"constructors did not finish", "300 ms", "doctor --forget"}, "probe_deadline = 300 ms\n", 0},
    {"crashes_in_the_probe", BAD("init_crash"), LOAD, BP_INTERNAL, "crashed",
     {"init hook crashed in a probe", "SIGABRT", "init_crash.so"}, "probe = full\n", 0},
    {"disabled", BAD("declines"), LOAD, BP_FAILED_PRECONDITION, "disabled",
     {"\"bad\"", "enabled = no", "backplane.ini:"}, 0, "enabled = no\n"},
    {"init_fails", BAD("init_fails"), LOAD, BP_UNAUTHENTICATED, "init-failed",
     {"init of backend \"bad\"", "the licence of this compiler", "1999"}, 0, 0},
    {"init_fails_silently", BAD("init_silent"), LOAD, BP_DATA_LOSS, "init-failed",
     {"init of backend \"bad\"", "returned DATA_LOSS", "gave no reason"}, 0, 0},
    {"no_device", BAD("init_no_device"), LOAD, BP_UNAVAILABLE, "no-device",
     {"init of backend \"bad\"", "no accelerator", "0x1234"}, 0, 0},
    {"compile_declines", BAD("declines"), COMPILE, BP_UNIMPLEMENTED, "ok",
     {"\"bad\"", "node \"abs_1\"", "no pooling in 3 dimensions"}, 0, 0},
    {"compile_errors", BAD("errors"), COMPILE, BP_RESOURCE_EXHAUSTED, "ok",
     {"\"bad\"", "the code cache of 16 MB is full", "did not compile"}, 0, 0},
    {"compile_gives_null", BAD("silent_null"), COMPILE, BP_INTERNAL, "ok",
     {"\"bad\"", "returned NULL", "gave no reason"}, 0, 0},
    {"compile_reads_a_fake", BAD("reads_fake"), COMPILE, BP_FAILED_PRECONDITION, "ok",
     {"\"bad\"", "reading the data of a fake tensor", "\"x\""}, 0, 0},
    {"run_fails", BAD("run_fails"), RUN, BP_UNAVAILABLE, "ok",
     {"a run of backend \"bad\" failed", "fell off the bus", "slot 3"}, 0, 0},
    {"run_fails_silently", BAD("run_silent"), RUN, BP_INTERNAL, "ok",
     {"a run of backend \"bad\" failed", "returned INTERNAL", "gave no reason"}, 0, 0},
    {"too_few_outputs", BAD("few_outputs"), RUN, BP_INTERNAL, "ok",
     {"\"bad\"", "it made 1 of 2 outputs", "output 1 is missing"}, 0, 0},
    {"too_many_outputs", BAD("many_outputs"), RUN, BP_INTERNAL, "ok",
     {"\"bad\"", "it set output 2", "the graph has 2"}, 0, 0},
    {"wrong_shape", BAD("wrong_shape"), RUN, BP_INTERNAL, "ok",
     {"\"bad\"", "output 0 is f32[2]", "expected f32[3]"}, 0, 0},
    {"wrong_dtype", BAD("wrong_dtype"), RUN, BP_INTERNAL, "ok",
     {"\"bad\"", "output 0 is f64[3]", "expected f32[3]"}, 0, 0},
};
enum { NROWS = sizeof ROWS / sizeof ROWS[0] };

static const char GRAPH[] = "graph g {\n"
                            "  %x: f32[3] = placeholder \"x\" user\n"
                            "  %abs_1: f32[3] = aten.abs.default(%x)\n"
                            "  %add: f32[3] = aten.add.Tensor(%abs_1, %x)\n"
                            "  %neg: f32[3] = aten.neg.default(%add)\n"
                            "  output(%neg, %add)\n"
                            "}\n";

/* -- one attempt --------------------------------------------------------------------------------------------------- */

static world *open_row(const row *r, const char *policy)
{
    buf ini = {0};
    buf_printf(&ini, "[host]\nfallback = %s\nprobe_helper = @helper@\n%s", policy, r->host ? r->host : "");
    buf_printf(&ini, "[backend bad]\nlibrary = %s\n%s", r->library, r->keys ? r->keys : "");
    buf_puts(&ini, "[backend chain]\nlibrary = @plugins@/backplane-compose.so\nopt.chain = bad, eager\n");
    buf_puts(&ini, "[backend optional]\nlibrary = @plugins@/backplane-compose.so\nopt.chain = ?bad, eager\n");
    world *w = world_open(ini.s);
    buf_fini(&ini);
    if (r->make) {
        char *path = world_text(w, r->library);
        r->make(w, path);
        free(path);
    }
    return w;
}

static bp_status run(world *w, program *p)
{
    static const float X[3] = {-1, 2, 3}, NEG[3] = {0, -4, -6};
    float got[3] = {9, 9, 9};
    bp_tensor *x = bp_tensor_from(w->c, BP_F32, 1, (int64_t[]){3}, X), *out[2];
    assert_non_null(x);
    bp_status st = program_run(w->c, p, &(program_io){.inputs = &x, .ninputs = 1, .outputs = out, .noutputs = 2});
    if (st == BP_OK) {
        bp_tensor_read(w->c, out[0], got, sizeof got);
        for (int i = 0; i < 3; i++)
            assert_true(got[i] == NEG[i]);
    }
    bp_tensor_unref(out[0]);
    bp_tensor_unref(out[1]);
    return st;
}

/* Look-up, compile, run; the report of who answered, for the caller to free. */
static bp_status attempt(world *w, const char *name, buf *report)
{
    backend *b;
    program *p = NULL;
    bp_status st = backend_resolve(w->c, name, NULL, NULL, &b);
    if (st)
        return st;
    bp_graph_module *gm = world_graph(w, GRAPH);
    st = program_compile(w->c, gm, b, &p);
    if (!st)
        st = run(w, p);
    if (!st)
        program_print_assignment(p, report);
    program_unref(p);
    gm_unref(gm);
    return st;
}

static uint32_t count(const char *text, const char *part)
{
    uint32_t n = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        n++;
    return n;
}

static void check_words(const row *r, const char *text)
{
    for (int i = 0; i < 3; i++)
        assert_contains(text, r->words[i]);
}

static void check_state(world *w, const row *r)
{
    const char *state, *why;
    bp_error_clear(w->c);
    assert_int_equal(bp_backend_state(w->c, "bad", 0, &state, &why), BP_OK);
    assert_string_equal(state, r->state);
}

static void named_directly(const row *r, const char *policy)
{
    world *w = open_row(r, policy);
    buf report = {0};
    bp_status st = attempt(w, "bad", &report);
    /* CMocka cuts a message at 1024 bytes: the line that says ok must begin anew */
    print_message("# %s, %s: %s %.400s%.400s\n", r->name, policy, bp_status_name(st), bp_error_text(w->c),
                  buf_text(&w->log));
    if (r->stage == LOAD || strcmp(policy, "error") == 0) {
        assert_int_equal(st, r->code);
        check_words(r, bp_error_text(w->c));
        assert_int_equal(count(buf_text(&w->log), "warning"), 0);
    } else {
        world_ok(w, st);
        check_words(r, buf_text(&w->log));
        assert_int_equal(count(buf_text(&w->log), "warning"), 1);
        assert_contains(report.s, "neg (aten.neg.default) -> eager -> ");
    }
    check_state(w, r);
    buf_fini(&report);
    world_close(w);
}

static void in_a_chain(const row *r, const char *chain)
{
    world *w = open_row(r, "warn");
    buf report = {0};
    world_ok(w, attempt(w, chain, &report));
    print_message("# %s, %s: %.800s\n", r->name, chain, buf_text(&report));
    assert_contains(report.s, "neg (aten.neg.default) -> eager -> ");
    assert_contains(report.s, r->stage == LOAD ? r->state : r->words[1]);
    assert_contains(report.s, r->words[1]);
    check_state(w, r);
    buf_fini(&report);
    world_close(w);
}

static const row *row_of(void **state)
{
    return *state;
}

static void a_bad_plugin(void **state)
{
    named_directly(row_of(state), "error");
    named_directly(row_of(state), "warn");
    in_a_chain(row_of(state), "chain");
    in_a_chain(row_of(state), "optional");
}

/* -- what ends everything ------------------------------------------------------------------------------------------ */

static void a_refusal_ends_the_chain(void **state)
{
    (void)state;
    const row r = {.name = "refuses", .library = "@bad@/refuses.so"};
    const char *const names[] = {"bad", "chain"};
    for (int i = 0; i < 2; i++) {
        world *w = open_row(&r, "warn");
        buf report = {0};
        assert_int_equal(attempt(w, names[i], &report), BP_INVALID_ARGUMENT);
        assert_contains(bp_error_text(w->c), "option \"threads\" must be positive");
        assert_contains(bp_error_text(w->c), "\"bad\"");
        buf_fini(&report);
        world_close(w);
    }
}

static void a_chain_that_reaches_itself_is_refused_with_its_path(void **state)
{
    (void)state;
    world *w = world_open("[host]\nprobe_helper = @helper@\n"
                          "[backend one]\nlibrary = @plugins@/backplane-compose.so\nopt.chain = two, eager\n"
                          "[backend two]\nlibrary = @plugins@/backplane-compose.so\nopt.chain = three\n"
                          "[backend three]\nlibrary = @plugins@/backplane-compose.so\nopt.chain = eager, one\n");
    buf report = {0};
    assert_int_equal(attempt(w, "one", &report), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_text(w->c), "the chain reaches itself: one -> two -> three -> one");
    assert_int_equal(count(bp_error_text(w->c), "reaches itself"), 1);
    bp_error_clear(w->c);
    world_close(w);
    w = world_open("[host]\nprobe_helper = @helper@\n"
                   "[backend loop]\nlibrary = @plugins@/backplane-compose.so\nopt.chain = loop\n"
                   "[backend chain]\nlibrary = @plugins@/backplane-compose.so\nopt.chain = loop, eager\n");
    world_ok(w, attempt(w, "chain", &report));
    assert_contains(report.s, "-> eager -> loop: the chain reaches itself: loop -> loop");
    buf_fini(&report);
    world_close(w);
}

static void an_unknown_name_suggests_near_ones(void **state)
{
    (void)state;
    world *w = world_open("[host]\nprobe_helper = @helper@\n[backend onednn-cpu]\nlibrary = x.so\n"
                          "[backend chain]\nlibrary = @plugins@/backplane-compose.so\nopt.chain = onednn-gpu, eager\n");
    buf report = {0};
    assert_int_equal(attempt(w, "onednn", &report), BP_NOT_FOUND);
    assert_contains(bp_error_text(w->c), "invalid backend \"onednn\", did you mean \"onednn-cpu\"?");
    bp_error_clear(w->c);
    world_ok(w, attempt(w, "chain", &report));
    assert_contains(report.s, "-> eager -> onednn-gpu: invalid backend \"onednn-gpu\", did you mean \"onednn-cpu\"?");
    assert_int_equal(count(buf_text(&w->log), "warning: a chain passes over \"onednn-gpu\""), 1);
    world_ok(w, bp_set_config(w->c, "fallback", "error"));
    assert_int_equal(attempt(w, "chain", &report), BP_NOT_FOUND);
    assert_contains(bp_error_text(w->c), "did you mean \"onednn-cpu\"?");
    buf_fini(&report);
    world_close(w);
}

/* Configs that are wrong fail whatever is named, a chain too. */
static void a_bad_config_fails_every_look_up(void **state)
{
    (void)state;
    static const struct { const char *text; bp_status code; const char *words[3]; } CONFIGS[] = {
        {"librery = x.so\n", BP_INVALID_ARGUMENT, {"backplane.ini:4", "unknown key \"librery\"", "\"library\"?"}},
        {"[backend chain]\n", BP_ALREADY_EXISTS,
         {"backplane.ini:4", "[backend chain] is given twice", "backplane.ini:1"}},
        {"?=1\n", BP_INVALID_ARGUMENT, {"backplane.ini:4:2", "expected a key's name", "one \"?\""}},
        {"??x = 1\n", BP_INVALID_ARGUMENT, {"backplane.ini:4:2", "expected a key's name", "one \"?\""}},
        {"opt.x = a\xff\n", BP_INVALID_ARGUMENT, {"backplane.ini:4:10", "0xff", "expected UTF-8"}},
        {"opt.x = caf\xc3\n", BP_INVALID_ARGUMENT, {"backplane.ini:4:12", "0xc3", "expected UTF-8"}},
        {"opt.x = \033[2J\n", BP_INVALID_ARGUMENT, {"backplane.ini:4:9", "0x1b", "control character"}},
        {"[host]\nrecompile_limit = 010\n", BP_INVALID_ARGUMENT,
         {"backplane.ini:5:19", "\"recompile_limit\" is set to \"010\"", "without leading zeros"}},
        {"[host]\nrecompile_limit = +8\n", BP_INVALID_ARGUMENT, {"backplane.ini:5:19", "\"+8\"", "whole number"}},
        {"opt.x = LONG\n", BP_INVALID_ARGUMENT, {"backplane.ini:4", "a line of 5000 bytes", "199 at most"}},
    };
    static const char HEAD[] = "[backend chain]\nlibrary = @plugins@/backplane-compose.so\nopt.chain = eager\n";
    for (size_t i = 0; i < sizeof CONFIGS / sizeof *CONFIGS; i++) {
        buf ini = {0}, report = {0};
        const char *filler = strstr(CONFIGS[i].text, "LONG");
        buf_puts(&ini, HEAD);
        buf_add(&ini, CONFIGS[i].text, filler ? (size_t)(filler - CONFIGS[i].text) : strlen(CONFIGS[i].text));
        if (filler)
            buf_pad(&ini, 5000 - 8, 'x');
        world *w = world_open(ini.s);
        const char *const names[] = {"chain", "eager", NULL};
        for (int k = 0; k < 3; k++) {
            assert_int_equal(attempt(w, names[k], &report), CONFIGS[i].code);
            for (int n = 0; n < 3; n++)
                assert_contains(bp_error_text(w->c), CONFIGS[i].words[n]);
            bp_error_clear(w->c);
        }
        buf_fini(&ini);
        world_close(w);
    }
}

int main(void)
{
    static struct CMUnitTest tests[NROWS + 4];
    for (int i = 0; i < NROWS; i++) {
        union { const row *in; void *out; } u = {&ROWS[i]}; /* only read */
        tests[i] = (struct CMUnitTest){ROWS[i].name, a_bad_plugin, NULL, NULL, u.out};
    }
    const struct CMUnitTest rest[] = {
        cmocka_unit_test(a_refusal_ends_the_chain),
        cmocka_unit_test(a_chain_that_reaches_itself_is_refused_with_its_path),
        cmocka_unit_test(an_unknown_name_suggests_near_ones),
        cmocka_unit_test(a_bad_config_fails_every_look_up),
    };
    memcpy(tests + NROWS, rest, sizeof rest);
    return _cmocka_run_group_tests("fail", tests, NROWS + 4, NULL, NULL);
}
