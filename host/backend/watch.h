/* Inputs are lent to plugins to read. This notices when one wrote to them all the same. */
#ifndef HOST_BACKEND_WATCH_H
#define HOST_BACKEND_WATCH_H
#include "host/tensor/tensor.h"
#include <string.h>

enum { WATCHED = 32 };
/* What inputs held before a run. full: every byte of every input, else samples of the first ones. */
typedef struct { uint64_t sum[WATCHED]; uint32_t n; bool full; } watch;
/* The first word of a tensor and the last one of its storage: a few instructions, since every run of a plugin's object
 * pays them. */
static HOT uint64_t watch_sample(const bp_tensor *t)
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
/* owned: one an input, those may be overwritten; NULL: none may. */
static HOT void watch_samples(watch *w, bp_tensor *const *inputs, const uint8_t *owned, uint32_t n)
{
    w->full = false;
    w->n = n < WATCHED ? n : WATCHED;
    for (uint32_t i = 0; i < w->n; i++)
        w->sum[i] = owned && owned[i] ? 0 : watch_sample(inputs[i]);
}
/* The same, of every byte of every input. */
void watch_all(watch *w, bp_tensor *const *inputs, const uint8_t *owned, uint32_t n);
/* The first input that is not what it was, or UINT32_MAX. */
uint32_t watch_changed(const watch *w, bp_tensor *const *inputs, const uint8_t *owned, uint32_t n);
/* Of all bytes of a tensor in host memory; 0 for others. */
uint64_t watch_sum(const bp_tensor *t);
#endif
