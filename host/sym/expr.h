/* Inside an environment: nodes, polynomials, ranges. For the files of this room alone.
 *
 * A node is an atom (a symbol, floordiv, mod, min, max, a comparison), a PRODUCT of at least two atoms, or a SUM. Nodes
 * are found again by their content, so equal content is one id. Factors are sorted by sym_atom_order, the terms of a
 * sum by sym_mono_order, largest first; both orders look at content, never at ids, so that what a text reads back to
 * is laid out as what was printed. A monomial is the id of an atom or a PRODUCT; 0 stands for 1.
 *
 * What is known of a node (its range, a residue) is kept in it and grows alone. `epoch` counts what was learned: what
 * was derived is kept with the epoch in which it was. Failures are sticky in `fail` until an entry point reports them:
 * what is computed after one is of no use, but sound in memory. Temporary polynomials live in `scratch`, which entry
 * points reset. */
#ifndef HOST_SYM_EXPR_H
#define HOST_SYM_EXPR_H
#include "host/sym/env.h"
#include "sdk/base/arena.h"
#include "sdk/base/checked.h"
#include "sdk/base/vec.h"
#include <stdatomic.h>

__extension__ typedef __int128 sym_wide; /* products and sums of sizes, before they are looked at */

/* An operand: node `id`, or the constant k where id is 0. */
typedef struct { int64_t k; uint32_t id; } sym_ex;
static inline sym_ex sym_ex_const(int64_t k) { return (sym_ex){k, 0}; }
static inline sym_ex sym_ex_id(uint32_t id) { return (sym_ex){0, id}; }
static inline sym_ex sym_ex_of(bp_dim d) { return d.sym ? sym_ex_id(d.sym) : sym_ex_const(d.value); }
static inline bool sym_ex_is(sym_ex x, int64_t k) { return !x.id && x.k == k; }
static inline bool sym_ex_same(sym_ex a, sym_ex b) { return a.id == b.id && a.k == b.k; }

enum sym_node_kind {
    SYM_SYMBOL, SYM_FLOORDIV, SYM_MOD, SYM_MIN, SYM_MAX, /* a, b */
    SYM_EQ, SYM_NE, SYM_GE, SYM_LE,                      /* a against the constant k; a is a base */
    SYM_PRODUCT, SYM_SUM
};
static inline bool sym_is_condition(uint8_t kind) { return kind >= SYM_EQ && kind <= SYM_LE; }

/* What an atom of two operands, or a condition on a, is. False: a division by zero, or an overflow. */
static inline bool sym_operate(uint8_t kind, int64_t a, int64_t b, int64_t k, int64_t *out)
{
    switch (kind) {
    case SYM_FLOORDIV: return checked_floordiv(a, b, out);
    case SYM_MOD: return checked_floormod(a, b, out);
    case SYM_MIN: *out = a < b ? a : b; return true;
    case SYM_MAX: *out = a > b ? a : b; return true;
    case SYM_EQ: *out = a == k; return true;
    case SYM_NE: *out = a != k; return true;
    case SYM_GE: *out = a >= k; return true;
    default: *out = a <= k; return true;
    }
}

/* Inclusive. INT64_MIN and INT64_MAX are no bounds; empty (min > max) is what cannot be. */
typedef struct { int64_t min, max; } sym_range;
#define SYM_ANY ((sym_range){INT64_MIN, INT64_MAX})

typedef struct { int64_t coef; uint32_t mono; } sym_term;

typedef struct {
    uint8_t kind;
    uint16_t depth;        /* of operands, at most SYM_DEPTH */
    uint32_t weight;       /* nodes below it, as a tree; at most SYM_WEIGHT, so that all can be walked */
    uint32_t nsymbols;     /* their numbers, in order */
    const uint32_t *symbols;
    bool unbacked;         /* a symbol of it is */
    bool has_hint;         /* false: unbacked, or it does not fit */
    bool listed;           /* among env.bounded */
    uint32_t n;            /* SUM: terms; PRODUCT: factors; SYMBOL: its number */
    uint64_t hash;
    int64_t k;             /* SUM: the constant term; conditions: the right side */
    int64_t hint;
    uint32_t base;         /* SUM: this is scale*base + k, base a SUM without constant, first factor > 0, gcd 1, or a */
    int64_t scale;         /*   monomial; all others: itself and 1 */
    sym_range known;       /* by facts */
    int64_t modulus, residue; /* by facts: congruent to residue; modulus 1: nothing */
    sym_range range;       /* derived */
    uint32_t range_epoch, plain_epoch;
    sym_ex plain;          /* derived: what it is by the equalities that are known */
    sym_term one;          /* 1 * itself */
    const sym_term *terms;
    const uint32_t *factors;
    sym_ex a, b;
} sym_node;

