/* The demo: a function with a break through debug-print, then a real classifier on several backends.
 *
 *     demo DIGITS_FOLDER
 *
 * It uses the public headers alone. Exit status: 0 when every check of its own held. */
#include "sdk/examples/examples.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CLASSES = 10, TOY_CALLS = 100, TIMED_CALLS = 7 };

static int failures;

static void check(int ok, const char *claim)
{
    if (!ok) {
        printf("FAILED: %s\n", claim);
        failures++;
    }
}

static void write_stdout(void *arg, const char *text, size_t n)
{
    (void)arg;
    fwrite(text, 1, n, stdout);
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* -- toy_example --------------------------------------------------------------------------------------------------- */

static bp_tensor *toy_input(bp_ctx *c, float first)
{
    float v[10];
    for (int i = 0; i < 10; i++)
        v[i] = first + 0.25f * (float)i;
    return bp_tensor_from(c, BP_F32, 1, (const int64_t[]){10}, v);
}

static void run_toy(bp_ctx *c)
{
    bp_callable *g = bp_compile(c, toy_example, &(bp_compile_options){.backend = "debug-print"});
    bp_callable_stats s = {.size = sizeof s};
    printf("== toy_example, %d calls with both outcomes, through debug-print\n", TOY_CALLS);
    for (int i = 0; g && i < TOY_CALLS; i++) {
        bp_scope_begin(c);
        bp_tensor *in[2] = {toy_input(c, -1), toy_input(c, i % 2 ? 1 : -3)};
        check(bp_call1(c, g, 2, in) != NULL, "toy_example answers");
        bp_scope_end(c);
    }
    if (g && bp_stats(c, g, &s) == BP_OK)
        printf("%u graphs, %u break site, %u outcomes\n\nguards:\n", s.graphs, s.break_sites, s.outcomes);
    check(s.graphs == 3 && s.break_sites == 1 && s.outcomes == 2, "3 graphs, 1 break site, 2 outcomes");
    if (g)
        bp_print_guards(c, g, write_stdout, NULL);
    bp_callable_unref(g);
}

/* -- the digit classifier ------------------------------------------------------------------------------------------ */

typedef struct {
    bp_module *weights;
    bp_tensor *images;
    int64_t n;
    int64_t *labels; /* n */
    float *logits;   /* PyTorch's, n * CLASSES */
} digits;

static bp_tensor *load(bp_ctx *c, const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return bp_load_npy(c, path);
}

static int load_digits(bp_ctx *c, const char *folder, digits *d)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/weights.safetensors", folder);
    d->weights = bp_module_new(c);
    bp_module_load(c, d->weights, path);
    d->images = load(c, folder, "images.npy");
    bp_tensor *labels = load(c, folder, "labels.npy"), *logits = load(c, folder, "logits.npy");
    d->n = bp_tensor_size(d->images, 0);
    d->labels = calloc((size_t)d->n, sizeof *d->labels);
    d->logits = calloc((size_t)d->n * CLASSES, sizeof *d->logits);
    if (!d->labels || !d->logits)
        return 0;
    bp_tensor_read(c, labels, d->labels, (size_t)d->n * sizeof *d->labels);
    bp_tensor_read(c, logits, d->logits, (size_t)d->n * CLASSES * sizeof *d->logits);
    return bp_error(c) == BP_OK;
}

static double accuracy(const digits *d, const float *logits)
{
    int64_t right = 0;
    for (int64_t i = 0; i < d->n; i++) {
        int best = 0;
        for (int k = 1; k < CLASSES; k++)
            if (logits[i * CLASSES + k] > logits[i * CLASSES + best])
                best = k;
        right += best == d->labels[i];
    }
    return (double)right / (double)d->n;
}

/* The largest difference from PyTorch's logits, as a share of their range. */
static double difference(const digits *d, const float *logits)
{
    float lo = d->logits[0], hi = lo;
    double worst = 0;
    for (int64_t i = 0; i < d->n * CLASSES; i++) {
        lo = fminf(lo, d->logits[i]);
        hi = fmaxf(hi, d->logits[i]);
        worst = fmax(worst, fabs((double)logits[i] - (double)d->logits[i]));
    }
    return worst / (double)(hi - lo);
}

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void run_digits(bp_ctx *c, const digits *d, const char *backend)
{
    size_t nbytes = (size_t)d->n * CLASSES * sizeof(float);
    float *logits = malloc(nbytes);
    double us[TIMED_CALLS];
    printf("\n== the digit classifier on %s\n", backend);
    bp_callable *g = bp_compile(c, digits_forward, &(bp_compile_options){.backend = backend, .user = d->weights});
    for (int i = 0; g && logits && i < TIMED_CALLS; i++) {
        bp_scope_begin(c);
        double start = now_us();
        bp_tensor *out = bp_call1(c, g, 1, &(bp_tensor *){d->images});
        us[i] = now_us() - start;
        bp_tensor_read(c, out, logits, nbytes);
        bp_scope_end(c);
        check(bp_error(c) == BP_OK, bp_error_text(c));
        if (bp_error(c) == BP_OK)
            check(accuracy(d, logits) >= 0.97 && difference(d, logits) <= 1e-5, "every call gives PyTorch's logits");
    }
    if (bp_error(c) == BP_OK && g && logits) {
        qsort(us + 1, TIMED_CALLS - 1, sizeof us[0], compare_double); /* the first call compiles */
        printf("accuracy %.2f %%, largest difference from PyTorch %.1e of the logit range, %.1f us an image\n",
               100 * accuracy(d, logits), difference(d, logits), us[TIMED_CALLS / 2] / (double)d->n);
        bp_print_assignment(c, g, write_stdout, NULL);
    }
    check(bp_error(c) == BP_OK, bp_error_text(c));
    bp_error_clear(c);
    bp_callable_unref(g);
    free(logits);
}

int main(int argc, char **argv)
{
    static const char *const backends[] = {"eager", "onednn-cpu", "fallback", "demo-chain"};
    digits d = {0};
    if (argc != 2) {
        fprintf(stderr, "usage: demo DIGITS_FOLDER\n");
        return 2;
    }
    bp_ctx *c = bp_ctx_new(NULL);
    if (!c)
        return 1;
    bp_scope_begin(c);
    run_toy(c);
    if (load_digits(c, argv[1], &d))
        for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++)
            run_digits(c, &d, backends[i]);
    check(bp_error(c) == BP_OK, bp_error_text(c));
    free(d.labels);
    free(d.logits);
    bp_module_unref(d.weights);
    bp_scope_end(c);
    bp_ctx_destroy(c);
    printf("\n%s\n", failures ? "the demo FAILED" : "the demo's checks hold");
    return failures != 0;
}
