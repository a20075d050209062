/* What symbolic sizes cost, for symbolic.py.
 *
 *     symbolic static|dynamic NODES    shapes through a chain of views, products, sums, concatenations and slices, of
 *                                      sizes that are numbers or symbols, in bench_measured
 *     symbolic guards CALLS            that many checks of twenty conditions on shapes, in bench_measured
 *
 * Prints the ns that it took. */
#include "host/op/op.h"
#include "host/sym/env.h"
#include "tests/bench/process.h"
#include <backplane/backplane.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct { bp_ctx *c; sym_env *env; bool dynamic; uint32_t n, wrong; sym_program *program; } job;

__attribute__((noinline)) void bench_measured(job *j, void (*body)(job *j));
void bench_measured(job *j, void (*body)(job *j))
{
    body(j);
}

/* -- shapes -------------------------------------------------------------------------------------------------------- */

static bp_dim size(job *j, const char *of, int64_t hint)
{
    return j->dynamic ? sym_add_symbol(j->env, j->c, &(sym_symbol){.of = of, .hint = hint, .min = 2, .max = INT64_MAX})
                      : dim_const(hint);
}

static bp_tensor *fake(bp_ctx *c, uint32_t rank, const bp_dim *sizes)
{
    bp_dim own[4], strides[4], step = dim_const(1);
    for (uint32_t d = rank; d-- > 0; step = dim_mul(c, step, sizes[d])) {
        own[d] = sizes[d];
        strides[d] = step;
    }
    return tensor_new_fake(c, &(tensor_meta){BP_F32, {BP_CPU, 0}, rank, own, strides, dim_const(0)});
}

/* Seven operators; the result has the sizes of x. */
static bp_tensor *turn(bp_ctx *c, bp_tensor *x, bp_tensor *weight, bp_tensor *bias)
{
    bp_dim batch = bp_size(c, x, 0), length = bp_size(c, x, 1);
    bp_tensor *y = bp_view_default(c, x, BP_DIMS(-1, 64));
    y = bp_add(c, bp_mm(c, y, weight), bias);
    y = bp_view_default(c, y, BP_DIMS(batch, length, 64));
    y = bp_cat(c, BP_TENSORS(y, x), 1);
    return bp_add(c, bp_slice(c, y, 1, .start = bp_scalar_int(0), .end = bp_scalar_dim(length)), x);
}

static void infer(job *j)
{
    bp_ctx *c = j->c;
    bp_scope_begin(c);
    bp_tensor *x = fake(c, 3, (bp_dim[]){size(j, "x0", 8), size(j, "x1", 17), dim_const(64)});
    bp_tensor *weight = fake(c, 2, (bp_dim[]){dim_const(64), dim_const(64)});
    bp_tensor *bias = fake(c, 1, (bp_dim[]){dim_const(64)}), *y = x;
    for (uint32_t i = 0; i < j->n && ctx_ok(c); i += 7)
        y = turn(c, y, weight, bias);
    j->wrong = !ctx_ok(c) || !dim_same(y->sizes[1], x->sizes[1]);
    tensor_unref(x);
    tensor_unref(weight);
    tensor_unref(bias);
    bp_scope_end(c);
}

/* -- guards -------------------------------------------------------------------------------------------------------- */

static void check(job *j)
{
    static const int64_t VALUES[] = {8, 17, 64, 3};
    for (uint32_t i = 0; i < j->n; i++)
        j->wrong |= sym_first_false(j->program, VALUES) != 20;
}

/* What models ask: bounds, equal sizes, remainders, that something is no more than something else. */
static bp_status compile(job *j)
{
    static const char *const ASKED[] = {
        "a >= 2", "b >= 2", "d >= 2", "e >= 2", "a <= 512", "b <= 4096", "d == 64", "e == 3", "a != 9", "b != 16",
        "a < b", "a != d", "e <= a", "b < d", "Mod(d, 8) == 0", "Mod(a, 4) == 0", "a*b <= 2048", "a*b*d >= 1024",
        "4*a + b <= 1000", "(b + 1)//2 >= 5",
    };
    bp_dim d[20];
    size_t offset;
    for (int k = 0; k < 4; k++)
        sym_add_symbol(j->env, j->c, &(sym_symbol){.name = (const char *const[]){"a", "b", "d", "e"}[k],
                                                   .hint = 8, .min = 0, .max = INT64_MAX});
    for (int i = 0; i < 20; i++)
        TRY(sym_parse(j->env, j->c, ASKED[i], strlen(ASKED[i]), &d[i], &offset));
    j->program = sym_compile(j->env, d, 20);
    return j->program ? BP_OK : BP_RESOURCE_EXHAUSTED;
}

int main(int argc, char **argv)
{
    bp_ctx *c = bp_ctx_new(NULL);
    sym_env *env = sym_env_new();
    bool guards = argc == 3 && strcmp(argv[1], "guards") == 0;
    if (argc != 3 || !c || !env) {
        fputs("usage: symbolic static|dynamic|guards N\n", stderr);
        return 2;
    }
    job j = {.c = c, .env = env, .dynamic = strcmp(argv[1], "dynamic") == 0, .n = (uint32_t)strtoul(argv[2], NULL, 10)};
    sym_scope former = sym_push(env, c);
    j.wrong = guards && compile(&j) != BP_OK;
    int64_t from = now_ns();
    bench_measured(&j, guards ? check : infer);
    printf("%" PRId64 "\n", now_ns() - from);
    j.wrong |= !guards && sym_fact_count(env) != 0;
    if (j.wrong)
        fprintf(stderr, "symbolic: %s\n", bp_error(c) ? bp_error_text(c) : "what was computed is not what it should be");
    sym_pop(former);
    sym_program_free(j.program);
    sym_env_unref(env);
    bp_ctx_destroy(c);
    return j.wrong != 0;
}
