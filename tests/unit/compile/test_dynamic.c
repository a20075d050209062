/* Sizes that change: what becomes dynamic, what is guarded, what is compiled again. Rows of the contract's table of
 * dynamic shapes have a test that begins with c11, cases of their own tests one that begins with c17. */
#include "tests/unit/compile/fixture.h"

/* A tensor of those sizes, 0, 1, 2 ... */
static bp_tensor *ramp(fixture *f, uint32_t rank, const int64_t *sizes)
{
    int64_t n = 1;
    for (uint32_t d = 0; d < rank; d++)
        n *= sizes[d];
    float *v = calloc((size_t)n + 1, sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)i;
    bp_tensor *t = bp_tensor_from(f->c, BP_F32, rank, sizes, v);
    free(v);
    assert_non_null(t);
    return t;
}
#define RAMP(f, ...) ramp((f), (uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

static const char *guards(fixture *f, const bp_callable *g)
{
    static buf text;
    buf_clear(&text);
    assert_int_equal(bp_print_guards(f->c, g, fixture_append, &text), BP_OK);
    return buf_text(&text);
}

static void expect_same(fixture *f, bp_callable *g, bp_fn fn, uint32_t n, bp_tensor *const *in)
{
    bp_value v[8];
    for (uint32_t i = 0; i < n; i++)
        v[i] = bp_arg_of_tensor(in[i]);
    bp_args args = {v, n};
    bp_outputs got = call_n(f, g, n, in), want = {0};
    if (bp_run_eager(f->c, fn, NULL, &args, &want) != BP_OK)
        fail_msg("%s", bp_error_text(f->c));
    assert_int_equal(got.n, want.n);
    for (uint32_t i = 0; i < got.n; i++) {
        tensor_meta a, b;
        tensor_get_meta(got.at[i], &a);
        tensor_get_meta(want.at[i], &b);
        assert_int_equal(a.rank, b.rank);
        for (uint32_t d = 0; d < a.rank; d++) {
            assert_int_equal(a.sizes[d].sym | a.strides[d].sym, 0);
            assert_int_equal(a.sizes[d].value, b.sizes[d].value);
            assert_int_equal(a.strides[d].value, b.strides[d].value);
        }
        size_t bytes = (size_t)tensor_nelem(got.at[i]) * sizeof(float);
        float *x = malloc(bytes + 1), *y = malloc(bytes + 1);
        assert_int_equal(bp_tensor_read(f->c, got.at[i], x, bytes), BP_OK);
        assert_int_equal(bp_tensor_read(f->c, want.at[i], y, bytes), BP_OK);
        assert_memory_equal(x, y, bytes);
        free(x);
        free(y);
    }
}
#define SAME(f, g, fn, ...)                                                                                            \
    expect_same((f), (g), (fn), (uint32_t)(sizeof((bp_tensor *[]){__VA_ARGS__}) / sizeof(bp_tensor *)),                \
                (bp_tensor *[]){__VA_ARGS__})

/* -- automatic ----------------------------------------------------------------------------------------------------- */

static void twice(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_add(c, bp_mul(c, bp_arg(f, 0, "x"), 2), 1));
}

static void c11_automatic_dynamic_c17_49_two_sizes_compile_twice_and_others_hit(void **state)
{
    fixture *f = *state;
    const int64_t sizes[] = {2, 3, 5, 7, 1, 0};
    const uint32_t graphs[] = {1, 2, 2, 2, 3, 4};
    bp_callable *g = COMPILE(f, twice);
    for (int i = 0; i < 6; i++) {
        SAME(f, g, twice, RAMP(f, sizes[i]));
        assert_int_equal(stats(f, g).graphs, graphs[i]);
    }
    assert_int_equal(stats(f, g).eager_calls, 0);
    for (int i = 0; i < 6; i++)
        SAME(f, g, twice, RAMP(f, sizes[i]));
    assert_int_equal(stats(f, g).graphs, 4);
    assert_int_equal(stats(f, g).captures, 4);
    bp_callable_unref(g);
}

static void c11_first_compile_is_static(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, twice);
    SAME(f, g, twice, RAMP(f, 4, 3));
    assert_non_null(strstr(guards(f, g), "L['x'].size() == (4, 3)"));
    SAME(f, g, twice, RAMP(f, 5, 3));
    assert_non_null(strstr(guards(f, g), "L['x'].size() == (None, 3)"));
    assert_non_null(strstr(guards(f, g), "2 <= L['x'].size()[0]"));
    bp_callable_unref(g);
}

