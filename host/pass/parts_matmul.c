/* Decompositions of products of matrices, and of attention. */
#include "host/pass/parts.h"
#include <math.h>
#include <string.h>

/* The last two sizes of t stay, and what is in front becomes `rank` sizes. */
static bp_tensor *expanded_batch(work *w, bp_tensor *t, uint32_t rank, const bp_dim *batch)
{
    bp_dim sizes[TENSOR_MAX_RANK], *last = t->sizes + t->rank - 2u;
    bp_dim flat[3] = {dim_product(w->c, batch, rank), last[0], last[1]};
    memcpy(sizes, batch, rank * sizeof *sizes);
    memcpy(sizes + rank, last, 2 * sizeof *sizes);
    bp_tensor *wide = CALL(expand_default, T(t), value_dims(w->c, sizes, rank + 2));
    return rank == 1 ? wide : compose_reshape(w, wide, 3, flat);
}

/* Two batches of matrices, broadcast: one bmm. */
static bp_tensor *batched(work *w, bp_tensor *x, bp_tensor *y)
{
    bp_dim batch[TENSOR_MAX_RANK];
    uint32_t rx = x->rank - 2u, ry = y->rank - 2u, rank = rx > ry ? rx : ry;
    if (layout_broadcast(w->c, rx, x->sizes, ry, y->sizes, batch) != BP_OK)
        return NULL;
    bp_tensor *left = expanded_batch(w, x, rank, batch), *right = expanded_batch(w, y, rank, batch);
    bp_tensor *out = compose_two(w, ROW_bmm_default, left, right);
    batch[rank] = x->sizes[rx];
    batch[rank + 1] = y->sizes[ry + 1];
    return out && rank != 1 ? CALL(view_default, T(out), value_dims(w->c, batch, rank + 2)) : out;
}

/* The rows of all of x, as one matrix. */
static bp_tensor *rows_of(work *w, bp_tensor *x)
{
    uint32_t last = x->rank - 1u;
    return compose_reshape(w, x, 2, (const bp_dim[]){part_count(w, x, 0, last), x->sizes[last]});
}

/* x of many dimensions by a matrix or vector y: the rows of all of x at once. */
static bp_tensor *folded(work *w, bp_tensor *x, bp_tensor *y)
{
    bp_dim sizes[TENSOR_MAX_RANK];
    bp_tensor *flat = rows_of(w, x);
    bp_tensor *out = compose_two(w, y->rank == 1 ? ROW_mv_default : ROW_mm_default, flat, y);
    memcpy(sizes, x->sizes, x->rank * sizeof *sizes);
    if (y->rank == 2)
        sizes[x->rank - 1u] = y->sizes[1];
    return out ? CALL(private_unsafe_view_default, T(out), value_dims(w->c, sizes, x->rank - (y->rank == 1))) : NULL;
}

static bp_tensor *product(work *w, const op_row *op, bp_tensor *x, bp_tensor *y)
{
    if (!x || !y)
        return NULL;
    if (!x->rank || !y->rank)
        return part_fail(w, op, "both arguments must have dimensions");
    if (x->rank == 1 && y->rank == 1)
        return compose_two(w, ROW_dot_default, x, y);
    if (x->rank == 2 && y->rank <= 2)
        return compose_two(w, y->rank == 1 ? ROW_mv_default : ROW_mm_default, x, y);
    if (y->rank <= 2 && x->rank > 2)
        return folded(w, x, y);
    if (x->rank == 1) {
        bp_tensor *row = compose_unsqueeze(w, x, 0);
        bp_tensor *out = !row ? NULL : y->rank == 2 ? compose_two(w, ROW_mm_default, row, y) : batched(w, row, y);
        return out ? CALL(squeeze_dim, T(out), I(-2)) : NULL;
    }
    return batched(w, x, y);
}

PART(matmul)
{
    return product(w, op, arg_tensor(a, 0), arg_tensor(a, 1));
}

PART(linear)
{
    bp_tensor *x = arg_tensor(a, 0), *weight = arg_tensor(a, 1), *bias = arg_tensor(a, 2);
    bp_tensor *turned = weight->rank == 2 ? CALL(t_default, a[1]) : weight;
    if (!turned)
        return NULL;
    bool fused = bias && bias->rank == 1 && weight->rank == 2;
    if (fused && x->rank == 2)
        return CALL(addmm_default, a[2], a[0], T(turned));
    if (fused && x->rank > 2) {
        bp_dim sizes[TENSOR_MAX_RANK];
        memcpy(sizes, x->sizes, x->rank * sizeof *sizes);
        sizes[x->rank - 1u] = weight->sizes[0];
        bp_tensor *flat = rows_of(w, x);
        bp_tensor *out = flat ? CALL(addmm_default, a[2], T(flat), T(turned)) : NULL;
        return out ? CALL(view_default, T(out), value_dims(w->c, sizes, x->rank)) : NULL;
    }
    bp_tensor *out = product(w, op, x, turned);
    return bias ? compose_two(w, ROW_add_tensor, out, bias) : out;
}

PART(inner)
{
    (void)op;
    bp_value last = INTS(-1);
    if (!part_rank(a, 0) || !part_rank(a, 1))
        return CALL(mul_tensor, a[0], a[1]);
    return CALL(tensordot_default, a[0], a[1], last, last);
}

