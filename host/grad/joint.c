/* Tracing a joint graph: the graph runs on fakes under the tape, which stands over a recorder; then backward runs from
 * the outputs that require grad, with tangents as gradients, and is recorded as well.
 *
 * The joint graph's environment is a copy of the graph's: symbols and expressions keep their ids, and what is asked
 * meanwhile comes on top. A number of the graph is its symbol; a call that makes one is copied. */
#include "host/grad/joint.h"
#include "host/grad/joint_record.h"
#include "host/grad/share.h"
#include "host/pass/pure.h"
#include <backplane/backplane.h>
#include <stdio.h>
#include <string.h>

/* -- inputs -------------------------------------------------------------------------------------------------------- */

static bp_tensor *fake_input(bp_ctx *c, const tensor_meta *m, bool needs)
{
    bp_tensor *t = tensor_new_fake(c, m);
    if (t)
        t->flags |= TENSOR_IS_LEAF | (needs ? TENSOR_REQUIRES_GRAD : 0);
    return t;
}

static bp_status make_primals(bp_ctx *c, const bp_graph_module *gm, const uint8_t *needs, bp_tensor **in)
{
    uint32_t i = 0;
    for (node_id n = gm->g.first; n; n = graph_get(&gm->g, n)->next) {
        const graph_node *node = graph_get(&gm->g, n);
        if (node->op != BP_NODE_PLACEHOLDER)
            continue;
        if (node->nmetas != 1)
            return ctx_fail(c, BP_FAILED_PRECONDITION, "input \"%s\" of graph \"%s\" has no type", node->name,
                            gm->name);
        if (!(in[i] = fake_input(c, node->metas, needs[i])))
            return c->diag.code;
        i++;
    }
    return BP_OK;
}

static bp_status add_primals(recorder *r, bp_tensor *const *in)
{
    uint32_t i = 0;
    char name[32];
    for (node_id n = r->from->g.first; n; n = graph_get(&r->from->g, n)->next) {
        const graph_node *node = graph_get(&r->from->g, n);
        if (node->op != BP_NODE_PLACEHOLDER)
            continue;
        snprintf(name, sizeof name, "primals_%u", i + 1);
        node_spec s = {.op = BP_NODE_PLACEHOLDER, .role = node->role, .name = name, .target = node->target,
                       .metas = node->metas, .nmetas = 1, .number = node->number};
        TRY(recorder_know(r, in[i], graph_add(&r->gm->g, &s)));
        i++;
    }
    return graph_status(r->c, &r->gm->g);
}

/* As the output is laid out, if that is a format; else contiguous. */
static bp_tensor *make_tangent(bp_ctx *c, const bp_tensor *out)
{
    tensor_meta m;
    bp_dim strides[TENSOR_MAX_RANK];
    tensor_get_meta(out, &m);
    if (layout_memory_format(c, m.rank, m.sizes, tensor_suggest_format(out), strides) != BP_OK)
        return NULL;
    m.strides = strides;
    m.offset = dim_const(0);
    return tensor_new_fake(c, &m);
}

static bp_status add_tangent(recorder *r, const bp_tensor *out, uint32_t number, bp_tensor **tangent)
{
    char name[32];
    tensor_meta m;
    if (!(*tangent = make_tangent(r->c, out)))
        return r->c->diag.code;
    snprintf(name, sizeof name, "tangents_%u", number);
    tensor_get_meta(*tangent, &m);
    return recorder_know(r, *tangent, graph_placeholder(&r->gm->g, name, name, BP_ROLE_USER, &m));
}

/* -- the trace ----------------------------------------------------------------------------------------------------- */

typedef struct {
    bp_ctx *c;
    const bp_graph_module *gm;
    const uint8_t *needs;
    joint_forward forward;   /* NULL: gm itself */
    void *arg;
    joint *j;
    recorder r;
    node_id *of;             /* by node of gm: the joint's that gives its only result, or 0 */
    bp_tensor **at;          /* the same: that result, borrowed while it is read */
    uint32_t nin, nout;
    bp_tensor **in, **out;   /* nin and nout; the forward's */
    bp_tensor **tangents;    /* up to nout */
    bp_tensor **wanted;      /* up to nin: inputs whose gradient is asked for */
    bp_tensor **grads;       /* as many */
    uint32_t nwanted;
} tracing;

