/* Decompositions of layers: convolutions, pooling, resampling, norms. */
#include "host/op/conv_args.h"
#include "host/op/resample_args.h"
#include "host/pass/parts.h"
#include <float.h>
#include <math.h>
#include <string.h>

/* -- convolutions -------------------------------------------------------------------------------------------------- */

static bp_value numbers(work *w, const int64_t *at, uint32_t n)
{
    return value_ints(w->c, at, n);
}

/* Padding that is longer behind than in front, as padding="same" may ask: zeros there, and the rest by the operator. */
static bp_tensor *pad_behind(work *w, bp_tensor *x, const conv_args *v)
{
    int64_t pad[6];
    bool any = false;
    for (uint32_t d = 0; d < v->nd; d++) {
        pad[2 * (v->nd - 1 - d)] = 0;
        pad[2 * (v->nd - 1 - d) + 1] = v->back[d] - v->front[d];
        any |= v->back[d] != v->front[d];
    }
    return any ? CALL(constant_pad_nd_default, T(x), numbers(w, pad, 2 * v->nd), I(0)) : x;
}

PART(conv)
{
    conv_args v;
    bp_tensor *x = arg_tensor(a, 0);
    if (conv_args_read(w->c, op, a, x, arg_tensor(a, 1), &v) != BP_OK)
        return NULL;
    x = v.batched ? x : compose_unsqueeze(w, x, 0);
    x = x ? pad_behind(w, x, &v) : NULL;
    if (!x)
        return NULL;
    bp_tensor *y = CALL(convolution_default, T(x), a[1], a[2], numbers(w, v.stride, v.nd), numbers(w, v.front, v.nd),
                        numbers(w, v.dilation, v.nd), B(v.transposed), numbers(w, v.output_padding, v.nd), I(v.groups));
    return v.batched || !y ? y : CALL(squeeze_dim, T(y), I(0));
}

/* -- pooling ------------------------------------------------------------------------------------------------------- */

/* A list of one number with `first` in front of it; an empty list stays. */
static bp_value of_two(work *w, const bp_value *v, int64_t first)
{
    if (v->kind == BP_VALUE_LIST && v->count == 0)
        return *v;
    return DIMS(dim_const(first), arg_list_dim(v, 0, 0));
}

PARTS(max_pool1d)
{
    (void)op;
    bp_tensor *out[2], *x = compose_unsqueeze(w, arg_tensor(a, 0), -2);
    bp_value args[] = {value_tensor(x), of_two(w, &a[1], 1), of_two(w, &a[2], 1), of_two(w, &a[3], 0),
                       of_two(w, &a[4], 1), a[5]};
    TRY(work_calls(w, ROW_max_pool2d_with_indices_default, 6, args, out, 2));
    for (uint32_t i = 0; i < 2; i++)
        out[i] = CALL(squeeze_dim, T(out[i]), I(-2));
    return parts_give(w, k, out, op->schema->nreturns);
}

PARTS(adaptive_max_pool1d)
{
    (void)op;
    bp_tensor *out[2], *x = compose_unsqueeze(w, arg_tensor(a, 0), -2);
    bp_value args[] = {value_tensor(x), of_two(w, &a[1], 1)};
    TRY(work_calls(w, ROW_adaptive_max_pool2d_default, 2, args, out, 2));
    for (uint32_t i = 0; i < 2; i++)
        out[i] = CALL(squeeze_dim, T(out[i]), I(-2));
    return parts_give(w, k, out, 2);
}

/* -- resampling by sizes or scales --------------------------------------------------------------------------------- */

PART(upsample)
{
    static const struct { enum resample_kind kind; uint32_t nd, row; } rows[] = {
        {RESAMPLE_NEAREST, 1, ROW_upsample_nearest1d_default}, {RESAMPLE_NEAREST, 2, ROW_upsample_nearest2d_default},
        {RESAMPLE_NEAREST, 3, ROW_upsample_nearest3d_default},
        {RESAMPLE_NEAREST_EXACT, 1, ROW_private_upsample_nearest_exact1d_default},
        {RESAMPLE_NEAREST_EXACT, 2, ROW_private_upsample_nearest_exact2d_default},
        {RESAMPLE_NEAREST_EXACT, 3, ROW_private_upsample_nearest_exact3d_default},
        {RESAMPLE_LINEAR, 1, ROW_upsample_linear1d_default}, {RESAMPLE_LINEAR, 2, ROW_upsample_bilinear2d_default},
        {RESAMPLE_LINEAR, 3, ROW_upsample_trilinear3d_default}, {RESAMPLE_CUBIC, 2, ROW_upsample_bicubic2d_default}};
    resample_args r;
    if (resample_args_read(w->c, op, a, &r) != BP_OK)
        return NULL;
    bool aligns = r.kind == RESAMPLE_LINEAR || r.kind == RESAMPLE_CUBIC;
    bp_value args[6] = {a[0], value_dims(w->c, r.out, r.nd), B(r.align_corners)};
    for (uint32_t d = 0; d < r.nd; d++)
        args[2 + aligns + d] = r.scale[d] != 0 ? F(r.scale[d]) : NONE;
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].kind == r.kind && rows[i].nd == r.nd)
            return work_call(w, rows[i].row, 2 + aligns + r.nd, args);
    return part_fail(w, op, "there is no such resampling");
}