PART(kron)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0), *y = arg_tensor(a, 1);
    uint32_t rank = x->rank > y->rank ? x->rank : y->rank;
    bp_dim left[TENSOR_MAX_RANK], right[TENSOR_MAX_RANK], out[TENSOR_MAX_RANK], one = dim_const(1);
    if (2 * rank > TENSOR_MAX_RANK)
        return NULL;
    for (uint32_t d = 0; d < rank; d++) {
        left[2 * d] = d + x->rank < rank ? one : x->sizes[d + x->rank - rank];
        right[2 * d + 1] = d + y->rank < rank ? one : y->sizes[d + y->rank - rank];
        left[2 * d + 1] = right[2 * d] = one;
        out[d] = dim_mul(w->c, left[2 * d], right[2 * d + 1]);
    }
    bp_tensor *both = compose_two(w, ROW_mul_tensor, compose_reshape(w, x, 2 * rank, left),
                                  compose_reshape(w, y, 2 * rank, right));
    return both ? compose_reshape(w, both, rank, out) : NULL;
}

PART(cross)
{
    bp_tensor *x = arg_tensor(a, 0);
    int64_t dim = arg_is_none(a, 2) ? 0 : arg_int(w->c, a, 2);
    if (arg_is_none(a, 2))
        while (dim < x->rank && !dim_is(x->sizes[dim], 3))
            dim++;
    if (arg_is_none(a, 2) && dim == x->rank)
        return part_fail(w, op, "no dimension of size 3 to multiply along");
    return CALL(linalg_cross_default, a[0], a[1], I(dim));
}

/* -- attention ----------------------------------------------------------------------------------------------------- */

enum { QUERY, KEY, VALUE, MASK, DROPOUT, CAUSAL, SCALE, GROUPED };

static bool same_front(const bp_tensor *x, const bp_tensor *y)
{
    return x->rank == 4 && y->rank == 4 && dim_eq(x->sizes[0], y->sizes[0]) && dim_eq(x->sizes[1], y->sizes[1]) &&
           dim_eq(x->sizes[3], y->sizes[3]) && dim_above(y->sizes[2], 0);
}

/* Whether PyTorch would take its CPU kernel for it, which has a derivative of its own. */
static bool takes_flash(const bp_value *a)
{
    const bp_tensor *q = arg_tensor(a, QUERY), *mask = arg_tensor(a, MASK);
    if (arg_bool(a, GROUPED) || arg_float(a, DROPOUT) != 0 || (mask && (mask->flags & TENSOR_REQUIRES_GRAD)))
        return false;
    if (mask && (arg_bool(a, CAUSAL) || (mask->rank != 2 && mask->rank != 4)))
        return false;
    return same_front(q, arg_tensor(a, KEY)) && same_front(q, arg_tensor(a, VALUE)) && dim_above(q->sizes[2], 0);
}

static bp_tensor *heads(work *w, const bp_value *a, uint32_t i)
{
    bp_tensor *t = arg_tensor(a, i), *q = arg_tensor(a, QUERY);
    if (!arg_bool(a, GROUPED) || t->rank < 3)
        return t;
    bp_dim have = t->sizes[t->rank - 3u], wanted = q->sizes[q->rank - 3u];
    bp_dim repeat = dim_is(have, 0) ? dim_const(1) : dim_floordiv(w->c, wanted, have);
    return dim_is(repeat, 1) ? t : CALL(repeat_interleave_self_int, T(t), D(repeat), I(-3));
}

/* The mask as what is added to the scores; NULL: none. */
static bp_tensor *bias_of(work *w, const bp_value *a, bp_dtype d)
{
    bp_tensor *mask = arg_tensor(a, MASK), *q = arg_tensor(a, QUERY), *key = arg_tensor(a, KEY);
    if (arg_bool(a, CAUSAL)) {
        bp_value sizes = DIMS(q->sizes[q->rank - 2u], key->sizes[key->rank - 2u]);
        mask = CALL(tril_default, T(CALL(ones_default, sizes, value_dtype(BP_BOOL))));
    }
    if (!mask || mask->dtype != BP_BOOL)
        return part_cast(w, mask, d);
    bp_tensor *nothing = CALL(zeros_like_default, T(mask), value_dtype(d));
    return CALL(masked_fill_scalar, T(nothing), T(CALL(logical_not_default, T(mask))), F(-(double)INFINITY));
}

static bp_tensor *attention_by_parts(work *w, const op_row *op, const bp_value *a)
{
    bp_tensor *q = arg_tensor(a, QUERY), *key = heads(w, a, KEY), *v = heads(w, a, VALUE);
    bp_dtype d = (bp_dtype)q->dtype, wide = d == BP_F16 || d == BP_BF16 ? BP_F32 : d;
    /* The length of a head as a number: its root is a factor. */
    double scale = arg_is_none(a, SCALE) ? 1 / sqrt((double)tensor_dim(q, q->rank - 1u)) : arg_float(a, SCALE);
    double half = sqrt(fabs(scale));
    q = CALL(mul_scalar, T(part_cast(w, q, wide)), F(scale < 0 ? -half : half));
    key = key ? CALL(mul_scalar, T(CALL(transpose_int, T(part_cast(w, key, wide)), I(-2), I(-1))), F(half)) : NULL;
    bp_tensor *scores = product(w, op, q, key), *bias = bias_of(w, a, wide);
    if (scores && bias)
        scores = CALL(add_tensor, T(scores), T(bias));
    bp_tensor *weights = CALL(private_safe_softmax_default, T(scores), I(-1));
    if (arg_float(a, DROPOUT) > 0)
        weights = CALL(dropout_default, T(weights), a[DROPOUT], B(true));
    return part_cast(w, product(w, op, weights, part_cast(w, v, wide)), d);
}

PART(attention)
{
    if (!takes_flash(a))
        return attention_by_parts(w, op, a);
    return CALL(private_scaled_dot_product_flash_attention_for_cpu_default, a[QUERY], a[KEY], a[VALUE], a[DROPOUT],
                a[CAUSAL], a[MASK], a[SCALE]);
}
