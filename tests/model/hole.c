/* Holes. Two contexts of one runtime, so that each side has its own generator, modes and disabled functions. */
#include "tests/model/hole.h"
#include "tests/lib/check.h"
#include <math.h>

static bp_tensor *make(bp_ctx *c, const value *v)
{
    int64_t n = v->n, ints[10];
    for (uint32_t i = 0; i < v->n; i++)
        ints[i] = (int64_t)v->v[i];
    return bp_tensor_from(c, v->kind == 'f' ? BP_F64 : BP_I64, 1, &n, v->kind == 'f' ? (const void *)v->v : ints);
}

/* -- comparing ----------------------------------------------------------------------------------------------------- */

static void expect_equal(hole *h, bp_tensor *got, bp_tensor *want)
{
    double a[10], b[10];
    size_t n = (size_t)bp_tensor_numel(want);
    bool rounds = program_is(&h->p, "another");
    assert_int_equal(bp_tensor_numel(got), n);
    assert_int_equal(bp_tensor_dtype(got), bp_tensor_dtype(want));
    assert_int_equal(bp_tensor_read(h->compiled.c, got, a, n * 8), BP_OK);
    assert_int_equal(bp_tensor_read(h->eager.c, want, b, n * 8), BP_OK);
    for (size_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], 8) && !(rounds && fabs(a[i] - b[i]) < 1e-12))
            fail_msg("element %zu is %.17g, eager has %.17g", i, a[i], b[i]);
}

/* Which of tensors share memory, or are one. */
static void expect_same_sharing(bp_tensor *const *got, bp_tensor *const *want, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++) {
            assert_int_equal(bp_tensor_same_storage(got[i], got[j]), bp_tensor_same_storage(want[i], want[j]));
            assert_int_equal(got[i] == got[j], want[i] == want[j]);
        }
}

enum { MOST_SEEN = 16 };

/* Arguments, results, and what disabled functions kept. */
static uint32_t see(const side *s, uint32_t nargs, const bp_outputs *outs, bp_tensor *seen[MOST_SEEN])
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < nargs; i++)
        seen[n++] = s->inputs[i];
    for (uint32_t i = 0; i < outs->n && n < MOST_SEEN; i++)
        seen[n++] = outs->at[i];
    for (uint32_t i = 0; i < s->stash.len && n < MOST_SEEN; i++)
        seen[n++] = s->stash.at[i];
    return n;
}

/* -- calls --------------------------------------------------------------------------------------------------------- */

static bp_status call_side(hole *h, side *s, const inputs *in, bp_outputs *outs)
{
    bp_value values[2];
    for (uint32_t i = 0; i < in->n; i++)
        values[i] = bp_arg_of_tensor(s->inputs[i] = make(s->c, &in->at[i]));
    bp_args args = {values, in->n};
    bp_manual_seed(s->c, 1);
    bp_status st = s == &h->compiled ? bp_call(s->c, h->g, &args, outs)
                                     : bp_run_eager(s->c, h->fn, s, &args, outs);
    bp_error_clear(s->c);
    if (st != BP_OK)
        outs->n = 0;
    return st;
}

void hole_call(hole *h, const inputs *in)
{
    bp_outputs got = {0}, want = {0};
    bp_tensor *mine[MOST_SEEN], *its[MOST_SEEN];
    bp_scope_begin(h->compiled.c);
    bp_scope_begin(h->eager.c);
    bp_status st = call_side(h, &h->compiled, in, &got);
    assert_int_equal(call_side(h, &h->eager, in, &want), st);
    uint32_t n = see(&h->compiled, in->n, &got, mine);
    assert_int_equal(see(&h->eager, in->n, &want, its), n);
    for (uint32_t i = 0; i < n; i++)
        expect_equal(h, mine[i], its[i]);
    expect_same_sharing(mine, its, n);
    assert_string_equal(buf_text(&h->compiled.effects), buf_text(&h->eager.effects));
    assert_int_equal(bp_generator_offset(h->compiled.c), bp_generator_offset(h->eager.c));
    bp_scope_end(h->compiled.c);
    bp_scope_end(h->eager.c);
    opaque_keep(&h->compiled, STASHED);
    opaque_keep(&h->eager, STASHED);
}

/* No function here stores a tensor, so the host must not say so (C5.3). */
static void note_log(void *arg, const char *text, size_t n)
{
    hole *h = arg;
    buf_add(&h->log, text, n);
}

static void open_side(hole *h, side *s)
{
    side_init(s, &h->p, bp_ctx_new(h->rt));
    bp_set_default_dtype(s->c, BP_F64);
    opaque_open(s);
}

void hole_open(hole *h, const char *mode, bp_fn fn)
{
    *h = (hole){.p = {.mode = mode}, .fn = fn};
    h->rt = bp_runtime_new(NULL);
    bp_set_log(h->rt, note_log, h);
    open_side(h, &h->compiled);
    open_side(h, &h->eager);
    bp_compile_options o = {.backend_fn = links_backend(&h->p), .user = &h->compiled, .dynamic = -1};
    h->g = bp_compile(h->compiled.c, fn, &o);
    assert_non_null(h->g);
    links_begin(&h->links, &h->p, h->compiled.c);
}

void hole_close(hole *h)
{
    assert_null(strstr(buf_text(&h->log), "stored beyond the call"));
    buf_fini(&h->log);
    links_end(&h->links);
    bp_callable_unref(h->g);
    opaque_close(&h->compiled);
    opaque_close(&h->eager);
    bp_ctx_destroy(h->compiled.c);
    bp_ctx_destroy(h->eager.c);
    bp_set_log(h->rt, NULL, NULL);
    bp_runtime_unref(h->rt);
}

/* -- a hole -------------------------------------------------------------------------------------------------------- */

void hole_expect(hole *h, numbers want)
{
    bp_callable_stats s = {.size = sizeof s};
    assert_int_equal(bp_stats(h->compiled.c, h->g, &s), BP_OK);
    numbers got = {s.graphs, s.captures, s.disagreements, s.eager_calls, s.opened, s.growths, s.restarts};
    if (memcmp(&got, &want, sizeof got))
        fail_msg("%u segments, %u captures, %u disagreements, %u eager, %u opened, %u growths, %u restarts; the model "
                 "has %u, %u, %u, %u, %u, %u, %u", got.segments, got.captures, got.disagreements, got.eager, got.opened,
                 got.growths, got.restarts, want.segments, want.captures, want.disagreements, want.eager, want.opened,
                 want.growths, want.restarts);
}

void hole_try(const char *mode, bp_fn fn, uint32_t n, inputs (*next)(uint32_t i), uint32_t limit, numbers want)
{
    hole h;
    char text[16];
    hole_open(&h, mode, fn);
    snprintf(text, sizeof text, "%u", limit);
    if (limit)
        assert_int_equal(bp_set_config(h.compiled.c, "accumulated_recompile_limit", text), BP_OK);
    for (uint32_t i = 0; i < n; i++) {
        inputs in = next(i);
        hole_call(&h, &in);
    }
    hole_expect(&h, want);
    if (h.links.twice[0] && strcmp(mode, "modes"))
        fail_msg("a graph is compiled twice: %s", h.links.twice);
    hole_close(&h);
}
