/* Derivatives of views, and of copies that only move elements. */
#include "host/grad/write.h"

static const bp_dim one = {1, 0, 0};

bp_status derive_permute(bp_ctx *c, grad_call *g)
{
    bp_dims dims = grad_arg_dims(c, g, "dims");
    bp_dim back[TENSOR_MAX_RANK];
    for (uint32_t i = 0; i < dims.n && i < TENSOR_MAX_RANK; i++)
        back[layout_wrap_dim(c, dims.at[i].value, dims.n)] = dim_const(i);
    grad_give(g, "self", bp_aten_permute_default(c, g->grads[0], (bp_dims){back, dims.n, 1}));
    return grad_done(c);
}

/* -- parts --------------------------------------------------------------------------------------------------------- */

/* What slice takes as absent start and end. */
bp_status derive_slice(bp_ctx *c, grad_call *g)
{
    bp_dim start = grad_arg_dim(g, "start"), end = grad_arg_dim(g, "end");
    if (arg_is_none(grad_value(g, "end"), 0))
        end = dim_const(INT64_MAX);
    grad_give(g, "self", bp_aten_slice_backward_default(c, g->grads[0], grad_sizes(grad_tensor(g, "self")),
                                                        grad_arg_int(c, g, "dim"), start, end,
                                                        grad_arg_dim(g, "step")));
    return grad_done(c);
}

bp_status derive_narrow_copy(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self");
    uint32_t d = grad_arg_wrapped(c, g, "dim", self->rank);
    bp_dim start = grad_arg_dim(g, "start");
    if (dim_is_const(start) && start.value < 0)
        start = dim_add(c, start, grad_size(self, (int32_t)d));
    bp_dim end = dim_add(c, start, grad_arg_dim(g, "length"));
    grad_give(g, "self", bp_aten_slice_backward_default(c, g->grads[0], grad_sizes(self), d, start, end, one));
    return grad_done(c);
}

/* Where it begins is data: the positions are computed, counted from the front. */
bp_status derive_narrow(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self"), *start = grad_tensor(g, "start"), *grad = g->grads[0];
    uint32_t d = grad_arg_wrapped(c, g, "dim", self->rank);
    bp_tensor *wrapped = bp_aten_add_scalar(c, start, bp_scalar_dim(grad_size(self, (int32_t)d)), (bp_scalar){0});
    start = bp_aten_where_self(c, bp_aten_lt_scalar(c, start, bp_scalar_int(0)), wrapped, start);
    bp_tensor *at = bp_aten_arange_default(c, bp_scalar_dim(grad_size(grad, (int32_t)d)), BP_I64, 0,
                                           tensor_device(grad), (bp_scalar){0});
    at = bp_aten_add_tensor(c, at, start, (bp_scalar){0});
    bp_tensor *zeros = grad_new_zeros(c, grad, grad_sizes(self));
    grad_give(g, "self", bp_aten_index_add_default(c, zeros, d, at, grad, (bp_scalar){0}));
    return grad_done(c);
}

/* The number of results' gradients, zeros where none flows, in the scratch arena. */
static bp_tensors all_grads(bp_ctx *c, grad_call *g)
{
    bp_tensor **at = arena_array(&c->scratch, g->nresults, sizeof *at);
    if (!at) {
        ctx_nomem(c);
        return (bp_tensors){0};
    }
    for (uint32_t i = 0; i < g->nresults; i++)
        at[i] = grad_of(c, g, i);
    return (bp_tensors){at, g->nresults};
}

bp_status derive_split(bp_ctx *c, grad_call *g)
{
    bp_tensors parts = all_grads(c, g);
    if (parts.n)
        grad_give(g, "self", bp_aten_cat_default(c, parts, grad_arg_int(c, g, "dim")));
    return grad_done(c);
}

bp_status derive_unbind(bp_ctx *c, grad_call *g)
{
    bp_tensors parts = all_grads(c, g);
    if (parts.n)
        grad_give(g, "self", bp_aten_stack_default(c, parts, grad_arg_int(c, g, "dim")));
    return grad_done(c);
}

/* -- several tensors as one ---------------------------------------------------------------------------------------- */

/* A vector of no elements may stand among tensors of any rank. */
static bool is_left_out(const bp_tensor *t, const bp_tensor *grad)
{
    return t->rank == 1 && grad->rank != 1 && dim_is(t->sizes[0], 0);
}

bp_status derive_cat(bp_ctx *c, grad_call *g)
{
    bp_tensors in = grad_arg_tensors(c, g, "tensors");
    bp_tensor *grad = g->grads[0];
    uint32_t first = grad_input(g, "tensors"), d = grad_arg_wrapped(c, g, "dim", grad->rank);
    bp_dim at = dim_const(0);
    for (uint32_t i = 0; i < in.n && ctx_ok(c); i++) {
        if (is_left_out(in.at[i], grad))
            continue;
        bp_dim end = dim_add(c, at, in.at[i]->sizes[d]);
        if (g->needs[first + i])
            g->out[first + i] = bp_aten_slice_tensor(c, grad, d, bp_scalar_dim(at), bp_scalar_dim(end), one);
        at = end;
    }
    return grad_done(c);
}

