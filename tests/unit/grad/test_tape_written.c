/* The tape and writes in place: history moves to what was written, views and bases know of each other, and what was
 * saved before a write is not read after it. */
#include "tests/unit/grad/fixture.h"

static bp_tensor *row(bp_tensor *t, int64_t i)
{
    return bp_select(c, t, 0, i);
}

/* -- whole tensors ------------------------------------------------------------------------------------------------- */

static void a_write_in_place_is_recorded(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2)), *y = bp_mul(c, x, F(3, 3));
    bp_add_inplace(c, y, x);
    assert_true(bp_tensor_requires_grad(y));
    BACKWARD(bp_sum(c, y));
    IS(GRAD(x), 4, 4);
    OK();
}

static void the_old_value_is_kept_where_the_derivative_reads_it(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2)), *w = leaf(F(5, 7)), *y = bp_add(c, x, F(1, 1));
    bp_mul_inplace(c, y, w);
    BACKWARD(bp_sum(c, y));
    IS(GRAD(x), 5, 7);
    IS(GRAD(w), 2, 3);
    OK();
}

static void the_old_value_keeps_its_history(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2)), *y = bp_mul(c, x, F(0.5f, 0.25f)), *first, *second;
    bp_sin_inplace(c, y);
    bp_tensor *s = bp_sum(c, y);
    assert_int_equal(bp_grad(c, &s, NULL, 1, &x, 1, &first, BP_CREATE_GRAPH), BP_OK);
    s = bp_sum(c, first);
    assert_int_equal(bp_grad(c, &s, NULL, 1, &x, 1, &second, 0), BP_OK);
    IS(second, -0.25f * sinf(0.5f), -0.0625f * sinf(0.5f));
    OK();
}

static void count_one(void *arg)
{
    ++*(int *)arg;
}

static bp_tensor *no_other(bp_ctx *ctx, bp_tensor *grad, void *arg)
{
    (void)ctx, (void)grad, (void)arg;
    return NULL;
}

static void a_write_of_what_was_computed_from_it_makes_no_circle(void **state)
{
    (void)state;
    int gone = 0;
    bp_scope_begin(c);
    bp_tensor *x = leaf(F(1, 2)), *y = bp_mul(c, x, F(3, 3));
    assert_true(bp_tensor_register_hook(c, y, no_other, &gone, count_one));
    bp_add_inplace(c, y, bp_mul(c, y, F(2, 2)));
    bp_add_inplace(c, y, bp_mul(c, y, y));
    bp_scope_end(c);
    assert_int_equal(gone, 1);
    OK();
}

static void a_written_result_is_read_as_written(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2)), *y = bp_add(c, x, F(0, 0)), *first, *second;
    bp_exp_inplace(c, y);
    bp_tensor *s = bp_sum(c, y);
    assert_int_equal(bp_grad(c, &s, NULL, 1, &x, 1, &first, BP_CREATE_GRAPH), BP_OK);
    IS(first, expf(1), expf(2));
    s = bp_sum(c, first);
    assert_int_equal(bp_grad(c, &s, NULL, 1, &x, 1, &second, 0), BP_OK);
    IS(second, expf(1), expf(2));
    OK();
}

static void a_saved_tensor_that_is_written_is_an_error(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2)), *y = bp_add(c, x, F(0, 0)), *z = bp_mul(c, y, y);
    bp_add_inplace(c, y, F(1, 1));
    BACKWARD(bp_sum(c, z));
    FAILS(BP_FAILED_PRECONDITION,
          "a tensor that \"mul.Tensor\" saved for backward was written in place: \"self\", f32[2], is at version 1, "
          "expected version 0");
    assert_null(GRAD(x));
}

static void a_saved_result_that_is_written_is_an_error(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2)), *y = bp_exp(c, x);
    bp_add_inplace(c, y, F(1, 1));
    BACKWARD(bp_sum(c, y));
    FAILS(BP_FAILED_PRECONDITION, "\"exp\" saved for backward was written in place: \"result\"");
}

static void a_write_through_detach_is_seen(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2)), *y = bp_mul(c, x, x), *z = bp_mul(c, y, y), *d = bp_detach(c, y);
    bp_zero_inplace(c, d);
    assert_false(bp_tensor_requires_grad(d));
    BACKWARD(bp_sum(c, z));
    FAILS(BP_FAILED_PRECONDITION, "\"mul.Tensor\" saved for backward was written in place");
}

static void what_is_not_read_may_be_written(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2)), *y = bp_add(c, x, F(0, 0)), *z = bp_add(c, y, y);
    bp_add_inplace(c, y, F(1, 1));
    BACKWARD(bp_sum(c, z));
    IS(GRAD(x), 2, 2);
    OK();
}

