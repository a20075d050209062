/* Shape rules of indexing by lists of tensors, and of what picks or writes along one dimension.
 *
 * What PyTorch makes with its iterator is laid out like its operands; copies of self keep self's strides; the rest is
 * contiguous. Sizes that depend on data are left to the kernel: such a rule checks and adds nothing. */
#include "host/op/checks.h"
#include "host/op/index_plan.h"
#include "host/op/rows.h"
#include <string.h>

/* -- indexing by tensors --------------------------------------------------------------------------------------------
 */

bp_status shape_index(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    index_plan p;
    bool masked;
    TRY(index_plan_read(c, s->op, s->args, 1, self, &p, &masked));
    if (masked && !index_plan_capture(c, s->args, 1, &p))
        return out_unknown(c, s, self->dtype, 1);
    TRY(index_plan_make(c, s->op, self, &p));
    shape_out *o = shape_add_out(c, s, self->dtype, p.rank, p.sizes);
    if (o)
        index_plan_strides(c, self, &p, o->meta.strides);
    return c->diag.code;
}

bp_status shape_index_put(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    index_plan p;
    bool masked;
    TRY(check_same_dtype(c, s, 0, 2));
    TRY(index_plan_read(c, s->op, s->args, 1, self, &p, &masked));
    if (!masked) {
        TRY(index_plan_make(c, s->op, self, &p));
        TRY(check_expands(c, s, 2, p.rank, p.sizes));
    }
    return out_like(c, s, self, self->dtype);
}

/* _unsafe_masked_index: the mask has the result's sizes. */
bp_status shape_masked_index(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    index_plan p;
    bool masked;
    TRY(index_plan_read(c, s->op, s->args, 2, self, &p, &masked));
    if (masked)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "the indices must not be masks");
    TRY(index_plan_make(c, s->op, self, &p));
    TRY(check_expands(c, s, 1, p.rank, p.sizes));
    return out_new(c, s, self->dtype, p.rank, p.sizes);
}

bp_status shape_masked_index_put(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    index_plan p;
    bool masked;
    TRY(check_same_dtype(c, s, 0, 3));
    TRY(index_plan_read(c, s->op, s->args, 2, self, &p, &masked));
    if (masked)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "the indices must not be masks");
    TRY(index_plan_make(c, s->op, self, &p));
    TRY(check_expands(c, s, 1, p.rank, p.sizes));
    TRY(check_expands(c, s, 3, p.rank, p.sizes));
    return out_like(c, s, self, self->dtype);
}

/* -- along one dimension --------------------------------------------------------------------------------------------
 */

static uint32_t rank_of(const bp_tensor *t) { return t->rank ? t->rank : 1; }
static bp_dim size_of(const bp_tensor *t, uint32_t d) { return t->rank ? t->sizes[d] : dim_const(1); }

/* An index of as many dimensions as `self`, no larger than it but along dim. An empty one may have any sizes. */
static bp_status check_index_of(bp_ctx *c, const shape_call *s, const bp_tensor *self, uint32_t dim, uint32_t i)
{
    const bp_tensor *index = arg_tensor(s->args, i);
    char x[256], y[256];
    if (is_empty(index))
        return BP_OK;
    TRY(check_index_dtype(c, s, i));
    bool fits = rank_of(index) == rank_of(self);
    for (uint32_t d = 0; fits && d < rank_of(self); d++)
        fits = d == dim || dim_require(DIM_LE, size_of(index, d), size_of(self, d));
    if (fits)
        return c->diag.code;
    return op_fail(
        c, s->op, BP_INVALID_ARGUMENT, "an index of sizes %s must be no larger than %s but along dimension %u",
        sizes_text(x, sizeof x, index->rank, index->sizes), sizes_text(y, sizeof y, self->rank, self->sizes), dim);
}

bp_status shape_gather(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0), *index = arg_tensor(s->args, 2);
    uint32_t dim;
    TRY(check_dim(c, s, 1, self, &dim));
    TRY(check_index_of(c, s, self, dim, 2));
    return out_new(c, s, self->dtype, index->rank, index->sizes);
}

