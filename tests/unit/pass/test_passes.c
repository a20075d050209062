/* Passes, by the text of a graph before and after. */
#define BP_WITHOUT_OPERATORS
#include "host/pass/pass.h"
#include "tests/lib/op_world.h"

static bp_graph_module *parse(const char *body)
{
    buf text = {0};
    buf_printf(&text, "graph g {\n%s}\n", body);
    bp_graph_module *gm = graph_parse_text(c, "t.bpg", buf_text(&text), text.n);
    assert_string_equal(bp_error_text(c), "");
    buf_fini(&text);
    return gm;
}

/* Runs a pass over a graph of these lines: it has those lines afterwards, and is a right one. */
static void becomes(pass_fn fn, void *arg, const char *before, const char *after)
{
    bp_graph_module *gm = parse(before);
    buf text = {0}, want = {0};
    bp_status s = passes_run(c, gm, &(pass){"tested", fn, arg}, 1);
    assert_string_equal(bp_error_text(c), "");
    assert_int_equal(s, BP_OK);
    assert_int_equal(graph_verify(c, gm), BP_OK);
    graph_print_text(gm, &text);
    buf_printf(&want, "graph g {\n%s}\n", after);
    assert_string_equal(buf_text(&text), buf_text(&want));
    buf_fini(&text);
    buf_fini(&want);
    gm_unref(gm);
}

#define X "  %x: f32[4] = placeholder \"x\" user\n"
#define Y "  %y: f32[4] = placeholder \"y\" user\n"

/* -- dead code ----------------------------------------------------------------------------------------------------- */

static void what_nobody_uses_goes(void **state)
{
    (void)state;
    becomes(pass_dce, NULL,
            X Y "  %neg: f32[4] = aten.neg.default(%x)\n  %abs_1: f32[4] = aten.abs.default(%neg)\n"
                "  %exp: f32[4] = aten.exp.default(%x)\n  output(%exp)\n",
            X Y "  %exp: f32[4] = aten.exp.default(%x)\n  output(%exp)\n");
}

static void writes_random_numbers_and_checks_stay(void **state)
{
    (void)state;
    static const char SAME[] =
        X Y "  %neg: f32[4] = aten.neg.default(%x)\n  %add_: f32[4] = aten.add_.Tensor(%neg, %y)\n"
            "  %rand_like: f32[4] = aten.rand_like.default(%x)\n"
            "  %index_select: f32[1] = aten.index_select.default(%x, 0, %i)\n  output(%neg)\n";
    char text[600];
    snprintf(text, sizeof text, "  %%i: i64[1] = placeholder \"i\" user\n%s", SAME);
    becomes(pass_dce, NULL, text, text);
}

/* -- common subexpressions ----------------------------------------------------------------------------------------- */

static void equal_calls_become_one(void **state)
{
    (void)state;
    becomes(pass_cse, NULL,
            X "  %neg: f32[4] = aten.neg.default(%x)\n  %neg_1: f32[4] = aten.neg.default(%x)\n"
              "  %add: f32[4] = aten.add.Tensor(%neg, 1)\n  %add_1: f32[4] = aten.add.Tensor(%neg_1, 1)\n"
              "  %add_2: f32[4] = aten.add.Tensor(%neg_1, 1.0)\n"
              "  %mul: f32[4] = aten.mul.Tensor(%add, %add_1)\n  %mul_1: f32[4] = aten.mul.Tensor(%mul, %add_2)\n"
              "  output(%mul_1)\n",
            X "  %neg: f32[4] = aten.neg.default(%x)\n  %add: f32[4] = aten.add.Tensor(%neg, 1)\n"
              "  %add_2: f32[4] = aten.add.Tensor(%neg, 1.0)\n"
              "  %mul: f32[4] = aten.mul.Tensor(%add, %add)\n  %mul_1: f32[4] = aten.mul.Tensor(%mul, %add_2)\n"
              "  output(%mul_1)\n");
}