static void a_leaf_that_requires_grad_is_not_written(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2));
    bp_add_inplace(c, x, F(1, 1));
    FAILS(BP_INVALID_ARGUMENT, "a leaf that requires grad is written in place");
    bp_add_inplace(c, row(x, 0), F(1));
    bp_error_clear(c);
    bp_tensor *plain = F(1, 2), *view = row(plain, 0);
    leaf(plain);
    bp_mul_inplace(c, view, bp_sum(c, x));
    FAILS(BP_INVALID_ARGUMENT, "a view of a leaf that requires grad is written in place");
    bp_set_grad_enabled(c, 0);
    bp_add_inplace(c, x, F(1, 1));
    bp_set_grad_enabled(c, 1);
    OK();
    assert_true(bp_tensor_is_leaf(x));
    BACKWARD(bp_sum(c, bp_mul(c, x, x)));
    IS(GRAD(x), 4, 6);
}

static void a_tensor_without_history_gets_one_when_it_is_written(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2)), *y = F(10, 20);
    bp_mul_inplace(c, y, x);
    assert_true(bp_tensor_requires_grad(y));
    assert_false(bp_tensor_is_leaf(y));
    BACKWARD(bp_sum(c, y));
    IS(GRAD(x), 10, 20);
    assert_null(GRAD(y));
    OK();
}

static void what_is_overwritten_gets_no_gradient(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2)), *w = leaf(F(5, 6)), *y = bp_mul(c, x, x);
    bp_copy_inplace(c, y, w);
    BACKWARD(bp_sum(c, bp_mul(c, y, y)));
    IS(GRAD(w), 10, 12);
    OK();
    bp_tensor *z = bp_mul(c, x, x);
    bp_gt_inplace(c, z, 0);
    BACKWARD(bp_sum(c, z));
    OK();
    if (GRAD(x))
        IS(GRAD(x), 0, 0);
}

static void detach_in_place_makes_a_leaf(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2)), *y = bp_mul(c, x, x), *view = row(bp_mul(c, x, x), 0);
    bp_detach_inplace(c, y);
    assert_true(bp_tensor_is_leaf(y));
    leaf(y);
    BACKWARD(bp_sum(c, bp_mul(c, y, x)));
    IS(GRAD(y), 1, 2);
    IS(GRAD(x), 1, 4);
    OK();
    bp_detach_inplace(c, view);
    FAILS(BP_INVALID_ARGUMENT, "a view cannot be detached in place");
}

static void layouts_changed_in_place_are_recorded(void **state)
{
    (void)state;
    bp_tensor *x = leaf(M(2, 1, 2, 3, 4, 5, 6)), *y = bp_mul(c, x, x), *w = M(3, 1, 2, 3, 4, 5, 6);
    bp_t_inplace(c, y);
    BACKWARD(bp_sum(c, bp_mul(c, y, w)));
    OK();
    IS(GRAD(x), 2 * 1, 4 * 3, 6 * 5, 8 * 2, 10 * 4, 12 * 6);
    bp_resize_inplace(c, bp_mul(c, x, x), BP_DIMS(1));
    assert_int_not_equal(bp_error(c), BP_OK);
}

/* -- views --------------------------------------------------------------------------------------------------------- */

static void a_write_to_a_view_reaches_its_base(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2, 3)), *w = leaf(F(7)), *y = bp_mul(c, x, x);
    bp_tensor *view = bp_slice(c, y, .dim = 0, .start = BP_SCALAR(1), .end = BP_SCALAR(2));
    bp_mul_inplace(c, view, w);
    IS(y, 1, 28, 9);
    BACKWARD(bp_sum(c, bp_mul(c, y, F(1, 10, 100))));
    OK();
    IS(GRAD(x), 2, 10 * 7 * 4, 600);
    IS(GRAD(w), 10 * 4);
}

static void a_write_to_a_base_reaches_its_views(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2, 3)), *y = bp_mul(c, x, x), *view = row(y, 1);
    bp_mul_inplace(c, y, F(5, 6, 7));
    BACKWARD(view);
    OK();
    IS(GRAD(x), 0, 6 * 4, 0);
}

static void a_write_to_a_view_reaches_other_views(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(7)), *y = M(2, 1, 2, 3, 4), *a = row(y, 0), *b = bp_t(c, y), *late;
    assert_false(bp_tensor_requires_grad(b));
    bp_mul_inplace(c, a, x);
    assert_true(bp_tensor_requires_grad(y));
    assert_true(bp_tensor_requires_grad(b));
    late = row(y, 1);
    IS(b, 7, 3, 14, 4);
    bp_backward(c, bp_sum(c, bp_mul(c, b, M(2, 1, 10, 100, 1000))), NULL, BP_RETAIN_GRAPH);
    OK();
    IS(GRAD(x), 1 + 2 * 100);
    BACKWARD(bp_sum(c, late));
    IS(GRAD(x), 201); /* late is not what x was written to */
}

