/* Operators that are plain compositions of others: which one answers depends on the arguments. */
#include "host/op/checks.h"
#include "host/op/rows.h"
#include "host/op/view_rule.h"
#include <stdio.h>
#include <string.h>

/* -- pad ----------------------------------------------------------------------------------------------------------- */

/* The row that pads in this mode. NULL: the context says why. */
static const op_row *pad_row(bp_ctx *c, const op_row *op, const bp_value *args)
{
    static const struct { const char *mode, *operator; } modes[] = {
        {"reflect", "reflection_pad"}, {"replicate", "replication_pad"}};
    const char *mode = arg_str(args, 2);
    char target[64];
    if (strcmp(mode, "constant") == 0)
        return op_at(ROW_constant_pad_nd_default);
    if (!arg_is_none(args, 3) && arg_float(args, 3) != 0) {
        op_fail(c, op, BP_INVALID_ARGUMENT, "mode \"%s\" takes no value", mode);
        return NULL;
    }
    if (strcmp(mode, "circular") == 0)
        return op_at(ROW_private_pad_circular_default);
    for (uint32_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(mode, modes[i].mode) != 0)
            continue;
        snprintf(target, sizeof target, "aten.%s%ud.default", modes[i].operator, arg_list_len(args, 1) / 2);
        const op_row *row = op_by_target(target);
        if (row)
            return row;
    }
    op_fail(c, op, BP_INVALID_ARGUMENT, "there is no mode \"%s\" with %u pads", mode, arg_list_len(args, 1));
    return NULL;
}

/* Arguments of that row: self, pad and, of the constant one, the value. */
static void pad_args(const bp_value *args, bp_value *out)
{
    out[0] = args[0];
    out[1] = args[1];
    out[2] = arg_is_none(args, 3) ? value_int(0) : args[3];
}

bp_status shape_pad(bp_ctx *c, shape_call *s)
{
    const op_row *row = pad_row(c, s->op, s->args);
    bp_value args[3];
    if (!row)
        return c->diag.code;
    pad_args(s->args, args);
    shape_call inner = *s;
    inner.op = row;
    inner.args = args;
    inner.nargs = row->schema->nargs;
    TRY(row->shape(c, &inner));
    s->out = inner.out;
    s->nout = inner.nout;
    s->cap = inner.cap;
    return BP_OK;
}

bp_status kernel_pad(bp_ctx *c, op_call *k)
{
    const op_row *row = pad_row(c, k->op, k->args);
    bp_value args[3];
    if (!row)
        return c->diag.code;
    pad_args(k->args, args);
    return op_deliver(c, k, 0, op_call1(c, row->number, row->schema->nargs, args));
}

/* -- diff ---------------------------------------------------------------------------------------------------------- */

/* prepend and append are arguments 3 and 4. */
static bp_dim extended(bp_ctx *c, const shape_call *s, uint32_t d, bp_dim n)
{
    for (uint32_t i = 3; i <= 4; i++)
        if (arg_tensor(s->args, i) && arg_tensor(s->args, i)->rank > d)
            n = dim_add(c, n, arg_tensor(s->args, i)->sizes[d]);
    return n;
}

bp_status shape_diff(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    bp_dim sizes[TENSOR_MAX_RANK];
    promote_state p = {0};
    uint32_t d;
    int64_t order = arg_int(c, s->args, 1);
    if (t->rank == 0 || order < 0)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "differences of order %lld of a tensor of %u dimensions",
                       (long long)order, t->rank);
    TRY(op_wrap_dim(c, s->op, "dim", arg_int(c, s->args, 2), t->rank, &d));
    memcpy(sizes, t->sizes, t->rank * sizeof *sizes);
    promote_tensor(c, &p, t);
    if (order == 0)
        return out_like(c, s, t, t->dtype);
    for (uint32_t i = 3; i <= 4; i++) {
        const bp_tensor *more = arg_tensor(s->args, i);
        if (more && more->rank != t->rank)
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"%s\" has %u dimensions, expected %u",
                           s->op->schema->args[i].name, more->rank, t->rank);
        if (more)
            promote_tensor(c, &p, more);
    }
    bp_dim n = dim_sub(c, extended(c, s, d, sizes[d]), dim_const(order));
    sizes[d] = dim_clamp(c, n, dim_const(0), false);
    return out_new(c, s, promote_result(&p), t->rank, sizes);
}

