/* C1.2, C4.2 to C4.4, C5.4, C7: opaque steps: what precedes one is committed, it runs once a call, and what follows is
 * captured behind it. Each program is called by the callable and eagerly, and everything is compared. */
#include "tests/unit/compile/steps.h"

/* -- C4.2 ---------------------------------------------------------------------------------------------------------- */

static void counts(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_mul(c, x, 2), *z = bp_call1(c, count_step, 1, &y);
    bp_return(f, bp_add(c, bp_add(c, z, y), x));
}

static void c4_2_a_disabled_function_runs_once_a_call_the_capturing_one_too(void **state)
{
    fixture *f = *state;
    bp_callable *g = QUIET(f, counts);
    for (int i = 0; i < 4; i++)
        assert_int_equal(AGREE(f, g, counts, 1, 2, 3), 1);
    bp_callable_stats s = stats(f, g);
    assert_int_equal(s.captures, 2); /* one to the step, one behind it */
    assert_int_equal(s.steps, 4);
    assert_int_equal(s.hits, 3);
    assert_int_equal(s.eager_calls, 0);
    assert_int_equal(s.graphs, 2);
    buf text = {0};
    assert_int_equal(bp_print_explain(f->c, g, fixture_append, &text), BP_OK);
    assert_contains(buf_text(&text), "an opaque step: the disabled function count_fn (");
    buf_fini(&text);
    bp_callable_unref(g);
}

static void breaks_around(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_add(c, x, 1);
    bp_add_inplace(c, x, 3);
    if (bp_is_true(c, bp_gt(c, bp_sum(c, y), 0)))
        y = bp_call1(c, count_step, 1, &y);
    if (bp_is_true(c, bp_gt(c, bp_sum(c, y), 10)))
        y = bp_call1(c, count_step, 1, &y);
    else
        bp_mul_inplace(c, x, -1);
    bp_return(f, bp_mul(c, y, 2));
    bp_return(f, x);
}

static void c4_2_steps_before_and_behind_breaks(void **state)
{
    fixture *f = *state;
    bp_callable *g = QUIET(f, breaks_around);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(AGREE(f, g, breaks_around, 1, 2), 1);
        assert_int_equal(AGREE(f, g, breaks_around, 10, 20), 2);
        assert_int_equal(AGREE(f, g, breaks_around, -10, -20), 0);
    }
    assert_int_equal(stats(f, g).eager_calls, 0);
    uint32_t captures = stats(f, g).captures;
    AGREE(f, g, breaks_around, 5, 6);
    assert_int_equal(stats(f, g).captures, captures);
    bp_callable_unref(g);
}

static void prints(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    for (int i = 0; i < 3; i++) {
        bp_add_inplace(c, x, 1);
        bp_print(c, bp_mul(c, x, 2), i ? NULL : "x");
    }
    bp_return(f, x);
}

static void c4_2_print_is_an_opaque_step(void **state)
{
    fixture *f = *state;
    bp_callable *g = QUIET(f, prints);
    for (int i = 0; i < 3; i++)
        AGREE(f, g, prints, 1, 2.5f);
    seen s;
    see(f, g, prints, (float[]){1, 2}, 2, &s);
    assert_string_equal(buf_text(&s.text), "x: f32[2] [4.0, 6.0]\nf32[2] [6.0, 8.0]\nf32[2] [8.0, 10.0]\n");
    buf_fini(&s.text);
    assert_int_equal(stats(f, g).eager_calls, 0);
    assert_int_equal(stats(f, g).captures, 4);
    bp_callable_unref(g);
}

static void a_fullgraph_names_the_step(fixture *f, bp_fn fn, const char *words, const char *place)
{
    bp_compile_options o = {.backend_fn = table_backend, .fullgraph = 1};
    bp_callable *g = bp_compile(f->c, fn, &o);
    bp_tensor *in[2] = {FLOATS(f, 1, 2), FLOATS(f, 1, 2)};
    assert_null(bp_call1(f->c, g, 2, in));
    assert_contains(bp_error_text(f->c), words);
    assert_contains(bp_error_text(f->c), place);
    bp_error_clear(f->c);
    bp_callable_unref(g);
}

