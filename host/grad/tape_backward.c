/* Backward: from roots down the edges, each node once its gradients are complete.
 *
 * Nodes are numbered as they are made and edges lead to smaller numbers, so the largest number that waits is always
 * complete: a heap is all the order there is, and nothing recurs. What arrives at a node is summed in the order of
 * arrival. Everything that backward knows of a node lies in a table of its own, so that hooks may run backward again,
 * and threads may share leaves. */
#include "host/grad/tape_node.h"
#include "sdk/base/map.h"
#include <backplane/backplane.h>
#include <string.h>

typedef struct {
    tape_node *node;     /* counted */
    bp_tensor **grads;   /* one a result; counted, NULL: none came */
    uint8_t *captured;   /* one a result; NULL: none. It is an input that was asked for */
    bool waits;          /* it is in the heap */
    bool needed;         /* some input that was asked for lies behind it, or is it */
} visit;

typedef struct {
    bp_ctx *c;
    map at;              /* node -> index of its visit + 1 */
    VEC(visit) visits;
    VEC(uint32_t) heap;  /* of visits, by number */
    bool to_inputs;      /* gradients go to inputs, not to leaves */
    uint32_t flags;
    bp_tensor *const *inputs;
    tape_edge *input_edges;
    bp_tensor **out;
    uint32_t ninputs;
} task;

/* -- the table ----------------------------------------------------------------------------------------------------- */

static uint32_t find(task *k, const tape_node *n)
{
    map_value *v = map_get_u64(&k->at, (uintptr_t)n);
    return v ? (uint32_t)v->u - 1 : UINT32_MAX;
}

/* The visit of a node, made when it is met for the first time; UINT32_MAX: out of memory. */
static uint32_t visit_of(task *k, tape_node *n)
{
    bool is_new;
    map_value *v = map_put_u64(&k->at, (uintptr_t)n, &is_new);
    if (v && !is_new)
        return (uint32_t)v->u - 1;
    visit x = {.node = n, .grads = calloc(n->nresults + 1, sizeof(bp_tensor *))};
    if (!v || !x.grads || !vec_push(&k->visits, x)) {
        free(x.grads);
        if (v)
            map_del_u64(&k->at, (uintptr_t)n);
        ctx_nomem(k->c);
        return UINT32_MAX;
    }
    tape_node_ref(n);
    v->u = k->visits.len;
    return k->visits.len - 1;
}

/* -- the heap ------------------------------------------------------------------------------------------------------ */

static bool above(const task *k, uint32_t a, uint32_t b)
{
    return k->visits.at[k->heap.at[a]].node->seq > k->visits.at[k->heap.at[b]].node->seq;
}

static void swap(task *k, uint32_t a, uint32_t b)
{
    uint32_t t = k->heap.at[a];
    k->heap.at[a] = k->heap.at[b];
    k->heap.at[b] = t;
}

static bp_status push(task *k, uint32_t v)
{
    if (k->visits.at[v].waits)
        return BP_OK;
    if (!vec_push(&k->heap, v))
        return ctx_nomem(k->c);
    k->visits.at[v].waits = true;
    for (uint32_t i = k->heap.len - 1; i && above(k, i, (i - 1) / 2); i = (i - 1) / 2)
        swap(k, i, (i - 1) / 2);
    return BP_OK;
}

static uint32_t pop(task *k)
{
    uint32_t top = k->heap.at[0], last = vec_pop(&k->heap);
    if (k->heap.len)
        k->heap.at[0] = last;
    for (uint32_t i = 0;;) {
        uint32_t most = i, left = 2 * i + 1;
        if (left < k->heap.len && above(k, left, most))
            most = left;
        if (left + 1 < k->heap.len && above(k, left + 1, most))
            most = left + 1;
        if (most == i)
            break;
        swap(k, i, most);
        i = most;
    }
    return top;
}

/* -- gradients on their way ---------------------------------------------------------------------------------------- */

/* Nobody else sees a: the sum may take its place. Fakes and recorders get a new one. */
static bool may_add_in_place(const bp_ctx *c, const bp_tensor *a, const bp_tensor *b)
{
    return !c->modes && !c->ambient.grad_enabled && !tensor_is_fake(a) && !tensor_is_fake(b) && a->dtype == b->dtype &&
           tensor_is_dense(a) && tape_is_alone(a);
}