bp_status derive_stack(bp_ctx *c, grad_call *g)
{
    uint32_t n = arg_list_len(grad_value(g, "tensors"), 0), first = grad_input(g, "tensors");
    for (uint32_t i = 0; i < n; i++)
        if (g->needs[first + i])
            g->out[first + i] = bp_aten_select_int(c, g->grads[0], grad_arg_int(c, g, "dim"), dim_const(i));
    return grad_done(c);
}

/* Each tensor is a matrix there: a number one of a single element, a vector a row. */
bp_status derive_block_diag(bp_ctx *c, grad_call *g)
{
    bp_tensors in = grad_arg_tensors(c, g, "tensors");
    uint32_t first = grad_input(g, "tensors");
    bp_dim row = dim_const(0), column = dim_const(0);
    for (uint32_t i = 0; i < in.n && ctx_ok(c); i++) {
        const bp_tensor *t = in.at[i];
        bp_dim row_end = dim_add(c, row, t->rank == 2 ? t->sizes[0] : one);
        bp_dim column_end = dim_add(c, column, t->rank ? t->sizes[t->rank - 1] : one);
        if (g->needs[first + i]) {
            bp_tensor *rows = bp_aten_slice_tensor(c, g->grads[0], 0, bp_scalar_dim(row), bp_scalar_dim(row_end), one);
            bp_tensor *part = bp_aten_slice_tensor(c, rows, 1, bp_scalar_dim(column), bp_scalar_dim(column_end), one);
            g->out[first + i] = bp_aten_reshape_default(c, part, grad_sizes(t));
        }
        row = row_end;
        column = column_end;
    }
    return grad_done(c);
}

/* -- elements at other places -------------------------------------------------------------------------------------- */

/* Each dimension as (repeats, size), and the sum over repeats. */
bp_status derive_repeat(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self"), *grad = g->grads[0];
    bp_dims repeats = grad_arg_dims(c, g, "repeats");
    uint32_t lead = repeats.n - self->rank, n = 0, nsum = 0;
    bp_dim *sizes = arena_array(&c->scratch, 2 * (size_t)repeats.n, sizeof *sizes);
    bp_dim *sums = arena_array(&c->scratch, repeats.n, sizeof *sums);
    if (!sizes || !sums)
        return ctx_nomem(c);
    for (uint32_t i = 0; i < repeats.n; i++) {
        if (i < lead || !dim_is(repeats.at[i], 1)) {
            sums[nsum++] = dim_const(n);
            sizes[n++] = repeats.at[i];
        }
        if (i >= lead)
            sizes[n++] = self->sizes[i - lead];
    }
    if (nsum) {
        bp_tensor *split = bp_aten_reshape_default(c, grad, (bp_dims){sizes, n, 1});
        grad = bp_aten_sum_dim_intlist(c, split, (bp_dims){sums, nsum, 1}, 0, 0);
    }
    grad_give(g, "self", grad);
    return grad_done(c);
}

bp_status derive_rot90(bp_ctx *c, grad_call *g)
{
    int64_t back = -(grad_arg_int(c, g, "k") % 4);
    bp_value k = value_int(back);
    grad_give(g, "self", GRAD_OP(c, rot90_default, value_tensor(g->grads[0]), k, *grad_value(g, "dims")));
    return grad_done(c);
}

/* The list with every sign turned. */
static bp_dims negated(bp_ctx *c, bp_dims list)
{
    bp_dim *at = arena_array(&c->scratch, list.n, sizeof *at);
    if (!at) {
        ctx_nomem(c);
        return (bp_dims){0, 0, 1};
    }
    for (uint32_t i = 0; i < list.n; i++)
        at[i] = dim_sub(c, dim_const(0), list.at[i]);
    return (bp_dims){at, list.n, 1};
}

bp_status derive_roll(bp_ctx *c, grad_call *g)
{
    bp_dims shifts = negated(c, grad_arg_dims(c, g, "shifts"));
    grad_give(g, "self", bp_aten_roll_default(c, g->grads[0], shifts, grad_arg_dims(c, g, "dims")));
    return grad_done(c);
}

bp_status derive_constant_pad(bp_ctx *c, grad_call *g)
{
    bp_dims back = negated(c, grad_arg_dims(c, g, "pad"));
    grad_give(g, "self", bp_aten_constant_pad_nd_default(c, g->grads[0], back, bp_scalar_int(0)));
    return grad_done(c);
}

bp_status derive_channel_shuffle(bp_ctx *c, grad_call *g)
{
    bp_dim groups = dim_floordiv(c, grad_size(g->grads[0], 1), grad_arg_dim(g, "groups"));
    grad_give(g, "self", bp_aten_channel_shuffle_default(c, g->grads[0], groups));
    return grad_done(c);
}
