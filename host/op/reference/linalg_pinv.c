/* Pseudo-inverses and ranks: from singular values, or from the eigenvalues of symmetric matrices, those left out that
 * are at most max(atol, rtol times the largest one). */
#include "host/op/reference/linalg.h"
#include "host/op/rows.h"
#include "host/op/shape_linalg.h"
#include <float.h>
#include <math.h>

/* -- tolerances ---------------------------------------------------------------------------------------------------- */

/* The rounding of the type times the larger size. */
static double default_rtol(const bp_tensor *t)
{
    int64_t m = tensor_dim(t, t->rank - 2u), n = tensor_dim(t, t->rank - 1u);
    bool single = dtype_real_of((bp_dtype)t->dtype) == BP_F32;
    return (single ? (double)FLT_EPSILON : DBL_EPSILON) * (double)(m > n ? m : n);
}

static double number_at(const bp_value *v, const la_batch *b, uint32_t operand)
{
    const bp_tensor *t = tolerance_tensor(v);
    if (!t)
        return scalar_float(arg_scalar(v, 0));
    num x = dtype_load((bp_dtype)t->dtype, la_at(b, operand));
    return x.kind == NUM_INT ? (double)x.i : x.f;
}

/* A decomposition being used: what is at most `least` of the values counts as zero. */
typedef struct {
    la a;
    linalg_tolerances given;
    uint32_t atol_at, rtol_at;
    double rtol;              /* where none is given */
    la_matrix x, u, vh;
    double *values;
    int n;
} spectrum;

static double least_value(const spectrum *s, const la_batch *b)
{
    bool atol_given = s->given.atol.kind != BP_VALUE_NONE;
    double atol = atol_given ? number_at(&s->given.atol, b, s->atol_at) : 0, most = 0;
    double rtol = atol_given && atol > 0 ? 0 : s->rtol;
    if (s->given.rtol.kind != BP_VALUE_NONE)
        rtol = number_at(&s->given.rtol, b, s->rtol_at);
    for (int i = 0; i < s->n; i++)
        most = fabs(s->values[i]) > most ? fabs(s->values[i]) : most;
    return fmax(atol, rtol * most);
}

static void spectrum_begin(spectrum *s, bp_ctx *c, op_call *k, bool vectors)
{
    const bp_tensor *t = arg_tensor(k->args, 0);
    int64_t m = tensor_dim(t, t->rank - 2u), n = tensor_dim(t, t->rank - 1u), least = m < n ? m : n;
    *s = (spectrum){.given = linalg_tolerances_read(k->op, k->args), .rtol = default_rtol(t), .n = (int)least};
    la_begin(&s->a, c, k, t);
    s->x = la_new(&s->a, m, n);
    s->u = vectors ? la_new(&s->a, m, least) : (la_matrix){0, 0, NULL};
    s->vh = vectors ? la_new(&s->a, least, n) : (la_matrix){0, 0, NULL};
    s->values = la_reals(&s->a, least);
}

/* The operands of a batch: the matrices, then tolerances that are tensors. */
static uint32_t spectrum_add(spectrum *s, const op_call *k, la_batch *b)
{
    bp_tensor *atol = tolerance_tensor(&s->given.atol), *rtol = tolerance_tensor(&s->given.rtol);
    uint32_t from = la_add(b, arg_tensor(k->args, 0), 2);
    s->atol_at = atol ? la_add(b, atol, 0) : 0;
    s->rtol_at = rtol ? la_add(b, rtol, 0) : 0;
    return from;
}

/* Decomposes the current matrix: x = u values vh, where of a symmetric one u holds eigenvectors. */
static bool decompose(spectrum *s, const la_batch *b, uint32_t from)
{
    bool vectors = s->u.at != NULL;
    la_load(&s->a, s->x, b, from);
    if (s->n == 0 || !la_require_finite(&s->a, s->x, b))
        return la_ok(&s->a);
    int failed;
    if (s->given.hermitian) {
        la_mirror(&s->a, s->x, false, true);
        failed = la_eigh(&s->a, s->x, vectors, false, s->values);
        if (vectors) {
            la_copy(&s->a, s->u, s->x);
            la_transpose(&s->a, s->vh, s->u, true);
        }
    } else {
        failed = la_svd(&s->a, vectors ? 'S' : 'N', s->x, s->values, s->u, s->vh);
    }
    return la_check(s->a.c, s->a.op, s->given.hermitian ? "linalg.eigh" : "linalg.svd", la_element(b), failed) == BP_OK;
}

/* -- kernels ------------------------------------------------------------------------------------------------------- */

bp_status kernel_pinv(bp_ctx *c, op_call *k)
{
    spectrum s;
    spectrum_begin(&s, c, k, true);
    la_matrix v = la_new(&s.a, s.vh.n, s.vh.m), uh = la_new(&s.a, s.u.n, s.u.m), out = la_new(&s.a, s.x.n, s.x.m);
    la_batch b = la_over(&s.a, k->out[0], 2);
    uint32_t from = spectrum_add(&s, k, &b);
    for (; la_more(&b) && la_ok(&s.a); la_next(&b)) {
        if (!decompose(&s, &b, from))
            break;
        double least = least_value(&s, &b);
        la_transpose(&s.a, v, s.vh, true);
        la_transpose(&s.a, uh, s.u, true);
        for (int j = 0; j < v.n; j++)
            for (int i = 0; i < v.m; i++) {
                cx at = la_get(&s.a, v, i, j);
                la_set(&s.a, v, i, j, fabs(s.values[j]) > least ? at / s.values[j] : 0);
            }
        la_multiply(&s.a, v, uh, out);
        la_store(&s.a, out, &b, 0);
    }
    return la_end(&s.a);
}

bp_status kernel_matrix_rank(bp_ctx *c, op_call *k)
{
    spectrum s;
    spectrum_begin(&s, c, k, false);
    la_batch b = la_over(&s.a, k->out[0], 0);
    uint32_t from = spectrum_add(&s, k, &b);
    for (; la_more(&b) && la_ok(&s.a); la_next(&b)) {
        if (!decompose(&s, &b, from))
            break;
        double least = least_value(&s, &b);
        int64_t rank = 0;
        for (int i = 0; i < s.n; i++)
            rank += fabs(s.values[i]) > least;
        *(int64_t *)la_at(&b, 0) = rank;
    }
    return la_end(&s.a);
}
