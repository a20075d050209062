/* Decompositions of pointwise operators to core ATen, and of their gradients. */
#include "host/pass/parts.h"
#include <math.h>
#include <string.h>

/* -- halves computed in float -------------------------------------------------------------------------------------- */

static bp_dtype widened(bp_dtype d)
{
    return d == BP_F16 || d == BP_BF16 ? BP_F32 : d;
}

static bp_tensor *wide(work *w, const bp_value *a, uint32_t i)
{
    bp_tensor *t = arg_tensor(a, i);
    return t ? part_cast(w, t, widened((bp_dtype)t->dtype)) : NULL;
}

/* The same, integers as floats. */
static bp_tensor *real_of(work *w, const bp_value *a, uint32_t i)
{
    bp_tensor *t = wide(w, a, i);
    return t && dtype_is_integral((bp_dtype)t->dtype) ? part_cast(w, t, w->c->ambient.default_dtype) : t;
}

static bp_tensor *narrow(work *w, const bp_value *a, uint32_t i, bp_tensor *t)
{
    return t ? part_cast(w, t, (bp_dtype)arg_tensor(a, i)->dtype) : NULL;
}

static bool is_float(const bp_tensor *t)
{
    return dtype_is_float((bp_dtype)t->dtype);
}

/* where(condition, x, y), either side a number. */
static bp_tensor *choose(work *w, bp_tensor *condition, bp_value x, bp_value y)
{
    return condition ? CALL(where_self, T(condition), x, y) : NULL;
}

PART(sgn)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0);
    if (!dtype_is_complex((bp_dtype)x->dtype))
        return CALL(sign_default, a[0]);
    bp_tensor *size = CALL(abs_default, a[0]);
    return choose(w, CALL(eq_scalar, T(size), I(0)), I(0), T(CALL(div_tensor, a[0], T(size))));
}

PART(nan_to_num)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0);
    if (!is_float(x) && !dtype_is_complex((bp_dtype)x->dtype))
        return CALL(clone_default, a[0]);
    if (!is_float(x))
        return part_fail(w, op, "its parts are not there for complex numbers");
    double most = x->dtype == BP_F64 ? 1.7976931348623157e308 : x->dtype == BP_F32 ? 3.4028234663852886e38
                  : x->dtype == BP_F16 ? 65504 : 3.3895313892515355e38;
    bp_tensor *t = choose(w, CALL(isnan_default, a[0]), arg_is_none(a, 1) ? F(0) : a[1], a[0]);
    t = choose(w, CALL(eq_scalar, a[0], F((double)INFINITY)), arg_is_none(a, 2) ? F(most) : a[2], T(t));
    return choose(w, CALL(eq_scalar, a[0], F(-(double)INFINITY)), arg_is_none(a, 3) ? F(-most) : a[3], T(t));
}

PART(is_infinite)
{
    bool minus = strcmp(op->schema->name, "isneginf") == 0;
    if (!is_float(arg_tensor(a, 0)))
        return CALL(full_like_default, a[0], B(false), value_dtype(BP_BOOL));
    return CALL(eq_scalar, a[0], F(minus ? -(double)INFINITY : (double)INFINITY));
}

PART(sinc)
{
    (void)op;
    bp_tensor *x = CALL(mul_scalar, T(wide(w, a, 0)), F(M_PI));
    bp_tensor *t = CALL(div_tensor, T(CALL(sin_default, T(x))), T(x));
    t = choose(w, CALL(eq_scalar, a[0], I(0)), F(1), T(t));
    return is_float(arg_tensor(a, 0)) ? narrow(w, a, 0, t) : t;
}

PART(logit)
{
    (void)op;
    bp_tensor *x = is_float(arg_tensor(a, 0)) ? arg_tensor(a, 0) : real_of(w, a, 0); /* halves round at each step */
    if (!arg_is_none(a, 1)) { /* the lower bound is looked at first, also where it is the higher one */
        double high = 1 - arg_float(a, 1);
        bp_tensor *least = choose(w, CALL(gt_scalar, T(x), F(high)), F(high), T(x));
        x = choose(w, CALL(lt_scalar, T(x), a[1]), a[1], T(least));
    }
    bp_tensor *t = CALL(log_default, T(CALL(div_tensor, T(x), T(CALL(rsub_scalar, T(x), I(1))))));
    return is_float(arg_tensor(a, 0)) ? narrow(w, a, 0, t) : t;
}

