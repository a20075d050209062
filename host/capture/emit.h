/* Items of a path as nodes of an FX graph. */
#ifndef HOST_CAPTURE_EMIT_H
#define HOST_CAPTURE_EMIT_H
#include "host/capture/path.h"
#include "host/graph/graph.h"

typedef struct emitter emitter;
struct emitter {
    bp_ctx *c;
    bp_graph_module *gm;
    bp_value (*value_of)(emitter *e, ref r); /* the node of a ref; sets failed when there is none */
    bool (*requires)(emitter *e, ref r);     /* whether it requires grad; NULL: that does not matter */
    void *arg;
    /* A dim of the path in the graph; sets failed. NULL: a symbol becomes the number that it is in this capture. */
    bp_dim (*dim_of)(emitter *e, bp_dim d);
    struct { uint32_t sym; node_id n; } numbers[8]; /* nodes that give integers: an argument names them */
    uint32_t nnumbers;
    bool failed;
};

/* Adds the call of an item, its arguments as they were written. made[j]: the node of result j; of several results, only
 * where wanted[j] (NULL: everywhere). With `requires`, what was recorded without grad mode is detached, so that it gets
 * no history when the graph is differentiated. */
void emit_item(emitter *e, const item *it, const uint8_t *wanted, bp_value *made);
#endif
