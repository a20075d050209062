/* Assignment: each node goes to the first link of the chain that supports it.
 *
 * Links are asked in order and only while a node is left, so a chain's later libraries are not loaded for nothing. A
 * link without `supports` takes all that is left, and may still decline when it compiles. A graph that writes in place
 * is not cut: the order of a write and of other readers of the memory is not an edge of the graph, and a group must not
 * write what another one made. */
#include "host/backend/plan.h"
#include "host/backend/text.h"
#include "host/base/log.h"
#include <stdio.h>
#include <string.h>

/* -- trails -------------------------------------------------------------------------------------------------------- */

void trail_add(trail *t, const char *name, bp_status code, const char *text)
{
    if (t->is_final)
        return;
    buf_printf(&t->text, "%s%s: %s", t->n ? "; " : "", name, text);
    if (!t->code || (t->code == BP_UNIMPLEMENTED && status_chain(code) != 'Q'))
        t->code = code;
    t->n++;
    snprintf(t->name, sizeof t->name, "%s", name);
    snprintf(t->last, sizeof t->last, "%s", text);
}

bp_status trail_end(trail *t, const char *name, bp_status code, const char *text)
{
    if (t->is_final)
        return t->code;
    trail_add(t, name, code, text);
    t->code = code;
    t->is_final = true;
    return code;
}

void trail_fini(trail *t)
{
    buf_fini(&t->text);
}

/* -- facts of the graph -------------------------------------------------------------------------------------------- */

static bool is_getitem(const graph_node *n)
{
    str name;
    return n->op == BP_NODE_CALL_FUNCTION && graph_is_builtin(n->target, &name) && str_is(name, "getitem");
}

static bool is_cuttable_node(const graph *g, const graph_node *n)
{
    if (!n->row)
        return is_getitem(n);
    for (uint32_t i = 0; i < n->row->schema->nargs; i++)
        if (n->row->schema->args[i].ty.writes)
            return false;
    if ((n->row->flags & (OP_EFFECT | OP_ITEM)) || n->nmetas == 0)
        return false;
    if (n->nmetas == 1 && n->row->schema->nreturns == 1 && !n->row->schema->returns[0].list)
        return true;
    for (uint32_t i = 0; i < n->users.len; i++) /* a list of results is taken apart where it is made */
        if (!is_getitem(graph_get(g, n->users.at[i])))
            return false;
    return true;
}

bool graph_asserts(const graph *g)
{
    for (uint32_t i = 0; g->syms && i < sym_fact_count(g->syms); i++)
        if (sym_fact_at(g->syms, i)->origin == SYM_ASSERTED)
            return true;
    return false;
}

/* Some size of data is told by one of several results, and a group gives single ones. */
static bool tells_in_a_list(const graph *g)
{
    for (uint32_t k = 0; g->syms && k < sym_symbol_count(g->syms); k++) {
        const sym_symbol *s = sym_symbol_at(g->syms, k);
        if (s->unbacked && s->source.at < g->nodes.len && graph_get(g, s->source.at)->op == BP_NODE_CALL_FUNCTION &&
            graph_get(g, s->source.at)->nmetas > 1)
            return true;
    }
    return false;
}

/* An assertion may be on sizes of several groups. */
static bool is_cuttable(const graph *g)
{
    if (graph_asserts(g) || tells_in_a_list(g))
        return false;
    for (node_id n = g->first; n; n = graph_get(g, n)->next)
        if (graph_get(g, n)->op == BP_NODE_CALL_FUNCTION && !is_cuttable_node(g, graph_get(g, n)))
            return false;
    return true;
}

/* -- asking -------------------------------------------------------------------------------------------------------- */

static void note_why(assignment *a, node_id n, const char *name, const char *why)
{
    const char *before = a->why[n];
    char *text = arena_printf(&a->texts, "%s%s%s: %s", before ? before : "", before ? "; " : "", name, why);
    if (text)
        a->why[n] = text;
}

/* A node that only picks a result of another one stays with it. */
static node_id source_of(const graph *g, node_id n)
{
    const graph_node *node = graph_get(g, n);
    while (is_getitem(node) && node->nargs && node->args[0].kind == BP_VALUE_NODE) {
        n = node->args[0].v.node;
        node = graph_get(g, n);
    }
    return n;
}

