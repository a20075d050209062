/* Traces: a captured function run on fakes, recorded as a path (docs/capture.md).
 *
 * The trace is a dispatch mode. It functionalizes while it records: a fake storage has a current SSA value; a handle is
 * a view of a storage, known by the chain of view operators that leads to it; a write in place makes a new value of the
 * storage. When the function asks for a value, the trace computes it on the call's real inputs by reference kernels (a
 * slice) and goes on, or takes the answer from the log of what this call has already observed. One thread's. */
#ifndef HOST_CAPTURE_TRACE_H
#define HOST_CAPTURE_TRACE_H
#include "host/capture/bind.h"
#include "host/capture/dynamic.h"
#include "host/capture/frame.h"
#include "host/capture/slice.h"
#include "sdk/base/map.h"

enum trace_end {
    TRACE_RUNNING,
    TRACE_RETURNED,  /* the path is complete */
    TRACE_AT_BREAK,  /* it ends at its last break, whose value the data withhold; nothing is known of what follows */
    TRACE_AT_STEP,   /* it ends at an opaque step that has not run yet: nothing is guessed across it (C4.2) */
    TRACE_OPEN,      /* it ends at a break beyond the limit */
    TRACE_FAILED,    /* the function's own error: eager says it in its words (C1.5) */
    TRACE_DECLINED,  /* something that is not captured: such calls run eagerly, for `reason` */
    TRACE_REFUSED,   /* the caller's mistake: the context has the error */
    TRACE_IMPURE,    /* the prefix differs from the recorded one (C5.4) */
    TRACE_RESUMED    /* it went on for real behind the log, to its end or to an error, which the context has */
};

/* Eager resumption (C3.6): when the log is used up, the trace's fakes become real and the function goes on. */
typedef struct {
    /* Writes what the function has written so far (an end without results), moves the generator, and gives a tensor
     * for each of state's outs, a reference each. A failure must come before the first write. */
    bp_status (*commit)(void *arg, const item *state, bp_tensor **made);
    void *arg;
    bp_outputs *outs;             /* what the function returned, when it returned without an error */
} trace_resume;

/* An opaque step that a call has run, for replays: all tensors are references. */
typedef struct {
    bp_tensor **inputs;           /* what became inputs: storages that the function had made, then new results */
    uint32_t ninputs, nresults, nobjects;
    uint32_t *results;            /* one each: RESULT_* */
    struct step_object { uint32_t handle; bp_tensor *t; } *objects; /* its arguments: a handle is one object */
    /* Tensors whose layout the step changed in place, and views that are laid out as they were: a replay of what is
     * before it must see that. */
    struct step_change { bp_tensor *t, *was; } *changes;
    uint32_t nchanges;
} step_record;
#define RESULT_NONE 0u
#define RESULT_INPUT (1u << 31)   /* | place in inputs; else the number of a handle, that very object */
void step_record_free(step_record *r);

typedef struct {
    bp_fn fn;
    void *user;
    const char *name;             /* of the function, for messages */
    bindings *vals;               /* the call's values; attributes of modules are appended to its inputs */
    const outcome *log;           /* what the call has observed, in order: forced */
    step_record *const *steps;    /* of its outcomes that are opaque steps, in order */
    uint32_t nsteps;
    const item *const *expect;    /* the path up to there: a replay that differs is impure */
    uint32_t nlog, nexpect;
    uint32_t node_limit, break_limit;
    uint64_t rng_base;            /* generator offset at the start of the transaction */
    bool fullgraph;               /* a break is an error */
    slice_compute_fn *compute;    /* of heavy slices, as of a slicer; NULL: reference kernels */
    void *compute_arg;
    const trace_resume *resume;   /* NULL: a capture */
    size_policy policy;           /* how sizes of sources are decided that the path has no plan for */
    const source_plan *const *plans; /* the path's, by source; NULL: none */
    uint32_t nplans;
    const sym_env *env;           /* of the path, with its first nsymbols symbols; NULL: none */
    uint32_t nsymbols;
    bool dynamic_outputs;         /* capture_dynamic_output_shape_ops */
} trace_request;

