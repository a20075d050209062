/* Custom operators in use: fakes, gradients, captured functions, what is written. */
#include "host/graph/graph.h"
#include "tests/lib/mylib.h"
#include "tests/unit/compile/fixture.h"

static void expect_error(fixture *f, bp_status code, const char *words)
{
    if (bp_error(f->c) != code)
        fail_msg("%s, expected %s: %s", bp_status_name(bp_error(f->c)), bp_status_name(code), bp_error_text(f->c));
    assert_contains(bp_error_text(f->c), words);
    bp_error_clear(f->c);
}

static void expect_ok(fixture *f)
{
    if (bp_error(f->c))
        fail_msg("%s", bp_error_text(f->c));
}

static bp_tensor *leaf(fixture *f, float a, float b)
{
    bp_tensor *x = FLOATS(f, a, b);
    bp_tensor_set_requires_grad(f->c, x, 1);
    return x;
}

static const bp_op *defined(fixture *f, const char *name, const char *text, const char *mutates, bp_op_fn kernel)
{
    const bp_op *op = bp_custom_op(f->c, name, &(bp_custom_op_options){.schema = text, .mutates_args = mutates,
                                                                       .kernel = kernel});
    expect_ok(f);
    return op;
}

/* -- arguments and results ----------------------------------------------------------------------------------------- */

static void see_all(bp_ctx *c, bp_op_call *k)
{
    bp_tensor *x = bp_op_tensor(k, 0), *all = x;
    assert_int_equal(bp_op_arg_count(k), 13);
    assert_null(bp_op_tensor(k, 1));
    assert_int_equal(bp_op_list_count(k, 2), 2);
    all = bp_add(c, all, bp_op_list_tensor(k, 2, 1));
    assert_null(bp_op_list_tensor(k, 3, 0));
    assert_ptr_equal(bp_op_list_tensor(k, 3, 1), bp_op_list_tensor(k, 2, 0));
    assert_int_equal(bp_op_int(k, 4), -3);
    assert_int_equal(bp_op_dim(k, 5).value, 7);
    assert_true(bp_op_float(k, 6) == 0.5);
    assert_int_equal(bp_op_bool(k, 7), 1);
    assert_string_equal(bp_op_str(k, 8), "mode");
    assert_int_equal(bp_op_list_count(k, 9), 3);
    assert_int_equal(bp_op_list_dim(k, 9, 2).value, 6);
    assert_int_equal(bp_op_scalar(k, 10).kind, BP_SCALAR_INT);
    assert_int_equal(bp_op_dtype(k, 11), BP_F64);
    assert_true(bp_op_list_float(k, 12, 1) == 2.5);
    assert_int_equal(bp_op_find_arg(k, "s"), 8);
    assert_int_equal(bp_op_find_arg(k, "nothing"), UINT32_MAX);
    assert_string_equal(bp_op_name(k), "argued::f");
    assert_true(bp_op_is_none(k, 1) && bp_op_is_none(k, 99));
    bp_op_return(c, k, bp_mul(c, all, bp_op_user(k) ? 2 : 1));
    bp_op_return(c, k, bp_neg(c, x));
}

static void a_kernel_sees_every_kind_of_argument(void **state)
{
    fixture *f = *state;
    bp_tensor *x = FLOATS(f, 1, 2), *y = FLOATS(f, 10, 20), *out[2];
    bp_custom_op(f->c, "argued::f", &(bp_custom_op_options){
        .schema = "(Tensor x, Tensor? none, Tensor[] xs, Tensor?[] some, int i, SymInt n, float a, bool b, str s, "
                  "int[] sizes, Scalar number, ScalarType dtype=6, float[] fs=[1.5, 2.5]) -> (Tensor, Tensor)",
        .mutates_args = "", .kernel = see_all, .arg = f});
    bp_outputs o = {out, 0, 2};
    assert_int_equal(bp_call_op(f->c, "argued::f",
                                BP_ARGS(x, BP_NONE, BP_LIST(x, y), BP_LIST(BP_NONE, x), -3, 7, 0.5, (_Bool)1, "mode",
                                        BP_LIST(4, 5, 6), 9, bp_arg_of_dtype(BP_F64)), &o), BP_OK);
    EXPECT_FLOATS(f, out[0], 22, 44);
    EXPECT_FLOATS(f, out[1], -1, -2);
    o.cap = 1;
    bp_call_op(f->c, "argued::f", BP_ARGS(x), &o);
    expect_error(f, BP_INVALID_ARGUMENT, "argument \"none\" is missing");
    bp_call_op(f->c, "argued::f", BP_ARGS(2), NULL);
    bp_error_clear(f->c);
    bp_custom_op_remove(f->c, "argued::f");
}

