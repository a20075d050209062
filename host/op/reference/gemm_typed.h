/* The blocked product for one accumulation type; gemm.c includes it once a type, and nobody else does.
 *
 * Before: T, the type; NAME(x), the suffixed name; ACC, T's dtype; SCALE(s), a bp_scalar as T. A block of the result is
 * MC x NC at most and passes over k in steps of KC; a tile of it, MR x NR, stays in registers. */
typedef T NAME(vec) __attribute__((vector_size(64), may_alias));
enum { NAME(NR) = 64 / sizeof(T) };

/* c[MR][NR] += a[k][MR] * b[k][NR]; ldc is a multiple of NR, everything is aligned to 64 bytes. */
static inline __attribute__((always_inline)) void NAME(tile_body)(int64_t k, const T *a, const T *b, T *c, int64_t ldc)
{
    NAME(vec) *r0 = (NAME(vec) *)c, *r1 = (NAME(vec) *)(c + ldc), *r2 = (NAME(vec) *)(c + 2 * ldc);
    NAME(vec) *r3 = (NAME(vec) *)(c + 3 * ldc), *r4 = (NAME(vec) *)(c + 4 * ldc), *r5 = (NAME(vec) *)(c + 5 * ldc);
    NAME(vec) s0 = *r0, s1 = *r1, s2 = *r2, s3 = *r3, s4 = *r4, s5 = *r5;
    for (int64_t p = 0; p < k; p++, a += GEMM_MR, b += NAME(NR)) {
        NAME(vec) y = *(const NAME(vec) *)b;
        s0 += a[0] * y;
        s1 += a[1] * y;
        s2 += a[2] * y;
        s3 += a[3] * y;
        s4 += a[4] * y;
        s5 += a[5] * y;
    }
    *r0 = s0, *r1 = s1, *r2 = s2, *r3 = s3, *r4 = s4, *r5 = s5;
}

static void NAME(tile_plain)(int64_t k, const T *a, const T *b, T *c, int64_t ldc)
{
    NAME(tile_body)(k, a, b, c, ldc);
}
#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static void NAME(tile_avx2)(int64_t k, const T *a, const T *b, T *c, int64_t ldc)
{
    NAME(tile_body)(k, a, b, c, ldc);
}
__attribute__((target("avx512f,avx512dq"))) static void NAME(tile_avx512)(int64_t k, const T *a, const T *b, T *c,
                                                                          int64_t ldc)
{
    NAME(tile_body)(k, a, b, c, ldc);
}
#endif

typedef void (*NAME(tile_fn))(int64_t k, const T *a, const T *b, T *c, int64_t ldc);
static NAME(tile_fn) NAME(tile_pick)(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
        return NAME(tile_avx512);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return NAME(tile_avx2);
#endif
    return NAME(tile_plain);
}

/* `lines` lines of k elements, in panels of `width` lines with line the fast index; missing lines are zeros. */
static void NAME(pack)(T *dst, int64_t width, bp_dtype dtype, const char *src, int64_t line, int64_t step,
                       int64_t lines, int64_t k)
{
    int64_t size = (int64_t)dtype_size(dtype);
    for (int64_t base = 0; base < lines; base += width, dst += width * k) {
        for (int64_t r = 0; r < width; r++) {
            if (base + r < lines)
                dtype_convert(ACC, dst + r, width, dtype, src + (base + r) * line * size, step, k);
            else
                for (int64_t p = 0; p < k; p++)
                    dst[p * width + r] = 0;
        }
    }
}

/* Scales row after row of the finished block, adds what is to be added, and stores it. */
static void NAME(finish)(const gemm_job *j, const gemm_block *g, T *acc, T *row)
{
    int64_t size = (int64_t)dtype_size(j->dtype);
    T alpha = SCALE(j->alpha), beta = SCALE(j->beta);
    bool adds = j->add.at && beta != 0, scales = alpha != 1;
    for (int64_t i = 0; i < g->m; i++) {
        T *v = acc + i * g->ld;
        for (int64_t x = 0; scales && x < g->n; x++)
            v[x] *= alpha;
        if (adds) {
            const char *from = (const char *)j->add.at +
                (g->batch * j->add.batch + (g->i + i) * j->add.row + g->j * j->add.col) * size;
            dtype_convert(ACC, row, 1, j->dtype, from, j->add.col, g->n);
            for (int64_t x = 0; x < g->n; x++)
                v[x] += beta * row[x];
        }
        char *to = (char *)j->out + (g->batch * j->out_batch + (g->i + i) * j->out_row + g->j * j->out_col) * size;
        dtype_convert(j->dtype, to, j->out_col, ACC, v, 1, g->n);
    }
}

/* One block of the result, in memory of GEMM_BYTES. */
static void NAME(block)(const gemm_job *j, const gemm_block *g, void *memory)
{
    T *acc = memory, *pa = acc + GEMM_MC * GEMM_NC, *pb = pa + GEMM_MC * GEMM_KC, *row = pb + GEMM_KC * GEMM_NC;
    NAME(tile_fn) tile = NAME(tile_pick)();
    int64_t size = (int64_t)dtype_size(j->dtype), nr = NAME(NR);
    const char *a = (const char *)j->a.at + (g->batch * j->a.batch + g->i * j->a.row) * size;
    const char *b = (const char *)j->b.at + (g->batch * j->b.batch + g->j * j->b.col) * size;
    int64_t rows = (g->m + GEMM_MR - 1) / GEMM_MR * GEMM_MR;
    memset(acc, 0, (size_t)(rows * g->ld) * sizeof(T));
    for (int64_t p = 0; p < j->k; p += GEMM_KC) {
        int64_t kc = j->k - p < GEMM_KC ? j->k - p : GEMM_KC;
        NAME(pack)(pa, GEMM_MR, j->dtype, a + p * j->a.col * size, j->a.row, j->a.col, g->m, kc);
        NAME(pack)(pb, nr, j->dtype, b + p * j->b.row * size, j->b.col, j->b.row, g->n, kc);
        for (int64_t x = 0; x < g->n; x += nr)
            for (int64_t i = 0; i < g->m; i += GEMM_MR)
                tile(kc, pa + i * kc, pb + x * kc, acc + i * g->ld + x, g->ld);
    }
    NAME(finish)(j, g, acc, row);
}
#undef T
#undef NAME
#undef ACC
#undef SCALE
