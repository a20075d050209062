/* `if` and `loop` of program texts as control flow in the graph: bp_cond and bp_while_loop.
 *
 * Branches of a cond must give equal types, which blocks of random statements do not: behind such a statement each
 * register that a block assigns holds the sum of what it held, one number of type f64. Run plainly, as eager does, the
 * same is said in C. */
#include "tests/model/run.h"
#include <string.h>

/* -- which --------------------------------------------------------------------------------------------------------- */

static bool is_pure(const stmt *s)
{
    switch (s->kind) {
    case STMT_ASSIGN:
    case STMT_ADD:
    case STMT_MUL:
    case STMT_SUM:
    case STMT_CUMSUM:
    case STMT_CLONE:
    case STMT_INT:
    case STMT_VIEW:
    case STMT_WHERE:
    case STMT_FULL: return true;
    case STMT_IF:
    case STMT_LOOP: return flow_fits(s);
    default: return false;
    }
}

bool flow_fits(const stmt *s)
{
    for (uint32_t b = 0; b < 2; b++)
        for (uint32_t i = 0; i < s->blocks[b].len; i++)
            if (!is_pure(&s->blocks[b].at[i]))
                return false;
    return s->blocks[0].len + s->blocks[1].len > 0;
}

static void mark_assigned(const stmt *s, bool *set)
{
    for (uint32_t b = 0; b < 2; b++)
        for (uint32_t i = 0; i < s->blocks[b].len; i++) {
            const stmt *at = &s->blocks[b].at[i];
            if (at->kind < STMT_ITEM)
                set[at->dst] = true;
            if (at->kind == STMT_LOOP)
                set[at->args[0].index] = true;
            mark_assigned(at, set);
        }
}

/* -- as a statement of C ------------------------------------------------------------------------------------------- */

typedef struct { run *x; const stmt *s; bool set[REGISTERS]; } flow;

/* The registers that are assigned, as numbers; how many. */
static uint32_t give_numbers(const flow *f, const run *x, bp_tensor **out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < REGISTERS; i++)
        if (f->set[i])
            out[n++] = bp_mul(x->c, run_total(x->c, x->r[i]), 1.0);
    return n;
}

static void take_numbers(const flow *f, run *x, bp_tensor *const *from)
{
    for (uint32_t i = 0; i < REGISTERS; i++)
        if (f->set[i])
            x->r[i] = *from++;
}

static bool settle(const flow *f, run *x)
{
    bp_tensor *numbers[REGISTERS];
    give_numbers(f, x, numbers);
    take_numbers(f, x, numbers);
    return bp_error(x->c) == BP_OK;
}

static bool branch_plainly(flow *f, bp_tensor *less)
{
    run *x = f->x;
    return run_block(x, &f->s->blocks[!bp_is_true(x->c, less)]) && settle(f, x);
}

static bool loop_plainly(flow *f, bp_tensor *t)
{
    run *x = f->x;
    bp_ctx *c = x->c;
    int64_t most = bp_int_of_(f->s->args[2].number);
    if (!settle(f, x))
        return false;
    for (int64_t k = 0; k < most && bp_is_true(c, bp_lt(c, t, 3)); k++) {
        t = bp_add(c, bp_mul(c, t, 2), 1);
        if (!run_block(x, &f->s->blocks[0]) || !settle(f, x))
            return false;
    }
    x->r[f->s->args[0].index] = t;
    return bp_error(c) == BP_OK;
}

/* -- in the graph -------------------------------------------------------------------------------------------------- */

/* A function's own registers, so that what a sub-graph assigns stays in it. */
static run inside(const flow *f, bp_ctx *c, bp_tensor *const *registers)
{
    run y = *f->x;
    y.c = c;
    memcpy(y.r, registers, sizeof y.r);
    return y;
}

static void run_branch(const flow *f, bp_ctx *c, bp_tensor *const *in, uint32_t which, bp_tensor **out)
{
    run y = inside(f, c, in);
    if (run_block(&y, &f->s->blocks[which]))
        give_numbers(f, &y, out);
}

static void branch_true(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)
{
    (void)n, (void)nout;
    run_branch(user, c, in, 0, out);
}

static void branch_false(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)
{
    (void)n, (void)nout;
    run_branch(user, c, in, 1, out);
}

/* Carried: the sum, how often the loop has run, the numbers; behind them come the registers. */
static void loop_goes_on(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)
{
    const flow *f = user;
    (void)n, (void)nout;
    out[0] = bp_logical_and(c, bp_lt(c, in[0], 3), bp_lt(c, in[1], f->s->args[2].number));
}

static void loop_body(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)
{
    const flow *f = user;
    run y = inside(f, c, in + nout);
    (void)n;
    take_numbers(f, &y, in + 2);
    out[0] = bp_add(c, bp_mul(c, in[0], 2), 1);
    out[1] = bp_add(c, in[1], 1);
    if (run_block(&y, &f->s->blocks[0]))
        give_numbers(f, &y, out + 2);
}

static bool loop_in_graph(flow *f, bp_tensor *t)
{
    run *x = f->x;
    bp_ctx *c = x->c;
    bp_tensor *carried[REGISTERS + 2] = {t, bp_full(c, BP_DIMS(1), 0, .dtype = BP_I64)}, *out[REGISTERS + 2];
    uint32_t n = 2 + give_numbers(f, x, carried + 2);
    if (bp_while_loop(c, loop_goes_on, loop_body, f, carried, n, x->r, REGISTERS, out) != BP_OK)
        return false;
    take_numbers(f, x, out + 2);
    x->r[f->s->args[0].index] = out[0];
    return true;
}

static uint32_t count(const flow *f)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < REGISTERS; i++)
        n += f->set[i];
    return n;
}

/* -- statements ---------------------------------------------------------------------------------------------------- */

bool flow_branch(run *x, const stmt *s)
{
    flow f = {.x = x, .s = s};
    bp_tensor *less = bp_lt(x->c, run_small(x, s, 0), s->args[2].number), *out[REGISTERS];
    mark_assigned(s, f.set);
    if (x->s->plain)
        return branch_plainly(&f, less);
    if (bp_cond(x->c, less, branch_true, branch_false, &f, x->r, REGISTERS, out, count(&f)) != BP_OK)
        return false;
    take_numbers(&f, x, out);
    return true;
}

bool flow_loop(run *x, const stmt *s)
{
    flow f = {.x = x, .s = s};
    bp_tensor *t = bp_mul(x->c, run_total(x->c, x->r[s->args[1].index]), 1.0);
    mark_assigned(s, f.set);
    return x->s->plain ? loop_plainly(&f, t) : loop_in_graph(&f, t);
}
