/* Programs: assignment, cutting, compiling each group, and life. program_run.c runs them, program_print.c shows
 * them. */
#include "host/backend/plan.h"
#include "host/base/log.h"
#include <stdio.h>
#include <string.h>

/* -- life ---------------------------------------------------------------------------------------------------------- */

void group_fini(group *g)
{
    vec_fini(&g->nodes);
    vec_fini(&g->in);
    vec_fini(&g->out);
    vec_fini(&g->dies);
    free(g->expected);
    free(g->same_as);
    group_free_sizes(g->sizes);
    compiled_unref(g->compiled);
    free(g->why);
    program_unref(atomic_load(&g->rest));
    gm_unref(g->gm);
    pthread_mutex_destroy(&g->lock);
}

program *program_ref(program *p)
{
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

void program_unref(program *p)
{
    if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < p->ngroups; i++)
        group_fini(&p->groups[i]);
    variants_free(p->variants);
    free(p->groups);
    free(p->why);
    free(p->passed);
    arena_fini(&p->texts);
    chain_unref(p->chain);
    gm_unref(p->gm);
    gm_unref(p->asked);
    free(p);
}

static program *make(bp_ctx *c, chain *ch, uint32_t start, bp_graph_module *gm, bp_graph_module *asked, uint64_t code)
{
    program *p = calloc(1, sizeof *p);
    if (!p) {
        ctx_nomem(c);
        return NULL;
    }
    atomic_init(&p->refs, 1);
    p->chain = chain_ref(ch);
    p->gm = gm_ref(gm);
    p->asked = gm_ref(asked);
    p->code = code;
    p->start = start;
    p->verifies = config_int(c->rt, KEY_VERIFY_CORRECTNESS) != 0;
    atomic_init(&p->seen, atomic_load(&ch->room->generation));
    p->ninputs = graph_placeholders(&gm->g, NULL, 0);
    p->noutputs = graph_output_count(&gm->g);
    return p;
}

/* -- outputs of a group -------------------------------------------------------------------------------------------- */

static uint32_t find_same(const bp_value *list, uint32_t i, const node_id *inputs, uint32_t ninputs)
{
    for (uint32_t k = 0; k < ninputs; k++)
        if (inputs[k] == list->v.items[i].v.node)
            return SAME_INPUT | k;
    for (uint32_t k = 0; k < i; k++)
        if (list->v.items[k].kind == BP_VALUE_NODE && list->v.items[k].v.node == list->v.items[i].v.node)
            return SAME_OUTPUT | k;
    return SAME_NONE;
}

static void free_if_plain(group *g, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (g->same_as[i] != SAME_NONE)
            return;
    free(g->same_as);
    g->same_as = NULL;
}

/* What each output must be, and which are a tensor that is there already. */
static bp_status fill_expected(bp_ctx *c, group *g)
{
    const graph *gr = &g->gm->g;
    uint32_t n = graph_output_count(gr), ninputs = graph_placeholders(gr, NULL, 0);
    node_id *inputs = calloc(ninputs + 1u, sizeof *inputs);
    g->expected = calloc(n + 1u, sizeof *g->expected);
    g->same_as = calloc(n + 1u, sizeof *g->same_as);
    if (!inputs || !g->expected || !g->same_as) {
        free(inputs);
        return ctx_nomem(c);
    }
    graph_placeholders(gr, inputs, ninputs);
    const bp_value *list = n ? &graph_get(gr, graph_output_node(gr))->args[0] : NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (list->v.items[i].kind != BP_VALUE_NODE)
            continue;
        const graph_node *node = graph_get(gr, list->v.items[i].v.node);
        g->expected[i] = node->nmetas ? &node->metas[0] : NULL;
        g->same_as[i] = find_same(list, i, inputs, ninputs);
    }
    free_if_plain(g, n);
    free(inputs);
    return BP_OK;
}

/* -- groups -------------------------------------------------------------------------------------------------------- */

static bp_status make_whole(bp_ctx *c, program *p, const assignment *a)
{
    p->groups = calloc(1, sizeof *p->groups);
    if (!p->groups)
        return ctx_nomem(c);
    pthread_mutex_init(&p->groups->lock, NULL);
    p->groups->link = a->whole;
    p->groups->gm = gm_ref(p->gm);
    p->ngroups = 1;
    p->is_whole = true;
    return BP_OK;
}

static bool gives_number(const graph *g)
{
    const bp_value *list = &graph_get(g, graph_output_node(g))->args[0];
    for (uint32_t i = 0; i < list->count; i++)
        if (list->v.items[i].kind == BP_VALUE_INT)
            return true;
    return false;
}

