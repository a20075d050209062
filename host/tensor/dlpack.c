/* DLPack 1.x: tensors from and to other libraries without a copy, in host memory.
 *
 * The structures are those of DLPack's ABI, under our names: strides are in elements and may be NULL in what comes in
 * (contiguous; from 1.2 on it may not), the deleter may be called from any thread. */
#define BP_WITHOUT_OPERATORS
#include "host/tensor/tensor.h"
#include "sdk/base/checked.h"
#include <backplane/backplane.h>
#include <stdlib.h>
#include <string.h>

enum { DLPACK_MAJOR = 1, DLPACK_MINOR = 0, DLPACK_READ_ONLY = 1, DLPACK_CPU = 1 };

typedef struct { uint8_t code, bits; uint16_t lanes; } dlpack_type;
typedef struct {
    void *data;
    struct { int32_t kind, index; } device;
    int32_t rank;
    dlpack_type type;
    int64_t *sizes, *strides;
    uint64_t byte_offset;
} dlpack_tensor;
typedef struct dlpack_managed {
    struct { uint32_t major, minor; } version;
    void *arg;
    void (*deleter)(struct dlpack_managed *self);
    uint64_t flags;
    dlpack_tensor t;
} dlpack_managed;

/* Our types as DLPack's code and bits. */
static const struct { bp_dtype dtype; uint8_t code, bits; } types[] = {
    {BP_BOOL, 6, 8}, {BP_U8, 1, 8},    {BP_I8, 0, 8},   {BP_I16, 0, 16}, {BP_I32, 0, 32}, {BP_I64, 0, 64},
    {BP_F16, 2, 16}, {BP_BF16, 4, 16}, {BP_F32, 2, 32}, {BP_F64, 2, 64}, {BP_C64, 5, 64}, {BP_C128, 5, 128},
};
enum { TYPES = sizeof types / sizeof *types };

/* -- in ------------------------------------------------------------------------------------------------------------ */

static bp_dtype type_in(bp_ctx *c, dlpack_type t)
{
    for (uint32_t i = 0; i < TYPES; i++)
        if (types[i].code == t.code && types[i].bits == t.bits && t.lanes == 1)
            return types[i].dtype;
    ctx_fail(c, BP_UNIMPLEMENTED, "a DLPack tensor of type code %u, %u bits, %u lanes: no dtype of ours is that",
             t.code, t.bits, t.lanes);
    return BP_DTYPE_UNSET;
}

static bp_status check_in(bp_ctx *c, const dlpack_managed *m)
{
    if (!m)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "bp_from_dlpack: the DLPack tensor is NULL");
    if (m->version.major != DLPACK_MAJOR)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "a DLPack tensor of version %u.%u: version %d.x is expected",
                        m->version.major, m->version.minor, DLPACK_MAJOR);
    if (m->t.device.kind != DLPACK_CPU)
        return ctx_fail(c, BP_UNIMPLEMENTED, "a DLPack tensor on a device of kind %d: host memory, %d, is expected",
                        m->t.device.kind, DLPACK_CPU);
    if (m->t.rank < 0 || m->t.rank > TENSOR_MAX_RANK || (m->t.rank && !m->t.sizes))
        return ctx_fail(c, BP_INVALID_ARGUMENT, "a DLPack tensor of rank %d%s: 0 to %d with sizes are expected",
                        m->t.rank, m->t.rank > 0 && !m->t.sizes ? " without sizes" : "", TENSOR_MAX_RANK);
    return BP_OK;
}

/* Sizes and strides of ours; elements from the first to behind the last in `span`. */
static bp_status layout_in(bp_ctx *c, const dlpack_tensor *t, tensor_meta *m, int64_t *span)
{
    bool empty = false, over = false;
    *span = 1;
    for (int32_t d = 0; d < t->rank; d++) {
        m->sizes[d] = dim_const(t->sizes[d]);
        if (t->sizes[d] < 0)
            return ctx_fail(c, BP_INVALID_ARGUMENT, "a DLPack tensor whose size %d is %lld", d, (long long)t->sizes[d]);
        empty |= t->sizes[d] == 0;
    }
    layout_contiguous(c, m->rank, m->sizes, m->strides);
    for (int32_t d = 0; d < t->rank && ctx_ok(c); d++) {
        int64_t stride = t->strides ? t->strides[d] : m->strides[d].value, last;
        m->strides[d] = dim_const(stride);
        if (stride < 0)
            return ctx_fail(c, BP_UNIMPLEMENTED, "a DLPack tensor whose stride %d is %lld: copy it to be contiguous",
                            d, (long long)stride);
        if (!empty)
            over |= !checked_mul(t->sizes[d] - 1, stride, &last) || !checked_add(*span, last, span);
    }
    *span = empty ? 0 : *span;
    over |= *span > INT64_MAX / (int64_t)sizeof(bp_complex128);
    return over ? ctx_fail(c, BP_INVALID_ARGUMENT, "a DLPack tensor whose sizes overflow") : c->diag.code;
}

