/* Python's own functions on numbers, as graphs of symbolic sizes call them: sums, quotients and comparisons of what
 * sym_size and its like gave. Integers follow Python: division rounds down, a remainder has the divisor's sign. */
#include "host/graph/builtin.h"
#include <math.h>

enum form { ARITHMETIC, QUOTIENT, COMPARISON };
enum what { ADD, SUB, MUL, FLOORDIV, MOD, TRUEDIV, EQ, NE, LT, LE, GT, GE };

static const struct { const char *name; enum what what; enum form form; } functions[] = {
    {"add", ADD, ARITHMETIC},          {"sub", SUB, ARITHMETIC}, {"mul", MUL, ARITHMETIC},
    {"floordiv", FLOORDIV, ARITHMETIC}, {"mod", MOD, ARITHMETIC}, {"truediv", TRUEDIV, QUOTIENT},
    {"eq", EQ, COMPARISON},            {"ne", NE, COMPARISON},   {"lt", LT, COMPARISON},
    {"le", LE, COMPARISON},            {"gt", GT, COMPARISON},   {"ge", GE, COMPARISON},
};

static int find(str name)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (str_is(name, functions[i].name))
            return (int)i;
    return -1;
}

bool builtin_is_number(str name)
{
    return find(name) >= 0;
}

static bool is_integer(const bp_value *v)
{
    return v->kind == BP_VALUE_INT || v->kind == BP_VALUE_BOOL;
}

static bp_dim dim_of(const bp_value *v)
{
    return v->kind == BP_VALUE_INT ? v->v.dim : dim_const(v->v.i);
}

static double float_of(bp_ctx *c, const bp_value *v)
{
    return v->kind == BP_VALUE_FLOAT ? v->v.f[0] : (double)dim_int(c, dim_of(v));
}

static bool compare(enum what what, int order, bool ordered)
{
    switch (what) {
    case EQ: return ordered && order == 0;
    case NE: return !ordered || order != 0;
    case LT: return ordered && order < 0;
    case LE: return ordered && order <= 0;
    case GT: return ordered && order > 0;
    default: return ordered && order >= 0;
    }
}

static bp_dim of_integers(bp_ctx *c, enum what what, bp_dim a, bp_dim b)
{
    switch (what) {
    case ADD: return dim_add(c, a, b);
    case SUB: return dim_sub(c, a, b);
    case MUL: return dim_mul(c, a, b);
    case FLOORDIV: return dim_floordiv(c, a, b);
    default: return dim_mod(c, a, b);
    }
}

static double of_floats(enum what what, double a, double b)
{
    double rest = fmod(a, b);
    switch (what) {
    case ADD: return a + b;
    case SUB: return a - b;
    case MUL: return a * b;
    case FLOORDIV: return floor(a / b);
    case MOD: return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    default: return a / b;
    }
}

static bool is_zero(bp_ctx *c, const bp_value *v)
{
    return is_integer(v) ? dim_is(dim_of(v), 0) : float_of(c, v) == 0;
}

bp_dtype builtin_type(str name, bool floats)
{
    enum form form = functions[find(name)].form;
    return form == COMPARISON ? BP_BOOL : form == QUOTIENT || floats ? BP_F64 : BP_I64;
}

bp_status builtin_call(bp_ctx *c, str name, const bp_value *args, uint32_t n, bp_value *out)
{
    int at = find(name);
    enum what what = functions[at].what;
    const bp_value *a = args, *b = args + 1;
    if (n != 2 || !(is_integer(a) || a->kind == BP_VALUE_FLOAT) || !(is_integer(b) || b->kind == BP_VALUE_FLOAT))
        return ctx_fail(c, BP_INVALID_ARGUMENT, "%s takes two numbers", functions[at].name);
    bool integers = is_integer(a) && is_integer(b);
    if ((what == FLOORDIV || what == MOD || what == TRUEDIV) && is_zero(c, b))
        return ctx_fail(c, BP_INVALID_ARGUMENT, "%s: a number is divided by zero", functions[at].name);
    if (functions[at].form == COMPARISON) {
        int64_t x = integers ? dim_int(c, dim_of(a)) : 0, y = integers ? dim_int(c, dim_of(b)) : 0;
        double f = integers ? 0 : float_of(c, a), g = integers ? 0 : float_of(c, b);
        int order = integers ? (x > y) - (x < y) : (f > g) - (f < g);
        *out = value_bool(compare(what, order, integers || !isunordered(f, g)));
    } else if (integers && functions[at].form == ARITHMETIC) {
        *out = value_dim(of_integers(c, what, dim_of(a), dim_of(b)));
    } else {
        *out = value_float(of_floats(what, float_of(c, a), float_of(c, b)));
    }
    return c->diag.code;
}
