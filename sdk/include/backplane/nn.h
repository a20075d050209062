/* Layers and losses over operators and modules, named and laid out as PyTorch's, so that its state loads as it is.
 *
 * A layer is a name in a bp_module: "fc" has the parameters "fc.weight" and "fc.bias". bp_nn_<layer>_new adds them to
 * the module, filled as PyTorch fills a new layer, from the context's generator; bp_module_load takes them from a file;
 * bp_nn_<layer> applies the layer inside a function, where each parameter is read at every call and guarded
 * (bp_attr). The name "" is the module itself. Sizes are those of PyTorch: channels first, batch first.
 *
 *     bp_nn_linear_new(c, m, "fc", 64, 10, NULL);
 *     ...
 *     bp_return(f, bp_nn_linear(c, f, m, "fc", x, NULL));
 *
 * Options are NULL or the address of a struct; a zero in it is the default that its comment names. What an option says
 * of a layer's parameters (no_bias and kin) is said to both functions. Results belong to the scope, as any operator's;
 * errors are the context's. A module is one thread's while a layer is added to it. */
#ifndef BP_NN_H
#define BP_NN_H

#include <backplane/backplane.h>

BP_EXTERN_C_BEGIN

/* -- linear and convolution ---------------------------------------------------------------------------------------- */

typedef struct {
    int32_t no_bias;
    bp_dtype dtype;          /* of new parameters; unset: the context's default */
} bp_nn_linear_options;

/* NAME.weight [out, in], NAME.bias [out]: uniform in +-1/sqrt(in). */
BP_EXPORT bp_status bp_nn_linear_new_at(bp_ctx *c, bp_module *m, const char *name, int64_t in, int64_t out,
                                        const bp_nn_linear_options *o, size_t osize);
/* x [..., in] -> [..., out]. */
BP_EXPORT bp_tensor *bp_nn_linear_at(bp_ctx *c, bp_frame *f, bp_module *m, const char *name, bp_tensor *x,
                                     const bp_nn_linear_options *o, size_t osize);

typedef struct {
    bp_dims stride, padding, dilation, output_padding; /* one number for all dimensions, or one each: 1, 0, 1, 0 */
    int64_t groups;          /* 1 */
    int32_t transposed;      /* 1: a transposed convolution, whose weight is [in, out / groups, ...] */
    int32_t no_bias;
    bp_dtype dtype;
} bp_nn_conv_options;

/* A convolution over as many dimensions as `kernel` has, 1 to 3. NAME.weight [out, in / groups, kernel...], NAME.bias
 * [out]: uniform in +-1/sqrt(elements that make one output). */
BP_EXPORT bp_status bp_nn_conv_new_at(bp_ctx *c, bp_module *m, const char *name, int64_t in, int64_t out,
                                      bp_dims kernel, const bp_nn_conv_options *o, size_t osize);
/* x [batch, in, ...] or [in, ...]. */
BP_EXPORT bp_tensor *bp_nn_conv_at(bp_ctx *c, bp_frame *f, bp_module *m, const char *name, bp_tensor *x,
                                   const bp_nn_conv_options *o, size_t osize);

/* -- normalization ------------------------------------------------------------------------------------------------- */

typedef struct {
    double eps;              /* 1e-5; of rms_norm: the type's own */
    double momentum;         /* of batch_norm: 0.1 */
    int32_t no_affine;       /* without weight and bias */
    int32_t no_bias;         /* with a weight alone; rms_norm never has a bias */
    int32_t train;           /* of batch_norm: 1 uses the batch's statistics and updates the running ones */
    bp_dtype dtype;
} bp_nn_norm_options;

/* NAME.weight, NAME.bias [features]; buffers NAME.running_mean, NAME.running_var, NAME.num_batches_tracked. */
BP_EXPORT bp_status bp_nn_batch_norm_new_at(bp_ctx *c, bp_module *m, const char *name, int64_t features,
                                            const bp_nn_norm_options *o, size_t osize);
/* x [batch, features, ...]. */
BP_EXPORT bp_tensor *bp_nn_batch_norm_at(bp_ctx *c, bp_frame *f, bp_module *m, const char *name, bp_tensor *x,
                                         const bp_nn_norm_options *o, size_t osize);
/* NAME.weight, NAME.bias of `shape`, the last dimensions of what is normalized. */
BP_EXPORT bp_status bp_nn_layer_norm_new_at(bp_ctx *c, bp_module *m, const char *name, bp_dims shape,
                                            const bp_nn_norm_options *o, size_t osize);
BP_EXPORT bp_tensor *bp_nn_layer_norm_at(bp_ctx *c, bp_frame *f, bp_module *m, const char *name, bp_tensor *x,
                                         bp_dims shape, const bp_nn_norm_options *o, size_t osize);
