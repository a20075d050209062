/* The minimal cut: which values to save so that the backward can compute the rest, at the least weight.
 *
 * Each node is an edge from its in side to its out side, whose capacity is the weight of saving it; reading a value is
 * an edge without limit. The source feeds inputs and values that must not be recomputed, and what only the backward can
 * compute feeds the sink; edges of the cut are the saved values. */
#include "host/grad/maxflow.h"
#include "host/grad/partitioner.h"
#include <math.h>
#include <string.h>

enum { LONG_CHAIN = 100, MAX_DISTANCE = 100, REDUCES_BY = 4, FAR = 1000000000 };

typedef struct {
    partitioner *p;
    uint32_t *dist;      /* by node id: steps to the nearest node behind a tangent */
    uint8_t *banned;     /* by node id: it must not be recomputed */
    uint8_t *mark;       /* by order: waits in a search */
    uint8_t *visited;    /* by order */
} cutter;

/* -- kinds of operators -------------------------------------------------------------------------------------------- */

static bool has_tensors(const graph_node *n)
{
    for (uint32_t i = 0; n->row && i < n->row->schema->nargs; i++)
        if (n->row->schema->args[i].ty.type == TYPE_TENSOR)
            return true;
    return !n->row;
}

static bool is_cat(const graph_node *n)
{
    return n->row && !strncmp(n->row->id, "cat_", 4);
}

/* What may be computed again: pointwise, views, reductions, tensors made of nothing. */
static bool is_recomputable(const graph_node *n)
{
    uint32_t flags = partitioner_flags(n), heavy = OP_RANDOM | OP_MATMUL | OP_DYNAMIC_OUT | OP_EFFECT | OP_CUSTOM;
    if (flags & heavy)
        return false;
    uint32_t light = OP_POINTWISE | OP_CHEAP | OP_VIEW | OP_MAYBE_VIEW | OP_REDUCTION;
    return (flags & light) != 0 || is_cat(n) || partitioner_is_view(n) || (n->row && !has_tensors(n));
}

static bool is_fusible_one(const graph_node *n)
{
    return n->op == BP_NODE_CALL_FUNCTION && (is_recomputable(n) || partitioner_flags(n) & OP_RANDOM);
}

static bool is_fusible(const graph_node *a, const graph_node *b)
{
    return is_cat(b) || (is_fusible_one(a) && is_fusible_one(b));
}

/* -- weights ------------------------------------------------------------------------------------------------------- */

static void find_distances(cutter *k)
{
    const partitioner *p = k->p;
    for (uint32_t i = p->n; i-- > 0;) {
        node_id id = p->nodes[i];
        const graph_node *n = partitioner_node(p, id);
        k->dist[id] = p->is[id] & PART_TANGENT ? 0 : FAR;
        for (uint32_t u = 0; u < n->users.len; u++)
            if (n->users.at[u] != graph_output_node(p->g) && k->dist[n->users.at[u]] + 1 < k->dist[id])
                k->dist[id] = k->dist[n->users.at[u]] + 1;
    }
}

static bool is_materialized(const partitioner *p, const graph_node *n)
{
    if (n->op == BP_NODE_PLACEHOLDER)
        return true;
    for (uint32_t u = 0; u < n->users.len; u++)
        if (!is_fusible(n, partitioner_node(p, n->users.at[u])))
            return true;
    return false;
}

/* The value that a view shows whole; 0: it is none, or shows a part. */
static node_id viewed(const partitioner *p, const graph_node *n)
{
    bool is_view = partitioner_flags(n) & OP_VIEW && n->nargs && n->args[0].kind == BP_VALUE_NODE;
    node_id of = is_view ? n->args[0].v.node : 0;
    return of && partitioner_bytes(partitioner_node(p, of)) == partitioner_bytes(n) ? of : 0;
}

static int64_t weight(const cutter *k, node_id id)
{
    const partitioner *p = k->p;
    const graph_node *n = partitioner_node(p, id);
    if (!partitioner_is_tensor(n) || (p->o->recompute_views && partitioner_flags(n) & OP_VIEW))
        return FLOW_INFINITE;
    if (partitioner_is_free(n))
        return 0;
    uint32_t dist = k->dist[id] < 1 ? 1 : k->dist[id] > MAX_DISTANCE ? MAX_DISTANCE : k->dist[id];
    double w = (double)partitioner_bytes(n) * pow(1.1, dist) * (is_materialized(p, n) ? 1 : 2);
    if (viewed(p, n)) /* a backend may make it memory of its own: what it shows is saved instead */
        w = fmax(w, (double)weight(k, viewed(p, n)) + 1);
    return w < (double)FLOW_MAX_CAPACITY ? (int64_t)ceil(w) : FLOW_MAX_CAPACITY;
}

/* -- bans ---------------------------------------------------------------------------------------------------------- */

typedef struct { const partitioner *p; uint64_t bytes; } input_sum;

