/* Custom operators: libraries, and what they refuse, a function a row of what PyTorch's registry does. */
#include "tests/lib/mylib.h"
#include "host/op/op.h"
#include "tests/unit/compile/fixture.h"

static void give_clone(bp_ctx *c, bp_op_call *k)
{
    bp_op_return(c, k, bp_clone(c, bp_op_tensor(k, 0)));
}

static void give_double(bp_ctx *c, bp_op_call *k)
{
    bp_op_return(c, k, bp_mul(c, bp_op_tensor(k, 0), 2));
}

/* The call before it failed with code and words; the error is cleared. */
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

static void c14_library_kinds(void **state)
{
    fixture *f = *state;
    static const char *const reserved[] = {"prim", "prims", "aten", "at", "torch", "pytorch"};
    assert_null(bp_library_new(f->c, 7, "kinds", NULL));
    expect_error(f, BP_INVALID_ARGUMENT, "7 is no kind of library");
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
        assert_null(bp_library_new(f->c, BP_LIBRARY_DEF, reserved[i], NULL));
        expect_error(f, BP_INVALID_ARGUMENT, "is a reserved namespace");
        assert_null(bp_library_new(f->c, BP_LIBRARY_FRAGMENT, reserved[i], NULL));
        expect_error(f, BP_INVALID_ARGUMENT, "is a reserved namespace");
    }
    assert_null(bp_library_new(f->c, BP_LIBRARY_DEF, "a b", NULL));
    expect_error(f, BP_INVALID_ARGUMENT, "\"a b\" is no namespace");
    assert_null(bp_library_new(f->c, BP_LIBRARY_DEF, "kinds", "tpu"));
    expect_error(f, BP_INVALID_ARGUMENT, "\"tpu\" is no device");
    bp_library *all[3];
    for (int32_t kind = BP_LIBRARY_DEF; kind <= BP_LIBRARY_FRAGMENT; kind++)
        assert_non_null(all[kind - 1] = bp_library_new(f->c, kind, "kinds", NULL));
    assert_null(bp_library_new(f->c, BP_LIBRARY_DEF, "kinds", NULL));
    expect_error(f, BP_ALREADY_EXISTS, "already a library that defines namespace \"kinds\"");
    assert_null(bp_library_define(f->c, all[1], "f(Tensor x) -> Tensor", NULL));
    expect_error(f, BP_FAILED_PRECONDITION, "a library of kind IMPL defines no operators");
    assert_non_null(bp_library_define(f->c, all[2], "f(Tensor x) -> Tensor", NULL));
    for (int i = 0; i < 3; i++)
        bp_library_destroy(all[i]);
    bp_library *again = bp_library_new(f->c, BP_LIBRARY_DEF, "kinds", NULL);
    assert_non_null(again);
    bp_library_destroy(again);
    bp_library_destroy(NULL);
}

