/* Decompositions of pointwise operators and reductions that depend on types or ranks. */
#include "host/pass/parts.h"
#include <math.h>
#include <string.h>

/* -- steps that all rows share ------------------------------------------------------------------------------------- */

bp_tensor *part_fail(work *w, const op_row *op, const char *why)
{
    if (work_ok(w))
        op_fail(w->c, op, BP_INVALID_ARGUMENT, "%s", why);
    return NULL;
}

bp_tensor *part_cast(work *w, bp_tensor *t, bp_dtype d)
{
    return !t || d == BP_DTYPE_UNSET || t->dtype == d ? t : CALL(private_to_copy_default, T(t), value_dtype(d));
}

bool part_is_empty(const bp_tensor *t)
{
    bool empty = false;
    for (uint32_t d = 0; d < t->rank && !empty; d++)
        empty = dim_eq_or_false(t->sizes[d], dim_const(0));
    return empty;
}

bp_value part_sizes(work *w, const bp_tensor *t)
{
    return t ? value_dims(w->c, t->sizes, t->rank) : value_none();
}

int64_t part_dim(work *w, const bp_value *a, uint32_t i, uint32_t rank)
{
    return layout_wrap_dim(w->c, arg_int(w->c, a, i), rank);
}

/* -- pointwise ----------------------------------------------------------------------------------------------------- */

static bool is_complex(const bp_value *a, uint32_t i)
{
    return dtype_is_complex((bp_dtype)arg_tensor(a, i)->dtype);
}

PART(conj_physical)
{
    (void)op;
    return is_complex(a, 0) ? CALL(private_conj_physical_default, a[0]) : arg_tensor(a, 0);
}

static bp_tensor *all_true(work *w, const bp_value *a)
{
    return CALL(full_like_default, a[0], B(true), value_dtype(BP_BOOL));
}

PART(isfinite)
{
    (void)op;
    bp_tensor *t = arg_tensor(a, 0);
    if (!dtype_is_float((bp_dtype)t->dtype) && !is_complex(a, 0))
        return all_true(w, a);
    bp_tensor *number = CALL(eq_tensor, a[0], a[0]);
    return CALL(mul_tensor, T(number), T(CALL(ne_scalar, T(CALL(abs_default, a[0])), F((double)INFINITY))));
}

PART(isreal)
{
    (void)op;
    return is_complex(a, 0) ? CALL(eq_scalar, T(CALL(imag_default, a[0])), I(0)) : all_true(w, a);
}

PART(isclose)
{
    (void)op;
    bp_tensor *close = CALL(eq_tensor, a[0], a[1]), *x = arg_tensor(a, 0), *y = arg_tensor(a, 1);
    bool floats = dtype_is_float((bp_dtype)x->dtype) || is_complex(a, 0);
    if (arg_bool(a, 4) && floats)
        close = CALL(logical_or_default, T(close), T(CALL(logical_and_default, T(CALL(isnan_default, a[0])),
                                                        T(CALL(isnan_default, a[1])))));
    if (arg_float(a, 2) == 0 && arg_float(a, 3) == 0)
        return close;
    bp_dtype wide = w->c->ambient.default_dtype;
    x = x->dtype == BP_BOOL ? part_cast(w, x, wide) : x;
    y = floats ? y : part_cast(w, y, wide);
    bp_tensor *allowed = CALL(add_scalar, T(CALL(abs_default, T(CALL(mul_scalar, T(y), a[2])))), a[3]);
    bp_tensor *apart = CALL(abs_default, T(CALL(sub_tensor, T(x), T(y))));
    bp_tensor *finite = CALL(isfinite_default, T(apart));
    bp_tensor *near = CALL(logical_and_default, T(finite), T(CALL(le_tensor, T(apart), T(allowed))));
    return CALL(logical_or_default, T(close), T(near));
}

PART(prelu)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0), *weight = arg_tensor(a, 1);
    bp_dim sizes[TENSOR_MAX_RANK];
    if (weight->rank <= 1 && dim_is(tensor_numel(w->c, weight), 1))
        return CALL(private_prelu_kernel_default, a[0], T(weight));
    for (uint32_t d = 0; d < x->rank; d++)
        sizes[d] = d == (x->rank > 1) ? weight->sizes[0] : dim_const(1);
    return CALL(private_prelu_kernel_default, a[0], T(compose_reshape(w, weight, x->rank, sizes)));
}

/* A number as it is, a tensor as float64 or complex128. */
static bp_value wide_operand(work *w, const bp_value *v, bp_dtype d)
{
    return v->kind == BP_VALUE_TENSOR ? value_tensor(part_cast(w, v->v.tensor, d)) : *v;
}

