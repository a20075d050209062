/* Inner loops by the instructions that they use: every level gives the bits of the scalar one, whatever the type, the
 * tail, the alignment and the layout; and the functions of f32 stay within their bounds. */
#include "host/base/isa.h"
#include "host/op/op.h"
#include "host/op/reference/vmath.h"
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
    isa_choose();
    return 0;
}

/* -- the same bits ------------------------------------------------------------------------------------------------- */

enum { ROWS = 3, MAX_OPERANDS = 3 };

/* What follows the tensors. */
enum more { NOTHING, LAST_DIM, LAST_DIMS, FIRST_DIMS, ALL_OF_LAST, LAST_DIM_FLAG };
static const struct { const char *target; uint32_t tensors; enum more more; } rows[] = {
    {"aten.add.Tensor", 2, NOTHING},        {"aten.sub.Tensor", 2, NOTHING},      {"aten.mul.Tensor", 2, NOTHING},
    {"aten.div.Tensor", 2, NOTHING},        {"aten.eq.Tensor", 2, NOTHING},       {"aten.lt.Tensor", 2, NOTHING},
    {"aten.ge.Tensor", 2, NOTHING},         {"aten.logical_and.default", 2, NOTHING},
    {"aten.bitwise_xor.Tensor", 2, NOTHING}, {"aten.maximum.default", 2, NOTHING}, {"aten.minimum.default", 2, NOTHING},
    {"aten.addcmul.default", 3, NOTHING},   {"aten.clamp.Tensor", 3, NOTHING},    {"aten.where.self", 3, NOTHING},
    {"aten.abs.default", 1, NOTHING},       {"aten.neg.default", 1, NOTHING},     {"aten.sign.default", 1, NOTHING},
    {"aten.relu.default", 1, NOTHING},      {"aten.floor.default", 1, NOTHING},   {"aten.round.default", 1, NOTHING},
    {"aten.trunc.default", 1, NOTHING},     {"aten.logical_not.default", 1, NOTHING},
    {"aten.bitwise_not.default", 1, NOTHING}, {"aten.isnan.default", 1, NOTHING}, {"aten.isinf.default", 1, NOTHING},
    {"aten.exp.default", 1, NOTHING},       {"aten.log.default", 1, NOTHING},     {"aten.sqrt.default", 1, NOTHING},
    {"aten.rsqrt.default", 1, NOTHING},     {"aten.reciprocal.default", 1, NOTHING}, {"aten.tanh.default", 1, NOTHING},
    {"aten.sigmoid.default", 1, NOTHING},   {"aten.erf.default", 1, NOTHING},     {"aten.gelu.default", 1, NOTHING},
    {"aten.silu.default", 1, NOTHING},      {"aten.hardswish.default", 1, NOTHING}, {"aten.square.default", 1, NOTHING},
    {"aten.clone.default", 1, NOTHING},     {"aten.sum.dim_IntList", 1, LAST_DIMS}, {"aten.mean.dim", 1, LAST_DIMS},
    {"aten.sum.dim_IntList", 1, FIRST_DIMS}, {"aten.mean.dim", 1, FIRST_DIMS},
    {"aten.any.dim", 1, LAST_DIM},          {"aten.argmax.default", 1, LAST_DIM}, {"aten.amax.default", 1, LAST_DIMS},
    {"aten.softmax.int", 1, LAST_DIM},      {"aten.log_softmax.int", 1, LAST_DIM},
    {"aten._softmax.default", 1, LAST_DIM_FLAG},
    {"aten.layer_norm.default", 1, ALL_OF_LAST}, {"aten.rms_norm.default", 1, ALL_OF_LAST},
    {"aten.var.dim", 1, LAST_DIMS},         {"aten.prod.dim_int", 1, LAST_DIM},   {"aten.cumsum.default", 1, LAST_DIM},
};

static const double special[] = {0,    -0.0, 1,     -1,   INFINITY, -INFINITY, NAN,  1e-40, -1e-42, 3e38,
                                 -88.5, 88.8, -103.9, 0.5, 2.5,      -0.625,    126, 1e-4,  65504,  -255};
