/* Shape rules of normalizations and softmax. */
#include "host/op/checks.h"
#include "host/op/rows.h"

static bp_dtype dtype_of(const shape_call *s, uint32_t i)
{
    const bp_tensor *t = arg_tensor(s->args, i);
    return t ? (bp_dtype)t->dtype : BP_DTYPE_UNSET;
}

static bp_status need_float(bp_ctx *c, const shape_call *s, bp_dtype d)
{
    if (dtype_is_float(d))
        return BP_OK;
    bp_status code = dtype_is_complex(d) ? BP_UNIMPLEMENTED : BP_INVALID_ARGUMENT;
    return op_fail(c, s->op, code, "expected a float type, got %s", dtype_get(d)->torch);
}

/* -- softmax -- */
static bp_status softmax(bp_ctx *c, shape_call *s, bp_dtype d, uint32_t dim_at)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    uint32_t dim;
    TRY(need_float(c, s, d));
    TRY(op_wrap_dim(c, s->op, "dim", arg_int(c, s->args, dim_at), t->rank, &dim));
    return shape_add_out(c, s, d, t->rank, t->sizes) ? BP_OK : c->diag.code;
}

bp_status shape_softmax(bp_ctx *c, shape_call *s)
{
    bp_dtype asked = arg_dtype(s->args, 2);
    return softmax(c, s, asked ? asked : dtype_of(s, 0), 1);
}

bp_status shape_private_softmax(bp_ctx *c, shape_call *s)
{
    if (arg_bool(s->args, 2))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"half_to_float\": not there on the CPU");
    return softmax(c, s, dtype_of(s, 0), 1);
}

bp_status shape_softmax_backward(bp_ctx *c, shape_call *s)
{
    bp_dtype asked = arg_dtype(s->args, 3);
    const bp_tensor *grad = arg_tensor(s->args, 0), *output = arg_tensor(s->args, 1);
    char g[256], o[256];
    TRY(check_same_dtype(c, s, 0, 1));
    if (grad->rank != output->rank || !sizes_must_match(grad->rank, grad->sizes, output->sizes))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "a gradient of sizes %s for an output of sizes %s",
                       sizes_text(g, sizeof g, grad->rank, grad->sizes),
                       sizes_text(o, sizeof o, output->rank, output->sizes));
    return softmax(c, s, asked ? asked : dtype_of(s, 0), 2);
}

/* -- layers -- */
/* The type of statistics: that of the input, or f32 where a half input meets f32 parameters at [first, last]. */
static bp_dtype stats_type(const shape_call *s, uint32_t first, uint32_t last)
{
    bp_dtype d = dtype_of(s, 0);
    for (uint32_t i = first; i <= last; i++)
        if (dtype_of(s, i) == BP_F32 && (d == BP_F16 || d == BP_BF16))
            return BP_F32;
    return d;
}

/* A parameter of the input's type, or of f32 with a half input. */
static bp_status check_type(bp_ctx *c, const shape_call *s, uint32_t i)
{
    bp_dtype d = dtype_of(s, 0), have = dtype_of(s, i);
    if (!have || have == d || (have == BP_F32 && (d == BP_F16 || d == BP_BF16)))
        return BP_OK;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"%s\": %s with an input of %s",
                   s->op->schema->args[i].name, dtype_get(have)->torch, dtype_get(d)->torch);
}

/* Argument i has the sizes that argument 1 lists. */
static bp_status check_normalized(bp_ctx *c, const shape_call *s, uint32_t i, uint32_t n, const bp_dim *sizes)
{
    const bp_tensor *t = arg_tensor(s->args, i);
    bool fits = !t || (t->rank == n && sizes_must_match(n, t->sizes, sizes));
    return fits ? BP_OK
                : op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"%s\" has not the sizes of \"normalized_shape\"",
                          s->op->schema->args[i].name);
}

/* The sizes that are normalized over: the last *n of the input. */
static bp_status normalized_shape(bp_ctx *c, const shape_call *s, uint32_t *n, bp_dim **sizes)
{
    const bp_tensor *x = arg_tensor(s->args, 0);
    *sizes = arg_dims(c, s->args, 1, n);
    if (!*sizes)
        return c->diag.code;
    if (*n == 0)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"normalized_shape\" is empty");
    if (*n <= x->rank && sizes_must_match(*n, x->sizes + x->rank - *n, *sizes))
        return BP_OK;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "the input does not end with the sizes of \"normalized_shape\"");
}

