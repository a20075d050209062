/* Matrix products of strided operands: out = alpha * (a b) + beta * add, a batch at a time.
 *
 * Operands are packed into blocks of the accumulation type (float for float and the halves, double, 64-bit integers
 * that wrap), so strides may be anything, 0 included. A result is rounded once, when it is stored. */
#ifndef HOST_OP_REFERENCE_GEMM_H
#define HOST_OP_REFERENCE_GEMM_H
#include "host/tensor/tensor.h"

/* A matrix, or a batch of them: strides in elements of the job's type. */
typedef struct { const void *at; int64_t row, col, batch; } gemm_in;

typedef struct {
    bp_dtype dtype;           /* of every operand and of the result; not bool */
    int64_t batch, m, n, k;
    gemm_in a, b;             /* m x k and k x n */
    gemm_in add;              /* m x n; at NULL: nothing is added. May be the result itself */
    bp_scalar alpha, beta;    /* kind UNSET: 1 */
    void *out;
    int64_t out_row, out_col, out_batch;
} gemm_job;

/* Runs a job, on several threads when it is large. The only failure is memory. A beta of 0 does not read `add`. */
bp_status gemm_run(bp_ctx *c, const gemm_job *job);
/* The same where no context may be touched; false: out of memory. */
bool gemm_try(const gemm_job *job);
#endif
