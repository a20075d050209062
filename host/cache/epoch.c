/* Epochs: each reader announces the time at which it entered; what was retired at or before the oldest of these times
 * is out of everybody's sight. */
#include "host/cache/epoch.h"
#include <stdlib.h>

struct epoch_cell {
    _Atomic uint64_t entered; /* 0: outside */
    uint32_t depth;           /* the owner's */
    bool taken;               /* under the lock */
    struct epoch_cell *next;
};

bp_status epochs_init(epochs *e)
{
    *e = (epochs){0};
    atomic_init(&e->now, 1);
    return pthread_mutex_init(&e->lock, NULL) ? BP_RESOURCE_EXHAUSTED : BP_OK;
}

static void destroy_all(epoch_link *list)
{
    while (list) {
        epoch_link *next = list->next;
        list->destroy(list);
        list = next;
    }
}

void epochs_fini(epochs *e)
{
    while (e->retired) { /* destroying may retire more */
        epoch_link *list = e->retired;
        e->retired = NULL;
        destroy_all(list);
    }
    while (e->cells) {
        struct epoch_cell *next = e->cells->next;
        free(e->cells);
        e->cells = next;
    }
    pthread_mutex_destroy(&e->lock);
}

struct epoch_cell *epoch_join(epochs *e)
{
    pthread_mutex_lock(&e->lock);
    struct epoch_cell *cell = e->cells;
    while (cell && cell->taken)
        cell = cell->next;
    if (!cell && (cell = calloc(1, sizeof *cell))) {
        cell->next = e->cells;
        e->cells = cell;
    }
    if (cell)
        cell->taken = true;
    pthread_mutex_unlock(&e->lock);
    return cell;
}

void epoch_part(epochs *e, struct epoch_cell *cell)
{
    pthread_mutex_lock(&e->lock);
    atomic_store(&cell->entered, 0);
    cell->depth = 0;
    cell->taken = false;
    pthread_mutex_unlock(&e->lock);
}

void epoch_enter(epochs *e, struct epoch_cell *cell)
{
    if (!cell->depth++)
        atomic_store(&cell->entered, atomic_load(&e->now));
}

void epoch_leave(epochs *e, struct epoch_cell *cell)
{
    if (--cell->depth)
        return;
    atomic_store_explicit(&cell->entered, 0, memory_order_release);
    if (atomic_load_explicit(&e->waiting, memory_order_relaxed))
        epoch_reclaim(e);
}

void epoch_retire(epochs *e, epoch_link *link, void (*destroy)(epoch_link *self))
{
    pthread_mutex_lock(&e->lock);
    link->destroy = destroy;
    link->since = atomic_fetch_add(&e->now, 1) + 1;
    link->next = e->retired;
    e->retired = link;
    atomic_fetch_add_explicit(&e->waiting, 1, memory_order_relaxed);
    pthread_mutex_unlock(&e->lock);
}

void epoch_reclaim(epochs *e)
{
    epoch_link *dead = NULL;
    pthread_mutex_lock(&e->lock);
    uint64_t oldest = UINT64_MAX;
    for (struct epoch_cell *cell = e->cells; cell; cell = cell->next) {
        uint64_t entered = atomic_load(&cell->entered);
        oldest = entered && entered < oldest ? entered : oldest;
    }
    for (epoch_link **at = &e->retired; *at;) {
        epoch_link *link = *at;
        if (link->since > oldest) {
            at = &link->next;
            continue;
        }
        *at = link->next;
        link->next = dead;
        dead = link;
        atomic_fetch_sub_explicit(&e->waiting, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&e->lock);
    destroy_all(dead);
}
