/* C2 and C3: value breaks, outcomes, slices, replay, sharing of segments, growth of lists. */
#include "tests/unit/compile/fixture.h"
#include <math.h>

/* -- C2.1 ---------------------------------------------------------------------------------------------------------- */

static void ask_an_input(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    if (bp_is_true(c, x))
        bp_return(f, bp_add(c, x, 1));
    else
        bp_return(f, x);
}

static void c2_1_empty_segments_are_not_compiled(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, ask_an_input);
    for (int i = 0; i < 3; i++) {
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 2)).at[0], 3);
        bp_tensor *zero = FLOATS(f, 0);
        assert_ptr_equal(CALL(f, g, zero).at[0], zero);
    }
    assert_int_equal(stats(f, g).graphs, 1);
    assert_int_equal(stats(f, g).outcomes, 2);
    assert_contains(buf_text(&f->tables), "__resume_at_10_0");
    bp_callable_unref(g);
}

/* -- C2.2 ---------------------------------------------------------------------------------------------------------- */

static void write_then_ask(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_add_inplace(c, bp_slice(c, x, .end = BP_SCALAR(1)), 5);
    if (bp_is_true(c, bp_gt(c, bp_select(c, x, 0, 0), 5)))
        bp_mul_inplace(c, x, 2);
    bp_return(f, bp_sum(c, x));
}

static void c2_2_a_slice_holds_every_write_that_reaches_the_value(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, write_then_ask);
    for (int i = 0; i < 3; i++) {
        bp_tensor *x = FLOATS(f, 1, 2), *y = FLOATS(f, -1, 2);
        EXPECT_FLOATS(f, CALL(f, g, x).at[0], 16);
        EXPECT_FLOATS(f, x, 12, 4);
        EXPECT_FLOATS(f, CALL(f, g, y).at[0], 6);
        EXPECT_FLOATS(f, y, 4, 2);
    }
    assert_int_equal(stats(f, g).captures, 2);
    assert_int_equal(stats(f, g).disagreements, 0);
    bp_callable_unref(g);
}

/* -- C2.3 ---------------------------------------------------------------------------------------------------------- */

static void ask_again(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *p = bp_gt(c, bp_sum(c, x), 0), *one = bp_full(c, BP_DIMS(1), 1);
    int n = bp_is_true(c, p) + bp_is_true(c, p) + bp_is_true(c, bp_lt(c, one, 2));
    bp_return(f, bp_mul(c, x, n));
}

static void c2_3_the_same_version_asked_again_is_one_break_and_a_constant_none(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, ask_again);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 2)).at[0], 6);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, -2)).at[0], -2);
    assert_int_equal(stats(f, g).break_sites, 1);
    assert_int_equal(stats(f, g).graphs, 3);
    bp_callable_unref(g);
}

static void use_a_float(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, bp_mul(c, bp_ones(c, BP_DIMS(2)), bp_scalar_float(bp_item_float(c, x))));
}

static void c2_3_minus_zero_is_its_own_outcome_and_every_nan_is_one(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, use_a_float);
    static const float nan1 = NAN;
    float nan2 = -nan1;
    assert_false(signbit(at(f, CALL(f, g, FLOATS(f, 0.0f)).at[0], 0)));
    assert_true(signbit(at(f, CALL(f, g, FLOATS(f, -0.0f)).at[0], 0)));
    assert_true(isnan(at(f, CALL(f, g, FLOATS(f, nan1)).at[0], 0)));
    assert_true(isnan(at(f, CALL(f, g, FLOATS(f, nan2)).at[0], 0)));
    assert_int_equal(stats(f, g).outcomes, 3);
    bp_callable_unref(g);
}

/* -- C2.4 ---------------------------------------------------------------------------------------------------------- */

static void use_an_int(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, bp_add(c, x, bp_item_int(c, bp_sum(c, x))));
}

static void c2_4_the_ninth_value_opens_the_break_with_one_warning(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, use_an_int);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 12; i++)
            EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, (float)i)).at[0], (float)(2 * i));
    bp_callable_stats s = stats(f, g);
    assert_int_equal(s.outcomes, 8);
    assert_int_equal(s.opened, 1);
    assert_int_equal(s.eager_calls, 3 * 4);
    assert_contains(buf_text(&f->log), "has given 8 different values");
    const char *first = strstr(buf_text(&f->log), "different values");
    assert_null(strstr(first + 1, "different values"));
    bp_callable_unref(g);
}