PART(float_power)
{
    bool complex = false;
    for (uint32_t i = 0; i < 2; i++)
        complex |= a[i].kind == BP_VALUE_COMPLEX || (a[i].kind == BP_VALUE_TENSOR && is_complex(a, i));
    bp_value x = wide_operand(w, &a[0], complex ? BP_C128 : BP_F64);
    bp_value y = wide_operand(w, &a[1], complex ? BP_C128 : BP_F64);
    if (x.kind != BP_VALUE_TENSOR)
        return CALL(pow_scalar, x, y);
    (void)op;
    return y.kind == BP_VALUE_TENSOR ? CALL(pow_tensor_tensor, x, y) : CALL(pow_tensor_scalar, x, y);
}

/* -- quantiles ----------------------------------------------------------------------------------------------------- */

enum { Q_SELF, Q_Q, Q_DIM, Q_KEEP, Q_HOW };

/* q as a tensor of self's type. */
static bp_tensor *shares_of(work *w, const bp_value *a)
{
    if (a[Q_Q].kind == BP_VALUE_TENSOR)
        return arg_tensor(a, Q_Q);
    return CALL(full_default, value_list(NULL, 0), a[Q_Q], value_dtype((bp_dtype)arg_tensor(a, Q_SELF)->dtype));
}

/* Element `rank` (floats) along the last dimension of sorted, with `rank` broadcast in front. */
static bp_tensor *pick(work *w, bp_tensor *sorted, bp_tensor *rank)
{
    return CALL(gather_default, T(sorted), I(-1), T(part_cast(w, rank, BP_I64)));
}

/* Between its neighbours, as the row's interpolation asks. sorted: [.., n]; rank: [.., q]. */
static bp_tensor *between(work *w, bp_tensor *sorted, bp_tensor *rank, const char *how)
{
    if (strcmp(how, "lower") == 0)
        rank = CALL(floor_default, T(rank));
    else if (strcmp(how, "higher") == 0)
        rank = CALL(ceil_default, T(rank));
    else if (strcmp(how, "nearest") == 0)
        rank = CALL(round_default, T(rank));
    bp_tensor *below_at = rank ? CALL(floor_default, T(rank)) : NULL;
    bp_tensor *below = below_at ? pick(w, sorted, below_at) : NULL;
    if (!below || (strcmp(how, "linear") != 0 && strcmp(how, "midpoint") != 0))
        return below;
    bp_tensor *above = pick(w, sorted, CALL(ceil_default, T(rank)));
    bp_tensor *share = strcmp(how, "midpoint") == 0 ? CALL(full_like_default, T(rank), F(0.5))
                                                    : CALL(sub_tensor, T(rank), T(below_at));
    return above ? CALL(lerp_tensor, T(below), T(above), T(share)) : NULL;
}

/* The places of the shares q among n elements of which those that are NaN do not count, or spoil the answer. */
static bp_tensor *places(work *w, bp_tensor *sorted, bp_tensor *q, bool skips)
{
    bp_dim last = dim_sub(w->c, sorted->sizes[sorted->rank - 1u], dim_const(1));
    bp_tensor *nans = CALL(isnan_default, T(sorted));
    if (skips) {
        bp_tensor *numbers = CALL(logical_not_default, T(nans));
        bp_tensor *count = numbers ? CALL(sum_dim_intlist, T(numbers), INTS(-1), B(true)) : NULL;
        bp_tensor *rank = CALL(mul_tensor, T(q), T(CALL(sub_scalar, T(count), I(1))));
        return CALL(clamp_min_default, T(rank), I(0));
    }
    bp_tensor *spoilt = CALL(any_dim, T(nans), I(-1), B(true));
    bp_tensor *rank = CALL(mul_scalar, T(q), D(last));
    return CALL(where_scalarself, T(spoilt), D(last), T(rank));
}

PART(quantile)
{
    bp_tensor *x = arg_tensor(a, Q_SELF), *q = shares_of(w, a);
    bool whole = arg_is_none(a, Q_DIM);
    int64_t dim = whole ? 0 : part_dim(w, a, Q_DIM, x->rank);
    bp_tensor *rows = whole || !x->rank ? compose_reshape(w, x, 1, (const bp_dim[]){dim_const(-1)})
                                        : CALL(movedim_int, T(x), I(dim), I(-1));
    if (!rows || !q)
        return NULL;
    bool lead = q->rank == 1;
    bp_tensor *sorted = CALL(sort_default, T(rows), I(-1));
    q = lead ? q : compose_unsqueeze(w, q, 0);
    bp_tensor *at = sorted ? places(w, sorted, q, op->schema->name[0] == 'n') : NULL;
    bp_tensor *out = at ? between(w, sorted, at, arg_str(a, Q_HOW)) : NULL;
    if (!out)
        return NULL;
    out = CALL(movedim_int, T(out), I(-1), I(0)); /* [q, rest] */
    if (arg_bool(a, Q_KEEP) && whole)
        for (uint32_t d = 0; d < x->rank; d++)
            out = compose_unsqueeze(w, out, 1);
    else if (arg_bool(a, Q_KEEP) && x->rank)
        out = compose_unsqueeze(w, out, dim + 1);
    return lead || !out ? out : CALL(squeeze_dim, T(out), I(0));
}