static void ways(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_tensor *flat = bp_reshape(c, x, BP_DIMS(-1)), *head = bp_slice(c, x, .start = BP_SCALAR(1), .dim = 0);
    bp_return(f, bp_cat(c, BP_TENSORS(flat, flat)));
    bp_return(f, bp_add(c, bp_transpose(c, head, 0, 1), 1));
    bp_dim twofold = bp_dim_mul(c, bp_size(c, x, 0), bp_dim_of(2));
    bp_return(f, bp_expand(c, bp_unsqueeze(c, bp_sum(c, x), 0), BP_DIMS(twofold)));
    bp_return(f, head);
}

static void sizes_flow_through_views_and_results(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, ways);
    for (int64_t n = 4; n < 12; n++)
        SAME(f, g, ways, RAMP(f, n, 3));
    assert_int_equal(stats(f, g).captures, 2);
    assert_int_equal(stats(f, g).eager_calls, 0);
    for (int64_t n = 4; n < 12; n++)
        SAME(f, g, ways, RAMP(f, n, n));
    assert_int_equal(stats(f, g).captures, 3);
    bp_callable_unref(g);
}

static void sum_of_two(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_add(c, bp_arg(f, 0, "x"), bp_arg(f, 1, "y")));
}

static void c17_51_equal_dynamic_sizes_are_guarded_to_be_equal(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, sum_of_two);
    SAME(f, g, sum_of_two, RAMP(f, 3, 1), RAMP(f, 3, 1));
    SAME(f, g, sum_of_two, RAMP(f, 4, 1), RAMP(f, 4, 1));
    SAME(f, g, sum_of_two, RAMP(f, 5, 1), RAMP(f, 5, 1));
    assert_int_equal(stats(f, g).captures, 2);
    assert_non_null(strstr(guards(f, g), "L['x'].size()[0] == L['y'].size()[0]"));
    bp_error_clear(f->c);
    SAME(f, g, sum_of_two, RAMP(f, 5, 1), RAMP(f, 1, 1)); /* broadcast */
    assert_int_equal(stats(f, g).captures, 3);
    bp_callable_unref(g);
}

/* -- questions ----------------------------------------------------------------------------------------------------- */

static void long_or_short(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, bp_dim_gt(c, bp_size(c, x, 0), 6) ? bp_mul(c, x, 2) : bp_add(c, x, 1));
}

static void a_question_on_a_size_is_guarded_and_its_answer_recompiles(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, long_or_short);
    for (int64_t n = 3; n < 10; n++)
        SAME(f, g, long_or_short, RAMP(f, n));
    assert_int_equal(stats(f, g).captures, 3); /* 3, then up to 6, then above */
    assert_non_null(strstr(guards(f, g), "L['x'].size()[0] <= 6"));
    for (int64_t n = 3; n < 10; n++)
        SAME(f, g, long_or_short, RAMP(f, n));
    assert_int_equal(stats(f, g).captures, 3);
    bp_callable_unref(g);
}

static void unless_5123(bp_ctx *c, bp_frame *f)
{
    const int64_t not[] = {5, 1, 2, 3};
    bp_tensor *x = bp_arg(f, 0, "x");
    bool same = true;
    for (int64_t d = 0; d < 4 && same; d++)
        same = bp_dim_eq(c, bp_size(c, x, d), not[d]);
    bp_return(f, same ? bp_neg(c, x) : bp_relu(c, x));
}

static void A140_a_negated_conjunction_is_evaluated_on_all_terms(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = table_backend, .dynamic = 1};
    bp_callable *g = bp_compile(f->c, unless_5123, &o);
    SAME(f, g, unless_5123, RAMP(f, 5, 1, 3, 4));
    SAME(f, g, unless_5123, RAMP(f, 5, 1, 2, 3));
    SAME(f, g, unless_5123, RAMP(f, 5, 1, 2, 4));
    SAME(f, g, unless_5123, RAMP(f, 6, 1, 2, 3));
    bp_callable_unref(g);
}

/* -- the order of decisions ---------------------------------------------------------------------------------------- */

static void c11_decision_order_of_options_and_marks(void **state)
{
    fixture *f = *state;
    bp_compile_options on = {.backend_fn = table_backend, .dynamic = 1}, off = on;
    off.dynamic = -1;
    bp_callable *a = bp_compile(f->c, twice, &on), *b = bp_compile(f->c, twice, &off);
    for (int64_t n = 2; n < 6; n++) {
        SAME(f, a, twice, RAMP(f, n));
        SAME(f, b, twice, RAMP(f, n));
    }
    assert_int_equal(stats(f, a).captures, 1);
    assert_int_equal(stats(f, b).captures, 4);
    bp_callable_unref(a);
    bp_callable_unref(b);
}

