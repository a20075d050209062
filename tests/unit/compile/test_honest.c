/* C5: what the host cannot see, and how it stays honest. */
#include "tests/unit/compile/fixture.h"

static bp_tensor *foreign;

/* -- C5.1 ---------------------------------------------------------------------------------------------------------- */

static void uses_a_foreign_tensor(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_add(c, bp_arg(f, 0, "x"), foreign));
}

static void makes_one_from_memory(bp_ctx *c, bp_frame *f)
{
    int64_t n = 2;
    bp_return(f, bp_add(c, bp_arg(f, 0, "x"), bp_tensor_from(c, BP_F32, 1, &n, (float[]){1, 2})));
}

static void reads_raw_data(bp_ctx *c, bp_frame *f)
{
    float *p = bp_tensor_data(c, bp_arg(f, 0, "x"));
    bp_return(f, bp_add(c, bp_arg(f, 0, "x"), p ? *p : 0));
}

static void returns_a_foreign_tensor(bp_ctx *c, bp_frame *f)
{
    (void)c;
    bp_arg(f, 0, "x");
    bp_return(f, foreign);
}

static void expect_refusal(fixture *f, bp_fn fn, const char *word, const char *way_out)
{
    bp_compile_options o = {.backend_fn = table_backend};
    bp_callable *g = bp_compile(f->c, fn, &o);
    bp_tensor *x = FLOATS(f, 3, 4);
    for (int i = 0; i < 2; i++) {
        assert_null(bp_call1(f->c, g, 1, &x));
        assert_contains(bp_error_text(f->c), word);
        assert_contains(bp_error_text(f->c), way_out);
        bp_error_clear(f->c);
    }
    EXPECT_FLOATS(f, x, 3, 4);
    bp_callable_unref(g);
}

static void c5_1_tensors_from_outside_are_refused_with_the_ways_out(void **state)
{
    fixture *f = *state;
    foreign = FLOATS(f, 1, 2);
    expect_refusal(f, uses_a_foreign_tensor, "neither an argument, an attribute nor made in", "bp_attr(f, module");
    expect_refusal(f, returns_a_foreign_tensor, "neither an argument, an attribute nor made in", "bp_attr(f, module");
    expect_refusal(f, makes_one_from_memory, "making a tensor from host memory", "bp_attr");
    expect_refusal(f, reads_raw_data, "reading the data of a fake tensor", "bp_is_true");
}

static void c5_1_suppressed_errors_run_eagerly(void **state)
{
    fixture *f = *state;
    assert_int_equal(bp_set_config(f->c, "suppress_errors", "yes"), BP_OK);
    foreign = FLOATS(f, 1, 2);
    bp_compile_options o = {.backend_fn = table_backend};
    bp_callable *g = bp_compile(f->c, uses_a_foreign_tensor, &o);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 3, 4)).at[0], 4, 6);
    assert_contains(buf_text(&f->log), "suppress_errors is set");
    bp_callable_unref(g);
}

static bp_callable *bump;

static void bump_fn(bp_ctx *c, bp_frame *f)
{
    bp_add_inplace(c, bp_arg(f, 0, "x"), 1);
}

/* What precedes the read is compiled, and every call goes on for real there. */
static void reads_behind_a_step(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_mul(c, x, 2);
    bp_outputs none = {0};
    bp_value v = bp_arg_of_tensor(x);
    float first = 0;
    if (bp_is_true(c, bp_gt(c, bp_sum(c, y), 0)))
        bp_call(c, bump, &(bp_args){&v, 1}, &none);
    bp_tensor_read(c, bp_slice(c, x, .end = BP_SCALAR(1)), &first, sizeof first);
    bp_return(f, bp_mul(c, y, (double)first));
}

static void c5_1_a_suppressed_error_is_remembered(void **state)
{
    fixture *f = *state;
    assert_int_equal(bp_set_config(f->c, "suppress_errors", "yes"), BP_OK);
    bump = bp_compile(f->c, bump_fn, &(bp_compile_options){.disable = 1});
    bp_callable *g = COMPILE(f, reads_behind_a_step);
    for (int i = 0; i < 4; i++) {
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1, 2)).at[0], 4, 8);
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, -1, -2)).at[0], 2, 4);
    }
    assert_int_equal(stats(f, g).captures, 3); /* to the break and the step, behind it, and the other outcome */
    assert_int_equal(stats(f, g).resumed, 8);
    bp_callable_unref(g);
    bp_callable_unref(bump);
}

