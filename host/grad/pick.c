/* Derivatives of what picks elements along a dimension, or keeps some of them at random: a gradient goes to where its
 * element came from. */
#include "host/grad/math.h"

/* Orders and extremes: result 1 says where. */
bp_status grad_picked(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self"), *grad = g->grads[0], *where = g->results[1];
    uint32_t rank = grad_rank(self), dim = grad_arg_wrapped(c, g, "dim", rank);
    if (grad_given(g, "keepdim") && rank && !grad_arg_bool(g, "keepdim")) {
        grad = bp_aten_unsqueeze_default(c, grad, dim);
        where = bp_aten_unsqueeze_default(c, where, dim);
    }
    bp_tensor *zeros = grad_new_zeros(c, grad, grad_sizes(self));
    grad_give(g, "self", bp_aten_scatter_src(c, zeros, dim, where, grad));
    return grad_done(c);
}

bp_status grad_native_dropout(bp_ctx *c, grad_call *g)
{
    double p = grad_arg_float(g, "p");
    bool trains = !grad_given(g, "train") || grad_arg_bool(g, "train");
    bp_tensor *grad = grad_mul(c, g->grads[0], g->results[1]);
    if (trains)
        grad = grad_scaled(c, grad, p == 1 ? 0 : 1 / (1 - p));
    grad_give(g, "input", grad);
    return grad_done(c);
}