static bp_status layer_norm(bp_ctx *c, shape_call *s, bool with_stats)
{
    const bp_tensor *x = arg_tensor(s->args, 0);
    uint32_t n;
    bp_dim *wanted, sizes[TENSOR_MAX_RANK];
    TRY(normalized_shape(c, s, &n, &wanted));
    TRY(need_float(c, s, dtype_of(s, 0)));
    for (uint32_t i = 2; i < 4; i++) {
        TRY(check_normalized(c, s, i, n, wanted));
        TRY(check_type(c, s, i));
    }
    for (uint32_t d = 0; d < x->rank; d++)
        sizes[d] = d < x->rank - n ? x->sizes[d] : dim_const(1);
    shape_add_out(c, s, dtype_of(s, 0), x->rank, x->sizes);
    for (uint32_t i = 0; with_stats && i < 2; i++)
        shape_add_out(c, s, stats_type(s, 2, 3), x->rank, sizes);
    return c->diag.code;
}

bp_status shape_layer_norm(bp_ctx *c, shape_call *s) { return layer_norm(c, s, false); }
bp_status shape_native_layer_norm(bp_ctx *c, shape_call *s) { return layer_norm(c, s, true); }

bp_status shape_rms_norm(bp_ctx *c, shape_call *s)
{
    const bp_tensor *x = arg_tensor(s->args, 0);
    uint32_t n;
    bp_dim *wanted;
    TRY(normalized_shape(c, s, &n, &wanted));
    TRY(need_float(c, s, dtype_of(s, 0)));
    TRY(check_normalized(c, s, 2, n, wanted));
    shape_out *o = shape_add_out(c, s, dtype_of(s, 0), x->rank, x->sizes);
    if (o)
        layout_preserve(c, x, o->meta.strides);
    return c->diag.code;
}

/* A result like the input, in the memory format that its strides suggest. */
static bp_status add_like(bp_ctx *c, shape_call *s)
{
    const bp_tensor *x = arg_tensor(s->args, 0);
    shape_out *o = shape_add_out(c, s, dtype_of(s, 0), x->rank, x->sizes);
    return o ? layout_memory_format(c, x->rank, x->sizes, tensor_suggest_format(x), o->meta.strides) : c->diag.code;
}

static bp_status check_channels(bp_ctx *c, const shape_call *s, uint32_t i)
{
    const bp_tensor *t = arg_tensor(s->args, i), *x = arg_tensor(s->args, 0);
    if (t && (t->rank != 1 || !dim_require(DIM_EQ, t->sizes[0], x->sizes[1])))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"%s\": expected one number for each of %s channels",
                       s->op->schema->args[i].name, op_dim_text(c, x->sizes[1]));
    return check_type(c, s, i);
}

static bp_status check_input(bp_ctx *c, const shape_call *s)
{
    const bp_tensor *x = arg_tensor(s->args, 0);
    TRY(need_float(c, s, dtype_of(s, 0)));
    if (x->rank < 2 || x->rank >= TENSOR_MAX_RANK)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"%s\": expected at least 2 dimensions, got %u",
                       s->op->schema->args[0].name, x->rank);
    return BP_OK;
}

static bp_status group_norm(bp_ctx *c, shape_call *s, uint32_t weight, int64_t groups, bool with_stats)
{
    const bp_tensor *x = arg_tensor(s->args, 0);
    TRY(check_input(c, s));
    if (groups < 1 || !dim_require(DIM_EQ, dim_mod(c, x->sizes[1], dim_const(groups)), dim_const(0)))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "%s channels do not make %lld groups",
                       op_dim_text(c, x->sizes[1]), (long long)groups);
    TRY(check_channels(c, s, weight));
    TRY(check_channels(c, s, weight + 1));
    TRY(add_like(c, s));
    for (uint32_t i = 0; with_stats && i < 2; i++)
        shape_add_out(c, s, stats_type(s, weight, weight + 1), 2, (const bp_dim[]){x->sizes[0], dim_const(groups)});
    return c->diag.code;
}

