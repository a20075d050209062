/* Optimizers: steps as PyTorch recorded them (tests/models/nn/record_optim.py), eager and compiled; state; refusals. */
#include "tests/lib/check.h"
#include <backplane/nn.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { STEPS = 5, NEW_RATE = 3, NPARAMS = 4 };
static const char *const NAMES[NPARAMS] = {"a", "b", "c", "d"}; /* c never has a gradient, d from step 1 on */

static bp_ctx *c;
static bp_module *recorded;

static int start(void **state)
{
    char path[512];
    (void)state;
    snprintf(path, sizeof path, "%s/tests/models/nn/optim.safetensors", getenv("top_srcdir"));
    c = bp_ctx_new(NULL);
    recorded = c ? bp_module_new(c) : NULL;
    return recorded && bp_module_load(c, recorded, path) == BP_OK ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    bp_module_unref(recorded);
    bp_ctx_destroy(c);
    return 0;
}

/* case name, kind, options but for the backend */
#define CASES(row) \
    row(sgd, BP_NN_SGD, .lr = 0.1) \
    row(sgd_decay, BP_NN_SGD, .lr = 0.1, .weight_decay = 0.2) \
    row(sgd_momentum, BP_NN_SGD, .lr = 0.1, .momentum = 0.9) \
    row(sgd_dampening, BP_NN_SGD, .lr = 0.1, .momentum = 0.8, .dampening = 0.3, .weight_decay = 0.1) \
    row(sgd_nesterov, BP_NN_SGD, .lr = 0.1, .momentum = 0.7, .nesterov = 1, .weight_decay = 0.1) \
    row(sgd_maximize, BP_NN_SGD, .lr = 0.1, .momentum = 0.5, .maximize = 1, .weight_decay = 0.1) \
    row(adam, BP_NN_ADAM, .lr = 0.05) \
    row(adam_betas, BP_NN_ADAM, .lr = 0.05, .beta1 = 0.7, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.3) \
    row(adam_amsgrad, BP_NN_ADAM, .lr = 0.05, .beta1 = 0.5, .beta2 = 0.6, .amsgrad = 1) \
    row(adam_maximize, BP_NN_ADAM, .lr = 0.05, .maximize = 1, .weight_decay = 0.1) \
    row(adamw, BP_NN_ADAMW, .lr = 0.05) \
    row(adamw_amsgrad, BP_NN_ADAMW, .lr = 0.05, .beta1 = 0.5, .beta2 = 0.6, .weight_decay = 0.4, .amsgrad = 1)

typedef struct { const char *name; bp_nn_optimizer_kind kind; bp_nn_optimizer_options o; } optim_case;
#define ROW(id, kind, ...) {#id, kind, {__VA_ARGS__}},
static const optim_case ALL[] = {CASES(ROW)};
enum { NCASES = sizeof ALL / sizeof *ALL };

/* -- parameters and steps ------------------------------------------------------------------------------------------ */

static bp_tensor *copy_of(const char *name)
{
    return bp_clone(c, bp_module_get(c, recorded, name));
}

static bp_module *fresh(void)
{
    bp_module *m = bp_module_new(c);
    for (int i = 0; i < NPARAMS; i++) {
        char name[64];
        snprintf(name, sizeof name, "start.%s", NAMES[i]);
        assert_int_equal(bp_module_add_parameter(c, m, NAMES[i], copy_of(name)), BP_OK);
    }
    assert_int_equal(bp_module_set_requires_grad(c, m, 1), BP_OK);
    return m;
}

static bp_nn_optimizer *optimizer_of(const optim_case *k, bp_module *m, const char *backend)
{
    bp_nn_optimizer_options o = k->o;
    o.backend = backend;
    o.disable = !backend;
    bp_nn_optimizer *made = bp_nn_optimizer_new(c, k->kind, m, &o);
    if (!made)
        fail_msg("%s: %s", k->name, bp_error_text(c));
    return made;
}

static void step(const optim_case *k, bp_module *m, bp_nn_optimizer *o, int n)
{
    bp_nn_optimizer_zero_grad(c, o);
    for (int i = 0; i < NPARAMS; i++) {
        char name[64];
        snprintf(name, sizeof name, "grad.%d.%s", n, NAMES[i]);
        if (i != 2 && (i != 3 || n > 0))
            bp_tensor_set_grad(c, bp_module_get(c, m, NAMES[i]), copy_of(name));
    }
    if (n == NEW_RATE)
        bp_nn_optimizer_set_lr(o, k->o.lr / 2);
    if (bp_nn_optimizer_step(c, o) != BP_OK)
        fail_msg("%s, step %d: %s", k->name, n, bp_error_text(c));
}