/* Where an input comes from. Arguments first, then attributes. */
typedef struct {
    const char *name;             /* of bp_arg, or the attribute's dotted name; NULL: not asked for yet */
    int32_t role;                 /* BP_ROLE_* */
    struct bp_module *module;     /* of an attribute; borrowed */
    uint32_t entry;               /* its index there */
    bp_tensor *constant;          /* of bp_constant; borrowed until the capture ends; the module is then NULL */
    bool touched;
    const source_plan *plan;      /* of its sizes, once it is touched; NULL: behind an opaque step it needs none */
    const tensor_meta *meta;      /* as it was made: symbols where the plan has them; NULL: all constants */
    bp_dim number;                /* of an integer that bp_arg_dim has asked for */
    uint32_t handle;              /* of a touched tensor */
    struct fake_storage *fs;
    enum { SOURCE_UNASKED, SOURCE_PLAIN, SOURCE_DIM } asked; /* of one that is no tensor: a constant, or a symbol */
} trace_source;

/* What one segment adds to its path, its items aside. */
typedef struct {
    uint32_t first_item, nsources; /* nsources: known at its end */
    ref first_value;
    bp_dim rng_start;
    ambient ambient;
    VEC(uint32_t) touched;        /* sources first asked for here: guarded */
    VEC(uint32_t) written;        /* sources whose overlaps are guarded here */
    VEC(guard_read) reads;        /* of symbols that sources bring or show here */
    VEC(path_symbol) symbols;     /* that data tell, and where: found here, or here anew */
    VEC(uint32_t) shown;          /* sources whose metadata have symbols, first seen here */
    uint32_t first_symbol;        /* symbols that are made here: up to the next segment's */
} trace_segment;

/* A storage of the trace. Its value is that of the group once an overlapping input of it was written. */
typedef struct fake_storage {
    ref cur;
    int32_t source;               /* >= 0: an input's memory; -1: made by the function */
    uint32_t number, base;        /* base: the handle of the whole; 0 for a group */
    bool param;                   /* what a graph inside the path takes (sub.h) */
    bool written, guarded;        /* guarded: its overlaps are checked from some segment on */
    bool hidden;                  /* it carries history, and was written where autograd does not see it */
    bool lives;                   /* the function still holds a handle of it; set by trace_state */
    uint32_t made;                /* its place in the last trace_state, from 1 */
    struct fake_storage *group;
    bp_tensor *flat;              /* of a group: the fake of the range */
} fake_storage;

/* A fake tensor that the function holds. */
typedef struct {
    bp_tensor *t;                 /* a reference */
    fake_storage *fs;
    uint32_t parent;              /* handle that it is a view of; 0: it is the whole storage */
    const op_row *view;           /* how, with its arguments (argument 0 is the parent) */
    const bp_value *args;
    uint32_t nargs, result;
    uint8_t kind;                 /* enum view_kind, of a view */
} trace_handle;

typedef struct {
    uint32_t item, result;
    bool folds;                   /* made of constants alone */
    bp_tensor *fake;              /* its metadata as a tensor, a reference */
} trace_value;

typedef struct { const storage *real; bp_tensor *fake; } trace_flat;

/* A number that stays symbolic (C2.5). Only tensors cross a break, so that each segment that uses it reads it anew. */
typedef struct {
    ref value;                    /* of the tensor that it is the element of */
    bp_dim dim;                   /* of an integer: its symbol; else 0 */
    bp_dtype dtype;
    uint32_t held;                /* the handle that carries it over an opaque step */
    uint32_t segment;             /* that has read it last, from 1; 0: none */
    ref node;                     /* which gives it there */
    bp_value real;                /* once the trace has resumed; NONE: it could not be computed */
} trace_number;