static void c11_duck_shaping_shares_a_symbol_among_sizes_that_are_not_marked(void **state)
{
    fixture *f = *state;
    bp_compile_options on = {.backend_fn = table_backend, .dynamic = 1};
    bp_callable *g = bp_compile(f->c, twice, &on);
    SAME(f, g, twice, RAMP(f, 4, 4));
    assert_non_null(strstr(guards(f, g), "L['x'].size()[1] == L['x'].size()[0]"));
    SAME(f, g, twice, RAMP(f, 5, 5));
    assert_int_equal(stats(f, g).captures, 1);
    SAME(f, g, twice, RAMP(f, 5, 6));
    assert_int_equal(stats(f, g).captures, 2);
    bp_callable_unref(g);
}

static bp_tensor *marked(fixture *f, bp_tensor *t, int64_t dim)
{
    assert_int_equal(bp_mark_dynamic(f->c, t, dim, NULL), BP_OK);
    return t;
}

static void c11_mark_dynamic_gives_symbols_of_their_own(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, twice);
    SAME(f, g, twice, marked(f, RAMP(f, 4, 4), -1));
    SAME(f, g, twice, RAMP(f, 5, 6));
    assert_int_equal(stats(f, g).captures, 1);
    bp_callable_unref(g);
}

static void c17_37_unmarked_sizes_hit_what_was_marked_and_marks_on_static_code_recompile(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, twice);
    SAME(f, g, twice, marked(f, RAMP(f, 4), 0));
    SAME(f, g, twice, RAMP(f, 7));
    assert_int_equal(stats(f, g).captures, 1);
    bp_callable_unref(g);
    bp_callable *h = COMPILE(f, long_or_short);
    SAME(f, h, long_or_short, RAMP(f, 4));
    SAME(f, h, long_or_short, marked(f, RAMP(f, 4), 0));
    assert_int_equal(stats(f, h).captures, 2);
    SAME(f, h, long_or_short, RAMP(f, 3));
    assert_int_equal(stats(f, h).captures, 2);
    bp_callable_unref(h);
}

static bp_tensor *fixed(fixture *f, bp_tensor *t)
{
    assert_int_equal(bp_mark_static(f->c, t, -1), BP_OK);
    return t;
}

static void c11_mark_static_keeps_each_size_a_constant(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, twice);
    for (int64_t n = 2; n < 6; n++)
        SAME(f, g, twice, fixed(f, RAMP(f, n)));
    assert_int_equal(stats(f, g).captures, 4);
    bp_callable_unref(g);
}

/* -- constraints --------------------------------------------------------------------------------------------------- */

static void needs_number(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, bp_mul(c, x, (double)bp_size_int(c, bp_size(c, x, 0))));
}

static void expect_violation(fixture *f, bp_callable *g, bp_tensor *x, const char *words)
{
    bp_value v = bp_arg_of_tensor(x);
    bp_outputs out = {0};
    assert_int_equal(bp_call(f->c, g, &(bp_args){&v, 1}, &out), BP_INVALID_ARGUMENT);
    if (!strstr(bp_error_text(f->c), words))
        fail_msg("%s", bp_error_text(f->c));
    bp_error_clear(f->c);
}

static void c17_50_a_marked_size_that_is_specialized_is_an_error(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, needs_number);
    expect_violation(f, g, marked(f, RAMP(f, 5), 0), "Constraints violated (L['x'].size()[0])!");
    expect_violation(f, g, marked(f, RAMP(f, 5), 0),
                     "Not all values of RelaxedUnspecConstraint(L['x'].size()[0]) are valid because L['x'].size()[0] "
                     "was inferred to be a constant (5).");
    bp_tensor *x = RAMP(f, 5);
    assert_int_equal(bp_maybe_mark_dynamic(f->c, x, 0), BP_OK);
    SAME(f, g, needs_number, x);
    assert_int_equal(bp_set_config(f->c, "allow_ignore_mark_dynamic", "yes"), BP_OK);
    SAME(f, g, needs_number, marked(f, RAMP(f, 6), 0));
    bp_callable_unref(g);
}