/* A plugin's own run neither checks what a graph asserts of sizes that only data tell, nor computes the sizes that it
 * gives: the host does both where it runs a graph node by node. */
static bp_compiled *refuse_own_run(const group *g, bp_compiled *k, answer *out)
{
    bool asserts = graph_asserts(&g->gm->g);
    if (!k || !k->run || (!asserts && !gives_number(&g->gm->g)))
        return k;
    compiled_unref(k);
    out->code = BP_UNIMPLEMENTED;
    snprintf(out->text, sizeof out->text, "the graph %s itself",
             asserts ? "asserts what only data tell, and the host checks it" : "gives a size, which the host computes");
    return NULL;
}

/* The link compiles the group, or says why not. */
static bp_compiled *ask(bp_ctx *c, program *p, group *g, assignment *a, answer *out)
{
    const chain_link *l = &p->chain->links[g->link];
    link_view *own = p->is_whole ? NULL : link_view_new(c, p->chain, l->b, g->gm, p->asked);
    link_view *v = p->is_whole ? a->views[g->link] : own;
    bp_compiled *k = v ? link_compile(v, out) : NULL;
    link_view_destroy(own);
    return refuse_own_run(g, k, out);
}

static void tell_of_fallback(const program *p, const group *g, const char *name, const answer *said, program *rest)
{
    buf who = {0};
    program_print_backends(rest, &who);
    bool is_loud = p->chain->is_direct || status_chain(said->code) != 'Q';
    if (is_loud)
        chain_warn(p->chain, "backend \"%s\" did not compile graph \"%s\" (%s: %s); %s answers", name, g->gm->name,
                   status_name(said->code), said->text, buf_text(&who));
    else
        log_line(p->chain->room->rt, LOG_backend, "\"%s\" did not compile graph \"%s\" (%s); %s answers", name,
                 g->gm->name, said->text, buf_text(&who));
    buf_fini(&who);
}

static bp_status compile_group(bp_ctx *c, program *p, group *g, assignment *a, trail *t)
{
    answer said = {0};
    program *rest = NULL;
    const char *name = p->chain->links[g->link].name;
    TRY(fill_expected(c, g));
    TRY(group_find_sizes(c, g));
    uint32_t asked = g->gm->g.syms ? sym_fact_count(g->gm->g.syms) : 0;
    g->compiled = ask(c, p, g, a, &said);
    if (!p->is_whole && g->gm->g.syms && ctx_ok(c))
        TRY(group_adopt_facts(c, g, p->gm->g.syms, asked));
    if (g->compiled || !ctx_ok(c))
        return c->diag.code;
    if (!(g->why = strdup(said.text)))
        return ctx_nomem(c);
    t->ends |= said.ends;
    if (said.ends || status_chain(said.code) == 'S' || chain_is_strict(p->chain))
        return trail_end(t, name, said.code, said.text);
    trail_add(t, name, said.code, said.text);
    TRY(program_compile_from(c, p->chain, g->link + 1, g->gm, p->asked, p->code, t, &rest));
    tell_of_fallback(p, g, name, &said, rest);
    atomic_store_explicit(&g->rest, rest, memory_order_release);
    return BP_OK;
}

static bp_status build(bp_ctx *c, program *p, assignment *a)
{
    TRY(assign_nodes(a));
    if (a->passed.n && !(p->passed = strdup(buf_text(&a->passed))))
        return ctx_nomem(c);
    TRY(a->whole != NO_LINK ? make_whole(c, p, a) : cut_groups(a, &p->groups, &p->ngroups));
    for (uint32_t i = 0; i < p->ngroups; i++)
        TRY(compile_group(c, p, &p->groups[i], a, a->trail));
    /* What is printed later moves over from the assignment. */
    p->why = a->why;
    a->why = NULL;
    p->texts = a->texts;
    a->texts = (arena){0};
    return BP_OK;
}

/* Takes p over when it fails. */
static bp_status build_groups(bp_ctx *c, program *p, trail *t, program **out)
{
    assignment a = {.c = c, .ch = p->chain, .gm = p->gm, .asked = p->asked, .start = p->start, .code = p->code,
                    .trail = t};
    bp_status st = build(c, p, &a);
    assign_fini(&a);
    if (st == BP_OK)
        *out = p;
    else
        program_unref(p);
    return st;
}