static void ask_for_ever(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    while (bp_is_true(c, bp_gt(c, x, 0)))
        x = bp_sub(c, x, 1);
    bp_return(f, x);
}

static void c2_4_a_path_holds_at_most_64_breaks(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, ask_for_ever);
    for (int i = 0; i < 3; i++) {
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 40)).at[0], 0);
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 80)).at[0], 0);
    }
    assert_int_equal(stats(f, g).eager_calls, 3);
    assert_int_equal(stats(f, g).captures, 2);
    assert_int_equal(stats(f, g).opened, 1);
    assert_true(stats(f, g).graphs <= 4); /* equal rounds share a segment */
    bp_callable_unref(g);
}

/* -- C3.1: a backend that rounds otherwise decides ----------------------------------------------------------------- */

/* Gives the graph's results, each float increased by one unit in the last place. */
static bp_status round_up(void *state, bp_run *r)
{
    bp_status st = bp_run_compiled(r, state);
    for (uint32_t i = 0; st == BP_OK && i < 1; i++) {
        bp_view v;
        if (bp_run_empty(r, i, &v) != BP_OK || v.dtype != BP_F32)
            continue;
        float *p = v.data;
        *p = nextafterf(*p, INFINITY);
    }
    return st;
}

static void drop_forward(void *state)
{
    bp_compiled_unref(state);
}

static bp_compiled *rounds_otherwise(bp_graph_module *gm, const bp_inputs *in)
{
    (void)in;
    return bp_compiled_new(gm, round_up, drop_forward, bp_forward(gm));
}

static void float_decides(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    double v = bp_item_float(c, bp_mul(c, x, 1));
    bp_return(f, bp_full(c, BP_DIMS(1), v > 1 ? 1.0 : 0.0));
}

static void c3_1_what_the_compiled_segment_computed_decides(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = rounds_otherwise};
    bp_callable *g = bp_compile(f->c, float_decides, &o);
    for (int i = 0; i < 3; i++) { /* the slice says 1, which is not above 1; the compiled value is */
        bp_outputs r = CALL(f, g, FLOATS(f, 1));
        assert_true(at(f, r.at[0], 0) >= 1);
    }
    bp_callable_stats s = stats(f, g);
    assert_int_equal(s.disagreements, 1);
    assert_int_equal(s.captures, 2);
    assert_int_equal(s.outcomes, 1); /* the guess that nobody confirmed does not count (C2.4) */
    bp_callable_unref(g);
}

/* -- C3.2 ---------------------------------------------------------------------------------------------------------- */

static void wants_more_later(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *dear = bp_cumsum(c, x, 0), *cheap = bp_mul(c, x, 3);
    if (bp_is_true(c, bp_gt(c, bp_sum(c, x), 0)))
        bp_return(f, bp_add(c, x, 1));
    else
        bp_return(f, bp_add(c, dear, cheap));
}

static void c3_2_a_list_grows_and_what_is_cheap_is_recomputed(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, wants_more_later);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1, 2)).at[0], 2, 3);
    for (int i = 0; i < 3; i++)
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, -1, -2)).at[0], -4, -9);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1, 2)).at[0], 2, 3);
    bp_callable_stats s = stats(f, g);
    assert_int_equal(s.growths, 1);
    assert_int_equal(s.captures, 2);
    assert_int_equal(s.graphs, 4); /* the prefix is compiled again, with the longer list */
    assert_contains(buf_text(&f->tables), "((gt, cumsum),)");
    const char *resumed = strstr(buf_text(&f->tables), "cumsum  ");
    assert_non_null(resumed);
    assert_non_null(strstr(buf_text(&f->tables), "mul     aten.mul.Scalar"));
    bp_callable_unref(g);
}

static uint32_t refused;

/* Takes graphs of one result only. */
static bp_compiled *one_result(bp_graph_module *gm, const bp_inputs *in)
{
    bp_value outs = {BP_VALUE_NONE, 0, {0}};
    (void)in;
    bp_node_arg(gm, bp_node_at(gm, bp_node_count(gm) - 1), "0", &outs);
    if (outs.count < 2)
        return bp_forward(gm);
    refused++;
    return bp_refuse(gm, "%u results", outs.count);
}