/* Whole numbers stay within every integer type. */
static void fill(bp_tensor *t, uint32_t seed)
{
    char *at = tensor_ptr(t);
    for (int64_t i = 0; i < tensor_nelem(t); i++, at += dtype_size(t->dtype)) {
        seed = seed * 1664525u + 1013904223u;
        double v = (double)(int32_t)seed * 0x1p-29; /* in [-4, 4) */
        if (seed >> 28 == 3)
            v = special[(seed >> 8) % (sizeof special / sizeof *special)];
        bool is_float = dtype_is_float(t->dtype);
        dtype_store(t->dtype, at, is_float ? (num){NUM_FLOAT, 0, v, 0} : (num){NUM_INT, (int64_t)(seed >> 25), 0, 0});
    }
}

/* How an operand lies: sizes are [ROWS, n] for all but the last two, which repeat. */
enum layout { FLAT, MISALIGNED, APART, TURNED, ONE_ROW, ONE, LAYOUTS };

static bp_tensor *operand(bp_dtype d, int64_t n, enum layout how, uint32_t seed)
{
    bp_dim all[] = {{2 * ROWS * n + 1, 0, 0}}, one[] = {{1, 0, 0}};
    bp_dim sizes[] = {{how == ONE_ROW || how == ONE ? 1 : ROWS, 0, 0}, {how == ONE ? 1 : n, 0, 0}};
    bp_dim steps[] = {{how == TURNED ? 1 : how == APART ? 2 * n : n, 0, 0},
                      {how == TURNED ? ROWS : how == APART ? 2 : 1, 0, 0}};
    tensor_meta whole = {.dtype = d, .device = {BP_CPU, 0}, .rank = 1, .sizes = all, .strides = one};
    tensor_meta m = {.dtype = d, .device = {BP_CPU, 0}, .rank = 2, .sizes = sizes, .strides = steps,
                     .offset = {how == MISALIGNED, 0, 0}};
    bp_tensor *base = tensor_new(c, &whole);
    assert_non_null(base);
    fill(base, seed);
    bp_tensor *t = tensor_view(c, base, &m);
    assert_non_null(t);
    tensor_unref(base);
    return t;
}

static bp_tensor *call(uint32_t r, bp_tensor *const *t, int64_t n)
{
    bp_value args[MAX_OPERANDS + 2], dim = value_int(-1), first = value_int(0), last = value_int(n);
    uint32_t at = 0;
    for (; at < rows[r].tensors; at++)
        args[at] = value_tensor(t[at]);
    switch (rows[r].more) {
    case NOTHING: break;
    case LAST_DIM: args[at++] = dim; break;
    case LAST_DIMS: args[at++] = value_list(&dim, 1); break;
    case FIRST_DIMS: args[at++] = value_list(&first, 1); break;
    case ALL_OF_LAST: args[at++] = value_list(&last, 1); break;
    case LAST_DIM_FLAG: args[at++] = dim, args[at++] = value_bool(false); break;
    }
    const op_row *row = op_by_target(rows[r].target);
    assert_non_null(row);
    return op_call1(c, row->number, at, args);
}

/* NaN is NaN: its sign and payload are nobody's promise. */
static bool same(const bp_tensor *a, const bp_tensor *b)
{
    size_t size = dtype_size(a->dtype);
    bp_tensor *x = tensor_dense_copy(c, a), *y = tensor_dense_copy(c, b);
    bool equal = x && y && tensor_nelem(x) == tensor_nelem(y);
    for (int64_t i = 0; equal && i < tensor_nelem(x); i++) {
        const char *p = (const char *)tensor_ptr(x) + (size_t)i * size;
        const char *q = (const char *)tensor_ptr(y) + (size_t)i * size;
        num u = dtype_load(x->dtype, p), v = dtype_load(y->dtype, q);
        equal = !memcmp(p, q, size) || (u.kind == NUM_FLOAT && isnan(u.f) && isnan(v.f));
    }
    tensor_unref(x);
    tensor_unref(y);
    return equal;
}

/* Returns whether the operator takes the type. */
static bool compare_levels(uint32_t r, bp_dtype d, int64_t n, enum layout first, enum layout second)
{
    bp_tensor *t[MAX_OPERANDS], *right = NULL;
    bool is_where = !strcmp(rows[r].target, "aten.where.self");
    for (uint32_t i = 0; i < rows[r].tensors; i++)
        t[i] = operand(is_where && !i ? BP_BOOL : d, n, i ? second : first, 7 * i + (uint32_t)n);
    for (isa_level level = ISA_SCALAR; level < ISA_LEVELS; level++) {
        if (!isa_set(level))
            continue;
        bp_tensor *got = call(r, t, n);
        if (level == ISA_SCALAR) {
            right = got;
        } else if (right && (!got || !same(got, right))) {
            fail_msg("%s on %s, %d by %lld, layouts %d and %d: %s gives other bits than scalar", rows[r].target,
                     dtype_get(d)->torch, ROWS, (long long)n, first, second, isa_name(level));
        }
        if (got != right)
            tensor_unref(got);
        bp_error_clear(c);
    }
    for (uint32_t i = 0; i < rows[r].tensors; i++)
        tensor_unref(t[i]);
    tensor_unref(right);
    return right != NULL;
}

