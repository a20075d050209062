/* What users of graph compilers hit in calls that change their arguments, run what is not captured, or come from many
 * threads; as test_pains.c. */
#include "tests/unit/compile/fixture.h"
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

static bp_callable *disabled(bp_fn fn, fixture *f)
{
    return bp_compile(f->c, fn, &(bp_compile_options){.disable = 1});
}

static void in_overlapping_rows(bp_ctx *c, bp_frame *f)
{
    bp_add_inplace(c, bp_as_strided(c, bp_arg(f, 0, "x"), BP_DIMS(3, 2), BP_DIMS(1, 1)), 1);
}

static void in_an_expanded_row(bp_ctx *c, bp_frame *f)
{
    bp_add_inplace(c, bp_expand(c, bp_arg(f, 0, "x"), BP_DIMS(3, 4)), 1);
}

/* No graph is made of them. What the first one gives depends on the order of its writes: it is eager's answer; the
 * other is eager's error. */
static void A118_a_write_that_overlaps_itself_is_not_compiled(void **state)
{
    fixture *f = *state;
    bp_callable *rows = COMPILE(f, in_overlapping_rows), *row = COMPILE(f, in_an_expanded_row);
    for (int i = 0; i < 2; i++) {
        bp_tensor *x = FLOATS(f, 1, 1, 1, 1), *y = FLOATS(f, 1, 1, 1, 1);
        bp_value v = bp_arg_of_tensor(y);
        assert_int_equal(bp_run_eager(f->c, in_overlapping_rows, NULL, &(bp_args){&v, 1}, &(bp_outputs){0}), BP_OK);
        CALL(f, rows, x);
        for (int64_t k = 0; k < 4; k++)
            assert_float_equal(at(f, x, k), at(f, y, k), 0);
        assert_int_equal(bp_call(f->c, row, &(bp_args){&v, 1}, &(bp_outputs){0}), BP_INVALID_ARGUMENT);
        bp_error_clear(f->c);
        for (int64_t k = 0; k < 4; k++)
            assert_float_equal(at(f, x, k), at(f, y, k), 0);
    }
    assert_int_equal(stats(f, rows).graphs + stats(f, row).graphs, 0);
    bp_callable_unref(rows);
    bp_callable_unref(row);
}

static void through_its_own_sizes(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_copy_inplace(c, bp_view_default(c, x, BP_DIMS(4, 4)), bp_ones_like(c, x));
    bp_return(f, bp_sum(c, x));
}

static void A122_a_view_that_changes_nothing_is_written_through(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, through_its_own_sizes);
    for (int i = 0; i < 2; i++) {
        bp_tensor *x = bp_tensor_from(f->c, BP_F32, 2, (int64_t[]){4, 4}, NULL);
        EXPECT_FLOATS(f, CALL(f, g, x).at[0], 16);
        assert_float_equal(at(f, x, 15), 1, 0);
    }
    bp_callable_unref(g);
}

/* -- disabled functions -------------------------------------------------------------------------------------------- */

static bp_callable *bumps_two, *adds_two;

static void bumps_two_fn(bp_ctx *c, bp_frame *f)
{
    bp_add_inplace(c, bp_arg(f, 0, "a"), 1);
    bp_add_inplace(c, bp_arg(f, 1, "b"), 2);
}

static void adds_two_fn(bp_ctx *c, bp_frame *f)
{
    bp_copy_inplace(c, bp_arg(f, 2, "out"), bp_add(c, bp_add(c, bp_arg(f, 0, "a"), bp_arg(f, 1, "b")), 2));
}

static void call_it(bp_ctx *c, bp_callable *g, uint32_t n, bp_tensor *const *in)
{
    bp_value v[3];
    for (uint32_t i = 0; i < n; i++)
        v[i] = bp_arg_of_tensor(in[i]);
    bp_call(c, g, &(bp_args){v, n}, &(bp_outputs){0});
}

