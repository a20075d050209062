/* What is known: facts narrow ranges, tell residues, and make symbols equal to what comes before them. */
#include "host/sym/expr.h"
#include "sdk/base/checked.h"
#include <string.h>

static bool take(sym_env *e, sym_ex x);

static void news(sym_env *e)
{
    e->epoch++;
}

static bool contradicts(sym_env *e)
{
    e->contradiction = true;
    return false;
}

/* -- what an expression is ----------------------------------------------------------------------------------------- */

static sym_ex plain_sum(sym_env *e, const sym_node *n)
{
    sym_poly all = {NULL, 0, n->k};
    for (uint32_t i = 0; i < n->n && !e->fail; i++)
        all = sym_poly_combine(e, all, 1, sym_poly_of(e, sym_plain(e, sym_ex_id(n->terms[i].mono))), n->terms[i].coef);
    return sym_fold(e, sym_poly_intern(e, all));
}

static sym_ex plain_product(sym_env *e, const sym_node *n)
{
    sym_poly all = {NULL, 0, 1};
    for (uint32_t i = 0; i < n->n && !e->fail; i++)
        all = sym_poly_multiply(e, all, sym_poly_of(e, sym_plain(e, sym_ex_id(n->factors[i]))));
    return sym_fold(e, sym_poly_intern(e, all));
}

static sym_ex plain_pair(sym_env *e, const sym_node *n, sym_ex x)
{
    static const enum sym_op OPS[] = {[SYM_FLOORDIV] = SYM_DIV, [SYM_MOD] = SYM_REM, [SYM_MIN] = SYM_LEAST,
                                      [SYM_MAX] = SYM_MOST};
    sym_ex a = sym_plain(e, n->a), b = sym_plain(e, n->b);
    bool by_zero = n->kind <= SYM_MOD && sym_ex_is(b, 0);
    return e->fail || by_zero ? x : sym_apply(e, OPS[n->kind], a, b);
}

static sym_ex plain_condition(sym_env *e, const sym_node *n)
{
    sym_ex a = sym_plain(e, n->a), k = sym_ex_const(n->k);
    switch (n->kind) {
    case SYM_EQ: return sym_compare(e, DIM_EQ, a, k);
    case SYM_NE: return sym_compare(e, DIM_NE, a, k);
    case SYM_LE: return sym_compare(e, DIM_LE, a, k);
    default: return sym_compare(e, DIM_LE, k, a);
    }
}

/* By what its parts are, though its own range may be one number. */
static sym_ex by_parts(sym_env *e, const sym_node *n, sym_ex x)
{
    switch (n->kind) {
    case SYM_SYMBOL: return e->replaced.at[n->n].id == x.id ? x : sym_plain(e, e->replaced.at[n->n]);
    case SYM_SUM: return plain_sum(e, n);
    case SYM_PRODUCT: return plain_product(e, n);
    case SYM_FLOORDIV:
    case SYM_MOD:
    case SYM_MIN:
    case SYM_MAX: return plain_pair(e, n, x);
    default: return plain_condition(e, n);
    }
}

static sym_ex derive(sym_env *e, const sym_node *n, sym_ex x)
{
    sym_range r = sym_range_of(e, x);
    return sym_range_one(r) ? sym_ex_const(r.min) : by_parts(e, n, x);
}

sym_ex sym_plain(sym_env *e, sym_ex x)
{
    if (!x.id || e->fail)
        return x;
    sym_node *n = sym_at(e, x.id);
    if (n->plain_epoch == e->epoch)
        return n->plain;
    sym_ex y = derive(e, n, x);
    if (e->fail)
        return x;
    n->plain = y;
    n->plain_epoch = e->epoch;
    return y;
}

/* -- ranges -------------------------------------------------------------------------------------------------------- */

static bool bound(sym_env *e, sym_ex x, sym_range r);

