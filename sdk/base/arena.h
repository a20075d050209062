/* Memory that dies together. Blocks of 64 KiB; a larger request gets a block of its own. Nothing is freed singly. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H
#include "sdk/base/str.h"

typedef struct arena_block arena_block;
typedef struct arena_held arena_held;
/* Zero-initialized is ready. nbytes: taken from malloc. */
typedef struct { arena_block *last; size_t nbytes; arena_held *held; } arena;
typedef struct { arena_block *last; size_t used; } arena_mark;

void arena_fini(arena *a);
/* Zeroed, aligned to 16 bytes. NULL when memory is used up or n is absurd. n 0 gives a valid pointer. */
void *arena_alloc(arena *a, size_t n);
void *arena_array(arena *a, size_t count, size_t size); /* checked product */
char *arena_strdup(arena *a, const char *s);
char *arena_strndup(arena *a, const char *s, size_t n);
__attribute__((format(printf, 2, 3))) char *arena_printf(arena *a, const char *fmt, ...);
void *arena_memdup(arena *a, const void *p, size_t n);
/* Calls release(p) when the arena dies; it must not be reset below this. false: out of memory, and nothing is held. */
bool arena_hold(arena *a, void (*release)(void *p), void *p);
/* Frees what was allocated after the mark. */
arena_mark arena_get_mark(const arena *a);
void arena_reset(arena *a, arena_mark m);
#endif
