/* Calls of operators over graphs: their counts, and the metadata of their results.
 *
 * Results are what the graphs promise of their outputs, if that is constant; else the graphs run on fakes of the
 * arguments, so that symbols and texts without types come out right. */
#include "host/graph/higher.h"
#include "host/op/rows.h"
#include <stdio.h>
#include <string.h>

/* -- counts -------------------------------------------------------------------------------------------------------- */

static bool is_tensor_list(const schema_arg *a)
{
    return a->ty.list && a->ty.type == TYPE_TENSOR;
}

bool higher_of_args(const op_row *op, const bp_value *args, higher_call *out)
{
    *out = (higher_call){0};
    for (uint32_t i = 0; i < op->schema->nargs; i++) {
        if (op->schema->args[i].ty.type == TYPE_GRAPH) {
            if (!(out->graph[out->ngraphs++] = graph_of_value(&args[i])))
                return false;
        } else if (is_tensor_list(&op->schema->args[i])) {
            if (args[i].kind != BP_VALUE_LIST)
                return false;
            out->n[out->nlists++] = args[i].count;
            out->total += args[i].count;
        }
    }
    return true;
}

bool higher_of_node(const bp_graph_module *gm, const graph_node *n, higher_call *out)
{
    bp_value args[8];
    if (n->nargs != n->row->schema->nargs || n->nargs > sizeof args / sizeof *args)
        return false;
    for (uint32_t i = 0; i < n->nargs; i++) {
        args[i] = n->args[i];
        if (n->row->schema->args[i].ty.type == TYPE_GRAPH)
            args[i] = value_graph(n->args[i].kind == BP_VALUE_NODE
                                      ? gm_sub(gm, graph_get(&gm->g, n->args[i].v.node)->name) : NULL);
    }
    return higher_of_args(n->row, args, out);
}

static bool says(char *why, size_t cap, const char *fmt, ...) BP_PRINTF(3, 4);
static bool says(char *why, size_t cap, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, cap, fmt, ap);
    va_end(ap);
    return false;
}

/* What a graph gives must be `want` values, or at least so many. */
static bool gives(const bp_graph_module *gm, uint32_t want, bool at_least, char *why, size_t cap)
{
    uint32_t n = graph_output_count(&gm->g);
    if (n == want || (at_least && n > want))
        return true;
    return says(why, cap, "graph \"%s\" gives %u results, expected %s%u", gm->name, n, at_least ? "at least " : "",
                want);
}

bool higher_fits(const op_row *op, const higher_call *h, char *why, size_t cap)
{
    for (uint32_t i = 0; i < h->ngraphs; i++) {
        uint32_t takes = graph_placeholders(&h->graph[i]->g, NULL, 0);
        if (takes != h->total)
            return says(why, cap, "graph \"%s\" takes %u inputs, and gets %u", h->graph[i]->name, takes, h->total);
    }
    switch (op->number) {
    case ROW_higher_order_cond_default:
        return gives(h->graph[1], graph_output_count(&h->graph[0]->g), false, why, cap);
    case ROW_higher_order_while_loop_default:
        return gives(h->graph[0], 1, false, why, cap) && gives(h->graph[1], h->n[0], false, why, cap);
    case ROW_higher_order_scan_default: return gives(h->graph[0], h->n[0], true, why, cap);
    default: return true;
    }
}

/* -- what a graph gives for inputs of that metadata ---------------------------------------------------------------- */

typedef struct { tensor_meta *at; uint32_t n; } metas;

static bool same_sizes(const tensor_meta *a, const tensor_meta *b)
{
    bool same = a->rank == b->rank;
    for (uint32_t d = 0; same && d < a->rank; d++)
        same = dim_eq(a->sizes[d], b->sizes[d]);
    return same;
}

static bool same_layout(const tensor_meta *a, const tensor_meta *b)
{
    bool same = same_sizes(a, b);
    for (uint32_t d = 0; same && d < a->rank; d++)
        same = dim_is(a->sizes[d], 1) || dim_eq(a->strides[d], b->strides[d]);
    return same;
}