static void different_outputs_stay_apart(void **state)
{
    (void)state;
    static const char SAME[] = X "  %neg: f32[4] = aten.neg.default(%x)\n  %neg_1: f32[4] = aten.neg.default(%x)\n"
                                 "  %view: f32[2, 2] = aten.view.default(%neg_1, [2, 2])\n  output(%neg, %view)\n";
    becomes(pass_cse, NULL, SAME, SAME);
}

static void what_is_written_is_not_merged(void **state)
{
    (void)state;
    static const char SAME[] =
        X "  %neg: f32[4] = aten.neg.default(%x)\n  %neg_1: f32[4] = aten.neg.default(%x)\n"
          "  %exp: f32[4] = aten.exp.default(%neg)\n  %add_: f32[4] = aten.add_.Tensor(%neg, %x)\n"
          "  %exp_1: f32[4] = aten.exp.default(%neg)\n  %mul: f32[4] = aten.mul.Tensor(%exp, %exp_1)\n"
          "  %mul_1: f32[4] = aten.mul.Tensor(%mul, %neg_1)\n  output(%mul_1)\n";
    becomes(pass_cse, NULL, SAME, SAME);
}

static void random_numbers_are_drawn_as_often_as_before(void **state)
{
    (void)state;
    static const char SAME[] = X "  %rand_like: f32[4] = aten.rand_like.default(%x)\n"
                                 "  %rand_like_1: f32[4] = aten.rand_like.default(%x)\n"
                                 "  %add: f32[4] = aten.add.Tensor(%rand_like, %rand_like_1)\n  output(%add)\n";
    becomes(pass_cse, NULL, SAME, SAME);
}

/* -- constants ----------------------------------------------------------------------------------------------------- */

#define K "  %k: f32[2] = get_attr \"k\" data \"AACAPwAAAEA=\"\n" /* 1, 2 */
#define Z "  %z: f32[2] = placeholder \"z\" user\n"

static void calls_on_constants_are_computed(void **state)
{
    (void)state;
    becomes(pass_fold_constants, NULL,
            Z K "  %neg: f32[2] = aten.neg.default(%k)\n  %add: f32[2] = aten.add.Tensor(%neg, %k)\n"
                "  %mul: f32[2] = aten.mul.Tensor(%add, %z)\n  output(%mul)\n",
            Z "  %add_folded: f32[2] = get_attr \"add_folded\" data \"AAAAAAAAAAA=\"\n"
              "  %mul: f32[2] = aten.mul.Tensor(%add_folded, %z)\n  output(%mul)\n");
}

static void a_constant_that_leaves_the_graph_stays_a_call(void **state)
{
    (void)state;
    static const char SAME[] = Z K "  %neg: f32[2] = aten.neg.default(%k)\n  output(%neg)\n";
    becomes(pass_fold_constants, NULL, SAME, SAME);
}

static void creation_stays_as_it_is_written(void **state)
{
    (void)state;
    static const char SAME[] = Z "  %full: f32[2] = aten.full.default([2], 3.0)\n"
                                 "  %mul: f32[2] = aten.mul.Tensor(%full, %z)\n  output(%mul)\n";
    becomes(pass_fold_constants, NULL, SAME, SAME);
}

/* -- decomposition ------------------------------------------------------------------------------------------------- */

static void calls_become_their_parts_in_place(void **state)
{
    (void)state;
    becomes(pass_decompose, NULL,
            X Y "  %silu: f32[4] = aten.silu.default(%x)\n  %neg: f32[4] = aten.neg.default(%silu)\n"
                "  %mul: f32[4] = aten.mul.Tensor(%neg, %y)\n  output(%mul, %silu)\n",
            X Y "  %sigmoid: f32[4] = aten.sigmoid.default(%x)\n  %mul_1: f32[4] = aten.mul.Tensor(%x, %sigmoid)\n"
                "  %neg: f32[4] = aten.neg.default(%mul_1)\n  %mul: f32[4] = aten.mul.Tensor(%neg, %y)\n"
                "  output(%mul, %mul_1)\n");
}

