/* Inner loops of loop.h that become vector instructions: the same formulas, compiled once a level of instructions, and
 * apart for operands that lie side by side or repeat one element. A formula has no call and no branch but selections;
 * it gives the same bits in each of these forms. */
#ifndef HOST_OP_REFERENCE_LOOP_VECTOR_H
#define HOST_OP_REFERENCE_LOOP_VECTOR_H
#include "host/base/isa.h"
#include "host/op/reference/loop.h"
#include "host/op/reference/vmath.h"

#define LOOPV_PARAMS (int64_t n, char *const *data, const int64_t *step, void *params)
#define LOOPV_ARGS (n, data, step, params)
/* One walk over n elements; `pragma` may say that they are independent. Steps are constants where it is inlined. */
#define LOOPV_WALK_1(fn, pragma, TO, TI, ...)                                                                        \
    ISA_INLINE void fn(int64_t n, TO *to, int64_t so, const TI *pa, int64_t sa, void *params)                        \
    {                                                                                                                \
        typedef TI T;                                                                                                \
        (void)params;                                                                                                \
        pragma for (int64_t i = 0; i < n; i++)                                                                       \
        {                                                                                                            \
            const T a = pa[i * sa];                                                                                  \
            to[i * so] = (TO)(__VA_ARGS__);                                                                          \
        }                                                                                                            \
    }
#define LOOPV_1(fn, TO, TI, ...)                                                                                     \
    LOOPV_WALK_1(fn##_flat, ISA_SIMD, TO, TI, __VA_ARGS__)                                                           \
    LOOPV_WALK_1(fn##_any, , TO, TI, __VA_ARGS__)                                                                    \
    ISA_INLINE void fn##_body LOOPV_PARAMS                                                                           \
    {                                                                                                                \
        const TI one = *LOOP_AT(const TI, 1);                                                                        \
        if (step[0] == 1 && step[1] == 1)                                                                            \
            fn##_flat(n, LOOP_AT(TO, 0), 1, LOOP_AT(const TI, 1), 1, params);                                        \
        else if (step[0] == 1 && step[1] == 0)                                                                       \
            fn##_flat(n, LOOP_AT(TO, 0), 1, &one, 0, params);                                                        \
        else                                                                                                         \
            fn##_any(n, LOOP_AT(TO, 0), step[0], LOOP_AT(const TI, 1), step[1], params);                             \
    }                                                                                                                \
    ISA_FN(fn, LOOPV_PARAMS, LOOPV_ARGS)

#define LOOPV_WALK_2(fn, pragma, TO, TI, ...)                                                                        \
    ISA_INLINE void fn(int64_t n, TO *to, int64_t so, const TI *pa, int64_t sa, const TI *pb, int64_t sb,            \
                       void *params)                                                                                 \
    {                                                                                                                \
        typedef TI T;                                                                                                \
        (void)params;                                                                                                \
        pragma for (int64_t i = 0; i < n; i++)                                                                       \
        {                                                                                                            \
            const T a = pa[i * sa];                                                                                  \
            const T b = pb[i * sb];                                                                                  \
            to[i * so] = (TO)(__VA_ARGS__);                                                                          \
        }                                                                                                            \
    }
#define LOOPV_2(fn, TO, TI, ...)                                                                                     \
    LOOPV_WALK_2(fn##_flat, ISA_SIMD, TO, TI, __VA_ARGS__)                                                           \
    LOOPV_WALK_2(fn##_any, , TO, TI, __VA_ARGS__)                                                                    \
    ISA_INLINE void fn##_body LOOPV_PARAMS                                                                           \
    {                                                                                                                \
        TO *to = LOOP_AT(TO, 0);                                                                                     \
        const TI *pa = LOOP_AT(const TI, 1), *pb = LOOP_AT(const TI, 2), one_a = *pa, one_b = *pb;                   \
        if (step[0] == 1 && step[1] == 1 && step[2] == 1)                                                            \
            fn##_flat(n, to, 1, pa, 1, pb, 1, params);                                                               \
        else if (step[0] == 1 && step[1] == 1 && step[2] == 0)                                                       \
            fn##_flat(n, to, 1, pa, 1, &one_b, 0, params);                                                           \
        else if (step[0] == 1 && step[1] == 0 && step[2] == 1)                                                       \
            fn##_flat(n, to, 1, &one_a, 0, pb, 1, params);                                                           \
        else                                                                                                         \
            fn##_any(n, to, step[0], pa, step[1], pb, step[2], params);                                              \
    }                                                                                                                \
    ISA_FN(fn, LOOPV_PARAMS, LOOPV_ARGS)

/* Of three operands, the last two may repeat one element each. The first may be of another type. */
#define LOOPV_WALK_3(fn, pragma, TO, TA, TI, ...)                                                                    \
    ISA_INLINE void fn(int64_t n, TO *to, int64_t so, const TA *pa, int64_t sa, const TI *pb, int64_t sb,            \
                       const TI *pe, int64_t se, void *params)                                                       \
    {                                                                                                                \
        typedef TI T;                                                                                                \
        (void)params;                                                                                                \
        pragma for (int64_t i = 0; i < n; i++)                                                                       \
        {                                                                                                            \
            const TA a = pa[i * sa];                                                                                 \
            const T b = pb[i * sb];                                                                                  \
            const T e = pe[i * se];                                                                                  \
            to[i * so] = (TO)(__VA_ARGS__);                                                                          \
        }                                                                                                            \
    }
#define LOOPV_3M(fn, TO, TA, TI, ...)                                                                                \
    LOOPV_WALK_3(fn##_flat, ISA_SIMD, TO, TA, TI, __VA_ARGS__)                                                       \
    LOOPV_WALK_3(fn##_any, , TO, TA, TI, __VA_ARGS__)                                                                \
    ISA_INLINE void fn##_body LOOPV_PARAMS                                                                           \
    {                                                                                                                \
        TO *to = LOOP_AT(TO, 0);                                                                                     \
        const TA *pa = LOOP_AT(const TA, 1);                                                                         \
        const TI *pb = LOOP_AT(const TI, 2), *pe = LOOP_AT(const TI, 3), one_b = *pb, one_e = *pe;                   \
        bool flat = step[0] == 1 && step[1] == 1;                                                                    \
        if (flat && step[2] == 1 && step[3] == 1)                                                                    \
            fn##_flat(n, to, 1, pa, 1, pb, 1, pe, 1, params);                                                        \
        else if (flat && step[2] == 1 && step[3] == 0)                                                               \
            fn##_flat(n, to, 1, pa, 1, pb, 1, &one_e, 0, params);                                                    \
        else if (flat && step[2] == 0 && step[3] == 1)                                                               \
            fn##_flat(n, to, 1, pa, 1, &one_b, 0, pe, 1, params);                                                    \
        else if (flat && step[2] == 0 && step[3] == 0)                                                               \
            fn##_flat(n, to, 1, pa, 1, &one_b, 0, &one_e, 0, params);                                                \
        else                                                                                                         \
            fn##_any(n, to, step[0], pa, step[1], pb, step[2], pe, step[3], params);                                 \
    }                                                                                                                \
    ISA_FN(fn, LOOPV_PARAMS, LOOPV_ARGS)
#define LOOPV_3(fn, TO, TI, ...) LOOPV_3M(fn, TO, TI, TI, __VA_ARGS__)
#endif
