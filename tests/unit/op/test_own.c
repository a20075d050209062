/* Operators whose answers are no values that PyTorch could record: sizes and other facts, single values, memory that
 * nobody filled, resizing, assertions. tests/check/rows.own says which function has which. */
#include "host/op/op.h"
#include "tests/lib/op_world.h"
#include <math.h>

static bp_tensor *m; /* f32[2, 3] of 1 to 6 */

static int begin(void **state)
{
    m = op_world_begin(state) == 0 ? op_world_six() : NULL;
    return m ? 0 : -1;
}

enum { NAMED_MAX = 2 };
static const char *names[NAMED_MAX];
static bp_value named[NAMED_MAX];
static uint32_t nnamed;

static void name(const char *arg, bp_value v)
{
    names[nnamed] = arg;
    named[nnamed++] = v;
}

/* Runs a row on positional arguments and those that were named before; its first result, or NULL. */
static bp_tensor *run(const char *target, uint32_t n, const bp_value *pos, bp_value *item)
{
    const op_row *op = op_by_target(target);
    bp_tensor *out[4] = {NULL};
    bp_value *args;
    assert_non_null(op);
    op_call k = {.op = op, .out = out, .nout = 4};
    bp_status s = op_bind(c, op, pos, n, names, named, nnamed, &args);
    nnamed = 0;
    k.args = args;
    if (s != BP_OK || op_dispatch(c, &k) != BP_OK)
        return NULL;
    if (item)
        *item = k.item;
    return k.nout ? scope_own(c, k.out[0]) : NULL;
}
#define RUN(target, ...) \
    run(target, sizeof((bp_value[]){__VA_ARGS__}) / sizeof(bp_value), (bp_value[]){__VA_ARGS__}, NULL)
