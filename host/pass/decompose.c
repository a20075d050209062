/* Decomposing: the graph runs on fakes, call by call, and a call that is not to stay is run by its parts, each of which
 * becomes a node in its place.
 *
 * What runs is a clone, so that the graph itself can be edited meanwhile; ids are the same in both. Every fake of the
 * run is kept until its end, and remembered with the node that gives it: that is how parts find their arguments. A
 * number that only a run tells stays the node that gives it. New nodes carry the place of the call that they stand for,
 * and its results are laid out as it had promised. */
#include "host/op/rows.h"
#include "host/pass/pass.h"
#include "host/pass/pure.h"
#include "sdk/base/map.h"
#include <stdio.h>
#include <string.h>

enum { NO_ITEM = -1, DEEPEST = 40 };
typedef struct { node_id node; int32_t item; } place; /* item: which result of it, or NO_ITEM */

typedef struct {
    dispatch_mode mode;
    bp_ctx *c;
    bp_graph_module *gm;         /* edited */
    const graph *from;           /* runs */
    const decompose_options *o;  /* or NULL */
    node_id done, at;            /* the last node that ran; the one that is decomposed, or 0 */
    map places;                  /* bp_tensor * -> an index of `where` */
    VEC(place) where;
    VEC(bp_tensor *) kept;
    VEC(node_id) added;          /* in place of `at` */
    uint32_t depth;
} decomposer;

/* -- which calls stay ---------------------------------------------------------------------------------------------- */

static bool wanted_whole(const decompose_options *o, const op_row *op)
{
    for (const char *const *t = o ? o->whole : NULL; t && *t; t++)
        if (strcmp(*t, op->target) == 0)
            return true;
    return false;
}

/* The row by which a call is decomposed; NULL: it stays. */
static const decomp_row *row_for(const decompose_options *o, const op_row *op)
{
    if (op->functional || wanted_whole(o, op))
        return NULL;
    const decomp_row *row = o && o->row_of ? o->row_of(o->arg, op) : NULL;
    if (!row && (op->flags & OP_CORE))
        return NULL;
    row = row ? row : decomp_of(op);
    return row && !row->kept ? row : NULL; /* a core operator only by a row of the backend's own */
}

/* -- tensors and their nodes --------------------------------------------------------------------------------------- */

static str key_of(bp_tensor *const *t)
{
    return (str){(const char *)t, sizeof *t};
}

static bp_status remember(decomposer *d, bp_tensor *t, place at)
{
    bool fresh;
    map_value *v = map_put(&d->places, key_of(&t), &fresh);
    if (!v || (fresh && !vec_push(&d->kept, t)))
        return ctx_nomem(d->c);
    if (fresh)
        tensor_ref(t);
    v->u = d->where.len;
    return vec_push(&d->where, at) ? BP_OK : ctx_nomem(d->c);
}

static place *place_of(decomposer *d, bp_tensor *t)
{
    map_value *v = map_get(&d->places, key_of(&t));
    return v ? &d->where.at[v->u] : NULL;
}

/* -- adding nodes -------------------------------------------------------------------------------------------------- */

static bp_status put(decomposer *d, node_id n)
{
    TRY(graph_status(d->c, &d->gm->g));
    const graph_node *of = graph_get(d->from, d->at);
    graph_move_before(&d->gm->g, n, d->at);
    if (d->o && d->o->made)
        d->o->made(d->o->arg, d->at, n);
    graph_set_site(&d->gm->g, n, of->file, of->line);
    return graph_status(d->c, &d->gm->g);
}

/* The node that gives t, a getitem where it is one of several results. */
static bp_status node_of(decomposer *d, bp_tensor *t, bp_value *out)
{
    place *p = place_of(d, t);
    if (!p)
        return ctx_fail(d->c, BP_INTERNAL, "a part of \"%s\" reads a tensor that no node gives",
                        graph_get(d->from, d->at)->name);
    *out = graph_ref(p->node);
    if (p->item == NO_ITEM)
        return BP_OK;
    bp_value pick[] = {*out, value_int(p->item)};
    tensor_meta m;
    tensor_get_meta(t, &m);
    node_id n = graph_call(&d->gm->g, NULL, "<built-in function getitem>", pick, 2, NULL, 0);
    if (n)
        graph_set_metas(&d->gm->g, n, &m, 1);
    TRY(put(d, n)); /* it stays, whatever becomes of the call: others may be told of it */
    *p = (place){n, NO_ITEM};
    *out = graph_ref(n);
    return BP_OK;
}