/* -- C5.2 ---------------------------------------------------------------------------------------------------------- */

static int global_number = 1;

static void reads_a_global(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, bp_mul(c, x, global_number));
}

static void c5_2_check_capture_finds_what_no_guard_sees(void **state)
{
    fixture *f = *state;
    assert_int_equal(bp_set_config(f->c, "check_capture", "always"), BP_OK);
    bp_compile_options o = {.backend_fn = table_backend};
    bp_callable *g = bp_compile(f->c, reads_a_global, &o);
    global_number = 2;
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 3)).at[0], 6);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 3)).at[0], 6);
    global_number = 5;
    for (int i = 0; i < 2; i++)
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 3)).at[0], 15);
    assert_contains(buf_text(&f->log), "\"reads_a_global\" is impure");
    assert_contains(buf_text(&f->log), "aten.mul.Scalar(%in0, 2)");
    assert_int_equal(stats(f, g).eager_calls, 2);
    bp_callable_unref(g);
}

/* -- C5.3 ---------------------------------------------------------------------------------------------------------- */

static bp_tensor *stored;

static void stores_a_fake(bp_ctx *c, bp_frame *f)
{
    bp_tensor *y = bp_mul(c, bp_arg(f, 0, "x"), 2);
    if (!stored)
        stored = bp_keep(c, y);
    bp_return(f, y);
}

static void uses_what_was_stored(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_add(c, bp_arg(f, 0, "x"), stored));
}

static void c5_3_a_fake_that_outlives_its_capture_is_reported_and_void(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = table_backend};
    bp_callable *g = bp_compile(f->c, stores_a_fake, &o), *h = bp_compile(f->c, uses_what_was_stored, &o);
    bp_tensor *x = FLOATS(f, 3);
    EXPECT_FLOATS(f, CALL(f, g, x).at[0], 6);
    assert_contains(buf_text(&f->log), "stored beyond the call?");
    assert_contains(buf_text(&f->log), "test_honest.c:");
    assert_null(bp_call1(f->c, h, 1, &x));
    assert_contains(bp_error_text(f->c), "fake tensor of a finished capture");
    bp_error_clear(f->c);
    assert_null(bp_add(f->c, stored, 1));
    assert_contains(bp_error_text(f->c), "a capture that has ended");
    bp_error_clear(f->c);
    assert_null(bp_call1(f->c, g, 1, &stored));
    assert_contains(bp_error_text(f->c), "fake tensor of a finished capture");
    bp_error_clear(f->c);
    bp_tensor_unref(stored);
    stored = NULL;
    bp_callable_unref(g);
    bp_callable_unref(h);
}

/* -- C5.4 ---------------------------------------------------------------------------------------------------------- */

static int times_run;

static void impure_prefix(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    x = ++times_run % 2 ? bp_add(c, x, 1) : bp_sub(c, x, -1);
    if (bp_is_true(c, bp_gt(c, x, 0)))
        bp_return(f, bp_mul(c, x, 2));
    else
        bp_return(f, x);
}

static void ends_early(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    if (times_run++ % 2 == 0 && !bp_is_true(c, bp_gt(c, x, 0)))
        x = bp_mul(c, x, -1);
    bp_return(f, bp_add(c, x, 1));
}

static void c5_4_an_impure_function_is_reported_once_and_runs_eagerly(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = table_backend};
    bp_fn fns[] = {impure_prefix, ends_early};
    for (int k = 0; k < 2; k++) {
        times_run = 0;
        buf_clear(&f->log);
        bp_callable *g = bp_compile(f->c, fns[k], &o);
        CALL(f, g, FLOATS(f, 3));
        for (int i = 0; i < 3; i++)
            CALL(f, g, FLOATS(f, -3));
        assert_contains(buf_text(&f->log), "is impure");
        assert_null(strstr(strstr(buf_text(&f->log), "is impure") + 1, "is impure"));
        assert_int_equal(stats(f, g).eager_calls, 3);
        bp_callable_unref(g);
    }
}

static void calls_count(bp_ctx *c, bp_frame *f)
{
    times_run++;
    bp_return(f, bp_add(c, bp_arg(f, 0, "x"), 1));
}

