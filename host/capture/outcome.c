/* Outcomes: reading one element as typed bits, and printing them. */
#include "host/capture/outcome.h"
#include <math.h>
#include <string.h>

const char *ask_name(enum ask_kind kind)
{
    return kind == ASK_BOOL ? "bp_is_true" : kind == ASK_INT ? "bp_item_int" : "bp_item_float";
}

double outcome_float(outcome o)
{
    double d;
    memcpy(&d, &o.bits, sizeof d);
    return d;
}

static outcome of_float(double d)
{
    outcome o = {0, ASK_FLOAT, 0};
    if (isnan(d))
        d = (double)NAN;
    memcpy(&o.bits, &d, sizeof d);
    return o;
}

static outcome of_int(int64_t i)
{
    return (outcome){(uint64_t)i, ASK_INT, 0};
}

static bp_status not_one(bp_ctx *c, const char *who, const bp_tensor *t)
{
    char shape[128];
    ctx_fail(c, BP_INVALID_ARGUMENT, "%s: expected a tensor of one element, got %s", who,
             tensor_describe(t, shape, sizeof shape));
    diag_hint(&c->diag, "reduce it first, for instance with bp_any, bp_all or bp_sum, or take one element");
    return c->diag.code;
}

bp_status item_sym_size(bp_ctx *c, const bp_tensor *t)
{
    return not_one(c, "bp_item_sym", t);
}

bp_status outcome_check(bp_ctx *c, enum ask_kind kind, const bp_tensor *t)
{
    if (tensor_nelem(t) != 1)
        return not_one(c, ask_name(kind), t);
    if (kind != ASK_BOOL && dtype_is_complex(t->dtype))
        return ctx_fail(c, BP_INVALID_ARGUMENT, "%s: expected a real number, got a tensor of %s", ask_name(kind),
                        dtype_get(t->dtype)->torch);
    return BP_OK;
}

/* A float as an integer, cut towards zero as C and Python cut it. */
static bp_status float_to_int(bp_ctx *c, double d, outcome *out)
{
    if (!(d >= -9223372036854775808.0 && d < 9223372036854775808.0))
        return ctx_fail(c, BP_OUT_OF_RANGE, "bp_item_int: the value %g is no 64-bit integer", d);
    *out = of_int((int64_t)d);
    return BP_OK;
}

bp_status outcome_read(bp_ctx *c, enum ask_kind kind, const bp_tensor *t, outcome *out)
{
    TRY(outcome_check(c, kind, t));
    const void *p = tensor_ptr(t);
    if (!p)
        return ctx_fail(c, BP_FAILED_PRECONDITION, "%s: the tensor has no data in host memory", ask_name(kind));
    num v = dtype_load(t->dtype, p);
    if (kind == ASK_BOOL) {
        bool is = v.kind == NUM_INT ? v.i != 0 : v.f != 0 || (v.kind == NUM_COMPLEX && v.im != 0);
        *out = (outcome){is, ASK_BOOL, 0};
        return BP_OK;
    }
    if (kind == ASK_FLOAT) {
        *out = of_float(v.kind == NUM_INT ? (double)v.i : v.f);
        return BP_OK;
    }
    if (v.kind != NUM_INT)
        return float_to_int(c, v.f, out);
    *out = of_int(v.i);
    return BP_OK;
}

void outcome_print(outcome o, buf *out)
{
    if (o.kind == ASK_BOOL)
        buf_puts(out, outcome_bool(o) ? "true" : "false");
    else if (o.kind == ASK_NOTHING)
        buf_printf(out, "results %08x", (unsigned)(o.bits ^ o.bits >> 32));
    else if (o.kind == ASK_INT)
        buf_printf(out, "%lld", (long long)outcome_int(o));
    else
        buf_double(out, outcome_float(o));
}
