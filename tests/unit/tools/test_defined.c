/* What defines a factorization or random numbers, seen to fail on kernels that are wrong: each case runs a row as it
 * is, and then with a kernel planted that spoils one result a little. */
#include "host/tools/golden_defined.h"
#include "tests/lib/check.h"
#include <backplane/backplane.h>
#include <math.h>
#include <stdlib.h>

static bp_ctx *c;
static bp_tensor *square, *tall; /* f64[3, 3] and f64[4, 3] */

static int begin(void **state)
{
    (void)state;
    static const double nine[] = {4, 1, -2, 1, 5, 3, -2, 3, -7}, twelve[] = {1, 2, 3, -4, 5, 6, 7, 8, -9, 2, 0, 1};
    c = bp_ctx_new(NULL);
    square = c ? bp_tensor_from(c, BP_F64, 2, (const int64_t[]){3, 3}, nine) : NULL;
    tall = c ? bp_tensor_from(c, BP_F64, 2, (const int64_t[]){4, 3}, twelve) : NULL;
    return square && tall ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    bp_ctx_destroy(c);
    return 0;
}

/* -- planted kernels -- */
enum plant { HONEST, LARGER, ONE_ELEMENT, EQUAL, UNSEEDED };
static struct { op_kernel_fn real; uint32_t result; enum plant plant; int calls; } the;

static double *cell(bp_tensor *t, int64_t i, size_t *step)
{
    *step = dtype_size(t->dtype);
    return (double *)(void *)((char *)tensor_ptr(t) + (size_t)i * *step);
}

static void spoil(bp_tensor *t, int64_t i, double by, double plus)
{
    size_t step;
    void *at = cell(t, i, &step);
    num v = dtype_load(t->dtype, at);
    v.f = v.f * by + plus, v.im *= by;
    v.i = (int64_t)((double)v.i * by + plus);
    dtype_store(t->dtype, at, v);
}

static bp_status planted(bp_ctx *ctx, op_call *k)
{
    bp_status s = the.real(ctx, k);
    bp_tensor *t = k->out[the.result];
    for (int64_t i = 0; s == BP_OK && i < tensor_nelem(t); i++) {
        if (the.plant == LARGER)
            spoil(t, i, 1.1, 0);
        else if (the.plant == EQUAL)
            spoil(t, i, 0, 0.5);
        else if (the.plant == UNSEEDED && the.calls)
            spoil(t, i, 0.999, 0);
    }
    if (s == BP_OK && the.plant == ONE_ELEMENT)
        spoil(t, tensor_nelem(t) - 1, 1, 1);
    the.calls++;
    return s;
}

/* What the mode says of the call with that kernel; "" when nothing is wrong. Static. */
static const char *judged(const char *target, uint32_t n, const bp_value *pos, enum plant plant, uint32_t result)
{
    static char text[1024];
    buf why = {0};
    golden_definer d;
    op_row row = *op_by_target(target);
    bp_tensor *out[4] = {NULL};
    bp_value *args;
    arena_mark mark = arena_get_mark(&c->scratch);
    assert_int_equal(op_bind(c, &row, pos, n, NULL, NULL, 0, &args), BP_OK);
    the.real = row.kernel, the.result = result, the.plant = plant, the.calls = 0;
    row.kernel = planted;
    op_call k = {.op = &row, .args = args, .nargs = row.schema->nargs, .out = out, .nout = 4};
    golden_define_begin(c, &d, &why);
    assert_int_equal(op_dispatch(c, &k), BP_OK);
    golden_define_end(c, &d);
    for (uint32_t i = 0; i < k.nout; i++)
        tensor_unref(out[i]);
    arena_reset(&c->scratch, mark);
    assert_int_equal(d.checked, 1);
    assert_int_equal(d.wrong, why.n > 0);
    snprintf(text, sizeof text, "%s", buf_text(&why));
    buf_fini(&why);
    return text;
}

#define GOOD(target, ...) assert_string_equal(JUDGED(target, HONEST, 0, __VA_ARGS__), "")
#define BAD(target, plant, result, text, ...) assert_contains(JUDGED(target, plant, result, __VA_ARGS__), (text))
#define JUDGED(target, plant, result, ...) \
    judged((target), sizeof((bp_value[]){__VA_ARGS__}) / sizeof(bp_value), (bp_value[]){__VA_ARGS__}, (plant), (result))
#define T(t) value_tensor(t)
#define F(f) value_float(f)
#define I(i) value_int(i)
#define B(b) value_bool(b)

static void singular_values_and_vectors_multiply_back(void **state)
{
    (void)state;
    for (int full = 0; full < 2; full++) {
        GOOD("aten._linalg_svd.default", T(tall), B(full));
        GOOD("aten.linalg_svd.default", T(tall), B(full));
        GOOD("aten.svd.default", T(tall), B(!full));
    }
    GOOD("aten._linalg_svd.default", T(tall), B(false), B(false));
    BAD("aten._linalg_svd.default", LARGER, 1, "squares of S", T(tall), B(false), B(false));
    for (uint32_t result = 0; result < 3; result++)
        BAD("aten._linalg_svd.default", LARGER, result, "(aten._linalg_svd.default)", T(tall));
    BAD("aten.svd.default", ONE_ELEMENT, 2, "V", T(tall));
    BAD("aten.linalg_svd.default", ONE_ELEMENT, 0, "U", T(tall));
}

