/* Data types: casts against PyTorch, promotion, halves. */
#include "tests/lib/check.h"
#include "host/tensor/dtype.h"
#include <math.h>
#include <stdlib.h>

static const struct { bp_dtype from, to; const char *before, *after; } CASTS[] = {
#define CAST(from, to, before, after) {from, to, before, after},
#include "tests/unit/tensor/casts.def"
#undef CAST
};

static void read_hex(const char *hex, unsigned char *out)
{
    for (; *hex; hex += 2) {
        char byte[3] = {hex[0], hex[1], 0};
        *out++ = (unsigned char)strtoul(byte, NULL, 16);
    }
}

/* NaNs are equal whatever their bits. */
static bool same_element(bp_dtype d, const void *a, const void *b)
{
    num x = dtype_load(d, a), y = dtype_load(d, b);
    bool re = x.f == y.f ? signbit(x.f) == signbit(y.f) : isnan(x.f) && isnan(y.f);
    bool im = x.im == y.im || (isnan(x.im) && isnan(y.im));
    return dtype_is_integral(d) ? memcmp(a, b, dtype_size(d)) == 0 : re && im;
}

static void casts_are_pytorchs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof CASTS / sizeof CASTS[0]; i++) {
        unsigned char before[16] = {0}, after[16] = {0}, run[3 * 16] = {0}, one[16] = {0};
        bp_dtype to = CASTS[i].to, from = CASTS[i].from;
        read_hex(CASTS[i].before, before);
        read_hex(CASTS[i].after, after);
        dtype_convert(to, run, 2, from, before, 0, 2); /* twice the same element, to a strided place */
        dtype_store(to, one, dtype_load(from, before));
        if (!same_element(to, run, after) || !same_element(to, run + 2 * dtype_size(to), after) ||
            !same_element(to, one, after))
            fail_msg("%s %s to %s: expected %s", dtype_get(from)->torch, CASTS[i].before, dtype_get(to)->torch,
                     CASTS[i].after);
    }
}

static void every_half_survives_the_way_through_float(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        float f = half_to_float((bp_half)h), b = bfloat16_to_float((bp_bfloat16)h);
        if (isnan(f))
            assert_int_equal(half_from_float(f), (h & 0x8000) | 0x7e00);
        else
            assert_int_equal(half_from_float(f), h);
        if (isnan(b))
            assert_int_equal(bfloat16_from_float(b), 0x7fc0);
        else
            assert_int_equal(bfloat16_from_float(b), h);
    }
}

static void halves_round_to_nearest_and_ties_to_even(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7bff; h++) { /* between each two neighbours: below, at and above the middle */
        double a = (double)half_to_float((bp_half)h), b = (double)half_to_float((bp_half)(h + 1));
        float middle = (float)((a + b) / 2);
        assert_int_equal(half_from_float(middle), h + (h & 1));
        assert_int_equal(half_from_float(nextafterf(middle, 0)), h);
        assert_int_equal(half_from_float(nextafterf(middle, INFINITY)), h + 1);
    }
    assert_int_equal(half_from_float(65519.996f), 0x7bff);
    assert_int_equal(half_from_float(65520.0f), 0x7c00);
}

/* Rows and columns in the order of dtype.def; torch.promote_types(row, column), by brief names. */
static const char *const PROMOTED[] = {
    "b8 u8 i8 i16 i32 i64 f16 bf16 f32 f64 c64 c128",
    "u8 u8 i16 i16 i32 i64 f16 bf16 f32 f64 c64 c128",
    "i8 i16 i8 i16 i32 i64 f16 bf16 f32 f64 c64 c128",
    "i16 i16 i16 i16 i32 i64 f16 bf16 f32 f64 c64 c128",
    "i32 i32 i32 i32 i32 i64 f16 bf16 f32 f64 c64 c128",
    "i64 i64 i64 i64 i64 i64 f16 bf16 f32 f64 c64 c128",
    "f16 f16 f16 f16 f16 f16 f16 f32 f32 f64 c64 c128",
    "bf16 bf16 bf16 bf16 bf16 bf16 f32 bf16 f32 f64 c64 c128",
    "f32 f32 f32 f32 f32 f32 f32 f32 f32 f64 c64 c128",
    "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 c128 c128",
    "c64 c64 c64 c64 c64 c64 c64 c64 c64 c128 c64 c128",
    "c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128",
};

static void promotion_is_pytorchs_lattice(void **state)
{
    (void)state;
    for (bp_dtype a = 1; a < BP_DTYPE_END; a++) {
        char row[160];
        strcpy(row, PROMOTED[a - 1]);
        bp_dtype b = 1;
        for (char *word = strtok(row, " "); word; word = strtok(NULL, " "), b++) {
            assert_string_equal(dtype_get(dtype_promote(a, b))->brief, word);
            assert_int_equal(dtype_promote(b, a), dtype_promote(a, b));
        }
        assert_int_equal(b, BP_DTYPE_END);
        assert_int_equal(dtype_promote(a, BP_DTYPE_UNSET), a);
    }
}

static void names_and_classes_come_from_the_row(void **state)
{
    (void)state;
    bp_dtype d = 0;
    assert_true(dtype_by_name("float32", &d) && d == BP_F32);
    assert_true(dtype_by_name("bf16", &d) && d == BP_BF16);
    assert_false(dtype_by_name("float33", &d));
    assert_string_equal(dtype_get(99)->torch, "?");
    assert_int_equal(dtype_size(-3), 0);
    assert_int_equal(dtype_accumulate(BP_BOOL), BP_I64);
    assert_int_equal(dtype_accumulate(BP_F16), BP_F32);
    assert_true(dtype_can_cast(BP_I64, BP_F16));
    assert_false(dtype_can_cast(BP_F16, BP_I64));
    assert_false(dtype_can_cast(BP_C64, BP_F64));
    assert_false(dtype_can_cast(BP_U8, BP_BOOL));
    assert_true(dtype_can_cast(BP_BOOL, BP_U8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(casts_are_pytorchs),
        cmocka_unit_test(every_half_survives_the_way_through_float),
        cmocka_unit_test(halves_round_to_nearest_and_ties_to_even),
        cmocka_unit_test(promotion_is_pytorchs_lattice),
        cmocka_unit_test(names_and_classes_come_from_the_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
