/* Storages: counted memory of a device, or a fake that has a size only. */
#include "host/tensor/alloc.h"
#include "host/tensor/tensor.h"
#include <stdlib.h>
#include <string.h>

storage *storage_new(bp_ctx *c, bp_device device, size_t nbytes, bool fake)
{
    if (!fake && device.kind != BP_CPU) {
        ctx_fail(c, BP_UNIMPLEMENTED, "no memory can be had on device kind %d: only the CPU is supported",
                 (int)device.kind);
        return NULL;
    }
    storage *s = malloc(sizeof *s);
    if (!s) {
        ctx_nomem(c);
        return NULL;
    }
    *s = (storage){.device = device, .nbytes = nbytes, .is_fake = fake};
    if (fake)
        s->bytes = dim_const((int64_t)nbytes);
    atomic_init(&s->refs, 1);
    if (!fake && nbytes && !(s->data = alloc_get(nbytes))) {
        ctx_fail(c, BP_RESOURCE_EXHAUSTED, "out of memory: a tensor needs %zu bytes", nbytes);
        free(s);
        return NULL;
    }
    return s;
}

storage *storage_ref(storage *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void storage_unref(storage *s)
{
    if (!s || !refs_drop(&s->refs))
        return;
    if (s->release)
        s->release(s->release_arg, s->data);
    else
        alloc_put(s->data, s->nbytes);
    free(s);
}

bp_status storage_grow(bp_ctx *c, storage *s, size_t nbytes)
{
    if (nbytes <= s->nbytes)
        return BP_OK;
    if (s->is_fake) {
        s->nbytes = nbytes;
        s->bytes = dim_const((int64_t)nbytes);
        return BP_OK;
    }
    if (s->release)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "a storage of %zu bytes over foreign memory cannot grow to %zu bytes",
                        s->nbytes, nbytes);
    void *data = alloc_get(nbytes);
    if (!data)
        return ctx_fail(c, BP_RESOURCE_EXHAUSTED, "out of memory: a tensor needs %zu bytes", nbytes);
    if (s->nbytes)
        memcpy(data, s->data, s->nbytes);
    alloc_put(s->data, s->nbytes);
    s->data = data;
    s->nbytes = nbytes;
    return BP_OK;
}