/* NAME.weight of `shape`. */
BP_EXPORT bp_status bp_nn_rms_norm_new_at(bp_ctx *c, bp_module *m, const char *name, bp_dims shape,
                                          const bp_nn_norm_options *o, size_t osize);
BP_EXPORT bp_tensor *bp_nn_rms_norm_at(bp_ctx *c, bp_frame *f, bp_module *m, const char *name, bp_tensor *x,
                                       bp_dims shape, const bp_nn_norm_options *o, size_t osize);
/* NAME.weight, NAME.bias [channels]. */
BP_EXPORT bp_status bp_nn_group_norm_new_at(bp_ctx *c, bp_module *m, const char *name, int64_t channels,
                                            const bp_nn_norm_options *o, size_t osize);
/* x [batch, channels, ...]; channels in `groups` equal groups. */
BP_EXPORT bp_tensor *bp_nn_group_norm_at(bp_ctx *c, bp_frame *f, bp_module *m, const char *name, bp_tensor *x,
                                         int64_t groups, const bp_nn_norm_options *o, size_t osize);

/* -- embedding, dropout, activations ------------------------------------------------------------------------------- */

/* NAME.weight [n, width]: normal(0, 1). */
BP_EXPORT bp_status bp_nn_embedding_new(bp_ctx *c, bp_module *m, const char *name, int64_t n, int64_t width,
                                        bp_dtype dtype);
/* Rows of the weight by indices of an integer type: [...] -> [..., width]. */
BP_EXPORT bp_tensor *bp_nn_embedding_at(bp_ctx *c, bp_frame *f, bp_module *m, const char *name, bp_tensor *indices);
/* With train, zeroes elements with probability p and scales the rest by 1 / (1 - p); else x itself. */
BP_EXPORT bp_tensor *bp_nn_dropout_at(bp_ctx *c, bp_tensor *x, double p, int train);

typedef enum {
    BP_NN_RELU, BP_NN_GELU, BP_NN_GELU_TANH, BP_NN_SILU, BP_NN_SIGMOID, BP_NN_TANH, BP_NN_LEAKY_RELU, BP_NN_ELU,
    BP_NN_MISH, BP_NN_SOFTPLUS, BP_NN_HARDSWISH, BP_NN_IDENTITY
} bp_nn_activation_kind;
/* With PyTorch's default parameters. */
BP_EXPORT bp_tensor *bp_nn_activation_at(bp_ctx *c, bp_nn_activation_kind kind, bp_tensor *x);

/* -- attention ----------------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t heads;           /* needed: a divisor of the width */
    bp_tensor *mask;         /* [tokens, keys] or [batch * heads, tokens, keys]: bool, true is left out; or added */
    bp_tensor *padding;      /* [batch, keys], bool: true is left out */
    int32_t causal;          /* a token sees those before it and itself */
    double dropout;          /* of attention weights, with train */
    int32_t train;
    int32_t no_bias;
    bp_dtype dtype;
} bp_nn_attention_options;

/* NAME.in_proj_weight [3 width, width], NAME.in_proj_bias, NAME.out_proj.weight, NAME.out_proj.bias. */
BP_EXPORT bp_status bp_nn_attention_new_at(bp_ctx *c, bp_module *m, const char *name, int64_t width,
                                           const bp_nn_attention_options *o, size_t osize);
/* Multi-head attention of query [batch, tokens, width] over key and value [batch, keys, width], which may be one
 * tensor. A row whose keys are all left out gives NaN, as in PyTorch. */
BP_EXPORT bp_tensor *bp_nn_attention_at(bp_ctx *c, bp_frame *f, bp_module *m, const char *name, bp_tensor *query,
                                        bp_tensor *key, bp_tensor *value, const bp_nn_attention_options *o,
                                        size_t osize);

typedef struct {
    int64_t heads;           /* needed */
    bp_nn_activation_kind activation; /* BP_NN_RELU */
    bp_tensor *mask, *padding; /* as of attention */
    int32_t causal;
    double dropout;          /* of attention weights, and behind attention, activation and feed-forward: 0 */
    double eps;              /* of both norms: 1e-5 */
    int32_t norm_first;      /* norms in front of attention and feed-forward, not behind their sums */
    int32_t train;
    int32_t no_bias;
    bp_dtype dtype;
} bp_nn_encoder_options;

/* NAME.self_attn..., NAME.linear1, NAME.linear2 (`hidden` wide between them), NAME.norm1, NAME.norm2. */
BP_EXPORT bp_status bp_nn_encoder_layer_new_at(bp_ctx *c, bp_module *m, const char *name, int64_t width,
                                               int64_t hidden, const bp_nn_encoder_options *o, size_t osize);
