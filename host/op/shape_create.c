/* Shape rules of tensors made from sizes and numbers. */
#include "host/op/checks.h"
#include "host/op/rows.h"
#include "host/op/view_rule.h"
#include <math.h>

static int32_t find(const shape_call *s, const char *name)
{
    return schema_find(s->op->schema, name);
}

/* What dtype=, device= and memory_format= say; unset ones are `dtype`, the rule's device, and no format. */
typedef struct { bp_dtype dtype; bp_device device; int32_t format; } options;

static options options_of(const shape_call *s, bp_dtype dtype)
{
    options o = {dtype, s->device, BP_MEMORY_FORMAT_UNSET};
    int32_t d = find(s, "dtype"), device = find(s, "device"), format = find(s, "memory_format");
    if (d >= 0 && arg_dtype(s->args, (uint32_t)d))
        o.dtype = arg_dtype(s->args, (uint32_t)d);
    if (device >= 0 && arg_device(s->args, (uint32_t)device).kind)
        o.device = arg_device(s->args, (uint32_t)device);
    if (format >= 0)
        o.format = arg_memory_format(s->args, (uint32_t)format);
    return o;
}

static bp_dtype scalar_dtype(bp_ctx *c, bp_scalar v)
{
    promote_state p = {0};
    promote_scalar(c, &p, v);
    return promote_result(&p);
}

static bp_status add_sized(bp_ctx *c, shape_call *s, uint32_t rank, const bp_dim *sizes, bp_dtype dtype)
{
    options o = options_of(s, dtype);
    shape_out *out = shape_add_out(c, s, o.dtype, rank, sizes);
    if (!out)
        return c->diag.code;
    out->meta.device = o.device;
    if (o.format == BP_CHANNELS_LAST || o.format == BP_CHANNELS_LAST_3D)
        TRY(layout_memory_format(c, rank, sizes, o.format, out->meta.strides));
    return c->diag.code;
}

/* Sizes in argument i. */
static bp_status add_sized_by(bp_ctx *c, shape_call *s, uint32_t i, bp_dtype dtype)
{
    uint32_t rank;
    bp_dim *sizes = arg_dims(c, s->args, i, &rank);
    return sizes ? add_sized(c, s, rank, sizes, dtype) : c->diag.code;
}

bp_status shape_sized(bp_ctx *c, shape_call *s)
{
    return add_sized_by(c, s, 0, c->ambient.default_dtype);
}

bp_status shape_full(bp_ctx *c, shape_call *s)
{
    return add_sized_by(c, s, 0, scalar_dtype(c, arg_scalar(s->args, 1)));
}

bp_status shape_new_sized(bp_ctx *c, shape_call *s)
{
    return add_sized_by(c, s, 1, arg_tensor(s->args, 0)->dtype);
}

bp_status shape_like(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    options o = options_of(s, t->dtype);
    TRY(add_copy(c, s, t, o.dtype, o.format));
    s->out[0].meta.device = o.device;
    return BP_OK;
}

bp_status shape_scalar_tensor(bp_ctx *c, shape_call *s)
{
    return add_sized(c, s, 0, NULL, c->ambient.default_dtype);
}

/* -- given strides ------------------------------------------------------------------------------------------------- */

/* Sizes and strides in arguments i and i + 1. */
static bp_status add_strided(bp_ctx *c, shape_call *s, uint32_t i, bp_dtype dtype)
{
    uint32_t rank = arg_list_len(s->args, i);
    if (arg_list_len(s->args, i + 1) != rank)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "%u sizes and %u strides", rank, arg_list_len(s->args, i + 1));
    TRY(add_sized_by(c, s, i, dtype));
    for (uint32_t d = 0; d < rank; d++)
        s->out[0].meta.strides[d] = arg_list_dim(s->args, i + 1, d);
    return BP_OK;
}

bp_status shape_empty_strided(bp_ctx *c, shape_call *s)
{
    return add_strided(c, s, 0, c->ambient.default_dtype);
}

bp_status shape_new_empty_strided(bp_ctx *c, shape_call *s)
{
    return add_strided(c, s, 1, arg_tensor(s->args, 0)->dtype);
}