/* Without a dimension both are flat; with one, they are broadcast along the others. */
bp_status shape_take_along_dim(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0), *index = arg_tensor(s->args, 1);
    bp_dim sizes[TENSOR_MAX_RANK], own[TENSOR_MAX_RANK], other[TENSOR_MAX_RANK];
    uint32_t dim;
    if (index->dtype != BP_I64)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"indices\" must be int64, and is %s",
                       dtype_get(index->dtype)->torch);
    if (arg_is_none(s->args, 2))
        return out_new(c, s, self->dtype, 1, (bp_dim[]){dim_product(c, index->sizes, index->rank)});
    TRY(check_dim(c, s, 2, self, &dim));
    if (self->rank != index->rank)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "self has %u dimensions, and indices %u", self->rank,
                       index->rank);
    for (uint32_t d = 0; d < self->rank; d++) {
        own[d] = d == dim ? dim_const(1) : self->sizes[d];
        other[d] = d == dim ? dim_const(1) : index->sizes[d];
    }
    TRY(layout_broadcast(c, self->rank, own, self->rank, other, sizes));
    if (self->rank)
        sizes[dim] = index->sizes[dim];
    return out_new(c, s, self->dtype, self->rank, sizes);
}

/* scatter and its kin; a source is of self's dtype and no smaller than the index. */
bp_status shape_scatter(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0), *index = arg_tensor(s->args, 2), *src = NULL;
    uint32_t dim;
    if (s->args[3].kind == BP_VALUE_TENSOR)
        src = arg_tensor(s->args, 3);
    TRY(check_dim(c, s, 1, self, &dim));
    TRY(check_index_of(c, s, self, dim, 2));
    if (src && !is_empty(index)) {
        char x[256], y[256];
        TRY(check_same_dtype(c, s, 0, 3));
        bool fits = rank_of(src) == rank_of(index);
        for (uint32_t d = 0; fits && d < rank_of(index); d++)
            fits = dim_require(DIM_LE, size_of(index, d), size_of(src, d));
        if (!fits)
            return op_fail(
                c, s->op, BP_INVALID_ARGUMENT, "an index of sizes %s must be no larger than the source's %s",
                sizes_text(x, sizeof x, index->rank, index->sizes), sizes_text(y, sizeof y, src->rank, src->sizes));
    }
    return out_new(c, s, self->dtype, self->rank, self->sizes);
}

static bp_status check_reduction(bp_ctx *c, const shape_call *s, uint32_t i, const char *const *names, uint32_t n)
{
    const char *given = arg_str(s->args, i);
    char list[64] = "";
    for (uint32_t k = 0; k < n; k++) {
        if (strcmp(given, names[k]) == 0)
            return BP_OK;
        strcat(strcat(list, k ? ", " : ""), names[k]);
    }
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"reduce\" must be one of %s, and is \"%s\"", list, given);
}

bp_status shape_scatter_named(bp_ctx *c, shape_call *s)
{
    static const char *const NAMES[] = {"add", "multiply"};
    TRY(check_reduction(c, s, 4, NAMES, 2));
    return shape_scatter(c, s);
}

bp_status shape_scatter_reduce(bp_ctx *c, shape_call *s)
{
    static const char *const NAMES[] = {"sum", "prod", "mean", "amax", "amin"};
    TRY(check_reduction(c, s, 4, NAMES, 5));
    return shape_scatter(c, s);
}

bp_status shape_index_select(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0), *index = arg_tensor(s->args, 2);
    bp_dim sizes[TENSOR_MAX_RANK];
    uint32_t dim;
    TRY(check_dim(c, s, 1, self, &dim));
    TRY(check_index_dtype(c, s, 2));
    TRY(check_rank(c, s, 2, 0, 1));
    if (self->rank == 0 && !dim_require(DIM_EQ, size_of(index, 0), dim_const(1)))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "an index into a 0-d tensor must have one element");
    if (self->rank)
        memcpy(sizes, self->sizes, self->rank * sizeof *sizes), sizes[dim] = size_of(index, 0);
    return out_new(c, s, self->dtype, self->rank, sizes);
}

