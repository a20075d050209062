/* An encoder layer over every length from 16 to 512, and threads that call one callable with sizes of their own. */
#include "tests/unit/compile/fixture.h"
#include "tests/lib/world.h"
#include <backplane/nn.h>
#include <math.h>
#include <pthread.h>

static bp_tensor *filled(bp_ctx *c, uint32_t rank, const int64_t *sizes, float scale)
{
    int64_t n = 1;
    for (uint32_t d = 0; d < rank; d++)
        n *= sizes[d];
    float *v = calloc((size_t)n + 1, sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = scale * sinf((float)i * 0.37f);
    bp_tensor *t = bp_tensor_from(c, BP_F32, rank, sizes, v);
    free(v);
    return t;
}

/* -- an encoder layer ---------------------------------------------------------------------------------------------- */

static void encode(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, bp_nn_encoder_layer(c, f, bp_user(f), "layer", x, &(bp_nn_encoder_options){.heads = 2}));
}

static double apart(bp_ctx *c, bp_tensor *a, bp_tensor *b)
{
    int64_t n = bp_tensor_numel(a);
    float *x = calloc((size_t)n + 1, sizeof *x), *y = calloc((size_t)n + 1, sizeof *y);
    double most = 0;
    assert_int_equal(bp_tensor_numel(b), n);
    assert_int_equal(bp_tensor_read(c, a, x, (size_t)n * sizeof *x), BP_OK);
    assert_int_equal(bp_tensor_read(c, b, y, (size_t)n * sizeof *y), BP_OK);
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)x[i] - (double)y[i]));
    free(x);
    free(y);
    return most;
}

/* Every step-th length. */
static void encode_all(bp_ctx *c, const char *name, int64_t step, double tolerance)
{
    bp_module *m = bp_module_new(c);
    assert_int_equal(bp_nn_encoder_layer_new(c, m, "layer", 8, 16, &(bp_nn_encoder_options){.heads = 2}), BP_OK);
    bp_compile_options o = {.backend = name, .user = m};
    bp_callable *g = bp_compile(c, encode, &o);
    bp_set_grad_enabled(c, 0);
    for (int64_t n = 16; n <= 512; n += step) {
        bp_scope_begin(c);
        bp_tensor *x = filled(c, 3, (int64_t[]){1, n, 8}, 1);
        bp_value v = bp_arg_of_tensor(x);
        bp_outputs want = {0};
        bp_tensor *got = bp_call1(c, g, 1, &x);
        if (!got)
            fail_msg("length %d: %s", (int)n, bp_error_text(c));
        if (n < 20 || step > 1 || n % 61 == 0) {
            assert_int_equal(bp_run_eager(c, encode, m, &(bp_args){&v, 1}, &want), BP_OK);
            if (apart(c, got, want.at[0]) > tolerance)
                fail_msg("length %d differs by %g", (int)n, apart(c, got, want.at[0]));
        }
        bp_scope_end(c);
    }
    bp_callable_stats s = {.size = sizeof s};
    assert_int_equal(bp_stats(c, g, &s), BP_OK);
    assert_true(s.captures <= 3 && s.graphs <= 3);
    assert_int_equal(s.eager_calls, 0);
    bp_callable_unref(g);
    bp_module_unref(m);
}

static void an_encoder_layer_over_every_length_from_16_to_512_compiles_at_most_3_times(void **state)
{
    (void)state;
    world *w = world_open("[backend onednn-cpu]\nlibrary = @plugins@/backplane-onednn.so\n");
    encode_all(w->c, "eager", 1, 0);
    encode_all(w->c, "onednn-cpu", 31, 1e-4);
    world_close(w);
}

/* -- threads ------------------------------------------------------------------------------------------------------- */

enum { THREADS = 8, ROUNDS = 60 };

static void grow(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_mul(c, x, 2);
    if (bp_dim_gt(c, bp_size(c, x, 0), 20))
        y = bp_sub(c, y, 1);
    bp_return(f, bp_cat(c, BP_TENSORS(y, bp_zeros(c, BP_DIMS(bp_size(c, x, 0))))));
}

typedef struct { fixture *f; bp_callable *g; int64_t first; int wrong; } job;

static void *work(void *arg)
{
    job *j = arg;
    bp_ctx *c = bp_ctx_new(j->f->rt);
    for (int64_t i = 0; i < ROUNDS; i++) {
        int64_t n = 2 + (j->first * 7 + i * 5) % 40;
        float v[2 * 42] = {0};
        bp_scope_begin(c);
        bp_tensor *x = filled(c, 1, &n, 1), *y = bp_call1(c, j->g, 1, &x);
        bool ok = y && bp_tensor_numel(y) == 2 * n && bp_tensor_read(c, y, v, (size_t)n * 2 * sizeof *v) == BP_OK;
        for (int64_t k = 0; ok && k < n; k++)
            ok = v[k] == sinf((float)k * 0.37f) * 2 - (n > 20 ? 1 : 0) && v[n + k] == 0;
        j->wrong += !ok;
        bp_scope_end(c);
    }
    bp_ctx_destroy(c);
    return NULL;
}

static void eight_threads_call_one_callable_with_changing_sizes(void **state)
{
    fixture *f = *state;
    bp_compile_options o = {.backend = "eager"};
    bp_callable *g = bp_compile(f->c, grow, &o);
    pthread_t threads[THREADS];
    job jobs[THREADS];
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (job){f, g, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(jobs[i].wrong, 0);
    }
    assert_true(stats(f, g).graphs <= 3);
    bp_callable_unref(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_encoder_layer_over_every_length_from_16_to_512_compiles_at_most_3_times,
                                        fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(eight_threads_call_one_callable_with_changing_sizes, fixture_setup,
                                        fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
