/* A segment's view of its path's symbols: what is known of them at that segment, and nothing of what was asked behind
 * it, which other paths through it need not share. */
#ifndef HOST_COMPILE_NARROW_H
#define HOST_COMPILE_NARROW_H
#include "host/cache/tree.h"
#include "host/graph/graph.h"

typedef struct {
    bp_ctx *c;
    const tree_node *n;
    sym_env *own;                 /* symbol k is the path's symbol k; NULL: the node has no symbols */
    bp_dim *map;
    graph_import import;          /* of own into the segment's graph */
    bool failed;
} narrowing;
/* errors: out of memory. */
bp_status narrow_init(narrowing *w, bp_ctx *c, const tree_node *n, graph *g);
void narrow_fini(narrowing *w);
/* A dim of the path in the segment's graph; simplified by what is known. */
bp_dim narrow_dim(narrowing *w, bp_dim d);
/* The same for metadata, in the graph's arena. */
tensor_meta narrow_meta(narrowing *w, const tensor_meta *m);
/* When all nodes are there: facts and placeholders of symbols. */
bp_status narrow_finish(narrowing *w);
#endif