static void c11_constraint_error_names_the_guard_that_cuts_a_strict_range(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, long_or_short);
    bp_tensor *x = RAMP(f, 5);
    assert_int_equal(bp_mark_dynamic(f->c, x, 0, &(bp_mark_options){.min = 3, .max = 8}), BP_OK);
    expect_violation(f, g, x, "satisfy the generated guard L['x'].size()[0] <= 6");
    bp_tensor *y = RAMP(f, 5);
    assert_int_equal(bp_mark_dynamic(f->c, y, 0, &(bp_mark_options){.min = 3, .max = 6}), BP_OK);
    SAME(f, g, long_or_short, y);
    SAME(f, g, long_or_short, RAMP(f, 6));
    assert_int_equal(stats(f, g).captures, 2);
    SAME(f, g, long_or_short, RAMP(f, 7)); /* out of its range */
    assert_int_equal(stats(f, g).captures, 3);
    bp_callable_unref(g);
}

/* -- exclusion ----------------------------------------------------------------------------------------------------- */

static void c17_46_exclusion_gives_static_sizes_back_to_static_code(void **state)
{
    fixture *f = *state;
    assert_int_equal(bp_set_config(f->c, "automatic_dynamic_exclusion_guard", "yes"), BP_OK);
    bp_callable *g = COMPILE(f, twice);
    SAME(f, g, twice, RAMP(f, 3, 4));
    SAME(f, g, twice, RAMP(f, 5, 4));
    SAME(f, g, twice, RAMP(f, 7, 4));
    assert_int_equal(stats(f, g).captures, 2);
    assert_non_null(strstr(guards(f, g), "!= 3"));
    SAME(f, g, twice, RAMP(f, 3, 4));
    assert_int_equal(stats(f, g).captures, 2);
    bp_callable_unref(g);
}

/* -- breaks -------------------------------------------------------------------------------------------------------- */

static void breaking(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_arg(f, 1, "y"), *z = bp_mul(c, x, 3);
    if (bp_is_true(c, bp_gt(c, bp_sum(c, x), 100)))
        z = bp_add(c, z, y);
    bp_return(f, bp_cat(c, BP_TENSORS(z, bp_zeros(c, BP_DIMS(bp_size(c, x, 0))))));
}

static void sizes_cross_breaks(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, breaking);
    for (int64_t n = 5; n < 30; n += 3)
        SAME(f, g, breaking, RAMP(f, n), RAMP(f, n));
    for (int64_t n = 5; n < 30; n += 3)
        SAME(f, g, breaking, RAMP(f, n), RAMP(f, n));
    assert_int_equal(stats(f, g).eager_calls, 0);
    assert_true(stats(f, g).captures <= 4);
    bp_callable_unref(g);
}

static void writing(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_add_inplace(c, bp_slice(c, x, .start = BP_SCALAR(1), .dim = 0), 5);
    bp_return(f, bp_mul(c, x, 2));
    bp_return(f, x);
}

static void inputs_of_changing_sizes_are_written(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, writing);
    for (int64_t n = 3; n < 9; n++) {
        bp_outputs out = CALL(f, g, RAMP(f, n));
        assert_int_equal(bp_tensor_numel(out.at[0]), n);
        assert_float_equal(at(f, out.at[1], n - 1), (float)(n + 4), 0);
        assert_float_equal(at(f, out.at[0], n - 1), (float)(2 * n + 8), 0);
    }
    assert_int_equal(stats(f, g).captures, 2);
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

static void printing(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_mul(c, x, 2);
    bp_dim n = bp_size(c, y, 0);
    bp_print(c, y, NULL);
    bp_return(f, bp_add(c, y, bp_ones(c, BP_DIMS(n))));
}

static void sizes_cross_opaque_steps(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, printing);
    for (int64_t n = 3; n < 9; n++) {
        bp_outputs out = CALL(f, g, RAMP(f, n));
        assert_int_equal(bp_tensor_numel(out.at[0]), n);
        assert_float_equal(at(f, out.at[0], n - 1), (float)(2 * n - 1), 0);
    }
    assert_int_equal(stats(f, g).eager_calls, 0);
    assert_true(stats(f, g).captures <= 4);
    bp_callable_unref(g);
}

/* -- numbers ------------------------------------------------------------------------------------------------------- */

static void times(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_dim n = bp_arg_dim(f, 1, "n");
    bp_return(f, bp_mul(c, bp_cat(c, BP_TENSORS(x, bp_ones(c, BP_DIMS(n)))), n));
}

static void c11_automatic_dynamic_integers(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, times);
    for (int64_t n = 3; n < 9; n++) {
        bp_value v[] = {bp_arg_of_tensor(RAMP(f, 2)), bp_arg_of_int(n)};
        bp_outputs out = {0};
        if (bp_call(f->c, g, &(bp_args){v, 2}, &out) != BP_OK)
            fail_msg("%s", bp_error_text(f->c));
        assert_int_equal(bp_tensor_numel(out.at[0]), n + 2);
        assert_float_equal(at(f, out.at[0], n + 1), (float)n, 0);
    }
    assert_int_equal(stats(f, g).captures, 2);
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

