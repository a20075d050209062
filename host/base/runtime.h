/* The runtime: the process. Rooms keep their process-wide state (dispatch tables, registry, config) in slots. */
#ifndef HOST_BASE_RUNTIME_H
#define HOST_BASE_RUNTIME_H
#include <backplane/types.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct bp_runtime bp_runtime;
typedef void (*bp_write_fn_)(void *arg, const char *text, size_t n);

enum runtime_room { RT_OP, RT_CACHE, RT_BACKEND, RT_COMPILE, RT_ROOMS };

struct bp_runtime {
    atomic_uint refs;
    pthread_mutex_t lock;     /* guards slots' creation and the log; never held across a plugin's code */
    char *config_path;        /* one more ini file, or NULL */
    uint64_t log_mask;        /* bit of enum log_artifact */
    bp_write_fn_ log_write;   /* NULL: stderr */
    void *log_arg;
    pthread_mutex_t log_lock;
    atomic_uint stance;       /* host/compile's: what a call may do; 0: everything */
    _Atomic(void *) slot[RT_ROOMS]; /* read without the lock, made with it */
    void (*slot_destroy[RT_ROOMS])(bp_runtime *rt, void *slot);
};

bp_runtime *runtime_ref(bp_runtime *rt);
/* The process's own runtime, made at first use and never given up. Borrowed. NULL: out of memory. */
bp_runtime *runtime_default(void);
/* The room's slot, made by `make` at its first use (under the lock, once). NULL: make failed, and is tried again. */
void *runtime_slot(bp_runtime *rt, enum runtime_room room, void *(*make)(bp_runtime *rt),
                   void (*destroy)(bp_runtime *rt, void *slot));
#endif
