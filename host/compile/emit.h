/* Items of a path as nodes of an FX graph. */
#ifndef HOST_COMPILE_EMIT_H
#define HOST_COMPILE_EMIT_H
#include "host/capture/path.h"
#include "host/graph/graph.h"

typedef struct emitter emitter;
struct emitter {
    graph *g;
    bp_value (*value_of)(emitter *e, ref r); /* the node of a ref; sets failed when there is none */
    void *arg;
    bool failed;
};

/* Adds the call of an item, its arguments as they were written. made[j]: the node of result j; of several results, only
 * where wanted[j] (NULL: everywhere). */
void emit_item(emitter *e, const item *it, const uint8_t *wanted, bp_value *made);
#endif