/* A 0-d tensor that stands for a number, as that number. */
static bp_value number_of(const bp_tensor *t)
{
    num v = dtype_load((bp_dtype)t->dtype, tensor_ptr(t));
    if (t->dtype == BP_BOOL)
        return value_bool(v.i != 0);
    if (v.kind == NUM_INT)
        return value_int(v.i);
    return v.kind == NUM_FLOAT ? value_float(v.f) : (bp_value){.kind = BP_VALUE_COMPLEX, .v.f = {v.f, v.im}};
}

static bp_status lower(decomposer *d, const bp_value *v, bp_value *out)
{
    *out = *v;
    if (v->kind == BP_VALUE_TENSOR) {
        bp_tensor *t = v->v.tensor;
        if ((t->flags & TENSOR_WRAPPED_NUMBER) && !tensor_is_fake(t) && !place_of(d, t)) {
            *out = number_of(t);
            return BP_OK;
        }
        return node_of(d, t, out);
    }
    if (v->kind != BP_VALUE_LIST)
        return BP_OK;
    bp_value *items = arena_array(&d->c->scratch, v->count, sizeof *items);
    if (!items)
        return ctx_nomem(d->c);
    for (uint32_t i = 0; i < v->count; i++)
        TRY(lower(d, &v->v.items[i], &items[i]));
    out->v.items = items;
    return BP_OK;
}

static bool is_default(const schema_arg *g, const bp_value *v)
{
    if (g->has_default)
        return value_eq(&g->default_value, v);
    return v->kind == BP_VALUE_NONE && g->kwarg_only;
}

/* The call as a node: positional arguments without trailing defaults, named ones that are no defaults. */
static node_id add_call(decomposer *d, const op_call *k, const bp_value *args)
{
    const schema *s = k->op->schema;
    uint32_t npos = s->nargs - s->nkwarg_only, nnamed = 0;
    node_kwarg *named = arena_array(&d->c->scratch, s->nkwarg_only, sizeof *named);
    if (!named)
        return ctx_nomem(d->c) ? 0 : 0;
    for (uint32_t i = npos; i < s->nargs; i++)
        if (!is_default(&s->args[i], &args[i]))
            named[nnamed++] = (node_kwarg){s->args[i].name, args[i]};
    while (npos && is_default(&s->args[npos - 1], &args[npos - 1]))
        npos--;
    return graph_call(&d->gm->g, NULL, k->op->target, args, npos, named, nnamed);
}

static bp_status set_results(decomposer *d, const op_call *k, node_id n)
{
    const schema *s = k->op->schema;
    bool several = s->nreturns > 1 || s->returns[0].list, whole = true;
    tensor_meta *metas = arena_array(&d->c->scratch, k->nout, sizeof *metas);
    if (!metas)
        return ctx_nomem(d->c);
    for (uint32_t i = 0; i < k->nout; i++) {
        whole &= k->out[i] != NULL;
        if (!k->out[i])
            continue;
        tensor_get_meta(k->out[i], &metas[i]);
        TRY(remember(d, k->out[i], (place){n, several ? (int32_t)i : NO_ITEM}));
    }
    if (whole)
        graph_set_metas(&d->gm->g, n, metas, k->nout);
    return BP_OK;
}

/* -- numbers that only a run tells --------------------------------------------------------------------------------- */

/* A number in the place of each node, of its kind. */
static bool guess(void *arg, bp_value *leaf)
{
    const graph *from = ((decomposer *)arg)->from;
    if (leaf->kind != BP_VALUE_NODE)
        return true;
    const graph_node *n = graph_get(from, leaf->v.node);
    const graph_node *of = n->nargs && n->args[0].kind == BP_VALUE_NODE ? graph_get(from, n->args[0].v.node) : NULL;
    *leaf = value_unknown(of && of->nmetas ? of->metas[0].dtype : BP_F32, false);
    return true;
}

