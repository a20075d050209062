/* Random numbers: moments, ranges, equal seeds, and by how much each call moves the generator. */
#include "host/op/op.h"
#include "tests/lib/op_world.h"
#include <math.h>
#include <stdlib.h>

enum { N = 20000 };
static bp_tensor *run(const char *target, const bp_value *pos, uint32_t n)
{
    const op_row *op = op_by_target(target);
    assert_non_null(op);
    bp_value *args;
    bp_tensor *out[2] = {NULL, NULL};
    assert_int_equal(op_bind(c, op, pos, n, NULL, NULL, 0, &args), BP_OK);
    op_call k = {.op = op, .args = args, .out = out, .nout = 2};
    if (op_dispatch(c, &k) != BP_OK)
        return NULL;
    for (uint32_t i = 1; i < k.nout; i++)
        scope_own(c, k.out[i]);
    return scope_own(c, k.out[0]);
}

static bp_tensor *sized(const char *target, int64_t n)
{
    bp_value size = value_ints(c, &n, 1);
    return run(target, &size, 1);
}

static double at(const bp_tensor *t, int64_t i)
{
    num v = dtype_load((bp_dtype)t->dtype, (const char *)tensor_ptr(t) + (size_t)i * dtype_size(t->dtype));
    return v.kind == NUM_INT ? (double)v.i : v.f;
}

/* The mean of t, and of its squares around that mean; *low and *high: its range. */
static double moments(const bp_tensor *t, double *variance, double *low, double *high)
{
    double sum = 0, squares = 0;
    int64_t n = tensor_nelem(t);
    *low = INFINITY, *high = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        sum += at(t, i);
        *low = fmin(*low, at(t, i));
        *high = fmax(*high, at(t, i));
    }
    for (int64_t i = 0; i < n; i++)
        squares += (at(t, i) - sum / (double)n) * (at(t, i) - sum / (double)n);
    *variance = squares / (double)n;
    return sum / (double)n;
}

static void near(double v, double expected, double by)
{
    if (!(fabs(v - expected) <= by))
        fail_msg("%g is not within %g of %g", v, by, expected);
}

static void moments_and_ranges_are_right(void **state)
{
    (void)state;
    double variance, low, high;
    bp_scope_begin(c);
    bp_manual_seed(c, 1);
    near(moments(sized("aten.rand.default", N), &variance, &low, &high), 0.5, 0.01);
    near(variance, 1.0 / 12, 0.003);
    assert_true(low >= 0 && high < 1);
    near(moments(sized("aten.randn.default", N), &variance, &low, &high), 0, 0.03);
    near(variance, 1, 0.05);
    assert_true(low < -3 && high > 3 && low > -8 && high < 8);
    int64_t n = N;
    bp_value ints[] = {value_int(-3), value_int(4), value_ints(c, &n, 1)};
    near(moments(run("aten.randint.low", ints, 3), &variance, &low, &high), 0, 0.06);
    assert_true(low == -3 && high == 3);
    bp_value normal[] = {value_float(5), value_float(0.5), value_ints(c, &n, 1)};
    near(moments(run("aten.normal.float_float", normal, 3), &variance, &low, &high), 5, 0.02);
    near(variance, 0.25, 0.02);
    bp_value p[] = {value_tensor(sized("aten.rand.default", N)), value_float(0.25)};
    near(moments(run("aten.bernoulli.p", p, 2), &variance, &low, &high), 0.25, 0.015);
    assert_true(low == 0 && high == 1);
    bp_value rate[] = {p[0], value_float(2)};
    near(moments(run("aten.exponential.default", rate, 2), &variance, &low, &high), 0.5, 0.02);
    assert_true(low >= 0);
    bp_scope_end(c);
}

