/* Dims of one environment in a graph of another: symbols come in where they are first mentioned. */
#include "host/graph/symbols.h"
#include <stdio.h>
#include <string.h>

enum { DEEPEST_LIST = 64, LONGEST_NAME = 200 };

bp_status graph_import_init(graph_import *im, bp_ctx *c, graph *g, const sym_env *from)
{
    *im = (graph_import){.c = c, .g = g, .from = from};
    uint32_t n = from ? sym_symbol_count(from) : 0;
    if (!vec_reserve(&im->map, n))
        return ctx_nomem(c);
    for (uint32_t k = 0; k < n; k++)
        im->map.at[im->map.len++] = GRAPH_UNMAPPED;
    return n && !graph_syms(c, g) ? c->diag.code : BP_OK;
}

void graph_import_fini(graph_import *im)
{
    vec_fini(&im->map);
    vec_fini(&im->back);
}

/* -- symbols ------------------------------------------------------------------------------------------------------- */

static bool is_unmapped(bp_dim d)
{
    return d.zero != 0;
}

static bool name_is_taken(const sym_env *e, const char *name)
{
    for (uint32_t k = 0; k < sym_symbol_count(e); k++)
        if (!strcmp(sym_symbol_at(e, k)->name, name))
            return true;
    return false;
}

/* The name of s in g->syms: its own, or that with a number where another environment brought the name already. */
static const char *free_name(const sym_env *e, const char *wish, char *room)
{
    if (!name_is_taken(e, wish))
        return wish;
    for (uint32_t i = 1;; i++) {
        snprintf(room, LONGEST_NAME + 12, "%.*s_%u", LONGEST_NAME, wish, i);
        if (!name_is_taken(e, room))
            return room;
    }
}

static bool note_back(graph_import *im, uint32_t of)
{
    uint32_t mine = sym_symbol_count(im->g->syms) - 1;
    while (im->back.len < mine)
        if (!vec_push(&im->back, UINT32_MAX))
            return false;
    return vec_push(&im->back, of);
}

static void add_symbol(void *arg, uint32_t k)
{
    graph_import *im = arg;
    char room[LONGEST_NAME + 12];
    while (im->map.len <= k) /* `from` has grown since */
        if (!vec_push(&im->map, GRAPH_UNMAPPED)) {
            ctx_nomem(im->c);
            return;
        }
    if (!is_unmapped(im->map.at[k]) || !ctx_ok(im->c))
        return;
    sym_symbol s = *sym_symbol_at(im->from, k);
    s.name = free_name(im->g->syms, s.name, room);
    s.source = (sym_source){.at = SYM_NO_SOURCE};
    bp_dim d = sym_add_symbol(im->g->syms, im->c, &s);
    if (!d.sym)
        return;
    im->map.at[k] = d;
    if (!note_back(im, k))
        ctx_nomem(im->c);
}

bp_dim graph_import_dim(graph_import *im, bp_dim d)
{
    if (!d.sym || !ctx_ok(im->c))
        return d.sym ? dim_const(0) : d;
    if (!im->from || !graph_syms(im->c, im->g)) {
        if (ctx_ok(im->c))
            ctx_fail(im->c, BP_INTERNAL, "a symbolic size comes into a graph from no environment");
        return dim_const(0);
    }
    sym_each_symbol(im->from, d, add_symbol, im);
    return ctx_ok(im->c) ? sym_import(im->g->syms, im->c, im->from, d, im->map.at) : dim_const(0);
}

/* -- types and values ---------------------------------------------------------------------------------------------- */

static bool import_dims(graph_import *im, const bp_dim *from, uint32_t n, bp_dim **out)
{
    if (!(*out = arena_array(&im->g->arena, n, sizeof **out)))
        return ctx_nomem(im->c), false;
    for (uint32_t d = 0; d < n; d++)
        (*out)[d] = graph_import_dim(im, from[d]);
    return ctx_ok(im->c);
}

bp_status graph_import_meta(graph_import *im, const tensor_meta *m, tensor_meta *out)
{
    *out = *m;
    if (meta_is_constant(m))
        return im->c->diag.code;
    if (import_dims(im, m->sizes, m->rank, &out->sizes) && import_dims(im, m->strides, m->rank, &out->strides))
        out->offset = (bp_dim){0}; /* which graphs do not keep */
    return im->c->diag.code;
}

static bool holds_symbol(const bp_value *v, uint32_t depth)
{
    if (v->kind == BP_VALUE_LIST && depth < DEEPEST_LIST)
        for (uint32_t i = 0; i < v->count; i++)
            if (holds_symbol(&v->v.items[i], depth + 1))
                return true;
    return v->kind == BP_VALUE_INT && v->v.dim.sym;
}

bp_status graph_import_value(graph_import *im, const bp_value *v, bp_value *out)
{
    *out = *v;
    if (!holds_symbol(v, 0))
        return im->c->diag.code;
    if (v->kind == BP_VALUE_INT) {
        out->v.dim = graph_import_dim(im, v->v.dim);
        return im->c->diag.code;
    }
    bp_value *items = arena_array(&im->g->arena, v->count, sizeof *items);
    if (!items)
        return ctx_nomem(im->c);
    for (uint32_t i = 0; i < v->count; i++)
        TRY(graph_import_value(im, &v->v.items[i], &items[i]));
    out->v.items = items;
    return BP_OK;
}

/* -- facts and what is left ---------------------------------------------------------------------------------------- */

typedef struct { const graph_import *im; bool known; } mention;

static void note_known(void *arg, uint32_t k)
{
    mention *m = arg;
    m->known &= k < m->im->map.len && !is_unmapped(m->im->map.at[k]);
}

bp_status graph_import_facts(graph_import *im)
{
    return graph_import_facts_upto(im, UINT32_MAX);
}

bp_status graph_import_facts_upto(graph_import *im, uint32_t last_tag)
{
    for (uint32_t i = 0; im->from && im->g->syms && i < sym_fact_count(im->from); i++) {
        const sym_fact *f = sym_fact_at(im->from, i);
        mention m = {im, f->tag <= last_tag};
        sym_each_symbol(im->from, f->holds, note_known, &m);
        if (!m.known)
            continue;
        enum sym_origin origin = f->origin;
        bp_dim d = graph_import_dim(im, f->holds);
        TRY(im->c->diag.code);
        if ((d.sym || !d.value) && !sym_assume(im->g->syms, im->c, d, origin) && ctx_ok(im->c))
            return ctx_fail(im->c, BP_INTERNAL, "what is known of the sizes of a graph contradicts itself");
        TRY(im->c->diag.code);
    }
    return BP_OK;
}

bp_status graph_import_finish(graph_import *im)
{
    graph *g = im->g;
    if (!g->syms)
        return BP_OK;
    graph_find_sources(g);
    for (uint32_t k = 0; k < sym_symbol_count(g->syms); k++)
        if (sym_symbol_at(g->syms, k)->source.at == SYM_NO_SOURCE && !graph_symint(g, NULL, k))
            return graph_status(im->c, g);
    return BP_OK;
}
