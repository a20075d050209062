/* Operators: a row an overload (ops.def), the call that carries arguments, and dispatch.
 *
 * The life of a call: a generated function (aten.h) packs its arguments into an op_call and dispatches it; the modes on
 * the context's stack see it first (tape, capture, functionalize), then the bottom: check arguments, run the shape
 * rule, make the outputs (a view needs no kernel at all), run the reference kernel; with a fake among the arguments,
 * the outputs are fakes and no kernel runs. */
#ifndef HOST_OP_OP_H
#define HOST_OP_OP_H
#include "host/op/schema.h"
#include "host/tensor/tensor.h"

typedef struct op_row op_row;
typedef struct op_call op_call;
typedef struct shape_call shape_call;

/* Flags of a row. */
enum op_flag {
#define OP_FLAG(name, bit, words) OP_##name = 1 << (bit),
#include "host/op/flags.def"
#undef OP_FLAG
};

/* A shape rule: reads the arguments' metadata, fills s->out[0 .. nout). No data is touched, fakes and real tensors are
 * treated alike. */
typedef bp_status (*op_shape_fn)(bp_ctx *c, shape_call *s);
/* A reference kernel: all tensors are real CPU tensors; k->out[i] are made as the rule said (or NULL and to be made,
 * where the rule said that the sizes are unknown). For an in-place row the output is argument 0 itself. */
typedef bp_status (*op_kernel_fn)(bp_ctx *c, op_call *k);

struct op_row {
    const char *id;           /* C identifier: "add_tensor" */
    const char *schema_text;  /* "add.Tensor(Tensor self, ...) -> Tensor", without "aten::" */
    uint32_t flags;
    op_shape_fn shape;
    op_kernel_fn kernel;      /* NULL: OP_VIEW, or inplace_of is set */
    const char *inplace_of;   /* id of the functional row that an in-place or out= row stands for, or NULL */
    const op_row *functional; /* that row */
    const char *doc;          /* one line */
    const schema *schema;     /* parsed once, at the first use of the table */
    uint32_t number;          /* position in the table: ROW_<id> of rows.h; of a custom operator, one behind them */
    const struct custom *own; /* of a custom operator (host/op/library.h); else NULL */
    char target[96];          /* "aten.add.Tensor" */
    char label[80];           /* for messages: "add.Tensor", "relu" */
};

/* One result of a shape rule. */
typedef struct {
    tensor_meta meta;
    int32_t alias_of;         /* argument index whose storage the result shares, or -1 */
    uint32_t alias_item;      /* which tensor of it, when that argument is a list */
    bool is_argument;         /* the result is that very tensor (in place; contiguous() of a contiguous one) */
    bool absent;              /* there is no such result this time (a gradient that is not asked for) */
    bool unknown;             /* sizes depend on data (index by a mask): the kernel makes it, a fake run refuses. Where
                               * sizes of data are captured, they are symbols instead */
} shape_out;

struct shape_call {
    const op_row *op;
    const bp_value *args;     /* one a schema argument, defaults filled in; numbers for tensors are wrapped numbers */
    uint32_t nargs, nout, cap;
    shape_out *out;           /* grown by shape_add_out; arrays live in the context's scratch arena */
    bp_device device;         /* of the results, unless the rule says otherwise: the first tensor's */
};

struct op_call {
    const op_row *op;
    const bp_value *args;     /* as above; TENSOR values are tensors */
    uint32_t nargs, nout;
    bp_tensor **out;          /* each a reference that the dispatcher's caller takes */
    bp_value item;            /* the value that an OP_ITEM row gives */
    bool returns_list;        /* the schema returns Tensor[] */
    uint64_t rng_offset;      /* of an OP_RANDOM row: where its numbers start */
};

/* -- the table -- */
/* Parsed at first use, by whichever thread comes first; false: no memory, and the next call tries again. The functions
 * below then find nothing. */
bool op_table_ready(void);
uint32_t op_count(void);
const op_row *op_at(uint32_t number);
const op_row *op_by_target(const char *target); /* "aten.add.Tensor"; NULL: unknown */
const op_row *op_by_id(const char *id);
/* A row's page: what it does, its schema, the C functions that call it, its flags in words. False: out of memory. */
bool op_print_page(const op_row *op, buf *out);
/* Nearest known target, for messages; NULL: none is near. */
const char *op_nearest(const char *target);

/* -- calling -- */
/* Through the mode stack. args must have op->schema->nargs values. On success k->out holds new references, in memory of
 * the caller's if k->out was given with room for nout, else in the scratch arena. Sticky: with an error pending nothing
 * is done. A failure is annotated with the operator and its site. While a mode handles a call, c->modes is what lies
 * below it. What the call takes from the scratch arena is given back when it ends, but for k->out. */
