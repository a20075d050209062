/* A memory budget below 1: of the values that the cut saves, those are kept that are dear to recompute, as a knapsack
 * of the budget's size; the backward computes the others. Inputs are kept by the caller, and do not count. */
#include "host/grad/partitioner.h"
#include <string.h>

enum { UNITS = 1000 };
typedef struct { node_id id; uint32_t units; double work; } knapsack_item;
typedef struct {
    partitioner *p;
    VEC(knapsack_item) items;
    uint64_t total;       /* bytes of all saved values that are no inputs */
    uint8_t *mark;        /* by node id */
    bool failed;
} sack;

static void mark(void *arg, node_id n)
{
    ((uint8_t *)arg)[n] = 1;
}

/* What it takes to compute a saved value from the other saved values. */
static double work_of(sack *s, node_id id)
{
    const partitioner *p = s->p;
    double sum = 0;
    memset(s->mark, 0, p->g->nodes.len);
    s->mark[id] = 1;
    for (uint32_t i = p->order[id] + 1; i-- > 0;) {
        node_id at = p->nodes[i];
        if (!s->mark[at] || (at != id && p->saved[at]))
            continue;
        sum += (double)partitioner_flops(p, at);
        graph_each_input(p->g, at, mark, s->mark);
    }
    return sum;
}

static bool is_optional(const partitioner *p, node_id id)
{
    return p->saved[id] && partitioner_node(p, id)->op == BP_NODE_CALL_FUNCTION && !partitioner_is_drawn(p, id) &&
           p->tag[id] != PARTITION_TAG_SAVE;
}

static void fill(sack *s)
{
    partitioner *p = s->p;
    for (uint32_t i = 0; i < p->n; i++) {
        const graph_node *n = partitioner_node(p, p->nodes[i]);
        if (p->saved[p->nodes[i]] && n->op == BP_NODE_CALL_FUNCTION)
            s->total += partitioner_bytes(n);
    }
    for (uint32_t i = 0; i < p->n; i++) {
        node_id id = p->nodes[i];
        if (!is_optional(p, id))
            continue;
        double share = (double)partitioner_bytes(partitioner_node(p, id)) / (double)(s->total ? s->total : 1) * UNITS;
        uint32_t units = (uint32_t)share + ((double)(uint32_t)share < share);
        s->failed |= !vec_push(&s->items, (knapsack_item){id, units, work_of(s, id)});
    }
}

/* Units that are left when what must be kept is in. */
static uint32_t room(const sack *s)
{
    double left = s->p->o->memory_budget * UNITS, fixed = 0;
    for (uint32_t i = 0; i < s->p->n; i++) {
        const graph_node *n = partitioner_node(s->p, s->p->nodes[i]);
        if (s->p->saved[s->p->nodes[i]] && n->op == BP_NODE_CALL_FUNCTION && !is_optional(s->p, s->p->nodes[i]))
            fixed += (double)partitioner_bytes(n);
    }
    left -= s->total ? fixed / (double)s->total * UNITS : 0;
    return left > 0 ? (uint32_t)left : 0;
}

/* The best work for each number of units, item by item; takes what the best filling does not have out of saved. */
static bool choose(sack *s)
{
    uint32_t cap = room(s), n = s->items.len;
    double *best = calloc(cap + 1, sizeof *best);
    uint8_t *taken = calloc((size_t)(cap + 1) * (n ? n : 1), 1);
    bool ok = best && taken;
    for (uint32_t i = 0; ok && i < n; i++)
        for (uint32_t u = cap + 1; u-- > s->items.at[i].units;) {
            double with = best[u - s->items.at[i].units] + s->items.at[i].work;
            if (with <= best[u])
                continue;
            best[u] = with;
            taken[(size_t)i * (cap + 1) + u] = 1;
        }
    for (uint32_t i = n, u = cap; ok && i-- > 0;) {
        bool keep = taken[(size_t)i * (cap + 1) + u];
        s->p->saved[s->items.at[i].id] = keep;
        u -= keep ? s->items.at[i].units : 0;
    }
    free(best);
    free(taken);
    return ok;
}

bp_status partitioner_keep_budget(partitioner *p)
{
    sack s = {.p = p, .mark = arena_array(&p->a, p->g->nodes.len, 1)};
    if (s.mark)
        fill(&s);
    bool ok = s.mark && !s.failed && choose(&s);
    vec_fini(&s.items);
    return ok ? BP_OK : ctx_nomem(p->c);
}
