/* F062 to F065, F067, F068, F090, F091, F111, F115: what is guarded, cached, logged and explained of a call. */
#include "tests/lib/world.h"
#include <backplane/plugin.h>
#include <stdlib.h>

/* -- functions and calls ------------------------------------------------------------------------------------------- */

static void twice(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_mul(c, bp_arg(f, 0, "x"), 2));
}

static void negated_if_small(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    if (bp_is_true(c, bp_lt(c, bp_sum(c, x), 0)))
        x = bp_neg(c, x);
    bp_return(f, x);
}

static void plus_scalar(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_add(c, bp_arg(f, 0, "x"), bp_scalar_int(bp_arg_int(f, 1, "n"))));
}

static void where_nonzero(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_nonzero(c, bp_mul(c, bp_arg(f, 0, "x"), 2)));
}

static void noise(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_add(c, bp_arg(f, 0, "x"), bp_rand(c, BP_DIMS(4))));
}

static bp_callable *compiled(world *w, bp_fn fn, const bp_compile_options *options)
{
    bp_callable *g = bp_compile_at(w->c, fn, options, sizeof *options, "fn", __FILE__, __LINE__);
    world_ok(w, bp_error(w->c));
    return g;
}

static bp_callable *eager(world *w, bp_fn fn)
{
    return compiled(w, fn, &(bp_compile_options){.backend = "eager", .isolate = 1});
}

static bp_tensor *ones(world *w, bp_dtype dtype, uint32_t rank, const int64_t *sizes)
{
    bp_tensor *t = bp_tensor_from(w->c, dtype, rank, sizes, NULL);
    return bp_add(w->c, t, 1);
}

static void call(world *w, bp_callable *g, bp_tensor *x)
{
    assert_non_null(bp_call1(w->c, g, 1, &x));
    world_ok(w, bp_error(w->c));
}

static bp_callable_stats stats(world *w, const bp_callable *g)
{
    bp_callable_stats s = {.size = sizeof s};
    world_ok(w, bp_stats(w->c, g, &s));
    return s;
}

static void keep_text(void *arg, const char *text, size_t n)
{
    buf_add(arg, text, n);
}

static uint32_t count(const char *text, const char *part)
{
    uint32_t n = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        n++;
    return n;
}

/* A world whose log tells the artifacts named. */
static world *logging_world(const char *artifacts, const char *ini)
{
    setenv("BACKPLANE_LOGS", artifacts, 1);
    world *w = world_open(ini);
    unsetenv("BACKPLANE_LOGS");
    bp_scope_begin(w->c);
    return w;
}

static void close_world(world *w)
{
    bp_scope_end(w->c);
    world_close(w);
}

/* -- F062, F063, F064: a change compiles again, with a reason ---------------------------------------------------- */

typedef void (*change)(world *w);
static void no_grad(world *w) { bp_set_grad_enabled(w->c, 0); }
static void inference(world *w) { bp_set_inference_mode(w->c, 1); }
static void deterministic(world *w) { bp_set_deterministic(w->c, 1); }
static void default_dtype(world *w) { bp_set_default_dtype(w->c, BP_F64); }
static void default_device(world *w) { bp_set_default_device(w->c, (bp_device){BP_FAKE_DEVICE, 1}); }
static void autocast(world *w) { bp_set_autocast(w->c, BP_BF16); }
static void tf32(world *w) { bp_set_allow_tf32(w->c, 1); }

