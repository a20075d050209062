/* Derivatives of triangular and LU factors, of solutions, inverses and determinants.
 *
 * A gradient G of a matrix is such that the loss moves by Re tr(G^H dA). Batches broadcast; the sums over what was
 * broadcast are the engine's. */
#include "host/grad/linalg.h"

bp_tensor *grad_solve_t(bp_ctx *c, bp_tensor *t, bp_tensor *b, bool upper, bool left, bool unit)
{
    return bp_aten_linalg_solve_triangular_default(c, t, b, upper, left, unit);
}

bp_tensor *grad_tril(bp_ctx *c, bp_tensor *t, int64_t k)
{
    return bp_aten_tril_default(c, t, bp_dim_of(k));
}

bp_tensor *grad_triu(bp_ctx *c, bp_tensor *t, int64_t k)
{
    return bp_aten_triu_default(c, t, bp_dim_of(k));
}

bp_tensor *grad_diagonal(bp_ctx *c, bp_tensor *t)
{
    return bp_aten_diagonal_default(c, t, 0, -2, -1);
}

bp_tensor *grad_diag(bp_ctx *c, bp_tensor *t)
{
    return bp_aten_diag_embed_default(c, t, 0, -2, -1);
}

/* The triangle of t that a solution reads. */
static bp_tensor *triangle(bp_ctx *c, bp_tensor *t, bool upper, bool unit)
{
    return upper ? grad_triu(c, t, unit) : grad_tril(c, t, -(int64_t)unit);
}

/* -- Cholesky ------------------------------------------------------------------------------------------------------ */

/* A = L L^H: L^-H S L^-1, where 2 S has the lower triangle of L^H G, and is Hermitian beside its diagonal. */
bp_status derive_cholesky(bp_ctx *c, grad_call *g)
{
    bool upper = grad_arg_bool(g, "upper");
    bp_tensor *l = upper ? grad_mh(c, g->results[0]) : g->results[0];
    bp_tensor *grad = upper ? grad_mh(c, g->grads[0]) : g->grads[0];
    bp_tensor *p = grad_mm(c, grad_mh(c, l), grad), *low = grad_tril(c, p, -1);
    bp_tensor *s = grad_add(c, grad_add(c, low, grad_mh(c, low)), grad_diag(c, grad_diagonal(c, p)));
    s = grad_solve_t(c, grad_mh(c, l), s, true, true, false);
    grad_give(g, "self", grad_scaled(c, grad_solve_t(c, l, s, false, false, false), 0.5));
    return grad_done(c);
}

/* G of A^-1 as a gradient of the factor of A: -(G + G^H) times it, from the side where it stands. */
static bp_tensor *to_factor(bp_ctx *c, bp_tensor *both, bp_tensor *factor, bool upper)
{
    return grad_neg(c, upper ? grad_mm(c, factor, both) : grad_mm(c, both, factor));
}

bp_status derive_cholesky_inverse(bp_ctx *c, grad_call *g)
{
    bp_tensor *inv = g->results[0], *both = grad_add(c, g->grads[0], grad_mh(c, g->grads[0]));
    both = grad_mm(c, inv, grad_mm(c, both, inv));
    grad_give(g, "self", to_factor(c, both, grad_tensor(g, "self"), grad_arg_bool(g, "upper")));
    return grad_done(c);
}

bp_status derive_cholesky_solve(bp_ctx *c, grad_call *g)
{
    bool upper = grad_arg_bool(g, "upper");
    bp_tensor *factor = grad_tensor(g, "input2");
    bp_tensor *b = bp_aten_cholesky_solve_default(c, g->grads[0], factor, upper);
    if (grad_needs(g, "self"))
        grad_give(g, "self", b);
    if (grad_needs(g, "input2")) {
        bp_tensor *p = grad_mm(c, b, grad_mh(c, g->results[0]));
        grad_give(g, "input2", to_factor(c, grad_add(c, p, grad_mh(c, p)), factor, upper));
    }
    return grad_done(c);
}

/* -- LU ------------------------------------------------------------------------------------------------------------ */

static bp_tensor *columns(bp_ctx *c, bp_tensor *t, bp_dim from, bp_dim to)
{
    return bp_aten_slice_tensor(c, t, -1, bp_scalar_dim(from), bp_scalar_dim(to), bp_dim_of(1));
}

static bp_tensor *rows(bp_ctx *c, bp_tensor *t, bp_dim from, bp_dim to)
{
    return bp_aten_slice_tensor(c, t, -2, bp_scalar_dim(from), bp_scalar_dim(to), bp_dim_of(1));
}

static bp_tensor *beside(bp_ctx *c, bp_tensor *a, bp_tensor *b, int64_t dim)
{
    return bp_aten_cat_default(c, BP_TENSORS(a, b), dim);
}

