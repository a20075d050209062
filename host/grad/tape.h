/* The eager tape: it stands at the bottom of every context's stack of modes, makes a node for each call whose result
 * requires grad, and runs backward over these nodes. docs/autograd.md has the rules.
 *
 * A tensor's opaque `grad` is the tape's. Nodes are counted; counts are atomic, leaves are locked, everything else is
 * the owner's thread: backward of graphs that no other thread touches, but for their leaves. */
#ifndef HOST_GRAD_TAPE_H
#define HOST_GRAD_TAPE_H
#include "host/grad/derivative.h"

typedef struct tape_node tape_node;

/* Where a gradient goes: into result `index` of `node`; NULL: nowhere. */
typedef struct { tape_node *node; uint32_t index; } tape_edge;

/* Puts the tape under a new context's modes, and above its kernels. */
void tape_attach(bp_ctx *c);
/* The tape as a mode over another one, which must answer every call itself (a recorder of fakes): push the recorder,
 * then this. Backward that is run while both are on the stack is recorded too. */
void tape_mode_init(dispatch_mode *m);
/* The edge that gradients of t take: its maker, or its own accumulator if it is a leaf that requires grad. The node is
 * counted; tape_edge_drop gives it up. */
tape_edge tape_edge_of(bp_ctx *c, bp_tensor *t);
void tape_edge_drop(tape_edge e);

/* -- nodes of other rooms: a compiled function -- */
typedef struct {
    const char *name;       /* "CompiledFunction": for messages and prints; lives as long as the process */
    /* grads: one a result (NULL: none flows); out: one an input, NULL before; new references or NULL. Gradients are
     * summed and cast to their inputs by the tape. create: under create_graph. */
    bp_status (*backward)(bp_ctx *c, void *state, bp_tensor *const *grads, bp_tensor **out, bool create);
    /* Frees what was saved: the graph is not retained. It may be called once. NULL: nothing is. */
    void (*release)(void *state);
    void (*destroy)(void *state);
} tape_fn;
/* Makes the results' history: they become non-leaves that require grad; NULL results, and those of a type that has no
 * gradients, are skipped. Inputs that are NULL or require no grad get no edge. Takes state over, also on failure. */
bp_status tape_record(bp_ctx *c, const tape_fn *fn, void *state, bp_tensor *const *inputs, uint32_t ninputs,
                      bp_tensor *const *results, uint32_t nresults);
/* The state of the node of kind `fn` that made t; NULL: something else did. Borrowed. */
void *tape_state_of(const bp_tensor *t, const tape_fn *fn);

/* -- backward -- */
enum { TAPE_RETAIN = 1, TAPE_CREATE = 2, TAPE_ALLOW_UNUSED = 4 };
/* From roots with their gradients (NULL: ones, for a single number). inputs NULL: into leaves' .grad; else into out, a
 * new reference for each input (NULL: it is unused, which is an error without TAPE_ALLOW_UNUSED). TAPE_CREATE retains
 * the graph too. Calls go through the context's modes. */
bp_status tape_backward(bp_ctx *c, bp_tensor *const *roots, bp_tensor *const *grads, uint32_t nroots,
                        bp_tensor *const *inputs, bp_tensor **out, uint32_t ninputs, uint32_t flags);

/* -- what a tensor knows -- */
/* `.grad` of a leaf, a new reference; NULL: there is none. */
bp_tensor *tape_grad_of(bp_tensor *t);
#endif