static void give_list(bp_ctx *c, bp_op_call *k)
{
    for (int64_t i = 0; i < bp_op_int(k, 1); i++)
        bp_op_return(c, k, bp_mul(c, bp_op_tensor(k, 0), i));
}

static void give_sum(bp_ctx *c, bp_op_call *k)
{
    bp_op_return_number(c, k, bp_scalar_float(bp_item_float(c, bp_sum(c, bp_op_tensor(k, 0)))));
}

static void results_are_lists_and_numbers_too(void **state)
{
    fixture *f = *state;
    bp_outputs o = {0};
    defined(f, "given::list", "(Tensor x, int n) -> Tensor[]", "", give_list);
    defined(f, "given::sum", "(Tensor x) -> float", "", give_sum);
    assert_int_equal(bp_call_op(f->c, "given::list", BP_ARGS(FLOATS(f, 1, 2), 40), &o), BP_OK);
    assert_int_equal(o.n, 40);
    EXPECT_FLOATS(f, o.at[39], 39, 78);
    bp_scalar s = bp_call_op_number(f->c, "given::sum", FLOATS(f, 1, 2));
    assert_int_equal(s.kind, BP_SCALAR_FLOAT);
    assert_true(s.v.f[0] == 3);
    bp_call_op_number(f->c, "given::list", FLOATS(f, 1, 2), 1);
    expect_error(f, BP_INVALID_ARGUMENT, "gives no number");
    defined(f, "given::sum", "(Tensor x) -> float", "", give_list);
    bp_call_op_number(f->c, "given::sum", FLOATS(f, 1, 2));
    expect_error(f, BP_INVALID_ARGUMENT, "its kernel gave no number, and its schema says float");
    bp_custom_op_remove(f->c, "given::list");
    bp_custom_op_remove(f->c, "given::sum");
}

/* -- captured ------------------------------------------------------------------------------------------------------ */

static void around(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_add(c, bp_arg(f, 0, "x"), 1);
    bp_return(f, bp_relu(c, bp_call_op1(c, "mylib::my_op", x, 2.0)));
}

static void a_captured_operator_is_one_node(void **state)
{
    fixture *f = *state;
    int calls = 0;
    mylib_define(f->c, &calls);
    bp_callable *g = COMPILE(f, around);
    for (int i = 0; i < 3; i++)
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1, -3)).at[0], 4, 0);
    assert_int_equal(calls, 3); /* once a call: the capture ran the fake alone */
    assert_int_equal(stats(f, g).graphs, 1);
    assert_int_equal(stats(f, g).hits, 2);
    assert_int_equal(stats(f, g).break_sites, 0);
    assert_contains(buf_text(&f->tables), "mylib.my_op.default");
    bp_callable_unref(g);
    bp_custom_op_remove(f->c, "mylib::my_op");
}

static void twice_and_unused(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_call_op1(c, "mylib::my_op", x, 5.0);
    bp_return(f, bp_add(c, bp_call_op1(c, "mylib::my_op", x, 2.0), bp_call_op1(c, "mylib::my_op", x, 2.0)));
}

static void equal_calls_stay_apart_and_unused_ones_go(void **state)
{
    fixture *f = *state;
    int calls = 0;
    mylib_define(f->c, &calls);
    bp_aot_options o = {.name = "passed", .pre_grad_passes = "dce,cse,fold_constants", .decompose = 1};
    assert_int_equal(bp_aot_autograd(f->c, table_backend, NULL, NULL, &o), BP_OK);
    bp_callable *g = bp_compile(f->c, twice_and_unused, &(bp_compile_options){.backend = "passed"});
    for (int i = 0; i < 2; i++)
        EXPECT_FLOATS(f, CALL(f, g, leaf(f, 1, 2)).at[0], 4, 8);
    assert_int_equal(calls, 4);
    bp_callable_unref(g);
    bp_custom_op_remove(f->c, "mylib::my_op");
}