typedef struct { bp_tensor *l, *u, *gl, *gu; bp_dim m, n; } lu_parts; /* gradients: of their triangles, never NULL */

/* The factors' gradients in one triangle each: what moves L U without moving their shape. */
static bp_tensor *lu_square(bp_ctx *c, const lu_parts *p)
{
    bp_tensor *low = grad_tril(c, grad_mm(c, grad_mh(c, p->l), p->gl), -1);
    bp_tensor *t = grad_add(c, low, grad_triu(c, grad_mm(c, p->gu, grad_mh(c, p->u)), 0));
    t = grad_solve_t(c, grad_mh(c, p->u), t, false, false, false);
    return grad_solve_t(c, grad_mh(c, p->l), t, true, true, true);
}

/* More columns than rows: U = [U1 U2]. */
static bp_tensor *lu_wide(bp_ctx *c, const lu_parts *p)
{
    bp_dim none = bp_dim_of(0);
    bp_tensor *u1 = columns(c, p->u, none, p->m), *gu1 = columns(c, p->gu, none, p->m);
    bp_tensor *t = grad_sub(c, grad_mm(c, grad_mh(c, p->l), p->gl), grad_mm(c, p->gu, grad_mh(c, p->u)));
    t = grad_solve_t(c, grad_mh(c, u1), grad_tril(c, t, -1), false, false, false);
    t = beside(c, grad_add(c, t, gu1), columns(c, p->gu, p->m, p->n), -1);
    return grad_solve_t(c, grad_mh(c, p->l), t, true, true, true);
}

/* More rows than columns: L = [L1; L2]. */
static bp_tensor *lu_tall(bp_ctx *c, const lu_parts *p)
{
    bp_dim none = bp_dim_of(0);
    bp_tensor *l1 = rows(c, p->l, none, p->n), *gl1 = rows(c, p->gl, none, p->n);
    bp_tensor *t = grad_sub(c, grad_mm(c, p->gu, grad_mh(c, p->u)), grad_mm(c, grad_mh(c, p->l), p->gl));
    t = grad_solve_t(c, grad_mh(c, l1), grad_triu(c, t, 0), true, true, true);
    t = beside(c, grad_add(c, t, gl1), rows(c, p->gl, p->n, p->m), -2);
    return grad_solve_t(c, grad_mh(c, p->u), t, false, false, false);
}

/* The gradient of A = P L U; pivot false: P is the identity, and not looked at. */
static bp_tensor *of_lu(bp_ctx *c, bp_tensor *perm, bp_tensor *l, bp_tensor *u, bp_tensor *gl, bp_tensor *gu,
                        bool pivot)
{
    if (!ctx_ok(c))
        return NULL;
    lu_parts p = {l, u, grad_tril(c, gl ? gl : grad_zeros(c, l), -1), grad_triu(c, gu ? gu : grad_zeros(c, u), 0),
                  grad_size(l, -2), grad_size(u, -1)};
    bool square = dim_eq(p.m, p.n), wide = !square && dim_lt(p.m, p.n);
    bp_tensor *t = square ? lu_square(c, &p) : wide ? lu_wide(c, &p) : lu_tall(c, &p);
    return pivot ? grad_mm(c, perm, t) : t;
}

bp_status derive_lu(bp_ctx *c, grad_call *g)
{
    grad_give(g, "A", of_lu(c, g->results[0], g->results[1], g->results[2], g->grads[1], g->grads[2],
                            grad_arg_bool(g, "pivot")));
    return grad_done(c);
}

bp_status derive_lu_factor(bp_ctx *c, grad_call *g)
{
    bp_tensor *lu = g->results[0], *grad = g->grads[0];
    if (!grad)
        return grad_done(c);
    bp_dim m = grad_size(lu, -2), n = grad_size(lu, -1), k = dim_min(c, m, n);
    bp_tensor3 f = bp_aten_lu_unpack_default(c, lu, g->results[1], 1, 1);
    bp_tensor *gl = columns(c, grad, bp_dim_of(0), k), *gu = rows(c, grad, bp_dim_of(0), k);
    grad_give(g, "A", of_lu(c, f.at[0], f.at[1], f.at[2], gl, gu, grad_arg_bool(g, "pivot")));
    return grad_done(c);
}

/* t with zeros to that many rows and columns. */
static bp_tensor *padded(bp_ctx *c, bp_tensor *t, bp_dim m, bp_dim n)
{
    bp_dim more_rows = dim_sub(c, m, grad_size(t, -2)), more_columns = dim_sub(c, n, grad_size(t, -1));
    if (dim_is(more_rows, 0) && dim_is(more_columns, 0))
        return t;
    bp_dim pad[4] = {dim_const(0), more_columns, dim_const(0), more_rows};
    return bp_aten_constant_pad_nd_default(c, t, (bp_dims){pad, 4, 1}, bp_scalar_int(0));
}

