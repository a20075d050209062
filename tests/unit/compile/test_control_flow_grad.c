/* Gradients through cond, map, scan and while_loop: ahead of time on each backend, and under the tape, as eager's. */
#include "tests/unit/compile/fixture.h"
#include <math.h>

enum { MOST = 3 };

static bp_tensor *matrix_leaf(fixture *f, int64_t n, int64_t m, float from)
{
    float v[64];
    int64_t sizes[2] = {n, m};
    for (int64_t i = 0; i < n * (m ? m : 1); i++)
        v[i] = from + 0.25f * (float)(i * 5 % 7);
    bp_tensor *t = m ? bp_tensor_from(f->c, BP_F32, 2, sizes, v) : bp_tensor_from(f->c, BP_F32, 1, sizes, v);
    bp_tensor_set_requires_grad(f->c, t, 1);
    return t;
}

/* The sum of all results, each weighted by its place, so that gradients of different results differ. */
static void backward_all(fixture *f, const bp_outputs *out)
{
    bp_tensor *loss = NULL;
    for (uint32_t i = 0; i < out->n; i++) {
        bp_tensor *s = bp_mul(f->c, bp_sum(f->c, bp_mul(f->c, out->at[i], out->at[i])), (double)i + 1);
        loss = loss ? bp_add(f->c, loss, s) : s;
    }
    if (bp_backward(f->c, loss, NULL, 0) != BP_OK)
        fail_msg("%s", bp_error_text(f->c));
}

/* What the branch that was taken does not use has no gradient in eager, and zeros where both branches are compiled. */
static void expect_near(fixture *f, const char *what, bp_tensor *got, bp_tensor *want)
{
    if (want && !got)
        fail_msg("%s: there is no gradient", what);
    for (int64_t i = 0; got && i < bp_tensor_numel(got); i++) {
        float a = at(f, got, i), b = want ? at(f, want, i) : 0;
        if (fabsf(a - b) > 1e-4f * (1 + fabsf(b)))
            fail_msg("%s: element %d is %g, expected %g", what, (int)i, (double)a, (double)b);
    }
}

typedef struct { const char *name; bp_fn fn; int64_t sizes[MOST][2]; float from[MOST]; bool ahead; } subject;

static void make_inputs(fixture *f, const subject *s, bp_tensor **in, bp_value *v)
{
    for (int i = 0; i < MOST; i++) {
        in[i] = matrix_leaf(f, s->sizes[i][0], s->sizes[i][1], s->from[i]);
        v[i] = bp_arg_of_tensor(in[i]);
    }
}

static void expect_as_eager(fixture *f, const subject *s, const char *backend)
{
    bp_tensor *in[2][MOST];
    bp_value v[MOST];
    bp_outputs want = {0};
    bp_compile_options o = {.backend = backend};
    bp_callable *g = bp_compile_at(f->c, s->fn, &o, sizeof o, s->name, __FILE__, __LINE__);
    assert_non_null(g);
    for (int k = 0; k < 2; k++) {
        make_inputs(f, s, in[0], v);
        want = (bp_outputs){0};
        if (bp_run_eager(f->c, s->fn, NULL, &(bp_args){v, MOST}, &want) != BP_OK)
            fail_msg("%s: %s", s->name, bp_error_text(f->c));
        backward_all(f, &want);
        make_inputs(f, s, in[1], v);
        bp_outputs got = call_n(f, g, MOST, in[1]);
        for (uint32_t i = 0; i < want.n; i++)
            expect_near(f, s->name, got.at[i], want.at[i]);
        backward_all(f, &got);
        for (int i = 0; i < MOST; i++)
            expect_near(f, backend, bp_tensor_grad(f->c, in[1][i]), bp_tensor_grad(f->c, in[0][i]));
    }
    if (stats(f, g).eager_calls || stats(f, g).graphs != 1)
        fail_msg("%s on %s: %u eager calls, %u graphs: %s", s->name, backend, stats(f, g).eager_calls,
                 stats(f, g).graphs, buf_text(&f->log));
    if (said(f, "not differentiated ahead of time") == s->ahead && strcmp(backend, "eager") != 0)
        fail_msg("%s on %s: %s", s->name, backend, buf_text(&f->log));
    bp_callable_unref(g);
}

