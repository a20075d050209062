/* Hash map from a byte string or a 64-bit number to a 64-bit word or a pointer. Open addressing; keys are copied.
 * Zero-initialized is ready. Not for several threads at once. */
#ifndef BASE_MAP_H
#define BASE_MAP_H
#include "sdk/base/str.h"

typedef struct map_slot map_slot;
typedef struct { map_slot *slots; uint32_t len, cap, used; } map;
typedef union { void *p; uint64_t u; } map_value;

void map_fini(map *m);                                  /* keys only: values are the owner's */
map_value *map_get(const map *m, str key);              /* NULL: absent. Valid until the next change */
/* Finds or adds (as 0). NULL: out of memory. is_new: may be NULL. */
map_value *map_put(map *m, str key, bool *is_new);
bool map_del(map *m, str key);
map_value *map_get_u64(const map *m, uint64_t key);
map_value *map_put_u64(map *m, uint64_t key, bool *is_new);
bool map_del_u64(map *m, uint64_t key);
/* Walks in an order that is stable for an unchanged map. *i starts at 0; false at the end. key, value: may be NULL.
 * Text keys are NUL-terminated copies; a number's key is its 8 bytes in memory. */
bool map_next(const map *m, uint32_t *i, str *key, map_value **value);
#endif
