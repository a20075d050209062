/* One backend, one graph: the copy that the backend may read and edit, the call of its compile, and what it said. */
#include "host/backend/chain.h"
#include "host/backend/text.h"
#include "host/backend/watch.h"
#include "host/base/log.h"
#include <stdio.h>
#include <string.h>

/* -- the view ------------------------------------------------------------------------------------------------------ */

static bp_status copy_constants(bp_ctx *c, const bp_graph_module *from, bp_graph_module *to)
{
    for (node_id n = from->g.first; n; n = graph_get(&from->g, n)->next) {
        const graph_node *node = graph_get(&from->g, n);
        if (node->op == BP_NODE_GET_ATTR)
            TRY(gm_copy_attr(c, from, node->name, to, node->name));
    }
    return BP_OK;
}

/* Graphs inside are copied, too: they carry the backend's table. */
typedef struct { bp_ctx *c; bp_graph_module *gm; } showing;

static bp_status show_sub(void *arg, const char *name, bp_graph_module *sub)
{
    const showing *s = arg;
    if (!(sub = gm_own_sub(s->c, s->gm, name)))
        return s->c->diag.code;
    sub->host = s->gm->host;
    return gm_each_sub(sub, show_sub, &(showing){s->c, sub});
}

/* The callable's options win over the config's. */
static bp_status copy_options(bp_ctx *c, const backend *b, const bp_graph_module *asked, bp_graph_module *to)
{
    for (uint32_t i = 0; i < asked->options.len; i++)
        TRY(gm_set_option(c, to, asked->options.at[i].key, asked->options.at[i].value));
    for (uint32_t i = 0; b->section && i < b->section->options.len; i++) {
        const config_option *o = &b->section->options.at[i];
        bool is_given = false;
        for (uint32_t k = 0; k < asked->options.len; k++)
            is_given |= strcmp(asked->options.at[k].key, o->name) == 0;
        if (!is_given && backend_takes_option(b, o))
            TRY(gm_set_option(c, to, o->name, o->value.text));
    }
    return BP_OK;
}

static bp_status list_nodes(bp_ctx *c, link_view *v)
{
    const graph *g = &v->gm->g;
    compile_record *record = &v->record;
    record->order = calloc(g->live + 1u, sizeof(node_id));
    record->nplaceholders = graph_placeholders(g, NULL, 0);
    record->placeholders = calloc(record->nplaceholders + 1u, sizeof(node_id));
    if (!record->order || !record->placeholders)
        return diag_nomem(&c->diag);
    for (node_id n = g->first; n; n = graph_get(g, n)->next)
        record->order[record->nnodes++] = n;
    graph_placeholders(g, record->placeholders, record->nplaceholders);
    return BP_OK;
}

static bp_status fill(bp_ctx *c, link_view *v, const bp_graph_module *gm, const bp_graph_module *asked)
{
    backend *b = v->record.b;
    if (!(v->gm = gm_new(c, gm->name)))
        return c->diag.code;
    v->gm->host = &b->host.api;
    v->gm->code_id = gm->code_id;
    v->gm->part = gm->part;
    v->gm->ctx = c;
    graph_fini(&v->gm->g);
    TRY(graph_clone(c, &gm->g, &v->gm->g));
    if (gm->g.syms) { /* what the backend asks is asked of the graph that is compiled */
        sym_env_unref(v->gm->g.syms);
        v->gm->g.syms = sym_env_ref(gm->g.syms);
    }
    TRY(copy_constants(c, gm, v->gm));
    TRY(gm_each_sub(v->gm, show_sub, &(showing){c, v->gm}));
    TRY(copy_options(c, b, asked, v->gm));
    if (backend_graph_kind(b) == BP_GRAPH_CORE)
        TRY(link_view_make_core(c, v));
    TRY(list_nodes(c, v));
    v->inputs = (bp_inputs){v->gm->host, v->gm, v->record.placeholders, v->record.nplaceholders};
    v->gm->backend = &v->record;
    return BP_OK;
}

link_view *link_view_new(bp_ctx *c, const chain *ch, backend *b, const bp_graph_module *gm,
                         const bp_graph_module *asked)
{
    link_view *v = calloc(1, sizeof *v);
    if (!v) {
        diag_nomem(&c->diag);
        return NULL;
    }
    v->record = (compile_record){.c = c, .b = b, .chain = ch, .asked = asked, .sink = {c->sink, c->sink_arg}};
    if (fill(c, v, gm, asked) == BP_OK)
        return v;
    link_view_destroy(v);
    return NULL;
}

/* A plugin may hold the module: what pointed into this compile goes, the graph stays. */
void link_view_destroy(link_view *v)
{
    if (!v)
        return;
    if (v->gm) {
        v->gm->backend = NULL;
        v->gm->ctx = NULL;
        gm_unref(v->gm);
    }
    vec_fini(&v->record.constants);
    map_fini(&v->record.shown);
    free(v->record.order);
    free(v->record.placeholders);
    free(v->origin);
    free(v->unfit);
    free(v);
}

/* -- kinds of graphs ----------------------------------------------------------------------------------------------- */

static bool writes(const op_row *row)
{
    for (uint32_t i = 0; row && i < row->schema->nargs; i++)
        if (row->schema->args[i].ty.writes)
            return true;
    return false;
}

bool link_takes_kind(const backend *b, const graph *g, char *why, size_t cap)
{
    int32_t kind = backend_graph_kind(b);
    for (node_id n = g->first; kind != BP_GRAPH_CAPTURED && n; n = graph_get(g, n)->next) {
        const graph_node *node = graph_get(g, n);
        if (node->op != BP_NODE_CALL_FUNCTION || !writes(node->row))
            continue;
        snprintf(why, cap, "it wants %s graphs, and node \"%s\" is %s",
                 kind == BP_GRAPH_CORE ? "core" : "functional", node->name, node->target);
        return false;
    }
    return true;
}

