/* Polynomials over atoms: sums, products and division, with checked factors. */
#include "host/sym/expr.h"
#include "sdk/base/checked.h"
#include <string.h>

int64_t sym_gcd(int64_t a, int64_t b)
{
    if (a == INT64_MIN || b == INT64_MIN)
        return 1;
    a = a < 0 ? -a : a;
    b = b < 0 ? -b : b;
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

int64_t sym_poly_content(sym_poly p)
{
    int64_t g = 0;
    for (uint32_t i = 0; i < p.n && g != 1; i++)
        g = sym_gcd(g, p.at[i].coef);
    return g;
}

sym_poly sym_poly_of(const sym_env *e, sym_ex x)
{
    if (!x.id)
        return (sym_poly){NULL, 0, x.k};
    const sym_node *n = sym_at(e, x.id);
    return n->kind == SYM_SUM ? (sym_poly){n->terms, n->n, n->k} : (sym_poly){&n->one, 1, 0};
}

sym_ex sym_poly_intern(sym_env *e, sym_poly p)
{
    if (p.n == 0)
        return sym_ex_const(p.k);
    if (p.n == 1 && p.k == 0 && p.at[0].coef == 1)
        return sym_ex_id(p.at[0].mono);
    return sym_ex_id(sym_intern(e, &(sym_node){.kind = SYM_SUM, .n = p.n, .k = p.k, .terms = p.at}));
}

/* -- monomials ----------------------------------------------------------------------------------------------------- */

static uint32_t intern_factors(sym_env *e, const uint32_t *f, uint32_t n)
{
    if (n <= 1)
        return n ? f[0] : 0;
    return sym_intern(e, &(sym_node){.kind = SYM_PRODUCT, .n = n, .factors = f});
}

static uint32_t *room_for(sym_env *e, uint32_t n)
{
    uint32_t *f = n <= SYM_TERMS_MAX ? arena_array(&e->scratch, n, sizeof *f) : NULL;
    if (!f)
        sym_fails(e, n <= SYM_TERMS_MAX ? SYM_NOMEM : SYM_LARGE);
    return f;
}

uint32_t sym_mono_multiply(sym_env *e, uint32_t a, uint32_t b)
{
    if (!a || !b)
        return a ? a : b;
    uint32_t n, m, k = 0, i = 0, j = 0;
    const uint32_t *f = sym_factors(e, &a, &n), *g = sym_factors(e, &b, &m);
    uint32_t *to = room_for(e, n + m);
    if (!to)
        return 0;
    while (i < n || j < m) {
        bool first = j == m || (i < n && sym_atom_order(e, f[i], g[j]) <= 0);
        uint32_t next = first ? f[i++] : g[j++];
        if (!(k && to[k - 1] == next && sym_is_boolean(e, next))) /* the square of 0 or 1 is itself */
            to[k++] = next;
    }
    return intern_factors(e, to, k);
}

bool sym_mono_divide(sym_env *e, uint32_t a, uint32_t b, uint32_t *out)
{
    uint32_t n, m, k = 0, j = 0;
    const uint32_t *f = sym_factors(e, &a, &n), *g = sym_factors(e, &b, &m);
    uint32_t *to = m <= n ? room_for(e, n + 1) : NULL;
    if (!to)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (j < m && f[i] == g[j])
            j++;
        else
            to[k++] = f[i];
    }
    if (j < m)
        return false;
    *out = intern_factors(e, to, k);
    return true;
}

uint32_t sym_mono_gcd(sym_env *e, uint32_t a, uint32_t b)
{
    uint32_t n, m, k = 0, i = 0, j = 0;
    const uint32_t *f = sym_factors(e, &a, &n), *g = sym_factors(e, &b, &m);
    uint32_t *to = room_for(e, n + 1);
    while (to && i < n && j < m) {
        int r = sym_atom_order(e, f[i], g[j]);
        if (r == 0)
            to[k++] = f[i];
        i += r <= 0;
        j += r >= 0;
    }
    return to ? intern_factors(e, to, k) : 0;
}

/* -- sums ---------------------------------------------------------------------------------------------------------- */

static sym_term *terms_for(sym_env *e, uint64_t n)
{
    sym_term *t = n <= SYM_TERMS_MAX ? arena_array(&e->scratch, n, sizeof *t) : NULL;
    if (!t)
        sym_fails(e, n <= SYM_TERMS_MAX ? SYM_NOMEM : SYM_LARGE);
    return t;
}

sym_poly sym_poly_term(sym_env *e, int64_t coef, uint32_t mono)
{
    if (!mono || !coef)
        return (sym_poly){NULL, 0, mono ? 0 : coef};
    sym_term *t = terms_for(e, 1);
    if (!t)
        return (sym_poly){NULL, 0, 0};
    *t = (sym_term){coef, mono};
    return (sym_poly){t, 1, 0};
}

