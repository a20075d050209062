/* The normal form of each operation: rules that are right for all integers, or by what is proven of these.
 *
 * Division and remainder floor. With k and m integers other than 0, and q an integer polynomial:
 * (k*q + r)//k = q + r//k; (m*a)//(m*b) = a//b; (k*x + e)//(k*n) = x//n and Mod(k*x + e, k*n) = k*Mod(x, n) + e for
 * 0 <= e < k; (x//m)//n = x//(m*n) for positive m, n; a//-b = (-a)//b and Mod(a, -b) = -Mod(-a, b). */
#include "host/sym/expr.h"
#include "sdk/base/checked.h"

static const sym_poly ZERO = {NULL, 0, 0};

static int64_t floor_div(int64_t a, int64_t b)
{
    int64_t q = 0;
    checked_floordiv(a, b, &q);
    return q;
}

static int64_t floor_mod(int64_t a, int64_t b)
{
    int64_t r = 0;
    checked_floormod(a, b, &r);
    return r;
}

static sym_ex add(sym_env *e, sym_ex a, sym_ex b)
{
    return sym_poly_intern(e, sym_poly_combine(e, sym_poly_of(e, a), 1, sym_poly_of(e, b), 1));
}

static sym_ex scale(sym_env *e, sym_ex a, int64_t k)
{
    return sym_poly_intern(e, sym_poly_combine(e, sym_poly_of(e, a), k, ZERO, 1));
}

static sym_ex multiply_ex(sym_env *e, sym_ex a, sym_ex b)
{
    return sym_poly_intern(e, sym_poly_multiply(e, sym_poly_of(e, a), sym_poly_of(e, b)));
}

/* -- common factors ------------------------------------------------------------------------------------------------ */

/* Monomial that divides every term; 0: none does. */
static uint32_t common(sym_env *e, sym_poly p)
{
    uint32_t m = p.n && !p.k ? p.at[0].mono : 0;
    for (uint32_t i = 1; i < p.n && m; i++)
        m = sym_mono_gcd(e, m, p.at[i].mono);
    return m;
}

/* The largest part of a monomial that cannot be 0. */
static uint32_t nonzero_part(sym_env *e, uint32_t mono)
{
    uint32_t n, part = 0;
    const uint32_t *f = sym_factors(e, &mono, &n);
    for (uint32_t i = 0; i < n; i++) {
        sym_range r = sym_range_of(e, sym_ex_id(f[i]));
        if (r.min > 0 || r.max < 0)
            part = sym_mono_multiply(e, part, f[i]);
    }
    return part;
}

/* Divides each term by mono, which divides it. */
static sym_poly strip(sym_env *e, sym_poly p, uint32_t mono)
{
    sym_poly r = {NULL, 0, p.k};
    for (uint32_t i = 0; i < p.n && mono; i++) {
        uint32_t m = 0;
        if (sym_mono_divide(e, p.at[i].mono, mono, &m))
            r = sym_poly_combine(e, r, 1, sym_poly_term(e, p.at[i].coef, m), 1);
    }
    return mono ? r : p;
}

static sym_poly divide_content(sym_env *e, sym_poly p, int64_t g, int64_t k)
{
    sym_term *t = arena_array(&e->scratch, p.n, sizeof *t);
    if (!t) {
        sym_fails(e, SYM_NOMEM);
        return ZERO;
    }
    for (uint32_t i = 0; i < p.n; i++)
        t[i] = (sym_term){p.at[i].coef / g, p.at[i].mono};
    return (sym_poly){t, p.n, k};
}

/* What a//b and Mod(a, b) share: a and b over their common monomial, which cannot be 0, and over the common factor g
 * of their terms; what a constant has beyond g is in *extra. */