typedef struct { uint32_t taken, left; node_id first_left; char why[600]; } tally; /* why: of the first that is left */

static bool ask_one(const link_view *v, node_id n, char *why, size_t cap)
{
    char said[400] = "";
    fp_word word = protect_begin();
    int32_t takes = v->record.b->info.supports(v->gm, n, said, sizeof said);
    protect_end(word);
    said[sizeof said - 1] = '\0';
    plugin_text(why, cap, said, strlen(said));
    if (takes == 0 && !*why)
        snprintf(why, cap, "not supported, without a reason");
    if (takes == 0 || takes == 1)
        return takes == 1;
    snprintf(why, cap, "supports returned %d, expected 1 (it takes the node) or 0 (it does not)", (int)takes);
    snprintf(said, sizeof said, "backend \"%s\": %.200s; it is read as 0", v->record.b->name, why);
    backend_warn_once(v->record.b->room, said);
    return false;
}

/* A call that was decomposed for the link is taken when all its parts are. */
static bool ask_node(const link_view *v, node_id n, char *why, size_t cap)
{
    const graph *g = &v->gm->g;
    bool whole = n < g->nodes.len && graph_get(g, n)->op;
    if (whole || !v->origin)
        return ask_one(v, n, why, cap);
    for (node_id m = g->first; m; m = graph_get(g, m)->next)
        if (m < v->norigins && v->origin[m] == n && !ask_one(v, m, why, cap))
            return false;
    return true;
}

/* Asks for each node that is left. */
static void ask_nodes(assignment *a, uint32_t i, const link_view *v, tally *t)
{
    const graph *g = &a->gm->g;
    char why[400];
    for (node_id n = g->first; n; n = graph_get(g, n)->next) {
        if (graph_get(g, n)->op != BP_NODE_CALL_FUNCTION || a->link[n] != NO_LINK)
            continue;
        node_id source = source_of(g, n);
        bool is_part = source != n && graph_get(g, source)->op == BP_NODE_CALL_FUNCTION;
        bool takes = is_part ? a->link[source] == i : ask_node(v, n, why, sizeof why);
        if (takes) {
            a->link[n] = i;
            t->taken++;
            continue;
        }
        if (!is_part)
            note_why(a, n, v->record.b->name, why);
        if (!t->left++) {
            t->first_left = n;
            snprintf(t->why, sizeof t->why, "node \"%s\" (%s): %s", graph_get(g, n)->name, graph_get(g, n)->target,
                     why);
        }
    }
}

static void take_rest(assignment *a, uint32_t i)
{
    const graph *g = &a->gm->g;
    for (node_id n = g->first; n; n = graph_get(g, n)->next)
        if (graph_get(g, n)->op == BP_NODE_CALL_FUNCTION && a->link[n] == NO_LINK)
            a->link[n] = i;
}

static void give_back(assignment *a, uint32_t i)
{
    for (uint32_t n = 0; n < a->gm->g.nodes.len; n++)
        if (a->link[n] == i)
            a->link[n] = NO_LINK;
}

/* A link that takes no node, whatever the node is. */
static void pass_over(assignment *a, const char *name, bp_status code, const char *text)
{
    buf_printf(&a->passed, "%s%s: %s", a->passed.n ? "; " : "", name, text);
    trail_add(a->trail, name, code, text);
}

/* A link that takes a part of the nodes. *left: nodes that are left behind it. */
static bp_status ask_partial(assignment *a, uint32_t i, bool can_cut, uint32_t *left)
{
    const char *name = a->ch->links[i].name;
    tally t = {0};
    ask_nodes(a, i, a->views[i], &t);
    *left = t.left;
    if (!t.left)
        return BP_OK;
    if (chain_is_strict(a->ch))
        return trail_end(a->trail, name, BP_UNIMPLEMENTED, t.why);
    if (!t.taken) {
        trail_add(a->trail, name, BP_UNIMPLEMENTED, t.why);
        return BP_OK;
    }
    if (!can_cut) {
        give_back(a, i);
        *left += t.taken;
        pass_over(a, name, BP_UNIMPLEMENTED,
                  "it takes a part of the graph, which cannot be cut: it writes in place, or hands lists on");
        return BP_OK;
    }
    trail_add(a->trail, name, BP_UNIMPLEMENTED, t.why);
    if (a->ch->is_direct)
        chain_warn(a->ch, "backend \"%s\" leaves %u of %u operators of graph \"%s\" to eager: %s", name,
                   (unsigned)t.left,
                   (unsigned)(t.left + t.taken), a->gm->name, t.why);
    return BP_OK;
}

