/* Joint graphs: traced from a forward, they give its outputs and the tape's gradients, bit for bit, also in two
 * parts. */
#include "tests/unit/graph/build.h"
#include "host/grad/joint.h"
#include "host/grad/tape.h"

#define IN(name, type) "  %" name ": " type " = placeholder \"" name "\" user\n"

static const char PRODUCT[] = "graph product {\n" IN("a", "f32[3]") IN("b", "f32[3]")
                              "  %mul = aten.mul.Tensor(%a, %b)\n  %exp = aten.exp.default(%mul)\n"
                              "  output(%exp, %mul)\n}\n";
static const char LAYER[] = "graph layer {\n" IN("x", "f32[4, 8]") IN("w", "f32[8, 5]") IN("b", "f32[5]")
                            "  %mm = aten.mm.default(%x, %w)\n  %add = aten.add.Tensor(%mm, %b)\n"
                            "  %exp = aten.exp.default(%add)\n  %sum_1 = aten.sum.default(%exp)\n  output(%sum_1)\n}\n";
static const char VIEWS[] = "graph views {\n" IN("x", "f32[4, 6]")
                            "  %view = aten.view.default(%x, [2, 12])\n"
                            "  %expand = aten.expand.default(%view, [3, 2, 12])\n"
                            "  %contiguous = aten.contiguous.default(%x)\n  %mul = aten.mul.Tensor(%contiguous, 2.0)\n"
                            "  %exp = aten.exp.default(%expand)\n  output(%exp, %mul, %view)\n}\n";
static const char DETACHED[] = "graph detached {\n" IN("x", "f32[4]")
                               "  %exp = aten.exp.default(%x)\n  %detach = aten.detach.default(%exp)\n"
                               "  %mul = aten.mul.Tensor(%detach, %x)\n  output(%mul, %detach)\n}\n";
static const char THROUGH[] = "graph through {\n" IN("x", "f32[4]") IN("y", "f32[4]")
                              "  %exp = aten.exp.default(%y)\n  output(%x, %exp, %exp)\n}\n";

static bp_graph_module *parse(bp_ctx *c, const char *text)
{
    bp_graph_module *gm = graph_parse_text(c, "t.bpg", text, strlen(text));
    assert_string_equal(bp_error_text(c), "");
    assert_int_equal(graph_propagate(c, gm), BP_OK);
    return gm;
}

static bp_tensor *make_input(bp_ctx *c, const tensor_meta *m, uint32_t seed, bool grad)
{
    bp_tensor *t = tensor_new(c, m);
    float *v = tensor_ptr(t);
    for (int64_t i = 0; i < tensor_nelem(t); i++)
        v[i] = (float)((seed * 37 + (uint32_t)i * 11) % 19) / 7 - 1;
    if (grad)
        bp_tensor_set_requires_grad(c, t, 1);
    return t;
}

static void assert_same(bp_ctx *c, bp_tensor *a, bp_tensor *b)
{
    assert_int_equal(a == NULL, b == NULL);
    if (!a)
        return;
    bp_tensor *x = tensor_to_contiguous(c, a), *y = tensor_to_contiguous(c, b);
    assert_int_equal(tensor_nelem(x), tensor_nelem(y));
    assert_memory_equal(tensor_ptr(x), tensor_ptr(y), tensor_span_bytes(x));
    tensor_unref(x);
    tensor_unref(y);
}

static void drop_all(bp_tensor **t, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        tensor_unref(t[i]);
}

enum { MAX = 12 };
typedef struct { bp_tensor *in[MAX], *tangents[MAX], *out[MAX], *grads[MAX]; uint32_t nin, nout, ngrads; } answers;

