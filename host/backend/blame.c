/* Who is not asked again. A backend whose run failed where another succeeded is retired for that callable (its code),
 * and after DEGRADE_AFTER such runs for the process. Programs compare a generation number at each run, and look closer
 * only when it has moved. bp_reset clears all of it. */
#include "host/backend/room.h"
#include "host/base/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { uint64_t code, backend; } blame_key;

static str key_of(const blame_key *k)
{
    union { const blame_key *in; const char *bytes; } u = {k};
    return (str){u.bytes, sizeof *k};
}

bool backend_is_retired(const backend *b, uint64_t code)
{
    if (atomic_load_explicit(&b->state, memory_order_acquire) == STATE_DEGRADED)
        return true;
    backend_room *room = b->room;
    blame_key k = {code, b->id};
    pthread_mutex_lock(&room->lock);
    bool found = code && map_get(&room->retired, key_of(&k));
    pthread_mutex_unlock(&room->lock);
    return found;
}

/* Without memory for the mark the backend is merely asked again. */
static void mark(backend_room *room, backend *b, uint64_t code)
{
    bool is_new;
    blame_key k = {code, b->id};
    pthread_mutex_lock(&room->lock);
    if (code)
        map_put(&room->retired, key_of(&k), &is_new);
    pthread_mutex_unlock(&room->lock);
}

void backend_retire(backend *b, uint64_t code, const char *why, bool counts)
{
    mark(b->room, b, code);
    if (counts && atomic_fetch_add(&b->failed_runs, 1) + 1 == DEGRADE_AFTER) {
        backend_set_state(b, STATE_DEGRADED, "%d runs failed that another backend then did; the last: %s",
                          DEGRADE_AFTER,
                          why);
        log_warn(b->room->rt, "backend \"%s\" is not used any more in this process: %d of its runs failed (bp_reset "
                 "clears that)", b->name, DEGRADE_AFTER);
    }
    atomic_fetch_add_explicit(&b->room->generation, 1, memory_order_release);
}

bool backend_warn_once(backend_room *room, const char *text)
{
    bool is_new = false;
    pthread_mutex_lock(&room->lock);
    map_put(&room->warned, str_of(text), &is_new);
    pthread_mutex_unlock(&room->lock);
    if (is_new)
        log_warn(room->rt, "%s", text);
    return is_new;
}

/* -- objects that were released too often -------------------------------------------------------------------------- */

void backend_over_released(backend *b, const char *what)
{
    char text[200];
    snprintf(text, sizeof text, "backend \"%s\" released %s more often than it had references; that was ignored",
             b->name, what);
    backend_warn_once(b->room, text);
}

void backend_bury(backend_room *room, struct bp_compiled *k)
{
    pthread_mutex_lock(&room->lock);
    struct bp_compiled *old = room->graves[room->next_grave];
    room->graves[room->next_grave] = k;
    room->next_grave = (room->next_grave + 1) % (sizeof room->graves / sizeof *room->graves);
    pthread_mutex_unlock(&room->lock);
    free(old);
}

/* -- a fresh start ------------------------------------------------------------------------------------------------- */

/* As after loading. */
static enum backend_state fresh_state(const backend *b)
{
    return b->kind == ORIGIN_BUILTIN ? STATE_BUILTIN : b->kind == ORIGIN_CONFIG ? STATE_OK : STATE_REGISTERED;
}

void backend_reset(bp_runtime *rt)
{
    backend_room *room = backend_room_of(rt);
    if (!room)
        return;
    pthread_mutex_lock(&room->lock);
    map_fini(&room->retired);
    map_fini(&room->warned);
    for (uint32_t i = 0; i < room->backends.len; i++) {
        backend *b = room->backends.at[i];
        atomic_store(&b->failed_runs, 0);
        if (atomic_load(&b->state) == STATE_DEGRADED) {
            atomic_store(&b->why, "");
            atomic_store(&b->state, (int32_t)fresh_state(b));
        }
    }
    pthread_mutex_unlock(&room->lock);
    atomic_fetch_add_explicit(&room->generation, 1, memory_order_release);
}
