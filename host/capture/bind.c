/* The values of a call. Look-up is a linear search: a path hands on few values, and the newest are wanted most. */
#include "host/capture/bind.h"
#include <stdlib.h>
#include <string.h>

bp_status bind_init(bindings *b, bp_ctx *c, const bp_value *args, uint32_t nargs)
{
    *b = (bindings){.c = c, .nargs = nargs, .inputs_cap = BIND_INLINE, .values_cap = BIND_INLINE};
    b->inputs = b->inputs_inline;
    b->values = b->values_inline;
    for (uint32_t i = 0; i < nargs; i++)
        TRY(bind_push_input(b, &args[i]));
    return BP_OK;
}

void bind_reset(bindings *b)
{
    while (b->nvalues)
        tensor_unref(b->values[--b->nvalues].t);
    b->ninputs = b->nargs;
}

void bind_fini(bindings *b)
{
    bind_reset(b);
    if (b->inputs != b->inputs_inline)
        free(b->inputs);
    if (b->values != b->values_inline)
        free(b->values);
    b->inputs = NULL;
    b->values = NULL;
    b->ninputs = 0;
}

/* Doubles an array that may still lie inline. NULL: out of memory, the old one is intact. */
static void *grow(void *at, const void *in_place, uint32_t len, uint32_t *cap, size_t size)
{
    void *to = realloc(at == in_place ? NULL : at, 2 * (size_t)*cap * size);
    if (!to)
        return NULL;
    if (at == in_place)
        memcpy(to, at, len * size);
    *cap *= 2;
    return to;
}

bp_status bind_push_input(bindings *b, const bp_value *v)
{
    if (b->ninputs == b->inputs_cap) {
        void *to = grow(b->inputs, b->inputs_inline, b->ninputs, &b->inputs_cap, sizeof *b->inputs);
        if (!to)
            return diag_nomem(&b->c->diag);
        b->inputs = to;
    }
    b->inputs[b->ninputs++] = *v;
    return BP_OK;
}

bp_status bind_put(bindings *b, ref r, bp_tensor *t)
{
    if (b->nvalues == b->values_cap) {
        void *to = grow(b->values, b->values_inline, b->nvalues, &b->values_cap, sizeof *b->values);
        if (!to)
            return diag_nomem(&b->c->diag);
        b->values = to;
    }
    b->values[b->nvalues++] = (bind_value){r, tensor_ref(t)};
    return BP_OK;
}

bp_tensor *bind_get(bindings *b, ref r)
{
    if (ref_kind(r) == REF_INPUT)
        return ref_index(r) < b->ninputs ? bind_input(b, ref_index(r)) : NULL;
    for (uint32_t i = b->nvalues; i-- > 0;)
        if (b->values[i].r == r)
            return b->values[i].t;
    if (ref_kind(r) != REF_BASE)
        return NULL;
    bp_tensor *t = inputs_base(b->c, b->inputs, b->ninputs, ref_index(r));
    if (t && bind_put(b, r, t) != BP_OK) {
        tensor_unref(t);
        return NULL;
    }
    tensor_unref(t); /* it holds its own */
    return t;
}

/* -- overlapping inputs -------------------------------------------------------------------------------------------- */

static bp_tensor *tensor_at(const bp_value *inputs, uint32_t i)
{
    return inputs[i].kind == BP_VALUE_TENSOR ? inputs[i].v.tensor : NULL;
}

static bool joins(const bp_value *inputs, uint32_t n, uint32_t j, const bool *member)
{
    const bp_tensor *t = tensor_at(inputs, j);
    for (uint32_t k = 0; t && k < n; k++)
        if (member[k] && (tensor_at(inputs, k) == t || tensor_may_overlap(t, tensor_at(inputs, k))))
            return true;
    return false;
}

uint32_t inputs_component(const bp_value *inputs, uint32_t n, uint32_t i, bool *member)
{
    memset(member, 0, n * sizeof *member);
    member[i] = true;
    for (bool more = true; more;) {
        more = false;
        for (uint32_t j = 0; j < n; j++)
            if (!member[j] && joins(inputs, n, j, member))
                member[j] = more = true;
    }
    uint32_t different = 0;
    for (uint32_t j = 0; j < n; j++) {
        bool seen = false;
        for (uint32_t k = 0; member[j] && k < j && !seen; k++)
            seen = member[k] && tensor_at(inputs, k) == tensor_at(inputs, j);
        different += member[j] && !seen;
    }
    return different;
}

void inputs_range(const bp_value *inputs, uint32_t n, const bool *member, char **start, size_t *nbytes)
{
    char *lo = NULL, *hi = NULL;
    for (uint32_t j = 0; j < n; j++) {
        if (!member[j])
            continue;
        char *p = tensor_ptr(tensor_at(inputs, j)), *end = p + tensor_span_bytes(tensor_at(inputs, j));
        lo = !lo || p < lo ? p : lo;
        hi = !hi || end > hi ? end : hi;
    }
    *start = lo;
    *nbytes = lo ? (size_t)(hi - lo) : 0;
}

static void drop_storage(void *arg, void *data)
{
    (void)data;
    storage_unref(arg);
}

bp_tensor *inputs_base(bp_ctx *c, const bp_value *inputs, uint32_t n, uint32_t i)
{
    bool *member = malloc(n * sizeof *member);
    if (!member) {
        diag_nomem(&c->diag);
        return NULL;
    }
    char *start;
    size_t nbytes;
    bp_tensor *t = tensor_at(inputs, i);
    inputs_component(inputs, n, i, member);
    inputs_range(inputs, n, member, &start, &nbytes);
    free(member);
    bp_dim size = dim_const((int64_t)(nbytes / dtype_size(t->dtype))), stride = dim_const(1);
    tensor_meta m = {t->dtype, tensor_device(t), 1, &size, &stride, dim_const(0)};
    storage *held = storage_ref(t->store);
    bp_tensor *base = tensor_wrap(c, &m, start, nbytes, drop_storage, held);
    if (!base)
        storage_unref(held);
    return base;
}
