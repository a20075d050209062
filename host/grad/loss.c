/* Derivatives of losses, and of their gradients. A gradient of a loss is its incoming gradient times a slope, divided
 * by the number of elements where the loss is a mean: so is its own derivative, with the slope's. */
#include "host/grad/math.h"

enum { MEAN = 1 };

/* t divided by the number of elements of `self` if the loss is a mean. */
static bp_tensor *mean_of(bp_ctx *c, const grad_call *g, bp_tensor *t)
{
    int64_t reduction = grad_arg_int(c, g, "reduction");
    if (reduction != MEAN || !t)
        return t;
    bp_tensor *self = grad_tensor(g, "self"), *target = grad_tensor(g, "target");
    bp_dim sizes[TENSOR_MAX_RANK];
    uint32_t rank = self->rank > target->rank ? self->rank : target->rank;
    if (layout_broadcast(c, self->rank, self->sizes, target->rank, target->sizes, sizes))
        return NULL;
    return bp_aten_div_scalar(c, t, bp_scalar_dim(dim_product(c, sizes, rank)));
}

/* t times argument "weight", if there is one. */
static bp_tensor *weighted(bp_ctx *c, const grad_call *g, bp_tensor *t)
{
    bp_tensor *weight = grad_tensor(g, "weight");
    return weight ? grad_mul(c, t, weight) : t;
}

/* The incoming gradient of a gradient times its own. */
static bp_tensor *both(bp_ctx *c, const grad_call *g)
{
    return grad_mul(c, g->grads[0], grad_tensor(g, "grad_output"));
}

/* -- binary cross entropy ------------------------------------------------------------------------------------------ */

bp_status grad_entropy(bp_ctx *c, grad_call *g)
{
    bp_tensor *grad = g->grads[0], *self = grad_tensor(g, "self"), *target = grad_tensor(g, "target");
    if (grad_needs(g, "self"))
        grad_give(g, "self", bp_aten_binary_cross_entropy_backward_default(
            c, grad, self, target, grad_tensor(g, "weight"), grad_arg_int(c, g, "reduction")));
    if (grad_needs(g, "target")) {
        bp_tensor *t = bp_aten_log_default(c, grad_from(c, 1, self));
        t = grad_mul(c, grad_sub(c, t, bp_aten_log_default(c, self)), grad);
        grad_give(g, "target", mean_of(c, g, weighted(c, g, t)));
    }
    return grad_done(c);
}

/* With s = self and e = 1e-12, the slope of (s - t) / ((s + e) (1 - s + e)). */
bp_status grad_entropy_backward(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self"), *target = grad_tensor(g, "target");
    const double e = 1e-12;
    if (grad_needs(g, "grad_output"))
        grad_give(g, "grad_output", bp_aten_binary_cross_entropy_backward_default(
            c, g->grads[0], self, target, grad_tensor(g, "weight"), grad_arg_int(c, g, "reduction")));
    bp_tensor *below = grad_mul(c, grad_plus(c, self, e), grad_plus(c, grad_from(c, 1, self), e));
    bp_tensor *grad = mean_of(c, g, weighted(c, g, both(c, g)));
    if (grad_needs(g, "self")) {
        bp_tensor *above = grad_sub(c, grad_square(c, self), grad_scaled(c, grad_mul(c, self, target), 2));
        above = grad_add(c, above, target);
        grad_give(g, "self", grad_mul(c, grad, grad_div(c, above, grad_square(c, below))));
    }
    if (grad_needs(g, "target"))
        grad_give(g, "target", grad_neg(c, grad_div(c, grad, below)));
    return grad_done(c);
}

static bp_tensor *by_logits(bp_ctx *c, grad_call *g, bp_tensor *self, bp_tensor *target)
{
    bp_tensor *positive = grad_tensor(g, "pos_weight"), *s = bp_aten_sigmoid_default(c, self);
    if (!positive)
        return grad_sub(c, s, target);
    bp_tensor *taken = grad_mul(c, positive, target);
    return grad_sub(c, grad_mul(c, grad_sub(c, grad_plus(c, taken, 1), target), s), taken);
}

