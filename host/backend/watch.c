/* Sums of what plugins may only read.
 *
 * A plugin that writes to an input and then fails leaves the next link, and eager execution, with spoiled numbers; no
 * wrong answer may come of that. Reading all inputs at each run would cost as much as many runs do, so the first run of
 * a compiled graph is watched in full, and later ones that fail by samples: the first word of each of the first inputs
 * and the last word of its storage, so a write of a few elements in a later run can be missed. */
#include "host/backend/watch.h"
#include "sdk/base/hash.h"
#include <string.h>

static const char *bytes_of(const bp_tensor *t, size_t *n)
{
    if (!t || tensor_is_fake(t) || tensor_device(t).kind != BP_CPU || tensor_nelem(t) == 0)
        return NULL;
    *n = tensor_span_bytes(t);
    return tensor_ptr(t);
}

uint64_t watch_sum(const bp_tensor *t)
{
    size_t n;
    const char *p = bytes_of(t, &n);
    return p ? hash_bytes(p, n, 1) : 0;
}

/* A few instructions, since every run of a plugin's object pays them. */
static HOT uint64_t sample(const bp_tensor *t)
{
    const storage *s = t ? t->store : NULL;
    uint64_t first, last;
    if (!s || !s->data || s->nbytes < sizeof last || t->device_kind != BP_CPU)
        return 0;
    const char *end = (const char *)s->data + s->nbytes - sizeof last, *p = tensor_ptr(t);
    memcpy(&first, p < end ? p : end, sizeof first);
    memcpy(&last, end, sizeof last);
    return first ^ last << 1;
}

/* Inputs behind the last sum share it. */
static uint64_t sum_at(const watch *w, uint32_t at, bp_tensor *const *inputs, const uint8_t *owned, uint32_t n)
{
    if (!w->full)
        return owned && owned[at] ? 0 : sample(inputs[at]);
    uint64_t sum = 0;
    uint32_t end = at == WATCHED - 1 ? n : at + 1;
    for (uint32_t i = at; i < end; i++)
        if (!owned || !owned[i])
            sum = hash_u64(sum) ^ watch_sum(inputs[i]);
    return sum;
}

void watch_samples(watch *w, bp_tensor *const *inputs, const uint8_t *owned, uint32_t n)
{
    const uint32_t first = n < WATCHED ? n : WATCHED;
    w->full = false;
    w->n = first;
    for (uint32_t i = 0; i < first; i++)
        w->sum[i] = sample(inputs[i]);
    for (uint32_t i = 0; owned && i < first; i++)
        w->sum[i] = owned[i] ? 0 : w->sum[i];
}

void watch_all(watch *w, bp_tensor *const *inputs, const uint8_t *owned, uint32_t n)
{
    w->full = true;
    w->n = n < WATCHED ? n : WATCHED;
    for (uint32_t i = 0; i < w->n; i++)
        w->sum[i] = sum_at(w, i, inputs, owned, n);
}

uint32_t watch_changed(const watch *w, bp_tensor *const *inputs, const uint8_t *owned, uint32_t n)
{
    for (uint32_t i = 0; i < w->n; i++)
        if (w->sum[i] != sum_at(w, i, inputs, owned, n))
            return i;
    return UINT32_MAX;
}
