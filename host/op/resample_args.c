/* Reading the arguments of upsampling (resample_args.h). */
#include "host/op/resample_args.h"
#include "host/op/checks.h"
#include <math.h>
#include <string.h>

static enum resample_kind kind_of(const char *name)
{
    return strstr(name, "nearest_exact") ? RESAMPLE_NEAREST_EXACT
           : strstr(name, "nearest")     ? RESAMPLE_NEAREST
           : strstr(name, "cubic")       ? RESAMPLE_CUBIC
                                         : RESAMPLE_LINEAR;
}

static uint32_t dims_of(const char *name) { return strstr(name, "1d") ? 1 : strstr(name, "2d") ? 2 : 3; }

static int32_t find(const op_row *op, const char *name) { return schema_find(op->schema, name); }

/* "scales", or one argument a dimension. */
static void read_scales(const op_row *op, const bp_value *args, resample_args *out)
{
    static const char *const NAMES[] = {"scales_d", "scales_h", "scales_w"};
    for (uint32_t d = 0; d < out->nd; d++) {
        int32_t i = find(op, out->nd == 1 ? "scales" : NAMES[d + 3 - out->nd]);
        if (i >= 0 && !arg_is_none(args, (uint32_t)i))
            out->scale[d] = arg_float(args, (uint32_t)i);
    }
}

static bp_status read_list(bp_ctx *c, const op_row *op, const bp_value *args, int32_t i, uint32_t n, bp_dim *out)
{
    uint32_t have = arg_list_len(args, (uint32_t)i);
    if (have != n)
        return op_fail(c, op, BP_INVALID_ARGUMENT, "argument \"%s\" has %u numbers, expected %u",
                       op->schema->args[i].name, have, n);
    for (uint32_t d = 0; d < n; d++)
        out[d] = arg_list_dim(args, (uint32_t)i, d);
    return BP_OK;
}

/* n * factor, cut: an expression where the factor is a fraction of a power of two, so that a double makes no mistake.
 * Of other factors only numbers are known to be cut right. */
static bp_dim scaled(bp_ctx *c, bp_dim n, double factor)
{
    double top = factor;
    int64_t bottom = 1;
    while (!dim_is_const(n) && bottom < 1 << 16 && top != floor(top))
        top *= 2, bottom *= 2;
    if (!dim_is_const(n) && top == floor(top) && top > 0 && top < 0x1p30)
        return dim_floordiv(c, dim_mul(c, n, dim_const((int64_t)top)), dim_const(bottom));
    double size = (double)dim_int(c, n) * factor;
    return dim_const(size > 0 && size < 0x1p62 ? (int64_t)size : 0);
}

/* Sizes from factors: cut, not rounded. */
static bp_status read_factors(bp_ctx *c, const op_row *op, const bp_value *args, int32_t i, resample_args *out)
{
    if (arg_list_len(args, (uint32_t)i) != out->nd)
        return op_fail(c, op, BP_INVALID_ARGUMENT, "argument \"scale_factors\" has %u numbers, expected %u",
                       arg_list_len(args, (uint32_t)i), out->nd);
    for (uint32_t d = 0; d < out->nd; d++) {
        out->scale[d] = arg_float(args[i].v.items, d);
        out->out[d] = scaled(c, out->in[d], out->scale[d]);
    }
    return c->diag.code;
}

static bp_status read_sizes(bp_ctx *c, const op_row *op, const bp_value *args, resample_args *out)
{
    int32_t size = find(op, "output_size"), factors = find(op, "scale_factors");
    bool has_size = !arg_is_none(args, (uint32_t)size),
         has_factors = factors >= 0 && !arg_is_none(args, (uint32_t)factors);
    if (has_size == has_factors)
        return op_fail(c, op, BP_INVALID_ARGUMENT, "exactly one of output_size and scale_factors must be given");
    return has_size ? read_list(c, op, args, size, out->nd, out->out) : read_factors(c, op, args, factors, out);
}

static bp_status check_sizes(bp_ctx *c, const op_row *op, const resample_args *a)
{
    for (uint32_t d = 0; d < a->nd; d++)
        if (!dim_require(DIM_LT, dim_const(0), a->in[d]) || !dim_require(DIM_LT, dim_const(0), a->out[d]))
            return op_fail(c, op, BP_INVALID_ARGUMENT, "sizes must be positive, and %s elements are resampled to %s",
                           op_dim_text(c, a->in[d]), op_dim_text(c, a->out[d]));
    if (!dim_require(DIM_LT, dim_const(0), a->channels))
        return op_fail(c, op, BP_INVALID_ARGUMENT, "an image without channels");
    return c->diag.code;
}

bp_status resample_args_read(bp_ctx *c, const op_row *op, const bp_value *args, resample_args *out)
{
    const char *name = op->schema->name;
    const bp_tensor *t = arg_tensor(args, 0);
    int32_t align = find(op, "align_corners"), input = find(op, "input_size");
    bp_dim sizes[5];
    *out = (resample_args){.kind = kind_of(name), .nd = dims_of(name), .backward = input > 0};
    out->align_corners = align >= 0 && arg_bool(args, (uint32_t)align);
    if (t->rank != out->nd + 2)
        return op_fail(c, op, BP_INVALID_ARGUMENT, "the input has %u dimensions, and must have %u", t->rank,
                       out->nd + 2);
    memcpy(sizes, t->sizes, t->rank * sizeof *sizes);
    if (out->backward)
        TRY(read_list(c, op, args, input, out->nd + 2, sizes));
    out->batch = sizes[0], out->channels = sizes[1];
    memcpy(out->in, sizes + 2, out->nd * sizeof *sizes);
    read_scales(op, args, out);
    TRY(read_sizes(c, op, args, out));
    return check_sizes(c, op, out);
}
