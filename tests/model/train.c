/* Training. Leaves are new at each call, so that no call writes what another one saved; their gradients are carried on,
 * and accumulate. Nothing here is in the texts: what requires grad follows from numbers of the program. */
#include "tests/model/train.h"
#include <string.h>

/* Of a program, an argument set and a place: the same for both sides. */
static uint32_t pick(const side *s, uint32_t set, uint32_t i, uint32_t of)
{
    uint64_t x = s->p->number * 0x9e3779b97f4a7c15u + set * 0xbf58476d1ce4e5b9u + i * 0x94d049bb133111ebu;
    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
    return (uint32_t)((x ^ (x >> 32)) % of);
}

static bp_tensor **leaf_at(side *s, uint32_t set, uint32_t i)
{
    while (s->leaves.len <= set * MAX_ARGS + i)
        if (!vec_push(&s->leaves, NULL))
            return NULL;
    return &s->leaves.at[set * MAX_ARGS + i];
}

static bp_tensor *new_leaf(side *s, bp_tensor **at, bp_tensor *t)
{
    bp_ctx *c = s->c;
    bp_tensor *former = *at;
    bp_tensor_set_requires_grad(c, t, 1);
    if (former && bp_tensor_grad(c, former))
        bp_tensor_set_grad(c, t, bp_tensor_grad(c, former));
    bp_keep(c, *at = t);
    bp_tensor_unref(former);
    return t;
}

bp_tensor *train_buffer(side *s, uint32_t set, uint32_t i, bp_tensor *t)
{
    /* Mostly what was made of a leaf: leaves must not be written. Sets of a program mostly agree. */
    uint32_t how = pick(s, set % 8 ? 0 : set, i, 8);
    bp_tensor **at = leaf_at(s, set, i);
    if (!at || how < 2 || bp_tensor_dtype(t) != BP_F64)
        return t;
    t = new_leaf(s, at, t);
    return how < 3 ? t : bp_mul(s->c, t, 1.0);
}

bool train_view_without_grad(const side *s, uint32_t set, uint32_t i)
{
    return pick(s, set, i + MAX_ARGS, 16) == 0;
}

bool train_is_whole(const side *s, uint32_t set, const text_args *a, uint32_t i)
{
    const text_view *v = &a->views[i];
    bool first = true;
    for (uint32_t j = 0; j < i; j++)
        first &= a->views[j].same >= 0 || a->views[j].buffer != v->buffer;
    return first && !v->off && v->stride == 1 && v->n == a->buffers[v->buffer].n &&
           pick(s, set % 8 ? 0 : set, i + 2 * MAX_ARGS, 4);
}

/* -- backward ------------------------------------------------------------------------------------------------------ */

static bp_tensor *seed_for(bp_ctx *c, const bp_tensor *t, uint32_t i)
{
    int64_t n = bp_tensor_numel(t);
    double values[64];
    for (int64_t k = 0; k < n && k < 64; k++)
        values[k] = 0.25 * (double)((3 * i + 2 * k) % 7) - 0.5;
    return n > 64 ? NULL : bp_tensor_from(c, BP_F64, bp_tensor_rank(t), &n, values);
}

static void print_leaves(side *s, uint32_t set, buf *out)
{
    for (uint32_t i = 0; i < MAX_ARGS; i++) {
        bp_tensor **at = leaf_at(s, set, i), *g = at && *at ? bp_tensor_grad(s->c, *at) : NULL;
        if (!at || !*at)
            continue;
        buf_printf(out, "grad %u", i);
        /* A graph gives nothing where eager gives zeros, and zeros to a result that has no gradient: -0 may be 0. */
        show_numbers(s->c, g ? bp_add(s->c, bp_detach(s->c, g), 0.0) : bp_zeros_like(s->c, *at), out);
        buf_putc(out, '\n');
    }
}

void train_backward(side *s, uint32_t set, bp_tensor *const *tensors, uint32_t n, buf *out)
{
    bp_ctx *c = s->c;
    buf_clear(&s->grads), buf_clear(&s->said);
    bp_tensor *roots[4 * MAX_ARGS], *grads[4 * MAX_ARGS];
    uint32_t nroots = 0;
    for (uint32_t i = 0; i < n && nroots < 4 * MAX_ARGS; i++) {
        buf_printf(out, "tensor %u%s%s\n", i, bp_tensor_requires_grad(tensors[i]) ? " requires grad" : "",
                   bp_tensor_is_leaf(tensors[i]) ? " leaf" : "");
        if (!bp_tensor_requires_grad(tensors[i]))
            continue;
        roots[nroots] = tensors[i];
        grads[nroots++] = seed_for(c, tensors[i], i);
    }
    /* What a disabled function has kept may be a root of a later call's graph. */
    bp_status st = nroots ? bp_backward_all(c, roots, grads, nroots, BP_RETAIN_GRAPH) : BP_OK;
    s->flowed = nroots && st == BP_OK;
    if (st != BP_OK)
        buf_printf(&s->grads, "backward fails: %d\n", st);
    if (st != BP_OK)
        buf_printf(&s->said, "%s", bp_error_message(c));
    bp_error_clear(c);
    print_leaves(s, set, &s->grads);
}

void train_forget(side *s, uint32_t set)
{
    for (uint32_t i = 0; i < MAX_ARGS; i++) {
        bp_tensor **at = leaf_at(s, set, i);
        if (at && *at)
            bp_tensor_set_grad(s->c, *at, NULL);
    }
}

void train_close(side *s)
{
    for (uint32_t i = 0; i < s->leaves.len; i++)
        bp_tensor_unref(s->leaves.at[i]);
    vec_fini(&s->leaves);
    buf_fini(&s->grads), buf_fini(&s->said);
}
