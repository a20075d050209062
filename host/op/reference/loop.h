/* The loop of pointwise kernels: broadcast operands, converted to the type that is computed in, one run at a time.
 *
 * A kernel gives inner loops by type and a list of operands; loop_run finds the order in which memory is walked, merges
 * dimensions, converts what has another type in pieces of LOOP_CHUNK elements, and rounds each result once. Half
 * types are computed as f32 and bools as u8, so a table has no entries for them. Integers never pass through a
 * float. */
#ifndef HOST_OP_REFERENCE_LOOP_H
#define HOST_OP_REFERENCE_LOOP_H
#include "host/op/op.h"

enum { LOOP_OPERANDS = 6, LOOP_CHUNK = 256 };

/* n elements of each operand, outputs first; steps are in elements and may be 0. Several threads may run it. */
typedef void (*loop_fn)(int64_t n, char *const *data, const int64_t *step, void *params);

/* Inner loops by the type they compute in; NULL: the operator has no such type. f16 and bf16 are for operators that
 * round to the half type at each step, which shows: they read and write f32 too, and stand before f32 for their
 * type. */
typedef struct { loop_fn u8, i8, i16, i32, i64, f32, f64, c64, c128, f16, bf16; } loop_table;

/* The type that values of type d are computed in: f32 for halves, u8 for bool, else d. */
bp_dtype loop_type(bp_dtype d);
loop_fn loop_pick(const loop_table *t, bp_dtype d);
/* Returns what a table (of loops, of folds) has for values of type d, or NULL. */
#define LOOP_BY_TYPE(t, d)               \
    switch (loop_type(d)) {              \
    case BP_U8: return (t)->u8;          \
    case BP_I8: return (t)->i8;          \
    case BP_I16: return (t)->i16;        \
    case BP_I32: return (t)->i32;        \
    case BP_I64: return (t)->i64;        \
    case BP_F32: return (t)->f32;        \
    case BP_F64: return (t)->f64;        \
    case BP_C64: return (t)->c64;        \
    case BP_C128: return (t)->c128;      \
    default: return NULL;                \
    }

/* One operand of a loop: a tensor, or a number when t is NULL. */
typedef struct {
    bp_tensor *t;
    bp_scalar number;
    bp_dtype as;              /* inputs: the type to which values are rounded first (the operator's type) */
    bp_dtype loop;            /* the type that the inner loop reads or writes */
} loop_operand;

/* n elements, at most LOOP_CHUNK, of type `from`, rounded to type `as`, then widened to `loop`, into room. */
void loop_convert(bp_dtype loop, void *room, bp_dtype as, bp_dtype from, const void *data, int64_t step, int64_t n);
/* Runs f over outputs o[0 .. nout), all of one shape, and inputs o[nout .. nout + nin), broadcast to it. */
bp_status loop_run(bp_ctx *c, uint32_t nout, uint32_t nin, const loop_operand *o, loop_fn f, void *params);

/* -- the common form: the first `operands` arguments are promoted together -- */
enum loop_flag {
    LOOP_TO_FLOAT = 1,        /* integers are computed as the default float type */
    LOOP_BOOL_OUT = 2,        /* the loop writes bools */
    LOOP_REAL_OUT = 4,        /* the loop of a complex type writes its real type */
    LOOP_NO_BOOL = 8,         /* PyTorch has it for integers but not for bools */
    LOOP_WIDE_LAST = 16,      /* a number or 0-d tensor as last operand is not rounded to a half type first */
    LOOP_NO_HALF = 32,        /* PyTorch has it for f32 and f64 only */
    LOOP_ROUND_NUMBERS = 64   /* numbers behind the operands are rounded to the operator's type */
};
typedef struct {
    loop_table loops;
    uint32_t operands, flags;
    uint32_t numbers;         /* so many arguments behind the operands are numbers, given to the loop as params */
} loop_kernel;
bp_status loop_kernel_run(bp_ctx *c, op_call *k, const loop_kernel *p, void *params);
/* The same, without promotion: operands are computed in `common`. */
bp_status loop_kernel_run_as(bp_ctx *c, op_call *k, const loop_kernel *p, bp_dtype common, void *params);
/* Runs with the numbers that p says as params. Integers need numbers in their range. */
bp_status loop_kernel_run_numbers(bp_ctx *c, op_call *k, const loop_kernel *p);

/* Writes one number everywhere. */
bp_status loop_fill(bp_ctx *c, bp_tensor *t, bp_scalar number);
/* Argument i as an operand: a tensor or a number. */
loop_operand loop_arg(const op_call *k, uint32_t i, bp_dtype as);
loop_operand loop_out(const op_call *k, uint32_t i, bp_dtype loop);
/* Type in which arguments [0, n) of a call meet. */
bp_dtype loop_common(bp_ctx *c, const op_call *k, uint32_t n, uint32_t flags);
/* "sub is not there for bool": PyTorch has not this type either (INVALID_ARGUMENT), or complex (UNIMPLEMENTED). */
bp_status loop_no_type(bp_ctx *c, const op_row *op, bp_dtype d);

/* Numbers given to a kernel, in each form that an inner loop may want. */
typedef struct { double f, im; int64_t i; } loop_number;
loop_number loop_number_of(bp_scalar s);
double loop_round(bp_dtype d, double f); /* f as a number of float type d */
/* An error unless s can be converted to d without overflow, as PyTorch checks a number that is no operand: from
 * -max to max for unsigned types (negative numbers wrap), else within the type's range. */
bp_status loop_check_number(bp_ctx *c, const op_row *op, const char *name, bp_scalar s, bp_dtype d);