static void c14_missing_fake(void **state)
{
    fixture *f = *state;
    defined(f, "mylib::my_op", MY_OP_SCHEMA, "", my_op);
    bp_callable *g = COMPILE(f, around);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1, -3)).at[0], 4, 0);
    assert_int_equal(stats(f, g).steps, 1); /* its neighbours are compiled, and it is a step between them */
    bp_callable_unref(g);
    g = bp_compile(f->c, around, &(bp_compile_options){.backend_fn = table_backend, .fullgraph = 1});
    assert_null(bp_call1(f->c, g, 1, (bp_tensor *[]){FLOATS(f, 1, -3)}));
    expect_error(f, BP_FAILED_PRECONDITION, "mylib.my_op.default has no fake: register one with bp_register_fake");
    bp_callable_unref(g);
    bp_value args[] = {value_tensor(FLOATS(f, 1)), value_float(2)};
    op_call k = {.op = (const op_row *)bp_op_get(f->c, "mylib::my_op"), .args = args};
    op_run_fake(f->c, &k);
    expect_error(f, BP_UNIMPLEMENTED, "there is no fake of \"mylib::my_op\"");
    defined(f, "mylib::bump", "(Tensor(a!) x) -> ()", "x", bump);
    k = (op_call){.op = (const op_row *)bp_op_get(f->c, "mylib::bump"), .args = args};
    assert_int_equal(op_run_fake(f->c, &k), BP_OK); /* it gives nothing and writes: nothing is to be known */
    assert_int_equal(k.nout, 0);
    bp_custom_op_remove(f->c, "mylib::my_op");
    bp_custom_op_remove(f->c, "mylib::bump");
}

/* -- writing ------------------------------------------------------------------------------------------------------- */

static uint64_t version(const bp_tensor *t)
{
    return atomic_load(&t->store->version);
}

static void bump_all(bp_ctx *c, bp_op_call *k)
{
    for (uint32_t i = 0; i < bp_op_list_count(k, 0); i++)
        bp_add_inplace(c, bp_op_list_tensor(k, 0, i), 1);
    bp_op_return(c, k, bp_mul(c, bp_op_tensor(k, 1), 2));
}

static void c14_mutated_args(void **state)
{
    fixture *f = *state;
    bp_tensor *x = FLOATS(f, 1, 2), *y = FLOATS(f, 3), *z = FLOATS(f, 5);
    defined(f, "mylib::bump", "(Tensor(a!) x) -> ()", "x", bump);
    defined(f, "mylib::bump_all", "(Tensor(a!)[] xs, Tensor y) -> Tensor", "xs", bump_all);
    assert_int_equal(bp_call_op(f->c, "mylib::bump", BP_ARGS(x), NULL), BP_OK);
    EXPECT_FLOATS(f, x, 2, 3);
    assert_int_equal(version(x), 2); /* by the call, and by what the kernel does */
    EXPECT_FLOATS(f, bp_call_op1(f->c, "mylib::bump_all", BP_LIST(x, y), z), 10);
    EXPECT_FLOATS(f, x, 3, 4);
    EXPECT_FLOATS(f, y, 4);
    assert_int_equal(version(x), 4);
    assert_int_equal(version(y), 2);
    assert_int_equal(version(z), 0);
    bp_tensor *w = leaf(f, 1, 2), *s = bp_mul(f->c, w, w), *r = bp_exp(f->c, s);
    bp_call_op(f->c, "mylib::bump", BP_ARGS(r), NULL);
    bp_backward(f->c, bp_sum(f->c, r), NULL, 0);
    expect_error(f, BP_FAILED_PRECONDITION, "was written in place");
    bp_custom_op_remove(f->c, "mylib::bump");
    bp_custom_op_remove(f->c, "mylib::bump_all");
}

static void writes(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_arg(f, 1, "y"), *t = bp_add(c, y, 1);
    bp_tensor *row = bp_narrow(c, t, 0, 0, 1);
    bp_call_op(c, "mylib::bump", BP_ARGS(x), NULL);
    bp_call_op(c, "mylib::bump", BP_ARGS(row), NULL);
    bp_tensor *r = bp_call_op1(c, "mylib::bump_all", BP_LIST(x, t), y);
    bp_return(f, bp_mul(c, t, 1));
    bp_return(f, r);
}

static void bump_all_fake(bp_ctx *c, bp_op_call *k)
{
    bp_op_return(c, k, bp_empty_like(c, bp_op_tensor(k, 1)));
}

