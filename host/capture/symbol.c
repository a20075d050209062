/* The symbols of a trace: those that inputs bring, by their plans, and those that data tell. */
#include "host/base/log.h"
#include "host/capture/trace.h"
#include <stdio.h>

/* -- the environment ----------------------------------------------------------------------------------------------- */

void trace_begin_symbols(trace *t)
{
    t->former = sym_push(t->env, t->c);
    t->pushed = true;
}

void trace_end_symbols(trace *t)
{
    if (t->pushed)
        sym_pop(t->former);
    t->pushed = false;
}

/* -- what inputs bring --------------------------------------------------------------------------------------------- */

static guard_source source_of(const trace *t, uint32_t i, char *room, size_t cap)
{
    const trace_source *s = &t->sources.at[i];
    if (s->name)
        return (guard_source){s->name, s->role};
    snprintf(room, cap, "arg%u", i);
    return (guard_source){room, s->role};
}

static uint8_t kind_of(const bp_value *v, uint32_t k)
{
    const bp_tensor *in = v->kind == BP_VALUE_TENSOR ? v->v.tensor : NULL;
    return !in ? SYM_VALUE : k < in->rank ? SYM_SIZE : SYM_STRIDE;
}

static guard_read read_of(const bp_value *v, uint32_t i, uint32_t k, const dim_plan *p)
{
    const bp_tensor *in = v->kind == BP_VALUE_TENSOR ? v->v.tensor : NULL;
    uint32_t dim = in && k >= in->rank ? k - in->rank : k;
    bool product = p->kind == PLAN_PRODUCT;
    return (guard_read){.min = p->min, .max = p->max, .source = i, .symbol = product ? p->of : p->symbol,
                        .kind = kind_of(v, k), .dim = (uint8_t)dim, .brings = p->kind == PLAN_SYMBOL,
                        .product = product};
}

static bp_status add_symbol(trace *t, const guard_read *r, const dim_plan *p, int64_t value, bp_dim *out)
{
    char room[24];
    guard_source of = source_of(t, r->source, room, sizeof room);
    buf text = {0};
    guard_print_source(&of, r->kind, r->dim, &text);
    sym_symbol s = {.of = buf_text(&text), .hint = value, .min = p->min, .max = p->max, .unbacked = p->unbacked,
                    .source = {r->source, 0, r->kind, r->dim}};
    uint32_t k = sym_symbol_count(t->env);
    *out = text.failed ? (bp_dim){0, 0, 0} : sym_add_symbol(t->env, t->c, &s);
    buf_fini(&text);
    if (!out->sym || !bind_reserve_symbols(t->r->vals, k + 1))
        return trace_nomem(t);
    t->r->vals->syms[k] = value;
    t->nplaced = k + 1;
    if (k != p->symbol)
        return trace_stop(t, TRACE_IMPURE, "\"%s\" is impure: its sizes became symbols in another order", t->r->name);
    return BP_OK;
}

/* One size, stride or number of source i. */
static bp_status realize(trace *t, const bp_value *v, uint32_t i, uint32_t k, const dim_plan *p, int64_t value,
                         bp_dim *out)
{
    guard_read r = read_of(v, i, k, p);
    *out = dim_const(value);
    if (p->kind == PLAN_CONSTANT)
        return BP_OK;
    if (!vec_push(&vec_last(&t->segments).reads, r))
        return trace_nomem(t);
    if (p->kind == PLAN_SAME)
        *out = sym_dim_of(t->env, p->symbol);
    return p->kind == PLAN_SYMBOL ? add_symbol(t, &r, p, value, out) : BP_OK; /* stride_of makes products */
}

/* Strides that are products, each behind what it is made of. */
static bp_dim stride_of(trace *t, const source_plan *p, uint32_t rank, bp_dim *dims, uint32_t d)
{
    const dim_plan *at = &p->dims[rank + d];
    if (at->kind == PLAN_PRODUCT && dim_is_const(dims[rank + d]))
        dims[rank + d] = dim_mul(t->c, dims[at->of], stride_of(t, p, rank, dims, at->of));
    return dims[rank + d];
}

