/* Decompositions of linear algebra, Fourier transforms, indexing and losses. */
#include "host/op/fft_args.h"
#include "host/pass/parts.h"
#include <float.h>
#include <math.h>
#include <string.h>

PARTS(solve_ex)
{
    (void)op;
    bp_tensor *out[4];
    TRY(work_calls(w, ROW_private_linalg_solve_ex_default, 4, a, out, 4));
    return parts_give(w, k, (bp_tensor *const[]){out[0], out[3]}, 2);
}

PART(logdet)
{
    (void)op;
    bp_tensor *out[2];
    if (work_calls(w, ROW_private_linalg_slogdet_default, 1, a, out, 2) != BP_OK)
        return NULL;
    if (dtype_is_complex((bp_dtype)arg_tensor(a, 0)->dtype))
        return CALL(add_tensor, T(CALL(log_default, T(out[0]))), T(out[1]));
    return CALL(where_scalarself, T(CALL(eq_scalar, T(out[0]), I(-1))), F((double)NAN), T(out[1]));
}

PARTS(svd)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0), *out[3];
    bool vectors = arg_bool(a, 2);
    bp_value args[] = {a[0], B(vectors && !arg_bool(a, 1)), B(true)};
    TRY(work_calls(w, ROW_private_linalg_svd_default, 3, args, out, 3));
    if (vectors) {
        out[2] = CALL(mh_default, T(out[2]));
        return parts_give(w, k, out, 3);
    }
    bp_dim sizes[TENSOR_MAX_RANK];
    memcpy(sizes, x->sizes, x->rank * sizeof *sizes);
    for (uint32_t i = 0; i < 3; i += 2) {
        sizes[x->rank - 1u] = sizes[x->rank - 2u] = x->sizes[x->rank - (i ? 1u : 2u)];
        out[i] = CALL(new_zeros_default, a[0], value_dims(w->c, sizes, x->rank));
    }
    return parts_give(w, k, out, 3);
}

static bp_value named(const op_row *op, const bp_value *a, const char *name)
{
    int32_t i = schema_find(op->schema, name);
    return i < 0 ? value_none() : a[i];
}

/* A tolerance, a number or a tensor, with a last dimension of size 1 if it is a tensor; times s where it is given. */
static bp_tensor *tolerance(work *w, bp_value v, bp_tensor *s)
{
    if (v.kind == BP_VALUE_TENSOR) {
        bp_tensor *t = compose_unsqueeze(w, v.v.tensor, -1);
        return s && t ? CALL(mul_tensor, T(t), T(s)) : t;
    }
    return v.kind == BP_VALUE_NONE || !s ? NULL : CALL(mul_scalar, T(s), v);
}

PART(matrix_rank)
{
    bp_tensor *x = arg_tensor(a, 0);
    bp_value atol = named(op, a, "atol"), rtol = named(op, a, "rtol"), tol = named(op, a, "tol");
    atol = tol.kind ? tol : atol;
    if (x->rank < 2)
        return part_fail(w, op, "expected matrices");
    bp_dim m = x->sizes[x->rank - 2u], n = x->sizes[x->rank - 1u];
    if (dim_is(m, 0) || dim_is(n, 0))
        return CALL(zeros_default, value_dims(w->c, x->sizes, x->rank - 2u), value_dtype(BP_I64));
    bp_tensor *s = named(op, a, "hermitian").v.i ? CALL(abs_default, T(CALL(linalg_eigvalsh_default, a[0])))
                                                 : CALL(linalg_svdvals_default, a[0]);
    bp_tensor *top = s ? CALL(amax_default, T(s), INTS(-1), B(true)) : NULL;
    double eps = x->dtype == BP_F64 || x->dtype == BP_C128 ? DBL_EPSILON : (double)FLT_EPSILON;
    bool given = atol.kind != BP_VALUE_NONE;
    if (rtol.kind == BP_VALUE_NONE && given && (atol.kind == BP_VALUE_TENSOR || tol.kind || atol.v.f[0] > 0))
        rtol = F(0);
    if (rtol.kind == BP_VALUE_NONE) { /* the longer side is a factor */
        rtol = D(dim_max(w->c, m, n));
        top = top ? CALL(mul_scalar, T(top), F(eps)) : NULL;
    }
    bp_tensor *least = tolerance(w, rtol, top);
    bp_tensor *floor = atol.kind == BP_VALUE_TENSOR ? tolerance(w, atol, NULL) : NULL;
    if (floor && least)
        least = CALL(maximum_default, T(part_cast(w, floor, (bp_dtype)least->dtype)), T(least));
    else if (given && least)
        least = CALL(clamp_min_default, T(least), atol);
    return least ? CALL(sum_dim_intlist, T(CALL(gt_tensor, T(s), T(least))), INTS(-1)) : NULL;
}

