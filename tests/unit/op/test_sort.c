/* Orders and extremes along a dimension: NaN, ties, indices. */
#include "tests/lib/op_world.h"

static void nan_is_greater_than_everything(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"sort(f32[nan 1 -inf inf])", "f32[-inf 1 inf nan] | i64[2 1 3 0]"},
        {"sort(f32[nan 1 -inf inf nan], 0, True)", "f32[nan nan inf 1 -inf] | i64[0 4 3 1 2]"},
        {"topk(f32[nan 1 5], 1)", "f32[nan] | i64[0]"},
        {"topk(f32[1 nan 5 2], 2, -1, False)", "f32[1 2] | i64[0 3]"},
        {"argsort(f16[2 nan 1])", "i64[2 0 1]"},
        {"msort(f32[2x2: nan 4 1 2])", "f32[2x2: 1 2 nan 4]"},
        {"kthvalue(f32[2 1 2 1 nan 1], 6)", "f32(nan) | i64(4)"},
        {"median(f32[1 nan 2])", "f32(nan)"},
        {"nanmedian(f32[1 nan 2])", "f32(1)"},
        {"median.dim(f32[1 nan 2], 0)", "f32(nan) | i64(1)"},
        {"nanmedian.dim(f32[nan 3 nan 1 2 2], 0)", "f32(2) | i64(4)"},
        {"nanmedian.dim(f32[nan nan nan nan nan], 0)", "f32(nan) | i64(2)"},
        {"max.dim(f32[1 nan 3 nan], 0)", "f32(nan) | i64(1)"},
        {"min.dim(f32[1 nan 3 nan], 0)", "f32(nan) | i64(1)"},
        {"cummax(f32[1 3 3 nan 2 nan 5], 0)", "f32[1 3 3 nan nan nan nan] | i64[0 1 2 3 3 5 5]"},
        {"cummin(f32[1 3 1 nan 2 0], 0)", "f32[1 1 1 nan nan nan] | i64[0 0 2 3 3 3]"},
        {"median(f32[])", "f32(nan)"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void ties_fall_as_in_pytorch(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"sort.stable(i64[2 1 2 1 2], stable=True, dim=0, descending=True)", "i64[2 2 2 1 1] | i64[0 2 4 1 3]"},
        {"sort(u8[4 2 5 5 9 3 1 4 2 3 2 6 8 2 2 8 2 0 4 9])",
         "u8[0 1 2 2 2 2 2 2 3 3 4 4 4 5 5 6 8 8 9 9] | i64[17 6 1 16 14 13 10 8 9 5 7 0 18 3 2 11 12 15 4 19]"},
        {"topk(i64[0 2 2 1 0 1 0 1 0 0 2 1 1 3 0 0 2 3 0 0], 10)",
         "i64[3 3 2 2 2 2 1 1 1 1] | i64[17 13 1 16 10 2 12 11 5 3]"},
        {"topk(i64[0 2 2 1 0 1 0 1 0 0 2 1 1 3 0 0 2 3 0 0], 2)", "i64[3 3] | i64[17 13]"},
        {"topk(i64[0 0 4 2 4 0 0 4 2 4 0 0 4 2 4 0 0 4 2 4 0 0 4 2 4 0 0 4 2 4 0 0 4 2 4 0 0 4 2 4 0 0 4 2 4 "
         "0 0 4 2 4 0 0 4 2 4 0 0 4 2 4 0 0 4 2], 1)",
         "i64[4] | i64[2]"},
        {"topk(i64[0 0 4 2 4 0 0 4 2 4 0 0 4 2 4 0 0 4 2 4 0 0 4 2 4 0 0 4 2 4 0 0 4 2 4 0 0 4 2 4 0 0 4 2 4 "
         "0 0 4 2 4 0 0 4 2 4 0 0 4 2 4 0 0 4 2], 1, 0, False)",
         "i64[0] | i64[0]"},
        {"kthvalue(f32[2 1 2 1 5 1], 2)", "f32(1) | i64(3)"},
        {"median.dim(u8[5 1 6 5 6], 0)", "u8(5) | i64(3)"},
        {"mode(i64[1 2 2 1 3])", "i64(1) | i64(3)"},
        {"mode(f32[nan 2 1 nan 1])", "f32(nan) | i64(0)"},
        {"max.dim(i64[3 3], 0)", "i64(3) | i64(0)"},
        {"min.dim(b8[1 0 0], 0)", "b8(0) | i64(1)"},
        {"cummax(u8[1 1 0], 0)", "u8[1 1 1] | i64[0 1 1]"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void dimensions_are_kept_and_checked(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"max.dim(f32[2x3: 1 5 3 7 2 9], 1)", "f32[5 9] | i64[1 2]"},
        {"max.dim(f32[2x3: 1 5 3 7 2 9], 0, True)", "f32[1x3: 7 5 9] | i64[1x3: 1 0 1]"},
        {"topk(f32[2x3: 1 5 3 7 2 9], 2, 1)", "f32[2x2: 5 3 9 7] | i64[2x2: 1 2 2 0]"},
        {"kthvalue(f32(5), 1, 0, True)", "f32(5) | i64(0)"},
        {"median.dim(f32[2x0:], 0)", "f32[] | i64[]"},
        {"max.dim(f32[2x0:], 1)", "INVALID_ARGUMENT: max.dim: dimension 1 has no elements to choose from"},
        {"topk(f32[1 2], 3)", "INVALID_ARGUMENT: topk: argument \"k\" is 3, and the dimension has 2 elements"},
        {"topk(f32[1 2], -1)", "INVALID_ARGUMENT: topk: argument \"k\" is -1, and the dimension has 2 elements"},
        {"topk(f32[1 2], 0)", "f32[] | i64[]"},
        {"kthvalue(f32[1 2], 0)", "INVALID_ARGUMENT: kthvalue: argument \"k\" is 0, and the dimension has 2 elements"},
        {"max.dim(f32[1 2], 1)",
         "INVALID_ARGUMENT: max.dim: argument \"dim\" is 1, expected a dimension from -1 to 0"},
        {"sort(f32[2x0:], 1)", "f32[2x0:] | i64[2x0:]"},
        {"cummax(f32(3), 0)", "f32(3) | i64(0)"},
        {"median(b8[1])", "INVALID_ARGUMENT: median: there is no median of bools"},
        {"topk(b8[1 0], 1)", "INVALID_ARGUMENT: topk: there is no topk of bools"},
    };
    OP_TEXT_CHECK(c, cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nan_is_greater_than_everything),
        cmocka_unit_test(ties_fall_as_in_pytorch),
        cmocka_unit_test(dimensions_are_kept_and_checked),
    };
    return cmocka_run_group_tests(tests, op_world_begin, op_world_end);
}
