/* Value queries: bp_is_true and kin, eager and captured. */
#include "host/capture/sub.h"
#include <float.h>
#include <stdio.h>

/* -- under capture ------------------------------------------------------------------------------------------------- */

static map_value *asked_before(trace *t, enum ask_kind kind, ref r)
{
    return map_get_u64(&t->asked, (uint64_t)kind << 32 | r);
}

static bool remember(trace *t, enum ask_kind kind, ref r, outcome o)
{
    map_value *v = map_put_u64(&t->asked, (uint64_t)kind << 32 | r, NULL);
    if (!v || !vec_push(&t->answers, o))
        return trace_nomem(t), false;
    v->u = t->answers.len;
    return true;
}

static void refuse_break(trace *t, enum ask_kind kind)
{
    bp_ctx *c = t->c;
    trace_stop(t, TRACE_REFUSED, "fullgraph: %s at %s:%d asks for a value that is known at run time only",
               ask_name(kind), c->site_file ? c->site_file : "?", c->site_line);
    diag_hint(&c->diag, "keep the choice on tensors (bp_where), or compile without fullgraph");
}

/* The answer of a slice. An error that only the data explain says nothing about the path: it ends at this break. */
static bool guess(trace *t, enum ask_kind kind, ref r, outcome *o)
{
    const bp_tensor *v = slice_value(&t->slices, r);
    if (v && outcome_read(t->c, kind, v, o) == BP_OK) {
        if (!vec_push(&t->guesses, *o))
            return trace_nomem(t), false;
        return true;
    }
    char why[sizeof t->c->diag.message];
    snprintf(why, sizeof why, "%s", t->c->diag.message);
    diag_clear(&t->c->diag);
    trace_stop(t, TRACE_AT_BREAK, "%s", why);
    return false;
}

/* A break: the path is cut here; the answer comes from the log, else from a slice. */
static bool break_at(trace *t, enum ask_kind kind, ref r, outcome *o)
{
    item it = {.kind = ITEM_BREAK, .file = t->c->site_file, .line = t->c->site_line};
    it.brk.ask = kind;
    it.brk.value = r;
    if (t->r->fullgraph)
        return refuse_break(t, kind), false;
    if (trace_seeded(t))
        return trace_stop(t, TRACE_DECLINED, "\"%s\" seeds the generator", t->r->name), false;
    if (trace_emit(t, &it) != BP_OK || trace_cut(t) != BP_OK)
        return false;
    if (t->nbreaks++ < t->r->nlog) {
        *o = t->r->log[t->nbreaks - 1];
        return !t->r->resume || t->nbreaks < t->r->nlog || trace_go_real(t) == BP_OK;
    }
    if (t->nbreaks > t->r->break_limit)
        return trace_stop(t, TRACE_OPEN, "a path of more than %u breaks", t->r->break_limit), false;
    return guess(t, kind, r, o);
}

bool trace_ask(trace *t, enum ask_kind kind, bp_tensor *h, outcome *out)
{
    if (t->why != TRACE_RUNNING || !ctx_ok(t->c))
        return false;
    if (t->sub)
        return sub_refuse(t, "asks for a value"), false;
    ref r = trace_read(t, h);
    return r && outcome_check(t->c, kind, h) == BP_OK && ctx_ok(t->c) && trace_ask_ref(t, kind, r, out);
}

bool trace_ask_ref(trace *t, enum ask_kind kind, ref r, outcome *out)
{
    map_value *before = asked_before(t, kind, r);
    if (before) {
        *out = t->answers.at[before->u - 1];
        return true;
    }
    if (ref_is_node(r) && t->values.at[r].folds) {
        const bp_tensor *v = slice_value(&t->slices, r);
        return v && outcome_read(t->c, kind, v, out) == BP_OK;
    }
    return break_at(t, kind, r, out) && remember(t, kind, r, *out);
}

/* -- the public functions ------------------------------------------------------------------------------------------ */

