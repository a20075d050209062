/* Matrix products: operands become gemm jobs, whatever their strides. A beta of 0 hides NaN in what is added. */
#include "host/op/reference/gemm.h"
#include "host/op/rows.h"
#include "host/op/reference/number.h"
#include "host/op/reference/walk.h"
#include "host/op/reference/work.h"
#include <string.h>

/* The last two dimensions of t as rows and columns, the one before as batch. */
static gemm_in matrix(const bp_tensor *t)
{
    uint32_t r = t->rank;
    return (gemm_in){tensor_ptr(t), tensor_step(t, r - 2), tensor_step(t, r - 1), r > 2 ? tensor_step(t, r - 3) : 0};
}

/* A job for out = a b, where a and b have at least two dimensions, and the batch is out's third from the end. */
static gemm_job product(const bp_tensor *out, const bp_tensor *a, const bp_tensor *b)
{
    gemm_in o = matrix(out);
    uint32_t r = out->rank;
    return (gemm_job){
        .dtype = out->dtype, .batch = r > 2 ? tensor_dim(out, r - 3) : 1, .m = tensor_dim(out, r - 2),
        .n = tensor_dim(out, r - 1), .k = tensor_dim(a, a->rank - 1), .a = matrix(a), .b = matrix(b),
        .out = tensor_ptr(out), .out_row = o.row, .out_col = o.col, .out_batch = o.batch};
}

static bp_status add_product(bp_ctx *c, op_call *k, bp_tensor *a, bp_tensor *b)
{
    work w = {.c = c};
    bp_tensor *out = k->out[0], *self = work_expand(&w, arg_tensor(k->args, 0), out->rank, out->sizes);
    if (work_ok(&w)) {
        gemm_job j = product(out, a, b);
        j.add = matrix(self);
        j.beta = arg_scalar(k->args, 3);
        j.alpha = arg_scalar(k->args, 4);
        gemm_run(c, &j);
    }
    return work_end(&w);
}

bp_status kernel_mm(bp_ctx *c, op_call *k)
{
    gemm_job j = product(k->out[0], arg_tensor(k->args, 0), arg_tensor(k->args, 1));
    return gemm_run(c, &j);
}

bp_status kernel_bmm(bp_ctx *c, op_call *k) { return kernel_mm(c, k); }

bp_status kernel_addmm(bp_ctx *c, op_call *k)
{
    return add_product(c, k, arg_tensor(k->args, 1), arg_tensor(k->args, 2));
}

bp_status kernel_baddbmm(bp_ctx *c, op_call *k) { return kernel_addmm(c, k); }

/* beta * self, for a batch of none. */
static bp_status scale_self(bp_ctx *c, op_call *k)
{
    const bp_tensor *a = arg_tensor(k->args, 1), *b = arg_tensor(k->args, 2);
    work w = {.c = c};
    bp_tensor *out = k->out[0], *self = work_expand(&w, arg_tensor(k->args, 0), out->rank, out->sizes);
    if (work_ok(&w)) {
        gemm_job j = {.dtype = out->dtype, .batch = 1, .m = tensor_dim(out, 0), .n = tensor_dim(out, 1),
                      .a = matrix(a), .b = matrix(b), .add = matrix(self), .beta = arg_scalar(k->args, 3),
                      .out = tensor_ptr(out), .out_row = tensor_step(out, 0), .out_col = tensor_step(out, 1)};
        gemm_run(c, &j);
    }
    return work_end(&w);
}

