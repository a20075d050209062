/* Runs that fail: who answers, who is to blame, for how long; and what a plugin does to the thread that it runs in. */
#include "host/backend/chain.h"
#include "host/backend/protect.h"
#include "host/backend/room.h"
#include "tests/lib/world.h"
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char GRAPH[] = "graph g {\n"
                            "  %x: f32[3] = placeholder \"x\" user\n"
                            "  %i: i64[1] = placeholder \"i\" user\n"
                            "  %index_select: f32[1] = aten.index_select.default(%x, 0, %i)\n"
                            "  output(%index_select)\n"
                            "}\n";

/* -- a backend whose runs do as they are told ---------------------------------------------------------------------- */

static struct { atomic_int runs, inside, overlaps, destroyed, owned; bp_status fails; bool slow; } told;

static bp_status run(void *state, bp_run *r)
{
    bp_view v;
    int32_t owned = 0;
    bp_run_take(r, 0, &v, &owned);
    told.owned = owned;
    told.runs++;
    if (atomic_fetch_add(&told.inside, 1) > 0)
        told.overlaps++;
    if (told.slow)
        usleep(200);
    atomic_fetch_sub(&told.inside, 1);
    if (told.fails)
        return bp_run_fail(r, told.fails, "told to fail");
    return bp_run_compiled(r, state);
}

static void destroy(void *state)
{
    told.destroyed++;
    bp_compiled_unref(state);
}

static bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    bp_compiled *inner = bp_forward(gm);
    return inner ? bp_compiled_new(gm, run, destroy, inner) : NULL;
}

typedef struct { world *w; backend *b; bp_graph_module *gm; program *p; bp_tensor *x, *i; } stage;

static program *build(stage *s)
{
    program *p = NULL;
    world_ok(s->w, program_compile(s->w->c, s->gm, s->b, &p));
    return p;
}

static stage open_stage(const char *ini)
{
    stage s = {.w = world_open(ini)};
    memset(&told, 0, sizeof told);
    world_ok(s.w, bp_register_backend_at(s.w->c, "told", compile, NULL, NULL, __FILE__, __LINE__));
    s.b = backend_lookup(s.w->c, "told");
    s.gm = world_graph(s.w, GRAPH);
    s.gm->code_id = 77;
    s.p = build(&s);
    s.x = bp_tensor_from(s.w->c, BP_F32, 1, (int64_t[]){3}, (float[]){5, 6, 7});
    s.i = bp_tensor_from(s.w->c, BP_I64, 1, (int64_t[]){1}, (int64_t[]){2});
    assert_non_null(s.i);
    return s;
}

static void close_stage(stage *s)
{
    program_unref(s->p);
    gm_unref(s->gm);
    world_close(s->w);
}

static bp_status call_in(bp_ctx *c, const stage *s, program *p, float *out)
{
    bp_tensor *in[2] = {s->x, s->i}, *got = NULL;
    uint8_t owned[2] = {1, 1};
    bp_status st = program_run(c, p, &(program_io){.inputs = in, .owned = owned, .ninputs = 2, .outputs = &got,
                                                   .noutputs = 1});
    if (st == BP_OK)
        bp_tensor_read(c, got, out, sizeof *out);
    else
        assert_null(got);
    bp_tensor_unref(got);
    return st;
}

static bp_status call(stage *s)
{
    float out = 0;
    bp_status st = call_in(s->w->c, s, s->p, &out);
    if (st == BP_OK)
        assert_true(out == 7);
    return st;
}

static void set_index(stage *s, int64_t i)
{
    memcpy(tensor_ptr(s->i), &i, sizeof i);
}

/* -- blame --------------------------------------------------------------------------------------------------------- */

