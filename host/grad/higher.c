/* Derivatives of operators over graphs: an operator of the same kind runs graphs that give gradients.
 *
 * The gradient graph of a graph takes its inputs and gradients of its results, computes its results again, and gives a
 * gradient for each input that needs one, zeros where none flows, so that both graphs of a cond give the same. It is
 * traced as a joint graph is. cond's backward is a cond, map's a map. scan's is a scan from the last item to the first,
 * which carries gradients of what was carried, and sums of those of additional inputs; what was carried into each item
 * is computed again by a scan before it. */
#include "host/grad/joint.h"
#include "host/grad/rows.h"
#include "host/grad/tape.h"
#include "host/graph/higher.h"
#include "host/op/rows.h"
#include "host/pass/pass.h"
#include <backplane/backplane.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- the gradient graph -------------------------------------------------------------------------------------------- */

#define NOWHERE UINT32_MAX
typedef struct { uint32_t input, add; } grad_out; /* the gradient of an input, and what of `in` is added to it */

/* Where the graph's inputs and the gradients of its results stand among the gradient graph's placeholders. */
typedef struct {
    const bp_graph_module *of;
    tensor_meta *in;          /* nin: of the placeholders */
    uint32_t *input;          /* one an input of `of`: its placeholder */
    uint32_t *tangent;        /* one a result of `of`: its gradient's placeholder, or NOWHERE */
    uint8_t *needs;           /* one an input of `of` */
    grad_out *out;            /* nout: what is given */
    uint32_t nin, ninputs, nresults, nout;
} plan;

static bool plan_make(bp_ctx *c, const bp_graph_module *of, plan *p)
{
    arena *a = &c->scratch;
    uint32_t n = graph_placeholders(&of->g, NULL, 0), r = graph_output_count(&of->g);
    *p = (plan){.of = of, .ninputs = n, .nresults = r};
    p->in = arena_array(a, 2 * ((size_t)n + r), sizeof *p->in);
    p->input = arena_array(a, n, sizeof *p->input);
    p->tangent = arena_array(a, r, sizeof *p->tangent);
    p->needs = arena_array(a, n, 1);
    p->out = arena_array(a, n, sizeof *p->out);
    for (uint32_t i = 0; p->tangent && i < r; i++)
        p->tangent[i] = NOWHERE;
    if (p->in && p->input && p->tangent && p->needs && p->out)
        return true;
    ctx_nomem(c);
    return false;
}

/* The next placeholder: laid out as t, or as an item of it. */
static uint32_t plan_take(plan *p, const bp_tensor *t, bool item)
{
    tensor_meta *m = &p->in[p->nin];
    tensor_get_meta(t, m);
    m->offset = dim_const(0);
    if (item)
        m->rank--, m->sizes++, m->strides++;
    return p->nin++;
}

static void plan_give(plan *p, uint32_t input, uint32_t add)
{
    p->out[p->nout++] = (grad_out){input, add};
}

typedef struct { bp_tensor **in, **out, **roots, **tangents, **wanted, **grads; uint32_t nroots, nwanted; } work_space;

static bool work_make(bp_ctx *c, const plan *p, work_space *w)
{
    *w = (work_space){0};
    bp_tensor **all = calloc(3 * (size_t)p->ninputs + 3 * (size_t)p->nresults + 1, sizeof *all);
    if (!all)
        return ctx_nomem(c), false;
    w->in = all;
    w->wanted = w->in + p->ninputs;
    w->grads = w->wanted + p->ninputs;
    w->out = w->grads + p->ninputs;
    w->roots = w->out + p->nresults;
    w->tangents = w->roots + p->nresults;
    return true;
}

static void work_drop(const plan *p, work_space *w)
{
    for (uint32_t i = 0; i < p->ninputs; i++) {
        tensor_unref(w->in[i]);
        tensor_unref(w->grads[i]);
    }
    for (uint32_t i = 0; i < p->nresults; i++)
        tensor_unref(w->out[i]);
    free(w->in);
}

/* t as a leaf of its own, which is the same value to a recorder. */
static bp_tensor *as_leaf(bp_ctx *c, bp_tensor *t, bool needs)
{
    tensor_meta m;
    tensor_get_meta(t, &m);
    bp_tensor *leaf = tensor_view(c, t, &m);
    if (leaf)
        leaf->flags = (uint8_t)((leaf->flags & ~TENSOR_REQUIRES_GRAD) | TENSOR_IS_LEAF |
                                (needs ? TENSOR_REQUIRES_GRAD : 0));
    return leaf;
}