/* One product after the other is added to the result, which is rounded each time. */
bp_status kernel_addbmm(bp_ctx *c, op_call *k)
{
    const bp_tensor *a = arg_tensor(k->args, 1), *b = arg_tensor(k->args, 2);
    bp_tensor *out = k->out[0];
    size_t size = dtype_size(out->dtype);
    if (tensor_dim(a, 0) == 0)
        return scale_self(c, k);
    work w = {.c = c};
    bp_tensor *self = work_expand(&w, arg_tensor(k->args, 0), out->rank, out->sizes);
    for (int64_t i = 0; work_ok(&w) && i < tensor_dim(a, 0); i++) {
        gemm_job j = product(out, a, b);
        j.a.at = (const char *)j.a.at + (size_t)(i * j.a.batch) * size;
        j.b.at = (const char *)j.b.at + (size_t)(i * j.b.batch) * size;
        j.add = i == 0 ? matrix(self) : matrix(out);
        j.beta = i == 0 ? arg_scalar(k->args, 3) : (bp_scalar){0};
        j.alpha = arg_scalar(k->args, 4);
        gemm_run(c, &j);
    }
    return work_end(&w);
}

/* Vector v as a matrix of one column. */
static gemm_in column(const bp_tensor *v) { return (gemm_in){tensor_ptr(v), tensor_step(v, 0), 0, 0}; }

static gemm_job matrix_vector(const bp_tensor *out, const bp_tensor *a, const bp_tensor *v)
{
    return (gemm_job){.dtype = out->dtype, .batch = 1, .m = tensor_dim(a, 0), .n = 1, .k = tensor_dim(a, 1),
                      .a = matrix(a), .b = column(v), .out = tensor_ptr(out), .out_row = tensor_step(out, 0)};
}

bp_status kernel_mv(bp_ctx *c, op_call *k)
{
    gemm_job j = matrix_vector(k->out[0], arg_tensor(k->args, 0), arg_tensor(k->args, 1));
    return gemm_run(c, &j);
}

bp_status kernel_addmv(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *out = k->out[0], *self = work_expand(&w, arg_tensor(k->args, 0), 1, out->sizes);
    if (work_ok(&w)) {
        gemm_job j = matrix_vector(out, arg_tensor(k->args, 1), arg_tensor(k->args, 2));
        j.add = column(self);
        j.beta = arg_scalar(k->args, 3);
        j.alpha = arg_scalar(k->args, 4);
        gemm_run(c, &j);
    }
    return work_end(&w);
}

/* -- dot, outer and their kin -- */

/* A conjugated copy of a complex vector; others themselves. */
static bp_tensor *conjugated(work *w, bp_tensor *t)
{
    if (!dtype_is_complex(t->dtype))
        return t;
    bp_tensor *copy = work_new(w, t->dtype, 1, (int64_t[]){tensor_dim(t, 0)});
    if (!copy || tensor_copy(w->c, copy, t) != BP_OK)
        return NULL;
    char *at = tensor_ptr(copy);
    for (int64_t i = 0; i < tensor_dim(t, 0); i++, at += dtype_size(t->dtype)) {
        num v = dtype_load(t->dtype, at);
        v.im = -v.im;
        dtype_store(t->dtype, at, v);
    }
    return copy;
}

static bp_status dot(bp_ctx *c, const bp_tensor *out, const bp_tensor *a, const bp_tensor *b)
{
    gemm_job j = {.dtype = a->dtype, .batch = 1, .m = 1, .n = 1, .k = tensor_dim(a, 0),
                  .a = {tensor_ptr(a), 0, tensor_step(a, 0), 0}, .b = column(b), .out = tensor_ptr(out)};
    return gemm_run(c, &j);
}

bp_status kernel_dot(bp_ctx *c, op_call *k)
{
    return dot(c, k->out[0], arg_tensor(k->args, 0), arg_tensor(k->args, 1));
}

bp_status kernel_vdot(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *a = conjugated(&w, arg_tensor(k->args, 0));
    if (work_ok(&w))
        dot(c, k->out[0], a, arg_tensor(k->args, 1));
    return work_end(&w);
}

