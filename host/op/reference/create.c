/* Kernels of tensors made from sizes and numbers. */
#include "host/base/isa.h"
#include "host/base/parallel.h"
#include "host/op/reference/number.h"
#include "host/op/rows.h"
#include <math.h>
#include <string.h>

/* -- one value ----------------------------------------------------------------------------------------------------- */

/* Copies the element at `value`, of out's type, to all of out. */
static bp_status repeat_element(bp_ctx *c, bp_tensor *out, const void *value)
{
    bp_dim none[TENSOR_MAX_RANK] = {{0, 0, 0}};
    tensor_meta m = {out->dtype, {BP_CPU, 0}, 0, NULL, NULL, {0, 0, 0}};
    bp_tensor *one = tensor_new(c, &m);
    if (!one)
        return c->diag.code;
    memcpy(tensor_ptr(one), value, dtype_size(out->dtype));
    m.rank = out->rank;
    m.sizes = out->sizes;
    m.strides = none;
    bp_tensor *wide = tensor_view(c, one, &m);
    bp_status st = wide ? tensor_copy(c, out, wide) : c->diag.code;
    tensor_unref(wide);
    tensor_unref(one);
    return st;
}

static bp_status fill(bp_ctx *c, op_call *k, bp_scalar value)
{
    bp_tensor *out = k->out[0];
    char element[16] = {0};
    if (!num_fits(out->dtype, value))
        return op_fail(c, k->op, BP_INVALID_ARGUMENT, "the value cannot be converted to %s without overflow",
                       dtype_get(out->dtype)->torch);
    dtype_store(out->dtype, element, num_of_scalar(out->dtype, value));
    return repeat_element(c, out, element);
}

static bp_scalar int_scalar(int64_t v)
{
    return (bp_scalar){BP_SCALAR_INT, 0, {v}};
}

bp_status kernel_zeros(bp_ctx *c, op_call *k)
{
    return fill(c, k, int_scalar(0));
}

bp_status kernel_ones(bp_ctx *c, op_call *k)
{
    return fill(c, k, int_scalar(1));
}

/* The value is the argument named fill_value, value or s. */
bp_status kernel_full(bp_ctx *c, op_call *k)
{
    static const char *const names[] = {"fill_value", "value", "s"};
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++) {
        int32_t at = schema_find(k->op->schema, names[i]);
        if (at >= 0)
            return fill(c, k, arg_scalar(k->args, (uint32_t)at));
    }
    return ctx_fail(c, BP_INTERNAL, "%s: no argument is the value", k->op->label);
}

bp_status kernel_fill_tensor(bp_ctx *c, op_call *k)
{
    const bp_tensor *value = arg_tensor(k->args, 1);
    char element[16];
    dtype_convert(k->out[0]->dtype, element, 1, value->dtype, tensor_ptr(value), 1, 1);
    return repeat_element(c, k->out[0], element);
}

/* -- sequences ----------------------------------------------------------------------------------------------------- */

static bp_scalar named_scalar(const op_call *k, const char *name, int64_t otherwise)
{
    int32_t i = schema_find(k->op->schema, name);
    return i >= 0 ? arg_scalar(k->args, (uint32_t)i) : int_scalar(otherwise);
}

static void *element(bp_tensor *t, int64_t i)
{
    return (char *)tensor_ptr(t) + (size_t)i * dtype_size(t->dtype);
}

enum { ARANGE_PIECE = 256, ARANGE_GRAIN = 16384 };
typedef struct { bp_tensor *out; uint64_t from, by; double start, step; } arange;

/* Elements at, at + 1, ... at + n - 1: in 64 wrapping bits, in float (halves), in double (other floats). */
ISA_INLINE void count_whole_body(const arange *a, int64_t at, int64_t n, uint64_t *to)
{
    uint64_t v = a->from + a->by * (uint64_t)at, by = a->by;
    for (int64_t i = 0; i < n; i++, v += by)
        to[i] = v;
}
ISA_FN(count_whole, (const arange *a, int64_t at, int64_t n, uint64_t *to), (a, at, n, to))
ISA_INLINE void count_single_body(const arange *a, int64_t at, int64_t n, float *to)
{
    const float start = (float)a->start, step = (float)a->step;
    ISA_SIMD
    for (int64_t i = 0; i < n; i++)
        to[i] = start + step * (float)(at + i);
}
ISA_FN(count_single, (const arange *a, int64_t at, int64_t n, float *to), (a, at, n, to))
ISA_INLINE void count_double_body(const arange *a, int64_t at, int64_t n, double *to)
{
    const double start = a->start, step = a->step;
    ISA_SIMD
    for (int64_t i = 0; i < n; i++)
        to[i] = start + step * (double)(at + i);
}
ISA_FN(count_double, (const arange *a, int64_t at, int64_t n, double *to), (a, at, n, to))

