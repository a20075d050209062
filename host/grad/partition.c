/* A joint graph in two: the forward gives outputs and saved values, the backward takes saved values and tangents.
 *
 * Nodes keep their names, and sizes their expressions, in an environment of each graph's own. What the backward needs
 * and is not saved is computed by both. Random nodes are the forward's alone, all of them and in order, so that the
 * generator moves as it does in eager execution; so are nodes that may fail on data, unless a tangent leads to them. */
#include "host/grad/partitioner.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const partition_options PARTITION_DEFAULTS = {
    .kind = PARTITION_MIN_CUT, .memory_budget = 1, .max_dist_from_bw = 1000,
    .ban_used_far_apart = true, .ban_long_fusible_chains = true, .ban_materialized_backward = true,
    .ban_not_in_allowlist = true, .ban_reductions = true,
};

/* -- copying nodes ------------------------------------------------------------------------------------------------- */

typedef struct {
    partitioner *p;
    bp_graph_module *to;
    node_id *made;        /* by id of the joint: the node of `to`; 0: none yet */
    graph_import im;      /* dims of the joint graph in `to` */
} copier;

static bool copy_value(copier *k, const bp_value *v, bp_value *out)
{
    *out = *v;
    if (v->kind == BP_VALUE_NODE)
        out->v.node = k->made[v->v.node];
    if (v->kind == BP_VALUE_INT && v->v.dim.sym)
        out->v.dim = graph_import_dim(&k->im, v->v.dim);
    if (v->kind != BP_VALUE_LIST)
        return v->kind != BP_VALUE_NODE || out->v.node;
    bp_value *items = arena_array(&k->p->a, v->count, sizeof *items);
    for (uint32_t i = 0; items && i < v->count; i++)
        if (!copy_value(k, &v->v.items[i], &items[i]))
            return false;
    out->v.items = items;
    return items != NULL;
}

/* The types of n's results in terms of `to`, and its number. */
static bp_status types_of(copier *k, const graph_node *n, node_spec *s)
{
    tensor_meta *metas = arena_array(&k->p->a, n->nmetas, sizeof *metas);
    if (!metas)
        return ctx_nomem(k->p->c);
    for (uint32_t i = 0; i < n->nmetas; i++)
        TRY(graph_import_meta(&k->im, &n->metas[i], &metas[i]));
    s->metas = metas;
    s->nmetas = n->nmetas;
    s->number = n->number.sym ? graph_import_dim(&k->im, n->number) : n->number;
    return k->p->c->diag.code;
}

/* The node in terms of `to`; node_spec borrows its arguments. */
static bp_status spec_of(copier *k, const graph_node *n, node_spec *s)
{
    bp_value *args = arena_array(&k->p->a, n->nargs, sizeof *args);
    node_kwarg *kwargs = arena_array(&k->p->a, n->nkwargs, sizeof *kwargs);
    bool ok = args && kwargs;
    for (uint32_t i = 0; ok && i < n->nargs; i++)
        ok = copy_value(k, &n->args[i], &args[i]);
    for (uint32_t i = 0; ok && i < n->nkwargs; i++) {
        kwargs[i].name = n->kwargs[i].name;
        ok = copy_value(k, &n->kwargs[i].value, &kwargs[i].value);
    }
    *s = (node_spec){.op = n->op, .role = n->role, .name = n->name, .target = n->target, .args = args,
                     .nargs = n->nargs, .kwargs = kwargs, .nkwargs = n->nkwargs, .exact_name = true};
    TRY(k->p->c->diag.code);
    TRY(types_of(k, n, s));
    return ok ? BP_OK : ctx_fail(k->p->c, BP_INTERNAL, "node \"%s\" of a partition reads what is not there", n->name);
}

static bp_status copy_node(copier *k, node_id id)
{
    const graph_node *n = partitioner_node(k->p, id);
    node_spec s;
    TRY(spec_of(k, n, &s));
    node_id made = k->made[id] = graph_add(&k->to->g, &s);
    if (made)
        graph_set_site(&k->to->g, made, n->file, n->line);
    if (n->op == BP_NODE_GET_ATTR)
        TRY(gm_copy_attr(k->p->c, k->p->j->gm, n->name, k->to, n->name));
    return graph_status(k->p->c, &k->to->g);
}

