/* Before a plugin runs: reading its file, probing it in a child, remembering how that went. */
#include "host/backend/elf.h"
#include "host/backend/policy.h"
#include "host/backend/probe.h"
#include "tests/lib/world.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char *read_plugin(world *w, const char *name, size_t *n)
{
    char *path = world_text(w, name), *data = malloc(1 << 22);
    FILE *f = fopen(path, "rb");
    assert_true(f && data);
    *n = fread(data, 1, 1 << 22, f);
    fclose(f);
    free(path);
    return data;
}

static int open_bytes(world *w, const char *data, size_t n)
{
    char path[400];
    snprintf(path, sizeof path, "%s/bytes", w->dir);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, n), (ssize_t)n);
    return fd;
}

/* -- ELF ----------------------------------------------------------------------------------------------------------- */

static void notes_and_needed_libraries_are_read_from_the_file(void **state)
{
    (void)state;
    world *w = world_open("");
    size_t n;
    char *data = read_plugin(w, "@bad@/too_new.so", &n), why[300] = "";
    int fd = open_bytes(w, data, n);
    elf_facts f;
    assert_true(elf_read(fd, n, &f, why, sizeof why));
    assert_int_equal(f.api, 1000);
    assert_false(f.is_pie || f.has_text_relocations || f.has_executable_stack);
    elf_fini(&f);
    close(fd);
    free(data);
    data = read_plugin(w, "@bad@/needs_gone.so", &n);
    fd = open_bytes(w, data, n);
    assert_true(elf_read(fd, n, &f, why, sizeof why));
    assert_int_equal(f.api, BP_API);
    assert_true(f.needed.len >= 1);
    bool found = false;
    for (uint32_t i = 0; i < f.needed.len; i++)
        found |= strcmp(f.needed.at[i], "libbp-gone.so") == 0;
    assert_true(found);
    elf_fini(&f);
    close(fd);
    free(data);
    world_close(w);
}

/* Whatever the bytes are: an answer, no crash, no read outside (sanitizers watch). */
static void damaged_files_give_an_answer(void **state)
{
    (void)state;
    world *w = world_open("");
    size_t n;
    char *good = read_plugin(w, "@bad@/needs_gone.so", &n), *data = malloc(n), why[300];
    uint32_t seed = 7, refused = 0;
    assert_non_null(data);
    for (int i = 0; i < 600; i++) {
        memcpy(data, good, n);
        for (int k = 0; k < 8; k++) {
            seed = seed * 1664525u + 1013904223u;
            size_t at = (seed >> 8) % (i % 3 ? 1024 : n);
            data[at] = (char)(seed >> 4);
        }
        size_t size = i % 5 ? n : (seed >> 8) % n;
        int fd = open_bytes(w, data, size);
        elf_facts f;
        why[0] = '\0';
        if (!elf_read(fd, size, &f, why, sizeof why)) {
            assert_true(why[0] != '\0');
            refused++;
        }
        elf_fini(&f);
        close(fd);
    }
    assert_true(refused > 100);
    free(data);
    free(good);
    world_close(w);
}

static void what_dlerror_says_is_told_apart(void **state)
{
    (void)state;
    static const struct { const char *text; enum backend_state state; const char *needed; } ROWS[] = {
        {"libx.so.1: cannot open shared object file: No such file or directory", STATE_MISSING_DEP, "libx.so.1"},
        {"/p/a.so: cannot open shared object file: No such file or directory", STATE_MISSING, "/p/a.so"},
        {"/p/a.so: undefined symbol: f", STATE_UNDEFINED, ""},
        {"/lib/libc.so.6: version `GLIBC_2.99' not found (required by /p/a.so)", STATE_MISSING_DEP, "/lib/libc.so.6"},
        {"/p/a.so: invalid ELF header", STATE_BAD_FILE, ""},
        {"", STATE_BAD_FILE, ""},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        char needed[100];
        assert_int_equal(probe_classify("/p/a.so", ROWS[i].text, needed, sizeof needed), ROWS[i].state);
        assert_string_equal(needed, ROWS[i].needed);
    }
}

/* -- owners and modes ---------------------------------------------------------------------------------------------- */