static void halves_never_round_up_to_one(void **state)
{
    (void)state;
    static const bp_dtype types[] = {BP_F16, BP_BF16};
    double variance, low, high;
    bp_scope_begin(c);
    for (uint32_t i = 0; i < 2; i++) {
        int64_t n = N;
        bp_value args[] = {value_ints(c, &n, 1), value_dtype(types[i])};
        const char *names[] = {"dtype"};
        bp_value *bound;
        bp_tensor *out = NULL;
        const op_row *op = op_by_target("aten.rand.default");
        assert_int_equal(op_bind(c, op, args, 1, names, args + 1, 1, &bound), BP_OK);
        op_call k = {.op = op, .args = bound, .out = &out, .nout = 1};
        assert_int_equal(op_dispatch(c, &k), BP_OK);
        near(moments(out, &variance, &low, &high), 0.5, 0.01);
        assert_true(high < 1);
        tensor_unref(out);
    }
    bp_scope_end(c);
}

static void equal_seeds_give_equal_numbers(void **state)
{
    (void)state;
    bp_scope_begin(c);
    bp_manual_seed(c, 42);
    bp_tensor *a = sized("aten.rand.default", 100), *b = sized("aten.rand.default", 100);
    bp_manual_seed(c, 42);
    bp_tensor *again = sized("aten.rand.default", 100), *both;
    bp_manual_seed(c, 43);
    bp_tensor *other = sized("aten.rand.default", 100);
    bp_manual_seed(c, 42);
    both = sized("aten.rand.default", 200);
    assert_memory_equal(tensor_ptr(a), tensor_ptr(again), 400);
    assert_memory_not_equal(tensor_ptr(a), tensor_ptr(b), 400);
    assert_memory_not_equal(tensor_ptr(a), tensor_ptr(other), 400);
    assert_memory_equal(tensor_ptr(both), tensor_ptr(a), 400);
    assert_memory_equal((char *)tensor_ptr(both) + 400, tensor_ptr(b), 400);
    bp_scope_end(c);
}

