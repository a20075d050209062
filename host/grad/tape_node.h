/* What the files of the tape share: nodes, what tensors know of them, saved values. */
#ifndef HOST_GRAD_TAPE_NODE_H
#define HOST_GRAD_TAPE_NODE_H
#include "host/grad/tape.h"
#include "sdk/base/vec.h"

/* A hook: on a gradient (may return another one), or behind a leaf's accumulation. */
typedef struct {
    uint64_t id;
    uint32_t index; /* of the result, on a node that an operator made */
    bp_tensor *(*on_grad)(bp_ctx *c, bp_tensor *grad, void *arg);
    void (*behind)(bp_ctx *c, bp_tensor *leaf, void *arg);
    void *arg;
    void (*destroy)(void *arg);
} tape_hook;
typedef VEC(tape_hook) tape_hooks;

/* What a tensor knows. A leaf's is shared by the threads that use it: accumulator and grad are under tape_lock. */
typedef struct {
    tape_node *node;        /* what made it, counted; NULL: a leaf */
    uint32_t index;         /* which of its results it is */
    uint64_t version;       /* of its storage when node was right; a view's is rebuilt when it has moved */
    tape_node *accumulator; /* of a leaf, not counted */
    bp_tensor *grad;        /* of a leaf: `.grad`, counted */
    tape_hooks hooks;       /* of a leaf */
} tape_meta;

/* One tensor that a node had as argument or result. */
enum saved_kind { SAVED_NONE, SAVED_META, SAVED_INPUT, SAVED_RESULT };
typedef struct {
    bp_tensor *t;           /* counted; mostly memory without its history. NULL: metadata alone, or freed */
    tensor_meta meta;       /* its arrays live in the node */
    uint64_t version;
    uint8_t kind;
    bool requires;          /* a result that requires grad */
} saved;

enum node_kind { NODE_OP, NODE_FN, NODE_LEAF, NODE_VIEW, NODE_SCATTER, NODE_FAIL };

typedef struct node_chunk node_chunk;
struct tape_node {
    atomic_uint refs;
    uint8_t kind, freed, saves; /* freed: what it saved is gone; saves: it saved something */
    uint32_t ninputs, nresults;
    uint64_t seq;               /* nodes are numbered as they are made: an edge leads to a smaller number */
    tape_edge *edges;           /* one an input; a node that is counted, or NULL */
    saved *results;
    const op_row *op;           /* functional; NODE_OP, NODE_FAIL */
    const char *label;          /* for messages */
    const char *file;           /* where it was called, or NULL */
    int32_t line;
    tape_hooks hooks;
    node_chunk *memory;
    tape_node *next_dead;
    union {
        struct { const grad_row *row; bp_value *args; saved *saved; uint8_t *needs; struct custom_saved *own; } call;
        struct { const tape_fn *fn; void *state; tensor_meta *inputs; } own;
        struct { bp_tensor *leaf; } leaf;
        /* A view of a base, by its layout; and a write to such a view: `inner` made the new values of it. */
        struct { tensor_meta base, part; tape_node *inner; } view;
    } u;
};

/* -- tape_node.c -- */
/* One reference; room for its edges and results, which are zero. NULL: out of memory, and the context says so. */
tape_node *tape_node_new(bp_ctx *c, enum node_kind kind, uint32_t ninputs, uint32_t nresults);
/* Numbers it, once it has its edges. */
void tape_node_number(tape_node *n);
void *tape_node_alloc(bp_ctx *c, tape_node *n, size_t nbytes); /* zeroed, dies with the node */
bool tape_node_meta(bp_ctx *c, tape_node *n, const bp_tensor *t, tensor_meta *out); /* a copy of t's metadata */
bool tape_node_meta_copy(bp_ctx *c, tape_node *n, const tensor_meta *m, tensor_meta *out);
tape_node *tape_node_ref(tape_node *n);
void tape_node_unref(tape_node *n); /* NULL: nothing. Does not recur */
void tape_node_free_saved(tape_node *n);

