/* Reads expressions that text.c prints. What ranges and facts would simplify stays as it is written, so that a text
 * reads back to what was printed; sums and products come to their normal form.
 *
 *     condition = sum [("==" | "!=" | ">=" | "<=" | ">" | "<") sum]
 *     sum       = ["-"] product {("+" | "-") product}
 *     product   = power {("*" | "//") power}
 *     power     = primary ["**" number]
 *     primary   = number | name | ("Mod" | "Min" | "Max") "(" condition "," condition ")" | "(" condition ")" */
#include "host/sym/expr.h"
#include "sdk/base/checked.h"
#include <ctype.h>
#include <string.h>

enum { NESTED = 200, POWER = 64 };

typedef struct {
    sym_env *e;
    const char *s;
    size_t n, at, wrong; /* wrong: where the first fault is */
    uint32_t depth;
    bool failed;
} reader;

static sym_ex read_condition(reader *r);

static sym_ex fault(reader *r, size_t at)
{
    if (!r->failed)
        r->wrong = at;
    r->failed = true;
    return sym_ex_const(0);
}

static void skip(reader *r)
{
    while (r->at < r->n && r->s[r->at] == ' ')
        r->at++;
}

static bool take(reader *r, const char *token)
{
    size_t n = strlen(token);
    skip(r);
    if (r->n - r->at < n || memcmp(r->s + r->at, token, n) != 0)
        return false;
    r->at += n;
    return true;
}

static void expect(reader *r, const char *token)
{
    if (!take(r, token))
        fault(r, r->at);
}

static bool digit(const reader *r)
{
    return r->at < r->n && isdigit((unsigned char)r->s[r->at]);
}

/* Digits; `minus`: of a negative number, which reaches one further. */
static int64_t read_number(reader *r, bool minus)
{
    int64_t v = 0;
    size_t from = r->at;
    for (; digit(r); r->at++) {
        int64_t d = r->s[r->at] - '0';
        if (!checked_mul(v, 10, &v) || !checked_sub(v, d, &v)) { /* below 0, where there is room for all */
            fault(r, from);
            return 0;
        }
    }
    if (!minus && v == INT64_MIN)
        fault(r, from);
    return minus || v == INT64_MIN ? v : -v;
}

static bool name_character(char ch)
{
    return isalnum((unsigned char)ch) || ch == '_';
}

static sym_ex read_call(reader *r, enum sym_op op)
{
    expect(r, "(");
    sym_ex a = read_condition(r);
    expect(r, ",");
    skip(r);
    size_t at = r->at;
    sym_ex b = read_condition(r);
    expect(r, ")");
    if (op == SYM_REM && sym_ex_is(b, 0))
        return fault(r, at);
    return r->failed ? sym_ex_const(0) : sym_apply_plainly(r->e, op, a, b);
}

static sym_ex read_name(reader *r)
{
    size_t from = r->at;
    while (r->at < r->n && name_character(r->s[r->at]))
        r->at++;
    str name = {r->s + from, r->at - from};
    if (str_is(name, "Mod"))
        return read_call(r, SYM_REM);
    if (str_is(name, "Min") || str_is(name, "Max"))
        return read_call(r, str_is(name, "Min") ? SYM_LEAST : SYM_MOST);
    for (uint32_t k = 0; k < r->e->symbols.len && name.n; k++)
        if (str_is(name, r->e->symbols.at[k].name))
            return sym_ex_id(r->e->ids.at[k]);
    return fault(r, from);
}

static sym_ex read_primary(reader *r)
{
    if (take(r, "(")) {
        sym_ex x = read_condition(r);
        expect(r, ")");
        return x;
    }
    return digit(r) ? sym_ex_const(read_number(r, false)) : read_name(r);
}

static sym_ex read_power(reader *r)
{
    sym_ex x = read_primary(r), all = x;
    if (!take(r, "**"))
        return x;
    skip(r);
    size_t at = r->at;
    int64_t n = digit(r) ? read_number(r, false) : 0;
    if (n < 1 || n > POWER)
        return fault(r, at);
    for (int64_t i = 1; i < n && !r->failed; i++)
        all = sym_apply_plainly(r->e, SYM_MUL, all, x);
    return all;
}

static sym_ex read_product(reader *r)
{
    sym_ex x = read_power(r);
    while (!r->failed) {
        enum sym_op op = take(r, "//") ? SYM_DIV : take(r, "*") ? SYM_MUL : SYM_ADD;
        if (op == SYM_ADD)
            break;
        skip(r);
        size_t at = r->at;
        sym_ex y = read_power(r);
        if (op == SYM_DIV && sym_ex_is(y, 0))
            return fault(r, at);
        x = r->failed ? x : sym_apply_plainly(r->e, op, x, y);
    }
    return x;
}

/* A product after a minus sign. A number of its own may be the smallest of all. */
static sym_ex read_negative(reader *r)
{
    skip(r);
    size_t from = r->at;
    if (digit(r)) {
        int64_t v = read_number(r, true);
        skip(r);
        if (r->failed || r->at == r->n || (r->s[r->at] != '*' && r->s[r->at] != '/'))
            return sym_ex_const(v);
        r->at = from;
    }
    sym_ex x = read_product(r);
    return r->failed ? x : sym_apply_plainly(r->e, SYM_SUB, sym_ex_const(0), x);
}

static sym_ex read_sum(reader *r)
{
    sym_ex x = take(r, "-") ? read_negative(r) : read_product(r);
    while (!r->failed) {
        bool minus = take(r, "-");
        if (!minus && !take(r, "+"))
            break;
        sym_ex y = minus ? read_negative(r) : read_product(r);
        x = r->failed ? x : sym_apply_plainly(r->e, SYM_ADD, x, y);
    }
    return x;
}

static sym_ex read_condition(reader *r)
{
    static const struct { const char *sign; enum dim_rel rel; bool turned; } SIGNS[] = {
        {"==", DIM_EQ, false}, {"!=", DIM_NE, false}, {">=", DIM_LE, true},
        {"<=", DIM_LE, false}, {">", DIM_LT, true},   {"<", DIM_LT, false},
    };
    if (r->depth >= NESTED)
        return fault(r, r->at);
    r->depth++;
    sym_ex x = read_sum(r);
    for (size_t i = 0; i < sizeof SIGNS / sizeof *SIGNS && !r->failed; i++) {
        if (!take(r, SIGNS[i].sign))
            continue;
        sym_ex y = read_sum(r);
        x = r->failed ? x : sym_compare_plainly(r->e, SIGNS[i].rel, SIGNS[i].turned ? y : x, SIGNS[i].turned ? x : y);
        break;
    }
    r->depth--;
    return x;
}

bp_status sym_parse(sym_env *e, bp_ctx *c, const char *text, size_t n, bp_dim *out, size_t *offset)
{
    reader r = {.e = e, .s = text, .n = n};
    sym_ex x = read_condition(&r);
    skip(&r);
    if (!r.failed && r.at != n)
        fault(&r, r.at);
    *out = dim_const(0);
    *offset = r.wrong;
    bp_dim none = dim_const(0);
    bool nomem = e->fail == SYM_NOMEM;
    if (!sym_ends_well(e, nomem ? c : NULL, "", none, none)) {
        *offset = r.failed ? r.wrong : 0;
        return nomem ? BP_RESOURCE_EXHAUSTED : BP_INVALID_ARGUMENT;
    }
    if (r.failed)
        return BP_INVALID_ARGUMENT;
    *out = sym_dim(e, x);
    return BP_OK;
}
