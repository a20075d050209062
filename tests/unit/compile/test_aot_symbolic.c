/* Training with symbolic sizes: a graph is differentiated and split once, and its two halves serve every size that the
 * conditions of their making admit. Outputs and gradients are those of the tape, bit for bit. */
#include "host/backend/backend.h"
#include "host/compile/aot.h"
#include "host/grad/tape.h"
#include "host/pass/pass.h"
#include "tests/unit/compile/fixture.h"

#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
enum { MOST = 12 };

/* -- a backend that counts ----------------------------------------------------------------------------------------- */

static struct { int forwards, backwards; } seen;

static bp_compiled *counting(bp_graph_module *gm, const bp_inputs *in)
{
    (void)in;
    seen.forwards += gm->part == GM_FORWARD;
    seen.backwards += gm->part == GM_BACKWARD;
    return bp_forward(gm);
}

/* -- inputs -------------------------------------------------------------------------------------------------------- */

static uint64_t random_state;

static float next_float(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (float)((random_state >> 40) % 1000) / 500.0f - 1.0f;
}

/* A tensor of the type that m is for these values; integers are 0 or 1. */
static bp_tensor *tensor_at(fixture *f, const graph *g, const tensor_meta *m, const int64_t *values)
{
    bp_dim dims[16];
    tensor_meta at = *m;
    for (uint32_t d = 0; d < 2 * m->rank; d++) {
        bp_dim from = d < m->rank ? m->sizes[d] : m->strides[d - m->rank];
        dims[d] = dim_const(from.value);
        if (from.sym)
            assert_true(sym_eval(g->syms, from, values, &dims[d].value));
    }
    at.sizes = dims;
    at.strides = dims + m->rank;
    at.offset = dim_const(0);
    bp_tensor *t = tensor_new(f->c, &at);
    assert_non_null(t);
    size_t n = tensor_span_bytes(t) / dtype_size(m->dtype);
    for (size_t i = 0; i < n; i++) {
        float x = next_float();
        if (m->dtype == BP_F32)
            ((float *)tensor_ptr(t))[i] = x;
        else if (m->dtype == BP_BOOL)
            ((uint8_t *)tensor_ptr(t))[i] = x > 0;
        else
            ((int64_t *)tensor_ptr(t))[i] = x > 0;
    }
    return t;
}

typedef struct {
    fixture *f;
    bp_graph_module *gm;
    aot *a;
    program *p;
    uint32_t nin, nout;
    uint8_t needs[MOST];
} trained;

static node_id placeholder(const graph *g, uint32_t i)
{
    node_id at[MOST];
    assert_true(graph_placeholders(g, at, MOST) <= MOST);
    return at[i];
}

/* Float inputs require grad, but for buffers. */
static trained train(fixture *f, const char *text)
{
    trained t = {.f = f};
    memset(&seen, 0, sizeof seen);
    random_state = 1;
    t.gm = graph_parse_text(f->c, "text", text, strlen(text));
    assert_string_equal(bp_error_text(f->c), "");
    graph_propagate(f->c, t.gm);
    assert_string_equal(bp_error_text(f->c), "");
    t.nin = graph_placeholders(&t.gm->g, NULL, 0);
    t.nout = graph_output_count(&t.gm->g);
    for (uint32_t i = 0; i < t.nin; i++) {
        const graph_node *n = graph_get(&t.gm->g, placeholder(&t.gm->g, i));
        t.needs[i] = n->metas->dtype == BP_F32 && n->role != BP_ROLE_BUFFER;
    }
    bp_register_backend_at(f->c, "counting", counting, NULL, NULL, __FILE__, __LINE__);
    aot_compile(f->c, t.gm, backend_lookup(f->c, "counting"), t.needs, &t.p, &t.a);
    assert_string_equal(bp_error_text(f->c), "");
    assert_int_equal(aot_count(t.a), 1);
    assert_string_equal(buf_text(&f->log), ""); /* a graph that is not differentiated ahead of time is told */
    return t;
}

static void train_end(trained *t)
{
    program_unref(t->p);
    aot_unref(t->a);
    gm_unref(t->gm);
}