static bp_status allocate(tracing *t)
{
    joint *j = t->j;
    t->in = calloc(t->nin + 1, sizeof *t->in);
    t->wanted = calloc(t->nin + 1, sizeof *t->wanted);
    t->grads = calloc(t->nin + 1, sizeof *t->grads);
    t->out = calloc(t->nout + 1, sizeof *t->out);
    t->tangents = calloc(t->nout + 1, sizeof *t->tangents);
    j->needs = calloc(t->nin + 1, 1);
    j->tangent_of = calloc(t->nout + 1, sizeof *j->tangent_of);
    if (!t->in || !t->wanted || !t->grads || !t->out || !t->tangents || !j->needs || !j->tangent_of)
        return ctx_nomem(t->c);
    memcpy(j->needs, t->needs, t->nin);
    return BP_OK;
}

/* An output takes a gradient unless it requires none, is an input itself, or has been there before. */
static bool takes_gradient(const tracing *t, uint32_t i)
{
    const bp_tensor *o = t->out[i];
    if (!o || !bp_tensor_requires_grad(o))
        return false;
    for (uint32_t k = 0; k < t->nin; k++)
        if (t->in[k]->store == o->store)
            return false;
    for (uint32_t k = 0; k < i; k++)
        if (t->out[k] && t->out[k]->store == o->store)
            return false;
    return true;
}

/* Among fakes a run guesses the numbers that only data tell, unless they are symbols; a guess must not be recorded. */
static bp_status check_numbers(const tracing *t)
{
    const graph *g = &t->gm->g;
    for (node_id n = g->first; n; n = graph_get(g, n)->next) {
        const graph_node *node = graph_get(g, n);
        if (node->row && node->row->flags & OP_ITEM && !node->number.sym && node->users.len)
            return recorder_refuse(t->c, node->row);
    }
    return BP_OK;
}

/* -- calls that tell symbols: modes do not see them ---------------------------------------------------------------- */

static bp_status argument(tracing *t, const bp_value *v, bp_value *out)
{
    *out = *v;
    if (v->kind == BP_VALUE_NODE) {
        *out = value_tensor(t->at[v->v.node]);
        return t->at[v->v.node] ? BP_OK : ctx_fail(t->c, BP_UNIMPLEMENTED, "\"%s\" is read as a list or a number",
                                                   graph_get(&t->gm->g, v->v.node)->name);
    }
    if (v->kind != BP_VALUE_LIST)
        return BP_OK;
    bp_value *items = arena_array(&t->c->scratch, v->count, sizeof *items);
    if (!items)
        return ctx_nomem(t->c);
    for (uint32_t i = 0; i < v->count; i++)
        TRY(argument(t, &v->v.items[i], &items[i]));
    out->v.items = items;
    return BP_OK;
}

static bp_status arguments(tracing *t, const graph_node *n, bp_value **out)
{
    bp_value *pos = arena_array(&t->c->scratch, n->nargs + n->nkwargs, sizeof *pos), *named = pos + n->nargs;
    const char **names = arena_array(&t->c->scratch, n->nkwargs, sizeof *names);
    if (!pos || !names)
        return ctx_nomem(t->c);
    for (uint32_t i = 0; i < n->nargs; i++)
        TRY(argument(t, &n->args[i], &pos[i]));
    for (uint32_t i = 0; i < n->nkwargs; i++) {
        names[i] = n->kwargs[i].name;
        TRY(argument(t, &n->kwargs[i].value, &named[i]));
    }
    return op_bind(t->c, n->row, pos, n->nargs, names, named, n->nkwargs, out);
}

/* The call goes through the tape to the recorder; what the run has made is that. */
static bp_status record_maker(tracing *t, const graph_node *n, bp_tensor *const *results)
{
    op_call k = {.op = n->row, .nargs = n->row->schema->nargs};
    bp_value *args = NULL;
    TRY(arguments(t, n, &args));
    k.args = args;
    t->r.makes = n;
    bp_status st = op_dispatch(t->c, &k);
    t->r.makes = NULL;
    for (uint32_t i = 0; st == BP_OK && i < k.nout; i++) {
        st = recorder_know(&t->r, results[i], recorder_find(&t->r, k.out[i]));
        if (st == BP_OK && k.out[i]->flags & TENSOR_REQUIRES_GRAD)
            st = tape_share_history(t->c, results[i], k.out[i]);
    }
    for (uint32_t i = 0; i < k.nout; i++)
        tensor_unref(k.out[i]);
    return st;
}

