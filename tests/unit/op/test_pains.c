/* What users of graph compilers reported, restated: each function is one report's kind, named by its number, on eager
 * operators and compiled. This part: division, casts, types, reductions. */
#include "tests/unit/op/pains.h"

/* -- A1: division, wrap-around, signed zero ------------------------------------------------------------------------ */

static void A002_the_least_integer_over_minus_one_wraps(void **state)
{
    (void)state;
    RIGHT({"floor_divide(i32[-2147483648], i32[-1])", "i32[-2147483648]"},
          {"floor_divide(i64[-9223372036854775808], i64[-1])", "i64[-9223372036854775808]"},
          {"floor_divide(i8[-128], i8[-1])", "i8[-128]"}, {"floor_divide(i16[-32768], i16[-1])", "i16[-32768]"},
          {"remainder.Tensor(i32[-2147483648], i32[-1])", "i32[0]"},
          {"remainder.Tensor(i64[-9223372036854775808], i64[-1])", "i64[0]"},
          {"fmod.Tensor(i64[-9223372036854775808], i64[-1])", "i64[0]"},
          {"div.Tensor_mode(i32[-2147483648], i32[-1], rounding_mode='trunc')", "i32[-2147483648]"},
          {"div.Tensor_mode(i64[-9223372036854775808], i64[-1], rounding_mode='floor')", "i64[-9223372036854775808]"},
          {"remainder.Scalar(i64[-9223372036854775808], -1)", "i64[0]"});
    char a[TEXT], want[TEXT];
    for (int n = 1; n <= LONGEST; n += 3) {
        vector(a, "i32", n, "7", n - 1, "-2147483648");
        vector(want, "i32", n, "-7", n - 1, "-2147483648");
        right(want, "floor_divide(%s, i32[-1])", a);
    }
}

static void A004_a_bool_divisor_that_is_false_raises(void **state)
{
    (void)state;
    RIGHT({"remainder.Scalar_Tensor(1, b8[1 0])", "INVALID_ARGUMENT: ..."},
          {"remainder.Scalar_Tensor(1, b8[1])", "i64[0]"},
          {"floor_divide(i64[1], b8[0])", "INVALID_ARGUMENT: ..."},
          {"full([2], 0, dtype=dtype:i64); remainder.Scalar_Tensor(1, %1)", "INVALID_ARGUMENT: ..."});
}

static void A006_a_zero_divisor_raises_and_dead_lanes_do_not(void **state)
{
    (void)state;
    char a[TEXT], b[TEXT], want[TEXT];
    for (size_t d = 0; d < COUNT(integers); d++) {
        for (int n = 1; n <= LONGEST; n += n < 20 ? 1 : 7) {
            vector(a, integers[d], n, "7", -1, "");
            right(vector(want, integers[d], n, "1", -1, ""), "fmod.Tensor(%s, %s)", a,
                  vector(b, integers[d], n, "3", -1, ""));
            right("INVALID_ARGUMENT: ...", "fmod.Tensor(%s, %s)", a, vector(b, integers[d], n, "3", n - 1, "0"));
            right("INVALID_ARGUMENT: ...", "remainder.Tensor(%s, %s)", a, vector(b, integers[d], n, "3", 0, "0"));
            right("INVALID_ARGUMENT: ...", "floor_divide(%s, %s)", a, vector(b, integers[d], n, "3", n / 2, "0"));
        }
    }
}

static void A008_small_indices_do_not_narrow_what_is_computed_with_them(void **state)
{
    (void)state;
    RIGHT({"arange(11); mul.Tensor(%1, i64[1000000000])",
           "i64[0 1000000000 2000000000 3000000000 4000000000 5000000000 "
                                                           "6000000000 7000000000 8000000000 9000000000 10000000000]"},
          {"arange.start(0, 3, dtype=dtype:i32); mul.Tensor(%1, i32[2000000000])", "i32[0 2000000000 -294967296]"});
}

