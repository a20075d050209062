/* The interpreter of program texts. What a statement means is in README.md; every operator call below is one that the
 * model makes too, so that both record the same graphs. */
#include "tests/model/run.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const arg_names[MAX_ARGS] = {"w", "x", "y", "z"};

_Thread_local side *side_here;

void side_init(side *s, const program *p, bp_ctx *c)
{
    *s = (side){.p = p, .c = c, .module = bp_module_new(c)};
    for (uint32_t i = 0; i < p->nfns; i++)
        s->users[i] = (struct fn_user){s, i};
}

/* -- operands ------------------------------------------------------------------------------------------------------ */

/* Sizes stay symbolic under capture; a question on them is a guard. */
static bp_dim size(const run *x, const bp_tensor *t)
{
    return bp_size(x->c, t, 0);
}

static bool is_one(const run *x, const bp_tensor *t)
{
    return bp_dim_eq(x->c, size(x, t), bp_dim_of(1));
}

static bool fits(const run *x, const bp_tensor *b, const bp_tensor *a)
{
    return is_one(x, b) || bp_dim_eq(x->c, size(x, b), size(x, a));
}

static bp_tensor *reg(const run *x, const stmt *s, uint32_t i)
{
    return x->r[s->args[i].index];
}

static bp_scalar number(const run *x, const stmt *s, uint32_t i)
{
    return s->args[i].kind == OPERAND_K ? x->k[s->args[i].index] : s->args[i].number;
}

static bool is_register(const stmt *s, uint32_t i)
{
    return s->args[i].kind == OPERAND_REGISTER || s->args[i].kind == OPERAND_COPY;
}

/* A register that does not fit beside a stands for a itself. */
static bp_tensor *beside(const run *x, const stmt *s, uint32_t i, bp_tensor *a)
{
    bp_tensor *b = reg(x, s, i);
    return fits(x, b, a) || is_one(x, a) ? b : a;
}

/* Elements that do not lie side by side. */
static bool is_spread(const run *x, const bp_tensor *t)
{
    return !is_one(x, t) && bp_tensor_stride(t, 0) != 1;
}

/* What is read while a is written: of size 1 or a's. A copy, where c3 says so or elements lie apart: then operators in
 * place do not notice that they read what they write. */
static bp_tensor *into(const run *x, const stmt *s, uint32_t i, bp_tensor *a)
{
    bp_tensor *b = reg(x, s, i);
    b = fits(x, b, a) ? b : a;
    return s->args[i].kind == OPERAND_COPY || is_spread(x, a) || is_spread(x, b) ? bp_clone(x->c, b) : b;
}

static int64_t whole(bp_scalar k)
{
    return bp_int_of_(k);
}

/* n elements from `from` on. */
static bp_tensor *slice(bp_ctx *c, bp_tensor *a, bp_dim from, bp_dim n, int64_t step)
{
    bp_dim last = bp_dim_mul(c, bp_dim_sub(c, n, bp_dim_of(1)), bp_dim_of(step));
    bp_dim end = bp_dim_add(c, bp_dim_add(c, from, last), bp_dim_of(1));
    return bp_slice(c, a, .dim = 0, .start = BP_SCALAR(from), .end = BP_SCALAR(end), .step = BP_SCALAR(step));
}

static bp_tensor *element(bp_ctx *c, bp_tensor *a, bp_dim at)
{
    return slice(c, a, at, bp_dim_of(1), 1);
}

bp_tensor *run_total(bp_ctx *c, bp_tensor *a)
{
    return bp_sum(c, a, BP_DIMS(0), .keepdim = 1);
}

/* One element of a, by the word in front: its middle or its sum. */
static bp_tensor *middle(const run *x, bp_tensor *a)
{
    return is_one(x, a) ? a : element(x->c, a, bp_dim_floordiv(x->c, size(x, a), bp_dim_of(2)));
}

bp_tensor *run_small(const run *x, const stmt *s, uint32_t i)
{
    bp_tensor *a = reg(x, s, i + 1);
    return strcmp(s->args[i].name, "sum") ? middle(x, a) : run_total(x->c, a);
}