/* -- writing inner loops: a formula in a, b, e over the type T, with params at hand -- */
#pragma GCC diagnostic ignored "-Wtype-limits" /* one formula serves signed and unsigned types */
#define LOOP_AT(T, k) ((T *)(void *)data[k])
#define LOOP_HEAD(fn, TI)                                                             \
    static void fn(int64_t n, char *const *data, const int64_t *step, void *params)   \
    {                                                                                 \
        typedef TI T;                                                                 \
        (void)params;                                                                 \
        for (int64_t i = 0; i < n; i++) {                                             \
            const T a = LOOP_AT(const T, 1)[i * step[1]];
#define LOOP_TAIL(TO, ...)                                                            \
            LOOP_AT(TO, 0)[i * step[0]] = (TO)(__VA_ARGS__);                          \
        }                                                                             \
    }
#define LOOP_1(fn, TO, TI, ...) LOOP_HEAD(fn, TI) LOOP_TAIL(TO, __VA_ARGS__)
#define LOOP_2(fn, TO, TI, ...)                            \
    LOOP_HEAD(fn, TI)                                      \
    const T b = LOOP_AT(const T, 2)[i * step[2]];          \
    LOOP_TAIL(TO, __VA_ARGS__)
#define LOOP_3(fn, TO, TI, ...)                            \
    LOOP_HEAD(fn, TI)                                      \
    const T b = LOOP_AT(const T, 2)[i * step[2]];          \
    const T e = LOOP_AT(const T, 3)[i * step[3]];          \
    LOOP_TAIL(TO, __VA_ARGS__)
/* Number k of the params, as T and exactly as an integer. */
#define LOOP_NUM(k) ((T)((const loop_number *)params)[k].f)
#define LOOP_INT(k) ((T)((const loop_number *)params)[k].i)

/* The loops of a class of types; `loop` is LOOP_1, LOOP_2 or LOOP_3, TO is the result's type or T. */
#define LOOPS_F(loop, name, ...)                      \
    loop(name##_f32, float, float, __VA_ARGS__)       \
    loop(name##_f64, double, double, __VA_ARGS__)
#define LOOPS_I(loop, name, ...)                      \
    loop(name##_u8, uint8_t, uint8_t, __VA_ARGS__)    \
    loop(name##_i8, int8_t, int8_t, __VA_ARGS__)      \
    loop(name##_i16, int16_t, int16_t, __VA_ARGS__)   \
    loop(name##_i32, int32_t, int32_t, __VA_ARGS__)   \
    loop(name##_i64, int64_t, int64_t, __VA_ARGS__)
#define LOOPS_C(loop, name, ...)                                        \
    loop(name##_c64, float _Complex, float _Complex, __VA_ARGS__)       \
    loop(name##_c128, double _Complex, double _Complex, __VA_ARGS__)
/* A formula that rounds at each step: FORMULA is a macro of one argument, the name of what rounds. */
#define ROUND_NOT(x) (x)
#define ROUND_F16(x) half_to_float(half_from_float((float)(x)))
#define ROUND_BF16(x) bfloat16_to_float(bfloat16_from_float((float)(x)))
#define LOOPS_STEPS(loop, name, FORMULA)                   \
    LOOPS_F(loop, name, FORMULA(ROUND_NOT))                \
    loop(name##_f16, float, float, FORMULA(ROUND_F16))     \
    loop(name##_bf16, float, float, FORMULA(ROUND_BF16))
/* The same with bools as results. */
#define LOOPS_BF(loop, name, ...)                     \
    loop(name##_f32, uint8_t, float, __VA_ARGS__)     \
    loop(name##_f64, uint8_t, double, __VA_ARGS__)
#define LOOPS_BI(loop, name, ...)                     \
    loop(name##_u8, uint8_t, uint8_t, __VA_ARGS__)    \
    loop(name##_i8, uint8_t, int8_t, __VA_ARGS__)     \
    loop(name##_i16, uint8_t, int16_t, __VA_ARGS__)   \
    loop(name##_i32, uint8_t, int32_t, __VA_ARGS__)   \
    loop(name##_i64, uint8_t, int64_t, __VA_ARGS__)
#define LOOPS_BC(loop, name, ...)                             \
    loop(name##_c64, uint8_t, float _Complex, __VA_ARGS__)    \
    loop(name##_c128, uint8_t, double _Complex, __VA_ARGS__)
/* Initializers of a loop_table. */
#define LOOP_SET_F(name) .f32 = name##_f32, .f64 = name##_f64
#define LOOP_SET_I(name) .u8 = name##_u8, .i8 = name##_i8, .i16 = name##_i16, .i32 = name##_i32, .i64 = name##_i64
#define LOOP_SET_STEPS(name) LOOP_SET_F(name), .f16 = name##_f16, .bf16 = name##_bf16
#define LOOP_SET_C(name) .c64 = name##_c64, .c128 = name##_c128

/* kernel_<name> over `n` operands; then over n operands and so many numbers behind them. */
#define LOOP_KERNEL(name, n, flag_bits, ...)                                              \
    bp_status kernel_##name(bp_ctx *c, op_call *k)                                        \
    {                                                                                     \
        static const loop_kernel form = {{__VA_ARGS__}, (n), (flag_bits), 0};             \
        return loop_kernel_run(c, k, &form, NULL);                                        \
    }
#define LOOP_KERNEL_N(name, n, count, flag_bits, ...)                                     \
    bp_status kernel_##name(bp_ctx *c, op_call *k)                                        \
    {                                                                                     \
        static const loop_kernel form = {{__VA_ARGS__}, (n), (flag_bits), (count)};       \
        return loop_kernel_run_numbers(c, k, &form);                                      \
    }
#endif