static void A010_a_power_wraps_before_what_follows(void **state)
{
    (void)state;
    RIGHT({"pow.Tensor_Scalar(u8[4], 5); cos(%1)", "f32[1]"}, {"pow.Tensor_Scalar(i8[4], 4); add.Scalar(%1, 0.5)",
                                                               "f32[0.5]"},
          {"mul.Tensor(i16[300], i16[300]); cos(%1)", "f32[-0.9139]"});
}

static void A012_each_integer_operator_wraps_to_its_type(void **state)
{
    (void)state;
    RIGHT({"add.Tensor(i8[100], i8[100]); _to_copy(%1, dtype=dtype:f32)", "f32[-56]"},
          {"add.Tensor(u8[200], u8[100]); _to_copy(%1, dtype=dtype:f32)", "f32[44]"},
          {"mul.Tensor(i16[256], i16[256]); _to_copy(%1, dtype=dtype:f64)", "f64[0]"},
          {"add.Tensor(i32[2147483647], i32[1]); _to_copy(%1, dtype=dtype:f64)", "f64[-2.14748e+09]"},
          {"sub.Tensor(u8[1], u8[2]); lt.Scalar(%1, 0)", "b8[0]"},
          {"neg(u8[1]); _to_copy(%1, dtype=dtype:i64)", "i64[255]"});
    char a[TEXT], want[TEXT];
    for (int n = 1; n <= LONGEST; n += 5)
        right(vector(want, "f32", n, "-56", -1, ""), "add.Tensor(%s, i8[100]); _to_copy(%%1, dtype=dtype:f32)",
              vector(a, "i8", n, "100", -1, ""));
}

static void A014_adding_zero_is_not_nothing(void **state)
{
    (void)state;
    RIGHT({"ceil(f32[-0.5]); add.Scalar(%1, 0.0); reciprocal(%2)", "f32[inf]"},
          {"ceil(f32[-0.5]); reciprocal(%1)", "f32[-inf]"},
          {"ceil(f32[-0.5]); sub.Scalar(%1, 0.0); reciprocal(%2)", "f32[-inf]"},
          {"ceil(f32[-0.5]); add.Scalar(%1, -0.0); reciprocal(%2)", "f32[-inf]"},
          {"ceil(f32[-0.5]); mul.Scalar(%1, 1); reciprocal(%2)", "f32[-inf]"}, {"elu(f32[-0.0])", "f32[-0]"},
          {"sqrt(f32[-0.0]); reciprocal(%1)", "f32[-inf]"});
}

static void A016_relu_keeps_a_negative_zero_and_nan(void **state)
{
    (void)state;
    char a[TEXT], want[TEXT];
    for (size_t d = 0; d < COUNT(floats); d++)
        for (int n = 1; n <= LONGEST; n += 11) {
            right(vector(want, floats[d], n, "-0", n - 1, "nan"), "relu(%s)", vector(a, floats[d], n, "-0.0", n - 1,
              "nan"));
            right(vector(want, floats[d], n, "-inf", n - 1, "inf"), "relu(%s); reciprocal(%%1)",
                  vector(a, floats[d], n, "-0.0", n - 1, "0.0"));
        }
}

/* -- A2: casts and rounding ---------------------------------------------------------------------------------------- */

static void A018_floats_become_bytes_by_wrapping(void **state)
{
    (void)state;
    RIGHT({"_to_copy(f32[1.541 -0.2934 -2.1788 0.5684 -1.0845], dtype=dtype:u8)", "u8[1 0 254 0 255]"},
          {"_to_copy(f64[-1.5 300.7 -129], dtype=dtype:i8)", "i8[-1 44 127]"},
          {"_to_copy(f32[70000 -70000], dtype=dtype:i16)", "i16[4464 -4464]"});
    char a[TEXT], want[TEXT];
    for (int n = 1; n <= LONGEST; n += 3)
        right(vector(want, "u8", n, "254", -1, ""), "_to_copy(%s, dtype=dtype:u8)",
              vector(a, "f32", n, "-2.1788", -1, ""));
}

