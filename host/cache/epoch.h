/* Memory that lock-free readers may still see: it is retired, and freed when every reader that could hold it has left.
 *
 * A reader is a context inside bp_call (nested calls count once). What a reader follows must have been loaded, and what
 * is retired must have been unpublished, by sequentially consistent atomics. */
#ifndef HOST_CACHE_EPOCH_H
#define HOST_CACHE_EPOCH_H
#include "host/base/ctx.h"

/* The first member of what is retired. */
typedef struct epoch_link epoch_link;
struct epoch_link {
    epoch_link *next;
    uint64_t since;
    void (*destroy)(epoch_link *self); /* runs on any thread, with no lock held */
};

typedef struct epochs {
    pthread_mutex_t lock;
    _Atomic uint64_t now;      /* starts at 1 */
    struct epoch_cell *cells;  /* one a context that ever called; freed with the runtime's slot */
    epoch_link *retired;
    atomic_uint waiting;
} epochs;

bp_status epochs_init(epochs *e);
/* Destroys everything that waits. No reader is inside. */
void epochs_fini(epochs *e);
/* A context's cell; the caller keeps it in its slot and gives it back when the context ends. NULL: out of memory. */
struct epoch_cell *epoch_join(epochs *e);
void epoch_part(epochs *e, struct epoch_cell *cell);
void epoch_enter(epochs *e, struct epoch_cell *cell);
/* Leaving destroys what nobody can see any more. */
void epoch_leave(epochs *e, struct epoch_cell *cell);
void epoch_retire(epochs *e, epoch_link *link, void (*destroy)(epoch_link *self));
/* Destroys what nobody can see. */
void epoch_reclaim(epochs *e);
#endif