static bp_tensor *add(bp_ctx *c, bp_tensor *a, bp_tensor *b)
{
    scope_push(c);
    bp_tensor *t = may_add_in_place(c, a, b) ? bp_aten_add_inplace_tensor(c, a, b, (bp_scalar){0})
                                             : bp_aten_add_tensor(c, a, b, (bp_scalar){0});
    if (t)
        tensor_ref(t);
    scope_pop(c);
    return t;
}

/* Takes the reference to g. */
static bp_status arrive(task *k, uint32_t v, uint32_t index, bp_tensor *g)
{
    bp_tensor **at = &k->visits.at[v].grads[index], *have = *at;
    *at = have ? add(k->c, have, g) : g;
    if (!have)
        return push(k, v);
    tensor_unref(have);
    tensor_unref(g);
    return *at ? BP_OK : k->c->diag.code;
}

static bp_status send(task *k, tape_edge e, bp_tensor *g)
{
    uint32_t v = k->to_inputs ? find(k, e.node) : visit_of(k, e.node);
    bp_status st = v == UINT32_MAX ? k->c->diag.code : arrive(k, v, e.index, g);
    if (v == UINT32_MAX)
        tensor_unref(g);
    return st;
}

/* -- which nodes lead to the inputs -------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    uint64_t x = (*(const visit *const *)a)->node->seq, y = (*(const visit *const *)b)->node->seq;
    return x < y ? -1 : x > y;
}

static bp_status meet_all(task *k)
{
    for (uint32_t i = 0; i < k->visits.len; i++) {
        tape_node *n = k->visits.at[i].node;
        for (uint32_t e = 0; e < n->ninputs; e++)
            if (n->edges[e].node && visit_of(k, n->edges[e].node) == UINT32_MAX)
                return k->c->diag.code;
    }
    return BP_OK;
}

static bp_status mark_inputs(task *k)
{
    for (uint32_t i = 0; i < k->ninputs; i++) {
        tape_edge e = k->input_edges[i];
        uint32_t v = find(k, e.node);
        if (v == UINT32_MAX)
            continue;
        visit *x = &k->visits.at[v];
        if (!x->captured && !(x->captured = calloc(e.node->nresults, 1)))
            return ctx_nomem(k->c);
        x->captured[e.index] = 1;
        x->needed = true;
    }
    return BP_OK;
}

/* Visits must not move any more: all nodes were met. */
static bp_status mark_needed(task *k)
{
    visit **order = malloc((k->visits.len + 1) * sizeof *order);
    if (!order)
        return ctx_nomem(k->c);
    for (uint32_t i = 0; i < k->visits.len; i++)
        order[i] = &k->visits.at[i];
    qsort(order, k->visits.len, sizeof *order, by_number);
    for (uint32_t i = 0; i < k->visits.len; i++) {
        const tape_node *n = order[i]->node;
        for (uint32_t e = 0; e < n->ninputs && !order[i]->needed; e++)
            if (n->edges[e].node)
                order[i]->needed = k->visits.at[find(k, n->edges[e].node)].needed;
    }
    free(order);
    return BP_OK;
}

/* -- one node ------------------------------------------------------------------------------------------------------ */

static bool leads_on(task *k, tape_edge e)
{
    return e.node && (!k->to_inputs || k->visits.at[find(k, e.node)].needed);
}

static bp_status capture(task *k, const visit *x)
{
    for (uint32_t i = 0; x->captured && i < k->ninputs; i++) {
        tape_edge e = k->input_edges[i];
        bp_tensor *g = e.node == x->node ? x->grads[e.index] : NULL;
        if (g && !k->out[i])
            k->out[i] = tensor_ref(g);
    }
    return BP_OK;
}

static bp_status deliver(task *k, tape_node *n, bp_tensor **out)
{
    bp_status st = BP_OK;
    for (uint32_t i = 0; i < n->ninputs; i++) {
        if (!out[i])
            continue;
        if (st == BP_OK && leads_on(k, n->edges[i]))
            st = send(k, n->edges[i], out[i]);
        else
            tensor_unref(out[i]);
    }
    return st;
}

