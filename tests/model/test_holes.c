/* The smallest program for each doubtful rule of captured calls: results are eager's, and counts are those that
 * `capture_model.py --holes` prints for it. holes.py has the same functions. */
#include "tests/lib/check.h"
#include "tests/model/hole.h"

/* -- arguments ----------------------------------------------------------------------------------------------------- */

static inputs two_signs(uint32_t i)
{
    return (inputs){{F(1, 2), F(i % 2 ? 9 : -9, 3)}, 2};
}

static value all_signs(uint32_t n)
{
    value v = {'f', 10, {0}};
    for (uint32_t i = 0; i < 10; i++)
        v.v[i] = n >> i & 1 ? -1 : 1;
    return v;
}

static inputs beside_signs(uint32_t n)
{
    return (inputs){{F(2, 2, 2, 2, 2, 2, 2, 2, 2, 2), all_signs(n)}, 2};
}

static inputs signs_alone(uint32_t n)
{
    return (inputs){{all_signs(n)}, 1};
}

static inputs trips(uint32_t i)
{
    static const double rounds[] = {3, 9, 1, 5, 60, 0, 30};
    return (inputs){{I(60 - rounds[i]), F(.5, 1)}, 2};
}

static inputs a_hundred_rounds(uint32_t i)
{
    (void)i;
    return (inputs){{I(-40), F(.5)}, 2};
}

static inputs always_one(uint32_t i)
{
    (void)i;
    return (inputs){{F(1, 2), F(3, 4)}, 2};
}

static inputs sizes_wrong(uint32_t i)
{
    return (inputs){{I(7 + i % 3, 0)}, 1};
}

static inputs some_bad(uint32_t i)
{
    static const double at[] = {2, 0, 0, 1, 2, 0};
    return (inputs){{F(1, 2), F(at[i], 0)}, 2};
}

static inputs tenths(uint32_t i)
{
    return (inputs){{F(.1, .2, .3 + i % 8)}, 1};
}

static inputs nine_or_none(uint32_t i)
{
    return (inputs){{F(1, 2), F(i % 2 ? 0 : 9, 2)}, 2};
}

static inputs up_to_ten(uint32_t i)
{
    return (inputs){{I(i % 10, 1)}, 1};
}

static inputs halves(uint32_t i)
{
    static const double first[] = {-1, 1, -3, 3};
    return (inputs){{F(first[i % 4], 2)}, 1};
}

/* -- the functions ------------------------------------------------------------------------------------------------- */

static bp_tensor *sum(bp_ctx *c, bp_tensor *t)
{
    return bp_sum(c, t, BP_DIMS(0), .keepdim = 1);
}

static bp_tensor *element(bp_ctx *c, bp_tensor *t, int64_t i)
{
    return bp_slice(c, t, .dim = 0, .start = BP_SCALAR(i), .end = BP_SCALAR(i + 1));
}

static void toy(bp_ctx *c, bp_frame *f)
{
    bp_tensor *a = bp_arg(f, 0, "a"), *b = bp_arg(f, 1, "b"), *x = bp_add(c, a, 1);
    if (bp_is_true(c, bp_lt(c, sum(c, b), 0)))
        b = bp_mul(c, b, -1);
    bp_return(f, bp_mul(c, x, b));
}

static void ask_ten(bp_ctx *c, bp_frame *f, bp_tensor *y, bp_tensor *x)
{
    for (int i = 0; i < 10; i++)
        if (bp_is_true(c, bp_lt(c, element(c, x, i), 0)))
            y = bp_mul(c, y, i + 2);
    bp_return(f, y);
}

static void ifs(bp_ctx *c, bp_frame *f)
{
    ask_ten(c, f, bp_arg(f, 0, "y"), bp_arg(f, 1, "x"));
}

/* y is the value asked about until the first branch is taken. */
static void ifs_on_y(bp_ctx *c, bp_frame *f)
{
    ask_ten(c, f, bp_arg(f, 0, "y"), bp_arg(f, 0, "y"));
}

static void rounds(bp_ctx *c, bp_frame *f)
{
    bp_tensor *s = sum(c, bp_arg(f, 0, "x")), *y = bp_arg(f, 1, "y");
    while (bp_is_true(c, bp_lt(c, s, 60))) {
        s = bp_add(c, s, 1);
        y = bp_add(c, y, 0.5);
    }
    bp_return(f, y);
}

