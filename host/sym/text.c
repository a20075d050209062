/* Expressions as text, as PyTorch prints them: "2*s0 + 1", "(s0 + 1)//2", "Mod(s0, 4)", "s0*s1 >= 4".
 *
 * A comparison is printed with what is taken away on the other side: s0 - s1 >= 1 is "s0 > s1". */
#include "host/sym/expr.h"
#include <inttypes.h>

typedef struct { const sym_env *e; bool of_names; buf *out; } printer;

/* What stands around: an operand of // or ** wants parentheses around all but names, numbers and calls. */
enum place { ALONE, IN_SUM, IN_PRODUCT, OPERAND };

static void print_ex(const printer *p, sym_ex x, enum place at);

static void print_name(const printer *p, uint32_t k)
{
    const sym_symbol *s = sym_symbol_at(p->e, k);
    buf_puts(p->out, !s ? "?" : p->of_names && s->of ? s->of : s->name);
}

static void print_number(const printer *p, int64_t v, enum place at)
{
    bool own = v < 0 && at >= IN_PRODUCT;
    buf_printf(p->out, own ? "(%" PRId64 ")" : "%" PRId64, v);
}

static void print_call(const printer *p, const char *name, const sym_node *n)
{
    buf_printf(p->out, "%s(", name);
    print_ex(p, n->a, ALONE);
    buf_puts(p->out, ", ");
    print_ex(p, n->b, ALONE);
    buf_putc(p->out, ')');
}

static void print_factors(const printer *p, const uint32_t *f, uint32_t n)
{
    for (uint32_t i = 0; i < n;) {
        uint32_t power = 1;
        while (i + power < n && f[i + power] == f[i])
            power++;
        print_ex(p, sym_ex_id(f[i]), power > 1 ? OPERAND : IN_PRODUCT);
        if (power > 1)
            buf_printf(p->out, "**%" PRIu32, power);
        i += power;
        if (i < n)
            buf_putc(p->out, '*');
    }
}

/* coef*mono, coef positive. */
static void print_term(const printer *p, int64_t coef, uint32_t mono)
{
    uint32_t n;
    const uint32_t *f = sym_factors(p->e, &mono, &n);
    if (coef != 1)
        buf_printf(p->out, "%" PRId64 "*", coef);
    if (coef == 1 && n == 1)
        print_ex(p, sym_ex_id(mono), IN_SUM);
    else
        print_factors(p, f, n);
}

/* Terms whose factor has this sign (0: all), as positive ones where it is asked for, and a constant. */
static void print_sum(const printer *p, sym_poly s, int sign, int64_t k)
{
    bool first = true;
    for (uint32_t i = 0; i < s.n; i++) {
        int64_t coef = s.at[i].coef;
        if (sign && (coef < 0) != (sign < 0))
            continue;
        bool minus = coef < 0 && !sign;
        buf_puts(p->out, first ? (minus ? "-" : "") : minus ? " - " : " + ");
        print_term(p, coef < 0 ? -coef : coef, s.at[i].mono);
        first = false;
    }
    if (first)
        buf_printf(p->out, "%" PRId64, k);
    else if (k > 0)
        buf_printf(p->out, " + %" PRId64, k);
    else if (k < 0)
        buf_printf(p->out, " - %" PRIu64, -(uint64_t)k);
}

static void print_condition(const printer *p, const sym_node *n)
{
    static const char *const SIGNS[] = {[SYM_EQ] = " == ", [SYM_NE] = " != ", [SYM_GE] = " >= ", [SYM_LE] = " <= "};
    sym_poly s = sym_poly_of(p->e, n->a);
    bool sides = false;
    for (uint32_t i = 0; i < s.n; i++)
        sides |= s.at[i].coef < 0;
    bool strict = sides && ((n->kind == SYM_GE && n->k == 1) || (n->kind == SYM_LE && n->k == -1));
    int64_t k = strict ? 0 : n->k;
    bool left = sides && k < 0 && k != INT64_MIN;
    print_sum(p, s, 1, left ? -k : 0);
    buf_puts(p->out, strict ? (n->kind == SYM_GE ? " > " : " < ") : SIGNS[n->kind]);
    print_sum(p, s, -1, left ? 0 : k);
}

static void print_floordiv(const printer *p, const sym_node *n)
{
    print_ex(p, n->a, OPERAND);
    buf_puts(p->out, "//");
    print_ex(p, n->b, OPERAND);
}

/* Whether what is printed binds less than its place wants. */
static bool wants_parentheses(uint8_t kind, enum place at)
{
    if (kind == SYM_SYMBOL || kind == SYM_MOD || kind == SYM_MIN || kind == SYM_MAX)
        return false;
    return kind == SYM_PRODUCT ? at == OPERAND : kind == SYM_FLOORDIV ? at >= IN_PRODUCT : at != ALONE;
}

static void print_ex(const printer *p, sym_ex x, enum place at)
{
    const sym_node *n = sym_at(p->e, x.id);
    if (!x.id) {
        print_number(p, x.k, at);
        return;
    }
    bool own = wants_parentheses(n->kind, at);
    if (own)
        buf_putc(p->out, '(');
    switch (n->kind) {
    case SYM_SYMBOL: print_name(p, n->n); break;
    case SYM_FLOORDIV: print_floordiv(p, n); break;
    case SYM_MOD: print_call(p, "Mod", n); break;
    case SYM_MIN: print_call(p, "Min", n); break;
    case SYM_MAX: print_call(p, "Max", n); break;
    case SYM_PRODUCT: print_factors(p, n->factors, n->n); break;
    case SYM_SUM: print_sum(p, sym_poly_of(p->e, x), 0, n->k); break;
    default: print_condition(p, n); break;
    }
    if (own)
        buf_putc(p->out, ')');
}

void sym_print(const sym_env *e, bp_dim d, bool of_names, buf *out)
{
    printer p = {e, of_names, out};
    if (!d.sym)
        buf_printf(out, "%" PRId64, d.value);
    else if (e && sym_belongs(e, d))
        print_ex(&p, sym_ex_id(d.sym), ALONE);
    else
        buf_printf(out, "?%" PRIu32, d.sym);
}
