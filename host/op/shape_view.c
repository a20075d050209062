/* Shape rules of views: sizes, strides and offset of what shares its argument's memory. */
#include "host/op/rows.h"

/* Whether t broadcasts to these sizes without changing them. */
static bool broadcasts_to(const bp_tensor *t, uint32_t rank, const bp_dim *sizes)
{
    for (uint32_t d = 0; d < t->rank && t->rank <= rank; d++)
        if (!dim_is(t->sizes[d], 1) && !dim_eq(t->sizes[d], sizes[rank - t->rank + d]))
            return false;
    return t->rank <= rank;
}

static bp_status check_broadcast_to(bp_ctx *c, const op_row *op, const char *arg, const bp_tensor *t, uint32_t rank,
                                    const bp_dim *sizes)
{
    char have[200];
    buf want = {0};
    if (broadcasts_to(t, rank, sizes))
        return BP_OK;
    for (uint32_t d = 0; d < rank; d++)
        buf_printf(&want, "%s%lld", d ? ", " : "", (long long)sizes[d].value);
    op_fail(c, op, BP_INVALID_ARGUMENT, "argument \"%s\" is %s, which does not broadcast to [%s]", arg,
            tensor_describe(t, have, sizeof have), buf_text(&want));
    buf_fini(&want);
    return c->diag.code;
}

bp_status shape_same_view(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    shape_add_view(c, s, 0, t->rank, t->sizes);
    return c->diag.code;
}

/* Strides of a copy in a memory format; UNSET keeps the argument's order. */
static bp_status copy_strides(bp_ctx *c, const bp_tensor *t, int32_t format, shape_out *o)
{
    if (format == BP_MEMORY_FORMAT_UNSET || format == BP_PRESERVE)
        layout_preserve(c, t, o->meta.strides);
    else
        TRY(layout_memory_format(c, o->meta.rank, o->meta.sizes, format, o->meta.strides));
    return c->diag.code;
}

bp_status shape_clone(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    shape_out *o = shape_add_out(c, s, t->dtype, t->rank, t->sizes);
    return o ? copy_strides(c, t, arg_memory_format(s->args, 1), o) : c->diag.code;
}

/* The result has self's type, sizes and order; src must broadcast to them. */
bp_status shape_copy_into(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0), *src = arg_tensor(s->args, 1);
    TRY(check_broadcast_to(c, s->op, "src", src, self->rank, self->sizes));
    shape_out *o = shape_add_out(c, s, self->dtype, self->rank, self->sizes);
    return o ? copy_strides(c, self, BP_PRESERVE, o) : c->diag.code;
}
