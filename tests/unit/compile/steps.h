/* What tests of opaque steps share: disabled functions, and one call both ways, compared with eager. */
#ifndef TESTS_COMPILE_STEPS_H
#define TESTS_COMPILE_STEPS_H
#include "host/capture/path.h"
#include "tests/unit/compile/fixture.h"
#include <pthread.h>
#include <stdatomic.h>

static bp_compiled *quiet_backend(bp_graph_module *gm, const bp_inputs *in)
{
    (void)in;
    return bp_forward(gm);
}

static bp_callable *quiet(fixture *f, bp_fn fn, const char *name)
{
    bp_compile_options o = {.backend_fn = quiet_backend};
    return bp_compile_at(f->c, fn, &o, sizeof o, name, __FILE__, __LINE__);
}
#define QUIET(f, fn) quiet((f), (fn), #fn)

/* -- disabled functions -------------------------------------------------------------------------------------------- */

static _Thread_local unsigned ran;
static _Thread_local bp_tensor *stashed;

static void count_fn(bp_ctx *c, bp_frame *f)
{
    ran++;
    bp_return(f, bp_add(c, bp_arg(f, 0, "x"), 1));
}

static void write_fn(bp_ctx *c, bp_frame *f)
{
    ran++;
    bp_mul_inplace(c, bp_arg(f, 0, "x"), 2);
}

static void same_fn(bp_ctx *c, bp_frame *f)
{
    (void)c;
    ran++;
    bp_return(f, bp_arg(f, 0, "x"));
}

static void view_fn(bp_ctx *c, bp_frame *f)
{
    ran++;
    bp_return(f, bp_slice(c, bp_arg(f, 0, "x"), .start = BP_SCALAR(1)));
}

static void stash_fn(bp_ctx *c, bp_frame *f)
{
    ran++;
    bp_tensor_unref(stashed);
    stashed = bp_keep(c, bp_arg(f, 0, "x"));
}

static void bump_stash_fn(bp_ctx *c, bp_frame *f)
{
    ran++;
    bp_add_inplace(c, stashed, 100);
    bp_return(f, stashed);
}

static void draw_fn(bp_ctx *c, bp_frame *f)
{
    ran++;
    bp_return(f, bp_rand(c, BP_DIMS(2)));
}

static void fail_fn(bp_ctx *c, bp_frame *f)
{
    ran++;
    bp_return(f, bp_select(c, bp_arg(f, 0, "x"), 9, 0));
}

static bp_callable *count_step, *write_step, *same_step, *view_step, *stash_step, *bump_step, *draw_step, *fail_step;

static bp_callable *disabled(fixture *f, bp_fn fn, const char *name)
{
    bp_compile_options o = {.disable = 1};
    return bp_compile_at(f->c, fn, &o, sizeof o, name, __FILE__, __LINE__);
}

static int setup(void **state)
{
    fixture *f = fixture_new();
    *state = f;
    count_step = disabled(f, count_fn, "count_fn");
    write_step = disabled(f, write_fn, "write_fn");
    same_step = disabled(f, same_fn, "same_fn");
    view_step = disabled(f, view_fn, "view_fn");
    stash_step = disabled(f, stash_fn, "stash_fn");
    bump_step = disabled(f, bump_stash_fn, "bump_stash_fn");
    draw_step = disabled(f, draw_fn, "draw_fn");
    fail_step = disabled(f, fail_fn, "fail_fn");
    ran = 0;
    return 0;
}

static int teardown(void **state)
{
    bp_callable *all[] = {count_step, write_step, same_step, view_step, stash_step, bump_step, draw_step, fail_step};
    bp_tensor_unref(stashed);
    stashed = NULL;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        bp_callable_unref(all[i]);
    fixture_free(*state);
    return 0;
}

/* -- one call both ways -------------------------------------------------------------------------------------------- */

typedef struct { bp_tensor *in[2]; bp_outputs out; uint64_t offset; unsigned ran; bp_status st; buf text; } seen;

static void see(fixture *f, bp_callable *g, bp_fn fn, const float *x, int64_t n, seen *s)
{
    bp_ctx *c = f->c;
    *s = (seen){{floats(f, n, x), floats(f, n, x)}, {0}, 0, 0, BP_OK, {0}};
    bp_manual_seed(c, 5);
    bp_set_sink(c, fixture_append, &s->text);
    bp_value v[2] = {bp_arg_of_tensor(s->in[0]), bp_arg_of_tensor(s->in[1])};
    bp_args args = {v, 2};
    ran = 0;
    s->st = g ? bp_call(c, g, &args, &s->out) : bp_run_eager(c, fn, NULL, &args, &s->out);
    s->ran = ran;
    s->offset = bp_generator_offset(c);
    if (s->st != BP_OK)
        s->out.n = 0;
    bp_error_clear(c);
    bp_set_sink(c, fixture_append, &f->tables);
}

static uint32_t tensors(const seen *s, bp_tensor **all)
{
    uint32_t n = 0;
    all[n++] = s->in[0];
    all[n++] = s->in[1];
    for (uint32_t i = 0; i < s->out.n; i++)
        all[n++] = s->out.at[i];
    return n;
}

static void compare(fixture *f, const seen *a, const seen *b)
{
    bp_tensor *x[16], *y[16];
    assert_int_equal(a->st, b->st);
    assert_int_equal(a->ran, b->ran);
    assert_int_equal(a->offset, b->offset);
    assert_string_equal(buf_text(&a->text), buf_text(&b->text));
    uint32_t n = tensors(a, x);
    assert_int_equal(n, tensors(b, y));
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(x[i] == NULL, y[i] == NULL);
        for (uint32_t j = 0; x[i] && j < n; j++) {
            assert_int_equal(x[i] == x[j], y[i] == y[j]);
            assert_int_equal(x[j] && x[i]->store == x[j]->store, y[j] && y[i]->store == y[j]->store);
        }
        for (int64_t k = 0; x[i] && k < bp_tensor_numel(x[i]); k++)
            if (at(f, x[i], k) != at(f, y[i], k))
                fail_msg("tensor %u, element %d: %g, eager says %g", i, (int)k, (double)at(f, x[i], k),
                         (double)at(f, y[i], k));
        if (!x[i])
            continue;
        tensor_meta p, q;
        tensor_get_meta(x[i], &p);
        tensor_get_meta(y[i], &q);
        assert_true(meta_eq(&p, &q));
    }
}

/* A call with these numbers, compared with eager. Returns how often disabled functions ran. */
static unsigned agree(fixture *f, bp_callable *g, bp_fn fn, int64_t n, const float *x)
{
    seen a, b;
    see(f, g, fn, x, n, &a);
    see(f, NULL, fn, x, n, &b);
    compare(f, &a, &b);
    buf_fini(&a.text);
    buf_fini(&b.text);
    return a.ran;
}
#define AGREE(f, g, fn, ...) \
    agree((f), (g), (fn), (int64_t)(sizeof((float[]){__VA_ARGS__}) / sizeof(float)), (float[]){__VA_ARGS__})

#endif
