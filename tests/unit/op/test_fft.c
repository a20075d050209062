/* Fourier transforms: known spectra, lengths that are no power of two, norms, round trips, and what is refused. */
#include "tests/lib/op_world.h"
#include <math.h>

static void known_spectra(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"fft_rfft(f64[1 0 0 0]); view_as_real(%1)", "f64[3x2: 1 0 1 0 1 0]"},
        {"fft_rfft(f64[1 2 3 4]); view_as_real(%1)", "f64[3x2: 10 0 -2 2 -2 0]"},
        {"fft_fft(f64[1 2 3]); view_as_real(%1)", "f64[3x2: 6 0 -1.5 0.866025 -1.5 -0.866025]"},
        {"fft_fft(f64[1 2 3 4], norm='ortho'); view_as_real(%1)", "f64[4x2: 5 0 -1 1 -1 0 -1 -1]"},
        {"fft_fft(f64[1 2 3 4], norm='forward'); view_as_real(%1)", "f64[4x2: 2.5 0 -0.5 0.5 -0.5 0 -0.5 -0.5]"},
        {"fft_fft(f64[1 2], 4); view_as_real(%1)", "f64[4x2: 3 0 1 -2 -1 0 1 2]"},
        {"fft_fft(f64[1 2 3 4], 2); view_as_real(%1)", "f64[2x2: 3 0 -1 0]"},
        {"fft_fft(i64[1 2]); view_as_real(%1)", "f32[2x2: 3 0 -1 0]"},
        {"fft_rfft(f64[1 2 3 4]); fft_irfft(%1)", "f64[1 2 3 4]"},
        {"fft_rfft(f64[1 2 3]); fft_irfft(%1, 3)", "f64[1 2 3]"},
        {"fft_fftshift(f64[0 1 2 3 4])", "f64[3 4 0 1 2]"},
        {"fft_ifftshift(f64[3 4 0 1 2])", "f64[0 1 2 3 4]"},
        {"fft_fftfreq(4, 0.5, dtype=dtype:f64)", "f64[0 0.5 -1 -0.5]"},
        {"fft_rfftfreq(4, 0.5, dtype=dtype:f64)", "f64[0 0.5 1]"},
        {"fft_fft2(f64[2x2: 1 2 3 4]); view_as_real(%1)", "f64[2x2x2: 10 0 -2 0 -4 0 0 0]"},
    };
    OP_TEXT_CHECK(c, cases);
}

/* Every length: small primes, their products, powers of two, and large primes. */
static void what_is_transformed_comes_back(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 31, 32, 60, 64, 97, 100, 127, 128, 210, 257};
    for (uint32_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        bp_scope_begin(c);
        bp_tensor *x = bp_randn(c, BP_DIMS(3, lengths[i]), .dtype = BP_F64), *y = bp_fft_ifft(c, bp_fft_fft(c, x));
        bp_tensor *away = bp_amax(c, bp_abs(c, bp_sub(c, y, x)));
        assert_int_equal(bp_error(c), BP_OK);
        assert_true(bp_item(c, away).v.f[0] < 1e-12);
        bp_tensor *energy = bp_sum(c, bp_square(c, bp_abs(c, bp_fft_fft(c, x, .norm = "ortho"))));
        assert_true(fabs(bp_item(c, energy).v.f[0] - bp_item(c, bp_sum(c, bp_square(c, x))).v.f[0]) < 1e-9);
        bp_scope_end(c);
    }
}

static void what_pytorch_refuses_is_refused(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"fft_fft(f64[1 2], 0)", "INVALID_ARGUMENT: fft_fft: a transform of 0 points along dimension 0"},
        {"fft_fft(f64[1 2], dim=1)",
         "INVALID_ARGUMENT: fft_fft: argument \"dim\" is 1, expected a dimension from -1 to 0"},
        {"fft_fft(f64[1 2], norm='other')",
         "INVALID_ARGUMENT: fft_fft: argument \"norm\" must be \"forward\", \"backward\" or \"ortho\", and is "
         "\"other\""},
        {"fft_fft(f64(1))", "INVALID_ARGUMENT: fft_fft: a tensor of no dimensions has none to transform"},
        {"fft_fft(f64[0x0:])", "INVALID_ARGUMENT: fft_fft: a transform of 0 points along dimension 1"},
        {"fft_fft2(f64[2x2: 1 2 3 4], dim=[0, 0])",
         "INVALID_ARGUMENT: fft_fft2: argument \"dim\" names dimension 0 twice"},
        {"fft_fft(f64[1 2]); fft_rfft(%1)", "INVALID_ARGUMENT: fft_rfft: expected a real tensor, got complex128"},
        {"fft_fft(bf16[1 2])", "INVALID_ARGUMENT: fft_fft: there are no Fourier transforms of bfloat16"},
    };
    OP_TEXT_CHECK(c, cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OP_WORLD_TEST(known_spectra),
        OP_WORLD_TEST(what_is_transformed_comes_back),
        OP_WORLD_TEST(what_pytorch_refuses_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
