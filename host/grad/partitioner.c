/* Classes, costs, and the default set of saved values. */
#include "host/grad/partitioner.h"
#include "host/pass/pure.h"
#include <string.h>

/* -- facts of nodes ------------------------------------------------------------------------------------------------ */

static bool is_getitem(const graph_node *n)
{
    str builtin;
    return n->op == BP_NODE_CALL_FUNCTION && graph_is_builtin(n->target, &builtin) && str_is(builtin, "getitem");
}

bool partitioner_is_tensor(const graph_node *n)
{
    if (n->op != BP_NODE_CALL_FUNCTION)
        return n->op == BP_NODE_PLACEHOLDER || n->op == BP_NODE_GET_ATTR;
    if (!n->row)
        return is_getitem(n);
    const schema *s = n->row->schema;
    return s->nreturns == 1 && !s->returns[0].list && !(n->row->flags & OP_ITEM);
}

bool partitioner_runs_once(const partitioner *p, node_id id)
{
    return (partitioner_flags(partitioner_node(p, id)) & (OP_RANDOM | OP_EFFECT)) != 0 || node_makes_symbol(p->g, id);
}

bool partitioner_is_drawn(const partitioner *p, node_id id)
{
    const graph_node *n = partitioner_node(p, id);
    bool part = is_getitem(n) && n->nargs && n->args[0].kind == BP_VALUE_NODE;
    return partitioner_runs_once(p, part ? n->args[0].v.node : id);
}

bool partitioner_is_view(const graph_node *n)
{
    return (partitioner_flags(n) & OP_VIEW) != 0 || is_getitem(n);
}

static uint64_t elements(const tensor_meta *m)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < m->rank; d++)
        n *= (uint64_t)(dim_hint(m->sizes[d]) > 0 ? dim_hint(m->sizes[d]) : 0);
    return n;
}

uint64_t partitioner_bytes(const graph_node *n)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n->nmetas; i++)
        sum += elements(&n->metas[i]) * dtype_size(n->metas[i].dtype);
    return sum;
}

bool partitioner_is_free(const graph_node *n)
{
    return n->op == BP_NODE_PLACEHOLDER && (n->role == BP_ROLE_PARAMETER || n->role == BP_ROLE_BUFFER);
}

uint64_t partitioner_saved_bytes(const partitioner *p)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p->n; i++)
        if (p->saved[p->nodes[i]] && !partitioner_is_free(partitioner_node(p, p->nodes[i])))
            sum += partitioner_bytes(partitioner_node(p, p->nodes[i]));
    return sum;
}

/* -- work ---------------------------------------------------------------------------------------------------------- */

typedef struct { const partitioner *p; uint64_t n[3]; const tensor_meta *m[3]; uint32_t count; } operands;

static void note_operand(void *arg, node_id n)
{
    operands *o = arg;
    const graph_node *node = partitioner_node(o->p, n);
    if (o->count < 3 && node->nmetas) {
        o->m[o->count] = &node->metas[0];
        o->n[o->count++] = elements(&node->metas[0]);
    }
}

/* How many products make one element of the result of a heavy operator. */
static uint64_t products(const operands *o, const graph_node *n)
{
    bool adds = o->count == 3 && !strncmp(n->row->id, "add", 3); /* addmm and kin: what is added comes first */
    const tensor_meta *a = o->count ? o->m[adds] : NULL, *b = o->count > 1 ? o->m[adds + 1] : NULL;
    int64_t rows = b && b->rank ? dim_hint(b->sizes[0]) : 0, last = a && a->rank ? dim_hint(a->sizes[a->rank - 1]) : 0;
    if (strstr(n->row->id, "conv") && rows > 0)
        return elements(b) / (uint64_t)rows;
    return last > 0 ? (uint64_t)last : 1;
}

