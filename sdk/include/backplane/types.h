/* Types that a vendor's plugin and a user's program share.
 *
 * C99, C11 and C++; included by plugin.h and backplane.h, and declares no function of either. Every struct that
 * crosses the boundary has a fixed layout, pinned by static asserts in host/base/layout.c, and only ever grows
 * behind a size field. Numbers are stable for ever. */
#ifndef BP_TYPES_H
#define BP_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define BP_EXTERN_C extern "C"
#define BP_EXTERN_C_BEGIN extern "C" {
#define BP_EXTERN_C_END }
#else
#define BP_EXTERN_C
#define BP_EXTERN_C_BEGIN
#define BP_EXTERN_C_END
#endif
#if defined(__GNUC__)
#define BP_EXPORT BP_EXTERN_C __attribute__((visibility("default")))
#define BP_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define BP_MUST_USE __attribute__((warn_unused_result))
#else
#define BP_EXPORT BP_EXTERN_C
#define BP_PRINTF(fmt, first)
#define BP_MUST_USE
#endif

BP_EXTERN_C_BEGIN

/* A status code of status.def; 0 is success. */
typedef int32_t bp_status;
enum {
    BP_OK = 0,
#define BP_STATUS_ROW(name, number, chain, meaning) BP_##name = number,
#include <backplane/status.def>
#undef BP_STATUS_ROW
};

/* Element types. bp_half and bp_bfloat16 are storage formats: arithmetic is done in float. */
typedef uint16_t bp_half;
typedef uint16_t bp_bfloat16;
typedef struct { float re, im; } bp_complex64;
typedef struct { double re, im; } bp_complex128;

/* A data type of dtype.def; 0 is "not given". */
typedef int32_t bp_dtype;
enum {
    BP_DTYPE_UNSET = 0,
#define BP_DTYPE_ROW(NAME, number, size, cls, torch, brief, ctype, st) BP_##NAME = number,
#include <backplane/dtype.def>
#undef BP_DTYPE_ROW
    BP_DTYPE_END /* one past the last */
};

/* Device kinds; 0 is "not given". A device is (kind, index). */
enum { BP_DEVICE_UNSET = 0, BP_CPU = 1, BP_CUDA = 2, BP_FAKE_DEVICE = 3 };
typedef struct { int32_t kind, index; } bp_device;

enum { BP_LAYOUT_UNSET = 0, BP_STRIDED = 1 };
/* Memory formats. CONTIGUOUS is row major, CHANNELS_LAST is N, H, W, C in memory. */
enum {
    BP_MEMORY_FORMAT_UNSET = 0, BP_CONTIGUOUS = 1, BP_PRESERVE = 2, BP_CHANNELS_LAST = 3, BP_CHANNELS_LAST_3D = 4
};

/* A size, stride, offset or SymInt. sym 0: the constant `value`; otherwise the id of an expression in the table of
 * its frame or graph module, and value is its hint. zero is reserved and 0. */
typedef struct { int64_t value; uint32_t sym, zero; } bp_dim;

/* A symbol of a graph module: a size, stride or number that varies between calls. min, max: inclusive; INT64_MIN and
 * INT64_MAX are no bounds. */
enum { BP_SYMBOL_UNBACKED = 1u }; /* the graph itself computes it: there is no hint */
typedef struct {
    uint32_t size, flags; /* size of this struct, set by who asks for it: no more is filled in */
    const char *name;     /* "s0" */
    bp_dim dim;
    int64_t hint, min, max;
} bp_symbol;
/* Relations and operations on dims. */
enum { BP_DIM_EQ = 1, BP_DIM_NE = 2, BP_DIM_LT = 3, BP_DIM_LE = 4, BP_DIM_GT = 5, BP_DIM_GE = 6 };
enum {
    BP_DIM_ADD = 1, BP_DIM_SUB = 2, BP_DIM_MUL = 3, BP_DIM_FLOORDIV = 4, BP_DIM_MOD = 5, BP_DIM_MIN = 6, BP_DIM_MAX = 7
};

/* A number with its kind, so that 1 and 1.0 promote as PyTorch promotes them. */
enum { BP_SCALAR_UNSET = 0, BP_SCALAR_BOOL = 1, BP_SCALAR_INT = 2, BP_SCALAR_FLOAT = 3, BP_SCALAR_COMPLEX = 4 };
typedef struct { uint32_t kind, sym; union { int64_t i; double f[2]; } v; } bp_scalar;

/* A value in an argument list: of an operator call, and of a node of a graph.
 * Lists are nested values; `count` is the length of a list or map and of nothing else. Memory belongs to the graph or
 * call that it was read from. Kind TENSOR occurs inside the host only; a plugin sees NODE. Kinds may be added. */
