/* Proofs. What is said to be true is, for all values within the ranges for which the facts hold; all else is unknown.
 *
 * p >= 0 is shown by the range of p; by its coefficients after each atom is counted from its least value (x = min + t,
 * t >= 0), when products of what is not negative prove themselves; by taking away a fact f >= 0 as often as cancels a
 * term; and by cases of a min or max. The search is bounded, in depth and in steps. */
#include "host/sym/expr.h"
#include "sdk/base/checked.h"

enum { STEPS = 120, COMBINED = 3 };

static const sym_poly ZERO = {NULL, 0, 0};
static bool prove(sym_env *e, sym_poly p, uint32_t depth);

static sym_poly minus(sym_env *e, sym_poly a, sym_poly b)
{
    return sym_poly_combine(e, a, 1, b, -1);
}

static sym_poly shifted(sym_poly p, int64_t by)
{
    return checked_add(p.k, by, &p.k) ? p : (sym_poly){NULL, 0, -1}; /* -1: which nothing proves */
}

/* -- counting from the least value --------------------------------------------------------------------------------- */

/* min + t, or max - t, of an atom whose id now stands for t. */
static sym_poly from_end(sym_env *e, uint32_t atom)
{
    sym_range r = sym_range_of(e, sym_ex_id(atom));
    sym_poly t = sym_poly_term(e, r.min == INT64_MIN && r.max != INT64_MAX ? -1 : 1, atom);
    t.k = r.min != INT64_MIN ? r.min : r.max != INT64_MAX ? r.max : 0;
    return t;
}

static bool has_end(sym_env *e, uint32_t atom)
{
    sym_range r = sym_range_of(e, sym_ex_id(atom));
    return r.min != INT64_MIN || r.max != INT64_MAX;
}

static sym_poly expand(sym_env *e, sym_poly p)
{
    sym_poly all = {NULL, 0, p.k};
    for (uint32_t i = 0; i < p.n && !e->fail; i++) {
        uint32_t n;
        const uint32_t *f = sym_factors(e, &p.at[i].mono, &n);
        sym_poly term = {NULL, 0, p.at[i].coef};
        for (uint32_t j = 0; j < n && !e->fail; j++)
            term = sym_poly_multiply(e, term, from_end(e, f[j]));
        all = sym_poly_combine(e, all, 1, term, 1);
    }
    return all;
}

/* The range of t, from 0. */
static sym_range span(sym_env *e, uint32_t atom)
{
    sym_range r = sym_range_of(e, sym_ex_id(atom));
    int64_t most = INT64_MAX;
    if (r.min == INT64_MIN || r.max == INT64_MAX || !checked_sub(r.max, r.min, &most))
        most = INT64_MAX;
    return (sym_range){has_end(e, atom) ? 0 : INT64_MIN, most};
}

static sym_range span_mono(sym_env *e, uint32_t mono)
{
    uint32_t n;
    const uint32_t *f = sym_factors(e, &mono, &n);
    sym_range r = {1, 1};
    for (uint32_t i = 0; i < n; i++) {
        sym_range s = span(e, f[i]);
        if (s.min < 0)
            return SYM_ANY;
        int64_t most = INT64_MAX;
        r.max = s.max == INT64_MAX || r.max == INT64_MAX || !checked_mul(r.max, s.max, &most) ? INT64_MAX : most;
        r.min = 0;
    }
    return r;
}

static bool by_coefficients(sym_env *e, sym_poly p)
{
    p = expand(e, p);
    sym_range r = {p.k, p.k};
    for (uint32_t i = 0; i < p.n && !e->fail; i++)
        r = sym_range_add(r, sym_range_scale(span_mono(e, p.at[i].mono), p.at[i].coef));
    return !e->fail && r.min >= 0;
}

/* -- with facts ---------------------------------------------------------------------------------------------------- */

