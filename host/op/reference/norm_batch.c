/* Batch and instance normalization. Training measures the batch, and moves the running statistics toward it (variance
 * with n - 1); otherwise the running statistics are used as they are. */
#include "host/op/reference/loop.h"
#include "host/op/reference/norm.h"
#include "host/op/reference/part.h"
#include "host/op/rows.h"
#include <math.h>

/* The arguments that all these operators share. */
typedef struct {
    bp_tensor *x, *weight, *bias, *mean, *var; /* the last two: running, or NULL */
    bool training;
    double momentum, eps;
} batch;

static double get(const bp_tensor *t, int64_t i)
{
    const char *at = (const char *)tensor_ptr(t) + i * tensor_step(t, 0) * (int64_t)dtype_size(t->dtype);
    return dtype_load(t->dtype, at).f;
}

static void put(bp_tensor *t, int64_t i, double v)
{
    char *at = (char *)tensor_ptr(t) + i * tensor_step(t, 0) * (int64_t)dtype_size(t->dtype);
    dtype_store(t->dtype, at, (num){NUM_FLOAT, 0, v, 0});
}

/* Moves running statistics; `measured` has `groups` rows of one number a channel, whose mean counts. */
static void move_toward(bp_tensor *running, const bp_tensor *measured, int64_t groups, double factor, double momentum)
{
    if (!running)
        return;
    const double *m = tensor_ptr(measured);
    int64_t channels = tensor_dim(running, 0);
    for (int64_t i = 0; i < channels; i++) {
        double sum = 0;
        for (int64_t g = 0; g < groups; g++)
            sum += m[g * channels + i] * factor;
        put(running, i, momentum * (sum / (double)groups) + (1 - momentum) * get(running, i));
    }
    tensor_wrote(running);
}

/* Whether PyTorch keeps what it measures of a batch in the batch's half type: unless the parameters are float32. */
static bool keeps_halves(const batch *b)
{
    const bp_tensor *params[] = {b->weight, b->bias, b->mean, b->var};
    bool halves = b->x->dtype == BP_F16 || b->x->dtype == BP_BF16;
    for (uint32_t i = 0; i < 4; i++)
        halves = halves && (!params[i] || params[i]->dtype == b->x->dtype);
    return halves;
}

/* Rounds mean and variance where PyTorch does: both types keep the mean; bfloat16 also the sum of squares of n
 * elements, and its quotient. */
static void round_measured(bp_dtype d, const norm_stats *s, double n)
{
    double *mean = tensor_ptr(s->mean), *variance = tensor_ptr(s->scale);
    for (int64_t i = 0; i < tensor_nelem(s->mean); i++) {
        mean[i] = loop_round(d, mean[i]);
        if (d == BP_BF16)
            variance[i] = loop_round(d, variance[i] * n) / n;
    }
}

/* Measures x over mask, moves the running statistics, and leaves mean and 1 / sqrt(variance + eps). n: elements of a
 * group. */
static bp_status measure(bp_ctx *c, const op_row *op, const batch *b, uint64_t mask, norm_stats *s)
{
    TRY(norm_measure(c, op, b->x, mask, NAN, s));
    int64_t groups = mask & 1 ? 1 : tensor_dim(b->x, 0), nstats = tensor_nelem(s->mean);
    double n = nstats ? (double)(tensor_nelem(b->x) / nstats) : 0;
    bp_dtype d = keeps_halves(b) ? (bp_dtype)b->x->dtype : BP_F64;
    if (d != BP_F64)
        round_measured(d, s, n);
    move_toward(b->mean, s->mean, groups, 1, b->momentum);
    move_toward(b->var, s->scale, groups, n / (n - 1), b->momentum);
    double *variance = tensor_ptr(s->scale);
    for (int64_t i = 0; i < nstats; i++) {
        double v = d == BP_BF16 ? loop_round(d, variance[i]) : variance[i];
        variance[i] = v == 0 && b->eps == 0 ? 0 : loop_round(d, 1 / sqrt(v + b->eps));
    }
    return BP_OK;
}