static void every_level_gives_the_same_bits(void **state)
{
    (void)state;
    static const int64_t tails[] = {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 63, 65, 128, 257, 300};
    for (uint32_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        uint32_t types = 0;
        for (bp_dtype d = BP_BOOL; d <= BP_F64; d++) {
            bool takes = true;
            for (uint32_t i = 0; i < sizeof tails / sizeof *tails && takes; i++)
                for (enum layout how = FLAT; how < LAYOUTS && takes; how++)
                    takes = compare_levels(r, d, tails[i], how == ONE_ROW || how == ONE ? FLAT : how, how);
            types += takes;
        }
        if (types < 2)
            fail_msg("%s ran on %u types", rows[r].target, types);
    }
}

static void casts_give_the_same_bits(void **state)
{
    (void)state;
    for (bp_dtype from = BP_BOOL; from <= BP_F64; from++) {
        for (bp_dtype to = BP_BOOL; to <= BP_F64; to++) {
            for (enum layout how = FLAT; how <= TURNED; how++) {
                bp_tensor *x = operand(from, 37, how, 5), *right = NULL;
                tensor_meta m;
                tensor_get_meta(x, &m);
                m.dtype = to, m.offset = dim_const(0);
                for (isa_level level = ISA_SCALAR; level < ISA_LEVELS; level++) {
                    bp_tensor *y = isa_set(level) ? tensor_new(c, &m) : NULL;
                    if (!y)
                        continue;
                    assert_int_equal(tensor_copy(c, y, x), BP_OK);
                    assert_true(!right || same(y, right));
                    tensor_unref(right);
                    right = y;
                }
                tensor_unref(right);
                tensor_unref(x);
            }
        }
    }
}

/* -- errors of functions ------------------------------------------------------------------------------------------- */

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double gelu(double x) { return x / 2 * erfc(-x * 0.70710678118654752440); }

/* In units of the last place of the right result rounded to f32. */
static double error_of(double got, double right)
{
    float near = fabsf((float)right), up = nextafterf(near, INFINITY);
    if (isnan(right) || isinf((float)right) || right == 0)
        return isnan(right) ? (isnan(got) ? 0 : INFINITY) : (float)got == (float)right ? 0 : INFINITY;
    return isfinite(got) ? fabs(got - right) / ((double)up - (double)near) : INFINITY;
}