/* -- subjects ------------------------------------------------------------------------------------------------------ */

#define BRANCH(name) \
    static void name(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)

typedef struct { bp_tensor *w, *v; } closure;

BRANCH(product)
{
    closure *k = user;
    (void)n, (void)nout;
    out[0] = bp_mul(c, bp_sin(c, in[0]), k->w);
    out[1] = bp_exp(c, in[0]);
}

BRANCH(sum)
{
    closure *k = user;
    (void)n, (void)nout;
    out[0] = bp_add(c, in[0], bp_mul(c, k->v, 2));
    out[1] = bp_mul(c, in[0], in[0]);
}

static void with_cond(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *w = bp_arg(f, 1, "w"), *v = bp_arg(f, 2, "v"), *out[2];
    closure k = {bp_mul(c, w, 3), v};
    bp_tensor *y = bp_mul(c, x, 0.5);
    bp_cond(c, bp_gt(c, bp_sum(c, x), 0), product, sum, &k, &y, 1, out, 2);
    bp_return(f, bp_mul(c, out[0], x));
    bp_return(f, out[1]);
}

BRANCH(chosen)
{
    (void)nout;
    bp_tensor *got[2];
    bp_cond(c, bp_gt(c, bp_sum(c, in[0]), 3), product, sum, user, in, n, got, 2);
    out[0] = bp_neg(c, got[0]);
    out[1] = bp_clone(c, got[1]);
}

static void nested(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *out[2];
    closure k = {bp_arg(f, 1, "w"), bp_arg(f, 2, "v")};
    bp_cond(c, bp_gt(c, bp_sum(c, x), 0), chosen, sum, &k, &x, 1, out, 2);
    bp_return(f, out[0]);
    bp_return(f, out[1]);
}

BRANCH(for_item)
{
    closure *k = user;
    (void)n, (void)nout;
    out[0] = bp_mul(c, bp_sin(c, in[0]), in[1]);
    out[1] = bp_sum(c, bp_mul(c, in[0], k->v));
}

static void with_map(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *w = bp_arg(f, 1, "w"), *out[2];
    closure k = {NULL, bp_mul(c, bp_arg(f, 2, "v"), 2)};
    bp_map(c, for_item, &k, &x, 1, &w, 1, out, 2);
    bp_return(f, out[0]);
    bp_return(f, out[1]);
}

BRANCH(step)
{
    closure *k = user;
    (void)n, (void)nout;
    bp_tensor *next = bp_add(c, bp_mul(c, in[0], k->v), bp_sin(c, in[1]));
    out[0] = bp_clone(c, next);
    out[1] = bp_mul(c, next, in[1]);
}

static void scan_by(bp_ctx *c, bp_frame *f, const bp_scan_options *o)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *init = bp_arg(f, 1, "w"), *carry, *ys;
    closure k = {NULL, bp_arg(f, 2, "v")};
    bp_scan(c, step, &k, &init, 1, &x, 1, &carry, &ys, 1, o);
    bp_return(f, carry);
    bp_return(f, ys);
}

static void with_scan(bp_ctx *c, bp_frame *f)
{
    scan_by(c, f, NULL);
}

static void with_scan_back(bp_ctx *c, bp_frame *f)
{
    scan_by(c, f, &(bp_scan_options){sizeof(bp_scan_options), 1, 1});
}

/* Only what is carried is given back: gradients of the others do not flow. */
static void with_carry_alone(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *init = bp_arg(f, 1, "w"), *carry, *ys;
    closure k = {NULL, bp_arg(f, 2, "v")};
    bp_scan(c, step, &k, &init, 1, &x, 1, &carry, &ys, 1, NULL);
    bp_return(f, carry);
}