static void c14_functionalisation(void **state)
{
    fixture *f = *state;
    defined(f, "mylib::bump", "(Tensor(a!) x) -> ()", "x", bump);
    defined(f, "mylib::bump_all", "(Tensor(a!)[] xs, Tensor y) -> Tensor", "xs", bump_all);
    bp_register_fake(f->c, NULL, "mylib::bump_all", bump_all_fake, NULL, 0);
    bp_callable *g = COMPILE(f, writes);
    for (int i = 0; i < 3; i++) {
        bp_tensor *x = FLOATS(f, 1, 2), *y = FLOATS(f, 3, 4), *same = bp_reshape(f->c, y, BP_DIMS(2, 1));
        bp_outputs o = CALL(f, g, x, y);
        EXPECT_FLOATS(f, x, 3, 4);
        EXPECT_FLOATS(f, y, 3, 4); /* what is not written is left alone, and its alias too */
        assert_int_equal(version(y), 0);
        EXPECT_FLOATS(f, same, 3, 4);
        EXPECT_FLOATS(f, o.at[0], 6, 6);
        EXPECT_FLOATS(f, o.at[1], 6, 8);
        assert_true(version(x) > 0);
    }
    assert_int_equal(stats(f, g).graphs, 1);
    assert_int_equal(stats(f, g).break_sites, 0);
    assert_contains(buf_text(&f->tables), "mylib.bump.auto_functionalized");
    assert_contains(buf_text(&f->tables), "mylib.bump_all.auto_functionalized");
    assert_null(strstr(buf_text(&f->tables), "mylib.bump.default"));
    bp_callable_unref(g);
    bp_custom_op_remove(f->c, "mylib::bump");
    bp_custom_op_remove(f->c, "mylib::bump_all");
}

static void add_into(bp_ctx *c, bp_op_call *k)
{
    bp_add_inplace(c, bp_op_tensor(k, 0), 1);
    bp_add_inplace(c, bp_op_tensor(k, 0), bp_op_tensor(k, 1));
}

static void writes_shared(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_arg(f, 1, "y");
    bp_call_op(c, "mylib::add_into", BP_ARGS(x, y), NULL);
    bp_return(f, bp_neg(c, x));
}

static void what_is_written_through_two_arguments_is_seen_by_both(void **state)
{
    fixture *f = *state;
    defined(f, "mylib::add_into", "(Tensor(a!) x, Tensor y) -> ()", "x", add_into);
    bp_callable *g = COMPILE(f, writes_shared);
    for (int i = 0; i < 3; i++) {
        bp_tensor *x = FLOATS(f, 1, 2), *y = FLOATS(f, 1, 2);
        EXPECT_FLOATS(f, CALL(f, g, x, x).at[0], -4, -6);
        EXPECT_FLOATS(f, CALL(f, g, y, FLOATS(f, 10, 20)).at[0], -12, -23);
        EXPECT_FLOATS(f, y, 12, 23);
    }
    bp_callable_unref(g);
    bp_custom_op_remove(f->c, "mylib::add_into");
}

/* -- gradients ----------------------------------------------------------------------------------------------------- */

static void square(bp_ctx *c, bp_op_call *k)
{
    bp_tensor *x = bp_op_tensor(k, 0);
    bp_op_return(c, k, bp_mul(c, x, x));
}

static void square_setup(bp_ctx *c, bp_op_grad *g, bp_op_call *k)
{
    assert_non_null(bp_op_result(k, 0));
    assert_null(bp_op_result(k, 1));
    bp_op_grad_save(c, g, bp_op_tensor(k, 0));
    bp_op_grad_save(c, g, NULL);
    bp_op_grad_save(c, g, bp_mul(c, bp_op_tensor(k, 0), 2));
    bp_op_grad_set_data(c, g, malloc(4), free);
}

static void square_backward(bp_ctx *c, bp_op_grad *g)
{
    assert_non_null(bp_op_grad_data(g));
    assert_int_equal(bp_op_grad_count(g), 1);
    assert_null(bp_op_grad_saved(c, g, 1));
    assert_true(bp_op_grad_needs(g, 0));
    bp_tensor *by = bp_op_grad_user(g) ? bp_mul(c, bp_op_grad_saved(c, g, 0), 2) : bp_op_grad_saved(c, g, 2);
    bp_op_grad_return(c, g, bp_mul(c, bp_op_grad_of(c, g, 0), by));
}

static void give_none(bp_ctx *c, bp_op_grad *g) { (void)c, (void)g; }
static void give_both(bp_ctx *c, bp_op_grad *g)
{
    bp_op_grad_return(c, g, bp_op_grad_of(c, g, 0));
    bp_op_grad_return(c, g, bp_op_grad_of(c, g, 0));
}

static bp_tensor *grad_of_sum(fixture *f, bp_tensor *y, bp_tensor *x)
{
    bp_tensor *out = NULL, *s = bp_sum(f->c, y);
    bp_grad(f->c, &s, NULL, 1, &x, 1, &out, 0);
    return out;
}