#define CHECK_BOUND(name, reference, bound, from)                                                        \
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += 997) {                                     \
        float x = vmath_of_bits((int32_t)bits);                                                          \
        double error = x < (from) ? 0 : error_of((double)vmath_##name(x), reference((double)x));         \
        if (error > (bound))                                                                             \
            fail_msg(#name " of %.9g is %.9g, %g units off", (double)x, (double)vmath_##name(x), error); \
    }

static void functions_stay_within_their_bounds(void **state)
{
    (void)state;
    CHECK_BOUND(exp, exp, 1.0, -INFINITY)
    CHECK_BOUND(log, log, 0.9, -INFINITY)
    CHECK_BOUND(tanh, tanh, 1.4, -INFINITY)
    CHECK_BOUND(erf, erf, 2.0, -INFINITY)
    CHECK_BOUND(sigmoid, sigmoid, 2.5, -88.f)
    CHECK_BOUND(gelu, gelu, 3.0, 0.f)
    for (double x = -8; x < 0; x += 0x1p-15)
        if (fabs((double)vmath_gelu((float)x) - gelu(x)) > 6e-8)
            fail_msg("gelu of %.9g is %.9g and not %.9g", x, (double)vmath_gelu((float)x), gelu(x));
    assert_true(vmath_gelu(-1e30f) == 0 && isnan(vmath_gelu(-INFINITY)) && signbit(vmath_gelu(-0.f)));
    assert_true(signbit(vmath_tanh(-0.f)) && signbit(vmath_erf(-0.f)) && vmath_sigmoid(-INFINITY) == 0);
}

/* -- choosing ------------------------------------------------------------------------------------------------------ */

/* Also where lines are cut. */
static void sums_over_outer_dimensions_are_those_of_their_columns(void **state)
{
    (void)state;
    const op_row *sum = op_by_target("aten.sum.dim_IntList");
    for (int64_t n = 5; n < 700; n += 31) {
        bp_tensor *x = operand(BP_F32, n, FLAT, 3);
        bp_value zero = value_int(0), args[] = {value_tensor(x), value_list(&zero, 1)};
        bp_tensor *got = op_call1(c, sum->number, 2, args);
        assert_non_null(got);
        assert_int_equal(tensor_nelem(got), n);
        const float *p = tensor_ptr(x), *q = tensor_ptr(got);
        for (int64_t i = 0; i < n; i++) {
            double right = 0;
            for (int64_t row = 0; row < ROWS; row++)
                right += (double)p[row * n + i];
            assert_true(q[i] == (float)right || (isnan(q[i]) && isnan(right)));
        }
        tensor_unref(got);
        tensor_unref(x);
    }
}

/* Of [ROWS, 5, n], which lies as [5, ROWS, n] does; whole numbers, so that every sum is exact. */
static void sums_over_inner_dimensions_are_those_of_their_rows(void **state)
{
    (void)state;
    const op_row *mean = op_by_target("aten.mean.dim");
    for (int64_t n = 1; n < 400; n += 13) {
        bp_dim sizes[] = {{ROWS, 0, 0}, {5, 0, 0}, {n, 0, 0}}, steps[] = {{n, 0, 0}, {ROWS * n, 0, 0}, {1, 0, 0}};
        tensor_meta m = {.dtype = BP_F32, .device = {BP_CPU, 0}, .rank = 3, .sizes = sizes, .strides = steps};
        bp_tensor *x = tensor_new(c, &m);
        assert_non_null(x);
        float *p = tensor_ptr(x);
        for (int64_t i = 0; i < 5 * ROWS * n; i++)
            p[i] = (float)(i * i % 1009 * 4099); /* sums are beyond what f32 holds */
        for (uint32_t outer = 0; outer < 2; outer++) { /* with dimension 1, or without */
            bp_value dims[] = {value_int(2), value_int(1)}, args[] = {value_tensor(x), value_list(dims, 1 + outer)};
            bp_tensor *got = op_call1(c, mean->number, 2, args);
            assert_non_null(got);
            assert_int_equal(tensor_nelem(got), outer ? ROWS : 5 * ROWS);
            for (int64_t k = 0; k < tensor_nelem(got); k++) {
                double sum = 0, count = (double)(outer ? 5 * n : n);
                for (int64_t i = 0; i < 5 * ROWS * n; i++)
                    if (outer ? i / n % ROWS == k : i / n == k % 5 * ROWS + k / 5)
                        sum += (double)p[i];
                int64_t at = outer ? k : k / 5 * tensor_step(got, 0) + k % 5 * tensor_step(got, 1);
                assert_true(((const float *)tensor_ptr(got))[at] == (float)((double)(float)sum / count));
            }
            tensor_unref(got);
        }
        tensor_unref(x);
    }
}

static void the_environment_names_the_highest_level(void **state)
{
    (void)state;
    unsetenv("BACKPLANE_ISA");
    isa_level best = isa_choose();
    setenv("BACKPLANE_ISA", "scalar", 1);
    assert_int_equal(isa_choose(), ISA_SCALAR);
    assert_string_equal(isa_name(isa_get()), "scalar");
    setenv("BACKPLANE_ISA", "avx2", 1);
    assert_int_equal(isa_choose(), best < ISA_AVX2 ? best : ISA_AVX2);
    setenv("BACKPLANE_ISA", "mmx", 1);
    assert_int_equal(isa_choose(), best);
    assert_false(isa_set(ISA_UNKNOWN) || isa_set(ISA_LEVELS));
    unsetenv("BACKPLANE_ISA");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level_gives_the_same_bits),
        cmocka_unit_test(casts_give_the_same_bits),
        cmocka_unit_test(functions_stay_within_their_bounds),
        cmocka_unit_test(sums_over_outer_dimensions_are_those_of_their_columns),
        cmocka_unit_test(sums_over_inner_dimensions_are_those_of_their_rows),
        cmocka_unit_test(the_environment_names_the_highest_level),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