static bp_tensor *by_target(bp_ctx *c, grad_call *g, bp_tensor *self)
{
    bp_tensor *positive = grad_tensor(g, "pos_weight");
    if (!positive)
        return grad_neg(c, self);
    bp_tensor *rest = bp_aten_log_sigmoid_default(c, grad_neg(c, self));
    return grad_sub(c, rest, grad_mul(c, positive, bp_aten_log_sigmoid_default(c, self)));
}

bp_status grad_entropy_with_logits(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self"), *target = grad_tensor(g, "target");
    bp_tensor *grad = mean_of(c, g, weighted(c, g, g->grads[0]));
    if (grad_needs(g, "self"))
        grad_give(g, "self", grad_mul(c, grad, by_logits(c, g, self, target)));
    if (grad_needs(g, "target"))
        grad_give(g, "target", grad_mul(c, grad, by_target(c, g, self)));
    return grad_done(c);
}

/* -- gradients of what depends on self - target -------------------------------------------------------------------- */

/* bend: the derivative of the slope by self; by target it is the negative. */
static bp_status give_bend(bp_ctx *c, grad_call *g, bp_tensor *bend)
{
    bend = mean_of(c, g, bend);
    if (grad_needs(g, "self"))
        grad_give(g, "self", bend);
    if (grad_needs(g, "target"))
        grad_give(g, "target", grad_neg(c, bend));
    return grad_done(c);
}

/* Whether it is asked for by self or target. */
static bool bends(const grad_call *g) { return grad_needs(g, "self") || grad_needs(g, "target"); }

/* |self - target| < least */
static bp_tensor *nearer_than(bp_ctx *c, const grad_call *g, double least)
{
    bp_tensor *away = bp_aten_abs_default(c, grad_sub(c, grad_tensor(g, "self"), grad_tensor(g, "target")));
    return bp_aten_lt_scalar(c, away, bp_scalar_float(least));
}

bp_status grad_mse_backward(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self"), *target = grad_tensor(g, "target");
    if (grad_needs(g, "grad_output"))
        grad_give(g, "grad_output",
                  bp_aten_mse_loss_backward_default(c, g->grads[0], self, target, grad_arg_int(c, g, "reduction")));
    return bends(g) ? give_bend(c, g, grad_scaled(c, both(c, g), 2)) : grad_done(c);
}

bp_status grad_smooth_l1_backward(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self"), *target = grad_tensor(g, "target");
    double beta = grad_arg_float(g, "beta");
    if (grad_needs(g, "grad_output"))
        grad_give(g, "grad_output", bp_aten_smooth_l1_loss_backward_default(c, g->grads[0], self, target,
                                                                            grad_arg_int(c, g, "reduction"), beta));
    if (!bends(g))
        return grad_done(c);
    return give_bend(c, g, grad_where(c, nearer_than(c, g, beta), bp_aten_div_scalar(c, both(c, g),
                                                                                     bp_scalar_float(beta))));
}

bp_status grad_huber_backward(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self"), *target = grad_tensor(g, "target");
    double delta = grad_arg_float(g, "delta");
    if (grad_needs(g, "grad_output"))
        grad_give(g, "grad_output", bp_aten_huber_loss_backward_default(c, g->grads[0], self, target,
                                                                        grad_arg_int(c, g, "reduction"), delta));
    return bends(g) ? give_bend(c, g, grad_mul(c, both(c, g), nearer_than(c, g, delta))) : grad_done(c);
}

/* log(1 + exp(-target self)): the bend is target^2 s (1 - s) with s = sigmoid(target self). */
bp_status grad_soft_margin_backward(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self"), *target = grad_tensor(g, "target");
    if (grad_needs(g, "grad_output"))
        grad_give(g, "grad_output", bp_aten_soft_margin_loss_backward_default(c, g->grads[0], self, target,
                                                                              grad_arg_int(c, g, "reduction")));
    if (grad_needs(g, "self")) {
        bp_tensor *s = bp_aten_sigmoid_default(c, grad_mul(c, target, self));
        bp_tensor *bend = bp_aten_sigmoid_backward_default(c, grad_mul(c, both(c, g), grad_square(c, target)), s);
        grad_give(g, "self", mean_of(c, g, bend));
    }
    return grad_done(c);
}