static bp_status pass_on(task *k, tape_node *n, bp_tensor *const *grads)
{
    bp_tensor **out = calloc(n->ninputs + 1, sizeof *out);
    uint8_t *wanted = calloc(n->ninputs + 1, 1);
    bool any = false;
    for (uint32_t i = 0; wanted && i < n->ninputs; i++)
        any |= wanted[i] = leads_on(k, n->edges[i]);
    bp_status st = !out || !wanted ? ctx_nomem(k->c) : BP_OK;
    if (st == BP_OK && (any || n->kind == NODE_FAIL))
        st = tape_node_run(k->c, n, grads, wanted, out, k->flags & TAPE_CREATE);
    if (st == BP_OK && !(k->flags & (TAPE_RETAIN | TAPE_CREATE)))
        tape_node_free_saved(n);
    if (st == BP_OK)
        st = deliver(k, n, out);
    free(out);
    free(wanted);
    return st;
}

static bp_status run_visit(task *k, uint32_t v)
{
    visit x = k->visits.at[v];
    tape_node *n = x.node;
    bool leaf = n->kind == NODE_LEAF;
    for (uint32_t i = 0; i < n->nresults; i++)
        if (x.grads[i])
            TRY(hooks_run(k->c, n, i, &x.grads[i]));
    TRY(capture(k, &x));
    if (leaf && !k->to_inputs && x.grads[0])
        return leaf_accumulate(k->c, n, x.grads[0], k->flags & TAPE_CREATE);
    return leaf || (k->to_inputs && !x.needed) ? BP_OK : pass_on(k, n, x.grads);
}

static void forget_grads(visit *x)
{
    for (uint32_t i = 0; x->grads && i < x->node->nresults; i++)
        tensor_unref(x->grads[i]);
    free(x->grads);
    x->grads = NULL;
}

static bp_status run_all(task *k)
{
    while (k->heap.len) {
        uint32_t v = pop(k);
        TRY(run_visit(k, v));
        forget_grads(&k->visits.at[v]);
        if (k->to_inputs)
            continue;
        map_del_u64(&k->at, (uintptr_t)k->visits.at[v].node);
        tape_node_unref(k->visits.at[v].node);
        k->visits.at[v].node = NULL;
    }
    return BP_OK;
}

/* -- beginning and end --------------------------------------------------------------------------------------------- */

static bp_status check_root(bp_ctx *c, bp_tensor *t, const bp_tensor *g, uint32_t i)
{
    char have[160], want[160];
    if (!t)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "tensor %u to differentiate is NULL", i);
    TRY(view_refresh(c, t));
    if (!tape_requires(t)) {
        ctx_fail(c, BP_INVALID_ARGUMENT, "tensor %u to differentiate, %s, does not require grad", i,
                 tensor_describe(t, have, sizeof have));
        diag_hint(&c->diag, "it was made from tensors that do not, or without grad mode");
        return c->diag.code;
    }
    if (!g && !dim_is(tensor_numel(c, t), 1)) {
        ctx_fail(c, BP_INVALID_ARGUMENT, "gradients begin with a single number, tensor %u is %s", i,
                 tensor_describe(t, have, sizeof have));
        diag_hint(&c->diag, "reduce it (sum), or give its gradient");
        return c->diag.code;
    }
    if (!g && dtype_is_complex(t->dtype))
        return ctx_fail(c, BP_INVALID_ARGUMENT, "gradients begin with a real number, tensor %u is complex", i);
    bool same = !g || (g->rank == t->rank && dtype_is_complex(g->dtype) == dtype_is_complex(t->dtype));
    for (uint32_t d = 0; g && same && d < t->rank; d++)
        same = dim_eq(g->sizes[d], t->sizes[d]);
    return same ? BP_OK : ctx_fail(c, BP_INVALID_ARGUMENT, "gradient %u is %s, and belongs to %s", i,
                                   tensor_describe(g, have, sizeof have), tensor_describe(t, want, sizeof want));
}