static void c4_2_fullgraph_names_the_place_of_a_step(void **state)
{
    a_fullgraph_names_the_step(*state, prints, "bp_print is called", "test_opaque.c:");
    a_fullgraph_names_the_step(*state, counts, "the disabled function count_fn", "steps.h:");
    assert_int_equal(ran, 0);
}

/* -- C4.3: arguments, results, aliases ----------------------------------------------------------------------------- */

static void writes(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_add(c, x, 1), *v = bp_select(c, y, 0, 0), *in[1] = {y};
    bp_outputs none = {0};
    bp_args args = {(bp_value[]){bp_arg_of_tensor(in[0])}, 1};
    bp_call(c, write_step, &args, &none);
    args.at[0] = bp_arg_of_tensor(x);
    bp_call(c, write_step, &args, &none);
    args.at[0] = bp_arg_of_tensor(v);
    bp_call(c, write_step, &args, &none);
    bp_add_inplace(c, v, 1000);
    bp_return(f, bp_add(c, y, x));
    bp_return(f, y);
    bp_return(f, v);
}

static void c4_3_what_a_step_wrote_is_read_again(void **state)
{
    fixture *f = *state;
    bp_callable *g = QUIET(f, writes);
    for (int i = 0; i < 4; i++)
        assert_int_equal(AGREE(f, g, writes, 1, 2, 3), 3);
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

static void gets_the_same(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_mul(c, x, 2), *v = bp_slice(c, y, .start = BP_SCALAR(1));
    bp_tensor *a = bp_call1(c, same_step, 1, &x), *b = bp_call1(c, same_step, 1, &y);
    bp_tensor *w = bp_call1(c, same_step, 1, &v), *w2 = bp_call1(c, same_step, 1, &v);
    if (ctx_ok(c) && (a != x || b != y || w != v || w2 != v))
        bp_return(f, NULL);
    bp_add_inplace(c, w, 5);
    bp_return(f, a);
    bp_return(f, b);
    bp_return(f, w);
    bp_return(f, bp_arg(f, 1, "y"));
}

static void c4_3_a_result_that_is_an_argument_is_that_handle(void **state)
{
    fixture *f = *state;
    bp_callable *g = QUIET(f, gets_the_same);
    for (int i = 0; i < 4; i++)
        assert_int_equal(AGREE(f, g, gets_the_same, 1, 2, 3), 4);
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

static void gets_views(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_mul(c, x, 2);
    bp_tensor *v = bp_call1(c, view_step, 1, &x), *w = bp_call1(c, view_step, 1, &y);
    bp_add_inplace(c, v, 5);
    bp_mul_inplace(c, y, 3);
    bp_return(f, bp_add(c, w, v));
    bp_return(f, w);
    bp_return(f, v);
    bp_return(f, y);
    bp_return(f, bp_sum(c, x));
}

static void c4_3_a_result_may_view_what_is_written_later(void **state)
{
    fixture *f = *state;
    bp_callable *g = QUIET(f, gets_views);
    for (int i = 0; i < 4; i++)
        assert_int_equal(AGREE(f, g, gets_views, 1, 2, 3), 2);
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

static void asks_around(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    double before = bp_item_float(c, x);
    bp_outputs none = {0};
    bp_args args = {(bp_value[]){bp_arg_of_tensor(x)}, 1};
    bp_call(c, write_step, &args, &none);
    bp_return(f, bp_add(c, x, bp_scalar_float(before + 100 * bp_item_float(c, x))));
}

static void c4_3_what_was_asked_before_a_step_is_asked_again(void **state)
{
    fixture *f = *state;
    bp_callable *g = QUIET(f, asks_around);
    for (int i = 0; i < 2; i++)
        for (float x = 0; x < 4; x++)
            assert_int_equal(AGREE(f, g, asks_around, x), 1);
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

static void unsqueeze_fn(bp_ctx *c, bp_frame *f)
{
    ran++;
    bp_unsqueeze_inplace(c, bp_arg(f, 0, "x"), 0);
}

static bp_callable *layout_step;

static void changes_layouts(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_add(c, x, 1), *z = bp_mul(c, y, 2);
    bp_outputs none = {0};
    bp_args args = {(bp_value[]){bp_arg_of_tensor(x)}, 1};
    bp_call(c, layout_step, &args, &none);
    bp_add_inplace(c, x, 1);
    args.at[0] = bp_arg_of_tensor(y);
    bp_call(c, layout_step, &args, &none);
    z = bp_mul(c, bp_add(c, y, x), z);
    if (bp_is_true(c, bp_gt(c, bp_sum(c, z), 50)))
        args.at[0] = bp_arg_of_tensor(bp_slice(c, y, .dim = 1, .start = BP_SCALAR(1)));
    bp_call(c, layout_step, &args, &none);
    bp_return(f, z);
    bp_return(f, args.at[0].v.tensor);
    bp_return(f, y);
    bp_return(f, bp_add(c, y, x));
}

static void c4_3_a_step_may_change_layouts_in_place(void **state)
{
    fixture *f = *state;
    bp_callable *g = QUIET(f, changes_layouts);
    layout_step = disabled(f, unsqueeze_fn, "unsqueeze_fn");
    for (int i = 0; i < 3; i++)
        assert_int_equal(AGREE(f, g, changes_layouts, 0, 0), 3);
    assert_int_equal(stats(f, g).eager_calls, 0); /* nothing has views there */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(AGREE(f, g, changes_layouts, 1, 2), 3);
        assert_int_equal(AGREE(f, g, changes_layouts, 10, 20), 3);
    }
    assert_false(said(f, "is impure"));
    bp_callable_unref(layout_step);
    bp_callable_unref(g);
}

static bool changes;

static void changing_fn(bp_ctx *c, bp_frame *f)
{
    ran++;
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, changes ? bp_slice(c, x, .end = BP_SCALAR(1)) : bp_add(c, x, 1));
}

static bp_callable *changing_step;

static void uses_what_changes(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_call1(c, changing_step, 1, &x);
    bp_add_inplace(c, x, 7);
    bp_return(f, bp_mul(c, y, 2));
}

static void c4_3_the_successor_is_guarded_on_sizes_and_aliases_of_results(void **state)
{
    fixture *f = *state;
    bp_callable *g = QUIET(f, uses_what_changes);
    changing_step = disabled(f, changing_fn, "changing_fn");
    for (int i = 0; i < 6; i++) {
        changes = i % 2;
        assert_int_equal(AGREE(f, g, uses_what_changes, 1, 2, 3), 1);
        assert_int_equal(AGREE(f, g, uses_what_changes, 4), 1); /* one element: only the aliases differ */
    }
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(changing_step);
    bp_callable_unref(g);
}

static bool unsqueezes;

static void now_and_then_unsqueeze_fn(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    ran++;
    if (unsqueezes)
        bp_unsqueeze_inplace(c, x, 1);
}

static void uses_an_input_again(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_mul(c, x, 2);
    bp_outputs none = {0};
    bp_args args = {(bp_value[]){bp_arg_of_tensor(x)}, 1};
    bp_call(c, layout_step, &args, &none);
    bp_return(f, bp_add(c, y, x));
    bp_return(f, bp_add(c, x, 1));
}

/* The step gives nothing, so it is the input alone that tells one successor from the other. */
static void c4_3_inputs_are_guarded_anew_behind_a_step(void **state)
{
    fixture *f = *state;
    bp_callable *g = QUIET(f, uses_an_input_again);
    layout_step = disabled(f, now_and_then_unsqueeze_fn, "now_and_then_unsqueeze_fn");
    for (int i = 0; i < 6; i++) {
        unsqueezes = i % 2;
        assert_int_equal(AGREE(f, g, uses_an_input_again, 1, 2, 3), 1);
    }
    bp_callable_stats s = stats(f, g);
    assert_int_equal(s.captures, 3); /* one to the step, and a successor for each of its shapes */
    assert_int_equal(s.graphs, 3);
    assert_int_equal(s.hits, 4);
    assert_int_equal(s.eager_calls, 0);
    bp_callable_unref(layout_step);
    bp_callable_unref(g);
}

/* -- C1.2 ---------------------------------------------------------------------------------------------------------- */

static void stashes(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_mul(c, x, 2);
    bp_outputs none = {0};
    bp_args args = {(bp_value[]){bp_arg_of_tensor(y)}, 1};
    bp_call(c, stash_step, &args, &none);
    bp_add_inplace(c, y, 1);
    bp_tensor *z = bp_call1(c, bump_step, 0, NULL);
    bp_mul_inplace(c, y, 2);
    bp_return(f, bp_add(c, x, bp_sum(c, z)));
    bp_return(f, z);
}

static void c1_2_a_storage_that_a_disabled_function_has_seen_is_committed(void **state)
{
    fixture *f = *state;
    bp_callable *g = QUIET(f, stashes);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(AGREE(f, g, stashes, 1, 2), 2);
        CALL(f, g, FLOATS(f, 1, 2));
        EXPECT_FLOATS(f, stashed, 206, 210);
    }
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

/* A backend whose second graph fails whenever it runs. */
static int graphs_made;

static bp_status fail_run(void *state, bp_run *r)
{
    (void)state;
    return bp_run_fail(r, BP_UNAVAILABLE, "this backend never runs");
}

static bp_compiled *second_fails(bp_graph_module *gm, const bp_inputs *in)
{
    (void)in;
    if (graphs_made++ == 0)
        return bp_forward(gm);
    return bp_compiled_new(gm, fail_run, NULL, NULL);
}

static void c1_2_a_segment_that_fails_behind_a_commit_resumes_there(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = second_fails};
    bp_callable *g = bp_compile(f->c, breaks_around, &o);
    graphs_made = 0;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(AGREE(f, g, breaks_around, 1, 2), 1);
        assert_int_equal(AGREE(f, g, breaks_around, 10, 20), 2);
    }
    bp_callable_unref(g);
}

