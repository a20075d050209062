/* The parser of formulas: recursive descent over the lexer of canonical text.
 *
 *   formula = expr | "(" expr {"," expr} ")"
 *   expr    = term {("+" | "-") term}
 *   term    = factor {("*" | "/") factor}
 *   factor  = "-" factor | "(" expr ")" | list | name | call ["[" number "]"] | value
 *
 * Operators, argument positions and defaults are resolved here, and each argument is checked against the schema of the
 * operator that it is given to, so that evaluating only fills in what varies. */
#include "host/graph/atom.h"
#include "host/pass/formula_tree.h"
#include "sdk/base/match.h"
#include "sdk/base/vec.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 40, LONGEST_TARGET = 96 };

typedef struct {
    lexer x;
    bp_ctx *c;
    const op_row *op;
    formula *f;
    uint32_t depth;
    char file[100];
} parser;

typedef VEC(const expr *) exprs;

static expr *read_expr(parser *p);

static expr *new_expr(parser *p, enum expr_kind kind, lex_place at)
{
    expr *e = arena_alloc(&p->f->mem, sizeof *e);
    if (!e) {
        ctx_nomem(p->c);
        return NULL;
    }
    e->kind = kind;
    e->column = at.column;
    return e;
}

/* Makes parts[0 .. n) of e; n is small. */
static bool set_parts(parser *p, expr *e, const expr *const *parts, const uint32_t *at, uint32_t n)
{
    e->nparts = n;
    e->parts = arena_memdup(&p->f->mem, parts, n * sizeof *parts);
    e->at = at ? arena_memdup(&p->f->mem, at, n * sizeof *at) : NULL;
    if (!e->parts || (at && !e->at))
        ctx_nomem(p->c);
    return ctx_ok(p->c);
}

static lex_place place_of(const parser *p, const expr *e)
{
    return (lex_place){p->x.at, 1, e->column};
}

/* -- kinds --------------------------------------------------------------------------------------------------------- */

static bool is_number_type(enum schema_type t)
{
    return t == TYPE_SCALAR || t == TYPE_INT || t == TYPE_SYMINT || t == TYPE_FLOAT || t == TYPE_SYMFLOAT ||
           t == TYPE_BOOL || t == TYPE_SYMBOOL || t == TYPE_COMPLEX;
}

bool expr_is_tensor(const op_row *op, const expr *e)
{
    switch (e->kind) {
    case EXPR_ARG: return op->schema->args[e->index].ty.type == TYPE_TENSOR && !op->schema->args[e->index].ty.list;
    case EXPR_RESULT:
    case EXPR_GRAD:
    case EXPR_CALL:
    case EXPR_CONJ:
    case EXPR_ITEM: return true;
    default: return false;
    }
}

static bool is_number(const op_row *op, const expr *e)
{
    switch (e->kind) {
    case EXPR_VALUE: return e->value.kind >= BP_VALUE_BOOL && e->value.kind <= BP_VALUE_COMPLEX;
    case EXPR_ARG: return is_number_type(op->schema->args[e->index].ty.type) && !op->schema->args[e->index].ty.list;
    case EXPR_RANK:
    case EXPR_NUMEL:
    case EXPR_ARITH: return true;
    default: return false;
    }
}

/* Whether an argument of one type may be handed on as another. */
static bool type_fits(const schema_ty *from, const schema_ty *to)
{
    bool numbers = is_number_type(from->type) && (is_number_type(to->type) || (to->type == TYPE_TENSOR && !to->list));
    if (!numbers && from->type != to->type)
        return false;
    return from->list == to->list || (!from->list && to->list && to->list_size >= 0);
}

