/* Random expressions beside trees that are evaluated as they were written: the normal form, what is simplified by
 * facts, ranges, proofs, programs and texts say the same as the tree, at every value that the facts allow. */
#define BP_WITHOUT_OPERATORS
#include "tests/lib/check.h"
#include "host/sym/env.h"
#include "sdk/base/checked.h"
#include <backplane/backplane.h>
#include <inttypes.h>
#include <stdlib.h>

enum { SYMBOLS = 4, EXPRESSIONS = 12, TRIALS = 24, ENVIRONMENTS = 3000 };

typedef struct tree tree;
struct tree {
    int op; /* 0: the constant k; 1: symbol k; then as OPS */
    int64_t k;
    const tree *a, *b;
    bp_dim d;
};
enum { CONST, SYMBOL, ADD, SUB, MUL, DIV, MOD, MIN, MAX, EQ, NE, LT, LE, OPS };

static bp_ctx *c;
static sym_env *env;
static uint64_t seed, number;
static tree pool[512];
static uint32_t used;
static int64_t low[SYMBOLS], high[SYMBOLS], hints[SYMBOLS];

static uint32_t roll(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

/* -- the tree ------------------------------------------------------------------------------------------------------ */

static bool value(const tree *t, const int64_t *v, int64_t *out)
{
    int64_t a = 0, b = 0;
    if (t->op <= SYMBOL) {
        *out = t->op == CONST ? t->k : v[t->k];
        return true;
    }
    if (!value(t->a, v, &a) || !value(t->b, v, &b))
        return false;
    switch (t->op) {
    case ADD: return checked_add(a, b, out);
    case SUB: return checked_sub(a, b, out);
    case MUL: return checked_mul(a, b, out);
    case DIV: return checked_floordiv(a, b, out);
    case MOD: return checked_floormod(a, b, out);
    case MIN: *out = a < b ? a : b; break;
    case MAX: *out = a > b ? a : b; break;
    case EQ: *out = a == b; break;
    case NE: *out = a != b; break;
    case LT: *out = a < b; break;
    default: *out = a <= b; break;
    }
    return true;
}

static bp_dim combine(int op, bp_dim a, bp_dim b)
{
    switch (op) {
    case ADD: return dim_add(c, a, b);
    case SUB: return dim_sub(c, a, b);
    case MUL: return dim_mul(c, a, b);
    case DIV: return dim_floordiv(c, a, b);
    case MOD: return dim_mod(c, a, b);
    case MIN: return dim_min(c, a, b);
    case MAX: return dim_max(c, a, b);
    case EQ: return dim_compare(c, DIM_EQ, a, b);
    case NE: return dim_compare(c, DIM_NE, a, b);
    case LT: return dim_compare(c, DIM_LT, a, b);
    default: return dim_compare(c, DIM_LE, a, b);
    }
}

static const tree *leaf(void)
{
    static const int64_t NUMBERS[] = {1, 2, 3, 4, 6, 8, 64, -1, -2, 0, 5, 12};
    tree *t = &pool[used++];
    uint32_t k = roll(SYMBOLS);
    if (roll(3))
        *t = (tree){.op = SYMBOL, .k = k, .d = sym_dim_of(env, k)};
    else {
        int64_t n = NUMBERS[roll(sizeof NUMBERS / sizeof *NUMBERS)];
        *t = (tree){.op = CONST, .k = n, .d = dim_const(n)};
    }
    return t;
}

static int operation(void)
{
    static const int OFTEN[] = {ADD, ADD, SUB, SUB, MUL, MUL, MUL, DIV, DIV, DIV, MOD, MOD, MIN, MAX, EQ, NE, LT, LE};
    return OFTEN[roll(sizeof OFTEN / sizeof *OFTEN)];
}

/* op over a and b; where that is an error, a. */
static const tree *joined(int op, const tree *a, const tree *b)
{
    if (used == sizeof pool / sizeof *pool)
        return a;
    bp_dim d = combine(op, a->d, b->d);
    if (bp_error(c)) {
        bp_error_clear(c);
        return a;
    }
    tree *t = &pool[used++];
    *t = (tree){.op = op, .a = a, .b = b, .d = d};
    return t;
}

static const tree *constant(int64_t n)
{
    if (used == sizeof pool / sizeof *pool)
        return &pool[0];
    tree *t = &pool[used++];
    *t = (tree){.op = CONST, .k = n, .d = dim_const(n)};
    return t;
}

/* (m*a + e) over m*b, where rules that cancel m may go wrong. */
static const tree *quotient(const tree *a, const tree *b, const tree *m)
{
    const tree *above = joined(ADD, joined(MUL, m, a), constant((int64_t)roll(9) - 4));
    return joined(roll(2) ? DIV : MOD, above, joined(MUL, m, b));
}

static const tree *grown(uint32_t depth, const tree *const *old, uint32_t nold)
{
    if (depth == 0)
        return nold && !roll(3) ? old[roll(nold)] : leaf();
    const tree *a = grown(depth - 1, old, nold), *b = grown(roll(depth), old, nold);
    if (!roll(5))
        return quotient(a, b, roll(2) ? leaf() : constant(2 + roll(3)));
    return joined(operation(), a, b);
}

/* -- values -------------------------------------------------------------------------------------------------------- */

static void fill(int64_t *v, uint32_t trial)
{
    for (int k = 0; k < SYMBOLS; k++) {
        int64_t width = high[k] == INT64_MAX ? 40 : high[k] - low[k] + 1;
        v[k] = trial == 0 || !roll(2) ? hints[k] : low[k] + roll((uint32_t)width);
    }
}

static bool allowed(const int64_t *v)
{
    for (uint32_t i = 0; i < sym_fact_count(env); i++) {
        int64_t holds = 0;
        if (!sym_eval(env, sym_fact_at(env, i)->holds, v, &holds) || holds != 1)
            return false;
    }
    return true;
}

static void show(const char *what, const tree *t, const int64_t *v)
{
    buf text = {0};
    sym_print(env, t->d, false, &text);
    print_error("%s: %s at", what, buf_text(&text));
    for (uint32_t k = 0; k < SYMBOLS; k++) {
        int64_t min, max;
        sym_bounds(env, sym_dim_of(env, k), &min, &max);
        print_error(" %s=%" PRId64 " of %" PRId64 " .. %" PRId64, sym_symbol_at(env, k)->name, v[k], min, max);
    }
    for (uint32_t i = 0; i < sym_fact_count(env); i++) {
        buf_clear(&text);
        sym_print(env, sym_fact_at(env, i)->holds, false, &text);
        print_error("\n  fact %s (%" PRId64 ")", buf_text(&text), sym_fact_at(env, i)->holds.value);
    }
    print_error("\n");
    buf_fini(&text);
}

static void expect(bool right, const char *what, const tree *t, const int64_t *v)
{
    if (right)
        return;
    show(what, t, v);
    print_error("seed number %" PRIu64 "\n", number);
    fail();
}

/* -- claims -------------------------------------------------------------------------------------------------------- */

static void is_the_tree(const tree *t, const int64_t *v, int64_t want)
{
    int64_t got = 0, min, max;
    expect(sym_eval(env, t->d, v, &got) && got == want, "the normal form", t, v);
    sym_bounds(env, t->d, &min, &max);
    expect(want >= min && want <= max, "the range", t, v);
    bp_dim plain = sym_simplify(env, c, t->d);
    if (!sym_eval(env, plain, v, &got) || got != want) {
        buf text = {0};
        sym_print(env, plain, false, &text);
        print_error("simplified: %s is %" PRId64 ", not %" PRId64 "\n", buf_text(&text), got, want);
        buf_fini(&text);
        expect(false, "what facts simplify", t, v);
    }
    sym_program *p = sym_compile(env, (bp_dim[]){plain, t->d}, 2);
    int64_t out[2];
    expect(p && sym_run(p, v, out) && out[0] == want && out[1] == want, "the program", t, v);
    expect(sym_first_false(p, v) == (want == 1 ? 2u : 0u), "the first that is not 1", t, v);
    sym_program_free(p);
}

static void proofs_hold(const tree *a, const tree *b, const int64_t *v, int64_t x, int64_t y)
{
    bool truth[] = {[DIM_EQ] = x == y, [DIM_NE] = x != y, [DIM_LT] = x < y, [DIM_LE] = x <= y};
    for (int rel = DIM_EQ; rel <= DIM_LE; rel++) {
        enum dim_truth t = dim_prove((enum dim_rel)rel, a->d, b->d);
        if (t == DIM_UNKNOWN || (t == DIM_TRUE) == truth[rel])
            continue;
        print_error("relation %d is said to be %d\n", rel, (int)t);
        show("against", b, v);
        expect(false, "a proof", a, v);
    }
}

static void reads_back(const tree *t)
{
    buf text = {0}, again = {0};
    bp_dim d;
    size_t offset = 0;
    sym_print(env, t->d, false, &text);
    bp_status s = sym_parse(env, c, buf_text(&text), text.n, &d, &offset);
    sym_print(env, d, false, &again);
    if (s != BP_OK || !dim_same(d, t->d))
        fail_msg("\"%s\" reads as \"%s\" (%d at %zu)", buf_text(&text), buf_text(&again), (int)s, offset);
    buf_fini(&text);
    buf_fini(&again);
}

static void make_symbols(void)
{
    for (int k = 0; k < SYMBOLS; k++) {
        low[k] = (int64_t)roll(4) - (roll(3) ? 0 : 6);
        high[k] = roll(2) ? INT64_MAX : low[k] + roll(12);
        hints[k] = low[k] + (high[k] == INT64_MAX ? roll(20) : roll((uint32_t)(high[k] - low[k]) + 1));
        sym_add_symbol(env, c, &(sym_symbol){.hint = hints[k], .min = low[k], .max = high[k]});
    }
}

/* Expressions, and questions on them that become facts. */
static uint32_t make_expressions(const tree **t)
{
    uint32_t n = 0;
    while (n < EXPRESSIONS && used + 64 < sizeof pool / sizeof *pool) {
        t[n] = grown(1 + roll(3), t, n);
        n++;
        if (n > 1 && !roll(4))
            (void)(roll(2) ? dim_eq(t[n - 1]->d, t[roll(n)]->d) : dim_lt(t[n - 1]->d, t[roll(n)]->d));
        if (!roll(6)) {
            bp_dim four = dim_const(2 + roll(4));
            (void)dim_is(dim_mod(c, t[n - 1]->d, four), 0);
        }
        bp_error_clear(c);
    }
    return n;
}

static void check_environment(void)
{
    const tree *t[EXPRESSIONS];
    int64_t v[SYMBOLS], x[EXPRESSIONS];
    bool fits[EXPRESSIONS];
    make_symbols();
    uint32_t n = make_expressions(t);
    for (uint32_t i = 0; i < n; i++)
        reads_back(t[i]);
    for (uint32_t trial = 0; trial < TRIALS; trial++) {
        fill(v, trial);
        bool ok = allowed(v);
        if (trial == 0 && !ok) {
            show("a fact does not hold at the hints", t[0], v);
            fail();
        }
        if (!ok)
            continue;
        for (uint32_t i = 0; i < n; i++) {
            fits[i] = value(t[i], v, &x[i]) && x[i] > -(INT64_C(1) << 40) && x[i] < INT64_C(1) << 40;
            if (fits[i])
                is_the_tree(t[i], v, x[i]);
        }
        for (uint32_t i = 1; i < n; i++)
            if (fits[i] && fits[i - 1])
                proofs_hold(t[i], t[i - 1], v, x[i], x[i - 1]);
    }
}

static void random_expressions_are_their_trees_at_all_values_that_facts_allow(void **state)
{
    (void)state;
    const char *from = getenv("SYM_SEED");
    uint64_t first = from ? strtoull(from, NULL, 10) : 1;
    for (uint64_t i = first; i < first + (from ? 1 : ENVIRONMENTS); i++) {
        seed = i * 0x9e3779b97f4a7c15u;
        number = i;
        used = 0;
        env = sym_env_new();
        sym_scope former = sym_push(env, c);
        check_environment();
        sym_pop(former);
        sym_env_unref(env);
    }
}

int main(void)
{
    c = bp_ctx_new(NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_expressions_are_their_trees_at_all_values_that_facts_allow),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    bp_ctx_destroy(c);
    return failed;
}
