/* Spans, the builder, and numbers as Python prints them. */
#include "tests/lib/check.h"
#include <stdlib.h>
#include "sdk/base/match.h"
#include "sdk/base/str.h"
#include <math.h>

/* The right side is what Python 3 prints for repr() of the left. */
static const struct { double v; const char *text; } REPRS[] = {
    {0x1.0000000000000p+0, "1.0"},
    {-0x0.0p+0, "-0.0"},
    {0x1.999999999999ap-4, "0.1"},
    {0x1.4f8b588e368f1p-17, "1e-05"},
    {0x1.a36e2eb1c432dp-14, "0.0001"},
    {0x1.b69b4ba630f35p+56, "1.2345678901234568e+17"},
    {0x1.c6bf526340000p+49, "1000000000000000.0"},
    {0x1.1c37937e08000p+53, "1e+16"},
    {0x1.1eb2d66005835p+997, "1.5e+300"},
    {0x0.0000000000001p-1022, "5e-324"},
    {0x1.fffffffffffffp+1023, "1.7976931348623157e+308"},
    {0x1.0000000000000p-44, "5.684341886080802e-14"},
    {0x1.9000000000000p+6, "100.0"},
    {0x1.3333333333334p-2, "0.30000000000000004"},
    {0x1.4000000000000p+1, "2.5"},
    {0x1.0f0cf064dd592p+73, "1e+22"},
    {0x1.52d02c7e14af6p+76, "1e+23"},
    {0x1.0000000000000p+53, "9007199254740992.0"},
    {-0x1.34a0000000000p+10, "-1234.5"},
    {INFINITY, "inf"}, {-INFINITY, "-inf"}, {NAN, "nan"},
};

static void doubles_print_as_python_prints_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof REPRS / sizeof REPRS[0]; i++) {
        buf b = {0};
        buf_double(&b, REPRS[i].v);
        assert_string_equal(buf_text(&b), REPRS[i].text);
        buf_fini(&b);
    }
}

static void every_power_of_two_reads_back_equal(void **state)
{
    (void)state;
    for (int e = -1074; e < 1024; e++) {
        buf b = {0};
        buf_double(&b, -ldexp(1.0, e));
        assert_true(strtod(buf_text(&b), NULL) == -ldexp(1.0, e));
        buf_fini(&b);
    }
}

static void quotes_escape_what_a_reader_could_misread(void **state)
{
    (void)state;
    buf b = {0};
    buf_quote(&b, "a'b");
    buf_putc(&b, ' ');
    buf_quote(&b, "a'b\"c\\d\n\x01");
    assert_string_equal(buf_text(&b), "\"a'b\" 'a\\'b\"c\\\\d\\n\\x01'");
    buf_fini(&b);
}

static void a_split_gives_empty_pieces_and_then_ends(void **state)
{
    (void)state;
    str rest = str_of("a,,b");
    assert_true(str_is(str_split(&rest, ','), "a"));
    assert_true(str_is(str_split(&rest, ','), ""));
    assert_non_null(rest.s);
    assert_true(str_is(str_trim(str_split(&rest, ',')), "b"));
    assert_null(rest.s);
    assert_true(str_is(str_trim(str_of(" \t x y\r\n")), "x y"));
    assert_true(str_starts(str_of("opt.chain"), "opt."));
    assert_false(str_starts(str_of("op"), "opt."));
}

static void utf8_is_told_from_other_bytes(void **state)
{
    (void)state;
    static const char *const GOOD[] = {"", "abc", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"};
    static const char *const BAD[] = {"\xff", "\x80", "\xc3", "\xc3(", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                                      "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "a\xe2\x82"};
    for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++)
        assert_true(str_is_utf8(str_of(GOOD[i])));
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++)
        assert_false(str_is_utf8(str_of(BAD[i])));
}

static void a_builder_keeps_what_was_added_and_can_be_emptied(void **state)
{
    (void)state;
    buf b = {0};
    assert_string_equal(buf_text(&b), "");
    for (int i = 0; i < 1000; i++)
        buf_printf(&b, "%d,", i);
    assert_int_equal(b.n, 10 * 2 + 90 * 3 + 900 * 4);
    buf_clear(&b);
    buf_pad(&b, 3, '-');
    assert_string_equal(buf_text(&b), "---");
    buf_pad(&b, SIZE_MAX - 1, 'x');
    assert_true(b.failed);
    assert_string_equal(buf_text(&b), "---");
    buf_fini(&b);
}

/* Ratios are difflib.SequenceMatcher(None, a, b, autojunk=False).ratio(). */
static void ratios_are_those_of_difflib(void **state)
{
    (void)state;
    static const struct { const char *a, *b; double ratio; } ROWS[] = {
        {"aa", "aba", 0x1.999999999999ap-1},
        {"aa", "baba", 0x1.5555555555555p-1},
        {"onednn-cpu", "onednncpu", 0x1.e50d79435e50dp-1},
        {"abcd", "bcde", 0x1.8000000000000p-1},
        {"", "", 0x1.0000000000000p+0},
        {"a", "", 0x0.0p+0},
        {"fallback", "callback", 0x1.c000000000000p-1},
        {"debug-print", "debugprint", 0x1.e79e79e79e79ep-1},
        {"tide", "diet", 0x1.0000000000000p-2},
        {"diet", "tide", 0x1.0000000000000p-1},
        {"abxcd", "abcd", 0x1.c71c71c71c71cp-1},
        {"private", "volatile", 0x1.1111111111111p-1},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++)
        assert_true(match_ratio(str_of(ROWS[i].a), str_of(ROWS[i].b)) == ROWS[i].ratio);
}

static void close_matches_come_best_first_and_not_below_the_cutoff(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"eager", "cuda-fused", "onednn-cpu", "onednn-gpu", "fallback"};
    const char *out[3];
    assert_int_equal(match_close(STR("onednn-cpus"), NAMES, 5, 0.6, 3, out), 2);
    assert_string_equal(out[0], "onednn-cpu");
    assert_string_equal(out[1], "onednn-gpu");
    assert_int_equal(match_close(STR("onednn-cpus"), NAMES, 5, 0.6, 1, out), 1);
    assert_string_equal(out[0], "onednn-cpu");
    assert_int_equal(match_close(STR("zzz"), NAMES, 5, 0.6, 3, out), 0);
}

int main(void)
{
    const struct CMUnitTest claims[] = {
        cmocka_unit_test(doubles_print_as_python_prints_them),
        cmocka_unit_test(every_power_of_two_reads_back_equal),
        cmocka_unit_test(quotes_escape_what_a_reader_could_misread),
        cmocka_unit_test(a_split_gives_empty_pieces_and_then_ends),
        cmocka_unit_test(utf8_is_told_from_other_bytes),
        cmocka_unit_test(a_builder_keeps_what_was_added_and_can_be_emptied),
        cmocka_unit_test(ratios_are_those_of_difflib),
        cmocka_unit_test(close_matches_come_best_first_and_not_below_the_cutoff),
    };
    return cmocka_run_group_tests(claims, NULL, NULL);
}
