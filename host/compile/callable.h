/* Callables and calls.
 *
 * A callable is a C function, its backend and options, and the code that holds what was captured and compiled for it. A
 * call is one transaction (C1.1): it walks the trace tree, runs segments, captures what is unseen, and writes nothing
 * that its caller can see before its last segment has succeeded; until then any failure is answered by running the
 * function eagerly from the untouched inputs. */
#ifndef HOST_COMPILE_CALLABLE_H
#define HOST_COMPILE_CALLABLE_H
#include "host/backend/config.h"
#include "host/backend/program.h"
#include "host/cache/code.h"

enum { BREAK_LIMIT = 64, GROWTH_LIMIT = 4, INLINE_DEPTH = 64, CALL_DEPTH = 256 };

struct bp_callable {
    atomic_uint refs;     /* the caller's, and one of each call of it that is running what may free it */
    bp_runtime *rt;
    bp_fn fn;
    void *user;
    backend *backend;     /* NULL for a disabled one */
    fn_code *code;           /* NULL for a disabled one */
    code_identity shared; /* of an isolated callable: the default region's code, read on a miss */
    int32_t recompile_limit; /* 0: the config's */
    bool disabled, isolated, fullgraph;
    _Atomic(bp_callable *) forced; /* its likes with backends that a stance forced on it */
    bp_callable *next_forced;
    atomic_uint forced_by; /* of such a one: the setting that it serves */
    const _Atomic int64_t *check_capture; /* where the config has it; NULL for a disabled one */
    bool rechecks;        /* BACKPLANE_VERIFY=capture, as it was when the callable was made */
    char *name;           /* of a disabled one: "name (file:line)", for reports */
    const char *disabled_by; /* of a disabled one: what says so; static */
    int32_t dynamic;      /* bp_compile_options.dynamic */
};

/* What a step of a call came to. */
typedef enum {
    STEP_OK,              /* go on */
    STEP_DONE,            /* the call is answered */
    STEP_MISS,            /* not answered by a tree that this call may only read */
    STEP_EAGER,           /* run the function eagerly, for call.reason; the context has no error */
    STEP_FAILED           /* the context has the error, which is the caller's answer */
} step;

typedef struct call {
    bp_ctx *c;
    bp_callable *g;
    code_state *st;
    epochs *epochs;
    bp_outputs *outs;
    bindings vals;
    uint64_t rng_base;    /* the generator's offset when the call began */
    tree_node *node;      /* the last one that was run; NULL: none yet */
    outcome log[BREAK_LIMIT + 1]; /* what its breaks gave */
    uint32_t nlog;        /* how many of them: node->depth + 1, or node->depth when the last one is not known */
    bool fixed;           /* the caller takes a fixed number of results, in memory of its own */
    bool claimed;         /* this call may change the state */
    bool borrowed;        /* it walks the default region's tree for an isolated callable, and only reads it */
    bool captured;        /* it did */
    bool held;            /* it has a reference of g: the function runs, or a step, and may free g */
    bool resumes;         /* with STEP_EAGER: behind k->node, not from the start */
    uint8_t stance;       /* enum stance, as it was when the call began */
    char reason[512];
    /* the path that a capture of this call gave: not published before it has run */
    VEC(tree_node *) fresh;
    VEC(outcome) guesses; /* what slices answered at the breaks of fresh nodes */
    uint32_t next_fresh;
    /* Behind a commit the call is never restarted (C1.2). */
    VEC(step_record *) steps; /* opaque steps that have run */
    tree_node *mark;      /* of the last one */
    uint32_t nmark;       /* nlog behind it */
    bool impure;
} call;

/* Leaves why the call runs eagerly. Returns STEP_EAGER. */
BP_PRINTF(2, 3) step call_eager(call *k, const char *fmt, ...);
/* The same when nothing has failed: what the call has is right, and only what lies behind is not compiled. It goes on
 * from there (C3.6). */
BP_PRINTF(2, 3) step call_eager_here(call *k, const char *fmt, ...);
/* The same for an error that is pending: eager answers it, in its own words. Clears it. */
step call_eager_on_error(call *k);
/* Where the walk has come to: inputs known there, breaks behind it. */
static inline uint32_t place_inputs(const call *k, const tree_node *parent)
{
    if (!parent)
        return k->vals.nargs;
    bool at_step = parent->term && parent->term->kind == ITEM_STEP; /* it is the last one: what it gave is an input */
    return parent->ninputs + (at_step && k->steps.len ? vec_last(&k->steps)->ninputs : 0);
}
static inline uint32_t place_depth(const tree_node *parent) { return parent ? parent->depth + 1 : 0; }
/* Becomes the one who may change the state, for the rest of the call. */
bool call_claim(call *k);
/* Before a call runs what may give up its callable: g lives on until the call has ended. */
static inline void call_hold(call *k)
{
    if (!k->held)
        atomic_fetch_add_explicit(&k->g->refs, 1, memory_order_relaxed);
    k->held = true;
}
void call_release(call *k);

