/* Derivatives of Fourier transforms: the adjoint of a transform is the one backwards, with the same factor. Of half a
 * spectrum, what the other half would have given is accounted for. */
#include "host/grad/write.h"

bp_status derive_fft_c2c(bp_ctx *c, grad_call *g)
{
    grad_give(g, "self", GRAD_OP(c, private_fft_c2c_default, value_tensor(g->grads[0]), *grad_value(g, "dim"),
                                 *grad_value(g, "normalization"), value_bool(!grad_arg_bool(g, "forward"))));
    return grad_done(c);
}

/* A half is the whole with zeros behind: its transform backwards is computed, its real part is the gradient. */
bp_status derive_fft_r2c(bp_ctx *c, grad_call *g)
{
    bp_tensor *self = grad_tensor(g, "self"), *grad = g->grads[0];
    bp_dims dims = grad_arg_dims(c, g, "dim");
    int64_t last = dims.n ? dims.at[dims.n - 1].value : -1;
    if (grad_arg_bool(g, "onesided") && dims.n) {
        uint32_t d = (uint32_t)layout_wrap_dim(c, last, grad_rank(grad));
        bp_dim pad[2 * TENSOR_MAX_RANK] = {{0, 0, 0}};
        uint32_t n = 2 * (grad_rank(grad) - d);
        if (ctx_ok(c))
            pad[n - 1] = dim_sub(c, grad_size(self, (int32_t)d), grad_size(grad, (int32_t)d));
        grad = bp_aten_constant_pad_nd_default(c, grad, (bp_dims){pad, n, 1}, bp_scalar_int(0));
    }
    bp_tensor *back = bp_aten_private_fft_c2c_default(c, grad, dims, grad_arg_int(c, g, "normalization"), 0);
    grad_give(g, "self", grad_real(c, back));
    return grad_done(c);
}

/* Each element of the half but the first, and of an even length the last, stands for two of the whole. */
bp_status derive_fft_c2r(bp_ctx *c, grad_call *g)
{
    bp_dims dims = grad_arg_dims(c, g, "dim");
    int64_t last = dims.n ? dims.at[dims.n - 1].value : -1;
    bp_tensor *half = bp_aten_private_fft_r2c_default(c, g->grads[0], dims, grad_arg_int(c, g, "normalization"), 1);
    bp_dim n = grad_size(g->grads[0], (int32_t)last), one = bp_dim_of(1);
    bp_dim twice = dim_sub(c, n, grad_size(half, (int32_t)last));
    if (dim_above(twice, 0) && half) {
        bp_scalar end = bp_scalar_dim(dim_add(c, one, twice));
        bp_tensor *inner = bp_aten_slice_tensor(c, half, last, bp_scalar_int(1), end, one);
        inner = bp_aten_mul_scalar(c, inner, bp_scalar_int(2));
        half = bp_aten_slice_scatter_default(c, half, inner, last, bp_scalar_int(1), end, one);
    }
    grad_give(g, "self", half);
    return grad_done(c);
}
