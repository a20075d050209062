/* Operators that give a number, or nothing, instead of tensors: facts of a tensor, its value, and assertions.
 *
 * A row that gives no tensor and is not marked OP_ITEM or OP_EFFECT reads metadata only, and runs on fakes as well. */
#include "host/op/checks.h"
#include "host/op/rows.h"
#include <string.h>

bp_status shape_nothing(bp_ctx *c, shape_call *s)
{
    (void)s;
    return c->diag.code;
}

/* -- facts --------------------------------------------------------------------------------------------------------- */

bp_status kernel_sym_size(bp_ctx *c, op_call *k)
{
    const bp_tensor *t = arg_tensor(k->args, 0);
    uint32_t d;
    if (t->rank == 0)
        return op_fail(c, k->op, BP_INVALID_ARGUMENT, "a tensor of no dimensions has no sizes");
    TRY(op_wrap_dim(c, k->op, "dim", arg_int(c, k->args, 1), t->rank, &d));
    bool size = strcmp(k->op->schema->name, "sym_size") == 0;
    k->item = value_dim(size ? t->sizes[d] : t->strides[d]);
    return BP_OK;
}

bp_status kernel_sym_numel(bp_ctx *c, op_call *k)
{
    k->item = value_dim(tensor_numel(c, arg_tensor(k->args, 0)));
    return c->diag.code;
}

bp_status kernel_sym_storage_offset(bp_ctx *c, op_call *k)
{
    (void)c;
    tensor_note_asked(arg_tensor(k->args, 0));
    k->item = value_dim(arg_tensor(k->args, 0)->offset);
    return BP_OK;
}

bp_status kernel_sym_is_contiguous(bp_ctx *c, op_call *k)
{
    (void)c;
    const bp_tensor *t = arg_tensor(k->args, 0);
    int32_t format = arg_memory_format(k->args, 1);
    bool last = format == BP_CHANNELS_LAST || format == BP_CHANNELS_LAST_3D;
    k->item = value_bool(last ? t->rank == (format == BP_CHANNELS_LAST ? 4 : 5) && tensor_is_channels_last(t)
                              : tensor_is_contiguous(t));
    return BP_OK;
}

/* -- values -------------------------------------------------------------------------------------------------------- */

static bp_status read_item(bp_ctx *c, op_call *k, bp_value *out)
{
    const bp_tensor *t = arg_tensor(k->args, 0);
    if (tensor_nelem(t) != 1)
        return op_fail(c, k->op, BP_INVALID_ARGUMENT, "a tensor of %lld elements has no one value",
                       (long long)tensor_nelem(t));
    num v = dtype_load(t->dtype, tensor_ptr(t));
    if (v.kind == NUM_COMPLEX)
        *out = (bp_value){.kind = BP_VALUE_COMPLEX, .v.f = {v.f, v.im}};
    else if (v.kind == NUM_FLOAT)
        *out = value_float(v.f);
    else
        *out = t->dtype == BP_BOOL ? value_bool(v.i != 0) : value_int(v.i);
    return BP_OK;
}

bp_status kernel_item(bp_ctx *c, op_call *k)
{
    return read_item(c, k, &k->item);
}

bp_status kernel_is_nonzero(bp_ctx *c, op_call *k)
{
    bp_value v;
    TRY(read_item(c, k, &v));
    bp_scalar s = arg_scalar(&v, 0);
    bool float_like = s.kind == BP_SCALAR_FLOAT || s.kind == BP_SCALAR_COMPLEX;
    k->item = value_bool(float_like ? s.v.f[0] != 0 || s.v.f[1] != 0 : s.v.i != 0);
    return BP_OK;
}

/* Equal sizes and elements; NaN differs from itself. */
bp_status kernel_equal(bp_ctx *c, op_call *k)
{
    const bp_tensor *a = arg_tensor(k->args, 0), *b = arg_tensor(k->args, 1);
    if (a->dtype != b->dtype)
        return op_fail(c, k->op, BP_INVALID_ARGUMENT, "tensors of types %s and %s", dtype_get(a->dtype)->torch,
                       dtype_get(b->dtype)->torch);
    bool same = a->rank == b->rank;
    for (uint32_t d = 0; same && d < a->rank; d++)
        same = dim_eq(a->sizes[d], b->sizes[d]);
    k->item = value_bool(same);
    if (!same)
        return BP_OK;
    bp_tensor *eq = op_call1(c, ROW_eq_tensor, 2, k->args), *all = NULL;
    if (eq)
        all = op_call1(c, ROW_all_default, 1, (bp_value[]){value_tensor(eq)});
    if (all)
        k->item = value_bool(dtype_load(BP_BOOL, tensor_ptr(all)).i != 0);
    tensor_unref(all);
    tensor_unref(eq);
    return c->diag.code;
}

/* -- assertions ---------------------------------------------------------------------------------------------------- */

/* Argument i, when given, is the list `have`. */
static bp_status assert_dims(bp_ctx *c, const op_call *k, uint32_t i, const char *what, uint32_t rank,
                             const bp_dim *have)
{
    uint32_t n = arg_list_len(k->args, i);
    char got[200];
    if (arg_is_none(k->args, i))
        return BP_OK;
    bool same = n == rank;
    for (uint32_t d = 0; same && d < rank; d++)
        same = dim_require(DIM_EQ, have[d], arg_list_dim(k->args, i, d));
    if (same)
        return BP_OK;
    return op_fail(c, k->op, BP_INVALID_ARGUMENT, "the tensor's %s are %s, which is not what was asserted", what,
                   sizes_text(got, sizeof got, rank, have));
}

bp_status kernel_assert_metadata(bp_ctx *c, op_call *k)
{
    const bp_tensor *t = arg_tensor(k->args, 0);
    bp_dtype d = arg_dtype(k->args, 3);
    bp_device device = arg_device(k->args, 4);
    TRY(assert_dims(c, k, 1, "sizes", t->rank, t->sizes));
    TRY(assert_dims(c, k, 2, "strides", t->rank, t->strides));
    if (d && d != t->dtype)
        return op_fail(c, k->op, BP_INVALID_ARGUMENT, "the tensor's type is %s, asserted was %s",
                       dtype_get(t->dtype)->torch, dtype_get(d)->torch);
    if (device.kind && (device.kind != t->device_kind || device.index != t->device_index))
        return op_fail(c, k->op, BP_INVALID_ARGUMENT, "the tensor is on another device than was asserted");
    return BP_OK;
}

bp_status kernel_assert_scalar(bp_ctx *c, op_call *k)
{
    bp_scalar s = arg_scalar(k->args, 0);
    if (s.sym) /* of sizes: it is required of each run */
        return dim_require(DIM_NE, arg_dim(k->args, 0), dim_const(0)) ? BP_OK : c->diag.code;
    bool holds = s.kind == BP_SCALAR_FLOAT ? s.v.f[0] != 0 : s.v.i != 0;
    const char *text = arg_str(k->args, 1);
    return holds ? BP_OK : op_fail(c, k->op, BP_INVALID_ARGUMENT, "%s", text ? text : "the assertion does not hold");
}