/* A polynomial: terms in order, and a constant. */
typedef struct { const sym_term *at; uint32_t n; int64_t k; } sym_poly;

enum sym_fail { SYM_FINE, SYM_NOMEM, SYM_OVERFLOW, SYM_LARGE, SYM_ZERO };
enum { SYM_CHUNK = 256, SYM_TERMS_MAX = 2000, SYM_MEMO = 1024, SYM_DEPTH = 400, SYM_WEIGHT = 20000 };

/* The last results of arithmetic and proofs, by what was asked: most of what a graph asks was asked before. Equal
 * expressions have equal hints, so a result's is kept too. */
typedef struct { uint32_t op, epoch; sym_ex a, b; bp_dim result; } sym_memo;

struct sym_env {
    atomic_uint refs;
    arena memory, scratch;
    sym_node **chunks;
    uint32_t nchunks, len;         /* ids 1 .. len */
    uint32_t *table, table_cap;    /* open addressing, of ids */
    VEC(sym_symbol) symbols;
    VEC(uint32_t) ids;             /* of symbols */
    VEC(sym_ex) replaced;          /* of symbols: what each is; itself: no more is known */
    VEC(sym_fact) facts;
    VEC(uint32_t) bounded;         /* bases other than symbols that facts bound */
    uint32_t tag, epoch, nunbacked;
    uint32_t depth, budget;        /* of proofs */
    uint32_t divisible;            /* how many residues are known */
    bool captures_data;            /* sym_capture_data */
    bool contradiction, stale;     /* stale: facts are to be learned again, by new equalities */
    enum sym_fail fail;
    sym_memo *memo;
};

static inline sym_node *sym_at(const sym_env *e, uint32_t id)
{
    id = id <= e->len ? id : 0;
    return &e->chunks[id / SYM_CHUNK][id % SYM_CHUNK];
}
/* Two places in a row for what was asked. */
static inline sym_memo *sym_memo_places(const sym_env *e, uint32_t op, sym_ex a, sym_ex b)
{
    uint64_t x = (a.id + (uint64_t)a.k) * 0x9e3779b97f4a7c15u, y = (b.id + (uint64_t)b.k + op) * 0xc2b2ae3d27d4eb4fu;
    uint64_t h = x ^ y;
    return &e->memo[(h ^ h >> 32) % SYM_MEMO & ~1u];
}
static inline bool sym_memo_is(const sym_env *e, const sym_memo *m, uint32_t op, sym_ex a, sym_ex b)
{
    return m->epoch == e->epoch && m->op == op && sym_ex_same(m->a, a) && sym_ex_same(m->b, b);
}
/* NULL: it was not asked lately, or something was learned since. */
static inline const sym_memo *sym_recall(const sym_env *e, uint32_t op, sym_ex a, sym_ex b)
{
    const sym_memo *m = sym_memo_places(e, op, a, b);
    return sym_memo_is(e, m, op, a, b) ? m : sym_memo_is(e, m + 1, op, a, b) ? m + 1 : NULL;
}
static inline void sym_remember(sym_env *e, uint32_t op, sym_ex a, sym_ex b, bp_dim result)
{
    sym_memo *m = sym_memo_places(e, op, a, b);
    if (!sym_memo_is(e, m, op, a, b))
        m[1] = m[0];
    m[0] = (sym_memo){op, e->epoch, a, b, result};
}
static inline void sym_fails(sym_env *e, enum sym_fail f) { e->fail = e->fail ? e->fail : f; }

/* -- nodes (expr.c) -- */
/* The id of a node with this content (kind, n, k, terms, factors, a, b); 0: failed. */
uint32_t sym_intern(sym_env *e, const sym_node *want);
/* For copies: the hint of a node by those of its operands; the table of ids 1 .. len. */
void sym_hint_again(sym_env *e, sym_node *n);
void sym_index_again(sym_env *e);
uint32_t sym_atom(sym_env *e, enum sym_node_kind kind, sym_ex a, sym_ex b);
int sym_atom_order(const sym_env *e, uint32_t a, uint32_t b);
int sym_mono_order(const sym_env *e, uint32_t a, uint32_t b);  /* < 0: a comes first: the larger degree */
int sym_ex_order(const sym_env *e, sym_ex a, sym_ex b);
bool sym_is_boolean(const sym_env *e, uint32_t id);           /* a condition */
const uint32_t *sym_factors(const sym_env *e, const uint32_t *mono, uint32_t *n);
bool sym_ex_hint(const sym_env *e, sym_ex x, int64_t *hint);