static bp_status decide(trace *t, uint32_t i, const bp_value *v, const source_plan **out)
{
    char room[24];
    guard_source of = source_of(t, i, room, sizeof room);
    source_plan *plan = arena_alloc(&t->arena, sizeof *plan);
    const bp_tensor *in = v->kind == BP_VALUE_TENSOR ? trace_layout_of(t, v->v.tensor) : NULL;
    plan_subject s = {of.name, of.role, in, in ? 0 : v->v.dim.value};
    if (!plan)
        return trace_nomem(t);
    *plan = (source_plan){.source = i};
    t->naming.next = sym_symbol_count(t->env);
    *out = plan;
    return plan_decide(t->c, &t->arena, &t->r->policy, &s, &t->naming, plan);
}

static bool is_constrained(const source_plan *p)
{
    for (uint32_t k = 0; k < p->ndims; k++)
        if (p->dims[k].constraint && p->dims[k].kind == PLAN_SYMBOL)
            return true;
    return false;
}

bp_status trace_plan_source(trace *t, uint32_t i, bp_dim *dims)
{
    const bp_value *v = &t->r->vals->inputs[i];
    const bp_tensor *in = v->kind == BP_VALUE_TENSOR ? trace_layout_of(t, v->v.tensor) : NULL;
    uint32_t rank = in ? in->rank : 0, n = in ? 2 * rank : 1;
    const source_plan *p = i < t->r->nplans ? t->r->plans[i] : NULL;
    if (!p)
        TRY(decide(t, i, v, &p));
    t->sources.at[i].plan = p;
    if (p->ndims && p->ndims != n)
        return trace_stop(t, TRACE_IMPURE, "\"%s\" is impure: its argument %u had another rank", t->r->name, i);
    for (uint32_t k = 0; k < n; k++) {
        int64_t value = in ? in->sizes[k].value : v->v.dim.value;
        dims[k] = dim_const(value);
        if (p->ndims)
            TRY(realize(t, v, i, k, &p->dims[k], value, &dims[k]));
    }
    for (uint32_t d = 0; d < rank && p->ndims; d++)
        stride_of(t, p, rank, dims, d);
    if (is_constrained(p) && !vec_push(&t->constrained, p))
        return trace_nomem(t);
    return ctx_ok(t->c) ? BP_OK : t->c->diag.code;
}

bp_status trace_read_again(trace *t, uint32_t i)
{
    const source_plan *p = t->sources.at[i].plan;
    for (uint32_t k = 0; p && p->source == i && k < p->ndims; k++) {
        if (p->dims[k].kind == PLAN_CONSTANT)
            continue;
        guard_read r = read_of(&t->r->vals->inputs[i], i, k, &p->dims[k]);
        r.brings = false;
        if (!vec_push(&vec_last(&t->segments).reads, r))
            return trace_nomem(t);
    }
    return BP_OK;
}

/* -- what data tell ------------------------------------------------------------------------------------------------ */

static bool place(trace *t, path_symbol at)
{
    t->nplaced = at.symbol + 1;
    return bind_reserve_symbols(t->r->vals, at.symbol + 1) && vec_push(&t->symbols, at) &&
           vec_push(&vec_last(&t->segments).symbols, at);
}

bp_dim trace_new_symbol(trace *t, const sym_symbol *s, path_symbol at)
{
    at.symbol = sym_symbol_count(t->env);
    bp_dim d = sym_add_symbol(t->env, t->c, s);
    bool ok = d.sym && place(t, at);
    if (!ok)
        trace_nomem(t);
    return ok ? d : dim_const(0);
}

static bool place_in(trace *t, uint32_t k, ref r)
{
    const bp_tensor *fake = trace_fake(t, r);
    for (uint32_t d = 0; d < fake->rank; d++)
        if (sym_symbol_of(t->env, fake->sizes[d]) == k)
            return place(t, (path_symbol){r, k, SYM_SIZE, (uint8_t)d});
    return false;
}

bp_status trace_place_symbols(trace *t, ref first, uint32_t nresults)
{
    for (uint32_t k = t->nplaced; k < sym_symbol_count(t->env); k++) {
        bool placed = false;
        for (uint32_t i = 0; i < nresults && !placed; i++)
            placed = place_in(t, k, first + i);
        if (!placed)
            return ctx_ok(t->c) ? trace_stop(t, TRACE_DECLINED, "%s gives sizes that no result shows",
                                             t->items.at[t->values.at[first].item].node.op->target)
                                : t->c->diag.code;
    }
    return BP_OK;
}

/* Symbols that data tell, of the dims that are shown to it: each once. */
typedef struct { trace *t; VEC(path_symbol) found; bool any, failed; } gathering;