static void A020_a_float_out_of_range_is_the_indefinite_integer(void **state)
{
    (void)state;
    RIGHT({"_to_copy(f32[3e9 -3e9 nan inf], dtype=dtype:i32)", "i32[-2147483648 -2147483648 -2147483648 -2147483648]"},
          {"_to_copy(f32[9223372036854775807 nan inf], dtype=dtype:i64)",
           "i64[-9223372036854775808 -9223372036854775808 -9223372036854775808]"});
}

static void A022_a_narrowing_cast_stays(void **state)
{
    (void)state;
    RIGHT({"_to_copy(f32[1.003 1.0078125], dtype=dtype:bf16); _to_copy(%1, dtype=dtype:f32)", "f32[1 1.00781]"},
          {"_to_copy(f32[1.003], dtype=dtype:bf16); _to_copy(%1, dtype=dtype:f32); sigmoid(%2); mul.Tensor(%2, %3)",
           "f32[0.731059]"},
          {"_to_copy(f64[1.0000000001], dtype=dtype:f32); _to_copy(%1, dtype=dtype:f64); sub.Scalar(%2, 1)", "f64[0]"},
          {"_to_copy(f32[1.9], dtype=dtype:i64); _to_copy(%1, dtype=dtype:f32)", "f32[1]"});
}

static void A024_halves_round_after_each_operator(void **state)
{
    (void)state;
    RIGHT({"add.Scalar(f16[2048], 1); sub.Scalar(%1, 2048)", "f16[0]"},
          {"add.Scalar(bf16[256], 1); sub.Scalar(%1, 256)", "bf16[0]"},
          {"mul.Scalar(f16[60000], 2); mul.Scalar(%1, 0.5)", "f16[inf]"},
          {"where.ScalarOther(b8[1], f16[2048], 0.0); add.Scalar(%1, 1); _to_copy(%2, dtype=dtype:f32)", "f32[2048]"});
}

static void A026_rotated_halves_round_at_each_step(void **state)
{
    (void)state;
    RIGHT({"mul.Tensor(bf16[1.0078125], bf16[1.0078125]); mul.Tensor(bf16[3], bf16[0.33203125]); add.Tensor(%1, %2)",
           "bf16[2.01562]"});
}

static void A028_a_number_beside_a_half_is_rounded_first(void **state)
{
    (void)state;
    RIGHT({"eq.Scalar(bf16[3.140625 3.125], 3.14)", "b8[1 0]"}, {"eq.Scalar(f16[0.0999755859375 0.1], 0.1)", "b8[1 1]"},
          {"ge.Scalar(bf16[3.140625], 3.1415)", "b8[1]"}, {"eq.Scalar(f32[0.1], 0.1)", "b8[1]"});
}

/* -- A3: types ----------------------------------------------------------------------------------------------------- */

static void A030_an_explicit_type_of_a_scan_counts(void **state)
{
    (void)state;
    RIGHT({"cumsum(b8[2x2: 1 1 1 1], 1, dtype=dtype:bf16)", "bf16[2x2: 1 2 1 2]"},
          {"full([3], 2, dtype=dtype:b8); cumsum(%1, 0)", "i64[1 2 3]"},
          {"cumsum(i8[100 100], 0)", "i64[100 200]"}, {"cumsum(i8[100 100], 0, dtype=dtype:i8)", "i8[100 -56]"},
          {"cumprod(u8[20 20], 0, dtype=dtype:u8)", "u8[20 144]"});
}

