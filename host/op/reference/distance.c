/* Distances between all pairs of rows, by any norm, and their gradients. Everything is computed in double, pair by
 * pair: never as a product of matrices, which would lose what is close. */
#include "host/op/reference/work.h"
#include "host/op/rows.h"
#include <float.h>
#include <math.h>

/* -- norms of differences -- */
static double add_term(double p, double sum, double away)
{
    double x = fabs(away);
    if (p == 2)
        return sum + x * x;
    if (p == 1)
        return sum + x;
    if (p == 0)
        return isnan(x) ? x : sum + (x != 0);
    if (isinf(p))
        return x > sum || isnan(x) ? x : sum;
    return sum + pow(x, p);
}

/* The sum overflows where one of that type does. */
static double distance(bp_dtype d, double p, const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum = add_term(p, sum, a[i] - b[i]);
    if (d == BP_F32 && sum > (double)FLT_MAX)
        sum = INFINITY;
    return p == 2 ? sqrt(sum) : p == 1 || p == 0 || isinf(p) ? sum : pow(sum, 1 / p);
}

/* The gradient of a distance by one difference, which is rounded as the distance was. */
static double slope(bp_dtype d, double p, double difference, double dist)
{
    double away = d == BP_F32 ? (double)(float)difference : difference, x = fabs(away), sign = (away > 0) - (away < 0);
    if (p == 0 || dist == 0)
        return 0;
    if (isnan(away))
        return away;
    if (p == 1)
        return sign;
    if (isinf(p))
        return x == dist ? sign : 0;
    if (p == 2)
        return away / dist;
    return x == 0 ? 0 : sign * pow(x, p - 1) / pow(dist, p - 1);
}

static bp_status check_order(bp_ctx *c, const op_row *op, double p)
{
    return p >= 0 ? BP_OK : op_fail(c, op, BP_INVALID_ARGUMENT, "argument \"p\": %g is negative", p);
}

static bp_status need_float(bp_ctx *c, const op_row *op, const bp_tensor *t)
{
    if (t->dtype == BP_F32 || t->dtype == BP_F64)
        return BP_OK;
    return op_fail(c, op, BP_INVALID_ARGUMENT, "not there for %s", dtype_get(t->dtype)->torch);
}

/* -- cdist: [..., p, m] and [..., r, m] to [..., p, r] -- */
static bp_status cdist(bp_ctx *c, shape_call *s)
{
    const bp_tensor *a = arg_tensor(s->args, 0), *b = arg_tensor(s->args, 1);
    int64_t mode = arg_int(c, s->args, 3);
    TRY(check_order(c, s->op, arg_float(s->args, 2)));
    TRY(need_float(c, s->op, a));
    if (mode < 0 || mode > 2)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"compute_mode\": %lld is none of 0, 1 and 2",
                       (long long)mode);
    if (a->rank < 2 || b->rank < 2 || a->dtype != b->dtype || !dim_eq(a->sizes[a->rank - 1], b->sizes[b->rank - 1]))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                       "arguments \"x1\" and \"x2\": expected matrices of one type with rows of one length");
    bp_dim sizes[TENSOR_MAX_RANK];
    uint32_t rank = a->rank > b->rank ? a->rank : b->rank;
    TRY(layout_broadcast(c, a->rank - 2, a->sizes, b->rank - 2, b->sizes, sizes));
    sizes[rank - 2] = a->sizes[a->rank - 2];
    sizes[rank - 1] = b->sizes[b->rank - 2];
    return shape_add_out(c, s, a->dtype, rank, sizes) ? BP_OK : c->diag.code;
}
bp_status shape_cdist(bp_ctx *c, shape_call *s) { return cdist(c, s); }

/* t with its batch expanded to that of out, contiguous, as f64. */
static bp_tensor *batched(work *w, bp_tensor *t, const bp_tensor *out)
{
    bp_dim sizes[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < out->rank; d++)
        sizes[d] = d + 2 < out->rank ? out->sizes[d] : t->sizes[t->rank - (out->rank - d)];
    return work_in(w, work_expand(w, t, out->rank, sizes), BP_F64);
}

bp_status kernel_cdist(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *out = work_out(&w, k->out[0], BP_F64);
    bp_tensor *x = batched(&w, arg_tensor(k->args, 0), k->out[0]), *y = batched(&w, arg_tensor(k->args, 1), k->out[0]);
    if (!work_ok(&w))
        return work_end(&w);
    uint32_t rank = x->rank;
    int64_t n = tensor_dim(x, rank - 2), r = tensor_dim(y, rank - 2), m = tensor_dim(x, rank - 1);
    int64_t total = tensor_nelem(out);
    const double *a = tensor_ptr(x), *b = tensor_ptr(y);
    double *d = tensor_ptr(out), p = arg_float(k->args, 2);
    bp_dtype type = arg_tensor(k->args, 0)->dtype;
    for (int64_t i = 0; i < total; i++) {
        int64_t batch = i / (n * r);
        d[i] = distance(type, p, a + (m ? i / r * m : 0), b + (m ? (batch * r + i % r) * m : 0), m);
    }
    return work_end(&w);
}