static bp_tensor *to_int(bp_ctx *c, bp_tensor *a)
{
    return bp_tensor_dtype(a) == BP_I64 ? a : bp_to(c, a, BP_I64);
}

/* -- questions ----------------------------------------------------------------------------------------------------- */

static bool next_told(run *x, double *v)
{
    if (!x->s->ntold)
        return false;
    *v = *x->s->told++;
    x->s->ntold--;
    return true;
}

static bool is_true(run *x, bp_tensor *t)
{
    double v;
    census_ask(x->s->census, CENSUS_ASKS_BOOL);
    return next_told(x, &v) ? v != 0 : bp_is_true(x->c, t);
}

static bp_scalar ask_item(run *x, const stmt *s)
{
    double v;
    bp_tensor *t = to_int(x->c, run_small(x, s, 0));
    census_ask(x->s->census, CENSUS_ASKS_INT);
    return bp_scalar_int(next_told(x, &v) ? (int64_t)v : bp_item_int(x->c, t));
}

static bp_scalar ask_float(run *x, const stmt *s)
{
    double v;
    bp_tensor *t = bp_mul(x->c, run_small(x, s, 0), 1.0);
    census_ask(x->s->census, CENSUS_ASKS_FLOAT);
    if (!next_told(x, &v))
        v = bp_item_float(x->c, t);
    return bp_scalar_float(fabs(v) < 8 ? v : 1.5);
}

/* -- values -------------------------------------------------------------------------------------------------------- */

static bp_tensor *two(run *x, const stmt *s, bp_tensor *a)
{
    bool adds = s->kind == STMT_ADD;
    if (is_register(s, 1)) {
        bp_tensor *b = beside(x, s, 1, a);
        return adds ? bp_add(x->c, a, b) : bp_mul(x->c, a, b);
    }
    return adds ? bp_add(x->c, a, number(x, s, 1)) : bp_mul(x->c, a, number(x, s, 1));
}

static bp_tensor *view(const run *x, const stmt *s, bp_tensor *a)
{
    bp_ctx *c = x->c;
    int64_t step = whole(s->args[2].number) % 2 + 1;
    bp_dim n = size(x, a), one = bp_dim_of(1), off = bp_dim_mod(c, bp_dim_of(whole(s->args[1].number)), n);
    bp_dim behind = bp_dim_sub(c, bp_dim_sub(c, n, off), one);
    return slice(c, a, off, bp_dim_add(c, bp_dim_floordiv(c, behind, bp_dim_of(step)), one), step);
}

/* An element at an index that may lie beyond the size: then the operator says so. */
static bp_tensor *risky(run *x, const stmt *s, bp_tensor *a)
{
    bp_scalar k = number(x, s, 1);
    int64_t at = k.kind == BP_SCALAR_INT ? (k.v.i % 5 + 5) % 5 : 0;
    return bp_dim_lt(x->c, bp_dim_of(at), size(x, a)) ? element(x->c, a, bp_dim_of(at)) : bp_select(x->c, a, 0, at);
}

static bp_tensor *choose(run *x, const stmt *s, bp_tensor *a)
{
    bp_tensor *less = bp_lt(x->c, a, number(x, s, 1));
    return bp_where(x->c, less, a, beside(x, s, 2, a));
}

static bp_tensor *look_up(run *x, const stmt *s, bp_tensor *a)
{
    bp_tensor *at = to_int(x->c, element(x->c, reg(x, s, 1), bp_dim_of(0)));
    return bp_index_select(x->c, a, 0, at);
}

static bp_tensor *full(run *x, const stmt *s, bp_tensor *a)
{
    return bp_full(x->c, BP_DIMS(size(x, a)), number(x, s, 1));
}

static bp_tensor *draw(run *x, const stmt *s)
{
    census_event(x->s->census, CENSUS_RANDOM_BEFORE);
    return bp_rand(x->c, BP_DIMS(whole(s->args[0].number)));
}

