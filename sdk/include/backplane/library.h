/* Custom operators: defined by a schema, implemented in C, used like any other operator.
 *
 *     static void my_op(bp_ctx *c, bp_op_call *k)
 *     {
 *         bp_op_return(c, k, bp_mul(c, bp_op_tensor(k, 0), bp_op_float(k, 1)));
 *     }
 *     bp_custom_op(c, "mylib::my_op", &(bp_custom_op_options){.schema = "(Tensor x, float alpha) -> Tensor",
 *                                                            .mutates_args = "", .kernel = my_op});
 *     bp_register_fake(c, NULL, "mylib::my_op", my_op_fake, NULL, 0);
 *     y = bp_call_op1(c, "mylib::my_op", x, 2.0);
 *
 * An operator is opaque: a captured function holds it as one node, "mylib.my_op.default", which is never taken apart,
 * computed ahead or merged; it is dropped only if nobody uses it and it writes nothing. What a capture, a compile and a
 * gradient need to know of it is its fake and its derivative.
 *
 * Operators are the process's: one registry for all runtimes. Registration is safe from any thread. Functions that are
 * registered, and their arguments, live until their library is destroyed and no call is inside them. A graph or
 * compiled function may outlive the library: calling the operator is then an error that says so. */
#ifndef BP_LIBRARY_H
#define BP_LIBRARY_H

#include <backplane/backplane.h>

BP_EXTERN_C_BEGIN

typedef struct bp_library bp_library;   /* what one part of a program has registered */
typedef struct bp_op bp_op;             /* an operator; lives as long as the process */
typedef struct bp_op_grad bp_op_grad;   /* what the forward kept for the backward, and the gradients of one call */

/* A kernel or a fake: reads its arguments and gives its results with bp_op_return. A kernel sees real tensors and runs
 * below autograd; a fake sees fakes, and gives fakes of what the kernel would give: operators that it calls do so by
 * themselves. Tensors that it makes belong to a scope of the call. */
typedef void (*bp_op_fn)(bp_ctx *c, bp_op_call *k);
/* Runs behind a forward that is recorded; k has the inputs, and the results by bp_op_result. */
typedef void (*bp_setup_context_fn)(bp_ctx *c, bp_op_grad *g, bp_op_call *k);
/* Calls bp_op_grad_return once an argument of the schema, in order. Its operators may be recorded in turn. */
typedef void (*bp_backward_fn)(bp_ctx *c, bp_op_grad *g);

/* -- a call -------------------------------------------------------------------------------------------------------- */

/* Argument i of the schema, counted from 0, keywords too; a wrong i or another kind gives NULL or zero. */
BP_EXPORT uint32_t bp_op_arg_count(const bp_op_call *k);
BP_EXPORT const bp_value *bp_op_arg(const bp_op_call *k, uint32_t i);
BP_EXPORT bp_tensor *bp_op_tensor(const bp_op_call *k, uint32_t i);         /* borrowed; NULL: None */
BP_EXPORT int64_t bp_op_int(const bp_op_call *k, uint32_t i);               /* of a SymInt: the number, and a guard */
BP_EXPORT bp_dim bp_op_dim(const bp_op_call *k, uint32_t i);                /* a SymInt that stays symbolic */
BP_EXPORT double bp_op_float(const bp_op_call *k, uint32_t i);
BP_EXPORT int bp_op_bool(const bp_op_call *k, uint32_t i);
BP_EXPORT bp_scalar bp_op_scalar(const bp_op_call *k, uint32_t i);          /* kind UNSET: None */
BP_EXPORT const char *bp_op_str(const bp_op_call *k, uint32_t i);           /* NULL: None */
BP_EXPORT bp_dtype bp_op_dtype(const bp_op_call *k, uint32_t i);
BP_EXPORT bp_device bp_op_device(const bp_op_call *k, uint32_t i);
BP_EXPORT int bp_op_is_none(const bp_op_call *k, uint32_t i);
/* Items of a list. */
BP_EXPORT uint32_t bp_op_list_count(const bp_op_call *k, uint32_t i);       /* 0: None */
BP_EXPORT bp_tensor *bp_op_list_tensor(const bp_op_call *k, uint32_t i, uint32_t j);
BP_EXPORT bp_dim bp_op_list_dim(const bp_op_call *k, uint32_t i, uint32_t j);
BP_EXPORT double bp_op_list_float(const bp_op_call *k, uint32_t i, uint32_t j);
/* The index of an argument by name; UINT32_MAX: there is none. */
BP_EXPORT uint32_t bp_op_find_arg(const bp_op_call *k, const char *name);
/* "mylib::my_op"; with its overload unless that is "default". */
BP_EXPORT const char *bp_op_name(const bp_op_call *k);
/* The `arg` of the registration. */
BP_EXPORT void *bp_op_user(const bp_op_call *k);