static bp_dim kept;

static void keeping(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_dim now = bp_size(c, x, 0), use = kept.sym ? kept : now;
    kept = now;
    bp_return(f, bp_ones(c, BP_DIMS(use)));
}

static void a_size_that_is_kept_beyond_its_capture_is_told(void **state)
{
    fixture *f = *state;
    bp_compile_options on = {.backend_fn = table_backend, .dynamic = 1, .fullgraph = 1};
    bp_compile_options other = {.backend = "eager", .dynamic = 1};
    bp_callable *g = bp_compile(f->c, keeping, &on), *h = bp_compile(f->c, keeping, &other);
    CALL(f, g, RAMP(f, 5));
    assert_true(kept.sym != 0);
    bp_value v = bp_arg_of_tensor(RAMP(f, 4, 2));
    bp_outputs out = {0};
    assert_int_equal(bp_call(f->c, h, &(bp_args){&v, 1}, &out), BP_FAILED_PRECONDITION);
    assert_contains(bp_error_text(f->c), "a symbolic size of a capture that has ended");
    bp_error_clear(f->c);
    bp_callable_unref(g);
    bp_callable_unref(h);
    kept = (bp_dim){0, 0, 0};
}

static void twice_two(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_mul(c, bp_arg(f, 0, "x"), 2));
    bp_return(f, bp_mul(c, bp_arg(f, 1, "y"), 2));
}

static bp_compiled *readable_backend(bp_graph_module *gm, const bp_inputs *in)
{
    (void)in;
    bp_print_readable(gm, bp_sink(gm));
    return bp_forward(gm);
}

/* -- progressive dynamism ------------------------------------------------------------------------------------------ */

static void excluding(fixture *f)
{
    assert_int_equal(bp_set_config(f->c, "automatic_dynamic_exclusion_guard", "yes"), BP_OK);
}

static void c17_47_each_input_goes_to_the_tightest_code(void **state)
{
    fixture *f = *state;
    excluding(f);
    bp_callable *g = COMPILE(f, twice);
    SAME(f, g, twice, RAMP(f, 2, 3, 4, 5));
    SAME(f, g, twice, RAMP(f, 6, 3, 4, 5));
    SAME(f, g, twice, RAMP(f, 7, 8, 4, 5));
    SAME(f, g, twice, RAMP(f, 7, 8, 9, 5));
    SAME(f, g, twice, RAMP(f, 7, 8, 9, 6));
    assert_int_equal(stats(f, g).captures, 5);
    SAME(f, g, twice, RAMP(f, 2, 3, 4, 5));
    SAME(f, g, twice, RAMP(f, 9, 3, 4, 5));
    SAME(f, g, twice, RAMP(f, 9, 9, 4, 5));
    SAME(f, g, twice, RAMP(f, 9, 9, 8, 5));
    SAME(f, g, twice, RAMP(f, 9, 9, 8, 8));
    assert_int_equal(stats(f, g).captures, 5);
    bp_callable_unref(g);
}

static void c11_exclusion_guard_c17_48_needs_all_the_old_sizes(void **state)
{
    fixture *f = *state;
    excluding(f);
    bp_callable *g = COMPILE(f, twice_two);
    SAME(f, g, twice_two, RAMP(f, 3, 4), RAMP(f, 5, 2));
    SAME(f, g, twice_two, RAMP(f, 6, 4), RAMP(f, 7, 2));
    assert_int_equal(stats(f, g).captures, 2);
    SAME(f, g, twice_two, RAMP(f, 3, 4), RAMP(f, 9, 2)); /* one of two: dynamic */
    SAME(f, g, twice_two, RAMP(f, 8, 4), RAMP(f, 5, 2));
    SAME(f, g, twice_two, RAMP(f, 3, 4), RAMP(f, 5, 2)); /* both: static */
    assert_int_equal(stats(f, g).captures, 2);
    bp_callable_unref(g);
}

/* -- precedence ---------------------------------------------------------------------------------------------------- */

static void c11_precedence_of_marks(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, twice);
    SAME(f, g, twice, marked(f, fixed(f, RAMP(f, 4)), 0));
    SAME(f, g, twice, RAMP(f, 5));
    assert_int_equal(stats(f, g).captures, 1);
    bp_callable_unref(g);
}

