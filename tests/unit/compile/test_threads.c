/* Threads: eight of them call one callable, with shapes and branches that all meet in one trace tree, while another
 * resets it now and then. Each result must be right, and the counts must add up. */
#include "tests/unit/compile/fixture.h"
#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 8, ROUNDS = 150 };

static void branches(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_mul(c, x, 2);
    if (bp_is_true(c, bp_gt(c, bp_sum(c, x), 0)))
        y = bp_add(c, y, 1);
    bp_add_inplace(c, x, 1);
    if (bp_is_true(c, bp_gt(c, bp_select(c, x, 0, 0), 3)))
        y = bp_cumsum(c, y, 0);
    bp_return(f, y);
}

typedef struct { fixture *f; bp_callable *g; unsigned seed; atomic_uint *wrong; bool resets; } job;

static bool one_call(bp_ctx *c, bp_callable *g, unsigned k)
{
    int64_t n = 1 + k % 5;
    float x[5], want[5], sum = 0, got[5];
    for (int64_t i = 0; i < n; i++)
        sum += x[i] = (float)((int)(k / 5 % 7) - 3 + (int)i);
    bool adds = sum > 0, sums = x[0] + 1 > 3;
    for (int64_t i = 0; i < n; i++) {
        want[i] = 2 * x[i] + (adds ? 1.0f : 0.0f);
        if (sums && i)
            want[i] += want[i - 1];
    }
    bp_tensor *t = bp_tensor_from(c, BP_F32, 1, &n, x), *y = bp_call1(c, g, 1, &t);
    bool ok = y && bp_tensor_read(c, y, got, (size_t)n * sizeof *got) == BP_OK;
    for (int64_t i = 0; ok && i < n; i++)
        ok = got[i] == want[i];
    ok = ok && bp_tensor_read(c, t, got, (size_t)n * sizeof *got) == BP_OK && got[0] == x[0] + 1;
    return ok;
}

static void *work(void *arg)
{
    job *j = arg;
    bp_ctx *c = bp_ctx_new(j->f->rt);
    for (unsigned i = 0; i < ROUNDS; i++) {
        bp_scope_begin(c);
        if (!one_call(c, j->g, j->seed * 13 + i * 11))
            atomic_fetch_add(j->wrong, 1);
        bp_error_clear(c);
        bp_scope_end(c);
        if (j->resets && i % 40 == 39)
            bp_reset(c);
    }
    bp_ctx_destroy(c);
    return NULL;
}

static unsigned run_all(fixture *f, bp_callable *g, bool resets)
{
    pthread_t threads[THREADS];
    job jobs[THREADS];
    atomic_uint wrong = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        jobs[i] = (job){f, g, i, &wrong, resets && i == 0};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return atomic_load(&wrong);
}

static bp_compiled *quiet_backend(bp_graph_module *gm, const bp_inputs *in)
{
    (void)in;
    return bp_forward(gm);
}

static void c6_6_eight_threads_call_one_callable(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = quiet_backend};
    bp_callable *g = bp_compile(f->c, branches, &o);
    assert_int_equal(run_all(f, g, false), 0);
    for (unsigned k = 0; k < 35; k++)
        assert_true(one_call(f->c, g, k)); /* what the threads did not come to is captured here */
    bp_callable_stats s = stats(f, g);
    assert_int_equal(s.entries, 5);
    assert_true(s.captures <= 5 * 4);
    assert_int_equal(run_all(f, g, false), 0);
    assert_int_equal(stats(f, g).hits,
                     s.hits + THREADS * ROUNDS); /* every way is known: nobody waits, nobody captures */
    assert_int_equal(stats(f, g).captures, s.captures);
    bp_callable_unref(g);
}

static void c6_6_a_reset_under_way_loses_nothing(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = quiet_backend};
    bp_callable *g = bp_compile(f->c, branches, &o);
    assert_int_equal(run_all(f, g, true), 0);
    bp_callable_unref(g);
}

/* C3.8: two threads at one unseen outcome: one captures, the other does not wait for it. */
static pthread_barrier_t inside;
static atomic_uint meetings;

static bp_compiled *meets(bp_graph_module *gm, const bp_inputs *in)
{
    (void)in;
    if (atomic_fetch_add(&meetings, 1) == 0)
        pthread_barrier_wait(&inside); /* until the other thread has been answered */
    return bp_forward(gm);
}

static void *call_and_meet(void *arg)
{
    job *j = arg;
    bp_ctx *c = bp_ctx_new(j->f->rt);
    while (!atomic_load(&meetings))
        sched_yield(); /* the first thread is inside its compile */
    if (!one_call(c, j->g, j->seed))
        atomic_fetch_add(j->wrong, 1);
    pthread_barrier_wait(&inside);
    bp_ctx_destroy(c);
    return NULL;
}

static void c3_8_the_second_thread_at_an_unseen_outcome_runs_eagerly(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend_fn = meets};
    bp_callable *g = bp_compile(f->c, branches, &o);
    atomic_uint wrong = 0;
    job j = {f, g, 7, &wrong, false};
    pthread_t other;
    pthread_barrier_init(&inside, NULL, 2);
    assert_int_equal(pthread_create(&other, NULL, call_and_meet, &j), 0);
    assert_true(one_call(f->c, g, 7));
    pthread_join(other, NULL);
    pthread_barrier_destroy(&inside);
    assert_int_equal(atomic_load(&wrong), 0);
    assert_int_equal(stats(f, g).eager_calls, 1);
    assert_int_equal(stats(f, g).captures, 1);
    bp_callable_unref(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup_static, fixture_teardown)
        T(c6_6_eight_threads_call_one_callable),
        T(c6_6_a_reset_under_way_loses_nothing),
        T(c3_8_the_second_thread_at_an_unseen_outcome_runs_eagerly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
