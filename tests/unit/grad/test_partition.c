/* Partitions of joint graphs given as texts: forward and backward together are the joint graph, whatever is saved. */
#include "tests/unit/graph/build.h"
#include "host/grad/joint.h"

#define IN(name, type) "  %" name ": " type " = placeholder \"" name "\" user\n"
#define WEIGHT(name, type) "  %" name ": " type " = placeholder \"" name "\" parameter\n"

/* exp, then a product: backward reads exp and the input. */
static const char CHAIN[] =
    "graph chain {\n" IN("x", "f32[8]") IN("y", "f32[8]") IN("t", "f32[8]")
    "  %sin = aten.sin.default(%x)\n  %exp = aten.exp.default(%sin)\n  %mul = aten.mul.Tensor(%exp, %y)\n"
    "  %mul_1 = aten.mul.Tensor(%t, %y)\n  %mul_2 = aten.mul.Tensor(%t, %exp)\n"
    "  %mul_3 = aten.mul.Tensor(%mul_1, %exp)\n"
    "  %cos = aten.cos.default(%x)\n  %mul_4 = aten.mul.Tensor(%mul_3, %cos)\n  output(%mul, %mul_4, %mul_2)\n}\n";
/* mm -> relu -> mm, with weights. */
static const char LAYERS[] =
    "graph layers {\n" IN("x", "f32[64, 32]") WEIGHT("w", "f32[32, 48]") WEIGHT("v", "f32[48, 16]")
    IN("t", "f32[64, 16]")
    "  %mm = aten.mm.default(%x, %w)\n  %relu = aten.relu.default(%mm)\n  %mm_1 = aten.mm.default(%relu, %v)\n"
    "  %t_1 = aten.t.default(%v)\n  %mm_2 = aten.mm.default(%t, %t_1)\n  %t_2 = aten.t.default(%relu)\n"
    "  %mm_3 = aten.mm.default(%t_2, %t)\n  %gt = aten.gt.Scalar(%relu, 0)\n  %mul = aten.mul.Tensor(%mm_2, %gt)\n"
    "  %t_3 = aten.t.default(%x)\n  %mm_4 = aten.mm.default(%t_3, %mul)\n  output(%mm_1, None, %mm_4, %mm_3)\n}\n";
/* A mask of random numbers, and one that nobody reads. */
static const char DROPOUT[] =
    "graph dropout {\n" IN("x", "f32[16]") IN("t", "f32[16]")
    "  %rand_like = aten.rand_like.default(%x)\n  %rand_like_1 = aten.rand_like.default(%x)\n"
    "  %gt = aten.gt.Scalar(%rand_like_1, 0.5)\n  %mul = aten.mul.Tensor(%x, %gt)\n"
    "  %mul_1 = aten.mul.Tensor(%t, %gt)\n"
    "  output(%mul, %mul_1)\n}\n";
/* Parts of a list; the second is read by the backward alone. */
static const char PARTS[] =
    "graph parts {\n" IN("x", "f32[6]") IN("t", "f32[3]")
    "  %sin = aten.sin.default(%x)\n  %split = aten.split.Tensor(%sin, 3)\n"
    "  %getitem = <built-in function getitem>(%split, 0)\n  %getitem_1 = <built-in function getitem>(%split, 1)\n"
    "  %mul = aten.mul.Tensor(%t, %getitem_1)\n  %mul_1 = aten.mul.Tensor(%t, %getitem)\n"
    "  %cat = aten.cat.default([%mul, %mul_1])\n  output(%getitem, %cat)\n}\n";
/* A number read from a tensor, used on both sides. */
static const char NUMBER[] =
    "graph number {\n" IN("x", "f32[4]") IN("s", "f32[]") IN("t", "f32[4]")
    "  %mul = aten.mul.Tensor(%s, 3)\n  %_local_scalar_dense = aten._local_scalar_dense.default(%mul)\n"
    "  %mul_1 = aten.mul.Scalar(%x, %_local_scalar_dense)\n  %mul_2 = aten.mul.Scalar(%t, %_local_scalar_dense)\n"
    "  output(%mul_1, %mul_2, None)\n}\n";

static bp_graph_module *parse(bp_ctx *c, const char *text)
{
    bp_graph_module *gm = graph_parse_text(c, "t.bpg", text, strlen(text));
    assert_string_equal(bp_error_text(c), "");
    assert_int_equal(graph_propagate(c, gm), BP_OK);
    return gm;
}

