/* The user's header: tensors, captured functions, backends by name.
 *
 * Conventions. A function that can fail returns bp_status or NULL; the story is in the context (bp_error). Errors are
 * sticky: after the first failure every operator returns NULL (or zero) and does nothing, so one check at the end of a
 * sequence tells what, where and why; bp_error_clear starts afresh. Tensors made by operators belong to the innermost
 * scope of their context; bp_keep takes one out, bp_tensor_unref gives up a kept one. A context belongs to one thread
 * at a time; a callable may be called from any thread, with that thread's context. Nothing here prints or exits. */
#ifndef BP_BACKPLANE_H
#define BP_BACKPLANE_H

#include <backplane/args.h>
#include <backplane/types.h>

BP_EXTERN_C_BEGIN

typedef struct bp_runtime bp_runtime;   /* the process: config, registry of backends */
typedef struct bp_ctx bp_ctx;           /* one thread's state: error, scopes, modes, generator */
typedef struct bp_tensor bp_tensor;     /* a strided view of a storage */
typedef struct bp_frame bp_frame;       /* one call of a captured function */
typedef struct bp_callable bp_callable; /* what bp_compile gives */
typedef struct bp_module bp_module;     /* named parameters and buffers */

/* -- runtime and context ------------------------------------------------------------------------------------------- */

/* Makes a runtime. Its config (docs/config.md) is read when a backend or a key is first asked for. config: one more ini
 * file, read last, or NULL. errors: NULL only when memory is used up; a bad config is the error of every look-up of a
 * backend, and of `doctor`. */
BP_EXPORT bp_runtime *bp_runtime_new(const char *config);
/* Gives the runtime up; it lives on while contexts or callables use it. Accepts NULL. */
BP_EXPORT void bp_runtime_unref(bp_runtime *rt);
/* Makes a context. rt: NULL for the process's default runtime, made at first use. NULL: out of memory. */
BP_EXPORT bp_ctx *bp_ctx_new(bp_runtime *rt);
BP_EXPORT void bp_ctx_destroy(bp_ctx *c);
/* The context's runtime, borrowed. */
BP_EXPORT bp_runtime *bp_ctx_runtime(bp_ctx *c);

/* -- errors -------------------------------------------------------------------------------------------------------- */

/* The code of the context's first failure, or BP_OK. */
BP_EXPORT bp_status bp_error(const bp_ctx *c);
/* The whole story as text: message, detail, hint, "while ..." lines; "" when there is none. Valid until the next
 * call. */
BP_EXPORT const char *bp_error_text(const bp_ctx *c);
/* Its first line only. */
BP_EXPORT const char *bp_error_message(const bp_ctx *c);
BP_EXPORT void bp_error_clear(bp_ctx *c);
/* The name of a code, "UNKNOWN" for a number that is none. */
BP_EXPORT const char *bp_status_name(bp_status code);

/* -- scopes -------------------------------------------------------------------------------------------------------- */

BP_EXPORT void bp_scope_begin(bp_ctx *c);
BP_EXPORT void bp_scope_end(bp_ctx *c);
/* Takes t out of its scope: the caller owns a reference. Returns t. NULL: NULL. */
BP_EXPORT bp_tensor *bp_keep(bp_ctx *c, bp_tensor *t);
BP_EXPORT void bp_tensor_unref(bp_tensor *t);

/* -- modes (guarded: a change compiles again) ---------------------------------------------------------------------- */

/* Each sets and returns the former value, so that it can be put back. */
BP_EXPORT int bp_set_grad_enabled(bp_ctx *c, int on);
BP_EXPORT int bp_set_inference_mode(bp_ctx *c, int on);
BP_EXPORT int bp_set_deterministic(bp_ctx *c, int on);
BP_EXPORT bp_dtype bp_set_default_dtype(bp_ctx *c, bp_dtype dtype);
BP_EXPORT bp_device bp_set_default_device(bp_ctx *c, bp_device device);
/* dtype BP_DTYPE_UNSET: off. */
BP_EXPORT bp_dtype bp_set_autocast(bp_ctx *c, bp_dtype dtype);
BP_EXPORT int bp_set_allow_tf32(bp_ctx *c, int on);
BP_EXPORT int bp_grad_enabled(const bp_ctx *c);
/* Seeds the context's generator and sets its offset to 0. */
BP_EXPORT void bp_manual_seed(bp_ctx *c, uint64_t seed);
BP_EXPORT uint64_t bp_generator_offset(const bp_ctx *c);

/* What calls of the context's runtime may do, for every thread, from its next call on:
 * "default", "force_eager" (functions run as they are), "eager_on_recompile" and "fail_on_recompile" (what is compiled
 * runs; what is new, an unseen outcome of a break included, runs eagerly or is an error), or "force_backend=NAME" (that
 * backend serves every callable; it is resolved, and its init hook fired, at each callable's first call). Sets also
 * when an error is pending, and returns the former stance, so that it can be put back; the text lives as long as the
 * runtime. NULL: nothing changes. errors (NULL): INVALID_ARGUMENT for an unknown stance; FAILED_PRECONDITION inside a
 * function that a callable runs. */