uint64_t partitioner_flops(const partitioner *p, node_id id)
{
    const graph_node *n = partitioner_node(p, id);
    operands o = {.p = p};
    uint64_t out = 0, most = 0;
    if (n->op != BP_NODE_CALL_FUNCTION || partitioner_is_view(n))
        return 0;
    graph_each_input(p->g, id, note_operand, &o);
    for (uint32_t i = 0; i < n->nmetas; i++)
        out += elements(&n->metas[i]);
    for (uint32_t i = 0; i < o.count; i++)
        most = o.n[i] > most ? o.n[i] : most;
    if (partitioner_flags(n) & OP_MATMUL)
        return 2 * out * products(&o, n);
    return out > most ? out : most;
}

/* -- classes ------------------------------------------------------------------------------------------------------- */

static void mark_forward(void *arg, node_id n)
{
    ((partitioner *)arg)->is[n] |= PART_FORWARD;
}

static void mark_wanted(void *arg, node_id n)
{
    ((partitioner *)arg)->is[n] |= PART_WANTED;
}

static void find_behind_tangents(partitioner *p)
{
    uint32_t seen = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const graph_node *n = partitioner_node(p, p->nodes[i]);
        if (n->op == BP_NODE_PLACEHOLDER && seen++ >= p->j->nprimals)
            p->is[p->nodes[i]] |= PART_TANGENT;
        for (uint32_t u = 0; p->is[p->nodes[i]] & PART_TANGENT && u < n->users.len; u++)
            p->is[n->users.at[u]] |= PART_TANGENT;
    }
}

static void mark_results(partitioner *p, node_id output)
{
    const bp_value *list = &partitioner_node(p, output)->args[0];
    for (uint32_t i = 0; i < list->count; i++)
        if (list->v.items[i].kind == BP_VALUE_NODE)
            p->is[list->v.items[i].v.node] |= i < p->j->noutputs ? PART_FORWARD : PART_WANTED | PART_GIVEN;
}

static void find_needed(partitioner *p)
{
    for (uint32_t i = p->n; i-- > 0;) {
        node_id id = p->nodes[i];
        uint32_t once = OP_RANDOM | OP_EFFECT | OP_MAY_FAIL_ON_DATA;
        const graph_node *n = partitioner_node(p, id);
        if ((partitioner_flags(n) & once || node_makes_symbol(p->g, id)) && !(p->is[id] & PART_TANGENT))
            p->is[id] |= PART_FORWARD;
        if (p->is[id] & PART_FORWARD)
            graph_each_input(p->g, id, mark_forward, p);
        if (p->is[id] & PART_WANTED)
            graph_each_input(p->g, id, mark_wanted, p);
    }
}

static bp_status check_outputs(const partitioner *p)
{
    for (uint32_t i = 0; i < p->n; i++)
        if ((p->is[p->nodes[i]] & (PART_FORWARD | PART_TANGENT)) == (PART_FORWARD | PART_TANGENT))
            return ctx_fail(p->c, BP_INTERNAL, "node \"%s\" of joint graph \"%s\" leads from a tangent to an output of "
                            "the forward", partitioner_node(p, p->nodes[i])->name, p->j->gm->name);
    return BP_OK;
}