static void gather_symbol(void *arg, uint32_t k)
{
    gathering *g = arg;
    const path_symbol *p = g->t->slices.symbol_of(g->t, k);
    for (uint32_t i = 0; p && i < g->found.len; i++)
        if (g->found.at[i].symbol == k)
            return;
    g->failed |= p && !vec_push(&g->found, *p);
}

static void gather_dim(void *arg, bp_dim d)
{
    gathering *g = arg;
    g->any |= d.sym != 0;
    if (d.sym && g->t->symbols.len)
        sym_each_symbol(g->t->env, d, gather_symbol, g);
}

/* The value that shows a symbol to this segment: an item node that reads its number, or what has the size. */
static ref shown_by(trace *t, const path_symbol *p)
{
    for (uint32_t i = 0; p->kind == SYM_VALUE && i < t->numbers.len; i++)
        if (t->numbers.at[i].dim.sym && sym_symbol_of(t->env, t->numbers.at[i].dim) == p->symbol)
            return trace_number_value(t, i);
    return p->value;
}

bp_status trace_find_needs(trace *t, const bp_value *args, uint32_t nargs, item *it)
{
    gathering g = {.t = t};
    for (uint32_t i = 0; i < nargs; i++)
        value_each_dim(&args[i], gather_dim, &g);
    it->node.symbolic = g.any;
    ref *needs = g.found.len ? arena_array(&t->arena, g.found.len, sizeof *needs) : NULL;
    bool ok = !g.failed && (needs || !g.found.len);
    for (uint32_t i = 0; ok && i < g.found.len; i++)
        ok = (needs[i] = shown_by(t, &g.found.at[i])) != 0;
    it->node.needs = needs;
    it->node.nneeds = g.found.len;
    vec_fini(&g.found);
    return ok ? BP_OK : ctx_ok(t->c) ? trace_nomem(t) : t->c->diag.code;
}

bp_status trace_find_symbols(trace *t, item *end)
{
    gathering g = {.t = t};
    end_each_dim(end, gather_dim, &g);
    end->end.symbolic = g.any;
    end->end.nsymbols = g.found.len;
    end->end.symbols = arena_memdup(&t->arena, g.found.at, g.found.len * sizeof *g.found.at);
    bool ok = !g.failed && (end->end.symbols || !g.found.len);
    vec_fini(&g.found);
    return ok ? BP_OK : trace_nomem(t);
}

/* -- values -------------------------------------------------------------------------------------------------------- */

bool trace_dim_value(trace *t, bp_dim d, int64_t *out)
{
    gathering g = {.t = t};
    *out = d.value;
    gather_dim(&g, d);
    bool ok = !g.failed;
    for (uint32_t i = 0; ok && i < g.found.len; i++)
        ok = slice_value(&t->slices, g.found.at[i].value) != NULL;
    vec_fini(&g.found);
    return ok && (!d.sym || slice_dim(&t->slices, d, out));
}

static bool settle(trace *t, bp_dim *d)
{
    int64_t v;
    bool ok = trace_dim_value(t, *d, &v);
    *d = dim_const(v);
    return ok;
}

static bool settle_meta(trace *t, tensor_meta *m)
{
    bool ok = settle(t, &m->offset);
    for (uint32_t d = 0; d < m->rank; d++)
        ok = settle(t, &m->sizes[d]) && settle(t, &m->strides[d]) && ok;
    return ok;
}

bp_status trace_settle_dims(trace *t, item *state)
{
    bool ok = settle(t, &state->end.rng_total);
    for (uint32_t i = 0; i < state->end.nouts; i++) {
        out_spec *o = &((out_spec *)(uintptr_t)state->end.outs)[i];
        if (o->handle)
            ok = settle_meta(t, &o->meta) && settle_meta(t, &o->base) && ok;
    }
    for (uint32_t i = 1; i < t->handles.len; i++) {
        bp_tensor *h = t->handles.at[i].t;
        tensor_meta m = {.rank = h->rank, .sizes = h->sizes, .strides = h->strides, .offset = h->offset};
        ok = settle_meta(t, &m) && ok;
        h->offset = m.offset;
    }
    for (uint32_t i = 0; i < t->symbols.len; i++)
        trace_dim_value(t, sym_dim_of(t->env, t->symbols.at[i].symbol), &(int64_t){0});
    t->symbols.len = 0; /* their values are in the call's list, whatever is written now */
    return ok ? BP_OK : ctx_ok(t->c) ? trace_nomem(t) : t->c->diag.code;
}