/* What t knows; made when it knows nothing. NULL: out of memory. */
tape_meta *tape_meta_of(bp_ctx *c, bp_tensor *t);
static inline tape_meta *tape_meta_get(const bp_tensor *t) { return t->grad; }
/* t's history from now on: result `index` of n (counted here). */
bp_status tape_set_node(bp_ctx *c, bp_tensor *t, tape_node *n, uint32_t index);
/* t has no history from now on. */
bp_status tape_forget(bp_tensor *t);
/* Whether the caller's reference is the only way to t's memory, but for a base that t alone holds. */
bool tape_is_alone(const bp_tensor *t);
void tape_lock(void);
void tape_unlock(void);
static inline bool tape_differentiable(bp_dtype d) { return dtype_is_float(d) || dtype_is_complex(d); }
static inline bool tape_requires(const bp_tensor *t) { return (t->flags & TENSOR_REQUIRES_GRAD) != 0; }
static inline uint64_t tape_version(const bp_tensor *t)
{
    return atomic_load_explicit(&t->store->version, memory_order_relaxed);
}

/* -- tape_save.c -- */
/* Copies args into n; tensors become saved values by need: `reads` says which arguments are read as data. */
bp_status save_args(bp_ctx *c, tape_node *n, const bp_value *args, const formula_reads *reads);
bp_status save_result(bp_ctx *c, tape_node *n, uint32_t i, bp_tensor *t, bool read);
/* Input `at`, whose metadata are saved already, is read as data too. */
bp_status save_input_data(bp_ctx *c, tape_node *n, uint32_t at, bp_tensor *t);
/* The saved value as a derivative is to see it, owned by the innermost scope: the tensor, or a fake of its metadata. */
bp_tensor *saved_get(bp_ctx *c, tape_node *n, const saved *s, const char *what, uint32_t result);

/* -- tape_run.c -- */
/* Gradients of n's inputs from those of its results. wanted: one an input; out: one an input, NULL before, then new
 * references or NULL. Grad mode is the caller's: on under create. */
bp_status tape_node_run(bp_ctx *c, tape_node *n, bp_tensor *const *grads, const uint8_t *wanted, bp_tensor **out,
                   bool create);

/* -- tape_composite.c -- */
bool composite_is(const op_row *op); /* whether it is differentiated by its parts */
/* Runs k as the parts of the functional row `op` on args; they come back to the tape: to the mode `self`, or, NULL, to
 * the bottom. */
bp_status composite_run(bp_ctx *c, dispatch_mode *self, op_call *k, const op_row *op, bp_value *args);

/* -- tape_view.c -- */
/* Makes sure that what t knows is right: a view of a base that was written since gets its history anew. */
bp_status view_refresh(bp_ctx *c, bp_tensor *t);
/* Makes t's history that of a view of t->base, which requires grad. */
bp_status view_record(bp_ctx *c, bp_tensor *t);
/* t, a view of t->base, was written by n: the base's history becomes a scatter of it. */
bp_status view_wrote(bp_ctx *c, bp_tensor *t, tape_node *n);
/* That scatter alone, a new reference; NULL: the context says why. */
tape_node *view_scatter(bp_ctx *c, bp_tensor *t, const tape_node *n);
bp_status view_run(bp_ctx *c, tape_node *n, bp_tensor *const *grads, const uint8_t *wanted, bp_tensor **out,
                   bool create);

/* -- tape_leaf.c -- */
bp_status leaf_accumulate(bp_ctx *c, tape_node *n, bp_tensor *grad, bool create);
/* Runs the hooks of result `index`: *grad, a reference of the caller's, is replaced by what they give. */
bp_status hooks_run(bp_ctx *c, tape_node *n, uint32_t index, bp_tensor **grad);
/* Adds a hook to t: to its own if it is a leaf, else to its maker. The hook's number, 0 on failure. */
uint64_t hook_add(bp_ctx *c, bp_tensor *t, tape_hook h);
bool hook_remove(bp_tensor *t, uint64_t id);
#endif