/* A transformer's encoder layer: x [batch, tokens, width]. */
BP_EXPORT bp_tensor *bp_nn_encoder_layer_at(bp_ctx *c, bp_frame *f, bp_module *m, const char *name, bp_tensor *x,
                                            const bp_nn_encoder_options *o, size_t osize);

/* -- losses -------------------------------------------------------------------------------------------------------- */

typedef enum {
    BP_NN_MSE, BP_NN_L1, BP_NN_SMOOTH_L1, BP_NN_HUBER,
    BP_NN_BCE,             /* of probabilities */
    BP_NN_BCE_WITH_LOGITS,
    BP_NN_KL_DIV,          /* of log-probabilities */
    BP_NN_NLL,             /* of log-probabilities [batch, classes, ...] and class indices */
    BP_NN_CROSS_ENTROPY    /* of logits and class indices, or probabilities of logits' shape */
} bp_nn_loss_kind;
typedef enum { BP_NN_MEAN, BP_NN_SUM, BP_NN_NONE } bp_nn_reduction;

typedef struct {
    bp_nn_reduction reduction;
    bp_tensor *weight;       /* of elements (bce) or classes (nll, cross_entropy) */
    bp_tensor *pos_weight;   /* of bce_with_logits */
    double beta;             /* of smooth_l1: 1, and of huber, where it is delta: 1 */
    double label_smoothing;  /* of cross_entropy */
    bp_scalar ignore_index;  /* of nll and cross_entropy: BP_SCALAR(i); -100 */
    int32_t log_target;      /* of kl_div */
    int32_t batch_mean;      /* of kl_div: the sum over the batch's size instead of the mean */
} bp_nn_loss_options;
BP_EXPORT bp_tensor *bp_nn_loss_at(bp_ctx *c, bp_nn_loss_kind kind, bp_tensor *x, bp_tensor *target,
                                   const bp_nn_loss_options *o, size_t osize);

/* -- optimizers ---------------------------------------------------------------------------------------------------- */

typedef struct bp_nn_optimizer bp_nn_optimizer;
typedef enum { BP_NN_SGD, BP_NN_ADAM, BP_NN_ADAMW } bp_nn_optimizer_kind;

typedef struct {
    double lr;               /* 1e-3 */
    double weight_decay;     /* 0; of adamw: 1e-2 */
    double momentum;         /* of sgd: 0 */
    double dampening;        /* of sgd: 0 */
    int32_t nesterov;        /* of sgd */
    double beta1, beta2;     /* of adam and adamw: 0.9, 0.999 */
    double eps;              /* of adam and adamw: 1e-8 */
    int32_t amsgrad;         /* of adam and adamw */
    int32_t maximize;
    const char *backend;     /* the step is one captured function, for this backend; NULL: the config's default */
    int32_t disable;         /* 1: the step runs as it is */
} bp_nn_optimizer_options;

/* PyTorch's SGD, Adam or AdamW over the parameters that m has now. What it keeps of each is in a module of its own,
 * under PyTorch's names ("fc.weight.exp_avg"). owner: the caller, one thread at a time. NULL: the context says why. */
BP_EXPORT bp_nn_optimizer *bp_nn_optimizer_new_at(bp_ctx *c, bp_nn_optimizer_kind kind, bp_module *m,
                                                  const bp_nn_optimizer_options *o, size_t osize);
BP_EXPORT void bp_nn_optimizer_unref(bp_nn_optimizer *o);
/* One step: each parameter that has a gradient is written in place; those without are left alone, as in PyTorch. A new
 * parameter with a gradient compiles the step again; another learning rate does not. All or nothing. */
BP_EXPORT bp_status bp_nn_optimizer_step(bp_ctx *c, bp_nn_optimizer *o);
/* Drops the gradients of all parameters. */
BP_EXPORT void bp_nn_optimizer_zero_grad(bp_ctx *c, bp_nn_optimizer *o);
BP_EXPORT void bp_nn_optimizer_set_lr(bp_nn_optimizer *o, double lr);
/* What it keeps, for bp_module_save and bp_module_load; borrowed. A tensor is there from its parameter's first step on,
 * or from a load before it. */
BP_EXPORT bp_module *bp_nn_optimizer_state(bp_nn_optimizer *o);
/* The callable of the step, for bp_stats and bp_print_explain; borrowed. */
BP_EXPORT bp_callable *bp_nn_optimizer_callable(bp_nn_optimizer *o);

/* -- the names to call: they write down the place, and how large the caller's options are -------------------------- */