BP_EXPORT const char *bp_set_stance(bp_ctx *c, const char *stance);
BP_EXPORT const char *bp_stance(bp_ctx *c);

/* -- numbers and sizes --------------------------------------------------------------------------------------------- */

/* bp_dim, bp_scalar, lists of them, and the macros that make them: <backplane/args.h>. */

/* -- tensors ------------------------------------------------------------------------------------------------------- */

/* Makes a contiguous CPU tensor and copies nelem elements of host memory into it; data NULL: zeros. Under capture this
 * is an error (capture.md C5.1). shape: sizes[0 .. rank). owner: the scope. */
BP_EXPORT bp_tensor *bp_tensor_from(bp_ctx *c, bp_dtype dtype, uint32_t rank, const int64_t *sizes, const void *data);
/* Copies t's elements, in row-major order, to host memory of nbytes; nbytes must be exactly right. Fakes refuse. */
BP_EXPORT bp_status bp_tensor_read(bp_ctx *c, const bp_tensor *t, void *data, size_t nbytes);
/* Facts of a tensor; NULL gives zeros. Strides and the offset are in elements. */
BP_EXPORT bp_dtype bp_tensor_dtype(const bp_tensor *t);
BP_EXPORT bp_device bp_tensor_device(const bp_tensor *t);
BP_EXPORT uint32_t bp_tensor_rank(const bp_tensor *t);
BP_EXPORT int64_t bp_tensor_size(const bp_tensor *t, uint32_t d);
BP_EXPORT int64_t bp_tensor_stride(const bp_tensor *t, uint32_t d);
BP_EXPORT int64_t bp_tensor_offset(const bp_tensor *t);
BP_EXPORT int64_t bp_tensor_numel(const bp_tensor *t);
BP_EXPORT int bp_tensor_requires_grad(const bp_tensor *t);
BP_EXPORT bp_status bp_tensor_set_requires_grad(bp_ctx *c, bp_tensor *t, int on);
/* 1 when both share a storage. */
BP_EXPORT int bp_tensor_same_storage(const bp_tensor *a, const bp_tensor *b);
/* The first element in host memory. An error for fakes: "reading the data of a fake tensor". */
BP_EXPORT void *bp_tensor_data(bp_ctx *c, bp_tensor *t);
/* The same; the macros name the place in errors. */
BP_EXPORT bp_tensor *bp_tensor_from_at(bp_ctx *c, bp_dtype dtype, uint32_t rank, const int64_t *sizes, const void *data,
                                       const char *file, int32_t line);
BP_EXPORT bp_status bp_tensor_read_at(bp_ctx *c, const bp_tensor *t, void *data, size_t nbytes, const char *file,
                                      int32_t line);
BP_EXPORT void *bp_tensor_data_at(bp_ctx *c, bp_tensor *t, const char *file, int32_t line);
#define bp_tensor_from(c, ...) bp_tensor_from_at((c), __VA_ARGS__, __FILE__, __LINE__)
#define bp_tensor_read(c, ...) bp_tensor_read_at((c), __VA_ARGS__, __FILE__, __LINE__)
#define bp_tensor_data(c, ...) bp_tensor_data_at((c), __VA_ARGS__, __FILE__, __LINE__)
/* DLPack 1.x, host memory. `managed`: a DLManagedTensorVersioned *. Taken over on success: the memory is shared until
 * the last tensor over it is gone, which then calls its deleter, on whatever thread that happens; read-only or
 * misaligned memory is copied instead. Left to the caller on failure: another major version, a device, negative
 * strides, a type that is not ours. owner: the scope. */
BP_EXPORT bp_tensor *bp_from_dlpack(bp_ctx *c, void *managed);
/* A DLManagedTensorVersioned * over t's memory, for one consumer; whoever has it calls its deleter, on any thread, also
 * when c is gone. NULL: an error; fakes and tensors that require grad are refused. */
BP_EXPORT void *bp_to_dlpack(bp_ctx *c, bp_tensor *t);
/* A size as a value that stays symbolic under capture; bp_size_int makes it a number and leaves a guard. */
BP_EXPORT bp_dim bp_size(bp_ctx *c, const bp_tensor *t, int64_t d);
BP_EXPORT int64_t bp_size_int(bp_ctx *c, bp_dim d);
/* Arithmetic of sizes; overflow is an error. div and mod floor. */
BP_EXPORT bp_dim bp_dim_add(bp_ctx *c, bp_dim a, bp_dim b);
BP_EXPORT bp_dim bp_dim_sub(bp_ctx *c, bp_dim a, bp_dim b);
BP_EXPORT bp_dim bp_dim_mul(bp_ctx *c, bp_dim a, bp_dim b);
BP_EXPORT bp_dim bp_dim_floordiv(bp_ctx *c, bp_dim a, bp_dim b);
BP_EXPORT bp_dim bp_dim_mod(bp_ctx *c, bp_dim a, bp_dim b);
BP_EXPORT bp_dim bp_dim_min(bp_ctx *c, bp_dim a, bp_dim b);
BP_EXPORT bp_dim bp_dim_max(bp_ctx *c, bp_dim a, bp_dim b);
/* Questions on sizes: 1 or 0. Under capture the answer is guarded; on a number that only data tell it is a value break.
 * 0 after an error. The macros name the place. */
