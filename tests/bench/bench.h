/* What the benches share: a runtime whose one backend does next to nothing, functions of any number of inputs, breaks
 * and operators, and a clock. They are a user's programs: the public headers only. */
#ifndef TESTS_BENCH_BENCH_H
#define TESTS_BENCH_BENCH_H
#include <backplane/backplane.h>
#include <stdio.h>

enum { BENCH_MAX_INPUTS = 1000, BENCH_MAX_ENTRIES = 8 };

/* A function: adds its inputs up, then asks `breaks` times whether the sum is negative, then adds `nodes` times. */
typedef struct { uint32_t inputs, breaks, nodes; } bench_fn;

/* A function with its inputs, which are ones (twos) of two dimensions, a set of them an entry. */
typedef struct {
    bp_runtime *rt;
    bp_ctx *c;
    bp_callable *g;
    bench_fn fn;
    bp_value in[BENCH_MAX_ENTRIES][BENCH_MAX_INPUTS];
    bp_tensor *tensors[BENCH_MAX_ENTRIES][BENCH_MAX_INPUTS];
    uint32_t entries;
} bench;

/* backend: "nearly-empty", of the plugin at that path, or a name of the host's. Ends the process on an error. */
bench *bench_open(const char *plugin, const char *backend, bench_fn fn, uint32_t entries);
void bench_close(bench *b);
/* One call with the inputs of an entry, on context c, in a scope of its own. Ends the process on an error. */
void bench_call(bench *b, bp_ctx *c, uint32_t entry);
/* The story of the context, and the end of the process. */
void bench_die(bp_ctx *c, const char *what);
/* Nanoseconds of a monotonic clock. */
double bench_now(void);
#endif
