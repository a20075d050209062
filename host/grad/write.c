/* What derivatives written in C are made of. */
#include "host/grad/write.h"

/* -- arguments ----------------------------------------------------------------------------------------------------- */

const bp_value *grad_value(const grad_call *g, const char *name)
{
    static const bp_value none = {.kind = BP_VALUE_NONE};
    int32_t i = schema_find(g->op->schema, name);
    return i < 0 ? &none : &g->args[i];
}

int64_t grad_arg_int(bp_ctx *c, const grad_call *g, const char *name)
{
    return arg_int(c, grad_value(g, name), 0);
}

bp_dims grad_arg_dims(bp_ctx *c, const grad_call *g, const char *name)
{
    const bp_value *v = grad_value(g, name);
    if (arg_is_none(v, 0))
        return (bp_dims){0};
    uint32_t n;
    const bp_dim *at = arg_dims(c, v, 0, &n);
    return (bp_dims){at, at ? n : 0, 1};
}

bp_tensors grad_arg_tensors(bp_ctx *c, const grad_call *g, const char *name)
{
    const bp_value *v = grad_value(g, name);
    uint32_t n = arg_list_len(v, 0);
    bp_tensor **at = arena_array(&c->scratch, n, sizeof *at);
    if (!at) {
        ctx_nomem(c);
        return (bp_tensors){0};
    }
    for (uint32_t i = 0; i < n; i++)
        at[i] = arg_list_tensor(v, 0, i);
    return (bp_tensors){at, n};
}

uint32_t grad_arg_wrapped(bp_ctx *c, const grad_call *g, const char *name, uint32_t rank)
{
    uint32_t d = 0;
    if (op_wrap_dim(c, g->op, name, grad_arg_int(c, g, name), rank, &d))
        return 0;
    return d;
}

bp_dim grad_size(const bp_tensor *t, int32_t d)
{
    int64_t at = d < 0 ? d + (int64_t)grad_rank(t) : d;
    return at >= 0 && at < grad_rank(t) ? t->sizes[at] : dim_const(0);
}

/* -- operators by row ---------------------------------------------------------------------------------------------- */

/* All arguments: those given, and the rest as the schema has them. */
static bp_value *bound(bp_ctx *c, const op_row *op, uint32_t n, const bp_value *args)
{
    bp_value *all = op ? arena_array(&c->scratch, op->schema->nargs, sizeof *all) : NULL;
    if (!all)
        ctx_nomem(c);
    for (uint32_t i = 0; all && i < op->schema->nargs; i++)
        all[i] = i < n ? args[i] : op->schema->args[i].has_default ? op->schema->args[i].default_value : value_none();
    return all;
}

void grad_op_all(bp_ctx *c, uint32_t row, uint32_t n, const bp_value *args, bp_tensor **out, uint32_t nout)
{
    for (uint32_t i = 0; i < nout; i++)
        out[i] = NULL;
    if (!ctx_ok(c))
        return;
    arena_mark mark = arena_get_mark(&c->scratch);
    op_call k = {.op = op_at(row), .nout = nout, .out = out};
    k.args = bound(c, k.op, n, args);
    if (k.args) {
        k.nargs = k.op->schema->nargs;
        op_dispatch(c, &k);
    }
    for (uint32_t i = 0; i < nout; i++)
        out[i] = ctx_ok(c) ? scope_own(c, out[i]) : NULL;
    arena_reset(&c->scratch, mark);
}

bp_tensor *grad_op(bp_ctx *c, uint32_t row, uint32_t n, const bp_value *args)
{
    bp_tensor *out;
    grad_op_all(c, row, n, args, &out, 1);
    return out;
}

/* -- tensors ------------------------------------------------------------------------------------------------------- */

bp_tensor *grad_new_zeros(bp_ctx *c, bp_tensor *like, bp_dims sizes)
{
    return bp_aten_new_zeros_default(c, like, sizes, 0, 0, (bp_device){0}, (bp_scalar){0});
}

bp_tensor *grad_add(bp_ctx *c, bp_tensor *a, bp_tensor *b)
{
    return !a ? b : !b ? a : bp_aten_add_tensor(c, a, b, (bp_scalar){0});
}

bp_tensor *grad_sub(bp_ctx *c, bp_tensor *a, bp_tensor *b)
{
    if (!b)
        return a;
    return a ? bp_aten_sub_tensor(c, a, b, (bp_scalar){0}) : grad_neg(c, b);
}

bp_tensor *grad_times(bp_ctx *c, bp_tensor *t, bp_scalar by)
{
    bool one = by.kind == BP_SCALAR_FLOAT ? by.v.f[0] == 1 : by.kind != BP_SCALAR_COMPLEX && !by.sym && by.v.i == 1;
    if (one)
        return t;
    if (by.kind == BP_SCALAR_COMPLEX)
        by.v.f[1] = -by.v.f[1];
    return bp_aten_mul_scalar(c, t, by);
}

bp_tensor *grad_conj(bp_ctx *c, bp_tensor *t)
{
    return grad_complex(t) ? bp_aten_conj_physical_default(c, t) : t;
}

bp_tensor *grad_real(bp_ctx *c, bp_tensor *t)
{
    return grad_complex(t) ? bp_aten_real_default(c, t) : t;
}

bp_tensor *grad_sum(bp_ctx *c, bp_tensor *t, int64_t dim, bool keepdim)
{
    return bp_aten_sum_dim_intlist(c, t, BP_DIMS(dim), keepdim, 0);
}

bp_tensor *grad_slice(bp_ctx *c, bp_tensor *t, int64_t dim, int64_t start, int64_t end)
{
    return grad_cut(c, t, dim, dim_const(start), dim_const(end));
}

bp_tensor *grad_cut(bp_ctx *c, bp_tensor *t, int64_t dim, bp_dim start, bp_dim end)
{
    return bp_aten_slice_tensor(c, t, dim, bp_scalar_dim(start), bp_scalar_dim(end), dim_const(1));
}

/* -- matrices ------------------------------------------------------------------------------------------------------ */

bp_tensor *grad_mt(bp_ctx *c, bp_tensor *t)
{
    return bp_aten_transpose_int(c, t, -2, -1);
}

bp_tensor *grad_mh(bp_ctx *c, bp_tensor *t)
{
    return grad_conj(c, grad_mt(c, t));
}