bp_status kernel_outer(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *out = k->out[0], *a = work_in(&w, arg_tensor(k->args, 0), out->dtype);
    bp_tensor *b = work_in(&w, arg_tensor(k->args, 1), out->dtype);
    if (work_ok(&w) && out->dtype == BP_BOOL) {
        const uint8_t *x = tensor_ptr(a), *y = tensor_ptr(b);
        uint8_t *to = tensor_ptr(out);
        for (int64_t i = 0, n = tensor_dim(b, 0); i < tensor_dim(a, 0); i++)
            for (int64_t j = 0; j < n; j++)
                to[i * n + j] = x[i] && y[j];
    } else if (work_ok(&w)) {
        gemm_job j = {.dtype = out->dtype, .batch = 1, .m = tensor_dim(a, 0), .n = tensor_dim(b, 0), .k = 1,
                      .a = {tensor_ptr(a), 1, 1, 0}, .b = {tensor_ptr(b), 1, 1, 0}, .out = tensor_ptr(out),
                      .out_row = tensor_step(out, 0), .out_col = tensor_step(out, 1)};
        gemm_run(c, &j);
    }
    return work_end(&w);
}

static num rounded(bp_dtype d, num v)
{
    double element[2];
    dtype_store(d, element, v);
    return dtype_load(d, element);
}

/* beta * self + alpha * x * y; every step is rounded to the type. Bools: or, and. */
static num addr_one(bp_dtype d, num beta, const num *self, num alpha, num x, num y)
{
    num v = rounded(d, num_mul(rounded(d, num_mul(alpha, x)), y));
    return self ? num_add(rounded(d, num_mul(beta, *self)), v) : v;
}

bp_status kernel_addr(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *out = k->out[0], *a = work_in(&w, arg_tensor(k->args, 1), out->dtype);
    bp_tensor *b = work_in(&w, arg_tensor(k->args, 2), out->dtype);
    bp_tensor *self = work_expand(&w, work_in(&w, arg_tensor(k->args, 0), out->dtype), 2, out->sizes);
    bp_dtype d = out->dtype;
    num beta = num_of_scalar(d, arg_scalar(k->args, 3)), alpha = num_of_scalar(d, arg_scalar(k->args, 4));
    size_t size = dtype_size(d);
    for (int64_t i = 0; work_ok(&w) && i < tensor_dim(out, 0); i++) {
        num x = dtype_load(d, (const char *)tensor_ptr(a) + (size_t)i * size);
        for (int64_t j = 0; j < tensor_dim(out, 1); j++) {
            num y = dtype_load(d, (const char *)tensor_ptr(b) + (size_t)j * size);
            int64_t from = i * tensor_step(self, 0) + j * tensor_step(self, 1);
            num s = dtype_load(d, (const char *)tensor_ptr(self) + (size_t)from * size);
            int64_t to = i * tensor_step(out, 0) + j * tensor_step(out, 1);
            dtype_store(d, (char *)tensor_ptr(out) + (size_t)to * size,
                        addr_one(d, beta, num_is_zero(beta) ? NULL : &s, alpha, x, y));
        }
    }
    return work_end(&w);
}

/* -- matmul and linear -- */

/* Adds a dimension of 1 in front of (or behind) a vector. */
static bp_tensor *as_matrix(work *w, bp_tensor *t, bool row)
{
    if (t->rank >= 2 || !work_ok(w))
        return t;
    bp_dim sizes[] = {row ? dim_const(1) : t->sizes[0], row ? t->sizes[0] : dim_const(1)};
    bp_dim strides[] = {row ? dim_const(0) : t->strides[0], row ? t->strides[0] : dim_const(0)};
    tensor_meta m = {t->dtype, tensor_device(t), 2, sizes, strides, t->offset};
    return work_view(w, t, &m);
}

/* t with batch dimensions as given (broadcast), merged into one. */
static bp_tensor *as_batch(work *w, bp_tensor *t, uint32_t rank, const bp_dim *batch)
{
    bp_dim sizes[TENSOR_MAX_RANK];
    if (!work_ok(w))
        return NULL;
    memcpy(sizes, batch, rank * sizeof *batch);
    sizes[rank] = t->sizes[t->rank - 2];
    sizes[rank + 1] = t->sizes[t->rank - 1];
    t = work_expand(w, t, rank + 2, sizes);
    if (rank <= 1 || !work_ok(w))
        return t;
    t = work_in(w, t, BP_DTYPE_UNSET);
    bp_dim merged[] = {dim_product(w->c, batch, rank), sizes[rank], sizes[rank + 1]};
    bp_dim strides[] = {dim_mul(w->c, merged[1], merged[2]), merged[2], dim_const(1)};
    tensor_meta m = {t->dtype, tensor_device(t), 3, merged, strides, t->offset};
    return work_ok(w) ? work_view(w, t, &m) : NULL;
}