static bool same_type(const tensor_meta *a, const tensor_meta *b)
{
    return a->dtype == b->dtype && a->device.kind == b->device.kind && a->device.index == b->device.index &&
           same_sizes(a, b);
}

static const char *describe(const tensor_meta *m, char *dst, size_t cap)
{
    buf text = {0};
    graph_print_type(m, &text);
    snprintf(dst, cap, "%s", buf_text(&text));
    buf_fini(&text);
    return dst;
}

/* A promise of the graph about input i that does not hold is an error. */
static bp_status check_inputs(bp_ctx *c, const op_row *op, const bp_graph_module *gm, const metas *in)
{
    uint32_t i = 0;
    for (node_id n = gm->g.first; n; n = graph_get(&gm->g, n)->next) {
        const graph_node *node = graph_get(&gm->g, n);
        if (node->op != BP_NODE_PLACEHOLDER)
            continue;
        const tensor_meta *want = node->nmetas == 1 && meta_is_constant(node->metas) ? node->metas : NULL;
        char a[160], b[160];
        if (want && !same_type(want, &in->at[i]))
            return op_fail(c, op, BP_INVALID_ARGUMENT, "input \"%s\" of graph \"%s\" is %s, and gets %s", node->name,
                           gm->name, describe(want, a, sizeof a), describe(&in->at[i], b, sizeof b));
        i++;
    }
    return BP_OK;
}

/* From the graph's own types. false: some are not there, or hold symbols. */
static bool promised(const bp_graph_module *gm, metas *out)
{
    node_id last = graph_output_node(&gm->g);
    const bp_value *list = last ? graph_get(&gm->g, last)->args : NULL;
    for (uint32_t i = 0; list && i < out->n; i++) {
        const bp_value *v = &list->v.items[i];
        const graph_node *n = v->kind == BP_VALUE_NODE ? graph_get(&gm->g, v->v.node) : NULL;
        if (!n || n->nmetas != 1 || !meta_is_constant(n->metas))
            return false;
        out->at[i] = n->metas[0];
    }
    return list != NULL;
}

static bp_status copy_meta(bp_ctx *c, const bp_tensor *t, tensor_meta *out)
{
    tensor_get_meta(t, out);
    out->sizes = arena_memdup(&c->scratch, out->sizes, out->rank * sizeof *out->sizes);
    out->strides = arena_memdup(&c->scratch, out->strides, out->rank * sizeof *out->strides);
    return out->sizes && out->strides ? BP_OK : ctx_nomem(c);
}

static bp_status run_on_fakes(bp_ctx *c, const bp_graph_module *gm, bp_tensor *const *in, uint32_t nin, metas *out)
{
    dispatch_mode fake, *modes = c->modes;
    bp_tensor **gave = calloc(out->n + 1u, sizeof *gave);
    if (!gave)
        return ctx_nomem(c);
    mode_init_fake(&fake);
    c->modes = NULL;
    mode_push(c, &fake);
    bp_status st = graph_run(c, gm, in, nin, gave, out->n, NULL, NULL);
    c->modes = modes;
    for (uint32_t i = 0; i < out->n; i++) {
        if (st == BP_OK)
            st = gave[i] ? copy_meta(c, gave[i], &out->at[i])
                         : ctx_fail(c, BP_INVALID_ARGUMENT, "result %u of graph \"%s\" is None", i, gm->name);
        tensor_unref(gave[i]);
    }
    free(gave);
    return st;
}

/* The same for a graph whose types do not say it. */
static bp_status found_on_fakes(bp_ctx *c, const bp_graph_module *gm, const metas *in, metas *out)
{
    bp_tensor **fakes = calloc(in->n + 1u, sizeof *fakes);
    bp_status st = fakes ? BP_OK : ctx_nomem(c);
    for (uint32_t i = 0; st == BP_OK && i < in->n; i++)
        if (!(fakes[i] = tensor_new_fake(c, &in->at[i])))
            st = c->diag.code;
    if (st == BP_OK)
        st = run_on_fakes(c, gm, fakes, in->n, out);
    for (uint32_t i = 0; fakes && i < in->n; i++)
        tensor_unref(fakes[i]);
    free(fakes);
    return st;
}