static void release_in(void *arg, void *data)
{
    dlpack_managed *m = arg;
    (void)data;
    if (m->deleter)
        m->deleter(m);
}

/* Memory that may not be written, or lies where our loads may not, is copied. */
static bp_tensor *copy_in(bp_ctx *c, const tensor_meta *m, const char *data, size_t nbytes)
{
    bp_tensor *t = tensor_new(c, m), *from = NULL;
    char *aligned = malloc(nbytes ? nbytes : 1);
    if (t && !aligned)
        ctx_nomem(c);
    if (t && aligned) {
        if (nbytes)
            memcpy(aligned, data, nbytes);
        from = tensor_wrap(c, m, aligned, nbytes, tensor_release_nothing, NULL);
    }
    bool ok = from && tensor_copy(c, t, from) == BP_OK;
    tensor_unref(from);
    free(aligned);
    if (ok)
        return t;
    tensor_unref(t);
    return NULL;
}

static bool must_copy(const dlpack_managed *in, const char *data, bp_dtype dtype)
{
    size_t part = dtype_is_complex(dtype) ? dtype_size(dtype) / 2 : dtype_size(dtype);
    return in->flags & DLPACK_READ_ONLY || (uintptr_t)data % part;
}

bp_tensor *bp_from_dlpack(bp_ctx *c, void *managed)
{
    dlpack_managed *in = managed;
    bp_dim sizes[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK];
    int64_t span;
    if (!tensor_may_touch_memory(c, NULL) || check_in(c, in) != BP_OK)
        return NULL;
    tensor_meta m = {type_in(c, in->t.type), {BP_CPU, 0}, (uint32_t)in->t.rank, sizes, strides, dim_const(0)};
    if (!ctx_ok(c) || layout_in(c, &in->t, &m, &span) != BP_OK)
        return NULL;
    if (span && !in->t.data)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "a DLPack tensor of %lld elements without data", (long long)span), NULL;
    size_t nbytes = (size_t)span * dtype_size(m.dtype);
    char *data = span ? (char *)in->t.data + in->t.byte_offset : NULL;
    bool copy = must_copy(in, data, m.dtype);
    bp_tensor *t = scope_own(c, copy ? copy_in(c, &m, data, nbytes)
                                     : tensor_wrap(c, &m, data, nbytes, tensor_release_nothing, NULL));
    if (t && copy)
        release_in(in, NULL);
    else if (t) {
        t->store->release = release_in;
        t->store->release_arg = in;
    }
    return t;
}

/* -- out ----------------------------------------------------------------------------------------------------------- */

static void delete_out(dlpack_managed *m)
{
    storage_unref(m->arg);
    free(m);
}

static dlpack_type type_out(bp_dtype dtype)
{
    dlpack_type t = {0, 0, 1};
    for (uint32_t i = 0; i < TYPES; i++)
        if (types[i].dtype == dtype) {
            t.code = types[i].code;
            t.bits = types[i].bits;
        }
    return t;
}

void *bp_to_dlpack(bp_ctx *c, bp_tensor *t)
{
    if (!ctx_ok(c))
        return NULL;
    if (!t)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "bp_to_dlpack: the tensor is NULL"), NULL;
    if (!tensor_may_touch_memory(c, t))
        return NULL;
    if (t->device_kind != BP_CPU)
        return ctx_fail(c, BP_UNIMPLEMENTED, "bp_to_dlpack: a tensor in host memory is expected"), NULL;
    if (t->flags & TENSOR_REQUIRES_GRAD)
        return ctx_fail(c, BP_FAILED_PRECONDITION, "bp_to_dlpack: the tensor requires grad, which DLPack cannot say"),
               NULL;
    int64_t *dims;
    dlpack_managed *m = calloc(1, sizeof *m + 2 * (size_t)t->rank * sizeof *dims);
    if (!m)
        return ctx_nomem(c), NULL;
    dims = (int64_t *)(m + 1);
    for (uint32_t d = 0; d < t->rank; d++) {
        dims[d] = tensor_dim(t, d);
        dims[t->rank + d] = tensor_step(t, d);
    }
    m->version.major = DLPACK_MAJOR;
    m->version.minor = DLPACK_MINOR;
    m->arg = storage_ref(t->store);
    m->deleter = delete_out;
    m->t = (dlpack_tensor){t->store->data, {DLPACK_CPU, 0}, t->rank, type_out(t->dtype), dims, dims + t->rank,
                           (uint64_t)t->offset.value * dtype_size(t->dtype)};
    return m;
}