/* A value that comes from outside: the saved one keeps its name, and a parameter its role. */
static bp_status take_value(copier *k, node_id id)
{
    const graph_node *n = partitioner_node(k->p, id);
    bool is_input = n->op == BP_NODE_PLACEHOLDER;
    node_spec s = {.op = BP_NODE_PLACEHOLDER, .role = is_input ? n->role : BP_ROLE_USER, .name = n->name,
                   .target = is_input ? n->target : n->name, .exact_name = true};
    TRY(types_of(k, n, &s));
    k->made[id] = graph_add(&k->to->g, &s);
    return graph_status(k->p->c, &k->to->g);
}

static bp_graph_module *module_of(partitioner *p, int32_t part)
{
    char name[256];
    const bp_graph_module *from = p->j->gm;
    snprintf(name, sizeof name, "%.200s_%s", from->name, part == GM_FORWARD ? "forward" : "backward");
    bp_graph_module *gm = gm_new(p->c, name);
    for (uint32_t i = 0; gm && i < from->options.len; i++)
        if (gm_set_option(p->c, gm, from->options.at[i].key, from->options.at[i].value) != BP_OK) {
            gm_unref(gm);
            return NULL;
        }
    if (gm) {
        gm->code_id = from->code_id;
        gm->part = part;
    }
    return gm;
}

/* A symbol that data tell, as a tensor. 0: the graph or the context says why. */
static node_id number_as_tensor(copier *k, uint32_t symbol)
{
    graph *g = &k->to->g;
    bp_value v = value_dim(graph_import_dim(&k->im, sym_dim_of(k->p->g->syms, symbol)));
    node_kwarg dtype = {"dtype", value_dtype(BP_I64)};
    tensor_meta m = {.dtype = BP_I64, .device = {BP_CPU, 0}};
    node_id n = graph_call(g, NULL, "aten.scalar_tensor.default", &v, 1, &dtype, 1);
    if (n)
        graph_set_metas(g, n, &m, 1);
    return n;
}

/* Outputs first .. last of the joint graph, then, with `numbered`, the saved values and its numbers. */
static bp_status give_values(copier *k, uint32_t first, uint32_t last, const partition *numbered)
{
    partitioner *p = k->p;
    uint32_t nnumbers = numbered ? numbered->nnumbers : 0;
    const bp_value *list = &partitioner_node(p, graph_output_node(p->g))->args[0];
    bp_value *out = arena_array(&p->a, (size_t)(last - first) + p->n + nnumbers, sizeof *out);
    uint32_t n = 0;
    if (!out)
        return ctx_nomem(p->c);
    for (uint32_t i = first; i < last; i++)
        if (!copy_value(k, &list->v.items[i], &out[n++]))
            return ctx_fail(p->c, BP_INTERNAL, "output %u of graph \"%s\" is not computed", i, k->to->name);
    for (uint32_t i = 0; numbered && i < p->n; i++)
        if (p->saved[p->nodes[i]])
            out[n++] = graph_ref(k->made[p->nodes[i]]);
    for (uint32_t i = 0; i < nnumbers; i++)
        out[n++] = graph_ref(number_as_tensor(k, numbered->numbers[i]));
    TRY(graph_status(p->c, &k->to->g));
    graph_output(&k->to->g, out, n);
    return graph_status(p->c, &k->to->g);
}

/* -- the two graphs ------------------------------------------------------------------------------------------------ */

static void want(void *arg, node_id n)
{
    ((uint8_t *)arg)[n] = 1;
}

