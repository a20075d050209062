/* quantile and nanquantile: where a share of the elements lies below, along a dimension or over all.
 *
 * Results are laid out as PyTorch leaves them: the quantiles lie innermost in memory, and stand in front. Ranks are
 * computed in the type of self, which shows for large sizes. */
#include "host/op/checks.h"
#include "host/op/reference/loop.h"
#include "host/op/reference/work.h"
#include "host/op/rows.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SELF, Q, DIM, KEEP, INTERPOLATION };

enum between { BETWEEN_LINEAR, BETWEEN_LOWER, BETWEEN_HIGHER, BETWEEN_MIDPOINT, BETWEEN_NEAREST, BETWEEN_KINDS };

static bp_status read_between(bp_ctx *c, const op_row *op, const bp_value *args, enum between *out)
{
    static const char *const names[BETWEEN_KINDS] = {"linear", "lower", "higher", "midpoint", "nearest"};
    const char *name = arg_str(args, INTERPOLATION);
    for (uint32_t i = 0; i < BETWEEN_KINDS; i++)
        if (strcmp(names[i], name) == 0) {
            *out = (enum between)i;
            return BP_OK;
        }
    return op_fail(c, op, BP_INVALID_ARGUMENT,
                   "argument \"interpolation\": \"%s\" is none of linear, lower, higher, midpoint and nearest", name);
}

static bp_status check_q(bp_ctx *c, const shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, SELF), *q = arg_tensor(s->args, Q);
    if (self->dtype != BP_F32 && self->dtype != BP_F64)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"self\": not there for %s",
                       dtype_get(self->dtype)->torch);
    if (dim_is(tensor_nelem(self) == 0 ? dim_const(0) : dim_const(1), 0))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"self\" has no elements");
    if (!q) {
        double number = arg_float(s->args, Q);
        return number >= 0 && number <= 1
                   ? BP_OK
                   : op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"q\": %g is not between 0 and 1", number);
    }
    TRY(check_rank(c, s, Q, 0, 1));
    return check_same_dtype(c, s, SELF, Q);
}

/* Adds the result: sizes with the quantiles in front where q is a vector, strides with them innermost. */
bp_status shape_quantile(bp_ctx *c, shape_call *s)
{
    const bp_tensor *self = arg_tensor(s->args, SELF), *q = arg_tensor(s->args, Q);
    bp_dim sizes[TENSOR_MAX_RANK + 1], step = dim_const(1);
    uint32_t dim = 0, rank = 0, lead = q && q->rank == 1;
    bool whole = arg_is_none(s->args, DIM), keep = arg_bool(s->args, KEEP);
    enum between kind;
    TRY(check_q(c, s));
    TRY(read_between(c, s->op, s->args, &kind));
    if (!whole)
        TRY(check_dim(c, s, DIM, self, &dim));
    if (lead)
        sizes[rank++] = q->sizes[0];
    for (uint32_t d = 0; d < self->rank; d++)
        if (keep || (!whole && d != dim))
            sizes[rank++] = whole || d == dim ? dim_const(1) : self->sizes[d];
    shape_out *o = rank <= TENSOR_MAX_RANK ? shape_add_out(c, s, self->dtype, rank, sizes) : NULL;
    if (!o || !lead)
        return c->diag.code;
    o->meta.strides[0] = step;
    step = dim_mul(c, step, sizes[0]);
    for (uint32_t d = rank; d-- > 1;) {
        o->meta.strides[d] = step;
        step = dim_mul(c, step, sizes[d]);
    }
    return c->diag.code;
}

/* -- the kernel -- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return isnan(x) || isnan(y) ? isnan(x) - isnan(y) : (x > y) - (x < y);
}

typedef struct {
    bp_dtype dtype;
    enum between kind;
    bool skips_nan;
} quantile_run;

/* The share q of n sorted numbers, those that are none last. */
static double quantile_of(const quantile_run *r, const double *sorted, int64_t n, double q)
{
    int64_t count = n;
    while (count > 0 && isnan(sorted[count - 1]))
        count--;
    if (count == 0 || (!r->skips_nan && count < n))
        return NAN;
    double rank = loop_round(r->dtype, q * (double)(count - 1));
    if (isnan(rank))
        return NAN;
    if (r->kind == BETWEEN_LOWER || r->kind == BETWEEN_HIGHER || r->kind == BETWEEN_NEAREST)
        rank = r->kind == BETWEEN_LOWER ? floor(rank) : r->kind == BETWEEN_HIGHER ? ceil(rank) : nearbyint(rank);
    int64_t below = (int64_t)rank, above = (int64_t)ceil(rank);
    double weight = r->kind == BETWEEN_MIDPOINT ? 0.5 : rank - (double)below;
    double a = sorted[below], b = sorted[above], apart = b - a;
    return weight < 0.5 ? a + weight * apart : b - apart * (1 - weight);
}

static bool quantiles_fit(bp_ctx *c, const op_row *op, const double *q, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(q[i] >= 0 && q[i] <= 1))
            return op_fail(c, op, BP_INVALID_ARGUMENT, "argument \"q\": %g is not between 0 and 1", q[i]) == BP_OK;
    return true;
}

bp_status kernel_quantile(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *self = work_in(&w, arg_tensor(k->args, SELF), BP_F64), *q = arg_tensor(k->args, Q);
    bp_tensor *list = q ? work_in(&w, q, BP_F64) : NULL, *out = work_out(&w, k->out[0], BP_F64);
    quantile_run r = {.dtype = k->out[0]->dtype, .skips_nan = k->op->schema->name[0] == 'n'};
    if (!work_ok(&w) || read_between(c, k->op, k->args, &r.kind) != BP_OK)
        return work_end(&w);
    double one = arg_is_none(k->args, Q) || q ? 0 : loop_round(r.dtype, arg_float(k->args, Q));
    const double *shares = list ? tensor_ptr(list) : &one, *from = tensor_ptr(self);
    int64_t nq = list ? tensor_nelem(list) : 1;
    work_split at = {1, tensor_nelem(self), 1};
    if (!arg_is_none(k->args, DIM))
        at = work_around(self, work_dim(c, k->args, DIM, self));
    double *line = work_alloc(&w, at.n, sizeof *line), *to = tensor_ptr(out);
    if (!line || !quantiles_fit(c, k->op, shares, nq))
        return work_end(&w);
    for (int64_t i = 0; i < at.outer * at.inner; i++) {
        for (int64_t j = 0; j < at.n; j++)
            line[j] = from[(i / at.inner * at.n + j) * at.inner + i % at.inner];
        qsort(line, (size_t)at.n, sizeof *line, ascending);
        for (int64_t j = 0; j < nq; j++)
            to[j * at.outer * at.inner + i] = quantile_of(&r, line, at.n, shares[j]);
    }
    return work_end(&w);
}