static void add_input(void *arg, node_id n)
{
    input_sum *s = arg;
    s->bytes += partitioner_bytes(partitioner_node(s->p, n));
}

/* Whether the backward reads it in a way that needs it in memory anyway; views of it count as it. */
static bool is_materialized_backwards(cutter *k, node_id id)
{
    const partitioner *p = k->p;
    bool found = false;
    if (partitioner_is_view(partitioner_node(p, id)))
        return false;
    memset(k->mark, 0, p->n);
    k->mark[p->order[id]] = 1;
    for (uint32_t i = p->order[id]; i < p->n && !found; i++) {
        const graph_node *n = partitioner_node(p, p->nodes[i]);
        for (uint32_t u = 0; k->mark[i] && u < n->users.len; u++) {
            const graph_node *user = partitioner_node(p, n->users.at[u]);
            if (user->op == BP_NODE_OUTPUT)
                continue;
            found |= !(p->is[n->users.at[u]] & PART_FORWARD) && !is_fusible(n, user);
            if (partitioner_is_view(user))
                k->mark[p->order[n->users.at[u]]] = 1;
        }
    }
    return found;
}

static bool is_banned(cutter *k, node_id id)
{
    const partitioner *p = k->p;
    const partition_options *o = p->o;
    const graph_node *n = partitioner_node(p, id);
    bool all = !o->aggressive_recomputation;
    if (n->op != BP_NODE_CALL_FUNCTION || p->tag[id] == PARTITION_TAG_RECOMPUTE)
        return false;
    if (partitioner_runs_once(p, id) || p->tag[id] == PARTITION_TAG_SAVE)
        return true;
    if (!n->row || partitioner_flags(n) & OP_ITEM || (o->recompute_views && partitioner_is_view(n)))
        return false;
    if (all && o->ban_not_in_allowlist ? !is_recomputable(n) : (partitioner_flags(n) & OP_MATMUL) != 0)
        return true;
    if (all && o->ban_materialized_backward && is_materialized_backwards(k, id))
        return true;
    if (all && k->dist[id] < 1000 && k->dist[id] > (uint32_t)o->max_dist_from_bw)
        return true;
    input_sum in = {p, 0};
    graph_each_input(p->g, id, add_input, &in);
    return o->ban_reductions && partitioner_bytes(n) * REDUCES_BY < in.bytes;
}

/* Marks the forward's users of n; returns the last one's place. */
static uint32_t mark_users(cutter *k, const graph_node *n)
{
    const partitioner *p = k->p;
    uint32_t last = 0;
    for (uint32_t u = 0; u < n->users.len; u++) {
        node_id user = n->users.at[u];
        if (partitioner_node(p, user)->op == BP_NODE_OUTPUT || !(p->is[user] & PART_FORWARD))
            continue;
        k->mark[p->order[user]] = 1;
        last = p->order[user] > last ? p->order[user] : last;
    }
    return last;
}

/* From marked nodes on along fusible uses: the first that cannot be fused. */
static uint32_t first_unfusible(cutter *k, uint32_t from, uint32_t last)
{
    const partitioner *p = k->p;
    for (uint32_t i = from; i <= last; i++) {
        if (k->mark[i] == 2)
            return i;
        const graph_node *n = partitioner_node(p, p->nodes[i]);
        for (uint32_t u = 0; k->mark[i] && u < n->users.len; u++) {
            node_id user = n->users.at[u];
            const graph_node *at = partitioner_node(p, user);
            if (at->op == BP_NODE_OUTPUT || !(p->is[user] & PART_FORWARD) || p->order[user] > last)
                continue;
            k->mark[p->order[user]] = is_fusible(n, at) && k->mark[p->order[user]] != 2 ? 1 : 2;
        }
    }
    return last;
}

/* A value that is used again behind the point to which its first uses fuse must be in memory there anyway. */
static void ban_far_uses(cutter *k)
{
    const partitioner *p = k->p;
    for (uint32_t i = 0; i < p->n; i++) {
        node_id id = p->nodes[i];
        const graph_node *n = partitioner_node(p, id);
        if (!(p->is[id] & PART_FORWARD))
            continue;
        memset(k->mark, 0, p->n);
        uint32_t last = mark_users(k, n);
        if (!last)
            continue;
        uint32_t first = first_unfusible(k, i, last);
        for (uint32_t u = 0; u < n->users.len; u++) {
            const graph_node *user = partitioner_node(p, n->users.at[u]);
            bool forward = user->op == BP_NODE_CALL_FUNCTION && p->is[n->users.at[u]] & PART_FORWARD;
            if (forward && p->order[n->users.at[u]] > first && is_fusible(n, user) &&
                p->tag[n->users.at[u]] != PARTITION_TAG_RECOMPUTE)
                k->banned[n->users.at[u]] = 1;
        }
    }
}

