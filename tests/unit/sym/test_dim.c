/* Arithmetic of sizes. */
#define BP_WITHOUT_OPERATORS
#include "tests/lib/check.h"
#include "host/sym/dim.h"
#include <backplane/backplane.h>

static bp_ctx *c;

static int start(void **state)
{
    (void)state;
    c = bp_ctx_new(NULL);
    return c ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    bp_ctx_destroy(c);
    return 0;
}

static void constants_compute_as_python_does(void **state)
{
    (void)state;
    assert_int_equal(dim_add(c, dim_const(2), dim_const(3)).value, 5);
    assert_int_equal(dim_sub(c, dim_const(2), dim_const(3)).value, -1);
    assert_int_equal(dim_mul(c, dim_const(-2), dim_const(3)).value, -6);
    assert_int_equal(dim_floordiv(c, dim_const(-7), dim_const(2)).value, -4);
    assert_int_equal(dim_mod(c, dim_const(-7), dim_const(2)).value, 1);
    assert_int_equal(bp_error(c), BP_OK);
}

static void overflow_names_both_values_and_gives_zero(void **state)
{
    (void)state;
    bp_dim d = dim_mul(c, dim_const(INT64_MAX), dim_const(3));
    assert_int_equal(d.value, 0);
    assert_int_equal(bp_error(c), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_message(c), "9223372036854775807 * 3");
}

static void division_by_zero_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(dim_floordiv(c, dim_const(4), dim_const(0)).value, 0);
    assert_contains(bp_error_message(c), "4 // 0: division by zero");
    bp_error_clear(c);
    dim_mod(c, dim_const(4), dim_const(0));
    assert_int_equal(bp_error(c), BP_INVALID_ARGUMENT);
}

static void a_symbol_is_refused_where_a_size_must_be_known(void **state)
{
    (void)state;
    bp_dim s = {5, 7, 0};
    assert_false(dim_is_const(s));
    assert_false(dim_is(s, 5));
    assert_false(dim_eq(s, dim_const(5)));
    assert_true(dim_eq(s, (bp_dim){6, 7, 0}));
    assert_int_equal(dim_int(c, s), 0);
    assert_int_equal(bp_error(c), BP_UNIMPLEMENTED);
    assert_contains(bp_error_message(c), "bp_item_sym");
}

static void an_empty_product_is_zero_though_a_part_of_it_overflows(void **state)
{
    (void)state;
    bp_dim d[] = {dim_const(INT64_MAX), dim_const(INT64_MAX), dim_const(0)};
    assert_int_equal(dim_product(c, d, 3).value, 0);
    assert_int_equal(bp_error(c), BP_OK);
    assert_int_equal(dim_product(c, d, 0).value, 1);
    dim_product(c, d, 2);
    assert_int_equal(bp_error(c), BP_INVALID_ARGUMENT);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(constants_compute_as_python_does),
        TEST(overflow_names_both_values_and_gives_zero),
        TEST(division_by_zero_is_an_error),
        TEST(a_symbol_is_refused_where_a_size_must_be_known),
        TEST(an_empty_product_is_zero_though_a_part_of_it_overflows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