bp_status derive_lu_unpack(bp_ctx *c, grad_call *g)
{
    bp_tensor *lu = grad_tensor(g, "LU_data");
    bp_dim m = grad_size(lu, -2), n = grad_size(lu, -1);
    bp_tensor *l = g->grads[1] ? padded(c, grad_tril(c, g->grads[1], -1), m, n) : NULL;
    bp_tensor *u = g->grads[2] ? padded(c, grad_triu(c, g->grads[2], 0), m, n) : NULL;
    grad_give(g, "LU_data", grad_add(c, l, u));
    return grad_done(c);
}

/* -- solutions ----------------------------------------------------------------------------------------------------- */

/* With R = U^-H (-G X^H): L gets L^-H R U^H, U gets R, each its own triangle. */
static bp_tensor *lu_of_solution(bp_ctx *c, const bp_tensor3 *f, bp_tensor *grad, bp_tensor *x)
{
    bp_tensor *uh = grad_mh(c, f->at[2]), *lh = grad_mh(c, f->at[1]);
    bp_tensor *r = grad_solve_t(c, uh, grad_neg(c, grad_mm(c, grad, grad_mh(c, x))), false, true, false);
    bp_tensor *l = grad_tril(c, grad_solve_t(c, lh, grad_mm(c, r, uh), true, true, true), -1);
    return grad_add(c, l, grad_triu(c, r, 0));
}

/* The same of A^H X = B: with R = -P^T X G^H P L^-H, L gets R and U gets L^H R U^-H. */
static bp_tensor *lu_of_adjoint(bp_ctx *c, const bp_tensor3 *f, bp_tensor *grad, bp_tensor *x)
{
    bp_tensor *uh = grad_mh(c, f->at[2]), *lh = grad_mh(c, f->at[1]), *p = f->at[0];
    bp_tensor *r = grad_mm(c, grad_mm(c, grad_mt(c, p), grad_mm(c, x, grad_mh(c, grad))), p);
    r = grad_solve_t(c, lh, grad_neg(c, r), true, false, true);
    bp_tensor *u = grad_solve_t(c, uh, grad_mm(c, lh, r), false, false, false);
    return grad_add(c, grad_tril(c, r, -1), grad_triu(c, u, 0));
}

bp_status derive_lu_solve(bp_ctx *c, grad_call *g)
{
    bool left = grad_arg_bool(g, "left"), adjoint = grad_arg_bool(g, "adjoint");
    bp_tensor *lu = grad_tensor(g, "LU"), *pivots = grad_tensor(g, "pivots");
    if (grad_needs(g, "B"))
        grad_give(g, "B", bp_aten_linalg_lu_solve_default(c, lu, pivots, g->grads[0], left, !adjoint));
    if (grad_needs(g, "LU")) {
        bp_tensor3 f = bp_aten_lu_unpack_default(c, lu, pivots, 1, 1);
        bp_tensor *grad = left ? g->grads[0] : grad_mh(c, g->grads[0]);
        bp_tensor *x = left ? g->results[0] : grad_mh(c, g->results[0]);
        grad_give(g, "LU", left != adjoint ? lu_of_solution(c, &f, grad, x) : lu_of_adjoint(c, &f, grad, x));
    }
    return grad_done(c);
}

/* Whether B is a batch of vectors: one, or of A's sizes without its last. */
static bool is_vector(const bp_tensor *a, const bp_tensor *b)
{
    bool vector = b->rank == 1 || b->rank + 1 == a->rank;
    for (uint32_t d = 0; b->rank != 1 && vector && d < b->rank; d++)
        vector = dim_eq(a->sizes[d], b->sizes[d]);
    return vector;
}

/* X of A X = B (or X A = B): B gets S = A^-H G, A gets -S X^H. */
bp_status derive_solve(bp_ctx *c, grad_call *g)
{
    bool left = grad_arg_bool(g, "left");
    bp_tensor *a = grad_tensor(g, "A"), *x = g->results[0], *grad = g->grads[0];
    if (!grad)
        return grad_done(c);
    bool vector = is_vector(a, grad_tensor(g, "B"));
    grad = vector ? bp_aten_unsqueeze_default(c, grad, -1) : grad;
    bp_tensor *s = bp_aten_linalg_solve_default(c, grad_mh(c, a), grad, left);
    if (grad_needs(g, "B"))
        grad_give(g, "B", vector ? bp_aten_squeeze_dim(c, s, -1) : s);
    if (grad_needs(g, "A")) {
        bp_tensor *xh = grad_mh(c, vector ? bp_aten_unsqueeze_default(c, x, -1) : x);
        grad_give(g, "A", grad_neg(c, left ? grad_mm(c, s, xh) : grad_mm(c, xh, s)));
    }
    return grad_done(c);
}