static void a_file_belongs_to_root_to_the_user_or_to_who_is_behind_sudo(void **state)
{
    (void)state;
    const uid_t me = geteuid(), stranger = 54321;
    struct stat st = {.st_mode = S_IFREG | 0755};
    char why[600] = "";
    char *path = realpath("/bin/sh", NULL); /* its folders are root's on any machine */
    assert_non_null(path);
    st.st_uid = 0;
    assert_true(policy_allows(path, &st, why, sizeof why));
    st.st_uid = me;
    assert_true(policy_allows(path, &st, why, sizeof why));
    st.st_uid = stranger;
    assert_false(policy_allows(path, &st, why, sizeof why));
    assert_contains(why, path);
    assert_contains(why, "belongs to user 54321");
    setenv("SUDO_UID", "54321", 1);
    assert_int_equal(policy_allows(path, &st, why, sizeof why), me == 0);
    setenv("SUDO_UID", "5432", 1);
    assert_false(policy_allows(path, &st, why, sizeof why));
    setenv("SUDO_UID", "54321x", 1);
    assert_false(policy_allows(path, &st, why, sizeof why));
    unsetenv("SUDO_UID");
    st.st_uid = me;
    st.st_mode = S_IFREG | 0757;
    assert_false(policy_allows(path, &st, why, sizeof why));
    assert_contains(why, "writable by others (mode 0757)");
    st.st_mode = S_IFREG | 01755; /* sticky is for folders */
    assert_true(policy_allows(path, &st, why, sizeof why));
    st.st_mode = S_IFIFO | 0644;
    assert_false(policy_allows(path, &st, why, sizeof why));
    st.st_mode = S_IFREG | 0644;
    assert_false(policy_allows("/nonexistent/x.so", &st, why, sizeof why));
    free(path);
}

/* -- probes -------------------------------------------------------------------------------------------------------- */

/* A world whose log tells of probes, with a verdict folder of its own. */
static world *open_probing(const char *ini)
{
    world *w = world_open(ini);
    char *cache = world_text(w, "@dir@/cache");
    setenv("BACKPLANE_CACHE_DIR", cache, 1);
    setenv("BACKPLANE_LOGS", "backend", 1);
    free(cache);
    world_again(w, NULL);
    unsetenv("BACKPLANE_LOGS");
    return w;
}

static void look_up(world *w, const char *name, bp_status want)
{
    world_again(w, NULL);
    w->rt->log_mask = ~UINT64_C(0);
    backend_lookup(w->c, name);
    assert_int_equal(bp_error(w->c), want);
}

static uint32_t files_in_cache(world *w, char *last, size_t cap)
{
    char path[400];
    uint32_t n = 0;
    snprintf(path, sizeof path, "%s/cache/probe", w->dir);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        n++;
        if (last)
            snprintf(last, cap, "%s/%s", path, e->d_name);
    }
    if (d)
        closedir(d);
    return n;
}

#define PROBED "[host]\nprobe_helper = @helper@\n"
static const char FORWARD[] = PROBED "[backend p]\nlibrary = @plugins@/backplane-debug.so\n";

static void a_good_verdict_is_remembered_for_this_very_file(void **state)
{
    (void)state;
    world *w = open_probing(FORWARD);
    look_up(w, "p", BP_OK);
    assert_contains(buf_text(&w->log), "backplane-debug.so: ok\n");
    assert_null(strstr(buf_text(&w->log), "remembered"));
    assert_int_equal(files_in_cache(w, NULL, 0), 1);
    look_up(w, "p", BP_OK);
    assert_contains(buf_text(&w->log), "ok, remembered in ");
    world_ok(w, bp_set_config(w->c, "probe", "off"));
    assert_int_equal(backend_forget_probes(), 1);
    assert_int_equal(files_in_cache(w, NULL, 0), 0);
    world_close(w);
}

static void a_failing_verdict_is_remembered_until_it_is_forgotten(void **state)
{
    (void)state;
    world *w = open_probing(PROBED "[backend p]\nlibrary = @bad@/constructor_crash.so\n");
    look_up(w, "p", BP_INTERNAL);
    assert_null(strstr(buf_text(&w->log), "remembered"));
    look_up(w, "p", BP_INTERNAL);
    assert_contains(buf_text(&w->log), "crashed, remembered in ");
    assert_contains(bp_error_text(w->c), "SIGABRT");
    assert_int_equal(backend_forget_probes(), 1);
    look_up(w, "p", BP_INTERNAL);
    assert_null(strstr(buf_text(&w->log), "remembered"));
    world_close(w);
}

