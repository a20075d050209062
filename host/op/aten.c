/* Between C's types and values: the generated functions pack their arguments here and unpack their results.
 *
 * Packing never fails on its own: what memory lacks is the context's error, and the dispatch that follows does nothing.
 * Lists that an operator gives live in the scope, in the memory of a hidden tensor. */
#include "host/op/aten.h"
#include <string.h>

aten_call aten_begin(bp_ctx *c, uint32_t row)
{
    aten_call k = {c, op_at(row), arena_get_mark(&c->scratch)};
    if (!k.op && ctx_ok(c))
        ctx_nomem(c);
    return k;
}

void bp_site_(bp_ctx *c, const char *file, int32_t line)
{
    c->site_file = file;
    c->site_line = line;
}

void bp_raise_(bp_ctx *c, bp_status code, const char *text)
{
    if (!ctx_ok(c))
        return;
    ctx_fail(c, code, "%s", text);
    if (c->site_file)
        diag_while(&c->diag, "at %s:%d", c->site_file, c->site_line);
    c->site_file = NULL;
    c->site_line = 0;
}

/* -- packing ------------------------------------------------------------------------------------------------------- */

static const schema_arg *arg_of(const aten_call *k, uint32_t i)
{
    return k->op ? &k->op->schema->args[i] : NULL;
}

static bp_value default_of(const aten_call *k, uint32_t i)
{
    const schema_arg *g = arg_of(k, i);
    return g && g->has_default ? g->default_value : value_none();
}

static bp_value *room(aten_call *k, uint32_t n)
{
    bp_value *items = arena_array(&k->c->scratch, n, sizeof *items);
    if (!items)
        ctx_nomem(k->c);
    return items;
}

static bp_value null_or(bp_tensor *t, bool optional)
{
    return optional ? value_tensor(t) : (bp_value){.kind = BP_VALUE_TENSOR, .v.tensor = t};
}

bp_value pack_tensor(aten_call *k, uint32_t i, bp_tensor *t)
{
    const schema_arg *g = arg_of(k, i);
    return null_or(t, g && g->ty.optional);
}

bp_value pack_tensors(aten_call *k, uint32_t i, bp_tensors t)
{
    const schema_arg *g = arg_of(k, i);
    if (!t.at && !t.n && g && g->ty.optional_list)
        return default_of(k, i);
    bp_value *items = room(k, t.n);
    if (!items)
        return value_none();
    for (uint32_t j = 0; j < t.n; j++)
        items[j] = null_or(t.at[j], g && g->ty.optional_items);
    return value_list(items, t.n);
}

bp_value pack_scalar(aten_call *k, uint32_t i, bp_scalar s)
{
    const schema_arg *g = arg_of(k, i);
    if (s.kind == BP_SCALAR_UNSET)
        return default_of(k, i);
    if (g && g->ty.type == TYPE_BOOL && s.kind == BP_SCALAR_INT)
        return value_bool(s.v.i != 0);
    return value_scalar(s);
}

bp_value pack_scalars(aten_call *k, uint32_t i, bp_scalars s)
{
    bp_value *items = s.given ? room(k, s.n) : NULL;
    if (!items)
        return default_of(k, i);
    for (uint32_t j = 0; j < s.n; j++)
        items[j] = value_scalar(s.at[j]);
    return value_list(items, s.n);
}

bp_value pack_int(aten_call *k, uint32_t i, int64_t v)
{
    (void)k, (void)i;
    return value_int(v);
}

static bp_value dim_value(bp_dim d)
{
    return d.sym & VALUE_SYMBOL ? value_symbol(d.sym) : value_dim(d);
}

bp_value pack_dim(aten_call *k, uint32_t i, bp_dim d)
{
    (void)k, (void)i;
    return dim_value(d);
}

bp_value pack_float(aten_call *k, uint32_t i, double v)
{
    (void)k, (void)i;
    return value_float(v);
}

bp_value pack_bool(aten_call *k, uint32_t i, int v)
{
    (void)k, (void)i;
    return value_bool(v != 0);
}

bp_value pack_dims(aten_call *k, uint32_t i, bp_dims d)
{
    const schema_arg *g = arg_of(k, i);
    bp_value *items = d.given ? room(k, d.n) : NULL;
    if (!items)
        return default_of(k, i);
    for (uint32_t j = 0; j < d.n; j++)
        items[j] = g && g->ty.type == TYPE_BOOL ? value_bool(d.at[j].value != 0) : dim_value(d.at[j]);
    return value_list(items, d.n);
}

