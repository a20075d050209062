/* Copies in which a view is overwritten (select_scatter and kin), and gradients of views: zeros with the gradient
 * written into the view. Where the view lies is what the view's own row says. */
#include "host/op/reference/number.h"
#include "host/op/reference/walk.h"
#include "host/op/reference/work.h"
#include "host/op/rows.h"
#include <string.h>

/* The view that a row makes of t, on the arguments after its first; a new reference. */
static bp_tensor *view_of(bp_ctx *c, bp_tensor *t, uint32_t row, uint32_t nrest, const bp_value *rest)
{
    bp_value args[8] = {value_tensor(t)};
    memcpy(args + 1, rest, nrest * sizeof *rest);
    return op_call1(c, row, nrest + 1, args);
}

static bp_status overwrite(bp_ctx *c, op_call *k, uint32_t row)
{
    TRY(tensor_copy(c, k->out[0], arg_tensor(k->args, 0)));
    bp_tensor *view = view_of(c, k->out[0], row, k->op->schema->nargs - 2, k->args + 2);
    if (view)
        tensor_copy(c, view, arg_tensor(k->args, 1));
    tensor_unref(view);
    return c->diag.code;
}

bp_status kernel_select_scatter(bp_ctx *c, op_call *k) { return overwrite(c, k, ROW_select_int); }
bp_status kernel_slice_scatter(bp_ctx *c, op_call *k) { return overwrite(c, k, ROW_slice_tensor); }
bp_status kernel_diagonal_scatter(bp_ctx *c, op_call *k) { return overwrite(c, k, ROW_diagonal_default); }

/* The whole storage of t as one vector. */
static bp_tensor *whole_storage(work *w, const bp_tensor *t)
{
    bp_dim n = dim_const((int64_t)(t->store->nbytes / dtype_size(t->dtype))), one = dim_const(1);
    tensor_meta m = {t->dtype, tensor_device(t), 1, &n, &one, dim_const(0)};
    return work_view(w, t, &m);
}

/* The view may reach elements of self's storage that self does not: a copy of all of it is written. A tensor that
 * reaches an element twice is copied to a storage of its own first. */
bp_status kernel_as_strided_scatter(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *self = arg_tensor(k->args, 0), *out = k->out[0];
    if (tensor_overlaps_itself(self)) {
        bp_tensor *copy = work_like(&w, self);
        if (copy)
            tensor_copy(c, copy, self);
        self = copy;
    }
    bp_tensor *all = work_ok(&w) ? whole_storage(&w, self) : NULL, *copy = work_ok(&w) ? work_like(&w, all) : NULL;
    if (copy && tensor_copy(c, copy, all) == BP_OK) {
        tensor_meta m;
        tensor_get_meta(self, &m);
        bp_tensor *same = work_view(&w, copy, &m);
        bp_tensor *view = same ? view_of(c, same, ROW_as_strided_default, 3, k->args + 2) : NULL;
        if (view && tensor_copy(c, view, arg_tensor(k->args, 1)) == BP_OK)
            tensor_copy(c, out, same);
        tensor_unref(view);
    }
    return work_end(&w);
}

/* -- gradients of views -- */

static bp_status view_backward(bp_ctx *c, op_call *k, uint32_t row)
{
    work_clear(k->out[0]);
    bp_tensor *view = view_of(c, k->out[0], row, k->op->schema->nargs - 2, k->args + 2);
    if (view)
        tensor_copy(c, view, arg_tensor(k->args, 0));
    tensor_unref(view);
    return c->diag.code;
}

bp_status kernel_select_backward(bp_ctx *c, op_call *k) { return view_backward(c, k, ROW_select_int); }
bp_status kernel_slice_backward(bp_ctx *c, op_call *k) { return view_backward(c, k, ROW_slice_tensor); }
bp_status kernel_diagonal_backward(bp_ctx *c, op_call *k) { return view_backward(c, k, ROW_diagonal_default); }

/* Windows may share elements: their gradients are summed. */
bp_status kernel_unfold_backward(bp_ctx *c, op_call *k)
{
    bp_tensor *out = k->out[0];
    const bp_tensor *grad = arg_tensor(k->args, 0);
    size_t size = dtype_size(out->dtype);
    work_clear(out);
    bp_tensor *view = view_of(c, out, ROW_unfold_default, 3, k->args + 2);
    bool same = view && view->rank == grad->rank;
    for (uint32_t d = 0; same && d < grad->rank; d++)
        same = tensor_dim(view, d) == tensor_dim(grad, d);
    if (view && !same)
        op_fail(c, k->op, BP_INVALID_ARGUMENT, "the gradient's sizes are not those of the windows");
    if (!same) {
        tensor_unref(view);
        return c->diag.code;
    }
    walk v;
    walk_start(&v, grad->rank, grad->sizes);
    walk_add(&v, view->strides);
    walk_add(&v, grad->strides);
    for (; v.left; walk_next(&v)) {
        char *to = (char *)tensor_ptr(out) + (size_t)v.at[0] * size;
        num g = dtype_load(out->dtype, (const char *)tensor_ptr(grad) + (size_t)v.at[1] * size);
        dtype_store(out->dtype, to, num_add(dtype_load(out->dtype, to), g));
    }
    tensor_unref(view);
    return c->diag.code;
}
