/* A user's program in plain C: toy_example, captured, on `eager`. Prints its answers and the number of graphs. */
#include <backplane/backplane.h>
#include <stdio.h>

static void toy_example(bp_ctx *c, bp_frame *f)
{
    bp_tensor *a = bp_arg(f, 0, "a"), *b = bp_arg(f, 1, "b");
    bp_tensor *x = bp_div(c, a, bp_add(c, bp_abs(c, a), 1));
    if (bp_is_true(c, bp_lt(c, bp_sum(c, b), 0)))
        b = bp_mul(c, b, -1);
    bp_return(f, bp_mul(c, x, b));
}

int main(void)
{
    bp_ctx *c = bp_ctx_new(NULL);
    bp_callable *g = bp_compile(c, toy_example, &(bp_compile_options){.backend = "eager"});
    bp_callable_stats s = {.size = sizeof s};
    bp_scope_begin(c);
    for (int i = 0; i < 4; i++) {
        float out = 0;
        bp_tensor *in[2] = {bp_tensor_from(c, BP_F32, 1, (int64_t[]){1}, (float[]){3}),
                            bp_tensor_from(c, BP_F32, 1, (int64_t[]){1}, (float[]){i % 2 ? 4.0f : -8.0f})};
        bp_tensor_read(c, bp_call1(c, g, 2, in), &out, sizeof out);
        printf("%g ", (double)out);
    }
    bp_scope_end(c);
    bp_stats(c, g, &s);
    printf("graphs %u\n%s", s.graphs, bp_error_text(c));
    bp_callable_unref(g);
    bp_ctx_destroy(c);
    return 0;
}