/* base of scale*base + k within r. */
static sym_range of_base(const sym_node *n, sym_range r)
{
    int64_t g = n->scale, low = INT64_MIN, high = INT64_MAX, v;
    if (g < 0) {
        sym_range turned = {r.max == INT64_MAX ? INT64_MIN : -r.max, r.min == INT64_MIN ? INT64_MAX : -r.min};
        sym_node up = *n;
        up.scale = -g;
        up.k = -n->k;
        return of_base(&up, turned);
    }
    if (r.min != INT64_MIN && checked_sub(n->k, r.min, &v) && checked_floordiv(v, g, &v))
        low = -v;
    if (r.max != INT64_MAX && checked_sub(r.max, n->k, &v) && checked_floordiv(v, g, &v))
        high = v;
    return (sym_range){low, high};
}

/* A sum within r bounds each symbol that stands alone in it, by the ranges of the others. */
static bool bound_terms(sym_env *e, const sym_node *n, sym_range r)
{
    for (uint32_t i = 0; i < n->n && n->n <= 8; i++) {
        const sym_node *s = sym_at(e, n->terms[i].mono);
        sym_range rest = {0, 0};
        for (uint32_t j = 0; j < n->n; j++)
            if (j != i)
                rest = sym_range_add(rest, sym_range_scale(sym_range_mono(e, n->terms[j].mono), n->terms[j].coef));
        sym_node one = {.scale = n->terms[i].coef, .k = 0};
        sym_range left = sym_range_add(r, sym_range_scale(rest, -1));
        if (s->kind == SYM_SYMBOL && !bound(e, sym_ex_id(n->terms[i].mono), of_base(&one, left)))
            return false;
    }
    return true;
}

/* What the range of an atom says of its operands. */
static bool bound_operands(sym_env *e, const sym_node *n, sym_range r)
{
    int64_t low = INT64_MIN, high = INT64_MAX, v;
    switch (n->kind) {
    case SYM_MIN: return bound(e, n->a, (sym_range){r.min, INT64_MAX}) && bound(e, n->b, (sym_range){r.min, INT64_MAX});
    case SYM_MAX: return bound(e, n->a, (sym_range){INT64_MIN, r.max}) && bound(e, n->b, (sym_range){INT64_MIN, r.max});
    case SYM_SUM: return bound_terms(e, n, r);
    case SYM_FLOORDIV:
        if (n->b.id || n->b.k <= 0)
            return true;
        if (r.min != INT64_MIN && checked_mul(r.min, n->b.k, &v))
            low = v;
        if (r.max != INT64_MAX && checked_add(r.max, 1, &v) && checked_mul(v, n->b.k, &v))
            high = v - 1;
        return bound(e, n->a, (sym_range){low, high});
    default: return true;
    }
}

static bool bound(sym_env *e, sym_ex x, sym_range r)
{
    if (!x.id)
        return (x.k >= r.min && x.k <= r.max) || contradicts(e);
    sym_node *n = sym_at(e, x.id);
    if (n->base != x.id)
        return bound(e, sym_ex_id(n->base), of_base(n, r));
    sym_range now = sym_range_meet(n->known, r);
    if (now.min == n->known.min && now.max == n->known.max)
        return true;
    if (now.min > now.max)
        return contradicts(e);
    n->known = now;
    news(e);
    if (n->kind != SYM_SYMBOL && !sym_is_condition(n->kind) && !n->listed) {
        if (!vec_push(&e->bounded, x.id)) {
            sym_fails(e, SYM_NOMEM);
            return true;
        }
        n->listed = true;
    }
    return bound_operands(e, n, now);
}

/* -- residues ------------------------------------------------------------------------------------------------------ */

/* The number whose product with g is 1 modulo m; g and m have no common factor. */
static int64_t inverse(int64_t g, int64_t m)
{
    int64_t a = g % m, b = m, x = 1, y = 0;
    while (a > 1) {
        int64_t q = b / a, r = b % a, z = y - q * x;
        b = a;
        a = r;
        y = x;
        x = z;
    }
    return x < 0 ? x + m : x;
}