/* p >= 0 follows from a*p - b*f > -a and f >= 0. Tries each term that f and p share with one sign. */
static bool with(sym_env *e, sym_poly p, sym_poly f, uint32_t depth)
{
    for (uint32_t i = 0, j = 0; i < p.n && j < f.n && !e->fail && e->budget;) {
        int r = sym_mono_order(e, p.at[i].mono, f.at[j].mono);
        if (r == 0 && (p.at[i].coef < 0) == (f.at[j].coef < 0)) {
            int64_t g = sym_gcd(p.at[i].coef, f.at[j].coef), a = f.at[j].coef / g, b = p.at[i].coef / g;
            a = a < 0 ? -a : a;
            sym_poly d = sym_poly_combine(e, p, a, f, b < 0 ? b : -b);
            if (!e->fail && prove(e, shifted(d, a - 1), depth + 1)) /* a*p > -a is enough: p is whole */
                return true;
        }
        i += r <= 0;
        j += r >= 0;
    }
    return false;
}

/* base >= min and base <= max. */
static bool with_bounds(sym_env *e, sym_poly p, uint32_t id, uint32_t depth)
{
    sym_range r = sym_at(e, id)->known;
    sym_poly base = sym_poly_of(e, sym_ex_id(id));
    if (r.min > INT64_MIN + 1 && with(e, p, shifted(base, -r.min), depth))
        return true;
    return r.max < INT64_MAX && with(e, p, minus(e, (sym_poly){NULL, 0, r.max}, base), depth);
}

/* What an atom says of itself. */
static bool with_atom(sym_env *e, sym_poly p, uint32_t id, uint32_t depth)
{
    const sym_node *n = sym_at(e, id);
    if (n->kind == SYM_SYMBOL || n->kind > SYM_MAX)
        return false;
    sym_poly x = {&n->one, 1, 0}, a = sym_poly_of(e, n->a), b = sym_poly_of(e, n->b), rest;
    if (n->kind == SYM_MIN)
        return with(e, p, minus(e, a, x), depth) || with(e, p, minus(e, b, x), depth);
    if (n->kind == SYM_MAX)
        return with(e, p, minus(e, x, a), depth) || with(e, p, minus(e, x, b), depth);
    if (sym_range_of(e, n->b).min <= 0)
        return false;
    if (n->kind == SYM_MOD)
        return with(e, p, shifted(minus(e, b, x), -1), depth) ||
               (sym_range_of(e, n->a).min >= 0 && with(e, p, minus(e, a, x), depth));
    rest = minus(e, a, sym_poly_multiply(e, b, x));
    return with(e, p, rest, depth) || with(e, p, shifted(minus(e, b, rest), -1), depth);
}

/* Calls for every atom of p until one proves it. */
static bool with_atoms(sym_env *e, sym_poly p, uint32_t depth)
{
    for (uint32_t i = 0; i < p.n && !e->fail; i++) {
        uint32_t n;
        const uint32_t *f = sym_factors(e, &p.at[i].mono, &n);
        for (uint32_t j = 0; j < n && !e->fail; j++)
            if (with_atom(e, p, f[j], depth))
                return true;
    }
    return false;
}

static bool with_facts(sym_env *e, sym_poly p, uint32_t depth)
{
    for (uint32_t i = 0; i < e->bounded.len && e->budget && !e->fail; i++)
        if (with_bounds(e, p, e->bounded.at[i], depth))
            return true;
    return with_atoms(e, p, depth);
}

/* m*q + k >= 0 for m >= min > 0, where q >= -k/min, rounded up; of a negative k only. */
static bool by_factor(sym_env *e, sym_poly p, uint32_t depth)
{
    uint32_t m = p.n > 1 ? p.at[0].mono : 0, part = 0;
    int64_t k = 0;
    sym_poly q = ZERO;
    for (uint32_t i = 1; i < p.n && m; i++)
        m = sym_mono_gcd(e, m, p.at[i].mono);
    sym_range r = sym_range_mono(e, m);
    if (!m || e->fail || r.min <= 0 || p.k == INT64_MIN || !checked_floordiv(p.k, r.min, &k))
        return false;
    for (uint32_t i = 0; i < p.n && sym_mono_divide(e, p.at[i].mono, m, &part); i++)
        q = sym_poly_combine(e, q, 1, sym_poly_term(e, p.at[i].coef, part), 1);
    return !e->fail && checked_add(q.k, k < 0 ? k : 0, &q.k) && prove(e, q, depth + 1);
}