static void c14_register_autograd(void **state)
{
    fixture *f = *state;
    bp_tensor *x = leaf(f, 1, 2);
    mylib_define(f->c, NULL);
    EXPECT_FLOATS(f, grad_of_sum(f, bp_call_op1(f->c, "mylib::my_op", x, 3.0), x), 3, 3);
    bp_register_autograd(f->c, NULL, "mylib::my_op", give_none, NULL, NULL);
    assert_null(grad_of_sum(f, bp_call_op1(f->c, "mylib::my_op", x, 3.0), x));
    expect_error(f, BP_INVALID_ARGUMENT, "a wrong number of gradients: 0, expected 2");
    bp_register_autograd(f->c, NULL, "mylib::my_op", give_both, NULL, NULL);
    assert_null(grad_of_sum(f, bp_call_op1(f->c, "mylib::my_op", x, 3.0), x));
    expect_error(f, BP_INVALID_ARGUMENT, "for argument \"alpha\", which takes none");
    bp_register_autograd(f->c, NULL, "mylib::my_op", NULL, NULL, NULL);
    expect_error(f, BP_INVALID_ARGUMENT, "the backward of \"mylib::my_op\" is NULL");
    defined(f, "mylib::bump", "(Tensor(a!) x) -> ()", "x", bump);
    bp_register_autograd(f->c, NULL, "mylib::bump", give_none, NULL, NULL);
    expect_error(f, BP_FAILED_PRECONDITION, "\"mylib::bump\" is not functional, and takes no derivative");
    defined(f, "mylib::square", "(Tensor x) -> Tensor", "", square);
    for (int read = 0; read < 2; read++) {
        bp_register_autograd(f->c, NULL, "mylib::square", square_backward, square_setup, read ? f : NULL);
        EXPECT_FLOATS(f, grad_of_sum(f, bp_call_op1(f->c, "mylib::square", x), x), 2, 4);
    }
    bp_tensor *y = bp_mul(f->c, x, 1), *z = bp_call_op1(f->c, "mylib::square", y);
    bp_add_inplace(f->c, y, 1);
    assert_null(grad_of_sum(f, z, x));
    expect_error(f, BP_FAILED_PRECONDITION, "was written in place");
    bp_tensor *s = bp_sum(f->c, bp_call_op1(f->c, "mylib::square", x)), *first = NULL;
    bp_grad(f->c, &s, NULL, 1, &x, 1, &first, BP_CREATE_GRAPH);
    EXPECT_FLOATS(f, grad_of_sum(f, bp_mul(f->c, first, first), x), 8, 16); /* twice */
    bp_custom_op_remove(f->c, "mylib::square");
    bp_custom_op_remove(f->c, "mylib::bump");
    bp_custom_op_remove(f->c, "mylib::my_op");
}

static void c14_no_backward_registered(void **state)
{
    fixture *f = *state;
    bp_tensor *x = leaf(f, 1, 2);
    defined(f, "mylib::my_op", MY_OP_SCHEMA, "", my_op);
    bp_tensor *y = bp_call_op1(f->c, "mylib::my_op", x, 2.0);
    EXPECT_FLOATS(f, y, 2, 4);
    assert_true(bp_tensor_requires_grad(y));
    bp_backward(f->c, bp_sum(f->c, y), NULL, 0);
    expect_error(f, BP_UNIMPLEMENTED, "no derivative of mylib::my_op: none is registered: bp_register_autograd");
    bp_set_grad_enabled(f->c, 0);
    assert_false(bp_tensor_requires_grad(bp_call_op1(f->c, "mylib::my_op", x, 2.0)));
    bp_custom_op_remove(f->c, "mylib::my_op");
}

static void made_of_others(bp_ctx *c, bp_op_call *k)
{
    bp_tensor *x = bp_op_tensor(k, 0);
    bp_op_return(c, k, bp_mul(c, bp_sin(c, x), x));
}

static void a_composite_has_the_derivative_of_its_parts(void **state)
{
    fixture *f = *state;
    bp_tensor *x = leaf(f, 0, 0);
    bp_library *lib = bp_library_new(f->c, BP_LIBRARY_DEF, "parts", NULL);
    bp_library_define(f->c, lib, "f(Tensor x) -> Tensor", NULL);
    bp_library_impl(f->c, lib, "f", "", made_of_others, NULL, 0);
    bp_tensor *y = bp_call_op1(f->c, "parts::f", bp_add(f->c, x, 1));
    bp_tensor *want = bp_add(f->c, x, 1), *got = grad_of_sum(f, y, x);
    expect_ok(f);
    want = grad_of_sum(f, bp_mul(f->c, bp_sin(f->c, want), want), x);
    EXPECT_FLOATS(f, got, at(f, want, 0), at(f, want, 1));
    bp_library_destroy(lib);
}