static bp_status run_graph(bp_ctx *c, const plan *p, bp_tensor *const *in, work_space *w)
{
    for (uint32_t i = 0; i < p->ninputs; i++) {
        if (!(w->in[i] = as_leaf(c, in[p->input[i]], p->needs[i])))
            return c->diag.code;
        if (p->needs[i])
            w->wanted[w->nwanted++] = w->in[i];
    }
    TRY(graph_run(c, p->of, w->in, p->ninputs, w->out, p->nresults, NULL, NULL));
    for (uint32_t j = 0; j < p->nresults; j++) {
        if (p->tangent[j] == NOWHERE || !w->out[j] || !tensor_requires_grad(w->out[j]))
            continue;
        w->roots[w->nroots] = w->out[j];
        w->tangents[w->nroots++] = in[p->tangent[j]];
    }
    return w->nroots ? tape_backward(c, w->roots, w->tangents, w->nroots, w->wanted, w->grads, w->nwanted,
                                     TAPE_ALLOW_UNUSED) : BP_OK;
}

static bp_tensor *grad_of_input(const plan *p, const work_space *w, uint32_t input)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < input; i++)
        at += p->needs[i];
    return p->needs[input] ? w->grads[at] : NULL;
}

static bp_status give_grads(bp_ctx *c, const plan *p, bp_tensor *const *in, const work_space *w, bp_tensor **out)
{
    for (uint32_t k = 0; k < p->nout; k++) {
        bp_tensor *g = grad_of_input(p, w, p->out[k].input);
        bp_tensor *more = p->out[k].add == NOWHERE ? NULL : in[p->out[k].add];
        if (g && more)
            g = bp_aten_add_tensor(c, g, more, bp_scalar_int(1));
        else if (!g && more)
            g = bp_aten_clone_default(c, more, BP_MEMORY_FORMAT_UNSET);
        else if (!g)
            g = grad_zeros(c, w->in[p->out[k].input]);
        TRY(c->diag.code);
        out[k] = tensor_ref(g);
    }
    return BP_OK;
}

static bp_status compute(bp_ctx *c, void *arg, bp_tensor *const *in, bp_tensor **out, uint32_t nout)
{
    const plan *p = arg;
    work_space w;
    if (!work_make(c, p, &w))
        return c->diag.code;
    bp_status st = nout == p->nout ? run_graph(c, p, in, &w) : BP_INTERNAL;
    uint8_t grad = c->ambient.grad_enabled;
    c->ambient.grad_enabled = 0;
    if (st == BP_OK)
        st = give_grads(c, p, in, &w, out);
    c->ambient.grad_enabled = grad;
    work_drop(p, &w);
    return st;
}

/* One reference. NULL: the context says why. */
static bp_graph_module *gradient_graph(bp_ctx *c, const plan *p)
{
    char name[32];
    joint j = {0};
    bp_graph_module *takes = gm_new(c, p->of->name), *gm = NULL;
    uint8_t *none = calloc(p->nin + 1u, 1);
    for (uint32_t i = 0; takes && i < p->nin; i++) {
        snprintf(name, sizeof name, "arg%u_1", i);
        graph_placeholder(&takes->g, name, name, BP_ROLE_USER, &p->in[i]);
    }
    bp_status st = takes && none ? graph_status(c, &takes->g) : ctx_nomem(c);
    if (st == BP_OK)
        st = joint_trace_call(c, takes, none, compute, (void *)(uintptr_t)p, p->nout, &j);
    if (st == BP_OK && (st = pass_dce(c, j.gm, NULL)) == BP_OK)
        st = pass_cse(c, j.gm, NULL);
    if (st == BP_OK && (st = pass_dce(c, j.gm, NULL)) == BP_OK)
        gm = gm_ref(j.gm);
    joint_fini(&j);
    gm_unref(takes);
    free(none);
    return gm;
}

/* -- calls --------------------------------------------------------------------------------------------------------- */

/* Tensors of an argument that is a list. */
static const bp_value *list_of(const grad_call *g, const char *name)
{
    return &g->args[schema_find(g->op->schema, name)];
}

static bp_tensor *item_of(const bp_value *list, uint32_t i)
{
    return list->v.items[i].v.tensor;
}

