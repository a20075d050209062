/* Shape rules of reductions and scans. A folded dimension is dropped, or kept with size 1; results are contiguous. */
#include "host/op/shape_reduce.h"
#include "host/op/rows.h"

static uint64_t all_dims(uint32_t rank)
{
    return rank ? ~UINT64_C(0) >> (64 - rank) : 0;
}

static bp_dtype dtype_of(const shape_call *s)
{
    return (bp_dtype)arg_tensor(s->args, 0)->dtype;
}

bp_dtype reduce_dtype(const op_row *op, const bp_value *args)
{
    int32_t at = schema_find(op->schema, "dtype");
    return at < 0 ? BP_DTYPE_UNSET : arg_dtype(args, (uint32_t)at);
}

bp_status reduce_mask(bp_ctx *c, const op_row *op, const bp_value *args, uint32_t rank, uint64_t *mask)
{
    int32_t at = schema_find(op->schema, "dim");
    uint32_t n = at < 0 ? 0 : arg_list_len(args, (uint32_t)at);
    *mask = n ? 0 : all_dims(rank);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t d;
        TRY(op_wrap_dim(c, op, "dim", dim_int(c, arg_list_dim(args, (uint32_t)at, i)), rank, &d));
        if (*mask >> d & 1)
            return op_fail(c, op, BP_INVALID_ARGUMENT, "argument \"dim\" names dimension %u twice", d);
        *mask |= UINT64_C(1) << d;
    }
    *mask &= all_dims(rank); /* a 0-d tensor has a dimension 0 that is not there */
    return BP_OK;
}

bp_status reduce_one_dim(bp_ctx *c, const op_row *op, const bp_value *args, uint32_t rank, uint32_t *dim)
{
    int32_t at = schema_find(op->schema, "dim");
    return op_wrap_dim(c, op, "dim", arg_int(c, args, (uint32_t)at), rank, dim);
}

static bool keeps_dim(const shape_call *s)
{
    int32_t at = schema_find(s->op->schema, "keepdim");
    return at >= 0 && arg_bool(s->args, (uint32_t)at);
}

/* Adds results of the first argument's sizes without the dimensions in mask, one a dtype. */
static bp_status add_folded(bp_ctx *c, shape_call *s, uint64_t mask, uint32_t nout, const bp_dtype *dtypes)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    bp_dim sizes[TENSOR_MAX_RANK];
    uint32_t rank = 0;
    bool keep = keeps_dim(s);
    for (uint32_t d = 0; d < t->rank; d++) {
        bool is_folded = mask >> d & 1;
        if (!is_folded || keep)
            sizes[rank++] = is_folded ? dim_const(1) : t->sizes[d];
    }
    for (uint32_t i = 0; i < nout; i++)
        if (!shape_add_out(c, s, dtypes[i], rank, sizes))
            return c->diag.code;
    return BP_OK;
}

static bp_status folded(bp_ctx *c, shape_call *s, bp_dtype dtype)
{
    uint64_t mask;
    TRY(reduce_mask(c, s->op, s->args, arg_tensor(s->args, 0)->rank, &mask));
    return add_folded(c, s, mask, 1, &dtype);
}

/* sum and prod: integers and bools become i64 unless a dtype is asked for. */
bp_status shape_sum(bp_ctx *c, shape_call *s)
{
    bp_dtype d = dtype_of(s), asked = reduce_dtype(s->op, s->args);
    return folded(c, s, asked ? asked : dtype_is_integral(d) ? BP_I64 : d);
}

bp_status shape_nansum(bp_ctx *c, shape_call *s)
{
    if (dtype_is_complex(dtype_of(s)))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "not there for complex numbers");
    return shape_sum(c, s);
}

static bp_status need_float(bp_ctx *c, const shape_call *s, bp_dtype d)
{
    if (!dtype_is_integral(d))
        return BP_OK;
    op_fail(c, s->op, BP_INVALID_ARGUMENT, "expected a float or complex type, got %s", dtype_get(d)->torch);
    diag_hint(&c->diag, "convert the argument first");
    return c->diag.code;
}

bp_status shape_mean(bp_ctx *c, shape_call *s)
{
    bp_dtype asked = reduce_dtype(s->op, s->args), d = asked ? asked : dtype_of(s);
    TRY(need_float(c, s, d));
    return folded(c, s, d);
}

bp_status shape_any(bp_ctx *c, shape_call *s)
{
    return folded(c, s, dtype_of(s) == BP_U8 ? BP_U8 : BP_BOOL);
}

/* any.dims and all.dims fold nothing for an empty list, all for None. */
bp_status shape_any_dims(bp_ctx *c, shape_call *s)
{
    bp_dtype d = dtype_of(s) == BP_U8 ? BP_U8 : BP_BOOL;
    bool is_empty_list = s->args[1].kind == BP_VALUE_LIST && s->args[1].count == 0;
    return is_empty_list ? add_folded(c, s, 0, 1, &d) : folded(c, s, d);
}

