/* Reading the symbols of canonical text. A text without them has no environment. */
#include "host/graph/header.h"
#include "host/graph/namer.h"
#include <inttypes.h>
#include <string.h>

/* Words that mean something else where an expression may stand. */
static const char *const reserved[] = {"None", "True", "False", "inf", "nan", "complex", "dtype", "device", "layout",
                                       "format", "Mod", "Max", "Min", "Sym"};

/* -- expressions --------------------------------------------------------------------------------------------------- */

/* At what is wrong, on the line where it stands. */
static bp_status not_an_expression(lexer *x, const sym_env *e, const char *what)
{
    VEC(const char *) names = {0};
    while (x->at < x->end && *x->at == ' ')
        x->at++;
    lex_place at = {x->at, x->line, (uint32_t)(x->at - x->line_start) + 1};
    if (x->at == x->end || *x->at == '\n' || *x->at == '#')
        return lex_fail(x, at, "expected %s, got the end of the line", what);
    lexer ahead = *x;
    str w = lex_word(&ahead);
    for (uint32_t k = 0; k < sym_symbol_count(e); k++)
        if (!vec_push(&names, sym_symbol_at(e, k)->name))
            break;
    bp_status s = w.n ? lex_unknown(x, at, what, w, names.at, names.len) : lex_unexpected(x, what);
    vec_fini(&names);
    return s;
}

/* Takes n characters as an expression. */
static bp_status read_expression(lexer *x, sym_env *e, str text, const char *what, bp_dim *out)
{
    bp_ctx quiet = {0};
    size_t offset = 0;
    if (!text.n)
        return not_an_expression(x, e, what);
    bp_status s = sym_parse(e, &quiet, text.s, text.n, out, &offset);
    if (s == BP_RESOURCE_EXHAUSTED)
        return ctx_nomem(x->c);
    x->at = text.s + (s && offset < text.n ? offset : text.n);
    return s ? not_an_expression(x, e, what) : BP_OK;
}

static uint32_t find_symbol(const sym_env *e, str name)
{
    for (uint32_t k = 0; e && k < sym_symbol_count(e); k++)
        if (str_is(name, sym_symbol_at(e, k)->name))
            return k;
    return UINT32_MAX;
}

bool header_is_expression(lexer *x, const graph *g)
{
    if (!g->syms || lex_is(x, '"'))
        return false;
    str text = lex_extent(x);
    for (size_t i = 0; i < text.n; i++) {
        size_t from = i;
        while (i < text.n && namer_is_word(text.s[i]))
            i++;
        if (i > from && find_symbol(g->syms, (str){text.s + from, i - from}) != UINT32_MAX)
            return true;
    }
    return false;
}

bp_status header_dim(lexer *x, graph *g, const char *what, int64_t least, bp_dim *out)
{
    str text = lex_extent(x);
    bool number = text.n > 0;
    for (size_t i = 0; i < text.n; i++)
        number &= (text.s[i] >= '0' && text.s[i] <= '9') || (i == 0 && text.s[i] == '-');
    if (number || !g->syms) {
        *out = (bp_dim){0};
        return lex_int(x, what, least, &out->value);
    }
    lex_place at = lex_here(x);
    TRY(read_expression(x, g->syms, text, what, out));
    if (!out->sym && out->value < least)
        return lex_fail(x, at, "expected %s of at least %lld, got %lld", what, (long long)least,
                        (long long)out->value);
    return BP_OK;
}

/* -- lines --------------------------------------------------------------------------------------------------------- */

/* An integer, or inf with the sign of `none`. */
static bp_status read_bound(lexer *x, const char *what, int64_t none, int64_t *out)
{
    lexer ahead = *x;
    if (none < 0)
        lex_take(&ahead, '-');
    if (!str_is(lex_word(&ahead), "inf"))
        return lex_int(x, what, INT64_MIN + 1, out);
    *x = ahead;
    *out = none;
    return BP_OK;
}