static void c14_define(void **state)
{
    fixture *f = *state;
    bp_library *lib = bp_library_new(f->c, BP_LIBRARY_DEF, "defined", NULL);
    assert_null(bp_library_define(f->c, lib, "f(Tensor x) -> Tensor", "BAD"));
    expect_error(f, BP_INVALID_ARGUMENT, "\"BAD\" is no alias analysis");
    assert_string_equal(bp_library_define(f->c, lib, "f(Tensor x) -> Tensor", ""), "f");
    assert_string_equal(bp_library_define(f->c, lib, "defined::f.two(Tensor x, Tensor y) -> Tensor", "FROM_SCHEMA"),
                        "f.two");
    assert_string_equal(bp_library_define(f->c, lib, "kept(Tensor x) -> Tensor", "CONSERVATIVE"), "kept");
    assert_null(bp_library_define(f->c, lib, "f(Tensor x) -> Tensor", NULL));
    expect_error(f, BP_ALREADY_EXISTS, "operator \"defined::f\" is defined twice");
    assert_null(bp_library_define(f->c, lib, "other::g(Tensor x) -> Tensor", NULL));
    expect_error(f, BP_INVALID_ARGUMENT, "of namespace \"other\", and the library of \"defined\"");
    assert_null(bp_library_define(f->c, lib, "h(Tensor x -> Tensor", NULL));
    expect_error(f, BP_INVALID_ARGUMENT, "offset");
    assert_null(bp_library_define(f->c, lib, "h(Tensor x, Generator g) -> Tensor", NULL));
    expect_error(f, BP_UNIMPLEMENTED, "of type Generator");
    assert_null(bp_library_define(f->c, lib, "h(Tensor x) -> (Tensor, int)", NULL));
    expect_error(f, BP_UNIMPLEMENTED, "of several kinds");
    assert_null(bp_library_define(f->c, lib, "h(int(a!) x) -> Tensor", NULL));
    expect_error(f, BP_INVALID_ARGUMENT, "is no tensor, and is marked");
    assert_null(bp_library_define(f->c, lib, "h(Tensor x, Tensor(a) y) -> Tensor(a)", NULL));
    expect_error(f, BP_UNIMPLEMENTED, "expected one of the first argument");
    assert_null(bp_library_define(f->c, lib, NULL, NULL));
    expect_error(f, BP_INVALID_ARGUMENT, "schema of a definition is NULL");
    bp_library_destroy(lib);
}

static void c14_impl(void **state)
{
    fixture *f = *state;
    bp_library *lib = bp_library_new(f->c, BP_LIBRARY_DEF, "impl", NULL);
    bp_library *cuda = bp_library_new(f->c, BP_LIBRARY_IMPL, "impl", "cuda");
    bp_tensor *x = FLOATS(f, 1, 2);
    bp_library_define(f->c, lib, "f(Tensor x) -> Tensor", NULL);
    bp_library_define(f->c, lib, "made(Tensor x) -> Tensor", NULL);
    bp_library_impl(f->c, lib, "f", "cpu", NULL, NULL, 0);
    expect_error(f, BP_INVALID_ARGUMENT, "the kernel of an implementation is NULL");
    bp_library_impl(f->c, lib, "nope", "cpu", give_clone, NULL, 0);
    expect_error(f, BP_NOT_FOUND, "there is no custom operator \"impl::nope\"");
    bp_library_impl(f->c, lib, "other::f", "cpu", give_clone, NULL, 0);
    expect_error(f, BP_INVALID_ARGUMENT, "of namespace \"other\"");
    assert_int_equal(bp_library_impl(f->c, cuda, "f", NULL, give_clone, NULL, 0), BP_OK);
    assert_null(bp_call_op1(f->c, "impl::f", x));
    expect_error(f, BP_UNIMPLEMENTED, "\"impl::f\" has no kernel for cpu; those that it has: cuda");
    assert_int_equal(bp_library_impl(f->c, lib, "impl::f", "cpu", give_clone, NULL, 0), BP_OK);
    EXPECT_FLOATS(f, bp_call_op1(f->c, "impl::f", x), 1, 2);
    bp_library_impl(f->c, lib, "f", "cpu", give_double, NULL, 0);
    expect_error(f, BP_ALREADY_EXISTS, "there is already a kernel of \"impl::f\" for cpu");
    assert_int_equal(bp_library_impl(f->c, lib, "f", "cpu", give_double, NULL, 1), BP_OK);
    EXPECT_FLOATS(f, bp_call_op1(f->c, "impl::f", x), 2, 4);
    assert_int_equal(bp_library_impl(f->c, lib, "made", "", give_double, NULL, 0), BP_OK);
    bp_library_impl(f->c, lib, "made", "meta", my_op_fake, NULL, 0);
    expect_error(f, BP_FAILED_PRECONDITION, "takes no fake beside its composite kernel");
    EXPECT_FLOATS(f, bp_call_op1(f->c, "impl::made", x), 2, 4);
    bp_library_destroy(cuda);
    bp_library_destroy(lib);
}