static void dropout(bp_ctx *c, bp_frame *f)
{
    bp_tensor *s = sum(c, bp_arg(f, 0, "x")), *y = bp_arg(f, 1, "y");
    while (bp_is_true(c, bp_lt(c, s, 60))) {
        s = bp_add(c, s, 1);
        y = bp_add(c, y, bp_rand(c, BP_DIMS(1)));
    }
    bp_return(f, y);
}

/* z is wanted only after the last round, now and then. */
static void late(bp_ctx *c, bp_frame *f)
{
    bp_tensor *s = sum(c, bp_arg(f, 0, "x")), *y = bp_arg(f, 1, "y"), *z = NULL;
    int k = 0;
    for (; bp_is_true(c, bp_lt(c, s, 60)); k++) {
        bp_tensor *before = s;
        s = bp_add(c, s, 1);
        z = bp_cumsum(c, before, 0);
        y = bp_add(c, y, 0.5);
    }
    bp_return(f, k % 2 ? bp_mul(c, y, z) : y);
}

static void swap(bp_ctx *c, bp_frame *f)
{
    bp_tensor *a = bp_arg(f, 0, "a"), *b = bp_arg(f, 1, "b"), *old = bp_clone(c, b);
    bp_copy_inplace(c, b, a);
    bp_copy_inplace(c, a, old);
}

static void wrong_size(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_add_inplace(c, x, 1);
    bp_return(f, bp_select(c, x, 0, bp_item_int(c, sum(c, x))));
}

static bp_tensor *at_index(bp_ctx *c, bp_frame *f)
{
    return bp_index_select(c, bp_arg(f, 0, "x"), 0, bp_to(c, element(c, bp_arg(f, 1, "i"), 0), BP_I64));
}

static void lookup(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = at_index(c, f);
    if (bp_is_true(c, bp_lt(c, x, 2)))
        bp_return(f, x);
}

static void gather(bp_ctx *c, bp_frame *f)
{
    bp_return(f, at_index(c, f));
}

static void dead(bp_ctx *c, bp_frame *f)
{
    at_index(c, f);
}

static void item(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, bp_mul(c, x, bp_item_float(c, sum(c, x))));
}

static void twins(bp_ctx *c, bp_frame *f)
{
    bp_tensor *y = bp_add(c, bp_arg(f, 0, "a"), 1);
    bp_return(f, y);
    bp_return(f, bp_clone(c, y));
}

static void copied(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_copy_inplace(c, bp_full(c, BP_DIMS(2), 0.5), bp_arg(f, 0, "a")));
}

/* The second path wants more from two segments of the first. */
static void grown(bp_ctx *c, bp_frame *f)
{
    bp_tensor *a = bp_arg(f, 0, "a"), *b = bp_arg(f, 1, "b"), *z = bp_cumsum(c, a, 0);
    bp_is_true(c, bp_lt(c, sum(c, a), 0));
    bp_tensor *w = bp_cumsum(c, b, 0);
    bp_return(f, bp_is_true(c, bp_lt(c, sum(c, b), 9)) ? bp_mul(c, z, w) : bp_cumsum(c, sum(c, a), 0));
}

static void opens(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, bp_mul(c, x, bp_item_int(c, sum(c, x))));
}

/* The second path could recompute y cheaply, but what was asked was made of it. */
static void told(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_mul(c, x, 0.5);
    bp_return(f, bp_is_true(c, bp_lt(c, element(c, y, 0), 0)) ? x : bp_add(c, y, 1));
}

/* The same code without grad and with it. */
static void modes(bp_ctx *c, bp_frame *f)
{
    bp_tensor *y = bp_arg(f, 0, "x");
    for (int on = 0; on < 2; on++) {
        int old = bp_set_grad_enabled(c, on);
        if (bp_is_true(c, bp_lt(c, sum(c, y), 0)))
            y = bp_mul(c, y, -1);
        bp_set_grad_enabled(c, old);
    }
    bp_return(f, y);
}

/* -- the tests ----------------------------------------------------------------------------------------------------- */

/*                                                                 segments, captures,
                                                                 disagreements, eager, opened, growths, restarts */