static bp_status read_word(lexer *x, const char *word, const char *what)
{
    lex_place at = lex_here(x);
    str w = lex_word(x);
    if (str_is(w, word))
        return BP_OK;
    return w.n ? lex_unknown(x, at, what, w, &word, 1) : lex_unexpected(x, what);
}

static bp_status read_hint(lexer *x, sym_symbol *s)
{
    static const char *const words[] = {"hint", "unbacked"};
    lex_place at = lex_here(x);
    str w = lex_word(x);
    s->unbacked = str_is(w, "unbacked");
    if (s->unbacked)
        return BP_OK;
    if (!str_is(w, "hint"))
        return w.n ? lex_unknown(x, at, "\"hint\" or \"unbacked\"", w, words, 2)
                   : lex_unexpected(x, "\"hint\" or \"unbacked\"");
    at = lex_here(x);
    TRY(lex_int(x, "a hint", INT64_MIN, &s->hint));
    if (s->hint < s->min || s->hint > s->max)
        return lex_fail(x, at, "the hint %" PRId64 " is outside the bounds of \"%s\"", s->hint, s->name);
    return BP_OK;
}

static bp_status check_name(lexer *x, lex_place at, const graph *g, const char *name)
{
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (!strcmp(name, reserved[i]))
            return lex_fail(x, at, "a symbol cannot be named \"%s\"", name);
    if (find_symbol(g->syms, str_of(name)) != UINT32_MAX)
        return lex_fail(x, at, "the symbol \"%s\" is declared already", name);
    return BP_OK;
}

static bp_status read_symbol(lexer *x, arena *tmp, graph *g)
{
    sym_symbol s = {.source = {.at = SYM_NO_SOURCE}};
    lex_place at = lex_here(x);
    str w = lex_word(x);
    if (!w.n)
        return lex_unexpected(x, "the name of a symbol");
    if (!(s.name = arena_strndup(tmp, w.s, w.n)))
        return ctx_nomem(x->c);
    TRY(check_name(x, at, g, s.name));
    TRY(read_word(x, "in", "\"in\" and bounds"));
    TRY(lex_expect(x, '[', "'[' and bounds"));
    TRY(read_bound(x, "the least value", INT64_MIN, &s.min));
    TRY(lex_expect(x, ',', "',' and the largest value"));
    TRY(read_bound(x, "the largest value", INT64_MAX, &s.max));
    if (s.min > s.max)
        return lex_fail(x, at, "no value of \"%s\" is within its bounds", s.name);
    TRY(lex_expect(x, ']', "']'"));
    TRY(read_hint(x, &s));
    return sym_add_symbol(g->syms, x->c, &s).sym ? BP_OK : x->c->diag.code;
}

static bp_status read_fact(lexer *x, graph *g, enum sym_origin origin)
{
    static const char what[] = "a condition on symbols";
    bp_dim d;
    lexer before = *x;
    lex_place at = lex_here(x);
    if (g->syms && x->line != before.line)
        return not_an_expression(&before, g->syms, what);
    if (!g->syms)
        return lex_fail(x, at, "a fact stands behind the symbols that it is about");
    TRY(read_expression(x, g->syms, lex_line(x), what, &d));
    if (d.sym ? sym_restore(g->syms, x->c, d, origin) : d.value == 1)
        return BP_OK;
    return ctx_ok(x->c) ? lex_fail(x, at, "this contradicts the symbols and facts before it") : x->c->diag.code;
}

bp_status header_read(lexer *x, arena *tmp, graph *g)
{
    for (;;) {
        lexer ahead = *x;
        str w = lex_word(&ahead);
        if (str_is(w, "symbol")) {
            *x = ahead;
            if (!graph_syms(x->c, g))
                return x->c->diag.code;
            TRY(read_symbol(x, tmp, g));
            continue;
        }
        uint32_t origin = 0;
        while (origin < 3 && !str_is(w, text_origins[origin]))
            origin++;
        if (origin == 3)
            return BP_OK;
        *x = ahead;
        TRY(read_fact(x, g, (enum sym_origin)origin));
    }
}