static void fails_in_the_step(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_add_inplace(c, bp_arg(f, 0, "x"), 1);
    bp_return(f, bp_add_inplace(c, bp_call1(c, fail_step, 1, &x), 1));
}

static void c1_2_a_failure_inside_a_step_is_final(void **state)
{
    fixture *f = *state;
    bp_callable *g = QUIET(f, fails_in_the_step);
    for (int i = 0; i < 3; i++)
        assert_int_equal(AGREE(f, g, fails_in_the_step, 1, 2), 1);
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

/* -- C3.6 behind a step -------------------------------------------------------------------------------------------- */

static void int_behind(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_add(c, x, 1), *v = bp_select(c, y, 0, 0);
    v = bp_call1(c, same_step, 1, &v);
    bp_add_inplace(c, x, 1);
    int64_t n = bp_item_int(c, bp_sum(c, x));
    bp_add_inplace(c, v, n);
    bp_tensor *w = bp_call1(c, same_step, 1, &v);
    if (ctx_ok(c) && w != v)
        bp_return(f, NULL);
    bp_return(f, bp_call1(c, same_step, 1, &x));
    bp_return(f, w);
    bp_return(f, bp_rand(c, BP_DIMS(2)));
}

static void c3_6_an_open_break_behind_a_step_resumes_behind_it(void **state)
{
    fixture *f = *state;
    bp_callable *g = QUIET(f, int_behind);
    for (int i = 0; i < 12; i++)
        assert_int_equal(AGREE(f, g, int_behind, (float)i, 0), 3);
    assert_int_equal(stats(f, g).resumed, 4);
    bp_callable_unref(g);
}

/* -- C7 ------------------------------------------------------------------------------------------------------------ */

static void draws(bp_ctx *c, bp_frame *f)
{
    bp_tensor *a = bp_rand(c, BP_DIMS(3)), *b = bp_call1(c, draw_step, 0, NULL), *d = bp_rand(c, BP_DIMS(2));
    bp_return(f, a);
    bp_return(f, b);
    if (bp_is_true(c, bp_gt(c, bp_sum(c, bp_arg(f, 0, "x")), 0)))
        d = bp_add(c, d, bp_rand(c, BP_DIMS(2)));
    bp_return(f, d);
}

static void c7_the_generator_is_read_again_behind_a_step(void **state)
{
    fixture *f = *state;
    bp_callable *g = QUIET(f, draws);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(AGREE(f, g, draws, 1), 1);
        assert_int_equal(AGREE(f, g, draws, -1), 1);
    }
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

/* -- C5.4 ---------------------------------------------------------------------------------------------------------- */

static int mood;

static void moody_behind(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_add_inplace(c, bp_arg(f, 0, "x"), 1), *y = bp_call1(c, count_step, 1, &x);
    y = bp_mul(c, y, mood ? 3 : 2);
    bp_return(f, bp_is_true(c, bp_gt(c, bp_sum(c, y), 0)) ? bp_add(c, y, 1) : y);
}

static void moody_before(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_add_inplace(c, bp_arg(f, 0, "x"), mood ? 3 : 1), *y = bp_call1(c, count_step, 1, &x);
    bp_return(f, bp_is_true(c, bp_gt(c, bp_sum(c, y), 0)) ? bp_add(c, y, 1) : y);
}

static void c5_4_an_impure_part_behind_a_commit_resumes_at_the_commit(void **state)
{
    fixture *f = *state;
    bp_callable *g = QUIET(f, moody_behind);
    mood = 0;
    assert_int_equal(AGREE(f, g, moody_behind, 1, 2), 1);
    mood = 1;
    seen s; /* the unseen outcome replays the prefix, which is another now */
    see(f, g, moody_behind, (float[]){-9, -9}, 2, &s);
    assert_int_equal(s.st, BP_OK);
    assert_int_equal(s.ran, 1);
    EXPECT_FLOATS(f, s.out.at[0], -21, -21);
    EXPECT_FLOATS(f, s.in[0], -8, -8);
    assert_true(said(f, "is impure"));
    assert_int_equal(AGREE(f, g, moody_behind, -9, -9), 1);
    bp_callable_unref(g);
}

static void c5_4_an_impure_prefix_behind_a_commit_fails_and_says_so(void **state)
{
    fixture *f = *state;
    bp_callable *g = QUIET(f, moody_before);
    mood = 0;
    assert_int_equal(AGREE(f, g, moody_before, 1, 2), 1);
    mood = 1;
    bp_tensor *in[2] = {FLOATS(f, -9, -9), FLOATS(f, 0, 0)};
    ran = 0;
    assert_null(bp_call1(f->c, g, 2, in));
    assert_contains(bp_error_text(f->c), "cannot go on behind an opaque step");
    assert_contains(bp_error_text(f->c), "is impure");
    bp_error_clear(f->c);
    assert_int_equal(ran, 1);
    assert_int_equal(AGREE(f, g, moody_before, -9, -9), 1);
    bp_callable_unref(g);
}

/* -- C4.4 ---------------------------------------------------------------------------------------------------------- */

static void refuses(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_add_inplace(c, bp_arg(f, 0, "x"), 1), *at = bp_nonzero(c, x);
    bp_return(f, bp_add(c, bp_sum(c, at), bp_sum(c, bp_index(c, x, BP_TENSORS(bp_gt(c, x, 2))))));
}

static void c4_4_an_operator_that_cannot_be_captured_is_a_step_of_its_own(void **state)
{
    fixture *f = *state;
    bp_callable *g = QUIET(f, refuses);
    for (int i = 0; i < 3; i++) {
        AGREE(f, g, refuses, 1, -1, 2, 0);
        AGREE(f, g, refuses, 1, -1, -1, -1);
    }
    assert_int_equal(stats(f, g).eager_calls, 0);
    assert_int_equal(stats(f, g).steps, 12);
    buf text = {0};
    bp_print_explain(f->c, g, fixture_append, &text);
    assert_contains(buf_text(&text), "aten.nonzero.default gives a result whose size depends on data");
    buf_fini(&text);
    a_fullgraph_names_the_step(f, refuses, "aten.nonzero.default", "test_opaque.c:");
    bp_callable_unref(g);
}

/* -- modes, scopes, threads ---------------------------------------------------------------------------------------- */

static int grad_in_step;

static void grad_fn(bp_ctx *c, bp_frame *f)
{
    (void)f;
    grad_in_step = bp_grad_enabled(c);
}

static bp_callable *grad_step;

static void without_grad(bp_ctx *c, bp_frame *f)
{
    bp_outputs none = {0};
    bp_args args = {NULL, 0};
    int was = bp_set_grad_enabled(c, 0);
    bp_call(c, grad_step, &args, &none);
    bp_set_grad_enabled(c, was);
    bp_return(f, bp_add(c, bp_arg(f, 0, "x"), 1));
}

static void c4_2_a_step_runs_under_the_modes_of_its_place(void **state)
{
    fixture *f = *state;
    bp_callable *g = QUIET(f, without_grad);
    grad_step = disabled(f, grad_fn, "grad_fn");
    for (int i = 0; i < 3; i++) {
        grad_in_step = 7;
        CALL(f, g, FLOATS(f, 1));
        assert_int_equal(grad_in_step, 0);
        assert_int_equal(bp_grad_enabled(f->c), 1);
    }
    bp_callable_unref(grad_step);
    bp_callable_unref(g);
}

static void drops(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = NULL;
    bp_scope_begin(c);
    for (int i = 0; i < 3; i++)
        y = bp_cumsum(c, bp_add(c, x, i), 0);
    y = bp_keep(c, y);
    bp_scope_end(c);
    bp_print(c, y, "y");
    bp_return(f, bp_mul(c, y, 2));
    bp_tensor_unref(y);
}

static void c3_3_what_a_scope_still_owns_is_handed_on_and_no_more(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, drops), *h = QUIET(f, drops);
    for (int i = 0; i < 3; i++)
        AGREE(f, h, drops, 1, 2);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1, 2)).at[0], 6, 14);
    bp_callable_unref(h);
    assert_contains(buf_text(&f->tables), "((cumsum,),)");
    bp_callable_unref(g);
}

