/* Maximum flow between two nodes of a directed graph, and the cut that limits it (Dinic's algorithm). */
#ifndef HOST_GRAD_MAXFLOW_H
#define HOST_GRAD_MAXFLOW_H
#include "sdk/base/vec.h"

#define FLOW_INFINITE (INT64_C(1) << 61)
/* Capacities above this are cut to it, so that sums stay below FLOW_INFINITE. */
#define FLOW_MAX_CAPACITY (INT64_C(1) << 46)

typedef struct { uint32_t to, next; int64_t left; } flow_edge; /* next: of the same node; UINT32_MAX: none */
typedef struct {
    uint32_t n;
    uint32_t *head;               /* by node: its first edge, UINT32_MAX: none */
    uint32_t *level, *at, *queue; /* of the search */
    VEC(flow_edge) edges;         /* an edge and its reverse side by side */
    bool failed;                  /* out of memory, sticky */
} flow;

void flow_init(flow *f, uint32_t nnodes);
void flow_fini(flow *f);
/* capacity: 0 .. FLOW_MAX_CAPACITY, or FLOW_INFINITE. */
void flow_add(flow *f, uint32_t from, uint32_t to, int64_t capacity);
/* The maximum; FLOW_INFINITE when no finite cut exists, -1 out of memory. Equal graphs, built in the same order, give
 * the same flow and cut. */
int64_t flow_run(flow *f, uint32_t from, uint32_t to);
/* After flow_run: whether node n is on the source's side of the minimal cut that is nearest to the source. */
bool flow_reached(const flow *f, uint32_t n);
#endif