bp_status shape_group_norm(bp_ctx *c, shape_call *s) { return group_norm(c, s, 2, arg_int(c, s->args, 1), false); }
/* Arguments first to first + 2 say how many samples, channels and places argument `of` has. */
static bp_status check_counts(bp_ctx *c, const shape_call *s, uint32_t of, uint32_t first)
{
    bp_dim n[3], have = tensor_numel(c, arg_tensor(s->args, of));
    bool fits = true;
    for (uint32_t i = 0; i < 3; i++) {
        n[i] = arg_dim(s->args, first + i);
        fits = fits && dim_require(DIM_LE, dim_const(0), n[i]);
    }
    if (fits && dim_require(DIM_EQ, dim_product(c, n, 3), have))
        return BP_OK;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                   "arguments \"N\", \"C\" and \"HxW\" are %s, %s and %s, and \"%s\" has %s elements",
                   op_dim_text(c, n[0]), op_dim_text(c, n[1]), op_dim_text(c, n[2]),
                   s->op->schema->args[of].name, op_dim_text(c, have));
}

bp_status shape_native_group_norm(bp_ctx *c, shape_call *s)
{
    TRY(check_counts(c, s, 0, 3));
    return group_norm(c, s, 1, arg_int(c, s->args, 6), true);
}

/* -- batches -- */
/* For an operator that fails otherwise. */
static bool has_elements(const bp_tensor *t)
{
    for (uint32_t d = 0; d < t->rank; d++)
        if (!dim_require(DIM_NE, t->sizes[d], dim_const(0)))
            return false;
    return true;
}

/* Checks weight, bias and the running statistics (the last at `last`); without training the latter are needed. */
static bp_status check_batch(bp_ctx *c, const shape_call *s, uint32_t last, bool training)
{
    TRY(check_input(c, s));
    for (uint32_t i = 1; i <= last; i++)
        TRY(check_channels(c, s, i));
    if (!training && (last < 4 || !dtype_of(s, 3) || !dtype_of(s, 4)))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "running statistics are needed when not training");
    if (training && !has_elements(arg_tensor(s->args, 0)))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "the input has no element to train on");
    return c->diag.code;
}

static bp_status add_saved(bp_ctx *c, shape_call *s, uint32_t last, bool training)
{
    bp_dim channels = training ? arg_tensor(s->args, 0)->sizes[1] : dim_const(0);
    for (uint32_t i = 0; i < 2; i++)
        shape_add_out(c, s, stats_type(s, 1, last), 1, &channels);
    return c->diag.code;
}

/* The reserve of the fused form, which the CPU leaves empty. */
static bp_status add_reserve(bp_ctx *c, shape_call *s)
{
    return shape_add_out(c, s, BP_U8, 1, (const bp_dim[]){dim_const(0)}) ? BP_OK : c->diag.code;
}

/* The running statistics, moved. */
static bp_status add_running(bp_ctx *c, shape_call *s)
{
    for (uint32_t i = 3; i < 5; i++)
        shape_add_out(c, s, dtype_of(s, i), 1, arg_tensor(s->args, i)->sizes);
    return c->diag.code;
}

static bp_status batch(bp_ctx *c, shape_call *s, uint32_t last, bool training)
{
    TRY(check_batch(c, s, last, training));
    TRY(add_like(c, s));
    return add_saved(c, s, last, training);
}

bp_status shape_native_batch_norm(bp_ctx *c, shape_call *s) { return batch(c, s, 4, arg_bool(s->args, 5)); }
bp_status shape_batch_norm_no_stats(bp_ctx *c, shape_call *s) { return batch(c, s, 2, arg_bool(s->args, 3)); }
bp_status shape_batch_norm_no_training(bp_ctx *c, shape_call *s) { return batch(c, s, 4, false); }

bp_status shape_batch_norm_with_update(bp_ctx *c, shape_call *s)
{
    TRY(batch(c, s, 4, true));
    return add_reserve(c, s);
}

bp_status shape_batch_norm_functional(bp_ctx *c, shape_call *s)
{
    TRY(batch(c, s, 4, arg_bool(s->args, 5)));
    return add_running(c, s);
}

bp_status shape_batch_norm_update_functional(bp_ctx *c, shape_call *s)
{
    TRY(shape_batch_norm_with_update(c, s));
    return add_running(c, s);
}

/* An input of no elements is passed on, whatever the rest says. */
bp_status shape_batch_norm(bp_ctx *c, shape_call *s)
{
    const bp_tensor *x = arg_tensor(s->args, 0);
    if (is_empty(x))
        return shape_add_out(c, s, dtype_of(s, 0), x->rank, x->sizes) ? BP_OK : c->diag.code;
    TRY(check_batch(c, s, 4, arg_bool(s->args, 5)));
    return add_like(c, s);
}

