/* cond, while_loop, map and scan: one node of the graph each, without a break; eager and compiled give the same. */
#include "tests/unit/compile/fixture.h"

/* Calls fn eagerly and compiled, `times` with each input, and expects the same. */
static void expect_as_eager(fixture *f, bp_callable *g, bp_fn fn, void *user, uint32_t n, bp_tensor *const *in)
{
    bp_value v[8];
    bp_outputs want = {0};
    for (uint32_t i = 0; i < n; i++)
        v[i] = bp_arg_of_tensor(in[i]);
    if (bp_run_eager(f->c, fn, user, &(bp_args){v, n}, &want) != BP_OK)
        fail_msg("%s", bp_error_text(f->c));
    bp_outputs got = call_n(f, g, n, in);
    assert_int_equal(got.n, want.n);
    for (uint32_t i = 0; i < got.n; i++) {
        assert_int_equal(bp_tensor_rank(got.at[i]), bp_tensor_rank(want.at[i]));
        assert_int_equal(bp_tensor_numel(got.at[i]), bp_tensor_numel(want.at[i]));
        for (int64_t k = 0; k < bp_tensor_numel(got.at[i]); k++)
            assert_true(at(f, got.at[i], k) == at(f, want.at[i], k));
    }
}

/* One graph, one capture, no break: both outcomes are answered by it. */
static void expect_one_graph(fixture *f, bp_callable *g)
{
    bp_callable_stats s = stats(f, g);
    if (s.eager_calls)
        fail_msg("%u calls ran eagerly: %s", s.eager_calls, buf_text(&f->log));
    assert_int_equal(s.graphs, 1);
    assert_int_equal(s.captures, 1);
    assert_int_equal(s.break_sites, 0);
}

static bp_tensor *rows(fixture *f, int64_t n, int64_t m)
{
    float v[64];
    int64_t sizes[2] = {n, m};
    for (int64_t i = 0; i < n * m; i++)
        v[i] = (float)(i * 7 % 11) - 4;
    return bp_tensor_from(f->c, BP_F32, 2, sizes, v);
}

/* -- cond ---------------------------------------------------------------------------------------------------------- */

static void sine(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)
{
    (void)user, (void)n, (void)nout;
    out[0] = bp_sin(c, in[0]);
}

static void cosine(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)
{
    (void)user, (void)n, (void)nout;
    out[0] = bp_cos(c, in[0]);
}

static void chooses(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y;
    bp_cond(c, bp_gt(c, bp_sum(c, x), 0), sine, cosine, NULL, &x, 1, &y, 1);
    bp_return(f, bp_mul(c, y, 2));
}

static void a_cond_is_one_node_with_two_graphs(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, chooses);
    for (int i = 0; i < 4; i++) {
        bp_tensor *x = FLOATS(f, i % 2 ? 3 : -3, 1);
        expect_as_eager(f, g, chooses, NULL, 1, &x);
    }
    expect_one_graph(f, g);
    const char *table = buf_text(&f->tables);
    assert_contains(table, "get_attr       true_graph_0   true_graph_0");
    assert_contains(table, "higher_order.cond            (gt, true_graph_0, false_graph_0, [x])");
    assert_contains(table, "\ntrue_graph_0:\nopcode");
    assert_contains(table, "call_function  sin     aten.sin.default  (arg0_1,)  {}");
    bp_callable_unref(g);
}

typedef struct { bp_tensor *scale, *shift; bp_frame *f; bp_module *m; } closure;

static void scaled(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)
{
    closure *k = user;
    (void)n, (void)nout;
    bp_tensor *w = bp_attr(k->f, k->m, "w");
    out[0] = bp_mul(c, bp_mul(c, in[0], k->scale), w);
    out[1] = bp_add(c, in[0], w);
}

static void shifted(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)
{
    closure *k = user;
    (void)n, (void)nout;
    out[0] = bp_add(c, in[0], bp_mul(c, k->shift, k->scale));
    out[1] = bp_sub(c, in[0], k->shift);
}

static bp_module *weights;

static void lifts(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *out[2];
    closure k = {bp_arg(f, 1, "scale"), bp_exp(c, x), f, weights};
    bp_cond(c, bp_gt(c, bp_sum(c, x), 0), scaled, shifted, &k, &x, 1, out, 2);
    bp_return(f, out[0]);
    bp_return(f, bp_add(c, out[1], bp_attr(f, weights, "w")));
}