static void c5_4_the_functions_code_runs_only_while_it_is_captured(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, calls_count);
    times_run = 0;
    for (int i = 0; i < 10; i++)
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, (float)i)).at[0], (float)(i + 1));
    assert_int_equal(times_run, 1);
    bp_callable_unref(g);
}

/* -- C5.5 ---------------------------------------------------------------------------------------------------------- */

static void loops_on_values(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *bad = bp_select(c, x, 0, 99);
    while (bp_is_true(c, bad))
        bad = bp_add(c, bad, 1);
    while (!bp_is_true(c, bad))
        bad = bp_add(c, bad, 1);
    while (bp_item_int(c, bad) < 0)
        bad = bp_add(c, bad, 1);
    while (bp_item_int(c, bad) > 0)
        bad = bp_add(c, bad, 1);
    while (bp_item_float(c, bad) > 0)
        bad = bp_add(c, bad, 1);
    bp_return(f, bad);
}

static void c5_5_after_a_failure_answers_come_by_turns(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, loops_on_values);
    bp_tensor *x = FLOATS(f, 1);
    assert_null(bp_call1(f->c, g, 1, &x));
    assert_contains(bp_error_text(f->c), "index 99 is out of range");
    bp_error_clear(f->c);
    bp_callable_unref(g);
}

static int marked_line;

static void records_for_ever(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    for (int i = 0; i < 1000000 && bp_error(c) == BP_OK; i++)
        marked_line = __LINE__, x = bp_add(c, x, 1);
    bp_return(f, x);
}

static void c5_5_a_capture_stops_at_the_node_limit_and_names_the_line(void **state)
{
    fixture *f = *state;
    assert_int_equal(bp_set_config(f->c, "trace_node_limit", "1000"), BP_OK);
    bp_callable *g = COMPILE(f, records_for_ever);
    bp_tensor *x = FLOATS(f, 1);
    assert_null(bp_call1(f->c, g, 1, &x));
    assert_contains(bp_error_text(f->c), "more than 1000 operations were recorded");
    char place[64];
    snprintf(place, sizeof place, "test_honest.c:%d recorded 1001 of them", marked_line);
    assert_contains(bp_error_text(f->c), place);
    bp_error_clear(f->c);
    bp_callable_unref(g);
}

/* -- C5.6 ---------------------------------------------------------------------------------------------------------- */

static void c5_6_a_context_in_use_by_another_thread_is_refused(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, calls_count);
    bp_tensor *x = FLOATS(f, 1);
    f->c->busy = 1; /* as if a call were under way */
    f->c->thread = ctx_thread_id() + 1;
    assert_null(bp_call1(f->c, g, 1, &x));
    assert_contains(bp_error_text(f->c), "used by two threads at once");
    bp_error_clear(f->c);
    f->c->busy = 0;
    EXPECT_FLOATS(f, CALL(f, g, x).at[0], 2);
    bp_callable_unref(g);
}

/* -- fullgraph, opaque operators -------------------------------------------------------------------------------------
 */

static void breaks(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    marked_line = __LINE__ + 1;
    if (bp_is_true(c, bp_gt(c, x, 0)))
        x = bp_mul(c, x, 2);
    bp_return(f, x);
}

static void size_depends_on_data(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_nonzero(c, bp_arg(f, 0, "x")));
}

static void fullgraph_makes_a_break_an_error_that_names_its_place(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = table_backend, .fullgraph = 1};
    bp_callable *g = bp_compile(f->c, breaks, &o), *h = bp_compile(f->c, size_depends_on_data, &o);
    bp_tensor *x = FLOATS(f, 1);
    assert_null(bp_call1(f->c, g, 1, &x));
    char place[256];
    snprintf(place, sizeof place, "bp_is_true at %s:%d asks", __FILE__, marked_line);
    assert_contains(bp_error_text(f->c), place);
    bp_error_clear(f->c);
    assert_null(bp_call1(f->c, h, 1, &x));
    assert_contains(bp_error_text(f->c), "aten.nonzero.default gives a result whose size depends on data");
    bp_error_clear(f->c);
    bp_callable_unref(g);
    bp_callable_unref(h);
}