bp_status shape_empty_permuted(bp_ctx *c, shape_call *s)
{
    uint32_t rank = arg_list_len(s->args, 0);
    bool seen[TENSOR_MAX_RANK] = {false};
    if (arg_list_len(s->args, 1) != rank)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "%u sizes and a physical layout of %u dimensions", rank,
                       arg_list_len(s->args, 1));
    TRY(add_sized_by(c, s, 0, c->ambient.default_dtype));
    tensor_meta *m = &s->out[0].meta;
    bp_dim step = dim_const(1);
    for (uint32_t i = rank; i-- > 0;) {
        int64_t d = dim_int(c, arg_list_dim(s->args, 1, i));
        if (d < 0 || d >= rank || seen[d])
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"physical_layout\" is no order of %u dimensions",
                           rank);
        seen[d] = true;
        m->strides[d] = step;
        step = dim_mul(c, step, dim_is_const(m->sizes[d]) && !m->sizes[d].value ? dim_const(1) : m->sizes[d]);
    }
    return c->diag.code;
}

/* -- sequences ----------------------------------------------------------------------------------------------------- */

static bp_scalar named_scalar(const shape_call *s, const char *name, int64_t otherwise)
{
    int32_t i = find(s, name);
    return i >= 0 ? arg_scalar(s->args, (uint32_t)i) : (bp_scalar){BP_SCALAR_INT, 0, {otherwise}};
}

static bool is_float(bp_scalar v)
{
    return v.kind == BP_SCALAR_FLOAT;
}

/* How many numbers lie from start up to end by step: in integers where all are, which a double could not hold. */
static bp_status count_steps(bp_ctx *c, shape_call *s, bp_dtype d, bp_scalar start, bp_scalar end, bp_scalar step,
                             int64_t *n)
{
    double a = scalar_float(start), b = scalar_float(end), by = scalar_float(step);
    if (d == BP_I64) { /* cut before, as the elements will be */
        a = (double)scalar_int(start);
        b = (double)scalar_int(end);
        by = (double)scalar_int(step);
    }
    if (by == 0 || by != by)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "step must not be zero");
    if (!isfinite(a) || !isfinite(b))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "the range from %g to %g is not finite", a, b);
    if ((by > 0 && b < a) || (by < 0 && b > a))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "a step of %g does not lead from %g to %g", by, a, b);
    double count = ceil((b - a) / by);
    if (d == BP_I64) {
        int64_t from = scalar_int(start), to = scalar_int(end), stride = scalar_int(step);
        uint64_t span = stride > 0 ? (uint64_t)to - (uint64_t)from : (uint64_t)from - (uint64_t)to;
        uint64_t width = stride > 0 ? (uint64_t)stride : -(uint64_t)stride;
        count = (double)(span / width + (span % width != 0));
    }
    if (count >= 0x1p62)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "a range of %g numbers is too long", count);
    *n = (int64_t)count;
    return BP_OK;
}

static bp_dim whole_dim(bp_scalar v)
{
    return v.kind == BP_SCALAR_INT ? (bp_dim){v.v.i, v.sym, 0} : dim_const(scalar_int(v));
}

/* The same where start or end is a symbol, and no number a float. The step is a number. */
static bp_status count_symbolic(bp_ctx *c, shape_call *s, bp_scalar start, bp_scalar end, bp_scalar step, bp_dim *n)
{
    int64_t by = scalar_int(step);
    if (by == 0)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "step must not be zero");
    bp_dim from = whole_dim(by > 0 ? start : end), to = whole_dim(by > 0 ? end : start);
    if (!dim_require(DIM_LE, from, to))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "a step of %lld does not lead from %s to %s", (long long)by,
                       op_dim_text(c, whole_dim(start)), op_dim_text(c, whole_dim(end)));
    bp_dim width = dim_const(by > 0 ? by : -by), span = dim_sub(c, to, from);
    *n = dim_floordiv(c, dim_add(c, span, dim_sub(c, width, dim_const(1))), width);
    return c->diag.code;
}

static bool is_symbol(bp_scalar v)
{
    return v.kind == BP_SCALAR_INT && v.sym;
}

