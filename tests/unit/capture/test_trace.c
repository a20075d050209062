/* Traces by themselves: what a captured function leaves as items, sources, segments and guesses. */
#include "host/capture/trace.h"
#include "tests/unit/compile/fixture.h"

typedef struct { bindings vals; bp_value args[4]; trace *t; buf text; } capture;

static void run(fixture *f, capture *k, bp_fn fn, uint32_t n, bp_tensor *const *in, const outcome *log, uint32_t nlog)
{
    memset(k, 0, sizeof *k);
    for (uint32_t i = 0; i < n; i++)
        k->args[i] = bp_arg_of_tensor(in[i]);
    bind_init(&k->vals, f->c, k->args, n);
    trace_request r = {.fn = fn, .name = "f", .vals = &k->vals, .log = log, .nlog = nlog, .node_limit = 1000,
                       .break_limit = 64};
    k->t = trace_run(f->c, &r);
    assert_non_null(k->t);
    k->t->r = NULL;
    trace_print(k->t, &k->text);
}

static void done(capture *k)
{
    trace_destroy(k->t);
    bind_fini(&k->vals);
    buf_fini(&k->text);
}

#define RUN(f, k, fn, ...) \
    run((f), (k), (fn), (uint32_t)(sizeof((bp_tensor *[]){__VA_ARGS__}) / sizeof(bp_tensor *)), \
        (bp_tensor *[]){__VA_ARGS__}, NULL, 0)

static void two_breaks(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_mul(c, x, 2);
    if (bp_is_true(c, bp_gt(c, y, 0)))
        y = bp_add(c, y, 1);
    if (bp_item_int(c, y) == 5)
        y = bp_neg(c, y);
    bp_return(f, y);
}

static void c2_1_a_path_is_cut_at_its_breaks_in_program_order(void **state)
{
    fixture *f = *state;
    capture k;
    RUN(f, &k, two_breaks, FLOATS(f, 2));
    assert_int_equal(k.t->why, TRACE_RETURNED);
    assert_int_equal(k.t->segments.len, 3);
    assert_int_equal(k.t->nbreaks, 2);
    assert_int_equal(k.t->items.at[k.t->segments.at[1].first_item - 1].kind, ITEM_BREAK);
    assert_int_equal(k.t->guesses.len, 2);
    assert_int_equal(outcome_bool(k.t->guesses.at[0]), 1);
    assert_int_equal(outcome_int(k.t->guesses.at[1]), 5);
    assert_contains(buf_text(&k.text), "bp_is_true(%2)");
    assert_contains(buf_text(&k.text), "aten.neg.default");
    done(&k);
}

static void c3_1_the_log_is_forced_and_slices_answer_what_is_behind_it(void **state)
{
    fixture *f = *state;
    capture k;
    bp_tensor *x = FLOATS(f, 2);
    outcome no = {0, ASK_BOOL, 0};
    run(f, &k, two_breaks, 1, &x, &no, 1);
    assert_int_equal(k.t->guesses.len, 1);
    assert_int_equal(outcome_int(k.t->guesses.at[0]), 4);
    assert_null(strstr(buf_text(&k.text), "aten.add"));
    done(&k);
}

static void in_place(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *m = bp_view_default(c, x, BP_DIMS(2, 2));
    bp_add_inplace(c, bp_select(c, m, 0, 1), 10);
    bp_mul_inplace(c, bp_t(c, m), 2);
    bp_return(f, bp_add(c, x, m));
}

static void writes_through_views_become_new_values(void **state)
{
    fixture *f = *state;
    capture k;
    bp_tensor *x = FLOATS(f, 1, 2, 3, 4);
    uint64_t version = atomic_load(&x->store->version);
    RUN(f, &k, in_place, x);
    EXPECT_FLOATS(f, x, 1, 2, 3, 4); /* slices and recording write nothing of the caller's */
    assert_true(atomic_load(&x->store->version) == version);
    assert_contains(buf_text(&k.text), "aten.select_scatter.default");
    assert_null(strstr(buf_text(&k.text), "add_"));
    const item *end = &vec_last(&k.t->items);
    assert_int_equal(k.t->why, TRACE_FAILED); /* [4] and [2, 2] do not add: eager says so */
    assert_int_equal(end->kind, ITEM_NODE);
    done(&k);
}

static void declines(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_unsqueeze_inplace(c, bp_arg(f, 0, "x"), 0));
    bp_return(f, bp_add(c, bp_arg(f, 0, "x"), 1));
}

