/* Shape rules of masks and positions. Results whose size depends on data are
 * the kernel's: their rules only check. */
#include "host/op/checks.h"
#include "host/op/rows.h"
#include <string.h>

static bp_status check_mask(bp_ctx *c, const shape_call *s, uint32_t i)
{
    const bp_tensor *t = arg_tensor(s->args, i);
    if (t->dtype == BP_BOOL)
        return BP_OK;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"mask\" must be bool, and is %s",
                   dtype_get(t->dtype)->torch);
}

/* self and mask broadcast together; contiguous. */
static bp_status masked(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0), *mask = arg_tensor(s->args, 1);
    bp_dim sizes[TENSOR_MAX_RANK];
    TRY(check_mask(c, s, 1));
    TRY(layout_broadcast(c, self->rank, self->sizes, mask->rank, mask->sizes, sizes));
    return out_new(c, s, self->dtype, self->rank > mask->rank ? self->rank : mask->rank, sizes);
}

bp_status shape_masked_fill(bp_ctx *c, shape_call *s)
{
    if (s->args[2].kind == BP_VALUE_TENSOR)
        TRY(check_rank(c, s, 2, 0, 0));
    return masked(c, s);
}

bp_status shape_masked_scatter(bp_ctx *c, shape_call *s)
{
    TRY(check_same_dtype(c, s, 0, 2));
    return masked(c, s);
}

bp_status shape_masked_select(bp_ctx *c, shape_call *s)
{
    bp_dim n;
    TRY(masked(c, s));
    shape_out *all = &s->out[0];
    all->unknown = !shape_data_size(c, 0, dim_product(c, all->meta.sizes, all->meta.rank), &n);
    if (all->unknown || !ctx_ok(c))
        return c->diag.code;
    s->nout = 0;
    return out_new(c, s, arg_tensor(s->args, 0)->dtype, 1, &n);
}

bp_status shape_masked_scatter_backward(bp_ctx *c, shape_call *s)
{
    const bp_tensor *grad = arg_tensor(s->args, 0);
    uint32_t rank;
    bp_dim *sizes = arg_dims(c, s->args, 2, &rank);
    TRY(check_expands(c, s, 1, grad->rank, grad->sizes));
    return sizes ? out_new(c, s, grad->dtype, rank, sizes) : c->diag.code;
}

/* Rows of coordinates, laid out a coordinate at a time. */
bp_status shape_nonzero(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    bp_dim n;
    if (!shape_data_size(c, 0, tensor_numel(c, t), &n))
        return out_unknown(c, s, BP_I64, 1);
    shape_out *o = shape_add_out(c, s, BP_I64, 2, (bp_dim[]){n, dim_const(t->rank)});
    if (o)
        o->meta.strides[0] = dim_const(1), o->meta.strides[1] = n;
    return c->diag.code;
}

/* A vector a dimension; a 0-d tensor counts as one of one element. */
bp_status shape_nonzero_numpy(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    uint32_t rank = t->rank ? t->rank : 1;
    bp_dim n;
    if (!shape_data_size(c, 0, tensor_numel(c, t), &n))
        return out_unknown(c, s, BP_I64, rank);
    for (uint32_t d = 0; d < rank; d++)
        TRY(out_new(c, s, BP_I64, 1, &n));
    return BP_OK;
}

bp_status shape_nonzero_static(bp_ctx *c, shape_call *s)
{
    bp_dim n = arg_dim(s->args, 1);
    if (!dim_require(DIM_LE, dim_const(0), n))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"size\" must not be negative, and is %s",
                       op_dim_text(c, n));
    return out_new(c, s, BP_I64, 2, (bp_dim[]){n, dim_const(arg_tensor(s->args, 0)->rank)});
}

/* The number of classes may be left to the data. */
bp_status shape_one_hot(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    bp_dim sizes[TENSOR_MAX_RANK];
    int64_t classes = arg_int(c, s->args, 1);
    if (self->dtype != BP_I64)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"self\" must be int64, and is %s",
                       dtype_get(self->dtype)->torch);
    TRY(check_rank(c, s, 0, 0, TENSOR_MAX_RANK - 1));
    if (classes < -1)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "%lld classes", (long long)classes);
    bp_dim n = dim_const(classes);
    if (classes < 0 && !shape_data_size(c, 1, dim_const(-1), &n))
        return out_unknown(c, s, BP_I64, 1);
    if (self->rank)
        memcpy(sizes, self->sizes, self->rank * sizeof *sizes);
    sizes[self->rank] = n;
    return out_new(c, s, BP_I64, self->rank + 1, sizes);
}