/* walk.c: the pipeline of a call */
step call_walk(call *k);
/* The node of a place whose guards hold. before: inputs known there. NULL: none, or no memory (see the context). */
tree_node *call_pick(call *k, place *at, uint32_t before);
/* The attributes that a node reads first become inputs of the call. */
bp_status call_take_attrs(call *k, const tree_node *n, uint32_t before);
/* A value of the path behind k->node: one that it has, else a slice. Borrowed; NULL: the context has the error. */
bp_tensor *call_slice(call *k, ref r);
static inline bp_tensor *call_value(call *k, ref r)
{
    bp_tensor *t = bind_get(&k->vals, r);
    return t ? t : call_slice(k, r);
}
/* miss.c: an unseen outcome or a new call: limits, then a capture. Gives the first new node. */
step call_miss(call *k, place *at, tree_node *parent, outcome out, tree_node **n);
/* The function captured anew, along what this call has observed up to the end of n (NULL: nothing). NULL: no memory. */
trace *call_trace(call *k, const tree_node *n, const trace_resume *resume);
/* Adds the time since `began` to a total and logs it. */
void call_took(call *k, _Atomic uint64_t *total, const char *stage, const char *what, uint64_t began);
/* graft.c: the capture's new segments as nodes behind parent, in k->fresh. */
step call_graft(call *k, const trace *t, tree_node *parent);
/* supply.c: where the fresh nodes' values come from; fixes their canonical graphs and what each node hands on. */
bp_status call_supply(call *k, tree_node *parent);
/* The function records what it should not: it is eager from now on. Returns STEP_EAGER. */
step call_impure(call *k, const char *reason);
/* build.c: the use of a node, compiled for its list as it is now. */
step call_build(call *k, tree_node *n, segment_use **use);
/* What the backend reads by bp_option: the options, or the mode, which excludes them. */
bp_status call_set_options(call *k, bp_graph_module *gm);
/* Compiles a graph into a segment of a store, which takes over `order`. needs: which placeholders require grad, of a
 * graph whose gradients are asked for; NULL: they are not. With the claim. */
bp_status call_compile(call *k, bp_graph_module *gm, const uint8_t *needs, uint32_t *order, segment *seg);
/* slice.c: a slice_compute_fn, arg a call: by the callable's own chain (C2.2). */
bool call_compute_slice(void *arg, slicer *s, const slice_plan *p, bp_tensor **values);
/* symbols.c: the values that a call gives to symbols */
/* Reads what data tell of symbols on n's path into the call's list. */
bp_status call_tell(call *k, const path_symbol *at, uint32_t n);
/* The value of a symbol that a segment of n's path takes as an input. Borrowed; NULL: the context has the error. */
bp_tensor *call_symbol(call *k, const tree_node *n, ref r);
/* n's end or step with this call's numbers for its symbols: in *own with memory of a, or as it is when it has none.
 * NULL: the context has the error. */
const item *call_settle(call *k, const tree_node *n, arena *a, item *own);
/* run.c */
step call_run_segment(call *k, tree_node *n);
/* outputs.c: n's path gives what its siblings give, where the caller has fixed that (C6.4). n: not a root, whose path
 * is its entry's only one. */
bp_status call_check_outputs(call *k, const tree_node *n);
/* commit.c: the epilogue of a path that has run to its end. */
step call_commit(call *k, const tree_node *n);
/* The same in mid-path: state's outs are given to the caller, a reference each. Nothing is written when it fails. */
bp_status call_commit_state(call *k, const item *state, bp_tensor **made);
/* step.c: a node's opaque step: the commit before it, and the step itself. out: which successors it has. */
step call_step(call *k, tree_node *n, outcome *out);
/* resume.c: the function runs again in replay, and for real behind what this call has observed. STEP_EAGER: that cannot
 * be done, and nothing is written. */
step call_resume(call *k);
/* check.c: check_capture: the function is captured again before a commit, and must record the same. */
step call_recheck(call *k, const tree_node *n);
static inline bool call_may_recheck(const call *k)
{
    return k->g->rechecks || atomic_load_explicit(k->g->check_capture, memory_order_relaxed) != CHECK_CAPTURE_OFF;
}

/* Resolves the backend, and finds or makes the code. */
bp_status callable_attach(bp_ctx *c, bp_callable *g, const bp_compile_options *o, const char *name, const char *file,
                          int32_t line);
/* Runs fn on the context as it is: eagerly, or inlined into a capture. */
bp_status function_run(bp_ctx *c, bp_fn fn, void *user, const bp_args *inputs, bp_outputs *outs);

/* Modes that a function left switched are put back, with a warning. */
void function_restore_modes(bp_ctx *c, const ambient *before, const char *name);

/* -- canonical graphs: results of a node's items, numbered as its canonical graph numbers them -- */
/* The position of r, which n's own items or its recomputed ones make; UINT32_MAX: neither. */
uint32_t node_position(const tree_node *n, ref r);
/* What a node's items may read, numbered for arrays of node_slots: results of its path, inputs, memory under them. */
static inline uint32_t node_slots(const tree_node *n) { return n->end_value + 2 * n->ninputs; }
static inline uint32_t node_slot(const tree_node *n, ref r)
{
    uint32_t before = ref_is_node(r) ? 0 : ref_kind(r) == REF_INPUT ? n->end_value : n->end_value + n->ninputs;
    return before + ref_index(r);
}
/* The value at a position. */
ref node_value_at(const tree_node *n, uint32_t at);
/* The item that makes a value on n's path, or among its recomputed ones. NULL: none. */
const item *path_item_of(tree_node *n, ref r);
#endif