/* The number of a tensor's only element. */
static bp_status record_number(tracing *t, const graph_node *n)
{
    graph *g = &t->r.gm->g;
    node_id of = n->nargs == 1 && n->args[0].kind == BP_VALUE_NODE ? t->of[n->args[0].v.node] : 0;
    if (!of)
        return recorder_refuse(t->c, n->row);
    bp_value x = graph_ref(of);
    node_spec s = {.op = BP_NODE_CALL_FUNCTION, .target = n->target, .args = &x, .nargs = 1, .number = n->number};
    graph_set_site(g, graph_add(g, &s), n->file, n->line);
    return graph_status(t->c, g);
}

static bp_status note_node(void *arg, node_id n, bp_tensor *const *results, uint32_t nresults)
{
    tracing *t = arg;
    const graph_node *node = graph_get(&t->gm->g, n);
    if (node_makes_symbol(&t->gm->g, n)) {
        arena_mark mark = arena_get_mark(&t->c->scratch);
        bp_status st = !node->row               ? BP_OK
                       : node->row->flags & OP_ITEM ? record_number(t, node)
                                                    : record_maker(t, node, results);
        arena_reset(&t->c->scratch, mark);
        TRY(st);
    }
    if (nresults == 1 && results[0]) {
        t->of[n] = recorder_find(&t->r, results[0]);
        t->at[n] = results[0];
    }
    return BP_OK;
}

/* The graph itself, its expressions in the joint graph's environment. */
static bp_status run_graph(tracing *t)
{
    bp_graph_module over = *t->gm;
    arena *a = &t->r.gm->g.arena;
    over.g.syms = t->r.gm->g.syms;
    t->of = arena_array(a, over.g.nodes.len, sizeof *t->of);
    t->at = arena_array(a, over.g.nodes.len, sizeof *t->at);
    if (!t->of || !t->at)
        return ctx_nomem(t->c);
    TRY(check_numbers(t));
    return graph_run(t->c, &over, t->in, t->nin, t->out, t->nout, note_node, t);
}

static bp_status run_forward(tracing *t)
{
    TRY(t->forward ? t->forward(t->c, t->arg, t->in, t->out, t->nout) : run_graph(t));
    t->j->last_forward = t->r.gm->g.last;
    for (uint32_t i = 0; i < t->nout; i++)
        if (takes_gradient(t, i)) {
            t->j->tangent_of[t->j->ntangents] = i;
            TRY(add_tangent(&t->r, t->out[i], t->j->ntangents + 1, &t->tangents[t->j->ntangents]));
            t->j->ntangents++;
        }
    return BP_OK;
}

static bp_status run_backward(tracing *t)
{
    joint *j = t->j;
    bp_tensor **roots = calloc(j->ntangents + 1, sizeof *roots);
    if (!roots)
        return ctx_nomem(t->c);
    for (uint32_t i = 0; i < j->ntangents; i++)
        roots[i] = t->out[j->tangent_of[i]];
    for (uint32_t i = 0; i < t->nin; i++)
        if (t->needs[i])
            t->wanted[t->nwanted++] = t->in[i];
    t->c->site_file = NULL;
    bp_status st = BP_OK;
    if (j->ntangents)
        st = tape_backward(t->c, roots, t->tangents, j->ntangents, t->wanted, t->grads, t->nwanted, TAPE_ALLOW_UNUSED);
    free(roots);
    return st;
}

static bp_status add_output(tracing *t)
{
    recorder *r = &t->r;
    bp_value *list = arena_array(&r->gm->g.arena, t->nout + t->nwanted, sizeof *list);
    if (!list)
        return ctx_nomem(t->c);
    for (uint32_t i = 0; i < t->nout + t->nwanted; i++) {
        bp_tensor *o = i < t->nout ? t->out[i] : t->grads[i - t->nout];
        node_id n = o ? recorder_find(r, o) : 0;
        if (o && !n && !tensor_is_fake(o) && !(n = recorder_constant(r, o)))
            return t->c->diag.code;
        if (o && !n)
            return ctx_fail(t->c, BP_INTERNAL, "result %u of the joint graph was not recorded", i);
        list[i] = o ? graph_ref(n) : value_none();
    }
    graph_output(&r->gm->g, list, t->nout + t->nwanted);
    return graph_status(t->c, &r->gm->g);
}

static void unlink_node(graph *g, node_id n)
{
    graph_node *node = &g->nodes.at[n];
    *(node->prev ? &g->nodes.at[node->prev].next : &g->first) = node->next;
    *(node->next ? &g->nodes.at[node->next].prev : &g->last) = node->prev;
}

static void link_behind(graph *g, node_id n, node_id at)
{
    graph_node *node = &g->nodes.at[n];
    node->prev = at;
    node->next = at ? g->nodes.at[at].next : g->first;
    *(at ? &g->nodes.at[at].next : &g->first) = n;
    *(node->next ? &g->nodes.at[node->next].prev : &g->last) = n;
}