#define BP_NN_SITE_(c) bp_site_((c), __FILE__, __LINE__)
#define bp_nn_linear_new(c, m, name, in, out, ...) \
    bp_nn_linear_new_at((c), (m), (name), (in), (out), __VA_ARGS__, sizeof(bp_nn_linear_options))
#define bp_nn_linear(c, f, m, name, x, ...) \
    (BP_NN_SITE_(c), bp_nn_linear_at((c), (f), (m), (name), (x), __VA_ARGS__, sizeof(bp_nn_linear_options)))
#define bp_nn_conv_new(c, m, name, in, out, kernel, ...) \
    bp_nn_conv_new_at((c), (m), (name), (in), (out), kernel, __VA_ARGS__, sizeof(bp_nn_conv_options))
#define bp_nn_conv(c, f, m, name, x, ...) \
    (BP_NN_SITE_(c), bp_nn_conv_at((c), (f), (m), (name), (x), __VA_ARGS__, sizeof(bp_nn_conv_options)))
#define bp_nn_batch_norm_new(c, m, name, features, ...) \
    bp_nn_batch_norm_new_at((c), (m), (name), (features), __VA_ARGS__, sizeof(bp_nn_norm_options))
#define bp_nn_batch_norm(c, f, m, name, x, ...) \
    (BP_NN_SITE_(c), bp_nn_batch_norm_at((c), (f), (m), (name), (x), __VA_ARGS__, sizeof(bp_nn_norm_options)))
#define bp_nn_layer_norm_new(c, m, name, shape, ...) \
    bp_nn_layer_norm_new_at((c), (m), (name), shape, __VA_ARGS__, sizeof(bp_nn_norm_options))
#define bp_nn_layer_norm(c, f, m, name, x, shape, ...) \
    (BP_NN_SITE_(c), bp_nn_layer_norm_at((c), (f), (m), (name), (x), shape, __VA_ARGS__, sizeof(bp_nn_norm_options)))
#define bp_nn_rms_norm_new(c, m, name, shape, ...) \
    bp_nn_rms_norm_new_at((c), (m), (name), shape, __VA_ARGS__, sizeof(bp_nn_norm_options))
#define bp_nn_rms_norm(c, f, m, name, x, shape, ...) \
    (BP_NN_SITE_(c), bp_nn_rms_norm_at((c), (f), (m), (name), (x), shape, __VA_ARGS__, sizeof(bp_nn_norm_options)))
#define bp_nn_group_norm_new(c, m, name, channels, ...) \
    bp_nn_group_norm_new_at((c), (m), (name), (channels), __VA_ARGS__, sizeof(bp_nn_norm_options))
#define bp_nn_group_norm(c, f, m, name, x, groups, ...) \
    (BP_NN_SITE_(c), bp_nn_group_norm_at((c), (f), (m), (name), (x), (groups), __VA_ARGS__, \
                                         sizeof(bp_nn_norm_options)))
#define bp_nn_embedding(c, f, m, name, indices) \
    (BP_NN_SITE_(c), bp_nn_embedding_at((c), (f), (m), (name), (indices)))
#define bp_nn_dropout(c, x, p, train) (BP_NN_SITE_(c), bp_nn_dropout_at((c), (x), (p), (train)))
#define bp_nn_activation(c, kind, x) (BP_NN_SITE_(c), bp_nn_activation_at((c), (kind), (x)))
#define bp_nn_attention_new(c, m, name, width, ...) \
    bp_nn_attention_new_at((c), (m), (name), (width), __VA_ARGS__, sizeof(bp_nn_attention_options))
#define bp_nn_attention(c, f, m, name, query, key, value, ...) \
    (BP_NN_SITE_(c), bp_nn_attention_at((c), (f), (m), (name), (query), (key), (value), __VA_ARGS__, \
                                        sizeof(bp_nn_attention_options)))
#define bp_nn_encoder_layer_new(c, m, name, width, hidden, ...) \
    bp_nn_encoder_layer_new_at((c), (m), (name), (width), (hidden), __VA_ARGS__, sizeof(bp_nn_encoder_options))
#define bp_nn_encoder_layer(c, f, m, name, x, ...) \
    (BP_NN_SITE_(c), bp_nn_encoder_layer_at((c), (f), (m), (name), (x), __VA_ARGS__, sizeof(bp_nn_encoder_options)))
#define bp_nn_loss(c, kind, x, target, ...) \
    (BP_NN_SITE_(c), bp_nn_loss_at((c), (kind), (x), (target), __VA_ARGS__, sizeof(bp_nn_loss_options)))
#define bp_nn_optimizer_new(c, kind, m, ...) \
    bp_nn_optimizer_new_at((c), (kind), (m), __VA_ARGS__, sizeof(bp_nn_optimizer_options))

BP_EXTERN_C_END
#endif