/* -- the call ------------------------------------------------------------------------------------------------------ */

static bool may_run_here(const backend *b, answer *out)
{
    if ((b->info.flags & BP_FORK_SAFE) || b->forks == protect_forks())
        return true;
    out->code = BP_FAILED_PRECONDITION;
    snprintf(out->text, sizeof out->text, "the process forked since it was loaded, and it is not fork-safe");
    return false;
}

/* Why there is no compiled object: its own words, else what a service told, else that it said nothing. */
static void read_words(const link_view *v, answer *out)
{
    const diag *said = &v->gm->said, *inner = &v->record.inner, *left = &v->record.c->diag;
    const diag *story = said->code ? said : inner->code ? inner : left->code ? left : NULL;
    out->code = story ? story->code : BP_INTERNAL;
    out->ends = story && story->ends;
    snprintf(out->text, sizeof out->text, "%.700s%s%.490s", story ? story->message : "returned NULL and gave no reason",
             story && story->detail[0] ? " " : "", story ? story->detail : "");
    diag_clear(&v->record.c->diag);
}

/* What services left behind is no failure: there is an object. Its code goes to the log, if anybody wants it. */
static void describe(const link_view *v, const bp_compiled *k)
{
    bp_ctx *c = v->record.c;
    diag_clear(&c->diag);
    if (!k->run || !k->b->info.describe || !log_on(c->rt, LOG_output_code))
        return;
    size_t n = k->b->info.describe(k->state, NULL, 0);
    char *text = n < SIZE_MAX ? calloc(n + 1, 1) : NULL; /* with room for the NUL that snprintf wants */
    if (text && k->b->info.describe(k->state, text, n + 1) <= n) {
        buf clean = {0};
        plugin_text_add(&clean, text, strlen(text), TEXT_LINES);
        log_line(c->rt, LOG_output_code, "\"%s\", graph \"%s\":\n%s", k->b->name, v->gm->name, buf_text(&clean));
        buf_fini(&clean);
    }
    free(text);
}

/* What came back, unless it breaks the rules: an object of another graph would compute that one; one that comes with
 * words of failure is not wanted by its own maker. */
static bp_compiled *accept(link_view *v, bp_compiled *k, answer *out)
{
    bool foreign = k->made_in != v->record.id, released = k->is_dead || !compiled_take_back(&k->lent);
    if (!foreign && !released && !v->gm->said.code) {
        describe(v, k);
        return k;
    }
    if (released) {
        out->code = BP_INTERNAL;
        snprintf(out->text, sizeof out->text, "returned a compiled object that it had released");
        diag_clear(&v->record.c->diag);
        return NULL;
    }
    if (foreign) {
        out->code = BP_INTERNAL;
        snprintf(out->text, sizeof out->text, "returned an object that was compiled for another graph");
        diag_clear(&v->record.c->diag);
    } else {
        read_words(v, out);
    }
    compiled_unref(k);
    return NULL;
}

/* Whether constants are what they were: no other link could compute from them else. */
static bool constants_hold(const link_view *v, answer *out)
{
    for (uint32_t i = 0; i < v->record.constants.len; i++) {
        const lent_constant *k = &v->record.constants.at[i];
        if (watch_sum(k->t) == k->sum)
            continue;
        out->code = BP_DATA_LOSS;
        out->ends = true;
        snprintf(out->text, sizeof out->text,
                 "wrote to a constant of the graph, which is only lent to it: nothing else can answer from it");
        return false;
    }
    return true;
}

/* The function for this part of a graph: its own, else the one for all. */
static bp_compile_fn compile_of(const backend *b, const bp_graph_module *gm)
{
    bp_compile_fn own = gm->part == GM_BACKWARD    ? b->info.compile_backward
                        : gm->part == GM_INFERENCE ? b->info.compile_inference
                                                   : NULL;
    return own ? own : b->compile;
}

static bp_compiled *call(link_view *v, answer *out)
{
    bp_ctx *c = v->record.c;
    backend *b = v->record.b;
    fp_word word = protect_begin();
    bp_compiled *k = compile_of(b, v->gm)(v->gm, &v->inputs);
    if (protect_end(word))
        log_line(c->rt, LOG_backend, "compile of \"%s\" changed the floating-point control word; it was put back",
                 b->name);
    if (k)
        k = accept(v, k, out);
    else
        read_words(v, out);
    if (constants_hold(v, out))
        return k;
    compiled_unref(k);
    return NULL;
}

bp_compiled *link_compile(link_view *v, answer *out)
{
    static atomic_ullong compiles;
    bp_ctx *c = v->record.c;
    backend *b = v->record.b;
    v->record.id = atomic_fetch_add(&compiles, 1) + 1;
    bool is_serial = !(b->info.flags & BP_CONCURRENT_COMPILE);
    char what[80];
    *out = (answer){0};
    if (v->unfit) {
        out->code = BP_UNIMPLEMENTED;
        snprintf(out->text, sizeof out->text, "%s", v->unfit);
        return NULL;
    }
    if (!may_run_here(b, out))
        return NULL;
    snprintf(what, sizeof what, "backend \"%s\"", b->name);
    if (is_serial && serial_enter(c, b->lock, what) != BP_OK) {
        read_words(v, out);
        return NULL;
    }
    bp_compiled *k = call(v, out);
    if (is_serial)
        serial_leave(b->lock);
    return k;
}