static void c11_source_lists_decide_by_name(void **state)
{
    fixture *f = *state;
    assert_int_equal(bp_set_config(f->c, "dynamic_sources", "L['x'], other"), BP_OK);
    bp_callable *g = COMPILE(f, twice);
    for (int64_t n = 2; n < 6; n++)
        SAME(f, g, twice, RAMP(f, n));
    assert_int_equal(stats(f, g).captures, 1);
    bp_callable_unref(g);
    assert_int_equal(bp_set_config(f->c, "dynamic_sources", "-"), BP_OK);
    assert_int_equal(bp_set_config(f->c, "static_sources", "x"), BP_OK);
    bp_callable *h = COMPILE(f, sum_of_two);
    for (int64_t n = 2; n < 6; n++)
        SAME(f, h, sum_of_two, RAMP(f, n), RAMP(f, n));
    assert_int_equal(stats(f, h).captures, 4);
    bp_callable_unref(h);
}

static void c11_strides_follow_from_sizes_unless_they_wobble(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, twice);
    for (int64_t n = 3; n < 6; n++)
        SAME(f, g, twice, RAMP(f, 4, n));
    assert_int_equal(stats(f, g).captures, 2);
    assert_non_null(strstr(guards(f, g), "L['x'].stride() == (None, 1)"));
    assert_null(strstr(guards(f, g), "<= L['x'].stride()"));
    for (int64_t n = 6; n < 9; n++) { /* rows of a wider tensor */
        bp_tensor *wide = RAMP(f, 4, n + n);
        SAME(f, g, twice, bp_slice(f->c, wide, .dim = 1, .end = BP_SCALAR(n)));
    }
    assert_true(stats(f, g).captures <= 4);
    bp_callable_unref(g);
}

static void c11_automatic_dynamic_after_a_change_of_rank(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, twice);
    SAME(f, g, twice, RAMP(f, 4));
    SAME(f, g, twice, RAMP(f, 4, 5));
    SAME(f, g, twice, RAMP(f, 6, 7));
    assert_int_equal(stats(f, g).captures, 2);
    bp_callable_unref(g);
}

static void with_weight(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_mul(c, bp_arg(f, 0, "x"), bp_attr(f, bp_user(f), "w")));
}

static void c11_parameters_are_static(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = table_backend, .dynamic = 1};
    o.user = bp_module_new(f->c);
    assert_int_equal(bp_module_add_parameter(f->c, o.user, "w", RAMP(f, 3)), BP_OK);
    bp_callable *g = bp_compile(f->c, with_weight, &o);
    CALL(f, g, RAMP(f, 4, 3));
    assert_non_null(strstr(guards(f, g), "L['m'].w.size() == (3,)"));
    bp_callable_unref(g);
    bp_module_unref(o.user);
}

static void c11_specialize_on_gives_a_size_code_of_its_own(void **state)
{
    fixture *f = *state;
    const int64_t special[] = {8, 16};
    bp_callable *g = COMPILE(f, twice);
    for (int64_t n = 7; n < 10; n++) {
        bp_tensor *x = RAMP(f, n);
        bp_mark_options o = {.specialize_on = special, .nspecialize_on = 2};
        assert_int_equal(bp_mark_dynamic(f->c, x, 0, &o), BP_OK);
        SAME(f, g, twice, x);
    }
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

static void c11_mark_dynamic_refuses_what_makes_no_sense(void **state)
{
    fixture *f = *state;
    bp_tensor *x = RAMP(f, 3);
    assert_int_equal(bp_mark_dynamic(f->c, x, 1, NULL), BP_INVALID_ARGUMENT);
    bp_error_clear(f->c);
    assert_int_equal(bp_mark_dynamic(f->c, x, 0, &(bp_mark_options){.min = 9, .max = 3}), BP_INVALID_ARGUMENT);
    bp_error_clear(f->c);
    assert_int_equal(bp_mark_dynamic(f->c, NULL, 0, NULL), BP_INVALID_ARGUMENT);
    bp_error_clear(f->c);
}

static void marking(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_mark_dynamic(c, x, 0, NULL);
    bp_return(f, x);
}

static void c11_mark_dynamic_inside_a_captured_function_is_an_error(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, marking);
    bp_value v = bp_arg_of_tensor(RAMP(f, 3));
    bp_outputs out = {0};
    assert_int_equal(bp_call(f->c, g, &(bp_args){&v, 1}, &out), BP_FAILED_PRECONDITION);
    bp_error_clear(f->c);
    bp_callable_unref(g);
}

