/* The verifier: what every graph must be, whoever built or edited it. An error names the node.
 *
 * It trusts nothing but that ids lie in the node table, so that it can be run on a graph that a pass has spoiled. */
#include "host/graph/higher.h"
#include "host/graph/namer.h"
#include "host/graph/verify.h"
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

bp_status verify_fault(verifier *v, const char *fmt, ...)
{
    char text[600];
    va_list ap;
    if (v->status)
        return v->status;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const graph_node *n = graph_get(v->g, v->at);
    char place[300] = "";
    if (n->column) /* of a text: as its parser says where */
        snprintf(place, sizeof place, "%s:%d:%d: ", n->file, n->line, n->column);
    v->status = ctx_fail(v->c, BP_INVALID_ARGUMENT, "%snode \"%s\" of graph \"%s\": %s", place,
                         n->name ? n->name : "?", v->gm->name, text);
    if (n->file && !n->column)
        diag_while(&v->c->diag, "checking a node of %s:%d", n->file, n->line);
    return v->status;
}

/* -- the list ------------------------------------------------------------------------------------------------------ */

static bp_status check_list(verifier *v)
{
    uint32_t count = 0;
    node_id before = 0;
    for (node_id n = v->g->first; n; before = n, n = v->g->nodes.at[n].next) {
        if (n >= v->g->nodes.len || v->rank[n])
            return ctx_fail(v->c, BP_INTERNAL, "the node list of graph \"%s\" is broken at node %u", v->gm->name, n);
        v->at = n;
        v->rank[n] = ++count;
        if (v->g->nodes.at[n].prev != before)
            return verify_fault(v, "the node before it is %u, its link says %u", before, v->g->nodes.at[n].prev);
    }
    if (before != v->g->last || count != v->g->live)
        return ctx_fail(v->c, BP_INTERNAL, "graph \"%s\" counts %u nodes and has %u", v->gm->name, v->g->live, count);
    return BP_OK;
}

/* -- one node's place, name and uses ------------------------------------------------------------------------------- */

static void check_input(void *arg, node_id n)
{
    verifier *v = arg;
    if (n == 0 || n >= v->g->nodes.len || !v->rank[n]) {
        verify_fault(v, "an argument names node %u, which is not in the graph", n);
        return;
    }
    const graph_node *in = graph_get(v->g, n);
    if (v->rank[n] >= v->rank[v->at])
        verify_fault(v, "its argument \"%s\" comes after it", in->name);
    if (in->op == BP_NODE_OUTPUT)
        verify_fault(v, "its argument is the graph's output");
    edges *e = &v->found[n];
    if (e->last == v->at)
        return;
    e->last = v->at;
    e->count++;
    e->sum += hash_u64(v->at);
}

/* The users that were found in arguments are those that are recorded. Sets are compared by count and a sum of hashes,
 * so that a node with very many users costs no more than its share. */
static bp_status check_users(verifier *v, const graph_node *n)
{
    edges recorded = {0};
    for (uint32_t i = 0; i < n->users.len; i++) {
        recorded.count++;
        recorded.sum += hash_u64(n->users.at[i]);
    }
    const edges *found = &v->found[v->at];
    if (recorded.count != found->count)
        return verify_fault(v, "it records %u users and has %u", recorded.count, found->count);
    return recorded.sum == found->sum ? BP_OK : verify_fault(v, "it records others as its users than use it");
}

static bp_status check_metas(verifier *v, const graph_node *n)
{
    for (uint32_t i = 0; i < n->nmetas; i++) {
        const tensor_meta *m = &n->metas[i];
        if (m->dtype <= BP_DTYPE_UNSET || m->dtype >= BP_DTYPE_END)
            return verify_fault(v, "result %u has no data type", i);
        if (m->rank > TENSOR_MAX_RANK)
            return verify_fault(v, "result %u has %u dimensions, %d at most", i, m->rank, TENSOR_MAX_RANK);
        for (uint32_t d = 0; d < m->rank; d++)
            if ((!m->sizes[d].sym && m->sizes[d].value < 0) || (!m->strides[d].sym && m->strides[d].value < 0))
                return verify_fault(v, "result %u has size %lld with stride %lld in dimension %u", i,
                             (long long)m->sizes[d].value, (long long)m->strides[d].value, d);
    }
    return BP_OK;
}

