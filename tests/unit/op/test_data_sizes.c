/* Results whose size only data tell: symbols without a value, where they are captured. */
#define BP_WITHOUT_OPERATORS
#include "tests/lib/check.h"
#include "host/op/op.h"
#include "host/sym/env.h"
#include <backplane/backplane.h>

static bp_ctx *c;
static sym_env *e;
static sym_scope former;

static int begin(void **state)
{
    (void)state;
    c = bp_ctx_new(NULL);
    e = sym_env_new();
    sym_capture_data(e, true);
    former = sym_push(e, c);
    return !c || !e;
}

static int end(void **state)
{
    (void)state;
    sym_pop(former);
    sym_env_unref(e);
    bp_ctx_destroy(c);
    return 0;
}

static bp_tensor *fake(bp_dtype d, uint32_t rank, const bp_dim *sizes)
{
    bp_dim strides[4];
    layout_contiguous(c, rank, sizes, strides);
    return tensor_new_fake(c, &(tensor_meta){d, {BP_CPU, 0}, rank, (bp_dim *)(uintptr_t)sizes, strides, {0}});
}

static bp_dim size(const char *name, int64_t hint)
{
    return sym_add_symbol(e, c, &(sym_symbol){.name = name, .hint = hint, .min = 2, .max = INT64_MAX,
                                              .source = {.at = SYM_NO_SOURCE}});
}

/* Calls an operator; how many results, each a reference. */
static uint32_t call(const char *target, uint32_t n, const bp_value *args, bp_tensor **out)
{
    const op_row *row = op_by_target(target);
    bp_value *all;
    assert_non_null(row);
    assert_int_equal(op_bind_ordered(c, row, n, args, &all), BP_OK);
    op_call k = {.op = row, .args = all};
    if (op_run_fake(c, &k) != BP_OK)
        return 0;
    for (uint32_t i = 0; i < k.nout; i++)
        out[i] = k.out[i];
    return k.nout;
}

static void is(const bp_tensor *t, const char *want)
{
    char text[200];
    assert_string_equal(tensor_describe(t, text, sizeof text), want);
}

static void drop(uint32_t n, bp_tensor **t)
{
    for (uint32_t i = 0; i < n; i++)
        tensor_unref(t[i]);
}

static void bounded(bp_dim d, int64_t low, int64_t high)
{
    int64_t min, max;
    sym_bounds(e, d, &min, &max);
    assert_int_equal(min, low);
    assert_int_equal(max, high);
}

static void nonzero_gives_rows_up_to_all_elements(void **state)
{
    bp_tensor *x = fake(BP_F32, 2, (bp_dim[]){dim_const(3), dim_const(4)}), *out[4];
    (void)state;
    assert_int_equal(call("aten.nonzero.default", 1, (bp_value[]){value_tensor(x)}, out), 1);
    is(out[0], "i64[u0, 2]");
    bounded(out[0]->sizes[0], 0, 12);
    drop(1, out);
    assert_int_equal(call("aten.where.default", 1, (bp_value[]){value_tensor(x)}, out), 2);
    is(out[1], "i64[u1]");
    drop(2, out);
    tensor_unref(x);
}

static void a_symbolic_number_of_elements_bounds_it_too(void **state)
{
    bp_dim n = size("s0", 5);
    bp_tensor *x = fake(BP_F32, 1, &n), *mask = fake(BP_BOOL, 1, &n), *out[4];
    (void)state;
    assert_int_equal(call("aten.masked_select.default", 2, (bp_value[]){value_tensor(x), value_tensor(mask)}, out), 1);
    is(out[0], "f32[u0]");
    assert_int_equal(dim_prove(DIM_LE, out[0]->sizes[0], n), DIM_TRUE);
    assert_int_equal(dim_prove(DIM_LE, dim_const(0), out[0]->sizes[0]), DIM_TRUE);
    assert_int_equal(dim_prove(DIM_EQ, out[0]->sizes[0], n), DIM_UNKNOWN);
    drop(1, out);
    tensor_unref(mask);
    tensor_unref(x);
}

static void a_mask_as_an_index_takes_its_dimensions(void **state)
{
    bp_dim sizes[] = {dim_const(3), dim_const(4), size("s0", 5)};
    bp_tensor *x = fake(BP_F32, 3, sizes), *mask = fake(BP_BOOL, 2, sizes), *out[4];
    bp_value list = value_tensor(mask);
    (void)state;
    assert_int_equal(call("aten.index.Tensor", 2, (bp_value[]){value_tensor(x), value_list(&list, 1)}, out), 1);
    is(out[0], "f32[u0, s0]");
    drop(1, out);
    tensor_unref(mask);
    tensor_unref(x);
}