static joint joint_of(bp_graph_module *gm, uint32_t ntangents, uint32_t noutputs)
{
    return (joint){.gm = gm, .nprimals = graph_placeholders(&gm->g, NULL, 0) - ntangents, .noutputs = noutputs,
                   .ntangents = ntangents};
}

static bp_tensor *make_input(bp_ctx *c, const tensor_meta *m, uint32_t seed)
{
    bp_tensor *t = tensor_new(c, m);
    float *v = tensor_ptr(t);
    for (int64_t i = 0; i < tensor_nelem(t); i++)
        v[i] = (float)((seed * 37 + (uint32_t)i * 11) % 19) / 7 - 1;
    return t;
}

static void assert_same(bp_tensor *a, bp_tensor *b)
{
    assert_int_equal(a == NULL, b == NULL);
    if (!a)
        return;
    assert_int_equal(tensor_nelem(a), tensor_nelem(b));
    assert_memory_equal(tensor_ptr(a), tensor_ptr(b), tensor_span_bytes(a));
}

static void drop_all(bp_tensor **t, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        tensor_unref(t[i]);
}

/* The joint graph and its two parts, run on the same inputs from the same place of the generator. */
static void assert_parts_equal_joint(bp_ctx *c, const joint *j, const partition *p)
{
    bp_tensor *in[8] = {0}, *want[8], *got[24], *back_in[24], *grads[8];
    node_id ph[8];
    uint32_t nin = j->nprimals + j->ntangents, nout = graph_output_count(&j->gm->g), nfw = j->noutputs + p->nsaved;
    assert_int_equal(graph_verify(c, p->forward), BP_OK);
    assert_int_equal(graph_verify(c, p->backward), BP_OK);
    graph_placeholders(&j->gm->g, ph, 8);
    for (uint32_t i = 0; i < nin; i++)
        in[i] = make_input(c, graph_get(&j->gm->g, ph[i])->metas, i + 1);
    c->rng_offset = 7;
    assert_int_equal(graph_run(c, j->gm, in, nin, want, nout, NULL, NULL), BP_OK);
    uint64_t rng = c->rng_offset;
    c->rng_offset = 7;
    assert_int_equal(graph_run(c, p->forward, in, j->nprimals, got, nfw, NULL, NULL), BP_OK);
    assert_true(c->rng_offset == rng);
    memcpy(back_in, got + j->noutputs, p->nsaved * sizeof *back_in);
    memcpy(back_in + p->nsaved, in + j->nprimals, j->ntangents * sizeof *back_in);
    bp_status st = graph_run(c, p->backward, back_in, p->nsaved + j->ntangents, grads, nout - j->noutputs, NULL, NULL);
    assert_string_equal(bp_error_text(c), "");
    assert_int_equal(st, BP_OK);
    assert_true(c->rng_offset == rng);
    for (uint32_t i = 0; i < nout; i++)
        assert_same(want[i], i < j->noutputs ? got[i] : grads[i - j->noutputs]);
    drop_all(want, nout);
    drop_all(got, nfw);
    drop_all(grads, nout - j->noutputs);
    drop_all(in, nin);
}

/* Names of the saved values, in order. */
static const char *saved_names(const partition *p, uint32_t ntangents)
{
    static char text[400];
    node_id ph[32];
    uint32_t n = graph_placeholders(&p->backward->g, ph, 32);
    text[0] = 0;
    for (uint32_t i = 0; i + ntangents < n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
                 graph_get(&p->backward->g, ph[i])->name);
    return text;
}

static partition split(bp_ctx *c, bp_graph_module *gm, const partition_options *o)
{
    joint j = joint_of(gm, 1, 1);
    partition p;
    bp_status st = joint_partition(c, &j, o, &p);
    assert_string_equal(bp_error_text(c), "");
    assert_int_equal(st, BP_OK);
    assert_parts_equal_joint(c, &j, &p);
    return p;
}

static const partition_options DEFAULT = {.kind = PARTITION_DEFAULT, .memory_budget = 1};

static void assert_saves(bp_ctx *c, const char *text, const partition_options *o, const char *names)
{
    bp_graph_module *gm = parse(c, text);
    partition p = split(c, gm, o);
    assert_string_equal(saved_names(&p, 1), names);
    partition_fini(&p);
    gm_unref(gm);
}

