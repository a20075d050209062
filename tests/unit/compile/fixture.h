/* What tests of calls share: a context with a runtime of its own that reads no config of the machine, short ways to
 * make and read tensors, a backend that keeps the tables of its graphs, and the log as text. */
#ifndef TESTS_COMPILE_FIXTURE_H
#define TESTS_COMPILE_FIXTURE_H
#include "host/base/ctx.h"
#include "host/tensor/tensor.h"
#include "sdk/base/str.h"
#include "tests/lib/check.h"
#include <backplane/backplane.h>
#include <backplane/plugin.h>
#include <stdlib.h>
#include <string.h>

typedef struct { bp_runtime *rt; bp_ctx *c; buf tables, log; } fixture;

static inline void fixture_append(void *arg, const char *text, size_t n)
{
    buf_add(arg, text, n);
}

static inline fixture *fixture_new(void)
{
    fixture *f = calloc(1, sizeof *f);
    setenv("BACKPLANE_SYSCONFDIR", "/nonexistent", 1);
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    unsetenv("BACKPLANE_CONFIG");
    f->rt = bp_runtime_new(NULL);
    f->c = bp_ctx_new(f->rt);
    bp_set_sink(f->c, fixture_append, &f->tables);
    bp_set_log(f->rt, fixture_append, &f->log);
    return f;
}

static inline void fixture_free(fixture *f)
{
    bp_ctx_destroy(f->c);
    bp_runtime_unref(f->rt);
    buf_fini(&f->tables);
    buf_fini(&f->log);
    free(f);
}

static inline int fixture_setup(void **state)
{
    *state = fixture_new();
    return 0;
}

/* Each size gets an entry of its own: for tests that tell entries by sizes. */
static inline int fixture_setup_static(void **state)
{
    fixture *f = fixture_new();
    *state = f;
    return bp_set_config(f->c, "automatic_dynamic_shapes", "no");
}

static inline int fixture_teardown(void **state)
{
    fixture_free(*state);
    return 0;
}

/* The graph itself, after its table. */
static inline bp_compiled *table_backend(bp_graph_module *gm, const bp_inputs *in)
{
    (void)in;
    bp_print_tabular(gm, bp_sink(gm));
    return bp_forward(gm);
}

static inline bp_callable *compile_tables(fixture *f, bp_fn fn, const char *name, int line)
{
    bp_compile_options o = {.backend_fn = table_backend};
    return bp_compile_at(f->c, fn, &o, sizeof o, name, __FILE__, line);
}
#define COMPILE(f, fn) compile_tables((f), (fn), #fn, __LINE__)

static inline bp_tensor *floats(fixture *f, int64_t n, const float *v)
{
    return bp_tensor_from(f->c, BP_F32, 1, &n, v);
}
#define FLOATS(f, ...) \
    floats((f), (int64_t)(sizeof((float[]){__VA_ARGS__}) / sizeof(float)), (float[]){__VA_ARGS__})

static inline float at(fixture *f, bp_tensor *t, int64_t i)
{
    float v[64] = {0};
    assert_non_null(t);
    int64_t n = bp_tensor_numel(t);
    assert_true(n <= 64 && i < n);
    if (bp_tensor_read(f->c, t, v, (size_t)n * sizeof *v) != BP_OK)
        fail_msg("%s", bp_error_text(f->c));
    return v[i];
}

static inline void expect_floats(fixture *f, bp_tensor *t, int64_t n, const float *want)
{
    assert_non_null(t);
    assert_int_equal(bp_tensor_numel(t), n);
    for (int64_t i = 0; i < n; i++)
        if (at(f, t, i) != want[i])
            fail_msg("element %d is %g, expected %g", (int)i, (double)at(f, t, i), (double)want[i]);
}
#define EXPECT_FLOATS(f, t, ...) \
    expect_floats((f), (t), (int64_t)(sizeof((float[]){__VA_ARGS__}) / sizeof(float)), (float[]){__VA_ARGS__})

/* Calls with tensors; fails the test on an error. */
static inline bp_outputs call_n(fixture *f, bp_callable *g, uint32_t n, bp_tensor *const *in)
{
    bp_value v[16];
    for (uint32_t i = 0; i < n; i++)
        v[i] = bp_arg_of_tensor(in[i]);
    bp_args args = {v, n};
    bp_outputs out = {0};
    if (bp_call(f->c, g, &args, &out) != BP_OK)
        fail_msg("%s", bp_error_text(f->c));
    return out;
}
#define CALL(f, g, ...)                                                                                                \
    call_n((f), (g), (uint32_t)(sizeof((bp_tensor *[]){__VA_ARGS__}) / sizeof(bp_tensor *)),                           \
           (bp_tensor *[]){__VA_ARGS__})

static inline bp_callable_stats stats(fixture *f, const bp_callable *g)
{
    bp_callable_stats s = {.size = sizeof s};
    assert_int_equal(bp_stats(f->c, g, &s), BP_OK);
    return s;
}

static inline bool said(fixture *f, const char *words)
{
    return strstr(buf_text(&f->log), words) != NULL;
}
#endif
