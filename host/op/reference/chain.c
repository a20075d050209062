/* Chains of matrix products: multi_dot, matrix_power, vecdot, bilinear forms. */
#include "host/op/checks.h"
#include "host/op/reference/steps.h"
#include "host/op/rows.h"
#include <string.h>

enum { CHAIN_MAX = 64 };

/* -- multi_dot: the order of multiplication with the fewest products -- */

/* cost[i][j] of the products i .. j, and where the last one splits them. */
typedef struct { double cost[CHAIN_MAX][CHAIN_MAX]; uint8_t split[CHAIN_MAX][CHAIN_MAX]; } plan;

static void make_plan(plan *p, const int64_t *sizes, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        p->cost[i][i] = 0;
    for (uint32_t length = 1; length < n; length++) {
        for (uint32_t i = 0, j = length; j < n; i++, j++) {
            p->cost[i][j] = -1;
            for (uint32_t k = i; k < j; k++) {
                double cost = p->cost[i][k] + p->cost[k + 1][j] +
                    (double)sizes[i] * (double)sizes[k + 1] * (double)sizes[j + 1];
                if (p->cost[i][j] < 0 || cost < p->cost[i][j])
                    p->cost[i][j] = cost, p->split[i][j] = (uint8_t)k;
            }
        }
    }
}

static bp_tensor *multiply(work *w, const plan *p, bp_tensor *const *ops, uint32_t i, uint32_t j)
{
    if (i == j)
        return ops[i];
    uint32_t k = p->split[i][j];
    bp_tensor *left = multiply(w, p, ops, i, k), *right = multiply(w, p, ops, k + 1, j);
    return compose_two(w, ROW_mm_default, left, right);
}

/* Two sizes are enough for three factors, and PyTorch takes the left product first when they are equal. */
static bp_tensor *multiply_three(work *w, bp_tensor *const *ops)
{
    double a = (double)tensor_dim(ops[0], 0), b = (double)tensor_dim(ops[1], 0), c = (double)tensor_dim(ops[2], 0);
    double d = (double)tensor_dim(ops[2], 1);
    if (a * c * (b + d) > b * d * (a + c))
        return compose_two(w, ROW_mm_default, ops[0], compose_two(w, ROW_mm_default, ops[1], ops[2]));
    return compose_two(w, ROW_mm_default, compose_two(w, ROW_mm_default, ops[0], ops[1]), ops[2]);
}

static bp_tensor *multiply_all(work *w, bp_tensor *const *ops, uint32_t n)
{
    int64_t sizes[CHAIN_MAX + 1];
    if (n == 2)
        return compose_two(w, ROW_mm_default, ops[0], ops[1]);
    if (n == 3)
        return multiply_three(w, ops);
    plan *p = arena_alloc(&w->c->scratch, sizeof *p);
    if (!p) {
        diag_nomem(&w->c->diag);
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++)
        sizes[i] = tensor_dim(ops[i], 0);
    sizes[n] = tensor_dim(ops[n - 1], 1);
    make_plan(p, sizes, n);
    return multiply(w, p, ops, 0, n - 1);
}

/* The first and the last factor may be vectors: a row and a column, which the result then lacks. */
static bp_tensor *body_multi_dot(work *w, const op_row *op, const bp_value *args)
{
    uint32_t n = arg_list_len(args, 0), rank = 0;
    bp_tensor *ops[CHAIN_MAX];
    bp_dim sizes[2];
    if (n < 2 || n > CHAIN_MAX / 2) {
        op_fail(w->c, op, BP_INVALID_ARGUMENT, "%u factors: there must be 2 to %d", n, CHAIN_MAX / 2);
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++) {
        ops[i] = arg_list_tensor(args, 0, i);
        bool end = i == 0 || i == n - 1, vector = end && ops[i]->rank == 1;
        if (!vector && ops[i]->rank != 2) {
            op_fail(w->c, op, BP_INVALID_ARGUMENT, "factor %u has %u dimensions", i, ops[i]->rank);
            return NULL;
        }
        if (vector)
            ops[i] = compose_unsqueeze(w, ops[i], i == 0 ? 0 : 1);
        if (!ops[i])
            return NULL;
        if (i == 0 && !vector)
            sizes[rank++] = ops[0]->sizes[0];
        if (i == n - 1 && !vector)
            sizes[rank++] = ops[i]->sizes[1];
    }
    return compose_reshape(w, multiply_all(w, ops, n), rank, sizes);
}

COMPOSED(multi_dot)

/* -- matrix_power: by squaring -- */