static void run_fn(side *s, bp_ctx *c, uint32_t which, bp_tensor *const *args, bp_tensor **given);

/* A nested callable: by bp_call where the side has callables, else its function as it is. Its first result. */
static bp_tensor *call_fn(side *s, bp_ctx *c, uint32_t which, bp_tensor *const *args, uint32_t n)
{
    bp_value values[MAX_ARGS];
    bp_tensor *given[4] = {0};
    bp_outputs outs = {0}; /* empty: paths may give results of several types (C6.4) */
    for (uint32_t i = 0; i < n; i++)
        values[i] = bp_arg_of_tensor(args[i]);
    census_nest(s->census, 1);
    if (s->callables[0]) {
        bp_args in = {values, n};
        if (bp_call(c, s->callables[which], &in, &outs) == BP_OK && outs.n)
            given[0] = outs.at[0];
    } else {
        run_fn(s, c, which, args, given);
    }
    census_nest(s->census, -1);
    return given[0];
}

bp_tensor *run_nested(side *s, bp_ctx *c, bp_tensor *a)
{
    bp_tensor *const two[] = {a, a};
    census_is(s->census, CENSUS_INSIDE_DISABLED);
    return call_fn(s, c, 1, two, 2);
}

static bp_tensor *call(run *x, const stmt *s)
{
    bp_tensor *args[MAX_ARGS];
    uint32_t n = s->nargs - 1;
    for (uint32_t i = 0; i < n && i < MAX_ARGS; i++)
        args[i] = reg(x, s, i + 1);
    return call_fn(x->s, x->c, (uint32_t)whole(s->args[0].number), args, n);
}

static bp_tensor *value(run *x, const stmt *s)
{
    bp_tensor *a = s->nargs && is_register(s, 0) ? reg(x, s, 0) : NULL;
    switch (s->kind) {
    case STMT_ASSIGN: return a;
    case STMT_ADD:
    case STMT_MUL: return two(x, s, a);
    case STMT_SUM: return run_total(x->c, a);
    case STMT_CUMSUM: return bp_cumsum(x->c, a, 0);
    case STMT_CLONE: return bp_clone(x->c, a);
    case STMT_INT: return to_int(x->c, a);
    case STMT_VIEW: return view(x, s, a);
    case STMT_RISKY: return risky(x, s, a);
    case STMT_WHERE: return choose(x, s, a);
    case STMT_INDEX: return look_up(x, s, a);
    case STMT_FULL: return full(x, s, a);
    case STMT_RAND: return draw(x, s);
    case STMT_OPAQUE: return opaque_call(x->s, s->args[0].name, reg(x, s, 1));
    default: return call(x, s);
    }
}

/* -- writes -------------------------------------------------------------------------------------------------------- */

/* An operator in place; where its result has another type, copy_ converts it. */
static void two_inplace(run *x, const stmt *s, bp_tensor *a)
{
    bp_ctx *c = x->c;
    bool adds = s->kind == STMT_ADD_INPLACE;
    if (is_register(s, 1)) {
        bp_tensor *b = into(x, s, 1, a);
        if (bp_tensor_dtype(a) == BP_I64 && bp_tensor_dtype(b) == BP_F64)
            bp_copy_inplace(c, a, adds ? bp_add(c, a, b) : bp_mul(c, a, b));
        else
            adds ? bp_add_inplace(c, a, b) : bp_mul_inplace(c, a, b);
        return;
    }
    bp_scalar k = number(x, s, 1);
    if (bp_tensor_dtype(a) == BP_I64 && k.kind == BP_SCALAR_FLOAT)
        bp_copy_inplace(c, a, adds ? bp_add(c, a, k) : bp_mul(c, a, k));
    else
        adds ? bp_add_inplace(c, a, k) : bp_mul_inplace(c, a, k);
}

static void note_write(const run *x, const bp_tensor *a)
{
    const side *s = x->s;
    census_write(s->census, a, x->r, s->inputs, s->p->fns[0].nargs, s->p->nbuffers);
}