static bool expr_fits(const op_row *op, const schema_ty *ty, const expr *e)
{
    switch (e->kind) {
    case EXPR_VALUE: return schema_fits(ty, &e->value);
    case EXPR_ARG: return type_fits(&op->schema->args[e->index].ty, ty);
    case EXPR_SIZES: return ty->list && (ty->type == TYPE_INT || ty->type == TYPE_SYMINT);
    case EXPR_DTYPE: return ty->type == TYPE_DTYPE;
    case EXPR_LIST: break;
    case EXPR_CALL:
        if (ty->list && ty->type == TYPE_TENSOR && e->row->schema->nreturns == 1 && e->row->schema->returns[0].list)
            return true;
        return ty->type == TYPE_TENSOR && !ty->list;
    default:
        if (expr_is_tensor(op, e))
            return ty->type == TYPE_TENSOR && !ty->list;
        if (ty->type == TYPE_TENSOR)
            return !ty->list;
        return is_number_type(ty->type) && (!ty->list || ty->list_size >= 0);
    }
    schema_ty item = *ty;
    item.list = false;
    item.optional = ty->optional_items;
    bool fits = ty->list;
    for (uint32_t i = 0; i < e->nparts && fits; i++)
        fits = expr_fits(op, &item, e->parts[i]);
    return fits;
}

/* What a formula reads of a name in a place where its data are needed. */
static void note_read(parser *p, const expr *e)
{
    uint64_t bit = (uint64_t)1 << (e->index & 63);
    if (e->kind == EXPR_ARG && p->op->schema->args[e->index].ty.type == TYPE_TENSOR)
        p->f->reads.args |= bit;
    else if (e->kind == EXPR_RESULT)
        p->f->reads.results |= bit;
    else if (e->kind == EXPR_GRAD)
        p->f->reads.grads |= bit;
}

/* -- names --------------------------------------------------------------------------------------------------------- */

/* "result" is result0, "grad" is grad0; -1: it is no such name. */
static int32_t numbered(str w, const char *prefix)
{
    size_t n = strlen(prefix);
    if (w.n < n || memcmp(w.s, prefix, n) || w.n > n + 2)
        return -1;
    int32_t i = 0;
    for (size_t k = n; k < w.n; k++) {
        if (w.s[k] < '0' || w.s[k] > '9')
            return -1;
        i = i * 10 + (w.s[k] - '0');
    }
    return i;
}

/* A name of the schema's arguments, results or gradients. */
static bool find_name(const parser *p, str w, enum expr_kind *kind, uint32_t *index)
{
    const schema *s = p->op->schema;
    int32_t i;
    for (uint32_t k = 0; k < s->nargs; k++)
        if (str_is(w, s->args[k].name)) {
            *kind = EXPR_ARG;
            *index = k;
            return true;
        }
    *kind = EXPR_RESULT;
    if ((i = numbered(w, "result")) < 0) {
        *kind = EXPR_GRAD;
        i = numbered(w, "grad");
    }
    uint32_t n = s->nreturns == 1 && s->returns[0].list ? FORMULA_RESULTS : s->nreturns;
    *index = (uint32_t)(i < 0 ? 0 : i);
    return i >= 0 && *index < n;
}

static expr *unknown_name(parser *p, lex_place at, str w)
{
    VEC(const char *) names = {0};
    bool room = vec_push(&names, "result") && vec_push(&names, "grad");
    for (uint32_t i = 0; room && i < p->op->schema->nargs; i++)
        room = vec_push(&names, p->op->schema->args[i].name);
    lex_unknown(&p->x, at, "an argument, a result, a gradient or a call", w, names.at, names.len);
    vec_fini(&names);
    return NULL;
}

static const op_row *unknown_operator(parser *p, lex_place at, const char *target)
{
    const char *near = op_nearest(target);
    lex_fail(&p->x, at, "unknown operator \"%s\"", target + strlen("aten."));
    if (near)
        diag_hint(&p->c->diag, "did you mean \"%s\"?", strncmp(near, "aten.", 5) ? near : near + 5);
    return NULL;
}

static bool is_conj(parser *p, str w)
{
    return str_is(w, "conj") && lex_is(&p->x, '(');
}

