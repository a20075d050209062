/* Data types: names, promotion, halves, and casts.
 *
 * A cast goes through the widest type of its source's class (int64, double, complex double), which loses nothing; what
 * does not fit an integer becomes what x86's cvttsd2si gives, as in PyTorch: the smallest int64 (int32 for the types
 * of 32 bits and below, uint8 excepted), cut to the target's width. */
#include "host/tensor/dtype.h"
#include "host/base/isa.h"
#include <string.h>

static const dtype_row UNKNOWN_ROW = {"?", "?", "?", 0, '?'};
static const dtype_row ROWS[BP_DTYPE_END] = {
    {"?", "?", "?", 0, '?'},
#define BP_DTYPE_ROW(NAME, number, size, cls, torch, brief, ctype, st) {torch, brief, st, size, #cls[0]},
#include <backplane/dtype.def>
#undef BP_DTYPE_ROW
};

const dtype_row *dtype_get(bp_dtype d)
{
    return d > 0 && d < BP_DTYPE_END ? &ROWS[d] : &UNKNOWN_ROW;
}

bool dtype_by_name(const char *torch_or_brief, bp_dtype *out)
{
    for (bp_dtype d = 1; d < BP_DTYPE_END; d++) {
        if (strcmp(ROWS[d].torch, torch_or_brief) == 0 || strcmp(ROWS[d].brief, torch_or_brief) == 0) {
            *out = d;
            return true;
        }
    }
    return false;
}

/* -- classes ------------------------------------------------------------------------------------------------------- */

bp_dtype dtype_promote(bp_dtype a, bp_dtype b)
{
    bp_dtype lo = a < b ? a : b, hi = a < b ? b : a;
    if (lo == hi || lo <= BP_BOOL)
        return hi;
    if (dtype_is_complex(hi))
        return hi == BP_C64 && lo == BP_F64 ? BP_C128 : hi;
    if (lo == BP_F16 && hi == BP_BF16)
        return BP_F32;
    return lo == BP_U8 && hi == BP_I8 ? BP_I16 : hi;
}

bp_dtype dtype_real_of(bp_dtype d)
{
    return d == BP_C64 ? BP_F32 : d == BP_C128 ? BP_F64 : d;
}

bp_dtype dtype_complex_of(bp_dtype d)
{
    return d == BP_F64 || d == BP_C128 ? BP_C128 : BP_C64;
}

bp_dtype dtype_accumulate(bp_dtype d)
{
    return dtype_is_integral(d) ? BP_I64 : d == BP_F16 || d == BP_BF16 ? BP_F32 : d;
}

bool dtype_can_cast(bp_dtype from, bp_dtype to)
{
    if (dtype_is_complex(from) && !dtype_is_complex(to))
        return false;
    if (dtype_is_float(from) && dtype_is_integral(to))
        return false;
    return from == BP_BOOL || to != BP_BOOL;
}

/* -- halves -------------------------------------------------------------------------------------------------------- */

typedef union { uint32_t u; float f; } bits32;

float half_to_float(bp_half h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = h >> 10 & 0x1fu, mantissa = h & 0x3ffu;
    if (exponent == 0x1f)
        return ((bits32){sign | 0x7f800000u | mantissa << 13}).f;
    if (exponent)
        return ((bits32){sign | (exponent + 112) << 23 | mantissa << 13}).f;
    float small = (float)mantissa * 0x1p-24f; /* zero or subnormal: exact */
    return sign ? -small : small;
}

bp_half half_from_float(float f)
{
    uint32_t u = ((bits32){.f = f}).u, sign = u >> 16 & 0x8000u, size = u & 0x7fffffffu;
    if (size > 0x7f800000u)
        return (bp_half)(sign | 0x7e00u);
    if (size >= 0x477ff000u) /* 65520 and up round to infinity */
        return (bp_half)(sign | 0x7c00u);
    if (size < 0x38800000u) { /* below 2^-14: the sum's last bits are the subnormal, rounded by the addition itself */
        uint32_t sum = ((bits32){.f = ((bits32){size}).f + 0.5f}).u;
        return (bp_half)(sign | (sum - 0x3f000000u));
    }
    uint32_t odd = size >> 13 & 1;
    return (bp_half)(sign | (size - 0x38000000u + 0xfffu + odd) >> 13);
}

bp_bfloat16 bfloat16_from_float(float f)
{
    uint32_t u = ((bits32){.f = f}).u;
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return 0x7fc0;
    return (bp_bfloat16)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}

