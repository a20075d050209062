/* A joint graph on its way to a partition: what each node is for, what it costs, and which values are saved. Internal
 * to host/grad.
 *
 *     partitioner_init   classes of nodes: forward, behind a tangent, wanted by a gradient
 *     partitioner_*      a set of saved values: the default one, a cut, a cut within a budget
 *     partition.c        two graphs out of it */
#ifndef HOST_GRAD_PARTITIONER_H
#define HOST_GRAD_PARTITIONER_H
#include "host/grad/joint.h"

enum {
    PART_FORWARD = 1, /* outputs need it, or it runs exactly once: random, or it may fail on data */
    PART_TANGENT = 2, /* a tangent leads to it: it can only be computed in the backward */
    PART_WANTED = 4,  /* it leads to a gradient */
    PART_GIVEN = 8    /* it is a gradient itself */
};

typedef struct {
    bp_ctx *c;
    const joint *j;
    const graph *g;
    const partition_options *o;
    arena a;
    uint32_t n;          /* nodes in program order, without the output */
    node_id *nodes;
    /* by node id: */
    uint8_t *is;         /* PART_* */
    uint8_t *tag;        /* PARTITION_TAG_* */
    uint32_t *order;     /* place in nodes */
    uint8_t *saved;
} partitioner;

bp_status partitioner_init(partitioner *p, bp_ctx *c, const joint *j, const partition_options *o);
void partitioner_fini(partitioner *p);

static inline const graph_node *partitioner_node(const partitioner *p, node_id n) { return graph_get(p->g, n); }
/* OP_*; 0 for what is no known operator. */
static inline uint32_t partitioner_flags(const graph_node *n) { return n->row ? n->row->flags : 0; }
/* Whether a node gives one tensor, which can be saved; not a list, not a number. */
bool partitioner_is_tensor(const graph_node *n);
/* Whether it must not be computed twice: random numbers, effects, what tells a symbol. */
bool partitioner_runs_once(const partitioner *p, node_id id);
/* The same, or it is a part of what such a node gives. */
bool partitioner_is_drawn(const partitioner *p, node_id id);
bool partitioner_is_view(const graph_node *n);
uint64_t partitioner_bytes(const graph_node *n);
/* What computing it takes, roughly: multiplications of matrices and convolutions count in full. */
uint64_t partitioner_flops(const partitioner *p, node_id n);
/* A saved value that costs nothing: a parameter or a buffer, which the caller has anyway. */
bool partitioner_is_free(const graph_node *n);
uint64_t partitioner_saved_bytes(const partitioner *p);
/* Adds to saved what the backward needs and cannot compute: inputs, random values. needed: by node id, filled: what the
 * backward graph holds, saved values included. What it does not read is taken out of saved. */
bp_status partitioner_close(partitioner *p, uint8_t *needed);

/* The default set: each value of the forward that the backward reads. */
bp_status partitioner_save_default(partitioner *p);
/* partitioner_cut.c: the minimal cut. */
bp_status partitioner_save_min_cut(partitioner *p);
/* partitioner_budget.c: of what is saved, keeps the best part within the budget; the rest is recomputed. */
bp_status partitioner_keep_budget(partitioner *p);
#endif