static void assert_near(const char *what, bp_tensor *got, bp_tensor *want, double relative)
{
    const float *a = bp_tensor_data(c, got), *b = bp_tensor_data(c, want);
    assert_int_equal(bp_tensor_numel(got), bp_tensor_numel(want));
    for (int64_t i = 0; i < bp_tensor_numel(want); i++)
        if (!(fabs((double)a[i] - (double)b[i]) <= relative * (1e-1 + fabs((double)b[i]))))
            fail_msg("%s: element %lld is %.9g, expected %.9g", what, (long long)i, (double)a[i], (double)b[i]);
}

static void check_step(const optim_case *k, bp_module *m, int n)
{
    for (int i = 0; i < NPARAMS; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.%d.%s", k->name, n, NAMES[i]);
        assert_near(name, bp_module_get(c, m, NAMES[i]), bp_module_get(c, recorded, name), 2e-6);
    }
}

/* -- recorded steps ------------------------------------------------------------------------------------------------ */

static uint32_t compiles_of(bp_nn_optimizer *o)
{
    bp_callable_stats s = {.size = sizeof s};
    assert_int_equal(bp_stats(c, bp_nn_optimizer_callable(o), &s), BP_OK);
    return s.compiles;
}

static void check_case(const optim_case *k, const char *backend)
{
    bp_scope_begin(c);
    bp_module *m = fresh();
    bp_nn_optimizer *o = optimizer_of(k, m, backend);
    for (int n = 0; n < STEPS; n++) {
        step(k, m, o, n);
        check_step(k, m, n);
        if (compiles_of(o) != (backend ? n > 0 ? 2U : 1U : 0U))
            fail_msg("%s, step %d: %u graphs are compiled", k->name, n, compiles_of(o));
    }
    bp_nn_optimizer_unref(o);
    bp_module_unref(m);
    bp_scope_end(c);
}

static void F114_an_optimizer_steps_as_pytorch_does(void **state)
{
    (void)state;
    for (int i = 0; i < NCASES; i++)
        check_case(&ALL[i], NULL);
}

/* One graph a set of parameters that have gradients: a new learning rate compiles nothing. */
static void F114_a_compiled_optimizer_steps_as_pytorch_does(void **state)
{
    (void)state;
    for (int i = 0; i < NCASES; i++)
        check_case(&ALL[i], "eager");
}

/* -- state --------------------------------------------------------------------------------------------------------- */

static void temporary(char path[512], const char *what)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(path, 512, "%s/optim-%s-%ld.safetensors", tmp ? tmp : "/tmp", what, (long)getpid());
}

/* A second optimizer that goes on from files after two steps gives the bytes that the first one gives. */
static void check_resumed(const optim_case *k, const char *backend)
{
    char params[512], kept[512];
    bp_module *m = fresh(), *again = bp_module_new(c);
    bp_nn_optimizer *o = optimizer_of(k, m, backend);
    temporary(params, "params");
    temporary(kept, "state");
    for (int n = 0; n < 2; n++)
        step(k, m, o, n);
    assert_int_equal(bp_module_save(c, m, params), BP_OK);
    assert_int_equal(bp_module_save(c, bp_nn_optimizer_state(o), kept), BP_OK);
    assert_int_equal(bp_module_load(c, again, params), BP_OK);
    assert_int_equal(bp_module_set_requires_grad(c, again, 1), BP_OK);
    bp_nn_optimizer *p = optimizer_of(k, again, backend);
    assert_int_equal(bp_module_load(c, bp_nn_optimizer_state(p), kept), BP_OK);
    for (int n = 2; n < STEPS; n++) {
        step(k, m, o, n);
        step(k, again, p, n);
        for (int i = 0; i < NPARAMS; i++)
            assert_near(k->name, bp_module_get(c, again, NAMES[i]), bp_module_get(c, m, NAMES[i]), 0);
    }
    unlink(params);
    unlink(kept);
    bp_nn_optimizer_unref(o);
    bp_nn_optimizer_unref(p);
    bp_module_unref(again);
    bp_module_unref(m);
}

static void F114_a_saved_optimizer_goes_on_as_it_was(void **state)
{
    (void)state;
    for (int i = 0; i < NCASES; i++) {
        check_resumed(&ALL[i], NULL);
        check_resumed(&ALL[i], "eager");
    }
}