HOLE(toy_has_3_segments_and_2_captures, "exact", toy, 100, two_signs, 0, 3, 2, 0, 0, 0, 0, 0)
HOLE(ten_ifs_have_20_segments_and_1024_captures, "exact", ifs, 1024, beside_signs, 0, 20, 1024, 0, 0, 0, 0, 0)
HOLE(ten_ifs_on_what_is_asked_have_28_segments, "exact", ifs_on_y, 1024, signs_alone, 0, 28, 1024, 0, 0, 0, 0, 0)
HOLE(equal_rounds_of_a_loop_are_one_segment, "exact", rounds, 7, trips, 0, 2, 7, 0, 0, 0, 0, 0)
HOLE(random_numbers_count_from_the_segment_s_start, "exact", dropout, 7, trips, 0, 2, 7, 0, 0, 0, 0, 0)
HOLE(break_65_opens, "exact", rounds, 3, a_hundred_rounds, 0, 2, 1, 0, 3, 1, 0, 0)
HOLE(a_list_belongs_to_the_canonical_graph, "exact", late, 7, trips, 0, 3, 7, 0, 0, 0, 0, 0)
HOLE(the_epilogue_reads_before_it_writes, "exact", swap, 3, always_one, 0, 1, 1, 0, 0, 0, 0, 0)
HOLE(an_error_by_metadata_grafts_a_leaf, "exact", wrong_size, 15, sizes_wrong, 0, 1, 3, 0, 15, 0, 0, 0)
HOLE(an_error_by_data_grafts_no_leaf, "exact", lookup, 6, some_bad, 0, 2, 3, 0, 2, 0, 1, 2)
HOLE(a_call_that_fails_on_data_is_captured_once, "exact", gather, 6, some_bad, 0, 1, 1, 0, 2, 0, 0, 2)
HOLE(what_may_fail_on_data_is_never_dead, "exact", dead, 6, some_bad, 0, 1, 1, 0, 2, 0, 0, 2)
HOLE(a_guess_that_nobody_confirmed_does_not_count, "another", item, 16, tenths, 0, 9, 9, 1, 0, 0, 0, 0)
HOLE(outputs_share_memory_only_if_their_fakes_do, "elide", twins, 3, always_one, 0, 1, 1, 0, 0, 0, 0, 0)
HOLE(an_output_is_no_argument_s_memory, "exact", copied, 3, always_one, 0, 0, 1, 0, 0, 0, 0, 0)
HOLE(a_list_that_cannot_grow_leaves_the_old_code, "exact", grown, 6, nine_or_none, 4, 4, 2, 0, 0, 0, 2, 0)
HOLE(known_outcomes_of_an_open_break_still_match, "exact", opens, 20, up_to_ten, 0, 9, 8, 0, 4, 1, 0, 0)
HOLE(what_was_asked_is_handed_on, "exact", told, 12, halves, 0, 3, 2, 0, 0, 0, 1, 0)
HOLE(modes_are_part_of_a_segment_s_key, "modes", modes, 12, halves, 0, 3, 2, 0, 0, 0, 0, 0)

/* The link goes on serving: it runs at each call, bad ones too. */
static void a_bad_index_blames_no_link(void **state)
{
    (void)state;
    hole h;
    hole_open(&h, "elide", gather);
    for (uint32_t i = 0; i < 6; i++) {
        inputs in = some_bad(i);
        hole_call(&h, &in);
    }
    assert_int_equal(h.links.runs[0], 6);
    hole_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(toy_has_3_segments_and_2_captures),
        cmocka_unit_test(ten_ifs_have_20_segments_and_1024_captures),
        cmocka_unit_test(ten_ifs_on_what_is_asked_have_28_segments),
        cmocka_unit_test(equal_rounds_of_a_loop_are_one_segment),
        cmocka_unit_test(random_numbers_count_from_the_segment_s_start),
        cmocka_unit_test(break_65_opens),
        cmocka_unit_test(a_list_belongs_to_the_canonical_graph),
        cmocka_unit_test(the_epilogue_reads_before_it_writes),
        cmocka_unit_test(an_error_by_metadata_grafts_a_leaf),
        cmocka_unit_test(an_error_by_data_grafts_no_leaf),
        cmocka_unit_test(a_call_that_fails_on_data_is_captured_once),
        cmocka_unit_test(a_bad_index_blames_no_link),
        cmocka_unit_test(what_may_fail_on_data_is_never_dead),
        cmocka_unit_test(a_guess_that_nobody_confirmed_does_not_count),
        cmocka_unit_test(outputs_share_memory_only_if_their_fakes_do),
        cmocka_unit_test(an_output_is_no_argument_s_memory),
        cmocka_unit_test(a_list_that_cannot_grow_leaves_the_old_code),
        cmocka_unit_test(known_outcomes_of_an_open_break_still_match),
        cmocka_unit_test(what_was_asked_is_handed_on),
        cmocka_unit_test(modes_are_part_of_a_segment_s_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