bp_status shape_instance_norm(bp_ctx *c, shape_call *s)
{
    const bp_tensor *x = arg_tensor(s->args, 0);
    TRY(check_batch(c, s, 4, arg_bool(s->args, 5)));
    return shape_add_out(c, s, dtype_of(s, 0), x->rank, x->sizes) ? BP_OK : c->diag.code;
}

/* -- gradients: of the input, the weight and the bias; those that the mask leaves out are absent -- */
/* Adds one; i: its place in the mask at argument `mask_at`. */
static shape_out *add_gradient(bp_ctx *c, shape_call *s, uint32_t mask_at, uint32_t i, bp_dtype d, uint32_t rank,
                               const bp_dim *sizes)
{
    shape_out *o = shape_add_out(c, s, d, rank, sizes);
    const bp_value *mask = &s->args[mask_at];
    if (o)
        o->absent = i < mask->count && !mask->v.items[i].v.i;
    return o;
}

/* The type of a parameter's gradient: the parameter's, or the input's where there is none. */
static bp_dtype type_or(const shape_call *s, uint32_t i, bp_dtype otherwise)
{
    return dtype_of(s, i) ? dtype_of(s, i) : otherwise;
}

static bp_status check_gradient(bp_ctx *c, const shape_call *s)
{
    const bp_tensor *g = arg_tensor(s->args, 0), *x = arg_tensor(s->args, 1);
    if (g->rank != x->rank || !sizes_must_match(x->rank, g->sizes, x->sizes))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "arguments \"grad_out\" and \"input\" differ in size");
    return need_float(c, s, dtype_of(s, 1));
}

bp_status shape_layer_norm_backward(bp_ctx *c, shape_call *s)
{
    const bp_tensor *x = arg_tensor(s->args, 1);
    uint32_t n = arg_list_len(s->args, 2);
    TRY(check_gradient(c, s));
    if (n > x->rank)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "the input does not end with the sizes of \"normalized_shape\"");
    bp_dtype d = dtype_of(s, 1);
    add_gradient(c, s, 7, 0, d, x->rank, x->sizes);
    add_gradient(c, s, 7, 1, type_or(s, 5, d), n, x->sizes + x->rank - n);
    add_gradient(c, s, 7, 2, type_or(s, 6, d), n, x->sizes + x->rank - n);
    return c->diag.code;
}

/* Of [N, C, ...] inputs, with a number a channel. */
static bp_status channel_gradients(bp_ctx *c, shape_call *s, uint32_t mask_at, uint32_t weight)
{
    const bp_tensor *x = arg_tensor(s->args, 1);
    TRY(check_gradient(c, s));
    if (x->rank < 2)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"input\": expected at least 2 dimensions, got %u",
                       x->rank);
    bp_dtype d = dtype_of(s, 1);
    shape_out *o = add_gradient(c, s, mask_at, 0, d, x->rank, x->sizes);
    if (o)
        layout_memory_format(c, x->rank, x->sizes, tensor_suggest_format(x), o->meta.strides);
    add_gradient(c, s, mask_at, 1, type_or(s, weight, d), 1, &x->sizes[1]);
    add_gradient(c, s, mask_at, 2, type_or(s, weight, d), 1, &x->sizes[1]);
    return c->diag.code;
}

bp_status shape_group_norm_backward(bp_ctx *c, shape_call *s)
{
    TRY(check_counts(c, s, 0, 5));
    TRY(check_counts(c, s, 1, 5));
    const bp_tensor *x = arg_tensor(s->args, 1);
    int64_t groups = arg_int(c, s->args, 8);
    if (x->rank >= 2 &&
        (groups < 1 || !dim_require(DIM_EQ, dim_mod(c, x->sizes[1], dim_const(groups)), dim_const(0))))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "%s channels do not make %lld groups",
                       op_dim_text(c, x->sizes[1]), (long long)groups);
    return channel_gradients(c, s, 9, 4);
}

bp_status shape_batch_norm_backward(bp_ctx *c, shape_call *s)
{
    uint32_t first = arg_bool(s->args, 7) ? 5 : 3;
    if (!dtype_of(s, first) || !dtype_of(s, first + 1))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"%s\" or \"%s\" is missing",
                       s->op->schema->args[first].name, s->op->schema->args[first + 1].name);
    return channel_gradients(c, s, 9, 2);
}