static bp_status check_place(verifier *v, const graph_node *n)
{
    if (!n->name || !namer_is_identifier(n->name))
        return verify_fault(v, "its name is no identifier");
    if (graph_find(v->g, n->name) != v->at)
        return verify_fault(v, "its name is not unique");
    if (!n->target)
        return verify_fault(v, "it has no target");
    graph_each_input(v->g, v->at, check_input, v);
    TRY(v->status);
    return check_metas(v, n);
}

/* -- a call against its schema ------------------------------------------------------------------------------------- */

/* A node whose operator gives a list fits no single tensor. */
static bool gives_list(const graph *g, const bp_value *value)
{
    const op_row *row = value->kind == BP_VALUE_NODE ? graph_get(g, value->v.node)->row : NULL;
    const schema *s = row ? row->schema : NULL;
    return s && (s->nreturns > 1 || (s->nreturns == 1 && s->returns[0].list));
}

static bp_status check_fit(verifier *v, const schema_arg *arg, const bp_value *value)
{
    bool list = gives_list(v->g, value);
    const graph_node *from = value->kind == BP_VALUE_NODE ? graph_get(v->g, value->v.node) : NULL;
    bool is_graph = from && from->op == BP_NODE_GET_ATTR && gm_sub(v->gm, from->name);
    if (from && is_graph != (arg->ty.type == TYPE_GRAPH))
        return verify_fault(v, is_graph ? "argument \"%s\" of %s is a graph" : "argument \"%s\" of %s must be a graph",
                     arg->name, graph_get(v->g, v->at)->target);
    if (list && arg->ty.type == TYPE_TENSOR && arg->ty.list)
        return BP_OK;
    if (!list && schema_fits(&arg->ty, value))
        return BP_OK;
    buf type = {0};
    schema_print_type(&arg->ty, &type);
    verify_fault(v, "argument \"%s\" of %s must be %s%s", arg->name, graph_get(v->g, v->at)->target, buf_text(&type),
          list ? ", and got a list of tensors: take one with getitem" : "");
    buf_fini(&type);
    return v->status;
}

static bp_status check_keyword(verifier *v, const graph_node *n, uint32_t k)
{
    const schema *s = n->row->schema;
    int32_t i = schema_find(s, n->kwargs[k].name);
    if (i < 0)
        return verify_fault(v, "%s has no argument \"%s\"", n->target, n->kwargs[k].name);
    if ((uint32_t)i < n->nargs)
        return verify_fault(v, "argument \"%s\" of %s is given twice", n->kwargs[k].name, n->target);
    for (uint32_t j = 0; j < k; j++)
        if (!strcmp(n->kwargs[j].name, n->kwargs[k].name))
            return verify_fault(v, "argument \"%s\" of %s is given twice", n->kwargs[k].name, n->target);
    return check_fit(v, &s->args[i], &n->kwargs[k].value);
}

static bool is_given(const graph_node *n, uint32_t i)
{
    if (i < n->nargs)
        return true;
    for (uint32_t k = 0; k < n->nkwargs; k++)
        if (!strcmp(n->kwargs[k].name, n->row->schema->args[i].name))
            return true;
    return false;
}

/* The graphs that it runs take and give what the call says. */
static bp_status check_higher(verifier *v, const graph_node *n)
{
    char why[300];
    higher_call h;
    if (!higher_of_node(v->gm, n, &h))
        return verify_fault(v, "%s takes its graphs and lists by position, lists written out", n->target);
    return higher_fits(n->row, &h, why, sizeof why) ? BP_OK : verify_fault(v, "%s: %s", n->target, why);
}