/* The operator behind a word that was read, and its overload if one follows. */
static const op_row *read_row(parser *p, lex_place at, str w)
{
    char target[LONGEST_TARGET];
    str overload = {"default", 7};
    if (is_conj(p, w))
        w = str_of("conj_physical");
    if (p->x.at < p->x.end && *p->x.at == '.') {
        p->x.at++;
        overload = lex_word(&p->x);
        if (!overload.n) {
            lex_unexpected(&p->x, "the name of an overload");
            return NULL;
        }
    }
    int n = snprintf(target, sizeof target, "aten.%.*s.%.*s", (int)(w.n < 80 ? w.n : 80), w.s,
                     (int)(overload.n < 80 ? overload.n : 80), overload.s);
    if (n < 0 || (size_t)n >= sizeof target) {
        lex_fail(&p->x, at, "the name of an operator is too long");
        return NULL;
    }
    const op_row *row = op_by_target(target);
    if (!row)
        return unknown_operator(p, at, target);
    if (row->flags & OP_ITEM || !row->schema->nreturns) {
        lex_fail(&p->x, at, "\"%s\" gives no tensor", row->label);
        return NULL;
    }
    if (row->schema->nargs > FORMULA_ARGS || row->schema->nreturns > FORMULA_RESULTS) {
        lex_fail(&p->x, at, "\"%s\" has more than %d arguments or %d results", row->label, FORMULA_ARGS,
                 FORMULA_RESULTS);
        return NULL;
    }
    return row;
}

/* -- calls --------------------------------------------------------------------------------------------------------- */

typedef struct {
    const expr *pos[FORMULA_ARGS], *named[FORMULA_ARGS];
    const char *names[FORMULA_ARGS];
    uint32_t npos, nnamed;
} call_args;

static bp_status read_argument(parser *p, call_args *a)
{
    lex_place at = lex_here(&p->x);
    str keyword = lex_keyword(&p->x);
    if (!keyword.n && a->nnamed)
        return lex_fail(&p->x, at, "expected a named argument after \"%s=\"", a->names[a->nnamed - 1]);
    if (a->npos + a->nnamed == FORMULA_ARGS)
        return lex_fail(&p->x, at, "more than %d arguments", FORMULA_ARGS);
    const expr *e = read_expr(p);
    if (!e)
        return p->c->diag.code;
    if (!keyword.n) {
        a->pos[a->npos++] = e;
        return BP_OK;
    }
    a->named[a->nnamed] = e;
    a->names[a->nnamed] = arena_strndup(&p->f->mem, keyword.s, keyword.n);
    return a->names[a->nnamed++] ? BP_OK : ctx_nomem(p->c);
}

static bp_status read_arguments(parser *p, call_args *a)
{
    TRY(lex_expect(&p->x, '(', "'(' and the arguments"));
    if (lex_take(&p->x, ')'))
        return BP_OK;
    do
        TRY(read_argument(p, a));
    while (lex_take(&p->x, ','));
    return lex_expect(&p->x, ')', "',' or ')'");
}

static bp_status check_argument(parser *p, const op_row *row, uint32_t i, const expr *e)
{
    buf type = {0};
    const schema_arg *g = &row->schema->args[i];
    if (expr_fits(p->op, &g->ty, e)) {
        note_read(p, e);
        return BP_OK;
    }
    schema_print_type(&g->ty, &type);
    bp_status s = lex_fail(&p->x, place_of(p, e), "this does not fit argument \"%s\" of %s, which is %s", g->name,
                           row->label, buf_text(&type));
    buf_fini(&type);
    return s;
}

/* Splits what was bound into constants and parts. A NODE value stands for expression `node`. */
static bp_status settle(parser *p, expr *e, const expr *const *all, bp_value *bound)
{
    const expr *parts[FORMULA_ARGS];
    uint32_t at[FORMULA_ARGS], n = 0;
    for (uint32_t i = 0; i < e->nargs; i++) {
        if (bound[i].kind != BP_VALUE_NODE)
            continue;
        const expr *x = all[bound[i].v.node];
        if (e->row)
            TRY(check_argument(p, e->row, i, x));
        bound[i] = x->value;
        if (x->kind == EXPR_VALUE)
            continue;
        bound[i] = value_none();
        at[n] = i;
        parts[n++] = x;
    }
    e->args = arena_memdup(&p->f->mem, bound, e->nargs * sizeof *bound);
    if (!e->args)
        return ctx_nomem(p->c);
    return set_parts(p, e, parts, at, n) ? BP_OK : p->c->diag.code;
}

