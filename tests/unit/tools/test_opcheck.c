/* opcheck: a right operator passes, and each way to be wrong fails the check that is for it, with the reason. */
#include "tests/lib/mylib.h"
#include "tests/unit/compile/fixture.h"

typedef struct { char text[8][512]; char name[8][64]; uint32_t n; } results;

static void note(void *arg, const char *test, const char *result)
{
    results *r = arg;
    assert_true(r->n < 8);
    snprintf(r->name[r->n], sizeof r->name[0], "%s", test);
    snprintf(r->text[r->n++], sizeof r->text[0], "%s", result);
}

static const char *result_of(const results *r, const char *test)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (!strcmp(r->name[i], test))
            return r->text[i];
    fail_msg("%s was not run", test);
    return NULL;
}

static results check_on(fixture *f, const char *op, const bp_args *args, const char *tests)
{
    results r = {0};
    bp_opcheck_options o = {.tests = tests, .each = note, .arg = &r};
    if (bp_opcheck(f->c, op, args, &o) != BP_OK)
        fail_msg("%s", bp_error_text(f->c));
    return r;
}

/* Only `test` fails, and says why. */
static void expect_failure(fixture *f, const char *op, const bp_args *args, const char *test, const char *words)
{
    results r = check_on(f, op, args, NULL);
    assert_contains(result_of(&r, test), words);
    bp_opcheck_options o = {.tests = test, .raise_exception = 1};
    assert_int_not_equal(bp_opcheck(f->c, op, args, &o), BP_OK);
    assert_contains(bp_error_text(f->c), words);
    assert_contains(bp_error_text(f->c), test);
    bp_error_clear(f->c);
}

static void define(fixture *f, const char *text, const char *mutates, bp_op_fn kernel, bp_op_fn fake)
{
    bp_custom_op(f->c, "wrong::f", &(bp_custom_op_options){.schema = text, .mutates_args = mutates, .kernel = kernel});
    bp_register_fake(f->c, NULL, "wrong::f", fake, NULL, 0);
    if (bp_error(f->c))
        fail_msg("%s", bp_error_text(f->c));
}

static bp_tensor *leaf(fixture *f)
{
    bp_tensor *x = FLOATS(f, 1, 2, 3);
    bp_tensor_set_requires_grad(f->c, x, 1);
    return x;
}

static void c14_opcheck(void **state)
{
    fixture *f = *state;
    mylib_define(f->c, NULL);
    bp_tensor *x = leaf(f);
    results r = check_on(f, "mylib::my_op", BP_ARGS(x, 2.0), NULL);
    static const char *const order[] = {"test_schema", "test_autograd_registration", "test_faketensor",
                                        "test_aot_dispatch_dynamic"};
    assert_int_equal(r.n, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_string_equal(r.name[i], order[i]);
        assert_string_equal(r.text[i], "SUCCESS");
    }
    EXPECT_FLOATS(f, x, 1, 2, 3);
    r = check_on(f, "mylib::my_op", BP_ARGS(x, 2.0), "test_aot_dispatch_static, test_schema");
    assert_int_equal(r.n, 2);
    assert_string_equal(result_of(&r, "test_aot_dispatch_static"), "SUCCESS");
    assert_int_equal(bp_opcheck(f->c, "mylib::my_op", BP_ARGS(x, 2.0), &(bp_opcheck_options){.tests = "bad"}),
                     BP_INVALID_ARGUMENT);
    assert_contains(bp_error_text(f->c), "there is no check \"bad\"");
    bp_error_clear(f->c);
    assert_int_equal(bp_opcheck(f->c, "mylib::my_op", BP_ARGS(x, 2.0), &(bp_opcheck_options){.atol = 1}),
                     BP_INVALID_ARGUMENT);
    assert_contains(bp_error_text(f->c), "they go together");
    bp_error_clear(f->c);
    bp_custom_op_remove(f->c, "mylib::my_op");
}

static void right_operators_of_other_kinds_pass(void **state)
{
    fixture *f = *state;
    define(f, "(Tensor(a!) x) -> ()", "x", bump, my_op_fake);
    bp_custom_op(f->c, "wrong::f", &(bp_custom_op_options){.schema = "(Tensor(a!) x) -> ()", .mutates_args = "x",
                                                           .kernel = bump});
    results r = check_on(f, "wrong::f", BP_ARGS(FLOATS(f, 1, 2)), NULL);
    for (uint32_t i = 0; i < r.n; i++)
        assert_string_equal(r.text[i], "SUCCESS");
    bp_custom_op_remove(f->c, "wrong::f");
}

static void hides_a_write(bp_ctx *c, bp_op_call *k)
{
    float *x = bp_tensor_data(c, bp_op_tensor(k, 0));
    x[0] += 1;
    bp_op_return(c, k, bp_mul(c, bp_op_tensor(k, 0), 2));
}

static void a_hidden_write_fails_test_schema(void **state)
{
    fixture *f = *state;
    define(f, "(Tensor x) -> Tensor", "", hides_a_write, my_op_fake);
    expect_failure(f, "wrong::f", BP_ARGS(FLOATS(f, 1, 2)), "test_schema",
                   "argument \"x\" is not marked as written, and the kernel wrote it");
    define(f, "(Tensor(a!) x) -> ()", "x", bump, my_op_fake);
    bp_custom_op_remove(f->c, "wrong::f");
}

