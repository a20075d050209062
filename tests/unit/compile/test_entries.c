/* C6: guards and entries, arguments of all kinds, aliasing, nested callables, limits, regions. */
#include "tests/unit/compile/fixture.h"

static void add_one(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_add(c, bp_arg(f, 0, "x"), 1));
}

static bp_tensor *zeros(fixture *f, bp_dtype d, int64_t n)
{
    return bp_tensor_from(f->c, d, 1, &n, NULL);
}

/* -- recompiles and their reasons ---------------------------------------------------------------------------------- */

static void expect_recompile(fixture *f, bp_callable *g, bp_tensor *x, const char *reason)
{
    uint32_t before = stats(f, g).recompiles;
    buf text = {0};
    CALL(f, g, x);
    assert_int_equal(stats(f, g).recompiles, before + 1);
    CALL(f, g, x);
    assert_int_equal(stats(f, g).recompiles, before + 1);
    bp_print_explain(f->c, g, fixture_append, &text);
    assert_contains(buf_text(&text), reason);
    buf_fini(&text);
}

static void another_size_dtype_stride_grad_or_mode_recompiles_with_its_reason(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, add_one);
    CALL(f, g, zeros(f, BP_F32, 3));
    expect_recompile(f, g, zeros(f, BP_F32, 4), "tensor 'x' size mismatch at index 0. expected 3, actual 4");
    expect_recompile(f, g, zeros(f, BP_F64, 3), "dtype mismatch");
    expect_recompile(f, g, bp_slice(f->c, zeros(f, BP_F32, 6), .step = BP_SCALAR(2)),
                     "tensor 'x' stride mismatch at index 0. expected 1, actual 2");
    bp_tensor *w = zeros(f, BP_F32, 3);
    bp_tensor_set_requires_grad(f->c, w, 1);
    expect_recompile(f, g, w, "tensor 'x' requires_grad mismatch. expected requires_grad=0");
    bp_set_grad_enabled(f->c, 0);
    expect_recompile(f, g, zeros(f, BP_F32, 3), "grad_mode");
    bp_set_grad_enabled(f->c, 1);
    assert_int_equal(stats(f, g).entries, 6);
    bp_callable_unref(g);
}

static void the_last_used_entry_moves_to_the_front(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, add_one);
    for (int i = 0; i < 20; i++)
        for (int n = 1; n < 5; n++)
            CALL(f, g, zeros(f, BP_F32, n));
    assert_int_equal(stats(f, g).entries, 4);
    assert_int_equal(stats(f, g).hits, 76);
    buf text = {0};
    bp_print_guards(f->c, g, fixture_append, &text);
    const char *front = strstr(buf_text(&text), "entry 0"), *next = strstr(buf_text(&text), "entry 1");
    assert_non_null(front);
    const char *size = strstr(front, "size");
    assert_true(size && size < next);
    assert_non_null(strstr(size, "4"));
    assert_true(strstr(size, "4") < next);
    buf_fini(&text);
    bp_callable_unref(g);
}

static void error_on_recompile_names_the_guard(void **state)
{
    fixture *f = *state;
    assert_int_equal(bp_set_config(f->c, "error_on_recompile", "yes"), BP_OK);
    bp_callable *g = COMPILE(f, add_one);
    CALL(f, g, zeros(f, BP_F32, 3));
    bp_tensor *x = zeros(f, BP_F32, 4);
    assert_null(bp_call1(f->c, g, 1, &x));
    assert_contains(bp_error_text(f->c), "recompiling function \"add_one\"");
    assert_contains(bp_error_text(f->c), "expected 3, actual 4");
    bp_error_clear(f->c);
    bp_callable_unref(g);
}

/* -- limits -------------------------------------------------------------------------------------------------------- */

