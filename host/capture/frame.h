/* Frames: one call of a captured function, as its C code sees it.
 *
 * An eager frame gives the arguments as they are; a captured one gives the fakes of a trace. A callable that is called
 * under capture gets an eager frame over fakes: it is inlined (C6.5). */
#ifndef HOST_CAPTURE_FRAME_H
#define HOST_CAPTURE_FRAME_H
#include "host/capture/path.h"
#include "sdk/base/vec.h"
#include <backplane/backplane.h>

typedef struct trace trace;
struct bp_frame {
    bp_ctx *c;
    trace *trace; /* whose sources the arguments are; NULL: they are args */
    const bp_value *args;
    void *user;
    uint32_t nargs;
    bool failed; /* out of memory in bp_return; told when the function ends */
    VEC(bp_tensor *) returns; /* a reference each; entries may be NULL */
    arena trees; /* what bp_arg_tree gave, and spec */
    const char *spec; /* of bp_return_tree; NULL: bp_return */
};

/* Checks that the arguments have kinds that a function can take, and that no tensor is a leftover of a capture. */
bp_status args_check(bp_ctx *c, const bp_args *args);
void frame_init(bp_frame *f, bp_ctx *c, const bp_value *args, uint32_t nargs, void *user);
void frame_fini(bp_frame *f);
/* Runs fn in a scope of its own; its results survive it. Returns the context's error. */
bp_status frame_run(bp_frame *f, bp_fn fn);
/* Hands the results to the context's scope and lists them in outs. */
bp_status frame_give(bp_frame *f, bp_outputs *outs);
/* p lives as long as the scope, which then calls release(p, _). False: out of memory, and it has been called. */
bool frame_keep(bp_ctx *c, void *p, size_t nbytes, void (*release)(void *p, void *data));
/* Makes room for n results in outs: checks a caller's array, or makes one that lives as long as the scope. */
bp_status outputs_reserve_more(bp_ctx *c, bp_outputs *outs, uint32_t n);
static inline bp_status outputs_reserve(bp_ctx *c, bp_outputs *outs, uint32_t n)
{
    if (!outs->at || n > outs->cap)
        return outputs_reserve_more(c, outs, n);
    outs->n = n;
    return BP_OK;
}

/* -- a context's part in captures -- */
typedef struct {
    trace *current; /* the capture that runs */
    trace *resumed; /* the innermost function that went on for real behind a replay */
    uint32_t turn, depth;
    struct tree_wish *wish; /* of the innermost bp_call_tree */
} capture_slot;
/* NULL: out of memory, the context says so. */
capture_slot *capture_slot_get(bp_ctx *c);
/* The capture that runs on this context, or NULL. */
static inline trace *capture_current(const bp_ctx *c)
{
    const capture_slot *slot = c->slot[CTX_CAPTURE];
    return slot ? slot->current : NULL;
}
/* The innermost function of this context that went on for real behind a replay, or NULL. */
static inline trace *capture_resumed(const bp_ctx *c)
{
    const capture_slot *slot = c->slot[CTX_CAPTURE];
    return slot ? slot->resumed : NULL;
}
#endif
