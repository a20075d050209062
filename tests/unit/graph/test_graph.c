/* Building, editing, cloning and hashing graphs; modules and their arguments. */
#include "tests/unit/graph/build.h"

/* Users of n as "3 5 ". */
static const char *users_of(const graph *g, node_id n)
{
    static char text[128];
    size_t at = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < graph_get(g, n)->users.len; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%u ", graph_get(g, n)->users.at[i]);
    return text;
}

/* 1 a, 2 b, 3 mul(a, a), 4 add(mul, b), 5 output(add) */
static void small(graph *g)
{
    graph_init(g);
    node_id a = build_placeholder(g, "a", TYPE(BP_F32, 1, DIM(10))), b = build_placeholder(g, "b", NULL);
    node_id mul = CALL(g, "aten.mul.Tensor", V_NODE(a), V_NODE(a));
    node_id add = CALL(g, "aten.add.Tensor", V_NODE(mul), V_NODE(b));
    OUTPUT(g, V_NODE(add));
}

static void users_are_kept_once_each_in_order(void **state)
{
    (void)state;
    graph g;
    small(&g);
    assert_string_equal(users_of(&g, 1), "3 ");
    assert_string_equal(users_of(&g, 3), "4 ");
    node_id more = CALL(&g, "aten.cat.default", V_LIST(&g, V_NODE(1), V_LIST(&g, V_NODE(2), V_NODE(1))));
    assert_string_equal(users_of(&g, 1), "3 6 ");
    assert_string_equal(users_of(&g, 2), "4 6 ");
    graph_set_args(&g, more, (bp_value[]){V_NODE(3)}, 1);
    assert_string_equal(users_of(&g, 1), "3 ");
    assert_string_equal(users_of(&g, 2), "4 ");
    assert_string_equal(users_of(&g, 3), "4 6 ");
    assert_false(g.failed);
    graph_fini(&g);
}

static void replacing_uses_moves_users_and_keeps_keywords(void **state)
{
    (void)state;
    graph g;
    small(&g);
    node_kwarg kw = {"other", V_LIST(&g, V_INT(1), V_NODE(3))};
    node_id clamp = graph_call(&g, NULL, "aten.x.y", (bp_value[]){V_NODE(2)}, 1, &kw, 1);
    graph_replace_uses(&g, 3, 2);
    assert_string_equal(users_of(&g, 3), "");
    assert_string_equal(users_of(&g, 2), "4 6 ");
    assert_int_equal(graph_get(&g, 4)->args[0].v.node, 2);
    assert_int_equal(graph_get(&g, clamp)->kwargs[0].value.v.items[1].v.node, 2);
    assert_int_equal(graph_get(&g, clamp)->kwargs[0].value.v.items[0].v.dim.value, 1);
    graph_erase(&g, 3);
    assert_int_equal(graph_get(&g, 2)->next, 4);
    assert_int_equal(graph_get(&g, 4)->prev, 2);
    assert_string_equal(users_of(&g, 1), "");
    assert_int_equal(graph_find(&g, "mul"), 0);
    node_id again = CALL(&g, "aten.mul.Tensor", V_NODE(1), V_NODE(2));
    assert_string_equal(graph_get(&g, again)->name, "mul_1"); /* a name stays taken, as in torch.fx */
    graph_fini(&g);
}

static void the_first_and_the_last_node_can_be_erased(void **state)
{
    (void)state;
    graph g;
    small(&g);
    graph_erase(&g, 5);
    assert_int_equal(g.last, 4);
    assert_int_equal(graph_output_node(&g), 0);
    graph_erase(&g, 4);
    graph_erase(&g, 3);
    graph_erase(&g, 1);
    assert_int_equal(g.first, 2);
    assert_int_equal(g.last, 2);
    assert_int_equal(g.live, 1);
    assert_false(g.failed);
    graph_fini(&g);
}

static void a_wrong_edit_fails_the_graph_and_says_why(void **state)
{
    bp_ctx *c = *state;
    static const struct { int what; const char *words; } ROWS[] = {
        {0, "node 3 cannot be erased: it is used"}, {1, "node 77 is no argument: it is not in the graph"},
        {2, "a tensor is no argument of a node"},   {3, "the name \"mul\" is taken"},
        {4, "node 99 cannot be erased: it is not in the graph"}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        graph g;
        small(&g);
        switch (ROWS[i].what) {
        case 0: graph_erase(&g, 3); break;
        case 1: CALL(&g, "aten.abs.default", V_NODE(77)); break;
        case 2: CALL(&g, "aten.abs.default", ((bp_value){BP_VALUE_TENSOR, 0, {0}})); break;
        case 3:
            graph_add(&g, &(node_spec){.op = BP_NODE_PLACEHOLDER, .name = "mul", .target = "m", .exact_name = true});
            break;
        default: graph_erase(&g, 99); break;
        }
        assert_true(g.failed);
        assert_int_equal(CALL(&g, "aten.abs.default", V_NODE(1)), 0);
        assert_int_equal(graph_status(c, &g), BP_INTERNAL);
        assert_contains(bp_error_text(c), ROWS[i].words);
        bp_error_clear(c);
        graph_fini(&g);
    }
}