static void c3_5_the_ninth_entry_trips_the_limit_with_one_warning(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, add_one);
    for (int k = 0; k < 2; k++)
        for (int n = 1; n <= 12; n++)
            assert_int_equal(bp_tensor_numel(CALL(f, g, zeros(f, BP_F32, n)).at[0]), n);
    assert_int_equal(stats(f, g).entries, 8);
    assert_int_equal(stats(f, g).eager_calls, 8);
    const char *warning = strstr(buf_text(&f->log), "hit config.recompile_limit (8)");
    assert_non_null(warning);
    assert_null(strstr(warning + 1, "hit config."));
    assert_contains(warning, "function: \"add_one\"");
    assert_contains(warning, "last reason: tensor 'x' size mismatch at index 0. expected 7, actual 8");
    assert_contains(warning, "BACKPLANE_LOGS=recompiles");
    bp_callable_unref(g);
}

static void c3_5_a_callables_own_limit_is_stricter_or_looser(void **state)
{
    fixture *f = *state;
    bp_compile_options one = {.backend_fn = table_backend, .recompile_limit = 1};
    bp_compile_options ten = {.backend_fn = table_backend, .recompile_limit = 10, .user = f};
    bp_callable *g = bp_compile(f->c, add_one, &one), *h = bp_compile(f->c, add_one, &ten);
    for (int n = 1; n <= 10; n++) {
        CALL(f, g, zeros(f, BP_F32, n));
        CALL(f, h, zeros(f, BP_F32, n));
    }
    assert_int_equal(stats(f, g).entries, 1);
    assert_int_equal(stats(f, g).eager_calls, 9);
    assert_int_equal(stats(f, h).entries, 10);
    bp_callable_unref(g);
    bp_callable_unref(h);
}

static void c3_5_accumulated_and_capture_limits_run_eagerly(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, add_one);
    assert_int_equal(bp_set_config(f->c, "accumulated_recompile_limit", "3"), BP_OK);
    for (int n = 1; n <= 6; n++)
        CALL(f, g, zeros(f, BP_F32, n));
    assert_int_equal(stats(f, g).graphs, 3);
    assert_contains(buf_text(&f->log), "hit config.accumulated_recompile_limit (3)");
    assert_int_equal(bp_set_config(f->c, "accumulated_recompile_limit", "100"), BP_OK);
    assert_int_equal(bp_set_config(f->c, "capture_limit", "4"), BP_OK);
    for (int n = 1; n <= 6; n++)
        CALL(f, g, zeros(f, BP_F32, n));
    assert_int_equal(stats(f, g).captures, 4);
    assert_contains(buf_text(&f->log), "hit config.capture_limit (4)");
    bp_callable_unref(g);
}

static void c3_5_fullgraph_makes_the_limit_an_error(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = table_backend, .recompile_limit = 1, .fullgraph = 1};
    bp_callable *g = bp_compile(f->c, add_one, &o);
    CALL(f, g, zeros(f, BP_F32, 1));
    bp_tensor *x = zeros(f, BP_F32, 2);
    assert_null(bp_call1(f->c, g, 1, &x));
    assert_contains(bp_error_text(f->c), "hit config.recompile_limit (1)");
    assert_contains(bp_error_text(f->c), "fullgraph = 1");
    bp_error_clear(f->c);
    bp_callable_unref(g);
}

/* -- C6.1 ---------------------------------------------------------------------------------------------------------- */

static void looks_at_w_in_a_branch(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    if (bp_is_true(c, bp_gt(c, bp_sum(c, x), 0)))
        x = bp_mul(c, x, bp_sum(c, bp_arg(f, 1, "w")));
    bp_return(f, x);
}

static void c6_1_a_branchs_guard_evicts_no_call_that_does_not_take_it(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, looks_at_w_in_a_branch);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1), FLOATS(f, 2, 3)).at[0], 5);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, -1), FLOATS(f, 2, 3)).at[0], -1);
    uint32_t captures = stats(f, g).captures;
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, -1), FLOATS(f, 2, 3, 4)).at[0], -1);
    assert_int_equal(stats(f, g).captures, captures);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1), FLOATS(f, 2, 3, 4)).at[0], 9); /* a variant of the outcome */
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1), FLOATS(f, 2, 3)).at[0], 5);
    assert_int_equal(stats(f, g).captures, captures + 1);
    assert_int_equal(stats(f, g).entries, 1);
    bp_callable_unref(g);
}

