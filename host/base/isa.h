/* Which vector instructions inner loops use: chosen once, by the processor or by BACKPLANE_ISA, for all of them.
 *
 * A loop is written once, as an inline function, and compiled for each level (ISA_FN); the name without a suffix picks
 * at each call. No level contracts multiply and add on its own, so that all give the same bits. */
#ifndef HOST_BASE_ISA_H
#define HOST_BASE_ISA_H
#include <stdatomic.h>
#include <stdbool.h>

typedef enum { ISA_UNKNOWN, ISA_SCALAR, ISA_AVX2, ISA_AVX512, ISA_LEVELS } isa_level;

extern atomic_int isa_chosen; /* ISA_UNKNOWN until somebody asks */
isa_level isa_choose(void);
/* The level in use. Any thread. */
static inline isa_level isa_get(void)
{
    int level = atomic_load_explicit(&isa_chosen, memory_order_relaxed);
    return level ? (isa_level)level : isa_choose();
}
/* For tests. false: this processor has not these instructions, and nothing changes. */
bool isa_set(isa_level level);
const char *isa_name(isa_level level); /* "scalar", "avx2", "avx512" */

#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed" /* a loop that stays scalar is right all the same */
#endif
#define ISA_INLINE static inline __attribute__((always_inline))
/* Iterations do not depend on one another: they may be computed side by side. */
#if defined(_OPENMP) || defined(__clang__)
#define ISA_SIMD _Pragma("omp simd")
#else
#define ISA_SIMD _Pragma("GCC ivdep")
#endif

#if defined(__x86_64__)
#define ISA_X86 1
#define ISA_TARGET_AVX2 __attribute__((target("avx2,fma,f16c")))
#ifdef __clang__
#define ISA_TARGET_AVX512 __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,fma,f16c"), min_vector_width(512)))
#else
#define ISA_TARGET_AVX512 \
    __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,fma,f16c,prefer-vector-width=512")))
#endif
/* static void fn PARAMS, which runs fn##_body ARGS with the instructions of the level in use. */
#define ISA_FN(fn, PARAMS, ARGS)                                          \
    static void fn##_scalar PARAMS { fn##_body ARGS; }                    \
    ISA_TARGET_AVX2 static void fn##_avx2 PARAMS { fn##_body ARGS; }      \
    ISA_TARGET_AVX512 static void fn##_avx512 PARAMS { fn##_body ARGS; }  \
    static void fn PARAMS                                                 \
    {                                                                     \
        switch (isa_get()) {                                              \
        case ISA_AVX512: fn##_avx512 ARGS; break;                         \
        case ISA_AVX2: fn##_avx2 ARGS; break;                             \
        default: fn##_scalar ARGS; break;                                 \
        }                                                                 \
    }
#else
#define ISA_FN(fn, PARAMS, ARGS) static void fn PARAMS { fn##_body ARGS; }
#endif
#endif