/* -- by cases ------------------------------------------------------------------------------------------------------ */

static uint32_t find_atom(const sym_env *e, sym_poly p, enum sym_node_kind kind, enum sym_node_kind or_kind)
{
    for (uint32_t i = 0; i < p.n; i++) {
        uint32_t n;
        const uint32_t *f = sym_factors(e, &p.at[i].mono, &n);
        for (uint32_t j = 0; j < n; j++)
            if (sym_at(e, f[j])->kind == kind || sym_at(e, f[j])->kind == or_kind)
                return f[j];
    }
    return 0;
}

static sym_poly substitute(sym_env *e, sym_poly p, uint32_t atom, sym_poly by)
{
    sym_poly all = {NULL, 0, p.k};
    for (uint32_t i = 0; i < p.n && !e->fail; i++) {
        uint32_t mono = p.at[i].mono;
        sym_poly term = {NULL, 0, 1};
        while (!e->fail && sym_mono_divide(e, mono, atom, &mono))
            term = sym_poly_multiply(e, term, by);
        term = sym_poly_multiply(e, term, sym_poly_term(e, p.at[i].coef, mono));
        all = sym_poly_combine(e, all, 1, term, 1);
    }
    return all;
}

/* A min or max is one of its operands. */
static bool by_cases(sym_env *e, sym_poly p, uint32_t depth)
{
    uint32_t atom = find_atom(e, p, SYM_MIN, SYM_MAX);
    if (!atom)
        return false;
    sym_poly a = substitute(e, p, atom, sym_poly_of(e, sym_at(e, atom)->a));
    sym_poly b = substitute(e, p, atom, sym_poly_of(e, sym_at(e, atom)->b));
    return !e->fail && prove(e, a, depth + 1) && prove(e, b, depth + 1);
}

/* Mod(a, b) = a - b*(a//b), where such a quotient is in p too. */
static bool by_quotients(sym_env *e, sym_poly p, uint32_t depth)
{
    uint32_t atom = find_atom(e, p, SYM_MOD, SYM_MOD);
    if (!atom || !find_atom(e, p, SYM_FLOORDIV, SYM_FLOORDIV))
        return false;
    const sym_node *m = sym_at(e, atom);
    sym_poly q = sym_poly_of(e, sym_ex_id(sym_atom(e, SYM_FLOORDIV, m->a, m->b)));
    sym_poly by = minus(e, sym_poly_of(e, m->a), sym_poly_multiply(e, sym_poly_of(e, m->b), q));
    return !e->fail && prove(e, substitute(e, p, atom, by), depth + 1);
}

/* -- all ----------------------------------------------------------------------------------------------------------- */

static bool prove(sym_env *e, sym_poly p, uint32_t depth)
{
    if (e->fail || !e->budget)
        return false;
    e->budget--;
    if (p.n == 0)
        return p.k >= 0;
    if (sym_range_poly(e, p).min >= 0)
        return true;
    if (p.n > 1 && sym_range_of(e, sym_poly_intern(e, p)).min >= 0)
        return !e->fail;
    if (by_coefficients(e, p))
        return true;
    if (depth >= COMBINED || e->fail)
        return false;
    return by_factor(e, p, depth) || by_cases(e, p, depth) || by_quotients(e, p, depth) ||
           with_facts(e, p, depth);
}

bool sym_nonnegative(sym_env *e, sym_poly p)
{
    if (e->fail)
        return false;
    e->budget = STEPS;
    bool shown = prove(e, p, 0);
    if (e->fail == SYM_OVERFLOW || e->fail == SYM_LARGE) {
        e->fail = SYM_FINE;
        shown = false;
    }
    return shown && !e->fail;
}

static enum dim_truth truth_of(enum dim_rel rel, bool yes)
{
    return yes == (rel != DIM_NE) ? DIM_TRUE : DIM_FALSE;
}

/* p REL 0 (p + 1 <= 0 stands for p < 0), by ranges alone. */
static enum dim_truth by_range(enum dim_rel rel, sym_range r)
{
    if (rel == DIM_EQ || rel == DIM_NE)
        return r.min == 0 && r.max == 0 ? truth_of(rel, true) : r.min > 0 || r.max < 0 ? truth_of(rel, false)
                                                                                      : DIM_UNKNOWN;
    return r.max <= 0 ? DIM_TRUE : r.min > 0 ? DIM_FALSE : DIM_UNKNOWN;
}