static bp_status run_guessed(decomposer *d, op_call *k)
{
    uint32_t n = k->op->schema->nargs;
    const bp_value *args = k->args;
    bp_value *known = arena_array(&d->c->scratch, n, sizeof *known);
    if (!known)
        return ctx_nomem(d->c);
    for (uint32_t i = 0; i < n; i++)
        if (!value_map(d->c, &args[i], guess, d, &known[i]))
            return d->c->diag.code;
    k->args = known;
    bp_status s = op_run_fake(d->c, k);
    k->args = args;
    return s;
}

static bool is_item(const graph *g, const bp_value *v)
{
    const graph_node *n = v->kind == BP_VALUE_NODE ? graph_get(g, v->v.node) : NULL;
    return n && n->row && (n->row->flags & OP_ITEM);
}

/* The call's arguments with the nodes of such numbers in place of the guesses that the run made. NULL: an error. */
static const bp_value *with_items(decomposer *d, const op_call *k, node_id n)
{
    const graph_node *node = graph_get(d->from, n);
    bp_value *args = NULL;
    for (uint32_t i = 0; i < node->nargs + node->nkwargs; i++) {
        const bp_value *v = i < node->nargs ? &node->args[i] : &node->kwargs[i - node->nargs].value;
        int32_t at = i < node->nargs ? (int32_t)i : schema_find(k->op->schema, node->kwargs[i - node->nargs].name);
        bool items = is_item(d->from, v);
        for (uint32_t j = 0; v->kind == BP_VALUE_LIST && j < v->count; j++)
            items |= is_item(d->from, &v->v.items[j]);
        if (!items || at < 0)
            continue;
        if (!args && !(args = arena_memdup(&d->c->scratch, k->args, k->op->schema->nargs * sizeof *args))) {
            ctx_nomem(d->c);
            return NULL;
        }
        args[at] = *v;
    }
    return args ? args : k->args;
}

/* -- one call ------------------------------------------------------------------------------------------------------ */

static bp_status record(decomposer *d, op_call *k)
{
    uint32_t n = k->op->schema->nargs;
    TRY(run_guessed(d, k));
    bp_value *args = arena_array(&d->c->scratch, n, sizeof *args);
    bp_status s = args ? BP_OK : ctx_nomem(d->c);
    for (uint32_t i = 0; i < n && !s; i++)
        s = lower(d, &k->args[i], &args[i]);
    node_id at = s ? 0 : add_call(d, k, args);
    if (!s && at)
        s = set_results(d, k, at);
    if (!s)
        s = at ? put(d, at) : graph_status(d->c, &d->gm->g);
    if (!s && !vec_push(&d->added, at))
        s = ctx_nomem(d->c);
    for (uint32_t i = 0; i < k->nout && s; i++)
        tensor_unref(k->out[i]);
    return s;
}

/* A part: recorded, or decomposed itself. */
static bp_status part(decomposer *d, op_call *k)
{
    const decomp_row *row = row_for(d->o, k->op);
    if (!row)
        return record(d, k);
    if (d->depth == DEEPEST)
        return op_fail(d->c, k->op, BP_INTERNAL, "its decomposition leads back to itself");
    dispatch_mode *below = d->c->modes;
    d->depth++;
    d->c->modes = &d->mode;
    bp_status s = decomp_call(d->c, row, k);
    d->c->modes = below;
    d->depth--;
    return s;
}

static bool laid_out_as(const bp_tensor *t, const tensor_meta *m)
{
    bool empty = false;
    for (uint32_t d = 0; d < t->rank; d++)
        empty |= dim_is(t->sizes[d], 0);
    for (uint32_t d = 0; d < t->rank && !empty; d++)
        if (!dim_is(t->sizes[d], 1) && !dim_eq(t->strides[d], m->strides[d]))
            return false;
    return true;
}

