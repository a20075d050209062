/* What `make bench-reference` times: runs graphs on the reference kernels, as told line by line on the standard input.
 *
 *     graph TEXT ... }    the canonical text of a graph, its last line "}": becomes the graph that is run; its inputs
 *                         are made by their types. Answers "ok", or what is wrong
 *     run N               runs it N times; answers the median of the times in nanoseconds
 *     bandwidth           bytes that all threads together copy in a second, both directions counted
 *     peak                products and sums of f32 that they compute in a second
 */
#include <backplane/backplane.h>
#include "host/base/ctx.h"
#include "host/base/isa.h"
#include "host/base/parallel.h"
#include "host/graph/graph.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_TENSORS = 16, MAX_RUNS = 4096, COPY_BYTES = 256 << 20 };

typedef struct {
    bp_ctx *c;
    bp_graph_module *gm;
    bp_tensor *inputs[MAX_TENSORS];
    uint32_t ninputs;
} server;

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* -- inputs -------------------------------------------------------------------------------------------------------- */

/* About normal: the sum of four uniform numbers. */
static double draw(uint64_t *state)
{
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(*state >> 33) * 0x1p-31 - 0.5;
    }
    return sum * 1.7;
}

/* Integers lie in [0, 100), as indices of a table would. */
static void fill(bp_tensor *t)
{
    uint64_t state = 1;
    int64_t n = tensor_nelem(t);
    char *at = tensor_ptr(t);
    for (int64_t i = 0; i < n; i++, at += dtype_size(t->dtype)) {
        double v = draw(&state);
        bool is_float = dtype_is_float(t->dtype);
        int64_t whole = t->dtype == BP_BOOL ? v > 0 : (int64_t)(v * v * 9);
        dtype_store(t->dtype, at, is_float ? (num){NUM_FLOAT, 0, v, 0} : (num){NUM_INT, whole, 0, 0});
    }
}

static void drop(server *s)
{
    for (uint32_t i = 0; i < s->ninputs; i++)
        tensor_unref(s->inputs[i]);
    s->ninputs = 0;
    gm_unref(s->gm);
    s->gm = NULL;
}

static bp_status load(server *s, const char *text, size_t n)
{
    node_id ids[MAX_TENSORS];
    drop(s);
    if (!(s->gm = graph_parse_text(s->c, "graph", text, n)))
        return s->c->diag.code;
    uint32_t count = graph_placeholders(&s->gm->g, ids, MAX_TENSORS);
    for (uint32_t i = 0; i < count && i < MAX_TENSORS; i++) {
        bp_tensor *t = tensor_new(s->c, &graph_get(&s->gm->g, ids[i])->metas[0]);
        if (!t)
            return s->c->diag.code;
        fill(t);
        s->inputs[s->ninputs++] = t;
    }
    return BP_OK;
}

static void read_graph(server *s)
{
    buf text = {0};
    char line[1024];
    while (fgets(line, sizeof line, stdin)) {
        buf_puts(&text, line);
        if (line[0] == '}')
            break;
    }
    puts(load(s, buf_text(&text), text.n) == BP_OK ? "ok" : s->c->diag.message);
    diag_clear(&s->c->diag);
    buf_fini(&text);
}

/* -- times --------------------------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static bool run_once(server *s, int64_t *ns)
{
    bp_tensor *out[MAX_TENSORS] = {NULL};
    uint32_t n = graph_output_count(&s->gm->g);
    int64_t begin = now();
    bp_status status = graph_run(s->c, s->gm, s->inputs, s->ninputs, out, n, NULL, NULL);
    for (uint32_t i = 0; i < n; i++)
        tensor_unref(out[i]);
    *ns = now() - begin;
    return status == BP_OK;
}

static void run(server *s, long n)
{
    static int64_t times[MAX_RUNS];
    bool ok = s->gm != NULL;
    n = n < 1 ? 1 : n > MAX_RUNS ? MAX_RUNS : n;
    for (long i = 0; i < n && ok; i++)
        ok = run_once(s, &times[i]);
    if (!ok) {
        puts(s->c->diag.message);
        diag_clear(&s->c->diag);
        return;
    }
    qsort(times, (size_t)n, sizeof *times, compare);
    printf("%" PRId64 "\n", times[n / 2]);
}

/* -- what the machine can do --------------------------------------------------------------------------------------- */

typedef struct { char *to; const char *from; } copying;

static void copy_part(void *arg, int64_t begin, int64_t end)
{
    const copying *k = arg;
    memcpy(k->to + begin, k->from + begin, (size_t)(end - begin));
}

static void bandwidth(void)
{
    copying k = {malloc(COPY_BYTES), calloc(1, COPY_BYTES)};
    int64_t best = INT64_MAX;
    for (int i = 0; i < 12 && k.to && k.from; i++) {
        int64_t begin = now();
        parallel_for(COPY_BYTES, 1 << 20, copy_part, &k);
        int64_t ns = now() - begin;
        best = i > 0 && ns < best ? ns : best; /* the first one meets the pages */
    }
    printf("%.0f\n", 2e9 * COPY_BYTES / (double)best);
    free(k.to);
    free((void *)(uintptr_t)k.from);
}

enum { SUMS = 12, LANES = 16, STEPS = 1 << 22 };
typedef float lanes __attribute__((vector_size(4 * LANES)));

ISA_INLINE void multiply_add(float *result)
{
    lanes sums[SUMS], x = {0}, y = {0};
    for (int i = 0; i < LANES; i++)
        x[i] = 0.999f, y[i] = 0.001f;
    for (int i = 0; i < SUMS; i++)
        sums[i] = x * (float)i;
    for (int64_t step = 0; step < STEPS; step++)
        for (int i = 0; i < SUMS; i++)
            sums[i] = sums[i] * x + y;
    for (int i = 0; i < SUMS; i++)
        for (int l = 0; l < LANES; l++)
            *result += sums[i][l];
}
static void peak_scalar(float *result) { multiply_add(result); }
#ifdef ISA_X86
ISA_TARGET_AVX2 static void peak_avx2(float *result) { multiply_add(result); }
ISA_TARGET_AVX512 static void peak_avx512(float *result) { multiply_add(result); }
#else
#define peak_avx2 peak_scalar
#define peak_avx512 peak_scalar
#endif

static void compute_part(void *arg, int64_t begin, int64_t end)
{
    (void)end;
    isa_level level = isa_get();
    (level == ISA_AVX512 ? peak_avx512 : level == ISA_AVX2 ? peak_avx2 : peak_scalar)((float *)arg + 64 * begin);
}

static void peak(void)
{
    static float results[64 * 1024];
    int64_t threads = parallel_threads(), best = INT64_MAX;
    for (int i = 0; i < 12; i++) {
        int64_t begin = now();
        parallel_for(threads, 1, compute_part, results);
        int64_t ns = now() - begin;
        best = ns < best ? ns : best;
    }
    printf("%.0f\n", 2e9 * SUMS * LANES * STEPS * (double)threads / (double)best);
}

int main(void)
{
    char line[256];
    server s = {.c = bp_ctx_new(NULL)};
    if (!s.c)
        return 1;
    while (fgets(line, sizeof line, stdin)) {
        if (!strncmp(line, "graph", 5))
            read_graph(&s);
        else if (!strncmp(line, "run ", 4))
            run(&s, strtol(line + 4, NULL, 10));
        else if (!strncmp(line, "bandwidth", 9))
            bandwidth();
        else if (!strncmp(line, "peak", 4))
            peak();
        fflush(stdout);
    }
    drop(&s);
    bp_ctx_destroy(s.c);
    return 0;
}