static void c11_symbol_names_come_from_sources(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = readable_backend, .dynamic = 1};
    bp_callable *g = bp_compile(f->c, twice, &o);
    SAME(f, g, twice, RAMP(f, 4));
    char first[64];
    const char *at = strstr(buf_text(&f->tables), "f32[s");
    assert_non_null(at);
    snprintf(first, sizeof first, "%.8s", at);
    bp_reset(f->c);
    buf_clear(&f->tables);
    SAME(f, g, twice, RAMP(f, 9));
    assert_non_null(strstr(buf_text(&f->tables), first));
    bp_callable_unref(g);
}

static void A146_a_growing_length_reaches_one_graph_at_the_second_size(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, twice);
    for (int64_t n = 16; n < 60; n += 2)
        SAME(f, g, twice, RAMP(f, n, 4));
    assert_int_equal(stats(f, g).graphs, 2);
    assert_false(said(f, "recompile_limit"));
    bp_callable_unref(g);
}

static void a_failing_condition_is_named_with_its_values(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, long_or_short);
    SAME(f, g, long_or_short, RAMP(f, 3));
    SAME(f, g, long_or_short, RAMP(f, 4));
    assert_int_equal(bp_set_config(f->c, "error_on_recompile", "yes"), BP_OK);
    bp_value v = bp_arg_of_tensor(RAMP(f, 9));
    bp_outputs out = {0};
    assert_int_not_equal(bp_call(f->c, g, &(bp_args){&v, 1}, &out), BP_OK);
    assert_contains(bp_error_text(f->c), "L['x'].size()[0] <= 6 failed: L['x'].size()[0] = 9");
    bp_error_clear(f->c);
    bp_callable_unref(g);
}

/* -- further rows of the contract ---------------------------------------------------------------------------------- */

static void c11_constraint_strength_of_each_mark(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, needs_number);
    SAME(f, g, needs_number, RAMP(f, 4)); /* automatic: a number simply stays one */
    SAME(f, g, needs_number, RAMP(f, 5));
    SAME(f, g, needs_number, RAMP(f, 6));
    assert_int_equal(stats(f, g).captures, 3);
    bp_tensor *x = RAMP(f, 7);
    assert_int_equal(bp_mark_unbacked(f->c, x, 0, 1), BP_OK);
    bp_value v = bp_arg_of_tensor(x);
    bp_outputs out = {0};
    bp_call(f->c, g, &(bp_args){&v, 1}, &out); /* nothing is known of it: eager answers */
    assert_int_equal(bp_error(f->c), BP_OK);
    assert_true(stats(f, g).eager_calls > 0);
    bp_callable_unref(g);
}

static void c11_zero_one_are_constants_and_others_begin_at_2(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = table_backend, .dynamic = 1};
    bp_callable *g = bp_compile(f->c, twice, &o);
    SAME(f, g, twice, RAMP(f, 1, 5));
    assert_non_null(strstr(guards(f, g), "L['x'].size() == (1, None)"));
    assert_non_null(strstr(guards(f, g), "2 <= L['x'].size()[1]"));
    SAME(f, g, twice, RAMP(f, 2, 5));
    SAME(f, g, twice, RAMP(f, 1, 0));
    assert_int_equal(stats(f, g).captures, 3);
    bp_callable_unref(g);
}

static void c11_views_as_inputs(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, writing);
    for (int64_t n = 3; n < 8; n++) {
        bp_tensor *base = RAMP(f, 2, n), *row = bp_select(f->c, base, 0, 1);
        bp_outputs out = CALL(f, g, row);
        assert_ptr_equal(out.at[1], row);
        assert_float_equal(at(f, base, 2 * n - 1), (float)(2 * n + 4), 0);
    }
    assert_int_equal(stats(f, g).eager_calls, 0);
    assert_int_equal(stats(f, g).captures, 2);
    bp_callable_unref(g);
}

static bp_callable *inner;

static void outer(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_mul(c, bp_arg(f, 0, "x"), 2);
    bp_return(f, bp_add(c, bp_call1(c, inner, 1, &x), 1));
}

static void c11_symbolic_inputs_stay_symbolic_in_what_is_inlined(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, outer);
    inner = COMPILE(f, long_or_short);
    for (int64_t n = 8; n < 14; n++)
        SAME(f, g, outer, RAMP(f, n));
    assert_int_equal(stats(f, g).captures, 2);
    bp_callable_unref(g);
    bp_callable_unref(inner);
}

static void pinned(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_mark_static(c, x, 0);
    bp_return(f, bp_mul(c, x, 2));
}

