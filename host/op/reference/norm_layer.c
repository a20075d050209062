/* Layer, group, instance and root-mean-square normalization. */
#include "host/op/reference/fold.h"
#include "host/op/reference/norm.h"
#include "host/op/reference/part.h"
#include "host/op/reference/vector.h"
#include "host/op/rows.h"
#include <float.h>
#include <math.h>

/* The last n dimensions of a tensor of that rank. */
static uint64_t last_dims(uint32_t rank, uint32_t n)
{
    return n ? (~UINT64_C(0) >> (64 - n)) << (rank - n) : 0;
}

/* Statistics that are results too, where k has more than one: both sides are contiguous. */
static void give_stats(op_call *k, const norm_stats *s)
{
    for (uint32_t i = 1; i < k->nout && i < 3; i++) {
        const bp_tensor *from = i == 1 ? s->mean : s->scale;
        dtype_convert(k->out[i]->dtype, tensor_ptr(k->out[i]), 1, BP_F64, tensor_ptr(from), 1, tensor_nelem(from));
    }
}

bp_status kernel_layer_norm(bp_ctx *c, op_call *k)
{
    bp_tensor *x = arg_tensor(k->args, 0);
    uint64_t mask = last_dims(x->rank, arg_list_len(k->args, 1));
    norm_stats s;
    TRY(norm_measure(c, k->op, x, mask, arg_float(k->args, 4), &s));
    bp_status st = norm_apply(c, k->out[0], x, &s, arg_tensor(k->args, 2), arg_tensor(k->args, 3));
    give_stats(k, &s);
    norm_forget(&s);
    return st;
}

/* x [N, C, ...] normalized over groups of channels and all that is behind them; weight and bias are one a channel. */
static bp_status run_groups(bp_ctx *c, op_call *k, int64_t groups, bp_tensor *weight, bp_tensor *bias, double eps)
{
    bp_tensor *x = arg_tensor(k->args, 0), *made[4] = {NULL};
    norm_stats s = {NULL, NULL};
    made[0] = part_split(c, x, 1, groups);
    made[1] = part_split(c, k->out[0], 1, groups);
    uint32_t rank = x->rank + 1;
    int64_t channels = tensor_dim(x, 1) / groups;
    made[2] = weight ? part_channels(c, weight, rank, groups, channels) : NULL;
    made[3] = bias ? part_channels(c, bias, rank, groups, channels) : NULL;
    if (ctx_ok(c) && norm_measure(c, k->op, made[0], last_dims(rank, rank - 2), eps, &s) == BP_OK &&
        norm_apply(c, made[1], made[0], &s, made[2], made[3]) == BP_OK)
        give_stats(k, &s);
    norm_forget(&s);
    for (uint32_t i = 0; i < 4; i++)
        tensor_unref(made[i]);
    return c->diag.code;
}

bp_status kernel_native_group_norm(bp_ctx *c, op_call *k)
{
    return run_groups(c, k, arg_int(c, k->args, 6), arg_tensor(k->args, 1), arg_tensor(k->args, 2),
                      arg_float(k->args, 7));
}

bp_status kernel_group_norm(bp_ctx *c, op_call *k)
{
    return run_groups(c, k, arg_int(c, k->args, 1), arg_tensor(k->args, 2), arg_tensor(k->args, 3),
                      arg_float(k->args, 4));
}

/* -- rms_norm: the result is rounded to its type before the weight multiplies it -- */
FOLDS_F(mean_square_strided, s->a += (double)v * (double)v;)
static void mean_square_f32(fold_state *s, int64_t n, const char *data, int64_t step, const void *params)
{
    if (step == 1)
        s->a += vector_sum_squares(n, (const void *)data);
    else
        mean_square_strided_f32(s, n, data, step, params);
}
static void end_rms(const fold_state *s, bp_dtype d, num *results, const void *params)
{
    (void)d;
    results[0] = (num){NUM_FLOAT, 0, 1 / sqrt(s->a / (double)s->seen + *(const double *)params), 0};
}

static bp_status scale_by_rms(bp_ctx *c, op_call *k, bp_tensor *x, uint64_t mask, double eps)
{
    static const fold f = {.add = {.f32 = mean_square_f32, .f64 = mean_square_strided_f64}, .end = end_rms};
    int64_t sizes[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < x->rank; d++)
        sizes[d] = mask >> d & 1 ? 1 : tensor_dim(x, d);
    norm_stats s = {NULL, norm_new(c, x->rank, sizes)};
    bp_tensor *const results[] = {s.scale};
    if (s.scale && fold_into(c, k->op, &f, x, mask, (bp_dtype)x->dtype, 1, results, &eps) == BP_OK)
        norm_apply(c, k->out[0], x, &s, NULL, NULL);
    norm_forget(&s);
    return c->diag.code;
}

bp_status kernel_rms_norm(bp_ctx *c, op_call *k)
{
    bp_tensor *x = arg_tensor(k->args, 0), *weight = arg_tensor(k->args, 2);
    double eps = arg_is_none(k->args, 3) ? (x->dtype == BP_F64 ? DBL_EPSILON : (double)FLT_EPSILON)
                                         : arg_float(k->args, 3);
    TRY(scale_by_rms(c, k, x, last_dims(x->rank, arg_list_len(k->args, 1)), eps));
    norm_stats nothing = {NULL, NULL};
    return weight ? norm_apply(c, k->out[0], k->out[0], &nothing, weight, NULL) : BP_OK;
}
