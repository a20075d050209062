/* The caching allocator. Four size classes to each power of two, from 64 bytes on: at most a fifth of a block is
 * unused. A freed block holds the link of its list in its first bytes.
 *
 * Each thread keeps some small blocks of its own, so that threads which make the same tensors over and over share no
 * lock. For the lists of the process these are in use; whoever reads the figures subtracts them. */
#include "host/tensor/alloc.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { ALIGN = 64, HUGE_PAGE = 2 << 20, CLASSES = 4 * 48 };
enum { OWN_CLASSES = 4 * 10 + 1, OWN_BYTES = 256 << 10 }; /* of a thread: up to 64 KiB a block */
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
static atomic_bool threads_keep = (size_t)DEFAULT_CACHED >= OWN_BYTES;

/* A thread's own blocks. held and hits are written by their thread alone and read by all. */
typedef struct own_blocks own_blocks;
struct own_blocks {
    free_block *lists[OWN_CLASSES];
    atomic_size_t held;
    atomic_ullong hits;
    own_blocks *next;
};
static own_blocks *threads; /* under the lock */
static pthread_key_t thread_key;
static bool has_key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static _Thread_local own_blocks *mine __attribute__((tls_model("initial-exec")));

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

static size_t class_size(unsigned index)
{
    return index ? (size_t)(5 + (index - 1) % 4) << (4 + (index - 1) / 4) : ALIGN;
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

/* -- a thread's own ------------------------------------------------------------------------------------------------ */

static void put_locked(void **p, unsigned index, size_t size)
{
    stats.in_use -= size;
    if (size > cached_limit || stats.cached > cached_limit - size)
        return;
    free_block *b = *p;
    b->next = lists[index];
    lists[index] = b;
    stats.cached += size;
    *p = NULL;
}

static void put(void *p, unsigned index, size_t size)
{
    pthread_mutex_lock(&lock);
    put_locked(&p, index, size);
    pthread_mutex_unlock(&lock);
    free(p);
}

static void give_up(own_blocks *o)
{
    for (unsigned i = 0; i < OWN_CLASSES; i++) {
        while (o->lists[i]) {
            free_block *b = o->lists[i];
            o->lists[i] = b->next;
            put(b, i, class_size(i));
        }
    }
    atomic_store_explicit(&o->held, 0, memory_order_relaxed);
}

static void end_thread(void *arg)
{
    own_blocks *o = arg;
    mine = NULL;
    give_up(o);
    pthread_mutex_lock(&lock);
    stats.hits += atomic_load_explicit(&o->hits, memory_order_relaxed);
    for (own_blocks **at = &threads; *at; at = &(*at)->next)
        if (*at == o) {
            *at = o->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    free(o);
}

static void make_key(void)
{
    has_key = pthread_key_create(&thread_key, end_thread) == 0;
}

/* NULL: none can be had, and the lists of the process serve. */
static own_blocks *make_own(void)
{
    pthread_once(&key_once, make_key);
    own_blocks *o = has_key ? calloc(1, sizeof *o) : NULL;
    if (!o || pthread_setspecific(thread_key, o)) {
        free(o);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    o->next = threads;
    threads = o;
    pthread_mutex_unlock(&lock);
    return mine = o;
}

static void add_held(own_blocks *o, size_t change)
{
    atomic_store_explicit(&o->held, atomic_load_explicit(&o->held, memory_order_relaxed) + change,
                          memory_order_relaxed);
}

static void *take_own(unsigned index, size_t size)
{
    free_block *b = mine->lists[index];
    if (!b)
        return NULL;
    mine->lists[index] = b->next;
    add_held(mine, -size);
    atomic_store_explicit(&mine->hits, atomic_load_explicit(&mine->hits, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    return b;
}

/* False: the block is for the process's lists. */
static bool keep_own(void *p, unsigned index, size_t size)
{
    if (index >= OWN_CLASSES || !atomic_load_explicit(&threads_keep, memory_order_relaxed) || (!mine && !make_own()) ||
        atomic_load_explicit(&mine->held, memory_order_relaxed) + size > OWN_BYTES)
        return false;
    free_block *b = p;
    b->next = mine->lists[index];
    mine->lists[index] = b;
    add_held(mine, size);
    return true;
}

/* -- blocks -------------------------------------------------------------------------------------------------------- */

static void *get_shared(unsigned index, size_t size)
{
    pthread_mutex_lock(&lock);
    void *p = get_locked(index, size);
    if (p) {
        stats.in_use += size;
        stats.peak = stats.in_use > stats.peak ? stats.in_use : stats.peak;
    }
    pthread_mutex_unlock(&lock);
    return p;
}

void *alloc_get(size_t nbytes)
{
    size_t size = 0;
    unsigned index = class_of(nbytes, &size);
    if (index == CLASSES)
        return NULL;
    void *p = mine && index < OWN_CLASSES ? take_own(index, size) : NULL;
    if (p)
        return p;
    p = get_shared(index, size);
    if (!p && mine) {
        give_up(mine);
        p = get_shared(index, size);
    }
    return p;
}

void alloc_put(void *p, size_t nbytes)
{
    if (!p)
        return;
    size_t size = 0;
    unsigned index = class_of(nbytes, &size);
    if (!keep_own(p, index, size))
        put(p, index, size);
}

void alloc_trim(void)
{
    if (mine)
        give_up(mine);
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
    atomic_store_explicit(&threads_keep, cached >= OWN_BYTES, memory_order_relaxed);
    if (mine && cached < OWN_BYTES)
        give_up(mine);
}

alloc_stats alloc_get_stats(void)
{
    pthread_mutex_lock(&lock);
    alloc_stats s = stats;
    for (own_blocks *o = threads; o; o = o->next) {
        size_t held = atomic_load_explicit(&o->held, memory_order_relaxed);
        s.in_use -= held;
        s.cached += held;
        s.hits += atomic_load_explicit(&o->hits, memory_order_relaxed);
    }
    pthread_mutex_unlock(&lock);
    return s;
}
