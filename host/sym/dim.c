/* Arithmetic of sizes, checked, and questions on them. Constants are computed here; what has a symbol in it goes to the
 * thread's environment. */
#include "host/sym/dim.h"
#include "host/sym/expr.h"
#include "sdk/base/checked.h"
#include <inttypes.h>

/* -- the environment ----------------------------------------------------------------------------------------------- */

/* The current environment, if both are of it; UNIMPLEMENTED to c (NULL: nobody) otherwise. */
static sym_env *environment(bp_ctx *c, bp_dim a, bp_dim b)
{
    sym_env *e = sym_now.env;
    if (e && sym_belongs(e, a) && sym_belongs(e, b))
        return e;
    if (c)
        ctx_fail(c, BP_UNIMPLEMENTED, "a number that only a run tells (bp_item_sym) stands where a size must be known");
    return NULL;
}

static RARE bp_status not_decided(const sym_env *e, bp_ctx *c, const char *what, bp_dim d)
{
    buf text = {0};
    sym_print(e, d, false, &text);
    bp_status s = ctx_fail(c, BP_UNIMPLEMENTED, "could not %s data-dependent expression %s", what, buf_text(&text));
    diag_detail(&c->diag, "Its value is known to a run alone.");
    diag_hint(&c->diag, "say what is known of it (bp_check, bounds of a mark), choose by bp_cond or bp_where, or let "
              "the function break there");
    buf_fini(&text);
    return s;
}

/* -- questions ----------------------------------------------------------------------------------------------------- */

static bool holds(enum dim_rel rel, int64_t a, int64_t b)
{
    switch (rel) {
    case DIM_EQ: return a == b;
    case DIM_NE: return a != b;
    case DIM_LT: return a < b;
    case DIM_LE: return a <= b;
    }
    return false;
}

static __attribute__((noinline)) enum dim_truth prove(enum dim_rel rel, bp_dim a, bp_dim b)
{
    if (dim_same(a, b))
        return rel == DIM_EQ || rel == DIM_LE ? DIM_TRUE : DIM_FALSE;
    sym_env *e = sym_now.env;
    sym_ex x = sym_ex_of(a), y = sym_ex_of(b);
    const sym_memo *m = e ? sym_recall(e, SYM_REL + rel, x, y) : NULL;
    if (m)
        return (enum dim_truth)m->result.value;
    e = environment(NULL, a, b);
    enum dim_truth t = e ? sym_decide(e, rel, x, y) : DIM_UNKNOWN;
    return e && sym_ends_well(e, sym_now.c, "?", a, b) ? t : DIM_UNKNOWN;
}

enum dim_truth dim_prove(enum dim_rel rel, bp_dim a, bp_dim b)
{
    if (dim_is_const(a) && dim_is_const(b))
        return holds(rel, a.value, b.value) ? DIM_TRUE : DIM_FALSE;
    return prove(rel, a, b);
}

/* A relation as a condition, by what is known. */
static sym_ex asked(sym_env *e, enum dim_rel rel, bp_dim a, bp_dim b)
{
    return sym_condition(e, rel, sym_plain(e, sym_ex_of(a)), sym_plain(e, sym_ex_of(b)));
}

/* Records the condition, or its opposite, and says which. */
static bool settle(sym_env *e, bp_ctx *c, sym_ex x, bool yes, enum sym_origin origin)
{
    if (x.id)
        sym_record(e, c, yes ? x : sym_negate(e, x), origin);
    else
        yes = x.k != 0;
    e->contradiction = false;
    return yes;
}

/* By the hints: of the condition, or, where that has none, of what was asked. */
static bool hinted(const sym_env *e, enum dim_rel rel, sym_ex x, bp_dim a, bp_dim b)
{
    int64_t hint = 0;
    return sym_ex_hint(e, x, &hint) ? hint != 0 : holds(rel, a.value, b.value);
}

/* What is not proven. */
static RARE bool settle_question(enum dim_rel rel, bp_dim a, bp_dim b, bool require)
{
    bp_ctx *c = sym_now.c;
    sym_env *e = environment(NULL, a, b);
    if (!e)
        return false;
    sym_ex x = asked(e, rel, a, b);
    bool data = sym_is_data(e, (bp_dim){0, x.id, 0}), yes = false;
    if (!data)
        yes = settle(e, c, x, hinted(e, rel, x, a, b), SYM_GUARD);
    else if (require)
        yes = settle(e, c, x, true, SYM_ASSERTED);
    else if (c && !e->fail)
        not_decided(e, c, "guard on", sym_dim(e, x));
    return sym_ends_well(e, c, "?", a, b) && yes;
}

