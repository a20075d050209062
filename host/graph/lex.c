/* The lexer of canonical text. It reads bytes inside [at, end) only; text need not be NUL-terminated. */
#include "host/graph/lex.h"
#include "sdk/base/match.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_NUMBER = 64 };

static bool is_word(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') || ch == '_';
}

static bool is_digit(char ch)
{
    return ch >= '0' && ch <= '9';
}

lex_place lex_here(lexer *x)
{
    while (x->at < x->end) {
        if (*x->at == '#') {
            while (x->at < x->end && *x->at != '\n')
                x->at++;
        } else if (*x->at == '\n') {
            x->line_start = ++x->at;
            x->line++;
        } else if (*x->at == ' ' || *x->at == '\t' || *x->at == '\r') {
            x->at++;
        } else {
            break;
        }
    }
    return (lex_place){x->at, x->line, (uint32_t)(x->at - x->line_start) + 1};
}

bool lex_at_end(lexer *x)
{
    return lex_here(x).at == x->end;
}

bool lex_is(lexer *x, char ch)
{
    return !lex_at_end(x) && *x->at == ch;
}

bool lex_take(lexer *x, char ch)
{
    if (!lex_is(x, ch))
        return false;
    x->at++;
    return true;
}

bp_status lex_expect(lexer *x, char ch, const char *what)
{
    return lex_take(x, ch) ? BP_OK : lex_unexpected(x, what);
}

str lex_word(lexer *x)
{
    const char *begin = lex_here(x).at;
    if (begin == x->end || is_digit(*begin))
        return (str){begin, 0};
    while (x->at < x->end && is_word(*x->at))
        x->at++;
    return (str){begin, (size_t)(x->at - begin)};
}

str lex_keyword(lexer *x)
{
    lexer ahead = *x;
    str w = lex_word(&ahead);
    if (!w.n || !lex_take(&ahead, '='))
        return (str){0};
    *x = ahead;
    return w;
}

str lex_name(lexer *x)
{
    str w = lex_word(x);
    while (w.n && x->at < x->end && (is_word(*x->at) || *x->at == '.' || *x->at == '-'))
        x->at++;
    return (str){w.s, (size_t)(x->at - w.s)};
}

static str extent(lexer *x, const char *ends)
{
    const char *begin = lex_here(x).at, *at = begin;
    uint32_t depth = 0;
    for (; at < x->end && *at != '\n' && *at != '#'; at++) {
        if (!depth && *at && strchr(ends, *at))
            break;
        depth += *at == '(';
        depth -= *at == ')' && depth;
    }
    return str_trim((str){begin, (size_t)(at - begin)});
}

str lex_extent(lexer *x)
{
    return extent(x, ",;)]");
}

str lex_line(lexer *x)
{
    return extent(x, "");
}

/* -- errors -------------------------------------------------------------------------------------------------------- */

bp_status lex_fail(lexer *x, lex_place at, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return ctx_fail(x->c, BP_INVALID_ARGUMENT, "%s:%u:%u: %s", x->file, at.line, at.column, text);
}

bp_status lex_unexpected(lexer *x, const char *what)
{
    lex_place at = lex_here(x);
    if (at.at == x->end)
        return lex_fail(x, at, "expected %s, got the end of the text", what);
    const char *word_end = at.at;
    while (word_end < x->end && is_word(*word_end) && word_end - at.at < 40)
        word_end++;
    if (word_end > at.at)
        return lex_fail(x, at, "expected %s, got \"%.*s\"", what, (int)(word_end - at.at), at.at);
    if (isprint((unsigned char)*at.at))
        return lex_fail(x, at, "expected %s, got '%c'", what, *at.at);
    return lex_fail(x, at, "expected %s, got the byte 0x%02x", what, (unsigned char)*at.at);
}

bp_status lex_unknown(lexer *x, lex_place at, const char *what, str word, const char *const *names, uint32_t n)
{
    const char *near;
    bp_status s = lex_fail(x, at, "expected %s, got \"%.*s\"", what, (int)(word.n < 60 ? word.n : 60), word.s);
    if (match_close(word, names, n, 0.6, 1, &near))
        diag_hint(&x->c->diag, "did you mean \"%s\"?", near);
    return s;
}

/* -- numbers ------------------------------------------------------------------------------------------------------- */

static bool take_literal(lexer *x, const char *literal)
{
    size_t n = strlen(literal);
    if ((size_t)(x->end - x->at) < n || memcmp(x->at, literal, n) || (x->at + n < x->end && is_word(x->at[n])))
        return false;
    x->at += n;
    return true;
}