static void trains(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, bp_call_op1(c, "mylib::square", bp_call_op1(c, "mylib::my_op", bp_sin(c, x), 3.0)));
}

static void compiled_gradients_are_those_of_eager(void **state)
{
    fixture *f = *state;
    mylib_define(f->c, NULL);
    defined(f, "mylib::square", "(Tensor x) -> Tensor", "", square);
    bp_register_fake(f->c, NULL, "mylib::square", my_op_fake, NULL, 0);
    static const char *const backends[] = {"aot_eager", "eager", "aot_eager_decomp_partition"};
    for (int read = 0; read < 2; read++)
        for (size_t b = 0; b < sizeof backends / sizeof *backends; b++) {
            bp_register_autograd(f->c, NULL, "mylib::square", square_backward, square_setup, read ? f : NULL);
            bp_callable *g = bp_compile(f->c, trains, &(bp_compile_options){.backend = backends[b]});
            bp_callable *e = bp_compile(f->c, trains, &(bp_compile_options){.disable = 1});
            for (int i = 0; i < 2; i++) {
                bp_tensor *x = leaf(f, 0.5f, 0.25f);
                bp_tensor *got = grad_of_sum(f, CALL(f, g, x).at[0], x), *want = grad_of_sum(f, CALL(f, e, x).at[0], x);
                expect_ok(f);
                EXPECT_FLOATS(f, got, at(f, want, 0), at(f, want, 1));
            }
            assert_int_equal(stats(f, g).eager_calls, 0);
            bp_callable_unref(g);
            bp_callable_unref(e);
        }
    assert_false(said(f, "warning"));
    bp_custom_op_remove(f->c, "mylib::square");
    bp_custom_op_remove(f->c, "mylib::my_op");
}

/* -- autocast ------------------------------------------------------------------------------------------------------ */

static void note_types(bp_ctx *c, bp_op_call *k)
{
    int32_t *types = bp_op_user(k);
    types[0] = bp_tensor_dtype(bp_op_tensor(k, 0));
    types[1] = bp_tensor_dtype(bp_op_tensor(k, 1));
    types[2] = bp_tensor_dtype(bp_op_tensor(k, 2));
    bp_op_return(c, k, bp_clone(c, bp_op_tensor(k, 0)));
}

static void c14_autocast(void **state)
{
    fixture *f = *state;
    int32_t types[3];
    bp_tensor *x = FLOATS(f, 1, 2), *d = bp_to(f->c, x, BP_F64), *i = bp_to(f->c, x, BP_I64);
    bp_custom_op(f->c, "cast::f", &(bp_custom_op_options){
        .schema = "(Tensor x, Tensor d, Tensor i) -> Tensor", .mutates_args = "", .kernel = note_types, .arg = types});
    bp_register_autocast(f->c, NULL, "cast::f", "xpu", BP_F16);
    expect_error(f, BP_INVALID_ARGUMENT, "autocast is for \"cpu\" or \"cuda\", got \"xpu\"");
    bp_register_autocast(f->c, NULL, "cast::f", "cpu", BP_I32);
    expect_error(f, BP_INVALID_ARGUMENT, "casts to a floating type");
    assert_int_equal(bp_register_autocast(f->c, NULL, "cast::f", "cuda", BP_F16), BP_OK);
    assert_int_equal(bp_register_autocast(f->c, NULL, "cast::f", "cpu", BP_BF16), BP_OK);
    assert_int_equal(bp_tensor_dtype(bp_call_op1(f->c, "cast::f", x, d, i)), BP_F32);
    bp_set_autocast(f->c, BP_BF16);
    assert_int_equal(bp_tensor_dtype(bp_call_op1(f->c, "cast::f", x, d, i)), BP_BF16);
    assert_int_equal(types[0], BP_BF16);
    assert_int_equal(types[1], BP_F64);
    assert_int_equal(types[2], BP_I64);
    bp_custom_op_remove(f->c, "cast::f");
}

/* -- sizes that data tell ------------------------------------------------------------------------------------------ */

static void positive(bp_ctx *c, bp_op_call *k)
{
    bp_tensor *x = bp_op_tensor(k, 0);
    bp_op_return(c, k, bp_clone(c, bp_masked_select(c, x, bp_gt(c, x, 0))));
}

static void positive_fake(bp_ctx *c, bp_op_call *k)
{
    const int64_t *bounds = bp_op_user(k);
    bp_dim n = bp_new_dynamic_size(c, k, bounds ? bounds[0] : 0, bounds ? bounds[1] : -1);
    bp_op_return(c, k, bp_new_empty(c, bp_op_tensor(k, 0), ((bp_dims){&n, 1, 1})));
}