/* The same elements laid out as the call had promised. */
static bp_tensor *laid_out(decomposer *d, bp_tensor *t, const tensor_meta *m)
{
    work w = {.c = d->c, .parts = true};
    bp_value sizes = value_dims(d->c, m->sizes, m->rank), strides = value_dims(d->c, m->strides, m->rank);
    bp_value args[] = {sizes, strides, value_dtype(m->dtype), value_none(),
                       {.kind = BP_VALUE_DEVICE, .v.device = m->device}};
    dispatch_mode *below = d->c->modes;
    d->c->modes = &d->mode;
    bp_tensor *to = work_call(&w, ROW_empty_strided_default, 5, args);
    bp_tensor *out = to ? work_call(&w, ROW_copy_default, 2, (bp_value[]){value_tensor(to), value_tensor(t)}) : NULL;
    d->c->modes = below;
    if (out)
        tensor_ref(out);
    work_end(&w);
    return out;
}

static bp_status check_results(decomposer *d, op_call *k)
{
    const graph_node *n = graph_get(d->from, d->at);
    if (n->nmetas && n->nmetas != k->nout)
        return op_fail(d->c, k->op, BP_INTERNAL, "its decomposition gives %u results, not %u", k->nout, n->nmetas);
    for (uint32_t i = 0; i < n->nmetas; i++) {
        const tensor_meta *m = &n->metas[i];
        bp_tensor *t = k->out[i];
        bool same = t && t->rank == m->rank && t->dtype == m->dtype;
        for (uint32_t j = 0; same && j < m->rank; j++)
            same = dim_eq(t->sizes[j], m->sizes[j]);
        if (!same)
            return op_fail(d->c, k->op, BP_INTERNAL, "result %u of its decomposition is not of the call's type", i);
        if (laid_out_as(t, m))
            continue;
        bp_tensor *other = laid_out(d, t, m);
        if (!other)
            return d->c->diag.code;
        tensor_unref(t);
        k->out[i] = other;
    }
    return BP_OK;
}

/* -- putting the parts in the call's place ------------------------------------------------------------------------- */

/* v with references to node n replaced by the list of its results. */
static bp_status spread(decomposer *d, const bp_value *v, node_id n, const bp_value *list, bp_value *out)
{
    *out = *v;
    if (v->kind == BP_VALUE_NODE && v->v.node == n)
        *out = *list;
    if (v->kind != BP_VALUE_LIST)
        return BP_OK;
    bp_value *items = arena_array(&d->c->scratch, v->count, sizeof *items);
    if (!items)
        return ctx_nomem(d->c);
    for (uint32_t i = 0; i < v->count; i++)
        TRY(spread(d, &v->v.items[i], n, list, &items[i]));
    out->v.items = items;
    return BP_OK;
}

/* Every user of a call of several results: a getitem becomes the result; another user gets a list of them. */
static bp_status replace_user(decomposer *d, node_id user, node_id n, const bp_value *list)
{
    graph *g = &d->gm->g;
    const graph_node *u = graph_get(g, user);
    if (!u->row && u->op == BP_NODE_CALL_FUNCTION && u->nargs == 2 && u->args[1].kind == BP_VALUE_INT) {
        int64_t i = u->args[1].v.dim.value;
        i += i < 0 ? list->count : 0;
        if (i < 0 || i >= list->count || list->v.items[i].kind != BP_VALUE_NODE)
            return u->users.len ? ctx_fail(d->c, BP_INTERNAL, "\"%s\" takes a result that is not there", u->name)
                : BP_OK;
        graph_replace_uses(g, user, list->v.items[i].v.node);
        graph_erase(g, user);
        return graph_status(d->c, g);
    }
    bp_value *args = arena_array(&d->c->scratch, u->nargs, sizeof *args);
    if (!args)
        return ctx_nomem(d->c);
    for (uint32_t i = 0; i < u->nargs; i++)
        TRY(spread(d, &u->args[i], n, list, &args[i]));
    graph_set_args(g, user, args, u->nargs);
    return graph_status(d->c, g);
}

