/* Sizes without memory: every allocation fails once; nothing crashes, nothing leaks, the error says so. */
#define BP_WITHOUT_OPERATORS
#include "tests/lib/check.h"
#include "host/sym/env.h"
#include "tests/lib/oom.h"
#include <backplane/backplane.h>

static bp_ctx *c;

static int start(void **state)
{
    (void)state;
    c = bp_ctx_new(NULL);
    return c ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    bp_ctx_destroy(c);
    return 0;
}

static bool went_well(void)
{
    bp_status s = bp_error(c);
    if (s != BP_OK && s != BP_RESOURCE_EXHAUSTED)
        fail_msg("%s: %s", bp_status_name(s), bp_error_text(c));
    bp_error_clear(c);
    return s == BP_OK;
}

/* Expressions of all kinds, questions that become facts, and equalities. */
static bp_dim compute(sym_env *e)
{
    bp_dim s[3];
    for (uint32_t k = 0; k < 3; k++)
        s[k] = sym_add_symbol(e, c, &(sym_symbol){.of = "L['x'].size()[0]", .hint = 6 + k, .min = 2, .max = 100});
    bp_dim x = dim_mul(c, dim_add(c, s[0], s[1]), dim_sub(c, s[2], dim_const(1)));
    x = dim_add(c, dim_floordiv(c, x, s[0]), dim_mod(c, x, dim_const(7)));
    x = dim_max(c, x, dim_min(c, s[1], dim_mul(c, s[0], s[2])));
    (void)dim_lt(s[0], x);
    (void)dim_is(dim_mod(c, s[0], dim_const(2)), 0);
    (void)dim_eq(dim_add(c, s[0], dim_const(1)), s[1]);
    return sym_simplify(e, c, dim_add(c, x, dim_compare(c, DIM_LE, s[1], s[2])));
}

static bool use_environment(void *arg)
{
    (void)arg;
    sym_env *e = sym_env_new();
    if (!e)
        return false;
    sym_scope former = sym_push(e, c);
    bp_dim x = compute(e);
    buf text = {0};
    sym_print(e, x, false, &text);
    int64_t v[3] = {6, 7, 8}, out[1], want = 0;
    sym_program *p = sym_compile(e, &x, 1);
    bool well = went_well() && !text.failed && p && sym_eval(e, x, v, &want) && sym_run(p, v, out) && out[0] == want;
    sym_program_free(p);
    buf_fini(&text);
    sym_pop(former);
    sym_env_unref(e);
    return well;
}

static void expressions_and_facts(void **state)
{
    (void)state;
    assert_true(oom_sweep("an environment", use_environment, NULL) > 10);
}

static bool use_copies(void *arg)
{
    sym_env *e = arg, *copy = sym_env_clone(e), *to = sym_env_new();
    bool well = copy && to;
    bp_dim map[3], d;
    size_t offset;
    for (uint32_t k = 0; k < 3 && to; k++)
        map[k] = sym_add_symbol(to, c, sym_symbol_at(e, k));
    for (uint32_t i = 0; to && ctx_ok(c) && i < sym_fact_count(e); i++)
        well &= sym_assume(to, c, sym_import(to, c, e, sym_fact_at(e, i)->holds, map), SYM_GIVEN);
    const char text[] = "(a0*b0 + 1)//Max(b0, 3) + Mod(a0, b0)*a0**3";
    if (to) {
        sym_add_symbol(to, c, &(sym_symbol){.name = "a0", .hint = 3, .min = 2, .max = 9});
        sym_add_symbol(to, c, &(sym_symbol){.name = "b0", .hint = 3, .min = 2, .max = 9});
        bool fits = ctx_ok(c);
        bp_status s = sym_parse(to, c, text, sizeof text - 1, &d, &offset);
        if (fits && s != BP_OK && s != BP_RESOURCE_EXHAUSTED)
            fail_msg("%s at %zu", bp_status_name(s), offset);
        well &= s == BP_OK;
    }
    well &= went_well();
    sym_env_unref(copy);
    sym_env_unref(to);
    return well;
}

static void copies_and_texts(void **state)
{
    (void)state;
    sym_env *e = sym_env_new();
    sym_scope former = sym_push(e, c);
    compute(e);
    sym_pop(former);
    assert_true(oom_sweep("copies", use_copies, e) > 10);
    sym_env_unref(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(expressions_and_facts, start, end),
        cmocka_unit_test_setup_teardown(copies_and_texts, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
