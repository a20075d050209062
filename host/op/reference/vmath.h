/* Functions of f32 without a branch or a call, so that loops over them become vector instructions.
 *
 * Each is a polynomial (least largest error on its interval, coefficients rounded to f32) around an exact reduction.
 * The same operations in the same order at every level of instructions: the bits do not depend on the processor. Errors
 * in units of the last place (tests/unit/op/test_vector.c): exp 1.0, log 0.9, tanh 1.4, erf 2.0, sigmoid 2.5 above -88,
 * below which e^-x overflows and it is 0; gelu 3.0 above 0, and 6e-8 in all below it. NaN gives NaN; infinities, zeros
 * and their signs, overflow and subnormal results are those of C. */
#ifndef HOST_OP_REFERENCE_VMATH_H
#define HOST_OP_REFERENCE_VMATH_H
#include "host/base/isa.h"
#include <stdint.h>

typedef union { float f; int32_t i; } vmath_bits;
ISA_INLINE float vmath_of_bits(int32_t i) { return (vmath_bits){.i = i}.f; }
ISA_INLINE int32_t vmath_bits_of(float f) { return (vmath_bits){.f = f}.i; }
/* 2^n, n in [-126, 127]. */
ISA_INLINE float vmath_power_of_2(int32_t n) { return vmath_of_bits((int32_t)((uint32_t)(n + 127) << 23)); }
ISA_INLINE float vmath_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
ISA_INLINE float vmath_abs(float x) { return vmath_of_bits(vmath_bits_of(x) & 0x7fffffff); }
ISA_INLINE float vmath_sign_of(float size, float sign)
{
    return vmath_of_bits((vmath_bits_of(size) & 0x7fffffff) | (vmath_bits_of(sign) & INT32_MIN));
}

/* r and n, where x = n ln(2) + r; adding VMATH_WHOLE cuts a float to a whole number. */
#define VMATH_WHOLE 0x1.8p23f
ISA_INLINE float vmath_reduce(float x, int32_t *n)
{
    float whole = vmath_fma(x, 0x1.715476p0f, VMATH_WHOLE), count = whole - VMATH_WHOLE;
    *n = vmath_bits_of(whole) - vmath_bits_of(VMATH_WHOLE);
    return vmath_fma(count, -0x1.7f7d1cp-20f, vmath_fma(count, -0x1.62e4p-1f, x));
}
/* e^r for |r| <= ln(2) / 2. */
ISA_INLINE float vmath_exp_part(float r)
{
    float p = vmath_fma(r, 0.000199193804f, 0.00139472249f);
    p = vmath_fma(r, p, 0.00833326299f);
    p = vmath_fma(r, p, 0.0416662544f);
    p = vmath_fma(r, p, 0.166666672f);
    p = vmath_fma(r, p, 0.5f);
    return vmath_fma(r * r, p, r) + 1;
}
/* e^x for x in [-87, 88]. */
ISA_INLINE float vmath_exp_normal(float x)
{
    int32_t n;
    float part = vmath_exp_part(vmath_reduce(x, &n));
    return vmath_of_bits((int32_t)((uint32_t)vmath_bits_of(part) + ((uint32_t)n << 23)));
}
ISA_INLINE float vmath_exp(float x)
{
    int32_t n;
    float low = x < -104 ? -104 : x, inside = low > 89 ? 89 : low; /* NaN falls through both */
    float part = vmath_exp_part(vmath_reduce(inside, &n));
    n = x == x ? n : 0;
    int32_t half = n >> 1; /* in two steps: 2^n itself may be out of range */
    return part * vmath_power_of_2(half) * vmath_power_of_2(n - half);
}

ISA_INLINE float vmath_log(float x)
{
    float up = x < 0x1p-126f ? x * 0x1p23f : x; /* subnormal numbers */
    int32_t bits = vmath_bits_of(up), from = (int32_t)((uint32_t)bits - 0x3f3504f3u); /* sqrt(1/2); may wrap */
    int32_t n = from >> 23;
    float count = (float)n - (x < 0x1p-126f ? 23 : 0);
    float f = vmath_of_bits((int32_t)((uint32_t)bits - ((uint32_t)n << 23))) - 1;
    float p = vmath_fma(f, -0.0763351694f, 0.128003269f);
    p = vmath_fma(f, p, -0.131785601f);
    p = vmath_fma(f, p, 0.141978025f);
    p = vmath_fma(f, p, -0.166211888f);
    p = vmath_fma(f, p, 0.200013191f);
    p = vmath_fma(f, p, -0.250008792f);
    p = vmath_fma(f, p, 0.333333313f);
    float rest = vmath_fma(count, 0x1.7f7d1cp-20f, f * f * vmath_fma(f, p, -0.5f));
    float result = vmath_fma(count, 0x1.62e4p-1f, f + rest);
    result = x > 0x1.fffffep127f ? x : result;
    result = x == 0 ? -__builtin_inff() : result;
    return x >= 0 ? result : __builtin_nanf("");
}