/* Unit matrices of t's sizes and type. */
static bp_tensor *units(work *w, const bp_tensor *t)
{
    bp_tensor *one = CALL(eye_default, value_dim(t->sizes[t->rank - 1u]), value_dtype((bp_dtype)t->dtype));
    return one ? CALL(expand_default, T(one), value_dims(w->c, t->sizes, t->rank)) : NULL;
}

static bp_tensor *body_matrix_power(work *w, const op_row *op, const bp_value *args)
{
    bp_tensor *self = arg_tensor(args, 0), *square = self, *result = NULL;
    int64_t n = arg_int(w->c, args, 1);
    if (self->rank < 2 || !dim_eq(self->sizes[self->rank - 1u], self->sizes[self->rank - 2u])) {
        char sizes[256];
        op_fail(w->c, op, BP_INVALID_ARGUMENT, "argument \"self\" must be square matrices, and has sizes %s",
                sizes_text(sizes, sizeof sizes, self->rank, self->sizes));
        return NULL;
    }
    if (n == 0)
        return units(w, self);
    if (n < 0)
        square = self = CALL(linalg_inv_default, T(self));
    uint64_t times = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    if (times == 3)
        return compose_two(w, ROW_matmul_default, compose_two(w, ROW_matmul_default, self, self), self);
    for (; times > 0 && work_ok(w); times /= 2) {
        if (times % 2)
            result = result ? compose_two(w, ROW_matmul_default, result, square) : square;
        if (times > 1)
            square = compose_two(w, ROW_matmul_default, square, square);
    }
    return result;
}

/* Contiguous, but for an inverse, which lies as linalg_inv leaves it. */
bp_status shape_matrix_power(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    TRY(compose_shape(c, s, body_matrix_power));
    if (arg_int(c, s->args, 1) != -1)
        layout_contiguous(c, t->rank, s->out[0].meta.sizes, s->out[0].meta.strides);
    return c->diag.code;
}
bp_status kernel_matrix_power(bp_ctx *c, op_call *k) { return compose_run(c, k, body_matrix_power); }
COMPOSED_BODY(matrix_power)

/* -- vecdot -- */

static bp_tensor *body_vecdot(work *w, const op_row *op, const bp_value *args)
{
    bp_tensor *x = arg_tensor(args, 0), *y = arg_tensor(args, 1);
    int64_t dim = arg_int(w->c, args, 2);
    (void)op;
    if (x->rank == 1 && y->rank == 1)
        return compose_two(w, ROW_vdot_default, x, y);
    if (dtype_is_complex((bp_dtype)x->dtype))
        x = CALL(private_conj_physical_default, T(x));
    return compose_sum(w, compose_two(w, ROW_mul_tensor, x, y), 1, &dim, false);
}

COMPOSED(vecdot)

/* -- bilinear forms -- */

/* Dimensions of size 1 at the places that a list names. */
static bp_tensor *expand_at(work *w, bp_tensor *t, const bp_value *args, uint32_t i)
{
    for (uint32_t k = 0; t && k < arg_list_len(args, i); k++)
        t = compose_unsqueeze(w, t, arg_list_dim(args, i, k).value);
    return t;
}

static bp_tensor *slice_at(work *w, bp_tensor *t, int64_t dim, int64_t k)
{
    bp_value args[] = {value_tensor(t), value_int(dim), value_int(k), value_int(k + 1)};
    return t && !dim_is(t->sizes[dim], 1) ? work_call(w, ROW_slice_tensor, 4, args) : t;
}

/* i1 i2 i3, all expanded to one rank; which dimensions are summed, with the third factor or before it. */
typedef struct { bp_tensor *t[3]; uint32_t rank; uint64_t sum, first, second; int64_t unroll; } form;

static bool read_form(work *w, const op_row *op, const bp_value *args, form *f)
{
    *f = (form){.rank = arg_tensor(args, 0)->rank + arg_list_len(args, 3)};
    for (uint32_t i = 0; i < 3; i++) {
        f->t[i] = expand_at(w, arg_tensor(args, i), args, 3 + i);
        if (!f->t[i] || f->t[i]->rank != f->rank) {
            op_fail(w->c, op, BP_INVALID_ARGUMENT, "the expanded arguments differ in their dimensions");
            return false;
        }
    }
    f->unroll = layout_wrap_dim(w->c, arg_int(w->c, args, 7), f->rank);
    for (uint32_t k = 0; work_ok(w) && k < arg_list_len(args, 6); k++)
        f->sum |= 1ull << layout_wrap_dim(w->c, arg_list_dim(args, 6, k).value, f->rank);
    for (uint32_t k = 0; work_ok(w) && k < arg_list_len(args, 5); k++)
        f->first |= 1ull << layout_wrap_dim(w->c, arg_list_dim(args, 5, k).value, f->rank);
    uint64_t now = work_ok(w) ? f->sum & ~(1ull << f->unroll) : 0;
    f->second = now & ~f->first;
    f->first &= now;
    return work_ok(w);
}

