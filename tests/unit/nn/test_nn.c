/* Layers and losses: PyTorch's recorded answers (tests/models/nn/record.py), eager and compiled; new layers; state. */
#include "tests/lib/check.h"
#include <backplane/nn.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static bp_ctx *c;
static bp_module *m;

static int start(void **state)
{
    (void)state;
    c = bp_ctx_new(NULL);
    m = c ? bp_module_new(c) : NULL;
    return m ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    bp_module_unref(m);
    bp_ctx_destroy(c);
    return 0;
}

/* -- recorded answers ---------------------------------------------------------------------------------------------- */

/* The recorded input "CASE.leaf". */
static bp_tensor *in(bp_frame *f, const char *name, const char *leaf)
{
    char full[128];
    snprintf(full, sizeof full, "%s.%s", name, leaf);
    return bp_attr(f, m, full);
}
#define IN(leaf) in(f, name, leaf)
#define X IN("x")

/* case name, the result as an expression over c_, f, name */
#define CASES(row) \
    row(linear, bp_nn_linear(c_, f, m, name, X, NULL)) \
    row(linear_plain, bp_nn_linear(c_, f, m, name, X, &(bp_nn_linear_options){.no_bias = 1})) \
    row(conv1d, bp_nn_conv(c_, f, m, name, X, &(bp_nn_conv_options){.padding = BP_DIMS(1), .stride = BP_DIMS(2)})) \
    row(conv2d, bp_nn_conv(c_, f, m, name, X, &(bp_nn_conv_options){.padding = BP_DIMS(1, 0), \
                                                                  .dilation = BP_DIMS(1, 2), .groups = 2})) \
    row(conv2d_alone, bp_nn_conv(c_, f, m, name, X, NULL)) \
    row(conv3d, bp_nn_conv(c_, f, m, name, X, &(bp_nn_conv_options){.no_bias = 1})) \
    row(conv_transposed, bp_nn_conv(c_, f, m, name, X, &(bp_nn_conv_options){.transposed = 1, .stride = BP_DIMS(2), \
        .padding = BP_DIMS(1), .output_padding = BP_DIMS(1), .groups = 2})) \
    row(batch_norm_eval, bp_nn_batch_norm(c_, f, m, name, X, NULL)) \
    row(layer_norm, bp_nn_layer_norm(c_, f, m, name, X, BP_DIMS(3, 5), NULL)) \
    row(layer_norm_plain, bp_nn_layer_norm(c_, f, m, name, X, BP_DIMS(5), \
                                           &(bp_nn_norm_options){.no_affine = 1, .eps = 1e-3})) \
    row(rms_norm, bp_nn_rms_norm(c_, f, m, name, X, BP_DIMS(5), NULL)) \
    row(group_norm, bp_nn_group_norm(c_, f, m, name, X, 2, NULL)) \
    row(embedding, bp_nn_embedding(c_, f, m, name, X)) \
    row(attention_self, bp_nn_attention(c_, f, m, name, X, X, X, &(bp_nn_attention_options){.heads = 2})) \
    row(attention_cross, bp_nn_attention(c_, f, m, name, X, IN("key"), IN("value"), \
                                         &(bp_nn_attention_options){.heads = 2})) \
    row(attention_masked, bp_nn_attention(c_, f, m, name, X, IN("key"), IN("value"), \
        &(bp_nn_attention_options){.heads = 2, .mask = IN("mask"), .padding = IN("padding"), .no_bias = 1})) \
    row(attention_causal, bp_nn_attention(c_, f, m, name, X, X, X, \
                                          &(bp_nn_attention_options){.heads = 2, .causal = 1})) \
    row(attention_causal_padded, bp_nn_attention(c_, f, m, name, X, X, X, \
        &(bp_nn_attention_options){.heads = 2, .causal = 1, .padding = IN("padding")})) \
    row(attention_mask_per_head, bp_nn_attention(c_, f, m, name, X, X, X, \
                                                 &(bp_nn_attention_options){.heads = 2, .mask = IN("mask")})) \
    row(encoder, bp_nn_encoder_layer(c_, f, m, name, X, &(bp_nn_encoder_options){.heads = 2})) \
    row(encoder_norm_first, bp_nn_encoder_layer(c_, f, m, name, X, \
        &(bp_nn_encoder_options){.heads = 2, .activation = BP_NN_GELU, .norm_first = 1, .no_bias = 1})) \
    row(activation_relu, bp_nn_activation(c_, BP_NN_RELU, X)) \
    row(activation_gelu, bp_nn_activation(c_, BP_NN_GELU, X)) \
    row(activation_gelu_tanh, bp_nn_activation(c_, BP_NN_GELU_TANH, X)) \
    row(activation_silu, bp_nn_activation(c_, BP_NN_SILU, X)) \
    row(activation_sigmoid, bp_nn_activation(c_, BP_NN_SIGMOID, X)) \
    row(activation_tanh, bp_nn_activation(c_, BP_NN_TANH, X)) \
    row(activation_leaky_relu, bp_nn_activation(c_, BP_NN_LEAKY_RELU, X)) \
    row(activation_elu, bp_nn_activation(c_, BP_NN_ELU, X)) \
    row(activation_mish, bp_nn_activation(c_, BP_NN_MISH, X)) \
    row(activation_softplus, bp_nn_activation(c_, BP_NN_SOFTPLUS, X)) \
    row(activation_hardswish, bp_nn_activation(c_, BP_NN_HARDSWISH, X)) \
    row(activation_identity, bp_nn_activation(c_, BP_NN_IDENTITY, X)) \
    row(loss_mse, bp_nn_loss(c_, BP_NN_MSE, X, IN("target"), NULL)) \
    row(loss_l1, bp_nn_loss(c_, BP_NN_L1, X, IN("target"), &(bp_nn_loss_options){.reduction = BP_NN_SUM})) \
    row(loss_smooth_l1, bp_nn_loss(c_, BP_NN_SMOOTH_L1, X, IN("target"), &(bp_nn_loss_options){.beta = 0.5})) \
    row(loss_huber, bp_nn_loss(c_, BP_NN_HUBER, X, IN("target"), \
                               &(bp_nn_loss_options){.beta = 0.7, .reduction = BP_NN_NONE})) \
    row(loss_bce, bp_nn_loss(c_, BP_NN_BCE, X, IN("target"), &(bp_nn_loss_options){.weight = IN("weight")})) \
    row(loss_bce_with_logits, bp_nn_loss(c_, BP_NN_BCE_WITH_LOGITS, X, IN("target"), \
                                         &(bp_nn_loss_options){.pos_weight = IN("pos_weight")})) \
    row(loss_kl_div, bp_nn_loss(c_, BP_NN_KL_DIV, X, IN("target"), &(bp_nn_loss_options){.batch_mean = 1})) \
    row(loss_nll, bp_nn_loss(c_, BP_NN_NLL, X, IN("target"), &(bp_nn_loss_options){.weight = IN("weight")})) \
    row(loss_cross_entropy, bp_nn_loss(c_, BP_NN_CROSS_ENTROPY, X, IN("target"), \
        &(bp_nn_loss_options){.ignore_index = BP_SCALAR(4), .label_smoothing = 0.1})) \
    row(loss_cross_entropy_soft, bp_nn_loss(c_, BP_NN_CROSS_ENTROPY, X, IN("target"), NULL))