PART(mvlgamma)
{
    (void)op;
    int64_t p = arg_int(w->c, a, 1);
    bp_tensor *steps = CALL(arange_start_step, F(-(double)p * 0.5 + 0.5), F(0.5), F(0.5),
                            value_dtype((bp_dtype)(is_float(arg_tensor(a, 0)) ? arg_tensor(a, 0)->dtype
                                                                              : w->c->ambient.default_dtype)));
    bp_tensor *x = steps ? CALL(add_tensor, T(compose_unsqueeze(w, arg_tensor(a, 0), -1)), T(steps)) : NULL;
    bp_tensor *sum = x ? CALL(sum_dim_intlist, T(CALL(lgamma_default, T(x))), INTS(-1)) : NULL;
    return CALL(add_scalar, T(sum), F((double)(p * (p - 1)) * log(M_PI) / 4));
}

PART(entr)
{
    (void)op;
    bp_tensor *x = real_of(w, a, 0);
    bp_tensor *t = CALL(mul_tensor, T(CALL(neg_default, T(x))), T(CALL(log_default, T(x))));
    t = choose(w, CALL(eq_scalar, T(x), I(0)), I(0), T(t));
    t = choose(w, CALL(lt_scalar, T(x), I(0)), F(-(double)INFINITY), T(t));
    t = choose(w, CALL(isnan_default, T(x)), T(x), T(t));
    return is_float(arg_tensor(a, 0)) ? narrow(w, a, 0, t) : t;
}

PART(log_ndtr)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0), *t = CALL(mul_scalar, a[0], F(M_SQRT1_2));
    bp_tensor *low = CALL(log_default, T(CALL(div_scalar, T(CALL(special_erfcx_default, T(CALL(neg_default, T(t))))),
                                              I(2))));
    low = CALL(sub_tensor, T(low), T(CALL(mul_tensor, T(t), T(t))));
    bp_tensor *high = CALL(log1p_default, T(CALL(div_scalar, T(CALL(neg_default, T(CALL(erfc_default, T(t))))), I(2))));
    return choose(w, CALL(lt_scalar, T(x), I(1)), T(low), T(high));
}

PART(softshrink)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0), *size = CALL(abs_default, a[0]);
    bp_tensor *less = CALL(sub_tensor, T(x), T(CALL(mul_tensor, T(CALL(sign_default, T(x))),
                                                    T(CALL(full_like_default, T(x), a[1])))));
    return choose(w, CALL(gt_scalar, T(size), a[1]), T(less), T(CALL(mul_scalar, T(x), I(0))));
}

PARTS(log_sigmoid)
{
    (void)op;
    bp_tensor *x = wide(w, a, 0), *out[2];
    bp_tensor *least = CALL(clamp_default, T(x), NONE, I(0));
    bp_tensor *z = CALL(exp_default, T(CALL(neg_default, T(CALL(abs_default, T(x))))));
    out[0] = narrow(w, a, 0, CALL(sub_tensor, T(least), T(CALL(log1p_default, T(z)))));
    out[1] = narrow(w, a, 0, z);
    return parts_give(w, k, out, 2);
}

static bool halves(work *w, bp_tensor *t, int64_t dim, bp_tensor *out[2])
{
    bp_dim size = work_ok(w) ? t->sizes[dim] : dim_const(0), n = dim_floordiv(w->c, size, dim_const(2));
    out[0] = CALL(slice_tensor, T(t), I(dim), I(0), D(n));
    out[1] = CALL(slice_tensor, T(t), I(dim), D(n), D(size));
    return work_ok(w);
}

PART(glu)
{
    (void)op;
    bp_tensor *both[2], *x = wide(w, a, 0);
    if (!x || !halves(w, x, part_dim(w, a, 1, x->rank), both))
        return NULL;
    return narrow(w, a, 0, CALL(mul_tensor, T(both[0]), T(CALL(sigmoid_default, T(both[1])))));
}

PART(glu_backward)
{
    (void)op;
    bp_tensor *both[2], *x = wide(w, a, 1), *g = wide(w, a, 0);
    int64_t dim = x ? part_dim(w, a, 2, x->rank) : 0;
    if (!x || !halves(w, x, dim, both))
        return NULL;
    bp_tensor *s = CALL(sigmoid_default, T(both[1])), *first = CALL(mul_tensor, T(s), T(g));
    bp_tensor *slope = CALL(mul_tensor, T(CALL(rsub_scalar, T(s), I(1))), T(s));
    bp_tensor *second = CALL(mul_tensor, T(CALL(mul_tensor, T(slope), T(both[0]))), T(g));
    bp_value items[] = {T(first), T(second)};
    return first && second ? narrow(w, a, 1, CALL(cat_default, value_list(items, 2), I(dim))) : NULL;
}

