/* Slices: the value of a ref on this call's inputs, by reference kernels (C2.2).
 *
 * A value that the call has already is taken; the rest is computed from recorded items, which are functional, so
 * nothing of the caller's is ever written. Results are kept for the slicer's life. It runs real tensors at the bottom:
 * no modes, no grad, each random node at its own place in the stream. One thread's. */
#ifndef HOST_CAPTURE_SLICE_H
#define HOST_CAPTURE_SLICE_H
#include "host/capture/bind.h"
#include "host/sym/env.h"
#include "sdk/base/map.h"

typedef struct slicer slicer;

/* What a slice computes: items in order of recording, and the values that are wanted of them. */
typedef struct { const item *const *items; uint32_t nitems; const ref *outs; uint32_t nouts; } slice_plan;
/* Computes a plan otherwise than by reference kernels: a new reference in each of values. False: it does not, and the
 * context has no error. */
typedef bool slice_compute_fn(void *arg, slicer *s, const slice_plan *p, bp_tensor **values);

struct slicer {
    bp_ctx *c;
    bindings *vals;
    uint64_t rng_base;                           /* generator offset at the start of the transaction */
    const item *(*item_of)(void *arg, ref r);    /* the node that makes r; NULL: unknown */
    const sym_env *env;                          /* of the items' dims */
    const path_symbol *(*symbol_of)(void *arg, uint32_t k); /* where data tell symbol k; NULL: an input brought it */
    void *arg;
    map memo;                                    /* ref -> tensor, counted */
    uint32_t evaluated;                          /* nodes, by reference kernels */
    bool tapes;                   /* values that require grad get their history */
    slice_compute_fn *compute;                   /* asked for slices of SLICE_HEAVY operations or more; NULL: none */
    void *compute_arg;
};
enum { SLICE_HEAVY = 100000000 };

/* Borrowed. NULL: the context has the error. */
bp_tensor *slice_value(slicer *s, ref r);
/* A value that is there already, borrowed; NULL: it is not. */
bp_tensor *slice_have(slicer *s, ref r);
/* d's value in this call. The values that tell its symbols must be there. False: one is not, or an overflow. */
bool slice_dim(slicer *s, bp_dim d, int64_t *out);
void slice_fini(slicer *s);
/* The number in a 0-d tensor; a fake one has a number that stands for what only a run tells. */
bp_value number_value(const bp_tensor *t);
/* A copy of args in which each ref is the tensor that `get` gives for it, or the number in a wrapped one; memory from
 * a. NULL: get gave none, or no memory. */
bp_value *args_with_tensors(arena *a, const bp_value *args, uint32_t n, bp_tensor *(*get)(void *arg, ref r), void *arg);
#endif
