/* Derivatives of clamp. Between two numbers nothing flows at the bounds, nor to a NaN; of bounds that are tensors, what
 * is equal shares, and where the bounds are the wrong way around all goes to max. */
#include "host/grad/math.h"

bp_status grad_clamp(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self"), *inside = NULL;
    if (grad_given(g, "min"))
        inside = bp_aten_gt_scalar(c, self, grad_arg_scalar(g, "min"));
    if (grad_given(g, "max")) {
        bp_tensor *below = bp_aten_lt_scalar(c, self, grad_arg_scalar(g, "max"));
        inside = inside ? bp_aten_logical_and_default(c, inside, below) : below;
    }
    grad_give(g, "self", inside ? grad_where(c, inside, g->grads[0]) : g->grads[0]);
    return grad_done(c);
}

static bp_tensor *both(bp_ctx *c, bp_tensor *a, bp_tensor *b) { return bp_aten_logical_and_default(c, a, b); }
static bp_tensor *either(bp_ctx *c, bp_tensor *a, bp_tensor *b) { return bp_aten_logical_or_default(c, a, b); }
static bp_tensor *half_where(bp_ctx *c, bp_tensor *condition, bp_tensor *grad)
{
    return bp_aten_where_self(c, condition, bp_aten_div_scalar(c, grad, bp_scalar_int(2)), grad);
}

typedef struct { bp_tensor *grad, *self, *min, *max; } bounded;

static void between(bp_ctx *c, grad_call *g, const bounded *b)
{
    bp_tensor *apart = bp_aten_lt_tensor(c, b->min, b->max);
    bp_tensor *at_min = both(c, bp_aten_eq_tensor(c, b->self, b->min), apart);
    bp_tensor *at_max = both(c, bp_aten_eq_tensor(c, b->self, b->max), apart);
    bp_tensor *below = bp_aten_lt_tensor(c, b->self, b->min), *above = bp_aten_gt_tensor(c, b->self, b->max);
    bp_tensor *in_order = bp_aten_le_tensor(c, b->min, b->max);
    if (grad_needs(g, "self"))
        grad_give(g, "self",
                  grad_unless(c, either(c, below, above), half_where(c, either(c, at_min, at_max), b->grad)));
    if (grad_needs(g, "min"))
        grad_give(g, "min", grad_where(c, either(c, both(c, below, in_order), at_min), half_where(c, at_min, b->grad)));
    if (grad_needs(g, "max")) {
        bp_tensor *taken = either(c, either(c, both(c, above, in_order), at_max), bp_aten_gt_tensor(c, b->min, b->max));
        grad_give(g, "max", grad_where(c, taken, half_where(c, at_max, b->grad)));
    }
}

/* On one side: outside is where self lies beyond it, and inside where the bound does not count. */
static void one_sided(bp_ctx *c, grad_call *g, const bounded *b)
{
    bp_tensor *bound = b->min ? b->min : b->max, *grad = half_where(c, bp_aten_eq_tensor(c, b->self, bound), b->grad);
    if (grad_needs(g, "self"))
        grad_give(g, "self", grad_unless(c, b->min ? bp_aten_lt_tensor(c, b->self, bound)
                                                   : bp_aten_gt_tensor(c, b->self, bound), grad));
    const char *name = b->min ? "min" : "max";
    if (grad_needs(g, name))
        grad_give(g, name, grad_unless(c, b->min ? bp_aten_gt_tensor(c, b->self, bound)
                                                 : bp_aten_lt_tensor(c, b->self, bound), grad));
}

/* clamp_min.Tensor and clamp_max.Tensor too. */
bp_status grad_clamp_tensor(bp_ctx *c, grad_call *g)
{
    bounded b = {g->grads[0], grad_tensor(g, "self"), grad_tensor(g, "min"), grad_tensor(g, "max")};
    if (b.min && b.max)
        between(c, g, &b);
    else if (b.min || b.max)
        one_sided(c, g, &b);
    else
        grad_give(g, "self", b.grad);
    return grad_done(c);
}