static void by_views_of_one(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *a = bp_select(c, x, 0, 0), *b = bp_select(c, x, 0, 1);
    bp_tensor *out = bp_zeros_like(c, a);
    call_it(c, bumps_two, 2, (bp_tensor *[]){a, b});
    call_it(c, adds_two, 3, (bp_tensor *[]){a, b, out});
    bp_return(f, out);
}

static void A128_operators_of_ones_own_write_views_of_one_input(void **state)
{
    fixture *f = *state;
    bumps_two = disabled(bumps_two_fn, f);
    adds_two = disabled(adds_two_fn, f);
    bp_callable *g = COMPILE(f, by_views_of_one);
    for (int i = 0; i < 3; i++) {
        bp_tensor *x = bp_tensor_from(f->c, BP_F32, 2, (int64_t[]){2, 2}, (float[]){1, 2, 3, 4});
        EXPECT_FLOATS(f, CALL(f, g, x).at[0], 9, 11);
        EXPECT_FLOATS(f, x, 2, 3, 5, 6);
    }
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
    bp_callable_unref(bumps_two);
    bp_callable_unref(adds_two);
}

static bp_callable *plus_one;

static void plus_one_fn(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_add(c, bp_arg(f, 0, "x"), 1));
}

static void around_a_step(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_mul(c, bp_arg(f, 0, "x"), 2);
    bp_return(f, bp_sum(c, bp_call1(c, plus_one, 1, &x)));
}

static size_t held_after(fixture *f, bp_callable *g, int calls)
{
    for (int i = 0; i < calls; i++) {
        bp_scope_begin(f->c);
        CALL(f, g, bp_tensor_from(f->c, BP_F32, 1, (int64_t[]){1 << 14}, NULL));
        bp_scope_end(f->c);
    }
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

/* A hundredth of a call's own tensors would be seen. */
static void A174_calls_of_a_disabled_function_inside_leak_nothing(void **state)
{
    fixture *f = *state;
    plus_one = disabled(plus_one_fn, f);
    bp_callable *g = COMPILE(f, around_a_step);
    size_t before = held_after(f, g, 20), after = held_after(f, g, 200);
    assert_true(after < before + 200 * 64);
    bp_callable_unref(g);
    bp_callable_unref(plus_one);
}

/* -- guards -------------------------------------------------------------------------------------------------------- */

static void by_all_sizes(bp_ctx *c, bp_frame *f)
{
    static const int64_t asked[4] = {5, 1, 2, 3};
    bp_tensor *x = bp_arg(f, 0, "x");
    bool differs = false;
    for (uint32_t d = 0; d < 4; d++)
        differs |= bp_tensor_size(x, d) != asked[d];
    bp_return(f, differs ? bp_cos(c, x) : bp_exp(c, x));
}

static void A140_a_question_about_all_sizes_is_guarded_by_all(void **state)
{
    fixture *f = *state;
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        bp_compile_options o = {.backend_fn = table_backend, .dynamic = dynamic, .isolate = 1};
        bp_callable *g = bp_compile(f->c, by_all_sizes, &o);
        for (int i = 0; i < 2; i++)
            for (int64_t n = 4; n > 0; n--) { /* 0: cos and exp are 1 everywhere */
                bp_tensor *x = bp_tensor_from(f->c, BP_F32, 4, (int64_t[]){5, 1, 2, n}, NULL);
                bp_tensor *y = CALL(f, g, bp_add(f->c, x, 1)).at[0];
                assert_float_equal(at(f, y, 0), n == 3 ? expf(1) : cosf(1), 1e-6);
            }
        bp_callable_unref(g);
    }
}

/* -- what may not be dropped --------------------------------------------------------------------------------------- */

static void unused_effects(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *i = bp_arg(f, 1, "i");
    bp_rand(c, BP_DIMS(3));
    bp_print(c, bp_mul(c, x, 2), "twice");
    bp_copy_inplace(c, x, bp_neg(c, x));
    bp_index_select(c, x, 0, i);
}

