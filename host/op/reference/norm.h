/* What the normalizations share: statistics of groups of elements, in double, and their use on each element. */
#ifndef HOST_OP_REFERENCE_NORM_H
#define HOST_OP_REFERENCE_NORM_H
#include "host/op/op.h"

/* Mean and 1 / sqrt(variance + eps) of groups, f64, of sizes that broadcast with what they were taken from. */
typedef struct { bp_tensor *mean, *scale; } norm_stats;

/* Statistics of x over the dimensions in mask. For scale as plain variance: eps NaN. On failure both are NULL. */
bp_status norm_measure(bp_ctx *c, const op_row *op, const bp_tensor *x, uint64_t mask, double eps, norm_stats *out);
void norm_forget(norm_stats *s);
/* out = (x - mean) * scale * weight + bias; weight and bias broadcast, and may be NULL. Rounded once. */
bp_status norm_apply(bp_ctx *c, bp_tensor *out, bp_tensor *x, const norm_stats *s, bp_tensor *weight, bp_tensor *bias);
/* A new f64 tensor of these sizes. */
bp_tensor *norm_new(bp_ctx *c, uint32_t rank, const int64_t *sizes);
#endif