tensor_meta trace_numbers_of(trace *t, const tensor_meta *m)
{
    bool ok = true;
    tensor_meta to = meta_copy(&t->arena, m, &ok);
    if (!ok)
        trace_nomem(t);
    for (uint32_t k = 0; ok && k < m->rank; k++) {
        to.sizes[k] = dim_const(dim_int(t->c, m->sizes[k]));
        to.strides[k] = dim_const(dim_int(t->c, m->strides[k]));
    }
    to.offset = dim_const(0);
    return ok ? to : *m;
}

bp_status trace_specialize(trace *t, bp_tensor *h)
{
    for (uint32_t k = 0; k < 2u * h->rank; k++)
        dim_int(t->c, h->sizes[k]);
    return ctx_ok(t->c) ? BP_OK : t->c->diag.code;
}

/* -- marks --------------------------------------------------------------------------------------------------------- */

typedef struct { const sym_env *env; uint32_t symbol; bool only, names; } mention;

static void mentions(void *arg, uint32_t k)
{
    mention *m = arg;
    m->names |= k == m->symbol;
    m->only &= k == m->symbol;
}

static void put_constant(const trace *t, const dim_plan *p, bp_dim is, buf *names, buf *lines)
{
    (void)p;
    const char *of = sym_symbol_at(t->env, p->symbol)->of;
    buf_printf(names, "%s%s", names->n ? ", " : "", of);
    buf_printf(lines, "\n  - Not all values of RelaxedUnspecConstraint(%s) are valid because %s was inferred to be a "
                      "constant (%lld).", of, of, (long long)is.value);
}

/* A strict range: whatever was asked and was not proven by it holds for a part of it. */
static void put_guards(const trace *t, const dim_plan *p, buf *names, buf *lines)
{
    const sym_symbol *s = sym_symbol_at(t->env, p->symbol);
    for (uint32_t i = 0; i < sym_fact_count(t->env); i++) {
        const sym_fact *f = sym_fact_at(t->env, i);
        mention m = {t->env, p->symbol, true, false};
        sym_each_symbol(t->env, f->holds, mentions, &m);
        if (f->origin != SYM_GUARD || !m.names)
            continue;
        buf_printf(names, "%s%s", names->n ? ", " : "", s->of);
        buf_printf(lines, "\n  - Not all values of %s in the specified range %lld <= %s <= ", s->of, (long long)p->min,
                   s->of);
        if (p->max == INT64_MAX)
            buf_puts(lines, "int_oo");
        else
            buf_printf(lines, "%lld", (long long)p->max);
        buf_puts(lines, " satisfy the generated guard ");
        sym_print(t->env, f->holds, true, lines);
        if (f->file)
            buf_printf(lines, ", asked at %s:%d", f->file, f->line);
        return;
    }
}

static void check_mark(const trace *t, const dim_plan *p, uint8_t which, buf *names, buf *lines)
{
    if (p->kind != PLAN_SYMBOL || (p->constraint == CONSTRAINT_WARN) != (which == CONSTRAINT_WARN) || !p->constraint)
        return;
    bp_dim is = sym_simplify(t->env, t->c, sym_dim_of(t->env, p->symbol));
    if (dim_is_const(is) && is.value != 0 && is.value != 1)
        put_constant(t, p, is, names, lines);
    else if (!dim_is_const(is) && p->constraint == CONSTRAINT_STRICT)
        put_guards(t, p, names, lines);
}

static bool put_violations(const trace *t, uint8_t which, buf *why)
{
    buf names = {0}, lines = {0};
    for (uint32_t i = 0; i < t->constrained.len; i++)
        for (uint32_t k = 0; k < t->constrained.at[i]->ndims; k++)
            check_mark(t, &t->constrained.at[i]->dims[k], which, &names, &lines);
    bool any = names.n != 0;
    if (any)
        buf_printf(why, "Constraints violated (%s)! For more information, run with BACKPLANE_LOGS=guards.%s",
                   buf_text(&names), buf_text(&lines));
    buf_fini(&names);
    buf_fini(&lines);
    return any;
}

bool trace_violations(const trace *t, buf *why)
{
    buf warn = {0};
    if (log_on(t->c->rt, LOG_dynamic) && put_violations(t, CONSTRAINT_WARN, &warn))
        log_line(t->c->rt, LOG_dynamic, "\"%s\": %s", t->r ? t->r->name : "?", buf_text(&warn));
    buf_fini(&warn);
    return put_violations(t, CONSTRAINT_RELAXED, why);
}