bp_status shape_arange(bp_ctx *c, shape_call *s)
{
    bp_scalar start = named_scalar(s, "start", 0), end = named_scalar(s, "end", 0), step = named_scalar(s, "step", 1);
    bool floats = is_float(start) || is_float(end) || is_float(step);
    options o = options_of(s, floats ? c->ambient.default_dtype : BP_I64);
    int64_t n = 0;
    if (dtype_is_complex(o.dtype) || o.dtype == BP_BOOL)
        return op_fail(c, s->op, BP_UNIMPLEMENTED, "a range of type %s", dtype_get(o.dtype)->torch);
    bp_dim length = {0};
    if (!floats && (is_symbol(start) || is_symbol(end))) {
        TRY(count_symbolic(c, s, start, end, step, &length));
    } else {
        TRY(count_steps(c, s, o.dtype, start, end, step, &n));
        length = dim_const(n);
    }
    return add_sized(c, s, 1, &length, o.dtype);
}

/* start and end may be numbers or 0-d tensors; arguments 0, 1; argument 2 counts the steps. */
bp_status shape_linspace(bp_ctx *c, shape_call *s)
{
    bp_dtype d = c->ambient.default_dtype;
    for (uint32_t i = 0; i < 2; i++) {
        const bp_tensor *t = arg_tensor(s->args, i);
        if (t && t->rank)
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"%s\" has %u dimensions, expected none",
                           s->op->schema->args[i].name, t->rank);
        if (t ? dtype_is_complex(t->dtype) : arg_scalar(s->args, i).kind == BP_SCALAR_COMPLEX)
            d = dtype_complex_of(c->ambient.default_dtype);
    }
    bp_dim n = arg_dim(s->args, 2);
    if (!dim_require(DIM_LE, dim_const(0), n))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"steps\" is %s, expected 0 or more",
                       op_dim_text(c, n));
    return add_sized(c, s, 1, &n, d);
}

bp_status shape_eye(bp_ctx *c, shape_call *s)
{
    bp_dim n = arg_dim(s->args, 0), m = find(s, "m") >= 0 ? arg_dim(s->args, 1) : n;
    return add_sized(c, s, 2, (bp_dim[]){n, m}, c->ambient.default_dtype);
}

/* -- self with another value --------------------------------------------------------------------------------------- */

bp_status shape_fill_tensor(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0), *value = arg_tensor(s->args, 1);
    if (value->rank)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"value\" has %u dimensions, expected none",
                       value->rank);
    return add_copy(c, s, t, t->dtype, BP_PRESERVE);
}

/* -- other sizes for self ------------------------------------------------------------------------------------------ */

/* self with new sizes, row major unless a format says otherwise; unchanged sizes change nothing. */
static bp_status add_resized(bp_ctx *c, shape_call *s, uint32_t rank, const bp_dim *sizes, int32_t format)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    bool same = rank == t->rank;
    for (uint32_t d = 0; same && d < rank; d++)
        same = dim_eq(sizes[d], t->sizes[d]);
    if (c->ambient.grad_enabled && (t->flags & TENSOR_REQUIRES_GRAD))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "a tensor that requires grad cannot be resized");
    if (same && !format)
        return shape_same(c, s);
    shape_out *o = shape_add_out(c, s, t->dtype, rank, sizes);
    if (!o)
        return c->diag.code;
    if (format)
        TRY(layout_memory_format(c, rank, sizes, format, o->meta.strides));
    o->meta.device = tensor_device(t);
    o->meta.offset = t->offset;
    o->alias_of = 0;
    o->is_argument = true;
    return c->diag.code;
}

bp_status shape_resize(bp_ctx *c, shape_call *s)
{
    uint32_t rank;
    bp_dim *sizes = arg_dims(c, s->args, 1, &rank);
    return sizes ? add_resized(c, s, rank, sizes, arg_memory_format(s->args, 2)) : c->diag.code;
}

bp_status shape_resize_as(bp_ctx *c, shape_call *s)
{
    const bp_tensor *other = arg_tensor(s->args, 1);
    int32_t format = arg_memory_format(s->args, 2);
    if (format == BP_PRESERVE)
        format = tensor_suggest_format(other);
    return add_resized(c, s, other->rank, other->sizes, format);
}
