/* Arithmetic of sizes: checked, over constants. */
#include "host/sym/dim.h"
#include "sdk/base/checked.h"
#include <inttypes.h>

/* Both are constants; UNIMPLEMENTED otherwise. */
static bool known(bp_ctx *c, bp_dim a, bp_dim b)
{
    if (dim_is_const(a) && dim_is_const(b))
        return true;
    ctx_fail(c, BP_UNIMPLEMENTED, "a number that only a run tells (bp_item_sym) stands where a size must be known");
    return false;
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

enum dim_truth dim_prove(enum dim_rel rel, bp_dim a, bp_dim b)
{
    if (dim_is_const(a) && dim_is_const(b))
        return holds(rel, a.value, b.value) ? DIM_TRUE : DIM_FALSE;
    if (dim_same(a, b))
        return rel == DIM_EQ || rel == DIM_LE ? DIM_TRUE : DIM_FALSE;
    return DIM_UNKNOWN;
}

bool dim_ask(enum dim_rel rel, bp_dim a, bp_dim b)
{
    return dim_prove(rel, a, b) == DIM_TRUE;
}

bool dim_eq_or_false(bp_dim a, bp_dim b)
{
    return dim_prove(DIM_EQ, a, b) == DIM_TRUE;
}

bool dim_require(enum dim_rel rel, bp_dim a, bp_dim b)
{
    return dim_ask(rel, a, b);
}

int64_t dim_number(bp_dim d)
{
    return d.value;
}

/* -- arithmetic ---------------------------------------------------------------------------------------------------- */

typedef bool (*checked_fn)(int64_t a, int64_t b, int64_t *out);

static bp_dim apply(bp_ctx *c, bp_dim a, bp_dim b, checked_fn fn, const char *sign)
{
    int64_t r = 0;
    if (!known(c, a, b))
        return dim_const(0);
    if (!fn(a.value, b.value, &r))
        ctx_fail(c, BP_INVALID_ARGUMENT, "size %" PRId64 " %s %" PRId64 " does not fit 64 bits", a.value, sign,
                 b.value);
    return dim_const(r);
}

static bp_dim divide(bp_ctx *c, bp_dim a, bp_dim b, checked_fn fn, const char *sign)
{
    if (known(c, a, b) && b.value == 0) {
        ctx_fail(c, BP_INVALID_ARGUMENT, "size %" PRId64 " %s 0: division by zero", a.value, sign);
        return dim_const(0);
    }
    return apply(c, a, b, fn, sign);
}

int64_t dim_int(bp_ctx *c, bp_dim d)
{
    return known(c, d, d) ? d.value : 0;
}

bp_dim dim_add(bp_ctx *c, bp_dim a, bp_dim b)
{
    return apply(c, a, b, checked_add, "+");
}

bp_dim dim_sub(bp_ctx *c, bp_dim a, bp_dim b)
{
    return apply(c, a, b, checked_sub, "-");
}

bp_dim dim_mul(bp_ctx *c, bp_dim a, bp_dim b)
{
    return apply(c, a, b, checked_mul, "*");
}

bp_dim dim_floordiv(bp_ctx *c, bp_dim a, bp_dim b)
{
    return divide(c, a, b, checked_floordiv, "//");
}

bp_dim dim_mod(bp_ctx *c, bp_dim a, bp_dim b)
{
    return divide(c, a, b, checked_floormod, "%");
}

bp_dim dim_min(bp_ctx *c, bp_dim a, bp_dim b)
{
    return known(c, a, b) && b.value < a.value ? b : a;
}

bp_dim dim_max(bp_ctx *c, bp_dim a, bp_dim b)
{
    return known(c, a, b) && b.value > a.value ? b : a;
}

bp_dim dim_compare(bp_ctx *c, enum dim_rel rel, bp_dim a, bp_dim b)
{
    return dim_const(known(c, a, b) && holds(rel, a.value, b.value));
}

bp_dim dim_product(bp_ctx *c, const bp_dim *d, uint32_t n)
{
    bp_dim r = dim_const(1);
    for (uint32_t i = 0; i < n; i++)
        if (dim_is(d[i], 0)) /* an empty product is 0, however large its other factors are */
            return dim_const(0);
    for (uint32_t i = 0; i < n; i++)
        r = dim_mul(c, r, d[i]);
    return r;
}
