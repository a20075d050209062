/* Hashing. Words are read little-endian, so that a hash is the same on every machine. Each round is a bijection of the
 * state, so no input can make it forget what came before. */
#include "sdk/base/hash.h"

static const uint64_t K1 = 0x9e3779b97f4a7c15u, K2 = 0xc2b2ae3d27d4eb4fu, K3 = 0xd6e8feb86659fd93u;

static uint64_t rotate(uint64_t x, unsigned n)
{
    return x << n | x >> (64 - n);
}

/* Up to 8 bytes as a number. */
static uint64_t read_word(const unsigned char *p, size_t n)
{
    uint64_t w = 0;
    for (size_t i = 0; i < n; i++)
        w |= (uint64_t)p[i] << (8 * i);
    return w;
}

uint64_t hash_u64(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t hash_bytes(const void *p, size_t n, uint64_t seed)
{
    const unsigned char *s = p;
    uint64_t h = seed ^ (uint64_t)n * K1;
    for (; n >= 8; s += 8, n -= 8)
        h = rotate((h ^ read_word(s, 8) * K2) * K1, 29);
    if (n)
        h = rotate((h ^ read_word(s, n) * K2) * K1, 29);
    return hash_u64(h);
}

hash128 hash128_bytes(const void *p, size_t n)
{
    const unsigned char *s = p;
    uint64_t a = K1 ^ n, b = K3;
    while (n) {
        size_t first = n < 8 ? n : 8, second = n - first < 8 ? n - first : 8;
        a ^= rotate(read_word(s, first) * K2, 31) * K1;
        a = rotate(a, 27) + b;
        a = a * 5 + K3;
        b ^= rotate(read_word(s + first, second) * K1, 33) * K2;
        b = rotate(b, 31) + a;
        b = b * 5 + K2;
        s += first + second;
        n -= first + second;
    }
    a += b;
    b += a;
    a = hash_u64(a);
    b = hash_u64(b ^ K3);
    a += b;
    return (hash128){a, b + a};
}

bool hash128_eq(hash128 a, hash128 b)
{
    return a.lo == b.lo && a.hi == b.hi;
}