static void parts_are_decomposed_down_to_the_end(void **state)
{
    (void)state;
    becomes(pass_decompose, NULL,
            X "  %w: f32[3, 4] = placeholder \"w\" parameter\n  %linear: f32[3] = aten.linear.default(%x, %w)\n"
              "  output(%linear)\n",
            X "  %w: f32[3, 4] = placeholder \"w\" parameter\n"
              "  %permute: f32[4, 3; 1, 4] = aten.permute.default(%w, [1, 0])\n"
              "  %unsqueeze: f32[1, 4] = aten.unsqueeze.default(%x, 0)\n"
              "  %mm: f32[1, 3] = aten.mm.default(%unsqueeze, %permute)\n"
              "  %squeeze: f32[3] = aten.squeeze.dim(%mm, -2)\n  output(%squeeze)\n");
}

static void several_results_go_to_those_that_pick_them(void **state)
{
    (void)state;
    becomes(pass_decompose, NULL,
            X "  %unbind: (f32[], f32[], f32[], f32[]) = aten.unbind.int(%x)\n"
              "  %getitem: f32[] = <built-in function getitem>(%unbind, 3)\n"
              "  %getitem_1: f32[] = <built-in function getitem>(%unbind, -4)\n"
              "  %add: f32[] = aten.add.Tensor(%getitem, %getitem_1)\n  output(%add)\n",
            X "  %select: f32[] = aten.select.int(%x, 0, 0)\n  %select_3: f32[] = aten.select.int(%x, 0, 3)\n"
              "  %add: f32[] = aten.add.Tensor(%select_3, %select)\n  output(%add)\n");
}

static void a_list_goes_on_as_a_list(void **state)
{
    (void)state;
    becomes(pass_decompose, NULL,
            X "  %unbind: (f32[], f32[], f32[], f32[]) = aten.unbind.int(%x)\n"
              "  %stack: f32[4] = aten.stack.default(%unbind)\n  output(%stack)\n",
            X "  %select: f32[] = aten.select.int(%x, 0, 0)\n  %select_1: f32[] = aten.select.int(%x, 0, 1)\n"
              "  %select_2: f32[] = aten.select.int(%x, 0, 2)\n  %select_3: f32[] = aten.select.int(%x, 0, 3)\n"
              "  %unsqueeze: f32[1] = aten.unsqueeze.default(%select, 0)\n"
              "  %unsqueeze_1: f32[1] = aten.unsqueeze.default(%select_1, 0)\n"
              "  %unsqueeze_2: f32[1] = aten.unsqueeze.default(%select_2, 0)\n"
              "  %unsqueeze_3: f32[1] = aten.unsqueeze.default(%select_3, 0)\n"
              "  %cat: f32[4] = aten.cat.default([%unsqueeze, %unsqueeze_1, %unsqueeze_2, %unsqueeze_3])\n"
              "  output(%cat)\n");
}

static void a_number_that_only_a_run_tells_stays_its_node(void **state)
{
    (void)state;
    becomes(pass_decompose, NULL,
            X "  %s: f32[] = placeholder \"s\" user\n"
              "  %_local_scalar_dense = aten._local_scalar_dense.default(%s)\n"
              "  %threshold: f32[4] = aten.threshold.default(%x, 0, %_local_scalar_dense)\n  output(%threshold)\n",
            X "  %s: f32[] = placeholder \"s\" user\n"
              "  %_local_scalar_dense = aten._local_scalar_dense.default(%s)\n"
              "  %le: b8[4] = aten.le.Scalar(%x, 0)\n"
              "  %where: f32[4] = aten.where.self(%le, %_local_scalar_dense, %x)\n  output(%where)\n");
}

static void what_is_wanted_whole_stays(void **state)
{
    (void)state;
    static const char *const WHOLE[] = {"aten.silu.default", NULL};
    decompose_options o = {.whole = WHOLE};
    becomes(pass_decompose, &o,
            X "  %silu: f32[4] = aten.silu.default(%x)\n  %square: f32[4] = aten.square.default(%silu)\n"
              "  output(%square)\n",
            X "  %silu: f32[4] = aten.silu.default(%x)\n"
              "  %pow_1: f32[4] = aten.pow.Tensor_Scalar(%silu, 2)\n  output(%pow_1)\n");
}

