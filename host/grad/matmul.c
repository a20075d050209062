/* Derivatives of matrix products: each factor gets the gradient times the adjoint of the other. */
#include "host/grad/write.h"

/* Gradients of the factors `a` and `b` of a product whose gradient is grad, each times the conjugate of alpha. */
static void give_factors(bp_ctx *c, grad_call *g, bp_tensor *grad, const char *a, const char *b, bp_scalar alpha)
{
    bool batched = grad_rank(grad) == 3;
    bp_tensor *(*product)(bp_ctx *, bp_tensor *, bp_tensor *) = batched ? bp_aten_bmm_default : bp_aten_mm_default;
    if (grad_needs(g, a))
        grad_give(g, a, grad_times(c, product(c, grad, grad_mh(c, grad_tensor(g, b))), alpha));
    if (grad_needs(g, b))
        grad_give(g, b, grad_times(c, product(c, grad_mh(c, grad_tensor(g, a)), grad), alpha));
}

/* What was added to the product. */
static void give_added(bp_ctx *c, grad_call *g)
{
    if (grad_needs(g, "self"))
        grad_give(g, "self", grad_times(c, g->grads[0], grad_arg_scalar(g, "beta")));
}

bp_status derive_mm(bp_ctx *c, grad_call *g)
{
    give_factors(c, g, g->grads[0], "self", "mat2", bp_scalar_int(1));
    return grad_done(c);
}

bp_status derive_addmm(bp_ctx *c, grad_call *g)
{
    give_added(c, g);
    give_factors(c, g, g->grads[0], "mat1", "mat2", grad_arg_scalar(g, "alpha"));
    return grad_done(c);
}

bp_status derive_baddbmm(bp_ctx *c, grad_call *g)
{
    give_added(c, g);
    give_factors(c, g, g->grads[0], "batch1", "batch2", grad_arg_scalar(g, "alpha"));
    return grad_done(c);
}

/* Each product of the batch gets the gradient of their sum. */
bp_status derive_addbmm(bp_ctx *c, grad_call *g)
{
    bp_dim sizes[3] = {grad_size(grad_tensor(g, "batch1"), 0), grad_size(g->grads[0], 0), grad_size(g->grads[0], 1)};
    give_added(c, g);
    bp_tensor *each = bp_aten_expand_default(c, g->grads[0], (bp_dims){sizes, 3, 1}, 0);
    give_factors(c, g, each, "batch1", "batch2", grad_arg_scalar(g, "alpha"));
    return grad_done(c);
}

static void give_mv(bp_ctx *c, grad_call *g, const char *mat, bp_scalar alpha)
{
    if (grad_needs(g, mat)) {
        bp_tensor *row = bp_aten_unsqueeze_default(c, grad_conj(c, grad_tensor(g, "vec")), 0);
        bp_tensor *outer = grad_mul(c, bp_aten_unsqueeze_default(c, g->grads[0], 1), row);
        grad_give(g, mat, grad_times(c, outer, alpha));
    }
    if (grad_needs(g, "vec")) {
        bp_tensor *back = bp_aten_mv_default(c, grad_mh(c, grad_tensor(g, mat)), g->grads[0]);
        grad_give(g, "vec", grad_times(c, back, alpha));
    }
}

bp_status derive_mv(bp_ctx *c, grad_call *g)
{
    give_mv(c, g, "self", bp_scalar_int(1));
    return grad_done(c);
}

bp_status derive_addmv(bp_ctx *c, grad_call *g)
{
    give_added(c, g);
    give_mv(c, g, "mat", grad_arg_scalar(g, "alpha"));
    return grad_done(c);
}

bp_status derive_dot(bp_ctx *c, grad_call *g)
{
    if (grad_needs(g, "self"))
        grad_give(g, "self", grad_mul(c, g->grads[0], grad_conj(c, grad_tensor(g, "tensor"))));
    if (grad_needs(g, "tensor"))
        grad_give(g, "tensor", grad_mul(c, g->grads[0], grad_conj(c, grad_tensor(g, "self"))));
    return grad_done(c);
}

bp_status derive_addr(bp_ctx *c, grad_call *g)
{
    bp_tensor *grad = g->grads[0];
    bp_scalar alpha = grad_arg_scalar(g, "alpha");
    give_added(c, g);
    if (grad_needs(g, "vec1"))
        grad_give(g, "vec1",
                  grad_times(c, bp_aten_mv_default(c, grad, grad_conj(c, grad_tensor(g, "vec2"))), alpha));
    if (grad_needs(g, "vec2"))
        grad_give(g, "vec2",
                  grad_times(c, bp_aten_mv_default(c, grad_mt(c, grad), grad_conj(c, grad_tensor(g, "vec1"))), alpha));
    return grad_done(c);
}