/* -- one step of each ---------------------------------------------------------------------------------------------- */

typedef struct { bp_tensor *out[MOST], *grad[MOST]; } results;

static void drop(bp_tensor **t)
{
    for (int i = 0; i < MOST; i++)
        tensor_unref(t[i]);
}

/* Gradients of the outputs are all that a random state gives. */
static void differentiate(trained *t, bp_tensor *const *in, uint64_t state, results *r)
{
    bp_tensor *roots[MOST] = {NULL}, *grads[MOST] = {NULL}, *wanted[MOST] = {NULL}, *got[MOST] = {NULL};
    uint32_t n = 0, w = 0;
    random_state = state;
    for (uint32_t i = 0; i < t->nout; i++)
        if (r->out[i]->flags & TENSOR_REQUIRES_GRAD) {
            tensor_meta m;
            tensor_get_meta(r->out[i], &m);
            roots[n] = r->out[i];
            grads[n++] = tensor_at(t->f, &t->gm->g, &m, NULL);
        }
    for (uint32_t i = 0; i < t->nin; i++)
        if (t->needs[i])
            wanted[w++] = in[i];
    tape_backward(t->f->c, roots, grads, n, wanted, got, w, TAPE_ALLOW_UNUSED);
    assert_string_equal(bp_error_text(t->f->c), "");
    memcpy(r->grad, got, sizeof got);
    for (uint32_t i = 0; i < n; i++)
        tensor_unref(grads[i]);
}

static void same(fixture *f, bp_tensor *a, bp_tensor *b, const char *what, uint32_t i)
{
    assert_int_equal(!a, !b);
    if (!a)
        return;
    bool equal = a->rank == b->rank && a->dtype == b->dtype;
    for (uint32_t d = 0; equal && d < a->rank; d++)
        equal = tensor_dim(a, d) == tensor_dim(b, d);
    bp_tensor *x = tensor_dense_copy(f->c, a), *y = tensor_dense_copy(f->c, b);
    equal = equal && !memcmp(tensor_ptr(x), tensor_ptr(y), tensor_span_bytes(x));
    if (!equal) {
        char p[160], q[160];
        print_error("%s %u differs: %s and %s\n", what, i, tensor_describe(a, p, sizeof p),
                    tensor_describe(b, q, sizeof q));
    }
    assert_true(equal);
    tensor_unref(x);
    tensor_unref(y);
}

/* The graph at these values of its symbols, compiled and on the tape. */
static void step_at(trained *t, const int64_t *values)
{
    bp_ctx *c = t->f->c;
    bp_tensor *in[MOST];
    results eager = {{NULL}, {NULL}}, compiled = eager;
    for (uint32_t i = 0; i < t->nin; i++) {
        const graph_node *n = graph_get(&t->gm->g, placeholder(&t->gm->g, i));
        in[i] = tensor_at(t->f, &t->gm->g, n->metas, values);
        if (n->number.sym)
            assert_true(sym_eval(t->gm->g.syms, n->number, values, tensor_ptr(in[i])));
        in[i]->flags |= TENSOR_IS_LEAF | (t->needs[i] ? TENSOR_REQUIRES_GRAD : 0);
    }
    uint64_t state = random_state;
    graph_run(c, t->gm, in, t->nin, eager.out, t->nout, NULL, NULL);
    assert_string_equal(bp_error_text(c), "");
    differentiate(t, in, state, &eager);
    program_io io = {.inputs = in, .ninputs = t->nin, .outputs = compiled.out, .noutputs = t->nout};
    aot_run(c, t->a, &io, NULL);
    assert_string_equal(bp_error_text(c), "");
    differentiate(t, in, state, &compiled);
    for (uint32_t i = 0; i < t->nout; i++)
        same(t->f, eager.out[i], compiled.out[i], "output", i);
    for (uint32_t i = 0; i < MOST; i++)
        same(t->f, eager.grad[i], compiled.grad[i], "gradient", i);
    drop(eager.out);
    drop(eager.grad);
    drop(compiled.out);
    drop(compiled.grad);
    for (uint32_t i = 0; i < t->nin; i++)
        tensor_unref(in[i]);
}

