/* Compiling a segment that trains: joint graph, passes, partition, the forward down the chain. aot_run.c runs it. */
#include "host/compile/aot_parts.h"
#include "host/backend/config.h"
#include "host/base/log.h"
#include "host/pass/pass.h"
#include <stdlib.h>
#include <string.h>

/* -- life ---------------------------------------------------------------------------------------------------------- */

static void free_tangents(aot *a)
{
    for (uint32_t i = 0; a->tangents && i < a->ntangents; i++)
        free(a->tangents[i].sizes);
    free(a->tangents);
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
    program_unref(a->forward);
    program_unref(atomic_load(&a->backward));
    gm_unref(a->backward_gm);
    gm_unref(a->taped);
    free_tangents(a);
    free(a->tangent_of);
    free(a->needs);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

static aot *make(bp_ctx *c, const bp_graph_module *gm, backend *b, const uint8_t *needs)
{
    aot *a = calloc(1, sizeof *a);
    uint32_t n = graph_placeholders(&gm->g, NULL, 0);
    if (!a || !(a->needs = malloc((size_t)n + 1))) {
        free(a);
        ctx_nomem(c);
        return NULL;
    }
    atomic_init(&a->refs, 1);
    pthread_mutex_init(&a->lock, NULL);
    memcpy(a->needs, needs, n);
    a->ninputs = n;
    a->noutputs = graph_output_count(&gm->g);
    a->backend = b;
    return a;
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

static bp_status keep_tangents(bp_ctx *c, aot *a, const joint *j)
{
    uint32_t n = j->nprimals + j->ntangents;
    node_id *at = calloc(n + 1u, sizeof *at);
    a->tangents = calloc(j->ntangents + 1u, sizeof *a->tangents);
    a->tangent_of = calloc(j->ntangents + 1u, sizeof *a->tangent_of);
    bool ok = at && a->tangents && a->tangent_of;
    if (ok) {
        graph_placeholders(&j->gm->g, at, n);
        a->ntangents = j->ntangents;
    }
    for (uint32_t i = 0; ok && i < j->ntangents; i++) {
        a->tangent_of[i] = j->tangent_of[i];
        ok = copy_meta(graph_get(&j->gm->g, at[j->nprimals + i])->metas, &a->tangents[i]);
    }
    free(at);
    return ok ? BP_OK : ctx_nomem(c);
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
static bp_status run_taped(bp_ctx *c, aot *a, bp_graph_module *gm)
{
    a->taped = gm_ref(gm);
    return program_compile(c, gm, a->backend, &a->forward);
}

/* A graph with an operator that has no derivative here, or a number that only a run tells. */
static bp_status not_ahead(bp_ctx *c, aot *a, bp_graph_module *gm)
{
    if (c->diag.code != BP_UNIMPLEMENTED || config_int(c->rt, KEY_FALLBACK) == FALLBACK_ERROR)
        return c->diag.code;
    if (config_int(c->rt, KEY_FALLBACK) == FALLBACK_WARN)
        log_warn(c->rt, "graph \"%s\" is not differentiated ahead of time: %s; its operators run under the tape",
                 gm->name, c->diag.message);
    diag_clear(&c->diag);
    return run_taped(c, a, gm);
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

static bp_status split(bp_ctx *c, aot *a, const joint *j)
{
    partition_options o = aot_config(c->rt);
    partition p;
    if (backend_training_of(a->backend)->partition)
        o.kind = backend_training_of(a->backend)->partition - 1;
    TRY(simplify(c, a, j->gm));
    log_graph(c, "joint", j->gm);
    TRY(keep_tangents(c, a, j));
    TRY(joint_partition(c, j, &o, &p));
    log_graph(c, "forward", p.forward);
    log_graph(c, "backward", p.backward);
    a->nsaved = p.nsaved;
    a->ngrads = graph_output_count(&p.backward->g);
    a->backward_gm = gm_ref(p.backward);
    bp_status st = program_compile(c, p.forward, a->backend, &a->forward);
    partition_fini(&p);
    return st;
}

static bp_status compile(bp_ctx *c, aot *a, bp_graph_module *gm)
{
    joint j;
    TRY(run_first(c, a, gm));
    if (backend_training_of(a->backend)->tape)
        return run_taped(c, a, gm);
    if (joint_trace(c, gm, a->needs, &j) != BP_OK)
        return not_ahead(c, a, gm);
    bp_status st = j.ntangents ? split(c, a, &j) : run_taped(c, a, gm);
    joint_fini(&j);
    return st;
}

bp_status aot_compile(bp_ctx *c, bp_graph_module *gm, backend *b, const uint8_t *needs, program **out, aot **training)
{
    aot *a = make(c, gm, b, needs);
    bp_status st = a ? compile(c, a, gm) : c->diag.code;
    if (st != BP_OK) {
        aot_unref(a);
        return st;
    }
    *out = program_ref(a->forward);
    *training = a;
    return BP_OK;
}

/* -- facts --------------------------------------------------------------------------------------------------------- */

const bp_graph_module *aot_forward(const aot *a)
{
    return a->taped ? NULL : program_graph(a->forward);
}

const bp_graph_module *aot_backward(const aot *a)
{
    return a->backward_gm;
}

const program *aot_backward_program(const aot *a)
{
    return atomic_load_explicit(&a->backward, memory_order_acquire);
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
