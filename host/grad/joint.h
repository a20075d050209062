/* The joint graph: forward and backward of a functional graph in one, and its partition. */
#ifndef HOST_GRAD_JOINT_H
#define HOST_GRAD_JOINT_H
#include "host/graph/graph.h"

/* Placeholders: the graph's own (primals), then a tangent for each output that requires grad (tangents_1 ...).
 * Output: the graph's own outputs, then a gradient for each primal that needs one (None where none flows).
 * Symbols have the numbers that they have in the graph; facts behind the graph's own were asked by the trace. */
typedef struct {
    bp_graph_module *gm;      /* counted */
    uint32_t nprimals, noutputs, ntangents;
    uint32_t *tangent_of;     /* one a tangent: the number of its output */
    uint8_t *needs;           /* one a primal: its gradient is asked for */
    node_id last_forward;     /* nodes up to it were made by the forward */
} joint;

/* Traces gm, whose placeholders have metadata, on fakes: needs[i] says which placeholders require grad. Fails with
 * UNIMPLEMENTED and the operator when one cannot be differentiated. */
bp_status joint_trace(bp_ctx *c, const bp_graph_module *gm, const uint8_t *needs, joint *out);
/* The same for what `forward` does with fakes of the inputs: in and out are its inputs and its results, new references,
 * as many as gm, which is empty but for placeholders with metadata, has, and as *nout says. */
typedef bp_status (*joint_forward)(bp_ctx *c, void *arg, bp_tensor *const *in, bp_tensor **out, uint32_t nout);
bp_status joint_trace_call(bp_ctx *c, const bp_graph_module *gm, const uint8_t *needs, joint_forward forward, void *arg,
                           uint32_t nout, joint *out);
void joint_fini(joint *j);

/* Forward: the primals -> outputs, then saved values, then numbers. Backward: saved values, then tangents, then symbols
 * -> gradients. Each has an environment of its own. A symbol that saved values and tangents do not show is a symint
 * placeholder of the backward; nothing is saved for its size. */
typedef struct {
    bp_graph_module *forward, *backward;
    uint32_t nsaved;          /* outputs of forward behind the graph's own; placeholders of backward before tangents */
    uint32_t nsymbols, *symbols; /* placeholders of backward behind tangents: the joint graph's symbol, one each */
    /* Outputs of forward behind saved values: an unbacked symbol of the joint graph each, as an i64 tensor of no
     * dimensions: those of `symbols`, and of tangents' types. */
    uint32_t nnumbers, *numbers;
    uint64_t saved_bytes;     /* of values that are not primals with a parameter's or buffer's role */
    uint64_t recomputed_flops;
} partition;

enum { PARTITION_DEFAULT, PARTITION_MIN_CUT };
/* What a caller wants of a node: SAVE, that it is not computed again. With any but NONE in the graph, PARTITION_DEFAULT
 * is a cut as well. */
enum { PARTITION_TAG_NONE, PARTITION_TAG_SAVE, PARTITION_TAG_RECOMPUTE };
typedef struct {
    int32_t kind;
    double memory_budget;           /* 0 .. 1 of what the cut saves, inputs aside; 1: the cut as it is */
    bool aggressive_recomputation;  /* no bans but that of reductions */
    bool recompute_views;
    bool ban_used_far_apart, ban_long_fusible_chains, ban_materialized_backward, ban_not_in_allowlist, ban_reductions;
    int32_t max_dist_from_bw;
    uint8_t (*tag)(void *arg, const graph_node *n); /* NULL: no tags */
    void *tag_arg;
} partition_options;
extern const partition_options PARTITION_DEFAULTS; /* min-cut, with contract.md's values */

/* Errors: INVALID_ARGUMENT for a budget outside of 0 .. 1; INTERNAL for a cut that cannot be made, with the graph. */
bp_status joint_partition(bp_ctx *c, const joint *j, const partition_options *o, partition *out);
void partition_fini(partition *p);
#endif
