/* Sizes as a C function sees them: bp_size, arithmetic, questions, requirements; eager, captured and resumed.
 *
 * A symbol that the function holds names its capture, so that one that was kept beyond it is told from those of
 * another. A question on what only data tell is a value break: the number is asked for, and known behind it. */
#include "host/capture/trace.h"
#include <inttypes.h>

enum { DIM_ID_BITS = 20, DIM_EPOCH_BITS = 11 };
#define DIM_ID_MASK ((1u << DIM_ID_BITS) - 1)

static uint32_t mark_of(const trace *t)
{
    return (t->epoch & ((1u << DIM_EPOCH_BITS) - 1)) << DIM_ID_BITS;
}

bp_dim trace_give_dim(const trace *t, bp_dim d)
{
    if (d.sym >> DIM_ID_BITS) {
        trace_stop((trace *)(uintptr_t)t, TRACE_DECLINED, "more than %u expressions of sizes", DIM_ID_MASK);
        return dim_const(0);
    }
    if (d.sym)
        d.sym |= mark_of(t);
    return d;
}

static bool is_of(const trace *t, uint32_t sym)
{
    return (sym & ~DIM_ID_MASK) == mark_of(t);
}

static bool foreign(bp_ctx *c, bp_dim d)
{
    if (d.sym & VALUE_SYMBOL) {
        ctx_fail(c, BP_UNIMPLEMENTED, "a number that is no integer stands where a size must be known");
        return false;
    }
    ctx_fail(c, BP_FAILED_PRECONDITION, "a symbolic size of a capture that has ended is used");
    diag_hint(&c->diag, "what bp_size gives lives for the call: ask the tensor again, or take bp_size_int of it");
    return false;
}

bool trace_take_dim(trace *t, bp_dim *d)
{
    if (d->sym && !is_of(t, d->sym))
        return foreign(t->c, *d);
    d->sym &= DIM_ID_MASK;
    return sym_is_dim(t->env, *d) || foreign(t->c, *d);
}

bool capture_real_dim(bp_ctx *c, bp_dim *d)
{
    const capture_slot *slot = c->slot[CTX_CAPTURE];
    for (trace *t = slot ? slot->resumed : NULL; d->sym && t; t = t->outer) {
        int64_t v;
        bp_dim own = {d->value, d->sym & DIM_ID_MASK, 0};
        if (!is_of(t, d->sym))
            continue;
        if (!trace_dim_value(t, own, &v))
            break;
        *d = dim_const(v);
    }
    return !d->sym || foreign(c, *d);
}

/* -- arguments of operators ---------------------------------------------------------------------------------------- */

static bool take_leaf(void *arg, bp_value *leaf)
{
    return leaf->kind != BP_VALUE_INT || trace_take_dim(arg, &leaf->v.dim);
}

const bp_value *trace_take_args(trace *t, const bp_value *args, uint32_t nargs)
{
    bool any = false;
    for (uint32_t i = 0; i < nargs; i++)
        any |= value_any(&args[i], value_is_symbol);
    if (!any)
        return args;
    bp_value *to = arena_array(&t->c->scratch, nargs, sizeof *to);
    for (uint32_t i = 0; to && i < nargs; i++)
        if (!value_map(t->c, &args[i], take_leaf, t, &to[i]))
            return NULL;
    return to ? to : (trace_nomem(t), NULL);
}

/* -- what data tell ------------------------------------------------------------------------------------------------ */

typedef struct { trace *t; bool ok; } asking;

/* A symbol that a number tells is asked for: from here on it is that number. */
static void ask_symbol(void *arg, uint32_t k)
{
    asking *a = arg;
    trace *t = a->t;
    bp_dim own = sym_dim_of(t->env, k);
    outcome o;
    for (uint32_t i = t->symbols.len; a->ok && i-- > 0;) {
        if (t->symbols.at[i].symbol != k)
            continue;
        if (dim_is_const(sym_simplify(t->env, t->c, own)) || t->symbols.at[i].kind != SYM_VALUE)
            return;
        a->ok = trace_ask_ref(t, ASK_INT, t->symbols.at[i].value, &o);
        bp_dim is = a->ok ? dim_compare(t->c, DIM_EQ, own, dim_const(outcome_int(o))) : own;
        a->ok = a->ok && sym_assume(t->env, t->c, is, SYM_GIVEN);
        return;
    }
}