/* -- C6.2 ---------------------------------------------------------------------------------------------------------- */

static void write_first(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_arg(f, 1, "y"), *before = bp_mul(c, y, 1);
    bp_add_inplace(c, x, 10);
    bp_return(f, before);
    bp_return(f, bp_mul(c, y, 1));
    bp_return(f, bp_add(c, x, y));
}

static bp_tensor *part(fixture *f, bp_tensor *t, int64_t from, int64_t n)
{
    return bp_slice(f->c, t, .start = BP_SCALAR(from), .end = BP_SCALAR(from + n));
}

static void c6_2_overlapping_inputs_see_each_others_writes(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, write_first);
    for (int i = 0; i < 3; i++) {
        bp_tensor *b = FLOATS(f, 1, 2, 3, 4);
        bp_outputs o = CALL(f, g, part(f, b, 0, 2), part(f, b, 1, 2)); /* overlap by one */
        EXPECT_FLOATS(f, b, 11, 12, 3, 4);
        EXPECT_FLOATS(f, o.at[0], 2, 3);
        EXPECT_FLOATS(f, o.at[1], 12, 3);
        EXPECT_FLOATS(f, o.at[2], 23, 15);
        b = FLOATS(f, 1, 2, 3, 4);
        o = CALL(f, g, part(f, b, 0, 2), part(f, b, 2, 2)); /* neighbours */
        EXPECT_FLOATS(f, b, 11, 12, 3, 4);
        EXPECT_FLOATS(f, o.at[1], 3, 4);
        b = FLOATS(f, 1, 2, 3, 4);
        o = CALL(f, g, part(f, b, 1, 2), part(f, b, 0, 2)); /* the other way round */
        EXPECT_FLOATS(f, b, 1, 12, 13, 4);
        EXPECT_FLOATS(f, o.at[1], 1, 12);
    }
    assert_int_equal(stats(f, g).captures, 3);
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

static void read_only(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_add(c, bp_arg(f, 0, "x"), bp_arg(f, 1, "y")));
}

static void c6_2_overlap_matters_only_where_something_is_written(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, read_only);
    bp_tensor *b = FLOATS(f, 1, 2, 3, 4);
    EXPECT_FLOATS(f, CALL(f, g, part(f, b, 0, 2), part(f, b, 1, 2)).at[0], 3, 5);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1, 2), FLOATS(f, 3, 4)).at[0], 4, 6);
    EXPECT_FLOATS(f, CALL(f, g, part(f, b, 0, 2), part(f, b, 2, 2)).at[0], 4, 6);
    assert_int_equal(stats(f, g).captures, 1);
    bp_tensor *x = FLOATS(f, 1, 2);
    EXPECT_FLOATS(f, CALL(f, g, x, x).at[0], 2, 4);
    EXPECT_FLOATS(f, CALL(f, g, x, FLOATS(f, 3, 4)).at[0], 4, 6);
    assert_int_equal(stats(f, g).captures, 2); /* f(x, x) has an entry of its own */
    assert_contains(buf_text(&f->tables), "(x, x)");
    bp_callable_unref(g);
}

static void copies_over(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_arg(f, 1, "y");
    bp_copy_inplace(c, x, y);
    bp_return(f, bp_add(c, x, 1));
}

static void c6_2_a_leaf_for_an_overlap_serves_calls_with_that_overlap(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, copies_over);
    for (int i = 0; i < 3; i++) {
        bp_tensor *b = FLOATS(f, 1, 2, 3), *in[] = {part(f, b, 0, 2), part(f, b, 1, 2)};
        assert_null(bp_call1(f->c, g, 2, in));
        assert_contains(bp_error_text(f->c), "shares some of its memory");
        bp_error_clear(f->c);
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1, 2), FLOATS(f, 3, 4)).at[0], 4, 5);
    }
    assert_int_equal(stats(f, g).captures, 2);
    assert_int_equal(stats(f, g).eager_calls, 3);
    bp_callable_unref(g);
}

