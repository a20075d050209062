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

static bp_tensor *call(bp_ctx *c, const char *target, bp_value a, bp_value b, bp_value k, bp_value l)
{
    const op_row *op = op_by_target(target);
    bp_value *args = NULL;
    bp_tensor *out[1] = {NULL};
    if (!ctx_ok(c) || op_bind_ordered(c, op, op->schema->nargs, (bp_value[]){a, b, k, l, value_int(1)}, &args) != BP_OK)
        return NULL;
    op_call o = {.op = op, .args = args, .nargs = op->schema->nargs, .out = out, .nout = 1};
    return op_dispatch(c, &o) == BP_OK ? out[0] : NULL;
}

#define CALL(target, a, b, k, l) (last = y, y = call(c, "aten." target, a, b, k, l), tensor_unref(last))

/* Seven operators; the result has the sizes of x, which is given up. */
static bp_tensor *turn(bp_ctx *c, bp_tensor *x, bp_tensor *weight, bp_tensor *bias)
{
    bp_value none = value_none(), flat[] = {value_int(-1), value_int(64)}, both[2];
    bp_value whole[] = {value_dim(x->sizes[0]), value_dim(x->sizes[1]), value_int(64)};
    bp_tensor *y = tensor_ref(x), *last;
    CALL("view.default", value_tensor(y), value_list(flat, 2), none, none);
    CALL("mm.default", value_tensor(y), value_tensor(weight), none, none);
    CALL("add.Tensor", value_tensor(y), value_tensor(bias), value_int(1), none);
    CALL("view.default", value_tensor(y), value_list(whole, 3), none, none);
    both[0] = value_tensor(y);
    both[1] = value_tensor(x);
    CALL("cat.default", value_list(both, 2), value_int(1), none, none);
    CALL("slice.Tensor", value_tensor(y), value_int(1), value_int(0), whole[1]);
    CALL("add.Tensor", value_tensor(y), value_tensor(x), value_int(1), none);
    tensor_unref(x);
    return y;
}

static void infer(job *j)
{
    bp_ctx *c = j->c;
    bp_tensor *x = fake(c, 3, (bp_dim[]){size(j, "x0", 8), size(j, "x1", 17), dim_const(64)});
    bp_tensor *weight = fake(c, 2, (bp_dim[]){dim_const(64), dim_const(64)});
    bp_tensor *bias = fake(c, 1, (bp_dim[]){dim_const(64)}), *y = tensor_ref(x);
    for (uint32_t i = 0; i < j->n && ctx_ok(c); i += 7)
        y = turn(c, y, weight, bias);
    j->wrong = !ctx_ok(c) || !dim_same(y->sizes[1], x->sizes[1]);
    tensor_unref(y);
    tensor_unref(x);
    tensor_unref(weight);
    tensor_unref(bias);
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
        if (!guards) { /* what is made at the first use, the operators' table above all, is not measured */
        job first = {.c = c, .env = env, .n = 7};
        infer(&first);
        j.wrong |= first.wrong;
    }
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
