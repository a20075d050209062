/* The verifier finds what a pass may spoil, and what a reader may bring; each error names the node. */
#include "tests/unit/graph/build.h"

/* 1 a, 2 b, 3 mul(a, a), 4 add(mul, b, alpha=2), 5 output(add) */
static bp_graph_module *small(bp_ctx *c)
{
    bp_graph_module *gm = gm_new(c, "g");
    node_id a = build_placeholder(&gm->g, "a", TYPE(BP_F32, 1, DIM(10)));
    node_id b = build_placeholder(&gm->g, "b", TYPE(BP_F32, 1, DIM(10)));
    node_id mul = CALL(&gm->g, "aten.mul.Tensor", V_NODE(a), V_NODE(a));
    node_kwarg kw = {"alpha", V_INT(2)};
    node_id add = graph_call(&gm->g, NULL, "aten.add.Tensor", (bp_value[]){V_NODE(mul), V_NODE(b)}, 2, &kw, 1);
    OUTPUT(&gm->g, V_NODE(add));
    return gm;
}

static void what_is_built_is_right(void **state)
{
    bp_ctx *c = *state;
    bp_graph_module *gm = small(c);
    assert_int_equal(graph_verify(c, gm), BP_OK);
    gm_unref(gm);
}

#define AT(n) (&gm->g.nodes.at[n])
/* Each spoils a right graph in one way. */
static void bad_order(bp_graph_module *gm) { AT(3)->args[0] = V_NODE(4); }
static void self_reference(bp_graph_module *gm) { AT(3)->args[0] = V_NODE(3); }
static void unknown_node(bp_graph_module *gm) { AT(3)->args[0] = V_NODE(42); }
static void erased_node(bp_graph_module *gm) { AT(3)->args[0] = V_NODE(0); }
static void lost_user(bp_graph_module *gm) { AT(1)->users.len = 0; }
static void false_user(bp_graph_module *gm) { AT(1)->users.at[0] = 4; }
static void more_users(bp_graph_module *gm) { (void)vec_push(&AT(2)->users, 4); }
static void broken_link(bp_graph_module *gm) { AT(3)->prev = 1; }
static void cut_list(bp_graph_module *gm) { AT(3)->next = 0; }
static void endless_list(bp_graph_module *gm) { AT(5)->next = 3; }
static void same_name(bp_graph_module *gm) { AT(4)->name = "mul"; }
static void bad_name(bp_graph_module *gm) { AT(4)->name = "a.b"; }
static void bad_opcode(bp_graph_module *gm) { AT(4)->op = 17; }
static void no_role(bp_graph_module *gm) { AT(1)->role = 0; }
static void bad_size(bp_graph_module *gm) { AT(1)->metas[0].sizes[0].value = -3; }
static void bad_dtype(bp_graph_module *gm) { AT(1)->metas[0].dtype = 99; }
static void many_dims(bp_graph_module *gm) { AT(1)->metas[0].rank = 65; }
static void unknown_op(bp_graph_module *gm) { AT(3)->row = NULL, AT(3)->target = "aten.no.such"; }
static void two_outputs(bp_graph_module *gm) { OUTPUT(&gm->g, V_NODE(1)); }
static void output_twice(bp_graph_module *gm) { AT(5)->nargs = 2; }
static void output_number(bp_graph_module *gm) { graph_set_args(&gm->g, 5, (bp_value[]){V_LIST(&gm->g, V_INT(1))}, 1); }
static void bare_output(bp_graph_module *gm) { graph_set_args(&gm->g, 5, (bp_value[]){V_NODE(4)}, 1); }
static void no_output(bp_graph_module *gm) { graph_erase(&gm->g, 5); }
static void no_constant(bp_graph_module *gm)
{
    graph_erase(&gm->g, 5);
    graph_get_attr(&gm->g, "k", "k", NULL);
}
static void missing(bp_graph_module *gm) { graph_set_args(&gm->g, 3, (bp_value[]){V_NODE(1)}, 1); }
static void bad_kind(bp_graph_module *gm) { graph_set_args(&gm->g, 3, (bp_value[]){V_NODE(1), V_STR("x")}, 2); }
static void too_many(bp_graph_module *gm)
{
    graph_set_args(&gm->g, 4, (bp_value[]){V_NODE(3), V_NODE(2), V_INT(1)}, 3);
}
static void bad_keyword(bp_graph_module *gm) { AT(4)->kwargs[0].name = "beta"; }
static void given_twice(bp_graph_module *gm) { AT(4)->kwargs[0].name = "other"; }
static void list_as_tensor(bp_graph_module *gm)
{
    graph_erase(&gm->g, 5);
    node_id f = CALL(&gm->g, "aten.frexp.Tensor", V_NODE(1));
    CALL(&gm->g, "aten.abs.default", V_NODE(f));
}

