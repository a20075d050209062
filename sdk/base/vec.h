/* Growable arrays: VEC(T) names the struct type; zero-initialized is ready.
 *
 *     VEC(int) v = {0};
 *     if (!vec_push(&v, 3)) return out_of_memory;
 *     for (uint32_t i = 0; i < v.len; i++) use(v.at[i]);
 *     vec_fini(&v); */
#ifndef BASE_VEC_H
#define BASE_VEC_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define VEC(...) struct { __VA_ARGS__ *at; uint32_t len, cap; }
/* Makes room for `want` items of `size` bytes; false when memory is used up (the vector is unchanged). */
bool vec_reserve_bytes(void **at, uint32_t *cap, uint64_t want, size_t size);
#define vec_reserve(v, want) vec_reserve_bytes((void **)&(v)->at, &(v)->cap, (want), sizeof *(v)->at)
#define vec_push(v, ...) \
    (vec_reserve((v), (uint64_t)(v)->len + 1) ? ((v)->at[(v)->len++] = (__VA_ARGS__), true) : false)
#define vec_pop(v) ((v)->at[--(v)->len])
#define vec_last(v) ((v)->at[(v)->len - 1])
#define vec_clear(v) ((v)->len = 0)
#define vec_fini(v) (free((v)->at), (v)->at = NULL, (v)->len = (v)->cap = 0)
#endif
