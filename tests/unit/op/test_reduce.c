/* Reductions and scans: accumulators, NaN, first positions, empty tensors, dimensions kept, dropped and refused. */
#include "tests/lib/op_world.h"

static void sums_accumulate_in_the_right_type(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"sum(u8[200 200])", "i64(400)"},
        {"sum(b8[1 1 0])", "i64(2)"},
        {"prod(i32[1048576 1048576])", "i64(1099511627776)"},
        {"sum(i32[2147483647 1], dtype=dtype:i32)", "i32(-2147483648)"},
        {"cumsum(i32[2147483647 1], 0, dtype=dtype:i32)", "i32[2147483647 -2147483648]"},
        {"cumsum(b8[2x2: 1 1 1 1], 1, dtype=dtype:bf16)", "bf16[2x2: 1 2 1 2]"},
        {"sum(f32[1.7 1.7], dtype=dtype:i32)", "i32(2)"},
        {"sum(f32[0.5 0.7], dtype=dtype:b8)", "b8(1)"},
        {"sum(f64[1e100 1 -1e100])", "f64(1)"},
        {"sum(f32[1e8 1 -1e8])", "f32(1)"},
        {"mean(f16[60000 60000])", "f16(60000)"},
        {"prod(f16[300 300 0.001])", "f16(inf)"},
        {"mean(i64[1 2])", "INVALID_ARGUMENT: mean: expected a float or complex type, got int64..."},
        {"mean(i64[1 2], dtype=dtype:f32)", "f32(1.5)"},
        {"nansum(f32[1 nan 2])", "f32(3)"},
        {"nanmean(f32[1 nan 3])", "f32(2)"},
        {"count_nonzero(f32[0 nan 2])", "i64(2)"},
    };
    OP_TEXT_CHECK(c, cases);
}

static bp_tensor *ones(bp_dtype d, int64_t n)
{
    bp_tensor *t = scope_own(c, tensor_contiguous_new(c, d, 1, &n));
    assert_non_null(t);
    for (int64_t i = 0; i < n; i++)
        dtype_store(d, (char *)tensor_ptr(t) + (size_t)i * dtype_size(d), (num){NUM_INT, 1, 0, 0});
    return t;
}

static double sum_of(bp_tensor *t)
{
    bp_value args[2] = {value_tensor(t), value_none()};
    bp_tensor *out = NULL;
    op_call k = {.op = op_by_target("aten.sum.default"), .args = args, .out = &out, .nout = 1};
    assert_int_equal(op_dispatch(c, &k), BP_OK);
    double v = dtype_load((bp_dtype)out->dtype, tensor_ptr(out)).f;
    tensor_unref(out);
    return v;
}

static void seventy_thousand_halves_round_once(void **state)
{
    (void)state;
    bp_scope_begin(c);
    assert_true(sum_of(ones(BP_BF16, 70000)) == 70144);
    assert_true(sum_of(ones(BP_F16, 70000)) > 1e300);
    assert_true(sum_of(ones(BP_F32, 20000000)) == 20000000);
    bp_scope_end(c);
}

static void any_and_all_know_bytes_nan_and_nothing(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"any(u8[2x2: 0 3 0 0])", "u8(1)"},
        {"all(u8[2x2: 0 3 0 0])", "u8(0)"},
        {"any.dim(u8[2x2: 0 3 0 0], 1)", "u8[1 0]"},
        {"any(f32[0 nan])", "b8(1)"},
        {"all(f32[1 0.5])", "b8(1)"},
        {"any(f32[])", "b8(0)"},
        {"all(f32[])", "b8(1)"},
        {"any.dims(f32[2x2: 0 1 0 0], [0, 1])", "b8(1)"},
        {"any.dims(f32[2x2: 0 1 0 0], None)", "b8(1)"},
        {"any.dims(f32[2x2: 0 1 0 0], [])", "b8[2x2: 0 1 0 0]"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void the_first_extremum_counts_and_nan_wins(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"argmin(f32[2 0 0])", "i64(1)"},
        {"argmax(f32[1 3 3 0])", "i64(1)"},
        {"argmax(f32[1 nan 3 nan])", "i64(1)"},
        {"argmin(f32[2x3: 1 nan 3 2 2 -1], 1)", "i64[1 2]"},
        {"argmax(i64[2x3: 1 5 5 3 3 2], 1, True)", "i64[2x1: 1 0]"},
        {"amax(f32[2x3: 1 nan 3 2 2 -1], [1])", "f32[nan 2]"},
        {"amin(u8[5 1 100 3 7 8 9 13 100 120 127 2 6 4 11 12 90 80])", "u8(1)"},
        {"argmin(u8[5 1 100 3 7 8 9 13 100 120 127 2 6 4 11 12 90 80])", "i64(1)"},
        {"amax(i8[-5 -1 -100 -3 -7 -8 -9 -13 -100 -120 -127 -2 -6 -4 -11 -12 -90 -80])", "i8(-1)"},
        {"max(f32[1 nan])", "f32(nan)"},
        {"min(b8[1 0])", "b8(0)"},
        {"aminmax(f32[3 -1 2])", "f32(-1) | f32(3)"},
        {"aminmax(f32[2x2: 1 nan 2 3], dim=1, keepdim=True)", "f32[2x1: nan 2] | f32[2x1: nan 3]"},
        {"argmax(b8[1 0])", "INVALID_ARGUMENT: argmax: not there for bools..."},
    };
    OP_TEXT_CHECK(c, cases);
}

