/* onednn-cpu on graphs with symbols: a layer of an encoder is compiled once for all lengths, and computes what a graph
 * of that very length computes there. */
#include "tests/lib/world.h"
#include <backplane/nn.h>
#include <math.h>
#include <stdlib.h>

/* %s: the header, and the length at each place. */
static const char LAYER[] =
    "graph layer {\n"
    "  $symbols"
    "  %x: f32[2, $n, 8] = placeholder \"x\" user\n"
    "  %w: f32[24, 8] = placeholder \"in.w\" parameter\n"
    "  %b: f32[24] = placeholder \"in.b\" parameter\n"
    "  %v: f32[8, 8] = placeholder \"out.w\" parameter\n"
    "  %u: f32[8, 8] = placeholder \"up.w\" parameter\n"
    "  %all = aten.linear.default(%x, %w, %b)\n"
    "  %parts = aten.split.Tensor(%all, 8, 2)\n"
    "  %q = <built-in function getitem>(%parts, 0)\n"
    "  %k = <built-in function getitem>(%parts, 1)\n"
    "  %d = <built-in function getitem>(%parts, 2)\n"
    "  %q1 = aten.view.default(%q, [2, $n, 2, 4])\n"
    "  %q2 = aten.permute.default(%q1, [0, 2, 1, 3])\n"
    "  %q3 = aten.reshape.default(%q2, [4, $n, 4])\n"
    "  %k1 = aten.view.default(%k, [2, $n, 2, 4])\n"
    "  %k2 = aten.permute.default(%k1, [0, 2, 3, 1])\n"
    "  %k3 = aten.reshape.default(%k2, [4, 4, $n])\n"
    "  %d1 = aten.view.default(%d, [2, $n, 2, 4])\n"
    "  %d2 = aten.permute.default(%d1, [0, 2, 1, 3])\n"
    "  %d3 = aten.reshape.default(%d2, [4, $n, 4])\n"
    "  %scores = aten.bmm.default(%q3, %k3)\n"
    "  %soft = aten._softmax.default(%scores, -1, False)\n"
    "  %mixed = aten.bmm.default(%soft, %d3)\n"
    "  %m1 = aten.view.default(%mixed, [2, 2, $n, 4])\n"
    "  %m2 = aten.permute.default(%m1, [0, 2, 1, 3])\n"
    "  %m3 = aten.reshape.default(%m2, [2, $n, 8])\n"
    "  %out = aten.linear.default(%m3, %v)\n"
    "  %sum = aten.add.Tensor(%out, %x)\n"
    "  %up = aten.linear.default(%sum, %u)\n"
    "  %act = aten.relu.default(%up)\n"
    "  %end = aten.tanh.default(%act)\n"
    "  output(%end, %sum)\n"
    "}\n";

/* The layer's text for a length, or for all. For the caller to free. */
static char *text_of(const char *n)
{
    buf out = {0};
    for (const char *at = LAYER; *at; at++) {
        if (strncmp(at, "$n", 2) == 0) {
            buf_puts(&out, n);
            at++;
        } else if (strncmp(at, "$symbols", 8) == 0) {
            buf_puts(&out, n[0] == 's' ? "symbol s0 in [2, inf] hint 20\n" : "\n");
            at += 7;
        } else {
            buf_putc(&out, *at);
        }
    }
    char *text = strdup(buf_text(&out));
    buf_fini(&out);
    return text;
}

static world *open_with(const char *policy)
{
    char ini[256];
    snprintf(ini, sizeof ini, "[host]\nfallback = %s\nprobe_helper = @helper@\n[backend onednn-cpu]\n"
             "library = @plugins@/backplane-onednn.so\n", policy);
    return world_open(ini);
}

static program *build(world *w, const char *name, const char *n)
{
    backend *b;
    program *p = NULL;
    char *text = text_of(n);
    bp_graph_module *gm = world_graph(w, text);
    world_ok(w, backend_resolve(w->c, name, NULL, NULL, &b));
    world_ok(w, program_compile(w->c, gm, b, &p));
    gm_unref(gm);
    free(text);
    return p;
}

static bp_tensor *numbers(world *w, uint32_t rank, const int64_t *sizes)
{
    bp_tensor *t = tensor_contiguous_new(w->c, BP_F32, rank, sizes);
    assert_non_null(t);
    for (int64_t i = 0; i < tensor_nelem(t); i++)
        ((float *)tensor_ptr(t))[i] = (float)(i * 37 % 23) / 16 - 0.6f;
    return t;
}

static void run(world *w, program *p, int64_t n, bp_tensor **out)
{
    bp_tensor *in[] = {numbers(w, 3, (int64_t[]){2, n, 8}), numbers(w, 2, (int64_t[]){24, 8}),
                       numbers(w, 1, (int64_t[]){24}), numbers(w, 2, (int64_t[]){8, 8}),
                       numbers(w, 2, (int64_t[]){8, 8})};
    world_ok(w, program_run(w->c, p, &(program_io){.inputs = in, .ninputs = 5, .outputs = out, .noutputs = 2}));
    for (int i = 0; i < 5; i++)
        tensor_unref(in[i]);
}

