/* Parameters of layers: their names, their first values. */
#include "host/nn/nn.h"
#include <stdio.h>

bool nn_join(bp_ctx *c, const char *name, const char *leaf, char dst[256])
{
    if (!ctx_ok(c))
        return false;
    if (!name)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "the name of a layer is NULL: \"\" is the module itself"), false;
    int n = snprintf(dst, 256, "%s%s%s", name, *name ? "." : "", leaf);
    if (n < 0 || n >= 256)
        ctx_fail(c, BP_INVALID_ARGUMENT, "the name \"%.64s...\" of a layer is longer than 200 bytes", name);
    return ctx_ok(c);
}

bp_tensor *nn_attr(bp_ctx *c, bp_frame *f, bp_module *m, const char *name, const char *leaf)
{
    char full[256];
    return nn_join(c, name, leaf, full) ? bp_attr(f, m, full) : NULL;
}

bp_tensor *nn_attr_unless(bp_ctx *c, int32_t absent, bp_frame *f, bp_module *m, const char *name, const char *leaf)
{
    return absent ? NULL : nn_attr(c, f, m, name, leaf);
}

bp_status nn_add(bp_ctx *c, bp_module *m, const char *name, const char *leaf, bp_tensor *t)
{
    char full[256];
    return t && nn_join(c, name, leaf, full) ? bp_module_add_parameter(c, m, full, t) : c->diag.code;
}

bp_status nn_add_buffer(bp_ctx *c, bp_module *m, const char *name, const char *leaf, bp_tensor *t)
{
    char full[256];
    return t && nn_join(c, name, leaf, full) ? bp_module_add_buffer(c, m, full, t) : c->diag.code;
}

static bp_tensor *empty(bp_ctx *c, bp_dims sizes, bp_dtype dtype)
{
    return bp_aten_empty_memory_format(c, sizes, dtype, 0, (bp_device){0}, (bp_scalar){0}, 0);
}

bp_tensor *nn_uniform(bp_ctx *c, bp_dims sizes, bp_dtype dtype, double bound)
{
    bp_tensor *t = empty(c, sizes, dtype);
    return t ? bp_aten_uniform_inplace_default(c, t, -bound, bound) : NULL;
}

bp_tensor *nn_normal(bp_ctx *c, bp_dims sizes, bp_dtype dtype)
{
    bp_tensor *t = empty(c, sizes, dtype);
    return t ? bp_aten_normal_inplace_default(c, t, 0, 1) : NULL;
}

bp_tensor *nn_full(bp_ctx *c, bp_dims sizes, bp_dtype dtype, double value)
{
    bp_tensor *t = empty(c, sizes, dtype);
    return t ? bp_aten_fill_inplace_scalar(c, t, bp_scalar_float(value)) : NULL;
}

bool nn_positive(bp_ctx *c, const char *layer, const char *name, const char *what, int64_t value)
{
    if (!ctx_ok(c))
        return false;
    if (value > 0)
        return true;
    ctx_fail(c, BP_INVALID_ARGUMENT, "%s \"%s\": %s is %lld, and at least 1 is expected", layer, name ? name : "?",
             what, (long long)value);
    return false;
}
