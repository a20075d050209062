/* Arenas: a chain of blocks, the newest last; allocation bumps `used` of the newest block.
 *
 * A block that was emptied by a reset to the very start is kept, so that an arena that is filled and emptied over and
 * over (one operator call after another) does not go to malloc each time. */
#include "sdk/base/arena.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_ALIGN = 16, ARENA_BLOCK = 64 * 1024 };

struct arena_block {
    arena_block *prev;
    size_t cap, used;
    size_t reserved; /* keeps data at a multiple of ARENA_ALIGN */
    unsigned char data[];
};

struct arena_held {
    arena_held *before;
    void (*release)(void *p);
    void *p;
};

static arena_block *grow(arena *a, size_t want)
{
    size_t cap = want > ARENA_BLOCK - sizeof(arena_block) ? want : ARENA_BLOCK - sizeof(arena_block);
    arena_block *b = malloc(sizeof *b + cap);
    if (!b)
        return NULL;
    *b = (arena_block){.prev = a->last, .cap = cap};
    a->last = b;
    a->nbytes += sizeof *b + cap;
    return b;
}

static void drop_last(arena *a)
{
    arena_block *b = a->last;
    a->last = b->prev;
    a->nbytes -= sizeof *b + b->cap;
    free(b);
}

void arena_fini(arena *a)
{
    for (arena_held *h = a->held; h; h = h->before)
        h->release(h->p);
    a->held = NULL;
    while (a->last)
        drop_last(a);
}

bool arena_hold(arena *a, void (*release)(void *p), void *p)
{
    arena_held *h = arena_alloc(a, sizeof *h);
    if (!h)
        return false;
    *h = (arena_held){a->held, release, p};
    a->held = h;
    return true;
}

void *arena_alloc(arena *a, size_t n)
{
    if (n > PTRDIFF_MAX - ARENA_BLOCK)
        return NULL;
    size_t want = (n + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    want = want ? want : ARENA_ALIGN;
    arena_block *b = a->last;
    if (!b || b->cap - b->used < want)
        b = grow(a, want);
    if (!b)
        return NULL;
    void *p = b->data + b->used;
    b->used += want;
    return memset(p, 0, want);
}

void *arena_array(arena *a, size_t count, size_t size)
{
    size_t n;
    return __builtin_mul_overflow(count, size, &n) ? NULL : arena_alloc(a, n);
}

char *arena_strndup(arena *a, const char *s, size_t n)
{
    char *p = n < SIZE_MAX ? arena_alloc(a, n + 1) : NULL;
    if (p && n)
        memcpy(p, s, n);
    return p;
}

char *arena_strdup(arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

char *arena_printf(arena *a, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    char *p = n < 0 ? NULL : arena_alloc(a, (size_t)n + 1);
    if (p)
        vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(ap);
    return p;
}

void *arena_memdup(arena *a, const void *p, size_t n)
{
    void *q = arena_alloc(a, n);
    if (q && n)
        memcpy(q, p, n);
    return q;
}

arena_mark arena_get_mark(const arena *a)
{
    return (arena_mark){a->last, a->last ? a->last->used : 0};
}

void arena_reset(arena *a, arena_mark m)
{
    while (a->last && a->last != m.last) {
        bool bottom = !m.last && !a->last->prev;
        if (bottom && sizeof(arena_block) + a->last->cap == ARENA_BLOCK) {
            a->last->used = 0;
            return;
        }
        drop_last(a);
    }
    if (a->last)
        a->last->used = m.used;
}
