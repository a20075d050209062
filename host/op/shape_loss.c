/* Shape rules of losses: a loss an element, or one number when they are averaged (reduction 1) or summed (2). */
#include "host/op/rows.h"
#include "host/op/shape_pointwise.h"

static bp_dtype dtype_of(const shape_call *s, uint32_t i)
{
    const bp_tensor *t = arg_tensor(s->args, i);
    return t ? (bp_dtype)t->dtype : BP_DTYPE_UNSET;
}

/* 0, 1 or 2 from argument "reduction". */
static bp_status reduction_of(bp_ctx *c, const shape_call *s, int64_t *out)
{
    *out = arg_int(c, s->args, (uint32_t)schema_find(s->op->schema, "reduction"));
    if (*out < 0 || *out > 2)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                       "argument \"reduction\": %lld is none of 0 (none), 1 (mean) and 2 (sum)", (long long)*out);
    return BP_OK;
}

/* Losses of two operands (and a weight); what is averaged or summed must still broadcast. */
bp_status shape_pair_loss(bp_ctx *c, shape_call *s)
{
    int64_t reduction;
    bp_dtype d = pointwise_promote(c, s->args, 2);
    TRY(reduction_of(c, s, &reduction));
    if (!dtype_is_float(d))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "not there for %s", dtype_get(d)->torch);
    TRY(pointwise_add_out(c, s, d, 0));
    if (reduction == 0)
        return BP_OK;
    s->nout--;
    return shape_add_out(c, s, d, 0, NULL) ? BP_OK : c->diag.code;
}

/* Their gradients: of the size of all operands together. */
bp_status shape_pair_loss_backward(bp_ctx *c, shape_call *s)
{
    int64_t reduction;
    TRY(reduction_of(c, s, &reduction));
    return pointwise_add_out(c, s, pointwise_promote(c, s->args + 1, 2), 0);
}

/* -- nll: self is [C], [N, C] or [N, C, ...], target the same without C -- */
static bp_status check_nll(bp_ctx *c, const shape_call *s, uint32_t self, int64_t *reduction)
{
    const bp_tensor *x = arg_tensor(s->args, self), *t = arg_tensor(s->args, self + 1);
    const bp_tensor *w = arg_tensor(s->args, self + 2);
    TRY(reduction_of(c, s, reduction));
    if (x->rank == 0 || !dtype_is_float((bp_dtype)x->dtype))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"self\": expected a float tensor of classes");
    if (t->dtype != BP_I64 && t->dtype != BP_U8)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"target\": expected int64 or uint8, got %s",
                       dtype_get(t->dtype)->torch);
    uint32_t classes = x->rank == 1 ? 0 : 1;
    bool fits = t->rank + 1 == x->rank ||
                (x->rank == 1 && t->rank == 1 && dim_require(DIM_EQ, t->sizes[0], dim_const(1)));
    for (uint32_t d = 0; fits && x->rank > 1 && d < t->rank; d++)
        fits = dim_require(DIM_EQ, t->sizes[d], x->sizes[d < 1 ? 0 : d + 1]);
    if (!fits)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                       "argument \"target\" has not the sizes of \"self\" without classes");
    if (w && (w->rank != 1 || !dim_require(DIM_EQ, w->sizes[0], x->sizes[classes])))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"weight\": expected a number for each of %s classes",
                       op_dim_text(c, x->sizes[classes]));
    return BP_OK;
}

static bp_status nll(bp_ctx *c, shape_call *s, bool with_total)
{
    const bp_tensor *x = arg_tensor(s->args, 0), *t = arg_tensor(s->args, 1);
    int64_t reduction;
    TRY(check_nll(c, s, 0, &reduction));
    bool is_each = reduction == 0 && (x->rank > 1 || !with_total);
    shape_add_out(c, s, dtype_of(s, 0), is_each ? t->rank : 0, is_each ? t->sizes : NULL);
    if (with_total)
        shape_add_out(c, s, dtype_of(s, 0), 0, NULL);
    return c->diag.code;
}

bp_status shape_nll_forward(bp_ctx *c, shape_call *s) { return nll(c, s, true); }
bp_status shape_nll_loss(bp_ctx *c, shape_call *s) { return nll(c, s, false); }

bp_status shape_nll_backward(bp_ctx *c, shape_call *s)
{
    const bp_tensor *x = arg_tensor(s->args, 1);
    int64_t reduction;
    TRY(check_nll(c, s, 1, &reduction));
    return shape_add_out(c, s, dtype_of(s, 1), x->rank, x->sizes) ? BP_OK : c->diag.code;
}
