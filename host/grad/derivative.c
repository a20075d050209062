/* The table of derivatives, and the run of a row: from gradients of results to gradients of inputs.
 *
 * Texts are parsed at a row's first use, by whichever thread comes first, and live as long as the process. */
#include "host/grad/custom.h"
#include "host/grad/rows.h"
#include "host/op/rows.h"
#include <backplane/backplane.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const grad_row table[ROW_COUNT] = {
#define GRAD(id, words) [ROW_##id] = {.text = (words)},
#define GRAD_FN(id, function, names) [ROW_##id] = {.fn = (function), .reads = (names)},
#define GRAD_ZERO(id) [ROW_##id] = {.zero = true},
#define GRAD_NONE(id, reason) [ROW_##id] = {.none = (reason)},
#include "host/grad/rows.def"
#undef GRAD
#undef GRAD_FN
#undef GRAD_ZERO
#undef GRAD_NONE
};

const char *grad_none_of(const op_row *op)
{
    if (op && op->own)
        return "none is registered: bp_register_autograd";
    return op && op->number < ROW_COUNT ? table[op->number].none : NULL;
}

const grad_row *grad_row_of(const op_row *op)
{
    if (op && op->own)
        return custom_grad_row(op);
    const grad_row *row = op && op->number < ROW_COUNT ? &table[op->number] : NULL;
    return row && (row->text || row->fn || row->zero) ? row : NULL;
}

/* -- rows, parsed -------------------------------------------------------------------------------------------------- */

typedef struct { uint32_t arg; formula *f; } part; /* the gradient of an argument */
typedef struct {
    formula_reads reads; /* of a C row */
    uint32_t nparts;
    part parts[16];
} parsed;

static _Atomic(parsed *) ready[ROW_COUNT];

static void parsed_free(parsed *p)
{
    for (uint32_t i = 0; p && i < p->nparts; i++)
        formula_free(p->parts[i].f);
    free(p);
}

static bp_status bad_row(bp_ctx *c, const op_row *op, const char *what, const char *at, size_t n)
{
    return ctx_fail(c, BP_INTERNAL, "derivative of %s: %s \"%.*s\"", op->label, what, (int)n, at);
}

static size_t skip_blank(const char **s, const char *end)
{
    while (*s < end && (**s == ' ' || **s == '\n'))
        ++*s;
    while (*s < end && (end[-1] == ' ' || end[-1] == '\n'))
        --end;
    return (size_t)(end - *s);
}

static bp_status name_of(bp_ctx *c, const op_row *op, const char *at, size_t n, char *name, size_t cap)
{
    if (n >= cap || !n)
        return bad_row(c, op, "no name of an argument or result", at, n);
    memcpy(name, at, n);
    name[n] = 0;
    return BP_OK;
}

/* "self: formula" */
static bp_status parse_part(bp_ctx *c, const op_row *op, const char *at, const char *end, parsed *p)
{
    char name[64], *text;
    const char *colon = memchr(at, ':', (size_t)(end - at)), *body = colon ? colon + 1 : NULL;
    if (!colon || p->nparts == sizeof p->parts / sizeof *p->parts)
        return bad_row(c, op, "expected \"argument: formula\" (at most 16), got", at, (size_t)(end - at));
    TRY(name_of(c, op, at, skip_blank(&at, colon), name, sizeof name));
    int32_t arg = schema_find(op->schema, name);
    if (arg < 0)
        return bad_row(c, op, "there is no argument", name, strlen(name));
    size_t n = skip_blank(&body, end);
    if (!(text = arena_strndup(&c->scratch, body, n)))
        return ctx_nomem(c);
    formula *f = formula_parse(c, op, text);
    if (!f)
        return ctx_ok(c) ? ctx_nomem(c) : c->diag.code;
    p->parts[p->nparts++] = (part){(uint32_t)arg, f};
    return BP_OK;
}

static bp_status parse_text(bp_ctx *c, const op_row *op, const char *text, parsed *p)
{
    while (*text) {
        const char *end = text + strcspn(text, ";");
        if (skip_blank(&text, end))
            TRY(parse_part(c, op, text, end, p));
        text = *end ? end + 1 : end;
    }
    return BP_OK;
}

/* "self" is an argument; "result", "result1" are results. */
static bp_status read_name(bp_ctx *c, const op_row *op, const char *name, formula_reads *r)
{
    int32_t arg = schema_find(op->schema, name);
    if (arg >= 0) {
        r->args |= UINT64_C(1) << arg;
        return BP_OK;
    }
    if (strncmp(name, "result", 6) || strspn(name + 6, "0123456789") != strlen(name + 6))
        return bad_row(c, op, "there is no argument or result", name, strlen(name));
    r->results |= UINT64_C(1) << (name[6] ? atoi(name + 6) & 63 : 0);
    return BP_OK;
}

static bp_status parse_reads(bp_ctx *c, const op_row *op, const char *names, parsed *p)
{
    char name[64];
    p->reads.grads = UINT64_MAX;
    while (*names) {
        const char *end = names + strcspn(names, ",");
        size_t n = skip_blank(&names, end);
        if (n) {
            TRY(name_of(c, op, names, n, name, sizeof name));
            TRY(read_name(c, op, name, &p->reads));
        }
        names = *end ? end + 1 : end;
    }
    return BP_OK;
}

