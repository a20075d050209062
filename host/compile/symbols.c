/* Symbols of a call: guards read those that inputs bring; those that data tell are read from values, when something
 * asks for them. An end that speaks of symbols is committed with their numbers in place of them. */
#include "host/compile/callable.h"

/* -- what data tell ------------------------------------------------------------------------------------------------ */

bp_status call_tell(call *k, const path_symbol *at, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const bp_tensor *t = call_value(k, at[i].value);
        if (!t || !bind_reserve_symbols(&k->vals, at[i].symbol + 1))
            return ctx_ok(k->c) ? ctx_fail(k->c, BP_INTERNAL, "a value that tells a size is missing") : k->c->diag.code;
        k->vals.syms[at[i].symbol] = at[i].kind == SYM_VALUE ? number_value(t).v.dim.value : t->sizes[at[i].dim].value;
    }
    return BP_OK;
}

bp_tensor *call_symbol(call *k, const tree_node *n, ref r)
{
    const path_symbol *at = node_symbol(n, ref_index(r));
    if (at && call_tell(k, at, 1) != BP_OK)
        return NULL;
    return bind_get(&k->vals, r);
}

/* -- ends ---------------------------------------------------------------------------------------------------------- */

typedef struct { const sym_env *env; const int64_t *values; arena *a; bool ok, fits; } settling;

static bp_dim settle_dim(settling *s, bp_dim d)
{
    int64_t v = d.value;
    if (d.sym)
        s->fits &= sym_eval(s->env, d, s->values, &v);
    return dim_const(v);
}

static tensor_meta settle_meta(settling *s, const tensor_meta *m)
{
    tensor_meta to = meta_copy(s->a, m, &s->ok);
    for (uint32_t d = 0; s->ok && d < m->rank; d++) {
        to.sizes[d] = settle_dim(s, m->sizes[d]);
        to.strides[d] = settle_dim(s, m->strides[d]);
    }
    to.offset = settle_dim(s, m->offset);
    return to;
}

static void settle_outs(settling *s, item *end)
{
    out_spec *outs = arena_array(s->a, end->end.nouts, sizeof *outs);
    s->ok &= outs != NULL;
    for (uint32_t i = 0; s->ok && i < end->end.nouts; i++) {
        outs[i] = end->end.outs[i];
        if (!outs[i].handle)
            continue;
        outs[i].meta = settle_meta(s, &end->end.outs[i].meta);
        outs[i].base = settle_meta(s, &end->end.outs[i].base);
    }
    end->end.outs = outs;
}

static void settle_value(settling *s, bp_value *v)
{
    if (v->kind == BP_VALUE_INT)
        v->v.dim = settle_dim(s, v->v.dim);
    for (uint32_t i = 0; v->kind == BP_VALUE_LIST && i < v->count; i++)
        settle_value(s, &((bp_value *)(uintptr_t)v->v.items)[i]);
}

static void settle_step(settling *s, item *it)
{
    step_spec *own = arena_memdup(s->a, it->end.step, sizeof *own);
    bp_value *args = own ? arena_array(s->a, own->nargs, sizeof *args) : NULL;
    s->ok &= args != NULL;
    for (uint32_t i = 0; s->ok && i < own->nargs; i++) {
        args[i] = value_copy(s->a, &own->args[i], &s->ok);
        if (s->ok)
            settle_value(s, &args[i]);
    }
    if (!s->ok)
        return;
    own->args = args;
    it->end.step = own;
}

const item *call_settle(call *k, const tree_node *n, arena *a, item *own)
{
    const item *end = n->term;
    if (!end->end.symbolic)
        return end;
    if (call_tell(k, end->end.symbols, end->end.nsymbols) != BP_OK)
        return NULL;
    settling s = {n->env, k->vals.syms, a, true, true};
    *own = *end;
    settle_outs(&s, own);
    own->end.rng_total = settle_dim(&s, own->end.rng_total);
    if (end->kind == ITEM_STEP && s.ok)
        settle_step(&s, own);
    if (!s.ok)
        return ctx_nomem(k->c), NULL;
    if (!s.fits)
        return ctx_fail(k->c, BP_INVALID_ARGUMENT, "a size of a result of \"%s\" overflows", k->g->code->is.name), NULL;
    return own;
}
