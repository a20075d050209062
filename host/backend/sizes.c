/* Groups of graphs with symbols, as a run sees them: what the symbols of a group's graph are, and the sizes of its
 * outputs. A group's graph has an environment of its own when it is a part of the program's: its symbols are numbered
 * by its own placeholders. */
#include "host/backend/plan.h"
#include <string.h>

void group_free_sizes(group_sizes *s)
{
    if (!s)
        return;
    sym_program_free(s->program);
    free(s->of_data);
    vec_fini(&s->symbol_of);
    vec_fini(&s->symints);
    vec_fini(&s->shows);
    free(s);
}

/* -- once ---------------------------------------------------------------------------------------------------------- */

typedef struct { const graph *g; bool hidden; } looking;

static void look_at(void *arg, uint32_t k)
{
    looking *l = arg;
    node_id at = sym_symbol_at(l->g->syms, k)->source.at;
    l->hidden |= at == SYM_NO_SOURCE || graph_get(l->g, at)->op != BP_NODE_PLACEHOLDER;
}

/* Whether a size is known only when the graph has run. */
static bool is_of_data(const graph *g, bp_dim d)
{
    looking l = {g, false};
    if (!dim_is_const(d))
        sym_each_symbol(g->syms, d, look_at, &l);
    return l.hidden;
}

static uint32_t count_dims(const group *g, uint32_t noutputs)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < noutputs; i++)
        n += g->expected[i] ? 2 * g->expected[i]->rank : 0;
    return n;
}

static void list_dims(const group *g, uint32_t noutputs, bp_dim *dims)
{
    group_sizes *s = g->sizes;
    for (uint32_t i = 0, at = 0; i < noutputs; i++)
        for (uint32_t d = 0; g->expected[i] && d < 2 * g->expected[i]->rank; d++, at++) {
            const tensor_meta *m = g->expected[i];
            dims[at] = d < m->rank ? m->sizes[d] : m->strides[d - m->rank];
            s->of_data[at] = is_of_data(&g->gm->g, dims[at]);
            if (s->of_data[at])
                dims[at] = dim_const(0);
        }
}

bp_status group_find_sizes(bp_ctx *c, group *g)
{
    const graph *gr = &g->gm->g;
    uint32_t noutputs = graph_output_count(gr);
    if (!graph_has_symbols(gr))
        return BP_OK;
    if (!g->sizes && !(g->sizes = calloc(1, sizeof *g->sizes)))
        return ctx_nomem(c);
    uint32_t n = count_dims(g, noutputs);
    bp_dim *dims = calloc(n + 1u, sizeof *dims);
    g->sizes->of_data = calloc(n + 1u, 1);
    if (dims && g->sizes->of_data) {
        list_dims(g, noutputs, dims);
        g->sizes->program = sym_compile(gr->syms, dims, n);
        g->sizes->n = n;
    }
    free(dims);
    return g->sizes->program ? BP_OK : ctx_nomem(c);
}

bp_status group_adopt_facts(bp_ctx *c, const group *g, sym_env *of_program, uint32_t first)
{
    sym_env *own = g->gm->g.syms;
    uint32_t n = sym_symbol_count(own);
    bp_dim *to = calloc(n + 1u, sizeof *to);
    if (!to)
        return ctx_nomem(c);
    for (uint32_t k = 0; k < n; k++)
        to[k] = sym_dim_of(of_program, g->sizes->symbol_of.at[k]);
    for (uint32_t i = first; ctx_ok(c) && i < sym_fact_count(own); i++) {
        bp_dim d = sym_import(of_program, c, own, sym_fact_at(own, i)->holds, to);
        if (ctx_ok(c) && !sym_assume(of_program, c, d, sym_fact_at(own, i)->origin) && ctx_ok(c))
            ctx_fail(c, BP_INTERNAL, "what a part of the graph asks of sizes contradicts what is known of them");
    }
    free(to);
    return c->diag.code;
}

/* -- each run ------------------------------------------------------------------------------------------------------ */