BP_EXPORT int bp_dim_eq_at(bp_ctx *c, bp_dim a, bp_dim b, const char *file, int32_t line);
BP_EXPORT int bp_dim_ne_at(bp_ctx *c, bp_dim a, bp_dim b, const char *file, int32_t line);
BP_EXPORT int bp_dim_lt_at(bp_ctx *c, bp_dim a, bp_dim b, const char *file, int32_t line);
BP_EXPORT int bp_dim_le_at(bp_ctx *c, bp_dim a, bp_dim b, const char *file, int32_t line);
BP_EXPORT int bp_dim_gt_at(bp_ctx *c, bp_dim a, bp_dim b, const char *file, int32_t line);
BP_EXPORT int bp_dim_ge_at(bp_ctx *c, bp_dim a, bp_dim b, const char *file, int32_t line);
#define bp_dim_eq(c, a, b) bp_dim_eq_at((c), BP_DIM(a), BP_DIM(b), __FILE__, __LINE__)
#define bp_dim_ne(c, a, b) bp_dim_ne_at((c), BP_DIM(a), BP_DIM(b), __FILE__, __LINE__)
#define bp_dim_lt(c, a, b) bp_dim_lt_at((c), BP_DIM(a), BP_DIM(b), __FILE__, __LINE__)
#define bp_dim_le(c, a, b) bp_dim_le_at((c), BP_DIM(a), BP_DIM(b), __FILE__, __LINE__)
#define bp_dim_gt(c, a, b) bp_dim_gt_at((c), BP_DIM(a), BP_DIM(b), __FILE__, __LINE__)
#define bp_dim_ge(c, a, b) bp_dim_ge_at((c), BP_DIM(a), BP_DIM(b), __FILE__, __LINE__)
/* Requires a relation of sizes (BP_DIM_EQ ...): a guard under capture, an assertion that each run checks where data
 * alone tell. message: begins the error, or NULL. errors: INVALID_ARGUMENT: it does not hold. */
BP_EXPORT bp_status bp_check_at(bp_ctx *c, int32_t rel, bp_dim a, bp_dim b, const char *message, const char *file,
                                int32_t line);
#define bp_check(c, rel, a, b, message) bp_check_at((c), (rel), BP_DIM(a), BP_DIM(b), (message), __FILE__, __LINE__)

/* -- marks --------------------------------------------------------------------------------------------------------- */

/* What captures of functions that get t as an argument are told of its sizes. dim -1: every one. Marks are the
 * tensor's, not its memory's: views have none. A mark that is set again replaces the former one of its kind. */
typedef struct {
    int64_t min, max;            /* the sizes that may come, inclusive; 0: none is given */
    int64_t hint_override;       /* what backends are told it is; 0: the size at capture */
    const int64_t *specialize_on; /* sizes that get code of their own; copied */
    uint32_t nspecialize_on;
} bp_mark_options;
/* The size is dynamic from the first capture on. Code that needs it to be one number, or that holds for a part of min
 * to max only, is an error of the call that names it. options: NULL: none. errors: INVALID_ARGUMENT: no such
 * dimension, or a bad range; FAILED_PRECONDITION: inside a function that is captured. */
BP_EXPORT bp_status bp_mark_dynamic_at(bp_ctx *c, bp_tensor *t, int64_t dim, const bp_mark_options *options,
                                       size_t options_size);
#define bp_mark_dynamic(c, t, dim, ...) /* the options: NULL, or &(bp_mark_options){.min = 2, .max = 64} */ \
    bp_mark_dynamic_at((c), (t), (dim), __VA_ARGS__, sizeof(bp_mark_options))
/* The same, but code that needs one number simply gets it. */
BP_EXPORT bp_status bp_maybe_mark_dynamic(bp_ctx *c, bp_tensor *t, int64_t dim);
/* The size is a constant, also when it changes: each one compiles anew. Inside a captured function it becomes one. */
BP_EXPORT bp_status bp_mark_static(bp_ctx *c, bp_tensor *t, int64_t dim);
/* The size is known to no capture: it is not 0 or 1 to it either, and what must hold of it is checked when code runs.
 * strict: code that needs one number is an error. */
BP_EXPORT bp_status bp_mark_unbacked(bp_ctx *c, bp_tensor *t, int64_t dim, int strict);

