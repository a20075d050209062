/* Products that are not matrix products of their arguments as they come: inner, kron, cross, vecdot. */
#include "host/op/reference/gemm.h"
#include "host/op/reference/number.h"
#include "host/op/reference/walk.h"
#include "host/op/reference/work.h"
#include "host/op/rows.h"

static char *element(const bp_tensor *t, int64_t at)
{
    return (char *)tensor_ptr(t) + at * (int64_t)dtype_size(t->dtype);
}

/* out[i] = t[i] * factor, for tensors laid out as they like. */
static void scale(bp_tensor *out, const bp_tensor *t, num factor)
{
    walk v;
    walk_start(&v, out->rank, out->sizes);
    walk_add(&v, out->strides);
    walk_add(&v, t->strides);
    for (; v.left; walk_next(&v))
        dtype_store(out->dtype, element(out, v.at[0]), num_mul(dtype_load(t->dtype, element(t, v.at[1])), factor));
}

static int64_t rows_of(const bp_tensor *t)
{
    int64_t n = 1;
    for (uint32_t d = 0; d + 1 < t->rank; d++)
        n *= tensor_dim(t, d);
    return n;
}

bp_status kernel_inner(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *out = k->out[0], *a = work_in(&w, arg_tensor(k->args, 0), out->dtype);
    bp_tensor *b = work_in(&w, arg_tensor(k->args, 1), out->dtype);
    if (work_ok(&w) && (a->rank == 0 || b->rank == 0)) {
        scale(out, a->rank ? a : b, work_item(a->rank ? b : a, out->dtype));
    } else if (work_ok(&w)) {
        int64_t n = tensor_dim(a, a->rank - 1);
        gemm_job j = {.dtype = out->dtype, .batch = 1, .m = rows_of(a), .n = rows_of(b), .k = n,
                      .a = {tensor_ptr(a), n, 1, 0}, .b = {tensor_ptr(b), 1, n, 0}, .out = tensor_ptr(out),
                      .out_row = rows_of(b), .out_col = 1};
        gemm_run(c, &j);
    }
    return work_end(&w);
}

/* The result's dimensions interleave those of a and b, so its elements come in the order of one walk over both. */
bp_status kernel_kron(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *out = work_out(&w, k->out[0], BP_DTYPE_UNSET);
    bp_tensor *a = work_in(&w, arg_tensor(k->args, 0), k->out[0]->dtype);
    bp_tensor *b = work_in(&w, arg_tensor(k->args, 1), k->out[0]->dtype);
    bp_dim sizes[TENSOR_MAX_RANK], from_a[TENSOR_MAX_RANK], from_b[TENSOR_MAX_RANK];
    for (uint32_t d = 0; work_ok(&w) && d < out->rank; d++) {
        bool in_a = d + a->rank >= out->rank, in_b = d + b->rank >= out->rank;
        uint32_t x = d + a->rank - out->rank, y = d + b->rank - out->rank;
        sizes[2 * d] = in_a ? a->sizes[x] : dim_const(1), sizes[2 * d + 1] = in_b ? b->sizes[y] : dim_const(1);
        from_a[2 * d] = in_a ? a->strides[x] : dim_const(0), from_a[2 * d + 1] = dim_const(0);
        from_b[2 * d + 1] = in_b ? b->strides[y] : dim_const(0), from_b[2 * d] = dim_const(0);
    }
    if (work_ok(&w)) {
        walk v;
        walk_start(&v, 2 * out->rank, sizes);
        walk_add(&v, from_a);
        walk_add(&v, from_b);
        for (int64_t i = 0; v.left; walk_next(&v), i++)
            dtype_store(out->dtype, element(out, i),
                        num_mul(dtype_load(a->dtype, element(a, v.at[0])), dtype_load(b->dtype, element(b, v.at[1]))));
    }
    return work_end(&w);
}

/* -- cross: x1 y2 - x2 y1, each product and the difference rounded to the type it is computed in -- */

static num minus(num a, num b)
{
    b.i = (int64_t)(0 - (uint64_t)b.i);
    b.f = -b.f;
    b.im = -b.im;
    return num_add(a, b);
}

/* Rounded to d, as the operands of the difference are. */
static num as_type(bp_dtype d, num v)
{
    double element[2];
    dtype_store(d, element, v);
    return dtype_load(d, element);
}

static num load(const bp_tensor *t, int64_t at, int64_t step, int64_t i)
{
    return dtype_load(t->dtype, element(t, at + i % 3 * step));
}

static void cross(bp_tensor *out, const bp_tensor *a, const bp_tensor *b, uint32_t dim)
{
    bp_dim sizes[TENSOR_MAX_RANK];
    int64_t sa = tensor_step(a, dim), sb = tensor_step(b, dim), so = tensor_step(out, dim);
    for (uint32_t d = 0; d < out->rank; d++)
        sizes[d] = d == dim ? dim_const(1) : out->sizes[d];
    walk v;
    walk_start(&v, out->rank, sizes);
    walk_add(&v, out->strides);
    walk_add(&v, a->strides);
    walk_add(&v, b->strides);
    for (; v.left; walk_next(&v)) {
        for (int64_t i = 0; i < 3; i++) {
            num x = num_mul(load(a, v.at[1], sa, i + 1), load(b, v.at[2], sb, i + 2));
            num y = num_mul(load(a, v.at[1], sa, i + 2), load(b, v.at[2], sb, i + 1));
            num difference = minus(as_type(out->dtype, x), as_type(out->dtype, y));
            dtype_store(out->dtype, element(out, v.at[0] + i * so), difference);
        }
    }
}

bp_status kernel_cross(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *out = k->out[0], *a = arg_tensor(k->args, 0), *b = arg_tensor(k->args, 1);
    uint32_t dim = 0;
    if (arg_is_none(k->args, 2))
        while (dim < a->rank && tensor_dim(a, dim) != 3)
            dim++;
    else
        dim = work_dim(c, k->args, 2, out);
    a = work_expand(&w, a, out->rank, out->sizes);
    b = work_expand(&w, b, out->rank, out->sizes);
    if (work_ok(&w))
        cross(out, a, b, dim);
    return work_end(&w);
}