enum { THREADS = 8, ROUNDS = 60 };
typedef struct { fixture *f; bp_callable *g; unsigned seed; atomic_uint *wrong; } job;

static void *work(void *arg)
{
    job *j = arg;
    bp_ctx *c = bp_ctx_new(j->f->rt);
    ran = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        bp_scope_begin(c);
        float x[2] = {(float)((i * 7 + j->seed) % 30) - 10, 1}, y[2];
        float sum = x[0] + x[1] + 2, more = sum > 0 ? 1.0f : 0.0f;
        float again = sum + 2 * more > 10 ? 1.0f : 0.0f;
        int64_t n = 2;
        unsigned before = ran;
        bp_tensor *t = bp_tensor_from(c, BP_F32, 1, &n, x);
        bp_value v[1] = {bp_arg_of_tensor(t)};
        bp_args args = {v, 1};
        bp_outputs out = {0};
        bool ok = bp_call(c, j->g, &args, &out) == BP_OK && out.n == 2 && out.at[1] == t &&
                  bp_tensor_read(c, out.at[0], y, sizeof y) == BP_OK && y[0] == 2 * (x[0] + 1 + more + again) &&
                  ran - before == (unsigned)(more + again);
        atomic_fetch_add(j->wrong, !ok);
        bp_error_clear(c);
        bp_scope_end(c);
    }
    bp_ctx_destroy(c);
    return NULL;
}

