/* Derivatives of indexing, tables and masks. An element that was overwritten gets nothing; of several that were written
 * to one place, each gets that place's gradient, as in PyTorch. */
#include "host/grad/write.h"

/* Values that are the same for all that one mask selects: the sum over the mask, whose size is known, unlike that of
 * what is selected. NULL: they are none. */
static bp_tensor *of_same_values(bp_ctx *c, bp_tensor *grad, bp_tensors at, const bp_tensor *values)
{
    uint32_t n = 0, first = 0;
    for (uint32_t i = 0; i < at.n; i++)
        if (at.at[i]) {
            first = i;
            n++;
        }
    if (n != 1 || at.at[first]->dtype != BP_BOOL)
        return NULL;
    bp_tensor *mask = at.at[first];
    uint32_t behind = grad_rank(grad) - first - mask->rank, nover = mask->rank;
    if (values->rank > behind && !dim_is(values->sizes[values->rank - 1 - behind], 1))
        return NULL;
    bp_dim over[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < nover; d++)
        over[d] = dim_const(first + d);
    for (uint32_t d = 0; d < behind; d++)
        mask = bp_aten_unsqueeze_default(c, mask, -1);
    bp_tensor *t = bp_aten_where_scalarother(c, mask, grad, bp_scalar_int(0));
    if (nover)
        t = bp_aten_sum_dim_intlist(c, t, (bp_dims){over, nover, 1}, 0, 0);
    return grad_sum_to(c, bp_aten_unsqueeze_default(c, t, first), values->rank, values->sizes);
}

bp_status derive_index_put(bp_ctx *c, grad_call *g)
{
    bp_tensor *grad = g->grads[0], *values = grad_tensor(g, "values");
    bp_tensors at = grad_arg_tensors(c, g, "indices");
    bool unsafe = g->op->number == ROW_private_unsafe_index_put_default;
    if (grad_needs(g, "values")) {
        bp_tensor *t = of_same_values(c, grad, at, values);
        if (!t)
            t = unsafe ? bp_aten_private_unsafe_index_tensor(c, grad, at) : bp_aten_index_tensor(c, grad, at);
        grad_give(g, "values", t);
    }
    if (!grad_needs(g, "self"))
        return grad_done(c);
    if (!grad_arg_bool(g, "accumulate")) {
        bp_tensor *zeros = grad_new_zeros(c, grad, grad_sizes(values));
        grad = unsafe ? bp_aten_private_unsafe_index_put_default(c, grad, at, zeros, 0)
                      : bp_aten_index_put_default(c, grad, at, zeros, 0);
    }
    grad_give(g, "self", grad);
    return grad_done(c);
}

/* Slices of the gradient, of a source that may be a single number for them all. */
static bp_tensor *slices_for(bp_ctx *c, grad_call *g, const bp_tensor *source)
{
    int64_t dim = grad_arg_int(c, g, "dim");
    bp_tensor *slices = bp_aten_index_select_default(c, g->grads[0], dim, grad_tensor(g, "index"));
    return bp_aten_reshape_default(c, slices, grad_sizes(source));
}

bp_status derive_index_add(bp_ctx *c, grad_call *g)
{
    grad_give(g, "self", g->grads[0]);
    if (grad_needs(g, "source"))
        grad_give(g, "source",
                  grad_times(c, slices_for(c, g, grad_tensor(g, "source")), grad_arg_scalar(g, "alpha")));
    return grad_done(c);
}

bp_status derive_index_copy(bp_ctx *c, grad_call *g)
{
    if (grad_needs(g, "self"))
        grad_give(g, "self", bp_aten_index_fill_int_scalar(c, g->grads[0], grad_arg_int(c, g, "dim"),
                                                           grad_tensor(g, "index"), bp_scalar_int(0)));
    if (grad_needs(g, "source"))
        grad_give(g, "source", slices_for(c, g, grad_tensor(g, "source")));
    return grad_done(c);
}

/* The value gets what was filled, each element once, however often it was named. */
bp_status derive_index_fill(bp_ctx *c, grad_call *g)
{
    bp_tensor *grad = g->grads[0], *index = grad_tensor(g, "index");
    int64_t dim = grad_arg_int(c, g, "dim");
    if (grad_needs(g, "self"))
        grad_give(g, "self", bp_aten_index_fill_int_scalar(c, grad, dim, index, bp_scalar_int(0)));
    if (grad_needs(g, "value")) {
        bp_tensor *none = grad_new_zeros(c, grad, grad_sizes(grad));
        bp_tensor *filled = bp_aten_index_fill_int_scalar(c, none, dim, index, bp_scalar_int(1));
        bp_tensor *of_value = bp_aten_where_scalarother(c, bp_aten_ne_scalar(c, filled, bp_scalar_int(0)), grad,
                                                        bp_scalar_int(0));
        grad_give(g, "value", bp_aten_sum_default(c, of_value, 0));
    }
    return grad_done(c);
}

bp_status derive_put(bp_ctx *c, grad_call *g)
{
    bp_tensor *grad = g->grads[0], *index = grad_tensor(g, "index"), *source = grad_tensor(g, "source");
    if (grad_needs(g, "source"))
        grad_give(g, "source",
                  bp_aten_reshape_default(c, bp_aten_take_default(c, grad, index), grad_sizes(source)));
    if (!grad_needs(g, "self"))
        return grad_done(c);
    if (!grad_arg_bool(g, "accumulate"))
        grad = bp_aten_put_default(c, grad, index, grad_new_zeros(c, grad, grad_sizes(source)), 0);
    grad_give(g, "self", grad);
    return grad_done(c);
}

