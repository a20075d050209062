/* Covariances and correlations: made of other operators, in PyTorch's steps. */
#include "host/op/reference/steps.h"
#include "host/op/rows.h"

static bp_tensor *refuse(work *w, const op_row *op, const char *why)
{
    if (work_ok(w))
        op_fail(w->c, op, BP_INVALID_ARGUMENT, "%s", why);
    return NULL;
}

/* The value of a tensor of one element; `otherwise` for a fake. */
static double number_of(const bp_tensor *t, double otherwise)
{
    if (!t || tensor_is_fake(t))
        return otherwise;
    num v = dtype_load((bp_dtype)t->dtype, tensor_ptr(t));
    return v.kind == NUM_INT ? (double)v.i : v.f;
}

/* Weights of n observations, fweights times aweights; t NULL: none are given. */
typedef struct { bp_tensor *t, *sum, *a; } weighting;

static bool check_weights(work *w, const op_row *op, const bp_tensor *t, int64_t n, bool integers)
{
    if (t->rank != 1 || tensor_dim(t, 0) != n)
        return refuse(w, op, "weights must be a vector, one for each observation") != NULL;
    if (integers != dtype_is_int((bp_dtype)t->dtype))
        return refuse(w, op, integers ? "argument \"fweights\" must be integers"
                                      : "argument \"aweights\" must be floats") != NULL;
    return true;
}

static bool read_weights(work *w, const op_row *op, const bp_value *args, int64_t n, weighting *out)
{
    *out = (weighting){NULL, NULL, arg_tensor(args, 3)};
    for (uint32_t i = 2; i < 4; i++) {
        bp_tensor *t = arg_tensor(args, i);
        if (!t)
            continue;
        if (!check_weights(w, op, t, n, i == 2))
            return false;
        bp_tensor *least = n ? CALL(min_default, T(t)) : NULL;
        if (number_of(least, 0) < 0)
            return refuse(w, op, "weights must not be negative") != NULL;
        out->t = out->t ? compose_two(w, ROW_mul_tensor, out->t, t) : t;
    }
    out->sum = out->t ? CALL(sum_default, T(out->t)) : NULL;
    if (out->sum && number_of(out->sum, 1) == 0)
        return refuse(w, op, "the weights' sum is zero, and nothing can be divided by it") != NULL;
    return work_ok(w);
}

/* The degrees of freedom, 0 where they would be negative: what the products' sum is divided by. */
static bp_tensor *freedom(work *w, const weighting *by, int64_t n, int64_t correction)
{
    if (!by->t)
        return CALL(scalar_tensor_default, I(n > correction ? n - correction : 0), value_dtype(BP_I64));
    bp_tensor *left = NULL;
    if (by->a && correction) {
        bp_tensor *squares = compose_two(w, ROW_mul_tensor, by->t, by->a);
        bp_tensor *sum = squares ? CALL(sum_default, T(squares)) : NULL;
        bp_tensor *scaled = sum ? CALL(mul_scalar, T(sum), I(correction)) : NULL;
        left = compose_two(w, ROW_sub_tensor, by->sum, compose_two(w, ROW_div_tensor, scaled, by->sum));
    } else {
        left = CALL(sub_scalar, T(by->sum), I(correction));
    }
    return left ? CALL(clamp_min_default, T(left), I(0)) : NULL;
}

static bp_tensor *weighted(work *w, bp_tensor *t, const weighting *by)
{
    return by->t ? compose_two(w, ROW_mul_tensor, t, by->t) : t;
}

static bp_tensor *body_cov(work *w, const op_row *op, const bp_value *args)
{
    bp_tensor *t = arg_tensor(args, 0);
    weighting by;
    if (t->rank > 2 || t->dtype == BP_BOOL)
        return refuse(w, op, "expected a vector or a matrix of numbers");
    if (t->rank < 2)
        t = compose_reshape(w, t, 2, (const bp_dim[]){dim_const(1), tensor_numel(w->c, t)});
    if (!t || !read_weights(w, op, args, tensor_dim(t, 1), &by))
        return NULL;
    int64_t n = tensor_dim(t, 1), last = 1;
    bp_tensor *total = compose_sum(w, weighted(w, t, &by), 1, &last, true);
    bp_tensor *mean = !total || by.t ? compose_two(w, ROW_div_tensor, total, by.sum)
                                     : CALL(div_scalar, T(total), I(n));
    bp_tensor *away = compose_two(w, ROW_sub_tensor, t, mean), *other = weighted(w, away, &by);
    bp_tensor *turned = other ? CALL(t_default, T(other)) : NULL;
    if (turned && dtype_is_complex((bp_dtype)turned->dtype))
        turned = CALL(private_conj_physical_default, T(turned));
    bp_tensor *products = compose_two(w, ROW_mm_default, away, turned);
    products = compose_two(w, ROW_div_tensor, products, freedom(w, &by, n, arg_int(w->c, args, 1)));
    return products ? CALL(squeeze_default, T(products)) : NULL;
}
COMPOSED(cov)

static bp_tensor *clipped(work *w, bp_tensor *t)
{
    return t ? CALL(clamp_default, T(t), I(-1), I(1)) : NULL;
}

/* Covariances over the deviations of both, within -1 and 1. */
static bp_tensor *body_corrcoef(work *w, const op_row *op, const bp_value *args)
{
    bp_tensor *t = arg_tensor(args, 0);
    if (t->rank > 2)
        return refuse(w, op, "expected a vector or a matrix");
    bp_tensor *c = CALL(cov_default, T(t));
    if (!c)
        return NULL;
    if (c->rank == 0)
        return compose_two(w, ROW_div_tensor, c, c);
    bool cplx = dtype_is_complex((bp_dtype)c->dtype);
    bp_tensor *d = CALL(diagonal_default, T(c)), *real = d && cplx ? CALL(real_default, T(d)) : d;
    bp_tensor *deviation = real ? CALL(sqrt_default, T(real)) : NULL;
    c = compose_two(w, ROW_div_tensor, c, compose_unsqueeze(w, deviation, 1));
    c = compose_two(w, ROW_div_tensor, c, compose_unsqueeze(w, deviation, 0));
    if (!c || !cplx)
        return clipped(w, c);
    return compose_two(w, ROW_complex_default, clipped(w, CALL(real_default, T(c))),
                       clipped(w, CALL(imag_default, T(c))));
}
COMPOSED(corrcoef)
