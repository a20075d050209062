/* Allocation failures on demand, by the linker's --wrap. */
#include "tests/lib/oom.h"
#include "tests/lib/check.h"
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t count, size_t n);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
char *__real_strdup(const char *s);
char *__real_realpath(const char *path, char *resolved);
void __real_free(void *p);

void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t count, size_t n);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);
char *__wrap_strdup(const char *s);
char *__wrap_realpath(const char *path, char *resolved);
void __wrap_free(void *p);

static struct {
    bool armed, all_after, failed;
    uint64_t count, fail_at;
    int64_t live; /* allocated and not freed */
} state;

/* Whether this allocation is one that fails. */
static bool fails(void)
{
    if (!state.armed)
        return false;
    state.count++;
    if (state.count != state.fail_at && !(state.all_after && state.count > state.fail_at))
        return false;
    state.failed = true;
    errno = ENOMEM;
    return true;
}

static void *counted(void *p)
{
    state.live += p != NULL;
    return p;
}

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : counted(__real_malloc(n));
}

void *__wrap_calloc(size_t count, size_t n)
{
    return fails() ? NULL : counted(__real_calloc(count, n));
}

void *__wrap_realloc(void *p, size_t n)
{
    if (fails())
        return NULL;
    void *q = __real_realloc(p, n);
    state.live += !p && q;
    return q;
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
    return fails() ? NULL : counted(__real_aligned_alloc(align, n));
}

char *__wrap_strdup(const char *s)
{
    return fails() ? NULL : counted(__real_strdup(s));
}

char *__wrap_realpath(const char *path, char *resolved)
{
    if (resolved)
        return __real_realpath(path, resolved);
    return fails() ? NULL : counted(__real_realpath(path, NULL));
}

void __wrap_free(void *p)
{
    state.live -= p != NULL;
    __real_free(p);
}

bool oom_has_failed(void)
{
    return state.failed;
}

/* One run; false: nothing failed in it. */
static bool run(const char *what, bool (*body)(void *arg), void *arg, uint64_t fail_at, bool all_after)
{
    int64_t before = state.live;
    state.armed = true;
    state.all_after = all_after;
    state.failed = false;
    state.count = 0;
    state.fail_at = fail_at;
    bool well = body(arg);
    state.armed = false;
    if (state.live != before)
        fail_msg("%s: %lld allocations are left when the one numbered %llu fails%s", what,
                 (long long)(state.live - before), (unsigned long long)fail_at, all_after ? " and all after it" : "");
    if (!well && !state.failed)
        fail_msg("%s: does not succeed when no allocation fails", what);
    return state.failed;
}

uint64_t oom_sweep(const char *what, bool (*body)(void *arg), void *arg)
{
    enum { MOST = 100000 };
    uint64_t n = 1;
    json_set_alloc_funcs(__wrap_malloc, __wrap_free);
    run(what, body, arg, 0, false); /* what is made once and kept is made now */
    for (n = 1; n < MOST && run(what, body, arg, n, false); n++)
        ;
    for (uint64_t k = 1; k < n; k++)
        run(what, body, arg, k, true);
    if (n == MOST)
        fail_msg("%s: makes more than %d allocations, or never ends", what, MOST);
    return n - 1;
}
