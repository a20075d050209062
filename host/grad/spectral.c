/* Derivatives of QR, singular values, eigenvalues and what is made of them. Where values are equal the vectors are not
 * determined, and a gradient of them is not finite, as in PyTorch. */
#include "host/grad/linalg.h"

/* Vectors as factors of a matrix's columns, or of its rows. */
static bp_tensor *as_row(bp_ctx *c, bp_tensor *t)
{
    return bp_aten_unsqueeze_default(c, t, -2);
}

static bp_tensor *as_column(bp_ctx *c, bp_tensor *t)
{
    return bp_aten_unsqueeze_default(c, t, -1);
}

/* a_j - a_i at (i, j), ones on the diagonal. */
static bp_tensor *differences(bp_ctx *c, bp_tensor *a)
{
    bp_tensor *d = grad_sub(c, as_row(c, a), as_column(c, a));
    if (!d)
        return NULL;
    return grad_add(c, d, bp_aten_eye_default(c, grad_size(a, -1), d->dtype, 0, tensor_device(d), (bp_scalar){0}));
}

static bp_tensor *skew(bp_ctx *c, bp_tensor *t)
{
    return grad_sub(c, t, grad_mh(c, t));
}

/* t with zeros on its diagonal. */
static bp_tensor *off_diagonal(bp_ctx *c, bp_tensor *t)
{
    return grad_add(c, grad_triu(c, t, 1), grad_tril(c, t, -1));
}

static bp_tensor *first(bp_ctx *c, bp_tensor *t, int64_t dim, bp_dim n)
{
    return t && !dim_eq(grad_size(t, (int32_t)dim), n)
               ? bp_aten_slice_tensor(c, t, dim, bp_scalar_int(0), bp_scalar_dim(n), bp_dim_of(1)) : t;
}

/* -- QR ------------------------------------------------------------------------------------------------------------ */

/* Of A = Q R with a square R: (GQ + Q S) R^-H, S Hermitian with the upper triangle of GR R^H - Q^H GQ. */
static bp_tensor *of_qr(bp_ctx *c, bp_tensor *q, bp_tensor *r, bp_tensor *gq, bp_tensor *gr)
{
    bp_tensor *t = gr ? grad_mm(c, gr, grad_mh(c, r)) : NULL;
    t = grad_sub(c, t, gq ? grad_mm(c, grad_mh(c, q), gq) : NULL);
    bp_tensor *up = grad_triu(c, t, 1);
    t = grad_add(c, grad_add(c, up, grad_mh(c, up)), grad_diag(c, grad_real(c, grad_diagonal(c, t))));
    return grad_solve_t(c, grad_mh(c, r), grad_add(c, gq, grad_mm(c, q, t)), false, false, false);
}

/* More columns than rows: A = Q [R1 R2], and R2 = Q^H A2 is a product. */
static bp_tensor *of_wide_qr(bp_ctx *c, bp_tensor *q, bp_tensor *r, bp_tensor *gq, bp_tensor *gr)
{
    bp_dim m = grad_size(q, -1), n = grad_size(r, -1);
    bp_tensor *r2 = bp_aten_slice_tensor(c, r, -1, bp_scalar_dim(m), bp_scalar_dim(n), bp_dim_of(1)), *gr1 = NULL;
    bp_tensor *of_a2 = NULL;
    if (gr) {
        bp_tensor *gr2 = bp_aten_slice_tensor(c, gr, -1, bp_scalar_dim(m), bp_scalar_dim(n), bp_dim_of(1));
        gr1 = first(c, gr, -1, m);
        gq = grad_add(c, gq, grad_mm(c, grad_mm(c, q, r2), grad_mh(c, gr2)));
        of_a2 = grad_mm(c, q, gr2);
    }
    bp_tensor *of_a1 = of_qr(c, q, first(c, r, -1, m), gq, gr1);
    if (ctx_ok(c) && !of_a2)
        of_a2 = grad_zeros(c, grad_mm(c, q, r2));
    return bp_aten_cat_default(c, BP_TENSORS(of_a1, of_a2), -1);
}

bp_status derive_qr(bp_ctx *c, grad_call *g)
{
    bp_tensor *q = g->results[0], *r = g->results[1], *gq = g->grads[0], *gr = g->grads[1];
    const char *mode = grad_arg_str(g, "mode");
    bp_dim m = grad_size(r, -2), n = grad_size(r, -1);
    if (mode && mode[0] == 'r' && !mode[1])
        return op_fail(c, g->op, BP_UNIMPLEMENTED, "without Q (mode \"r\") it has no derivative: use mode \"reduced\"");
    if (dim_lt(n, m))
        return op_fail(c, g->op, BP_UNIMPLEMENTED,
                       "of more rows than columns, mode \"complete\" has no derivative: use mode \"reduced\"");
    grad_give(g, "A", dim_eq(m, n) ? of_qr(c, q, r, gq, gr) : of_wide_qr(c, q, r, gq, gr));
    return grad_done(c);
}

/* -- singular values ----------------------------------------------------------------------------------------------- */

typedef struct { bp_tensor *u, *s, *vh, *gu, *gs, *gvh; } svd_parts;