struct trace {
    dispatch_mode mode;           /* first */
    struct trace *outer;          /* the one around it that has resumed, on this context */
    bp_ctx *c;
    const trace_request *r;
    arena arena;
    uint32_t epoch;
    enum trace_end why;
    char reason[1024];            /* of an end other than TRACE_RETURNED */
    VEC(item) items;
    VEC(trace_value) values;      /* by ref; 0 is unused */
    VEC(trace_handle) handles;    /* by number; 0 is unused */
    VEC(fake_storage *) storages;
    VEC(trace_source) sources;
    VEC(trace_segment) segments;  /* the last one is open while the function runs */
    VEC(outcome) guesses;         /* what slices answered behind the log */
    map views;                    /* (value, view operator, arguments) -> ref, in this segment */
    map asked;                    /* (kind, value) -> outcome index + 1 in `answers` */
    VEC(outcome) answers;
    map lines;                    /* (file, line) -> how often it recorded, for the node limit */
    uint32_t nbreaks, nnodes;     /* nbreaks: with opaque steps */
    uint32_t nsteps;
    slicer slices;
    bp_dim rng;                   /* increment so far */
    ambient modes;                /* of the context when the call began */
    uint64_t seed, offset;        /* its generator then */
    VEC(trace_number) numbers;    /* by their place in a symbol */
    sym_env *env;                 /* of all dims of the trace */
    sym_scope former;             /* what was current before it */
    bool pushed;
    uint32_t nplaced;             /* symbols whose place is known: those behind it are of the call that is recorded */
    plan_numbering naming;
    VEC(path_symbol) symbols;     /* that data tell, where they are found now */
    VEC(const source_plan *) constrained; /* plans whose marks are to be held */
    VEC(trace_flat) flats;        /* fakes of whole input storages */
    struct sub_trace *sub;        /* the innermost graph inside the path that is recorded; NULL: the path itself */
    VEC(bp_tensor *) params;      /* what such graphs take, by REF_PARAM: fakes, a reference each */
    map flat_at;                  /* storage -> which of them, from 1 on: all of sources with a handle */
};

/* Runs the function and records it. NULL: out of memory, the context says so. The context has an error afterwards only
 * for TRACE_REFUSED. */
trace *trace_run(bp_ctx *c, const trace_request *r);
void trace_destroy(trace *t);
/* The path's items as text, a line each. */
void trace_print(const trace *t, buf *out);

/* The marks that what was asked contradicts: "Constraints violated (L['x'].size()[0])! ...". False: none. */
bool trace_violations(const trace *t, buf *why);

/* -- for frames -- */
/* An integer argument that may be a symbol. */
bp_dim trace_dim_arg(trace *t, uint32_t i, const char *name);
bp_tensor *trace_arg(trace *t, uint32_t i, const char *name, bool optional);
/* A number or string argument; NULL: not of that kind (the context says so). */
const bp_value *trace_plain_arg(trace *t, uint32_t i, const char *name, uint32_t kind);
bp_tensor *trace_attr(trace *t, struct bp_module *m, const char *name);
/* A real tensor that is neither an argument nor an attribute: a source that the graph bakes in. */
bp_tensor *trace_constant(trace *t, bp_tensor *real);
/* Answers bp_is_true and kin. false: the capture has ended; the answer is then by turns. */
bool trace_ask(trace *t, enum ask_kind kind, bp_tensor *h, outcome *out);
bool trace_ask_ref(trace *t, enum ask_kind kind, ref r, outcome *out); /* the same of a value */

/* The element of h as a number that stays symbolic; one that folds to a constant is that constant. */
bp_status trace_item(trace *t, bp_tensor *h, bp_scalar *out);