/* A source whose size along dim is the index's length, and self's elsewhere. */
static bp_status check_source(bp_ctx *c, const shape_call *s, uint32_t i, uint32_t source)
{
    const bp_tensor *self = arg_tensor(s->args, 0), *index = arg_tensor(s->args, i);
    const bp_tensor *src = arg_tensor(s->args, source);
    char x[256], y[256];
    uint32_t dim;
    TRY(check_dim(c, s, i - 1, self, &dim));
    TRY(check_rank(c, s, i, 0, 1));
    TRY(check_same_dtype(c, s, 0, source));
    bool fits = rank_of(src) == rank_of(self) && dim_require(DIM_EQ, size_of(src, dim), size_of(index, 0));
    for (uint32_t d = 0; fits && d < rank_of(self); d++)
        fits = d == dim || dim_require(DIM_EQ, size_of(src, d), size_of(self, d));
    if (fits)
        return BP_OK;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                   "a source of sizes %s does not fit %s indices along dimension %u of sizes %s",
                   sizes_text(x, sizeof x, src->rank, src->sizes), op_dim_text(c, size_of(index, 0)), dim,
                   sizes_text(y, sizeof y, self->rank, self->sizes));
}

bp_status shape_index_add(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    TRY(check_index_dtype(c, s, 2));
    TRY(check_source(c, s, 2, 3));
    return out_new(c, s, self->dtype, self->rank, self->sizes);
}

static bp_status need_i64(bp_ctx *c, const shape_call *s, uint32_t i)
{
    const bp_tensor *t = arg_tensor(s->args, i);
    if (t->dtype == BP_I64)
        return BP_OK;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"%s\" must be int64, and is %s",
                   s->op->schema->args[i].name, dtype_get(t->dtype)->torch);
}

bp_status shape_index_copy(bp_ctx *c, shape_call *s)
{
    TRY(need_i64(c, s, 2));
    return shape_index_add(c, s);
}

bp_status shape_index_reduce(bp_ctx *c, shape_call *s)
{
    static const char *const NAMES[] = {"prod", "mean", "amax", "amin"};
    TRY(check_reduction(c, s, 4, NAMES, 4));
    return shape_index_add(c, s);
}

bp_status shape_index_fill(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0);
    uint32_t dim;
    TRY(check_dim(c, s, 1, self, &dim));
    TRY(need_i64(c, s, 2));
    TRY(check_rank(c, s, 2, 0, 1));
    if (s->args[3].kind == BP_VALUE_TENSOR)
        TRY(check_rank(c, s, 3, 0, 0));
    return out_like(c, s, self, self->dtype);
}

bp_status shape_take(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0), *index = arg_tensor(s->args, 1);
    TRY(need_i64(c, s, 1));
    return out_new(c, s, self->dtype, index->rank, index->sizes);
}

bp_status shape_put(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, 0), *index = arg_tensor(s->args, 1), *src = arg_tensor(s->args, 2);
    TRY(need_i64(c, s, 1));
    TRY(check_same_dtype(c, s, 0, 2));
    bp_dim n = dim_product(c, index->sizes, index->rank), m = dim_product(c, src->sizes, src->rank);
    if (!dim_require(DIM_EQ, n, m))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "%s indices and %s values", op_dim_text(c, n),
                       op_dim_text(c, m));
    return out_like(c, s, self, self->dtype);
}

bp_status shape_embedding(bp_ctx *c, shape_call *s)
{
    const bp_tensor *weight = arg_tensor(s->args, 0), *index = arg_tensor(s->args, 1);
    bp_dim sizes[TENSOR_MAX_RANK];
    TRY(check_rank(c, s, 0, 2, 2));
    TRY(check_rank(c, s, 1, 0, TENSOR_MAX_RANK - 1));
    TRY(check_index_dtype(c, s, 1));
    if (index->rank)
        memcpy(sizes, index->sizes, index->rank * sizeof *sizes);
    sizes[index->rank] = weight->sizes[1];
    return out_new(c, s, weight->dtype, index->rank + 1, sizes);
}

bp_status shape_embedding_dense_backward(bp_ctx *c, shape_call *s)
{
    const bp_tensor *grad = arg_tensor(s->args, 0), *index = arg_tensor(s->args, 1);
    TRY(check_index_dtype(c, s, 1));
    TRY(check_rank(c, s, 0, index->rank + 1u, index->rank + 1u));
    if (!sizes_must_match(index->rank, grad->sizes, index->sizes) ||
        !dim_require(DIM_LE, dim_const(0), arg_dim(s->args, 2)))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "the gradient must have a row for each index");
    return out_new(c, s, grad->dtype, 2, (bp_dim[]){arg_dim(s->args, 2), grad->sizes[grad->rank - 1]});
}