ISA_INLINE float vmath_tanh(float x)
{
    float size = vmath_abs(x), z = x * x;
    float p = vmath_fma(z, -0.00566078071f, 0.020601999f);
    p = vmath_fma(z, p, -0.0537292287f);
    p = vmath_fma(z, p, 0.133313283f);
    p = vmath_fma(z, p, -0.333332777f);
    float small = vmath_sign_of(vmath_fma(x, z * p, x), x), large = 1 - 2 / (vmath_exp(2 * size) + 1);
    return size < 0.63f ? small : vmath_sign_of(large, x); /* NaN: large */
}

ISA_INLINE float vmath_erf(float x)
{
    float size = vmath_abs(x), z = x * x, t = size > 4 ? 4 : size;
    float p = vmath_fma(z, 7.8891193e-05f, -0.000802084105f);
    p = vmath_fma(z, p, 0.00518953521f);
    p = vmath_fma(z, p, -0.0268544443f);
    p = vmath_fma(z, p, 0.112836003f);
    p = vmath_fma(z, p, -0.37612626f);
    p = vmath_fma(z, p, 0.12837911f); /* 2 / sqrt(pi) is this and 1 */
    float q = vmath_fma(t, -2.1686772e-05f, 0.000441335345f); /* log(erfc(t)) */
    q = vmath_fma(t, q, -0.00420455635f);
    q = vmath_fma(t, q, 0.0252082404f);
    q = vmath_fma(t, q, -0.108418547f);
    q = vmath_fma(t, q, -0.633219898f);
    q = vmath_fma(t, q, -1.12957835f);
    q = vmath_fma(t, q, 0.000188035934f);
    float large = size >= 4 ? 1 : 1 - vmath_exp_normal(q);
    large = size == size ? large : size;
    return size < 1 ? vmath_fma(x, p, x) : vmath_sign_of(large, x);
}

/* x times the normal distribution of x; 0 below -5.8, where 1 + erf is 0 in f32 (so -inf gives NaN, as there). */
ISA_INLINE float vmath_gelu(float x)
{
    float size = vmath_abs(x), t = size < 5.8f ? size : 5.8f;
    float q = vmath_fma(t, 1.95913827e-07f, -4.71414796e-06f); /* base 2 logarithm of the distribution of -t */
    q = vmath_fma(t, q, 4.50969601e-05f);
    q = vmath_fma(t, q, -0.000188798105f);
    q = vmath_fma(t, q, -0.000155335307f);
    q = vmath_fma(t, q, 0.00710058678f);
    q = vmath_fma(t, q, -0.0525238812f);
    q = vmath_fma(t, q, -0.459199846f);
    q = vmath_fma(t, q, -1.151106f);
    q = vmath_fma(t, q, -1);
    float whole = q + VMATH_WHOLE, r = q - (whole - VMATH_WHOLE);
    float p = vmath_fma(r, 0.000153264613f, 0.00133908063f); /* 2^r */
    p = vmath_fma(r, p, 0.00961850584f);
    p = vmath_fma(r, p, 0.0555035993f);
    p = vmath_fma(r, p, 0.240226477f);
    p = vmath_fma(r, p, 0.693147182f);
    p = vmath_fma(r, p, 1);
    /* The shift leaves nothing of VMATH_WHOLE itself. */
    float below = vmath_of_bits((int32_t)((uint32_t)vmath_bits_of(p) + ((uint32_t)vmath_bits_of(whole) << 23)));
    below = size > 5.8f ? 0 : below;
    return x * (x < 0 ? below : 1 - below);
}

ISA_INLINE float vmath_sigmoid(float x) { return 1 / (1 + vmath_exp(-x)); }
#endif