/* -- between the files of a trace -- */
/* Ends the capture: the first reason counts. Everything after it does nothing. Returns a code that is not 0. */
BP_PRINTF(3, 4) bp_status trace_stop(trace *t, enum trace_end why, const char *fmt, ...);
bp_status trace_nomem(trace *t);
/* The function has set the generator: what lies behind is not captured, and not replayed. */
bool trace_seeded(const trace *t);
/* The error that is pending is that of a question on what only data tell. */
bool trace_asks_data(const bp_ctx *c);
/* Records a call; first becomes the ref of its first result. */
/* args: refs, in the trace's arena. fakes: of the results, when their metadata are known; NULL: by the shape rule. */
bp_status trace_node(trace *t, const op_row *op, const bp_value *args, bp_tensor *const *fakes, uint32_t nfakes,
                     ref *first);
/* Appends an item after comparing it with the expected one. */
bp_status trace_emit(trace *t, const item *it);
bp_status trace_cut(trace *t);
/* A copy of args in which each handle is the ref of its current value. */
bp_value *trace_refs(trace *t, const bp_value *args, uint32_t nargs);
bp_tensor *trace_fake(trace *t, ref r);
trace_handle *trace_handle_of(trace *t, const bp_tensor *h);
/* Adds a handle; takes over the caller's reference to h. 0: out of memory. */
uint32_t trace_add_handle(trace *t, bp_tensor *h, fake_storage *fs, uint32_t parent);
fake_storage *trace_add_storage(trace *t, int32_t source, ref cur);

/* size.c: sizes as the C function sees them. A symbol carries the mark of its capture, so that one that was stored
 * beyond it is told; inside the trace it has none. */
bp_dim trace_give_dim(const trace *t, bp_dim d);
/* The dim of the trace for one that the function gave. False: it is of another capture, the context says so. */
bool trace_take_dim(trace *t, bp_dim *d);
/* A copy of args, in scratch, with dims taken; args itself when no symbol is among them. NULL: the context says why. */
const bp_value *trace_take_args(trace *t, const bp_value *args, uint32_t nargs);
/* The number that a symbol of a resumed trace stands for, or that the function's own capture gave. False: an error. */
bool capture_real_dim(bp_ctx *c, bp_dim *d);

/* symbol.c: the trace's environment */
void trace_begin_symbols(trace *t);
void trace_end_symbols(trace *t);
/* Plans source i, unless its path has a plan, and makes its symbols. dims: sizes, then strides; a number's: one. */
bp_status trace_plan_source(trace *t, uint32_t i, bp_dim *dims);
/* Source i is guarded again: its symbols must be what they were. */
bp_status trace_read_again(trace *t, uint32_t i);
/* What data tell: a new symbol, found at `at`. */
bp_dim trace_new_symbol(trace *t, const sym_symbol *s, path_symbol at);
/* Symbols that a shape rule has made are sizes of the call's results, which begin at `first`. */
bp_status trace_place_symbols(trace *t, ref first, uint32_t nresults);
/* The values that an item's arguments need for their symbols, in the trace's arena; each once. */
bp_status trace_find_needs(trace *t, const bp_value *args, uint32_t nargs, item *it);
/* The symbols of an end or a step that data tell, and where they are found. */
bp_status trace_find_symbols(trace *t, item *end);
/* d's value in this call. False: it is not known. */
bool trace_dim_value(trace *t, bp_dim d, int64_t *out);
/* All that a state says, and all handles, become constants: the trace is about to resume. */
bp_status trace_settle_dims(trace *t, item *state);
/* Metadata whose symbols are the numbers that they are in this capture; in the trace's arena. */
tensor_meta trace_numbers_of(trace *t, const tensor_meta *m);
/* All sizes and strides of a handle become constants: where memory is shared, symbols cannot say how. */
bp_status trace_specialize(trace *t, bp_tensor *h);

/* number.c */
/* The node that gives a symbolic number in this segment. 0: the capture has ended. */
ref trace_number_ref(trace *t, uint32_t sym);
ref trace_number_value(trace *t, uint32_t index); /* the same by its place in t->numbers */
/* A copy of args, in scratch, with numbers in the places of symbolic ones; args itself when it has none. NULL: an error
 * that the context has. */