static void nothing_has_a_sum_but_no_extremum(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"sum.dim_IntList(f32[2x0:], [1])", "f32[0 0]"},
        {"prod.dim_int(f32[2x0:], 1)", "f32[1 1]"},
        {"mean.dim(f32[2x0:], [1])", "f32[nan nan]"},
        {"logsumexp(f32[2x0:], [1])", "f32[-inf -inf]"},
        {"amax(f32[2x0:], [0])", "f32[]"},
        {"amax(f32[2x0:], [1])", "INVALID_ARGUMENT: amax: dimension 1 is folded and has no element..."},
        {"argmax(f32[2x0:])", "INVALID_ARGUMENT: argmax: the tensor has no element..."},
        {"max(f32[])", "INVALID_ARGUMENT: max: the tensor has no element..."},
        {"std.correction(f32[0x3:], [0])", "f32[nan nan nan]"},
        {"var_mean.correction(f32[2x0:], [1])", "f32[nan nan] | f32[nan nan]"},
        {"linalg_vector_norm(f32[2x0:], 2, [1])", "f32[0 0]"},
        {"linalg_vector_norm(f32[2x0:], inf, [1])", "INVALID_ARGUMENT: linalg_vector_norm: dimension 1..."},
        {"cumsum(f32[2x0:], 1)", "f32[2x0:]"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void dimensions_are_wrapped_kept_and_refused(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"sum.dim_IntList(f32[2x3: 1 2 3 4 5 6], [-1])", "f32[6 15]"},
        {"sum.dim_IntList(f32[2x3: 1 2 3 4 5 6], [0], True)", "f32[1x3: 5 7 9]"},
        {"sum.dim_IntList(f32[2x3: 1 2 3 4 5 6], [])", "f32(21)"},
        {"sum.dim_IntList(f32[2x3: 1 2 3 4 5 6], None)", "f32(21)"},
        {"sum.dim_IntList(f32[2x2x2: 1 2 3 4 5 6 7 8], [0, 2])", "f32[14 22]"},
        {"sum.dim_IntList(f32[2x3: 1 2 3 4 5 6], [0, -2])", "INVALID_ARGUMENT: sum.dim_IntList: argument \"dim\"..."},
        {"sum.dim_IntList(f32(5), [0, 0])", "INVALID_ARGUMENT: sum.dim_IntList: argument \"dim\" names..."},
        {"sum.dim_IntList(f32[2], [2])", "INVALID_ARGUMENT: sum.dim_IntList: argument \"dim\" is 2..."},
        {"sum.dim_IntList(f32(5), [-1], True)", "f32(5)"},
        {"cumsum(f32(5), 0)", "f32(5)"},
        {"cumsum(f32(5), 1)", "INVALID_ARGUMENT: cumsum: argument \"dim\" is 1..."},
        {"logcumsumexp(u8(0), 0)", "INVALID_ARGUMENT: logcumsumexp: not there for uint8..."},
    };
    OP_TEXT_CHECK(c, cases);
}

