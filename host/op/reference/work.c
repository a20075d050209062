/* Working copies of operands (work.h). */
#include "host/op/reference/work.h"
#include "host/op/reference/number.h"
#include "sdk/base/checked.h"
#include <stdlib.h>
#include <string.h>

struct work_entry {
    work_entry *before;
    bp_tensor *t, *result; /* a reference; what it is copied to in the end, or NULL */
    void *memory;
};

static work_entry *add_entry(work *w)
{
    work_entry *e = arena_alloc(&w->c->scratch, sizeof *e);
    if (!e) {
        diag_nomem(&w->c->diag);
        return NULL;
    }
    e->before = w->last;
    w->last = e;
    return e;
}

/* Takes over the reference t; on failure gives it up. */
static bp_tensor *keep(work *w, bp_tensor *t, bp_tensor *result)
{
    work_entry *e = t ? add_entry(w) : NULL;
    if (!e) {
        tensor_unref(t);
        return NULL;
    }
    e->t = t;
    e->result = result;
    return t;
}

static bp_tensor *like(work *w, const bp_tensor *t, bp_dtype dtype, bp_tensor *result)
{
    int64_t sizes[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < t->rank; d++)
        sizes[d] = tensor_dim(t, d);
    return keep(w, tensor_contiguous_new(w->c, dtype, t->rank, sizes), result);
}

bp_tensor *work_in(work *w, bp_tensor *t, bp_dtype dtype)
{
    if (!t || !work_ok(w))
        return NULL;
    if (dtype == BP_DTYPE_UNSET || dtype == t->dtype)
        return keep(w, tensor_to_contiguous(w->c, t), NULL);
    bp_tensor *copy = like(w, t, dtype, NULL);
    return copy && tensor_copy(w->c, copy, t) == BP_OK ? copy : NULL;
}

bp_tensor *work_out(work *w, bp_tensor *t, bp_dtype dtype)
{
    if (!t || !work_ok(w))
        return NULL;
    if ((dtype == BP_DTYPE_UNSET || dtype == t->dtype) && tensor_is_contiguous(t))
        return t;
    return like(w, t, dtype == BP_DTYPE_UNSET ? t->dtype : dtype, t);
}

bp_tensor *work_out_copy(work *w, bp_tensor *t, bp_tensor *from)
{
    bp_tensor *out = work_out(w, t, BP_DTYPE_UNSET);
    return out && (out == from || tensor_copy(w->c, out, from) == BP_OK) ? out : NULL;
}

bp_tensor *work_expand(work *w, const bp_tensor *t, uint32_t rank, const bp_dim *sizes)
{
    if (!t || !work_ok(w))
        return NULL;
    bp_dim strides[TENSOR_MAX_RANK], copy[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++) {
        uint32_t skip = rank - t->rank;
        bool same = d >= skip && tensor_dim(t, d - skip) == sizes[d].value;
        strides[d] = same ? t->strides[d - skip] : dim_const(0);
        copy[d] = sizes[d];
    }
    tensor_meta m = {t->dtype, tensor_device(t), rank, copy, strides, t->offset};
    return work_view(w, t, &m);
}

bp_tensor *work_own(work *w, bp_tensor *t) { return keep(w, t, NULL); }

bp_tensor *work_view(work *w, const bp_tensor *t, const tensor_meta *m)
{
    union {
        const bp_tensor *read;
        bp_tensor *share;
    } base = {t}; /* a view counts a reference of its storage */
    return work_ok(w) ? keep(w, tensor_view(w->c, base.share, m), NULL) : NULL;
}

bp_tensor *work_flat(work *w, bp_tensor *t)
{
    bp_tensor *whole = work_in(w, t, BP_DTYPE_UNSET);
    if (!whole)
        return NULL;
    bp_dim n = dim_const(tensor_nelem(whole)), one = dim_const(1);
    tensor_meta m = {whole->dtype, tensor_device(whole), 1, &n, &one, whole->offset};
    return work_view(w, whole, &m);
}

bp_tensor *work_new(work *w, bp_dtype dtype, uint32_t rank, const int64_t *sizes)
{
    return work_ok(w) ? keep(w, tensor_contiguous_new(w->c, dtype, rank, sizes), NULL) : NULL;
}

bp_tensor *work_like(work *w, const bp_tensor *t) { return work_ok(w) ? like(w, t, t->dtype, NULL) : NULL; }

bool work_fits(const bp_tensor *t, uint32_t rank, const bp_dim *sizes)
{
    bool fits = t->rank <= rank;
    for (uint32_t d = 0; fits && d < t->rank; d++)
        fits = tensor_dim(t, d) == 1 || tensor_dim(t, d) == sizes[rank - t->rank + d].value;
    return fits;
}

void *work_alloc(work *w, int64_t count, size_t size)
{
    size_t bytes;
    work_entry *e = work_ok(w) ? add_entry(w) : NULL;
    if (!e)
        return NULL;
    e->memory = checked_size_mul((size_t)count, size, &bytes) ? malloc(bytes + 1) : NULL;
    if (!e->memory)
        diag_nomem(&w->c->diag);
    return e->memory;
}

void work_clear(bp_tensor *t)
{
    int64_t n = tensor_nelem(t);
    if (n)
        memset(tensor_ptr(t), 0, (size_t)n * dtype_size(t->dtype));
}

bp_status work_end(work *w)
{
    for (work_entry *e = w->last; e; e = e->before) {
        if (e->result && work_ok(w))
            tensor_copy(w->c, e->result, e->t);
        tensor_unref(e->t);
        free(e->memory);
    }
    w->last = NULL;
    return w->c->diag.code;
}

work_split work_around(const bp_tensor *t, int64_t dim)
{
    work_split s = {1, 1, 1};
    for (uint32_t d = 0; d < t->rank; d++) {
        int64_t n = tensor_dim(t, d);
        *(d < dim ? &s.outer : d == dim ? &s.n : &s.inner) *= n;
    }
    return s;
}

uint32_t work_dim(bp_ctx *c, const bp_value *args, uint32_t i, const bp_tensor *t)
{
    int64_t d = arg_int(c, args, i);
    return (uint32_t)(d < 0 ? d + (t->rank ? t->rank : 1) : d);
}

bp_status work_number(bp_ctx *c, const op_row *op, bp_dtype d, bp_scalar s, num *out)
{
    *out = num_of_scalar(d, s);
    if (num_fits(d, s))
        return BP_OK;
    if (s.kind == BP_SCALAR_COMPLEX)
        return op_fail(c, op, BP_INVALID_ARGUMENT, "a complex number does not fit %s", dtype_get(d)->torch);
    return op_fail(c, op, BP_INVALID_ARGUMENT, "the value %g does not fit %s", scalar_float(s), dtype_get(d)->torch);
}

num work_item(const bp_tensor *t, bp_dtype d)
{
    double element[2]; /* room and alignment for any type */
    dtype_convert(d, element, 1, t->dtype, tensor_ptr(t), 1, 1);
    return dtype_load(d, element);
}