static void eigenvalues_and_vectors_fit_the_matrix(void **state)
{
    (void)state;
    GOOD("aten.linalg_eigh.default", T(square));
    GOOD("aten.linalg_eigh.default", T(square), value_str("U"));
    GOOD("aten._linalg_eigh.default", T(square), value_str("L"), B(false));
    GOOD("aten.linalg_eig.default", T(square));
    GOOD("aten.linalg_eigvals.default", T(square));
    BAD("aten.linalg_eigh.default", LARGER, 0, "powers of eigenvalues", T(square));
    BAD("aten.linalg_eigh.default", LARGER, 1, "V^H V", T(square));
    BAD("aten.linalg_eigh.default", ONE_ELEMENT, 1, "A V", T(square));
    BAD("aten._linalg_eigh.default", ONE_ELEMENT, 0, "powers", T(square), value_str("L"), B(false));
    BAD("aten.linalg_eig.default", ONE_ELEMENT, 1, "A V", T(square));
    BAD("aten.linalg_eigvals.default", ONE_ELEMENT, 0, "powers", T(square));
}

static void orthogonal_and_upper_factors_multiply_back(void **state)
{
    (void)state;
    static const char *const modes[] = {"reduced", "complete", "r"};
    for (uint32_t i = 0; i < 3; i++)
        GOOD("aten.linalg_qr.default", T(tall), value_str(modes[i]));
    BAD("aten.linalg_qr.default", LARGER, 0, "Q R", T(tall));
    BAD("aten.linalg_qr.default", LARGER, 1, "Q R", T(tall));
    BAD("aten.linalg_qr.default", LARGER, 1, "R^H R", T(tall), value_str("r"));
    GOOD("aten.geqrf.default", T(tall));
    BAD("aten.geqrf.default", LARGER, 0, "reflection", T(tall));
    BAD("aten.geqrf.default", LARGER, 1, "reflection", T(tall));
}

static void random_numbers_have_their_law(void **state)
{
    (void)state;
    bp_tensor *p = bp_full(c, BP_DIMS(50), 0.3), *x = bp_zeros(c, BP_DIMS(50));
    bp_value size = value_ints(c, (const int64_t[]){64}, 1);
    GOOD("aten.rand.default", size);
    BAD("aten.rand.default", LARGER, 0, "aten.rand.default", size);
    BAD("aten.rand.default", EQUAL, 0, "the variance", size);
    GOOD("aten.randn.default", size);
    BAD("aten.randn.default", LARGER, 0, "the variance by 0.2", size);
    GOOD("aten.randint.low", I(3), I(9), size);
    BAD("aten.randint.low", ONE_ELEMENT, 0, "and not from 7 to 8", I(7), I(9), size);
    GOOD("aten.uniform.default", T(x), F(-2), F(3));
    BAD("aten.uniform.default", LARGER, 0, "not from -2 to 3", T(x), F(-2), F(3));
    GOOD("aten.normal.Tensor_float", T(p), F(2));
    BAD("aten.normal.Tensor_float", LARGER, 0, "deviations", T(p), F(2));
    GOOD("aten.exponential.default", T(x), F(0.5));
    BAD("aten.exponential.default", EQUAL, 0, "deviations", T(x), F(0.5));
    GOOD("aten.bernoulli.default", T(p));
    BAD("aten.bernoulli.default", EQUAL, 0, "deviations", T(p));
}

static void the_seed_alone_decides(void **state)
{
    (void)state;
    bp_value size = value_ints(c, (const int64_t[]){64}, 1);
    BAD("aten.randn.default", UNSEEDED, 0, "the same seed and offset give other numbers", size);
    BAD("aten.rand.default", UNSEEDED, 0, "the same seed and offset give other numbers", size);
}

static void dropped_elements_are_gone_and_others_make_up(void **state)
{
    (void)state;
    bp_tensor *x = bp_full(c, BP_DIMS(50), 3, .dtype = BP_F32);
    GOOD("aten.dropout.default", T(x), F(0.25), B(true));
    GOOD("aten.native_dropout.default", T(x), F(0.25), B(true));
    BAD("aten.dropout.default", LARGER, 0, "dropped by 0.25", T(x), F(0.25), B(true));
    BAD("aten.native_dropout.default", EQUAL, 0, "dropped by 0.25", T(x), F(0.25), B(true));
}

static void indices_are_in_range_and_permutations_whole(void **state)
{
    (void)state;
    static const float weights[] = {0.2f, 0, 0.8f};
    bp_tensor *w = bp_tensor_from(c, BP_F32, 1, (const int64_t[]){3}, weights);
    GOOD("aten.multinomial.default", T(w), I(2), B(false));
    GOOD("aten.multinomial.default", T(w), I(20), B(true));
    BAD("aten.multinomial.default", EQUAL, 0, "index 0 of 3", T(w), I(2), B(false));
    BAD("aten.multinomial.default", ONE_ELEMENT, 0, "of 3", T(w), I(20), B(true));
    GOOD("aten.randperm.default", I(9));
    BAD("aten.randperm.default", ONE_ELEMENT, 0, "not in the permutation", I(9));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(singular_values_and_vectors_multiply_back, begin, end),
        cmocka_unit_test_setup_teardown(eigenvalues_and_vectors_fit_the_matrix, begin, end),
        cmocka_unit_test_setup_teardown(orthogonal_and_upper_factors_multiply_back, begin, end),
        cmocka_unit_test_setup_teardown(random_numbers_have_their_law, begin, end),
        cmocka_unit_test_setup_teardown(the_seed_alone_decides, begin, end),
        cmocka_unit_test_setup_teardown(dropped_elements_are_gone_and_others_make_up, begin, end),
        cmocka_unit_test_setup_teardown(indices_are_in_range_and_permutations_whole, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