static void picks(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_add(c, bp_call_op1(c, "mylib::positive", bp_mul(c, bp_arg(f, 0, "x"), 2)), 1));
}

static void c14_fake_ctx(void **state)
{
    fixture *f = *state;
    const int64_t wrong[2] = {-1, 5}, crossed[2] = {5, 4};
    bp_value x = value_tensor(FLOATS(f, 1));
    defined(f, "mylib::positive", "(Tensor x) -> Tensor", "", positive);
    op_call k = {.op = (const op_row *)bp_op_get(f->c, "mylib::positive"), .args = &x};
    bp_register_fake(f->c, NULL, "mylib::positive", positive_fake, (void *)(uintptr_t)wrong, 1);
    op_run_fake(f->c, &k);
    expect_error(f, BP_INVALID_ARGUMENT, "a new size from -1 to 5, expected bounds from 0 up");
    bp_register_fake(f->c, NULL, "mylib::positive", positive_fake, (void *)(uintptr_t)crossed, 1);
    op_run_fake(f->c, &k);
    expect_error(f, BP_INVALID_ARGUMENT, "a new size from 5 to 4");
    bp_register_fake(f->c, NULL, "mylib::positive", positive_fake, NULL, 1);
    op_run_fake(f->c, &k);
    expect_error(f, BP_FAILED_PRECONDITION, "set capture_dynamic_output_shape_ops = yes");
    bp_callable *g = COMPILE(f, picks);
    for (int i = 0; i < 2; i++) {
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1, -1, 2)).at[0], 3, 5);
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, -1, -1, 2)).at[0], 5);
    }
    assert_true(stats(f, g).steps > 0); /* it runs between two graphs */
    bp_callable_unref(g);
    defined(f, "mylib::positive", "(Tensor x) -> Tensor", "", positive_fake);
    assert_null(bp_call_op1(f->c, "mylib::positive", FLOATS(f, 1)));
    expect_error(f, BP_FAILED_PRECONDITION, "asked for outside of a fake");
    bp_custom_op_remove(f->c, "mylib::positive");
}

static void sizes_that_data_tell_are_captured(void **state)
{
    fixture *f = *state;
    defined(f, "mylib::positive", "(Tensor x) -> Tensor", "", positive);
    bp_register_fake(f->c, NULL, "mylib::positive", positive_fake, NULL, 0);
    bp_set_config(f->c, "capture_dynamic_output_shape_ops", "yes");
    bp_callable *g = bp_compile(f->c, picks, &(bp_compile_options){.backend_fn = table_backend, .fullgraph = 1});
    for (int i = 0; i < 2; i++) {
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1, -1, 2)).at[0], 3, 5);
        EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, -1, -1, 2)).at[0], 5);
    }
    assert_int_equal(stats(f, g).graphs, 1);
    assert_int_equal(stats(f, g).steps + stats(f, g).break_sites + stats(f, g).eager_calls, 0);
    bp_callable_unref(g);
    const int64_t few[2] = {0, 1}; /* what a fake promises is checked in each run */
    bp_register_fake(f->c, NULL, "mylib::positive", positive_fake, (void *)(uintptr_t)few, 1);
    g = bp_compile(f->c, picks, &(bp_compile_options){.backend_fn = table_backend, .fullgraph = 1});
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, -1, -1, 2)).at[0], 5);
    bp_callable_unref(g);
    bp_custom_op_remove(f->c, "mylib::positive");
}

static void sizes_that_change_compile_once_more(void **state)
{
    fixture *f = *state;
    int calls = 0;
    mylib_define(f->c, &calls);
    bp_callable *g = COMPILE(f, around);
    for (int64_t n = 2; n < 12; n++) {
        bp_tensor *y = CALL(f, g, bp_ones(f->c, ((bp_dims){(bp_dim[]){bp_dim_of(n)}, 1, 1}))).at[0];
        assert_int_equal(bp_tensor_numel(y), n);
        assert_true(at(f, y, n - 1) == 4);
    }
    assert_int_equal(stats(f, g).entries, 2);
    assert_int_equal(calls, 10);
    bp_callable_unref(g);
    bp_custom_op_remove(f->c, "mylib::my_op");
}

static void rows_of(bp_ctx *c, bp_op_call *k)
{
    bp_dim n[2] = {bp_op_dim(k, 1), bp_size(c, bp_op_tensor(k, 0), 0)};
    bp_op_return(c, k, bp_clone(c, bp_expand(c, bp_op_tensor(k, 0), ((bp_dims){n, 2, 1}))));
}

