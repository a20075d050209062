/* Matrix products by blocks (gemm_typed.h), one thread a block of the result; complex ones as real ones twice as large.
 *
 * This file alone is built with contraction of multiply and add: how a sum of products rounds is not promised. */
#include "host/op/reference/gemm.h"
#include "host/base/isa.h"
#include "host/base/parallel.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { GEMM_MR = 6, GEMM_NR_BYTES = 128, GEMM_MC = 96, GEMM_NC = 256, GEMM_KC = 256 };
enum { GEMM_BYTES = 8 * (GEMM_MC * GEMM_NC + GEMM_MC * GEMM_KC + GEMM_KC * GEMM_NC + GEMM_NC) };

/* A tile, c[MR][NR] += a[k][MR] * b[k][NR], in vectors of so many bytes; ldc is a multiple of NR, everything is aligned
 * to 64 bytes. It takes two vectors of columns at once: the twelve sums stay in registers and hide how long one takes.
 * Each sum goes in the order of k. */
#define GEMM_ROWS(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)
#define GEMM_LOAD(i) vec s##i = *(vec *)(to + (i) * ldc), t##i = *(vec *)(to + (i) * ldc + N);
#define GEMM_ADD(i) s##i += row[i] * y, t##i += row[i] * z;
#define GEMM_STORE(i) *(vec *)(to + (i) * ldc) = s##i, *(vec *)(to + (i) * ldc + N) = t##i;
#define GEMM_TILE(fn, target, bytes)                                                                      \
    target static void fn(int64_t k, const T *a, const T *b, T *c, int64_t ldc)                           \
    {                                                                                                     \
        typedef T vec __attribute__((vector_size(bytes), may_alias));                                     \
        enum { N = (bytes) / sizeof(T), NR = GEMM_NR_BYTES / sizeof(T) };                                 \
        for (int64_t x = 0; x < NR; x += 2 * N) {                                                         \
            T *to = c + x;                                                                                \
            const T *row = a, *from = b + x;                                                              \
            GEMM_ROWS(GEMM_LOAD)                                                                          \
            for (int64_t p = 0; p < k; p++, row += GEMM_MR, from += NR) {                                 \
                const vec y = *(const vec *)from, z = *(const vec *)(from + N);                           \
                GEMM_ROWS(GEMM_ADD)                                                                       \
            }                                                                                             \
            GEMM_ROWS(GEMM_STORE)                                                                         \
        }                                                                                                 \
    }

/* A block of the result: where it starts, its size, and the length of its rows in the accumulator. */
typedef struct { int64_t batch, i, j, m, n, ld; } gemm_block;

static double scale_float(bp_scalar s)
{
    switch (s.kind) {
    case BP_SCALAR_UNSET: return 1;
    case BP_SCALAR_BOOL:
    case BP_SCALAR_INT: return (double)s.v.i;
    default: return s.v.f[0];
    }
}

static uint64_t scale_int(bp_scalar s)
{
    return s.kind == BP_SCALAR_FLOAT || s.kind == BP_SCALAR_COMPLEX ? (uint64_t)(int64_t)s.v.f[0]
           : s.kind == BP_SCALAR_UNSET                              ? 1
                                                                    : (uint64_t)s.v.i;
}

#define T float
#define NAME(x) x##_f32
#define ACC BP_F32
#define SCALE(s) ((float)scale_float(s))
#include "host/op/reference/gemm_typed.h"

#define T double
#define NAME(x) x##_f64
#define ACC BP_F64
#define SCALE(s) scale_float(s)
#include "host/op/reference/gemm_typed.h"

#define T uint64_t
#define NAME(x) x##_i64
#define ACC BP_I64
#define SCALE(s) scale_int(s)
#include "host/op/reference/gemm_typed.h"

typedef struct { const gemm_job *job; int64_t rows, cols; atomic_int failed; } gemm_tasks;

static void run_block(const gemm_job *j, int64_t rows, int64_t cols, int64_t task, void *memory)
{
    gemm_block g = {.batch = task / (rows * cols), .i = task / cols % rows * GEMM_MC, .j = task % cols * GEMM_NC};
    g.m = j->m - g.i < GEMM_MC ? j->m - g.i : GEMM_MC;
    g.n = j->n - g.j < GEMM_NC ? j->n - g.j : GEMM_NC;
    g.ld = (g.n + 31) / 32 * 32; /* whole tiles, whatever the type */
    switch (dtype_accumulate(j->dtype)) {
    case BP_F32: block_f32(j, &g, memory); break;
    case BP_F64: block_f64(j, &g, memory); break;
    default: block_i64(j, &g, memory); break;
    }
}

static void run_tasks(void *arg, int64_t begin, int64_t end)
{
    gemm_tasks *t = arg;
    void *memory = aligned_alloc(64, GEMM_BYTES);
    if (!memory) {
        atomic_store(&t->failed, 1);
        return;
    }
    for (int64_t i = begin; i < end; i++)
        run_block(t->job, t->rows, t->cols, i, memory);
    free(memory);
}