static void answer_all(bp_ctx *c, bp_op_call *k)
{
    bp_op_return(c, k, bp_tensor_size(bp_op_tensor(k, 0), 0) ? bp_neg(c, bp_op_tensor(k, 0)) : NULL);
}

static void c14_fallback(void **state)
{
    fixture *f = *state;
    bp_library *lib = bp_library_new(f->c, BP_LIBRARY_DEF, "fallen", NULL);
    bp_library *any = bp_library_new(f->c, BP_LIBRARY_FRAGMENT, "_", NULL);
    bp_library_define(f->c, lib, "f(Tensor x) -> Tensor", NULL);
    bp_library_fallback(f->c, lib, "cpu", answer_all, NULL);
    expect_error(f, BP_FAILED_PRECONDITION, "a fallback belongs to a library fragment of the namespace \"_\"");
    assert_int_equal(bp_library_fallback(f->c, any, "cpu", answer_all, NULL), BP_OK);
    EXPECT_FLOATS(f, bp_call_op1(f->c, "fallen::f", FLOATS(f, 3)), -3);
    bp_library_destroy(any);
    assert_null(bp_call_op1(f->c, "fallen::f", FLOATS(f, 3)));
    expect_error(f, BP_UNIMPLEMENTED, "has no kernel for cpu; those that it has: none");
    bp_library_destroy(lib);
}

static void c14_destruction(void **state)
{
    fixture *f = *state;
    bp_library *lib = bp_library_new(f->c, BP_LIBRARY_DEF, "gone", NULL);
    bp_library *more = bp_library_new(f->c, BP_LIBRARY_FRAGMENT, "gone", NULL);
    bp_tensor *x = FLOATS(f, 1, 2);
    bp_library_define(f->c, lib, "f(Tensor x) -> Tensor", NULL);
    bp_library_impl(f->c, lib, "f", "cpu", give_clone, NULL, 0);
    bp_library_impl(f->c, more, "f", "cpu", give_double, NULL, 1);
    const bp_op *op = bp_op_get(f->c, "gone::f");
    EXPECT_FLOATS(f, bp_op_call1(f->c, op, x), 2, 4);
    bp_library_destroy(more); /* the kernel before it counts again */
    EXPECT_FLOATS(f, bp_op_call1(f->c, op, x), 1, 2);
    bp_library_destroy(lib);
    assert_null(bp_op_get(f->c, "gone::f"));
    expect_error(f, BP_NOT_FOUND, "there is no operator \"gone::f\"");
    assert_null(bp_op_call1(f->c, op, x)); /* a handle outlives its library */
    expect_error(f, BP_NOT_FOUND, "operator \"gone::f\" is gone");
    lib = bp_library_new(f->c, BP_LIBRARY_DEF, "gone", NULL);
    assert_non_null(bp_library_define(f->c, lib, "f(Tensor x) -> Tensor", NULL));
    bp_library_impl(f->c, lib, "f", "cpu", give_double, NULL, 0);
    EXPECT_FLOATS(f, bp_op_call1(f->c, op, x), 2, 4);
    bp_library_destroy(lib);
}

static const bp_op *define(fixture *f, const char *name, const char *text, const char *mutates, const char *devices)
{
    return bp_custom_op(f->c, name, &(bp_custom_op_options){.schema = text, .mutates_args = mutates,
                                                            .device_types = devices, .kernel = give_clone});
}

