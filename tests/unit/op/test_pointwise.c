/* Pointwise operators: wrap-around, division, promotion, rounding, NaN and signed zero, refusals. */
#include "tests/lib/op_world.h"

static void integers_wrap_at_each_operator(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"add.Tensor(i8[100], i8[100])", "i8[-56]"},
        {"mul.Tensor(i64[0 1 2 10], i64(1000000000))", "i64[0 1000000000 2000000000 10000000000]"},
        {"mul.Tensor(i16[300], i16[300])", "i16[24464]"},
        {"mul.Tensor(i64[4611686018427387904], i64[2])", "i64[-9223372036854775808]"},
        {"pow.Tensor_Scalar(u8[4 2], 5)", "u8[0 32]"},
        {"neg(u8[1 0])", "u8[255 0]"},
        {"abs(i8[-128 -3])", "i8[-128 3]"},
        {"neg(i64[-9223372036854775808])", "i64[-9223372036854775808]"},
        {"add.Scalar(u8[1 250], 300)", "u8[45 38]"},
        {"add.Tensor(u8[1 250], u8[1 250], alpha=-1)", "u8[0 0]"},
        {"square(u8[16 15])", "u8[0 225]"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void integers_never_pass_through_a_float(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"add.Tensor(i64[9007199254740993], i64[0])", "i64[9007199254740993]"},
        {"mul.Scalar(i64[9007199254740993], 1)", "i64[9007199254740993]"},
        {"remainder.Scalar(i64[9007199254740993], 2)", "i64[1]"},
        {"floor_divide(i64[9223372036854775807], i64[1])", "i64[9223372036854775807]"},
        {"clamp(i64[9007199254740993], 0, 9223372036854775807)", "i64[9007199254740993]"},
        {"eq.Tensor(i64[9007199254740993], i64[9007199254740992])", "b8[0]"},
        {"maximum(i64[9007199254740993], i64[9007199254740992])", "i64[9007199254740993]"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void division_of_integers_follows_each_rounding(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"floor_divide(i64[7 -7 7 -7], i64[2 2 -2 -2])", "i64[3 -4 -4 3]"},
        {"remainder.Tensor(i64[7 -7 7 -7], i64[3 3 -3 -3])", "i64[1 2 -2 -1]"},
        {"fmod.Tensor(i64[7 -7 7 -7], i64[3 3 -3 -3])", "i64[1 -1 1 -1]"},
        {"div.Tensor_mode(i64[-7 7], i64[2 -2], rounding_mode='trunc')", "i64[-3 -3]"},
        {"div.Tensor_mode(i64[-7 7], i64[2 -2], rounding_mode='floor')", "i64[-4 -4]"},
        {"div.Tensor(i64[1 -3], i64[2 0])", "f32[0.5 -inf]"},
        {"floor_divide(i32[-2147483648], i32[-1])", "i32[-2147483648]"},
        {"floor_divide(i64[-9223372036854775808], i64[-1])", "i64[-9223372036854775808]"},
        {"remainder.Tensor(i64[-9223372036854775808], i64[-1])", "i64[0]"},
        {"fmod.Tensor(i64[-9223372036854775808], i64[-1])", "i64[0]"},
        {"remainder.Scalar_Tensor(1, b8[1])", "i64[0]"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void an_integer_divided_by_zero_is_an_error(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"remainder.Scalar_Tensor(1, b8[1 0])", "INVALID_ARGUMENT: remainder.Scalar_Tensor: division of integers..."},
        {"fmod.Tensor(u8[1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1], u8[1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 0])",
         "INVALID_ARGUMENT: fmod.Tensor: division of integers by zero..."},
        {"fmod.Tensor(u8[1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1], u8[2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2])",
         "u8[1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1]"},
        {"floor_divide(i64[1], i64[0])", "INVALID_ARGUMENT: floor_divide: division of integers by zero..."},
        {"remainder.Scalar(i64[1], 0)", "INVALID_ARGUMENT: remainder.Scalar: division of integers by zero..."},
        {"div.Tensor_mode(i64[1], i64[0], rounding_mode='trunc')", "INVALID_ARGUMENT: div.Tensor_mode: division..."},
        {"floor_divide(i64[], i64[0])", "i64[]"},
        {"div.Tensor_mode(i64[1], i64[1], rounding_mode='up')", "INVALID_ARGUMENT: div.Tensor_mode: argument..."},
    };
    OP_TEXT_CHECK(c, cases);
}

static void division_of_floats_keeps_signs_and_infinities(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"remainder.Tensor(f32[7.5 -7.5 7.5 -7.5], f32[3 3 -3 -3])", "f32[1.5 1.5 -1.5 -1.5]"},
        {"remainder.Scalar(f32[1 -1], inf)", "f32[1 inf]"},
        {"floor_divide(f32[1 -1 0], f32(0))", "f32[inf -inf nan]"},
        {"floor_divide.Scalar(f64[1], 0.1)", "f64[9]"},
        {"remainder.Scalar(f64[1], 0.1)", "f64[0.1]"},
        {"fmod.Tensor(f32[5 -5 inf], f32[3 3 2])", "f32[2 -2 nan]"},
        {"div.Tensor_mode(f32[-7 7], f32[2 2], rounding_mode='trunc')", "f32[-3 3]"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void signed_zero_and_nan_pass_as_in_pytorch(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"relu(f32[-0.0 nan -1 2])", "f32[-0 nan 0 2]"},
        {"add.Scalar(f32[-0.0], 0.0)", "f32[0]"},
        {"ceil(f32[-0.5])", "f32[-0]"},
        {"neg(f32[0.0])", "f32[-0]"},
        {"elu(f32[-0.0])", "f32[-0]"},
        {"round(f32[0.5 1.5 2.5 -0.5 -1.5])", "f32[0 2 2 -0 -2]"},
        {"sign(f32[nan -0.0 -3 3])", "f32[0 0 -1 1]"},
        {"atan2(f32[0.0 -0.0 0.0 -0.0], f32[-1 -1 1 1])", "f32[3.14159 -3.14159 0 -0]"},
        {"clamp_min(f32[nan -1], 0.5)", "f32[nan 0.5]"},
        {"maximum(f32[nan 0], f32[0 nan])", "f32[nan nan]"},
        {"minimum(f32[nan 0], f32[0 nan])", "f32[nan nan]"},
        {"fmax(f32[nan 0], f32[0 nan])", "f32[0 0]"},
        {"clamp(f32[0 2 5], 3, 1)", "f32[1 1 1]"},
        {"clamp(f32[0 2], nan)", "f32[nan nan]"},
        {"clamp.Tensor(f32[0 2], f32[nan 1], f32[3 3])", "f32[nan 2]"},
        {"gelu(f32[-20 0 1])", "f32[-0 0 0.841345]"},
        {"gelu(f32[-inf])", "f32[nan]"},
        {"hardswish(f32[-inf nan -0.0])", "f32[nan nan -0]"},
        {"hardtanh(f32[nan])", "f32[nan]"},
        {"relu6(f32[nan 7])", "f32[nan 6]"},
        {"softplus(f32[20 21 100])", "f32[20 21 100]"},
        {"nan_to_num(f32[nan inf -inf 1])", "f32[0 3.40282e+38 -3.40282e+38 1]"},
        {"pow.Tensor_Scalar(f32[-0.0 -inf], 0.5)", "f32[-0 nan]"},
        {"xlogy.Tensor(f32[0 0 0 1], f32[0 nan -1 0])", "f32[0 nan 0 -inf]"},
        {"logaddexp(f32[-inf inf], f32[-inf inf])", "f32[-inf inf]"},
        {"erf(f32[1e-8 1e-7 1e-5 1e-3])", "f32[1.12838e-08 1.12838e-07 1.12838e-05 0.00112838]"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void types_promote_as_in_pytorch(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"add.Scalar(i32[1], 1)", "i32[2]"},
        {"add.Scalar(i32[1], 1.0)", "f32[2]"},
        {"add.Tensor(i32[1], f64(1))", "f64[2]"},
        {"add.Tensor(f16[1], f32(1))", "f16[2]"},
        {"add.Tensor(f16[1], f32[1])", "f32[2]"},
        {"add.Tensor(f16[1], bf16[1])", "f32[2]"},
        {"add.Tensor(u8[1], i8[1])", "i16[2]"},
        {"add.Tensor(b8[1 0], b8[1 1])", "b8[1 1]"},
        {"mul.Tensor(b8[1 0], b8[1 1])", "b8[1 0]"},
        {"add.Scalar(b8[1], 2)", "i64[3]"},
        {"sigmoid(i64[0])", "f32[0.5]"},
        {"round(i64[3])", "i64[3]"},
        {"div.Scalar(i64[3], 2)", "f32[1.5]"},
        {"where.self(b8[1 0], i64[1], f32[1.5])", "f32[1 1.5]"},
        {"where.Scalar(b8[1 0], 1.0, 2)", "f32[1 2]"},
        {"where.ScalarOther(b8[1 0], f16[1], 2.5)", "f16[1 2.5]"},
        {"clamp(i64[1 5], 0.5, 3)", "f32[1 3]"},
        {"pow.Scalar(2, i64[-1 3])", "i64[0 8]"},
        {"square(b8[1 0])", "i64[1 0]"},
        {"abs(f16[-1.5])", "f16[1.5]"},
        {"isnan(i64[1])", "b8[0]"},
        {"eq.Scalar(i64[1], 1.5)", "b8[0]"},
        {"float_power.Tensor_Scalar(i64[3], 2)", "f64[9]"},
        {"add.Tensor(f32[1], 2)", "f32[3]"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void halves_are_rounded_where_pytorch_rounds_them(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"eq.Scalar(bf16[3.140625 3.125], 3.14)", "b8[1 0]"},
        {"add.Tensor(bf16[256 1], bf16[1 1])", "bf16[256 2]"},
        {"mul.Scalar(bf16[100], 1.0042)", "bf16[100.5]"},
        {"add.Scalar(f16[2048], 1)", "f16[2048]"},
        {"nextafter(bf16[1 0 -0.0], bf16[2 1 -1])", "bf16[1.00781 9.18355e-41 -9.18355e-41]"},
        {"logit(bf16[0.5234375])", "bf16[0.0966797]"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void bits_and_shifts(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"bitwise_right_shift.Tensor(i64[-8 5 -8], i64[1 64 -1])", "i64[-4 0 -1]"},
        {"bitwise_left_shift.Tensor(i64[1 1 1], i64[63 64 -1])", "i64[-9223372036854775808 0 0]"},
        {"bitwise_right_shift.Tensor(u8[250 250], u8[1 8])", "u8[125 0]"},
        {"bitwise_not(b8[1 0])", "b8[0 1]"},
        {"bitwise_not(i64[1 -2])", "i64[-2 1]"},
        {"bitwise_xor.Tensor(b8[1 1], b8[1 0])", "b8[0 1]"},
        {"bitwise_and.Scalar(u8[1 250], -1)", "u8[1 250]"},
        {"__and__.Scalar(b8[1 0], 3)", "i64[1 0]"},
        {"gcd(i64[-12 0], i64[18 0])", "i64[6 0]"},
        {"lcm(i64[-4 0], i64[6 0])", "i64[12 0]"},
        {"bitwise_and.Tensor(f32[1], f32[1])", "INVALID_ARGUMENT: bitwise_and.Tensor: not there for float32..."},
    };
    OP_TEXT_CHECK(c, cases);
}

static void special_functions_at_their_edges(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"digamma(f64[0.0 -0.0 -1 1])", "f64[-inf inf nan -0.577216]"},
        {"polygamma(1, f64[1.5])", "f64[0.934802]"},
        {"polygamma(2, f64[1.5 -1.5 -1])", "f64[-0.828797 -0.236204 -inf]"},
        {"polygamma(-1, f64[1])", "INVALID_ARGUMENT: polygamma: argument \"n\": -1 is negative..."},
        {"erfinv(f64[-1 0.5 2])", "f64[-inf 0.476936 nan]"},
        {"special_zeta(f64[2 1 0.5], f64[1 1 1])", "f64[1.64493 inf nan]"},
        {"lgamma(f64[1 -1 0.5])", "f64[0 inf 0.572365]"},
        {"i0(f32[0 1 100])", "f32[1 1.26607 inf]"},
        {"igamma(f64[2 0 1], f64[1 1 0])", "f64[0.264241 1 0]"},
        {"special_hermite_polynomial_h(f64[0.5 0.5 0.5], f64[-1 0 3])", "f64[0 1 -5]"},
        {"special_chebyshev_polynomial_t(f64[-1 0.5 2], f64[3 10 3])", "f64[-1 -0.5 26]"},
        {"special_ndtri(f64[0 0.5 0.975])", "f64[-inf 0 1.95996]"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void refusals_say_which_type_or_number(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"sub.Tensor(b8[1], b8[1])", "INVALID_ARGUMENT: sub.Tensor: not there for bools..."},
        {"neg(b8[1])", "INVALID_ARGUMENT: neg: not there for bools..."},
        {"abs(b8[1])", "INVALID_ARGUMENT: abs: not there for bool..."},
        {"silu(i64[1])", "INVALID_ARGUMENT: silu: not there for int64..."},
        {"add.Tensor(i64[1], i64[1], alpha=1.5)", "INVALID_ARGUMENT: add.Tensor: argument \"alpha\": a float needs..."},
        {"add.Tensor(f32[1], f32[1], alpha=True)", "INVALID_ARGUMENT: add.Tensor: argument \"alpha\": a bool needs..."},
        {"add.Tensor(u8[1], u8[1], alpha=300)", "INVALID_ARGUMENT: add.Tensor: argument \"alpha\": 300 is out..."},
        {"pow.Tensor_Scalar(i64[2], -1)", "INVALID_ARGUMENT: pow.Tensor_Scalar: integers to a negative..."},
        {"clamp(u8[1], 256)", "INVALID_ARGUMENT: clamp: the lower bound 256 is out of the range of uint8..."},
        {"clamp(u8[1 250], -1, 300)", "u8[1 250]"},
        {"clamp(f32[1])", "INVALID_ARGUMENT: clamp: neither \"min\" nor \"max\" is given..."},
        {"add.Tensor(f32[1 2], f32[1 2 3])", "INVALID_ARGUMENT: the size of tensor a (2) must match..."},
        {"where.self(i64[1], f32[1], f32[1])", "INVALID_ARGUMENT: where.self: argument \"condition\"..."},
        {"heaviside(f32[1], i64[1])", "INVALID_ARGUMENT: heaviside: arguments \"self\" and \"values\"..."},
        {"celu(f32[1], 0)", "INVALID_ARGUMENT: celu: argument \"alpha\": must not be 0..."},
        {"glu(f32[1 2 3])", "INVALID_ARGUMENT: glu: dimension 0 of size 3 cannot be halved..."},
        {"prelu(f32[2x3: 1 2 3 4 5 6], f32[1 2])", "INVALID_ARGUMENT: prelu: argument \"weight\": 2 slopes..."},
    };
    OP_TEXT_CHECK(c, cases);
}

static void operands_broadcast_and_may_be_empty(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"add.Tensor(f32[2x1: 1 2], f32[3: 10 20 30])", "f32[2x3: 11 21 31 12 22 32]"},
        {"add.Tensor(f32[2x0:], f32[2x1: 1 2])", "f32[2x0:]"},
        {"mul.Tensor(f32(3), f32(4))", "f32(12)"},
        {"add.Tensor(f32(3), f32[1])", "f32[4]"},
        {"exp(f32[])", "f32[]"},
        {"where.self(b8[2x1: 1 0], f32[1 2], f32(9))", "f32[2x2: 1 2 9 9]"},
        {"prelu(f32[1x2x2: -1 -2 -3 4], f32[0.5 2])", "f32[1x2x2: -0.5 -1 -6 4]"},
        {"glu(f32[2x2: 1 0 2 0], 1)", "f32[2x1: 0.5 1]"},
        {"frexp.Tensor(f32[8 -0.5 0])", "f32[0.5 -0.5 0] | i32[4 0 0]"},
    };
    OP_TEXT_CHECK(c, cases);
}