static void c11_mark_static_inside_a_function_specializes(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = table_backend, .dynamic = 1};
    bp_callable *g = bp_compile(f->c, pinned, &o);
    for (int64_t n = 3; n < 6; n++)
        SAME(f, g, pinned, RAMP(f, n));
    assert_int_equal(stats(f, g).captures, 3);
    assert_non_null(strstr(guards(f, g), "L['x'].size()[0] == 4"));
    bp_callable_unref(g);
}

static void ordered(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_arg(f, 1, "y");
    bool far = bp_dim_ne(c, bp_size(c, y, 0), 11), near = bp_dim_lt(c, bp_size(c, x, 0), 9);
    bp_return(f, far && near ? bp_cat(c, BP_TENSORS(x, y)) : x);
}

static void c11_guard_order_is_equalities_conditions_bounds(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = table_backend, .dynamic = 1};
    bp_callable *g = bp_compile(f->c, ordered, &o);
    SAME(f, g, ordered, RAMP(f, 4, 4), RAMP(f, 5, 4));
    const char *text = guards(f, g), *equal = strstr(text, "L['x'].size()[1] == L['x'].size()[0]");
    const char *first = strstr(text, "L['y'].size()[0] != 11"), *second = strstr(text, "L['x'].size()[0] <= 8");
    const char *bounds = strstr(text, "2 <= L['x'].size()[0]");
    assert_true(equal && first && second && bounds);
    assert_true(equal < first && first < second && second < bounds);
    assert_true(strstr(text, "L['x'].dtype") < equal);
    bp_callable_unref(g);
}

static void c11_newest_first_is_why_exclusion_exists(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, twice);
    SAME(f, g, twice, RAMP(f, 3, 4));
    SAME(f, g, twice, RAMP(f, 5, 4));
    SAME(f, g, twice, RAMP(f, 3, 4)); /* the dynamic code serves it now */
    assert_int_equal(stats(f, g).captures, 2);
    assert_null(strstr(guards(f, g), "!= 3"));
    bp_callable_unref(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        T(c11_automatic_dynamic_c17_49_two_sizes_compile_twice_and_others_hit),
        T(c11_first_compile_is_static),
        T(sizes_flow_through_views_and_results),
        T(c17_51_equal_dynamic_sizes_are_guarded_to_be_equal),
        T(a_question_on_a_size_is_guarded_and_its_answer_recompiles),
        T(A140_a_negated_conjunction_is_evaluated_on_all_terms),
        T(c11_decision_order_of_options_and_marks),
        T(c11_duck_shaping_shares_a_symbol_among_sizes_that_are_not_marked),
        T(c11_mark_dynamic_gives_symbols_of_their_own),
        T(c17_37_unmarked_sizes_hit_what_was_marked_and_marks_on_static_code_recompile),
        T(c11_mark_static_keeps_each_size_a_constant),
        T(c17_50_a_marked_size_that_is_specialized_is_an_error),
        T(c11_constraint_error_names_the_guard_that_cuts_a_strict_range),
        T(c17_46_exclusion_gives_static_sizes_back_to_static_code),
        T(sizes_cross_breaks),
        T(inputs_of_changing_sizes_are_written),
        T(sizes_cross_opaque_steps),
        T(c11_automatic_dynamic_integers),
        T(a_size_that_is_kept_beyond_its_capture_is_told),
        T(c17_47_each_input_goes_to_the_tightest_code),
        T(c11_exclusion_guard_c17_48_needs_all_the_old_sizes),
        T(c11_precedence_of_marks),
        T(c11_source_lists_decide_by_name),
        T(c11_strides_follow_from_sizes_unless_they_wobble),
        T(c11_automatic_dynamic_after_a_change_of_rank),
        T(c11_parameters_are_static),
        T(c11_specialize_on_gives_a_size_code_of_its_own),
        T(c11_mark_dynamic_refuses_what_makes_no_sense),
        T(c11_mark_dynamic_inside_a_captured_function_is_an_error),
        T(c11_symbol_names_come_from_sources),
        T(A146_a_growing_length_reaches_one_graph_at_the_second_size),
        T(a_failing_condition_is_named_with_its_values),
        T(c11_constraint_strength_of_each_mark),
        T(c11_zero_one_are_constants_and_others_begin_at_2),
        T(c11_views_as_inputs),
        T(c11_symbolic_inputs_stay_symbolic_in_what_is_inlined),
        T(c11_mark_static_inside_a_function_specializes),
        T(c11_guard_order_is_equalities_conditions_bounds),
        T(c11_newest_first_is_why_exclusion_exists),
#undef T
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
