/* Two custom operators: mylib::my_op(x, alpha) = x * alpha, with its fake and its derivative, and mylib::hypot, which
 * wraps a function of the C library. Both are called eagerly, compiled, and checked.
 *
 *     custom_ops [BACKEND] */
#include <backplane/library.h>
#include <math.h>
#include <stdio.h>

/* -- mylib::my_op: made of operators ------------------------------------------------------------------------------- */

static void my_op(bp_ctx *c, bp_op_call *k)
{
    bp_op_return(c, k, bp_mul(c, bp_op_tensor(k, 0), bp_op_float(k, 1)));
}

/* What a result looks like; nothing is computed. */
static void like_first(bp_ctx *c, bp_op_call *k)
{
    bp_op_return(c, k, bp_empty_like(c, bp_op_tensor(k, 0)));
}

static void my_op_backward(bp_ctx *c, bp_op_grad *g)
{
    double alpha = bp_op_grad_arg(g, 1)->v.f[0];
    bp_op_grad_return(c, g, bp_mul(c, bp_op_grad_of(c, g, 0), alpha));
    bp_op_grad_return(c, g, NULL); /* alpha is no tensor */
}

/* -- mylib::hypot: a C function, element by element ---------------------------------------------------------------- */

static void hypot_kernel(bp_ctx *c, bp_op_call *k)
{
    bp_tensor *x = bp_contiguous(c, bp_op_tensor(k, 0)), *y = bp_contiguous(c, bp_op_tensor(k, 1));
    bp_tensor *r = bp_empty_like(c, x);
    int64_t n = bp_tensor_numel(r);
    if (x && y && (bp_tensor_dtype(x) != BP_F32 || bp_tensor_dtype(y) != BP_F32 || bp_tensor_numel(y) != n)) {
        bp_op_fail(c, k, BP_INVALID_ARGUMENT, "it takes two float32 tensors of one size");
        return;
    }
    const float *a = bp_tensor_data(c, x), *b = bp_tensor_data(c, y);
    float *to = bp_tensor_data(c, r);
    for (int64_t i = 0; to && i < n; i++)
        to[i] = hypotf(a[i], b[i]);
    bp_op_return(c, k, r);
}

/* d hypot(x, y) = (x dx + y dy) / hypot(x, y): inputs and result are kept. */
static void hypot_setup(bp_ctx *c, bp_op_grad *g, bp_op_call *k)
{
    bp_op_grad_save(c, g, bp_op_tensor(k, 0));
    bp_op_grad_save(c, g, bp_op_tensor(k, 1));
    bp_op_grad_save(c, g, bp_op_result(k, 0));
}

static void hypot_backward(bp_ctx *c, bp_op_grad *g)
{
    bp_tensor *by = bp_div(c, bp_op_grad_of(c, g, 0), bp_op_grad_saved(c, g, 2));
    bp_op_grad_return(c, g, bp_mul(c, by, bp_op_grad_saved(c, g, 0)));
    bp_op_grad_return(c, g, bp_mul(c, by, bp_op_grad_saved(c, g, 1)));
}

/* -- both ---------------------------------------------------------------------------------------------------------- */

static void define(bp_ctx *c)
{
    bp_custom_op(c, "mylib::my_op", &(bp_custom_op_options){
        .schema = "(Tensor x, float alpha) -> Tensor", .mutates_args = "", .kernel = my_op});
    bp_register_fake(c, NULL, "mylib::my_op", like_first, NULL, 0);
    bp_register_autograd(c, NULL, "mylib::my_op", my_op_backward, NULL, NULL);

    bp_custom_op(c, "mylib::hypot", &(bp_custom_op_options){
        .schema = "(Tensor x, Tensor y) -> Tensor", .mutates_args = "", .device_types = "cpu", .kernel = hypot_kernel});
    bp_register_fake(c, NULL, "mylib::hypot", like_first, NULL, 0);
    bp_register_autograd(c, NULL, "mylib::hypot", hypot_backward, hypot_setup, NULL);
}

static void uses_both(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_arg(f, 1, "y");
    bp_return(f, bp_call_op1(c, "mylib::hypot", bp_call_op1(c, "mylib::my_op", x, 2.0), y));
}

static void told(void *arg, const char *test, const char *result)
{
    (void)arg;
    printf("  %s: %s\n", test, result);
}

static void check(bp_ctx *c, const char *op, const bp_args *args)
{
    printf("%s\n", op);
    bp_opcheck(c, op, args, &(bp_opcheck_options){.each = told});
}

static void run(bp_ctx *c, const char *backend)
{
    const int64_t n = 2;
    bp_tensor *x = bp_tensor_from(c, BP_F32, 1, &n, ((float[]){1.5f, 2.5f}));
    bp_tensor *y = bp_tensor_from(c, BP_F32, 1, &n, ((float[]){4, 12}));
    bp_tensor_set_requires_grad(c, x, 1);
    bp_callable *g = bp_compile(c, uses_both, &(bp_compile_options){.backend = backend, .fullgraph = 1});
    bp_tensor *r = bp_call1(c, g, 2, (bp_tensor *[]){x, y});
    bp_print(c, r, "compiled");
    bp_backward(c, bp_sum(c, r), NULL, 0);
    bp_print(c, bp_tensor_grad(c, x), "gradient");
    bp_print(c, bp_call_op1(c, "mylib::hypot", bp_call_op1(c, "mylib::my_op", x, 2.0), y), "eager");
    check(c, "mylib::my_op", BP_ARGS(x, 2.0));
    check(c, "mylib::hypot", BP_ARGS(x, y));
    bp_callable_unref(g);
}

int main(int argc, char **argv)
{
    bp_ctx *c = bp_ctx_new(NULL);
    if (!c)
        return 1;
    define(c);
    run(c, argc > 1 ? argv[1] : "aot_eager");
    int failed = bp_error(c) != BP_OK;
    if (failed)
        fprintf(stderr, "custom_ops: %s", bp_error_text(c));
    bp_ctx_destroy(c);
    return failed;
}
