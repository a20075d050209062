/* Trains the digit classifier: compiled forward, backward and optimizer step.
 *
 *     train_digits [--backend NAME] [--epochs N] [--steps N] [--start WEIGHTS] [--losses OUT.npy] [--save OUT]
 *                  [--double] FOLDER
 *
 * FOLDER is tests/models/digits. The images come in an order of the program's own, which tests/torch/train_digits.py
 * repeats; from the same weights both see the same batches. --double trains in float64: in float32 whatever rounds
 * otherwise has other losses by the 100th step, since relu and max_pool turn at a point. Public headers alone.
 * Exit status: 0 when it has trained. */
#include "sdk/examples/examples.h"
#include <backplane/nn.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 64, CLASSES = 10, PIXELS = 64, LEVELS = 16 };
static const double RATE = 2e-3, PI = 3.14159265358979323846;

typedef struct {
    const char *backend, *start, *losses, *save, *folder;
    int64_t epochs, steps; /* steps: 0 for all of the epochs */
    bp_dtype dtype;
} arguments;

typedef struct { int64_t n; float *images; int64_t *labels; } dataset;

/* -- data ---------------------------------------------------------------------------------------------------------- */

static bp_tensor *load(bp_ctx *c, const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return bp_load_npy(c, path);
}

/* Grey levels 0 to 16, or floats that are divided already. */
static int load_data(bp_ctx *c, const char *folder, const char *images, const char *labels, dataset *d)
{
    bp_tensor *x = load(c, folder, images), *y = load(c, folder, labels);
    if (bp_tensor_dtype(x) == BP_U8)
        x = bp_div(c, x, LEVELS);
    d->n = bp_tensor_size(x, 0);
    d->images = malloc((size_t)d->n * PIXELS * sizeof *d->images);
    d->labels = malloc((size_t)d->n * sizeof *d->labels);
    if (!d->images || !d->labels)
        return 0;
    bp_tensor_read(c, x, d->images, (size_t)d->n * PIXELS * sizeof *d->images);
    bp_tensor_read(c, y, d->labels, (size_t)d->n * sizeof *d->labels);
    return bp_error(c) == BP_OK;
}

static uint64_t split_mix(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static void shuffle(int64_t *order, int64_t n, int64_t epoch)
{
    uint64_t state = (uint64_t)epoch;
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = (int64_t)(split_mix(&state) % (uint64_t)(i + 1)), held = order[i];
        order[i] = order[j];
        order[j] = held;
    }
}

/* The images and labels of a batch, as inputs. */
static void gather(bp_ctx *c, bp_dtype dtype, const dataset *d, const int64_t *at, int64_t n, bp_tensor *in[2])
{
    float x[BATCH * PIXELS];
    int64_t y[BATCH];
    for (int64_t i = 0; i < n; i++) {
        memcpy(x + i * PIXELS, d->images + at[i] * PIXELS, PIXELS * sizeof *x);
        y[i] = d->labels[at[i]];
    }
    in[0] = bp_to(c, bp_tensor_from(c, BP_F32, 4, (const int64_t[]){n, 1, 8, 8}, x), dtype);
    in[1] = bp_tensor_from(c, BP_I64, 1, (const int64_t[]){n}, y);
}

/* -- the model ----------------------------------------------------------------------------------------------------- */

/* Weights of a file, as that type. */
static void load_model(bp_ctx *c, bp_module *m, const arguments *a)
{
    static const char *const names[] = {"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias",
                                        "fc1.weight",   "fc1.bias",   "fc2.weight",   "fc2.bias"};
    bp_module_load(c, m, a->start);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        bp_module_add_parameter(c, m, names[i], bp_to(c, bp_module_get(c, m, names[i]), a->dtype));
}

static bp_module *new_model(bp_ctx *c, const arguments *a)
{
    bp_module *m = bp_module_new(c);
    const bp_nn_conv_options conv = {.padding = BP_DIMS(1, 1), .dtype = a->dtype};
    const bp_nn_linear_options linear = {.dtype = a->dtype};
    if (a->start) {
        load_model(c, m, a);
    } else {
        bp_manual_seed(c, 20);
        bp_nn_conv_new(c, m, "conv1", 1, 16, BP_DIMS(3, 3), &conv);
        bp_nn_conv_new(c, m, "conv2", 16, 32, BP_DIMS(3, 3), &conv);
        bp_nn_linear_new(c, m, "fc1", 512, PIXELS, &linear);
        bp_nn_linear_new(c, m, "fc2", PIXELS, CLASSES, &linear);
    }
    bp_module_set_requires_grad(c, m, 1);
    return m;
}

