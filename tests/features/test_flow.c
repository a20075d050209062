/* F053: cond, while_loop, map and scan. PyTorch's recorded answers (tests/golden/flow.jsonl, written by
 * tests/torch/flow.py), values and gradients, on eager and on four backends; and what a backend sees of the graphs. */
#include "tests/lib/world.h"
#include <backplane/plugin.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

enum { INPUTS = 3, MOST = 64 };

static const char *const INI =
    "[host]\nprobe_helper = @helper@\n"
    "[backend onednn-cpu]\nlibrary = @plugins@/backplane-onednn.so\n"
    "[backend debug-print]\nlibrary = @plugins@/backplane-debug.so\n"
    "[backend fallback]\nlibrary = @plugins@/backplane-compose.so\nopt.chain = ?onednn-cpu, eager\n";
static const char *const backends[] = {"eager", "aot_eager", "onednn-cpu", "debug-print", "fallback"};

/* -- the functions of tests/torch/flow.py -------------------------------------------------------------------------- */

#define BRANCH(name) \
    static void name(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)
#define UNUSED (void)c, (void)user, (void)in, (void)n, (void)nout

typedef struct { bp_tensor *w, *v; } closure;

#define X bp_arg(f, 0, "x")
#define W bp_arg(f, 1, "w")
#define V bp_arg(f, 2, "v")

BRANCH(sine_by_w) { UNUSED; out[0] = bp_mul(c, bp_sin(c, in[0]), ((closure *)user)->w); }
BRANCH(plus_two_v) { UNUSED; out[0] = bp_add(c, in[0], bp_mul(c, ((closure *)user)->v, 2)); }

static void cond_plain(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = X, *y;
    closure k = {W, V};
    bp_cond(c, bp_gt(c, bp_sum(c, x), 0), sine_by_w, plus_two_v, &k, &x, 1, &y, 1);
    bp_return(f, y);
}

BRANCH(two_yes)
{
    UNUSED;
    out[0] = bp_mul(c, bp_sin(c, in[0]), ((closure *)user)->w);
    out[1] = bp_exp(c, in[0]);
}
BRANCH(two_no)
{
    UNUSED;
    out[0] = bp_add(c, in[0], ((closure *)user)->v);
    out[1] = bp_mul(c, in[0], in[0]);
}

static void cond_two(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = X, *half = bp_mul(c, x, 0.5), *out[2];
    closure k = {W, V};
    bp_cond(c, bp_gt(c, bp_sum(c, x), 0), two_yes, two_no, &k, &half, 1, out, 2);
    bp_return(f, bp_mul(c, out[0], x));
    bp_return(f, out[1]);
}

BRANCH(minus_w) { UNUSED; out[0] = bp_neg(c, bp_mul(c, in[0], ((closure *)user)->w)); }
BRANCH(minus_square)
{
    UNUSED;
    out[0] = bp_neg(c, bp_add(c, bp_mul(c, in[0], in[0]), ((closure *)user)->v));
}
BRANCH(inner)
{
    bp_cond(c, bp_gt(c, bp_sum(c, in[0]), 3), minus_w, minus_square, user, in, n, out, nout);
}
BRANCH(cosine_by_v) { UNUSED; out[0] = bp_mul(c, bp_cos(c, in[0]), ((closure *)user)->v); }

static void cond_nested(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = X, *y;
    closure k = {W, V};
    bp_cond(c, bp_gt(c, bp_sum(c, x), 0), inner, cosine_by_v, &k, &x, 1, &y, 1);
    bp_return(f, y);
}

BRANCH(item_plain)
{
    UNUSED;
    out[0] = bp_add(c, bp_mul(c, bp_sin(c, in[0]), in[1]), ((closure *)user)->v);
}

static void map_plain(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = X, *w = W, *y;
    closure k = {NULL, V};
    bp_map(c, item_plain, &k, &x, 1, &w, 1, &y, 1);
    bp_return(f, y);
}

BRANCH(item_two)
{
    UNUSED;
    out[0] = bp_mul(c, in[0], in[1]);
    out[1] = bp_sum(c, bp_mul(c, in[0], ((closure *)user)->v));
}