/* Values of one-element tensors: a value break under capture. After an error answers come by turns, true and false, the
 * largest number and the smallest, so that a loop on them ends. The macros name the place that asks. */
BP_EXPORT int bp_is_true(bp_ctx *c, bp_tensor *t);
BP_EXPORT int64_t bp_item_int(bp_ctx *c, bp_tensor *t);
BP_EXPORT double bp_item_float(bp_ctx *c, bp_tensor *t);
BP_EXPORT int bp_is_true_at(bp_ctx *c, bp_tensor *t, const char *file, int32_t line);
BP_EXPORT int64_t bp_item_int_at(bp_ctx *c, bp_tensor *t, const char *file, int32_t line);
BP_EXPORT double bp_item_float_at(bp_ctx *c, bp_tensor *t, const char *file, int32_t line);
#define bp_is_true(c, t) bp_is_true_at((c), (t), __FILE__, __LINE__)
#define bp_item_int(c, t) bp_item_int_at((c), (t), __FILE__, __LINE__)
#define bp_item_float(c, t) bp_item_float_at((c), (t), __FILE__, __LINE__)

/* The value of a one-element tensor as a number that stays symbolic under capture: no break, and every Scalar or SymInt
 * argument of an operator takes it (BP_DIM and BP_DIMS too). Its kind is the tensor's: bool, int, float or complex;
 * under capture its `v` is 0, for the operators alone know it. It lives as long as the captured function runs. An
 * integer may be a size, too. */
BP_EXPORT bp_scalar bp_item_sym(bp_ctx *c, bp_tensor *t);
BP_EXPORT bp_scalar bp_item_sym_at(bp_ctx *c, bp_tensor *t, const char *file, int32_t line);
#define bp_item_sym(c, t) bp_item_sym_at((c), (t), __FILE__, __LINE__)

/* -- gradients ----------------------------------------------------------------------------------------------------- */

/* Operators record what requires grad (bp_tensor_set_requires_grad, grad mode); backward gives the gradients. A graph
 * belongs to one thread at a time; leaves may be shared. While a function is captured these are no part of its graph:
 * such a call runs eagerly, and says why. */
enum {
    BP_RETAIN_GRAPH = 1, /* keep what was saved, so that backward can run again */
    BP_CREATE_GRAPH = 2, /* gradients can be differentiated; retains the graph too */
    BP_ALLOW_UNUSED = 4  /* bp_grad: an input that no gradient flows to gets NULL, and is no error */
};

/* Runs backward from t, and adds to `.grad` of every leaf that requires grad. grad: t's own gradient, of its shape;
 * NULL: 1, for a t of one real number.
 * errors: INVALID_ARGUMENT: t does not require grad, or grad does not fit; FAILED_PRECONDITION: what was saved was
 * written in place since, or freed by an earlier backward; UNIMPLEMENTED: an operator that has no derivative, by name.
 * What had been added before stays. */
BP_EXPORT bp_status bp_backward(bp_ctx *c, bp_tensor *t, bp_tensor *grad, uint32_t flags);
/* The same from n tensors at once. grads: one each, or NULL. */
BP_EXPORT bp_status bp_backward_all(bp_ctx *c, bp_tensor *const *tensors, bp_tensor *const *grads, uint32_t n,
                                    uint32_t flags);
/* Gradients of outputs by inputs, which may be leaves or not; `.grad` is left alone. grads: one an output, or NULL.
 * out: room for ninputs, filled; owner: the scope. errors: also an input that is not used, unless BP_ALLOW_UNUSED; then
 * out is all NULL. */
BP_EXPORT bp_status bp_grad(bp_ctx *c, bp_tensor *const *outputs, bp_tensor *const *grads, uint32_t noutputs,
                            bp_tensor *const *inputs, uint32_t ninputs, bp_tensor **out, uint32_t flags);
/* `.grad` of a leaf; NULL: there is none yet. owner: the scope; backward may still add to it in place. */
BP_EXPORT bp_tensor *bp_tensor_grad(bp_ctx *c, bp_tensor *t);
/* Makes grad, of t's shape and type, t's `.grad`; NULL: none. t takes a reference. */
BP_EXPORT bp_status bp_tensor_set_grad(bp_ctx *c, bp_tensor *t, bp_tensor *grad);
/* 1: no operator that was recorded made t. */
BP_EXPORT int bp_tensor_is_leaf(const bp_tensor *t);
/* A hook is told the gradient of t whenever it is complete; it may give another one of the same shape and type in its
 * place (owned by the scope that is innermost when it is called), or NULL. */
typedef bp_tensor *(*bp_grad_hook_fn)(bp_ctx *c, bp_tensor *grad, void *arg);
/* Called when a leaf's `.grad` has been added to. */
typedef void (*bp_post_hook_fn)(bp_ctx *c, bp_tensor *leaf, void *arg);
/* Registers a hook, behind those that are there. destroy (may be NULL) is called once: when the hook is removed, its
 * tensor's history is gone, or this fails. Returns its number, 0 on failure: INVALID_ARGUMENT: t does not require grad,
 * or (post) is no leaf. */
