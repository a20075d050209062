/* Tracing a joint graph: the graph runs on fakes under the tape, which stands over a recorder; then backward runs from
 * the outputs that require grad, with tangents as gradients, and is recorded as well.
 *
 * A value is known by its storage: what is recorded gets one of its own, so a tensor that shares it (a saved result
 * without its history) is the same value. Views share nothing here; the graph is functional. */
#include "host/grad/joint.h"
#include "host/grad/tape.h"
#include <backplane/backplane.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    dispatch_mode mode;      /* first */
    bp_ctx *c;
    const bp_graph_module *from;
    bp_graph_module *gm;
    map known;               /* storage -> node */
    VEC(bp_tensor *) held;   /* a reference each, so that no storage is taken for another */
    uint32_t nconstants;
} recorder;

/* -- values -------------------------------------------------------------------------------------------------------- */

static bp_status know(recorder *r, bp_tensor *t, node_id n)
{
    map_value *v = map_put_u64(&r->known, (uintptr_t)t->store, NULL);
    if (!v || !vec_push(&r->held, t))
        return ctx_nomem(r->c);
    tensor_ref(t);
    v->u = n;
    return BP_OK;
}

static node_id find(const recorder *r, const bp_tensor *t)
{
    map_value *v = map_get_u64(&r->known, (uintptr_t)t->store);
    return v ? (node_id)v->u : 0;
}

/* The name under which the traced graph has it; NULL: it was made meanwhile. */
static const char *constant_name(const recorder *r, const bp_tensor *t)
{
    uint32_t i = 0;
    str key;
    map_value *v;
    while (map_next(&r->from->constants, &i, &key, &v))
        if (v->p == t)
            return key.s;
    return NULL;
}

/* A tensor with data becomes a constant of the graph. */
static node_id add_constant(recorder *r, bp_tensor *t)
{
    char name[64];
    tensor_meta m;
    const char *own = constant_name(r, t);
    if (!own) {
        snprintf(name, sizeof name, "_tensor_constant%u", r->nconstants++);
        own = name;
    }
    tensor_get_meta(t, &m);
    node_id n = graph_get_attr(&r->gm->g, own, own, &m);
    if (n && (gm_set_constant(r->c, r->gm, graph_get(&r->gm->g, n)->name, t) != BP_OK || know(r, t, n) != BP_OK))
        return 0;
    return n;
}

static bp_value number_of(const bp_tensor *t)
{
    num n = dtype_load(t->dtype, tensor_ptr(t));
    if (t->dtype == BP_BOOL)
        return value_bool(n.i != 0);
    return n.kind == NUM_FLOAT ? value_float(n.f) : value_int(n.i);
}

static bp_status graph_value(recorder *r, const bp_value *v, bp_value *to)
{
    *to = *v;
    if (v->kind == BP_VALUE_LIST) {
        bp_value *items = arena_array(&r->gm->g.arena, v->count, sizeof *items);
        if (!items)
            return ctx_nomem(r->c);
        for (uint32_t i = 0; i < v->count; i++)
            TRY(graph_value(r, &v->v.items[i], &items[i]));
        to->v.items = items;
        return BP_OK;
    }
    bp_tensor *t = v->kind == BP_VALUE_TENSOR ? v->v.tensor : NULL;
    if (!t)
        return BP_OK;
    if (t->flags & TENSOR_WRAPPED_NUMBER && !tensor_is_fake(t) && !dtype_is_complex(t->dtype)) {
        *to = number_of(t);
        return BP_OK;
    }
    node_id n = find(r, t);
    if (!n && !tensor_is_fake(t))
        n = add_constant(r, t);
    if (!n && ctx_ok(r->c))
        return ctx_fail(r->c, BP_INTERNAL, "the derivative reads the data of a tensor that it did not ask for");
    *to = graph_ref(n);
    return r->c->diag.code;
}

/* -- nodes --------------------------------------------------------------------------------------------------------- */