/* self with what is put before and behind it. */
static bp_tensor *joined(bp_ctx *c, const op_call *k)
{
    bp_value parts[3];
    uint32_t n = 0;
    if (!arg_is_none(k->args, 3))
        parts[n++] = k->args[3];
    parts[n++] = k->args[0];
    if (!arg_is_none(k->args, 4))
        parts[n++] = k->args[4];
    return op_call1(c, ROW_cat_default, 2, (bp_value[]){value_list(parts, n), k->args[2]});
}

/* t without its first index minus t without its last; of booleans, whether both differ. */
static bp_tensor *difference(bp_ctx *c, bp_tensor *t, bp_value dim, uint32_t d)
{
    int64_t n = tensor_dim(t, d) ? tensor_dim(t, d) - 1 : 0, from = tensor_dim(t, d) ? 1 : 0;
    const bp_value high[] = {value_tensor(t), dim, value_int(from), value_int(n)};
    const bp_value low[] = {value_tensor(t), dim, value_int(0), value_int(n)};
    bp_tensor *a = op_call1(c, ROW_narrow_default, 4, high), *b = op_call1(c, ROW_narrow_default, 4, low);
    bp_tensor *out = NULL;
    if (a && b)
        out = op_call1(c, t->dtype == BP_BOOL ? ROW_logical_xor_default : ROW_sub_tensor, 2,
                       (bp_value[]){value_tensor(a), value_tensor(b)});
    tensor_unref(a);
    tensor_unref(b);
    return out;
}

bp_status kernel_diff(bp_ctx *c, op_call *k)
{
    int64_t order = arg_int(c, k->args, 1), dim = arg_int(c, k->args, 2);
    if (order == 0)
        return tensor_copy(c, k->out[0], arg_tensor(k->args, 0));
    bp_tensor *t = joined(c, k);
    uint32_t d = (uint32_t)(dim < 0 ? dim + k->out[0]->rank : dim);
    for (int64_t i = 0; t && i < order && tensor_nelem(t); i++) {
        bp_tensor *next = difference(c, t, k->args[2], d);
        tensor_unref(t);
        t = next;
    }
    if (t && tensor_nelem(k->out[0]) == 0) { /* more differences than elements */
        tensor_unref(t);
        return BP_OK;
    }
    return op_deliver(c, k, 0, t);
}

/* -- splits at places that are tensors ----------------------------------------------------------------------------- */

/* Which pieces there are is known when the tensor is. */
bp_status shape_tensor_split_tensor(bp_ctx *c, shape_call *s)
{
    const bp_tensor *places = arg_tensor(s->args, 1);
    if (places->dtype != BP_I64 || places->rank > 1)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"%s\" must be an int64 number or vector",
                       s->op->schema->args[1].name);
    if (places->store->is_fake)
        return op_fail(c, s->op, BP_FAILED_PRECONDITION, "the pieces depend on data that a fake tensor does not have");
    const op_row *row = op_at(places->rank ? ROW_tensor_split_indices : ROW_tensor_split_sections);
    bp_value args[] = {s->args[0], value_none(), s->args[2]};
    int64_t n = tensor_nelem(places), step = places->rank ? tensor_step(places, 0) : 0;
    bp_value *items = arena_array(&c->scratch, (size_t)n, sizeof *items);
    if (!items)
        return ctx_nomem(c);
    for (int64_t i = 0; i < n; i++)
        items[i] = value_int(((const int64_t *)tensor_ptr(places))[i * step]);
    args[1] = places->rank ? value_list(items, (uint32_t)n) : items[0];
    shape_call inner = {.op = row, .args = args, .nargs = 3, .device = s->device};
    TRY(row->shape(c, &inner));
    s->out = inner.out;
    s->nout = inner.nout;
    s->cap = inner.cap;
    return BP_OK;
}
