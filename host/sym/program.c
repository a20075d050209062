/* Dims compiled into flat code, for guards and for sizes of a run.
 *
 * What most guards ask (a symbol or a difference of two against a number, a remainder) and most sizes are (a symbol,
 * a multiple of one) is one step without registers. All else is code over registers, one for each expression: what an
 * earlier dim has computed is not computed again, so dims are evaluated in order. A program is never changed, and may
 * be run by several threads at once. */
#include "host/sym/expr.h"
#include "sdk/base/checked.h"

enum step_kind {
    STEP_CONST, STEP_SYMBOL, STEP_MULTIPLE,        /* k; v[a]; m*v[a] + k */
    STEP_EQ, STEP_NE, STEP_GE, STEP_LE,            /* v[a] against k */
    STEP_EQ2, STEP_NE2, STEP_GE2, STEP_LE2,        /* v[a] - v[b] against k */
    STEP_MOD_EQ,                                   /* Mod(v[a], m) == k, m positive */
    STEP_CODE                                      /* code[a .. b), then register `at` */
};
typedef struct { uint8_t kind; uint32_t a, b, at; int64_t k, m; } step;

/* Into register `to`. SUM: k + the terms [a, b); a product multiplies two registers. */
enum { CODE_CONST = SYM_SUM + 1 };
typedef struct { uint8_t kind; uint32_t to, a, b; int64_t k; } code;
typedef struct { int64_t coef; uint32_t at; } weighed;

struct sym_program {
    uint32_t n, nregs;
    step *steps;
    code *code;
    weighed *terms;
};

enum { FRAME = 64 };

/* -- compiling ----------------------------------------------------------------------------------------------------- */

typedef struct {
    const sym_env *e;
    VEC(step) steps;
    VEC(code) code;
    VEC(weighed) terms;
    uint32_t *reg;      /* of each node, plus 1 */
    uint32_t nregs;
    bool failed;
} maker;

static uint32_t emit(maker *m, code c)
{
    c.to = m->nregs++;
    m->failed |= !vec_push(&m->code, c);
    return c.to;
}

static uint32_t compute(maker *m, sym_ex x);

static uint32_t compute_product(maker *m, const sym_node *n)
{
    uint32_t r = compute(m, sym_ex_id(n->factors[0]));
    for (uint32_t i = 1; i < n->n; i++)
        r = emit(m, (code){.kind = SYM_PRODUCT, .a = r, .b = compute(m, sym_ex_id(n->factors[i]))});
    return r;
}

static uint32_t compute_sum(maker *m, const sym_node *n)
{
    for (uint32_t i = 0; i < n->n; i++)
        compute(m, sym_ex_id(n->terms[i].mono)); /* before the terms of this sum, which are in a row */
    uint32_t from = m->terms.len;
    for (uint32_t i = 0; i < n->n; i++)
        m->failed |= !vec_push(&m->terms, (weighed){n->terms[i].coef, compute(m, sym_ex_id(n->terms[i].mono))});
    return emit(m, (code){.kind = SYM_SUM, .a = from, .b = m->terms.len, .k = n->k});
}

static uint32_t compute_node(maker *m, const sym_node *n)
{
    if (n->kind == SYM_SYMBOL)
        return emit(m, (code){.kind = SYM_SYMBOL, .a = n->n});
    if (n->kind == SYM_PRODUCT)
        return compute_product(m, n);
    if (n->kind == SYM_SUM)
        return compute_sum(m, n);
    uint32_t a = compute(m, n->a), b = sym_is_condition(n->kind) ? 0 : compute(m, n->b);
    return emit(m, (code){.kind = n->kind, .a = a, .b = b, .k = n->k});
}

static uint32_t compute(maker *m, sym_ex x)
{
    if (!x.id)
        return emit(m, (code){.kind = CODE_CONST, .k = x.k});
    if (!m->reg[x.id]) {
        uint32_t r = compute_node(m, sym_at(m->e, x.id));
        m->reg[x.id] = r + 1;
    }
    return m->reg[x.id] - 1;
}

static bool is_symbol(const sym_env *e, sym_ex x, uint32_t *k)
{
    const sym_node *n = sym_at(e, x.id);
    *k = n->n;
    return x.id && n->kind == SYM_SYMBOL;
}

/* s - t, both symbols. */
static bool is_difference(const sym_env *e, sym_ex x, uint32_t *a, uint32_t *b)
{
    const sym_node *n = sym_at(e, x.id);
    return x.id && n->kind == SYM_SUM && n->n == 2 && n->k == 0 && n->terms[0].coef == 1 && n->terms[1].coef == -1 &&
           is_symbol(e, sym_ex_id(n->terms[0].mono), a) && is_symbol(e, sym_ex_id(n->terms[1].mono), b);
}

/* A dim in one step; false: it needs code. */
static bool one_step(const sym_env *e, sym_ex x, step *s)
{
    const sym_node *n = sym_at(e, x.id), *d;
    *s = (step){.kind = STEP_CONST, .k = x.k};
    if (!x.id)
        return true;
    s->kind = STEP_SYMBOL;
    if (is_symbol(e, x, &s->a))
        return true;
    *s = (step){.kind = STEP_MULTIPLE, .k = n->k};
    if (n->kind == SYM_SUM && n->n == 1 && is_symbol(e, sym_ex_id(n->terms[0].mono), &s->a)) {
        s->m = n->terms[0].coef;
        return true;
    }
    if (!sym_is_condition(n->kind))
        return false;
    s->kind = (uint8_t)(STEP_EQ + n->kind - SYM_EQ);
    if (is_symbol(e, n->a, &s->a))
        return true;
    s->kind = (uint8_t)(STEP_EQ2 + n->kind - SYM_EQ);
    if (is_difference(e, n->a, &s->a, &s->b))
        return true;
    d = sym_at(e, n->a.id);
    s->kind = STEP_MOD_EQ;
    s->m = d->b.k;
    return n->kind == SYM_EQ && d->kind == SYM_MOD && !d->b.id && d->b.k > 0 && is_symbol(e, d->a, &s->a);
}

