/* Tensors: making, counting, facts. Sizes and strides of a tensor lie next to each other, and every bp_dim is whole, so
 * that a comparison of both is a comparison of bytes. */
#include "host/tensor/tensor.h"
#include "host/sym/env.h"
#include "sdk/base/str.h"
#include "sdk/base/checked.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- checking metadata --------------------------------------------------------------------------------------------- */

/* One past the last element that m reaches, from the start of its storage; 0 when it has no element. False: that, or
 * the number of elements (which expanded sizes make larger), overflows. */
static bool reach(const tensor_meta *m, int64_t *out)
{
    int64_t last = m->offset.value, step, nelem = 1;
    for (uint32_t d = 0; d < m->rank; d++)
        if (m->sizes[d].value == 0)
            return *out = 0, true;
    for (uint32_t d = 0; d < m->rank; d++) {
        if (!checked_mul(m->sizes[d].value - 1, m->strides[d].value, &step) || !checked_add(last, step, &last))
            return false;
        if (!checked_mul(nelem, m->sizes[d].value, &nelem))
            return false;
    }
    return checked_add(last, 1, out);
}

/* Whether strides are written as the products of the sizes behind them. */
static bool are_products(bp_ctx *c, uint32_t rank, const bp_dim *sizes, const bp_dim *strides)
{
    bool same = rank && dim_same_as(strides[rank - 1], 1);
    for (uint32_t d = rank; same && --d > 0;)
        same = dim_same(strides[d - 1], dim_mul(c, sizes[d], strides[d]));
    return same;
}

/* Of symbols; not of one that may be 0. */
static bp_dim reach_of(bp_ctx *c, uint32_t rank, const bp_dim *sizes, const bp_dim *strides, bp_dim offset)
{
    if (dim_same_as(offset, 0) && are_products(c, rank, sizes, strides)) /* the sum below, in fewer steps */
        return dim_mul(c, sizes[0], strides[0]);
    bp_dim end = dim_add(c, offset, dim_const(1));
    for (uint32_t d = 0; d < rank; d++)
        end = dim_add(c, end, dim_mul(c, dim_sub(c, sizes[d], dim_const(1)), strides[d]));
    return end;
}

/* A symbol is not looked at: whoever computed it required what a size must be. */
static bool is_negative(bp_dim d) { return dim_is_const(d) && d.value < 0; }

static bp_status check_meta(bp_ctx *c, const tensor_meta *m)
{
    if (m->dtype <= 0 || m->dtype >= BP_DTYPE_END)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "%d is no dtype", (int)m->dtype);
    if (m->rank > TENSOR_MAX_RANK)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "rank %u: at most %d is supported", m->rank, TENSOR_MAX_RANK);
    if (m->device.kind <= 0 || m->device.kind > UINT8_MAX || m->device.index < 0 || m->device.index > UINT8_MAX)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "there is no device of kind %d and index %d", (int)m->device.kind,
                        (int)m->device.index);
    for (uint32_t d = 0; d < m->rank; d++) {
        if (is_negative(m->sizes[d]))
            return ctx_fail(c, BP_INVALID_ARGUMENT, "size %" PRId64 " at index %u is negative", m->sizes[d].value, d);
        if (is_negative(m->strides[d]))
            return ctx_fail(c, BP_INVALID_ARGUMENT, "stride %" PRId64 " at index %u is negative", m->strides[d].value,
                            d);
    }
    if (is_negative(m->offset))
        return ctx_fail(c, BP_INVALID_ARGUMENT, "storage offset %" PRId64 " is negative", m->offset.value);
    return BP_OK;
}

/* Bytes of storage that m needs; of symbolic sizes an expression. */
static bp_status need_bytes(bp_ctx *c, const tensor_meta *m, bp_dim *out)
{
    int64_t n, nbytes;
    TRY(check_meta(c, m));
    if (!meta_is_constant(m)) {
        *out = dim_mul(c, reach_of(c, m->rank, m->sizes, m->strides, m->offset),
                       dim_const((int64_t)dtype_size(m->dtype)));
        return c->diag.code;
    }
    if (!reach(m, &n) || !checked_mul(n, (int64_t)dtype_size(m->dtype), &nbytes))
        return ctx_fail(c, BP_INVALID_ARGUMENT, "a tensor of %s is too large: its bytes do not fit 64 bits",
                        dtype_get(m->dtype)->torch);
    *out = dim_const(nbytes);
    return BP_OK;
}

