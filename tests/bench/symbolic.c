/* What symbolic sizes cost, for symbolic.py.
 *
 *     symbolic shapes static|dynamic NODES             shapes through a chain of views, products, sums, concatenations
 *                                                      and slices, of sizes that are numbers or symbols
 *     symbolic compile|call static|dynamic NODES       the same as a function that is compiled for eager and called;
 *                                                      called again
 *     symbolic guards static CALLS                     that many checks of twenty conditions on shapes
 *
 * What is measured runs in bench_measured. Prints the ns that it took. */
#include "host/op/op.h"
#include "host/sym/env.h"
#include "tests/bench/process.h"
#include <backplane/backplane.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    bp_ctx *c;
    sym_env *env;
    bool dynamic;
    uint32_t n, wrong;
    sym_program *program;
    bp_callable *g;
    bp_tensor *in[3];
} job;

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

/* -- a compile ----------------------------------------------------------------------------------------------------- */

static void function(bp_ctx *c, bp_frame *f)
{
    const job *j = bp_user(f);
    bp_tensor *x = bp_arg(f, 0, "x"), *weight = bp_arg(f, 1, "weight"), *bias = bp_arg(f, 2, "bias");
    for (uint32_t i = 0; i < j->n && ctx_ok(c); i += 7) {
        bp_tensor *y = bp_view_default(c, x, BP_DIMS(-1, 4));
        y = bp_view_default(c, bp_add(c, bp_mm(c, y, weight), bias), BP_DIMS(bp_size(c, x, 0), bp_size(c, x, 1), 4));
        y = bp_slice(c, bp_cat(c, BP_TENSORS(y, x), 1), 1, .end = bp_scalar_dim(bp_size(c, x, 1)));
        x = bp_add(c, y, x);
    }
    bp_return(f, x);
}

static void call_function(job *j)
{
    j->wrong |= !j->g || !bp_call1(j->c, j->g, 3, j->in);
}

static void compile_function(job *j)
{
    j->g = bp_compile(j->c, function, &(bp_compile_options){.backend = "eager", .user = j, .fullgraph = 1,
                                                            .dynamic = j->dynamic ? 1 : -1});
    call_function(j);
}

static void make_inputs(job *j)
{
    float ones[60];
    for (int i = 0; i < 60; i++)
        ones[i] = 1;
    j->in[0] = bp_tensor_from(j->c, BP_F32, 3, (int64_t[]){3, 5, 4}, ones);
    j->in[1] = bp_tensor_from(j->c, BP_F32, 2, (int64_t[]){4, 4}, ones);
    j->in[2] = bp_tensor_from(j->c, BP_F32, 1, (int64_t[]){4}, ones);
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

static void end(job *j)
{
    bp_callable_unref(j->g);
    sym_program_free(j->program);
    sym_env_unref(j->env);
    bp_ctx_destroy(j->c);
}

/* What is made at the first use, the operators' table above all, is not measured. */
static void prepare(job *j, const char *what)
{
    job first = {.c = j->c, .env = j->env, .n = 7};
    infer(&first);
    j->wrong |= first.wrong;
    make_inputs(j);
    if (strcmp(what, "guards") == 0)
        j->wrong |= compile(j) != BP_OK;
    if (strcmp(what, "call") == 0)
        compile_function(j);
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*body)(job *j); } WHAT[] = {
        {"shapes", infer}, {"compile", compile_function}, {"call", call_function}, {"guards", check},
    };
    job j = {.c = bp_ctx_new(NULL), .env = sym_env_new()};
    if (argc != 4 || !j.c || !j.env) {
        fputs("usage: symbolic shapes|compile|call|guards static|dynamic N\n", stderr);
        return 2;
    }
    j.dynamic = strcmp(argv[2], "dynamic") == 0;
    j.n = (uint32_t)strtoul(argv[3], NULL, 10);
    sym_scope former = sym_push(strcmp(argv[1], "shapes") == 0 || strcmp(argv[1], "guards") == 0 ? j.env : NULL, j.c);
    prepare(&j, argv[1]);
    int64_t from = now_ns();
    for (size_t i = 0; i < sizeof WHAT / sizeof *WHAT; i++)
        if (strcmp(argv[1], WHAT[i].name) == 0)
            bench_measured(&j, WHAT[i].body);
    printf("%" PRId64 "\n", now_ns() - from);
    if (j.wrong || sym_fact_count(j.env))
        fprintf(stderr, "symbolic: %s\n", bp_error(j.c) ? bp_error_text(j.c) : "what was computed is not right");
    sym_pop(former);
    end(&j);
    return j.wrong != 0;
}
