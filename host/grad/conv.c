/* Derivatives of convolutions, pooling and sampling. */
#include "host/grad/write.h"

/* -- convolutions -------------------------------------------------------------------------------------------------- */

bp_status derive_convolution(bp_ctx *c, grad_call *g)
{
    static const char *const into[3] = {"input", "weight", "bias"};
    bp_tensor *bias = grad_tensor(g, "bias"), *out[3];
    bp_value mask[3], args[11] = {value_tensor(g->grads[0]), *grad_value(g, "input"), *grad_value(g, "weight"),
                                  bias ? value_dims(c, bias->sizes, bias->rank) : value_none()};
    for (int i = 0; i < 3; i++)
        mask[i] = value_bool(grad_needs(g, into[i]));
    for (uint32_t i = 3; i < 9; i++) /* stride to groups */
        args[i + 1] = g->args[i];
    args[10] = value_list(mask, 3);
    grad_op_all(c, ROW_convolution_backward_default, 11, args, out, 3);
    for (int i = 0; i < 3; i++)
        if (grad_needs(g, into[i]))
            grad_give(g, into[i], out[i]);
    return grad_done(c);
}

/* The convolution of that call, of other tensors. */
static bp_tensor *convolved(bp_ctx *c, const grad_call *g, bp_tensor *input, bp_tensor *weight)
{
    bp_value args[9] = {value_tensor(input), value_tensor(weight), value_none()};
    for (uint32_t i = 4; i < 10; i++)
        args[i - 1] = g->args[i];
    return grad_op(c, ROW_convolution_default, 9, args);
}

/* The gradient of that call for its input (0) or weight (1), of other tensors. */
static bp_tensor *convolved_back(bp_ctx *c, const grad_call *g, bp_tensor *input, bp_tensor *weight, uint32_t which)
{
    bp_tensor *out[3];
    bp_value args[11], mask[3] = {value_bool(which == 0), value_bool(which == 1), value_bool(false)};
    for (uint32_t i = 0; i < 10; i++)
        args[i] = g->args[i];
    args[1] = value_tensor(input);
    args[2] = value_tensor(weight);
    args[3] = value_none();
    args[10] = value_list(mask, 3);
    grad_op_all(c, ROW_convolution_backward_default, 11, args, out, 3);
    return out[which];
}

/* The bias's gradient is a sum over all but the channels. */
static bp_tensor *of_bias(bp_ctx *c, bp_tensor *t, bp_tensor *like)
{
    bp_dim sizes[TENSOR_MAX_RANK];
    if (!t)
        return NULL;
    for (uint32_t d = 0; d < like->rank; d++)
        sizes[d] = dim_const(d == 1 ? -1 : 1);
    t = bp_aten_view_default(c, t, (bp_dims){sizes, like->rank, 1});
    return bp_aten_expand_default(c, t, grad_sizes(like), 0);
}

/* Of (input's, weight's, bias's) gradients, which are linear in grad_output and in weight, input and nothing. */
bp_status derive_convolution_backward(bp_ctx *c, grad_call *g)
{
    bp_tensor *grad_output = grad_tensor(g, "grad_output"), *input = grad_tensor(g, "input");
    bp_tensor *weight = grad_tensor(g, "weight"), *of_input = g->grads[0], *of_weight = g->grads[1];
    if (grad_needs(g, "grad_output")) {
        bp_tensor *sum = of_input ? convolved(c, g, of_input, weight) : NULL;
        sum = grad_add(c, sum, of_weight ? convolved(c, g, input, of_weight) : NULL);
        grad_give(g, "grad_output", grad_add(c, sum, of_bias(c, g->grads[2], grad_output)));
    }
    if (grad_needs(g, "input") && of_weight)
        grad_give(g, "input", convolved_back(c, g, input, of_weight, 0));
    if (grad_needs(g, "weight") && of_input)
        grad_give(g, "weight", convolved_back(c, g, of_input, weight, 1));
    return grad_done(c);
}

/* -- pooling ------------------------------------------------------------------------------------------------------- */

/* What stands in t at the places that were chosen in each plane. */
static bp_tensor *chosen(bp_ctx *c, bp_tensor *t, bp_tensor *indices, uint32_t ndims)
{
    int64_t first = -(int64_t)ndims;
    bp_tensor *flat = bp_aten_flatten_using_ints(c, t, first, -1);
    bp_tensor *at = bp_aten_flatten_using_ints(c, indices, first, -1);
    return bp_aten_reshape_default(c, bp_aten_gather_default(c, flat, -1, at, 0), grad_sizes(indices));
}