static void variance_knows_its_correction(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"var(f32[1 2 3 4])", "f32(1.66667)"},
        {"var.correction(f32[1 2 3 4], correction=0)", "f32(1.25)"},
        {"var.correction(f32[1 3], None, correction=2)", "f32(inf)"},
        {"var.correction(f32[1], None)", "f32(nan)"},
        {"var_mean.correction(f32[1 4], [0], correction=0.5, keepdim=True)", "f32[3] | f32[2.5]"},
        {"std.dim(f32[2x2: 1 3 5 5], [1], False)", "f32[1 0]"},
        {"var(f64[1e9 1e9 1e9])", "f64(0)"},
        {"var(i64[1 2])", "INVALID_ARGUMENT: var: expected a float or complex type..."},
    };
    OP_TEXT_CHECK(c, cases);
}

static void logsumexp_and_norms_at_their_edges(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"logsumexp(f32[3x2: 1 2 -inf -inf inf 1], [1])", "f32[2.31326 -inf inf]"},
        {"logsumexp(f32[2: nan 1], [0])", "f32(nan)"},
        {"logsumexp(i64[1 2], [0])", "f32(2.31326)"},
        {"logsumexp(f64[1000 1000], [0])", "f64(1000.69)"},
        {"linalg_vector_norm(f32[3 4])", "f32(5)"},
        {"linalg_vector_norm(f32[3 -4], inf)", "f32(4)"},
        {"linalg_vector_norm(f32[3 -4], -inf)", "f32(3)"},
        {"linalg_vector_norm(f32[3 0 -4], 0)", "f32(2)"},
        {"linalg_vector_norm(f32[3 -4], 1)", "f32(7)"},
        {"linalg_vector_norm(f32[1e30 1])", "f32(inf)"},
        {"linalg_vector_norm(f32[1 nan], inf)", "f32(nan)"},
        {"linalg_vector_norm(f64[3 4], 2, dtype=dtype:f32)", "INVALID_ARGUMENT: linalg_vector_norm: argument..."},
        {"norm.Scalar(f32[3 4])", "f32(5)"},
        {"norm.ScalarOpt_dim(f32[2x2: 3 4 6 8], None, [1])", "f32[5 10]"},
        {"cumprod(f32[2 3 nan 1], 0)", "f32[2 6 nan nan]"},
        {"logcumsumexp(f32[-inf 0 0], 0)", "f32[-inf 0 0.693147]"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void composites_take_pytorchs_steps(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"sum_to_size(f32[2x2: 1 2 3 4], [1, 2])", "f32[1x2: 4 6]"},
        {"sum_to_size(f32[2x2: 1 2 3 4], [2])", "f32[4 6]"},
        {"sum_to_size(f32[2x2: 1 2 3 4], [3])",
         "INVALID_ARGUMENT: sum_to_size: argument \"size\" does not broadcast..."},
        {"trace(i32[2x2: 1 2 3 4])", "i64(5)"},
        {"trace(f32[1 2])", "INVALID_ARGUMENT: trace: expected a matrix, got 1 dimensions..."},
        {"trapezoid.dx(f32[1 2 3], dx=2)", "f32(8)"},
        {"trapezoid.x(f32[1 2 3], f32[0 1 3])", "f32(6.5)"},
        {"cumulative_trapezoid.x(f32[1 2 3], f32[0 1 3])", "f32[1.5 6.5]"},
        {"renorm(f32[2x2: 3 4 0.3 0.4], 2, 0, 1)", "f32[2x2: 0.6 0.8 0.3 0.4]"},
        {"_weight_norm(f32[1x2: 3 4], f32[1x1: 10])", "f32[1x2: 6 8]"},
        {"cdist(f32[2x2: 0 0 3 4], f32[1x2: 0 0])", "f32[2x1: 0 5]"},
        {"pdist(f32[3x1: 0 1 3], inf)", "f32[1 3 2]"},
    };
    OP_TEXT_CHECK(c, cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_accumulate_in_the_right_type),
        cmocka_unit_test(seventy_thousand_halves_round_once),
        cmocka_unit_test(any_and_all_know_bytes_nan_and_nothing),
        cmocka_unit_test(the_first_extremum_counts_and_nan_wins),
        cmocka_unit_test(nothing_has_a_sum_but_no_extremum),
        cmocka_unit_test(dimensions_are_wrapped_kept_and_refused),
        cmocka_unit_test(variance_knows_its_correction),
        cmocka_unit_test(logsumexp_and_norms_at_their_edges),
        cmocka_unit_test(composites_take_pytorchs_steps),
    };
    return cmocka_run_group_tests_name("reduce", tests, op_world_begin, op_world_end);
}
