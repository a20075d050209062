/* What indexing by a list of tensors does to sizes and strides (index_plan.h). */
#include "host/op/index_plan.h"
#include "host/op/checks.h"
#include <string.h>

static bp_status check_mask(bp_ctx *c, const op_row *op, const bp_tensor *self, uint32_t at, const bp_tensor *mask)
{
    char x[256], y[256];
    for (uint32_t d = 0; d < mask->rank && at + mask->rank <= self->rank; d++) {
        if (!dim_require(DIM_EQ, mask->sizes[d], self->sizes[at + d]))
            return op_fail(c, op, BP_INVALID_ARGUMENT,
                           "a mask of sizes %s does not match a tensor of sizes %s at dimension %u",
                           sizes_text(x, sizeof x, mask->rank, mask->sizes),
                           sizes_text(y, sizeof y, self->rank, self->sizes), at + d);
    }
    return BP_OK;
}

bp_status index_plan_read(bp_ctx *c, const op_row *op, const bp_value *args, uint32_t i, const bp_tensor *self,
                          index_plan *p, bool *masked)
{
    uint32_t at = 0, n = arg_list_len(args, i);
    *p = (index_plan){.nself = self->rank};
    *masked = false;
    for (uint32_t k = 0; k < n; k++) {
        const bp_tensor *t = arg_list_tensor(args, i, k);
        uint32_t takes = t && index_is_mask(t) ? t->rank : 1;
        if (t && !index_is_mask(t) && t->dtype != BP_I64 && t->dtype != BP_I32)
            return op_fail(c, op, BP_INVALID_ARGUMENT, "an index must be int64, int32 or bool, and is %s",
                           dtype_get(t->dtype)->torch);
        if (at + takes > self->rank)
            return op_fail(c, op, BP_INVALID_ARGUMENT, "too many indices for a tensor of %u dimensions", self->rank);
        if (t && index_is_mask(t)) {
            *masked = true;
            TRY(check_mask(c, op, self, at, t));
        } else if (t) {
            p->at[at] = t;
        }
        at += takes;
    }
    return BP_OK;
}

bool index_plan_capture(bp_ctx *c, const bp_value *args, uint32_t i, index_plan *p)
{
    for (uint32_t k = 0, at = 0; k < arg_list_len(args, i); k++) {
        const bp_tensor *t = arg_list_tensor(args, i, k);
        bool mask = t && index_is_mask(t);
        bp_tensor *places = arena_array(&c->scratch, 1, sizeof *places);
        bp_dim *dims = arena_array(&c->scratch, 2, sizeof *dims);
        if (!places || !dims)
            return diag_nomem(&c->diag), false;
        if (mask && !shape_data_size(c, 0, tensor_numel(c, t), &dims[0]))
            return false;
        dims[1] = dim_const(1);
        *places = (bp_tensor){.dtype = BP_I64, .rank = 1, .sizes = dims, .strides = dims + 1};
        for (uint32_t d = 0; mask && d < t->rank; d++)
            p->at[at + d] = places;
        at += mask ? t->rank : 1;
    }
    return true;
}

/* Whether the indexed dimensions are next to each other; *first is the first of them. */
static bool adjacent(const index_plan *p, uint32_t *first)
{
    uint32_t changes = 0;
    *first = 0;
    for (uint32_t d = 0; d < p->nself; d++) {
        bool here = p->at[d] != NULL, before = d > 0 && p->at[d - 1];
        if (here && !before && changes++ == 0)
            *first = d;
    }
    return changes <= 1;
}

bp_status index_plan_make(bp_ctx *c, const op_row *op, const bp_tensor *self, index_plan *p)
{
    bp_dim wide[TENSOR_MAX_RANK];
    p->nself = self->rank;
    p->nb = p->count = p->rank = 0;
    for (uint32_t d = 0; d < self->rank; d++) {
        if (!p->at[d])
            continue;
        uint32_t rank = p->nb > p->at[d]->rank ? p->nb : p->at[d]->rank;
        TRY(layout_broadcast(c, p->nb, p->broadcast, p->at[d]->rank, p->at[d]->sizes, wide));
        memcpy(p->broadcast, wide, rank * sizeof *wide);
        p->nb = rank;
        p->count++;
    }
    if (!adjacent(p, &p->first))
        p->first = 0;
    if (self->rank - p->count + p->nb > TENSOR_MAX_RANK)
        return op_fail(c, op, BP_INVALID_ARGUMENT, "a result of more than %d dimensions", TENSOR_MAX_RANK);
    for (uint32_t d = 0; d <= self->rank; d++) {
        if (d == p->first && p->count) {
            memcpy(p->sizes + p->rank, p->broadcast, p->nb * sizeof *p->sizes);
            p->rank += p->nb;
        }
        if (d < self->rank && !p->at[d])
            p->sizes[p->rank++] = self->sizes[d];
    }
    return BP_OK;
}

/* Where dimensions of self that are not indexed, or of an index, lie in the result; the rest has stride 0. */
static void place_self(const index_plan *p, const bp_tensor *self, bp_dim *strides)
{
    for (uint32_t d = 0, at = 0; d < self->rank; d++) {
        if (p->at[d])
            continue;
        if (at == p->first && p->count)
            at += p->nb;
        strides[at++] = self->strides[d];
    }
}

static void place_index(const index_plan *p, const bp_tensor *t, bp_dim *strides)
{
    for (uint32_t k = 0; k < t->rank; k++)
        if (!dim_eq_or_false(t->sizes[k], dim_const(1)))
            strides[p->first + p->nb - t->rank + k] = t->strides[k];
}

bp_status index_plan_strides(bp_ctx *c, const bp_tensor *self, const index_plan *p, bp_dim *strides)
{
    bp_tensor *views = arena_array(&c->scratch, p->count + 1, sizeof *views);
    const bp_tensor **operands = arena_array(&c->scratch, p->count + 1, sizeof *operands);
    bp_dim *steps = arena_array(&c->scratch, (p->count + 1) * (size_t)p->rank, sizeof *steps);
    bp_dim *sizes = arena_memdup(&c->scratch, p->sizes, p->rank * sizeof *sizes);
    if (!views || !operands || !steps || !sizes)
        return diag_nomem(&c->diag);
    for (uint32_t n = 0, d = 0; n <= p->count; n++) {
        const bp_tensor *t = self;
        bp_dim *own = steps + (size_t)n * p->rank;
        if (n == 0) {
            place_self(p, self, own);
        } else {
            while (!p->at[d])
                d++;
            t = p->at[d++];
            place_index(p, t, own);
        }
        views[n] = (bp_tensor){.dtype = t->dtype, .rank = (uint8_t)p->rank, .sizes = sizes, .strides = own};
        operands[n] = &views[n];
    }
    layout_pointwise(c, p->count + 1, operands, p->rank, p->sizes, strides);
    return c->diag.code;
}
