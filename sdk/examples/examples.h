/* The example functions, by name: the `backplane` command and the demo run them. Plain C on tensors; none knows whether
 * it is captured. */
#ifndef EXAMPLES_H
#define EXAMPLES_H
#include <backplane/backplane.h>

/* (a, b) -> x * b or x * -b, with x = a / (|a| + 1): one break, two outcomes. a, b: float32 of one size. */
void toy_example(bp_ctx *c, bp_frame *f);
/* (x, y) -> cos(x) + sin(y). */
void cos_sin_example(bp_ctx *c, bp_frame *f);
/* (x) -> relu(cos(x)). */
void relu_cos_example(bp_ctx *c, bp_frame *f);
/* (images) -> logits: [n, 1, 8, 8] float32 -> [n, 10]. The options' user is a bp_module with conv1, conv2, fc1 and fc2,
 * each .weight and .bias (tests/models/digits/weights.safetensors). */
void digits_forward(bp_ctx *c, bp_frame *f);
/* The same inside another function. */
bp_tensor *digits_logits(bp_ctx *c, bp_frame *f, bp_module *m, bp_tensor *images);

typedef struct {
    const char *name, *help;
    bp_fn fn;
    const char *inputs; /* made when no file is given: "f32[10] f32[10]" */
} example;
/* The table, ended by a NULL name. */
extern const example examples[];
const example *example_by_name(const char *name); /* NULL: none */
#endif