/* -- single casts between the wide types and each type ------------------------------------------------------------- */

static int64_t float_to_i64(double v)
{
    return v >= -0x1p63 && v < 0x1p63 ? (int64_t)v : INT64_MIN;
}

static int32_t float_to_i32(double v)
{
    return v > -0x1p31 - 1 && v < 0x1p31 ? (int32_t)v : INT32_MIN;
}

#define FROM_INT_BOOL(x) ((uint8_t)((x) != 0))
#define FROM_INT_U8(x) ((uint8_t)(x))
#define FROM_INT_I8(x) ((int8_t)(x))
#define FROM_INT_I16(x) ((int16_t)(x))
#define FROM_INT_I32(x) ((int32_t)(x))
#define FROM_INT_I64(x) (x)
#define FROM_INT_F16(x) half_from_float((float)(x))
#define FROM_INT_BF16(x) bfloat16_from_float((float)(x))
#define FROM_INT_F32(x) ((float)(x))
#define FROM_INT_F64(x) ((double)(x))
#define FROM_INT_C64(x) ((bp_complex64){(float)(x), 0})
#define FROM_INT_C128(x) ((bp_complex128){(double)(x), 0})

#define FROM_FLOAT_BOOL(x) ((uint8_t)((x) != 0))
#define FROM_FLOAT_U8(x) ((uint8_t)float_to_i64(x))
#define FROM_FLOAT_I8(x) ((int8_t)float_to_i32(x))
#define FROM_FLOAT_I16(x) ((int16_t)float_to_i32(x))
#define FROM_FLOAT_I32(x) float_to_i32(x)
#define FROM_FLOAT_I64(x) float_to_i64(x)
#define FROM_FLOAT_F16(x) half_from_float((float)(x))
#define FROM_FLOAT_BF16(x) bfloat16_from_float((float)(x))
#define FROM_FLOAT_F32(x) ((float)(x))
#define FROM_FLOAT_F64(x) (x)
#define FROM_FLOAT_C64(x) ((bp_complex64){(float)(x), 0})
#define FROM_FLOAT_C128(x) ((bp_complex128){(x), 0})

#define FROM_COMPLEX_BOOL(x) ((uint8_t)((x).re != 0 || (x).im != 0))
#define FROM_COMPLEX_U8(x) FROM_FLOAT_U8((x).re)
#define FROM_COMPLEX_I8(x) FROM_FLOAT_I8((x).re)
#define FROM_COMPLEX_I16(x) FROM_FLOAT_I16((x).re)
#define FROM_COMPLEX_I32(x) FROM_FLOAT_I32((x).re)
#define FROM_COMPLEX_I64(x) FROM_FLOAT_I64((x).re)
#define FROM_COMPLEX_F16(x) FROM_FLOAT_F16((x).re)
#define FROM_COMPLEX_BF16(x) FROM_FLOAT_BF16((x).re)
#define FROM_COMPLEX_F32(x) FROM_FLOAT_F32((x).re)
#define FROM_COMPLEX_F64(x) ((x).re)
#define FROM_COMPLEX_C64(x) ((bp_complex64){(float)(x).re, (float)(x).im})
#define FROM_COMPLEX_C128(x) (x)

/* What an element reads as: class, wide type and expression. */
typedef enum { WIDE_INT, WIDE_FLOAT, WIDE_COMPLEX } wide_kind;
typedef union { int64_t i[256]; double f[256]; bp_complex128 z[256]; } wide_block;
enum { BLOCK = 256 };

#define READ_AS_INT(p) (w->i[k] = (int64_t)(p))
#define READ_AS_FLOAT(p) (w->f[k] = (p))
#define READ_BOOL(p) READ_AS_INT((p) != 0)
#define READ_U8(p) READ_AS_INT(p)
#define READ_I8(p) READ_AS_INT(p)
#define READ_I16(p) READ_AS_INT(p)
#define READ_I32(p) READ_AS_INT(p)
#define READ_I64(p) READ_AS_INT(p)
#define READ_F16(p) READ_AS_FLOAT((double)half_to_float(p))
#define READ_BF16(p) READ_AS_FLOAT((double)bfloat16_to_float(p))
#define READ_F32(p) READ_AS_FLOAT((double)(p))
#define READ_F64(p) READ_AS_FLOAT(p)
#define READ_C64(p) (w->z[k] = (bp_complex128){(double)(p).re, (double)(p).im})
#define READ_C128(p) (w->z[k] = (p))