static void a_base_that_is_gone_is_still_written(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(3));
    bp_scope_begin(c);
    bp_tensor *y = F(1, 2, 4), *a = bp_keep(c, row(y, 0)), *b = bp_keep(c, bp_slice(c, y, .end = BP_SCALAR(2)));
    bp_scope_end(c);
    bp_mul_inplace(c, a, bp_select(c, x, 0, 0));
    BACKWARD(bp_sum(c, bp_mul(c, b, F(10, 100))));
    OK();
    IS(GRAD(x), 10);
    bp_tensor_unref(a);
    bp_tensor_unref(b);
}

static void a_view_of_a_view_is_written(void **state)
{
    (void)state;
    bp_tensor *x = leaf(M(2, 1, 2, 3, 4)), *w = leaf(F(5)), *y = bp_mul(c, x, x);
    bp_tensor *view = bp_select(c, bp_t(c, y), 0, 1), *one = bp_slice(c, view, .end = BP_SCALAR(1));
    bp_copy_inplace(c, one, w); /* y[0][1] */
    BACKWARD(bp_sum(c, bp_mul(c, y, M(2, 1, 10, 100, 1000))));
    OK();
    IS(GRAD(x), 2, 0, 600, 8000);
    IS(GRAD(w), 10);
}

static void writes_one_after_another_keep_their_order(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(2)), *y = F(1, 1, 1);
    for (int i = 0; i < 3; i++)
        bp_mul_inplace(c, bp_slice(c, y, .start = BP_SCALAR(i)), x);
    IS(y, 2, 4, 8);
    BACKWARD(bp_sum(c, y));
    OK();
    IS(GRAD(x), 1 + 4 + 12);
}

static void a_write_to_a_part_of_a_complex_tensor(void **state)
{
    (void)state;
    const float z[] = {1, 2, 3, 4};
    bp_tensor *x = leaf(F(5, 6)), *y = bp_tensor_from(c, BP_C64, 1, (const int64_t[]){2}, z);
    bp_copy_inplace(c, bp_select(c, bp_view_as_real(c, y), 1, 0), x);
    assert_true(bp_tensor_requires_grad(y));
    const float g[] = {10, 20, 30, 40};
    bp_backward(c, y, bp_tensor_from(c, BP_C64, 1, (const int64_t[]){2}, g), 0);
    OK();
    IS(GRAD(x), 10, 30);
}

static void views_given_together_are_not_written(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2)), *y = bp_mul(c, x, x);
    bp_tensors parts = bp_unbind(c, y);
    assert_int_equal(parts.n, 2);
    bp_mul_inplace(c, parts.at[0], bp_sum(c, x));
    FAILS(BP_INVALID_ARGUMENT, "one of several views that an operator gave together is written in place");
}

static void a_view_made_without_grad_mode_is_not_written_under_it(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2)), *y = bp_mul(c, x, x);
    bp_set_grad_enabled(c, 0);
    bp_tensor *view = row(y, 0);
    bp_set_grad_enabled(c, 1);
    bp_mul_inplace(c, view, bp_sum(c, x));
    FAILS(BP_INVALID_ARGUMENT, "a view that was made without grad mode is written in place");
    bp_tensor *plain = F(3, 4), *part = row(plain, 0);
    bp_mul_inplace(c, part, bp_sum(c, F(2)));
    OK();
    IS(plain, 6, 4);
}

static void a_write_to_a_view_is_an_error_for_what_saved_its_base(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2)), *y = bp_add(c, x, F(0, 0)), *z = bp_mul(c, y, y);
    bp_zero_inplace(c, row(y, 0));
    BACKWARD(bp_sum(c, z));
    FAILS(BP_FAILED_PRECONDITION, "is at version 1, expected version 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_write_in_place_is_recorded),
        T(the_old_value_is_kept_where_the_derivative_reads_it),
        T(the_old_value_keeps_its_history),
        T(a_write_of_what_was_computed_from_it_makes_no_circle),
        T(a_written_result_is_read_as_written),
        T(a_saved_tensor_that_is_written_is_an_error),
        T(a_saved_result_that_is_written_is_an_error),
        T(a_write_through_detach_is_seen),
        T(what_is_not_read_may_be_written),
        T(a_leaf_that_requires_grad_is_not_written),
        T(a_tensor_without_history_gets_one_when_it_is_written),
        T(what_is_overwritten_gets_no_gradient),
        T(detach_in_place_makes_a_leaf),
        T(layouts_changed_in_place_are_recorded),
        T(a_write_to_a_view_reaches_its_base),
        T(a_write_to_a_base_reaches_its_views),
        T(a_write_to_a_view_reaches_other_views),
        T(a_base_that_is_gone_is_still_written),
        T(a_view_of_a_view_is_written),
        T(writes_one_after_another_keep_their_order),
        T(a_write_to_a_part_of_a_complex_tensor),
        T(views_given_together_are_not_written),
        T(a_view_made_without_grad_mode_is_not_written_under_it),
        T(a_write_to_a_view_is_an_error_for_what_saved_its_base),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
