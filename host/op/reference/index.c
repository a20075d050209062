/* Indexing by lists of tensors: index, index_put and their masked forms.
 *
 * An indexed tensor and the result are both a table of "which index" times a table of "where in the rest", so the
 * kernels fill four lists of offsets and then move elements. Indices are checked before anything is moved. */
#include "host/op/index_plan.h"
#include "host/op/reference/number.h"
#include "host/op/reference/walk.h"
#include "host/op/reference/work.h"
#include "host/op/rows.h"
#include <string.h>

/* Element (b, r) of the result, or of what is stored, is at b_out[b] + r_out[r]; in self it is at b_self[b] +
 * r_self[r]. */
typedef struct {
    int64_t nb, nr, *b_self, *b_out, *r_self, *r_out;
} tables;

/* A mask as one index a dimension. */
static void read_mask(work *w, const bp_tensor *mask, const bp_tensor **at)
{
    walk v;
    walk_start(&v, mask->rank, mask->sizes);
    walk_add(&v, mask->strides);
    const uint8_t *data = tensor_ptr(mask);
    int64_t n = 0, *out[TENSOR_MAX_RANK];
    for (; v.left; walk_next(&v))
        n += data[v.at[0]] != 0;
    for (uint32_t d = 0; d < mask->rank; d++) {
        bp_tensor *t = work_new(w, BP_I64, 1, &n);
        out[d] = t ? tensor_ptr(t) : NULL;
        at[d] = t;
    }
    walk_start(&v, mask->rank, mask->sizes);
    walk_add(&v, mask->strides);
    for (int64_t i = 0; work_ok(w) && v.left; walk_next(&v)) {
        if (!data[v.at[0]])
            continue;
        for (uint32_t d = 0; d < mask->rank; d++)
            out[d][i] = v.index[d];
        i++;
    }
}

/* The plan of a call, masks expanded. */
static void read_plan(work *w, op_call *k, uint32_t i, index_plan *p)
{
    const bp_tensor *self = arg_tensor(k->args, 0);
    bool masked;
    if (index_plan_read(w->c, k->op, k->args, i, self, p, &masked) != BP_OK)
        return;
    for (uint32_t n = 0, d = 0; masked && n < arg_list_len(k->args, i); n++) {
        const bp_tensor *t = arg_list_tensor(k->args, i, n);
        bool mask = t && index_is_mask(t);
        if (mask)
            read_mask(w, t, p->at + d);
        d += mask ? t->rank : 1;
    }
    if (work_ok(w))
        index_plan_make(w->c, k->op, self, p);
}

enum bounds { BOUNDS_CHECK, BOUNDS_CLAMP };

/* Adds dimension d's share to the offsets of the indexed part. */
static void add_index(work *w, const op_row *op, const bp_tensor *self, const index_plan *p, uint32_t d, tables *t,
                      enum bounds bounds)
{
    bp_tensor *wide = work_expand(w, p->at[d], p->nb, p->broadcast);
    bp_tensor *index = work_in(w, wide, BP_I64);
    int64_t size = tensor_dim(self, d), step = tensor_step(self, d);
    const int64_t *data = index ? tensor_ptr(index) : NULL;
    for (int64_t b = 0; work_ok(w) && b < t->nb; b++) {
        int64_t i = data[b];
        if (bounds == BOUNDS_CLAMP)
            i = i < -size ? -size : i >= size ? size - 1 : i;
        else if (i < -size || i >= size)
            op_fail(w->c, op, BP_OUT_OF_RANGE, "index %lld is out of bounds for dimension %u with size %lld",
                    (long long)i, d, (long long)size);
        t->b_self[b] += (i < 0 ? i + size : i) * step;
    }
}

/* Offsets of all elements of a shape. */
static int64_t *offsets(work *w, uint32_t rank, const bp_dim *sizes, const bp_dim *strides, int64_t n)
{
    int64_t *out = work_alloc(w, n, sizeof *out);
    walk v;
    walk_start(&v, rank, sizes);
    walk_add(&v, strides);
    for (int64_t i = 0; out && v.left; walk_next(&v))
        out[i++] = v.at[0];
    return out;
}