bp_value pack_floats(aten_call *k, uint32_t i, bp_floats f)
{
    bp_value *items = f.given ? room(k, f.n) : NULL;
    if (!items)
        return default_of(k, i);
    for (uint32_t j = 0; j < f.n; j++)
        items[j] = value_float(f.at[j]);
    return value_list(items, f.n);
}

bp_value pack_str(aten_call *k, uint32_t i, const char *s)
{
    return s ? value_str(s) : default_of(k, i);
}

bp_value pack_dtype(aten_call *k, uint32_t i, bp_dtype d)
{
    return d ? value_dtype(d) : default_of(k, i);
}

bp_value pack_layout(aten_call *k, uint32_t i, int32_t layout)
{
    return layout ? (bp_value){.kind = BP_VALUE_LAYOUT, .v.i = layout} : default_of(k, i);
}

bp_value pack_device(aten_call *k, uint32_t i, bp_device d)
{
    return d.kind ? (bp_value){.kind = BP_VALUE_DEVICE, .v.device = d} : default_of(k, i);
}

bp_value pack_format(aten_call *k, uint32_t i, int32_t format)
{
    return format ? (bp_value){.kind = BP_VALUE_MEMORY_FORMAT, .v.i = format} : default_of(k, i);
}

/* -- calling ------------------------------------------------------------------------------------------------------- */

static void end(aten_call *k)
{
    arena_reset(&k->c->scratch, k->mark);
    k->c->site_file = NULL;
    k->c->site_line = 0;
}

static bp_status dispatch(aten_call *k, const bp_value *args, op_call *call)
{
    call->op = k->op;
    call->args = args;
    return ctx_ok(k->c) ? op_dispatch(k->c, call) : k->c->diag.code;
}

void aten_tensors(aten_call *k, const bp_value *args, uint32_t n, bp_tensor **out)
{
    op_call call = {.out = out, .nout = n};
    bp_status st = dispatch(k, args, &call);
    if (st == BP_OK && call.out != out)
        memcpy(out, call.out, n * sizeof *out);
    for (uint32_t i = 0; i < n; i++)
        out[i] = st == BP_OK && i < call.nout ? scope_own(k->c, out[i]) : NULL;
    end(k);
}

bp_tensor *aten_tensor(aten_call *k, const bp_value *args)
{
    bp_tensor *out = NULL;
    aten_tensors(k, args, 1, &out);
    return out;
}

/* Memory that lives as long as the scope. */
static void *scope_memory(bp_ctx *c, size_t nbytes)
{
    bp_tensor *t = scope_own(c, tensor_contiguous_new(c, BP_U8, 1, (const int64_t[]){(int64_t)nbytes}));
    return t ? tensor_ptr(t) : NULL;
}

bp_tensors aten_list(aten_call *k, const bp_value *args)
{
    op_call call = {0};
    bp_tensors list = {NULL, 0};
    if (dispatch(k, args, &call) == BP_OK) {
        bp_tensor **at = call.nout ? scope_memory(k->c, call.nout * sizeof *at) : NULL;
        for (uint32_t i = 0; i < call.nout; i++) {
            bp_tensor *t = scope_own(k->c, call.out[i]);
            if (at)
                at[i] = t;
        }
        if (ctx_ok(k->c)) {
            list.at = at;
            list.n = call.nout;
        }
    }
    end(k);
    return list;
}

static bp_value item(aten_call *k, const bp_value *args)
{
    op_call call = {0};
    bp_value v = dispatch(k, args, &call) == BP_OK ? call.item : value_none();
    end(k);
    return v;
}

bp_scalar aten_scalar(aten_call *k, const bp_value *args)
{
    bp_value v = item(k, args);
    return arg_scalar(&v, 0);
}

bp_dim aten_dim(aten_call *k, const bp_value *args)
{
    bp_value v = item(k, args);
    return arg_dim(&v, 0);
}

double aten_float(aten_call *k, const bp_value *args)
{
    bp_value v = item(k, args);
    return arg_float(&v, 0);
}

int aten_bool(aten_call *k, const bp_value *args)
{
    bp_value v = item(k, args);
    return (int)(scalar_int(arg_scalar(&v, 0)) != 0);
}

bp_status aten_status(aten_call *k, const bp_value *args)
{
    op_call call = {0};
    bp_status st = dispatch(k, args, &call);
    end(k);
    return st;
}