/* The tape's answers, for tangents that count up. */
static void run_tape(bp_ctx *c, const bp_graph_module *gm, const uint8_t *needs, const joint *j, answers *a)
{
    node_id ph[MAX];
    bp_tensor *roots[MAX], *wanted[MAX];
    a->nin = graph_placeholders(&gm->g, ph, MAX);
    a->nout = graph_output_count(&gm->g);
    for (uint32_t i = 0; i < a->nin; i++)
        a->in[i] = make_input(c, graph_get(&gm->g, ph[i])->metas, i + 1, needs[i]);
    assert_int_equal(graph_run(c, gm, a->in, a->nin, a->out, a->nout, NULL, NULL), BP_OK);
    for (uint32_t i = 0; i < j->ntangents; i++) {
        tensor_meta m;
        roots[i] = a->out[j->tangent_of[i]];
        tensor_get_meta(roots[i], &m);
        m.offset = dim_const(0);
        a->tangents[i] = make_input(c, &m, 20 + i, false);
    }
    for (uint32_t i = 0; i < a->nin; i++)
        if (needs[i])
            wanted[a->ngrads++] = a->in[i];
    tape_backward(c, roots, a->tangents, j->ntangents, wanted, a->grads, a->ngrads, TAPE_ALLOW_UNUSED | TAPE_RETAIN);
    assert_string_equal(bp_error_text(c), "");
}

static void assert_joint(bp_ctx *c, const joint *j, const answers *a)
{
    bp_tensor *in[2 * MAX], *out[2 * MAX];
    uint32_t nout = a->nout + a->ngrads;
    memcpy(in, a->in, a->nin * sizeof *in);
    memcpy(in + a->nin, a->tangents, j->ntangents * sizeof *in);
    assert_int_equal(graph_verify(c, j->gm), BP_OK);
    bp_set_grad_enabled(c, 0);
    assert_int_equal(graph_run(c, j->gm, in, a->nin + j->ntangents, out, nout, NULL, NULL), BP_OK);
    bp_set_grad_enabled(c, 1);
    for (uint32_t i = 0; i < nout; i++)
        assert_same(c, out[i], i < a->nout ? a->out[i] : a->grads[i - a->nout]);
    drop_all(out, nout);
}

static void assert_parts(bp_ctx *c, const joint *j, const answers *a, int32_t kind)
{
    partition_options o = PARTITION_DEFAULTS;
    partition p;
    bp_tensor *out[3 * MAX], *in[3 * MAX], *grads[MAX];
    o.kind = kind;
    assert_int_equal(joint_partition(c, j, &o, &p), BP_OK);
    bp_set_grad_enabled(c, 0);
    assert_int_equal(graph_run(c, p.forward, a->in, a->nin, out, a->nout + p.nsaved, NULL, NULL), BP_OK);
    memcpy(in, out + a->nout, p.nsaved * sizeof *in);
    memcpy(in + p.nsaved, a->tangents, j->ntangents * sizeof *in);
    assert_int_equal(graph_run(c, p.backward, in, p.nsaved + j->ntangents, grads, a->ngrads, NULL, NULL), BP_OK);
    bp_set_grad_enabled(c, 1);
    for (uint32_t i = 0; i < a->ngrads; i++)
        assert_same(c, grads[i], a->grads[i]);
    drop_all(out, a->nout + p.nsaved);
    drop_all(grads, a->ngrads);
    partition_fini(&p);
}

static void assert_traces(bp_ctx *c, const char *text, const char *needs, uint32_t ntangents)
{
    bp_graph_module *gm = parse(c, text);
    joint j;
    answers a = {0};
    uint8_t bits[MAX];
    for (uint32_t i = 0; needs[i]; i++)
        bits[i] = needs[i] == '1';
    bp_status st = joint_trace(c, gm, bits, &j);
    assert_string_equal(bp_error_text(c), "");
    assert_int_equal(st, BP_OK);
    assert_int_equal(j.ntangents, ntangents);
    run_tape(c, gm, bits, &j, &a);
    assert_joint(c, &j, &a);
    assert_parts(c, &j, &a, PARTITION_DEFAULT);
    assert_parts(c, &j, &a, PARTITION_MIN_CUT);
    drop_all(a.in, a.nin);
    drop_all(a.out, a.nout);
    drop_all(a.tangents, j.ntangents);
    drop_all(a.grads, a.ngrads);
    joint_fini(&j);
    gm_unref(gm);
}