static bp_status replace(decomposer *d, op_call *k)
{
    graph *g = &d->gm->g;
    const schema *s = k->op->schema;
    bp_value *refs = arena_array(&d->c->scratch, k->nout, sizeof *refs);
    if (!refs)
        return ctx_nomem(d->c);
    for (uint32_t i = 0; i < k->nout; i++)
        if (k->out[i])
            TRY(node_of(d, k->out[i], &refs[i]));
    bp_value list = value_list(refs, k->nout);
    if (s->nreturns == 1 && !s->returns[0].list) {
        if (k->nout && refs[0].kind == BP_VALUE_NODE)
            graph_replace_uses(g, d->at, refs[0].v.node);
    } else {
        while (graph_get(g, d->at)->users.len) {
            uint32_t before = graph_get(g, d->at)->users.len;
            TRY(replace_user(d, vec_last(&graph_get(g, d->at)->users), d->at, &list));
            if (graph_get(g, d->at)->users.len == before)
                return ctx_fail(d->c, BP_UNIMPLEMENTED, "\"%s\" is used by name", graph_get(g, d->at)->name);
        }
    }
    graph_erase(g, d->at);
    return graph_status(d->c, g);
}

/* Takes out what was added for a call that stays after all. */
static bp_status take_back(decomposer *d)
{
    while (d->added.len)
        graph_erase(&d->gm->g, vec_pop(&d->added));
    return graph_status(d->c, &d->gm->g);
}

/* Parts that nobody uses. */
static bp_status drop_unused(decomposer *d)
{
    while (d->added.len) {
        node_id n = vec_pop(&d->added);
        if (!graph_get(&d->gm->g, n)->users.len && node_may_go(graph_get(&d->gm->g, n)))
            graph_erase(&d->gm->g, n);
    }
    return graph_status(d->c, &d->gm->g);
}

static bp_status decompose_call(decomposer *d, const decomp_row *row, op_call *k)
{
    const bp_value *given = k->args, *args = with_items(d, k, d->at);
    if (!args)
        return d->c->diag.code;
    bp_tensor **room = k->out;
    uint32_t nroom = k->nout;
    dispatch_mode *below = d->c->modes;
    k->args = args;
    d->c->modes = &d->mode;
    bp_status s = decomp_call(d->c, row, k);
    d->c->modes = below;
    if (!s)
        s = check_results(d, k);
    if (!s)
        s = replace(d, k);
    k->args = given;
    if (s == BP_UNIMPLEMENTED) { /* what it is made of depends on data */
        diag_clear(&d->c->diag);
        k->out = room;
        k->nout = nroom;
        TRY(take_back(d));
        return op_run_fake(d->c, k);
    }
    return s ? s : drop_unused(d);
}

/* The node whose call this is: the next one that calls an operator. */
static node_id current(const decomposer *d)
{
    node_id n = d->done ? graph_get(d->from, d->done)->next : d->from->first;
    return n;
}

static bp_status answer(bp_ctx *c, dispatch_mode *mode, void *call)
{
    decomposer *d = (decomposer *)mode;
    op_call *k = call;
    if (d->at)
        return part(d, k);
    node_id n = current(d);
    const decomp_row *row = row_for(d->o, k->op);
    if (!row || !n || graph_get(d->from, n)->row != k->op)
        return op_run_fake(c, k);
    d->at = n;
    bp_status s = decompose_call(d, row, k);
    d->at = 0;
    return s;
}

static bp_status note_results(void *arg, node_id n, bp_tensor *const *results, uint32_t nresults)
{
    decomposer *d = arg;
    d->done = n;
    const graph_node *node = graph_get(&d->gm->g, n);
    if (!node->op)
        return BP_OK; /* it was decomposed: its results have their nodes */
    bool several = node->row && (node->row->schema->nreturns > 1 ||
                                 (node->row->schema->nreturns && node->row->schema->returns[0].list));
    for (uint32_t i = 0; i < nresults; i++)
        if (results[i])
            TRY(remember(d, results[i], (place){n, several ? (int32_t)i : NO_ITEM}));
    return BP_OK;
}

/* -- the pass ------------------------------------------------------------------------------------------------------ */

static bp_status run_all(decomposer *d, const bp_graph_module *from)
{
    uint32_t nin = graph_placeholders(&from->g, NULL, 0), nout = graph_output_count(&from->g);
    bp_tensor **inputs = calloc(nin + 1, sizeof *inputs), **outputs = calloc(nout + 1, sizeof *outputs);
    bp_status s = inputs && outputs ? graph_fake_inputs(d->c, from, inputs) : ctx_nomem(d->c);
    if (!s) {
        mode_push(d->c, &d->mode);
        s = graph_run(d->c, from, inputs, nin, outputs, nout, note_results, d);
        mode_pop(d->c, &d->mode);
    }
    for (uint32_t i = 0; i < nin && inputs; i++)
        tensor_unref(inputs[i]);
    for (uint32_t i = 0; i < nout && outputs; i++)
        tensor_unref(outputs[i]);
    free(inputs);
    free(outputs);
    return s;
}