static void A032_any_and_all_of_bytes_are_bytes(void **state)
{
    (void)state;
    RIGHT({"any(u8[2x2: 0 3 0 0]); mul.Scalar(%1, 200); add.Scalar(%2, 100)", "u8(44)"}, {"any(u8[0 0])", "u8(0)"},
          {"all(u8[3 4])", "u8(1)"}, {"any.dim(u8[2x2: 0 3 0 0], 1)", "u8[1 0]"}, {"any(i8[0 3])", "b8(1)"},
          {"all.dim(u8[2x2: 1 3 0 5], 0)", "u8[0 1]"});
}

static void A034_products_of_integers_keep_their_type_and_wrap(void **state)
{
    (void)state;
    RIGHT({"matmul(i8[1x1x2: 100 100], i8[1x2x2: 1 2 1 2])", "i8[1x1x2: -56 -112]"},
          {"mm(i8[1x2: 100 100], i8[2x1: 1 1])", "i8[1x1: -56]"},
          {"bmm(i32[1x1x2: 2147483647 1], i32[1x2x1: 1 1])", "i32[1x1x1: -2147483648]"},
          {"dot(u8[200 100], u8[1 1])", "u8(44)"});
}

static void A036_random_numbers_have_the_type_that_was_asked_for(void **state)
{
    (void)state;
    static const char *const types[] = {"f64", "f32", "f16", "bf16"};
    for (size_t i = 0; i < COUNT(types); i++) {
        char call[128], want[8];
        snprintf(call, sizeof call, "normal.float_float(2, 3, [4], dtype=dtype:%s)", types[i]);
        snprintf(want, sizeof want, "%s[", types[i]);
        assert_contains(op_text_run(w->c, call), want);
        assert_contains(op_text_run_compiled(w->c, "chain", call), want);
    }
}

static void A038_a_type_is_refused_without_dimensions_too(void **state)
{
    (void)state;
    RIGHT({"logcumsumexp(u8(0), 0)", "INVALID_ARGUMENT: logcumsumexp: not there for uint8"},
          {"logcumsumexp(u8[1 2], 0)", "INVALID_ARGUMENT: logcumsumexp: not there for uint8"},
          {"logcumsumexp(f32(0), 0)", "f32(0)"});
}

static void A040_minima_of_small_integers_behind_a_triangle(void **state)
{
    (void)state;
    RIGHT({"triu(i8[3x2: 5 7 -3 4 9 -2]); min.dim(%1, 0)", "i8[0 0] | i64[1 2]"},
          {"triu(i8[2x2: -5 7 3 4]); min.dim(%1, 0)", "i8[-5 4] | i64[0 1]"});
}

/* -- A4: reductions, NaN, extrema, sorting ------------------------------------------------------------------------- */

static void A042_nan_passes_extrema_and_the_upper_bound_wins(void **state)
{
    (void)state;
    RIGHT({"clamp_min(f32[nan -1], 0.5)", "f32[nan 0.5]"}, {"maximum(f32[nan 0], f32[0 nan])", "f32[nan nan]"},
          {"minimum(f32[nan 0], f32[0 nan])", "f32[nan nan]"}, {"fmax(f32[nan 0], f32[0 nan])", "f32[0 0]"},
          {"clamp(f32[0 2 5], 3, 1)", "f32[1 1 1]"}, {"clamp_max(f32[nan 7], 1)", "f32[nan 1]"});
    char a[TEXT], want[TEXT];
    for (size_t d = 0; d < COUNT(floats); d++)
        for (int n = 1; n <= LONGEST; n += 11)
            right(vector(want, floats[d], n, "1", n - 1, "nan"), "clamp(%s, 1, 3)",
                  vector(a, floats[d], n, "0", n - 1, "nan"));
}

