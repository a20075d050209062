/* Running programs: one C function interprets a text over registers that the host does not see. It is captured by
 * bp_call and runs as it is under bp_run_eager; programs.py has the same interpreter for the model. */
#ifndef TESTS_MODEL_RUN_H
#define TESTS_MODEL_RUN_H
#include "tests/model/census.h"

/* Disabled functions, a row each: OPAQUE(name). What each does is in opaque.c, and in eager.py for the model. */
#define OPAQUE_ROWS(OPAQUE) \
    OPAQUE(print) OPAQUE(count) OPAQUE(mutate) OPAQUE(alias) OPAQUE(same) OPAQUE(stash) OPAQUE(getstash) OPAQUE(draw) \
    OPAQUE(poke) OPAQUE(inside)
enum opaque_kind {
#define OPAQUE(name) OPAQUE_##name,
    OPAQUE_ROWS(OPAQUE)
#undef OPAQUE
    OPAQUE_KINDS
};
enum { STASHED = 3 };

/* What statements reach besides their registers. One for the compiled side, one for eager. */
typedef struct side {
    const program *p;
    bp_ctx *c;
    bool flag;                      /* what impure functions read */
    const double *told;             /* answers to take instead of asking; NULL: ask */
    uint32_t ntold;
    buf *trace;                     /* NULL, or where each statement is noted */
    census *census;                 /* NULL, or where it is noted what the call holds */
    bp_tensor *inputs[MAX_ARGS];    /* of the call, buffers last */
    bp_module *module;              /* has the buffers */
    bp_callable *callables[MAX_FNS]; /* NULL: nested functions run as they are */
    struct fn_user { struct side *side; uint32_t which; } users[MAX_FNS];
    bp_callable *disabled[OPAQUE_KINDS];
    buf effects;                    /* lines of what disabled functions did */
    VEC(bp_tensor *) stash;         /* kept by them, the newest last; only the last STASHED count */
    bool flows;                     /* `if` and `loop` become cond and while_loop where flow.c can make them so */
    bool plain;                     /* then: they are run as C code, with the same results (eager) */
    bool trains, flowed;            /* arguments require grad; the last backward had roots, and succeeded */
    VEC(bp_tensor *) leaves;        /* MAX_ARGS an argument set, or NULL: with their gradients so far */
    buf grads, said;                /* what it gave, as lines; its error */
} side;

/* The interpreter at work: registers and numbers of one function. */
typedef struct {
    side *s;
    bp_ctx *c;
    const text_fn *fn;
    bp_tensor *r[REGISTERS];
    bp_scalar k[NUMBERS];
} run;
/* False: an error is pending, or the capture has ended. */
bool run_block(run *x, const block *b);
/* The sum of a, one element; the element that `sum a` or `mid a`, from operand i on, stand for. */
bp_tensor *run_total(bp_ctx *c, bp_tensor *a);
bp_tensor *run_small(const run *x, const stmt *s, uint32_t i);
/* flow.c. Whether an `if` or a `loop` may stand in a graph: its blocks make values alone. */
bool flow_fits(const stmt *s);
/* Such a statement. The registers that its blocks assign hold their sums, of type f64, behind it. */
bool flow_branch(run *x, const stmt *s);
bool flow_loop(run *x, const stmt *s);

extern const char *const arg_names[MAX_ARGS];
/* The side that runs on this thread: what callables that several threads share work for. NULL: their own. */
extern _Thread_local side *side_here;
void side_init(side *s, const program *p, bp_ctx *c);
/* The captured function; its user pointer is a fn_user. */
void run_captured(bp_ctx *c, bp_frame *f);
/* opaque.c. Makes the disabled callables of s; calls the one of that name: its result, or a where it gives none. */
void opaque_open(side *s);
void opaque_close(side *s);
bp_tensor *opaque_call(side *s, const char *name, bp_tensor *a);
/* Between calls: lets go of all but the last n of the stash. */
void opaque_keep(side *s, uint32_t n);
/* Function 1 of the program on a, twice: its first result. By its callable, where the side has callables. */
bp_tensor *run_nested(side *s, bp_ctx *c, bp_tensor *a);
/* Elements of t, a real one, a blank before each. */
void show_numbers(bp_ctx *c, const bp_tensor *t, buf *out);
/* t as a text: "f[3]/1 0.5 1 2"; a bool's sizes alone. */
void show_tensor(bp_ctx *c, const bp_tensor *t, buf *out);
#endif
