/* The public functions of tensors, scopes and sizes. */
#define BP_WITHOUT_OPERATORS
#include "host/tensor/tensor.h"
#include <backplane/backplane.h>
#include <inttypes.h>
#include <string.h>

/* -- scopes -------------------------------------------------------------------------------------------------------- */

void bp_scope_begin(bp_ctx *c)
{
    scope_push(c);
}

void bp_scope_end(bp_ctx *c)
{
    scope_pop(c);
}

bp_tensor *bp_keep(bp_ctx *c, bp_tensor *t)
{
    return scope_keep(c, t);
}

void bp_tensor_unref(bp_tensor *t)
{
    tensor_unref(t);
}

/* -- host memory --------------------------------------------------------------------------------------------------- */

bool tensor_may_touch_memory(bp_ctx *c, const bp_tensor *t)
{
    if (!ctx_ok(c))
        return false;
    if (t && t->flags & TENSOR_POISONED) {
        ctx_fail(c, BP_FAILED_PRECONDITION, "reading the data of a tensor whose capture has ended");
        diag_hint(&c->diag, "return it, or copy_ it into an argument");
    } else if (t && tensor_is_fake(t)) {
        ctx_fail(c, BP_FAILED_PRECONDITION, "reading the data of a fake tensor");
        diag_hint(&c->diag, "ask for a value with bp_is_true, bp_item_int or bp_item_float, or return the tensor");
    } else if (c->capturing) {
        ctx_fail(c, BP_FAILED_PRECONDITION, "%s while a function is captured",
                 t ? "raw access to a tensor's data" : "making a tensor from host memory");
        diag_hint(&c->diag, "pass the tensor as an argument, read it with bp_attr, or bake it in with bp_constant");
    }
    if (!ctx_ok(c) && c->site_file)
        diag_while(&c->diag, "touching host memory (%s:%d)", c->site_file, c->site_line);
    return ctx_ok(c);
}

static bool is_real_tensor(bp_ctx *c, const bp_tensor *t)
{
    if (ctx_ok(c) && !t)
        ctx_fail(c, BP_INVALID_ARGUMENT, "the tensor is NULL");
    return ctx_ok(c) && tensor_may_touch_memory(c, t);
}

bp_tensor *(bp_tensor_from)(bp_ctx *c, bp_dtype dtype, uint32_t rank, const int64_t *sizes, const void *data)
{
    if (!tensor_may_touch_memory(c, NULL))
        return NULL;
    if (rank && !sizes) {
        ctx_fail(c, BP_INVALID_ARGUMENT, "rank %u without sizes", rank);
        return NULL;
    }
    bp_tensor *t = tensor_contiguous_new(c, dtype, rank, sizes);
    if (!t)
        return NULL;
    size_t nbytes = tensor_span_bytes(t);
    if (nbytes && data)
        memcpy(tensor_ptr(t), data, nbytes);
    else if (nbytes)
        memset(tensor_ptr(t), 0, nbytes);
    return scope_own(c, t);
}

bp_tensor *bp_tensor_from_at(bp_ctx *c, bp_dtype dtype, uint32_t rank, const int64_t *sizes, const void *data,
                             const char *file, int32_t line)
{
    c->site_file = file;
    c->site_line = line;
    bp_tensor *r = (bp_tensor_from)(c, dtype, rank, sizes, data);
    c->site_file = NULL;
    return r;
}

bp_status (bp_tensor_read)(bp_ctx *c, const bp_tensor *t, void *data, size_t nbytes)
{
    if (!is_real_tensor(c, t))
        return c->diag.code;
    size_t want = (size_t)tensor_nelem(t) * dtype_size(t->dtype);
    if (nbytes != want) {
        char text[256];
        return ctx_fail(c, BP_INVALID_ARGUMENT, "%zu bytes of memory for %s, which has %zu", nbytes,
                        tensor_describe(t, text, sizeof text), want);
    }
    if (!want)
        return BP_OK;
    tensor_meta m;
    bp_dim strides[TENSOR_MAX_RANK];
    tensor_get_meta(t, &m);
    layout_contiguous(c, m.rank, m.sizes, strides);
    m.strides = strides;
    m.offset = dim_const(0);
    bp_tensor *to = tensor_wrap(c, &m, data, nbytes, tensor_release_nothing, NULL);
    bp_status s = to ? tensor_copy(c, to, t) : c->diag.code;
    tensor_unref(to);
    return s;
}

