/* Growth of vectors: by half as much again, at least 8 items. */
#include "sdk/base/vec.h"
#include <string.h>

bool vec_reserve_bytes(void **at, uint32_t *cap, uint64_t want, size_t size)
{
    if (want <= *cap)
        return true;
    uint64_t grown = (uint64_t)*cap + *cap / 2;
    uint64_t n = want > grown ? want : grown;
    n = n < 8 ? 8 : n;
    n = n > UINT32_MAX ? want : n;
    if (n > UINT32_MAX || n > PTRDIFF_MAX / size)
        return false;
    /* The member behind `at` is a T *, not a void *: it is read and written as bytes. */
    void *old, *grown_at;
    memcpy(&old, at, sizeof old);
    grown_at = realloc(old, (size_t)n * size);
    if (!grown_at)
        return false;
    memcpy(at, &grown_at, sizeof grown_at);
    *cap = (uint32_t)n;
    return true;
}