static bp_tensor *strided(uint32_t rank, const int64_t *sizes, const int64_t *strides)
{
    bp_dim s[4], st[4];
    for (uint32_t d = 0; d < rank; d++) {
        s[d] = dim_const(sizes[d]);
        st[d] = dim_const(strides[d]);
    }
    tensor_meta m = {BP_F32, {BP_CPU, 0}, rank, s, st, dim_const(0)};
    bp_tensor *t = scope_own(c, tensor_new(c, &m));
    assert_non_null(t);
    for (int64_t i = 0; i < (int64_t)(t->store->nbytes / sizeof(float)); i++)
        ((float *)t->store->data)[i] = (float)i;
    return t;
}

/* Result i, j of a call on two tensors. */
static bp_tensor *call_2(const char *target, bp_tensor *a, bp_tensor *b)
{
    bp_value args[3] = {value_tensor(a), value_tensor(b), value_int(1)};
    bp_tensor *out = NULL;
    op_call k = {.op = op_by_target(target), .args = args, .out = &out, .nout = 1};
    assert_int_equal(op_dispatch(c, &k), BP_OK);
    return scope_own(c, out);
}

static void results_keep_the_layout_of_their_operands(void **state)
{
    (void)state;
    bp_scope_begin(c);
    bp_tensor *turned = strided(2, (int64_t[]){3, 2}, (int64_t[]){1, 3});
    bp_tensor *row = strided(1, (int64_t[]){2}, (int64_t[]){1});
    bp_tensor *out = call_2("aten.add.Tensor", turned, row);
    assert_int_equal(tensor_step(out, 0), 1);
    assert_int_equal(tensor_step(out, 1), 3);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 2; j++)
            assert_true(((float *)tensor_ptr(out))[i + 3 * j] == (float)(i + 3 * j + j));
    bp_tensor *gaps = strided(2, (int64_t[]){3, 2}, (int64_t[]){10, 5});
    out = call_2("aten.add.Tensor", gaps, row);
    assert_int_equal(tensor_step(out, 0), 2);
    assert_true(((float *)tensor_ptr(out))[5] == 26);
    bp_tensor *still = strided(2, (int64_t[]){3, 2}, (int64_t[]){0, 1});
    out = call_2("aten.add.Tensor", still, still);
    assert_int_equal(tensor_step(out, 0), 2);
    assert_true(((float *)tensor_ptr(out))[4] == 0 && ((float *)tensor_ptr(out))[5] == 2);
    bp_scope_end(c);
}