static bp_status see_effects(fixture *f, bp_callable *g, bp_tensor *x, int64_t at)
{
    bp_value v[2] = {bp_arg_of_tensor(x), bp_arg_of_tensor(bp_tensor_from(f->c, BP_I64, 1, (int64_t[]){1}, &at))};
    bp_args args = {v, 2};
    buf_clear(&f->tables);
    bp_manual_seed(f->c, 3);
    return g ? bp_call(f->c, g, &args, &(bp_outputs){0})
             : bp_run_eager(f->c, unused_effects, NULL, &args, &(bp_outputs){0});
}

static void A184_nothing_with_an_effect_is_dropped(void **state)
{
    fixture *f = *state;
    bp_callable *g = bp_compile(f->c, unused_effects, &(bp_compile_options){.backend = "eager"});
    for (int i = 0; i < 4; i++) {
        bp_tensor *x = FLOATS(f, 1, 2), *y = FLOATS(f, 1, 2);
        bool bad = i == 2;
        assert_int_equal(see_effects(f, NULL, y, bad ? 7 : 0), bad ? BP_OUT_OF_RANGE : BP_OK);
        bp_error_clear(f->c);
        uint64_t moved = bp_generator_offset(f->c);
        assert_int_equal(see_effects(f, g, x, bad ? 7 : 0), bad ? BP_OUT_OF_RANGE : BP_OK);
        bp_error_clear(f->c);
        assert_true(moved > 0);
        assert_int_equal(bp_generator_offset(f->c), moved);
        assert_string_equal(buf_text(&f->tables), "twice: f32[2] [2.0, 4.0]\n");
        EXPECT_FLOATS(f, x, -1, -2);
        EXPECT_FLOATS(f, y, -1, -2);
    }
    bp_callable_unref(g);
}

/* -- threads and processes ----------------------------------------------------------------------------------------- */

static void of_two(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_add(c, bp_sin(c, bp_arg(f, 0, "x")), bp_cos(c, bp_arg(f, 1, "y"))));
}

enum { THREADS = 32 };
typedef struct { fixture *f; bp_callable *g; int k; atomic_uint *right; } job;

static void *call_in_thread(void *arg)
{
    job *j = arg;
    bp_ctx *c = bp_ctx_new(j->f->rt);
    for (int i = 0; i < 20; i++) {
        float v = (float)(j->k + i) / 8, got = 0;
        bp_scope_begin(c);
        bp_tensor *x = bp_tensor_from(c, BP_F32, 1, (int64_t[]){1}, &v), *in[2] = {x, x}, *y = bp_call1(c, j->g, 2, in);
        bool ok = y && bp_tensor_read(c, y, &got, sizeof got) == BP_OK && fabsf(got - sinf(v) - cosf(v)) < 1e-5f;
        bp_scope_end(c);
        atomic_fetch_add(j->right, ok);
    }
    bp_ctx_destroy(c);
    return NULL;
}

static void A168_32_threads_call_one_function(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, of_two);
    pthread_t threads[THREADS];
    job jobs[THREADS];
    atomic_uint right = 0;
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (job){f, g, i, &right};
        assert_int_equal(pthread_create(&threads[i], NULL, call_in_thread, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(right, THREADS * 20);
    assert_int_equal(stats(f, g).entries, 1);
    bp_callable_unref(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        T(A118_a_write_that_overlaps_itself_is_not_compiled),
        T(A122_a_view_that_changes_nothing_is_written_through),
        T(A128_operators_of_ones_own_write_views_of_one_input),
        T(A140_a_question_about_all_sizes_is_guarded_by_all),
        T(A168_32_threads_call_one_function),
        T(A174_calls_of_a_disabled_function_inside_leak_nothing),
        T(A184_nothing_with_an_effect_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