/* -- making -------------------------------------------------------------------------------------------------------- */

/* All but the room for sizes and strides, of which only what is used is ever read: a call makes its outputs anew, and
 * an allocator hands small blocks out faster when it need not clear them. */
static void clear(bp_tensor *t)
{
    const size_t dims = offsetof(bp_tensor, inline_dims), rest = dims + sizeof t->inline_dims;
    memset(t, 0, dims);
    memset((char *)t + rest, 0, sizeof *t - rest);
}

/* A tensor over s, whose reference it takes also on failure. */
static bp_tensor *make(bp_ctx *c, const tensor_meta *m, storage *s)
{
    size_t extra = m->rank > TENSOR_INLINE_RANK ? 2 * (size_t)m->rank * sizeof(bp_dim) : 0;
    bp_tensor *t = malloc(sizeof *t + extra);
    if (!t) {
        storage_unref(s);
        ctx_nomem(c);
        return NULL;
    }
    clear(t);
    atomic_init(&t->refs, 1);
    t->dtype = (uint8_t)m->dtype;
    t->device_kind = (uint8_t)m->device.kind;
    t->device_index = (uint8_t)m->device.index;
    t->rank = (uint8_t)m->rank;
    t->flags = TENSOR_IS_LEAF;
    t->store = s;
    t->sizes = extra ? (bp_dim *)(t + 1) : t->inline_dims;
    t->strides = t->sizes + m->rank;
    t->offset = m->offset;
    if (m->rank) {
        memcpy(t->sizes, m->sizes, m->rank * sizeof(bp_dim));
        memcpy(t->strides, m->strides, m->rank * sizeof(bp_dim));
    }
    t->file = c->site_file;
    t->line = c->site_line;
    return t;
}

static bool is_data(bp_dim d)
{
    return d.sym && sym_current() && sym_is_unbacked(sym_current(), d);
}

/* Gives a fake storage its bytes. */
static void set_fake_bytes(storage *s, bp_dim bytes)
{
    s->bytes = bytes;
    s->nbytes = is_data(bytes) || dim_hint(bytes) < 0 ? 0 : (size_t)dim_hint(bytes);
}

bp_tensor *tensor_new(bp_ctx *c, const tensor_meta *m)
{
    bp_dim need;
    if (need_bytes(c, m, &need) != BP_OK)
        return NULL;
    if (!dim_is_const(need)) {
        ctx_fail(c, BP_INTERNAL, "a tensor with data of symbolic sizes");
        return NULL;
    }
    storage *s = storage_new(c, m->device, (size_t)need.value, false);
    return s ? make(c, m, s) : NULL;
}

bp_tensor *tensor_new_fake(bp_ctx *c, const tensor_meta *m)
{
    bp_dim need;
    if (need_bytes(c, m, &need) != BP_OK)
        return NULL;
    storage *s = storage_new(c, m->device, 0, true);
    if (!s)
        return NULL;
    set_fake_bytes(s, need);
    return make(c, m, s);
}

/* Symbolic views lie inside: their rules see to it. What they reach is no expression either: an input's offset is in
 * it, which no guard holds, and equal captures have equal expressions. */
bp_tensor *tensor_view(bp_ctx *c, bp_tensor *base, const tensor_meta *m)
{
    bp_dim need = {0};
    bool fixed = meta_is_constant(m) && dim_is_const(base->store->bytes);
    if (fixed ? need_bytes(c, m, &need) != BP_OK : check_meta(c, m) != BP_OK)
        return NULL;
    size_t nbytes = (size_t)need.value;
    if (nbytes > base->store->nbytes) {
        ctx_fail(c, BP_INVALID_ARGUMENT,
                 "a view with storage offset %" PRId64 " needs %zu bytes of a storage of %zu bytes", m->offset.value,
                 nbytes, base->store->nbytes);
        return NULL;
    }
    return make(c, m, storage_ref(base->store));
}