bp_status derive_solve_triangular(bp_ctx *c, grad_call *g)
{
    bool upper = grad_arg_bool(g, "upper"), left = grad_arg_bool(g, "left"), unit = grad_arg_bool(g, "unitriangular");
    bp_tensor *s = grad_solve_t(c, grad_mh(c, grad_tensor(g, "self")), g->grads[0], !upper, left, unit);
    if (grad_needs(g, "B"))
        grad_give(g, "B", s);
    if (grad_needs(g, "self")) {
        bp_tensor *xh = grad_mh(c, g->results[0]);
        bp_tensor *t = grad_neg(c, left ? grad_mm(c, s, xh) : grad_mm(c, xh, s));
        grad_give(g, "self", triangle(c, t, upper, unit));
    }
    return grad_done(c);
}

bp_status derive_triangular_solve(bp_ctx *c, grad_call *g)
{
    bool upper = grad_arg_bool(g, "upper"), transpose = grad_arg_bool(g, "transpose");
    bool unit = grad_arg_bool(g, "unitriangular");
    bp_tensor *of_a = g->grads[1], *a = grad_conj(c, grad_tensor(g, "A")), *x = g->results[0];
    if (g->grads[0]) {
        bp_tensor *s = bp_aten_triangular_solve_default(c, g->grads[0], a, upper, !transpose, unit).at[0];
        grad_give(g, "self", s);
        bp_tensor *t = transpose ? grad_mm(c, grad_conj(c, x), grad_mt(c, s)) : grad_mm(c, s, grad_mh(c, x));
        of_a = grad_sub(c, of_a, triangle(c, t, upper, unit));
    }
    grad_give(g, "A", of_a);
    return grad_done(c);
}

bp_status derive_inv(bp_ctx *c, grad_call *g)
{
    bp_tensor *inv = grad_mh(c, g->results[0]);
    if (g->grads[0])
        grad_give(g, "A", grad_neg(c, grad_mm(c, inv, grad_mm(c, g->grads[0], inv))));
    return grad_done(c);
}

/* -- determinants -------------------------------------------------------------------------------------------------- */

/* A^-H times a multiple of the identity, by factors of A that are found again, so that this can be differentiated too.
 * lifted: zeros of U's diagonal count as the least step of the type. */
static bp_tensor *inverse_times(bp_ctx *c, bp_tensor *a, bp_tensor *by, bool lifted)
{
    bp_tensor3 f = bp_aten_linalg_lu_factor_ex_default(c, a, 1, 0);
    bp_tensor *lu = f.at[0];
    if (lifted && lu) {
        bool single = lu->dtype == BP_F32 || lu->dtype == BP_C64;
        bp_tensor *diagonal = grad_diagonal(c, lu), *zero = bp_aten_eq_scalar(c, diagonal, bp_scalar_int(0));
        bp_tensor *step = bp_aten_masked_fill_scalar(c, grad_zeros(c, diagonal), zero,
                                                     bp_scalar_float(single ? 0x1p-23 : 0x1p-52));
        lu = grad_add(c, lu, grad_diag(c, step));
    }
    bp_tensor *each = bp_aten_expand_default(c, bp_aten_unsqueeze_default(c, by, -1), grad_sizes(f.at[1]), 0);
    return bp_aten_linalg_lu_solve_default(c, lu, f.at[1], grad_diag(c, each), 1, 1);
}

bp_status derive_det(bp_ctx *c, grad_call *g)
{
    if (g->grads[0]) {
        bp_tensor *by = grad_mul(c, g->grads[0], grad_conj(c, g->results[0]));
        grad_give(g, "A", inverse_times(c, grad_tensor(g, "A"), by, true));
    }
    return grad_done(c);
}

/* The sign of complex numbers turns with the imaginary part of A^-1 dA's trace. */
bp_status derive_slogdet(bp_ctx *c, grad_call *g)
{
    bp_tensor *by = g->grads[1], *a = grad_tensor(g, "A");
    if (grad_complex(a)) {
        bp_tensor *size = by ? by : grad_zeros(c, g->results[1]), *turn = grad_zeros(c, size);
        if (g->grads[0])
            turn = bp_aten_imag_default(c, grad_mul(c, grad_conj(c, g->grads[0]), g->results[0]));
        by = bp_aten_complex_default(c, size, grad_neg(c, turn));
    }
    if (by)
        grad_give(g, "A", inverse_times(c, a, by, false));
    return grad_done(c);
}