static void c14_custom_op(void **state)
{
    fixture *f = *state;
    bp_tensor *x = FLOATS(f, 1, 2);
    assert_null(define(f, "foo", MY_OP_SCHEMA, "", NULL));
    expect_error(f, BP_INVALID_ARGUMENT, "\"foo\" is no name of an operator");
    assert_null(define(f, "a::b::c", MY_OP_SCHEMA, "", NULL));
    expect_error(f, BP_INVALID_ARGUMENT, "\"a::b::c\" is no name of an operator");
    assert_null(define(f, "torch::f", MY_OP_SCHEMA, "", NULL));
    expect_error(f, BP_INVALID_ARGUMENT, "\"torch\" is a reserved namespace");
    assert_null(define(f, "short::f", MY_OP_SCHEMA, NULL, NULL));
    expect_error(f, BP_INVALID_ARGUMENT, "\"short::f\" is defined without mutates_args");
    assert_null(define(f, "short::f", NULL, "", NULL));
    expect_error(f, BP_INVALID_ARGUMENT, "\"short::f\" is defined without a schema");
    const bp_op *op = define(f, "short::f", "(Tensor x) -> Tensor", "", NULL);
    EXPECT_FLOATS(f, bp_op_call1(f->c, op, x), 1, 2);
    const bp_op *again = bp_custom_op(f->c, "short::f", &(bp_custom_op_options){
        .schema = "(Tensor x) -> Tensor", .mutates_args = "", .kernel = give_double});
    EXPECT_FLOATS(f, bp_call_op1(f->c, "short::f", x), 2, 4); /* the same name replaces the old definition */
    assert_ptr_equal(again, op);
    again = bp_custom_op(f->c, "short::f", &(bp_custom_op_options){
        .schema = "(Tensor x, Tensor? y=None) -> Tensor", .mutates_args = "", .kernel = give_double});
    assert_ptr_not_equal(again, op);
    EXPECT_FLOATS(f, bp_call_op1(f->c, "short::f", x, BP_NONE), 2, 4);
    assert_null(bp_op_call1(f->c, op, x));
    expect_error(f, BP_NOT_FOUND, "operator \"short::f\" is gone");
    assert_int_equal(bp_custom_op_remove(f->c, "short::f"), BP_OK);
    bp_custom_op_remove(f->c, "short::f");
    expect_error(f, BP_NOT_FOUND, "there is no custom operator \"short::f\"");
}

static void c14_schema_given(void **state)
{
    fixture *f = *state;
    assert_null(define(f, "given::f", "(Tensor x, Tensor y) -> Tensor", "x", NULL));
    expect_error(f, BP_INVALID_ARGUMENT, "mutates_args of \"given::f\" is \"x\", and its schema writes \"\"");
    assert_null(define(f, "given::f", "(Tensor(a!) x, Tensor y) -> Tensor", "", NULL));
    expect_error(f, BP_INVALID_ARGUMENT, "mutates_args of \"given::f\" is \"\", and its schema writes \"x\"");
    assert_null(define(f, "given::f", "(Tensor x) -> Tensor", "zz", NULL));
    expect_error(f, BP_INVALID_ARGUMENT, "\"zz\" of mutates_args is no argument of \"given::f\"");
    assert_null(define(f, "given::f", "(Tensor x, int n) -> Tensor", "n", NULL));
    expect_error(f, BP_INVALID_ARGUMENT, "\"n\" of mutates_args is no tensor of \"given::f\"");
    assert_non_null(define(f, "given::f", "(Tensor(a!) x, Tensor y, Tensor(b!)[] z) -> Tensor", "x, z", NULL));
    assert_non_null(define(f, "given::unknown", "(Tensor x, int n) -> Tensor", "unknown", NULL));
    bp_register_autograd(f->c, NULL, "given::unknown", my_op_backward, NULL, NULL);
    expect_error(f, BP_FAILED_PRECONDITION, "given::unknown(Tensor(a0!) x, int n) -> Tensor");
    bp_custom_op_remove(f->c, "given::f");
    bp_custom_op_remove(f->c, "given::unknown");
}