static bool run_real(const gemm_job *j)
{
    gemm_tasks t = {.job = j, .rows = (j->m + GEMM_MC - 1) / GEMM_MC, .cols = (j->n + GEMM_NC - 1) / GEMM_NC};
    int64_t small = 1 + 32768 / (1 + (j->m < GEMM_MC ? j->m : GEMM_MC) * (j->n < GEMM_NC ? j->n : GEMM_NC));
    parallel_for(j->batch * t.rows * t.cols, small, run_tasks, &t);
    return !atomic_load(&t.failed);
}

/* -- complex: [re; im] = [a.re, -a.im; a.im, a.re] [b.re; b.im], all real -- */

static void split_a(const gemm_job *j, bp_dtype real, const char *a, char *to)
{
    int64_t size = (int64_t)dtype_size(real), ld = 2 * j->k, half = j->m * ld;
    for (int64_t i = 0; i < j->m; i++) {
        const char *row = a + 2 * i * j->a.row * size;
        char *re = to + i * ld * size, *im = re + half * size;
        dtype_convert(real, re, 1, real, row, 2 * j->a.col, j->k);
        dtype_convert(real, im, 1, real, row + size, 2 * j->a.col, j->k);
        dtype_convert(real, im + j->k * size, 1, real, row, 2 * j->a.col, j->k);
        for (int64_t p = 0; p < j->k; p++) {
            if (real == BP_F32)
                ((float *)(void *)re)[j->k + p] = -((float *)(void *)im)[p];
            else
                ((double *)(void *)re)[j->k + p] = -((double *)(void *)im)[p];
        }
    }
}

static void split_b(const gemm_job *j, bp_dtype real, const char *b, char *to)
{
    int64_t size = (int64_t)dtype_size(real), half = j->k * j->n;
    for (int64_t p = 0; p < j->k; p++) {
        const char *row = b + 2 * p * j->b.row * size;
        dtype_convert(real, to + p * j->n * size, 1, real, row, 2 * j->b.col, j->n);
        dtype_convert(real, to + (half + p * j->n) * size, 1, real, row + size, 2 * j->b.col, j->n);
    }
}

/* out = alpha * product + beta * add, element by element; `product` holds the real halves, then the imaginary ones. */
static void join(const gemm_job *j, bp_dtype real, int64_t batch, const char *product)
{
    int64_t size = (int64_t)dtype_size(real);
    double beta[2] = {scale_float(j->beta), j->beta.kind == BP_SCALAR_COMPLEX ? j->beta.v.f[1] : 0};
    double alpha[2] = {scale_float(j->alpha), j->alpha.kind == BP_SCALAR_COMPLEX ? j->alpha.v.f[1] : 0};
    bool adds = j->add.at && (beta[0] != 0 || beta[1] != 0);
    for (int64_t i = 0; i < j->m; i++) {
        for (int64_t x = 0; x < j->n; x++) {
            double re = dtype_load(real, product + (i * j->n + x) * size).f;
            double im = dtype_load(real, product + ((j->m + i) * j->n + x) * size).f;
            num v = {.kind = NUM_COMPLEX, .f = alpha[0] * re - alpha[1] * im, .im = alpha[0] * im + alpha[1] * re};
            if (adds) {
                int64_t at = batch * j->add.batch + i * j->add.row + x * j->add.col;
                num s = dtype_load(j->dtype, (const char *)j->add.at + at * 2 * size);
                v.f += beta[0] * s.f - beta[1] * s.im;
                v.im += beta[0] * s.im + beta[1] * s.f;
            }
            int64_t at = batch * j->out_batch + i * j->out_row + x * j->out_col;
            dtype_store(j->dtype, (char *)j->out + at * 2 * size, v);
        }
    }
}

static bool run_complex(const gemm_job *j)
{
    bp_dtype real = dtype_real_of(j->dtype);
    size_t size = dtype_size(real), na = (size_t)(4 * j->m * j->k), nb = (size_t)(2 * j->k * j->n);
    char *memory = malloc((na + nb + (size_t)(2 * j->m * j->n)) * size + 1);
    if (!memory)
        return false;
    char *a = memory, *b = a + na * size, *product = b + nb * size;
    gemm_job r = {.dtype = real, .batch = 1, .m = 2 * j->m, .n = j->n, .k = 2 * j->k, .a = {a, 2 * j->k, 1, 0},
                  .b = {b, j->n, 1, 0}, .out = product, .out_row = j->n, .out_col = 1};
    bool ok = true;
    for (int64_t x = 0; x < j->batch && ok; x++) {
        split_a(j, real, (const char *)j->a.at + 2 * x * j->a.batch * (int64_t)size, a);
        split_b(j, real, (const char *)j->b.at + 2 * x * j->b.batch * (int64_t)size, b);
        ok = run_real(&r);
        if (ok)
            join(j, real, x, product);
    }
    free(memory);
    return ok;
}

bool gemm_try(const gemm_job *j)
{
    if (j->batch == 0 || j->m == 0 || j->n == 0)
        return true;
    return dtype_is_complex(j->dtype) ? run_complex(j) : run_real(j);
}

bp_status gemm_run(bp_ctx *c, const gemm_job *j)
{
    return gemm_try(j) ? BP_OK : diag_nomem(&c->diag);
}
