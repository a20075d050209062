/* The table of examples, and the small ones. See examples.h. */
#include "sdk/examples/examples.h"
#include <string.h>

void toy_example(bp_ctx *c, bp_frame *f)
{
    bp_tensor *a = bp_arg(f, 0, "a"), *b = bp_arg(f, 1, "b");
    bp_tensor *x = bp_div(c, a, bp_add(c, bp_abs(c, a), 1));
    if (bp_is_true(c, bp_lt(c, bp_sum(c, b), 0)))
        b = bp_mul(c, b, -1);
    bp_return(f, bp_mul(c, x, b));
}

void cos_sin_example(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x"), *y = bp_arg(f, 1, "y");
    bp_return(f, bp_add(c, bp_cos(c, x), bp_sin(c, y)));
}

void relu_cos_example(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_relu(c, bp_cos(c, bp_arg(f, 0, "x"))));
}

const example examples[] = {
#define EXAMPLE_ROW(name, fn, inputs, help) {name, help, fn, inputs},
#include "sdk/examples/examples.def"
#undef EXAMPLE_ROW
    {NULL, NULL, NULL, NULL},
};

const example *example_by_name(const char *name)
{
    for (const example *e = examples; e->name; e++)
        if (strcmp(e->name, name) == 0)
            return e;
    return NULL;
}