/* One symbol over a range of sizes, through one forward and one backward. */
static void over_a_range(fixture *f, const char *text)
{
    trained t = train(f, text);
    for (int64_t n = 2; n <= 17; n++)
        step_at(&t, &n);
    assert_int_equal(aot_count(t.a), 1);
    assert_int_equal(seen.forwards, 1);
    assert_int_equal(seen.backwards, 1);
    train_end(&t);
}

/* -- models -------------------------------------------------------------------------------------------------------- */

static const char MLP[] =
    "graph g {\n"
    "  symbol s0 in [2, inf] hint 4\n"
    "  %x: f32[s0, 5] = placeholder \"x\" buffer\n"
    "  %w: f32[7, 5] = placeholder \"w\" parameter\n"
    "  %b: f32[7] = placeholder \"b\" parameter\n"
    "  %v: f32[3, 7] = placeholder \"v\" parameter\n"
    "  %h = aten.linear.default(%x, %w, %b)\n"
    "  %r = aten.relu.default(%h)\n"
    "  %y = aten.linear.default(%r, %v)\n"
    "  %l = aten.mean.default(%y)\n"
    "  output(%l)\n"
    "}\n";

static void an_mlp_trains_at_every_batch_through_one_forward_and_one_backward(void **state)
{
    over_a_range(*state, MLP);
}

static void a_softmax_and_a_layer_norm_over_a_symbol_and_beside_it(void **state)
{
    over_a_range(*state,
                 "graph g {\n"
                 "  symbol s0 in [2, inf] hint 4\n"
                 "  %x: f32[s0, 3, s0] = placeholder \"x\" user\n"
                 "  %y: f32[s0, 6] = placeholder \"y\" user\n"
                 "  %w: f32[6] = placeholder \"w\" parameter\n"
                 "  %b: f32[6] = placeholder \"b\" parameter\n"
                 "  %a = aten._softmax.default(%x, -1, False)\n"
                 "  %c = aten._log_softmax.default(%x, 0, False)\n"
                 "  %n = aten.native_layer_norm.default(%y, [6], %w, %b, 1e-05)\n"
                 "  %m = <built-in function getitem>(%n, 0)\n"
                 "  output(%a, %c, %m)\n"
                 "}\n");
}

static void attention_over_a_symbolic_length(void **state)
{
    over_a_range(*state,
                 "graph g {\n"
                 "  symbol s0 in [2, inf] hint 5\n"
                 "  %q: f32[2, 3, s0, 4] = placeholder \"q\" user\n"
                 "  %k: f32[2, 3, s0, 4] = placeholder \"k\" user\n"
                 "  %v: f32[2, 3, s0, 4] = placeholder \"v\" user\n"
                 "  %o = aten.scaled_dot_product_attention.default(%q, %k, %v)\n"
                 "  %t = aten.transpose.int(%k, -2, -1)\n"
                 "  %s = aten.matmul.default(%q, %t)\n"
                 "  %p = aten.softmax.int(%s, -1)\n"
                 "  %z = aten.matmul.default(%p, %v)\n"
                 "  output(%o, %z)\n"
                 "}\n");
}

static void a_convolution_over_a_symbolic_image(void **state)
{
    trained t = train(*state,
                      "graph g {\n"
                      "  symbol s0 in [2, inf] hint 3\n"
                      "  symbol s1 in [6, inf] hint 8\n"
                      "  %x: f32[s0, 2, s1, 9] = placeholder \"x\" user\n"
                      "  %w: f32[4, 2, 3, 3] = placeholder \"w\" parameter\n"
                      "  %b: f32[4] = placeholder \"b\" parameter\n"
                      "  %c = aten.convolution.default(%x, %w, %b, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)\n"
                      "  %r = aten.relu.default(%c)\n"
                      "  %m = aten.mean.dim(%r, [2, 3])\n"
                      "  output(%r, %m)\n"
                      "}\n");
    for (int64_t n = 2; n < 6; n++)
        for (int64_t m = 6; m < 12; m++)
            step_at(&t, (int64_t[]){n, m});
    assert_int_equal(aot_count(t.a), 1);
    assert_int_equal(seen.backwards, 1);
    train_end(&t);
}