static void after_a_stop_nothing_is_recorded(void **state)
{
    fixture *f = *state;
    capture k;
    RUN(f, &k, declines, FLOATS(f, 2));
    assert_int_equal(k.t->why, TRACE_DECLINED);
    assert_contains(k.t->reason, "changes a tensor's sizes in place");
    assert_int_equal(k.t->items.len, 0);
    assert_int_equal(bp_error(f->c), BP_OK);
    done(&k);
}

static void same_inputs(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_arg(f, 1, "y");
    bp_return(f, x == y ? x : bp_add(c, x, y));
}

static void c6_2_one_object_is_one_handle(void **state)
{
    fixture *f = *state;
    capture k;
    bp_tensor *x = FLOATS(f, 2);
    RUN(f, &k, same_inputs, x, x);
    const item *end = &vec_last(&k.t->items);
    assert_int_equal(end->kind, ITEM_END);
    assert_true(end->end.outs[0].is_source);
    assert_int_equal(k.t->segments.at[0].touched.len, 2);
    done(&k);
    RUN(f, &k, same_inputs, x, FLOATS(f, 3));
    assert_int_equal(k.t->items.len, 2);
    done(&k);
}

static void modes_and_generator(bp_ctx *c, bp_frame *f)
{
    bp_set_grad_enabled(c, 0);
    bp_return(f, bp_add(c, bp_arg(f, 0, "x"), 1));
}

static void a_capture_leaves_the_context_as_it_was(void **state)
{
    fixture *f = *state;
    capture k;
    uint32_t depth = scope_depth(f->c);
    RUN(f, &k, modes_and_generator, FLOATS(f, 2));
    assert_int_equal(bp_grad_enabled(f->c), 1);
    assert_int_equal(scope_depth(f->c), depth);
    assert_null(f->c->modes);
    assert_int_equal(f->c->capturing, 0);
    assert_null(capture_current(f->c));
    done(&k);
}

static void asks_for_each_kind(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_mul(c, x, 2);
    bp_is_true(c, bp_gt(c, y, 0));
    bp_item_int(c, y);
    bp_item_float(c, y);
    bp_return(f, y);
}

static void c4_1_a_value_break_ends_in_an_outcome_of_its_kind(void **state)
{
    fixture *f = *state;
    capture k;
    RUN(f, &k, asks_for_each_kind, FLOATS(f, 2));
    assert_int_equal(k.t->guesses.len, 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(k.t->items.at[k.t->segments.at[i + 1].first_item - 1].kind, ITEM_BREAK);
    assert_int_equal(outcome_bool(k.t->guesses.at[0]), 1);
    assert_int_equal(outcome_int(k.t->guesses.at[1]), 4);
    assert_true(outcome_float(k.t->guesses.at[2]) == 4);
    done(&k);
}

/* A trace knows no callable: its path is all that it gives. */
static void c6_7_a_capture_yields_a_path_without_a_cache(void **state)
{
    fixture *f = *state;
    capture k;
    RUN(f, &k, two_breaks, FLOATS(f, 2));
    assert_int_equal(k.t->why, TRACE_RETURNED);
    assert_int_equal(vec_last(&k.t->items).kind, ITEM_END);
    assert_null(f->c->slot[CTX_CACHE]);
    done(&k);
}

/* Training is not there yet; what holds is that slices leave no trace of grad. */
static void c8_slices_run_without_grad(void **state)
{
    fixture *f = *state;
    capture k;
    bp_tensor *x = FLOATS(f, 2);
    bp_tensor_set_requires_grad(f->c, x, 1);
    RUN(f, &k, two_breaks, x);
    assert_true(k.t->slices.evaluated > 0);
    uint32_t i = 0;
    map_value *v;
    while (map_next(&k.t->slices.memo, &i, NULL, &v))
        assert_false(bp_tensor_requires_grad(v->p));
    assert_int_equal(f->c->ambient.grad_enabled, 1);
    done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        T(c4_1_a_value_break_ends_in_an_outcome_of_its_kind),
        T(c6_7_a_capture_yields_a_path_without_a_cache),
        T(c8_slices_run_without_grad),
        T(c2_1_a_path_is_cut_at_its_breaks_in_program_order),
        T(c3_1_the_log_is_forced_and_slices_answer_what_is_behind_it),
        T(writes_through_views_become_new_values),
        T(after_a_stop_nothing_is_recorded),
        T(c6_2_one_object_is_one_handle),
        T(a_capture_leaves_the_context_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