/* The running statistics as those of x's dimension 1. */
static bp_status recall(bp_ctx *c, const batch *b, norm_stats *s)
{
    int64_t sizes[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < b->x->rank; d++)
        sizes[d] = d == 1 ? tensor_dim(b->x, 1) : 1;
    *s = (norm_stats){norm_new(c, b->x->rank, sizes), norm_new(c, b->x->rank, sizes)};
    if (!s->mean || !s->scale) {
        norm_forget(s);
        return c->diag.code;
    }
    for (int64_t i = 0; i < sizes[1]; i++) {
        ((double *)tensor_ptr(s->mean))[i] = get(b->mean, i);
        ((double *)tensor_ptr(s->scale))[i] = 1 / sqrt(get(b->var, i) + b->eps);
    }
    return BP_OK;
}

static void give(bp_tensor *out, const bp_tensor *from)
{
    if (tensor_nelem(out) > 0)
        dtype_convert(out->dtype, tensor_ptr(out), 1, BP_F64, tensor_ptr(from), 1, tensor_nelem(out));
}

/* Normalizes into k->out[0]; outputs 1 and 2, where there are, get the statistics (none in evaluation: they are
 * empty). */
static bp_status normalize(bp_ctx *c, op_call *k, const batch *b, uint64_t mask)
{
    if (tensor_nelem(b->x) == 0)
        return BP_OK;
    norm_stats s;
    TRY(b->training ? measure(c, k->op, b, mask, &s) : recall(c, b, &s));
    bp_tensor *weight = b->weight ? part_along(c, b->weight, b->x->rank, 1) : NULL;
    bp_tensor *bias = b->bias ? part_along(c, b->bias, b->x->rank, 1) : NULL;
    if (ctx_ok(c) && norm_apply(c, k->out[0], b->x, &s, weight, bias) == BP_OK && k->nout > 1) {
        give(k->out[1], s.mean);
        give(k->out[2], s.scale);
    }
    tensor_unref(weight);
    tensor_unref(bias);
    norm_forget(&s);
    return c->diag.code;
}

/* All dimensions but the channels'. */
static uint64_t batch_mask(const batch *b)
{
    return (~UINT64_C(0) >> (64 - b->x->rank)) & ~UINT64_C(2);
}

/* Arguments 0 to 4, then "training" where the operator has it, momentum and eps from position `at`. */
static batch read(const op_call *k, bool has_training, bool training)
{
    const bp_value *a = k->args;
    uint32_t at = has_training ? 6 : 5;
    return (batch){arg_tensor(a, 0), arg_tensor(a, 1), arg_tensor(a, 2), arg_tensor(a, 3), arg_tensor(a, 4),
                   has_training ? arg_bool(a, 5) : training, arg_float(a, at), arg_float(a, at + 1)};
}

bp_status kernel_batch_norm(bp_ctx *c, op_call *k)
{
    batch b = read(k, true, true);
    return normalize(c, k, &b, batch_mask(&b));
}

bp_status kernel_batch_norm_no_training(bp_ctx *c, op_call *k)
{
    batch b = read(k, false, false);
    return normalize(c, k, &b, batch_mask(&b));
}

bp_status kernel_batch_norm_with_update(bp_ctx *c, op_call *k)
{
    batch b = read(k, false, true);
    return normalize(c, k, &b, batch_mask(&b));
}

bp_status kernel_batch_norm_no_stats(bp_ctx *c, op_call *k)
{
    const bp_value *a = k->args;
    batch b = {arg_tensor(a, 0), arg_tensor(a, 1), arg_tensor(a, 2), NULL, NULL, true,
               arg_float(a, 4),  arg_float(a, 5)};
    return normalize(c, k, &b, batch_mask(&b));
}

/* The functional forms: running statistics are copied to the last two outputs, and moved there. */
static bp_status run_functional(bp_ctx *c, op_call *k, batch b)
{
    bp_tensor **moved[] = {&b.mean, &b.var};
    for (uint32_t i = 0; i < 2; i++) {
        bp_tensor *out = k->out[k->nout - 2 + i];
        TRY(tensor_copy(c, out, *moved[i]));
        *moved[i] = out;
    }
    return normalize(c, k, &b, batch_mask(&b));
}
bp_status kernel_batch_norm_functional(bp_ctx *c, op_call *k) { return run_functional(c, k, read(k, true, true)); }
bp_status kernel_batch_norm_update_functional(bp_ctx *c, op_call *k)
{
    return run_functional(c, k, read(k, false, true));
}

/* Each channel of each instance is a group of its own. */
bp_status kernel_instance_norm(bp_ctx *c, op_call *k)
{
    batch b = read(k, true, true);
    return normalize(c, k, &b, batch_mask(&b) & ~UINT64_C(1));
}
