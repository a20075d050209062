/* Typed access to arguments, for shape rules and kernels.
 *
 * The arguments were checked against the schema before a rule or kernel sees them, so an accessor trusts their kinds
 * and answers an absent one with the neutral value that op.h names. */
#include "host/op/op.h"

bp_value value_symbol(uint32_t sym)
{
    return (bp_value){.kind = BP_VALUE_NODE, .v.node = sym};
}

bp_value value_unknown(bp_dtype d, bool other)
{
    if (d == BP_BOOL)
        return value_bool(other);
    if (dtype_is_complex(d))
        return (bp_value){.kind = BP_VALUE_COMPLEX, .v.f = {other ? 0.25 : 0.5, 0}};
    return dtype_is_float(d) ? value_float(other ? 0.25 : 0.5) : value_int(other ? 2 : 3);
}

bool value_any(const bp_value *v, bool (*is)(const bp_value *leaf))
{
    for (uint32_t i = 0; v->kind == BP_VALUE_LIST && i < v->count; i++)
        if (value_any(&v->v.items[i], is))
            return true;
    return is(v);
}

bool value_is_node(const bp_value *leaf)
{
    return leaf->kind == BP_VALUE_NODE;
}

bool value_is_symbol(const bp_value *leaf)
{
    return leaf->kind == BP_VALUE_INT && leaf->v.dim.sym;
}

bool value_map(bp_ctx *c, const bp_value *v, bool (*change)(void *arg, bp_value *leaf), void *arg, bp_value *to)
{
    *to = *v;
    if (v->kind != BP_VALUE_LIST)
        return change(arg, to);
    bp_value *items = arena_array(&c->scratch, v->count, sizeof *items);
    if (!items)
        return ctx_nomem(c), false;
    to->v.items = items;
    for (uint32_t i = 0; i < v->count; i++)
        if (!value_map(c, &v->v.items[i], change, arg, &items[i]))
            return false;
    return true;
}

bp_value value_scalar(bp_scalar s)
{
    if (s.sym & VALUE_SYMBOL && s.kind != BP_SCALAR_UNSET)
        return value_symbol(s.sym);
    switch (s.kind) {
    case BP_SCALAR_BOOL: return value_bool(s.v.i != 0);
    case BP_SCALAR_INT: return value_dim((bp_dim){s.v.i, s.sym, 0});
    case BP_SCALAR_FLOAT: return value_float(s.v.f[0]);
    case BP_SCALAR_COMPLEX: return (bp_value){.kind = BP_VALUE_COMPLEX, .v.f = {s.v.f[0], s.v.f[1]}};
    default: return value_none();
    }
}

bp_value value_dims(bp_ctx *c, const bp_dim *at, uint32_t n)
{
    bp_value *items = arena_array(&c->scratch, n, sizeof *items);
    if (!items) {
        ctx_nomem(c);
        return value_none();
    }
    for (uint32_t i = 0; i < n; i++)
        items[i] = value_dim(at[i]);
    return value_list(items, n);
}

bp_value value_ints(bp_ctx *c, const int64_t *at, uint32_t n)
{
    bp_value *items = arena_array(&c->scratch, n, sizeof *items);
    if (!items) {
        ctx_nomem(c);
        return value_none();
    }
    for (uint32_t i = 0; i < n; i++)
        items[i] = value_int(at[i]);
    return value_list(items, n);
}

bool arg_is_none(const bp_value *args, uint32_t i)
{
    return args[i].kind == BP_VALUE_NONE;
}

bp_tensor *arg_tensor(const bp_value *args, uint32_t i)
{
    return args[i].kind == BP_VALUE_TENSOR ? args[i].v.tensor : NULL;
}

bp_scalar arg_scalar(const bp_value *args, uint32_t i)
{
    const bp_value *v = &args[i];
    bp_scalar s = {BP_SCALAR_UNSET, 0, {0}};
    if (v->kind == BP_VALUE_BOOL) {
        s.kind = BP_SCALAR_BOOL;
        s.v.i = v->v.i;
    } else if (v->kind == BP_VALUE_INT) {
        s.kind = BP_SCALAR_INT;
        s.sym = v->v.dim.sym;
        s.v.i = v->v.dim.value;
    } else if (v->kind == BP_VALUE_FLOAT || v->kind == BP_VALUE_COMPLEX) {
        s.kind = v->kind == BP_VALUE_FLOAT ? BP_SCALAR_FLOAT : BP_SCALAR_COMPLEX;
        s.v.f[0] = v->v.f[0];
        s.v.f[1] = v->kind == BP_VALUE_COMPLEX ? v->v.f[1] : 0;
    }
    return s;
}