BRANCH(goes_on)
{
    (void)user, (void)n, (void)nout;
    out[0] = bp_lt(c, bp_sum(c, in[0]), 40);
}

BRANCH(doubles)
{
    closure *k = user;
    (void)n, (void)nout;
    out[0] = bp_add(c, bp_mul(c, in[0], 2), k->v);
}

static void with_while(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y;
    closure k = {NULL, bp_mul(c, bp_arg(f, 1, "w"), bp_arg(f, 2, "v"))};
    bp_while_loop(c, goes_on, doubles, &k, &x, 1, NULL, 0, &y);
    bp_return(f, y);
}

/* ahead: it is differentiated ahead of time. */
static const subject subjects[] = {
    {"with_cond", with_cond, {{3, 0}, {3, 0}, {3, 0}}, {0.5f, 1, 2}, true},
    {"with_cond", with_cond, {{3, 0}, {3, 0}, {3, 0}}, {-5, 1, 2}, true},
    {"nested", nested, {{3, 0}, {3, 0}, {3, 0}}, {2, 1, 2}, true},
    {"nested", nested, {{3, 0}, {3, 0}, {3, 0}}, {0, 1, 2}, true},
    {"with_map", with_map, {{4, 3}, {3, 0}, {3, 0}}, {0.5f, 1, 2}, true},
    {"with_scan", with_scan, {{4, 3}, {3, 0}, {3, 0}}, {0.5f, 1, 0.5f}, true},
    {"with_scan_back", with_scan_back, {{3, 4}, {3, 0}, {3, 0}}, {0.5f, 1, 0.5f}, true},
    {"with_carry_alone", with_carry_alone, {{4, 3}, {3, 0}, {3, 0}}, {0.5f, 1, 0.5f}, true},
    {"with_while", with_while, {{3, 0}, {3, 0}, {3, 0}}, {0.5f, 1, 0.5f}, false},
};

static void gradients_are_those_of_eager(void **state)
{
    (void)state;
    static const char *const backends[] = {"eager", "aot_eager", "aot_eager_default_partitioner",
                                           "aot_eager_decomp_partition"};
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
        for (size_t b = 0; b < sizeof backends / sizeof *backends; b++) {
            fixture *f = fixture_new();
            expect_as_eager(f, &subjects[i], backends[b]);
            fixture_free(f);
        }
}

static void the_backward_of_a_cond_is_a_cond_and_of_a_scan_a_scan(void **state)
{
    (void)state;
    bp_tensor *in[MOST];
    bp_value v[MOST];
    bp_compile_options o = {.backend = "aot_eager"};
    setenv("BACKPLANE_LOGS", "aot", 1);
    fixture *g = fixture_new();
    unsetenv("BACKPLANE_LOGS");
    static const struct { bp_fn fn; const char *what; int subject; } cases[] = {
        {with_cond, "= higher_order.cond(%gt, %true_graph_1, %false_graph_1, [", 0},
        {with_map, "= higher_order.map_impl(%body_graph_1, [", 4},
        {with_scan, "= higher_order.scan(%scan_combine_graph_2, [", 5},
    };
    for (size_t i = 0; i < 3; i++) {
        buf_fini(&g->log);
        bp_callable *k = bp_compile(g->c, cases[i].fn, &o);
        make_inputs(g, &subjects[cases[i].subject], in, v);
        bp_outputs out = call_n(g, k, MOST, in);
        backward_all(g, &out);
        const char *backward = strstr(buf_text(&g->log), "backward graph of");
        assert_contains(backward, cases[i].what);
        bp_callable_unref(k);
    }
    fixture_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        T(gradients_are_those_of_eager),
        T(the_backward_of_a_cond_is_a_cond_and_of_a_scan_a_scan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