/* What stands between U and Vh. */
static bp_tensor *svd_core(bp_ctx *c, const svd_parts *p)
{
    bp_tensor *of_u = p->gu ? skew(c, grad_mm(c, grad_mh(c, p->u), p->gu)) : NULL;
    bp_tensor *of_v = p->gvh ? skew(c, grad_mm(c, p->vh, grad_mh(c, p->gvh))) : NULL;
    bp_tensor *core = of_u ? grad_mul(c, of_u, as_row(c, p->s)) : NULL;
    core = grad_add(c, core, of_v ? grad_mul(c, as_column(c, p->s), of_v) : NULL);
    core = grad_div(c, off_diagonal(c, core), differences(c, grad_mul(c, p->s, p->s)));
    if (grad_complex(p->u) && of_u)
        core = grad_add(c, core, grad_diag(c, grad_div(c, grad_diagonal(c, of_u), grad_scaled(c, p->s, 2))));
    return grad_add(c, core, p->gs ? grad_diag(c, p->gs) : NULL);
}

/* The part of gu outside of U's columns, over S. */
static bp_tensor *outside(bp_ctx *c, bp_tensor *u, bp_tensor *gu, bp_tensor *s)
{
    return grad_div(c, grad_sub(c, gu, grad_mm(c, u, grad_mm(c, grad_mh(c, u), gu))), as_row(c, s));
}

static bp_tensor *of_svd(bp_ctx *c, const svd_parts *p)
{
    if (!p->gu && !p->gvh)
        return grad_mm(c, p->u, grad_mul(c, as_column(c, p->gs), p->vh));
    bp_tensor *core = svd_core(c, p), *t = grad_mm(c, p->u, core);
    bool tall = !dim_eq(grad_size(p->u, -2), grad_size(p->s, -1));
    bool wide = !dim_eq(grad_size(p->vh, -1), grad_size(p->s, -1));
    if (tall && p->gu)
        t = grad_add(c, t, outside(c, p->u, p->gu, p->s));
    t = grad_mm(c, t, p->vh);
    if (wide && p->gvh) {
        bp_tensor *rest = outside(c, grad_mh(c, p->vh), grad_mh(c, p->gvh), p->s);
        t = grad_add(c, t, grad_mm(c, p->u, grad_mh(c, rest)));
    }
    return t;
}

/* Of full matrices, what stands beyond the singular values is not determined, and what flows there is left out. */
bp_status derive_svd(bp_ctx *c, grad_call *g)
{
    bp_dim k = grad_size(g->results[1], -1);
    svd_parts p = {g->results[0], g->results[1], g->results[2], g->grads[0], g->grads[1], g->grads[2]};
    if (!p.gu && !p.gs && !p.gvh)
        return grad_done(c);
    if (!grad_arg_bool(g, "compute_uv")) {
        bp_tensor3 again = bp_aten_private_linalg_svd_default(c, grad_tensor(g, "A"), 0, 1, NULL);
        p = (svd_parts){again.at[0], again.at[1], again.at[2], NULL, p.gs, NULL};
        if (!p.gs)
            return grad_done(c);
    }
    p.u = first(c, p.u, -1, k);
    p.gu = first(c, p.gu, -1, k);
    p.vh = first(c, p.vh, -2, k);
    p.gvh = first(c, p.gvh, -2, k);
    grad_give(g, "A", of_svd(c, &p));
    return grad_done(c);
}

/* -- eigenvalues --------------------------------------------------------------------------------------------------- */

/* V D V^H, D the skew part of V^H GV over differences of eigenvalues, and GL on the diagonal. */
static bp_tensor *of_eigh(bp_ctx *c, bp_tensor *values, bp_tensor *v, bp_tensor *gl, bp_tensor *gv)
{
    bp_tensor *vh = grad_mh(c, v);
    if (!gv)
        return grad_mm(c, grad_mul(c, v, as_row(c, gl)), vh);
    bp_tensor *core = grad_scaled(c, skew(c, grad_mm(c, vh, gv)), 0.5);
    core = grad_div(c, off_diagonal(c, core), differences(c, values));
    core = grad_add(c, core, gl ? grad_diag(c, gl) : NULL);
    return grad_mm(c, v, grad_mm(c, core, vh));
}

bp_status derive_eigh(bp_ctx *c, grad_call *g)
{
    bp_tensor *v = g->results[1], *gl = g->grads[0], *gv = g->grads[1];
    if (!grad_arg_bool(g, "compute_v")) {
        bp_tensor2 again = bp_aten_private_linalg_eigh_default(c, grad_tensor(g, "A"), grad_arg_str(g, "UPLO"),
                                                               1);
        v = again.at[1];
        gv = NULL;
    }
    if (gl || gv)
        grad_give(g, "A", of_eigh(c, g->results[0], v, gl, gv));
    return grad_done(c);
}