static void c14_kernel_placement(void **state)
{
    fixture *f = *state;
    bp_tensor *x = FLOATS(f, 1, 2);
    assert_non_null(define(f, "placed::any", "(Tensor x) -> Tensor", "", NULL));
    assert_non_null(define(f, "placed::far", "(Tensor x) -> Tensor", "", "cuda"));
    assert_non_null(define(f, "placed::both", "(Tensor x) -> Tensor", "", "cpu, cuda"));
    EXPECT_FLOATS(f, bp_call_op1(f->c, "placed::any", x), 1, 2);
    EXPECT_FLOATS(f, bp_call_op1(f->c, "placed::both", x), 1, 2);
    assert_null(bp_call_op1(f->c, "placed::far", x));
    expect_error(f, BP_UNIMPLEMENTED, "\"placed::far\" has no kernel for cpu; those that it has: cuda");
    assert_null(define(f, "placed::bad", "(Tensor x) -> Tensor", "", "cpu,tpu"));
    expect_error(f, BP_INVALID_ARGUMENT, "\"tpu\" is no device");
    assert_null(bp_op_get(f->c, "placed::bad"));
    bp_error_clear(f->c);
    assert_int_equal(bp_register_kernel(f->c, "placed::far", "cpu", give_double, NULL), BP_OK);
    EXPECT_FLOATS(f, bp_call_op1(f->c, "placed::far", x), 2, 4);
    assert_int_equal(bp_register_kernel(f->c, "placed::any", "cpu", give_double, NULL), BP_OK);
    EXPECT_FLOATS(f, bp_call_op1(f->c, "placed::any", x), 2, 4); /* it overrides the function */
    bp_custom_op_remove(f->c, "placed::any");
    bp_custom_op_remove(f->c, "placed::far");
    bp_custom_op_remove(f->c, "placed::both");
}

static void ones(bp_ctx *c, bp_op_call *k)
{
    bp_op_return(c, k, bp_ones(c, ((bp_dims){(bp_dim[]){bp_op_dim(k, 0)}, 1, 1})));
}

static void c14_no_tensor_args(void **state)
{
    fixture *f = *state;
    bp_custom_op_options o = {.schema = "(int n) -> Tensor", .mutates_args = "", .device_types = "cpu", .kernel = ones};
    assert_null(bp_custom_op(f->c, "made::ones", &o));
    expect_error(f, BP_INVALID_ARGUMENT, "must have an argument \"Device device\"");
    o.schema = "(int n, Device device) -> Tensor";
    assert_non_null(bp_custom_op(f->c, "made::ones", &o));
    bp_device cpu = {BP_CPU, 0}, cuda = {BP_CUDA, 0};
    EXPECT_FLOATS(f, bp_call_op1(f->c, "made::ones", 2, cpu), 1, 1);
    assert_null(bp_call_op1(f->c, "made::ones", 2, cuda));
    expect_error(f, BP_UNIMPLEMENTED, "\"made::ones\" has no kernel for cuda; those that it has: cpu");
    bp_custom_op_remove(f->c, "made::ones");
}

static void c14_kernel_toggling(void **state)
{
    fixture *f = *state;
    bp_tensor *x = FLOATS(f, 1, 2);
    define(f, "toggled::f", "(Tensor x) -> Tensor", "", NULL);
    bp_register_kernel(f->c, "toggled::f", "cpu", give_double, NULL);
    EXPECT_FLOATS(f, bp_call_op1(f->c, "toggled::f", x), 2, 4);
    assert_int_equal(bp_set_kernel_enabled(f->c, "toggled::f", "cpu", 0), 1);
    EXPECT_FLOATS(f, bp_call_op1(f->c, "toggled::f", x), 1, 2);
    assert_false(said(f, "is off already"));
    assert_int_equal(bp_set_kernel_enabled(f->c, "toggled::f", "cpu", 0), 0);
    assert_true(said(f, "the kernel of \"toggled::f\" for cpu is off already"));
    assert_int_equal(bp_set_kernel_enabled(f->c, "toggled::f", "cpu", 1), 0);
    EXPECT_FLOATS(f, bp_call_op1(f->c, "toggled::f", x), 2, 4);
    bp_set_kernel_enabled(f->c, "toggled::f", "cpu", 0);
    bp_register_kernel(f->c, "toggled::f", "all", give_double, NULL);
    assert_int_equal(bp_set_kernel_enabled(f->c, "toggled::f", "all", 0), 1);
    EXPECT_FLOATS(f, bp_call_op1(f->c, "toggled::f", x), 1, 2);
    bp_set_kernel_enabled(f->c, "toggled::f", "cuda", 1);
    expect_error(f, BP_NOT_FOUND, "\"toggled::f\" has no kernel for cuda");
    bp_custom_op_remove(f->c, "toggled::f");
}