static void a_call_moves_the_generator_by_its_elements(void **state)
{
    (void)state;
    static const char *const targets[] = {"aten.rand.default", "aten.randn.default"};
    bp_scope_begin(c);
    bp_manual_seed(c, 7);
    assert_int_equal(bp_generator_offset(c), 0);
    for (uint32_t i = 0; i < 2; i++)
        sized(targets[i], 10);
    assert_int_equal(bp_generator_offset(c), 20);
    bp_value n = value_int(5);
    run("aten.randperm.default", &n, 1);
    assert_int_equal(bp_generator_offset(c), 25);
    bp_tensor *x = sized("aten.rand.default", 4);
    bp_value drop[] = {value_tensor(x), value_float(0.5), value_bool(true)};
    run("aten.dropout.default", drop, 3);
    assert_int_equal(bp_generator_offset(c), 33);
    drop[2] = value_bool(false);
    assert_ptr_equal(run("aten.dropout.default", drop, 3), x);
    assert_int_equal(bp_generator_offset(c), 33);
    bp_value fill[] = {value_tensor(x)};
    run("aten.uniform_.default", fill, 1);
    assert_int_equal(bp_generator_offset(c), 37);
    bp_scope_end(c);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void a_permutation_has_every_number_once(void **state)
{
    (void)state;
    bp_scope_begin(c);
    bp_value n = value_int(1000);
    bp_tensor *t = run("aten.randperm.default", &n, 1);
    int64_t *v = tensor_ptr(t), moved = 0;
    for (int64_t i = 0; i < 1000; i++)
        moved += v[i] != i;
    assert_true(moved > 900);
    qsort(v, 1000, sizeof *v, compare);
    for (int64_t i = 0; i < 1000; i++)
        assert_int_equal(v[i], i);
    bp_scope_end(c);
}

static void dropout_scales_what_it_keeps(void **state)
{
    (void)state;
    static const int64_t size = N;
    static float ones[N];
    bp_scope_begin(c);
    for (int64_t i = 0; i < N; i++)
        ones[i] = 1;
    bp_tensor *x = bp_tensor_from(c, BP_F32, 1, &size, ones);
    bp_value args[] = {value_tensor(x), value_float(0.75), value_bool(true)};
    bp_tensor *y = run("aten.dropout.default", args, 3);
    int64_t kept = 0;
    for (int64_t i = 0; i < N; i++) {
        assert_true(at(y, i) == 0 || at(y, i) == 4);
        kept += at(y, i) != 0;
    }
    near((double)kept / N, 0.25, 0.015);
    args[1] = value_float(1);
    y = run("aten.dropout.default", args, 3);
    for (int64_t i = 0; i < N; i++)
        assert_true(at(y, i) == 0);
    bp_scope_end(c);
}

static void categories_come_by_their_weights(void **state)
{
    (void)state;
    static const float weights[] = {1, 0, 3};
    bp_scope_begin(c);
    bp_tensor *w = bp_tensor_from(c, BP_F32, 1, (const int64_t[]){3}, weights);
    bp_value args[] = {value_tensor(w), value_int(N), value_bool(true)};
    bp_tensor *t = run("aten.multinomial.default", args, 3);
    int64_t counts[3] = {0};
    for (int64_t i = 0; i < N; i++)
        counts[(int64_t)at(t, i)]++;
    assert_int_equal(counts[1], 0);
    near((double)counts[2] / N, 0.75, 0.015);
    args[1] = value_int(2), args[2] = value_bool(false);
    t = run("aten.multinomial.default", args, 3);
    assert_true(at(t, 0) != 1 && at(t, 1) != 1 && at(t, 0) != at(t, 1));
    args[1] = value_int(3);
    assert_null(run("aten.multinomial.default", args, 3));
    assert_int_equal(bp_error(c), BP_OUT_OF_RANGE);
    bp_error_clear(c);
    bp_scope_end(c);
}

/* The call fails with this code. */
static void refused(bp_status code, const char *target, const bp_value *args, uint32_t n)
{
    assert_null(run(target, args, n));
    assert_int_equal(bp_error(c), code);
    bp_error_clear(c);
}

static void what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    static const float bad[] = {0.5f, 1.5f};
    bp_scope_begin(c);
    int64_t n = 2, negative = -1;
    bp_tensor *x = bp_tensor_from(c, BP_F32, 1, &n, bad);
    refused(BP_OUT_OF_RANGE, "aten.bernoulli.default", (bp_value[]){value_tensor(x)}, 1);
    refused(BP_INVALID_ARGUMENT, "aten.bernoulli.p", (bp_value[]){value_tensor(x), value_float(1.5)}, 2);
    refused(BP_INVALID_ARGUMENT, "aten.dropout.default",
            (bp_value[]){value_tensor(x), value_float(-0.1), value_bool(true)}, 3);
    refused(BP_INVALID_ARGUMENT, "aten.randint.default", (bp_value[]){value_int(0), value_ints(c, &n, 1)}, 2);
    refused(BP_INVALID_ARGUMENT, "aten.randint.low",
            (bp_value[]){value_int(3), value_int(3), value_ints(c, &n, 1)}, 3);
    refused(BP_INVALID_ARGUMENT, "aten.rand.default", (bp_value[]){value_ints(c, &negative, 1)}, 1);
    refused(BP_INVALID_ARGUMENT, "aten.randperm.default", (bp_value[]){value_int(-1)}, 1);
    refused(BP_INVALID_ARGUMENT, "aten.normal.float_float",
            (bp_value[]){value_float(0), value_float(-1), value_ints(c, &n, 1)}, 3);
    refused(BP_INVALID_ARGUMENT, "aten.exponential.default", (bp_value[]){value_tensor(x), value_float(0)}, 2);
    refused(BP_INVALID_ARGUMENT, "aten.uniform.default",
            (bp_value[]){value_tensor(x), value_float(2), value_float(1)}, 3);
    bp_scope_end(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moments_and_ranges_are_right),
        cmocka_unit_test(halves_never_round_up_to_one),
        cmocka_unit_test(equal_seeds_give_equal_numbers),
        cmocka_unit_test(a_call_moves_the_generator_by_its_elements),
        cmocka_unit_test(a_permutation_has_every_number_once),
        cmocka_unit_test(dropout_scales_what_it_keeps),
        cmocka_unit_test(categories_come_by_their_weights),
        cmocka_unit_test(what_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests(tests, op_world_begin, op_world_end);
}
