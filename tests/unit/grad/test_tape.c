/* The tape: gradients of small programs, where they go, what is refused. */
#include "tests/unit/grad/fixture.h"
#include <pthread.h>

/* -- leaves -------------------------------------------------------------------------------------------------------- */

static void gradients_are_added_to_leaves(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2, 3)), *y = leaf(F(4, 5, 6)), *z = F(7, 8, 9);
    bp_tensor *loss = bp_sum(c, bp_add(c, bp_mul(c, x, y), z));
    OK();
    assert_true(bp_tensor_requires_grad(loss));
    assert_false(bp_tensor_is_leaf(loss));
    assert_int_equal(bp_backward(c, loss, NULL, BP_RETAIN_GRAPH), BP_OK);
    IS(GRAD(x), 4, 5, 6);
    IS(GRAD(y), 1, 2, 3);
    assert_null(GRAD(z));
    assert_int_equal(BACKWARD(loss), BP_OK);
    IS(GRAD(x), 8, 10, 12);
    OK();
}

static void a_broadcast_input_gets_the_sum(void **state)
{
    (void)state;
    bp_tensor *x = leaf(M(2, 1, 2)), *y = leaf(F(1, 10, 100));
    BACKWARD(bp_sum(c, bp_mul(c, x, y)));
    IS(GRAD(x), 111, 111);
    assert_int_equal(bp_tensor_rank(GRAD(x)), 2);
    IS(GRAD(y), 3, 3, 3);
    OK();
}

static void a_narrower_input_gets_its_own_type(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2)), *y = bp_tensor_from(c, BP_F64, 1, (const int64_t[]){2}, (const double[]){3, 4});
    BACKWARD(bp_sum(c, bp_mul(c, x, y)));
    assert_int_equal(bp_tensor_dtype(GRAD(x)), BP_F32);
    IS(GRAD(x), 3, 4);
    OK();
}

static void a_real_input_gets_the_real_part(void **state)
{
    (void)state;
    const float z[] = {1, 2, 3, 4}, g[] = {1, 0, 0, 1};
    bp_tensor *x = leaf(F(1, 2)), *y = leaf(bp_tensor_from(c, BP_C64, 1, (const int64_t[]){2}, z));
    bp_tensor *grad = bp_tensor_from(c, BP_C64, 1, (const int64_t[]){2}, g);
    bp_backward(c, bp_mul(c, x, y), grad, 0);
    IS(GRAD(x), 1, 4); /* Re(grad conj(y)) */
    float got[4];
    assert_int_equal(bp_tensor_read(c, GRAD(y), got, sizeof got), BP_OK);
    assert_true(got[0] == 1 && got[1] == 0 && got[2] == 0 && got[3] == 2);
    OK();
}

static void an_input_used_twice_gets_both(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2, 3));
    BACKWARD(bp_sum(c, bp_mul(c, x, x)));
    IS(GRAD(x), 2, 4, 6);
    bp_tensor *y = leaf(F(1, 2)), *w = bp_mul(c, y, y);
    BACKWARD(bp_sum(c, bp_add(c, bp_mul(c, w, y), w)));
    IS(GRAD(y), 3 + 2, 12 + 4);
    OK();
}

static void a_products_gradients_are_products(void **state)
{
    (void)state;
    bp_tensor *a = leaf(M(2, 1, 2, 3, 4)), *b = leaf(M(2, 5, 6, 7, 8));
    BACKWARD(bp_sum(c, bp_mm(c, a, b)));
    IS(GRAD(a), 11, 15, 11, 15);
    IS(GRAD(b), 4, 4, 6, 6);
    OK();
}

static void the_first_grad_is_kept_and_later_ones_are_added_in_place(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2));
    BACKWARD(bp_sum(c, bp_mul(c, x, x)));
    bp_tensor *seen = GRAD(x);
    BACKWARD(bp_sum(c, bp_mul(c, x, x)));
    assert_ptr_equal(GRAD(x), seen);
    IS(seen, 4, 8);
    assert_int_equal(bp_tensor_set_grad(c, x, NULL), BP_OK);
    assert_null(GRAD(x));
    IS(seen, 4, 8);
    OK();
}

static void a_grad_that_the_caller_holds_is_copied(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2)), *g = F(5, 6);
    bp_backward(c, bp_add(c, x, F(0, 0)), g, 0);
    assert_ptr_not_equal(GRAD(x), g);
    assert_false(bp_tensor_same_storage(GRAD(x), g));
    IS(GRAD(x), 5, 6);
    OK();
}

