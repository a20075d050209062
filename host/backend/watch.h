/* Inputs are lent to plugins to read. This notices when one wrote to them all the same. */
#ifndef HOST_BACKEND_WATCH_H
#define HOST_BACKEND_WATCH_H
#include "host/tensor/tensor.h"

enum { WATCHED = 32 };
/* What inputs held before a run. full: every byte of every input, else samples of the first ones. */
typedef struct { uint64_t sum[WATCHED]; uint32_t n; bool full; } watch;
/* Samples: the first word of a tensor and the last one of its storage. owned: one an input, those may be overwritten;
 * NULL: none may. */
void watch_samples(watch *w, bp_tensor *const *inputs, const uint8_t *owned, uint32_t n);
/* The same, of every byte of every input. */
void watch_all(watch *w, bp_tensor *const *inputs, const uint8_t *owned, uint32_t n);
/* The first input that is not what it was, or UINT32_MAX. */
uint32_t watch_changed(const watch *w, bp_tensor *const *inputs, const uint8_t *owned, uint32_t n);
/* Of all bytes of a tensor in host memory; 0 for others. */
uint64_t watch_sum(const bp_tensor *t);
#endif