#define FUNCTION(id, expr) \
    static void run_##id(bp_ctx *c_, bp_frame *f) \
    { \
        const char *name = #id; \
        bp_return(f, expr); \
    }
CASES(FUNCTION)

static void load(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/models/nn/layers.safetensors", getenv("top_srcdir"));
    assert_int_equal(bp_module_load(c, m, path), BP_OK);
}

static double value(bp_tensor *t, int64_t i)
{
    return bp_tensor_dtype(t) == BP_I64 ? (double)((int64_t *)bp_tensor_data(c, t))[i]
                                        : (double)((float *)bp_tensor_data(c, t))[i];
}

static void assert_same(const char *name, bp_tensor *got, bp_tensor *want)
{
    got = bp_contiguous(c, got);
    if (!got)
        fail_msg("%s: %s", name, bp_error_text(c));
    assert_int_equal(bp_tensor_rank(got), bp_tensor_rank(want));
    for (uint32_t d = 0; d < bp_tensor_rank(want); d++)
        assert_int_equal(bp_tensor_size(got, d), bp_tensor_size(want, d));
    for (int64_t i = 0; i < bp_tensor_numel(want); i++) {
        double a = value(got, i), b = value(want, i);
        if (!(fabs(a - b) <= 2e-6 + 1e-5 * fabs(b)))
            fail_msg("%s: element %lld is %.9g, and PyTorch gives %.9g", name, (long long)i, a, b);
    }
}

