/* The blocked product for one accumulation type; gemm.c includes it once a type, and nobody else does.
 *
 * Before: T, the type; NAME(x), the suffixed name; ACC, T's dtype; SCALE(s), a bp_scalar as T. A block of the result is
 * MC x NC at most and passes over k in steps of KC; a tile of it, MR x NR, stays in registers. */
enum { NAME(NR) = GEMM_NR_BYTES / sizeof(T) };

GEMM_TILE(NAME(tile_plain), , 16)
#ifdef ISA_X86
GEMM_TILE(NAME(tile_avx2), ISA_TARGET_AVX2, 32)
GEMM_TILE(NAME(tile_avx512), ISA_TARGET_AVX512, 64)
#endif

typedef void (*NAME(tile_fn))(int64_t k, const T *a, const T *b, T *c, int64_t ldc);
static NAME(tile_fn) NAME(tile_pick)(void)
{
#ifdef ISA_X86
    isa_level level = isa_get();
    return level == ISA_AVX512 ? NAME(tile_avx512) : level == ISA_AVX2 ? NAME(tile_avx2) : NAME(tile_plain);
#else
    return NAME(tile_plain);
#endif
}

/* What pack does, for lines that lie side by side in panels of NR. */
static void NAME(pack_across)(T *dst, const T *src, int64_t step, int64_t lines, int64_t k)
{
    for (int64_t base = 0; base < lines; base += NAME(NR)) {
        size_t some = (size_t)(lines - base < NAME(NR) ? lines - base : NAME(NR));
        for (int64_t p = 0; p < k; p++, dst += NAME(NR)) {
            if (some == NAME(NR)) {
                memcpy(dst, src + base + p * step, NAME(NR) * sizeof(T));
            } else {
                memcpy(dst, src + base + p * step, some * sizeof(T));
                memset(dst + some, 0, (NAME(NR) - some) * sizeof(T));
            }
        }
    }
}

/* `lines` lines of k elements, in panels of `width` lines with line the fast index; missing lines are zeros. */
static void NAME(pack)(T *dst, int64_t width, bp_dtype dtype, const char *src, int64_t line, int64_t step,
                       int64_t lines, int64_t k)
{
    int64_t size = (int64_t)dtype_size(dtype);
    if (line == 1 && width == NAME(NR) && dtype == ACC) {
        NAME(pack_across)(dst, (const void *)src, step, lines, k);
        return;
    }
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
