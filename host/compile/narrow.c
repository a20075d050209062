/* Symbols of a path in the graph of one of its segments. */
#include "host/compile/narrow.h"
#include <stdlib.h>

/* What backends are told of a size may be another number than this call's (bp_mark_dynamic's hint_override). */
static int64_t hint_of(const tree_node *n, uint32_t k, int64_t hint)
{
    for (; n; n = n->parent)
        for (uint32_t i = 0; i < n->nplans; i++)
            for (uint32_t d = 0; d < n->plans[i].ndims; d++) {
                const dim_plan *p = &n->plans[i].dims[d];
                if (p->kind == PLAN_SYMBOL && p->symbol == k)
                    return p->hint == INT64_MIN ? hint : p->hint;
            }
    return hint;
}

static bp_status add_symbols(narrowing *w)
{
    const sym_env *path = w->n->env;
    for (uint32_t k = 0; k < w->n->end_symbol; k++) {
        sym_symbol s = *sym_symbol_at(path, k);
        s.hint = hint_of(w->n, k, s.hint);
        w->map[k] = sym_add_symbol(w->own, w->c, &s);
        if (!w->map[k].sym)
            return ctx_nomem(w->c);
    }
    return BP_OK;
}

static bp_status add_facts(narrowing *w)
{
    const sym_env *path = w->n->env;
    for (uint32_t i = 0; i < sym_fact_count(path); i++) {
        const sym_fact *f = sym_fact_at(path, i);
        if (f->tag > w->n->depth)
            continue;
        bp_dim holds = sym_import(w->own, w->c, path, f->holds, w->map);
        if (!ctx_ok(w->c))
            return w->c->diag.code;
        if ((holds.sym || !holds.value) && !sym_assume(w->own, w->c, holds, f->origin))
            return ctx_ok(w->c) ? ctx_fail(w->c, BP_INTERNAL, "what is known of a segment's sizes contradicts itself")
                                : w->c->diag.code;
    }
    return BP_OK;
}

bp_status narrow_init(narrowing *w, bp_ctx *c, const tree_node *n, graph *g)
{
    *w = (narrowing){.c = c, .n = n};
    if (!n->end_symbol)
        return BP_OK;
    w->own = sym_env_new();
    w->map = calloc(n->end_symbol, sizeof *w->map);
    if (!w->own || !w->map)
        return ctx_nomem(c);
    TRY(add_symbols(w));
    TRY(add_facts(w));
    return graph_import_init(&w->import, c, g, w->own);
}

void narrow_fini(narrowing *w)
{
    if (w->import.g)
        graph_import_fini(&w->import);
    sym_env_unref(w->own);
    free(w->map);
    *w = (narrowing){0};
}

bp_dim narrow_dim(narrowing *w, bp_dim d)
{
    if (!d.sym || !w->own)
        return d;
    d = sym_import(w->own, w->c, w->n->env, d, w->map);
    d = ctx_ok(w->c) ? graph_import_dim(&w->import, sym_simplify(w->own, w->c, d)) : d;
    w->failed |= !ctx_ok(w->c);
    return d;
}

tensor_meta narrow_meta(narrowing *w, const tensor_meta *m)
{
    bool ok = true;
    if (!w->own || meta_is_constant(m))
        return *m;
    tensor_meta to = meta_copy(&w->import.g->arena, m, &ok);
    w->failed |= !ok;
    for (uint32_t d = 0; ok && d < m->rank; d++)
        to.sizes[d] = narrow_dim(w, m->sizes[d]);
    for (uint32_t d = 0; ok && d < m->rank; d++)
        to.strides[d] = narrow_dim(w, m->strides[d]);
    to.offset = dim_const(0); /* values of a graph start at their first element */
    return to;
}

bp_status narrow_finish(narrowing *w)
{
    if (!w->own)
        return BP_OK;
    TRY(graph_import_facts(&w->import));
    return graph_import_finish(&w->import);
}
