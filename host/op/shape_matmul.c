/* Shape rules of matrix products. Every result is contiguous but addr's, which is laid out as a pointwise one. */
#include "host/op/checks.h"
#include "host/op/rows.h"
#include <string.h>

static bp_status cannot_multiply(bp_ctx *c, const shape_call *s, const bp_tensor *a, const bp_tensor *b)
{
    char x[256], y[256];
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "sizes %s and %s cannot be multiplied",
                   sizes_text(x, sizeof x, a->rank, a->sizes), sizes_text(y, sizeof y, b->rank, b->sizes));
}

/* Arguments i and j are of one dtype that has products. */
static bp_status factors(bp_ctx *c, const shape_call *s, uint32_t i, uint32_t j)
{
    TRY(check_same_dtype(c, s, i, j));
    if (arg_tensor(s->args, i)->dtype == BP_BOOL)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "there are no products of bool matrices");
    return BP_OK;
}

/* Matrices i and j. */
static bp_status matrices(bp_ctx *c, const shape_call *s, uint32_t i, uint32_t j)
{
    const bp_tensor *a = arg_tensor(s->args, i), *b = arg_tensor(s->args, j);
    TRY(check_rank(c, s, i, 2, 2));
    TRY(check_rank(c, s, j, 2, 2));
    TRY(factors(c, s, i, j));
    return dim_require(DIM_EQ, a->sizes[1], b->sizes[0]) ? BP_OK : cannot_multiply(c, s, a, b);
}

/* Batches of matrices i and j. */
static bp_status batches(bp_ctx *c, const shape_call *s, uint32_t i, uint32_t j)
{
    const bp_tensor *a = arg_tensor(s->args, i), *b = arg_tensor(s->args, j);
    TRY(check_rank(c, s, i, 3, 3));
    TRY(check_rank(c, s, j, 3, 3));
    TRY(factors(c, s, i, j));
    bool fit = dim_require(DIM_EQ, a->sizes[0], b->sizes[0]) && dim_require(DIM_EQ, a->sizes[2], b->sizes[1]);
    return fit ? BP_OK : cannot_multiply(c, s, a, b);
}

/* What is added has the factors' dtype and expands to the result. */
static bp_status added(bp_ctx *c, shape_call *s, uint32_t rank, const bp_dim *sizes)
{
    TRY(check_same_dtype(c, s, 0, 1));
    TRY(check_expands(c, s, 0, rank, sizes));
    return out_new(c, s, arg_tensor(s->args, 1)->dtype, rank, sizes);
}

bp_status shape_mm(bp_ctx *c, shape_call *s)
{
    const bp_tensor *a = arg_tensor(s->args, 0), *b = arg_tensor(s->args, 1);
    TRY(matrices(c, s, 0, 1));
    return out_new(c, s, a->dtype, 2, (bp_dim[]){a->sizes[0], b->sizes[1]});
}

bp_status shape_addmm(bp_ctx *c, shape_call *s)
{
    TRY(matrices(c, s, 1, 2));
    return added(c, s, 2, (bp_dim[]){arg_tensor(s->args, 1)->sizes[0], arg_tensor(s->args, 2)->sizes[1]});
}

bp_status shape_bmm(bp_ctx *c, shape_call *s)
{
    const bp_tensor *a = arg_tensor(s->args, 0), *b = arg_tensor(s->args, 1);
    TRY(batches(c, s, 0, 1));
    return out_new(c, s, a->dtype, 3, (bp_dim[]){a->sizes[0], a->sizes[1], b->sizes[2]});
}

bp_status shape_baddbmm(bp_ctx *c, shape_call *s)
{
    const bp_tensor *a = arg_tensor(s->args, 1), *b = arg_tensor(s->args, 2);
    TRY(batches(c, s, 1, 2));
    return added(c, s, 3, (bp_dim[]){a->sizes[0], a->sizes[1], b->sizes[2]});
}

bp_status shape_addbmm(bp_ctx *c, shape_call *s)
{
    TRY(batches(c, s, 1, 2));
    return added(c, s, 2, (bp_dim[]){arg_tensor(s->args, 1)->sizes[1], arg_tensor(s->args, 2)->sizes[2]});
}

/* Matrix i times vector j. */
static bp_status matrix_vector(bp_ctx *c, const shape_call *s, uint32_t i, uint32_t j)
{
    const bp_tensor *a = arg_tensor(s->args, i), *v = arg_tensor(s->args, j);
    TRY(check_rank(c, s, i, 2, 2));
    TRY(check_rank(c, s, j, 1, 1));
    TRY(factors(c, s, i, j));
    return dim_require(DIM_EQ, a->sizes[1], v->sizes[0]) ? BP_OK : cannot_multiply(c, s, a, v);
}