static void map_two(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = X, *w = W, *y[2];
    closure k = {NULL, V};
    bp_map(c, item_two, &k, &x, 1, &w, 1, y, 2);
    bp_return(f, y[0]);
    bp_return(f, y[1]);
}

BRANCH(step_sine)
{
    UNUSED;
    out[0] = bp_add(c, bp_mul(c, in[0], ((closure *)user)->v), bp_sin(c, in[1]));
    out[1] = bp_mul(c, out[0], in[1]);
}
BRANCH(step_exp)
{
    UNUSED;
    out[0] = bp_add(c, bp_mul(c, in[0], ((closure *)user)->v), in[1]);
    out[1] = bp_exp(c, out[0]);
}

static void scan(bp_ctx *c, bp_frame *f, bp_branch_fn step, const bp_scan_options *o)
{
    bp_tensor *x = X, *w = W, *carry, *ys;
    closure k = {NULL, V};
    bp_scan(c, step, &k, &w, 1, &x, 1, &carry, &ys, 1, o);
    bp_return(f, carry);
    bp_return(f, ys);
}

static void scan_plain(bp_ctx *c, bp_frame *f) { scan(c, f, step_sine, NULL); }
static void scan_back(bp_ctx *c, bp_frame *f)
{
    scan(c, f, step_exp, &(bp_scan_options){.size = sizeof(bp_scan_options), .reverse = 1, .dim = 1});
}

BRANCH(below_forty) { UNUSED; out[0] = bp_lt(c, bp_sum(c, in[0]), 40); }
BRANCH(twice_and_more)
{
    closure *k = user;
    UNUSED;
    out[0] = bp_add(c, bp_mul(c, in[0], 2), bp_mul(c, k->w, k->v));
    out[1] = bp_add(c, in[1], 1);
}

static void while_plain(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = X, *out[2];
    closure k = {W, V};
    bp_tensor *carried[2] = {x, bp_mul(c, bp_sum(c, x), 0)};
    bp_while_loop(c, below_forty, twice_and_more, &k, carried, 2, NULL, 0, out);
    bp_return(f, out[0]);
    bp_return(f, out[1]);
}

static const struct { const char *name; bp_fn fn; } functions[] = {
    {"cond_plain", cond_plain}, {"cond_two", cond_two},     {"cond_nested", cond_nested}, {"map_plain", map_plain},
    {"map_two", map_two},       {"scan_plain", scan_plain}, {"scan_back", scan_back},     {"while_plain", while_plain},
};

static bp_fn function_of(const char *name)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!strcmp(functions[i].name, name))
            return functions[i].fn;
    fail_msg("no function is called \"%s\"", name);
    return NULL;
}

/* -- comparing ----------------------------------------------------------------------------------------------------- */

static bp_tensor *filled(world *w, const json_t *sizes, double first, bool leaf)
{
    int64_t at[4], n = 1;
    double v[MOST];
    for (size_t i = 0; i < json_array_size(sizes); i++)
        n *= at[i] = json_integer_value(json_array_get(sizes, i));
    for (int64_t i = 0; i < n; i++)
        v[i] = first + 0.25 * (double)(i * 5 % 7);
    bp_tensor *t = bp_tensor_from(w->c, BP_F64, (uint32_t)json_array_size(sizes), at, v);
    bp_tensor_set_requires_grad(w->c, t, leaf);
    return t;
}

/* want: null, or the elements. Where no gradient flows there may be none or zeros: PyTorch's cond gives zeros to what
 * the branch taken does not use, and so do compiled graphs; the tape knows that nothing flows. */