/* -- polynomials (poly.c) -- */
sym_poly sym_poly_of(const sym_env *e, sym_ex x);
sym_ex sym_poly_intern(sym_env *e, sym_poly p);
sym_poly sym_poly_combine(sym_env *e, sym_poly a, int64_t ca, sym_poly b, int64_t cb);  /* ca*a + cb*b */
sym_poly sym_poly_multiply(sym_env *e, sym_poly a, sym_poly b);
sym_poly sym_poly_term(sym_env *e, int64_t coef, uint32_t mono);
/* a = q*b + r, q of the terms that b's first term divides. False: no q but 0. */
bool sym_poly_divide(sym_env *e, sym_poly a, sym_poly b, sym_poly *q, sym_poly *r);
uint32_t sym_mono_multiply(sym_env *e, uint32_t a, uint32_t b);
bool sym_mono_divide(sym_env *e, uint32_t a, uint32_t b, uint32_t *out);
uint32_t sym_mono_gcd(sym_env *e, uint32_t a, uint32_t b);
int64_t sym_gcd(int64_t a, int64_t b);                        /* >= 0; of INT64_MIN: 1 */
int64_t sym_poly_content(sym_poly p);                         /* gcd of the factors of terms; 0: no terms */

/* -- normal forms (normal.c) -- */
enum sym_op { SYM_ADD, SYM_SUB, SYM_MUL, SYM_DIV, SYM_REM, SYM_LEAST, SYM_MOST, SYM_REL };
sym_ex sym_apply(sym_env *e, enum sym_op op, sym_ex a, sym_ex b);
sym_ex sym_compare(sym_env *e, enum dim_rel rel, sym_ex a, sym_ex b);
/* The same without deciding it. */
sym_ex sym_condition(sym_env *e, enum dim_rel rel, sym_ex a, sym_ex b);
/* Puts x for b*(x//b) where b is known to divide x. */
sym_ex sym_fold(sym_env *e, sym_ex x);
sym_ex sym_negate(sym_env *e, sym_ex condition);              /* 1 - condition, as a condition */
/* The same without looking at ranges and facts, for texts: what was printed reads back as it was. */
sym_ex sym_apply_plainly(sym_env *e, enum sym_op op, sym_ex a, sym_ex b);
sym_ex sym_compare_plainly(sym_env *e, enum dim_rel rel, sym_ex a, sym_ex b);

/* -- ranges and residues (range.c) -- */
sym_range sym_range_of(sym_env *e, sym_ex x);
sym_range sym_range_poly(sym_env *e, sym_poly p);
sym_range sym_range_mono(sym_env *e, uint32_t mono);
sym_range sym_range_scale(sym_range r, int64_t k);
sym_range sym_range_add(sym_range a, sym_range b);
static inline bool sym_range_one(sym_range r) { return r.min == r.max; }
static inline sym_range sym_range_meet(sym_range a, sym_range b)
{
    return (sym_range){a.min > b.min ? a.min : b.min, a.max < b.max ? a.max : b.max};
}
/* p is congruent to *residue modulo *modulus; modulus 0: it is that number; 1: nothing is known. */
void sym_residue(sym_env *e, sym_poly p, int64_t *modulus, int64_t *residue);

/* -- proofs (prove.c) -- */
bool sym_nonnegative(sym_env *e, sym_poly p);                 /* proven */
enum dim_truth sym_decide(sym_env *e, enum dim_rel rel, sym_ex a, sym_ex b);
bool sym_nonzero(sym_env *e, sym_ex x);                       /* proven */

/* -- what is known (fact.c) -- */
sym_ex sym_plain(sym_env *e, sym_ex x);                       /* by the equalities that are known */
/* Takes in that a condition holds. False: it contradicts what is known. */
bool sym_learn(sym_env *e, sym_ex condition);
bool sym_record(sym_env *e, bp_ctx *c, sym_ex condition, enum sym_origin origin);

/* -- entry points -- */
/* Reports a failure to c (NULL: nobody), with a and b as what the values were; false if there was one. Clears. */
bool sym_ends_well(sym_env *e, bp_ctx *c, const char *sign, bp_dim a, bp_dim b);
bp_dim sym_dim(const sym_env *e, sym_ex x);                   /* with its hint */
static inline bool sym_belongs(const sym_env *e, bp_dim d) { return d.sym <= e->len; }
static inline bool sym_is_data(const sym_env *e, bp_dim d) { return d.sym && sym_at(e, d.sym)->unbacked; }
extern _Thread_local sym_scope sym_now __attribute__((tls_model("initial-exec"))); /* the current environment */
#endif
