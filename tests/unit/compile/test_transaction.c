/* C1: a call is a transaction. Writes before and after breaks, aliasing results, swaps, failures half way. */
#include "tests/unit/compile/fixture.h"

/* -- C1.1 ---------------------------------------------------------------------------------------------------------- */

static void write_around_a_break(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_arg(f, 1, "y");
    bp_add_inplace(c, x, 1);
    if (bp_is_true(c, bp_gt(c, bp_sum(c, x), 0)))
        bp_mul_inplace(c, x, y);
    else
        bp_copy_inplace(c, y, x);
    bp_return(f, bp_add(c, x, y));
}

static void c1_1_inputs_are_written_around_breaks(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, write_around_a_break);
    for (int i = 0; i < 4; i++) {
        bp_tensor *x = FLOATS(f, 1, 2), *y = FLOATS(f, 3, 4);
        bp_outputs o = CALL(f, g, x, y);
        EXPECT_FLOATS(f, x, 6, 12);
        EXPECT_FLOATS(f, y, 3, 4);
        EXPECT_FLOATS(f, o.at[0], 9, 16);
        x = FLOATS(f, -5, -6), y = FLOATS(f, 3, 4);
        o = CALL(f, g, x, y);
        EXPECT_FLOATS(f, x, -4, -5);
        EXPECT_FLOATS(f, y, -4, -5);
        EXPECT_FLOATS(f, o.at[0], -8, -10);
    }
    assert_int_equal(stats(f, g).captures, 2);
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

static bp_status no_run(void *state, bp_run *r)
{
    (void)state;
    return bp_run_fail(r, BP_UNAVAILABLE, "this backend never runs");
}

static uint32_t cancelled;

static bp_status cancel_run(void *state, bp_run *r)
{
    (void)state;
    cancelled++;
    return bp_run_fail(r, BP_CANCELLED, "the user has seen enough");
}

static bp_compiled *cancels(bp_graph_module *gm, const bp_inputs *in)
{
    (void)in;
    return bp_compiled_new(gm, cancel_run, NULL, NULL);
}

/* It is a wish of the caller's: nobody answers, eager execution neither. */
static void c1_1_a_cancelled_run_ends_the_call_and_writes_nothing(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = cancels};
    bp_callable *g = bp_compile(f->c, write_around_a_break, &o);
    bp_tensor *x = FLOATS(f, 1, 2), *y = FLOATS(f, 3, 4), *in[] = {x, y};
    for (uint32_t i = 1; i <= 3; i++) {
        assert_null(bp_call1(f->c, g, 2, in));
        assert_int_equal(bp_error(f->c), BP_CANCELLED);
        assert_contains(bp_error_text(f->c), "the user has seen enough");
        assert_int_equal(cancelled, i);
        bp_error_clear(f->c);
    }
    EXPECT_FLOATS(f, x, 1, 2);
    EXPECT_FLOATS(f, y, 3, 4);
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

static uint32_t last_calls;

/* The graph that multiplies cannot run; the one before it has run already. */
static bp_compiled *fails_behind_the_break(bp_graph_module *gm, const bp_inputs *in)
{
    (void)in;
    for (uint32_t i = 0; i < bp_node_count(gm); i++)
        if (!strcmp(bp_node_target(gm, bp_node_at(gm, i)), "aten.mul.Tensor")) {
            last_calls++;
            return bp_compiled_new(gm, no_run, NULL, NULL);
        }
    return bp_forward(gm);
}

static void c1_1_nothing_is_written_before_the_last_segment_has_succeeded(void **state)
{
    fixture *f = *state;
    assert_int_equal(bp_set_config(f->c, "fallback", "error"), BP_OK);
    bp_compile_options o = {.backend_fn = fails_behind_the_break};
    bp_callable *g = bp_compile(f->c, write_around_a_break, &o);
    bp_tensor *x = FLOATS(f, 1, 2), *y = FLOATS(f, 3, 4), *in[] = {x, y};
    assert_null(bp_call1(f->c, g, 2, in));
    assert_contains(bp_error_text(f->c), "this backend never runs");
    assert_true(last_calls > 0);
    bp_error_clear(f->c);
    EXPECT_FLOATS(f, x, 1, 2);
    EXPECT_FLOATS(f, y, 3, 4);
    bp_callable_unref(g);
}

static void swap(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_arg(f, 1, "y"), *old = bp_clone(c, x);
    bp_copy_inplace(c, x, y);
    bp_copy_inplace(c, y, old);
}