/* How many dimensions a plane has, by the row. */
static uint32_t plane_dims(const grad_call *g)
{
    switch (g->op->number) {
    case ROW_max_unpool3d_default:
    case ROW_max_pool3d_with_indices_backward_default:
    case ROW_adaptive_max_pool3d_backward_default:
    case ROW_fractional_max_pool3d_backward_default: return 3;
    default: return 2;
    }
}

bp_status derive_max_unpool(bp_ctx *c, grad_call *g)
{
    grad_give(g, "self", chosen(c, g->grads[0], grad_tensor(g, "indices"), plane_dims(g)));
    return grad_done(c);
}

bp_status derive_max_pool_backward(bp_ctx *c, grad_call *g)
{
    if (grad_needs(g, "grad_output"))
        grad_give(g, "grad_output", chosen(c, g->grads[0], grad_tensor(g, "indices"), plane_dims(g)));
    if (grad_needs(g, "self"))
        grad_give(g, "self", grad_zeros(c, grad_tensor(g, "self")));
    return grad_done(c);
}

/* A line is an image of one row. */
bp_status derive_avg_pool1d(bp_ctx *c, grad_call *g)
{
    static const char *const size[3] = {"kernel_size", "stride", "padding"};
    bp_value args[8] = {value_tensor(bp_aten_unsqueeze_default(c, g->grads[0], -2)),
                        value_tensor(bp_aten_unsqueeze_default(c, grad_tensor(g, "self"), -2))};
    for (int i = 0; i < 3; i++) {
        bp_dims given = grad_arg_dims(c, g, size[i]);
        bp_dim both[2] = {dim_const(i < 2), given.n ? given.at[0] : dim_const(0)};
        args[2 + i] = value_dims(c, both, given.n ? 2 : 0);
    }
    args[5] = *grad_value(g, "ceil_mode");
    args[6] = *grad_value(g, "count_include_pad");
    grad_give(g, "self", bp_aten_squeeze_dim(c, grad_op(c, ROW_avg_pool2d_backward_default, 7, args), -2));
    return grad_done(c);
}

bp_status derive_adaptive_avg_pool1d(bp_ctx *c, grad_call *g)
{
    bp_tensor *grad = bp_aten_unsqueeze_default(c, g->grads[0], -2);
    bp_tensor *self = bp_aten_unsqueeze_default(c, grad_tensor(g, "self"), -2);
    bp_tensor *t = GRAD_OP(c, private_adaptive_avg_pool2d_backward_default, value_tensor(grad), value_tensor(self));
    grad_give(g, "self", bp_aten_squeeze_dim(c, t, -2));
    return grad_done(c);
}

bp_status derive_adaptive_avg_pool_backward(bp_ctx *c, grad_call *g)
{
    bp_tensor *pooled = grad_tensor(g, "grad_output");
    bool volumes = g->op->number == ROW_private_adaptive_avg_pool3d_backward_default;
    uint32_t n = volumes ? 3 : 2, row = volumes ? ROW_private_adaptive_avg_pool3d_default
                                                : ROW_private_adaptive_avg_pool2d_default;
    bp_value args[2] = {value_tensor(g->grads[0]), value_dims(c, pooled->sizes + pooled->rank - n, n)};
    if (grad_needs(g, "grad_output"))
        grad_give(g, "grad_output", grad_op(c, row, 2, args));
    if (grad_needs(g, "self"))
        grad_give(g, "self", grad_zeros(c, grad_tensor(g, "self")));
    return grad_done(c);
}

/* -- windows as columns -------------------------------------------------------------------------------------------- */

bp_status derive_im2col(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self");
    bp_value args[6] = {value_tensor(g->grads[0]), value_dims(c, self->sizes + self->rank - 2, 2)};
    for (uint32_t i = 1; i < 5; i++)
        args[i + 1] = g->args[i];
    grad_give(g, "self", grad_op(c, ROW_col2im_default, 6, args));
    return grad_done(c);
}

/* -- sampling ------------------------------------------------------------------------------------------------------ */

bp_status derive_grid_sampler(bp_ctx *c, grad_call *g)
{
    uint32_t row = g->op->number == ROW_grid_sampler_2d_default ? ROW_grid_sampler_2d_backward_default
                                                                : ROW_grid_sampler_3d_backward_default;
    bp_value mask[2] = {value_bool(grad_needs(g, "input")), value_bool(grad_needs(g, "grid"))};
    bp_value args[7] = {value_tensor(g->grads[0]), g->args[0], g->args[1], g->args[2], g->args[3], g->args[4],
                        value_list(mask, 2)};
    bp_tensor *out[2];
    grad_op_all(c, row, 7, args, out, 2);
    if (grad_needs(g, "input"))
        grad_give(g, "input", out[0]);
    if (grad_needs(g, "grid"))
        grad_give(g, "grid", out[1]);
    return grad_done(c);
}