static int64_t product_modulo(int64_t a, int64_t b, int64_t m)
{
    sym_wide r = (sym_wide)a * b % m;
    return (int64_t)(r < 0 ? r + m : r);
}

/* Mod(x, m) == r. */
static void learn_residue(sym_env *e, const sym_node *mod, int64_t r)
{
    int64_t m = mod->b.k, both = 0;
    sym_node *n = sym_at(e, mod->a.id);
    if (mod->b.id || m <= 1 || !mod->a.id)
        return;
    if (n->scale > 0 && sym_gcd(n->scale, m) == 1) {
        r = (int64_t)(((sym_wide)r - n->k) % m);
        r = product_modulo(r, inverse(n->scale, m), m);
        n = sym_at(e, n->base);
    }
    if (n->modulus % m == 0)
        return;
    if (m % n->modulus != 0) { /* both, where both are 0; else the finer one */
        if (r == 0 && n->residue == 0 && checked_mul(m / sym_gcd(m, n->modulus), n->modulus, &both))
            m = both;
        else if (m < n->modulus)
            return;
    }
    n->modulus = m;
    n->residue = r;
    e->divisible++;
    news(e);
}

/* -- equalities ---------------------------------------------------------------------------------------------------- */

/* Symbol k is in no term but the i-th. */
static bool only_in(const sym_env *e, sym_poly p, uint32_t i, uint32_t k)
{
    for (uint32_t j = 0; j < p.n; j++) {
        const sym_node *n = sym_at(e, p.at[j].mono);
        for (uint32_t l = 0; l < n->nsymbols; l++)
            if (j != i && n->symbols[l] == k)
                return false;
    }
    return true;
}

/* The term whose symbol p == 0 is solved for: data before what is read from inputs, then the latest. p.n: none. What
 * is read from inputs is not given up for data. */
static uint32_t solved_term(const sym_env *e, sym_poly p)
{
    uint32_t best = p.n;
    bool data = false;
    for (uint32_t i = 0; i < p.n; i++)
        data |= sym_at(e, p.at[i].mono)->unbacked;
    for (uint32_t i = 0; i < p.n; i++) {
        const sym_node *n = sym_at(e, p.at[i].mono);
        if (n->kind != SYM_SYMBOL || (p.at[i].coef != 1 && p.at[i].coef != -1) || n->unbacked != data ||
            !only_in(e, p, i, n->n))
            continue;
        if (best == p.n || n->n > sym_at(e, p.at[best].mono)->n)
            best = i;
    }
    return best;
}

/* a == k: a symbol of it becomes what the others are. */
static bool solve(sym_env *e, sym_ex a, int64_t k)
{
    sym_poly p = sym_poly_of(e, sym_plain(e, a));
    if (!checked_sub(p.k, k, &p.k) || e->fail)
        return true;
    uint32_t i = solved_term(e, p);
    if (i == p.n)
        return true;
    uint32_t symbol = sym_at(e, p.at[i].mono)->n;
    int64_t sign = p.at[i].coef;
    sym_ex by = sym_poly_intern(e, sym_poly_combine(e, p, -sign, sym_poly_of(e, sym_ex_id(p.at[i].mono)), 1));
    if (e->fail)
        return true;
    e->replaced.at[symbol] = by;
    e->stale = true;
    news(e);
    return bound(e, by, sym_at(e, e->ids.at[symbol])->known);
}

/* -- learning ------------------------------------------------------------------------------------------------------ */

/* That a condition is 1, and its opposite 0. */
static bool mark(sym_env *e, sym_ex x)
{
    sym_ex opposite = sym_negate(e, x);
    if (e->fail)
        return true;
    return bound(e, x, (sym_range){1, 1}) && bound(e, opposite, (sym_range){0, 0});
}

static bool take_unequal(sym_env *e, sym_ex a, int64_t k)
{
    sym_range r = sym_range_of(e, a);
    if (r.min == k && k < INT64_MAX)
        return bound(e, a, (sym_range){k + 1, INT64_MAX});
    return r.max != k || k == INT64_MIN || bound(e, a, (sym_range){INT64_MIN, k - 1});
}