static void check_case(const char *name, bp_fn fn, const char *backend)
{
    char full[128];
    bp_outputs outs = {0};
    bp_args none = {0};
    snprintf(full, sizeof full, "%s.y", name);
    if (backend) {
        bp_callable *g = bp_compile(c, fn, &(bp_compile_options){.backend = backend, .fullgraph = 1});
        bp_call(c, g, &none, &outs);
        bp_callable_unref(g);
    } else {
        bp_run_eager(c, fn, NULL, &none, &outs);
    }
    if (bp_error(c) || outs.n != 1)
        fail_msg("%s: %s", name, bp_error_text(c));
    assert_same(name, outs.at[0], bp_module_get(c, m, full));
}
#define CHECK(id, expr) check_case(#id, run_##id, backend);

static void F114_each_layer_and_loss_gives_what_pytorch_gives(void **state)
{
    (void)state;
    const char *backend = NULL;
    load();
    CASES(CHECK)
}

static void F114_each_is_captured_whole_and_compiled(void **state)
{
    (void)state;
    const char *backend = "eager";
    load();
    CASES(CHECK)
}

/* -- buffers that a layer updates ---------------------------------------------------------------------------------- */

static void run_batch_norm_train(bp_ctx *c_, bp_frame *f)
{
    const char *name = "batch_norm_train";
    bp_return(f, bp_nn_batch_norm(c_, f, m, name, X, &(bp_nn_norm_options){.train = 1, .momentum = 0.3}));
}

static void reset_statistics(void)
{
    float zeros[3] = {0}, ones[3] = {1, 1, 1};
    int64_t three = 3;
    bp_module_add_buffer(c, m, "batch_norm_train.running_mean", bp_tensor_from(c, BP_F32, 1, &three, zeros));
    bp_module_add_buffer(c, m, "batch_norm_train.running_var", bp_tensor_from(c, BP_F32, 1, &three, ones));
    bp_module_add_buffer(c, m, "batch_norm_train.num_batches_tracked", bp_tensor_from(c, BP_I64, 0, NULL, NULL));
}

static void check_statistics(void)
{
    assert_same("mean", bp_module_get(c, m, "batch_norm_train.running_mean"),
                bp_module_get(c, m, "batch_norm_train.after.running_mean"));
    assert_same("var", bp_module_get(c, m, "batch_norm_train.running_var"),
                bp_module_get(c, m, "batch_norm_train.after.running_var"));
    assert_same("count", bp_module_get(c, m, "batch_norm_train.num_batches_tracked"),
                bp_module_get(c, m, "batch_norm_train.after.num_batches_tracked"));
}

static void F114_batch_norm_in_training_updates_its_buffers_captured_too(void **state)
{
    (void)state;
    reset_statistics(); /* before loading: they stay buffers */
    load();
    reset_statistics();
    check_case("batch_norm_train", run_batch_norm_train, NULL);
    check_statistics();
    reset_statistics();
    check_case("batch_norm_train", run_batch_norm_train, "eager");
    check_statistics();
    assert_int_equal(bp_tensor_requires_grad(bp_module_get(c, m, "batch_norm_train.running_mean")), 0);
}

/* -- new layers ---------------------------------------------------------------------------------------------------- */

static void assert_sizes(const char *name, const char *sizes)
{
    char text[128] = "";
    bp_tensor *t = bp_module_get(c, m, name);
    for (uint32_t d = 0; d < bp_tensor_rank(t); d++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld", d ? " " : "",
                 (long long)bp_tensor_size(t, d));
    if (!t)
        fail_msg("%s", bp_error_text(c));
    assert_string_equal(text, sizes);
}

/* Least, largest, mean and deviation of a float parameter. */
typedef struct { double lo, hi, mean, dev; } moments;
static moments moments_of(const char *name)
{
    bp_tensor *t = bp_module_get(c, m, name);
    moments r = {INFINITY, -INFINITY, 0, 0};
    int64_t n = bp_tensor_numel(t);
    for (int64_t i = 0; i < n; i++) {
        double v = value(t, i);
        r.lo = fmin(r.lo, v);
        r.hi = fmax(r.hi, v);
        r.mean += v / (double)n;
        r.dev += v * v / (double)n;
    }
    r.dev = sqrt(r.dev - r.mean * r.mean);
    return r;
}

static void assert_uniform(const char *name, double bound)
{
    moments r = moments_of(name);
    assert_true(r.lo >= -bound && r.hi <= bound);
    assert_true(r.lo < -0.95 * bound && r.hi > 0.95 * bound);
    assert_true(fabs(r.mean) < 0.1 * bound && fabs(r.dev - bound / sqrt(3)) < 0.1 * bound);
}

