/* Masks and positions: masked_fill, masked_select, masked_scatter, nonzero and its kin, one_hot. */
#include "host/op/reference/number.h"
#include "host/op/reference/walk.h"
#include "host/op/reference/work.h"
#include "host/op/rows.h"
#include <string.h>

static char *element(const bp_tensor *t, int64_t at)
{
    return (char *)tensor_ptr(t) + at * (int64_t)dtype_size(t->dtype);
}

static bool is_set(const bp_tensor *mask, int64_t at) { return ((const uint8_t *)tensor_ptr(mask))[at] != 0; }

static bp_status masked_fill(bp_ctx *c, op_call *k, num value)
{
    work w = {.c = c};
    bp_tensor *out = k->out[0], *mask = work_expand(&w, arg_tensor(k->args, 1), out->rank, out->sizes);
    bp_tensor *self = work_expand(&w, arg_tensor(k->args, 0), out->rank, out->sizes);
    if (work_ok(&w) && tensor_copy(c, out, self) == BP_OK) {
        walk v;
        walk_start(&v, out->rank, out->sizes);
        walk_add(&v, out->strides);
        walk_add(&v, mask->strides);
        for (; v.left; walk_next(&v))
            if (is_set(mask, v.at[1]))
                dtype_store(out->dtype, element(out, v.at[0]), value);
    }
    return work_end(&w);
}

bp_status kernel_masked_fill(bp_ctx *c, op_call *k)
{
    num value;
    TRY(work_number(c, k->op, k->out[0]->dtype, arg_scalar(k->args, 2), &value));
    return masked_fill(c, k, value);
}

bp_status kernel_masked_fill_tensor(bp_ctx *c, op_call *k)
{
    return masked_fill(c, k, work_item(arg_tensor(k->args, 2), k->out[0]->dtype));
}

/* How many elements a mask of the shape picks. */
static int64_t count_set(const bp_tensor *mask)
{
    walk v;
    int64_t n = 0;
    walk_start(&v, mask->rank, mask->sizes);
    walk_add(&v, mask->strides);
    for (; v.left; walk_next(&v))
        n += is_set(mask, v.at[0]);
    return n;
}

bp_status kernel_masked_select(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *self = arg_tensor(k->args, 0), *mask = arg_tensor(k->args, 1);
    bp_dim sizes[TENSOR_MAX_RANK];
    uint32_t rank = self->rank > mask->rank ? self->rank : mask->rank;
    TRY(layout_broadcast(c, self->rank, self->sizes, mask->rank, mask->sizes, sizes));
    self = work_expand(&w, self, rank, sizes);
    mask = work_expand(&w, mask, rank, sizes);
    int64_t n = work_ok(&w) ? count_set(mask) : 0, i = 0;
    if (work_ok(&w))
        k->out[0] = tensor_contiguous_new(c, self->dtype, 1, &n);
    if (work_ok(&w)) {
        walk v;
        walk_start(&v, rank, sizes);
        walk_add(&v, self->strides);
        walk_add(&v, mask->strides);
        for (; v.left; walk_next(&v))
            if (is_set(mask, v.at[1]))
                memcpy(element(k->out[0], i++), element(self, v.at[0]), dtype_size(self->dtype));
    }
    return work_end(&w);
}

bp_status kernel_masked_scatter(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *out = k->out[0], *mask = work_expand(&w, arg_tensor(k->args, 1), out->rank, out->sizes);
    bp_tensor *self = work_expand(&w, arg_tensor(k->args, 0), out->rank, out->sizes);
    bp_tensor *src = work_in(&w, arg_tensor(k->args, 2), BP_DTYPE_UNSET);
    int64_t n = work_ok(&w) ? tensor_nelem(src) : 0, i = 0;
    if (work_ok(&w) && count_set(mask) > n)
        op_fail(c, k->op, BP_OUT_OF_RANGE, "the mask picks %lld elements, and the source has %lld",
                (long long)count_set(mask), (long long)n);
    if (work_ok(&w) && tensor_copy(c, out, self) == BP_OK) {
        walk v;
        walk_start(&v, out->rank, out->sizes);
        walk_add(&v, out->strides);
        walk_add(&v, mask->strides);
        for (; v.left; walk_next(&v))
            if (is_set(mask, v.at[1]))
                memcpy(element(out, v.at[0]), element(src, i++), dtype_size(out->dtype));
    }
    return work_end(&w);
}

/* What masked_scatter took from its source, in order, and zeros after it. */
bp_status kernel_masked_scatter_backward(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *grad = arg_tensor(k->args, 0), *mask = work_expand(&w, arg_tensor(k->args, 1), grad->rank, grad->sizes);
    bp_tensor *out = work_out(&w, k->out[0], BP_DTYPE_UNSET);
    if (work_ok(&w)) {
        size_t size = dtype_size(out->dtype);
        int64_t n = tensor_nelem(out), i = 0;
        walk v;
        if (n)
            memset(tensor_ptr(out), 0, (size_t)n * size);
        walk_start(&v, grad->rank, grad->sizes);
        walk_add(&v, grad->strides);
        walk_add(&v, mask->strides);
        for (; v.left && i < n; walk_next(&v))
            if (is_set(mask, v.at[1]))
                memcpy(element(out, i++), element(grad, v.at[0]), size);
    }
    return work_end(&w);
}

