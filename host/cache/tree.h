/* The trace tree of a code: nodes are segments with their guards, edges are outcomes.
 *
 * A place is where nodes hang: the root, or an outcome of a node's break. Several nodes at one place are variants that
 * differ by their guards; whichever served last is tried first, then the newest. Nodes are immutable once they
 * are published; lists of nodes and of places are replaced whole, by one atomic store, by whoever has the code's claim.
 * Readers take no lock and are inside an epoch. */
#ifndef HOST_CACHE_TREE_H
#define HOST_CACHE_TREE_H
#include "host/cache/segment.h"
#include "host/capture/trace.h"
#include "host/guard/guard.h"

typedef struct tree_node tree_node;
typedef struct { epoch_link link; uint32_t n; tree_node *at[]; } node_list;
typedef struct place {
    outcome out;
    tree_node *parent;            /* NULL: the root */
    _Atomic(node_list *) nodes;   /* NULL: none */
    _Atomic(tree_node *) last;    /* the one of them that served last, or is new: a hint, which any reader sets */
} place;
typedef struct { epoch_link link; uint32_t n; place *at[]; } place_list;

/* An attribute of a module, or a constant, that a node's segment reads first. */
typedef struct { struct bp_module *module; uint32_t entry; bp_tensor *constant; } node_attr;

struct tree_node {
    arena arena;                  /* items, attributes */
    tree_node *parent;
    guard_set *guards;            /* what it needs beyond what its parents checked */
    const node_attr *attrs;       /* appended to the call's inputs before its guards are checked */
    uint32_t nattrs, ninputs;     /* ninputs: with its attributes */
    uint32_t depth;               /* breaks before it */
    /* the segment */
    const item *items;            /* nodes only */
    const item *term;             /* the break or the end behind them; NULL: calls that come here run eagerly */
    const char *reason;           /* then: why */
    uint32_t first_item, nitems;  /* place on the path */
    ref first_value, end_value;   /* values that its items make */
    bp_dim rng_start;
    ambient ambient;
    const item **extras;          /* items of the prefix that it recomputes (C3.2), in order; their values come first */
    uint32_t nextras, nextra_values;
    const uint32_t *written;      /* inputs that its segment writes first */
    uint32_t nwritten;
    const guard_source *sources;  /* names and roles of its inputs; ninputs of them */
    /* symbols: of its env, whose ids mean the same all along the path */
    sym_env *env;                 /* counted; NULL: no dim of it is a symbol */
    uint32_t nsymbols, end_symbol; /* nsymbols: that its guards or data read; end_symbol: of its path, with its own */
    const source_plan *plans;     /* of the sources that were first asked for here */
    uint32_t nplans;
    const struct node_meta { uint32_t source; tensor_meta meta; } *metas; /* of inputs with symbols, first seen here */
    uint32_t nmetas;
    const path_symbol *told;      /* symbols that data tell, found or found anew here */
    uint32_t ntold;
    bool prepares;                /* its attributes or symbols need room before its guards are checked */
    segment_list *list;           /* what the canonical graph hands on */
    _Atomic(segment_use *) use;   /* its compiled form, for the list as it was then; NULL: not built */
    _Atomic(const struct tree_node *) first_end; /* of a root: the first of its paths that ended (C6.4) */
    atomic_bool checked;          /* check_capture = first_hit has seen it */
    atomic_bool open;             /* unseen outcomes run eagerly (C2.4) */
    _Atomic(place_list *) places;
};

/* A node's own memory; items are copied by the caller. NULL: out of memory. */
tree_node *node_new(void);
/* Frees a node that was never published. */
void node_destroy(tree_node *n);
/* Frees a place's nodes and everything below them; no reader is left. */
void place_destroy_nodes(place *p);

/* -- readers -- */
static inline node_list *place_nodes(place *p) { return p ? atomic_load(&p->nodes) : NULL; }
static inline tree_node *place_last(place *p) { return atomic_load_explicit(&p->last, memory_order_acquire); }
static inline void place_note_hit(place *p, tree_node *n) { atomic_store_explicit(&p->last, n, memory_order_release); }
/* The place of an outcome; NULL: unseen. */
place *node_place(const tree_node *n, outcome o);
uint32_t node_place_count(const tree_node *n);
/* The path item k, looked up from n towards the root. NULL: behind n's end. */
const item *node_item(const tree_node *n, uint32_t k);
/* What input i looks like on n's path, when it has symbols; NULL: it has none. */
const tensor_meta *node_meta_of(const tree_node *n, uint32_t i);
/* Where data tell symbol k on n's path; NULL: an input brings it. */
const path_symbol *node_symbol(const tree_node *n, uint32_t k);
/* The node of n's path that makes value r, or NULL. */
tree_node *node_of_value(tree_node *n, ref r);

/* -- with the code's claim -- */
/* The place of an outcome, made if need be. NULL: out of memory. */
place *node_add_place(epochs *e, tree_node *n, outcome o);
/* Publishes n in front of a place's nodes. */
bool place_add(epochs *e, place *p, tree_node *n);
#endif