static bool needs_item(const grad_call *g, const char *name, uint32_t i)
{
    uint32_t first = grad_input(g, name);
    return first != UINT32_MAX && g->needs[first + i];
}

typedef VEC(bp_value) values;

static bp_status add_tensor(bp_ctx *c, values *to, bp_tensor *t)
{
    if (!t && ctx_ok(c))
        return ctx_nomem(c);
    return t && vec_push(to, value_tensor(t)) ? BP_OK : ctx_ok(c) ? ctx_nomem(c) : c->diag.code;
}

static bp_status add_list(bp_ctx *c, values *to, const bp_value *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        TRY(add_tensor(c, to, item_of(list, i)));
    return BP_OK;
}

/* Gradients of results that flow. */
static bp_status add_grads(bp_ctx *c, values *to, const grad_call *g, uint32_t from)
{
    for (uint32_t j = from; j < g->nresults; j++)
        if (g->grads[j])
            TRY(add_tensor(c, to, g->grads[j]));
    return BP_OK;
}

static bp_value list_value(const values *v)
{
    return value_list(v->at, v->len);
}

/* Runs it; results belong to the innermost scope, in *out of n. */
static bp_status run_call(bp_ctx *c, uint32_t row, const bp_value *args, bp_tensor ***out, uint32_t *n)
{
    op_call k = {.op = op_at(row), .args = args};
    if (!k.op)
        return ctx_nomem(c);
    k.nargs = k.op->schema->nargs;
    TRY(op_dispatch(c, &k));
    for (uint32_t i = 0; i < k.nout; i++)
        scope_own(c, k.out[i]);
    *out = k.out;
    *n = k.nout;
    return c->diag.code;
}

/* -- cond ---------------------------------------------------------------------------------------------------------- */

static bool plan_cond(bp_ctx *c, const grad_call *g, const bp_graph_module *of, plan *p)
{
    const bp_value *operands = list_of(g, "operands");
    if (!plan_make(c, of, p))
        return false;
    for (uint32_t i = 0; i < operands->count; i++) {
        p->input[i] = plan_take(p, item_of(operands, i), false);
        if ((p->needs[i] = needs_item(g, "operands", i)))
            plan_give(p, i, NOWHERE);
    }
    for (uint32_t j = 0; j < g->nresults; j++)
        if (g->grads[j])
            p->tangent[j] = plan_take(p, g->grads[j], false);
    return true;
}

bp_status grad_higher_cond(bp_ctx *c, grad_call *g)
{
    const bp_value *operands = list_of(g, "operands");
    bp_graph_module *gm[2] = {NULL, NULL};
    values in = {0};
    bp_tensor **out = NULL;
    uint32_t n = 0;
    plan p = {0};
    for (uint32_t i = 0; i < 2 && plan_cond(c, g, graph_of_value(&g->args[1 + i]), &p); i++)
        if (!(gm[i] = gradient_graph(c, &p)))
            break;
    bp_status st = gm[1] ? add_list(c, &in, operands) : c->diag.code;
    if (st == BP_OK && (st = add_grads(c, &in, g, 0)) == BP_OK) {
        bp_value args[] = {g->args[0], value_graph(gm[0]), value_graph(gm[1]), list_value(&in)};
        st = run_call(c, ROW_higher_order_cond_default, args, &out, &n);
    }
    for (uint32_t k = 0; k < n; k++)
        grad_give_item(g, "operands", p.out[k].input, out[k]);
    gm_unref(gm[0]);
    gm_unref(gm[1]);
    vec_fini(&in);
    return st;
}

/* -- map ----------------------------------------------------------------------------------------------------------- */

static bool plan_map(bp_ctx *c, const grad_call *g, plan *p)
{
    const bp_value *xs = list_of(g, "xs"), *rest = list_of(g, "pos_args");
    if (!plan_make(c, graph_of_value(&g->args[0]), p))
        return false;
    for (uint32_t i = 0; i < xs->count; i++) {
        p->input[i] = plan_take(p, item_of(xs, i), true);
        if ((p->needs[i] = needs_item(g, "xs", i)))
            plan_give(p, i, NOWHERE);
    }
    for (uint32_t j = 0; j < g->nresults; j++)
        if (g->grads[j])
            p->tangent[j] = plan_take(p, g->grads[j], true);
    for (uint32_t i = 0; i < rest->count; i++) {
        p->input[xs->count + i] = plan_take(p, item_of(rest, i), false);
        if ((p->needs[xs->count + i] = needs_item(g, "pos_args", i)))
            plan_give(p, xs->count + i, NOWHERE);
    }
    return true;
}