PART(grid_sampler)
{
    (void)op;
    return work_call(w, part_rank(a, 0) == 4 ? ROW_grid_sampler_2d_default : ROW_grid_sampler_3d_default, 5, a);
}

/* -- norms --------------------------------------------------------------------------------------------------------- */

PART(softmax)
{
    bool logs = strstr(op->schema->name, "log_softmax") != NULL;
    bp_tensor *x = part_cast(w, arg_tensor(a, 0), arg_dtype(a, 2));
    return work_call(w, logs ? ROW_private_log_softmax_default : ROW_private_softmax_default, 3,
                     (bp_value[]){value_tensor(x), a[1], B(false)});
}

PART(rms_norm)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0), *weight = arg_tensor(a, 2);
    bp_dtype d = (bp_dtype)x->dtype, wide = d == BP_F16 || d == BP_BF16 ? BP_F32 : d;
    int64_t dims[TENSOR_MAX_RANK];
    uint32_t n = arg_list_len(a, 1);
    double eps = arg_is_none(a, 3) ? (d == BP_F64 ? DBL_EPSILON : (double)FLT_EPSILON) : arg_float(a, 3);
    for (uint32_t i = 0; i < n; i++)
        dims[i] = (int64_t)x->rank - n + i;
    bp_tensor *up = part_cast(w, x, wide);
    bp_tensor *mean = CALL(mean_dim, T(CALL(pow_tensor_scalar, T(up), I(2))), numbers(w, dims, n), B(true));
    bp_tensor *scale = CALL(rsqrt_default, T(CALL(add_scalar, T(mean), F(eps))));
    bp_tensor *out = part_cast(w, CALL(mul_tensor, T(up), T(scale)), d);
    return weight && out ? CALL(mul_tensor, T(out), a[2]) : out;
}

PART(group_norm)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0);
    if (x->rank < 2)
        return part_fail(w, op, "expected a batch and channels");
    return CALL(native_group_norm_default, a[0], a[2], a[3], D(x->sizes[0]), D(x->sizes[1]),
                D(part_count(w, x, 2, x->rank)), a[1], a[4]);
}

/* Of an input without elements, which need not have channels, only the weights' history is wanted. */
PART(batch_norm)
{
    (void)op;
    if (!part_is_empty(arg_tensor(a, 0)))
        return work_call(w, ROW_native_batch_norm_default, 8, a);
    bp_tensor *out = CALL(clone_default, a[0]);
    if (!arg_is_none(a, 1))
        out = CALL(mul_tensor, T(out), T(CALL(select_int, a[1], I(0), I(0))));
    return arg_is_none(a, 2) ? out : CALL(add_tensor, T(out), T(CALL(select_int, a[2], I(0), I(0))));
}

static bp_tensor *repeated(work *w, bp_tensor *t, bp_dim times)
{
    return t ? CALL(repeat_default, T(t), DIMS(times)) : NULL;
}

/* What a running statistic becomes: the mean over the instances. */
static void move_stat(work *w, bp_tensor *stat, bp_tensor *moved, bp_dim batch, bp_dim channels)
{
    if (!stat || !moved)
        return;
    bp_tensor *each = CALL(view_default, T(moved), DIMS(batch, channels));
    bp_tensor *mean = each ? CALL(mean_dim, T(each), INTS(0), B(false)) : NULL;
    if (mean)
        CALL(copy_inplace_default, T(stat), T(mean));
}

PART(instance_norm)
{
    bp_tensor *x = arg_tensor(a, 0), *mean = arg_tensor(a, 3), *var = arg_tensor(a, 4), *out[5];
    if (x->rank < 2)
        return part_fail(w, op, "expected a batch and channels");
    bp_dim batch = x->sizes[0], channels = x->sizes[1], sizes[TENSOR_MAX_RANK];
    memcpy(sizes, x->sizes, x->rank * sizeof *sizes);
    sizes[0] = dim_const(1);
    sizes[1] = dim_mul(w->c, batch, channels);
    bp_tensor *flat = CALL(view_default, T(CALL(contiguous_default, a[0])), value_dims(w->c, sizes, x->rank));
    bp_tensor *weight = repeated(w, arg_tensor(a, 1), batch), *bias = repeated(w, arg_tensor(a, 2), batch);
    bp_tensor *m = repeated(w, mean, batch), *v = repeated(w, var, batch);
    bool moves = arg_bool(a, 5) && m && v;
    bp_value args[] = {value_tensor(flat), value_tensor(weight), value_tensor(bias), value_tensor(m), value_tensor(v),
                       a[5], a[6], a[7]};
    uint32_t row = moves ? ROW_private_native_batch_norm_legit_functional_default : ROW_native_batch_norm_default;
    if (!flat || work_calls(w, row, 8, args, out, moves ? 5 : 1) != BP_OK)
        return NULL;
    if (moves) {
        move_stat(w, mean, out[3], batch, channels);
        move_stat(w, var, out[4], batch, channels);
    }
    return CALL(view_default, T(out[0]), part_sizes(w, x));
}

PART(dropout)
{
    (void)op;
    if (!arg_bool(a, 2) || arg_float(a, 1) == 0 || part_is_empty(arg_tensor(a, 0)))
        return arg_tensor(a, 0);
    return CALL(native_dropout_default, a[0], a[1], B(true));
}