bp_status op_dispatch(bp_ctx *c, op_call *k);
/* The same for the modes below `self`, from inside a mode; the scratch arena is left alone. */
bp_status op_dispatch_below(bp_ctx *c, dispatch_mode *self, op_call *k);
/* The bottom for real tensors: shape rule, outputs, kernel. CPU tensors only. */
bp_status op_run_reference(bp_ctx *c, op_call *k);
/* Makes fake outputs from metadata: views share the fake storage of what they alias. Arguments may be real or fake. */
bp_status op_run_fake(bp_ctx *c, op_call *k);
/* A mode that answers every call by op_run_fake, so that operators without tensor arguments give fakes too. */
void mode_init_fake(dispatch_mode *m);
/* The rule alone: fills *out, whose arrays live in the scratch arena. Checks arguments first, as eager does. */
bp_status op_infer(bp_ctx *c, const op_row *op, const bp_value *args, shape_call *out);
/* Whether a call's results have equal metadata for two lists of arguments. False when the rule refuses either; the
 * context has no error afterwards that it did not have before. */
bool op_same_results(bp_ctx *c, const op_row *op, const bp_value *a, const bp_value *b);
/* Fills defaults: positional values and named ones -> one a schema argument (in scratch). Errors name the argument. */
bp_status op_bind(bp_ctx *c, const op_row *op, const bp_value *pos, uint32_t npos, const char *const *names,
                  const bp_value *named, uint32_t nnamed, bp_value **args);
/* The same for values in the order of the schema, those by name alone too. */
bp_status op_bind_ordered(bp_ctx *c, const op_row *op, uint32_t n, const bp_value *pos, bp_value **args);
/* For kernels that are made of other operators: runs the row of that number at the bottom, on positional arguments (the
 * rest are defaults), and gives its only result as a new reference; NULL: an error. */
bp_tensor *op_call1(bp_ctx *c, uint32_t row, uint32_t npos, const bp_value *pos);
/* Makes t the i-th output of k: copies it into the output that was made, or takes its place when it is laid out alike
 * and nobody else holds it. Takes the reference; t NULL: the error that is pending. */
bp_status op_deliver(bp_ctx *c, op_call *k, uint32_t i, bp_tensor *t);
void mode_push(bp_ctx *c, dispatch_mode *m);
void mode_pop(bp_ctx *c, dispatch_mode *m);

/* -- values: the short ways to make them -- */
static inline bp_value value_none(void) { return (bp_value){.kind = BP_VALUE_NONE}; }
static inline bp_value value_bool(bool b) { return (bp_value){.kind = BP_VALUE_BOOL, .v.i = b}; }
static inline bp_value value_int(int64_t i) { return (bp_value){.kind = BP_VALUE_INT, .v.dim = {i, 0, 0}}; }
static inline bp_value value_dim(bp_dim d) { return (bp_value){.kind = BP_VALUE_INT, .v.dim = d}; }
static inline bp_value value_float(double f) { return (bp_value){.kind = BP_VALUE_FLOAT, .v.f = {f, 0}}; }
static inline bp_value value_str(const char *s) { return (bp_value){.kind = BP_VALUE_STRING, .v.str = s}; }
static inline bp_value value_dtype(bp_dtype d)
{
    return (bp_value){.kind = d ? BP_VALUE_DTYPE : BP_VALUE_NONE, .v.i = d};
}
static inline bp_value value_tensor(bp_tensor *t)
{
    return (bp_value){.kind = t ? BP_VALUE_TENSOR : BP_VALUE_NONE, .v.tensor = t};
}
static inline bp_value value_list(const bp_value *items, uint32_t n)
{
    return (bp_value){.kind = BP_VALUE_LIST, .count = n, .v.items = items};
}
bp_value value_scalar(bp_scalar s);                            /* UNSET: None */
/* A number that only a run tells, as an argument: whoever captures knows what it stands for. Without a capture such a
 * call is refused. */
bp_value value_symbol(uint32_t sym);
/* The bit of a symbol that names such a number; without it a symbol names an expression, a size (host/sym/dim.h). */
#define VALUE_SYMBOL (1u << 31)
/* A number in its place for shape rules, of the kind that an element of that type is; other: a different one, so that
 * what depends on it shows. */