static void unique_gives_as_many_counts_as_values(void **state)
{
    bp_tensor *x = fake(BP_I64, 2, (bp_dim[]){dim_const(3), dim_const(4)}), *out[4];
    (void)state;
    bp_value args[] = {value_tensor(x), value_bool(true), value_bool(true), value_bool(true)};
    assert_int_equal(call("aten._unique2.default", 4, args, out), 3);
    is(out[0], "i64[u0]");
    is(out[1], "i64[3, 4]");
    is(out[2], "i64[u0]");
    drop(3, out);
    bp_value along[] = {value_tensor(x), value_int(1)};
    assert_int_equal(call("aten.unique_dim.default", 2, along, out), 3);
    is(out[0], "i64[3, u1]");
    drop(3, out);
    tensor_unref(x);
}

static void counts_and_repeats_have_no_upper_bound(void **state)
{
    bp_tensor *x = fake(BP_I64, 1, (bp_dim[]){dim_const(6)}), *out[4];
    (void)state;
    bp_value least[] = {value_tensor(x), value_none(), value_int(4)};
    assert_int_equal(call("aten.bincount.default", 3, least, out), 1);
    is(out[0], "i64[u0]");
    bounded(out[0]->sizes[0], 4, INT64_MAX);
    drop(1, out);
    assert_int_equal(call("aten.repeat_interleave.Tensor", 1, (bp_value[]){value_tensor(x)}, out), 1);
    is(out[0], "i64[u1]");
    drop(1, out);
    assert_int_equal(call("aten.one_hot.default", 1, (bp_value[]){value_tensor(x)}, out), 1);
    is(out[0], "i64[6, u2]");
    drop(1, out);
    tensor_unref(x);
}

/* What follows is computed with it: no question is asked of data, and what must hold is asserted. */
static void rules_compute_with_sizes_of_data(void **state)
{
    bp_dim n = size("s0", 5);
    bp_tensor *x = fake(BP_F32, 2, (bp_dim[]){n, dim_const(4)}), *at[2], *out[4];
    (void)state;
    assert_int_equal(call("aten.nonzero.default", 1, (bp_value[]){value_tensor(x)}, at), 1);
    assert_int_equal(call("aten.relu.default", 1, (bp_value[]){value_tensor(at[0])}, out), 1);
    is(out[0], "i64[u0, 2]");
    drop(1, out);
    bp_value flat[] = {value_int(-1)};
    assert_int_equal(call("aten.reshape.default", 2, (bp_value[]){value_tensor(at[0]), value_list(flat, 1)}, out), 1);
    is(out[0], "i64[2*u0]");
    drop(1, out);
    bp_value both[] = {value_tensor(at[0]), value_tensor(at[0])};
    assert_int_equal(call("aten.cat.default", 1, (bp_value[]){value_list(both, 2)}, out), 1);
    is(out[0], "i64[2*u0, 2]");
    drop(1, out);
    bp_value cut[] = {value_tensor(x), value_int(0), value_int(0), value_dim(at[0]->sizes[0])};
    assert_int_equal(call("aten.slice.Tensor", 4, cut, out), 1);
    is(out[0], "f32[Min(s0, u0), 4]");
    drop(1, out);
    bp_tensor *y = fake(BP_I64, 2, (bp_dim[]){n, dim_const(2)});
    uint32_t facts = sym_fact_count(e);
    assert_int_equal(call("aten.add.Tensor", 2, (bp_value[]){value_tensor(at[0]), value_tensor(y)}, out), 1);
    is(out[0], "i64[s0, 2]");
    assert_int_equal(sym_fact_count(e), facts + 1);
    assert_int_equal(sym_fact_at(e, facts)->origin, SYM_ASSERTED);
    drop(1, out);
    drop(1, at);
    tensor_unref(y);
    tensor_unref(x);
}

static void without_the_mark_they_are_refused(void **state)
{
    bp_tensor *x = fake(BP_F32, 1, (bp_dim[]){dim_const(3)}), *out[4];
    (void)state;
    sym_capture_data(e, false);
    assert_int_equal(call("aten.nonzero.default", 1, (bp_value[]){value_tensor(x)}, out), 0);
    assert_int_equal(c->diag.code, BP_FAILED_PRECONDITION);
    diag_clear(&c->diag);
    tensor_unref(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nonzero_gives_rows_up_to_all_elements, begin, end),
        cmocka_unit_test_setup_teardown(a_symbolic_number_of_elements_bounds_it_too, begin, end),
        cmocka_unit_test_setup_teardown(a_mask_as_an_index_takes_its_dimensions, begin, end),
        cmocka_unit_test_setup_teardown(unique_gives_as_many_counts_as_values, begin, end),
        cmocka_unit_test_setup_teardown(counts_and_repeats_have_no_upper_bound, begin, end),
        cmocka_unit_test_setup_teardown(rules_compute_with_sizes_of_data, begin, end),
        cmocka_unit_test_setup_teardown(without_the_mark_they_are_refused, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