/* ca*x + cb*y; a factor of INT64_MIN is refused too, so that all can be negated. */
static int64_t scaled_sum(sym_env *e, int64_t x, int64_t ca, int64_t y, int64_t cb)
{
    int64_t p = 0, q = 0, r = 0;
    if (!checked_mul(x, ca, &p) || !checked_mul(y, cb, &q) || !checked_add(p, q, &r))
        sym_fails(e, SYM_OVERFLOW);
    return r;
}

static int64_t factor(sym_env *e, int64_t v)
{
    if (v == INT64_MIN)
        sym_fails(e, SYM_OVERFLOW);
    return v == INT64_MIN ? 1 : v;
}

sym_poly sym_poly_combine(sym_env *e, sym_poly a, int64_t ca, sym_poly b, int64_t cb)
{
    sym_term *to = terms_for(e, (uint64_t)a.n + b.n);
    uint32_t n = 0, i = 0, j = 0;
    while (to && (i < a.n || j < b.n)) {
        int r = i == a.n ? 1 : j == b.n ? -1 : sym_mono_order(e, a.at[i].mono, b.at[j].mono);
        uint32_t mono = r <= 0 ? a.at[i].mono : b.at[j].mono;
        int64_t coef = scaled_sum(e, r <= 0 ? a.at[i].coef : 0, ca, r >= 0 ? b.at[j].coef : 0, cb);
        if (coef)
            to[n++] = (sym_term){factor(e, coef), mono};
        i += r <= 0;
        j += r >= 0;
    }
    return (sym_poly){to, n, scaled_sum(e, a.k, ca, b.k, cb)};
}

/* Adds coef*mono to sorted terms that have room. */
static void insert(sym_env *e, sym_term *to, uint32_t *n, int64_t coef, uint32_t mono)
{
    uint32_t low = 0, high = *n;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        int r = sym_mono_order(e, to[mid].mono, mono);
        if (r == 0) {
            to[mid].coef = factor(e, scaled_sum(e, to[mid].coef, 1, coef, 1));
            return;
        }
        low = r < 0 ? mid + 1 : low;
        high = r < 0 ? high : mid;
    }
    memmove(to + low + 1, to + low, (*n - low) * sizeof *to);
    to[low] = (sym_term){factor(e, coef), mono};
    ++*n;
}

static sym_poly without_zeros(sym_term *t, uint32_t n, int64_t k)
{
    uint32_t m = 0;
    for (uint32_t i = 0; i < n; i++)
        if (t[i].coef)
            t[m++] = t[i];
    return (sym_poly){t, m, k};
}

sym_poly sym_poly_multiply(sym_env *e, sym_poly a, sym_poly b)
{
    if (b.n == 0)
        return sym_poly_combine(e, a, b.k, (sym_poly){NULL, 0, 0}, 1);
    if (a.n == 0)
        return sym_poly_combine(e, b, a.k, (sym_poly){NULL, 0, 0}, 1);
    uint32_t n = 0;
    sym_term *to = terms_for(e, (uint64_t)a.n * b.n + a.n + b.n);
    if (!to)
        return (sym_poly){NULL, 0, 0};
    for (uint32_t i = 0; i <= a.n; i++) {
        int64_t c = i < a.n ? a.at[i].coef : a.k;
        uint32_t mono = i < a.n ? a.at[i].mono : 0;
        for (uint32_t j = 0; j < b.n && c && !e->fail; j++)
            insert(e, to, &n, scaled_sum(e, b.at[j].coef, c, 0, 0), sym_mono_multiply(e, mono, b.at[j].mono));
        if (i < a.n && b.k && !e->fail)
            insert(e, to, &n, scaled_sum(e, c, b.k, 0, 0), mono);
    }
    return without_zeros(to, n, scaled_sum(e, a.k, b.k, 0, 0));
}

/* What term t is of b's first term, if that divides it. */
static bool divide_term(sym_env *e, sym_term t, sym_poly b, sym_poly *q)
{
    int64_t by = b.n ? b.at[0].coef : b.k;
    uint32_t mono = 0;
    if (by == 0 || by == INT64_MIN || t.coef == INT64_MIN || t.coef % by != 0 ||
        !sym_mono_divide(e, t.mono, b.n ? b.at[0].mono : 0, &mono))
        return false;
    *q = sym_poly_term(e, t.coef / by, mono);
    return true;
}

bool sym_poly_divide(sym_env *e, sym_poly a, sym_poly b, sym_poly *q, sym_poly *r)
{
    enum { STEPS = 64 };
    sym_poly rest = {NULL, 0, 0}, part;
    *q = (sym_poly){NULL, 0, 0};
    for (uint32_t steps = 0; a.n && !e->fail; steps++) {
        if (steps < STEPS && divide_term(e, a.at[0], b, &part)) {
            *q = sym_poly_combine(e, *q, 1, part, 1);
            a = sym_poly_combine(e, a, 1, sym_poly_multiply(e, part, b), -1);
        } else {
            rest = sym_poly_combine(e, rest, 1, (sym_poly){a.at, 1, 0}, 1);
            a = (sym_poly){a.at + 1, a.n - 1, a.k};
        }
    }
    *r = (sym_poly){rest.at, rest.n, a.k};
    return !e->fail && (q->n || q->k);
}