static void a_grad_is_laid_out_as_its_leaf(void **state)
{
    (void)state;
    bp_tensor *x = leaf(bp_clone(c, bp_t(c, M(2, 1, 2, 3, 4, 5, 6))));
    assert_int_equal(bp_tensor_stride(x, 0), 1);
    bp_backward(c, bp_add(c, x, x), floats(2, (const int64_t[]){3, 2}, (const float[]){1, 2, 3, 4, 5, 6}), 0);
    assert_int_equal(bp_tensor_stride(GRAD(x), 0), 1);
    IS(GRAD(x), 2, 4, 6, 8, 10, 12);
    OK();
}

static void a_grad_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2));
    bp_tensor_set_grad(c, x, F(1, 2, 3));
    FAILS(BP_INVALID_ARGUMENT, "a grad of f32[3] cannot be that of f32[2]");
    bp_tensor_set_grad(c, x, F(7, 8));
    BACKWARD(bp_sum(c, bp_mul(c, x, x)));
    IS(GRAD(x), 9, 12);
    OK();
}

/* -- where backward begins ----------------------------------------------------------------------------------------- */

static void backward_begins_with_one_number_or_with_a_gradient(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2)), *y = bp_mul(c, x, x);
    BACKWARD(y);
    FAILS(BP_INVALID_ARGUMENT, "gradients begin with a single number, tensor 0 is f32[2]");
    bp_backward(c, y, F(1, 2, 3), 0);
    FAILS(BP_INVALID_ARGUMENT, "gradient 0 is f32[3], and belongs to f32[2]");
    bp_backward(c, F(1), NULL, 0);
    FAILS(BP_INVALID_ARGUMENT, "does not require grad");
    bp_backward(c, NULL, NULL, 0);
    FAILS(BP_INVALID_ARGUMENT, "the tensor is NULL");
    bp_backward(c, y, F(10, 100), 0);
    IS(GRAD(x), 20, 400);
    OK();
}

static void backward_of_a_leaf_is_its_own_gradient(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(3));
    BACKWARD(x);
    IS(GRAD(x), 1);
    OK();
}

static void several_roots_go_back_together(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2)), *w = bp_mul(c, x, x), *roots[] = {bp_sum(c, w), bp_sum(c, bp_mul(c, w, x))};
    assert_int_equal(bp_backward_all(c, roots, NULL, 2, 0), BP_OK);
    IS(GRAD(x), 2 + 3, 4 + 12);
    OK();
}

/* -- grad ---------------------------------------------------------------------------------------------------------- */

static void grad_leaves_dot_grad_alone(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2)), *y = leaf(F(3, 4)), *w = bp_mul(c, x, y), *loss = bp_sum(c, bp_mul(c, w, w));
    bp_tensor *in[] = {w, x}, *out[2];
    assert_int_equal(bp_grad(c, &loss, NULL, 1, in, 2, out, 0), BP_OK);
    IS(out[0], 6, 16);
    IS(out[1], 18, 64);
    assert_null(GRAD(x));
    assert_null(GRAD(y));
    OK();
}

static void an_unused_input_is_an_error_unless_it_is_allowed(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1)), *y = leaf(F(2)), *loss = bp_mul(c, x, x), *in[] = {x, y}, *out[2];
    bp_grad(c, &loss, NULL, 1, in, 2, out, BP_RETAIN_GRAPH);
    FAILS(BP_INVALID_ARGUMENT, "no gradient flows to input 1");
    assert_null(out[0]);
    assert_int_equal(bp_grad(c, &loss, NULL, 1, in, 2, out, BP_ALLOW_UNUSED), BP_OK);
    IS(out[0], 2);
    assert_null(out[1]);
    bp_tensor *z = F(3);
    bp_grad(c, &loss, NULL, 1, &z, 1, out, 0);
    FAILS(BP_INVALID_ARGUMENT, "input 0, f32[1], does not require grad");
}

static void grad_of_a_root_is_what_was_given(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2)), *y = bp_mul(c, x, x), *g = F(5, 7), *out[2], *in[] = {y, x};
    assert_int_equal(bp_grad(c, &y, &g, 1, in, 2, out, 0), BP_OK);
    IS(out[0], 5, 7);
    IS(out[1], 10, 28);
    OK();
}

