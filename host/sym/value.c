/* Values of expressions, and expressions in another environment. */
#include "host/sym/expr.h"
#include "sdk/base/checked.h"

static bool eval(const sym_env *e, sym_ex x, const int64_t *values, int64_t *out);

static bool eval_product(const sym_env *e, uint32_t mono, const int64_t *values, int64_t *out)
{
    uint32_t n;
    const uint32_t *f = sym_factors(e, &mono, &n);
    int64_t all = 1, one = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!eval(e, sym_ex_id(f[i]), values, &one) || !checked_mul(all, one, &all))
            return false;
    *out = all;
    return true;
}

static bool eval_sum(const sym_env *e, const sym_node *n, const int64_t *values, int64_t *out)
{
    sym_wide all = n->k;
    for (uint32_t i = 0; i < n->n; i++) {
        int64_t one = 0;
        if (!eval_product(e, n->terms[i].mono, values, &one) ||
            __builtin_add_overflow(all, (sym_wide)n->terms[i].coef * one, &all))
            return false;
    }
    *out = (int64_t)all;
    return all >= INT64_MIN && all <= INT64_MAX;
}

static bool eval_pair(const sym_env *e, const sym_node *n, const int64_t *values, int64_t *out)
{
    int64_t a = 0, b = 0;
    return eval(e, n->a, values, &a) && eval(e, n->b, values, &b) && sym_operate(n->kind, a, b, n->k, out);
}

static bool eval(const sym_env *e, sym_ex x, const int64_t *values, int64_t *out)
{
    const sym_node *n = sym_at(e, x.id);
    if (!x.id) {
        *out = x.k;
        return true;
    }
    switch (n->kind) {
    case SYM_SYMBOL: *out = values[n->n]; return true;
    case SYM_PRODUCT: return eval_product(e, x.id, values, out);
    case SYM_SUM: return eval_sum(e, n, values, out);
    default: return eval_pair(e, n, values, out);
    }
}

bool sym_eval(const sym_env *e, bp_dim d, const int64_t *values, int64_t *out)
{
    return sym_belongs(e, d) && eval(e, sym_ex_of(d), values, out);
}

/* -- import -------------------------------------------------------------------------------------------------------- */

typedef struct { sym_env *to; const sym_env *from; const bp_dim *map; } import;

static sym_ex bring(const import *m, sym_ex x);

static sym_ex bring_pair(const import *m, const sym_node *n)
{
    sym_ex a = bring(m, n->a), b = bring(m, n->b), k = sym_ex_const(n->k);
    switch (n->kind) {
    case SYM_EQ: return sym_compare(m->to, DIM_EQ, a, k);
    case SYM_NE: return sym_compare(m->to, DIM_NE, a, k);
    case SYM_LE: return sym_compare(m->to, DIM_LE, a, k);
    case SYM_GE: return sym_compare(m->to, DIM_LE, k, a);
    default: break;
    }
    if (n->kind <= SYM_MOD && sym_ex_is(b, 0)) { /* a division that no call reaches, or that fails where it is */
        sym_fails(m->to, SYM_ZERO);
        return sym_ex_const(0);
    }
    return sym_apply(m->to, n->kind == SYM_FLOORDIV ? SYM_DIV : n->kind == SYM_MOD ? SYM_REM
                            : n->kind == SYM_MIN ? SYM_LEAST : SYM_MOST, a, b);
}

static sym_poly bring_mono(const import *m, uint32_t mono)
{
    uint32_t n;
    const uint32_t *f = sym_factors(m->from, &mono, &n);
    sym_poly p = {NULL, 0, 1};
    for (uint32_t i = 0; i < n && !m->to->fail; i++)
        p = sym_poly_multiply(m->to, p, sym_poly_of(m->to, bring(m, sym_ex_id(f[i]))));
    return p;
}

static sym_ex bring(const import *m, sym_ex x)
{
    const sym_node *n = sym_at(m->from, x.id);
    if (!x.id || m->to->fail)
        return x.id ? sym_ex_const(0) : x;
    if (n->kind == SYM_SYMBOL)
        return sym_ex_of(m->map[n->n]);
    if (n->kind == SYM_PRODUCT)
        return sym_poly_intern(m->to, bring_mono(m, x.id));
    if (n->kind != SYM_SUM)
        return bring_pair(m, n);
    sym_poly p = {NULL, 0, n->k};
    for (uint32_t i = 0; i < n->n && !m->to->fail; i++)
        p = sym_poly_combine(m->to, p, 1, bring_mono(m, n->terms[i].mono), n->terms[i].coef);
    return sym_poly_intern(m->to, p);
}

bp_dim sym_import(sym_env *to, bp_ctx *c, const sym_env *from, bp_dim d, const bp_dim *map)
{
    if (!d.sym)
        return d;
    sym_ex x = bring(&(import){to, from, map}, sym_ex_of(d));
    return sym_ends_well(to, c, "of", d, d) ? sym_dim(to, x) : dim_const(0);
}