/* self * log(other), 0 where self is 0, NaN where other is. */
PART(xlogy)
{
    bool plus = strstr(op->schema->name, "xlog1py") != NULL;
    bp_value x = a[0], y = a[1];
    bp_tensor *logs;
    if (y.kind != BP_VALUE_TENSOR) {
        double v = plus ? log1p(arg_float(a, 1)) : log(arg_float(a, 1));
        if (isnan(arg_float(a, 1)))
            return CALL(mul_scalar, x, y);
        logs = CALL(mul_scalar, x, F(v));
        return choose(w, CALL(eq_scalar, x, I(0)), I(0), T(logs));
    }
    logs = plus ? CALL(log1p_default, y) : CALL(log_default, y);
    bp_tensor *t = x.kind == BP_VALUE_TENSOR ? CALL(mul_tensor, x, T(logs)) : CALL(mul_scalar, T(logs), x);
    if (x.kind == BP_VALUE_TENSOR)
        t = choose(w, CALL(eq_scalar, x, I(0)), I(0), T(t));
    else if (arg_float(a, 0) == 0)
        t = CALL(full_like_default, T(t), I(0));
    return choose(w, CALL(isnan_default, y), F((double)NAN), T(t));
}

PART(logaddexp)
{
    bool two = op->schema->name[strlen(op->schema->name) - 1] == '2';
    bp_tensor *x = wide(w, a, 0), *y = wide(w, a, 1);
    if (!x || !y)
        return NULL;
    if (dtype_is_complex((bp_dtype)x->dtype) || dtype_is_complex((bp_dtype)y->dtype)) {
        op_fail(w->c, op, BP_UNIMPLEMENTED, "its parts are not there for complex numbers");
        return NULL;
    }
    bp_tensor *most = CALL(maximum_default, T(x), T(y)),
        *apart = CALL(neg_default, T(CALL(abs_default, T(CALL(sub_tensor, T(x), T(y))))));
    bp_tensor *more = two ? CALL(div_scalar, T(CALL(log1p_default, T(CALL(exp2_default, T(apart))))), F(M_LN2))
                          : CALL(log1p_default, T(CALL(exp_default, T(apart))));
    bp_tensor *t = CALL(add_tensor, T(most), T(more));
    bp_tensor *infinite = CALL(bitwise_and_tensor, T(CALL(isinf_default, T(most))), T(CALL(eq_tensor, T(x), T(y))));
    t = choose(w, infinite, T(most), T(t));
    return t ? part_cast(w, t, promote_args(w->c, a, 0, 1)) : NULL;
}

PART(lerp)
{
    (void)op;
    bp_tensor *x = wide(w, a, 0), *y = wide(w, a, 1);
    bp_tensor *apart = CALL(sub_tensor, T(y), T(x));
    if (a[2].kind != BP_VALUE_TENSOR) {
        double v = arg_float(a, 2);
        if (a[2].kind == BP_VALUE_COMPLEX)
            v = hypot(a[2].v.f[0], a[2].v.f[1]);
        if (fabs(v) < 0.5)
            return narrow(w, a, 0, CALL(add_tensor, T(x), T(CALL(mul_scalar, T(apart), a[2]))));
        bp_value rest = a[2].kind == BP_VALUE_COMPLEX ? (bp_value){.kind = BP_VALUE_COMPLEX,
                                                                   .v.f = {1 - a[2].v.f[0], -a[2].v.f[1]}}
                                                      : F(1 - v);
        return narrow(w, a, 0, CALL(sub_tensor, T(y), T(CALL(mul_scalar, T(apart), rest))));
    }
    bp_tensor *v = wide(w, a, 2), *below = CALL(lt_scalar, T(CALL(abs_default, T(v))), F(0.5));
    bp_tensor *low = CALL(add_tensor, T(x), T(CALL(mul_tensor, T(v), T(apart))));
    bp_tensor *high = CALL(sub_tensor, T(y), T(CALL(mul_tensor, T(apart), T(CALL(rsub_scalar, T(v), I(1))))));
    return narrow(w, a, 0, choose(w, below, T(low), T(high)));
}

/* -- gradients ----------------------------------------------------------------------------------------------------- */

