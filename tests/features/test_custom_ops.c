/* F045 to F051: custom operators, through the public headers. */
#include "tests/lib/mylib.h"
#include "tests/lib/world.h"

static world *w;

static int begin(void **state)
{
    (void)state;
    w = world_open("[backend onednn-cpu]\nlibrary = @plugins@/backplane-onednn.so\n"
                   "[backend defines]\nlibrary = @feature@/defines.so\n"
                   "[backend chain]\nlibrary = @plugins@/backplane-compose.so\nopt.chain = ?onednn-cpu, eager\n");
    return 0;
}

static int end(void **state)
{
    (void)state;
    world_close(w);
    return 0;
}

static bp_tensor *pair(float a, float b)
{
    const int64_t n = 2;
    return bp_tensor_from(w->c, BP_F32, 1, &n, ((float[]){a, b}));
}

static void expect_pair(bp_tensor *t, float a, float b)
{
    float v[2] = {0};
    world_ok(w, bp_error(w->c));
    world_ok(w, bp_tensor_read(w->c, t, v, sizeof v));
    if (v[0] != a || v[1] != b)
        fail_msg("got %g and %g, expected %g and %g", (double)v[0], (double)v[1], (double)a, (double)b);
}

static void expect_error(bp_status code, const char *words)
{
    assert_int_equal(bp_error(w->c), code);
    assert_contains(bp_error_text(w->c), words);
    bp_error_clear(w->c);
}

static void F045_a_library_defines_and_a_fragment_adds(void **state)
{
    (void)state;
    bp_ctx *c = w->c;
    bp_library *lib = bp_library_new(c, BP_LIBRARY_DEF, "feat", NULL);
    bp_library *more = bp_library_new(c, BP_LIBRARY_FRAGMENT, "feat", NULL);
    bp_library *cuda = bp_library_new(c, BP_LIBRARY_IMPL, "feat", "cuda");
    bp_library_define(c, lib, "my_op" MY_OP_SCHEMA, NULL);
    bp_library_define(c, more, "other" MY_OP_SCHEMA, NULL);
    bp_library_impl(c, lib, "my_op", "cpu", my_op, NULL, 0);
    bp_library_impl(c, cuda, "other", NULL, my_op, NULL, 0);
    bp_register_fake(c, lib, "my_op", my_op_fake, NULL, 0);
    bp_register_autograd(c, lib, "my_op", my_op_backward, NULL, NULL);
    bp_tensor *x = pair(1, 2);
    bp_tensor_set_requires_grad(c, x, 1);
    bp_tensor *y = bp_call_op1(c, "feat::my_op", x, 3.0);
    expect_pair(y, 3, 6);
    world_ok(w, bp_backward(c, bp_sum(c, y), NULL, 0));
    expect_pair(bp_tensor_grad(c, x), 3, 3);
    assert_null(bp_call_op1(c, "feat::other", x, 3.0));
    expect_error(BP_UNIMPLEMENTED, "\"feat::other\" has no kernel for cpu; those that it has: cuda");
    bp_library_destroy(cuda);
    bp_library_destroy(more);
    bp_library_destroy(lib);
    assert_null(bp_call_op1(c, "feat::my_op", x, 3.0));
    expect_error(BP_NOT_FOUND, "there is no operator \"feat::my_op\"");
}

static void layers(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *m = bp_arg(f, 1, "m");
    x = bp_relu(c, bp_matmul(c, x, m));
    x = bp_call_op1(c, "mylib::my_op", x, 2.0);
    x = bp_call_op1(c, "mylib::my_op", x, 0.5);
    bp_return(f, bp_relu(c, bp_matmul(c, x, m)));
}

static bp_compiled *forward(bp_graph_module *gm, const bp_inputs *in)
{
    (void)in;
    bp_print_tabular(gm, bp_sink(gm));
    return bp_forward(gm);
}

static void F046_a_captured_function_holds_it_as_one_node(void **state)
{
    (void)state;
    mylib_define(w->c, NULL);
    bp_callable *g = bp_compile(w->c, layers, &(bp_compile_options){.backend_fn = forward, .fullgraph = 1});
    bp_tensor *x = bp_reshape(w->c, pair(1, 2), BP_DIMS(1, 2)), *m = bp_ones(w->c, BP_DIMS(2, 2));
    bp_call1(w->c, g, 2, (bp_tensor *[]){x, m});
    world_ok(w, bp_error(w->c));
    const char *first = strstr(buf_text(&w->shown), "mylib.my_op.default");
    assert_non_null(first);
    assert_contains(first + 1, "mylib.my_op.default");
    bp_callable_stats s = {.size = sizeof s};
    bp_stats(w->c, g, &s);
    assert_int_equal(s.graphs, 1);
    assert_int_equal(s.break_sites + s.steps + s.eager_calls, 0);
    bp_callable_unref(g);
    bp_custom_op_remove(w->c, "mylib::my_op");
}

