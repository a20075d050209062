/* Compiling a segment that trains: joint graph, passes, partition, the forward down the chain. aot_run.c runs it. */
#include "host/compile/aot_parts.h"
#include "host/backend/config.h"
#include "host/base/log.h"
#include "host/pass/pass.h"
#include <stdlib.h>
#include <string.h>

/* -- life ---------------------------------------------------------------------------------------------------------- */

static void free_tangents(aot_made *m)
{
    for (uint32_t i = 0; m->tangents && i < m->ntangents; i++) {
        free(m->tangents[i].meta.sizes);
        sym_program_free(m->tangents[i].dims);
    }
    free(m->tangents);
}

static void drop_made(void *made)
{
    aot_made *m = made;
    program_unref(m->forward);
    program_unref(atomic_load(&m->backward));
    gm_unref(m->backward_gm);
    gm_unref(m->taped);
    free_tangents(m);
    free(m->symbols);
    free(m->numbers);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

aot *aot_ref(aot *a)
{
    atomic_fetch_add_explicit(&a->refs, 1, memory_order_relaxed);
    return a;
}

void aot_unref(aot *a)
{
    if (!a || atomic_fetch_sub_explicit(&a->refs, 1, memory_order_acq_rel) != 1)
        return;
    variants_free(a->made);
    gm_unref(a->gm);
    free(a->needs);
    free(a);
}

/* -- what the backward will be given ------------------------------------------------------------------------------- */

static bool copy_meta(const tensor_meta *from, tensor_meta *to)
{
    *to = *from;
    to->sizes = malloc(2 * ((size_t)from->rank + 1) * sizeof *to->sizes);
    if (!to->sizes)
        return false;
    to->strides = to->sizes + from->rank;
    if (from->rank) {
        memcpy(to->sizes, from->sizes, from->rank * sizeof *to->sizes);
        memcpy(to->strides, from->strides, from->rank * sizeof *to->strides);
    }
    return true;
}

static bool keep_tangent(const sym_env *e, const tensor_meta *m, aot_tangent *t)
{
    if (!copy_meta(m, &t->meta))
        return false;
    if (!meta_is_constant(m) && !(t->dims = sym_compile(e, t->meta.sizes, 2 * m->rank)))
        return false;
    return true;
}

static bp_status keep_tangents(bp_ctx *c, aot_made *m, const joint *j)
{
    uint32_t n = j->nprimals + j->ntangents;
    node_id *at = calloc(n + 1u, sizeof *at);
    m->tangents = calloc(j->ntangents + 1u, sizeof *m->tangents);
    bool ok = at && m->tangents;
    if (ok) {
        graph_placeholders(&j->gm->g, at, n);
        m->ntangents = j->ntangents;
    }
    for (uint32_t i = 0; ok && i < j->ntangents; i++) {
        m->tangents[i].of = j->tangent_of[i];
        ok = keep_tangent(j->gm->g.syms, graph_get(&j->gm->g, at[j->nprimals + i])->metas, &m->tangents[i]);
    }
    free(at);
    return ok ? BP_OK : ctx_nomem(c);
}

/* What was asked of the joint graph's environment, a copy, is a condition of what is made of the graph. What only data
 * tell is checked by the forward. */
static bp_status tell_conditions(bp_ctx *c, const sym_env *from, sym_env *to, uint32_t known)
{
    uint32_t n = to ? sym_symbol_count(to) : 0;
    if (!from || !to || sym_fact_count(from) == known)
        return BP_OK;
    bp_dim *same = calloc((size_t)sym_symbol_count(from) + 1, sizeof *same);
    if (!same)
        return ctx_nomem(c);
    for (uint32_t k = 0; k < n; k++)
        same[k] = sym_dim_of(to, k);
    bool holds = true;
    for (uint32_t i = known; i < sym_fact_count(from) && ctx_ok(c); i++) {
        const sym_fact *f = sym_fact_at(from, i);
        if (!sym_is_unbacked(from, f->holds))
            holds &= sym_assume(to, c, sym_import(to, c, from, f->holds, same), f->origin);
    }
    if (!holds && ctx_ok(c))
        ctx_fail(c, BP_INTERNAL, "what a gradient asks of sizes contradicts what is known of them");
    free(same);
    return c->diag.code;
}

/* -- stages -------------------------------------------------------------------------------------------------------- */

static void log_graph(bp_ctx *c, const char *what, const bp_graph_module *gm)
{
    if (!log_on(c->rt, LOG_aot))
        return;
    buf text = {0};
    graph_print_text(gm, &text);
    log_line(c->rt, LOG_aot, "%s graph of %s\n%s", what, gm->name, buf_text(&text));
    buf_fini(&text);
}

/* Its operators run one by one under the tape. The program is compiled for what is told of it alone. */
static bp_status run_taped(bp_ctx *c, const aot *a, aot_made *m, bp_graph_module *gm)
{
    m->taped = gm_ref(gm);
    return program_compile(c, gm, a->backend, &m->forward);
}

/* A graph with an operator that has no derivative here, or a number that only a run tells. */
static bp_status not_ahead(bp_ctx *c, const aot *a, aot_made *m, bp_graph_module *gm)
{
    if (c->diag.code != BP_UNIMPLEMENTED || config_int(c->rt, KEY_FALLBACK) == FALLBACK_ERROR)
        return c->diag.code;
    if (config_int(c->rt, KEY_FALLBACK) == FALLBACK_WARN)
        log_warn(c->rt, "graph \"%s\" is not differentiated ahead of time: %s; its operators run under the tape",
                 gm->name, c->diag.message);
    diag_clear(&c->diag);
    return run_taped(c, a, m, gm);
}

static const struct { const char *name; pass_fn fn; } PASSES[] = {
    {"dce", pass_dce}, {"cse", pass_cse}, {"fold_constants", pass_fold_constants},
};

pass_fn aot_pass(str name)
{
    for (size_t i = 0; i < sizeof PASSES / sizeof *PASSES; i++)
        if (str_is(name, PASSES[i].name))
            return PASSES[i].fn;
    return NULL;
}

/* What the backend's maker asked for, on the graph before it is differentiated. */
static bp_status run_first(bp_ctx *c, const aot *a, bp_graph_module *gm)
{
    const backend_training *how = backend_training_of(a->backend);
    str rest = str_of(how->passes ? how->passes : "");
    while (rest.n) {
        pass_fn fn = aot_pass(str_split(&rest, ','));
        const pass p = {"a pass before the gradient", fn, NULL};
        TRY(fn ? passes_run(c, gm, &p, 1) : BP_OK);
    }
    return BP_OK;
}

static bp_status simplify(bp_ctx *c, const aot *a, bp_graph_module *gm)
{
    const backend_training *how = backend_training_of(a->backend);
    decompose_options whole = {.whole = how->whole};
    const pass passes[] = {{"dce", pass_dce, NULL}, {"cse", pass_cse, NULL}, {"decompose", pass_decompose, &whole},
                           {"cse", pass_cse, NULL}, {"dce", pass_dce, NULL}};
    return passes_run(c, gm, passes, how->decomposes ? 5 : 2);
}

/* Takes the partition's lists over. */
static bp_status keep_partition(bp_ctx *c, const aot *a, aot_made *m, partition *p)
{
    log_graph(c, "forward", p->forward);
    log_graph(c, "backward", p->backward);
    m->nsaved = p->nsaved;
    m->nsymbols = p->nsymbols;
    m->nnumbers = p->nnumbers;
    m->symbols = p->symbols;
    m->numbers = p->numbers;
    p->symbols = p->numbers = NULL;
    m->ngrads = graph_output_count(&p->backward->g);
    m->backward_gm = gm_ref(p->backward);
    return program_compile(c, p->forward, a->backend, &m->forward);
}

static bp_status split(bp_ctx *c, const aot *a, aot_made *m, const joint *j)
{
    partition_options o = aot_config(c->rt);
    partition p;
    if (backend_training_of(a->backend)->partition)
        o.kind = backend_training_of(a->backend)->partition - 1;
    TRY(simplify(c, a, j->gm));
    log_graph(c, "joint", j->gm);
    TRY(keep_tangents(c, m, j));
    TRY(joint_partition(c, j, &o, &p));
    bp_status st = keep_partition(c, a, m, &p);
    partition_fini(&p);
    return st;
}

static bp_status compile(bp_ctx *c, const aot *a, aot_made *m, bp_graph_module *gm)
{
    joint j;
    TRY(run_first(c, a, gm));
    if (backend_training_of(a->backend)->tape)
        return run_taped(c, a, m, gm);
    uint32_t known = gm->g.syms ? sym_fact_count(gm->g.syms) : 0;
    if (joint_trace(c, gm, a->needs, &j) != BP_OK)
        return not_ahead(c, a, m, gm);
    bp_status st = j.ntangents ? split(c, a, m, &j) : run_taped(c, a, m, gm);
    if (st == BP_OK)
        st = tell_conditions(c, j.gm->g.syms, gm->g.syms, known);
    joint_fini(&j);
    return st;
}

static bp_status make_one(bp_ctx *c, void *arg, bp_graph_module *gm, void **payload)
{
    aot_made *m = calloc(1, sizeof *m);
    if (!m)
        return ctx_nomem(c);
    pthread_mutex_init(&m->lock, NULL);
    bp_status st = compile(c, arg, m, gm);
    if (st == BP_OK)
        *payload = m;
    else
        drop_made(m);
    return st;
}

static const variant_kind WAYS = {make_one, drop_made};

aot_made *aot_made_for(bp_ctx *c, aot *a, const int64_t *values, bool *limit)
{
    void *m = values ? variants_find(a->made, values) : NULL;
    *limit = !m && variants_make(c, a->made, a, values, &m) == BP_OK && !m;
    return m;
}

static aot *make(bp_ctx *c, bp_graph_module *gm, backend *b, const uint8_t *needs)
{
    aot *a = calloc(1, sizeof *a);
    uint32_t n = graph_placeholders(&gm->g, NULL, 0);
    if (!a || !(a->needs = malloc((size_t)n + 1))) {
        free(a);
        ctx_nomem(c);
        return NULL;
    }
    atomic_init(&a->refs, 1);
    memcpy(a->needs, needs, n);
    a->ninputs = n;
    a->noutputs = graph_output_count(&gm->g);
    a->backend = b;
    a->gm = gm_ref(gm);
    if ((a->made = variants_new(c, gm, &WAYS)))
        return a;
    aot_unref(a);
    return NULL;
}

bp_status aot_compile(bp_ctx *c, bp_graph_module *gm, backend *b, const uint8_t *needs, program **out, aot **training)
{
    bool limit;
    aot *a = make(c, gm, b, needs);
    aot_made *m = a ? aot_made_for(c, a, NULL, &limit) : NULL;
    if (!m) {
        aot_unref(a);
        return ctx_ok(c) ? ctx_fail(c, BP_INTERNAL, "no way to train graph \"%s\" was made", gm->name) : c->diag.code;
    }
    *out = program_ref(m->forward);
    *training = a;
    return BP_OK;
}

/* -- facts --------------------------------------------------------------------------------------------------------- */

static const aot_made *at(const aot *a, uint32_t i)
{
    return variants_at(a->made, i);
}

uint32_t aot_count(const aot *a)
{
    return variants_count(a->made);
}

const bp_graph_module *aot_forward(const aot *a, uint32_t i)
{
    return at(a, i)->taped ? NULL : program_graph(at(a, i)->forward);
}

const bp_graph_module *aot_backward(const aot *a, uint32_t i)
{
    return at(a, i)->backward_gm;
}

const program *aot_backward_program(const aot *a, uint32_t i)
{
    return atomic_load_explicit(&at(a, i)->backward, memory_order_acquire);
}

void aot_print_conditions(const aot *a, uint32_t i, buf *out)
{
    variants_print_conditions(a->made, i, out);
}

partition_options aot_config(bp_runtime *rt)
{
    partition_options o = PARTITION_DEFAULTS;
    o.kind = (int32_t)config_int(rt, KEY_PARTITION);
    o.memory_budget = (double)config_int(rt, KEY_MEMORY_BUDGET) / 100;
    o.aggressive_recomputation = config_int(rt, KEY_AGGRESSIVE_RECOMPUTATION) != 0;
    o.recompute_views = config_int(rt, KEY_RECOMPUTE_VIEWS) != 0;
    o.max_dist_from_bw = (int32_t)config_int(rt, KEY_MAX_DIST_FROM_BW);
    o.ban_used_far_apart = config_int(rt, KEY_BAN_USED_FAR_APART) != 0;
    o.ban_long_fusible_chains = config_int(rt, KEY_BAN_LONG_FUSIBLE_CHAINS) != 0;
    o.ban_materialized_backward = config_int(rt, KEY_BAN_MATERIALIZED_BACKWARD) != 0;
    o.ban_not_in_allowlist = config_int(rt, KEY_BAN_NOT_IN_ALLOWLIST) != 0;
    o.ban_reductions = config_int(rt, KEY_BAN_REDUCTIONS) != 0;
    return o;
}