/* What is loaded into its state is a buffer, as what it makes itself. */
static void F114_loaded_state_takes_no_gradient(void **state)
{
    (void)state;
    char kept[512];
    const optim_case adam = {"adam", BP_NN_ADAM, {.lr = 0.05}};
    bp_module *m = fresh();
    bp_nn_optimizer *o = optimizer_of(&adam, m, NULL), *p = optimizer_of(&adam, m, NULL);
    temporary(kept, "state");
    step(&adam, m, o, 0);
    assert_int_equal(bp_module_save(c, bp_nn_optimizer_state(o), kept), BP_OK);
    assert_int_equal(bp_module_load(c, bp_nn_optimizer_state(p), kept), BP_OK);
    unlink(kept);
    assert_int_equal(bp_module_set_requires_grad(c, bp_nn_optimizer_state(p), 1), BP_OK);
    bp_tensor *average = bp_module_get(c, bp_nn_optimizer_state(p), "a.exp_avg");
    assert_non_null(average);
    assert_int_equal(bp_tensor_requires_grad(average), 0);
    bp_nn_optimizer_unref(o);
    bp_nn_optimizer_unref(p);
    bp_module_unref(m);
}

/* -- refusals ------------------------------------------------------------------------------------------------------ */

static void refused(bp_nn_optimizer *made, const char *a, const char *b)
{
    assert_null(made);
    assert_int_equal(bp_error(c), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_text(c), a);
    assert_contains(bp_error_text(c), b);
    bp_error_clear(c);
}

static void F114_options_out_of_range_are_refused_with_their_values(void **state)
{
    (void)state;
    bp_module *m = fresh();
#define REFUSED(kind, a, b, ...) \
    refused(bp_nn_optimizer_new(c, kind, m, &(bp_nn_optimizer_options){__VA_ARGS__}), a, b)
    REFUSED(BP_NN_SGD, "sgd: lr is -0.5", "0 or more", .lr = -0.5);
    REFUSED(BP_NN_SGD, "momentum is -1", "0 or more", .momentum = -1);
    REFUSED(BP_NN_SGD, "lr is nan", "0 or more", .lr = (double)NAN);
    REFUSED(BP_NN_SGD, "nesterov needs a momentum", "momentum is 0", .nesterov = 1);
    REFUSED(BP_NN_SGD, "nesterov needs", "dampening 0.25", .nesterov = 1, .momentum = 0.9, .dampening = 0.25);
    REFUSED(BP_NN_ADAM, "adam: beta1 is 1", "it < 1", .beta1 = 1);
    REFUSED(BP_NN_ADAM, "beta2 is -0.1", "it < 1", .beta2 = -0.1);
    REFUSED(BP_NN_ADAM, "eps is -1e-08", "0 or more", .eps = -1e-8);
    REFUSED(BP_NN_ADAMW, "adamw: weight_decay is -2", "0 or more", .weight_decay = -2);
    REFUSED((bp_nn_optimizer_kind)99, "kind 99", "unknown", .lr = 1);
    refused(bp_nn_optimizer_new(c, BP_NN_SGD, NULL, NULL), "without a module", "");
    bp_module_unref(m);
}

static void F114_a_step_without_gradients_changes_nothing(void **state)
{
    (void)state;
    bp_module *m = fresh();
    bp_nn_optimizer *o = bp_nn_optimizer_new(c, BP_NN_ADAMW, m, &(bp_nn_optimizer_options){.backend = "eager"});
    assert_int_equal(bp_nn_optimizer_step(c, o), BP_OK);
    assert_near("a", bp_module_get(c, m, "a"), bp_module_get(c, recorded, "start.a"), 0);
    assert_null(bp_module_get(c, bp_nn_optimizer_state(o), "a.exp_avg"));
    bp_error_clear(c);
    bp_nn_optimizer_unref(o);
    bp_module_unref(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(F114_an_optimizer_steps_as_pytorch_does, start, end),
        cmocka_unit_test_setup_teardown(F114_a_compiled_optimizer_steps_as_pytorch_does, start, end),
        cmocka_unit_test_setup_teardown(F114_a_saved_optimizer_goes_on_as_it_was, start, end),
        cmocka_unit_test_setup_teardown(F114_loaded_state_takes_no_gradient, start, end),
        cmocka_unit_test_setup_teardown(F114_options_out_of_range_are_refused_with_their_values, start, end),
        cmocka_unit_test_setup_teardown(F114_a_step_without_gradients_changes_nothing, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