static bp_status check_call(verifier *v, const graph_node *n)
{
    str builtin;
    if (graph_is_builtin(n->target, &builtin))
        return BP_OK;
    if (!n->row)
        return verify_fault(v, "unknown operator \"%s\"", n->target);
    const schema *s = n->row->schema;
    uint32_t positional = s->nargs - s->nkwarg_only;
    if (n->nargs > positional)
        return verify_fault(v, "%s takes %u positional arguments, got %u", n->target, positional, n->nargs);
    for (uint32_t i = 0; i < n->nargs; i++)
        TRY(check_fit(v, &s->args[i], &n->args[i]));
    for (uint32_t k = 0; k < n->nkwargs; k++)
        TRY(check_keyword(v, n, k));
    for (uint32_t i = 0; i < s->nargs; i++)
        if (!s->args[i].has_default && !is_given(n, i))
            return verify_fault(v, "argument \"%s\" of %s is missing", s->args[i].name, n->target);
    return n->row->flags & OP_HIGHER ? check_higher(v, n) : BP_OK;
}

/* -- the output ---------------------------------------------------------------------------------------------------- */

static bp_status check_output(verifier *v, const graph_node *n)
{
    if (v->at != v->g->last)
        return verify_fault(v, "an output must be the last node");
    if (n->nargs != 1 || n->args[0].kind != BP_VALUE_LIST || n->nkwargs)
        return verify_fault(v, "an output must have one argument, the list of results");
    for (uint32_t i = 0; i < n->args[0].count; i++) {
        const bp_value *item = &n->args[0].v.items[i];
        bool symbol = item->kind == BP_VALUE_INT && item->v.dim.sym;
        if (item->kind != BP_VALUE_NODE && item->kind != BP_VALUE_NONE && !symbol)
            return verify_fault(v, "result %u must be a node, a symbol or None", i);
        if (gives_list(v->g, item))
            return verify_fault(v, "result %u is a list of tensors: take one with getitem", i);
    }
    return BP_OK;
}

static bp_status check_node(verifier *v)
{
    const graph_node *n = graph_get(v->g, v->at);
    TRY(check_place(v, n));
    switch (n->op) {
    case BP_NODE_PLACEHOLDER:
        if (n->role < BP_ROLE_USER || n->role > BP_ROLE_SYMINT)
            return verify_fault(v, "a placeholder must have a role, got %d", n->role);
        return n->nargs || n->nkwargs ? verify_fault(v, "a placeholder has no arguments") : BP_OK;
    case BP_NODE_GET_ATTR:
        if (gm_sub(v->gm, n->name))
            TRY(graph_verify(v->c, gm_sub(v->gm, n->name)));
        else if (!gm_constant(v->gm, n->name))
            return verify_fault(v, "its constant has no value: its text lacks data");
        return n->nargs || n->nkwargs ? verify_fault(v, "a get_attr has no arguments") : BP_OK;
    case BP_NODE_CALL_FUNCTION: return check_call(v, n);
    case BP_NODE_OUTPUT: return check_output(v, n);
    default: return verify_fault(v, "its opcode %d is none", n->op);
    }
}

static bp_status check_all(verifier *v)
{
    TRY(check_list(v));
    for (v->at = v->g->first; v->at; v->at = graph_get(v->g, v->at)->next)
        TRY(check_node(v));
    for (v->at = v->g->first; v->at; v->at = graph_get(v->g, v->at)->next)
        TRY(check_users(v, graph_get(v->g, v->at)));
    TRY(verify_symbols(v));
    if (!graph_output_node(v->g))
        return ctx_fail(v->c, BP_INVALID_ARGUMENT, "graph \"%s\" has no output", v->gm->name);
    return BP_OK;
}

bp_status graph_verify(bp_ctx *c, const bp_graph_module *gm)
{
    TRY(graph_status(c, &gm->g));
    verifier v = {.c = c, .gm = gm, .g = &gm->g};
    v.rank = calloc(gm->g.nodes.len, sizeof *v.rank);
    v.found = calloc(gm->g.nodes.len, sizeof *v.found);
    bp_status s = v.rank && v.found ? check_all(&v) : ctx_nomem(c);
    free(v.rank);
    free(v.found);
    return s;
}