/* Whether a question can be asked: what only data tell is known then, or proven. */
static bool settle(trace *t, bp_dim d)
{
    asking a = {t, true};
    if (d.sym && t->symbols.len && sym_is_unbacked(t->env, d))
        sym_each_symbol(t->env, d, ask_symbol, &a);
    return a.ok;
}

static bool settle_question(trace *t, enum dim_rel rel, bp_dim a, bp_dim b)
{
    return dim_prove(rel, a, b) != DIM_UNKNOWN || (settle(t, a) && settle(t, b));
}

/* -- public -------------------------------------------------------------------------------------------------------- */

static bool take(bp_ctx *c, bp_dim *d)
{
    trace *t = capture_current(c);
    if (!ctx_ok(c))
        return false;
    return !d->sym || (t ? trace_take_dim(t, d) : capture_real_dim(c, d));
}

static bp_dim give(bp_ctx *c, bp_dim d)
{
    const trace *t = capture_current(c);
    return !ctx_ok(c) ? dim_const(0) : d.sym && t ? trace_give_dim(t, sym_simplify(t->env, c, d)) : d;
}

bp_dim bp_size(bp_ctx *c, const bp_tensor *t, int64_t d)
{
    if (!ctx_ok(c))
        return dim_const(0);
    if (!t || !t->rank) {
        ctx_fail(c, BP_INVALID_ARGUMENT, t ? "a tensor of rank 0 has no sizes" : "the tensor is NULL");
        return dim_const(0);
    }
    int64_t at = layout_wrap_dim(c, d, t->rank);
    return ctx_ok(c) ? give(c, t->sizes[at]) : dim_const(0);
}

int64_t bp_size_int(bp_ctx *c, bp_dim d)
{
    trace *t = capture_current(c);
    if (!take(c, &d) || (t && !settle(t, d)))
        return 0;
    return dim_int(c, t && d.sym ? sym_simplify(t->env, c, d) : d);
}

typedef bp_dim (*arithmetic)(bp_ctx *c, bp_dim a, bp_dim b);

static bp_dim compute(bp_ctx *c, arithmetic fn, bp_dim a, bp_dim b)
{
    return take(c, &a) && take(c, &b) ? give(c, fn(c, a, b)) : dim_const(0);
}

bp_dim bp_dim_add(bp_ctx *c, bp_dim a, bp_dim b)
{
    return compute(c, dim_add, a, b);
}

bp_dim bp_dim_sub(bp_ctx *c, bp_dim a, bp_dim b)
{
    return compute(c, dim_sub, a, b);
}

bp_dim bp_dim_mul(bp_ctx *c, bp_dim a, bp_dim b)
{
    return compute(c, dim_mul, a, b);
}

bp_dim bp_dim_floordiv(bp_ctx *c, bp_dim a, bp_dim b)
{
    return compute(c, dim_floordiv, a, b);
}

bp_dim bp_dim_mod(bp_ctx *c, bp_dim a, bp_dim b)
{
    return compute(c, dim_mod, a, b);
}

bp_dim bp_dim_min(bp_ctx *c, bp_dim a, bp_dim b)
{
    return compute(c, dim_min, a, b);
}

bp_dim bp_dim_max(bp_ctx *c, bp_dim a, bp_dim b)
{
    return compute(c, dim_max, a, b);
}

/* -- questions ----------------------------------------------------------------------------------------------------- */

static bool prepare(bp_ctx *c, enum dim_rel rel, bp_dim *a, bp_dim *b, const char *file, int32_t line)
{
    trace *t = capture_current(c);
    c->site_file = file;
    c->site_line = line;
    if (!take(c, a) || !take(c, b))
        return false;
    if (!t || !(a->sym | b->sym))
        return true;
    if (!settle_question(t, rel, *a, *b))
        return false;
    *a = sym_simplify(t->env, c, *a);
    *b = sym_simplify(t->env, c, *b);
    return ctx_ok(c);
}