enum {
    BP_VALUE_NONE = 0,    /* Python's None: an optional argument that is absent */
    BP_VALUE_NODE = 1,    /* v.node: the id of the node whose result it is */
    BP_VALUE_TENSOR = 2,  /* v.tensor (host only) */
    BP_VALUE_BOOL = 3,    /* v.i: 0 or 1 */
    BP_VALUE_INT = 4,     /* v.dim */
    BP_VALUE_FLOAT = 5,   /* v.f[0] */
    BP_VALUE_COMPLEX = 6, /* v.f[0] real, v.f[1] imaginary */
    BP_VALUE_STRING = 7,  /* v.str, NUL-terminated UTF-8 */
    BP_VALUE_DTYPE = 8,   /* v.i: a bp_dtype */
    BP_VALUE_LAYOUT = 9,  /* v.i */
    BP_VALUE_DEVICE = 10, /* v.device */
    BP_VALUE_MEMORY_FORMAT = 11, /* v.i */
    BP_VALUE_LIST = 12,   /* v.items[0 .. count) */
    BP_VALUE_GENERATOR = 13, /* v.tensor is the host's generator object; NONE is the context's own (host only) */
    BP_VALUE_MAP = 14,    /* v.items[0 .. count): a STRING, its value, the next STRING ... (bp_call_tree) */
    BP_VALUE_GRAPH = 15   /* v.tensor is a graph module (host only); a plugin sees the NODE of a get_attr */
};
typedef struct bp_value bp_value;
struct bp_value {
    uint32_t kind, count;
    union {
        uint32_t node;
        void *tensor;
        int64_t i;
        bp_dim dim;
        double f[2];
        const char *str;
        bp_device device;
        const bp_value *items;
    } v;
};

/* A tensor as a plugin sees it: strides in elements, `data` at the first element (NULL: fake, or empty). Valid until
 * the call that gave it returns. sizes and strides are non-NULL when rank > 0. */
enum { BP_VIEW_REQUIRES_GRAD = 1u, BP_VIEW_FAKE = 2u };
typedef struct {
    uint32_t size; /* of this struct, in bytes: what the giver filled in */
    int32_t dtype;
    int32_t device_kind, device_index;
    uint32_t rank, flags;
    const bp_dim *sizes, *strides;
    void *data;
} bp_view;

/* What an input of a graph is. SYMINT: a symbol that no other input shows, as an i64 tensor of no dimensions on the
 * CPU. */
enum {
    BP_ROLE_UNSET = 0, BP_ROLE_USER = 1, BP_ROLE_PARAMETER = 2, BP_ROLE_BUFFER = 3, BP_ROLE_CONSTANT = 4,
    BP_ROLE_SYMINT = 5
};
/* What a node of a graph is. */
enum { BP_NODE_PLACEHOLDER = 1, BP_NODE_GET_ATTR = 2, BP_NODE_CALL_FUNCTION = 3, BP_NODE_OUTPUT = 4 };
/* Levels of bp_log_message. */
enum { BP_LOG_ERROR = 1, BP_LOG_WARN = 2, BP_LOG_INFO = 3, BP_LOG_DEBUG = 4 };
/* Which graph a backend wants. */
enum { BP_GRAPH_UNSET = 0, BP_GRAPH_CAPTURED = 1, BP_GRAPH_FUNCTIONAL = 2, BP_GRAPH_CORE = 3 };

/* Handles. The first word of the first four is `const bp_host *`. */
typedef struct bp_host bp_host;
typedef struct bp_graph_module bp_graph_module;
typedef struct bp_inputs bp_inputs;
typedef struct bp_run bp_run;
typedef struct bp_compiled bp_compiled;
typedef struct bp_sink_ bp_sink_t;

/* One call of a custom operator, as its kernel or fake sees it. Of an operator that a plugin defined its first word is
 * `const bp_host *`. */
typedef struct bp_op_call bp_op_call;
/* A plugin's kernel or fake: reads arguments (bp_call_view, bp_call_value) and makes its results with bp_call_result,
 * in order. Returns 0, or a code after bp_call_fail said why. */
typedef bp_status (*bp_operator_fn)(bp_op_call *k, void *arg);
/* What bp_define_operator defines. Texts are copied; the functions and arg live as long as the process. */
typedef struct {
    uint32_t size;             /* sizeof, by the caller */
    uint32_t flags;            /* 0 */
    const char *name;          /* "vendor::my_op" */
    const char *schema;        /* "(Tensor x, float alpha) -> Tensor": results are tensors */
    const char *mutates_args;  /* the arguments that the schema marks as written, by commas; NULL: none */
    bp_operator_fn kernel;     /* on CPU tensors */
    bp_operator_fn fake;       /* the same without data: views have none. NULL: such calls are no part of graphs */
    void *arg;
} bp_operator_def;

/* The function of a compiled object. Returns 0, or a code after bp_run_fail said why. state is the plugin's. */
typedef bp_status (*bp_run_fn)(void *state, bp_run *r);
typedef void (*bp_destroy_fn)(void *state);
/* A backend's two symbols. */
typedef bp_compiled *(*bp_compile_fn)(bp_graph_module *gm, const bp_inputs *inputs);
typedef bp_status (*bp_init_fn)(const bp_host *host);

BP_EXTERN_C_END
#endif