/* Gives the next result: one a result of the schema, or one an item of a Tensor[]. NULL: None, an error unless an error
 * is pending. A result may be neither an argument nor share memory with one or with another result, unless the schema
 * says so. */
BP_EXPORT void bp_op_return(bp_ctx *c, bp_op_call *k, bp_tensor *t);
/* Gives the number of a schema that returns int, SymInt, float, bool or Scalar. */
BP_EXPORT void bp_op_return_number(bp_ctx *c, bp_op_call *k, bp_scalar number);
/* Result i, in a setup function. NULL: there is none. */
BP_EXPORT bp_tensor *bp_op_result(const bp_op_call *k, uint32_t i);
/* Makes the call fail with "mylib::my_op: text". */
BP_EXPORT BP_PRINTF(4, 5) void bp_op_fail(bp_ctx *c, const bp_op_call *k, bp_status code, const char *fmt, ...);
/* In a fake: a size that only the kernel's data tell, from min to max (negative: no bound), as a symbol of the graph
 * that is being captured. errors: INVALID_ARGUMENT: min is negative, or above max; FAILED_PRECONDITION: outside of a
 * fake, or where such sizes are not captured (capture_dynamic_output_shape_ops), so that the call becomes a step. */
BP_EXPORT bp_dim bp_new_dynamic_size(bp_ctx *c, bp_op_call *k, int64_t min, int64_t max);

/* -- libraries ----------------------------------------------------------------------------------------------------- */

/* DEF: the one that defines a namespace's operators; FRAGMENT: adds to a namespace; IMPL: kernels only. */
enum { BP_LIBRARY_DEF = 1, BP_LIBRARY_IMPL = 2, BP_LIBRARY_FRAGMENT = 3 };

/* Makes a library. device: that of kernels whose registration names none, or NULL.
 * errors: INVALID_ARGUMENT: another kind, a name that is no identifier, the reserved namespaces prim, prims, aten, at,
 * torch and pytorch (of DEF and FRAGMENT); ALREADY_EXISTS: a second DEF for a namespace, with both places. */
BP_EXPORT bp_library *bp_library_new_at(bp_ctx *c, int32_t kind, const char *ns, const char *device, const char *file,
                                        int32_t line);
#define bp_library_new(c, ...) bp_library_new_at((c), __VA_ARGS__, __FILE__, __LINE__)
/* Takes back everything that it has registered; what was registered before counts again. NULL: nothing. */
BP_EXPORT void bp_library_destroy(bp_library *lib);
/* Defines an operator: "my_op(Tensor x, float alpha) -> Tensor", or with the namespace in front. alias_analysis: NULL,
 * "" or "FROM_SCHEMA": the schema's marks say what it writes and aliases; "CONSERVATIVE": it is never dropped either.
 * Returns its name ("my_op"), which lives as long as the process; NULL: an error: INVALID_ARGUMENT: the schema is wrong
 * (and where), another namespace, an alias analysis that is none of these; FAILED_PRECONDITION: an IMPL library;
 * ALREADY_EXISTS: it is defined, with both places; UNIMPLEMENTED: results of several kinds at once. */
BP_EXPORT const char *bp_library_define_at(bp_ctx *c, bp_library *lib, const char *schema, const char *alias_analysis,
                                           const char *file, int32_t line);
#define bp_library_define(c, ...) bp_library_define_at((c), __VA_ARGS__, __FILE__, __LINE__)
/* Registers a kernel. op: "my_op" or "mylib::my_op". device: "cpu", "cuda"; "meta": it serves as the fake; "all": for
 * every device that has no kernel of its own; "": the operator is made of others, which autograd differentiates and
 * which serve as its fake; NULL: the library's, or "". errors: INVALID_ARGUMENT: no kernel, another device or
 * namespace; NOT_FOUND: no such operator; ALREADY_EXISTS: this very kernel, unless allow_override is 1;
 * FAILED_PRECONDITION: "meta" where there is a kernel for "". */
BP_EXPORT bp_status bp_library_impl(bp_ctx *c, bp_library *lib, const char *op, const char *device, bp_op_fn kernel,
                                    void *arg, int32_t allow_override);
/* A kernel for every custom operator that has none for that device. errors: FAILED_PRECONDITION: the library is no
 * FRAGMENT of the namespace "_". */