bp_tensor *tensor_contiguous_new(bp_ctx *c, bp_dtype dtype, uint32_t rank, const int64_t *sizes)
{
    bp_dim dims[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK];
    if (rank > TENSOR_MAX_RANK) {
        ctx_fail(c, BP_INVALID_ARGUMENT, "rank %u: at most %d is supported", rank, TENSOR_MAX_RANK);
        return NULL;
    }
    for (uint32_t d = 0; d < rank; d++) {
        dims[d] = dim_const(sizes[d]);
        if (sizes[d] < 0) {
            ctx_fail(c, BP_INVALID_ARGUMENT, "size %" PRId64 " at index %u is negative", sizes[d], d);
            return NULL;
        }
    }
    layout_contiguous(c, rank, dims, strides);
    if (!ctx_ok(c))
        return NULL;
    return tensor_new(c, &(tensor_meta){dtype, {BP_CPU, 0}, rank, dims, strides, {0}});
}

bp_tensor *tensor_wrap(bp_ctx *c, const tensor_meta *m, void *data, size_t nbytes,
                       void (*release)(void *arg, void *data), void *arg)
{
    bp_dim need;
    if (need_bytes(c, m, &need) != BP_OK)
        return NULL;
    if (!dim_is_const(need) || (size_t)need.value > nbytes) {
        ctx_fail(c, BP_INVALID_ARGUMENT, "a tensor of %" PRId64 " bytes does not fit memory of %zu bytes",
                 dim_hint(need), nbytes);
        return NULL;
    }
    storage *s = storage_new(c, m->device, 0, true);
    if (!s)
        return NULL;
    s->is_fake = 0;
    s->data = data;
    s->nbytes = nbytes;
    s->release = tensor_release_nothing;
    bp_tensor *t = make(c, m, s);
    if (t) {
        s->release = release;
        s->release_arg = arg;
    }
    return t;
}

void tensor_release_nothing(void *arg, void *data)
{
    (void)arg;
    (void)data;
}

bp_status tensor_set_layout(bp_ctx *c, bp_tensor *t, const tensor_meta *m)
{
    bp_dim need;
    tensor_meta own = *m;
    own.dtype = t->dtype;
    own.device = tensor_device(t);
    TRY(need_bytes(c, &own, &need));
    uint32_t room = t->sizes == t->inline_dims ? TENSOR_INLINE_RANK : t->rank;
    if (m->rank > room)
        return ctx_fail(c, BP_UNIMPLEMENTED, "a tensor of rank %u cannot get rank %u in place", t->rank, m->rank);
    if (dim_is_const(need) && dim_is_const(t->store->bytes))
        TRY(storage_grow(c, t->store, (size_t)need.value));
    else
        set_fake_bytes(t->store, dim_max(c, t->store->bytes, need));
    bp_dim dims[2 * TENSOR_MAX_RANK]; /* m may lie in t's own arrays */
    for (uint32_t d = 0; d < m->rank; d++) {
        dims[d] = m->sizes[d];
        dims[m->rank + d] = m->strides[d];
    }
    if (m->rank != t->rank) { /* marks are of dimensions that are no more */
        free(t->marks);
        t->marks = NULL;
        t->is_marked = false;
    }
    t->rank = (uint8_t)m->rank;
    t->strides = t->sizes + m->rank;
    t->offset = m->offset;
    memcpy(t->sizes, dims, 2 * m->rank * sizeof *dims);
    return BP_OK;
}