static void add_dim(maker *m, sym_ex x)
{
    step s;
    if (!one_step(m->e, x, &s)) {
        s = (step){.kind = STEP_CODE, .a = m->code.len};
        s.at = compute(m, x);
        s.b = m->code.len;
    }
    m->failed |= !vec_push(&m->steps, s);
}

sym_program *sym_compile(const sym_env *e, const bp_dim *dims, uint32_t n)
{
    maker m = {.e = e, .reg = calloc((size_t)e->len + 1, sizeof *m.reg)};
    sym_program *p = calloc(1, sizeof *p);
    for (uint32_t i = 0; i < n && m.reg && p && !m.failed; i++)
        add_dim(&m, sym_ex_of(sym_belongs(e, dims[i]) ? dims[i] : dim_const(0)));
    m.failed |= !m.reg || !p;
    free(m.reg);
    if (m.failed) {
        vec_fini(&m.steps);
        vec_fini(&m.code);
        vec_fini(&m.terms);
        free(p);
        return NULL;
    }
    *p = (sym_program){n, m.nregs, m.steps.at, m.code.at, m.terms.at};
    return p;
}

void sym_program_free(sym_program *p)
{
    if (!p)
        return;
    free(p->steps);
    free(p->code);
    free(p->terms);
    free(p);
}

/* -- running ------------------------------------------------------------------------------------------------------- */

static bool add_up(const sym_program *p, const code *c, const int64_t *reg, int64_t *out)
{
    sym_wide all = c->k;
    for (uint32_t i = c->a; i < c->b; i++)
        if (__builtin_add_overflow(all, (sym_wide)p->terms[i].coef * reg[p->terms[i].at], &all))
            return false;
    *out = (int64_t)all;
    return all >= INT64_MIN && all <= INT64_MAX;
}

static bool run_code(const sym_program *p, const step *s, const int64_t *v, int64_t *reg)
{
    for (uint32_t i = s->a; i < s->b; i++) {
        const code *c = &p->code[i];
        int64_t *to = &reg[c->to];
        bool well = true;
        switch (c->kind) {
        case CODE_CONST: *to = c->k; break;
        case SYM_SYMBOL: *to = v[c->a]; break;
        case SYM_SUM: well = add_up(p, c, reg, to); break;
        case SYM_PRODUCT: well = checked_mul(reg[c->a], reg[c->b], to); break;
        case SYM_FLOORDIV: well = checked_floordiv(reg[c->a], reg[c->b], to); break;
        case SYM_MOD: well = checked_floormod(reg[c->a], reg[c->b], to); break;
        case SYM_MIN: *to = reg[c->a] < reg[c->b] ? reg[c->a] : reg[c->b]; break;
        case SYM_MAX: *to = reg[c->a] > reg[c->b] ? reg[c->a] : reg[c->b]; break;
        case SYM_EQ: *to = reg[c->a] == c->k; break;
        case SYM_NE: *to = reg[c->a] != c->k; break;
        case SYM_GE: *to = reg[c->a] >= c->k; break;
        default: *to = reg[c->a] <= c->k; break;
        }
        if (!well)
            return false;
    }
    return true;
}

static HOT bool run_step(const sym_program *p, const step *s, const int64_t *v, int64_t *reg, int64_t *out)
{
    int64_t x = 0;
    switch (s->kind) {
    case STEP_CONST: *out = s->k; return true;
    case STEP_SYMBOL: *out = v[s->a]; return true;
    case STEP_MULTIPLE: return checked_mul(v[s->a], s->m, &x) && checked_add(x, s->k, out);
    case STEP_EQ: *out = v[s->a] == s->k; return true;
    case STEP_NE: *out = v[s->a] != s->k; return true;
    case STEP_GE: *out = v[s->a] >= s->k; return true;
    case STEP_LE: *out = v[s->a] <= s->k; return true;
    case STEP_MOD_EQ: x = v[s->a] % s->m; *out = (x < 0 ? x + s->m : x) == s->k; return true;
    case STEP_CODE:
        if (!run_code(p, s, v, reg))
            return false;
        *out = reg[s->at];
        return true;
    default: break;
    }
    if (!checked_sub(v[s->a], v[s->b], &x))
        return false;
    switch (s->kind) {
    case STEP_EQ2: *out = x == s->k; return true;
    case STEP_NE2: *out = x != s->k; return true;
    case STEP_GE2: *out = x >= s->k; return true;
    default: *out = x <= s->k; return true;
    }
}

/* Registers of a run; NULL: out of memory. */
static int64_t *frame(const sym_program *p, int64_t *local)
{
    return p->nregs <= FRAME ? local : malloc(p->nregs * sizeof *local);
}

bool sym_run(const sym_program *p, const int64_t *values, int64_t *out)
{
    int64_t local[FRAME], *reg = frame(p, local);
    uint32_t i = 0;
    while (reg && i < p->n && run_step(p, &p->steps[i], values, reg, &out[i]))
        i++;
    if (reg != local)
        free(reg);
    return i == p->n;
}

uint32_t sym_first_false(const sym_program *p, const int64_t *values)
{
    int64_t local[FRAME], *reg = frame(p, local), holds = 0;
    uint32_t i = 0;
    while (reg && i < p->n && run_step(p, &p->steps[i], values, reg, &holds) && holds == 1)
        i++;
    if (reg != local)
        free(reg);
    return i;
}