static void c3_2_a_longer_list_that_does_not_compile_leaves_the_old_code_serving(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = one_result};
    bp_callable *g = bp_compile(f->c, wants_more_later, &o);
    refused = 0;
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1, 2)).at[0], 2, 3);
    for (int i = 0; i < 4; i++)
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, -1, -2)).at[0], -4, -9);
    assert_int_equal(refused, 1);
    assert_int_equal(stats(f, g).eager_calls, 0);
    assert_int_equal(stats(f, g).captures, 2);
    bp_callable_unref(g);
}

static void asked_part(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_mul(c, x, 3);
    if (bp_is_true(c, bp_gt(c, y, 0)))
        bp_return(f, bp_add(c, x, 1));
    else
        bp_return(f, bp_add(c, y, 1));
}

static void c3_2_part_of_what_was_asked_is_not_recomputed(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, asked_part);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 2)).at[0], 3);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, -2)).at[0], -5);
    assert_int_equal(stats(f, g).growths, 1);
    bp_callable_unref(g);
}

/* -- C3.4 ---------------------------------------------------------------------------------------------------------- */

static void ten_branches(bp_ctx *c, bp_frame *f)
{
    bp_tensor *y = bp_arg(f, 0, "y"), *x = bp_arg(f, 1, "x");
    for (int i = 0; i < 10; i++)
        if (bp_is_true(c, bp_lt(c, bp_select(c, x, 0, i), 0)))
            y = bp_mul(c, y, i + 2);
    bp_return(f, y);
}

/* The first round takes y, then x, as arguments come; later ones take x, then what was handed on. */
static void takes_away(bp_ctx *c, bp_frame *f)
{
    bp_tensor *y = bp_arg(f, 0, "y"), *x = bp_arg(f, 1, "x");
    while (bp_is_true(c, bp_gt(c, bp_sum(c, y), 0)))
        y = bp_sub(c, y, x);
    bp_return(f, y);
}

static void c3_4_equal_pieces_with_inputs_in_another_order_are_one_segment(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, takes_away);
    for (int i = 0; i < 2; i++) {
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 5), FLOATS(f, 2)).at[0], -1);
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 9), FLOATS(f, 1)).at[0], 0);
    }
    assert_int_equal(stats(f, g).graphs, 2);
    assert_int_equal(stats(f, g).captures, 2);
    const char *second = strstr(buf_text(&f->tables), "aten.sub.Tensor");
    assert_non_null(second);
    assert_contains(second, "(y, x)");
    bp_callable_unref(g);
}

static void c3_4_k_branches_cost_about_2k_segments(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, ten_branches);
    for (unsigned n = 0; n < 96; n++) {
        bp_scope_begin(f->c);
        float x[10], want = 1;
        for (int i = 0; i < 10; i++) {
            x[i] = n * 37 >> i & 1 ? -1 : 1;
            want *= x[i] < 0 ? (float)(i + 2) : 1;
        }
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1), floats(f, 10, x)).at[0], want);
        bp_scope_end(f->c);
    }
    assert_int_equal(stats(f, g).graphs, 20);
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

static void rounds(bp_ctx *c, bp_frame *f)
{
    bp_tensor *s = bp_arg(f, 0, "s"), *y = bp_arg(f, 1, "y");
    while (bp_is_true(c, bp_lt(c, s, 60))) {
        s = bp_add(c, s, 1);
        y = bp_add(c, y, 0.5);
    }
    bp_return(f, y);
}

static void c3_4_equal_rounds_share_one_segment(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, rounds);
    static const int trips[] = {3, 9, 1, 5, 50, 0, 30};
    for (int i = 0; i < 7; i++)
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, (float)(60 - trips[i])), FLOATS(f, 1)).at[0], 1 + 0.5f * (float)trips[i]);
    assert_int_equal(stats(f, g).graphs, 2);
    assert_int_equal(stats(f, g).captures, 7);
    bp_callable_unref(g);
}

/* -- C3.7 ---------------------------------------------------------------------------------------------------------- */

static void views(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *row = bp_select(c, x, 0, 1), *t = bp_t(c, x);
    if (bp_is_true(c, bp_gt(c, bp_sum(c, row), 0)))
        bp_add_inplace(c, row, 1);
    bp_return(f, row);
    bp_return(f, t);
    bp_return(f, x);
    bp_return(f, bp_mul(c, row, 1));
}