BP_EXPORT bp_status bp_library_fallback(bp_ctx *c, bp_library *lib, const char *device, bp_op_fn kernel, void *arg);

/* The rest of an operator. lib: whose registration it is; NULL: that of whoever defined the operator. */

/* What is registered last counts. errors: ALREADY_EXISTS: there is one, unless allow_override is 1;
 * FAILED_PRECONDITION: there is a kernel for "meta" or for "". */
BP_EXPORT bp_status bp_register_fake(bp_ctx *c, bp_library *lib, const char *op, bp_op_fn fake, void *arg,
                                     int32_t allow_override);
/* setup may be NULL: the backward needs nothing of the forward. What is registered last counts.
 * errors: FAILED_PRECONDITION: the operator writes arguments; UNIMPLEMENTED: it has a tensor by keyword alone. */
BP_EXPORT bp_status bp_register_autograd(bp_ctx *c, bp_library *lib, const char *op, bp_backward_fn backward,
                                         bp_setup_context_fn setup, void *arg);
/* Under autocast for that device ("cpu" or "cuda") tensors there of a floating type other than float64 are cast to
 * dtype, keyword arguments excepted, and the operator runs without autocast. */
BP_EXPORT bp_status bp_register_autocast(bp_ctx *c, bp_library *lib, const char *op, const char *device,
                                         bp_dtype dtype);

/* -- one operator in one call -------------------------------------------------------------------------------------- */

typedef struct {
    const char *schema;       /* "(Tensor x, float alpha) -> Tensor"; required */
    const char *mutates_args; /* names of the arguments that it writes, by commas; "": none; "unknown": every tensor,
                               * for a schema without marks. Required, and what the schema marks */
    const char *device_types; /* "cpu,cuda": those that the kernel is for; NULL: every device */
    bp_op_fn kernel;
    void *arg;
} bp_custom_op_options;

/* Defines "ns::op" with its kernel, and takes the place of one that was defined like this before. NULL: an error:
 * INVALID_ARGUMENT: another form of name, no mutates_args, one that names no tensor of the schema or that the schema
 * does not mark, a kernel for one device in an operator without tensors and without an argument `Device device`;
 * UNIMPLEMENTED: a tensor by keyword alone. */
BP_EXPORT const bp_op *bp_custom_op_at(bp_ctx *c, const char *name, const bp_custom_op_options *options,
                                       size_t options_size, const char *file, int32_t line);
#define bp_custom_op(c, name, ...) \
    bp_custom_op_at((c), (name), __VA_ARGS__, sizeof(bp_custom_op_options), __FILE__, __LINE__)
/* Takes the operator of bp_custom_op back. errors: NOT_FOUND. */
BP_EXPORT bp_status bp_custom_op_remove(bp_ctx *c, const char *name);
/* A kernel for further devices, or in place of the one that is there. device_types: as in the options. */
BP_EXPORT bp_status bp_register_kernel(bp_ctx *c, const char *op, const char *device_types, bp_op_fn kernel, void *arg);
/* Switches the kernel of bp_register_kernel off and on; off, the function that defined the operator runs. Returns the
 * former state, so that it can be put back; a call that changes nothing is only warned of. */
BP_EXPORT int bp_set_kernel_enabled(bp_ctx *c, const char *op, const char *device, int on);

/* -- checking ------------------------------------------------------------------------------------------------------ */

/* Told each check's name and its result: "SUCCESS", or what is wrong. */
typedef void (*bp_opcheck_fn)(void *arg, const char *test, const char *result);
typedef struct {
    const char *tests;       /* names by commas; NULL: test_schema, test_autograd_registration, test_faketensor,
                              * test_aot_dispatch_dynamic; there is test_aot_dispatch_static too */
    int32_t raise_exception; /* 1: the first failure ends it, as the context's error */
    double atol, rtol;       /* of values and gradients; both, or neither: as the type says */
    bp_opcheck_fn each;      /* NULL: nobody is told */
    void *arg;
} bp_opcheck_options;

/* Checks a custom operator on sample arguments, which are not written: that it does what its schema says (writes what
 * is marked, aliases nothing else), that gradients can flow where some are asked for, that its fake is as its kernel,
 * and that it gives compiled, with dynamic sizes, what it gives eagerly, gradients too. args: as in bp_call_op; tensors
 * that require grad are differentiated by. options: NULL: the defaults. Returns BP_OK when every check has passed, or
 * was told to `each`. errors: INVALID_ARGUMENT: an unknown check, or one of atol and rtol alone; the first failure,
 * with raise_exception. */
