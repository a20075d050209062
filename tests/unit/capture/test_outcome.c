/* Outcomes: one element read as typed bits. */
#include "host/capture/outcome.h"
#include "tests/unit/compile/fixture.h"
#include <math.h>

static outcome read_one(fixture *f, enum ask_kind kind, bp_dtype d, const void *v)
{
    outcome o = {0};
    assert_int_equal(outcome_read(f->c, kind, bp_tensor_from(f->c, d, 0, NULL, v), &o), BP_OK);
    return o;
}

static void c2_3_outcomes_are_typed_bits(void **state)
{
    fixture *f = *state;
    float zero = 0.0f, minus = -0.0f, nan1 = NAN, nan2 = -NAN, half = 0.5f;
    int64_t one = 1;
    outcome a = read_one(f, ASK_FLOAT, BP_F32, &zero), b = read_one(f, ASK_FLOAT, BP_F32, &minus);
    assert_false(outcome_eq(a, b));
    assert_true(outcome_eq(read_one(f, ASK_FLOAT, BP_F32, &nan1), read_one(f, ASK_FLOAT, BP_F32, &nan2)));
    assert_false(outcome_eq(read_one(f, ASK_BOOL, BP_I64, &one), read_one(f, ASK_INT, BP_I64, &one)));
    assert_true(outcome_float(read_one(f, ASK_FLOAT, BP_F32, &half)) == 0.5);
    assert_int_equal(outcome_int(read_one(f, ASK_INT, BP_I64, &one)), 1);
    assert_int_equal(outcome_bool(read_one(f, ASK_BOOL, BP_F32, &nan1)), 1);
    assert_int_equal(outcome_bool(read_one(f, ASK_BOOL, BP_F32, &minus)), 0);
}

static void every_type_is_read(void **state)
{
    fixture *f = *state;
    uint8_t u = 200;
    int8_t i = -7;
    bp_complex64 z = {0, 2};
    float big = 3e20f, cut = -2.9f;
    outcome o;
    assert_int_equal(outcome_int(read_one(f, ASK_INT, BP_U8, &u)), 200);
    assert_int_equal(outcome_int(read_one(f, ASK_INT, BP_I8, &i)), -7);
    assert_int_equal(outcome_int(read_one(f, ASK_INT, BP_F32, &cut)), -2);
    assert_int_equal(outcome_bool(read_one(f, ASK_BOOL, BP_C64, &z)), 1);
    assert_int_equal(outcome_read(f->c, ASK_FLOAT, bp_tensor_from(f->c, BP_C64, 0, NULL, &z), &o), BP_INVALID_ARGUMENT);
    bp_error_clear(f->c);
    assert_int_equal(outcome_read(f->c, ASK_INT, bp_tensor_from(f->c, BP_F32, 0, NULL, &big), &o), BP_OUT_OF_RANGE);
    assert_contains(bp_error_text(f->c), "is no 64-bit integer");
    bp_error_clear(f->c);
    assert_int_equal(outcome_read(f->c, ASK_BOOL, FLOATS(f, 1, 2), &o), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_text(f->c), "expected a tensor of one element, got f32[2]");
    bp_error_clear(f->c);
}

static void eager_queries_read_and_failed_ones_answer_by_turns(void **state)
{
    fixture *f = *state;
    assert_int_equal(bp_is_true(f->c, FLOATS(f, 3)), 1);
    assert_int_equal(bp_item_int(f->c, FLOATS(f, 3)), 3);
    assert_true(bp_item_float(f->c, FLOATS(f, 3)) == 3);
    int first = bp_is_true(f->c, NULL), second = bp_is_true(f->c, NULL);
    assert_int_equal(first + second, 1);
    assert_int_equal(bp_error(f->c), BP_INVALID_ARGUMENT);
    bp_error_clear(f->c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(c2_3_outcomes_are_typed_bits, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(every_type_is_read, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(eager_queries_read_and_failed_ones_answer_by_turns, fixture_setup,
                                        fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
