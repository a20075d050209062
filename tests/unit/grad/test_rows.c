/* Derivatives that no recorded gradient shows: what has none says why, what PyTorch answers otherwise, what must not be
 * saved, and calls of no elements. */
#include "tests/unit/grad/fixture.h"

/* -- without a derivative ------------------------------------------------------------------------------------------ */

static void an_operator_without_a_derivative_says_why(void **state)
{
    (void)state;
    bp_tensor *a = leaf(M(2, 1, 2, 3, 4));
    BACKWARD(bp_sum(c, bp_geqrf(c, a).at[0]));
    FAILS(BP_UNIMPLEMENTED, "there is no derivative of geqrf: ");
    BACKWARD(bp_sum(c, bp_scatter(c, a, 0, bp_zeros(c, BP_DIMS(1, 2), .dtype = BP_I64), M(1, 5, 6), .reduce = "add")));
    FAILS(BP_UNIMPLEMENTED, "scatter_reduce is what has a derivative");
}

static void modes_of_qr_that_have_none_name_the_one_that_has(void **state)
{
    (void)state;
    bp_tensor *a = leaf(M(3, 1, 2, 3, 4, 5, 7));
    BACKWARD(bp_sum(c, bp_linalg_qr(c, a, .mode = "r").at[1]));
    FAILS(BP_UNIMPLEMENTED, "use mode \"reduced\"");
    BACKWARD(bp_sum(c, bp_linalg_qr(c, a, .mode = "complete").at[0]));
    FAILS(BP_UNIMPLEMENTED, "mode \"complete\" has no derivative");
    assert_int_equal(BACKWARD(bp_sum(c, bp_linalg_qr(c, a).at[1])), BP_OK);
    assert_non_null(GRAD(a));
}

static void factors_beside_a_result_require_no_grad(void **state)
{
    (void)state;
    bp_tensor *a = leaf(M(2, 2, 1, 1, 3));
    bp_tensor3 det = bp_aten_private_linalg_det_default(c, a);
    bp_tensor4 log = bp_aten_private_linalg_slogdet_default(c, a);
    OK();
    assert_true(bp_tensor_requires_grad(det.at[0]));
    assert_false(bp_tensor_requires_grad(det.at[1]));
    assert_true(bp_tensor_requires_grad(log.at[1]));
    assert_false(bp_tensor_requires_grad(log.at[2]));
}

/* -- where PyTorch's answer is another ----------------------------------------------------------------------------- */

static void what_is_overwritten_by_strides_gets_nothing(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2, 3, 4)), *src = leaf(F(5, 6));
    bp_tensor *y = bp_as_strided_scatter(c, x, src, BP_DIMS(2), BP_DIMS(2), .storage_offset = BP_SCALAR(1));
    assert_int_equal(bp_backward(c, y, F(10, 20, 30, 40), 0), BP_OK);
    IS(GRAD(x), 10, 0, 30, 0);
    IS(GRAD(src), 20, 40);
}

static void the_gradient_of_a_singular_matrixs_determinant_is_finite(void **state)
{
    (void)state;
    bp_tensor *a = leaf(M(2, 1, 2, 2, 4));
    BACKWARD(bp_det(c, a));
    OK();
    assert_true(isfinite(bp_item(c, bp_sum(c, GRAD(a))).v.f[0]));
}

/* -- what is saved ------------------------------------------------------------------------------------------------- */

static bp_tensor *normalized(bp_tensor *x, bp_tensor *mean, bp_tensor *var, int training)
{
    return bp_native_batch_norm(c, x, NULL, NULL, mean, var, training, 0.5, 0).at[0];
}

static void statistics_may_move_on_before_backward(void **state)
{
    (void)state;
    bp_tensor *x = leaf(M(2, 1, 10, 3, 30)), *mean = F(0, 0), *var = F(1, 1);
    bp_tensor *first = normalized(x, mean, var, 1), *second = normalized(x, mean, var, 1);
    BACKWARD(bp_sum(c, bp_mul(c, bp_add(c, first, second), M(2, 1, 1, 1, 1))));
    OK();
    IS(GRAD(x), 0, 0, 0, 0);
    IS(mean, 1.5f, 15);
}

static void statistics_that_were_used_must_stay(void **state)
{
    (void)state;
    bp_tensor *x = leaf(M(2, 1, 2, 3, 4)), *mean = F(0, 0), *var = F(1, 4);
    bp_tensor *y = normalized(x, mean, var, 0);
    bp_mul_inplace(c, var, 2);
    BACKWARD(bp_sum(c, y));
    FAILS(BP_FAILED_PRECONDITION, "\"running_var\"");
}

/* -- no elements --------------------------------------------------------------------------------------------------- */

static void gradients_of_nothing_are_empty_or_zero(void **state)
{
    (void)state;
    bp_tensor *x = leaf(bp_zeros(c, BP_DIMS(0, 3))), *v = leaf(F(1, 2, 3));
    BACKWARD(bp_sum(c, bp_mm(c, x, bp_reshape(c, v, BP_DIMS(3, 1)))));
    OK();
    assert_int_equal(bp_tensor_numel(GRAD(x)), 0);
    IS(GRAD(v), 0, 0, 0);
    bp_tensor *none = leaf(bp_zeros(c, BP_DIMS(0))), *w = leaf(M(1, 1, 2));
    BACKWARD(bp_sum(c, bp_cat(c, BP_TENSORS(none, w), .dim = 0)));
    OK();
    IS(GRAD(w), 1, 1);
    bp_tensor *u = leaf(F(1, 2));
    BACKWARD(bp_sum(c, bp_repeat(c, u, BP_DIMS(0))));
    OK();
    IS(GRAD(u), 0, 0);
    bp_tensor *s = leaf(F(1, 2)), *index = bp_zeros(c, BP_DIMS(0), .dtype = BP_I64);
    BACKWARD(bp_sum(c, bp_index_select(c, s, 0, index)));
    OK();
    IS(GRAD(s), 0, 0);
}

static void numbers_without_dimensions_are_selected_and_gathered(void **state)
{
    (void)state;
    bp_tensor *x = leaf(bp_sum(c, F(7))), *index = bp_zeros(c, BP_DIMS(1), .dtype = BP_I64);
    BACKWARD(bp_sum(c, bp_mul(c, bp_index_select(c, x, 0, index), F(2))));
    OK();
    IS(GRAD(x), 2);
    bp_tensor *y = leaf(bp_detach(c, x));
    BACKWARD(bp_sum(c, bp_gather(c, y, 0, bp_sum(c, index, .dtype = BP_I64))));
    OK();
    IS(GRAD(y), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(an_operator_without_a_derivative_says_why),
        T(modes_of_qr_that_have_none_name_the_one_that_has),
        T(factors_beside_a_result_require_no_grad),
        T(what_is_overwritten_by_strides_gets_nothing),
        T(the_gradient_of_a_singular_matrixs_determinant_is_finite),
        T(statistics_may_move_on_before_backward),
        T(statistics_that_were_used_must_stay),
        T(gradients_of_nothing_are_empty_or_zero),
        T(numbers_without_dimensions_are_selected_and_gathered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