static void the_default_saves_what_backward_reads(void **state)
{
    assert_saves(*state, CHAIN, &DEFAULT, "x y exp");
    assert_saves(*state, LAYERS, &DEFAULT, "x v relu");
    assert_saves(*state, PARTS, &DEFAULT, "getitem getitem_1");
    assert_saves(*state, NUMBER, &DEFAULT, "mul");
}

static void the_cut_saves_no_more_than_the_inputs_need(void **state)
{
    assert_saves(*state, CHAIN, &PARTITION_DEFAULTS, "x y");
    assert_saves(*state, LAYERS, &PARTITION_DEFAULTS, "x v relu");
    assert_saves(*state, PARTS, &PARTITION_DEFAULTS, "x");
}

static void random_nodes_stay_in_the_forward(void **state)
{
    bp_ctx *c = *state;
    partition_options aggressive = PARTITION_DEFAULTS, none = PARTITION_DEFAULTS;
    aggressive.aggressive_recomputation = true;
    none.memory_budget = 0;
    const partition_options *const options[] = {&DEFAULT, &PARTITION_DEFAULTS, &aggressive, &none};
    for (uint32_t i = 0; i < 4; i++) {
        bp_graph_module *gm = parse(c, DROPOUT);
        partition p = split(c, gm, options[i]);
        assert_non_null((void *)(uintptr_t)graph_find(&p.forward->g, "rand_like"));
        assert_non_null((void *)(uintptr_t)graph_find(&p.forward->g, "rand_like_1"));
        assert_int_equal(graph_find(&p.backward->g, "rand_like"), 0);
        const graph_node *saved = graph_get(&p.backward->g, graph_find(&p.backward->g, "rand_like_1"));
        assert_true(!graph_find(&p.backward->g, "rand_like_1") || saved->op == BP_NODE_PLACEHOLDER);
        partition_fini(&p);
        gm_unref(gm);
    }
}

static void parameters_are_free_to_save(void **state)
{
    bp_ctx *c = *state;
    bp_graph_module *gm = parse(c, LAYERS);
    partition p = split(c, gm, &DEFAULT);
    assert_true(p.saved_bytes == 4 * (64 * 32 + 64 * 48));
    assert_true(p.recomputed_flops == 0);
    partition_fini(&p);
    gm_unref(gm);
    gm = parse(c, CHAIN);
    p = split(c, gm, &PARTITION_DEFAULTS);
    assert_true(p.saved_bytes == 64 && p.recomputed_flops == 16); /* a sine and an exponential again */
    partition_fini(&p);
    gm_unref(gm);
}

static uint8_t by_name(void *arg, const graph_node *n)
{
    const char *const *names = arg;
    return !strcmp(n->name, names[0]) ? PARTITION_TAG_SAVE
           : names[1] && !strcmp(n->name, names[1]) ? PARTITION_TAG_RECOMPUTE : PARTITION_TAG_NONE;
}

static void tags_decide(void **state)
{
    partition_options o = PARTITION_DEFAULTS;
    o.tag = by_name;
    o.tag_arg = (const char *[]){"sin", NULL};
    assert_saves(*state, CHAIN, &o, "x y exp");
    o.tag_arg = (const char *[]){"", "relu"};
    assert_saves(*state, LAYERS, &o, "x v mm");
    o.kind = PARTITION_DEFAULT; /* with tags it is a cut as well */
    assert_saves(*state, LAYERS, &o, "x v mm");
    o.tag_arg = (const char *[]){"", "rand_like_1"}; /* other numbers would come: the tag does not count */
    assert_saves(*state, DROPOUT, &o, "gt");
}

static void a_budget_of_zero_recomputes_from_the_inputs(void **state)
{
    partition_options o = PARTITION_DEFAULTS;
    o.memory_budget = 0;
    assert_saves(*state, LAYERS, &o, "x w v");
    assert_saves(*state, CHAIN, &o, "x y");
}

/* Two products of which only one fits: the dear one is kept. */
static void a_budget_keeps_what_is_dear(void **state)
{
    static const char TWO[] =
        "graph two {\n" IN("x", "f32[16, 64]") IN("w", "f32[64, 16]") IN("y", "f32[16, 2]") IN("v", "f32[2, 16]")
        IN("t", "f32[16, 16]")
        "  %mm = aten.mm.default(%x, %w)\n  %mm_1 = aten.mm.default(%y, %v)\n  %mul = aten.mul.Tensor(%mm, %mm_1)\n"
        "  %mul_1 = aten.mul.Tensor(%t, %mm_1)\n  %mul_2 = aten.mul.Tensor(%t, %mm)\n"
        "  %t_1 = aten.t.default(%w)\n  %mm_2 = aten.mm.default(%mul_1, %t_1)\n"
        "  %t_2 = aten.t.default(%v)\n  %mm_3 = aten.mm.default(%mul_2, %t_2)\n"
        "  output(%mul, %mm_2, None, %mm_3, None)\n}\n";
    partition_options o = PARTITION_DEFAULTS;
    assert_saves(*state, TWO, &o, "w v mm mm_1");
    o.memory_budget = 0.5;
    assert_saves(*state, TWO, &o, "w y v mm");
}