static bool ask(enum dim_rel rel, bp_dim a, bp_dim b, bool require)
{
    enum dim_truth t = dim_prove(rel, a, b);
    return t != DIM_UNKNOWN ? t == DIM_TRUE : settle_question(rel, a, b, require);
}

bool dim_ask(enum dim_rel rel, bp_dim a, bp_dim b)
{
    return ask(rel, a, b, false);
}

bool dim_require(enum dim_rel rel, bp_dim a, bp_dim b)
{
    return dim_is_const(a) && dim_is_const(b) ? holds(rel, a.value, b.value) : ask(rel, a, b, true);
}

/* What is asked is of data, by all that is known. */
static RARE bool of_data(bp_dim a, bp_dim b)
{
    sym_env *e = environment(NULL, a, b);
    if (!e || (!sym_is_data(e, a) && !sym_is_data(e, b)))
        return !e;
    sym_ex x = sym_plain(e, sym_ex_of(a)), y = sym_plain(e, sym_ex_of(b));
    return !sym_ends_well(e, sym_now.c, "?", a, b) || sym_at(e, x.id)->unbacked || sym_at(e, y.id)->unbacked;
}

enum dim_truth dim_decide(enum dim_rel rel, bp_dim a, bp_dim b)
{
    enum dim_truth t = dim_prove(rel, a, b);
    if (t != DIM_UNKNOWN || of_data(a, b))
        return t;
    return dim_ask(rel, a, b) ? DIM_TRUE : DIM_FALSE;
}

bool dim_eq_or_false(bp_dim a, bp_dim b)
{
    return dim_decide(DIM_EQ, a, b) == DIM_TRUE;
}

static RARE int64_t specialize(bp_ctx *c, bp_dim d)
{
    sym_env *e = environment(c, d, d);
    sym_ex x = e ? sym_plain(e, sym_ex_of(d)) : sym_ex_const(0);
    int64_t v = x.k;
    if (x.id && sym_at(e, x.id)->unbacked) {
        if (c && !e->fail)
            not_decided(e, c, "take the number of", d);
    } else if (x.id) {
        v = sym_ex_hint(e, x, &v) ? v : d.value;
        settle(e, sym_now.c, sym_condition(e, DIM_EQ, x, sym_ex_const(v)), true, SYM_GUARD);
    }
    return e && sym_ends_well(e, c, "as", d, d) ? v : 0;
}

int64_t dim_int(bp_ctx *c, bp_dim d)
{
    return dim_is_const(d) ? d.value : specialize(c, d);
}

int64_t dim_number(bp_dim d)
{
    if (dim_is_const(d))
        return d.value;
    return sym_now.env ? specialize(sym_now.c, d) : d.value;
}

/* -- arithmetic ---------------------------------------------------------------------------------------------------- */

typedef bool (*checked_fn)(int64_t a, int64_t b, int64_t *out);

/* The result's hint is computed as it was asked for, so that what overflows there is said, whatever the normal form. */
static bp_dim compute_anew(bp_ctx *c, sym_env *e, enum sym_op op, bp_dim a, bp_dim b, checked_fn fn, const char *sign)
{
    bool data = sym_is_data(e, a) || sym_is_data(e, b);
    int64_t hint = 0;
    if (!data && !fn(a.value, b.value, &hint))
        sym_fails(e, SYM_OVERFLOW);
    sym_ex x = sym_apply(e, op, sym_ex_of(a), sym_ex_of(b));
    if (!sym_ends_well(e, c, sign, a, b))
        return dim_const(0);
    bp_dim r = data || !x.id ? sym_dim(e, x) : (bp_dim){hint, x.id, 0};
    sym_remember(e, op, sym_ex_of(a), sym_ex_of(b), r);
    return r;
}

static __attribute__((noinline)) bp_dim compute(bp_ctx *c, enum sym_op op, bp_dim a, bp_dim b, checked_fn fn,
                                                const char *sign)
{
    sym_env *e = sym_now.env;
    const sym_memo *m = e ? sym_recall(e, op, sym_ex_of(a), sym_ex_of(b)) : NULL;
    if (m)
        return m->result;
    e = environment(c, a, b);
    return e ? compute_anew(c, e, op, a, b, fn, sign) : dim_const(0);
}

