/* The folder lies in TMPDIR, which the driver removes. */
#include "tests/lib/world.h"
#include "host/backend/config.h"
#include <stdlib.h>
#include <sys/stat.h>

static void keep(void *arg, const char *text, size_t n)
{
    buf_add(arg, text, n);
}

void world_again(world *w, const char *file)
{
    bp_ctx_destroy(w->c);
    bp_runtime_unref(w->rt);
    w->rt = bp_runtime_new(file);
    w->c = bp_ctx_new(w->rt);
    assert_non_null(w->c);
    bp_set_log(w->rt, keep, &w->log);
    bp_set_sink(w->c, keep, &w->shown);
    config_check(w->c); /* reads it, while the environment is as the test has it */
    world_clear(w);
}

world *world_open(const char *ini)
{
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    const char *tmp = getenv("TMPDIR");
    snprintf(w->dir, sizeof w->dir, "%s/world-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(w->dir));
    world_file(w, "backplane.ini", ini);
    assert_int_equal(setenv("BACKPLANE_SYSCONFDIR", w->dir, 1), 0);
    world_again(w, NULL);
    return w;
}

void world_close(world *w)
{
    bp_ctx_destroy(w->c);
    bp_runtime_unref(w->rt);
    buf_fini(&w->log);
    buf_fini(&w->shown);
    free(w);
}

void world_clear(world *w)
{
    bp_error_clear(w->c);
    buf_clear(&w->log);
    buf_clear(&w->shown);
}

static const char *builddir(void)
{
    const char *dir = getenv("top_builddir");
    return dir ? dir : ".";
}

char *world_text(const world *w, const char *text)
{
    const struct { const char *name, *folder, *rest; } vars[] = {
        {"@plugins@", builddir(), "/.libs"},
        {"@bad@", builddir(), "/tests/fail/plugins"},
        {"@feature@", builddir(), "/tests/features/plugins"},
        {"@vendor@", builddir(), "/tests/vendor"},
        {"@helper@", builddir(), "/backplane-probe"},
        {"@dir@", w->dir, ""},
    };
    buf out = {0};
    buf_puts(&out, "");
    while (*text) {
        size_t i = 0, n = sizeof vars / sizeof *vars;
        while (i < n && strncmp(text, vars[i].name, strlen(vars[i].name)) != 0)
            i++;
        if (i < n)
            buf_printf(&out, "%s%s", vars[i].folder, vars[i].rest);
        else
            buf_putc(&out, *text);
        text += i < n ? strlen(vars[i].name) : 1;
    }
    assert_false(out.failed);
    return out.s ? out.s : calloc(1, 1);
}

const char *world_file(world *w, const char *name, const char *text)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", w->dir, name);
    for (char *at = path + strlen(w->dir) + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = '\0';
        mkdir(path, 0755);
    }
    char *full = world_text(w, text);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(full, 1, strlen(full), f), strlen(full));
    assert_int_equal(fclose(f), 0);
    free(full);
    return path;
}

bp_graph_module *world_graph(world *w, const char *text)
{
    bp_graph_module *gm = graph_parse_text(w->c, "test", text, strlen(text));
    if (!gm)
        fail_msg("%s", bp_error_text(w->c));
    return gm;
}

void check_ok(world *w, bp_status st, const char *what, const char *file, int line)
{
    if (st == BP_OK)
        return;
    print_error("%s: %s\n", what, bp_error_text(w->c));
    _fail(file, line);
}