/* After a failure answers come by turns, true and false, largest and smallest, so that loops on values end (C5.5). */
static outcome by_turns(bp_ctx *c, enum ask_kind kind)
{
    capture_slot *slot = capture_slot_get(c);
    uint32_t turn = slot ? slot->turn++ : 0;
    if (kind == ASK_BOOL)
        return (outcome){!(turn & 1), ASK_BOOL, 0};
    if (kind == ASK_INT)
        return (outcome){(uint64_t)(turn & 1 ? INT64_MIN : INT64_MAX), ASK_INT, 0};
    union { double d; uint64_t u; } w = {turn & 1 ? -DBL_MAX : DBL_MAX};
    return (outcome){w.u, ASK_FLOAT, 0};
}

static outcome ask(bp_ctx *c, enum ask_kind kind, bp_tensor *h, const char *file, int32_t line)
{
    outcome o;
    c->site_file = file;
    c->site_line = line;
    if (!ctx_ok(c))
        return by_turns(c, kind);
    if (!h) {
        ctx_fail(c, BP_INVALID_ARGUMENT, "%s: the tensor is NULL", ask_name(kind));
        return by_turns(c, kind);
    }
    trace *t = capture_current(c);
    if (t ? trace_ask(t, kind, h, &o) : outcome_read(c, kind, h, &o) == BP_OK)
        return o;
    if (file)
        diag_while(&c->diag, "asking for a value (%s:%d)", file, line);
    return by_turns(c, kind);
}

int bp_is_true_at(bp_ctx *c, bp_tensor *t, const char *file, int32_t line)
{
    return outcome_bool(ask(c, ASK_BOOL, t, file, line));
}

int64_t bp_item_int_at(bp_ctx *c, bp_tensor *t, const char *file, int32_t line)
{
    return outcome_int(ask(c, ASK_INT, t, file, line));
}

double bp_item_float_at(bp_ctx *c, bp_tensor *t, const char *file, int32_t line)
{
    return outcome_float(ask(c, ASK_FLOAT, t, file, line));
}

/* -- numbers that stay symbolic ------------------------------------------------------------------------------------ */

/* Eager: the number at once. */
static bp_status read_number(bp_ctx *c, const bp_tensor *t, bp_scalar *out)
{
    if (tensor_nelem(t) != 1)
        return item_sym_size(c, t);
    if (tensor_is_fake(t))
        return ctx_fail(c, BP_FAILED_PRECONDITION, "bp_item_sym: the value of a fake tensor, which has no data");
    bp_value v = number_value(t);
    *out = v.kind == BP_VALUE_BOOL    ? bp_scalar_bool(v.v.i != 0)
           : v.kind == BP_VALUE_INT   ? bp_scalar_int(v.v.dim.value)
           : v.kind == BP_VALUE_FLOAT ? bp_scalar_float(v.v.f[0])
                                      : bp_scalar_complex(v.v.f[0], v.v.f[1]);
    return BP_OK;
}

bp_scalar bp_item_sym_at(bp_ctx *c, bp_tensor *t, const char *file, int32_t line)
{
    bp_scalar s = bp_scalar_int(0);
    c->site_file = file;
    c->site_line = line;
    if (!ctx_ok(c))
        return s;
    trace *at = capture_current(c);
    if (!t)
        ctx_fail(c, BP_INVALID_ARGUMENT, "bp_item_sym: the tensor is NULL");
    else if (at)
        trace_item(at, t, &s);
    else
        read_number(c, capture_real(c, t), &s);
    if (!ctx_ok(c) && file)
        diag_while(&c->diag, "asking for a value (%s:%d)", file, line);
    return s;
}

bp_scalar (bp_item_sym)(bp_ctx *c, bp_tensor *t)
{
    return bp_item_sym_at(c, t, NULL, 0);
}

int (bp_is_true)(bp_ctx *c, bp_tensor *t)
{
    return bp_is_true_at(c, t, NULL, 0);
}

int64_t (bp_item_int)(bp_ctx *c, bp_tensor *t)
{
    return bp_item_int_at(c, t, NULL, 0);
}

double (bp_item_float)(bp_ctx *c, bp_tensor *t)
{
    return bp_item_float_at(c, t, NULL, 0);
}