bp_status derive_cross(bp_ctx *c, grad_call *g)
{
    int64_t dim = grad_arg_int(c, g, "dim");
    if (grad_needs(g, "self"))
        grad_give(g, "self", bp_aten_linalg_cross_default(c, grad_conj(c, grad_tensor(g, "other")), g->grads[0], dim));
    if (grad_needs(g, "other"))
        grad_give(g, "other", bp_aten_linalg_cross_default(c, g->grads[0], grad_conj(c, grad_tensor(g, "self")), dim));
    return grad_done(c);
}

/* -- three factors ------------------------------------------------------------------------------------------------- */

/* The form is symmetric: with the gradient in a factor's place, expanded where the result lacks dimensions, it sums
 * over what the factor lacks. */
bp_status derive_trilinear(bp_ctx *c, grad_call *g)
{
    static const char *const factor[3] = {"i1", "i2", "i3"}, *const expand[3] = {"expand1", "expand2", "expand3"};
    for (int i = 0; i < 3; i++) {
        bp_value args[7];
        if (!grad_needs(g, factor[i]))
            continue;
        for (int k = 0; k < 3; k++) {
            args[k] = k == i ? value_tensor(g->grads[0]) : *grad_value(g, factor[k]);
            args[3 + k] = *grad_value(g, k == i ? "sumdim" : expand[k]);
        }
        args[6] = *grad_value(g, expand[i]);
        grad_give(g, factor[i], grad_op(c, ROW_private_trilinear_default, 7, args));
    }
    return grad_done(c);
}

/* -- attention ----------------------------------------------------------------------------------------------------- */

bp_status derive_flash_attention(bp_ctx *c, grad_call *g)
{
    static const char *const into[3] = {"query", "key", "value"};
    bp_value args[10] = {value_tensor(g->grads[0]), *grad_value(g, "query"), *grad_value(g, "key"),
                         *grad_value(g, "value"), value_tensor(g->results[0]), value_tensor(g->results[1]),
                         *grad_value(g, "dropout_p"), *grad_value(g, "is_causal"), *grad_value(g, "attn_mask"),
                         *grad_value(g, "scale")};
    bp_tensor *out[3];
    grad_op_all(c, ROW_private_scaled_dot_product_flash_attention_for_cpu_backward_default, 10, args, out, 3);
    for (int i = 0; i < 3; i++)
        if (grad_needs(g, into[i]))
            grad_give(g, into[i], out[i]);
    return grad_done(c);
}

/* -- groups of rows ------------------------------------------------------------------------------------------------ */

/* Which rows belong to which group: (groups, rows, 1). */
static bp_tensor *members(bp_ctx *c, bp_tensor *ends, bp_dim rows)
{
    bp_tensor *row = bp_aten_arange_default(c, bp_scalar_dim(rows), BP_I64, 0, tensor_device(ends), (bp_scalar){0});
    bp_tensor *before = bp_aten_lt_tensor(c, row, bp_aten_unsqueeze_default(c, ends, -1));
    bp_tensor *none = bp_aten_zeros_default(c, BP_DIMS(1, rows), BP_BOOL, 0, tensor_device(ends), (bp_scalar){0});
    bp_tensor *earlier = bp_aten_cat_default(c, BP_TENSORS(none, grad_slice(c, before, 0, 0, -1)), 0);
    bp_tensor *own = bp_aten_logical_and_default(c, before, bp_aten_logical_not_default(c, earlier));
    return bp_aten_unsqueeze_default(c, own, -1);
}

bp_status derive_grouped_mm(bp_ctx *c, grad_call *g)
{
    bp_tensor *grad = g->grads[0], *input = grad_tensor(g, "input"), *ends = grad_tensor(g, "offs");
    if (grad_needs(g, "input"))
        grad_give(g, "input", GRAD_OP(c, transformers_grouped_mm_fallback_default, value_tensor(grad),
                                      value_tensor(grad_mh(c, grad_tensor(g, "weight"))), value_tensor(ends)));
    if (grad_needs(g, "weight") && !dim_is(grad_size(ends, 0), 0)) {
        bp_tensor *own = bp_aten_where_scalarother(c, members(c, ends, grad_size(input, 0)), grad, bp_scalar_int(0));
        grad_give(g, "weight", grad_mm(c, grad_mh(c, input), own));
    }
    return grad_done(c);
}