static void a_budget_beyond_one_is_refused(void **state)
{
    bp_ctx *c = *state;
    bp_graph_module *gm = parse(c, CHAIN);
    joint j = joint_of(gm, 1, 1);
    partition_options o = PARTITION_DEFAULTS;
    partition p;
    o.memory_budget = 1.5;
    assert_int_equal(joint_partition(c, &j, &o, &p), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_text(c), "between 0 and 1, and is 1.5");
    bp_error_clear(c);
    gm_unref(gm);
}

/* A long chain of sines: without the ban it would be recomputed from its start. */
static void a_long_chain_is_cut_into_pieces(void **state)
{
    bp_ctx *c = *state;
    buf text = {0};
    buf_puts(&text, "graph long {\n" IN("x", "f32[4]") IN("t", "f32[4]") "  %s0 = aten.sin.default(%x)\n");
    for (int i = 1; i < 300; i++)
        buf_printf(&text, "  %%s%d = aten.sin.default(%%s%d)\n", i, i - 1);
    for (int i = 299; i >= 0; i--)
        buf_printf(&text, i ? "  %%c%d = aten.cos.default(%%s%d)\n  %%g%d = aten.mul.Tensor(%%%s%d, %%c%d)\n"
                            : "  %%c%d = aten.cos.default(%%x)\n  %%g0 = aten.mul.Tensor(%%g1, %%c0)\n",
                   i, i - 1, i, i == 299 ? "t" : "g", i + 1, i);
    buf_puts(&text, "  output(%s299, %g0)\n}\n");
    char *t = strdup(buf_text(&text)), *first = strstr(t, "%t300");
    memcpy(first, "%t   ", 5);
    bp_graph_module *gm = parse(c, t);
    partition p = split(c, gm, &PARTITION_DEFAULTS);
    assert_true(p.nsaved > 1 && p.nsaved < 60);
    partition_fini(&p);
    partition_options o = PARTITION_DEFAULTS;
    o.ban_long_fusible_chains = o.ban_materialized_backward = o.ban_used_far_apart = false;
    p = split(c, gm, &o);
    assert_int_equal(p.nsaved, 1);
    partition_fini(&p);
    gm_unref(gm);
    buf_fini(&text);
    free(t);
}

static void a_cut_never_saves_more_bytes_than_the_default(void **state)
{
    bp_ctx *c = *state;
    static const char *const ALL[] = {CHAIN, LAYERS, DROPOUT, PARTS, NUMBER};
    for (uint32_t i = 0; i < sizeof ALL / sizeof *ALL; i++) {
        bp_graph_module *gm = parse(c, ALL[i]);
        partition d = split(c, gm, &DEFAULT), m = split(c, gm, &PARTITION_DEFAULTS);
        assert_true(m.saved_bytes <= d.saved_bytes);
        partition_fini(&d);
        partition_fini(&m);
        gm_unref(gm);
    }
}

static int set_up(void **state) { return (*state = bp_ctx_new(NULL)) ? 0 : -1; }
static int tear_down(void **state) { bp_ctx_destroy(*state); return 0; }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_saves_what_backward_reads),
        cmocka_unit_test(the_cut_saves_no_more_than_the_inputs_need),
        cmocka_unit_test(random_nodes_stay_in_the_forward),
        cmocka_unit_test(parameters_are_free_to_save),
        cmocka_unit_test(tags_decide),
        cmocka_unit_test(a_budget_of_zero_recomputes_from_the_inputs),
        cmocka_unit_test(a_budget_keeps_what_is_dear),
        cmocka_unit_test(a_budget_beyond_one_is_refused),
        cmocka_unit_test(a_long_chain_is_cut_into_pieces),
        cmocka_unit_test(a_cut_never_saves_more_bytes_than_the_default),
    };
    return cmocka_run_group_tests_name("partition", tests, set_up, tear_down);
}
