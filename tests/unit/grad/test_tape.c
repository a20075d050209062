/* The tape: gradients of small programs, where they go, what is refused. */
#include "tests/lib/check.h"
#include <backplane/backplane.h>
#include <math.h>
#include <stdlib.h>

static bp_ctx *c;

static int begin(void **state)
{
    (void)state;
    c = bp_ctx_new(NULL);
    return c ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    bp_ctx_destroy(c);
    return 0;
}

#define OK() assert_string_equal(bp_error_text(c), "")

static bp_tensor *floats(uint32_t n, const float *at)
{
    return bp_tensor_from(c, BP_F32, 1, (const int64_t[]){n}, at);
}
#define F(...) floats(sizeof((const float[]){__VA_ARGS__}) / sizeof(float), (const float[]){__VA_ARGS__})

static bp_tensor *leaf(bp_tensor *t)
{
    bp_tensor_set_requires_grad(c, t, 1);
    return t;
}

static void check_values(bp_tensor *t, uint32_t n, const float *want, const char *file, int line)
{
    float got[64];
    if (!t || bp_tensor_numel(t) != n || bp_tensor_read(c, t, got, n * sizeof *got) != BP_OK) {
        print_error("%s\n", t ? bp_error_text(c) : "no tensor");
        _fail(file, line);
    }
    for (uint32_t i = 0; i < n; i++)
        if (fabsf(got[i] - want[i]) > 1e-5f * (1 + fabsf(want[i]))) {
            print_error("element %u is %g, expected %g\n", i, (double)got[i], (double)want[i]);
            _fail(file, line);
        }
}
#define IS(t, ...) check_values((t), sizeof((const float[]){__VA_ARGS__}) / sizeof(float), \
                                (const float[]){__VA_ARGS__}, __FILE__, __LINE__)
#define GRAD(t) bp_tensor_grad(c, (t))

static void gradients_are_added_to_leaves(void **state)
{
    (void)state;
    bp_tensor *x = leaf(F(1, 2, 3)), *y = leaf(F(4, 5, 6)), *z = F(7, 8, 9);
    bp_tensor *loss = bp_sum(c, bp_add(c, bp_mul(c, x, y), z));
    OK();
    assert_true(bp_tensor_requires_grad(loss));
    assert_false(bp_tensor_is_leaf(loss));
    assert_int_equal(bp_backward(c, loss, NULL, BP_RETAIN_GRAPH), BP_OK);
    IS(GRAD(x), 4, 5, 6);
    IS(GRAD(y), 1, 2, 3);
    assert_null(GRAD(z));
    assert_int_equal(bp_backward(c, loss, NULL, 0), BP_OK);
    IS(GRAD(x), 8, 10, 12);
    OK();
}

static void a_broadcast_input_gets_the_sum(void **state)
{
    (void)state;
    bp_tensor *x = leaf(bp_tensor_from(c, BP_F32, 2, (const int64_t[]){2, 1}, (const float[]){1, 2}));
    bp_tensor *y = leaf(F(1, 10, 100));
    bp_backward(c, bp_sum(c, bp_mul(c, x, y)), NULL, 0);
    IS(GRAD(x), 111, 111);
    assert_int_equal(bp_tensor_rank(GRAD(x)), 2);
    IS(GRAD(y), 3, 3, 3);
    OK();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)
        T(gradients_are_added_to_leaves),
        T(a_broadcast_input_gets_the_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