static void reduce(sym_env *e, sym_poly *a, sym_poly *b, uint32_t *mono, int64_t *g, int64_t *extra)
{
    *mono = 0;
    *extra = 0;
    *g = 1;
    if (b->n && a->n) {
        *mono = nonzero_part(e, sym_mono_gcd(e, common(e, *a), common(e, *b)));
        *a = strip(e, *a, *mono);
        *b = strip(e, *b, *mono);
    }
    int64_t of_b = sym_gcd(sym_poly_content(*b), b->k), all = sym_gcd(sym_poly_content(*a), of_b);
    if (b->n && sym_range_poly(e, *b).min <= 0) /* of a negative divisor, e may matter */
        all = sym_gcd(all, a->k);
    if (all > 1 && a->n) {
        *g = all;
        *extra = floor_mod(a->k, all);
        *a = divide_content(e, *a, all, floor_div(a->k, all));
        *b = divide_content(e, *b, all, b->k / all);
    }
}

/* -- floordiv ------------------------------------------------------------------------------------------------------ */

/* a = q*b + r where that makes r simpler: b is a constant or a monomial, or r is 0. */
static bool split(sym_env *e, sym_poly a, sym_poly b, sym_poly *q, sym_poly *r)
{
    bool some = sym_poly_divide(e, a, b, q, r);
    if (e->fail)
        return false;
    if (!b.n) {
        q->k = floor_div(r->k, b.k);
        r->k = floor_mod(r->k, b.k);
        some |= q->k != 0;
    }
    return some && (!b.n || (b.n == 1 && !b.k) || (!r->n && !r->k));
}

/* The lone atom of this kind that p is, plus *k. */
static const sym_node *lone(const sym_env *e, sym_poly p, enum sym_node_kind kind, int64_t *k)
{
    const sym_node *n = p.n == 1 && p.at[0].coef == 1 ? sym_at(e, p.at[0].mono) : NULL;
    *k = p.k;
    return n && n->kind == kind ? n : NULL;
}

/* (x//m + k)//n = (x + k*m)//(m*n). */
static bool unnest(sym_env *e, sym_poly a, sym_ex b, sym_ex *x, sym_ex *by)
{
    int64_t k = 0, add_to = 0, mn = 0;
    const sym_node *inner = lone(e, a, SYM_FLOORDIV, &k);
    if (!inner || b.id || b.k <= 0 || inner->b.id || inner->b.k <= 0 || !checked_mul(inner->b.k, b.k, &mn) ||
        !checked_mul(k, inner->b.k, &add_to))
        return false;
    *x = add(e, inner->a, sym_ex_const(add_to));
    *by = sym_ex_const(mn);
    return !e->fail;
}

/* 0 where 0 <= a < b, and what a range of one number says. */
static bool quotient_known(sym_env *e, sym_ex a, sym_ex b, sym_ex *out)
{
    sym_range r = sym_range_of(e, sym_ex_id(sym_atom(e, SYM_FLOORDIV, a, b)));
    *out = sym_ex_const(sym_range_one(r) ? r.min : 0);
    return sym_range_one(r) || (b.id && sym_range_of(e, a).min >= 0 && sym_range_of(e, b).min > 0 &&
                                sym_decide(e, DIM_LT, a, b) == DIM_TRUE);
}

/* Whether a divisor is turned to its opposite: a negative number, or a polynomial that begins with one. */
static bool turned(const sym_env *e, sym_ex b)
{
    sym_poly d = sym_poly_of(e, b);
    return (d.n ? d.at[0].coef : d.k) < 0 && d.k != INT64_MIN;
}