bp_status shape_count_nonzero(bp_ctx *c, shape_call *s) { return folded(c, s, BP_I64); }

/* An extremum of nothing does not exist: every folded dimension needs an element. */
static bp_status need_elements(bp_ctx *c, const shape_call *s, uint64_t mask)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    bool all = mask == all_dims(t->rank), is_empty = false;
    for (uint32_t d = 0; d < t->rank; d++)
        if ((mask >> d & 1) && !dim_require(DIM_NE, t->sizes[d], dim_const(0))) {
            is_empty = true;
            if (!all)
                return op_fail(c, s->op, BP_INVALID_ARGUMENT, "dimension %u is folded and has no element", d);
        }
    return is_empty ? op_fail(c, s->op, BP_INVALID_ARGUMENT, "the tensor has no element") : BP_OK;
}

static bp_status extremum(bp_ctx *c, shape_call *s, uint32_t nout, const bp_dtype *dtypes)
{
    uint64_t mask;
    if (dtype_is_complex(dtype_of(s)))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "complex numbers have no order");
    TRY(reduce_mask(c, s->op, s->args, arg_tensor(s->args, 0)->rank, &mask));
    TRY(need_elements(c, s, mask));
    return add_folded(c, s, mask, nout, dtypes);
}

bp_status shape_amax(bp_ctx *c, shape_call *s)
{
    return extremum(c, s, 1, (const bp_dtype[]){dtype_of(s)});
}

bp_status shape_aminmax(bp_ctx *c, shape_call *s)
{
    return extremum(c, s, 2, (const bp_dtype[]){dtype_of(s), dtype_of(s)});
}

bp_status shape_argmax(bp_ctx *c, shape_call *s)
{
    if (dtype_of(s) == BP_BOOL)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "not there for bools");
    return extremum(c, s, 1, (const bp_dtype[]){BP_I64});
}

/* var, std and their pairs with mean: `pairs` adds the mean. */
static bp_status spread(bp_ctx *c, shape_call *s, bool pairs)
{
    bp_dtype d = dtype_of(s);
    uint64_t mask;
    TRY(need_float(c, s, d));
    TRY(reduce_mask(c, s->op, s->args, arg_tensor(s->args, 0)->rank, &mask));
    return add_folded(c, s, mask, pairs ? 2 : 1, (const bp_dtype[]){dtype_real_of(d), d});
}

bp_status shape_var(bp_ctx *c, shape_call *s) { return spread(c, s, false); }
bp_status shape_var_mean(bp_ctx *c, shape_call *s) { return spread(c, s, true); }

bp_status shape_logsumexp(bp_ctx *c, shape_call *s)
{
    bp_dtype d = dtype_of(s);
    return folded(c, s, dtype_is_integral(d) ? c->ambient.default_dtype : d);
}

/* Norms of vectors: a dtype that is asked for must be of the argument's kind and not narrower. */
bp_status shape_vector_norm(bp_ctx *c, shape_call *s)
{
    bp_dtype d = dtype_of(s), asked = reduce_dtype(s->op, s->args);
    TRY(need_float(c, s, d));
    if (asked && (dtype_is_complex(asked) != dtype_is_complex(d) || dtype_promote(asked, d) != asked))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"dtype\": %s does not widen %s",
                       dtype_get(asked)->torch, dtype_get(d)->torch);
    uint64_t mask;
    const bp_tensor *t = arg_tensor(s->args, 0);
    TRY(reduce_mask(c, s->op, s->args, t->rank, &mask));
    bp_scalar order = arg_scalar(s->args, 1);
    double p = order.kind ? scalar_float(order) : 2;
    if (p < 0 || p > 1e308)
        TRY(need_elements(c, s, mask));
    bp_dtype out = dtype_real_of(asked ? asked : d);
    return add_folded(c, s, mask, 1, &out);
}

/* -- scans: the result is as large as the argument -- */
static bp_status scan(bp_ctx *c, shape_call *s, bp_dtype dtype)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    uint32_t dim;
    TRY(reduce_one_dim(c, s->op, s->args, t->rank, &dim));
    return shape_add_out(c, s, dtype, t->rank, t->sizes) ? BP_OK : c->diag.code;
}

bp_status shape_cumsum(bp_ctx *c, shape_call *s)
{
    bp_dtype d = dtype_of(s), asked = reduce_dtype(s->op, s->args);
    if (asked == BP_BOOL)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "not there for bool");
    return scan(c, s, asked ? asked : dtype_is_integral(d) ? BP_I64 : d);
}

bp_status shape_logcumsumexp(bp_ctx *c, shape_call *s)
{
    if (dtype_is_integral(dtype_of(s)))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "not there for %s", dtype_get(dtype_of(s))->torch);
    return scan(c, s, dtype_of(s));
}