static void give_input(bp_ctx *c, bp_op_call *k) { bp_op_return(c, k, bp_op_tensor(k, 0)); }
static void give_view(bp_ctx *c, bp_op_call *k) { bp_op_return(c, k, bp_t(c, bp_op_tensor(k, 0))); }
static void give_twice(bp_ctx *c, bp_op_call *k)
{
    bp_tensor *y = bp_add(c, bp_op_tensor(k, 0), 1);
    bp_op_return(c, k, y);
    bp_op_return(c, k, y);
}

static void expect_aliasing(fixture *f, const char *text, bp_op_fn kernel)
{
    bp_custom_op(f->c, "aliased::f", &(bp_custom_op_options){.schema = text, .mutates_args = "", .kernel = kernel});
    expect_ok(f);
    assert_null(bp_call_op1(f->c, "aliased::f", FLOATS(f, 1, 2)));
    expect_error(f, BP_INVALID_ARGUMENT, "(1) must not also be an input of the operator, and (2) may not alias any");
}

static void c14_eager_aliasing_check(void **state)
{
    fixture *f = *state;
    expect_aliasing(f, "(Tensor x) -> Tensor", give_input);
    expect_aliasing(f, "(Tensor x) -> Tensor", give_view);
    expect_aliasing(f, "(Tensor x) -> (Tensor, Tensor)", give_twice);
    bp_call_op1(f->c, "aliased::f", FLOATS(f, 1));
    expect_error(f, BP_INVALID_ARGUMENT, "return a clone of it");
    bp_custom_op(f->c, "aliased::f", &(bp_custom_op_options){
        .schema = "(Tensor(a) x) -> Tensor(a)", .mutates_args = "", .kernel = give_view}); /* a view says so */
    bp_tensor *x = FLOATS(f, 1, 2), *v = bp_call_op1(f->c, "aliased::f", x);
    expect_ok(f);
    assert_true(bp_tensor_same_storage(x, v));
    bp_custom_op_remove(f->c, "aliased::f");
}

static void c14_kwarg_only_tensors(void **state)
{
    fixture *f = *state;
    assert_null(define(f, "keyed::f", "(Tensor x, *, Tensor y) -> Tensor", "", NULL));
    expect_error(f, BP_UNIMPLEMENTED, "\"keyed::f\" has a tensor by keyword alone");
    assert_non_null(define(f, "keyed::f", "(Tensor x, *, float alpha=2.0) -> Tensor", "", NULL));
    EXPECT_FLOATS(f, bp_call_op1(f->c, "keyed::f", FLOATS(f, 1)), 1);
    EXPECT_FLOATS(f, bp_call_op1(f->c, "keyed::f", FLOATS(f, 1), 3.0), 1);
    bp_custom_op_remove(f->c, "keyed::f");
}

static void give_two(bp_ctx *c, bp_op_call *k)
{
    bp_op_return(c, k, bp_empty_like(c, bp_op_tensor(k, 0)));
    bp_op_return(c, k, bp_empty_like(c, bp_op_tensor(k, 0)));
}