static void what_a_branch_reads_from_outside_becomes_an_operand(void **state)
{
    fixture *f = *state;
    weights = bp_module_new(f->c);
    bp_module_add_parameter(f->c, weights, "w", FLOATS(f, 5, 6));
    bp_callable *g = COMPILE(f, lifts);
    for (int i = 0; i < 4; i++) {
        bp_tensor *in[2] = {FLOATS(f, i % 2 ? 1 : -1, 0), FLOATS(f, 2, (float)i)};
        expect_as_eager(f, g, lifts, NULL, 2, in);
    }
    expect_one_graph(f, g);
    assert_contains(buf_text(&f->tables), "[x, scale, w, exp]");
    bp_add_inplace(f->c, bp_module_get(f->c, weights, "w"), 1);
    bp_tensor *in[2] = {FLOATS(f, 1, 0), FLOATS(f, 2, 3)};
    expect_as_eager(f, g, lifts, NULL, 2, in);
    bp_callable_unref(g);
    bp_module_unref(weights);
}

/* A branch may write what it made, and look at it through views. */
static void writes_its_own(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)
{
    (void)user, (void)n, (void)nout;
    bp_tensor *y = bp_clone(c, in[0]), *first = bp_select(c, y, 0, 0);
    bp_mul_inplace(c, first, 10);
    bp_add_inplace(c, y, in[0]);
    out[0] = bp_mul(c, y, first);
}

static void inner(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)
{
    (void)nout;
    bp_cond(c, bp_lt(c, bp_sum(c, in[0]), 10), sine, writes_its_own, user, in, n, out, 1);
    out[0] = bp_neg(c, out[0]);
}

static void nests(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y;
    bp_cond(c, bp_gt(c, bp_sum(c, x), 0), inner, writes_its_own, NULL, &x, 1, &y, 1);
    bp_return(f, y);
}

static void graphs_nest_and_hold_writes_to_what_they_made(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, nests);
    for (int i = 0; i < 3; i++) {
        bp_tensor *x = FLOATS(f, (float)(i * 8 - 4), 1, 2);
        expect_as_eager(f, g, nests, NULL, 1, &x);
    }
    expect_one_graph(f, g);
    assert_contains(buf_text(&f->tables), "\nfalse_graph_0:\n");
    bp_callable_unref(g);
}

/* -- loops --------------------------------------------------------------------------------------------------------- */

static void is_small(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)
{
    (void)user, (void)n, (void)nout;
    out[0] = bp_lt(c, bp_sum(c, in[0]), 50);
}

static void grows(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)
{
    closure *k = user;
    (void)n, (void)nout;
    out[0] = bp_add(c, bp_mul(c, in[0], in[2]), k->shift);
    out[1] = bp_add(c, in[1], 1);
}

static void loops(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *factor = bp_arg(f, 1, "factor"), *out[2];
    closure k = {.shift = bp_abs(c, x)};
    bp_tensor *carried[2] = {x, bp_mul(c, bp_sum(c, x), 0)};
    bp_while_loop(c, is_small, grows, &k, carried, 2, &factor, 1, out);
    bp_return(f, out[0]);
    bp_return(f, out[1]);
}

static void a_while_loop_runs_as_often_as_data_say(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, loops);
    for (int i = 0; i < 5; i++) {
        bp_tensor *in[2] = {FLOATS(f, (float)(i * i * 4) + 1, 2), FLOATS(f, 1.5f, 2)};
        expect_as_eager(f, g, loops, NULL, 2, in);
    }
    expect_one_graph(f, g);
    assert_contains(buf_text(&f->tables),
                    "while_loop_cond_graph_0, while_loop_body_graph_0, [x, mul], [factor, abs_1]");
    bp_callable_unref(g);
}

static void items(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)
{
    (void)user, (void)n, (void)nout;
    out[0] = bp_mul(c, bp_sin(c, in[0]), in[1]);
    out[1] = bp_sum(c, in[0]);
}

static void maps(bp_ctx *c, bp_frame *f)
{
    bp_tensor *xs = bp_arg(f, 0, "xs"), *w = bp_arg(f, 1, "w"), *out[2];
    bp_map(c, items, NULL, &xs, 1, &w, 1, out, 2);
    bp_return(f, out[0]);
    bp_return(f, out[1]);
}

