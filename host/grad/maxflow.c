/* Dinic's algorithm: levels by breadth, then augmenting paths along them by depth, without recursion. Everything goes
 * in the order in which edges were added, so the result depends on nothing else. */
#include "host/grad/maxflow.h"
#include <string.h>

#define NONE UINT32_MAX

void flow_init(flow *f, uint32_t nnodes)
{
    *f = (flow){.n = nnodes};
    size_t n = (size_t)nnodes + 1;
    f->head = malloc(n * sizeof *f->head);
    f->level = calloc(n, sizeof *f->level);
    f->at = calloc(n, sizeof *f->at);
    f->queue = calloc(n, sizeof *f->queue);
    f->failed = !f->head || !f->level || !f->at || !f->queue;
    for (uint32_t i = 0; f->head && i < nnodes; i++)
        f->head[i] = NONE;
}

void flow_fini(flow *f)
{
    free(f->head);
    free(f->level);
    free(f->at);
    free(f->queue);
    vec_fini(&f->edges);
    *f = (flow){0};
}

static void add_half(flow *f, uint32_t from, uint32_t to, int64_t capacity)
{
    if (f->failed)
        return;
    f->failed = !vec_push(&f->edges, (flow_edge){to, f->head[from], capacity});
    if (!f->failed)
        f->head[from] = f->edges.len - 1;
}

void flow_add(flow *f, uint32_t from, uint32_t to, int64_t capacity)
{
    bool finite = capacity < FLOW_INFINITE;
    add_half(f, from, to, finite && capacity > FLOW_MAX_CAPACITY ? FLOW_MAX_CAPACITY : capacity);
    add_half(f, to, from, 0);
}

/* Level 0: not reached. */
static bool find_levels(flow *f, uint32_t from, uint32_t to)
{
    uint32_t first = 0, last = 0;
    memset(f->level, 0, f->n * sizeof *f->level);
    f->level[from] = 1;
    f->queue[last++] = from;
    while (first < last) {
        uint32_t v = f->queue[first++];
        for (uint32_t e = f->head[v]; e != NONE; e = f->edges.at[e].next) {
            const flow_edge *edge = &f->edges.at[e];
            if (edge->left <= 0 || f->level[edge->to])
                continue;
            f->level[edge->to] = f->level[v] + 1;
            f->queue[last++] = edge->to;
        }
    }
    return f->level[to] != 0;
}

/* The next edge of v that leads one level on; NONE: a dead end. */
static uint32_t advance(flow *f, uint32_t v)
{
    while (f->at[v] != NONE) {
        const flow_edge *edge = &f->edges.at[f->at[v]];
        if (edge->left > 0 && f->level[edge->to] == f->level[v] + 1)
            return f->at[v];
        f->at[v] = edge->next;
    }
    return NONE;
}

/* Sends what the path's narrowest edge takes. path: its edges. */
static int64_t send(flow *f, const uint32_t *path, uint32_t n)
{
    int64_t least = INT64_MAX;
    for (uint32_t i = 0; i < n; i++)
        least = f->edges.at[path[i]].left < least ? f->edges.at[path[i]].left : least;
    for (uint32_t i = 0; i < n; i++) {
        flow_edge *edge = &f->edges.at[path[i]], *back = &f->edges.at[path[i] ^ 1];
        if (edge->left < FLOW_INFINITE)
            edge->left -= least;
        if (back->left < FLOW_INFINITE)
            back->left += least;
    }
    return least;
}

/* One augmenting path along the levels; its edges are left in queue. 0: there is none. */
static int64_t augment(flow *f, uint32_t from, uint32_t to)
{
    uint32_t n = 0, v = from;
    while (v != to) {
        uint32_t e = advance(f, v);
        if (e != NONE) {
            f->queue[n++] = e;
            v = f->edges.at[e].to;
        } else if (!n) {
            return 0;
        } else {
            f->level[v] = 0;
            v = f->edges.at[f->queue[--n] ^ 1].to;
        }
    }
    return send(f, f->queue, n);
}

int64_t flow_run(flow *f, uint32_t from, uint32_t to)
{
    int64_t total = 0;
    while (!f->failed && find_levels(f, from, to)) {
        memcpy(f->at, f->head, f->n * sizeof *f->at);
        for (int64_t sent; (sent = augment(f, from, to)) > 0;) {
            if (sent >= FLOW_INFINITE || total >= FLOW_INFINITE - sent)
                return FLOW_INFINITE;
            total += sent;
        }
    }
    return f->failed ? -1 : total;
}

bool flow_reached(const flow *f, uint32_t n)
{
    return f->level[n] != 0;
}
