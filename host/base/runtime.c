/* The runtime's life. Slots die in reverse order of rooms, since a room may use what the rooms before it keep. */
#define BP_WITHOUT_OPERATORS
#include "host/base/runtime.h"
#include "host/base/env.h"
#include "host/base/log.h"
#include <backplane/backplane.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t default_lock = PTHREAD_MUTEX_INITIALIZER;
static bp_runtime *default_runtime;

bp_runtime *bp_runtime_new(const char *config)
{
    bp_runtime *rt = calloc(1, sizeof *rt);
    if (!rt)
        return NULL;
    if (config && !(rt->config_path = strdup(config))) {
        free(rt);
        return NULL;
    }
    atomic_init(&rt->refs, 1);
    pthread_mutex_init(&rt->lock, NULL);
    pthread_mutex_init(&rt->log_lock, NULL);
    const char *logs = env_get(ENV_BACKPLANE_LOGS);
    if (logs)
        log_parse(rt, logs);
    return rt;
}

bp_runtime *runtime_ref(bp_runtime *rt)
{
    atomic_fetch_add_explicit(&rt->refs, 1, memory_order_relaxed);
    return rt;
}

void bp_runtime_unref(bp_runtime *rt)
{
    if (!rt || atomic_fetch_sub_explicit(&rt->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (int i = RT_ROOMS - 1; i >= 0; i--)
        if (rt->slot[i] && rt->slot_destroy[i])
            rt->slot_destroy[i](rt, rt->slot[i]);
    pthread_mutex_destroy(&rt->lock);
    pthread_mutex_destroy(&rt->log_lock);
    free(rt->config_path);
    free(rt);
}

bp_runtime *runtime_default(void)
{
    pthread_mutex_lock(&default_lock);
    if (!default_runtime)
        default_runtime = bp_runtime_new(NULL);
    pthread_mutex_unlock(&default_lock);
    return default_runtime;
}

void *runtime_slot(bp_runtime *rt, enum runtime_room room, void *(*make)(bp_runtime *rt),
                   void (*destroy)(bp_runtime *rt, void *slot))
{
    void *slot = atomic_load_explicit(&rt->slot[room], memory_order_acquire);
    if (slot)
        return slot;
    pthread_mutex_lock(&rt->lock);
    slot = rt->slot[room];
    if (!slot) {
        rt->slot_destroy[room] = destroy;
        slot = make(rt);
        atomic_store_explicit(&rt->slot[room], slot, memory_order_release);
    }
    pthread_mutex_unlock(&rt->lock);
    return slot;
}

void bp_set_log(bp_runtime *rt, bp_write_fn write, void *arg)
{
    rt = rt ? rt : runtime_default();
    if (!rt)
        return;
    pthread_mutex_lock(&rt->log_lock);
    rt->log_write = write;
    rt->log_arg = arg;
    pthread_mutex_unlock(&rt->log_lock);
}