BP_EXPORT uint64_t bp_tensor_register_hook(bp_ctx *c, bp_tensor *t, bp_grad_hook_fn hook, void *arg,
                                           void (*destroy)(void *arg));
BP_EXPORT uint64_t bp_tensor_register_post_accumulate_hook(bp_ctx *c, bp_tensor *t, bp_post_hook_fn hook, void *arg,
                                                           void (*destroy)(void *arg));
BP_EXPORT bp_status bp_tensor_remove_hook(bp_ctx *c, bp_tensor *t, uint64_t hook);

/* -- captured functions -------------------------------------------------------------------------------------------- */

typedef void (*bp_fn)(bp_ctx *c, bp_frame *f);

/* Argument i under a name: guarded. The same name and index at every call. */
BP_EXPORT bp_tensor *bp_arg(bp_frame *f, uint32_t i, const char *name);
BP_EXPORT bp_tensor *bp_arg_optional(bp_frame *f, uint32_t i, const char *name); /* NULL allowed, and guarded */
BP_EXPORT int64_t bp_arg_int(bp_frame *f, uint32_t i, const char *name);
/* An integer argument that may become a symbol when it differs from call to call; bp_arg_int stays a constant. */
BP_EXPORT bp_dim bp_arg_dim(bp_frame *f, uint32_t i, const char *name);
BP_EXPORT double bp_arg_float(bp_frame *f, uint32_t i, const char *name);
BP_EXPORT int bp_arg_bool(bp_frame *f, uint32_t i, const char *name);
BP_EXPORT const char *bp_arg_str(bp_frame *f, uint32_t i, const char *name);
BP_EXPORT uint32_t bp_arg_count(bp_frame *f);
/* A parameter or buffer of a module, by dotted name ("fc.weight"): read at each call and guarded like an input. */
BP_EXPORT bp_tensor *bp_attr(bp_frame *f, bp_module *m, const char *name);
/* A tensor that is neither an argument, an attribute nor made in the function, baked in: its data become a constant of
 * the graph (a get_attr), and an operator that writes it later makes the function compile again. Which tensor it is is
 * not guarded, and writes through a raw pointer are not seen: what changes belongs in a module. A constant that the
 * function itself writes is an input of the graph. Eager: t. The host holds references of its own. */
BP_EXPORT bp_tensor *bp_constant(bp_ctx *c, bp_tensor *t);
BP_EXPORT bp_tensor *bp_constant_at(bp_ctx *c, bp_tensor *t, const char *file, int32_t line);
#define bp_constant(c, t) bp_constant_at((c), (t), __FILE__, __LINE__)
/* The nested arguments of bp_call_tree, as a list or map of handles, numbers and strings: all are asked for, and
 * guarded (docs/capture.md). Valid until the function returns; NULL: the context says why. */
BP_EXPORT const bp_value *bp_arg_tree(bp_frame *f);
/* Item i of a list, the i-th value of a map, the value of a key; NULL: there is none, or t is NULL. */
BP_EXPORT const bp_value *bp_tree_at(const bp_value *t, uint32_t i);
BP_EXPORT const bp_value *bp_tree_get(const bp_value *t, const char *key);
BP_EXPORT uint32_t bp_tree_count(const bp_value *t); /* items of a list, pairs of a map; else 0 */
/* The tensor that t is; NULL: it is none. */
BP_EXPORT bp_tensor *bp_tree_tensor(const bp_value *t);
/* The `.user` of the options. */
BP_EXPORT void *bp_user(bp_frame *f);
/* Adds an output. Outputs are in order of these calls. */
BP_EXPORT void bp_return(bp_frame *f, bp_tensor *t);
/* The outputs as a tree of lists, maps, tensors and NONE, which a caller by bp_call_tree gets in this form; bp_call
 * gets its tensors in order. It is the function's only return. Copied. */
BP_EXPORT void bp_return_tree(bp_frame *f, const bp_value *t);

typedef struct {
    const char *backend;       /* a name; NULL: the config's default */
    bp_compile_fn backend_fn;  /* a C function, never looked up; wins over `backend` */
    bp_init_fn backend_init;   /* its init hook, or NULL */
    void *user;                /* read by bp_user; part of the identity of the code */
    const char *const *options; /* "key", "value", ..., NULL: options for the backend */
    const char *mode;          /* "default", "reduce-overhead", "max-autotune" */
    int32_t fullgraph;         /* 1: a break is an error */
    int32_t dynamic;           /* 0 automatic, 1 on, -1 off */
    int32_t recompile_limit;   /* 0: the config's */
    int32_t isolate;           /* 1: a region of its own */
    int32_t disable;           /* 1: runs the function as it is */
} bp_compile_options;

/* Makes a callable; the backend is resolved (and its init hook fired) here. NULL: the context says why.
 * owner: the caller (bp_callable_unref). Use the macro, which names the function and its place. */