static void arguments_are_copied(void **state)
{
    (void)state;
    graph g;
    graph_init(&g);
    char text[] = "none", name[] = "approximate";
    bp_value items[] = {V_INT(1), V_INT(2)}, list = {BP_VALUE_LIST, 2, {.items = items}};
    node_kwarg kw = {name, V_STR(text)};
    node_id n = graph_call(&g, NULL, "aten.x.y", &list, 1, &kw, 1);
    items[0] = V_INT(7);
    text[0] = name[0] = '!';
    assert_int_equal(graph_get(&g, n)->args[0].v.items[0].v.dim.value, 1);
    assert_string_equal(graph_get(&g, n)->kwargs[0].value.v.str, "none");
    assert_string_equal(graph_get(&g, n)->kwargs[0].name, "approximate");
    graph_fini(&g);
}

static char *text_of(const graph *g)
{
    buf out = {0};
    graph_print_tabular(g, &out);
    return out.s;
}

static void a_clone_is_equal_and_apart(void **state)
{
    bp_ctx *c = *state;
    graph g, copy;
    small(&g);
    node_id dead = CALL(&g, "aten.abs.default", V_NODE(1));
    graph_erase(&g, dead);
    graph_set_site(&g, 3, "demo.c", 5);
    assert_int_equal(graph_clone(c, &g, &copy), BP_OK);
    char *before = text_of(&g), *after = text_of(&copy);
    assert_string_equal(after, before);
    assert_string_equal(users_of(&copy, 1), "3 ");
    assert_int_equal(copy.nodes.at[1].metas[0].sizes[0].value, 10);
    assert_string_equal(copy.nodes.at[3].file, "demo.c");
    assert_string_equal(copy.nodes.at[CALL(&copy, "aten.mul.Tensor", V_NODE(1), V_NODE(2))].name, "mul_1");
    graph_replace_uses(&copy, 3, 2);
    assert_string_equal(users_of(&g, 3), "4 ");
    free(after);
    after = text_of(&g);
    assert_string_equal(after, before);
    free(before);
    free(after);
    graph_fini(&copy);
    graph_fini(&g);
}

static bp_graph_module *module_of(bp_ctx *c, const char *a, int64_t n, double factor)
{
    bp_graph_module *gm = gm_new(c, "__compiled_fn_0");
    node_id in = graph_placeholder(&gm->g, a, a, BP_ROLE_USER, TYPE(BP_F32, 1, DIM(n)));
    node_id mul = CALL(&gm->g, "aten.mul.Scalar", V_NODE(in), V_FLOAT(factor));
    OUTPUT(&gm->g, V_NODE(mul));
    return gm;
}

static hash128 hash_of(bp_ctx *c, bp_graph_module *gm)
{
    hash128 h = {0, 0};
    assert_int_equal(graph_hash(c, gm, NULL, &h), BP_OK);
    gm_unref(gm);
    return h;
}

static void hashes_see_structure_and_types_but_no_names(void **state)
{
    bp_ctx *c = *state;
    hash128 h = hash_of(c, module_of(c, "a", 10, 2.0));
    assert_true(hash128_eq(h, hash_of(c, module_of(c, "b", 10, 2.0))));
    assert_false(hash128_eq(h, hash_of(c, module_of(c, "a", 11, 2.0))));
    assert_false(hash128_eq(h, hash_of(c, module_of(c, "a", 10, 3.0))));
    bp_graph_module *gm = module_of(c, "a", 10, 2.0);
    node_id dead = CALL(&gm->g, "aten.abs.default", V_NODE(1));
    graph_erase(&gm->g, dead); /* a gap in the ids is no difference */
    graph_set_site(&gm->g, 2, "demo.c", 12);
    assert_true(hash128_eq(h, hash_of(c, gm)));
    gm = module_of(c, "a", 10, 2.0);
    gm->g.nodes.at[1].role = BP_ROLE_PARAMETER;
    assert_false(hash128_eq(h, hash_of(c, gm)));
    gm = module_of(c, "a", 10, 2.0);
    gm->g.nodes.at[1].metas[0].strides[0].value = 2;
    assert_false(hash128_eq(h, hash_of(c, gm)));
    gm = module_of(c, "a", 10, 2.0);
    graph_set_args(&gm->g, 2, (bp_value[]){V_NODE(1), V_INT(2)}, 2); /* 2 is not 2.0 */
    assert_false(hash128_eq(h, hash_of(c, gm)));
}