/* -- Fourier transforms -------------------------------------------------------------------------------------------- */

/* Cut, or filled up with zeros, to the points that are transformed. */
static bp_tensor *resized(work *w, bp_tensor *t, const fft_args *f)
{
    for (uint32_t i = 0; t && i < f->n; i++) {
        bp_dim have = t->sizes[f->dims[i]], want = fft_size_in(w->c, f, i), pad[2 * TENSOR_MAX_RANK] = {{0, 0, 0}};
        if (!t || dim_eq(have, want))
            continue;
        uint32_t from_last = t->rank - 1u - f->dims[i];
        pad[2 * from_last + 1] = dim_sub(w->c, want, have);
        if (dim_lt(want, have))
            t = CALL(slice_tensor, T(t), I(f->dims[i]), I(0), D(want));
        else
            t = CALL(constant_pad_nd_default, T(t), value_dims(w->c, pad, 2 * (from_last + 1)), I(0));
    }
    return t;
}

PART(fft)
{
    fft_args f;
    if (fft_args_read(w->c, op, a, &f) != BP_OK)
        return NULL;
    int64_t dims[TENSOR_MAX_RANK];
    const char *norm = arg_str(a, 3);
    for (uint32_t i = 0; i < f.n; i++)
        dims[i] = f.dims[i];
    bool none = !norm || strcmp(norm, "backward") == 0 ? f.forward : strcmp(norm, "forward") == 0 && !f.forward;
    bp_value scale = I(norm && strcmp(norm, "ortho") == 0 ? 1 : none ? 0 : 2), where = value_ints(w->c, dims, f.n);
    bp_tensor *t = resized(w, part_cast(w, arg_tensor(a, 0), f.in), &f);
    if (!t)
        return NULL;
    if (f.form == FFT_C2C)
        return f.n ? CALL(private_fft_c2c_default, T(t), where, scale, B(f.forward)) : t;
    if (f.form == FFT_R2C) {
        bool apart = !f.forward && f.n > 1; /* the last dimension alone is halved, and conjugated */
        t = CALL(private_fft_r2c_default, T(t), apart ? INTS(dims[f.n - 1]) : where, scale, B(true));
        t = f.forward || !t ? t : CALL(private_conj_physical_default, T(t));
        return apart && t ? CALL(private_fft_c2c_default, T(t), value_ints(w->c, dims, f.n - 1), scale, B(false)) : t;
    }
    t = f.forward ? CALL(private_conj_physical_default, T(t)) : t;
    return t ? CALL(private_fft_c2r_default, T(t), where, scale, D(f.sizes[f.n - 1])) : NULL;
}

/* -- indexing ------------------------------------------------------------------------------------------------------ */

/* Places along a dimension of n elements, those below zero counted from the end. */
static bp_tensor *wrapped(work *w, bp_tensor *at, bp_dim n)
{
    bp_tensor *below = at ? CALL(lt_scalar, T(at), I(0)) : NULL;
    return below ? CALL(add_tensor, T(at), T(CALL(mul_scalar, T(below), D(n)))) : NULL;
}

PART(take_along_dim)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0), *at = arg_tensor(a, 1);
    if (arg_is_none(a, 2)) {
        x = CALL(reshape_default, a[0], INTS(-1));
        at = wrapped(w, CALL(reshape_default, a[1], INTS(-1)), tensor_numel(w->c, x));
        return x && at ? CALL(gather_default, T(x), I(0), T(at)) : NULL;
    }
    bp_dim sizes[TENSOR_MAX_RANK], one[TENSOR_MAX_RANK], other[TENSOR_MAX_RANK];
    int64_t dim = part_dim(w, a, 2, x->rank);
    if (!work_ok(w) || x->rank != at->rank)
        return part_fail(w, op, "both arguments must have as many dimensions");
    memcpy(one, x->sizes, x->rank * sizeof *one);
    memcpy(other, at->sizes, x->rank * sizeof *other);
    one[dim] = other[dim] = dim_const(1);
    if (layout_broadcast(w->c, x->rank, one, x->rank, other, sizes) != BP_OK)
        return NULL;
    sizes[dim] = x->sizes[dim];
    x = CALL(expand_default, a[0], value_dims(w->c, sizes, x->rank));
    sizes[dim] = at->sizes[dim];
    bp_dim n = x ? x->sizes[dim] : dim_const(0);
    at = CALL(expand_default, a[1], value_dims(w->c, sizes, at->rank));
    at = wrapped(w, at, n);
    return x && at ? CALL(gather_default, T(x), a[2], T(at)) : NULL;
}

