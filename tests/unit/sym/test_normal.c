/* The rules of the normal form, one claim each. The random expressions say that they are right; these, that they are
 * there. */
#include "tests/unit/sym/sizes.h"

static void equal_polynomials_are_one_id(void **state)
{
    (void)state;
    bp_dim a = dim_mul(c, dim_add(c, read_dim("s0"), dim_const(1)), dim_sub(c, read_dim("s0"), dim_const(1)));
    bp_dim b = dim_sub(c, dim_mul(c, read_dim("s0"), read_dim("s0")), dim_const(1));
    assert_true(dim_same(a, b));
    assert_prints(a, "s0**2 - 1");
    assert_int_equal(a.value, 63);
    assert_true(dim_same(dim_sub(c, dim_add(c, a, read_dim("u0")), read_dim("u0")), b));
    assert_true(dim_same_as(dim_sub(c, a, b), 0));
}

static void exact_division_divides(void **state)
{
    (void)state;
    assert_simplifies("(64*s0*s1)//(64*s0)", "s1");
    assert_simplifies("(s0*s1 + s0)//(s1 + 1)", "s0");
    assert_simplifies("(s0**2 - 1)//(s0 - 1)", "s0 + 1");
    assert_simplifies("(6*s0 + 4)//2", "3*s0 + 2");
    assert_simplifies("s0//s0", "1");
    assert_simplifies("(-4*s0)//2", "-2*s0");
}

static void what_may_be_zero_is_not_cancelled(void **state)
{
    (void)state;
    assert_simplifies("(u0*s1)//(u0*s2)", "(s1*u0)//(s2*u0)");
    assume("u0 >= 1");
    assert_simplifies("(u0*s1)//(u0*s2)", "s1//s2");
}

static void division_splits_what_divides(void **state)
{
    (void)state;
    assert_simplifies("(4*s0 + s1)//4", "s0 + s1//4");
    assert_simplifies("(s0 - 1)//2", "(s0 + 1)//2 - 1");
    assert_simplifies("(6*s0 + 3)//4", "(3*s0 + 1)//2");
    assert_simplifies("(s0//2 + 1)//3", "(s0 + 2)//6");
    assert_simplifies("(s0*s1 + s2)//(s0*s1)", "s2//(s0*s1) + 1");
}

static void small_over_large_is_zero(void **state)
{
    (void)state;
    assert_simplifies("s3//101", "0");
    assert_simplifies("Mod(s3, 101)", "s3");
    assert_simplifies("s0//(s0 + 1)", "0");
    assert_simplifies("Mod(s0, s0*s1)", "s0");
    assert_simplifies("s3//100", "s3//100");
}

static void a_multiple_has_no_remainder(void **state)
{
    (void)state;
    assert_simplifies("Mod(4*s0, 4)", "0");
    assert_simplifies("Mod(6*s0, 4)", "2*Mod(s0, 2)");
    assert_simplifies("Mod(s0*s1, s1)", "0");
    assert_simplifies("Mod(5*s0 + 7, 4)", "Mod(s0 + 3, 4)");
    assert_simplifies("Mod(Mod(s0, 8), 4)", "Mod(s0, 4)");
    assert_simplifies("Mod(-1*s0, 3)", "Mod(2*s0, 3)");
}

static void division_by_a_negative_number_floors(void **state)
{
    (void)state;
    assert_simplifies("s0//(-1)", "-s0");
    assert_simplifies("(2*s0 + 1)//(-4)", "(-s0 + 1)//2 - 1");
    assert_simplifies("Mod(s0, -4)", "-Mod(3*s0, 4)");
    assert_simplifies("s0//(1 - s1)", "(-s0)//(s1 - 1)");
    assert_simplifies("(4*s0)//(-2)", "-2*s0");
}

static void min_and_max_are_decided_by_proof(void **state)
{
    (void)state;
    assert_simplifies("Max(1, s0)", "s0");
    assert_simplifies("Min(s0, s0 + s1)", "s0");
    assert_simplifies("Max(s0*s1, s0)", "s0*s1");
    assert_simplifies("Max(s1, s0)", "Max(s0, s1)");
    assert_simplifies("Max(1, Max(1, z))", "Max(1, z)");
    assert_simplifies("Min(s0, 9223372036854775807)", "s0");
}

static void comparisons_have_one_form(void **state)
{
    (void)state;
    assert_simplifies("2*s0 >= 7", "s0 >= 4");
    assert_simplifies("-2*s0 >= -7", "s0 <= 3");
    assert_simplifies("5 == s0", "s0 == 5");
    assert_simplifies("2*s0 == 7", "0");
    assert_simplifies("s0 + 3 < s1", "s0 + 4 <= s1");
    assert_simplifies("s1 > s0", "s0 < s1");
    assert_simplifies("s0*s1 == s0*s2", "s1 == s2");
    assert_simplifies("s0*s1 <= s1*s2", "s0 <= s2");
    assert_simplifies("u0*s1 == u0*s2", "s1*u0 == s2*u0");
    assert_simplifies("s0//4 >= 3", "s0 >= 12");
    assert_simplifies("s0//4 <= 3", "s0 <= 15");
    assert_simplifies("s0 - 9223372036854775807 <= 0", "1");
}