const bp_value *trace_hints(trace *t, const bp_value *args, uint32_t nargs, bool other);
/* Symbolic numbers outlive an opaque step: before it each is given a storage of its own, which the step's commit makes;
 * behind it that is what they are read from. */
bp_status trace_hold_numbers(trace *t);
void trace_release_numbers(trace *t);
bp_status trace_renew_numbers(trace *t);
/* Computes every symbolic number: the trace is about to resume. */
void trace_settle_numbers(trace *t);
/* The number that a symbol of a resumed trace stands for. False: there is none. */
bool capture_real_number(bp_ctx *c, uint32_t sym, bp_value *to);
/* storage.c: values of handles */
ref trace_read(trace *t, const bp_tensor *h);                         /* 0: the capture has ended */
bp_status trace_write(trace *t, const bp_tensor *h, ref value);
/* Of equal type, sizes and strides: those that are proven equal. Asks nothing. */
bool trace_same_layout(const bp_tensor *a, const bp_tensor *b);
/* Whether an operator that is called now is seen by autograd. */
static inline bool trace_grad_on(const trace *t)
{
    return t->c->ambient.grad_enabled && !t->c->ambient.inference_mode;
}
/* Ends the capture when h's history is asked for, and a write that autograd has not seen lies behind it. */
bp_status trace_check_history(trace *t, const bp_tensor *h);
ref trace_cast(trace *t, ref r, bp_dtype dtype);                      /* r itself when it has that type */
ref trace_expand(trace *t, ref r, const bp_tensor *like);             /* to the sizes of a handle */
bp_status trace_source_added(trace *t, uint32_t source);              /* an attribute came behind a write */
/* sources.c */
bp_status trace_begin_sources(trace *t);
/* The handle of tensor source i, made at its first use; guarded from this segment on. NULL: the capture has ended. */
bp_tensor *trace_source_handle(trace *t, uint32_t i);
/* A fake of the whole storage of `real` is there already: `fake` has it. */
bp_status trace_know_storage(trace *t, const bp_tensor *real, bp_tensor *fake);
/* Whether an argument has the kind asked for; an int fits a float. Else the context says so. */
bool arg_fits(bp_ctx *c, uint32_t i, const char *name, const bp_value *v, uint32_t kind);
/* record.c: operator calls */
bp_status trace_call(bp_ctx *c, dispatch_mode *self, void *op_call);
/* finish.c */
bp_status trace_finish(trace *t, bp_frame *f);
/* What a commit in mid-path must make and write: behind the outs that are there come the storages that the function
 * made and can still reach. */
bp_status trace_state(trace *t, item *state);
bp_status trace_describe(trace *t, const bp_tensor *h, out_spec *out);
void trace_poison(trace *t);
/* step.c */
/* Records an opaque step. spec's fn or op, user, args (real values, tensors are handles), nargs and reason are given.
 * With the call's log: *results are handles, NULL among them, in the trace's arena. An error: the capture has ended. */
bp_status trace_step(trace *t, const step_spec *spec, bp_tensor ***results, uint32_t *nresults);
/* A tensor that is laid out as `real` was where the replay stands: behind t->nsteps opaque steps. Borrowed. */
const bp_tensor *trace_layout_of(const trace *t, const bp_tensor *real);
/* resume.c */
/* The log is used up: what is behind it runs for real. */
bp_status trace_go_real(trace *t);
/* The function has ended; its results are given. */
void trace_end_real(trace *t, bp_frame *f);
/* The input that a handle of a resumed function stands for; else h itself. */
bp_tensor *capture_real(bp_ctx *c, bp_tensor *h);
/* The other way round, for what a call gives back to a function that has resumed: its own handle of t, else t. */
bp_tensor *trace_handle_for(const trace *t, bp_tensor *real);
/* Copies v, with every tensor in it the real one; memory from a. False: out of memory. */
bool capture_real_value(bp_ctx *c, arena *a, const bp_value *v, bp_value *to);
#endif