/* A chain that fuses without end would be recomputed from its start. */
static void ban_long_chain(cutter *k, uint32_t start)
{
    const partitioner *p = k->p;
    uint32_t waiting = 1;
    memset(k->mark, 0, p->n);
    k->mark[start] = 1;
    for (uint32_t i = start; i < p->n && waiting; i++) {
        node_id id = p->nodes[i];
        const graph_node *n = partitioner_node(p, id);
        if (!k->mark[i])
            continue;
        waiting--;
        if (k->visited[i])
            continue;
        k->visited[i] = 1;
        if (i > start + LONG_CHAIN && !waiting) {
            k->banned[id] |= p->tag[id] != PARTITION_TAG_RECOMPUTE;
            return;
        }
        for (uint32_t u = 0; u < n->users.len; u++) {
            node_id user = n->users.at[u];
            const graph_node *at = partitioner_node(p, user);
            if (at->op == BP_NODE_OUTPUT || !(p->is[user] & PART_FORWARD) || k->banned[user] || !is_fusible(n, at))
                continue;
            waiting += !k->mark[p->order[user]];
            k->mark[p->order[user]] = 1;
        }
    }
}

static void find_bans(cutter *k)
{
    const partitioner *p = k->p;
    bool all = !p->o->aggressive_recomputation;
    for (uint32_t i = 0; i < p->n; i++)
        if (!(p->is[p->nodes[i]] & PART_TANGENT) && is_banned(k, p->nodes[i]))
            k->banned[p->nodes[i]] = 1;
    if (all && p->o->ban_used_far_apart)
        ban_far_uses(k);
    for (uint32_t i = 0; all && p->o->ban_long_fusible_chains && i < p->n; i++)
        if (p->is[p->nodes[i]] & PART_FORWARD)
            ban_long_chain(k, i);
}

/* -- the cut ------------------------------------------------------------------------------------------------------- */

static uint32_t in_of(const partitioner *p, node_id n) { return 2 + 2 * p->order[n]; }
static uint32_t out_of(const partitioner *p, node_id n) { return 3 + 2 * p->order[n]; }
enum { SOURCE = 0, SINK = 1 };

static void add_node(const cutter *k, flow *f, node_id id)
{
    const partitioner *p = k->p;
    const graph_node *n = partitioner_node(p, id);
    if (!(p->is[id] & PART_WANTED) || n->op == BP_NODE_GET_ATTR)
        return;
    if (p->is[id] & PART_TANGENT) {
        flow_add(f, in_of(p, id), SINK, FLOW_INFINITE);
        return;
    }
    if (n->op == BP_NODE_PLACEHOLDER || k->banned[id])
        flow_add(f, SOURCE, in_of(p, id), FLOW_INFINITE);
    bool saves = p->tag[id] != PARTITION_TAG_RECOMPUTE;
    flow_add(f, in_of(p, id), out_of(p, id), saves ? weight(k, id) : FLOW_INFINITE);
    if (p->is[id] & PART_GIVEN)
        flow_add(f, out_of(p, id), SINK, FLOW_INFINITE);
    for (uint32_t u = 0; u < n->users.len; u++)
        if (partitioner_node(p, n->users.at[u])->op != BP_NODE_OUTPUT)
            flow_add(f, out_of(p, id), in_of(p, n->users.at[u]), FLOW_INFINITE);
}

static bp_status tell_infinite(const partitioner *p)
{
    buf text = {0};
    graph_print_text(p->j->gm, &text);
    ctx_fail(p->c, BP_INTERNAL, "no finite cut of joint graph \"%s\" exists: a value that must be saved cannot be",
             p->j->gm->name);
    diag_detail(&p->c->diag, "%s", buf_text(&text));
    buf_fini(&text);
    return BP_INTERNAL;
}

static bp_status cut(cutter *k)
{
    partitioner *p = k->p;
    flow f;
    flow_init(&f, 2 + 2 * p->n);
    for (uint32_t i = 0; i < p->n; i++)
        add_node(k, &f, p->nodes[i]);
    int64_t least = flow_run(&f, SOURCE, SINK);
    memset(p->saved, 0, p->g->nodes.len);
    for (uint32_t i = 0; i < p->n && least >= 0; i++)
        p->saved[p->nodes[i]] = flow_reached(&f, in_of(p, p->nodes[i])) && !flow_reached(&f, out_of(p, p->nodes[i])) &&
                                !(p->is[p->nodes[i]] & PART_TANGENT);
    flow_fini(&f);
    return least < 0 ? ctx_nomem(p->c) : least >= FLOW_INFINITE ? tell_infinite(p) : BP_OK;
}

bp_status partitioner_save_min_cut(partitioner *p)
{
    cutter k = {.p = p};
    uint32_t n = p->g->nodes.len;
    k.dist = arena_array(&p->a, n, sizeof *k.dist);
    k.banned = arena_array(&p->a, n, 1);
    k.mark = arena_array(&p->a, n, 1);
    k.visited = arena_array(&p->a, n, 1);
    if (!k.dist || !k.banned || !k.mark || !k.visited)
        return ctx_nomem(p->c);
    find_distances(&k);
    find_bans(&k);
    return cut(&k);
}
