/* Nodes of expressions: their order, and finding them again by content. */
#include "host/sym/expr.h"
#include "sdk/base/checked.h"
#include "sdk/base/hash.h"
#include <string.h>

bool sym_is_boolean(const sym_env *e, uint32_t id)
{
    return id && sym_is_condition(sym_at(e, id)->kind);
}

/* The factors of a monomial; *mono is where the id of an atom is kept. */
const uint32_t *sym_factors(const sym_env *e, const uint32_t *mono, uint32_t *n)
{
    const sym_node *at = sym_at(e, *mono);
    if (*mono && at->kind == SYM_PRODUCT) {
        *n = at->n;
        return at->factors;
    }
    *n = *mono != 0;
    return mono;
}

/* -- order --------------------------------------------------------------------------------------------------------- */

static int sign_of(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

int sym_ex_order(const sym_env *e, sym_ex a, sym_ex b)
{
    if (a.id == b.id)
        return sign_of(a.k, b.k);
    if (!a.id || !b.id)
        return a.id ? 1 : -1;
    sym_poly p = sym_poly_of(e, a), q = sym_poly_of(e, b);
    for (uint32_t i = 0; i < p.n && i < q.n; i++) {
        int r = sym_mono_order(e, p.at[i].mono, q.at[i].mono);
        r = r ? r : sign_of(p.at[i].coef, q.at[i].coef);
        if (r)
            return r;
    }
    return p.n != q.n ? sign_of(p.n, q.n) : sign_of(p.k, q.k);
}

int sym_atom_order(const sym_env *e, uint32_t a, uint32_t b)
{
    if (a == b)
        return 0;
    const sym_node *x = sym_at(e, a), *y = sym_at(e, b);
    if (x->kind != y->kind)
        return sign_of(x->kind, y->kind);
    if (x->kind == SYM_SYMBOL)
        return sign_of(x->n, y->n);
    int r = sym_ex_order(e, x->a, y->a);
    r = r ? r : sym_ex_order(e, x->b, y->b);
    return r ? r : sign_of(x->k, y->k);
}

int sym_mono_order(const sym_env *e, uint32_t a, uint32_t b)
{
    if (a == b)
        return 0;
    uint32_t n, m;
    const uint32_t *f = sym_factors(e, &a, &n), *g = sym_factors(e, &b, &m);
    if (n != m)
        return n > m ? -1 : 1;
    int r = 0;
    for (uint32_t i = 0; i < n && !r; i++)
        r = sym_atom_order(e, f[i], g[i]);
    return r;
}

/* -- hints --------------------------------------------------------------------------------------------------------- */

bool sym_ex_hint(const sym_env *e, sym_ex x, int64_t *hint)
{
    const sym_node *n = sym_at(e, x.id);
    *hint = x.id ? n->hint : x.k;
    return !x.id || n->has_hint;
}

static bool hint_of_pair(const sym_env *e, const sym_node *n, int64_t *out)
{
    int64_t a = 0, b = 0;
    return n->kind != SYM_SYMBOL && sym_ex_hint(e, n->a, &a) && sym_ex_hint(e, n->b, &b) &&
           sym_operate(n->kind, a, b, n->k, out);
}

static bool hint_of_product(const sym_env *e, const sym_node *n, int64_t *out)
{
    int64_t all = 1, one = 0;
    for (uint32_t i = 0; i < n->n; i++)
        if (!sym_ex_hint(e, sym_ex_id(n->factors[i]), &one) || !checked_mul(all, one, &all))
            return false;
    *out = all;
    return true;
}

static bool hint_of_sum(const sym_env *e, const sym_node *n, int64_t *out)
{
    sym_wide all = n->k;
    int64_t one = 0;
    for (uint32_t i = 0; i < n->n; i++)
        if (!sym_ex_hint(e, sym_ex_id(n->terms[i].mono), &one) ||
            __builtin_add_overflow(all, (sym_wide)n->terms[i].coef * one, &all))
            return false;
    *out = (int64_t)all;
    return all >= INT64_MIN && all <= INT64_MAX;
}

static bool hint_of(const sym_env *e, const sym_node *n, int64_t *out)
{
    return n->kind == SYM_SUM       ? hint_of_sum(e, n, out)
           : n->kind == SYM_PRODUCT ? hint_of_product(e, n, out)
                                    : hint_of_pair(e, n, out);
}

/* -- finding ------------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, uint64_t v)
{
    return hash_u64(h ^ (v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2)));
}

static uint64_t hash_node(const sym_node *n)
{
    uint64_t h = mix(n->kind, (uint64_t)n->k);
    if (n->kind == SYM_SUM) {
        for (uint32_t i = 0; i < n->n; i++)
            h = mix(h, (uint64_t)n->terms[i].coef * 0x9e3779b97f4a7c15u + n->terms[i].mono);
    } else if (n->kind == SYM_PRODUCT) {
        for (uint32_t i = 0; i < n->n; i++)
            h = mix(h, n->factors[i]);
    } else {
        h = mix(h, ((uint64_t)n->a.id << 32 | n->b.id) + n->n);
        h = mix(h, (uint64_t)n->a.k * 0xc2b2ae3d27d4eb4fu + (uint64_t)n->b.k);
    }
    return h;
}

static bool same_terms(const sym_node *a, const sym_node *b)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (a->terms[i].coef != b->terms[i].coef || a->terms[i].mono != b->terms[i].mono)
            return false;
    return true;
}

static bool same_node(const sym_node *a, const sym_node *b)
{
    if (a->hash != b->hash || a->kind != b->kind || a->n != b->n || a->k != b->k)
        return false;
    if (a->kind == SYM_SUM)
        return same_terms(a, b);
    if (a->kind == SYM_PRODUCT)
        return memcmp(a->factors, b->factors, a->n * sizeof *a->factors) == 0;
    return sym_ex_same(a->a, b->a) && sym_ex_same(a->b, b->b);
}

void sym_index_again(sym_env *e)
{
    if (e->table_cap)
        memset(e->table, 0, e->table_cap * sizeof *e->table);
    for (uint32_t id = 1; id <= e->len; id++) {
        uint32_t at = (uint32_t)sym_at(e, id)->hash & (e->table_cap - 1);
        while (e->table[at])
            at = (at + 1) & (e->table_cap - 1);
        e->table[at] = id;
    }
}

static bool grow_table(sym_env *e)
{
    uint32_t cap = e->table_cap ? e->table_cap * 2 : 256;
    uint32_t *table = calloc(cap, sizeof *table);
    if (!table)
        return false;
    free(e->table);
    e->table = table;
    e->table_cap = cap;
    sym_index_again(e);
    return true;
}

/* Room for one more node; NULL: out of memory. */
static sym_node *new_node(sym_env *e)
{
    uint32_t id = e->len + 1;
    if (id == UINT32_MAX)
        return NULL;
    if (id / SYM_CHUNK >= e->nchunks) {
        sym_node **chunks = realloc(e->chunks, (e->nchunks + 1) * sizeof *chunks);
        if (chunks)
            e->chunks = chunks;
        sym_node *chunk = chunks ? calloc(SYM_CHUNK, sizeof *chunk) : NULL;
        if (!chunk)
            return NULL;
        e->chunks[e->nchunks++] = chunk;
    }
    return &e->chunks[id / SYM_CHUNK][id % SYM_CHUNK];
}

/* The lists that content points to become the environment's. */
static bool own_lists(sym_env *e, sym_node *n)
{
    if (n->kind == SYM_SUM)
        return (n->terms = arena_memdup(&e->memory, n->terms, n->n * sizeof *n->terms)) != NULL;
    if (n->kind == SYM_PRODUCT)
        return (n->factors = arena_memdup(&e->memory, n->factors, n->n * sizeof *n->factors)) != NULL;
    return true;
}

/* The i-th operand's node; NULL: no more. Constants are node 0. */
static const sym_node *operand(const sym_env *e, const sym_node *n, uint32_t i)
{
    if (n->kind == SYM_SUM || n->kind == SYM_PRODUCT)
        return i >= n->n ? NULL : sym_at(e, n->kind == SYM_SUM ? n->terms[i].mono : n->factors[i]);
    return n->kind == SYM_SYMBOL || i >= 2 ? NULL : sym_at(e, i ? n->b.id : n->a.id);
}

static bool measure(sym_env *e, sym_node *n)
{
    const sym_node *x;
    uint64_t depth = 0, weight = 1;
    for (uint32_t i = 0; (x = operand(e, n, i)) != NULL; i++) {
        depth = x->depth > depth ? x->depth : depth;
        weight += x->weight;
    }
    if (depth >= SYM_DEPTH || weight > SYM_WEIGHT) {
        sym_fails(e, SYM_LARGE);
        return false;
    }
    n->depth = (uint16_t)(depth + 1);
    n->weight = (uint32_t)weight;
    return true;
}

/* Both lists, each number once, in order; one that holds the other is shared. */
static bool join_symbols(sym_env *e, sym_node *n, const sym_node *x)
{
    const uint32_t *a = n->symbols, *b = x->symbols;
    uint32_t na = n->nsymbols, nb = x->nsymbols, k = 0, i = 0, j = 0;
    uint32_t *to = na && nb && a != b ? arena_array(&e->memory, (size_t)na + nb, sizeof *to) : NULL;
    if (!na || !nb || a == b) {
        n->symbols = na ? a : b;
        n->nsymbols = na ? na : nb;
        return true;
    }
    while (to && (i < na || j < nb)) {
        bool first = j == nb || (i < na && a[i] <= b[j]);
        uint32_t next = first ? a[i] : b[j];
        i += i < na && a[i] == next;
        j += j < nb && b[j] == next;
        to[k++] = next;
    }
    n->symbols = k == na ? a : k == nb ? b : to;
    n->nsymbols = k;
    return to != NULL;
}

static bool find_symbols(sym_env *e, sym_node *n)
{
    const sym_node *x;
    if (n->kind == SYM_SYMBOL) {
        n->symbols = arena_memdup(&e->memory, &n->n, sizeof n->n);
        n->nsymbols = 1;
        return n->symbols != NULL;
    }
    for (uint32_t i = 0; (x = operand(e, n, i)) != NULL; i++)
        if (!join_symbols(e, n, x))
            return false;
    return true;
}

/* What follows from the content. */
static void complete(sym_env *e, sym_node *n, uint32_t id)
{
    if (n->kind != SYM_SYMBOL) {
        for (uint32_t i = 0; i < n->nsymbols; i++)
            n->unbacked |= e->symbols.at[n->symbols[i]].unbacked;
        n->has_hint = hint_of(e, n, &n->hint);
    }
    n->known = SYM_ANY;
    n->modulus = 1;
    n->one = (sym_term){1, id};
    n->base = id;
    n->scale = 1;
}

/* Of a sum: the sum without its constant and the factor that its terms share, which facts are about. */
static void find_base(sym_env *e, sym_node *n)
{
    sym_poly p = {n->terms, n->n, 0};
    int64_t g = sym_poly_content(p);
    g = n->terms[0].coef < 0 ? -g : g;
    if (g == 1 && n->k == 0)
        return;
    sym_term *terms = arena_array(&e->scratch, n->n, sizeof *terms);
    if (!terms) {
        sym_fails(e, SYM_NOMEM);
        return;
    }
    for (uint32_t i = 0; i < n->n; i++)
        terms[i] = (sym_term){n->terms[i].coef / g, n->terms[i].mono};
    uint32_t base = sym_poly_intern(e, (sym_poly){terms, n->n, 0}).id;
    n->base = base ? base : n->base;
    n->scale = base ? g : 1;
}

static uint32_t add(sym_env *e, const sym_node *want, uint32_t slot)
{
    sym_node *n = new_node(e);
    if (!n) {
        sym_fails(e, SYM_NOMEM);
        return 0;
    }
    *n = *want;
    if (!measure(e, n))
        return 0;
    if (!own_lists(e, n) || !find_symbols(e, n)) {
        sym_fails(e, SYM_NOMEM);
        return 0;
    }
    uint32_t id = e->len + 1;
    complete(e, n, id);
    e->len = id;
    e->table[slot] = id;
    if (n->kind == SYM_SUM)
        find_base(e, n);
    return id;
}

uint32_t sym_intern(sym_env *e, const sym_node *want)
{
    if (e->fail)
        return 0;
    if ((uint64_t)e->len * 2 >= e->table_cap && !grow_table(e)) {
        sym_fails(e, SYM_NOMEM);
        return 0;
    }
    sym_node n = *want;
    n.hash = hash_node(&n);
    uint32_t at = (uint32_t)n.hash & (e->table_cap - 1);
    for (; e->table[at]; at = (at + 1) & (e->table_cap - 1))
        if (same_node(sym_at(e, e->table[at]), &n))
            return e->table[at];
    return add(e, &n, at);
}

void sym_hint_again(sym_env *e, sym_node *n)
{
    n->has_hint = hint_of(e, n, &n->hint);
}

uint32_t sym_atom(sym_env *e, enum sym_node_kind kind, sym_ex a, sym_ex b)
{
    return sym_intern(e, &(sym_node){.kind = (uint8_t)kind, .a = a, .b = b});
}
