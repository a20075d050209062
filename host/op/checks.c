/* Checks that shape rules share (checks.h). */
#include "host/op/checks.h"
#include "host/sym/env.h"
#include <stdio.h>
#include <string.h>

static const char *name_of(const shape_call *s, uint32_t i) { return s->op->schema->args[i].name; }

const char *sizes_text(char *dst, size_t cap, uint32_t rank, const bp_dim *sizes)
{
    buf text = {0};
    buf_putc(&text, '[');
    for (uint32_t d = 0; d < rank; d++) {
        buf_puts(&text, d ? ", " : "");
        sym_print(sym_current(), sizes[d], false, &text);
    }
    buf_putc(&text, ']');
    snprintf(dst, cap, "%s", buf_text(&text));
    buf_fini(&text);
    return dst;
}

bp_status check_rank(bp_ctx *c, const shape_call *s, uint32_t i, uint32_t low, uint32_t high)
{
    const bp_tensor *t = arg_tensor(s->args, i);
    if (t->rank >= low && t->rank <= high)
        return BP_OK;
    if (low == high)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"%s\" must have %u dimensions, and has %u",
                       name_of(s, i), low, t->rank);
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"%s\" must have %u to %u dimensions, and has %u",
                   name_of(s, i), low, high, t->rank);
}

bp_status check_same_dtype(bp_ctx *c, const shape_call *s, uint32_t i, uint32_t j)
{
    const bp_tensor *a = arg_tensor(s->args, i), *b = arg_tensor(s->args, j);
    if (a->dtype == b->dtype)
        return BP_OK;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                   "arguments \"%s\" and \"%s\" must have one dtype, and have %s and %s", name_of(s, i), name_of(s, j),
                   dtype_get(a->dtype)->torch, dtype_get(b->dtype)->torch);
}

bp_status check_index_dtype(bp_ctx *c, const shape_call *s, uint32_t i)
{
    const bp_tensor *t = arg_tensor(s->args, i);
    if (t->dtype == BP_I64 || t->dtype == BP_I32)
        return BP_OK;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"%s\" must be int64 or int32, and is %s", name_of(s, i),
                   dtype_get(t->dtype)->torch);
}

bp_status check_expands(bp_ctx *c, const shape_call *s, uint32_t i, uint32_t rank, const bp_dim *sizes)
{
    const bp_tensor *t = arg_tensor(s->args, i);
    char from[256], to[256];
    bool fits = t->rank <= rank;
    for (uint32_t d = 0; fits && d < t->rank; d++)
        fits = layout_expands(t->sizes[d], sizes[rank - t->rank + d]);
    if (fits)
        return BP_OK;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"%s\" of sizes %s cannot be expanded to %s",
                   name_of(s, i), sizes_text(from, sizeof from, t->rank, t->sizes),
                   sizes_text(to, sizeof to, rank, sizes));
}

bool is_empty(const bp_tensor *t)
{
    for (uint32_t d = 0; d < t->rank; d++)
        if (dim_eq_or_false(t->sizes[d], dim_const(0)))
            return true;
    return false;
}

bool sizes_must_match(uint32_t n, const bp_dim *a, const bp_dim *b)
{
    for (uint32_t d = 0; d < n; d++)
        if (!dim_same(a[d], b[d]) && !dim_require(DIM_EQ, a[d], b[d]))
            return false;
    return true;
}

bool shape_data_size(bp_ctx *c, int64_t min, bp_dim max, bp_dim *out)
{
    sym_env *e = sym_current();
    if (!e || !sym_captures_data(e))
        return false;
    bool bounded = !dim_is_const(max) || max.value >= 0;
    sym_symbol s = {.min = min, .max = bounded && dim_is_const(max) ? max.value : INT64_MAX, .unbacked = true,
                    .source = {.at = SYM_NO_SOURCE}};
    *out = sym_add_symbol(e, c, &s);
    if (ctx_ok(c) && bounded && !dim_is_const(max))
        sym_assume(e, c, dim_compare(c, DIM_LE, *out, max), SYM_GIVEN);
    return ctx_ok(c);
}

bp_status check_dim(bp_ctx *c, const shape_call *s, uint32_t i, const bp_tensor *t, uint32_t *dim)
{
    return op_wrap_dim(c, s->op, name_of(s, i), arg_int(c, s->args, i), t->rank, dim);
}

bp_status out_like(bp_ctx *c, shape_call *s, const bp_tensor *t, bp_dtype dtype)
{
    shape_out *o = shape_add_out(c, s, dtype, t->rank, t->sizes);
    if (o)
        layout_preserve(c, t, o->meta.strides);
    return c->diag.code;
}

bp_status out_new(bp_ctx *c, shape_call *s, bp_dtype dtype, uint32_t rank, const bp_dim *sizes)
{
    shape_add_out(c, s, dtype, rank, sizes);
    return c->diag.code;
}

bp_status out_unknown(bp_ctx *c, shape_call *s, bp_dtype dtype, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        shape_out *o = shape_add_out(c, s, dtype, 0, NULL);
        if (o)
            o->unknown = true;
    }
    return c->diag.code;
}

bool suggests_channels_last(const bp_tensor *t) { return tensor_suggest_format(t) != BP_CONTIGUOUS; }

bp_status out_format_of(bp_ctx *c, shape_call *s, const bp_tensor *t, bp_dtype dtype, uint32_t rank,
                        const bp_dim *sizes)
{
    shape_out *o = shape_add_out(c, s, dtype, rank, sizes);
    if (o && rank == t->rank && suggests_channels_last(t))
        layout_memory_format(c, rank, sizes, rank == 4 ? BP_CHANNELS_LAST : BP_CHANNELS_LAST_3D, o->meta.strides);
    return c->diag.code;
}