static void c4_2_eight_threads_run_their_own_steps(void **state)
{
    fixture *f = *state;
    bp_callable *g = QUIET(f, breaks_around);
    pthread_t threads[THREADS];
    job jobs[THREADS];
    atomic_uint wrong = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        jobs[i] = (job){f, g, i, &wrong};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&wrong), 0);
    bp_callable_unref(g);
}

/* -- a callable that is given up inside its own call --------------------------------------------------------------- */

static _Thread_local bp_callable *leaving;
static bp_callable *leave_step;

static void leave_fn(bp_ctx *c, bp_frame *f)
{
    bp_callable_unref(leaving);
    leaving = NULL;
    bp_return(f, bp_add(c, bp_arg(f, 0, "x"), 1));
}

static void leaves(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_call1(c, leave_step, 1, &x);
    if (bp_is_true(c, bp_gt(c, bp_sum(c, y), 0)))
        y = bp_neg(c, y);
    bp_return(f, y);
}

/* A function that runs as it is, an unseen path, a known one, and one that a stance resumes eagerly. */
static void c4_2_a_step_may_give_up_the_callable_that_runs_it(void **state)
{
    fixture *f = *state;
    static const char *const stances[] = {"force_eager", "default", "default", "eager_on_recompile",
                                          "force_backend=eager"};
    leave_step = disabled(f, leave_fn, "leave_fn");
    bp_callable *other = QUIET(f, leaves); /* the code lives on, so that the second call knows the path */
    for (size_t i = 0; i < sizeof stances / sizeof *stances; i++) {
        bp_set_stance(f->c, stances[i]);
        bp_callable *g = leaving = QUIET(f, leaves);
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, i < 3 ? 1 : -9)).at[0], i < 3 ? -2 : -8);
        assert_null(leaving);
    }
    bp_set_stance(f->c, "default");
    leaving = bp_compile(f->c, leave_fn, &(bp_compile_options){.disable = 1});
    EXPECT_FLOATS(f, CALL(f, leaving, FLOATS(f, 1)).at[0], 2);
    leaving = QUIET(f, leaves); /* its code too has no other user */
    bp_callable_unref(other);
    EXPECT_FLOATS(f, CALL(f, leaving, FLOATS(f, 1)).at[0], -2);
    bp_callable_unref(leave_step);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        T(c4_2_a_disabled_function_runs_once_a_call_the_capturing_one_too),
        T(c4_2_steps_before_and_behind_breaks),
        T(c4_2_print_is_an_opaque_step),
        T(c4_2_fullgraph_names_the_place_of_a_step),
        T(c4_3_what_a_step_wrote_is_read_again),
        T(c4_3_a_result_that_is_an_argument_is_that_handle),
        T(c4_3_a_result_may_view_what_is_written_later),
        T(c4_3_what_was_asked_before_a_step_is_asked_again),
        T(c4_3_a_step_may_change_layouts_in_place),
        T(c4_3_inputs_are_guarded_anew_behind_a_step),
        T(c4_3_the_successor_is_guarded_on_sizes_and_aliases_of_results),
        T(c1_2_a_storage_that_a_disabled_function_has_seen_is_committed),
        T(c1_2_a_segment_that_fails_behind_a_commit_resumes_there),
        T(c1_2_a_failure_inside_a_step_is_final),
        T(c3_6_an_open_break_behind_a_step_resumes_behind_it),
        T(c7_the_generator_is_read_again_behind_a_step),
        T(c5_4_an_impure_part_behind_a_commit_resumes_at_the_commit),
        T(c5_4_an_impure_prefix_behind_a_commit_fails_and_says_so),
        T(c4_4_an_operator_that_cannot_be_captured_is_a_step_of_its_own),
        T(c4_2_a_step_runs_under_the_modes_of_its_place),
        T(c3_3_what_a_scope_still_owns_is_handed_on_and_no_more),
        T(c4_2_eight_threads_run_their_own_steps),
        T(c4_2_a_step_may_give_up_the_callable_that_runs_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