static void a_failed_run_is_answered_and_its_backend_not_asked_again(void **state)
{
    (void)state;
    stage s = open_stage("");
    program *other = build(&s); /* another graph of the same callable */
    world_ok(s.w, call(&s));
    assert_int_equal(told.runs, 1);
    assert_int_equal(program_fallbacks(s.p), 0);
    told.fails = BP_UNAVAILABLE;
    world_ok(s.w, call(&s));
    assert_int_equal(told.runs, 2);
    assert_contains(buf_text(&s.w->log), "a run of backend \"told\" failed: told to fail; eager answers");
    told.fails = BP_OK;
    world_ok(s.w, call(&s));
    float out;
    world_ok(s.w, call_in(s.w->c, &s, other, &out));
    assert_int_equal(told.runs, 2);
    assert_int_equal(program_fallbacks(s.p), 1);
    buf text = {0};
    program_print_assignment(s.p, &text);
    assert_string_equal(text.s, "index_select (aten.index_select.default) -> eager -> told: a run of backend \"told\" "
                                "failed: told to fail\n");
    backend_reset(s.w->rt);
    world_ok(s.w, call(&s));
    assert_int_equal(told.runs, 3);
    buf_fini(&text);
    program_unref(other);
    close_stage(&s);
    assert_int_equal(told.destroyed, 2);
}

static void three_callables_that_it_failed_end_it_for_the_process(void **state)
{
    (void)state;
    stage s = open_stage("");
    told.fails = BP_INTERNAL;
    for (uint64_t code = 1; code <= 3; code++) {
        const char *name, *why;
        world_ok(s.w, bp_backend_state(s.w->c, "told", 0, &name, &why));
        assert_string_equal(name, "registered");
        program_unref(s.p);
        s.gm->code_id = code;
        s.p = build(&s);
        world_ok(s.w, call(&s));
    }
    const char *name, *why;
    world_ok(s.w, bp_backend_state(s.w->c, "told", 0, &name, &why));
    assert_string_equal(name, "degraded");
    assert_contains(why, "3 runs failed that another backend then did");
    backend *b;
    assert_int_equal(backend_resolve(s.w->c, "told", NULL, NULL, &b), BP_UNAVAILABLE);
    assert_contains(bp_error_text(s.w->c), "\"told\" is not usable (degraded)");
    bp_error_clear(s.w->c);
    told.fails = BP_OK;
    s.gm->code_id = 4;
    program *p = build(&s); /* a compile that held the backend already */
    float out;
    world_ok(s.w, call_in(s.w->c, &s, p, &out));
    assert_int_equal(told.runs, 3);
    program_unref(p);
    backend_reset(s.w->rt);
    world_ok(s.w, backend_resolve(s.w->c, "told", NULL, NULL, &b));
    close_stage(&s);
}

static bp_compiled *compose(bp_graph_module *gm, const bp_inputs *inputs)
{
    static const char *const ONE[] = {"told"};
    return bp_compile_with(gm, inputs, ONE, 1);
}

static void a_composer_is_not_at_fault_for_its_links(void **state)
{
    (void)state;
    stage s = open_stage("");
    world_ok(s.w, bp_register_backend_at(s.w->c, "composer", compose, NULL, NULL, __FILE__, __LINE__));
    s.b = backend_lookup(s.w->c, "composer");
    for (uint64_t code = 1; code <= 5; code++) {
        program_unref(s.p);
        s.gm->code_id = code;
        told.fails = BP_OK;
        s.p = build(&s);
        world_ok(s.w, call(&s));
        told.fails = BP_INTERNAL;
        world_ok(s.w, call(&s));
        world_ok(s.w, call(&s));
    }
    assert_int_equal(told.runs, 10); /* twice a callable, then eager */
    const char *name, *why;
    world_ok(s.w, bp_backend_state(s.w->c, "composer", 0, &name, &why));
    assert_string_equal(name, "registered");
    close_stage(&s);
}

static void data_that_explain_the_failure_retire_nobody(void **state)
{
    (void)state;
    stage s = open_stage("");
    told.fails = BP_OUT_OF_RANGE;
    assert_int_equal(call(&s), BP_OUT_OF_RANGE);
    bp_error_clear(s.w->c);
    told.fails = BP_OK;
    set_index(&s, 9);
    assert_int_equal(call(&s), BP_OUT_OF_RANGE);
    bp_error_clear(s.w->c);
    set_index(&s, 2);
    world_ok(s.w, call(&s));
    assert_int_equal(told.runs, 3);
    assert_string_equal(buf_text(&s.w->log), "");
    close_stage(&s);
}