static void gives_its_input(bp_ctx *c, bp_op_call *k) { bp_op_return(c, k, bp_op_tensor(k, 0)); }

static void an_aliasing_result_fails_test_schema(void **state)
{
    fixture *f = *state;
    define(f, "(Tensor x) -> Tensor", "", gives_its_input, my_op_fake);
    expect_failure(f, "wrong::f", BP_ARGS(FLOATS(f, 1, 2)), "test_schema", "result 0 shares memory with an input");
    bp_custom_op_remove(f->c, "wrong::f");
}

static void fake_of_five(bp_ctx *c, bp_op_call *k)
{
    (void)k;
    bp_op_return(c, k, bp_empty(c, BP_DIMS(5)));
}
static void fake_in_double(bp_ctx *c, bp_op_call *k)
{
    bp_op_return(c, k, bp_empty_like(c, bp_op_tensor(k, 0), .dtype = BP_F64));
}
static void fake_turned(bp_ctx *c, bp_op_call *k)
{
    bp_op_return(c, k, bp_t(c, bp_empty(c, BP_DIMS(3, 2))));
}
static void fake_of_two(bp_ctx *c, bp_op_call *k)
{
    bp_op_return(c, k, bp_empty(c, BP_DIMS(2, 3)));
    bp_op_return(c, k, bp_empty(c, BP_DIMS(2, 3)));
}
static void fake_bounded(bp_ctx *c, bp_op_call *k)
{
    bp_dim n[2] = {bp_dim_of(2), bp_new_dynamic_size(c, k, 0, 2)};
    bp_op_return(c, k, bp_empty(c, ((bp_dims){n, 2, 1})));
}
static void doubles(bp_ctx *c, bp_op_call *k) { bp_op_return(c, k, bp_mul(c, bp_op_tensor(k, 0), 2)); }

static void a_wrong_fake_fails_test_faketensor(void **state)
{
    fixture *f = *state;
    bp_tensor *x = bp_reshape(f->c, FLOATS(f, 1, 2, 3, 4, 5, 6), BP_DIMS(2, 3));
    static const struct { bp_op_fn fake; const char *words; } wrong[] = {
        {fake_of_five, "got f32[5], expected f32[2, 3]"},
        {fake_in_double, "got f64[2, 3], expected f32[2, 3]"},
        {fake_turned, "got f32[2, 3; 1, 2], expected f32[2, 3; 3, 1]"},
        {fake_bounded, "size 1 of result 0 is 3, and the fake says 0 to 2"},
        {fake_of_two, "its fake gave 2 results, and its schema says 1"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        define(f, "(Tensor x) -> Tensor", "", doubles, wrong[i].fake);
        expect_failure(f, "wrong::f", BP_ARGS(x), "test_faketensor", wrong[i].words);
    }
    bp_custom_op(f->c, "wrong::f", &(bp_custom_op_options){.schema = "(Tensor x) -> Tensor", .mutates_args = "",
                                                           .kernel = doubles});
    expect_failure(f, "wrong::f", BP_ARGS(x), "test_faketensor", "there is no fake of \"wrong::f\"");
    bp_custom_op_remove(f->c, "wrong::f");
}

static void a_missing_backward_fails_test_autograd_registration(void **state)
{
    fixture *f = *state;
    bp_tensor *x = leaf(f);
    define(f, "(Tensor x) -> Tensor", "", doubles, my_op_fake);
    expect_failure(f, "wrong::f", BP_ARGS(x), "test_autograd_registration", "the operator has no derivative");
    expect_failure(f, "wrong::f", BP_ARGS(x), "test_aot_dispatch_dynamic", "bp_register_autograd");
    results r = check_on(f, "wrong::f", BP_ARGS(FLOATS(f, 1)), NULL); /* nobody asks for gradients */
    for (uint32_t i = 0; i < r.n; i++)
        assert_string_equal(r.text[i], "SUCCESS");
    bp_custom_op_remove(f->c, "wrong::f");
}

static void counts(bp_ctx *c, bp_op_call *k)
{
    int *n = bp_op_user(k);
    bp_op_return(c, k, bp_mul(c, bp_op_tensor(k, 0), ++*n));
}

static void values_that_differ_compiled_fail_test_aot_dispatch(void **state)
{
    fixture *f = *state;
    int n = 0;
    bp_custom_op(f->c, "wrong::f", &(bp_custom_op_options){.schema = "(Tensor x) -> Tensor", .mutates_args = "",
                                                           .kernel = counts, .arg = &n});
    bp_register_fake(f->c, NULL, "wrong::f", my_op_fake, NULL, 0);
    expect_failure(f, "wrong::f", BP_ARGS(FLOATS(f, 1)), "test_aot_dispatch_dynamic",
                   "compiled, result 0 is not as it is eagerly");
    bp_custom_op_remove(f->c, "wrong::f");
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(c14_opcheck),
        T(right_operators_of_other_kinds_pass),
        T(a_hidden_write_fails_test_schema),
        T(an_aliasing_result_fails_test_schema),
        T(a_wrong_fake_fails_test_faketensor),
        T(a_missing_backward_fails_test_autograd_registration),
        T(values_that_differ_compiled_fail_test_aot_dispatch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