static bp_status bind(parser *p, expr *e, const call_args *a)
{
    const expr *all[2 * FORMULA_ARGS];
    bp_value values[2 * FORMULA_ARGS], *bound = NULL;
    for (uint32_t i = 0; i < a->npos + a->nnamed; i++) {
        all[i] = i < a->npos ? a->pos[i] : a->named[i - a->npos];
        values[i] = (bp_value){.kind = BP_VALUE_NODE, .v.node = i};
    }
    e->nargs = e->row->schema->nargs;
    arena_mark mark = arena_get_mark(&p->c->scratch);
    bp_status s = op_bind(p->c, e->row, values, a->npos, a->names, values + a->npos, a->nnamed, &bound);
    if (s)
        diag_while(&p->c->diag, "parsing column %u of the %s", e->column, p->file);
    else
        s = settle(p, e, all, bound);
    arena_reset(&p->c->scratch, mark);
    return s;
}

static expr *read_call(parser *p, lex_place at, str w)
{
    call_args a = {.npos = 0};
    bool conj = is_conj(p, w);
    const op_row *row = read_row(p, at, w);
    expr *e = row ? new_expr(p, conj ? EXPR_CONJ : EXPR_CALL, at) : NULL;
    if (!e)
        return NULL;
    e->row = row;
    if (read_arguments(p, &a) || bind(p, e, &a))
        return NULL;
    int64_t i = 0;
    if (!lex_is(&p->x, '['))
        return e;
    lex_take(&p->x, '[');
    expr *item = new_expr(p, EXPR_ITEM, at);
    if (!item || lex_int(&p->x, "the number of a result", 0, &i) || lex_expect(&p->x, ']', "']'"))
        return NULL;
    if (i >= FORMULA_RESULTS || (i >= row->schema->nreturns && !row->schema->returns[0].list)) {
        lex_fail(&p->x, at, "\"%s\" has %u results, and none is number %lld", row->label, row->schema->nreturns,
                 (long long)i);
        return NULL;
    }
    item->index = (uint32_t)i;
    return set_parts(p, item, &(const expr *){e}, NULL, 1) ? item : NULL;
}

/* -- metadata ------------------------------------------------------------------------------------------------------ */

/* The kind of "sizes(" ...; of "dtype(" only if a name of a tensor follows. -1: it is none of them. */
static int meta_kind(const parser *p, str w)
{
    static const struct { const char *name; enum expr_kind kind; } metas[] = {
        {"sizes", EXPR_SIZES}, {"dtype", EXPR_DTYPE}, {"rank", EXPR_RANK}, {"numel", EXPR_NUMEL}};
    lexer ahead = p->x;
    enum expr_kind kind;
    uint32_t index;
    for (uint32_t i = 0; i < sizeof metas / sizeof *metas; i++) {
        if (!str_is(w, metas[i].name) || !lex_take(&ahead, '('))
            continue;
        if (metas[i].kind == EXPR_DTYPE && !find_name(p, lex_word(&ahead), &kind, &index))
            return -1;
        return (int)metas[i].kind;
    }
    return -1;
}

static expr *read_meta(parser *p, lex_place at, enum expr_kind kind)
{
    expr *e = new_expr(p, kind, at);
    if (!e || lex_expect(&p->x, '(', "'('"))
        return NULL;
    lex_place inside = lex_here(&p->x);
    const expr *of = read_expr(p);
    if (!of || lex_expect(&p->x, ')', "')'"))
        return NULL;
    if (!expr_is_tensor(p->op, of)) {
        lex_fail(&p->x, inside, "expected a tensor");
        return NULL;
    }
    return set_parts(p, e, &of, NULL, 1) ? e : NULL;
}

/* -- expressions --------------------------------------------------------------------------------------------------- */