bp_status partitioner_init(partitioner *p, bp_ctx *c, const joint *j, const partition_options *o)
{
    *p = (partitioner){.c = c, .j = j, .g = &j->gm->g, .o = o};
    uint32_t cap = p->g->nodes.len;
    node_id output = graph_output_node(p->g);
    if (!output || graph_output_count(p->g) < j->noutputs)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "joint graph \"%s\" has %u outputs, and its forward %u", j->gm->name,
                        graph_output_count(p->g), j->noutputs);
    p->nodes = arena_array(&p->a, cap, sizeof *p->nodes);
    p->order = arena_array(&p->a, cap, sizeof *p->order);
    p->is = arena_array(&p->a, cap, 1);
    p->tag = arena_array(&p->a, cap, 1);
    p->saved = arena_array(&p->a, cap, 1);
    if (!p->nodes || !p->order || !p->is || !p->tag || !p->saved)
        return ctx_nomem(c);
    for (node_id n = p->g->first; n; n = partitioner_node(p, n)->next)
        if (n != output) {
            p->order[n] = p->n;
            p->nodes[p->n++] = n;
            p->tag[n] = o->tag ? o->tag(o->tag_arg, partitioner_node(p, n)) : PARTITION_TAG_NONE;
        }
    for (uint32_t i = 0; i < p->n; i++)
        if (p->tag[p->nodes[i]] == PARTITION_TAG_RECOMPUTE && partitioner_is_drawn(p, p->nodes[i]))
            p->tag[p->nodes[i]] = PARTITION_TAG_NONE; /* other numbers would come */
    find_behind_tangents(p);
    mark_results(p, output);
    find_needed(p);
    return check_outputs(p);
}

void partitioner_fini(partitioner *p)
{
    arena_fini(&p->a);
}

/* -- sets of saved values ------------------------------------------------------------------------------------------ */

static void want(void *arg, node_id n)
{
    ((uint8_t *)arg)[n] = 1;
}

bp_status partitioner_close(partitioner *p, uint8_t *needed)
{
    for (uint32_t i = 0; i < p->n; i++)
        needed[p->nodes[i]] = (p->is[p->nodes[i]] & PART_GIVEN) != 0;
    for (uint32_t i = p->n; i-- > 0;) {
        node_id id = p->nodes[i];
        const graph_node *n = partitioner_node(p, id);
        if (!needed[id] || p->saved[id])
            continue;
        if (n->op == BP_NODE_PLACEHOLDER)
            p->saved[id] = !(p->is[id] & PART_TANGENT);
        else if (partitioner_is_drawn(p, id) && partitioner_is_tensor(n))
            p->saved[id] = 1;
        else if (partitioner_runs_once(p, id))
            return ctx_fail(p->c, BP_INTERNAL, "a partition of graph \"%s\" would run \"%s\" (%s) twice",
                            p->j->gm->name, n->name, n->target);
        else
            graph_each_input(p->g, id, want, needed);
    }
    for (uint32_t i = 0; i < p->n; i++)
        p->saved[p->nodes[i]] &= needed[p->nodes[i]];
    return BP_OK;
}

/* Whether the backward reads it from outside of the forward's nodes. */
static bool is_read(const partitioner *p, node_id id)
{
    const graph_node *n = partitioner_node(p, id);
    bool read = (p->is[id] & PART_GIVEN) != 0;
    for (uint32_t u = 0; u < n->users.len; u++) {
        uint8_t is = p->is[n->users.at[u]];
        read |= (is & PART_WANTED) && !(is & PART_FORWARD);
    }
    return read;
}

/* What is no tensor is not saved: the parts of a list are, and what a number is read from. */
static void save_around(partitioner *p, node_id id)
{
    const graph_node *n = partitioner_node(p, id);
    for (uint32_t u = 0; u < n->users.len; u++)
        if (is_getitem(partitioner_node(p, n->users.at[u])) && p->is[n->users.at[u]] & PART_WANTED)
            p->saved[n->users.at[u]] = 1;
    if (partitioner_flags(n) & OP_ITEM && n->nargs && n->args[0].kind == BP_VALUE_NODE)
        p->saved[n->args[0].v.node] = 1;
}

bp_status partitioner_save_default(partitioner *p)
{
    memset(p->saved, 0, p->g->nodes.len);
    for (uint32_t i = 0; i < p->n; i++) {
        node_id id = p->nodes[i];
        const graph_node *n = partitioner_node(p, id);
        if (!(p->is[id] & PART_FORWARD) || n->op == BP_NODE_GET_ATTR || !is_read(p, id))
            continue;
        if (partitioner_is_tensor(n))
            p->saved[id] = 1;
        else
            save_around(p, id);
    }
    return BP_OK;
}
