/* Functions and runtimes of the benches. */
#include "tests/bench/bench.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void bench_die(bp_ctx *c, const char *what)
{
    fprintf(stderr, "bench: %s: %s\n", what, c ? bp_error_text(c) : "no context");
    exit(1);
}

double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static const char *input_name(uint32_t i)
{
    static char names[BENCH_MAX_INPUTS][12];
    if (!names[i][0])
        snprintf(names[i], sizeof names[i], "x%u", i);
    return names[i];
}

static void function(bp_ctx *c, bp_frame *f)
{
    const bench_fn *fn = bp_user(f);
    bp_tensor *x = bp_arg(f, 0, input_name(0));
    for (uint32_t i = 1; i < fn->inputs; i++)
        x = bp_add(c, x, bp_arg(f, i, input_name(i)));
    for (uint32_t i = 0; i < fn->breaks; i++)
        x = bp_is_true(c, bp_ge(c, bp_sum(c, x), 0)) ? bp_mul(c, x, 1) : bp_neg(c, x);
    for (uint32_t i = 0; i < fn->nodes; i++)
        x = bp_add(c, x, 1);
    bp_return(f, x);
}

/* The config names the plugin; it is read once, and gone. */
static bp_runtime *make_runtime(const char *plugin)
{
    const char *tmp = getenv("TMPDIR");
    char path[512];
    snprintf(path, sizeof path, "%s/bench-XXXXXX", tmp ? tmp : "/tmp");
    int fd = mkstemp(path);
    FILE *ini = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!ini)
        return NULL;
    fprintf(ini, "[host]\nprobe = off\n[backend nearly-empty]\nlibrary = %s\n", plugin);
    fclose(ini);
    bp_runtime *rt = bp_runtime_new(path);
    bp_ctx *c = bp_ctx_new(rt);
    const char *state, *why;
    if (!c || bp_backend_state(c, "nearly-empty", 1, &state, &why) != BP_OK || strcmp(state, "ok") != 0)
        bench_die(c, plugin);
    bp_ctx_destroy(c);
    unlink(path);
    return rt;
}

static void make_inputs(bench *b)
{
    enum { MOST = 2 * (3 + BENCH_MAX_ENTRIES) };
    float ones[MOST];
    for (int i = 0; i < MOST; i++)
        ones[i] = 1;
    for (uint32_t e = 0; e < b->entries; e++)
        for (uint32_t i = 0; i < b->fn.inputs; i++) {
            bp_tensor *t = bp_tensor_from(b->c, BP_F32, 2, (int64_t[]){2, 3 + (int64_t)e}, ones);
            b->tensors[e][i] = bp_keep(b->c, t);
            b->in[e][i] = bp_arg_of_tensor(t);
        }
}

bench *bench_open(const char *plugin, const char *backend, bench_fn fn, uint32_t entries)
{
    bench *b = calloc(1, sizeof *b);
    if (!b)
        bench_die(NULL, "out of memory");
    *b = (bench){.rt = make_runtime(plugin), .fn = fn, .entries = entries};
    b->c = bp_ctx_new(b->rt);
    make_inputs(b);
    bp_compile_options o = {.backend = backend, .user = &b->fn, .dynamic = -1};
    b->g = bp_compile(b->c, function, &o);
    if (!b->g)
        bench_die(b->c, "bp_compile");
    for (uint32_t k = 0; k < 40; k++)
        bench_call(b, b->c, k % entries);
    bp_callable_stats s = {.size = sizeof s};
    bp_stats(b->c, b->g, &s);
    if (s.captures != entries || s.hits != 40 - entries || s.eager_calls) {
        fprintf(stderr, "bench: %u captures, %u hits, %u eager calls in 40 calls of %u entries\n", s.captures, s.hits,
                s.eager_calls, entries);
        exit(1);
    }
    return b;
}

void bench_close(bench *b)
{
    bp_callable_unref(b->g);
    for (uint32_t e = 0; e < b->entries; e++)
        for (uint32_t i = 0; i < b->fn.inputs; i++)
            bp_tensor_unref(b->tensors[e][i]);
    bp_ctx_destroy(b->c);
    bp_runtime_unref(b->rt);
    free(b);
}

void bench_call(bench *b, bp_ctx *c, uint32_t entry)
{
    bp_args args = {b->in[entry], b->fn.inputs};
    bp_tensor *at[1];
    bp_outputs outs = {at, 0, 1};
    bp_scope_begin(c);
    if (bp_call(c, b->g, &args, &outs) != BP_OK)
        bench_die(c, "bp_call");
    bp_scope_end(c);
}
