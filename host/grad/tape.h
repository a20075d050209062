/* The eager tape: a dispatch mode at the bottom of every context's stack, which makes a node for each call whose result
 * requires grad, and backward over these nodes. docs/autograd.md has the rules.
 *
 * A tensor's opaque `grad` is a tape_meta. Nodes are counted; counts are atomic, everything else is the owner's thread,
 * but for backward of graphs that no other thread touches. */
#ifndef HOST_GRAD_TAPE_H
#define HOST_GRAD_TAPE_H
#include "host/grad/derivative.h"

typedef struct tape_node tape_node;

/* Where a gradient goes: into result `index` of `node`; NULL: nowhere. */
typedef struct { tape_node *node; uint32_t index; } tape_edge;

/* Installs the mode in a new context. */
bp_status tape_attach(bp_ctx *c);
/* The edge that gradients of t take: its maker, or its own accumulator if it is a leaf that requires grad. The node is
 * counted. */
tape_edge tape_edge_of(bp_ctx *c, bp_tensor *t);

/* -- nodes of other rooms: a compiled function -- */
typedef struct {
    const char *name;       /* "CompiledFunction": for messages and prints */
    /* grads: one a result (NULL: none flows); out: one an input, new references or NULL. create: under create_graph. */
    bp_status (*backward)(bp_ctx *c, void *state, bp_tensor *const *grads, bp_tensor **out, bool create);
    /* Frees what was saved: the graph is not retained. It may be called once. NULL: nothing is. */
    void (*release)(void *state);
    void (*destroy)(void *state);
} tape_fn;
/* Makes the results' history: they become non-leaves that require grad (NULL results are skipped). Inputs that require
 * no grad get no edge. Takes state over, also when it fails. */
bp_status tape_record(bp_ctx *c, const tape_fn *fn, void *state, bp_tensor *const *inputs, uint32_t ninputs,
                      bp_tensor *const *results, uint32_t nresults);

/* -- backward -- */
enum { TAPE_RETAIN = 1, TAPE_CREATE = 2, TAPE_ALLOW_UNUSED = 4 };
/* From roots with their gradients (NULL: ones, for a single number). inputs NULL: into leaves' .grad; else into out, one
 * new reference an input (NULL: it is unused, which is an error without TAPE_ALLOW_UNUSED). */
bp_status tape_backward(bp_ctx *c, bp_tensor *const *roots, bp_tensor *const *grads, uint32_t nroots,
                        bp_tensor *const *inputs, bp_tensor **out, uint32_t ninputs, uint32_t flags);
#endif
