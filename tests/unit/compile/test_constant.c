/* Constants (C5.1): bp_constant bakes a tensor in; what is neither argument, attribute nor constant is an error that
 * names the ways out and the place. */
#include "tests/unit/compile/fixture.h"

static bp_tensor *table;

static void adds_table(bp_ctx *c, bp_frame *f)
{
    bp_tensor *t = bp_constant(c, table);
    bp_return(f, bp_add(c, bp_mul(c, bp_arg(f, 0, "x"), t), t));
}

static void c5_1_a_constant_is_a_get_attr_of_the_graph(void **state)
{
    fixture *f = *state;
    table = FLOATS(f, 10, 20);
    bp_callable *g = COMPILE(f, adds_table);
    for (int i = 0; i < 3; i++)
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1, 2)).at[0], 20, 60);
    assert_contains(buf_text(&f->tables), "get_attr       _tensor_constant0  _tensor_constant0");
    assert_int_equal(stats(f, g).captures, 1);
    assert_int_equal(stats(f, g).hits, 2);
    bp_outputs out = {0};
    bp_value v = bp_arg_of_tensor(FLOATS(f, 1, 2));
    assert_int_equal(bp_run_eager(f->c, adds_table, NULL, &(bp_args){&v, 1}, &out), BP_OK);
    EXPECT_FLOATS(f, out.at[0], 20, 60);
    bp_callable_unref(g);
}

static void c5_1_a_constant_that_was_written_compiles_again(void **state)
{
    fixture *f = *state;
    table = FLOATS(f, 10, 20);
    bp_callable *g = COMPILE(f, adds_table);
    CALL(f, g, FLOATS(f, 1, 2));
    bp_add_inplace(f->c, table, 1);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1, 2)).at[0], 22, 63);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1, 2)).at[0], 22, 63);
    assert_int_equal(stats(f, g).compiles, 2);
    buf text = {0};
    bp_print_explain(f->c, g, fixture_append, &text);
    assert_contains(buf_text(&text), "constant '_tensor_constant0' was written since it was baked");
    buf_fini(&text);
    bp_callable_unref(g);
}

static void counts(bp_ctx *c, bp_frame *f)
{
    bp_tensor *t = bp_constant(c, table);
    bp_add_inplace(c, t, 1);
    bp_return(f, bp_mul(c, bp_arg(f, 0, "x"), t));
}

static void c5_1_a_constant_that_the_function_writes_is_an_input(void **state)
{
    fixture *f = *state;
    table = FLOATS(f, 0);
    bp_callable *g = COMPILE(f, counts);
    for (int i = 1; i < 6; i++)
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1)).at[0], (float)i);
    EXPECT_FLOATS(f, table, 5);
    assert_int_equal(stats(f, g).captures, 1);
    assert_int_equal(stats(f, g).hits, 4);
    bp_callable_unref(g);
}

static void c5_1_a_constant_that_is_an_argument_is_that_argument(void **state)
{
    fixture *f = *state;
    table = FLOATS(f, 1, 2);
    bp_callable *g = COMPILE(f, adds_table);
    EXPECT_FLOATS(f, CALL(f, g, table).at[0], 2, 6);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 3, 3)).at[0], 4, 8);
    EXPECT_FLOATS(f, CALL(f, g, table).at[0], 2, 6);
    assert_int_equal(stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
}

static void strided(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_add(c, bp_arg(f, 0, "x"), bp_constant(c, table)));
}

static void c5_1_a_constant_keeps_its_strides(void **state)
{
    fixture *f = *state;
    table = bp_slice(f->c, FLOATS(f, 0, 1, 2, 3, 4), .start = BP_SCALAR(1), .step = BP_SCALAR(2));
    bp_callable *g = COMPILE(f, strided);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 10, 20)).at[0], 11, 23);
    bp_callable_unref(g);
}

static void c5_2_check_capture_finds_another_constant(void **state)
{
    fixture *f = *state;
    table = FLOATS(f, 10, 20);
    bp_callable *g = COMPILE(f, adds_table);
    CALL(f, g, FLOATS(f, 1, 2));
    bp_set_config(f->c, "check_capture", "always");
    CALL(f, g, FLOATS(f, 1, 2));
    assert_int_equal(stats(f, g).eager_calls, 0);
    table = FLOATS(f, 1, 1);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1, 2)).at[0], 2, 3);
    assert_true(said(f, "its constant _tensor_constant0 was another tensor"));
    bp_callable_unref(g);
}

/* -- errors -------------------------------------------------------------------------------------------------------- */

static int bad_line;

static void uses_a_global(bp_ctx *c, bp_frame *f)
{
    bad_line = __LINE__ + 1;
    bp_return(f, bp_add(c, bp_arg(f, 0, "x"), table));
}

static void reads_data(bp_ctx *c, bp_frame *f)
{
    bad_line = __LINE__ + 1;
    bp_tensor_data(c, table);
    bp_return(f, bp_arg(f, 0, "x"));
}

static void reads_elements(bp_ctx *c, bp_frame *f)
{
    float v[2];
    bad_line = __LINE__ + 1;
    bp_tensor_read(c, bp_arg(f, 0, "x"), v, sizeof v);
    bp_return(f, bp_arg(f, 0, "x"));
}

static void makes_from_memory(bp_ctx *c, bp_frame *f)
{
    const int64_t n = 1;
    bad_line = __LINE__ + 1;
    bp_return(f, bp_tensor_from(c, BP_F32, 1, &n, NULL));
}

static void c5_1_errors_name_the_place_and_the_ways_out(void **state)
{
    fixture *f = *state;
    static const struct { bp_fn fn; const char *what, *way; } bad[] = {
        {uses_a_global, "neither an argument, an attribute nor made in", "bp_attr(f, module, \"name\")"},
        {uses_a_global, "neither an argument, an attribute nor made in", "bp_constant"},
        {reads_data, "raw access to a tensor's data while a function is captured", "bp_constant"},
        {reads_elements, "reading the data of a fake tensor", "bp_item_float"},
        {makes_from_memory, "making a tensor from host memory while a function is captured", "bp_constant"},
    };
    table = FLOATS(f, 1, 2);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        bp_callable *g = bp_compile(f->c, bad[i].fn, &(bp_compile_options){.backend = "eager"});
        bp_tensor *x = FLOATS(f, 1, 2);
        char place[512];
        assert_null(bp_call1(f->c, g, 1, &x));
        snprintf(place, sizeof place, "%s:%d", __FILE__, bad_line);
        assert_contains(bp_error_text(f->c), bad[i].what);
        assert_contains(bp_error_text(f->c), bad[i].way);
        assert_contains(bp_error_text(f->c), place);
        bp_error_clear(f->c);
        bp_callable_unref(g);
    }
    bp_constant(f->c, NULL);
    assert_contains(bp_error_text(f->c), "bp_constant: the tensor is NULL");
    bp_error_clear(f->c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        T(c5_1_a_constant_is_a_get_attr_of_the_graph),
        T(c5_1_a_constant_that_was_written_compiles_again),
        T(c5_1_a_constant_that_the_function_writes_is_an_input),
        T(c5_1_a_constant_that_is_an_argument_is_that_argument),
        T(c5_1_a_constant_keeps_its_strides),
        T(c5_2_check_capture_finds_another_constant),
        T(c5_1_errors_name_the_place_and_the_ways_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