static bp_status infer_graph(bp_ctx *c, const op_row *op, const bp_graph_module *gm, const metas *in, metas *out)
{
    TRY(check_inputs(c, op, gm, in));
    out->n = graph_output_count(&gm->g);
    if (!(out->at = arena_array(&c->scratch, out->n, sizeof *out->at)))
        return ctx_nomem(c);
    return promised(gm, out) ? BP_OK : found_on_fakes(c, gm, in, out);
}

/* -- arguments ----------------------------------------------------------------------------------------------------- */

static bp_status look(bp_ctx *c, const shape_call *s, higher_call *h)
{
    char why[300];
    if (!higher_of_args(s->op, s->args, h))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "a graph is missing");
    return higher_fits(s->op, h, why, sizeof why) ? BP_OK : op_fail(c, s->op, BP_INVALID_ARGUMENT, "%s", why);
}

/* Metadata of the tensors of all lists; of lists first .. first + count - 1 each tensor counts as one item of its
 * leading dimension, whose size is *lead. */
static bp_status operands(bp_ctx *c, const shape_call *s, const higher_call *h, uint32_t sliced, metas *out,
                          bp_dim *lead)
{
    out->n = 0;
    if (!(out->at = arena_array(&c->scratch, h->total, sizeof *out->at)))
        return ctx_nomem(c);
    for (uint32_t i = 0, list = 0; i < s->nargs; i++) {
        if (!is_tensor_list(&s->op->schema->args[i]))
            continue;
        for (uint32_t k = 0; k < s->args[i].count; k++) {
            const bp_tensor *t = arg_list_tensor(s->args, i, k);
            tensor_meta *m = &out->at[out->n++];
            tensor_get_meta(t, m);
            m->offset = dim_const(0);
            if (list != sliced)
                continue;
            if (!m->rank)
                return op_fail(c, s->op, BP_INVALID_ARGUMENT, "tensor %u of \"%s\" has no dimensions to go along", k,
                               s->op->schema->args[i].name);
            if (k && !dim_eq(m->sizes[0], *lead))
                return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                               "the leading sizes of \"%s\" must agree, and are %lld and %lld",
                               s->op->schema->args[i].name, (long long)lead->value, (long long)m->sizes[0].value);
            *lead = m->sizes[0];
            m->rank--, m->sizes++, m->strides++;
        }
        list++;
    }
    return BP_OK;
}

static bp_status check_condition(bp_ctx *c, const op_row *op, const char *what, const tensor_meta *m)
{
    char text[160];
    bool one = m->dtype == BP_BOOL;
    for (uint32_t d = 0; d < m->rank; d++)
        one = one && dim_is(m->sizes[d], 1);
    return one ? BP_OK : op_fail(c, op, BP_INVALID_ARGUMENT, "%s must be a bool tensor of one element, and is %s", what,
                                 describe(m, text, sizeof text));
}

static bp_status differ(bp_ctx *c, const op_row *op, uint32_t i, const char *one, const tensor_meta *a,
                        const char *other, const tensor_meta *b)
{
    char x[160], y[160];
    return op_fail(c, op, BP_INVALID_ARGUMENT, "result %u is %s in %s and %s in %s", i, describe(a, x, sizeof x), one,
                   describe(b, y, sizeof y), other);
}

/* -- rules --------------------------------------------------------------------------------------------------------- */

static bp_status add(bp_ctx *c, shape_call *s, const tensor_meta *m, bool keep_strides)
{
    shape_out *o = shape_add_out(c, s, m->dtype, m->rank, m->sizes);
    if (!o)
        return c->diag.code;
    o->meta.device = m->device;
    if (keep_strides && m->rank)
        memcpy(o->meta.strides, m->strides, m->rank * sizeof *m->strides);
    return BP_OK;
}

