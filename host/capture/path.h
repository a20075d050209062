/* A path: what one run of a captured function recorded, as a list of items.
 *
 * Items are operator calls on functionalized values, breaks (a value was asked for), opaque steps and one end. A value
 * is known by a ref: an input of the call, the range of memory under overlapping inputs, or the result of a node,
 * numbered from 1 in the order of recording. Since the C function is deterministic between breaks, equal outcomes give
 * equal refs: a ref means the same in every call that takes the path. In an item's arguments a tensor is a NODE that
 * holds its ref.
 *
 * An opaque step commits (C1.2): what the function wrote is written, and each storage that it made and can still reach
 * becomes an input of the call, and so do the step's results. All inputs are read again behind it. */
#ifndef HOST_CAPTURE_PATH_H
#define HOST_CAPTURE_PATH_H
#include "host/capture/outcome.h"
#include "host/op/op.h"
#include <backplane/backplane.h>

typedef uint32_t ref;
#define REF_INPUT (1u << 30)   /* | source: an input as the call brought it */
#define REF_BASE (2u << 30)    /* | first source: the memory under a component of overlapping inputs (C6.2) */
#define REF_PARAM (3u << 30)   /* | number: what a graph inside the path takes; in no item of the path itself */
#define REF_SYMBOL (3u << 30)  /* | number: a symbol's value as a 0-d integer tensor, as a segment's input */
#define REF_KINDS (3u << 30)
static inline uint32_t ref_kind(ref r) { return r & REF_KINDS; }
static inline uint32_t ref_index(ref r) { return r & ~REF_KINDS; }
static inline bool ref_is_node(ref r) { return r && !ref_kind(r); }

/* Where a symbol that data tell is found on a path: a size of a value, or its one element (SYM_VALUE). Behind an opaque
 * step it may be found elsewhere: the nearest place counts. */
typedef struct { ref value; uint32_t symbol; uint8_t kind, dim; } path_symbol;

/* What a view is to autograd: its memory's history is its own; it was made without grad mode, which keeps it apart from
 * that history; it was detached; it is one of several views that an operator gave together. */
enum view_kind { VIEW_PLAIN, VIEW_WITHOUT_GRAD, VIEW_DETACHED, VIEW_OF_MANY };

/* A returned tensor. Equal handles are the same object; equal storages share memory. */
typedef struct {
    uint32_t handle;       /* 0: a NULL result */
    int32_t source;        /* >= 0: this input, or a view of it; -1: made by the function */
    bool is_source;        /* it is that very object */
    uint32_t storage;      /* number of the storage, when made */
    ref value;             /* the storage's last value, when made */
    tensor_meta meta;      /* of the tensor; its offset counts from the source's, or from the storage's start */
    tensor_meta base;      /* layout of the whole storage, when made */
    bool requires_grad;
    uint8_t view;          /* enum view_kind */
} out_spec;

/* An input whose memory must hold `value` after the call. whole: the range under its component, else the input.
 * requires_grad: its history is then the value's, as a result; else it keeps what it has. */
typedef struct { uint32_t source; bool whole, requires_grad; ref value; } write_spec;

/* What runs once a call, as it is (C4.2, C4.4): a function, or an operator that cannot be captured. */
typedef struct {
    bp_fn fn;
    void *user;
    const op_row *op;             /* NULL: fn */
    const bp_value *args;         /* a tensor is a NODE that holds its place in the item's outs */
    uint32_t nargs;
    uint32_t nobjects;            /* outs[0 .. nobjects) are its tensors, the others what becomes an input */
    ambient ambient;
    const char *reason;           /* why it is one: "bp_print is called" */
} step_spec;

enum item_kind { ITEM_NODE = 1, ITEM_BREAK, ITEM_END, ITEM_STEP };
typedef struct item {
    enum item_kind kind;
    int32_t line;
    const char *file;             /* where the C code stood, or NULL */
    union {
        struct {
            const op_row *op;
            const bp_value *args; /* one a schema argument */
            tensor_meta *metas;   /* one a result */
            const uint8_t *requires; /* one a result: it requires grad; NULL: none does */
            const ref *needs;     /* values that tell the symbols in its arguments */
            bp_dim number;        /* of an item node that gives an integer: the symbol that it is */
            ref first;            /* of its results */
            uint32_t nargs, nresults, nneeds;
            bool returns_list, symbolic; /* symbolic: an argument has a symbol in it */
            bp_dim rng_offset;    /* where its numbers start, from the transaction's base */
        } node;
        struct { enum ask_kind ask; ref value; } brk;
        struct {
            const out_spec *outs;
            const write_spec *writes; /* in order of sources */
            uint32_t nouts, nwrites;
            bp_dim rng_total;     /* by which the generator moves */
            const step_spec *step; /* of ITEM_STEP */
            const char *tree;     /* the spec of bp_return_tree, or NULL */
            const path_symbol *symbols; /* that data tell, in the metadata of outs and in the step's arguments */
            uint32_t nsymbols;
            bool symbolic;        /* some metadata, or some argument of the step, has a symbol in it */
            bool is_plain;        /* each output is whole, made here and shares nothing; nothing is written, no tree */
        } end;
    };
} item;

/* Calls each for every ref in an item's arguments, in order; an item may name a ref several times. */
void item_each_ref(const item *it, void (*each)(void *arg, ref r), void *arg);
/* Whether result r of an item requires grad. */
static inline bool item_requires(const item *it, ref r)
{
    return it->node.requires && it->node.requires[r - it->node.first];
}
/* Whether a replay recorded the same: operators, arguments, layouts, what is asked. Places do not count. */
bool item_eq(const item *a, const item *b);
/* Calls each for every dim of a value, or of metadata. */
void value_each_dim(const bp_value *v, void (*each)(void *arg, bp_dim d), void *arg);
void meta_each_dim(const tensor_meta *m, void (*each)(void *arg, bp_dim d), void *arg);
/* The same for all that an end or a step says. */
void end_each_dim(const item *it, void (*each)(void *arg, bp_dim d), void *arg);
/* A copy that lives in a. NULL pointers inside it (out of memory) make the result false. */
bool item_copy(arena *a, const item *from, item *to);
/* Copies of values and metadata in an arena. On failure ok becomes false. */
bp_value value_copy(arena *a, const bp_value *v, bool *ok);
tensor_meta meta_copy(arena *a, const tensor_meta *m, bool *ok);
/* Written alike; asks nothing. The offset does not count. */
bool meta_eq(const tensor_meta *a, const tensor_meta *b);
/* "%3 = aten.add.Scalar(b, 1)", for the capture log and for messages on impure functions. */
void item_print(const item *it, buf *out);
/* The canonical text of a value in which refs are renamed by `name` (NULL: as they are). */
void value_print(const bp_value *v, void (*name)(void *arg, ref r, buf *out), void *arg, buf *out);
void meta_print(const tensor_meta *m, buf *out);
#endif
