/* A user's program against the installed library: user BACKEND [refused|thrown]. Prints cos(0) + sin(0) as the
 * backend has it. */
#include <backplane/backplane.h>
#include <stdio.h>

static void cos_sin(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_arg(f, 1, "y");
    bp_return(f, bp_add(c, bp_cos(c, x), bp_sin(c, y)));
}

static void refused(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_cos(c, bp_arg(f, 0, "refused")));
}

static void thrown(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_cos(c, bp_arg(f, 0, "thrown")));
}

int main(int argc, char **argv)
{
    bp_ctx *c = bp_ctx_new(NULL);
    const bp_compile_options options = {.backend = argc > 1 ? argv[1] : NULL};
    bp_callable *g = argc <= 2              ? bp_compile(c, cos_sin, &options)
                     : argv[2][0] == 't' ? bp_compile(c, thrown, &options)
                                         : bp_compile(c, refused, &options);
    const int64_t sizes[1] = {1};
    float zero = 0, got = -1;
    bp_scope_begin(c);
    bp_tensor *x = bp_tensor_from(c, BP_F32, 1, sizes, &zero);
    bp_tensor *in[2] = {x, x};
    bp_tensor *out = g ? bp_call1(c, g, argc > 2 ? 1 : 2, in) : NULL;
    if (out && bp_tensor_read(c, out, &got, sizeof got) == BP_OK)
        printf("answer %g\n", (double)got);
    else
        printf("error: %s\n", bp_error_text(c));
    bp_scope_end(c);
    bp_callable_unref(g);
    bp_ctx_destroy(c);
    return got == 1 ? 0 : 1;
}