bp_value value_unknown(bp_dtype d, bool other);
/* Whether `is` holds of v, or of an item of a list that it is. */
bool value_any(const bp_value *v, bool (*is)(const bp_value *leaf));
bool value_is_node(const bp_value *leaf);
bool value_is_symbol(const bp_value *leaf); /* an integer that is a symbolic size */
/* v, in which `change` has been let at each value that is no list; lists lie in the scratch arena. False: it has said
 * so, and why in the context, or memory is used up. */
bool value_map(bp_ctx *c, const bp_value *v, bool (*change)(void *arg, bp_value *leaf), void *arg, bp_value *to);
/* A list of n numbers, in the scratch arena; None when memory is used up (the context says so). */
bp_value value_ints(bp_ctx *c, const int64_t *at, uint32_t n);
bp_value value_dims(bp_ctx *c, const bp_dim *at, uint32_t n);

/* -- for shape rules and kernels: typed access to arguments by position -- */
bp_tensor *arg_tensor(const bp_value *args, uint32_t i);       /* NULL when None */
bp_scalar arg_scalar(const bp_value *args, uint32_t i);        /* kind UNSET when None */
bp_dim arg_dim(const bp_value *args, uint32_t i);              /* 0 when None */
int64_t arg_int(bp_ctx *c, const bp_value *args, uint32_t i);
double arg_float(const bp_value *args, uint32_t i);
bool arg_bool(const bp_value *args, uint32_t i);
const char *arg_str(const bp_value *args, uint32_t i);         /* NULL when None */
bp_dtype arg_dtype(const bp_value *args, uint32_t i);          /* UNSET when None */
bp_device arg_device(const bp_value *args, uint32_t i);        /* kind UNSET when None */
int32_t arg_memory_format(const bp_value *args, uint32_t i);   /* UNSET when None */
bool arg_is_none(const bp_value *args, uint32_t i);
uint32_t arg_list_len(const bp_value *args, uint32_t i);       /* 0 when None; 1 for a bare value */
bp_tensor *arg_list_tensor(const bp_value *args, uint32_t i, uint32_t k); /* NULL when None */
bp_dim arg_list_dim(const bp_value *args, uint32_t i, uint32_t k);
/* An int list of wanted length n; one item, or a bare int, stands for all. Error when it is neither. */
bp_status arg_ints(bp_ctx *c, const op_row *op, const bp_value *args, uint32_t i, uint32_t n, int64_t *out);
/* Argument i as an array of sizes in scratch, *n of them; NULL: out of memory. */
bp_dim *arg_dims(bp_ctx *c, const bp_value *args, uint32_t i, uint32_t *n);
/* A number as a double or an int64_t: booleans are 0 or 1, a float is cut toward zero, UNSET gives 0. A symbol is
 * specialized. */
double scalar_float(bp_scalar s);
int64_t scalar_int(bp_scalar s);
/* Adds an output to a shape result: copies sizes to scratch, strides are contiguous until the rule says otherwise. */
shape_out *shape_add_out(bp_ctx *c, shape_call *s, bp_dtype dtype, uint32_t rank, const bp_dim *sizes);
/* Adds an output that is a view of tensor argument i: its dtype and device, the sizes given, strides and offset copied
 * from the argument as far as its rank goes, for the rule to change. */
shape_out *shape_add_view(bp_ctx *c, shape_call *s, uint32_t i, uint32_t rank, const bp_dim *sizes);
/* Adds an output that is argument i itself. */
shape_out *shape_add_same(bp_ctx *c, shape_call *s, uint32_t i);
/* Wraps a dimension number for a tensor of that rank (0-d counts as one dimension), as PyTorch does; an error names the
 * argument. */
bp_status op_wrap_dim(bp_ctx *c, const op_row *op, const char *arg, int64_t d, uint32_t rank, uint32_t *out);
/* A size for a message, "5" or "2*s0 + 1"; in the scratch arena. */
const char *op_dim_text(bp_ctx *c, bp_dim d);
/* "add.Tensor: argument \"other\" ..." : the form of every operator's error. Returns the code. */
BP_PRINTF(4, 5) bp_status op_fail(bp_ctx *c, const op_row *op, bp_status code, const char *fmt, ...);

/* -- promotion (PyTorch's rules for tensors, 0-d tensors and numbers) -- */
typedef struct { bp_dtype dim, zero, wrapped; } promote_state; /* best of each category so far */
void promote_tensor(bp_ctx *c, promote_state *p, const bp_tensor *t); /* wrapped floats count as the default type */
void promote_scalar(bp_ctx *c, promote_state *p, bp_scalar s);
bp_dtype promote_result(const promote_state *p);
/* Result type of arguments i and j, each a tensor or a number. */
bp_dtype promote_args(bp_ctx *c, const bp_value *args, uint32_t i, uint32_t j);
#endif