bp_status bp_tensor_read_at(bp_ctx *c, const bp_tensor *t, void *data, size_t nbytes, const char *file, int32_t line)
{
    c->site_file = file;
    c->site_line = line;
    bp_status r = (bp_tensor_read)(c, t, data, nbytes);
    c->site_file = NULL;
    return r;
}

void *(bp_tensor_data)(bp_ctx *c, bp_tensor *t)
{
    return is_real_tensor(c, t) ? tensor_ptr(t) : NULL;
}

void *bp_tensor_data_at(bp_ctx *c, bp_tensor *t, const char *file, int32_t line)
{
    c->site_file = file;
    c->site_line = line;
    void *r = (bp_tensor_data)(c, t);
    c->site_file = NULL;
    return r;
}

/* -- facts --------------------------------------------------------------------------------------------------------- */

bp_dtype bp_tensor_dtype(const bp_tensor *t)
{
    return t ? t->dtype : BP_DTYPE_UNSET;
}

bp_device bp_tensor_device(const bp_tensor *t)
{
    return t ? tensor_device(t) : (bp_device){0, 0};
}

uint32_t bp_tensor_rank(const bp_tensor *t)
{
    return t ? t->rank : 0;
}

int64_t bp_tensor_size(const bp_tensor *t, uint32_t d)
{
    return t && d < t->rank ? tensor_dim(t, d) : 0;
}

int64_t bp_tensor_stride(const bp_tensor *t, uint32_t d)
{
    return t && d < t->rank ? tensor_step(t, d) : 0;
}

void tensor_note_asked(const bp_tensor *t)
{
    unsigned input = FAKE_OF_INPUT;
    atomic_compare_exchange_strong(&t->store->fake_role, &input, FAKE_OF_INPUT_ASKED);
}

int64_t bp_tensor_offset(const bp_tensor *t)
{
    if (!t)
        return 0;
    tensor_note_asked(t);
    return t->offset.value;
}

int64_t bp_tensor_numel(const bp_tensor *t)
{
    return t ? tensor_nelem(t) : 0;
}

int bp_tensor_requires_grad(const bp_tensor *t)
{
    return t && tensor_requires_grad(t);
}

bp_status bp_tensor_set_requires_grad(bp_ctx *c, bp_tensor *t, int on)
{
    if (!ctx_ok(c))
        return c->diag.code;
    if (!t)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "the tensor is NULL");
    if (c->capturing) /* no node says so: the call is answered eagerly */
        return ctx_fail(c, BP_UNIMPLEMENTED, "requires_grad is set while a function is captured");
    if (on && !dtype_is_float(t->dtype) && !dtype_is_complex(t->dtype))
        return ctx_fail(c, BP_INVALID_ARGUMENT,
                        "a tensor of %s cannot require gradients: floating-point or complex is needed",
                        dtype_get(t->dtype)->torch);
    if (!on && !(t->flags & TENSOR_IS_LEAF))
        return ctx_fail(c, BP_INVALID_ARGUMENT,
                        "requires_grad of a tensor that an operator made cannot be switched off");
    t->flags = (uint8_t)(on ? t->flags | TENSOR_REQUIRES_GRAD : t->flags & ~TENSOR_REQUIRES_GRAD);
    return BP_OK;
}

int bp_tensor_same_storage(const bp_tensor *a, const bp_tensor *b)
{
    if (!a || !b)
        return 0;
    if (a != b && atomic_load(&b->store->fake_role) != FAKE_OWN)
        tensor_note_asked(a);
    return a->store == b->store;
}
