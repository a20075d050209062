/* Equal means: integers and booleans exactly, NaN where NaN is, other floats within what reordering a sum can do in
 * that type: |a - b| <= atol + rtol * |b|. */
#include "host/backend/verify.h"
#include <math.h>
#include <stdlib.h>

static double tolerance(bp_dtype d)
{
    switch (d) {
    case BP_F16: return 1e-2;
    case BP_BF16: return 4e-2;
    case BP_F32:
    case BP_C64: return 1e-4;
    case BP_F64:
    case BP_C128: return 1e-7;
    default: return 0;
    }
}

static bool near(double a, double b, double tol)
{
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tol + tol * fabs(b);
}

static bool is_equal(num a, num b, double tol)
{
    if (a.kind == NUM_INT)
        return a.i == b.i;
    return near(a.f, b.f, tol) && (a.kind != NUM_COMPLEX || near(a.im, b.im, tol));
}

static double shown(num v)
{
    return v.kind == NUM_INT ? (double)v.i : v.f;
}

static bp_status compare(bp_ctx *c, const char *name, uint32_t i, bp_tensor *got, bp_tensor *want)
{
    int64_t n = tensor_nelem(want);
    const char *a = tensor_ptr(got), *b = tensor_ptr(want);
    double tol = tolerance(want->dtype);
    for (int64_t k = 0; k < n; k++) {
        size_t at = (size_t)k * dtype_size(want->dtype);
        num x = dtype_load(want->dtype, a + at), y = dtype_load(want->dtype, b + at);
        if (!is_equal(x, y, tol))
            return ctx_fail(c, BP_INTERNAL,
                            "backend \"%s\" computed wrong values: output %u is %.9g at element %lld, eager "
                            "execution gives %.9g", name, (unsigned)i, shown(x), (long long)k, shown(y));
    }
    return BP_OK;
}

static bp_status compare_tensors(bp_ctx *c, const char *name, uint32_t i, bp_tensor *got, bp_tensor *want)
{
    if (!got || !want)
        return !got == !want ? BP_OK : ctx_fail(c, BP_INTERNAL, "backend \"%s\": output %u is None on one side", name,
                                                (unsigned)i);
    char x[200], y[200];
    bool same = got->dtype == want->dtype && got->rank == want->rank;
    for (uint32_t d = 0; same && d < got->rank; d++)
        same = tensor_dim(got, d) == tensor_dim(want, d);
    if (!same)
        return ctx_fail(c, BP_INTERNAL, "backend \"%s\": output %u is %s, eager execution gives %s", name, (unsigned)i,
                        tensor_describe(got, x, sizeof x), tensor_describe(want, y, sizeof y));
    bp_tensor *a = tensor_to_contiguous(c, got), *b = a ? tensor_to_contiguous(c, want) : NULL;
    bp_status st = b ? compare(c, name, i, a, b) : c->diag.code;
    tensor_unref(a);
    tensor_unref(b);
    return st;
}

bp_status verify_outputs(bp_ctx *c, const bp_graph_module *gm, const char *name, bp_tensor *const *inputs,
                         uint32_t ninputs, bp_tensor *const *outputs, uint32_t noutputs)
{
    bp_tensor **want = calloc(noutputs + 1u, sizeof *want);
    if (!want)
        return ctx_nomem(c);
    bp_status st = graph_run(c, gm, inputs, ninputs, want, noutputs, NULL, NULL);
    for (uint32_t i = 0; !st && i < noutputs; i++)
        st = compare_tensors(c, name, i, outputs[i], want[i]);
    for (uint32_t i = 0; i < noutputs; i++)
        tensor_unref(want[i]);
    free(want);
    return st;
}