static void count_range(void *arg, int64_t begin, int64_t end)
{
    const arange *a = arg;
    bp_dtype d = a->out->dtype, in = dtype_is_int(d) ? BP_I64 : dtype_size(d) == 2 ? BP_F32 : BP_F64;
    if (d == BP_I64) {
        count_whole(a, begin, end - begin, element(a->out, begin));
        return;
    }
    for (int64_t at = begin; at < end; at += ARANGE_PIECE) {
        _Alignas(64) char room[ARANGE_PIECE * 8];
        int64_t n = end - at < ARANGE_PIECE ? end - at : ARANGE_PIECE;
        if (in == BP_I64)
            count_whole(a, at, n, (void *)room);
        else if (in == BP_F32)
            count_single(a, at, n, (void *)room);
        else
            count_double(a, at, n, (void *)room);
        dtype_convert(d, element(a->out, at), 1, in, room, 1, n);
    }
}

bp_status kernel_arange(bp_ctx *c, op_call *k)
{
    (void)c;
    bp_scalar start = named_scalar(k, "start", 0), step = named_scalar(k, "step", 1);
    arange a = {k->out[0], (uint64_t)scalar_int(start), (uint64_t)scalar_int(step), scalar_float(start),
                scalar_float(step)};
    parallel_for(tensor_dim(a.out, 0), ARANGE_GRAIN, count_range, &a);
    return BP_OK;
}

/* Argument i, a number or a 0-d tensor, as an element of type d. */
static num end_point(const op_call *k, uint32_t i, bp_dtype d)
{
    const bp_tensor *t = arg_tensor(k->args, i);
    char cell[16] = {0};
    if (t)
        dtype_convert(d, cell, 1, t->dtype, tensor_ptr(t), 1, 1);
    else
        dtype_store(d, cell, num_of_scalar(d, arg_scalar(k->args, i)));
    return dtype_load(d, cell);
}

static double as_double(num v)
{
    return v.kind == NUM_INT ? (double)v.i : v.f;
}

/* v as the type holds it in which a sequence of d is computed: float for f32 and the halves, double for others. */
static double rounded(bp_dtype d, double v)
{
    return d == BP_F32 || d == BP_F16 || d == BP_BF16 ? (double)(float)v : v;
}

/* The i-th of n numbers from a to b, from the nearer end. */
static double spread(bp_dtype d, double a, double b, int64_t i, int64_t n)
{
    double step = rounded(d, rounded(d, b - a) / (double)(n - 1));
    if (i < n / 2)
        return a + rounded(d, step * (double)i);
    return b - rounded(d, step * (double)(n - i - 1));
}

bp_status kernel_linspace(bp_ctx *c, op_call *k)
{
    (void)c;
    bp_tensor *out = k->out[0];
    bool complex = dtype_is_complex(out->dtype);
    bp_dtype part = dtype_real_of(out->dtype);
    int64_t n = tensor_dim(out, 0);
    num a = end_point(k, 0, out->dtype), b = end_point(k, 1, out->dtype);
    for (int64_t i = 0; i < n; i++) {
        num v = {.kind = complex ? NUM_COMPLEX : NUM_FLOAT};
        v.f = n == 1 ? as_double(a) : spread(part, as_double(a), as_double(b), i, n);
        if (complex)
            v.im = n == 1 ? a.im : spread(part, a.im, b.im, i, n);
        dtype_store(out->dtype, element(out, i), v);
    }
    return BP_OK;
}

bp_status kernel_logspace(bp_ctx *c, op_call *k)
{
    bp_tensor *out = k->out[0];
    if (dtype_is_complex(out->dtype))
        return op_fail(c, k->op, BP_UNIMPLEMENTED, "complex exponents");
    int64_t n = tensor_dim(out, 0);
    double base = arg_float(k->args, 3), a = as_double(end_point(k, 0, out->dtype));
    double b = as_double(end_point(k, 1, out->dtype)), step = n > 1 ? (b - a) / (double)(n - 1) : 0;
    if (n == 1 && !arg_tensor(k->args, 0)) /* alone, the start is not cut to the type */
        a = scalar_float(arg_scalar(k->args, 0));
    for (int64_t i = 0; i < n; i++) {
        double at = n == 1 || i < n / 2 ? a + step * (double)i : b - step * (double)(n - i - 1);
        dtype_store(out->dtype, element(out, i), (num){.kind = NUM_FLOAT, .f = pow(base, at)});
    }
    return BP_OK;
}

bp_status kernel_eye(bp_ctx *c, op_call *k)
{
    bp_tensor *out = k->out[0];
    TRY(fill(c, k, int_scalar(0)));
    int64_t n = tensor_dim(out, 0) < tensor_dim(out, 1) ? tensor_dim(out, 0) : tensor_dim(out, 1);
    for (int64_t i = 0; i < n; i++)
        dtype_store(out->dtype, element(out, i * (tensor_step(out, 0) + tensor_step(out, 1))), num_of_int(out->dtype,
                                                                                                          1));
    return BP_OK;
}