static uint32_t count(const char *text, const char *part)
{
    uint32_t n = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        n++;
    return n;
}

static void F046_its_neighbours_still_fuse(void **state)
{
    (void)state;
    const char *found, *why;
    buf told = {0};
    bp_backend_state(w->c, "onednn-cpu", 1, &found, &why);
    bool there = !strcmp(found, "ok");
    mylib_define(w->c, NULL);
    bp_callable *g = bp_compile(w->c, layers, &(bp_compile_options){.backend = "chain"});
    bp_tensor *x = bp_reshape(w->c, pair(1, 2), BP_DIMS(1, 2)), *m = bp_ones(w->c, BP_DIMS(2, 2));
    bp_tensor *y = bp_call1(w->c, g, 2, (bp_tensor *[]){x, m});
    world_ok(w, bp_error(w->c));
    expect_pair(y, 6, 6);
    world_ok(w, bp_print_assignment(w->c, g, (bp_write_fn)buf_add, &told));
    const char *text = buf_text(&told);
    if (there) { /* matmul and relu before and behind it, whole; between them eager runs both */
        assert_int_equal(count(text, " -> onednn-cpu -> "), 4);
        assert_int_equal(count(text, "(mylib.my_op.default) -> eager -> "), 2);
    }
    assert_int_equal(count(text, "(mylib.my_op.default)"), 2);
    bp_callable_unref(g);
    buf_fini(&told);
    bp_custom_op_remove(w->c, "mylib::my_op");
}

static void scaled(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_neg(c, bp_call_op1(c, "vendor::scale", bp_neg(c, bp_arg(f, 0, "x")), 3.0)));
}

static void F045_a_plugin_defines_its_own_and_takes_it(void **state)
{
    (void)state;
    buf told = {0};
    bp_callable *g = bp_compile(w->c, scaled, &(bp_compile_options){.backend = "defines", .fullgraph = 1});
    world_ok(w, bp_error(w->c));
    for (int i = 0; i < 2; i++) {
        bp_tensor *x = pair(1, 2);
        expect_pair(bp_call1(w->c, g, 1, &x), 3, 6);
    }
    world_ok(w, bp_print_assignment(w->c, g, (bp_write_fn)buf_add, &told));
    assert_contains(buf_text(&told), "(vendor.scale.default) -> defines -> ");
    assert_int_equal(count(buf_text(&told), "(aten.neg.default) -> eager -> "), 2);
    assert_null(bp_call_op1(w->c, "vendor::scale", bp_to(w->c, pair(1, 2), BP_F64), 2.0));
    expect_error(BP_INVALID_ARGUMENT, "vendor::scale: float32 is wanted");
    bp_callable_unref(g);
    buf_fini(&told);
    bp_custom_op_remove(w->c, "vendor::scale");
}

static void F048_reserved_namespaces_and_other_names_are_refused(void **state)
{
    (void)state;
    static const char *const reserved[] = {"prim", "prims", "aten", "at", "torch", "pytorch"};
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
        assert_null(bp_library_new(w->c, BP_LIBRARY_FRAGMENT, reserved[i], NULL));
        expect_error(BP_INVALID_ARGUMENT, "is a reserved namespace");
    }
    bp_library *lib = bp_library_new(w->c, BP_LIBRARY_DEF, "named", NULL);
    assert_null(bp_library_define(w->c, lib, "other::f(Tensor x) -> Tensor", NULL));
    expect_error(BP_INVALID_ARGUMENT, "of namespace \"other\", and the library of \"named\"");
    bp_library_destroy(lib);
}

static void writes(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_mul(c, x, 2);
    bp_call_op(c, "mylib::bump", BP_ARGS(x), NULL);
    bp_return(f, bp_add(c, x, y));
}

static void F049_what_it_writes_is_functional_and_written_back(void **state)
{
    (void)state;
    bp_custom_op(w->c, "mylib::bump", &(bp_custom_op_options){
        .schema = "(Tensor(a!) x) -> ()", .mutates_args = "x", .kernel = bump});
    bp_callable *g = bp_compile(w->c, writes, &(bp_compile_options){.backend_fn = forward, .fullgraph = 1});
    for (int i = 0; i < 2; i++) {
        bp_tensor *x = pair(1, 2);
        expect_pair(bp_call1(w->c, g, 1, &x), 4, 7);
        expect_pair(x, 2, 3);
    }
    assert_contains(buf_text(&w->shown), "mylib.bump.auto_functionalized");
    bp_callable_unref(g);
    bp_custom_op_remove(w->c, "mylib::bump");
}