bp_status shape_mv(bp_ctx *c, shape_call *s)
{
    const bp_tensor *a = arg_tensor(s->args, 0);
    TRY(matrix_vector(c, s, 0, 1));
    return out_new(c, s, a->dtype, 1, a->sizes);
}

bp_status shape_addmv(bp_ctx *c, shape_call *s)
{
    TRY(matrix_vector(c, s, 1, 2));
    return added(c, s, 1, arg_tensor(s->args, 1)->sizes);
}

bp_status shape_dot(bp_ctx *c, shape_call *s)
{
    const bp_tensor *a = arg_tensor(s->args, 0), *b = arg_tensor(s->args, 1);
    TRY(check_rank(c, s, 0, 1, 1));
    TRY(check_rank(c, s, 1, 1, 1));
    TRY(factors(c, s, 0, 1));
    if (!dim_require(DIM_EQ, a->sizes[0], b->sizes[0]))
        return cannot_multiply(c, s, a, b);
    return out_new(c, s, a->dtype, 0, NULL);
}

bp_status shape_outer(bp_ctx *c, shape_call *s)
{
    TRY(check_rank(c, s, 0, 1, 1));
    TRY(check_rank(c, s, 1, 1, 1));
    bp_dtype dtype = promote_args(c, s->args, 0, 1);
    return out_new(c, s, dtype, 2, (bp_dim[]){arg_tensor(s->args, 0)->sizes[0], arg_tensor(s->args, 1)->sizes[0]});
}

bp_status shape_addr(bp_ctx *c, shape_call *s)
{
    bp_tensor *self = arg_tensor(s->args, 0);
    TRY(check_rank(c, s, 1, 1, 1));
    TRY(check_rank(c, s, 2, 1, 1));
    bp_dim sizes[] = {arg_tensor(s->args, 1)->sizes[0], arg_tensor(s->args, 2)->sizes[0]};
    TRY(check_expands(c, s, 0, 2, sizes));
    promote_state p = {0};
    for (uint32_t i = 0; i < 3; i++)
        promote_tensor(c, &p, arg_tensor(s->args, i));
    shape_out *o = shape_add_out(c, s, promote_result(&p), 2, sizes);
    const bp_tensor *operands[] = {self};
    if (o && self->rank == 2)
        layout_pointwise(c, 1, operands, 2, sizes, o->meta.strides);
    return c->diag.code;
}

/* matmul: vectors lose their dimension, batches broadcast. */
bp_status shape_matmul(bp_ctx *c, shape_call *s)
{
    const bp_tensor *a = arg_tensor(s->args, 0), *b = arg_tensor(s->args, 1);
    if (a->rank == 0 || b->rank == 0)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "both arguments must have a dimension, and have %u and %u",
                       a->rank, b->rank);
    TRY(factors(c, s, 0, 1));
    if (!dim_require(DIM_EQ, a->sizes[a->rank - 1], b->sizes[b->rank == 1 ? 0 : b->rank - 2]))
        return cannot_multiply(c, s, a, b);
    bp_dim sizes[TENSOR_MAX_RANK];
    uint32_t ra = a->rank > 2 ? a->rank - 2 : 0, rb = b->rank > 2 ? b->rank - 2 : 0, rank = ra > rb ? ra : rb;
    TRY(layout_broadcast(c, ra, a->sizes, rb, b->sizes, sizes));
    if (a->rank > 1)
        sizes[rank++] = a->sizes[a->rank - 2];
    if (b->rank > 1)
        sizes[rank++] = b->sizes[b->rank - 1];
    return out_new(c, s, a->dtype, rank, sizes);
}

/* linear: a weight of one dimension gives one value a row. */
bp_status shape_linear(bp_ctx *c, shape_call *s)
{
    const bp_tensor *x = arg_tensor(s->args, 0), *w = arg_tensor(s->args, 1);
    TRY(check_rank(c, s, 0, 1, TENSOR_MAX_RANK));
    TRY(check_rank(c, s, 1, 1, 2));
    TRY(factors(c, s, 0, 1));
    if (!dim_require(DIM_EQ, x->sizes[x->rank - 1], w->sizes[w->rank - 1]))
        return cannot_multiply(c, s, x, w);
    bp_dim sizes[TENSOR_MAX_RANK];
    uint32_t rank = 0;
    for (; rank + 1 < x->rank; rank++)
        sizes[rank] = x->sizes[rank];
    if (w->rank == 2)
        sizes[rank++] = w->sizes[0];
    if (!arg_is_none(s->args, 2)) {
        TRY(check_rank(c, s, 1, 2, 2));
        TRY(check_same_dtype(c, s, 0, 2));
        TRY(check_expands(c, s, 2, rank, sizes));
    }
    return out_new(c, s, x->dtype, rank, sizes);
}

