/* See blocks.h. */
#include "tests/lib/blocks.h"
#include "host/base/ctx.h"
#include "host/pass/pass.h"
#include <backplane/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const BLOCK_NAMES[2] = {"transformer", "conv-bn-relu"};
enum { LAYERS = 3 };
typedef struct { int64_t batch, tokens, width, hidden, heads, channels, pixels; } sizes;
static const sizes SMALL = {2, 8, 16, 64, 2, 4, 6}, LARGE = {8, 128, 768, 3072, 12, 64, 28};

static bool is_transformer(const block *b)
{
    return strcmp(b->name, BLOCK_NAMES[0]) == 0;
}

static void add_layers(bp_ctx *c, const block *b, const sizes *s)
{
    if (is_transformer(b)) {
        bp_nn_encoder_layer_new(c, b->m, "", s->width, s->hidden, NULL);
        return;
    }
    for (int i = 0; i < LAYERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "conv%d", i);
        bp_nn_conv_new(c, b->m, name, s->channels, s->channels, BP_DIMS(3, 3),
                       &(bp_nn_conv_options){.padding = BP_DIMS(1, 1)});
        snprintf(name, sizeof name, "bn%d", i);
        bp_nn_batch_norm_new(c, b->m, name, s->channels, NULL);
    }
}

bp_status block_make(bp_ctx *c, const char *name, bool large, block *out)
{
    const sizes *s = large ? &LARGE : &SMALL;
    *out = (block){.name = name, .m = bp_module_new(c)};
    bp_manual_seed(c, 20);
    add_layers(c, out, s);
    bp_module_set_requires_grad(c, out->m, 1);
    if (is_transformer(out)) {
        out->x = bp_randn(c, BP_DIMS(s->batch, s->tokens, s->width));
    } else {
        out->x = bp_randn(c, BP_DIMS(s->batch, s->channels, s->pixels, s->pixels));
    }
    return c->diag.code;
}

void block_fini(block *b)
{
    bp_module_unref(b->m);
}

static bp_tensor *run_stack(bp_ctx *c, bp_frame *f, const block *b, bp_tensor *x)
{
    for (int i = 0; i < LAYERS; i++) {
        char conv[16], bn[16];
        snprintf(conv, sizeof conv, "conv%d", i);
        snprintf(bn, sizeof bn, "bn%d", i);
        x = bp_nn_conv(c, f, b->m, conv, x, &(bp_nn_conv_options){.padding = BP_DIMS(1, 1)});
        x = bp_relu(c, bp_nn_batch_norm(c, f, b->m, bn, x, &(bp_nn_norm_options){.train = 1}));
    }
    return x;
}

void block_run(bp_ctx *c, bp_frame *f)
{
    const block *b = bp_user(f);
    bp_tensor *x = bp_arg(f, 0, "x");
    const bp_nn_encoder_options o = {.heads = bp_size(c, x, -1).value == LARGE.width ? LARGE.heads : SMALL.heads,
                                     .activation = BP_NN_GELU, .train = 1};
    bp_return(f, is_transformer(b) ? bp_nn_encoder_layer(c, f, b->m, "", x, &o) : run_stack(c, f, b, x));
}

/* -- its graph ----------------------------------------------------------------------------------------------------- */

static _Thread_local bp_graph_module *captured;

static bp_compiled *keep(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    bp_gm_unref(captured);
    captured = bp_gm_ref(gm);
    return bp_forward(gm);
}

/* The graph without gradients: parameters that require none are compiled without them. */
static bp_graph_module *capture(bp_ctx *c, block *b)
{
    bp_compile_options o = {.backend_fn = keep, .user = b, .fullgraph = 1};
    bp_module_set_requires_grad(c, b->m, 0);
    bp_callable *g = bp_compile(c, block_run, &o);
    bp_call1(c, g, 1, &b->x);
    bp_callable_unref(g);
    bp_module_set_requires_grad(c, b->m, 1);
    bp_graph_module *got = captured;
    captured = NULL;
    return got;
}

static bp_status trace(bp_ctx *c, const bp_graph_module *gm, joint *out)
{
    node_id at[64];
    uint8_t needs[64] = {0};
    uint32_t n = graph_placeholders(&gm->g, at, 64);
    for (uint32_t i = 0; i < n && i < 64; i++)
        needs[i] = graph_get(&gm->g, at[i])->role == BP_ROLE_PARAMETER;
    const pass passes[] = {{"dce", pass_dce, NULL}, {"cse", pass_cse, NULL}, {"decompose", pass_decompose, NULL},
                           {"cse", pass_cse, NULL}, {"dce", pass_dce, NULL}};
    bp_status st = joint_trace(c, gm, needs, out);
    return st == BP_OK ? passes_run(c, out->gm, passes, sizeof passes / sizeof *passes) : st;
}

bp_status block_joint(bp_ctx *c, block *b, joint *out)
{
    bp_graph_module *gm = capture(c, b);
    bp_status st = gm ? trace(c, gm, out) : c->diag.code;
    bp_gm_unref(gm);
    return st;
}