static void optional_bias(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *bias = bp_arg_count(f) > 1 ? bp_arg_optional(f, 1, "bias") : NULL;
    bp_return(f, bias ? bp_add(c, x, bias) : bp_mul(c, x, 1));
}

static void c6_2_null_and_the_number_of_arguments_are_guarded(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, optional_bias);
    for (int i = 0; i < 3; i++) {
        bp_tensor *x = FLOATS(f, 1, 2);
        bp_value two[] = {bp_arg_of_tensor(x), bp_arg_of_tensor(NULL)};
        bp_args args = {two, 2};
        bp_outputs o = {0};
        assert_int_equal(bp_call(f->c, g, &args, &o), BP_OK);
        EXPECT_FLOATS(f, o.at[0], 1, 2);
        EXPECT_FLOATS(f, CALL(f, g, x).at[0], 1, 2);
        EXPECT_FLOATS(f, CALL(f, g, x, FLOATS(f, 3, 4)).at[0], 4, 6);
    }
    assert_int_equal(stats(f, g).entries, 3);
    assert_int_equal(stats(f, g).captures, 3);
    bp_callable_unref(g);
}

static void numbers(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    x = bp_mul(c, x, bp_arg_int(f, 1, "n"));
    x = bp_add(c, x, bp_scalar_float(bp_arg_float(f, 2, "y")));
    if (bp_arg_bool(f, 3, "negate"))
        x = bp_neg(c, x);
    if (!strcmp(bp_arg_str(f, 4, "how"), "twice"))
        x = bp_mul(c, x, 2);
    bp_return(f, x);
}

static float call_numbers(fixture *f, bp_callable *g, int64_t n, double y, int negate, const char *how)
{
    bp_value v[] = {bp_arg_of_tensor(FLOATS(f, 1)), bp_arg_of_int(n), bp_arg_of_float(y), bp_arg_of_bool(negate),
                    bp_arg_of_str(how)};
    bp_args args = {v, 5};
    bp_outputs o = {0};
    assert_int_equal(bp_call(f->c, g, &args, &o), BP_OK);
    return at(f, o.at[0], 0);
}

static void c5_2_numbers_and_strings_are_guarded(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, numbers);
    for (int i = 0; i < 2; i++) {
        assert_true(call_numbers(f, g, 3, 0.5, 0, "once") == 3.5f);
        assert_true(call_numbers(f, g, 4, 0.5, 0, "once") == 4.5f);
        assert_true(call_numbers(f, g, 3, 0.25, 0, "once") == 3.25f);
        assert_true(call_numbers(f, g, 3, 0.5, 1, "once") == -3.5f);
        assert_true(call_numbers(f, g, 3, 0.5, 0, "twice") == 7);
    }
    assert_int_equal(stats(f, g).entries, 5);
    assert_int_equal(stats(f, g).captures, 5);
    bp_callable_unref(g);
}

static void a_wrong_kind_of_argument_is_named(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, add_one);
    bp_value v = bp_arg_of_int(3);
    bp_args args = {&v, 1};
    bp_outputs o = {0};
    assert_int_equal(bp_call(f->c, g, &args, &o), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_text(f->c), "argument 0 \"x\": expected a tensor, got an int");
    bp_error_clear(f->c);
    args.n = 0;
    assert_int_equal(bp_call(f->c, g, &args, &o), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_text(f->c), "the call passed 0 arguments");
    bp_error_clear(f->c);
    bp_callable_unref(g);
}

/* -- attributes ---------------------------------------------------------------------------------------------------- */

static void linear(bp_ctx *c, bp_frame *f)
{
    bp_module *m = bp_user(f);
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_add_inplace(c, bp_attr(f, m, "fc.calls"), 1);
    bp_return(f, bp_add(c, bp_mul(c, x, bp_attr(f, m, "fc.weight")), bp_attr(f, m, "fc.weight")));
}

