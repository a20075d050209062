/* Shape rules of copies and conversions: clone, contiguous, to, and the copying forms of views. */
#include "host/op/checks.h"
#include "host/op/rows.h"
#include "host/op/view_rule.h"
#include <stdio.h>
#include <string.h>

bp_status add_copy(bp_ctx *c, shape_call *s, const bp_tensor *t, bp_dtype d, int32_t format)
{
    shape_out *o = shape_add_out(c, s, d, t->rank, t->sizes);
    if (!o)
        return c->diag.code;
    o->meta.device = tensor_device(t);
    if (format == BP_MEMORY_FORMAT_UNSET || format == BP_PRESERVE)
        layout_preserve(c, t, o->meta.strides);
    else
        TRY(layout_memory_format(c, o->meta.rank, o->meta.sizes, format, o->meta.strides));
    return c->diag.code;
}

bp_status shape_clone(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    return add_copy(c, s, t, t->dtype, arg_memory_format(s->args, 1));
}

bp_status shape_fresh_copy(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    return add_copy(c, s, t, t->dtype, BP_PRESERVE);
}

static bool has_format(const bp_tensor *t, int32_t format)
{
    if (format == BP_CHANNELS_LAST || format == BP_CHANNELS_LAST_3D)
        return t->rank == (format == BP_CHANNELS_LAST ? 4 : 5) && tensor_is_channels_last(t);
    return tensor_is_contiguous(t);
}

bp_status shape_contiguous(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    int32_t format = arg_memory_format(s->args, 1);
    if (format == BP_PRESERVE)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "the preserve format is no format of contiguous");
    return has_format(t, format) ? shape_same(c, s) : add_copy(c, s, t, t->dtype, format ? format : BP_CONTIGUOUS);
}

/* The result has self's type, sizes and order; src must broadcast to them. */
bp_status shape_copy_into(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    TRY(check_expands(c, s, 1, self->rank, self->sizes));
    return add_copy(c, s, self, self->dtype, BP_PRESERVE);
}

/* -- to ------------------------------------------------------------------------------------------------------------ */

/* Positions by name, since the overloads of `to` order their arguments differently; -1: the overload has none. */
static bp_dtype named_dtype(const shape_call *s)
{
    int32_t i = schema_find(s->op->schema, "dtype");
    return i < 0 ? BP_DTYPE_UNSET : arg_dtype(s->args, (uint32_t)i);
}

static bp_device named_device(const shape_call *s)
{
    int32_t i = schema_find(s->op->schema, "device");
    return i < 0 ? (bp_device){BP_DEVICE_UNSET, 0} : arg_device(s->args, (uint32_t)i);
}

static int32_t named_format(const shape_call *s)
{
    int32_t i = schema_find(s->op->schema, "memory_format");
    return i < 0 ? BP_MEMORY_FORMAT_UNSET : arg_memory_format(s->args, (uint32_t)i);
}

static bool named_copy(const shape_call *s)
{
    int32_t i = schema_find(s->op->schema, "copy");
    return i >= 0 && arg_bool(s->args, (uint32_t)i);
}

/* Argument 0 itself when nothing changes, unless a copy is asked for. */
static bp_status add_converted(bp_ctx *c, shape_call *s, bp_dtype d, bp_device device, int32_t format, bool copy)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    bp_device own = tensor_device(t);
    if (!device.kind)
        device = own;
    if (!d)
        d = t->dtype;
    bool same = d == t->dtype && device.kind == own.kind && device.index == own.index;
    bool kept = format == BP_MEMORY_FORMAT_UNSET || format == BP_PRESERVE || tensor_suggest_format(t) == format;
    if (same && kept && !copy)
        return shape_same(c, s);
    TRY(add_copy(c, s, t, d, format));
    s->out[0].meta.device = device;
    return BP_OK;
}

bp_status shape_to(bp_ctx *c, shape_call *s)
{
    return add_converted(c, s, named_dtype(s), named_device(s), named_format(s), named_copy(s));
}

bp_status shape_to_copy(bp_ctx *c, shape_call *s)
{
    return add_converted(c, s, named_dtype(s), named_device(s), named_format(s), true);
}

bp_status shape_to_other(bp_ctx *c, shape_call *s)
{
    const bp_tensor *other = arg_tensor(s->args, 1);
    return add_converted(c, s, other->dtype, tensor_device(other), named_format(s), named_copy(s));
}

bp_status shape_convert_element_type(bp_ctx *c, shape_call *s)
{
    return add_copy(c, s, arg_tensor(s->args, 0), arg_dtype(s->args, 1), BP_PRESERVE);
}

/* -- forms of a view ----------------------------------------------------------------------------------------------- */

const op_row *base_view_row(const op_row *op)
{
    char target[128];
    const char *name = op->schema->name, *end = strstr(name, "_copy");
    if (!end)
        return NULL;
    snprintf(target, sizeof target, "aten.%.*s.%s", (int)(end - name), name, op->schema->overload);
    return op_by_target(target);
}

/* "<view>_copy": the view's sizes, contiguous memory of its own. */
bp_status shape_view_copy(bp_ctx *c, shape_call *s)
{
    const op_row *view = base_view_row(s->op);
    if (!view)
        return ctx_fail(c, BP_INTERNAL, "%s: there is no view of that name", s->op->label);
    shape_call inner = *s;
    inner.op = view;
    TRY(view->shape(c, &inner));
    for (uint32_t i = 0; i < inner.nout; i++) {
        const tensor_meta *m = &inner.out[i].meta;
        if (!shape_add_out(c, s, m->dtype, m->rank, m->sizes))
            return c->diag.code;
    }
    return c->diag.code;
}