static bp_status make_forward(partitioner *p, copier *k, uint8_t *needed, const partition *out)
{
    uint32_t primals = 0;
    for (uint32_t i = 0; i < p->n; i++)
        needed[p->nodes[i]] = (p->is[p->nodes[i]] & PART_FORWARD) || p->saved[p->nodes[i]];
    for (uint32_t i = p->n; i-- > 0;)
        if (needed[p->nodes[i]])
            graph_each_input(p->g, p->nodes[i], want, needed);
    for (uint32_t i = 0; i < p->n; i++) {
        node_id id = p->nodes[i];
        bool is_primal = partitioner_node(p, id)->op == BP_NODE_PLACEHOLDER && primals++ < p->j->nprimals;
        if (needed[id] && p->is[id] & PART_TANGENT)
            return ctx_fail(p->c, BP_INTERNAL, "the forward of \"%s\" would read \"%s\", which only the backward has",
                            p->j->gm->name, partitioner_node(p, id)->name);
        if (is_primal || needed[id])
            TRY(copy_node(k, id));
    }
    return give_values(k, 0, p->j->noutputs, out);
}

static bool is_tangent(const partitioner *p, node_id id)
{
    return partitioner_node(p, id)->op == BP_NODE_PLACEHOLDER && p->is[id] & PART_TANGENT;
}

static bp_status make_backward(partitioner *p, copier *k, const uint8_t *needed)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (p->saved[p->nodes[i]])
            TRY(take_value(k, p->nodes[i]));
    for (uint32_t i = 0; i < p->n; i++)
        if (is_tangent(p, p->nodes[i]))
            TRY(copy_node(k, p->nodes[i]));
    for (uint32_t i = 0; i < p->n; i++)
        if (needed[p->nodes[i]] && !p->saved[p->nodes[i]] && !is_tangent(p, p->nodes[i]))
            TRY(copy_node(k, p->nodes[i]));
    return give_values(k, p->j->noutputs, graph_output_count(p->g), NULL);
}

static void measure(partitioner *p, const uint8_t *needed, partition *out)
{
    for (uint32_t i = 0; i < p->n; i++) {
        node_id id = p->nodes[i];
        out->nsaved += p->saved[id];
        if (needed[id] && !p->saved[id] && p->is[id] & PART_FORWARD)
            out->recomputed_flops += partitioner_flops(p, id);
    }
    out->saved_bytes = partitioner_saved_bytes(p);
}

/* -- symbols ------------------------------------------------------------------------------------------------------- */

static bp_status begin_copy(copier *k, bp_graph_module *to)
{
    k->to = to;
    memset(k->made, 0, k->p->g->nodes.len * sizeof *k->made);
    return graph_import_init(&k->im, k->p->c, &to->g, k->p->g->syms);
}

/* Facts of the joint graph, and placeholders of the symbols that nothing shows. */
static bp_status end_copy(copier *k, bp_status st)
{
    if (st == BP_OK)
        st = graph_import_facts(&k->im);
    return st == BP_OK ? graph_import_finish(&k->im) : st;
}

/* Which symbols of the joint graph the placeholders behind saved values and tangents are. */
static bp_status note_symbols(const copier *k, partition *out)
{
    const graph *g = &out->backward->g;
    uint32_t n = graph_placeholders(g, NULL, 0), first = out->nsaved + k->p->j->ntangents;
    node_id *at = arena_array(&k->p->a, n, sizeof *at);
    if (!at || !(out->symbols = calloc((size_t)n - first + 1, sizeof *out->symbols)))
        return ctx_nomem(k->p->c);
    graph_placeholders(g, at, n);
    for (uint32_t i = first; i < n; i++)
        out->symbols[out->nsymbols++] = k->im.back.at[sym_symbol_of(g->syms, graph_get(g, at[i])->number)];
    return BP_OK;
}

static void mark_symbol(void *marks, uint32_t k)
{
    ((uint8_t *)marks)[k] = 1;
}