static sym_ex floordiv(sym_env *e, sym_ex a, sym_ex b)
{
    if (turned(e, b))
        return e->fail ? a : floordiv(e, scale(e, a, -1), scale(e, b, -1));
    sym_poly p = sym_poly_of(e, a), d = sym_poly_of(e, b), q, r;
    uint32_t mono;
    int64_t g, extra;
    reduce(e, &p, &d, &mono, &g, &extra);
    if (!d.n && d.k == 1)
        return sym_poly_intern(e, p);
    if (split(e, p, d, &q, &r))
        return add(e, sym_poly_intern(e, q), floordiv(e, sym_poly_intern(e, r), sym_poly_intern(e, d)));
    if (!p.n && !d.n)
        return sym_ex_const(d.k ? floor_div(p.k, d.k) : 0);
    if (!p.n && !p.k)
        return sym_ex_const(0);
    sym_ex x, by;
    if (!e->fail && unnest(e, p, sym_poly_intern(e, d), &x, &by))
        return floordiv(e, x, by);
    if (!e->fail && quotient_known(e, sym_poly_intern(e, p), sym_poly_intern(e, d), &x))
        return x;
    return e->fail ? sym_ex_const(0)
                   : sym_ex_id(sym_atom(e, SYM_FLOORDIV, sym_poly_intern(e, p), sym_poly_intern(e, d)));
}

/* -- mod ----------------------------------------------------------------------------------------------------------- */

/* A term modulo a positive constant: its factor below it, what is known of it, and Mod(x, m) as x where k divides m. */
static sym_poly term_modulo(sym_env *e, sym_term t, int64_t k)
{
    sym_poly p = sym_poly_term(e, floor_mod(t.coef, k), t.mono);
    int64_t m = 1, r = 0, scaled = 0;
    sym_residue(e, p, &m, &r);
    if (p.n && (m == 0 || m % k == 0))
        return (sym_poly){NULL, 0, floor_mod(r, k)};
    const sym_node *n = sym_at(e, t.mono);
    if (p.n && n->kind == SYM_MOD && !n->b.id && checked_mul(p.at[0].coef, n->b.k, &scaled) && scaled % k == 0)
        return sym_poly_combine(e, sym_poly_of(e, n->a), p.at[0].coef, ZERO, 1);
    return p;
}

static sym_poly modulo(sym_env *e, sym_poly p, int64_t k)
{
    sym_poly r = {NULL, 0, floor_mod(p.k, k)};
    for (uint32_t i = 0; i < p.n && !e->fail; i++)
        r = sym_poly_combine(e, r, 1, term_modulo(e, p.at[i], k), 1);
    int64_t m = 1, residue = 0;
    sym_residue(e, r, &m, &residue);
    if (m == 0 || m % k == 0)
        return (sym_poly){NULL, 0, floor_mod(residue, k)};
    return r;
}

/* Repeats modulo until nothing changes: Mod(x, m) may have brought terms that reduce. */
static sym_poly modulo_all(sym_env *e, sym_poly p, int64_t k)
{
    for (int turn = 0; turn < 8; turn++) {
        sym_poly r = modulo(e, p, k);
        bool same = r.n == p.n && r.k == p.k;
        for (uint32_t i = 0; i < p.n && same; i++)
            same = r.at[i].coef == p.at[i].coef && r.at[i].mono == p.at[i].mono;
        p = r;
        if (same || e->fail)
            break;
    }
    return p;
}

static sym_ex restored(sym_env *e, sym_ex x, uint32_t mono, int64_t g, int64_t extra)
{
    x = add(e, scale(e, x, g), sym_ex_const(extra));
    return mono ? multiply_ex(e, x, sym_ex_id(mono)) : x;
}

static sym_ex mod(sym_env *e, sym_ex a, sym_ex b)
{
    if (turned(e, b))
        return e->fail ? a : scale(e, mod(e, scale(e, a, -1), scale(e, b, -1)), -1);
    sym_poly p = sym_poly_of(e, a), d = sym_poly_of(e, b), q, r;
    uint32_t mono;
    int64_t g, extra;
    if (!b.id && b.k > 0)
        p = modulo_all(e, p, b.k);
    reduce(e, &p, &d, &mono, &g, &extra);
    if (e->fail)
        return sym_ex_const(0);
    if (d.n && split(e, p, d, &q, &r))
        p = r;
    if (!d.n && d.k == 1)
        return restored(e, sym_ex_const(0), mono, g, extra);
    if (!p.n && (!d.n || !p.k))
        return restored(e, sym_ex_const(d.n || !d.k ? 0 : floor_mod(p.k, d.k)), mono, g, extra);
    sym_ex x = sym_poly_intern(e, p), by = sym_poly_intern(e, d);
    sym_range range = sym_range_of(e, x);
    if (!e->fail && range.min >= 0 && sym_range_of(e, by).min > 0 && sym_decide(e, DIM_LT, x, by) == DIM_TRUE)
        return restored(e, x, mono, g, extra);
    return e->fail ? sym_ex_const(0) : restored(e, sym_ex_id(sym_atom(e, SYM_MOD, x, by)), mono, g, extra);
}

