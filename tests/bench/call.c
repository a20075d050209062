/* What a call that hits costs.
 *
 *     call PLUGIN count INPUTS ENTRIES BREAKS    a hundred hits in bench_measured, for a profiler to count
 *     call PLUGIN time                           figures, a line each: NAME NANOSECONDS
 */
#include "tests/bench/bench.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) void bench_measured(bench *b, uint32_t calls);
void bench_measured(bench *b, uint32_t calls)
{
    for (uint32_t i = 0; i < calls; i++)
        bench_call(b, b->c, i % b->entries);
}

static int count(const char *plugin, char **arg)
{
    uint32_t inputs = (uint32_t)atoi(arg[0]), entries = (uint32_t)atoi(arg[1]), breaks = (uint32_t)atoi(arg[2]);
    bench *b = bench_open(plugin, "nearly-empty", (bench_fn){inputs, breaks, inputs == 1}, entries);
    bench_measured(b, 100);
    bench_close(b);
    return 0;
}

/* -- time ---------------------------------------------------------------------------------------------------------- */

/* The least of some rounds of about a hundredth of a second: what others on the machine add is no part of a figure. */
enum { ROUNDS = 9 };
typedef void (*body_fn)(void *arg, uint32_t n);
static double least(body_fn body, void *arg)
{
    double best = 1e300;
    uint32_t n = 16;
    for (double took = 0; took < 5e6; n *= 2) {
        double began = bench_now();
        body(arg, n);
        took = bench_now() - began;
    }
    for (int i = 0; i < ROUNDS; i++) {
        double began = bench_now();
        body(arg, n);
        double each = (bench_now() - began) / n;
        best = each < best ? each : best;
    }
    return best;
}

static void say(const char *name, double ns)
{
    printf("%s %.3f\n", name, ns);
    fflush(stdout);
}

static void nothing(void *arg)
{
    __asm__ volatile("" : : "r"(arg) : "memory");
}

static void (*volatile indirect)(void *) = nothing;
static void call_indirectly(void *arg, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        indirect(arg);
}

static void open_scopes(void *arg, uint32_t n)
{
    bench *b = arg;
    for (uint32_t i = 0; i < n; i++) {
        bp_scope_begin(b->c);
        bp_scope_end(b->c);
    }
}

static void call_it(void *arg, uint32_t n)
{
    bench *b = arg;
    for (uint32_t i = 0, e = 0; i < n; i++, e = e + 1 == b->entries ? 0 : e + 1)
        bench_call(b, b->c, e);
}

/* The least that a look at a tensor can be: a pointer followed, eight words compared. */
typedef struct { uint64_t words[8]; } record;
typedef struct { const record *want; record **got; uint32_t n; uint64_t differ; } floor_job;
static void compare_words(void *arg, uint32_t n)
{
    floor_job *j = arg;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < j->n; i++)
            for (uint32_t w = 0; w < 8; w++)
                j->differ |= j->want[i].words[w] ^ j->got[i]->words[w];
}

static void say_floor(void)
{
    enum { N = 100 };
    static record want[N], got[N], *at[N];
    for (int i = 0; i < N; i++)
        at[i] = &got[i];
    floor_job j = {want, at, N, 0};
    say("floor.tensor", least(compare_words, &j) / N);
    say("floor.call", least(call_indirectly, &j));
}

static void say_calls(const char *plugin)
{
    static const bench_fn inputs[] = {{1, 0, 1}, {2, 0, 0}, {10, 0, 0}, {100, 0, 0}, {1000, 0, 0}};
    char name[64];
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        bench *b = bench_open(plugin, "nearly-empty", inputs[i], 1);
        double scope = least(open_scopes, b);
        if (!i)
            say("scope", scope);
        snprintf(name, sizeof name, "inputs.%u", inputs[i].inputs);
        say(name, least(call_it, b) - scope);
        bench_close(b);
    }
    for (uint32_t e = 1; e <= BENCH_MAX_ENTRIES; e *= 2) {
        bench *b = bench_open(plugin, "nearly-empty", (bench_fn){2, 0, 0}, e);
        snprintf(name, sizeof name, "entries.%u", e);
        say(name, least(call_it, b) - least(open_scopes, b));
        bench_close(b);
    }
    for (uint32_t k = 0; k <= 3; k++) {
        bench *b = bench_open(plugin, "nearly-empty", (bench_fn){2, k, 0}, 1);
        snprintf(name, sizeof name, "breaks.%u", k);
        say(name, least(call_it, b) - least(open_scopes, b));
        bench_close(b);
    }
}

/* -- cold ---------------------------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of single calls, each after as much memory was written as no cache holds. */
static void say_cold(const char *plugin, uint32_t inputs)
{
    enum { TIMES = 15 };
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    size_t n = cache > (32 << 20) ? 2 * (size_t)cache : 64 << 20;
    n = n > (256 << 20) ? 256 << 20 : n;
    char *dirt = malloc(n), name[64];
    double took[TIMES];
    if (!dirt)
        bench_die(NULL, "out of memory");
    bench *b = bench_open(plugin, "nearly-empty", (bench_fn){inputs, 0, 0}, 1);
    for (int i = 0; i < TIMES; i++) {
        memset(dirt, i, n);
        __asm__ volatile("" : : "r"(dirt) : "memory");
        double began = bench_now();
        bench_call(b, b->c, 0);
        took[i] = bench_now() - began;
    }
    qsort(took, TIMES, sizeof *took, ascending);
    snprintf(name, sizeof name, "cold.%u", inputs);
    say(name, took[TIMES / 2]);
    bench_close(b);
    free(dirt);
}

/* -- threads ------------------------------------------------------------------------------------------------------- */

enum { THREADS = 8, CALLS = 200000 };
typedef struct { bench *b; pthread_barrier_t *start; } thread_job;

static void *call_in_thread(void *arg)
{
    thread_job *j = arg;
    bp_ctx *c = bp_ctx_new(j->b->rt);
    pthread_barrier_wait(j->start);
    for (uint32_t i = 0; i < CALLS; i++)
        bench_call(j->b, c, 0);
    bp_ctx_destroy(c);
    return NULL;
}

/* Time of a call on a processor, when n threads call one callable: on as many processors it would not grow. */
static void say_threads(const char *plugin, uint32_t n)
{
    bench *b = bench_open(plugin, "nearly-empty", (bench_fn){2, 0, 0}, 1);
    pthread_t threads[THREADS];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, n + 1);
    thread_job j = {b, &start};
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    for (uint32_t i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, call_in_thread, &j))
            bench_die(b->c, "pthread_create");
    pthread_barrier_wait(&start);
    double began = bench_now();
    for (uint32_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    double used = (double)(n < cpus ? n : cpus), took = bench_now() - began;
    char name[64];
    snprintf(name, sizeof name, "threads.%u", n);
    say(name, took * used / ((double)n * CALLS));
    pthread_barrier_destroy(&start);
    bench_close(b);
}

int main(int argc, char **argv)
{
    if (argc == 6 && !strcmp(argv[2], "count"))
        return count(argv[1], argv + 3);
    if (argc != 3 || strcmp(argv[2], "time") != 0) {
        fprintf(stderr, "usage: call PLUGIN count INPUTS ENTRIES BREAKS | call PLUGIN time\n");
        return 2;
    }
    say_floor();
    say_calls(argv[1]);
    say_cold(argv[1], 2);
    say_cold(argv[1], 100);
    say_threads(argv[1], 1);
    say_threads(argv[1], THREADS);
    return 0;
}