/* Why link i is not asked at all; NULL: it is. */
static const char *reason_to_skip(assignment *a, uint32_t i, backend *b, bp_status *code, char *text, size_t cap)
{
    const chain_link *l = &a->ch->links[i];
    *code = BP_UNIMPLEMENTED;
    if (!b) {
        *code = l->code;
        return l->why ? l->why : "it is not usable";
    }
    if (backend_is_retired(b, a->code)) {
        *code = BP_UNAVAILABLE;
        return "a run of it failed before, so it is not used again";
    }
    return link_takes_kind(b, &a->gm->g, text, cap) ? NULL : text;
}

static bp_status ask_link(assignment *a, uint32_t i, bool can_cut, uint32_t *left)
{
    char text[400];
    bp_status code;
    const chain_link *l = &a->ch->links[i];
    backend *b = chain_link_ready(a->c, a->ch, i);
    const char *skip = reason_to_skip(a, i, b, &code, text, sizeof text);
    if (skip && chain_is_strict(a->ch) && !(l->is_optional && !b))
        return trail_end(a->trail, l->name, code, skip);
    if (skip) {
        pass_over(a, l->name, code, skip);
        return BP_OK;
    }
    a->views[i] = link_view_new(a->c, a->ch, b, a->gm, a->asked);
    if (!a->views[i])
        return a->c->diag.code;
    if (a->views[i]->unfit) {
        pass_over(a, l->name, BP_UNIMPLEMENTED, a->views[i]->unfit);
        return chain_is_strict(a->ch) ? trail_end(a->trail, l->name, BP_UNIMPLEMENTED, a->views[i]->unfit) : BP_OK;
    }
    if (b->info.supports && a->ncalls)
        return ask_partial(a, i, can_cut, left);
    take_rest(a, i);
    *left = 0;
    return BP_OK;
}

static bool make_tables(assignment *a)
{
    uint32_t n = a->gm->g.nodes.len;
    a->link = malloc((n + 1u) * sizeof *a->link);
    a->why = calloc(n + 1u, sizeof *a->why);
    a->views = calloc(a->ch->n + 1u, sizeof *a->views);
    for (uint32_t i = 0; a->link && i < n; i++) {
        a->link[i] = NO_LINK;
        a->ncalls += graph_get(&a->gm->g, i)->op == BP_NODE_CALL_FUNCTION;
    }
    return a->link && a->why && a->views;
}

bp_status assign_nodes(assignment *a)
{
    a->whole = NO_LINK;
    if (!make_tables(a))
        return ctx_nomem(a->c);
    bool can_cut = is_cuttable(&a->gm->g);
    uint32_t left = a->ncalls ? a->ncalls : 1, i = a->start;
    for (; left && i < a->ch->n; i++) {
        uint32_t before = left;
        TRY(ask_link(a, i, can_cut, &left));
        if (!left && before >= a->ncalls)
            a->whole = i;
    }
    if (!left && a->whole == NO_LINK && graph_asserts(&a->gm->g)) /* since a link's own parts were made */
        return trail_end(a->trail, "the chain", BP_UNIMPLEMENTED,
                         "a part asserts what only data tell, and a graph that does is not cut");
    if (!left)
        return BP_OK;
    if (!a->trail->n)
        trail_add(a->trail, "the chain", BP_UNIMPLEMENTED, "no link is left");
    return a->trail->code;
}

void assign_fini(assignment *a)
{
    for (uint32_t i = 0; a->views && i < a->ch->n; i++)
        link_view_destroy(a->views[i]);
    free(a->views);
    free(a->link);
    free(a->why);
    arena_fini(&a->texts);
    buf_fini(&a->passed);
}