static void c1_1_every_source_is_read_before_the_first_write(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, swap);
    for (int i = 0; i < 3; i++) {
        bp_tensor *x = FLOATS(f, 1, 2), *y = FLOATS(f, 3, 4);
        CALL(f, g, x, y);
        EXPECT_FLOATS(f, x, 3, 4);
        EXPECT_FLOATS(f, y, 1, 2);
    }
    bp_callable_unref(g);
}

/* -- C1.3 ---------------------------------------------------------------------------------------------------------- */

static void twins(bp_ctx *c, bp_frame *f)
{
    bp_tensor *y = bp_add(c, bp_arg(f, 0, "x"), 1);
    bp_return(f, y);
    bp_return(f, bp_clone(c, y));
    bp_return(f, y);
    bp_return(f, bp_slice(c, y, .start = BP_SCALAR(1)));
    bp_return(f, bp_copy_inplace(c, bp_zeros(c, BP_DIMS(2)), bp_arg(f, 0, "x")));
    bp_return(f, bp_arg(f, 0, "x"));
}

/* Every operator gives its first input's own memory, as an in-place planner might. */
static bp_status first_input(void *state, bp_run *r)
{
    bp_view v;
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        if (bp_run_borrow(r, 0, &v) != BP_OK)
            return BP_INTERNAL;
        bp_run_output(r, i, &v);
    }
    return BP_OK;
}

static void c1_3_results_share_memory_only_if_their_fakes_do(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, twins);
    for (int i = 0; i < 3; i++) {
        bp_tensor *x = FLOATS(f, 1, 2);
        bp_outputs o = CALL(f, g, x);
        assert_int_equal(o.n, 6);
        assert_ptr_equal(o.at[0], o.at[2]);
        assert_false(bp_tensor_same_storage(o.at[0], o.at[1]));
        assert_true(bp_tensor_same_storage(o.at[0], o.at[3]));
        assert_false(bp_tensor_same_storage(o.at[4], x));
        assert_ptr_equal(o.at[5], x);
        EXPECT_FLOATS(f, o.at[1], 2, 3);
        EXPECT_FLOATS(f, o.at[3], 3);
        EXPECT_FLOATS(f, o.at[4], 1, 2);
        assert_int_equal(bp_tensor_offset(o.at[3]), 1);
    }
    bp_callable_unref(g);
}

static void three(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, bp_mul(c, x, 1));
    bp_return(f, bp_add(c, x, 0));
    bp_return(f, bp_clone(c, x));
}

static bp_compiled *elides(bp_graph_module *gm, const bp_inputs *in)
{
    (void)in;
    return bp_compiled_new(gm, first_input, NULL, NULL);
}

static void c1_3_a_backend_that_makes_two_values_one_is_corrected(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = elides};
    bp_callable *g = bp_compile(f->c, three, &o);
    bp_tensor *x = FLOATS(f, 1, 2);
    bp_outputs r = CALL(f, g, x);
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_FLOATS(f, r.at[i], 1, 2);
        assert_false(bp_tensor_same_storage(r.at[i], x));
        for (uint32_t j = 0; j < i; j++)
            assert_false(bp_tensor_same_storage(r.at[i], r.at[j]));
    }
    bp_callable_unref(g);
}

/* -- C1.5 ---------------------------------------------------------------------------------------------------------- */

static void error_by_a_number(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_add_inplace(c, x, 1);
    bp_return(f, bp_select(c, x, 0, bp_item_int(c, bp_sum(c, x))));
}

static void c1_5_the_functions_own_error_is_eagers_with_its_partial_effects(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, error_by_a_number);
    for (int i = 0; i < 3; i++) {
        bp_tensor *x = FLOATS(f, 7, 8);
        assert_null(bp_call1(f->c, g, 1, &x));
        assert_contains(bp_error_text(f->c), "index 17 is out of range");
        bp_error_clear(f->c);
        EXPECT_FLOATS(f, x, 8, 9);
    }
    assert_int_equal(stats(f, g).captures, 1); /* a leaf: not captured again */
    bp_tensor *ok = FLOATS(f, -2, 1);
    EXPECT_FLOATS(f, bp_call1(f->c, g, 1, &ok), 2);
    bp_callable_unref(g);
}

static void gather(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_index_select(c, bp_arg(f, 0, "x"), 0, bp_arg(f, 1, "i")));
}

static void dead_gather(bp_ctx *c, bp_frame *f)
{
    bp_index_select(c, bp_arg(f, 0, "x"), 0, bp_arg(f, 1, "i"));
    bp_return(f, bp_add(c, bp_arg(f, 0, "x"), 1));
}

static bp_tensor *index_of(fixture *f, int64_t i)
{
    int64_t one = 1;
    return bp_tensor_from(f->c, BP_I64, 1, &one, &i);
}