/* Of an integer or bool; a symbol is specialized. */
static int64_t whole(bp_scalar s)
{
    return s.sym ? dim_number((bp_dim){s.v.i, s.sym, 0}) : s.v.i;
}

double scalar_float(bp_scalar s)
{
    return s.kind == BP_SCALAR_FLOAT || s.kind == BP_SCALAR_COMPLEX ? s.v.f[0] : s.kind ? (double)whole(s) : 0;
}

int64_t scalar_int(bp_scalar s)
{
    if (s.kind != BP_SCALAR_FLOAT && s.kind != BP_SCALAR_COMPLEX)
        return s.kind ? whole(s) : 0;
    double f = s.v.f[0];
    if (f >= 0x1p63 || f < -0x1p63 || f != f)
        return INT64_MIN; /* what the processor answers, and what PyTorch's cast therefore gives */
    return (int64_t)f;
}

static bp_dim dim_of(const bp_value *v)
{
    return v->kind == BP_VALUE_INT ? v->v.dim : dim_const(v->kind == BP_VALUE_BOOL ? v->v.i : 0);
}

bp_dim arg_dim(const bp_value *args, uint32_t i)
{
    return dim_of(&args[i]);
}

int64_t arg_int(bp_ctx *c, const bp_value *args, uint32_t i)
{
    return dim_int(c, dim_of(&args[i]));
}

double arg_float(const bp_value *args, uint32_t i)
{
    return scalar_float(arg_scalar(args, i));
}

bool arg_bool(const bp_value *args, uint32_t i)
{
    return args[i].kind == BP_VALUE_BOOL && args[i].v.i;
}

const char *arg_str(const bp_value *args, uint32_t i)
{
    return args[i].kind == BP_VALUE_STRING ? args[i].v.str : NULL;
}

bp_dtype arg_dtype(const bp_value *args, uint32_t i)
{
    return args[i].kind == BP_VALUE_DTYPE ? (bp_dtype)args[i].v.i : BP_DTYPE_UNSET;
}

bp_device arg_device(const bp_value *args, uint32_t i)
{
    return args[i].kind == BP_VALUE_DEVICE ? args[i].v.device : (bp_device){BP_DEVICE_UNSET, 0};
}

int32_t arg_memory_format(const bp_value *args, uint32_t i)
{
    return args[i].kind == BP_VALUE_MEMORY_FORMAT ? (int32_t)args[i].v.i : BP_MEMORY_FORMAT_UNSET;
}

uint32_t arg_list_len(const bp_value *args, uint32_t i)
{
    return args[i].kind == BP_VALUE_LIST ? args[i].count : args[i].kind != BP_VALUE_NONE;
}

static const bp_value *item(const bp_value *args, uint32_t i, uint32_t k)
{
    return args[i].kind == BP_VALUE_LIST ? &args[i].v.items[k] : &args[i];
}

bp_tensor *arg_list_tensor(const bp_value *args, uint32_t i, uint32_t k)
{
    const bp_value *v = item(args, i, k);
    return v->kind == BP_VALUE_TENSOR ? v->v.tensor : NULL;
}

bp_dim arg_list_dim(const bp_value *args, uint32_t i, uint32_t k)
{
    return dim_of(item(args, i, k));
}

bp_status arg_ints(bp_ctx *c, const op_row *op, const bp_value *args, uint32_t i, uint32_t n, int64_t *out)
{
    uint32_t have = arg_list_len(args, i);
    if (have != 1 && have != n)
        return op_fail(c, op, BP_INVALID_ARGUMENT, "argument \"%s\" has %u numbers, expected %u (or one for all)",
                       op->schema->args[i].name, have, n);
    for (uint32_t k = 0; k < n; k++)
        out[k] = dim_int(c, arg_list_dim(args, i, have == 1 ? 0 : k));
    return BP_OK;
}

bp_dim *arg_dims(bp_ctx *c, const bp_value *args, uint32_t i, uint32_t *n)
{
    *n = arg_list_len(args, i);
    bp_dim *out = arena_array(&c->scratch, *n, sizeof *out);
    if (!out) {
        ctx_nomem(c);
        return NULL;
    }
    for (uint32_t k = 0; k < *n; k++)
        out[k] = arg_list_dim(args, i, k);
    return out;
}