/* -- min and max --------------------------------------------------------------------------------------------------- */

static sym_ex pick(sym_env *e, enum sym_node_kind kind, sym_ex a, sym_ex b, bool prove)
{
    if (sym_ex_same(a, b))
        return a;
    if (!a.id && !b.id)
        return (a.k < b.k) == (kind == SYM_MIN) ? a : b;
    if (prove && sym_decide(e, DIM_LE, a, b) == DIM_TRUE)
        return kind == SYM_MIN ? a : b;
    if (prove && sym_decide(e, DIM_LE, b, a) == DIM_TRUE)
        return kind == SYM_MIN ? b : a;
    bool other = sym_ex_order(e, a, b) > 0;
    return sym_ex_id(sym_atom(e, kind, other ? b : a, other ? a : b));
}

/* -- comparisons --------------------------------------------------------------------------------------------------- */

static sym_ex condition(sym_env *e, enum sym_node_kind kind, sym_ex a, int64_t k)
{
    return sym_ex_id(sym_intern(e, &(sym_node){.kind = (uint8_t)kind, .a = a, .k = k}));
}

/* 0 or 1: a condition, or a product of these. */
static bool is_truth(const sym_env *e, uint32_t id)
{
    uint32_t n;
    const uint32_t *f = sym_factors(e, &id, &n);
    for (uint32_t i = 0; i < n; i++)
        if (!sym_is_boolean(e, f[i]))
            return false;
    return n > 0;
}

sym_ex sym_negate(sym_env *e, sym_ex x)
{
    if (!x.id)
        return sym_ex_const(x.k == 0);
    const sym_node *n = sym_at(e, x.id);
    switch (n->kind) {
    case SYM_EQ: return n->k == 0 && is_truth(e, n->a.id) ? n->a : condition(e, SYM_NE, n->a, n->k);
    case SYM_NE: return condition(e, SYM_EQ, n->a, n->k);
    case SYM_GE: return n->k == INT64_MIN ? sym_ex_const(0) : condition(e, SYM_LE, n->a, n->k - 1);
    case SYM_LE: return n->k == INT64_MAX ? sym_ex_const(0) : condition(e, SYM_GE, n->a, n->k + 1);
    default: return condition(e, SYM_EQ, x, 0);
    }
}

/* A condition against a number is the condition, its opposite, or decided. */
static sym_ex of_condition(sym_env *e, enum sym_node_kind kind, sym_ex x, int64_t k)
{
    bool at0 = kind == SYM_EQ ? 0 == k : kind == SYM_NE ? 0 != k : kind == SYM_GE ? 0 >= k : 0 <= k;
    bool at1 = kind == SYM_EQ ? 1 == k : kind == SYM_NE ? 1 != k : kind == SYM_GE ? 1 >= k : 1 <= k;
    return at0 == at1 ? sym_ex_const(at0) : at1 ? x : sym_negate(e, x);
}