#define T(t) value_tensor(t)
#define I(i) value_int(i)
#define SIZES(...) \
    value_ints(c, (int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static bp_value item_of(const char *target, bp_tensor *t)
{
    bp_value out = {0}, self = T(t);
    run(target, 1, &self, &out);
    assert_int_equal(bp_error(c), BP_OK);
    return out;
}

static int64_t fact(const char *target, bp_tensor *t, int64_t dim)
{
    bp_value out = {0}, args[] = {T(t), I(dim)};
    run(target, schema_find(op_by_target(target)->schema, "dim") == 1 ? 2 : 1, args, &out);
    assert_int_equal(bp_error(c), BP_OK);
    return out.v.dim.value;
}

static void refused(const char *text)
{
    assert_int_not_equal(bp_error(c), BP_OK);
    assert_contains(bp_error_message(c), text);
    bp_error_clear(c);
}

static void facts_of_views_are_the_views(void **state)
{
    (void)state;
    bp_tensor *turned = bp_t(c, m), *row = bp_select(c, m, 0, 1);
    assert_int_equal(fact("aten.sym_size.int", turned, 0), 3);
    assert_int_equal(fact("aten.sym_size.int", turned, -1), 2);
    assert_int_equal(fact("aten.sym_stride.int", turned, 0), 1);
    assert_int_equal(fact("aten.sym_stride.int", turned, -1), 3);
    assert_int_equal(fact("aten.sym_numel.default", row, 0), 3);
    assert_int_equal(fact("aten.sym_storage_offset.default", row, 0), 3);
    assert_true(item_of("aten.sym_is_contiguous.default", m).v.i);
    assert_false(item_of("aten.sym_is_contiguous.default", turned).v.i);
    assert_null(RUN("aten.sym_size.int", T(m), I(2)));
    refused("argument \"dim\" is 2");
}

static void the_only_element_is_the_value(void **state)
{
    (void)state;
    static const char *const targets[] = {"aten.item.default", "aten._local_scalar_dense.default"};
    bp_tensor *half = bp_to(c, bp_full(c, BP_DIMS(1, 1), 1.003), BP_BF16);
    bp_tensor *large = bp_full(c, BP_NO_DIMS, INT64_MIN, .dtype = BP_I64);
    for (uint32_t i = 0; i < 2; i++) {
        bp_value x = item_of(targets[i], half), y = item_of(targets[i], large);
        assert_true(x.kind == BP_VALUE_FLOAT && x.v.f[0] == 1);
        assert_true(y.kind == BP_VALUE_INT && y.v.dim.value == INT64_MIN);
        assert_int_equal(item_of(targets[i], bp_full(c, BP_NO_DIMS, 1, .dtype = BP_BOOL)).kind, BP_VALUE_BOOL);
        assert_null(RUN(targets[i], T(m)));
        refused("a tensor of 6 elements has no one value");
    }
}

static void what_is_not_zero_is_true(void **state)
{
    (void)state;
    assert_true(item_of("aten.is_nonzero.default", bp_full(c, BP_DIMS(1), NAN)).v.i);
    assert_false(item_of("aten.is_nonzero.default", bp_full(c, BP_DIMS(1), -0.0)).v.i);
    assert_true(item_of("aten.is_nonzero.default", bp_full(c, BP_NO_DIMS, -1, .dtype = BP_I8)).v.i);
    assert_null(RUN("aten.is_nonzero.default", T(m)));
    refused("6");
}

static void has(bp_tensor *t, bp_dtype dtype, int64_t a, int64_t b, int64_t step_a, int64_t step_b)
{
    assert_non_null(t);
    assert_int_equal(bp_tensor_dtype(t), dtype);
    assert_int_equal(tensor_dim(t, 0), a);
    assert_int_equal(tensor_dim(t, 1), b);
    assert_int_equal(tensor_step(t, 0), step_a);
    assert_int_equal(tensor_step(t, 1), step_b);
}

static void empty_ones_have_their_form(void **state)
{
    (void)state;
    bp_tensor *turned = bp_t(c, m);
    has(RUN("aten.empty.memory_format", SIZES(4, 5)), BP_F32, 4, 5, 5, 1);
    has(RUN("aten.empty_strided.default", SIZES(2, 3), SIZES(1, 2)), BP_F32, 2, 3, 1, 2);
    has(RUN("aten.empty_permuted.default", SIZES(2, 3), SIZES(1, 0)), BP_F32, 2, 3, 1, 2);
    has(RUN("aten.empty_like.default", T(turned)), BP_F32, 3, 2, 1, 3);
    name("dtype", value_dtype(BP_I64));
    has(RUN("aten.empty_like.default", T(turned)), BP_I64, 3, 2, 1, 3);
    has(RUN("aten.new_empty.default", T(bp_to(c, m, BP_I8)), SIZES(2, 4)), BP_I8, 2, 4, 4, 1);
    has(RUN("aten.new_empty_strided.default", T(m), SIZES(2, 4), SIZES(1, 2)), BP_F32, 2, 4, 1, 2);
    assert_null(RUN("aten.empty.memory_format", SIZES(-1)));
    refused("size -1");
    assert_null(RUN("aten.new_empty_strided.default", T(m), SIZES(2, 4), SIZES(1)));
    refused("2 sizes and 1 strides");
}

static void a_resized_tensor_keeps_what_its_memory_holds(void **state)
{
    (void)state;
    static const float six[] = {1, 2, 3, 4, 5, 6};
    bp_tensor *like = bp_zeros(c, BP_DIMS(3, 2));
    assert_ptr_equal(RUN("aten.resize_.default", T(m), SIZES(2, 2)), m);
    has(m, BP_F32, 2, 2, 2, 1);
    assert_memory_equal(tensor_ptr(m), six, 4 * sizeof *six);
    assert_ptr_equal(RUN("aten.resize_as_.default", T(m), T(like)), m);
    has(m, BP_F32, 3, 2, 2, 1);
    assert_memory_equal(tensor_ptr(m), six, sizeof six);
    RUN("aten.resize_.default", T(m), SIZES(100, 7));
    has(m, BP_F32, 100, 7, 7, 1);
    assert_memory_equal(tensor_ptr(m), six, sizeof six);
    assert_null(RUN("aten.resize_.default", T(m), SIZES(-2)));
    refused("-2");
}

/* The quadrants of atan2, written to a tensor that takes its sizes from them. */
static void atan2_writes_its_out(void **state)
{
    (void)state;
    static const float y[] = {0.0f, -0.0f, 0.0f, 1, NAN}, x[] = {-1, -1, 1, 0, 1};
    bp_tensor *a = bp_tensor_from(c, BP_F32, 1, (const int64_t[]){5}, y);
    bp_tensor *b = bp_tensor_from(c, BP_F32, 1, (const int64_t[]){5}, x), *out = bp_empty(c, BP_DIMS(0));
    name("out", T(out));
    assert_ptr_equal(RUN("aten.atan2.out", T(a), T(b)), out);
    const float *got = tensor_ptr(out);
    assert_int_equal(tensor_nelem(out), 5);
    for (int i = 0; i < 4; i++)
        assert_true(got[i] == atan2f(y[i], x[i]));
    assert_true(isnan(got[4]) && got[1] < 0 && !signbit(got[2]));
    name("out", T(bp_to(c, a, BP_I64)));
    assert_null(RUN("aten.atan2.out", T(a), T(b)));
    refused("out");
}

static void assertions_say_what_is_wrong(void **state)
{
    (void)state;
    name("dtype", value_dtype(BP_F32));
    RUN("aten._assert_tensor_metadata.default", T(m), SIZES(2, 3), SIZES(3, 1));
    assert_int_equal(bp_error(c), BP_OK);
    RUN("aten._assert_tensor_metadata.default", T(m), SIZES(2, 4));
    refused("the tensor's sizes are [2, 3]");
    RUN("aten._assert_tensor_metadata.default", T(m), value_none(), SIZES(1, 2));
    refused("[3, 1]");
    name("dtype", value_dtype(BP_F64));
    RUN("aten._assert_tensor_metadata.default", T(m));
    refused("float32");
    RUN("aten._assert_scalar.default", value_bool(true), value_str("never said"));
    assert_int_equal(bp_error(c), BP_OK);
    RUN("aten._assert_scalar.default", I(0), value_str("u0 is not positive"));
    refused("u0 is not positive");
}

/* torch.cholesky, which 2.15 no longer has, as torch.linalg.cholesky has it. */
static void cholesky_multiplies_back(void **state)
{
    (void)state;
    static const double symmetric[] = {4, 2, -2, 2, 5, 3, -2, 3, 11};
    bp_tensor *a = bp_tensor_from(c, BP_F64, 2, (const int64_t[]){3, 3}, symmetric);
    for (int upper = 0; upper < 2; upper++) {
        bp_tensor *f = RUN("aten.cholesky.default", T(a), value_bool(upper));
        assert_non_null(f);
        bp_tensor *product = upper ? bp_mm(c, bp_t(c, f), f) : bp_mm(c, f, bp_t(c, f));
        for (int i = 0; i < 9; i++)
            assert_true(fabs(((double *)tensor_ptr(product))[i] - symmetric[i]) < 1e-12);
    }
    assert_null(RUN("aten.cholesky.default", T(bp_neg(c, a))));
    refused("positive");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(facts_of_views_are_the_views, begin, op_world_end),
        cmocka_unit_test_setup_teardown(the_only_element_is_the_value, begin, op_world_end),
        cmocka_unit_test_setup_teardown(what_is_not_zero_is_true, begin, op_world_end),
        cmocka_unit_test_setup_teardown(empty_ones_have_their_form, begin, op_world_end),
        cmocka_unit_test_setup_teardown(a_resized_tensor_keeps_what_its_memory_holds, begin, op_world_end),
        cmocka_unit_test_setup_teardown(atan2_writes_its_out, begin, op_world_end),
        cmocka_unit_test_setup_teardown(assertions_say_what_is_wrong, begin, op_world_end),
        cmocka_unit_test_setup_teardown(cholesky_multiplies_back, begin, op_world_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
