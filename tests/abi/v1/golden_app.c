/* A user's program of the first day, kept as it was compiled then (golden_app): every later libbackplane.so.0 runs that
 * very file. It prints what it computes, line by line; the test compares. Usage: golden_app [BACKEND] */
#include <backplane/backplane.h>
#include <stdio.h>
#include <string.h>

typedef struct { int32_t twice; } settings;

/* Arguments of every kind, a size, a value break, two results. */
static void fn(bp_ctx *c, bp_frame *f)
{
    const settings *s = bp_user(f);
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_arg(f, 1, "y"), *z = bp_arg_optional(f, 2, "z");
    int64_t n = bp_arg_int(f, 3, "n");
    double a = bp_arg_float(f, 4, "a");
    if (bp_arg_bool(f, 5, "flip"))
        x = bp_neg(c, x);
    if (strcmp(bp_arg_str(f, 6, "how"), "add") == 0)
        x = bp_add(c, x, y, .alpha = BP_SCALAR(n));
    x = bp_mul(c, x, a);
    if (z)
        x = bp_add(c, x, z);
    bp_tensor *sum = bp_sum(c, x, .dim = BP_DIMS(0));
    if (bp_is_true(c, bp_gt(c, sum, 0)))
        sum = bp_add(c, sum, 100);
    bp_return(f, s && s->twice ? bp_mul(c, x, 2) : x);
    bp_return(f, sum);
}

static void attr(bp_ctx *c, bp_frame *f)
{
    bp_tensor *w = bp_attr(f, bp_user(f), "w");
    bp_return(f, bp_mul(c, bp_arg(f, 0, "x"), w));
}

static void show(bp_ctx *c, const char *name, const bp_tensor *t)
{
    float v[8];
    int64_t n = bp_tensor_numel(t);
    if (!t || n > 8 || bp_tensor_read(c, t, v, (size_t)n * sizeof *v) != BP_OK) {
        printf("%s: %s\n", name, bp_error_text(c));
        return;
    }
    printf("%s:", name);
    for (int64_t i = 0; i < n; i++)
        printf(" %g", (double)v[i]);
    printf(" (dtype %d, rank %u)\n", (int)bp_tensor_dtype(t), (unsigned)bp_tensor_rank(t));
}

static void call_once(bp_ctx *c, bp_callable *g, int flip, bp_tensor *x, bp_tensor *z)
{
    bp_value in[7] = {bp_arg_of_tensor(x), bp_arg_of_tensor(x), bp_arg_of_tensor(z), bp_arg_of_int(3),
                      bp_arg_of_float(0.5), bp_arg_of_bool(flip), bp_arg_of_str("add")};
    bp_args args = {in, 7};
    bp_tensor *at[2] = {NULL, NULL};
    bp_outputs out = {at, 0, 2};
    if (bp_call(c, g, &args, &out) != BP_OK)
        printf("error: %s\n", bp_error_text(c));
    else
        printf("%u results\n", (unsigned)out.n);
    show(c, "x", at[0]);
    show(c, "sum", at[1]);
}

static void count(void *arg, const char *text, size_t n)
{
    (void)text;
    *(size_t *)arg += n;
}

static void name(void *arg, const char *text)
{
    *(int *)arg += strcmp(text, "eager") == 0;
}

static bp_compiled *own(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)gm;
    (void)inputs;
    return NULL;
}

static void modules(bp_ctx *c, const char *backend)
{
    const int64_t sizes[1] = {2};
    float two[2] = {2, 3};
    bp_module *m = bp_module_new(c);
    bp_module_add_parameter(c, m, "w", bp_tensor_from(c, BP_F32, 1, sizes, two));
    bp_compile_options o = {.backend = backend, .user = m, .fullgraph = 1};
    bp_callable *g = bp_compile(c, attr, &o);
    bp_tensor *x = bp_tensor_from(c, BP_F32, 1, sizes, two);
    show(c, "attr", g ? bp_call1(c, g, 1, &x) : NULL);
    bp_callable_unref(g);
    bp_module_unref(m);
}

static void seeing(bp_ctx *c, bp_callable *g)
{
    bp_callable_stats s = {.size = sizeof s};
    const char *state = "?", *why = "?";
    size_t n[3] = {0, 0, 0};
    int eager = 0;
    bp_status st = bp_stats(c, g, &s);
    printf("stats %s: graphs %d, hits %d\n", bp_status_name(st), s.graphs > 0, s.hits > 0);
    bp_print_guards(c, g, count, &n[0]);
    bp_print_explain(c, g, count, &n[1]);
    bp_print_assignment(c, g, count, &n[2]);
    printf("prints: %d %d %d\n", n[0] > 0, n[1] > 0, n[2] > 0);
    bp_list_backends(c, "", name, &eager);
    bp_backend_state(c, "eager", 0, &state, &why);
    printf("backends: eager %d, %s\n", eager, state);
    bp_register_backend_as(c, "own", own, NULL, "debug");
    printf("again: %s\n", bp_status_name(bp_register_backend_as(c, "own", own, NULL, "debug")));
    bp_error_clear(c);
}

int main(int argc, char **argv)
{
    const char *backend = argc > 1 ? argv[1] : "eager";
    const int64_t sizes[1] = {3};
    float data[3] = {1, -2, 4};
    settings twice = {1};
    bp_runtime *rt = bp_runtime_new(NULL);
    bp_ctx *c = bp_ctx_new(rt);
    bp_scope_begin(c);
    bp_set_config(c, "fallback", "error");
    bp_compile_options o = {.backend = backend, .user = &twice, .dynamic = -1};
    bp_callable *g = bp_compile(c, fn, &o);
    bp_tensor *x = bp_keep(c, bp_tensor_from(c, BP_F32, 1, sizes, data));
    if (!g)
        printf("error: %s\n", bp_error_text(c));
    else
        for (int i = 0; i < 4; i++)
            call_once(c, g, i == 1, x, i == 2 ? x : NULL);
    if (g)
        seeing(c, g);
    modules(c, backend);
    bp_tensor *bad[2] = {x, bp_tensor_from(c, BP_F32, 1, (const int64_t[1]){2}, NULL)};
    bp_add(c, bad[0], bad[1]);
    printf("a bad sum: %s\n", bp_status_name(bp_error(c)));
    bp_error_clear(c);
    bp_callable_unref(g);
    bp_reset(c);
    bp_tensor_unref(x);
    bp_scope_end(c);
    bp_ctx_destroy(c);
    bp_runtime_unref(rt);
    return 0;
}