/* Longer than a chunk and than a thread's share, with an operand that is converted. */
static void long_runs_are_cut_without_a_seam(void **state)
{
    (void)state;
    enum { N = 100003 };
    bp_scope_begin(c);
    bp_tensor *a = strided(1, (int64_t[]){N}, (int64_t[]){1});
    bp_tensor *b = scope_own(c, tensor_contiguous_new(c, BP_I64, 1, (int64_t[]){N}));
    for (int64_t i = 0; i < N; i++)
        ((int64_t *)tensor_ptr(b))[i] = i % 7;
    bp_tensor *out = call_2("aten.add.Tensor", a, b);
    for (int64_t i = 0; i < N; i++)
        assert_true(((float *)tensor_ptr(out))[i] == (float)(i + i % 7));
    bp_scope_end(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_wrap_at_each_operator),
        cmocka_unit_test(integers_never_pass_through_a_float),
        cmocka_unit_test(division_of_integers_follows_each_rounding),
        cmocka_unit_test(an_integer_divided_by_zero_is_an_error),
        cmocka_unit_test(division_of_floats_keeps_signs_and_infinities),
        cmocka_unit_test(signed_zero_and_nan_pass_as_in_pytorch),
        cmocka_unit_test(types_promote_as_in_pytorch),
        cmocka_unit_test(halves_are_rounded_where_pytorch_rounds_them),
        cmocka_unit_test(bits_and_shifts),
        cmocka_unit_test(special_functions_at_their_edges),
        cmocka_unit_test(refusals_say_which_type_or_number),
        cmocka_unit_test(operands_broadcast_and_may_be_empty),
        cmocka_unit_test(results_keep_the_layout_of_their_operands),
        cmocka_unit_test(long_runs_are_cut_without_a_seam),
    };
    return cmocka_run_group_tests_name("pointwise", tests, op_world_begin, op_world_end);
}
