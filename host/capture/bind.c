/* The values of a call. Look-up is a linear search: a path hands on few values, and the newest are wanted most. */
#include "host/capture/bind.h"
#include "host/grad/share.h"
#include <stdlib.h>
#include <string.h>

void bind_drop_values(bindings *b)
{
    while (b->nvalues)
        if (!b->values[--b->nvalues].is_lent)
            tensor_unref(b->values[b->nvalues].t);
}

void bind_drop_bases(bindings *b)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < b->nvalues; i++)
        if (ref_kind(b->values[i].r) == REF_BASE)
            tensor_unref(b->values[i].t); /* never lent */
        else
            b->values[kept++] = b->values[i];
    b->nvalues = kept;
}

void bind_reset(bindings *b)
{
    bind_drop_values(b);
    b->ninputs = b->nargs;
}

void bind_fini(bindings *b)
{
    bind_drop_values(b);
    if (b->own_inputs != b->inputs_inline)
        free(b->own_inputs);
    if (b->values != b->values_inline)
        free(b->values);
    if (b->syms != b->syms_inline)
        free(b->syms);
}

/* Makes an array that may still lie inline larger than len. NULL: out of memory, the old one is intact. */
static void *grow(void *at, const void *in_place, uint32_t len, uint32_t *cap, size_t size)
{
    uint32_t room = 2 * (len > *cap ? len : *cap);
    void *to = realloc(at == in_place ? NULL : at, room * size);
    if (!to)
        return NULL;
    if (at == in_place)
        memcpy(to, at, (len < *cap ? len : *cap) * size);
    *cap = room;
    return to;
}

bool bind_reserve_symbols_more(bindings *b, uint32_t n)
{
    uint32_t cap = b->syms_cap;
    void *to = grow(b->syms, b->syms_inline, n, &cap, sizeof *b->syms);
    if (!to)
        return diag_nomem(&b->c->diag), false;
    b->syms = to;
    b->syms_cap = cap;
    return true;
}

bp_status bind_push_input(bindings *b, const bp_value *v)
{
    if (b->ninputs >= b->inputs_cap) {
        void *to = grow(b->own_inputs, b->inputs_inline, b->ninputs, &b->inputs_cap, sizeof *b->own_inputs);
        if (!to)
            return diag_nomem(&b->c->diag);
        if (b->inputs == b->own_inputs)
            b->inputs = to;
        b->own_inputs = to;
    }
    if (b->inputs != b->own_inputs) {
        if (b->ninputs)
            memcpy(b->own_inputs, b->inputs, b->ninputs * sizeof *b->inputs);
        b->inputs = b->own_inputs;
    }
    b->own_inputs[b->ninputs++] = *v;
    return BP_OK;
}

bp_status bind_give_more(bindings *b, ref r, bp_tensor *t)
{
    void *to = grow(b->values, b->values_inline, b->nvalues, &b->values_cap, sizeof *b->values);
    if (!to) {
        tensor_unref(t);
        return diag_nomem(&b->c->diag);
    }
    b->values = to;
    return bind_give(b, r, t);
}

bp_status bind_put(bindings *b, ref r, bp_tensor *t)
{
    return bind_give(b, r, tensor_ref(t));
}

static bp_tensor *symbol_tensor(bindings *b, ref r)
{
    bp_tensor *t = tensor_contiguous_new(b->c, BP_I64, 0, NULL);
    if (!t)
        return NULL;
    *(int64_t *)tensor_ptr(t) = b->syms[ref_index(r)];
    return bind_give(b, r, t) == BP_OK ? t : NULL;
}

bp_tensor *bind_get_other(bindings *b, ref r)
{
    const bind_value *v = bind_find(b, r);
    if (v)
        return v->t;
    if (ref_kind(r) == REF_SYMBOL)
        return symbol_tensor(b, r);
    if (ref_kind(r) != REF_BASE)
        return NULL;
    bp_tensor *t = inputs_base(b->c, b->inputs, b->ninputs, ref_index(r));
    return t && bind_give(b, r, t) == BP_OK ? t : NULL;
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

bool bind_may_write(const bindings *b, uint32_t i)
{
    const bp_tensor *t = bind_input(b, i);
    if (!t->base)
        return true;
    for (uint32_t j = 0; j < b->ninputs; j++) {
        const bp_tensor *other = bind_input(b, j);
        if (other && other != t && other->store == t->store)
            return false;
    }
    return tape_may_write(t);
}
