/* C3.3, C3.6, C3.8, C1.5: eager resumption: a call goes on for real behind what it has computed. */
#include "host/op/op.h"
#include "tests/unit/compile/fixture.h"

/* How often kernels run for real, of calls to one operator: what a replay must not do again. */
static unsigned expensive;

static bp_status count_calls(bp_ctx *c, dispatch_mode *self, void *call)
{
    op_call *k = call;
    expensive += !strcmp(k->op->id, "cumsum_default");
    return op_dispatch_below(c, self, call);
}

/* -- an open break ------------------------------------------------------------------------------------------------- */

static void asks_for_an_int(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_arg(f, 1, "y"), *row = bp_select(c, y, 0, 1);
    bp_tensor *noise = bp_rand(c, BP_DIMS(2)), *made = bp_cumsum(c, y, 0), *part = bp_select(c, made, 0, 0);
    bp_mul_inplace(c, y, 10);
    int64_t n = bp_item_int(c, bp_sum(c, x));
    bp_add_inplace(c, part, n);
    bp_add_inplace(c, row, 1);
    bp_squeeze_inplace(c, bp_unsqueeze_inplace(c, y, 0));
    bp_return(f, bp_arg(f, 1, "y"));
    bp_return(f, made);
    bp_return(f, part);
    bp_return(f, row);
    bp_return(f, bp_add(c, noise, bp_rand(c, BP_DIMS(2))));
    bp_return(f, y);
}

/* One call by g and one by eager, from the same seed: results, inputs, objects, memory, the generator. */
static void same_as_eager(fixture *f, bp_callable *g, bp_fn fn, float n)
{
    bp_tensor *in[2][2];
    bp_outputs out[2] = {0};
    uint64_t offset[2];
    for (int way = 0; way < 2; way++) {
        in[way][0] = FLOATS(f, n);
        in[way][1] = FLOATS(f, 1, 2, 3);
        bp_manual_seed(f->c, 11);
        bp_value v[2] = {bp_arg_of_tensor(in[way][0]), bp_arg_of_tensor(in[way][1])};
        bp_args args = {v, 2};
        bp_status st = way ? bp_run_eager(f->c, fn, NULL, &args, &out[way]) : bp_call(f->c, g, &args, &out[way]);
        if (st != BP_OK)
            fail_msg("%s", bp_error_text(f->c));
        offset[way] = bp_generator_offset(f->c);
    }
    assert_int_equal(offset[0], offset[1]);
    assert_int_equal(out[0].n, out[1].n);
    for (uint32_t i = 0; i < out[0].n; i++) {
        assert_int_equal(bp_tensor_numel(out[0].at[i]), bp_tensor_numel(out[1].at[i]));
        for (int64_t k = 0; k < bp_tensor_numel(out[0].at[i]); k++)
            assert_true(at(f, out[0].at[i], k) == at(f, out[1].at[i], k));
        for (uint32_t j = 0; j < out[0].n; j++) {
            assert_int_equal(out[0].at[i] == out[0].at[j], out[1].at[i] == out[1].at[j]);
            assert_int_equal(out[0].at[i]->store == out[0].at[j]->store, out[1].at[i]->store == out[1].at[j]->store);
        }
        for (int j = 0; j < 2; j++) {
            assert_int_equal(out[0].at[i] == in[0][j], out[1].at[i] == in[1][j]);
            assert_int_equal(out[0].at[i]->store == in[0][j]->store, out[1].at[i]->store == in[1][j]->store);
        }
    }
    for (int64_t k = 0; k < 3; k++)
        assert_true(at(f, in[0][1], k) == at(f, in[1][1], k));
}

static void c3_6_an_open_break_resumes_with_the_writes_and_numbers_before_it(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, asks_for_an_int);
    for (int i = 0; i < 12; i++)
        same_as_eager(f, g, asks_for_an_int, (float)i);
    assert_int_equal(stats(f, g).opened, 1);
    assert_int_equal(stats(f, g).resumed, stats(f, g).eager_calls);
    assert_true(stats(f, g).resumed >= 4);
    bp_callable_unref(g);
}

static void prefix_and_int(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *sum = bp_cumsum(c, x, 0);
    bp_return(f, bp_mul(c, sum, bp_item_int(c, bp_sum(c, sum))));
}

static void c3_6_the_prefix_is_not_run_again(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, prefix_and_int);
    for (int i = 0; i < 9; i++)
        CALL(f, g, FLOATS(f, (float)i, 0));
    assert_int_equal(stats(f, g).opened, 1);
    dispatch_mode m = {.call = count_calls, .name = "count"};
    mode_push(f->c, &m);
    expensive = 0;
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 50, 1)).at[0], 5050, 51 * 101);
    unsigned once = expensive;
    expensive = 0;
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1, 0)).at[0], 2, 2);
    mode_pop(f->c, &m);
    assert_int_equal(once, expensive); /* as often as in a hit */
    assert_true(stats(f, g).resumed >= 1);
    bp_callable_unref(g);
}

/* -- what was not handed on ---------------------------------------------------------------------------------------- */

static void wants_what_is_behind_a_write(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *z = bp_cumsum(c, x, 0);
    bp_zero_inplace(c, x);
    int64_t n = bp_item_int(c, bp_sum(c, bp_arg(f, 1, "n")));
    bp_return(f, n > 7 ? bp_add(c, z, n) : x);
}