/* What each item gives an argument that is whole for all is summed. */
static void give_map(bp_ctx *c, grad_call *g, const plan *p, bp_tensor *const *out, uint32_t n)
{
    uint32_t nxs = list_of(g, "xs")->count;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = p->out[k].input;
        if (i < nxs)
            grad_give_item(g, "xs", i, out[k]);
        else
            grad_give_item(g, "pos_args", i - nxs, bp_aten_sum_dim_intlist(c, out[k], BP_DIMS(0), false, 0));
    }
}

bp_status grad_higher_map(bp_ctx *c, grad_call *g)
{
    plan p;
    values xs = {0};
    bp_tensor **out = NULL;
    uint32_t n = 0;
    bp_graph_module *gm = plan_map(c, g, &p) ? gradient_graph(c, &p) : NULL;
    bp_status st = gm ? add_list(c, &xs, list_of(g, "xs")) : c->diag.code;
    if (st == BP_OK && (st = add_grads(c, &xs, g, 0)) == BP_OK) {
        bp_value args[] = {value_graph(gm), list_value(&xs), *list_of(g, "pos_args")};
        st = run_call(c, ROW_higher_order_map_impl_default, args, &out, &n);
    }
    if (st == BP_OK)
        give_map(c, g, &p, out, n);
    gm_unref(gm);
    vec_fini(&xs);
    return st == BP_OK ? c->diag.code : st;
}

/* -- scan ---------------------------------------------------------------------------------------------------------- */

typedef struct {
    const bp_value *init, *xs, *more;
    values carried;        /* what was carried into each item, stacked */
    values start, along;   /* the backward scan's init and xs */
    plan p;
    uint32_t nflows;       /* of what is carried, that has gradients: the first of `start` */
} backward_scan;

static bool has_gradients(const bp_tensor *t)
{
    return dtype_is_float(t->dtype) || dtype_is_complex(t->dtype);
}

/* The graph with copies of what it is given to carry as its results, behind what it carries on. */
static bp_graph_module *carrying_graph(bp_ctx *c, const bp_graph_module *of, uint32_t n)
{
    bp_graph_module *gm = gm_clone(c, of);
    node_id *at = arena_array(&c->scratch, n + 1u, sizeof *at);
    bp_value *list = arena_array(&c->scratch, 2 * (size_t)n + 1, sizeof *list);
    if (!gm || !at || !list)
        return gm_unref(gm), ctx_nomem(c), NULL;
    node_id last = graph_output_node(&gm->g);
    graph_placeholders(&gm->g, at, n);
    for (uint32_t i = 0; i < n; i++) {
        bp_value v = graph_ref(at[i]);
        node_id copy = graph_call(&gm->g, NULL, "aten.clone.default", &v, 1, NULL, 0);
        list[i] = graph_get(&gm->g, last)->args[0].v.items[i];
        list[n + i] = graph_ref(copy);
        if (!copy)
            break;
        if (graph_get(&gm->g, at[i])->nmetas)
            graph_set_metas(&gm->g, copy, graph_get(&gm->g, at[i])->metas, 1);
        graph_move_before(&gm->g, copy, last);
    }
    bp_value all = value_list(list, 2 * n);
    graph_set_args(&gm->g, last, &all, 1);
    if (graph_status(c, &gm->g) == BP_OK && pass_dce(c, gm, NULL) == BP_OK)
        return gm;
    gm_unref(gm);
    return NULL;
}

static bp_status compute_carried(bp_ctx *c, const grad_call *g, backward_scan *b)
{
    bp_tensor **out;
    uint32_t n = 0, ncarry = b->init->count;
    bp_graph_module *gm = carrying_graph(c, graph_of_value(&g->args[0]), ncarry);
    if (!gm)
        return c->diag.code;
    bp_value args[] = {value_graph(gm), *b->init, *b->xs, *b->more};
    bp_status st = run_call(c, ROW_higher_order_scan_default, args, &out, &n);
    for (uint32_t i = ncarry; i < n && st == BP_OK; i++)
        st = add_tensor(c, &b->carried, out[i]);
    gm_unref(gm);
    return st;
}

static bp_tensor *from_the_end(bp_ctx *c, bp_tensor *t)
{
    return bp_aten_flip_default(c, t, BP_DIMS(0));
}