static void A044_of_equal_extrema_the_first_counts(void **state)
{
    (void)state;
    RIGHT({"argmin(f32[2 0 0])", "i64(1)"}, {"argmax(f32[1 3 3 0])", "i64(1)"},
          {"min.dim(i64[3 1 1], 0)", "i64(1) | i64(1)"},
          {"argmin(f32[2x2: 1 1 0 0], 0)", "i64[1 1]"});
    char a[TEXT], want[32];
    for (size_t d = 0; d < COUNT(floats); d++)
        for (int n = 1; n <= LONGEST; n += 3) {
            snprintf(want, sizeof want, "i64(%d)", n / 2);
            vector(a, floats[d], n, "1", n / 2, "5");
            right(want, "argmax(%s)", a);
            right("i64(0)", "argmax(%s)", vector(a, floats[d], n, "5", -1, ""));
        }
}

static void A046_unused_lanes_take_no_part_in_extrema(void **state)
{
    (void)state;
    RIGHT({"amin(u8[5 1 100 3 7 8 9 13 100 120 127 2 6 4 11 12 90 80])", "u8(1)"},
          {"argmin(u8[5 1 100 3 7 8 9 13 100 120 127 2 6 4 11 12 90 80])", "i64(1)"});
    char a[TEXT], one[16], minus[16];
    for (size_t d = 0; d < COUNT(integers); d++)
        for (int n = 1; n <= LONGEST; n += n < 20 ? 1 : 5) {
            snprintf(one, sizeof one, "%s(3)", integers[d]);
            snprintf(minus, sizeof minus, "%s(-3)", integers[d]);
            right(one, "amin(%s)", vector(a, integers[d], n, "9", n - 1, "3"));
            right(one, "min(%s)", vector(a, integers[d], n, "9", 0, "3"));
            if (d)
                right(minus, "amax(%s)", vector(a, integers[d], n, "-9", n - 1, "-3"));
            right("i64(0)", "argmin(%s)", vector(a, integers[d], n, "9", 0, "3"));
        }
    for (size_t d = 0; d < COUNT(floats); d++)
        for (int n = 1; n <= LONGEST; n += 7) {
            snprintf(minus, sizeof minus, "%s(-3)", floats[d]);
            right(minus, "amax(%s)", vector(a, floats[d], n, "-9", n - 1, "-3"));
        }
}

static void A048_the_first_nan_is_the_extremum(void **state)
{
    (void)state;
    RIGHT({"div.Tensor(f32[1 0 2 0], f32[1 0 2 0]); argmin(%1, 0)", "i64(1)"},
          {"div.Tensor(f32[1 0 2 0], f32[1 0 2 0]); cat([%1], 0); argmax(%1, 0)", "i64(1)"},
          {"min.dim(f32[3 nan 1 nan], 0)", "f32(nan) | i64(1)"});
    char a[TEXT], want[32];
    for (int n = 1; n <= LONGEST; n += 3) {
        snprintf(want, sizeof want, "i64(%d)", n - 1);
        right(want, "argmin(%s)", vector(a, "f32", n, "2", n - 1, "nan"));
    }
}

static void A050_an_infinity_in_a_softmax_is_nan(void **state)
{
    (void)state;
    RIGHT({"mul.Scalar(f32[1 -1 2], 3e38); mul.Scalar(%1, 10.0); softmax.int(%2, 0)", "f32[nan nan nan]"},
          {"softmax.int(f32[2x2: inf 1 1 1], 1)", "f32[2x2: nan nan 0.5 0.5]"},
          {"_log_softmax(f32[inf 1], 0, False)", "f32[nan nan]"});
}

static void A052_a_masked_row_has_no_sum(void **state)
{
    (void)state;
    RIGHT({"logsumexp(f32[3x2: 1 2 -inf -inf inf 1], [1])", "f32[2.31326 -inf inf]"},
          {"softmax.int(f32[-inf -inf], 0)", "f32[nan nan]"}, {"log_softmax.int(f32[-inf -inf], 0)", "f32[nan nan]"},
          {"logcumsumexp(f32[-inf -inf 0], 0)", "f32[-inf -inf 0]"});
}

