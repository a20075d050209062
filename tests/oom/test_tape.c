/* The tape without memory: every allocation fails once; nothing crashes, nothing leaks, the error says so. */
#include "tests/lib/check.h"
#include "host/tensor/alloc.h"
#include "tests/lib/oom.h"
#include <backplane/backplane.h>
#include <stdint.h>

static bp_ctx *c;

static bool went_well(void)
{
    bp_status s = bp_error(c);
    if (s != BP_OK && s != BP_RESOURCE_EXHAUSTED)
        fail_msg("%s: %s", bp_status_name(s), bp_error_text(c));
    bp_error_clear(c);
    return s == BP_OK;
}

static bp_tensor *leaf(const float *at)
{
    bp_tensor *t = bp_tensor_from(c, BP_F32, 2, (const int64_t[]){2, 2}, at);
    if (t)
        bp_tensor_set_requires_grad(c, t, 1);
    return t;
}

static bp_tensor *look(bp_ctx *ctx, bp_tensor *grad, void *arg)
{
    (void)arg;
    return bp_add(ctx, grad, grad);
}

/* Operators, a composite, writes in place and to a view, a hook. */
static bp_tensor *forward(bp_tensor *x, bp_tensor *w)
{
    bp_tensor *y = bp_linear(c, bp_exp(c, x), w);
    bp_mul_inplace(c, y, w);
    bp_mul_inplace(c, bp_select(c, y, 0, 1), bp_select(c, x, 0, 0));
    if (y)
        bp_tensor_register_hook(c, y, look, NULL, NULL);
    return bp_sum(c, bp_mul(c, bp_t(c, y), y));
}

static bool use_backward(void *arg)
{
    (void)arg;
    bp_scope_begin(c);
    bp_tensor *x = leaf((const float[]){1, 2, 3, 4}), *w = leaf((const float[]){5, 6, 7, 8});
    bp_tensor *loss = forward(x, w);
    if (loss && bp_backward(c, loss, NULL, BP_RETAIN_GRAPH) == BP_OK)
        bp_backward(c, loss, NULL, 0);
    if (bp_error(c) == BP_OK)
        assert_true(bp_tensor_grad(c, x) || bp_error(c) != BP_OK);
    bool well = went_well();
    bp_scope_end(c);
    return well && went_well();
}

static bool use_grad(void *arg)
{
    (void)arg;
    bp_scope_begin(c);
    bp_tensor *x = leaf((const float[]){1, 2, 3, 4}), *w = leaf((const float[]){5, 6, 7, 8}), *in[] = {x, w}, *out[2];
    bp_tensor *loss = forward(x, w);
    if (loss && bp_grad(c, &loss, NULL, 1, in, 2, out, BP_CREATE_GRAPH) == BP_OK) {
        bp_tensor *again = bp_sum(c, out[0]);
        bp_grad(c, &again, NULL, 1, in, 2, out, 0);
    }
    bool well = went_well();
    bp_scope_end(c);
    return well && went_well();
}

static int start(void **state)
{
    (void)state;
    alloc_set_limits(0, SIZE_MAX);
    c = bp_ctx_new(NULL);
    return c && use_backward(NULL) && use_grad(NULL) ? 0 : -1; /* once, for what a process keeps */
}

static int end(void **state)
{
    (void)state;
    bp_ctx_destroy(c);
    return 0;
}

static void backward(void **state)
{
    (void)state;
    assert_true(oom_sweep("backward", use_backward, NULL) > 100);
}

static void gradients_of_gradients(void **state)
{
    (void)state;
    assert_true(oom_sweep("gradients", use_grad, NULL) > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(backward),
        cmocka_unit_test(gradients_of_gradients),
    };
    return cmocka_run_group_tests(tests, start, end);
}