static void a_map_stacks_what_each_item_gives(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, maps);
    bp_tensor *in[2] = {rows(f, 3, 4), FLOATS(f, 1, 2, 3, 4)};
    for (int i = 0; i < 2; i++)
        expect_as_eager(f, g, maps, NULL, 2, in);
    expect_one_graph(f, g);
    assert_contains(buf_text(&f->tables), "higher_order.map_impl        (body_graph_0, [xs], [w])");
    bp_callable_unref(g);
}

static void runs_on(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)
{
    (void)user, (void)n, (void)nout;
    out[0] = bp_add(c, bp_mul(c, in[0], 0.5), in[1]);
    out[1] = bp_mul(c, in[0], in[1]);
}

static void scans(bp_ctx *c, bp_frame *f)
{
    bp_tensor *xs = bp_arg(f, 0, "xs"), *init = bp_arg(f, 1, "init"), *carry, *ys;
    const bp_scan_options *o = bp_user(f);
    bp_scan(c, runs_on, NULL, &init, 1, &xs, 1, &carry, &ys, 1, o);
    bp_return(f, carry);
    bp_return(f, ys);
}

static void a_scan_carries_forward_and_backward_along_any_dimension(void **state)
{
    fixture *f = *state;
    static bp_scan_options o[] = {{sizeof o[0], 0, 0}, {sizeof o[0], 1, 0}, {sizeof o[0], 0, 1}, {sizeof o[0], 1, -1}};
    for (size_t i = 0; i < 5; i++) {
        bp_scan_options *how = i ? &o[i - 1] : NULL;
        bp_compile_options with = {.backend_fn = table_backend, .user = how};
        bp_callable *g = bp_compile(f->c, scans, &with);
        bp_tensor *in[2] = {rows(f, 3, 4), how && how->dim ? FLOATS(f, 1, 2, 3) : FLOATS(f, 1, 2, 3, 4)};
        for (int k = 0; k < 2; k++)
            expect_as_eager(f, g, scans, how, 2, in);
        expect_one_graph(f, g);
        bp_callable_unref(g);
    }
    assert_contains(buf_text(&f->tables), "higher_order.scan            (scan_combine_graph_0, [init], [xs], [])");
}

/* -- what is refused ----------------------------------------------------------------------------------------------- */

static void asks(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)
{
    (void)user, (void)n, (void)nout;
    out[0] = bp_is_true(c, bp_gt(c, bp_sum(c, in[0]), 0)) ? bp_sin(c, in[0]) : bp_cos(c, in[0]);
}

static void writes_input(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)
{
    (void)user, (void)n, (void)nout;
    bp_add_inplace(c, in[0], 1);
    out[0] = bp_sin(c, in[0]);
}

static void writes_outside(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)
{
    (void)n, (void)nout;
    bp_add_inplace(c, ((closure *)user)->scale, 1);
    out[0] = bp_sin(c, in[0]);
}

static void gives_input(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)
{
    (void)c, (void)user, (void)n, (void)nout;
    out[0] = in[0];
}

static void gives_view(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)
{
    (void)user, (void)n, (void)nout;
    out[0] = bp_unsqueeze(c, in[0], 0);
}

static void gives_outside(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)
{
    (void)c, (void)in, (void)n, (void)nout;
    out[0] = ((closure *)user)->scale;
}

static void gives_nothing(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)
{
    (void)c, (void)user, (void)in, (void)n, (void)out, (void)nout;
}

static void gives_longer(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)
{
    (void)user, (void)n, (void)nout;
    out[0] = bp_cat(c, BP_TENSORS(in[0], in[0]), 0);
}

static void gives_ints(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)
{
    (void)user, (void)n, (void)nout;
    out[0] = bp_to(c, in[0], BP_I64);
}

static void prints(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)
{
    (void)user, (void)n, (void)nout;
    bp_print(c, in[0], "x");
    out[0] = bp_sin(c, in[0]);
}

static void keeps(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)
{
    (void)n, (void)nout;
    ((closure *)user)->shift = bp_keep(c, bp_exp(c, in[0]));
    out[0] = bp_sin(c, in[0]);
}