static void attributes_are_read_at_each_call_and_guarded(void **state)
{
    fixture *f = *state;
    bp_module *m = bp_module_new(f->c);
    bp_tensor *w = FLOATS(f, 2), *calls = FLOATS(f, 0);
    bp_module_add_parameter(f->c, m, "fc.weight", w);
    bp_module_add_buffer(f->c, m, "fc.calls", calls);
    bp_compile_options o = {.backend_fn = table_backend, .user = m};
    bp_callable *g = bp_compile(f->c, linear, &o);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 3)).at[0], 8);
    bp_set_grad_enabled(f->c, 0);
    bp_fill_inplace(f->c, w, 5);
    bp_set_grad_enabled(f->c, 1);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 3)).at[0], 20);
    EXPECT_FLOATS(f, calls, 2);
    assert_int_equal(stats(f, g).captures, 1);
    assert_contains(buf_text(&f->tables), "placeholder    fc_weight");
    assert_contains(buf_text(&f->tables), "fc.weight");
    bp_callable_unref(g);
    bp_module_unref(m);
}

/* -- C6.5 ---------------------------------------------------------------------------------------------------------- */

static bp_callable *inner;

static void calls_another(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *in[] = {bp_mul(c, x, 2)};
    bp_return(f, bp_call1(c, inner, 1, in));
}

static void calls_itself(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, bp_call1(c, inner, 1, &x));
}

static int disabled_runs;

static void counts_its_runs(bp_ctx *c, bp_frame *f)
{
    disabled_runs++;
    bp_return(f, bp_add(c, bp_arg(f, 0, "x"), 1));
}

static void c4_2_a_disabled_callable_is_no_part_of_a_graph(void **state)
{
    fixture *f = *state;
    bp_compile_options off = {.disable = 1};
    inner = bp_compile(f->c, counts_its_runs, &off);
    bp_callable *g = COMPILE(f, calls_another);
    disabled_runs = 0;
    for (int i = 0; i < 3; i++)
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 3)).at[0], 7);
    assert_int_equal(disabled_runs, 3); /* once a call */
    assert_int_equal(stats(f, g).eager_calls, 0);
    assert_int_equal(stats(f, g).steps, 3);
    bp_callable_unref(g);
    bp_callable_unref(inner);
}

static void c6_5_a_nested_callable_is_inlined(void **state)
{
    fixture *f = *state;
    inner = COMPILE(f, add_one);
    bp_callable *g = COMPILE(f, calls_another);
    for (int i = 0; i < 3; i++)
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 3)).at[0], 7);
    assert_int_equal(stats(f, g).graphs, 1);
    assert_int_equal(stats(f, inner).captures, 0);
    bp_callable_unref(g);
    bp_callable_unref(inner);
    inner = COMPILE(f, calls_itself);
    bp_tensor *x = FLOATS(f, 3);
    bp_compile_options o = {.backend_fn = table_backend, .fullgraph = 1};
    bp_callable *h = bp_compile(f->c, calls_another, &o);
    assert_null(bp_call1(f->c, h, 1, &x));
    assert_contains(bp_error_text(f->c), "nested 64 deep");
    bp_error_clear(f->c);
    bp_callable_unref(h);
    bp_callable_unref(inner);
}

/* -- sharing, regions, reset --------------------------------------------------------------------------------------- */

static void equal_callables_share_what_they_compile(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, add_one), *h = COMPILE(f, add_one);
    CALL(f, g, zeros(f, BP_F32, 3));
    CALL(f, h, zeros(f, BP_F32, 3));
    assert_int_equal(stats(f, h).captures, 1);
    assert_int_equal(stats(f, h).hits, 1);
    bp_compile_options o = {.backend_fn = table_backend, .options = (const char *const[]){"level", "2", NULL}};
    bp_callable *other = bp_compile(f->c, add_one, &o);
    CALL(f, other, zeros(f, BP_F32, 3));
    assert_int_equal(stats(f, other).captures, 1);
    assert_int_equal(stats(f, g).captures, 1);
    bp_callable_unref(g);
    bp_callable_unref(h);
    bp_callable_unref(other);
}