static const struct { void (*spoil)(bp_graph_module *gm); const char *node, *words; } FAULTS[] = {
    {bad_order, "\"mul\"", "its argument \"add\" comes after it"},
    {self_reference, "\"mul\"", "its argument \"mul\" comes after it"},
    {unknown_node, "\"mul\"", "names node 42, which is not in the graph"},
    {erased_node, "\"mul\"", "names node 0, which is not in the graph"},
    {lost_user, "\"a\"", "it records 0 users and has 1"},
    {false_user, "\"a\"", "others as its users than use it"},
    {more_users, "\"b\"", "it records 2 users and has 1"},
    {broken_link, "\"mul\"", "the node before it is 2, its link says 1"},
    {cut_list, "\"g\"", "counts 5 nodes and has 3"},
    {endless_list, "\"g\"", "broken at node 3"},
    {same_name, "\"mul\"", "its name is not unique"},
    {bad_name, "\"a.b\"", "its name is no identifier"},
    {bad_opcode, "\"add\"", "its opcode 17 is none"},
    {no_role, "\"a\"", "must have a role, got 0"},
    {bad_size, "\"a\"", "size -3"},
    {bad_dtype, "\"a\"", "no data type"},
    {many_dims, "\"a\"", "65 dimensions, 64 at most"},
    {unknown_op, "\"mul\"", "unknown operator \"aten.no.such\""},
    {two_outputs, "\"output\"", "an output must be the last node"},
    {output_twice, "\"output\"", "one argument, the list of results"},
    {output_number, "\"output\"", "result 0 must be a node, a symbol or None"},
    {bare_output, "\"output\"", "one argument, the list of results"},
    {no_output, "\"g\"", "has no output"},
    {no_constant, "\"k\"", "its constant has no value"},
    {missing, "\"mul\"", "argument \"other\" of aten.mul.Tensor is missing"},
    {bad_kind, "\"mul\"", "argument \"other\" of aten.mul.Tensor must be Tensor"},
    {too_many, "\"add\"", "takes 2 positional arguments, got 3"},
    {bad_keyword, "\"add\"", "aten.add.Tensor has no argument \"beta\""},
    {given_twice, "\"add\"", "argument \"other\" of aten.add.Tensor is given twice"},
    {list_as_tensor, "\"abs_1\"", "got a list of tensors: take one with getitem"},
};

static void each_fault_is_found_and_named(void **state)
{
    bp_ctx *c = *state;
    for (size_t i = 0; i < sizeof FAULTS / sizeof *FAULTS; i++) {
        bp_graph_module *gm = small(c);
        FAULTS[i].spoil(gm);
        assert_int_not_equal(graph_verify(c, gm), BP_OK);
        assert_contains(bp_error_text(c), FAULTS[i].node);
        assert_contains(bp_error_text(c), FAULTS[i].words);
        bp_error_clear(c);
        gm_unref(gm);
    }
}

static void an_error_names_where_the_node_was_recorded(void **state)
{
    bp_ctx *c = *state;
    bp_graph_module *gm = small(c);
    graph_set_site(&gm->g, 3, "demo.c", 12);
    missing(gm);
    assert_int_equal(graph_verify(c, gm), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_text(c), "demo.c:12");
    bp_error_clear(c);
    gm_unref(gm);
}

/* A node with very many users, and one with very many inputs, take no square of time. */
static void a_wide_graph_is_checked_quickly(void **state)
{
    bp_ctx *c = *state;
    enum { WIDE = 100000 };
    bp_graph_module *gm = gm_new(c, "g");
    bp_value *all = calloc(WIDE, sizeof *all);
    node_id a = build_placeholder(&gm->g, "a", TYPE(BP_F32, 1, DIM(1)));
    for (uint32_t i = 0; i < WIDE; i++)
        all[i] = V_NODE(CALL(&gm->g, "aten.abs.default", V_NODE(a)));
    graph_output(&gm->g, all, WIDE);
    assert_int_equal(graph_verify(c, gm), BP_OK);
    graph_replace_uses(&gm->g, a, build_placeholder(&gm->g, "b", TYPE(BP_F32, 1, DIM(1))));
    assert_int_equal(graph_get(&gm->g, a)->users.len, 0);
    free(all);
    gm_unref(gm);
}

static int make_ctx(void **state)
{
    return (*state = bp_ctx_new(NULL)) ? 0 : -1;
}

static int drop_ctx(void **state)
{
    bp_ctx_destroy(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest claims[] = {
        cmocka_unit_test(what_is_built_is_right),
        cmocka_unit_test(each_fault_is_found_and_named),
        cmocka_unit_test(an_error_names_where_the_node_was_recorded),
        cmocka_unit_test(a_wide_graph_is_checked_quickly),
    };
    return cmocka_run_group_tests(claims, make_ctx, drop_ctx);
}