static void loss_of(bp_ctx *c, bp_frame *f)
{
    bp_tensor *images = bp_arg(f, 0, "images"), *labels = bp_arg(f, 1, "labels");
    bp_return(f, bp_nn_loss(c, BP_NN_CROSS_ENTROPY, digits_logits(c, f, bp_user(f), images), labels, NULL));
}

/* How many of the data the model gets right. */
static int64_t count_right(bp_ctx *c, bp_callable *forward, bp_dtype dtype, const dataset *d)
{
    int64_t right = 0, at[BATCH], best[BATCH] = {0};
    for (int64_t from = 0; from < d->n && bp_error(c) == BP_OK; from += BATCH) {
        int64_t n = d->n - from < BATCH ? d->n - from : BATCH;
        bp_tensor *in[2];
        for (int64_t i = 0; i < n; i++)
            at[i] = from + i;
        bp_scope_begin(c);
        gather(c, dtype, d, at, n, in);
        bp_tensor *classes = bp_argmax(c, bp_call1(c, forward, 1, in), .dim = BP_SCALAR(1));
        bp_tensor_read(c, classes, best, (size_t)n * sizeof *best);
        bp_scope_end(c);
        for (int64_t i = 0; i < n && bp_error(c) == BP_OK; i++)
            right += best[i] == d->labels[from + i];
    }
    return right;
}

/* -- training ------------------------------------------------------------------------------------------------------ */

typedef struct {
    bp_ctx *c;
    const arguments *a;
    dataset train;
    bp_module *model;
    bp_callable *loss;
    bp_nn_optimizer *optimizer;
    int64_t steps, an_epoch;
    int64_t *order;   /* of the epoch */
    double *losses;   /* one a step */
} training;

static void show_progress(const training *t, int64_t step)
{
    enum { WIDTH = 30 };
    int full = (int)(WIDTH * (step + 1) / t->steps);
    if (!isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r[%.*s%*s] step %" PRId64 " of %" PRId64 ", loss %.4f ", full, "##############################",
            WIDTH - full, "", step + 1, t->steps, t->losses[step]);
    if (step + 1 == t->steps)
        fputc('\n', stderr);
}

/* Half a cosine, from RATE to 0. */
static double rate(int64_t step, int64_t steps)
{
    return RATE * 0.5 * (1 + cos(PI * (double)step / (double)steps));
}

static void train_step(training *t, int64_t step)
{
    bp_ctx *c = t->c;
    int64_t at = step % t->an_epoch * BATCH, left = t->train.n - at;
    bp_tensor *in[2];
    if (at == 0)
        shuffle(t->order, t->train.n, step / t->an_epoch);
    bp_scope_begin(c);
    gather(c, t->a->dtype, &t->train, t->order + at, left < BATCH ? left : BATCH, in);
    bp_nn_optimizer_set_lr(t->optimizer, rate(step, t->a->epochs * t->an_epoch));
    bp_nn_optimizer_zero_grad(c, t->optimizer);
    bp_tensor *loss = bp_call1(c, t->loss, 2, in);
    bp_backward(c, loss, NULL, 0);
    bp_nn_optimizer_step(c, t->optimizer);
    t->losses[step] = bp_item_float(c, loss);
    bp_scope_end(c);
}

static int run_training(training *t)
{
    t->an_epoch = (t->train.n + BATCH - 1) / BATCH;
    t->steps = t->a->steps ? t->a->steps : t->a->epochs * t->an_epoch;
    t->order = malloc((size_t)t->train.n * sizeof *t->order);
    t->losses = calloc((size_t)t->steps, sizeof *t->losses);
    if (!t->order || !t->losses)
        return 0;
    for (int64_t i = 0; i < t->steps && bp_error(t->c) == BP_OK; i++) {
        train_step(t, i);
        show_progress(t, i);
    }
    return bp_error(t->c) == BP_OK;
}

static int compile(training *t, const char *backend)
{
    t->loss = bp_compile(t->c, loss_of, &(bp_compile_options){.backend = backend, .user = t->model});
    t->optimizer = bp_nn_optimizer_new(t->c, BP_NN_ADAMW, t->model,
                                       &(bp_nn_optimizer_options){.lr = RATE, .backend = backend});
    return t->loss && t->optimizer;
}