static wide_kind kind_of(bp_dtype d)
{
    return dtype_is_integral(d) ? WIDE_INT : dtype_is_float(d) ? WIDE_FLOAT : WIDE_COMPLEX;
}

static void read_block(bp_dtype from, const void *src, int64_t stride, int64_t n, wide_block *w)
{
    switch (from) {
#define BP_DTYPE_ROW(NAME, number, size, cls, torch, brief, ctype, st) \
    case number: {                                                     \
        const ctype *p = src;                                          \
        for (int64_t k = 0; k < n; k++)                                \
            READ_##NAME(p[k * stride]);                                \
        return;                                                        \
    }
#include <backplane/dtype.def>
#undef BP_DTYPE_ROW
    }
}

static void write_ints(bp_dtype to, void *dst, int64_t stride, int64_t n, const wide_block *w)
{
    switch (to) {
#define BP_DTYPE_ROW(NAME, number, size, cls, torch, brief, ctype, st) \
    case number: {                                                     \
        ctype *p = dst;                                                \
        for (int64_t k = 0; k < n; k++)                                \
            p[k * stride] = FROM_INT_##NAME(w->i[k]);                  \
        return;                                                        \
    }
#include <backplane/dtype.def>
#undef BP_DTYPE_ROW
    }
}

static void write_floats(bp_dtype to, void *dst, int64_t stride, int64_t n, const wide_block *w)
{
    switch (to) {
#define BP_DTYPE_ROW(NAME, number, size, cls, torch, brief, ctype, st) \
    case number: {                                                     \
        ctype *p = dst;                                                \
        for (int64_t k = 0; k < n; k++)                                \
            p[k * stride] = FROM_FLOAT_##NAME(w->f[k]);                \
        return;                                                        \
    }
#include <backplane/dtype.def>
#undef BP_DTYPE_ROW
    }
}

static void write_complex(bp_dtype to, void *dst, int64_t stride, int64_t n, const wide_block *w)
{
    switch (to) {
#define BP_DTYPE_ROW(NAME, number, size, cls, torch, brief, ctype, st) \
    case number: {                                                     \
        ctype *p = dst;                                                \
        for (int64_t k = 0; k < n; k++)                                \
            p[k * stride] = FROM_COMPLEX_##NAME(w->z[k]);              \
        return;                                                        \
    }
#include <backplane/dtype.def>
#undef BP_DTYPE_ROW
    }
}

static void write_block(bp_dtype to, void *dst, int64_t stride, int64_t n, const wide_block *w, wide_kind kind)
{
    if (kind == WIDE_INT)
        write_ints(to, dst, stride, n, w);
    else if (kind == WIDE_FLOAT)
        write_floats(to, dst, stride, n, w);
    else
        write_complex(to, dst, stride, n, w);
}

num dtype_load(bp_dtype d, const void *p)
{
    wide_block w;
    read_block(d, p, 1, 1, &w);
    switch (kind_of(d)) {
    case WIDE_INT: return (num){NUM_INT, w.i[0], 0, 0};
    case WIDE_FLOAT: return (num){NUM_FLOAT, 0, w.f[0], 0};
    default: return (num){NUM_COMPLEX, 0, w.z[0].re, w.z[0].im};
    }
}

void dtype_store(bp_dtype d, void *p, num v)
{
    wide_block w;
    if (v.kind == NUM_INT)
        w.i[0] = v.i;
    else if (v.kind == NUM_FLOAT)
        w.f[0] = v.f;
    else
        w.z[0] = (bp_complex128){v.f, v.im};
    write_block(d, p, 1, 1, &w, v.kind == NUM_INT ? WIDE_INT : v.kind == NUM_FLOAT ? WIDE_FLOAT : WIDE_COMPLEX);
}

/* -- runs ---------------------------------------------------------------------------------------------------------- */

/* Elements of one size, bit by bit; repeated elements and gathered ones in vector instructions. */
#define COPY_RUN(name, type)                                                                                \
    ISA_INLINE void name##_body(type *d, int64_t dst_stride, const type *s, int64_t src_stride, int64_t n)  \
    {                                                                                                       \
        const type first = *s;                                                                              \
        if (dst_stride == 1 && src_stride == 0)                                                             \
            ISA_SIMD for (int64_t k = 0; k < n; k++) d[k] = first;                                          \
        else                                                                                                \
            for (int64_t k = 0; k < n; k++)                                                                 \
                d[k * dst_stride] = s[k * src_stride];                                                      \
    }                                                                                                       \
    ISA_FN(name, (type *d, int64_t dst_stride, const type *s, int64_t src_stride, int64_t n),               \
           (d, dst_stride, s, src_stride, n))