static void c3_3_what_was_not_handed_on_is_computed_before_the_commit(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, wants_what_is_behind_a_write);
    for (int i = 0; i < 8; i++)
        CALL(f, g, FLOATS(f, 1, 2), FLOATS(f, (float)i));
    bp_tensor *x = FLOATS(f, 1, 2);
    EXPECT_FLOATS(f, CALL(f, g, x, FLOATS(f, 20)).at[0], 21, 23);
    EXPECT_FLOATS(f, x, 0, 0);
    assert_int_equal(stats(f, g).resumed, 1);
    bp_callable_unref(g);
}

/* -- errors -------------------------------------------------------------------------------------------------------- */

static void fails_in_a_branch(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_add_inplace(c, x, 1);
    if (bp_is_true(c, bp_gt(c, bp_sum(c, x), 100)))
        bp_return(f, bp_select(c, bp_add_inplace(c, x, 1), 3, 0));
    else
        bp_return(f, x);
}

static void c1_5_a_leaf_resumes_at_the_last_break_with_eagers_error_and_effects(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, fails_in_a_branch);
    for (int i = 0; i < 3; i++) {
        bp_tensor *x = FLOATS(f, 200), *y = FLOATS(f, 1);
        EXPECT_FLOATS(f, CALL(f, g, y).at[0], 2);
        assert_null(bp_call1(f->c, g, 1, &x));
        assert_contains(bp_error_text(f->c), "select");
        bp_error_clear(f->c);
        EXPECT_FLOATS(f, x, 202);
    }
    assert_int_equal(stats(f, g).captures, 2);
    assert_int_equal(stats(f, g).resumed, 3);
    bp_callable_unref(g);
}

/* -- modes, nested callables, what escapes ------------------------------------------------------------------------- */

static bp_callable *inner;

static void twice(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_mul_inplace(c, x, 2);
    bp_return(f, x);
}

static void calls_behind_a_break(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y;
    int was = bp_set_grad_enabled(c, 0);
    int64_t n = bp_item_int(c, bp_sum(c, x));
    y = bp_call1(c, inner, 1, &x);
    if (n > 7 && (bp_grad_enabled(c) || y != bp_call1(c, inner, 1, &y)))
        bp_return(f, NULL);
    bp_set_grad_enabled(c, was);
    bp_return(f, y);
}

static void c3_6_nested_callables_behind_it_run_compiled_on_the_very_inputs(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, calls_behind_a_break);
    inner = COMPILE(f, twice);
    for (int i = 1; i < 9; i++)
        CALL(f, g, FLOATS(f, (float)i));
    for (int i = 0; i < 3; i++) {
        bp_tensor *x = FLOATS(f, 30);
        assert_ptr_equal(CALL(f, g, x).at[0], x);
        EXPECT_FLOATS(f, x, 120);
    }
    assert_int_equal(bp_grad_enabled(f->c), 1);
    assert_true(stats(f, g).resumed >= 3);
    assert_int_equal(stats(f, inner).captures, 1);
    assert_int_equal(stats(f, inner).hits, 2 * stats(f, g).resumed - 1);
    bp_callable_unref(inner);
    bp_callable_unref(g);
}

static bp_tensor *kept;

static void keeps_what_it_made(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_add(c, x, 1);
    int64_t n = bp_item_int(c, bp_sum(c, x));
    if (n > 7)
        kept = bp_keep(c, y);
    bp_return(f, bp_mul(c, y, 2));
}

static void c3_6_what_escapes_behind_it_is_real(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, keeps_what_it_made);
    for (int i = 0; i < 8; i++)
        CALL(f, g, FLOATS(f, (float)i));
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 40)).at[0], 82);
    EXPECT_FLOATS(f, kept, 41);
    assert_false(said(f, "stored beyond the call"));
    bp_tensor_unref(kept);
    bp_callable_unref(g);
}

static void seeds_before_a_break(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    if (bp_is_true(c, x))
        bp_manual_seed(c, 5);
    int64_t n = bp_item_int(c, bp_sum(c, x));
    bp_return(f, bp_add(c, bp_rand(c, BP_DIMS(2)), n));
}

static void c3_6_a_prefix_that_seeds_the_generator_is_not_replayed(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, seeds_before_a_break);
    for (int i = 0; i < 3; i++) {
        bp_tensor *a = CALL(f, g, FLOATS(f, 3)).at[0];
        bp_manual_seed(f->c, 5);
        bp_tensor *b = bp_add(f->c, bp_rand(f->c, BP_DIMS(2)), 3);
        assert_true(at(f, a, 0) == at(f, b, 0) && at(f, a, 1) == at(f, b, 1));
        assert_int_equal(bp_generator_offset(f->c), 2);
    }
    bp_callable_unref(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        T(c3_6_an_open_break_resumes_with_the_writes_and_numbers_before_it),
        T(c3_6_the_prefix_is_not_run_again),
        T(c3_3_what_was_not_handed_on_is_computed_before_the_commit),
        T(c1_5_a_leaf_resumes_at_the_last_break_with_eagers_error_and_effects),
        T(c3_6_nested_callables_behind_it_run_compiled_on_the_very_inputs),
        T(c3_6_what_escapes_behind_it_is_real),
        T(c3_6_a_prefix_that_seeds_the_generator_is_not_replayed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