static void F114_new_layers_are_filled_as_pytorch_fills_them(void **state)
{
    (void)state;
    bp_manual_seed(c, 3);
    assert_int_equal(bp_nn_linear_new(c, m, "fc", 64, 50, NULL), BP_OK);
    assert_int_equal(bp_nn_conv_new(c, m, "conv", 8, 16, BP_DIMS(3, 3), &(bp_nn_conv_options){.groups = 2}), BP_OK);
    assert_int_equal(bp_nn_conv_new(c, m, "up", 8, 16, BP_DIMS(3), &(bp_nn_conv_options){.transposed = 1}), BP_OK);
    assert_int_equal(bp_nn_embedding_new(c, m, "words", 100, 20, BP_DTYPE_UNSET), BP_OK);
    assert_int_equal(bp_nn_batch_norm_new(c, m, "bn", 4, NULL), BP_OK);
    assert_int_equal(bp_nn_encoder_layer_new(c, m, "block.0", 32, 64, NULL), BP_OK);
    assert_sizes("fc.weight", "50 64");
    assert_uniform("fc.weight", 1.0 / 8);
    assert_sizes("conv.weight", "16 4 3 3");
    assert_uniform("conv.weight", 1.0 / 6);
    assert_sizes("up.weight", "8 16 3");
    assert_uniform("up.weight", 1 / sqrt(48));
    assert_sizes("words.weight", "100 20");
    moments words = moments_of("words.weight");
    assert_true(fabs(words.mean) < 0.1 && fabs(words.dev - 1) < 0.1 && words.hi > 2);
    assert_true(moments_of("bn.running_var").lo == 1 && moments_of("bn.weight").lo == 1);
    assert_sizes("block.0.self_attn.in_proj_weight", "96 32");
    assert_uniform("block.0.self_attn.in_proj_weight", sqrt(6.0 / 128));
    assert_sizes("block.0.linear2.weight", "32 64");
    assert_true(moments_of("block.0.self_attn.in_proj_bias").hi == 0);
}

static void classifier(bp_ctx *c_, bp_frame *f)
{
    bp_module *state = bp_user(f);
    bp_tensor *x = bp_arg(f, 0, "x");
    x = bp_nn_activation(c_, BP_NN_GELU, bp_nn_linear(c_, f, state, "a", x, NULL));
    bp_return(f, bp_nn_dropout(c_, bp_nn_linear(c_, f, state, "b", x, NULL), 0.5, 0));
}

static void F114_state_is_saved_and_loaded(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    char path[512];
    snprintf(path, sizeof path, "%s/nn-%ld.safetensors", tmp ? tmp : "/tmp", (long)getpid());
    bp_nn_linear_new(c, m, "a", 4, 6, NULL);
    bp_nn_linear_new(c, m, "b", 6, 3, NULL);
    bp_module *again = bp_module_new(c);
    assert_int_equal(bp_module_save(c, m, path), BP_OK);
    assert_int_equal(bp_module_load(c, again, path), BP_OK);
    unlink(path);
    bp_tensor *x = bp_randn(c, BP_DIMS(2, 4));
    bp_callable *g = bp_compile(c, classifier, &(bp_compile_options){.backend = "eager", .user = m});
    bp_callable *h = bp_compile(c, classifier, &(bp_compile_options){.backend = "eager", .user = again});
    assert_same("loaded", bp_call1(c, h, 1, &x), bp_call1(c, g, 1, &x));
    bp_callable_unref(g);
    bp_callable_unref(h);
    bp_module_unref(again);
}

/* -- dropout ------------------------------------------------------------------------------------------------------- */

static void F114_dropout_zeroes_and_scales_in_training_alone(void **state)
{
    (void)state;
    bp_tensor *ones = bp_ones(c, BP_DIMS(1000));
    bp_tensor *y = bp_nn_dropout(c, ones, 0.25, 1);
    int zeros = 0;
    for (int i = 0; i < 1000; i++) {
        double v = value(y, i);
        assert_true(v == 0 || fabs(v - 4.0 / 3) < 1e-6);
        zeros += v == 0;
    }
    assert_in_range(zeros, 200, 300);
    y = bp_nn_dropout(c, ones, 0.25, 0);
    assert_true(value(y, 0) == 1 && value(y, 999) == 1);
}

/* -- errors -------------------------------------------------------------------------------------------------------- */

static void refused(const char *a, const char *b)
{
    assert_int_not_equal(bp_error(c), BP_OK);
    assert_contains(bp_error_text(c), a);
    assert_contains(bp_error_text(c), b);
    bp_error_clear(c);
}

