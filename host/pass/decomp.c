/* The table of decompositions, and how a row is run.
 *
 * Formulas are parsed at their first use, by whichever thread comes first; a row's formula lives as long as the
 * process. What a row makes on its way belongs to a scope of its own, and dies when its results are there. */
#include "host/pass/decomp.h"
#include "host/op/run.h"
#include "host/pass/parts.h"
#include <string.h>

static const decomp_row rows[ROW_COUNT + 1] = {
#define DECOMP(id, formula) [ROW_##id] = {.text = formula},
#define DECOMP_WIDE(id, formula) [ROW_##id] = {.text = formula, .wide = true},
#define DECOMP_FN(id, name) [ROW_##id] = {.body = part_##name},
#define DECOMP_MANY(id, name) [ROW_##id] = {.many = parts_##name},
#define DECOMP_BODY(id, name) [ROW_##id] = {.body = composed_##name, .lone = true},
#define COMPOSITE(id, formula) [ROW_##id] = {.text = formula, .composite = true},
#define COMPOSITE_WIDE(id, formula) [ROW_##id] = {.text = formula, .composite = true, .wide = true},
#define COMPOSITE_FN(id, name) [ROW_##id] = {.body = part_##name, .composite = true},
#define COMPOSITE_MANY(id, name) [ROW_##id] = {.many = parts_##name, .composite = true},
#define COMPOSITE_BODY(id, name) [ROW_##id] = {.body = composed_##name, .composite = true, .lone = true},
#define KEPT(id, reason) [ROW_##id] = {.kept = reason},
#include "host/pass/decomps.def"
#include "host/pass/decomps_undef.h"
};
static _Atomic(formula *) parsed[ROW_COUNT + 1];

const decomp_row *decomp_of(const op_row *op)
{
    const decomp_row *r = op->number < ROW_COUNT ? &rows[op->number] : NULL;
    return r && (r->text || r->body || r->many || r->kept) ? r : NULL;
}

/* -- formulas ------------------------------------------------------------------------------------------------------ */

static const formula *formula_of(bp_ctx *c, const decomp_row *row, const op_row *op)
{
    if (row->parsed)
        return row->parsed;
    formula *have = atomic_load_explicit(&parsed[op->number], memory_order_acquire);
    if (have)
        return have;
    formula *f = formula_parse(c, op, row->text);
    if (f && !atomic_compare_exchange_strong(&parsed[op->number], &have, f)) {
        formula_free(f);
        return have;
    }
    return f;
}

bp_status decomp_check_all(bp_ctx *c)
{
    for (uint32_t n = 0; n < op_count(); n++)
        if (rows[n].text && !formula_of(c, &rows[n], op_at(n)))
            return c->diag.code;
    return BP_OK;
}

/* -- halves computed in float -------------------------------------------------------------------------------------- */

static bool is_half(const bp_value *v)
{
    const bp_tensor *t = v->kind == BP_VALUE_TENSOR ? v->v.tensor : NULL;
    return t && (t->dtype == BP_F16 || t->dtype == BP_BF16);
}

static bool any_half(const bp_value *args, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (is_half(&args[i]))
            return true;
    return false;
}

static bp_tensor *cast(bp_ctx *c, bp_tensor *t, bp_dtype d)
{
    bp_tensor *out = NULL;
    bp_value *args, pos[] = {value_tensor(t), value_dtype(d)};
    op_call k = {.op = op_at(ROW_private_to_copy_default), .out = &out, .nout = 1};
    if (!k.op || op_bind_ordered(c, k.op, 2, pos, &args) != BP_OK)
        return NULL;
    k.args = args;
    k.nargs = k.op->schema->nargs;
    return op_dispatch(c, &k) == BP_OK ? scope_own(c, out) : NULL;
}

/* The arguments, halves as floats; NULL: an error. */
static const bp_value *widened(bp_ctx *c, const op_call *k)
{
    uint32_t n = k->op->schema->nargs;
    bp_value *args = arena_memdup(&c->scratch, k->args, n * sizeof *args);
    for (uint32_t i = 0; args && i < n; i++)
        if (is_half(&args[i]))
            args[i] = value_tensor(cast(c, args[i].v.tensor, BP_F32));
    if (!args)
        ctx_nomem(c);
    return ctx_ok(c) ? args : NULL;
}

/* -- running ------------------------------------------------------------------------------------------------------- */