enum { FEW_OUTPUTS = 16, FEW_DIMS = 96 };
/* Types of outputs in this run's numbers. */
typedef struct {
    const tensor_meta *few[FEW_OUTPUTS], **expected;
    tensor_meta few_metas[FEW_OUTPUTS], *metas;
    int64_t few_numbers[FEW_DIMS], *numbers;
    bp_dim few_dims[FEW_DIMS], *dims;
    void *block;
} run_types;

static bool make_types(run_types *t, uint32_t noutputs, uint32_t n)
{
    t->block = NULL;
    t->expected = t->few;
    t->metas = t->few_metas;
    t->numbers = t->few_numbers;
    t->dims = t->few_dims;
    if (noutputs <= FEW_OUTPUTS && n <= FEW_DIMS)
        return true;
    size_t metas = noutputs * sizeof *t->metas, dims = n * sizeof *t->dims, numbers = n * sizeof *t->numbers;
    char *at = t->block = malloc(metas + dims + numbers + noutputs * sizeof *t->expected);
    t->metas = (void *)at;
    t->dims = (void *)(at + metas);
    t->numbers = (void *)(at + metas + dims);
    t->expected = (void *)(at + metas + dims + numbers);
    return at != NULL;
}

static bp_status fill_types(bp_ctx *c, const group *g, const int64_t *values, uint32_t noutputs, run_types *t)
{
    const group_sizes *s = g->sizes;
    if (!sym_run(s->program, values, t->numbers))
        return ctx_fail(c, BP_INVALID_ARGUMENT, "a size of an output of graph \"%s\" overflows", g->gm->name);
    for (uint32_t i = 0, at = 0; i < noutputs; i++) {
        const tensor_meta *m = g->expected[i];
        t->expected[i] = m ? &t->metas[i] : NULL;
        if (!m)
            continue;
        t->metas[i] = *m;
        t->metas[i].sizes = t->dims + at;
        t->metas[i].strides = t->dims + at + m->rank;
        for (uint32_t d = 0; d < 2 * m->rank; d++, at++) {
            bp_dim promised = d < m->rank ? m->sizes[d] : m->strides[d - m->rank];
            t->dims[at] = s->of_data[at] ? promised : dim_const(t->numbers[at]);
        }
    }
    return BP_OK;
}

/* What the symbols of the group's own graph are. */
static bool find_values(const group *g, const int64_t *of_program, variant_values *out)
{
    const group_sizes *s = g->sizes;
    if (!variant_values_init(out, s->symbol_of.len))
        return false;
    for (uint32_t k = 0; k < s->symbol_of.len; k++)
        out->at[k] = of_program[s->symbol_of.at[k]];
    return true;
}

bp_status group_run_sized(bp_ctx *c, const group *g, const int64_t *values, bp_run *r)
{
    run_types t;
    variant_values own;
    if (!find_values(g, values, &own))
        return ctx_nomem(c);
    run_sizes sizes = {g->sizes->symbol_of.len ? own.at : values, g->gm->g.syms, g->expected};
    bp_status st = make_types(&t, r->noutputs, g->sizes->n) ? BP_OK : ctx_nomem(c);
    st = st ? st : fill_types(c, g, sizes.values, r->noutputs, &t);
    if (!st) {
        r->expected = t.expected;
        r->sizes = &sizes;
        st = compiled_run(g->compiled, r);
    }
    free(t.block);
    variant_values_fini(&own);
    return st;
}

bp_status group_fill_symints(bp_ctx *c, const group *g, const int64_t *values, bp_tensor **in)
{
    const uint32_t n = g->sizes->symints.len;
    memset(in, 0, n * sizeof *in);
    for (uint32_t i = 0; i < n; i++) {
        if (!(in[i] = tensor_contiguous_new(c, BP_I64, 0, NULL)))
            return c->diag.code;
        *(int64_t *)tensor_ptr(in[i]) = values[g->sizes->symints.at[i]];
    }
    return BP_OK;
}

void group_read_sizes(const group *g, bp_tensor *const *out, int64_t *values)
{
    for (uint32_t i = 0; i < g->sizes->shows.len; i++) {
        const shown_size *s = &g->sizes->shows.at[i];
        if (out[s->output])
            values[s->symbol] = tensor_dim(out[s->output], s->dim);
    }
}
