/* Dims compiled into flat code, for guards and for sizes of a run.
 *
 * What most guards ask (that a symbol, a difference, a product or a sum of two lies within bounds, or outside of them;
 * a remainder) and most sizes are (a symbol, a multiple of one) is one step without registers. All else is code over
 * registers, one for each expression: what an earlier dim has computed is not computed again, so dims are evaluated in
 * order. A program is never changed, and may be run by several threads at once. */
#include "host/sym/expr.h"
#include "sdk/base/checked.h"

/* A condition says of x that low <= x <= low + span, or, where the step is `outside`, that it is not so. Of a value,
 * which is to be 1 where it is taken for a condition, low is 1 and span 0. */
enum step_kind {
    STEP_ONE,        /* x = v[a] */
    STEP_DIFFERENCE, /* x = v[a] - v[b] */
    STEP_PRODUCT,    /* x = v[a] * v[b] */
    STEP_LINEAR,     /* x = m*v[a] + n*v[b] */
    STEP_MOD,        /* x = Mod(v[a], m), m positive */
    STEP_CODE,       /* x = register `at` after code[a .. b) */
    STEP_CONST,      /* x = n */
    STEP_MULTIPLE    /* x = m*v[a] + n */
};
typedef struct {
    uint8_t kind;
    bool outside, is_value;
    uint32_t a, b, at;
    int64_t low;
    uint64_t span;
    int64_t m, n;
} step;

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

static bool is_symbol(const sym_env *e, uint32_t id, uint32_t *k)
{
    const sym_node *n = sym_at(e, id);
    *k = n->n;
    return id && n->kind == SYM_SYMBOL;
}

/* The left side of a condition in one step; false: it needs code. */
static bool one_side(const sym_env *e, sym_ex x, step *s)
{
    const sym_node *n = sym_at(e, x.id);
    s->kind = STEP_ONE;
    if (is_symbol(e, x.id, &s->a))
        return true;
    s->kind = STEP_PRODUCT;
    if (n->kind == SYM_PRODUCT)
        return n->n == 2 && is_symbol(e, n->factors[0], &s->a) && is_symbol(e, n->factors[1], &s->b);
    s->kind = STEP_MOD;
    s->m = n->b.k;
    if (n->kind == SYM_MOD)
        return !n->b.id && n->b.k > 0 && is_symbol(e, n->a.id, &s->a);
    if (n->kind != SYM_SUM || n->n != 2 || n->k != 0)
        return false;
    s->m = n->terms[0].coef;
    s->n = n->terms[1].coef;
    s->kind = s->m == 1 && s->n == -1 ? STEP_DIFFERENCE : STEP_LINEAR;
    return is_symbol(e, n->terms[0].mono, &s->a) && is_symbol(e, n->terms[1].mono, &s->b);
}

/* A value in one step. */
static bool one_value(const sym_env *e, sym_ex x, step *s)
{
    const sym_node *n = sym_at(e, x.id);
    s->kind = STEP_CONST;
    s->n = x.k;
    if (!x.id)
        return true;
    s->kind = STEP_ONE;
    if (is_symbol(e, x.id, &s->a))
        return true;
    s->kind = STEP_MULTIPLE;
    s->n = n->k;
    if (n->kind != SYM_SUM || n->n != 1)
        return false;
    s->m = n->terms[0].coef;
    return is_symbol(e, n->terms[0].mono, &s->a);
}

/* A condition's bounds; what is on its left by code, if it must be. */
static step condition_step(maker *m, const sym_node *n)
{
    int64_t low = n->kind == SYM_LE ? INT64_MIN : n->k, high = n->kind == SYM_GE ? INT64_MAX : n->k;
    step s = {.low = low, .span = (uint64_t)high - (uint64_t)low, .outside = n->kind == SYM_NE};
    if (one_side(m->e, n->a, &s))
        return s;
    s.kind = STEP_CODE;
    s.a = m->code.len;
    s.at = compute(m, n->a);
    s.b = m->code.len;
    return s;
}

static void add_dim(maker *m, sym_ex x)
{
    step s = {.is_value = true, .low = 1};
    if (x.id && sym_is_condition(sym_at(m->e, x.id)->kind)) {
        s = condition_step(m, sym_at(m->e, x.id));
    } else if (!one_value(m->e, x, &s)) {
        s = (step){.kind = STEP_CODE, .is_value = true, .low = 1, .a = m->code.len};
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
        default:
            well = sym_operate((uint8_t)c->kind, reg[c->a], sym_is_condition((uint8_t)c->kind) ? 0 : reg[c->b], c->k,
                               to);
            break;
        }
        if (!well)
            return false;
    }
    return true;
}

static HOT bool linear(const step *s, const int64_t *v, int64_t *x)
{
    int64_t p = 0, q = 0;
    return checked_mul(v[s->a], s->m, &p) && checked_mul(v[s->b], s->n, &q) && checked_add(p, q, x);
}

static HOT int64_t remainder_of(int64_t v, int64_t m)
{
    int64_t r = v % m;
    return r < 0 ? r + m : r;
}

/* What a step is about, or is. */
static HOT bool run_step(const sym_program *p, const step *s, const int64_t *v, int64_t *reg, int64_t *x)
{
    switch (s->kind) {
    case STEP_ONE: *x = v[s->a]; return true;
    case STEP_DIFFERENCE: return checked_sub(v[s->a], v[s->b], x);
    case STEP_PRODUCT: return checked_mul(v[s->a], v[s->b], x);
    case STEP_LINEAR: return linear(s, v, x);
    case STEP_MOD: *x = remainder_of(v[s->a], s->m); return true;
    case STEP_CODE:
        if (!run_code(p, s, v, reg))
            return false;
        *x = reg[s->at];
        return true;
    case STEP_CONST: *x = s->n; return true;
    default: return checked_mul(v[s->a], s->m, x) && checked_add(*x, s->n, x);
    }
}

static HOT bool says(const step *s, int64_t x)
{
    return ((uint64_t)x - (uint64_t)s->low <= s->span) != s->outside;
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
    for (; reg && i < p->n && run_step(p, &p->steps[i], values, reg, &out[i]); i++)
        out[i] = p->steps[i].is_value ? out[i] : says(&p->steps[i], out[i]);
    if (reg != local)
        free(reg);
    return i == p->n;
}

uint32_t sym_first_false(const sym_program *p, const int64_t *values)
{
    int64_t local[FRAME], *reg = frame(p, local), x = 0;
    const step *s = p->steps, *end = reg ? s + p->n : s;
    while (s < end && run_step(p, s, values, reg, &x) && says(s, x))
        s++;
    if (reg != local)
        free(reg);
    return (uint32_t)(s - p->steps);
}