static bool gives_list(const op_row *op)
{
    return op->schema->nreturns == 1 && op->schema->returns[0].list;
}

/* Makes n results of scope-owned tensors. */
static bp_status take_results(bp_ctx *c, op_call *k, bp_tensor *const *t, uint32_t n)
{
    TRY(results_reserve(c, k, n));
    for (uint32_t i = 0; i < n; i++)
        k->out[i] = t[i] ? tensor_ref(t[i]) : NULL;
    return BP_OK;
}

static bp_status run_formula(bp_ctx *c, const decomp_row *row, op_call *k)
{
    const formula *f = formula_of(c, row, k->op);
    const bp_value *args = !f ? NULL : row->wide && any_half(k->args, k->op->schema->nargs) ? widened(c, k) : k->args;
    bp_tensor *few[16] = {NULL}, **out = few;
    uint32_t n = k->op->schema->nreturns;
    if (!args)
        return c->diag.code;
    formula_env env = {.args = args};
    if (gives_list(k->op))
        TRY(formula_eval_list(c, f, &env, &out, &n));
    else if (n == 1)
        out[0] = formula_eval(c, f, &env);
    else
        TRY(formula_eval_all(c, f, &env, out, n));
    if (args != k->args && ctx_ok(c)) {
        shape_call s;
        TRY(op_infer(c, k->op, k->args, &s));
        for (uint32_t i = 0; i < n && i < s.nout && out[i]; i++)
            out[i] = out[i]->dtype == s.out[i].meta.dtype ? out[i] : cast(c, out[i], s.out[i].meta.dtype);
    }
    TRY(c->diag.code);
    return take_results(c, k, out, n);
}

static bp_status run_body(bp_ctx *c, const decomp_row *row, op_call *k)
{
    bp_tensor *t;
    if (row->lone) {
        t = compose_parts(c, k->op, k->args, row->body);
    } else {
        work w = {.c = c, .parts = true};
        t = row->body(&w, k->op, k->args);
        t = t && work_ok(&w) ? tensor_ref(t) : NULL;
        if (work_end(&w) != BP_OK) {
            tensor_unref(t);
            return c->diag.code;
        }
    }
    if (!t)
        return ctx_ok(c) ? op_fail(c, k->op, BP_INTERNAL, "its decomposition gave nothing") : c->diag.code;
    bp_status st = results_reserve(c, k, 1);
    if (st)
        tensor_unref(t);
    else
        k->out[0] = t;
    return st;
}

bp_status parts_give(work *w, op_call *k, bp_tensor *const *t, uint32_t n)
{
    return work_ok(w) ? take_results(w->c, k, t, n) : w->c->diag.code;
}

static bp_status run_many(bp_ctx *c, const decomp_row *row, op_call *k)
{
    work w = {.c = c, .parts = true};
    k->nout = k->out ? k->nout : 0;
    bp_status st = row->many(&w, k->op, k->args, k);
    return work_end(&w) != BP_OK ? c->diag.code : st;
}

bp_status decomp_call(bp_ctx *c, const decomp_row *row, op_call *k)
{
    if (!ctx_ok(c))
        return c->diag.code;
    if (row->kept)
        return op_fail(c, k->op, BP_UNIMPLEMENTED, "it has no decomposition: %s", row->kept);
    k->nargs = k->op->schema->nargs;
    k->returns_list = gives_list(k->op);
    scope_push(c);
    bp_status st = row->give   ? row->give(c, row->user, k->args, k)
                   : row->text ? run_formula(c, row, k)
                   : row->body ? run_body(c, row, k)
                               : run_many(c, row, k);
    scope_pop(c);
    if (st == BP_OK)
        return BP_OK;
    diag_while(&c->diag, "decomposing %s", k->op->target);
    k->nout = 0;
    return st;
}

bp_status decomp_run(bp_ctx *c, const op_row *op, const bp_value *args, bp_tensor **out, uint32_t nout)
{
    const decomp_row *row = decomp_of(op);
    op_call k = {.op = op, .args = args};
    if (!row)
        return op_fail(c, op, BP_UNIMPLEMENTED, "it has no decomposition");
    TRY(decomp_call(c, row, &k));
    for (uint32_t i = 0; i < k.nout; i++)
        if (i < nout)
            out[i] = scope_own(c, k.out[i]);
        else
            tensor_unref(k.out[i]);
    for (uint32_t i = k.nout; i < nout; i++)
        out[i] = NULL;
    return c->diag.code;
}