static expr *finish_list(parser *p, expr *e, const exprs *items)
{
    if (items->len > FORMULA_ARGS) {
        lex_fail(&p->x, place_of(p, e), "a list of more than %d items", FORMULA_ARGS);
        return NULL;
    }
    bp_value values[FORMULA_ARGS];
    for (uint32_t i = 0; i < items->len; i++) {
        note_read(p, items->at[i]);
        values[i] = (bp_value){.kind = BP_VALUE_NODE, .v.node = i};
    }
    e->nargs = items->len;
    if (settle(p, e, items->at, values))
        return NULL;
    if (e->nparts)
        return e;
    e->kind = EXPR_VALUE;
    e->value = value_list(e->args, e->nargs);
    return e;
}

static expr *read_list(parser *p)
{
    exprs items = {0};
    expr *e = new_expr(p, EXPR_LIST, lex_here(&p->x));
    bool ok = e && lex_take(&p->x, '[');
    while (ok && !lex_take(&p->x, ']')) {
        ok = !items.len || !lex_expect(&p->x, ',', "',' or ']'");
        const expr *item = ok ? read_expr(p) : NULL;
        ok = item != NULL;
        if (ok && !vec_push(&items, item))
            ok = !ctx_nomem(p->c);
    }
    e = ok ? finish_list(p, e, &items) : NULL;
    vec_fini(&items);
    return e;
}

static expr *read_atom(parser *p, lex_place at)
{
    expr *e = new_expr(p, EXPR_VALUE, at);
    return e && atom_read(&p->x, &p->f->mem, &e->value) == BP_OK ? e : NULL;
}

static bool starts_value(str w)
{
    static const char *const words[] = {"None", "True", "False", "inf", "nan", "device", "layout", "format", "dtype"};
    for (uint32_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_is(w, words[i]))
            return true;
    return false;
}

static expr *read_word(parser *p)
{
    lex_place at = lex_here(&p->x);
    lexer before = p->x;
    str w = lex_word(&p->x);
    bool call = lex_is(&p->x, '(') || (p->x.at < p->x.end && *p->x.at == '.');
    int meta = meta_kind(p, w);
    if (meta >= 0)
        return read_meta(p, at, (enum expr_kind)meta);
    enum expr_kind kind;
    uint32_t index;
    if (!call && find_name(p, w, &kind, &index)) {
        expr *e = new_expr(p, kind, at);
        if (e)
            e->index = index;
        return e;
    }
    if (starts_value(w)) {
        p->x = before;
        return read_atom(p, at);
    }
    return call ? read_call(p, at, w) : unknown_name(p, at, w);
}

/* left OP right; both must be numbers. */
static expr *new_arith(parser *p, lex_place at, char how, const expr *left, const expr *right)
{
    const expr *both[2] = {left, right};
    if (!left || !right)
        return NULL;
    for (uint32_t i = 0; i < 2; i++)
        if (!is_number(p->op, both[i])) {
            lex_fail(&p->x, place_of(p, both[i]), "expected a number beside '%c'; tensors are for operators", how);
            return NULL;
        }
    expr *e = new_expr(p, EXPR_ARITH, at);
    if (e)
        e->index = (uint32_t)how;
    return e && set_parts(p, e, both, NULL, 2) ? e : NULL;
}

/* "-x" is -1 * x, which keeps the sign of zero. */
static expr *minus_one(parser *p, lex_place at)
{
    expr *e = new_expr(p, EXPR_VALUE, at);
    if (e)
        e->value = value_int(-1);
    return e;
}

static bool starts_number(const parser *p)
{
    const char *at = p->x.at + (*p->x.at == '-');
    size_t n = (size_t)(p->x.end - at);
    return n && ((*at >= '0' && *at <= '9') || (*p->x.at == '-' && n >= 3 && memcmp(at, "inf", 3) == 0));
}