#define NOT_ITS_OWN "\"true_fn\" writes a tensor in place that it did not make, at "
#define WHAT_IT_GOT "result 0 of \"true_fn\" shares memory with what it was given"
#define FOREIGN "result 0 of \"true_fn\" shares memory with a tensor that it did not make"
/* eager: whether the functions run as ordinary code. */
static struct { bp_branch_fn yes, no; bool eager; const char *what[3]; } refused[] = {
    {asks, cosine, true, {"bp_cond: \"true_fn\" asks for a value, at ", "test_control_flow.c:", "bp_where"}},
    {sine, asks, true, {"bp_cond: \"false_fn\" asks for a value, at ", "calling bp_cond (", "bp_cond inside"}},
    {writes_input, cosine, false, {NOT_ITS_OWN, "write a clone", ""}},
    {writes_outside, cosine, true, {NOT_ITS_OWN, "was made at", ""}},
    {gives_input, cosine, false, {WHAT_IT_GOT, "return a clone", ""}},
    {gives_view, cosine, false, {WHAT_IT_GOT, "return a clone", ""}},
    {gives_outside, cosine, true, {FOREIGN, "", ""}},
    {gives_nothing, cosine, false, {"bp_cond: \"true_fn\" gives no result 0", "", ""}},
    {gives_longer, cosine, true, {"result 0 is f32[4] in the true graph and f32[2] in the false graph", "", ""}},
    {sine, gives_ints, true, {"f32[2] in the true graph and i64[2] in the false graph", "calling bp_cond", ""}},
    {prints, cosine, true, {"does what runs outside of graphs (bp_print is called), at ", "", ""}},
    {keeps, cosine, true, {"a tensor that \"true_fn\" made at ", "is kept beyond it", ""}},
};
static size_t which;

static void refuses(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y;
    closure k = {.scale = bp_mul(c, x, 3)};
    bp_cond(c, bp_gt(c, bp_sum(c, x), 0), refused[which].yes, refused[which].no, &k, &x, 1, &y, 1);
    bp_tensor_unref(k.shift);
    bp_return(f, y);
}

static void what_a_graph_cannot_be_is_an_error_that_names_the_place(void **state)
{
    fixture *f = *state;
    for (which = 0; which < sizeof refused / sizeof *refused; which++) {
        bp_callable *g = COMPILE(f, refuses);
        bp_value v = bp_arg_of_tensor(FLOATS(f, 1, 2));
        bp_outputs out = {0};
        if (bp_call(f->c, g, &(bp_args){&v, 1}, &out) == BP_OK)
            fail_msg("case %zu is not refused", which);
        for (int i = 0; i < 3; i++)
            assert_contains(bp_error_text(f->c), refused[which].what[i]);
        bp_error_clear(f->c);
        EXPECT_FLOATS(f, v.v.tensor, 1, 2);
        bp_status eager = bp_run_eager(f->c, refuses, NULL, &(bp_args){&v, 1}, &out);
        assert_int_equal(eager == BP_OK, refused[which].eager);
        bp_error_clear(f->c);
        bp_callable_unref(g);
    }
}

static void draws(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)
{
    (void)user, (void)n, (void)nout;
    out[0] = bp_add(c, in[0], bp_rand_like(c, in[0]));
}

static void draws_or_not(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y;
    bp_cond(c, bp_gt(c, bp_sum(c, x), 0), draws, cosine, NULL, &x, 1, &y, 1);
    bp_return(f, y);
}

static void a_function_that_draws_in_a_branch_runs_eagerly_with_the_reason(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, draws_or_not);
    bp_tensor *x = FLOATS(f, 1, 2);
    bp_manual_seed(f->c, 3);
    bp_tensor *got = CALL(f, g, x).at[0];
    bp_manual_seed(f->c, 3);
    bp_outputs want = {0};
    bp_value v = bp_arg_of_tensor(x);
    assert_int_equal(bp_run_eager(f->c, draws_or_not, NULL, &(bp_args){&v, 1}, &want), BP_OK);
    EXPECT_FLOATS(f, got, at(f, want.at[0], 0), at(f, want.at[0], 1));
    assert_int_equal(stats(f, g).eager_calls, 1);
    buf text = {0};
    bp_print_explain(f->c, g, fixture_append, &text);
    assert_contains(buf_text(&text), "bp_cond: \"true_fn\" calls aten.rand_like.default");
    buf_fini(&text);
    bp_callable_unref(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        T(a_cond_is_one_node_with_two_graphs),
        T(what_a_branch_reads_from_outside_becomes_an_operand),
        T(graphs_nest_and_hold_writes_to_what_they_made),
        T(a_while_loop_runs_as_often_as_data_say),
        T(a_map_stacks_what_each_item_gives),
        T(a_scan_carries_forward_and_backward_along_any_dimension),
        T(what_a_graph_cannot_be_is_an_error_that_names_the_place),
        T(a_function_that_draws_in_a_branch_runs_eagerly_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