static void c14_register_fake_on_existing(void **state)
{
    fixture *f = *state;
    bp_library *lib = bp_library_new(f->c, BP_LIBRARY_DEF, "faked", NULL);
    bp_library *more = bp_library_new(f->c, BP_LIBRARY_FRAGMENT, "faked", NULL);
    bp_library_define(f->c, lib, "f(Tensor x) -> Tensor", NULL);
    bp_library_define(f->c, lib, "meta(Tensor x) -> Tensor", NULL);
    bp_library_define(f->c, lib, "made(Tensor x) -> Tensor", NULL);
    bp_register_fake(f->c, lib, "f", my_op_fake, NULL, 0);
    bp_register_fake(f->c, lib, "f", my_op_fake, NULL, 0);
    expect_error(f, BP_ALREADY_EXISTS, "there is already a fake of \"faked::f\"");
    assert_int_equal(bp_register_fake(f->c, more, "faked::f", give_two, NULL, 1), BP_OK);
    bp_library_impl(f->c, lib, "meta", "meta", my_op_fake, NULL, 0);
    bp_register_fake(f->c, lib, "meta", my_op_fake, NULL, 0);
    expect_error(f, BP_FAILED_PRECONDITION, "takes no fake beside its kernel for meta");
    bp_library_impl(f->c, lib, "made", NULL, give_double, NULL, 0);
    bp_register_fake(f->c, lib, "made", my_op_fake, NULL, 1);
    expect_error(f, BP_FAILED_PRECONDITION, "takes no fake beside its composite kernel");
    op_call k = {.op = (const op_row *)bp_op_get(f->c, "faked::f")};
    bp_value x = value_tensor(FLOATS(f, 1));
    k.args = &x;
    assert_int_equal(op_run_fake(f->c, &k), BP_INVALID_ARGUMENT); /* the newest is used */
    expect_error(f, BP_INVALID_ARGUMENT, "its fake gave 2 results, and its schema says 1");
    bp_library_destroy(more); /* the former one is back */
    assert_int_equal(op_run_fake(f->c, &k), BP_OK);
    assert_int_equal(k.nout, 1);
    tensor_unref(k.out[0]);
    bp_library_destroy(lib);
}

typedef struct { int number, calls, failed; } worker;

/* Defines, calls, replaces and removes an operator of its own, beside one that all call. */
static void *work(void *arg)
{
    worker *w = arg;
    char name[32];
    bp_ctx *c = bp_ctx_new(NULL);
    snprintf(name, sizeof name, "threads::f%d", w->number);
    for (int i = 0; i < 100; i++) {
        bp_custom_op(c, name, &(bp_custom_op_options){.schema = "(Tensor x) -> Tensor", .mutates_args = "",
                                                      .kernel = i & 1 ? give_clone : give_double});
        bp_scope_begin(c);
        bp_tensor *x = bp_ones(c, BP_DIMS(2)), *y = bp_call_op1(c, name, x);
        y = bp_call_op1(c, "threads::shared", y);
        w->failed += bp_item_float(c, bp_sum(c, y)) != (i & 1 ? 4 : 8);
        w->calls++;
        bp_scope_end(c);
        if (i % 3 == 0)
            bp_custom_op_remove(c, name);
    }
    w->failed += bp_error(c) != BP_OK;
    bp_ctx_destroy(c);
    return NULL;
}

static void threads_define_and_call_at_once(void **state)
{
    fixture *f = *state;
    pthread_t threads[4];
    worker workers[4] = {{0}};
    bp_custom_op(f->c, "threads::shared", &(bp_custom_op_options){
        .schema = "(Tensor x) -> Tensor", .mutates_args = "", .kernel = give_double});
    for (int i = 0; i < 4; i++) {
        workers[i].number = i;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].calls, 100);
        assert_int_equal(workers[i].failed, 0);
    }
    bp_custom_op_remove(f->c, "threads::shared");
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(c14_library_kinds),
        T(c14_define),
        T(c14_impl),
        T(c14_fallback),
        T(c14_destruction),
        T(c14_custom_op),
        T(c14_schema_given),
        T(c14_kernel_placement),
        T(c14_no_tensor_args),
        T(c14_kernel_toggling),
        T(c14_eager_aliasing_check),
        T(c14_kwarg_only_tensors),
        T(c14_register_fake_on_existing),
        T(threads_define_and_call_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