static enum dim_truth by_proof(sym_env *e, enum dim_rel rel, sym_poly p)
{
    sym_poly n = sym_poly_combine(e, p, -1, ZERO, 1);
    int64_t m = 1, r = 0;
    if (rel == DIM_LE)
        return sym_nonnegative(e, n) ? DIM_TRUE : sym_nonnegative(e, shifted(p, -1)) ? DIM_FALSE : DIM_UNKNOWN;
    sym_residue(e, p, &m, &r);
    if (m != 1 && r != 0)
        return truth_of(rel, false);
    if (sym_nonnegative(e, shifted(p, -1)) || sym_nonnegative(e, shifted(n, -1)))
        return truth_of(rel, false);
    return sym_nonnegative(e, p) && sym_nonnegative(e, n) ? truth_of(rel, true) : DIM_UNKNOWN;
}

/* The condition in its simplest form may be known; if not, it is what is to be proven: *rel of *p and 0. */
static enum dim_truth by_condition(sym_env *e, enum dim_rel *rel, sym_poly *p)
{
    sym_ex x = sym_condition(e, *rel, sym_poly_intern(e, *p), sym_ex_const(0));
    sym_range r = sym_range_of(e, x);
    if (e->fail)
        return DIM_UNKNOWN;
    if (sym_range_one(r))
        return r.min ? DIM_TRUE : DIM_FALSE;
    const sym_node *n = sym_at(e, x.id);
    if (!sym_is_condition(n->kind))
        return DIM_UNKNOWN;
    sym_poly a = sym_poly_of(e, n->a), k = {NULL, 0, n->k};
    *rel = n->kind == SYM_EQ ? DIM_EQ : n->kind == SYM_NE ? DIM_NE : DIM_LE;
    *p = n->kind == SYM_GE ? minus(e, k, a) : minus(e, a, k);
    return DIM_UNKNOWN;
}

static enum dim_truth decide(sym_env *e, enum dim_rel rel, sym_ex a, sym_ex b)
{
    sym_poly p = minus(e, sym_poly_of(e, a), sym_poly_of(e, b));
    if (rel == DIM_LT) {
        rel = DIM_LE;
        if (!checked_add(p.k, 1, &p.k))
            return DIM_UNKNOWN;
    }
    if (e->fail)
        return DIM_UNKNOWN;
    enum dim_truth t = by_range(rel, sym_range_poly(e, p));
    if (t != DIM_UNKNOWN || p.n == 0)
        return t;
    p = sym_poly_of(e, sym_plain(e, sym_poly_intern(e, p)));
    t = e->fail ? DIM_UNKNOWN : by_range(rel, sym_range_poly(e, p));
    if (t != DIM_UNKNOWN || p.n == 0 || e->fail)
        return t;
    t = by_condition(e, &rel, &p);
    return t != DIM_UNKNOWN || e->fail ? t : by_proof(e, rel, p);
}

enum dim_truth sym_decide(sym_env *e, enum dim_rel rel, sym_ex a, sym_ex b)
{
    enum { NESTED = 12 };
    uint32_t op = SYM_REL + rel, budget = e->budget;
    if (e->fail || e->depth >= NESTED)
        return DIM_UNKNOWN;
    const sym_memo *m = sym_recall(e, op, a, b);
    if (m)
        return (enum dim_truth)m->result.value;
    e->depth++;
    enum dim_truth t = decide(e, rel, a, b);
    e->depth--;
    e->budget = budget;
    if (e->fail == SYM_OVERFLOW || e->fail == SYM_LARGE) {
        e->fail = SYM_FINE;
        t = DIM_UNKNOWN;
    }
    if (!e->fail && (!e->depth || t != DIM_UNKNOWN))
        sym_remember(e, op, a, b, dim_const(t));
    return t;
}

bool sym_nonzero(sym_env *e, sym_ex x)
{
    return sym_decide(e, DIM_NE, x, sym_ex_const(0)) == DIM_TRUE;
}
