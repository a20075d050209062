/* toy_example: a hundred calls, three graphs, as docs/ir.md prints them. */
#include "tests/unit/compile/fixture.h"

static void toy_example(bp_ctx *c, bp_frame *f)
{
    bp_tensor *a = bp_arg(f, 0, "a"), *b = bp_arg(f, 1, "b");
    bp_tensor *x = bp_div(c, a, bp_add(c, bp_abs(c, a), 1));
    if (bp_is_true(c, bp_lt(c, bp_sum(c, b), 0)))
        b = bp_mul(c, b, -1);
    bp_return(f, bp_mul(c, x, b));
}

static const char *const tables =
    "__compiled_fn_0\n"
    "opcode         name    target            args          kwargs\n"
    "-------------  ------  ----------------  ------------  --------\n"
    "placeholder    a       a                 ()            {}\n"
    "placeholder    b       b                 ()            {}\n"
    "call_function  abs_1   aten.abs.default  (a,)          {}\n"
    "call_function  add     aten.add.Scalar   (abs_1, 1)    {}\n"
    "call_function  div     aten.div.Tensor   (a, add)      {}\n"
    "call_function  sum_1   aten.sum.default  (b,)          {}\n"
    "call_function  lt      aten.lt.Scalar    (sum_1, 0)    {}\n"
    "output         output  output            ((div, lt),)  {}\n"
    "__resume_at_8_1\n"
    "opcode         name    target           args         kwargs\n"
    "-------------  ------  ---------------  -----------  --------\n"
    "placeholder    b       b                ()           {}\n"
    "placeholder    div     div              ()           {}\n"
    "call_function  mul     aten.mul.Scalar  (b, -1)      {}\n"
    "call_function  mul_1   aten.mul.Tensor  (div, mul)   {}\n"
    "output         output  output           ((mul_1,),)  {}\n"
    "__resume_at_8_2\n"
    "opcode         name    target           args       kwargs\n"
    "-------------  ------  ---------------  ---------  --------\n"
    "placeholder    b       b                ()         {}\n"
    "placeholder    div     div              ()         {}\n"
    "call_function  mul     aten.mul.Tensor  (div, b)   {}\n"
    "output         output  output           ((mul,),)  {}\n";

static void a_hundred_calls_compile_three_graphs(void **state)
{
    fixture *f = *state;
    bp_callable *g = COMPILE(f, toy_example);
    if (!g)
        fail_msg("%s", bp_error_text(f->c));
    for (int i = 0; i < 100; i++) {
        bp_scope_begin(f->c);
        float s = i % 2 ? 1.0f : -1.0f;
        bp_outputs o = CALL(f, g, FLOATS(f, 1, -3), FLOATS(f, s, 2 * s));
        assert_int_equal(o.n, 1);
        EXPECT_FLOATS(f, o.at[0], 0.5f, -1.5f);
        bp_scope_end(f->c);
    }
    bp_callable_stats s = stats(f, g);
    assert_int_equal(s.graphs, 3);
    assert_int_equal(s.break_sites, 1);
    assert_int_equal(s.outcomes, 2);
    assert_int_equal(s.captures, 2);
    assert_int_equal(s.hits, 98);
    assert_int_equal(s.eager_calls, 0);
    assert_string_equal(buf_text(&f->tables), tables);
    bp_callable_unref(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_hundred_calls_compile_three_graphs, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