/* V^-H D V^H. Vectors have length 1: what flows along them is taken out. */
static bp_tensor *of_eig(bp_ctx *c, bp_tensor *values, bp_tensor *v, bp_tensor *gl, bp_tensor *gv)
{
    bp_tensor *vh = grad_mh(c, v), *core = NULL;
    if (!gv)
        return bp_aten_linalg_solve_default(c, vh, grad_mul(c, as_column(c, gl), vh), 1);
    bp_tensor *p = grad_mm(c, vh, gv), *along = bp_aten_real_default(c, grad_diagonal(c, p));
    core = grad_sub(c, p, grad_mm(c, vh, grad_mul(c, v, as_row(c, along))));
    core = grad_div(c, off_diagonal(c, core), differences(c, grad_conj(c, values)));
    core = grad_add(c, core, gl ? grad_diag(c, gl) : NULL);
    return bp_aten_linalg_solve_default(c, vh, grad_mm(c, core, vh), 1);
}

bp_status derive_eig(bp_ctx *c, grad_call *g)
{
    if (g->grads[0] || g->grads[1])
        grad_give(g, "self", of_eig(c, g->results[0], g->results[1], g->grads[0], g->grads[1]));
    return grad_done(c);
}

bp_status derive_eigvals(bp_ctx *c, grad_call *g)
{
    bp_tensor2 again = bp_aten_linalg_eig_default(c, grad_tensor(g, "self"));
    grad_give(g, "self", of_eig(c, again.at[0], again.at[1], g->grads[0], NULL));
    return grad_done(c);
}

/* -- functions of a matrix ----------------------------------------------------------------------------------------- */

/* The upper right block of exp([[A^H, G], [0, A^H]]). */
bp_status derive_matrix_exp(bp_ctx *c, grad_call *g)
{
    bp_tensor *a = grad_tensor(g, "self"), *h = grad_mh(c, a);
    bp_dim n = grad_size(a, -1), both = dim_add(c, n, n);
    if (dim_is(n, 0) || !ctx_ok(c))
        return grad_done(c);
    bp_tensor *above = bp_aten_cat_default(c, BP_TENSORS(h, g->grads[0]), -1);
    bp_tensor *below = bp_aten_cat_default(c, BP_TENSORS(grad_zeros(c, a), h), -1);
    bp_tensor *all = bp_aten_linalg_matrix_exp_default(c, bp_aten_cat_default(c, BP_TENSORS(above, below), -2));
    bp_tensor *top = first(c, all, -2, n);
    grad_give(g, "self", bp_aten_slice_tensor(c, top, -1, bp_scalar_dim(n), bp_scalar_dim(both), bp_dim_of(1)));
    return grad_done(c);
}

/* P of A: -P^H G P^H + (I - A P) G^H P P^H + P^H P G^H (I - P A), while the rank stays. */
static bp_tensor *of_pinv(bp_ctx *c, bp_tensor *a, bp_tensor *p, bp_tensor *grad)
{
    bp_tensor *ph = grad_mh(c, p), *gh = grad_mh(c, grad);
    bp_tensor *right = grad_mm(c, grad_mm(c, gh, p), ph), *left = grad_mm(c, ph, grad_mm(c, p, gh));
    right = grad_sub(c, right, grad_mm(c, a, grad_mm(c, p, right)));
    left = grad_sub(c, left, grad_mm(c, grad_mm(c, left, p), a));
    return grad_sub(c, grad_add(c, right, left), grad_mm(c, grad_mm(c, ph, grad), ph));
}

bp_status derive_pinv(bp_ctx *c, grad_call *g)
{
    grad_give(g, "self", of_pinv(c, grad_tensor(g, "self"), g->results[0], g->grads[0]));
    return grad_done(c);
}

/* The solution is P b, P the pseudo-inverse. Residuals are |A x - b|^2 by columns; at their least x does not move
 * them. */
bp_status derive_lstsq(bp_ctx *c, grad_call *g)
{
    bp_tensor *a = grad_tensor(g, "self"), *b = grad_tensor(g, "b"), *x = g->results[0], *grad = g->grads[0];
    bp_tensor *of_a = NULL, *of_b = NULL;
    bool vector = b->rank == 1 || b->rank + 1 == a->rank;
    if (vector) {
        b = as_column(c, b);
        x = as_column(c, x);
        grad = grad ? as_column(c, grad) : NULL;
    }
    if (grad) {
        bp_tensor *p = bp_aten_linalg_pinv_atol_rtol_tensor(c, a, NULL, NULL, 0);
        of_b = grad_mm(c, grad_mh(c, p), grad);
        if (grad_needs(g, "self"))
            of_a = of_pinv(c, a, p, grad_mm(c, grad, grad_mh(c, b)));
    }
    if (g->grads[1] && !dim_is(tensor_numel(c, g->grads[1]), 0)) {
        bp_tensor *rest = grad_sub(c, grad_mm(c, a, x), b);
        rest = grad_mul(c, grad_scaled(c, rest, 2), as_row(c, g->grads[1]));
        of_a = grad_add(c, of_a, grad_mm(c, rest, grad_mh(c, x)));
        of_b = grad_sub(c, of_b, rest);
    }
    grad_give(g, "self", of_a);
    grad_give(g, "b", of_b && vector ? bp_aten_squeeze_dim(c, of_b, -1) : of_b);
    return grad_done(c);
}
