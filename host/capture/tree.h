/* Nested values of calls, flattened: leaves in order, and a text of the structure, their spec.
 *
 *     [*, {"a": int, "b": [*, None]}]
 *
 * `*` is a tensor; int, float, bool, str are leaves too; None is part of the structure and no leaf. A call passes the
 * spec as its argument 0, a string that is guarded by value, so that graphs and all that is below know flat values
 * only. The spec of results lies with the end of a path (path.h), since each path may give another. */
#ifndef HOST_CAPTURE_TREE_H
#define HOST_CAPTURE_TREE_H
#include "host/capture/frame.h"
#include "sdk/base/str.h"

enum { TREE_DEPTH = 64 };

typedef struct {
    buf spec;
    VEC(bp_value) leaves;
} flat_tree;
/* Adds t's leaves and its spec. name: of t, for errors: INVALID_ARGUMENT names the path of what is wrong. tensors_only:
 * a leaf that is none is an error. Leaves are borrowed. to is the caller's to free, also after an error. */
bp_status tree_flatten(bp_ctx *c, const char *name, const bp_value *t, bool tensors_only, flat_tree *to);
void flat_tree_fini(flat_tree *t);

/* Gives leaf i of that kind, named by its path ("in.0.a"). An error ends the building. */
typedef bp_status (*tree_leaf_fn)(void *arg, uint32_t i, uint32_t kind, const char *name, bp_value *out);
/* Builds the tree of a spec in a. nleaves: that many there must be. */
bp_status tree_build(bp_ctx *c, arena *a, const char *spec, uint32_t nleaves, tree_leaf_fn leaf, void *arg,
                     bp_value *out);

/* A bp_call_tree that waits for results: on whose outputs, and what their spec is. A list on the stack, in the slot. */
typedef struct tree_wish {
    const bp_outputs *outs;
    char *spec; /* malloc'ed; NULL: results are a plain list */
    struct tree_wish *outer;
} tree_wish;
/* Tells the spec of what outs is about to hold (NULL: none) to who waits for it, if anybody does. */
bp_status tree_give(bp_ctx *c, const bp_outputs *outs, const char *spec);
#endif