static void when_eager_fails_too_its_error_is_the_answer_and_nobody_is_retired(void **state)
{
    (void)state;
    stage s = open_stage("");
    told.fails = BP_UNAVAILABLE;
    set_index(&s, 9);
    assert_int_equal(call(&s), BP_OUT_OF_RANGE);
    assert_contains(bp_error_text(s.w->c), "index_select");
    assert_null(strstr(bp_error_text(s.w->c), "told to fail"));
    bp_error_clear(s.w->c);
    set_index(&s, 2);
    told.fails = BP_OK;
    world_ok(s.w, call(&s));
    assert_int_equal(told.runs, 2);
    close_stage(&s);
}

static void a_cancelled_run_ends_there(void **state)
{
    (void)state;
    stage s = open_stage("");
    told.fails = BP_CANCELLED;
    assert_int_equal(call(&s), BP_CANCELLED);
    bp_error_clear(s.w->c);
    told.fails = BP_OK;
    world_ok(s.w, call(&s));
    assert_int_equal(told.runs, 2);
    close_stage(&s);
}

static void the_strict_policy_gives_the_error_and_owned_inputs(void **state)
{
    (void)state;
    stage s = open_stage("");
    world_ok(s.w, call(&s));
    assert_int_equal(told.owned, 0);
    world_ok(s.w, bp_set_config(s.w->c, "fallback", "error"));
    world_ok(s.w, call(&s));
    assert_int_equal(told.owned, 1);
    told.fails = BP_INTERNAL;
    assert_int_equal(call(&s), BP_INTERNAL);
    assert_string_equal(bp_error_message(s.w->c), "a run of backend \"told\" failed: told to fail");
    close_stage(&s);
}

static void the_silent_policy_reports_and_does_not_warn(void **state)
{
    (void)state;
    stage s = open_stage("[host]\nfallback = silent\n");
    told.fails = BP_INTERNAL;
    world_ok(s.w, call(&s));
    assert_string_equal(buf_text(&s.w->log), "");
    assert_int_equal(program_fallbacks(s.p), 1);
    close_stage(&s);
}

/* -- threads ------------------------------------------------------------------------------------------------------- */

enum { THREADS = 8, CALLS = 40 };
typedef struct { stage *s; bp_status st; int which; } caller;

static void *call_often(void *arg)
{
    caller *k = arg;
    bp_ctx *c = bp_ctx_new(k->s->w->rt);
    for (int i = 0; i < CALLS && !k->st; i++) {
        float out = 0;
        k->st = call_in(c, k->s, k->s->p, &out);
        if (!k->st && out != 7)
            k->st = BP_DATA_LOSS;
    }
    bp_ctx_destroy(c);
    return NULL;
}