PARTS(nonzero_numpy)
{
    (void)op;
    uint32_t n;
    bp_tensor *x = arg_tensor(a, 0), *at = CALL(nonzero_default, T(x->rank ? x : compose_unsqueeze(w, x, 0)));
    bp_value args[] = {value_tensor(at), I(1)};
    bp_tensor **out = at ? work_list(w, ROW_unbind_int, 2, args, &n) : NULL;
    return out ? parts_give(w, k, out, n) : w->c->diag.code;
}

PART(one_hot)
{
    bp_tensor *x = arg_tensor(a, 0);
    bp_dim n = arg_dim(a, 1);
    if (dim_below(n, 0)) {
        op_fail(w->c, op, BP_UNIMPLEMENTED, "how many classes there are depends on data");
        return NULL;
    }
    bp_tensor *classes = CALL(arange_default, D(n), value_dtype(BP_I64));
    bp_tensor *hot = classes ? CALL(eq_tensor, T(compose_unsqueeze(w, x, -1)), T(classes)) : NULL;
    return hot ? CALL(private_to_copy_default, T(hot), value_dtype(BP_I64)) : NULL;
}

PART(repeat_interleave)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0);
    bp_dim times = arg_dim(a, 1);
    int64_t dim = 0;
    if (arg_is_none(a, 2))
        x = CALL(reshape_default, a[0], INTS(-1));
    else
        dim = part_dim(w, a, 2, x->rank);
    if (!x || !work_ok(w))
        return NULL;
    bp_dim sizes[TENSOR_MAX_RANK + 1], flat[TENSOR_MAX_RANK];
    x = x->rank ? x : compose_unsqueeze(w, x, 0);
    for (uint32_t d = 0; d < x->rank; d++) {
        sizes[d + (d > dim)] = x->sizes[d];
        flat[d] = d == dim ? dim_mul(w->c, x->sizes[d], times) : x->sizes[d];
    }
    sizes[dim + 1] = times;
    bp_tensor *wide = CALL(expand_default, T(compose_unsqueeze(w, x, dim + 1)), value_dims(w->c, sizes, x->rank + 1u));
    bp_tensor *copy = CALL(clone_default, T(wide), (bp_value){.kind = BP_VALUE_MEMORY_FORMAT, .v.i = BP_CONTIGUOUS});
    return CALL(view_default, T(copy), value_dims(w->c, flat, x->rank));
}

PARTS(embedding_bag)
{
    bp_tensor *weight = arg_tensor(a, 0), *out[4];
    int32_t at = schema_find(op->schema, "padding_idx");
    bp_dim padding = at < 0 || arg_is_none(a, (uint32_t)at) ? dim_const(-1) : arg_dim(a, (uint32_t)at);
    bp_value args[9];
    if (at >= 0 && !arg_is_none(a, (uint32_t)at) && dim_below(padding, 0))
        padding = dim_add(w->c, padding, weight->sizes[0]);
    memcpy(args, a, 8 * sizeof *args);
    args[8] = D(padding);
    bool grad = weight->flags & TENSOR_REQUIRES_GRAD || (a[6].kind && arg_tensor(a, 6)->flags & TENSOR_REQUIRES_GRAD);
    uint32_t row = grad ? ROW_private_embedding_bag_default : ROW_private_embedding_bag_forward_only_default;
    TRY(work_calls(w, row, 9, args, out, 4));
    return parts_give(w, k, out, 4);
}

PART(nll_loss_nd)
{
    bp_tensor *x = arg_tensor(a, 0);
    if (x->rank <= 2)
        return work_call(w, ROW_nll_loss_default, 5, a);
    if (x->rank == 4)
        return work_call(w, ROW_nll_loss2d_default, 5, a);
    bp_dim batch = x->sizes[0], one = dim_const(1), rest = part_count(w, x, 2, x->rank);
    bp_tensor *target = arg_tensor(a, 1);
    bp_value sizes = part_sizes(w, target);
    x = CALL(reshape_default, T(CALL(contiguous_default, a[0])), DIMS(batch, x->sizes[1], one, rest));
    bp_tensor *t = CALL(reshape_default, T(CALL(contiguous_default, a[1])), DIMS(batch, one, rest));
    if (!x || !t)
        return NULL;
    (void)op;
    bp_tensor *loss = CALL(nll_loss2d_default, T(x), T(t), a[2], a[3], a[4]);
    return arg_int(w->c, a, 3) == 0 && loss ? CALL(view_default, T(loss), sizes) : loss;
}
