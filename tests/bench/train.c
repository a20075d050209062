/* A training step of a transformer block of BERT-base size, served to train.py.
 *
 *     train BACKEND|tape
 *
 * Reads "run N" and answers the median of N steps in ns; "peak", the most memory that the process has had, in bytes;
 * "loss", that of the last step. The block's weights come from the file that train.py wrote (argument 2). */
#include "tests/bench/process.h"
#include <backplane/nn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 768, HIDDEN = 3072, HEADS = 12, MOST_RUNS = 100 };
static const bp_nn_encoder_options BLOCK = {.heads = HEADS, .activation = BP_NN_GELU, .train = 1};

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* (x) -> mean of the squares of the block's results. */
static void loss_of(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_tensor *y = bp_nn_encoder_layer(c, f, bp_user(f), "", x, &BLOCK);
    bp_return(f, bp_mean(c, bp_mul(c, y, y)));
}

typedef struct {
    bp_ctx *c;
    bp_module *m;
    bp_callable *loss;
    bp_nn_optimizer *optimizer;
    bp_tensor *x;
    double last; /* loss */
} job;

static void step(job *j)
{
    bp_scope_begin(j->c);
    bp_nn_optimizer_zero_grad(j->c, j->optimizer);
    bp_tensor *loss = bp_call1(j->c, j->loss, 1, &j->x);
    bp_backward(j->c, loss, NULL, 0);
    bp_nn_optimizer_step(j->c, j->optimizer);
    j->last = bp_item_float(j->c, loss);
    bp_scope_end(j->c);
}

static int64_t median_of(job *j, int n)
{
    int64_t ns[MOST_RUNS];
    for (int i = 0; i < n; i++) {
        int64_t began = now_ns();
        step(j);
        ns[i] = now_ns() - began;
    }
    qsort(ns, (size_t)n, sizeof *ns, compare);
    return ns[n / 2];
}

static void serve(job *j)
{
    char line[64];
    int n;
    while (bp_error(j->c) == BP_OK && fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "run %d", &n) == 1 && n > 0 && n <= MOST_RUNS)
            printf("%" PRId64 "\n", median_of(j, n));
        else if (strcmp(line, "peak\n") == 0)
            printf("%" PRId64 "\n", peak_bytes());
        else
            printf("%.9g\n", j->last);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    job j = {.c = bp_ctx_new(NULL)};
    const char *backend = strcmp(argv[1], "tape") == 0 ? NULL : argv[1];
    bp_scope_begin(j.c);
    j.m = bp_module_new(j.c);
    bp_module_load(j.c, j.m, argv[2]);
    j.x = bp_module_get(j.c, j.m, "x");
    bp_module_set_requires_grad(j.c, j.m, 1);
    bp_tensor_set_requires_grad(j.c, j.x, 0);
    j.loss = bp_compile(j.c, loss_of, &(bp_compile_options){.backend = backend, .user = j.m, .disable = !backend});
    j.optimizer = bp_nn_optimizer_new(j.c, BP_NN_SGD, j.m, &(bp_nn_optimizer_options){.lr = 1e-3, .backend = backend,
                                                                                    .disable = !backend});
    if (bp_error(j.c) == BP_OK)
        serve(&j);
    int failed = bp_error(j.c) != BP_OK;
    if (failed)
        fprintf(stderr, "train: %s\n", bp_error_text(j.c));
    bp_nn_optimizer_unref(j.optimizer);
    bp_callable_unref(j.loss);
    bp_module_unref(j.m);
    bp_scope_end(j.c);
    bp_ctx_destroy(j.c);
    return failed;
}
