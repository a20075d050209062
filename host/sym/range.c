/* Ranges and residues of expressions: what follows from the ranges of symbols and from facts.
 *
 * INT64_MIN and INT64_MAX stand for no bound; a bound that does not fit becomes one. Values of expressions fit 64 bits
 * (what does not is an error where it is computed), so that is no loss. */
#include "host/sym/expr.h"
#include "sdk/base/checked.h"

static int64_t clamp(sym_wide v)
{
    return v < INT64_MIN ? INT64_MIN : v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

static bool infinite(int64_t v)
{
    return v == INT64_MIN || v == INT64_MAX;
}

/* -- arithmetic ---------------------------------------------------------------------------------------------------- */

/* 0 times no bound is 0. */
static int64_t times(int64_t a, int64_t b)
{
    if (a == 0 || b == 0)
        return 0;
    if (infinite(a) || infinite(b))
        return (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
    return clamp((sym_wide)a * b);
}

static int64_t plus(int64_t a, int64_t b)
{
    return infinite(a) ? a : infinite(b) ? b : clamp((sym_wide)a + b);
}

sym_range sym_range_add(sym_range a, sym_range b)
{
    return (sym_range){plus(a.min, b.min), plus(a.max, b.max)};
}

sym_range sym_range_scale(sym_range r, int64_t k)
{
    int64_t x = times(r.min, k), y = times(r.max, k);
    return k < 0 ? (sym_range){y, x} : (sym_range){x, y};
}

static sym_range corners(const int64_t v[4])
{
    sym_range r = {v[0], v[0]};
    for (int i = 1; i < 4; i++) {
        r.min = v[i] < r.min ? v[i] : r.min;
        r.max = v[i] > r.max ? v[i] : r.max;
    }
    return r;
}

static sym_range multiply(sym_range a, sym_range b)
{
    return corners((int64_t[]){times(a.min, b.min), times(a.min, b.max), times(a.max, b.min), times(a.max, b.max)});
}

static sym_range square(sym_range a)
{
    sym_range r = multiply(a, a);
    bool crosses = a.min < 0 && a.max > 0;
    int64_t x = times(a.min, a.min), y = times(a.max, a.max);
    return (sym_range){crosses ? 0 : x < y ? x : y, r.max};
}

/* Of a bound: no bound over anything is no bound, anything over no bound is 0 or -1. */
static int64_t over(int64_t a, int64_t b)
{
    int64_t q = 0;
    if (infinite(a))
        return (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
    if (infinite(b))
        return a != 0 && (a < 0) != (b < 0) ? -1 : 0;
    return checked_floordiv(a, b, &q) ? q : INT64_MAX;
}

static sym_range divide(sym_range a, sym_range b)
{
    if (b.min <= 0 && b.max >= 0)
        return SYM_ANY;
    return corners((int64_t[]){over(a.min, b.min), over(a.min, b.max), over(a.max, b.min), over(a.max, b.max)});
}

static sym_range remainder_of(sym_range a, sym_range b)
{
    if (b.min > 0) {
        int64_t most = b.max == INT64_MAX ? INT64_MAX : b.max - 1;
        return (sym_range){0, a.min >= 0 && a.max < most ? a.max : most};
    }
    if (b.max < 0)
        return (sym_range){b.min == INT64_MIN ? INT64_MIN : b.min + 1, 0};
    return SYM_ANY;
}

/* -- expressions --------------------------------------------------------------------------------------------------- */

static sym_range of_product(sym_env *e, const sym_node *n)
{
    sym_range r = {1, 1};
    for (uint32_t i = 0; i < n->n; i++) {
        sym_range one = sym_range_of(e, sym_ex_id(n->factors[i]));
        bool pair = i + 1 < n->n && n->factors[i + 1] == n->factors[i];
        i += pair;
        r = multiply(r, pair ? square(one) : one);
    }
    return r;
}

static sym_range of_terms(sym_env *e, sym_poly p)
{
    sym_range r = {p.k, p.k};
    for (uint32_t i = 0; i < p.n; i++)
        r = sym_range_add(r, sym_range_scale(sym_range_mono(e, p.at[i].mono), p.at[i].coef));
    return r;
}

static sym_range derive(sym_env *e, const sym_node *n)
{
    sym_range a, b;
    switch (n->kind) {
    case SYM_SYMBOL: return SYM_ANY;
    case SYM_PRODUCT: return of_product(e, n);
    case SYM_SUM:
        if (n->base != n->one.mono)
            return sym_range_add(sym_range_scale(sym_range_of(e, sym_ex_id(n->base)), n->scale),
                                 (sym_range){n->k, n->k});
        return of_terms(e, (sym_poly){n->terms, n->n, n->k});
    default: break;
    }
    if (sym_is_condition(n->kind))
        return (sym_range){0, 1};
    a = sym_range_of(e, n->a);
    b = sym_range_of(e, n->b);
    switch (n->kind) {
    case SYM_FLOORDIV: return divide(a, b);
    case SYM_MOD: return remainder_of(a, b);
    case SYM_MIN: return (sym_range){a.min < b.min ? a.min : b.min, a.max < b.max ? a.max : b.max};
    default: return (sym_range){a.min > b.min ? a.min : b.min, a.max > b.max ? a.max : b.max};
    }
}

sym_range sym_range_of(sym_env *e, sym_ex x)
{
    if (!x.id)
        return (sym_range){x.k, x.k};
    sym_node *n = sym_at(e, x.id);
    if (n->range_epoch != e->epoch) {
        n->range = sym_range_meet(derive(e, n), n->known);
        n->range_epoch = e->epoch;
    }
    return n->range;
}

sym_range sym_range_mono(sym_env *e, uint32_t mono)
{
    return sym_range_of(e, mono ? sym_ex_id(mono) : sym_ex_const(1));
}

sym_range sym_range_poly(sym_env *e, sym_poly p)
{
    return of_terms(e, p);
}

/* -- residues ------------------------------------------------------------------------------------------------------ */

/* A value is congruent to r modulo m: 0: it is r; 1: nothing is known. */
typedef struct { int64_t m, r; } congruence;
static const congruence NOTHING = {1, 0};

static congruence reduced(int64_t m, int64_t r)
{
    int64_t out = r;
    if (m)
        checked_floormod(r, m, &out);
    return (congruence){m, out};
}

static congruence sum(congruence a, congruence b)
{
    int64_t r = 0;
    return checked_add(a.r, b.r, &r) ? reduced(sym_gcd(a.m, b.m), r) : NOTHING;
}

/* (m t + r)(n u + s) = mn tu + ms t + nr u + rs. */
static congruence product(congruence a, congruence b)
{
    int64_t mn = 0, ms = 0, nr = 0, rs = 0;
    if (!checked_mul(a.m, b.m, &mn) || !checked_mul(a.m, b.r, &ms) || !checked_mul(b.m, a.r, &nr) ||
        !checked_mul(a.r, b.r, &rs))
        return NOTHING;
    int64_t m = sym_gcd(sym_gcd(mn, ms), nr);
    return m == 1 ? NOTHING : reduced(m, rs);
}

static congruence of_atom(const sym_env *e, uint32_t id)
{
    const sym_node *n = sym_at(e, id);
    return (congruence){n->modulus, n->residue};
}

static congruence of_mono(sym_env *e, uint32_t mono)
{
    uint32_t n;
    const uint32_t *f = sym_factors(e, &mono, &n);
    congruence r = mono ? of_atom(e, mono) : (congruence){0, 1};
    if (n < 2 || r.m != 1)
        return r;
    r = (congruence){0, 1};
    for (uint32_t i = 0; i < n; i++)
        r = product(r, of_atom(e, f[i]));
    return r;
}

/* Through the base of a polynomial, of which a residue may be known though none is of its terms. */
static congruence of_base(sym_env *e, sym_poly p)
{
    if (p.n < 2 || !e->divisible)
        return NOTHING;
    sym_ex x = sym_poly_intern(e, p);
    const sym_node *n = sym_at(e, x.id);
    congruence b = product((congruence){0, n->scale}, of_atom(e, n->base));
    return n->kind == SYM_SUM ? sum(b, (congruence){0, n->k}) : b;
}

void sym_residue(sym_env *e, sym_poly p, int64_t *modulus, int64_t *residue)
{
    congruence r = {0, p.k};
    for (uint32_t i = 0; i < p.n; i++)
        r = sum(r, product((congruence){0, p.at[i].coef}, of_mono(e, p.at[i].mono)));
    congruence b = of_base(e, p);
    r = b.m > r.m ? b : r;
    *modulus = r.m;
    *residue = r.r;
}
