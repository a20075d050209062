/* Hashing: a fast 64-bit hash for tables, and a 128-bit one for content addresses. Both are stable across machines. */
#ifndef BASE_HASH_H
#define BASE_HASH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct { uint64_t lo, hi; } hash128;

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed);
uint64_t hash_u64(uint64_t x);
hash128 hash128_bytes(const void *p, size_t n);
bool hash128_eq(hash128 a, hash128 b);
#endif