static void expect_equal(bp_tensor *a, bp_tensor *b, float tolerance)
{
    assert_int_equal(tensor_nelem(a), tensor_nelem(b));
    const float *x = tensor_ptr(a), *y = tensor_ptr(b);
    for (int64_t i = 0; i < tensor_nelem(a); i++)
        if (!(fabsf(x[i] - y[i]) <= tolerance * (1 + fabsf(y[i]))))
            fail_msg("element %d is %g, expected %g", (int)i, (double)x[i], (double)y[i]);
}

static void compare(world *w, program *dynamic, const char *name, int64_t n, float tolerance)
{
    char length[24];
    bp_tensor *got[2], *want[2];
    snprintf(length, sizeof length, "%lld", (long long)n);
    program *fixed = build(w, name, length);
    run(w, dynamic, n, got);
    run(w, fixed, n, want);
    for (int i = 0; i < 2; i++) {
        expect_equal(got[i], want[i], tolerance);
        tensor_unref(got[i]);
        tensor_unref(want[i]);
    }
    program_unref(fixed);
}

static void a_layer_is_compiled_once_for_all_lengths(void **state)
{
    (void)state;
    world *w = open_with("silent");
    program *p = build(w, "onednn-cpu", "s0");
    for (int64_t n = 16; n <= 512; n += n < 96 ? 1 : 37)
        compare(w, p, "onednn-cpu", n, 0); /* the same primitives: the same bits */
    compare(w, p, "eager", 33, 1e-5f);
    assert_true(program_variants(p) <= 3);
    assert_int_equal(program_fallbacks(p), 0);
    buf shown = {0};
    program_print_assignment(p, &shown);
    print_message("# %.400s\n", buf_text(&shown));
    assert_contains(buf_text(&shown), "all (aten.linear.default) -> onednn-cpu -> supported");
    assert_contains(buf_text(&shown), "scores (aten.bmm.default) -> onednn-cpu -> supported");
    assert_contains(buf_text(&shown), "act (aten.relu.default) -> onednn-cpu -> supported");
    buf_fini(&shown);
    program_unref(p);
    world_close(w);
}

/* More lengths than are kept, and back: what was dropped is made again. */
static void lengths_that_were_dropped_come_back(void **state)
{
    (void)state;
    world *w = open_with("silent");
    program *p = build(w, "onednn-cpu", "s0");
    bp_tensor *first[2], *again[2];
    run(w, p, 5, first);
    for (int64_t n = 6; n < 86; n++) {
        run(w, p, n, again);
        tensor_unref(again[0]);
        tensor_unref(again[1]);
    }
    run(w, p, 5, again);
    for (int i = 0; i < 2; i++) {
        expect_equal(again[i], first[i], 0);
        tensor_unref(first[i]);
        tensor_unref(again[i]);
    }
    assert_int_equal(program_variants(p), 1);
    program_unref(p);
    world_close(w);
}

/* -- behind calls -------------------------------------------------------------------------------------------------- */

static bp_module *weights;

static void encoder(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, bp_nn_encoder_layer(c, f, weights, "enc", x, &(bp_nn_encoder_options){.heads = 2}));
}

static void calls_of_an_encoder_layer_compile_twice_for_all_lengths(void **state)
{
    (void)state;
    world *w = open_with("silent");
    bp_ctx *c = w->c;
    bp_callable_stats stats = {.size = sizeof stats};
    bp_set_grad_enabled(c, 0);
    weights = bp_module_new(c);
    world_ok(w, bp_nn_encoder_layer_new(c, weights, "enc", 32, 64, &(bp_nn_encoder_options){.heads = 2}));
    bp_callable *g = bp_compile(c, encoder, &(bp_compile_options){.backend = "onednn-cpu"});
    bp_callable *eager = bp_compile(c, encoder, &(bp_compile_options){.backend = "eager"});
    for (int64_t n = 16; n <= 512; n += n < 40 ? 1 : 59) {
        bp_tensor *x = numbers(w, 3, (int64_t[]){2, n, 32});
        scope_push(c);
        expect_equal(bp_call1(c, g, 1, &x), bp_call1(c, eager, 1, &x), 1e-5f);
        world_ok(w, bp_error(c));
        scope_pop(c);
        tensor_unref(x);
    }
    world_ok(w, bp_stats(c, g, &stats));
    assert_int_equal(stats.graphs, 2);
    assert_int_equal(stats.eager_calls, 0);
    bp_callable_unref(g);
    bp_callable_unref(eager);
    bp_module_unref(weights);
    world_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layer_is_compiled_once_for_all_lengths),
        cmocka_unit_test(lengths_that_were_dropped_come_back),
        cmocka_unit_test(calls_of_an_encoder_layer_compile_twice_for_all_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
