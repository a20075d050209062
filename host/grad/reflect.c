/* Derivatives of products of reflections H_i = I - tau_i v_i v_i^H, where v_i is column i of a matrix: zeros, a one at
 * i, and what stands below. */
#include "host/grad/linalg.h"

typedef struct {
    bp_tensor *vectors, *tau;      /* (..., m, k) with the ones and zeros, (..., k) */
    uint32_t k;
    bool adjoint;                  /* the product is H_k^H ... H_1^H instead of H_1 ... H_k */
    bp_tensor *of_vectors, *of_tau; /* what is found */
} reflections;

static bp_tensor *column(bp_ctx *c, const reflections *r, uint32_t i)
{
    return grad_slice(c, r->vectors, -1, i, (int64_t)i + 1);
}

/* tau_i as a matrix of one element. */
static bp_tensor *factor(bp_ctx *c, const reflections *r, uint32_t i)
{
    return bp_aten_unsqueeze_default(c, grad_slice(c, r->tau, -1, i, (int64_t)i + 1), -1);
}

/* H_i t, or H_i^H t. */
static bp_tensor *reflected(bp_ctx *c, const reflections *r, uint32_t i, bp_tensor *t, bool adjoint)
{
    bp_tensor *v = column(c, r, i), *tau = factor(c, r, i);
    tau = adjoint ? grad_conj(c, tau) : tau;
    return grad_sub(c, t, grad_mul(c, tau, grad_mm(c, v, grad_mm(c, grad_mh(c, v), t))));
}

/* Which reflection stands at that place of the product, from the left. */
static uint32_t at_place(const reflections *r, uint32_t place)
{
    return r->adjoint ? r->k - 1 - place : place;
}

/* M = a b^H is the gradient of H_i: tau gets -v^H M v, v gets -(conj(tau) M + tau M^H) v. */
static void of_reflection(bp_ctx *c, const reflections *r, uint32_t i, bp_tensor *a, bp_tensor *b, bp_tensor **of_v,
                          bp_tensor **of_tau)
{
    bp_tensor *v = column(c, r, i), *tau = factor(c, r, i);
    bp_tensor *mv = grad_mm(c, a, grad_mm(c, grad_mh(c, b), v)), *mhv = grad_mm(c, b, grad_mm(c, grad_mh(c, a), v));
    bp_tensor *sum = grad_add(c, grad_mul(c, grad_conj(c, tau), mv), grad_mul(c, tau, mhv));
    *of_v = grad_neg(c, sum);
    *of_tau = bp_aten_squeeze_dim(c, grad_neg(c, grad_mm(c, grad_mh(c, v), mv)), -1);
}

/* Of product * t, whose gradient is `grad`: what flows to each reflection is what comes from its left times what comes
 * from its right. */
static void reflections_run(bp_ctx *c, reflections *r, bp_tensor *t, bp_tensor *grad)
{
    bp_tensor **right = arena_array(&c->scratch, r->k, sizeof *right);
    bp_tensor **of_v = arena_array(&c->scratch, r->k, sizeof *of_v);
    bp_tensor **of_tau = arena_array(&c->scratch, r->k, sizeof *of_tau);
    if (!right || !of_v || !of_tau) {
        ctx_nomem(c);
        return;
    }
    for (uint32_t place = r->k; place-- > 0;) {
        right[place] = t;
        if (place)
            t = reflected(c, r, at_place(r, place), t, r->adjoint);
    }
    for (uint32_t place = 0; place < r->k; place++) {
        uint32_t i = at_place(r, place);
        bp_tensor *a = r->adjoint ? right[place] : grad, *b = r->adjoint ? grad : right[place];
        of_reflection(c, r, i, a, b, &of_v[i], &of_tau[i]);
        grad = reflected(c, r, i, grad, !r->adjoint);
    }
    r->of_vectors = grad_tril(c, bp_aten_cat_default(c, (bp_tensors){of_v, r->k}, -1), -1);
    r->of_tau = bp_aten_cat_default(c, (bp_tensors){of_tau, r->k}, -1);
}

static bp_tensor *eye(bp_ctx *c, const bp_tensor *like, bp_dim m, bp_dim n)
{
    return bp_aten_eye_m(c, m, n, like->dtype, 0, tensor_device(like), (bp_scalar){0});
}

/* The first k columns of what LAPACK keeps, as vectors. Columns behind them are not read. */
static bool reflections_make(bp_ctx *c, reflections *r, bp_tensor *kept, bp_tensor *tau, bool adjoint)
{
    int64_t k = dim_int(c, grad_size(tau, -1)); /* a number: the derivative has steps for each reflection */
    if (!ctx_ok(c) || k == 0)
        return false;
    bp_tensor *low = grad_tril(c, grad_slice(c, kept, -1, 0, k), -1);
    *r = (reflections){.vectors = grad_add(c, low, eye(c, kept, grad_size(kept, -2), dim_const(k))), .tau = tau,
                       .k = (uint32_t)k, .adjoint = adjoint};
    return true;
}

static void give_reflections(bp_ctx *c, grad_call *g, const reflections *r, const char *kept, const char *tau)
{
    bp_tensor *of = r->of_vectors, *t = grad_tensor(g, kept);
    bp_dim rest = dim_sub(c, grad_size(t, -1), dim_const(r->k)), pad[2] = {dim_const(0), rest};
    if (of && !dim_is(rest, 0))
        of = bp_aten_constant_pad_nd_default(c, of, (bp_dims){pad, 2, 1}, bp_scalar_int(0));
    if (grad_needs(g, kept))
        grad_give(g, kept, of);
    if (grad_needs(g, tau))
        grad_give(g, tau, r->of_tau);
}

/* input and tau, or under orgqr's names. */
bp_status derive_householder(bp_ctx *c, grad_call *g)
{
    bp_tensor *kept = grad_tensor(g, "input");
    reflections r;
    if (!reflections_make(c, &r, kept, grad_tensor(g, "tau"), false))
        return grad_done(c);
    reflections_run(c, &r, eye(c, kept, grad_size(kept, -2), grad_size(kept, -1)), g->grads[0]);
    give_reflections(c, g, &r, "input", "tau");
    return grad_done(c);
}

/* From the right, C Q is the adjoint of Q^H C^H. */
bp_status derive_ormqr(bp_ctx *c, grad_call *g)
{
    bool left = grad_arg_bool(g, "left"), transpose = grad_arg_bool(g, "transpose");
    bp_tensor *kept = grad_tensor(g, "self"), *tau = grad_tensor(g, "input2"), *other = grad_tensor(g, "input3");
    bp_tensor *grad = g->grads[0];
    reflections r;
    if (grad_needs(g, "input3"))
        grad_give(g, "input3", bp_aten_ormqr_default(c, kept, tau, grad, left, !transpose));
    if (!grad_needs(g, "self") && !grad_needs(g, "input2"))
        return grad_done(c);
    if (!reflections_make(c, &r, kept, tau, left == transpose))
        return grad_done(c);
    reflections_run(c, &r, left ? other : grad_mh(c, other), left ? grad : grad_mh(c, grad));
    give_reflections(c, g, &r, "self", "input2");
    return grad_done(c);
}
