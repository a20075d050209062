/* Losses. */
#include "host/nn/nn.h"

static int64_t aten_reduction(bp_ctx *c, bp_nn_reduction r)
{
    if (r == BP_NN_MEAN || r == BP_NN_SUM)
        return r == BP_NN_MEAN ? 1 : 2;
    if (r != BP_NN_NONE && ctx_ok(c))
        ctx_fail(c, BP_INVALID_ARGUMENT, "%d is no reduction: one of bp_nn_reduction is expected", (int)r);
    return 0;
}

/* The sum over the batch's size, as information theory has it. */
static bp_tensor *kl_div(bp_ctx *c, bp_tensor *x, bp_tensor *target, const bp_nn_loss_options *o, int64_t reduction)
{
    bp_tensor *sum = bp_aten_kl_div_default(c, x, target, o->batch_mean ? 2 : reduction, o->log_target);
    if (!o->batch_mean || !sum || bp_tensor_rank(x) == 0)
        return sum;
    return bp_aten_div_scalar(c, sum, bp_scalar_dim(bp_size(c, x, 0)));
}

bp_tensor *bp_nn_loss_at(bp_ctx *c, bp_nn_loss_kind kind, bp_tensor *x, bp_tensor *target,
                         const bp_nn_loss_options *given, size_t size)
{
    NN_OPTIONS(bp_nn_loss_options, o, given, size);
    int64_t reduction = aten_reduction(c, o.reduction);
    double beta = o.beta != 0 ? o.beta : 1;
    bp_dim ignore = bp_dim_of(o.ignore_index.kind == BP_SCALAR_UNSET ? -100 : bp_int_of_(o.ignore_index));
    switch (kind) {
    case BP_NN_MSE: return bp_aten_mse_loss_default(c, x, target, reduction);
    case BP_NN_L1: return bp_aten_l1_loss_default(c, x, target, reduction);
    case BP_NN_SMOOTH_L1: return bp_aten_smooth_l1_loss_default(c, x, target, reduction, beta);
    case BP_NN_HUBER: return bp_aten_huber_loss_default(c, x, target, reduction, beta);
    case BP_NN_BCE: return bp_aten_binary_cross_entropy_default(c, x, target, o.weight, reduction);
    case BP_NN_BCE_WITH_LOGITS:
        return bp_aten_binary_cross_entropy_with_logits_default(c, x, target, o.weight, o.pos_weight, reduction);
    case BP_NN_KL_DIV: return kl_div(c, x, target, &o, reduction);
    case BP_NN_NLL: return bp_aten_nll_loss_nd_default(c, x, target, o.weight, reduction, ignore);
    case BP_NN_CROSS_ENTROPY:
        return bp_aten_cross_entropy_loss_default(c, x, target, o.weight, reduction, ignore, o.label_smoothing);
    }
    if (ctx_ok(c))
        ctx_fail(c, BP_INVALID_ARGUMENT, "%d is no kind of loss: one of bp_nn_loss_kind is expected", (int)kind);
    return NULL;
}