static bool take_equal(sym_env *e, sym_ex a, int64_t k)
{
    const sym_node *n = sym_at(e, a.id);
    if (n->kind == SYM_MOD)
        learn_residue(e, n, k);
    return solve(e, a, k) && bound(e, a, (sym_range){k, k});
}

static bool take_all(sym_env *e, const sym_node *n)
{
    for (uint32_t i = 0; i < n->n; i++)
        if (sym_is_boolean(e, n->factors[i]) && !take(e, sym_ex_id(n->factors[i])))
            return false;
    return true;
}

static bool take(sym_env *e, sym_ex x)
{
    if (!x.id)
        return x.k != 0 || contradicts(e);
    const sym_node *n = sym_at(e, x.id);
    if (n->kind == SYM_PRODUCT)
        return take_all(e, n);
    if (!sym_is_condition(n->kind))
        return bound(e, x, (sym_range){1, 1});
    if (!mark(e, x))
        return false;
    switch (n->kind) {
    case SYM_EQ: return take_equal(e, n->a, n->k);
    case SYM_NE: return take_unequal(e, n->a, n->k);
    case SYM_GE: return bound(e, n->a, (sym_range){n->k, INT64_MAX});
    default: return bound(e, n->a, (sym_range){INT64_MIN, n->k});
    }
}

/* A fact in other words, by new equalities. */
static bool take_again(sym_env *e, sym_ex x)
{
    const sym_node *n = sym_at(e, x.id);
    if (!x.id || !sym_is_condition(n->kind))
        return true;
    sym_ex a = by_parts(e, sym_at(e, n->a.id), n->a), k = sym_ex_const(n->k);
    if (sym_ex_same(a, n->a) || e->fail)
        return true;
    switch (n->kind) {
    case SYM_EQ: return take(e, sym_condition(e, DIM_EQ, a, k));
    case SYM_NE: return take(e, sym_condition(e, DIM_NE, a, k));
    case SYM_LE: return take(e, sym_condition(e, DIM_LE, a, k));
    default: return take(e, sym_condition(e, DIM_LE, k, a));
    }
}

bool sym_learn(sym_env *e, sym_ex x)
{
    enum { TURNS = 8 };
    bool holds = take(e, x);
    for (int turn = 0; turn < TURNS && e->stale && holds && !e->fail; turn++) {
        e->stale = false;
        for (uint32_t i = 0; i < e->facts.len && holds && !e->fail; i++)
            holds = take_again(e, sym_ex_id(e->facts.at[i].holds.sym));
    }
    e->stale = false;
    return holds && !e->contradiction;
}

/* -- facts --------------------------------------------------------------------------------------------------------- */

static const char *kept_file(sym_env *e, const char *file)
{
    const char *last = e->facts.len ? vec_last(&e->facts).file : NULL;
    if (!file || (last && strcmp(last, file) == 0))
        return file ? last : NULL;
    return arena_strdup(&e->memory, file);
}

bool sym_record(sym_env *e, bp_ctx *c, sym_ex condition, enum sym_origin origin)
{
    if (e->fail)
        return false;
    const char *file = kept_file(e, c ? c->site_file : NULL);
    sym_fact f = {sym_dim(e, condition), origin, e->tag, file, c && file ? c->site_line : 0};
    if (!vec_push(&e->facts, f)) {
        sym_fails(e, SYM_NOMEM);
        return false;
    }
    return sym_learn(e, condition);
}

uint32_t sym_fact_count(const sym_env *e)
{
    return e->facts.len;
}

const sym_fact *sym_fact_at(const sym_env *e, uint32_t i)
{
    return i < e->facts.len ? &e->facts.at[i] : NULL;
}

void sym_set_tag(sym_env *e, uint32_t tag)
{
    e->tag = tag;
}