/* -- positions -- */

typedef struct {
    int64_t n, stride, *at;
} position_list; /* coordinate d of entry i is at [i * 1 + d * stride] */

/* Counts the elements that are not zero; with a list, writes up to list->n of their coordinates. */
static int64_t positions(const bp_tensor *t, int64_t entry, const position_list *list)
{
    walk v;
    int64_t n = 0;
    walk_start(&v, t->rank, t->sizes);
    walk_add(&v, t->strides);
    for (; v.left; walk_next(&v)) {
        if (num_is_zero(dtype_load(t->dtype, element(t, v.at[0]))))
            continue;
        for (uint32_t d = 0; list && n < list->n && d < t->rank; d++)
            list->at[n * entry + d * list->stride] = v.index[d];
        n++;
    }
    return n;
}

/* PyTorch writes coordinates a dimension at a time, so the result is the transpose of a contiguous one. */
bp_status kernel_nonzero(bp_ctx *c, op_call *k)
{
    const bp_tensor *self = arg_tensor(k->args, 0);
    int64_t n = positions(self, 0, NULL);
    bp_dim sizes[] = {dim_const(n), dim_const(self->rank)}, strides[] = {dim_const(1), dim_const(n)};
    tensor_meta m = {BP_I64, tensor_device(self), 2, sizes, strides, dim_const(0)};
    k->out[0] = tensor_new(c, &m);
    if (k->out[0])
        positions(self, 1, &(position_list){n, n, tensor_ptr(k->out[0])});
    return c->diag.code;
}

/* One vector a dimension; a 0-d tensor counts as one of one element. */
bp_status kernel_nonzero_numpy(bp_ctx *c, op_call *k)
{
    const bp_tensor *self = arg_tensor(k->args, 0);
    int64_t n = positions(self, 0, NULL), rank = self->rank ? self->rank : 1;
    bp_tensor *all = tensor_contiguous_new(c, BP_I64, 2, (int64_t[]){rank, n});
    if (ctx_ok(c) && n) {
        memset(tensor_ptr(all), 0, (size_t)(rank * n) * sizeof(int64_t));
        positions(self, 1, &(position_list){n, n, tensor_ptr(all)});
    }
    for (int64_t d = 0; ctx_ok(c) && d < rank; d++) {
        bp_dim size = dim_const(n), stride = dim_const(1);
        tensor_meta m = {BP_I64, tensor_device(self), 1, &size, &stride, dim_const(d * n)};
        k->out[d] = tensor_view(c, all, &m);
    }
    tensor_unref(all);
    return c->diag.code;
}

bp_status kernel_nonzero_static(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    const bp_tensor *self = arg_tensor(k->args, 0);
    bp_tensor *out = work_out(&w, k->out[0], BP_DTYPE_UNSET);
    if (work_ok(&w)) {
        int64_t n = tensor_nelem(out), *at = tensor_ptr(out), fill = arg_int(c, k->args, 2);
        for (int64_t i = 0; i < n; i++)
            at[i] = fill;
        positions(self, self->rank, &(position_list){tensor_dim(out, 0), 1, at});
    }
    return work_end(&w);
}

bp_status kernel_one_hot(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *self = work_in(&w, arg_tensor(k->args, 0), BP_I64);
    const int64_t *data = self ? tensor_ptr(self) : NULL;
    int64_t classes = arg_int(c, k->args, 1), n = self ? tensor_nelem(self) : 0, top = -1, sizes[TENSOR_MAX_RANK + 1];
    for (int64_t i = 0; work_ok(&w) && i < n; i++) {
        if (data[i] < 0 || (classes >= 0 && data[i] >= classes))
            op_fail(c, k->op, BP_OUT_OF_RANGE, "class %lld is out of range for %lld classes", (long long)data[i],
                    (long long)classes);
        top = data[i] > top ? data[i] : top;
    }
    if (work_ok(&w) && classes < 0 && n == 0)
        op_fail(c, k->op, BP_INVALID_ARGUMENT, "the number of classes cannot be found in an empty tensor");
    if (!work_ok(&w))
        return work_end(&w);
    classes = classes < 0 ? top + 1 : classes;
    for (uint32_t d = 0; d < self->rank; d++)
        sizes[d] = tensor_dim(self, d);
    sizes[self->rank] = classes;
    if (!k->out[0])
        k->out[0] = tensor_contiguous_new(c, BP_I64, self->rank + 1, sizes);
    bp_tensor *out = work_out(&w, k->out[0], BP_DTYPE_UNSET);
    if (work_ok(&w) && n * classes > 0)
        memset(tensor_ptr(out), 0, (size_t)(n * classes) * sizeof(int64_t));
    for (int64_t i = 0; work_ok(&w) && i < n; i++)
        ((int64_t *)tensor_ptr(out))[i * classes + data[i]] = 1;
    return work_end(&w);
}