bp_status kernel_matmul(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *out = k->out[0], *a = arg_tensor(k->args, 0), *b = arg_tensor(k->args, 1);
    uint32_t matrices = (a->rank > 1) + (b->rank > 1), batch = out->rank - matrices;
    bp_tensor *x = as_batch(&w, as_matrix(&w, a, true), batch, out->sizes);
    bp_tensor *y = as_batch(&w, as_matrix(&w, b, false), batch, out->sizes);
    if (work_ok(&w)) {
        gemm_job j = {.dtype = out->dtype, .batch = batch ? tensor_dim(x, 0) : 1, .m = tensor_dim(x, x->rank - 2),
                      .n = tensor_dim(y, y->rank - 1), .k = tensor_dim(x, x->rank - 1), .a = matrix(x),
                      .b = matrix(y), .out = tensor_ptr(out), .out_col = 1};
        j.out_row = j.n;
        j.out_batch = j.m * j.n;
        gemm_run(c, &j);
    }
    return work_end(&w);
}

/* In halves PyTorch rounds the product before it adds the bias, unless both come from one addmm. */
static bool rounds_twice(const bp_tensor *x)
{
    return (x->dtype == BP_F16 || x->dtype == BP_BF16) && !(x->rank == 2 || (x->rank == 3 && tensor_is_contiguous(x)));
}

static void add_bias(bp_tensor *out, const bp_tensor *bias)
{
    size_t size = dtype_size(out->dtype);
    walk v;
    walk_start(&v, out->rank, out->sizes);
    walk_add(&v, out->strides);
    walk_add(&v, bias->strides);
    for (; v.left; walk_next(&v)) {
        char *to = (char *)tensor_ptr(out) + (size_t)v.at[0] * size;
        num b = dtype_load(bias->dtype, (const char *)tensor_ptr(bias) + (size_t)v.at[1] * size);
        dtype_store(out->dtype, to, num_add(dtype_load(out->dtype, to), b));
    }
}

bp_status kernel_linear(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *out = k->out[0], *x = arg_tensor(k->args, 0), *weight = arg_tensor(k->args, 1);
    bp_tensor *bias = work_expand(&w, arg_tensor(k->args, 2), out->rank, out->sizes);
    bool twice = rounds_twice(x);
    x = work_in(&w, x, BP_DTYPE_UNSET);
    if (work_ok(&w)) {
        int64_t in = tensor_dim(x, x->rank - 1), n = weight->rank == 2 ? tensor_dim(weight, 0) : 1, m = 1;
        for (uint32_t d = 0; d + 1 < x->rank; d++)
            m *= tensor_dim(x, d);
        gemm_job j = {.dtype = out->dtype, .batch = 1, .m = m, .n = n, .k = in, .a = {tensor_ptr(x), in, 1, 0},
                      .b = {tensor_ptr(weight), tensor_step(weight, weight->rank - 1),
                            weight->rank == 2 ? tensor_step(weight, 0) : 0, 0},
                      .out = tensor_ptr(out), .out_row = n, .out_col = 1};
        bool one_row = bias && arg_tensor(k->args, 2)->rank <= 1;
        if (one_row && !twice)
            j.add = (gemm_in){tensor_ptr(bias), 0, out->rank ? tensor_step(bias, out->rank - 1) : 0, 0};
        gemm_run(c, &j);
        if (bias && (!one_row || twice))
            add_bias(out, bias);
    }
    return work_end(&w);
}