bp_status shape_cdist_backward(bp_ctx *c, shape_call *s)
{
    const bp_tensor *x = arg_tensor(s->args, 1), *dist = arg_tensor(s->args, 4);
    bp_dim sizes[TENSOR_MAX_RANK];
    TRY(need_float(c, s->op, x));
    if (x->rank < 2 || dist->rank < x->rank)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"cdist\" does not belong to \"x1\"");
    if (dim_is(tensor_numel(c, dist), 0)) /* no pair: zeros of x1's own sizes */
        return shape_add_out(c, s, x->dtype, x->rank, x->sizes) ? BP_OK : c->diag.code;
    for (uint32_t d = 0; d + 1 < dist->rank; d++)
        sizes[d] = dist->sizes[d];
    sizes[dist->rank - 1] = x->sizes[x->rank - 1];
    return shape_add_out(c, s, x->dtype, dist->rank, sizes) ? BP_OK : c->diag.code;
}

bp_status kernel_cdist_backward(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *dist = arg_tensor(k->args, 4), *out = work_out(&w, k->out[0], BP_F64);
    if (out && tensor_nelem(dist) == 0) {
        work_clear(out);
        return work_end(&w);
    }
    bp_tensor *g = work_in(&w, work_expand(&w, arg_tensor(k->args, 0), dist->rank, dist->sizes), BP_F64);
    bp_tensor *x = batched(&w, arg_tensor(k->args, 1), dist), *y = batched(&w, arg_tensor(k->args, 2), dist);
    bp_tensor *known = work_in(&w, dist, BP_F64);
    if (!work_ok(&w))
        return work_end(&w);
    uint32_t rank = dist->rank;
    int64_t n = tensor_dim(dist, rank - 2), r = tensor_dim(dist, rank - 1), m = tensor_dim(x, rank - 1);
    const double *a = tensor_ptr(x), *b = tensor_ptr(y), *d = tensor_ptr(known), *grad = tensor_ptr(g);
    double *o = tensor_ptr(out), p = arg_float(k->args, 3);
    work_clear(out);
    for (int64_t i = 0; i < tensor_nelem(dist); i++)
        for (int64_t j = 0; j < m; j++) {
            int64_t left = i / r * m + j, right = (i / (n * r) * r + i % r) * m + j;
            o[left] += grad[i] * slope((bp_dtype)dist->dtype, p, a[left] - b[right], d[i]);
        }
    return work_end(&w);
}

/* -- pdist: [n, m] to the pairs i < j -- */
bp_status shape_pdist(bp_ctx *c, shape_call *s)
{
    const bp_tensor *x = arg_tensor(s->args, 0);
    TRY(check_order(c, s->op, arg_float(s->args, 1)));
    TRY(need_float(c, s->op, x));
    if (x->rank != 2)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "expected a matrix, got %u dimensions", x->rank);
    bp_dim n = x->sizes[0], before = dim_is(n, 0) ? dim_const(0) : dim_sub(c, n, dim_const(1));
    bp_dim pairs = dim_floordiv(c, dim_mul(c, n, before), dim_const(2));
    return shape_add_out(c, s, x->dtype, 1, &pairs) ? BP_OK : c->diag.code;
}

bp_status kernel_pdist(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *out = work_out(&w, k->out[0], BP_F64), *x = work_in(&w, arg_tensor(k->args, 0), BP_F64);
    if (!work_ok(&w))
        return work_end(&w);
    int64_t n = tensor_dim(x, 0), m = tensor_dim(x, 1);
    const double *a = tensor_ptr(x);
    double *d = tensor_ptr(out), p = arg_float(k->args, 1);
    bp_dtype type = arg_tensor(k->args, 0)->dtype;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++)
            *d++ = distance(type, p, a + (m ? i * m : 0), a + (m ? j * m : 0), m);
    return work_end(&w);
}

bp_status shape_pdist_backward(bp_ctx *c, shape_call *s)
{
    const bp_tensor *x = arg_tensor(s->args, 1);
    TRY(need_float(c, s->op, x));
    if (x->rank != 2)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "expected a matrix, got %u dimensions", x->rank);
    bp_dim n = x->sizes[0], before = dim_is(n, 0) ? dim_const(0) : dim_sub(c, n, dim_const(1));
    bp_dim pairs = dim_floordiv(c, dim_mul(c, n, before), dim_const(2));
    for (uint32_t i = 0; i < 4; i += 3)
        if (!dim_eq(tensor_numel(c, arg_tensor(s->args, i)), pairs))
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"%s\": expected a number for each of %lld pairs",
                           s->op->schema->args[i].name, (long long)pairs.value);
    return shape_add_out(c, s, x->dtype, x->rank, x->sizes) ? BP_OK : c->diag.code;
}

bp_status kernel_pdist_backward(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *out = work_out(&w, k->out[0], BP_F64), *g = work_in(&w, arg_tensor(k->args, 0), BP_F64);
    bp_tensor *x = work_in(&w, arg_tensor(k->args, 1), BP_F64), *known = work_in(&w, arg_tensor(k->args, 3), BP_F64);
    if (!work_ok(&w))
        return work_end(&w);
    int64_t n = tensor_dim(x, 0), m = tensor_dim(x, 1), pair = 0;
    const double *a = tensor_ptr(x), *d = tensor_ptr(known), *grad = tensor_ptr(g);
    double *o = tensor_ptr(out), p = arg_float(k->args, 2);
    work_clear(out);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++, pair++)
            for (int64_t q = 0; q < m; q++) {
                double v = grad[pair] * slope(k->out[0]->dtype, p, a[i * m + q] - a[j * m + q], d[pair]);
                o[i * m + q] += v;
                o[j * m + q] -= v;
            }
    return work_end(&w);
}