static void parts_have_the_place_of_their_call(void **state)
{
    (void)state;
    bp_graph_module *gm = parse(X "  %silu: f32[4] = aten.silu.default(%x)\n  output(%silu)\n");
    assert_int_equal(pass_decompose(c, gm, NULL), BP_OK);
    const graph_node *n = graph_get(&gm->g, graph_find(&gm->g, "sigmoid"));
    assert_string_equal(n->file, "t.bpg");
    assert_int_equal(n->line, 3);
    gm_unref(gm);
}

static void F030_the_verifier_names_what_is_not_core(void **state)
{
    (void)state;
    bp_graph_module *gm = parse(X "  %silu: f32[4] = aten.silu.default(%x)\n"
                                  "  %mish: f32[4] = aten.mish.default(%silu)\n"
                                  "  %erfinv: f32[4] = aten.erfinv.default(%mish)\n  output(%erfinv)\n");
    assert_int_equal(pass_verify_core(c, gm, NULL), BP_FAILED_PRECONDITION);
    assert_contains(bp_error_text(c), "graph \"g\" is not in core ATen: \"silu\" (aten.silu.default), \"mish\" "
                                      "(aten.mish.default)");
    bp_error_clear(c);
    assert_int_equal(pass_decompose(c, gm, NULL), BP_OK);
    assert_int_equal(pass_verify_core(c, gm, NULL), BP_OK); /* erfinv is KEPT */
    gm_unref(gm);
}

/* -- the table ----------------------------------------------------------------------------------------------------- */

static void every_formula_of_the_table_parses(void **state)
{
    (void)state;
    decomp_check_all(c);
    assert_string_equal(bp_error_text(c), "");
}

static void what_is_kept_says_why(void **state)
{
    (void)state;
    const op_row *op = op_by_target("aten.erfinv.default");
    bp_tensor *out = NULL;
    assert_int_equal(decomp_run(c, op, (bp_value[]){value_none()}, &out, 1), BP_UNIMPLEMENTED);
    assert_contains(bp_error_text(c), "erfinv: it has no decomposition: a function that core ATen has no operators");
    assert_null(decomp_of(op_by_target("aten.add_.Tensor")));
    assert_true(decomp_of(op_by_target("aten.linear.default"))->composite);
}

int main(void)
{
    const struct CMUnitTest claims[] = {
        OP_WORLD_TEST(what_nobody_uses_goes),
        OP_WORLD_TEST(writes_random_numbers_and_checks_stay),
        OP_WORLD_TEST(equal_calls_become_one),
        OP_WORLD_TEST(different_outputs_stay_apart),
        OP_WORLD_TEST(what_is_written_is_not_merged),
        OP_WORLD_TEST(random_numbers_are_drawn_as_often_as_before),
        OP_WORLD_TEST(calls_on_constants_are_computed),
        OP_WORLD_TEST(a_constant_that_leaves_the_graph_stays_a_call),
        OP_WORLD_TEST(creation_stays_as_it_is_written),
        OP_WORLD_TEST(calls_become_their_parts_in_place),
        OP_WORLD_TEST(parts_are_decomposed_down_to_the_end),
        OP_WORLD_TEST(several_results_go_to_those_that_pick_them),
        OP_WORLD_TEST(a_list_goes_on_as_a_list),
        OP_WORLD_TEST(a_number_that_only_a_run_tells_stays_its_node),
        OP_WORLD_TEST(what_is_wanted_whole_stays),
        OP_WORLD_TEST(parts_have_the_place_of_their_call),
        OP_WORLD_TEST(F030_the_verifier_names_what_is_not_core),
        OP_WORLD_TEST(every_formula_of_the_table_parses),
        OP_WORLD_TEST(what_is_kept_says_why),
    };
    return cmocka_run_group_tests(claims, NULL, NULL);
}