static void gradients_can_be_differentiated(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(2, 3)), *y = bp_sum(c, bp_mul(c, bp_mul(c, x, x), x)), *first, *second, *third;
    assert_int_equal(bp_grad(c, &y, NULL, 1, &x, 1, &first, BP_CREATE_GRAPH), BP_OK);
    IS(first, 12, 27);
    assert_true(bp_tensor_requires_grad(first));
    bp_tensor *s = bp_sum(c, first);
    assert_int_equal(bp_grad(c, &s, NULL, 1, &x, 1, &second, BP_CREATE_GRAPH), BP_OK);
    IS(second, 12, 18);
    s = bp_sum(c, second);
    assert_int_equal(bp_grad(c, &s, NULL, 1, &x, 1, &third, 0), BP_OK);
    IS(third, 6, 6);
    assert_false(bp_tensor_requires_grad(third));
    OK();
}

static void a_saved_result_gets_its_history_back(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2)), *y = bp_sum(c, bp_exp(c, x)), *first, *second;
    assert_int_equal(bp_grad(c, &y, NULL, 1, &x, 1, &first, BP_CREATE_GRAPH), BP_OK);
    bp_tensor *s = bp_sum(c, bp_mul(c, first, first));
    assert_int_equal(bp_grad(c, &s, NULL, 1, &x, 1, &second, 0), BP_OK);
    IS(second, 2 * expf(2), 2 * expf(4));
    OK();
}

/* -- what is freed, what is not recorded --------------------------------------------------------------------------- */

static void a_second_backward_says_that_the_first_freed(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2)), *loss = bp_sum(c, bp_mul(c, x, x));
    assert_int_equal(BACKWARD(loss), BP_OK);
    BACKWARD(loss);
    FAILS(BP_FAILED_PRECONDITION, "backward goes through \"mul.Tensor\" a second time");
    IS(GRAD(x), 2, 4);
}

static void what_saves_nothing_may_go_back_again(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2)), *loss = bp_sum(c, bp_add(c, x, x));
    BACKWARD(loss);
    BACKWARD(loss);
    IS(GRAD(x), 4, 4);
    OK();
}

static void nothing_is_recorded_without_grad_mode(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2));
    int on = bp_set_grad_enabled(c, 0);
    bp_tensor *y = bp_mul(c, x, x);
    bp_set_grad_enabled(c, on);
    assert_false(bp_tensor_requires_grad(y));
    assert_true(bp_tensor_is_leaf(y));
    bp_set_inference_mode(c, 1);
    bp_tensor *z = bp_mul(c, x, x);
    bp_set_inference_mode(c, 0);
    assert_false(bp_tensor_requires_grad(z));
    bp_tensor *w = bp_mul(c, bp_add(c, y, z), x);
    BACKWARD(bp_sum(c, w));
    IS(GRAD(x), 2, 8);
    OK();
}

static void detach_cuts(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2)), *y = bp_mul(c, x, x), *d = bp_detach(c, y);
    assert_false(bp_tensor_requires_grad(d));
    assert_true(bp_tensor_same_storage(d, y));
    BACKWARD(bp_sum(c, bp_mul(c, d, x)));
    IS(GRAD(x), 1, 4);
    OK();
}

/* -- composites ---------------------------------------------------------------------------------------------------- */

static void a_composite_is_differentiated_by_its_parts(void **state)
{
    (void)state;
    bp_tensor *x = leaf(M(1, 1, 2)), *w = leaf(M(2, 1, 2, 3, 4)), *b = leaf(F(5, 6));
    bp_tensor *y = bp_linear(c, x, w, .bias = b);
    OK();
    IS(y, 10, 17);
    BACKWARD(bp_sum(c, bp_mul(c, y, y)));
    OK();
    IS(GRAD(b), 20, 34);
    IS(GRAD(w), 20, 40, 34, 68);
    IS(GRAD(x), 20 + 3 * 34, 40 + 4 * 34);
}

static void a_composite_in_place_may_read_what_it_overwrites(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2)), *w = leaf(F(5, 7)), *y = bp_add(c, x, F(1, 1));
    bp_multiply_inplace(c, y, w);
    IS(y, 10, 21);
    BACKWARD(bp_sum(c, y));
    OK();
    IS(GRAD(x), 5, 7);
    IS(GRAD(w), 2, 3);
}

static void a_composite_layout_in_place_is_recorded(void **state)
{
    (void)state;
    bp_tensor *x = leaf(M(2, 1, 2, 3, 4, 5, 6)), *y = bp_mul(c, x, x);
    bp_swapaxes_inplace(c, y, 0, 1);
    OK();
    assert_int_equal(bp_tensor_size(y, 0), 3);
    BACKWARD(bp_sum(c, bp_mul(c, y, M(3, 1, 2, 3, 4, 5, 6))));
    OK();
    IS(GRAD(x), 2 * 1, 4 * 3, 6 * 5, 8 * 2, 10 * 4, 12 * 6);
}

