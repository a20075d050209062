/* Arithmetic that says when it overflows: each returns false and leaves *out alone. */
#ifndef BASE_CHECKED_H
#define BASE_CHECKED_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool checked_add(int64_t a, int64_t b, int64_t *out)
{
    int64_t r;
    return __builtin_add_overflow(a, b, &r) ? false : (*out = r, true);
}
static inline bool checked_sub(int64_t a, int64_t b, int64_t *out)
{
    int64_t r;
    return __builtin_sub_overflow(a, b, &r) ? false : (*out = r, true);
}
static inline bool checked_mul(int64_t a, int64_t b, int64_t *out)
{
    int64_t r;
    return __builtin_mul_overflow(a, b, &r) ? false : (*out = r, true);
}
static inline bool checked_size_mul(size_t a, size_t b, size_t *out)
{
    size_t r;
    return __builtin_mul_overflow(a, b, &r) ? false : (*out = r, true);
}
static inline bool checked_size_add(size_t a, size_t b, size_t *out)
{
    size_t r;
    return __builtin_add_overflow(a, b, &r) ? false : (*out = r, true);
}
/* Floor division and its remainder, as Python's // and %. b must not be 0; INT64_MIN / -1 overflows. */
bool checked_floordiv(int64_t a, int64_t b, int64_t *out);
bool checked_floormod(int64_t a, int64_t b, int64_t *out);
#endif