static void F062_each_ambient_mode_is_guarded_and_named(void **state)
{
    static const struct { change make; const char *word; } rows[] = {
        {no_grad, "grad_mode"}, {inference, "inference_mode"}, {deterministic, "deterministic_algorithms"},
        {default_dtype, "default_dtype"}, {default_device, "default_device"}, {autocast, "autocast"},
        {tf32, "allow_tf32"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        world *w = logging_world("recompiles", "");
        bp_callable *g = eager(w, twice);
        bp_tensor *x = ones(w, BP_F32, 1, (int64_t[]){3});
        call(w, g, x);
        call(w, g, x);
        assert_int_equal(stats(w, g).entries, 1);
        rows[i].make(w);
        call(w, g, x);
        assert_int_equal(stats(w, g).entries, 2);
        assert_contains(buf_text(&w->log), rows[i].word);
        assert_contains(buf_text(&w->log), "expected");
        bp_callable_unref(g);
        close_world(w);
    }
}

/* One call that differs from the first in one property. */
typedef bp_tensor *(*variant)(world *w);
static bp_tensor *base_input(world *w) { return ones(w, BP_F32, 2, (int64_t[]){3, 4}); }
static bp_tensor *other_size(world *w) { return ones(w, BP_F32, 2, (int64_t[]){3, 5}); }
static bp_tensor *other_dtype(world *w) { return ones(w, BP_F64, 2, (int64_t[]){3, 4}); }
static bp_tensor *other_rank(world *w) { return ones(w, BP_F32, 1, (int64_t[]){12}); }
static bp_tensor *other_stride(world *w)
{
    return bp_t(w->c, ones(w, BP_F32, 2, (int64_t[]){4, 3}));
}
static bp_tensor *with_grad(world *w)
{
    bp_tensor *t = base_input(w);
    bp_tensor_set_requires_grad(w->c, t, 1);
    return t;
}

static void F063_each_property_of_a_tensor_is_guarded_with_both_values(void **state)
{
    static const struct { variant make; const char *reason; } rows[] = {
        {other_size, "tensor 'x' size mismatch at index 1. expected 4, actual 5"},
        {other_dtype, "tensor 'x' dtype mismatch. expected Float, actual Double"},
        {other_rank, "tensor 'x' rank mismatch. expected 2, actual 1"},
        {other_stride, "tensor 'x' stride mismatch at index 0. expected 4, actual 1"},
        {with_grad, "tensor 'x' requires_grad mismatch. expected requires_grad=0"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        world *w = logging_world("recompiles", "");
        bp_callable *g = eager(w, twice);
        call(w, g, base_input(w));
        call(w, g, rows[i].make(w));
        assert_int_equal(stats(w, g).entries, 2);
        assert_contains(buf_text(&w->log), rows[i].reason);
        call(w, g, base_input(w)); /* both serve from now on */
        call(w, g, rows[i].make(w));
        assert_int_equal(stats(w, g).entries, 2);
        bp_callable_unref(g);
        close_world(w);
    }
}

static void F063_a_number_where_a_tensor_was_compiles_again(void **state)
{
    (void)state;
    world *w = logging_world("recompiles", "");
    bp_callable *g = eager(w, plus_scalar);
    bp_value at[2] = {bp_arg_of_tensor(base_input(w)), bp_arg_of_int(1)};
    bp_outputs out = {0};
    world_ok(w, bp_call(w->c, g, &(bp_args){at, 2}, &out));
    at[1] = bp_arg_of_int(2);
    out = (bp_outputs){0};
    world_ok(w, bp_call(w->c, g, &(bp_args){at, 2}, &out));
    assert_int_equal(stats(w, g).entries, 2);
    assert_contains(buf_text(&w->log), "'n'");
    at[0] = bp_arg_of_int(7);
    out = (bp_outputs){0};
    assert_int_not_equal(bp_call(w->c, g, &(bp_args){at, 2}, &out), BP_OK); /* eager refuses it too */
    assert_contains(bp_error_text(w->c), "\"x\"");
    bp_error_clear(w->c);
    bp_callable_unref(g);
    close_world(w);
}

static void F064_code_parts_are_printed_one_a_line(void **state)
{
    (void)state;
    world *w = logging_world("guards", "");
    buf text = {0};
    bp_callable *g = eager(w, negated_if_small);
    call(w, g, base_input(w));
    world_ok(w, bp_print_guards(w->c, g, keep_text, &text));
    assert_contains(buf_text(&text), "___check_global_state()");
    assert_contains(buf_text(&text), "L['x'].dtype == torch.float32\n");
    assert_contains(buf_text(&text), "L['x'].size() == (3, 4)\n");
    assert_contains(buf_text(&text), "L['x'].stride() == (4, 1)\n");
    assert_contains(buf_text(&text), "# bp_is_true at line 16 gave false");
    assert_contains(buf_text(&w->log), "L['x'].size() == (3, 4)");
    buf_fini(&text);
    bp_callable_unref(g);
    close_world(w);
}

static void plus_offset(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, bp_add(c, x, bp_tensor_offset(x)));
}

static void F063_an_offset_is_not_guarded_so_who_reads_it_runs_eagerly(void **state)
{
    (void)state;
    world *w = logging_world("capture", "");
    bp_callable *g = eager(w, plus_offset);
    bp_tensor *base = bp_tensor_from(w->c, BP_F32, 1, (int64_t[]){6}, (float[]){0, 1, 2, 3, 4, 5});
    for (int64_t at = 2; at >= 0; at--) {
        float got[2] = {0};
        bp_tensor *x = bp_slice(w->c, base, .start = bp_scalar_int(at), .end = bp_scalar_int(at + 2));
        world_ok(w, bp_tensor_read(w->c, bp_call1(w->c, g, 1, &x), got, sizeof got));
        assert_true(got[0] == (float)(2 * at) && got[1] == (float)(2 * at + 1));
    }
    assert_contains(buf_text(&w->log), "asks where an input lies in its storage");
    bp_callable_unref(g);
    close_world(w);
}

/* -- F065 ---------------------------------------------------------------------------------------------------------- */

#define STATIC_SIZES "[host]\nautomatic_dynamic_shapes = no\n"

/* Each size compiles anew. */
static void call_sizes(world *w, bp_callable *g, int64_t from, int64_t to)
{
    for (int64_t n = from; n <= to; n++)
        call(w, g, ones(w, BP_F32, 1, &n));
}

static void F065_the_ninth_variant_runs_eagerly_with_one_warning(void **state)
{
    (void)state;
    world *w = logging_world("", STATIC_SIZES);
    bp_callable *g = eager(w, twice);
    call_sizes(w, g, 1, 8);
    assert_int_equal(stats(w, g).entries, 8);
    assert_int_equal(w->log.n, 0);
    call_sizes(w, g, 9, 12);
    assert_int_equal(stats(w, g).entries, 8);
    assert_int_equal(stats(w, g).eager_calls, 4);
    assert_int_equal(count(buf_text(&w->log), "hit config.recompile_limit (8)"), 1);
    call_sizes(w, g, 1, 8); /* what is there goes on serving */
    assert_int_equal(stats(w, g).eager_calls, 4);
    bp_callable_unref(g);
    close_world(w);
}

static void F065_the_limit_of_one_callable_wins_and_regions_are_apart(void **state)
{
    (void)state;
    world *w = logging_world("", STATIC_SIZES);
    bp_callable *strict =
        compiled(w, twice, &(bp_compile_options){.backend = "eager", .isolate = 1, .recompile_limit = 2});
    bp_callable *other = eager(w, twice);
    call_sizes(w, strict, 1, 4);
    assert_int_equal(stats(w, strict).entries, 2);
    call_sizes(w, other, 1, 4);
    assert_int_equal(stats(w, other).entries, 4);
    bp_callable_unref(strict);
    bp_callable_unref(other);
    close_world(w);
}

static void F065_the_accumulated_limit_stops_before_the_other(void **state)
{
    (void)state;
    world *w = logging_world("", STATIC_SIZES "accumulated_recompile_limit = 3\n");
    bp_callable *g = eager(w, twice);
    call_sizes(w, g, 1, 5);
    assert_int_equal(stats(w, g).entries, 3);
    assert_int_equal(count(buf_text(&w->log), "hit config.accumulated_recompile_limit (3)"), 1);
    bp_callable_unref(g);
    close_world(w);
}

/* -- F067, F068 ---------------------------------------------------------------------------------------------------- */

static void F067_an_entry_shows_guards_graph_and_backend_and_a_callable_its_function(void **state)
{
    (void)state;
    world *w = logging_world("", STATIC_SIZES);
    buf text = {0};
    bp_callable *g = eager(w, twice);
    call_sizes(w, g, 2, 3);
    assert_ptr_equal(bp_callable_function(g), twice);
    world_ok(w, bp_print_explain(w->c, g, keep_text, &text));
    assert_contains(buf_text(&text), "entries: 2");
    assert_contains(buf_text(&text), "aten.mul.Scalar");
    assert_contains(buf_text(&text), "on eager");
    assert_contains(buf_text(&text), "L['x'].size() == (2,)");
    assert_contains(buf_text(&text), "L['x'].size() == (3,)");
    buf_fini(&text);
    bp_callable_unref(g);
    close_world(w);
}

static void F068_shapes_are_static_and_a_size_from_data_breaks(void **state)
{
    (void)state;
    world *w = logging_world("graph_breaks", "");
    buf text = {0};
    bp_callable *g = eager(w, where_nonzero);
    bp_tensor *x = bp_tensor_from(w->c, BP_F32, 1, (int64_t[]){4}, (float[]){0, 3, 0, 5});
    bp_tensor *out = bp_call1(w->c, g, 1, &x);
    int64_t at[2] = {0};
    world_ok(w, bp_tensor_read(w->c, out, at, sizeof at));
    assert_true(at[0] == 1 && at[1] == 3);
    world_ok(w, bp_print_explain(w->c, g, keep_text, &text));
    assert_contains(buf_text(&text), "nonzero");
    assert_contains(buf_text(&w->log), "nonzero");
    x = bp_tensor_from(w->c, BP_F32, 1, (int64_t[]){4}, (float[]){0, 0, 0, 5});
    out = bp_call1(w->c, g, 1, &x);
    world_ok(w, bp_error(w->c));
    assert_int_equal(bp_tensor_size(out, 0), 1);
    buf_fini(&text);
    bp_callable_unref(g);
    close_world(w);
}

/* -- F090, F091 ---------------------------------------------------------------------------------------------------- */

static void F090_each_artifact_that_is_there_switches_its_own_lines(void **state)
{
    static const struct { const char *name, *words; } rows[] = {
        {"graph", "aten.neg.default"}, {"graph_breaks", "bp_is_true"}, {"guards", "L['x']"},
        {"recompiles", "size mismatch"}, {"backend", "eager"}, {"capture", "captured"}, {"cache", "at its place"},
        {"time", "ms"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        world *w = logging_world(rows[i].name, "");
        char mark[64];
        snprintf(mark, sizeof mark, "backplane[%s]: ", rows[i].name);
        bp_callable *g = eager(w, negated_if_small);
        call(w, g, bp_neg(w->c, base_input(w)));
        call(w, g, bp_neg(w->c, other_size(w)));
        assert_contains(buf_text(&w->log), mark);
        assert_contains(buf_text(&w->log), rows[i].words);
        assert_int_equal(count(buf_text(&w->log), "backplane["), count(buf_text(&w->log), mark)); /* nobody else's */
        bp_callable_unref(g);
        close_world(w);
    }
}

static void F091_explain_tells_graphs_breaks_operators_guards_and_times(void **state)
{
    (void)state;
    world *w = logging_world("", "");
    buf text = {0};
    bp_callable *g = eager(w, negated_if_small);
    call(w, g, base_input(w));
    call(w, g, bp_neg(w->c, base_input(w)));
    world_ok(w, bp_print_explain(w->c, g, keep_text, &text));
    const char *words[] = {"graphs: 2", "break sites: 1", "outcomes: 2", "bp_is_true asks for a value",
                           "aten.neg.default", "operators: 3", "guards:", "L['x'].size()", "capturing took"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        assert_contains(buf_text(&text), words[i]);
    buf_fini(&text);
    bp_callable_unref(g);
    close_world(w);
}

/* -- F111, F115 ---------------------------------------------------------------------------------------------------- */

static void F111_tensors_0d_tensors_and_numbers_promote_by_category(void **state)
{
    (void)state;
    world *w = logging_world("", "");
    bp_ctx *c = w->c;
    bp_tensor *i64 = ones(w, BP_I64, 1, (int64_t[]){2}), *f32 = ones(w, BP_F32, 1, (int64_t[]){2});
    bp_tensor *zero_d = ones(w, BP_F64, 0, NULL), *u8 = ones(w, BP_U8, 1, (int64_t[]){2});
    assert_int_equal(bp_tensor_dtype(bp_add(c, i64, 1)), BP_I64);
    assert_int_equal(bp_tensor_dtype(bp_add(c, i64, 1.0)), BP_F32);
    assert_int_equal(bp_tensor_dtype(bp_add(c, f32, 1)), BP_F32);
    assert_int_equal(bp_tensor_dtype(bp_add(c, f32, zero_d)), BP_F32);
    assert_int_equal(bp_tensor_dtype(bp_add(c, i64, zero_d)), BP_F64);
    assert_int_equal(bp_tensor_dtype(bp_add(c, u8, i64)), BP_I64);
    assert_int_equal(bp_tensor_dtype(bp_div(c, i64, 2)), BP_F32);
    assert_int_equal(bp_tensor_dtype(bp_mul(c, u8, bp_scalar_bool(1))), BP_U8);
    world_ok(w, bp_error(c));
    close_world(w);
}

static void F115_one_seed_gives_the_same_numbers_eager_and_compiled(void **state)
{
    (void)state;
    world *w = logging_world("", "");
    bp_callable *g = eager(w, noise);
    bp_tensor *x = bp_tensor_from(w->c, BP_F32, 1, (int64_t[]){4}, NULL);
    float a[2][4], b[2][4];
    uint64_t offsets[2];
    for (int k = 0; k < 2; k++) {
        bp_manual_seed(w->c, 42);
        for (int i = 0; i < 2; i++) {
            bp_value at = bp_arg_of_tensor(x);
            bp_tensor *one[1];
            bp_outputs out = {.at = one, .cap = 1};
            if (k)
                world_ok(w, bp_call(w->c, g, &(bp_args){&at, 1}, &out));
            else
                world_ok(w, bp_run_eager(w->c, noise, NULL, &(bp_args){&at, 1}, &out));
            world_ok(w, bp_tensor_read(w->c, one[0], k ? b[i] : a[i], sizeof a[i]));
        }
        offsets[k] = bp_generator_offset(w->c);
    }
    assert_memory_equal(a, b, sizeof a);
    assert_memory_not_equal(a[0], a[1], sizeof a[0]);
    assert_true(offsets[0] > 0 && offsets[0] == offsets[1]);
    assert_int_equal(stats(w, g).entries, 1);
    bp_callable_unref(g);
    close_world(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(F062_each_ambient_mode_is_guarded_and_named),
        cmocka_unit_test(F063_each_property_of_a_tensor_is_guarded_with_both_values),
        cmocka_unit_test(F063_a_number_where_a_tensor_was_compiles_again),
        cmocka_unit_test(F063_an_offset_is_not_guarded_so_who_reads_it_runs_eagerly),
        cmocka_unit_test(F064_code_parts_are_printed_one_a_line),
        cmocka_unit_test(F065_the_ninth_variant_runs_eagerly_with_one_warning),
        cmocka_unit_test(F065_the_limit_of_one_callable_wins_and_regions_are_apart),
        cmocka_unit_test(F065_the_accumulated_limit_stops_before_the_other),
        cmocka_unit_test(F067_an_entry_shows_guards_graph_and_backend_and_a_callable_its_function),
        cmocka_unit_test(F068_shapes_are_static_and_a_size_from_data_breaks),
        cmocka_unit_test(F090_each_artifact_that_is_there_switches_its_own_lines),
        cmocka_unit_test(F091_explain_tells_graphs_breaks_operators_guards_and_times),
        cmocka_unit_test(F111_tensors_0d_tensors_and_numbers_promote_by_category),
        cmocka_unit_test(F115_one_seed_gives_the_same_numbers_eager_and_compiled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