static bool has_work(const bp_graph_module *gm, const decompose_options *o)
{
    for (node_id n = gm->g.first; n; n = graph_get(&gm->g, n)->next)
        if (graph_get(&gm->g, n)->row && row_for(o, graph_get(&gm->g, n)->row))
            return true;
    return false;
}

/* What runs computes in the edited graph's environment: expressions of the one are those of the other. */
static void share_symbols(const graph *g, graph *clone)
{
    sym_env_unref(clone->syms);
    clone->syms = g->syms ? sym_env_ref(g->syms) : NULL;
}

/* A graph inside of one, whose nodes are nobody's origins. A text may leave its types out: then it stays as it is. */
static bp_status decompose_inside(bp_ctx *c, bp_graph_module *sub, void *arg)
{
    for (node_id n = sub->g.first; n; n = graph_get(&sub->g, n)->next)
        if (graph_get(&sub->g, n)->op == BP_NODE_PLACEHOLDER && !graph_get(&sub->g, n)->nmetas)
            return BP_OK;
    decompose_options o = {0};
    if (arg)
        o = *(const decompose_options *)arg;
    o.made = NULL;
    return pass_decompose(c, sub, &o);
}

bp_status pass_decompose(bp_ctx *c, bp_graph_module *gm, void *arg)
{
    TRY(pass_in_subs(c, gm, decompose_inside, arg));
    bp_graph_module from = *gm; /* its constants and name are borrowed */
    decomposer d = {.mode = {.call = answer, .name = "decompose"}, .c = c, .gm = gm, .o = arg};
    if (!has_work(gm, arg))
        return BP_OK;
    TRY(graph_clone(c, &gm->g, &from.g));
    share_symbols(&gm->g, &from.g);
    d.from = &from.g;
    scope_push(c);
    bp_status s = run_all(&d, &from);
    scope_pop(c);
    for (uint32_t i = 0; i < d.kept.len; i++)
        tensor_unref(d.kept.at[i]);
    vec_fini(&d.kept);
    vec_fini(&d.where);
    vec_fini(&d.added);
    map_fini(&d.places);
    graph_fini(&from.g);
    if (s)
        diag_while(&c->diag, "decomposing graph \"%s\"", gm->name);
    return s ? s : graph_status(c, &gm->g);
}

/* -- the verifier of core graphs ----------------------------------------------------------------------------------- */

static bool is_core(const decompose_options *o, const graph_node *n)
{
    if (n->op != BP_NODE_CALL_FUNCTION || !n->row)
        return true;
    const decomp_row *row = decomp_of(n->row), *own = o && o->row_of ? o->row_of(o->arg, n->row) : NULL;
    return (n->row->flags & OP_CORE) || (row && row->kept) || (own && own->kept) || wanted_whole(o, n->row);
}

bp_status pass_verify_core(bp_ctx *c, bp_graph_module *gm, void *arg)
{
    buf names = {0};
    uint32_t wrong = 0;
    TRY(pass_in_subs(c, gm, pass_verify_core, arg));
    for (node_id n = gm->g.first; n; n = graph_get(&gm->g, n)->next) {
        const graph_node *node = graph_get(&gm->g, n);
        if (is_core(arg, node))
            continue;
        if (wrong++ < 5)
            buf_printf(&names, "%s\"%s\" (%s)", wrong > 1 ? ", " : "", node->name, node->target);
    }
    if (wrong) {
        ctx_fail(c, BP_FAILED_PRECONDITION, "graph \"%s\" is not in core ATen: %s", gm->name, buf_text(&names));
        diag_detail(&c->diag, "%u of its calls are neither core ATen nor kept nor wanted whole.", wrong);
    }
    buf_fini(&names);
    return c->diag.code;
}
