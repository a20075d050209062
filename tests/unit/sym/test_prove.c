/* What is proven, what is refuted, and what is left open. */
#include "tests/unit/sym/sizes.h"

static void ranges_prove(void **state)
{
    (void)state;
    assert_proven("s0 >= 2");
    assert_refuted("s0 == 1");
    assert_proven("s3 <= 100");
    assert_unknown("s3 <= 99");
    assert_proven("s0*s1 >= 4");
    assert_proven("Mod(s0, 4) <= 3");
    assert_proven("u0*s0 >= 0");
    assert_unknown("z >= 0");
    assert_proven("z**2 >= 0");
}

static void products_of_what_is_positive_prove_themselves(void **state)
{
    (void)state;
    assert_proven("s0*s1 >= s0");
    assert_proven("s0*s1 >= s0 + 2");
    assert_proven("s0*s1 - s0 - s1 >= 0");
    assert_unknown("s0*s1 - s0 - 2*s1 - 1 >= 0");
    assert_proven("s0*s1*s2 + 1 > s0*s2");
    assert_refuted("s0*s1 == s1");
    assert_proven("s3*s3 <= 10000");
}

static void quotients_and_remainders_prove(void **state)
{
    (void)state;
    assert_proven("4*(s0//4) <= s0");
    assert_proven("4*(s0//4) + 3 >= s0");
    assert_proven("s0//4 <= s0");
    assert_proven("4*(s0//4) + Mod(s0, 4) == s0");
    assert_proven("Mod(s0, s1) < s1");
    assert_unknown("4*(s0//4) == s0");
}

static void a_min_or_max_is_one_of_both(void **state)
{
    (void)state;
    assert_proven("Max(s0, s1) >= s0");
    assert_proven("Min(s0, s1) <= s1");
    assert_proven("Max(s0, s1) + Min(s0, s1) >= s0 + 2");
    assert_proven("Min(s0, s1)*s2 <= s0*s2");
    assert_unknown("Max(s0, s1) == s0");
}

static void a_stronger_fact_implies(void **state)
{
    (void)state;
    assume("s0 + s1 >= 20");
    assert_proven("s0 + s1 >= 10");
    assert_proven("2*s0 + 2*s1 + s2 >= 42");
    assert_unknown("s0 + s1 >= 21");
    assert_refuted("s0 + s1 == 19");
    assume("s0 != 7");
    assert_refuted("s0 == 7");
    assert_proven("s0 != 7");
    assert_unknown("s0 == 9");
}

static void order_is_transitive(void **state)
{
    (void)state;
    assume("s0 < s1");
    assume("s1 <= s2");
    assert_proven("s0 < s2");
    assert_refuted("s0 == s2");
    assert_refuted("s2 < s0");
    assert_unknown("s0 + 1 < s2");
    assert_proven("s0*s3 < s2*s3");
}

static void two_inequalities_are_an_equality(void **state)
{
    (void)state;
    assume("s0 <= s1");
    assume("s1 <= s0");
    assert_proven("s0 == s1");
}

static void residues_prove(void **state)
{
    (void)state;
    assume("Mod(s0, 4) == 0");
    assert_proven("Mod(s0, 2) == 0");
    assert_proven("Mod(s0*s1, 4) == 0");
    assert_proven("Mod(2*s0 + 8, 8) == 0");
    assert_unknown("Mod(s0, 8) == 0");
    assert_refuted("s0 == 6");
    assert_refuted("2*s0 + 8*s1 == 12");
    assert_simplifies("4*(s0//4)", "s0");
    assert_simplifies("(s0//2)*2*s1", "s0*s1");
    assume("Mod(s1, 6) == 5");
    assert_proven("Mod(s1, 3) == 2");
    assert_refuted("s1 == 12");
}

static void a_residue_of_a_sum_is_that_of_its_symbols(void **state)
{
    (void)state;
    assume("Mod(3*s0 + 2, 4) == 1");
    assert_proven("Mod(s0, 4) == 1");
    assume("Mod(s1 + s2, 3) == 0");
    assert_proven("Mod(s1 + s2 + 6, 3) == 0");
    assert_simplifies("((s1 + s2)//3)*3", "s1 + s2");
    assert_unknown("Mod(s1, 3) == 0");
}

static void an_equality_replaces(void **state)
{
    (void)state;
    assume("s1 == s0");
    assert_simplifies("s1*s2 + s0", "s0*s2 + s0");
    assert_proven("s0*s2 == s1*s2");
    assume("s0 == 9");
    assert_simplifies("s1 + 1", "10");
    assert_refuted("s1 == 8");
}

static void an_equality_tells_the_earlier_facts_of_both(void **state)
{
    (void)state;
    assume("Mod(s1, 4) == 0");
    assume("s1 <= 50");
    assume("s1 != 12");
    assume("s1 == s0");
    assert_proven("Mod(s0, 4) == 0");
    assert_proven("s0 <= 50");
    assert_refuted("s0 == 12");
}

static void an_equality_of_a_sum_is_solved(void **state)
{
    (void)state;
    assume("s0 + s1 == 2*s2 + 1");
    assert_simplifies("s1", "-s0 + 2*s2 + 1");
    assert_proven("s0 + s1 - 2*s2 == 1");
}

static void data_is_replaced_before_sizes(void **state)
{
    (void)state;
    assume("u0 == s0 - 1");
    assert_simplifies("u0", "s0 - 1");
    assert_simplifies("s0", "s0");
    assume("s1 == u1 + 3");
    assert_simplifies("s1", "s1");
    assert_simplifies("u1", "s1 - 3");
}

static void bounds_reach_what_they_are_of(void **state)
{
    (void)state;
    int64_t min, max;
    assume("s0 + s1 <= 10");
    sym_bounds(env, read_dim("s0"), &min, &max);
    assert_int_equal(min, 2);
    assert_int_equal(max, 8);
    assume("s2//3 == 4");
    sym_bounds(env, read_dim("s2"), &min, &max);
    assert_int_equal(min, 12);
    assert_int_equal(max, 14);
    assume("Min(s3, z) >= 4");
    sym_bounds(env, read_dim("2*z + 1"), &min, &max);
    assert_int_equal(min, 9);
    assert_int_equal(max, INT64_MAX);
}

static void a_contradiction_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    assert_false(sym_assume(env, c, read_dim("s0 == 1"), SYM_GIVEN));
    assume("s0 < s1");
    assert_false(sym_assume(env, c, read_dim("s1 < s0"), SYM_GIVEN));
    assert_int_equal(sym_fact_count(env), 1);
    assert_proven("s0 < s1");
    assert_unknown("s0 == 5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ranges_prove),
        TEST(products_of_what_is_positive_prove_themselves),
        TEST(quotients_and_remainders_prove),
        TEST(a_min_or_max_is_one_of_both),
        TEST(a_stronger_fact_implies),
        TEST(order_is_transitive),
        TEST(two_inequalities_are_an_equality),
        TEST(residues_prove),
        TEST(a_residue_of_a_sum_is_that_of_its_symbols),
        TEST(an_equality_replaces),
        TEST(an_equality_tells_the_earlier_facts_of_both),
        TEST(an_equality_of_a_sum_is_solved),
        TEST(data_is_replaced_before_sizes),
        TEST(bounds_reach_what_they_are_of),
        TEST(a_contradiction_is_refused_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