/* What the backward scan carries: gradients of what was carried, sums of gradients of additional inputs. */
static bp_status plan_start(bp_ctx *c, const grad_call *g, backward_scan *b)
{
    plan *p = &b->p;
    uint32_t ncarry = b->init->count, nxs = b->xs->count;
    for (uint32_t i = 0; i < ncarry; i++) {
        if (!has_gradients(item_of(b->init, i)))
            continue;
        bp_tensor *t = g->grads[i] ? g->grads[i] : grad_zeros(c, item_of(b->init, i));
        TRY(add_tensor(c, &b->start, t));
        p->tangent[i] = plan_take(p, t, false);
        p->needs[i] = 1;
        plan_give(p, i, NOWHERE);
        b->nflows++;
    }
    for (uint32_t i = 0; i < b->more->count; i++) {
        if (!(p->needs[ncarry + nxs + i] = needs_item(g, "additional_inputs", i)))
            continue;
        bp_tensor *t = grad_zeros(c, item_of(b->more, i));
        TRY(add_tensor(c, &b->start, t));
        plan_give(p, ncarry + nxs + i, plan_take(p, t, false));
    }
    return BP_OK;
}

/* What it goes along, from the end: what was carried, items, gradients of results. */
static bp_status plan_along(bp_ctx *c, const grad_call *g, backward_scan *b)
{
    plan *p = &b->p;
    uint32_t ncarry = b->init->count, nxs = b->xs->count;
    for (uint32_t i = 0; i < ncarry + nxs; i++) {
        bp_tensor *t = i < ncarry ? b->carried.at[i].v.tensor : item_of(b->xs, i - ncarry);
        TRY(add_tensor(c, &b->along, from_the_end(c, t)));
        p->input[i] = plan_take(p, vec_last(&b->along).v.tensor, true);
    }
    for (uint32_t j = ncarry; j < g->nresults; j++) {
        if (!g->grads[j])
            continue;
        TRY(add_tensor(c, &b->along, from_the_end(c, g->grads[j])));
        p->tangent[j] = plan_take(p, vec_last(&b->along).v.tensor, true);
    }
    for (uint32_t i = 0; i < b->more->count; i++)
        p->input[ncarry + nxs + i] = plan_take(p, item_of(b->more, i), false);
    for (uint32_t i = 0; i < nxs; i++)
        if ((p->needs[ncarry + i] = needs_item(g, "xs", i)))
            plan_give(p, ncarry + i, NOWHERE);
    return BP_OK;
}

static void give_scan(bp_ctx *c, grad_call *g, const backward_scan *b, bp_tensor *const *out, uint32_t n)
{
    uint32_t ncarry = b->init->count, nxs = b->xs->count;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = b->p.out[k].input;
        if (i < ncarry && needs_item(g, "init", i))
            grad_give_item(g, "init", i, out[k]);
        else if (i >= ncarry + nxs)
            grad_give_item(g, "additional_inputs", i - ncarry - nxs, out[k]);
        else if (i >= ncarry)
            grad_give_item(g, "xs", i - ncarry, from_the_end(c, out[k]));
    }
}

static bp_status run_backward_scan(bp_ctx *c, grad_call *g, backward_scan *b)
{
    bp_tensor **out;
    uint32_t n = 0;
    if (!plan_make(c, graph_of_value(&g->args[0]), &b->p))
        return c->diag.code;
    TRY(compute_carried(c, g, b));
    TRY(plan_start(c, g, b));
    TRY(plan_along(c, g, b));
    if (!b->start.len)
        return BP_OK;
    bp_graph_module *gm = gradient_graph(c, &b->p);
    if (!gm)
        return c->diag.code;
    bp_value args[] = {value_graph(gm), list_value(&b->start), list_value(&b->along), *b->more};
    bp_status st = run_call(c, ROW_higher_order_scan_default, args, &out, &n);
    if (st == BP_OK)
        give_scan(c, g, b, out, n);
    gm_unref(gm);
    return st == BP_OK ? c->diag.code : st;
}

bp_status grad_higher_scan(bp_ctx *c, grad_call *g)
{
    backward_scan b = {.init = list_of(g, "init"), .xs = list_of(g, "xs"), .more = list_of(g, "additional_inputs")};
    bp_status st = run_backward_scan(c, g, &b);
    vec_fini(&b.carried);
    vec_fini(&b.start);
    vec_fini(&b.along);
    return st;
}
