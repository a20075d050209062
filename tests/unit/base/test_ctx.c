/* Errors, contexts, the runtime, logs and the thread pool. */
#define BP_WITHOUT_OPERATORS
#include "tests/lib/check.h"
#include <stdlib.h>
#include "host/base/ctx.h"
#include "host/base/log.h"
#include "host/base/parallel.h"
#include "sdk/base/str.h"
#include <backplane/backplane.h>

static void the_first_failure_is_the_one_that_is_told(void **state)
{
    (void)state;
    bp_ctx *c = bp_ctx_new(NULL);
    assert_int_equal(bp_error(c), BP_OK);
    assert_string_equal(bp_error_text(c), "");
    assert_int_equal(ctx_fail(c, BP_NOT_FOUND, "no file \"%s\"", "x.npy"), BP_NOT_FOUND);
    diag_hint(&c->diag, "look elsewhere");
    assert_int_equal(ctx_fail(c, BP_INTERNAL, "second"), BP_INTERNAL);
    diag_hint(&c->diag, "second hint");
    diag_while(&c->diag, "loading weights");
    assert_int_equal(bp_error(c), BP_NOT_FOUND);
    assert_string_equal(bp_error_message(c), "no file \"x.npy\"");
    assert_string_equal(bp_error_text(c), "no file \"x.npy\"\n  hint: look elsewhere\n  while loading weights\n"
                                          "  (and 1 more after it)");
    bp_error_clear(c);
    assert_int_equal(bp_error(c), BP_OK);
    ctx_fail(c, 0, "nameless");
    assert_int_equal(bp_error(c), BP_UNKNOWN);
    bp_ctx_destroy(c);
}

static void a_story_that_is_too_long_is_cut_and_keeps_its_outermost_frame(void **state)
{
    (void)state;
    bp_ctx *c = bp_ctx_new(NULL);
    char *text = calloc(1, 5000);
    memset(text, 'x', 4999);
    ctx_fail(c, BP_INTERNAL, "%s", text);
    diag_detail(&c->diag, "%s", text);
    diag_hint(&c->diag, "%s", text);
    for (int i = 0; i < 20; i++)
        diag_while(&c->diag, "step %d", i);
    assert_int_equal(strlen(bp_error_message(c)), sizeof c->diag.message - 1);
    assert_true(strlen(bp_error_text(c)) < sizeof c->diag.text);
    assert_contains(bp_error_text(c), "while step 0\n");
    assert_contains(bp_error_text(c), "while step 19");
    free(text);
    bp_ctx_destroy(c);
}

static void status_names_go_both_ways(void **state)
{
    (void)state;
    bp_status s = 0;
    assert_string_equal(bp_status_name(BP_UNIMPLEMENTED), "UNIMPLEMENTED");
    assert_string_equal(bp_status_name(999), "UNKNOWN");
    assert_true(status_by_name("DATA_LOSS", &s) && s == BP_DATA_LOSS);
    assert_false(status_by_name("data_loss", &s));
    assert_int_equal(status_chain(BP_INVALID_ARGUMENT), 'S');
    assert_int_equal(status_chain(BP_UNIMPLEMENTED), 'Q');
    assert_int_equal(status_chain(BP_OUT_OF_RANGE), 'D');
    assert_int_equal(status_chain(999), 'L');
}

static void setters_give_the_former_value_and_refuse_nonsense(void **state)
{
    (void)state;
    bp_ctx *c = bp_ctx_new(NULL);
    assert_int_equal(bp_set_grad_enabled(c, 0), 1);
    assert_int_equal(bp_set_grad_enabled(c, 1), 0);
    assert_int_equal(bp_set_inference_mode(c, 1), 0);
    assert_int_equal(bp_grad_enabled(c), 0);
    assert_int_equal(bp_set_default_dtype(c, BP_F64), BP_F32);
    assert_int_equal(bp_set_default_dtype(c, BP_I32), BP_F64);
    assert_int_equal(bp_error(c), BP_INVALID_ARGUMENT);
    bp_error_clear(c);
    assert_int_equal(bp_set_autocast(c, BP_BF16), BP_DTYPE_UNSET);
    assert_int_equal(bp_set_default_device(c, (bp_device){99, 0}).kind, BP_CPU);
    assert_int_equal(bp_error(c), BP_INVALID_ARGUMENT);
    assert_int_equal(c->ambient.default_device.kind, BP_CPU);
    c->rng_offset = 12;
    bp_manual_seed(c, 5);
    assert_int_equal(bp_generator_offset(c), 0);
    bp_ctx_destroy(c);
}