/* Positional arguments up to the last that is no default, then the others by name. */
static bp_status add_call(recorder *r, const op_call *k, node_id *n)
{
    graph *g = &r->gm->g;
    const schema *s = k->op->schema;
    uint32_t nargs = 0, nkw = 0;
    bp_value *args = arena_array(&g->arena, s->nargs, sizeof *args);
    node_kwarg *kw = arena_array(&g->arena, s->nargs, sizeof *kw);
    if (!args || !kw)
        return ctx_nomem(r->c);
    for (uint32_t i = 0; i < s->nargs; i++) {
        const schema_arg *a = &s->args[i];
        bp_value v;
        if (a->ty.type == TYPE_GRAPH) {
            v = graph_ref(gm_add_sub(r->c, r->gm, a->name, k->args[i].v.tensor));
            TRY(graph_status(r->c, g));
        } else {
            TRY(graph_value(r, &k->args[i], &v));
        }
        bool is_default = a->has_default && value_eq(&v, &a->default_value);
        if (!a->kwarg_only) {
            args[i] = v;
            nargs = is_default ? nargs : i + 1;
        } else if (!is_default) {
            kw[nkw++] = (node_kwarg){a->name, v};
        }
    }
    *n = graph_call(g, NULL, k->op->target, args, nargs, kw, nkw);
    graph_set_site(g, *n, r->c->site_file, r->c->site_line);
    return graph_status(r->c, g);
}

/* The result with a storage of its own; it keeps what says whether it requires grad. */
static bp_tensor *apart(recorder *r, bp_tensor *t)
{
    tensor_meta m;
    tensor_get_meta(t, &m);
    m.offset = dim_const(0);
    bp_tensor *own = tensor_new_fake(r->c, &m);
    if (own)
        own->flags = t->flags & (TENSOR_REQUIRES_GRAD | TENSOR_IS_LEAF);
    return own;
}

static bool is_argument(const op_call *k, const bp_tensor *t)
{
    for (uint32_t i = 0; i < k->op->schema->nargs; i++)
        for (uint32_t j = 0; j < arg_list_len(k->args, i); j++)
            if (arg_list_tensor(k->args, i, j) == t)
                return true;
    return false;
}

static bp_status own_results(recorder *r, op_call *k)
{
    for (uint32_t i = 0; i < k->nout; i++) {
        if (!k->out[i] || is_argument(k, k->out[i]))
            continue;
        bp_tensor *own = apart(r, k->out[i]);
        if (!own)
            return r->c->diag.code;
        tensor_unref(k->out[i]);
        k->out[i] = own;
    }
    return BP_OK;
}

static bp_status know_results(recorder *r, const op_call *k, node_id n)
{
    graph *g = &r->gm->g;
    const schema *s = k->op->schema;
    bool list = s->nreturns > 1 || (s->nreturns == 1 && s->returns[0].list);
    for (uint32_t i = 0; i < k->nout; i++) {
        if (!k->out[i])
            continue;
        node_id at = n;
        if (list) {
            bp_value args[2] = {graph_ref(n), value_int(i)};
            tensor_meta m;
            tensor_get_meta(k->out[i], &m);
            at = graph_call(g, NULL, "<built-in function getitem>", args, 2, NULL, 0);
            graph_set_metas(g, at, &m, 1);
            graph_set_site(g, at, r->c->site_file, r->c->site_line);
        }
        TRY(graph_status(r->c, g));
        TRY(know(r, k->out[i], at));
    }
    return BP_OK;
}

/* Metadata of all results; one that is absent (a gradient that is not asked for) has none, and is empty. */
static bp_status set_metas(recorder *r, const op_call *k, node_id n)
{
    tensor_meta *metas = arena_array(&r->gm->g.arena, k->nout, sizeof *metas);
    bp_dim empty[2] = {dim_const(0), dim_const(1)};
    if (!metas)
        return ctx_nomem(r->c);
    for (uint32_t i = 0; i < k->nout; i++) {
        metas[i] = (tensor_meta){.dtype = BP_F32, .rank = 1, .sizes = empty, .strides = empty + 1};
        if (k->out[i])
            tensor_get_meta(k->out[i], &metas[i]);
    }
    graph_set_metas(&r->gm->g, n, metas, k->nout);
    return graph_status(r->c, &r->gm->g);
}

