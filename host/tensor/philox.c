/* Philox4x32-10: ten rounds of two 32-by-32 multiplications over a counter of four words, under a key of two. */
#include "host/tensor/tensor.h"

void philox_block(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4])
{
    uint32_t k0 = key[0], k1 = key[1];
    uint32_t x0 = counter[0], x1 = counter[1], x2 = counter[2], x3 = counter[3];
    for (int round = 0; round < 10; round++) {
        uint64_t a = UINT64_C(0xd2511f53) * x0, b = UINT64_C(0xcd9e8d57) * x2;
        x0 = (uint32_t)(b >> 32) ^ x1 ^ k0;
        x1 = (uint32_t)b;
        x2 = (uint32_t)(a >> 32) ^ x3 ^ k1;
        x3 = (uint32_t)a;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    out[0] = x0;
    out[1] = x1;
    out[2] = x2;
    out[3] = x3;
}

void philox_uint32(uint64_t seed, uint64_t offset, uint32_t out[4])
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)offset, (uint32_t)(offset >> 32), 0, 0};
    philox_block(key, counter, out);
}
