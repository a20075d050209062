/* Shape rules of copies in which a view is overwritten, and of gradients of views. */
#include "host/op/checks.h"
#include "host/op/rows.h"
#include <string.h>

/* The result has self's strides, gaps included, unless self reaches an element twice. The source (argument 1) has the
 * sizes of the view that `row` makes of self and the arguments after the source. */
static bp_status overwritten(bp_ctx *c, shape_call *s, uint32_t row)
{
    const bp_tensor *self = arg_tensor(s->args, 0), *src = arg_tensor(s->args, 1);
    bp_value args[8] = {s->args[0]};
    shape_call view;
    char x[256], y[256];
    memcpy(args + 1, s->args + 2, (s->nargs - 2) * sizeof *args);
    TRY(op_infer(c, op_at(row), args, &view));
    const tensor_meta *m = &view.out[0].meta;
    if (m->rank != src->rank || !sizes_must_match(src->rank, m->sizes, src->sizes))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"src\" must have the view's sizes %s, and has %s",
                       sizes_text(x, sizeof x, m->rank, m->sizes), sizes_text(y, sizeof y, src->rank, src->sizes));
    TRY(out_like(c, s, self, self->dtype));
    if (!tensor_overlaps_itself(self) && self->rank)
        memcpy(s->out[0].meta.strides, self->strides, self->rank * sizeof *self->strides);
    return BP_OK;
}

bp_status shape_select_scatter(bp_ctx *c, shape_call *s) { return overwritten(c, s, ROW_select_int); }
bp_status shape_slice_scatter(bp_ctx *c, shape_call *s) { return overwritten(c, s, ROW_slice_tensor); }
bp_status shape_diagonal_scatter(bp_ctx *c, shape_call *s) { return overwritten(c, s, ROW_diagonal_default); }

bp_status shape_as_strided_scatter(bp_ctx *c, shape_call *s) { return overwritten(c, s, ROW_as_strided_default); }

/* -- backwards of views: zeros with the gradient written into the view -- */

bp_status shape_view_backward(bp_ctx *c, shape_call *s)
{
    uint32_t rank;
    bp_dim *sizes = arg_dims(c, s->args, 1, &rank);
    return sizes ? out_new(c, s, arg_tensor(s->args, 0)->dtype, rank, sizes) : c->diag.code;
}
