/* Reductions: every output element is folded from the input's elements over some dimensions, in row-major order.
 *
 * A fold is an accumulator that takes runs of elements, by type, and a function that turns it into results. Elements
 * are converted as loop.h converts them: rounded to the operator's type, then widened to the type that is computed
 * in. */
#ifndef HOST_OP_REFERENCE_FOLD_H
#define HOST_OP_REFERENCE_FOLD_H
#include "host/op/reference/loop.h"

/* What folds may keep. seen: elements so far, counted by the engine. */
typedef struct { double a, b, im, im_b; int64_t i, at, seen; } fold_state;

/* Takes n elements, step elements apart; the first is element `s->seen` of its output. */
typedef void (*fold_fn)(fold_state *s, int64_t n, const char *data, int64_t step, const void *params);
/* Gives the results: one number an output. `d` is the type computed in. */
typedef void (*fold_end)(const fold_state *s, bp_dtype d, num *results, const void *params);

/* For folds of f32 that only add to `a`, many outputs in one call; the bits are those of `add` and `end`. */
typedef struct {
    /* Adds elements that lie side by side to n sums, one each. */
    void (*across)(int64_t n, const float *p, double *sums);
    /* Adds `run` elements that lie side by side to each of n sums; those of sum k begin at p + k * step. */
    void (*along)(int64_t n, int64_t step, int64_t run, const float *p, double *sums);
    /* Gives n results from sums of `seen` elements each. */
    void (*end)(int64_t n, const double *sums, int64_t seen, float *out);
} fold_sums;

typedef struct { fold_fn u8, i8, i16, i32, i64, f32, f64, c64, c128; } fold_table;
typedef struct {
    fold_table add;
    fold_end end;
    fold_state start;
    const fold_sums *sums; /* may be NULL */
} fold;

/* Folds t over the dimensions in mask into the outputs of k, which are contiguous and may be kept-dim or not. `as`: the
 * type that elements are cast to first. errors: UNIMPLEMENTED or INVALID_ARGUMENT when f has not this type. */
bp_status fold_run(bp_ctx *c, op_call *k, const fold *f, const bp_tensor *t, uint64_t mask, bp_dtype as,
                   const void *params);
/* The same into nout contiguous tensors of one size. */
bp_status fold_into(bp_ctx *c, const op_row *op, const fold *f, const bp_tensor *t, uint64_t mask, bp_dtype as,
                    uint32_t nout, bp_tensor *const *out, const void *params);

/* Mean in s->a and sum of squared distances from it in s->b: runs are measured in two passes around their first
 * element, and joined. Exact where all elements are equal, and without overflow or cancellation for large ones. */
extern const fold_table fold_spread;

/* -- writing folds: a statement on s and the element v -- */
#define FOLD(fn, TI, ...)                                                                                      \
    static void fn(fold_state *state, int64_t n, const char *data, int64_t step, const void *params)           \
    {                                                                                                          \
        typedef TI T;                                                                                          \
        const T *p = (const void *)data;                                                                       \
        fold_state kept = *state, *s = &kept; /* so that it may live in registers */                           \
        (void)params;                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                                      \
            const T v = p[i * step];                                                                           \
            __VA_ARGS__                                                                                        \
        }                                                                                                      \
        *state = kept;                                                                                         \
    }
#define FOLDS_F(name, ...)                     \
    FOLD(name##_f32, float, __VA_ARGS__)       \
    FOLD(name##_f64, double, __VA_ARGS__)
#define FOLDS_I(name, ...)                     \
    FOLD(name##_u8, uint8_t, __VA_ARGS__)      \
    FOLD(name##_i8, int8_t, __VA_ARGS__)       \
    FOLD(name##_i16, int16_t, __VA_ARGS__)     \
    FOLD(name##_i32, int32_t, __VA_ARGS__)     \
    FOLD(name##_i64, int64_t, __VA_ARGS__)
#define FOLDS_C(name, ...)                             \
    FOLD(name##_c64, float _Complex, __VA_ARGS__)      \
    FOLD(name##_c128, double _Complex, __VA_ARGS__)
#endif