PART(gelu_backward)
{
    (void)op;
    bp_tensor *g = wide(w, a, 0), *x = wide(w, a, 1), *slope;
    if (strcmp(arg_str(a, 2), "tanh") == 0) {
        const double beta = M_SQRT2 * M_2_SQRTPI * 0.5, kappa = 0.044715;
        bp_tensor *square = CALL(mul_tensor, T(x), T(x));
        bp_tensor *cube = CALL(mul_tensor, T(square), T(x));
        bp_tensor *inner = CALL(mul_scalar, T(CALL(add_tensor, T(x), T(CALL(mul_scalar, T(cube), F(kappa))))), F(beta));
        bp_tensor *t = CALL(tanh_default, T(inner));
        bp_tensor *left = CALL(mul_scalar, T(CALL(add_scalar, T(t), I(1))), F(0.5));
        bp_tensor *down = CALL(rsub_scalar, T(CALL(mul_tensor, T(t), T(t))), I(1));
        bp_tensor *in = CALL(mul_scalar, T(CALL(add_scalar, T(CALL(mul_scalar, T(square), F(3 * kappa))), I(1))),
                             F(beta));
        bp_tensor *right = CALL(mul_tensor, T(CALL(mul_tensor, T(CALL(mul_scalar, T(x), F(0.5))), T(down))), T(in));
        slope = CALL(add_tensor, T(left), T(right));
    } else {
        bp_tensor *cdf = CALL(mul_scalar, T(CALL(add_scalar,
                                                 T(CALL(erf_default, T(CALL(mul_scalar, T(x), F(M_SQRT1_2))))), I(1))),
                                                     F(0.5));
        bp_tensor *pdf = CALL(exp_default, T(CALL(mul_scalar, T(CALL(mul_tensor, T(x), T(x))), F(-0.5))));
        pdf = CALL(mul_scalar, T(pdf), F(M_2_SQRTPI * M_SQRT1_2 * 0.5));
        slope = CALL(add_tensor, T(cdf), T(CALL(mul_tensor, T(x), T(pdf))));
    }
    return narrow(w, a, 0, CALL(mul_tensor, T(g), T(slope)));
}

/* grad, alpha, scale, input_scale, is_result, self_or_result */
PART(elu_backward)
{
    (void)op;
    bp_tensor *g = wide(w, a, 0), *x = wide(w, a, 5);
    double alpha = arg_float(a, 1), scale = arg_float(a, 2), in = arg_float(a, 3), minus = alpha * scale;
    bp_tensor *low = arg_bool(a, 4)
                         ? CALL(mul_tensor, T(CALL(mul_scalar, T(g), F(in))), T(CALL(add_scalar, T(x), F(minus))))
                         : CALL(mul_tensor, T(CALL(mul_scalar, T(g), F(in * minus))),
                                T(CALL(exp_default, T(CALL(mul_scalar, T(x), F(in))))));
    return narrow(w, a, 0, choose(w, CALL(le_scalar, T(x), I(0)), T(low), T(CALL(mul_scalar, T(g), F(scale)))));
}

PART(logit_backward)
{
    (void)op;
    bp_tensor *g = wide(w, a, 0), *x = wide(w, a, 1);
    bool free = arg_is_none(a, 2) || arg_float(a, 2) < 0;
    double low = free ? 0 : arg_float(a, 2), high = free ? 1 : 1 - low;
    bp_tensor *inside = CALL(logical_and_default, T(CALL(ge_scalar, T(x), F(low))), T(CALL(le_scalar, T(x), F(high))));
    bp_tensor *t = CALL(div_tensor, T(g), T(CALL(mul_tensor, T(x), T(CALL(rsub_scalar, T(x), I(1))))));
    return narrow(w, a, 1, choose(w, inside, T(t), free ? F((double)NAN) : F(0)));
}

PART(log_sigmoid_backward)
{
    (void)op;
    bp_tensor *g = wide(w, a, 0), *x = wide(w, a, 1), *below = CALL(lt_scalar, T(x), I(0));
    bp_tensor *z = CALL(exp_default, T(CALL(neg_default, T(CALL(abs_default, T(x))))));
    bp_tensor *most = choose(w, below, F(1), F(0)), *sign = choose(w, below, F(1), F(-1));
    bp_tensor *share = CALL(div_tensor, T(z), T(CALL(add_scalar, T(z), I(1))));
    bp_tensor *t = CALL(sub_tensor, T(most), T(CALL(mul_tensor, T(sign), T(share))));
    return narrow(w, a, 0, CALL(mul_tensor, T(g), T(t)));
}

PARTS(prelu_backward)
{
    (void)op;
    bp_tensor *up = CALL(gt_scalar, a[1], I(0)), *out[2];
    out[0] = choose(w, up, a[0], T(CALL(mul_tensor, a[2], a[0])));
    out[1] = choose(w, up, F(0), T(CALL(mul_tensor, a[1], a[0])));
    return parts_give(w, k, out, 2);
}
