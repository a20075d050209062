/* Calls of Python's functions on numbers, as torch.export and joint graphs record them on scalars.
 *
 * Integers are dims, so that sizes flow through; a comparison of sizes that their bounds do not decide is a condition,
 * an integer that is 0 or 1. A float among the two makes it a double. */
#include "host/graph/builtin.h"
#include <math.h>

enum form { ARITHMETIC, QUOTIENT, COMPARISON, UNARY };
enum what { ADD, SUB, MUL, FLOORDIV, MOD, POW, MIN, MAX, TRUEDIV, EQ, NE, LT, LE, GT, GE, NEG, NOT };

static const struct { const char *name; enum what what; enum form form; } functions[] = {
    {"add", ADD, ARITHMETIC},           {"sub", SUB, ARITHMETIC}, {"mul", MUL, ARITHMETIC},
    {"floordiv", FLOORDIV, ARITHMETIC}, {"mod", MOD, ARITHMETIC}, {"pow", POW, ARITHMETIC},
    {"sym_min", MIN, ARITHMETIC},       {"min", MIN, ARITHMETIC}, {"sym_max", MAX, ARITHMETIC},
    {"max", MAX, ARITHMETIC},           {"truediv", TRUEDIV, QUOTIENT},
    {"eq", EQ, COMPARISON},             {"ne", NE, COMPARISON},   {"lt", LT, COMPARISON},
    {"le", LE, COMPARISON},             {"gt", GT, COMPARISON},   {"ge", GE, COMPARISON},
    {"neg", NEG, UNARY},                {"sym_not", NOT, UNARY},  {"not_", NOT, UNARY},
};

enum { LARGEST_POWER = 8 }; /* of a size */

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

static bool is_number(const bp_value *v)
{
    return is_integer(v) || v->kind == BP_VALUE_FLOAT;
}

static bp_dim dim_of(const bp_value *v)
{
    return v->kind == BP_VALUE_INT ? v->v.dim : dim_const(v->v.i);
}

static double float_of(bp_ctx *c, const bp_value *v)
{
    return v->kind == BP_VALUE_FLOAT ? v->v.f[0] : (double)dim_int(c, dim_of(v));
}

/* -- integers ------------------------------------------------------------------------------------------------------ */

static bp_dim power(bp_ctx *c, bp_dim a, bp_dim b)
{
    bp_dim r = dim_const(1);
    int64_t n = dim_int(c, b);
    if (n < 0 || (a.sym && n > LARGEST_POWER)) {
        ctx_fail(c, BP_UNIMPLEMENTED, "pow: an integer to the power %lld", (long long)n);
        return dim_const(0);
    }
    if (!a.sym && a.value >= -1 && a.value <= 1) /* any number of factors */
        return n == 0 || (a.value == -1 && n % 2 == 0) ? r : a;
    for (int64_t i = 0; i < n && ctx_ok(c); i++)
        r = dim_mul(c, r, a);
    return r;
}

static bp_dim of_integers(bp_ctx *c, enum what what, bp_dim a, bp_dim b)
{
    switch (what) {
    case ADD: return dim_add(c, a, b);
    case SUB: return dim_sub(c, a, b);
    case MUL: return dim_mul(c, a, b);
    case FLOORDIV: return dim_floordiv(c, a, b);
    case POW: return power(c, a, b);
    case MIN: return dim_min(c, a, b);
    case MAX: return dim_max(c, a, b);
    default: return dim_mod(c, a, b);
    }
}

static bp_dim compare_dims(bp_ctx *c, enum what what, bp_dim a, bp_dim b)
{
    switch (what) {
    case EQ: return dim_compare(c, DIM_EQ, a, b);
    case NE: return dim_compare(c, DIM_NE, a, b);
    case LT: return dim_compare(c, DIM_LT, a, b);
    case LE: return dim_compare(c, DIM_LE, a, b);
    case GT: return dim_compare(c, DIM_LT, b, a);
    default: return dim_compare(c, DIM_LE, b, a);
    }
}

static bp_value condition(bp_dim d)
{
    return d.sym ? value_dim(d) : value_bool(d.value != 0);
}

/* -- floats -------------------------------------------------------------------------------------------------------- */

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

static bool compare_floats(enum what what, double f, double g)
{
    return compare(what, (f > g) - (f < g), !isunordered(f, g));
}

static double of_floats(enum what what, double a, double b)
{
    double rest = fmod(a, b);
    switch (what) {
    case ADD: return a + b;
    case SUB: return a - b;
    case MUL: return a * b;
    case FLOORDIV: return floor(a / b);
    case POW: return pow(a, b);
    case MIN: return b < a ? b : a;
    case MAX: return b > a ? b : a;
    case MOD: return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    default: return a / b;
    }
}

/* -- calls --------------------------------------------------------------------------------------------------------- */

/* A size that may be 0 is the business of whoever divides by it. */
static bool is_zero(bp_ctx *c, const bp_value *v)
{
    return is_integer(v) ? dim_same_as(dim_of(v), 0) : float_of(c, v) == 0;
}

bp_dtype builtin_type(str name, bool floats)
{
    const int at = find(name);
    enum form form = functions[at].form;
    if (form == COMPARISON || functions[at].what == NOT)
        return BP_BOOL;
    return form == QUOTIENT || floats ? BP_F64 : BP_I64;
}

static bp_status call_unary(bp_ctx *c, enum what what, const bp_value *a, bp_value *out)
{
    if (what == NOT)
        *out = is_integer(a) ? condition(dim_compare(c, DIM_EQ, dim_of(a), dim_const(0)))
                             : value_bool(a->v.f[0] == 0);
    else if (is_integer(a))
        *out = value_dim(dim_sub(c, dim_const(0), dim_of(a)));
    else
        *out = value_float(-a->v.f[0]);
    return c->diag.code;
}

bp_status builtin_call(bp_ctx *c, str name, const bp_value *args, uint32_t n, bp_value *out)
{
    int at = find(name);
    enum what what = functions[at].what;
    enum form form = functions[at].form;
    const bp_value *a = args, *b = args + 1;
    uint32_t wanted = form == UNARY ? 1 : 2;
    if (n != wanted || !is_number(a) || (n == 2 && !is_number(b)))
        return ctx_fail(c, BP_INVALID_ARGUMENT, "%s takes %s", functions[at].name,
                        form == UNARY ? "one number" : "two numbers");
    if (form == UNARY)
        return call_unary(c, what, a, out);
    bool integers = is_integer(a) && is_integer(b);
    if ((what == FLOORDIV || what == MOD || what == TRUEDIV) && is_zero(c, b))
        return ctx_fail(c, BP_INVALID_ARGUMENT, "%s: a number is divided by zero", functions[at].name);
    if (form == COMPARISON)
        *out = integers ? condition(compare_dims(c, what, dim_of(a), dim_of(b)))
                        : value_bool(compare_floats(what, float_of(c, a), float_of(c, b)));
    else if (integers && form == ARITHMETIC)
        *out = value_dim(of_integers(c, what, dim_of(a), dim_of(b)));
    else
        *out = value_float(of_floats(what, float_of(c, a), float_of(c, b)));
    return c->diag.code;
}