/* Copies the characters of a number: an optional sign, then letters, digits, points and signs after an e. */
static bool copy_number(lexer *x, char *out, bool *is_float)
{
    size_t n = 0;
    *is_float = false;
    while (x->at < x->end && n + 1 < LONGEST_NUMBER) {
        char ch = *x->at;
        bool sign = (ch == '-' || ch == '+') && (n == 0 || out[n - 1] == 'e');
        if (!sign && !is_digit(ch) && ch != '.' && ch != 'e')
            break;
        *is_float |= ch == '.' || ch == 'e';
        out[n++] = ch;
        x->at++;
    }
    out[n] = 0;
    return n > 0 && !(x->at < x->end && is_word(*x->at));
}

static bool take_special(lexer *x, double *f)
{
    const char *begin = x->at;
    bool minus = x->at < x->end && *x->at == '-';
    x->at += minus;
    if (take_literal(x, "inf"))
        *f = minus ? -INFINITY : INFINITY;
    else if (take_literal(x, "nan"))
        *f = NAN;
    else
        x->at = begin;
    return x->at != begin;
}

bp_status lex_number(lexer *x, bool *is_float, int64_t *i, double *f)
{
    char text[LONGEST_NUMBER], *end;
    lex_place at = lex_here(x);
    *is_float = true;
    if (take_special(x, f))
        return BP_OK;
    if (!copy_number(x, text, is_float)) {
        x->at = at.at;
        return lex_unexpected(x, "a number");
    }
    errno = 0;
    if (*is_float)
        *f = strtod(text, &end);
    else
        *i = strtoll(text, &end, 10);
    if (*end || end == text)
        return lex_fail(x, at, "expected a number, got \"%s\"", text);
    if (errno == ERANGE && !*is_float)
        return lex_fail(x, at, "the integer %s does not fit in 64 bits", text);
    return BP_OK;
}

bp_status lex_int(lexer *x, const char *what, int64_t least, int64_t *out)
{
    bool is_float;
    double f;
    lex_place at = lex_here(x);
    if (at.at == x->end || !(is_digit(*at.at) || *at.at == '-'))
        return lex_unexpected(x, what);
    TRY(lex_number(x, &is_float, out, &f));
    if (is_float)
        return lex_fail(x, at, "expected %s, got a float", what);
    if (*out < least)
        return lex_fail(x, at, "expected %s of at least %lld, got %lld", what, (long long)least, (long long)*out);
    return BP_OK;
}

/* -- strings ------------------------------------------------------------------------------------------------------- */

static int hex_digit(char ch)
{
    if (is_digit(ch))
        return ch - '0';
    return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : ch >= 'A' && ch <= 'F' ? ch - 'A' + 10 : -1;
}

/* After a backslash; returns the character, or 0 for none. */
static char take_escape(lexer *x)
{
    char ch = x->at < x->end ? *x->at++ : 0;
    switch (ch) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case '\\': case '"': case '\'': return ch;
    case 'x': break;
    default: return 0;
    }
    if (x->end - x->at < 2 || hex_digit(x->at[0]) < 0 || hex_digit(x->at[1]) < 0)
        return 0;
    ch = (char)(hex_digit(x->at[0]) * 16 + hex_digit(x->at[1]));
    x->at += 2;
    return ch;
}

bp_status lex_string(lexer *x, arena *a, const char *what, const char **out)
{
    lex_place begin = lex_here(x);
    TRY(lex_expect(x, '"', what));
    const char *close = x->at;
    while (close < x->end && *close != '"' && *close != '\n')
        close += *close == '\\' && close + 1 < x->end ? 2 : 1;
    char *copy = arena_alloc(a, (size_t)(close - x->at) + 1);
    if (!copy)
        return ctx_nomem(x->c);
    *out = copy;
    while (x->at < x->end && *x->at != '"') {
        lex_place at = {x->at, x->line, (uint32_t)(x->at - x->line_start) + 1};
        if (*x->at == '\n')
            break;
        char ch = *x->at++;
        if (ch == '\\')
            ch = take_escape(x);
        if (!ch)
            return lex_fail(x, at, "an escape that is none of \\n \\t \\r \\\\ \\\" \\xHH, or a zero byte");
        *copy++ = ch;
    }
    *copy = 0;
    if (x->at == x->end || *x->at != '"')
        return lex_fail(x, begin, "this string has no end on its line");
    x->at++;
    return BP_OK;
}