static expr *read_factor(parser *p)
{
    lex_place at = lex_here(&p->x);
    char ch = lex_at_end(&p->x) ? 0 : *p->x.at;
    if (ch == '"' || (ch && starts_number(p)))
        return read_atom(p, at);
    if (ch == '-') {
        lex_take(&p->x, '-');
        return new_arith(p, at, '*', minus_one(p, at), read_factor(p));
    }
    if (ch == '(') {
        lex_take(&p->x, '(');
        expr *e = read_expr(p);
        return e && lex_expect(&p->x, ')', "')'") == BP_OK ? e : NULL;
    }
    if (ch == '[')
        return read_list(p);
    if ((ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_')
        return read_word(p);
    lex_unexpected(&p->x, "a name, a call or a value");
    return NULL;
}

static expr *read_term(parser *p)
{
    expr *e = read_factor(p);
    while (e && (lex_is(&p->x, '*') || lex_is(&p->x, '/'))) {
        lex_place at = lex_here(&p->x);
        char how = *p->x.at;
        lex_take(&p->x, how);
        e = new_arith(p, at, how, e, read_factor(p));
    }
    return e;
}

static expr *read_expr(parser *p)
{
    if (++p->depth > DEEPEST) {
        lex_fail(&p->x, lex_here(&p->x), "a formula nests deeper than %d", DEEPEST);
        return NULL;
    }
    expr *e = read_term(p);
    while (e && (lex_is(&p->x, '+') || lex_is(&p->x, '-'))) {
        lex_place at = lex_here(&p->x);
        char how = *p->x.at;
        lex_take(&p->x, how);
        e = new_arith(p, at, how, e, read_term(p));
    }
    p->depth--;
    return e;
}

/* -- the whole ----------------------------------------------------------------------------------------------------- */

static bp_status check_root(parser *p, const expr *e)
{
    bool none = e->kind == EXPR_VALUE && e->value.kind == BP_VALUE_NONE;
    if (!none && !expr_is_tensor(p->op, e))
        return lex_fail(&p->x, place_of(p, e), "expected a formula that gives a tensor, or None");
    note_read(p, e);
    return BP_OK;
}

static bp_status read_roots(parser *p, exprs *roots)
{
    p->f->tuple = lex_take(&p->x, '(');
    do {
        const expr *e = read_expr(p);
        if (!e)
            return p->c->diag.code;
        TRY(check_root(p, e));
        if (!vec_push(roots, e))
            return ctx_nomem(p->c);
    } while (p->f->tuple && lex_take(&p->x, ','));
    return p->f->tuple ? lex_expect(&p->x, ')', "',' or ')'") : BP_OK;
}

static bp_status read_formula(parser *p)
{
    exprs roots = {0};
    bp_status s = read_roots(p, &roots);
    p->f->nroots = roots.len;
    p->f->roots = s ? NULL : arena_memdup(&p->f->mem, roots.at, roots.len * sizeof *roots.at);
    vec_fini(&roots);
    if (!s && !p->f->roots)
        return ctx_nomem(p->c);
    if (!s && !lex_at_end(&p->x) && !lex_is(&p->x, ';'))
        return lex_unexpected(&p->x, "the end of the formula");
    return s;
}

formula *formula_parse_part(bp_ctx *c, const op_row *op, const char *text, const char **at)
{
    if (!ctx_ok(c))
        return NULL;
    formula *f = calloc(1, sizeof *f);
    if (!f) {
        ctx_nomem(c);
        return NULL;
    }
    f->op = op;
    parser p = {.x = {c, NULL, *at, *at + strlen(*at), text, 1}, .c = c, .op = op, .f = f};
    snprintf(p.file, sizeof p.file, "formula of %s", op->label);
    p.x.file = p.file;
    if (read_formula(&p) != BP_OK) {
        formula_free(f);
        return NULL;
    }
    *at = p.x.at;
    return f;
}

formula *formula_parse(bp_ctx *c, const op_row *op, const char *text)
{
    const char *at = text;
    formula *f = formula_parse_part(c, op, text, &at);
    if (!f || !*at)
        return f;
    ctx_fail(c, BP_INVALID_ARGUMENT, "formula of %s:1:%d: expected the end of the formula, got ';'", op->label,
             (int)(at - text) + 1);
    formula_free(f);
    return NULL;
}

void formula_free(formula *f)
{
    if (!f)
        return;
    arena_fini(&f->mem);
    free(f);
}

formula_reads formula_read_set(const formula *f)
{
    return f->reads;
}

uint32_t formula_count(const formula *f)
{
    return f->nroots;
}