static void A054_attention_of_a_masked_row_is_zero_and_nan_stays(void **state)
{
    (void)state;
    RIGHT({"scaled_dot_product_attention(f32[1x1x2x1: 1 1], f32[1x1x2x1: 1 2], f32[1x1x2x1: 3 4], "
           "f32[2x2: -inf -inf 0 -inf])",
           "f32[1x1x2x1: 0 3]"},
          {"scaled_dot_product_attention(f32[1x1x1x1: nan], f32[1x1x2x1: 1 2], f32[1x1x2x1: 3 4], f32[1x2: 0 -inf])",
           "f32[1x1x1x1: nan]"},
          {"_safe_softmax(f32[2x2: -inf -inf nan 1], 1)", "f32[2x2: 0 0 nan nan]"});
}

static void A056_the_norm_of_large_numbers_is_finite(void **state)
{
    (void)state;
    RIGHT({"layer_norm(f32[2x2: 8.5e37 8.4e37 1e30 3e30], [2])", "f32[2x2: 1 -1 -1 1]"},
          {"layer_norm(f32[4: 1e37 1e37 1e37 -3e37], [4])", "f32[0.57735 0.57735 0.57735 -1.73205]"});
}

static void A058_the_norm_of_a_constant_group_is_the_bias(void **state)
{
    (void)state;
    RIGHT({"group_norm(f32[1x2x2: 0.1 0.1 0.1 0.1], 1, f32[2 3], f32[0.25 -7])", "f32[1x2x2: 0.25 0.25 -7 -7]"},
          {"layer_norm(f32[3: 0.3 0.3 0.3], [3], f32[1 2 3], f32[4 5 6])", "f32[4 5 6]"},
          {"batch_norm(f32[1x1x2: 3 3], f32[2], f32[1], f32[3], f32[0], False, 0.1, 1e-5, False); clamp_min(%1, 1e-6)",
           "f32[1x1x2: 1 1]"});
}

static void A060_a_norm_under_a_half_takes_one_order(void **state)
{
    (void)state;
    RIGHT({"layer_norm(bf16[4: 1 2 3 4], [4])", "bf16[-1.34375 -0.447266 0.447266 1.34375]"},
          {"native_layer_norm(f32[2: 1 3], [2], None, None, 0.0)", "f32[-1 1] | f32[2] | f32[1]"});
}

static void A062_erf_and_atanh_are_exact_near_zero(void **state)
{
    (void)state;
    RIGHT({"erf(f32[1e-8 1e-7 1e-5 1e-3 1e-8 1e-7 1e-5 1e-3 1e-8])",
           "f32[1.12838e-08 1.12838e-07 1.12838e-05 0.00112838 "
           "1.12838e-08 1.12838e-07 1.12838e-05 0.00112838 1.12838e-08]"},
          {"erf(f64[1e-300 -0.0])", "f64[1.12838e-300 -0]"},
          {"atanh(f32[1e-8 1e-5 1e-8 1e-5 1e-8 1e-5 1e-8 1e-5 1e-8])",
           "f32[1e-08 1e-05 1e-08 1e-05 1e-08 1e-05 1e-08 1e-05 1e-08]"},
          {"tanh(f32[1e-8 1e-8 1e-8 1e-8 1e-8 1e-8 1e-8 1e-8 1e-8])",
           "f32[1e-08 1e-08 1e-08 1e-08 1e-08 1e-08 1e-08 1e-08 1e-08]"},
          {"expm1(f32[1e-8]); log1p(f32[1e-8])", "f32[1e-08]"}, {"sin(f32[1e-8 1e-8 1e-8 1e-8 1e-8])",
                                                                  "f32[1e-08 1e-08 1e-08 1e-08 1e-08]"});
}