/* Fills the tables for self and for `out`, which has the result's sizes and these strides. */
static void fill_tables(work *w, const op_row *op, const bp_tensor *self, const index_plan *p, const bp_dim *out,
                        enum bounds bounds, tables *t)
{
    bp_dim sizes[TENSOR_MAX_RANK], from[TENSOR_MAX_RANK], to[TENSOR_MAX_RANK];
    uint32_t n = 0, at = 0;
    *t = (tables){.nb = 1, .nr = 1};
    for (uint32_t d = 0; d < self->rank; d++) {
        if (p->at[d])
            continue;
        if (at == p->first && p->count)
            at += p->nb;
        sizes[n] = self->sizes[d], from[n] = self->strides[d], to[n++] = out[at++];
        t->nr *= tensor_dim(self, d);
    }
    for (uint32_t d = 0; d < p->nb; d++)
        t->nb *= p->broadcast[d].value;
    t->r_self = offsets(w, n, sizes, from, t->nr);
    t->r_out = offsets(w, n, sizes, to, t->nr);
    t->b_out = offsets(w, p->nb, p->broadcast, out + p->first, t->nb);
    t->b_self = work_alloc(w, t->nb, sizeof *t->b_self);
    if (work_ok(w))
        memset(t->b_self, 0, (size_t)t->nb * sizeof *t->b_self);
    for (uint32_t d = 0; work_ok(w) && t->nr && d < self->rank; d++)
        if (p->at[d])
            add_index(w, op, self, p, d, t, bounds);
}

/* to[b, r] = from[b, r], for elements of any size. */
static void move(const tables *t, size_t size, char *to, const int64_t *b_to, const int64_t *r_to, const char *from,
                 const int64_t *b_from, const int64_t *r_from)
{
    for (int64_t b = 0; b < t->nb; b++) {
        char *x = to + b_to[b] * (int64_t)size;
        const char *y = from + b_from[b] * (int64_t)size;
        switch (size) {
#define MOVE(n)                                                                                                       \
    case n:                                                                                                           \
        for (int64_t r = 0; r < t->nr; r++)                                                                           \
            memcpy(x + r_to[r] * n, y + r_from[r] * n, n);                                                            \
        break;
            MOVE(1)
            MOVE(2)
            MOVE(4)
            MOVE(8)
            MOVE(16)
#undef MOVE
        }
    }
}

bp_status kernel_index(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    const bp_tensor *self = arg_tensor(k->args, 0);
    index_plan p;
    tables t;
    read_plan(&w, k, 1, &p);
    if (work_ok(&w) && !k->out[0]) {
        bp_dim strides[TENSOR_MAX_RANK];
        index_plan_strides(c, self, &p, strides);
        tensor_meta m = {self->dtype, tensor_device(self), p.rank, p.sizes, strides, dim_const(0)};
        k->out[0] = tensor_new(c, &m);
    }
    if (work_ok(&w))
        fill_tables(&w, k->op, self, &p, k->out[0]->strides, BOUNDS_CHECK, &t);
    if (work_ok(&w))
        move(&t, dtype_size(self->dtype), tensor_ptr(k->out[0]), t.b_out, t.r_out, tensor_ptr(self), t.b_self,
             t.r_self);
    return work_end(&w);
}

static void accumulate(const tables *t, bp_tensor *out, const bp_tensor *values)
{
    int64_t size = (int64_t)dtype_size(out->dtype);
    for (int64_t b = 0; b < t->nb; b++) {
        for (int64_t r = 0; r < t->nr; r++) {
            char *at = (char *)tensor_ptr(out) + (t->b_self[b] + t->r_self[r]) * size;
            const char *from = (const char *)tensor_ptr(values) + (t->b_out[b] + t->r_out[r]) * size;
            dtype_store(out->dtype, at, num_add(dtype_load(out->dtype, at), dtype_load(out->dtype, from)));
        }
    }
}