static void an_argument_that_comes_back_keeps_its_history(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2)), *y = bp_contiguous(c, x);
    assert_ptr_equal(y, x);
    assert_true(bp_tensor_is_leaf(x));
    BACKWARD(bp_sum(c, bp_mul(c, bp_reshape(c, y, BP_DIMS(2)), y)));
    OK();
    IS(GRAD(x), 2, 4);
}

/* -- hooks --------------------------------------------------------------------------------------------------------- */

static int calls, destroyed;

static bp_tensor *twice(bp_ctx *ctx, bp_tensor *grad, void *arg)
{
    calls += *(int *)arg;
    return bp_add(ctx, grad, grad);
}

static bp_tensor *look(bp_ctx *ctx, bp_tensor *grad, void *arg)
{
    (void)ctx;
    (void)grad;
    calls += *(int *)arg;
    return NULL;
}

static bp_tensor *shrink(bp_ctx *ctx, bp_tensor *grad, void *arg)
{
    (void)arg;
    return bp_sum(ctx, grad);
}

static void behind(bp_ctx *ctx, bp_tensor *t, void *arg)
{
    float got[2] = {0};
    calls += *(int *)arg;
    bp_tensor_read(ctx, bp_tensor_grad(ctx, t), got, sizeof got);
    assert_true(got[0] > 0);
}

static void gone(void *arg)
{
    (void)arg;
    destroyed++;
}

static void hooks_see_and_replace_whole_gradients(void **state)
{
    (void)state;
    int one = 1, ten = 10;
    calls = 0;
    bp_tensor *x = leaf(F(1, 2)), *y = bp_mul(c, x, x);
    assert_int_not_equal(bp_tensor_register_hook(c, y, twice, &one, NULL), 0);
    assert_int_not_equal(bp_tensor_register_hook(c, x, look, &ten, NULL), 0);
    BACKWARD(bp_sum(c, bp_add(c, y, y)));
    IS(GRAD(x), 8, 16);
    assert_int_equal(calls, 11);
    OK();
}

static void a_removed_hook_is_silent_and_destroyed(void **state)
{
    (void)state;
    int one = 1;
    calls = destroyed = 0;
    bp_tensor *x = leaf(F(1, 2));
    uint64_t id = bp_tensor_register_hook(c, x, twice, &one, gone);
    assert_int_equal(bp_tensor_remove_hook(c, x, id), BP_OK);
    assert_int_equal(destroyed, 1);
    BACKWARD(bp_sum(c, bp_mul(c, x, x)));
    IS(GRAD(x), 2, 4);
    assert_int_equal(calls, 0);
    bp_tensor_remove_hook(c, x, id);
    FAILS(BP_NOT_FOUND, "has no hook");
    bp_scope_begin(c);
    bp_tensor *z = bp_mul(c, x, x);
    bp_tensor_register_hook(c, z, look, &one, gone);
    bp_scope_end(c);
    assert_int_equal(destroyed, 2);
}

static void a_hook_behind_accumulation_sees_the_sum(void **state)
{
    (void)state;
    int one = 1;
    calls = 0;
    bp_tensor *x = leaf(F(1, 2)), *y = bp_mul(c, x, x);
    assert_int_not_equal(bp_tensor_register_post_accumulate_hook(c, x, behind, &one, NULL), 0);
    assert_int_equal(bp_tensor_register_post_accumulate_hook(c, y, behind, &one, gone), 0);
    FAILS(BP_INVALID_ARGUMENT, "which is no leaf");
    BACKWARD(bp_sum(c, bp_add(c, y, x)));
    assert_int_equal(calls, 1);
    OK();
}

static void a_hook_that_gives_another_shape_is_an_error(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2)), *y = bp_mul(c, x, x);
    bp_tensor_register_hook(c, y, shrink, NULL, NULL);
    BACKWARD(bp_sum(c, y));
    FAILS(BP_INVALID_ARGUMENT, "a hook replaced a gradient of f32[2] by one of f32[]");
    assert_null(GRAD(x));
    bp_tensor_register_hook(c, F(1), shrink, NULL, NULL);
    FAILS(BP_INVALID_ARGUMENT, "does not require grad");
}

/* A hook that runs backward of the same graph again. */
static bp_tensor *again(bp_ctx *ctx, bp_tensor *grad, void *arg)
{
    (void)grad;
    if (calls++ == 0)
        bp_backward(ctx, arg, NULL, BP_RETAIN_GRAPH);
    return NULL;
}

