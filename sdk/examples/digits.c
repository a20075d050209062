/* The digit classifier: the network that tests/models/digits/train.py trained, on a bp_module. See examples.h. */
#include "sdk/examples/examples.h"

/* relu(conv 3x3) with the module's parameters "NAME.weight" and "NAME.bias". */
static bp_tensor *conv_relu(bp_ctx *c, bp_tensor *x, bp_tensor *weight, bp_tensor *bias)
{
    return bp_relu(c, bp_conv2d(c, x, weight, .bias = bias, .padding = BP_DIMS(1, 1)));
}

bp_tensor *digits_logits(bp_ctx *c, bp_frame *f, bp_module *m, bp_tensor *x)
{
    x = conv_relu(c, x, bp_attr(f, m, "conv1.weight"), bp_attr(f, m, "conv1.bias"));
    x = conv_relu(c, x, bp_attr(f, m, "conv2.weight"), bp_attr(f, m, "conv2.bias"));
    x = bp_flatten(c, bp_max_pool2d(c, x, BP_DIMS(2, 2)), 1);
    x = bp_relu(c, bp_linear(c, x, bp_attr(f, m, "fc1.weight"), .bias = bp_attr(f, m, "fc1.bias")));
    return bp_linear(c, x, bp_attr(f, m, "fc2.weight"), .bias = bp_attr(f, m, "fc2.bias"));
}

void digits_forward(bp_ctx *c, bp_frame *f)
{
    bp_return(f, digits_logits(c, f, bp_user(f), bp_arg(f, 0, "images")));
}