static void expect(world *w, const char *what, bp_tensor *t, const json_t *want)
{
    double v[MOST] = {0};
    for (size_t i = 0; !t && i < json_array_size(want); i++)
        if (json_number_value(json_array_get(want, i)) != 0)
            fail_msg("%s: there is none", what);
    if (!t)
        return;
    size_t n = (size_t)bp_tensor_numel(t);
    assert_true(n <= MOST);
    world_ok(w, bp_tensor_read(w->c, t, v, n * sizeof *v));
    assert_true(!json_is_array(want) || json_array_size(want) == n);
    for (size_t i = 0; i < n; i++) {
        double right = json_is_array(want) ? json_number_value(json_array_get(want, i)) : 0;
        if (fabs(v[i] - right) > 1e-9 * (1 + fabs(right)))
            fail_msg("%s: element %zu is %.12g, PyTorch has %.12g", what, i, v[i], right);
    }
}

static void expect_shape(const char *what, bp_tensor *t, const json_t *want)
{
    bool same = bp_tensor_rank(t) == json_array_size(want);
    for (uint32_t d = 0; same && d < bp_tensor_rank(t); d++)
        same = bp_tensor_size(t, d) == json_integer_value(json_array_get(want, d));
    if (!same)
        fail_msg("%s: its shape is not PyTorch's", what);
}

static void backward(world *w, const bp_outputs *out)
{
    bp_tensor *loss = NULL;
    for (uint32_t i = 0; i < out->n; i++) {
        bp_tensor *s = bp_mul(w->c, bp_sum(w->c, bp_mul(w->c, out->at[i], out->at[i])), (double)i + 1);
        loss = loss ? bp_add(w->c, loss, s) : s;
    }
    world_ok(w, bp_backward(w->c, loss, NULL, 0));
}

/* on NULL: as ordinary code. */
static void check_case(world *w, const json_t *k, const char *on)
{
    const char *name = json_string_value(json_object_get(k, "case"));
    const json_t *grads = json_object_get(k, "grads"), *results = json_object_get(k, "results");
    json_t *three = json_pack("[i]", 3);
    bp_fn fn = function_of(name);
    char what[100];
    bp_compile_options o = {.backend = on};
    bp_callable *g = on ? bp_compile_at(w->c, fn, &o, sizeof o, name, __FILE__, __LINE__) : NULL;
    world_ok(w, bp_error(w->c));
    for (int round = 0; round < 2; round++) {
        bp_tensor *in[INPUTS] = {filled(w, json_object_get(k, "sizes"),
                                        json_number_value(json_object_get(k, "first")), grads != NULL),
                                 filled(w, three, 1, grads != NULL), filled(w, three, 0.5, grads != NULL)};
        bp_value v[INPUTS] = {bp_arg_of_tensor(in[0]), bp_arg_of_tensor(in[1]), bp_arg_of_tensor(in[2])};
        bp_outputs out = {0};
        world_ok(w, g ? bp_call(w->c, g, &(bp_args){v, INPUTS}, &out)
                      : bp_run_eager(w->c, fn, NULL, &(bp_args){v, INPUTS}, &out));
        assert_int_equal(out.n, json_array_size(results));
        for (uint32_t i = 0; i < out.n; i++) {
            snprintf(what, sizeof what, "%s on %s, result %u", name, on ? on : "nothing", i);
            expect(w, what, out.at[i], json_array_get(results, i));
            expect_shape(what, out.at[i], json_array_get(json_object_get(k, "shapes"), i));
        }
        if (grads)
            backward(w, &out);
        for (uint32_t i = 0; grads && i < INPUTS; i++) {
            snprintf(what, sizeof what, "%s on %s, gradient %u", name, on ? on : "nothing", i);
            expect(w, what, bp_tensor_grad(w->c, in[i]), json_array_get(grads, i));
        }
    }
    bp_callable_stats s = {.size = sizeof s};
    if (g)
        world_ok(w, bp_stats(w->c, g, &s));
    if (s.eager_calls)
        fail_msg("%s on %s ran eagerly: %s", name, on, buf_text(&w->log));
    bp_callable_unref(g);
    json_decref(three);
}

static uint32_t check_all(world *w, const char *on)
{
    char path[1024], line[8192];
    uint32_t n = 0;
    snprintf(path, sizeof path, "%s/tests/golden/flow.jsonl", getenv("top_srcdir"));
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    for (; fgets(line, sizeof line, in); n++) {
        json_t *k = json_loads(line, 0, NULL);
        assert_non_null(k);
        bp_scope_begin(w->c);
        check_case(w, k, on);
        bp_scope_end(w->c);
        json_decref(k);
    }
    (void)fclose(in);
    return n;
}