/* What the forward must tell: unbacked symbols of the backward's placeholders and of tangents' types. */
static bp_status note_numbers(const partitioner *p, partition *out)
{
    const sym_env *e = p->g->syms;
    uint32_t n = e ? sym_symbol_count(e) : 0;
    uint8_t *marks = arena_array(&p->c->scratch, n, 1);
    if (!marks || !(out->numbers = calloc((size_t)n + 1, sizeof *out->numbers)))
        return ctx_nomem(p->c);
    for (uint32_t i = 0; i < out->nsymbols; i++)
        marks[out->symbols[i]] = 1;
    for (uint32_t i = 0; e && i < p->n; i++) {
        const graph_node *t = partitioner_node(p, p->nodes[i]);
        for (uint32_t d = 0; is_tangent(p, p->nodes[i]) && d < t->metas->rank; d++) {
            sym_each_symbol(e, t->metas->sizes[d], mark_symbol, marks);
            sym_each_symbol(e, t->metas->strides[d], mark_symbol, marks);
        }
    }
    for (uint32_t k = 0; k < n; k++)
        if (marks[k] && sym_symbol_at(e, k)->unbacked)
            out->numbers[out->nnumbers++] = k;
    return BP_OK;
}

/* The backward first: it says which symbols it needs. */
static bp_status split(partitioner *p, uint8_t *needed, partition *out)
{
    copier k = {.p = p, .made = arena_array(&p->a, p->g->nodes.len, sizeof *k.made)};
    uint8_t *in_forward = arena_array(&p->a, p->g->nodes.len, 1);
    out->forward = module_of(p, GM_FORWARD);
    out->backward = out->forward ? module_of(p, GM_BACKWARD) : NULL;
    if (!k.made || !in_forward || !out->backward)
        return ctx_nomem(p->c);
    measure(p, needed, out);
    bp_status st = begin_copy(&k, out->backward);
    if (st == BP_OK)
        st = end_copy(&k, make_backward(p, &k, needed));
    if (st == BP_OK)
        st = note_symbols(&k, out);
    graph_import_fini(&k.im);
    TRY(st);
    TRY(note_numbers(p, out));
    st = begin_copy(&k, out->forward);
    if (st == BP_OK)
        st = end_copy(&k, make_forward(p, &k, in_forward, out));
    graph_import_fini(&k.im);
    return st;
}

/* -- which set ----------------------------------------------------------------------------------------------------- */

static bool has_tags(const partitioner *p)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (p->tag[p->nodes[i]])
            return true;
    return false;
}

/* The cut, unless it saves more bytes than the default set: its weights favour values near the backward. A caller who
 * asks for what the cut does with tags or a budget gets it. */
static bp_status save_cut(partitioner *p, uint8_t *needed)
{
    bool wants_cut = has_tags(p) || p->o->memory_budget < 1;
    TRY(partitioner_save_default(p));
    TRY(partitioner_close(p, needed));
    uint64_t bytes = partitioner_saved_bytes(p);
    TRY(partitioner_save_min_cut(p));
    if (p->o->memory_budget < 1)
        TRY(partitioner_keep_budget(p));
    TRY(partitioner_close(p, needed));
    if (wants_cut || partitioner_saved_bytes(p) <= bytes)
        return BP_OK;
    TRY(partitioner_save_default(p));
    return partitioner_close(p, needed);
}

static bp_status choose(partitioner *p, uint8_t *needed)
{
    if (p->o->kind == PARTITION_MIN_CUT || has_tags(p))
        return save_cut(p, needed);
    TRY(partitioner_save_default(p));
    return partitioner_close(p, needed);
}

bp_status joint_partition(bp_ctx *c, const joint *j, const partition_options *o, partition *out)
{
    partitioner p;
    *out = (partition){0};
    if (!(o->memory_budget >= 0 && o->memory_budget <= 1))
        return ctx_fail(c, BP_INVALID_ARGUMENT, "the memory budget must lie between 0 and 1, and is %g",
                        o->memory_budget);
    bp_status st = partitioner_init(&p, c, j, o);
    uint8_t *needed = st ? NULL : arena_array(&p.a, p.g->nodes.len, 1);
    if (!st)
        st = needed ? choose(&p, needed) : ctx_nomem(c);
    if (!st)
        st = split(&p, needed, out);
    partitioner_fini(&p);
    if (st) {
        diag_while(&c->diag, "partitioning graph \"%s\"", j->gm->name);
        partition_fini(out);
    }
    return st;
}

void partition_fini(partition *p)
{
    gm_unref(p->forward);
    gm_unref(p->backward);
    free(p->symbols);
    free(p->numbers);
    *p = (partition){0};
}