static void swap(const run *x, bp_tensor *a, bp_tensor *b)
{
    bp_ctx *c = x->c;
    if (!bp_dim_eq(c, size(x, a), size(x, b)))
        return;
    note_write(x, a);
    note_write(x, b);
    bp_tensor *old = bp_clone(c, a);
    bp_copy_inplace(c, a, bp_clone(c, b));
    bp_copy_inplace(c, b, old);
}

static void copy(run *x, const stmt *s)
{
    bp_tensor *a = reg(x, s, 0);
    note_write(x, a);
    bp_copy_inplace(x->c, a, into(x, s, 1, a));
}

/* -- control ------------------------------------------------------------------------------------------------------- */

static bool branch(run *x, const stmt *s)
{
    if (x->s->flows && flow_fits(s))
        return flow_branch(x, s);
    bp_tensor *less = bp_lt(x->c, run_small(x, s, 0), s->args[2].number);
    return run_block(x, &s->blocks[!is_true(x, less)]);
}

/* The same version asked twice, and a constant. */
static void again(run *x, const stmt *s)
{
    bp_ctx *c = x->c;
    bp_tensor *a = reg(x, s, 1), *less = bp_lt(c, middle(x, a), 0.25);
    if (is_true(x, less) && is_true(x, less) && is_true(x, bp_lt(c, bp_full(c, BP_DIMS(1), 0.5), 1)))
        x->r[s->args[0].index] = bp_mul(c, a, -1);
}

static bool loop(run *x, const stmt *s)
{
    if (x->s->flows && flow_fits(s))
        return flow_loop(x, s);
    bp_ctx *c = x->c;
    bp_tensor *t = run_total(c, reg(x, s, 1));
    for (int64_t k = 0; k < whole(s->args[2].number) && is_true(x, bp_lt(c, t, 3)); k++) {
        t = bp_add(c, bp_mul(c, t, 2), 1);
        if (!run_block(x, &s->blocks[0]))
            return false;
    }
    x->r[s->args[0].index] = t;
    return true;
}

static bool times(run *x, const stmt *s)
{
    int64_t n = (whole(number(x, s, 0)) % 3 + 3) % 3;
    while (n-- > 0)
        if (!run_block(x, &s->blocks[0]))
            return false;
    return true;
}

static bool without_grad(run *x, const stmt *s)
{
    int old = bp_set_grad_enabled(x->c, 0);
    census_is(x->s->census, CENSUS_GRAD_INSIDE);
    bool ok = run_block(x, &s->blocks[0]);
    bp_set_grad_enabled(x->c, old);
    return ok;
}

/* An impure function. */
static bool beyond_guards(run *x, const stmt *s)
{
    if (!x->s->flag)
        return true;
    census_is(x->s->census, CENSUS_IMPURE);
    return run_block(x, &s->blocks[0]);
}

/* What is made inside dies with the scope, and registers are what they were. */
static bool scope(run *x, const stmt *s)
{
    bp_tensor *before[REGISTERS];
    memcpy(before, x->r, sizeof before);
    census_is(x->s->census, CENSUS_SCOPE);
    bp_scope_begin(x->c);
    bool ok = run_block(x, &s->blocks[0]);
    bp_scope_end(x->c);
    memcpy(x->r, before, sizeof before);
    return ok;
}

static bool does(run *x, const stmt *s)
{
    switch (s->kind) {
    case STMT_ADD_INPLACE:
    case STMT_MUL_INPLACE: note_write(x, reg(x, s, 0)); two_inplace(x, s, reg(x, s, 0)); return true;
    case STMT_COPY: copy(x, s); return true;
    case STMT_SWAP: swap(x, reg(x, s, 0), reg(x, s, 1)); return true;
    case STMT_IF: return branch(x, s);
    case STMT_AGAIN: again(x, s); return true;
    case STMT_LOOP: return loop(x, s);
    case STMT_SWITCH: return run_block(x, &s->blocks[whole(number(x, s, 0)) & 1]);
    case STMT_TIMES: return times(x, s);
    case STMT_FLAG: return beyond_guards(x, s);
    case STMT_NOGRAD: return without_grad(x, s);
    case STMT_SCOPE: return scope(x, s);
    case STMT_PRINT: opaque_call(x->s, "print", reg(x, s, 0)); return true;
    default: return true;
    }
}