bp_status kernel_index_put(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *out = k->out[0], *values = arg_tensor(k->args, 2);
    index_plan p;
    tables t;
    tensor_copy(c, out, arg_tensor(k->args, 0));
    read_plan(&w, k, 1, &p);
    if (work_ok(&w) && !work_fits(values, p.rank, p.sizes))
        op_fail(c, k->op, BP_OUT_OF_RANGE, "values of %lld elements cannot be broadcast to the indexed elements",
                (long long)tensor_nelem(values));
    if (work_ok(&w))
        values = work_expand(&w, values, p.rank, p.sizes);
    if (work_ok(&w))
        fill_tables(&w, k->op, out, &p, values->strides, BOUNDS_CHECK, &t);
    if (work_ok(&w) && arg_bool(k->args, 3))
        accumulate(&t, out, values);
    else if (work_ok(&w))
        move(&t, dtype_size(out->dtype), tensor_ptr(out), t.b_self, t.r_self, tensor_ptr(values), t.b_out, t.r_out);
    return work_end(&w);
}

/* -- the forms that a mask shields: indices are clamped, what the mask hides is `fill` or nothing -- */

bp_status kernel_masked_index(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    const bp_tensor *self = arg_tensor(k->args, 0);
    bp_tensor *out = k->out[0], *mask = work_expand(&w, arg_tensor(k->args, 1), out->rank, out->sizes);
    int64_t size = (int64_t)dtype_size(self->dtype);
    index_plan p;
    tables t;
    read_plan(&w, k, 2, &p);
    if (work_ok(&w) && tensor_nelem(self))
        fill_tables(&w, k->op, self, &p, out->strides, BOUNDS_CLAMP, &t);
    if (work_ok(&w) && tensor_nelem(self))
        move(&t, (size_t)size, tensor_ptr(out), t.b_out, t.r_out, tensor_ptr(self), t.b_self, t.r_self);
    walk v;
    walk_start(&v, out->rank, out->sizes);
    walk_add(&v, out->strides);
    walk_add(&v, work_ok(&w) ? mask->strides : out->strides);
    num fill = num_of_scalar(out->dtype, arg_scalar(k->args, 3));
    for (; work_ok(&w) && v.left; walk_next(&v))
        if (!((const uint8_t *)tensor_ptr(mask))[v.at[1]])
            dtype_store(out->dtype, (char *)tensor_ptr(out) + v.at[0] * size, fill);
    return work_end(&w);
}

bp_status kernel_masked_index_put(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *out = k->out[0];
    index_plan p;
    tables t;
    tensor_copy(c, out, arg_tensor(k->args, 0));
    read_plan(&w, k, 2, &p);
    bp_tensor *mask = work_ok(&w) ? work_expand(&w, arg_tensor(k->args, 1), p.rank, p.sizes) : NULL;
    bp_tensor *values = work_ok(&w) ? work_expand(&w, arg_tensor(k->args, 3), p.rank, p.sizes) : NULL;
    bp_tensor *copy = work_ok(&w) ? work_like(&w, values) : NULL;
    if (!copy || !tensor_nelem(out))
        return work_end(&w);
    walk v;
    walk_start(&v, p.rank, p.sizes);
    walk_add(&v, copy->strides);
    walk_add(&v, mask->strides);
    tensor_copy(c, copy, values);
    size_t size = dtype_size(out->dtype);
    for (; v.left; walk_next(&v))
        if (!((const uint8_t *)tensor_ptr(mask))[v.at[1]])
            memset((char *)tensor_ptr(copy) + (size_t)v.at[0] * size, 0, size);
    fill_tables(&w, k->op, out, &p, copy->strides, BOUNDS_CLAMP, &t);
    if (work_ok(&w))
        accumulate(&t, out, copy);
    return work_end(&w);
}