bp_tensor *tensor_ref(bp_tensor *t)
{
    atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

void tensor_unref(bp_tensor *t)
{
    if (!t || !refs_drop(&t->refs))
        return;
    scope_forget(t);
    if (t->grad_destroy)
        t->grad_destroy(t->grad);
    bp_tensor *base = t->base; /* which has none itself */
    free(t->marks);
    storage_unref(t->store);
    free(t);
    if (base)
        tensor_unref(base);
}

/* -- facts --------------------------------------------------------------------------------------------------------- */

bp_dim tensor_numel(bp_ctx *c, const bp_tensor *t)
{
    return dim_product(c, t->sizes, t->rank);
}

int64_t tensor_nelem(const bp_tensor *t)
{
    uint64_t n = 1; /* it fits, as was checked when the tensor was made; a part of the product need not, if 0 follows */
    for (uint32_t d = 0; d < t->rank; d++)
        n *= (uint64_t)tensor_dim(t, d);
    return (int64_t)n;
}

void tensor_get_meta(const bp_tensor *t, tensor_meta *out)
{
    *out = (tensor_meta){t->dtype, tensor_device(t), t->rank, t->sizes, t->strides, t->offset};
}

void tensor_get_view(const bp_tensor *t, bp_view *out)
{
    uint32_t flags = (t->flags & TENSOR_REQUIRES_GRAD ? BP_VIEW_REQUIRES_GRAD : 0) |
                     (tensor_is_fake(t) ? BP_VIEW_FAKE : 0);
    *out = (bp_view){sizeof *out, t->dtype, t->device_kind, t->device_index, t->rank,
                     flags, t->sizes, t->strides, tensor_ptr(t)};
}

size_t tensor_span_bytes(const bp_tensor *t)
{
    int64_t last = 0;
    for (uint32_t d = 0; d < t->rank; d++) {
        if (tensor_dim(t, d) == 0)
            return 0;
        last += (tensor_dim(t, d) - 1) * tensor_step(t, d);
    }
    return (size_t)(last + 1) * dtype_size(t->dtype);
}

/* Where a tensor's bytes begin, so that ranges can be compared: addresses, or offsets into a fake storage. */
static uintptr_t first_byte(const bp_tensor *t)
{
    return (uintptr_t)t->store->data + (uintptr_t)t->offset.value * dtype_size(t->dtype);
}

static bool is_constant(const bp_tensor *t)
{
    tensor_meta m;
    tensor_get_meta(t, &m);
    return meta_is_constant(&m);
}

/* Of one fake storage. What is not known of data may be. */
static bool symbols_may_overlap(const bp_tensor *a, const bp_tensor *b)
{
    bp_ctx *c = sym_context();
    bp_dim na = dim_const((int64_t)dtype_size(a->dtype)), nb = dim_const((int64_t)dtype_size(b->dtype));
    bp_dim end_a = dim_mul(c, na, reach_of(c, a->rank, a->sizes, a->strides, a->offset));
    bp_dim end_b = dim_mul(c, nb, reach_of(c, b->rank, b->sizes, b->strides, b->offset));
    return dim_decide(DIM_LT, dim_mul(c, na, a->offset), end_b) != DIM_FALSE &&
           dim_decide(DIM_LT, dim_mul(c, nb, b->offset), end_a) != DIM_FALSE;
}

bool tensor_may_overlap(const bp_tensor *a, const bp_tensor *b)
{
    const storage *x = a->store, *y = b->store;
    if (x != y) { /* foreign memory may lie under two storages */
        uintptr_t at_x = (uintptr_t)x->data, at_y = (uintptr_t)y->data;
        if (!at_x || !at_y || at_x >= at_y + y->nbytes || at_y >= at_x + x->nbytes)
            return false;
    }
    bool by_place = atomic_load(&x->fake_role) != FAKE_OWN; /* inputs' offsets are numbers of this call: so are sizes */
    if (!by_place && (!is_constant(a) || !is_constant(b)))
        return symbols_may_overlap(a, b);
    size_t na = tensor_span_bytes(a), nb = tensor_span_bytes(b);
    return na && nb && first_byte(a) < first_byte(b) + nb && first_byte(b) < first_byte(a) + na;
}

bool tensor_overlaps_itself(const bp_tensor *t)
{
    bool expanded = false;
    for (uint32_t d = 0; d < t->rank; d++)
        expanded |= dim_eq_or_false(t->strides[d], dim_const(0)) &&
                    dim_decide(DIM_LT, dim_const(1), t->sizes[d]) == DIM_TRUE;
    for (uint32_t d = 0; d < t->rank && expanded; d++)
        expanded = !dim_eq_or_false(t->sizes[d], dim_const(0));
    return expanded;
}

void tensor_wrote(bp_tensor *t)
{
    atomic_fetch_add_explicit(&t->store->version, 1, memory_order_relaxed);
}

const char *tensor_describe(const bp_tensor *t, char *dst, size_t cap)
{
    buf text = {0};
    buf_printf(&text, "%s[", dtype_get(t->dtype)->brief);
    for (uint32_t d = 0; d < t->rank; d++) {
        buf_puts(&text, d ? ", " : "");
        sym_print(sym_current(), t->sizes[d], false, &text);
    }
    buf_putc(&text, ']');
    snprintf(dst, cap, "%s", buf_text(&text));
    buf_fini(&text);
    return dst;
}
