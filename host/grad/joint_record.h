/* The recorder of a joint graph: a mode that answers each call on fakes, and adds a node for it. Internal to host/grad.
 *
 * A value is known by its storage: what is recorded gets one of its own, so a tensor that shares it (a saved result
 * without its history) is the same value. Views share nothing here; the graph is functional. */
#ifndef HOST_GRAD_JOINT_RECORD_H
#define HOST_GRAD_JOINT_RECORD_H
#include "host/graph/graph.h"

typedef struct {
    dispatch_mode mode;      /* first */
    bp_ctx *c;
    const bp_graph_module *from;
    bp_graph_module *gm;
    const graph_node *makes; /* of `from`, in progress: its results are as it says, since they tell symbols; or NULL */
    map known;               /* storage -> node */
    VEC(bp_tensor *) held;   /* a reference each, so that no storage is taken for another */
    uint32_t nconstants;
} recorder;

void recorder_init(recorder *r, bp_ctx *c, const bp_graph_module *from); /* gm is the caller's to set */
void recorder_fini(recorder *r);
/* The mode; push it. */
void recorder_start(recorder *r);
/* t is what node n gives. */
bp_status recorder_know(recorder *r, bp_tensor *t, node_id n);
node_id recorder_find(const recorder *r, const bp_tensor *t); /* 0: none */
/* A tensor with data becomes a constant of the graph. 0: the context or the graph says why. */
node_id recorder_constant(recorder *r, bp_tensor *t);
/* UNIMPLEMENTED: only data tell its result. */
bp_status recorder_refuse(bp_ctx *c, const op_row *op);
#endif
