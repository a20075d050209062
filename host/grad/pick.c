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

/* Parts of self one behind the other, as a split at rising places gives them. */
bp_status grad_tensor_split(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self");
    uint32_t dim = grad_arg_wrapped(c, g, "dim", grad_rank(self));
    bp_tensor **parts = arena_array(&c->scratch, g->nresults, sizeof *parts);
    bp_dim all = dim_const(0);
    if (!parts)
        return ctx_nomem(c);
    for (uint32_t i = 0; i < g->nresults; i++) {
        parts[i] = grad_of(c, g, i);
        all = dim_add(c, all, grad_size(parts[i], (int32_t)dim));
    }
    if (ctx_ok(c) && !dim_eq(all, grad_size(self, (int32_t)dim)))
        return ctx_fail(c, BP_UNIMPLEMENTED, "%s: parts that overlap have no derivative", g->op->label);
    grad_give(g, "self", bp_aten_cat_default(c, (bp_tensors){parts, g->nresults}, dim));
    return grad_done(c);
}