static void F053_control_flow_gives_pytorchs_values_and_gradients_eagerly(void **state)
{
    (void)state;
    world *w = world_open(INI);
    assert_int_equal(check_all(w, NULL), 13);
    world_close(w);
}

static void F053_control_flow_gives_them_compiled_on_every_backend(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        world *w = world_open(INI);
        assert_int_equal(check_all(w, backends[i]), 13);
        world_close(w);
    }
}

/* -- what a backend sees ------------------------------------------------------------------------------------------- */

static buf seen;

/* Reads the graphs of a cond: by the call's argument, and by the get_attr itself. */
static bp_compiled *reading(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    for (uint32_t i = 0; i < bp_node_count(gm); i++) {
        uint32_t at = bp_node_at(gm, i);
        bp_graph_module *yes = bp_subgraph(gm, at, "true_graph"), *own = bp_subgraph(gm, at, NULL);
        if (own)
            buf_printf(&seen, "%s of %u nodes; ", bp_node_name(gm, at), bp_node_count(own));
        if (!yes)
            continue;
        buf_printf(&seen, "%s:", bp_node_target(gm, at));
        for (uint32_t k = 0; k < bp_node_count(yes); k++)
            buf_printf(&seen, " %s", bp_node_target(yes, bp_node_at(yes, k)));
        assert_null(bp_subgraph(gm, at, "operands"));
        assert_null(bp_subgraph(gm, at, "nothing"));
    }
    return bp_forward(gm);
}

static void F053_a_backend_gets_sub_graphs_as_graph_modules(void **state)
{
    (void)state;
    world *w = world_open(INI);
    bp_scope_begin(w->c);
    bp_compile_options o = {.backend_fn = reading};
    bp_callable *g = bp_compile(w->c, cond_plain, &o);
    json_t *three = json_pack("[i]", 3);
    bp_value v[INPUTS];
    bp_outputs out = {0};
    for (int i = 0; i < INPUTS; i++)
        v[i] = bp_arg_of_tensor(filled(w, three, 1, false));
    world_ok(w, bp_call(w->c, g, &(bp_args){v, INPUTS}, &out));
    assert_contains(buf_text(&seen), "true_graph_0 of 6 nodes; false_graph_0 of 6 nodes; ");
    assert_contains(buf_text(&seen), "higher_order.cond: arg0_1 arg1_1 arg2_1 aten.sin.default aten.mul.Tensor output");
    buf_fini(&seen);
    bp_callable_unref(g);
    json_decref(three);
    bp_scope_end(w->c);
    world_close(w);
}

static void F053_debug_print_shows_sub_graphs(void **state)
{
    (void)state;
    world *w = world_open(INI);
    bp_scope_begin(w->c);
    bp_callable *g = bp_compile(w->c, while_plain, &(bp_compile_options){.backend = "debug-print"});
    json_t *three = json_pack("[i]", 3);
    bp_value v[INPUTS];
    bp_outputs out = {0};
    for (int i = 0; i < INPUTS; i++)
        v[i] = bp_arg_of_tensor(filled(w, three, 1, false));
    world_ok(w, bp_call(w->c, g, &(bp_args){v, INPUTS}, &out));
    assert_contains(buf_text(&w->shown), "\nwhile_loop_body_graph_0:\nopcode");
    assert_contains(buf_text(&w->shown), "    class while_loop_cond_graph_0(torch.nn.Module):\n");
    bp_callable_unref(g);
    json_decref(three);
    bp_scope_end(w->c);
    world_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(F053_control_flow_gives_pytorchs_values_and_gradients_eagerly),
        cmocka_unit_test(F053_control_flow_gives_them_compiled_on_every_backend),
        cmocka_unit_test(F053_a_backend_gets_sub_graphs_as_graph_modules),
        cmocka_unit_test(F053_debug_print_shows_sub_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