static const parsed *get(bp_ctx *c, const op_row *op)
{
    const grad_row *row = &table[op->number];
    parsed *p = atomic_load_explicit(&ready[op->number], memory_order_acquire), *none = NULL;
    if (p)
        return p;
    if (!(p = calloc(1, sizeof *p))) {
        ctx_nomem(c);
        return NULL;
    }
    arena_mark mark = arena_get_mark(&c->scratch);
    bp_status st = row->text ? parse_text(c, op, row->text, p) : parse_reads(c, op, row->reads ? row->reads : "", p);
    arena_reset(&c->scratch, mark);
    if (st != BP_OK) {
        parsed_free(p);
        return NULL;
    }
    if (atomic_compare_exchange_strong(&ready[op->number], &none, p))
        return p;
    parsed_free(p);
    return none;
}

bp_status grad_reads(bp_ctx *c, const op_row *op, uint64_t wanted, formula_reads *out)
{
    *out = (formula_reads){0};
    if (op->own) /* its setup function says what it keeps */
        return BP_OK;
    if (table[op->number].zero)
        return BP_OK;
    const parsed *p = get(c, op);
    if (!p)
        return c->diag.code;
    *out = p->reads;
    for (uint32_t i = 0; i < p->nparts; i++) {
        if (!(wanted >> p->parts[i].arg & 1))
            continue;
        formula_reads r = formula_read_set(p->parts[i].f);
        out->args |= r.args;
        out->results |= r.results;
        out->grads |= r.grads;
    }
    return BP_OK;
}

/* -- running ------------------------------------------------------------------------------------------------------- */

/* Whether any gradient that is read flows. */
static bool flows(const grad_call *g, uint64_t grads)
{
    for (uint32_t i = 0; i < g->nresults; i++)
        if (g->grads[i] && (grads >> (i & 63) & 1))
            return true;
    return false;
}

/* Gradients that a formula reads and that do not flow are zeros, if another one flows. */
static bp_status fill_zeros(bp_ctx *c, grad_call *g, uint64_t grads, bp_tensor **filled)
{
    for (uint32_t i = 0; i < g->nresults; i++) {
        filled[i] = g->grads[i];
        if (!filled[i] && (grads >> (i & 63) & 1) && !(filled[i] = grad_of(c, g, i)) && !ctx_ok(c))
            return c->diag.code;
    }
    return BP_OK;
}

static bp_status run_part(bp_ctx *c, grad_call *g, const part *p)
{
    const bp_value *v = &g->args[p->arg];
    uint32_t at = grad_input(g, g->op->schema->args[p->arg].name);
    if (v->kind != BP_VALUE_TENSOR || at >= g->ninputs || !g->needs[at])
        return BP_OK;
    uint64_t grads = formula_read_set(p->f).grads;
    if (grads && !flows(g, grads))
        return BP_OK;
    bp_tensor **filled = arena_array(&c->scratch, g->nresults, sizeof *filled);
    if (!filled)
        return ctx_nomem(c);
    TRY(fill_zeros(c, g, grads, filled));
    formula_env env = {g->args, g->results, filled, g->nresults};
    g->out[at] = formula_eval(c, p->f, &env);
    return c->diag.code;
}

static bp_status run_zero(bp_ctx *c, grad_call *g)
{
    for (uint32_t i = 0; i < g->ninputs; i++) {
        bp_tensor *t = grad_input_at(g->args, g->op->schema->nargs, i, NULL);
        if (!g->needs[i] || !t)
            continue;
        g->out[i] = grad_zeros(c, t);
        if (!g->out[i])
            return c->diag.code;
    }
    return BP_OK;
}

static bp_status fit_all(bp_ctx *c, grad_call *g)
{
    for (uint32_t i = 0; i < g->ninputs; i++) {
        bp_tensor *t = grad_input_at(g->args, g->op->schema->nargs, i, NULL);
        tensor_meta m;
        if (!g->out[i] || !g->needs[i] || !t) {
            g->out[i] = NULL;
            continue;
        }
        tensor_get_meta(t, &m);
        if (!(g->out[i] = grad_fit(c, g->out[i], &m, g->op->label)))
            return c->diag.code;
    }
    return BP_OK;
}

bp_status grad_run(bp_ctx *c, const grad_row *row, grad_call *g)
{
    if (!ctx_ok(c))
        return c->diag.code;
    if (!flows(g, UINT64_MAX))
        return BP_OK;
    const parsed *p = row->zero || g->op->own ? NULL : get(c, g->op);
    if (row->zero)
        TRY(run_zero(c, g));
    else if (!p && !g->op->own)
        return c->diag.code;
    else if (row->fn)
        TRY(row->fn(c, g));
    for (uint32_t i = 0; p && i < p->nparts; i++)
        TRY(run_part(c, g, &p->parts[i]));
    TRY(c->diag.code);
    return fit_all(c, g);
}