/* p REL 0 as base REL k. */
static sym_ex relate(sym_env *e, enum sym_node_kind kind, sym_poly p)
{
    int64_t g = sym_poly_content(p), k = p.k;
    if (k == INT64_MIN || e->fail) {
        sym_fails(e, SYM_OVERFLOW);
        return sym_ex_const(0);
    }
    if (p.n == 0)
        return sym_ex_const(kind == SYM_EQ ? k == 0 : kind == SYM_NE ? k != 0 : kind == SYM_GE ? k >= 0 : k <= 0);
    if ((kind == SYM_EQ || kind == SYM_NE) && k % g != 0)
        return sym_ex_const(kind == SYM_NE);
    if (p.at[0].coef < 0) {
        g = -g;
        kind = kind == SYM_GE ? SYM_LE : kind == SYM_LE ? SYM_GE : kind;
    }
    sym_ex base = sym_poly_intern(e, divide_content(e, p, g, 0));
    int64_t right = kind == SYM_GE ? -floor_div(k, g) : floor_div(-k, g);
    if ((kind == SYM_LE && right == INT64_MAX) || (kind == SYM_GE && right == INT64_MIN))
        return sym_ex_const(1);
    if (is_truth(e, base.id))
        return of_condition(e, kind, base, right);
    return condition(e, kind, base, right);
}

/* a - b for a comparison; false: the constants alone decide, into *out. */
static bool difference(sym_env *e, enum dim_rel rel, sym_ex a, sym_ex b, sym_poly *out, sym_ex *decided)
{
    sym_poly p = sym_poly_of(e, a), q = sym_poly_of(e, b);
    sym_wide k = (sym_wide)p.k - q.k + (rel == DIM_LT);
    bool fits = k > INT64_MIN && k <= INT64_MAX;
    *decided = sym_ex_const(rel == DIM_NE || ((rel == DIM_LT || rel == DIM_LE) && k < 0));
    p.k = q.k = 0;
    *out = sym_poly_combine(e, p, 1, q, -1);
    out->k = fits ? (int64_t)k : 0;
    if (!out->n && !fits)
        return false;
    return fits;
}

static sym_ex compare(sym_env *e, enum dim_rel rel, sym_ex a, sym_ex b)
{
    sym_poly p;
    sym_ex decided;
    if (!difference(e, rel, a, b, &p, &decided))
        return decided;
    return relate(e, rel == DIM_EQ ? SYM_EQ : rel == DIM_NE ? SYM_NE : SYM_LE, p);
}

/* m*p REL 0 as p REL 0 where m is positive; of (in)equalities also where it is not 0. */
static sym_ex without_common(sym_env *e, sym_ex x)
{
    const sym_node *n = sym_at(e, x.id);
    if (!x.id || !sym_is_condition(n->kind) || n->k != 0)
        return x;
    sym_poly p = sym_poly_of(e, n->a);
    uint32_t mono = nonzero_part(e, common(e, p));
    bool equality = n->kind == SYM_EQ || n->kind == SYM_NE;
    if (!mono || (!equality && sym_range_mono(e, mono).min <= 0))
        return x;
    return relate(e, (enum sym_node_kind)n->kind, strip(e, p, mono));
}

/* x//k >= c is x >= c*k, x//k <= c is x < (c + 1)*k, for positive k. */
static sym_ex without_floordiv(sym_env *e, sym_ex x)
{
    const sym_node *n = sym_at(e, x.id), *d = x.id ? sym_at(e, n->a.id) : n;
    int64_t k = 0;
    if (!x.id || (n->kind != SYM_GE && n->kind != SYM_LE) || d->kind != SYM_FLOORDIV || d->b.id || d->b.k <= 0)
        return x;
    if (!checked_add(n->k, n->kind == SYM_LE, &k) || !checked_mul(k, d->b.k, &k))
        return x;
    return n->kind == SYM_GE ? sym_condition(e, DIM_LE, sym_ex_const(k), d->a)
                             : sym_condition(e, DIM_LT, d->a, sym_ex_const(k));
}

sym_ex sym_compare_plainly(sym_env *e, enum dim_rel rel, sym_ex a, sym_ex b)
{
    return compare(e, rel, a, b);
}

sym_ex sym_condition(sym_env *e, enum dim_rel rel, sym_ex a, sym_ex b)
{
    return without_floordiv(e, without_common(e, compare(e, rel, a, b)));
}