/* -- shapes -------------------------------------------------------------------------------------------------------- */

static void what_broadcasts_gets_its_sum(void **state)
{
    over_a_range(*state,
                 "graph g {\n"
                 "  symbol s0 in [2, inf] hint 4\n"
                 "  %x: f32[s0, 1] = placeholder \"x\" user\n"
                 "  %y: f32[1, s0] = placeholder \"y\" user\n"
                 "  %z: f32[3, 1, 1] = placeholder \"z\" user\n"
                 "  %w: f32[1] = placeholder \"w\" user\n"
                 "  %a = aten.mul.Tensor(%x, %y)\n"
                 "  %b = aten.add.Tensor(%a, %z)\n"
                 "  %c = aten.mul.Tensor(%b, %w)\n"
                 "  output(%c)\n"
                 "}\n");
}

static void expand_and_sum_and_mean_and_var(void **state)
{
    over_a_range(*state,
                 "graph g {\n"
                 "  symbol s0 in [2, inf] hint 4\n"
                 "  %x: f32[3, s0] = placeholder \"x\" user\n"
                 "  %u = aten.unsqueeze.default(%x, 1)\n"
                 "  %e = aten.expand.default(%u, [3, 2*s0, s0])\n"
                 "  %s = aten.sum.dim_IntList(%e, [1])\n"
                 "  %m = aten.mean.default(%e)\n"
                 "  %v = aten.var.correction(%x, [1], correction=1)\n"
                 "  %d = aten.std.correction(%x, [0], correction=0)\n"
                 "  output(%s, %m, %v, %d)\n"
                 "}\n");
}

static void slices_and_cats_of_symbolic_sizes(void **state)
{
    over_a_range(*state,
                 "graph g {\n"
                 "  symbol s0 in [2, inf] hint 4\n"
                 "  %x: f32[s0, 3] = placeholder \"x\" user\n"
                 "  %y: f32[2, 3] = placeholder \"y\" user\n"
                 "  %c = aten.cat.default([%x, %y, %x])\n"
                 "  %s = aten.slice.Tensor(%c, 0, 1, s0 + 1)\n"
                 "  %k = aten.constant_pad_nd.default(%s, [0, 0, 1, 2])\n"
                 "  %e = aten.exp.default(%k)\n"
                 "  %n = aten.narrow.default(%e, 0, 0, s0)\n"
                 "  output(%e, %n)\n"
                 "}\n");
}

static void views_of_what_is_not_contiguous(void **state)
{
    over_a_range(*state,
                 "graph g {\n"
                 "  symbol s0 in [2, inf] hint 4\n"
                 "  %x: f32[s0, 3, 2] = placeholder \"x\" user\n"
                 "  %t = aten.transpose.int(%x, 0, 2)\n"
                 "  %r = aten.reshape.default(%t, [2, 3*s0])\n"
                 "  %p = aten.permute.default(%x, [1, 0, 2])\n"
                 "  %f = aten.reshape.default(%p, [3, -1])\n"
                 "  %e = aten.exp.default(%f)\n"
                 "  %v = aten.view.default(%e, [3, s0, 2])\n"
                 "  output(%r, %v)\n"
                 "}\n");
}

/* The sum's backward needs s0, and nothing that is saved shows it. */
static void a_symbol_that_nothing_saved_shows_is_an_input_of_the_backward(void **state)
{
    trained t = train(*state,
                      "graph g {\n"
                      "  symbol s0 in [2, inf] hint 4\n"
                      "  %x: f32[s0, 3] = placeholder \"x\" user\n"
                      "  %s = aten.sum.default(%x)\n"
                      "  output(%s)\n"
                      "}\n");
    const graph *g = &aot_backward(t.a, 0)->g;
    uint32_t n = graph_placeholders(g, NULL, 0);
    assert_int_equal(n, 2); /* the gradient, and s0 */
    assert_int_equal(graph_get(g, placeholder(g, 1))->role, BP_ROLE_SYMINT);
    assert_int_equal(graph_output_count(&aot_forward(t.a, 0)->g), 1); /* nothing is saved */
    for (int64_t k = 2; k < 5; k++)
        step_at(&t, &k);
    train_end(&t);
}