bp_status program_compile_from(bp_ctx *c, chain *ch, uint32_t start, bp_graph_module *gm, bp_graph_module *asked,
                               uint64_t code, trail *t, program **out)
{
    program *p = make(c, ch, start, gm, asked, code);
    if (!p)
        return c->diag.code;
    if (!graph_has_symbols(&gm->g))
        return build_groups(c, p, t, out);
    bp_status st = program_compile_dynamic(c, p, t);
    if (st == BP_OK)
        *out = p;
    else
        program_unref(p);
    return st;
}

/* Every result's metadata must be known before a graph is assigned: it is what outputs are checked against. */
static bp_status ensure_metas(bp_ctx *c, bp_graph_module *gm)
{
    for (node_id n = gm->g.first; n; n = graph_get(&gm->g, n)->next)
        if (graph_get(&gm->g, n)->op == BP_NODE_CALL_FUNCTION && !graph_get(&gm->g, n)->nmetas)
            return graph_propagate(c, gm);
    return BP_OK;
}

bp_status program_compile_variant(bp_ctx *c, const program *of, bp_graph_module *gm, trail *t, program **out)
{
    TRY(ensure_metas(c, gm));
    program *p = make(c, of->chain, of->start, gm, of->asked, of->code);
    return p ? build_groups(c, p, t, out) : c->diag.code;
}

/* -- from outside -------------------------------------------------------------------------------------------------- */

bp_status program_tell(bp_ctx *c, const trail *t, const chain *ch, const bp_graph_module *gm)
{
    if (!ctx_ok(c))
        return c->diag.code;
    if (t->n == 1 || t->is_final) {
        ctx_fail(c, t->code, "backend \"%s\" did not compile graph \"%s\": %s", t->name, gm->name, t->last);
    } else {
        ctx_fail(c, t->code, "no backend of the chain compiled graph \"%s\"", gm->name);
        diag_detail(&c->diag, "%s", buf_text(&t->text));
    }
    c->diag.ends = t->ends;
    if (chain_is_strict(ch))
        diag_hint(&c->diag, "\"fallback = error\" in [host] keeps other backends from answering");
    return c->diag.code;
}

/* Takes the caller's reference to ch. */
static bp_status compile(bp_ctx *c, chain *ch, bp_graph_module *gm, bp_graph_module *asked, uint64_t code,
                         program **out)
{
    trail t = {0};
    bp_status st = ch ? program_compile_from(c, ch, 0, gm, asked, code, &t, out) : c->diag.code;
    if (ch && st)
        st = program_tell(c, &t, ch, gm);
    trail_fini(&t);
    chain_unref(ch);
    return st;
}

/* Graphs without a callable get a number of their own, so that blame does not spread between them. */
static uint64_t code_of(const bp_graph_module *gm)
{
    static atomic_ullong last;
    return gm->code_id ? gm->code_id : (UINT64_C(1) << 63) | (atomic_fetch_add(&last, 1) + 1);
}

static void log_program(bp_ctx *c, const program *p)
{
    buf names = {0};
    if (!log_on(c->rt, LOG_backend))
        return;
    program_print_backends(p, &names);
    log_line(c->rt, LOG_backend, "graph \"%s\", %u groups: on %s", p->gm->name, p->ngroups, buf_text(&names));
    buf_fini(&names);
}

bp_status program_compile(bp_ctx *c, bp_graph_module *gm, backend *b, program **out)
{
    *out = NULL;
    if (!ctx_ok(c))
        return c->diag.code;
    if (!graph_has_symbols(&gm->g)) /* else what it asks is a variant's */
        TRY(ensure_metas(c, gm));
    TRY(compile(c, chain_of_backend(c, b), gm, gm, code_of(gm), out));
    log_program(c, *out);
    return BP_OK;
}

bp_status program_compile_names(compile_record *asker, bp_graph_module *gm, const char *const *names, uint32_t n,
                                program **out)
{
    union { const bp_graph_module *seen; bp_graph_module *own; } asked = {asker->asked}; /* counted, not written */
    *out = NULL;
    return compile(asker->c, chain_of_names(asker, names, n), gm, asked.own, code_of(gm), out);
}

bp_status program_specialize_on(bp_ctx *c, program *p, const bp_dim *conditions, uint32_t n)
{
    if (p->variants)
        return variants_specialize_on(c, p->variants, conditions, n);
    return ctx_fail(c, BP_FAILED_PRECONDITION, "graph \"%s\" has no symbols to specialize on", p->gm->name);
}

uint32_t program_variants(const program *p)
{
    return p->variants ? variants_count(p->variants) : 1;
}

bp_graph_module *program_graph(const program *p)
{
    return p->gm;
}