static void conditions_are_numbers(void **state)
{
    (void)state;
    assert_simplifies("(s0 == 5) == 0", "s0 != 5");
    assert_simplifies("((s0 == 5) == 0) == 0", "s0 == 5");
    assert_simplifies("(s0 == 5)*(s0 == 5)", "s0 == 5");
    assert_simplifies("((s0 == 5)*(s1 == 3)) != 0", "(s0 == 5)*(s1 == 3)");
    assert_simplifies("(s0 == 5) >= 1", "s0 == 5");
    assert_simplifies("(s0 == 5) >= 2", "0");
}

/* A140: the opposite of a conjunction is evaluated on all terms. */
static void pain_A140_a_negated_conjunction_looks_at_all_terms(void **state)
{
    (void)state;
    bp_dim all = dim_const(1);
    const int64_t want[] = {5, 7, 9};
    for (uint32_t k = 0; k < 3; k++)
        all = dim_mul(c, all, dim_compare(c, DIM_EQ, sym_dim_of(env, k), dim_const(want[k])));
    bp_dim opposite = dim_compare(c, DIM_EQ, all, dim_const(0));
    int64_t values[][7] = {{5, 7, 8}, {6, 7, 9}, {5, 6, 9}, {5, 7, 9}}, holds = -1;
    for (int i = 0; i < 4; i++) {
        assert_true(sym_eval(env, opposite, values[i], &holds));
        assert_int_equal(holds, i < 3);
    }
}

static void what_overflows_is_an_error_that_names_both_values(void **state)
{
    (void)state;
    bp_dim d = dim_mul(c, read_dim("s0"), dim_const(INT64_MAX / 2));
    assert_true(dim_same_as(d, 0));
    assert_int_equal(bp_error(c), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_message(c), "size 8 * 4611686018427387903 does not fit 64 bits");
    bp_error_clear(c);
    d = dim_add(c, read_dim("s0 + 9223372036854775799"), dim_const(1));
    assert_contains(bp_error_message(c), "size 9223372036854775807 + 1 does not fit");
    bp_error_clear(c);
    d = dim_sub(c, read_dim("z"), dim_const(INT64_MAX));
    assert_contains(bp_error_message(c), "size -3 - 9223372036854775807 does not fit");
}

static void a_hint_that_fits_is_told_though_a_part_of_it_does_not(void **state)
{
    (void)state;
    bp_dim big = dim_mul(c, read_dim("s0"), dim_const(INT64_MAX / 8));
    assert_int_equal(bp_error(c), BP_OK);
    bp_dim d = dim_sub(c, big, read_dim("s1"));
    assert_int_equal(d.value, big.value - 12);
    int64_t v[7] = {9, 1, 1, 1, 1, 1, 1}, out;
    assert_false(sym_eval(env, big, v, &out));
}

static void expressions_without_end_are_refused(void **state)
{
    (void)state;
    bp_dim d = read_dim("s0 + s1 + s2 + s3 + u0 + u1 + z");
    for (int i = 0; i < 12 && ctx_ok(c); i++)
        d = dim_mul(c, d, read_dim("s0 + s1 + s2 + s3 + u0 + u1 + z + 1"));
    assert_int_equal(bp_error(c), BP_UNIMPLEMENTED);
    assert_contains(bp_error_message(c), "more than");
    bp_error_clear(c);
    d = read_dim("z");
    for (int i = 0; i < 5000 && ctx_ok(c); i++)
        d = dim_max(c, dim_mod(c, d, read_dim("s3")), dim_floordiv(c, d, dim_const(3)));
    assert_int_equal(bp_error(c), BP_UNIMPLEMENTED);
}

static void division_by_what_is_zero_is_an_error(void **state)
{
    (void)state;
    assert_true(dim_same_as(dim_floordiv(c, read_dim("s0"), dim_const(0)), 0));
    assert_contains(bp_error_message(c), "8 // 0: division by zero");
    bp_error_clear(c);
    dim_mod(c, read_dim("s0"), read_dim("s1 - s2"));
    assert_contains(bp_error_message(c), "8 % 0: division by zero");
    assert_int_equal(sym_fact_count(env), 1);
    assert_prints(sym_fact_at(env, 0)->holds, "s1 == s2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(equal_polynomials_are_one_id),
        TEST(exact_division_divides),
        TEST(what_may_be_zero_is_not_cancelled),
        TEST(division_splits_what_divides),
        TEST(small_over_large_is_zero),
        TEST(a_multiple_has_no_remainder),
        TEST(division_by_a_negative_number_floors),
        TEST(min_and_max_are_decided_by_proof),
        TEST(comparisons_have_one_form),
        TEST(conditions_are_numbers),
        TEST(pain_A140_a_negated_conjunction_looks_at_all_terms),
        TEST(what_overflows_is_an_error_that_names_both_values),
        TEST(a_hint_that_fits_is_told_though_a_part_of_it_does_not),
        TEST(expressions_without_end_are_refused),
        TEST(division_by_what_is_zero_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
