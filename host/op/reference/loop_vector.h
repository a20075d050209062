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
/* A walk over n elements of so many operands as the formula names; the others are given with step 0 and cost nothing.
 * `pragma` may say that elements are independent. Steps are constants where it is inlined. */
#define LOOPV_WALK(fn, pragma, TO, TA, TI, ...)                                                                      \
    ISA_INLINE void fn(int64_t n, TO *to, int64_t so, const TA *pa, int64_t sa, const TI *pb, int64_t sb,            \
                       const TI *pe, int64_t se, void *params)                                                       \
    {                                                                                                                \
        typedef TI T;                                                                                                \
        (void)params;                                                                                                \
        pragma for (int64_t i = 0; i < n; i++)                                                                       \
        {                                                                                                            \
            const TA a = pa[i * sa];                                                                                 \
            const T b = pb[i * sb], e = pe[i * se];                                                                  \
            (void)b, (void)e;                                                                                        \
            to[i * so] = (TO)(__VA_ARGS__);                                                                          \
        }                                                                                                            \
    }
/* The walk apart for operands that lie side by side (1) or repeat one element (0), which then is a copy. */
#define LOOPV_CASE(fn, one, two, three)                                                                              \
    if (step[0] == 1 && sa == (one) && sb == (two) && se == (three)) {                                               \
        fn##_flat(n, to, 1, (one) ? pa : &one_a, one, (two) ? pb : &one_b, two, (three) ? pe : &one_e, three,        \
                  params);                                                                                           \
        return;                                                                                                      \
    }
#define LOOPV_CASES_1(fn) LOOPV_CASE(fn, 1, 0, 0) LOOPV_CASE(fn, 0, 0, 0)
#define LOOPV_CASES_2(fn) LOOPV_CASE(fn, 1, 1, 0) LOOPV_CASE(fn, 1, 0, 0) LOOPV_CASE(fn, 0, 1, 0)
#define LOOPV_CASES_3(fn)                                                                                            \
    LOOPV_CASE(fn, 1, 1, 1) LOOPV_CASE(fn, 1, 1, 0) LOOPV_CASE(fn, 1, 0, 1) LOOPV_CASE(fn, 1, 0, 0)

#define LOOPV(fn, operands, TO, TA, TI, ...)                                                                         \
    LOOPV_WALK(fn##_flat, ISA_SIMD, TO, TA, TI, __VA_ARGS__)                                                         \
    LOOPV_WALK(fn##_any, , TO, TA, TI, __VA_ARGS__)                                                                  \
    ISA_INLINE void fn##_body LOOPV_PARAMS                                                                           \
    {                                                                                                                \
        enum { B = (operands) > 1 ? 2 : 1, E = (operands) > 2 ? 3 : B };                                             \
        TO *to = LOOP_AT(TO, 0);                                                                                     \
        const TA *pa = LOOP_AT(const TA, 1), one_a = *pa;                                                            \
        const TI *pb = LOOP_AT(const TI, B), *pe = LOOP_AT(const TI, E), one_b = *pb, one_e = *pe;                   \
        int64_t sa = step[1], sb = (operands) > 1 ? step[B] : 0, se = (operands) > 2 ? step[E] : 0;                  \
        LOOPV_CASES_##operands(fn)                                                                                   \
        fn##_any(n, to, step[0], pa, sa, pb, sb, pe, se, params);                                                    \
    }                                                                                                                \
    ISA_FN(fn, LOOPV_PARAMS, LOOPV_ARGS)
#define LOOPV_1(fn, TO, TI, ...) LOOPV(fn, 1, TO, TI, TI, __VA_ARGS__)
#define LOOPV_2(fn, TO, TI, ...) LOOPV(fn, 2, TO, TI, TI, __VA_ARGS__)
#define LOOPV_3(fn, TO, TI, ...) LOOPV(fn, 3, TO, TI, TI, __VA_ARGS__)
/* The first operand may be of another type. */
#define LOOPV_3M(fn, TO, TA, TI, ...) LOOPV(fn, 3, TO, TA, TI, __VA_ARGS__)
#endif
