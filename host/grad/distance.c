/* Derivatives of the gradients of distances between all pairs of rows. With d a difference and n its norm, a gradient
 * is the sum over pairs of the incoming gradient times slope(d, n): sgn(d) |d|^(p - 1) / n^(p - 1). */
#include "host/grad/math.h"
#include <math.h>

typedef struct {
    double p;
    bp_tensor *d, *n; /* differences [..., pairs, m], norms [..., pairs, 1] */
    bp_tensor *flat;  /* where nothing flows: n or d is 0 */
} pairs;

static bp_tensor *power(bp_ctx *c, bp_tensor *t, double p)
{
    return bp_aten_pow_tensor_scalar(c, t, bp_scalar_float(p));
}

static pairs pairs_of(bp_ctx *c, double p, bp_tensor *d, bp_tensor *n)
{
    pairs x = {.p = p, .d = d, .n = n, .flat = grad_is_zero(c, n)};
    if (p != 2)
        x.flat = bp_aten_logical_or_default(c, x.flat, grad_is_zero(c, d));
    return x;
}

static bool is_flat(double p) { return p == 0 || p == 1 || isinf(p); }

static bp_tensor *slope(bp_ctx *c, const pairs *x)
{
    bp_tensor *sign = bp_aten_sgn_default(c, x->d), *size = bp_aten_abs_default(c, x->d);
    if (x->p == 0)
        return grad_zeros(c, x->d);
    if (x->p == 1)
        return sign;
    if (isinf(x->p))
        return grad_mul(c, sign, bp_aten_eq_tensor(c, size, x->n));
    if (x->p == 2)
        return grad_unless(c, x->flat, grad_div(c, x->d, x->n));
    bp_tensor *t = grad_div(c, power(c, size, x->p - 1), power(c, x->n, x->p - 1));
    return grad_unless(c, x->flat, grad_mul(c, sign, t));
}

/* The slope's derivative by d. */
static bp_tensor *bend(bp_ctx *c, const pairs *x)
{
    if (x->p == 2)
        return grad_unless(c, x->flat, bp_aten_reciprocal_default(c, x->n));
    bp_tensor *t = grad_div(c, power(c, bp_aten_abs_default(c, x->d), x->p - 2), power(c, x->n, x->p - 1));
    return grad_unless(c, x->flat, grad_scaled(c, t, x->p - 1));
}

typedef struct { bp_tensor *grad_output, *d, *n; } found;

/* turn: the incoming gradient by pairs and elements; out: grad_output by pairs. */
static found differentiate(bp_ctx *c, const pairs *x, bp_tensor *turn, bp_tensor *out)
{
    bp_tensor *s = slope(c, x), *along = grad_mul(c, turn, s);
    found f = {.grad_output = grad_sum(c, along, -1, false)};
    if (is_flat(x->p))
        return f;
    bp_tensor *weight = bp_aten_unsqueeze_default(c, out, -1);
    f.d = grad_mul(c, grad_mul(c, turn, weight), bend(c, x));
    bp_tensor *by_norm = grad_div(c, grad_scaled(c, grad_mul(c, along, weight), 1 - x->p), x->n);
    f.n = grad_sum(c, grad_unless(c, grad_is_zero(c, x->n), by_norm), -1, false);
    return f;
}

static void give_or_zeros(bp_ctx *c, grad_call *g, const char *name, bp_tensor *t)
{
    if (grad_needs(g, name))
        grad_give(g, name, t ? t : grad_zeros(c, grad_tensor(g, name)));
}

bp_status grad_cdist_backward(bp_ctx *c, grad_call *g)
{
    bp_tensor *a = bp_aten_unsqueeze_default(c, grad_tensor(g, "x1"), -2);
    bp_tensor *b = bp_aten_unsqueeze_default(c, grad_tensor(g, "x2"), -3);
    bp_tensor *n = bp_aten_unsqueeze_default(c, grad_tensor(g, "cdist"), -1);
    pairs x = pairs_of(c, grad_arg_float(g, "p"), grad_sub(c, a, b), n);
    found f = differentiate(c, &x, bp_aten_unsqueeze_default(c, g->grads[0], -2), grad_tensor(g, "grad_output"));
    give_or_zeros(c, g, "grad_output", f.grad_output);
    give_or_zeros(c, g, "x1", f.d ? grad_sum(c, f.d, -2, false) : NULL);
    give_or_zeros(c, g, "x2", f.d ? grad_neg(c, grad_sum(c, f.d, -3, false)) : NULL);
    give_or_zeros(c, g, "cdist", f.n);
    return grad_done(c);
}

/* Differences of the rows of t whose numbers two lists hold. */
static bp_tensor *differences(bp_ctx *c, bp_tensor *t, bp_tensor *const *rows)
{
    return grad_sub(c, bp_aten_index_select_default(c, t, 0, rows[0]), bp_aten_index_select_default(c, t, 0, rows[1]));
}

bp_status grad_pdist_backward(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self"), *rows[2];
    bp_tensor *all = bp_aten_arange_default(c, bp_scalar_dim(grad_size(self, 0)), BP_I64, 0, tensor_device(self),
                                            (bp_scalar){0});
    all = bp_aten_combinations_default(c, all, 2, false);
    for (int i = 0; i < 2; i++)
        rows[i] = bp_aten_select_int(c, all, 1, bp_dim_of(i));
    bp_tensor *n = bp_aten_unsqueeze_default(c, grad_tensor(g, "pdist"), -1);
    pairs x = pairs_of(c, grad_arg_float(g, "p"), differences(c, self, rows), n);
    found f = differentiate(c, &x, differences(c, g->grads[0], rows), grad_tensor(g, "grad_output"));
    give_or_zeros(c, g, "grad_output", f.grad_output);
    give_or_zeros(c, g, "pdist", f.n);
    bp_tensor *t = NULL;
    if (f.d && grad_needs(g, "self")) {
        t = bp_aten_index_add_default(c, grad_zeros(c, self), 0, rows[0], f.d, bp_scalar_int(1));
        t = bp_aten_index_add_default(c, t, 0, rows[1], f.d, bp_scalar_int(-1));
    }
    give_or_zeros(c, g, "self", t);
    return grad_done(c);
}