static void c3_7_views_of_inputs_are_regenerated(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, views);
    int64_t two[] = {2, 2};
    for (int i = 0; i < 3; i++) {
        bp_tensor *x = bp_tensor_from(f->c, BP_F32, 2, two, (float[]){1, 2, 3, 4});
        bp_outputs o = CALL(f, g, x);
        assert_ptr_equal(o.at[2], x);
        assert_true(bp_tensor_same_storage(o.at[0], x) && bp_tensor_same_storage(o.at[1], x));
        assert_false(bp_tensor_same_storage(o.at[3], x));
        EXPECT_FLOATS(f, o.at[0], 4, 5);
        EXPECT_FLOATS(f, o.at[1], 1, 4, 2, 5);
        EXPECT_FLOATS(f, o.at[3], 4, 5);
        assert_int_equal(bp_tensor_offset(o.at[0]), 2);
    }
    bp_callable_unref(g);
}

/* -- C7: random numbers ---------------------------------------------------------------------------------------------
 */

static void draws(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *a = bp_rand(c, BP_DIMS(3));
    bp_rand(c, BP_DIMS(5)); /* dead, and keeps its increment */
    if (bp_is_true(c, bp_gt(c, bp_sum(c, a), 1.5)))
        x = bp_add(c, x, bp_rand_like(c, x));
    bp_uniform_inplace(c, bp_slice(c, x, .end = BP_SCALAR(1)), .from = 5.0, .to = BP_SCALAR(6.0));
    bp_return(f, bp_add(c, x, a));
    bp_return(f, bp_rand(c, BP_DIMS(2, 2)));
}

static void c7_compiled_code_draws_what_eager_draws(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, draws);
    for (int pass = 0; pass < 2; pass++) {
        uint64_t offset[2];
        float numbers[2][20][7];
        for (int eager = 0; eager < 2; eager++) {
            bp_manual_seed(f->c, 42);
            for (int i = 0; i < 20; i++) {
                bp_value v = bp_arg_of_tensor(FLOATS(f, 1, 2, 3));
                bp_args args = {&v, 1};
                bp_outputs o = {0};
                assert_int_equal(eager ? bp_run_eager(f->c, draws, NULL, &args, &o) : bp_call(f->c, g, &args, &o),
                                 BP_OK);
                bp_tensor_read(f->c, o.at[0], numbers[eager][i], 3 * sizeof(float));
                bp_tensor_read(f->c, o.at[1], numbers[eager][i] + 3, 4 * sizeof(float));
            }
            offset[eager] = bp_generator_offset(f->c);
        }
        assert_memory_equal(numbers[0], numbers[1], sizeof numbers[0]);
        assert_int_equal(offset[0], offset[1]);
        assert_true(numbers[0][0][3] != numbers[0][1][3]);
        assert_true(numbers[0][0][3] >= 0 && numbers[0][0][3] < 1);
    }
    assert_int_equal(stats(f, g).captures, 2);
    assert_int_equal(stats(f, g).disagreements, 0);
    bp_callable_unref(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        T(c2_1_empty_segments_are_not_compiled),
        T(c2_2_a_slice_holds_every_write_that_reaches_the_value),
        T(c2_3_the_same_version_asked_again_is_one_break_and_a_constant_none),
        T(c2_3_minus_zero_is_its_own_outcome_and_every_nan_is_one),
        T(c2_4_the_ninth_value_opens_the_break_with_one_warning),
        T(c2_4_a_path_holds_at_most_64_breaks),
        T(c3_1_what_the_compiled_segment_computed_decides),
        T(c3_2_a_list_grows_and_what_is_cheap_is_recomputed),
        T(c3_2_a_longer_list_that_does_not_compile_leaves_the_old_code_serving),
        T(c3_2_part_of_what_was_asked_is_not_recomputed),
        T(c3_4_equal_pieces_with_inputs_in_another_order_are_one_segment),
        T(c3_4_k_branches_cost_about_2k_segments),
        T(c3_4_equal_rounds_share_one_segment),
        T(c3_7_views_of_inputs_are_regenerated),
        T(c7_compiled_code_draws_what_eager_draws),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