static bp_dim apply(bp_ctx *c, enum sym_op op, bp_dim a, bp_dim b, checked_fn fn, const char *sign)
{
    int64_t r = 0;
    if (!dim_is_const(a) || !dim_is_const(b))
        return compute(c, op, a, b, fn, sign);
    if (!fn(a.value, b.value, &r))
        ctx_fail(c, BP_INVALID_ARGUMENT, "size %" PRId64 " %s %" PRId64 " does not fit 64 bits", a.value, sign,
                 b.value);
    return dim_const(r);
}

static bp_dim divide(bp_ctx *c, enum sym_op op, bp_dim a, bp_dim b, checked_fn fn, const char *sign)
{
    bool zero = dim_is_const(b) ? b.value == 0 : sym_now.env && !dim_require(DIM_NE, b, dim_const(0));
    if (zero && ctx_ok(c))
        ctx_fail(c, BP_INVALID_ARGUMENT, "size %" PRId64 " %s 0: division by zero", a.value, sign);
    return zero ? dim_const(0) : apply(c, op, a, b, fn, sign);
}

static bool add_checked(int64_t a, int64_t b, int64_t *out)
{
    return checked_add(a, b, out);
}

static bool sub_checked(int64_t a, int64_t b, int64_t *out)
{
    return checked_sub(a, b, out);
}

static bool mul_checked(int64_t a, int64_t b, int64_t *out)
{
    return checked_mul(a, b, out);
}

static bool min_checked(int64_t a, int64_t b, int64_t *out)
{
    *out = b < a ? b : a;
    return true;
}

static bool max_checked(int64_t a, int64_t b, int64_t *out)
{
    *out = b > a ? b : a;
    return true;
}

bp_dim dim_add(bp_ctx *c, bp_dim a, bp_dim b)
{
    if (dim_same_as(a, 0) || dim_same_as(b, 0))
        return dim_same_as(a, 0) ? b : a;
    return apply(c, SYM_ADD, a, b, add_checked, "+");
}

bp_dim dim_sub(bp_ctx *c, bp_dim a, bp_dim b)
{
    return apply(c, SYM_SUB, a, b, sub_checked, "-");
}

bp_dim dim_mul(bp_ctx *c, bp_dim a, bp_dim b)
{
    if (dim_same_as(a, 1) || dim_same_as(b, 1))
        return dim_same_as(a, 1) ? b : a;
    return apply(c, SYM_MUL, a, b, mul_checked, "*");
}

bp_dim dim_floordiv(bp_ctx *c, bp_dim a, bp_dim b)
{
    return divide(c, SYM_DIV, a, b, checked_floordiv, "//");
}

bp_dim dim_mod(bp_ctx *c, bp_dim a, bp_dim b)
{
    return divide(c, SYM_REM, a, b, checked_floormod, "%");
}

bp_dim dim_min(bp_ctx *c, bp_dim a, bp_dim b)
{
    return apply(c, SYM_LEAST, a, b, min_checked, "min");
}

bp_dim dim_max(bp_ctx *c, bp_dim a, bp_dim b)
{
    return apply(c, SYM_MOST, a, b, max_checked, "max");
}

bp_dim dim_compare(bp_ctx *c, enum dim_rel rel, bp_dim a, bp_dim b)
{
    if (dim_is_const(a) && dim_is_const(b))
        return dim_const(holds(rel, a.value, b.value));
    sym_env *e = environment(c, a, b);
    sym_ex x = e ? sym_compare(e, rel, sym_ex_of(a), sym_ex_of(b)) : sym_ex_const(0);
    if (!e || !sym_ends_well(e, c, "-", a, b))
        return dim_const(0);
    bp_dim r = sym_dim(e, x);
    if (r.sym && !sym_is_data(e, r))
        r.value = holds(rel, a.value, b.value);
    return r;
}

bp_dim dim_product(bp_ctx *c, const bp_dim *d, uint32_t n)
{
    bp_dim r = dim_const(1);
    for (uint32_t i = 0; i < n; i++)
        if (dim_prove(DIM_EQ, d[i], dim_const(0)) == DIM_TRUE)
            return dim_const(0); /* an empty product is 0, however large its other factors are */
    for (uint32_t i = 0; i < n; i++)
        if (d[i].sym && d[i].value == 0 && sym_now.env && dim_eq_or_false(d[i], dim_const(0)))
            return dim_const(0);
    for (uint32_t i = 0; i < n; i++)
        r = dim_mul(c, r, d[i]);
    return r;
}