sym_ex sym_compare(sym_env *e, enum dim_rel rel, sym_ex a, sym_ex b)
{
    enum dim_truth t = sym_decide(e, rel, a, b);
    if (t != DIM_UNKNOWN)
        return sym_ex_const(t == DIM_TRUE);
    return sym_condition(e, rel, a, b);
}

/* -- all ----------------------------------------------------------------------------------------------------------- */

/* coef*others*(x//b) as coef*others/b * x, where b divides both. */
static bool fold_factor(sym_env *e, sym_term t, uint32_t atom, sym_poly *out)
{
    const sym_node *d = sym_at(e, atom);
    sym_poly q, rest;
    uint32_t others = 0;
    if (d->kind != SYM_FLOORDIV || !sym_ex_is(mod(e, d->a, d->b), 0) || !sym_mono_divide(e, t.mono, atom, &others))
        return false;
    sym_poly by = sym_poly_of(e, d->b);
    if (by.n) {
        if (!sym_poly_divide(e, sym_poly_term(e, t.coef, others), by, &q, &rest) || rest.n || rest.k)
            return false;
    } else {
        if (t.coef % by.k != 0)
            return false;
        q = sym_poly_term(e, t.coef / by.k, others);
    }
    *out = sym_poly_multiply(e, q, sym_poly_of(e, d->a));
    return !e->fail;
}

sym_ex sym_fold(sym_env *e, sym_ex x)
{
    sym_poly p = sym_poly_of(e, x), r = {NULL, 0, p.k};
    bool changed = false;
    for (uint32_t i = 0; i < p.n && e->divisible && !e->fail; i++) {
        sym_poly term = {&p.at[i], 1, 0};
        uint32_t mono = p.at[i].mono, n;
        const uint32_t *f = sym_factors(e, &mono, &n);
        bool folded = false;
        for (uint32_t j = 0; j < n && !folded; j++)
            folded = fold_factor(e, p.at[i], f[j], &term);
        changed |= folded;
        r = sym_poly_combine(e, r, 1, term, 1);
    }
    return changed && !e->fail ? sym_poly_intern(e, r) : x;
}

static sym_ex run(sym_env *e, enum sym_op op, sym_ex a, sym_ex b)
{
    switch (op) {
    case SYM_ADD: return add(e, a, b);
    case SYM_SUB: return sym_poly_intern(e, sym_poly_combine(e, sym_poly_of(e, a), 1, sym_poly_of(e, b), -1));
    case SYM_MUL: return sym_fold(e, multiply_ex(e, a, b));
    case SYM_DIV: return floordiv(e, a, b);
    case SYM_REM: return mod(e, a, b);
    case SYM_LEAST: return pick(e, SYM_MIN, a, b, true);
    default: return pick(e, SYM_MAX, a, b, true);
    }
}

sym_ex sym_apply(sym_env *e, enum sym_op op, sym_ex a, sym_ex b)
{
    const sym_memo *m = sym_recall(e, op, a, b);
    if (m)
        return sym_ex_of(m->result);
    sym_ex x = run(e, op, a, b);
    if (!e->fail)
        sym_remember(e, op, a, b, sym_dim(e, x));
    return x;
}

sym_ex sym_apply_plainly(sym_env *e, enum sym_op op, sym_ex a, sym_ex b)
{
    bool constants = !a.id && !b.id;
    switch (op) {
    case SYM_DIV: return constants ? sym_ex_const(floor_div(a.k, b.k)) : sym_ex_id(sym_atom(e, SYM_FLOORDIV, a, b));
    case SYM_REM: return constants ? sym_ex_const(floor_mod(a.k, b.k)) : sym_ex_id(sym_atom(e, SYM_MOD, a, b));
    case SYM_LEAST: return pick(e, SYM_MIN, a, b, false);
    case SYM_MOST: return pick(e, SYM_MAX, a, b, false);
    case SYM_MUL: return multiply_ex(e, a, b);
    default: return run(e, op, a, b);
    }
}
