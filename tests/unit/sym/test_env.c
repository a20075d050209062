/* Environments: questions become facts, numbers specialize, data is asserted; copies, imports, programs. */
#include "tests/unit/sym/sizes.h"

static void a_question_becomes_a_guard_once(void **state)
{
    (void)state;
    sym_set_tag(env, 3);
    c->site_file = "model.c";
    c->site_line = 17;
    assert_true(dim_below(read_dim("s0"), 10));
    c->site_file = NULL;
    assert_true(dim_below(read_dim("s0"), 20));
    assert_true(dim_below(read_dim("s0"), 10));
    assert_false(dim_is(read_dim("s0"), 10));
    assert_int_equal(sym_fact_count(env), 1);
    const sym_fact *f = sym_fact_at(env, 0);
    assert_prints(f->holds, "s0 <= 9");
    assert_int_equal(f->origin, SYM_GUARD);
    assert_int_equal(f->tag, 3);
    assert_string_equal(f->file, "model.c");
    assert_int_equal(f->line, 17);
}

static void the_answer_no_is_a_guard_that_it_is_not(void **state)
{
    (void)state;
    assert_false(dim_eq(read_dim("s0"), read_dim("s1")));
    assert_false(dim_lt(read_dim("s1"), read_dim("s0")));
    assert_false(dim_lt(read_dim("s1"), read_dim("s2")));
    assert_prints(sym_fact_at(env, 0)->holds, "s0 != s1");
    assert_prints(sym_fact_at(env, 1)->holds, "s0 <= s1");
    assert_prints(sym_fact_at(env, 2)->holds, "s1 >= s2");
    assert_int_equal(sym_fact_count(env), 3);
}

static void what_is_asked_of_equal_symbols_is_asked_of_the_first(void **state)
{
    (void)state;
    assert_true(dim_eq(read_dim("s2"), read_dim("s1")));
    assert_true(dim_above(read_dim("s2"), 10));
    assert_prints(sym_fact_at(env, 1)->holds, "s1 >= 11");
    assert_true(dim_above(read_dim("s1"), 10));
    assert_int_equal(sym_fact_count(env), 2);
}

static void a_number_is_specialized(void **state)
{
    (void)state;
    assert_int_equal(dim_int(c, read_dim("s0 + 1")), 9);
    assert_prints(sym_fact_at(env, 0)->holds, "s0 == 8");
    assert_int_equal(dim_number(read_dim("2*s0")), 16);
    assert_int_equal(sym_fact_count(env), 1);
    assert_prints(sym_simplify(env, c, read_dim("s0*s1")), "8*s1");
}

static void data_is_not_guarded_on(void **state)
{
    (void)state;
    assert_false(dim_is(read_dim("u0"), 3));
    assert_int_equal(bp_error(c), BP_UNIMPLEMENTED);
    assert_contains(bp_error_message(c), "could not guard on data-dependent expression u0 == 3");
    assert_contains(bp_error_text(c), "bp_check");
    bp_error_clear(c);
    assert_int_equal(dim_int(c, read_dim("u0 + s0")), 0);
    assert_contains(bp_error_message(c), "data-dependent expression s0 + u0");
    bp_error_clear(c);
    assert_false(dim_eq_or_false(read_dim("u0"), dim_const(3)));
    assert_int_equal(bp_error(c), BP_OK);
    assert_int_equal(sym_fact_count(env), 0);
    assert_true(dim_le(dim_const(0), read_dim("u0*s0")));
    assert_int_equal(bp_error(c), BP_OK);
}

static void what_is_required_of_data_is_asserted(void **state)
{
    (void)state;
    assert_true(dim_require(DIM_LE, read_dim("u0"), dim_const(10)));
    assert_int_equal(sym_fact_at(env, 0)->origin, SYM_ASSERTED);
    assert_prints(sym_fact_at(env, 0)->holds, "u0 <= 10");
    assert_true(dim_require(DIM_LE, read_dim("u0"), dim_const(11)));
    assert_false(dim_require(DIM_LT, dim_const(10), read_dim("u0")));
    assert_int_equal(sym_fact_count(env), 1);
    assert_prints(dim_floordiv(c, read_dim("u0"), dim_const(11)), "0");
    assert_true(dim_require(DIM_EQ, read_dim("u1"), read_dim("s0")));
    assert_true(dim_is(read_dim("u1"), 8));
    assert_prints(sym_fact_at(env, 2)->holds, "s0 == 8");
    assert_int_equal(sym_fact_at(env, 2)->origin, SYM_GUARD);
}

static void what_is_required_of_sizes_is_a_guard(void **state)
{
    (void)state;
    assert_true(dim_require(DIM_LE, read_dim("s0"), read_dim("s1")));
    assert_int_equal(sym_fact_at(env, 0)->origin, SYM_GUARD);
    assert_false(dim_require(DIM_EQ, read_dim("s0"), read_dim("s3")));
    assert_int_equal(bp_error(c), BP_OK);
}