static void note(const run *x, const stmt *s)
{
    buf *out = x->s->trace;
    if (!out)
        return;
    buf_printf(out, "    %s", s->line);
    if (s->kind < STMT_ITEM) {
        buf_puts(out, "   # ");
        show_tensor(x->c, x->r[s->dst], out);
    }
    buf_putc(out, '\n');
}

bool run_block(run *x, const block *b)
{
    for (uint32_t i = 0; i < b->len; i++) {
        const stmt *s = &b->at[i];
        bool ok = true;
        if (s->kind == STMT_ITEM)
            x->k[s->dst] = ask_item(x, s);
        else if (s->kind == STMT_FLOAT)
            x->k[s->dst] = ask_float(x, s);
        else if (s->kind < STMT_ITEM)
            x->r[s->dst] = value(x, s);
        else
            ok = does(x, s);
        if (!ok || bp_error(x->c) != BP_OK)
            return false;
        note(x, s);
    }
    return true;
}

/* -- functions ----------------------------------------------------------------------------------------------------- */

static void run_fn(side *s, bp_ctx *c, uint32_t which, bp_tensor *const *args, bp_tensor **given)
{
    const text_fn *fn = &s->p->fns[which];
    run x = {.s = s, .c = c, .fn = fn, .k = {bp_scalar_int(2), bp_scalar_int(2)}};
    for (uint32_t i = 0; i < REGISTERS; i++)
        x.r[i] = args[i % fn->nargs];
    if (bp_error(c) != BP_OK || !run_block(&x, &fn->body))
        return;
    for (uint32_t i = 0; i < fn->ngiven; i++)
        given[i] = x.r[fn->given[i]];
}

void run_captured(bp_ctx *c, bp_frame *f)
{
    const struct fn_user *u = bp_user(f);
    side *s = side_here ? side_here : u->side;
    const text_fn *fn = &s->p->fns[u->which];
    bp_tensor *args[MAX_ARGS], *given[4] = {0};
    uint32_t nargs = fn->nargs - (u->which ? 0 : s->p->nbuffers);
    for (uint32_t i = 0; i < fn->nargs; i++)
        args[i] = i < nargs ? bp_arg(f, i, arg_names[i]) : bp_attr(f, s->module, arg_names[i]);
    run_fn(s, c, u->which, args, given);
    for (uint32_t i = 0; i < fn->ngiven && bp_error(c) == BP_OK; i++)
        bp_return(f, given[i]);
}

void show_numbers(bp_ctx *c, const bp_tensor *t, buf *out)
{
    int64_t n = bp_tensor_numel(t), ints[64];
    double floats[64];
    bool is_float = bp_tensor_dtype(t) == BP_F64;
    if (n > 64 || bp_tensor_read(c, t, is_float ? (void *)floats : (void *)ints, (size_t)n * 8) != BP_OK) {
        buf_printf(out, " unreadable: %s", bp_error_message(c));
        bp_error_clear(c);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        buf_putc(out, ' ');
        buf_double(out, is_float ? floats[i] : (double)ints[i]);
    }
}

void show_tensor(bp_ctx *c, const bp_tensor *t, buf *out)
{
    if (!t) {
        buf_puts(out, "NULL");
        return;
    }
    bp_dtype d = bp_tensor_dtype(t);
    int64_t n = bp_tensor_rank(t) ? bp_tensor_size(t, 0) : 1;
    buf_printf(out, "%s[%lld]/%lld", d == BP_F64 ? "f" : d == BP_I64 ? "i" : "b", (long long)n,
               (long long)(bp_tensor_rank(t) ? bp_tensor_stride(t, 0) : 1));
    if (d != BP_BOOL && bp_error(c) == BP_OK)
        show_numbers(c, t, out);
}