static void a_symbol_of_the_graph_s_own_inputs_is_one_of_both_halves(void **state)
{
    trained t = train(*state,
                      "graph g {\n"
                      "  symbol s0 in [2, inf] hint 4\n"
                      "  symbol s1 in [2, inf] hint 3\n"
                      "  %x: f32[s0] = placeholder \"x\" user\n"
                      "  %n: Sym(s1) = placeholder \"n\" symint\n"
                      "  %e = aten.expand.default(%x, [s1, s0])\n"
                      "  %m = aten.mul.Scalar(%e, s1)\n"
                      "  %s = aten.mean.default(%m)\n"
                      "  output(%s)\n"
                      "}\n");
    for (int64_t n = 2; n < 5; n++)
        for (int64_t m = 2; m < 5; m++)
            step_at(&t, (int64_t[]){n, m});
    assert_int_equal(aot_count(t.a), 1);
    train_end(&t);
}

/* -- numbers that data tell ---------------------------------------------------------------------------------------- */

/* Of 0 and 1 at random: the backward gets the forward's number. */
static void a_number_of_data_is_kept_for_the_backward(void **state)
{
    trained t = train(*state,
                      "graph g {\n"
                      "  symbol u0 in [-inf, inf] unbacked\n"
                      "  %x: f32[4, 3] = placeholder \"x\" user\n"
                      "  %n: i64[] = placeholder \"n\" user\n"
                      "  %i: Sym(u0) = aten._local_scalar_dense.default(%n)\n"
                      "  %m = aten.mul.Scalar(%x, u0)\n"
                      "  %a = aten.add.Scalar(%m, u0)\n"
                      "  %e = aten.exp.default(%a)\n"
                      "  output(%m, %e)\n"
                      "}\n");
    for (int i = 0; i < 8; i++)
        step_at(&t, (int64_t[]){0});
    assert_int_equal(aot_count(t.a), 1);
    assert_int_equal(seen.backwards, 1);
    train_end(&t);
}

static void rows_that_data_choose_give_their_gradients_back(void **state)
{
    trained t = train(*state,
                      "graph g {\n"
                      "  symbol s0 in [2, inf] hint 6\n"
                      "  symbol u0 in [0, inf] unbacked\n"
                      "  %x: f32[s0, 3] = placeholder \"x\" user\n"
                      "  %b: b8[s0] = placeholder \"b\" user\n"
                      "  %z: i64[u0, 1] = aten.nonzero.default(%b)\n"
                      "  %i = aten.squeeze.dim(%z, 1)\n"
                      "  %r = aten.index_select.default(%x, 0, %i)\n"
                      "  %e = aten.exp.default(%r)\n"
                      "  %s = aten.sum.dim_IntList(%e, [0])\n"
                      "  output(%s)\n"
                      "}\n");
    for (int64_t n = 2; n < 12; n++)
        step_at(&t, (int64_t[]){n, 0});
    assert_int_equal(aot_count(t.a), 1);
    assert_int_equal(seen.backwards, 1);
    train_end(&t);
}

/* -- from a function ----------------------------------------------------------------------------------------------- */

static void mlp(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *w = bp_arg(f, 1, "w"), *v = bp_arg(f, 2, "v");
    bp_tensor *h = bp_relu(c, bp_matmul(c, x, w));
    bp_return(f, bp_mean(c, bp_softmax(c, bp_matmul(c, h, v), -1)));
    bp_return(f, bp_sum(c, bp_exp(c, h)));
}

static bp_tensor *filled(fixture *f, int64_t rows, int64_t columns, bool leaf)
{
    float *at = malloc((size_t)(rows * columns) * sizeof *at);
    for (int64_t i = 0; i < rows * columns; i++)
        at[i] = next_float();
    bp_tensor *t = bp_tensor_from(f->c, BP_F32, 2, (int64_t[]){rows, columns}, at);
    free(at);
    if (leaf)
        bp_tensor_set_requires_grad(f->c, t, 1);
    return t;
}

