/* The smallest program for each doubtful rule of opaque steps and nested callables; as test_holes.c. */
#include "tests/lib/check.h"
#include "tests/model/hole.h"

/* -- arguments ----------------------------------------------------------------------------------------------------- */

static inputs always_one(uint32_t i)
{
    (void)i;
    return (inputs){{F(1, 2), F(3, 4)}, 2};
}

static inputs some_bad(uint32_t i)
{
    static const double at[] = {2, 0, 0, 1, 2, 0};
    return (inputs){{F(1, 2), F(at[i], 0)}, 2};
}

static inputs nine_or_none(uint32_t i)
{
    return (inputs){{F(i % 2 ? 0 : 9, 2)}, 1};
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

/* What a disabled function has seen is written back at the next commit. */
static void escaped(bp_ctx *c, bp_frame *f)
{
    bp_tensor *y = bp_add(c, bp_arg(f, 0, "a"), 1);
    opaque_call(bp_user(f), "stash", y);
    bp_add_inplace(c, y, 5);
}

static void drawn(bp_ctx *c, bp_frame *f)
{
    opaque_call(bp_user(f), "draw", bp_rand(c, BP_DIMS(2)));
    bp_return(f, bp_rand(c, BP_DIMS(2)));
}

/* z is wanted behind a commit that changes what z is made of. */
static void behind(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *z = bp_cumsum(c, x, 0);
    opaque_call(bp_user(f), "print", bp_add_inplace(c, x, 1));
    if (bp_is_true(c, bp_lt(c, sum(c, x), 9)))
        bp_return(f, bp_mul(c, z, 2));
}

static void printed(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    opaque_call(bp_user(f), "print", bp_add_inplace(c, x, 1));
    bp_return(f, bp_cumsum(c, x, 0));
}

/* What fails behind a commit goes on there: it prints once. */
static void unlucky(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *i = bp_slice(c, bp_arg(f, 1, "i"), .dim = 0, .start = BP_SCALAR(0),
                                                    .end = BP_SCALAR(1));
    opaque_call(bp_user(f), "print", bp_add_inplace(c, x, 1));
    bp_return(f, bp_index_select(c, x, 0, bp_to(c, i, BP_I64)));
}

static void inner(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, bp_is_true(c, bp_lt(c, sum(c, x), 0)) ? bp_mul(c, x, 2) : bp_add(c, x, 1));
}

static bp_tensor *call_inner(bp_ctx *c, const side *s, bp_tensor *x)
{
    bp_tensor *given = NULL;
    bp_value in = bp_arg_of_tensor(x);
    bp_outputs outs = {&given, 0, 1};
    bp_call(c, s->callables[1], &(bp_args){&in, 1}, &outs);
    return given;
}

/* One inlined callable, called twice. */
static void nested(bp_ctx *c, bp_frame *f)
{
    const side *s = bp_user(f);
    bp_return(f, call_inner(c, s, call_inner(c, s, bp_arg(f, 0, "x"))));
}

/* -- the tests ----------------------------------------------------------------------------------------------------- */

/*                                                                 segments, captures,
                                                                 disagreements, eager, opened, growths, restarts */
HOLE(what_a_disabled_function_has_seen_is_committed, "exact", escaped, 3, always_one, 0, 2, 2, 0, 0, 0, 0, 0)
HOLE(the_generator_is_read_again_behind_a_step, "exact", drawn, 3, always_one, 0, 1, 2, 0, 0, 0, 0, 0)
HOLE(nothing_is_recomputed_across_a_commit, "exact", behind, 6, nine_or_none, 0, 3, 3, 0, 0, 0, 0, 0)
HOLE(a_failure_behind_a_commit_goes_on_there, "exact", unlucky, 6, some_bad, 0, 2, 2, 0, 2, 0, 0, 2)

/* The second run is that of the first call's second segment. */
static void a_run_that_fails_behind_a_commit_goes_on_there(void **state)
{
    (void)state;
    hole h;
    hole_open(&h, "alone", printed);
    h.p.links[0][1] = 2;
    for (uint32_t i = 0; i < 3; i++) {
        inputs in = always_one(i);
        hole_call(&h, &in);
    }
    assert_int_equal(atomic_load(&h.links.failed_runs), 1);
    hole_expect(&h, (numbers){2, 2, 0, 1, 0, 0, 1});
    hole_close(&h);
}

static void a_nested_callable_is_inlined(void **state)
{
    (void)state;
    hole h;
    hole_open(&h, "exact", nested);
    bp_compile_options o = {.backend_fn = links_backend(&h.p), .dynamic = -1}, off = {.dynamic = -1, .disable = 1};
    h.compiled.callables[1] = bp_compile(h.compiled.c, inner, &o);
    h.eager.callables[1] = bp_compile(h.eager.c, inner, &off);
    for (uint32_t i = 0; i < 12; i++) {
        inputs in = halves(i);
        hole_call(&h, &in);
    }
    hole_expect(&h, (numbers){5, 2, 0, 0, 0, 0, 0});
    bp_callable_unref(h.compiled.callables[1]);
    bp_callable_unref(h.eager.callables[1]);
    hole_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_disabled_function_has_seen_is_committed),
        cmocka_unit_test(the_generator_is_read_again_behind_a_step),
        cmocka_unit_test(nothing_is_recomputed_across_a_commit),
        cmocka_unit_test(a_failure_behind_a_commit_goes_on_there),
        cmocka_unit_test(a_run_that_fails_behind_a_commit_goes_on_there),
        cmocka_unit_test(a_nested_callable_is_inlined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