/* inner: products over the last dimension of both; a 0-d argument scales the other. */
bp_status shape_inner(bp_ctx *c, shape_call *s)
{
    const bp_tensor *a = arg_tensor(s->args, 0), *b = arg_tensor(s->args, 1);
    bp_dim sizes[2 * TENSOR_MAX_RANK];
    uint32_t rank = 0;
    bool scales = a->rank == 0 || b->rank == 0;
    if (scales) {
        const bp_tensor *t = a->rank ? a : b;
        return out_like(c, s, t, promote_args(c, s->args, 0, 1));
    }
    TRY(factors(c, s, 0, 1));
    if (!dim_require(DIM_EQ, a->sizes[a->rank - 1], b->sizes[b->rank - 1]))
        return cannot_multiply(c, s, a, b);
    for (uint32_t d = 0; d + 1 < a->rank; d++)
        sizes[rank++] = a->sizes[d];
    for (uint32_t d = 0; d + 1 < b->rank; d++)
        sizes[rank++] = b->sizes[d];
    if (rank > TENSOR_MAX_RANK)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "a result of %u dimensions", rank);
    return out_new(c, s, a->dtype, rank, sizes);
}

/* kron: sizes multiply, the shorter one is padded in front. The result is laid out as the pointwise product of both
 * with their dimensions interleaved, where that can be seen with the result's sizes. */
bp_status shape_kron(bp_ctx *c, shape_call *s)
{
    const bp_tensor *a = arg_tensor(s->args, 0), *b = arg_tensor(s->args, 1);
    uint32_t rank = a->rank > b->rank ? a->rank : b->rank;
    if (2 * rank > TENSOR_MAX_RANK)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "arguments of more than %d dimensions", TENSOR_MAX_RANK / 2);
    bp_dim sizes[TENSOR_MAX_RANK], wide[TENSOR_MAX_RANK], steps[TENSOR_MAX_RANK];
    bp_dim own[2][2][TENSOR_MAX_RANK]; /* sizes and strides of a and b in 2 * rank dimensions */
    for (uint32_t d = 0; d < rank; d++) {
        bool in_a = d + a->rank >= rank, in_b = d + b->rank >= rank;
        bp_dim one = dim_const(1), x = in_a ? a->sizes[d + a->rank - rank] : one;
        bp_dim y = in_b ? b->sizes[d + b->rank - rank] : one;
        own[0][0][2 * d] = wide[2 * d] = x, own[0][0][2 * d + 1] = own[1][0][2 * d] = one;
        own[1][0][2 * d + 1] = wide[2 * d + 1] = y;
        own[0][1][2 * d] = in_a ? a->strides[d + a->rank - rank] : one, own[0][1][2 * d + 1] = one;
        own[1][1][2 * d + 1] = in_b ? b->strides[d + b->rank - rank] : one, own[1][1][2 * d] = one;
        sizes[d] = dim_mul(c, x, y);
    }
    bp_tensor views[2];
    const bp_tensor *operands[] = {&views[0], &views[1]};
    for (uint32_t i = 0; i < 2; i++)
        views[i] = (bp_tensor){.dtype = i ? b->dtype : a->dtype, .rank = (uint8_t)(2 * rank), .sizes = own[i][0],
                               .strides = own[i][1]};
    layout_pointwise(c, 2, operands, 2 * rank, wide, steps);
    bp_tensor product = {.rank = (uint8_t)(2 * rank), .sizes = wide, .strides = steps};
    shape_out *o = shape_add_out(c, s, promote_args(c, s->args, 0, 1), rank, sizes);
    bp_dim strides[TENSOR_MAX_RANK];
    if (o && layout_view(c, &product, rank, sizes, strides))
        memcpy(o->meta.strides, strides, rank * sizeof *strides);
    return c->diag.code;
}

/* cross: the first dimension of size 3 when none is given; sizes broadcast. */
bp_status shape_cross(bp_ctx *c, shape_call *s)
{
    const bp_tensor *a = arg_tensor(s->args, 0), *b = arg_tensor(s->args, 1);
    bp_dim sizes[TENSOR_MAX_RANK];
    uint32_t dim = 0;
    char x[256], y[256];
    TRY(check_same_dtype(c, s, 0, 1));
    if (a->rank != b->rank)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "the arguments have %u and %u dimensions", a->rank, b->rank);
    if (!arg_is_none(s->args, 2))
        TRY(check_dim(c, s, 2, a, &dim));
    else
        while (dim < a->rank && !dim_is(a->sizes[dim], 3))
            dim++;
    bp_dim three = dim_const(3);
    if (dim >= a->rank || !dim_require(DIM_EQ, a->sizes[dim], three) || !dim_require(DIM_EQ, b->sizes[dim], three))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "no dimension of size 3 in %s and %s",
                       sizes_text(x, sizeof x, a->rank, a->sizes), sizes_text(y, sizeof y, b->rank, b->sizes));
    TRY(layout_broadcast(c, a->rank, a->sizes, b->rank, b->sizes, sizes));
    return out_new(c, s, a->dtype, a->rank, sizes);
}