static void a_region_of_its_own_reads_the_default_one_and_writes_its_own(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = table_backend, .isolate = 1};
    bp_callable *g = COMPILE(f, add_one), *a = bp_compile(f->c, add_one, &o), *b = bp_compile(f->c, add_one, &o);
    CALL(f, g, zeros(f, BP_F32, 3));
    CALL(f, a, zeros(f, BP_F32, 3));
    assert_int_equal(stats(f, a).captures, 0);
    CALL(f, a, zeros(f, BP_F32, 4));
    CALL(f, b, zeros(f, BP_F32, 4));
    CALL(f, a, zeros(f, BP_F32, 4));
    assert_int_equal(stats(f, a).captures, 1);
    assert_int_equal(stats(f, b).captures, 1);
    assert_int_equal(stats(f, g).captures, 1);
    assert_int_equal(stats(f, a).eager_calls, 0);
    bp_callable_unref(a);
    bp_callable_unref(b);
    bp_callable_unref(g);
}

static void reset_empties_everything(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, add_one);
    CALL(f, g, zeros(f, BP_F32, 3));
    bp_reset(f->c);
    assert_int_equal(stats(f, g).entries, 0);
    assert_int_equal(stats(f, g).captures, 0);
    CALL(f, g, zeros(f, BP_F32, 3));
    assert_int_equal(stats(f, g).entries, 1);
    bp_callable_unref(g);
}

/* -- options ------------------------------------------------------------------------------------------------------- */

static void expect_bad(fixture *f, bp_compile_options o, const char *word)
{
    assert_null(bp_compile(f->c, add_one, &o));
    assert_contains(bp_error_text(f->c), word);
    bp_error_clear(f->c);
}

static void bad_options_are_refused(void **state)
{
    fixture *f = *state;
    const char *const options[] = {"level", "2", NULL}, *const odd[] = {"level", NULL};
    expect_bad(f, (bp_compile_options){.backend_fn = table_backend, .mode = "fastest"}, "unknown mode \"fastest\"");
    expect_bad(f, (bp_compile_options){.backend_fn = table_backend, .mode = "default", .options = options},
               "mode \"default\" and options are both given");
    expect_bad(f, (bp_compile_options){.backend_fn = table_backend, .options = odd}, "option \"level\" has no value");
    expect_bad(f, (bp_compile_options){.backend_fn = table_backend, .recompile_limit = -1}, "recompile_limit is -1");
    assert_null(bp_compile(f->c, NULL, NULL));
    assert_contains(bp_error_text(f->c), "the function is NULL");
    bp_error_clear(f->c);
    bp_compile_options off = {.disable = 1};
    bp_callable *g = bp_compile(f->c, add_one, &off);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1)).at[0], 2);
    assert_int_equal(stats(f, g).captures, 0);
    assert_ptr_equal(bp_callable_function(g), add_one);
    bp_callable_unref(g);
}

static bp_compiled *broken(bp_graph_module *gm, const bp_inputs *in)
{
    (void)in;
    return bp_refuse(gm, "no such thing as %s", "addition");
}

static void a_graph_that_does_not_compile_is_an_error_or_eager(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = broken};
    bp_callable *g = bp_compile(f->c, add_one, &o);
    bp_tensor *x = FLOATS(f, 1);
    assert_null(bp_call1(f->c, g, 1, &x));
    assert_contains(bp_error_text(f->c), "no such thing as addition");
    assert_contains(bp_error_text(f->c), "compiling __compiled_fn_0 of \"add_one\"");
    bp_error_clear(f->c);
    bp_set_config(f->c, "suppress_errors", "yes");
    for (int i = 0; i < 3; i++)
        EXPECT_FLOATS(f, CALL(f, g, x).at[0], 2);
    assert_int_equal(stats(f, g).captures, 2); /* the leaf serves the later ones */
    bp_callable_unref(g);
}

/* -- results ------------------------------------------------------------------------------------------------------- */

static void grads(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_arg(f, 1, "y");
    bp_return(f, bp_mul(c, x, 2));
    bp_return(f, bp_gt(c, x, 0));
    bp_return(f, bp_detach(c, x));
    bp_add_inplace(c, y, x);
}

