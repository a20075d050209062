/* The service table, and the services that need no graph: logs, memory, threads, once. */
#include "host/backend/service.h"
#include "host/backend/text.h"
#include "host/base/log.h"
#include "host/base/parallel.h"
#include <stdio.h>
#include <string.h>

/* Every row is here: a missing one does not link. */
static const bp_host TABLE = {
    .size = sizeof TABLE,
    .api = BP_API_NEWEST,
#define BP_API_ROW(since, result, name, params, args, handle, fallback) .name = service_##name,
#define BP_API_VOID(since, name, params, args, handle) .name = service_##name,
#include <backplane/host_api.def>
#undef BP_API_ROW
#undef BP_API_VOID
};

void service_fill(host_table *t, backend *b)
{
    t->api = TABLE;
    t->b = b;
}

/* Each backend has its own copy of the table, with its record behind it. */
backend *service_backend(const bp_host *host)
{
    union { const bp_host *api; const host_table *table; } u = {host};
    return u.table->b;
}

/* -- saying -------------------------------------------------------------------------------------------------------- */

enum { LOG_TEXT = 1 << 16 };

void service_log_text(const bp_host *host, int32_t level, const char *text, size_t n)
{
    const backend *b = service_backend(host);
    bp_runtime *rt = b ? b->room->rt : NULL; /* in a call of an operator there is none */
    bool is_loud = level == BP_LOG_ERROR || level == BP_LOG_WARN;
    if (!rt)
        return;
    if (!is_loud && !log_on(rt, LOG_backend))
        return;
    buf line = {0};
    plugin_text_add(&line, text, text ? n < LOG_TEXT ? n : LOG_TEXT : 0, TEXT_LINES);
    if (text && n > LOG_TEXT)
        buf_printf(&line, " [cut, of %zu bytes]", n);
    if (level == BP_LOG_ERROR)
        log_error(rt, "backend \"%s\": %s", b->name, buf_text(&line));
    else if (level == BP_LOG_WARN)
        log_warn(rt, "backend \"%s\": %s", b->name, buf_text(&line));
    else
        log_line(rt, LOG_backend, "\"%s\": %s", b->name, buf_text(&line));
    buf_fini(&line);
}

bp_status service_init_fail_text(const bp_host *host, bp_status code, const char *text, size_t n)
{
    backend *b = service_backend(host);
    if (b && !b->said[0])
        plugin_text(b->said, sizeof b->said, text, n);
    return code == BP_OK ? BP_UNKNOWN : code;
}

/* -- memory and threads -------------------------------------------------------------------------------------------- */

void *service_alloc(const bp_host *host, size_t nbytes, size_t align)
{
    (void)host;
    size_t to = align < sizeof(void *) ? 64 : align;
    if ((to & (to - 1)) || nbytes > SIZE_MAX - to)
        return NULL;
    return aligned_alloc(to, (nbytes + to) & ~(to - 1));
}

void service_free(const bp_host *host, void *p)
{
    (void)host;
    free(p);
}

bp_status service_parallel_for(const bp_host *host, int64_t n, int64_t grain,
                               void (*body)(void *arg, int64_t begin, int64_t end), void *arg)
{
    (void)host;
    if (!body || n < 0)
        return BP_INVALID_ARGUMENT;
    if (n > 0)
        parallel_for(n, grain > 0 ? grain : 1, body, arg);
    return BP_OK;
}

/* -- once ---------------------------------------------------------------------------------------------------------- */

/* Of the process, as a plugin's own variables are. */
typedef struct { void *key; uint64_t thread; bool is_done; } once_row; /* thread: who is at it; 0: nobody */
static struct { pthread_mutex_t lock; pthread_cond_t changed; VEC(once_row) rows; } onces = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* Index of the key's row, added when it is new; with the lock held. */
static bool find_once(void *key, uint32_t *at)
{
    for (*at = 0; *at < onces.rows.len; ++*at)
        if (onces.rows.at[*at].key == key)
            return true;
    return vec_push(&onces.rows, (once_row){.key = key});
}

/* Waits until the row is done, or free for this thread to do. *mine: this thread is to do it. */
static bp_status claim(void *key, uint32_t *at, bool *mine)
{
    uint64_t me = ctx_thread_id();
    *mine = false;
    if (!find_once(key, at))
        return BP_RESOURCE_EXHAUSTED;
    while (!onces.rows.at[*at].is_done && onces.rows.at[*at].thread && onces.rows.at[*at].thread != me)
        pthread_cond_wait(&onces.changed, &onces.lock);
    if (onces.rows.at[*at].is_done)
        return BP_OK;
    if (onces.rows.at[*at].thread == me)
        return BP_FAILED_PRECONDITION;
    onces.rows.at[*at].thread = me;
    *mine = true;
    return BP_OK;
}

/* A body that fails is not done: the next caller tries again. */
bp_status service_once(const bp_host *host, void *key, bp_status (*body)(void *arg), void *arg)
{
    (void)host;
    if (!key || !body)
        return BP_INVALID_ARGUMENT;
    uint32_t at;
    bool mine;
    pthread_mutex_lock(&onces.lock);
    bp_status st = claim(key, &at, &mine);
    pthread_mutex_unlock(&onces.lock);
    if (!mine)
        return st;
    st = body(arg);
    pthread_mutex_lock(&onces.lock);
    onces.rows.at[at].thread = 0;
    onces.rows.at[at].is_done = st == BP_OK;
    pthread_cond_broadcast(&onces.changed);
    pthread_mutex_unlock(&onces.lock);
    return st;
}