COPY_RUN(copy_1, uint8_t)
COPY_RUN(copy_2, uint16_t)
COPY_RUN(copy_4, uint32_t)
COPY_RUN(copy_8, uint64_t)
COPY_RUN(copy_16, bp_complex128)

static void copy_run(size_t size, void *dst, int64_t dst_stride, const void *src, int64_t src_stride, int64_t n)
{
    if (dst_stride == 1 && src_stride == 1)
        memcpy(dst, src, (size_t)n * size);
    else if (size == 1)
        copy_1(dst, dst_stride, src, src_stride, n);
    else if (size == 2)
        copy_2(dst, dst_stride, src, src_stride, n);
    else if (size == 4)
        copy_4(dst, dst_stride, src, src_stride, n);
    else if (size == 8)
        copy_8(dst, dst_stride, src, src_stride, n);
    else
        copy_16(dst, dst_stride, src, src_stride, n);
}

/* Casts that models do most, without the way through the widest type; they give what that gives. */
#define CAST(name, TO, FROM)                                                                             \
    ISA_INLINE void name##_body(TO *d, int64_t dst_stride, const FROM *s, int64_t src_stride, int64_t n)  \
    {                                                                                                    \
        if (dst_stride == 1 && src_stride == 1)                                                          \
            ISA_SIMD for (int64_t k = 0; k < n; k++) d[k] = (TO)s[k];                                    \
        else                                                                                             \
            for (int64_t k = 0; k < n; k++)                                                              \
                d[k * dst_stride] = (TO)s[k * src_stride];                                               \
    }                                                                                                    \
    ISA_FN(name, (TO *d, int64_t dst_stride, const FROM *s, int64_t src_stride, int64_t n),              \
           (d, dst_stride, s, src_stride, n))
CAST(f32_to_f64, double, float)
CAST(f64_to_f32, float, double)
CAST(i64_to_f32, float, int64_t)
CAST(i64_to_i32, int32_t, int64_t)
CAST(i32_to_i64, int64_t, int32_t)
CAST(i32_to_f32, float, int32_t)
CAST(u8_to_f32, float, uint8_t)

/* false: there is no such cast here. */
static bool cast_run(bp_dtype to, void *dst, int64_t dst_stride, bp_dtype from, const void *src, int64_t src_stride,
                     int64_t n)
{
    switch (to << 8 | from) {
    case BP_F64 << 8 | BP_F32: f32_to_f64(dst, dst_stride, src, src_stride, n); return true;
    case BP_F32 << 8 | BP_F64: f64_to_f32(dst, dst_stride, src, src_stride, n); return true;
    case BP_F32 << 8 | BP_I64: i64_to_f32(dst, dst_stride, src, src_stride, n); return true;
    case BP_I32 << 8 | BP_I64: i64_to_i32(dst, dst_stride, src, src_stride, n); return true;
    case BP_I64 << 8 | BP_I32: i32_to_i64(dst, dst_stride, src, src_stride, n); return true;
    case BP_F32 << 8 | BP_I32: i32_to_f32(dst, dst_stride, src, src_stride, n); return true;
    case BP_F32 << 8 | BP_U8: u8_to_f32(dst, dst_stride, src, src_stride, n); return true;
    default: return false;
    }
}

void dtype_convert(bp_dtype to, void *dst, int64_t dst_stride, bp_dtype from, const void *src, int64_t src_stride,
                   int64_t n)
{
    size_t from_size = dtype_size(from), to_size = dtype_size(to);
    if (n <= 0 || !from_size || !to_size)
        return;
    if (to == from) {
        copy_run(to_size, dst, dst_stride, src, src_stride, n);
        return;
    }
    if (cast_run(to, dst, dst_stride, from, src, src_stride, n))
        return;
    wide_block w;
    wide_kind kind = kind_of(from);
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t m = n - at < BLOCK ? n - at : BLOCK;
        read_block(from, (const char *)src + at * src_stride * (int64_t)from_size, src_stride, m, &w);
        write_block(to, (char *)dst + at * dst_stride * (int64_t)to_size, dst_stride, m, &w, kind);
    }
}