static bp_tensor *zeros_of(work *w, const bp_tensor *t, uint32_t rank, const bp_dim *sizes)
{
    if (!work_ok(w))
        return NULL;
    bp_value args[] = {value_dims(w->c, sizes, rank), value_dtype(t->dtype)};
    return work_call(w, ROW_zeros_default, 2, args);
}

/* As PyTorch does, one slice of the unrolled dimension after the other: its sum is rounded each time. */
static bp_tensor *body_trilinear(work *w, const op_row *op, const bp_value *args)
{
    form f;
    bp_tensor *total = NULL;
    bp_dim sizes[TENSOR_MAX_RANK];
    int64_t n = 1;
    uint32_t rank = 0;
    if (!read_form(w, op, args, &f))
        return NULL;
    uint32_t d = (uint32_t)f.unroll;
    for (uint32_t i = 0; i < 3; i++)
        n = dim_is(f.t[i]->sizes[d], 1) ? n : tensor_dim(f.t[i], d); /* a number: a step for each */
    for (uint32_t k = 0; k < f.rank; k++) {
        if (f.sum >> k & 1)
            continue;
        sizes[rank] = dim_const(1);
        for (uint32_t i = 0; i < 3; i++)
            sizes[rank] = dim_is(f.t[i]->sizes[k], 1) ? sizes[rank] : f.t[i]->sizes[k];
        rank++;
    }
    for (int64_t k = 0; work_ok(w) && k < n; k++) {
        bp_tensor *pair = compose_sumproduct(w, slice_at(w, f.t[0], d, k), slice_at(w, f.t[1], d, k), f.first);
        bp_tensor *all = compose_sumproduct(w, pair, slice_at(w, f.t[2], d, k), f.second);
        bp_value both[] = {value_tensor(total), value_tensor(all)}, cat[] = {value_list(both, 2), value_int(d)};
        if (!total || !all)
            total = all;
        else
            total = f.sum >> d & 1 ? compose_two(w, ROW_add_tensor, total, all) : work_call(w, ROW_cat_default, 2, cat);
    }
    return n ? compose_reshape(w, total, rank, sizes) : zeros_of(w, f.t[0], rank, sizes);
}

COMPOSED(trilinear)

/* input1 W input2 + bias, over the last dimensions of the inputs. */
static bp_tensor *body_bilinear(work *w, const op_row *op, const bp_value *args)
{
    bp_tensor *a = arg_tensor(args, 0), *b = arg_tensor(args, 1), *weight = arg_tensor(args, 2);
    bp_dim sizes[TENSOR_MAX_RANK], rows = dim_const(1);
    bool fits = a->rank > 0 && a->rank == b->rank && weight->rank == 3;
    for (uint32_t d = 0; fits && d + 1 < a->rank; d++) {
        fits = dim_eq(a->sizes[d], b->sizes[d]);
        sizes[d] = a->sizes[d];
        rows = dim_mul(w->c, rows, sizes[d]);
    }
    uint32_t last = fits ? a->rank - 1u : 0;
    if (!fits || !dim_eq(a->sizes[last], weight->sizes[1]) || !dim_eq(b->sizes[last], weight->sizes[2])) {
        op_fail(w->c, op, BP_INVALID_ARGUMENT, "the inputs must differ in their last size only, and fit the weight's");
        return NULL;
    }
    sizes[last] = weight->sizes[0];
    a = compose_reshape(w, a, 2, (bp_dim[]){rows, a->sizes[last]});
    b = compose_reshape(w, b, 2, (bp_dim[]){rows, b->sizes[last]});
    if (!work_ok(w))
        return NULL;
    bp_value form_args[] = {value_tensor(a), value_tensor(weight), value_tensor(b),
                            value_ints(w->c, (int64_t[]){1, 3}, 2), value_ints(w->c, (int64_t[]){0}, 1),
                            value_ints(w->c, (int64_t[]){1, 2}, 2), value_ints(w->c, (int64_t[]){2, 3}, 2)};
    bp_tensor *t = work_call(w, ROW_private_trilinear_default, 7, form_args);
    t = compose_reshape(w, t, last + 1, sizes);
    return arg_is_none(args, 3) ? t : compose_two(w, ROW_add_tensor, t, arg_tensor(args, 3));
}

COMPOSED(bilinear)
