/* Calls without end: two breaks whose outcomes change, four shapes by turns, one input written. What the process holds
 * must not grow once everything has been seen.
 *
 *     million CALLS THREADS [leak]    TAP; leak: each call keeps a tensor, which must be found
 */
#include <backplane/backplane.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHAPES = 4, THREADS = 8, WARM_UP = 5000 };

static void two_breaks(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_mul(c, x, 2);
    y = bp_is_true(c, bp_gt(c, bp_sum(c, x), 0)) ? bp_add(c, y, 1) : bp_neg(c, y);
    bp_mul_inplace(c, x, -1);
    y = bp_is_true(c, bp_gt(c, bp_select(c, x, 0, 0), 1)) ? bp_sub(c, y, x) : bp_add(c, y, x);
    bp_return(f, y);
}

/* The first element of the result, by hand. */
static float expected(float first, float sum)
{
    float y = sum > 0 ? 2 * first + 1 : -2 * first, x = -first;
    return x > 1 ? y - x : y + x;
}

typedef struct { bp_runtime *rt; bp_callable *g; uint32_t calls, seed; bool leaks, right; } job;

static bool one_call(bp_ctx *c, bp_callable *g, uint32_t k)
{
    int64_t n = 1 + k % SHAPES;
    float in[SHAPES], out[SHAPES], sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += in[i] = (float)((int)(k / SHAPES % 7) - 3 + (int)i);
    bp_tensor *t = bp_tensor_from(c, BP_F32, 1, &n, in), *y = bp_call1(c, g, 1, &t);
    return y && bp_tensor_read(c, y, out, (size_t)n * sizeof *out) == BP_OK && out[0] == expected(in[0], sum) &&
           bp_tensor_read(c, t, out, (size_t)n * sizeof *out) == BP_OK && out[0] == -in[0];
}

static void *work(void *arg)
{
    job *j = arg;
    bp_ctx *c = bp_ctx_new(j->rt);
    j->right = c != NULL;
    for (uint32_t i = 0; i < j->calls && j->right; i++) {
        bp_scope_begin(c);
        j->right = one_call(c, j->g, j->seed + i);
        if (j->leaks)
            bp_keep(c, bp_tensor_from(c, BP_F32, 1, (int64_t[]){4}, NULL));
        bp_scope_end(c);
    }
    if (!j->right && c)
        printf("# %s\n", bp_error_text(c));
    bp_ctx_destroy(c);
    return NULL;
}

static bool run(bp_runtime *rt, bp_callable *g, uint32_t calls, uint32_t n, bool leaks)
{
    pthread_t threads[THREADS];
    job jobs[THREADS];
    bool right = true;
    for (uint32_t i = 0; i < n; i++) {
        jobs[i] = (job){rt, g, calls / n, 13 * i, leaks, false};
        right &= pthread_create(&threads[i], NULL, work, &jobs[i]) == 0;
    }
    for (uint32_t i = 0; i < n && right; i++)
        pthread_join(threads[i], NULL);
    for (uint32_t i = 0; i < n; i++)
        right &= jobs[i].right;
    return right;
}

/* Bytes that the process has from malloc, in arenas and beside them. */
static size_t held(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static int tell(int n, bool ok, const char *what)
{
    printf("%sok %d - %s\n", ok ? "" : "not ", n, what);
    return !ok;
}

int main(int argc, char **argv)
{
    uint32_t calls = argc > 1 ? (uint32_t)atoi(argv[1]) : 50000, n = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
    bool leaks = argc > 3;
    bp_runtime *rt = bp_runtime_new(NULL);
    bp_ctx *c = bp_ctx_new(rt);
    bp_callable *g = bp_compile(c, two_breaks, &(bp_compile_options){.backend = "eager", .dynamic = -1});
    bp_callable_stats warm = {.size = sizeof warm}, s = warm;
    n = n < 1 ? 1 : n > THREADS ? THREADS : n;
    bool right = g && run(rt, g, WARM_UP, 1, false) && run(rt, g, n * WARM_UP, n, false);
    bp_stats(c, g, &warm);
    size_t before = held();
    right = right && run(rt, g, calls, n, leaks);
    size_t after = held();
    bp_stats(c, g, &s);
    printf("1..4\n# %u calls on %u threads: %zu bytes held before, %zu after; %u hits, %u captures, %u segments, "
           "%u eager\n",
           calls, n, before, after, s.hits, s.captures, s.segments, s.eager_calls);
    int bad = tell(1, right, "every answer is right");
    bad += tell(2, after <= before + (64 << 10), "nothing more is held than after the warm-up");
    bad += tell(3, s.captures == warm.captures && s.eager_calls == warm.eager_calls, "nothing is captured any more");
    bad += tell(4, s.hits - warm.hits == calls / n * n, "every call hits");
    bp_callable_unref(g);
    bp_ctx_destroy(c);
    bp_runtime_unref(rt);
    return bad != 0;
}