BP_EXPORT bp_status bp_opcheck_at(bp_ctx *c, const char *op, const bp_args *args, const bp_opcheck_options *options,
                                  size_t options_size);
#define bp_opcheck(c, op, args, ...)     bp_opcheck_at((c), (op), (args), __VA_ARGS__, sizeof(bp_opcheck_options))

/* -- gradients ----------------------------------------------------------------------------------------------------- */

/* In setup: keeps a tensor for the backward, which reads it by its number, in the order of these calls. An input or a
 * result that is written later makes the backward fail; NULL keeps None. */
BP_EXPORT void bp_op_grad_save(bp_ctx *c, bp_op_grad *g, bp_tensor *t);
/* In setup: a value of the caller's, given to the backward; destroy may be NULL. */
BP_EXPORT void bp_op_grad_set_data(bp_ctx *c, bp_op_grad *g, void *data, void (*destroy)(void *data));
BP_EXPORT void *bp_op_grad_data(const bp_op_grad *g);
BP_EXPORT bp_tensor *bp_op_grad_saved(bp_ctx *c, const bp_op_grad *g, uint32_t i);
/* In backward. An argument that is no tensor, as the forward got it; results' gradients, zeros where none flows;
 * whether the gradient of argument i is asked for at all. */
BP_EXPORT const bp_value *bp_op_grad_arg(const bp_op_grad *g, uint32_t i);
BP_EXPORT uint32_t bp_op_grad_count(const bp_op_grad *g);
BP_EXPORT bp_tensor *bp_op_grad_of(bp_ctx *c, bp_op_grad *g, uint32_t i);
BP_EXPORT int bp_op_grad_needs(const bp_op_grad *g, uint32_t i);
BP_EXPORT void *bp_op_grad_user(const bp_op_grad *g);
/* The gradient of the next argument of the schema; NULL: none, as for all that are no tensors. */
BP_EXPORT void bp_op_grad_return(bp_ctx *c, bp_op_grad *g, bp_tensor *t);
/* The same for a Tensor[], one an item. */
BP_EXPORT void bp_op_grad_return_list(bp_ctx *c, bp_op_grad *g, bp_tensor *const *t, uint32_t n);

/* -- calling ------------------------------------------------------------------------------------------------------- */

/* An operator by name, "mylib::my_op" or "aten::add.Tensor", for calls that are to cost no look-up. NULL: NOT_FOUND. */
BP_EXPORT const bp_op *bp_op_get(bp_ctx *c, const char *name);
/* Calls op with values in the order of its schema, keywords behind the others; those that are left out have their
 * defaults. outputs: as in bp_call, or NULL. The macros name the place. */
BP_EXPORT bp_status bp_call_op_at(bp_ctx *c, const bp_op *op, const bp_args *args, bp_outputs *outputs,
                                  const char *file, int32_t line);
/* The same of a name. */
BP_EXPORT bp_status bp_call_op_named(bp_ctx *c, const char *name, const bp_args *args, bp_outputs *outputs,
                                     const char *file, int32_t line);
#define bp_call_op(c, name, args, outputs) bp_call_op_named((c), (name), (args), (outputs), __FILE__, __LINE__)
/* The first result; NULL: an error, or there is none. */
BP_EXPORT bp_tensor *bp_call_op1_at(bp_ctx *c, const bp_op *op, const bp_args *args, const char *file, int32_t line);
BP_EXPORT bp_tensor *bp_call_op1_named(bp_ctx *c, const char *name, const bp_args *args, const char *file,
                                       int32_t line);
/* The number of an operator that returns one. */
BP_EXPORT bp_scalar bp_call_op_number_named(bp_ctx *c, const char *name, const bp_args *args, const char *file,
                                            int32_t line);
#define bp_call_op1(c, name, ...) bp_call_op1_named((c), (name), BP_ARGS(__VA_ARGS__), __FILE__, __LINE__)
#define bp_call_op_number(c, name, ...) \
    bp_call_op_number_named((c), (name), BP_ARGS(__VA_ARGS__), __FILE__, __LINE__)
/* Of a resolved operator. */
#define bp_op_call1(c, op, ...) bp_call_op1_at((c), (op), BP_ARGS(__VA_ARGS__), __FILE__, __LINE__)