/* Rewrites the line of `key` in the only verdict. */
static void edit_verdict(world *w, const char *key, const char *line)
{
    char path[800], text[4096];
    assert_int_equal(files_in_cache(w, path, sizeof path), 1);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    fclose(f);
    char *at = strstr(text, key);
    assert_non_null(at);
    f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "%.*s%s%s", (int)(at - text), text, line, strchr(at, '\n'));
    fclose(f);
}

static void old_foreign_and_damaged_verdicts_are_not_believed(void **state)
{
    (void)state;
    static const char *const EDITS[][2] = {
        {"time ", "time 1000"}, {"time ", "time 99999999999"}, {"host ", "host 0.0.1"}, {"id ", "id 1 2 3 4.5"},
        {"state ", "state excellent"}, {"why=", "whi="}, {"init ", "init other"}, {"time ", "tim"}};
    world *w = open_probing(PROBED "[backend p]\nlibrary = @bad@/constructor_exit.so\n");
    for (size_t i = 0; i < sizeof EDITS / sizeof *EDITS; i++) {
        look_up(w, "p", BP_INTERNAL);
        edit_verdict(w, EDITS[i][0], EDITS[i][1]);
        look_up(w, "p", BP_INTERNAL);
        print_message("# %s: %s", EDITS[i][1], buf_text(&w->log));
        assert_null(strstr(buf_text(&w->log), ", remembered in"));
        backend_forget_probes();
    }
    look_up(w, "p", BP_INTERNAL);
    edit_verdict(w, "state ", "state ok"); /* the test's own edit is believed where nothing else is wrong */
    world_again(w, NULL);
    char path[400];
    snprintf(path, sizeof path, "%s/cache/probe", w->dir);
    assert_int_equal(chmod(path, 0777), 0); /* a folder that others may write is not believed */
    look_up(w, "p", BP_INTERNAL);
    assert_int_equal(backend_forget_probes(), 0);
    world_close(w);
}

static void without_a_usable_helper_loading_goes_on_and_says_so(void **state)
{
    (void)state;
    static const char *const HELPERS[] = {"/nonexistent/helper", "/bin/true", "/bin/cat"};
    for (int i = 0; i < 3; i++) {
        char ini[400];
        snprintf(ini, sizeof ini, "[host]\nprobe_helper = %s\n[backend p]\nlibrary = @plugins@/backplane-debug.so\n",
                 HELPERS[i]);
        world *w = open_probing(ini);
        look_up(w, "p", BP_OK);
        assert_contains(buf_text(&w->log), "backend \"p\" is loaded without a probe");
        assert_contains(buf_text(&w->log), HELPERS[i]);
        assert_int_equal(files_in_cache(w, NULL, 0), 0);
        world_close(w);
    }
}

static void a_program_that_ignores_its_children_gets_the_verdict_too(void **state)
{
    (void)state;
    void (*before)(int) = signal(SIGCHLD, SIG_IGN);
    world *w = open_probing(FORWARD);
    look_up(w, "p", BP_OK);
    assert_null(strstr(buf_text(&w->log), "without a probe"));
    world_close(w);
    w = open_probing(PROBED "[backend p]\nlibrary = @bad@/constructor_crash.so\n");
    look_up(w, "p", BP_INTERNAL);
    assert_contains(bp_error_text(w->c), "crashed");
    world_close(w);
    signal(SIGCHLD, before);
}

static void a_cache_that_cannot_be_written_fails_nothing(void **state)
{
    (void)state;
    world *w = open_probing(FORWARD);
    setenv("BACKPLANE_CACHE_DIR", "/proc/nowhere", 1);
    look_up(w, "p", BP_OK);
    assert_contains(buf_text(&w->log), "is not remembered");
    assert_int_equal(backend_forget_probes(), 0);
    world_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notes_and_needed_libraries_are_read_from_the_file),
        cmocka_unit_test(damaged_files_give_an_answer),
        cmocka_unit_test(what_dlerror_says_is_told_apart),
        cmocka_unit_test(a_file_belongs_to_root_to_the_user_or_to_who_is_behind_sudo),
        cmocka_unit_test(a_good_verdict_is_remembered_for_this_very_file),
        cmocka_unit_test(a_failing_verdict_is_remembered_until_it_is_forgotten),
        cmocka_unit_test(old_foreign_and_damaged_verdicts_are_not_believed),
        cmocka_unit_test(without_a_usable_helper_loading_goes_on_and_says_so),
        cmocka_unit_test(a_program_that_ignores_its_children_gets_the_verdict_too),
        cmocka_unit_test(a_cache_that_cannot_be_written_fails_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
