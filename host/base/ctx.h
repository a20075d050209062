/* The context: one thread's state. Rooms to the right keep what is theirs in an opaque slot. */
#ifndef HOST_BASE_CTX_H
#define HOST_BASE_CTX_H
#include "host/base/diag.h"
#include "host/base/runtime.h"
#include "sdk/base/arena.h"

typedef struct bp_ctx bp_ctx;

/* Modes that guards watch. One struct without padding, so that a snapshot is a copy and a guard is a comparison of
 * bytes. host/guard/ambient.def names the fields in the order in which a mismatch is explained. */
typedef struct {
    uint8_t grad_enabled, inference_mode, deterministic, allow_tf32;
    int32_t autocast_dtype; /* BP_DTYPE_UNSET: off */
    int32_t default_dtype;
    bp_device default_device;
    uint32_t num_threads;
} ambient;

/* A dispatch mode: sees each operator call before the one below it. host/op gives `call` its meaning (an op_call).
 * Reference kernels are the bottom and are not on the stack. */
typedef struct dispatch_mode dispatch_mode;
struct dispatch_mode {
    bp_status (*call)(bp_ctx *c, dispatch_mode *self, void *op_call);
    dispatch_mode *below;
    const char *name;
};

/* Which room owns a slot, in the order of dependence. */
enum ctx_room { CTX_TENSOR, CTX_OP, CTX_GRAD, CTX_CAPTURE, CTX_CACHE, CTX_BACKEND, CTX_COMPILE, CTX_NN, CTX_ROOMS };

struct bp_ctx {
    diag diag;                /* first: most functions touch it */
    bp_runtime *rt;           /* counted */
    ambient ambient;
    dispatch_mode *modes;     /* top of the stack, NULL: straight to the bottom */
    bp_status (*bottom)(bp_ctx *c, void *op_call); /* below all modes: the tape. NULL: the kernels */
    arena scratch;            /* dies when the outermost operator call ends */
    uint64_t seed, rng_offset; /* the generator: Philox (seed, offset) */
    const char *site_file;    /* where the operator being called was written, or NULL */
    int32_t site_line;
    uint32_t busy;            /* depth of bp_call, for the owner check */
    uint32_t capturing;       /* > 0 while a function is captured: host memory may be neither read nor made a tensor */
    uint64_t thread;          /* id of the thread that uses it */
    bp_write_fn_ sink;        /* where printing backends write; NULL: stdout */
    void *sink_arg;
    void *slot[CTX_ROOMS];
    void (*slot_destroy[CTX_ROOMS])(bp_ctx *c, void *slot);
};

/* What a room's slot of the runtime and of a context looks like is that room's affair; NULL until first used. */
#define ctx_fail(c, ...) diag_fail(&(c)->diag, __VA_ARGS__)
#define ctx_nomem(c) diag_nomem(&(c)->diag)
#define ctx_ok(c) ((c)->diag.code == BP_OK)
/* A context without a tape: what bp_ctx_new is made of. */
bp_ctx *ctx_new(bp_runtime *rt);
/* The number of the calling thread: unique while it lives, never 0. */
uint64_t ctx_thread_id(void);
#endif