static void keep_failure(void *arg, const char *test, const char *result)
{
    if (strcmp(result, "SUCCESS"))
        buf_printf(arg, "%s: %s\n", test, result);
}

static void hides(bp_ctx *c, bp_op_call *k)
{
    *(float *)bp_tensor_data(c, bp_op_tensor(k, 0)) += 1;
    my_op(c, k);
}

static void F049_a_hidden_write_is_found_by_opcheck(void **state)
{
    (void)state;
    buf failed = {0};
    bp_custom_op(w->c, "mylib::my_op", &(bp_custom_op_options){.schema = MY_OP_SCHEMA, .mutates_args = "",
                                                               .kernel = hides});
    bp_register_fake(w->c, NULL, "mylib::my_op", my_op_fake, NULL, 0);
    bp_opcheck_options o = {.each = keep_failure, .arg = &failed};
    world_ok(w, bp_opcheck(w->c, "mylib::my_op", BP_ARGS(pair(1, 2), 2.0), &o));
    assert_contains(buf_text(&failed), "test_schema: argument \"x\" is not marked as written, and the kernel wrote it");
    buf_fini(&failed);
    bp_custom_op_remove(w->c, "mylib::my_op");
}

static void F050_opcheck_passes_what_is_right(void **state)
{
    (void)state;
    buf failed = {0};
    bp_tensor *x = pair(1, 2);
    bp_tensor_set_requires_grad(w->c, x, 1);
    mylib_define(w->c, NULL);
    bp_opcheck_options o = {.each = keep_failure, .arg = &failed};
    world_ok(w, bp_opcheck(w->c, "mylib::my_op", BP_ARGS(x, 2.0), &o));
    assert_string_equal(buf_text(&failed), "");
    bp_register_fake(w->c, NULL, "mylib::my_op", my_op, NULL, 1); /* of another type when x is a number's */
    bp_register_autograd(w->c, NULL, "mylib::my_op", NULL, NULL, NULL);
    expect_error(BP_INVALID_ARGUMENT, "the backward of \"mylib::my_op\" is NULL");
    buf_fini(&failed);
    bp_custom_op_remove(w->c, "mylib::my_op");
}

static void positive(bp_ctx *c, bp_op_call *k)
{
    bp_tensor *x = bp_op_tensor(k, 0);
    bp_op_return(c, k, bp_masked_select(c, x, bp_gt(c, x, 0)));
}

static void positive_fake(bp_ctx *c, bp_op_call *k)
{
    bp_dim n = bp_new_dynamic_size(c, k, 0, -1);
    bp_op_return(c, k, bp_new_empty(c, bp_op_tensor(k, 0), ((bp_dims){&n, 1, 1})));
}

static void picks(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_mul(c, bp_call_op1(c, "mylib::positive", bp_add(c, bp_arg(f, 0, "x"), 1)), 2));
}

static void F051_a_size_that_data_tell_is_a_new_one_of_the_fake(void **state)
{
    (void)state;
    bp_custom_op(w->c, "mylib::positive", &(bp_custom_op_options){
        .schema = "(Tensor x) -> Tensor", .mutates_args = "", .kernel = positive});
    bp_register_fake(w->c, NULL, "mylib::positive", positive_fake, NULL, 0);
    bp_callable *g = bp_compile(w->c, picks, &(bp_compile_options){.backend_fn = forward});
    for (int i = 0; i < 2; i++) {
        bp_tensor *x = pair(1, 2), *y = pair(-3, 2);
        expect_pair(bp_call1(w->c, g, 1, &x), 4, 6);
        bp_tensor *r = bp_call1(w->c, g, 1, &y);
        world_ok(w, bp_error(w->c));
        assert_int_equal(bp_tensor_size(r, 0), 1);
    }
    bp_callable_unref(g);
    bp_custom_op_remove(w->c, "mylib::positive");
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, begin, end)
    const struct CMUnitTest tests[] = {
        T(F045_a_library_defines_and_a_fragment_adds),
        T(F046_a_captured_function_holds_it_as_one_node),
        T(F046_its_neighbours_still_fuse),
        T(F045_a_plugin_defines_its_own_and_takes_it),
        T(F048_reserved_namespaces_and_other_names_are_refused),
        T(F049_what_it_writes_is_functional_and_written_back),
        T(F049_a_hidden_write_is_found_by_opcheck),
        T(F050_opcheck_passes_what_is_right),
        T(F051_a_size_that_data_tell_is_a_new_one_of_the_fake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