static void results_and_written_inputs_require_grad_as_eager_says(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, grads);
    for (int i = 0; i < 2; i++) {
        bp_tensor *x = FLOATS(f, 1), *y = FLOATS(f, 2);
        bp_tensor_set_requires_grad(f->c, x, 1);
        bp_outputs o = CALL(f, g, x, y);
        assert_int_equal(bp_tensor_requires_grad(o.at[0]), 1);
        assert_int_equal(bp_tensor_requires_grad(o.at[1]), 0);
        assert_int_equal(bp_tensor_requires_grad(o.at[2]), 0);
        assert_true(bp_tensor_same_storage(o.at[2], x));
        assert_int_equal(bp_tensor_requires_grad(y), 1);
        assert_int_equal(bp_tensor_requires_grad(x), 1);
    }
    bp_callable_unref(g);
}

static void too_little_room_for_results_changes_nothing(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, write_first);
    bp_tensor *x = FLOATS(f, 1, 2), *y = FLOATS(f, 3, 4), *room[2];
    bp_value v[] = {bp_arg_of_tensor(x), bp_arg_of_tensor(y)};
    bp_args args = {v, 2};
    bp_outputs o = {room, 0, 2};
    assert_int_equal(bp_call(f->c, g, &args, &o), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_text(f->c), "gives 3 results, and there is room for 2");
    bp_error_clear(f->c);
    EXPECT_FLOATS(f, x, 1, 2);
    bp_callable_unref(g);
}

static void leaves_grad_off(bp_ctx *c, bp_frame *f)
{
    bp_set_grad_enabled(c, 0);
    bp_return(f, bp_add(c, bp_arg(f, 0, "x"), 1));
}

static void c6_3_a_mode_left_switched_is_put_back(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, leaves_grad_off);
    CALL(f, g, FLOATS(f, 1));
    assert_int_equal(bp_grad_enabled(f->c), 1);
    bp_compile_options off = {.disable = 1};
    bp_callable *h = bp_compile(f->c, leaves_grad_off, &off);
    CALL(f, h, FLOATS(f, 1));
    assert_int_equal(bp_grad_enabled(f->c), 1);
    assert_true(said(f, "a mode switched"));
    bp_callable_unref(g);
    bp_callable_unref(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup_static, fixture_teardown)
        T(another_size_dtype_stride_grad_or_mode_recompiles_with_its_reason),
        T(the_last_used_entry_moves_to_the_front),
        T(error_on_recompile_names_the_guard),
        T(c3_5_the_ninth_entry_trips_the_limit_with_one_warning),
        T(c3_5_a_callables_own_limit_is_stricter_or_looser),
        T(c3_5_accumulated_and_capture_limits_run_eagerly),
        T(c3_5_fullgraph_makes_the_limit_an_error),
        T(c6_1_a_branchs_guard_evicts_no_call_that_does_not_take_it),
        T(c6_2_overlapping_inputs_see_each_others_writes),
        T(c6_2_overlap_matters_only_where_something_is_written),
        T(c6_2_a_leaf_for_an_overlap_serves_calls_with_that_overlap),
        T(c6_2_null_and_the_number_of_arguments_are_guarded),
        T(c5_2_numbers_and_strings_are_guarded),
        T(a_wrong_kind_of_argument_is_named),
        T(attributes_are_read_at_each_call_and_guarded),
        T(c6_3_a_mode_left_switched_is_put_back),
        T(c4_2_a_disabled_callable_is_no_part_of_a_graph),
        T(c6_5_a_nested_callable_is_inlined),
        T(equal_callables_share_what_they_compile),
        T(a_region_of_its_own_reads_the_default_one_and_writes_its_own),
        T(reset_empties_everything),
        T(bad_options_are_refused),
        T(a_graph_that_does_not_compile_is_an_error_or_eager),
        T(results_and_written_inputs_require_grad_as_eager_says),
        T(too_little_room_for_results_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