static void no_bias_there(bp_ctx *c_, bp_frame *f)
{
    bp_return(f, bp_nn_linear(c_, f, m, "fc", bp_ones(c_, BP_DIMS(2, 4)), NULL));
}

static void bad_heads(bp_ctx *c_, bp_frame *f)
{
    bp_tensor *x = bp_ones(c_, BP_DIMS(2, 3, 8));
    bp_return(f, bp_nn_attention(c_, f, m, "att", x, x, x, &(bp_nn_attention_options){.heads = 3}));
}

static void no_batch(bp_ctx *c_, bp_frame *f)
{
    bp_tensor *x = bp_ones(c_, BP_DIMS(3, 8));
    bp_return(f, bp_nn_attention(c_, f, m, "att", x, x, NULL, &(bp_nn_attention_options){.heads = 2}));
}

static void bad_rank(bp_ctx *c_, bp_frame *f)
{
    bp_return(f, bp_nn_conv(c_, f, m, "conv", bp_ones(c_, BP_DIMS(5)), NULL));
}

static void null_input(bp_ctx *c_, bp_frame *f)
{
    bp_return(f, bp_nn_conv(c_, f, m, "conv", NULL, NULL));
}

static void single_batch(bp_ctx *c_, bp_frame *f)
{
    bp_return(f, bp_nn_batch_norm(c_, f, m, "bn", bp_ones(c_, BP_DIMS(1, 4)), &(bp_nn_norm_options){.train = 1}));
}

static void F114_mistakes_name_the_layer_and_what_was_expected(void **state)
{
    (void)state;
    bp_args none = {0};
    bp_outputs outs = {0};
    bp_nn_linear_new(c, m, "fc", 4, 3, &(bp_nn_linear_options){.no_bias = 1});
    bp_nn_attention_new(c, m, "att", 8, NULL);
    bp_nn_conv_new(c, m, "conv", 2, 3, BP_DIMS(3, 3), NULL);
    bp_run_eager(c, no_bias_there, NULL, &none, &outs);
    refused("fc.bias", "no parameter or buffer");
    bp_run_eager(c, bad_heads, NULL, &none, &outs);
    refused("\"att\": 3 heads", "width 8");
    bp_run_eager(c, no_batch, NULL, &none, &outs);
    refused("\"att\"", "[batch, tokens, width]");
    bp_run_eager(c, bad_rank, NULL, &none, &outs);
    refused("\"conv\"", "4 dimensions, and the input 1");
    bp_run_eager(c, null_input, NULL, &none, &outs);
    refused("\"conv\"", "NULL");
    bp_nn_batch_norm_new(c, m, "bn", 4, NULL);
    bp_run_eager(c, single_batch, NULL, &none, &outs); /* A16 */
    refused("batch_norm \"bn\"", "more than 1 value a channel");
    bp_nn_linear_new(c, m, "zero", 0, 3, NULL);
    refused("linear \"zero\"", "at least 1");
    bp_nn_conv_new(c, m, "odd", 3, 4, BP_DIMS(3), &(bp_nn_conv_options){.groups = 2});
    refused("conv \"odd\"", "2 groups");
    bp_nn_conv_new(c, m, "flat", 3, 4, (bp_dims){NULL, 0, 1}, NULL);
    refused("conv \"flat\"", "1 to 3");
    bp_nn_loss(c, (bp_nn_loss_kind)99, bp_ones(c, BP_DIMS(1)), bp_ones(c, BP_DIMS(1)), NULL);
    refused("99", "bp_nn_loss_kind");
    bp_nn_linear_new(c, m, NULL, 2, 3, NULL);
    refused("name of a layer is NULL", "module itself");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(F114_each_layer_and_loss_gives_what_pytorch_gives, start, end),
        cmocka_unit_test_setup_teardown(F114_each_is_captured_whole_and_compiled, start, end),
        cmocka_unit_test_setup_teardown(F114_batch_norm_in_training_updates_its_buffers_captured_too, start, end),
        cmocka_unit_test_setup_teardown(F114_new_layers_are_filled_as_pytorch_fills_them, start, end),
        cmocka_unit_test_setup_teardown(F114_state_is_saved_and_loaded, start, end),
        cmocka_unit_test_setup_teardown(F114_dropout_zeroes_and_scales_in_training_alone, start, end),
        cmocka_unit_test_setup_teardown(F114_mistakes_name_the_layer_and_what_was_expected, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
