/* The caching allocator. Four size classes to each power of two, from 64 bytes on: at most a fifth of a block is
 * unused. A freed block holds the link of its list in its first bytes. */
#include "host/tensor/alloc.h"
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { ALIGN = 64, HUGE_PAGE = 2 << 20, CLASSES = 4 * 48 };
#if defined(__SANITIZE_ADDRESS__)
enum { DEFAULT_CACHED = 0 }; /* a block that is used after its end must be seen */
#else
enum { DEFAULT_CACHED = 1 << 30 };
#endif

typedef struct free_block free_block;
struct free_block { free_block *next; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static free_block *lists[CLASSES];
static alloc_stats stats;
static size_t cached_limit = DEFAULT_CACHED, total_limit = SIZE_MAX;

/* The class of a size, and the size of its blocks: (4 + q) * 2^e * 16 with q in 0 .. 3. CLASSES: too large. */
static unsigned class_of(size_t nbytes, size_t *size)
{
    if (nbytes <= ALIGN) {
        *size = ALIGN;
        return 0;
    }
    unsigned top = 63 - (unsigned)__builtin_clzl(nbytes - 1); /* the highest bit of the largest size in the step */
    size_t step = (size_t)1 << (top - 2);
    size_t units = (nbytes + step - 1) / step; /* 5 .. 8 quarters of 2^top */
    unsigned index = (top - 6) * 4 + (unsigned)units - 4;
    if (index >= CLASSES)
        return CLASSES;
    *size = units * step;
    return index;
}

static void *take_cached(unsigned index, size_t size)
{
    free_block *b = lists[index];
    if (!b)
        return NULL;
    lists[index] = b->next;
    stats.cached -= size;
    return b;
}

static void *from_system(size_t size)
{
    if (size < HUGE_PAGE)
        return aligned_alloc(ALIGN, (size + ALIGN - 1) / ALIGN * ALIGN);
    size_t rounded = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    void *p = aligned_alloc(HUGE_PAGE, rounded);
    if (p)
        madvise(p, rounded, MADV_HUGEPAGE); /* a wish: without huge pages the memory is as good */
    return p;
}

static void trim(void)
{
    for (unsigned i = 0; i < CLASSES; i++) {
        while (lists[i]) {
            free_block *b = lists[i];
            lists[i] = b->next;
            free(b);
        }
    }
    stats.cached = 0;
}

static void *get_locked(unsigned index, size_t size)
{
    void *p = take_cached(index, size);
    if (p) {
        stats.hits++;
        return p;
    }
    stats.misses++;
    if (size > total_limit || stats.in_use + stats.cached > total_limit - size)
        trim();
    if (size > total_limit || stats.in_use > total_limit - size)
        return NULL;
    p = from_system(size);
    if (!p && stats.cached) {
        trim();
        p = from_system(size);
    }
    return p;
}

void *alloc_get(size_t nbytes)
{
    size_t size = 0;
    unsigned index = class_of(nbytes, &size);
    if (index == CLASSES)
        return NULL;
    pthread_mutex_lock(&lock);
    void *p = get_locked(index, size);
    if (p) {
        stats.in_use += size;
        stats.peak = stats.in_use > stats.peak ? stats.in_use : stats.peak;
    }
    pthread_mutex_unlock(&lock);
    return p;
}

void alloc_put(void *p, size_t nbytes)
{
    if (!p)
        return;
    size_t size = 0;
    unsigned index = class_of(nbytes, &size);
    pthread_mutex_lock(&lock);
    stats.in_use -= size;
    if (size <= cached_limit && stats.cached <= cached_limit - size) {
        free_block *b = p;
        b->next = lists[index];
        lists[index] = b;
        stats.cached += size;
        p = NULL;
    }
    pthread_mutex_unlock(&lock);
    free(p);
}

void alloc_trim(void)
{
    pthread_mutex_lock(&lock);
    trim();
    pthread_mutex_unlock(&lock);
}

void alloc_set_limits(size_t cached, size_t total)
{
    pthread_mutex_lock(&lock);
    cached_limit = cached;
    total_limit = total;
    if (stats.cached > cached)
        trim();
    pthread_mutex_unlock(&lock);
}

alloc_stats alloc_get_stats(void)
{
    pthread_mutex_lock(&lock);
    alloc_stats s = stats;
    pthread_mutex_unlock(&lock);
    return s;
}
