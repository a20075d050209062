/* Recording calls on fakes as nodes of a joint graph. */
#include "host/grad/joint_record.h"
#include "host/op/run.h"
#include <stdio.h>
#include <string.h>

/* -- values -------------------------------------------------------------------------------------------------------- */

bp_status recorder_know(recorder *r, bp_tensor *t, node_id n)
{
    map_value *v = map_put_u64(&r->known, (uintptr_t)t->store, NULL);
    if (!v || !vec_push(&r->held, t))
        return ctx_nomem(r->c);
    tensor_ref(t);
    v->u = n;
    return BP_OK;
}

node_id recorder_find(const recorder *r, const bp_tensor *t)
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

node_id recorder_constant(recorder *r, bp_tensor *t)
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
    if (n && gm_set_constant(r->c, r->gm, graph_get(&r->gm->g, n)->name, t) != BP_OK)
        return 0;
    if (n && recorder_know(r, t, n) != BP_OK)
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
    node_id n = recorder_find(r, t);
    if (!n && !tensor_is_fake(t))
        n = recorder_constant(r, t);
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
        TRY(recorder_know(r, k->out[i], at));
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
    if (same && recorder_find(r, self))
        return recorder_know(r, k->out[0], recorder_find(r, self));
    TRY(add_call(r, k, &n));
    TRY(set_metas(r, k, n));
    return know_results(r, k, n);
}

bp_status recorder_refuse(bp_ctx *c, const op_row *op)
{
    return ctx_fail(c, BP_UNIMPLEMENTED, "%s cannot be part of a joint graph: its result depends on data", op->target);
}

static bool requires_grad(const op_call *k)
{
    for (uint32_t i = 0; i < k->op->schema->nargs; i++)
        for (uint32_t j = 0; j < arg_list_len(k->args, i); j++) {
            const bp_tensor *t = arg_list_tensor(k->args, i, j);
            if (t && t->flags & TENSOR_REQUIRES_GRAD)
                return true;
        }
    return false;
}

/* Results that tell symbols are as the graph says: the rule would give other symbols. */
static bp_status give_declared(recorder *r, op_call *k)
{
    const graph_node *n = r->makes;
    bool grad = r->c->ambient.grad_enabled && !(k->op->flags & OP_NO_GRAD_OUT) && requires_grad(k);
    TRY(results_reserve(r->c, k, n->nmetas));
    for (uint32_t i = 0; i < n->nmetas; i++) {
        if (!(k->out[i] = tensor_new_fake(r->c, &n->metas[i])))
            return r->c->diag.code;
        bool flows = grad && (dtype_is_float(n->metas[i].dtype) || dtype_is_complex(n->metas[i].dtype));
        k->out[i]->flags |= flows ? TENSOR_REQUIRES_GRAD : TENSOR_IS_LEAF;
    }
    return BP_OK;
}

static bp_status answer(bp_ctx *c, dispatch_mode *self, void *op_call_)
{
    recorder *r = (recorder *)self;
    op_call *k = op_call_;
    bool makes = r->makes && r->makes->row == k->op;
    if (!makes && k->op->flags & (OP_ITEM | OP_EFFECT | OP_DYNAMIC_OUT))
        return recorder_refuse(c, k->op);
    if (k->op->functional)
        return ctx_fail(c, BP_UNIMPLEMENTED, "%s writes in place, and a joint graph is functional", k->op->target);
    bp_status st = makes ? give_declared(r, k) : op_run_fake(c, k);
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

/* -- life ---------------------------------------------------------------------------------------------------------- */

void recorder_init(recorder *r, bp_ctx *c, const bp_graph_module *from)
{
    *r = (recorder){.c = c, .from = from};
}

void recorder_start(recorder *r)
{
    r->mode = (dispatch_mode){.call = answer, .name = "joint"};
    mode_push(r->c, &r->mode);
}

void recorder_fini(recorder *r)
{
    for (uint32_t i = 0; i < r->held.len; i++)
        tensor_unref(r->held.at[i]);
    vec_fini(&r->held);
    map_fini(&r->known);
}