static bp_status begin_root(task *k, bp_tensor *t, bp_tensor *g)
{
    bp_ctx *c = k->c;
    tensor_meta m;
    tensor_get_meta(t, &m);
    scope_push(c);
    g = g ? grad_fit(c, g, &m, "a caller")
          : bp_aten_ones_like_default(c, t, 0, 0, (bp_device){0}, (bp_scalar){0}, 0);
    if (g)
        tensor_ref(g);
    scope_pop(c);
    tape_edge e = g ? tape_edge_of(c, t) : (tape_edge){NULL, 0};
    uint32_t v = e.node ? visit_of(k, e.node) : UINT32_MAX;
    if (v == UINT32_MAX)
        tensor_unref(g);
    bp_status st = v == UINT32_MAX ? c->diag.code : arrive(k, v, e.index, g);
    tape_edge_drop(e);
    return st;
}

static bp_status begin_inputs(task *k)
{
    bp_ctx *c = k->c;
    char text[160];
    if (!(k->input_edges = calloc(k->ninputs + 1, sizeof *k->input_edges)))
        return ctx_nomem(c);
    for (uint32_t i = 0; i < k->ninputs; i++) {
        bp_tensor *t = k->inputs[i];
        if (!t)
            return ctx_fail(c, BP_INVALID_ARGUMENT, "input %u is NULL", i);
        k->input_edges[i] = tape_edge_of(c, t);
        TRY(c->diag.code);
        if (!k->input_edges[i].node)
            return ctx_fail(c, BP_INVALID_ARGUMENT, "input %u, %s, does not require grad", i,
                            tensor_describe(t, text, sizeof text));
    }
    return BP_OK;
}

static bp_status check_used(task *k)
{
    for (uint32_t i = 0; k->to_inputs && i < k->ninputs; i++)
        if (!k->out[i] && !(k->flags & TAPE_ALLOW_UNUSED)) {
            ctx_fail(k->c, BP_INVALID_ARGUMENT, "no gradient flows to input %u: it was not used", i);
            diag_hint(&k->c->diag, "allow it to be unused (BP_ALLOW_UNUSED), and its gradient is NULL");
            return k->c->diag.code;
        }
    return BP_OK;
}

static bp_status run_task(task *k, bp_tensor *const *roots, bp_tensor *const *grads, uint32_t nroots)
{
    for (uint32_t i = 0; i < nroots; i++)
        TRY(check_root(k->c, roots[i], grads ? grads[i] : NULL, i));
    if (k->to_inputs)
        TRY(begin_inputs(k));
    for (uint32_t i = 0; i < nroots; i++)
        TRY(begin_root(k, roots[i], grads ? grads[i] : NULL));
    if (k->to_inputs) {
        TRY(meet_all(k));
        TRY(mark_inputs(k));
        TRY(mark_needed(k));
    }
    TRY(run_all(k));
    return check_used(k);
}

static void task_fini(task *k, bp_status st)
{
    for (uint32_t i = 0; i < k->visits.len; i++) {
        visit *x = &k->visits.at[i];
        forget_grads(x);
        free(x->captured);
        tape_node_unref(x->node);
    }
    for (uint32_t i = 0; k->to_inputs && i < k->ninputs; i++) {
        if (k->input_edges)
            tape_edge_drop(k->input_edges[i]);
        if (st != BP_OK) {
            tensor_unref(k->out[i]);
            k->out[i] = NULL;
        }
    }
    free(k->input_edges);
    vec_fini(&k->visits);
    vec_fini(&k->heap);
    map_fini(&k->at);
}

bp_status tape_backward(bp_ctx *c, bp_tensor *const *roots, bp_tensor *const *grads, uint32_t nroots,
                        bp_tensor *const *inputs, bp_tensor **out, uint32_t ninputs, uint32_t flags)
{
    task k = {.c = c, .to_inputs = inputs != NULL, .flags = flags, .inputs = inputs, .out = out, .ninputs = ninputs};
    for (uint32_t i = 0; inputs && i < ninputs; i++)
        out[i] = NULL;
    if (!ctx_ok(c))
        return c->diag.code;
    uint8_t grad = c->ambient.grad_enabled;
    c->ambient.grad_enabled = (flags & TAPE_CREATE) != 0;
    bp_status st = run_task(&k, roots, grads, nroots);
    c->ambient.grad_enabled = grad;
    task_fini(&k, st);
    return st;
}