static void the_joint_graph_gives_the_tapes_gradients(void **state)
{
    assert_traces(*state, PRODUCT, "11", 2);
    assert_traces(*state, PRODUCT, "01", 2);
    assert_traces(*state, LAYER, "111", 1);
    assert_traces(*state, LAYER, "010", 1);
    assert_traces(*state, VIEWS, "1", 3);
}

static void nothing_flows_through_detach(void **state)
{
    assert_traces(*state, DETACHED, "1", 1);
}

static void an_input_that_is_given_back_takes_no_tangent(void **state)
{
    assert_traces(*state, THROUGH, "11", 1);
}

static void nodes_are_named_and_told_apart(void **state)
{
    bp_ctx *c = *state;
    bp_graph_module *gm = parse(c, PRODUCT);
    joint j;
    buf out = {0};
    assert_int_equal(joint_trace(c, gm, (const uint8_t[]){1, 0}, &j), BP_OK);
    graph_print_text(j.gm, &out);
    assert_string_equal(buf_text(&out),
                        "graph product {\n  %primals_1: f32[3] = placeholder \"a\" user\n"
                        "  %primals_2: f32[3] = placeholder \"b\" user\n"
                        "  %tangents_1: f32[3] = placeholder \"tangents_1\" user\n"
                        "  %tangents_2: f32[3] = placeholder \"tangents_2\" user\n"
                        "  %mul: f32[3] = aten.mul.Tensor(%primals_1, %primals_2)\n"
                        "  %exp: f32[3] = aten.exp.default(%mul)\n"
                        "  %mul_1: f32[3] = aten.mul.Tensor(%tangents_1, %exp)\n"
                        "  %add: f32[3] = aten.add.Tensor(%tangents_2, %mul_1)\n"
                        "  %mul_2: f32[3] = aten.mul.Tensor(%add, %primals_2)\n  output(%exp, %mul, %mul_2)\n}\n");
    assert_string_equal(graph_get(&j.gm->g, j.last_forward)->name, "exp");
    buf_fini(&out);
    joint_fini(&j);
    gm_unref(gm);
}

/* Tracing leaves the context as it was: no mode, no error, no number drawn. */
static void tracing_leaves_no_trace(void **state)
{
    bp_ctx *c = *state;
    bp_graph_module *gm = parse(c, "graph g {\n" IN("x", "f32[4]") "  %rand_like = aten.rand_like.default(%x)\n"
                                   "  %mul = aten.mul.Tensor(%x, %rand_like)\n  output(%mul)\n}\n");
    joint j;
    dispatch_mode *modes = c->modes;
    bp_set_grad_enabled(c, 0);
    c->rng_offset = 5;
    assert_int_equal(joint_trace(c, gm, (const uint8_t[]){1}, &j), BP_OK);
    assert_ptr_equal(c->modes, modes);
    assert_int_equal(c->rng_offset, 5);
    assert_int_equal(bp_set_grad_enabled(c, 1), 0);
    joint_fini(&j);
    gm_unref(gm);
}

static int set_up(void **state) { return (*state = bp_ctx_new(NULL)) ? 0 : -1; }
static int tear_down(void **state) { bp_ctx_destroy(*state); return 0; }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_joint_graph_gives_the_tapes_gradients),
        cmocka_unit_test(nothing_flows_through_detach),
        cmocka_unit_test(an_input_that_is_given_back_takes_no_tangent),
        cmocka_unit_test(nodes_are_named_and_told_apart),
        cmocka_unit_test(tracing_leaves_no_trace),
    };
    return cmocka_run_group_tests_name("joint", tests, set_up, tear_down);
}