/* x * 2 + y; the placeholders in either order, of different sizes. */
static bp_graph_module *module_of_two(bp_ctx *c, bool x_first, bool x_used_first)
{
    bp_graph_module *gm = gm_new(c, "m");
    node_id one = graph_placeholder(&gm->g, "one", "one", BP_ROLE_USER, TYPE(BP_F32, 1, DIM(x_first ? 3 : 1)));
    node_id two = graph_placeholder(&gm->g, "two", "two", BP_ROLE_USER, TYPE(BP_F32, 1, DIM(x_first ? 1 : 3)));
    node_id x = x_first ? one : two, y = x_first ? two : one;
    node_id mul = CALL(&gm->g, "aten.mul.Scalar", V_NODE(x_used_first ? x : y), V_FLOAT(2));
    node_id add = CALL(&gm->g, "aten.add.Tensor", V_NODE(mul), V_NODE(x_used_first ? y : x));
    OUTPUT(&gm->g, V_NODE(add));
    return gm;
}

static void hashes_know_inputs_by_their_first_use(void **state)
{
    bp_ctx *c = *state;
    hash128 h = hash_of(c, module_of_two(c, true, true)), same;
    assert_true(hash128_eq(h, hash_of(c, module_of_two(c, false, true))));
    assert_false(hash128_eq(h, hash_of(c, module_of_two(c, true, false))));
    uint32_t order[2] = {9, 9};
    bp_graph_module *gm = module_of_two(c, false, true);
    assert_int_equal(graph_hash(c, gm, order, &same), BP_OK);
    assert_int_equal(order[0], 1); /* x is used first, and comes second */
    assert_int_equal(order[1], 0);
    gm_unref(gm);
}

static bp_graph_module *module_with_constant(bp_ctx *c, float value)
{
    bp_graph_module *gm = gm_new(c, "k");
    bp_tensor *t = tensor_contiguous_new(c, BP_F32, 1, (int64_t[]){2});
    memcpy(tensor_ptr(t), (float[]){1, value}, 8);
    node_id k = graph_get_attr(&gm->g, "k", "k", TYPE(BP_F32, 1, DIM(2)));
    OUTPUT(&gm->g, V_NODE(k));
    assert_int_equal(gm_set_constant(c, gm, "k", t), BP_OK);
    tensor_unref(t);
    return gm;
}

static void hashes_see_the_data_of_constants(void **state)
{
    bp_ctx *c = *state;
    hash128 h = hash_of(c, module_with_constant(c, 2));
    assert_true(hash128_eq(h, hash_of(c, module_with_constant(c, 2))));
    assert_false(hash128_eq(h, hash_of(c, module_with_constant(c, 3))));
}

static void an_argument_is_found_by_its_schema_name(void **state)
{
    bp_ctx *c = *state;
    bp_graph_module *gm = gm_new(c, "m");
    bp_value v;
    node_id a = build_placeholder(&gm->g, "a", NULL);
    node_kwarg kw = {"alpha", V_INT(2)};
    node_id add = graph_call(&gm->g, NULL, "aten.add.Tensor", (bp_value[]){V_NODE(a), V_NODE(a)}, 2, &kw, 1);
    node_id plain = CALL(&gm->g, "aten.add.Tensor", V_NODE(a), V_NODE(a));
    node_id odd = CALL(&gm->g, "aten.no.such", V_NODE(a));
    assert_int_equal(graph_arg(gm, add, "alpha", &v), BP_OK);
    assert_int_equal(v.v.dim.value, 2);
    assert_int_equal(graph_arg(gm, add, "other", &v), BP_OK);
    assert_int_equal(v.v.node, a);
    assert_int_equal(graph_arg(gm, plain, "alpha", &v), BP_OK);
    assert_int_equal(v.v.dim.value, 1);
    assert_int_equal(graph_arg(gm, plain, "beta", &v), BP_NOT_FOUND);
    assert_int_equal(graph_arg(gm, odd, "self", &v), BP_NOT_FOUND);
    assert_int_equal(graph_arg(gm, 99, "self", &v), BP_INVALID_ARGUMENT);
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
        cmocka_unit_test(users_are_kept_once_each_in_order),
        cmocka_unit_test(replacing_uses_moves_users_and_keeps_keywords),
        cmocka_unit_test(the_first_and_the_last_node_can_be_erased),
        cmocka_unit_test(a_wrong_edit_fails_the_graph_and_says_why),
        cmocka_unit_test(arguments_are_copied),
        cmocka_unit_test(a_clone_is_equal_and_apart),
        cmocka_unit_test(hashes_see_structure_and_types_but_no_names),
        cmocka_unit_test(hashes_know_inputs_by_their_first_use),
        cmocka_unit_test(hashes_see_the_data_of_constants),
        cmocka_unit_test(an_argument_is_found_by_its_schema_name),
    };
    return cmocka_run_group_tests(claims, make_ctx, drop_ctx);
}