/* Tangents were met behind the forward; they stand behind the primals. */
static bp_status put_tangents_first(tracing *t)
{
    graph *g = &t->r.gm->g;
    uint32_t n = t->nin + t->j->ntangents;
    node_id *at = arena_array(&g->arena, n, sizeof *at);
    if (!at)
        return ctx_nomem(t->c);
    graph_placeholders(g, at, n);
    for (uint32_t i = t->nin; i < n; i++) {
        unlink_node(g, at[i]);
        link_behind(g, at[i], i ? at[i - 1] : 0);
    }
    return BP_OK;
}

static bp_status trace_both(tracing *t)
{
    TRY(add_primals(&t->r, t->in));
    TRY(run_forward(t));
    TRY(run_backward(t));
    TRY(add_output(t));
    TRY(put_tangents_first(t));
    if (t->r.gm->g.syms)
        graph_find_sources(&t->r.gm->g);
    return graph_status(t->c, &t->r.gm->g);
}

/* Runs it with the tape and the recorder as the only modes, and grad mode on. */
static bp_status trace_under_tape(tracing *t)
{
    bp_ctx *c = t->c;
    dispatch_mode tape, *modes = c->modes;
    ambient before = c->ambient;
    uint64_t rng = c->rng_offset;
    const char *file = c->site_file;
    int32_t line = c->site_line;
    tape_mode_init(&tape);
    c->modes = NULL;
    recorder_start(&t->r);
    mode_push(c, &tape);
    c->ambient.grad_enabled = 1;
    c->ambient.inference_mode = 0;
    scope_push(c);
    sym_scope outer = sym_push(t->r.gm->g.syms, c);
    bp_status st = trace_both(t);
    sym_pop(outer);
    scope_pop(c);
    c->modes = modes;
    c->ambient = before;
    c->rng_offset = rng;
    c->site_file = file;
    c->site_line = line;
    return st;
}

static void drop_tensors(bp_tensor **t, uint32_t n)
{
    for (uint32_t i = 0; t && i < n; i++)
        tensor_unref(t[i]);
    free(t);
}

static void tracing_fini(tracing *t)
{
    drop_tensors(t->in, t->nin);
    drop_tensors(t->out, t->nout);
    drop_tensors(t->tangents, t->nout);
    drop_tensors(t->grads, t->nin);
    free(t->wanted);
    recorder_fini(&t->r);
}

static bp_status make_module(tracing *t)
{
    t->j->gm = t->r.gm = gm_new(t->c, t->gm->name);
    if (!t->r.gm)
        return t->c->diag.code;
    t->r.gm->code_id = t->gm->code_id;
    if (t->gm->g.syms && !(t->r.gm->g.syms = sym_env_clone(t->gm->g.syms)))
        return ctx_nomem(t->c);
    for (uint32_t i = 0; i < t->gm->options.len; i++)
        TRY(gm_set_option(t->c, t->r.gm, t->gm->options.at[i].key, t->gm->options.at[i].value));
    return BP_OK;
}

bp_status joint_trace(bp_ctx *c, const bp_graph_module *gm, const uint8_t *needs, joint *out)
{
    return joint_trace_call(c, gm, needs, NULL, NULL, graph_output_count(&gm->g), out);
}

bp_status joint_trace_call(bp_ctx *c, const bp_graph_module *gm, const uint8_t *needs, joint_forward forward, void *arg,
                           uint32_t nout, joint *out)
{
    *out = (joint){0};
    if (!ctx_ok(c))
        return c->diag.code;
    tracing t = {.c = c, .gm = gm, .needs = needs, .forward = forward, .arg = arg, .j = out,
                 .nin = graph_placeholders(&gm->g, NULL, 0), .nout = nout};
    recorder_init(&t.r, c, gm);
    out->nprimals = t.nin;
    out->noutputs = t.nout;
    bp_status st = allocate(&t);
    if (!st)
        st = make_primals(c, gm, needs, t.in);
    if (!st)
        st = make_module(&t);
    if (!st)
        st = trace_under_tape(&t);
    tracing_fini(&t);
    if (st) {
        diag_while(&c->diag, "tracing the joint graph of \"%s\"", gm->name);
        joint_fini(out);
    }
    return st;
}

void joint_fini(joint *j)
{
    gm_unref(j->gm);
    free(j->tangent_of);
    free(j->needs);
    *j = (joint){0};
}