static void dividing_by_data_asserts_that_it_is_not_zero(void **state)
{
    (void)state;
    assert_prints(dim_floordiv(c, read_dim("s0"), read_dim("u0")), "s0//u0");
    assert_prints(sym_fact_at(env, 0)->holds, "u0 != 0");
    assert_int_equal(sym_fact_at(env, 0)->origin, SYM_ASSERTED);
}

static void without_an_environment_symbols_equal_themselves_alone(void **state)
{
    (void)state;
    bp_dim s = read_dim("s0"), t = read_dim("s1");
    sym_scope none = sym_push(NULL, NULL);
    assert_null(sym_current());
    assert_true(dim_eq(s, s));
    assert_false(dim_eq(s, t));
    dim_add(c, s, t);
    assert_int_equal(bp_error(c), BP_UNIMPLEMENTED);
    sym_pop(none);
    assert_ptr_equal(sym_current(), env);
    bp_error_clear(c);
    dim_add(c, s, (bp_dim){1, 1u << 30, 0});
    assert_int_equal(bp_error(c), BP_UNIMPLEMENTED);
}

static void the_same_calls_give_the_same_ids(void **state)
{
    (void)state;
    uint32_t ids[2][4];
    for (int i = 0; i < 2; i++) {
        sym_env *e = sym_env_new();
        sym_scope outer = sym_push(e, c);
        bp_dim a = sym_add_symbol(e, c, &(sym_symbol){.hint = 7 + i, .min = 2, .max = INT64_MAX});
        bp_dim b = sym_add_symbol(e, c, &(sym_symbol){.hint = 9 + i, .min = 2, .max = INT64_MAX});
        ids[i][0] = dim_mul(c, a, dim_add(c, b, a)).sym;
        ids[i][1] = (uint32_t)dim_lt(a, b);
        ids[i][2] = dim_floordiv(c, dim_mul(c, a, b), dim_const(4)).sym;
        ids[i][3] = dim_max(c, a, dim_sub(c, b, dim_const(3))).sym;
        sym_pop(outer);
        sym_env_unref(e);
    }
    assert_memory_equal(ids[0], ids[1], sizeof ids[0]);
}

static void a_clone_keeps_ids_and_goes_its_own_way(void **state)
{
    (void)state;
    bp_dim d = read_dim("s0*s1 + Mod(s2, 3)");
    assume("s0 < s1");
    sym_env *copy = sym_env_clone(env);
    sym_scope outer = sym_push(copy, c);
    assert_int_equal(dim_prove(DIM_LT, sym_dim_of(copy, 0), sym_dim_of(copy, 1)), DIM_TRUE);
    bp_dim x = dim_add(c, d, dim_const(5));
    assert_true(dim_below(sym_dim_of(copy, 0), 100));
    assert_int_equal(sym_fact_count(copy), 2);
    assert_int_equal(sym_fact_count(env), 1);
    sym_pop(outer);
    assert_int_equal(dim_prove(DIM_LT, sym_dim_of(env, 0), sym_dim_of(env, 1)), DIM_TRUE);
    assert_int_equal(x.sym, dim_add(c, d, dim_const(5)).sym);
    sym_env_unref(copy);
}

static void an_import_keeps_values(void **state)
{
    (void)state;
    sym_env *to = sym_env_new();
    bp_dim map[7];
    for (uint32_t k = 0; k < 7; k++)
        map[k] = sym_add_symbol(to, c, sym_symbol_at(env, 6 - k));
    static const char *const TEXTS[] = {"s0*s1 - 3*s3 + 1", "(s0 + z)//s3", "Mod(s0*s2, s3)", "Max(s0, s1 - 5)",
                                        "s0 < s1", "(s0 >= 3)*(z != 4)", "s0**2*z"};
    int64_t v[7] = {5, 9, 4, 7, 0, 3, -6}, w[7] = {5, 9, 4, 7, 0, 3, -6}, a, b;
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        bp_dim d = read_dim(TEXTS[i]), e = sym_import(to, c, env, d, map);
        assert_true(sym_eval(env, d, v, &a) && sym_eval(to, e, w, &b));
        assert_int_equal(a, b);
    }
    map[0] = dim_const(6);
    assert_true(dim_same_as(sym_import(to, c, env, read_dim("s0//4"), map), 1));
    map[0] = dim_const(0);
    assert_true(dim_same_as(sym_import(to, c, env, read_dim("s1//s0"), map), 0));
    assert_contains(bp_error_message(c), "divides by 0");
    sym_env_unref(to);
}

typedef struct { uint32_t n, at[8]; } seen;