bp_status derive_masked_select(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self"), *mask = grad_tensor(g, "mask");
    bp_dim sizes[TENSOR_MAX_RANK];
    uint32_t rank = self->rank > mask->rank ? self->rank : mask->rank;
    if (layout_broadcast(c, self->rank, self->sizes, mask->rank, mask->sizes, sizes))
        return grad_done(c);
    bp_tensor *zeros = grad_new_zeros(c, g->grads[0], (bp_dims){sizes, rank, 1});
    grad_give(g, "self", bp_aten_masked_scatter_default(c, zeros, mask, g->grads[0]));
    return grad_done(c);
}

/* Each slice gets the sum of what it was repeated to. */
bp_status derive_repeat_interleave(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self"), *repeats = grad_tensor(g, "repeats"), *grad = g->grads[0];
    bool flat = arg_is_none(grad_value(g, "dim"), 0);
    bp_dim numel = tensor_numel(c, self);
    bp_dims sizes = flat ? (bp_dims){&numel, 1, 1} : grad_sizes(self);
    uint32_t d = flat ? 0 : grad_arg_wrapped(c, g, "dim", self->rank);
    bp_dim n = flat ? numel : grad_size(self, (int32_t)d);
    bp_tensor *each = bp_aten_expand_default(c, repeats, (bp_dims){&n, 1, 1}, 0);
    bp_tensor *from = bp_aten_repeat_interleave_tensor(c, each, bp_scalar_dim(grad_size(grad, (int32_t)d)));
    bp_tensor *sum = bp_aten_index_add_default(c, grad_new_zeros(c, grad, sizes), d, from, grad, (bp_scalar){0});
    grad_give(g, "self", flat ? bp_aten_reshape_default(c, sum, grad_sizes(self)) : sum);
    return grad_done(c);
}

/* -- tables -------------------------------------------------------------------------------------------------------- */

bp_status derive_embedding(bp_ctx *c, grad_call *g)
{
    bp_dim rows = grad_size(grad_tensor(g, "weight"), 0);
    grad_give(g, "weight", bp_aten_embedding_dense_backward_default(c, g->grads[0], grad_tensor(g, "indices"), rows,
                                                                    grad_arg_dim(g, "padding_idx"),
                                                                    grad_arg_bool(g, "scale_grad_by_freq")));
    return grad_done(c);
}

/* For each row of the gradient, how often its index occurs. */
static bp_tensor *occurrences(bp_ctx *c, grad_call *g, bp_tensor *flat)
{
    bp_dim n = grad_arg_dim(g, "num_weights");
    bp_tensor *none = grad_new_zeros(c, g->grads[0], (bp_dims){&n, 1, 1});
    bp_tensor *each = bp_aten_add_scalar(c, grad_new_zeros(c, g->grads[0], grad_sizes(flat)), bp_scalar_int(1),
                                         (bp_scalar){0});
    bp_tensor *counts = bp_aten_index_add_default(c, none, 0, flat, each, (bp_scalar){0});
    return bp_aten_unsqueeze_default(c, bp_aten_index_select_default(c, counts, 0, flat), 1);
}

bp_status derive_embedding_backward(bp_ctx *c, grad_call *g)
{
    bp_tensor *flat = bp_aten_reshape_default(c, grad_tensor(g, "indices"), BP_DIMS(-1));
    bp_tensor *rows = bp_aten_index_select_default(c, g->grads[0], 0, flat);
    bp_dim padding = grad_arg_dim(g, "padding_idx");
    if (grad_arg_bool(g, "scale_grad_by_freq"))
        rows = grad_div(c, rows, occurrences(c, g, flat));
    if (!dim_is_const(padding) || padding.value >= 0) {
        bp_tensor *is_padding = bp_aten_unsqueeze_default(c, bp_aten_eq_scalar(c, flat, bp_scalar_dim(padding)), 1);
        rows = bp_aten_masked_fill_scalar(c, rows, is_padding, bp_scalar_int(0));
    }
    grad_give(g, "grad_output", bp_aten_reshape_default(c, rows, grad_sizes(grad_tensor(g, "grad_output"))));
    return grad_done(c);
}

bp_status derive_embedding_bag(bp_ctx *c, grad_call *g)
{
    bp_value grad = value_tensor(g->grads[0]), indices = *grad_value(g, "indices"), offsets = *grad_value(g, "offsets");
    bp_value bags = value_tensor(g->results[1]), mode = *grad_value(g, "mode"), padding = *grad_value(g, "padding_idx");
    if (grad_needs(g, "weight"))
        grad_give(g, "weight",
                  GRAD_OP(c, private_embedding_bag_backward_default, grad, indices, offsets, bags,
                          value_tensor(g->results[2]), value_tensor(g->results[3]),
                          value_dim(grad_size(grad_tensor(g, "weight"), 0)), *grad_value(g, "scale_grad_by_freq"), mode,
                          value_bool(false), *grad_value(g, "per_sample_weights"), padding));
    if (grad_needs(g, "per_sample_weights"))
        grad_give(g, "per_sample_weights",
                  GRAD_OP(c, private_embedding_bag_per_sample_weights_backward_default, grad, *grad_value(g, "weight"),
                          indices, offsets, bags, mode, padding));
    return grad_done(c);
}
