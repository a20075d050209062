/* Sizes as text, and back. */
#include "tests/unit/sym/sizes.h"
#include <stdlib.h>

static void texts_are_read_and_printed_as_they_are(void **state)
{
    static const char *const TEXTS[] = {
        "7", "-7", "-9223372036854775808", "s0", "2*s0", "-s0", "-2*s0 + s1",
        "s0 - 9223372036854775807", "2*(s0//s1)",
        "s0*s1 + 3*s0 - 1", "s0**3*s1", "(s0 + 1)//2", "(2*s0)//3", "s0//(s1*s2)", "s0//(-2)", "3*(s0//4)",
        "(s0//4)**2", "Mod(s0, 4)", "Mod(s0 + s1, s2)", "Max(1, s0)", "s2*Min(s0, s1)", "s0 == 5", "s0 != 5", "s0 >= 2",
        "s0 <= 10", "s0 == s1", "s0 < s1", "s0 > s1", "s0 + 4 <= s1", "s0 >= s1 + 4", "s0 + s1 >= 4", "s0 + s2 == 2*s1",
        "Mod(s0, 4) == 0", "s1 + 2*(s0 >= 5)", "(s0 == 5)*(s1 == 3)", "Max(0, s0 == 5)", "(-3)//s0",
    };
    (void)state;
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        bp_dim d = read_dim(TEXTS[i]);
        buf b = {0};
        sym_print(env, d, false, &b);
        if (strcmp(buf_text(&b), TEXTS[i]) != 0)
            fail_msg("\"%s\" is printed \"%s\"", TEXTS[i], buf_text(&b));
        assert_true(dim_same(read_dim(buf_text(&b)), d));
        buf_fini(&b);
    }
}

static void other_spellings_are_read(void **state)
{
    (void)state;
    assert_prints(read_dim("1+2 * s0"), "2*s0 + 1");
    assert_prints(read_dim("((s0))*s0"), "s0**2");
    assert_prints(read_dim("4 <= s0"), "s0 >= 4");
    assert_prints(read_dim("s0 > 4"), "s0 >= 5");
    assert_prints(read_dim("5 < 4"), "0");
    assert_prints(read_dim("-2*(-1)"), "2");
    assert_prints(read_dim("2**10"), "1024");
}

static void a_wrong_text_is_refused_at_its_place(void **state)
{
    static const struct { const char *text; size_t at; } WRONG[] = {
        {"", 0}, {"s9", 0}, {"s0 +", 4}, {"(s0", 3}, {"s0)", 2}, {"s0 1", 3}, {"Mod(s0)", 6}, {"Mod(s0, 0)", 8},
        {"s0//0", 4}, {"9223372036854775808", 0}, {"s0**65", 4}, {"s0**0", 4}, {"s0 = 4", 3}, {"L['x']", 0},
        {"s0 == ", 6},
        {"- ", 2}, {"s0 - 9223372036854775809", 5},
    };
    (void)state;
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        bp_dim d;
        size_t at = 99;
        assert_int_equal(sym_parse(env, c, WRONG[i].text, strlen(WRONG[i].text), &d, &at), BP_INVALID_ARGUMENT);
        if (at != WRONG[i].at)
            fail_msg("\"%s\" is said to be wrong at %zu, not %zu", WRONG[i].text, at, WRONG[i].at);
        assert_true(dim_same_as(d, 0));
    }
    assert_int_equal(bp_error(c), BP_OK);
}

static void a_text_that_nests_without_end_is_refused(void **state)
{
    (void)state;
    enum { N = 100000 };
    static char text[N];
    static const char *const PARTS[] = {"(", "-", "Mod(", "s0**2*", "(s0 + s1)*", "Max(s0, "};
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++) {
        size_t n = strlen(PARTS[i]), at;
        bp_dim d;
        for (size_t k = 0; k + n <= N; k += n)
            memcpy(text + k, PARTS[i], n);
        assert_int_equal(sym_parse(env, c, text, N / n * n, &d, &at), BP_INVALID_ARGUMENT);
    }
}

static void guards_print_sources(void **state)
{
    (void)state;
    bp_dim x = sym_add_symbol(env, c, &(sym_symbol){.of = "L['x'].size()[0]", .hint = 5, .min = 2, .max = INT64_MAX});
    buf b = {0};
    sym_print(env, dim_compare(c, DIM_EQ, x, dim_const(5)), true, &b);
    assert_string_equal(buf_text(&b), "L['x'].size()[0] == 5");
    buf_clear(&b);
    sym_print(env, dim_compare(c, DIM_EQ, dim_mod(c, x, dim_const(4)), dim_const(1)), true, &b);
    assert_string_equal(buf_text(&b), "Mod(L['x'].size()[0], 4) == 1");
    buf_clear(&b);
    sym_print(NULL, x, true, &b);
    assert_contains(buf_text(&b), "?");
    buf_fini(&b);
}

static void names_come_from_sources_and_count_up(void **state)
{
    (void)state;
    const sym_symbol x = {.of = "L['x'].size()[0]", .hint = 5, .min = 2, .max = INT64_MAX};
    sym_env *other = sym_env_new();
    bp_dim a = sym_add_symbol(env, c, &x), b = sym_add_symbol(env, c, &x), d = sym_add_symbol(other, c, &x);
    const char *first = sym_symbol_at(env, sym_symbol_of(env, a))->name;
    const char *second = sym_symbol_at(env, sym_symbol_of(env, b))->name;
    assert_string_equal(first, sym_symbol_at(other, sym_symbol_of(other, d))->name);
    assert_int_equal(first[0], 's');
    assert_int_equal(atoi(second + 1), atoi(first + 1) + 1);
    bp_dim u = sym_add_symbol(other, c, &(sym_symbol){.unbacked = true, .min = 0, .max = INT64_MAX});
    assert_string_equal(sym_symbol_at(other, sym_symbol_of(other, u))->name, "u0");
    u = sym_add_symbol(other, c, &(sym_symbol){.unbacked = true, .min = 0, .max = INT64_MAX});
    assert_string_equal(sym_symbol_at(other, sym_symbol_of(other, u))->name, "u1");
    sym_env_unref(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(texts_are_read_and_printed_as_they_are),
        TEST(other_spellings_are_read),
        TEST(a_wrong_text_is_refused_at_its_place),
        TEST(a_text_that_nests_without_end_is_refused),
        TEST(guards_print_sources),
        TEST(names_come_from_sources_and_count_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
