/* Arithmetic on single elements (number.h). */
#include "host/op/reference/number.h"
#include "sdk/base/checked.h"
#include <math.h>

num num_add(num a, num b)
{
    a.i = (int64_t)((uint64_t)a.i + (uint64_t)b.i);
    a.f += b.f;
    a.im += b.im;
    return a;
}

num num_mul(num a, num b)
{
    double re = a.kind == NUM_COMPLEX ? a.f * b.f - a.im * b.im : a.f * b.f;
    a.im = a.kind == NUM_COMPLEX ? a.f * b.im + a.im * b.f : 0;
    a.f = re;
    a.i = (int64_t)((uint64_t)a.i * (uint64_t)b.i);
    return a;
}

num num_div(num a, num b)
{
    if (a.kind == NUM_INT) {
        if (!checked_floordiv(a.i, b.i, &a.i))
            a.i = INT64_MIN;
        return a;
    }
    if (a.kind == NUM_FLOAT) {
        a.f /= b.f;
        return a;
    }
    double size = b.f * b.f + b.im * b.im, re = (a.f * b.f + a.im * b.im) / size;
    a.im = (a.im * b.f - a.f * b.im) / size;
    a.f = re;
    return a;
}

num num_max(num a, num b)
{
    if (a.kind == NUM_INT)
        return b.i > a.i ? b : a;
    return isnan(a.f) || a.f >= b.f ? a : b;
}

num num_min(num a, num b)
{
    if (a.kind == NUM_INT)
        return b.i < a.i ? b : a;
    return isnan(a.f) || a.f <= b.f ? a : b;
}

bool num_is_zero(num a) { return a.kind == NUM_INT ? a.i == 0 : a.f == 0 && (a.kind == NUM_FLOAT || a.im == 0); }

num num_of_int(bp_dtype d, int64_t v)
{
    if (dtype_is_integral(d))
        return (num){.kind = NUM_INT, .i = v};
    return (num){.kind = dtype_is_complex(d) ? NUM_COMPLEX : NUM_FLOAT, .f = (double)v};
}

num num_of_scalar(bp_dtype d, bp_scalar s)
{
    if (s.kind == BP_SCALAR_BOOL || s.kind == BP_SCALAR_INT)
        return num_of_int(d, s.v.i);
    if (d == BP_BOOL)
        return (num){.kind = NUM_INT, .i = s.v.f[0] != 0 || (s.kind == BP_SCALAR_COMPLEX && s.v.f[1] != 0)};
    if (dtype_is_integral(d)) {
        int64_t i = 0;
        dtype_convert(BP_I64, &i, 1, BP_F64, s.v.f, 1, 1);
        return (num){.kind = NUM_INT, .i = i};
    }
    if (dtype_is_complex(d))
        return (num){.kind = NUM_COMPLEX, .f = s.v.f[0], .im = s.kind == BP_SCALAR_COMPLEX ? s.v.f[1] : 0};
    return (num){.kind = NUM_FLOAT, .f = s.v.f[0]};
}

static int64_t low_int(bp_dtype d)
{
    switch (d) {
    case BP_BOOL:
    case BP_U8: return 0;
    case BP_I8: return INT8_MIN;
    case BP_I16: return INT16_MIN;
    case BP_I32: return INT32_MIN;
    default: return INT64_MIN;
    }
}

static int64_t high_int(bp_dtype d)
{
    switch (d) {
    case BP_BOOL: return 1;
    case BP_U8: return UINT8_MAX;
    case BP_I8: return INT8_MAX;
    case BP_I16: return INT16_MAX;
    case BP_I32: return INT32_MAX;
    default: return INT64_MAX;
    }
}

static double high_float(bp_dtype d)
{
    return d == BP_F16 ? 65504 : d == BP_BF16 ? 0x1.fep127 : d == BP_F32 || d == BP_C64 ? 0x1.fffffep127 : INFINITY;
}

bool num_fits(bp_dtype d, bp_scalar s)
{
    if (d == BP_BOOL || s.kind == BP_SCALAR_UNSET)
        return true;
    if (s.kind == BP_SCALAR_COMPLEX && s.v.f[1] != 0 && !dtype_is_complex(d))
        return false;
    bool whole = s.kind == BP_SCALAR_BOOL || s.kind == BP_SCALAR_INT;
    if (dtype_is_integral(d)) {
        double low = (double)low_int(d), high = (double)high_int(d);
        if (whole)
            return s.v.i <= high_int(d) && (d == BP_U8 ? s.v.i >= -UINT8_MAX : s.v.i >= low_int(d));
        return s.v.f[0] >= (d == BP_U8 ? -(double)UINT8_MAX : low) && s.v.f[0] <= high;
    }
    double v = whole ? (double)s.v.i : s.v.f[0];
    return isinf(v) || isnan(v) || fabs(v) <= high_float(d);
}

num num_lowest(bp_dtype d)
{
    return dtype_is_integral(d) ? num_of_int(d, low_int(d)) : (num){.kind = NUM_FLOAT, .f = -INFINITY};
}

num num_highest(bp_dtype d)
{
    return dtype_is_integral(d) ? num_of_int(d, high_int(d)) : (num){.kind = NUM_FLOAT, .f = INFINITY};
}