/* Gradients of both parameters, compiled (g) or eagerly. */
static void train_once(fixture *f, bp_callable *g, int64_t n, bp_tensor *grads[2])
{
    random_state = (uint64_t)n;
    bp_tensor *in[] = {filled(f, n, 5, false), filled(f, 5, 7, true), filled(f, 7, 3, true)};
    bp_value args[3];
    bp_outputs out = {0};
    for (int i = 0; i < 3; i++)
        args[i] = bp_arg_of_tensor(in[i]);
    if (g)
        bp_call(f->c, g, &(bp_args){args, 3}, &out);
    else
        bp_run_eager(f->c, mlp, NULL, &(bp_args){args, 3}, &out);
    assert_string_equal(bp_error_text(f->c), "");
    bp_backward(f->c, bp_add(f->c, out.at[0], out.at[1]), NULL, 0);
    assert_string_equal(bp_error_text(f->c), "");
    for (int i = 0; i < 2; i++)
        grads[i] = bp_tensor_grad(f->c, in[1 + i]);
}

static void a_function_trains_at_every_batch_after_two_compiles(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = counting};
    bp_callable *g = bp_compile(f->c, mlp, &o);
    memset(&seen, 0, sizeof seen);
    for (int64_t n = 2; n <= 17; n++) {
        bp_tensor *got[2], *want[2];
        bp_scope_begin(f->c);
        train_once(f, g, n, got);
        train_once(f, NULL, n, want);
        for (uint32_t i = 0; i < 2; i++)
            same(f, want[i], got[i], "gradient", i);
        bp_scope_end(f->c);
    }
    bp_callable_stats s = {.size = sizeof s};
    assert_int_equal(bp_stats(f->c, g, &s), BP_OK);
    assert_int_equal(s.captures, 2);
    assert_int_equal(s.eager_calls, 0);
    assert_int_equal(seen.forwards, 2);
    assert_int_equal(seen.backwards, 2);
    bp_callable_unref(g);
}

/* -- conditions ---------------------------------------------------------------------------------------------------- */

/* The derivative of prod asks whether there is more than one element along the dimension. */
static void sizes_that_answer_otherwise_are_compiled_for_once_more(void **state)
{
    trained t = train(*state,
                      "graph g {\n"
                      "  symbol s0 in [1, inf] hint 4\n"
                      "  %x: f32[3, s0] = placeholder \"x\" user\n"
                      "  %p = aten.prod.dim_int(%x, 1)\n"
                      "  output(%p)\n"
                      "}\n");
    buf text = {0};
    aot_print_conditions(t.a, 0, &text);
    assert_true(text.n > 0);
    buf_fini(&text);
    for (int64_t n = 1; n < 6; n++)
        step_at(&t, &n);
    assert_int_equal(aot_count(t.a), 2);
    assert_int_equal(seen.forwards, 2);
    train_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(an_mlp_trains_at_every_batch_through_one_forward_and_one_backward),
        T(a_softmax_and_a_layer_norm_over_a_symbol_and_beside_it),
        T(attention_over_a_symbolic_length),
        T(a_convolution_over_a_symbolic_image),
        T(what_broadcasts_gets_its_sum),
        T(expand_and_sum_and_mean_and_var),
        T(slices_and_cats_of_symbolic_sizes),
        T(views_of_what_is_not_contiguous),
        T(a_symbol_that_nothing_saved_shows_is_an_input_of_the_backward),
        T(a_symbol_of_the_graph_s_own_inputs_is_one_of_both_halves),
        T(sizes_that_answer_otherwise_are_compiled_for_once_more),
        T(a_number_of_data_is_kept_for_the_backward),
        T(rows_that_data_choose_give_their_gradients_back),
        T(a_function_trains_at_every_batch_after_two_compiles),
    };
    return cmocka_run_group_tests_name("aot_symbolic", tests, NULL, NULL);
}
