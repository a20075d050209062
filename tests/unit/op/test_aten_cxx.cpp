/* The operators in C++: overloads, default arguments, braces for lists; exceptions stay inside captured functions. */
extern "C" {
#include "tests/lib/check.h"
}
#include <backplane/backplane.hpp>
#include <stdexcept>

static const float SIX[] = {1, 2, 3, 4, 5, 6};

static bp_tensor *six(bp_ctx *c)
{
    const int64_t sizes[] = {2, 3};
    return bp_tensor_from(c, BP_F32, 2, sizes, SIX);
}

static double item(bp_ctx *c, bp_tensor *t)
{
    return bp_item_float(c, t);
}

static void overloads_are_picked_and_defaults_filled(void **)
{
    bp::context c;
    bp::scope s(c);
    bp_tensor *t = six(c);
    assert_true(item(c, bp_sum(c, bp_add(c, t, 1))) == 27);
    assert_true(item(c, bp_sum(c, bp_add(c, t, t, 2))) == 63);
    assert_true(item(c, bp_sum(c, bp_lt(c, t, 0))) == 0);
    assert_int_equal(bp_tensor_rank(bp_sum(c, t, {1})), 1);
    assert_int_equal(bp_tensor_size(bp_reshape(c, t, {-1, bp_size(c, t, 0)}), 0), 3);
    assert_int_equal(bp_tensor_size(bp_cat(c, {t, t}, 1), 1), 6);
    assert_int_equal(bp_tensor_size(bp_cat(c, BP_TENSORS(t, t)), 0), 4);
    assert_int_equal(bp_tensor_dtype(bp_full(c, BP_DIMS(2, 2), 1.5, BP_F64)), BP_F64);
    assert_int_equal(bp_tensor_rank(bp_zeros(c, BP_NO_DIMS)), 0);
    assert_int_equal(bp_split(c, t, 1).n, 2);
    assert_int_equal(bp_error(c), BP_OK);
}

static void an_error_names_the_place(void **)
{
    bp::context c;
    bp_tensor *none = nullptr;
    assert_null(bp_add(c, six(c), none));
    assert_contains(bp_error_text(c), "test_aten_cxx.cpp:");
}

static void throws(bp_ctx *, bp_frame *)
{
    throw std::runtime_error("it broke");
}

static void an_exception_becomes_the_contexts_error(void **)
{
    bp::context c;
    bp::fn<throws>(c, nullptr);
    assert_int_equal(bp_error(c), BP_INTERNAL);
    assert_string_equal(bp_error_message(c), "it broke");
}

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overloads_are_picked_and_defaults_filled),
        cmocka_unit_test(an_error_names_the_place),
        cmocka_unit_test(an_exception_becomes_the_contexts_error),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