static void changes_its_layout(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_mul(c, bp_arg(f, 0, "x"), 2);
    bp_return(f, bp_unsqueeze_inplace(c, x, 0));
}

static void switches_the_type(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_dtype former = bp_set_default_dtype(c, BP_F64);
    bp_return(f, bp_add(c, x, bp_ones(c, BP_DIMS(1))));
    bp_set_default_dtype(c, former);
}

static void seeds(bp_ctx *c, bp_frame *f)
{
    bp_arg(f, 0, "x");
    bp_manual_seed(c, 7);
    bp_return(f, bp_rand(c, BP_DIMS(2)));
}

static void wants_grad(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_mul(c, bp_arg(f, 0, "x"), 2);
    bp_tensor_set_requires_grad(c, x, 1);
    bp_return(f, x);
}

static void without_grad(bp_ctx *c, bp_frame *f)
{
    int former = bp_set_grad_enabled(c, 0);
    bp_return(f, bp_mul(c, bp_arg(f, 0, "x"), 2));
    bp_set_grad_enabled(c, former);
    bp_return(f, bp_mul(c, bp_arg(f, 0, "x"), 2));
}

static void c6_3_what_a_function_does_to_its_context_is_not_lost(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, switches_the_type), *h = COMPILE(f, seeds), *w = COMPILE(f, wants_grad);
    bp_callable *n = COMPILE(f, without_grad);
    for (int i = 0; i < 2; i++) {
        bp_tensor *x = FLOATS(f, 3);
        assert_int_equal(bp_tensor_dtype(CALL(f, g, x).at[0]), BP_F64);
        bp_manual_seed(f->c, 1);
        CALL(f, h, x);
        assert_int_equal(bp_generator_offset(f->c), 2);
        assert_int_equal(f->c->seed, 7);
        assert_int_equal(bp_tensor_requires_grad(CALL(f, w, x).at[0]), 1);
        bp_tensor_set_requires_grad(f->c, x, 1);
        bp_outputs o = CALL(f, n, x);
        assert_int_equal(bp_tensor_requires_grad(o.at[0]), 0);
        assert_int_equal(bp_tensor_requires_grad(o.at[1]), 1);
    }
    assert_int_equal(stats(f, g).eager_calls, 2);
    assert_int_equal(stats(f, h).eager_calls, 2);
    assert_int_equal(stats(f, w).eager_calls, 2);
    assert_int_equal(stats(f, n).eager_calls, 0);
    bp_callable_unref(g);
    bp_callable_unref(h);
    bp_callable_unref(w);
    bp_callable_unref(n);
}

static void what_is_not_captured_runs_eagerly_with_a_reason(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, changes_its_layout);
    for (int i = 0; i < 3; i++) {
        bp_tensor *y = CALL(f, g, FLOATS(f, 0, 3, 4)).at[0];
        assert_int_equal(bp_tensor_size(y, 1), 3);
        EXPECT_FLOATS(f, y, 0, 6, 8);
    }
    assert_int_equal(stats(f, g).captures, 1);
    assert_int_equal(stats(f, g).eager_calls, 3);
    buf text = {0};
    assert_int_equal(bp_print_explain(f->c, g, fixture_append, &text), BP_OK);
    assert_contains(buf_text(&text), "not captured: ");
    assert_contains(buf_text(&text), "changes a tensor's sizes in place");
    buf_fini(&text);
    bp_callable_unref(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        T(c5_1_tensors_from_outside_are_refused_with_the_ways_out),
        T(c5_1_suppressed_errors_run_eagerly),
        T(c5_1_a_suppressed_error_is_remembered),
        T(c5_2_check_capture_finds_what_no_guard_sees),
        T(c5_3_a_fake_that_outlives_its_capture_is_reported_and_void),
        T(c5_4_an_impure_function_is_reported_once_and_runs_eagerly),
        T(c5_4_the_functions_code_runs_only_while_it_is_captured),
        T(c5_5_after_a_failure_answers_come_by_turns),
        T(c5_5_a_capture_stops_at_the_node_limit_and_names_the_line),
        T(c5_6_a_context_in_use_by_another_thread_is_refused),
        T(fullgraph_makes_a_break_an_error_that_names_its_place),
        T(c6_3_what_a_function_does_to_its_context_is_not_lost),
        T(what_is_not_captured_runs_eagerly_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