static void note(void *arg, uint32_t k)
{
    seen *s = arg;
    s->at[s->n++] = k;
}

static void symbols_are_told_in_order_once(void **state)
{
    (void)state;
    seen s = {0};
    sym_each_symbol(env, read_dim("z*s1 + Mod(s1, s0)"), note, &s);
    assert_int_equal(s.n, 3);
    assert_int_equal(s.at[0], 0);
    assert_int_equal(s.at[1], 1);
    assert_int_equal(s.at[2], 6);
    assert_int_equal(sym_symbol_of(env, read_dim("s1")), 1);
    assert_int_equal(sym_symbol_of(env, read_dim("2*s1")), UINT32_MAX);
    assert_true(sym_is_unbacked(env, read_dim("Max(s0, u1*s1)")));
    assert_false(sym_is_unbacked(env, read_dim("s0*s1")));
}

static void a_program_tells_the_first_condition_that_does_not_hold(void **state)
{
    static const char *const TEXTS[] = {"s0 >= 2", "s0 == 8", "s1 != 3", "s1 == s2", "s1 >= s0 + 1", "s0 <= s1",
                                        "Mod(s0, 4) == 0", "s0*s1 <= 1000", "3*s0 + s3 >= 4", "z <= -1", "s1 != s0"};
    enum { N = sizeof TEXTS / sizeof *TEXTS };
    static const struct { uint32_t first; int64_t v[7]; } CASES[] = {
        {N, {8, 12, 12, 5, 0, 0, -1}}, {0, {1, 12, 12, 5, 0, 0, -1}},  {1, {9, 12, 12, 5, 0, 0, -1}},
        {2, {8, 3, 3, 5, 0, 0, -1}},   {3, {8, 12, 13, 5, 0, 0, -1}},  {4, {8, 8, 8, 5, 0, 0, -1}},
        {7, {8, 200, 200, 5, 0, 0, 0}}, {9, {8, 12, 12, 5, 0, 0, 0}},  {8, {8, 12, 12, -40, 0, 0, 0}},
        {7, {8, INT64_MAX / 4, INT64_MAX / 4, 5, 0, 0, -1}},
    };
    bp_dim d[N];
    (void)state;
    for (uint32_t i = 0; i < N; i++)
        d[i] = read_dim(TEXTS[i]);
    sym_program *p = sym_compile(env, d, N);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_int_equal(sym_first_false(p, CASES[i].v), CASES[i].first);
    sym_program_free(p);
}

static void what_overflows_holds_nowhere(void **state)
{
    (void)state;
    bp_dim d[] = {read_dim("s0 > z"), read_dim("s0*s1*s2"), read_dim("3*s0"), read_dim("s0 + s1 + s2 >= 0")};
    int64_t v[7] = {INT64_MAX, 2, 2, 2, 0, 0, -2}, out[1];
    for (int i = 0; i < 4; i++) {
        sym_program *p = sym_compile(env, &d[i], 1);
        assert_false(sym_run(p, v, out));
        assert_int_equal(sym_first_false(p, v), 0);
        assert_false(sym_eval(env, d[i], v, out));
        sym_program_free(p);
    }
}

static void a_program_of_many_parts_has_room(void **state)
{
    (void)state;
    bp_dim d[60], x = read_dim("z");
    int64_t v[7] = {3, 4, 5, 6, 1, 1, 7}, out[60], want;
    for (int i = 0; i < 60; i++) {
        x = dim_max(c, dim_mod(c, dim_add(c, x, dim_const(i)), dim_const(97 + i)), dim_const(i % 7));
        d[i] = x;
    }
    sym_program *p = sym_compile(env, d, 60);
    assert_true(sym_run(p, v, out));
    for (int i = 0; i < 60; i++) {
        assert_true(sym_eval(env, d[i], v, &want));
        assert_int_equal(out[i], want);
    }
    sym_program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_question_becomes_a_guard_once),
        TEST(the_answer_no_is_a_guard_that_it_is_not),
        TEST(what_is_asked_of_equal_symbols_is_asked_of_the_first),
        TEST(a_number_is_specialized),
        TEST(data_is_not_guarded_on),
        TEST(what_is_required_of_data_is_asserted),
        TEST(what_is_required_of_sizes_is_a_guard),
        TEST(dividing_by_data_asserts_that_it_is_not_zero),
        TEST(without_an_environment_symbols_equal_themselves_alone),
        TEST(the_same_calls_give_the_same_ids),
        TEST(a_clone_keeps_ids_and_goes_its_own_way),
        TEST(an_import_keeps_values),
        TEST(symbols_are_told_in_order_once),
        TEST(a_program_tells_the_first_condition_that_does_not_hold),
        TEST(what_overflows_holds_nowhere),
        TEST(a_program_of_many_parts_has_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