static inline bp_value bp_arg_of_none(void) { bp_value v = {BP_VALUE_NONE, 0, {0}}; return v; }
static inline bp_value bp_arg_of_dim(bp_dim d) { bp_value v = {BP_VALUE_INT, 0, {0}}; v.v.dim = d; return v; }
static inline bp_value bp_arg_of_dtype(bp_dtype d) { bp_value v = {BP_VALUE_DTYPE, 0, {0}}; v.v.i = d; return v; }
static inline bp_value bp_arg_of_device(bp_device d)
{
    bp_value v = {BP_VALUE_DEVICE, 0, {0}};
    v.v.device = d;
    return v;
}
static inline bp_value bp_arg_of_list(const bp_value *at, uint32_t n)
{
    bp_value v = {BP_VALUE_LIST, 0, {0}};
    v.count = n;
    v.v.items = at;
    return v;
}
static inline bp_value bp_arg_of_scalar(bp_scalar s)
{
    bp_value v = {BP_VALUE_NONE, 0, {0}};
    if (s.sym && s.kind != BP_SCALAR_UNSET && s.kind != BP_SCALAR_INT) { /* of bp_item_sym, under capture */
        v.kind = BP_VALUE_NODE;
        v.v.node = s.sym;
        return v;
    }
    if (s.kind == BP_SCALAR_BOOL)
        return bp_arg_of_bool(s.v.i != 0);
    if (s.kind == BP_SCALAR_INT) {
        v.kind = BP_VALUE_INT;
        v.v.dim.value = s.v.i;
        v.v.dim.sym = s.sym;
    } else if (s.kind != BP_SCALAR_UNSET) {
        v.kind = s.kind == BP_SCALAR_FLOAT ? BP_VALUE_FLOAT : BP_VALUE_COMPLEX;
        v.v.f[0] = s.v.f[0];
        v.v.f[1] = s.kind == BP_SCALAR_COMPLEX ? s.v.f[1] : 0;
    }
    return v;
}
static inline bp_value bp_arg_same_(bp_value v) { return v; }

BP_EXTERN_C_END

/* BP_VALUE makes a value of a tensor, number, string, size or device; BP_LIST(a, b) a list of such; BP_ARGS(x, 2.0) the
 * arguments of a call. 1 to 16 items each. */
#define BP_NONE bp_arg_of_none()
#ifndef __cplusplus
#define BP_VALUE(x)                                                                                            \
    _Generic((x), bp_value: bp_arg_same_, bp_tensor *: bp_arg_of_tensor, bp_scalar: bp_arg_of_scalar,          \
             bp_dim: bp_arg_of_dim, bp_device: bp_arg_of_device, char *: bp_arg_of_str,                        \
             const char *: bp_arg_of_str, _Bool: bp_arg_of_bool, float: bp_arg_of_float,                       \
             double: bp_arg_of_float, default: bp_arg_of_int)(x)
#define BP_LIST(...) bp_arg_of_list((const bp_value[]){BP_EACH_(BP_VALUE, __VA_ARGS__)}, BP_COUNT_(__VA_ARGS__))
#define BP_ARGS(...) (&(bp_args){(bp_value[]){BP_EACH_(BP_VALUE, __VA_ARGS__)}, BP_COUNT_(__VA_ARGS__)})
#else
namespace bp_ {
inline bp_value value_of(bp_value v) { return v; }
inline bp_value value_of(bp_tensor *t) { return bp_arg_of_tensor(t); }
inline bp_value value_of(bp_scalar s) { return bp_arg_of_scalar(s); }
inline bp_value value_of(bp_dim d) { return bp_arg_of_dim(d); }
inline bp_value value_of(bp_device d) { return bp_arg_of_device(d); }
inline bp_value value_of(const char *s) { return bp_arg_of_str(s); }
template <class T> typename std::enable_if<std::is_arithmetic<T>::value, bp_value>::type value_of(T v)
{
    return std::is_same<T, bool>::value           ? bp_arg_of_bool(static_cast<int>(v))
           : std::is_floating_point<T>::value ? bp_arg_of_float(static_cast<double>(v))
                                              : bp_arg_of_int(static_cast<int64_t>(v));
}
/* The arguments of one call: they live until its end. */
template <unsigned N> struct values {
    bp_value at[N];
    bp_args all;
    const bp_args *args()
    {
        all.at = at;
        all.n = N;
        return &all;
    }
    bp_value list() const { return bp_arg_of_list(at, N); }
};
template <class... T> values<sizeof...(T)> values_of(T... v)
{
    return values<sizeof...(T)>{{value_of(v)...}, {nullptr, 0}};
}
} // namespace bp_
#define BP_VALUE(x) (bp_::value_of(x))
#define BP_LIST(...) (bp_::values_of(__VA_ARGS__).list())
#define BP_ARGS(...) (bp_::values_of(__VA_ARGS__).args())
#endif
#endif
