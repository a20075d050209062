/* The caching allocator of CPU storages. Freed blocks wait in lists by size class, so that a loop that makes the same
 * tensors over and over does not go to the system. One for the process; safe from any thread. */
#ifndef HOST_TENSOR_ALLOC_H
#define HOST_TENSOR_ALLOC_H
#include <stddef.h>
#include <stdint.h>

/* nbytes > 0 of uninitialized memory, aligned to 64 bytes (2 MiB when that large). NULL: used up, or over the limit. */
void *alloc_get(size_t nbytes);
/* Gives a block back; nbytes as it was asked for. NULL: nothing. */
void alloc_put(void *p, size_t nbytes);
/* Gives all cached blocks back to the system, but for the few (256 KiB at most) that each other thread keeps. */
void alloc_trim(void);
/* cached: bytes that may wait in the lists. total: bytes in use and cached together, beyond which alloc_get fails;
 * SIZE_MAX: no limit. Under AddressSanitizer nothing is cached unless this is called. */
void alloc_set_limits(size_t cached, size_t total);

/* Bytes. peak: of in_use, with what threads keep. */
typedef struct { size_t in_use, cached, peak; uint64_t hits, misses; } alloc_stats;
alloc_stats alloc_get_stats(void);
#endif