static void from_threads(stage *s)
{
    pthread_t id[THREADS];
    caller k[THREADS];
    for (int i = 0; i < THREADS; i++) {
        k[i] = (caller){s, BP_OK, 0};
        assert_int_equal(pthread_create(&id[i], NULL, call_often, &k[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(id[i], NULL);
        assert_int_equal(k[i].st, BP_OK);
    }
}

static void runs_of_one_object_are_serial_without_a_flag(void **state)
{
    (void)state;
    stage s = open_stage("");
    told.slow = true;
    from_threads(&s);
    assert_int_equal(told.runs, THREADS * CALLS);
    assert_int_equal(told.overlaps, 0);
    close_stage(&s);
    s = open_stage("");
    s.b->info.flags = BP_CONCURRENT_RUN;
    program_unref(s.p);
    s.p = build(&s);
    told.slow = true;
    from_threads(&s);
    assert_true(told.overlaps > 0);
    close_stage(&s);
}

static void threads_that_fail_together_are_all_answered(void **state)
{
    (void)state;
    stage s = open_stage("[host]\nfallback = silent\n");
    told.fails = BP_INTERNAL;
    from_threads(&s);
    assert_true(told.runs >= 1 && told.runs <= THREADS);
    assert_int_equal(program_fallbacks(s.p), 1);
    close_stage(&s);
}

static bp_compiled *slow_compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    if (atomic_fetch_add(&told.inside, 1) > 0)
        told.overlaps++;
    usleep(300);
    atomic_fetch_sub(&told.inside, 1);
    told.runs++;
    return compile(gm, inputs);
}

static void *compile_often(void *arg)
{
    caller *k = arg;
    world *w = k->s->w;
    bp_ctx *c = bp_ctx_new(w->rt);
    for (int i = 0; i < 10 && !k->st; i++) {
        program *p = NULL;
        backend *b;
        k->st = backend_resolve(c, k->which ? "slow" : "again", NULL, NULL, &b);
        k->st = k->st ? k->st : program_compile(c, k->s->gm, b, &p);
        program_unref(p);
    }
    bp_ctx_destroy(c);
    return NULL;
}

static void compiles_of_one_plugin_are_serial_by_whatever_name(void **state)
{
    (void)state;
    stage s = open_stage("");
    world_ok(s.w, bp_register_backend_at(s.w->c, "slow", slow_compile, NULL, NULL, __FILE__, __LINE__));
    world_ok(s.w, bp_register_backend_at(s.w->c, "again", slow_compile, NULL, NULL, __FILE__, __LINE__));
    pthread_t id[THREADS];
    caller k[THREADS];
    for (int i = 0; i < THREADS; i++) {
        k[i] = (caller){&s, BP_OK, i % 2};
        assert_int_equal(pthread_create(&id[i], NULL, compile_often, &k[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(id[i], NULL);
        assert_int_equal(k[i].st, BP_OK);
    }
    assert_int_equal(told.runs, THREADS * 10);
    assert_int_equal(told.overlaps, 0);
    close_stage(&s);
}

/* -- circles of locks ---------------------------------------------------------------------------------------------- */

typedef struct { serial *first, *second; bp_runtime *rt; pthread_barrier_t *both; bp_status st; } locker;

static void *lock_both(void *arg)
{
    locker *k = arg;
    bp_ctx *c = bp_ctx_new(k->rt);
    assert_int_equal(serial_enter(c, k->first, "the first"), BP_OK);
    assert_int_equal(serial_enter(c, k->first, "the first again"), BP_OK);
    pthread_barrier_wait(k->both);
    k->st = serial_enter(c, k->second, "backend \"b\"");
    if (k->st == BP_OK)
        serial_leave(k->second);
    else
        assert_contains(bp_error_text(c), "backend \"b\" is busy in a thread that waits for this one");
    serial_leave(k->first);
    serial_leave(k->first);
    bp_ctx_destroy(c);
    return NULL;
}

static void threads_that_wait_for_each_other_get_an_error_not_a_hang(void **state)
{
    (void)state;
    world *w = world_open("");
    for (int i = 0; i < 50; i++) {
        serial a = {0}, b = {0};
        pthread_barrier_t both;
        pthread_barrier_init(&both, NULL, 2);
        locker k[2] = {{&a, &b, w->rt, &both, 0}, {&b, &a, w->rt, &both, 0}};
        pthread_t id[2];
        for (int t = 0; t < 2; t++)
            assert_int_equal(pthread_create(&id[t], NULL, lock_both, &k[t]), 0);
        for (int t = 0; t < 2; t++)
            pthread_join(id[t], NULL);
        assert_true((k[0].st == BP_OK) != (k[1].st == BP_OK));
        assert_true(!a.owner && !b.owner);
        pthread_barrier_destroy(&both);
    }
    world_close(w);
}

/* -- processes and floating point ---------------------------------------------------------------------------------- */

static int in_child(stage *s)
{
    float out = 0;
    if (call_in(s->w->c, s, s->p, &out) != BP_OK || out != 7)
        return 1;
    return strstr(buf_text(&s->w->log), "the process forked since") ? 0 : 2;
}

static void a_forked_child_does_not_use_a_backend_that_is_not_fork_safe(void **state)
{
    (void)state;
    stage s = open_stage("");
    world_ok(s.w, call(&s));
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(in_child(&s));
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(told.runs, 1);
    close_stage(&s);
}

static bool denormals_work(void)
{
    volatile float tiny = 1e-38f;
    tiny /= 16;
    return tiny != 0;
}

static void the_floating_point_word_survives_a_plugin(void **state)
{
    (void)state;
    stage s = open_stage("[host]\nprobe_helper = @helper@\n[backend fast]\nlibrary = @bad@/fast_math.so\n");
    program_unref(s.p);
    s.b = backend_lookup(s.w->c, "fast");
    assert_non_null(s.b);
    assert_true(denormals_work());
#if defined(__SSE2__)
    assert_contains(buf_text(&s.w->log), "changed the floating-point control word");
#endif
    s.p = build(&s);
    assert_true(denormals_work());
    world_ok(s.w, call(&s));
    assert_true(denormals_work());
    close_stage(&s);
}

/* -- wrong numbers ------------------------------------------------------------------------------------------------- */

static void wrong_values_are_an_error_directly_and_pass_on_in_a_chain(void **state)
{
    (void)state;
    static const char TWO[] = "graph g {\n"
                              "  %x: f32[3] = placeholder \"x\" user\n"
                              "  %neg: f32[3] = aten.neg.default(%x)\n"
                              "  %exp: f32[3] = aten.exp.default(%x)\n"
                              "  output(%neg, %exp)\n"
                              "}\n";
    world *w = world_open("[host]\nverify_correctness = yes\nprobe_helper = @helper@\n"
                          "[backend zeros]\nlibrary = @bad@/wrong_values.so\n"
                          "[backend chain]\nlibrary = @plugins@/backplane-compose.so\nopt.chain = zeros, eager\n");
    bp_graph_module *gm = world_graph(w, TWO);
    bp_tensor *x = bp_tensor_from(w->c, BP_F32, 1, (int64_t[]){3}, (float[]){5, 6, 7}), *out[2];
    program *p = NULL;
    program_io io = {.inputs = &x, .ninputs = 1, .outputs = out, .noutputs = 2};
    world_ok(w, program_compile(w->c, gm, backend_lookup(w->c, "zeros"), &p));
    assert_int_equal(program_run(w->c, p, &io), BP_INTERNAL);
    assert_contains(bp_error_message(w->c), "backend \"zeros\" computed wrong values: output 0 is 0 at element 0, "
                                            "eager execution gives -5");
    bp_error_clear(w->c);
    program_unref(p);
    world_ok(w, program_compile(w->c, gm, backend_lookup(w->c, "chain"), &p));
    world_ok(w, program_run(w->c, p, &io));
    float neg[3];
    world_ok(w, bp_tensor_read(w->c, out[0], neg, sizeof neg));
    assert_true(neg[2] == -7);
    assert_contains(buf_text(&w->log), "computed wrong values");
    bp_tensor_unref(out[0]);
    bp_tensor_unref(out[1]);
    program_unref(p);
    gm_unref(gm);
    world_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_run_is_answered_and_its_backend_not_asked_again),
        cmocka_unit_test(three_callables_that_it_failed_end_it_for_the_process),
        cmocka_unit_test(a_composer_is_not_at_fault_for_its_links),
        cmocka_unit_test(data_that_explain_the_failure_retire_nobody),
        cmocka_unit_test(when_eager_fails_too_its_error_is_the_answer_and_nobody_is_retired),
        cmocka_unit_test(a_cancelled_run_ends_there),
        cmocka_unit_test(the_strict_policy_gives_the_error_and_owned_inputs),
        cmocka_unit_test(the_silent_policy_reports_and_does_not_warn),
        cmocka_unit_test(runs_of_one_object_are_serial_without_a_flag),
        cmocka_unit_test(threads_that_fail_together_are_all_answered),
        cmocka_unit_test(compiles_of_one_plugin_are_serial_by_whatever_name),
        cmocka_unit_test(threads_that_wait_for_each_other_get_an_error_not_a_hang),
        cmocka_unit_test(a_forked_child_does_not_use_a_backend_that_is_not_fork_safe),
        cmocka_unit_test(the_floating_point_word_survives_a_plugin),
        cmocka_unit_test(wrong_values_are_an_error_directly_and_pass_on_in_a_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
