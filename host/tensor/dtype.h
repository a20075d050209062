/* Facts about data types, from dtype.def. */
#ifndef HOST_TENSOR_DTYPE_H
#define HOST_TENSOR_DTYPE_H
#include <backplane/types.h>
#include <stdbool.h>

typedef struct { const char *torch, *brief, *safetensors; uint8_t nbytes; char cls; } dtype_row; /* cls: B U I F C */
const dtype_row *dtype_get(bp_dtype d);         /* a row of "?" for an unknown number */
static inline size_t dtype_size(bp_dtype d)     /* 0 for an unknown number */
{
    static const uint8_t SIZES[BP_DTYPE_END] = {
#define BP_DTYPE_ROW(NAME, number, size, cls, torch, brief, ctype, st) [number] = size,
#include <backplane/dtype.def>
#undef BP_DTYPE_ROW
    };
    return d > 0 && d < BP_DTYPE_END ? SIZES[d] : 0;
}
bool dtype_by_name(const char *torch_or_brief, bp_dtype *out);
static inline bool dtype_is_float(bp_dtype d) { return d >= BP_F16 && d <= BP_F64; }
static inline bool dtype_is_complex(bp_dtype d) { return d == BP_C64 || d == BP_C128; }
static inline bool dtype_is_int(bp_dtype d) { return d >= BP_U8 && d <= BP_I64; } /* without bool */
static inline bool dtype_is_integral(bp_dtype d) { return d >= BP_BOOL && d <= BP_I64; }
bp_dtype dtype_promote(bp_dtype a, bp_dtype b); /* PyTorch's lattice; UNSET is neutral */
bp_dtype dtype_real_of(bp_dtype d);             /* c64 -> f32 ...; others themselves */
bp_dtype dtype_complex_of(bp_dtype d);
/* What sums in this type accumulate in: f32 for halves, i64 for integers, else itself. */
bp_dtype dtype_accumulate(bp_dtype d);
bool dtype_can_cast(bp_dtype from, bp_dtype to); /* may the result of an in-place operator be stored */

float half_to_float(bp_half h);
bp_half half_from_float(float f);               /* round to nearest even */
static inline float bfloat16_to_float(bp_bfloat16 b)
{
    union { uint32_t u; float f; } w = {(uint32_t)b << 16};
    return w.f;
}
bp_bfloat16 bfloat16_from_float(float f);

/* One element to and from the widest types; integers wrap, as PyTorch casts. */
typedef struct { enum { NUM_INT, NUM_FLOAT, NUM_COMPLEX } kind; int64_t i; double f, im; } num;
num dtype_load(bp_dtype d, const void *p);
void dtype_store(bp_dtype d, void *p, num v);
/* n elements between strided runs (strides in elements); exactly PyTorch's casts. */
void dtype_convert(bp_dtype to, void *dst, int64_t dst_stride, bp_dtype from, const void *src, int64_t src_stride,
                   int64_t n);
#endif