static void c1_5_a_bad_index_is_eagers_error_and_poisons_nothing(void **state)
{
    fixture *f = *state;
    bp_fn fns[] = {gather, dead_gather};
    for (int k = 0; k < 2; k++) {
        bp_compile_options o = {.backend_fn = table_backend};
        bp_callable *g = bp_compile(f->c, fns[k], &o);
        for (int i = 0; i < 8; i++) {
            bool bad = i % 4 == 0; /* the first call too: what it compiled serves the others */
            bp_tensor *in[] = {FLOATS(f, 1, 2), index_of(f, bad ? 5 : 1)};
            bp_tensor *r = bp_call1(f->c, g, 2, in);
            if (bad)
                assert_contains(bp_error_text(f->c), "index 5 is out of range");
            else
                assert_non_null(r);
            bp_error_clear(f->c);
        }
        assert_int_equal(stats(f, g).captures, 1);
        assert_int_equal(stats(f, g).graphs, 1);
        assert_int_equal(stats(f, g).eager_calls, 2);
        bp_callable_unref(g);
    }
}

static void ask_behind_gather(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_index_select(c, bp_arg(f, 0, "x"), 0, bp_arg(f, 1, "i"));
    if (bp_is_true(c, bp_lt(c, x, 2)))
        bp_return(f, x);
    else
        bp_return(f, bp_mul(c, x, -1));
}

static void c1_5_data_that_stop_a_slice_leave_no_leaf(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, ask_behind_gather);
    static const int64_t index[] = {7, 0, 1, 7, 0, 1};
    for (int i = 0; i < 6; i++) {
        bp_tensor *in[] = {FLOATS(f, 1, 2), index_of(f, index[i])}, *r = bp_call1(f->c, g, 2, in);
        if (index[i] == 7)
            assert_contains(bp_error_text(f->c), "index 7 is out of range");
        bp_error_clear(f->c);
        if (index[i] != 7)
            EXPECT_FLOATS(f, r, index[i] ? -2 : 1);
    }
    assert_int_equal(stats(f, g).eager_calls, 2);
    assert_int_equal(stats(f, g).captures, 3); /* the first one's segment was published */
    assert_int_equal(stats(f, g).outcomes, 2);
    bp_callable_unref(g);
}

static void normalize(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *mean = bp_arg(f, 1, "mean"), *var = bp_arg(f, 2, "var");
    bp_tensor *column = bp_unsqueeze(c, x, 1);
    bp_return(f, bp_batch_norm(c, column, NULL, NULL, mean, var, bp_arg_bool(f, 3, "training"), 0.5, 0, false));
}

static void call_normalize(fixture *f, bp_callable *g, bool training, bp_tensor *mean, bp_tensor *var)
{
    bp_value in[] = {bp_arg_of_tensor(FLOATS(f, 1, 3)), bp_arg_of_tensor(mean), bp_arg_of_tensor(var),
                     bp_arg_of_bool(training)};
    bp_outputs out = {0};
    if (bp_call(f->c, g, &(bp_args){in, 4}, &out) != BP_OK)
        fail_msg("%s", bp_error_text(f->c));
    EXPECT_FLOATS(f, out.at[0], training ? -1 : 0, training ? 1 : 2);
}

/* The schema does not say that batch_norm writes: the row does. Nothing that writes may stand in a graph. */
static void c1_1_running_statistics_are_no_backends_to_move(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, normalize);
    bp_tensor *mean = FLOATS(f, 1), *var = FLOATS(f, 1);
    call_normalize(f, g, false, mean, var);
    assert_int_equal(stats(f, g).eager_calls, 0);
    call_normalize(f, g, true, mean, var);
    EXPECT_FLOATS(f, mean, 1.5);
    EXPECT_FLOATS(f, var, 1.5);
    assert_int_equal(stats(f, g).steps, 1); /* an operator that is not captured: a step of its own (C4.4) */
    assert_null(strstr(buf_text(&f->tables), "True"));
    bp_callable_unref(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(c1_1_inputs_are_written_around_breaks, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(c1_1_a_cancelled_run_ends_the_call_and_writes_nothing, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(c1_1_nothing_is_written_before_the_last_segment_has_succeeded, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(c1_1_every_source_is_read_before_the_first_write, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(c1_3_results_share_memory_only_if_their_fakes_do, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(c1_3_a_backend_that_makes_two_values_one_is_corrected, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(c1_5_the_functions_own_error_is_eagers_with_its_partial_effects, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(c1_5_a_bad_index_is_eagers_error_and_poisons_nothing, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(c1_5_data_that_stop_a_slice_leave_no_leaf, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(c1_1_running_statistics_are_no_backends_to_move, fixture_setup,
                                        fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
