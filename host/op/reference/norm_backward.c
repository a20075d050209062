/* Gradients of normalizations, in double from kept statistics.
 *
 * With h = (x - mean) * scale and gradient g of the result: weight gets the sum of g h and bias that of g over all that
 * shares them; x gets scale * (u - mean(u) - h mean(u h)) where u = g weight and means go over a group, or scale * u
 * where the statistics do not depend on x. */
#include "host/op/reference/part.h"
#include "host/op/reference/steps.h"
#include "host/op/rows.h"

/* Everything of one rank; mean, scale and weight broadcast. group: dimensions of a group; shared: those along which
 * weight and bias do not change. is_fixed: the statistics do not depend on x. */
typedef struct {
    bp_tensor *grad, *x, *mean, *scale, *weight;
    uint64_t group, shared;
    bool is_fixed;
} norm_case;
/* Gradients of x, weight and bias, as f64; weight and bias with the shared dimensions as 1. */
typedef struct { bp_tensor *x, *weight, *bias; } gradients;

static bp_tensor *wide(work *w, bp_tensor *t)
{
    return t ? CALL(to_dtype, T(t), value_dtype(BP_F64)) : NULL;
}

static bp_tensor *sum_over(work *w, bp_tensor *t, uint64_t mask)
{
    int64_t dims[TENSOR_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t d = 0; t && d < t->rank; d++)
        if (mask >> d & 1)
            dims[n++] = d;
    return compose_sum(w, t, n, dims, true);
}

static bp_tensor *mean_over(work *w, bp_tensor *t, uint64_t mask)
{
    int64_t n = 1;
    for (uint32_t d = 0; t && d < t->rank; d++)
        n *= mask >> d & 1 ? tensor_dim(t, d) : 1;
    return CALL(div_scalar, T(sum_over(w, t, mask)), value_int(n));
}

static gradients differentiate(work *w, const norm_case *q)
{
    bp_tensor *g = wide(w, q->grad), *x = wide(w, q->x), *scale = wide(w, q->scale), *u = g;
    bp_tensor *h = CALL(mul_tensor, T(CALL(sub_tensor, T(x), T(wide(w, q->mean)))), T(scale));
    if (q->weight)
        u = CALL(mul_tensor, T(g), T(wide(w, q->weight)));
    gradients out = {u, sum_over(w, CALL(mul_tensor, T(g), T(h)), q->shared), sum_over(w, g, q->shared)};
    if (!q->is_fixed) {
        bp_tensor *turn = CALL(mul_tensor, T(h), T(mean_over(w, CALL(mul_tensor, T(u), T(h)), q->group)));
        out.x = CALL(sub_tensor, T(CALL(sub_tensor, T(u), T(mean_over(w, u, q->group)))), T(turn));
    }
    out.x = CALL(mul_tensor, T(out.x), T(scale));
    return out;
}

/* Copies a gradient to an output of as many elements; into: the output, or a view of it with t's sizes, or NULL. */
static void give(work *w, bp_tensor *out, bp_tensor *into, bp_tensor *t)
{
    if (!out || !t || !work_ok(w))
        return;
    if (into) {
        tensor_copy(w->c, into, t);
    } else if (tensor_nelem(out) > 0) {
        bp_tensor *flat = work_in(w, t, BP_F64);
        if (flat)
            dtype_convert(out->dtype, tensor_ptr(out), 1, BP_F64, tensor_ptr(flat), 1, tensor_nelem(out));
    }
}

static bp_status finish(work *w, op_call *k, const norm_case *q, bp_tensor *into)
{
    gradients g = differentiate(w, q);
    give(w, k->out[0], into, g.x);
    give(w, k->out[1], NULL, g.weight);
    give(w, k->out[2], NULL, g.bias);
    return work_end(w);
}

static uint64_t dims_mask(uint32_t rank)
{
    return rank ? ~UINT64_C(0) >> (64 - rank) : 0;
}

bp_status kernel_layer_norm_backward(bp_ctx *c, op_call *k)
{
    work own = {.c = c}, *w = &own;
    const bp_value *a = k->args;
    bp_tensor *x = arg_tensor(a, 1);
    uint64_t shared = dims_mask(x->rank - arg_list_len(a, 2));
    norm_case q = {arg_tensor(a, 0), x, arg_tensor(a, 3), arg_tensor(a, 4), arg_tensor(a, 5),
                   dims_mask(x->rank) & ~shared, shared, false};
    return finish(w, k, &q, k->out[0]);
}

/* x [N, C, ...] is seen as [N, groups, C / groups, ...]. */
bp_status kernel_group_norm_backward(bp_ctx *c, op_call *k)
{
    work own = {.c = c}, *w = &own;
    const bp_value *a = k->args;
    bp_tensor *x = arg_tensor(a, 1), *weight = arg_tensor(a, 4);
    int64_t groups = arg_int(c, a, 8), inner = tensor_dim(x, 1) / groups;
    bp_dim sizes[TENSOR_MAX_RANK];
    uint32_t rank = x->rank + 1;
    for (uint32_t d = 0; d < rank; d++)
        sizes[d] = d == 0 ? x->sizes[0] : dim_const(d == 1 ? groups : 1);
    norm_case q = {work_own(w, part_split(c, arg_tensor(a, 0), 1, groups)), work_own(w, part_split(c, x, 1, groups)),
                   compose_reshape(w, arg_tensor(a, 2), rank, sizes), compose_reshape(w, arg_tensor(a, 3), rank, sizes),
                   weight ? work_own(w, part_channels(c, weight, rank, groups, inner)) : NULL,
                   dims_mask(rank) & ~UINT64_C(3), dims_mask(rank) & ~UINT64_C(6), false};
    bp_tensor *into = k->out[0] ? work_own(w, part_split(c, k->out[0], 1, groups)) : NULL;
    return finish(w, k, &q, into);
}

/* The statistics that were used: of the batch, or, in evaluation, the running ones. */
bp_status kernel_batch_norm_backward(bp_ctx *c, op_call *k)
{
    work own = {.c = c}, *w = &own;
    const bp_value *a = k->args;
    bp_tensor *x = arg_tensor(a, 1), *weight = arg_tensor(a, 2), *along[3] = {NULL};
    bool is_fixed = !arg_bool(a, 7);
    bp_tensor *scale = wide(w, arg_tensor(a, is_fixed ? 4 : 6));
    if (is_fixed)
        scale = CALL(rsqrt_default, T(CALL(add_scalar, T(scale), a[8])));
    bp_tensor *stats[] = {arg_tensor(a, is_fixed ? 3 : 5), scale, weight};
    for (uint32_t i = 0; i < 3 && work_ok(w); i++)
        along[i] = stats[i] ? work_own(w, part_along(c, stats[i], x->rank, 1)) : NULL;
    uint64_t rest = dims_mask(x->rank) & ~UINT64_C(2);
    norm_case q = {arg_tensor(a, 0), x, along[0], along[1], along[2], rest, rest, is_fixed};
    return work_ok(w) ? finish(w, k, &q, k->out[0]) : work_end(w);
}