static bp_status record(recorder *r, op_call *k)
{
    node_id n = 0;
    bool new = false;
    for (uint32_t i = 0; i < k->nout; i++)
        new |= k->out[i] && !is_argument(k, k->out[i]);
    if (!new && k->nout)
        return BP_OK; /* contiguous() of a contiguous tensor and kin */
    TRY(own_results(r, k));
    const bp_tensor *self = k->op->schema->nargs ? arg_tensor(k->args, 0) : NULL;
    bool same = self && k->nout == 1 && (!strcmp(k->op->id, "detach_default") || !strcmp(k->op->id, "alias_default"));
    if (same && find(r, self))
        return know(r, k->out[0], find(r, self));
    TRY(add_call(r, k, &n));
    TRY(set_metas(r, k, n));
    return know_results(r, k, n);
}

static bp_status depends_on_data(bp_ctx *c, const op_row *op)
{
    return ctx_fail(c, BP_UNIMPLEMENTED, "%s cannot be part of a joint graph: its result depends on data", op->target);
}

static bp_status answer(bp_ctx *c, dispatch_mode *self, void *op_call_)
{
    recorder *r = (recorder *)self;
    op_call *k = op_call_;
    if (k->op->flags & (OP_ITEM | OP_EFFECT | OP_DYNAMIC_OUT))
        return depends_on_data(c, k->op);
    if (k->op->functional)
        return ctx_fail(c, BP_UNIMPLEMENTED, "%s writes in place, and a joint graph is functional", k->op->target);
    bp_status st = op_run_fake(c, k);
    if (st == BP_FAILED_PRECONDITION) /* a size that depends on data */
        c->diag.code = BP_UNIMPLEMENTED;
    TRY(c->diag.code);
    st = record(r, k);
    for (uint32_t i = 0; st != BP_OK && i < k->nout; i++) {
        tensor_unref(k->out[i]);
        k->out[i] = NULL;
    }
    return st;
}

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
        TRY(know(r, in[i], graph_placeholder(&r->gm->g, name, node->target, node->role, node->metas)));
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
    return know(r, *tangent, graph_placeholder(&r->gm->g, name, name, BP_ROLE_USER, &m));
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

/* Among fakes a run guesses the numbers that only data tell; a guess must not be recorded. */
static bp_status check_numbers(const tracing *t)
{
    const graph *g = &t->gm->g;
    for (node_id n = g->first; n; n = graph_get(g, n)->next) {
        const op_row *row = graph_get(g, n)->row;
        if (row && row->flags & OP_ITEM)
            return depends_on_data(t->c, row);
    }
    return BP_OK;
}

static bp_status run_forward(tracing *t)
{
    TRY(check_numbers(t));
    TRY(t->forward ? t->forward(t->c, t->arg, t->in, t->out, t->nout)
                   : graph_run(t->c, t->gm, t->in, t->nin, t->out, t->nout, NULL, NULL));
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
        node_id n = o ? find(r, o) : 0;
        if (o && !n && !tensor_is_fake(o) && !(n = add_constant(r, o)))
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
    return put_tangents_first(t);
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
    t->r.mode = (dispatch_mode){.call = answer, .name = "joint"};
    c->modes = NULL;
    mode_push(c, &t->r.mode);
    mode_push(c, &tape);
    c->ambient.grad_enabled = 1;
    c->ambient.inference_mode = 0;
    scope_push(c);
    bp_status st = trace_both(t);
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
    for (uint32_t i = 0; i < t->r.held.len; i++)
        tensor_unref(t->r.held.at[i]);
    vec_fini(&t->r.held);
    map_fini(&t->r.known);
}

static bp_status make_module(tracing *t)
{
    t->j->gm = t->r.gm = gm_new(t->c, t->gm->name);
    if (!t->r.gm)
        return t->c->diag.code;
    t->r.gm->code_id = t->gm->code_id;
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
                 .r = {.c = c, .from = gm}, .nin = graph_placeholders(&gm->g, NULL, 0), .nout = nout};
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