BP_EXPORT bp_callable *bp_compile_at(bp_ctx *c, bp_fn fn, const bp_compile_options *options, size_t options_size,
                                     const char *fn_name, const char *file, int32_t line);
#define bp_compile(c, fn, ...) /* the options: NULL, or &(bp_compile_options){.backend = "eager", ...} */ \
    bp_compile_at((c), (fn), __VA_ARGS__, sizeof(bp_compile_options), #fn, __FILE__, __LINE__)
BP_EXPORT void bp_callable_unref(bp_callable *g);

/* Arguments and results of a call. Kinds follow bp_value; strings are borrowed for the call. */
typedef struct { bp_value *at; uint32_t n; } bp_args;
static inline bp_value bp_arg_of_tensor(bp_tensor *t)
{
    bp_value v = {BP_VALUE_TENSOR, 0, {0}};
    v.v.tensor = t;
    if (!t) v.kind = BP_VALUE_NONE;
    return v;
}
static inline bp_value bp_arg_of_int(int64_t i)
{
    bp_value v = {BP_VALUE_INT, 0, {0}};
    v.v.dim = bp_dim_of(i);
    return v;
}
static inline bp_value bp_arg_of_float(double f) { bp_value v = {BP_VALUE_FLOAT, 0, {0}}; v.v.f[0] = f; return v; }
static inline bp_value bp_arg_of_bool(int b) { bp_value v = {BP_VALUE_BOOL, 0, {0}}; v.v.i = b != 0; return v; }
static inline bp_value bp_arg_of_str(const char *s) { bp_value v = {BP_VALUE_STRING, 0, {0}}; v.v.str = s; return v; }

/* What a call gave. Zero it first; at[0 .. n) are owned by the context's scope at the time of the call. */
typedef struct { bp_tensor **at; uint32_t n, cap; } bp_outputs;

/* Calls g. inputs: its arguments in order. outputs: filled; at most cap when at is the caller's array, else allocated
 * in the scope. Inputs that the function writes are written only when the whole call has succeeded. The macro names
 * the place, for reports of opaque steps; the function of that name does not. */
BP_EXPORT bp_status bp_call(bp_ctx *c, bp_callable *g, const bp_args *inputs, bp_outputs *outputs);
BP_EXPORT bp_status bp_call_at(bp_ctx *c, bp_callable *g, const bp_args *inputs, bp_outputs *outputs, const char *file,
                               int32_t line);
#define bp_call(c, ...) bp_call_at((c), __VA_ARGS__, __FILE__, __LINE__)
/* Tensors only, one result: the common case. NULL: an error. */
BP_EXPORT bp_tensor *bp_call1(bp_ctx *c, bp_callable *g, uint32_t n, bp_tensor *const *inputs);
BP_EXPORT bp_tensor *bp_call1_at(bp_ctx *c, bp_callable *g, uint32_t n, bp_tensor *const *inputs, const char *file,
                                 int32_t line);
#define bp_call1(c, ...) bp_call1_at((c), __VA_ARGS__, __FILE__, __LINE__)
/* Runs fn eagerly, as a callable that is never captured would. */
BP_EXPORT bp_status bp_run_eager(bp_ctx *c, bp_fn fn, void *user, const bp_args *inputs, bp_outputs *outputs);

/* Calls g with nested arguments: in is a list or map of tensors, NONE, numbers, strings, and further lists and maps, at
 * most 64 deep. They are flattened: the call below is bp_call with a text of the structure as argument 0 and the
 * leaves behind it. out: what bp_return_tree gave, or a list of what bp_return gave; owned by the context's scope. */
BP_EXPORT bp_status bp_call_tree(bp_ctx *c, bp_callable *g, const bp_value *in, bp_value *out);
/* The same as bp_run_eager. */
BP_EXPORT bp_status bp_run_eager_tree(bp_ctx *c, bp_fn fn, void *user, const bp_value *in, bp_value *out);

/* -- seeing -------------------------------------------------------------------------------------------------------- */

/* Receives text in pieces. */
typedef void (*bp_write_fn)(void *arg, const char *text, size_t n);
/* Prints a tensor to the context's sink: "label: f32[2] [1, 2]"; label may be NULL. In a captured function it is an
 * opaque step: it prints once a call, and what precedes it is committed. Use the macro, which names the place. */
BP_EXPORT bp_status bp_print_at(bp_ctx *c, bp_tensor *t, const char *label, const char *file, int32_t line);
#define bp_print(c, t, label) bp_print_at((c), (t), (label), __FILE__, __LINE__)
/* Where bp_print, debug-print and friends write; NULL restores stdout. */
BP_EXPORT void bp_set_sink(bp_ctx *c, bp_write_fn write, void *arg);
/* Warnings and logs of the runtime; NULL restores stderr. Called from any thread, one call at a time. */
BP_EXPORT void bp_set_log(bp_runtime *rt, bp_write_fn write, void *arg);

typedef struct {
    uint32_t size; /* sizeof, by the caller */
    uint32_t graphs, break_sites, outcomes, captures, compiles, segments, entries, hits, eager_calls, recompiles;
    uint32_t slices, restarts, growths, disagreements, opened;
    uint32_t resumed; /* of eager_calls: those that went on behind what compiled segments had computed */
    uint32_t steps;   /* opaque steps that were run */
} bp_callable_stats;
BP_EXPORT bp_status bp_stats(bp_ctx *c, const bp_callable *g, bp_callable_stats *out);
/* code_parts of every entry and tree node, one a line. */
BP_EXPORT bp_status bp_print_guards(bp_ctx *c, const bp_callable *g, bp_write_fn write, void *arg);
/* Graphs, breaks and reasons, operators, guards, times. */
BP_EXPORT bp_status bp_print_explain(bp_ctx *c, const bp_callable *g, bp_write_fn write, void *arg);
/* The history of a tensor, as backward goes through it: a line a node, with its number, operator, the nodes that its
 * gradients go to, what it saved (with versions) and where it was called. Nothing, if t requires no grad. */
BP_EXPORT bp_status bp_print_tape(bp_ctx *c, bp_tensor *t, bp_write_fn write, void *arg);
/* Node -> backend -> reason, a line each. */
BP_EXPORT bp_status bp_print_assignment(bp_ctx *c, const bp_callable *g, bp_write_fn write, void *arg);
/* The C function that a callable wraps. */
BP_EXPORT bp_fn bp_callable_function(const bp_callable *g);
/* Empties every cache of the runtime: entries, segments, retired backends, counters. */
BP_EXPORT void bp_reset(bp_ctx *c);

/* -- backends ------------------------------------------------------------------------------------------------------ */

/* Registers a backend under a name. tags: comma-separated ("debug", "experimental") or NULL.
 * errors: ALREADY_EXISTS names both origins; INVALID_ARGUMENT for a bad name or NULL. */
BP_EXPORT bp_status bp_register_backend_at(bp_ctx *c, const char *name, bp_compile_fn compile, bp_init_fn init,
                                           const char *tags, const char *file, int32_t line);
#define bp_register_backend_as(c, name, fn, init, tags) \
    bp_register_backend_at((c), (name), (fn), (init), (tags), __FILE__, __LINE__)
#define bp_register_backend(c, fn) bp_register_backend_at((c), #fn, (fn), NULL, NULL, __FILE__, __LINE__)
#define bp_register_debug_backend(c, fn) bp_register_backend_at((c), #fn, (fn), NULL, "debug", __FILE__, __LINE__)
#define bp_register_experimental_backend(c, fn) \
    bp_register_backend_at((c), #fn, (fn), NULL, "experimental", __FILE__, __LINE__)
/* How a backend wants an operator decomposed: a formula over its schema's arguments ("mul.Tensor(self, sigmoid(self))",
 * several results as "(a, b)"), or a function that calls operators and gives nout tensors, which belong to the scope.
 * Neither: the operator stays as it is. */
typedef struct {
    const char *target;  /* "aten.silu.default" */
    const char *formula; /* or NULL */
    bp_status (*fn)(bp_ctx *c, const bp_value *args, uint32_t nargs, bp_tensor **out, uint32_t nout); /* or NULL */
} bp_decomposition;
/* What a backend that was registered from C wants of the graphs that it gets. */
typedef struct {
    uint32_t size;                          /* sizeof, by the caller */
    int32_t graph;                          /* BP_GRAPH_*; unset: captured */
    const char *const *whole_ops;           /* targets that are not to be decomposed, NULL-terminated; NULL: none */
    const bp_decomposition *decompositions; /* stand before the host's; the last one's target is NULL; NULL: none */
    /* Or a function that gives them: called once, when the first graph is decomposed for the backend. */
    const bp_decomposition *(*give_decompositions)(void *arg);
    void *arg;
    uint32_t dynamic_shapes;                /* 1: it takes dims that are symbolic: BP_DYNAMIC_SHAPES of plugin.h */
    uint32_t reserved;
} bp_backend_wants;
/* Everything that it points to lives as long as the runtime. Called again, the last call holds for later compiles.
 * errors: NOT_FOUND: no backend of that name was registered from C; INVALID_ARGUMENT: an unknown target, a formula that
 * is wrong (of a list; what a function gives is checked at the first compile, which the backend then does not take). */
BP_EXPORT bp_status bp_set_backend_wants(bp_ctx *c, const char *name, const bp_backend_wants *wants);
/* A backend made of C functions, for functions that train: a graph whose gradients are asked for is differentiated
 * ahead of time and split; fw compiles forward graphs, bw backward graphs, inference the graphs that nobody
 * differentiates. bw, inference NULL: fw. Functions that are compiled with it ignore options and modes of their own,
 * with a warning. */
typedef struct {
    const char *name;                     /* under which it is registered; required */
    const char *tags;                     /* as of bp_register_backend_as; NULL: none */
    bp_init_fn init;                      /* fired whenever it is resolved; NULL: none */
    const char *partition;                /* "default" or "min-cut"; NULL: the config's */
    int32_t decompose;                    /* 1: joint graphs are decomposed to core ATen */
    int32_t keep_inference_input_mutations; /* 0 or 1: graphs are functional, the call writes inputs either way */
    int32_t disable_functionalization;    /* 0: captured graphs are functional always; 1 is refused */
    int32_t reserved;
    const char *const *whole_ops;         /* targets that stay whole, NULL-terminated; as long as the runtime lives */
    const char *pre_grad_passes;          /* host passes, by commas, before gradients: dce, cse, fold_constants; NULL */
    const char *compile_region_name;      /* begins its graphs' names in all reports: "loss.__compiled_fn_0"; NULL */
} bp_aot_options;
/* errors: as bp_register_backend_as; INVALID_ARGUMENT for an unknown partition or pass. */
BP_EXPORT bp_status bp_aot_autograd_at(bp_ctx *c, bp_compile_fn fw, bp_compile_fn bw, bp_compile_fn inference,
                                       const bp_aot_options *options, size_t options_size, const char *file,
                                       int32_t line);
#define bp_aot_autograd(c, fw, bw, inference, ...) /* the options: &(bp_aot_options){.name = "mine", ...} */ \
    bp_aot_autograd_at((c), (fw), (bw), (inference), __VA_ARGS__, sizeof(bp_aot_options), __FILE__, __LINE__)
/* The graphs of a function that trains, as canonical texts, without running it or compiling: write is told the joint
 * graph, the forward and the backward, in this order. inputs: give sizes and types, and which require grad. partition:
 * as in the options. Attributes and constants are constants of the graphs. errors: UNIMPLEMENTED for a function that
 * writes in place or asks for values; INVALID_ARGUMENT when no result requires grad. */
BP_EXPORT bp_status bp_aot_graphs(bp_ctx *c, bp_fn fn, void *user, const bp_args *inputs, const char *partition,
                                  bp_write_fn write, void *arg);
/* NULL restores the config's default. */
BP_EXPORT bp_status bp_set_default_backend(bp_ctx *c, const char *name);
BP_EXPORT const char *bp_default_backend(bp_ctx *c);
/* Names in order, without those that carry one of exclude's tags. exclude: "debug,experimental" when NULL; "": none. */
typedef void (*bp_backend_name_fn)(void *arg, const char *name);
BP_EXPORT bp_status bp_list_backends(bp_ctx *c, const char *exclude, bp_backend_name_fn each, void *arg);
/* The state of a backend ("ok", "missing", "not-a-plugin" ...) and why; loads it when probe is 1. */
BP_EXPORT bp_status bp_backend_state(bp_ctx *c, const char *name, int probe, const char **state, const char **why);
/* A config key of [host] for this runtime ("fallback", "recompile_limit" ...), as the file would set it. */
BP_EXPORT bp_status bp_set_config(bp_ctx *c, const char *key, const char *value);

/* -- modules ------------------------------------------------------------------------------------------------------- */

BP_EXPORT bp_module *bp_module_new(bp_ctx *c);
BP_EXPORT void bp_module_unref(bp_module *m);
/* Adds a parameter (or buffer) under a dotted name; the module takes a reference. */
BP_EXPORT bp_status bp_module_add_parameter(bp_ctx *c, bp_module *m, const char *name, bp_tensor *t);
BP_EXPORT bp_status bp_module_add_buffer(bp_ctx *c, bp_module *m, const char *name, bp_tensor *t);
/* Borrowed; NULL with an error that lists the nearest name. */
BP_EXPORT bp_tensor *bp_module_get(bp_ctx *c, const bp_module *m, const char *name);
/* Sets requires_grad of every parameter of a floating-point or complex type; buffers stay as they are. */
BP_EXPORT bp_status bp_module_set_requires_grad(bp_ctx *c, bp_module *m, int on);
/* Adds every tensor of a safetensors file as a parameter; to the state of an optimizer, as a buffer. */
BP_EXPORT bp_status bp_module_load(bp_ctx *c, bp_module *m, const char *path);
BP_EXPORT bp_status bp_module_save(bp_ctx *c, const bp_module *m, const char *path);
/* .npy files. owner of a loaded tensor: the scope. */
BP_EXPORT bp_tensor *bp_load_npy(bp_ctx *c, const char *path);
BP_EXPORT bp_status bp_save_npy(bp_ctx *c, const bp_tensor *t, const char *path);

BP_EXTERN_C_END

/* Control flow: bp_cond, bp_while_loop, bp_map, bp_scan. */
#include <backplane/flow.h>
/* The operators. Files of the host that come before the operator table leave them out. */
#ifndef BP_WITHOUT_OPERATORS
#include <backplane/aten.h>
#endif
#endif