static void repeats(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_dim twice = bp_dim_mul(c, bp_size(c, x, 0), bp_dim_of(2));
    bp_return(f, bp_add(c, bp_call_op1(c, "mylib::rows", x, twice), 1));
}

static void a_size_is_an_argument_that_stays_symbolic(void **state)
{
    fixture *f = *state;
    defined(f, "mylib::rows", "(Tensor x, SymInt n) -> Tensor", "", rows_of);
    bp_register_fake(f->c, NULL, "mylib::rows", rows_of, NULL, 0);
    bp_callable *g = COMPILE(f, repeats);
    for (int64_t n = 2; n < 8; n++) {
        bp_tensor *y = CALL(f, g, bp_ones(f->c, ((bp_dims){(bp_dim[]){bp_dim_of(n)}, 1, 1}))).at[0];
        assert_int_equal(bp_tensor_size(y, 0), 2 * n);
        assert_int_equal(bp_tensor_size(y, 1), n);
    }
    assert_int_equal(stats(f, g).entries, 2);
    bp_callable_unref(g);
    bp_custom_op_remove(f->c, "mylib::rows");
}

/* -- graphs -------------------------------------------------------------------------------------------------------- */

static void graphs_of_custom_operators_are_read_printed_and_run(void **state)
{
    fixture *f = *state;
    static const char text[] = "graph g {\n"
                               "  %x: f32[2] = placeholder \"x\" user\n"
                               "  %my_op: f32[2] = mylib.my_op.default(%x, 2.0)\n"
                               "  output(%my_op)\n"
                               "}\n";
    mylib_define(f->c, NULL);
    bp_graph_module *gm = graph_parse_text(f->c, "a.txt", text, sizeof text - 1);
    expect_ok(f);
    buf printed = {0};
    hash128 h;
    bp_tensor *in = FLOATS(f, 1, 2), *out = NULL;
    graph_print_text(gm, &printed);
    assert_string_equal(buf_text(&printed), text);
    buf_fini(&printed);
    assert_int_equal(graph_check_types(f->c, gm), BP_OK);
    assert_int_equal(graph_hash(f->c, gm, NULL, &h), BP_OK);
    assert_int_equal(graph_run(f->c, gm, &in, 1, &out, 1, NULL, NULL), BP_OK);
    EXPECT_FLOATS(f, out, 2, 4);
    tensor_unref(out);
    bp_custom_op_remove(f->c, "mylib::my_op"); /* the graph outlives it */
    assert_int_equal(graph_run(f->c, gm, &in, 1, &out, 1, NULL, NULL), BP_NOT_FOUND);
    expect_error(f, BP_NOT_FOUND, "operator \"mylib::my_op\" is gone");
    gm_unref(gm);
    assert_null(graph_parse_text(f->c, "a.txt", text, sizeof text - 1));
    expect_error(f, BP_INVALID_ARGUMENT, "mylib.my_op.default");
}

static void compiled_code_outlives_its_operator(void **state)
{
    fixture *f = *state;
    mylib_define(f->c, NULL);
    bp_callable *g = COMPILE(f, around);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1, -3)).at[0], 4, 0);
    bp_custom_op_remove(f->c, "mylib::my_op");
    assert_null(bp_call1(f->c, g, 1, (bp_tensor *[]){FLOATS(f, 1, -3)}));
    expect_error(f, BP_NOT_FOUND, "operator \"mylib::my_op\"");
    mylib_define(f->c, NULL);
    EXPECT_FLOATS(f, CALL(f, g, FLOATS(f, 1, -3)).at[0], 4, 0);
    bp_callable_unref(g);
    bp_custom_op_remove(f->c, "mylib::my_op");
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(a_kernel_sees_every_kind_of_argument),
        T(results_are_lists_and_numbers_too),
        T(a_captured_operator_is_one_node),
        T(equal_calls_stay_apart_and_unused_ones_go),
        T(c14_missing_fake),
        T(c14_mutated_args),
        T(c14_functionalisation),
        T(what_is_written_through_two_arguments_is_seen_by_both),
        T(c14_register_autograd),
        T(c14_no_backward_registered),
        T(a_composite_has_the_derivative_of_its_parts),
        T(compiled_gradients_are_those_of_eager),
        T(c14_autocast),
        T(c14_fake_ctx),
        T(sizes_that_data_tell_are_captured),
        T(sizes_that_change_compile_once_more),
        T(a_size_is_an_argument_that_stays_symbolic),
        T(graphs_of_custom_operators_are_read_printed_and_run),
        T(compiled_code_outlives_its_operator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