static void a_hook_may_run_backward_itself(void **state)
{
    (void)state;
    calls = 0;
    bp_tensor *x = leaf(F(1, 2)), *y = bp_mul(c, x, x), *loss = bp_sum(c, y);
    bp_tensor_register_hook(c, y, again, loss, NULL);
    bp_backward(c, loss, NULL, BP_RETAIN_GRAPH);
    IS(GRAD(x), 4, 8);
    assert_int_equal(calls, 2);
    OK();
}

/* -- size ---------------------------------------------------------------------------------------------------------- */

static void a_chain_of_a_million_nodes_takes_no_stack(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1)), *one = F(0), *t = bp_keep(c, bp_add(c, x, one));
    for (int i = 0; i < 1000000; i++) {
        bp_scope_begin(c);
        bp_tensor *next = bp_keep(c, bp_add(c, t, one));
        bp_scope_end(c);
        bp_tensor_unref(t);
        t = next;
    }
    OK();
    assert_int_equal(BACKWARD(t), BP_OK);
    IS(GRAD(x), 1);
    bp_tensor_unref(t);
    OK();
}

/* -- threads ------------------------------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 200 };

static void *go_back(void *shared)
{
    bp_ctx *own = bp_ctx_new(NULL);
    bp_tensor *x = shared;
    for (int i = 0; i < ROUNDS; i++) {
        bp_scope_begin(own);
        bp_backward(own, bp_sum(own, bp_mul(own, x, x)), NULL, 0);
        bp_scope_end(own);
    }
    bool well = bp_error(own) == BP_OK;
    bp_ctx_destroy(own);
    return well ? shared : NULL;
}

static void threads_share_a_leaf(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    bp_tensor *x = leaf(F(1, 2));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, go_back, x), 0);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_ptr_equal(result, x);
    }
    IS(GRAD(x), 2 * THREADS * ROUNDS, 4 * THREADS * ROUNDS);
}

/* -- printing ------------------------------------------------------------------------------------------------------ */

static void collect(void *arg, const char *text, size_t n)
{
    strncat(arg, text, n);
}

static void the_tape_prints_a_line_a_node(void **state)
{
    (void)state;
    char text[2000] = "";
    bp_tensor *x = leaf(F(1, 2)), *loss = bp_sum(c, bp_mul(c, x, x));
    assert_int_equal(bp_print_tape(c, loss, collect, text), BP_OK);
    assert_contains(text, " sum -> #");
    assert_contains(text, " mul.Tensor -> #");
    assert_contains(text, "; saves self f32[2] v0, other f32[2] v0; ");
    assert_contains(text, "test_tape.c:");
    assert_contains(text, " leaf f32[2]\n");
    BACKWARD(loss);
    text[0] = 0;
    bp_print_tape(c, loss, collect, text);
    assert_contains(text, "; freed");
    OK();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(gradients_are_added_to_leaves),
        T(a_broadcast_input_gets_the_sum),
        T(a_narrower_input_gets_its_own_type),
        T(a_real_input_gets_the_real_part),
        T(an_input_used_twice_gets_both),
        T(a_products_gradients_are_products),
        T(the_first_grad_is_kept_and_later_ones_are_added_in_place),
        T(a_grad_that_the_caller_holds_is_copied),
        T(a_grad_is_laid_out_as_its_leaf),
        T(a_grad_that_does_not_fit_is_refused),
        T(backward_begins_with_one_number_or_with_a_gradient),
        T(backward_of_a_leaf_is_its_own_gradient),
        T(several_roots_go_back_together),
        T(grad_leaves_dot_grad_alone),
        T(an_unused_input_is_an_error_unless_it_is_allowed),
        T(grad_of_a_root_is_what_was_given),
        T(gradients_can_be_differentiated),
        T(a_saved_result_gets_its_history_back),
        T(a_second_backward_says_that_the_first_freed),
        T(what_saves_nothing_may_go_back_again),
        T(nothing_is_recorded_without_grad_mode),
        T(detach_cuts),
        T(a_composite_is_differentiated_by_its_parts),
        T(a_composite_in_place_may_read_what_it_overwrites),
        T(a_composite_layout_in_place_is_recorded),
        T(an_argument_that_comes_back_keeps_its_history),
        T(hooks_see_and_replace_whole_gradients),
        T(a_removed_hook_is_silent_and_destroyed),
        T(a_hook_behind_accumulation_sees_the_sum),
        T(a_hook_that_gives_another_shape_is_an_error),
        T(a_hook_may_run_backward_itself),
        T(a_chain_of_a_million_nodes_takes_no_stack),
        T(threads_share_a_leaf),
        T(the_tape_prints_a_line_a_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