static char destroyed[8];
static void note_ctx_slot(bp_ctx *c, void *slot)
{
    (void)c;
    strcat(destroyed, slot);
}
static void note_rt_slot(bp_runtime *rt, void *slot)
{
    (void)rt;
    strcat(destroyed, slot);
}
static void *make_slot(bp_runtime *rt)
{
    (void)rt;
    static char name[] = "r";
    return name;
}

static void slots_die_in_reverse_order_and_the_runtime_after_its_contexts(void **state)
{
    (void)state;
    bp_runtime *rt = bp_runtime_new("some.ini");
    bp_ctx *c = bp_ctx_new(rt);
    assert_ptr_equal(bp_ctx_runtime(c), rt);
    static char a[] = "a", b[] = "b";
    c->slot[CTX_TENSOR] = a;
    c->slot_destroy[CTX_TENSOR] = note_ctx_slot;
    c->slot[CTX_NN] = b;
    c->slot_destroy[CTX_NN] = note_ctx_slot;
    assert_ptr_equal(runtime_slot(rt, RT_CACHE, make_slot, note_rt_slot),
                     runtime_slot(rt, RT_CACHE, make_slot, note_rt_slot));
    bp_runtime_unref(rt);
    assert_string_equal(destroyed, "");
    bp_ctx_destroy(c);
    assert_string_equal(destroyed, "bar");
    bp_ctx_destroy(NULL);
    bp_runtime_unref(NULL);
}

static void collect(void *arg, const char *text, size_t n)
{
    buf_add(arg, text, n);
}

static void log_lines_carry_their_artifact_and_unknown_names_a_suggestion(void **state)
{
    (void)state;
    buf out = {0};
    bp_runtime *rt = bp_runtime_new(NULL);
    bp_set_log(rt, collect, &out);
    log_line(rt, LOG_guards, "not shown");
    log_parse(rt, " guards ,gaurds,,graph_breaks");
    log_line(rt, LOG_guards, "shown %d", 1);
    log_line(rt, LOG_graph, "not shown");
    log_error(rt, "bad");
    assert_string_equal(buf_text(&out),
                        "backplane: warning: BACKPLANE_LOGS names \"gaurds\", which is no log artifact; did you mean "
                        "\"guards\"?\nbackplane[guards]: shown 1\nbackplane: error: bad\n");
    assert_true(log_on(rt, LOG_graph_breaks));
    bp_runtime_unref(rt);
    buf_fini(&out);
}

static void mark(void *arg, int64_t begin, int64_t end)
{
    unsigned char *seen = arg;
    for (int64_t i = begin; i < end; i++)
        seen[i]++;
}

static void nest(void *arg, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        parallel_for(100, 1, mark, (unsigned char *)arg + i * 100);
}

static void a_parallel_loop_meets_each_index_once_also_nested(void **state)
{
    (void)state;
    static unsigned char seen[1000];
    for (int64_t n = 0; n <= 1000; n += 37) {
        memset(seen, 0, sizeof seen);
        parallel_for(n, 3, mark, seen);
        for (int64_t i = 0; i < 1000; i++)
            assert_int_equal(seen[i], i < n);
    }
    memset(seen, 0, sizeof seen);
    parallel_for(10, 1, nest, seen);
    for (int64_t i = 0; i < 1000; i++)
        assert_int_equal(seen[i], 1);
    assert_true(parallel_threads() >= 1);
}

int main(void)
{
    const struct CMUnitTest claims[] = {
        cmocka_unit_test(the_first_failure_is_the_one_that_is_told),
        cmocka_unit_test(a_story_that_is_too_long_is_cut_and_keeps_its_outermost_frame),
        cmocka_unit_test(status_names_go_both_ways),
        cmocka_unit_test(setters_give_the_former_value_and_refuse_nonsense),
        cmocka_unit_test(slots_die_in_reverse_order_and_the_runtime_after_its_contexts),
        cmocka_unit_test(log_lines_carry_their_artifact_and_unknown_names_a_suggestion),
        cmocka_unit_test(a_parallel_loop_meets_each_index_once_also_nested),
    };
    return cmocka_run_group_tests(claims, NULL, NULL);
}