/* A result laid out otherwise in the two graphs is contiguous. */
bp_status shape_higher_cond(bp_ctx *c, shape_call *s)
{
    higher_call h;
    metas in, yes, no;
    tensor_meta pred;
    TRY(look(c, s, &h));
    tensor_get_meta(arg_tensor(s->args, 0), &pred);
    TRY(check_condition(c, s->op, "pred", &pred));
    TRY(operands(c, s, &h, HIGHER_LISTS, &in, NULL));
    TRY(infer_graph(c, s->op, h.graph[0], &in, &yes));
    TRY(infer_graph(c, s->op, h.graph[1], &in, &no));
    for (uint32_t i = 0; i < yes.n; i++) {
        if (!same_type(&yes.at[i], &no.at[i]))
            return differ(c, s->op, i, "the true graph", &yes.at[i], "the false graph", &no.at[i]);
        TRY(add(c, s, &yes.at[i], same_layout(&yes.at[i], &no.at[i])));
    }
    return c->diag.code;
}

bp_status shape_higher_while_loop(bp_ctx *c, shape_call *s)
{
    higher_call h;
    metas in, going, next;
    TRY(look(c, s, &h));
    TRY(operands(c, s, &h, HIGHER_LISTS, &in, NULL));
    TRY(infer_graph(c, s->op, h.graph[0], &in, &going));
    TRY(check_condition(c, s->op, "what the condition gives", &going.at[0]));
    TRY(infer_graph(c, s->op, h.graph[1], &in, &next));
    for (uint32_t i = 0; i < next.n; i++) {
        if (!same_type(&in.at[i], &next.at[i]))
            return differ(c, s->op, i, "carried_inputs", &in.at[i], "what the body gives", &next.at[i]);
        TRY(add(c, s, &next.at[i], same_layout(&in.at[i], &next.at[i])));
    }
    return c->diag.code;
}

/* m behind a leading dimension. */
static bp_status add_stacked(bp_ctx *c, shape_call *s, const tensor_meta *m, bp_dim lead)
{
    bp_dim sizes[TENSOR_MAX_RANK] = {lead};
    tensor_meta all = *m;
    if (m->rank == TENSOR_MAX_RANK)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "a result of %d dimensions cannot be stacked", TENSOR_MAX_RANK);
    if (m->rank)
        memcpy(sizes + 1, m->sizes, m->rank * sizeof *sizes);
    all.rank++;
    all.sizes = sizes;
    return add(c, s, &all, false);
}

static bp_status check_lead(bp_ctx *c, const op_row *op, uint32_t n, bp_dim lead)
{
    if (!n)
        return op_fail(c, op, BP_INVALID_ARGUMENT, "\"xs\" is empty: there is nothing to go along");
    return dim_is(lead, 0) ? op_fail(c, op, BP_INVALID_ARGUMENT, "the leading size of \"xs\" is 0") : BP_OK;
}

bp_status shape_higher_map(bp_ctx *c, shape_call *s)
{
    higher_call h;
    metas in, out;
    bp_dim lead = dim_const(0);
    TRY(look(c, s, &h));
    TRY(operands(c, s, &h, 0, &in, &lead));
    TRY(check_lead(c, s->op, h.n[0], lead));
    TRY(infer_graph(c, s->op, h.graph[0], &in, &out));
    for (uint32_t i = 0; i < out.n; i++)
        TRY(add_stacked(c, s, &out.at[i], lead));
    return c->diag.code;
}

bp_status shape_higher_scan(bp_ctx *c, shape_call *s)
{
    higher_call h;
    metas in, out;
    bp_dim lead = dim_const(0);
    TRY(look(c, s, &h));
    TRY(operands(c, s, &h, 1, &in, &lead));
    TRY(check_lead(c, s->op, h.n[1], lead));
    TRY(infer_graph(c, s->op, h.graph[0], &in, &out));
    for (uint32_t i = 0; i < out.n; i++) {
        if (i < h.n[0] && !same_type(&in.at[i], &out.at[i]))
            return differ(c, s->op, i, "init", &in.at[i], "what the graph carries on", &out.at[i]);
        if (i < h.n[0])
            TRY(add(c, s, &out.at[i], false));
        else
            TRY(add_stacked(c, s, &out.at[i], lead));
    }
    return c->diag.code;
}
