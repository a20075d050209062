/* A block's joint graph under one partition, for partition.py.
 *
 *     partition BLOCK default|min-cut
 *
 * Prints, in a line: bytes saved for the backward, operations computed again, the least ns of a forward and backward on
 * the reference kernels, the most bytes of memory that the process has had meanwhile, and a hash of all results. */
#include "tests/bench/process.h"
#include "tests/lib/blocks.h"
#include "host/base/ctx.h"
#include "host/tensor/tensor.h"
#include "sdk/base/hash.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 256, RUNS = 4 };

/* From here on the peak is counted anew, where the system lets us. */
static void forget_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (f && (fputs("5", f) < 0))
        fputs("partition: the peak is that of the whole process\n", stderr);
    if (f)
        fclose(f);
}

typedef struct {
    bp_ctx *c;
    const joint *j;
    const partition *p;
    bp_tensor *in[MOST]; /* primals, then tangents */
    uint64_t hash;
} job;

static bp_status fill(job *k, const block *b)
{
    node_id at[MOST];
    uint32_t n = graph_placeholders(&k->j->gm->g, at, MOST);
    for (uint32_t i = 0; i < n && i < MOST; i++) {
        const graph_node *node = graph_get(&k->j->gm->g, at[i]);
        if (i < k->j->nprimals) {
            k->in[i] = strcmp(node->target, "x") == 0 ? b->x : bp_module_get(k->c, b->m, node->target);
            continue;
        }
        k->in[i] = tensor_new(k->c, node->metas);
        for (int64_t e = 0; k->in[i] && e < tensor_nelem(k->in[i]); e++)
            ((float *)tensor_ptr(k->in[i]))[e] = 1e-3F * (float)(e % 7);
    }
    return k->c->diag.code;
}

static void drop(job *k, bp_tensor **t, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (t[i])
            k->hash = hash_bytes(tensor_ptr(t[i]), tensor_span_bytes(t[i]), k->hash);
        tensor_unref(t[i]);
    }
}

static bp_status step(job *k)
{
    const joint *j = k->j;
    bp_tensor *given[MOST] = {0}, *back[MOST] = {0}, *grads[MOST] = {0};
    uint32_t nback = k->p->nsaved + j->ntangents, ngrads = graph_output_count(&k->p->backward->g);
    if (j->noutputs + k->p->nsaved > MOST || nback > MOST || ngrads > MOST)
        return ctx_fail(k->c, BP_INTERNAL, "the block has more than %d values", MOST);
    TRY(graph_run(k->c, k->p->forward, k->in, j->nprimals, given, j->noutputs + k->p->nsaved, NULL, NULL));
    memcpy(back, given + j->noutputs, k->p->nsaved * sizeof *back);
    memcpy(back + k->p->nsaved, k->in + j->nprimals, j->ntangents * sizeof *back);
    bp_status st = graph_run(k->c, k->p->backward, back, nback, grads, ngrads, NULL, NULL);
    k->hash = 0;
    drop(k, given, j->noutputs);
    for (uint32_t i = 0; i < k->p->nsaved; i++)
        tensor_unref(given[j->noutputs + i]);
    drop(k, grads, ngrads);
    return st;
}

static bp_status measure(job *k)
{
    int64_t best = INT64_MAX;
    k->c->ambient.grad_enabled = 0;
    TRY(step(k));
    forget_peak();
    for (int i = 0; i < RUNS; i++) {
        int64_t began = now_ns();
        TRY(step(k));
        int64_t ns = now_ns() - began;
        best = ns < best ? ns : best;
    }
    printf("%" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 " %016" PRIx64 "\n", k->p->saved_bytes,
           k->p->recomputed_flops, best, peak_bytes(), k->hash);
    return BP_OK;
}

static bp_status run(bp_ctx *c, const char *name, int32_t kind)
{
    block b;
    joint j;
    partition p;
    partition_options o = PARTITION_DEFAULTS;
    o.kind = kind;
    TRY(block_make(c, name, true, &b));
    TRY(block_joint(c, &b, &j));
    TRY(joint_partition(c, &j, &o, &p));
    job k = {.c = c, .j = &j, .p = &p};
    bp_status st = fill(&k, &b);
    st = st == BP_OK ? measure(&k) : st;
    for (uint32_t i = j.nprimals; i < j.nprimals + j.ntangents; i++)
        tensor_unref(k.in[i]);
    partition_fini(&p);
    joint_fini(&j);
    block_fini(&b);
    return st;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    bp_ctx *c = bp_ctx_new(NULL);
    if (!c)
        return 1;
    bp_scope_begin(c);
    int failed = run(c, argv[1], strcmp(argv[2], "default") == 0 ? PARTITION_DEFAULT : PARTITION_MIN_CUT) != BP_OK;
    if (failed)
        fprintf(stderr, "partition: %s\n", bp_error_text(c));
    bp_scope_end(c);
    bp_ctx_destroy(c);
    return failed;
}
