/* The shape rule of attention. */
#include "host/op/checks.h"
#include "host/op/rows.h"
#include <string.h>

enum { QUERY, KEY, VALUE, MASK, DROPOUT, CAUSAL, SCALE, GROUPED };

static bp_status mismatch(bp_ctx *c, const shape_call *s)
{
    char q[256], k[256], v[256];
    const bp_tensor *t[] = {arg_tensor(s->args, QUERY), arg_tensor(s->args, KEY), arg_tensor(s->args, VALUE)};
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "sizes %s, %s and %s of query, key and value do not fit",
                   sizes_text(q, sizeof q, t[0]->rank, t[0]->sizes), sizes_text(k, sizeof k, t[1]->rank, t[1]->sizes),
                   sizes_text(v, sizeof v, t[2]->rank, t[2]->sizes));
}

/* With grouped heads each head of key and value serves several of the query. */
static bp_status check_groups(bp_ctx *c, const shape_call *s, const bp_tensor *q, bp_dim *key_batch, uint32_t nbatch)
{
    if (!arg_bool(s->args, GROUPED))
        return BP_OK;
    bp_dim heads = key_batch[nbatch - 1];
    if (!dim_require(DIM_LT, dim_const(0), heads) ||
        !dim_require(DIM_EQ, dim_mod(c, q->sizes[nbatch - 1], heads), dim_const(0)))
        return mismatch(c, s);
    key_batch[nbatch - 1] = q->sizes[nbatch - 1];
    return c->diag.code;
}

static bp_status check_mask(bp_ctx *c, const shape_call *s, const bp_tensor *q, uint32_t rank, const bp_dim *scores)
{
    const bp_tensor *mask = arg_tensor(s->args, MASK);
    if (!mask)
        return BP_OK;
    if (arg_bool(s->args, CAUSAL))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "a mask is given, and is_causal is true");
    if (mask->dtype != BP_BOOL && mask->dtype != BP_F32 && mask->dtype != q->dtype)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                       "the mask must be bool, float32 or of the query's dtype, and is %s",
                       dtype_get(mask->dtype)->torch);
    return check_expands(c, s, MASK, rank, scores);
}

/* Laid out like a 4-d query whose head size the value shares, else contiguous. */
static bp_status add_out(bp_ctx *c, shape_call *s, const bp_tensor *q, uint32_t rank, const bp_dim *sizes)
{
    const bp_tensor *v = arg_tensor(s->args, VALUE);
    shape_out *o = shape_add_out(c, s, q->dtype, rank, sizes);
    bool like_query = o && rank == 4 && q->rank == 4 && v->rank == 4 && dim_eq_or_false(q->sizes[3], v->sizes[3]);
    for (uint32_t d = 0; like_query && d < 4; d++)
        like_query = dim_eq_or_false(q->sizes[d], sizes[d]);
    if (like_query)
        layout_preserve(c, q, o->meta.strides);
    return c->diag.code;
}

bp_status shape_attention(bp_ctx *c, shape_call *s)
{
    const bp_tensor *q = arg_tensor(s->args, QUERY), *k = arg_tensor(s->args, KEY), *v = arg_tensor(s->args, VALUE);
    bp_dim sizes[TENSOR_MAX_RANK], all[TENSOR_MAX_RANK], key_batch[TENSOR_MAX_RANK];
    for (uint32_t i = QUERY; i <= VALUE; i++)
        TRY(check_rank(c, s, i, 2, TENSOR_MAX_RANK));
    TRY(check_same_dtype(c, s, QUERY, KEY));
    TRY(check_same_dtype(c, s, QUERY, VALUE));
    if (!dtype_is_float(q->dtype))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "there is no attention of %s", dtype_get(q->dtype)->torch);
    if (arg_float(s->args, DROPOUT) != 0)
        return op_fail(c, s->op, BP_UNIMPLEMENTED, "dropout in attention");
    uint32_t nq = q->rank - 2u, nk = k->rank - 2u, nv = v->rank - 2u, n = nq > nk ? nq : nk;
    if (!dim_require(DIM_EQ, q->sizes[nq + 1], k->sizes[nk + 1]) ||
        !dim_require(DIM_EQ, k->sizes[nk], v->sizes[nv]) || nk != nv ||
        (arg_bool(s->args, GROUPED) && (nk < 1 || nq != nk)))
        return mismatch(c, s);
    TRY(layout_broadcast(c, nk, k->sizes, nv, v->sizes, key_batch));
    TRY(check_groups(c, s, q, key_batch, nk));
    TRY(layout_broadcast(c, nq, q->sizes, nk, key_batch, sizes));
    memcpy(all, sizes, n * sizeof *all);
    all[n] = sizes[n] = q->sizes[nq], all[n + 1] = k->sizes[nk], sizes[n + 1] = v->sizes[nv + 1];
    TRY(check_mask(c, s, q, n + 2, all));
    return add_out(c, s, q, n + 2, sizes);
}