static void save_losses(const training *t)
{
    bp_save_npy(t->c, bp_tensor_from(t->c, BP_F64, 1, &t->steps, t->losses), t->a->losses);
}

/* Held-out accuracy, through the backend as well. */
static void report(training *t, const char *backend)
{
    bp_ctx *c = t->c;
    dataset held = {0};
    bp_callable *forward = bp_compile(c, digits_forward, &(bp_compile_options){.backend = backend, .user = t->model});
    bp_set_grad_enabled(c, 0);
    if (forward && load_data(c, t->a->folder, "images.npy", "labels.npy", &held)) {
        int64_t right = count_right(c, forward, t->a->dtype, &held);
        printf("%s: loss %.4f after %" PRId64 " steps; %" PRId64 " of %" PRId64 " held-out digits right (%.2f %%)\n",
               backend ? backend : "default", t->losses[t->steps - 1], t->steps, right, held.n,
               100 * (double)right / (double)held.n);
    }
    bp_callable_unref(forward);
    free(held.images);
    free(held.labels);
}

static int train(bp_ctx *c, const arguments *a)
{
    training t = {.c = c, .a = a};
    bp_scope_begin(c);
    t.model = new_model(c, a);
    if (load_data(c, a->folder, "train_images.npy", "train_labels.npy", &t.train) && compile(&t, a->backend) &&
        run_training(&t)) {
        report(&t, a->backend);
        if (a->losses)
            save_losses(&t);
        if (a->save)
            bp_module_save(c, t.model, a->save);
    }
    if (bp_error(c) != BP_OK)
        fprintf(stderr, "train_digits: %s\n", bp_error_text(c));
    int failed = bp_error(c) != BP_OK;
    bp_nn_optimizer_unref(t.optimizer);
    bp_callable_unref(t.loss);
    bp_module_unref(t.model);
    free(t.train.images);
    free(t.train.labels);
    free(t.order);
    free(t.losses);
    bp_scope_end(c);
    return failed;
}

/* -- the command --------------------------------------------------------------------------------------------------- */

static int usage(const char *what)
{
    if (what)
        fprintf(stderr, "train_digits: %s\n", what);
    fputs("usage: train_digits [--backend NAME] [--epochs N] [--steps N] [--start WEIGHTS] [--losses OUT.npy]\n"
          "                    [--save OUT.safetensors] [--double] FOLDER\n", stderr);
    return 0;
}

static int read_count(const char *text, int64_t *n)
{
    char *end;
    *n = strtoll(text, &end, 10);
    return *text && !*end && *n > 0 && *n <= 1000000;
}

/* Fills *a; false: what is wrong has been said. */
static int read_arguments(int argc, char **argv, arguments *a)
{
    const struct { const char *flag; const char **text; int64_t *count; } options[] = {
        {"--backend", &a->backend, NULL}, {"--start", &a->start, NULL},    {"--losses", &a->losses, NULL},
        {"--save", &a->save, NULL},       {"--epochs", NULL, &a->epochs}, {"--steps", NULL, &a->steps},
    };
    for (int i = 1; i < argc; i++) {
        size_t o = 0, n = sizeof options / sizeof *options;
        if (strcmp(argv[i], "--double") == 0) {
            a->dtype = BP_F64;
            continue;
        }
        while (o < n && strcmp(argv[i], options[o].flag) != 0)
            o++;
        if (o == n && (argv[i][0] == '-' || a->folder))
            return usage(argv[i][0] == '-' ? "unknown option" : "one folder is expected");
        if (o == n)
            a->folder = argv[i];
        else if (++i == argc)
            return usage("an option has no value");
        else if (options[o].text)
            *options[o].text = argv[i];
        else if (!read_count(argv[i], options[o].count))
            return usage("a number from 1 to 1000000 is expected");
    }
    return a->folder ? 1 : usage(NULL);
}

int main(int argc, char **argv)
{
    arguments a = {.epochs = 30, .dtype = BP_F32};
    if (!read_arguments(argc, argv, &a))
        return 2;
    bp_ctx *c = bp_ctx_new(NULL);
    if (!c)
        return 1;
    int failed = train(c, &a);
    bp_ctx_destroy(c);
    return failed;
}
