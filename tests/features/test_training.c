/* F040: a small network that trains compiled: forward, backward and the optimizer's step. */
#include "tests/lib/world.h"
#include <backplane/nn.h>
#include <stdlib.h>

enum { BATCH = 64, STEPS = 60, HELD_OUT = 360, EAGER_STEPS = 8 };

typedef struct {
    world *w;
    bp_module *m;
    bp_callable *loss;
    bp_nn_optimizer *optimizer;
    bp_tensor *images, *labels;
    float losses[STEPS];
} training;

static bp_tensor *logits(bp_ctx *c, bp_frame *f, bp_tensor *x)
{
    bp_module *m = bp_user(f);
    x = bp_relu(c, bp_nn_conv(c, f, m, "conv", x, &(bp_nn_conv_options){.padding = BP_DIMS(1, 1)}));
    x = bp_flatten(c, bp_max_pool2d(c, x, BP_DIMS(2, 2)), 1);
    return bp_nn_linear(c, f, m, "fc", x, NULL);
}

static void loss_of(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "images"), *y = bp_arg(f, 1, "labels");
    bp_return(f, bp_nn_loss(c, BP_NN_CROSS_ENTROPY, logits(c, f, x), y, NULL));
}

static void guess(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_argmax(c, logits(c, f, bp_arg(f, 0, "images")), .dim = BP_SCALAR(1)));
}

static bp_tensor *load(bp_ctx *c, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/models/digits/%s", getenv("top_srcdir"), name);
    bp_tensor *t = bp_load_npy(c, path);
    return t && bp_tensor_dtype(t) == BP_U8 ? bp_div(c, t, 16) : t;
}

static void open_training(training *t, const char *through)
{
    bp_ctx *c = (t->w = world_open(""))->c;
    bp_manual_seed(c, 5);
    t->m = bp_module_new(c);
    bp_nn_conv_new(c, t->m, "conv", 1, 8, BP_DIMS(3, 3), NULL);
    bp_nn_linear_new(c, t->m, "fc", 128, 10, NULL);
    bp_module_set_requires_grad(c, t->m, 1);
    t->loss = bp_compile(c, loss_of, &(bp_compile_options){.backend = through, .user = t->m, .disable = !through});
    t->optimizer = bp_nn_optimizer_new(c, BP_NN_ADAMW, t->m, &(bp_nn_optimizer_options){
        .lr = 1e-2, .backend = through, .disable = !through});
    t->images = load(c, "train_images.npy");
    t->labels = bp_to(c, load(c, "train_labels.npy"), BP_I64);
    world_ok(t->w, bp_error(c));
}

static void close_training(training *t)
{
    bp_nn_optimizer_unref(t->optimizer);
    bp_callable_unref(t->loss);
    bp_module_unref(t->m);
    world_close(t->w);
}

static void train(training *t, int steps)
{
    bp_ctx *c = t->w->c;
    int64_t batches = bp_tensor_size(t->images, 0) / BATCH;
    for (int i = 0; i < steps; i++) {
        bp_scope_begin(c);
        int64_t at = i % batches * BATCH;
        bp_tensor *in[2] = {bp_narrow(c, t->images, 0, at, BATCH), bp_narrow(c, t->labels, 0, at, BATCH)};
        in[0] = bp_clone(c, in[0]);
        in[1] = bp_clone(c, in[1]);
        bp_nn_optimizer_zero_grad(c, t->optimizer);
        bp_tensor *loss = bp_call1(c, t->loss, 2, in);
        world_ok(t->w, bp_backward(c, loss, NULL, 0));
        world_ok(t->w, bp_nn_optimizer_step(c, t->optimizer));
        t->losses[i] = (float)bp_item_float(c, loss);
        bp_scope_end(c);
    }
}

static int right_of(training *t)
{
    bp_ctx *c = t->w->c;
    int64_t got[HELD_OUT], want[HELD_OUT];
    bp_tensor *x = load(c, "images.npy"), *y = bp_to(c, load(c, "labels.npy"), BP_I64);
    bp_callable *g = bp_compile(c, guess, &(bp_compile_options){.backend = "eager", .user = t->m});
    assert_int_equal(bp_tensor_size(x, 0), HELD_OUT);
    bp_tensor_read(c, bp_call1(c, g, 1, &x), got, sizeof got);
    bp_tensor_read(c, y, want, sizeof want);
    world_ok(t->w, bp_error(c));
    bp_callable_unref(g);
    int right = 0;
    for (int i = 0; i < HELD_OUT; i++)
        right += got[i] == want[i];
    return right;
}

/* One graph, compiled once, that every call but the first found. */
static void assert_compiled_once(training *t, const bp_callable *g)
{
    bp_callable_stats s = {.size = sizeof s};
    world_ok(t->w, bp_stats(t->w->c, g, &s));
    assert_int_equal(s.graphs, 1);
    assert_int_equal(s.eager_calls, 0);
    assert_int_equal(s.hits, STEPS - 1);
}

static void F040_a_small_network_trains_compiled_with_the_optimizers_step(void **state)
{
    training t, eager;
    (void)state;
    open_training(&t, "aot_eager");
    train(&t, STEPS);
    assert_compiled_once(&t, t.loss);
    assert_compiled_once(&t, bp_nn_optimizer_callable(t.optimizer));
    assert_true(t.losses[0] > 2 && t.losses[STEPS - 1] < 0.5F);
    assert_in_range(right_of(&t), HELD_OUT * 9 / 10, HELD_OUT);
    open_training(&eager, NULL);
    train(&eager, EAGER_STEPS);
    assert_memory_equal(t.losses, eager.losses, EAGER_STEPS * sizeof *t.losses);
    close_training(&eager);
    close_training(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(F040_a_small_network_trains_compiled_with_the_optimizers_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