static bool compare(bp_ctx *c, enum dim_rel rel, bp_dim a, bp_dim b)
{
    switch (rel) {
    case DIM_EQ: return dim_eq(a, b);
    case DIM_NE: return !dim_eq(a, b);
    case DIM_LT: return dim_lt(a, b);
    case DIM_LE: return dim_le(a, b);
    }
    (void)c;
    return false;
}

static int ask(bp_ctx *c, enum dim_rel rel, bp_dim a, bp_dim b, const char *file, int32_t line)
{
    bool r = prepare(c, rel, &a, &b, file, line) && compare(c, rel, a, b);
    if (!ctx_ok(c) && file)
        diag_while(&c->diag, "comparing sizes (%s:%d)", file, line);
    return r && ctx_ok(c);
}

int bp_dim_eq_at(bp_ctx *c, bp_dim a, bp_dim b, const char *file, int32_t line)
{
    return ask(c, DIM_EQ, a, b, file, line);
}

int bp_dim_ne_at(bp_ctx *c, bp_dim a, bp_dim b, const char *file, int32_t line)
{
    return ask(c, DIM_NE, a, b, file, line);
}

int bp_dim_lt_at(bp_ctx *c, bp_dim a, bp_dim b, const char *file, int32_t line)
{
    return ask(c, DIM_LT, a, b, file, line);
}

int bp_dim_le_at(bp_ctx *c, bp_dim a, bp_dim b, const char *file, int32_t line)
{
    return ask(c, DIM_LE, a, b, file, line);
}

int bp_dim_gt_at(bp_ctx *c, bp_dim a, bp_dim b, const char *file, int32_t line)
{
    return ask(c, DIM_LT, b, a, file, line);
}

int bp_dim_ge_at(bp_ctx *c, bp_dim a, bp_dim b, const char *file, int32_t line)
{
    return ask(c, DIM_LE, b, a, file, line);
}

/* -- requirements -------------------------------------------------------------------------------------------------- */

static const char *const signs[] = {
    [BP_DIM_EQ] = "==", [BP_DIM_NE] = "!=", [BP_DIM_LT] = "<", [BP_DIM_LE] = "<=", [BP_DIM_GT] = ">", [BP_DIM_GE] = ">="
};

static void put(bp_ctx *c, bp_dim d, buf *out)
{
    const trace *t = capture_current(c);
    sym_print(t ? t->env : NULL, d, true, out);
}

static bp_status fail(bp_ctx *c, int32_t rel, bp_dim a, bp_dim b, const char *message)
{
    buf text = {0};
    put(c, a, &text);
    buf_printf(&text, " %s ", signs[rel]);
    put(c, b, &text);
    ctx_fail(c, BP_INVALID_ARGUMENT, "%s%sbp_check: %s does not hold", message ? message : "", message ? ": " : "",
             buf_text(&text));
    buf_fini(&text);
    return c->diag.code;
}

bp_status bp_check_at(bp_ctx *c, int32_t rel, bp_dim a, bp_dim b, const char *message, const char *file, int32_t line)
{
    static const enum dim_rel rels[] = {[BP_DIM_EQ] = DIM_EQ, [BP_DIM_NE] = DIM_NE, [BP_DIM_LT] = DIM_LT,
                                        [BP_DIM_LE] = DIM_LE, [BP_DIM_GT] = DIM_LT, [BP_DIM_GE] = DIM_LE};
    if (!ctx_ok(c))
        return c->diag.code;
    if (rel < BP_DIM_EQ || rel > BP_DIM_GE)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "bp_check: %d is no relation", (int)rel);
    c->site_file = file;
    c->site_line = line;
    bool swaps = rel == BP_DIM_GT || rel == BP_DIM_GE;
    if (take(c, &a) && take(c, &b) && !dim_require(rels[rel], swaps ? b : a, swaps ? a : b) && ctx_ok(c))
        fail(c, rel, a, b, message);
    if (!ctx_ok(c) && file)
        diag_while(&c->diag, "checking sizes (%s:%d)", file, line);
    return c->diag.code;
}
