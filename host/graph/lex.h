/* Reading canonical text by characters and words; each failure says where, what was expected and what is there. */
#ifndef HOST_GRAPH_LEX_H
#define HOST_GRAPH_LEX_H
#include "host/base/ctx.h"
#include "sdk/base/str.h"

typedef struct {
    bp_ctx *c;
    const char *file;
    const char *at, *end, *line_start;
    uint32_t line;
} lexer;

typedef struct { const char *at; uint32_t line, column; } lex_place;

/* Moves over blanks, line ends and comments; where the next token starts. */
lex_place lex_here(lexer *x);
bool lex_is(lexer *x, char ch);    /* is the next character this one? */
bool lex_take(lexer *x, char ch);  /* moves over it if it is */
bool lex_at_end(lexer *x);
/* Moves over ch, or fails: expected "what". */
bp_status lex_expect(lexer *x, char ch, const char *what);
str lex_word(lexer *x);            /* [A-Za-z_][A-Za-z0-9_]*; empty when the next token is none */
str lex_keyword(lexer *x);         /* "name=" ahead: takes it and gives the name; else empty, and nothing is taken */
str lex_name(lexer *x);            /* the same with dots and dashes inside */
/* What is ahead up to a ',', ';', ')' or ']' outside of parentheses, or to the end of the line, without blanks at its
 * end; nothing is taken. */
str lex_extent(lexer *x);
str lex_line(lexer *x);            /* the same, up to the end of the line alone */
/* A number: its text is at the next token. is_float tells whether it is written as one. */
bp_status lex_number(lexer *x, bool *is_float, int64_t *i, double *f);
bp_status lex_int(lexer *x, const char *what, int64_t least, int64_t *out);
bp_status lex_string(lexer *x, arena *a, const char *what, const char **out);
/* INVALID_ARGUMENT "FILE:LINE:COLUMN: ..." */
BP_PRINTF(3, 4) bp_status lex_fail(lexer *x, lex_place at, const char *fmt, ...);
/* "expected WHAT, got ..." at the next token. */
bp_status lex_unexpected(lexer *x, const char *what);
/* The same for a word that was read; names the nearest of n names. */
bp_status lex_unknown(lexer *x, lex_place at, const char *what, str word, const char *const *names, uint32_t n);
#endif