static void A064_gelu_far_out_is_zero_and_never_above(void **state)
{
    (void)state;
    RIGHT({"gelu(f32[-20 inf]); sign(%1)", "f32[0 1]"}, {"gelu(f32[-inf])", "f32[nan]"},
          {"gelu(f32[-inf 0 1], approximate='tanh')", "f32[nan 0 0.841192]"},
          {"gelu(f32[-6 -20 3 20]); gt.Scalar(%1, 0)", "b8[0 0 1 1]"});
}

static void A066_a_value_does_not_depend_on_who_else_sees_it(void **state)
{
    (void)state;
    static const char alone[] = "tan(f16[1.5 3 6.5 9]); sin(%1)", seen[] = "tan(f16[1.5 3 6.5 9]); sin(%1); cat([%1, "
           "%2], 0)";
    char want[256];
    for (const char *const *b = backends; *b; b++) {
        snprintf(want, sizeof want, "%s", op_text_run(w->c, alone));
        assert_string_equal(op_text_run_compiled(w->c, *b, alone), want);
        snprintf(want, sizeof want, "%s", op_text_run(w->c, seen));
        assert_string_equal(op_text_run_compiled(w->c, *b, seen), want);
    }
    RIGHT({"sum(f16[2048 1 1 1]); sub.Scalar(%1, 2048)", "f16(4)"});
}

static void A068_nan_is_the_greatest_when_sorted(void **state)
{
    (void)state;
    RIGHT({"sort(f32[nan 1 -inf inf])", "f32[-inf 1 inf nan] | i64[2 1 3 0]"},
          {"sort(f32[nan 1 -inf inf], -1, True)", "f32[nan inf 1 -inf] | i64[0 3 1 2]"},
          {"topk(f32[nan 1 5], 1)", "f32[nan] | i64[0]"}, {"argsort(f16[nan 0 nan -1])", "i64[3 1 0 2]"},
          {"kthvalue(f32[nan 1 5], 3)", "f32(nan) | i64(0)"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(A002_the_least_integer_over_minus_one_wraps), T(A004_a_bool_divisor_that_is_false_raises),
        T(A006_a_zero_divisor_raises_and_dead_lanes_do_not),
        T(A008_small_indices_do_not_narrow_what_is_computed_with_them), T(A010_a_power_wraps_before_what_follows),
        T(A012_each_integer_operator_wraps_to_its_type), T(A014_adding_zero_is_not_nothing),
        T(A016_relu_keeps_a_negative_zero_and_nan), T(A018_floats_become_bytes_by_wrapping),
        T(A020_a_float_out_of_range_is_the_indefinite_integer), T(A022_a_narrowing_cast_stays),
        T(A024_halves_round_after_each_operator), T(A026_rotated_halves_round_at_each_step),
        T(A028_a_number_beside_a_half_is_rounded_first), T(A030_an_explicit_type_of_a_scan_counts),
        T(A032_any_and_all_of_bytes_are_bytes), T(A034_products_of_integers_keep_their_type_and_wrap),
        T(A036_random_numbers_have_the_type_that_was_asked_for), T(A038_a_type_is_refused_without_dimensions_too),
        T(A040_minima_of_small_integers_behind_a_triangle), T(A042_nan_passes_extrema_and_the_upper_bound_wins),
        T(A044_of_equal_extrema_the_first_counts), T(A046_unused_lanes_take_no_part_in_extrema),
        T(A048_the_first_nan_is_the_extremum), T(A050_an_infinity_in_a_softmax_is_nan),
        T(A052_a_masked_row_has_no_sum), T(A054_attention_of_a_masked_row_is_zero_and_nan_stays),
        T(A056_the_norm_of_large_numbers_is_finite), T(A058_the_norm_of_a_constant_group_is_the_bias),
        T(A060_a_norm_under_a_half_takes_one_order), T(A062_erf_and_atanh_are_exact_near_zero),
        T(A064_gelu_far_out_is_zero_and_never_above), T(A066_a_value_does_not_depend_on_who_else_sees_it),
        T(A068_nan_is_the_greatest_when_sorted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
