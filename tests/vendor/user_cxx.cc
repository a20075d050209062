/* A user's function in C++. */
#include <backplane/backplane.h>

static void scaled_sum(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_arg(f, 1, "y");
    bp_return(f, bp_add(c, bp_mul(c, bp_cos(c, x), 2), bp_sin(c, y)));
}

int main()
{
    bp_ctx *c = bp_ctx_new(nullptr);
    bp_compile_options options = {};
    options.backend = "eager";
    bp_callable *g = bp_compile(c, scaled_sum, &options);
    bp_callable_unref(g);
    bp_ctx_destroy(c);
    return g ? 0 : 1;
}
