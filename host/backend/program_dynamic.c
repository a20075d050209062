/* Programs of graphs with symbols: a facade whose variants are programs. It has no groups of its own: a run binds the
 * symbols, takes the first variant whose conditions hold, and compiles one more where there is none. Beyond
 * recompile_limit the graph is interpreted, with one warning that says whose variants they were and what to do. */
#include "host/backend/plan.h"
#include "host/base/log.h"
#include <stdio.h>

typedef struct { program *p; trail *t; } making;

static bp_status make_variant(bp_ctx *c, void *arg, bp_graph_module *gm, void **payload)
{
    making *m = arg;
    program *made = NULL;
    bp_status st = program_compile_variant(c, m->p, gm, m->t, &made);
    *payload = made;
    return st;
}

static void drop_variant(void *payload)
{
    program_unref(payload);
}

static const variant_kind PROGRAMS = {make_variant, drop_variant};

bp_status program_compile_dynamic(bp_ctx *c, program *p, trail *t)
{
    void *first;
    making m = {p, t};
    p->variants = variants_new(c, p->gm, &PROGRAMS);
    return p->variants ? variants_make(c, p->variants, &m, NULL, &first) : c->diag.code;
}

/* -- a run that no variant serves ---------------------------------------------------------------------------------- */

static void log_variant(bp_ctx *c, const program *p, const int64_t *values)
{
    if (!log_on(c->rt, LOG_recompiles))
        return;
    buf text = {0};
    const sym_env *e = p->gm->g.syms;
    for (uint32_t k = 0; k < sym_symbol_count(e); k++)
        buf_printf(&text, "%s%s = %lld", k ? ", " : "", sym_symbol_at(e, k)->name, (long long)values[k]);
    log_line(c->rt, LOG_recompiles, "graph \"%s\" is compiled once more, for %s: no variant of %u serves", p->gm->name,
             buf_text(&text), (unsigned)variants_count(p->variants));
    buf_fini(&text);
}

static bp_status add_variant(bp_ctx *c, program *p, const int64_t *values, void **out)
{
    trail t = {0};
    making m = {p, &t};
    log_variant(c, p, values);
    bp_status st = variants_make(c, p->variants, &m, values, out);
    if (st)
        st = program_tell(c, &t, p->chain, p->gm);
    trail_fini(&t);
    return st;
}

/* The last variant's conditions tell what is read that varies. */
static void print_limit(bp_ctx *c, const program *p, char *text, size_t cap)
{
    buf conditions = {0}, who = {0};
    uint32_t n = variants_count(p->variants);
    if (n)
        variants_print_conditions(p->variants, n - 1, &conditions);
    program_print_backends(p, &who);
    snprintf(text, cap, "graph \"%s\" was compiled by backend \"%.200s\" for %u sizes (the last one: %.300s), and "
             "recompile_limit is %lld", p->gm->name, n ? buf_text(&who) : p->chain->links[p->start].name, (unsigned)n,
             buf_text(&conditions), (long long)config_int(c->rt, KEY_RECOMPILE_LIMIT));
    buf_fini(&conditions);
    buf_fini(&who);
}

#define WAYS_OUT "a backend that takes symbolic sizes says so by BP_DYNAMIC_SHAPES; sizes that never change may be " \
                 "marked with bp_mark_static; or raise recompile_limit"

RARE static bp_status answer_eagerly(bp_ctx *c, const program *p, const program_io *io)
{
    char text[900];
    print_limit(c, p, text, sizeof text);
    if (chain_is_strict(p->chain)) {
        ctx_fail(c, BP_FAILED_PRECONDITION, "%s", text);
        diag_hint(&c->diag, "%s", WAYS_OUT);
        return c->diag.code;
    }
    chain_warn(p->chain, "%s: eager answers for other sizes; %s", text, WAYS_OUT);
    return graph_run(c, p->gm, io->inputs, io->ninputs, io->outputs, io->noutputs, NULL, NULL);
}

bp_status program_run_dynamic(bp_ctx *c, program *p, const program_io *io)
{
    variant_values x;
    if (!variant_values_init(&x, variants_nsymbols(p->variants)))
        return ctx_nomem(c);
    variants_bind(p->variants, io->inputs, x.at);
    void *serves = variants_find(p->variants, x.at);
    bp_status st = serves ? BP_OK : add_variant(c, p, x.at, &serves);
    program_io own = *io;
    own.symbols = x.at;
    if (!st)
        st = serves ? program_run_inner(c, serves, &own) : answer_eagerly(c, p, io);
    variant_values_fini(&x);
    return st;
}
