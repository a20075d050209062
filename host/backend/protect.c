/* Protection around a plugin's code. The control word costs some nanoseconds and is kept always; the serial sections
 * share one mutex, which is held for a few instructions, so that the circle check sees a consistent picture. */
#include "host/backend/protect.h"
#include <pthread.h>
#include <stdlib.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#elif defined(__aarch64__)
#define READ_FPCR(out) __asm__ volatile("mrs %0, fpcr" : "=r"(out))
#define WRITE_FPCR(in) __asm__ volatile("msr fpcr, %0" : : "r"(in))
#endif

#if defined(__SSE2__)
/* Bits 6 and 15 make denormals zero, 7 to 14 are masks and rounding; 0 to 5 are flags, which any arithmetic sets. */
enum { CONTROL = 0xffc0 };
fp_word protect_begin(void)
{
    return (fp_word){_mm_getcsr()};
}

bool protect_end(fp_word before)
{
    if (((_mm_getcsr() ^ before.word) & CONTROL) == 0)
        return false;
    _mm_setcsr(before.word);
    return true;
}
#elif defined(__aarch64__)
fp_word protect_begin(void)
{
    uint64_t word;
    READ_FPCR(word);
    return (fp_word){(uint32_t)word};
}

bool protect_end(fp_word before)
{
    uint64_t now, then = before.word;
    READ_FPCR(now);
    if ((uint32_t)now == before.word)
        return false;
    WRITE_FPCR(then);
    return true;
}
#else
#error "write protect_begin and protect_end for this processor"
#endif

/* -- serial sections ----------------------------------------------------------------------------------------------- */

struct serial_owner { serial *waits_for; };
static _Thread_local serial_owner me;
static pthread_mutex_t picture = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER;

/* Whether the owner of s waits, through however many others, for this thread. */
static bool closes_circle(const serial *s)
{
    while (s && s->owner) {
        if (s->owner == &me)
            return true;
        s = s->owner->waits_for;
    }
    return false;
}

bp_status serial_enter(bp_ctx *c, serial *s, const char *what)
{
    bool circle = false;
    pthread_mutex_lock(&picture);
    while (s->owner && s->owner != &me && !(circle = closes_circle(s))) {
        me.waits_for = s;
        pthread_cond_wait(&freed, &picture);
        me.waits_for = NULL;
    }
    if (!circle) {
        s->owner = &me;
        s->depth++;
    }
    pthread_mutex_unlock(&picture);
    return circle ? ctx_fail(c, BP_ABORTED, "%s is busy in a thread that waits for this one", what) : BP_OK;
}

void serial_leave(serial *s)
{
    pthread_mutex_lock(&picture);
    if (--s->depth == 0) {
        s->owner = NULL;
        pthread_cond_broadcast(&freed);
    }
    pthread_mutex_unlock(&picture);
}

/* Kept for the life of the process: as many as there are plugins. */
typedef struct keyed keyed;
struct keyed { serial lock; const void *key; keyed *next; };
static keyed *locks;

serial *serial_of(const void *key)
{
    pthread_mutex_lock(&picture);
    keyed *k = locks;
    while (k && k->key != key)
        k = k->next;
    if (!k && (k = calloc(1, sizeof *k))) {
        k->key = key;
        k->next = locks;
        locks = k;
    }
    pthread_mutex_unlock(&picture);
    return k ? &k->lock : NULL;
}

/* -- forks --------------------------------------------------------------------------------------------------------- */

static atomic_uint forks;
static atomic_bool watches;
static pthread_once_t watch_once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
    pthread_mutex_lock(&picture);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&picture);
}

static void in_child(void)
{
    atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed);
    pthread_mutex_unlock(&picture);
}

static void watch(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
    atomic_store_explicit(&watches, true, memory_order_release);
}

uint32_t protect_forks(void)
{
    if (!atomic_load_explicit(&watches, memory_order_acquire))
        pthread_once(&watch_once, watch);
    return atomic_load_explicit(&forks, memory_order_relaxed);
}
